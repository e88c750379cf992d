// SPDX-License-Identifier: Apache-2.0
// What runs that are compared must share.
#include "servetune/audit.hpp"

#include "audit_text.hpp"
#include "audit_tolerances.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace servetune {
namespace {

using namespace audit_tolerances;

/// The middle of the values that are there; the first of fewer than three.
std::optional<double> yardstick(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    if (values.size() < 3) return values.front();
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::vector<Validity> audit_together(std::span<const BenchmarkResult> results) {
    std::vector<Validity> found(results.size());
    using Amount = std::optional<double> (*)(const BenchmarkResult&);
    const auto usual_of = [&](Amount amount) {
        std::vector<double> values;
        for (const BenchmarkResult& result : results)
            if (const auto value = amount(result)) values.push_back(*value);
        return yardstick(std::move(values)).value_or(0);
    };
    const Amount input = [](const BenchmarkResult& result) { return result.input_tokens; };
    const Amount output = [](const BenchmarkResult& result) { return result.output_tokens; };
    const Amount total = [](const BenchmarkResult& result) -> std::optional<double> {
        if (!result.input_tokens || !result.output_tokens) return std::nullopt;
        return *result.input_tokens + *result.output_tokens;
    };
    // A hundred answers that end a little earlier beside millions of prompt tokens are the same
    // work.
    const double all = usual_of(total);
    const auto compare = [&](const char* what, Amount amount) {
        const double usual = usual_of(amount);
        if (!(usual > 0)) return;
        const double tolerance =
            all > 0 && usual < small_part * all ? small_part_tolerance : work_tolerance;
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto value = amount(results[i]);
            if (!value || std::abs(*value / usual - 1) <= tolerance) continue;
            const std::string requests =
                results[i].successful_requests
                    ? " in " + figure_shown(*results[i].successful_requests) + " requests"
                    : "";
            add(found[i], {Verdict::suspect,
                           {{"equal_work", figure_shown(*value) + " " + what + requests,
                             figure_shown(usual) + " in the other runs",
                             "not comparable: this run did other work than those it is compared "
                             "with (other requests, or answers "
                             "that ended by themselves)"}}});
        }
    };
    compare("input tokens", input);
    compare("output tokens", output);
    return found;
}

}  // namespace servetune
