// SPDX-License-Identifier: Apache-2.0
#include "model_files.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "deploy/cached_models.hpp"
#include "fact_keys.hpp"
#include "gguf_header.hpp"
#include "study_snapshot.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <mutex>
#include <unordered_map>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t most_layers = 1000;
constexpr double largest_figure = 1e15;
constexpr std::uintmax_t largest_config = 16UL << 20UL;

const Json* child_of(const Json* of, const char* key) {
    if (of == nullptr || !of->is_object()) return nullptr;
    const auto found = of->find(key);
    return found == of->end() || found->is_null() ? nullptr : &*found;
}

/// The texts under a key: one, or a list of them.
std::vector<std::string> texts_in(const Json* of, const char* key) {
    std::vector<std::string> result;
    const Json* child = child_of(of, key);
    if (child != nullptr)
        for (const Json& one : child->is_array() ? *child : Json::array({*child}))
            if (one.is_string()) result.push_back(one.get<std::string>());
    return result;
}
std::string text_in(const Json* of, const char* key) {
    const auto texts = texts_in(of, key);
    return texts.empty() ? "" : texts.front();
}

double json_number_in(const Json* of, const char* key, double otherwise = 0) {
    const Json* child = child_of(of, key);
    if (child == nullptr || !(child->is_number() || child->is_boolean())) return otherwise;
    return child->is_boolean() ? child->get<bool>() ? 1.0 : 0.0 : child->get<double>();
}

/// What the names of a family come to, at one layer after another.
class ConfigNames {
public:
    ConfigNames(const std::string& file, const Json& whole, const Json& text,
                std::vector<const Alternatives*> names)
        : file_(file), parts_{&text, &whole}, names_(std::move(names)) {}

    void enter(std::int64_t layer) {
        layer_ = layer;
        std::erase_if(known_, [](const auto& one) { return one.second.at_layer; });
    }
    std::optional<double> number(const std::string& alternatives) {
        return figure(kept(alternatives, [&] { return value_of(alternatives); }));
    }
    double needed(const std::string& name) {
        if (const auto value = number(name); value && *value > 0) return *value;
        throw ParseError(file_ + ": '" + spelled(name) + "': a number above 0 wanted");
    }
    /// What an expression is about: `heads 32, kv_heads 5`.
    std::string figures_of(const Expression& of) {
        std::string result;
        for (const std::string& name : of.names())
            if (const Value* value = named(name))
                result += (result.empty() ? "" : ", ") + name + " " + text_of(*value);
        return result;
    }
    bool holds(const Expression& condition) {
        return figure(kept(condition.text(), [&] { return value_of(condition); })).value_or(0) != 0;
    }

private:
    struct Known {
        std::optional<Value> value{};
        bool at_layer = false;
    };

    static std::optional<double> figure(const Known& known) {
        return known.value ? number_of(*known.value) : std::nullopt;
    }
    template <class Compute>
    const Known& kept(const std::string& key, const Compute& compute) {
        auto found = known_.find(key);
        if (found == known_.end()) {
            const bool outer = std::exchange(at_layer_, false);
            auto value = compute();
            found = known_.insert_or_assign(key, Known{std::move(value), at_layer_}).first;
            at_layer_ = outer;
        }
        at_layer_ = at_layer_ || found->second.at_layer;
        return found->second;
    }

    std::string spelled(const std::string& name) const {
        for (const Alternatives* names : names_)
            if (const auto found = names->find(name); found != names->end()) return found->second;
        return name;
    }

    std::optional<Value> value_of(const Expression& one) {
        auto value = one.value([&](std::size_t i) { return named(one.names()[i]); });
        if (!value) return value;
        if (const bool* truth = std::get_if<bool>(&*value)) return *truth ? 1.0 : 0.0;
        const auto number = number_of(*value);
        return number && !std::isfinite(*number) ? std::nullopt : value;
    }
    /// Of `a | b` the first that has a value.
    std::optional<Value> value_of(const std::string& alternatives) {
        const auto [at_text, fresh] = parsed_.try_emplace(alternatives);
        std::vector<Expression>& parsed = at_text->second;
        for (std::size_t at = 0; fresh && at <= alternatives.size();) {
            const auto end = std::min(alternatives.find('|', at), alternatives.size());
            parsed.push_back(parse_expression(alternatives.substr(at, end - at)));
            at = end + 1;
        }
        for (const Expression& one : parsed)
            if (auto value = value_of(one)) return value;
        return std::nullopt;
    }

