// SPDX-License-Identifier: Apache-2.0 The Gaussian process as a regressor, against its formula
// written out. Eigen's memory goes back and forth between this program and the library, however
// either was compiled.
#include "expect.hpp"

#include <servetune/base/rng.hpp>
#include <servetune/model/hyperparameters.hpp>
#include <servetune/model/surrogate.hpp>

#include <Eigen/LU>

#include <cmath>
#include <string>
#include <vector>

using namespace servetune;

namespace {

using Point = std::vector<double>;

EncodedPoint encoded(const LevelGeometry& geometry, const Point& x) {
    std::vector<Configuration::Entry> entries;
    for (std::size_t d = 0; d < x.size(); ++d) entries.emplace_back(text("x", d), x[d]);
    return geometry.encode(Configuration(std::move(entries)));
}

double matern(double r2) {
    const double r = std::sqrt(5 * r2);
    return (1 + r + 5.0 / 3.0 * r2) * std::exp(-r);
}

double covariance(const KernelParameters& kernel, const Point& a, const Point& b) {
    double together = 0;
    double apart = 0;
    for (std::size_t d = 0; d < a.size(); ++d) {
        const double r2 = (a[d] - b[d]) * (a[d] - b[d]) * kernel.inverse_squared_lengths(static_cast<Eigen::Index>(d));
        together += r2;
        apart += matern(r2);
    }
    return kernel.product_variance * matern(together) + kernel.additive_variance / static_cast<double>(a.size()) * apart +
           1;  // 1: the level
}

void check(std::size_t dimensions, Eigen::Index n, bool additive) {
    std::vector<Parameter> parameters;
    for (std::size_t d = 0; d < dimensions; ++d) parameters.push_back(Parameter::real(text("x", d), 0, 1));
    const LevelGeometry geometry(SearchSpace(std::move(parameters)));
    Rng rng(5);
    const auto drawn = [&] {
        Point x(dimensions);
        for (double& one : x) one = rng.uniform();
        return x;
    };
    std::vector<Point> at;
    Observations data;
    data.values.resize(n);
    for (Eigen::Index i = 0; i < n; ++i) {
        at.push_back(drawn());
        data.points.push_back(encoded(geometry, at.back()));
        data.values(i) = std::sin(8 * at.back()[0]) + at.back().back() + 0.1 * rng.normal();
    }
    data.noise_factors = Eigen::VectorXd::Ones(n);
    data.regressors = Eigen::MatrixXd::Ones(n, 1);
    data.coefficient_mean = Eigen::VectorXd::Zero(1);
    data.coefficient_variance = Eigen::VectorXd::Ones(1);
    const DistanceTables tables = distance_tables(geometry, data.points, data.points);
    HyperparameterPriors priors = HyperparameterPriors::of(geometry);
    priors.additive = additive;
    const Hyperparameters hyper(priors);
    const auto modes = fit_hyperparameters(hyper, tables, data, 1);
    const GaussianProcess process(tables, data, hyper.kernel(modes[0].theta), hyper.noise_variance(modes[0].theta));

    constexpr int wanted = 20;
    std::vector<Point> to;
    std::vector<EncodedPoint> points;
    for (int i = 0; i < wanted; ++i) {
        to.push_back(drawn());
        points.push_back(encoded(geometry, to.back()));
    }
    const auto predicted = process.predict(distance_tables(geometry, data.points, points), Eigen::MatrixXd::Ones(wanted, 1));

    Eigen::MatrixXd k(n, n);
    for (Eigen::Index i = 0; i < n; ++i)
        for (Eigen::Index j = 0; j < n; ++j)
            k(i, j) = covariance(process.kernel(), at[static_cast<std::size_t>(i)], at[static_cast<std::size_t>(j)]) +
                      (i == j ? process.noise_variance() : 0);
    const Eigen::MatrixXd inverse = k.fullPivLu().inverse();
    double off = 0;
    for (std::size_t t = 0; t < to.size(); ++t) {
        Eigen::VectorXd c(n);
        for (Eigen::Index i = 0; i < n; ++i) c(i) = covariance(process.kernel(), at[static_cast<std::size_t>(i)], to[t]);
        off = std::max(off, std::abs(c.dot(inverse * data.values) - predicted[t].mean));
        off = std::max(off, std::abs(covariance(process.kernel(), to[t], to[t]) - c.dot(inverse * c) - predicted[t].variance));
    }
    expect(off < 1e-6, text(dimensions, " dimensions, ", n, " points: off by ", off));
}

}  // namespace

int main() {
    for (const bool additive : {false, true}) {
        check(1, 8, additive);
        check(5, 30, additive);
    }
    return wrong;
}
