// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include "base/probability.hpp"
#include "perf/quick_estimate.hpp"
#include "predict/study_fit.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "study/confirmation.hpp"
#include "study/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace servetune {
namespace {

constexpr double further_seconds = 3600;

/// Seconds in which at least one trial of the search ran, and how many were told in them.
std::pair<double, std::size_t> time_of_search(const ReportView& view) {
    std::vector<std::pair<double, double>> spans;
    for (const Trial& trial : view.search)
        if (trial.cost_seconds() > 0) spans.emplace_back(*trial.started_at, *trial.told_at);
    std::sort(spans.begin(), spans.end());
    double seconds = 0;
    double until = -1;
    for (const auto& [from, to] : spans) {
        seconds += std::max(0.0, to - std::max(from, until));
        until = std::max(until, to);
    }
    return {seconds, spans.size()};
}

/// Trials an hour and the seconds that they take; of a study that measures nothing as many as it
/// had, without a time.
std::pair<std::size_t, double> trials_of_an_hour(const ReportView& view) {
    const auto [seconds, trials] = time_of_search(view);
    if (!view.setup.file.measures() || seconds <= 0) return {view.completed(), 0};
    const double each = seconds / static_cast<double>(trials);
    const auto count = static_cast<std::size_t>(std::max(1.0, std::floor(further_seconds / each)));
    return {count, std::max(further_seconds, each)};
}

std::vector<LimitMargin> limit_margins(const ReportView& view, const Standing& served) {
    const Problem& problem = *view.setup.problem;
    const Goal& goal = problem.objective.leading();
    std::vector<LimitMargin> result;
    for (const Limit& limit : problem.objective.limits)
        for (const auto& [workload, value] : limited_figures(served, limit, problem.decision)) {
            LimitMargin one{limit, workload,
                            value, limit.at_least ? value - limit.bound : limit.bound - value,
                            {},    {}};
            const Standing* best = nullptr;
            for (const Standing& other : view.standings.all()) {
                if (other.measured() == 0 || other.passes() ||
                    !goal.better(other.estimate().mean, served.estimate().mean))
                    continue;
                const auto figures = limited_figures(other, limit, problem.decision);
                const auto at = figures.find(workload);
                if (at == figures.end() || limit.keeps(at->second)) continue;
                if (best == nullptr || goal.better(other.estimate().mean, best->estimate().mean))
                    best = &other;
            }
            if (best != nullptr) {
                one.refuses = best->configuration;
                one.costs = judged_gain(problem, view.standings, *best, served);
            }
            result.push_back(std::move(one));
        }
    const auto share = [](const LimitMargin& one) {
        return one.limit.bound == 0 ? std::numeric_limits<double>::infinity()
                                    : one.margin / std::abs(one.limit.bound);
    };
    std::stable_sort(result.begin(), result.end(), [&](const LimitMargin& a, const LimitMargin& b) {
        if (a.refuses.has_value() != b.refuses.has_value()) return a.refuses.has_value();
        return share(a) < share(b);
    });
    return result;
}

std::vector<AtTheEnd> ends_of(const SearchSpace& space, const Configuration& served) {
    std::vector<AtTheEnd> result;
    for (const auto& [name, value] : served.entries()) {
        const Parameter& parameter = space.at(name);
        const auto number = number_of(value);
        if (!parameter.ordered() || value == parameter.default_value || !number) continue;
        std::vector<double> ends;  // levels rise, whatever comes before them
        const auto include = [&](const Value& one) {
            if (const auto size = number_of(one)) ends.push_back(*size);
        };
        std::size_t levels = 3;
        if (parameter.continuous())
            include(parameter.at_position(0)), include(parameter.at_position(1));
        else {
            levels = parameter.level_count() - (parameter.offers_unset ? 1 : 0);
            for (const std::size_t i :
                 {std::size_t{0}, std::size_t{1}, parameter.level_count() - 1})
                if (i < parameter.level_count()) include(parameter.level(i));
        }
        if (levels < 3 || ends.empty()) continue;  // of two each is an end
        const auto [low, high] = std::minmax_element(ends.begin(), ends.end());
        if (*number <= *low || *number >= *high) result.push_back({name, value, *number >= *high});
    }
    return result;
}

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

/// What a million tokens takes by one measurement; nothing: it does not tell.
using CostOf = std::function<std::optional<double>(const Measurement&, const Configuration&)>;

class CostFigures {
public:
    CostFigures(const ReportView& view, CostOf cost) : view_(view), cost_(std::move(cost)) {
        for (const Standing& standing : view.standings.all())
            spread_ += Spread::of(values_of(standing.configuration, false));
    }