    const Value* named(const std::string& name) {
        const bool own = std::find(open_.begin(), open_.end(), name) != open_.end();
        const std::string key = own ? "config." + name : name;
        const Known& known = kept(key, [&] {
            const std::string spelling = own ? name : spelled(name);
            open_.push_back(name);
            auto value = spelling == name ? read(key) : value_of(spelling);
            open_.pop_back();
            return value;
        });
        return known.value ? &*known.value : nullptr;
    }

    std::optional<Value> read(std::string path) {
        at_layer_ = path == "layer";
        if (at_layer_) return static_cast<double>(layer_);
        if (path.starts_with("config.")) path.erase(0, 7);
        for (const Json* part : parts_)
            if (auto value = read_in(part, path)) return value;
        return std::nullopt;
    }
    std::optional<Value> read_in(const Json* at, const std::string& path) {
        const auto index = static_cast<std::size_t>(layer_);
        Json made;
        for (std::size_t from = 0; at != nullptr && from < path.size();) {
            const auto dot = std::min(path.find('.', from), path.size());
            const std::string part = path.substr(from, dot - from);
            const bool has = part == "has" || part == "has1";
            at_layer_ = at_layer_ || has || part == "i";
            if (part == "i" && at->is_array()) {
                if (index >= at->size())
                    throw ParseError(file_ + ": '" + path.substr(0, from - 1) + "' has " +
                                     std::to_string(at->size()) + " entries, too few for layer " +
                                     std::to_string(layer_));
                at = &(*at)[index];
            } else if (part == "i" && at->is_string()) {
                const auto& letters = at->get_ref<const std::string&>();
                made = index < letters.size() ? letters.substr(index, 1) : "";
                at = &made;
            } else if (at->is_array() && (has || part == "size")) {
                const Json wanted(layer_ + (part == "has1" ? 1 : 0));
                made = has ? std::count(at->begin(), at->end(), wanted)
                           : static_cast<std::int64_t>(at->size());
                at = &made;
            } else at = child_of(at, part.c_str());
            from = dot + 1;
        }
        if (at == nullptr) return std::nullopt;
        if (at->is_boolean()) return at->get<bool>() ? 1.0 : 0.0;
        if (at->is_string()) return at->get<std::string>();
        if (!at->is_number()) return std::nullopt;
        const auto number = at->get<double>();
        if (!(std::abs(number) <= largest_figure))
            throw ParseError(file_ + ": '" + path + "': " + at->dump() + " is too large");
        return number < 0 ? std::nullopt : std::optional<Value>(number);
    }

    const std::string& file_;
    std::array<const Json*, 2> parts_;
    std::vector<const Alternatives*> names_;
    std::int64_t layer_ = 0;
    bool at_layer_ = false;  ///< what is being read depends on the layer
    std::vector<std::string> open_{};
    std::unordered_map<std::string, Known> known_{};
    std::unordered_map<std::string, std::vector<Expression>> parsed_{};
};

/// `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = pattern.npos, from = 0;
    while (t < text.size())
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != pattern.npos) {
            p = star + 1;
            t = ++from;
        } else return false;
    return pattern.find_first_not_of('*', p) == pattern.npos;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
}

/// How weights are kept.
struct Format {
    std::string name = "bf16";
    double bits = 16;  ///< with scales
    std::string computes_in = "bf16";
};

