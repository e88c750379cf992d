// SPDX-License-Identifier: Apache-2.0
// The models of the optimizer against dense references, finite differences and brute force.
#include "search/expected_improvement.hpp"
#include "search/output_scale.hpp"
#include "search/surrogate.hpp"
#include "servetune/error.hpp"
#include "support/observed_points.hpp"
#include "support/test.hpp"

#include <Eigen/LU>

#include <cmath>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "Gaussian process: the posterior is that of the dense formulas, appended rows and left out "
    "points too") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 40);
    const auto others = points_of(space, geometry, 15, 9);
    const Observations data = observations_of(points, 2);
    const KernelParameters kernel = kernel_of(geometry.dimensions());
    const double noise = 0.05;
    const DistanceTables tables = distance_tables(geometry, points, points);
    const GaussianProcess process(geometry, data, kernel, noise);

    Eigen::MatrixXd h(15, 3);
    Rng rng(5);
    for (Eigen::Index i = 0; i < h.rows(); ++i) h.row(i) << 1, rng.normal(), rng.normal();
    const auto predictions = process.predict(others, h);
    // Rasmussen and Williams, eq. 2.23 and 2.24, with an inverse and no factor.
    const Eigen::MatrixXd b = data.coefficient_variance.asDiagonal();
    Eigen::MatrixXd k = covariance(geometry, points, points, kernel) +
                        data.regressors * b * data.regressors.transpose();
    k.diagonal() += noise * data.noise_factors;
    const Eigen::MatrixXd inverse = k.fullPivLu().inverse();
    const Eigen::MatrixXd cross =
        covariance(geometry, points, others, kernel) + data.regressors * b * h.transpose();
    const Eigen::VectorXd residual = data.values - data.regressors * data.coefficient_mean;
    const Eigen::VectorXd means =
        h * data.coefficient_mean + cross.transpose() * inverse * residual;
    const Eigen::MatrixXd among = covariance(geometry, others, others, kernel) +
                                  h * b * h.transpose() - cross.transpose() * inverse * cross;
    const JointPrediction joint = process.joint(others, h);
    CHECK((joint.means - means).cwiseAbs().maxCoeff() < 1e-8);
    CHECK((joint.covariance - among).cwiseAbs().maxCoeff() < 1e-8);
    for (std::size_t j = 0; j < predictions.size(); ++j) {
        const auto at = static_cast<Eigen::Index>(j);
        CHECK(std::abs(predictions[j].mean - means(at)) < 1e-8);
        CHECK(std::abs(predictions[j].variance - among(at, at)) < 1e-8);
    }
    // The same, the last ten observations appended one by one.
    Observations first = data;
    first.points.resize(30);
    first.values.conservativeResize(30);
    first.noise_factors.conservativeResize(30);
    first.regressors.conservativeResize(30, 3);
    GaussianProcess grown(geometry, first, kernel, noise);
    for (std::size_t i = 30; i < 40; ++i) {
        const auto at = static_cast<Eigen::Index>(i);
        grown.append(points[i], data.values(at), data.noise_factors(at), data.regressors.row(at));
    }
    const auto again = grown.predict(others, h);
    for (std::size_t j = 0; j < again.size(); ++j) {
        CHECK(std::abs(again[j].mean - predictions[j].mean) < 1e-8);
        CHECK(std::abs(again[j].variance - predictions[j].variance) < 1e-8);
    }

    const auto left_out = process.leave_one_out();
    for (const std::size_t i : {0U, 17U, 39U}) {
        Observations rest = data;
        rest.points.erase(rest.points.begin() + std::ptrdiff_t(i));
        const auto drop = [&](const auto& from, auto& into) {
            Eigen::Index to = 0;
            for (Eigen::Index row = 0; row < 40; ++row)
                if (row != static_cast<Eigen::Index>(i)) into.row(to++) = from.row(row);
        };
        rest.values.resize(39);
        rest.noise_factors.resize(39);
        rest.regressors.resize(39, 3);
        drop(data.values, rest.values);
        drop(data.noise_factors, rest.noise_factors);
        drop(data.regressors, rest.regressors);
        const GaussianProcess without(geometry, rest, kernel, noise);
        const auto at = static_cast<Eigen::Index>(i);
        const Prediction expected = without.predict({points[i]}, data.regressors.row(at)).front();
        CHECK(std::abs(left_out[i].mean - expected.mean) < 1e-8);
        CHECK(std::abs(left_out[i].variance - expected.variance - noise * data.noise_factors(at)) <
              1e-8);
    }

    // A regressor's coefficient: by the joint normal of b and y.
    for (Eigen::Index p = 0; p < 3; ++p) {
        const Eigen::VectorXd with_values = data.regressors.col(p) * data.coefficient_variance(p);
        const Prediction coefficient = process.coefficient(p);
        CHECK(std::abs(coefficient.mean - data.coefficient_mean(p) -
                       with_values.dot(inverse * residual)) < 1e-8);
        CHECK(std::abs(coefficient.variance - data.coefficient_variance(p) +
                       with_values.dot(inverse * with_values)) < 1e-8);
    }
}

