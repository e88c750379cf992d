// SPDX-License-Identifier: Apache-2.0
// The simulator as an evaluator: repeatable, noisy as asked, honest about failures, and said before
// anything runs where nothing would.
#include "support/test.hpp"

#include "predict/prediction.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/strategy.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string two_workloads =
    "  - {workload: short, use: random, input_tokens: 64, output_tokens: 8, requests: 40, weight: "
    "1}\n"
    "  - {workload: long, use: random, input_tokens: 2000, output_tokens: 8, requests: 40, weight: "
    "3}\n";

std::string study_text(const std::string& more = "", const std::string& simulate = "{}",
                       const std::string& workloads = two_workloads) {
    return "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads:\n" +
           workloads +
           "objective: {maximize: total_tokens_per_second}\nothers: default\nevaluator: "
           "{simulate: " +
           simulate + "}\n" + more;
}
const std::string small_space_yaml =
    "space:\n  max_num_seqs: {choice: [engine, 8, 64]}\n  kv_cache_dtype: {choice: [engine, "
    "fp8]}\n";

struct Ready {
    StudyFile file;
    std::unique_ptr<SimulateEvaluator> evaluator;
    std::unique_ptr<Problem> problem;

    explicit Ready(const std::string& text, const std::string& hardware = "")
        : Ready(folder().write("study.yaml", text), hardware) {}
    explicit Ready(const std::filesystem::path& study, const std::string& hardware = "")
        : file(load_study(study, Catalogue(search_spaces))) {
        evaluator = simulated(file, hardware);
        problem = std::make_unique<Problem>(
            SearchSpace(file.composition->parameters(), file.composition->constraints()),
            file.objective, file.decision);
    }
    [[nodiscard]] Outcome of(const Assignment& set, const EvaluationContext& context = {}) const {
        return evaluator->predicted(problem->space.completed(set), context);
    }
    [[nodiscard]] Failure failure(const Assignment& set) const {
        const Outcome outcome = of(set);
        REQUIRE(std::holds_alternative<Failure>(outcome));
        return std::get<Failure>(outcome);
    }

private:
    static const TemporaryFolder& folder() {
        static const TemporaryFolder place;
        return place;
    }
};

double metric_of(const Outcome& outcome, const std::string& name = "total_tokens_per_second") {
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    return std::get<Measurement>(outcome).metrics.at(name).value;
}

std::string refused(const std::string& text) {
    const TemporaryFolder folder;
    return message_of<Error>([&] {
        (void)set_up(load_study(folder.write("study.yaml", text), Catalogue(search_spaces)));
    });
}

}  // namespace

TEST_CASE(
    "simulate evaluator: the same question has the same answer, without noise, whatever the "
    "trial") {
    const Ready quiet(study_text(small_space_yaml));
    CHECK_FALSE(quiet.evaluator->replicates_inform());
    CHECK(quiet.of({}, {1, 2, "", {}}) == quiet.of({}, {3, 4, "", {}}));
    const Ready noisy(study_text(small_space_yaml, "{noise: 5%, step_noise: 2%}"));
    CHECK(noisy.evaluator->replicates_inform());
    CHECK(noisy.of({}, {1, 2, "", {}}) == noisy.of({}, {1, 2, "", {}}));
    CHECK_FALSE(noisy.of({}, {1, 2, "", {}}) == noisy.of({}, {2, 2, "", {}}));
    CHECK_FALSE(noisy.of({}, {1, 2, "", {}}) == noisy.of({}, {1, 3, "", {}}));
    const Ready calm(study_text("", "{}",
                                "  - {workload: calm, use: random, input_tokens: 64, "
                                "output_tokens: 32, requests: 16, arrival: "
                                "{concurrency: 4}}\n"));
    const Outcome outcome = calm.of({});
    for (const Finding& finding : std::get<Measurement>(outcome).validity.findings)
        UNSCOPED_INFO(finding.id << ": " << finding.left);
    CHECK(std::get<Measurement>(outcome).validity.verdict == Verdict::sound);
    CHECK(metric_of(outcome, "success_ratio") == 1);
}

