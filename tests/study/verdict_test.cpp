// SPDX-License-Identifier: Apache-2.0
// What a study concludes, and that every output says the same: replicates, broken limits, disturbed
// machines, what a smaller command gives away.
#include "base/files.hpp"
#include "report/report_view.hpp"
#include "servetune/replay.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "study/json.hpp"
#include "study/table.hpp"
#include "support/test.hpp"
#include "support/toy_engine.hpp"
#include "trial/metric_text.hpp"

#include <nlohmann/json.hpp>

#include <regex>
#include <set>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string verdict_engine =
    toy_engine("  eager: {flag: --eager, bool: true, default: false}\n");

/// A table of the toy engine, searched wholly, and what all outputs say of it.
struct Verdicts {
    explicit Verdicts(
        const std::string& table, const std::string& more = "",
        const std::string& space = "{seqs: {choice: [8, 16, 32]}, eager: false}",
        const std::string& objective = "{maximize: total_tokens_per_second}",
        const std::string& workloads =
            "{workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}}") {
        folder.write("toy.yaml", verdict_engine);
        folder.write("t.csv", table);
        const auto file = folder.write(
            "study.yaml", "study: s\nmodel: org/m\nengine: toy\nworkloads: [" + workloads +
                              "]\nobjective: " + objective + "\nspace: " + space +
                              "\nstrategy: exhaustive\n" + more +
                              "evaluator: {replay: {table: t.csv, unmeasured: exclude}}\n");
        const StudySetup setup = set_up(load_study(file, Catalogue(folder.path())));
        MemoryJournal journal;
        Study study(*setup.problem, *setup.strategy, journal);
        result = study.run(*setup.evaluator).recommendation;
        headline = headline_of(setup, study.trials());
        text = markdown_report(setup, study.trials(), "strategy_finished");
        json = nlohmann::json::parse(json_report(setup, study.trials(), "strategy_finished"));
        const std::string title = headline.title;
        CHECK(has(text, "## Conclusion\n\n**" + title));
        CHECK(json["headline"].get<std::string>() == title);
        CHECK(json["reason"].get<std::string>() == headline.reason);
        CHECK(json["verdict"].get<std::string>() ==
              std::string(name_in(conclusions, result.conclusion)));
    }

    TemporaryFolder folder;
    Recommendation result;
    Headline headline;
    std::string text;
    nlohmann::json json;
};

/// A study of the toy engine whose trials are told by hand, in the search and in rounds after it.
struct StudyInRounds {
    std::filesystem::path written() const {
        folder.write("toy.yaml", verdict_engine);
        return folder.write(
            "study.yaml",
            "study: s\nmodel: org/m\nengine: toy\nworkloads: [{workload: w, dataset: {kind: "
            "random, "
            "input_tokens: 8, output_tokens: 8}}]\nobjective: {maximize: "
            "total_tokens_per_second}\nspace: {seqs: {choice: [8, 16, 32]}, eager: false}\n"
            "evaluator: {command: [./measure]}\n");
    }
    void add(std::int64_t seqs, double rate, Purpose purpose) {
        const SearchSpace& space = setup.problem->space;
        Trial trial{trials.size(), space.changed(space.default_configuration(), {{"seqs", seqs}})};
        trial.purpose = purpose;
        trial.outcome = Measurement{{{"total_tokens_per_second", {rate}}}};
        trials.push_back(std::move(trial));
    }

    TemporaryFolder folder{};
    StudySetup setup = set_up(load_study(written(), Catalogue(folder.path())));
    std::vector<Trial> trials{};
};

const std::string rates = "seqs,status,total_tokens_per_second\n";
const std::string judged_rates = "seqs,status,total_tokens_per_second,verdict,findings\n";

}  // namespace

