// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deploy/client_calls.hpp"

#include <cstddef>
#include <string>

namespace autotune {

/// What a run with engines elsewhere costs here: processor time of this process and of the clients
/// that stand for engines, and what these ask a cluster for.
class OwnCost {
public:
    /// Counts from now on. As ClientCalls: before other threads begin. Throws IoError.
    OwnCost();
    /// `autotune's own cost: 0.41 s of processor time and 23 calls of a cluster's client a trial`;
    /// empty: there was no trial.
    [[nodiscard]] std::string text(std::size_t trials) const;

private:
    double began_seconds_;
    servetune::ClientCalls calls_;
};

}  // namespace autotune
