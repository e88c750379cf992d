// SPDX-License-Identifier: Apache-2.0
// Configurations whose requests have other lengths than the default's: what of their figures
// counts.
#include "servetune/recommendation.hpp"
#include "study/verdict.hpp"
#include "support/test.hpp"

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace styles() {
    Parameter bits = Parameter::choice("bits", {"none", "fp8"});
    bits.concept_name = "quantization";
    return SearchSpace({Parameter::choice("style", {"plain", "other", "third"}), std::move(bits)});
}

/// A load test of 400 requests. `spread`: of the answers' lengths, as a share of their mean; the
/// prompts have one length.
Metrics work_of(double requests_per_second, double input, double output, double spread = 0,
                const std::string& at = "") {
    constexpr double n = 400;
    return {{"requests_per_second" + at, {requests_per_second}},
            {"output_tokens_per_second" + at, {requests_per_second * output}},
            {"total_tokens_per_second" + at, {requests_per_second * (input + output)}},
            {"latency_mean_seconds" + at, {4 / requests_per_second}},
            {"time_to_first_token_p95_seconds" + at, {0.4 / requests_per_second}},
            {"successful_requests" + at, {n}},
            {"input_tokens" + at, {n * input, 0}},
            {"output_tokens" + at, {n * output, std::sqrt(n) * spread * output}}};
}

Trial styled(std::uint64_t id, Assignment changes, Metrics metrics) {
    Trial trial{id, styles().completed(changes)};
    trial.outcome = Measurement{std::move(metrics)};
    return trial;
}

/// Each style twice, so that its noise is measured.
std::vector<Trial> twice(const Metrics& plain, const Metrics& other,
                         const Assignment& changes = {{"style", "other"}}) {
    return {styled(0, {}, plain), styled(1, changes, other), styled(2, {}, plain),
            styled(3, changes, other)};
}

Recommendation concluded_of_work(const std::vector<Trial>& history, const Objective& objective) {
    Problem problem(styles(), objective, {});
    problem.replicates_inform = false;  // as of a table: no rounds after a search
    return recommend(problem, history);
}

const Objective most_requests{"requests_per_second"};

}  // namespace

TEST_CASE("other work: answers of half the length are no gain in requests a second, nor in latency",
          "[decision]") {
    const auto history = twice(work_of(10, 20, 32), work_of(18.3, 20, 16));
    for (const Objective& objective :
         {most_requests, Objective("latency_mean_seconds", Direction::minimize)}) {
        const Recommendation result = concluded_of_work(history, objective);
        CHECK(result.conclusion == Conclusion::inconclusive);
        CHECK(result.doubt == InconclusiveReason::length_mismatch);
        CHECK(result.unequal == history[1].configuration);
        CHECK(result.keep_default);
        const Standings standings(history, objective, {}, history.front().configuration);
        const Standing& other = *standings.find(history[1].configuration);
        CHECK(other.other_work == std::vector<LengthMismatch>{{"", true, 16, 32}});
        CHECK(other.other_work.front().text() == "16 output tokens a request, 32 with the default");
        CHECK(other.leading().equal_work == 0.5);
        CHECK(other.passes());
    }
    CHECK(Standings(history, most_requests, {}, history.front().configuration)
              .find(history[1].configuration)
              ->estimate()
              .mean == Approx(18.3 / 2));
}

TEST_CASE("other work: a gain counts as far as it is one in requests and in tokens alike",
          "[decision]") {
    // Twice as many tokens in all, with answers that are a tenth shorter: 1.8 times is left of the
    // requests.
    const Recommendation shorter = concluded_of_work(
        twice(work_of(10, 20, 320, 0.5), work_of(20, 20, 270, 0.5)), most_requests);
    CHECK(shorter.conclusion == Conclusion::recommended);
    CHECK(shorter.gain.value == Approx(2 * 270.0 / 320 - 1));
    // Longer answers have a larger share of the cheap tokens: what is left of 1.5 times the tokens
    // is 0.75 in requests.
    const Recommendation longer = concluded_of_work(
        twice(work_of(10, 20, 100), work_of(7.5, 20, 200)), {"output_tokens_per_second"});
    CHECK(longer.doubt == InconclusiveReason::length_mismatch);
    CHECK(longer.keep_default);
    // Shorter answers beside long prompts are more tokens a second in all.
    const Recommendation total = concluded_of_work(
        twice(work_of(10, 1000, 200), work_of(12, 1000, 100)), {"total_tokens_per_second"});
    CHECK(total.doubt == InconclusiveReason::length_mismatch);
    // Fewer tokens of the prompt (a cut context) are less work too.
    const Recommendation cut = concluded_of_work(
        twice(work_of(10, 1000, 100), work_of(15, 500, 100)), {"total_tokens_per_second"});
    CHECK(cut.keep_default);
    const std::vector<Trial> cut_prompts = twice(work_of(10, 1000, 100), work_of(15, 500, 100));
    CHECK(Standings(cut_prompts, most_requests, {}, cut_prompts.front().configuration)
              .all()[1]
              .other_work.front()
              .output == false);
}

