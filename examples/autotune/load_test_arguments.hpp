// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/load_test.hpp"

#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace autotune {

/// The load test that a command line asks for: server, workload, options, facts; the workload has
/// its own arrival. Throws UsageError, and IoError where the server does not say what it serves.
[[nodiscard]] servetune::LoadTest load_test_of(const LoadTestArguments& arguments,
                                               const servetune::Catalogue& catalogue);

/// The key in an environment variable that `--api-key-env` names, kept as a secret. Throws
/// UsageError where it is not set.
[[nodiscard]] std::string api_key_in(const std::string& variable);

/// The files of a load test's result. A load test takes long, so that a place that cannot be
/// written is said before it, and a disk that fails after it does not take the printed result.
class ResultFiles {
public:
    /// Throws IoError where one of them could not be written.
    explicit ResultFiles(const std::vector<std::optional<std::filesystem::path>>& files);
    /// Runs `write`, if there is a file; a failure waits for `end`.
    void write(const std::optional<std::filesystem::path>& file,
               const std::function<void(const std::filesystem::path&)>& write);
    /// Throws the first failure. For after the result was printed.
    void end() const;

private:
    std::exception_ptr failure_{};
};

/// How far a load test is, on standard error: on a terminal a line that is overwritten, elsewhere a
/// line now and then.
class LoadProgressLine {
public:
    explicit LoadProgressLine(bool shown);

    /// `what` stands before it.
    void show(const servetune::LoadProgress& at, const std::string& what = "");
    /// A line that stays.
    void say(const std::string& line);
    void end();

private:
    bool shown_;
    bool terminal_;
    double next_seconds_ = 0;
};

}  // namespace autotune
