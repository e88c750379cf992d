// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include "base/probability.hpp"
#include "study/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {
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

    [[nodiscard]] const Configuration& usual() const { return view_.base(); }
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
    /// With these parameters as in `target`, where the rules allow that.
    [[nodiscard]] std::optional<Configuration> with(const Configuration& from, const Names& names,
                                                    const Configuration& target) const {
        Assignment changes;
        for (const std::string& name : names) {
            const Value* value = target.find(name);
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
            if (auto to = with(from, changed, winner_))
                result.emplace_back(changed, std::move(*to));
        };
        for (const std::string& name : names) add({name});
        for (std::size_t i = 0; result.empty() && i < names.size(); ++i)
            for (std::size_t j = i + 1; j < names.size(); ++j) add({names[i], names[j]});
        if (result.empty()) result.emplace_back(names, winner_);
        return result;
    }

    void walk() {
        path_.push_back(usual());
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
                values = outlook_.means(all, usual());
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
        if (from == usual() && to == winner_) return view_.recommendation.gain;
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
            LadderStep step{changes_of(names_[i], path_[i]), path_[i], {}, {}, {}, {}};
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
        double sum = 0;
        bool known = ladder_.steps.size() > 1;
        for (std::size_t i = 0; i < ladder_.steps.size() && ladder_.steps.size() > 1; ++i) {
            LadderStep& step = ladder_.steps[i];
            if (const auto alone = with(usual(), names_[i + 1], winner_))
                step.alone = between(usual(), *alone);
            if (const auto without = with(winner_, names_[i + 1], usual()))
                step.last = between(*without, winner_);
            if (step.alone) sum += std::log1p(step.alone->gain.value);
            else known = false;
        }
        if (!known) return;
        ladder_.not_together = sum - std::log1p(ladder_.total.value);
        double squares = 0;
        std::vector<Gain> all{ladder_.total};
        for (const LadderStep& step : ladder_.steps) all.push_back(step.alone->gain);
        for (const Gain& one : all) {
            if (!one.has_interval() || !(one.low > -1)) return;
            const double reach = (std::log1p(one.high) - std::log1p(one.low)) / 2;
            squares += reach * reach;
        }
        ladder_.not_together_reach = std::sqrt(squares);
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