TEST_CASE("Gaussian process: what is hard for numbers is borne or refused") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    auto points = points_of(space, geometry, 6);
    for (std::size_t i = 0; i < 30; ++i)
        points.push_back(points[i % 6]);  // the same six again and again
    for (const double noise : {1e-12, 1e-2}) {
        for (const double decades : {1e-6, 1.0, 1e6}) {
            Observations data = observations_of(points, 0);
            data.values *= decades;
            const GaussianProcess process(geometry, data, kernel_of(geometry.dimensions()), noise);
            for (const Prediction& prediction : process.predict(points, data.regressors)) {
                CHECK(std::isfinite(prediction.mean));
                CHECK(prediction.variance > 0);
            }
        }
    }
    Observations constant = observations_of(points, 0);
    constant.values.setZero();
    const Hyperparameters hyperparameters(HyperparameterPriors::of(geometry));
    const auto modes = fit_hyperparameters(hyperparameters,
                                           distance_tables(geometry, points, points), constant, 1);
    CHECK(modes.front().theta.allFinite());

    Observations one = observations_of({points.front()}, 0);
    CHECK(fit_hyperparameters(hyperparameters, distance_tables(geometry, one.points, one.points),
                              one, 1)
              .front()
              .theta.allFinite());
    Observations none = observations_of({}, 0);
    const GaussianProcess prior(geometry, none, kernel_of(geometry.dimensions()), 0.1);
    const Prediction nothing_known =
        prior.predict({points.front()}, Eigen::MatrixXd::Ones(1, 1)).front();
    CHECK(nothing_known.mean == 0);
    CHECK(nothing_known.variance == Approx(0.8 + 0.25));

    Observations bad = observations_of(points, 0);
    bad.values(3) = std::nan("");
    CHECK(has(message_of<UsageError>([&] {
                  (void)GaussianProcess(geometry, bad, kernel_of(geometry.dimensions()), 0.1);
              }),
              "finite"));
    bad.values.conservativeResize(5);
    CHECK_THROWS_AS(GaussianProcess(geometry, bad, kernel_of(geometry.dimensions()), 0.1),
                    UsageError);
}

TEST_CASE(
    "hyperparameters: the gradient is that of the value, and a fit never loses to its start") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 25);
    const Observations data = observations_of(points, 1);
    const DistanceTables tables = distance_tables(geometry, points, points);
    const Hyperparameters hyperparameters(HyperparameterPriors::of(geometry));
    Rng rng(3);
    for (int draw = 0; draw < 5; ++draw) {
        const Eigen::VectorXd theta = hyperparameters.prior_draw(rng);
        Eigen::VectorXd gradient;
        hyperparameters.negative_log_posterior(tables, data, theta, gradient);
        for (Eigen::Index i = 0; i < theta.size(); ++i) {
            constexpr double step = 1e-4;  // smaller ones meet the value's rounding
            Eigen::VectorXd unused;
            Eigen::VectorXd up = theta;
            Eigen::VectorXd down = theta;
            up(i) += step;
            down(i) -= step;
            const double slope =
                (hyperparameters.negative_log_posterior(tables, data, up, unused) -
                 hyperparameters.negative_log_posterior(tables, data, down, unused)) /
                (2 * step);
            CHECK(gradient(i) == Approx(slope).epsilon(1e-5).margin(1e-6));
        }
    }
    Eigen::VectorXd gradient;
    const double start = hyperparameters.negative_log_posterior(
        tables, data, hyperparameters.prior_mode(), gradient);
    const auto modes = fit_hyperparameters(hyperparameters, tables, data, 7);
    CHECK(modes.front().negative_log_posterior <= start);
    hyperparameters.negative_log_posterior(tables, data, modes.front().theta, gradient);
    CHECK(gradient.cwiseAbs().maxCoeff() < 0.05);
    double weights = 0;
    for (const auto& mode : modes) weights += mode.weight;
    CHECK(weights == Approx(1));
    CHECK(fit_hyperparameters(hyperparameters, tables, data, 7).front().theta ==
          modes.front().theta);
}

