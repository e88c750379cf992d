// SPDX-License-Identifier: Apache-2.0
// An account as sentences and tables, and the three ways to print them.
#include "account.hpp"

#include "markdown.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/detail/study/recommendation_text.hpp"
#include "servetune/report.hpp"
#include "time_spent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

std::string changes_text(const std::vector<std::string>& texts) {
    std::string result;
    for (const std::string& one : texts) result += (result.empty() ? "" : ", ") + one;
    return result;
}

std::string short_gain(const std::optional<LadderGain>& one) {
    return one ? gain_text(one->gain.value, one->gain.scale) + (one->measured ? "" : " (predicted)")
               : "-";
}

std::string interval_or_none(const Gain& gain) {
    return gain.has_interval() ? interval_text(gain) : "not known";
}

AccountPart ladder_part(const Ladder& ladder, const FigureScale& scale) {
    AccountPart part{"ladder", "From the default to the recommended command", {}, {}, {}};
    const bool several = ladder.steps.size() > 1;
    part.header = {"change", "gain", "interval", "by"};
    if (several) part.header.insert(part.header.end(), {"as the only change", "as the last one"});
    for (const LadderStep& step : ladder.steps) {
        part.rows.push_back({changes_text(step.changes), gain_text(step.gain.gain.value, scale),
                             interval_or_none(step.gain.gain),
                             step.gain.measured ? "measured" : "predicted"});
        if (several)
            part.rows.back().insert(part.rows.back().end(),
                                    {short_gain(step.alone), short_gain(step.last)});
    }
    const std::string total = gain_text(ladder.total.value, scale);
    if (!several) {
        if (ladder.steps.front().changes.size() > 1)
            part.sentences.push_back(
                "What each of them gives is not known: no trial has one without the others, and "
                "too few "
                "configurations were measured for the models.");
        return part;
    }
    part.sentences.push_back(
        fmt::format("In this order the gains {} to {}. Next comes the change with the best figure, "
                    "measured where it was; another order "
                    "gives each another share.",
                    scale.ratios() ? "multiply" : "add up", total));
    if (!ladder.all_measured())
        part.sentences.emplace_back(
            "Predicted gains are of models fitted to the trials, with 95 % intervals that hold "
            "together; they are "
            "shifted so that steps between two measured commands come to what was measured.");
    if (ladder.not_together) {
        const double alone = std::expm1(*ladder.not_together + std::log1p(ladder.total.value));
        const auto& spread = ladder.not_together_reach;
        part.sentences.push_back(fmt::format(
            "Each as the only change, they would come to {}: {}.", gain_text(alone, scale),
            !spread ? "whether they act together is not known, for nothing was measured twice"
            : std::abs(*ladder.not_together) < *spread ? "that they act together is not proven"
            : *ladder.not_together > 0                 ? "together they give less than that"
                                                       : "together they give more than that"));
    }
    for (const LadderStep& step : ladder.steps)
        if (!step.refused.empty())
            part.sentences.push_back("Not to be served after " + changes_text(step.changes) + ": " +
                                     step.refused + ".");
    return part;
}

std::string limit_sentence(const LimitMargin& one, const Configuration& usual) {
    const std::string& metric = one.limit.metric;
    std::string text = fmt::format(
        "Limit {}{}: {}, {} {}", one.limit.readable(),
        one.workload.empty() ? "" : " on " + one.workload, figure_text(metric, one.value),
        figure_text(metric, std::abs(one.margin)), one.margin < 0 ? "too far" : "to spare");
    if (one.refuses) {
        const std::string changes = difference_text(*one.refuses, usual);
        text += fmt::format(". It refuses {}, which is {} better",
                            changes.empty() ? "the default" : changes,
                            gain_text(one.costs->value, one.costs->scale));
    } else text += ". It refuses nothing better that was measured";
    return text + ".";
}

