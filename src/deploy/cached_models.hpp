// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// A model whose files are on this machine, whole.
struct CachedModel {
    std::string
        name;  ///< as an engine takes it: a name of the hub, or the path of a file or folder
    std::string where;  ///< for a person: `the hub's cache`
    std::string
        ending{};  ///< of a model that is one file, `.gguf`, whatever its name ends with; empty: a folder
};

/// Bounds of a search in caches that may be large, damaged or far away.
struct CacheSearch {
    std::size_t entries = 4000;           ///< of folders that are looked at, in all caches together
    std::chrono::milliseconds time{400};  ///< after that, what was found counts
};

/// The models that `files` name (patterns as `Engine::model_files`, relative ones in the current
/// folder), and those in the caches of huggingface_hub, ModelScope and Ollama; in each the newest
/// first. A link that leads out of its folder is not followed, and what cannot be read is passed
/// over. Nothing throws.
std::vector<CachedModel> cached_models(const std::vector<std::string>& files,
                                       CacheSearch bounds = {});

}  // namespace servetune
