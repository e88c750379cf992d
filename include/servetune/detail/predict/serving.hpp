// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/detail/perf/start_failure.hpp"
#include "servetune/search_space.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

class CommandReader;

/// What a command means to the cost model.
struct Serving {
    std::string model;  ///< as the command names it
    ServingTarget target{};
    ServingSettings settings{};
    /// the engine's own, those at their defaults included where a default is known
    Assignment parameters{};
    /// flags, or values of flags, that the engine's file does not know: what they do is not known
    std::vector<std::string> unknown{};
    /// where the engine would refuse: flags that exclude each other, a type this checkpoint is not
    /// in
    StartResult refused{};
};

/// The cost model's view of one engine: its parameters by their concepts, its defaults by hardware
/// and model.
class ServingReader {
public:
    /// `version`: of the engine; empty: the newest that its file covers. `commands`: reads what
    /// people wrote; null: one that knows the spellings of the engine file only.
    ServingReader(Engine engine, EngineTraits traits, std::vector<ModelSpec> models,
                  HardwareSpec hardware, const std::string& version = "",
                  std::shared_ptr<const CommandReader> commands = nullptr);

    /// Reads a command for this engine, rendered by us or written by a person. Flags that the
    /// engine's file lists under `not_about_speed` are passed over. Throws UsageError for a model
    /// whose figures are not known (nearest names).
    [[nodiscard]] Serving read(const Command& command) const;

    [[nodiscard]] const Engine& engine() const { return engine_; }
    [[nodiscard]] const HardwareSpec& hardware() const { return hardware_; }

private:
    Engine engine_;
    EngineTraits traits_;
    std::vector<ModelSpec> models_;
    HardwareSpec hardware_;
    std::shared_ptr<const CommandReader> commands_;
    Composition composition_;
    SearchSpace space_;  ///< all of the engine's own parameters, with its rules

    void check_rules(Serving& serving) const;
};

}  // namespace servetune
