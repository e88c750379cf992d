// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/process.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace autotune {

/// A command of this program that runs for an agent, in a process of its own. It does not outlive
/// this object. Any thread.
class Job {
public:
    /// `words`: after `autotune`. Throws IoError where it cannot be started.
    Job(std::string id, std::string tool, std::filesystem::path subject,
        std::vector<std::string> words, const std::filesystem::path& folder);

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const std::string& tool() const { return tool_; }
    [[nodiscard]] const std::filesystem::path& subject() const {
        return subject_;
    }                                      ///< the study's folder; empty: none
    [[nodiscard]] double seconds() const;  ///< from its start to its end
    [[nodiscard]] std::chrono::system_clock::time_point began_at() const { return began_at_; }
    [[nodiscard]] bool running() const { return process_.running(); }
    /// Whether it has ended, after so long at most.
    bool wait(std::chrono::milliseconds time) const { return process_.wait(time); }
    [[nodiscard]] int exit_code() const { return process_.exit_code().value_or(-1); }
    /// What it printed: standard output; once it has ended all of it, up to a few MiB.
    [[nodiscard]] std::string answer();
    /// The last lines of standard error.
    [[nodiscard]] std::vector<std::string> said() const;
    /// TERM, as a person's Ctrl-C: a run ends its engine and keeps what was told. KILL after two
    /// minutes.
    void stop();
    /// The same, without waiting for it.
    void cancel();
    [[nodiscard]] bool cancelled() const { return cancelled_; }

private:
    const std::string id_, tool_;
    const std::filesystem::path subject_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    const std::chrono::system_clock::time_point began_at_ = std::chrono::system_clock::now();
    std::mutex ending_{};
    servetune::Process process_;
    mutable std::atomic<double> seconds_ = -1;  ///< once it was seen to have ended
    std::atomic<bool> cancelled_ = false;
    std::jthread canceller_{};
};

/// All of them. Those that have ended are kept for a while, so that an agent can ask for their
/// answer later.
class Jobs {
public:
    explicit Jobs(std::filesystem::path folder) : folder_(std::move(folder)) {}
    /// Ends all that run, at the same time.
    ~Jobs();
    Jobs(const Jobs&) = delete;
    Jobs& operator=(const Jobs&) = delete;

    /// Throws UsageError where as many run as may, IoError.
    std::shared_ptr<Job> start(const std::string& tool, const std::filesystem::path& subject,
                               std::vector<std::string> words);
    [[nodiscard]] std::shared_ptr<Job> find(const std::string& id) const;
    /// The newest of this tool for a study's folder.
    [[nodiscard]] std::shared_ptr<Job> of(const std::string& tool,
                                          const std::filesystem::path& subject) const;

    static constexpr std::size_t most_running = 8;  ///< an agent that starts more has lost count
    static constexpr std::size_t most_kept = 20;    ///< of at most 8 MiB of output each

private:
    const std::filesystem::path folder_;
    mutable std::mutex mutex_{};
    std::map<std::size_t, std::shared_ptr<Job>> all_{};
    std::size_t made_ = 0;
};

}  // namespace autotune
