// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <map>
#include <optional>
#include <string>

namespace servetune {

class Yaml;

/// `deploy: {kubernetes: ...}`; nothing where it is not there. `deploy`: the mapping around it,
/// whose other keys must suit. Throws ParseError.
[[nodiscard]] std::optional<KubernetesOptions> read_kubernetes(const Yaml& deploy);

/// Adds the template to a study's definition: its content, not its name.
void define_kubernetes(const KubernetesOptions& options, const Redactor& secrets,
                       std::map<std::string, std::string>& definition);

/// How the trials ran, for the report's notes.
[[nodiscard]] std::string note_of_kubernetes(const KubernetesOptions& options);

}  // namespace servetune
