// SPDX-License-Identifier: Apache-2.0
#include "model_files.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "checkpoint_formats.hpp"
#include "config_names.hpp"
#include "deploy/cached_models.hpp"
#include "fact_keys.hpp"
#include "gguf_header.hpp"
#include "study_snapshot.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <mutex>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t most_layers = 1000;
constexpr std::uintmax_t largest_config = 16UL << 20UL;

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

/// By the name that Transformers gives to a class: a classifier, an encoder, a bare body.
bool writes_no_text(const std::string& name) {
    if (name.find("Chat") != npos || name.ends_with("LMHeadModel")) return false;
    constexpr std::array<std::string_view, 4> endings{"Classification", "MaskedLM",
                                                      "QuestionAnswering", "Model"};
    return any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

class ModelOfFiles {
public:
    ModelOfFiles(const ModelFamilies& table, const std::string& file, const Json& whole,
                 const Json* quantization)
        : table_(table),
          file_(file),
          text_(text_part(whole)),
          family_(family_of(whole)),
          names_(file, whole, text_, names_of(family_), table.usual.assumed, spec_.notes),
          formats_(quantization, text_in(&text_, "expert_dtype")) {
        if (json_number_in(&whole, "is_encoder_decoder") > 0)
            throw ParseError(file +
                             ": 'is_encoder_decoder': models with an encoder are not modelled");
        if (quantization != nullptr && !quantization->is_object())
            throw ParseError(file + ": 'quantization_config': an object wanted, got " +
                             start_of(quantization->dump(), 40));
        if (const auto classes = texts_in(&whole, "architectures");
            !classes.empty() && all_of(classes, writes_no_text))
            note("'architectures' is " + classes.front() + ", which answers with no text");
        if (!formats_.unknown.empty())
            note("the quantization '" + formats_.unknown + "' is not known: taken as 16 bits");
        read_layers();
        if (family_ == nullptr) {
            std::string unread;
            for (const std::string& key : names_.unread())
                unread += (unread.empty() ? ", and nothing reads " : ", ") + key;
            note("'" + text_in(&whole, "model_type") +
                 "' is in no family of architectures.yaml: its figures are by the usual names" +
                 unread);
        }
        if (!(spec_.kv_bytes_per_token_16bit > 0))
            throw ParseError(file +
                             ": no layer keeps keys and values of its tokens: models without a "
                             "cache are not modelled");
    }

    /// `on_disk`: bytes of the checkpoint's files; 0: not known.
    ModelSpec finished(double on_disk);
    /// The weights of a GGUF file, as they are.
    ModelSpec finished(const std::vector<GgufTensor>& tensors);

private:
    ModelSpec spec_{};

    void note(const std::string& text) { servetune::note(spec_.notes, text); }

    const ModelFamily* family_called(const std::string& type) const {
        for (const ModelFamily& family : table_.families)
            if (contains(family.types, type)) return &family;
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
        const auto* found = entry_in(block.facts, name);
        if (found == nullptr) return 0;
        if (const auto value = names_.number(*found)) return *value;
        note("'" + name + "' of a layer is not known: " + *found);
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
                const WeightsFormat& format = formats_.of(row.first, layer);
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

    static std::int64_t whole(double number) { return std::int64_t(number); }

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
        if (formats_.block > 0)
            spec_.weight_blocks = std::int64_t(
                names_.number(spec_.experts > 0 ? "moe_ffn" : "ffn").value_or(0) / formats_.block);
        if (spec_.experts_per_token > spec_.experts)
            throw ParseError(file_ + ": " + std::to_string(spec_.experts_per_token) + " of " +
                             std::to_string(spec_.experts) + " experts for a token");
        sums_.other += double(spec_.hidden_size);  // the last norm
        if (const auto* vision = entry_in(table_.blocks, "vision"))
            for (const auto& [name, row] : vision->other) vision_ += names_.number(row).value_or(0);
    }

    [[nodiscard]] double embedding() const { return double(spec_.vocabulary * spec_.hidden_size); }
    [[nodiscard]] double chosen_share() const {
        return spec_.experts > 0 ? double(spec_.experts_per_token) / double(spec_.experts) : 0;
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
    const double guessing = names_.number("mtp_layers").value_or(0) *
                            (mtp_.bytes + 4 * double(spec_.hidden_size * spec_.hidden_size));
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
        return contains(name, part);
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
    index.read(start.data(), std::streamsize(start.size()));
    if (const auto at = start.find(key); at != npos)
        return std::strtod(start.c_str() + at + key.size(), nullptr);
    double result = 0;
    std::error_code unknown;
    for (fs::directory_iterator at(folder, unknown), end; !unknown && at != end;
         at.increment(unknown)) {
        std::error_code unreadable;
        const std::string name = at->path().filename().string();
        if (!name.ends_with(".safetensors") || name.starts_with("consolidated")) continue;
        const auto size = fs::file_size(at->path(), unreadable);
        if (!unreadable) result += double(size);
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
        if (name.ends_with(".gguf") && name.find("mmproj") == npos &&
            (!part_of_model(at->path().stem().string()) || name.find("-00001-of-") != npos))
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
        beside.replace(end, npos, "hf_quant_config.json");
        if (quantization == nullptr && text_exists(file.parent_path() / beside, snapshot_))
            quantization = &(modelopt = json_of(file.parent_path() / beside));
        spec = ModelOfFiles(table, path, whole, quantization)
                   .finished(named ? 0 : weight_bytes_in(file.parent_path()));
        spec.name = fs::absolute(file).parent_path().string();
        if (named) spec.name = beside.substr(0, end - 1);
        if (const auto at = spec.name.find("--"); named && at != npos)
            spec.name.replace(at, 2, "/");
    }
    std::error_code unknown;
    if (!fs::exists(given, unknown)) spec.name = given.string();
    spec.source = path;
    return spec;
}

}  // namespace servetune
