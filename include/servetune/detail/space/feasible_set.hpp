// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/rng.hpp"
#include "servetune/detail/base/wide_number.hpp"
#include "servetune/detail/space/allowed_rows.hpp"
#include "servetune/detail/space/conflict.hpp"
#include "servetune/detail/space/decision_order.hpp"
#include "servetune/detail/space/diagram_key.hpp"
#include "servetune/detail/space/level_runs.hpp"
#include "servetune/detail/space/value_classes.hpp"
#include "servetune/error.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

/// The feasible configurations of a search space: their number, the i-th, all, one drawn evenly.
///
///     feasible.for_each([&](const Configuration& configuration) { use(configuration); return true; });
///
/// The parameters are decided one after the other (decision_order.hpp). Half made configurations
/// after which every open rule is in the same state have the same completions; these are counted
/// once and remembered (a decision diagram). So the cost follows the number of different states,
/// not the size of the product, and neither `at` nor `sample` nor `for_each` ever walks into a dead
/// end. A broken constraint cuts a branch as soon as its value is certain. Of long integers
/// neighbouring levels that are the same to all rules are one branch (level_runs.hpp).
///
/// Each configuration is as likely to be drawn as any other, but an integer on a logarithmic scale
/// weighs by ratios (Parameter::share_below). A real counts as one level, and is drawn evenly on
/// its scale. A space that is no temporary must outlive this object, which threads may share.
class FeasibleSet {
public:
    /// Counts. Throws SpaceError when there is none, with a smallest set of constraints that
    /// contradict each other, or when the constraints tie so many parameters together that more
    /// than `most_states` states would have to be remembered (about 200 bytes each), or four times
    /// as many branches looked at.
    explicit FeasibleSet(const SearchSpace& space, std::size_t most_states = 2'000'000)
        : FeasibleSet(space, most_states, MayBeEmpty{}) {
        if (size_ > 0) return;
        const auto is_empty = [](const SearchSpace& fewer) {
            return FeasibleSet(fewer, 2'000'000, MayBeEmpty{}).size_ == 0;
        };
        throw SpaceError("the space is empty: no configuration satisfies " +
                         conflict_text(space, is_empty));
    }
    /// Of a temporary space, which is kept.
    explicit FeasibleSet(SearchSpace&& space, std::size_t most_states = 2'000'000)
        : FeasibleSet(std::make_shared<const SearchSpace>(std::move(space)), most_states) {}

    /// Number of configurations, reals as one level; exact up to 2^53, infinite from 2^1024 on.
    [[nodiscard]] double size() const { return size_; }
    /// Whether `size()` says it all: no continuous parameter.
    [[nodiscard]] bool finite() const { return finite_; }
    /// How many states the diagram has; what counting cost.
    [[nodiscard]] std::size_t states() const { return states_.size(); }

    /// The i-th of [0, size()), in the order of `for_each`. Throws UsageError unless finite.
    [[nodiscard]] Configuration at(double index) const;

    /// Calls `visit(configuration)` for each feasible configuration, lexicographic in the order of
    /// decision, until it returns false. Throws UsageError unless finite.
    template <class Visit>
    void for_each(const Visit& visit) const;

    /// The configuration at a point of [0, 1)^parameters: coordinate k chooses at decision k in
    /// proportion to what lies below each choice, and then places a real on its scale. Even points
    /// give even draws; constraints on reals are not heeded. Throws UsageError for another size.
    [[nodiscard]] Configuration at_point(const std::vector<double>& point) const;

