// SPDX-License-Identifier: Apache-2.0
#include "report_view.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/outcome.hpp"
#include "servetune/recommendation.hpp"
#include "study/confirmation.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace servetune {

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
    std::string result;
    for (const std::string& text : texts)
        result.append(&text == texts.data() ? "" : between) += text;
    return result;
}

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

std::string metric_title(std::string_view metric) {
    auto [name, of] = MetricKey::of(metric);
    const std::string workload = of.empty() ? "" : ", " + std::string(of);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> families{
        {{"time_to_first_token_", "TTFT "},
         {"time_per_output_token_", "TPOT "},
         {"inter_token_latency_", "ITL "},
         {"latency_", "latency "}}};
    std::string title;
    if (is_time(name)) name.remove_suffix(std::string_view("_seconds").size());
    for (const auto& [family, called] : families)
        if (name.starts_with(family)) {
            title = called;
            name.remove_prefix(family.size());
            break;
        }
    for (const char c : name) title += c == '_' ? ' ' : c;
    if (const auto rate = title.find(" per second"); rate != std::string::npos)
        title.replace(rate, std::string_view(" per second").size(), "/s");
    return title + workload;
}

bool less_is_better(const Objective& objective, std::string_view metric) {
    for (const Goal& goal : objective.goals)
        if (goal.metric == metric) return goal.direction == Direction::minimize;
    for (const Limit& limit : objective.limits)
        if (limit.metric == metric) return !limit.at_least;
    return less_is_better(metric);
}

std::string plain_percent(double share) { return short_number_text(share * 100) + " %"; }

std::string interval_text(const Gain& gain) {
    return gain_text(gain.low, gain.scale) + " to " + gain_text(gain.high, gain.scale);
}

std::string interval_name(const Gain& gain) { return percent_text(gain.level, 0) + " interval"; }

std::string with_interval(const Gain& gain) {
    return gain.has_interval() ? interval_name(gain) + " " + interval_text(gain)
                               : "one measurement each: no interval";
}

std::string noise_text(const ReportView& view) {
    const FigureScale& scale = view.standings.scale();
    const std::string noise =
        (scale.ratios() ? fmt::format("{:.1f} %", view.standings.noise() * 100)
                        : short_number_text(view.standings.noise() * scale.unit)) +
        " per measurement";
    const std::size_t replicated = view.standings.replicated();
    if (replicated == 0) return noise + " (assumed: every configuration was measured once)";
    const double assumed = view.setup.problem->decision.noise_cv;
    return noise +
           fmt::format(
               " (from the repeated measurements of {} configuration{}, {} the assumed {})",
               replicated, replicated == 1 ? "" : "s",
               assumption_is_contradicted(assumed, view.standings.noise()) ? "which contradict"
                                                                           : "and",
               scale.ratios() ? plain_percent(assumed) : short_number_text(assumed * scale.unit));
}

std::string drift_text(const Standings& standings) {
    const Drift& drift = standings.drift();
    const FigureScale& scale = standings.scale();
    if (drift.checks() < Drift::least_checks) return "";
    const std::string checks = fmt::format("by {} measurements of the default", drift.checks());
    if (!drift.real()) return "none is proven, " + checks;
    return fmt::format(
        "{}, the speed of the machine changed by {} during the study (chance of as much without a "
        "drift: {:.1g} %). It is taken off "
        "every figure that is judged here",
        checks,
        scale.ratios() ? fmt::format("{:.1f} %", 100 * drift.change())
                       : short_number_text(std::abs(scale.stated(-drift.change()))),
        100 * drift.chance());
}

namespace {

Metrics means_of(std::vector<const Measurement*> measurements, const Decision& decision) {
    const auto believed = [&](const Measurement* one) { return decision.believes(*one); };
    if (any_of(measurements, believed))
        std::erase_if(measurements, [&](const Measurement* one) { return !believed(one); });
    Metrics result;
    std::map<std::string, double, std::less<>> runs;
    for (const Measurement* measurement : measurements)
        for (const auto& [name, metric] : measurement->metrics) {
            const auto count = double(metric.replicates);
            result[name].value += count * metric.value;
            runs[name] += count;
        }
    for (auto& [name, metric] : result) metric.value /= runs.at(name);
    return result;
}

}  // namespace

