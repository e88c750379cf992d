// SPDX-License-Identifier: Apache-2.0
// Facts of accelerators, models and engines: search_spaces/hardware, models and traits.
#include "engine/version.hpp"
#include "fact_keys.hpp"
#include "parameter_reader.hpp"
#include "base/nearest.hpp"

#include <algorithm>

namespace servetune {
namespace {

/// Number type of the matrix products. Where the name of a quantization is none, only the weights
/// are in fewer bits, and products are computed in bf16.
std::string product_type_of(const std::string& quantization) {
    if (quantization.ends_with("fp4")) return "fp4";  // nvfp4, mxfp4
    return quantization == "fp8" || quantization == "int8" ? quantization : "bf16";
}

void check_other_type(const Yaml& mapping, const EngineTraits& traits) {
    if (!traits.compute_efficiency.contains("other"))
        mapping.fail("'other' is missing: for types that are not named");
}

/// What holds before a version, on top of what holds before later ones.
void read_earlier(const Yaml& before, const std::string& version, EngineTraits& traits) {
    const auto& table = keys::earlier_traits;
    const std::string* later = nullptr;
    for (const auto& [bound, node] : before.entries()) {
        if (version_numbers(bound).empty())
            node.fail("a version of the engine wanted, such as \"0.14\"; got '" + bound + "'");
        if (later != nullptr && compare_to_bound(bound, *later) >= 0)
            node.fail("the newest first: '" + bound + "' is not before '" + *later + "'");
        later = &bound;
        EngineTraits then = traits;
        read_table(node, table, then);
        if (const Yaml* types = node.find(table.compute_efficiency)) check_other_type(*types, then);
        then.defaults.insert(traits.defaults.begin(), traits.defaults.end());
        if (!version.empty() && compare_to_bound(version, bound) < 0) traits = std::move(then);
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

}  // namespace

HardwareSpec read_hardware(const Yaml& file) {
    const auto& table = keys::hardware;
    HardwareSpec spec;
    read_table(file, table, spec);
    std::vector<std::string> figures;  // `memory_bytes`, `flops_per_second`, and each of its types
    for (const Key& figure :
         {table.memory_bytes, table.memory_bandwidth_bytes_per_second, table.flops_per_second,
          table.link_bytes_per_second, table.network_bytes_per_second})
        if (file.find(figure) != nullptr) figures.emplace_back(figure.name);
    for (const auto& [type, flops] : spec.flops_per_second)
        figures.push_back(std::string(table.flops_per_second.name) + "." + type);
    for (const std::string& key : spec.unverified)
        if (std::find(figures.begin(), figures.end(), key) == figures.end())
            file.at(table.unverified)
                .fail("'" + key + "' is no figure of this file; its figures: " +
                      listed(nearest_first(key, figures), figures.size()));
    return spec;
}

ModelSpec read_model(const Yaml& file) {
    const auto& table = keys::model;
    ModelSpec spec;
    read_table(file, table, spec);
    if (file.find(table.attention_layers) == nullptr) spec.attention_layers = spec.layers;
    spec.parameters_embedding =
        static_cast<double>(spec.vocabulary * spec.hidden_size) * (spec.tied_embeddings ? 1 : 2);
    if (!(spec.parameters_embedding < spec.parameters_active))
        file.at(table.parameters_active)
            .fail("more than the embeddings wanted, which are vocabulary x hidden_size");
    if (file.find(table.kv_bytes_per_token_16bit) == nullptr)
        spec.kv_bytes_per_token_16bit =
            static_cast<double>(4 * spec.attention_layers * spec.kv_heads * spec.head_dim);
    const auto& checkpoints = file.at(table.weights).entries();
    spec.native_type = checkpoints.front().first;
    for (const auto& [quantization, node] : checkpoints) {
        ModelWeights& weights = spec.weights[quantization];
        weights.computes_in = product_type_of(quantization);
        if (weights.per_token > weights.bytes) node.fail("per_token <= bytes must hold");
    }
    return spec;
}

EngineTraits read_traits(const Yaml& file, const std::string& version) {
    const auto& table = keys::traits;
    EngineTraits traits;
    read_table(file, table, traits);
    for (const Key* needed :
         {&table.compute_efficiency, &table.bandwidth_efficiency, &table.step_overhead_seconds,
          &table.sequence_overhead_seconds, &table.request_overhead_seconds})
        (void)file.at(*needed);
    check_other_type(file.at(table.compute_efficiency), traits);
    traits.default_attention = file.at(table.attention).entries().front().first;
    if (const Yaml* node = file.find(table.before)) read_earlier(*node, version, traits);
    check_sources(file);
    return traits;
}

}  // namespace servetune