TEST_CASE("L-BFGS: known minima, and functions that are not everywhere finite") {
    const auto rosenbrock = [](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
        const double a = 1 - x(0);
        const double b = x(1) - x(0) * x(0);
        gradient.resize(2);
        gradient << -2 * a - 400 * x(0) * b, 200 * b;
        return a * a + 100 * b * b;
    };
    const LbfgsResult result = minimise_lbfgs(rosenbrock, Eigen::Vector2d(-1.2, 1), {200, 8, 1e-8});
    CHECK(result.point(0) == Approx(1).epsilon(1e-5));
    CHECK(result.point(1) == Approx(1).epsilon(1e-5));
    const auto walled = [](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
        gradient = Eigen::VectorXd::Constant(1, 1 - 1 / x(0));
        return x(0) > 0 ? x(0) - std::log(x(0)) : std::nan("");
    };
    CHECK(minimise_lbfgs(walled, Eigen::VectorXd::Constant(1, 5.0)).point(0) ==
          Approx(1).epsilon(1e-3));
    const auto hopeless = [](const Eigen::VectorXd&, Eigen::VectorXd& gradient) {
        gradient(0) = 0;
        return std::nan("");
    };
    CHECK(minimise_lbfgs(hopeless, Eigen::VectorXd::Constant(1, 2.0)).point(0) == 2);
}

TEST_CASE(
    "surrogate: a belief that is right is used, one that points the wrong way is dropped, one that "
    "is constant does no harm") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto fitted = [&](double slope, Eigen::Index n = 30, double error = 1) {
        Rng rng(4);
        SurrogateData data;
        data.points = points_of(space, geometry, std::size_t(n));
        data.values.resize(n);
        for (double& value : data.values)
            value = rng.normal();  // nothing that the kernel could know
        data.noise_factors = Eigen::VectorXd::Ones(n);
        data.beliefs = slope * data.values;
        data.belief_error = error;
        return Surrogate(geometry, data, 1);
    };
    CHECK(fitted(1, 6).belief_weight() > 0.7);
    CHECK(fitted(1).belief_weight() ==
          Approx(5.0 / 30));  // worth five values, however right it is of them
    CHECK(fitted(1, 30, 0.5).belief_weight() == Approx(20.0 / 30));  // as checked, four times more
    CHECK(fitted(-1).belief_weight() == 0);
    CHECK(fitted(0, 6).belief_weight() < 0.6);
    for (const double slope : {1.0, -1.0, 0.0}) {
        double weights = 0;
        const Surrogate surrogate = fitted(slope);
        for (const Expert& expert : surrogate.experts()) weights += expert.weight;
        CHECK(weights == Approx(1));
    }
    // One that says nothing does not take the others with it, whichever comes first.
    for (const bool noise_first : {false, true}) {
        Rng rng(4);
        SurrogateData data;
        data.points = points_of(space, geometry, 30);
        data.values.resize(30);
        data.beliefs.resize(30, 2);
        for (Eigen::Index i = 0; i < 30; ++i) data.values(i) = rng.normal();
        data.beliefs.col(noise_first ? 1 : 0) = data.values;
        data.beliefs.col(noise_first ? 0 : 1) =
            -0.3 * data.values + Eigen::VectorXd::NullaryExpr(30, [&] { return rng.normal(); });
        data.noise_factors = Eigen::VectorXd::Ones(30);
        const Surrogate both(geometry, data, 1);
        CHECK(both.belief_weight() == Approx(5.0 / 30));
        const auto believing =
            find_if(both.experts(), [](const Expert& expert) { return !expert.beliefs.empty(); });
        REQUIRE(believing != both.experts().end());
        CHECK(believing->beliefs == std::vector<Eigen::Index>{noise_first ? 1 : 0});
        // Only its own column moves a prediction.
        const auto place = points_of(space, geometry, 1, 77);
        const auto mean = [&](double right, double wrong) {
            return both
                .mixed(place, noise_first ? Eigen::RowVector2d(wrong, right)
                                          : Eigen::RowVector2d(right, wrong))
                .front()
                .mean;
        };
        CHECK(mean(1, 0) > mean(0, 0));
        CHECK(mean(1, 2) == mean(1, 0));
    }
    // A pending point: its variance falls, its mean stays.
    Surrogate pending = fitted(1);
    const auto other = points_of(space, geometry, 1, 77);
    const Eigen::MatrixXd belief = Eigen::MatrixXd::Constant(1, 1, 0.3);
    const Prediction before = pending.mixed(other, belief).front();
    pending.believe(other.front(), belief.row(0));
    const Prediction after = pending.mixed(other, belief).front();
    CHECK(after.mean == Approx(before.mean).margin(1e-6));
    CHECK(after.variance < before.variance);
}

