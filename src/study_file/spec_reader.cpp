// SPDX-License-Identifier: Apache-2.0
// Facts of accelerators and models: search_spaces/hardware/*.yaml and models/*.yaml.
#include "fact_keys.hpp"
#include "key_reader.hpp"
#include "parameter_reader.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"
#include "yaml_text.hpp"

#include <algorithm>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// A figure that the file has: `memory_bytes`, `flops_per_second` with all its types, or
/// `flops_per_second.fp8`.
void check_figure(const Yaml& file, const HardwareSpec& spec, const std::string& key) {
    const auto& table = keys::hardware;
    std::vector<std::string> known;
    for (const Key& figure :
         {table.memory_bytes, table.memory_bandwidth_bytes_per_second, table.flops_per_second})
        known.emplace_back(figure.name);
    if (spec.link_bytes_per_second) known.emplace_back(table.link_bytes_per_second.name);
    if (spec.network_bytes_per_second) known.emplace_back(table.network_bytes_per_second.name);
    for (const auto& [type, flops] : spec.flops_per_second)
        known.push_back(std::string(table.flops_per_second.name) + "." + type);
    if (std::find(known.begin(), known.end(), key) == known.end())
        file.at(table.unverified)
            .fail("'" + key + "' is no figure of this file; its figures: " +
                  listed(nearest_first(key, known), known.size()));
}

HardwareSpec read_hardware(const Yaml& file) {
    const auto& table = keys::hardware;
    file.check_keys(table);
    HardwareSpec spec{read<std::string>(file, table.hardware)};
    read(file, table.also, spec.also);
    spec.architecture = read_architectures(file.at(table.architecture)).front();
    read(file, table.memory_bytes, spec.memory_bytes);
    read(file, table.memory_bandwidth_bytes_per_second, spec.memory_bandwidth_bytes_per_second);
    read(file, table.flops_per_second, spec.flops_per_second);
    read(file, table.shared_memory, spec.shared_memory);
    read(file, table.link_bytes_per_second, spec.link_bytes_per_second);
    read(file, table.devices_per_node, spec.devices_per_node);
    read(file, table.network_bytes_per_second, spec.network_bytes_per_second);
    spec.source = read<std::string>(file, table.source);
    read(file, table.unverified, spec.unverified);
    for (const std::string& key : spec.unverified) check_figure(file, spec, key);
    return spec;
}

/// Number type of the matrix products. Where the name of a quantization is none, only the weights
/// are in fewer bits, and products are computed in bf16.
std::string product_type_of(const std::string& quantization) {
    if (quantization.ends_with("fp4")) return "fp4";  // nvfp4, mxfp4
    return quantization == "fp8" || quantization == "int8" ? quantization : "bf16";
}

ModelSpec read_model(const Yaml& file) {
    const auto& table = keys::model;
    file.check_keys(table);
    ModelSpec spec{read<std::string>(file, table.model)};
    read(file, table.also, spec.also);
    read(file, table.parameters_active, spec.parameters_active);
    read(file, table.tied_embeddings, spec.tied_embeddings);
    read(file, table.layers, spec.layers);
    spec.attention_layers = spec.layers;
    read(file, table.attention_layers, spec.attention_layers);
    read(file, table.hidden_size, spec.hidden_size);
    read(file, table.attention_heads, spec.attention_heads);
    read(file, table.kv_heads, spec.kv_heads);
    read(file, table.head_dim, spec.head_dim);
    read(file, table.vocabulary, spec.vocabulary);
    spec.parameters_embedding =
        static_cast<double>(spec.vocabulary * spec.hidden_size) * (spec.tied_embeddings ? 1 : 2);
    if (!(spec.parameters_embedding < spec.parameters_active))
        file.at(table.parameters_active)
            .fail("more than the embeddings wanted, which are vocabulary x hidden_size");
    read(file, table.context_tokens, spec.context_tokens);
    read(file, table.experts, spec.experts);
    read(file, table.experts_per_token, spec.experts_per_token);
    spec.kv_bytes_per_token_16bit =
        static_cast<double>(4 * spec.attention_layers * spec.kv_heads * spec.head_dim);
    read(file, table.kv_bytes_per_token_16bit, spec.kv_bytes_per_token_16bit);
    read(file, table.sliding_window, spec.sliding_window);
    read(file, table.sliding_layers, spec.sliding_layers);
    if (file.at(table.weights).entries().empty())
        file.at(table.weights).fail("at least one checkpoint wanted");
    spec.native_type = file.at(table.weights).entries().front().first;
    for (const auto& [quantization, node] : file.at(table.weights).entries()) {
        node.check_keys(keys::weights);
        ModelWeights weights{read<double>(node, keys::weights.bytes),
                             read<double>(node, keys::weights.per_token),
                             product_type_of(quantization)};
        if (weights.per_token > weights.bytes) node.fail("per_token <= bytes must hold");
        spec.weights[quantization] = std::move(weights);
    }
    spec.source = read<std::string>(file, table.source);
    return spec;
}

std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code none;
    if (fs::is_directory(folder, none))
        for (const auto& entry : fs::directory_iterator(folder))
            if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

std::vector<HardwareSpec> Catalogue::all_hardware() const {
    std::vector<HardwareSpec> result;
    for (const fs::path& file : own_hardware_) result.push_back(read_hardware(Yaml::load(file)));
    const std::size_t own = result.size();  // in place of one that ships
    for (const fs::path& file : files_in(root_ / "hardware")) {
        HardwareSpec shipped = read_hardware(Yaml::load(file));
        const auto end = result.begin() + static_cast<std::ptrdiff_t>(own);
        if (std::none_of(result.begin(), end,
                         [&](const HardwareSpec& one) { return one.name == shipped.name; }))
            result.push_back(std::move(shipped));
    }
    return result;
}

std::vector<ModelSpec> Catalogue::all_models() const {
    std::vector<ModelSpec> result;
    for (const fs::path& file : own_models_)
        result.push_back(read_model(Yaml::load(file)));  // found first
    for (const fs::path& file : files_in(root_ / "models"))
        result.push_back(read_model(Yaml::load(file)));
    return result;
}

HardwareSpec Catalogue::hardware(const std::string& name) const {
    if (names_yaml_file(name))
        return read_hardware(Yaml::load(find("hardware", name, fs::current_path())));
    std::vector<HardwareSpec> known = all_hardware();
    std::vector<std::string> spelled;
    for (HardwareSpec& spec : known) {
        if (spec.name == name) return std::move(spec);
        spelled.push_back(spec.name);
    }
    if (auto mentioned = hardware_in(name, known)) return std::move(*mentioned);
    throw IoError("there is no '" + name + "' among the hardware in " +
                  (root_ / "hardware").string() +
                  "; known: " + listed(nearest_first(name, spelled), spelled.size()));
}

ServedModel Catalogue::model(const std::string& name) const {
    if (names_yaml_file(name)) {
        ModelSpec spec = read_model(Yaml::load(find("models", name, fs::current_path())));
        const std::string native = spec.native_type;
        return {std::move(spec), native};
    }
    const std::vector<ModelSpec> known = all_models();
    if (auto served = served_model(name, known)) return std::move(*served);
    std::vector<std::string> spelled;
    for (const ModelSpec& spec : known) spelled.push_back(spec.name);
    throw IoError("there is no '" + name + "' among the models in " + (root_ / "models").string() +
                  "; known: " + listed(nearest_first(name, spelled), spelled.size()));
}

}  // namespace servetune
