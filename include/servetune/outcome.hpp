// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/enum_names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

/// A measured number, in the unit that ends its metric's name, and the standard error of it where
/// the measurement knows one.
struct Metric {
    double value = 0;
    std::optional<double> standard_error{};
    /// Runs of the same configuration that the value is the mean of. From 2 on `standard_error`
    /// comes from the spread of these runs.
    std::size_t replicates = 1;

    friend bool operator==(const Metric&, const Metric&) = default;
};

/// By name, such as `total_tokens_per_second`. What was not measured is absent, never 0. When
/// several workloads make one outcome, `name@workload` is that workload's own figure and the plain
/// `name` is the combined one (see `combined`).
using Metrics = std::map<std::string, Metric, std::less<>>;

/// May this number be believed? From best to worst. `unchecked`: nothing beside it that it could be
/// held against, used like a sound one; `suspect` is usable but flagged; `unsound` never wins and
/// never teaches under `audit: enforce`.
enum class Verdict { sound, unchecked, suspect, unsound };

/// One broken identity of a measurement: which, both of its sides as printed, and the likely cause
/// in words.
struct Finding {
    std::string id;
    std::string left{};
    std::string right{};
    std::string cause{};

    friend bool operator==(const Finding&, const Finding&) = default;
};

/// Findings that say: something else used or slowed the machine during the measurement. Such a
/// figure is not the configuration's own. `MachineWatch` gives them, the audit gives
/// `client_stopped`; docs/explanation/measuring.md says what each looks at.
inline constexpr std::array<std::string_view, 6> disturbances{
    "gpu_throttled", "gpu_shared", "gpu_lost", "cpu_stolen", "cpu_shared", "client_stopped"};

[[nodiscard]] inline bool is_disturbance(const Finding& finding) {
    return std::find(disturbances.begin(), disturbances.end(), finding.id) != disturbances.end();
}

/// The audit's verdict on a measurement, and why.
struct Validity {
    Verdict verdict = Verdict::sound;
    std::vector<Finding> findings{};  ///< the first of them is as grave as the verdict

    [[nodiscard]] bool disturbed() const {
        return std::any_of(findings.begin(), findings.end(), is_disturbance);
    }

    /// Whether its load test was ended early, as it was lost (`given_up`): the figure is
    /// approximate and no limit was judged.
    [[nodiscard]] bool ended_early() const {
        return std::any_of(findings.begin(), findings.end(),
                           [](const Finding& finding) { return finding.id == "given_up"; });
    }

    friend bool operator==(const Validity&, const Validity&) = default;
};

/// Of a trial whose load test was ended early, the figure of the leading goal that it could not
/// reach any more.
inline constexpr std::string_view trial_had_to_reach = "trial_had_to_reach";

/// 1: the engine took its weights from those that a daemon kept in the devices' memory; 0: it
/// loaded them itself. Not there: the study has no weight cache.
inline constexpr std::string_view weight_cache_metric = "weight_cache";

/// 1: the engine was told how large a cache an earlier start had found room for. Not there: it
/// found out itself.
inline constexpr std::string_view cache_size_metric = "cache_size_reused";

/// Seconds from an engine's launch until it answered as ready.
inline constexpr std::string_view ready_seconds_metric = "ready_seconds";

/// Where a trial ran, where a cluster chose its machine: what of that can change its speed, by name
/// (`node`, `node devices`, `node type`). Empty: on the machine that the study says.
using Place = std::map<std::string, std::string>;

/// The machine's own name in a Place, which alone says nothing of its speed.
inline constexpr const char* name_of_node = "node";

/// A trial that was measured: the figures, and whether they can be believed.
struct Measurement {
    Metrics metrics;
    Validity validity{};
    Place place{};

    /// Whether its engine took from earlier starts what it finds out or loads itself where it
    /// serves.
    [[nodiscard]] bool warm_start() const {
        const auto is_1 = [this](std::string_view metric) {
            const auto found = metrics.find(metric);
            return found != metrics.end() && found->second.value == 1;
        };
        return is_1(weight_cache_metric) || is_1(cache_size_metric);
    }

    friend bool operator==(const Measurement&, const Measurement&) = default;
};

/// Why a trial has no measurement. The names below are written to journals and tables.
enum class FailureKind {
    rejected_flags,  ///< the engine refused its command line
    /// the engine serves and says that a flag has no effect: another configuration's twin
    ignored_flags,
    out_of_memory,  ///< at load, or for the cache
    unsupported,    ///< a back end, type or size that the engine or device does not have
    not_ready_in_time,
    crashed_under_load,
    hung,
    load_test_failed,
    invalid_result,  ///< the evaluator returned a number that is none (NaN, infinite)
    wrong_model,
    not_in_table,    ///< replay: this configuration was never measured
    infrastructure,  ///< not the configuration's fault: port taken, disk full
    cancelled,       ///< stopped by the user before it was done
    other
};

inline constexpr auto failure_kinds = enum_names<FailureKind>(
    "rejected_flags", "ignored_flags", "out_of_memory", "unsupported", "not_ready_in_time",
    "crashed_under_load", "hung", "load_test_failed", "invalid_result", "wrong_model",
    "not_in_table", "infrastructure", "cancelled", "other");

/// Whether a failure says something of the configuration. Those of the machine, the user and a
/// wrong server say nothing.
inline bool teaches(FailureKind kind) {
    return kind != FailureKind::infrastructure && kind != FailureKind::cancelled &&
           kind != FailureKind::wrong_model;
}

inline constexpr auto verdicts = enum_names<Verdict>("sound", "unchecked", "suspect", "unsound");

/// A trial that gave no number. It is data: it teaches where not to go.
struct Failure {
    FailureKind kind = FailureKind::other;
    std::string message{};
    std::string log_path{};
    std::vector<std::string>
        log_lines{};  ///< the log's lines that decide, then its last: ten at most
    Place place{};

    friend bool operator==(const Failure&, const Failure&) = default;
};

using Outcome = std::variant<Measurement, Failure>;

inline const Place& place_of(const Outcome& outcome) {
    return std::visit([](const auto& told) -> const Place& { return told.place; }, outcome);
}

/// The key of a figure in `Metrics`: `total_tokens_per_second`, or `total_tokens_per_second@chat`
/// for one workload of several. No other place knows the sign between them.
struct MetricKey {
    std::string_view name;
    std::string_view workload{};  ///< empty: the figure is of the whole measurement

    /// Views into `key`, which must outlive them.
    static constexpr MetricKey of(std::string_view key) {
        const std::size_t at = key.find(sign);
        return at == std::string_view::npos ? MetricKey{key}
                                            : MetricKey{key.substr(0, at), key.substr(at + 1)};
    }
    [[nodiscard]] std::string text() const {
        return workload.empty() ? std::string(name)
                                : std::string(name) + sign + std::string(workload);
    }

private:
    static constexpr char sign = '@';
};

/// The figures that a measurement has of one metric, as workload -> figure. An empty workload is
/// the whole measurement. Views into `metrics`.
inline std::vector<std::pair<std::string_view, const Metric*>> figures_of(const Metrics& metrics,
                                                                          std::string_view name) {
    std::vector<std::pair<std::string_view, const Metric*>> result;
    for (auto at = metrics.lower_bound(name); at != metrics.end() && at->first.starts_with(name);
         ++at)
        if (const MetricKey key = MetricKey::of(at->first); key.name == name)
            result.emplace_back(key.workload, &at->second);
    return result;
}

}  // namespace servetune
