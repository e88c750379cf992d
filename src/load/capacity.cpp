// SPDX-License-Identifier: Apache-2.0
#include "capacity.hpp"

#include "audit_parts.hpp"
#include "servetune/audit.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace servetune {
namespace {

constexpr double infinite_load = std::numeric_limits<double>::infinity();

/// A request that fails keeps no limit: where nothing is said of failures, more than one in a
/// hundred is no load that a server bears.
constexpr double least_success = 0.99;

/// Far beyond a limit a secant would only say where the limit is not.
constexpr double most_log_strain = 2;

/// A load that did not arrive, or that the server fell behind, is not sustained, whatever limits it
/// keeps.
constexpr double fell_behind = 1.5;
bool rate_sustained(const Validity& validity) {
    return none_of(validity.findings, [](const Finding& finding) {
        return finding.id == "rate" || finding.id == "sent_late";
    });
}

double utilization_with_rate(const LoadPoint& point) {
    return point.served == Served::yes ? point.limit_utilization
                                       : std::max(point.limit_utilization, fell_behind);
}

/// 0 where it is not known.
double figure_at_load(const LoadPoint& point, std::string_view metric) {
    const auto* found = entry_in(point.metrics, metric);
    return found == nullptr ? 0 : found->value;
}

double served_rate(const LoadPoint& point) { return figure_at_load(point, "requests_per_second"); }
double requests_at_load(const LoadPoint& point) {
    return figure_at_load(point, "successful_requests") + figure_at_load(point, "failed_requests");
}
double arriving_seconds(const LoadPoint& point) { return requests_at_load(point) / point.level; }
double behind_seconds(const LoadPoint& point) {
    return figure_at_load(point, "duration_seconds") - arriving_seconds(point);
}

/// Of a rate above all that the server was seen to end. `below`: the largest rate that it was seen
/// to end.
Served served_above(const LoadPoint& point, const LoadPoint* below) {
    if (!(requests_at_load(point) > 0) || !(figure_at_load(point, "duration_seconds") > 0))
        return Served::no;
    const double arriving = arriving_seconds(point);
    const double usual = below == nullptr ? arriving : std::max(0.0, behind_seconds(*below));
    if (usual >= arriving) return Served::undecided;
    return behind_seconds(point) <= usual + (1 - audit_tolerances::rate_reached) * arriving
               ? Served::yes
               : Served::no;
}

/// What there is to say of how a load was served; empty: nothing.
std::string served_text(const Capacity& capacity, double level) {
    for (const LoadPoint& point : capacity.points)
        if (point.level == level && point.served != Served::yes)
            return point.served == Served::no
                       ? "; the server does not keep up"
                       : "; too few requests to tell whether the server keeps up";
    return "";
}

}  // namespace

bool grows_with_load(const Limit& limit) {
    const std::string_view name = MetricKey::of(limit.metric).name;
    if (name == "success_ratio") return limit.at_least;
    if (limit.at_least || !name.ends_with("_seconds")) return false;
    for (const char* time :
         {"time_to_first_token_", "time_per_output_token_", "inter_token_latency_", "latency_"})
        if (name.starts_with(time)) return true;
    return false;
}

std::vector<Limit> limits_of_workload(const std::vector<Limit>& limits,
                                      const std::string& workload) {
    std::vector<Limit> result;
    for (Limit limit : limits) {
        const MetricKey key = MetricKey::of(limit.metric);
        if (!key.workload.empty() && key.workload != workload) continue;
        limit.metric = std::string(key.name);
        result.push_back(std::move(limit));
    }
    return result;
}

std::vector<Limit> with_least_success(std::vector<Limit> limits) {
    if (none_of(limits, [](const Limit& limit) { return limit.metric == "success_ratio"; }))
        limits.push_back({"success_ratio", true, least_success});
    return limits;
}

std::optional<double> limit_utilization_of(const std::vector<Limit>& limits,
                                           const Metrics& metrics) {
    std::optional<double> worst;
    for (const Limit& limit : limits) {
        if (!grows_with_load(limit)) continue;
        for (const auto& [workload, value] : limit.figures(metrics)) {
            double limit_utilization = limit.bound > 0 ? value / limit.bound : infinite_load;
            if (limit.at_least) limit_utilization = limit.keeps(value) ? 0 : infinite_load;
            worst = std::max(worst.value_or(0), limit_utilization);
        }
    }
    return worst;
}

