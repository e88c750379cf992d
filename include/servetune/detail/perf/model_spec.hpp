// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One checkpoint of a model: what it weighs.
struct ModelWeights {
    double bytes = 0;  ///< all of it
    /// bytes that one decoded token of one stream reads: active linear layers, norms, router,
    /// output head
    double per_token = 0;
    /// number type of its matrix products: weight-only quantizations compute in bf16
    std::string computes_in{};
    /// the same of routed experts; empty: as the rest
    std::string experts_compute_in{};
    bool computed = false;  ///< from the model's shape: no such checkpoint was seen
};

/// A model's shape and weights: what bounds its speed. Read from search_spaces/models/*.yaml, or
/// from the model's own files.
struct ModelSpec {
    std::string name;                 ///< `Qwen/Qwen3-8B`
    std::vector<std::string> also{};  ///< stems of names of checkpoints with this shape: `Qwen3-8B`
    double parameters_active = 0;     ///< per token, both embeddings included
    double parameters_embedding = 0;  ///< input embedding and output head; tied: counted once
    bool tied_embeddings = false;
    std::int64_t layers = 0;
    std::int64_t attention_layers = 0;  ///< those whose cache grows with the context
    std::int64_t hidden_size = 0;
    std::int64_t attention_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t vocabulary = 0;
    std::int64_t context_tokens = 0;     ///< the longest it was made for, prompt and answer
    std::int64_t experts = 0;            ///< 0: dense
    std::int64_t experts_per_token = 0;  ///< 0: dense
    double expert_parameters = 0;        ///< of the routed experts of all layers; 0: not known
    std::int64_t dense_layers = 0;       ///< of a model with experts, the layers without
    /// cache of one token in all layers, at 16 bits; of it that of the sliding layers (0: their
    /// share by number), and what keeps its bytes whatever the cache's type (an indexer's keys)
    double kv_bytes_per_token_16bit = 0;
    double sliding_kv_bytes_per_token_16bit = 0;
    double fixed_bytes_per_token = 0;
    std::int64_t latent_width = 0;  ///< of one layer's compressed keys and values (MLA); 0: none
    double state_bytes_per_sequence = 0;  ///< of linear and Mamba layers, in all of them
    std::int64_t sliding_window = 0;      ///< tokens; 0: none
    std::int64_t sliding_layers = 0;  ///< of the attention layers, those that stop growing there
    /// Blocks of scales along the width of an MLP or of an expert, which ranks have to divide, of a
    /// checkpoint with one scale a block; 0: it has none
    std::int64_t weight_blocks = 0;
    std::string native_type{};  ///< key in `weights` of the checkpoint as published: bf16, fp8
    std::map<std::string, ModelWeights, std::less<>> weights{};
    std::string source{};
    std::vector<std::string> notes{};  ///< what was not certain in its files, for people
};

/// What rules of engines may ask of a model, by its name there (`model.attention_heads`).
[[nodiscard]] std::map<std::string, std::int64_t> facts_of(const ModelSpec& model);

/// A model and which of its quantizations is served. `quantization` need not be among the model's
/// weights: then its bytes are not known.
struct ServedModel {
    ModelSpec model;
    std::string quantization{};
};

/// The model that a served name or path means: `/models/Qwen/Qwen3-8B-FP8` is Qwen3-8B in fp8. The
/// last part of the path must be a known stem, alone or followed only by words of versions
/// (Instruct, 2507) and of quantizations; so a distillation, a fine-tune or another size is
/// nothing, never a guess.
std::optional<ServedModel> served_model(std::string_view served_name,
                                        const std::vector<ModelSpec>& known);

/// What a name was taken for, in a sentence for people: `org/Qwen3-8B-AWQ is Qwen/Qwen3-8B in awq,
/// by its name`, and whether its bytes are known. Empty where it is the model's own name.
[[nodiscard]] std::string note_of(const ServedModel& served, std::string_view served_name);

}  // namespace servetune