TEST_CASE("simulate evaluator: starts of the server differ as much as was asked") {
    const Ready noisy(study_text(
        "", "{noise: 4%}",
        "  - {workload: one, use: random, input_tokens: 16, output_tokens: 20, requests: 1}\n"));
    double sum = 0;
    double squares = 0;
    constexpr int n = 500;
    for (int i = 0; i < n; ++i) {
        const double seconds = metric_of(noisy.of({}, {std::uint64_t(i), 7, "", {}}),
                                         "time_per_output_token_mean_seconds");
        sum += std::log(seconds);
        squares += std::log(seconds) * std::log(seconds);
    }
    const double spread = std::sqrt(squares / n - sum / n * sum / n);
    CHECK(spread == Approx(0.04).epsilon(0.12));  // its own standard error: 3 %
}

TEST_CASE(
    "simulate evaluator: workloads are combined by weight, asked for one by one, and reported "
    "without counting") {
    const Ready ready(study_text(
        small_space_yaml +
        "report_workloads:\n  - {workload: told, use: random, input_tokens: 500, output_tokens: 8, "
        "requests: 10}\n"));
    const double both = metric_of(ready.of({}));
    const double brief = metric_of(ready.of({}, {0, 0, "short", {}}));
    const double lengthy = metric_of(ready.of({}, {0, 0, "long", {}}));
    CHECK(both > std::min(brief, lengthy));
    CHECK(both < std::max(brief, lengthy));
    CHECK(std::abs(both - lengthy) < std::abs(both - brief));  // it weighs three times as much
    CHECK(metric_of(ready.of({}, {0, 0, "told", {}})) > 0);
    CHECK(has(message_of<UsageError>([&] {
                  (void)ready.of({}, {0, 0, "nowhere", {}});
              }),
              "nowhere"));
    REQUIRE(ready.evaluator->workloads().size() == 3);
}

TEST_CASE("simulate evaluator: failures are what a trial would be, in words for people") {
    const Ready ready(study_text(
        "space:\n  gpu_memory_utilization: {choice: [engine, 0.5]}\n  quantization: {choice: "
        "[none, fp8], "
        "checkpoints: {fp8: Qwen/Qwen3-14B}}\n  max_model_len: {choice: [engine, 1024]}\n"
        "  kv_cache_dtype: {choice: [engine, fp8_e5m2]}\n  attention_backend: {choice: [engine, "
        "FLEX_ATTENTION]}\n"
        "  kv_cache_memory_bytes: {choice: [engine, 1073741824]}\n  speculative_method: {choice: "
        "[none, suffix]}\n"));
    const auto holds = [](const Failure& failure, FailureKind kind, const std::string& text) {
        INFO(failure.message);
        CHECK(name_in(failure_kinds, failure.kind) == name_in(failure_kinds, kind));
        CHECK(has(failure.message, text));
    };
    CHECK(std::holds_alternative<Measurement>(ready.of({})));
    holds(ready.failure({{"kv_cache_memory_bytes", std::int64_t{1} << 30}}),
          FailureKind::out_of_memory, "one request of 40960 tokens does not fit the cache of 7");
    holds(ready.failure({{"kv_cache_memory_bytes", std::int64_t{1} << 30}}),
          FailureKind::out_of_memory, "; predicted, the engine would say: ValueError: To serve");
    holds(ready.failure({{"kv_cache_dtype", "fp8_e5m2"}, {"attention_backend", "FLEX_ATTENTION"}}),
          FailureKind::unsupported, "FLEX_ATTENTION has no kernels for a cache of fp8_e5m2");
    holds(ready.failure({{"speculative_method", "suffix"}}), FailureKind::unsupported,
          "it cannot be simulated: how often guesses of 'suffix' are right is not known");
    // Requests longer than the context: the server says so to each.
    holds(ready.failure({{"max_model_len", std::int64_t{1024}}}), FailureKind::load_test_failed,
          "no request succeeded: ");
}

