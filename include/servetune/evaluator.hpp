// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/objective.hpp"

#include <stop_token>

namespace servetune {

/// The best figure so far of what passes.
struct Incumbent {
    /// The best figure of the goal that a passing configuration has in a workload, and how long its
    /// load test took.
    struct OfWorkload {
        double figure = 0;
        double seconds = 0;
    };
    Goal goal{};
    double value = 0;
    std::map<std::string, OfWorkload> of_workloads{};  ///< by name; empty for a study of one
    double noise = 0;  ///< of one measurement, as a coefficient of variation
};

/// What an evaluation may want to know besides the configuration.
struct EvaluationContext {
    std::uint64_t trial = 0;
    /// of the load; the n-th measurement of every configuration gets the same (paired comparison)
    std::uint64_t seed = 0;
    std::string workload{};  ///< empty: the workloads of the objective; else this one only
    std::stop_token stop{};  ///< when it is set, come back soon with Failure{cancelled}
    /// For a first measurement: it may end early, with an approximate figure, once it is surely
    /// worse than that. Nothing: it is wanted in full.
    std::optional<Incumbent> to_beat{};
    bool again = false;  ///< the same configuration and workload have an earlier trial
};

/// Measures a configuration. It returns what it found, a failed trial included; it throws only when
/// the tuner itself cannot go on. Called from one thread at a time. Every implementation runs
/// tests/contract/evaluator_contract.hpp.
class Evaluator {
public:
    virtual ~Evaluator() = default;
    virtual Outcome evaluate(const Configuration& configuration,
                             const EvaluationContext& context) = 0;
    /// Whether measuring a configuration again tells something new: false when the answer is always
    /// the same.
    [[nodiscard]] virtual bool replicates_inform() const { return true; }
};

}  // namespace servetune