    /// Drawn evenly, with one number for each decision; again while a constraint on reals is
    /// broken. Throws SpaceError when `attempts` draws all break one.
    [[nodiscard]] Configuration sample(Rng& rng, std::size_t attempts = 10'000) const;

private:
    FeasibleSet(std::shared_ptr<const SearchSpace> kept, std::size_t most_states)
        : FeasibleSet(*kept, most_states) {
        kept_ = std::move(kept);
    }
    struct MayBeEmpty {};
    FeasibleSet(const SearchSpace& space, std::size_t most_states, MayBeEmpty);

    using Key = DiagramKey;
    static constexpr std::uint32_t inactive = AllowedRows::inactive;
    static constexpr std::uint32_t real = 0xfffffffeU;
    static constexpr std::uint32_t settled = 0xfffffffdU;

    /// A half made configuration.
    struct Prefix {
        std::vector<Value> values;
        std::vector<Slot> slots;
        std::vector<std::uint32_t> levels;
        std::vector<std::vector<AllowedRows::Range>>
            fitting;  ///< by constraint with rows: those left after so many of its columns
    };

    /// Levels of an integer with runs that are the same below; only those with anything below.
    struct Run {
        std::uint32_t first = 0;
        std::uint32_t last = 0;
        double count_before = 0;
        double share_up_to = 0;  ///< of what is drawn, [0, 1]
    };
    /// What lies below a state.
    struct State {
        double count = 0;
        WideNumber weight{};  ///< in draws
        std::vector<Run> runs{};
    };
    /// What one number of [0, 1) chooses, and its place within that, [0, 1).
    struct Chosen {
        std::uint32_t choice = inactive;
        double place = 0;
    };

    [[nodiscard]] std::size_t depth_end() const { return order_.sequence.size(); }
    [[nodiscard]] Prefix empty_prefix() const {
        const std::size_t n = depth_end();
        return {std::vector<Value>(n), std::vector<Slot>(n),
                std::vector<std::uint32_t>(n, inactive), all_fit_};
    }
    [[nodiscard]] std::uint32_t choice_count(const Prefix& prefix, std::size_t depth) const;
    [[nodiscard]] std::uint32_t choice(std::size_t depth, std::uint32_t i,
                                       std::uint32_t count) const;
    bool decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const;
    bool breaks(Prefix& prefix, std::size_t parameter, std::size_t which) const;
    [[nodiscard]] Slot seen(const Prefix& prefix, std::size_t which, std::size_t parameter) const;
    void undo(Prefix& prefix, std::size_t depth) const {
        prefix.slots[order_.sequence[depth]] = {};
    }
    void append_state(const Prefix& prefix, std::size_t which, Key& key) const;
    [[nodiscard]] Key key(const Prefix& prefix, std::size_t depth) const;
    /// Counts what lies below; the state is kept.
    const State& counted(Prefix& prefix, std::size_t depth, std::size_t most_states);
    void check_cost(std::size_t most_states) const;
    void count_runs(State& state, Prefix& prefix, std::size_t depth, std::size_t most_states);
    [[nodiscard]] const State& known(const Prefix& prefix, std::size_t depth) const {
        return depth == depth_end() ? complete_ : states_.at(key(prefix, depth));
    }
    /// Whether its levels are looked at in runs, where it is active.
    [[nodiscard]] bool in_runs(std::size_t depth) const {
        return !order_.is_free[depth] && has_runs(space_.parameters()[order_.sequence[depth]]);
    }
    [[nodiscard]] double share(std::size_t depth, std::uint32_t first, std::uint32_t last) const {
        const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
        return first >= settled
                   ? 1
                   : parameter.share_below(last + std::size_t{1}) - parameter.share_below(first);
    }
    [[nodiscard]] Prefix walk(double index) const;
    template <class NumberAt>
    [[nodiscard]] Prefix drawn(const NumberAt& number_at) const;
    [[nodiscard]] Chosen choose(Prefix& prefix, std::size_t depth, std::uint32_t choices,
                                double number) const;
    [[nodiscard]] Configuration made(const Prefix& prefix) const;
    template <class Visit>
    bool visit_below(Prefix& prefix, std::size_t depth, const Visit& visit) const;

    std::shared_ptr<const SearchSpace> kept_{};  ///< of a temporary
    const SearchSpace& space_;
    DecisionOrder order_;
    std::vector<std::size_t> by_name_;  ///< parameters in the order of their names
    ValueClasses classes_;
    LevelRuns runs_;
    std::vector<std::optional<AllowedRows>> rows_{};  ///< by constraint
    std::vector<std::vector<AllowedRows::Range>>
        all_fit_{};  ///< of a prefix that has decided nothing
    std::unordered_map<Key, State, DiagramKeyHash> states_;
    const State complete_{1, WideNumber(1), {}};
    std::size_t branches_ = 0;  ///< looked at
    double size_ = 0;
    bool finite_ = true;
};

}  // namespace servetune

#include "servetune/detail/space/feasible_walks.hpp"
