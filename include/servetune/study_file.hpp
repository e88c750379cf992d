// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/bayesian.hpp"
#include "servetune/budget.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/decision.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/detail/study_file/measuring.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/objective.hpp"
#include "servetune/replay.hpp"
#include "servetune/simulate_evaluator.hpp"
#include "servetune/staged.hpp"
#include "servetune/workload.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

/// How a study searches.
struct StrategyChoice {
    std::string name = "bayesian";
    Staged::Options staged{};
};

/// `knowledge:`, one source: what is known before anything is measured.
struct KnowledgeChoice {
    enum class Kind { cost_model, recipes, study, table };
    Kind kind = Kind::cost_model;
    std::filesystem::path path{};  ///< of a study its folder or its journal, of a table its file
    /// nobody asked for it: where it knows nothing, or cannot be read, nothing is said of it
    bool by_default = false;
};

/// The processes that a study's trials start.
struct TrialProcesses {
    std::string mark{};              ///< finds what a killed tuner has left of them (`leftovers`)
    double stop_within_seconds = 0;  ///< how long they get to end by themselves once they were told
    std::shared_ptr<const Launcher>
        launcher{};  ///< what knows of containers that it has left; none: there are processes only
};

class StudySnapshot;

/// The text of a study: a YAML file and those that it names, on the disk or in its journal.
struct StudyText {
    std::filesystem::path file;       ///< on the disk, now or when the journal was written
    std::filesystem::path journal{};  ///< that keeps them; empty: they are on the disk
    std::map<std::string, std::string> kept{};  ///< by it: absolute path -> text
    bool shows_unset_variables = false;  ///< `${NAME}` without a value stays: it is only read

    template <class Path>
    requires(std::is_convertible_v<Path, std::filesystem::path>)
        StudyText(const Path& path)  // NOLINT(google-explicit-constructor): a file is one
        : file(path) {}
    /// Of SqliteJournal::texts_of. Throws IoError where the study itself is not among them.
    static StudyText kept_by(const std::filesystem::path& journal,
                             std::map<std::string, std::string> texts);
};
/// What stands among the texts of a journal for the path of the study itself.
inline const std::string study_of_texts = "study";

/// What a study was read from. Reading it starts no process.
struct StudySource {
    std::filesystem::path file;
    std::filesystem::path search_spaces;  ///< the catalogue's folder, with the facts for the audit
    bool of_journal = false;              ///< its journal keeps it
    std::shared_ptr<StudySnapshot> snapshot{};  ///< the files that were read
    /// path -> value of what else decides what is asked or measured (definition())
    std::map<std::string, std::string> settings{};
    /// `file:line:column` of what the file says of a parameter, and of a flag under `arguments`
    std::map<std::string, std::string> places{};

    /// `file:line:column: ` of one of these, else `file: `, for a message.
    [[nodiscard]] std::string at(const std::string& what = "") const {
        const auto known = places.find(what);
        return (known == places.end() ? file.string() : known->second) + ": ";
    }
};

/// The machine of a study: as its file says, as it was found, or as the study's journal has it.
struct StudyMachine {
    std::string hardware{};  ///< the accelerator, as the file names it; empty: it names none
    std::filesystem::path
        hardware_file{};  ///< the facts of the user's own accelerator, where the file names one
    std::optional<std::int64_t>
        devices{};  ///< most that a trial may take: as the file says, else as nvidia-smi finds
    std::optional<double> usd_per_device_hour{};  ///< the machine's price / its devices
    std::optional<FoundDevices>
        found{};  ///< where engines start; nothing: they start elsewhere, or none does
    /// the accelerator by its name here, where the file names none; empty: unknown
    std::string hardware_found{};

    /// The accelerator of the cost model and the audit. The space depends on `hardware` only.
    [[nodiscard]] const std::string& chip() const {
        return hardware.empty() ? hardware_found : hardware;
    }
    /// What nvidia-smi found, in words; empty: nothing, or engines do not start here.
    [[nodiscard]] std::string gpus() const { return found ? found->text() : ""; }
};

