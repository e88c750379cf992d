// SPDX-License-Identifier: Apache-2.0
#include "load_reports.hpp"

#include "load/failed_requests.hpp"
#include "report/report_json.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace autotune {

using OrderedJson = nlohmann::ordered_json;

namespace {

/// A figure of a line, where it was measured: shown times `factor`.
struct FigurePart {
    std::optional<double> value;
    double factor;
    const char* format;
};

std::string joined_figures(std::initializer_list<FigurePart> parts) {
    std::string text;
    for (const FigurePart& part : parts)
        if (part.value)
            text += (text.empty() ? " " : "; ") +
                    fmt::format(fmt::runtime(part.format), *part.value * part.factor);
    return text;
}

std::string health_text(const LoadTestResult& result) {
    const ClientHealth& client = result.run.client;
    return "The client itself:" +
           joined_figures(
               {{client.loop_lag_p50, 1e3, "loop late by {:.4g} ms (p50)"},
                {client.loop_lag_p99, 1e3, "{:.4g} ms (p99)"},
                {client.loop_lag_max, 1e3, "{:.4g} ms (most)"},
                {client.send_lag_p99, 1e3, "requests sent {:.4g} ms after schedule (p99)"},
                {client.coalesced_share, 100, "{:.1f} % of chunks came in one read with another"},
                {client.processor_share, 100, "{:.0f} % of a core"},
                {client.connects, 1, "{:.0f} connections made under way"}}) +
           "\n";
}

std::string server_text(const LoadTestResult& result) {
    const ServerCounters& server = result.run.server;
    if (!server.output_tokens && !server.input_tokens)
        return "The server's own counters were not found.\n";
    std::string text = "The server counted:" +
                       joined_figures({{server.input_tokens, 1, "{:.0f} prompt tokens"},
                                       {server.prefix_hit_tokens, 1, "{:.0f} came from its cache"},
                                       {server.output_tokens, 1, "{:.0f} generated tokens"}});
    if (server.drafted_tokens.value_or(0) > 0 && server.accepted_tokens)
        text += fmt::format("; of {:.0f} guessed tokens {:.0f} were right ({:.0f} %)",
                            *server.drafted_tokens, *server.accepted_tokens,
                            100 * *server.accepted_tokens / *server.drafted_tokens);
    return text + "\n";
}

std::string verdict_text(const LoadTestResult& result) {
    std::string text = fmt::format("Verdict: {}\n", name_in(verdicts, result.validity.verdict));
    text += findings_lines(result.validity);
    for (const NotChecked& missing : result.not_checked)
        text += fmt::format("  not checked: {}: {}\n", missing.id, missing.reason);
    return text;
}

}  // namespace

std::string bench_report(const LoadTestResult& result, const std::string& block) {
    std::string text = block;
    const LoadStatistics& statistics = result.statistics;
    if (!statistics.intervals.empty())
        text +=
            "\n95 % intervals within this run, its start and end left out (server starts differ "
            "more):\n";
    for (const auto& [metric, interval] : statistics.intervals)
        text += fmt::format("  {:<40} {} .. {}\n", metric, figure_text(metric, interval.low),
                            figure_text(metric, interval.high));
    for (const std::string& note : statistics.notes) text += "  note: " + note + "\n";
    text += "\n" + result.plan.description + "\n" + health_text(result) + server_text(result);
    if (const std::string failed = failed_requests_text(result.run.records); !failed.empty())
        text += failed + "\n";
    return text + verdict_text(result);
}

std::string findings_lines(const Validity& validity, std::string_view indent) {
    std::string text;
    for (const Finding& finding : validity.findings)
        text += fmt::format("{}{}: {} against {}: {}\n", indent, finding.id, finding.left,
                            finding.right, finding.cause);
    return text;
}

