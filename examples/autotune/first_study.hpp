// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/catalogue.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace autotune {

/// Eight machines of eight: the largest layout that is looked at.
inline constexpr std::size_t most_devices = 64;

/// The answers that make a study: `init` writes it, `suggest` asks the cost model of it.
struct FirstStudy {
    std::filesystem::path file = "study.yaml";  ///< where it is going to stand
    std::string model, engine, hardware{};      ///< `hardware`: empty where it is not known
    std::string traffic = "chat";               ///< a workload's name or file, or `512x128`
    std::string goal = "throughput";            ///< `latency`, or a limit
    std::string budget = "30 trials";
    std::string preset{};  ///< empty: there is none for the engine
    std::string attach{};  ///< URL of a server whose load is tuned
    std::string as{};      ///< where it is measured: `kubernetes`, `ray`, `simulate`; empty: here
    std::size_t gpus = 0, concurrency = 64;
    bool as_recorded = false;  ///< the traffic has its own times
    /// The parameter that spreads the model over several devices, and over how many it has to be
    /// spread; 1: it fits one, or nobody knows.
    std::string spread_by{};
    std::size_t layout = 1;
    bool all_said = false;  ///< one device and its layout too

    /// Throws UsageError for a goal that is none.
    [[nodiscard]] std::string text() const;
    /// Its name, which is also the name of its folder.
    [[nodiscard]] std::string name() const;
};

/// `512x128`: tokens in and out.
std::optional<std::pair<std::int64_t, std::int64_t>> lengths_in(const std::string& text);

/// The engine's parameter of a concept, such as `tensor_parallel_size`; empty: it has none.
std::string parameter_of(const servetune::Engine& engine, std::string_view called);

/// A message about one file as one about another.
std::string with_path(std::string message, const std::filesystem::path& from,
                      const std::filesystem::path& to);

}  // namespace autotune
