// SPDX-License-Identifier: Apache-2.0
#include "servetune/search_space.hpp"

#include "base/nearest.hpp"
#include "rule_values.hpp"

namespace servetune {

SearchSpace::SearchSpace(std::vector<Parameter> parameters, std::vector<Constraint> constraints)
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

void SearchSpace::check_domain(const Parameter& parameter) const {
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
            if (std::find(choice->values.begin(), choice->values.begin() + std::ptrdiff_t(i),
                          choice->values[i]) != choice->values.begin() + std::ptrdiff_t(i))
                fail("the choice lists '" + text_of(choice->values[i]) + "' twice");
        }
    }
    if (!parameter.contains(parameter.default_value))
        fail("the default '" + text_of(parameter.default_value) + "' is outside its domain (" +
             parameter.domain_text() + ")");
}

void SearchSpace::check_conditions(const Parameter& parameter) const {
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

void SearchSpace::order_parents_first() {
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

void SearchSpace::unknown(std::string_view what, std::string_view name) const {
    throw SpaceError(std::string(what) + " names '" + std::string(name) +
                     "', which is not a parameter; known: " +
                     listed(nearest_first(name, names_in(parameters_))));
}

const Parameter* SearchSpace::find(std::string_view name) const {
    const auto* found = entry_in(index_, name);
    return found == nullptr ? nullptr : &parameters_[*found];
}

const Parameter& SearchSpace::at(std::string_view name) const {
    const Parameter* parameter = find(name);
    if (parameter == nullptr) unknown("this", name);
    return *parameter;
}

std::vector<std::string> SearchSpace::violations(const Configuration& configuration) const {
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

Configuration SearchSpace::completed(const Assignment& values) const {
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
        const auto* given = entry_in(values, parameter.name);
        chosen[i] = given != nullptr ? *given : parameter.default_value;
        slots[i] = {Slot::State::active, &chosen[i]};
        entries.emplace_back(parameter.name, chosen[i]);
    }
    return Configuration(std::move(entries));
}

Configuration SearchSpace::changed(const Configuration& configuration,
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
