// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/detail/deploy/server.hpp"
#include "servetune/objective.hpp"
#include "servetune/outcome.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace servetune {

/// The metric that a quality gate adds to a measurement: what is lost against the default, as a
/// share; below 0 where something is won.
inline constexpr std::string_view quality_drop = "quality_drop";

/// How much of two answers is the same, 0 to 1: the bytes that both begin with / the bytes of the
/// longer one. Two empty ones are the same.
[[nodiscard]] double agreement_of(std::string_view a, std::string_view b);

/// The accuracy in what a program printed, nothing where there is none: a JSON object or a plain
/// number on its last line that is not empty (`{"accuracy": 0.71}`), or the table that
/// lm-evaluation-harness prints. `metric`: of the object its key; of the table `TASK/METRIC`, such
/// as `gsm8k/exact_match`; empty: `accuracy`, and the table's first row.
[[nodiscard]] std::optional<double> accuracy_in(const std::string& printed,
                                                const std::string& metric = "");

struct QualityOptions {
    std::vector<std::string>
        prompts{};  ///< asked greedily, one after the other; empty: those that come with servetune
    std::size_t most_prompts = 1000;  ///< only the first of them are asked
    std::int64_t answer_tokens = 64;  ///< of each answer
    /// In place of prompts a program that prints an accuracy; in its words {url} and {model} stand
    /// for the server's.
    std::vector<std::string> command{};
    std::string metric{};          ///< of what it prints (`accuracy_in`)
    double within_seconds = 1800;  ///< for the program; a longer one has failed
    /// Parameters that touch what the model answers, with their values in the default
    /// configuration, which count as absent; nothing: it has none, so that any value counts.
    std::map<std::string, std::optional<Value>> defaults{};
    /// what the default is, such as its command; where that changes, all are asked anew
    std::string baseline{};
    std::vector<Limit>
        limits{};  ///< of the objective: one on `quality_drop` decides before the load test
    std::filesystem::path
        file{};  ///< what was found is kept here and not asked again; empty: in memory only

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// Compares what a configuration answers with what the default answers, once for each set of values
/// of the parameters that touch answers. Of prompts the drop is 1 - the mean agreement of greedy
/// answers (temperature 0); of a program (the default's accuracy - this one's) / the default's.
///
/// A small difference of numbers changes some word of a greedy answer sooner or later, and all
/// behind it: a drop of a few percent is usual for a type that loses nothing. What a drop costs, an
/// accuracy says.
class QualityGate {
public:
    /// Throws UsageError where the options cannot be.
    explicit QualityGate(QualityOptions options);

    /// `quality_drop`; no metric where the default has not been asked (it never served). A broken
    /// limit on it is a failure, so that no load test is spent on it, and so is a server that does
    /// not answer.
    std::variant<Metrics, Failure> of(const Server& server, const Configuration& configuration,
                                      const std::stop_token& stop);
    /// Whether this configuration sets anything that may touch answers.
    [[nodiscard]] bool touches(const Configuration& configuration) const {
        return !touching(configuration).empty();
    }
    /// Whether this configuration is to be compared with answers of the default, and there are
    /// none.
    [[nodiscard]] bool lacks_default(const Configuration& configuration) const {
        return !found_.contains("") && !touching(configuration).empty();
    }

private:
    struct Found {
        std::vector<std::string> answers{};
        std::optional<double> accuracy{};
    };
    [[nodiscard]] std::string touching(const Configuration& configuration) const;
    [[nodiscard]] Found asked(const Server& server, const std::stop_token& stop) const;
    [[nodiscard]] double drop(const Found& usual, const Found& mine) const;
    void read();
    void write() const;

    QualityOptions options_;
    std::map<std::string, Found>
        found_{};  ///< by what is set of the touching parameters; the default's: ""
};

}  // namespace servetune
