// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/statistics.hpp"
#include "servetune/objective.hpp"
#include "servetune/outcome.hpp"
#include "servetune/workload.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace servetune {

/// The two figures of a workload whose load is looked for; which of them, its arrival says.
inline constexpr std::string_view sustained_requests_per_second = "sustained_requests_per_second";
inline constexpr std::string_view sustained_concurrency = "sustained_concurrency";

/// Whether more load makes it harder to keep: an upper bound of a time of requests or tokens, or a
/// lower one of `success_ratio`. Others (tokens a second, watts, the duration) are judged once the
/// load is found, as in any trial.
[[nodiscard]] bool grows_with_load(const Limit& limit);

/// The limits that a workload has to keep: those of all workloads, and its own (`ttft_p95@chat`)
/// without its name.
[[nodiscard]] std::vector<Limit> limits_of_workload(const std::vector<Limit>& limits,
                                                    const std::string& workload);

/// The same and, where they say nothing of failures, `success_ratio >= 0.99`: a request that fails
/// keeps no limit.
[[nodiscard]] std::vector<Limit> with_least_success(std::vector<Limit> limits);

/// How near a server is to the first limit that breaks: value / bound of the worst of those that
/// grow with load, above 1 is broken. A kept `success_ratio` says nothing, a broken one infinity.
/// Nothing where none can be judged.
[[nodiscard]] std::optional<double> limit_utilization_of(const std::vector<Limit>& limits,
                                                         const Metrics& metrics);

/// What a request must keep to be good where the objective's limits say so for most of them: of
/// each time the tightest bound of any of its statistics.
[[nodiscard]] ServiceLimits service_limits(const std::vector<Limit>& limits);

/// Whether the server ended as many requests a second as came.
enum class Served { yes, no, undecided };

/// One load that was tried.
struct LoadPoint {
    double level = 0;  ///< requests a second or in flight; infinite: all at once
    Metrics metrics{};
    Validity validity{};
    double limit_utilization = 0;  ///< `limit_utilization_of`; 0 where no limit could be judged
    Served served = Served::yes;   ///< `judge_served`

    [[nodiscard]] bool kept() const { return limit_utilization <= 1 && served == Served::yes; }
};

/// Sets level and limit_utilization of a measured point, and `served` as the point alone says it.
/// `at`: the arrivals it was measured under.
void judge(LoadPoint& point, const std::vector<Limit>& limits, const Arrival& at);

/// Sets `served` of points at rates, from what all of them say together. The findings `rate` and
/// `sent_late` are a no. A rate is served if
/// - it is at most 3 % above the most requests a second that the server ended under any of the
///   loads: it was seen to do that much; or
/// - the run went on after its arrivals hardly longer (3 % of their time) than at the largest of
///   those rates.
///
/// n / duration alone says too little in a short test: the last answers come after the last
/// arrival, however idle the server is. How long after, the lower rate shows; a server that falls
/// behind is later by what it fell behind. Undecided: a rate above the first bound if no load was
/// within it, or if its arrivals take less time than those last answers: it was never full.
void judge_served(std::vector<LoadPoint>& points);

/// What a search for the largest load found.
struct Capacity {
    enum class End {
        found,             ///< between a load that keeps the limits and one that breaks them
        fails_at_lowest,   ///< the lowest load that may be tried breaks a limit
        edge_not_reached,  ///< the highest load that may be tried keeps them all
        /// every load that was tried breaks a limit, and more points were not allowed
        below_all_tried,
        /// every finite load that was tried keeps them, and more points were not allowed
        above_all_tried,
        /// the next load keeps them, but whether the server serves it is undecided
        too_few_requests,
    };
    End end = End::found;
    double level =
        0;  ///< the largest load, as far as it is known: a bound of it where it was not found
    std::optional<double> low{};      ///< the largest load that keeps the limits
    std::optional<double> high{};     ///< the smallest that breaks them; infinite: all at once
    std::vector<LoadPoint> points{};  ///< by level
    std::size_t shown =
        0;  ///< the point whose figures are the workload's: that of `low`, else the lowest

