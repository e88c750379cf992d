// SPDX-License-Identifier: Apache-2.0
// Which of a recipe's changes earn their place: the recipe against itself without one change each.
#include "servetune/report.hpp"
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

constexpr double disturbed = 1;  ///< a rate that something else made

/// A study of a recipe of three changes, measured outside.
Reports reports_of(const std::string& stages,
                   const std::function<double(const Configuration&)>& rate) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.write(
        "study.yaml",
        "space: {fuse: {choice: [no, yes]}, batch: {choice: [8, 64]}, chatter: {choice: [1, 20]}}\n"
        "objective: {maximize: rate}\n"
        "strategy: {staged: {compare_with: baseline, stages: [" +
            stages + "]}}\n");
    const StudySetup setup =
        set_up(load_study(file, shipped_catalogue, "", MeasuredBy::outside), folder.path() / "out");
    MemoryJournal journal;
    Study study(*setup.problem, *setup.strategy, journal);
    int told = 0;
    while (const auto trial = study.ask({.trials = 9})) {
        const double figure = rate(trial->configuration) * (++told % 2 == 0 ? 1.001 : 0.999);
        if (figure > 0 && rate(trial->configuration) == disturbed) {
            Measurement measured{{{"rate", {figure}}}};
            measured.validity.verdict = Verdict::unsound;
            study.tell(trial->id, measured);
        } else if (figure > 0) study.tell(trial->id, Measurement{{{"rate", {figure}}}});
        else study.tell(trial->id, Failure{FailureKind::out_of_memory, "no room for the cache"});
    }
    return all_reports(setup, study.trials(), "");
}

bool is(const Configuration& configuration, const std::string& name, const Value& value) {
    return *configuration.find(name) == value;
}

/// `fuse` gives 20 %, `batch` takes 10 %, `chatter` does nothing.
double recipe_rate(const Configuration& one) {
    return 1000 * (is(one, "fuse", Value("yes")) ? 1.2 : 1) *
           (is(one, "batch", Value(std::int64_t(64))) ? 0.9 : 1);
}

const std::string recipe = "{recipe: [{fuse: 'yes', batch: 64, chatter: 20}]}";
const std::string less_one =
    recipe +
    ", {without fuse: [{batch: 64, chatter: 20}]}, {without batch: [{fuse: 'yes', "
    "chatter: 20}]}, {without chatter: [{fuse: 'yes', batch: 64}]}";

}  // namespace

TEST_CASE("recipe: the report begins with what each change gains, costs, or does not do") {
    const Reports reports = reports_of(less_one, recipe_rate);
    const auto json = nlohmann::json::parse(reports.json);
    const auto& changes = json.at("recipe").at("changes");
    REQUIRE(changes.size() == 3);
    // In the order of their names; by hand: 1080 / 1200, 1080 / 1080, 1080 / 900.
    const std::vector<std::tuple<std::string, double, std::string>> expected{
        {"batch", -0.1, "costs"}, {"chatter", 0, "nothing seen"}, {"fuse", 0.2, "earns its place"}};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto& [name, gain, verdict] = expected[i];
        INFO(changes[i].dump());
        CHECK(changes[i].at("parameter") == name);
        CHECK(changes[i].at("gain").at("value").get<double>() == Approx(gain).margin(0.0025));
        CHECK(changes[i].at("verdict") == verdict);
        // One measurement of each, and three comparisons that hold together with 95 %: the
        // 0.975^(1/3) point of the normal distribution is 2.39089.
        const double noise = json.at("noise").at("value").get<double>();
        CHECK(noise > 0);
        const double times = 1 + changes[i].at("gain").at("value").get<double>();
        const bool again = name == "batch";  // the recipe without it was confirmed
        const double spread = 2.39089 * noise * std::sqrt(again ? 1.5 : 2.0);
        CHECK(changes[i].at("gain").at("low").get<double>() ==
              Approx(times * std::exp(-spread) - 1).margin(1e-4));
        CHECK(changes[i].at("gain").at("high").get<double>() ==
              Approx(times * std::exp(spread) - 1).margin(1e-4));
    }
    CHECK(changes[1].at("recipe") == 20);
    CHECK(changes[1].at("without") == 1);
    INFO(reports.markdown);
    const auto at = reports.markdown.find("## Which of the recipe's changes earn their place");
    CHECK(at < reports.markdown.find("## Conclusion"));
    CHECK(has(reports.markdown,
              "Nothing was seen of chatter: without any one the recipe is as fast"));
    CHECK(reports.html.find("id=\"recipe\"") < reports.html.find("id=\"verdict\""));
}

TEST_CASE("recipe: a change without which nothing starts earns its place, one that fails costs") {
    const auto needs = [](const std::string& name, const Value& value) {
        return [=](const Configuration& one) {
            return is(one, "chatter", Value(std::int64_t(20))) && is(one, name, value)
                       ? 0.0
                       : recipe_rate(one);
        };
    };
    const auto changes = [](const Reports& of) {
        return nlohmann::json::parse(of.json).at("recipe").at("changes");
    };
    const auto without = changes(reports_of(less_one, needs("fuse", Value("no"))));
    CHECK(without[2].at("verdict") == "earns its place");
    CHECK(without[2].at("gain").is_null());
    CHECK(has(without[2].at("reason").get<std::string>(), "without it: "));
    CHECK(has(without[2].at("reason").get<std::string>(), "no room for the cache"));
    const auto with = changes(reports_of(less_one, needs("fuse", Value("yes"))));
    CHECK(with[1].at("verdict") == "costs");
    CHECK(with[2].at("verdict") == "costs");
}

TEST_CASE("recipe: of what a disturbed measurement says nothing is seen") {
    const Reports reports = reports_of(less_one, [](const Configuration& one) {
        return is(one, "fuse", Value("no")) && is(one, "chatter", Value(std::int64_t(20)))
                   ? disturbed
                   : recipe_rate(one);
    });
    const auto changes = nlohmann::json::parse(reports.json).at("recipe").at("changes");
    CHECK(changes[2].at("verdict") == "nothing seen");
    CHECK(has(changes[2].at("reason").get<std::string>(), "unsound"));
}

TEST_CASE("recipe: one neighbour is no table, and what was not measured says so") {
    CHECK_FALSE(nlohmann::json::parse(
                    reports_of(recipe + ", {less: [{fuse: 'yes', batch: 64}]}", recipe_rate).json)
                    .contains("recipe"));
    const Reports two = reports_of(
        recipe + ", {less: [{fuse: 'yes', batch: 64}, {fuse: 'yes', chatter: 20}]}", recipe_rate);
    const auto changes = nlohmann::json::parse(two.json).at("recipe").at("changes");
    CHECK(changes[2].at("parameter") == "fuse");
    CHECK(changes[2].at("verdict") == "not measured");
    CHECK(changes[2].at("gain").is_null());
}
