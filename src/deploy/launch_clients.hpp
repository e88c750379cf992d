// SPDX-License-Identifier: Apache-2.0
#pragma once

// What launchers share whose engines are started by the client of something else: containers, jobs,
// another machine.

#include "host/run_command.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Adds the tokens of the hub that models are fetched from, where this process has them and
/// `environment` does not: the only secrets that an engine gets unless its study names them, as it
/// cannot fetch a gated model without. Source: huggingface_hub's reference, "Environment
/// variables", HF_TOKEN and its earlier name.
void hand_on_hub_tokens(std::map<std::string, std::string>& environment);

/// A study's mark as a label: a path may have characters that a filter would read.
std::string label_of(const std::string& mark);
/// The same of this machine: what runs elsewhere may be of another machine's study in a folder of
/// the same name.
std::string label_here_of(const std::string& mark);
/// `servetune-LABEL-RANDOM-N`: nobody else has it.
std::string new_launch_name(const std::string& label);

/// Where a trial's files are for an engine in a container.
inline constexpr std::string_view files_folder = "/run/servetune";
/// A word of the command that names one of its files (`FILE`, `--flag=FILE`), with the file's place
/// in `folder`.
std::string with_place(std::string word, const std::map<std::string, std::string>& files,
                       std::string_view folder);

/// Runs `words`, whose first is a program in PATH, for a minute at most. Throws IoError with
/// `purpose` where there is no such program: `there is no program 'srun' in $PATH to start jobs
/// with`.
RanCommand ask_client(std::vector<std::string> words, const std::string& purpose);

/// What a client says last, without what only tells of its settings.
std::string complaint_in(const RanCommand& command);

}  // namespace servetune
