// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/model_spec.hpp"

#include "servetune/detail/base/ranges.hpp"

#include <array>
#include <cctype>
#include <regex>
#include <utility>

namespace servetune {
namespace {

/// Lower case; dots and underscores are dashes, so that `quantized.w4a16` and `quantized-w4a16` are
/// one spelling.
std::string normal(std::string_view name) {
    std::string result;
    for (const char c : name)
        result += c == '_' || c == '.'
                      ? '-'
                      : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::string_view last_part(std::string_view name) {
    while (name.ends_with('/')) name.remove_suffix(1);
    return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

/// Words of a name that say nothing of shape or weights.
constexpr std::array<std::string_view, 11> versions{
    "instruct", "thinking", "base", "chat", "it", "hf", "2507", "0528", "2512", "0324", "0905"};

/// Other spellings of our quantizations, as checkpoints on public hubs are called.
constexpr std::array<std::pair<std::string_view, std::string_view>, 21> spellings{
    {{"fp8-dynamic", "fp8"},
     {"fp8-block", "fp8"},
     {"fp8-kv", "fp8"},
     {"float8", "fp8"},
     {"w8a8-fp8", "fp8"},
     {"awq-w4a16", "awq"},
     {"w4a16-g128", "int4-w4a16"},
     {"int4-w4a16-g128", "int4-w4a16"},
     {"nvfp4", "fp4"},
     {"awq-int4", "awq"},
     {"awq-4bit", "awq"},
     {"awq", "awq-4bit"},
     {"gptq-4bit", "gptq-int4"},
     {"gptq-8bit", "gptq-int8"},
     {"w4a16", "int4-w4a16"},
     {"w8a16", "int8-w8a16"},
     {"quantized-w4a16", "int4-w4a16"},
     {"quantized-w8a16", "int8-w8a16"},
     {"bfloat16", "bf16"},
     {"fp16", "bf16"},
     {"mxfp4-moe", "mxfp4"}}};
/// Quantizations that exist, so that a name with one of them is this model, though its bytes may
/// not be known.
constexpr std::array<std::string_view, 25> quantizations{
    "fp8",       "fp4",        "awq",        "awq-4bit", "awq-8bit",       "gptq-int4",
    "gptq-int8", "int4-w4a16", "int8-w8a16", "gguf",     "bf16",           "mxfp4",
    "gptq",      "bnb-4bit",   "w8a8",       "int8",     "int4",           "quantized-w8a8",
    "4bit",      "8bit",       "nvfp4a16",   "hqq",      "int4-autoround", "mlx-4bit",
    "mlx-8bit"};

/// The words of llama.cpp's files: `q4-k-m`, `ud-iq2-xxs-gguf`; without `gguf` behind. Empty: none.
std::string gguf_type(std::string_view word) {
    static const std::regex types(
        "(ud-|i1-)?(q[1-8]-(0|1|k(-(xs|s|m|l|xl))?)|iq[1-4]-(xxs|xs|s|m|nl)|tq[12]-0)");
    if (word.ends_with("-gguf")) word.remove_suffix(5);
    return std::regex_match(word.begin(), word.end(), types) ? std::string(word) : "";
}

/// What the words after the stem mean: a quantization, empty for none; nothing when they mean
/// something else.
std::optional<std::string> quantization_of(std::string rest, const ModelSpec& model) {
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view version : versions) {
            if (!rest.starts_with("-" + std::string(version))) continue;
            const std::string_view after = std::string_view(rest).substr(version.size() + 1);
            if (!after.empty() && after.front() != '-') continue;
            rest = std::string(after);
            again = true;
        }
    }
    if (rest.empty()) return model.native_type;
    const std::string word = rest.substr(1);
    if (model.weights.contains(word)) return word;
    for (const auto& [spelled, ours] : spellings)
        if (word == spelled && model.weights.contains(ours)) return std::string(ours);
    if (contains(quantizations, word)) return word;
    for (const auto& [spelled, ours] : spellings)
        if (word == spelled) return std::string(ours);
    if (const std::string type = gguf_type(word); !type.empty()) return type;
    return std::nullopt;
}

}  // namespace

std::map<std::string, std::int64_t> facts_of(const ModelSpec& model) {
    std::map<std::string, std::int64_t> facts{{"model.layers", model.layers},
                                              {"model.attention_heads", model.attention_heads},
                                              {"model.experts", model.experts}};
    if (model.context_tokens > 0) facts["model.context_tokens"] = model.context_tokens;
    if (model.weight_blocks > 0) facts["model.weight_blocks"] = model.weight_blocks;
    // Latent attention keeps less than keys and values of its heads: what is asked of these does
    // not hold for it.
    const auto cached = double(4 * model.attention_layers * model.kv_heads * model.head_dim);
    if (model.kv_heads > 0 && model.latent_width == 0 && model.kv_bytes_per_token_16bit >= cached) {
        facts["model.kv_heads"] = model.kv_heads;
        facts["model.queries_per_kv_head"] = model.attention_heads / model.kv_heads;
    }
    return facts;
}

std::string note_of(const ServedModel& served, std::string_view served_name) {
    if (normal(last_part(served_name)) == normal(last_part(served.model.name))) {
        const bool of_hub = served_name.find_first_of("/.") != 0 &&
                            served_name.find('/') == served_name.rfind('/') &&
                            contains(served_name, '/');
        const auto owner = [](std::string_view name) { return name.substr(0, name.find('/')); };
        return of_hub && owner(served_name) != owner(served.model.name)
                   ? std::string(served_name) + " is taken for " + served.model.name
                   : "";
    }
    std::string text = std::string(served_name) + " is " + served.model.name + " in " +
                       served.quantization + ", by its name";
    if (!served.model.weights.contains(served.quantization))
        text += "; its bytes in " + served.quantization +
                " are not known, so nothing is predicted or checked by them";
    return text;
}

std::optional<ServedModel> served_model(std::string_view served_name,
                                        const std::vector<ModelSpec>& known) {
    const std::string name = normal(last_part(served_name));
    for (const ModelSpec& model : known) {
        std::vector<std::string> stems{std::string(last_part(model.name))};
        stems.insert(stems.end(), model.also.begin(), model.also.end());
        for (const std::string& stem : stems) {
            const std::string start = normal(stem);
            if (!name.starts_with(start) ||
                (name.size() > start.size() && name[start.size()] != '-'))
                continue;
            if (const auto quantization = quantization_of(name.substr(start.size()), model))
                return ServedModel{model, *quantization};
        }
    }
    return std::nullopt;
}

}  // namespace servetune