std::string with_verdict(const std::string& json, const LoadTestResult& result,
                         std::uint64_t salt) {
    OrderedJson object = OrderedJson::parse(json);
    OrderedJson& ours = object["servetune"];
    ours["verdict"] = name_in(verdicts, result.validity.verdict);
    ours["findings"] = OrderedJson::array();
    for (const Finding& finding : result.validity.findings)
        ours["findings"].push_back({{"id", finding.id},
                                    {"left", finding.left},
                                    {"right", finding.right},
                                    {"cause", finding.cause}});
    for (const auto& [metric, interval] : result.statistics.intervals)
        ours["intervals"][metric] = {interval.low, interval.high};
    ours["refused_fields"] = result.handshake.refused_fields;
    ours["tokens_are_estimated"] = any_of(result.run.records, [](const RequestRecord& record) {
        return record.succeeded() && !record.output_tokens;
    });
    ours["failures"] = OrderedJson::array();
    for (const FailedRequests& failed : failed_requests(result.run.records))
        ours["failures"].push_back(
            {{"kind", failed.kind}, {"count", failed.count}, {"error", failed.error}});
    ours["notes"] = result.statistics.notes;
    ours["workload_fingerprint"] = result.plan.fingerprint.text();
    ours["salt"] = salt;
    ours["library"] = result.run.library;
    return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

namespace {

constexpr std::array<std::pair<Capacity::End, std::string_view>, 6> ends{{
    {Capacity::End::found, "found"},
    {Capacity::End::fails_at_lowest, "fails_at_lowest"},
    {Capacity::End::edge_not_reached, "edge_not_reached"},
    {Capacity::End::below_all_tried, "below_all_tried"},
    {Capacity::End::above_all_tried, "above_all_tried"},
    {Capacity::End::too_few_requests, "too_few_requests"},
}};

std::string load_text(double level) {
    return std::isinf(level) ? "all at once" : short_number_text(level);
}

/// Empty where it was not measured.
std::string figure_of(const Metrics& metrics, std::string_view metric) {
    const auto* found = entry_in(metrics, metric);
    return found == nullptr ? "-" : figure_text(metric, found->value);
}

}  // namespace

void CapacityReport::add(LoadPoint point, const Arrival& at) {
    judge(point, limits, at);
    points.push_back(std::move(point));
    if (at.kind == Arrival::Kind::rate) judge_served(points);
}

std::string CapacityReport::line_of(const LoadPoint& point) const {
    const Metrics& m = point.metrics;
    std::string line = fmt::format(
        "{:>12} {:>9} {:>10} {:>11} {:>10} {:>10} {:>11} {:>9}", load_text(point.level),
        figure_of(m, "requests_per_second"), figure_of(m, "output_tokens_per_second"),
        figure_of(m, tokens_per_second_per_user), figure_of(m, "time_to_first_token_p95_seconds"),
        figure_of(m, "time_per_output_token_p95_seconds"), figure_of(m, "latency_p95_seconds"),
        name_in(verdicts, point.validity.verdict));
    if (!limits.empty())
        line += std::isinf(point.limit_utilization)
                    ? "  requests fail"
                    : fmt::format("  {:>5.0f} %", point.limit_utilization * 100);
    return line + (point.served == Served::no ? "  does not keep up" : "");
}

Verdict CapacityReport::verdict() const {
    if (found) return found->points[found->shown].validity.verdict;
    Verdict worst = Verdict::sound;
    for (const LoadPoint& point : points) worst = std::max(worst, point.validity.verdict);
    return worst;
}

std::string CapacityReport::findings_of(const LoadPoint& point) const {
    const std::string text = findings_lines(point.validity);
    return text.empty() ? text
                        : fmt::format("{}, {}:\n{}", load_text(point.level),
                                      name_in(verdicts, point.validity.verdict), text);
}

std::string CapacityReport::text() const {
    std::string text;
    if (found) {
        std::string all;
        for (const Limit& limit : limits) all += (all.empty() ? "" : ", ") + limit.readable();
        if (verdict() == Verdict::unsound)
            text += fmt::format(
                "No largest load: the result at {} is unsound\nunder {}\n\n",
                level_in_words(found->points[found->shown].level, load_unit(arrival)), all);
        else if (found->end == Capacity::End::found)
            text += fmt::format("Largest load{}: {} {} ({})\nunder {}\n\n",
                                verdict() == Verdict::suspect ? ", suspect" : "",
                                short_number_text(found->level), load_unit(arrival),
                                found->text(load_unit(arrival)), all);
        else
            text += fmt::format("No largest load: {}\nunder {}\n\n",
                                found->text(load_unit(arrival)), all);
    }
    if (points.empty()) return text;
    text += fmt::format("{:>12} {:>9} {:>10} {:>11} {:>10} {:>10} {:>11} {:>9}{}\n",
                        arrival.kind == Arrival::Kind::largest_rate ? "requests/s" : "in flight",
                        "served/s", "tokens/s", "tok/s/user", "TTFT p95", "TPOT p95", "latency p95",
                        "verdict", limits.empty() ? "" : "  of the nearest limit");
    std::vector<LoadPoint> by_level = points;
    stable_sort(by_level, [](const LoadPoint& a, const LoadPoint& b) { return a.level < b.level; });
    for (const LoadPoint& point : by_level) text += line_of(point) + "\n";
    text +=
        "times in milliseconds; served/s: until the last answer's end, so below what a short "
        "test asked\ntokens/s: output tokens of all; tok/s/user: 1 / mean TPOT\n";
    for (const LoadPoint& point : by_level) text += findings_of(point);
    return text;
}

std::string CapacityReport::json() const {
    OrderedJson json;
    json["load"] =
        arrival.kind == Arrival::Kind::largest_rate ? "requests_per_second" : "concurrency";
    json["limits"] = OrderedJson::array();
    for (const Limit& limit : limits) json["limits"].push_back(limit.text());
    if (found) {
        json["end"] = name_in(ends, found->end);
        json["largest_load"] = found->level;
        json["keeps_at"] = or_null(found->low);
        json["breaks_at"] = or_null(found->high);
    }
    if (!points.empty()) json["verdict"] = name_in(verdicts, verdict());
    json["points"] = OrderedJson::array();
    for (const LoadPoint& point : points) {
        OrderedJson one;
        one["load"] = point.level;
        one["of_nearest_limit"] = point.limit_utilization;
        one["keeps_up"] = point.served == Served::undecided
                              ? OrderedJson()
                              : OrderedJson(point.served == Served::yes);
        one["verdict"] = name_in(verdicts, point.validity.verdict);
        for (const auto& [name, metric] : point.metrics) one["metrics"][name] = metric.value;
        json["points"].push_back(std::move(one));
    }
    return json.dump(2);  // null for what is infinite: a load of all at once
}

}  // namespace autotune
