// SPDX-License-Identifier: Apache-2.0
// simengine against its own plan: does it keep its times under 1000 streams, and does a load test
// of it measure what the simulator predicts? Server and client have a core each.
// benchmarks/README.md says what the columns mean.
#include "support/simengine.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/detail/predict/serving.hpp"
#include "servetune/error.hpp"
#include "servetune/load_test.hpp"

#include <sched.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace servetune::benchmark {
namespace {

const std::string model = "Qwen/Qwen3-14B";

void pin(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(core), &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0)
        throw UsageError("cannot run on core " + std::to_string(core) + " only");
}

/// The server on core 0, this process on core 1 from now on.
class Pinned {
public:
    explicit Pinned(const std::vector<std::string>& words)
        : engine_((pin(0), SIMENGINE_PROGRAM), words) {
        pin(1);
        if (!engine_.wait_until_ready(60))
            throw UsageError("simengine does not start: " + engine_.process().err());
    }
    test::SimEngine& operator*() { return engine_; }
    test::SimEngine* operator->() { return &engine_; }

private:
    test::SimEngine engine_;
};

CostModel cost_of(const std::vector<std::string>& flags) {
    const Catalogue catalogue{SERVETUNE_SOURCE "/search_spaces"};
    const std::vector<Engine> engines = catalogue.engines();
    const auto vllm = std::find_if(engines.begin(), engines.end(),
                                   [](const Engine& engine) { return engine.name == "vllm"; });
    const ServingReader reader(*vllm, catalogue.traits("vllm"), catalogue.all_models(),
                               catalogue.hardware("h100-sxm"));
    Command command{{"vllm", "serve", model}};
    command.argv.insert(command.argv.end(), flags.begin(), flags.end());
    const Serving serving = reader.read(command);
    return {serving.target, serving.settings};
}

std::vector<std::string> words_of(std::vector<std::string> own,
                                  const std::vector<std::string>& flags) {
    own.insert(own.end(), {"--start-scale", "1000", "vllm", "serve", model, "--port", "0"});
    own.insert(own.end(), flags.begin(), flags.end());
    return own;
}

double number_of(const test::HttpAnswer& status, const char* key) {
    return nlohmann::json::parse(status.body).at(key).get<double>();
}

/// As many streams as asked for, the clock scaled so that they make so many events a second.
void capacity(std::size_t streams, double wanted_per_second) {
    const std::vector<std::string> flags{"--max-num-seqs=" + std::to_string(streams),
                                         "--api-server-count=8"};
    std::vector<PlannedRequest> plan(streams);
    constexpr std::int64_t tokens = 240;
    for (std::size_t i = 0; i < plan.size(); ++i) {
        plan[i].text = "r" + std::to_string(i);
        for (int word = 1; word < 24; ++word) plan[i].text += " word";
        plan[i].input_tokens = 32;
        plan[i].output_tokens = tokens;
    }
    const SimulatedRun predicted =
        simulate(cost_of(flags), SimulatedTraffic(plan, {.kind = Arrival::Kind::all_at_once}));
    const double events = static_cast<double>(streams) * static_cast<double>(tokens);
    const double scale = wanted_per_second / (events / predicted.duration_seconds);
    Pinned server(words_of({"--time-scale", std::to_string(scale)}, flags));
    const auto before = server->get("/simengine");
    const LoadRun run = generate_load({server->url(), model}, plan,
                                      {.kind = Arrival::Kind::all_at_once}, {.ignore_eos = true});
    const auto after = server->get("/simengine");
    const auto failed =
        std::count_if(run.records.begin(), run.records.end(),
                      [](const RequestRecord& record) { return !record.succeeded(); });
    const double used =
        number_of(after, "processor_seconds") - number_of(before, "processor_seconds");
    std::printf("| %zu | %.2f | %.0f | %.0f | %.3f | %.3f | %.1f | %.1f | %ld |\n", streams, scale,
                wanted_per_second, events / run.duration_seconds,
                number_of(after, "late_p50_seconds") * 1e3,
                number_of(after, "late_p99_seconds") * 1e3, 100 * used / run.duration_seconds,
                used / events * 1e6, static_cast<long>(failed));
    std::fflush(stdout);
}

