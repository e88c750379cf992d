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

inline SearchSpace::SearchSpace(std::vector<Parameter> parameters,
                                std::vector<Constraint> constraints)
    : parameters_(std::move(parameters)), constraints_(std::move(constraints)) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        check_domain(parameters_[i]);
        if (!index_.emplace(parameters_[i].name, i).second)
            throw SpaceError("parameter '" + parameters_[i].name + "' is declared twice");
    }
    for (const Parameter& parameter : parameters_) check_conditions(parameter);
    order_parents_first();
    constraints_of_.resize(parameters_.size());
    for (const Constraint& constraint : constraints_) {
        scopes_.emplace_back();
        for (const std::string& name : names_of(constraint)) {
            if (find(name) == nullptr) unknown("constraint '" + text_of(constraint) + "'", name);
            scopes_.back().push_back(index_of(name));
            constraints_of_[index_of(name)].push_back(scopes_.size() - 1);
        }
        if (of_larger_space(constraint)) continue;
        for_each_value(constraint, [&](const std::string& name, const Value& value, bool exactly) {
            if (!can_have(at(name), value, exactly))
                refuse_value(constraint, name, value, at(name).domain_text());
        });
    }
}

inline void SearchSpace::check_domain(const Parameter& parameter) const {
    const auto fail = [&](const std::string& wanted) {
        throw SpaceError("'" + parameter.name + "': " + wanted);
    };
    if (parameter.name.empty()) throw SpaceError("a parameter has no name");
    const auto check_range = [&](auto low, auto high, Scale scale, const std::string& got) {
        if (!(low <= high)) fail("low <= high must hold, got " + got);
        if (scale != Scale::linear && !(low > 0))
            fail("low > 0 must hold on a log scale, got " + got);
    };
    if (const auto* range = std::get_if<IntegerDomain>(&parameter.domain)) {
        check_range(range->low, range->high, range->scale,
                    "low=" + std::to_string(range->low) + " high=" + std::to_string(range->high));
        if (range->step < 1) fail("step >= 1 must hold, got step=" + std::to_string(range->step));
        constexpr std::int64_t widest = std::int64_t{1}
                                        << 53;  // beyond it neighbouring integers are one double
        if (range->low < -widest || range->high > widest) fail("integers are within -2^53..2^53");
        constexpr std::size_t most_levels = std::size_t{1}
                                            << 20;  // no flag has so many that differ
        if (parameter.level_count() > most_levels)
            fail("at most 2^20 levels wanted, got " + std::to_string(parameter.level_count()) +
                 "; give it a step or 'scale: log2'");
    } else if (const auto* interval = std::get_if<RealDomain>(&parameter.domain)) {
        check_range(interval->low, interval->high, interval->scale,
                    "low=" + text_of(interval->low) + " high=" + text_of(interval->high));
        if (!std::isfinite(interval->high - interval->low))
            fail("the width of the interval is no finite number");
    } else if (const auto* choice = std::get_if<ChoiceDomain>(&parameter.domain)) {
        if (choice->values.empty()) fail("a choice needs at least one value");
        for (std::size_t i = 0; i < choice->values.size(); ++i) {
            if (is_unset(choice->values[i]))
                fail("'" + std::string(unset_text) +
                     "' is not a value of the domain but a level beside it");
            if (std::find(
                    choice->values.begin(), choice->values.begin() + static_cast<std::ptrdiff_t>(i),
                    choice->values[i]) != choice->values.begin() + static_cast<std::ptrdiff_t>(i))
                fail("the choice lists '" + text_of(choice->values[i]) + "' twice");
        }
    }
    if (!parameter.contains(parameter.default_value))
        fail("the default '" + text_of(parameter.default_value) + "' is outside its domain (" +
             parameter.domain_text() + ")");
}

inline void SearchSpace::check_conditions(const Parameter& parameter) const {
    for (const Condition& condition : parameter.active_when) {
        const Parameter* parent = find(condition.parent);
        if (parent == nullptr) unknown("'" + parameter.name + "': its condition", condition.parent);
        for (const Value& value : condition.values)
            if (!parent->level_of(value))
                throw SpaceError("'" + parameter.name + "': its condition wants " +
                                 condition.parent + "=" + text_of(value) + ", but '" +
                                 condition.parent + "' is " + parent->domain_text());
    }
}

