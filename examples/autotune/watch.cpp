// SPDX-License-Identifier: Apache-2.0
// `autotune watch`: whether a server in production still has the traffic and speed of its study.
#include "commands.hpp"
#include "observers.hpp"
#include "output.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"

#include "base/url.hpp"
#include "base/waiting.hpp"
#include "load/http.hpp"
#include "report/production_check.hpp"
#include "report/report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "study/clocks.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace autotune {

namespace {

/// `http://host:8000/metrics` and `http://host:8000` are the same server.
Endpoint endpoint_to_watch(const WatchArguments& arguments, const std::string& path) {
    Endpoint endpoint;
    add_user_info(secrets(), arguments.url);
    std::string url = arguments.url;
    if (url.ends_with(path)) url.resize(url.size() - path.size());
    endpoint.url = server_url(url);
    endpoint.metrics_path = path;
    if (!arguments.api_key_environment.empty())
        endpoint.api_key = api_key_in(arguments.api_key_environment);
    return endpoint;
}

std::string or_dash(const std::optional<double>& value) {
    return value ? short_number_text(*value) : "-";
}

class Watch {
public:
    Watch(const WatchArguments& arguments, const WatchedStudy& study, std::stop_token stop)
        : arguments_(arguments),
          study_(study),
          stop_(std::move(stop)),
          endpoint_(endpoint_to_watch(arguments, study.engine->counters.at("url"))),
          check_(study.expected) {}

    /// False: stopped, or the first page cannot be read or has none of the engine's names.
    bool run() {
        const double interval = arguments_.interval_seconds;
        const double began = steady_seconds();
        const double count =
            arguments_.once
                ? 1
                : std::max(1.0,
                           std::round(arguments_.for_seconds.value_or(20 * interval) / interval));
        if (!step()) return false;
        for (double i = 1; i <= count; ++i) {
            const double left = began + i * interval - steady_seconds();
            if (wait_or_stop(std::chrono::duration<double>(std::max(0.0, left)), stop_)) break;
            (void)step();
        }
        return true;
    }
    [[nodiscard]] const ProductionCheck& check() const { return check_; }
    [[nodiscard]] std::size_t failed() const { return failed_; }

private:
    /// False: the page was not read.
    bool step() {
        const double timeout = std::clamp(arguments_.interval_seconds, 1.0, 10.0);
        const Reply reply = get(endpoint_, endpoint_.metrics_path, timeout,
                                [this] { return stop_.stop_requested(); });
        if (stop_.stop_requested()) return false;
        if (!reply.error.empty() || reply.status != 200)
            return fail(endpoint_.metrics_path + trouble_text(reply));
        const PageCounters counters = read_counters(reply.body, study_.engine->counters);
        if (counters.empty())
            return fail("the page has none of the metrics of " + study_.engine->name +
                        ": is this its server, and does it publish them?");
        const std::size_t restarts = check_.restarts();
        const auto figures = check_.add(counters, steady_seconds());
        if (check_.restarts() > restarts) say("restarted", "the server restarted");
        if (!figures) return true;
        const auto verdict = name_in(watch_verdicts, check_.verdict());
        if (arguments_.json_lines) {
            put_event({{"event", "window"},
                       {"at", unix_seconds()},
                       {"figures", *figures},
                       {"verdict", verdict}});
            return true;
        }
        std::string line;
        for (const auto& [name, value] : *figures)
            line += fmt::format("{} {}, ", name, short_number_text(value));
        put(stdout, "{}{}\n", line, verdict);
        (void)std::fflush(stdout);
        return true;
    }
    bool fail(const std::string& why) {
        ++failed_;
        if (why != trouble_ || arguments_.json_lines) say("failed", why);
        trouble_ = why;
        return false;
    }
    void say(const char* event, const std::string& what) const {
        if (arguments_.json_lines)
            put_event({{"event", event}, {"at", unix_seconds()}, {"message", what}});
        else complain("autotune: {}\n", what);
    }