    /// In words: `between 3.1 and 3.2 requests a second`, or why there is no such edge. `unit`: as
    /// `load_unit`.
    [[nodiscard]] std::string text(std::string_view unit) const;
};

/// `requests a second` or `requests in flight`.
[[nodiscard]] std::string_view load_unit(const Arrival& arrival);
/// `12 requests a second`, `all requests at once`.
[[nodiscard]] std::string level_in_words(double level, std::string_view unit);

/// Looks for the largest load under which the limits hold, on a server that goes on serving.
///
/// The first point is the highest load that may be tried: it takes the least time, and what the
/// server then does is about the most that it can do. Of rates the second is 0.85 of that, of
/// requests in flight the one at which the limit would just hold if it grew in proportion. Then
/// between the largest load that keeps the limits and the smallest that breaks them, by the secant
/// of log limit_utilization, kept off the ends (as Illinois and ITP do: Oliveira and Takahashi, ACM
/// TOMS 47(1), 2020), over -ln(1 - rate / most), in which the waiting time of a queue is a straight
/// line (M/M/1: service time / (1 - rate / most)); most is a little more than what the server did.
/// Over log load where a level is above that, and for requests in flight. Answers are noisy and
/// need not rise: what counts is the isotonic regression of the log strains (pool adjacent
/// violators; Barlow et al., 1972).
///
///     CapacitySearch search(workload.arrival, 200);
///     while (const auto level = search.next()) search.tell(point_at(*level));
///     const Capacity found = search.result();
class CapacitySearch {
public:
    /// `arrival` must be `searched`; `requests`: of the workload, the most that can be in flight.
    /// Throws UsageError where the bounds cannot be.
    CapacitySearch(const Arrival& arrival, std::size_t requests);

    /// The load to try next; nothing: it is over.
    [[nodiscard]] std::optional<double> next() const;
    /// One answer. A limit_utilization that is no number counts as broken.
    void tell(LoadPoint point);
    [[nodiscard]] Capacity result() const;

    /// The arrivals at a level, and how many requests are worth sending there.
    [[nodiscard]] Arrival at(double level) const;
    [[nodiscard]] std::size_t requests_at(double level) const;

private:
    struct Bracket {
        std::optional<std::size_t>
            kept{};  ///< index in points_ of the largest that keeps the limits
        std::optional<std::size_t> broken{};  ///< of the smallest that breaks them
    };
    [[nodiscard]] Bracket bracket() const;
    [[nodiscard]] std::vector<double> smooth_log_strains() const;
    [[nodiscard]] double highest() const;
    [[nodiscard]] double lowest() const;
    [[nodiscard]] double rounded(double level) const;
    [[nodiscard]] double below(std::size_t broken) const;
    [[nodiscard]] std::optional<double> most_served() const;
    [[nodiscard]] double between(std::size_t kept, std::size_t broken, double margin) const;
    [[nodiscard]] bool tried(double level) const;

    Arrival arrival_;
    double requests_;
    std::vector<LoadPoint> points_{};  ///< by level
};

/// A load test of the workload with fixed arrivals.
using MeasureLoad = std::function<std::variant<LoadPoint, Failure>(const Workload& at_level)>;

/// The whole search, under the limits of the workload that grow with load and `with_least_success`.
/// A load that would take more than four times as long as the first one gets fewer requests, 20 at
/// least. A failure of one load test is that of the whole, and so is a limit that it has no figure
/// for. `said`: a line for each point, where wanted.
std::variant<Capacity, Failure> find_capacity(
    const Workload& workload, std::size_t requests, const std::vector<Limit>& limits,
    const MeasureLoad& measure, const std::function<void(const std::string&)>& said = {});

/// A capacity as the outcome of a workload: the figures at the largest load that keeps the limits,
/// and the load (`sustained_requests_per_second` or `sustained_concurrency`) with half of what is
/// not known of it as its standard error. Where no edge was found, the finding `capacity` says why,
/// and the verdict is `suspect` at least.
Measurement measurement_of(const Capacity& capacity, const Arrival& arrival);

}  // namespace servetune
