// SPDX-License-Identifier: Apache-2.0
#include "production_check.hpp"

#include "base/probability.hpp"
#include "load/metrics_page.hpp"
#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace servetune {
namespace {

constexpr double alpha_of_change = 0.01;
constexpr double requests_in_batch = 100;
constexpr std::size_t fewest_judged = 5, most_judged = 10;
constexpr std::string_view speed_figure = "seconds per output token";

/// How far a figure may be from the study's, and whether less of it is a change.
struct FigureRule {
    std::string_view name;
    double margin;  ///< as a factor 1 + margin; of a share as a difference
    bool less_is_change;
    bool share = false;
};
constexpr std::array<FigureRule, 6> figure_rules{{{"requests per second", 0.5, false},
                                                  {"requests in flight", 0.5, false},
                                                  {"prompt tokens", 0.25, true},
                                                  {"output tokens", 0.25, true},
                                                  {"cache hits", 0.1, true, true},
                                                  {speed_figure, 0.25, false}}};

std::optional<double> ratio_of(const PageCounters& counters, std::string_view over,
                               std::string_view under) {
    const auto a = counters.find(over);
    const auto b = counters.find(under);
    if (a == counters.end() || b == counters.end() || !(b->second > 0)) return std::nullopt;
    return a->second / b->second;
}

/// `grown`: what counters grew by; gauges are their mean.
TrafficFigures traffic_figures(const PageCounters& grown, double seconds) {
    TrafficFigures result;
    const auto set = [&](std::string_view name, const std::optional<double>& value) {
        if (value) result.emplace(name, *value);
    };
    const auto value = [&](std::string_view name) -> std::optional<double> {
        const auto found = grown.find(name);
        return found == grown.end() ? std::nullopt : std::optional(found->second);
    };
    if (const auto requests = value("latency_seconds_count"))
        set("requests per second", *requests / seconds);
    if (const auto latencies = value("latency_seconds_sum"))
        set("requests in flight", *latencies / seconds);  // Little's law
    else if (const auto running = value("running_requests"))
        set("requests in flight", *running + value("waiting_requests").value_or(0));
    set("prompt tokens",
        ratio_of(grown, "request_prompt_tokens_sum", "request_prompt_tokens_count"));
    set("output tokens",
        ratio_of(grown, "request_generated_tokens_sum", "request_generated_tokens_count"));
    auto hits = ratio_of(grown, "prefix_hit_tokens", "prefix_queried_tokens");
    if (!hits) hits = ratio_of(grown, "prefix_hit_tokens", "prompt_tokens");
    if (hits) set("cache hits", std::min(1.0, *hits));
    auto speed = ratio_of(grown, "per_token_seconds_sum", "per_token_seconds_count");
    if (!speed) speed = ratio_of(grown, "token_gap_seconds_sum", "token_gap_seconds_count");
    set(speed_figure, speed);
    return result;
}

bool is_gauge(std::string_view name) {
    return name.ends_with("_requests") || name == "cache_used_share";
}

/// Nothing: a counter fell, so the server restarted.
std::optional<PageCounters> growth(const PageCounters& before, const PageCounters& after) {
    PageCounters result;
    for (const auto& [name, now] : after) {
        const auto then = before.find(name);
        if (then == before.end()) continue;
        if (!is_gauge(name) && now < then->second) return std::nullopt;
        result[name] = is_gauge(name) ? (now + then->second) / 2 : now - then->second;
    }
    return result;
}

double requests_in(const PageCounters& grown) {
    const auto found = grown.find("latency_seconds_count");
    if (found != grown.end()) return found->second;
    // An engine that does not count them: some tokens make a batch.
    const auto tokens = grown.find("generated_tokens");
    return tokens != grown.end() && tokens->second > 0 ? requests_in_batch : 0;
}

void judge_figure(JudgedFigure& figure, const std::vector<double>& values, const FigureRule& rule) {
    figure.now =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    figure.likeness = Likeness::undecided;
    if (values.size() < fewest_judged) return;
    std::vector<double> differences;
    for (const double value : values)
        differences.push_back(rule.share ? value - *figure.study : std::log(value / *figure.study));
    const auto n = static_cast<double>(differences.size());
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
    if (high < margin && (low > -margin || !rule.less_is_change)) figure.likeness = Likeness::same;
    else if (low > margin || (high < -margin && rule.less_is_change))
        figure.likeness = Likeness::changed;
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
    if (file.workloads.size() > 1) {
        result.notes.emplace_back(
            "the study has several workloads: nobody knows their shares of the traffic, so only "
            "'" +
            file.workloads.front().name + "' is compared");
    }
    const Workload& workload = file.workloads.front();
    const Metrics metrics =
        view.means(view.recommendation.recommended, file.workloads.size() > 1 ? workload.name : "");
    if (metrics.empty())
        result.notes.emplace_back(
            "nothing was measured of what is recommended: the workload says what to expect");
    TrafficFigures& expected = result.expected;
    const auto figure = [&](const char* name) -> std::optional<double> {
        const auto found = metrics.find(name);
        return found == metrics.end() ? std::nullopt : std::optional(found->second.value);
    };
    const auto set = [&](std::string_view name, const std::optional<double>& value) {
        if (value && *value > 0) expected.emplace(name, *value);
    };
    const auto requests = figure("successful_requests");
    const auto per_request = [&](const char* tokens) -> std::optional<double> {
        const auto sum = figure(tokens);
        return sum && requests && *requests > 0 ? std::optional(*sum / *requests) : std::nullopt;
    };
    set("prompt tokens", per_request("input_tokens"));
    set("output tokens", per_request("output_tokens"));
    if (!expected.contains("prompt tokens")) {
        double input = 0, output = 0;
        const Plan plan = plan_requests(workload);
        for (const PlannedRequest& request : plan.requests) {
            input += static_cast<double>(request.input_tokens);
            output += static_cast<double>(request.output_tokens);
        }
        const auto count = static_cast<double>(plan.requests.size());
        set("prompt tokens", input / count);
        set("output tokens", output / count);
    }
    const Arrival& arrival = workload.arrival;
    if (arrival.kind == Arrival::Kind::concurrency || arrival.kind == Arrival::Kind::all_at_once ||
        arrival.kind == Arrival::Kind::largest_concurrency) {
        set("requests in flight", figure("mean_concurrency"));
        if (arrival.kind == Arrival::Kind::concurrency)
            set("requests in flight", static_cast<double>(arrival.in_flight));
    } else {
        set("requests per second", figure("requests_per_second"));
        if (arrival.kind == Arrival::Kind::rate)
            set("requests per second", arrival.requests_per_second);
    }
    const auto hits = figure("server_prefix_hit_tokens");
    const auto tokens = figure("input_tokens");
    if (hits && tokens && *tokens > 0)
        expected.emplace("cache hits", std::min(1.0, *hits / *tokens));
    set(speed_figure, figure("time_per_output_token_mean_seconds"));
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
    if (const auto count = grown->find("latency_seconds_count"); count != grown->end())
        requests_ += count->second;
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
        if (const auto found = batch.find(name);
            found != batch.end() && (found->second > 0 || name == "cache hits"))
            values.push_back(found->second);
    return values;
}

std::vector<JudgedFigure> ProductionCheck::judged() const {
    std::vector<JudgedFigure> result;
    bool changed = false;
    for (const FigureRule& rule : figure_rules) {
        const auto study = expected_.find(rule.name);
        if (study == expected_.end()) continue;
        JudgedFigure figure;
        figure.name = rule.name;
        figure.study = study->second;
        const std::vector<double> values = values_of(rule.name);
        if (batches_.size() < fewest_judged) figure.likeness = Likeness::undecided;
        if (!values.empty() && !(changed && rule.name == speed_figure))
            judge_figure(figure, values, rule);
        changed = changed || figure.likeness == Likeness::changed;
        result.push_back(std::move(figure));
    }
    return result;
}

WatchVerdict ProductionCheck::verdict() const {
    const std::vector<JudgedFigure> figures = judged();
    const auto any = [&](Likeness likeness) {
        return std::find_if(figures.begin(), figures.end(),
                            [&](const JudgedFigure& one) { return one.likeness == likeness; });
    };
    if (const auto found = any(Likeness::changed); found != figures.end())
        return found->name == speed_figure ? WatchVerdict::slower : WatchVerdict::tune_again;
    const bool open =
        any(Likeness::undecided) != figures.end() || any(Likeness::same) == figures.end();
    return open ? WatchVerdict::undecided : WatchVerdict::as_recommended;
}

std::string ProductionCheck::workload_yaml() const {
    const auto mean = [&](std::string_view name) -> std::optional<double> {
        const std::vector<double> values = values_of(name);
        if (values.empty()) return std::nullopt;
        return std::accumulate(values.begin(), values.end(), 0.0) /
               static_cast<double>(values.size());
    };
    const auto prompt = mean("prompt tokens"), output = mean("output tokens");
    const bool by_rate = expected_.contains("requests per second");
    const auto load = mean(by_rate ? "requests per second" : "requests in flight");
    if (!prompt || !output || !load) return "";
    return "{use: random, input_tokens: " + fixed_text(std::max(1.0, *prompt), 0) +
           ", output_tokens: " + fixed_text(std::max(1.0, *output), 0) +
           ", ignore_eos: true, arrival: {" +
           (by_rate ? "rate: " + significant_text(*load, 3)
                    : "concurrency: " + fixed_text(std::max(1.0, *load), 0)) +
           "}}";
}

}  // namespace servetune
