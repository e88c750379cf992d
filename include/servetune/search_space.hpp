// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/constraint.hpp"
#include "servetune/parameter.hpp"

namespace servetune {

/// What can be tuned: parameters, when each of them is active, and which combinations are allowed.
///
///     const SearchSpace space({Parameter::integer("max_num_seqs", 16, 4096, Scale::log2).with_default(256),
///                              Parameter::integer("max_num_batched_tokens", 1024, 65536, Scale::log2)},
///                             {require("max_num_batched_tokens >= max_num_seqs")});
///
/// Its configurations are canonical: exactly the active parameters are present. FeasibleSet counts,
/// lists and draws them.
class SearchSpace {
public:
    /// Throws SpaceError: a name twice, a bad domain (low > high, an empty or repeated choice), a
    /// default outside its domain, a condition on an unknown parent or a value that it lacks,
    /// conditions in a circle, a constraint on an unknown name or value.
    explicit SearchSpace(std::vector<Parameter> parameters,
                         std::vector<Constraint> constraints = {});

    /// In the order given.
    [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
    [[nodiscard]] const std::vector<Constraint>& constraints() const { return constraints_; }
    /// Indices of `parameters()`, parents before children.
    [[nodiscard]] const std::vector<std::size_t>& parents_first() const { return parents_first_; }

    /// Null when there is none. O(log n).
    [[nodiscard]] const Parameter* find(std::string_view name) const;
    /// As `find`; throws SpaceError with the nearest known names.
    [[nodiscard]] const Parameter& at(std::string_view name) const;
    /// Position in `parameters()` of a name that exists.
    [[nodiscard]] std::size_t index_of(std::string_view name) const {
        return index_.find(name)->second;
    }

    /// Why `configuration` is not feasible, one sentence each; empty when it is.
    [[nodiscard]] std::vector<std::string> violations(const Configuration& configuration) const;
    [[nodiscard]] bool feasible(const Configuration& configuration) const {
        return violations(configuration).empty();
    }

    /// Every parameter at its default.
    [[nodiscard]] Configuration default_configuration() const { return completed({}); }

    /// The canonical configuration with these values: active parameters without one get defaults,
    /// inactive ones are left out. It may break constraints. Throws SpaceError for an unknown name
    /// or a value outside its domain.
    [[nodiscard]] Configuration completed(const Assignment& values) const;

    /// `configuration` with some values changed, and completed (`completed`). Throws SpaceError
    /// when a change names a parameter that is inactive in the result: it would have no effect.
    [[nodiscard]] Configuration changed(const Configuration& configuration,
                                        const Assignment& changes) const;

    /// Whether the conditions of a parameter hold; `slot_of(index)` answers for its parents.
    template <class SlotOf>
    [[nodiscard]] bool is_active(const Parameter& parameter, const SlotOf& slot_of) const;

    /// Whether constraint `which` is certainly broken; `slot_of(index)` answers for its parameters.
    template <class SlotOf>
    [[nodiscard]] bool is_broken(std::size_t which, const SlotOf& slot_of) const;
    /// As `is_active` while some parents are undecided: no decided one rules it out.
    template <class SlotOf>
    [[nodiscard]] bool may_be_active(const Parameter& parameter, const SlotOf& slot_of) const;
    /// Whether constraint `which` is certainly kept, whatever the undecided parameters become.
    template <class SlotOf>
    [[nodiscard]] bool is_settled(std::size_t which, const SlotOf& slot_of) const;
    /// The parameters (indices) that constraint `which` speaks of.
    [[nodiscard]] const std::vector<std::size_t>& scope(std::size_t which) const {
        return scopes_[which];
    }
    /// The constraints (indices) that speak of a parameter.
    [[nodiscard]] const std::vector<std::size_t>& constraints_of(std::size_t parameter) const {
        return constraints_of_[parameter];
    }
    /// Its value for arithmetic, of an unset one the engine's own default; null: unknown.
    template <class SlotOf>
    [[nodiscard]] const Value* known_value(std::size_t parameter, const SlotOf& slot_of) const;

private:
    void check_domain(const Parameter& parameter) const;
    void check_conditions(const Parameter& parameter) const;
    void order_parents_first();
    [[noreturn]] void unknown(std::string_view what, std::string_view name) const;

    std::vector<Parameter> parameters_;
    std::vector<Constraint> constraints_;
    std::map<std::string, std::size_t, std::less<>> index_;
    std::vector<std::size_t> parents_first_;
    std::vector<std::vector<std::size_t>> scopes_;
    std::vector<std::vector<std::size_t>> constraints_of_{};
};

template <class SlotOf>
bool SearchSpace::is_active(const Parameter& parameter, const SlotOf& slot_of) const {
    return std::all_of(parameter.active_when.begin(), parameter.active_when.end(),
                       [&](const Condition& condition) {
                           const Slot parent = slot_of(index_of(condition.parent));
                           return parent.state == Slot::State::active &&
                                  std::find(condition.values.begin(), condition.values.end(),
                                            *parent.value) != condition.values.end();
                       });
}

template <class SlotOf>
bool SearchSpace::may_be_active(const Parameter& parameter, const SlotOf& slot_of) const {
    return std::all_of(parameter.active_when.begin(), parameter.active_when.end(),
                       [&](const Condition& condition) {
                           const Slot parent = slot_of(index_of(condition.parent));
                           return parent.state == Slot::State::undecided ||
                                  (parent.state == Slot::State::active &&
                                   std::find(condition.values.begin(), condition.values.end(),
                                             *parent.value) != condition.values.end());
                       });
}

template <class SlotOf>
const Value* SearchSpace::known_value(std::size_t parameter, const SlotOf& slot_of) const {
    const Slot slot = slot_of(parameter);
    if (slot.state != Slot::State::active) return nullptr;
    if (!is_unset(*slot.value)) return slot.value;
    const auto& engine_default = parameters_[parameter].value_when_unset;
    return engine_default ? &*engine_default : nullptr;
}

template <class SlotOf>
bool SearchSpace::is_broken(std::size_t which, const SlotOf& slot_of) const {
    const std::vector<std::size_t>& scope = scopes_[which];
    return broken(
        constraints_[which], [&](std::size_t i) { return slot_of(scope[i]); },
        [&](std::size_t i) { return known_value(scope[i], slot_of); });
}

template <class SlotOf>
bool SearchSpace::is_settled(std::size_t which, const SlotOf& slot_of) const {
    const std::vector<std::size_t>& scope = scopes_[which];
    return settled(
        constraints_[which], [&](std::size_t i) { return slot_of(scope[i]); },
        [&](std::size_t i) { return known_value(scope[i], slot_of); });
}

/// At most `most` of the numbers below `count`, evenly spread, both ends among them; `most` is at
/// least 2.
inline std::vector<std::size_t> evenly_spread(std::size_t count, std::size_t most) {
    std::vector<std::size_t> result(std::min(count, most));
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = count <= most ? i : i * (count - 1) / (most - 1);
    return result;
}

/// At most `most` levels of a parameter, at least 2, evenly spread on its scale, both ends among
/// them.
std::vector<std::size_t> spread_levels(const Parameter& parameter, std::size_t most);

/// Whether its steps are parts of its scale: an integer whose numbers differ by ratios, or one of
/// so many levels that a step of one would be nothing.
inline bool steps_on_its_scale(const Parameter& parameter) {
    constexpr std::size_t most_levels = 1024;
    const std::size_t numbers = parameter.level_count() - (parameter.offers_unset ? 1 : 0);
    return parameter.by_ratio() ||
           (std::holds_alternative<IntegerDomain>(parameter.domain) && numbers > most_levels);
}

/// The levels beside `Unset`, ascending: the value that the engine uses by itself, where that is
/// known; else all, of an ordered parameter with many levels 32 of them, evenly spread: all of a
/// thousand would be neighbours for hours.
std::vector<std::size_t> levels_beside_unset(const Parameter& parameter);

/// The levels one step away from `level` of a parameter, ascending: the next lower and higher one
/// when it is ordered, every other one otherwise; of an integer on a logarithmic scale or of more
/// than 1024 levels those a tenth and a hundredth of its scale lower and higher, at least one
/// level; for `Unset` those beside it (`levels_beside_unset`), which have it beside them.
std::vector<std::size_t> adjacent_levels(const Parameter& parameter, std::size_t level);

/// The feasible configurations one step from `configuration`: one parameter moved to an adjacent
/// level (a real: a tenth or a hundredth of its scale up or down). A step that makes parameters
/// appear gives them their defaults, and a step that makes parameters vanish is one only when they
/// are at their defaults: so `a` is a neighbour of `b` exactly when `b` is one of `a` (apart from
/// reals and from integers that step on their scale: a step back is rounded, and ends at the ends
/// of the scale). Sorted, none twice.
std::vector<Configuration> neighbours(const SearchSpace& space, const Configuration& configuration);

}  // namespace servetune
