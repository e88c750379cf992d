// SPDX-License-Identifier: Apache-2.0
#include "predicted.hpp"

#include "perf/quick_estimate.hpp"
#include "servetune/study_file.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

/// Whether a prediction of this metric has its level too, not only its ratios.
bool has_level(const std::string& metric) {
    for (const char* high : {"_p90_", "_p95_", "_p99_"})
        if (metric.find(high) != std::string::npos) return false;
    return QuickEstimate{1, 1, 1, 1, 1, 1, 1}.metric(metric).has_value();
}

double median_error(const std::vector<Predicted::Row>& rows, bool fitted) {
    std::vector<double> errors;
    for (const Predicted::Row& row : rows)
        if (row.fitted)
            errors.push_back(std::abs((fitted ? *row.fitted : row.shipped) / row.measured - 1));
    if (errors.empty()) return 0;
    const auto half = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), half, errors.end());
    return *half;
}

}  // namespace

std::optional<Predicted> predicted_of(const ReportView& view) {
    const Problem& problem = *view.setup.problem;
    const Beliefs& beliefs = view.setup.beliefs;
    if (beliefs.size() == 0 || !has_level(problem.objective.leading().metric)) return std::nullopt;
    const auto now = beliefs[0].fitted_to(view.search, problem.decision);
    if (!now) return std::nullopt;
    Predicted result{now->name()};
    for (const Standing& standing : view.standings.all()) {
        if (standing.measured() == 0) continue;
        const auto shipped = beliefs[0].belief(standing.configuration).log_value;
        if (!shipped) continue;
        Predicted::Row row{standing.configuration, standing.estimate().mean, std::exp(*shipped)};
        const auto first = std::find_if(
            view.search.begin(), view.search.end(),
            [&](const Trial& trial) { return trial.configuration == standing.configuration; });
        const std::span<const Trial> before(view.search.begin(), first);
        if (const auto then = beliefs[0].fitted_to(before, problem.decision))
            if (const auto fitted = then->belief(standing.configuration).log_value)
                row.fitted = std::exp(*fitted);
        result.rows.push_back(std::move(row));
    }
    result.shipped_error = median_error(result.rows, false);
    result.fitted_error = median_error(result.rows, true);
    result.doubts = doubts_of_cost_model(view.setup.file);
    return result.rows.empty() ? std::nullopt : std::optional(std::move(result));
}

}  // namespace servetune
