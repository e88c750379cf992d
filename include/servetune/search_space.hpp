// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/space/rule_values.hpp"
#include "servetune/error.hpp"
#include "servetune/parameter.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace servetune