TEST_CASE(
    "surrogate: of many observations an even part decides the lengths, all of them the posterior") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    constexpr Eigen::Index most = 128;
    SurrogateData all;
    all.points = points_of(space, geometry, 2 * most);
    all.values.resize(2 * most);
    for (Eigen::Index i = 0; i < 2 * most; ++i)
        all.values(i) = std::sin(double(all.points[std::size_t(i)].levels[0]) + 0.1 * double(i));
    all.noise_factors = Eigen::VectorXd::Ones(2 * most);
    all.beliefs.resize(2 * most, 0);
    SurrogateData half = all;
    half.points.clear();
    for (std::size_t i = 0; i < all.points.size(); i += 2) half.points.push_back(all.points[i]);
    half.values = all.values(Eigen::seqN(0, most, 2));
    half.noise_factors = Eigen::VectorXd::Ones(most);
    half.beliefs.resize(most, 0);
    const auto first = [&](const SurrogateData& data) {
        return Surrogate(geometry, data, 3, quick_search).experts().front().process;
    };
    const GaussianProcess thinned = first(all);
    CHECK(thinned.size() == 2 * most);
    CHECK(thinned.kernel().inverse_squared_lengths == first(half).kernel().inverse_squared_lengths);
}

TEST_CASE("kernel: a covariance is Matern of the squared distances in length scales") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 35, 8);
    const KernelParameters kernel = kernel_of(geometry.dimensions());
    const Eigen::MatrixXd all = covariance(geometry, points, points, kernel);
    for (std::size_t i = 0; i < points.size(); ++i)
        for (std::size_t j = 0; j < points.size(); ++j) {
            double squared = 0;
            for (std::size_t d = 0; d < geometry.dimensions(); ++d)
                squared += kernel.inverse_squared_lengths(static_cast<Eigen::Index>(d)) *
                           geometry.squared_distance(d, points[i], points[j]);
            CHECK(std::abs(all(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) -
                           kernel.product_variance * matern52(squared)) < 1e-14);
        }
}

