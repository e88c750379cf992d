// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence.hpp"
#include "output_scale.hpp"
#include "surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace servetune {

/// What a trial of a configuration takes, start to end, failures included: one that crashes at once
/// is cheap, one that runs into a time limit is dear. A Gaussian process of ln(seconds), its prior
/// mean the median of what was told.
class TrialCost {
public:
    /// Configurations without `seconds` are left out. `geometry` must outlive it.
    TrialCost(const LevelGeometry& geometry, const std::vector<ConfigurationEvidence>& evidence)
        : geometry_(geometry) {
        std::vector<double> logs;
        SurrogateData data;
        std::uint64_t asked = 0;  // the starts of the fit depend on it
        for (const ConfigurationEvidence& entry : evidence) {
            asked += entry.trials;
            if (!entry.seconds) continue;
            data.points.push_back(entry.point);
            logs.push_back(std::log(*entry.seconds));
        }
        if (logs.empty()) return;
        centre_ = median_of(logs);
        std::vector<double> away;
        for (const double value : logs) away.push_back(std::abs(value - centre_));
        unit_ = std::max(median_of(away), least_unit);
        const auto n = static_cast<Eigen::Index>(logs.size());
        data.values = (Eigen::Map<Eigen::VectorXd>(logs.data(), n).array() - centre_) / unit_;
        data.values = (data.values.array() / farthest).tanh() *
                      farthest;  // a time limit of an hour must not bend what a minute is
        data.noise_factors = Eigen::VectorXd::Ones(n);
        data.noise_variance = {2 * std::log(noise / unit_), 1.0};
        data.beliefs.resize(n, 0);
        process_ = std::make_unique<Surrogate>(geometry_, data, asked, quick_search);
    }

    /// E[seconds] at a point, a log-normal; nothing where nothing was told.
    [[nodiscard]] std::optional<double> seconds(const EncodedPoint& point) const {
        if (!process_) return std::nullopt;
        const Prediction one = process_->mixed({point}, Eigen::MatrixXd(1, 0)).front();
        return std::exp(centre_ + (unit_ * one.mean + 0.5 * unit_ * unit_ * one.variance));
    }

private:
    static constexpr double least_unit =
        0.1;  ///< of the logarithm: trials that differ by less are alike
    static constexpr double noise =
        0.05;  ///< of the logarithm: one configuration's trials, an engine's start included
    static constexpr double farthest = 4;  ///< units

    const LevelGeometry& geometry_;
    double centre_ = 0;
    double unit_ = 1;
    std::unique_ptr<Surrogate> process_{};
};

}  // namespace servetune
