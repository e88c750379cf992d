// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/environment.hpp"
#include "key_reader.hpp"
#include "servetune/detail/deploy/measure_options.hpp"
#include "servetune/study_file.hpp"

namespace servetune {

class Yaml;

/// What is there when a trial begins, and so what a study may search.
enum class ServedBy {
    a_new_start,       ///< a server of the trial's own configuration, real or on paper
    an_earlier_start,  ///< it was measured already, whatever machine and version that was
    a_running_server,  ///< a server that keeps its flags
};

/// All that is particular to one way of measuring: a row of the table of evaluators. Each `file`
/// holds the type's own alternative of `EvaluatorConfig`.
class EvaluatorType {
public:
    struct Traits {
        std::string_view name;  ///< its key under `evaluator`, and what a journal calls it
        bool measures = false;  ///< numbers come from something that runs, not a table or a model
        bool runs_engine = false;  ///< it starts the engine, so the engine's models must be there
        bool starts_processes = false;
        ServedBy served_by = ServedBy::a_new_start;
    };
    const Traits traits;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members)

    explicit EvaluatorType(const Traits& known) : traits(known) {}
    virtual ~EvaluatorType() = default;
    EvaluatorType(const EvaluatorType&) = delete;
    EvaluatorType& operator=(const EvaluatorType&) = delete;

    /// What stands under its key. Throws ParseError.
    [[nodiscard]] virtual EvaluatorConfig read(const Yaml& node) const = 0;
    /// Makes `problem` and, unless somebody else measures, `evaluator`. Throws as set_up. What it
    /// finds out (folder, key) it keeps in `file`.
    virtual void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder,
                       const RunHooks& hooks) const = 0;
    /// Adds to StudySetup::definition what its keys that are `resolved` come to.
    virtual void define(const StudySetup& setup,
                        std::map<std::string, std::string>& definition) const = 0;
    /// A sentence for the report's notes; empty: nothing to say.
    [[nodiscard]] virtual std::string note(const StudyFile& file) const = 0;

    /// Why this study cannot be measured so, whatever its space is; empty: it can.
    [[nodiscard]] virtual std::string why_not(const StudyFile& /*file*/) const { return ""; }
    /// The processes that its trials start.
    [[nodiscard]] virtual TrialProcesses processes(const StudyFile& /*file*/) const { return {}; }
    /// How many devices it lets the engine see; nothing: all.
    [[nodiscard]] virtual std::optional<std::int64_t> visible_devices(
        const StudyFile& /*file*/) const {
        return std::nullopt;
    }
    /// Whose environment can change the speed of its trials; nothing: it measures nothing here.
    [[nodiscard]] virtual std::optional<EnvironmentOptions> environment(
        const StudyFile& /*file*/) const {
        return std::nullopt;
    }
    /// Whose results they are, for the study's profile (knowledge.hpp): devices, or the server;
    /// empty: it has no profile.
    [[nodiscard]] virtual std::string machine(const StudyFile& /*file*/) const { return ""; }
    /// Which version of an engine runs, as far as it is found; empty: nothing tells. `definition`:
    /// the study's, with what `define` adds.
    [[nodiscard]] virtual std::string version(
        const StudyFile& /*file*/, const Engine& /*engine*/,
        const std::map<std::string, std::string>& /*definition*/) const {
        return "";
    }
    /// What a person is told in place of a command to start; empty: the command.
    [[nodiscard]] virtual std::string server_text(const StudyFile& /*file*/) const { return ""; }
};

/// The table: one row for each alternative of `EvaluatorConfig`, in its order.
const std::array<const EvaluatorType*, std::variant_size_v<EvaluatorConfig>>& evaluator_types();
/// Those that have a file of their own.
const EvaluatorType& simulate_type();
const EvaluatorType& deploy_type();

/// The row of what measures this study.
const EvaluatorType& evaluator_of(const StudyFile& file);

/// `evaluator: deploy` as `evaluator: {deploy: {}}`; any other node as it is. Throws ParseError for
/// a word that is no evaluator, or one that needs options.
Yaml spelled_out_evaluator(const Yaml& node);

/// Reads `evaluator`, which has one kind; an empty one where somebody else measures. Throws
/// ParseError.
EvaluatorConfig read_measuring(const Yaml& evaluator, bool outside);

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
/// These, and what the program that runs the trials lends.
void add_hooks_and_facts(const StudyFile& file, const RunHooks& hooks, MeasureOptions& options);
/// Throws ParseError for goals and limits that our own load test, real or simulated, does not
/// measure; a workload's own figure is `name@workload`. `objective`: where they stand in the file.
void check_objective_of_load_test(const StudyFile& file, const Yaml& objective);

}  // namespace servetune
