// SPDX-License-Identifier: Apache-2.0
#include "supervisor.hpp"

#include "base/waiting.hpp"
#include "deploy/restart_policy.hpp"
#include "host/elapsed.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

namespace {

/// Whether starting a configuration again, that has never served, could not help: it is refused or
/// too large, or was not ready when its time was over.
bool is_hopeless(const Failure& failure) {
    return teaches(failure.kind) && failure.kind != FailureKind::other;
}

}  // namespace

bool Supervisor::run(const std::stop_token& stop) {
    for (std::size_t i = 0; i < o_.choices.size(); ++i) {
        const Choice& choice = o_.choices[i];
        RestartPolicy policy(o_.restarts);
        bool has_served = false;
        for (;;) {
            const Life life = live(choice, stop);
            if (!life.failure) {
                o_.tell("stopped", "stopped; nothing is left", {});
                return true;
            }
            has_served = has_served || life.served;
            const auto pause = !has_served && is_hopeless(*life.failure)
                                   ? std::nullopt
                                   : policy.fell(life.served_seconds);
            OrderedJson told{{"configuration", choice.name},
                             {"kind", name_in(failure_kinds, life.failure->kind)},
                             {"reason", life.failure->message},
                             {"log", life.failure->log_path}};
            if (!life.failure->log_lines.empty()) told["log_lines"] = life.failure->log_lines;
            told["again_in_seconds"] = pause ? OrderedJson(*pause) : OrderedJson();
            o_.tell(
                "fell",
                life.failure->message +
                    (life.failure->log_path.empty() ? "" : " (" + life.failure->log_path + ")") +
                    (pause ? "; starts again in " + seconds_text(*pause) : ""),
                std::move(told));
            if (!pause) break;
            if (wait_or_stop(std::chrono::duration<double>(*pause), stop)) {
                o_.tell("stopped", "stopped; nothing is left", {});
                return true;
            }
        }
        const bool last = i + 1 == o_.choices.size();
        o_.tell("given_up",
                fmt::format("the {} configuration is given up{}", choice.name,
                            last ? "; nothing is left to serve"
                                 : ": the " + o_.choices[i + 1].name + " takes its place"),
                {{"configuration", choice.name},
                 {"next", last ? OrderedJson() : OrderedJson(o_.choices[i + 1].name)}});
    }
    return false;
}

Supervisor::Life Supervisor::live(const Choice& choice, const std::stop_token& stop) {
    Life life;
    std::unique_ptr<ServerSet> engine;
    try {
        wait_for_ports(stop);
        if (stop.stop_requested()) return life;
        const bool one_line =
            choice.command.find('\n') == std::string::npos;  // not of engines of several roles
        o_.tell("starting",
                "starting the " + choice.name + " configuration" +
                    (one_line ? ": " + choice.command : ""),
                {{"configuration", choice.name}, {"command", choice.command}});
        engine = o_.start(choice.configuration, stop);
    } catch (const IoError& error) {
        if (!started_before_) throw;
        life.failure = Failure{FailureKind::infrastructure, error.what()};
        return life;
    }
    started_before_ = true;
    life.failure = engine->started().failure;
    if (life.failure && life.failure->kind == FailureKind::cancelled) life.failure.reset();
    else if (!life.failure) {
        life.served = true;
        const std::vector<std::string> addresses = engine->addresses();
        o_.tell("ready",
                fmt::format("the {} configuration serves at {} after {}", choice.name,
                            fmt::join(addresses, ", "), seconds_text(engine->started().seconds)),
                {{"configuration", choice.name},
                 {"addresses", addresses},
                 {"seconds", engine->started().seconds}});
        const auto since = Clock::now();
        life.failure = watch(*engine, stop);
        life.served_seconds = seconds_since(since);
        o_.tell("ending",
                life.failure ? "the engine serves no more; what is left of it is ended"
                             : "ending the engine",
                {{"served_seconds", life.served_seconds}});
    }
    if (const std::string left = engine->stop().report; !left.empty()) o_.tell("left", left, {});
    return life;
}

/// A line of the log that says that it broke counts once it answers no more: one request may print
/// it too.
std::optional<Failure> Supervisor::watch(ServerSet& engine, const std::stop_token& stop) {
    constexpr double longest_period_seconds = 10;  // as the probes of our Kubernetes files
    constexpr std::size_t fewest_checks = 3;       // one or two that come late are a busy engine
    const double period = std::min(longest_period_seconds,
                                   o_.hangs_after_seconds / static_cast<double>(fewest_checks));
    constexpr std::chrono::milliseconds look_up{200};
    std::size_t missed = 0;
    bool doubted = false;
    for (auto next = Clock::now();;) {
        if (wait_or_stop(look_up, stop)) return std::nullopt;
        auto died = engine.died();
        const bool asks_now = Clock::now() >= next || (died && !doubted);
        if (!asks_now) continue;
        next = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(period));
        if (const std::string trouble = engine.log_trouble();
            !trouble.empty() && trouble != std::exchange(log_trouble_, trouble))
            o_.tell("log_trouble", trouble, {});
        const std::string silent = engine.why_silent(period, stop);
        if (stop.stop_requested()) return std::nullopt;
        missed = silent.empty() ? 0 : missed + 1;
        if (!silent.empty() && died) return died;
        if (died && !std::exchange(doubted, true))
            o_.tell("doubt", died->message + "; it still answers, so it serves on",
                    {{"reason", died->message}});
        if (missed == 1)
            o_.tell("silent", "no good answer to the health check: " + silent,
                    {{"reason", silent}});
        if (static_cast<double>(missed) * period >= o_.hangs_after_seconds)
            return Failure{FailureKind::crashed_under_load,
                           fmt::format("no good answer for {}: {}",
                                       seconds_text(o_.hangs_after_seconds), silent)};
    }
}

void Supervisor::wait_for_ports(const std::stop_token& stop) const {
    const auto begin = Clock::now();
    for (std::string why = o_.port_trouble(); !why.empty(); why = o_.port_trouble()) {
        if (!started_before_ || seconds_since(begin) > o_.ports_free_within_seconds)
            throw IoError(why);
        if (wait_or_stop(std::chrono::milliseconds(100), stop)) return;
    }
}

}  // namespace autotune
