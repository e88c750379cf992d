// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/error.hpp"
#include "servetune/base/rng.hpp"
#include "servetune/space/allowed_rows.hpp"
#include "servetune/space/conflict.hpp"
#include "servetune/space/decision_order.hpp"
#include "servetune/space/diagram_key.hpp"
#include "servetune/space/search_space.hpp"
#include "servetune/space/value_classes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace servetune {

/// The feasible configurations of a search space: how many there are, the i-th, all of them, and one drawn uniformly.
///
///     feasible.for_each([&](const Configuration& configuration) { use(configuration); return true; });
///
/// The parameters are decided one after the other (decision_order.hpp). Half made configurations after which every open
/// rule is in the same state have the same completions; these are counted once and remembered (a decision diagram). So
/// the cost follows the number of different states, not the size of the product, and neither `at` nor `sample` nor
/// `for_each` ever walks into a dead end. A broken constraint cuts a branch as soon as its value is certain.
///
/// A continuous parameter counts as one level here; `sample` then draws its real uniformly on its scale.
/// The space must outlive this object. Constant and safe to share between threads once made.
class FeasibleSet {
public:
    /// Counts. Throws SpaceError when there is none, with a smallest set of constraints that contradict each other, or
    /// when the constraints tie so many parameters together that more than `most_states` states would have to be
    /// remembered (about 150 bytes each).
    explicit FeasibleSet(const SearchSpace& space, std::size_t most_states = 2'000'000) : FeasibleSet(space, most_states, MayBeEmpty{}) {
        if (size_ > 0) return;
        const auto is_empty = [](const SearchSpace& fewer) { return FeasibleSet(fewer, 2'000'000, MayBeEmpty{}).size_ == 0; };
        throw SpaceError("the space is empty: no configuration satisfies " + conflict_text(space, is_empty));
    }
    explicit FeasibleSet(const SearchSpace&&, std::size_t = 0) = delete;  // it would dangle

    /// How many feasible configurations there are; exact up to 2^53. Continuous parameters count as one level.
    [[nodiscard]] double size() const { return size_; }
    /// Whether `size()` says it all: no continuous parameter.
    [[nodiscard]] bool finite() const { return finite_; }
    /// How many states the diagram has; what counting cost.
    [[nodiscard]] std::size_t states() const { return counts_.size(); }

    /// The i-th of [0, size()), in the order of `for_each`. Throws UsageError unless finite.
    [[nodiscard]] Configuration at(double index) const;

    /// Calls `visit(configuration)` for each feasible configuration, lexicographic in the order of decision, until it
    /// returns false. Throws UsageError unless finite.
    template <class Visit>
    void for_each(const Visit& visit) const;

    /// The configuration at a point of [0, 1)^parameters: coordinate k chooses at the k-th decision in proportion to
    /// how many configurations lie below each choice; of a continuous parameter it is the place on its scale. Uniform
    /// points give uniform configurations. Constraints on reals are not looked at. Throws UsageError for a wrong number
    /// of coordinates.
    [[nodiscard]] Configuration at_point(const std::vector<double>& point) const;

    /// Uniform over the feasible configurations (reals: uniform on their scale, given the rest; drawn again while a
    /// constraint on reals is broken). Throws SpaceError when `attempts` draws of the reals all break one.
    [[nodiscard]] Configuration sample(Rng& rng, std::size_t attempts = 10'000) const;

private:
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
        std::vector<std::vector<AllowedRows::Range>> fitting;  ///< by constraint with rows: those left after so many of its columns
    };

    [[nodiscard]] std::size_t depth_end() const { return order_.sequence.size(); }
    [[nodiscard]] Prefix empty_prefix() const {
        const std::size_t n = depth_end();
        return {std::vector<Value>(n), std::vector<Slot>(n), std::vector<std::uint32_t>(n, inactive), all_fit_};
    }
    [[nodiscard]] std::uint32_t choice_count(const Prefix& prefix, std::size_t depth) const;
    [[nodiscard]] std::uint32_t choice(std::size_t depth, std::uint32_t i, std::uint32_t count) const;
    bool decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const;
    bool breaks(Prefix& prefix, std::size_t parameter, std::size_t which) const;
    void undo(Prefix& prefix, std::size_t depth) const { prefix.slots[order_.sequence[depth]] = {}; }
    void append_state(const Prefix& prefix, std::size_t which, Key& key) const;
    [[nodiscard]] Key key(const Prefix& prefix, std::size_t depth) const;
    double count(Prefix& prefix, std::size_t depth, std::size_t most_states);
    [[nodiscard]] double known_count(const Prefix& prefix, std::size_t depth) const {
        return depth == depth_end() ? 1 : counts_.at(key(prefix, depth));
    }
    [[nodiscard]] Prefix walk(double index) const;
    [[nodiscard]] Configuration made(const Prefix& prefix) const;
    template <class Visit>
    bool visit_below(Prefix& prefix, std::size_t depth, const Visit& visit) const;

