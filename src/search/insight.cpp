// SPDX-License-Identifier: Apache-2.0
#include "insight.hpp"

#include "base/probability.hpp"
#include "model_cache.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {

FittedHistory::FittedHistory(const Problem& of, std::span<const Trial> all,
                             const BayesianOptions& options)
    : problem(of),
      given_beliefs(options.beliefs),
      seed(options.seed.value_or(of.seed)),
      trials(search_history(of, all)),
      beliefs(given_beliefs.fitted_to(trials, of.decision)),
      geometry(of.space),
      standings(trials, of.objective, of.decision, of.space.default_configuration()),
      floor(EffectsFloor::of(of.space, standings)) {}

const PendingAwareModel* FittedHistory::model() const {
    std::call_once(fitted_, [&] {
        if (floor.enough())
            model_.emplace(learned_anew(problem, standings, geometry, beliefs, seed,
                                        OutputScale::Tail::straight));
    });
    return model_ ? &*model_ : nullptr;
}

bool holds(const Configuration& configuration, const ShownLevel& wanted) {
    const Value* value = configuration.find(wanted.parameter->name);
    if (value == nullptr) return false;
    if (*value == wanted.level) return true;
    const bool thinned = wanted.parameter->continuous() ||
                         (std::holds_alternative<IntegerDomain>(wanted.parameter->domain) &&
                          wanted.parameter->level_count() > wanted.shown);
    const auto is = number_of(*value);
    const auto should = number_of(wanted.level);
    if (!thinned || !is || !should || wanted.shown < 2) return false;
    const double half_step = 0.5 / double(wanted.shown - 1);
    return std::abs(wanted.parameter->position_of(*is) - wanted.parameter->position_of(*should)) <=
           half_step;
}

namespace {

bool holds_all(const Configuration& configuration, const std::vector<ShownLevel>& levels) {
    return all_of(levels, [&](const ShownLevel& level) { return holds(configuration, level); });
}

/// A failure that was not its own tells nothing of a configuration.
bool told_of_itself(const Standing& standing) {
    return any_of(standing.trials, [](const Trial* trial) {
        return trial->measurement() != nullptr ||
               (trial->failure() != nullptr && teaches(trial->failure()->kind));
    });
}

}  // namespace

std::size_t measured_with(const std::vector<ConfigurationEvidence>& evidence,
                          const std::vector<ShownLevel>& levels) {
    return count_if(evidence, [&](const ConfigurationEvidence& entry) {
        return entry.measured() && holds_all(entry.configuration, levels);
    });
}

std::string RefusedLevels::why(const std::vector<ShownLevel>& levels) const {
    std::string result;
    std::size_t tried = 0;
    bool any_passes = false;
    for (const Standing& standing : standings_.all()) {
        any_passes = any_passes || standing.passes();
        if (!holds_all(standing.configuration, levels) || !told_of_itself(standing)) continue;
        if (standing.passes() || standing.refusal == Refusal::slower) return "";
        if (tried++ == 0) result = standing.refused;
    }
    if (!any_passes) return "";
    return tried > 1 ? result + " (the first of " + std::to_string(tried) + " configurations)"
                     : result;
}

std::vector<Configuration> RefusedLevels::without(std::vector<Configuration> configurations) const {
    std::erase_if(configurations, [&](const Configuration& one) {
        return any_of(refused_, [&](const ShownLevel& refused) { return holds(one, refused); });
    });
    if (configurations.empty())
        for (const Standing& standing : standings_.all())
            if (standing.passes()) configurations.push_back(standing.configuration);
    return configurations;
}

ModelPoints FittedHistory::points_of(std::span<const Configuration> configurations) const {
    ModelPoints result;
    for (const Configuration& one : configurations) add(one, result);
    return result;
}

void FittedHistory::add(const Configuration& one, ModelPoints& to) const {
    to.points.push_back(geometry.encode(one));
    to.beliefs.push_back(beliefs.of(one));
}

Eigen::VectorXd FittedHistory::means(const ModelPoints& at) const {
    return model()->objective().means(at.points, model()->believed(at.beliefs));
}

std::vector<std::pair<double, JointPrediction>> FittedHistory::joint(const ModelPoints& at) const {
    std::vector<std::pair<double, JointPrediction>> result;
    for (const Expert& expert : model()->objective().experts())
        result.emplace_back(
            expert.weight,
            expert.process.joint(at.points,
                                 Surrogate::regressors(expert, model()->believed(at.beliefs))));
    return result;
}

