// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// Figures of a server's traffic by name: `requests per second`, `requests in flight`,
/// `prompt tokens`, `output tokens` (of a request), `cache hits` (share of the prompts' tokens),
/// `seconds per output token`. What is not known is absent.
using TrafficFigures = std::map<std::string, double, std::less<>>;

/// What `autotune watch` holds a server against: what the study measured of its recommendation.
struct WatchedStudy {
    const Engine* engine = nullptr;  ///< of what is recommended; points into the setup
    TrafficFigures expected{};
    std::string workload{};  ///< the study's first, whose figures these are
};
/// Throws UsageError for a study without commands, workloads or measurements, and for an engine
/// whose file names no counters.
WatchedStudy watched_study(const StudySetup& setup, std::span<const Trial> trials);

/// Counters of a page of metrics by the names of an engine file's `counters`; of histograms
/// `NAME_sum` and `NAME_count`.
using PageCounters = std::map<std::string, double, std::less<>>;
PageCounters read_counters(std::string_view page, const std::map<std::string, std::string>& names);

enum class Similarity { same, changed, undecided, not_known };
inline constexpr std::array<std::pair<Similarity, std::string_view>, 4> likenesses{
    {{Similarity::same, "same"},
     {Similarity::changed, "changed"},
     {Similarity::undecided, "undecided"},
     {Similarity::not_known, "not_known"}}};

struct JudgedFigure {
    std::string name{};
    Similarity likeness = Similarity::not_known;
    std::optional<double> study{}, now{};
    std::optional<double> low{}, high{};  ///< 99 % interval of now / study; of a share now - study
};

enum class WatchVerdict { as_recommended, tune_again, slower, undecided };
inline constexpr std::array<std::pair<WatchVerdict, std::string_view>, 4> watch_verdicts{
    {{WatchVerdict::as_recommended, "as_recommended"},
     {WatchVerdict::tune_again, "tune_again"},
     {WatchVerdict::slower, "slower"},
     {WatchVerdict::undecided, "undecided"}}};

/// Compares a server's counters with a study, reading after reading.
///
/// Readings form batches of at least 100 requests, of which the last ten count. Student's t gives a
/// 99 % interval for the mean of ln(now / study), in which n batches count n (1 - r) / (1 + r) for
/// their lag-1 correlation r (Law, "Simulation Modeling and Analysis", 4.4). A figure is the same
/// where the interval lies within its margin, and has changed where it lies outside. Less load and
/// more speed are no change.
class ProductionCheck {
public:
    explicit ProductionCheck(TrafficFigures expected) : expected_(std::move(expected)) {}

    /// The figures since the reading before. Nothing: the first one, or the server restarted.
    std::optional<TrafficFigures> add(const PageCounters& counters, double at_seconds);

    /// Of the traffic, then of the speed, which is not known while the traffic has changed. Before
    /// the first batch `now` is of all requests that came.
    [[nodiscard]] std::vector<JudgedFigure> judged() const;
    [[nodiscard]] WatchVerdict verdict() const;
    /// Why nothing can be judged yet, a sentence; empty: something can.
    [[nodiscard]] std::string too_few_requests() const;
    [[nodiscard]] double requests() const { return requests_; }
    [[nodiscard]] double seconds() const { return seconds_; }
    [[nodiscard]] std::size_t restarts() const { return restarts_; }

private:
    [[nodiscard]] std::vector<double> values_of(std::string_view name) const;

    TrafficFigures expected_;
    PageCounters last_{}, begun_{};  ///< of the last reading; where the open batch begins
    double last_at_ = 0, begun_at_ = 0;
    std::deque<TrafficFigures> batches_{};
    double requests_ = 0, seconds_ = 0;
    std::size_t restarts_ = 0;
};

}  // namespace servetune
