// SPDX-License-Identifier: Apache-2.0
#include "bench_report.hpp"
#include "commands.hpp"
#include "load_test_arguments.hpp"
#include "output.hpp"
#include "stop_signals.hpp"

#include "base/files.hpp"
#include "interop/import.hpp"
#include "handover/request_lines.hpp"
#include "handover/result_export.hpp"
#include "load/warm_up.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/detail/base/rng.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace autotune {

using namespace servetune;

namespace {

/// Both a rate and a concurrency: requests come at the rate, and wait while so many are in flight,
/// as in vLLM's benchmark.
void set_arrival(LoadTest& test, const BenchArguments& arguments) {
    Workload& workload = test.workload;
    if (arguments.rate && std::isinf(*arguments.rate)) workload.arrival = {};
    else if (arguments.rate)
        workload.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = *arguments.rate};
    if (arguments.concurrency && workload.arrival.kind == Arrival::Kind::rate && arguments.rate)
        test.options.most_in_flight = *arguments.concurrency;
    else if (arguments.concurrency)
        workload.arrival = {.kind = Arrival::Kind::concurrency,
                            .in_flight = static_cast<std::int64_t>(*arguments.concurrency)};
    if (workload.arrival.searched())
        throw UsageError("'" + workload.name +
                         "' looks for its largest load, which `autotune capacity` does; give "
                         "--rate or --concurrency");
    if (arguments.burstiness) {
        if (workload.arrival.kind != Arrival::Kind::rate &&
            workload.arrival.kind != Arrival::Kind::ramp)
            throw UsageError("--burstiness goes with arrivals at a rate: add --rate");
        workload.arrival.burstiness = *arguments.burstiness;
    }
}

/// The limits of a good request.
ServiceLimits service_limits_of(const BenchArguments& arguments) {
    return {arguments.ttft_limit_seconds, arguments.tpot_limit_seconds,
            arguments.latency_limit_seconds};
}

/// Of `--sweep`.
int swept(const BenchArguments& arguments) {
    const bool more = arguments.rate || arguments.concurrency || arguments.duration_seconds ||
                      arguments.warmup || arguments.records || arguments.compare_with ||
                      arguments.detailed || arguments.ttft_limit_seconds ||
                      arguments.tpot_limit_seconds || arguments.latency_limit_seconds;
    if (more)
        throw UsageError(
            "--sweep goes with options about server, workload and client, with --save and --json; "
            "for limits or rates see `autotune "
            "capacity`");
    CapacityArguments capacities;
    static_cast<LoadTestArguments&>(capacities) = arguments;
    capacities.concurrency = true;
    capacities.sweep = arguments.sweep;
    capacities.save = arguments.save;
    return capacity(capacities);
}

/// Requests before the load test until the server is steady; what it accepts and how it counts is
/// known then. Returns the requests that it answered a second; nothing, with a complaint, where it
/// answered none.
std::optional<double> warmed_up(LoadTest& test, std::size_t least, LoadProgressLine& line,
                                const std::stop_token& stop) {
    LoadTest before = test;
    before.salt = derive_seed(present(test.salt), 1);
    before.options.progress = [&line](const LoadProgress& at) { line.show(at, "warm-up: "); };
    const WarmUp warm = warm_up(before, least, stop);
    line.end();
    test.handshake = before.handshake;
    test.calibration = before.calibration;
    if (warm.successes > 0) {
        line.say(warm.text);
        return warm.requests_per_second.value_or(0);
    }
    if (!warm.stopped)
        complain("autotune: no request of the warm-up succeeded: {}",
                 printable_line(secrets()(warm.error)));
    return std::nullopt;
}