    [[nodiscard]] ServingCost::Figure figure(const std::vector<double>& values) const {
        const double count = static_cast<double>(values.size());
        return with_reach(std::accumulate(values.begin(), values.end(), 0.0) / count, 1 / count);
    }
    [[nodiscard]] ServingCost::Figure change(const std::vector<double>& before,
                                             const std::vector<double>& after) const {
        ServingCost::Figure result = with_reach(
            figure(after).value / figure(before).value,
            1 / static_cast<double>(before.size()) + 1 / static_cast<double>(after.size()));
        result.value -= 1;
        if (result.low) *result.low -= 1, *result.high -= 1;
        return result;
    }
    /// By what is believed and whole. `judged`: where the gain is by rounds, theirs alone.
    [[nodiscard]] std::vector<double> values_of(const Configuration& configuration,
                                                bool judged) const {
        std::set<std::uint64_t> rounds;
        if (judged && view_.gain_is_by_rounds())
            for (const ConfirmationRound& round : confirmation_rounds(view_.standings.trials()))
                for (const Trial* trial : round) rounds.insert(trial->id);
        std::vector<double> result;
        for (const Trial* trial : view_.standings.trials()) {
            const Measurement* measurement = trial->measurement();
            if (measurement == nullptr || trial->configuration != configuration ||
                measurement->validity.ended_early() ||
                !view_.problem().decision.believes(*measurement) ||
                (!rounds.empty() && !rounds.contains(trial->id)))
                continue;
            if (const auto value = cost_(*measurement, configuration);
                value && *value > 0 && std::isfinite(*value))
                result.push_back(*value);
        }
        return result;
    }

private:
    /// `runs`: 1 / n, of a ratio the sum of both.
    [[nodiscard]] ServingCost::Figure with_reach(double value, double runs) const {
        const auto freedom = static_cast<std::size_t>(spread_.freedom);
        if (freedom == 0) return {value};
        constexpr double beyond = 0.05;
        const double reach =
            student_quantile(beyond, freedom) * std::sqrt(spread_.squares / spread_.freedom * runs);
        return {value, value * std::exp(-reach), value * std::exp(reach)};
    }

    const ReportView& view_;
    CostOf cost_;
    Spread spread_{};
};

}  // namespace

namespace {

Account account_by(const ReportView& view, const FittedHistory& fitted) {
    const Problem& problem = *view.setup.problem;
    const Recommendation& result = view.recommendation;
    const Outlook outlook(fitted);
    Account account{ladder_of(view, outlook), what_limits(view), {}, {}, serving_costs(view)};
    const Standing* served = view.standings.find(result.recommended);
    if (result.conclusion == Conclusion::nothing_passes || served == nullptr || !served->passes())
        account.no_more = "nothing passes yet, so there is nothing to gain over";
    else if (!outlook.enough()) {
        const EffectsFloor floor = EffectsFloor::of(problem.space, view.standings);
        account.no_more =
            fmt::format("{} measured, and the models need {}",
                        counted_text(floor.measured, "configuration"), floor.needed());
    } else {
        const auto [trials, seconds] = trials_of_an_hour(view);
        MoreTrials& more = account.more.emplace();
        more.further = outlook.further(result.recommended, trials, problem.decision.min_gain);
        more.seconds = seconds;
        more.likely = more.further.chance_changed > 0.5;
    }
    return account;
}

}  // namespace

