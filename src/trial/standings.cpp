// SPDX-License-Identifier: Apache-2.0
#include "servetune/standings.hpp"

#include "base/dominance.hpp"
#include "base/probability.hpp"
#include "comparable_figures.hpp"

namespace servetune {
namespace {

/// Of each limit the workloads on which some measurement has its figure.
using Judged = std::vector<std::set<std::string>>;

Judged judged_anywhere(const std::vector<Standing>& standings, const Objective& objective) {
    Judged result(objective.limits.size());
    for (const Standing& standing : standings)
        for (const Trial* trial : standing.trials)
            if (const Measurement* measurement = trial->measurement())
                for (std::size_t i = 0; i < objective.limits.size(); ++i)
                    for (const auto& [workload, value] :
                         objective.limits[i].figures(measurement->metrics))
                        result[i].insert(workload);
    return result;
}

/// Why the limits refuse a measurement; empty: all hold. One whose figure is missing does not hold.
/// Of several workloads a figure may be missing where no measurement has it: answers of one token
/// have no time per token.
std::string broken_limit(const Measurement& measurement, const Objective& objective,
                         const Judged& judged) {
    std::string reason;
    for (std::size_t i = 0; i < objective.limits.size(); ++i) {
        const Limit& limit = objective.limits[i];
        const auto holds = limit.holds(measurement.metrics);
        if (holds == false) reason = limit.broken_text(measurement.metrics);
        if (measurement.validity.ended_early()) continue;  // its limits were never judged
        if (!holds) reason = limit.unjudged_text();
        if (holds != true || !MetricKey::of(limit.metric).workload.empty()) continue;
        for (const std::string& workload : judged[i]) {
            const bool measured = measurement.metrics.contains(
                MetricKey{objective.leading().metric, workload}.text());
            if (measured && !measurement.metrics.contains(MetricKey{limit.metric, workload}.text()))
                reason = limit.unjudged_text(workload);
        }
    }
    return reason;
}

/// A measurement counts where it has every goal: half of one says nothing of a front. A failure
/// that was not its own takes nothing from what else is known of a configuration; one that was
/// measured as often unsoundly as soundly cannot win.
void judge(Standing& standing, const Objective& objective, const Decision& decision,
           const Judged& judged) {
    std::string not_its_own;
    std::string not_believed;
    std::size_t unbelieved = 0;
    bool ended_early = false;
    // A load test that was ended early counts only as long as there is no whole one, and cannot
    // win.
    const bool whole = any_of(standing.trials, [&](const Trial* trial) {
        const Measurement* measurement = trial->measurement();
        return measurement != nullptr && !measurement->validity.ended_early() &&
               decision.believes(*measurement);
    });
    for (const Trial* trial : standing.trials) {
        if (const Failure* failure = trial->failure()) {
            std::string words = std::string(name_in(failure_kinds, failure->kind)) +
                                (failure->message.empty() ? "" : ": " + failure->message);
            if (teaches(failure->kind)) standing.refuse(Refusal::failed, std::move(words));
            else not_its_own = std::move(words);
            continue;
        }
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) continue;
        if (measurement->validity.ended_early() && whole) continue;
        ended_early = ended_early || measurement->validity.ended_early();
        if (!decision.believes(*measurement)) {
            std::vector<std::string> named;  // each once, in their order
            std::string findings;
            for (const Finding& finding : measurement->validity.findings) {
                if (contains(named, finding.id)) continue;
                named.push_back(finding.id);
                findings += (findings.empty() ? "" : ", ") + finding.id;
            }
            not_believed = "unsound measurement: " + findings;
            ++unbelieved;
            continue;
        }
        std::string unusable;
        for (const Goal& goal : objective.goals)
            if (unusable.empty())
                unusable =
                    goal.why_unusable(measurement->metrics, decision.never_worse_than.has_value());
        if (!unusable.empty()) {
            standing.refuse(Refusal::unusable, std::move(unusable));
            continue;
        }
        for (std::size_t k = 0; k < standing.goals.size(); ++k) {
            const Metric& metric = measurement->metrics.find(objective.goals[k].metric)->second;
            GoalFigures& figures = standing.goals[k];
            figures.values.push_back(metric.value);
            figures.places.push_back(double(trial->id));
            figures.runs.push_back(double(std::max<std::size_t>(metric.replicates, 1)));
            figures.within += Spread::of(metric);
        }
        if (std::string reason = broken_limit(*measurement, objective, judged); !reason.empty())
            standing.refuse(Refusal::limit, std::move(reason));
    }
    if (standing.refusal != Refusal::none) return;
    if (ended_early) {
        standing.refuse(
            Refusal::slower,
            "its load test was ended early: it is surely slower than the best at that time");
        return;
    }
    if (unbelieved > 0 && unbelieved >= standing.measured())
        standing.refuse(Refusal::unsound, std::move(not_believed));
    else if (standing.measured() == 0 && !not_its_own.empty())
        standing.refuse(Refusal::not_its_own, std::move(not_its_own));
}

}  // namespace

