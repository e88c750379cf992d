// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/environment.hpp"
#include "servetune/detail/deploy/measure_options.hpp"
#include "servetune/study_file.hpp"
#include "study_file/key_reader.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace servetune {

class Yaml;

/// What is there when a trial begins, and so what a study may search.
enum class ServedBy {
    a_new_start,       ///< a server of the trial's own configuration, real or on paper
    an_earlier_start,  ///< it was measured already, whatever machine and version that was
    a_running_server,  ///< a server that keeps its flags
};

/// A row of the table of kinds: all that is particular to one kind of measuring. Each `file` holds
/// the kind's own alternative of `MeasuringChoice`.
struct MeasuringKind {
    std::string_view name;  ///< its key under `evaluator`, and what a journal calls it
    bool measures = false;  ///< numbers come from something that runs, not from a table or a model
    bool runs_engine = false;  ///< it starts the engine, so the engine's models must be there
    ServedBy served_by = ServedBy::a_new_start;

    /// What stands under its key. Throws ParseError. Null: no key, as the file names no evaluator.
    MeasuringChoice (*read)(const Yaml& node) = nullptr;
    /// Makes `problem` and, unless somebody else measures, `evaluator`. Throws as set_up. What it
    /// finds out (folder, key) it keeps in `file`.
    void (*build)(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder,
                  const RunHooks& hooks) = nullptr;
    /// Adds to StudySetup::definition what its keys that are `resolved` come to.
    void (*define)(const StudySetup& setup,
                   std::map<std::string, std::string>& definition) = nullptr;
    /// A sentence for the report's notes; empty: nothing to say.
    std::string (*note)(const StudyFile& file) = nullptr;

    // What only some kinds have; null: not this one.
    /// Why this study cannot be measured so, whatever its space is; empty: it can.
    std::string (*why_not)(const StudyFile& file) = nullptr;
    /// The processes that its trials start.
    TrialProcesses (*processes)(const StudyFile& file) = nullptr;
    /// How many devices it lets the engine see; nothing: all.
    std::optional<std::int64_t> (*visible_devices)(const StudyFile& file) = nullptr;
    /// Whose environment can change the speed of its trials; null: it measures nothing here.
    EnvironmentOptions (*environment)(const StudyFile& file) = nullptr;
    /// Whose results they are, for the study's profile (study_profile.hpp): devices, or the server.
    std::string (*machine)(const StudyFile& file) = nullptr;
    /// Which version of an engine runs, as far as it is found; empty: nothing tells. `definition`:
    /// the study's, with what `define` adds.
    std::string (*version)(const StudyFile& file, const Engine& engine,
                           const std::map<std::string, std::string>& definition) = nullptr;
    /// What a person is told in place of a command to start.
    std::string (*server_text)(const StudyFile& file) = nullptr;
};

extern const MeasuringKind outside_kind;
extern const MeasuringKind replay_kind;
extern const MeasuringKind simulate_kind;
extern const MeasuringKind attach_kind;
extern const MeasuringKind deploy_kind;
extern const MeasuringKind command_kind;

/// The table: one row for each alternative of `MeasuringChoice`, in its order.
inline constexpr std::array<const MeasuringKind*, std::variant_size_v<MeasuringChoice>>
    measuring_kinds{
        &outside_kind, &replay_kind, &simulate_kind, &attach_kind, &deploy_kind, &command_kind,
    };

/// The row of what measures this study.
const MeasuringKind& kind_of(const StudyFile& file);

/// `evaluator: deploy` as `evaluator: {deploy: {}}`; any other node as it is. Throws ParseError for
/// a word that is no evaluator, or one that needs options.
Yaml spelled_out_evaluator(const Yaml& node);

/// Reads `evaluator`, which has one kind; an empty one where somebody else measures. Throws
/// ParseError.
MeasuringChoice read_measuring(const Yaml& evaluator, bool outside);

/// The driver of the machine's accelerators, as it was found with them; and the beginnings of the
/// engines' variables.
EnvironmentOptions environment_of_machine(const StudyFile& file);

/// The space of a study with its objective and decision, without more constraints than the study's
/// own.
std::unique_ptr<Problem> problem_of(const StudyFile& file);
/// The same with these constraints. An error names the study's file.
std::unique_ptr<Problem> problem_of(const StudyFile& file, std::vector<Constraint> constraints);

/// The key in the variable that `api_key_env` names; empty where it names none. Throws UsageError
/// where the variable is not set.
std::string key_from(const std::string& name, const StudyFile& file);
/// What the audit's physics need: models and hardware.
void add_facts(const StudyFile& file, MeasureOptions& options);
/// Throws ParseError for goals and limits that our own load test, real or simulated, does not
/// measure; a workload's own figure is `name@workload`. `objective`: where they stand in the file;
/// null: not known.
void check_objective_of_load_test(const StudyFile& file, const Yaml* objective = nullptr);

}  // namespace servetune
