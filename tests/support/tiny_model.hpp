// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/rng.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace servetune::test {

/// A model small enough to be made on the spot, with random weights: its answers mean nothing,
/// serving them is real. Llama's architecture, 32 bit floats, one token per byte (GPT-2's way of
/// writing bytes), output tied to the embedding.
struct TinyModel {
    std::uint32_t embedding = 128;
    std::uint32_t layers = 2;
    std::uint32_t heads = 2;  ///< of 64 values: quantized caches come in blocks of 32
    std::uint32_t kv_heads = 1;
    std::uint32_t feed_forward = 256;
    std::uint32_t context_tokens = 4096;
    std::uint64_t seed = 1;

    /// The bytes of a GGUF file, version 3 (github.com/ggml-org/ggml, docs/gguf.md): header,
    /// metadata, tensor infos, tensors. The same wherever it is made. 1.4 MB as it stands.
    [[nodiscard]] std::string gguf() const;
};

/// Writes what GGUF is made of.
class GgufWriter {
public:
    void integer(const std::string& key, std::uint32_t value) {
        add(key, 4), number(metadata_, value);
    }
    void real(const std::string& key, float value) { add(key, 6), number(metadata_, value); }
    void text(const std::string& key, const std::string& value) {
        add(key, 8), text_in(metadata_, value);
    }
    void texts(const std::string& key, const std::vector<std::string>& values) {
        add_list(key, 8, values.size());
        for (const std::string& value : values) text_in(metadata_, value);
    }
    void integers(const std::string& key, const std::vector<std::int32_t>& values) {
        add_list(key, 5, values.size());
        for (const std::int32_t value : values) number(metadata_, value);
    }
    /// Sizes begin with the one whose neighbours lie side by side in memory.
    void tensor(const std::string& name, const std::vector<std::uint64_t>& sizes,
                const std::vector<float>& values) {
        ++tensors_;
        text_in(infos_, name);
        number(infos_, static_cast<std::uint32_t>(sizes.size()));
        for (const std::uint64_t size : sizes) number(infos_, size);
        number(infos_, std::uint32_t{0});  // 32 bit floats
        number(infos_, std::uint64_t(data_.size()));
        for (const float value : values) number(data_, value);
        pad(data_);
    }
    [[nodiscard]] std::string file() const {
        std::string result = "GGUF";
        number(result, std::uint32_t{3});
        number(result, tensors_);
        number(result, keys_);
        result += metadata_ + infos_;
        pad(result);
        return result + data_;
    }

private:
    template <class Number>
    static void number(std::string& into, Number value) {
        static_assert(std::endian::native == std::endian::little, "GGUF is little endian");
        char bytes[sizeof value];
        std::memcpy(bytes, &value, sizeof value);
        into.append(bytes, sizeof value);
    }
    static void text_in(std::string& into, const std::string& value) {
        number(into, std::uint64_t(value.size()));
        into += value;
    }
    static void pad(std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32); }
    void add(const std::string& key, std::uint32_t type) {
        ++keys_;
        text_in(metadata_, key);
        number(metadata_, type);
    }
    void add_list(const std::string& key, std::uint32_t type, std::size_t count) {
        add(key, 9);
        number(metadata_, type);
        number(metadata_, std::uint64_t(count));
    }

    std::uint64_t tensors_ = 0;
    std::uint64_t keys_ = 0;
    std::string metadata_;
    std::string infos_;
    std::string data_;
};

/// The 256 bytes as GPT-2 writes them: printable ones as themselves, the others as the characters
/// from U+0100 on; in UTF-8.
inline std::vector<std::string> byte_tokens() {
    std::vector<std::string> result;
    std::uint32_t next = 256;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        const std::uint32_t code = printable ? byte : next++;
        if (code < 128) result.emplace_back(1, static_cast<char>(code));
        else
            result.push_back({static_cast<char>(0xC0U | (code >> 6U)),
                              static_cast<char>(0x80U | (code & 0x3FU))});
    }
    return result;
}

inline std::string TinyModel::gguf() const {
    std::vector<std::string> tokens = byte_tokens();
    std::vector<std::int32_t> types(tokens.size(), 1);            // normal
    tokens.insert(tokens.end(), {tokens[' '] + "t", "<|end|>"});  // a merge is wanted, and an end
    types.insert(types.end(), {1, 3});                            // control
    const auto end = static_cast<std::uint32_t>(tokens.size() - 1);

    GgufWriter writer;
    writer.text("general.architecture", "llama");
    writer.text("general.name", "tiny");
    writer.integer("llama.context_length", context_tokens);
    writer.integer("llama.embedding_length", embedding);
    writer.integer("llama.block_count", layers);
    writer.integer("llama.feed_forward_length", feed_forward);
    writer.integer("llama.attention.head_count", heads);
    writer.integer("llama.attention.head_count_kv", kv_heads);
    writer.integer("llama.rope.dimension_count", embedding / heads);
    writer.real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    writer.integer("llama.vocab_size", end + 1);
    writer.text("tokenizer.ggml.model", "gpt2");
    writer.text("tokenizer.ggml.pre", "gpt-2");
    writer.texts("tokenizer.ggml.tokens", tokens);
    writer.integers("tokenizer.ggml.token_type", types);
    writer.texts("tokenizer.ggml.merges", {tokens[' '] + " t"});
    writer.integer("tokenizer.ggml.bos_token_id", end);
    writer.integer("tokenizer.ggml.eos_token_id", end);
    writer.text("tokenizer.chat_template",
                "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}");

    Rng rng(seed);
    const auto weights = [&](const std::string& name, std::uint64_t from, std::uint64_t to) {
        // Uniform with variance 1 / from: what goes through keeps its size.
        const double width = 2 * std::sqrt(3.0 / double(from));
        std::vector<float> values(from * to);
        for (float& value : values) value = static_cast<float>((rng.uniform() - 0.5) * width);
        writer.tensor(name + ".weight", {from, to}, values);
    };
    const auto norm = [&](const std::string& name) {
        writer.tensor(name + ".weight", {embedding}, std::vector<float>(embedding, 1.0F));
    };
    const std::uint64_t kv = std::uint64_t{embedding} / heads * kv_heads;
    weights("token_embd", embedding, end + 1);
    for (std::uint32_t i = 0; i < layers; ++i) {
        const std::string block = "blk." + std::to_string(i) + ".";
        norm(block + "attn_norm");
        weights(block + "attn_q", embedding, embedding);
        weights(block + "attn_k", embedding, kv);
        weights(block + "attn_v", embedding, kv);
        weights(block + "attn_output", embedding, embedding);
        norm(block + "ffn_norm");
        weights(block + "ffn_gate", embedding, feed_forward);
        weights(block + "ffn_up", embedding, feed_forward);
        weights(block + "ffn_down", feed_forward, embedding);
    }
    norm("output_norm");
    return writer.file();
}

}  // namespace servetune::test
