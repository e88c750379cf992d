// SPDX-License-Identifier: Apache-2.0
// `autotune bench` and `autotune capacity`: load tests of a server that somebody runs.
#include "commands.hpp"
#include "first_study.hpp"
#include "load_reports.hpp"
#include "output.hpp"
#include "stop_signals.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/nesting.hpp"
#include "base/present.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "handover/request_lines.hpp"
#include "handover/result_export.hpp"
#include "load/capacity.hpp"
#include "load/warm_up.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"
#include "servetune/load_test.hpp"
#include "servetune/rng.hpp"
#include "study_file/readers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <random>

namespace autotune {

namespace {

/// How far a load test is, on standard error: on a terminal a line that is overwritten, elsewhere a
/// line now and then.
class LoadProgressLine {
public:
    explicit LoadProgressLine(bool shown) : shown_(shown) {}

    /// Shows it with `what` before it, as `options.progress` takes it.
    [[nodiscard]] std::function<void(const LoadProgress&)> showing(std::string what = "") {
        return [this, what = std::move(what)](const LoadProgress& at) { show(at, what); };
    }
    /// A line that stays.
    void say(const std::string& line) {
        if (!shown_) return;
        end();
        screen().line(line);
        next_seconds_ = 0;
    }
    void end() { screen().status({}); }

private:
    void show(const LoadProgress& at, const std::string& what) {
        constexpr double seconds_between_lines = 30;
        if (!shown_ || (!terminal_ && at.seconds < next_seconds_)) return;
        next_seconds_ = at.seconds + seconds_between_lines;
        const std::string text = fmt::format(
            "{}{:6.1f} s  {} of {} ended, {} in flight, {} failed, {} token chunks", what,
            at.seconds, at.ended, at.planned, at.sent - at.ended, at.failed, at.token_chunks);
        if (terminal_) screen().status({text});
        else put_text(stderr, text);
    }

