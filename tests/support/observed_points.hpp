// SPDX-License-Identifier: Apache-2.0
#pragma once

// Points of a space, numbers at them, and a kernel: what tests of the models need.

#include "search/gaussian_process.hpp"
#include "servetune/feasible_set.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace servetune::test {

/// Every kind of dimension: numbers, ordered and unordered choices, unset known and unknown,
/// conditions, a concept of two engines.
inline SearchSpace mixed_space() {
    Parameter seqs = Parameter::integer("a.seqs", 16, 1024, Scale::log2)
                         .or_unset(std::int64_t{256})
                         .when("engine", {"a"});
    Parameter running =
        Parameter::integer("b.running", 32, 2048, Scale::log2).or_unset().when("engine", {"b"});
    seqs.concept_name = running.concept_name = "max_concurrent_sequences";
    return SearchSpace({Parameter::choice("engine", {"a", "b"}), seqs, running,
                        Parameter::choice("backend", {"x", "y", "z"}).or_unset("y"),
                        Parameter::choice("level", {"low", "middle", "high"}, true),
                        Parameter::choice("method", {"none", "ngram"}),
                        Parameter::integer("guesses", 1, 5).when("method", {"ngram"}),
                        Parameter::boolean("graphs"), Parameter::fixed("always", "this")});
}

inline std::vector<EncodedPoint> points_of(const SearchSpace& space, const LevelGeometry& geometry,
                                           std::size_t count, std::uint64_t seed = 1) {
    const FeasibleSet feasible(space);
    Rng rng(seed);
    std::vector<EncodedPoint> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(geometry.encode(feasible.sample(rng)));
    return result;
}

inline Observations observations_of(std::vector<EncodedPoint> points, Eigen::Index beliefs,
                                    std::uint64_t seed = 2) {
    Rng rng(seed);
    const auto n = static_cast<Eigen::Index>(points.size());
    Observations data;
    data.points = std::move(points);
    data.values.resize(n);
    data.noise_factors.resize(n);
    data.regressors.resize(n, beliefs + 1);
    for (Eigen::Index i = 0; i < n; ++i) {
        data.values(i) = rng.normal();
        data.noise_factors(i) = 0.25 + rng.uniform();
        data.regressors(i, 0) = 1;
        for (Eigen::Index j = 1; j <= beliefs; ++j) data.regressors(i, j) = rng.normal();
    }
    data.coefficient_mean = Eigen::VectorXd::Ones(beliefs + 1);
    data.coefficient_mean(0) = 0;
    data.coefficient_variance = Eigen::VectorXd::Constant(beliefs + 1, 0.25);
    return data;
}

inline KernelParameters kernel_of(std::size_t dimensions) {
    KernelParameters kernel;
    kernel.inverse_squared_lengths.resize(static_cast<Eigen::Index>(dimensions));
    for (Eigen::Index d = 0; d < kernel.inverse_squared_lengths.size(); ++d)
        kernel.inverse_squared_lengths(d) = 0.2 + 0.3 * double(d);
    kernel.product_variance = 0.8;
    return kernel;
}

}  // namespace servetune::test