Estimate Standings::estimate_of(const GoalFigures& figures, std::size_t k,
                                std::size_t first) const {
    double noise = noises_[k];
    double sum = 0;
    double n = 0;
    for (std::size_t i = first; i < figures.values.size(); ++i) {
        sum += figures.runs[i] * figures.values[i];
        n += figures.runs[i];
    }
    if (figures.within.freedom > 0)
        noise = std::max(noise, pooled_noise(noise, {}, figures.within));
    const std::vector<double> places(figures.places.begin() + std::ptrdiff_t(first),
                                     figures.places.end());
    // What the level there is less well known than that of the checks.
    const std::vector<double> checks =
        default_ ? standings_[*default_].goals[k].places : std::vector<double>{};
    const double unknown = std::max(0.0, drifts_[k].variance(places) - drifts_[k].variance(checks));
    return {scales_[k].figure(sum / n), std::sqrt(noise * noise / n + unknown), std::size_t(n),
            scales_[k]};
}

Standings::Standings(std::span<const Trial> history, const Objective& objective,
                     const Decision& decision, const Configuration& usual)
    : goals_(objective.goals) {
    for (const Trial& trial : history)
        if (trial.of_search()) trials_.push_back(&trial);
    sort(trials_, [](const Trial* a, const Trial* b) { return a->id < b->id; });
    for (const Trial* trial : trials_) {
        const auto [at, is_new] = index_.emplace(trial->configuration, standings_.size());
        if (is_new)
            standings_.push_back(
                {trial->configuration, {}, std::vector<GoalFigures>(goals_.size())});
        standings_[at->second].trials.push_back(trial);
    }
    // A cold start is what will be served: once one was measured or failed, warm ones count no
    // more.
    const auto warm = [](const Trial* trial) {
        return trial->measurement() != nullptr && trial->measurement()->warm_start();
    };
    const auto cold = [&](const Trial* trial) {
        return trial->failure() != nullptr ? teaches(trial->failure()->kind)
                                           : trial->measurement() != nullptr && !warm(trial);
    };
    for (Standing& standing : standings_)
        if (any_of(standing.trials, cold)) std::erase_if(standing.trials, warm);
    const Judged judged = judged_anywhere(standings_, objective);
    for (Standing& standing : standings_) judge(standing, objective, decision, judged);
    for (std::size_t i = 0; i < standings_.size() && !default_; ++i)
        if (standings_[i].configuration == usual) default_ = i;
    // A published study is judged by its figures as they are.
    if (decision.rule == Decision::Rule::significant) compare_work(standings_, objective, default_);
    for (std::size_t k = 0; k < goals_.size(); ++k) {
        scales_.push_back(take_scale(standings_, goals_[k], k, default_));
        for (Standing& standing : standings_) standing.goals[k].measured = standing.goals[k].values;
        take_off_drift(k, decision);
        std::vector<std::vector<double>> replicates;
        Spread within;
        for (const Standing& standing : standings_) {
            // What the drift was fitted to spreads less around it than new measurements would.
            if (drifts_[k].taken_off() && default_ && &standing == &standings_[*default_])
                within += drifts_[k].spread();
            else replicates.push_back(standing.goals[k].values);
            within += standing.goals[k].within;
        }
        noises_.push_back(pooled_noise(decision.noise_cv, replicates, within));
        for (Standing& standing : standings_)
            if (standing.measured() > 0)
                standing.goals[k].estimate = estimate_of(standing.goals[k], k);
    }
    guard(decision);
}

