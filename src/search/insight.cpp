// SPDX-License-Identifier: Apache-2.0
#include "insight.hpp"

#include "effects.hpp"

#include "base/probability.hpp"
#include "model_cache.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {

FittedHistory::FittedHistory(const Problem& of, std::span<const Trial> all,
                             const Bayesian& strategy, const Beliefs& known)
    : problem(of),
      bayesian(strategy),
      trials(search_history(of, all)),
      beliefs(known.fitted_to(trials, of.decision)),
      geometry(of.space),
      standings(trials, of.objective, of.decision, of.space.default_configuration()),
      floor(EffectsFloor::of(of.space, standings)) {}

std::shared_ptr<const FittedHistory> fitted_history(const Problem& problem,
                                                    std::span<const Trial> trials,
                                                    const Bayesian& bayesian,
                                                    const Beliefs& beliefs) {
    return std::make_shared<const FittedHistory>(problem, trials, bayesian, beliefs);
}

const PendingAwareModel* FittedHistory::model() const {
    std::call_once(fitted_, [&] {
        if (floor.enough())
            model_.emplace(learned_anew(problem, standings, geometry, bayesian.options(),
                                        OutputScale::Tail::straight));
    });
    return model_ ? &*model_ : nullptr;
}

std::vector<Prediction> posterior_of(const PendingAwareModel& model, const LevelGeometry& geometry,
                                     const Contrasts& contrasts) {
    const Eigen::Index count = contrasts.weights.cols();
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(count);
    Eigen::VectorXd square = Eigen::VectorXd::Zero(count);
    const Eigen::MatrixXd believed = model.believed(contrasts.beliefs);
    const auto& experts = model.objective().experts();
    const DistanceTables to_data =
        distance_tables(geometry, experts.front().process.data().points, contrasts.points);
    const DistanceTables among = distance_tables(geometry, contrasts.points, contrasts.points);
    for (const Expert& expert : experts) {
        const Eigen::MatrixXd regressors = Surrogate::regressors(expert, believed);
        const std::vector<Prediction> predictions = expert.process.predict(to_data, regressors);
        Eigen::VectorXd means(contrasts.weights.rows());
        for (Eigen::Index i = 0; i < means.size(); ++i)
            means(i) = predictions[static_cast<std::size_t>(i)].mean;
        const Eigen::MatrixXd covariance =
            expert.process.posterior_covariance(to_data, among, regressors);
        const Eigen::VectorXd own = contrasts.weights.transpose() * means;
        const Eigen::VectorXd variances =
            contrasts.weights.cwiseProduct(covariance * contrasts.weights)
                .colwise()
                .sum()
                .transpose();
        mean += expert.weight * own;
        square += expert.weight * (variances.cwiseMax(0.0) + own.cwiseAbs2());
    }
    std::vector<Prediction> result;
    for (Eigen::Index j = 0; j < count; ++j)
        result.push_back({mean(j), std::max(square(j) - mean(j) * mean(j), 0.0)});
    return result;
}

CredibleInterval as_gain(const PendingAwareModel& model, const Prediction& difference,
                         std::size_t together) {
    const double spread = model.scale().spread();
    const double beyond =
        0.025 / static_cast<double>(std::max<std::size_t>(together, 1));  // on either side
    const double reach = -normal_quantile(beyond) * std::sqrt(difference.variance);
    return {std::expm1(spread * difference.mean), std::expm1(spread * (difference.mean - reach)),
            std::expm1(spread * (difference.mean + reach))};
}

std::vector<double> means_of(const PendingAwareModel& model, const LevelGeometry& geometry,
                             const Beliefs& beliefs,
                             const std::vector<Configuration>& configurations) {
    CandidatePool pool(geometry);
    std::vector<std::vector<PriorBelief>> believed_of_each;
    for (const Configuration& configuration : configurations) {
        pool.add(geometry, geometry.encode(configuration));
        believed_of_each.push_back(beliefs.of(configuration));
    }
    const Eigen::MatrixXd believed = model.believed(believed_of_each);
    std::vector<double> result(configurations.size());
    for (const Expert& expert : model.objective().experts()) {
        const PoolPredictions predictions =
            predict_pool(PoolModel::of(expert.process), geometry, pool,
                         Surrogate::regressors(expert, believed).cast<float>());
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] += expert.weight *
                         static_cast<double>(predictions.means(static_cast<Eigen::Index>(i)));
    }
    return result;
}

