// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "replicas.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// Where an engine listens for its clients. Copies take the ports behind it too, one each.
struct ServedAt {
    std::string host = "127.0.0.1";  ///< the loopback, or 0.0.0.0: every address of this machine
    int port = 8000;
};

/// A configuration that serves clients and no trial, started as its trials were: the same launcher,
/// environment and devices. One thread.
class ServedEngine {
public:
    /// Starts it and waits until it serves; `started().failure` says why it does not. `parts`: as
    /// EngineEvaluator::parts_for. `options`: their folder is where the logs go. The composition
    /// must outlive this. Throws what Replicas throws.
    ServedEngine(const Composition& composition, const std::string& model,
                 const Configuration& configuration, std::vector<ServerPart> parts,
                 const DeployOptions& options, const ServedAt& at, const std::stop_token& stop);

    [[nodiscard]] const DeploymentStart& started() const { return replicas_.started(); }
    /// Where it answers, of each copy.
    [[nodiscard]] std::vector<std::string> addresses() const;
    /// Why it is no more what it was, by its exit or its log; nothing while all is well.
    [[nodiscard]] std::optional<Failure> died() const { return replicas_.died(); }
    /// Asks each copy for its health and its list of models, with at most 5 s for an answer: what
    /// is wrong with the first that does not say it serves; empty: all do.
    [[nodiscard]] std::string why_silent(double answer_within_seconds,
                                         const std::stop_token& stop) const;
    /// Why a log file ends early; empty while all is well.
    [[nodiscard]] std::string log_trouble() const { return replicas_.log_trouble(); }
    Ended stop() { return replicas_.stop(); }

    /// How many ports it takes, from `ServedAt::port` on.
    [[nodiscard]] static std::size_t ports_of(const std::vector<ServerPart>& parts);

private:
    const Engine engine_;  ///< as it is asked for its health
    Replicas replicas_;
};

}  // namespace servetune
