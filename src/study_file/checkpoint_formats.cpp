// SPDX-License-Identifier: Apache-2.0
#include "checkpoint_formats.hpp"

#include "base/text.hpp"
#include "config_names.hpp"

namespace servetune {
namespace {

using Json = nlohmann::json;

/// `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = npos, from = 0;
    while (t < text.size())
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != npos) {
            p = star + 1;
            t = ++from;
        } else return false;
    return pattern.find_first_not_of('*', p) == npos;
}

/// `method`: all words that say it, `modelopt nvfp4`; numbers that are not said are 0.
WeightsFormat format_of(std::string method, double bits, double group, bool weights_only) {
    method = lower_case(std::move(method));
    const auto has = [&](const char* word) { return method.find(word) != npos; };
    if (bits == 0)
        bits = has("fp4") || has("int4") || has("w4") || has("awq") || has("gptq") ? 4
               : has("8")                                                          ? 8
                                                                                   : 16;
    if (bits >= 16) return {};
    weights_only = weights_only || has("a16");
    const bool four = bits <= 4;
    const auto computed = [&](const char* type) { return weights_only ? "bf16" : type; };
    if (has("fp") || has("float")) {
        if (!four && !has("mxfp8"))
            return {"fp8", 8.001, computed(has("block") ? "fp8_block" : "fp8")};
        if (!four) return {"mxfp8", 8.25, computed("fp8")};
        const bool mx = has("mx") || group == 32;
        if (mx) return {"mxfp4", 4.25, "mxfp4"};
        return {"fp4", 4.5, computed("fp4")};
    }
    const std::string count = text_of(bits);
    const std::string type = four ? "int4" : computed("int8");
    bits += group > 0 ? 16 / group : 0;
    if (has("awq")) return {four ? "awq" : "awq-8bit", bits + 4 / group, type};
    if (has("gptq")) return {"gptq-int" + count, bits + 4 / group, type};
    return {"int" + count + (four || weights_only ? "-w" + count + "a16" : ""), bits, type};
}

}  // namespace

CheckpointFormats::CheckpointFormats(const Json* of, const std::string& expert_type) {
    if (expert_type == "fp4") add("mlp.experts", format_of("mxfp4", 0, 32, false));
    if (const Json* inner = child_of(of, "quantization")) of = inner;
    std::string method;
    for (const char* key : {"quant_method", "quant_algo", "fmt", "format"})
        method += text_in(of, key) + " ";
    if (const Json* sides = child_of(of, "weight_block_size")) {
        method += "block";
        if (sides->is_array() && !sides->empty() && sides->front().is_number())
            block = std::max(0.0, sides->front().get<double>());
    }
    const Json* groups = child_of(of, "config_groups");
    const Json* layers = child_of(of, "quantized_layers");
    if (groups != nullptr && groups->is_object() && layers == nullptr)
        for (const Json& one : *groups) {
            const Json* weights = child_of(&one, "weights");
            const WeightsFormat format = format_of(
                method + text_in(&one, "format") + " " + text_in(weights, "type") + " " +
                    text_in(weights, "strategy"),
                json_number_in(weights, "num_bits"), json_number_in(weights, "group_size"),
                child_of(&one, "input_activations") == nullptr);
            for (const std::string& target : texts_in(&one, "targets"))
                if (target == "Linear" || target == "FusedMoE") default_ = format;
                else add(target, format);
            if (child_of(&one, "targets") == nullptr) default_ = format;
        }
    else if (layers != nullptr && layers->is_object())
        for (const auto& [module, how] : layers->items())
            add(module, format_of(text_in(&how, "quant_algo"), 0, 16, false));
    else if (of != nullptr) {
        const Json* weight = child_of(child_of(of, "global_quant_config"), "weight");
        const double bits = json_number_in(of, "load_in_4bit") > 0   ? 4
                            : json_number_in(of, "load_in_8bit") > 0 ? 8
                                                                     : json_number_in(of, "bits");
        const double group = json_number_in(weight, "group_size", 128);
        default_ = format_of(method + text_in(weight, "dtype"), bits,
                             json_number_in(of, "group_size", group), false);
        if (default_.bits >= 16) unknown = trimmed(method);
    }
    for (const char* key :
         {"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers", "exclude"})
        for (const std::string& module : texts_in(of, key)) add(module, {});
}

const WeightsFormat& CheckpointFormats::of(const std::string& module, std::int64_t layer) {
    for (auto& [pattern, rule] : rules_) {
        if (!rule.all && !rule.layers.contains(layer)) continue;
        const auto [known, fresh] = rule.hits.try_emplace(module);
        const std::string& name = pattern.first;
        if (fresh)  // the name of a part says that the whole has the format
            known->second =
                rule.format.bits < 16 && matches(name.substr(0, name.rfind('.')), module);
        if (fresh)
            for (const char* before : {"", "*."})
                for (const char* behind : {"", ".*"})
                    known->second = known->second || matches(before + name + behind, module);
        if (known->second) return rule.format;
    }
    return default_;
}

void CheckpointFormats::add(std::string pattern, const WeightsFormat& format) {
    if (pattern.size() > 300) return;
    if (pattern.starts_with("re:")) {
        pattern.erase(0, 3);
        pattern = replaced_all(pattern, ".*", "*");
        std::erase_if(pattern, [](char c) { return c == '^' || c == '$' || c == '\\'; });
        const auto open = pattern.find('('), close = pattern.find(')');
        if (open < close && close != npos) {
            for (auto at = open + 1, end = at; at <= close; at = end + 1) {
                end = std::min(pattern.find('|', at), close);
                add("re:" + pattern.substr(0, open) + pattern.substr(at, end - at) +
                        pattern.substr(close + 1),
                    format);
            }
            return;
        }
    }
    for (const auto& [theirs, ours] : {std::pair{"block_sparse_moe", "mlp"},
                                       {".attn.", ".self_attn."},
                                       {"shared_experts", "shared_expert"},
                                       {"feed_forward", "mlp"},
                                       {"ffn", "mlp"},
                                       {"mixer", "*"}})
        pattern = replaced_all(pattern, theirs, ours);
    if (pattern.starts_with("*.")) pattern.erase(0, 2);  // each is looked for behind any
    std::int64_t layer = -1;
    if (const auto at = pattern.find("layers."); at != npos) {
        const std::string_view rest = std::string_view(pattern).substr(at + 7);
        const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
        if (digits > 0 && digits < 7) layer = std::stol(std::string(rest.substr(0, digits)));
        pattern = rest.substr(layer < 0 && rest.starts_with('*') ? 1 : digits);
        if (pattern.empty()) pattern = "*";
    }
    std::string module;  // `experts.5.up_proj` is `experts.up_proj`
    for (std::size_t at = 0, dot = 0; at < pattern.size(); at = dot + 1) {
        dot = std::min(pattern.find('.', at), pattern.size());
        const std::string part = pattern.substr(at, dot - at);
        if (part.find_first_not_of("0123456789") != npos)
            module += (module.empty() ? "" : ".") + part;
    }
    Rule& rule = rules_[{module, format.name}];
    rule.format = format;
    rule.all = rule.all || layer < 0;
    rule.layers.insert(layer);
}

}  // namespace servetune