TEST_CASE(
    "other work: a goal or a limit that does not say what equal work gives cannot be won by it",
    "[decision]") {
    const auto history = twice(work_of(10, 20, 32), work_of(18.3, 20, 16));
    const Objective first_token("time_to_first_token_p95_seconds", Direction::minimize);
    CHECK(concluded_of_work(history, first_token).doubt == InconclusiveReason::length_mismatch);
    CHECK(Standings(history, first_token, {}, history.front().configuration).all()[1].refused ==
          "other work than the default: 16 output tokens a request, 32 with the default");
    // 30 requests a second are a gain with equal work too (15 for 10), but the limit is kept by
    // shorter answers.
    Objective limited("requests_per_second", Direction::maximize,
                      {Limit::parse("latency_mean_seconds <= 0.5")});
    const auto fast = twice(work_of(10, 20, 32), work_of(30, 20, 16));
    CHECK(concluded_of_work(fast, limited).doubt == InconclusiveReason::length_mismatch);
    CHECK(concluded_of_work(fast, most_requests).conclusion == Conclusion::recommended);
    // A metric that has nothing to do with lengths is judged as ever.
    auto own = history;
    for (Trial& trial : own) {
        Measurement measurement = *trial.measurement();
        measurement.metrics["accuracy"] = {trial.id % 2 == 1 ? 0.9 : 0.6};
        trial.outcome = measurement;
    }
    CHECK(concluded_of_work(own, {"accuracy"}).conclusion == Conclusion::recommended);
}

TEST_CASE("other work: within the noise of natural lengths, or without counts, nothing changes",
          "[decision]") {
    // 400 answers that spread as much as their mean: 5 % each, 7 % together. 1.96 of these are 14
    // %.
    const auto natural = twice(work_of(10, 20, 320, 1), work_of(12, 20, 300, 1));
    CHECK(concluded_of_work(natural, most_requests).gain.value == Approx(0.2));
    CHECK(Standings(natural, most_requests, {}, natural.front().configuration)
              .all()[1]
              .other_work.empty());
    // Of fixed lengths 0.5 % is what the audit allows.
    CHECK(concluded_of_work(twice(work_of(10, 20, 320), work_of(12, 20, 319)), most_requests)
              .gain.value == Approx(0.2));
    CHECK(concluded_of_work(twice(work_of(10, 20, 320), work_of(12, 20, 316)), most_requests)
              .gain.value == Approx(1.2 * 316 / 320 - 1));
    // A few output tokens beside long prompts may differ by 5 %.
    CHECK(concluded_of_work(twice(work_of(10, 1000, 20), work_of(12, 1000, 19.2)), most_requests)
              .gain.value == Approx(0.2));
    // Totals of others, without an error, are taken as lengths that spread as much as their mean.
    auto foreign = twice(work_of(10, 20, 320), work_of(12, 20, 300));
    for (Trial& trial : foreign) {
        Measurement measurement = *trial.measurement();
        measurement.metrics["output_tokens"].standard_error.reset();
        trial.outcome = measurement;
    }
    CHECK(concluded_of_work(foreign, most_requests).gain.value == Approx(0.2));
    for (const char* name : {"output_tokens", "successful_requests"}) {
        auto without = twice(work_of(10, 20, 32), work_of(18.3, 20, 16));
        for (Trial& trial : without) {
            Measurement measurement = *trial.measurement();
            measurement.metrics.erase(name);
            trial.outcome = measurement;
        }
        CHECK(concluded_of_work(without, most_requests).gain.value == Approx(0.83));
    }
}

TEST_CASE(
    "other work: of several workloads the one that differs most counts, of a workload's own goal "
    "that one",
    "[decision]") {
    const auto both = [](double chat_rate, double chat_output) {
        Metrics metrics = work_of(10, 20, 32, 0, "@code");
        metrics.merge(work_of(chat_rate, 20, chat_output, 0, "@chat"));
        metrics["requests_per_second"] = {std::sqrt(10 * chat_rate)};
        return metrics;
    };
    const auto history = twice(both(10, 32), both(20, 16));
    CHECK(concluded_of_work(history, most_requests).doubt == InconclusiveReason::length_mismatch);
    CHECK(Standings(history, most_requests, {}, history.front().configuration)
              .all()[1]
              .other_work.front()
              .text() == "16 output tokens a request on chat, 32 with the default");
    CHECK(concluded_of_work(history, {"requests_per_second@chat"}).doubt ==
          InconclusiveReason::length_mismatch);
    const auto faster = twice(both(10, 32), both(20, 32));
    CHECK(concluded_of_work(faster, most_requests).conclusion == Conclusion::recommended);
}

TEST_CASE("other work: another configuration with a gain of its own is recommended beside it",
          "[decision]") {
    auto history = twice(work_of(10, 20, 32), work_of(18.3, 20, 16));
    for (const std::uint64_t id : {4U, 5U})
        history.push_back(styled(id, {{"style", "third"}}, work_of(11, 20, 32)));
    const Recommendation result = concluded_of_work(history, most_requests);
    CHECK(result.conclusion == Conclusion::recommended);
    CHECK(result.recommended == history[4].configuration);
}

TEST_CASE(
    "other work: a quantization whose answers have another length and were not compared is not "
    "recommended",
    "[decision]") {
    const Assignment fp8{{"bits", "fp8"}};
    const auto history = twice(work_of(10, 20, 320), work_of(20, 20, 270), fp8);
    const Recommendation result = concluded_of_work(history, most_requests);
    CHECK(result.doubt == InconclusiveReason::length_mismatch);
    CHECK(result.unequal == history[1].configuration);
    CHECK(unchecked_answers(
              styles(),
              Standings(history, most_requests, {}, history.front().configuration).all()[1]) ==
          std::vector<std::string_view>{"bits"});
    auto compared = history;
    for (Trial& trial : compared) {
        Measurement measurement = *trial.measurement();
        measurement.metrics["quality_drop"] = {0.01};
        trial.outcome = measurement;
    }
    CHECK(concluded_of_work(compared, most_requests).conclusion == Conclusion::recommended);
    CHECK(concluded_of_work(twice(work_of(10, 20, 320), work_of(20, 20, 320), fp8), most_requests)
              .conclusion == Conclusion::recommended);
}
