// SPDX-License-Identifier: Apache-2.0
// The cost model is fitted to what a study has measured: three factors of the machine.
#include "predict/cost_belief.hpp"
#include "predict/study_fit.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

/// vLLM on an H100 under 800 requests of 512 + 128 tokens, 128 at a time.
std::string h100_study(const std::string& more = "",
                       const std::string& hardware = "hardware: h100-sxm\n") {
    return "study: h100\nmodel: Qwen/Qwen3-8B\n" + hardware +
           "engine: vllm\nworkloads: [{workload: w, use: random, input_tokens: 512, output_tokens: "
           "128, requests: 800, "
           "arrival: {concurrency: 128}}]\nobjective: {maximize: "
           "output_tokens_per_second}\nothers: default\n"
           "space: {max_num_seqs: {choice: [16, 64, 256, 1024]}, max_num_batched_tokens: {choice: "
           "[2048, 8192]}}\n"
           "evaluator: {deploy: {}}\nbudget: {trials: 12}\n" +
           more;
}

struct H100 {
    explicit H100(const std::string& text = h100_study())
        : setup(set_up(load_study(folder.write("study.yaml", text), Catalogue(search_spaces)),
                       folder.path() / "out")) {}
    TemporaryFolder folder;
    StudySetup setup;
    Configuration usual = setup.problem->space.default_configuration();
};

Trial measured_trial(std::uint64_t id, Configuration configuration, Metrics metrics) {
    Trial trial{id, std::move(configuration), "", 0, "", Measurement{std::move(metrics), {}}};
    trial.started_at = 1000;
    trial.told_at = 1166;
    return trial;
}

/// What vLLM 0.24 gave there on 2026-11-26 (Qwen3-8B, bfloat16, random weights).
Metrics h100_metrics() {
    return {{"output_tokens_per_second", {4937.5}},
            {"total_tokens_per_second", {24687.4}},
            {"requests_per_second", {38.574}},
            {"time_to_first_token_mean_seconds", {1.0288}},
            {"time_per_output_token_mean_seconds", {0.01662}},
            {"duration_seconds", {20.739}}};
}

double predicted_by(const PriorMean& belief, const Configuration& configuration) {
    return std::exp(belief.belief(configuration).log_value.value());
}

/// The figures of a machine that is faster by these factors, by the same estimate.
Metrics figures_of(const SimulateEvaluator& evaluator, const Configuration& configuration) {
    const SimulateEvaluator::Started started = evaluator.started(configuration);
    const SimulatedWorkload& workload = evaluator.workloads().front();
    const QuickEstimate estimate = quick_estimate(
        started.cost.value(), TrafficMeans::of(workload.traffic), workload.workload.arrival);
    Metrics result;
    for (const char* name :
         {"total_tokens_per_second", "output_tokens_per_second", "time_to_first_token_mean_seconds",
          "time_per_output_token_mean_seconds"})
        result[name] = {estimate.metric(name).value()};
    return result;
}

std::vector<Configuration> all_of(const StudySetup& setup) {
    std::vector<Configuration> result{setup.problem->space.default_configuration()};
    setup.problem->feasible.for_each([&](const Configuration& one) {
        if (one != result.front()) result.push_back(one);
        return true;
    });
    return result;
}

}  // namespace

TEST_CASE("speed fit: the factors of a machine are found again, and one wild figure moves little") {
    const H100 h100;
    const auto evaluator = simulated(h100.setup.file);
    const SpeedFactors truth{1.8, 0.9, 0.5};
    const auto faster = evaluator->with(truth);
    std::vector<Trial> trials;
    for (const Configuration& one : all_of(h100.setup))
        trials.push_back(measured_trial(trials.size(), one, figures_of(*faster, one)));
    const auto fitted_by = [&] {
        return factors_of(*evaluator, measured_speeds(trials, {}, {"w"}));
    };
    const SpeedFactors found = fitted_by();
    // Factors trade against each other, and their priors draw them towards 1: what they predict is
    // what counts.
    const auto fitted = evaluator->with(found);
    for (const Configuration& one : all_of(h100.setup))
        for (const auto& [name, metric] : figures_of(*faster, one))
            if (has(name, "tokens_per_second"))
                CHECK(figures_of(*fitted, one).at(name).value ==
                      Approx(metric.value).epsilon(0.05));
    INFO(found.text());
    // Small steps tell little of it: they read, and the host's seconds hide behind the device's.
    CHECK(found.compute > 1.1);
    CHECK(fitted_by() == found);

    Metrics wild = figures_of(*faster, trials.back().configuration);
    wild["total_tokens_per_second"].value *= 0.1;
    trials.back() = measured_trial(trials.back().id, trials.back().configuration, wild);
    CHECK(fitted_by().compute == Approx(found.compute).epsilon(0.2));

    CHECK(factors_of(*evaluator, {}) == SpeedFactors{});
    const SpeedFactors nothing_told =
        fitted_factors({[](const SpeedFactors&) { return std::vector<double>{}; }});
    CHECK(nothing_told.compute == Approx(1).epsilon(0.01));
}

