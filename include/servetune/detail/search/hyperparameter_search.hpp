// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace servetune {

/// For modes of the posterior of a Gaussian process's parameters (search/hyperparameters.hpp).
struct HyperparameterSearch {
    std::size_t starts = 6;       ///< the prior's mode and draws of the prior
    std::size_t modes = 3;        ///< the best of them are kept
    std::size_t iterations = 50;  ///< of each start
    /// observations, evenly through all there are: a step is O(n^3), and that many tell lengths and
    /// noise
    std::size_t fitted_to = 128;
    /// Observations; of more than these `starts_of_many` starts are enough. Few data allow several
    /// readings, each a mode of its own; with many, one of them is far likelier than the others
    /// (Rasmussen and Williams, GPML, section 5.4.1).
    std::size_t many = 64;
    std::size_t starts_of_many = 2;
};

}  // namespace servetune
