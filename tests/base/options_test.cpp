// SPDX-License-Identifier: Apache-2.0
// Options that cannot be are refused where they are given, all that is wrong with them at once.
#include "servetune/attach_evaluator.hpp"
#include "servetune/command_evaluator.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/engine_evaluator.hpp"
#include "servetune/replay.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/simulate_evaluator.hpp"
#include "servetune/staged.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <limits>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

/// Each double of some options in turn: NaN, below what can be, infinite, and so large that a clock
/// overflows, where `allows_infinity` says otherwise.
template <class Options>
void check_refused(Options options, std::initializer_list<double Options::*> members,
                   bool allows_infinity = false, bool a_share = false) {
    CHECK(options.why_invalid().empty());
    for (double Options::*member : members) {
        const double kept = options.*member;
        for (const double wrong : {not_a_number, -1.0, -infinite}) {
            options.*member = wrong;
            INFO(wrong);
            CHECK_FALSE(options.why_invalid().empty());
        }
        for (const double large : {infinite, 1e308, a_share ? 1.01 : infinite}) {
            options.*member = large;
            INFO(large);
            CHECK(options.why_invalid().empty() == allows_infinity);
        }
        options.*member = kept;
    }
}

SearchSpace one_flag() { return SearchSpace({Parameter::choice("flag", {"off", "on"})}); }

}  // namespace

TEST_CASE("options: times, shares and counts that cannot be are said, all of them at once") {
    check_refused(Budget{}, {&Budget::wall_clock_seconds, &Budget::until}, true);
    check_refused(Decision{}, {&Decision::min_gain, &Decision::noise_cv}, false, true);
    check_refused(StepNoise{}, {&StepNoise::run_cv, &StepNoise::step_cv}, false, true);
    check_refused(LoadOptions{},
                  {&LoadOptions::request_timeout_seconds, &LoadOptions::stall_timeout_seconds});
    check_refused(MeasureOptions{}, {&MeasureOptions::trial_within_seconds});
    check_refused(DeployOptions{},
                  {&DeployOptions::stop_within_seconds, &DeployOptions::failed_line_grace_seconds});
    check_refused(MachineWatchOptions{}, {&MachineWatchOptions::every_seconds,
                                          &MachineWatchOptions::nvidia_smi_within_seconds});
    BayesianOptions no_trials;
    no_trials.trials = 0;
    BayesianOptions no_time;
    no_time.serves_seconds = 0;
    CHECK_FALSE(no_trials.why_invalid().empty());
    CHECK_FALSE(no_time.why_invalid().empty());
    check_refused(ReplayEvaluator::Options{}, {&ReplayEvaluator::Options::noise_cv}, false, true);

    MeasureOptions measure;
    measure.trial_within_seconds = 0;
    measure.load.loops = 0;
    measure.watch.emplace().every_seconds = not_a_number;
    CHECK(measure.why_invalid() ==
          "load: loops: a number in [1, 1024] wanted, got 0; trial_within_seconds: seconds above "
          "0, at most 3153600000 wanted, got 0; "
          "watch: every_seconds: seconds above 0, at most 3153600000 wanted, got nan");
}

TEST_CASE("options: whoever takes them refuses what cannot be") {
    CHECK(message_of<UsageError>([] {
              (void)Problem(one_flag(), {"x"}, {Decision::Rule::significant, -1});
          }) == "the decision: min_gain: a number in [0, 1] wanted, got -1");
    Objective twice{"x"};
    twice.goals.push_back({"x", Direction::minimize});
    twice.limits = {{"y", true, not_a_number}};
    CHECK(message_of<UsageError>([&] { (void)Problem(one_flag(), twice, {}); }) ==
          "the objective: goals: each metric once wanted, got x twice; limits: a metric and a "
          "finite bound wanted, got y >= nan");
    CHECK_THROWS_AS(Problem(one_flag(), {""}, {}), UsageError);
    CHECK(message_of<UsageError>([] {
              (void)Problem(one_flag(), Objective(std::vector<Goal>{}), {});
          }) == "the objective: goals: at least one wanted, got none");
    CHECK_THROWS_AS(Staged({{{"a", {"flag"}, {{{"flag", Value("on")}}}}}, 3}), UsageError);
    CHECK_THROWS_AS(Staged({{{"a", {}, {}}}, 3}), UsageError);
    CHECK_THROWS_AS(Staged({{{"a", {"flag"}}}, 0}), UsageError);
    CHECK_THROWS_AS(CommandEvaluator({}), UsageError);
    CommandEvaluator::Options command;
    command.argv = {"true"};
    command.environment = {{"A=B", "1"}};
    CHECK_THROWS_AS(CommandEvaluator(command), UsageError);
    command.environment = {{"A", std::string("1\0 2", 4)}};
    CHECK_THROWS_AS(CommandEvaluator(command), UsageError);
    AttachEvaluator::Options attach{"http://127.0.0.1:1"};
    attach.measure.trial_within_seconds = 1e308;
    CHECK_THROWS_AS(AttachEvaluator(Engine{"e"}, "m", {}, attach), UsageError);
    ProcessOptions process;
    CHECK(message_of<UsageError>([&] { Process none(process); }) ==
          "a process: argv: a program wanted, got none");
    process.argv = {"true"};
    process.cores = {4096};
    CHECK(message_of<UsageError>([&] { Process none(process); }) ==
          "a process: cores: numbers in [0, 1023] wanted, got 4096");
    StudyWorkloads workloads;
    workloads.searched = {Workload{"w"}, Workload{"w"}};
    workloads.searched[0].weight = not_a_number;
    CHECK(workloads.why_invalid() ==
          "weight of 'w': a number in (0, 1e6] wanted, got nan; workloads: names, each once "
          "wanted, got 'w'");

    const Problem problem(one_flag(), {"x"}, {});
    const Random random;
    MemoryJournal journal;
    Study study(problem, random, journal);
    class Answers : public Evaluator {
    public:
        Outcome evaluate(const Configuration&, const EvaluationContext&) override {
            return Measurement{{{"x", {1}}}};
        }
    } answers;
    Budget never;
    never.wall_clock_seconds = not_a_number;
    const Summary summary = study.run(answers, never);
    CHECK(summary.reason == StopReason::error);
    CHECK(summary.message ==
          "the budget: wall_clock_seconds: a number in [0, inf] wanted, got nan");
    CHECK(study.trials().empty());
}

