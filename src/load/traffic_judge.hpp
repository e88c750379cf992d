// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/server_window.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// The traffic and the speed of a study, for a server to be held against. What the study does not
/// say is absent.
struct ExpectedTraffic {
    /// Tokens of each request, as the server counts them; its mean and, with `shape_known`, how
    /// they spread.
    struct Lengths {
        std::optional<double> mean{};
        std::vector<double> each{};  ///< rising
        bool shape_known = false;
    };
    std::optional<double> requests_per_second{};  ///< of a study that sends at a rate
    std::optional<double> in_flight{};            ///< of one that does not
    Lengths prompt{}, output{};
    std::optional<double> hit_share{};  ///< of the prompts' tokens, from the prefix cache
    /// Mean time per output token of what the study recommends, and the standard error of its
    /// logarithm (0: one measurement, whose error is not known).
    std::optional<double> per_token_seconds{};
    double per_token_error = 0;
};

/// What a trait of the traffic comes to.
enum class Likeness {
    same,       ///< the whole interval lies within the margin
    changed,    ///< the whole interval lies outside, and the last batches each do
    less_load,  ///< the same to the other side, of a load: no reason to tune, it falls every night
    undecided,  ///< more has to be seen
    not_known   ///< the study or the page does not say it
};
inline constexpr std::array<std::pair<Likeness, std::string_view>, 5> likenesses{
    {{Likeness::same, "same"},
     {Likeness::changed, "changed"},
     {Likeness::less_load, "less_load"},
     {Likeness::undecided, "undecided"},
     {Likeness::not_known, "not_known"}}};

/// One trait, judged.
struct JudgedTrait {
    std::string name{};  ///< `request rate`, `prompt tokens`
    Likeness likeness = Likeness::not_known;
    std::optional<double> study{}, now{};
    /// 99 % interval of now / study; of the hit share, of now - study.
    std::optional<double> low{}, high{};
    std::string because{};  ///< one sentence
};

/// Compares a server's traffic with a study's, window after window.
///
/// Windows are put together to batches of at least `requests_in_batch` requests, and the last
/// `most_batches` batches count. Of each trait (load, mean length of prompts and of outputs, hit
/// share) the batches give a mean of ln(now / study) and, by Student's t, an interval of 99 %, in
/// which n batches count n (1 - r) / (1 + r) for their lag-1 correlation r, since traffic wanders
/// (Law, "Simulation Modeling and Analysis", 4.4). What lies within the margin is the same and what
/// lies outside has changed, however many requests there were: the margin is a size, so a million
/// requests find no hair significant. A change has to be there in each of the last
/// `lasting_batches` batches too.
///
/// Lengths are also compared by their buckets: the least total variation distance D between the
/// server's counts and the study's requests in the same buckets, times any factor within the margin
/// (a length beside a bound must not matter). Changed: D - d > shape_margin; the same: D + d <
/// shape_margin, with d = sqrt((k ln 2 + ln 100) / 2n) of n requests in k buckets, the bound of
/// Bretagnolle, Huber and Carol (van der Vaart and Wellner, "Weak Convergence and Empirical
/// Processes", A.6.6), which holds for every distribution.
class TrafficJudge {
public:
    static constexpr double margin = 0.25;       ///< as a factor: 1 / 1.25 to 1.25
    static constexpr double load_margin = 0.5;   ///< the same of the load, which wanders more
    static constexpr double share_margin = 0.1;  ///< of the hit share, as a difference
    static constexpr double shape_margin = 0.25;
    static constexpr double requests_in_batch = 100;
    static constexpr std::size_t most_batches = 10;
    static constexpr std::size_t fewest_batches = 5;
    static constexpr std::size_t lasting_batches = 5;
    static constexpr double less_load_is_change_seconds =
        86400;  ///< a day's busiest hour is below the study's

    explicit TrafficJudge(ExpectedTraffic expected) : expected_(std::move(expected)) {}

    void add(const ServerWindow& window);
    /// After a restart of the server: what was begun is not a batch.
    void interrupted() { open_ = {}; }

    /// Load, prompt tokens, output tokens, cache hits; of a server that does not say the lengths of
    /// requests also how many prompt tokens come to an output token.
    [[nodiscard]] std::vector<JudgedTrait> traffic() const;
    /// The time per output token against what the study measured: `changed` is slower. Not known
    /// while the traffic is not the study's.
    [[nodiscard]] JudgedTrait speed() const;
    [[nodiscard]] std::size_t batches() const { return batches_.size(); }
    [[nodiscard]] const ExpectedTraffic& expected() const { return expected_; }
    /// All batches that count, together.
    [[nodiscard]] ServerWindow recent() const;

private:
    [[nodiscard]] JudgedTrait load() const;
    [[nodiscard]] JudgedTrait lengths(const std::string& name, const std::string& histogram,
                                      const ExpectedTraffic::Lengths& study) const;
    [[nodiscard]] JudgedTrait hits() const;
    [[nodiscard]] JudgedTrait tokens_ratio() const;
    void judge_shape(JudgedTrait& trait, const std::string& histogram,
                     const ExpectedTraffic::Lengths& study) const;

    ExpectedTraffic expected_;
    ServerWindow open_{};
    std::deque<ServerWindow> batches_{};
    double seen_seconds_ = 0;
    double most_load_ = 0;  ///< of `most_batches` batches
};

/// Changed if one trait has, undecided if one is or none can be judged, else the same.
Likeness likeness_of(const std::vector<JudgedTrait>& traits);

/// The least total variation distance of the class comment, and the buckets that hold something.
/// `lengths` rise.
struct ShapeDistance {
    double distance = 0;
    std::size_t buckets = 0;
};
ShapeDistance shape_distance(const Histogram& seen, const std::vector<double>& lengths);

}  // namespace servetune
