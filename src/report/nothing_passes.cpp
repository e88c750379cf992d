// SPDX-License-Identifier: Apache-2.0
// What to say of a study in which no configuration passes: what came nearest, or what most of them
// failed of.
#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace servetune {
namespace {

/// What happened most often, and the first trial that it happened to.
struct Commonest {
    std::string name{};
    std::size_t count = 0;
    std::size_t all = 0;
    const Trial* first = nullptr;
};

/// `name_of`: what happened to a trial; nothing: it does not count.
template <class Name>
Commonest commonest(const ReportView& view, const Name& name_of) {
    std::map<std::string, std::pair<std::size_t, const Trial*>> counts;
    Commonest result;
    for (const Trial& trial : view.search) {
        const std::optional<std::string> name = name_of(trial);
        if (!name) continue;
        ++result.all;
        auto& [count, first] = counts[*name];
        if (count++ == 0) first = &trial;
    }
    for (const auto& [name, found] : counts)
        if (found.first > result.count) {
            result.name = name;
            result.count = found.first;
            result.first = found.second;
        }
    return result;
}

Commonest commonest_failure(const ReportView& view) {
    return commonest(view, [](const Trial& trial) {
        const Failure* failure = trial.failure();
        return failure == nullptr
                   ? std::nullopt
                   : std::optional(std::string(name_in(failure_kinds, failure->kind)));
    });
}

/// Of what makes measurements unsound: the first finding of each.
Commonest commonest_finding(const ReportView& view) {
    return commonest(view, [&](const Trial& trial) {
        const Measurement* measurement = trial.measurement();
        const bool refused =
            measurement != nullptr && !view.setup.problem->decision.believes(*measurement);
        return refused && !measurement->validity.findings.empty()
                   ? std::optional(measurement->validity.findings.front().id)
                   : std::nullopt;
    });
}

std::string failures_text(const Commonest& failure) {
    std::string message = printable_line(failure.first->failure()->message);
    while (message.ends_with('.')) message.pop_back();  // the sentence around it ends with one
    return (failure.count < failure.all ? "most often " : "") + failure.name +
           (message.empty() ? "" : ": " + message);
}

std::string finding_text(const Commonest& finding) {
    std::string text = (finding.count < finding.all ? "most often for " : "for ") + finding.name;
    for (const Finding& one : finding.first->measurement()->validity.findings)
        if (one.id == finding.name) {
            for (const std::string& part : {one.left, one.right, one.cause})
                text += part.empty() ? "" : "; " + part;
            break;
        }
    return text;
}

std::string setting_text(const ReportView& view, const Configuration& configuration) {
    const std::string changes =
        difference_text(configuration, view.recommendation.default_configuration);
    return changes.empty() ? "the default" : changes;
}

/// `limit M <= 100 ms by 23 %: 123 ms on chat`.
std::string broken_text(const BrokenLimit& broken) {
    const double beyond = std::abs(broken.value - broken.limit.bound);
    const double bound = std::abs(broken.limit.bound);
    const bool milliseconds = shown_in_milliseconds(broken.limit.metric);
    return fmt::format(
        "{} by {}: {}{}", broken.limit.readable(),
        bound > 0 ? short_number_text(100 * beyond / bound, 1) + " %" : short_number_text(beyond),
        short_number_text(broken.value * (milliseconds ? 1e3 : 1)) + (milliseconds ? " ms" : ""),
        broken.workload.empty() ? "" : " on " + broken.workload);
}

/// The limits as they would have to be, each metric's once with the bound that all its workloads
/// keep.
std::string loosened_text(const Closest& closest) {
    std::vector<Limit> limits;
    for (const BrokenLimit& broken : closest.broken) {
        const Limit loose = broken.loosened();
        const auto same = std::find_if(limits.begin(), limits.end(), [&](const Limit& other) {
            return other.metric == loose.metric && other.at_least == loose.at_least;
        });
        if (same == limits.end()) limits.push_back(loose);
        else
            same->bound = loose.at_least ? std::min(same->bound, loose.bound)
                                         : std::max(same->bound, loose.bound);
    }
    std::string text;
    for (const Limit& limit : limits)
        text += (text.empty() ? "" : " and ") + ("'" + limit.readable() + "'");
    return text;
}

}  // namespace

std::pair<std::string, std::string> why_nothing_passes(const ReportView& view) {
    std::size_t told = 0;
    bool others = false;
    for (const Standing& standing : view.standings.all()) {
        told += standing.told() ? 1 : 0;
        others = others || (standing.told() &&
                            standing.configuration != view.recommendation.default_configuration);
    }
    if (told == 0) return {"Nothing has been measured yet.", ""};
    const Commonest failure = commonest_failure(view);
    const Commonest finding = commonest_finding(view);
    const std::string beginning = others
                                      ? "No measured configuration passes. "
                                      : "The default does not pass, and nothing else was tried. ";
    if (const auto& closest = view.recommendation.closest) {
        std::string reason = beginning + fmt::format("Nearest is {}: it breaks ",
                                                     setting_text(view, closest->configuration));
        for (std::size_t i = 0; i < closest->broken.size(); ++i)
            reason += (i == 0 ? "" : ", ") + broken_text(closest->broken[i]);
        reason += '.';
        if (failure.all > 0)
            reason += fmt::format(" {} failed, {}.", counted_text(failure.all, "trial"),
                                  failures_text(failure));
        return {std::move(reason),
                "It passes with " + loosened_text(*closest) +
                    ". Loosen that far or widen the space, then run the study in a new folder."};
    }
    if (failure.all == view.search.size() || (failure.all > 0 && finding.all == 0))
        return {beginning + fmt::format("{} failed, {}.", counted_text(failure.all, "trial"),
                                        failures_text(failure)),
                "Mend that first; the report has the lines of the logs."};
    if (finding.all > 0)
        return {beginning +
                    fmt::format("The audit refuses {}, {}.",
                                counted_text(finding.all, "measurement"), finding_text(finding)) +
                    (failure.all > 0
                         ? fmt::format(" {} failed, {}.", counted_text(failure.all, "trial"),
                                       failures_text(failure))
                         : ""),
                "Remove the cause, then run the study again in a new folder."};
    const Standing* first = nullptr;
    for (const Standing& standing : view.standings.all())
        if (standing.told() && (first == nullptr || standing.configuration ==
                                                        view.recommendation.default_configuration))
            first = &standing;
    return {beginning + (first->refused.empty() ? ""
                                                : setting_text(view, first->configuration) + ": " +
                                                      first->refused + "."),
            "See what failed or was refused, and why."};
}

}  // namespace servetune