TEST_CASE("verdict: rows of one configuration are replicates, whose spread is the noise") {
    const Verdicts study(rates + "8,ok,1000\n16,ok,700\n16,ok,1400\n");
    CHECK(study.result.conclusion == Conclusion::keep_default);
    CHECK(study.json["noise"]["value"].get<double>() ==
          Approx(std::sqrt(2.0 / 9)));  // the assumed 1 % is contradicted
    CHECK(study.json["noise"]["repeated_configurations"] == 1);
    CHECK(has(study.text,
              "Noise: 47.1 % per measurement (from the repeated measurements of 1 configuration, "
              "which contradict the assumed 1 %)."));
    CHECK_FALSE(has(study.text, "measured once"));
    CHECK(has(study.text,
              "The highest figure measured is 1050 (seqs = 16), +5.00 % over the default (95 % "
              "interval -"));
    CHECK(has(study.text, "): not proven."));
    CHECK(has(study.text, "| setting | total tokens/s | gain | measured | verdict |"));
    CHECK(has(study.text, "| seqs = 16 | 1050 | +5.00 % | 2 |"));
    CHECK(study.json["results"][1]["measurements"] == 2);

    // Decided by the numbers all the same: the interval and the probability say what that is worth.
    const Verdicts published(rates + "8,ok,1000\n16,ok,700\n16,ok,1400\n", "decision: published\n");
    CHECK(published.result.conclusion == Conclusion::recommended);
    CHECK(published.result.gain.low < -0.3);
    CHECK(published.result.p_best < 0.65);
    CHECK(has(published.text, "The gain's interval holds zero"));

    // Without repeated rows it is what it was.
    const Verdicts single(rates + "8,ok,1000\n16,ok,1050\n");
    CHECK(single.result.conclusion == Conclusion::recommended);
    CHECK(single.json["noise"]["value"].get<double>() == Approx(0.01));
    CHECK(has(single.text,
              "Noise: 1.0 % per measurement (assumed: every configuration was measured once)."));
    CHECK_FALSE(has(single.text, "| measured | verdict |"));
    // Nothing was measured of the spread, so nothing is stated of it.
    CHECK(single.headline.reason == "One measurement each: no interval.");
    CHECK_FALSE(has(single.text, "95 % interval"));
    CHECK_FALSE(has(single.text, "P(the best"));
    CHECK(single.json["recommended"]["gain"]["value"].get<double>() == Approx(0.05));
    for (const char* unknown : {"low", "high", "p_best"})
        CHECK(single.json["recommended"]["gain"][unknown].is_null());
}

TEST_CASE(
    "verdict: a configuration whose runs spread more than all others is not believed by the "
    "others' spread") {
    std::vector<Trial> history;
    for (std::int64_t seqs = 0; seqs < 61; ++seqs) {
        history.push_back({history.size(), Configuration({{"seqs", seqs}})});
        history.back().outcome = Measurement{
            {{"total_tokens_per_second", seqs == 60 ? Metric{1200, 500, 2} : Metric{1000, 1, 2}}}};
    }
    const Standings standings(history, {}, {}, history.front().configuration);
    const double pooled = standings.noise();
    CHECK(pooled == Approx(std::sqrt((60 * 2 * 1e-6 + 2 * std::pow(500.0 / 1200, 2)) / 61)));
    CHECK(standings.all().front().estimate().relative_error == Approx(pooled / std::sqrt(2.0)));
    const double own = std::sqrt(2 * std::pow(500.0 / 1200, 2));
    CHECK(own > 3 * pooled);
    CHECK(standings.all().back().estimate().relative_error == Approx(own / std::sqrt(2.0)));
    CHECK(standings.all().back().estimate().replicates == 2);
}

