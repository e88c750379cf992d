// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/rng.hpp"
#include "servetune/search_space.hpp"
#include "space/expression_states.hpp"

namespace servetune {

/// What a decision diagram (feasible_set.hpp) remembers of a half made configuration: the depth and
/// the state of its open rules.
using DiagramKey = std::vector<std::uint32_t>;

struct DiagramKeyHash {
    std::size_t operator()(const DiagramKey& key) const {
        std::uint64_t hash = key.size();
        for (const std::uint32_t word : key) hash = mix64(hash ^ word);
        return std::size_t(hash);
    }
};

/// Whether an integer has so many levels that a decision diagram looks at runs of them, not at
/// each.
inline bool has_runs(const Parameter& parameter) {
    constexpr std::size_t tried_one_by_one = 128;
    return std::holds_alternative<IntegerDomain>(parameter.domain) &&
           parameter.level_count() > tried_one_by_one;
}

/// Runs of neighbouring levels that are the same to all rules, given what is decided: where `buffer
/// >= 4 * threads` and eight threads are decided, the buffers below 32 and those from 32 on.
class LevelRuns {
public:
    explicit LevelRuns(const SearchSpace& space);

    /// The first level of each run, ascending, from level 0 on. `slot_of(index)` answers for the
    /// parameters of its rules; `looked_at` grows by the intervals that were looked at. For
    /// parameters that have runs.
    template <class SlotOf>
    [[nodiscard]] std::vector<std::uint32_t> firsts(std::size_t parameter, const SlotOf& slot_of,
                                                    std::size_t& looked_at) const {
        const Parameter& wide = space_.parameters()[parameter];
        std::vector<std::uint32_t> result = fixed_[parameter];
        result.push_back(0);
        const auto last = static_cast<std::uint32_t>(wide.level_count() - 1);
        for (const std::size_t which : space_.constraints_of(parameter)) {
            const auto* rule = std::get_if<Require>(&space_.constraints()[which]);
            if (rule == nullptr) continue;
            const std::vector<std::size_t>& scope = space_.scope(which);
            const auto name =
                std::size_t(std::find(scope.begin(), scope.end(), parameter) - scope.begin());
            looked_at += rule->expression.append_changes(
                name, [&](std::size_t i) { return state_of(space_, scope[i], slot_of); },
                wide.offers_unset ? 1 : 0, last,
                [&](std::uint32_t level) { return wide.level(level); }, result);
        }
        sort_once(result);
        while (result.back() > last) result.pop_back();
        return result;
    }

    /// A parameter as the expressions see it. A real stays undecided for good, and with it what
    /// depends on it.
    template <class SlotOf>
    static Expression::NameState state_of(const SearchSpace& space, std::size_t parameter,
                                          const SlotOf& slot_of) {
        const Parameter& which = space.parameters()[parameter];
        const bool never = which.continuous() && !(which.offers_unset && which.value_when_unset);
        return {never || slot_of(parameter).state != Slot::State::undecided,
                space.known_value(parameter, slot_of)};
    }

private:
    static void sort_once(std::vector<std::uint32_t>& places) {
        sort(places);
        places.erase(std::unique(places.begin(), places.end()), places.end());
    }

    const SearchSpace& space_;
    std::vector<std::vector<std::uint32_t>>
        fixed_;  ///< by parameter: where conditions, forbidden and allowed values cut
};

/// The order in which `FeasibleSet` decides parameters, and which rules are open on the way.
///
/// A rule (a constraint, or a parameter's conditions) is open while some of its parameters are
/// decided and some are not. What has to be remembered of a half made configuration is the state of
/// its open rules, so the order keeps few rules open: the next parameter is, among those whose
/// parents are decided, the one that leaves the fewest open (ties: the order given). This is the
/// usual greedy for decision diagrams and for bucket elimination ("min-width"; Dechter, Constraint
/// Processing, 2003, chapter 4). An integer with runs of levels (level_runs.hpp) waits for the
/// others of its rules: its runs are few once these are decided.
struct DecisionOrder {
    explicit DecisionOrder(const SearchSpace& space);

