// SPDX-License-Identifier: Apache-2.0
#include "content.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/outcome.hpp"
#include "study/json.hpp"
#include "trial/metric_text.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace servetune {
namespace {

std::string kind_of_row(const ReportView& view, const ResultRow& row) {
    const Configuration& configuration = row.standing->configuration;
    if (view.recommendation.conclusion == Conclusion::recommended &&
        configuration == view.recommendation.recommended)
        return "recommended";
    if (configuration == view.base()) return "usual";
    if (!row.value) return "failed";
    return row.standing->passes() ? "passing" : "refused";
}

std::string verdict_of_row(const ReportView& view, const ResultRow& row) {
    const auto& tied = view.recommendation.tied;
    if (row.kind == "usual" && view.recommendation.default_unsound)
        return "the default: " + row.standing->refused;
    if (!row.standing->refused.empty()) return "refused: " + row.standing->refused;
    if (row.kind == "recommended") return "recommended";
    if (row.kind == "usual") return "the default";
    if (view.recommendation.conclusion == Conclusion::recommended &&
        contains(tied, row.standing->configuration))
        return "a tie";
    return "";
}

/// Those that decide, then what people look at, then the rest by name; not those of single
/// workloads, which are many.
std::vector<std::string> metrics_shown(const ReportView& view, const std::vector<ResultRow>& rows) {
    std::set<std::string> all;
    for (const ResultRow& row : rows)
        for (const auto& [name, metric] : row.means)
            if (MetricKey::of(name).workload.empty()) all.insert(name);
    std::vector<std::string> result;
    const auto take = [&](const std::string& name) {
        if (all.erase(name) > 0) result.push_back(name);
    };
    for (const Goal& goal : view.problem().objective.goals) take(goal.metric);
    for (const Limit& limit : view.problem().objective.limits) take(limit.metric);
    for (const char* name :
         {"total_tokens_per_second", "output_tokens_per_second", "output_tokens_per_second_per_gpu",
          "tokens_per_second_per_user", "requests_per_second", "time_to_first_token_mean_seconds",
          "time_to_first_token_p95_seconds", "time_per_output_token_mean_seconds",
          "time_per_output_token_p95_seconds"})
        take(name);
    for (const std::string& name : std::set<std::string>(all)) take(name);
    return result;
}

/// `time_to_first_token_p95_seconds` is `time_to_first_token` at 95; nothing for other metrics.
std::optional<std::pair<std::string, int>> latency_percentile(const std::string& metric) {
    constexpr std::string_view unit = "_seconds";
    if (!is_time(metric) || metric.starts_with("client_")) return std::nullopt;
    const std::string name = metric.substr(0, metric.size() - unit.size());
    const auto at = name.rfind("_p");
    if (at == std::string::npos || name.size() - at < 3 || name.size() - at > 4 ||
        name.find_first_not_of("0123456789", at + 2) != std::string::npos)
        return std::nullopt;
    return std::pair(name.substr(0, at), std::stoi(name.substr(at + 2)));
}

std::vector<LatencyFamily> latencies_in(const std::vector<std::string>& metrics) {
    std::vector<std::pair<std::string, std::map<int, std::size_t>>> found;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        const auto percentile = latency_percentile(metrics[i]);
        if (!percentile) continue;
        auto family =
            find_if(found, [&](const auto& one) { return one.first == percentile->first; });
        if (family == found.end()) family = found.insert(found.end(), {percentile->first, {}});
        family->second.emplace(percentile->second, i);
    }
    std::vector<LatencyFamily> result;
    for (const auto& [name, levels] : found) {
        if (levels.size() < 2) continue;
        const std::string title = metric_title(name + "_p50_seconds");
        LatencyFamily& family =
            result.emplace_back(LatencyFamily{title.substr(0, title.find(" p50"))});
        for (const auto& [level, place] : levels)
            family.levels.emplace_back("p" + std::to_string(level), place);
    }
    return result;
}

/// Six digits are more than a measurement has, and five hundred trials of a hundred metrics stay
/// small.
nlohmann::ordered_json short_number(std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return nullptr;
    if (*value == 0) return 0;
    const double scale = std::pow(10, 5 - std::floor(std::log10(std::abs(*value))));
    const double rounded = std::round(*value * scale) / scale;
    if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15) return std::int64_t(rounded);
    return rounded;
}

}  // namespace