TEST_CASE("options: a study's file says at which place something cannot be") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::string& lines) {
        const std::string text =
            lines +
            "\nstudy: s\nmodel: m\nengine: vllm\nobjective: {maximize: "
            "total_tokens_per_second}\nothers: default\n"
            "space: {max_num_seqs: {choice: [16, 64]}}\n" +
            (lines.find("workloads") == 0 ? "" : std::string("workloads: [{use: random}]\n")) +
            (lines.find("evaluator") == 0 ? "" : "evaluator: {deploy: {}}\n");
        const auto file = folder.write("s.yaml", text);
        const std::string message =
            message_of<Error>([&] { (void)set_up(load_study(file, shipped_catalogue)); });
        INFO(lines);
        CHECK(message.find(file.string() + ":1:") == 0);
        return message.substr(message.find(": ") + 2);
    };
    CHECK(refused("min_gain: 101%") == "'min_gain': a share of at most 100 % wanted, got '101%'");
    CHECK(refused("budget: {wall_clock: 1e308d}") ==
          "'budget.wall_clock': a duration of at most a hundred years wanted, got '1e308d'");
    CHECK(has(refused("evaluator: {deploy: {trial_within: 1e308d}}"), "a hundred years"));
    for (const char* lines :
         {"noise_cv: 900%", "noise_cv: 2", "seed: -1", "strategy: {staged: {stages: []}}",
          "strategy: {staged: {replicates: 5000, stages: [max_num_seqs]}}",
          "evaluator: {deploy: {trial_within: 0s}}", "evaluator: {deploy: {ready_within: 0s}}",
          "evaluator: {deploy: {stall_timeout: 0s}}", "evaluator: {deploy: {stop_within: 1e300s}}",
          "evaluator: {deploy: {warm_up: 9999999999}}",
          "evaluator: {deploy: {cores: [99999999999]}}",
          "evaluator: {command: {run: [x], trial_within: 0s}}"})
        (void)refused(lines);
    const auto of_workload = [&](const std::string& rest) {
        return refused(
            "workloads: [{workload: w, requests: 1, dataset: {kind: random, input_tokens: 8, "
            "output_tokens: 8}, " +
            rest + "}]");
    };
    CHECK(of_workload("weight: 1e308") ==
          "'workloads[0].weight': a positive number, at most a million, wanted, got '1e308'");
    for (const char* rest : {"seed: -1", "arrival: {rate: 1e-300}", "arrival: {rate: 1e300}",
                             "arrival: {concurrency: 99999999999}"})
        (void)of_workload(rest);
}

TEST_CASE("options: a simulated study refuses levels of load, which it would ignore") {
    const TemporaryFolder folder;
    const auto file =
        folder.write("s.yaml",
                     "study: s\nmodel: Qwen/Qwen3-14B\nhardware: h100-sxm\nengine: "
                     "vllm\nworkloads: [{use: chat}]\n"
                     "objective: {maximize: total_tokens_per_second}\nothers: default\n"
                     "space: {load.request_rate: [2, 32]}\nevaluator: {simulate: {}}\n");
    CHECK(message_of<UsageError>([&] { (void)set_up(load_study(file, shipped_catalogue)); }) ==
          file.string() +
              ": 'load.request_rate': a simulated study predicts each workload under its own "
              "'arrival'; write the load there, or measure "
              "with "
              "deploy or attach");
}
