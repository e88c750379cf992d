// SPDX-License-Identifier: Apache-2.0
#include "production_check.hpp"

#include "base/probability.hpp"
#include "load/metrics_page.hpp"
#include "report_view.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace servetune {
namespace {

constexpr double alpha_of_change = 0.01;
constexpr double requests_in_batch = 100;
constexpr std::size_t fewest_judged = 5, most_judged = 10;
constexpr std::string_view speed_figure = "seconds per output token";

/// How a figure is read, and how far it may be from the study's.
struct FigureRule {
    using Ratio = std::pair<std::string_view, std::string_view>;
    std::string_view name;
    double margin;  ///< as a factor 1 + margin; of a share as a difference
    bool less_is_change;
    std::array<Ratio, 2> counters;  ///< what they grew by; under empty: a second
    Ratio study;                    ///< metrics
    bool share = false;
};
constexpr std::array<FigureRule, 6> figure_rules{
    {{"requests per second",
      0.5,
      false,
      {{{"latency_seconds_count", ""}}},
      {"requests_per_second", ""}},
     {"requests in flight",  // Little's law
      0.5,
      false,
      {{{"latency_seconds_sum", ""}}},
      {"mean_concurrency", ""}},
     {"prompt tokens",
      0.25,
      true,
      {{{"request_prompt_tokens_sum", "request_prompt_tokens_count"}}},
      {"input_tokens", "successful_requests"}},
     {"output tokens",
      0.25,
      true,
      {{{"request_generated_tokens_sum", "request_generated_tokens_count"}}},
      {"output_tokens", "successful_requests"}},
     {"cache hits",
      0.1,
      true,
      {{{"prefix_hit_tokens", "prefix_queried_tokens"}, {"prefix_hit_tokens", "prompt_tokens"}}},
      {"server_prefix_hit_tokens", "input_tokens"},
      true},
     {speed_figure,
      0.25,
      false,
      {{{"per_token_seconds_sum", "per_token_seconds_count"},
        {"token_gap_seconds_sum", "token_gap_seconds_count"}}},
      {"time_per_output_token_mean_seconds", ""}}}};

/// `value_of` a name is a number or nothing; the second name empty: `otherwise`.
template <class ValueOf>
std::optional<double> ratio_of(const FigureRule::Ratio& ratio, const ValueOf& value_of,
                               double otherwise) {
    const std::optional<double> over = value_of(ratio.first);
    const std::optional<double> under =
        ratio.second.empty() ? std::optional(otherwise) : value_of(ratio.second);
    return over && under && *under > 0 ? std::optional(*over / *under) : std::nullopt;
}

std::optional<double> counter_in(const PageCounters& numbers, std::string_view name) {
    const auto* found = entry_in(numbers, name);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

/// `grown`: what counters grew by; gauges are their mean.
TrafficFigures traffic_figures(const PageCounters& grown, double seconds) {
    TrafficFigures result;
    const auto value_of = [&](std::string_view name) { return counter_in(grown, name); };
    for (const FigureRule& rule : figure_rules)
        for (const FigureRule::Ratio& counters : rule.counters)
            if (const auto value = ratio_of(counters, value_of, seconds))
                result.emplace(rule.name, rule.share ? std::min(1.0, *value) : *value);
    if (const auto running = value_of("running_requests"))
        result.emplace("requests in flight", *running + value_of("waiting_requests").value_or(0));
    return result;
}

bool is_gauge(std::string_view name) {
    return name.ends_with("_requests") || name == "cache_used_share";
}

/// Nothing: a counter fell, so the server restarted.
std::optional<PageCounters> growth(const PageCounters& before, const PageCounters& after) {
    PageCounters result;
    for (const auto& [name, now] : after) {
        const auto* then = entry_in(before, name);
        if (then == nullptr) continue;
        if (!is_gauge(name) && now < *then) return std::nullopt;
        result[name] = is_gauge(name) ? (now + *then) / 2 : now - *then;
    }
    return result;
}

double requests_in(const PageCounters& grown) {
    if (const auto requests = counter_in(grown, "latency_seconds_count")) return *requests;
    // An engine that does not count them: some tokens make a batch.
    return counter_in(grown, "generated_tokens").value_or(0) > 0 ? requests_in_batch : 0;
}

void judge_figure(JudgedFigure& figure, const std::vector<double>& values, const FigureRule& rule) {
    figure.now = std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
    figure.likeness = Similarity::undecided;
    if (values.size() < fewest_judged) return;
    std::vector<double> differences;
    for (const double value : values)
        differences.push_back(rule.share ? value - *figure.study : std::log(value / *figure.study));
    const auto n = double(differences.size());
    const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
    double squares = 0, following = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
        squares += (differences[i] - mean) * (differences[i] - mean);
        if (i > 0) following += (differences[i] - mean) * (differences[i - 1] - mean);
    }
    const double correlation = squares > 0 ? std::clamp(following / squares, 0.0, 0.8) : 0;
    const double reach = student_quantile(alpha_of_change, differences.size() - 1) *
                         std::sqrt(squares / (n - 1) / n * (1 + correlation) / (1 - correlation));
    const double margin = rule.share ? rule.margin : std::log1p(rule.margin);
    const double low = mean - reach, high = mean + reach;
    figure.low = rule.share ? low : std::exp(low);
    figure.high = rule.share ? high : std::exp(high);
    if (high < margin && (low > -margin || !rule.less_is_change))
        figure.likeness = Similarity::same;
    else if (low > margin || (high < -margin && rule.less_is_change))
        figure.likeness = Similarity::changed;
}

}  // namespace

