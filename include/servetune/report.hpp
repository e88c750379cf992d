// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/recommendation.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"

#include <span>
#include <string>

namespace servetune {

/// The report for people: conclusion with the serving command, before and after on every workload,
/// the steps with all results, the options beside what a published document printed, what failed or
/// was refused and why, notes. Pure: the same setup and trials give the same text. `stop_reason` is
/// empty while the study is not over. `with_effects`: what the parameters do too, which takes
/// fitting the models.
std::string markdown_report(const StudySetup& setup, std::span<const Trial> trials,
                            std::string_view stop_reason, bool with_effects = true);

/// The object that `run --json` and `report --json` end with. Its fields are listed in
/// docs/reference/json-output.md.
std::string json_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason, bool with_effects = true);

/// The report as one page of HTML that needs no network: verdict and command, gains with intervals,
/// the path of the search, trade-offs, every configuration, effects, failures with their logs, the
/// audit, and the data themselves. Text of others is escaped everywhere. Pure, as
/// `markdown_report`.
///
/// `live_version` of one that a server gives out: a line above it that `/state` of that server
/// keeps, and a content that is replaced when that names another version.
std::string html_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason, bool with_effects = true,
                        std::string_view live_version = "");

/// All of one study. What the parameters do is found once for all: fitting the models takes longer
/// than all else (seconds at 300 trials).
struct Reports {
    std::string markdown;
    std::string json;
    std::string html;
};
Reports all_reports(const StudySetup& setup, std::span<const Trial> trials,
                    std::string_view stop_reason);

/// The verdict on a study in words. Every output has it from here: report, JSON, `status` and what
/// `run` ends with.
struct Headline {
    Conclusion conclusion = Conclusion::nothing_passes;
    /// `Recommended: +5.00 % over the default`, `Keep the default`, `Inconclusive`, `Nothing can be
    /// recommended`.
    std::string title;
    std::string reason;   ///< a sentence
    std::string advice;   ///< what to do: a sentence, or empty
    std::string command;  ///< what to serve; empty where nothing passes
    /// Sentences of `reason`, where the verdict uses unsound measurements, or only suspect ones.
    std::string unsound{};
    /// The best observed figure, where something else is to be served, and what that gives away.
    std::string given_away{};
};
Headline headline_of(const StudySetup& setup, std::span<const Trial> trials);

/// `+2.09 %`, `+58.1 %`: two decimals below ten percent, one above.
std::string percent(double share);
/// A gain as people read it: as `percent`, or the difference in the metric's unit, `+0.35`, where
/// figures are compared by differences. More is better, also of a metric of which less is better.
std::string gain_text(double gain, const FigureScale& scale);
/// The same of a gain as it is stated: a share, or a difference.
std::string stated_text(double stated, const FigureScale& scale);
/// The gain of one figure over another as it is stated; nothing: a ratio that is none.
std::optional<double> stated_gain(const Goal& goal, const FigureScale& scale, double candidate,
                                  double base);

}  // namespace servetune
