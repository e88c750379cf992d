// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/candidate_pool.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// A process's posterior over a whole pool, to which points that are under way are added one by one: each as if it gave what is expected of it, so that
/// variances and covariances shrink and means stay (kriging believer; Ginsbourger, Le Riche, Carraro 2010). A point costs O(N n) where the pool's halves
/// (`PoolBlocks::halves`) are kept and as much as all of it where they are not; the numbers are the same.
class PoolPosterior {
public:
    /// `process`, `geometry` and `pool` must outlive it. `regressors`: pool x p, or empty where all are ones. `observed`: the observation that covariances
    /// are with; negative: none. `most_bytes`: of the halves, 4 for each candidate and observation; above, they are not kept.
    PoolPosterior(const GaussianProcess& process, const LevelGeometry& geometry, const CandidatePool& pool, Eigen::MatrixXf regressors,
                  Eigen::Index observed, std::size_t most_bytes)
        : process_(process), geometry_(geometry), pool_(pool), regressors_(std::move(regressors)), model_(PoolModel::of(process)) {
        if (observed >= 0) model_.covariance_weights = process.covariance_weights(observed);
        const std::size_t bytes = sizeof(float) * pool.size() * model_.seen.size();
        now_ = predict_pool(model_, geometry, pool, regressors_, bytes <= most_bytes ? &halves_ : nullptr);
    }
    PoolPosterior(const PoolPosterior&) = delete;
    PoolPosterior& operator=(const PoolPosterior&) = delete;

    [[nodiscard]] const PoolPredictions& now() const { return now_; }

    /// One measurement of `point` is under way; `regressors`: 1 x p.
    void believe(const EncodedPoint& point, const Eigen::RowVectorXd& regressors);

private:
    /// A row of the factor below those of the observations: [seen, rows] and the diagonal.
    struct Row {
        std::vector<EncodedPoint> point;
        Eigen::RowVectorXd regressors;
        Eigen::VectorXd seen;      ///< half k(point)
        std::vector<double> rows;  ///< with the points believed before
        double diagonal = 1;
        double with_observed = 0;   ///< what the observation that covariances are with has in this row
        Eigen::VectorXf of_pool{};  ///< what each candidate has in it
    };
    [[nodiscard]] double prior_covariance(const Row& a, const Row& b) const;

    const GaussianProcess& process_;
    const LevelGeometry& geometry_;
    const CandidatePool& pool_;
    Eigen::MatrixXf regressors_;
    PoolModel model_;
    PoolPredictions now_{};
    Eigen::MatrixXf halves_{};  ///< seen x pool, or empty
    std::vector<Row> believed_{};
};

inline double PoolPosterior::prior_covariance(const Row& a, const Row& b) const {
    const double kernel = covariance(distance_tables(geometry_, a.point, b.point), model_.kernel, 1, 1)(0, 0);
    return kernel + (a.regressors.array() * model_.coefficient_variance.transpose().array() * b.regressors.array()).sum();
}

inline void PoolPosterior::believe(const EncodedPoint& point, const Eigen::RowVectorXd& regressors) {
    Row row{{point}, regressors, {}, {}};
    const Eigen::VectorXd k = process_.cross_covariance(distance_tables(geometry_, model_.points, row.point), regressors).col(0);
    row.seen = model_.half.triangularView<Eigen::Lower>() * k(model_.seen);
    double taken = row.seen.squaredNorm();
    double with_observed = model_.covariance_weights.size() > 0 ? model_.covariance_weights.dot(k) : 0;
    for (const Row& before : believed_) {
        double left = prior_covariance(before, row) - before.seen.dot(row.seen);
        for (std::size_t i = 0; i < row.rows.size(); ++i) left -= before.rows[i] * row.rows[i];
        row.rows.push_back(left / before.diagonal);
        taken += row.rows.back() * row.rows.back();
        with_observed -= row.rows.back() * before.with_observed;
    }
    const double prior = process_.prior_variance(regressors);
    row.diagonal = std::sqrt(std::max(prior - taken, static_cast<double>(least_pool_variance) * prior) + process_.noise_variance());
    row.with_observed = with_observed / row.diagonal;

    const PoolModel alone{row.point,  model_.kernel,           model_.additive_stretch,    {}, {}, {},
                          regressors, model_.coefficient_mean, model_.coefficient_variance};
    const PoolBlocks to_point(alone, geometry_, pool_, regressors_);
    std::optional<PoolBlocks> to_data;
    if (halves_.size() == 0 && row.seen.size() > 0) to_data.emplace(model_, geometry_, pool_, regressors_);
    const Eigen::VectorXf seen = row.seen.cast<float>();
    const auto count = static_cast<Eigen::Index>(pool_.size());
    const auto least = least_pool_variance * static_cast<float>(model_.kernel.prior_variance());
    row.of_pool.resize(count);
    for (Eigen::Index from = 0; from < count; from += PoolBlocks::width) {
        const Eigen::Index width = to_point.width_from(from);
        Eigen::VectorXf left = to_point.covariances(from).row(0).transpose();
        if (to_data) left.noalias() -= to_data->halves(to_data->covariances(from)).transpose() * seen;
        else if (halves_.size() > 0) left.noalias() -= halves_.middleCols(from, width).transpose() * seen;
        for (std::size_t i = 0; i < believed_.size(); ++i)
            left -= static_cast<float>(row.rows[i]) * believed_[i].of_pool.segment(from, width);
        left /= static_cast<float>(row.diagonal);
        now_.variances.segment(from, width) = (now_.variances.segment(from, width) - left.cwiseAbs2()).cwiseMax(least);
        if (now_.covariances.size() > 0) now_.covariances.segment(from, width) -= static_cast<float>(row.with_observed) * left;
        row.of_pool.segment(from, width) = left;
    }
    believed_.push_back(std::move(row));
}

}  // namespace servetune
