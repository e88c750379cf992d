// SPDX-License-Identifier: Apache-2.0
#include "servetune/report.hpp"

#include "account.hpp"
#include "effects_report.hpp"
#include "html_report.hpp"
#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace servetune {

std::string percent(double share) {
    return fmt::format("{:+.{}f} %", share * 100, std::abs(share) < 0.1 ? 2 : 1);
}

std::string gain_text(double gain, const FigureScale& scale) {
    return stated_text(scale.stated(gain), scale);
}

std::string stated_text(double stated, const FigureScale& scale) {
    return scale.ratios() ? percent(stated) : (stated < 0 ? "" : "+") + short_number_text(stated);
}

std::optional<double> stated_gain(const Goal& goal, const FigureScale& scale, double candidate,
                                  double base) {
    if (!scale.ratios())
        return goal.direction == Direction::maximize ? candidate - base : base - candidate;
    return candidate > 0 && base > 0 ? std::optional(goal.gain(candidate, base)) : std::nullopt;
}

namespace {

/// What takes fitting the models, once for all reports.
struct Explained {
    explicit Explained(const ReportView& view)
        : effects(effects_report(view)),
          account(account_of(view)),
          json(account_json(account, view)) {}
    EffectsReport effects;
    Account account;
    nlohmann::ordered_json json;
};

}  // namespace

std::string markdown_report(const StudySetup& setup, std::span<const Trial> trials,
                            std::string_view stop_reason) {
    const ReportView view(setup, trials);
    const Explained explained(view);
    return markdown_of(view, stop_reason, explained.effects.section,
                       account_markdown(account_parts(explained.account, view)));
}

std::string json_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason, bool with_effects) {
    const ReportView view(setup, trials);
    if (!with_effects) return json_of(view, stop_reason, nullptr, nullptr);
    const Explained explained(view);
    return json_of(view, stop_reason, &explained.effects.json, &explained.json);
}

std::string html_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason) {
    return all_reports(setup, trials, stop_reason).html;
}

std::string live_page(const StudySetup& setup, std::span<const Trial> trials,
                      std::string_view stop_reason, bool with_effects, std::string_view version) {
    const ReportView view(setup, trials);
    if (!with_effects)
        return html_of(view, stop_reason, nullptr, {}, json_of(view, stop_reason, nullptr, nullptr),
                       version);
    const Explained explained(view);
    return html_of(view, stop_reason, explained.effects.json,
                   account_parts(explained.account, view),
                   json_of(view, stop_reason, &explained.effects.json, &explained.json), version);
}

Reports all_reports(const StudySetup& setup, std::span<const Trial> trials,
                    std::string_view stop_reason) {
    const ReportView view(setup, trials);
    const Explained explained(view);
    const std::vector<AccountPart> parts = account_parts(explained.account, view);
    Reports result{
        markdown_of(view, stop_reason, explained.effects.section, account_markdown(parts)),
        json_of(view, stop_reason, &explained.effects.json, &explained.json),
        {}};
    result.html = html_of(view, stop_reason, explained.effects.json, parts, result.json);
    return result;
}

}  // namespace servetune
