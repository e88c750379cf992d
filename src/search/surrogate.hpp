// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/probability.hpp"
#include "eigen.hpp"
#include "hyperparameters.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// What a surrogate is fitted to: standardised values (more is better, or of a limit: more is
/// safer) and what is believed beforehand.
struct SurrogateData {
    std::vector<EncodedPoint> points{};
    Eigen::VectorXd values{};
    Eigen::VectorXd noise_factors{};  ///< 1 / replicates
    Eigen::MatrixXd beliefs{};  ///< n x q, in units of the values; no column: nothing is believed
    /// What the beliefs are off by, as they were checked; 1: nothing is known of it.
    double belief_error = 1;
    LogNormal noise_variance{-6.214608098422191, 1.3};
};

/// One Gaussian process of several, and how much it is believed.
struct Expert {
    GaussianProcess process;
    double weight = 1;
    std::vector<Eigen::Index>
        beliefs{};  ///< the columns of beliefs that are its regressors, beside a one
};

/// A mixture of Gaussian processes over one quantity: a few modes of the hyperparameters'
/// posterior, and where something is believed beforehand those with it and those without.
///
/// Each column of beliefs m enters as b1 m, b1 ~ N(1, 0.5^2) (optimizer's knowledge is about right
/// or it is wrong), integrated out. It is dropped where the posterior gives it a chance above 0.2
/// to point the wrong way, the worst first, and the others are fitted anew without it. Both kinds
/// of experts are weighted by how well they predict each value from all others (leave-one-out log
/// density), at least `least_weight` each, but those with beliefs at most `belief_worth` / n: a
/// belief that is right of most may be wrong of the best, which only those without it find (its
/// share falls as beta / n, the weight of the prior in Hvarfner et al., piBO, ICLR 2022).
class Surrogate {
public:
    static constexpr double belief_sd = 0.5;
    static constexpr double wrong_way_at_most = 0.2;
    static constexpr double least_weight = 0.1;
    /// values. At 40 trials of the simulated study: 3 points of regret better than without a bound
    static constexpr double belief_worth = 5;

    /// `geometry` must outlive it. `seed`: of the starts.
    Surrogate(const LevelGeometry& geometry, const SurrogateData& data, std::uint64_t seed,
              const HyperparameterSearch& search = {}) {
        const DistanceTables tables = distance_tables(geometry, data.points, data.points);
        std::vector<Expert> plain = experts(geometry, tables, data, {}, seed, search);
        std::vector<Eigen::Index> columns(data.values.size() > 0 ? std::size_t(data.beliefs.cols())
                                                                 : 0);
        std::iota(columns.begin(), columns.end(), 0);
        while (!columns.empty()) {
            std::vector<Expert> believing = experts(geometry, tables, data, columns, seed, search);
            if (const auto wrong = most_wrong(believing.front())) {
                columns.erase(columns.begin() + *wrong);
                continue;
            }
            const double with = leave_one_out_log_density(believing.front().process);
            const double without = leave_one_out_log_density(plain.front().process);
            const double likely =
                std::clamp(1 / (1 + std::exp(std::clamp(without - with, -700.0, 700.0))),
                           least_weight, 1 - least_weight);
            belief_weight_ =
                std::min(likely, belief_worth / (data.belief_error * data.belief_error) /
                                     double(data.values.size()));
            for (Expert& expert : believing) expert.weight *= belief_weight_;
            for (Expert& expert : plain) expert.weight *= 1 - belief_weight_;
            experts_ = std::move(believing);
            break;
        }
        for (Expert& expert : plain) experts_.push_back(std::move(expert));
        stable_sort(experts_, [](const Expert& a, const Expert& b) { return a.weight > b.weight; });
    }

    /// The weightiest first; weights add to 1.
    [[nodiscard]] const std::vector<Expert>& experts() const { return experts_; }
    /// Of those with beliefs together; 0 where there are none or they were dropped.
    [[nodiscard]] double belief_weight() const { return belief_weight_; }

    /// m x p regressors of an expert for points of which `beliefs` (m x q) is believed.
    [[nodiscard]] static Eigen::MatrixXd regressors(const Expert& expert,
                                                    const Eigen::MatrixXd& beliefs) {
        return with_ones(beliefs, expert.beliefs);
    }