TEST_CASE(
    "verdict: replicates of workloads give the combined figure its error, and journals keep their "
    "number") {
    const auto part = [](const char* name, double weight, Metric metric) {
        return WorkloadMetrics{name, weight, {{"rate", metric}}};
    };
    const Metric both =
        combined({part("a", 1, {100, 10, 2}), part("b", 1, {400, 20, 3})}).at("rate");
    CHECK(both.value == Approx(200));
    CHECK(both.replicates == 2);
    CHECK(*both.standard_error / both.value == Approx(std::hypot(0.5 * 0.1, 0.5 * 0.05)));
    // The other workload was measured once: as noisy as the first.
    const Metric half =
        combined({part("a", 1, {100, 10, 2}), part("b", 1, {400, {}, 1})}).at("rate");
    CHECK(*half.standard_error / half.value ==
          Approx(std::hypot(0.5 * 0.1, 0.5 * 0.1 * std::sqrt(2.0))));
    // An error within one run says nothing of replicates.
    CHECK_FALSE(combined({part("a", 1, {100, 10, 1}), part("b", 1, {400, 20, 1})})
                    .at("rate")
                    .standard_error);

    const Outcome told = Measurement{{{"rate", {1050, 350, 2}}, {"once", {3, 0.5}}}};
    CHECK(outcome_from_json(json_of(told)) == told);
    CHECK_FALSE(has(json_of(Outcome(Measurement{{{"once", {3, 0.5}}}})), "replicates"));

    // Noise on top of a table is each row's own.
    const MeasuredTable table = parse_table(rates + "8,ok,90\n8,ok,110\n", "t.csv");
    const SearchSpace space({Parameter::integer("seqs", 8, 8)});
    ReplayEvaluator noisy(table, space, {{}, 0.05});
    double squares = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        const auto outcome =
            std::get<Measurement>(noisy.evaluate(space.default_configuration(), {0, seed, "", {}}));
        const Metric& metric = outcome.metrics.at("total_tokens_per_second");
        CHECK(metric.replicates == 2);
        squares += std::pow(metric.value / 100 - 1, 2);
    }
    CHECK(std::sqrt(squares / 2000) == Approx(0.05 / std::sqrt(2.0)).epsilon(0.1));
}

TEST_CASE("verdict: figures for people") {
    CHECK(figure_text("total_tokens_per_second", 11527.138) == "11527");
    CHECK(figure_text("time_to_first_token_p95_seconds", 0.7285851391593571) == "729 ms");
    CHECK(figure_text("time_to_first_token_p95_seconds@long", 10.83033) == "10.8 s");
    CHECK(figure_text("success_ratio", 0.514) == "0.514");
    CHECK(figure_text("x", 0.0001234) == "0.000123");
    CHECK(figure_text("x", 0) == "0.00");
    CHECK(short_number_text(0.99) == "0.99");
    CHECK(short_number_text(2000) == "2000");
    CHECK(short_number_text(1e300) == "1e+300");
    CHECK(short_number_text(-0.5) == "-0.5");
    CHECK(Limit::parse(" p95_ttft < 6s ", true).readable() == "p95_ttft < 6s");
    CHECK(Limit{"latency_mean_seconds", false, 0.3}.readable() == "latency_mean_seconds <= 300 ms");
    CHECK(Limit::parse("success_ratio >= 0.99").broken_text({{"success_ratio", {0.98999}}}) ==
          "limit success_ratio >= 0.99 broken: 0.98999");
    CHECK(Limit::parse("success_ratio >= 0.99").broken_text({{"success_ratio", {0.99}}}).empty());
}

TEST_CASE("verdict: a broken limit names the workload and its own figure, in every output") {
    const std::string metric = "time_to_first_token_p95_seconds";
    const std::string workloads =
        "{workload: chat, dataset: {kind: random, input_tokens: 8, output_tokens: 8}},"
        "{workload: long, dataset: {kind: random, input_tokens: 80, output_tokens: 8}}";
    const std::string objective =
        "{maximize: total_tokens_per_second, limits: [\"" + metric + " <= 2\"]}";
    const std::string head = "seqs,workload,status,total_tokens_per_second," + metric + "\n";
    const std::string space = "{seqs: {choice: [8, 16]}, eager: false}";
    const Verdicts study(
        head +
            "8,chat,ok,100,0.2\n8,long,ok,100,1.5\n16,chat,ok,150,0.21847\n16,long,ok,150,2.4307\n",
        "", space, objective, workloads);
    CHECK(study.result.conclusion == Conclusion::keep_default);
    const std::string reason = "limit " + metric + " <= 2 broken: 2.431 s on long";
    REQUIRE(study.json["refused"].size() == 1);
    CHECK(study.json["refused"][0]["reason"].get<std::string>() == reason);
    CHECK(has(study.text, " <= 2 | verdict |\n"));
    CHECK(has(study.text, "| chat 218 ms; long 2.43 s broken | refused |\n"));  // said once
    CHECK(has(study.text, "| chat 200 ms; long 1.50 s | "));
    CHECK(study.json["limits"][0] == nlohmann::json{{"metric", metric}, {"at_most", 2}});
    CHECK(study.json["results"][1]["broken"][0] ==
          nlohmann::json{
              {"metric", metric}, {"workload", "long"}, {"at_most", 2}, {"value", 2.4307}});
    CHECK(study.json["results"][1]["metrics"][metric + "@chat"] == 0.21847);
    CHECK(study.json["results"][0]["broken"].empty());

    // The default fails: there is no gain, and nobody states one.
    const Verdicts failing(
        head + "8,chat,ok,100,0.2\n8,long,ok,100,2.5\n16,chat,ok,90,0.2\n16,long,ok,90,1\n", "",
        space, objective, workloads);
    CHECK(failing.result.conclusion == Conclusion::recommended);
    CHECK(failing.headline.title == "Recommended: the best that passes");
    CHECK(failing.headline.reason ==
          "The default itself does not pass (limit " + metric +
              " <= 2 broken: 2.5 s on long), so there is no gain to state.");
    CHECK(failing.json["recommended"]["gain"].is_null());
    CHECK_FALSE(has(failing.text, "+0.00 % over the default"));
}

