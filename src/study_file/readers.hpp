// SPDX-License-Identifier: Apache-2.0
#pragma once

// Readers of the files that users write, and what they share. All throw ParseError.

#include "servetune/detail/host/devices.hpp"
#include "servetune/error.hpp"
#include "servetune/search_space.hpp"
#include "servetune/study_file.hpp"
#include "yaml.hpp"

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
void read_model_name(const Yaml& node, const Catalogue& catalogue, const MachineSource& machine,
                     StudyFile& study);
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

/// Where layouts of several sizes compete by a figure that grows with the devices, the largest wins
/// for no merit: what to say of that, or nothing.
std::string larger_looks_better(const StudyFile& study);

/// Of a load test, what a goal such as `request_rate` asks of the workloads' arrivals, and what a
/// search for the largest load needs. Throws ParseError.
void look_for_load(const Yaml& root, StudyFile& study);

/// `strategy`: a name, or a mapping of one name to its options. `node` may be nullptr: the default.
/// `replaced`: the name that counts in place of the file's, or nothing. Throws UsageError where
/// `replaced` is no strategy.
StrategyChoice read_strategy(const Yaml* node, const Composition& composition,
                             const std::string& replaced);
/// The name alone, of a study whose space could not be read.
void check_strategy(const Yaml& node);

/// Throws for what the study says outside of `space` of something that its commands set themselves:
/// under `arguments` and in the evaluator's `environment`. The engine would take one of the two, in
/// every trial the same.
void check_conflicting_settings(const Yaml& root, const StudyFile& study);
/// Why speculation that is searched is measured on words that tell nothing of it; empty: it is not.
std::string guesses_on_random_words(const StudyFile& study);

/// What a study's file says, `use:` resolved, as `path -> text`: all of it, but for what the
/// definition has otherwise (`resolved`) and what is `ignored`. A key that is added to the format
/// is part of the definition by itself.
std::map<std::string, std::string> written_settings(const Yaml& root, const StudyFile& study);
/// A fingerprint of each variable, under `path` and its name.
void add_environment(const std::string& path, const std::map<std::string, std::string>& environment,
                     const Redactor& secrets, std::map<std::string, std::string>& definition);

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

/// What the engine itself calls a parameter that may have the engine's name before it.
std::string local_name(const std::string& name, const Engine& engine);

/// Whether an entry under `space` is the engine's parameter: it has its name or its concept, the
/// engine's name before it or not.
bool speaks_of(const std::string& name, const Engine& engine, const Parameter& parameter);

/// Throws ParseError for each key of an entry under `space` that changes nothing there: how a
/// parameter is passed, when it is active and which versions have it stands in the engine's file.
void check_keys_of_entry(const std::string& name, const Yaml& node,
                         const std::vector<Engine>& engines);

/// What a condition (`when`) wants of a parameter of the first of the engines that has it, in its
/// type. Throws ParseError where none has it, or where it does not have the value.
std::vector<Value> condition_values(const std::string& parent, const Yaml& node,
                                    const std::vector<const Engine*>& engines);
/// The same of all parameters of an engine.
void settle_conditions(Engine& engine, const Yaml& parameters);

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
Engine engine_named(const Catalogue& catalogue, const Yaml& named);
/// A name, or a mapping (with `use:`, on top of another).
Workload workload_in(const Catalogue& catalogue, const Yaml& described);
/// A workload as a mapping with all its keys, `use:` and names resolved.
Yaml resolved_workload(const Catalogue& catalogue, const Yaml& described);

/// Whether a strategy takes several goals. `strategy`: one of keys::strategies.
[[nodiscard]] bool takes_several_goals(std::string_view strategy);
[[nodiscard]] std::unique_ptr<Strategy> make_strategy(const StudySetup& setup);

/// Configurations that a person or a program suggests: a YAML (or JSON) list of mappings, parameter
/// -> value. What a mapping leaves out has its default. Throws IoError, and ParseError
/// (`file:line:column: ...`) for a parameter that is not known or has no effect there, a value
/// outside its domain and a constraint that is broken.
std::vector<Configuration> read_suggestions(const std::filesystem::path& file,
                                            const Composition& composition,
                                            const SearchSpace& space);

/// Throws UsageError for a strategy that takes no suggestions.
void check_takes_suggestions(const std::string& strategy);

/// Which of the known chips the devices of a machine are.
struct FoundHardware {
    std::string name{};  ///< HardwareSpec::name; empty: none of them, or no device was found
    /// for a person, with the nearest names; empty: recognised, or no device was found
    std::string why_not{};
};

/// The chip that all visible devices are, by the names of search_spaces/hardware (what nvidia-smi
/// and rocm-smi print is among them). A device with another amount of memory (more than 15 % apart)
/// is another chip: a part of one, or a card that its name does not tell apart.
[[nodiscard]] FoundHardware hardware_of(const FoundDevices& found,
                                        const std::vector<HardwareSpec>& known);

/// Why a chip that a study names is not known, with the nearest names; empty: it is known.
[[nodiscard]] std::string why_unknown(const std::string& name,
                                      const std::vector<HardwareSpec>& known);

/// What `ask` throws of a file, with the place of what the study says under a key: `'model'`.
template <class Ask>
auto placed(const StudySource& source, const std::string& key, const Ask& ask) {
    try {
        return ask();
    } catch (const IoError& error) {
        throw ParseError(source.at(key) + key + ": " + error.what());
    }
}

/// What the facts of a study rest on: the text of their file, of weights the size.
[[nodiscard]] std::string text_of_facts(const std::filesystem::path& file,
                                        const StudySource& source);

/// Chip and model that a study names, or the chip in its place, have to be known to simulate it.
/// Throws ParseError with the place, IoError.
void check_simulated_names(const StudyFile& study, const std::string& hardware = "");

/// What a name was taken for, where another chip may be meant by it too (`H100`: the SXM one);
/// empty: it names one.
[[nodiscard]] std::string why_ambiguous(const std::string& name, const HardwareSpec& chip,
                                        const std::vector<HardwareSpec>& known);

/// That a study names another chip than this machine has, and what follows; empty: it does not, or
/// one of both is not known, or its engines start elsewhere.
[[nodiscard]] std::string why_other_chip(const StudyFile& study);

}  // namespace servetune
