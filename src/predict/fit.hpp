// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/speed_factors.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace servetune {

/// The lowest point that the simplex finds (Nelder and Mead 1965, with their coefficients 1, 2,
/// 1/2, 1/2).
std::vector<double> minimised(const std::function<double(const std::vector<double>&)>& cost,
                              const std::vector<double>& start, std::size_t evaluations);

/// ln(predicted / measured) of the figures of one measured configuration under these factors, each
/// in standard deviations of the model's error.
using SpeedErrors = std::function<std::vector<double>(const SpeedFactors&)>;

/// The most likely factors of a machine by what was measured on it: log-normal priors around 1,
/// errors of a Student-t with 4 degrees of freedom (one figure that the model does not explain
/// moves little; Lange, Little, Taylor, JASA 84, 1989). By the same simplex as `fit`. Without a row
/// all are 1. Deterministic.
SpeedFactors fitted_factors(const std::vector<SpeedErrors>& rows);

}  // namespace servetune
