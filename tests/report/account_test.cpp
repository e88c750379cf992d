// SPDX-License-Identifier: Apache-2.0
// The ladder, what limits, one more hour and cost: of studies small enough to compute by hand.
#include "report/chart.hpp"
#include "report/content.hpp"

#include "report/explain_report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Two parameters that are better together: 1000, 1100 with fast, 1050 with size 2, 1300 with both.
double invented_rate(const Configuration& one) {
    const bool fast = *one.find("mode") == Value("fast");
    const Value size = *one.find("size");
    const bool two = size == Value(std::int64_t{2});
    if (size == Value(std::int64_t{4})) return 700;
    return fast ? (two ? 1300 : 1100) : (two ? 1050 : 1000);
}

struct LadderStudy {
    explicit LadderStudy(const std::string& rest = "",
                         const std::string& objective = "{maximize: rate}")
        : setup(set_up(load_study(folder.write("study.yaml",
                                               "space: {mode: {choice: [slow, fast]}, size: "
                                               "{choice: [1, 2, 4], ordered: true}}\n"
                                               "objective: " +
                                                   objective + "\nstrategy: exhaustive\n" + rest),
                                  Catalogue(search_spaces), "", MeasuredBy::outside),
                       folder.path() / "out")) {}

    /// A whole study of at most 60 trials, or the first of them. Each takes ten minutes.
    void tell(const std::function<Outcome(const Trial&)>& outcome, std::size_t trials = 60) {
        double now = 0;
        Study study(*setup.problem, *setup.strategy, journal, {0, {}, [&] { return now; }});
        for (std::size_t i = 0; i < trials; ++i) {
            const auto trial = study.ask({.trials = 60});
            if (!trial) break;
            study.start(trial->id);
            now += 600;
            study.tell(trial->id, outcome(*trial));
        }
    }
    [[nodiscard]] ReportView view() {
        told = journal.trials();
        return {setup, told};
    }

    TemporaryFolder folder{};
    StudySetup setup;
    MemoryJournal journal{};
    std::vector<Trial> told{};
};

Outcome rated(const Trial& trial) {
    const double noise = 1 + 0.001 * (static_cast<double>(trial.id % 3) - 1);
    return Measurement{{{"rate", {invented_rate(trial.configuration) * noise}}}};
}

/// The account's sections as a terminal has them.
std::string said_of(const Account& account, const ReportView& view) {
    Document document;
    add_account(document, account, view);
    return text_of(document, {});
}

}  // namespace

TEST_CASE("ladder: measured steps multiply to the gain, each beside what it gives alone") {
    LadderStudy study;
    study.tell(rated);
    const ReportView view = study.view();
    REQUIRE(view.recommendation.conclusion == Conclusion::recommended);
    REQUIRE(view.recommendation.recommended.text() == "mode=fast size=2");
    const Account account = account_of(view);
    REQUIRE(account.ladder);
    const Ladder& ladder = *account.ladder;
    REQUIRE(ladder.steps.size() == 2);
    CHECK(ladder.all_measured());
    CHECK(ladder.steps[0].changes ==
          std::vector<std::string>{"mode = fast"});  // 1100 is more than 1050
    CHECK(ladder.steps[1].changes == std::vector<std::string>{"size = 2"});
    CHECK(ladder.steps[0].gain.gain.value == Approx(0.10).margin(0.004));
    CHECK(ladder.steps[1].gain.gain.value == Approx(1300.0 / 1100 - 1).margin(0.004));
    CHECK((1 + ladder.steps[0].gain.gain.value) * (1 + ladder.steps[1].gain.gain.value) ==
          Approx(1 + view.recommendation.gain.value));
    REQUIRE(ladder.steps[1].alone);
    CHECK(ladder.steps[1].alone->gain.value == Approx(0.05).margin(0.004));
    CHECK(has(said_of(account, view), "the gains multiply to +30"));
}

TEST_CASE("ladder: a step that nobody measured is predicted, and the sum still holds") {
    LadderStudy study;
    // The search never sees a single change of the winner's: both fail by chance of the machine.
    study.tell([](const Trial& trial) -> Outcome {
        const std::string text = trial.configuration.text();
        if (text == "mode=fast size=1" || text == "mode=slow size=2")
            return Failure{FailureKind::not_ready_in_time, "too slow"};
        return rated(trial);
    });
    const ReportView view = study.view();
    REQUIRE(view.recommendation.recommended.text() == "mode=fast size=2");
    const Account account = account_of(view);
    REQUIRE(account.ladder);
    const Ladder& ladder = *account.ladder;
    REQUIRE(ladder.steps.size() == 2);
    CHECK_FALSE(ladder.steps[0].gain.measured);
    CHECK(ladder.steps[0].gain.gain.has_interval());
    CHECK(has(ladder.steps[0].refused, "too slow"));
    CHECK(std::log1p(ladder.steps[0].gain.gain.value) +
              std::log1p(ladder.steps[1].gain.gain.value) ==
          Approx(std::log1p(view.recommendation.gain.value)));
    CHECK(has(said_of(account, view), "predicted"));
}

