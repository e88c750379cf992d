// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"
#include "yaml.hpp"

#include <map>
#include <string>

namespace servetune {

struct StudyFile;

/// What a study's file says, `use:` resolved, as `path -> text`: all of it, but for what the
/// definition has otherwise and for what is of no consequence. A key that is added to the format is
/// part of the definition by itself.
std::map<std::string, std::string> written_settings(const Yaml& root, const StudyFile& study);

/// A fingerprint of each variable, under `path` and its name.
void add_environment(const std::string& path, const std::map<std::string, std::string>& environment,
                     const Redactor& secrets, std::map<std::string, std::string>& definition);

}  // namespace servetune
