// SPDX-License-Identifier: Apache-2.0
#pragma once

// What both reports, the one for people and the one for programs, take from a setup and its trials.

#include "servetune/detail/trial/standings.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "servetune/study_file.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

struct ReportView {
    ReportView(const StudySetup& study, std::span<const Trial> all_trials)
        : setup(study),
          trials(all_trials),
          search(search_history(*study.problem, all_trials)),
          standings(search, study.problem->objective, study.problem->decision),
          recommendation(recommend(*study.problem, search)) {}

    /// The measurement of a configuration under a workload: `workload` empty for those of the
    /// objective. Null when there is none.
    [[nodiscard]] const Measurement* measured(const Configuration& configuration,
                                              std::string_view workload = "") const {
        for (const Trial& trial : trials)
            if (trial.workload == workload && trial.configuration == configuration &&
                trial.measurement() != nullptr)
                return trial.measurement();
        return nullptr;
    }
    /// Every metric of a configuration as the mean of its measurements: of those that are believed,
    /// where there are any.
    [[nodiscard]] Metrics means(const Configuration& configuration,
                                std::string_view workload = "") const;
    /// The same by the measurements that the gain of the recommended configuration is from: where
    /// it is by rounds after the search, those of the rounds.
    [[nodiscard]] Metrics judged_means(const Configuration& configuration) const;
    /// Whether the recommended configuration's gain is by rounds.
    [[nodiscard]] bool gain_is_by_rounds() const {
        return recommendation.default_passes && setup.problem->is_confirmed() &&
               recommendation.gain.has_interval();
    }
    /// The gain over the default in a table, as it is stated: of the recommended configuration that
    /// of the conclusion, of another one by the figures beside it.
    [[nodiscard]] std::optional<double> gain_in_table(const Configuration& configuration,
                                                      std::optional<double> figure,
                                                      std::optional<double> of_default) const;
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

/// Why a report workload was not measured on a configuration, as far as trials and the end of the
/// run tell; empty: it was.
std::string why_not_measured(const ReportView& view, const Configuration& configuration,
                             std::string_view workload, std::string_view stop_reason);

/// What of the surroundings of trials changed from one to the next: `from trial 12 on driver:
/// 550.54 -> 560.35`.
std::vector<std::string> environment_changes(std::span<const Trial> trials);
/// A sentence where the default and the best were measured in different environments; empty: they
/// were not, or it is not known.
std::string environment_difference(const ReportView& view);

/// The two renderings; `effects` as `effects_report` gives them, `account` as `account_markdown`
/// and `account_json` do, null in the JSON: not asked for.
std::string markdown_of(const ReportView& view, std::string_view stop_reason,
                        const std::string& effects, const std::string& account);
std::string json_of(const ReportView& view, std::string_view stop_reason,
                    const nlohmann::ordered_json* effects, const nlohmann::ordered_json* account);

/// The value of a metric, or nothing.
inline std::optional<double> value_in(const Metrics& metrics, std::string_view metric) {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? std::nullopt : std::optional(found->second.value);
}

Headline headline_of(const ReportView& view);
/// How many of the configurations were measured; empty: all.
std::string not_tried_text(const ReportView& view);
/// Why nothing passes and what to do: the limits that the nearest configuration breaks and how far
/// they would have to be loosened, or the commonest failure or finding.
std::pair<std::string, std::string> why_nothing_passes(const ReportView& view);
/// The lengths of requests of a configuration beside the default's, where they differ beyond noise;
/// empty: nowhere.
std::string other_work_text(const ReportView& view, const Configuration& configuration);
/// Why such a configuration, which looks best, is no proof (`Doubt::unequal_work`).
std::string why_not_comparable(const ReportView& view, const Configuration& configuration);
/// Of each configuration with such requests a sentence on what of its figure counts.
std::vector<std::string> other_work_notes(const ReportView& view);
/// What the search knew before, and which of it the trials refuted.
std::vector<std::string> knowledge_notes(const ReportView& view);
/// Settings of the recommendation that change answers which nobody compared.
std::vector<std::string> quality_notes(const ReportView& view);
/// Of each configuration that speculates: how many of its guessed tokens were right, by the
/// engine's own counters; the recommendation first, then in the order of the trials.
std::vector<std::string> speculation_notes(const ReportView& view);
/// How long the requests of the default and of the recommendation were, for each workload where
/// that is known.
std::vector<std::string> lengths_texts(const ReportView& view);
/// `1 %`, `0.5 %`: without a sign.
std::string plain_percent(double share);
/// `+1.20 % to +3.00 %`.
std::string interval_text(const Gain& gain);
/// `95 % interval +1.20 % to +3.00 %`, or that there is none.
std::string with_interval(const Gain& gain);
/// The noise of one measurement, and where it comes from.
std::string noise_text(const ReportView& view);
/// Whether the machine drifted, by the default that was measured again; empty: it was measured too
/// seldom to tell.
std::string drift_text(const Standings& standings);
/// A configuration's figures that a limit judges, the worst of each workload over its measurements:
/// workload -> value.
std::map<std::string, double> limited_figures(const Standing& standing, const Limit& limit,
                                              const Decision& decision);

}  // namespace servetune
