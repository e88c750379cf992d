// SPDX-License-Identifier: Apache-2.0
#include "bench_report.hpp"

#include "load/failed_requests.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

std::string milliseconds(double seconds) { return number_text(seconds * 1e3) + " ms"; }

/// Twelve bars over a logarithmic scale from the smallest to the largest.
std::string histogram(const char* title, std::vector<double> seconds) {
    constexpr std::size_t bars = 12;
    constexpr double width = 44;
    std::erase_if(seconds, [](double value) { return !(value > 0); });
    if (seconds.size() < 2) return "";
    const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    const double low = std::log(*least), high = std::log(*most);
    std::array<std::size_t, bars> counts{};
    for (const double value : seconds)
        ++counts[high > low ? std::min(bars - 1, static_cast<std::size_t>((std::log(value) - low) /
                                                                          (high - low) * bars))
                            : 0];
    const double largest = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    std::string text = fmt::format("{} ({} values)\n", title, seconds.size());
    for (std::size_t i = 0; i < bars && (high > low || i == 0); ++i) {
        const double from = std::exp(low + (high - low) * static_cast<double>(i) / bars);
        std::string bar;
        for (int n = static_cast<int>(std::ceil(static_cast<double>(counts[i]) / largest * width));
             n > 0; --n)
            bar += "#";
        text += fmt::format("  {:>12} {:<44} {}\n", milliseconds(from), bar, counts[i]);
    }
    return text;
}

/// Notes that differ only in the metric they speak of (`no interval of METRIC: why`) share a line.
std::string notes_text(const std::vector<std::string>& notes) {
    constexpr std::string_view subject = "no interval of ";
    std::map<std::string, std::string> metrics;  // by reason
    std::string text;
    for (const std::string& note : notes) {
        const auto colon = note.find(": ");
        if (!note.starts_with(subject) || colon == std::string::npos) {
            text += "  note: " + note + "\n";
            continue;
        }
        std::string& listed = metrics[note.substr(colon)];
        listed +=
            (listed.empty() ? "" : ", ") + note.substr(subject.size(), colon - subject.size());
    }
    for (const auto& [reason, names] : metrics)
        text += fmt::format("  {}{}{}\n", subject, names, reason);
    return text;
}

std::string health_text(const LoadTestResult& result) {
    const ClientHealth& client = result.run.client;
    std::string text = "The client itself:";
    if (client.loop_lag_p99)
        text += fmt::format(" loop late by {} (p50), {} (p99), {} (most);",
                            milliseconds(client.loop_lag_p50.value_or(0)),
                            milliseconds(*client.loop_lag_p99),
                            milliseconds(client.loop_lag_max.value_or(0)));
    if (client.send_lag_p99)
        text += fmt::format(" requests sent {} after schedule (p99);",
                            milliseconds(*client.send_lag_p99));
    if (client.coalesced_share)
        text += fmt::format(" {:.1f} % of chunks came in one read with another;",
                            *client.coalesced_share * 100);
    if (client.processor_share)
        text += fmt::format(" {:.0f} % of a core;", *client.processor_share * 100);
    if (client.connects)
        text += fmt::format(" {:.0f} connections made under way", *client.connects);
    return text + "\n";
}

std::string server_text(const LoadTestResult& result) {
    const ServerCounters& server = result.run.server;
    if (!server.output_tokens && !server.input_tokens)
        return "The server's own counters were not found.\n";
    std::string text = "The server counted:";
    if (server.input_tokens) text += fmt::format(" {:.0f} prompt tokens", *server.input_tokens);
    if (server.prefix_hit_tokens)
        text += fmt::format("; {:.0f} came from its cache", *server.prefix_hit_tokens);
    if (server.output_tokens)
        text += fmt::format("; {:.0f} generated tokens", *server.output_tokens);
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
    text += notes_text(statistics.notes);
    std::vector<double> first, gaps;
    for (const RequestRecord& record : result.run.records) {
        if (!record.succeeded() || !record.unread_field.empty()) continue;
        if (record.first_token) first.push_back(*record.first_token - record.sent);
        gaps.insert(gaps.end(), record.gaps.begin(), record.gaps.end());
    }
    for (const std::string& drawn :
         {histogram("Time to first token", first), histogram("Inter-token latency", gaps)})
        if (!drawn.empty()) text += "\n" + drawn;
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

std::string comparison(const LoadTestResult& result, const PublishedResult& other,
                       const std::string& name) {
    std::map<std::string, double> theirs;
    for_each_figure(other.result,
                    [&](const std::string& metric, const std::optional<double>& value) {
                        if (value) theirs[metric] = *value;
                    });
    std::string text =
        fmt::format("{:<44} {:>14} {:>14} {:>9}\n", "", name.substr(0, 14), "now", "change");
    for_each_figure(result.statistics.result, [&](const std::string& metric,
                                                  const std::optional<double>& value) {
        const auto found = theirs.find(metric);
        if (!value || found == theirs.end() || metric.starts_with("client_")) return;
        text += fmt::format(
            "{:<44} {:>14} {:>14} {:>9}\n", metric, figure_text(metric, found->second),
            figure_text(metric, *value),
            found->second != 0 ? fmt::format("{:+.1f} %", (*value / found->second - 1) * 100) : "");
    });
    if (other.validity.verdict > Verdict::unchecked)
        text += fmt::format("{} is {} by its own verdict\n", name,
                            name_in(verdicts, other.validity.verdict));
    const std::array compared{other.result, result.statistics.result};
    const std::vector<Validity> judged = audit_together(compared);
    return text + findings_lines(judged.back(), "");
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
    ours["tokens_are_estimated"] = std::any_of(
        result.run.records.begin(), result.run.records.end(),
        [](const RequestRecord& record) { return record.succeeded() && !record.output_tokens; });
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

}  // namespace autotune
