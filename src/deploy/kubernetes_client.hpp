// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stand_in.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What the process that stands for a trial is told, as one line of JSON on its standard input.
struct KubernetesTask {
    std::vector<std::string> kubectl{};  ///< words before a command
    nlohmann::json job{};                ///< the manifest
    std::string container{};             ///< the engine's
    int forwarded_port =
        0;  ///< of the pod, brought to the same port of this machine's loopback; 0: none
    double silent_within_seconds =
        30;  ///< without a byte on standard input for so long, nobody waits for the trial
    /// Where the API server answers nothing for so long, the trial is given up.
    double unanswered_within_seconds = std::chrono::duration<double>(cluster_patience).count();

    [[nodiscard]] std::string text() const;                             ///< one line
    [[nodiscard]] static KubernetesTask from(const std::string& line);  ///< throws ParseError
    [[nodiscard]] std::string name() const {
        return job.at("metadata").at("name").get<std::string>();
    }
    /// One, or one of each node that the engine is spread over.
    [[nodiscard]] std::size_t pods() const {
        return job.at("spec").at("completions").get<std::size_t>();
    }
    /// For the engine to end by itself.
    [[nodiscard]] double grace_seconds() const;
};

/// The process that stands for a trial (`autotune launch-client kubernetes`): makes the Job, prints
/// the engine's log to standard output, each line once, and returns the engine's exit code. On
/// TERM, INT or HUP, at the end of its standard input, and where that is silent for too long, it
/// deletes the Job, whose engine gets TERM, and prints the last words. An API server that does not
/// answer for too long ends it. One thread.
///
/// Of an engine over several nodes it tells the pods the first one's address once all run, prints
/// the first one's log, and where another pod ends it prints its last lines and ends the trial.
[[nodiscard]] int kubernetes_client();

}  // namespace servetune
