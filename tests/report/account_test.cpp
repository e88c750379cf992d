// SPDX-License-Identifier: Apache-2.0
// What limits and what more trials bring: of studies small enough to compute by hand.
#include "report/chart.hpp"
#include "report/content.hpp"

#include "report/explain_report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
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

struct AccountStudy {
    explicit AccountStudy(const std::string& rest = "",
                          const std::string& objective = "{maximize: rate}")
        : setup(set_up(load_study(folder.write("study.yaml",
                                               "space: {mode: {choice: [slow, fast]}, size: "
                                               "{choice: [1, 2, 4], ordered: true}}\n"
                                               "objective: " +
                                                   objective + "\nstrategy: exhaustive\n" + rest),
                                  shipped_catalogue, "", MeasuredBy::outside),
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

/// What is to be said of a study that was told.
struct ToldAccount {
    explicit ToldAccount(AccountStudy& study)
        : view(study.view()),
          account(Explained::of(view)),
          text(text_of(explanation_of({view, "", &account}), {})) {}
    ReportView view;
    Explained account;
    std::string text;
};

Outcome rated(const Trial& trial) {
    const double noise = 1 + 0.001 * (double(trial.id % 3) - 1);
    return Measurement{{{"rate", {invented_rate(trial.configuration) * noise}}}};
}

}  // namespace

TEST_CASE(
    "what limits: the limit that refuses something better, the margin, and the end of a range") {
    AccountStudy study("", "{maximize: rate, limits: [wait_seconds <= 0.5]}");
    study.tell([](const Trial& trial) -> Outcome {
        const Value size = *trial.configuration.find("size");
        const bool fast = *trial.configuration.find("mode") == Value("fast");
        // Slow gains 10 % with size 2, 20 % with size 4. Fast would be better, and waits too long.
        const double rate = (size == Value(std::int64_t{4})   ? 1200
                             : size == Value(std::int64_t{2}) ? 1100
                                                              : 1000) *
                            (fast ? 1.25 : 1);
        const double noise = 1 + 0.001 * (double(trial.id % 3) - 1);
        return Measurement{{{"rate", {rate * noise}}, {"wait_seconds", {fast ? 0.9 : 0.42}}}};
    });
    const auto [view, account, text] = ToldAccount(study);
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
    INFO(text);
    CHECK(has(text,
              "Limit wait_seconds <= 0.5: 420 ms, 80.0 ms to spare. It refuses mode = fast, size = "
              "4, which is +2"));
    CHECK(has(text, "size = 4 is the largest value that was searched: widen its range"));
}

TEST_CASE("headline: it says which configuration was started and is not measured") {
    AccountStudy study;
    study.tell(rated, 3);
    std::vector<Trial> trials = study.journal.trials();
    CHECK_FALSE(has(headline_of(study.setup, trials).reason, "no result yet"));
    trials.back().outcome = SharedOutcome{};
    CHECK(has(headline_of(study.setup, trials).reason,
              "Trial 2 has no result yet: " +
                  ReportView(study.setup, trials).changes(trials.back().configuration) + "."));
}

TEST_CASE("one more hour: nothing is left where all was tried, and the pace is the study's") {
    AccountStudy study;
    study.tell(rated);
    const auto [view, account, text] = ToldAccount(study);
    REQUIRE(account.more);
    CHECK(account.more->further.untried == 0);
    CHECK(account.more->further.gain.high == 0);
    CHECK_FALSE(account.more->likely);
    CHECK(has(text, "Nothing: every configuration of the space was tried."));
}

TEST_CASE("account: no default, no winner, one trial, all failed, several goals") {
    SECTION("one trial") {
        AccountStudy study;
        study.tell(rated, 1);
        const auto [view, account, text] = ToldAccount(study);
        CHECK_FALSE(account.more);
        CHECK(has(account.no_more, "1 configuration measured, and the models need 4"));
        CHECK(has(text, "Not known: 1 configuration"));
    }
    SECTION("no trial") {
        AccountStudy study;
        CHECK_FALSE(Explained::of(study.view()).limits);
    }
    SECTION("all failed") {
        AccountStudy study;
        study.tell([](const Trial&) { return Failure{FailureKind::out_of_memory, "no room"}; });
        const auto [view, account, text] = ToldAccount(study);
        CHECK_FALSE(account.limits);
        CHECK(has(text, "nothing passes yet"));
    }
    SECTION("the default fails") {
        AccountStudy study;
        study.tell([&](const Trial& trial) -> Outcome {
            if (trial.configuration == study.setup.problem->space.default_configuration())
                return Failure{FailureKind::hung, "stuck"};
            return rated(trial);
        });
        const auto [view, account, text] = ToldAccount(study);
        CHECK(account.limits);
        CHECK_FALSE(text.empty());
    }
    SECTION("several goals") {
        AccountStudy study("", "{maximize: rate, minimize: watts}");
        study.tell([](const Trial& trial) -> Outcome {
            Outcome outcome = rated(trial);
            std::get<Measurement>(outcome).metrics["watts"] = {500};
            return outcome;
        });
        CHECK(Explained::of(study.view()).limits);
    }
}

TEST_CASE("account: what was disturbed forecasts nothing") {
    AccountStudy study;
    study.tell([](const Trial& trial) {
        Outcome outcome = rated(trial);
        if (trial.id > 1)
            std::get<Measurement>(outcome).validity = {Verdict::suspect, {{"cpu_shared"}}};
        return outcome;
    });
    const auto [view, account, text] = ToldAccount(study);
    CHECK(view.recommendation.conclusion == Conclusion::inconclusive);
    CHECK_FALSE(account.more);
    CHECK(has(text, "Not known: the study is inconclusive."));
    CHECK_FALSE(has(text, "are expected to gain"));
}

TEST_CASE("explanation: explain and the report have the same object") {
    AccountStudy study;
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
    CHECK(explained.at("one_more_hour").at("likely") == false);
    for (const char* id : {"verdict", "hour", "certain", "study"})
        CHECK(has(
            reports.html,
            std::string(id == std::string("verdict") ? " recommended" : "<section class=\"brief") +
                "\" aria-labelledby=\"" + id + "\">"));
    CHECK(has(std::string(page_css.text), "main>section:not(.brief)"));  // all else is not printed
    CHECK_FALSE(
        nlohmann::json::parse(json_report(study.setup, trials, "", false)).contains("explanation"));
}
