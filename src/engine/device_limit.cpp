// SPDX-License-Identifier: Apache-2.0
// How many devices a layout may take: a rule made of the engine's own factors.
#include "device_products.hpp"
#include "engine_value.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/space/expression_parser.hpp"
#include "servetune/error.hpp"

#include <algorithm>

namespace servetune {
namespace {

std::int64_t largest(const Domain& domain) {
    if (const auto* range = std::get_if<IntegerDomain>(&domain)) return range->high;
    std::int64_t result = 0;
    if (const auto* choice = std::get_if<ChoiceDomain>(&domain))
        for (const Value& value : choice->values)
            if (const auto* count = std::get_if<std::int64_t>(&value))
                result = std::max(result, *count);
    return result;
}

}  // namespace

/// What the words at the end of every command set this parameter to.
std::optional<std::int64_t> Composition::said_in_arguments(const Engine& engine,
                                                           const EngineParameter& declared) const {
    const Assignment& set = description_.set_by_arguments.at(engine.name);
    const auto said = set.find(declared.parameter.name);
    const Value value = said == set.end() ? Value() : as_engine_takes(declared, said->second);
    const auto* count = std::get_if<std::int64_t>(&value);
    return count != nullptr ? std::optional(*count) : std::nullopt;
}

std::int64_t Composition::devices_of(const Configuration& configuration) const {
    std::int64_t devices = 0;
    for (const ServerGroup& group : groups(configuration)) devices += group.count * group.devices;
    return devices;
}

std::int64_t Composition::devices_of(const Configuration& configuration,
                                     std::string_view role) const {
    const Engine& engine = engine_of(configuration);
    const auto holds = [&](const Condition& condition) {
        bool active = false;
        if (engine.find(condition.parent) == nullptr) return false;
        const Value value = value_of_local(engine, condition.parent, configuration, active, role);
        return active && std::find(condition.values.begin(), condition.values.end(), value) !=
                             condition.values.end();
    };
    std::int64_t devices = 1;
    for (const DeviceFactor& factor : engine.devices) {
        const EngineParameter* declared = engine.find(factor.parameter);
        if (declared == nullptr) continue;  // not of this version
        if (!factor.unless.empty() &&
            std::all_of(factor.unless.begin(), factor.unless.end(), holds))
            continue;
        bool active = false;
        Value value = value_of_local(engine, factor.parameter, configuration, active, role);
        if (is_unset(value))
            value = declared->parameter.value_when_unset.value_or(Value(std::int64_t{1}));
        std::optional<std::int64_t> count = said_in_arguments(engine, *declared);
        if (const auto* of_space = std::get_if<std::int64_t>(&value);
            !count && of_space != nullptr && active)
            count = *of_space;
        devices *= std::max<std::int64_t>(count.value_or(1), 1);
    }
    return devices;
}

/// Adds the rule that a layout fits the machine. Without a stated count one device is taken, and
/// what asks for more is an error.
void Composition::bound_devices(Engine& engine) {
    if (!description_.devices || engine.devices.empty()) return;
    const DeviceLimit& limit = *description_.devices;
    const auto refuse_unstated = [&](const std::string& what, std::int64_t count) {
        if (limit.stated || count <= 1) return;
        throw SpaceError(
            what + " asks " + engine.name + " for several devices (up to " + std::to_string(count) +
            "), and the study does not say how many there are: write `hardware: {count: N}`");
    };
    const auto factor_text = [&](const DeviceFactor& factor) {
        const EngineParameter& declared = *engine.find(factor.parameter);
        const auto said = said_in_arguments(engine, declared);
        if (!said) return factor.parameter;
        refuse_unstated("'arguments': " + destination_of(engine, declared).flag, *said);
        return std::to_string(*said);
    };
    std::vector<DeviceFactor> factors;  // of this version
    for (const DeviceFactor& factor : engine.devices) {
        const EngineParameter* declared = engine.find(factor.parameter);
        if (declared == nullptr) continue;
        const bool held = !description_.others_searched && entry_for(engine, *declared) == nullptr;
        const bool always_one = held && declared->parameter.default_value == Value(std::int64_t{1});
        if (!always_one || factor_text(factor) != factor.parameter) factors.push_back(factor);
    }
    for (const DeviceFactor& factor : factors) {
        const SpaceEntry* entry = entry_for(engine, *engine.find(factor.parameter));
        if (entry == nullptr) continue;
        const Value named = entry->default_value.value_or(Unset{});
        const auto* count = std::get_if<std::int64_t>(&named);
        refuse_unstated(
            "'" + entry->name + "'",
            std::max(count != nullptr ? *count : 0, entry->domain ? largest(*entry->domain) : 0));
    }
    for (const DeviceFactor& factor : factors) {
        const SpaceEntry* entry = entry_for(engine, *engine.find(factor.parameter));
        const auto* choice = entry != nullptr && entry->domain && !entry->of_preset
                                 ? std::get_if<ChoiceDomain>(&*entry->domain)
                                 : nullptr;
        if (choice == nullptr || !factor.unless.empty()) continue;
        for (const Value& value : choice->values)
            if (const auto* count = std::get_if<std::int64_t>(&value);
                count != nullptr && *count > limit.count)
                notes_.push_back("'" + entry->name + "': " + text_of(value) +
                                 " is not tried: a trial may take " + std::to_string(limit.count) +
                                 (limit.count == 1 ? " device" : " devices"));
    }
    std::string rule;
    for (const DeviceProduct& one : device_products(engine, factors, "", factor_text)) {
        if (one.product.empty()) continue;
        const std::string alternative =
            one.conditions + one.product + " <= " + std::to_string(limit.count);
        rule += rule.empty() ? alternative : " or (" + alternative + ")";
    }
    if (rule.empty()) return;
    engine.constraints.push_back(
        require(rule, limit.stated ? "the machine has " + std::to_string(limit.count) +
                                         (limit.count == 1 ? " device" : " devices")
                                   : "the study does not say how many devices there are, so one is "
                                     "taken; write `hardware: {count: N}`"));
}

}  // namespace servetune