VariantGrid::VariantGrid(const Problem& problem, const std::vector<Configuration>& sample,
                         std::vector<Assignment> cells, std::size_t most_rows)
    : cells_(std::move(cells)) {
    const auto active_in = [](const Assignment& cell, const Configuration& where) {
        return std::all_of(cell.begin(), cell.end(),
                           [&](const auto& entry) { return where.find(entry.first) != nullptr; });
    };
    for (const Configuration& configuration : sample) {
        if (rows_.size() >= most_rows) break;
        if (!active_in(cells_.front(), configuration)) continue;
        Row row;
        std::size_t found = 0;
        for (const Assignment& cell : cells_) {
            Assignment values = configuration.assignment();
            for (const auto& [name, value] : cell) values[name] = value;
            Configuration variant = problem.space.completed(values);
            const bool possible = active_in(cell, variant) && problem.space.feasible(variant);
            found += possible ? 1 : 0;
            row.push_back(possible ? std::optional(std::move(variant)) : std::nullopt);
        }
        if (found >= 2) rows_.push_back(std::move(row));
    }
}

VariantGrid::Averages VariantGrid::averages(const PendingAwareModel& model,
                                            const LevelGeometry& geometry,
                                            const Beliefs& beliefs) const {
    std::vector<Configuration> all;
    for (const Row& row : rows_)
        for (const auto& cell : row)
            if (cell) all.push_back(*cell);
    const std::vector<double> means = means_of(model, geometry, beliefs, all);
    const auto cells = static_cast<Eigen::Index>(cells_.size());
    Averages result{Eigen::VectorXd::Zero(cells), Eigen::VectorXd::Zero(cells)};
    std::size_t from = 0;
    for (const Row& row : rows_) {
        double sum = 0;
        std::size_t count = 0;
        for (const auto& cell : row)
            if (cell) sum += means[from + count++];
        for (std::size_t c = 0; c < row.size(); ++c) {
            if (!row[c]) continue;
            result.values(static_cast<Eigen::Index>(c)) +=
                means[from++] - sum / static_cast<double>(count);
            ++result.counts(static_cast<Eigen::Index>(c));
        }
    }
    result.values.array() /= result.counts.array().max(1);
    return result;
}

Contrasts VariantGrid::contrasts(const Eigen::MatrixXd& sums, const LevelGeometry& geometry,
                                 const Beliefs& beliefs) const {
    std::vector<double> counts(cells_.size(), 0);
    for (const Row& row : rows_)
        for (std::size_t c = 0; c < row.size(); ++c) counts[c] += row[c] ? 1 : 0;
    Contrasts result;
    std::vector<Eigen::RowVectorXd> weights;
    for (const Row& row : rows_) {
        Eigen::RowVectorXd whole = Eigen::RowVectorXd::Zero(sums.cols());
        double count = 0;
        for (std::size_t c = 0; c < row.size(); ++c)
            if (row[c]) {
                whole += sums.row(static_cast<Eigen::Index>(c)) / counts[c];
                ++count;
            }
        for (std::size_t c = 0; c < row.size(); ++c) {
            const auto& cell = row[c];
            if (!cell) continue;
            result.points.push_back(geometry.encode(*cell));
            result.beliefs.push_back(beliefs.of(*cell));
            weights.emplace_back(sums.row(static_cast<Eigen::Index>(c)) / counts[c] -
                                 whole / count);
        }
    }
    result.weights.resize(static_cast<Eigen::Index>(weights.size()), sums.cols());
    for (std::size_t i = 0; i < weights.size(); ++i)
        result.weights.row(static_cast<Eigen::Index>(i)) = weights[i];
    return result;
}

}  // namespace servetune