/// A study as a user wrote it: one YAML file, with the engine and workload files that it names.
struct StudyFile {
    StudySource source;
    StudyMachine machine;
    std::string name;
    std::string model;
    /// of a model whose facts do not ship, the file that has them: as the study names it, or the
    /// config.json or GGUF file of `model` on this machine
    std::filesystem::path model_file{};
    std::vector<Workload> workloads;
    std::vector<Workload> report_workloads;
    Objective objective;
    Decision decision;
    std::optional<QualityOptions> quality{};
    std::optional<std::size_t> default_again;  ///< as the file says it; see `default_again_every`
    std::string audit = "enforce";
    bool stress = true;  ///< as the file says it; see `is_stressed`
    StrategyChoice strategy;
    std::vector<KnowledgeChoice>
        knowledge;  ///< of `bayesian`; the cost model unless the file says otherwise
    std::vector<std::filesystem::path> suggestions{};  ///< files of `--suggest`
    EvaluatorConfig measuring;                         ///< what measures
    Budget budget;
    /// minutes after midnight, local time: whoever runs the study knows which day
    std::optional<int> budget_until;
    std::uint64_t seed = 0;
    std::vector<std::string> notes;
    std::string
        preset_by_default;  ///< what is searched where the file does not say it; empty: it does
    std::vector<std::string> warnings;           ///< what a person should know before trial 0
    std::map<std::string, std::string> printed;  ///< published: stage -> gain as printed
    Redactor secrets;  ///< what `${NAME}` gave, keys, passwords: in no journal, report or log
    /// What its journal was written under (StudySetup::definition), where the study is only read.
    /// What was found then counts, and this machine is not asked. Empty: it is to measure.
    std::map<std::string, std::string> kept{};
    std::unique_ptr<Composition>
        composition;  ///< the engines, and the way from configurations to commands

    /// What ships, and the files of the study's own hardware and model.
    [[nodiscard]] Catalogue catalogue() const;
    /// Whether whoever asks and tells measures: the file names no evaluator.
    [[nodiscard]] bool is_external() const {
        return std::holds_alternative<MeasuredOutside>(measuring);
    }
    /// Whether numbers come from something that runs, not from a table or a model.
    [[nodiscard]] bool measures() const;
    /// After how many trials of others the default is measured again (`Study::Options`); 0: never.
    /// A tenth of a budget where something runs that may drift, unless the file says otherwise;
    /// published studies did not do it.
    [[nodiscard]] std::size_t default_again_every() const;
    /// Whether what is recommended has to survive a stress first: of engines that the study starts.
    [[nodiscard]] bool is_stressed() const {
        return stress && std::holds_alternative<DeployChoice>(measuring);
    }
    /// Whether its trials start processes here.
    [[nodiscard]] bool starts_processes() const;
    /// Those processes, with their mark once the study is set up; an empty mark and 0 seconds where
    /// it starts none.
    [[nodiscard]] TrialProcesses processes() const;
    /// One sentence on what measured, for the report; empty: nothing to say.
    [[nodiscard]] std::string measured_by() const;
    /// Whether its configurations are commands of an engine; a study that somebody else measures
    /// may have a space of its own.
    [[nodiscard]] bool has_commands() const {
        return !composition->engines().front().launch.empty();
    }
    /// `combined` metrics need names: those of the search workloads with their weights.
    [[nodiscard]] std::vector<std::pair<std::string, double>> weighted_workloads() const;
    /// One of the search's or the report's, by its name or by what documents call it (printed_as);
    /// null: none.
    [[nodiscard]] const Workload* workload_called(std::string_view wanted) const;
};

/// Who measures. Where it is done outside (`autotune ask-tell`), a file needs neither evaluator nor
/// study name, model, workloads or engine.
enum class MeasuredBy {
    evaluator,  ///< that of the file, which must have one
    outside,    ///< whoever asks; an evaluator that the file has is not looked at
    either,     ///< as the file has it: outside when it names no evaluator
};

/// The strategies that a study file can name, in the order in which they are shown.
[[nodiscard]] std::vector<std::string> strategy_names();

/// Where the machine comes from that a study is for.
struct MachineSource {
    /// Asked at most once, and only where the study starts engines on this machine.
    std::function<FoundDevices()> find = [] { return find_devices(); };
    /// Of a study that is only read: what its journal was written under, by its name. The machine
    /// is the one that is kept there; `find` is asked where the journal is of a version that kept
    /// none. Null: the study is to measure.
    std::function<std::map<std::string, std::string>(const StudyFile&)> kept{};
    /// Of a study with a journal: whether it was written with the model's figures, which may have
    /// been fetched since. Null: there is none.
    std::function<bool(const StudyFile&)> knew_facts{};
};

/// Throws IoError and ParseError (`file:line:column: ...`). `strategy` replaces the file's, as
/// `--strategy` does.
StudyFile load_study(const StudyText& text, const Catalogue& catalogue,
                     const std::string& strategy = "", MeasuredBy by = MeasuredBy::evaluator,
                     const MachineSource& machine = {});

