// SPDX-License-Identifier: Apache-2.0
#include "bench_report.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "screen.hpp"
#include "stop_signals.hpp"

#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/base/present.hpp"
#include "servetune/base/url.hpp"
#include "servetune/io/files.hpp"
#include "servetune/io/yaml.hpp"
#include "servetune/load/probe.hpp"
#include "servetune/results/records.hpp"
#include "servetune/results/result_export.hpp"
#include "servetune/results/result_file.hpp"
#include "servetune/study_file/catalogue.hpp"
#include "servetune/study_file/import.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
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
        const std::string lengths = arguments.workload.substr(7);
        const auto cross = std::min(lengths.find('x'), lengths.size() - 1);
        const auto is_count = [](const std::string& text) {
            return !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos &&
                   text.find_first_not_of('0') != std::string::npos;
        };
        if (lengths.empty() || !is_count(lengths.substr(0, cross)) || !is_count(lengths.substr(cross + 1)))
            throw UsageError("random:INPUTxOUTPUT in tokens wanted, such as random:1024x128, got '" + arguments.workload + "'");
        yaml = "{workload: random, dataset: {kind: random, input_tokens: " + lengths.substr(0, cross) +
               ", output_tokens: " + lengths.substr(cross + 1) + "}, requests: 100, ignore_eos: true}";
    }
    Workload workload = catalogue.workload(Yaml::parse(yaml, "--workload"));
    if (arguments.requests) workload.requests = static_cast<std::int64_t>(*arguments.requests);
    if (arguments.seed) workload.seed = *arguments.seed;
    if (arguments.ignore_eos) workload.ignore_eos = true;
    if (arguments.rate && arguments.concurrency) throw UsageError("--rate and --concurrency exclude each other");
    if (arguments.rate) workload.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = *arguments.rate};
    if (arguments.concurrency)
        workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = static_cast<std::int64_t>(*arguments.concurrency)};
    if (arguments.burstiness) {
        if (workload.arrival.kind != Arrival::Kind::rate && workload.arrival.kind != Arrival::Kind::ramp)
            throw UsageError("--burstiness goes with arrivals at a rate: add --rate");
        workload.arrival.burstiness = *arguments.burstiness;
    }
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

/// What is wrong with a header is said without its value, which may be a secret.
std::pair<std::string, std::string> header_of(const std::string& text) {
    const auto colon = text.find(':');
    const std::string wanted = "--header wants NAME:VALUE, such as 'X-Tenant: 7'; ";
    if (colon == std::string::npos) throw UsageError(wanted + "there is no colon");
    const std::string name = text.substr(0, colon);
    const auto begin = text.find_first_not_of(" \t", colon + 1);
    const auto is_token = [](char c) {  // RFC 9110, 5.6.2
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    };
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_token))
        throw UsageError(wanted + "a name has letters, digits and -, and no blanks");
    if (begin == std::string::npos) throw UsageError(wanted + name + " has no value");
    const std::string value = text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
    if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; }))
        throw UsageError(wanted + "the value of " + name + " has control characters");
    return {name, value};
}

Endpoint endpoint_of(const BenchArguments& arguments, const Catalogue& catalogue) {
    Endpoint endpoint;
    add_user_info(secrets(), arguments.url);
    endpoint.url = server_url(arguments.url);
    endpoint.api = arguments.completions || arguments.token_ids ? Endpoint::Api::completions : Endpoint::Api::chat;
    endpoint.stream = arguments.stream;
    endpoint.usage = arguments.usage;
    endpoint.extra_body = arguments.extra_body;
    endpoint.certificates = arguments.certificates;
    endpoint.counters = counters_of(catalogue);
    if (!arguments.api_key_environment.empty()) {
        endpoint.api_key = environment(arguments.api_key_environment);
        secrets().add(endpoint.api_key, "${" + arguments.api_key_environment + "}");
    }
    for (const std::string& header : arguments.headers) {
        endpoint.headers.push_back(header_of(header));
        const std::string& value = endpoint.headers.back().second;
        secrets().add(value);
        secrets().add(value.substr(value.find(' ') + 1));  // `Bearer KEY`: the key by itself too
    }
    if (!endpoint.extra_body.empty() && !nlohmann::json::parse(endpoint.extra_body, nullptr, false).is_object())
        throw UsageError("--extra-body wants a JSON object such as {\"temperature\": 0}, got '" + endpoint.extra_body + "'");
    endpoint.model = arguments.model;
    if (!endpoint.model.empty()) return endpoint;
    const std::vector<std::string> served = served_models(endpoint);
    if (served.size() != 1)
        throw UsageError(served.empty()
                             ? without_user_info(endpoint.url) +
                                   " answers, but has no list of models (/v1/models); name the model with --model"
                             : without_user_info(endpoint.url) + " serves several models; name one with --model: " + listed(served));
    endpoint.model = served.front();
    return endpoint;
}

/// How far the load test is, on standard error: on a terminal a line that is overwritten, elsewhere a line now and
/// then.
class LoadProgressLine {
public:
    explicit LoadProgressLine(bool shown) : shown_(shown), terminal_(screen().terminal()) {}

    void show(const LoadProgress& at) {
        constexpr double seconds_between_lines = 30;
        if (!shown_ || (!terminal_ && at.seconds < next_seconds_)) return;
        next_seconds_ = at.seconds + seconds_between_lines;
        const std::string text = fmt::format("{:6.1f} s  {} of {} ended, {} in flight, {} failed, {} token chunks", at.seconds, at.ended,
                                             at.planned, at.sent - at.ended, at.failed, at.token_chunks);
        if (terminal_) screen().status({text});
        else put_text(stderr, text);
    }
    void end() { screen().status({}); }

private:
    bool shown_;
    bool terminal_;
    double next_seconds_ = 0;
};

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
    std::vector<PublishedResult> others;  // read before the run: a mistake here should not cost it
    if (arguments.compare_with)
        others = read_results(read_file(*arguments.compare_with), arguments.compare_with->string(), launchers_of(catalogue.engines()));
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