std::string ReportView::changes(const Configuration& configuration) const {
    const std::string text = difference_text(configuration, base());
    return text.empty() ? "the default" : text;
}

std::size_t ReportView::completed() const {
    return count_if(search, [](const Trial& one) { return one.told(); });
}

const Measurement* ReportView::measured(const Configuration& configuration,
                                        std::string_view workload) const {
    for (const Trial& trial : trials)
        if (trial.workload == workload && trial.configuration == configuration &&
            trial.measurement() != nullptr)
            return trial.measurement();
    return nullptr;
}

Metrics ReportView::means(const Configuration& configuration, std::string_view workload) const {
    std::vector<const Measurement*> measurements;
    for (const Trial& trial : trials)
        if (trial.workload == workload && trial.configuration == configuration &&
            trial.measurement() != nullptr)
            measurements.push_back(trial.measurement());
    return means_of(std::move(measurements), problem().decision);
}

Metrics ReportView::judged_means(const Configuration& configuration) const {
    if (!gain_is_by_rounds()) return means(configuration);
    std::vector<const Measurement*> measurements;
    for (const ConfirmationRound& round : confirmation_rounds(standings.trials())) {
        const auto in_round = [&](const Configuration& one) -> const Measurement* {
            for (const Trial* trial : round)
                if (trial->configuration == one && trial->measurement() != nullptr)
                    return trial->measurement();
            return nullptr;
        };
        const Measurement* mine = in_round(configuration);
        if (mine != nullptr && in_round(recommendation.recommended) != nullptr &&
            in_round(base()) != nullptr)
            measurements.push_back(mine);
    }
    return means_of(std::move(measurements), problem().decision);
}

std::optional<double> ReportView::figure(const Standing& standing) const {
    if (standing.measured() > 0) return standing.estimate().mean;
    return value_in(means(standing.configuration), goal().metric);
}

std::optional<double> ReportView::gain_in_table(const Configuration& configuration,
                                                std::optional<double> figure,
                                                std::optional<double> of_default) const {
    if (gains() && configuration == recommendation.recommended)
        return recommendation.gain.scale.stated(recommendation.gain.value);
    if (!figure || !of_default) return std::nullopt;
    return stated_gain(goal(), scale(), *figure, *of_default);
}

ReportView::Counts ReportView::counts() const {
    Counts result;
    for (const Trial& trial : trials) {
        if (trial.purpose == Purpose::stress) continue;
        result.completed += trial.told() ? 1 : 0;
        result.failed += trial.failure() != nullptr ? 1 : 0;
        if (trial.measurement() == nullptr) continue;
        ++result.measured;
        ++result.verdicts[trial.measurement()->validity.verdict];
    }
    return result;
}

std::map<std::string, double> limited_figures(const Standing& standing, const Limit& limit,
                                              const Decision& decision) {
    std::map<std::string, double> result;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr || (!decision.believes(*measurement) && standing.measured() > 0))
            continue;
        for (const auto& [workload, value] : limit.figures(measurement->metrics)) {
            const auto [at, is_new] = result.emplace(workload, value);
            if (!is_new)
                at->second =
                    limit.at_least ? std::min(at->second, value) : std::max(at->second, value);
        }
    }
    if (result.size() > 1)
        result.erase("");  // the workloads' own figures are judged, not their mean
    return result;
}

std::string spent_text(double seconds) {
    constexpr double minute = 60;
    constexpr double hour = 3600;
    if (seconds < 2 * minute) return fmt::format("{:.0f} s", seconds);
    return seconds < 2 * hour ? fmt::format("{:.1f} min", seconds / minute)
                              : fmt::format("{:.1f} h", seconds / hour);
}

