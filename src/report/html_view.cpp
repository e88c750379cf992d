// SPDX-License-Identifier: Apache-2.0
#include "html_view.hpp"

#include "html_text.hpp"
#include "servetune/detail/trial/metric_key.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace servetune {
namespace {

std::string kind_of_row(const ReportView& view, const HtmlRow& row) {
    const Recommendation& result = view.recommendation;
    const Configuration& configuration = row.standing->configuration;
    if (result.conclusion == Conclusion::recommended && configuration == result.recommended)
        return "recommended";
    if (configuration == result.default_configuration) return "usual";
    if (!row.value) return "failed";
    return row.standing->passes() ? "passing" : "refused";
}

std::string verdict_of_row(const ReportView& view, const HtmlRow& row) {
    if (!row.standing->refused.empty()) return "refused: " + row.standing->refused;
    if (row.kind == "recommended") return "recommended";
    if (row.kind == "usual") return "the default";
    const auto& tied = view.recommendation.tied;
    if (view.recommendation.conclusion == Conclusion::recommended &&
        std::find(tied.begin(), tied.end(), row.standing->configuration) != tied.end())
        return "cannot be told apart from the recommended one";
    return "";
}

/// Those that decide, then what people look at, then the rest by name; not those of single
/// workloads, which are many.
std::vector<std::string> metrics_shown(const ReportView& view, const std::vector<HtmlRow>& rows) {
    std::set<std::string> all;
    for (const HtmlRow& row : rows)
        for (const auto& [name, metric] : row.means)
            if (MetricKey::of(name).workload.empty()) all.insert(name);
    std::vector<std::string> result;
    const auto take = [&](const std::string& name) {
        if (all.erase(name) > 0) result.push_back(name);
    };
    for (const Goal& goal : view.setup.problem->objective.goals) take(goal.metric);
    for (const Limit& limit : view.setup.problem->objective.limits) take(limit.metric);
    constexpr std::array<const char*, 9> usual{"total_tokens_per_second",
                                               "output_tokens_per_second",
                                               "output_tokens_per_second_per_gpu",
                                               "tokens_per_second_per_user",
                                               "requests_per_second",
                                               "time_to_first_token_mean_seconds",
                                               "time_to_first_token_p95_seconds",
                                               "time_per_output_token_mean_seconds",
                                               "time_per_output_token_p95_seconds"};
    for (const char* name : usual) take(name);
    for (const std::string& name : std::set<std::string>(all)) take(name);
    return result;
}

}  // namespace

HtmlView::HtmlView(const ReportView& of, std::string_view why_ended,
                   const nlohmann::ordered_json& effects_of_it)
    : view(of), stop_reason(why_ended), effects(effects_of_it) {
    const Recommendation& result = view.recommendation;
    const Goal& goal = leading();
    for (const Standing& standing : view.standings.all()) {
        if (!standing.told()) continue;
        HtmlRow row;
        row.standing = &standing;
        const std::string changes =
            difference_text(standing.configuration, result.default_configuration);
        row.name = changes.empty() ? "the default" : changes;
        row.means = view.means(standing.configuration);
        row.value = standing.measured() > 0 ? std::optional(standing.estimate().mean)
                                            : value_in(row.means, goal.metric);
        rows.push_back(std::move(row));
    }
    const auto base = std::find_if(rows.begin(), rows.end(), [&](const HtmlRow& row) {
        return row.standing->configuration == result.default_configuration;
    });
    std::optional<double> base_value;
    if (base != rows.end()) base_value = base->value;
    for (HtmlRow& row : rows) {
        row.gain = view.gain_in_table(row.standing->configuration, row.value, base_value);
        row.kind = kind_of_row(view, row);
        row.verdict = verdict_of_row(view, row);
    }
    std::stable_sort(rows.begin(), rows.end(), [&](const HtmlRow& a, const HtmlRow& b) {
        if (a.standing->passes() != b.standing->passes()) return a.standing->passes();
        if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
        return a.value && goal.better(*a.value, *b.value);
    });
    metrics = metrics_shown(view, rows);
    for (std::size_t i = 0; i < rows.size(); ++i)
        places.emplace(rows[i].standing->configuration, i);
}

std::string HtmlView::shown(std::string_view text) const {
    return html_text(view.setup.file.secrets(text));
}

std::optional<std::size_t> HtmlView::row_of(const Configuration& configuration) const {
    const auto found = places.find(configuration);
    return found == places.end() ? std::nullopt : std::optional(found->second);
}

std::vector<VariedParameter> varied_parameters(const HtmlView& page) {
    std::vector<VariedParameter> result;
    for (const Parameter& parameter : page.view.setup.problem->space.parameters()) {
        std::map<std::string, Value> seen;
        for (const HtmlRow& row : page.rows)
            if (const Value* value = row.standing->configuration.find(parameter.name))
                seen.emplace(text_of(*value), *value);
        if (seen.size() < 2) continue;
        VariedParameter varied{parameter.name, {}};
        for (auto& [text, value] : seen) varied.values.push_back(std::move(value));
        std::stable_sort(varied.values.begin(), varied.values.end(),
                         [](const Value& a, const Value& b) {
                             const auto x = number_of(a);
                             const auto y = number_of(b);
                             if (x.has_value() != y.has_value()) return !x.has_value();
                             return x && *x < *y;
                         });
        result.push_back(std::move(varied));
    }
    return result;
}

std::string level_text(const nlohmann::ordered_json& level) {
    return level.is_null()     ? std::string("engine")
           : level.is_string() ? level.get<std::string>()
                               : level.dump();
}

std::optional<double> HtmlView::figure_of(const Trial& trial) const {
    if (trial.measurement() == nullptr) return std::nullopt;
    if (const Standing* standing =
            view.standings.find(trial.configuration)) {  // as it is judged, where it is
        const GoalFigures& figures = standing->leading();
        const auto at =
            std::find(figures.places.begin(), figures.places.end(), static_cast<double>(trial.id));
        if (at != figures.places.end())
            return view.standings.scale().figure(
                figures.values[static_cast<std::size_t>(at - figures.places.begin())]);
    }
    return value_in(trial.measurement()->metrics, leading().metric);
}

}  // namespace servetune