TEST_CASE(
    "what limits: the limit that refuses something better, the margin, and the end of a range") {
    LadderStudy study("", "{maximize: rate, limits: [wait_seconds <= 0.5]}");
    study.tell([](const Trial& trial) -> Outcome {
        const Value size = *trial.configuration.find("size");
        const bool fast = *trial.configuration.find("mode") == Value("fast");
        // Slow gains 10 % with size 2, 20 % with size 4. Fast would be better, and waits too long.
        const double rate = (size == Value(std::int64_t{4})   ? 1200
                             : size == Value(std::int64_t{2}) ? 1100
                                                              : 1000) *
                            (fast ? 1.25 : 1);
        const double noise = 1 + 0.001 * (static_cast<double>(trial.id % 3) - 1);
        return Measurement{{{"rate", {rate * noise}}, {"wait_seconds", {fast ? 0.9 : 0.42}}}};
    });
    const ReportView view = study.view();
    REQUIRE(view.recommendation.recommended.text() == "mode=slow size=4");
    const auto limits = what_limits(view);
    REQUIRE(limits);
    REQUIRE(limits->limits.size() == 1);
    CHECK(limits->limits[0].margin == Approx(0.08));
    REQUIRE(limits->limits[0].refuses);
    CHECK(limits->limits[0].refuses->text() == "mode=fast size=4");
    CHECK(limits->limits[0].costs->value == Approx(0.25).margin(0.005));
    REQUIRE(limits->at_the_end.size() == 1);
    CHECK(limits->at_the_end[0].parameter == "size");
    CHECK(limits->at_the_end[0].largest);
    const std::string text = said_of(account_of(view), view);
    INFO(text);
    CHECK(has(text, "420.00 ms, 80.00 ms to spare. It refuses mode = fast, size = 4, which is +2"));
    CHECK(has(text, "size = 4 is the largest value that was searched: widen its range"));
}

TEST_CASE("one more hour: nothing is left where all was tried, and the pace is the study's") {
    LadderStudy study;
    study.tell(rated);
    const ReportView view = study.view();
    const Account account = account_of(view);
    REQUIRE(account.more);
    CHECK(account.more->further.untried == 0);
    CHECK(account.more->further.gain.high == 0);
    CHECK_FALSE(account.more->likely);
    CHECK(has(said_of(account, view), "Nothing: every configuration of the space was tried."));
}

TEST_CASE("account: no default, no winner, one trial, all failed, several goals") {
    SECTION("one trial") {
        LadderStudy study;
        study.tell(rated, 1);
        const ReportView view = study.view();
        const Account account = account_of(view);
        CHECK_FALSE(account.ladder);
        CHECK_FALSE(account.more);
        CHECK(has(account.no_more, "1 configuration measured, and the models need 4"));
        CHECK(has(said_of(account, view), "Not known: 1 configuration"));
    }
    SECTION("no trial") {
        LadderStudy study;
        const ReportView view = study.view();
        CHECK_FALSE(account_of(view).ladder);
        CHECK_FALSE(account_of(view).limits);
    }
    SECTION("all failed") {
        LadderStudy study;
        study.tell([](const Trial&) { return Failure{FailureKind::out_of_memory, "no room"}; });
        const ReportView view = study.view();
        const Account account = account_of(view);
        CHECK_FALSE(account.ladder);
        CHECK_FALSE(account.limits);
        CHECK(account.costs.all.empty());
        CHECK(has(said_of(account, view), "nothing passes yet"));
    }
    SECTION("the default fails") {
        LadderStudy study;
        study.tell([&](const Trial& trial) -> Outcome {
            if (trial.configuration == study.setup.problem->space.default_configuration())
                return Failure{FailureKind::hung, "stuck"};
            return rated(trial);
        });
        const ReportView view = study.view();
        const Account account = account_of(view);
        CHECK_FALSE(account.ladder);  // there is no gain over it
        CHECK(account.limits);
        CHECK_FALSE(said_of(account, view).empty());
    }
    SECTION("several goals") {
        LadderStudy study("", "{maximize: rate, minimize: watts}");
        study.tell([](const Trial& trial) -> Outcome {
            Outcome outcome = rated(trial);
            std::get<Measurement>(outcome).metrics["watts"] = {500};
            return outcome;
        });
        const ReportView view = study.view();
        REQUIRE(account_of(view).ladder);
        CHECK(account_of(view).ladder->steps.size() == 2);
    }
}

