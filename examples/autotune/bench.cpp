// SPDX-License-Identifier: Apache-2.0
#include "bench_report.hpp"
#include "commands.hpp"
#include "stop_signals.hpp"

#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/io/catalogue.hpp"
#include "servetune/io/files.hpp"
#include "servetune/io/import.hpp"
#include "servetune/io/records.hpp"
#include "servetune/io/result_export.hpp"
#include "servetune/io/result_file.hpp"
#include "servetune/io/yaml.hpp"
#include "servetune/load/probe.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace autotune {

using namespace servetune;

namespace {

/// `random:1024x128` is a workload without a file; anything else a name or a file.
Workload workload_of(const BenchArguments& arguments, const Catalogue& catalogue) {
    std::string yaml = "\"" + arguments.workload + "\"";
    if (arguments.workload.starts_with("random:")) {
        const auto cross = arguments.workload.find('x');
        if (cross == std::string::npos)
            throw UsageError("random:INPUTxOUTPUT wanted, such as random:1024x128, got '" + arguments.workload + "'");
        yaml = "{workload: random, dataset: {kind: random, input_tokens: " + arguments.workload.substr(7, cross - 7) +
               ", output_tokens: " + arguments.workload.substr(cross + 1) + "}, requests: 100, ignore_eos: true}";
    }
    Workload workload = catalogue.workload(Yaml::parse(yaml, "--workload"));
    if (arguments.requests) workload.requests = static_cast<std::int64_t>(*arguments.requests);
    if (arguments.seed) workload.seed = *arguments.seed;
    if (arguments.ignore_eos) workload.ignore_eos = true;
    if (arguments.rate && arguments.concurrency) throw UsageError("--rate and --concurrency exclude each other");
    if (arguments.rate)
        workload.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = *arguments.rate, .burstiness = arguments.burstiness};
    if (arguments.concurrency)
        workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = static_cast<std::int64_t>(*arguments.concurrency)};
    return workload;
}

/// The names under which any engine that we know counts.
std::vector<std::pair<std::string, std::string>> counters_of(const Catalogue& catalogue) {
    std::vector<std::pair<std::string, std::string>> result;
    for (const Engine& engine : catalogue.engines())
        for (const auto& [ours, theirs] : engine.counters) result.emplace_back(ours, theirs);
    return result;
}

std::string environment(const std::string& name) {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (value == nullptr) throw UsageError("the environment has no " + name + ", which --api-key-env names");
    return value;
}

Endpoint endpoint_of(const BenchArguments& arguments, const Catalogue& catalogue) {
    Endpoint endpoint;
    endpoint.url = arguments.url;
    endpoint.api = arguments.completions || arguments.token_ids ? Endpoint::Api::completions : Endpoint::Api::chat;
    endpoint.stream = arguments.stream;
    endpoint.usage = arguments.usage;
    endpoint.extra_body = arguments.extra_body;
    endpoint.certificates = arguments.certificates;
    endpoint.counters = counters_of(catalogue);
    if (!arguments.api_key_environment.empty()) endpoint.api_key = environment(arguments.api_key_environment);
    for (const std::string& header : arguments.headers) {
        const auto colon = header.find(':');
        if (colon == std::string::npos) throw UsageError("--header NAME:VALUE wanted, got '" + header + "'");
        endpoint.headers.emplace_back(header.substr(0, colon), header.substr(header.find_first_not_of(' ', colon + 1)));
    }
    endpoint.model = arguments.model;
    if (!endpoint.model.empty()) return endpoint;
    const std::vector<std::string> served = served_models(endpoint);
    if (served.size() != 1)
        throw UsageError(served.empty() ? endpoint.url + " does not say what it serves; name it with --model"
                                        : endpoint.url + " serves several models; name one with --model: " + listed(served));
    endpoint.model = served.front();
    return endpoint;
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
    LoadTest test;
    test.endpoint = endpoint_of(arguments, catalogue);
    test.workload = workload_of(arguments, catalogue);
    test.options.loops = arguments.loops;
    test.options.request_timeout_seconds = arguments.request_timeout_seconds;
    test.options.stall_timeout_seconds = arguments.stall_timeout_seconds;
    test.limits = {arguments.ttft_limit_seconds, arguments.tpot_limit_seconds, arguments.latency_limit_seconds};
    test.token_ids = arguments.token_ids;
    test.salt = arguments.salt ? *arguments.salt : std::uint64_t{std::random_device{}()};
    if (!arguments.facts_of.empty()) test.known.served = catalogue.model(arguments.facts_of);
    else test.known.served = served_model(test.endpoint.model, catalogue.all_models());
    if (!arguments.hardware.empty()) test.known.hardware = catalogue.hardware(arguments.hardware);
    test.known.devices = arguments.devices;
    if (!arguments.quiet)
        test.options.progress = [](const LoadProgress& at) {
            fmt::print(stderr, "\r{:6.1f} s  {} of {} ended, {} in flight, {} failed, {} token chunks ", at.seconds, at.ended, at.planned,
                       at.sent - at.ended, at.failed, at.token_chunks);
            std::fflush(stderr);
        };

    StopSignals signals("what has come so far is reported");
    const LoadTestResult result = run_load_test(test, signals.token());
    if (!arguments.quiet) fmt::print(stderr, "\r{:79}\r", "");

    const ExportContext context{.date = now_text(),
                                .backend = test.endpoint.api == Endpoint::Api::chat ? "openai-chat" : "openai",
                                .model = test.endpoint.model,
                                .dataset = std::string(name_in(dataset_kinds, test.workload.dataset.kind)),
                                .burstiness = arguments.burstiness};
    const BenchmarkResult& figures = result.statistics.result;
    const std::string json = with_verdict(
        vllm_json(figures, context, arguments.detailed ? result.run.records : std::vector<RequestRecord>{}), result, *test.salt);
    if (arguments.save) write_file(*arguments.save, json + "\n");
    if (arguments.records) write_records(*arguments.records, result.run.records);
    if (arguments.json) fmt::print("{}\n", json);
    else fmt::print("{}", bench_report(result, text_block(figures)));
    if (arguments.compare_with) {
        const auto others =
            read_results(read_file(*arguments.compare_with), arguments.compare_with->string(), launchers_of(catalogue.engines()));
        if (!arguments.json) fmt::print("\n{}", comparison(result, others.front(), arguments.compare_with->filename().string()));
    }
    if (result.run.stopped) return stopped;
    const bool none = figures.successful_requests.value_or(0) == 0;
    return none || result.validity.verdict == Verdict::unsound ? answer_is_no : done;
}

}  // namespace autotune
