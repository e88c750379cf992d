// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/catalogue.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <map>
#include <string_view>

namespace servetune {

/// A published deployment: what somebody serves a model with. Read from
/// search_spaces/recipes/ENGINE.yaml.
struct Recipe {
    std::vector<std::string> models;   ///< that it was published for, without a quantization
    std::vector<std::string> alike{};  ///< of the same family and size class
    std::string quantization{};        ///< of the checkpoint; empty: that of the models' own
    std::string checkpoint{};  ///< that its source served, where that is not one of `models`
    std::vector<std::string> hardware{};  ///< names of chips
    std::string goal{};                   ///< throughput or latency; empty: its source does not say
    Command command{};             ///< flags without launcher and model, environment, options file
    std::string since{}, until{};  ///< versions of the engine; empty: no bound
    std::string measured{};        ///< the gain that the source measured; empty: none
    std::string source{}, licence{};
};

/// Those that ship for an engine, in the order of the file; empty: there is no file. Throws
/// ParseError.
[[nodiscard]] std::vector<Recipe> recipes_of(const Catalogue& catalogue, const std::string& engine);

/// What a recipe is wanted for.
struct RecipeWish {
    std::string model;  ///< as it is served: a name or a path
    HardwareSpec chip{};
    std::string version{};  ///< of the engine; empty: the newest
};

/// A recipe that may serve a model on a chip.
struct RecipeMatch {
    Recipe recipe;
    std::string model{};             ///< of its models the one that is meant
    std::string chip{};              ///< of its chips
    bool same_model = false;         ///< false: a model of the same family and size class
    bool same_quantization = false;  ///< of the checkpoint
    bool same_chip = false;          ///< false: a chip of the same architecture
    bool has_room = false;  ///< the same checkpoint was served on a chip with no more memory

    /// How it differs from what was wanted: `published for Qwen/Qwen3-8B on h200-sxm`; empty: in
    /// nothing.
    [[nodiscard]] std::string difference() const;
};

/// Those that cover the version, the nearest first: by model (the same with the same quantization,
/// the same, an alike one), then by chip (the same, one of the same architecture), then as in the
/// file.
[[nodiscard]] std::vector<RecipeMatch> matching(const std::vector<Recipe>& recipes,
                                                const RecipeWish& wish,
                                                const std::vector<HardwareSpec>& known);

/// A recipe as one version of its engine takes it on a chip.
struct AppliedRecipe {
    Assignment values{};                   ///< by the engine file's names of parameters
    std::vector<std::string> arguments{};  ///< flags without a part in speed that the version has
    std::map<std::string, std::string>
        environment{};                   ///< variables that no file here knows: kept as published
    std::vector<std::string> dropped{};  ///< what it lacks of the recipe, each with the reason
};

/// Reads a recipe's flags in every spelling that any version has. `version`: of the engine; empty:
/// the newest. Throws IoError and ParseError.
[[nodiscard]] AppliedRecipe applied(const Recipe& recipe, const Engine& engine,
                                    const std::string& version, const HardwareSpec& chip,
                                    const std::filesystem::path& root);

/// The engine with these values fixed and all others at their defaults: its one configuration is
/// the recipe. Throws SpaceError where the engine's rules forbid it.
[[nodiscard]] Composition composed(const AppliedRecipe& recipe, const Engine& engine,
                                   const std::string& version, const HardwareSpec& chip);

}  // namespace servetune