/// `method`: all words that say it, `modelopt nvfp4`; numbers that are not said are 0.
Format format_of(std::string method, double bits, double group, bool weights_only) {
    method = lower_case(std::move(method));
    const auto has = [&](const char* word) { return method.find(word) != method.npos; };
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

/// Which module of a checkpoint is kept how.
class CheckpointFormats {
public:
    /// `of`: under quantization_config, or in hf_quant_config.json.
    CheckpointFormats(const Json* of, const std::string& expert_type) {
        if (expert_type == "fp4") add("mlp.experts", format_of("mxfp4", 0, 32, false));
        if (const Json* inner = child_of(of, "quantization")) of = inner;
        std::string method;
        for (const char* key : {"quant_method", "quant_algo", "fmt", "format"})
            method += text_in(of, key) + " ";
        if (child_of(of, "weight_block_size") != nullptr) method += "block";
        const Json* groups = child_of(of, "config_groups");
        const Json* layers = child_of(of, "quantized_layers");
        if (groups != nullptr && groups->is_object() && layers == nullptr)
            for (const Json& one : *groups) {
                const Json* weights = child_of(&one, "weights");
                const Format format = format_of(
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
            const double bits = json_number_in(of, "load_in_4bit") > 0 ? 4
                                : json_number_in(of, "load_in_8bit") > 0
                                    ? 8
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

    std::string unknown{};  ///< words of a quantization that nothing here reads

    [[nodiscard]] const Format& of(const std::string& module, std::int64_t layer) {
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

private:
    struct Rule {
        Format format{};
        bool all = false;
        std::set<std::int64_t> layers{};
        std::map<std::string, bool> hits{};
    };

    /// `model.layers.12.self_attn.q_proj`, `*.mlp.gate`, `re:.*self_attn.*`
    void add(std::string pattern, const Format& format) {
        if (pattern.size() > 300) return;
        if (pattern.starts_with("re:")) {
            pattern.erase(0, 3);
            replace_all(pattern, ".*", "*");
            std::erase_if(pattern, [](char c) { return c == '^' || c == '$' || c == '\\'; });
            const auto open = pattern.find('('), close = pattern.find(')');
            if (open < close && close != pattern.npos) {
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
            replace_all(pattern, theirs, ours);
        if (pattern.starts_with("*.")) pattern.erase(0, 2);  // each is looked for behind any
        std::int64_t layer = -1;
        if (const auto at = pattern.find("layers."); at != pattern.npos) {
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
            if (part.find_first_not_of("0123456789") != part.npos)
                module += (module.empty() ? "" : ".") + part;
        }
        Rule& rule = rules_[{module, format.name}];
        rule.format = format;
        rule.all = rule.all || layer < 0;
        rule.layers.insert(layer);
    }

    Format default_{};
    std::map<std::pair<std::string, std::string>, Rule> rules_{};
};

/// The part of a config.json that is about the language model.
const Json& text_part(const Json& whole) {
    for (const char* key : {"text_config", "llm_config", "language_config", "thinker_config"})
        if (const Json* part = child_of(&whole, key); part != nullptr && part->is_object())
            return text_part(*part);
    return whole;
}

/// Parameters by what quantizations make of them, and bytes as the checkpoint has them.
struct Sums {
    double linear = 0, experts = 0, other = 0, bytes = 0, expert_bytes = 0;
};

/// The type that most of some bytes are computed in.
using Votes = std::map<std::string, double>;
std::string most_of(const Votes& votes) {
    std::string result = "bf16";
    double most = 0;
    for (const auto& [name, bytes] : votes)
        if (bytes > most) {
            most = bytes;
            result = name;
        }
    return result;
}

class ModelOfFiles {
public:
    ModelOfFiles(const ModelFamilies& table, const std::string& file, const Json& whole,
                 const Json* quantization)
        : table_(table),
          file_(file),
          text_(text_part(whole)),
          family_(family_of(whole)),
          names_(file, whole, text_, names_of(family_)),
          formats_(quantization, text_in(&text_, "expert_dtype")) {
        if (family_ == nullptr)
            note("'" + text_in(&whole, "model_type") +
                 "' is in no family of architectures.yaml: read by the usual names");
        if (!formats_.unknown.empty())
            note("the quantization '" + formats_.unknown + "' is not known: taken as 16 bits");
        read_layers();
    }

    /// `on_disk`: bytes of the checkpoint's files; 0: not known.
    ModelSpec finished(double on_disk);
    /// The weights of a GGUF file, as they are.
    ModelSpec finished(const std::vector<GgufTensor>& tensors);

private:
    ModelSpec spec_{};

    void note(const std::string& text) {
        if (std::find(spec_.notes.begin(), spec_.notes.end(), text) == spec_.notes.end())
            spec_.notes.push_back(text);
    }

    const ModelFamily* family_called(const std::string& type) const {
        for (const ModelFamily& family : table_.families)
            if (std::find(family.types.begin(), family.types.end(), type) != family.types.end())
                return &family;
        return nullptr;
    }
    const ModelFamily* family_of(const Json& whole) const {
        for (const Json* part : {&whole, &text_})
            for (const char* key : {"model_type", "architectures"})
                for (const std::string& type : texts_in(part, key))
                    if (const ModelFamily* family = family_called(type)) return family;
        return nullptr;
    }
    std::vector<const Alternatives*> names_of(const ModelFamily* family) const {
        std::vector<const Alternatives*> result;
        for (; family != nullptr; family = family_called(family->like))
            result.push_back(&family->names);
        result.push_back(&table_.usual.names);
        return result;
    }

    const LayerBlock& chosen(std::vector<LayerChoice> ModelFamily::*part) {
        const ModelFamily* from = family_;
        while (from != nullptr && (from->*part).empty()) from = family_called(from->like);
        for (const LayerChoice& choice : (from != nullptr ? *from : table_.usual).*part)
            if (names_.holds(choice.when)) return table_.blocks.at(choice.use);
        static const LayerBlock none;
        return none;
    }

    double fact(const LayerBlock& block, const std::string& name) {
        const auto found = block.facts.find(name);
        if (found == block.facts.end()) return 0;
        if (const auto value = names_.number(found->second)) return *value;
        note("'" + name + "' of a layer is not known: " + found->second);
        return 0;
    }

    void add(const LayerBlock& block, std::int64_t layer) {
        const auto parameters = [&](const auto& row) {
            if (const auto value = names_.number(row.second)) return *value;
            note("the weights of '" + row.first + "' are not known: " + row.second);
            return 0.0;
        };
        const auto add_rows = [&](const Alternatives& rows, double& values, double& bytes,
                                  Votes& types) {
            for (const auto& row : rows) {
                const double n = parameters(row);
                const Format& format = formats_.of(row.first, layer);
                values += n;
                bytes += n * format.bits / 8;
                types[format.computes_in] += n;
                native_[format.name] += n;
            }
        };
        add_rows(block.linear, sums_.linear, sums_.bytes, dense_);
        add_rows(block.experts, sums_.experts, sums_.expert_bytes, experts_);
        for (const auto& row : block.other) sums_.other += parameters(row);
    }

    static std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

    void read_mixer(std::int64_t layer) {
        const LayerBlock& mixer = chosen(&ModelFamily::mixer);
        add(mixer, layer);
        const double cache = 2 * fact(mixer, "cache");
        spec_.kv_bytes_per_token_16bit += cache;
        spec_.fixed_bytes_per_token += fact(mixer, "fixed");
        spec_.state_bytes_per_sequence += fact(mixer, "state");
        if (cache <= 0) return;
        const bool first_full = spec_.attention_layers == spec_.sliding_layers;
        ++spec_.attention_layers;
        const auto window = whole(fact(mixer, "window"));
        if (window > 0) {
            ++spec_.sliding_layers;
            spec_.sliding_window = window;
            spec_.sliding_kv_bytes_per_token_16bit += cache;
        }
        if (spec_.attention_heads > 0 && (window > 0 || !first_full)) return;
        spec_.attention_heads = whole(fact(mixer, "heads"));
        spec_.kv_heads = whole(fact(mixer, "kv_heads"));
        spec_.head_dim = whole(fact(mixer, "head_dim"));
        spec_.latent_width = whole(fact(mixer, "latent"));
    }

    void read_layers() {
        spec_.layers = whole(names_.needed("layers"));
        if (spec_.layers > most_layers)
            throw ParseError(file_ + ": " + std::to_string(spec_.layers) +
                             " layers are more than " + std::to_string(most_layers));
        spec_.hidden_size = whole(names_.needed("hidden"));
        spec_.vocabulary = whole(names_.needed("vocabulary"));
        spec_.context_tokens = whole(names_.number("context").value_or(0));
        if (spec_.context_tokens == 0) note("the longest context is not known");
        spec_.tied_embeddings = names_.number("tied").value_or(0) != 0;
        for (std::int64_t layer = 0; layer < spec_.layers; ++layer) {
            names_.enter(layer);
            for (const Expression& wrong : table_.usual.contradictions)
                if (names_.holds(wrong))
                    note("contradicting figures: " + names_.figures_of(wrong) + " (" +
                         wrong.text() + ")");
            read_mixer(layer);
            const LayerBlock& feed = chosen(&ModelFamily::feed_forward);
            if (layer + 1 == spec_.layers) {  // what guesses tokens is one more of these
                mtp_ = sums_;
                add(feed, layer);
                mtp_.bytes = sums_.bytes + sums_.expert_bytes - mtp_.bytes - mtp_.expert_bytes;
            } else add(feed, layer);
            if (!feed.experts.empty() && spec_.experts == 0) {
                spec_.experts = whole(names_.needed("experts"));
                spec_.experts_per_token = whole(names_.needed("experts_per_token"));
            } else if (feed.experts.empty() && !feed.linear.empty()) ++spec_.dense_layers;
        }
        if (spec_.experts == 0) spec_.dense_layers = 0;
        if (spec_.experts_per_token > spec_.experts)
            throw ParseError(file_ + ": " + std::to_string(spec_.experts_per_token) + " of " +
                             std::to_string(spec_.experts) + " experts for a token");
        sums_.other += static_cast<double>(spec_.hidden_size);  // the last norm
        if (const auto vision = table_.blocks.find("vision"); vision != table_.blocks.end())
            for (const auto& [name, row] : vision->second.other)
                vision_ += names_.number(row).value_or(0);
    }

    [[nodiscard]] double embedding() const {
        return static_cast<double>(spec_.vocabulary * spec_.hidden_size);
    }
    [[nodiscard]] double chosen_share() const {
        return spec_.experts > 0 ? static_cast<double>(spec_.experts_per_token) /
                                       static_cast<double>(spec_.experts)
                                 : 0;
    }
    [[nodiscard]] ModelWeights weights_of(double linear, double experts) const {
        ModelWeights weights;
        weights.bytes = 2 * (sums_.other + spec_.parameters_embedding + vision_) + linear + experts;
        weights.per_token = 2 * (sums_.other + embedding()) + linear + experts * chosen_share();
        weights.computed = true;
        return weights;
    }
    /// What a checkpoint of this shape weighs in the usual quantizations.
    void compute_weights() {
        spec_.expert_parameters = sums_.experts;
        spec_.parameters_embedding = embedding() * (spec_.tied_embeddings ? 1 : 2);
        spec_.parameters_active = sums_.linear + sums_.other + sums_.experts * chosen_share() +
                                  spec_.parameters_embedding;
        for (const auto& [name, format] : table_.quantizations) {
            const double dense = format.experts_only && sums_.experts > 0 ? 16 : format.bits;
            ModelWeights& weights = spec_.weights[name];
            weights = weights_of(sums_.linear * dense / 8, sums_.experts * format.bits / 8);
            weights.computes_in = dense == 16 ? "bf16" : name;
            if (sums_.experts > 0 && weights.computes_in != name) weights.experts_compute_in = name;
        }
    }

    const ModelFamilies& table_;
    const std::string& file_;
    const Json& text_;
    const ModelFamily* family_;
    ConfigNames names_;
    CheckpointFormats formats_;
    Sums sums_{};
    double vision_ = 0;
    Sums mtp_{};
    Votes dense_{}, experts_{}, native_{};
};

std::string in_gb(double bytes) { return text_of(std::round(bytes / 1e7) / 100) + " GB"; }

ModelSpec ModelOfFiles::finished(double on_disk) {
    compute_weights();
    spec_.native_type = most_of(native_);
    ModelWeights& native = spec_.weights[spec_.native_type];
    native = weights_of(sums_.bytes, sums_.expert_bytes);
    native.computes_in = most_of(dense_);
    if (sums_.experts > 0 && most_of(experts_) != native.computes_in)
        native.experts_compute_in = most_of(experts_);
    if (on_disk <= 0) return spec_;
    // Engines leave out the layers that guess tokens.
    const double computed = native.bytes;
    const double guessing =
        names_.number("mtp_layers").value_or(0) *
        (mtp_.bytes + 4 * static_cast<double>(spec_.hidden_size * spec_.hidden_size));
    if (on_disk > computed + guessing / 2) on_disk -= guessing;
    native.computed = false;
    native.bytes = on_disk;
    if (std::abs(on_disk - computed) > 0.05 * computed)
        note("the weights' files have " + in_gb(on_disk) + ", and the shape comes to " +
             in_gb(computed) + " in " + spec_.native_type + "; the larger counts");
    native.bytes = std::max(on_disk, computed * (on_disk < 0.95 * computed ? 1 : 0));
    return spec_;
}

ModelSpec ModelOfFiles::finished(const std::vector<GgufTensor>& tensors) {
    ModelWeights weights;
    const auto called = [](const std::string& name, std::string_view part) {
        return name.find(part) != std::string::npos;
    };
    std::erase_if(spec_.notes,
                  [](const std::string& one) { return one.starts_with("the weights of"); });
    sums_ = {};
    double embedded = 0;
    spec_.tied_embeddings = true;
    for (const GgufTensor& tensor : tensors) {
        const bool input = called(tensor.name, "token_embd");
        const bool output = tensor.name == "output.weight";
        weights.bytes += tensor.bytes;
        if (called(tensor.name, "_exps.")) {
            sums_.experts += tensor.values;
            sums_.expert_bytes += tensor.bytes;
        } else if (output) spec_.tied_embeddings = false;
        else if (input) embedded = tensor.bytes;
        else (tensor.matrix ? sums_.linear : sums_.other) += tensor.values;
    }
    compute_weights();
    weights.per_token = weights.bytes - (spec_.tied_embeddings ? 0 : embedded) -
                        sums_.expert_bytes * (1 - chosen_share());
    weights.computes_in = "bf16";
    spec_.native_type = "gguf";
    spec_.weights["gguf"] = weights;
    return spec_;
}

/// Of the checkpoint in a folder; 0: not known. An index says what there is to be, files what there
/// is.
double weight_bytes_in(const fs::path& folder) {
    constexpr std::string_view key = "\"total_size\":";
    std::ifstream index(folder / "model.safetensors.index.json");
    std::string start(4096, '\0');  // of the megabytes that it may have
    index.read(start.data(), static_cast<std::streamsize>(start.size()));
    if (const auto at = start.find(key); at != std::string::npos)
        return std::strtod(start.c_str() + at + key.size(), nullptr);
    double result = 0;
    std::error_code unknown;
    for (fs::directory_iterator at(folder, unknown), end; !unknown && at != end;
         at.increment(unknown)) {
        std::error_code unreadable;
        const std::string name = at->path().filename().string();
        if (!name.ends_with(".safetensors") || name.starts_with("consolidated")) continue;
        const auto size = fs::file_size(at->path(), unreadable);
        if (!unreadable) result += static_cast<double>(size);
    }
    return result;
}

/// A file itself, the config.json or GGUF file of a folder, or of a name in the hub's cache.
fs::path file_in(const fs::path& given) {
    std::error_code unknown;
    if (fs::is_regular_file(given, unknown)) return given;
    fs::path folder = fs::is_directory(given, unknown) ? given : hub_snapshot(given.string());
    if (folder.empty())
        throw IoError("there are no files of '" + given.string() +
                      "' here: neither file, folder, nor a name in the hub's cache");
    if (const fs::path config = folder / "config.json"; fs::exists(config, unknown)) return config;
    std::vector<fs::path> files;
    for (fs::directory_iterator at(folder, unknown), end; !unknown && at != end;
         at.increment(unknown)) {
        const std::string name = at->path().filename().string();
        if (name.ends_with(".gguf") && name.find("mmproj") == name.npos &&
            (!part_of_model(at->path().stem().string()) || name.find("-00001-of-") != name.npos))
            files.push_back(at->path());
    }
    if (files.size() == 1) return files.front();
    throw IoError(folder.string() + " has neither a config.json nor one GGUF file; name a file");
}

/// Of `model-00001-of-00003.gguf` the second and the third.
std::vector<fs::path> other_parts(const fs::path& file) {
    std::vector<fs::path> result;
    const auto part = part_of_model(file.stem().string());
    for (std::size_t i = 2; part && i <= std::min<std::size_t>(part->second, 1000); ++i)
        result.push_back(file.parent_path() /
                         fmt::format("{}-{:05}-of-{:05}.gguf", part->first, i, part->second));
    return result;
}

/// Read once, and kept: there may be hundreds of models.
const ModelFamilies& families_in(const fs::path& root) {
    static std::mutex mutex;
    static std::map<fs::path, ModelFamilies> read;
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = read.try_emplace(root);
    if (fresh)
        read_table(Yaml::load(root / "architectures.yaml"), keys::model_families, at->second);
    return at->second;
}

}  // namespace

fs::path Catalogue::file_of_model(const std::string& name) const {
    try {
        const fs::path file = file_in(name);
        return text_exists(file, snapshot_) ? fs::absolute(file) : fs::path();
    } catch (const IoError&) {
        return {};
    }
}

ModelSpec Catalogue::model_from_files(const fs::path& given) const {
    const ModelFamilies& table = families_in(root_);
    const fs::path file = file_in(given);
    const std::string path = file.string();
    ModelSpec spec;
    if (file.extension() == ".gguf") {
        GgufHeader header = read_gguf_header(file);
        for (const fs::path& part : other_parts(file)) {
            const GgufHeader more = read_gguf_header(part);
            header.tensors.insert(header.tensors.end(), more.tensors.begin(), more.tensors.end());
        }
        spec = ModelOfFiles(table, path, header.config, nullptr).finished(header.tensors);
        spec.name = path;
    } else {
        const auto json_of = [&](const fs::path& one) {
            std::error_code unknown;
            if (const auto size = fs::file_size(one, unknown); !unknown && size > largest_config)
                throw ParseError(one.string() + ": " + std::to_string(size) + " bytes, more than " +
                                 std::to_string(largest_config));
            try {
                auto json = parsed_json<Json>(plain_json(read_text(one, snapshot_)));
                if (!json.is_object()) throw ParseError("no JSON object");
                return json;
            } catch (const Json::exception& error) {
                throw ParseError(one.string() + ": " + error.what());
            } catch (const ParseError& error) {
                throw ParseError(one.string() + ": " + error.what());
            }
        };
        const Json whole = json_of(file);
        std::string beside = file.filename().string();
        const bool named = beside.ends_with("_config.json");  // `ORG--NAME_config.json`, of several
        const auto end = named ? beside.size() - 11 : 0;
        const Json* quantization = child_of(&text_part(whole), "quantization_config");
        if (quantization == nullptr) quantization = child_of(&whole, "quantization_config");
        Json modelopt;
        beside.replace(end, beside.npos, "hf_quant_config.json");
        if (quantization == nullptr && text_exists(file.parent_path() / beside, snapshot_))
            quantization = &(modelopt = json_of(file.parent_path() / beside));
        spec = ModelOfFiles(table, path, whole, quantization)
                   .finished(named ? 0 : weight_bytes_in(file.parent_path()));
        spec.name = fs::absolute(file).parent_path().string();
        if (named) spec.name = beside.substr(0, end - 1);
        if (const auto at = spec.name.find("--"); named && at != beside.npos)
            spec.name.replace(at, 2, "/");
    }
    std::error_code unknown;
    if (!fs::exists(given, unknown)) spec.name = given.string();
    spec.source = path;
    return spec;
}

}  // namespace servetune
