// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace servetune {

/// Feasible configurations spread evenly: the points of a Sobol sequence (Sobol 1967; direction
/// numbers of Joe and Kuo 2008, as Boost.Random has them), each read as a walk through the decision
/// diagram.
///
/// Coordinate k of a point chooses among the completions of the k-th decision in proportion to how
/// many configurations lie below each choice, so the points are uniform over canonical feasible
/// configurations, never over the product. All points are shifted modulo 1 by one random vector, a
/// function of the seed and the space (Cranley and Patterson 1976), because the sequence itself
/// begins in the corner. A configuration that was asked is passed over.
class QuasiRandom : public Strategy {
public:
    /// `seed`: nothing: the study's.
    explicit QuasiRandom(std::optional<std::uint64_t> seed = {}) : seed_(seed) {}
    [[nodiscard]] std::string name() const override { return "quasi_random"; }

    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng& rng) const override;

private:
    std::optional<std::uint64_t> seed_;
};

}  // namespace servetune
