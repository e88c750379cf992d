// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace servetune {

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