/// A study file made ready to run: its table read, its space counted.
struct StudySetup {
    StudyFile file;
    std::unique_ptr<Problem> problem;
    std::unique_ptr<Strategy> strategy;
    std::unique_ptr<Evaluator> evaluator;  ///< null: somebody else measures
    /// What measures beside it, each on its own part of the machine; empty: one trial at a time.
    /// `WorkersRun` uses all.
    std::vector<std::unique_ptr<Evaluator>> neighbours{};
    /// What of a trial's surroundings can change its speed, now, without the
    /// study's secrets; empty: it measures nothing here.
    [[nodiscard]] std::map<std::string, std::string> environment() const;
    Beliefs beliefs{};  ///< what `knowledge` came to, also the strategy's
    /// The strategy holds them too: what is added here, its next ask sees.
    std::shared_ptr<std::vector<Configuration>> suggestions =
        std::make_shared<std::vector<Configuration>>();
    /// each source in words, with what it holds as a fingerprint; also those that know nothing here
    std::vector<std::string> knowledge{};

    /// Everything that decides what the study does, as `path -> text`: what the file's keys come to
    /// (parameters, flags, constraints, objective, strategy, knowledge, workloads), fingerprints of
    /// what stands in tables and data sets, and whatever else the file says, as it is written. Not
    /// the budget: a longer run of the same study is the same study. Secrets are told apart by four
    /// digits of a fingerprint.
    [[nodiscard]] std::map<std::string, std::string> definition() const;
    /// The files of the study without its secrets, for its journal: `${NAME}` stands for a secret,
    /// `${HIDDEN_SECRET}` for one without a name. Files over 1 MiB are left out.
    [[nodiscard]] std::map<std::string, std::string> texts() const;
    [[nodiscard]] Command command(const Configuration& configuration) const {
        return file.composition->render(configuration,
                                        {file.model.empty() ? "MODEL" : file.model, {}, 0});
    }
    /// The same for a person to read: of roles apart, each with its servers, and the router's.
    [[nodiscard]] std::string command_text(const Configuration& configuration) const {
        return file.composition->shown(configuration,
                                       {file.model.empty() ? "MODEL" : file.model, {}, 0});
    }
    /// The same as a person starts it: of a study whose engines run in containers, the container's
    /// command. `target`: where it listens.
    [[nodiscard]] Command launched(const Configuration& configuration,
                                   const LaunchTarget& target) const;
    [[nodiscard]] Command launched(const Configuration& configuration) const {
        return launched(configuration, {file.model.empty() ? "MODEL" : file.model, {}, 0});
    }
    /// Of the Bayesian strategy of this study, with its budget and what is known; whatever strategy
    /// it uses.
    [[nodiscard]] BayesianOptions bayesian_options() const;
    /// What a person is told to do: the command and the load to send it, as lines of a shell. Of a
    /// server that somebody else runs: its address. Without the secrets: `${NAME}` stands where its
    /// value was.
    [[nodiscard]] std::string advice(const Configuration& configuration) const;
};

/// What the program that runs the trials lends to what measures them.
struct RunHooks {
    std::function<void(const std::string&)>
        say{};  ///< lines for a person while a trial runs; empty: silent
    /// What a trial does at this moment (MeasureOptions::phase).
    std::function<void(std::uint64_t trial, const std::string& what)> phase{};
    /// Each load test with its requests (MeasureOptions::keep).
    std::function<void(const MeasuredLoad&)> keep{};
    /// ends a trial's processes where this program dies first; none: only their leader is told
    std::shared_ptr<Watchdog> watchdog{};
};

/// Throws as load_study, and SpaceError when the space is empty or does not fit the table, or when
/// no configuration would start (with the memory plan of the nearest). `folder`: the study's, where
/// trials that start processes leave their logs; made when it is needed.
StudySetup set_up(StudyFile file, const std::filesystem::path& folder = {},
                  const RunHooks& hooks = {});

/// The files of what is known of an engine of this study, as text: the traits that it names, else
/// those that ship and the kernels beside them. Throws IoError.
std::string traits_text(const StudyFile& file, const std::string& engine);
/// What is known of an engine of this study: the file that it names under `traits`, else the one
/// that ships.
EngineTraits traits_of(const StudyFile& file, const Catalogue& catalogue,
                       const std::string& engine);

/// The evaluator of a study that is simulated, whatever the file says measures it; `hardware`: in
/// place of the file's. Throws IoError for unknown hardware or an engine without traits, UsageError
/// for a workload whose requests cannot be planned.
std::unique_ptr<SimulateEvaluator> simulated(const StudyFile& file,
                                             const std::string& hardware = "");

/// Seconds that a trial is expected to take by the cost model, start to stop: of a study that
/// starts engines or loads a server. Nothing: the engine would not start on paper, or nobody loads
/// a server. Throws Error where the chip or the model is not known (`simulated`).
[[nodiscard]] std::optional<double> expected_trial_seconds(const StudySetup& setup,
                                                           const Configuration& configuration);

}  // namespace servetune
