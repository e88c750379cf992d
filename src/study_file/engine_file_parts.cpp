// SPDX-License-Identifier: Apache-2.0
#include "engine_file_parts.hpp"

#include "key_reader.hpp"
#include "keys.hpp"
#include "parameter_reader.hpp"

#include <algorithm>
#include <utility>

namespace servetune {

WeightCacheDaemon read_weight_cache(const Yaml& node) {
    const auto& table = keys::weight_cache;
    node.check_keys(table);
    WeightCacheDaemon result;
    read(node, table.launch, result.launch);
    if (result.launch.empty())
        node.at(table.launch).fail("a command begins with at least one word");
    read(node, table.parameters, result.parameters);
    read(node, table.arguments, result.arguments);
    if (const Yaml* when = node.find(table.when)) result.when = read_conditions(*when);
    read(node, table.engine, result.engine);
    read(node, table.environment, result.environment);
    read(node, table.ready, result.ready);
    read(node, table.used, result.used);
    for (const Key& line : {table.ready, table.used})
        if (node.at(line).text().empty()) node.at(line).fail("no words are in every line");
    read(node, table.ready_within, result.ready_within_seconds);
    read(node, table.since, result.since);
    return result;
}

PlatformStarts read_started_by(const Yaml& node) {
    const auto& table = keys::started_by;
    node.check_keys(table);
    PlatformStarts result;
    read(node, table.dynamo, result.dynamo);
    read(node, table.kserve, result.kserve);
    read(node, table.gpustack, result.gpustack);
    read(node, table.ray, result.ray);
    read(node, table.server_flags, result.server_flags);
    return result;
}

/// `{prefill_url}` in a word names the role it is of.
EngineRoles read_roles(const Yaml& node) {
    const auto& table = keys::roles;
    node.check_keys(table);
    EngineRoles result;
    for (const Key& key : {table.prefill, table.decode}) {
        const Yaml& said = node.at(key);
        said.check_keys(keys::role);
        EngineRole role{std::string(key.name)};
        read(said, keys::role.arguments, role.arguments);
        read(said, keys::role.environment, role.environment);
        result.each.push_back(std::move(role));
    }
    for (const Yaml& item : node.at(table.router).items()) {
        result.router.emplace_back();
        for (const Yaml& word : item.is_sequence() ? item.items() : std::vector<Yaml>{item})
            result.router.back().push_back(word.text());
    }
    for (const EngineRole& role : result.each) {
        const std::string place = "{" + role.name + "_url}";
        const auto names_it = [&](const std::vector<std::string>& part) {
            return std::any_of(part.begin(), part.end(), [&](const std::string& word) {
                return word.find(place) != std::string::npos;
            });
        };
        if (std::none_of(result.router.begin(), result.router.end(), names_it))
            node.at(table.router)
                .fail("a list of words with " + place +
                      " wanted: the router must know the servers of this role");
    }
    read(node, table.router_ready, result.router_ready);
    read(node, table.since, result.since);
    read(node, table.source, result.source);
    return result;
}

}  // namespace servetune
