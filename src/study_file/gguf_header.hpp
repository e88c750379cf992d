// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// A tensor of a GGUF file.
struct GgufTensor {
    std::string name;
    double values = 1, bytes = 0;
    bool matrix = false;
};

/// The header of a GGUF file (ggml's docs/gguf.md): its keys as a config.json would have them,
/// without the architecture before them; a list of texts, and one longer than a model has layers,
/// is its length.
struct GgufHeader {
    nlohmann::json config = nlohmann::json::object();
    std::vector<GgufTensor> tensors{};
};

/// In bounded memory. Throws ParseError with the byte, IoError.
[[nodiscard]] GgufHeader read_gguf_header(const std::filesystem::path& file);

}  // namespace servetune
