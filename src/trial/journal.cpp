// SPDX-License-Identifier: Apache-2.0
#include "servetune/journal.hpp"

namespace servetune {

std::string unfit_number_in(const Measurement& measurement) {
    for (const auto& [name, metric] : measurement.metrics) {
        if (!std::isfinite(metric.value)) return "metric '" + name + "' is not a number";
        if (!has_sound_size(metric.value) || (std::isfinite(metric.standard_error.value_or(0)) &&
                                              !has_sound_size(metric.standard_error.value_or(0))))
            return "metric '" + name + "' is " + text_of(metric.value) +
                   (metric.standard_error
                        ? " with standard error " + text_of(*metric.standard_error)
                        : "") +
                   "; figures are 0, or of a size between 1e-100 and 1e100";
        if (metric.standard_error &&
            !(std::isfinite(*metric.standard_error) && *metric.standard_error >= 0))
            return "the standard error of metric '" + name + "' is " +
                   text_of(*metric.standard_error) + "; it must be finite and at least 0";
    }
    return "";
}

void check_told(const std::vector<Trial>& trials, std::uint64_t id, const SharedOutcome& outcome) {
    check_open(trials, id);
    if (!outcome) throw UsageError("trial " + std::to_string(id) + " is told without an outcome");
    if (const auto* measurement = std::get_if<Measurement>(&*outcome))
        if (const std::string unfit = unfit_number_in(*measurement); !unfit.empty())
            throw UsageError("trial " + std::to_string(id) + " cannot be told: " + unfit);
}

}  // namespace servetune
