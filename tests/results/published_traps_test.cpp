// SPDX-License-Identifier: Apache-2.0
// Cases in which published tuning studies concluded something that their numbers do not say. The
// figures are theirs (GPUStack's performance lab, 2025 and 2026); what ours concludes from them
// must stay right.
#include "servetune/audit.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/search_space.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string printed_rate = "total_tokens_per_second";

/// One printed block: a setting and its figure, measured in this order.
using PrintedRows = std::vector<std::pair<std::string, double>>;

Recommendation concluded_from(const PrintedRows& rows, const Decision& decision = {}) {
    std::vector<Value> settings;
    for (const auto& [setting, rate] : rows)
        if (!contains(settings, Value(setting))) settings.emplace_back(setting);
    Problem problem(SearchSpace({Parameter::choice("setting", settings)}), {printed_rate},
                    decision);
    problem.replicates_inform = false;
    std::vector<Trial> history;
    for (const auto& [setting, rate] : rows) {
        Trial trial{history.size(), problem.space.completed({{"setting", Value(setting)}})};
        trial.outcome = Measurement{{{printed_rate, {rate}}}};
        history.push_back(std::move(trial));
    }
    return recommend(problem, history);
}

}  // namespace

TEST_CASE("traps: the fastest result is that of the requests that survived") {
    // Qwen3.5-9B with speculation: 15059.89 tokens a second, 514 of 1000 requests answered; 11532
    // without.
    BenchmarkResult survivors;
    survivors.successful_requests = 514;
    survivors.total_tokens_per_second = 15059.89;
    AuditContext context;
    context.requested_requests = 1000;
    const Validity validity = audit(survivors, context);
    CHECK(validity.verdict == Verdict::unsound);
    REQUIRE(validity.findings.size() == 1);
    CHECK(validity.findings.front().id == "complete");

    Problem problem(SearchSpace({Parameter::choice("speculation", {"off", "on"})}), {printed_rate},
                    {});
    problem.replicates_inform = false;
    std::vector<Trial> history{{0, problem.space.default_configuration()},
                               {1, problem.space.completed({{"speculation", "on"}})}};
    history[0].outcome = Measurement{{{printed_rate, {11532}}}};
    history[1].outcome = Measurement{{{printed_rate, {15059.89}}}, validity};
    CHECK(recommend(problem, history).conclusion == Conclusion::keep_default);
}

TEST_CASE("traps: the same command, printed twice, differs by 16 %") {
    // GLM-5.2 on H200: one command at 7011.17 and at 5881.79. The gain of what was then chosen was
    // stated against the lower one.
    const Recommendation large =
        concluded_from({{"usual", 5881.79}, {"fraction 0.85", 13786}, {"usual", 7011.17}});
    CHECK(large.conclusion == Conclusion::recommended);
    CHECK(large.gain.value ==
          Approx(13786 / 6446.48 - 1).epsilon(0.02));  // not 134 % over the lucky one
    CHECK(large.gain.low <
          13786 / 7011.17 - 1);  // and what the two runs say of noise is in the interval
    // A candidate between the two is no gain, whatever the first run of the default says.
    CHECK(concluded_from({{"usual", 5881.79}, {"other", 6800}, {"usual", 7011.17}}).keep_default);
}

TEST_CASE("traps: a winner within the noise is not a winner") {
    // max-num-seqs of Qwen3.5-9B: 11464, 11532 and 11388, decided for the largest.
    CHECK(concluded_from({{"256", 11464}, {"512", 11532}, {"1024", 11388}}).keep_default);
}

TEST_CASE("traps: at a fixed rate every configuration looks alike") {
    // 624.09 and 624.13 tokens a second at one request a second: the load decides, not the engine.
    CHECK(concluded_from({{"usual", 624.09}, {"other", 624.13}}).keep_default);
    BenchmarkResult as_it_came;
    as_it_came.successful_requests = 100;
    as_it_came.requests_per_second = 0.997;
    as_it_came.duration_seconds = 100.3;
    as_it_came.latency = {1.1, 1.1, 1.2, 1.2, 1.3};
    AuditContext context;
    context.requested_rate_per_second = 1;
    const Validity validity = audit(as_it_came, context);
    REQUIRE_FALSE(validity.findings.empty());
    CHECK(validity.findings.front().id == "load_bound");
}

TEST_CASE("traps: a stream that came in one piece has no time per token") {
    // A mean TPOT of 0.12 ms of a model whose weights alone take 4.8 ms to read, behind a first
    // token that was held back.
    BenchmarkResult collapsed;
    collapsed.successful_requests = 1000;
    collapsed.output_tokens = 128'000;
    collapsed.time_to_first_token = {0.3, 0.3, 0.4, 0.4, 0.5};
    collapsed.time_per_output_token = {0.00012, 0.0001, 0.0002, 0.0002, 0.0003};
    AuditContext context;
    context.equal_output_lengths = true;
    ModelSpec model{"org/Model-8B"};
    model.parameters_active = 8e9;
    model.weights = {{"bf16", {16e9, 16e9, "bf16"}}};
    context.served = ServedModel{model, "bf16"};
    HardwareSpec hardware{"chip"};
    hardware.memory_bandwidth_bytes_per_second = 3.35e12;
    context.hardware = hardware;
    context.command_is_known = true;
    const Validity validity = audit(collapsed, context);
    CHECK(validity.verdict == Verdict::unsound);
    CHECK(
        any_of(validity.findings, [](const Finding& finding) { return finding.id == "physics"; }));
}
