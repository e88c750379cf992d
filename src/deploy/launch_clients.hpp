// SPDX-License-Identifier: Apache-2.0
#pragma once

// What launchers share whose engines are started by the client of something else: containers, jobs,
// another machine.

#include "host/run_command.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

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

/// What was launched elsewhere and could not be removed then: it is tried again before the next
/// launch, so that an engine never meets the one before it. Any thread.
class NotRemoved {
public:
    void add(const std::string& name);
    /// `remove` says why one would not go; empty: it is gone. Throws IoError for the first that
    /// does not.
    void try_again(const std::function<std::string(const std::string& name)>& remove);

private:
    std::mutex mutex_{};
    std::set<std::string> names_{};
};

/// Runs `words`, whose first is a program in PATH, for a minute at most. Throws IoError with
/// `purpose` where there is no such program: `there is no program 'srun' in $PATH to start jobs
/// with`.
RanCommand ask_client(std::vector<std::string> words, const std::string& purpose);

/// The program whose hidden command `launch-client` stands for what runs elsewhere: this very one
/// where its file is called `autotune`, else the one in PATH. Throws IoError where there is none.
std::string launch_client_program();

/// What a client says last, without what only tells of its settings.
std::string complaint_in(const RanCommand& command);

}  // namespace servetune
