// SPDX-License-Identifier: Apache-2.0
#pragma once

// Readers of the parts of a study. All throw ParseError.

#include "servetune/study_file.hpp"
#include "yaml.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace servetune {

/// The trials of a budget that says a time and no trials: more than any time is enough for.
constexpr std::size_t trials_of_a_time = 1'000'000;

/// Short forms spelled out: `hardware: h100-sxm` as `hardware: {device: h100-sxm}`.
Yaml spelled_out(const KeyType& type, const Yaml& node);

/// A mapping, or what a person says for short: `30 trials`, `45min` or `60 trials, 8h`.
void read_budget(const Yaml& budget, StudyFile& study);

/// A folder of files that come with the program: the one in $VARIABLE, else `share/servetune/NAME`
/// or NAME beside or above the program; empty: it is not here. `holds`: what is surely in it.
std::filesystem::path shipped_folder(const std::string& name, const char* holds,
                                     const char* variable);
/// `model`: a name, or a file with the facts of the user's own, whose name is served.
void read_model_name(const Yaml& node, const Catalogue& catalogue, StudyFile& study);
/// `hardware` and what the evaluator lets the engine see, into a study whose evaluator is read:
/// which chip, and how many of them.
void read_machine(const Yaml& root, const Catalogue& catalogue, const MachineSource& source,
                  StudyFile& study);
/// The space of a study whose machine is read.
std::unique_ptr<Composition> read_space(const Yaml& root, const Catalogue& catalogue,
                                        StudyFile& study);

/// Reads `objective`, whose workloads are read: goals, limits, and how workloads count together.
/// `words`: of a load test, whose metrics we name; other evaluators have names of their own. Throws
/// ParseError.
void read_objective(const Yaml& node, bool words, StudyFile& study);

/// Of a load test, what a goal such as `request_rate` asks of the workloads' arrivals, and what a
/// search for the largest load needs. Throws ParseError.
void look_for_load(const Yaml& root, StudyFile& study);

/// Where layouts of several sizes compete by a figure that grows with the devices, the largest wins
/// for no merit: what to say of that, or nothing.
std::string larger_looks_better(const StudyFile& study);

/// `strategy`: a name, or a mapping of one name to its options. `node` may be nullptr: the default.
/// `replaced`: the name that counts in place of the file's, or nothing. Throws UsageError where
/// `replaced` is no strategy.
StrategyChoice read_strategy(const Yaml* node, const Composition& composition,
                             const std::string& replaced);
/// The name alone, of a study whose space could not be read.
void check_strategy(const Yaml& node);

/// What the study says outside of `space` of something that its commands set themselves: under
/// `arguments`, in the evaluator's `environment` and in the options of its containers. The engine
/// would take one of the two, in every trial the same. A message for each, with its place.
std::vector<std::string> conflicting_settings(const Yaml& root, const StudyFile& study);

/// What a study's file says, `use:` resolved, as `path -> text`: all of it, but for what the
/// definition has otherwise (`resolved`) and what is `ignored`. A key that is added to the format
/// is part of the definition by itself.
std::map<std::string, std::string> written_settings(const Yaml& root, const StudyFile& study);
/// A fingerprint of each variable, under `path` and its name.
void add_environment(const std::string& path, const std::map<std::string, std::string>& environment,
                     const Redactor& secrets, std::map<std::string, std::string>& definition);

}  // namespace servetune
