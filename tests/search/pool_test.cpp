// SPDX-License-Identifier: Apache-2.0
// What is said of a whole pool of candidates, in single precision, against what is said of each
// point.
#include "search/candidate_ranking.hpp"
#include "support/observed_points.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("a pool is predicted as its points are") {
    const SearchSpace space({Parameter::choice("backend", {"x", "y", "z"}),
                             Parameter::integer("seqs", 16, 1024, Scale::log2),
                             Parameter::real("share", 0, 1), Parameter::boolean("graphs")});
    const SearchSpace discrete = mixed_space();
    for (const SearchSpace* each : {&space, &discrete}) {
        const LevelGeometry geometry(*each);
        const auto points = points_of(*each, geometry, 30);
        const auto others = points_of(*each, geometry, 1100, 12);  // more than two blocks
        CandidatePool pool(geometry);
        for (const EncodedPoint& point : others) pool.add(geometry, point);
        const Observations data = observations_of(points, 0);
        const GaussianProcess process(geometry, data, kernel_of(geometry.dimensions()), 0.05);
        PoolModel of_objective = PoolModel::of(process);
        of_objective.covariance_weights = process.covariance_weights(7);
        const PoolPredictions fast = predict_pool(of_objective, geometry, pool, {});
        const Eigen::VectorXd covariances =
            process.cross_covariance(others, Eigen::MatrixXd::Ones(1100, 1)).transpose() *
            process.covariance_weights(7);
        CHECK((fast.covariances.cast<double>() - covariances).cwiseAbs().maxCoeff() < 2e-4);
        const auto exact = process.predict(others, Eigen::MatrixXd::Ones(1100, 1));
        for (Eigen::Index i = 0; i < 1100; ++i) {
            CHECK(std::abs(double(fast.means(i)) - exact[std::size_t(i)].mean) < 2e-4);
            CHECK(std::abs(double(fast.variances(i)) - exact[std::size_t(i)].variance) < 2e-4);
        }
        std::vector<bool> works;
        for (std::size_t i = 0; i < points.size(); ++i) works.push_back(i % 3 != 0);
        std::vector<double> margins;
        for (std::size_t i = 0; i < points.size(); ++i) margins.push_back(double(i % 5) - 2);
        const FeasibilityModel model(geometry, points, works, margins);
        const Eigen::VectorXd known = Eigen::VectorXd::LinSpaced(1100, -3, 3);
        Eigen::MatrixXf regressors = Eigen::MatrixXf::Ones(1100, 2);
        regressors.col(1) = known.cast<float>();
        const PoolPredictions latent =
            predict_pool(PoolModel::of(model), geometry, pool, regressors);
        const Eigen::VectorXd chances = model.probabilities(others, known);
        for (Eigen::Index i = 0; i < 1100; ++i) {
            const double chance = std::exp(log_normal_cdf(
                double(latent.means(i)) / std::sqrt(1 + double(latent.variances(i)))));
            CHECK(std::abs(chance - chances(i)) < 2e-4);
        }
    }
}

TEST_CASE(
    "a pool is ranked by all means, and by the variances that an even part of many observations "
    "leaves") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 2 * PoolModel::most_seen);
    const auto others = points_of(space, geometry, 50, 12);
    CandidatePool pool(geometry);
    for (const EncodedPoint& point : others) pool.add(geometry, point);
    std::vector<EncodedPoint> even;
    for (std::size_t i = 0; i < points.size(); i += 2) even.push_back(points[i]);
    const GaussianProcess all(geometry, observations_of(points, 0),
                              kernel_of(geometry.dimensions()), 0.05);
    Observations half = all.data();
    half.points = even;
    for (Eigen::VectorXd* list : {&half.values, &half.noise_factors})
        *list = Eigen::VectorXd((*list)(Eigen::seqN(0, PoolModel::most_seen, 2)));
    half.regressors = Eigen::MatrixXd::Ones(PoolModel::most_seen, 1);
    const GaussianProcess seen(geometry, half, kernel_of(geometry.dimensions()), 0.05);
    const PoolPredictions fast = predict_pool(PoolModel::of(all), geometry, pool, {});
    const auto of_all = all.predict(others, Eigen::MatrixXd::Ones(50, 1));
    const auto of_seen = seen.predict(others, Eigen::MatrixXd::Ones(50, 1));
    for (Eigen::Index i = 0; i < 50; ++i) {
        CHECK(std::abs(double(fast.means(i)) - of_all[std::size_t(i)].mean) < 2e-3);
        CHECK(std::abs(double(fast.variances(i)) - of_seen[std::size_t(i)].variance) < 2e-3);
        CHECK(double(fast.variances(i)) > of_all[std::size_t(i)].variance - 2e-3);
    }
    // What works, alike.
    std::vector<bool> works;
    for (std::size_t i = 0; i < points.size(); ++i) works.push_back(points[i].levels[0] != 0);
    const FeasibilityModel model(geometry, points, works);
    const PoolPredictions latent = predict_pool(
        PoolModel::of(model), geometry, pool, Eigen::VectorXf::Ones(50) * Eigen::RowVector2f(1, 0));
    for (Eigen::Index i = 0; i < 50; ++i)
        CHECK((latent.means(i) > 0) == (others[std::size_t(i)].levels[0] != 0));
    CHECK(latent.variances.maxCoeff() < static_cast<float>(model.prior_variance()));
}