TEST_CASE("verdict: what rests on a disturbed machine is inconclusive") {
    // The default alone.
    const Verdicts base(judged_rates +
                        "8,ok,1000,suspect,cpu_shared\n16,ok,1500,sound,\n32,ok,1400,sound,\n");
    CHECK(base.result.conclusion == Conclusion::inconclusive);
    CHECK(base.result.doubt == InconclusiveReason::default_disturbed);
    CHECK(base.result.keep_default);
    CHECK(base.headline.reason ==
          "The measurements of the default were disturbed (cpu_shared); 1 of 3 results were "
          "disturbed.");
    CHECK(base.headline.advice ==
          "Keep the default for now; run the study again, in a new folder, while nothing else uses "
          "the machine.");
    CHECK(base.headline.command == "toy org/m");
    CHECK(base.json["recommended"]["command"] == "toy org/m");
    CHECK(base.json["recommended"]["gain"].is_null());
    CHECK_FALSE(has(base.text, "**recommended**"));
    // The winner alone.
    const Verdicts winner(judged_rates +
                          "8,ok,1000,sound,\n16,ok,1500,suspect,gpu_throttled\n32,ok,900,sound,\n");
    CHECK(winner.result.doubt == InconclusiveReason::winner_disturbed);
    CHECK(winner.headline.reason ==
          "The measurements of the best configuration were disturbed (gpu_throttled); 1 of 3 "
          "results were disturbed.");
    CHECK_FALSE(has(winner.headline.advice, "nothing else uses"));
    // A loser alone: it decides nothing.
    const Verdicts loser(judged_rates +
                         "8,ok,1000,sound,\n16,ok,1500,sound,\n32,ok,900,suspect,cpu_shared\n");
    CHECK(loser.result.conclusion == Conclusion::recommended);
    // The default was measured in peace, all else under load.
    std::string table = judged_rates + "8,ok,1000,sound,\n";
    for (int seqs = 9; seqs < 20; ++seqs)
        table += std::to_string(seqs) + ",ok,800,suspect,cpu_shared\n";
    const Verdicts most(table, "", "{seqs: {int: {low: 8, high: 20}, default: 8}, eager: false}");
    CHECK(most.result.doubt == InconclusiveReason::most_unreliable);
    CHECK(most.headline.reason ==
          "Hardly any result can be relied on; 11 of 12 results were disturbed.");
    // What the audit refuses is not counted twice.
    const Verdicts refused(judged_rates +
                           "8,ok,1000,sound,\n16,ok,1500,unsound,cpu_shared\n32,ok,900,sound,\n");
    CHECK(refused.result.unsound == 1);
    CHECK(refused.result.disturbed == 0);
    // Suspected by the audit, but not disturbed.
    const Verdicts suspect(judged_rates + "8,ok,1000,suspect,chunks\n16,ok,1500,suspect,chunks\n");
    CHECK(suspect.result.conclusion == Conclusion::recommended);
    // Unsound: of the default alone, and of all.
    const Verdicts unsound(judged_rates + "8,ok,1000,unsound,physics\n16,ok,1500,sound,\n");
    CHECK(unsound.result.doubt == InconclusiveReason::default_unsound);
    CHECK(has(unsound.headline.reason,
              "The default's measurement cannot be believed (unsound measurement: physics"));
    const Verdicts nothing(judged_rates +
                           "8,ok,1000,unsound,physics\n16,ok,1500,unsound,physics\n");
    CHECK(nothing.result.conclusion == Conclusion::inconclusive);
    CHECK(nothing.headline.command == "toy org/m");
    CHECK_FALSE(nothing.result.best);
    // Who does not enforce the audit has decided to believe.
    const Verdicts believed(
        judged_rates + "8,ok,1000,suspect,cpu_shared\n16,ok,1500,suspect,cpu_shared\n",
        "audit: report\n");
    CHECK(believed.result.conclusion == Conclusion::recommended);
}

