// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study.hpp"
#include "servetune/study_file.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace autotune {

/// One line of JSON on standard output, whole or not at all: somebody reads while it is written.
/// Without secrets.
void put_event(nlohmann::ordered_json event);

/// `run --json-lines`: a JSON object in a line of standard output for everything that happens, for
/// programs that watch a run (docs/reference/json-output.md).
class EventLines : public servetune::Observer {
public:
    explicit EventLines(const servetune::StudySetup& setup) : setup_(setup) {}

    void resumed(std::span<const servetune::Trial> history) override;
    void started(const servetune::Trial& trial) override;
    void told(const servetune::Trial& trial, std::span<const servetune::Trial> history) override;
    /// What a trial does now: once for each phase, counts within it are left out. Any thread may
    /// tell.
    void phase(std::uint64_t trial, const std::string& what);
    /// A line for people.
    void said(const std::string& line);
    /// The last line: why it ended, and the report as `report --json` has it.
    void ended(std::string_view reason, const std::string& report);

private:
    const servetune::StudySetup& setup_;
    std::mutex mutex_{};
    std::map<std::uint64_t, std::string> phases_{};  ///< of the trials that run
};

}  // namespace autotune
