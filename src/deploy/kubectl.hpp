// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/child_group.hpp"
#include "host/pipe.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Whether this program runs in a pod of a cluster.
[[nodiscard]] bool is_in_pod();

/// What kubectl refused or could not do. `temporary`: asked again, it may be otherwise; it was, for
/// the whole patience.
class KubectlError : public IoError {
public:
    KubectlError(const std::string& what, bool is_temporary)
        : IoError(what), temporary(is_temporary) {}
    bool temporary;
};

/// Whether what kubectl complains of may be otherwise in a moment: everything but what the API
/// server or kubectl itself says of our words. An API server that was just started says `Forbidden`
/// and `the server could not find the requested resource` for a while.
[[nodiscard]] bool is_temporary_complaint(const std::string& complaint);

/// kubectl in the user's place: logins, proxies and contexts are those of the user, whose variables
/// it gets, also those with secrets (a login may be by them).
class Kubectl {
public:
    static constexpr std::chrono::milliseconds usual_patience{60'000};

    /// `program`: kubectl and its options; empty: `kubectl`. Throws nothing.
    Kubectl(std::vector<std::string> program, const std::string& context,
            const std::string& name_space);

    /// All words before those of a command; the first is not looked for yet.
    [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

    /// What a command prints to standard output. `input`: its standard input. What is temporary is
    /// asked again until `patience` is over. `give_up`: asked between; true ends it. Throws
    /// KubectlError with kubectl's last words, IoError where there is no such program.
    [[nodiscard]] std::string ask(const std::vector<std::string>& command,
                                  const std::string& input = "",
                                  std::chrono::milliseconds patience = usual_patience,
                                  const std::function<bool()>& give_up = {}) const;
    /// The same of a command with `--output=json`; null where it prints nothing.
    [[nodiscard]] nlohmann::json json(const std::vector<std::string>& command,
                                      std::chrono::milliseconds patience = usual_patience) const;
    /// One call of ask, `within` at most; no request timeout where `waits`.
    struct Answer {
        int exit_code = 0;
        std::string output{}, complaint{};
    };
    [[nodiscard]] Answer once(const std::vector<std::string>& command, const std::string& input,
                              std::chrono::milliseconds within,
                              const std::function<bool()>& give_up = {}) const;

private:
    std::vector<std::string> words_;
};

/// A kubectl that runs on, such as `get --watch`. Nothing of it outlives the thread that made it.
class RunningKubectl {
public:
    /// Throws IoError where it cannot be started.
    RunningKubectl(const Kubectl& kubectl, const std::vector<std::string>& command,
                   const std::string& input = "");

    /// To be polled for input; -1: that end is closed.
    [[nodiscard]] int output() const { return open_ ? output_.out.id() : -1; }
    [[nodiscard]] int errors() const { return errors_open_ ? errors_.out.id() : -1; }
    /// What has come to standard output since it was asked last; reads standard error too.
    [[nodiscard]] std::string read();
    /// It has ended, and all that it printed was read.
    [[nodiscard]] bool over() const { return !open_ && child_.ended(); }
    [[nodiscard]] int exit_code() const { return child_.exit_code().value_or(0); }
    /// Its last line on standard error that is no warning; `exit code N` where there is none.
    [[nodiscard]] std::string complaint() const;
    [[nodiscard]] bool complains_of(std::string_view words) const {
        return said_.find(words) != std::string::npos;
    }
    void kill() const { child_.signal(SIGKILL); }

private:
    Pipe output_{}, errors_{};
    bool open_ = true, errors_open_ = true;
    std::string said_{};  ///< the end of standard error
    ChildGroup child_;
};

}  // namespace servetune
