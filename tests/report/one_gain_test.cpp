// SPDX-License-Identifier: Apache-2.0
// A report states one gain of the recommended configuration: the headline's, by the rounds after
// the search, also where the trials of the search say something else.
#include "servetune/report.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "study/confirmation.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <sstream>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// The cells of the first line of a Markdown text that begins and ends so.
std::vector<std::string> cells_of_line(const std::string& text, const std::string& begin,
                                       const std::string& end) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(begin) || !line.ends_with(end)) continue;
        std::vector<std::string> cells;
        std::istringstream parts(line);
        for (std::string part; std::getline(parts, part, '|');) cells.push_back(part);
        return cells;
    }
    return {};
}

}  // namespace

TEST_CASE("one gain: headline, JSON, tables and page agree, in a search by any strategy") {
    for (const std::string strategy : {"exhaustive", "{staged: {stages: [mode]}}"}) {
        INFO(strategy);
        const TemporaryFolder folder;
        const std::filesystem::path file = folder.write(
            "study.yaml",
            "space: {mode: {choice: [slow, fast]}}\nobjective: {maximize: rate}\nstrategy: " +
                strategy + "\n");
        const StudySetup setup = set_up(
            load_study(file, shipped_catalogue, "", MeasuredBy::outside), folder.path() / "out");
        MemoryJournal journal;
        Study study(*setup.problem, *setup.strategy, journal);
        int told = 0;
        while (const auto trial = study.ask({.trials = 30})) {
            const bool fast = *trial->configuration.find("mode") == Value("fast");
            const double usual = 1000 + ++told % 3;
            // The search was unlucky; the rounds say 5 %.
            study.tell(trial->id, Measurement{{{"rate",
                                                {usual * (!fast              ? 1
                                                          : confirms(*trial) ? 1.05
                                                                             : 1.02)}}}});
        }
        const Reports reports = all_reports(setup, study.trials(), "");
        const auto gain = nlohmann::json::parse(reports.json)
                              .at("recommended")
                              .at("gain")
                              .at("value")
                              .get<double>();
        CHECK(gain == Approx(0.05).margin(0.003));
        const std::string stated = percent(gain);
        INFO(reports.markdown);
        CHECK(has(reports.markdown, "**Recommended: " + stated + " over the default** ("));
        double before = 0, after = 0;
        const auto figures = reports.markdown.find("\nrate: ");
        REQUIRE(figures != std::string::npos);
        REQUIRE(std::sscanf(reports.markdown.c_str() + figures,
                            "\nrate: %lf with the default, %lf recommended.", &before,
                            &after) == 2);
        CHECK(after / before == Approx(1 + gain).margin(0.002));
        for (const double figure : {before, after})  // the page draws the same
            CHECK(has(reports.html, "</svg></td><td>" + fixed_text(figure, 0) + "</td>"));
        const std::vector<std::string> result =
            cells_of_line(reports.markdown, "| mode",
                          strategy == "exhaustive" ? "**recommended** |" : "worth having |");
        const std::vector<std::string> carried =
            cells_of_line(reports.markdown, "| mode", "carried on** |");
        const std::vector<std::string>& row = result.empty() ? carried : result;
        REQUIRE(row.size() > 4);
        CHECK(row[3] == " " + stated + " ");
        CHECK(has(reports.markdown, " rounds of both in turn after the search"));
        CHECK(has(reports.html, "Recommended: " + replaced(stated, " ", "&nbsp;") + " over"));
        CHECK(has(reports.html, ">" + stated + "<"));
    }
}
