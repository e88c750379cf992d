// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/rng.hpp"
#include "servetune/search_space.hpp"

#include <functional>

namespace servetune {

/// The feasible configurations of a search space: their number, the i-th, all, one drawn evenly.
///
///     feasible.for_each([&](const Configuration& one) { use(one); return true; });
///
/// The parameters are decided one after the other (DecisionOrder). Half made configurations
/// after which every open rule is in the same state have the same completions; these are counted
/// once and remembered (a decision diagram). So the cost follows the number of different states,
/// not the size of the product, and neither `at` nor `sample` nor `for_each` ever walks into a dead
/// end. A broken constraint cuts a branch as soon as its value is certain. Of long integers
/// neighbouring levels that are the same to all rules are one branch.
///
/// Each configuration is as likely to be drawn as any other, but an integer on a logarithmic scale
/// weighs by ratios (Parameter::share_below). A real counts as one level, and is drawn evenly on
/// its scale. A space that is no temporary must outlive this object, which threads may share.
class FeasibleSet {
public:
    /// Counts. Throws SpaceError when there is none, with a smallest set of constraints that
    /// contradict each other, or when the constraints tie so many parameters together that more
    /// than `most_states` states would have to be remembered (about 200 bytes each), or four times
    /// as many branches looked at; one under rules of many parameters counts as several.
    explicit FeasibleSet(const SearchSpace& space, std::size_t most_states = 2'000'000);
    /// Of a temporary space, which is kept.
    explicit FeasibleSet(SearchSpace&& space, std::size_t most_states = 2'000'000);

    /// Number of configurations, reals as one level; exact up to 2^53, infinite from 2^1024 on.
    [[nodiscard]] double size() const;
    /// Whether `size()` says it all: no continuous parameter.
    [[nodiscard]] bool finite() const;
    /// How many states the diagram has; what counting cost.
    [[nodiscard]] std::size_t states() const;

    /// The i-th of [0, size()), in the order of `for_each`. Throws UsageError unless finite.
    [[nodiscard]] Configuration at(double index) const;

    /// Calls `visit(configuration)` for each feasible configuration, lexicographic in the order of
    /// decision, until it returns false. Throws UsageError unless finite.
    void for_each(const std::function<bool(const Configuration&)>& visit) const;

    /// The configuration at a point of [0, 1)^parameters: coordinate k chooses at decision k in
    /// proportion to what lies below each choice, and then places a real on its scale. Even points
    /// give even draws; constraints on reals are not heeded. Throws UsageError for another size.
    [[nodiscard]] Configuration at_point(const std::vector<double>& point) const;

    /// Drawn evenly, with one number for each decision; again while a constraint on reals is
    /// broken. Throws SpaceError when `attempts` draws all break one.
    [[nodiscard]] Configuration sample(Rng& rng, std::size_t attempts = 10'000) const;

private:
    class Diagram;
    std::shared_ptr<const SearchSpace> kept_{};  ///< of a temporary
    std::shared_ptr<const Diagram> diagram_;
};

}  // namespace servetune
