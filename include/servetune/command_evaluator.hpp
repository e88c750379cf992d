// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/evaluator.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

namespace servetune {

/// Measures by a program of the user's: it gets the configuration as JSON and prints metrics as
/// JSON. docs/reference/your-own-program.md is its contract.
///
/// The request, one JSON object, is its standard input and the file `trials/ID/request.json`:
///
///     {"trial": 3, "seed": 17, "workload": null, "workloads": ["chat"], "model": "Qwen/Qwen3-8B",
///      "configuration": {"max_num_seqs": 128}, "command": ["vllm", "serve", ...], "environment": {}}
/// `workload` is null for those of the objective; `workloads` names what is to be measured. A value
/// that is left to the engine is null.
///
/// What it prints on standard output is one JSON object, alone or as the last line that begins with
/// '{':
///
///     {"metrics": {"total_tokens_per_second": 123.4, "latency_mean_seconds": {"value": 1, "standard_error": 0.1}},
///      "validity": {"verdict": "suspect", "findings": [
///          {"id": "peak", "left": "9", "right": "1", "cause": "one burst"}]}}
///     {"failure": {"kind": "out_of_memory", "message": "..."}}
/// with `metrics` or `failure`. `validity`, `standard_error`, `left`, `right` and `cause` may be
/// missing; a metric that is null was not measured. Standard error goes to `trials/ID/command.log`.
///
/// What is wrong with the answer is Failure{invalid_result}: no such object, an unknown key, a
/// number that is none. Whether the metrics of the objective are there is for `Study::tell` to see.
/// An exit code other than 0 without a failure object is Failure{other}, with the last lines of its
/// standard error; more than `within_seconds` is Failure{hung}. The program and all that it started
/// are ended before `evaluate` returns.
class CommandEvaluator : public Evaluator {
public:
    /// Which program, and how it is run.
    struct Options {
        /// The program and its words, never a shell line. In each word {config} stands for the
        /// configuration as a JSON object, {config_file} for the path of the request, {workload}
        /// (empty: the objective's), {seed}, {trial} and {folder} (the trial's, absolute) for
        /// themselves; {{seed}} is the text {seed}.
        std::vector<std::string> argv{};
        std::filesystem::path folder{};  ///< of the study; a trial's is `trials/ID` below it
        std::filesystem::path
            working_folder{};  ///< where the program runs; empty: this process's own
        std::map<std::string, std::string>
            environment{};   ///< added to this process's own, or replacing
        std::string mark{};  ///< of the study (`leftovers`); empty: leftovers cannot be found
        std::shared_ptr<Watchdog>
            watchdog{};  ///< ends it where this program dies first; none: only its leader is told
        std::string model{};                   ///< for the request
        std::vector<std::string> workloads{};  ///< names of the objective's, for the request
        /// The serving command of a configuration, for the request; its files are written into the
        /// trial's folder. Empty: `command` is [].
        std::function<Command(const Configuration&)> render{};
        double within_seconds =
            7200;  ///< start to end, as long as a deployed trial may take; longer is Failure{hung}
        double stop_within_seconds =
            20;  ///< for TERM, then again for KILL: an engine that it started has to go too
        std::size_t log_bytes =
            16UL << 20UL;  ///< of the log at most: the first half and the last half are kept
        /// of standard output; a program that prints more is ended: Failure{invalid_result}
        std::size_t answer_bytes = 16UL << 20UL;

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const;
    };

    /// Throws UsageError where the options cannot be: no program, an unknown placeholder in a word,
    /// times that are none.
    explicit CommandEvaluator(Options options);

    /// Throws IoError where the machine is at fault, not the configuration: no such program, a
    /// folder that cannot be written, or the program itself says so (failure kind
    /// `infrastructure`). The trial then stays open.
    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override;

    /// Throws UsageError, with the known ones, where a word has an unknown placeholder.
    static void check_word(std::string_view word);

private:
    class OneTrial;
    Options options_;
};

}  // namespace servetune
