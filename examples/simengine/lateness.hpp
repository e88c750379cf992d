// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace simengine {

/// How much later than planned events were, in buckets of an eighth of a power of two (9 % wide).
class Lateness {
public:
    void add(std::int64_t nanoseconds) {
        const double bucket =
            nanoseconds < 1 ? 0.0 : 8 * std::log2(static_cast<double>(nanoseconds));
        ++counts_[std::min(counts_.size() - 1, static_cast<std::size_t>(bucket))];
        ++count_;
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }
    /// The upper end of the bucket that this share of all events lies in or below; 0 without
    /// events.
    [[nodiscard]] double quantile_seconds(double share) const {
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            if ((seen += counts_[i]) > 0 &&
                static_cast<double>(seen) >= share * static_cast<double>(count_))
                return std::exp2(static_cast<double>(i + 1) / 8) / 1e9;
        return 0;
    }

private:
    std::array<std::uint64_t, 320> counts_{};
    std::uint64_t count_ = 0;
};

}  // namespace simengine
