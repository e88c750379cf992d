// SPDX-License-Identifier: Apache-2.0
// What a study says in which nothing passes: the nearest configuration, its limits and what to
// loosen, or what failed. Beside it what reports say of work that cannot be compared, and of gains
// that are differences.
#include "servetune/replay.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/test.hpp"
#include "support/toy_engine.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A table searched wholly, and what is said of it.
struct Said {
    Said(const std::string& table, const std::string& objective,
         const std::string& workloads = "") {
        folder.write("toy.yaml", toy_engine("  bits: {concept: quantization, flag: --bits, choice: "
                                            "[none, fp8], default: none}\n"));
        folder.write("t.csv", table);
        const std::string workload =
            "{workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}}";
        const auto file = folder.write(
            "study.yaml",
            "study: s\nmodel: org/m\nengine: toy\nworkloads: [" +
                (workloads.empty() ? workload : workloads) + "]\nobjective: " + objective +
                "\nspace: {seqs: {choice: [8, 16, 32]}, bits: {choice: [none, fp8]}}\n" +
                "strategy: exhaustive\nevaluator: {replay: {table: t.csv, unmeasured: exclude}}\n");
        const StudySetup setup = set_up(load_study(file, Catalogue(folder.path())));
        MemoryJournal journal;
        Study study(*setup.problem, *setup.strategy, journal);
        (void)study.run(*setup.evaluator);
        headline = headline_of(setup, study.trials());
        const Reports reports = all_reports(setup, study.trials(), "strategy_finished");
        json = nlohmann::json::parse(reports.json);
        text = reports.markdown;
        html = reports.html;
        CHECK(json["reason"] == headline.reason);
        CHECK(json["advice"] == headline.advice);
    }

    TemporaryFolder folder;
    Headline headline;
    nlohmann::json json;
    std::string text, html;
};

const std::string limited =
    "{maximize: total_tokens_per_second, limits: [\"success_ratio >= 0.99\", "
    "\"time_to_first_token_p95_seconds <= 100ms\"]}";
const std::string columns =
    "seqs,bits,status,message,total_tokens_per_second,success_ratio,time_to_first_token_p95_"
    "seconds,verdict,findings\n";

}  // namespace

TEST_CASE(
    "nothing passes: the nearest configuration is named with its limits, by how much, and what to "
    "loosen",
    "[verdict]") {
    const Said said(
        columns +
            "8,none,ok,,1000,1,0.2,,\n16,none,ok,,1500,0.98,0.1234,,\n32,none,ok,,2000,0.6,0.05,,\n"
            "8,fp8,out_of_memory,no room,,,,,\n",
        limited);
    CHECK(said.headline.conclusion == Conclusion::nothing_passes);
    for (const char* what : {"Nearest is seqs = 16", "by 23.4 %: 123.4 ms", "by 1 %: 0.98",
                             "1 trial failed, out_of_memory: no room."})
        CHECK(has(said.headline.reason, what));
    for (const char* what :
         {"'time_to_first_token_p95_seconds <= 124 ms'", "'success_ratio >= 0.98'"})
        CHECK(has(said.headline.advice, what));
    const auto& closest = said.json.at("closest");
    CHECK(closest["configuration"]["seqs"] == 16);
    CHECK(closest["broken"][0]["metric"] == "time_to_first_token_p95_seconds");
    CHECK(closest["broken"][0]["at_most"] == 0.1);
    CHECK(closest["broken"][0]["value"] == 0.1234);
    CHECK(closest["broken"][0]["passes_with"] == 0.124);
    CHECK(has(said.text, "123.4 ms"));
    CHECK(has(said.html, "Nearest is seqs = 16"));
}

TEST_CASE("nothing passes: a loosened bound keeps the value, whatever its size and sign",
          "[verdict]") {
    for (const double value : {1234.5, 0.99, 0.12345, -3.217, 1e-7, 7e12, 0.0})
        for (const bool at_least : {true, false}) {
            const BrokenLimit broken{{"m", at_least, value + (at_least ? 1 : -1)}, "", value, 1};
            CHECK(broken.loosened().keeps(value));
            CHECK(std::abs(broken.loosened().bound - value) <= 0.01 * std::abs(value));
        }
}

TEST_CASE("nothing passes: where all failed or the audit refused all, the commonest cause is said",
          "[verdict]") {
    const Said failed(columns +
                          "8,none,rejected_flags,unknown flag --x,,,,,\n16,none,out_of_memory,no "
                          "room for 3 blocks,,,,,\n"
                          "32,none,out_of_memory,no room,,,,,\n",
                      limited);
    CHECK(has(failed.headline.reason,
              "3 trials failed, most often out_of_memory: no room for 3 blocks."));
    CHECK(failed.json.at("closest").is_null());
    const Said alone(columns + "8,none,out_of_memory,no room,,,,,\n", limited);
    CHECK(has(alone.headline.reason, "nothing else was tried. 1 trial failed, out_of_memory: "));
    // The default fails and all others are refused by the audit.
    const Said unsound(
        columns +
            "8,none,out_of_memory,no "
            "room,,,,,\n16,none,ok,,1000,1,0.05,unsound,physics\n32,none,ok,,1000,1,0.05,unsound,"
            "physics\n",
        limited);
    CHECK(has(unsound.headline.reason, "The audit refuses 2 measurements, for physics"));
    CHECK(has(unsound.headline.reason, "1 trial failed, out_of_memory: no room."));
    // What makes them unsound stands first; a warning that most of them share is not the cause.
    const Said warned(
        columns +
            "8,none,ok,,1000,1,0.05,unsound,physics "
            "client\n16,none,ok,,1000,1,0.05,unsound,physics client\n32,none,ok,,1000,"
            "1,0.05,unsound,client\n",
        limited);
    CHECK(has(warned.headline.reason, "physics"));
}