    const SearchSpace& space_;
    DecisionOrder order_;
    ValueClasses classes_;
    std::vector<std::optional<AllowedRows>> rows_{};          ///< by constraint
    std::vector<std::vector<AllowedRows::Range>> all_fit_{};  ///< of a prefix that has decided nothing
    std::unordered_map<Key, double, DiagramKeyHash> counts_;
    double size_ = 0;
    bool finite_ = true;
};

inline FeasibleSet::FeasibleSet(const SearchSpace& space, std::size_t most_states, MayBeEmpty)
    : space_(space), order_(space), classes_(space) {
    for (const Parameter& parameter : space.parameters()) finite_ = finite_ && !parameter.continuous();
    for (std::size_t which = 0; which < space.constraints().size(); ++which) {
        const std::optional<AllowedRows>& rows = rows_.emplace_back(AllowedRows::of(space, which, order_.sequence));
        all_fit_.push_back(rows ? rows->nothing_decided() : std::vector<AllowedRows::Range>{});
    }
    Prefix prefix = empty_prefix();
    size_ = count(prefix, 0, most_states);
}

inline std::uint32_t FeasibleSet::choice_count(const Prefix& prefix, std::size_t depth) const {
    const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
    if (!space_.is_active(parameter, [&](std::size_t i) { return prefix.slots[i]; })) return 0;
    return static_cast<std::uint32_t>(parameter.level_count()) + (parameter.continuous() ? 1U : 0U);
}

inline std::uint32_t FeasibleSet::choice(std::size_t depth, std::uint32_t i, std::uint32_t count) const {
    if (count == 0) return inactive;
    return i + 1 == count && space_.parameters()[order_.sequence[depth]].continuous() ? real : i;
}

/// Sets the parameter at `depth`; false when that certainly breaks a constraint. A real stays undecided.
inline bool FeasibleSet::decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const {
    const std::size_t i = order_.sequence[depth];
    prefix.levels[i] = level;
    if (level == inactive) prefix.slots[i] = {Slot::State::inactive, nullptr};
    else if (level != real) {
        prefix.values[i] = space_.parameters()[i].level(level);
        prefix.slots[i] = {Slot::State::active, &prefix.values[i]};
    }
    const std::vector<std::size_t>& checks = order_.constraints_of[i];
    return std::none_of(checks.begin(), checks.end(), [&](std::size_t which) { return breaks(prefix, i, which); });
}

/// Whether what was decided last certainly breaks a constraint.
inline bool FeasibleSet::breaks(Prefix& prefix, std::size_t parameter, std::size_t which) const {
    const std::optional<AllowedRows>& rows = rows_[which];
    if (!rows) return space_.is_broken(which, [&](std::size_t i) { return prefix.slots[i]; });
    const std::size_t column = rows->column_of(parameter);
    std::vector<AllowedRows::Range>& fitting = prefix.fitting[which];
    fitting[column + 1] = rows->narrowed(fitting[column], column, prefix.levels[parameter]);
    return fitting[column + 1].empty();
}

/// What an open constraint still remembers of the decided parameters in its scope.
inline void FeasibleSet::append_state(const Prefix& prefix, std::size_t which, Key& key) const {
    const auto slot_of = [&](std::size_t i) { return prefix.slots[i]; };
    if (space_.is_settled(which, slot_of)) {
        key.push_back(settled);
        return;
    }
    const std::vector<std::size_t>& scope = space_.scope(which);
    for (std::size_t k = 0; k < scope.size(); ++k) {
        const std::uint32_t level = prefix.levels[scope[k]];
        if (prefix.slots[scope[k]].state == Slot::State::undecided) key.push_back(real);
        else key.push_back(classes_.of(which, k, level == inactive ? std::nullopt : std::optional(level)));
    }
}

inline FeasibleSet::Key FeasibleSet::key(const Prefix& prefix, std::size_t depth) const {
    Key result{static_cast<std::uint32_t>(depth)};
    for (const std::size_t which : order_.open_constraints[depth]) append_state(prefix, which, result);
    for (const std::size_t child : order_.open_children[depth])
        result.push_back(space_.may_be_active(space_.parameters()[child], [&](std::size_t i) { return prefix.slots[i]; }) ? 1 : 0);
    return result;
}