WatchedStudy watched_study(const StudySetup& setup, std::span<const Trial> trials) {
    const StudyFile& file = setup.file;
    if (!file.has_commands() || file.workloads.empty())
        throw UsageError("the study '" + file.name +
                         "' starts no engine under a workload: there is no server to watch");
    const ReportView view(setup, trials);
    WatchedStudy result;
    result.engine = &file.composition->engine_of(view.recommendation.recommended);
    if (!result.engine->counters.contains("url"))
        throw UsageError("the file of " + result.engine->name +
                         " names no counters: watch has nothing to read");
    const Workload& workload = file.workloads.front();
    result.workload = workload.name;
    const Metrics metrics =
        view.means(view.recommendation.recommended, file.workloads.size() > 1 ? workload.name : "");
    const Arrival::Kind arrival = workload.arrival.kind;
    const bool closed = arrival == Arrival::Kind::concurrency ||
                        arrival == Arrival::Kind::all_at_once ||
                        arrival == Arrival::Kind::largest_concurrency;
    for (const FigureRule& rule : figure_rules) {
        if (rule.name == (closed ? "requests per second" : "requests in flight")) continue;
        const auto value = ratio_of(
            rule.study, [&](std::string_view name) { return value_in(metrics, name); }, 1);
        if (value && (*value > 0 || rule.share))
            result.expected.emplace(rule.name, rule.share ? std::min(1.0, *value) : *value);
    }
    if (result.expected.empty())
        throw UsageError("the study '" + file.name +
                         "' has measured nothing under load of what it recommends: there is "
                         "nothing to hold a server against");
    return result;
}

PageCounters read_counters(std::string_view page, const std::map<std::string, std::string>& names) {
    PageCounters result;
    const auto read = [&](const std::string& ours, const std::string& theirs) {
        double sum = 0;
        for (std::size_t at = 0; at != std::string::npos;) {  // `a + b`
            const std::size_t end = theirs.find(" + ", at);
            const auto one =
                metric_in(page, theirs.substr(at, end == std::string::npos ? end : end - at));
            if (!one) return;
            sum += *one;
            at = end == std::string::npos ? end : end + 3;
        }
        result[ours] = sum;
    };
    for (const auto& [ours, theirs] : names) {
        read(ours, theirs);
        for (const char* part : {"_sum", "_count"}) read(ours + part, theirs + part);
    }
    return result;
}

std::optional<TrafficFigures> ProductionCheck::add(const PageCounters& counters,
                                                   double at_seconds) {
    const bool first = last_.empty();
    const auto grown = growth(last_, counters);
    const double seconds = at_seconds - last_at_;
    last_ = counters;
    last_at_ = at_seconds;
    if (first || !grown || !(seconds > 0)) {
        restarts_ += first ? 0 : 1;
        begun_ = counters;
        begun_at_ = at_seconds;
        return std::nullopt;
    }
    seconds_ += seconds;
    requests_ += counter_in(*grown, "latency_seconds_count").value_or(0);
    if (const auto batch = growth(begun_, counters);
        batch && requests_in(*batch) >= requests_in_batch) {
        batches_.push_back(traffic_figures(*batch, at_seconds - begun_at_));
        if (batches_.size() > most_judged) batches_.pop_front();
        begun_ = counters;
        begun_at_ = at_seconds;
    }
    return traffic_figures(*grown, seconds);
}

std::vector<double> ProductionCheck::values_of(std::string_view name) const {
    std::vector<double> values;
    for (const TrafficFigures& batch : batches_)
        if (const auto value = counter_in(batch, name);
            value && (*value > 0 || name == "cache hits"))
            values.push_back(*value);
    return values;
}

std::vector<JudgedFigure> ProductionCheck::judged() const {
    std::vector<JudgedFigure> result;
    bool changed = false;
    const auto open = batches_.empty() ? growth(begun_, last_) : std::nullopt;
    const TrafficFigures few =
        open ? traffic_figures(*open, last_at_ - begun_at_) : TrafficFigures{};
    for (const FigureRule& rule : figure_rules) {
        const auto* study = entry_in(expected_, rule.name);
        if (study == nullptr) continue;
        JudgedFigure figure;
        figure.name = rule.name;
        figure.study = *study;
        const std::vector<double> values = values_of(rule.name);
        if (batches_.size() < fewest_judged) figure.likeness = Similarity::undecided;
        if (!values.empty() && !(changed && rule.name == speed_figure))
            judge_figure(figure, values, rule);
        else if (values.empty()) figure.now = counter_in(few, rule.name);
        changed = changed || figure.likeness == Similarity::changed;
        result.push_back(std::move(figure));
    }
    return result;
}

std::string ProductionCheck::too_few_requests() const {
    if (batches_.size() >= fewest_judged) return "";
    if (last_.contains("latency_seconds_count") && requests_ == 0) return "No request came.";
    return fmt::format(
        "Too few requests to judge by: {} batches of at least {} are needed, and {} came.",
        fewest_judged, requests_in_batch, batches_.size());
}

WatchVerdict ProductionCheck::verdict() const {
    const std::vector<JudgedFigure> figures = judged();
    const auto any = [&](Similarity likeness) {
        return find_if(figures, [&](const JudgedFigure& one) { return one.likeness == likeness; });
    };
    if (const auto found = any(Similarity::changed); found != figures.end())
        return found->name == speed_figure ? WatchVerdict::slower : WatchVerdict::tune_again;
    const bool open =
        any(Similarity::undecided) != figures.end() || any(Similarity::same) == figures.end();
    return open ? WatchVerdict::undecided : WatchVerdict::as_recommended;
}

}  // namespace servetune
