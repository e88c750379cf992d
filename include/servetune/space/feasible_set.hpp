// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/error.hpp"
#include "servetune/base/rng.hpp"
#include "servetune/space/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// The feasible configurations of a search space: how many there are, the i-th, and one drawn uniformly.
///
///     const FeasibleSet feasible(space);
///     for (double i = 0; i < feasible.size(); ++i) use(feasible.at(i));
///     const Configuration drawn = feasible.sample(rng);
///
/// The parameters are decided one after the other, parents first. Two half made configurations that agree on every value
/// that a later condition or constraint still looks at have the same completions; these are counted once and remembered
/// (a decision diagram). So the cost follows the number of different such states, not the size of the product, and neither
/// `at` nor `sample` ever walks into a dead end. A broken constraint cuts a branch as soon as its value is certain.
///
/// A continuous parameter counts as one level here; `sample` then draws its real uniformly on its scale.
/// The space must outlive this object. Constant and safe to share between threads once made.
class FeasibleSet {
public:
    /// Counts. Throws SpaceError when there is none, with a smallest set of constraints that contradict each other.
    explicit FeasibleSet(const SearchSpace& space) : FeasibleSet(space, MayBeEmpty{}) {
        if (size_ == 0) throw SpaceError("the space is empty: no configuration satisfies " + conflict());
    }

    /// How many feasible configurations there are; exact up to 2^53. Continuous parameters count as one level.
    [[nodiscard]] double size() const { return size_; }
    /// Whether `size()` says it all: no continuous parameter.
    [[nodiscard]] bool finite() const { return finite_; }

    /// The i-th of [0, size()), in lexicographic order of levels, parents first. Throws UsageError unless finite.
    [[nodiscard]] Configuration at(double index) const;

    /// Uniform over the feasible configurations (reals: uniform on their scale, given the rest; drawn again while a constraint
    /// on reals is broken). Throws SpaceError when `attempts` draws of the reals all break one.
    [[nodiscard]] Configuration sample(Rng& rng, std::size_t attempts = 10'000) const;

private:
    struct MayBeEmpty {};
    FeasibleSet(const SearchSpace& space, MayBeEmpty);

    using Key = std::vector<std::uint32_t>;
    static constexpr std::uint32_t inactive = 0xffffffffU;
    static constexpr std::uint32_t real = 0xfffffffeU;

    /// A half made configuration: the first `depth` parameters (in parents-first order) are decided.
    struct Prefix {
        std::vector<Value> values;
        std::vector<Slot> slots;
        std::vector<std::uint32_t> levels;
    };

    [[nodiscard]] Prefix empty_prefix() const;
    [[nodiscard]] std::vector<std::uint32_t> choices(const Prefix& prefix, std::size_t depth) const;
    bool decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const;
    void undo(Prefix& prefix, std::size_t depth) const { prefix.slots[space_.parents_first()[depth]] = {}; }
    [[nodiscard]] Key key(const Prefix& prefix, std::size_t depth) const;
    double count(Prefix& prefix, std::size_t depth);
    [[nodiscard]] double known_count(const Prefix& prefix, std::size_t depth) const;
    [[nodiscard]] Prefix walk(double index) const;
    [[nodiscard]] std::string conflict() const;

    const SearchSpace& space_;
    std::vector<std::vector<std::size_t>> relevant_;  ///< by depth: earlier parameters that something later looks at
    std::vector<std::vector<std::size_t>> checks_;    ///< by depth: constraints that speak of the parameter decided there
    std::map<Key, double> counts_;
    double size_ = 0;
    bool finite_ = true;
};

inline FeasibleSet::FeasibleSet(const SearchSpace& space, MayBeEmpty) : space_(space) {
    const std::vector<std::size_t>& order = space.parents_first();
    std::vector<std::size_t> depth_of(order.size());
    for (std::size_t depth = 0; depth < order.size(); ++depth) depth_of[order[depth]] = depth;

    // The last depth at which something still looks at a parameter: a child of it, or the last parameter of a shared constraint.
    std::vector<std::size_t> last_look(order.size(), 0);
    checks_.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Parameter& parameter = space.parameters()[i];
        if (parameter.continuous()) finite_ = false;
        for (const Condition& condition : parameter.active_when) {
            std::size_t& look = last_look[space.index_of(condition.parent)];
            look = std::max(look, depth_of[i]);
        }
    }
    for (std::size_t which = 0; which < space.constraints().size(); ++which) {
        std::size_t last = 0;
        for (const std::size_t i : space.scope(which)) last = std::max(last, depth_of[i]);
        for (const std::size_t i : space.scope(which)) {
            last_look[i] = std::max(last_look[i], last);
            checks_[depth_of[i]].push_back(which);
        }
    }
    relevant_.resize(order.size() + 1);
    for (std::size_t depth = 0; depth <= order.size(); ++depth)
        for (std::size_t earlier = 0; earlier < depth; ++earlier)
            if (last_look[order[earlier]] >= depth) relevant_[depth].push_back(order[earlier]);

    Prefix prefix = empty_prefix();
    size_ = count(prefix, 0);
}

