// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/enum_names.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// Where the prompts come from. Which fields count depends on `kind`; search_spaces/FORMAT.md says
/// which.
struct Dataset {
    enum class Kind { random, sharegpt, trace, prompts, shared_prefix, multi_turn };
    Kind kind = Kind::random;
    std::string path{};  ///< sharegpt, trace, prompts
    std::string
        folder{};  ///< where the file that names `path` stands; a relative path is looked for there
    std::optional<std::int64_t>
        input_tokens{};  ///< per prompt; shared_prefix, multi_turn: what is not shared, per turn
    std::optional<std::int64_t> output_tokens{};  ///< asked for, per request
    double range_ratio = 0;  ///< random: lengths vary uniformly by +- this share
    std::optional<std::int64_t>
        min_tokens{};  ///< sharegpt: shorter prompts or answers are left out
    std::optional<std::int64_t> max_prompt_tokens{};  ///< sharegpt: longer prompts are left out
    std::optional<std::int64_t> max_total_tokens{};   ///< sharegpt: longer pairs are left out
    std::optional<std::int64_t>
        prefix_tokens{};  ///< shared_prefix: tokens that all prompts of a group begin with
    std::optional<std::int64_t> prefix_groups{};  ///< shared_prefix: how many different prefixes
    std::optional<std::int64_t> turns{};          ///< multi_turn: requests of one conversation
};

/// The kinds as they are written in YAML and in journals.
inline constexpr auto dataset_kinds = enum_names<Dataset::Kind>(
    "random", "sharegpt", "trace", "prompts", "shared_prefix", "multi_turn");

/// The largest weight of a workload: combined figures are weighted means, and more than this leaves
/// nothing of the others.
inline constexpr double most_weight = 1e6;

/// Bounds of the requests a second and in flight that can be meant: one in eleven days, and more
/// than one machine sends.
inline constexpr double slowest_rate = 1e-6;
inline constexpr double fastest_rate = 1e9;
inline constexpr std::int64_t most_concurrency = 1'000'000;

/// How many times as fast as recorded a trace can be meant to be sent.
inline constexpr double slowest_replay = 0.001;
inline constexpr double fastest_replay = 1000;

/// Where the most load is looked for under which the limits hold, and how closely.
struct LoadSearch {
    /// requests a second, or in flight; nothing: a fiftieth of what the server does, or one
    std::optional<double> from{};
    std::optional<double> to{};  ///< nothing: all requests at once
    std::int64_t points = 6;     ///< loads that are tried at most, 2 to 50
    double within = 0.02;  ///< it ends once the load is known so closely, relative, 0.001 to 0.5

    friend bool operator==(const LoadSearch&, const LoadSearch&) = default;
};

/// When the requests are sent.
struct Arrival {
    enum class Kind { all_at_once, rate, concurrency, trace, largest_rate, largest_concurrency };
    Kind kind = Kind::all_at_once;
    double requests_per_second = 0;  ///< of a rate
    /// of rates: shape of the Gamma gaps; 1: Poisson, smaller: burstier, infinite: even
    double burstiness = 1;
    std::int64_t in_flight = 0;  ///< concurrency: requests in flight at any time (closed loop)
    /// largest_rate, largest_concurrency: as found for each configuration
    LoadSearch search{};
    double speed = 1;  ///< trace: times as fast as its time stamps say

    [[nodiscard]] bool searched() const {
        return kind == Kind::largest_rate || kind == Kind::largest_concurrency;
    }
};

/// The kinds as they are written in journals.
inline constexpr auto arrival_kinds = enum_names<Arrival::Kind>(
    "all_at_once", "rate", "concurrency", "trace", "largest_rate", "largest_concurrency");

/// What is sent to a server. A pure description: the load generator makes requests from it.
struct Workload {
    std::string name;
    Dataset dataset{};
    std::optional<std::int64_t>
        requests{};  ///< how many; nothing: not known (a published document may not say)
    Arrival arrival{};
    std::uint64_t seed = 42;
    bool ignore_eos = false;  ///< every answer has exactly the tokens asked for
    double weight = 1;        ///< of its metrics in the combined ones
    std::vector<std::string>
        printed_as{};  ///< what published documents call it, for `autotune import`
    /// Only so many of its requests, those with the longest prompts, each with the longest answer
    /// that makes it no longer than the longest of all is, and no more tokens together than all
    /// requests have; 0: all as they are. Turns that follow others stay as they are.
    std::int64_t longest = 0;
    bool after_idle = false;  ///< behind a time without requests: as long as the load before, at
                              ///< most a minute
};

}  // namespace servetune