struct Figures {
    double first_token = 0, gap = 0, tokens_per_second = 0;
};

Figures figures_of(const std::vector<RequestRecord>& records, double seconds) {
    double first = 0, gaps = 0, tokens = 0, answered = 0, count = 0;
    for (const RequestRecord& record : records) {
        if (!record.succeeded()) continue;
        answered += 1;
        first += *record.first_token - record.sent;
        for (const float gap : record.gaps) gaps += static_cast<double>(gap);
        count += static_cast<double>(record.gaps.size());
        tokens += static_cast<double>(*record.output_tokens);
    }
    return {first / answered, gaps / count, tokens / seconds};
}

/// A load test of simengine at scale 1 beside what `simulate` says of the very same requests.
void agreement(std::int64_t streams, std::int64_t input, std::int64_t output, bool staggered) {
    const std::vector<std::string> flags{"--max-num-seqs=256"};
    Pinned server(words_of({}, flags));
    LoadTest test;
    test.endpoint = {server->url(), model};
    test.workload.dataset = {.kind = Dataset::Kind::random,
                             .input_tokens = input,
                             .output_tokens = output,
                             .range_ratio = staggered ? 0.5 : 0};
    test.workload.requests = streams * 4;
    test.workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = streams};
    test.workload.ignore_eos = true;
    test.salt = 7;
    const LoadTestResult measured = run_load_test(test);
    const SimulatedRun predicted =
        simulate(cost_of(flags), SimulatedTraffic(measured.plan.requests, test.workload.arrival));
    const Figures is = figures_of(measured.run.records, measured.run.duration_seconds);
    const Figures said = figures_of(predicted.records, predicted.duration_seconds);
    const auto within = [](double a, double b) {
        return std::abs(a - b) <= std::max(0.03 * b, 0.002);
    };
    const bool agrees = within(is.first_token, said.first_token) && within(is.gap, said.gap) &&
                        std::abs(is.tokens_per_second / said.tokens_per_second - 1) <= 0.03;
    const std::string verdict(name_in(verdicts, measured.validity.verdict));
    std::printf(
        "| %ld, %ld -> %ld%s | %.1f / %.1f | %.3f / %.3f | %.0f / %.0f | %.3f / %.3f | %s | %s |\n",
        static_cast<long>(streams), static_cast<long>(input), static_cast<long>(output),
        staggered ? " +-50 %" : "", is.first_token * 1e3, said.first_token * 1e3, is.gap * 1e3,
        said.gap * 1e3, is.tokens_per_second, said.tokens_per_second,
        number_of(server->get("/simengine"), "late_p50_seconds") * 1e3,
        number_of(server->get("/simengine"), "late_p99_seconds") * 1e3, agrees ? "yes" : "no",
        verdict.c_str());
    for (const Finding& finding : measured.validity.findings)
        std::printf("  %s: %s\n", finding.id.c_str(), finding.cause.c_str());
    std::fflush(stdout);
}

int run(int count, char** words) {
    const std::string only = count > 1 ? words[1] : "";
    if (only.empty() || only == "capacity") {
        std::printf(
            "| streams | time scale | events/s planned | events/s | late p50 ms | late p99 ms | "
            "CPU %% of a core | us/event | failed |\n");
        std::printf("|---|---|---|---|---|---|---|---|---|\n");
        for (const double rate : {10'000.0, 20'000.0, 30'000.0, 40'000.0}) capacity(1000, rate);
    }
    if (only.empty() || only == "agreement") {
        std::printf(
            "\n| streams, tokens | TTFT ms is / said | ITL ms is / said | tokens/s is / said | "
            "late p50 / p99 ms | agrees | audit |\n");
        std::printf("|---|---|---|---|---|---|---|\n");
        agreement(64, 256, 96, false);
        agreement(64, 512, 128, true);
        agreement(16, 256, 128, true);
    }
    return 0;
}

}  // namespace
}  // namespace servetune::benchmark

int main(int count, char** words) {
    try {
        return servetune::benchmark::run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "simengine_benchmark: %s\n", error.what());
        return 1;
    }
}
