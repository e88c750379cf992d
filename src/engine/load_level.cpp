// SPDX-License-Identifier: Apache-2.0
#include "load_level.hpp"

#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"

#include <utility>
#include <vector>

namespace servetune {

bool is_load_level(std::string_view parameter) { return parameter.starts_with("load."); }

void check_load_level(const Parameter& parameter) {
    const bool concurrency = parameter.name == load_concurrency;
    if (!concurrency && parameter.name != load_request_rate)
        throw EntryErrors(parameter.name,
                          "no level of load; known: " + std::string(load_concurrency) + ", " +
                              std::string(load_request_rate));
    if (parameter.offers_unset)
        throw EntryErrors(parameter.name, "a level of load is a number, there is no unset one");
    const auto check = [&](const Value& value) {
        const double number = number_of(value).value_or(0);
        if (concurrency ? !std::holds_alternative<std::int64_t>(value) || number < 1
                        : !(number > 0))
            throw EntryErrors(parameter.name, std::string(concurrency ? "an integer of at least 1"
                                                                      : "a number above 0") +
                                                  " wanted, got " + text_of(value));
    };
    if (const auto* range = std::get_if<IntegerDomain>(&parameter.domain)) check(range->low);
    else if (const auto* interval = std::get_if<RealDomain>(&parameter.domain))
        check(interval->low);
    else if (const auto* choice = std::get_if<ChoiceDomain>(&parameter.domain))
        for (const Value& value : choice->values) check(value);
    else throw EntryErrors(parameter.name, "int, real or choice wanted");
    check(parameter.default_value);
}

Workload at_load_level(Workload workload, const Configuration& configuration) {
    if (const Value* value = configuration.find(load_concurrency))
        workload.arrival = {.kind = Arrival::Kind::concurrency,
                            .in_flight = std::get<std::int64_t>(*value)};
    if (const Value* value = configuration.find(load_request_rate)) {
        const double rate = number_of(*value).value();
        const double burstiness =
            workload.arrival.kind == Arrival::Kind::rate ? workload.arrival.burstiness : 1;
        workload.arrival = {
            .kind = Arrival::Kind::rate, .requests_per_second = rate, .burstiness = burstiness};
    }
    return workload;
}

Configuration without_load_level(const Configuration& configuration) {
    std::vector<Configuration::Entry> entries;
    for (const auto& [name, value] : configuration.entries())
        if (!is_load_level(name)) entries.emplace_back(name, value);
    return Configuration(std::move(entries));
}

std::string load_level_text(const Configuration& configuration) {
    std::string result;
    for (const auto& [name, value] : configuration.entries())
        if (is_load_level(name))
            result += (result.empty() ? "" : " ") + name + "=" + text_of(value);
    return result;
}

}  // namespace servetune