inline double FeasibleSet::count(Prefix& prefix, std::size_t depth, std::size_t most_states) {
    if (depth == depth_end()) return 1;
    Key state = key(prefix, depth);
    if (const auto known = counts_.find(state); known != counts_.end()) return known->second;
    if (counts_.size() >= most_states)
        throw SpaceError("the constraints tie too many parameters together: over " + std::to_string(most_states) +
                         " states; name fewer parameters ('others: default'), or list candidates");
    double total = 0;
    const std::uint32_t choices = choice_count(prefix, depth);
    if (choices > 0 && order_.is_free[depth]) total = choices * count(prefix, depth + 1, most_states);
    else
        for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i) {
            if (decide(prefix, depth, choice(depth, i, choices))) total += count(prefix, depth + 1, most_states);
            undo(prefix, depth);
        }
    return counts_[std::move(state)] = total;
}

inline FeasibleSet::Prefix FeasibleSet::walk(double index) const {
    Prefix prefix = empty_prefix();
    for (std::size_t depth = 0; depth < depth_end(); ++depth) {
        const std::uint32_t choices = choice_count(prefix, depth);
        if (choices > 0 && order_.is_free[depth]) {
            // All choices have as many completions: no need to try them.
            const double below = known_count(prefix, depth + 1);
            const double taken = std::min(std::floor(index / below), choices - 1.0);
            index -= taken * below;
            (void)decide(prefix, depth, choice(depth, static_cast<std::uint32_t>(taken), choices));
            continue;
        }
        for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i) {
            if (decide(prefix, depth, choice(depth, i, choices))) {
                const double below = known_count(prefix, depth + 1);
                if (index < below) break;
                index -= below;
            }
            undo(prefix, depth);
        }
    }
    return prefix;
}

inline Configuration FeasibleSet::at_point(const std::vector<double>& point) const {
    if (point.size() != depth_end())
        throw UsageError(std::to_string(depth_end()) + " coordinates wanted, got " + std::to_string(point.size()));
    Prefix prefix = empty_prefix();
    for (std::size_t depth = 0; depth < depth_end(); ++depth) {
        const std::uint32_t choices = choice_count(prefix, depth);
        double left = point[depth] * known_count(prefix, depth);
        std::uint32_t last = inactive;  // the last possible choice, should rounding leave something over
        for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i) {
            const std::uint32_t level = choice(depth, i, choices);
            const bool possible = decide(prefix, depth, level);
            const double below = possible ? known_count(prefix, depth + 1) : 0;
            if (below > 0) last = level;
            undo(prefix, depth);
            if (below > 0 && left < below) break;
            left -= below;
        }
        (void)decide(prefix, depth, last);
        const std::size_t i = order_.sequence[depth];
        if (last == real) prefix.values[i] = space_.parameters()[i].at_position(point[depth]);
    }
    return made(prefix);
}

inline Configuration FeasibleSet::made(const Prefix& prefix) const {
    std::vector<Configuration::Entry> entries;
    for (std::size_t i = 0; i < prefix.levels.size(); ++i)
        if (prefix.levels[i] != inactive) entries.emplace_back(space_.parameters()[i].name, prefix.values[i]);
    return Configuration(std::move(entries));
}

inline Configuration FeasibleSet::at(double index) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    if (!(index >= 0 && index < size_))
        throw UsageError("the space has " + text_of(size_) + " configurations, asked for number " + text_of(index));
    return made(walk(std::floor(index)));
}

template <class Visit>
bool FeasibleSet::visit_below(Prefix& prefix, std::size_t depth, const Visit& visit) const {
    if (depth == depth_end()) return visit(made(prefix));
    const std::uint32_t choices = choice_count(prefix, depth);
    for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i) {
        const bool possible = decide(prefix, depth, choice(depth, i, choices)) && known_count(prefix, depth + 1) > 0;
        const bool go_on = !possible || visit_below(prefix, depth + 1, visit);
        undo(prefix, depth);
        if (!go_on) return false;
    }
    return true;
}

template <class Visit>
void FeasibleSet::for_each(const Visit& visit) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    Prefix prefix = empty_prefix();
    visit_below(prefix, 0, visit);
}

inline Configuration FeasibleSet::sample(Rng& rng, std::size_t attempts) const {
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
        Prefix prefix = walk(std::min(std::floor(rng.uniform() * size_), size_ - 1));
        for (std::size_t i = 0; i < prefix.levels.size(); ++i)
            if (prefix.levels[i] == real) prefix.values[i] = space_.parameters()[i].at_position(rng.uniform());
        Configuration drawn = made(prefix);
        if (finite_ || space_.feasible(drawn)) return drawn;
    }
    throw SpaceError("no feasible configuration in " + std::to_string(attempts) + " draws: constraints on reals leave almost nothing");
}

}  // namespace servetune
