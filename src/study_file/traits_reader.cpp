// SPDX-License-Identifier: Apache-2.0
// What the cost model knows of engines: search_spaces/traits/*.yaml.
#include "engine/version.hpp"
#include "fact_keys.hpp"
#include "key_reader.hpp"
#include "parameter_reader.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/space/expression_parser.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<Key, double EngineTraits::*>, 17> trait_figures{{
    {keys::traits.bandwidth_efficiency, &EngineTraits::bandwidth_efficiency},
    {keys::traits.step_overhead_seconds, &EngineTraits::step_overhead_seconds},
    {keys::traits.sequence_overhead_seconds, &EngineTraits::sequence_overhead_seconds},
    {keys::traits.layer_seconds, &EngineTraits::layer_seconds},
    {keys::traits.eager_layer_seconds, &EngineTraits::eager_layer_seconds},
    {keys::traits.request_overhead_seconds, &EngineTraits::request_overhead_seconds},
    {keys::traits.chunk_overhead_seconds, &EngineTraits::chunk_overhead_seconds},
    {keys::traits.context_bytes, &EngineTraits::context_bytes},
    {keys::traits.activation_bytes_per_token_and_width,
     &EngineTraits::activation_bytes_per_token_and_width},
    {keys::traits.logits_bytes_per_entry, &EngineTraits::logits_bytes_per_entry},
    {keys::traits.graph_bytes, &EngineTraits::graph_bytes},
    {keys::traits.graph_bytes_per_size, &EngineTraits::graph_bytes_per_size},
    {keys::traits.start_seconds, &EngineTraits::start_seconds},
    {keys::traits.load_bytes_per_second, &EngineTraits::load_bytes_per_second},
    {keys::traits.compile_seconds, &EngineTraits::compile_seconds},
    {keys::traits.graph_seconds_per_size, &EngineTraits::graph_seconds_per_size},
    {keys::traits.reserved_share, &EngineTraits::reserved_share},
}};
constexpr std::array<std::pair<Key, bool EngineTraits::*>, 2> trait_switches{{
    {keys::traits.checks_context, &EngineTraits::checks_context},
    {keys::traits.whole_prompts_raise_budget, &EngineTraits::whole_prompts_raise_budget},
}};
AttentionTraits read_attention(const Yaml& node) {
    const auto& table = keys::attention;
    node.check_keys(table);
    AttentionTraits result{read<double>(node, table.prefill_efficiency),
                           read<double>(node, table.decode_efficiency),
                           {},
                           {}};
    read(node, table.cache_types, result.cache_types);
    if (const Yaml* chips = node.find(table.architectures))
        result.architectures = read_architectures(*chips);
    return result;
}

Defect read_defect(const Yaml& node) {
    const auto& table = keys::defect;
    node.check_keys(table);
    Defect result{read<std::string>(node, table.kind),
                  {},
                  read<double>(node, table.seconds),
                  {},
                  read<std::string>(node, table.because)};
    try {
        result.when = parse_expression(read<std::string>(node, table.when));
    } catch (const ParseError& error) {
        node.at(table.when).fail(error.what());
    }
    read(node, table.lines, result.lines);
    return result;
}

DefaultRule read_rule(const Yaml& node) {
    const auto& table = keys::default_rule;
    node.check_keys(table);
    DefaultRule rule{read<Value>(node, table.value), 0, {}, {}};
    read(node, table.from_memory_bytes, rule.from_memory_bytes);
    read(node, table.hardware, rule.hardware);
    if (const Yaml* when = node.find(table.when)) rule.when = read_conditions(*when);
    return rule;
}

void read_defaults(const Yaml& node, EngineTraits& traits) {
    for (const auto& [name, rules] : node.entries()) {
        traits.defaults[name].clear();
        for (const Yaml& rule : rules.items()) traits.defaults[name].push_back(read_rule(rule));
    }
}

