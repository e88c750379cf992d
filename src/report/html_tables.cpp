// SPDX-License-Identifier: Apache-2.0
// The data of the page's drawings as tables.
#include "html_text.hpp"
#include "html_view.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace servetune {
namespace {

/// `title` is said of the table and is what opens it; cells are escaped already.
std::string opened_table(const std::string& title, const std::string& id,
                         const std::vector<std::string>& heads, const std::string& rows) {
    std::string out =
        "<details class=\"data\"><summary>" + title +
        " as a table</summary>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"" +
        title + " as a table\"><table" + (id.empty() ? "" : " id=\"" + id + "\"") + "><thead><tr>";
    for (const std::string& head : heads) out += "<th scope=\"col\">" + head + "</th>";
    return out + "</tr></thead><tbody>\n" + rows + "</tbody></table></div></details>\n";
}

std::string number_cell(const std::optional<double>& value, std::string_view metric) {
    return "<td>" + (value ? plain_figure_text(metric, *value) : std::string("–")) + "</td>";
}

}  // namespace

std::string account_html(const HtmlView& page, const AccountPart& part) {
    std::string out;
    if (!part.rows.empty()) {
        out +=
            "<div class=\"wide\"><table aria-label=\"" + page.shown(part.title) + "\"><thead><tr>";
        for (const std::string& cell : part.header)
            out += std::string("<th scope=\"col\"") +
                   (&cell == &part.header.front() ? " class=\"text\"" : "") + ">" +
                   page.shown(cell) + "</th>";
        out += "</tr></thead><tbody>\n";
        for (const auto& row : part.rows) {
            out += "<tr>";
            for (const std::string& cell : row)
                out += std::string("<td") + (&cell == &row.front() ? " class=\"text\"" : "") + ">" +
                       page.shown(cell) + "</td>";
            out += "</tr>\n";
        }
        out += "</tbody></table></div>\n";
    }
    if (part.sentences.empty()) return out;
    out += "<ul>\n";
    for (const std::string& sentence : part.sentences)
        out += "<li>" + page.shown(sentence) + "</li>\n";
    return out + "</ul>\n";
}

std::string search_table(const HtmlView& page) {
    const Goal& goal = page.leading();
    std::string rows;
    std::optional<double> best;
    double spent = 0;
    for (const Trial& trial : page.view.trials) {
        spent += trial.cost_seconds() / 60;
        const auto row = page.row_of(trial.configuration);
        if (!trial.of_search() || !trial.told() || !row) continue;
        const auto figure = page.figure_of(trial);
        if (figure && page.rows[*row].standing->passes() && (!best || goal.better(*figure, *best)))
            best = figure;
        const std::string outcome = trial.failure() != nullptr
                                        ? std::string(name_in(failure_kinds, trial.failure()->kind))
                                    : page.rows[*row].standing->passes() ? "measured"
                                                                         : "refused";
        rows += fmt::format(
            "<tr><td>{}</td><td "
            "class=\"text\">{}</td>{}{}<td>{}</td><td>{:.1f}</td><td>{:.1f}</td></tr>\n",
            trial.id, page.shown(page.rows[*row].name), number_cell(figure, goal.metric),
            number_cell(best, goal.metric), page.shown(outcome), trial.cost_seconds(), spent);
    }
    if (rows.empty()) return "";
    const std::string title = html_text(metric_title(goal.metric));
    return opened_table(
        "The path of the search", "",
        {"trial", "setting", title, "best so far", "outcome", "seconds", "minutes at its end"},
        rows);
}

std::string trade_table(const HtmlView& page, std::size_t x, std::size_t y) {
    std::string rows;
    for (const HtmlRow& row : page.rows) {
        const auto up = value_in(row.means, page.metrics[y]);
        const auto across = value_in(row.means, page.metrics[x]);
        if (!up || !across) continue;
        rows += "<tr><td class=\"text\">" + page.shown(row.name) + "</td>" +
                number_cell(up, page.metrics[y]) + number_cell(across, page.metrics[x]) +
                "<td class=\"text\">" + page.shown(row.verdict) + "</td></tr>\n";
    }
    return opened_table("The trade-off", "trade-table",
                        {"setting", html_text(metric_title(page.metrics[y])),
                         html_text(metric_title(page.metrics[x])), "verdict"},
                        rows);
}

std::string effects_table(const HtmlView& page) {
    std::string rows;
    for (const auto& effect : page.effects["main"]) {
        const std::string level = page.shown(effect["parameter"].get<std::string>() + " = " +
                                             level_text(effect["level"]));
        if (!effect["refused"].is_null()) {
            rows += fmt::format(
                "<tr><td class=\"text\">{}</td><td class=\"text\" colspan=\"3\">refused: "
                "{}</td><td>{}</td></tr>\n",
                level, page.shown(effect["refused"].get<std::string>()),
                effect["measured"].get<std::size_t>());
            continue;
        }
        const auto share = [&](const char* key) {
            if (!effect["gain"][key].is_number()) return std::string("–");
            return stated_text(effect["gain"][key].get<double>(), page.view.standings.scale());
        };
        rows += fmt::format(
            "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            level, share("value"), share("low"), share("high"),
            effect["measured"].get<std::size_t>());
    }
    for (const auto& [name, count] : page.effects["left_out"].items())
        rows += fmt::format(
            "<tr><td class=\"text\" colspan=\"5\">{}</td></tr>\n",
            page.shown(counted_text(count.get<std::size_t>(), "more level") + " of " + name));
    return rows.empty()
               ? ""
               : opened_table("The effect of each flag", "",
                              {"level", "effect", "at least", "at most", "measured"}, rows);
}

}  // namespace servetune