    std::vector<std::size_t> sequence;  ///< parameters (indices), parents before children
    std::vector<std::vector<std::size_t>>
        constraints_of;  ///< by parameter: the constraints that speak of it
    std::vector<std::vector<std::size_t>>
        open_constraints;  ///< by depth: open before deciding sequence[depth]
    std::vector<std::vector<std::size_t>>
        open_children;          ///< by depth: undecided, with a decided parent
    std::vector<bool> is_free;  ///< by depth: no rule looks at the parameter decided there
};

/// Which levels of a parameter are all the same to a constraint, whatever its other parameters are:
/// to "cutlass needs one expert group" every back end but cutlass is one. What a half made
/// configuration has to remember is the class, not the level, which is what keeps the decision
/// diagram of `FeasibleSet` small (value interchangeability; Freuder, AAAI 1991).
///
/// Classes are found by trying all combinations of the constraint's parameters, where these are at
/// most `most_combinations` (a few milliseconds) and none of them is continuous or has runs
/// (level_runs.hpp). Other constraints have no classes.
class ValueClasses {
public:
    explicit ValueClasses(const SearchSpace& space, std::size_t most_combinations = 100'000) {
        for (std::size_t which = 0; which < space.constraints().size(); ++which)
            classes_.push_back(classes(space, which, most_combinations));
    }

    /// Whether constraint `which` has classes.
    [[nodiscard]] bool known(std::size_t which) const { return !classes_[which].empty(); }
    /// The class of a level for the k-th parameter in the scope of constraint `which`, which has
    /// classes; no level: inactive.
    [[nodiscard]] std::uint32_t of(std::size_t which, std::size_t k,
                                   std::optional<std::uint32_t> level) const {
        return classes_[which][k].of_level[level ? *level + 1U : 0U];
    }
    /// The first level of that class. While other parameters are undecided, rules may tell levels
    /// of one class apart (`a or b` is true as soon as `a` is); asked of the first, they do not.
    [[nodiscard]] Slot first_of(std::size_t which, std::size_t k,
                                std::optional<std::uint32_t> level) const {
        const std::optional<Value>& first = classes_[which][k].firsts[of(which, k, level)];
        return first ? Slot{Slot::State::active, &*first} : Slot{Slot::State::inactive, nullptr};
    }

private:
    /// Of one parameter of a constraint.
    struct Classes {
        std::vector<std::uint32_t> of_level{};       ///< by level + 1; 0: inactive
        std::vector<std::optional<Value>> firsts{};  ///< by class; nothing: inactive
    };
    using Tables = std::vector<Classes>;

    static Tables classes(const SearchSpace& space, std::size_t which,
                          std::size_t most_combinations);

    std::vector<Tables> classes_;
};

/// The rows of an `Allow`, sorted for the order in which a diagram decides its parameters. The rows
/// that agree with what is decided so far are then one range, and deciding one more parameter
/// narrows it by two binary searches. `broken` would look at every row each time.
class AllowedRows {
public:
    /// Stands for "inactive" among the levels of a row.
    static constexpr std::uint32_t inactive = 0xffffffffU;

    /// Rows `from` up to but not including `to`.
    struct Range {
        std::size_t from = 0;
        std::size_t to = 0;

        [[nodiscard]] bool empty() const { return from == to; }
    };

    /// Of constraint `which`, decided in the order `sequence` of parameters. Nothing unless it is
    /// an `Allow` of parameters that all have levels: a real parameter stays undecided while the
    /// rest is decided.
    static std::optional<AllowedRows> of(const SearchSpace& space, std::size_t which,
                                         const std::vector<std::size_t>& sequence);

    /// Before the first column is decided and after each of them the rows that are left: all.
    [[nodiscard]] std::vector<Range> nothing_decided() const {
        return std::vector<Range>(parameters_.size() + 1, {0, rows_.size()});
    }
    /// Which column a parameter (index) is; it must be one of the constraint's.
    [[nodiscard]] std::size_t column_of(std::size_t parameter) const {
        return std::size_t(std::find(parameters_.begin(), parameters_.end(), parameter) -
                           parameters_.begin());
    }
    /// Of a range whose rows agree in all columns before this one: those that have this level
    /// there.
    [[nodiscard]] Range narrowed(Range range, std::size_t column, std::uint32_t level) const;

private:
    using Row = std::vector<std::uint32_t>;  ///< a level a column

    std::vector<std::size_t> parameters_{};  ///< of the columns, in the order of decision
    std::vector<Row> rows_{};
};

}  // namespace servetune
