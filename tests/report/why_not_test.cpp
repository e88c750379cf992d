// SPDX-License-Identifier: Apache-2.0
// `explain --why-not`: a rule, what was measured, or what the models expect of it.
#include "report/explain_report.hpp"

#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <functional>

using namespace servetune;
using namespace servetune::test;

namespace {

struct AskedStudy {
    explicit AskedStudy(const std::string& more = "")
        : setup(set_up(
              load_study(
                  folder.write(
                      "study.yaml",
                      "space: {mode: {choice: [slow, fast, wild]}, size: {choice: [1, 2, 4]}}\n"
                      "objective: {maximize: rate}\nstrategy: exhaustive\n" +
                          more),
                  shipped_catalogue, "", MeasuredBy::outside),
              folder.path() / "out")) {}

    /// Tells the first trials of a run that has a budget of 60.
    void tell(std::size_t trials, const std::function<Outcome(const Trial&)>& outcome) {
        Study study(*setup.problem, *setup.strategy, journal);
        for (std::size_t i = 0; i < trials; ++i)
            if (const auto trial = study.ask({.trials = 60}))
                study.tell(trial->id, outcome(*trial));
    }
    [[nodiscard]] std::pair<std::string, nlohmann::json> why_not(const Assignment& changes) const {
        const ExplainReport report = explain_why_not(setup, journal.trials(), changes);
        return {report.text, nlohmann::json::parse(report.json)};
    }

    TemporaryFolder folder{};
    StudySetup setup;
    MemoryJournal journal{};
};

Outcome tokens_of(const Trial& trial) {
    const double noise = 1 + 0.001 * double(trial.id % 3);
    const bool fast = *trial.configuration.find("mode") == Value("fast");
    if (*trial.configuration.find("mode") == Value("wild"))
        return Failure{FailureKind::other, "too wild"};
    return Measurement{{{"rate", {(fast ? 1200 : 1000) * noise}}}};
}

}  // namespace

TEST_CASE("why not: every rule that it breaks is told") {
    AskedStudy study(
        "constraints:\n  - {require: \"size <= 2 or mode in ['slow']\", because: it is too large}\n"
        "  - {forbid: {mode: [fast], size: [4]}, because: it melts}\n");
    study.tell(1, tokens_of);
    const auto [text, json] = study.why_not({{"mode", "fast"}, {"size", std::int64_t{4}}});
    CAPTURE(text);
    REQUIRE(json.at("rules").size() == 2);
    CHECK(has(text, "it is too large"));
    CHECK(has(text, "it melts"));
    CHECK(json.at("told").is_null());
}

TEST_CASE("why not: of what was not confirmed there is no interval") {
    AskedStudy study;
    study.tell(9, tokens_of);  // the search alone
    const auto [text, json] = study.why_not({{"mode", "fast"}, {"size", std::int64_t{4}}});
    CAPTURE(text);
    CHECK(has(text, "  told      rate 1"));
    CHECK(has(text, "against what is recommended (no interval)"));
    CHECK_FALSE(has(text, "inf"));
    CHECK(json.at("told").at("gain").at("value").get<double>() == Approx(0.2).margin(0.01));
    CHECK(json.at("told").at("gain").at("low").is_null());
    CHECK(json.at("told").at("gain").at("high").is_null());
    CHECK(json.at("rules").empty());
}

TEST_CASE("why not: what was confirmed has an interval, and what is recommended is said to be") {
    AskedStudy study;
    study.tell(60, tokens_of);
    const auto [text, json] = study.why_not({{"mode", "slow"}, {"size", std::int64_t{1}}});
    CAPTURE(text);
    CHECK(has(text, "against what is recommended (99 % interval -"));
    CHECK(json.at("told").at("gain").at("high").get<double>() < 0);
    const auto [same, none] = study.why_not({});
    CHECK(has(same, "it is what the study recommends"));
    CHECK(none.at("told").is_null());
    const auto [refused, why] = study.why_not({{"mode", "wild"}});
    CHECK(has(refused, "too wild"));
    CHECK(has(why.at("told").at("refused").get<std::string>(), "too wild"));
    CHECK(why.at("told").at("gain").is_null());
}

TEST_CASE("why not: where nothing is recommended that is said") {
    AskedStudy study;
    study.tell(9, [](const Trial&) { return Failure{FailureKind::other, "no"}; });
    const std::string text = study.why_not({}).first;
    CAPTURE(text);
    CHECK(has(text, "nothing passes, so the study recommends nothing"));
    CHECK_FALSE(has(text, "it is what"));
}

TEST_CASE("why not: of what was not tried, what is expected") {
    AskedStudy study;
    const auto [nothing, no_json] = study.why_not({{"mode", "fast"}});
    CHECK(has(nothing, "nothing was told, so nothing is expected of it"));
    CHECK(no_json.at("expected").is_null());
    study.tell(1, tokens_of);
    const auto [text, json] = study.why_not({{"mode", "fast"}});
    CAPTURE(text);
    CHECK(has(text, "  told      nothing: it was not tried"));
    CHECK(has(text, "  expected  "));
    CHECK(json.at("told").is_null());
    CHECK_FALSE(json.at("expected").is_null());
}
