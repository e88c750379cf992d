// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace servetune {

/// The requests of one run as AIPerf writes them, one object a line (profile_export.jsonl),
/// gathered into a result.
///
/// Only the measured phase counts. Figures are those of AIPerf's own summary: of successes alone,
/// percentiles linear between order statistics, the duration from the first start to the last end.
class AiperfRecords {
public:
    [[nodiscard]] static bool recognises(const nlohmann::json& value);

    /// A value that `recognises`.
    void add(const nlohmann::json& record);
    [[nodiscard]] bool empty() const { return warm_up_ + successes_ + failures_ == 0; }
    /// What was added since the last result. Throws ParseError when all of it was warm-up.
    [[nodiscard]] PublishedResult result() const;

private:
    /// Adds up a count of tokens; a sum without one of its requests would be too small, so then
    /// there is none.
    struct Tokens {
        double sum = 0;
        std::size_t counted = 0;
    };

    std::size_t warm_up_ = 0, successes_ = 0, failures_ = 0, cancelled_ = 0;
    std::optional<std::int64_t> first_start_{}, last_end_{};
    Tokens input_{}, output_{};
    std::vector<double> time_to_first_token_{}, time_per_output_token_{}, inter_token_latency_{},
        latency_{};
};

}  // namespace servetune
