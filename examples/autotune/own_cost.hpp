// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace autotune {

/// What a run with engines elsewhere costs here: processor time of this process and of the
/// programs that stand for engines.
class OwnCost {
public:
    OwnCost();
    /// `autotune's own cost: 0.41 s of processor time a trial`; empty: there was no trial.
    [[nodiscard]] std::string text(std::size_t trials) const;

private:
    double began_seconds_;
};

}  // namespace autotune
