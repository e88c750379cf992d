// SPDX-License-Identifier: Apache-2.0
#include "perf/cost_check.hpp"

#include "servetune/detail/base/number_text.hpp"

#include <cmath>

namespace servetune {

std::string family_of(const ModelSpec& model) { return model.experts > 0 ? "experts" : "dense"; }

const CostCheck* check_of(const EngineTraits& traits, const HardwareSpec& chip,
                          const ModelSpec& model) {
    const auto found = find_if(traits.checked, [&](const CostCheck& one) {
        return (one.hardware.empty() || one.hardware == chip.name ||
                one.hardware == chip.architecture) &&
               (one.models.empty() || one.models == family_of(model));
    });
    return found != traits.checked.end() ? &*found : nullptr;
}

std::optional<std::pair<double, double>> interval_of(const CostCheck* check,
                                                     std::string_view metric, double predicted) {
    if (check == nullptr) return std::nullopt;
    const auto says = [&](std::string_view part) { return metric.find(part) != metric.npos; };
    const std::vector<double>* range = nullptr;
    if (says("_per_second")) range = &check->output_tokens_per_second;
    else if (says("time_to_first_token")) range = &check->time_to_first_token;
    else if (says("time_per_output_token") || says("inter_token_latency"))
        range = &check->time_per_output_token;
    if (range == nullptr || range->empty()) return std::nullopt;
    return std::pair(predicted * range->front(), predicted * range->back());
}

std::optional<double> error_within(const CostCheck* check) {
    if (check == nullptr || check->output_tokens_per_second.empty()) return std::nullopt;
    constexpr double nine_tenths = 2 * 1.645;  // standard deviations of a normal
    const auto& range = check->output_tokens_per_second;
    return check->within > 0 ? check->within : std::log(range.back() / range.front()) / nine_tenths;
}

std::string interval_text(const std::optional<std::pair<double, double>>& interval) {
    if (!interval) return "";
    const auto text = [](double value) {
        const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
        return short_number_text(std::round(value / unit) * unit);
    };
    return text(interval->first) + " to " + text(interval->second);
}

std::string rows_text(const CostCheck& check, const HardwareSpec& chip, const ModelSpec& model) {
    const bool latent = check.of.find("DeepSeek") != check.of.npos;
    return std::to_string(check.rows) + " measured rows of " + check.of +
           (check.hardware == chip.name ? "" : ", none or few of them on " + chip.name) +
           (model.state_bytes_per_sequence > 0  ? ", none with layers that keep a state"
            : model.latent_width > 0 && !latent ? ", none with latent attention"
                                                : "");
}

}  // namespace servetune