Content::Content(const ReportView& of, std::string_view why_ended, const Explained* models)
    : view(of), stop_reason(why_ended), explained(models) {
    std::optional<double> base_value;
    for (const Standing& standing : view.standings.all()) {
        if (!standing.told()) continue;
        ResultRow& row = rows.emplace_back();
        row.standing = &standing;
        row.name = view.changes(standing.configuration);
        row.means = view.means(standing.configuration);
        row.value = view.figure(standing);
        if (standing.configuration == view.base()) base_value = row.value;
    }
    for (ResultRow& row : rows) {
        row.gain = view.gain_in_table(row.standing->configuration, row.value, base_value);
        row.kind = kind_of_row(view, row);
        row.verdict = verdict_of_row(view, row);
    }
    stable_sort(rows, [&](const ResultRow& a, const ResultRow& b) {
        if (a.standing->passes() != b.standing->passes()) return a.standing->passes();
        if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
        return a.value && view.goal().better(*a.value, *b.value);
    });
    metrics = metrics_shown(view, rows);
    latencies = latencies_in(metrics);
}

std::optional<std::size_t> Content::row_of(const Configuration& configuration) const {
    const auto row = find_if(
        rows, [&](const ResultRow& one) { return one.standing->configuration == configuration; });
    return row == rows.end() ? std::nullopt : std::optional(std::size_t(row - rows.begin()));
}

const ResultRow* Content::row_of_kind(std::string_view kind) const {
    const auto row = find_if(rows, [&](const ResultRow& one) { return one.kind == kind; });
    return row == rows.end() ? nullptr : &*row;
}

std::optional<double> Content::figure_of(const Trial& trial) const {
    if (trial.measurement() == nullptr) return std::nullopt;
    if (const Standing* standing =
            view.standings.find(trial.configuration)) {  // as it is judged, where it is
        const GoalFigures& figures = standing->leading();
        const auto at = std::find(figures.places.begin(), figures.places.end(), double(trial.id));
        if (at != figures.places.end())
            return view.scale().figure(figures.values[std::size_t(at - figures.places.begin())]);
    }
    return value_in(trial.measurement()->metrics, view.goal().metric);
}

DrawnMetric Content::drawn(const std::string& metric) const {
    if (!is_time(metric)) return {metric_title(metric)};
    const bool seconds = any_of(
        rows, [&](const ResultRow& row) { return value_in(row.means, metric).value_or(0) >= 1; });
    return {metric_title(metric) + (seconds ? " (s)" : " (ms)"), seconds ? 1 : 1e3};
}

std::pair<std::size_t, std::size_t> Content::trade() const {
    const auto less = [&](const std::string& metric) {
        return less_is_better(view.setup.file.objective, metric);
    };
    for (std::size_t i = 1; i < metrics.size(); ++i)
        if (less(metrics[i]) != less(metrics.front()) && metrics[i] != "success_ratio")
            return {i, 0};
    return {1, 0};
}

std::string html_data(const Content& content, const std::string& report_json) {
    using OrderedJson = nlohmann::ordered_json;
    const ReportView& view = content.view;
    OrderedJson data{{"study", view.setup.file.name}};
    for (const char* list : {"titles", "less", "configurations"}) data[list] = OrderedJson::array();
    for (const ResultRow& row : content.rows)
        data["configurations"].push_back({{"name", row.name},
                                          {"passes", row.standing->passes()},
                                          {"verdict", row.verdict},
                                          {"values", OrderedJson::array()}});
    for (const std::string& name : content.metrics) {
        const DrawnMetric drawn = content.drawn(name);
        data["titles"].push_back(drawn.title);
        data["less"].push_back(less_is_better(view.setup.file.objective, name));
        for (std::size_t i = 0; i < content.rows.size(); ++i) {
            std::optional<double> value = value_in(content.rows[i].means, name);
            if (value) *value *= drawn.factor;
            data["configurations"][i]["values"].push_back(short_number(value));
        }
    }
    redact(data, view.setup.file.secrets);
    data["report"] = OrderedJson::parse(report_json);  // without secrets already
    return html_json(data.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace servetune