TEST_CASE("nothing passes: a limit of several workloads is loosened for the worst of them",
          "[verdict]") {
    const Said said(
        "seqs,bits,workload,status,total_tokens_per_second,time_to_first_token_p95_seconds\n8,none,"
        "a,ok,1000,0.15\n"
        "8,none,b,ok,1000,0.3\n",
        "{maximize: total_tokens_per_second, limits: [\"time_to_first_token_p95_seconds <= "
        "100ms\"]}",
        "{workload: a, dataset: {kind: random, input_tokens: 8, output_tokens: 8}}, {workload: b, "
        "dataset: {kind: random, "
        "input_tokens: 8, output_tokens: 8}}");
    CHECK(has(said.headline.reason, "by 200 %: 300 ms on b"));
    CHECK(has(said.headline.advice, "'time_to_first_token_p95_seconds <= 300 ms'"));
}

TEST_CASE("other work: reports name both lengths and say what a changed quantization looks like",
          "[verdict]") {
    const std::string head =
        "seqs,bits,status,requests_per_second,successful_requests,input_tokens,output_tokens\n";
    const Said said(head + "8,none,ok,10,4000,80000,128000\n8,fp8,ok,20,4000,80000,64000\n",
                    "{maximize: requests_per_second}");
    CHECK(said.headline.conclusion == Conclusion::inconclusive);
    for (const char* what : {"bits = fp8 did other work", "16 output tokens a request, 32 with",
                             "nobody compared the answers"})
        CHECK(has(said.headline.reason, what));
    CHECK(has(said.headline.advice, "'ignore_eos: true'"));
    CHECK(said.json["other_work"][0]["mean"] == 16);
    CHECK(said.json["other_work"][0]["default"] == 32);
    CHECK(has(said.text, "- bits = fp8 did other work"));
    CHECK(has(said.html, "bits = fp8 did other work"));
    const Said equal(head + "8,none,ok,10,4000,80000,128000\n16,none,ok,20,4000,80000,128000\n",
                     "{maximize: requests_per_second}");
    CHECK(equal.headline.conclusion == Conclusion::recommended);
    CHECK(equal.json["other_work"].empty());
}

TEST_CASE("differences: reports state them in the metric's unit, and never a share", "[verdict]") {
    const Said said(
        "seqs,bits,status,profit\n8,none,ok,-2\n8,none,ok,-2.1\n16,none,ok,3\n16,none,ok,3.1\n32,"
        "none,ok,0\n32,none,ok,0.1\n",
        "{maximize: profit}");
    CHECK(said.headline.title == "Recommended: better by 5.1 in profit than the default");
    CHECK(has(said.headline.reason, "95 % interval +"));
    CHECK_FALSE(has(said.headline.reason, "%."));
    CHECK(said.json["compared_by"] == "differences");
    CHECK(said.json["recommended"]["gain"]["value"].get<double>() == Approx(5.1).epsilon(0.02));
    CHECK(said.json["recommended"]["gain"]["low"].get<double>() > 4);
    CHECK(has(said.text, "| seqs = 16 | 3.05 | +5.1 |"));
    CHECK(has(said.text, "they are compared by differences"));
}

TEST_CASE("report: what a better model gains in quality is no negative loss") {
    const auto note = [](const std::string& drop) {
        const Said said(
            "seqs,bits,status,total_tokens_per_second,quality_drop\n8,none,ok,1000,0\n16,fp8,ok,"
            "1500," +
                drop + "\n",
            "{maximize: total_tokens_per_second}");
        REQUIRE(said.headline.conclusion == Conclusion::recommended);
        const auto at = said.text.find("- Quality: ");
        return at == std::string::npos ? "" : said.text.substr(at, said.text.find(" (", at) - at);
    };
    CHECK(note("-0.125") == "- Quality: 12.5 % gained against the default");
    CHECK(note("0.125") == "- Quality: 12.5 % lost against the default");
}

TEST_CASE("suspect results: the verdict says so, of all results, of the winner or of the default") {
    const auto table = [](const std::string& of_default, const std::string& of_winner,
                          const std::string& of_other) {
        return columns + "8,none,ok,,1000,1,0.05," + of_default + "\n16,none,ok,,1500,1,0.05," +
               of_winner + "\n32,none,ok,,1100,1,0.05," + of_other + "\n";
    };
    const std::string suspect = "suspect,peak", sound = "sound,";
    const Said all(table(suspect, suspect, suspect), limited);
    CHECK(all.headline.conclusion == Conclusion::recommended);
    CHECK(has(all.headline.reason, "All measurements are suspect (peak)."));
    CHECK(all.headline.advice == "Find out why before you serve this.");
    CHECK(
        has(all.text, "All measurements are suspect (peak). Find out why before you serve this."));
    const Said winner(table(sound, suspect, sound), limited);
    CHECK(has(winner.headline.reason, "Its measurement is suspect (peak)."));
    CHECK(winner.headline.advice == "Find out why before you serve this.");
    CHECK(has(Said(table(suspect, sound, sound), limited).headline.reason,
              "The default's measurement is suspect (peak)."));
    const Said loser(table(sound, sound, suspect), limited);
    CHECK_FALSE(has(loser.headline.reason, "suspect"));
    CHECK(loser.headline.advice == "Serve this.");
}
