// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"
#include "base/variable_name.hpp"
#include "base/waiting.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <sched.h>
#include <map>
#include <optional>
#include <vector>

namespace servetune {

/// Both ends of a pipe; no child inherits them. Throws IoError if the system gives none.
struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0)
            throw IoError("cannot make a pipe: " + std::generic_category().message(errno));
        out = Descriptor(ends[0]);
        in = Descriptor(ends[1]);
    }
    Descriptor out{}, in{};
};

inline void check_cores(OptionCheck& check, const std::vector<int>& cores) {
    for (const int core : cores)
        check.that(core >= 0 && core < CPU_SETSIZE, "cores",
                   "numbers in [0, " + std::to_string(CPU_SETSIZE - 1) + "]", std::to_string(core));
}

/// An environment cannot hold such names and values: they would be cut, or be another variable.
inline void check_environment(OptionCheck& check,
                              const std::map<std::string, std::string>& environment) {
    for (const auto& [name, value] : environment)
        check.that(is_variable_name(name) && !contains(value, '\0'), "environment",
                   "names of letters, digits and _, no digit first, and text without NUL",
                   "'" + name + "'");
}

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

/// A child in a process group of its own. It is not waited for until this object ends or `reap` is
/// called: so long its id, and so the group's, is nobody else's. Any thread may ask.
class ChildGroup {
public:
    /// Starts it with both of its outputs into `output`, or the standard one into `answer` where
    /// that is a descriptor; returns once it runs. Throws IoError where it cannot.
    ChildGroup(const ChildProgram& program, int output, int answer = -1);
    ~ChildGroup();  ///< KILL for the group
    ChildGroup(const ChildGroup&) = delete;
    ChildGroup& operator=(const ChildGroup&) = delete;

    [[nodiscard]] int id() const { return id_; }
    [[nodiscard]] bool ended() const { return exit_code().has_value(); }
    [[nodiscard]] std::optional<int> exit_code()
        const;  ///< of the leader, once it has ended; 128 + signal
    /// Waits until the leader has ended; false when it has not in that time.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;
    void signal(int number) const;  ///< to the group, unless the leader is reaped
    void reap();                    ///< nothing where the leader has not ended

private:
    int id_ = -1;
    Descriptor
        handle_{};  ///< readable once the leader has ended; none where the kernel is older than 5.3
    mutable std::mutex mutex_{};
    std::optional<int> reaped_{};
};

}  // namespace servetune