void judge(LoadPoint& point, const std::vector<Limit>& limits, const Arrival& at) {
    point.level = at.kind == Arrival::Kind::rate          ? at.requests_per_second
                  : at.kind == Arrival::Kind::concurrency ? double(at.in_flight)
                                                          : infinite_load;
    point.limit_utilization = limit_utilization_of(limits, point.metrics).value_or(0);
    point.served =
        at.kind != Arrival::Kind::rate || rate_sustained(point.validity) ? Served::yes : Served::no;
}

void judge_served(std::vector<LoadPoint>& points) {
    double most = 0;
    for (const LoadPoint& point : points) most = std::max(most, served_rate(point));
    const auto seen = [most](const LoadPoint& point) {
        return point.level * audit_tolerances::rate_reached <= most;
    };
    const LoadPoint* below = nullptr;
    for (const LoadPoint& point : points)
        if (seen(point) && rate_sustained(point.validity) && requests_at_load(point) > 0 &&
            (below == nullptr || point.level > below->level))
            below = &point;
    for (LoadPoint& point : points) {
        if (std::isinf(point.level)) continue;
        const bool known = served_rate(point) > 0;
        if (!rate_sustained(point.validity)) point.served = Served::no;
        else point.served = !known || seen(point) ? Served::yes : served_above(point, below);
    }
}

ServiceLimits service_limits(const std::vector<Limit>& limits) {
    ServiceLimits result;
    const auto tighten = [](std::optional<double>& bound, double value) {
        bound = std::min(bound.value_or(value), value);
    };
    for (const Limit& limit : limits) {
        if (limit.at_least || !limit.metric.ends_with("_seconds"))
            continue;  // those of one workload are not of all
        if (limit.metric.starts_with("time_to_first_token_from_schedule")) continue;
        if (limit.metric.starts_with("time_to_first_token_"))
            tighten(result.time_to_first_token_seconds, limit.bound);
        else if (limit.metric.starts_with("time_per_output_token_"))
            tighten(result.time_per_output_token_seconds, limit.bound);
        else if (limit.metric.starts_with("latency_")) tighten(result.latency_seconds, limit.bound);
    }
    return result;
}

std::string_view load_unit(const Arrival& arrival) {
    return arrival.kind == Arrival::Kind::largest_rate || arrival.kind == Arrival::Kind::rate
               ? "requests a second"
               : "requests in flight";
}

std::string level_in_words(double level, std::string_view unit) {
    return std::isinf(level) ? "all requests at once"
                             : short_number_text(level) + " " + std::string(unit);
}

std::string Capacity::text(std::string_view unit) const {
    const std::string kept = level_in_words(low.value_or(0), unit);
    const std::string broken = level_in_words(high.value_or(0), unit);
    switch (end) {
        case End::found: return "between " + short_number_text(low.value_or(0)) + " and " + broken;
        case End::fails_at_lowest:
            return "the lowest load that may be tried, " +
                   level_in_words(points.front().level, unit) +
                   (points.front().limit_utilization > 1 ? ", breaks a limit" : ", is not served");
        case End::edge_not_reached:
            return "the highest load that may be tried (" +
                   level_in_words(points.back().level, unit) + ") keeps all limits";
        case End::below_all_tried:
            return "below " + broken +
                   ": every load that was tried breaks a limit or is not served";
        case End::above_all_tried:
            return "above " + kept + ": every load that was tried but all at once keeps the limits";
        case End::too_few_requests:
            return (low ? "at least " + kept + ": " : std::string()) + broken +
                   " keep the limits, but so few requests do not show whether the server serves "
                   "them for long; use more requests";
    }
    return "";
}

CapacitySearch::CapacitySearch(const Arrival& arrival, std::size_t requests)
    : arrival_(arrival), requests_(double(std::max<std::size_t>(requests, 1))) {
    const LoadSearch& search = arrival_.search;
    if (!arrival_.searched())
        throw UsageError(
            "a search for the largest load wants the arrival largest_rate or largest_concurrency");
    if (search.points < 2 || search.points > 50)
        throw UsageError("a search for the largest load wants 2 to 50 points");
    if (!(search.within >= 0.001 && search.within <= 0.5))
        throw UsageError("a search for the largest load wants `within` from 0.1 % to 50 %");
    for (const auto& bound : {search.from, search.to})
        if (bound && !(*bound > 0 && std::isfinite(*bound)))
            throw UsageError("the bounds of a search for the largest load are above 0");
    if (search.from && *search.from >= highest())
        throw UsageError("a search for the largest load wants `from` below `to`" +
                         (arrival_.kind == Arrival::Kind::largest_concurrency
                              ? " and below the " + short_number_text(requests_) + " requests"
                              : std::string()));
}

