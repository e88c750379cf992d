// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace servetune {

/// The file that a shell would run for `name`: `name` itself if it has a '/', else the first on
/// `path` (empty: $PATH). Empty if there is none.
std::filesystem::path find_program(const std::string& name, const std::string& path = "");

/// This process's own variables, NAME=value, without those whose names say that they hold a secret
/// (`names_secret`).
std::vector<std::string> inherited_environment();
/// Those that it leaves out, for a child that is ourselves or the user's own client.
std::map<std::string, std::string> secret_variables();

/// What a child becomes.
struct ChildProgram {
    std::filesystem::path file{};     ///< an executable, not looked for
    std::vector<std::string> argv{};  ///< its words, its own name first
    std::vector<std::string>
        environment{};               ///< all of it, NAME=value; empty: `inherited_environment`
    std::filesystem::path folder{};  ///< its working directory; empty: this process's own
    std::filesystem::path input{};   ///< a file that is its standard input; empty: nothing comes
    int input_descriptor =
        -1;          ///< an open one that is its standard input in place of `input`; -1: none
    int facts = -1;  ///< an open one that becomes its descriptor 3; -1: none
    std::vector<int> cores{};               ///< it runs on these only; empty: any
    int signal_when_parent_ends = SIGKILL;  ///< to it alone, when the thread that made it ends
};

/// Whether a program may be started here on this core alone.
bool may_start_on(int core);

/// Starts `program` as the leader of a process group of its own, and returns its id (also the
/// group's) once it runs. Both of its outputs go into the descriptor `output`, or the standard one
/// into `answer` if that is a descriptor. The program has the usual signal dispositions, an empty
/// signal mask and no other descriptor of this process. The caller waits for it. Throws IoError if
/// it cannot start, and leaves no child then.
int start_program(const ChildProgram& program, int output, int answer = -1);

}  // namespace servetune
