// SPDX-License-Identifier: Apache-2.0
#include "fitted_models.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {

namespace {

/// How far beyond 3 units a value is does not matter.
double held(double value) { return 3 * std::tanh(value / 3); }

/// In units of what is learned: of the source that was off least.
double belief_error(const std::vector<std::vector<PriorBelief>>& beliefs, double unit) {
    double least = 1;
    for (const auto& of_point : beliefs)
        for (const PriorBelief& belief : of_point)
            if (belief.log_error) least = std::min(least, *belief.log_error / unit);
    return std::max(least, 0.1);
}

}  // namespace

/// (m - centre) / spread, or of a limit margin / unit; held softly within +-3 so that none claims
/// fifty times as much; 0 where nothing is believed, or nothing yet to compare it with.
Eigen::MatrixXd FittedModels::columns(const std::vector<std::vector<PriorBelief>>& beliefs,
                                      std::optional<std::size_t> limit) const {
    const auto sources = static_cast<Eigen::Index>(belief_centres_.size());
    Eigen::MatrixXd result =
        Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(beliefs.size()), limit ? 1 : sources);
    for (std::size_t j = 0; j < belief_centres_.size(); ++j)
        for (std::size_t i = 0; i < beliefs.size(); ++i) {
            const PriorBelief& belief = beliefs[i][j];
            const auto row = static_cast<Eigen::Index>(i);
            if (!limit && belief_centres_[j] && belief.log_value)
                result(row, static_cast<Eigen::Index>(j)) = held(
                    (scale_.turned(*belief.log_value) - *belief_centres_[j]) / scale_.spread());
            if (limit && *limit < belief.limits.size() && belief.limits[*limit])
                result(row, 0) = held(*belief.limits[*limit] / units_[*limit]);
        }
    return result;
}

void FittedModels::learn_objective(double noise_cv, std::uint64_t seed) {
    const std::size_t sources = evidence_.empty() ? 0 : evidence_.front().beliefs.size();
    for (std::size_t j = 0; j < sources; ++j) {
        std::vector<double> known;
        for (const ConfigurationEvidence& entry : evidence_)
            if (const auto& log_value = entry.beliefs[j].log_value; entry.measured() && log_value)
                known.push_back(scale_.turned(*log_value));
        belief_centres_.push_back(known.empty() ? std::nullopt
                                                : std::optional(median_of(std::move(known))));
    }
    GoalData of_goal = goal_data(evidence_, 0, scale_, noise_cv);
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const std::size_t i : of_goal.rows) beliefs.push_back(evidence_[i].beliefs);
    of_goal.data.beliefs = columns(beliefs);
    of_goal.data.belief_error = belief_error(beliefs, scale_.spread());
    objective_ = std::make_unique<Surrogate>(geometry_, of_goal.data, seed);
}

/// Margins in units of their spread, at least 5 %: what separates runs of one configuration at high
/// percentiles.
void FittedModels::learn_limits(std::size_t limits, std::uint64_t seed) {
    for (std::size_t j = 0; j < limits; ++j) {
        std::unique_ptr<Surrogate>& model = limits_.emplace_back();
        SurrogateData data;
        std::vector<double> margins;
        std::vector<double> factors;
        std::vector<std::vector<PriorBelief>> beliefs;
        for (const ConfigurationEvidence& entry : evidence_)
            if (const auto& margin = entry.margins[j]) {
                beliefs.push_back(entry.beliefs);
                data.points.push_back(entry.point);
                margins.push_back(*margin);
                factors.push_back(1 / std::max(entry.replicates, 1.0));
            }
        units_.push_back(1);
        if (margins.empty()) continue;
        std::vector<double> sizes;
        for (const double margin : margins) sizes.push_back(std::abs(margin));
        const double unit = units_.back() = std::max(median_of(sizes), 0.05);
        const auto n = static_cast<Eigen::Index>(margins.size());
        data.values = Eigen::Map<Eigen::VectorXd>(margins.data(), n) / unit;
        data.values = data.values.unaryExpr(&held);
        data.noise_factors = Eigen::Map<Eigen::VectorXd>(factors.data(), n);
        data.beliefs = columns(beliefs, j);
        data.belief_error = belief_error(beliefs, unit);
        if (data.beliefs.isZero(0)) data.beliefs.resize(n, 0);
        model = std::make_unique<Surrogate>(geometry_, data, derive_seed(seed, j), quick_search);
    }
}

void FittedModels::learn_what_works() {
    std::vector<EncodedPoint> points;
    std::vector<bool> works;
    std::vector<double> margins;
    for (const ConfigurationEvidence& entry : evidence_) {
        if (!entry.measured() && entry.works)
            continue;  // under way, or its failure was not its own
        points.push_back(entry.point);
        works.push_back(entry.works);
        margins.push_back(believed_margin(entry.beliefs));
    }
    const auto nothing = [](double margin) { return margin == 0; };
    if (!contains(works, false) && all_of(margins, nothing)) return;
    works_ = std::make_unique<FeasibilityModel>(geometry_, std::move(points), works, margins);
}

void FittedModels::find_incumbent() {
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const ConfigurationEvidence& entry : evidence_) {
        points.push_back(entry.point);
        beliefs.push_back(entry.beliefs);
    }
    const std::vector<Prediction> predictions = objective_->mixed(points, columns(beliefs));
    for (std::size_t i = 0; i < evidence_.size(); ++i)
        if (evidence_[i].passes &&
            (!incumbent_ || predictions[i].mean > predictions[*incumbent_].mean))
            incumbent_ = i;
    if (!incumbent_) return;
    const std::vector<EncodedPoint>& observed = objective_->experts().front().process.data().points;
    observed_ = std::find(observed.begin(), observed.end(), evidence_[*incumbent_].point) -
                observed.begin();
}

}  // namespace servetune
