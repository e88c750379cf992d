// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deploy/server_measurement.hpp"
#include "servetune/configuration.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/load_test.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

namespace fs = std::filesystem;

/// The raw requests of one load test of a trial, and what else its statistics and its audit are
/// made of: lengths and times, no text of a prompt or an answer. Arrivals and limits are in the
/// study.
struct KeptLoadTest {
    std::uint64_t trial = 0;
    std::uint64_t seed = 0;
    std::size_t number = 0;
    Configuration configuration{};
    std::string called{};
    std::string model{};  ///< what the server was told to serve
    double devices = 1;
    std::size_t servers = 1;
    LoadTestResult result{};  ///< plan (lengths only), refused fields, run
};

/// Folder of a study's kept load tests, below the study's.
inline constexpr const char* kept_requests_folder = "requests";

/// `3-0.jsonl.gz`: the first load test of trial 3.
[[nodiscard]] std::string kept_requests_name(std::uint64_t trial, std::size_t number);

/// Writes one: gzip compressed, a line of JSON for the test and one for each request as
/// `write_records` writes it; about 5 bytes a token. Throws IoError.
void write_load_test(const fs::path& file, const KeptLoadTest& test, const Redactor& secrets);
/// Reads one, also a stranger's. Throws IoError and ParseError.
KeptLoadTest read_load_test(const fs::path& file);

/// Keeps the load tests of a run in the study's folder, in 256 MiB at most: those of trial 0 (the
/// default) and the latest ones, which hold the confirmation, stay longest. Safe from several
/// threads.
class KeptRequests {
public:
    /// `folder`: the study's.
    KeptRequests(const fs::path& folder, Redactor secrets,
                 std::size_t most_bytes = std::size_t{1} << 28U);
    /// Throws IoError.
    void keep(const MeasuredLoad& load);

private:
    void make_room();

    fs::path folder_;
    Redactor secrets_;
    std::size_t most_bytes_;
    std::mutex mutex_{};
};

/// The load tests that a folder keeps of each trial, by number. Other files are passed over. Throws
/// nothing where there is no such folder.
[[nodiscard]] std::vector<fs::path> kept_load_tests(const fs::path& study_folder);

/// The trial that the name of a kept load test says; nothing: it is no such name.
[[nodiscard]] std::optional<std::uint64_t> trial_of_kept(const fs::path& file);

/// A trial's outcome once more, from what it was made of.
struct RepeatedTrial {
    /// the journal's, with what was repeated in its place; nothing: see `why_not`
    std::optional<Measurement> measurement{};
    std::size_t figures = 0;   ///< that were repeated
    std::size_t requests = 0;  ///< they are of
    std::vector<std::string>
        differs{};          ///< a line for each figure and finding that is not the journal's
    std::string why_not{};  ///< why nothing was repeated; empty: something was
};

/// Repeats statistics and audit of a trial from the raw requests of its load tests, in their order;
/// and, where its load was looked for, the search. Figures of the machine (power, seconds of the
/// trial) and of the quality gate are not in requests and stay. Figures agree that differ by less
/// than 1e-9 of themselves: another compiler may sum otherwise. Throws nothing for what was
/// tampered with: that is in `differs`.
RepeatedTrial repeated_trial(const StudySetup& setup, const Trial& trial,
                             std::vector<KeptLoadTest> tests);

/// Whether a study's figures come from a table or a model that it holds: they are repeated by
/// asking again, without a machine.
[[nodiscard]] bool repeats_by_asking(const StudyFile& file);

/// The same of such a study. Not const: its evaluator is asked.
RepeatedTrial asked_again(StudySetup& setup, const Trial& trial);

}  // namespace servetune