TEST_CASE(
    "feasibility: Laplace's mode is one, crashes spread to what is alike, and nothing known is the "
    "prior") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 40);
    std::vector<bool> works;
    for (const EncodedPoint& point : points)
        works.push_back(point.levels[2] != 1);  // one back end crashes
    const FeasibilityModel model(geometry, points, works);
    const auto others = points_of(space, geometry, 200, 8);
    const Eigen::VectorXd chances = model.probabilities(
        others, Eigen::VectorXd::Zero(static_cast<Eigen::Index>(others.size())));
    double right = 0;
    for (std::size_t i = 0; i < others.size(); ++i)
        right +=
            (chances(static_cast<Eigen::Index>(i)) > 0.5) == (others[i].levels[2] != 1) ? 1 : 0;
    CHECK(right / 200 > 0.95);

    const FeasibilityModel nothing(geometry, {}, {});
    CHECK(nothing.probabilities(others, Eigen::VectorXd::Zero(200)).maxCoeff() == Approx(0.7));
    const Eigen::VectorXd doubtful =
        nothing.probabilities({others.front()}, Eigen::VectorXd::Constant(1, -3));
    CHECK(doubtful(0) < 0.6);

    // What is known beforehand is used, and outweighed where what is seen says the opposite.
    for (const double slope : {1.0, -1.0}) {
        const auto margin = [&](const EncodedPoint& point) {
            return point.levels[2] == 1 ? -2 * slope : slope;
        };
        std::vector<double> margins;
        for (const EncodedPoint& point : points) margins.push_back(margin(point));
        const FeasibilityModel knowing(geometry, {points.begin(), points.begin() + 12},
                                       {works.begin(), works.begin() + 12},
                                       {margins.begin(), margins.begin() + 12});
        Eigen::VectorXd known(200);
        for (std::size_t i = 0; i < 200; ++i)
            known(static_cast<Eigen::Index>(i)) = margin(others[i]);
        const Eigen::VectorXd believed = knowing.probabilities(others, known);
        double agree = 0;
        for (std::size_t i = 0; i < 200; ++i)
            agree += (believed(static_cast<Eigen::Index>(i)) > 0.5) == (others[i].levels[2] != 1)
                         ? 1
                         : 0;
        INFO("slope " << slope);
        CHECK(agree / 200 > 0.95);
    }

    // One observation: the posterior mean of the probability by numerical integration of prior
    // times likelihood.
    const FeasibilityModel one(geometry, {points.front()}, {false});
    const double sd = std::sqrt(one.prior_variance());
    double mass = 0;
    double works_again = 0;
    for (int i = -4000; i <= 4000; ++i) {
        const double f = one.prior_mean() + sd * i / 500.0;
        const double weight =
            std::exp(-0.5 * (i / 500.0) * (i / 500.0)) * 0.5 * std::erfc(f / std::sqrt(2.0));
        mass += weight;
        works_again += weight * 0.5 * std::erfc(-f / std::sqrt(2.0));
    }
    const double laplace = one.probabilities({points.front()}, Eigen::VectorXd::Zero(1))(0);
    CHECK(laplace ==
          Approx(works_again / mass).margin(0.1));  // the mode of a skewed posterior, not its mean
}

TEST_CASE("expected improvement: against brute force, and far out against its series") {
    Rng rng(6);
    for (const auto& [mean, sd] : {std::pair{0.3, 1.0}, {-1.0, 0.5}, {-2.0, 1.0}}) {
        double sum = 0;
        constexpr int draws = 400'000;
        for (int i = 0; i < draws; ++i) sum += std::max(mean + sd * rng.normal(), 0.0);
        CHECK(std::exp(log_expected_improvement({mean, sd * sd}, 0)) ==
              Approx(sum / draws).epsilon(0.03));
    }
    for (const double z : {-0.999999, -1.000001, -5.9, -6.1, -49.9, -50.1}) {
        const double step = 1e-6;  // continuous where the formula changes: d ln h / dz = Phi / h
        const double slope = (log_improvement(z + step) - log_improvement(z - step)) / (2 * step);
        CHECK(slope == Approx(std::exp(log_normal_cdf(z) - log_improvement(z))).epsilon(1e-3));
    }
    CHECK(std::isfinite(log_improvement(-1e8)));
    // Against 60 digits; where the fraction gives way to the series nothing jumps.
    CHECK(log_improvement(-50.0) == Approx(-1258.74418286846085).epsilon(1e-12));
    for (const double z : {-50.0, -200.0})
        CHECK(log_improvement(z - 1e-9) ==
              Approx(log_improvement(z + 1e-9) + 2e-9 * z).epsilon(1e-13));
    CHECK(log_normal_cdf(-5.999) == Approx(log_normal_cdf(-6.001)).epsilon(0.01));
    CHECK(log_normal_cdf(-40) == Approx(-804.608442).epsilon(1e-8));  // ln Phi(-40), mpmath
    CHECK(log_normal_cdf(9) == Approx(0).margin(1e-15));
}

