// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/evaluator.hpp"
#include "servetune/search_space.hpp"
#include "servetune/workload.hpp"

namespace servetune {

/// Measured configurations, as a published study or a benchmark table gives them. A study file
/// reads them from CSV.
struct MeasuredTable {
    /// One measured configuration.
    struct Row {
        std::vector<std::optional<std::string>>
            cells;             ///< as written, one a parameter; nothing: inactive
        std::string workload;  ///< empty: the table has no column `workload`
        Outcome outcome;
        std::size_t line = 0;  ///< in its file, for messages
        /// Which measurement of its configuration this is. Empty: the table does not say.
        std::string repeat{};
    };
    std::string source;                   ///< its file, for messages
    std::vector<std::string> parameters;  ///< names of the columns that are parameters
    std::vector<Row> rows;
};

/// Answers from a table instead of a GPU.
///
/// A row answers for a configuration when it agrees with it in every parameter that the table has:
/// the same value (an empty cell: inactive). Rows with the same parameters and workload are one
/// measurement when their outcomes are equal (printed twice), unless the table numbers its repeats,
/// and replicates when they are not: the answer is then their mean with its standard error and
/// their number, or the failure if one failed. A configuration without a row is
/// Failure{not_in_table}, a row of a failed trial is that Failure. With `noise_cv` every rate of a
/// row is multiplied, and every time divided, by one log-normal factor of that spread, a function
/// of configuration, workload, seed and replicate.
class ReplayEvaluator : public Evaluator {
public:
    /// How measurements of several workloads become one, and how much noise is added.
    struct Options {
        std::vector<std::pair<std::string, double>>
            workloads{};      ///< those of the objective with weights; empty: the table has none
        double noise_cv = 0;  ///< added multiplicative noise, for experiments

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const;
    };

    /// Throws UsageError where the options cannot be, SpaceError when the space varies a parameter
    /// that the table does not have, or the table one that the space does not.
    ReplayEvaluator(const MeasuredTable& table, const SearchSpace& space, Options options);

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override;
    [[nodiscard]] bool replicates_inform() const override { return options_.noise_cv > 0; }

    /// "Only what was measured exists": the constraint that excludes every configuration without
    /// rows for `workloads`.
    static Allow measured_only(const MeasuredTable& table, const SearchSpace& space,
                               const std::vector<std::string>& workloads);

    /// The cells of a row as values of the space's parameters; nothing: inactive, or no parameter
    /// of the space.
    static std::vector<std::optional<Value>> parsed(const MeasuredTable& table,
                                                    const MeasuredTable::Row& row,
                                                    const SearchSpace& space);

private:
    using Key =
        std::pair<std::string, Allow::Row>;  ///< workload, and the values of the table's parameters
    /// Null: there is no row.
    [[nodiscard]] const std::vector<Outcome>* find(const Configuration& configuration,
                                                   const std::string& workload) const;
    static Outcome mean_of(const std::vector<Outcome>& outcomes);
    void add_noise(Outcome& outcome, std::uint64_t seed) const;
    [[nodiscard]] Outcome answer(const Configuration& configuration, const std::string& workload,
                                 std::uint64_t seed) const;

    std::vector<std::string> parameters_;
    std::map<Key, std::vector<Outcome>> known_;  ///< different ones: replicates
    Options options_;
    std::string source_;
};

}  // namespace servetune
