// SPDX-License-Identifier: Apache-2.0
// Configurations that a person or a program suggests: what the optimizer makes of them, and how
// they are written.
#include "servetune/bayesian.hpp"
#include "servetune/study_file.hpp"
#include "study_file/readers.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"
#include "support/two_goal_task.hpp"

#include <memory>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<Trial> searched_with(const Problem& problem, std::vector<Configuration> suggestions,
                                 std::size_t trials) {
    Bayesian::Options options;
    options.trials = trials;
    options.suggestions =
        std::make_shared<const std::vector<Configuration>>(std::move(suggestions));
    return TuningTask().searched(problem, Bayesian(options), trials, 1);
}

}  // namespace

TEST_CASE("suggestions: a good one is tried in the start, and the rest of the start is as it was") {
    const Problem problem(TuningTask::space(), {metric}, {});
    const TuningTask task;
    std::optional<Configuration> best;
    problem.feasible.for_each([&](const Configuration& one) {
        if (!TuningTask::fails(one) && (!best || task.truth(one) > task.truth(*best))) best = one;
        return true;
    });
    REQUIRE(best);
    const auto history = searched_with(problem, {*best}, 12);
    const auto found =
        find_if(history, [&](const Trial& trial) { return trial.configuration == *best; });
    REQUIRE(found != history.end());
    CHECK(found->id == 3);  // the first trial that is not more than three of ten
    CHECK(found->why == "suggested");
    CHECK(history[1].configuration == searched_with(problem, {}, 12)[1].configuration);
}

TEST_CASE("suggestions: at most three trials of ten follow them, however many there are") {
    const Problem problem(TuningTask::space(), {metric}, {});
    std::vector<Configuration> many;
    Rng rng(7);
    while (many.size() < 100) many.push_back(problem.feasible.sample(rng));
    const auto history = searched_with(problem, many, 30);
    std::size_t tried = 0;
    for (std::size_t i = 0; i < history.size(); ++i) {
        if (history[i].why.starts_with("suggested")) ++tried;
        CHECK(10 * tried <= 3 * (i + 1));
    }
    CHECK(tried >= 6);
}

TEST_CASE("suggestions: what is believed to be far worse is not tried, what may be the best is") {
    const Problem problem(SearchSpace({Parameter::integer("n", 1, 64)}), {metric}, {});
    const auto of = [&](std::int64_t n) { return problem.space.completed({{"n", n}}); };
    std::vector<Trial> history;
    for (const std::int64_t n : {1, 2, 4, 5, 8, 12, 16, 20, 24, 32})
        history.push_back(
            {history.size(), of(n), "", 0, "", Measurement{{{metric, {100.0 * double(n)}}}}});
    Bayesian::Options options;
    options.trials = 20;
    const auto list = std::make_shared<std::vector<Configuration>>();
    options.suggestions = list;
    const Bayesian strategy(options);
    const auto ask = [&] {
        Rng rng(1);
        return std::get<Proposal>(strategy.ask(problem, history, rng));
    };
    const Proposal without = ask();
    list->push_back(of(3));
    CHECK(ask().configuration == without.configuration);
    list->push_back(of(40));
    CHECK(ask().configuration == of(40));
    CHECK(ask().why.starts_with("suggested: ln gain "));
}

TEST_CASE(
    "suggestions: with several goals what is worse in the leading one is tried, for it may be on "
    "the front") {
    const Problem problem(SearchSpace({Parameter::integer("n", 1, 64)}), TwoGoalTask::objective(),
                          {});
    const auto of = [&](std::int64_t n) { return problem.space.completed({{"n", n}}); };
    std::vector<Trial> history;
    for (const std::int64_t n : {1, 2, 4, 5, 8, 12, 16, 20, 24, 32})
        history.push_back({history.size(), of(n), "", 0, "",
                           Measurement{{{TwoGoalTask::rate, {100.0 * double(n)}},
                                        {TwoGoalTask::wait, {double(n)}}}}});
    Bayesian::Options options;
    options.trials = 20;
    options.suggestions =
        std::make_shared<const std::vector<Configuration>>(std::vector<Configuration>{of(3)});
    Rng rng(1);
    CHECK(std::get<Proposal>(Bayesian(options).ask(problem, history, rng)).configuration == of(3));
}

TEST_CASE("suggestions: a file names parameters as a study does, and a bad one says where") {
    const TemporaryFolder folder;
    folder.write("t.csv",
                 "max_num_seqs,max_num_batched_tokens,status,total_tokens_per_second\n16,2048,ok,"
                 "1\n64,2048,ok,2\n16,8192,ok,3\n64,8192,ok,4\n");
    const auto study = folder.write("study.yaml",
                                    "study: own\nmodel: m\nengine: vllm\nworkloads: [{workload: w, "
                                    "use: random, input_tokens: 8, "
                                    "output_tokens: 8, requests: 10}]\nobjective: {maximize: "
                                    "total_tokens_per_second}\nothers: default\n"
                                    "space: {max_num_seqs: {choice: [16, 64]}, "
                                    "max_num_batched_tokens: {choice: [2048, 8192]}}\n"
                                    "constraints: [{forbid: {max_num_seqs: 16, "
                                    "max_num_batched_tokens: 8192}, because: too little}]\n"
                                    "evaluator: {replay: t.csv}\nstrategy: bayesian\n");
    const auto set_up_with = [&](const std::string& suggestions) {
        StudyFile file = load_study(study, Catalogue(search_spaces));
        file.suggestions = {folder.write("s.yaml", suggestions)};
        return set_up(std::move(file));
    };
    const StudySetup setup =
        set_up_with("- {max_num_seqs: 64}\n- {max_num_batched_tokens: 8192.0, max_num_seqs: 64}\n");
    REQUIRE(setup.suggestions->size() == 2);
    CHECK(*setup.suggestions->back().find("max_num_seqs") == Value(std::int64_t{64}));
    CHECK(*setup.suggestions->back().find("max_num_batched_tokens") == Value(std::int64_t{8192}));
    CHECK(setup.definition().at("suggestions").starts_with("2 ("));
    CHECK(set_up_with("[]").definition().count("suggestions") == 0);
    CHECK(set_up_with(R"([{"max_num_seqs": 64}])").suggestions->size() == 1);

    const auto refusal = [&](const std::string& text) {
        const std::string message = message_of<Error>([&] { (void)set_up_with(text); });
        return message.substr(message.find("s.yaml"));
    };
    CHECK(refusal("- {max_num_seqs: 32}\n").starts_with("s.yaml:1:"));
    CHECK(has(refusal("- {}\n- {max_num_seq: 64}\n"), "max_num_seqs"));
    CHECK(refusal("- {}\n- {max_num_seq: 64}\n").starts_with("s.yaml:2:"));
    CHECK(has(refusal("- {max_num_seqs: 16, max_num_batched_tokens: 8192}\n"), "too little"));
    CHECK(has(refusal("max_num_seqs: 64\n"), "a list wanted"));
}
