// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_reader.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace servetune {

/// What may be searched: the parameters of a study's engines, narrowed, under the names of its
/// space. It points into itself.
class EngineSpace {
public:
    struct Local {
        const EngineParameter* parameter;
        std::string name_in_space{};  ///< empty: not in the space, held at its default
        std::map<std::string, std::string> checkpoints{};
    };
    /// By the engine's own name of a parameter.
    using Locals = std::map<std::string, Local, std::less<>>;

    explicit EngineSpace(SpaceDescription description);
    EngineSpace(const EngineSpace&) = delete;
    EngineSpace& operator=(const EngineSpace&) = delete;

    [[nodiscard]] const SpaceDescription& description() const { return description_; }
    [[nodiscard]] const std::vector<Engine>& engines() const { return description_.engines; }
    [[nodiscard]] bool several_engines() const { return engines().size() > 1; }
    [[nodiscard]] const CommandReader& commands() const { return *commands_; }
    [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
    [[nodiscard]] const std::vector<Constraint>& constraints() const { return constraints_; }
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
    [[nodiscard]] const Locals& locals(const Engine& engine) const {
        return locals_.at(engine.name);
    }
    [[nodiscard]] const std::map<std::string, Locals, std::less<>>& role_locals() const {
        return role_locals_;
    }
    /// Of one role (a role that is in the space), or where it has none of its own, or without a
    /// role, the engine's.
    [[nodiscard]] const Local& local_of(const Engine& engine, std::string_view role,
                                        std::string_view name) const;
    /// Calls visit(engine, local) with each of all engines and roles.
    template <class Visit>
    void for_each_local(const Visit& visit) const {
        for (const Engine& engine : engines())
            for (const auto& [name, local] : locals(engine)) visit(engine, local);
        for (const auto& [role, own] : role_locals_)
            for (const auto& [name, local] : own) visit(engines().front(), local);
    }
    /// Null: it is not in the space.
    [[nodiscard]] const Parameter* find(std::string_view name_in_space) const;
    [[nodiscard]] const Engine& engine_of(const Configuration& configuration) const;
    [[nodiscard]] std::string version_of(const Engine& engine) const;
    [[nodiscard]] std::vector<std::string> arguments_of(const Engine& engine) const;
    [[nodiscard]] const Destination& destination_of(const Engine& engine,
                                                    const EngineParameter& declared) const;
    /// What the words at the end of every command set this parameter to.
    [[nodiscard]] std::optional<std::int64_t> set_by_arguments(
        const Engine& engine, const EngineParameter& declared) const;
    [[nodiscard]] std::string resolve(std::string_view name) const;
    [[nodiscard]] Value normalized(std::string_view name_in_space, const Value& value) const;

private:
    void state_model(Engine& engine) const;
    void keep_version(Engine& engine) const;
    void keep_architecture(Engine& engine) const;
    void read_entries(const Engine& engine);
    void keep_preset(const Engine& engine);
    void leave_out_emptied(Engine& engine);
    void refuse_emptied(const Engine& engine, const EngineParameter& declared) const;
    void check_entries();
    /// Keeps what is wrong with entries, but of one that is known to be wrong nothing more.
    template <class Part>
    void keep_wrong(const Part& part) {
        try {
            part();
        } catch (const EntryErrors& errors) {
            const EntryErrors::Each before = wrong_;
            for (const auto& one : errors.each())
                if (none_of(before, [&](const auto& known) { return known.first == one.first; }))
                    wrong_.push_back(one);
        }
    }
    void throw_wrong() {
        if (!wrong_.empty()) throw EntryErrors(std::move(wrong_));
    }
    void add_own_parameters();
    void add_engine(const Engine& engine);
    void add_parameter(const Engine& engine, const EngineParameter& declared,
                       const SpaceEntry* entry);
    [[nodiscard]] Parameter narrowed(const Engine& engine, const EngineParameter& declared,
                                     const SpaceEntry& entry) const;
    void add_roles();
    void add_role_parameter(const EngineRole& role, const SpaceEntry& entry);
    void merge_same_commands();
    [[nodiscard]] std::optional<std::string> contribution(const Parameter& parameter,
                                                          const Value& value) const;
    void leave_out_inactive();
    void bound_devices(Engine& engine);
    void bound_roles(const Engine& engine);
    void add_constraints(const Engine& engine, std::string_view role);
    void add_constraint(const Constraint& constraint);
    void check_values(const Constraint& constraint) const;
    [[nodiscard]] Expression in_space(Expression rule, const Engine& engine,
                                      const std::map<std::string, const Local*>& locals) const;
    [[nodiscard]] Expression where_a_number(const Expression& rule, const std::string& name,
                                            const EngineParameter& declared,
                                            const std::string& name_in_space) const;
    [[nodiscard]] const SpaceEntry* entry_for(const Engine& engine,
                                              const EngineParameter& declared) const;
    [[nodiscard]] std::string prefix(const Engine& engine) const {
        return several_engines() ? engine.name + "." : "";
    }

    SpaceDescription description_;
    std::optional<CommandReader> commands_{};
    std::map<std::string, Locals> locals_;                    ///< by engine
    std::map<std::string, Locals, std::less<>> role_locals_;  ///< that a role has of its own
    std::vector<Parameter> parameters_;
    std::vector<Constraint> constraints_;
    std::vector<std::string> notes_;
    EntryErrors::Each wrong_{};  ///< of all parts, until none is left to look at
};

/// `enable_dp_attention in [true]`, all of them joined by `and`.
inline std::string text_of_conditions(const std::vector<Condition>& conditions) {
    std::string result;
    for (const Condition& condition : conditions) {
        result += (result.empty() ? "" : " and ") + condition.parent + " in [";
        for (std::size_t i = 0; i < condition.values.size(); ++i) {
            const auto* text = std::get_if<std::string>(&condition.values[i]);
            result += (i == 0 ? "" : ", ") +
                      (text != nullptr ? "'" + *text + "'" : text_of(condition.values[i]));
        }
        result += "]";
    }
    return result;
}

/// Values that a rule names, and `Unset` where that stands for one of them: no flag gives the
/// engine's own default.
inline std::vector<Value> with_unset(std::vector<Value> values, const Parameter& declared) {
    const Value usual = is_unset(declared.default_value)
                            ? declared.value_when_unset.value_or(Unset{})
                            : declared.default_value;
    if (!is_unset(usual) && contains(values, usual)) values.emplace_back(Unset{});
    return values;
}

/// A product for each set of factors that share devices under a condition.
struct DeviceProduct {
    std::string conditions{};  ///< of those left out, each with ` and ` behind it
    std::string product{};     ///< `tp * pp`; empty: all are left out
};

/// `text`: of a factor; `prefix`: before the names in conditions.
inline std::vector<DeviceProduct> device_products(
    const Engine& engine, const std::vector<DeviceFactor>& factors, const std::string& prefix,
    const std::function<std::string(const DeviceFactor&)>& text) {
    std::vector<DeviceProduct> result;
    for (std::size_t shared = 0; shared < (std::size_t{1} << factors.size()); ++shared) {
        DeviceProduct one;
        bool possible = true;
        for (std::size_t i = 0; i < factors.size(); ++i) {
            if ((shared >> i & 1U) == 0) {
                one.product += (one.product.empty() ? "" : " * ") + text(factors[i]);
                continue;
            }
            possible = possible && !factors[i].unless.empty();
            for (Condition condition : factors[i].unless) {
                possible = possible && engine.find(condition.parent) != nullptr;
                condition.parent.insert(0, prefix);
                one.conditions += text_of_conditions({condition}) + " and ";
            }
        }
        if (possible) result.push_back(std::move(one));
    }
    return result;
}

}  // namespace servetune
