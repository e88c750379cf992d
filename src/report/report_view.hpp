// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all reports take from a setup and its trials.

#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "servetune/study_file.hpp"
#include "trial/metric_text.hpp"

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
          standings(study.problem->standings(search)),
          recommendation(recommend(*study.problem, search)) {}

    [[nodiscard]] const Problem& problem() const { return *setup.problem; }
    [[nodiscard]] const Goal& goal() const { return problem().objective.leading(); }
    [[nodiscard]] const Configuration& base() const { return recommendation.default_configuration; }
    [[nodiscard]] const FigureScale& scale() const { return standings.scale(); }
    /// What a configuration changes: `seqs = 64, bits = fp8`; `the default`.
    [[nodiscard]] std::string changes(const Configuration& configuration) const;
    /// What is done with a configuration: `serve`, or `use` where it is no command of an engine.
    [[nodiscard]] std::string use(const char* serve) const {
        return setup.file.has_commands() ? serve : *serve == 'S' ? "Use" : "use";
    }
    /// Trials of the search that have an outcome.
    [[nodiscard]] std::size_t completed() const;
    /// The measurement of a configuration under a workload: `workload` empty for those of the
    /// objective. Null when there is none.
    [[nodiscard]] const Measurement* measured(const Configuration& configuration,
                                              std::string_view workload = "") const;
    /// Every metric of a configuration as the mean of its measurements: of those that are believed,
    /// where there are any.
    [[nodiscard]] Metrics means(const Configuration& configuration,
                                std::string_view workload = "") const;
    /// The same by the measurements that the gain of the recommended configuration is from: where
    /// it is by rounds after the search, those of the rounds.
    [[nodiscard]] Metrics judged_means(const Configuration& configuration) const;
    /// The leading goal's figure as it is judged; else the mean of what was measured.
    [[nodiscard]] std::optional<double> figure(const Standing& standing) const;
    /// Whether the recommended configuration's gain is by rounds.
    [[nodiscard]] bool gain_is_by_rounds() const {
        return recommendation.default_passes && problem().is_confirmed() &&
               recommendation.gain.has_interval();
    }
    /// Whether a gain over the default is recommended.
    [[nodiscard]] bool gains() const {
        return recommendation.conclusion == Conclusion::recommended &&
               recommendation.default_passes;
    }
    /// The gain over the default in a table, as it is stated: of the recommended configuration that
    /// of the conclusion, of another one by the figures beside it.
    [[nodiscard]] std::optional<double> gain_in_table(const Configuration& configuration,
                                                      std::optional<double> figure,
                                                      std::optional<double> of_default) const;
    /// How many trials have an outcome, failed, and have each verdict of the audit.
    struct Counts {
        std::size_t completed = 0, failed = 0, measured = 0;
        std::map<Verdict, std::size_t> verdicts{};
    };
    [[nodiscard]] Counts counts() const;

    const StudySetup& setup;
    std::span<const Trial> trials;
    std::vector<Trial> search;
    Standings standings;
    Recommendation recommendation;
};

/// Where the seconds of trials went. `trials` holds what is in no other part too: stops, checks and
/// trials that failed.
struct TimeSpent {
    double trials = 0;
    double starts = 0;
    double warm_up = 0;
    double loads = 0;
    double saved = 0;  ///< by load tests that were ended early
    double told = 0;   ///< starts that were told the size of their cache

    /// `3.5 h: starts 3.2 h (2 of them told the size of their cache by an earlier one), warm-up
    /// 20.0 min, load tests 1.0 h; early ends saved 12.0 min`.
    [[nodiscard]] std::string text() const;
};
[[nodiscard]] TimeSpent time_spent_in(std::span<const Trial> trials);
/// `45 s`, `12.5 min`, `3.2 h`.
[[nodiscard]] std::string spent_text(double seconds);

/// The value of a metric, or nothing.
inline std::optional<double> value_in(const Metrics& metrics, std::string_view metric) {
    const auto* found = entry_in(metrics, metric);
    return found == nullptr ? std::nullopt : std::optional(found->value);
}
/// A configuration's figures that a limit judges, the worst of each workload over its measurements:
/// workload -> value.
std::map<std::string, double> limited_figures(const Standing& standing, const Limit& limit,
                                              const Decision& decision);

std::string joined(const std::vector<std::string>& texts, std::string_view between = ", ");

// Words of figures.
/// `TTFT p95`: what people call a metric. A workload behind `@` stays.
std::string metric_title(std::string_view metric);
/// Whether less of a metric is better: as the objective says of its goals and limits, else as far
/// as its name tells.
bool less_is_better(const Objective& objective, std::string_view metric);
/// `1 %`, `0.5 %`: without a sign.
std::string plain_percent(double share);
/// `99 % interval`.
std::string interval_name(const Gain& gain);
/// `+1.20 % to +3.00 %`.
std::string interval_text(const Gain& gain);
/// `99 % interval +1.20 % to +3.00 %`, or that there is none.
std::string with_interval(const Gain& gain);
/// The noise of one measurement, and where it comes from.
std::string noise_text(const ReportView& view);
/// Whether the machine drifted, by the default that was measured again; empty: it was measured too
/// seldom to tell.
std::string drift_text(const Standings& standings);

Headline headline_of(const ReportView& view);

// Notes, each a sentence or a list of them; empty: nothing to say.
/// How many of the configurations were measured.
std::string not_tried_text(const ReportView& view);
/// What of the surroundings of trials changed from one to the next: `from trial 12 on driver:
/// 550.54 -> 560.35`.
std::vector<std::string> environment_changes(std::span<const Trial> trials);
/// Whether the default and the best were measured in different environments.
std::string environment_difference(const ReportView& view);
/// Of each configuration that did other work: what of its figure counts.
std::vector<std::string> other_work_notes(const ReportView& view);
/// What the search knew before, and which of it the trials refuted.
std::vector<std::string> knowledge_notes(const ReportView& view);
/// Settings of the recommendation that change answers which nobody compared.
std::vector<std::string> quality_notes(const ReportView& view);

enum class RecipeVerdict : std::uint8_t { not_measured, nothing_seen, earns_its_place, costs };
/// As the report and its JSON say them.
inline constexpr auto recipe_verdicts = std::to_array<std::pair<RecipeVerdict, std::string_view>>(
    {{RecipeVerdict::not_measured, "not measured"},
     {RecipeVerdict::nothing_seen, "nothing seen"},
     {RecipeVerdict::earns_its_place, "earns its place"},
     {RecipeVerdict::costs, "costs"}});

/// What one change of a recipe does here: the recipe against the same without it.
struct RecipeChange {
    std::string parameter;
    Value value{}, without{};  ///< in the recipe; the default
    RecipeVerdict verdict = RecipeVerdict::not_measured;
    std::optional<Gain> gain{};  ///< of keeping it; nothing: not both give a figure
    std::string reason{};        ///< of the verdict, where it is no gain
};
/// Of what a stage named `recipe` lists the first configuration that has at least two measured
/// neighbours, each with one of its values put back to the default. No changes: none has.
struct RecipeChanges {
    Configuration recipe{};
    std::vector<RecipeChange> changes{};
};
RecipeChanges recipe_changes(const ReportView& view);

}  // namespace servetune
