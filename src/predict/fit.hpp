// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/simulator.hpp"
#include "servetune/detail/perf/speed_factors.hpp"
#include "servetune/detail/predict/serving.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// The figure of a factor (FitOptions::factors); of all number types together it is the first
/// one's. Throws UsageError for an unknown one.
double factor_of(const EngineTraits& traits, const std::string& factor);
/// `logs`: natural logarithms of the factors' figures; a share stays within 0.01 to 1.
EngineTraits with_factors(EngineTraits traits, const std::vector<std::string>& factors,
                          const std::vector<double>& logs);

/// The lowest point that the simplex finds (Nelder and Mead 1965, with their coefficients 1, 2,
/// 1/2, 1/2).
std::vector<double> minimised(const std::function<double(const std::vector<double>&)>& cost,
                              const std::vector<double>& start, std::size_t evaluations);

/// A measured result and what is needed to predict it.
struct FitRow {
    std::string name;  ///< for people: workload and command
    Serving serving;
    SimulatedTraffic traffic;
    std::map<std::string, double> measured;  ///< metric -> value, positive
};

struct FitOptions {
    /// Figures of EngineTraits that are fitted: `bandwidth_efficiency`, `step_overhead_seconds`,
    /// `sequence_overhead_seconds`, `layer_seconds`, `request_overhead_seconds`,
    /// `chunk_overhead_seconds`,
    /// `compute_efficiency` (of all number types together, by one factor),
    /// `compute_efficiency.fp8`.
    std::vector<std::string> factors{"compute_efficiency", "request_overhead_seconds"};
    std::vector<std::string> metrics{"total_tokens_per_second"};
    std::size_t folds = 5;  ///< for the held-out rows; as many as rows where there are fewer
    std::size_t evaluations = 200;  ///< of the whole table, for one fit

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// How one figure of one row came out.
struct FitError {
    std::string row;
    std::string metric;
    double measured = 0;
    double predicted = 0;           ///< by factors fitted to all rows
    double predicted_held_out = 0;  ///< by factors fitted without this row's fold
};

/// The factors that describe the rows best, and how well.
struct Fit {
    EngineTraits traits;                   ///< with the fitted figures
    std::map<std::string, double> values;  ///< factor -> fitted figure
    std::vector<FitError> errors;
    double median_error = 0;  ///< |predicted / measured - 1|
    double worst_error = 0;
    double held_out_median_error = 0;
    double held_out_worst_error = 0;
};

/// Fits by least squares of log(predicted / measured), by the simplex of Nelder and Mead (Computer
/// Journal 7, 1965) on the logarithms of the factors. A weak pull holds a factor of which the rows
/// say nothing where it was: a change by e costs as much as an error of 3 % in one row. Held out:
/// rows i with i mod folds = k are predicted by factors fitted to the others. All rows are of one
/// engine. Deterministic. Throws UsageError for an unknown factor, for no rows, for a metric that
/// no row has.
Fit fit(const std::vector<FitRow>& rows, const FitOptions& options = {});

/// How far the factors of a machine are expected from 1: standard deviations of natural logarithms,
/// the spread over seven published tables (docs/explanation/simulator.md).
struct SpeedPrior {
    double compute = 0.6;
    double bandwidth = 0.4;
    double overhead = 0.8;
};

/// ln(predicted / measured) of the figures of one measured configuration under these factors, each
/// in standard deviations of the model's error.
using SpeedErrors = std::function<std::vector<double>(const SpeedFactors&)>;

/// The most likely factors of a machine by what was measured on it: log-normal priors around 1,
/// errors of a Student-t with 4 degrees of freedom (one figure that the model does not explain
/// moves little; Lange, Little, Taylor, JASA 84, 1989). By the same simplex as `fit`. Without a row
/// all are 1. Deterministic.
SpeedFactors fitted_factors(const std::vector<SpeedErrors>& rows, const SpeedPrior& prior = {});

}  // namespace servetune
