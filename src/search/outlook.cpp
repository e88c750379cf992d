// SPDX-License-Identifier: Apache-2.0
#include "servetune/explanation.hpp"

#include "candidates.hpp"
#include "insight.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace servetune {
namespace {

constexpr std::size_t most_drawn = 2000;  ///< of the space; scored one by one
constexpr std::size_t most_joint =
    250;                    ///< of these, by expected improvement: their covariance is O(n^3)
constexpr double runs = 4;  ///< once in the search, and three rounds after it
constexpr std::size_t most_worlds = 1000;  ///< drawn: a chance of 5 % is good to 0.7 points

/// Values of all points in one world, standardised: n.
using World = Eigen::VectorXd;

/// Joint draws from the mixture: of each expert as many as it weighs.
std::vector<World> drawn_worlds(const FittedHistory& fitted, const ModelPoints& at, Rng& rng) {
    const auto n = static_cast<Eigen::Index>(at.points.size());
    std::vector<World> result;
    double all = 0;
    for (const auto& [weight, expert] : fitted.joint(at)) {
        all += weight;
        const auto until = std::size_t(std::lround(std::min(all, 1.0) * double(most_worlds)));
        if (until <= result.size()) continue;
        Eigen::MatrixXd covariance = expert.covariance;
        covariance.diagonal().array() +=
            1e-8 * std::max(covariance.diagonal().maxCoeff(), 1e-6);  // rounding
        const Eigen::MatrixXd factor = Eigen::LLT<Eigen::MatrixXd>(covariance).matrixL();
        while (result.size() < until) {
            Eigen::VectorXd normal(n);
            for (Eigen::Index i = 0; i < n; ++i) normal(i) = rng.normal();
            result.push_back(expert.means + factor.triangularView<Eigen::Lower>() * normal);
        }
    }
    return result;
}

double world_quantile(const std::vector<double>& sorted, double share) {
    return sorted[std::size_t(share * double(sorted.size() - 1) + 0.5)];
}

/// Neighbours of `from` and an even draw, always the same one, of what has no outcome.
std::vector<Configuration> untried(const FittedHistory& fitted, const Configuration& from) {
    std::set<Configuration> told;
    for (const Trial& trial : fitted.trials)
        if (trial.told()) told.insert(trial.configuration);
    std::vector<Configuration> result;
    std::set<Configuration> seen;
    const auto add = [&](const Configuration& one) {
        if (!told.contains(one) && seen.insert(one).second) result.push_back(one);
    };
    const FeasibleSet& feasible = fitted.problem.feasible;
    if (feasible.finite() && feasible.size() <= double(most_drawn)) {
        feasible.for_each([&](const Configuration& one) { return add(one), true; });
        return result;
    }
    for (const Configuration& one : neighbours(fitted.problem.space, from))
        if (result.size() < most_drawn && fitted.problem.space.feasible(one)) add(one);
    Rng rng(fingerprint_of(Candidates::key_of(fitted.problem)).bits);
    for (std::size_t i = 0; i < 2 * most_drawn && result.size() < most_drawn; ++i)
        add(feasible.sample(rng));
    return result;
}

}  // namespace

FurtherGain Explanation::further(const Configuration& from, std::size_t trials,
                                 double least) const {
    const std::vector<Configuration> candidates = untried(*fitted_, from);
    FurtherGain result{trials, {}, 0, candidates.size()};
    if (candidates.empty() || trials == 0) return result;
    const PendingAwareModel& model = *fitted_->model();
    const ModelPoints all = fitted_->points_of(candidates);
    const std::vector<CandidateScore> scores = model.scores(all.points, all.beliefs);
    std::vector<std::size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    stable_sort(
        order, [&](std::size_t a, std::size_t b) { return scores[a].total() > scores[b].total(); });
    order.resize(std::min(order.size(), most_joint));

    std::vector<Configuration> joint{from};
    std::vector<double> chances{1};
    for (const std::size_t i : order) {
        joint.push_back(candidates[i]);
        chances.push_back(std::exp(scores[i].log_works + scores[i].log_limits));
    }
    Rng rng(derive_seed(fingerprint_of(Candidates::key_of(fitted_->problem)).bits,
                        fitted_->trials.size()));
    const std::vector<World> drawn = drawn_worlds(*fitted_, fitted_->points_of(joint), rng);
    // What passes in each world, and the best that does: what a trial chosen by it measures.
    std::vector<std::vector<char>> passes;
    std::vector<Eigen::Index> best;
    for (const World& world : drawn) {
        std::vector<char>& mine = passes.emplace_back();
        Eigen::Index top = -1;
        for (std::size_t j = 0; j < chances.size(); ++j) {
            mine.push_back(j == 0 || rng.uniform() < chances[j] ? 1 : 0);
            const auto at = static_cast<Eigen::Index>(j);
            if (j > 0 && mine.back() != 0 && (top < 0 || world(at) > world(top))) top = at;
        }
        best.push_back(top);
    }
    const auto better_by = [&](std::size_t w, Eigen::Index j) { return drawn[w](j) - drawn[w](0); };
    const double noise = fitted_->problem.replicates_inform ? model.noise_variance() / runs : 0;
    std::vector<double> means(chances.size(), 0.0);
    std::vector<double> squares(chances.size(), 0.0);
    for (std::size_t w = 0; w < drawn.size(); ++w)
        for (std::size_t j = 0; j < chances.size(); ++j) {
            const double difference = better_by(w, static_cast<Eigen::Index>(j));
            means[j] += difference / double(drawn.size());
            squares[j] += difference * difference / double(drawn.size());
        }
    const double worth_having = std::log1p(least) / model.scale().spread();
    std::vector<double> gains;
    std::size_t changed = 0;
    for (std::size_t w = 0; w < drawn.size(); ++w) {
        std::vector<char> measured(chances.size(), 0);
        double highest = worth_having;
        double gained = 0;
        bool another = false;
        for (std::size_t k = 0; k < trials; ++k) {
            const Eigen::Index chosen = best[(w + 1 + rng.index(drawn.size() - 1)) % drawn.size()];
            const auto j = std::size_t(std::max<Eigen::Index>(chosen, 0));
            if (chosen <= 0 || passes[w][j] == 0 || measured[j] != 0) continue;
            measured[j] = 1;
            const double variance = std::max(squares[j] - means[j] * means[j], 1e-300);
            const double seen = better_by(w, chosen) + std::sqrt(noise) * rng.normal();
            const double estimate = means[j] + variance / (variance + noise) * (seen - means[j]);
            if (estimate < highest) continue;
            highest = estimate;
            gained = better_by(w, chosen);
            another = true;
        }
        gains.push_back(std::expm1(model.scale().spread() * gained));
        changed += another ? 1 : 0;
    }
    sort(gains);
    const auto count = double(gains.size());
    result.gain = {std::accumulate(gains.begin(), gains.end(), 0.0) / count,
                   world_quantile(gains, 0.025), world_quantile(gains, 0.975)};
    result.chance_changed = double(changed) / count;
    return result;
}

}  // namespace servetune
