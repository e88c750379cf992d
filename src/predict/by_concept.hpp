// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"
#include "servetune/configuration.hpp"
#include "servetune/detail/perf/engine_traits.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/engine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The parameters of one command, asked for by concept.
class ByConcept {
public:
    ByConcept(const Engine& engine, const Assignment& set, const EngineTraits& traits,
              const HardwareSpec& hardware, Assignment& known)
        : engine_(engine), set_(set) {
        for (const EngineParameter& declared : engine.parameters)
            if (const Value value = value_of(declared, traits, hardware); !is_unset(value))
                known[declared.parameter.name] = value;
        known_ = &known;
    }

    [[nodiscard]] std::optional<Value> value(std::string_view concept_name) const {
        const EngineParameter* declared = in_force(concept_name);
        return declared != nullptr ? std::optional(known_->at(declared->parameter.name))
                                   : std::nullopt;
    }
    [[nodiscard]] bool flag(std::string_view concept_name, bool otherwise) const {
        const auto found = value(concept_name);
        const auto* is = found ? std::get_if<bool>(&*found) : nullptr;
        return is != nullptr ? *is : otherwise;
    }
    [[nodiscard]] std::optional<double> number(std::string_view concept_name) const {
        const auto found = value(concept_name);
        return found ? number_of(*found) : std::nullopt;
    }
    /// Cut to whole, and to what leaves room to multiply: a larger one is refused where it is used.
    [[nodiscard]] std::optional<std::int64_t> whole(std::string_view concept_name) const {
        constexpr std::int64_t most = std::int64_t{1} << 53;
        const auto found = number(concept_name);
        return found ? std::optional(whole_number_within(*found, -most, most)) : std::nullopt;
    }
    [[nodiscard]] std::int64_t integer(std::string_view concept_name,
                                       std::int64_t otherwise) const {
        return whole(concept_name).value_or(otherwise);
    }
    [[nodiscard]] std::string text(std::string_view concept_name) const {
        const auto found = value(concept_name);
        return found ? text_of(*found) : "";
    }
    /// The value in the cost model's words (EngineParameter::means); empty: not set.
    [[nodiscard]] std::string meaning(std::string_view concept_name) const {
        const EngineParameter* declared = in_force(concept_name);
        if (declared == nullptr) return "";
        const std::string text = text_of(known_->at(declared->parameter.name));
        const auto* known = entry_in(declared->means, text);
        return known != nullptr ? *known : text;
    }
    /// What an unset one comes to, for the engine's rules.
    void settle(std::string_view concept_name, const Value& value) {
        for (const EngineParameter& declared : engine_.parameters)
            if (declared.parameter.concept_name == concept_name &&
                !set_.contains(declared.parameter.name))
                (*known_)[declared.parameter.name] = value;
    }
    /// Whether the command itself says it.
    [[nodiscard]] bool said(std::string_view concept_name) const {
        return any_of(engine_.parameters, [&](const EngineParameter& declared) {
            return declared.parameter.concept_name == concept_name &&
                   set_.contains(declared.parameter.name);
        });
    }
    /// Whether the engine has a parameter of this concept.
    [[nodiscard]] bool declares(std::string_view concept_name) const {
        return any_of(engine_.parameters, [&](const EngineParameter& declared) {
            return declared.parameter.concept_name == concept_name;
        });
    }

private:
    /// The first active parameter of the concept that has a value; null: there is none.
    [[nodiscard]] const EngineParameter* in_force(std::string_view concept_name) const {
        for (const EngineParameter& declared : engine_.parameters) {
            if (declared.parameter.concept_name != concept_name) continue;
            if (known_->contains(declared.parameter.name) && is_active(declared)) return &declared;
        }
        return nullptr;
    }
    [[nodiscard]] Value value_of(const EngineParameter& declared, const EngineTraits& traits,
                                 const HardwareSpec& hardware) const {
        const Parameter& parameter = declared.parameter;
        const auto as_no_flag = [&](const Value& value) {
            const auto* meant = entry_in(declared.means, text_of(value));
            return is_unset(value) || (number_of(value) && meant != nullptr && *meant == "engine");
        };
        if (const auto* found = entry_in(set_, parameter.name);
            found != nullptr && !as_no_flag(*found))
            return *found;
        if (!is_unset(parameter.default_value)) return parameter.default_value;
        if (const auto* rules = entry_in(traits.defaults, parameter.name))
            for (const DefaultRule& rule : *rules) {
                const bool here = rule.hardware.empty() || contains(rule.hardware, hardware.name);
                const bool so = all_of(rule.when, [&](const Condition& condition) {
                    const auto* said = entry_in(set_, condition.parent);
                    return said != nullptr && contains(condition.values, *said);
                });
                if (here && so && hardware.memory_bytes >= rule.from_memory_bytes)
                    return rule.value;
            }
        return parameter.value_when_unset.value_or(Unset{});
    }
    [[nodiscard]] bool is_active(const EngineParameter& declared) const {
        return all_of(declared.parameter.active_when, [&](const Condition& condition) {
            const auto* parent = entry_in(*known_, condition.parent);
            return parent != nullptr && contains(condition.values, *parent);
        });
    }

    const Engine& engine_;
    const Assignment& set_;
    Assignment* known_ = nullptr;
};

}  // namespace servetune
