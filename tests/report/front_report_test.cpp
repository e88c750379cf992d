// SPDX-License-Identifier: Apache-2.0
// A study with several goals from its file to its reports.
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

namespace {

const char* const goals_engine = R"(engine: toy
launch: [toy, "{model}"]
parameters:
  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: 8}
)";
const std::string goals_study = R"(study: s
model: org/m
engine: toy
workloads:
  - {workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}}
objective: OBJECTIVE
space:
  seqs: {choice: [4, 8, 16, 32]}
strategy: STRATEGY
decision: published
evaluator: EVALUATOR
)";
const char* const goals_table =
    "seqs,status,total_tokens_per_second,time_to_first_token_p99_seconds,watts\n"
    "4,ok,90,0.5,300\n8,ok,100,0.8,350\n16,ok,120,1.5,400\n32,ok,110,1.6,380\n";

std::string study_with(std::string objective, const std::string& strategy,
                       const std::string& evaluator = "{replay: t.csv}") {
    std::string result = goals_study;
    for (const auto& [name, value] : {std::pair<std::string, std::string>{"OBJECTIVE", objective},
                                      {"STRATEGY", strategy},
                                      {"EVALUATOR", evaluator}})
        result.replace(result.find(name), name.size(), value);
    return result;
}

struct Files {
    explicit Files(const std::string& study) {
        folder.write("toy.yaml", goals_engine);
        folder.write("t.csv", goals_table);
        file = folder.write("study.yaml", study);
    }
    [[nodiscard]] StudySetup set_up() const {
        return servetune::set_up(load_study(file, Catalogue(folder.path())));
    }

    TemporaryFolder folder;
    std::filesystem::path file;
};

std::string goals_error(const std::string& objective, const std::string& strategy = "exhaustive",
                        const std::string& evaluator = "{replay: t.csv}") {
    const Files files(study_with(objective, strategy, evaluator));
    std::string message = message_of<Error>([&] { (void)files.set_up(); });
    const std::string folder = files.folder.path().string();
    for (auto at = message.find(folder); at != std::string::npos; at = message.find(folder))
        message.replace(at, folder.size(), "DIR");
    return message;
}
Objective objective_of(const std::string& objective) {
    const Files files(study_with(objective, "exhaustive"));
    return load_study(files.file, Catalogue(files.folder.path())).objective;
}
std::string identity_of(const std::string& objective) {
    return Files(study_with(objective, "exhaustive")).set_up().definition().at("objective");
}

}  // namespace

TEST_CASE("objective: one metric or several, under one key or both, the first written leads") {
    const Objective one = objective_of("{maximize: total_tokens_per_second}");
    CHECK(one.leading().metric == "total_tokens_per_second");
    CHECK_FALSE(one.several());
    CHECK_FALSE(objective_of("{maximize: [total_tokens_per_second]}").several());

    const Objective both = objective_of(
        "{minimize: time_to_first_token_p99_seconds, maximize: [total_tokens_per_second]}");
    CHECK(both.leading().metric == "time_to_first_token_p99_seconds");
    CHECK(both.leading().direction == Direction::minimize);
    REQUIRE(both.goals.size() == 2);
    CHECK(both.goals[1].text() == "maximize total_tokens_per_second");
    CHECK(objective_of("{maximize: total_tokens_per_second, minimize: watts}").leading().metric ==
          "total_tokens_per_second");
}

TEST_CASE("objective: what is no list of goals is refused with its place") {
    const auto refused_at = [](const std::string& objective, const std::string& place) {
        const std::string error = goals_error(objective);
        INFO(error);
        CHECK(error.starts_with("DIR/study.yaml:" + place));
    };
    refused_at("{maximize: total_tokens_per_second, minimize: [watts, watts]}",
               "6:66: 'objective.minimize[1]'");
    refused_at("{maximize: watts, minimize: watts}", "6:40: 'objective.minimize'");
    refused_at(
        "{maximize: [total_tokens_per_second, watts], minimize: time_to_first_token_p99_seconds}",
        "6:12: 'objective': at most two goals wanted; make limits of the others");
    refused_at("{maximize: []}", "6:23: 'objective.maximize'");
    refused_at("{limits: [\"watts <= 400\"]}", "6:12: 'objective'");
    refused_at("{maximize: [total_tokens_per_second, {a: b}]}", "6:");
    CHECK(has(goals_error("{maximize: total_tokens_per_second, minimize: wats}"),
              "no metric 'wats'; it has: watts, "));
    // No table to look into: what a load test measures is known.
    CHECK(
        has(goals_error("{minimize: time_to_first_token_p98_seconds}", "bayesian", "{deploy: {}}"),
            "it has: time_to_first_token_p9"));
    CHECK(has(goals_error("{minimize: usd_per_million_tokens}", "bayesian", "{deploy: {}}"),
              "'usd_per_million_tokens' needs a price"));
    CHECK(has(goals_error("{minimize: usd_per_million_tokens}", "bayesian",
                          "{attach: {url: \"http://127.0.0.1:1\"}}"),
              "'usd_per_million_tokens' cannot be had"));
}

