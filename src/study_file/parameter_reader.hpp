// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/catalogue.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/engine.hpp"
#include "yaml.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What stands under bool, int, real or choice; nothing when none of them does. Throws ParseError
/// when two do.
struct ReadDomain {
    Domain domain;
    bool offers_unset = false;
};
/// The models keep a table of the distances between any two values: 32 MB for so many.
inline constexpr std::size_t most_listed_values = 2000;
std::optional<ReadDomain> read_domain(const Yaml& node);
EngineParameter read_parameter(const std::string& name, const Yaml& node);
SpaceEntry read_space_entry(const std::string& name, const Yaml& node);
Constraint read_constraint(const Yaml& node);

/// Whether an entry under `space` is the engine's parameter: it has its name or its concept, the
/// engine's name before it or not.
bool speaks_of(const std::string& name, const Engine& engine, const Parameter& parameter);

/// Throws ParseError for each key of an entry under `space` that changes nothing there: how a
/// parameter is passed, when it is active and which versions have it stands in the engine's file.
void check_keys_of_entry(const std::string& name, const Yaml& node,
                         const std::vector<Engine>& engines);

/// The same of a parameter that no command of an engine passes: a level of load, or one of a study
/// without an engine.
void check_keys_of_unpassed(const Yaml& node);

// Readers of the files that a catalogue finds. All throw ParseError.

Engine read_engine(const Yaml& file);
Workload read_workload(const Yaml& node);
HardwareSpec read_hardware(const Yaml& file);
ModelSpec read_model(const Yaml& file);
/// As the version has them; empty: the newest.
EngineTraits read_traits(const Yaml& file, const std::string& version);

/// The file of a name in a file, beside that file. Throws ParseError with its place.
std::filesystem::path found_by(const Catalogue& catalogue, const std::string& kind,
                               const Yaml& named);
/// A workload as a mapping with all its keys, `use:` and names resolved.
Yaml resolved_workload(const Catalogue& catalogue, const Yaml& described);

}  // namespace servetune