Account account_of(const ReportView& view) {
    const Bayesian bayesian(view.setup.bayesian_options());
    return account_by(view,
                      *fitted_history(view.problem(), view.trials, bayesian, view.setup.beliefs));
}

ServingCosts serving_costs(const ReportView& view) {
    ServingCosts result;
    const StudyFile& file = view.setup.file;
    const Recommendation& recommendation = view.recommendation;
    if (recommendation.conclusion == Conclusion::nothing_passes) return result;
    const auto add = [&](const char* unit, const char* tokens, const CostOf& cost) {
        const CostFigures figures(view, cost);
        const std::vector<double> before = figures.values_of(view.base(), true);
        const std::vector<double> after = figures.values_of(recommendation.recommended, true);
        if (after.empty()) return false;
        ServingCost& row =
            result.all.emplace_back(ServingCost{unit, tokens, {}, figures.figure(after), {}});
        if (before.empty()) return true;
        row.of_default = figures.figure(before);
        if (recommendation.recommended != view.base()) row.change = figures.change(before, after);
        return true;
    };
    bool dollars = false;
    bool energy = false;
    const auto price = file.machine.usd_per_device_hour;
    for (const std::string tokens : {"output", "total"}) {
        if (price)
            dollars |=
                add("USD", tokens.c_str(),
                    [&](const Measurement& one,
                        const Configuration& configuration) -> std::optional<double> {
                        const auto rate = value_in(one.metrics, tokens + "_tokens_per_second");
                        if (!rate) return std::nullopt;
                        const double devices =
                            static_cast<double>(file.composition->devices_of(configuration)) *
                            value_in(one.metrics, "replicas").value_or(1);
                        return *price * devices / 3600 / *rate * 1e6;
                    });
        energy |= add("kWh", tokens.c_str(), [&](const Measurement& one, const Configuration&) {
            const auto joules = value_in(one.metrics, "joules_per_" + tokens + "_token");
            return joules ? std::optional(*joules * 1e6 / 3.6e6) : std::nullopt;
        });
    }
    if (!dollars)
        result.no_dollars = price ? "no measurement has a rate of tokens"
                                  : "the study has no price: write 'hardware: {price_per_hour: "
                                    "DOLLARS}', of all devices together";
    if (!energy)
        result.no_energy = file.measures() ? "no measurement has the power of its GPUs"
                                           : "nothing was measured here";
    return result;
}

std::optional<WhatLimits> what_limits(const ReportView& view) {
    const Recommendation& recommendation = view.recommendation;
    const Standing* served = view.standings.find(recommendation.recommended);
    if (recommendation.conclusion == Conclusion::nothing_passes || served == nullptr ||
        served->measured() == 0)
        return std::nullopt;
    WhatLimits result;
    result.limits = limit_margins(view, *served);
    result.at_the_end = ends_of(view.setup.problem->space, recommendation.recommended);
    return result;
}

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

Explained Explained::of(const ReportView& view) {
    const Bayesian bayesian(view.setup.bayesian_options());
    const auto fitted = fitted_history(view.problem(), view.trials, bayesian, view.setup.beliefs);
    return {Effects(*fitted), account_by(view, *fitted)};
}

namespace {

class LadderBuilder {
public:
    LadderBuilder(const ReportView& view, const Outlook& outlook)
        : view_(view),
          outlook_(outlook),
          problem_(view.problem()),
          base_(view.standings.find(view.recommendation.default_configuration)),
          winner_(view.recommendation.recommended) {}