    bool shown_;
    bool terminal_ = screen().terminal();
    double next_seconds_ = 0;
};

/// `random:1024x128` is a workload without a file; anything else a name or a file.
Workload workload_of(const LoadTestArguments& arguments, const Catalogue& catalogue) {
    const std::string& said = arguments.workload;
    const bool random = said.starts_with("random:");
    const auto lengths = lengths_in(random ? said.substr(7) : said);
    if (random && !lengths)
        throw UsageError("random:INPUTxOUTPUT in tokens wanted, such as random:1024x128, got '" +
                         said + "'");
    const std::string yaml =
        lengths ? fmt::format(
                      "{{workload: random, dataset: {{kind: random, input_tokens: {}, "
                      "output_tokens: {}}}, requests: 100, ignore_eos: true}}",
                      lengths->first, lengths->second)
                : "\"" + said + "\"";
    Workload workload = workload_in(catalogue, Yaml::parse(yaml, "--workload"));
    if (arguments.requests) workload.requests = std::int64_t(*arguments.requests);
    if (arguments.seed) workload.seed = *arguments.seed;
    if (arguments.ignore_eos) workload.ignore_eos = true;
    return workload;
}

/// What is wrong with a header is said without its value, which may be a secret.
std::pair<std::string, std::string> header_of(const std::string& text) {
    const auto colon = text.find(':');
    const std::string name = text.substr(0, colon);
    const std::string value(trimmed(colon == npos ? "" : text.substr(colon + 1)));
    const auto is_token = [](unsigned char c) {  // RFC 9110, 5.6.2
        return std::isalnum(c) != 0 || contains("!#$%&'*+-.^_`|~", static_cast<char>(c));
    };
    const auto is_control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; };
    const char* wrong = colon == npos ? "there is no colon"
                        : name.empty() || !all_of(name, is_token)
                            ? "a name has letters, digits and -, and no blanks"
                        : value.empty()             ? "there is no value"
                        : any_of(value, is_control) ? "the value has control characters"
                                                    : nullptr;
    if (wrong != nullptr)
        throw UsageError(std::string("--header wants NAME:VALUE, such as 'X-Tenant: 7'; ") + wrong);
    return {name, value};
}

Endpoint endpoint_of(const LoadTestArguments& arguments, const Catalogue& catalogue) {
    Endpoint endpoint;
    add_user_info(secrets(), arguments.url);
    endpoint.url = server_url(arguments.url);
    for (const std::string& url : arguments.replicas) {
        add_user_info(secrets(), url);
        endpoint.replicas.push_back(server_url(url));
    }
    endpoint.api = arguments.completions ? Endpoint::Api::completions : Endpoint::Api::chat;
    endpoint.stream = arguments.stream;
    endpoint.extra_body = arguments.extra_body;
    endpoint.certificates = arguments.certificates;
    for (const Engine& engine : catalogue.engines())
        for (const auto& [ours, theirs] : engine.counters)
            endpoint.counters.emplace_back(ours, theirs);
    if (!arguments.api_key_environment.empty())
        endpoint.api_key = api_key_in(arguments.api_key_environment);
    for (const std::string& header : arguments.headers) {
        endpoint.headers.push_back(header_of(header));
        const std::string& value = endpoint.headers.back().second;
        secrets().add(value);
        secrets().add(value.substr(value.find(' ') + 1));  // `Bearer KEY`: the key by itself too
    }
    if (!endpoint.extra_body.empty() &&
        !shallow_json<nlohmann::json>(endpoint.extra_body).is_object())
        throw UsageError("--extra-body wants a JSON object such as {\"temperature\": 0}, got '" +
                         endpoint.extra_body + "'");
    endpoint.model = arguments.model;
    if (!endpoint.model.empty()) return endpoint;
    const std::vector<std::string> served = served_models(endpoint);
    if (served.size() != 1)
        throw UsageError(served.empty() ? without_user_info(endpoint.url) +
                                              " answers, but has no list of models (/v1/models); "
                                              "name the model with --model"
                                        : without_user_info(endpoint.url) +
                                              " serves several models; name one with --model: " +
                                              listed(served));
    endpoint.model = served.front();
    return endpoint;
}

/// The load test that a command line asks for; the workload has its own arrival.
LoadTest load_test_of(const LoadTestArguments& arguments, const Catalogue& catalogue) {
    LoadTest test;
    test.endpoint = endpoint_of(arguments, catalogue);
    test.workload = workload_of(arguments, catalogue);
    test.options.loops = arguments.loops;
    test.options.request_timeout_seconds = arguments.request_timeout_seconds;
    test.options.stall_timeout_seconds = arguments.stall_timeout_seconds;
    test.salt = arguments.salt ? *arguments.salt : std::uint64_t{std::random_device{}()};
    if (!arguments.facts_of.empty()) test.known.served = catalogue.model(arguments.facts_of);
    else test.known.served = served_model(test.endpoint.model, catalogue.all_models());
    if (!arguments.hardware.empty()) test.known.hardware = catalogue.hardware(arguments.hardware);
    test.known.devices = arguments.devices;
    return test;
}

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
                            .in_flight = std::int64_t(*arguments.concurrency)};
    if (workload.arrival.searched())
        throw UsageError("'" + workload.name +
                         "' looks for its largest load, which `autotune capacity` does; give "
                         "--rate or --concurrency");
    if (arguments.burstiness) {
        if (workload.arrival.kind != Arrival::Kind::rate)
            throw UsageError("--burstiness goes with arrivals at a rate: add --rate");
        workload.arrival.burstiness = *arguments.burstiness;
    }
}

/// Requests before a load test until the server is steady; what it accepts and how it counts is
/// known then.
WarmUp warmed(LoadTest& test, std::size_t least, std::uint64_t salt, LoadProgressLine& line,
              const std::string& what, const std::stop_token& stop) {
    LoadTest before = test;
    before.salt = salt;
    before.options.progress = line.showing(what);
    WarmUp result = warm_up(before, least, stop);
    line.end();
    test.handshake = before.handshake;
    test.calibration = before.calibration;
    return result;
}

