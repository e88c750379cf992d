// SPDX-License-Identifier: Apache-2.0
#include "candidate_pool.hpp"

#include <algorithm>

namespace servetune {

namespace {

/// A few dimensions together: for each combination of their levels the sum of what each adds, so
/// that a candidate costs one sum a group and not one a dimension.
struct LevelGroup {
    std::vector<std::size_t> dimensions{};
    Eigen::MatrixXf
        scaled{};  ///< n x combinations: squared distances in length scales to each observation
    Eigen::MatrixXf alone{};  ///< n x combinations: the additive part's covariance with it
};

/// All dimensions that are tables. `share`: of the additive part for each dimension, 0: there is
/// none.
std::vector<LevelGroup> level_groups(const PoolModel& model, const LevelGeometry& geometry,
                                     double share) {
    constexpr Eigen::Index most_combinations = 256;
    const auto n = static_cast<Eigen::Index>(model.points.size());
    std::vector<LevelGroup> groups;
    for (std::size_t d = 0; d < geometry.dimensions(); ++d) {
        if (geometry.continuous(d)) continue;
        const auto levels = static_cast<Eigen::Index>(geometry.level_count(d));
        if (groups.empty() || groups.back().scaled.cols() * levels > most_combinations)
            groups.push_back({{}, Eigen::MatrixXf::Zero(n, 1), Eigen::MatrixXf::Zero(n, 1)});
        LevelGroup& group = groups.back();
        const LevelGroup before = group;
        group.dimensions.push_back(d);
        group.scaled.resize(n, before.scaled.cols() * levels);
        group.alone.resize(n, before.alone.cols() * levels);
        for (Eigen::Index i = 0; i < n; ++i)
            for (Eigen::Index level = 0; level < levels; ++level) {
                const double distance =
                    model.kernel.inverse_squared_lengths(static_cast<Eigen::Index>(d)) *
                    geometry.table(d)(
                        static_cast<Eigen::Index>(model.points[std::size_t(i)].levels[d]), level);
                const double covariance =
                    share > 0 ? share * matern52(model.additive_stretch * distance) : 0;
                for (Eigen::Index c = 0; c < before.scaled.cols(); ++c) {
                    group.scaled(i, c * levels + level) =
                        before.scaled(i, c) + static_cast<float>(distance);
                    group.alone(i, c * levels + level) =
                        before.alone(i, c) + static_cast<float>(covariance);
                }
            }
    }
    return groups;
}

/// A model's view of a pool, block by block.
class PoolBlocks {
public:
    static constexpr Eigen::Index width = 512;  ///< candidates in a block; fewer in the last

    /// All must outlive it. `regressors`: pool x p, or empty where all are ones.
    PoolBlocks(const PoolModel& model, const LevelGeometry& geometry, const CandidatePool& pool,
               const Eigen::MatrixXf& regressors)
        : model_(model),
          geometry_(geometry),
          pool_(pool),
          regressors_(regressors),
          share_(geometry.dimensions() > 0 ? model.additive_variance / double(geometry.dimensions())
                                           : 0),
          groups_(level_groups(model, geometry, share_)),
          half_(model.half.cast<float>()),
          linear_((model.regressors * model.coefficient_variance.asDiagonal()).cast<float>()) {}