    Ladder built() {
        walk();
        ladder_.total = view_.recommendation.gain;
        // The steps between two measured configurations share what was measured between them.
        for (std::size_t from = 0; from + 1 < path_.size();) {
            std::size_t to = from + 1;
            while (!over_default(path_[to])) ++to;
            add_steps(from, to);
            from = to;
        }
        add_alone();
        return std::move(ladder_);
    }

private:
    using Names = std::vector<std::string>;

    [[nodiscard]] const Configuration& base() const { return view_.base(); }
    [[nodiscard]] const FigureScale& scale() const { return view_.standings.scale(); }
    /// ln of a measured gain over the default; nothing: it has no number.
    [[nodiscard]] std::optional<double> over_default(const Configuration& one) const {
        const Standing* standing = view_.standings.find(one);
        if (standing == nullptr || standing->measured() == 0) return std::nullopt;
        const double gain = one == winner_
                                ? view_.recommendation.gain.value
                                : judged_gain(problem_, view_.standings, *standing, *base_).value;
        return std::log1p(gain);
    }
    /// Parameters of the winner that `from` has otherwise.
    [[nodiscard]] Names differing(const Configuration& from) const {
        Names result;
        for (const auto& [name, value] : winner_.entries())
            if (const Value* mine = from.find(name); mine == nullptr || *mine != value)
                result.push_back(name);
        return result;
    }
    /// With these parameters as the winner has them, where the rules allow that.
    [[nodiscard]] std::optional<Configuration> with(const Configuration& from,
                                                    const Names& names) const {
        Assignment changes;
        for (const std::string& name : names) {
            const Value* value = winner_.find(name);
            if (value == nullptr) return std::nullopt;
            changes[name] = *value;
        }
        try {
            Configuration result = problem_.space.changed(from, changes);
            if (result != from && problem_.space.feasible(result)) return result;
        } catch (const SpaceError&) {
            // It has no effect before another parameter is changed.
        }
        return std::nullopt;
    }

    /// What may come next: one change, two where no single one is allowed, else all that are left.
    [[nodiscard]] std::vector<std::pair<Names, Configuration>> next_of(
        const Configuration& from) const {
        const Names names = differing(from);
        std::vector<std::pair<Names, Configuration>> result;
        const auto add = [&](const Names& changed) {
            if (auto to = with(from, changed)) result.emplace_back(changed, std::move(*to));
        };
        for (const std::string& name : names) add({name});
        for (std::size_t i = 0; result.empty() && i < names.size(); ++i)
            for (std::size_t j = i + 1; j < names.size(); ++j) add({names[i], names[j]});
        if (result.empty()) result.emplace_back(names, winner_);
        return result;
    }

    void walk() {
        path_.push_back(base());
        names_.emplace_back();
        while (path_.back() != winner_) {
            auto options = next_of(path_.back());
            std::vector<double> values;
            const bool any_measured =
                std::any_of(options.begin(), options.end(),
                            [&](const auto& one) { return over_default(one.second).has_value(); });
            if (any_measured)
                std::erase_if(options, [&](const auto& one) { return !over_default(one.second); });
            else if (!outlook_.enough()) options = {{differing(path_.back()), winner_}};
            if (any_measured)
                for (const auto& one : options) values.push_back(*over_default(one.second));
            else if (options.size() > 1) {
                std::vector<Configuration> all;
                for (const auto& one : options) all.push_back(one.second);
                values = outlook_.means(all, base());
                for (std::size_t i = 0; i < all.size();
                     ++i)  // what was tried and failed comes last
                    if (const Standing* tried = view_.standings.find(all[i]);
                        tried != nullptr && tried->told())
                        values[i] -= 1e6;
            } else values.push_back(0);
            const auto best = static_cast<std::size_t>(
                std::max_element(values.begin(), values.end()) - values.begin());
            path_.push_back(options[best].second);
            names_.push_back(options[best].first);
        }
    }

    [[nodiscard]] std::vector<std::string> changes_of(const Names& names,
                                                      const Configuration& to) const {
        std::vector<std::string> result;
        for (const std::string& name : names)
            if (const Value* value = to.find(name))
                result.push_back(name + " = " + text_of(*value));
        return result;
    }