double CapacitySearch::rounded(double level) const {
    if (arrival_.kind == Arrival::Kind::largest_rate) return level;
    return std::max(1.0, std::round(level));
}

double CapacitySearch::highest() const {
    if (arrival_.kind == Arrival::Kind::largest_rate)
        return arrival_.search.to.value_or(infinite_load);
    return std::max(1.0, std::floor(std::min(arrival_.search.to.value_or(requests_), requests_)));
}

/// A rate without a bound of its own: a fiftieth of what the server did under the first load.
double CapacitySearch::lowest() const {
    if (arrival_.search.from) return rounded(*arrival_.search.from);
    if (arrival_.kind == Arrival::Kind::largest_concurrency) return 1;
    const double served = points_.empty() ? 0 : served_rate(points_.back());
    const double most = served > 0 ? served : std::isinf(highest()) ? 1 : highest();
    return std::min(most, highest()) / 50;
}

Arrival CapacitySearch::at(double level) const {
    if (arrival_.kind == Arrival::Kind::largest_concurrency)
        return {.kind = Arrival::Kind::concurrency, .in_flight = std::int64_t(level)};
    if (std::isinf(level)) return {};
    return {.kind = Arrival::Kind::rate,
            .requests_per_second = level,
            .burstiness = arrival_.burstiness};
}

std::size_t CapacitySearch::requests_at(double level) const {
    constexpr double times_the_first = 4;
    constexpr double fewest = 20;
    if (points_.empty() || std::isinf(level)) return std::size_t(requests_);
    const LoadPoint& highest_tried = points_.back();  // the first one
    if (!(served_rate(highest_tried) > 0)) return std::size_t(requests_);
    const double first_seconds = requests_ / served_rate(highest_tried);
    double served = level;
    double least = fewest;
    if (arrival_.kind == Arrival::Kind::largest_concurrency) {
        served = served_rate(points_.front()) * std::min(1.0, level / points_.front().level);
        least = std::max(fewest, 3 * level);  // every place is taken three times
    }
    return std::size_t(std::clamp(std::ceil(times_the_first * first_seconds * served),
                                  std::min(least, requests_), requests_));
}

bool CapacitySearch::tried(double level) const {
    return any_of(points_, [&](const LoadPoint& point) { return point.level == level; });
}

void CapacitySearch::tell(LoadPoint point) {
    if (std::isnan(point.limit_utilization)) point.limit_utilization = infinite_load;
    const auto at =
        std::upper_bound(points_.begin(), points_.end(), point.level,
                         [](double level, const LoadPoint& other) { return level < other.level; });
    points_.insert(at, std::move(point));
    if (arrival_.kind == Arrival::Kind::largest_rate) judge_served(points_);
}

/// Pool adjacent violators, each point with the same weight. All at once is no level of a curve: it
/// stays as it is.
std::vector<double> CapacitySearch::smooth_log_strains() const {
    struct Block {
        double sum;
        std::size_t count;
        [[nodiscard]] double mean() const { return sum / double(count); }
    };
    std::vector<Block> blocks;
    for (const LoadPoint& point : points_) {
        const double limit_utilization =
            std::clamp(std::log(std::max(utilization_with_rate(point), 1e-9)), -most_log_strain,
                       most_log_strain);
        blocks.push_back({limit_utilization, 1});
        while (blocks.size() > 1 && !std::isinf(point.level) &&
               blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
            blocks[blocks.size() - 2].sum += blocks.back().sum;
            blocks[blocks.size() - 2].count += blocks.back().count;
            blocks.pop_back();
        }
    }
    std::vector<double> result;
    for (const Block& block : blocks) result.insert(result.end(), block.count, block.mean());
    return result;
}

CapacitySearch::Bracket CapacitySearch::bracket() const {
    const std::vector<double> strains = smooth_log_strains();
    Bracket result;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        if (strains[i] <= 0) result.kept = i;
        else if (!result.broken) result.broken = i;
    }
    return result;
}

