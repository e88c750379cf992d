// SPDX-License-Identifier: Apache-2.0
// `budget: {serves: 30d}`: a search that ends when what is left to gain is worth less
// than it costs.
#include "servetune/bayesian.hpp"
#include "servetune/study_file.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr double day = 86400;

/// The trials of a search of at most 60; a trial takes `seconds`.
std::vector<Trial> searched_until(std::optional<double> serves_seconds, double seconds,
                                  const TuningTask::Answering& answer = {}) {
    const Problem problem(TuningTask::space(), {metric}, {});
    const TuningTask task;
    Bayesian::Options options;
    options.trials = 60;
    options.serves_seconds = serves_seconds;
    const auto measured = [&](const Configuration& one, Rng& noise) {
        return task.measured(one, 0.01, noise);
    };
    return TuningTask::searched(problem, Bayesian(options), 60, 1, answer ? answer : measured,
                                [&](const Configuration&) { return seconds; });
}

std::string study(const std::string& budget, const std::string& strategy = "bayesian",
                  const std::string& objective = "maximize: rate") {
    return "study: s\nmodel: m\nengine: toy\nworkloads: [{workload: w, requests: 10, dataset: "
           "{kind: random, input_tokens: 8, "
           "output_tokens: 8}}]\n"
           "objective: {" +
           objective +
           "}\nspace: {seqs: {choice: [8, 16]}}\nothers: default\nstrategy: " + strategy +
           "\nbudget: " + budget + "\nevaluator: {command: [./measure]}\n";
}

}  // namespace

TEST_CASE(
    "stop rule: the longer the result serves and the shorter a trial, the longer is the search") {
    const std::size_t whole = searched_until({}, 300).size();
    CHECK(whole == 60);
    const std::size_t a_year = searched_until(365 * day, 60).size();
    const std::size_t a_week = searched_until(7 * day, 600).size();
    const std::size_t an_hour = searched_until(3600, 600).size();
    CHECK(a_year >= a_week);
    CHECK(a_week > an_hour);
    CHECK(an_hour < 30);
    CHECK(an_hour >= 4);  // the start is always whole
}

TEST_CASE("stop rule: a flat space is left early, with the reason in figures") {
    const Problem problem(TuningTask::space(), {metric}, {});
    Bayesian::Options options;
    options.trials = 60;
    options.serves_seconds = 3 * day;
    const Bayesian strategy(options);
    const auto flat = [](const Configuration& /*all*/, Rng& noise) -> Outcome {
        return Measurement{{{metric, {1000 * std::exp(0.01 * noise.normal())}}}};
    };
    const auto history = TuningTask::searched(problem, strategy, 60, 1, flat,
                                              [](const Configuration&) { return 600.0; });
    CHECK(history.size() < 50);
    Rng draws(1);
    const Answer answer = strategy.ask(problem, history, draws);
    const auto* finished = std::get_if<Finished>(&answer);
    REQUIRE(finished != nullptr);
    CHECK(finished->why.starts_with("not worth another trial: the best one is expected to gain "));
    CHECK(has(finished->why, " in 3 days of serving, and to take "));
    std::vector<Trial> one_under_way = history;
    one_under_way.push_back(Trial{history.size(), history.back().configuration});
    CHECK(std::holds_alternative<Waiting>(strategy.ask(problem, one_under_way, draws)));
}

TEST_CASE("stop rule: trials that have not told what they took end nothing") {
    const Problem problem(TuningTask::space(), {metric}, {});
    Bayesian::Options options;
    options.trials = 20;
    options.serves_seconds = 1;
    CHECK(TuningTask().searched(problem, Bayesian(options), 20, 1).size() == 20);
    options.serves_seconds = 0;
    CHECK_THROWS_AS(Bayesian(options), UsageError);
}

TEST_CASE(
    "stop rule: the study file says it, and refuses it where nothing can tell what is left to "
    "gain") {
    const TemporaryFolder folder;
    folder.write("toy.yaml",
                 "engine: toy\nversions: \"1.0\"\nlaunch: [toy, \"{model}\"]\nparameters: {seqs: "
                 "{flag: --seqs, int: {low: 1, high: 64}, "
                 "default: 8}}\n");
    const auto options = [&](const std::string& text) {
        StudyFile file = load_study(folder.write("study.yaml", text), Catalogue(folder.path()));
        return set_up(std::move(file), folder.path()).bayesian_options().serves_seconds;
    };
    CHECK_FALSE(options(study("{trials: 9}")));
    CHECK_THROWS_WITH(options(study("{trials: 9, stop: at_its_end}")),
                      Catch::Matchers::Contains("'budget.stop': unknown key"));
    CHECK(options(study("{trials: 9, serves: 7d}")) == 7 * day);
    CHECK_THROWS_WITH(
        options(study("{serves: 30d}", "random")),
        Catch::Matchers::Contains(
            "only the strategy bayesian knows what is left to gain, and this is random"));
    CHECK_THROWS_WITH(
        options(study("{serves: 30d}", "bayesian", "maximize: rate, minimize: delay")),
        Catch::Matchers::Contains("what a front gains has no worth in time"));
    CHECK_THROWS_AS(options(study("{serves: 0s}")), Error);
}