/// How many requests take `seconds`: by the rate, or with so many in flight by how fast a first run
/// of some was.
std::optional<std::size_t> requests_for(double seconds, LoadTest& test,
                                        const std::optional<std::size_t>& warmup,
                                        LoadProgressLine& line, const std::stop_token& stop) {
    const Arrival& arrival = test.workload.arrival;
    if (arrival.kind == Arrival::Kind::rate) {
        if (warmup != std::size_t{0} && !warmed_up(test, warmup.value_or(0), line, stop))
            return std::nullopt;
        return static_cast<std::size_t>(std::ceil(seconds * arrival.requests_per_second));
    }
    if (arrival.kind != Arrival::Kind::concurrency)
        throw UsageError("--duration goes with --rate or --concurrency");
    const auto in_flight = static_cast<std::size_t>(arrival.in_flight);
    const auto rate = warmed_up(test, std::max(warmup.value_or(0), 4 * in_flight), line, stop);
    if (!rate) return std::nullopt;
    return std::max(in_flight, static_cast<std::size_t>(std::ceil(seconds * *rate)));
}

std::string now_text() {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm local{};
    localtime_r(&now, &local);
    std::string text(32, '\0');
    text.resize(std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local));
    return text;
}

}  // namespace

int bench(const BenchArguments& arguments) {
    if (!arguments.sweep.empty()) return swept(arguments);
    if (arguments.duration_seconds && arguments.requests)
        throw UsageError("--duration and --requests exclude each other");
    ResultFiles files({arguments.save, arguments.records});
    const Catalogue catalogue = Catalogue::standard();
    LoadTest test = load_test_of(arguments, catalogue);
    set_arrival(test, arguments);
    test.limits = service_limits_of(arguments);
    test.known.rate_is_the_point = arguments.rate.has_value();
    std::vector<PublishedResult> others;  // read before the run: a mistake here should not cost it
    if (arguments.compare_with)
        others = read_results(read_file(*arguments.compare_with), arguments.compare_with->string(),
                              catalogue.engines());
    LoadProgressLine line(!arguments.quiet);
    test.options.progress = [&line](const LoadProgress& at) { line.show(at); };

    StopSignals signals("what has come so far is reported");
    if (arguments.duration_seconds) {
        const auto requests = requests_for(*arguments.duration_seconds, test, arguments.warmup,
                                           line, signals.token());
        if (!requests) return signals.token().stop_requested() ? stopped : answer_is_no;
        test.workload.requests = static_cast<std::int64_t>(*requests);
    } else if (arguments.warmup != std::size_t{0} &&
               !warmed_up(test, arguments.warmup.value_or(0), line, signals.token())) {
        return signals.token().stop_requested() ? stopped : answer_is_no;
    }
    const LoadTestResult result = run_load_test(test, signals.token());
    line.end();

    const ExportContext context{
        .date = now_text(),
        .backend = test.endpoint.api == Endpoint::Api::chat ? "openai-chat" : "openai",
        .model = test.endpoint.model,
        .dataset = std::string(name_in(dataset_kinds, test.workload.dataset.kind)),
        .burstiness = test.workload.arrival.burstiness};
    const BenchmarkResult& figures = result.statistics.result;
    const std::string json = with_verdict(
        vllm_json(figures, context,
                  arguments.detailed ? result.run.records : std::vector<RequestRecord>{}),
        result, *test.salt);
    files.write(arguments.save,
                [&](const std::filesystem::path& file) { write_file(file, json + "\n"); });
    files.write(arguments.records, [&](const std::filesystem::path& file) {
        write_records(file, result.run.records);
    });
    if (arguments.json) put(stdout, "{}\n", json);
    else put(stdout, "{}", bench_report(result, text_block(figures)));
    if (!others.empty() && !arguments.json)
        put(stdout, "\n{}",
            comparison(result, others.front(),
                       present(arguments.compare_with).filename().string()));
    files.end();
    if (result.run.stopped) return stopped;
    const bool none = figures.successful_requests.value_or(0) == 0;
    return none || result.validity.verdict == Verdict::unsound ? answer_is_no : done;
}

}  // namespace autotune