AccountPart limits_part(const WhatLimits& limits, const Configuration& usual) {
    AccountPart part{"limits", "What keeps it from being faster", {}, {}, {}};
    std::size_t shown = 0;  // those that refuse something better, else the one that is nearest
    while (shown < limits.limits.size() && (shown == 0 || limits.limits[shown].refuses))
        part.sentences.push_back(limit_sentence(limits.limits[shown++], usual));
    if (shown < limits.limits.size()) part.sentences.back() += " The others have more to spare.";
    for (const AtTheEnd& one : limits.at_the_end)
        part.sentences.push_back(
            fmt::format("{} = {} is the {} value that was searched: widen its range to see whether "
                        "more is gained.",
                        one.parameter, text_of(one.value), one.largest ? "largest" : "smallest"));
    if (limits.resources.empty()) {
        part.sentences.push_back(
            "What of the hardware binds it is not known: " + limits.no_resources + ".");
        return part;
    }
    constexpr double tenth = 1.1;
    constexpr double least = 0.05;  // half a percent of 10 % is rounding
    std::string gains;
    constexpr double rounding = 0.005;
    for (const ResourceGain& one : limits.resources)
        if (std::abs(one.elasticity) >= rounding)
            gains += fmt::format("{}{} {}", gains.empty() ? "" : ", ", one.resource,
                                 percent(std::pow(tenth, one.elasticity) - 1));
    part.sentences.push_back(limits.resources.front().elasticity < least
                                 ? "By the cost model no resource binds it: it serves what arrives."
                                 : "By the cost model " + limits.resources.front().resource +
                                       " binds it; 10 % more would give: " + gains + ".");
    for (const std::string& doubt : limits.doubts)
        part.sentences.push_back("Take care: " + doubt + ".");
    return part;
}

AccountPart hour_part(const Account& account, const ReportView& view) {
    const bool timed = !account.hour || account.hour->seconds > 0;
    AccountPart part{"hour", timed ? "One more hour" : "As many trials again", {}, {}, {}};
    if (!account.hour) {
        part.sentences.push_back("Not known: " + account.no_hour +
                                 (account.no_hour.ends_with('.') ? "" : "."));
        return part;
    }
    const FurtherGain& further = account.hour->further;
    const FigureScale& scale = view.standings.scale();
    if (further.untried == 0) {
        part.sentences.emplace_back("Nothing: every configuration of the space was tried.");
        return part;
    }
    const std::string time = account.hour->seconds > 0 ? " (" + spent_text(account.hour->seconds) +
                                                             " at this study's pace)"
                                                       : "";
    part.sentences.push_back(fmt::format(
        "{} further {}{} are expected to gain {} over what is recommended (95 %: {} to {}).",
        further.trials, further.trials == 1 ? "trial" : "trials", time,
        gain_text(further.gain.value, scale), gain_text(further.gain.low, scale),
        gain_text(further.gain.high, scale)));
    part.sentences.push_back(fmt::format(
        "A gain worth having has a chance of {:.0f} %: {}.", 100 * further.chance_changed,
        account.hour->likely ? "go on, if that is worth the time" : "likely nothing measurable"));
    return part;
}

std::string cost_figure(const std::string& unit, const std::optional<ServingCost::Figure>& one) {
    if (!one) return "-";
    const auto text = [&](double value) {
        return unit == "USD" ? fmt::format("{:.4g}", value) : fmt::format("{:.3g}", value);
    };
    return one->low
               ? fmt::format("{} ({} to {})", text(one->value), text(*one->low), text(*one->high))
               : text(one->value);
}

AccountPart cost_part(const ServingCosts& costs) {
    AccountPart part{"cost", "Cost of a million tokens", {}, {}, {}};
    bool without = false;
    for (const ServingCost& one : costs.all) {
        std::string change = "-";
        if (one.change)
            change = percent(one.change->value) +
                     (one.change->low ? fmt::format(" ({} to {})", percent(*one.change->low),
                                                    percent(*one.change->high))
                                      : "");
        part.rows.push_back({one.unit + ", " + one.tokens + " tokens",
                             cost_figure(one.unit, one.of_default),
                             cost_figure(one.unit, one.of_recommended), change});
        without = without || !one.of_recommended.low;
    }
    if (!part.rows.empty()) part.header = {"a million", "default", "recommended", "change"};
    if (without)
        part.sentences.emplace_back("Nothing was measured twice, so there are no intervals.");
    else if (!part.rows.empty()) part.sentences.emplace_back("In brackets: 95 % intervals.");
    if (!costs.no_dollars.empty())
        part.sentences.push_back("No dollars: " + costs.no_dollars + ".");
    if (costs.no_energy.empty() && !part.rows.empty())
        part.sentences.emplace_back("kWh are of the GPUs' boards alone.");
    if (!costs.no_energy.empty()) part.sentences.push_back("No energy: " + costs.no_energy + ".");
    return part;
}

}  // namespace