TEST_CASE("speed fit: shares of a peak stay shares") {
    const EngineTraits traits = scaled(Catalogue(search_spaces).traits("vllm"), {100, 100, 2});
    CHECK(traits.bandwidth_efficiency == 1);
    for (const auto& [type, efficiency] : traits.compute_efficiency) CHECK(efficiency == 1);
    CHECK(traits.step_overhead_seconds == Approx(3.8e-3));
    CHECK(scaled(Catalogue(search_spaces).traits("vllm"), {1e-9, 1, 1}).compute("bf16") ==
          Approx(0.01));
}

TEST_CASE("speed fit: only what is believed teaches, and copies of a configuration count once") {
    const H100 h100;
    Metrics some = h100_metrics();
    std::vector<Trial> trials{measured_trial(0, h100.usual, some)};
    some["total_tokens_per_second"] = {24687.4 * 1.21};
    trials.push_back(measured_trial(1, h100.usual, some));
    const auto two = measured_speeds(trials, {}, {"w"});
    REQUIRE(two.size() == 1);
    CHECK(two.front().figures.at("w").at("total_tokens_per_second") == Approx(24687.4 * 1.1));
    trials.push_back(
        {2, all_of(h100.setup)[1], "", 0, "", Failure{FailureKind::out_of_memory, "no"}});
    trials.push_back(
        {3, all_of(h100.setup)[2], "", 0, "", Measurement{some, {Verdict::unsound, {}}}});
    trials.push_back({4, all_of(h100.setup)[3], "", 0, "",
                      Measurement{some, {Verdict::suspect, {{"given_up"}}}}});
    trials.push_back({5, all_of(h100.setup)[4], "report", 0, "", Measurement{some, {}}});
    CHECK(measured_speeds(trials, {}, {"w"}).size() == 1);

    Metrics of_two;
    for (const auto& [name, metric] : h100_metrics())
        of_two[name] = of_two[name + "@a"] = of_two[name + "@b"] = metric;
    const auto both =
        measured_speeds(std::vector<Trial>{measured_trial(0, h100.usual, of_two)}, {}, {"a", "b"});
    REQUIRE(both.size() == 1);
    CHECK(both.front().figures.size() == 2);
}

TEST_CASE("speed fit: after the first trial on an H100 the model has the right size") {
    const H100 h100;
    REQUIRE(h100.setup.beliefs.size() == 1);
    const PriorMean& shipped = h100.setup.beliefs[0];
    const std::vector<Trial> trials{measured_trial(0, h100.usual, h100_metrics())};
    const auto fitted = shipped.fitted_to(trials, {});
    REQUIRE(fitted);
    const double before = predicted_by(shipped, h100.usual);
    const double after = predicted_by(*fitted, h100.usual);
    INFO(fitted->name() << ": " << before << " before, " << after << " after, 4937 measured");
    CHECK(std::abs(before / 4937.5 - 1) < 0.25);
    CHECK(std::abs(after / 4937.5 - 1) < 0.15);
    CHECK(fitted->name().starts_with("the cost model fitted to 1 configuration (compute x "));
    CHECK(fitted->belief(h100.usual).margin == shipped.belief(h100.usual).margin);
    // A pure function: the same history, the same belief, from a fresh object too; a fitted one is
    // not fitted again.
    CHECK(shipped.fitted_to(trials, {}) == fitted);
    CHECK(predicted_by(*H100().setup.beliefs[0].fitted_to(trials, {}), h100.usual) == after);
    CHECK_FALSE(fitted->fitted_to(trials, {}));
    CHECK_FALSE(shipped.fitted_to({}, {}));
}

TEST_CASE(
    "speed fit: the search asks the fitted model, and goes on where it stopped as if it had not") {
    std::string text = h100_study();
    text.insert(text.find("1024]") + 5, ", default: 16");  // not what the model believes best
    const H100 h100(text);
    std::vector<Trial> trials;
    const auto faster = simulated(h100.setup.file)->with({2, 1, 0.4});
    const Bayesian kept(h100.setup.bayesian_options());
    Rng rng(1);
    std::size_t by_model = 0;
    for (std::uint64_t id = 0; id < 6; ++id) {
        const Answer answer = kept.ask(*h100.setup.problem, trials, rng);
        const Answer anew =
            Bayesian(h100.setup.bayesian_options()).ask(*h100.setup.problem, trials, rng);
        REQUIRE(std::holds_alternative<Proposal>(answer));
        CHECK(std::get<Proposal>(answer).configuration == std::get<Proposal>(anew).configuration);
        CHECK(std::get<Proposal>(answer).why == std::get<Proposal>(anew).why);
        by_model += has(std::get<Proposal>(answer).why, " by the cost model fitted to 1 ") ? 1 : 0;
        const Configuration& next = std::get<Proposal>(answer).configuration;
        trials.push_back(measured_trial(id, next, figures_of(*faster, next)));
    }
    CHECK(by_model >= 1);
}

TEST_CASE("what a trial takes is expected by the cost model, where it knows the chip") {
    const H100 h100;
    CHECK(expected_trial_seconds(h100.setup, h100.usual).value() > 50);
    const H100 nowhere(h100_study("", ""));
    CHECK(message_of<Error>([&] { (void)expected_trial_seconds(nowhere.setup, nowhere.usual); }) !=
          "");
}