    [[nodiscard]] Eigen::Index width_from(Eigen::Index from) const {
        return std::min(width, static_cast<Eigen::Index>(pool_.size()) - from);
    }
    /// w x p.
    [[nodiscard]] Eigen::MatrixXf regressors(Eigen::Index from) const {
        return regressors_.size() > 0
                   ? Eigen::MatrixXf(regressors_.middleRows(from, width_from(from)))
                   : Eigen::MatrixXf::Ones(width_from(from), linear_.cols());
    }
    /// n x w, the share of the regressors included.
    [[nodiscard]] Eigen::MatrixXf covariances(Eigen::Index from) const;
    /// seen x w: half k(x), whose squared norm is what the observations take from the variance of
    /// x.
    [[nodiscard]] Eigen::MatrixXf halves(const Eigen::MatrixXf& covariances) const {
        if (half_.rows() == 0) return Eigen::MatrixXf(0, covariances.cols());
        if (half_.rows() == covariances.rows())
            return half_.triangularView<Eigen::Lower>() * covariances;
        return half_.triangularView<Eigen::Lower>() *
               Eigen::MatrixXf(covariances(model_.seen, Eigen::all));
    }

private:
    const PoolModel& model_;
    const LevelGeometry& geometry_;
    const CandidatePool& pool_;
    const Eigen::MatrixXf& regressors_;
    double share_;  ///< of the additive part for each dimension; 0: there is none
    std::vector<LevelGroup> groups_;
    Eigen::MatrixXf half_;
    Eigen::MatrixXf linear_;
};

Eigen::MatrixXf PoolBlocks::covariances(Eigen::Index from) const {
    const auto n = static_cast<Eigen::Index>(model_.points.size());
    const Eigen::Index count = width_from(from);
    const KernelParameters& kernel = model_.kernel;
    Eigen::MatrixXf squared = Eigen::MatrixXf::Zero(n, count);
    Eigen::MatrixXf result = Eigen::MatrixXf::Zero(n, count);
    for (const LevelGroup& group : groups_) {
        Eigen::ArrayXi combinations = Eigen::ArrayXi::Zero(count);
        for (const std::size_t d : group.dimensions) {
            const auto level_count = static_cast<int>(geometry_.level_count(d));
            const std::uint16_t* levels = pool_.levels(d).data() + from;
            for (Eigen::Index j = 0; j < count; ++j)
                combinations(j) = combinations(j) * level_count + levels[j];
        }
        for (Eigen::Index j = 0; j < count; ++j) {
            const Eigen::Index combination = combinations(j);
            squared.col(j) += group.scaled.col(combination);
            if (share_ > 0) result.col(j) += group.alone.col(combination);
        }
    }
    for (std::size_t d = 0; d < geometry_.dimensions(); ++d)
        for (Eigen::Index j = 0; j < count && geometry_.continuous(d); ++j) {
            const EncodedPoint point = pool_.point(std::size_t(from + j));
            for (Eigen::Index i = 0; i < n; ++i) {
                const double distance =
                    kernel.inverse_squared_lengths(static_cast<Eigen::Index>(d)) *
                    geometry_.squared_distance(d, model_.points[std::size_t(i)], point);
                squared(i, j) += static_cast<float>(distance);
                if (share_ > 0)
                    result(i, j) +=
                        static_cast<float>(share_ * matern52(model_.additive_stretch * distance));
            }
        }
    squared = (5.0F * squared).cwiseSqrt();  // q of Matern-5/2
    result.array() += static_cast<float>(kernel.product_variance) *
                      (1.0F + squared.array() + squared.array().square() * (1.0F / 3.0F)) *
                      (-squared.array()).exp();
    result.noalias() += linear_ * regressors(from).transpose();
    return result;
}

/// Of the prior's: what single precision leaves of a variance that is nothing.
constexpr float least_pool_variance = 1e-6F;

}  // namespace

PoolPredictions predict_pool(const PoolModel& model, const LevelGeometry& geometry,
                             const CandidatePool& pool, const Eigen::MatrixXf& regressors) {
    const auto count = static_cast<Eigen::Index>(pool.size());
    PoolPredictions result{Eigen::VectorXf(count), Eigen::VectorXf(count)};
    if (model.covariance_weights.size() > 0) result.covariances.resize(count);
    const PoolBlocks blocks(model, geometry, pool, regressors);
    const Eigen::VectorXf weights = model.weights.cast<float>();
    const Eigen::VectorXf covariance_weights = model.covariance_weights.cast<float>();
    const Eigen::VectorXf coefficient_mean = model.coefficient_mean.cast<float>();
    const Eigen::VectorXf coefficient_variance = model.coefficient_variance.cast<float>();
    const auto prior = static_cast<float>(model.kernel.product_variance + model.additive_variance);
    for (Eigen::Index from = 0; from < count; from += PoolBlocks::width) {
        const Eigen::MatrixXf covariances = blocks.covariances(from);
        const Eigen::MatrixXf half = blocks.halves(covariances);
        const Eigen::MatrixXf h = blocks.regressors(from);
        result.means.segment(from, half.cols()).noalias() = h * coefficient_mean;
        result.means.segment(from, half.cols()).noalias() += covariances.transpose() * weights;
        if (result.covariances.size() > 0)
            result.covariances.segment(from, half.cols()).noalias() =
                covariances.transpose() * covariance_weights;
        result.variances.segment(from, half.cols()) =
            (prior + (h.cwiseAbs2() * coefficient_variance).array() -
             half.colwise().squaredNorm().transpose().array())
                .max(least_pool_variance * prior);
    }
    return result;
}

}  // namespace servetune
