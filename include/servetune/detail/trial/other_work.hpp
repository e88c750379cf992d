// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// One workload in which the requests of a configuration had other lengths than those of the
/// default.
struct OtherWork {
    std::string workload{};  ///< empty: the only one
    bool output = true;      ///< the answers; false: the prompts
    double mine = 0;         ///< mean tokens a request
    double usual = 0;        ///< the same of the default

    friend bool operator==(const OtherWork&, const OtherWork&) = default;
    /// `16 output tokens a request on chat, 32 with the default`.
    [[nodiscard]] std::string text() const {
        return short_number_text(mine) + (output ? " output" : " input") + " tokens a request" +
               (workload.empty() ? "" : " on " + workload) + ", " + short_number_text(usual) +
               " with the default";
    }
};

/// The mean number of tokens of a request, and how sure that is.
struct RequestLength {
    double tokens = 0;
    double requests = 0;
    double variance = 0;  ///< of `tokens`

    [[nodiscard]] double mean() const { return tokens / requests; }
    [[nodiscard]] double relative_error() const { return std::sqrt(variance) / tokens; }

    /// Adds one measurement. The spread of lengths is known where our load generator counted; a
    /// total without an error is taken as one of lengths that spread as much as their mean (an
    /// exponential distribution).
    void add(const Metric& total, double successes) {
        tokens += total.value;
        requests += successes;
        const bool known =
            total.standard_error && (total.replicates < 2 || *total.standard_error == 0);
        variance += known ? *total.standard_error * *total.standard_error
                          : total.value * total.value / successes;
    }
};

/// Input and output lengths of one workload.
struct WorkLengths {
    RequestLength input{};
    RequestLength output{};

    /// The lengths in one measurement, by workload; those of single workloads where there are
    /// several.
    static void add(std::map<std::string, WorkLengths>& lengths, const Metrics& metrics);
};

/// Whether two lengths differ by more than `deviations` of their noise, and by more than the audit
/// allows compared runs (`equal_work`: 0.5 %; 5 % of what is less than a tenth of all tokens).
inline bool other_length(const RequestLength& mine, const RequestLength& usual, double share_of_all,
                         double deviations) {
    if (!(mine.tokens > 0) || !(usual.tokens > 0)) return false;
    const double tolerance = share_of_all < 0.1 ? 0.05 : 0.005;
    const double apart = std::abs(std::log(mine.mean() / usual.mean()));
    return apart > tolerance &&
           apart > deviations * std::hypot(mine.relative_error(), usual.relative_error());
}

/// What is left of a figure where a configuration did other work than the default, at most 1: a
/// gain counts as far as it is one in requests, in input tokens and in output tokens alike.
/// Nothing: the figure does not say what that is, as the time to the first token does not.
std::optional<double> share_of_equal_work(std::string_view metric, const WorkLengths& mine,
                                          const WorkLengths& usual);

}  // namespace servetune
