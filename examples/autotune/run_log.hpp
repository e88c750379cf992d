// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace autotune {

/// What a run does, line by line with times and trials, in `run.log` of the study's folder: for the
/// morning after. 20 MiB at most: of the four files that are kept the oldest goes. Where it cannot
/// be written the run goes on without; said once on standard error. Passes on what it is told.
class RunLog : public servetune::Observer {
public:
    /// `next`: told the same; may be null.
    RunLog(const std::filesystem::path& folder, servetune::Observer* next);
    ~RunLog() override;
    RunLog(const RunLog&) = delete;
    RunLog& operator=(const RunLog&) = delete;

    void say(const std::string& line);
    /// The last line of a run.
    void ends(std::string_view reason, const std::string& message);

    void resumed(std::span<const servetune::Trial> history) override;
    void started(const servetune::Trial& trial) override;
    void told(const servetune::Trial& trial, std::span<const servetune::Trial> history) override;

private:
    std::shared_ptr<spdlog::logger> logger_{};  ///< null: it cannot be written
    servetune::Observer* next_;
};

/// How the last run of a study's folder ended, as the last line of its log says: reason and
/// message. Empty: it says nothing, because a run is under way, was killed, or could not write its
/// log.
std::string last_end(const std::filesystem::path& folder);

}  // namespace autotune
