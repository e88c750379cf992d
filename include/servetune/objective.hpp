// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"
#include "servetune/outcome.hpp"
#include "servetune/value.hpp"

namespace servetune {

enum class Direction { maximize, minimize };

/// A bound that a configuration must keep, such as `success_ratio >= 0.99`. On an outcome of
/// several workloads it must hold on each of them.
struct Limit {
    std::string metric;
    bool at_least = true;  ///< `>=`; false: `<=`
    double bound = 0;
    std::string written{};  ///< as a person wrote it: `ttft_p95 < 6s`

    friend bool operator==(const Limit& a, const Limit& b) { return a.text() == b.text(); }
    /// Reads `metric >= number` or `metric <= number`; `<` and `>` mean the same, and the number
    /// may have a unit (`bound_of_text`). `words`: the metric may be a word such as `ttft_p95`
    /// (`metric_of_word`). Throws ParseError.
    static Limit parse(std::string_view text, bool words = false);

    [[nodiscard]] std::string text() const;

    [[nodiscard]] bool keeps(double value) const {
        return at_least ? value >= bound : value <= bound;
    }
    /// Nothing when the metric is absent: whether the limit holds is not known, and an outcome does
    /// not pass.
    [[nodiscard]] std::optional<bool> holds(const Metrics& metrics) const;
    /// The figures that the limit judges, workload -> value. An empty name is the figure of the
    /// whole outcome.
    [[nodiscard]] std::vector<std::pair<std::string, double>> figures(const Metrics& metrics) const;
    /// Those of `figures` that break the limit. Where workloads break it the combined figure, a
    /// mean of theirs, is left out.
    [[nodiscard]] std::vector<std::pair<std::string, double>> broken(const Metrics& metrics) const;
    /// As it was written; else `time_to_first_token_p95_seconds <= 2 s`.
    [[nodiscard]] std::string readable() const;
    /// Why an outcome without the metric is refused: `limit M <= 2s cannot be judged: the result
    /// has no M`. `workload`: of this one's figures.
    [[nodiscard]] std::string unjudged_text(std::string_view workload = {}) const;
    /// Why an outcome is refused: `limit M <= 2s broken: 2.43 s on long`. Empty: the limit is kept,
    /// or cannot be judged.
    [[nodiscard]] std::string broken_text(const Metrics& metrics) const;
};

/// One number that should be large, or small.
struct Goal {
    std::string metric = "total_tokens_per_second";
    Direction direction = Direction::maximize;

    friend bool operator==(const Goal&, const Goal&) = default;
    /// How much better `candidate` is than `base`: 0.02 is 2 % more throughput, or the same work in
    /// 1/1.02 of the time. Both must be positive, as rates and times are; others are judged by
    /// `FigureScale`.
    [[nodiscard]] double gain(double candidate, double base) const {
        return direction == Direction::maximize ? candidate / base - 1 : base / candidate - 1;
    }
    [[nodiscard]] bool better(double a, double b) const {
        return direction == Direction::maximize ? a > b : a < b;
    }
    /// Whether it is a rate or a time of load tests: above 0, or nothing was measured. Of another
    /// metric any finite figure counts.
    [[nodiscard]] bool is_rate_or_time() const;
    /// Why a measurement has no figure of this goal that can be judged; empty: it has one.
    /// `as_ratio`: the study asks for shares (`never_worse_than`).
    [[nodiscard]] std::string why_unusable(const Metrics& metrics, bool as_ratio) const;
    /// `maximize total_tokens_per_second`.
    [[nodiscard]] std::string text() const {
        return (direction == Direction::maximize ? "maximize " : "minimize ") + metric;
    }
};

/// What is tuned for: one goal or several, and limits. The first goal leads: it decides what is
/// recommended. Of several goals the configurations that no other one beats in all of them together
/// are the front.
struct Objective {
    std::vector<Goal> goals{Goal{}};  ///< one or two, no metric twice
    std::vector<Limit> limits{};

    Objective() = default;
    /// One goal.
    Objective(std::string metric, Direction direction = Direction::maximize,
              std::vector<Limit> bounds = {})
        : goals{{std::move(metric), direction}}, limits(std::move(bounds)) {}
    explicit Objective(std::vector<Goal> several, std::vector<Limit> bounds = {})
        : goals(std::move(several)), limits(std::move(bounds)) {}

    friend bool operator==(const Objective&, const Objective&) = default;
    [[nodiscard]] const Goal& leading() const { return goals.front(); }
    [[nodiscard]] bool several() const { return goals.size() > 1; }
    /// `maximize total_tokens_per_second, minimize watts`.
    [[nodiscard]] std::string goals_text() const;
    /// What is wrong with it, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// The outcome of one workload, by name, with its weight in the whole.
struct WorkloadMetrics {
    std::string workload;
    double weight = 1;
    Metrics metrics;
};

/// The relative error of a weighted geometric mean: those of its parts in squares, by their
/// weights. A part that was measured once is taken to be as noisy as the replicated parts are on
/// average. No part has replicates: nothing is known.
void add_combined_error(Metric& whole, const std::vector<WorkloadMetrics>& parts,
                        const std::string& name);

/// One outcome from several workloads: each metric that all of them have as the weighted geometric
/// mean (gains are ratios, and no workload drowns the others by its unit; Fleming and Wallace, CACM
/// 29(3), 1986), `success_ratio` as the smallest, and every workload's own as `name@workload`. A
/// single workload keeps its plain names. Where replicates of workloads are known the combined
/// figure has their error (`add_combined_error`).
Metrics combined(const std::vector<WorkloadMetrics>& parts);

}  // namespace servetune
