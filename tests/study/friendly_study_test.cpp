// SPDX-License-Identifier: Apache-2.0
// A study as people write it: short forms mean what the long ones do, and all that is wrong is said
// at once.
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <sstream>

using namespace servetune;
using namespace servetune::test;

namespace {

StudyFile friendly(const std::string& text) {
    const TemporaryFolder folder;
    return load_study(folder.write("study.yaml", text), Catalogue(search_spaces));
}

std::vector<std::string> errors_in(const std::string& text) {
    const std::string message = message_of<ParseError>([&] { (void)friendly(text); });
    std::vector<std::string> result;
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);)
        result.push_back(line.substr(std::min(line.find("study.yaml:"), line.size())));
    return result;
}

const std::string head =
    "study: s\nmodel: org/m\nengine: vllm\nworkloads: [chat]\nevaluator: deploy\n";
const std::string plain_goal = "objective: {maximize: total_tokens_per_second}\n";

const Parameter& parameter_called(const StudyFile& file, const std::string& name) {
    const auto& all = file.composition->parameters();
    return *find_if(all, [&](const Parameter& one) { return one.name == name; });
}

}  // namespace

TEST_CASE("friendly study: an evaluator without options is a word") {
    CHECK(std::holds_alternative<DeployChoice>(friendly(head + plain_goal).measuring));
    CHECK(std::holds_alternative<DeployChoice>(
        friendly(replaced(head, "evaluator: deploy", "evaluator:\n  deploy:") + plain_goal)
            .measuring));
    CHECK(std::holds_alternative<SimulateChoice>(
        friendly(replaced(head, "evaluator: deploy", "hardware: h100-sxm\nevaluator: simulate") +
                 plain_goal)
            .measuring));
    const auto wrong = [&](const std::string& word) {
        const auto errors =
            errors_in(replaced(head, "evaluator: deploy", "evaluator: " + word) + plain_goal);
        REQUIRE(errors.size() == 1);
        return errors.front();
    };
    CHECK(wrong("depoly") ==
          "study.yaml:5:12: 'evaluator': 'depoly' is no evaluator; known: deploy, replay, attach, "
          "simulate, command");
    for (const char* word : {"attach", "replay", "command", "{attach: }"})
        CHECK(has(wrong(word), "study.yaml:5:12: 'evaluator': '"));
    CHECK(has(wrong("attach"), "needs to be told more: `evaluator: {attach: url or mapping}`"));
}

TEST_CASE("friendly study: a list narrows a parameter, growing numbers in their order") {
    const StudyFile file = friendly(
        head + plain_goal +
        "others: default\nspace: {max_num_seqs: [64, 128, 256], kv_cache_dtype: [engine, fp8]}\n");
    const StudyFile longer =
        friendly(head + plain_goal +
                 "others: default\nspace: {max_num_seqs: {choice: [64, 128, 256], ordered: true}, "
                 "kv_cache_dtype: {choice: [engine, fp8]}}\n");
    for (const char* name : {"max_num_seqs", "kv_cache_dtype"}) {
        CHECK(parameter_called(file, name).domain_text() ==
              parameter_called(longer, name).domain_text());
        CHECK(parameter_called(file, name).ordered() == parameter_called(longer, name).ordered());
        CHECK(parameter_called(file, name).default_value ==
              parameter_called(longer, name).default_value);
    }
    CHECK(parameter_called(file, "max_num_seqs").ordered());
    CHECK_FALSE(parameter_called(file, "kv_cache_dtype").ordered());
    CHECK_FALSE(parameter_called(friendly(head + plain_goal + "space: {max_num_seqs: [128, 64]}\n"),
                                 "max_num_seqs")
                    .ordered());
    CHECK(
        has(errors_in(head + plain_goal + "space: {max_num_seqs: []}\n").front(), "max_num_seqs"));
    CHECK(has(errors_in(head + plain_goal + "space: {max_num_seqs: [64, 64]}\n").front(),
              "lists '64' twice"));
}

TEST_CASE("friendly study: a budget in a few words") {
    const auto budget = [&](const std::string& text) {
        return friendly(head + plain_goal + "budget: " + text + "\n").budget;
    };
    CHECK(budget("45min").wall_clock_seconds == 2700);
    CHECK(budget("45 min").wall_clock_seconds == 2700);
    CHECK(budget("45min").trials == 1'000'000);  // time alone bounds it
    CHECK(budget("{wall_clock: 8h}").trials == 1'000'000);
    CHECK(budget("{until: \"07:00\"}").trials == 1'000'000);
    CHECK(budget("{until: \"07:00\", trials: 9}").trials == 9);
    CHECK(budget("{serves: 30d}").trials == Budget{}.trials);
    CHECK(budget("12 trials").trials == 12);
    CHECK(budget("12").trials == 12);
    CHECK(budget("1 trial").trials == 1);
    CHECK(budget("60 trials, 8h").trials == 60);
    CHECK(budget("60 trials, 8h").wall_clock_seconds == 8 * 3600);
    CHECK(budget("{trials: 7}").trials == 7);
    for (const char* wrong : {"soon", "0 trials", "-3", "45", "2 trials, 3 trials", "1h, 2h",
                              "\"\"", "\"1h;\"", "[30]"}) {
        INFO(wrong);
        if (std::string(wrong) == "45") continue;  // 45 trials
        CHECK_FALSE(errors_in(head + plain_goal + "budget: " + wrong + "\n").empty());
    }
}