JointPrediction FittedHistory::posterior_of(const Contrasts& contrasts) const {
    const Eigen::MatrixXd& weights = contrasts.weights;
    JointPrediction result{Eigen::VectorXd::Zero(weights.cols()),
                           Eigen::MatrixXd::Zero(weights.cols(), weights.cols())};
    for (const auto& [weight, expert] : joint(contrasts.at)) {
        const Eigen::VectorXd own = weights.transpose() * expert.means;
        result.means += weight * own;
        result.covariance +=
            weight * (weights.transpose() * (expert.covariance * weights) + own * own.transpose());
    }
    result.covariance -= result.means * result.means.transpose();
    return result;
}

CredibleInterval FittedHistory::as_gain(const Prediction& difference, std::size_t together) const {
    const double spread = model()->scale().spread();
    const double beyond = 0.025 / double(std::max<std::size_t>(together, 1));  // on either side
    const double reach = -normal_quantile(beyond) * std::sqrt(std::max(difference.variance, 0.0));
    return {std::expm1(spread * difference.mean), std::expm1(spread * (difference.mean - reach)),
            std::expm1(spread * (difference.mean + reach))};
}

VariantGrid::VariantGrid(const FittedHistory& fitted, const std::vector<Configuration>& sample,
                         std::vector<Assignment> cells, std::size_t most_rows)
    : fitted_(&fitted), cells_(std::move(cells)) {
    const auto active_in = [](const Assignment& cell, const Configuration& where) {
        return all_of(cell, [&](const auto& entry) { return where.find(entry.first) != nullptr; });
    };
    for (const Configuration& configuration : sample) {
        if (rows_.size() >= most_rows) break;
        if (!active_in(cells_.front(), configuration)) continue;
        Row row;
        std::size_t found = 0;
        for (const Assignment& cell : cells_) {
            Assignment values = configuration.assignment();
            for (const auto& [name, value] : cell) values[name] = value;
            Configuration variant = fitted.problem.space.completed(values);
            const bool possible =
                active_in(cell, variant) && fitted.problem.space.feasible(variant);
            found += possible ? 1 : 0;
            row.push_back(possible ? std::optional(std::move(variant)) : std::nullopt);
        }
        if (found >= 2) rows_.push_back(std::move(row));
    }
}

Eigen::VectorXd VariantGrid::counts(std::size_t rows) const {
    Eigen::VectorXd result = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(cells_.size()));
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cells_.size(); ++c)
            result(static_cast<Eigen::Index>(c)) += rows_[r][c] ? 1 : 0;
    return result;
}

Contrasts VariantGrid::contrasts(const Eigen::MatrixXd& sums, std::size_t most) const {
    const std::size_t rows = std::min(rows_.size(), std::max<std::size_t>(most / cells_.size(), 8));
    const Eigen::VectorXd counts_of_cells = counts(rows);
    const auto own = [&](std::size_t c) -> Eigen::RowVectorXd {
        const auto cell = static_cast<Eigen::Index>(c);
        return sums.row(cell) / counts_of_cells(cell);
    };
    Contrasts result;
    std::vector<Eigen::RowVectorXd> weights;
    for (std::size_t r = 0; r < rows; ++r) {
        const Row& row = rows_[r];
        Eigen::RowVectorXd whole = Eigen::RowVectorXd::Zero(sums.cols());
        double count = 0;
        for (std::size_t c = 0; c < row.size(); ++c)
            if (row[c]) whole += own(c), ++count;
        for (std::size_t c = 0; c < row.size(); ++c) {
            const auto& cell = row[c];
            if (!cell) continue;
            fitted_->add(*cell, result.at);
            weights.emplace_back(own(c) - whole / count);
        }
    }
    result.weights.resize(static_cast<Eigen::Index>(weights.size()), sums.cols());
    for (std::size_t i = 0; i < weights.size(); ++i)
        result.weights.row(static_cast<Eigen::Index>(i)) = weights[i];
    return result;
}

Eigen::VectorXd VariantGrid::averages() const {
    const auto count = static_cast<Eigen::Index>(cells_.size());
    const Contrasts all =
        contrasts(Eigen::MatrixXd::Identity(count, count), rows_.size() * cells_.size());
    return all.weights.transpose() * fitted_->means(all.at);
}

}  // namespace servetune
