// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence.hpp"
#include "output_scale.hpp"
#include "servetune/detail/search/bayesian_options.hpp"
#include "surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace servetune {

/// What the process of one goal is fitted to, without beliefs, and which evidence its rows are.
struct GoalData {
    SurrogateData data{};
    std::vector<std::size_t> rows{};
};

/// `k`: the goal, the leading one being 0. Failures enter as bad values, but under
/// `FailureModel::classifier` not at all. `noise_cv`: of one measurement.
inline GoalData goal_data(const std::vector<ConfigurationEvidence>& evidence, std::size_t k,
                          const OutputScale& scale, double noise_cv,
                          const LearningOptions& options) {
    std::vector<double> good;
    for (const ConfigurationEvidence& entry : evidence)
        if (entry.measured()) good.push_back(scale.scaled(entry.means[k]));
    std::sort(good.begin(), good.end());
    // A bad value: nothing was measured, then one spread below what the first will be.
    const double bad = good.empty()                                ? -1
                       : options.failures == FailureModel::penalty ? good.front()
                                                                   : good[good.size() / 10];

    GoalData result;
    std::vector<double> values;
    std::vector<double> factors;
    bool replicated = false;
    for (std::size_t i = 0; i < evidence.size(); ++i) {
        const ConfigurationEvidence& entry = evidence[i];
        const bool told_as_bad =
            !entry.measured() && !entry.works && options.failures != FailureModel::classifier;
        if (!entry.measured() && !told_as_bad) continue;
        result.rows.push_back(i);
        result.data.points.push_back(entry.point);
        values.push_back(entry.measured() ? scale.scaled(entry.means[k]) : bad);
        factors.push_back(entry.measured() ? 1 / entry.replicates : 1);
        replicated = replicated || entry.replicates > 1;
    }
    const auto n = static_cast<Eigen::Index>(values.size());
    result.data.values = Eigen::Map<Eigen::VectorXd>(values.data(), n);
    result.data.noise_factors = Eigen::Map<Eigen::VectorXd>(factors.data(), n);
    result.data.beliefs.resize(n, 0);
    // Assumed noise may be off by a factor of three either way, measured noise by less than two.
    result.data.noise_variance = {2 * std::log(std::max(noise_cv, 1e-4) / scale.spread()),
                                  replicated ? 0.5 : 1.0};
    result.data.additive = options.additive;
    return result;
}

}  // namespace servetune