TEST_CASE(
    "what a measurement of a candidate can gain beside others under way is bounded by what was "
    "told, whatever they are of") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 30);
    const auto others = points_of(space, geometry, 600, 12);  // more than a block
    CandidatePool pool(geometry);
    for (const EncodedPoint& point : others) pool.add(geometry, point);
    Rng rng(5);
    Eigen::MatrixXd regressors = Eigen::MatrixXd::Ones(600, 2);
    for (double& belief : regressors.col(1)) belief = rng.normal();
    for (const double noise : {0.05, 1.0}) {
        const GaussianProcess told(geometry, observations_of(points, 1),
                                   kernel_of(geometry.dimensions()), noise);
        const auto predicted = [&](const GaussianProcess& process) {
            PoolModel model = PoolModel::of(process, points.size());
            model.covariance_weights = process.covariance_weights(7);
            return predict_pool(model, geometry, pool, regressors.cast<float>());
        };
        const auto spread = static_cast<float>(noise);
        const Prediction best = told.predict({points[7]}, told.data().regressors.row(7)).front();
        const PoolPredictions before = predicted(told);
        const Eigen::VectorXf bounds = log_gain_bounds(
            before.means, before.variances, before.covariances, static_cast<float>(best.mean),
            spread, static_cast<float>(best.variance));
        GaussianProcess grown = told;
        for (int i = 0; i < 12; ++i) {
            const PoolPredictions now = predicted(grown);
            const Eigen::VectorXf gains = log_expected_gains(
                now.means, now.variances, now.covariances, static_cast<float>(best.mean), spread);
            CHECK((bounds - gains).minCoeff() > 0);
            CHECK((now.means - before.means).cwiseAbs().maxCoeff() < 5e-4F);
            CHECK((now.variances - before.variances).maxCoeff() < 1e-4F);
            // The incumbent again, what is near it, what is far.
            const EncodedPoint point = i % 4 == 0 ? points[7] : others[rng.index(others.size())];
            const Eigen::RowVector2d row(1,
                                         i % 4 == 0 ? told.data().regressors(7, 1) : rng.normal());
            grown.append(point, grown.predict({point}, row).front().mean, 1, row);
        }
    }
}

TEST_CASE("the highest of a ranking are those that a sort puts first") {
    Rng rng(4);
    for (const std::size_t most : {1U, 7U, 300U, 5000U}) {
        Eigen::VectorXf scores(3000);
        for (float& score : scores) score = static_cast<float>(rng.index(400));  // many are equal
        scores(17) = -std::numeric_limits<float>::infinity();
        if (most == 7) sort(scores);  // each is above all before it
        std::vector<std::size_t> sorted(3000);
        std::iota(sorted.begin(), sorted.end(), std::size_t{0});
        stable_sort(sorted, [&](std::size_t a, std::size_t b) {
            return scores(static_cast<Eigen::Index>(a)) > scores(static_cast<Eigen::Index>(b));
        });
        sorted.resize(std::min<std::size_t>(most, 3000));
        CHECK(highest(scores, most) == sorted);
    }
    CHECK(highest(Eigen::VectorXf::Ones(3), 0).empty());
    CHECK(highest(Eigen::VectorXf(), 3).empty());
}
