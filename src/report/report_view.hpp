// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both reports, the one for people and the one for programs, take from a setup and its trials.

#include "servetune/report/report.hpp"
#include "servetune/study/recommendation.hpp"
#include "servetune/study_file/study_file.hpp"
#include "servetune/trial/standings.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

struct ReportView {
    ReportView(const StudySetup& study, std::span<const Trial> all_trials)
        : setup(study),
          trials(all_trials),
          search(search_history(*study.problem, all_trials)),
          standings(search, study.problem->objective, study.problem->decision),
          recommendation(recommend(*study.problem, search)) {}

    /// The measurement of a configuration under a workload: `workload` empty for those of the objective. Null when
    /// there is none.
    [[nodiscard]] const Measurement* measured(const Configuration& configuration, std::string_view workload = "") const {
        for (const Trial& trial : trials)
            if (trial.workload == workload && trial.configuration == configuration && trial.measurement() != nullptr)
                return trial.measurement();
        return nullptr;
    }
    /// Every metric of a configuration as the mean of its measurements: of those that are believed, where there are
    /// any.
    [[nodiscard]] Metrics means(const Configuration& configuration, std::string_view workload = "") const;
    [[nodiscard]] double cost_seconds() const {
        double sum = 0;
        for (const Trial& trial : trials) sum += trial.cost_seconds();
        return sum;
    }

    const StudySetup& setup;
    std::span<const Trial> trials;
    std::vector<Trial> search;
    Standings standings;
    Recommendation recommendation;
};

/// Why a report workload was not measured on a configuration, as far as trials and the end of the run tell; empty: it
/// was.
std::string why_not_measured(const ReportView& view, const Configuration& configuration, std::string_view workload,
                             std::string_view stop_reason);

/// The two renderings; `effects` as `effects_report` gives them, null in the JSON: not asked for.
std::string markdown_of(const ReportView& view, std::string_view stop_reason, const std::string& effects);
std::string json_of(const ReportView& view, std::string_view stop_reason, const nlohmann::ordered_json* effects);

/// The value of a metric, or nothing.
inline std::optional<double> value_in(const Metrics& metrics, std::string_view metric) {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? std::nullopt : std::optional(found->second.value);
}

Headline headline_of(const ReportView& view);
/// `1 %`, `0.5 %`: without a sign.
std::string plain_percent(double share);
/// `+1.20 % to +3.00 %`.
std::string interval_text(const Gain& gain);
/// `95 % interval +1.20 % to +3.00 %`, or that there is none.
std::string with_interval(const Gain& gain);
/// The noise of one measurement, and where it comes from.
std::string noise_text(const ReportView& view);
/// Whether the machine drifted, by the default that was measured again; empty: it was measured too seldom to tell.
std::string drift_text(const Drift& drift);
/// A configuration's figures that a limit judges, the worst of each workload over its measurements: workload -> value.
std::map<std::string, double> limited_figures(const Standing& standing, const Limit& limit, const Decision& decision);

}  // namespace servetune
