// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/catalogue.hpp"

#include <cmath>
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
    std::string budget{};                       ///< empty: 30 trials
    std::string preset{};                       ///< empty: there is none for the engine
    std::string known{};   ///< in its place: keys of YAML with the space and the strategy
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

/// The weights that a name speaks of: `Qwen3-235B-A22B-FP8` has 235e9 parameters of one byte.
struct NamedWeights {
    double parameters = 0, bytes_each = 2;
    bool says_type = false;

    [[nodiscard]] std::string text() const;
    /// Sizes in names are rounded (gpt-oss-120b has 116.8e9).
    [[nodiscard]] std::size_t least_devices(const servetune::HardwareSpec& chip) const {
        constexpr double rounded = 0.95;
        return std::size_t(std::ceil(rounded * parameters * bytes_each / chip.memory_bytes));
    }
};

/// Nothing: it says no size, or a type of no certain width (GGUF).
std::optional<NamedWeights> weights_named(const std::string& model);

/// What there is to say of a model whose figures are not known: the nearest names, and what its own
/// says that it takes.
std::string unknown_text(const std::string& model, const servetune::HardwareSpec& chip,
                         const servetune::Catalogue& catalogue);
/// The devices to take for it, a power of two; 1: its name says no size.
std::size_t devices_by_name(const std::string& model, const servetune::HardwareSpec& chip);

/// The engine's parameter of a concept, such as `tensor_parallel_size`; empty: it has none.
std::string parameter_of(const servetune::Engine& engine, std::string_view called);

/// A message about one file as one about another.
std::string with_path(std::string message, const std::filesystem::path& from,
                      const std::filesystem::path& to);

}  // namespace autotune