TEST_CASE("cost: dollars by the price of the hour, kWh by joules, with intervals") {
    // Eight devices for 24 dollars an hour, an engine on two of them: 6 dollars.
    const TemporaryFolder folder;
    const StudySetup setup =
        set_up(load_study(folder.write("study.yaml",
                                       "study: cost\nmodel: Qwen/Qwen3-8B\nhardware: {device: "
                                       "h100-sxm, count: 8, price_per_hour: 24}\nengine: "
                                       "vllm\nworkloads: [{workload: chat, dataset: {kind: random, "
                                       "input_tokens: 8, output_tokens: 8}}]\n"
                                       "objective: {maximize: output_tokens_per_second}\nothers: "
                                       "default\nstrategy: exhaustive\n"
                                       "arguments: [--tensor-parallel-size=2]\nspace: "
                                       "{max_num_seqs: {choice: [64, 128], ordered: true, default: "
                                       "64}}\nevaluator: deploy\n"),
                          Catalogue(search_spaces)),
               folder.path() / "out");
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < 4; ++i) {
        Trial trial{i, setup.problem->feasible.at(static_cast<double>(i % 2)), i < 2 ? "" : "", 0,
                    "why"};
        const bool faster = i % 2 == 1;
        const double wobble = i < 2 ? 0.99 : 1.01;
        trial.outcome =
            Measurement{{{"output_tokens_per_second", {(faster ? 2000 : 1000) * wobble}},
                         {"joules_per_output_token", {faster ? 0.18 : 0.36}}}};
        trials.push_back(std::move(trial));
    }
    const ReportView view(setup, trials);
    const ServingCosts costs = serving_costs(view);
    REQUIRE(costs.all.size() == 2);
    // 6 / 3600 / 1000 * 1e6 = 1.667 dollars, a little more for the mean of 1 / 0.99 and 1 / 1.01.
    REQUIRE(costs.all[0].unit == "USD");
    REQUIRE(costs.all[0].of_default);
    CHECK(costs.all[0].of_default->value == Approx(1.6667).epsilon(0.001));
    REQUIRE(costs.all[0].of_default->low);
    // 2 configurations with 2 values each at +-1 %: s^2 = 4e-4 / 2, n = 2, t(2) = 4.303.
    CHECK(std::log(*costs.all[0].of_default->high / costs.all[0].of_default->value) ==
          Approx(4.3027 * std::sqrt(2e-4 / 2)).epsilon(0.01));
    REQUIRE(costs.all[1].unit == "kWh");
    CHECK(costs.all[1].of_default->value == Approx(0.1));  // 0.36 J x 1e6 / 3.6e6
    CHECK(costs.no_dollars.empty());
    CHECK(costs.no_energy.empty());
}

TEST_CASE("cost: without a price that is said, and where the rates are not known") {
    LadderStudy study;
    study.tell(rated);
    const ServingCosts costs = serving_costs(study.view());
    CHECK(costs.all.empty());
    CHECK(has(costs.no_dollars, "price_per_hour"));
    CHECK_FALSE(costs.no_energy.empty());
}

TEST_CASE("explanation: explain and the report have the same object") {
    LadderStudy study;
    study.tell(rated);
    const auto trials = study.journal.trials();
    const ExplainReport explain = explain_study(study.setup, trials);
    const auto json = nlohmann::json::parse(explain.json);
    const Reports reports = all_reports(study.setup, trials, "");
    for (const char* name : {"effects", "explanation"})
        CHECK(nlohmann::json::parse(reports.json).at(name) == json.at(name));
    for (const char* title : {"Interactions", "What the parameters do"})
        CHECK(has(explain.text, title));
    const auto& explained = json.at("explanation");
    CHECK(explained.at("ladder").at("steps").size() == 2);
    CHECK(explained.at("one_more_hour").at("likely") == false);
    CHECK(has(reports.markdown, "## From the default to the recommended command"));
    for (const char* id :
         {"verdict", "ladder", "limits", "hour", "cost", "certain", "back", "study"})
        CHECK(has(
            reports.html,
            std::string(id == std::string("verdict") ? " recommended" : "<section class=\"brief") +
                "\" aria-labelledby=\"" + id + "\">"));
    CHECK(has(std::string(page_css.text), "main>section:not(.brief)"));  // all else is not printed
    CHECK_FALSE(
        nlohmann::json::parse(json_report(study.setup, trials, "", false)).contains("explanation"));
}