/// A little more than the most requests a second that the server ended; nothing where it is not
/// known.
std::optional<double> CapacitySearch::most_served() const {
    constexpr double a_little_more = 1.02;
    double most = 0;
    for (const LoadPoint& point : points_) most = std::max(most, served_rate(point));
    return most > 0 ? std::optional<double>(most * a_little_more) : std::nullopt;
}

/// All loads so far break a limit.
double CapacitySearch::below(std::size_t broken) const {
    const LoadPoint& point = points_[broken];
    const double least = lowest();
    const auto left = std::size_t(arrival_.search.points) - points_.size();
    if (left == 1) return least;  // what is left to be said: whether the limits can be kept at all
    if (arrival_.kind == Arrival::Kind::largest_concurrency) {
        if (points_.size() > 2) return std::sqrt(point.level * least);
        return std::clamp(point.level / std::clamp(utilization_with_rate(point), 1.1, 1e3), least,
                          point.level);
    }
    const std::optional<double> most = most_served();
    if (points_.size() == 1) {
        constexpr double of_what_it_does = 0.85;
        const double at_most = std::min(most.value_or(point.level), point.level);
        return std::isinf(at_most) ? least
                                   : std::clamp(at_most * of_what_it_does, least, point.level);
    }
    if (points_.size() > 3 || !most || point.level >= *most) return std::sqrt(point.level * least);
    // As a queue would wait: ln limit_utilization falls as much as -ln(1 - rate / most) does.
    const double wanted =
        -std::log1p(-point.level / *most) - std::log(utilization_with_rate(point));
    const double as_a_queue =
        std::clamp(-*most * std::expm1(-wanted), 0.2 * point.level, 0.9 * point.level);
    return std::max(as_a_queue, least);
}

/// Where log limit_utilization would cross 0. `margin`: how far it stays off the ends of the
/// bracket, as a share of it.
double CapacitySearch::between(std::size_t kept, std::size_t broken, double margin) const {
    const double low = points_[kept].level;
    const double high = points_[broken].level;
    std::vector<double> strains = smooth_log_strains();
    const std::optional<double> most = most_served();
    const bool as_a_queue = arrival_.kind == Arrival::Kind::largest_rate && most && high < *most;
    if (!as_a_queue) strains[broken] = std::min(strains[broken], 0.5);
    const double share = std::clamp(
        -strains[kept] / std::max(strains[broken] - strains[kept], 1e-9), margin, 1 - margin);
    if (!as_a_queue) return low * std::exp(std::log(high / low) * share);
    const double from = -std::log1p(-low / *most);
    const double to = -std::log1p(-high / *most);
    return -*most * std::expm1(-(from + share * (to - from)));
}

std::optional<double> CapacitySearch::next() const {
    if (points_.empty()) return rounded(highest());
    if (points_.size() >= std::size_t(arrival_.search.points)) return std::nullopt;
    const Bracket now = bracket();
    if (!now.broken) return std::nullopt;  // the highest load keeps the limits
    double level = 0;
    if (!now.kept) {
        if (points_[*now.broken].level <= lowest()) return std::nullopt;
        level = below(*now.broken);
    } else {
        if (points_[*now.broken].level <= points_[*now.kept].level * (1 + arrival_.search.within))
            return std::nullopt;
        const double low = points_[*now.kept].level;
        const double high = points_[*now.broken].level;
        const double margin = high > 1.5 * low ? 0.25 : 0.1;
        level = std::isinf(high) ? low * 1.5 : between(*now.kept, *now.broken, margin);
    }
    level = rounded(level);
    if (arrival_.kind == Arrival::Kind::largest_concurrency &&
        tried(level)) {  // the neighbours, then it is known
        for (const double other : {level - 1, level + 1})
            if (other >= lowest() && other < points_[*now.broken].level &&
                (!now.kept || other > points_[*now.kept].level) && !tried(other))
                return other;
        return std::nullopt;
    }
    if (tried(level)) return std::nullopt;
    return level;
}