void Standings::take_off_drift(std::size_t k, const Decision& decision) {
    Drift& drift = drifts_.emplace_back();
    if (!decision.correct_drift || decision.rule == Decision::Rule::published || !default_) return;
    std::vector<DriftCheck> checks;
    std::vector<std::vector<DriftCheck>> others;
    for (const Standing& standing : standings_) {
        const GoalFigures& figures = standing.goals[k];
        std::vector<DriftCheck> all;
        for (std::size_t i = 0; i < figures.values.size(); ++i)
            all.push_back({figures.places[i], std::log(figures.values[i])});
        if (&standing == &standings_[*default_]) checks = std::move(all);
        else others.push_back(std::move(all));
    }
    drift = Drift(std::move(checks), decision.noise_cv, others);
    for (Standing& standing : standings_)
        for (std::size_t i = 0; i < standing.goals[k].values.size(); ++i)
            standing.goals[k].values[i] *= std::exp(-drift.offset(standing.goals[k].places[i]));
}

const Standing* Standings::best() const {
    const Standing* best = nullptr;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        const bool wins = best == nullptr ||
                          goals_.front().better(standing.estimate().mean, best->estimate().mean) ||
                          (standing.estimate().mean == best->estimate().mean &&
                           dominates(turned_means(standing), turned_means(*best)));
        if (wins) best = &standing;
    }
    return best;
}

std::vector<double> Standings::turned_means(const Standing& standing) const {
    std::vector<double> result;
    for (std::size_t k = 0; k < goals_.size(); ++k)
        result.push_back(goals_[k].direction == Direction::maximize
                             ? standing.goals[k].estimate.mean
                             : -standing.goals[k].estimate.mean);
    return result;
}

std::vector<const Standing*> Standings::front() const {
    std::vector<const Standing*> passing;
    std::vector<std::vector<double>> means;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        passing.push_back(&standing);
        means.push_back(turned_means(standing));
    }
    std::vector<const Standing*> result;
    for (const std::size_t i : non_dominated(means)) result.push_back(passing[i]);
    stable_sort(result, [&](const Standing* a, const Standing* b) {
        return goals_.front().better(a->estimate().mean, b->estimate().mean);
    });
    return result;
}

std::map<std::string, double> Standings::by_workload(const Standing& standing, std::size_t k,
                                                     const Decision& decision) const {
    const MetricKey metric = MetricKey::of(goals_[k].metric);
    const double sign = goals_[k].direction == Direction::maximize ? 1 : -1;
    std::map<std::string, std::pair<double, double>> sums;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr || !decision.believes(*measurement)) continue;
        for (const auto& [workload, figure] : figures_of(measurement->metrics, metric.name)) {
            const bool asked =
                metric.workload.empty() ? !workload.empty() : workload == metric.workload;
            if (!asked || !(figure->value > 0)) continue;
            auto& [sum, count] = sums[std::string(workload)];
            sum += sign * (std::log(figure->value) - drifts_[k].offset(double(trial->id)));
            ++count;
        }
    }
    std::map<std::string, double> result;
    for (const auto& [workload, sum] : sums) result[workload] = sum.first / sum.second;
    return result;
}

/// A configuration that wins by one workload what another one loses is refused, whatever the mean
/// of both says.
void Standings::guard(const Decision& decision) {
    if (!decision.never_worse_than || !default_) return;
    const double allowed = std::log(std::max(1 - *decision.never_worse_than, 1e-12));
    for (std::size_t k = 0; k < goals_.size(); ++k) {
        const auto of_default = by_workload(standings_[*default_], k, decision);
        for (Standing& standing : standings_) {
            if (&standing == &standings_[*default_]) continue;
            for (const auto& [workload, value] : by_workload(standing, k, decision)) {
                const auto* base = entry_in(of_default, workload);
                if (base == nullptr) continue;
                const double margin = value - *base - allowed;
                if (standing.guard_margin && margin >= *standing.guard_margin) continue;
                standing.guard_margin = margin;
                if (margin >= 0 ||
                    (standing.refusal != Refusal::none && standing.refusal != Refusal::guard))
                    continue;
                standing.refuse(Refusal::guard, "worse than the default on ");
                standing.refused.append(workload).append(": ");
                standing.refused.append(short_number_text(-100 * std::expm1(margin + allowed)))
                    .append(" % worse in ");
                standing.refused.append(goals_[k].metric).append(", ");
                standing.refused.append(short_number_text(100 * *decision.never_worse_than))
                    .append(" % are allowed");
            }
        }
    }
}

}  // namespace servetune
