// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "yaml.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

namespace servetune {

/// A file that a study names: beside the file it stands in, `~` expanded.
std::filesystem::path path_of(const Yaml& node);
/// `model`: a name, or a file with the facts of the user's own, whose name is served.
void read_model_name(const Yaml& node, const Catalogue& catalogue, StudyFile& study);
/// `hardware`, `machine` and what the evaluator lets the engine see, into a study whose evaluator
/// is read: which chip, and how many of them.
void read_machine(const Yaml& root, const Catalogue& catalogue, const MachineSource& source,
                  StudyFile& study);
/// The space of a study whose machine is read. Throws ParseError.
std::unique_ptr<Composition> read_space(const Yaml& root, const Catalogue& catalogue,
                                        StudyFile& study);

}  // namespace servetune
