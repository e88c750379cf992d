// SPDX-License-Identifier: Apache-2.0
#include "early_end.hpp"

#include "load/capacity.hpp"
#include "servetune/outcome.hpp"
#include "trial/metric_text.hpp"

#include <cmath>
#include <utility>

namespace servetune {

EarlyEnd::EarlyEnd(std::optional<Incumbent> to_beat, double give_up, std::vector<Limit> limits,
                   const std::vector<Workload>& workloads)
    : to_beat_(std::move(to_beat)),
      give_up_(give_up),
      limits_(std::move(limits)),
      workloads_(workloads) {
    if (!to_beat_) return;
    constexpr double noises = 4;  // the best of many was lucky, and each differs from each by noise
    give_up_ = std::max(give_up, noises * to_beat_->noise);
    share_ = 1 + give_up_;
    if (!(give_up > 0) || !(to_beat_->value > 0) ||
        !MetricKey::of(to_beat_->goal.metric).workload.empty())
        to_beat_.reset();
    else if (to_beat_->goal.direction == Direction::minimize) share_ = 1 / share_;
}

double EarlyEnd::weights() const {
    double result = 0;
    for (const Workload& workload : workloads_) result += workload.weight;
    return result;
}

double EarlyEnd::had_to_reach() const { return to_beat_ ? to_beat_->value / share_ : 0; }

std::optional<double> EarlyEnd::sum_of_logs(const std::vector<WorkloadMetrics>& before,
                                            double factor, std::size_t skipped) const {
    double sum = 0;
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
        if (i == skipped) continue;
        double figure = 0;
        if (i < before.size()) {
            const auto* found = entry_in(before[i].metrics, to_beat_->goal.metric);
            if (found != nullptr) figure = found->value;
        } else if (const auto* best = entry_in(to_beat_->of_workloads, workloads_[i].name))
            figure = best->figure * factor;
        if (!(figure > 0)) return std::nullopt;
        sum += workloads_[i].weight * std::log(figure);
    }
    return sum;
}

std::optional<RateToReach> EarlyEnd::rate_to_reach(
    const std::vector<WorkloadMetrics>& before) const {
    const std::size_t next = before.size();
    if (!to_beat_ || to_beat_->goal.direction != Direction::maximize || next >= workloads_.size() ||
        !(workloads_[next].weight > 0))
        return std::nullopt;
    const auto others = sum_of_logs(before, share_, next);
    if (!others) return std::nullopt;
    return RateToReach{
        to_beat_->goal.metric,
        std::exp((std::log(had_to_reach()) * weights() - *others) / workloads_[next].weight)};
}

std::optional<Hopeless> EarlyEnd::left_out(const std::vector<WorkloadMetrics>& before) const {
    if (!to_beat_ || before.empty() || before.size() >= workloads_.size()) return std::nullopt;
    for (const WorkloadMetrics& part : before)
        for (const Limit& limit : limits_of_workload(limits_, part.workload)) {
            const auto* found = entry_in(part.metrics, limit.metric);
            if (found == nullptr || !(limit.bound > 0)) continue;
            if (limit.keeps(found->value * (limit.at_least ? 1 + give_up_ : 1 / (1 + give_up_))))
                continue;
            return Hopeless{true, "limit " + limit.readable() + " is broken on " + part.workload +
                                      ": " + figure_text(limit.metric, found->value)};
        }
    const auto most = sum_of_logs(before, share_, workloads_.size());
    if (!most) return std::nullopt;
    const double reachable = std::exp(*most / weights());
    if (!to_beat_->goal.better(had_to_reach(), reachable)) return std::nullopt;
    return Hopeless{false, "with the rest better than any was there it would reach " +
                               figure_text(to_beat_->goal.metric, reachable) + ", the best has " +
                               figure_text(to_beat_->goal.metric, to_beat_->value)};
}

double EarlyEnd::saved_seconds(std::size_t measured) const {
    double result = 0;
    if (!to_beat_) return result;
    for (std::size_t i = measured; i < workloads_.size(); ++i)
        if (const auto* best = entry_in(to_beat_->of_workloads, workloads_[i].name))
            result += best->seconds;
    return result;
}

Metrics EarlyEnd::whole(const std::vector<WorkloadMetrics>& before) const {
    Metrics result;
    double ratio = 0;  // ln of what was measured beside the best there
    double measured = 0;
    double error = 0;  // relative, of the workload that was ended early
    for (const WorkloadMetrics& part : before) {
        for (const auto& [name, metric] : part.metrics)
            result[MetricKey{name, part.workload}.text()] = metric;
        const auto* found = entry_in(part.metrics, to_beat_->goal.metric);
        const auto* best = entry_in(to_beat_->of_workloads, part.workload);
        if (found == nullptr || best == nullptr) continue;
        if (!(found->value > 0) || !(best->figure > 0)) continue;
        ratio += part.weight * std::log(found->value / best->figure);
        measured += part.weight;
        error = part.weight / weights() * found->standard_error.value_or(0) / found->value;
    }
    const auto sum = measured > 0
                         ? sum_of_logs(before, std::exp(ratio / measured), workloads_.size())
                         : std::nullopt;
    if (!sum) return result;
    constexpr double of_missing = 0.15;
    const double value = std::exp(*sum / weights());
    result[to_beat_->goal.metric] = {
        value, value * std::hypot(of_missing * (1 - measured / weights()), error)};
    return result;
}

}  // namespace servetune
