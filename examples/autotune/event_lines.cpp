// SPDX-License-Identifier: Apache-2.0
#include "event_lines.hpp"

#include "output.hpp"

#include "base/text.hpp"
#include "study/clocks.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "study/json.hpp"
#include "study/verdict.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson event_of(const char* name) { return {{"event", name}, {"at", unix_seconds()}}; }

/// An interval that is not known is null.
OrderedJson gain_object(const Gain& gain) {
    const FigureScale& scale = gain.scale;
    if (!gain.has_interval())
        return {{"value", scale.stated(gain.value)}, {"low", nullptr}, {"high", nullptr}};
    return {{"value", scale.stated(gain.value)},
            {"low", scale.stated(gain.low)},
            {"high", scale.stated(gain.high)}};
}

}  // namespace

void put_event(OrderedJson event) {
    redact(event, secrets());
    put_controls(
        stdout,
        printable(event.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n");
    (void)std::fflush(stdout);
}

void EventLines::resumed(std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    OrderedJson event = event_of("resumed");
    event["told"] = std::count_if(history.begin(), history.end(),
                                  [](const Trial& trial) { return trial.told(); });
    put_event(std::move(event));
}

void EventLines::started(const Trial& trial) {
    const std::scoped_lock lock(mutex_);
    phases_.erase(trial.id);
    OrderedJson event = event_of("started");
    event["trial"] = trial.id;
    event["workload"] = trial.workload;
    event["configuration"] = OrderedJson::parse(json_of(trial.configuration));
    event["why"] = trial.why;
    put_event(std::move(event));
}

void EventLines::told(const Trial& trial, std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    const Problem& problem = *setup_.problem;
    const std::vector<Trial> search = search_history(problem, history);
    const Standings standings = standings_of(problem, search);
    const Standing* best = standings.best();
    const Standing* base = standings.find(problem.space.default_configuration());
    phases_.erase(trial.id);
    OrderedJson event = event_of("told");
    event["trial"] = trial.id;
    event["workload"] = trial.workload;
    event["seconds"] = trial.cost_seconds();
    event["outcome"] = OrderedJson::parse(json_of(*trial.outcome));
    event["best"] = nullptr;
    if (best != nullptr) {
        event["best"] = {{"configuration", OrderedJson::parse(json_of(best->configuration))},
                         {"metric", problem.objective.leading().metric},
                         {"value", best->estimate().mean},
                         {"gain", nullptr}};
        if (base != nullptr && base->passes())
            event["best"]["gain"] = gain_object(judged_gain(problem, standings, *best, *base));
    }
    put_event(std::move(event));
}

void EventLines::phase(std::uint64_t trial, const std::string& what) {
    const std::scoped_lock lock(mutex_);
    const std::string name = what.substr(0, what.find(':'));
    if (std::string& last = phases_[trial]; std::exchange(last, name) == name) return;
    OrderedJson event = event_of("phase");
    event["trial"] = trial;
    event["phase"] = name;
    put_event(std::move(event));
}

void EventLines::said(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    OrderedJson event = event_of("said");
    event["text"] = line;
    put_event(std::move(event));
}

void EventLines::ended(std::string_view reason, const std::string& report) {
    const std::scoped_lock lock(mutex_);
    OrderedJson event = event_of("ended");
    event["reason"] = reason;
    event["report"] = OrderedJson::parse(report);
    put_event(std::move(event));
}

}  // namespace autotune
