// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deployment_model.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A line of comment in any of the formats: nothing in it ends it, and it does not go on in the
/// next one.
std::string comment_line(std::string_view text);

/// The title, and what a person may have to change.
std::string head_lines(const DeploymentModel& deployment);

/// "# N replicas, ports ..."; nothing for one.
std::string ports_line(const DeploymentModel& deployment);

/// Throws UsageError for a zero byte or one of `refused`; `format` is for its message.
void refuse_bytes(const Word& word, std::string_view refused, std::string_view format);

/// For a POSIX shell; variables are its own.
std::string shell_word(const Word& word);

/// For a unit of systemd. `dollars`: `$` is doubled, as a command line wants it and Environment=
/// does not.
std::string unit_word(const Word& word, bool dollars = true);

/// compose.yaml: `${NAME}` is taken from the caller's environment or from `.env`.
std::string compose_word(const Word& word);

/// A container of Kubernetes: `$(NAME)` is a variable of the container. The same without quotes.
std::string kubernetes_word(const Word& word);
std::string kubernetes_text(const Word& word);

/// A double-quoted scalar of YAML. Throws UsageError for text that is not UTF-8.
std::string yaml_scalar(const std::string& text);

std::string joined(const std::vector<Word>& words, const std::string& between,
                   const std::function<std::string(const Word&)>& text);

/// Each line with so many blanks before it; empty lines stay empty.
std::string indented(std::string_view lines, int blanks);

/// The lines as an item of a list of YAML: `- ` before the first, two blanks before the others.
std::string list_item(std::string_view lines);

}  // namespace servetune