TEST_CASE("verdict: what is found twice of one measurement is one in the report's audit") {
    const Verdicts study(judged_rates +
                         "8,ok,1000,suspect,client client chunks\n16,ok,1500,suspect,client\n");
    const std::size_t of_client = study.json["audit"][0]["findings"].size();
    CHECK(of_client == 3);
    CHECK(has(study.text, "| client | 0 | 2 |"));
    CHECK(has(study.text, "| chunks | 0 | 1 |"));
}

TEST_CASE("verdict: each disturbance has its own remedy") {
    std::set<std::string> remedies;
    for (const std::string_view id : disturbances) {
        const Verdicts one(judged_rates + "8,ok,1000,suspect," + std::string(id) +
                           "\n16,ok,1500,sound,\n32,ok,1400,sound,\n");
        INFO(id << ": " << one.headline.advice);
        REQUIRE(one.result.doubt == InconclusiveReason::default_disturbed);
        const std::string begin =
            "Keep the default for now; run the study again, in a new folder, ";
        REQUIRE(one.headline.advice.starts_with(begin));
        CHECK(one.headline.advice.size() > begin.size() + 10);
        CHECK(has(one.headline.advice, "while nothing else uses the machine") ==
              id.ends_with("_shared"));
        remedies.insert(one.headline.advice);
    }
    CHECK(remedies.size() ==
          disturbances.size() - 1);  // of a GPU and of a CPU that others use it is the same
    const Verdicts hot(judged_rates +
                       "8,ok,1000,suspect,gpu_throttled\n16,ok,1500,sound,\n32,ok,1400,sound,\n");
    CHECK(has(hot.headline.advice, "heat"));
}

TEST_CASE("verdict: the disturbances are what the machine's watch and its document name") {
    const std::string source = SERVETUNE_SOURCE;
    const std::set<std::string, std::less<>> known(disturbances.begin(), disturbances.end());
    const std::string watch = read_file(source + "/src/host/machine_watch.cpp") +
                              read_file(source + "/src/load/audit.cpp");
    const std::string document = read_file(source + "/docs/explanation/measuring.md");
    static const std::regex id(R"rx("((?:gpu|cpu|client)_[a-z]+)",)rx");
    static const std::regex row(R"rx(\n\| `((?:gpu|cpu|client)_[a-z]+)` \|)rx");
    std::set<std::string, std::less<>> found;
    for (std::sregex_iterator at(watch.begin(), watch.end(), id), end; at != end; ++at)
        found.insert((*at)[1]);
    CHECK(found == known);
    found.clear();
    for (std::sregex_iterator at(document.begin(), document.end(), row), end; at != end; ++at)
        found.insert((*at)[1]);
    CHECK(found == known);
}

TEST_CASE("verdict: of a table the noise of all results decides, and its interval is stated") {
    // By the spread of these four alone the interval would hold zero: two degrees of freedom.
    const Verdicts study(rates + "8,ok,1000\n8,ok,1028\n16,ok,1050\n16,ok,1079\n");
    CHECK(study.result.conclusion == Conclusion::recommended);
    CHECK(study.result.gain.low > 0.01);
    CHECK(study.headline.reason == "95 % interval " + interval_text(study.result.gain) + ".");
    CHECK_FALSE(has(study.text, "decides"));
    CHECK_FALSE(has(study.text, "holds zero"));
    CHECK(study.json["recommended"]["gain"]["low"].get<double>() == study.result.gain.low);
    CHECK(study.json["recommended"]["gain"]["level"] == 0.95);
}