TEST_CASE(
    "expected gain: what one more measurement does to the better of two posterior means, by "
    "simulated measurements") {
    const SearchSpace space = mixed_space();
    const LevelGeometry geometry(space);
    const auto points = points_of(space, geometry, 12);
    const auto others = points_of(space, geometry, 5, 9);
    Observations data = observations_of(points, 0);
    data.noise_factors(3) = 0.5;
    constexpr double noise = 0.2;
    const GaussianProcess process(geometry, data, kernel_of(geometry.dimensions()), noise);
    constexpr Eigen::Index incumbent = 3;
    const Eigen::MatrixXd level = Eigen::MatrixXd::Ones(1, 1);
    const double best = process.predict({points[incumbent]}, level).front().mean;
    for (const EncodedPoint& other : others) {
        const Prediction prediction = process.predict({other}, level).front();
        const double covariance = process.cross_covariance({other}, level)
                                      .col(0)
                                      .dot(process.covariance_weights(incumbent));
        const std::vector<EncodedPoint> pair{other, points[incumbent]};
        const JointPrediction joint = process.joint(pair, Eigen::MatrixXd::Ones(2, 1));
        CHECK(std::abs(covariance - joint.covariance(0, 1)) < 1e-8);
        Rng rng(4);
        double sum = 0;
        constexpr int draws = 4000;
        for (int i = 0; i < draws; ++i) {
            GaussianProcess after = process;
            const double told =
                prediction.mean + std::sqrt(prediction.variance + noise) * rng.normal();
            after.append(other, told, 1, Eigen::RowVectorXd::Ones(1));
            const auto means = after.predict(pair, Eigen::MatrixXd::Ones(2, 1));
            sum += std::max(means[0].mean, means[1].mean) - means[1].mean;
        }
        const double gain = std::exp(log_expected_gain(prediction, best, covariance, noise));
        CHECK(gain == Approx(sum / draws).epsilon(0.15).margin(1e-3));
        CHECK(gain < std::exp(log_expected_improvement(prediction, best)));
    }
}

TEST_CASE("expected gains of many in single precision rank as those of each") {
    Rng rng(3);
    constexpr Eigen::Index count = 2000;
    Eigen::VectorXf means(count);
    Eigen::VectorXf variances(count);
    Eigen::VectorXf covariances(count);
    for (Eigen::Index i = 0; i < count; ++i) {
        means(i) = static_cast<float>(
            std::exp(3 * rng.normal()) *
            (rng.uniform() < 0.3 ? 1 : -1));  // from far below the best to far above
        variances(i) = static_cast<float>(std::exp(2 * rng.normal() - 3));
        covariances(i) = static_cast<float>(rng.uniform()) * variances(i);
    }
    const Eigen::VectorXf many = log_expected_gains(means, variances, covariances, 0.5F, 0.01F);
    for (Eigen::Index i = 0; i < count; ++i) {
        const double one = log_expected_gain({double(means(i)), double(variances(i))}, 0.5,
                                             double(covariances(i)), 0.01);
        CHECK(double(many(i)) == Approx(one).margin(2e-3).epsilon(1e-5));
    }
    const LogImprovementTable table;
    for (double z = -60; z < 20; z += 0.0137)
        CHECK(double(table(static_cast<float>(z))) ==
              Approx(log_improvement(z)).margin(z > -32 ? 2e-4 : 4e-3));
    CHECK(double(table(7.9999995F)) ==
          Approx(log_improvement(8)).margin(1e-4));  // where its last node is
}

TEST_CASE("output scale: order is kept, everything can be undone, the bad tail is compressed") {
    const OutputScale scale(true, {100, 110, 120, 130, 1}, 0.01);
    for (const double value : {1e-6, 1.0, 100.0, 129.0, 1e9})
        CHECK(scale.value(scale.scaled(value)) == Approx(value).epsilon(1e-9));
    CHECK(scale.scaled(110) == Approx(0).margin(1e-12));
    CHECK(scale.scaled(130) > scale.scaled(120));
    CHECK(scale.scaled(1) < scale.scaled(2));
    CHECK(scale.scaled(1) > -7);  // forty spreads below
    const OutputScale times(false, {2, 3, 4}, 0.01);
    CHECK(times.scaled(2) > times.scaled(4));
    CHECK(times.value(times.scaled(2.5)) == Approx(2.5));
    CHECK(OutputScale(true, {5, 5, 5}, 0.02).spread() >= 0.02);
    // Straight: differences of logarithms stay what they are, however bad a value is.
    const OutputScale straight(true, {100, 110, 120, 130, 1}, 0.01, OutputScale::Tail::straight);
    CHECK(straight.spread() * (straight.scaled(1) - straight.scaled(130)) ==
          Approx(-std::log(130)));
    CHECK(straight.value(straight.scaled(1)) == Approx(1));
    CHECK(OutputScale(true, {}, 0.02).spread() == Approx(0.1));
}