    /// Between two measured configurations, as one of `together` intervals.
    [[nodiscard]] Gain measured_gain(const Configuration& from, const Configuration& to,
                                     std::size_t together) const {
        if (from == base() && to == winner_) return view_.recommendation.gain;
        const Standing& a = *view_.standings.find(from);
        const Standing& b = *view_.standings.find(to);
        const double value = std::expm1(*over_default(to) - *over_default(from));
        const Gain plain = view_.standings.measured_gain(b.estimate(), a.estimate(), 0, together);
        if (!plain.has_interval()) return Gain::unknown(value, scale());
        const double reach = std::log((1 + plain.high) / (1 + plain.value));
        return {
            value,  (1 + value) * std::exp(-reach) - 1, (1 + value) * std::exp(reach) - 1, {}, {},
            scale()};
    }
    [[nodiscard]] Gain predicted_gain(const LogGain& gain, std::size_t together) const {
        const double reach =
            -normal_quantile(0.025 / static_cast<double>(std::max<std::size_t>(together, 1))) *
            gain.deviation;
        return {std::expm1(gain.mean),
                std::expm1(gain.mean - reach),
                std::expm1(gain.mean + reach),
                {},
                {},
                scale()};
    }

    void add_steps(std::size_t from, std::size_t to) {
        const std::size_t together = path_.size() - 1;
        std::vector<LogGain> predicted;
        if (to > from + 1) {
            const std::vector<Configuration> part(
                path_.begin() + static_cast<std::ptrdiff_t>(from),
                path_.begin() + static_cast<std::ptrdiff_t>(to) + 1);
            predicted =
                outlook_.steps_to(part, *over_default(path_[to]) - *over_default(path_[from]));
        }
        for (std::size_t i = from + 1; i <= to; ++i) {
            LadderStep step{changes_of(names_[i], path_[i]), path_[i], {}, {}, {}};
            if (predicted.empty())
                step.gain = {measured_gain(path_[from], path_[i], together), true};
            else step.gain = {predicted_gain(predicted[i - from - 1], together), false};
            if (const Standing* tried = view_.standings.find(path_[i]);
                tried != nullptr && tried->told() && !tried->passes())
                step.refused = tried->refused;
            ladder_.steps.push_back(std::move(step));
        }
    }

    /// From one to the other, whoever can tell.
    [[nodiscard]] std::optional<LadderGain> between(const Configuration& from,
                                                    const Configuration& to) const {
        if (over_default(from) && over_default(to))
            return LadderGain{measured_gain(from, to, 1), true};
        if (!outlook_.enough()) return std::nullopt;
        const std::vector<Configuration> path{from, to};
        return LadderGain{predicted_gain(outlook_.steps(path).front(), 1), false};
    }

    void add_alone() {
        if (ladder_.steps.size() < 2) return;
        for (std::size_t i = 0; i < ladder_.steps.size(); ++i)
            if (const auto alone = with(base(), names_[i + 1]))
                ladder_.steps[i].alone = between(base(), *alone);
    }

    const ReportView& view_;
    const Outlook& outlook_;
    const Problem& problem_;
    const Standing* base_;
    const Configuration& winner_;
    std::vector<Configuration> path_{};
    std::vector<Names> names_{};  ///< what changed to come to each of the path
    Ladder ladder_{};
};

}  // namespace

bool Ladder::all_measured() const {
    return std::all_of(steps.begin(), steps.end(),
                       [](const LadderStep& step) { return step.gain.measured; });
}

std::optional<Ladder> ladder_of(const ReportView& view, const Outlook& outlook) {
    const Recommendation& result = view.recommendation;
    if (result.conclusion != Conclusion::recommended || !result.default_passes ||
        result.keep_default)
        return std::nullopt;
    return LadderBuilder(view, outlook).built();
}

}  // namespace servetune