inline FeasibleSet::Prefix FeasibleSet::empty_prefix() const {
    const std::size_t n = space_.parameters().size();
    return {std::vector<Value>(n), std::vector<Slot>(n), std::vector<std::uint32_t>(n, inactive)};
}

inline std::vector<std::uint32_t> FeasibleSet::choices(const Prefix& prefix, std::size_t depth) const {
    const Parameter& parameter = space_.parameters()[space_.parents_first()[depth]];
    if (!space_.is_active(parameter, [&](std::size_t i) { return prefix.slots[i]; })) return {inactive};
    std::vector<std::uint32_t> result(parameter.level_count());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::uint32_t>(i);
    if (parameter.continuous()) result.push_back(real);
    return result;
}

/// Sets the parameter at `depth`; false when that certainly breaks a constraint. A real stays undecided.
inline bool FeasibleSet::decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const {
    const std::size_t i = space_.parents_first()[depth];
    prefix.levels[i] = level;
    if (level == inactive) prefix.slots[i] = {Slot::State::inactive, nullptr};
    else if (level != real) {
        prefix.values[i] = space_.parameters()[i].level(level);
        prefix.slots[i] = {Slot::State::active, &prefix.values[i]};
    }
    return std::none_of(checks_[depth].begin(), checks_[depth].end(), [&](std::size_t which) {
        return space_.is_broken(which, [&](std::size_t parameter) { return prefix.slots[parameter]; });
    });
}

inline FeasibleSet::Key FeasibleSet::key(const Prefix& prefix, std::size_t depth) const {
    Key result{static_cast<std::uint32_t>(depth)};
    for (const std::size_t i : relevant_[depth]) result.push_back(prefix.levels[i]);
    return result;
}

inline double FeasibleSet::count(Prefix& prefix, std::size_t depth) {
    if (depth == space_.parameters().size()) return 1;
    const Key state = key(prefix, depth);
    if (const auto known = counts_.find(state); known != counts_.end()) return known->second;
    double total = 0;
    for (const std::uint32_t level : choices(prefix, depth)) {
        if (decide(prefix, depth, level)) total += count(prefix, depth + 1);
        undo(prefix, depth);
    }
    return counts_[state] = total;
}

inline double FeasibleSet::known_count(const Prefix& prefix, std::size_t depth) const {
    return depth == space_.parameters().size() ? 1 : counts_.at(key(prefix, depth));
}

inline FeasibleSet::Prefix FeasibleSet::walk(double index) const {
    Prefix prefix = empty_prefix();
    for (std::size_t depth = 0; depth < space_.parameters().size(); ++depth) {
        for (const std::uint32_t level : choices(prefix, depth)) {
            if (decide(prefix, depth, level)) {
                const double below = known_count(prefix, depth + 1);
                if (index < below) break;
                index -= below;
            }
            undo(prefix, depth);
        }
    }
    return prefix;
}

inline Configuration FeasibleSet::at(double index) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    if (!(index >= 0 && index < size_))
        throw UsageError("the space has " + text_of(size_) + " configurations, asked for number " + text_of(index));
    const Prefix prefix = walk(std::floor(index));
    std::vector<Configuration::Entry> entries;
    for (std::size_t i = 0; i < prefix.slots.size(); ++i)
        if (prefix.slots[i].state == Slot::State::active) entries.emplace_back(space_.parameters()[i].name, prefix.values[i]);
    return Configuration(std::move(entries));
}

inline Configuration FeasibleSet::sample(Rng& rng, std::size_t attempts) const {
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
        Prefix prefix = walk(std::min(std::floor(rng.uniform() * size_), size_ - 1));
        std::vector<Configuration::Entry> entries;
        for (std::size_t i = 0; i < prefix.slots.size(); ++i) {
            const Parameter& parameter = space_.parameters()[i];
            if (prefix.levels[i] == real) prefix.values[i] = parameter.at_position(rng.uniform());
            if (prefix.levels[i] != inactive) entries.emplace_back(parameter.name, prefix.values[i]);
        }
        Configuration drawn(std::move(entries));
        if (finite_ || space_.feasible(drawn)) return drawn;
    }
    throw SpaceError("no feasible configuration in " + std::to_string(attempts) +
                     " draws: the constraints on real parameters leave almost nothing");
}

/// A set of constraints that cannot be met together though any one less could (deletion filter).
inline std::string FeasibleSet::conflict() const {
    std::vector<Constraint> needed = space_.constraints();
    const auto empty_without = [&](std::size_t left_out) {
        std::vector<Constraint> rest = needed;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
        const SearchSpace relaxed(space_.parameters(), rest);
        return FeasibleSet(relaxed, MayBeEmpty{}).size_ == 0;
    };
    for (std::size_t i = needed.size(); i-- > 0;)
        if (empty_without(i)) needed.erase(needed.begin() + static_cast<std::ptrdiff_t>(i));
    std::string result;
    for (const Constraint& constraint : needed)
        result += (result.empty() ? "'" : " and '") + text_of(constraint) + "'" +
                  (reason(constraint).empty() ? "" : " (" + reason(constraint) + ")");
    return result;
}

}  // namespace servetune
