// SPDX-License-Identifier: Apache-2.0
#include "capacity_report.hpp"
#include "commands.hpp"
#include "load_test_arguments.hpp"
#include "output.hpp"
#include "stop_signals.hpp"

#include "base/files.hpp"
#include "load/capacity.hpp"
#include "load/warm_up.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/detail/base/rng.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace autotune {

using namespace servetune;

namespace {

bool known_figure(const std::string& metric) {
    bool known = false;
    const BenchmarkResult none;
    for_each_figure(none, [&](const std::string& name, const std::optional<double>&) {
        known = known || name == metric;
    });
    return known;
}

std::vector<Limit> limits_of(const CapacityArguments& arguments) {
    std::vector<Limit> result;
    for (const std::string& text : arguments.limits) {
        result.push_back(Limit::parse(text, true));
        const Limit& limit = result.back();
        const bool known = limit.metric == "success_ratio" || known_figure(limit.metric);
        if (!grows_with_load(limit) || !known || !(limit.bound > 0))
            throw UsageError(
                "--limit wants an upper bound of a time, or a lower one of success_ratio, such as "
                "'ttft_p95 <= 500ms', got '" +
                text + "'");
    }
    if (result.empty() && arguments.sweep.empty())
        throw UsageError(
            "what must a load keep? Add --limit 'ttft_p95 <= 500ms', or measure given loads with "
            "--sweep 1,2,4,8");
    return result.empty() ? result : with_least_success(std::move(result));
}

Arrival arrival_of(const CapacityArguments& arguments, const Workload& workload) {
    Arrival result = workload.arrival;
    if (!result.searched()) {
        const double burstiness =
            workload.arrival.kind == Arrival::Kind::rate ? workload.arrival.burstiness : 1;
        result = {.kind = Arrival::Kind::largest_rate, .burstiness = burstiness};
    }
    if (arguments.concurrency && result.kind != Arrival::Kind::largest_concurrency) {
        result.kind = Arrival::Kind::largest_concurrency;
        result.search.from = result.search.to = std::nullopt;  // those were rates
    }
    if (arguments.from) result.search.from = arguments.from;
    if (arguments.to) result.search.to = arguments.to;
    if (arguments.burstiness) {
        if (arguments.concurrency)
            throw UsageError(
                "--burstiness goes with rates, and --concurrency asks for requests in flight");
        result.burstiness = *arguments.burstiness;
    }
    return result;
}

/// Load tests of one server, each with prompts that it has not seen.
class Loads {
public:
    Loads(LoadTest test, const std::vector<Limit>& limits, LoadProgressLine& line,
          const std::stop_token& stop)
        : test_(std::move(test)), salt_(test_.salt.value_or(0)), line_(line), stop_(stop) {
        test_.limits = service_limits(limits);
        test_.known.rate_is_chosen = true;
        test_.options.progress = [this](const LoadProgress& at) {
            line_.show(at, fmt::format("load {}: ", tests_));
        };
    }

    std::variant<LoadPoint, Failure> operator()(const Workload& at_level) {
        test_.workload = at_level;
        test_.salt = derive_seed(salt_, 2 * ++tests_);
        LoadTest before = test_;
        before.salt = derive_seed(salt_, 2 * tests_ + 1);
        before.options.progress = [this](const LoadProgress& at) {
            line_.show(at, fmt::format("warm-up of load {}: ", tests_));
        };
        (void)warm_up(before, 0, stop_);
        test_.handshake = before.handshake;
        test_.calibration = before.calibration;
        const LoadTestResult result = run_load_test(test_, stop_);
        line_.end();
        test_.handshake =
            result.handshake;  // what the server accepts and how it counts is asked once
        test_.calibration = result.calibration;
        if (result.run.stopped) return Failure{FailureKind::cancelled, "stopped by the user"};
        if (result.statistics.result.successful_requests.value_or(0) == 0 &&
            !result.run.records.empty())
            return Failure{FailureKind::load_test_failed,
                           "no request succeeded: " + result.run.records.front().error};
        return LoadPoint{.metrics = metrics_of(result.statistics), .validity = result.validity};
    }

private:
    LoadTest test_;
    std::uint64_t salt_;
    LoadProgressLine& line_;
    std::stop_token stop_;
    std::size_t tests_ = 0;
};

}  // namespace

int capacity(const CapacityArguments& arguments) {
    CapacityReport report;
    report.limits = limits_of(arguments);
    ResultFiles files({arguments.save});
    const Catalogue catalogue = Catalogue::standard();
    LoadTest test = load_test_of(arguments, catalogue);
    Workload workload = test.workload;
    workload.arrival = report.arrival = arrival_of(arguments, workload);
    const std::size_t requests = plan_requests(workload).requests.size();
    const CapacitySearch search(workload.arrival,
                                requests);  // refuses bounds that cannot be before anything is sent

    LoadProgressLine line(!arguments.quiet);
    StopSignals signals("what has come so far is reported");
    Loads measure(std::move(test), report.limits, line, signals.token());
    std::optional<Failure> failure;
    if (arguments.sweep.empty()) {
        auto found = find_capacity(
            workload, requests, report.limits,
            [&](const Workload& at_level) {
                auto measured = measure(at_level);
                if (const auto* point = std::get_if<LoadPoint>(&measured))
                    report.add(*point, at_level.arrival);
                return measured;
            },
            [&](const std::string& text) { line.say(text); });
        if (auto* why = std::get_if<Failure>(&found)) failure = std::move(*why);
        else report.found = std::get<Capacity>(std::move(found));
    } else {
        std::vector<double> levels = arguments.sweep;
        for (const double level : levels)
            if (workload.arrival.kind == Arrival::Kind::largest_concurrency
                    ? level != std::round(level) || level > most_concurrency
                    : level < slowest_rate || level > fastest_rate)
                throw UsageError(
                    fmt::format("--sweep wants loads that can be sent, with --concurrency whole "
                                "numbers, got {}",
                                level));
        std::sort(levels.begin(), levels.end());
        for (const double level : levels) {
            Workload at_level = workload;
            at_level.arrival = search.at(level);
            auto measured = measure(at_level);
            if (auto* why = std::get_if<Failure>(&measured)) {
                failure = std::move(*why);
                break;
            }
            report.add(std::get<LoadPoint>(measured), at_level.arrival);
            line.say(report.line_of(report.points.back()));
        }
    }
    files.write(arguments.save,
                [&](const std::filesystem::path& file) { write_file(file, report.json() + "\n"); });
    put(stdout, "{}", arguments.json ? report.json() + "\n" : report.text());
    files.end();
    if (failure && failure->kind == FailureKind::cancelled) return stopped;
    if (failure && !arguments.sweep.empty())
        complain("autotune: {}", printable_line(secrets()(failure->message)));
    else if (failure) throw UsageError(failure->message);
    if (failure || report.verdict() == Verdict::unsound) return answer_is_no;
    if (!report.found || report.found->end == Capacity::End::found) return done;
    return report.found->end == Capacity::End::fails_at_lowest ? answer_is_no : undecided;
}

}  // namespace autotune
