// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// A model whose files are on this machine, whole.
struct CachedModel {
    std::string
        name;  ///< as an engine takes it: a name of the hub, or the path of a file or folder
    std::string where;  ///< for a person: `the hub's cache`
    std::string
        ending{};  ///< of a model that is one file, `.gguf`, whatever its name; empty: a folder
};

/// Bounds of a search in caches that may be large, damaged or far away.
struct CacheSearch {
    std::size_t entries = 4000;           ///< of folders that are looked at, in all caches together
    std::chrono::milliseconds time{400};  ///< after that, what was found counts
};

/// The models that `files` name (patterns as `Engine::model_files`, relative ones in the current
/// folder), and those in the cache of huggingface_hub; in each the newest first. A link that leads
/// out of its folder is not followed, and what cannot be read is passed over. Nothing throws.
std::vector<CachedModel> cached_models(const std::vector<std::string>& files,
                                       CacheSearch bounds = {});

/// The folder with the files of a hub's model; empty: it is not in the cache.
std::filesystem::path hub_snapshot(const std::string& model);
/// Of `model-00001-of-00004` how many there are to be, and the name without its number.
std::optional<std::pair<std::string, std::size_t>> part_of_model(const std::string& stem);

/// Where huggingface_hub keeps its files, and the models among them (its reference, "Environment
/// variables"). `environment` goes before this process's own.
std::filesystem::path hub_home_folder(const std::map<std::string, std::string>& environment = {});
std::filesystem::path hub_cache_folder(const std::map<std::string, std::string>& environment = {});

/// Which files a model is at this moment: a fingerprint of their names, sizes, inodes and times of
/// change, links followed. It is another one once any of them was written, replaced, added or
/// removed; no byte of the weights is read. `model`: an absolute path of a file or folder, or a
/// name of Hugging Face's hub, whose files lie where its variables say or in
/// ~/.cache/huggingface/hub; `environment` goes before this process's own. Nothing: there are no
/// such files here.
std::optional<Fingerprint> checkpoint_files(const std::string& model,
                                            const std::map<std::string, std::string>& environment);

}  // namespace servetune