std::vector<AccountPart> account_parts(const Account& account, const ReportView& view) {
    std::vector<AccountPart> parts;
    if (account.ladder) parts.push_back(ladder_part(*account.ladder, view.standings.scale()));
    if (account.limits)
        parts.push_back(limits_part(*account.limits, view.recommendation.default_configuration));
    parts.push_back(hour_part(account, view));
    if (view.recommendation.conclusion != Conclusion::nothing_passes)
        parts.push_back(cost_part(account.costs));
    return parts;
}

std::vector<AccountPart> handover_parts(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const StudyFile& file = view.setup.file;
    AccountPart risks{"risks", "Risks", {}, {}, quality_notes(view)};
    if (!file.measures())
        risks.sentences.insert(risks.sentences.begin(),
                               "Nothing was measured for this: measure before you serve it.");
    if (const std::string unsound = headline_of(view).unsound; !unsound.empty())
        risks.sentences.push_back(unsound);
    if (result.gain.has_interval() && !result.keep_default && result.gain.low <= 0)
        risks.sentences.emplace_back("The interval of the gain holds zero.");
    risks.sentences.emplace_back(
        "It holds for this traffic, this hardware and this version of the engine.");
    AccountPart back{"back", "How to go back", {}, {}, {}};
    back.sentences.push_back(result.keep_default ? "Nothing changes: the default is served."
                                                 : "Serve the default's command:");
    std::size_t unsound = 0;
    std::size_t measured = 0;
    for (const Trial& trial : view.trials)
        if (const Measurement* measurement = trial.measurement()) {
            ++measured;
            unsound += measurement->validity.verdict == Verdict::unsound ? 1 : 0;
        }
    AccountPart how{"how", "How it was measured", {}, {}, {}};
    if (!file.workloads.empty()) {
        std::vector<std::string> names;
        for (const Workload& workload : file.workloads) names.push_back(workload.name);
        how.sentences.push_back("Workloads: " + changes_text(names) + ".");
    }
    how.sentences.push_back(fmt::format(
        "{} in {}; {} of {} measurements unsound by the audit. Noise: {}.",
        counted_text(told_trials(view), "trial"), spent_text(time_spent_in(view.trials).trials),
        unsound, measured, noise_text(view)));
    if (view.gain_is_by_rounds())
        how.sentences.emplace_back(
            "The gain is by rounds of both commands in turn after the search, not by the trials "
            "that found it.");
    if (result.conclusion == Conclusion::nothing_passes) return {how};
    return {risks, back, how};
}

std::string account_text(const std::vector<AccountPart>& parts) {
    std::string out;
    for (const AccountPart& part : parts) {
        out += part.title + "\n";
        std::vector<std::size_t> widths(part.header.size(), 0);
        std::vector<std::vector<std::string>> lines{part.header};
        lines.insert(lines.end(), part.rows.begin(), part.rows.end());
        for (const auto& line : lines)
            for (std::size_t i = 0; i < line.size() && i < widths.size(); ++i)
                widths[i] = std::max(widths[i], line[i].size());
        for (std::size_t k = 0; k < lines.size() && !part.rows.empty(); ++k) {
            std::string line = " ";
            for (std::size_t i = 0; i < lines[k].size(); ++i)
                line += fmt::format(" {:<{}}", printable_line(lines[k][i]), widths[i] + 1);
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
        }
        for (const std::string& sentence : part.sentences)
            out += "  " + printable_line(sentence) + "\n";
        out += "\n";
    }
    return out;
}

std::string account_markdown(const std::vector<AccountPart>& parts) {
    std::string out;
    for (const AccountPart& part : parts) {
        out += "## " + part.title + "\n\n";
        if (!part.rows.empty()) {
            const auto row = [&](const std::vector<std::string>& cells) {
                std::string line = "|";
                for (const std::string& cell : cells) line += " " + markdown_text(cell) + " |";
                out += line + "\n";
            };
            row(part.header);
            out += "|---|";
            for (std::size_t i = 1; i < part.header.size(); ++i) out += "---:|";
            out += "\n";
            for (const auto& cells : part.rows) row(cells);
            out += "\n";
        }
        for (const std::string& sentence : part.sentences)
            out += "- " + markdown_text(sentence) + "\n";
        out += "\n";
    }
    return out;
}

}  // namespace servetune
