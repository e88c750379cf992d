// SPDX-License-Identifier: Apache-2.0
#include "bench_report.hpp"
#include "commands.hpp"
#include "load_test_arguments.hpp"
#include "output.hpp"
#include "stop_signals.hpp"

#include "servetune/base/error.hpp"
#include "servetune/base/number_text.hpp"
#include "servetune/base/present.hpp"
#include "servetune/io/files.hpp"
#include "servetune/results/records.hpp"
#include "servetune/results/result_export.hpp"
#include "servetune/results/result_file.hpp"
#include "servetune/study_file/catalogue.hpp"
#include "servetune/study_file/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace autotune {

using namespace servetune;

namespace {

void set_arrival(Workload& workload, const BenchArguments& arguments) {
    if (arguments.rate && arguments.concurrency) throw UsageError("--rate and --concurrency exclude each other");
    if (arguments.rate && std::isinf(*arguments.rate)) workload.arrival = {};
    else if (arguments.rate) workload.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = *arguments.rate};
    if (arguments.concurrency)
        workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = static_cast<std::int64_t>(*arguments.concurrency)};
    if (workload.arrival.searched())
        throw UsageError("'" + workload.name +
                         "' looks for its largest load, which `autotune capacity` does; give --rate or --concurrency");
    if (arguments.burstiness) {
        if (workload.arrival.kind != Arrival::Kind::rate && workload.arrival.kind != Arrival::Kind::ramp)
            throw UsageError("--burstiness goes with arrivals at a rate: add --rate");
        workload.arrival.burstiness = *arguments.burstiness;
    }
}

/// The limits of a good request, by either spelling.
ServiceLimits service_limits_of(const BenchArguments& arguments) {
    ServiceLimits result{arguments.ttft_limit_seconds, arguments.tpot_limit_seconds, arguments.latency_limit_seconds};
    for (const std::string& text : arguments.goodput) {
        const auto colon = std::min(text.find(':'), text.size());
        const std::string name = text.substr(0, colon);
        std::optional<double>* limit = name == "ttft"   ? &result.time_to_first_token_seconds
                                       : name == "tpot" ? &result.time_per_output_token_seconds
                                       : name == "e2el" ? &result.latency_seconds
                                                        : nullptr;
        const auto milliseconds = real_of(text.substr(std::min(colon + 1, text.size())));
        if (limit == nullptr || !milliseconds || !(*milliseconds > 0))
            throw UsageError("--goodput wants ttft:MILLISECONDS, tpot:MILLISECONDS or e2el:MILLISECONDS, got '" + text + "'");
        if (*limit) throw UsageError("--goodput: there are two limits for " + name);
        *limit = *milliseconds / 1000;
    }
    return result;
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
    const Catalogue catalogue = Catalogue::standard();
    LoadTest test = load_test_of(arguments, catalogue);
    set_arrival(test.workload, arguments);
    test.limits = service_limits_of(arguments);
    test.known.rate_is_the_point = arguments.rate.has_value();
    std::vector<PublishedResult> others;  // read before the run: a mistake here should not cost it
    if (arguments.compare_with)
        others = read_results(read_file(*arguments.compare_with), arguments.compare_with->string(), catalogue.engines());
    LoadProgressLine line(!arguments.quiet);
    test.options.progress = [&line](const LoadProgress& at) { line.show(at); };

    StopSignals signals("what has come so far is reported");
    const LoadTestResult result = run_load_test(test, signals.token());
    line.end();

    const ExportContext context{.date = now_text(),
                                .backend = test.endpoint.api == Endpoint::Api::chat ? "openai-chat" : "openai",
                                .model = test.endpoint.model,
                                .dataset = std::string(name_in(dataset_kinds, test.workload.dataset.kind)),
                                .burstiness = test.workload.arrival.burstiness};
    const BenchmarkResult& figures = result.statistics.result;
    const std::string json = with_verdict(
        vllm_json(figures, context, arguments.detailed ? result.run.records : std::vector<RequestRecord>{}), result, *test.salt);
    if (arguments.save) write_file(*arguments.save, json + "\n");
    if (arguments.records) write_records(*arguments.records, result.run.records);
    if (arguments.json) put(stdout, "{}\n", json);
    else put(stdout, "{}", bench_report(result, text_block(figures)));
    if (!others.empty() && !arguments.json)
        put(stdout, "\n{}", comparison(result, others.front(), present(arguments.compare_with).filename().string()));
    if (result.run.stopped) return stopped;
    const bool none = figures.successful_requests.value_or(0) == 0;
    return none || result.validity.verdict == Verdict::unsound ? answer_is_no : done;
}

}  // namespace autotune
