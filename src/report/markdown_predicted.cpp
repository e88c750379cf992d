// SPDX-License-Identifier: Apache-2.0
#include "markdown_page.hpp"
#include "markdown_sections.hpp"
#include "predicted.hpp"
#include "servetune/report.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace servetune {
namespace {

class PredictedSection : private MarkdownPage {
public:
    explicit PredictedSection(const ReportView& view) : MarkdownPage(view) {}

    std::string text() {
        const auto found = predicted_of(view_);
        if (!found) return "";
        const std::string& metric = view_.setup.problem->objective.leading().metric;
        line("## Predicted and measured\n");
        line(
            "| setting | {}, measured | predicted before any trial | predicted by the trials "
            "before it |",
            metric);
        line("|---|---:|---:|---:|");
        constexpr std::size_t most = 12;
        const auto cell = [&](double value, double measured) {
            return figure_text(metric, value) + " (" + percent(value / measured - 1) + ")";
        };
        for (std::size_t i = 0; i < std::min(most, found->rows.size()); ++i) {
            const Predicted::Row& row = found->rows[i];
            line("| {} | {} | {} | {} |",
                 difference(row.configuration, result_.default_configuration),
                 figure_text(metric, row.measured), cell(row.shipped, row.measured),
                 row.fitted ? cell(*row.fitted, row.measured) : "-");
        }
        if (found->rows.size() > most) line("| and {} more | | | |", found->rows.size() - most);
        out_ += '\n';
        if (std::any_of(found->rows.begin(), found->rows.end(),
                        [](const Predicted::Row& row) { return row.fitted.has_value(); }))
            line(
                "Median error: {} before any trial, {} by the trials before each. At the end: "
                "{}.\n",
                plain_percent(found->shipped_error), plain_percent(found->fitted_error), found->by);
        else line("From now on: {}.\n", found->by);
        for (const std::string& doubt : found->doubts) line("Before any trial, {}.\n", doubt);
        return std::move(out_);
    }
};

}  // namespace

std::string predicted_section(const ReportView& view) { return PredictedSection(view).text(); }

}  // namespace servetune
