// SPDX-License-Identifier: Apache-2.0
#include "servetune/quasi_random.hpp"

#include "servetune/rng.hpp"

#include <boost/random/sobol.hpp>

#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace servetune {

Answer QuasiRandom::ask(const Problem& problem, std::span<const Trial> history,
                        Rng& /*rng*/) const {
    std::set<Configuration> seen;
    for (const Trial& trial : history) seen.insert(trial.configuration);
    const FeasibleSet& feasible = problem.feasible;
    if (feasible.finite() && double(seen.size()) >= feasible.size())
        return Finished{"all " + text_of(feasible.size()) + " configurations are measured"};

    const std::size_t dimensions = problem.space.parameters().size();
    Rng shift_rng(reseeded(problem.space.default_configuration().fingerprint().bits,
                           seed_.value_or(problem.seed)));
    std::vector<double> shift(dimensions);
    for (double& coordinate : shift) coordinate = shift_rng.uniform();
    boost::random::sobol sequence(dimensions);
    std::vector<double> point(dimensions);
    // A space that is nearly used up is finished by listing: the sequence alone would pass the last
    // ones over for long.
    const std::size_t most_points = 64 * (seen.size() + 1) + 4096;
    for (std::size_t k = 0; k < most_points; ++k) {
        for (std::size_t d = 0; d < dimensions; ++d) {
            const double raw = double(sequence()) / (double(sequence.max()) + 1.0);
            point[d] = raw + shift[d] - std::floor(raw + shift[d]);
        }
        Configuration drawn = feasible.at_point(point);
        if (problem.space.feasible(drawn) && !seen.contains(drawn))
            return Proposal{std::move(drawn),
                            "point " + std::to_string(k) + " of a Sobol sequence"};
    }
    std::optional<Configuration> left;
    if (feasible.finite())
        feasible.for_each([&](const Configuration& candidate) {
            if (!seen.contains(candidate)) left = candidate;
            return !left.has_value();
        });
    if (!left)
        return Finished{"no new configuration in " + std::to_string(most_points) + " points"};
    return Proposal{std::move(*left), "the first one that is left"};
}

}  // namespace servetune
