// SPDX-License-Identifier: Apache-2.0
// Facts of accelerators and models: search_spaces/hardware/*.yaml and models/*.yaml.
#include "keys.hpp"
#include "parameter_reader.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/io/yaml.hpp"
#include "servetune/study_file/catalogue.hpp"

#include <algorithm>

namespace servetune {
namespace {

namespace fs = std::filesystem;

double positive(const Yaml& node) {
    const double value = node.real();
    if (!(value > 0)) node.fail_wanted("a positive number");
    return value;
}
std::int64_t count_in(const Yaml& node, std::string_view key) {
    const Yaml* child = node.find(key);
    if (child == nullptr) return 0;
    if (child->integer() < 0) child->fail_wanted("an integer of at least 0");
    return child->integer();
}
bool flag(const Yaml& node, std::string_view key) {
    const Yaml* child = node.find(key);
    return child != nullptr && child->boolean();
}
std::vector<std::string> names_in(const Yaml& node) {
    std::vector<std::string> result;
    for (const Yaml& item : node.items()) result.push_back(item.text());
    return result;
}

HardwareSpec read_hardware(const Yaml& file) {
    file.check_keys(keys::hardware);
    HardwareSpec spec{file.find("hardware")->text()};
    spec.title = file.find("title")->text();
    spec.also = names_in(*file.find("also"));
    spec.architecture = read_architectures(*file.find("architecture")).front();
    spec.memory_bytes = positive(*file.find("memory_bytes"));
    spec.memory_bandwidth_bytes_per_second = positive(*file.find("memory_bandwidth_bytes_per_second"));
    for (const auto& [type, value] : file.find("flops_per_second")->entries()) spec.flops_per_second[type] = positive(value);
    spec.shared_memory = flag(file, "shared_memory");
    if (const Yaml* link = file.find("link_bytes_per_second")) spec.link_bytes_per_second = positive(*link);
    if (const Yaml* link = file.find("link")) spec.link = link->text();
    spec.source = file.find("source")->text();
    return spec;
}

ModelSpec read_model(const Yaml& file) {
    file.check_keys(keys::model);
    ModelSpec spec{file.find("model")->text()};
    spec.also = names_in(*file.find("also"));
    spec.parameters_total = positive(*file.find("parameters_total"));
    spec.parameters_active = positive(*file.find("parameters_active"));
    spec.parameters_embedding = positive(*file.find("parameters_embedding"));
    if (!(spec.parameters_embedding < spec.parameters_active && spec.parameters_active <= spec.parameters_total))
        file.find("parameters_active")->fail("parameters_embedding < parameters_active <= parameters_total must hold");
    spec.tied_embeddings = flag(file, "tied_embeddings");
    spec.layers = count_in(file, "layers");
    spec.attention_layers = count_in(file, "attention_layers");
    spec.hidden_size = count_in(file, "hidden_size");
    spec.attention_heads = count_in(file, "attention_heads");
    spec.kv_heads = count_in(file, "kv_heads");
    spec.head_dim = count_in(file, "head_dim");
    spec.vocabulary = count_in(file, "vocabulary");
    spec.context_tokens = count_in(file, "context_tokens");
    if (spec.context_tokens < 1) file.find("context_tokens")->fail_wanted("an integer of at least 1");
    spec.experts = count_in(file, "experts");
    spec.experts_per_token = count_in(file, "experts_per_token");
    spec.kv_bytes_per_token_16bit = positive(*file.find("kv_bytes_per_token_16bit"));
    spec.sliding_window = count_in(file, "sliding_window");
    spec.sliding_layers = count_in(file, "sliding_layers");
    spec.native_type = file.find("native_type")->text();
    for (const auto& [quantization, node] : file.find("weights")->entries()) {
        node.check_keys(keys::weights);
        ModelWeights weights{positive(*node.find("bytes")), positive(*node.find("per_token")), node.find("computes_in")->text()};
        if (weights.per_token > weights.bytes) node.fail("per_token <= bytes must hold");
        const Yaml& type = *node.find("computes_in");
        if (weights.computes_in != "bf16" && weights.computes_in != "fp8" && weights.computes_in != "int8" && weights.computes_in != "fp4")
            type.fail_wanted("bf16, fp8, int8 or fp4");
        spec.weights[quantization] = std::move(weights);
    }
    if (!spec.weights.contains(spec.native_type)) file.find("native_type")->fail("'" + spec.native_type + "' is not among the weights");
    spec.source = file.find("source")->text();
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
    for (const fs::path& file : files_in(root_ / "hardware")) result.push_back(read_hardware(Yaml::load(file)));
    return result;
}

std::vector<ModelSpec> Catalogue::all_models() const {
    std::vector<ModelSpec> result;
    for (const fs::path& file : files_in(root_ / "models")) result.push_back(read_model(Yaml::load(file)));
    return result;
}

HardwareSpec Catalogue::hardware(const std::string& name) const {
    if (name.ends_with(".yaml")) return read_hardware(Yaml::load(find("hardware", name, fs::current_path())));
    std::vector<HardwareSpec> known = all_hardware();
    std::vector<std::string> spelled;
    for (HardwareSpec& spec : known) {
        if (spec.name == name) return std::move(spec);
        spelled.push_back(spec.name);
    }
    if (auto mentioned = hardware_in(name, known)) return std::move(*mentioned);
    throw IoError("there is no '" + name + "' among the hardware in " + (root_ / "hardware").string() +
                  "; known: " + listed(nearest_first(name, spelled), spelled.size()));
}

ServedModel Catalogue::model(const std::string& name) const {
    if (name.ends_with(".yaml")) {
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