TEST_CASE("friendly study: one workload, one limit, everyday metrics and units") {
    const StudyFile file = friendly(replaced(head, "[chat]", "chat") +
                                    "objective: {maximize: throughput, limits: ttft_p95 < 2s}\n");
    REQUIRE(file.workloads.size() == 1);
    CHECK(file.workloads.front().name == "chat");
    CHECK(file.objective.leading().metric == "total_tokens_per_second");
    REQUIRE(file.objective.limits.size() == 1);
    CHECK(file.objective.limits.front().text() == "time_to_first_token_p95_seconds <= 2");
    const StudyFile times = friendly(head +
                                     "objective: {minimize: tpot, limits: [itl_p99 <= 50ms, e2el < "
                                     "1min, p95_ttft <= 500 ms]}\n");
    CHECK(times.objective.leading().metric == "time_per_output_token_mean_seconds");
    CHECK(times.objective.limits[1].text() == "latency_mean_seconds <= 60");
}

TEST_CASE("friendly study: without space the quick preset is searched, never everything") {
    const StudyFile quick = friendly(head + plain_goal);
    CHECK(quick.preset_by_default == "quick");
    const StudyFile named = friendly(head + plain_goal + "preset: quick\n");
    CHECK(named.preset_by_default.empty());
    REQUIRE(quick.composition->parameters().size() == named.composition->parameters().size());
    for (std::size_t i = 0; i < named.composition->parameters().size(); ++i)
        CHECK(quick.composition->parameters()[i].name == named.composition->parameters()[i].name);
    CHECK(quick.composition->parameters().size() < 10);
    CHECK(friendly(head + plain_goal + "others: search\n").composition->parameters().size() > 30);
    CHECK(friendly(head + plain_goal + "space: {max_num_seqs: [64, 128]}\n")
              .preset_by_default.empty());
}

TEST_CASE("friendly study: all unknown parameters at once, each with the nearest") {
    const auto errors = errors_in(
        head + plain_goal +
        "space: {max_num_sqes: [64, 128], kv_cache_dtpye: [engine, fp8], block_size: [16]}\n");
    REQUIRE(errors.size() == 2);
    CHECK(has(errors[0],
              "'space.max_num_sqes': no parameter or concept of the study's engines; known: "
              "max_num_seqs"));
    CHECK(has(errors[1],
              "'space.kv_cache_dtpye': no parameter or concept of the study's engines; known: "
              "kv_cache_dtype"));
}

TEST_CASE("friendly study: all errors at once, by their lines, each with the nearest known word") {
    const auto errors = errors_in(
        "study: s\nmodle: org/m\nengine: vlm\nworkloads: [chta, {use: random, requets: "
        "3}]\nobjective: {maximize: output_tokens_per_secnd, "
        "limits: [ttft_p95 < 2x, succes_ratio > 0.9]}\nbudget: soon\nmin_gain: much\nevaluator: "
        "depoly\n");
    const std::vector<std::string> parts{
        "study.yaml:1:1: the key 'model' is missing",
        "study.yaml:2:8: 'modle': unknown key; known: model, ",
        "study.yaml:3:9: 'engine': ",
        "study.yaml:4:13: 'workloads[0]': ",
        "study.yaml:4:42: 'workloads[1].requets': unknown key; known: requests, ",
        "study.yaml:5:57: 'objective.limits[0]': a limit is written",
        "study.yaml:6:9: 'budget': a budget such as '30 trials'",
        "study.yaml:7:11: 'min_gain': a share such as 1% or 0.01 wanted, got 'much'",
        "study.yaml:8:12: 'evaluator': 'depoly' is no evaluator; known: deploy, "};
    REQUIRE(errors.size() == parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        INFO(errors[i]);
        CHECK(errors[i].starts_with(parts[i]));
    }
    CHECK(has(errors[2], "vllm"));
    CHECK(has(errors[3], "chat"));
    const auto metrics = errors_in(
        head + "objective: {maximize: output_tokens_per_secnd, limits: [succes_ratio > 0.9]}\n");
    REQUIRE(metrics.size() == 2);
    CHECK(has(metrics[0], "study.yaml:6:"));
    CHECK(
        has(metrics[0], "no metric 'output_tokens_per_secnd'; it has: output_tokens_per_second,"));
    CHECK(has(metrics[1], "no metric 'succes_ratio'; it has: success_ratio,"));
    const auto spaces =
        errors_in(head + plain_goal +
                  "space:\n  max_num_seqs: {choise: [1]}\n  kv_cache_dtype: {int: {low: 1}}\n");
    REQUIRE(spaces.size() >= 2);
    CHECK(has(spaces[0], "'space.max_num_seqs.choise': unknown key; known: choice, "));
    CHECK(has(spaces[1], "the key 'high' is missing"));
}

TEST_CASE("friendly study: an unknown key names the nearest keys, and where all are") {
    const auto errors = errors_in(replaced(head, "evaluator: deploy", "evaluator: {qqxx: {}}") +
                                  plain_goal + "zzqxwv: 3\n");
    REQUIRE(errors.size() == 2);
    INFO(errors.at(1));
    CHECK(has(errors.at(1), "'zzqxwv': unknown key; known: "));
    CHECK(has(errors.at(1), "; search_spaces/FORMAT.md has all"));
    CHECK(errors.at(1).size() < 200);
    // Of a short list all are named.
    CHECK(has(errors.at(0), "'evaluator.qqxx': unknown key; known: "));
    CHECK(has(errors.at(0), "simulate"));
}