void read_checks(const Yaml& list, EngineTraits& traits) {
    const auto& table = keys::cost_check;
    traits.checked.clear();
    for (const Yaml& node : list.items()) {
        node.check_keys(table);
        traits.checked.push_back(
            {read<std::string>(node, table.hardware), read<std::size_t>(node, table.rows),
             read<double>(node, table.median_error), read<double>(node, table.error_90),
             read<std::string>(node, table.of)});
    }
}

/// What holds before a version, on top of what holds before later ones.
void read_earlier(const Yaml& before, const std::string& version, EngineTraits& traits) {
    const auto& table = keys::earlier_traits;
    const std::string* later = nullptr;
    for (const auto& [bound, node] : before.entries()) {
        node.check_keys(table);
        if (version_numbers(bound).empty())
            node.fail("a version of the engine wanted, such as \"0.14\"; got '" + bound + "'");
        if (later != nullptr && compare_to_bound(bound, *later) >= 0)
            node.fail("the newest first: '" + bound + "' is not before '" + *later + "'");
        later = &bound;
        EngineTraits own;
        for (auto* into : {&own, version.empty() || compare_to_bound(version, bound) >= 0
                                     ? nullptr
                                     : &traits}) {  // the first: to check it
            if (into == nullptr) continue;
            if (node.find(table.compute_efficiency) != nullptr) into->compute_efficiency.clear();
            read(node, table.compute_efficiency, into->compute_efficiency);
            for (const auto& [key, member] : trait_figures) read(node, key, into->*member);
            if (const Yaml* defaults = node.find(table.defaults)) read_defaults(*defaults, *into);
            if (const Yaml* checked = node.find(table.checked)) read_checks(*checked, *into);
        }
        if (!own.compute_efficiency.empty() && !own.compute_efficiency.contains("other"))
            node.at(table.compute_efficiency)
                .fail("'other' is missing: for types that are not named");
    }
}

void check_sources(const Yaml& file) {
    const Yaml& sources = file.at(keys::traits.sources);
    for (const auto& [key, node] : file.entries()) {
        const bool figure = node.is_mapping()
                                ? key != keys::traits.log.name && key != keys::traits.sources.name
                                : node.is_scalar() && key != keys::traits.engine.name;
        if (figure && sources.entry(key) == nullptr)
            node.fail("'" + key + "' has no source: say where the figure is from under 'sources'");
    }
}

EngineTraits read_traits(const Yaml& file, const std::string& version) {
    const auto& table = keys::traits;
    file.check_keys(table);
    for (const Key* needed :
         {&table.compute_efficiency, &table.bandwidth_efficiency, &table.step_overhead_seconds,
          &table.sequence_overhead_seconds, &table.request_overhead_seconds})
        (void)file.at(*needed);
    EngineTraits traits;
    read(file, table.engine, traits.engine);
    read_word<keys::memory_fractions>(file, table.fraction_of, traits.fraction_of);
    for (const auto& [key, member] : trait_figures) read(file, key, traits.*member);
    for (const auto& [key, member] : trait_switches) read(file, key, traits.*member);
    read(file, table.compute_efficiency, traits.compute_efficiency);
    if (!traits.compute_efficiency.contains("other"))
        file.at(table.compute_efficiency).fail("'other' is missing: for types that are not named");
    for (const auto& [name, node] : file.at(table.attention).entries())
        traits.attention[name] = read_attention(node);
    if (traits.attention.empty()) file.at(table.attention).fail("at least one back end wanted");
    traits.default_attention = file.at(table.attention).entries().front().first;
    if (const Yaml* node = file.find(table.defaults)) read_defaults(*node, traits);
    if (const Yaml* node = file.find(table.checked)) read_checks(*node, traits);
    if (const Yaml* node = file.find(table.before)) read_earlier(*node, version, traits);
    read(file, table.log, traits.log);
    if (const Yaml* node = file.find(table.defects))
        for (const Yaml& item : node->items()) traits.defects.push_back(read_defect(item));
    check_sources(file);
    return traits;
}

}  // namespace

EngineTraits Catalogue::traits(const std::string& engine, const std::string& version) const {
    const fs::path file = find("traits", engine, root_ / "traits");
    return read_traits(Yaml::load(file), version);
}

}  // namespace servetune