inline void SearchSpace::order_parents_first() {
    enum class Mark { none, on_path, done };
    std::vector<Mark> marks(parameters_.size(), Mark::none);
    std::vector<std::string> path;
    const auto visit = [this, &marks, &path](const auto& self, std::size_t i) -> void {
        if (marks[i] == Mark::done) return;
        path.push_back(parameters_[i].name);
        if (marks[i] == Mark::on_path) {
            std::string circle;
            for (auto at = std::find(path.begin(), path.end(), path.back()); at != path.end(); ++at)
                circle += (circle.empty() ? "" : " -> ") + *at;
            throw SpaceError("conditions go in a circle: " + circle);
        }
        marks[i] = Mark::on_path;
        for (const Condition& condition : parameters_[i].active_when)
            self(self, index_of(condition.parent));
        marks[i] = Mark::done;
        path.pop_back();
        parents_first_.push_back(i);
    };
    for (std::size_t i = 0; i < parameters_.size(); ++i) visit(visit, i);
}

inline void SearchSpace::unknown(std::string_view what, std::string_view name) const {
    std::vector<std::string> known;
    for (const Parameter& parameter : parameters_) known.push_back(parameter.name);
    throw SpaceError(std::string(what) + " names '" + std::string(name) +
                     "', which is not a parameter; known: " + listed(nearest_first(name, known)));
}

inline const Parameter* SearchSpace::find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &parameters_[found->second];
}

inline const Parameter& SearchSpace::at(std::string_view name) const {
    const Parameter* parameter = find(name);
    if (parameter == nullptr) unknown("this", name);
    return *parameter;
}

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

inline std::vector<std::string> SearchSpace::violations(const Configuration& configuration) const {
    std::vector<std::string> result;
    const auto slot_of = [&](std::size_t i) {
        const Value* value = configuration.find(parameters_[i].name);
        return Slot{value != nullptr ? Slot::State::active : Slot::State::inactive, value};
    };
    for (const auto& [name, value] : configuration.entries()) {
        const Parameter* parameter = find(name);
        if (parameter == nullptr)
            result.push_back("'" + name + "' is not a parameter of this space");
        else if (!parameter->contains(value))
            result.push_back("'" + name + "' = " + text_of(value) + " is outside its domain (" +
                             parameter->domain_text() + ")");
        else if (!is_active(*parameter, slot_of))
            result.push_back("'" + name + "' is set but inactive here");
    }
    for (const Parameter& parameter : parameters_)
        if (configuration.find(parameter.name) == nullptr && is_active(parameter, slot_of))
            result.push_back("'" + parameter.name + "' is active but not set");
    if (!result.empty()) return result;
    for (std::size_t i = 0; i < constraints_.size(); ++i)
        if (is_broken(i, slot_of))
            result.push_back("it breaks the rule: " + explained_text_of(constraints_[i]));
    return result;
}

inline Configuration SearchSpace::completed(const Assignment& values) const {
    for (const auto& [name, value] : values)
        if (const Parameter& parameter = at(name); !parameter.contains(value))
            throw SpaceError("'" + name + "' = " + text_of(value) + " is outside its domain (" +
                             parameter.domain_text() + ")");
    std::vector<Value> chosen(parameters_.size());
    std::vector<Slot> slots(parameters_.size());
    std::vector<Configuration::Entry> entries;
    for (const std::size_t i : parents_first_) {
        const Parameter& parameter = parameters_[i];
        if (!is_active(parameter, [&](std::size_t parent) { return slots[parent]; })) continue;
        const auto given = values.find(parameter.name);
        chosen[i] = given != values.end() ? given->second : parameter.default_value;
        slots[i] = {Slot::State::active, &chosen[i]};
        entries.emplace_back(parameter.name, chosen[i]);
    }
    return Configuration(std::move(entries));
}

inline Configuration SearchSpace::changed(const Configuration& configuration,
                                          const Assignment& changes) const {
    Assignment values = configuration.assignment();
    for (const auto& [name, value] : changes) values[name] = value;
    Configuration result = completed(values);
    for (const auto& [name, value] : changes)
        if (result.find(name) == nullptr)
            throw SpaceError("'" + name + "' = " + text_of(value) + " has no effect: '" + name +
                             "' is inactive in " + result.text());
    return result;
}

}  // namespace servetune
