// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace autotune {

/// What a run of a study is going to be, as far as it can be told before.
struct Plan {
    double configurations = 0;
    std::size_t trials = 0;         ///< of the search that are left to do
    bool at_most = true;            ///< false: about so many
    std::size_t to_confirm = 0;     ///< of a whole budget, at most
    bool by_time = false;           ///< only the clock bounds them
    bool reaches_all = true;        ///< false: `exhaustive` does not get to each configuration
    std::size_t done = 0;           ///< that the study's folder has already
    std::size_t report_trials = 0;  ///< of the report workloads, beside those
    std::size_t stress_trials = 0;  ///< the same under stress; each lasts about as two
    std::optional<double>
        trial_seconds{};   ///< of one, or its share of several at once; nothing: not known yet
    std::string source{};  ///< what says so
    std::optional<double> at_most_seconds{};  ///< the clock of the budget

    [[nodiscard]] std::optional<double> seconds() const;
    /// `about 10^4 configurations; 30 trials, about 2 h 10 min (by the cost model)`.
    [[nodiscard]] std::string text() const;
    /// The same without the configurations.
    [[nodiscard]] std::string trials_text() const;

private:
    [[nodiscard]] std::string time_needed_text() const;
};

/// Looks at the study's folder where there is one, at the cost model where it knows model and
/// hardware.
Plan plan_of(const StudySetup& setup, const fs::path& folder);

/// What a trial is expected to take as long as none was told, for a budget of time; 0: not known.
double first_trial_seconds(const StudySetup& setup);
/// Seconds since 1970 UTC of the next time that the local clock says so many minutes after
/// midnight.
double next_time_of_day(int minutes);

/// How many trials a search is going to have.
struct TrialsExpected {
    std::size_t trials = 0;
    bool at_most = true;  ///< false: about so many

    /// `at most 30`, `about 10`.
    [[nodiscard]] std::string text() const {
        return (at_most ? "at most " : "about ") + std::to_string(trials);
    }
};
/// Those of its budget, or each configuration once and three rounds of what looks best; nothing
/// where only a time bounds them.
std::optional<TrialsExpected> trials_expected(const StudySetup& setup, const Budget& budget,
                                              std::span<const Trial> history = {});

/// How a study differs from the one that its folder holds, for a person; empty: in nothing, or
/// there is none.
std::string changed_since(const StudySetup& setup, const fs::path& folder);

/// What the cost model says of memory, of a study that starts engines on hardware that it knows:
/// that the default, or nothing, starts, or that the model is not known. Empty: the default starts,
/// or the hardware is not known.
std::string memory_text(const StudySetup& setup);

/// Of what `why_nothing_starts` says the sentence, and the memory plan below it.
std::pair<std::string, std::string> sentence_and_memory(const std::string& why);

/// That the model's context is too short for requests of a workload; empty: it is not, or not
/// known.
std::string context_text(const StudyFile& file);

/// `40 s`, `12 min`, `8 h`.
std::string duration_text(double seconds);

/// `350`, `about 10^4`.
std::string size_text(double configurations);

/// What `run` would miss on this machine, a sentence each: programs that are not on the PATH,
/// servers that do not answer, GPUs that are other ones than the study says.
std::vector<std::string> missing_here(const StudySetup& setup);
/// What keeps a study from being measured here, a sentence each: models, data, devices, cores and
/// meters of power that are not there, variables that its commands set and this program has.
std::vector<std::string> missing_for(const StudyFile& file);

/// Flags and values that the study's engines do not take, each with its place: by the stored facts
/// of their versions, and by the --help of those that are installed here, of which `asked` gets a
/// line each.
std::vector<std::string> flag_problems(const StudySetup& setup, bool ask_installed,
                                       std::vector<std::string>& asked);
/// Throws for all of it.
void refuse(const std::vector<std::string>& problems);
/// The same of flags of engines that are deployed, before the first trial into this folder; --help
/// is asked of what the stored facts refuse.
void refuse_flags(const StudySetup& setup, const fs::path& folder);

/// What a person should know before a run into this folder. `here`: of this machine too.
std::vector<std::string> warnings_of(const StudySetup& setup, const fs::path& folder, bool here);

/// What a person should know of the facts that predictions and the audit rest on, a sentence each:
/// figures of the hardware that nobody saw in a data sheet, and what the model's name was taken
/// for. `hardware`: in place of the study's.
std::vector<std::string> facts_to_know(const StudyFile& file, const std::string& hardware = "");

}  // namespace autotune