TEST_CASE("simulate evaluator: a parallel prediction is the serial one") {
    const Ready ready(search_spaces / "studies/simulated-h100.yaml");
    Rng rng(3);
    std::vector<Configuration> configurations;
    for (int i = 0; i < 20; ++i) configurations.push_back(ready.problem->feasible.sample(rng));
    const auto serial = predict(*ready.evaluator, configurations, 1);
    const auto parallel = predict(*ready.evaluator, configurations, 2);
    REQUIRE(serial.size() == 20);
    std::size_t served = 0;
    for (std::size_t i = 0; i < serial.size(); ++i) {
        CHECK(serial[i].configuration == configurations[i]);
        CHECK(serial[i].outcome == parallel[i].outcome);
        served += std::holds_alternative<Measurement>(serial[i].outcome) ? 1 : 0;
    }
    CHECK(served >= 5);
    const auto best = ranked(serial, ready.file.objective);
    REQUIRE_FALSE(best.empty());
    for (std::size_t i = 1; i < best.size(); ++i)
        CHECK(metric_of(best[i - 1]->outcome) >= metric_of(best[i]->outcome));
    for (const PredictedTrial* prediction : best) CHECK(passes(*prediction, ready.file.objective));
}

TEST_CASE(
    "simulate evaluator: a search finds no worse than the default, and a better chip gives at "
    "least as much") {
    const PredictionSearch search{.configurations = 6, .climbers = 1, .most = 12};
    const auto best_on = [&](const std::string& hardware) {
        const Ready ready(study_text(small_space_yaml), hardware);
        const auto found = search_predictions(*ready.evaluator, *ready.problem, search);
        CHECK(found.size() <= 12);
        CHECK(found.front().configuration == ready.problem->space.default_configuration());
        const double best = metric_of(ranked(found, ready.file.objective).front()->outcome);
        CHECK(best >= metric_of(found.front().outcome));
        return best;
    };
    CHECK(best_on("h200-sxm") >= best_on("") * 0.999);
    CHECK(best_on("") > best_on("a100-sxm-80gb"));
}

TEST_CASE("simulate evaluator: what cannot be is said before anything runs") {
    CHECK(refused(study_text(small_space_yaml)).empty());
    const auto replaced = [](const std::string& what, const std::string& with) {
        std::string text = study_text(small_space_yaml);
        return text.replace(text.find(what), what.size(), with);
    };
    const std::string hardware = refused(replaced("h100-sxm", "h100-smx"));
    CHECK(has(hardware, "h100-smx"));
    CHECK(has(hardware, "h100-sxm"));
    const std::string model = refused(replaced("Qwen/Qwen3-8B", "Qwen/Qwen3-8"));
    CHECK(has(model, "Qwen/Qwen3-8B"));
    CHECK_FALSE(refused(replaced("simulate: {}", "simulate: {noise: -1%}")).empty());
    CHECK(refused(study_text(small_space_yaml + "arguments: [--no-such-flag]\n"))
              .empty());  // it may have no part in speed

    // 61 GiB of weights for 22 GiB of memory.
    std::string text = replaced("Qwen/Qwen3-8B", "Qwen/Qwen3-32B");
    text.replace(text.find("h100-sxm"), 8, "l4");
    const std::string why = refused(text);
    INFO(why);
    CHECK(has(why,
              "study.yaml: no configuration of this study would start; the default: weights "
              "and libraries need 6"));
    CHECK(has(
        why, "GiB, the device has 22.49; predicted, the engine would say: torch.OutOfMemoryError"));
    CHECK(has(
        why, "where the least memory is missing:\n  device                           22.49 GiB\n"));
    CHECK(has(why, "  weights                          61."));
    CHECK(has(why, "  missing "));
}