    const WatchArguments& arguments_;
    const WatchedStudy& study_;
    std::stop_token stop_;
    Endpoint endpoint_;
    ProductionCheck check_;
    std::size_t failed_ = 0;
    std::string trouble_{};
};

std::string watched_verdict(const ProductionCheck& check) {
    switch (check.verdict()) {
        case WatchVerdict::as_recommended:
            return "As recommended: the traffic is that of the study.";
        case WatchVerdict::tune_again: {
            std::string changed;
            for (const JudgedFigure& one : check.judged())
                if (one.likeness == Similarity::changed)
                    changed += (changed.empty() ? "" : ", ") + one.name;
            return "Tune again: the traffic is not the study's any more (" + changed + ").";
        }
        case WatchVerdict::slower:
            return "Slower than the study measured, under the same traffic: look for another "
                   "version, other flags or a throttled device (autotune bench compares).";
        case WatchVerdict::undecided: break;
    }
    const std::string few = check.too_few_requests();
    return "Inconclusive: watch longer." + (few.empty() ? "" : " " + few);
}

void put_verdict(const Watch& watch, const WatchedStudy& study, bool json) {
    const ProductionCheck& check = watch.check();
    const std::vector<JudgedFigure> judged = check.judged();
    if (json) {
        OrderedJson figures = OrderedJson::array();
        for (const JudgedFigure& one : judged)
            figures.push_back({{"name", one.name},
                               {"likeness", name_in(likenesses, one.likeness)},
                               {"study", or_null(one.study)},
                               {"now", or_null(one.now)},
                               {"low", or_null(one.low)},
                               {"high", or_null(one.high)}});
        return put_event({{"event", "verdict"},
                          {"at", unix_seconds()},
                          {"verdict", name_in(watch_verdicts, check.verdict())},
                          {"text", watched_verdict(check)},
                          {"seconds", check.seconds()},
                          {"requests", check.requests()},
                          {"failed", watch.failed()},
                          {"restarts", check.restarts()},
                          {"study_workload", study.workload},
                          {"figures", figures}});
    }
    put(stdout, "\n{} requests in {}\n  {:<26} {:>9} {:>9}  {:<16}\n", check.requests(),
        seconds_text(check.seconds()), "against " + study.workload, "study", "now",
        "99 % interval");
    for (const JudgedFigure& one : judged)
        put(stdout, "  {:<26} {:>9} {:>9}  {:<16} {}\n", one.name, or_dash(one.study),
            or_dash(one.now),
            one.low ? or_dash(one.low) + " to " + or_dash(one.high) : std::string(),
            name_in(likenesses, one.likeness));
    put(stdout, "  (the interval is of now / study, of cache hits now - study)\n");
    put_text(stdout, "\n" + watched_verdict(check) + "\n");
}

}  // namespace

int watch(const WatchArguments& arguments) {
    const StopSignals signals("what was seen so far is judged");
    StudyFile file = arguments.load_to_read();
    const fs::path folder = arguments.folder_to_read(file);
    StudySetup setup = set_up(std::move(file), folder);
    setup.evaluator.reset();
    const WatchedStudy study = watched_study(setup, read_journal(setup, folder).trials());
    Watch watch(arguments, study, signals.token());
    const bool read = watch.run() && watch.check().seconds() > 0;
    if (read) put_verdict(watch, study, arguments.json_lines);
    else if (!signals.token().stop_requested())
        complain("autotune: no two pages of one start of the server were read\n");
    if (signals.token().stop_requested()) return stopped;
    if (!read) return environment_error;
    const WatchVerdict verdict = watch.check().verdict();
    if (arguments.once || verdict == WatchVerdict::as_recommended) return done;
    return verdict == WatchVerdict::undecided ? undecided : answer_is_no;
}

}  // namespace autotune
