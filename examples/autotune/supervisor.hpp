// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deploy/server_set.hpp"
#include "servetune/configuration.hpp"
#include "servetune/outcome.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace autotune {

/// Keeps an engine serving. One that falls or hangs is started again as RestartPolicy says; when
/// a configuration is given up, or its first start shows that it cannot serve, the next one takes
/// its place; after the last it ends. So it never starts engines for ever.
class Supervisor {
public:
    struct Choice {
        std::string name;  ///< `recommended`, `default`
        servetune::Configuration configuration;
        std::string command{};  ///< for people; of engines of several roles lines
    };
    /// What it needs to know, and whom it tells.
    struct Options {
        std::vector<Choice> choices{};     ///< at least one; the first is served unless it falls
        std::size_t restarts = 4;          ///< RestartPolicy
        double hangs_after_seconds = 180;  ///< without one good answer to a health check
        /// Starts one and waits until it serves or has failed. Throws IoError.
        std::function<std::unique_ptr<servetune::ServerSet>(const servetune::Configuration&,
                                                            const std::stop_token&)>
            start{};
        /// Why the ports are not free; empty: they are.
        std::function<std::string()> port_trouble{};
        /// What happened: a word, a sentence, and more for programs.
        std::function<void(const std::string& event, const std::string& text,
                           nlohmann::ordered_json more)>
            tell{};
        double ports_free_within_seconds = 20;  ///< after an engine's end
    };

    explicit Supervisor(Options options) : o_(std::move(options)) {}

    /// Until `stop`, which ends the engine: true. False: no configuration serves, and the last
    /// message says why. Throws IoError where the very first start finds the machine at fault.
    bool run(const std::stop_token& stop);

private:
    /// How one start and the service behind it ended; no failure: it was to stop.
    struct Life {
        double served_seconds = 0;
        bool served = false;
        std::optional<servetune::Failure> failure{};
    };
    Life live(const Choice& choice, const std::stop_token& stop);
    std::optional<servetune::Failure> watch(servetune::ServerSet& engine,
                                            const std::stop_token& stop);
    void wait_for_ports(const std::stop_token& stop) const;

    Options o_;
    bool started_before_ = false;
    std::string log_trouble_{};  ///< as it was told
};

}  // namespace autotune