TEST_CASE("verdict: after the search the 99 % interval decides, and no other one is stated") {
    StudyInRounds study;
    study.add(8, 1000, Purpose::search);
    study.add(16, 1100, Purpose::search);
    // Student's t with two degrees of freedom: 95 % are +1.8 % to +8.6 %.
    for (const double gain : {0.037, 0.05, 0.063}) {
        study.add(8, 1000, Purpose::confirm);
        study.add(16, 1000 * std::exp(gain), Purpose::confirm);
    }
    const Headline headline = headline_of(study.setup, study.trials);
    CHECK(headline.conclusion == Conclusion::keep_default);
    CHECK(has(headline.given_away, " over the default (99 % interval -"));
    CHECK(has(headline.given_away, "): not proven, a larger budget may prove it."));
    const Reports reports = all_reports(study.setup, study.trials, "trials_spent");
    const auto json = nlohmann::json::parse(reports.json);
    CHECK(json["given_away"]["level"] == 0.99);
    CHECK(json["given_away"]["low"].get<double>() < 0);
    // Nor does a forecast doubt what was settled.
    for (const std::string& text : {reports.markdown, reports.html}) {
        CHECK_FALSE(has(text, "95 % interval"));
        CHECK_FALSE(has(text, "Expected gain of more trials"));
    }
    CHECK(text_of(recommend(*study.setup.problem, study.trials)) ==
          "keep the default: nothing measured is worth a change");
}

TEST_CASE("verdict: what a smaller command gives away is said, with its interval") {
    const std::string head = "seqs,eager,status,total_tokens_per_second\n";
    const std::string space = "{seqs: {choice: [8, 16]}, eager: {choice: [false, true]}}";
    const Verdicts study(
        head + "8,false,ok,1000\n16,false,ok,1200\n16,true,ok,1206\n8,true,ok,1000\n", "", space);
    CHECK(study.result.conclusion == Conclusion::recommended);
    REQUIRE(study.result.given_away);
    CHECK(study.result.given_away->value == Approx(0.005));
    CHECK(study.result.given_away->low < 0);
    CHECK(study.json["given_away"]["value"].get<double>() == Approx(0.005));
    CHECK(has(study.text,
              "The highest figure measured is 1206 (eager = true, seqs = 16), +0.50 % over the "
              "recommended one (one measurement each: "
              "no interval"));
    CHECK(has(study.text,
              "): less than the 1 % that a change is worth, so the smaller command is "
              "recommended."));
    const Verdicts times(
        "seqs,eager,status,latency_mean_seconds\n8,false,ok,1\n16,false,ok,0.8\n16,true,ok,0."
        "796\n8,true,ok,1\n",
        "", space, "{minimize: latency_mean_seconds}");
    CHECK(has(times.text, "The lowest figure measured is 796"));
    // More than min_gain, and not to be told from noise.
    const Verdicts noisy(
        head + "8,false,ok,1000\n16,false,ok,1200\n16,true,ok,1220\n8,true,ok,1000\n", "", space);
    CHECK(noisy.result.given_away->value == Approx(1220.0 / 1200 - 1));
    CHECK(has(noisy.text, "): not proven, so the smaller command is recommended."));
    // Nothing is.
    const Verdicts none(
        head + "8,false,ok,1000\n16,false,ok,1200\n16,true,ok,1100\n8,true,ok,1000\n", "", space);
    CHECK_FALSE(none.result.given_away);
    CHECK(none.json["given_away"].is_null());
    CHECK(none.headline.given_away.empty());
}

TEST_CASE("verdict: the largest proven gain wins, not the best average of one lucky run") {
    const std::string head = "seqs,eager,status,total_tokens_per_second\n";
    const std::string space = "{seqs: {choice: [8, 16]}, eager: {choice: [false, true]}}";
    const auto rows = [](const std::string& configuration, std::initializer_list<int> values) {
        std::string text;
        for (const int value : values)
            text += configuration + ",ok," + std::to_string(value) + "\n";
        return text;
    };
    // With 3 % noise one run at +15 % proves less than five at +14 %.
    const std::string proven = head + rows("8,false", {970, 1030, 1000, 985, 1015}) +
                               rows("16,false", {1110, 1170, 1140, 1125, 1155});
    const Verdicts lucky(proven + "8,true,ok,1150\n", "noise_cv: 3%\n", space);
    CHECK(lucky.result.conclusion == Conclusion::recommended);
    CHECK(lucky.result.recommended.number("seqs") == 16);
    CHECK(lucky.result.best != lucky.result.recommended);
    CHECK(has(lucky.headline.given_away,
              ", so the configuration with the larger proven gain is recommended."));
    // A single run does not stand for less of a command, as many runs do.
    const std::string large = head + rows("8,false", {970, 1030, 1000, 985, 1015}) +
                              rows("16,true", {1140, 1200, 1170, 1155, 1185});
    const Verdicts single(large + "16,false,ok,1150\n", "noise_cv: 3%\n", space);
    CHECK(single.result.best == single.result.recommended);
    const Verdicts measured(large + rows("16,false", {1130, 1190, 1160, 1145, 1175}),
                            "noise_cv: 3%\n", space);
    CHECK(measured.result.best != measured.result.recommended);
    CHECK(has(measured.headline.given_away, "so the smaller command is recommended"));
}