    /// Each expert's predictions at m points; `beliefs` m x q (q columns even where none is used,
    /// or 0).
    [[nodiscard]] std::vector<std::vector<Prediction>> predict(
        const std::vector<EncodedPoint>& points, const Eigen::MatrixXd& beliefs) const {
        std::vector<std::vector<Prediction>> result;
        for (const Expert& expert : experts_) {
            const Eigen::MatrixXd h = regressors(expert, beliefs);
            result.push_back(expert.process.predict(points, h));
        }
        return result;
    }
    /// One expert's predictions at m points, and their posterior covariances with one observation.
    struct Beside {
        std::vector<Prediction> predictions;
        Eigen::VectorXd covariances;
    };
    /// Each expert's, with observation i.
    [[nodiscard]] std::vector<Beside> predict_beside(const std::vector<EncodedPoint>& points,
                                                     const Eigen::MatrixXd& beliefs,
                                                     Eigen::Index i) const {
        std::vector<Beside> result;
        for (const Expert& expert : experts_) {
            const Eigen::MatrixXd h = regressors(expert, beliefs);
            const Eigen::MatrixXd cross = expert.process.cross_covariance(points, h);
            result.push_back({expert.process.predict_from(cross, h),
                              cross.transpose() * expert.process.covariance_weights(i)});
        }
        return result;
    }
    /// Of the mixture, the means alone.
    [[nodiscard]] Eigen::VectorXd means(const std::vector<EncodedPoint>& points,
                                        const Eigen::MatrixXd& beliefs) const {
        constexpr std::size_t together = 1024;  // the covariances of 500 observations: 4 MB
        Eigen::VectorXd result = Eigen::VectorXd::Zero(beliefs.rows());
        for (const Expert& expert : experts_) {
            const Eigen::MatrixXd h = regressors(expert, beliefs);
            for (std::size_t from = 0; from < points.size(); from += together) {
                const std::vector<EncodedPoint> some(
                    points.begin() + std::ptrdiff_t(from),
                    points.begin() + std::ptrdiff_t(std::min(points.size(), from + together)));
                const auto first = static_cast<Eigen::Index>(from);
                const auto count = static_cast<Eigen::Index>(some.size());
                const Eigen::MatrixXd own = h.middleRows(first, count);
                result.segment(first, count) +=
                    expert.weight *
                    expert.process.means_from(expert.process.cross_covariance(some, own), own);
            }
        }
        return result;
    }
    /// Of the mixture: mean, and variance within and between the experts.
    [[nodiscard]] std::vector<Prediction> mixed(const std::vector<EncodedPoint>& points,
                                                const Eigen::MatrixXd& beliefs) const {
        return mixed(predict(points, beliefs));
    }
    /// The same of each expert's predictions.
    [[nodiscard]] std::vector<Prediction> mixed(
        const std::vector<std::vector<Prediction>>& each) const {
        std::vector<Prediction> result(each.empty() ? 0 : each.front().size());
        for (std::size_t i = 0; i < result.size(); ++i) {
            double square = 0;
            for (std::size_t e = 0; e < each.size(); ++e) {
                result[i].mean += experts_[e].weight * each[e][i].mean;
                square +=
                    experts_[e].weight * (each[e][i].variance + each[e][i].mean * each[e][i].mean);
            }
            result[i].variance = std::max(square - result[i].mean * result[i].mean, 1e-12);
        }
        return result;
    }

    /// A trial that is under way, as if it gave what is expected of it: variances shrink, means
    /// stay (kriging believer; Ginsbourger, Le Riche, Carraro 2010).
    void believe(const EncodedPoint& point, const Eigen::RowVectorXd& beliefs) {
        for (Expert& expert : experts_) {
            const Eigen::MatrixXd row = regressors(expert, beliefs);
            const double expected = expert.process.predict({point}, row).front().mean;
            expert.process.append(point, expected, 1, row);
        }
    }

private:
    static Eigen::MatrixXd with_ones(const Eigen::MatrixXd& beliefs,
                                     const std::vector<Eigen::Index>& columns) {
        Eigen::MatrixXd result =
            Eigen::MatrixXd::Ones(beliefs.rows(), static_cast<Eigen::Index>(columns.size()) + 1);
        for (std::size_t k = 0; k < columns.size(); ++k)
            result.col(static_cast<Eigen::Index>(k) + 1) = beliefs.col(columns[k]);
        return result;
    }

    /// Of an expert's beliefs the one that most likely points the wrong way; nothing where all may
    /// be kept.
    static std::optional<std::ptrdiff_t> most_wrong(const Expert& expert) {
        std::optional<std::ptrdiff_t> result;
        double most = wrong_way_at_most;
        for (std::size_t k = 0; k < expert.beliefs.size(); ++k) {
            const Prediction slope = expert.process.coefficient(static_cast<Eigen::Index>(k) + 1);
            const double wrong_way = normal_cdf(-slope.mean, std::max(slope.variance, 1e-300));
            if (wrong_way <= most) continue;
            result = std::ptrdiff_t(k);
            most = wrong_way;
        }
        return result;
    }

    /// Which use these columns of the beliefs.
    static std::vector<Expert> experts(const LevelGeometry& geometry, const DistanceTables& tables,
                                       const SurrogateData& data,
                                       const std::vector<Eigen::Index>& columns, std::uint64_t seed,
                                       const HyperparameterSearch& search) {
        Observations observations;
        observations.points = data.points;
        observations.values = data.values;
        observations.noise_factors = data.noise_factors;
        observations.regressors = with_ones(data.beliefs, columns);
        observations.coefficient_mean = Eigen::VectorXd::Ones(observations.regressors.cols());
        observations.coefficient_mean(0) = 0;  // the level: N(0, 1)
        observations.coefficient_variance =
            Eigen::VectorXd::Constant(observations.regressors.cols(), belief_sd * belief_sd);
        observations.coefficient_variance(0) = 1;
        HyperparameterPriors priors = HyperparameterPriors::of(geometry);
        priors.noise_variance = data.noise_variance;
        const Hyperparameters hyperparameters(priors);
        std::vector<Expert> result;
        for (const HyperparameterMode& mode :
             fit_hyperparameters(hyperparameters, tables, observations, seed, search))
            result.push_back(
                {GaussianProcess(geometry, observations, hyperparameters.kernel(mode.theta),
                                 hyperparameters.noise_variance(mode.theta)),
                 mode.weight, columns});
        return result;
    }

    static double leave_one_out_log_density(const GaussianProcess& process) {
        double sum = 0;
        const std::vector<Prediction> predictions = process.leave_one_out();
        for (std::size_t i = 0; i < predictions.size(); ++i) {
            const double off =
                process.data().values(static_cast<Eigen::Index>(i)) - predictions[i].mean;
            sum -= 0.5 * (off * off / predictions[i].variance + std::log(predictions[i].variance));
        }
        return sum;
    }

    std::vector<Expert> experts_{};
    double belief_weight_ = 0;
};

}  // namespace servetune