TEST_CASE(
    "objective: strategies that compare one number refuse several goals, the others take them") {
    const std::string both = "{maximize: total_tokens_per_second, minimize: watts}";
    for (const char* strategy : {"staged", "local_search"})
        CHECK(has(goals_error(both, strategy), " compares one number"));
    for (const char* strategy : {"bayesian", "quasi_random", "random", "exhaustive"})
        CHECK(goals_error(both, strategy).empty());
    for (const char* strategy : {"staged", "local_search"})
        CHECK(goals_error("{maximize: watts}", strategy).empty());
}

TEST_CASE("objective: goals are part of a study's identity, which of one goal is what it was") {
    CHECK(identity_of("{maximize: total_tokens_per_second}") == "maximize total_tokens_per_second");
    CHECK(identity_of("{maximize: [total_tokens_per_second]}") ==
          "maximize total_tokens_per_second");
    CHECK(identity_of("{maximize: total_tokens_per_second, minimize: watts}") ==
          "maximize total_tokens_per_second, minimize watts");
    CHECK(identity_of("{minimize: watts, maximize: total_tokens_per_second}") ==
          "minimize watts, maximize total_tokens_per_second");
}

TEST_CASE(
    "several goals: both reports list the front with its commands, of one goal they say nothing of "
    "it") {
    const auto reports = [](const std::string& objective) {
        const Files files(study_with(objective, "exhaustive"));
        const StudySetup setup = files.set_up();
        MemoryJournal journal;
        Study study(*setup.problem, *setup.strategy, journal);
        (void)study.run(*setup.evaluator);
        return std::pair(
            markdown_report(setup, study.trials(), "strategy_finished"),
            nlohmann::json::parse(json_report(setup, study.trials(), "strategy_finished")));
    };
    const auto [text, json] =
        reports("{maximize: total_tokens_per_second, minimize: time_to_first_token_p99_seconds}");
    CHECK(has(text,
              "**Recommended: +20.0 % in total_tokens_per_second over the default** (seqs = 16)."));
    CHECK(has(text, "## Pareto front\n\n3 of the 4 configurations that pass"));
    // Once each: no interval.
    CHECK(has(text, "| 1 | seqs = 16 | 120.00 | - | 1.50 s | - | 1 |"));
    CHECK(has(text, "| 3 | seqs = 4 | 90.00 |"));
    CHECK(has(text, " seqs = 16 (recommended)\n\n```bash\ntoy org/m --seqs=16\n```\n"));
    CHECK(has(text, " the default\n\n```bash\ntoy org/m\n```\n"));
    CHECK_FALSE(has(text, "beaten"));
    CHECK(json["objective"]["maximize"] == "total_tokens_per_second");
    CHECK(json["goals"][1] ==
          nlohmann::json{{"metric", "time_to_first_token_p99_seconds"}, {"direction", "minimize"}});
    REQUIRE(json["front"].size() == 3);
    CHECK(json["front"][0]["configuration"]["seqs"] == 16);
    CHECK(json["front"][0]["command"] == json["recommended"]["command"]);
    CHECK(json["front"][2]["estimates"]["time_to_first_token_p99_seconds"]["value"] == 0.5);
    CHECK(json["front"][2]["estimates"]["time_to_first_token_p99_seconds"]["high"] > 0.5);
    CHECK(json["front"][2]["metrics"]["watts"] == 300);

    // The default is beaten: it stands below the front, to be compared with.
    const auto [beaten, unused] = reports("{maximize: [total_tokens_per_second, watts]}");
    CHECK(has(beaten, "## Pareto front\n\n1 of the 4"));
    CHECK(has(beaten, "| beaten | the default | 100.00 |"));

    const auto [one_text, one_json] = reports("{maximize: total_tokens_per_second}");
    CHECK_FALSE(has(one_text, "Pareto"));
    CHECK(has(one_text, "**Recommended: +20.0 % over the default** (seqs = 16)."));
    CHECK_FALSE(one_json.contains("front"));
    CHECK_FALSE(one_json.contains("goals"));
}