TimeSpent time_spent_in(std::span<const Trial> trials) {
    TimeSpent spent;
    for (const Trial& trial : trials) {
        spent.trials += trial.cost_seconds();
        const Measurement* measured = trial.measurement();
        if (measured == nullptr) continue;
        for (const auto& [name, sum] : {std::pair("trial_start_seconds", &spent.starts),
                                        {"trial_warm_up_seconds", &spent.warm_up},
                                        {"trial_measure_seconds", &spent.loads},
                                        {"trial_saved_seconds", &spent.saved},
                                        {cache_size_metric.data(), &spent.told}})
            *sum += value_in(measured->metrics, name).value_or(0);
    }
    return spent;
}

std::string TimeSpent::text() const {
    std::string result = spent_text(trials);
    if (loads > 0)
        result += ": starts " + spent_text(starts) +
                  (told > 0 ? fmt::format(" ({:.0f} of them told the size of their cache by an "
                                          "earlier one)",
                                          told)
                            : "") +
                  ", warm-up " + spent_text(warm_up) + ", load tests " + spent_text(loads);
    if (saved > 0) result += "; early ends saved " + spent_text(saved);
    return result;
}

namespace {

/// The configurations that stages named `recipe` list.
std::vector<Configuration> listed_as_recipe(const ReportView& view) {
    std::vector<Configuration> result;
    if (const auto* staged = dynamic_cast<const Staged*>(view.setup.strategy.get()))
        for (const Staged::Step& step : staged->walk(view.problem(), view.search).steps)
            for (const Staged::Candidate& candidate : step.candidates)
                if (step.stage->name == "recipe" && candidate.excluded.empty())
                    result.push_back(candidate.configuration);
    return result;
}

/// Null: it was not tried.
const Standing* told_standing(const ReportView& view, const Configuration& configuration) {
    const Standing* standing = view.standings.find(configuration);
    return standing != nullptr && standing->told() ? standing : nullptr;
}

/// Whether it is refused for what it is, not for what disturbed its measurement.
bool is_at_fault(const Standing& standing) {
    return standing.refusal == Refusal::failed || standing.refusal == Refusal::limit ||
           standing.refusal == Refusal::guard;
}

void judge_change(RecipeChange& change, const Standing& with, const Standing& without,
                  const ReportView& view, std::size_t comparisons) {
    change.verdict = RecipeVerdict::nothing_seen;
    if (!with.passes() || !without.passes()) {
        change.reason = with.passes() ? "without it: " + without.refused : with.refused;
        if (with.passes() && is_at_fault(without)) change.verdict = RecipeVerdict::earns_its_place;
        if (without.passes() && is_at_fault(with)) change.verdict = RecipeVerdict::costs;
        return;
    }
    Gain& gain = change.gain.emplace(
        gain_between(view.goal(), with.estimate(), without.estimate(), comparisons));
    gain.assumed = view.standings.replicated() == 0;
    if (gain.assumed) return;
    if (meets_min_gain(view.problem().decision, gain))
        change.verdict = RecipeVerdict::earns_its_place;
    else if (gain.high < 0) change.verdict = RecipeVerdict::costs;
}

}  // namespace

RecipeChanges recipe_changes(const ReportView& view) {
    const SearchSpace& space = view.problem().space;
    for (const Configuration& recipe : listed_as_recipe(view)) {
        const Standing* with = told_standing(view, recipe);
        if (with == nullptr) continue;
        RecipeChanges result{recipe};
        std::vector<const Standing*> neighbours;
        for (const auto& [name, value] : recipe.entries()) {
            const Value& without = space.at(name).default_value;
            if (value == without) continue;
            result.changes.push_back({name, value, without});
            neighbours.push_back(told_standing(view, space.changed(recipe, {{name, without}})));
        }
        const auto measured =
            count_if(neighbours, [](const Standing* one) { return one != nullptr; });
        if (measured < 2) continue;
        for (std::size_t i = 0; i < neighbours.size(); ++i)
            if (neighbours[i] != nullptr)
                judge_change(result.changes[i], *with, *neighbours[i], view, measured);
        return result;
    }
    return {};
}

}  // namespace servetune