Capacity CapacitySearch::result() const {
    Capacity result;
    result.points = points_;
    if (points_.empty()) throw UsageError("no load was tried yet");
    const Bracket now = bracket();
    if (now.kept) result.low = points_[*now.kept].level;
    if (now.broken) result.high = points_[*now.broken].level;
    result.shown = now.kept.value_or(0);
    if (now.kept && now.broken) {
        const bool edge = !std::isinf(points_[*now.broken].level);
        const bool whole_numbers = arrival_.kind == Arrival::Kind::largest_concurrency;
        result.level =
            edge && !whole_numbers ? between(*now.kept, *now.broken, 0) : points_[*now.kept].level;
        result.end = edge ? Capacity::End::found : Capacity::End::above_all_tried;
    } else if (now.kept) {
        result.end = Capacity::End::edge_not_reached;
        result.level = points_.back().level;
        if (std::isinf(result.level))  // all at once: what it did is the least that it can do
            result.level = served_rate(points_.back());
    } else {
        result.level = points_.front().level;
        result.end = result.level <= lowest() ? Capacity::End::fails_at_lowest
                                              : Capacity::End::below_all_tried;
    }
    if (now.broken && points_[*now.broken].limit_utilization <= 1 &&
        points_[*now.broken].served == Served::undecided) {
        result.end = Capacity::End::too_few_requests;
        result.level = points_[result.shown].level;
    }
    return result;
}

std::variant<Capacity, Failure> find_capacity(const Workload& workload, std::size_t requests,
                                              const std::vector<Limit>& limits,
                                              const MeasureLoad& measure,
                                              const std::function<void(const std::string&)>& said) {
    if (workload.dataset.kind == Dataset::Kind::multi_turn)
        throw UsageError("'" + workload.name +
                         "' has conversations, whose turns wait for answers, so that a load that "
                         "is asked for is not reached; the largest "
                         "load wants another dataset");
    CapacitySearch search(workload.arrival, requests);
    const std::vector<Limit> all = with_least_success(limits_of_workload(limits, workload.name));
    while (const auto level = search.next()) {
        Workload at_level = workload;
        at_level.arrival = search.at(*level);
        if (const std::size_t sent = search.requests_at(*level); sent < requests)
            at_level.requests = std::int64_t(sent);
        auto measured = measure(at_level);
        if (const auto* once = std::get_if<LoadPoint>(&measured);
            once != nullptr && once->validity.disturbed()) {
            if (said)
                said(level_in_words(*level, load_unit(workload.arrival)) +
                     ": measured once more, it was disturbed");
            measured = measure(at_level);
        }
        if (auto* failure = std::get_if<Failure>(&measured)) return std::move(*failure);
        auto& point = std::get<LoadPoint>(measured);
        judge(point, all, at_level.arrival);
        for (const Limit& limit : all)
            if (grows_with_load(limit) && !std::isinf(point.limit_utilization) &&
                limit.figures(point.metrics).empty())
                return Failure{FailureKind::load_test_failed,
                               "the largest load cannot be looked for: the load test has no figure "
                               "for the limit " +
                                   limit.readable()};
        std::string broken;
        for (const Limit& limit : all)
            if (const std::string text =
                    grows_with_load(limit) ? limit.broken_text(point.metrics) : "";
                !text.empty())
                broken += (broken.empty() ? "" : "; ") + text;
        search.tell(std::move(point));
        if (said)
            said(level_in_words(*level, load_unit(workload.arrival)) + ": " +
                 (broken.empty() ? "keeps the limits" : broken) +
                 served_text(search.result(), *level));
    }
    return search.result();
}

Measurement measurement_of(const Capacity& capacity, const Arrival& arrival) {
    const LoadPoint& shown = capacity.points[capacity.shown];
    Measurement result{shown.metrics, shown.validity};
    const bool rate = arrival.kind == Arrival::Kind::largest_rate;
    Metric& load =
        result.metrics[std::string(rate ? sustained_requests_per_second : sustained_concurrency)] =
            Metric{capacity.level};
    if (capacity.end == Capacity::End::found && rate) {
        const double low = capacity.low.value_or(capacity.level);
        load.standard_error = (capacity.high.value_or(capacity.level) - low) /
                              4;  // half of the half: as two standard errors
    }
    for (const LoadPoint& point : capacity.points)  // each of them decided where the next one was
        for (const Finding& finding : point.validity.findings)
            if (&point != &shown && is_disturbance(finding))
                add(result.validity, {Verdict::suspect, {finding}});
    if (capacity.end != Capacity::End::found)
        add(result.validity,
            {Verdict::suspect, {{"capacity", "", "", capacity.text(load_unit(arrival))}}});
    return result;
}

}  // namespace servetune
