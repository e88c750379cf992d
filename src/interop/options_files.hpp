// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "serving_command.hpp"

#include <map>
#include <string>
#include <string_view>

namespace servetune {

/// The files that a shell text writes with here-documents (`cat > cfg.yaml <<EOF`), by name.
[[nodiscard]] std::map<std::string, std::string> files_written(std::string_view shell);

/// Puts the settings of a YAML file that a command reads (`--config cfg.yaml`) in its place. Where
/// the file is not among `files`, or says what no flag says (nested keys, lists, false), the
/// command is not recognised, and why.
void take_options_file(ServingCommand& command, const std::map<std::string, std::string>& files);

}  // namespace servetune
