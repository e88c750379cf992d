// SPDX-License-Identifier: Apache-2.0
// The two that `autotune compare` measures in turns, and what is known of each.
#pragma once

#include "commands.hpp"

#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace autotune {

/// A study, its journal and what measures it.
struct Measured {
    StudyArguments arguments{};
    std::filesystem::path folder{};
    servetune::StudySetup setup{};
    servetune::RunHooks hooks{};
    std::optional<servetune::SqliteJournal> journal{};
    std::unique_ptr<servetune::Study> study{};
    std::size_t first_here = 0;  ///< number of the first trial of this process
    std::string measuring{};     ///< the side that is measured now: both may have a trial 0

    /// `quiet`: no lines while a trial runs. False: the journal cannot be opened; standard error
    /// says why.
    bool open(bool quiet);
};

/// One of the two that are compared.
struct Side {
    const char* name;
    Measured* of;
    servetune::Configuration configuration{};
    /// Metrics that each measurement must have, above 0; the leading goal's first.
    std::vector<std::string> needed{};
    std::vector<const servetune::Measurement*> measured{};  ///< usable, in the order of measuring
    std::vector<double> values{};  ///< the first of `needed` in each of them
    std::size_t failures = 0,
                unreliable = 0;  ///< of this process: what caused earlier ones may be mended
    std::size_t broken = 0;      ///< measurements that break a limit
    std::string why_failed{}, why_unreliable{}, why_broken{};
    std::vector<std::string> log_lines{};  ///< of the failure in `why_failed`
    std::map<std::string, servetune::WorkLengths>
        lengths{};       ///< of the requests behind `values`, by workload
    double seconds = 0;  ///< that all its trials took

    void look();
    /// Empty: it is usable.
    [[nodiscard]] std::string why_unusable(const servetune::Measurement& measurement) const;
    [[nodiscard]] bool mostly_broken() const { return broken > 0 && 2 * broken >= values.size(); }
    /// One measurement more, of a fresh start. False: the user stopped it.
    /// `seed`: of the load, the same for both of a pair.
    bool measure(std::size_t pair, std::uint64_t seed, const std::stop_token& stop);
};

/// How a comparison ended, for a person and for a program.
struct Ending {
    std::string
        word;  ///< a name of `Comparison::verdicts`, or b_fails, a_fails, b_breaks_limit, unreliable
    std::string text;
    ExitCode code = done;
};

/// Why no further pair can be measured; nothing: it can.
std::optional<Ending> ended_early(const Side& a, const Side& b);

/// Where the lengths of both sides' requests differ beyond noise, and the goal depends on them: no
/// figures can be compared. Nothing: they do not.
std::optional<Ending> unequal_work(const Side& a, const Side& b);

/// Throws UsageError unless objective, limits and workloads are the same, by their values: the same
/// data in another file is the same workload.
void check_alike(const servetune::StudySetup& a, const servetune::StudySetup& b);

/// A folder that holds the trials of another comparison would pair old measurements with new ones.
/// Throws UsageError.
void check_folder(const std::filesystem::path& folder, const Side& a, const Side& b);

}  // namespace autotune
