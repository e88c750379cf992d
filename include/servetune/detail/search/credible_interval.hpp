// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace servetune {

/// A number and its 95 % interval; of effects all intervals of a list hold together with 95 %
/// (`as_gain`).
struct CredibleInterval {
    double value = 0;
    double low = 0;
    double high = 0;

    /// Whether it says on which side of 0 the truth is.
    [[nodiscard]] bool known() const { return low > 0 || high < 0; }
};

}  // namespace servetune