/// Returns the requests that the server answered a second; nothing, with a complaint, where it
/// answered none.
std::optional<double> warmed_up(LoadTest& test, std::size_t least, LoadProgressLine& line,
                                const std::stop_token& stop) {
    const WarmUp warm =
        warmed(test, least, derive_seed(present(test.salt), 1), line, "warm-up: ", stop);
    if (warm.successes > 0) {
        line.say(warm.text);
        return warm.requests_per_second.value_or(0);
    }
    if (!warm.stopped) complain("autotune: no request of the warm-up succeeded: {}", warm.error);
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
        return std::size_t(std::ceil(seconds * arrival.requests_per_second));
    }
    if (arrival.kind != Arrival::Kind::concurrency)
        throw UsageError("--duration goes with --rate or --concurrency");
    const auto in_flight = std::size_t(arrival.in_flight);
    const auto rate = warmed_up(test, std::max(warmup.value_or(0), 4 * in_flight), line, stop);
    if (!rate) return std::nullopt;
    return std::max(in_flight, std::size_t(std::ceil(seconds * *rate)));
}

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
    }

    std::variant<LoadPoint, Failure> operator()(const Workload& at_level) {
        test_.workload = at_level;
        test_.salt = derive_seed(salt_, 2 * ++tests_);
        (void)warmed(test_, 0, derive_seed(salt_, 2 * tests_ + 1), line_,
                     fmt::format("warm-up of load {}: ", tests_), stop_);
        test_.options.progress = line_.showing(fmt::format("load {}: ", tests_));
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

int bench(const BenchArguments& arguments) {
    if (arguments.duration_seconds && arguments.requests)
        throw UsageError("--duration and --requests exclude each other");
    for (const auto& file : {arguments.save, arguments.records})  // a load test takes long
        if (file) check_writable(*file);
    const Catalogue catalogue = Catalogue::standard();
    LoadTest test = load_test_of(arguments, catalogue);
    set_arrival(test, arguments);
    test.limits = {arguments.ttft_limit_seconds, arguments.tpot_limit_seconds,
                   arguments.latency_limit_seconds};
    test.known.rate_is_intended = arguments.rate.has_value();
    LoadProgressLine line(!arguments.quiet);
    test.options.progress = line.showing();

    StopSignals signals("what has come so far is reported");
    if (arguments.duration_seconds) {
        const auto requests = requests_for(*arguments.duration_seconds, test, arguments.warmup,
                                           line, signals.token());
        if (!requests) return signals.token().stop_requested() ? stopped : answer_is_no;
        test.workload.requests = std::int64_t(*requests);
    } else if (arguments.warmup != std::size_t{0} &&
               !warmed_up(test, arguments.warmup.value_or(0), line, signals.token())) {
        return signals.token().stop_requested() ? stopped : answer_is_no;
    }
    const LoadTestResult result = run_load_test(test, signals.token());
    line.end();

    const ExportContext context{
        .date = local_time("%Y%m%d-%H%M%S"),
        .backend = test.endpoint.api == Endpoint::Api::chat ? "openai-chat" : "openai",
        .model = test.endpoint.model,
        .dataset = std::string(name_in(dataset_kinds, test.workload.dataset.kind)),
        .burstiness = test.workload.arrival.burstiness};
    const BenchmarkResult& figures = result.statistics.result;
    const std::string json = with_verdict(vllm_json(figures, context), result, *test.salt);
    put_text(stdout, arguments.json ? json + "\n" : bench_report(result, text_block(figures)));
    // After the printed result, which a full disk does not take.
    if (arguments.records) write_records(*arguments.records, result.run.records);
    if (arguments.save) write_file(*arguments.save, json + "\n");
    if (result.run.stopped) return stopped;
    const bool none = figures.successful_requests.value_or(0) == 0;
    return none || result.validity.verdict == Verdict::unsound ? answer_is_no : done;
}

int capacity(const CapacityArguments& arguments) {
    CapacityReport report;
    report.limits = limits_of(arguments);
    if (arguments.save) check_writable(*arguments.save);
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
        sort(levels);
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
    put_text(stdout, arguments.json ? report.json() + "\n" : report.text());
    if (arguments.save) write_file(*arguments.save, report.json() + "\n");
    if (failure && failure->kind == FailureKind::cancelled) return stopped;
    if (failure && !arguments.sweep.empty()) complain("autotune: {}", failure->message);
    else if (failure) throw UsageError(failure->message);
    if (failure || report.verdict() == Verdict::unsound) return answer_is_no;
    if (!report.found || report.found->end == Capacity::End::found) return done;
    return report.found->end == Capacity::End::fails_at_lowest ? answer_is_no : undecided;
}

}  // namespace autotune
