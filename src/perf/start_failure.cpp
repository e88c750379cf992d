// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/start_failure.hpp"

#include "base/text.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <algorithm>
#include <utility>

namespace servetune {
namespace {

std::string two_digits(double value) { return fixed_text(value, 2); }

const std::string& backend_of(const CostModel& cost) {
    const std::string& named = cost.settings().attention_backend;
    return named.empty() ? cost.target().traits.default_attention : named;
}

/// The figures that a log line may mention.
std::vector<std::pair<std::string, std::string>> cost_figures(const CostModel& cost) {
    const MemoryPlan& plan = cost.memory();
    const ServingSettings& settings = cost.settings();
    const EngineTraits& traits = cost.target().traits;
    const double context_bytes = double(cost.max_context_tokens()) * plan.cache_bytes_per_token;
    const double available = plan.missing_bytes > 0 ? -plan.missing_bytes : plan.cache_bytes;
    const auto tokens = double(plan.cache_tokens);
    return {
        {"model", cost.target().model.name},
        {"device_gib", two_digits(plan.device_bytes / gib)},
        {"weights_gib", two_digits(plan.weights_bytes / gib)},
        {"load_seconds", two_digits(plan.weights_bytes / traits.load_bytes_per_second)},
        {"graph_gib", two_digits(plan.graph_bytes / gib)},
        {"cache_gib", two_digits(available / gib)},
        {"half_cache_gib", two_digits(available / gib / 2)},
        {"cache_tokens", std::to_string(plan.cache_tokens)},
        {"left_gib", two_digits(std::max(0.0, plan.free_bytes) / gib)},
        {"context", std::to_string(cost.max_context_tokens())},
        {"context_gib", two_digits(context_bytes / gib)},
        {"concurrency",
         two_digits(tokens / double(std::max<std::int64_t>(1, cost.max_context_tokens())))},
        {"fraction", two_digits(settings.memory_fraction)},
        {"backend", backend_of(cost)},
        {"cache_type", settings.cache_type},
        {"sequences", std::to_string(settings.max_sequences)},
        {"chunk", std::to_string(settings.chunked_prefill ? settings.max_batched_tokens : -1)},
        {"missing_mib", two_digits(std::max(plan.missing_bytes, -plan.free_bytes) / gib * 1024)}};
}

StartResult exits(const CostModel& cost, const char* event, double seconds, std::string cause) {
    return {false, seconds, std::move(cause), log_lines(cost, event)};
}

/// Why the attention back end cannot do what is asked on this chip; empty when it can.
std::string unsupported(const CostModel& cost) {
    const ServingTarget& target = cost.target();
    const ServingSettings& settings = cost.settings();
    const std::string& backend = backend_of(cost);
    const AttentionTraits& attention = target.traits.attention.at(backend);
    return attention.takes(settings.cache_type, target.hardware.architecture)
               ? ""
               : backend + " has no kernels for a cache of " + settings.cache_type + " on " +
                     target.hardware.name + " (" + target.hardware.architecture + ")";
}

/// What does not fit, in the order in which an engine notices.
std::optional<StartResult> out_of_memory(const CostModel& cost) {
    const MemoryPlan& plan = cost.memory();
    const EngineTraits& traits = cost.target().traits;
    const double loaded = traits.start_seconds + plan.weights_bytes / traits.load_bytes_per_second;
    const double needed = plan.context_bytes + plan.weights_bytes;
    if (needed > plan.device_bytes)
        return exits(cost, "weights", traits.start_seconds,
                     "weights and libraries need " + two_digits(needed / gib) +
                         " GiB, the device has " + two_digits(plan.device_bytes / gib));
    if (plan.missing_bytes > 0 || plan.cache_blocks < 1)
        return exits(cost, "no_cache", loaded,
                     "no memory is left for the cache: " + two_digits(plan.missing_bytes / gib) +
                         " GiB short" +
                         (plan.state_bytes > 0
                              ? ", states of " + std::to_string(cost.settings().max_sequences) +
                                    " sequences need " + two_digits(plan.state_bytes / gib)
                              : ""));
    if (traits.checks_context && cost.max_context_tokens() > plan.cache_tokens)
        return exits(cost, "context", loaded,
                     "one request of " + std::to_string(cost.max_context_tokens()) +
                         " tokens does not fit the cache of " + std::to_string(plan.cache_tokens));
    // Activations were seen in a trial step, except where the share is of weights and cache alone:
    // there only the load finds out.
    const bool tried = traits.fraction_of != EngineTraits::FractionOf::weights_cache;
    const double left = plan.free_bytes + (tried ? 0 : plan.activation_bytes);
    if (left < 0)
        return exits(
            cost, plan.graph_bytes > 0 && left + plan.graph_bytes >= 0 ? "graphs" : "activations",
            cost.start_seconds(),
            "beside weights and cache " + two_digits(-left / gib) +
                " GiB are missing for graphs and activations");
    return std::nullopt;
}

}  // namespace

std::vector<std::string> log_lines(const EngineTraits& traits, std::string_view event,
                                   const std::vector<std::pair<std::string, std::string>>& values) {
    std::vector<std::string> result;
    if (const auto* found = entry_in(traits.log, event))
        for (const std::string& line : *found) result.push_back(filled(line, values));
    return result;
}

std::vector<std::string> log_lines(const CostModel& cost, std::string_view event) {
    return log_lines(cost.target().traits, event, cost_figures(cost));
}

StartResult start(const CostModel& cost) {
    const std::string why = unsupported(cost);
    if (!why.empty())
        return exits(cost, "unsupported_attention", cost.target().traits.start_seconds, why);
    if (auto failed = out_of_memory(cost)) return *failed;
    return {true, cost.start_seconds(), "", log_lines(cost, "started")};
}

}  // namespace servetune
