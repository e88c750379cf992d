// SPDX-License-Identifier: Apache-2.0
#include "variant_grid.hpp"

#include <utility>

namespace servetune {

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