TEST_CASE(
    "verdict: what only one lucky run of the search puts above the recommended one gives nothing "
    "away") {
    // Of the rounds after the search; 16 is best by its mean, and 1 % slower in every round.
    StudyInRounds study;
    study.add(8, 1000, Purpose::search);
    study.add(16, 2000, Purpose::search);
    study.add(32, 1204, Purpose::search);
    for (const double noise : {0.0, 1.0, -1.0, 2.0})
        for (const auto& [seqs, rate] :
             {std::pair{8, 1000.0}, std::pair{16, 1190.0}, std::pair{32, 1204.0}})
            study.add(seqs, rate + noise, Purpose::confirm);
    const Headline headline = headline_of(study.setup, study.trials);
    const auto json =
        nlohmann::json::parse(json_report(study.setup, study.trials, "strategy_finished"));
    REQUIRE(headline.conclusion == Conclusion::recommended);
    CHECK(json["recommended"]["configuration"]["seqs"] == 32);
    CHECK(json["best_observed"]["configuration"]["seqs"] == 16);
    REQUIRE(json["given_away"]["value"].get<double>() < 0);
    CHECK(headline.given_away.empty());
}

TEST_CASE("verdict: nothing measured, nothing passing") {
    const Verdicts broken(
        "seqs,status,total_tokens_per_second,message\n8,out_of_memory,,no "
        "room\n16,out_of_memory,,no room\n32,ok,-1,\n");
    CHECK(broken.result.conclusion == Conclusion::nothing_passes);
    CHECK(broken.headline.reason ==
          "No measured configuration passes. The audit refuses 1 measurement, for order: total "
          "tokens/s = -1; no count, rate or duration is "
          "negative; impossible: the tool counted wrong, or the figure was changed. 2 trials "
          "failed, out_of_memory: no room.");
    CHECK(broken.headline.command.empty());
    CHECK(broken.json["recommended"].is_null());
    CHECK(has(broken.text, "**Nothing can be recommended.**\n\nNo measured configuration passes."));
}

TEST_CASE(
    "recommend: a default whose measurement is unsound is kept, one that breaks a limit is not") {
    Problem problem(SearchSpace({Parameter::choice("a", {"x", "y"})}),
                    Objective{"rate", Direction::maximize, {Limit::parse("success_ratio >= 0.99")}},
                    Decision{});
    problem.replicates_inform = false;
    const auto told = [&](std::uint64_t id, const char* a, double rate, double success,
                          Verdict verdict) {
        Trial trial{id, problem.space.completed({{"a", a}})};
        trial.outcome =
            Measurement{{{"rate", {rate}}, {"success_ratio", {success}}}, {verdict, {}}};
        return trial;
    };
    const std::vector<Trial> unsound{told(0, "x", 100, 1, Verdict::unsound),
                                     told(1, "y", 50, 1, Verdict::sound)};
    const Recommendation kept = recommend(problem, unsound);
    CHECK(kept.default_unsound);
    CHECK(kept.keep_default);
    CHECK(kept.recommended == problem.space.default_configuration());
    CHECK(kept.best == problem.space.completed({{"a", "y"}}));
    const std::vector<Trial> failing{told(0, "x", 100, 0.5, Verdict::unsound),
                                     told(1, "y", 50, 1, Verdict::sound)};
    CHECK_FALSE(recommend(problem, failing).default_unsound);
    CHECK_FALSE(recommend(problem, failing).keep_default);
}
