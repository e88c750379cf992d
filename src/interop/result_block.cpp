// SPDX-License-Identifier: Apache-2.0
#include "result_block.hpp"

#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace servetune {
namespace {

bool blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// A label in lower case, without the blanks around it and before an opening bracket: "Mean
/// Latency(s)" and "TPOT (ms)" alike.
std::string spelled(std::string_view label) {
    std::string result;
    for (const char c : label) {
        if (c == '(')
            while (!result.empty() && blank(result.back())) result.pop_back();
        if (!result.empty() || !blank(c))
            result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    while (!result.empty() && blank(result.back())) result.pop_back();
    return result;
}

/// What the tools print -> our figure. Each was looked up in the sources of vLLM (2023 to 2026-09),
/// SGLang (2024-07 to 2026-09) and GPUStack's performance lab (2026). What looks alike and is
/// something else must not match: the input tokens that are text, tokens counted anew from the
/// text, probe requests, latencies that hold the client's queue.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> printed_labels{{
    {"successful requests", "successful_requests"},
    {"failed requests", "failed_requests"},
    {"benchmark duration(s)", "duration_seconds"},
    {"maximum request concurrency", "maximum_concurrency"},
    {"max request concurrency", "maximum_concurrency"},
    {"max reqeuest concurrency", "maximum_concurrency"},  // SGLang until 2025-05
    {"peak concurrent requests", "peak_concurrent_requests"},
    {"concurrency", "mean_concurrency"},  // SGLang: sum of latencies / duration
    {"request rate configured(rps)", "requested_rate_per_second"},
    {"traffic request rate", "requested_rate_per_second"},
    {"total input tokens", "input_tokens"},
    {"total generated tokens", "output_tokens"},
    {"request throughput(req/s)", "requests_per_second"},
    {"request goodput(req/s)", "goodput_requests_per_second"},
    {"input token throughput(tok/s)", "input_tokens_per_second"},
    {"output token throughput(tok/s)", "output_tokens_per_second"},
    {"peak output token throughput(tok/s)", "peak_output_tokens_per_second"},
    {"total token throughput(tok/s)",
     "total_tokens_per_second"},  // vLLM until 2025-12 and GPUStack: "Total Token"
    {"total throughput(tok/s)", "total_tokens_per_second"},  // SGLang's forks
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> statistics{
    {{"mean ", "mean"},
     {"median ", "p50"},
     {"p50 ", "p50"},
     {"p90 ", "p90"},
     {"p95 ", "p95"},
     {"p99 ", "p99"},
     {"std ", "standard_deviation"}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> times_of_block{
    {{"ttft(ms)", "time_to_first_token"},
     {"tpot(ms)", "time_per_output_token"},
     {"itl(ms)", "inter_token_latency"},
     {"e2el(ms)", "latency"},
     {"e2e latency(ms)", "latency"},
     {"latency(s)", "latency"}}};

/// The figure of a label, and the power of ten that turns its unit into ours.
std::optional<std::pair<std::string, int>> figure_of(std::string_view label) {
    for (const auto& [printed, metric] : printed_labels)
        if (label == printed) return {{std::string(metric), 0}};
    for (const auto& [statistic, name] : statistics) {
        if (!label.starts_with(statistic)) continue;
        for (const auto& [family, metric] : times_of_block)
            if (label.substr(statistic.size()) == family)
                return {{std::string(metric) + "_" + std::string(name) + "_seconds",
                         family.ends_with("(ms)") ? -3 : 0}};
    }
    return std::nullopt;
}

/// Who prints such a label and nobody else; vLLM's own are printed by others, too.
std::string_view tool_of(std::string_view label) {
    for (const std::string_view sglang :
         {"backend", "traffic request rate", "total generated tokens(retokenized)",
          "mean e2e latency(ms)"})
        if (label == sglang) return "sglang";
    return label == "mean latency(s)" ? "gpustack" : "";
}

/// A label without what a quotation (`> `), a difference (`+`), a list, a log (`bench-1 | `, `(name
/// pid=7) `) or colours put before it.
std::string_view without_prefix(std::string_view label) {
    if (const auto bar = label.rfind('|'); bar != std::string_view::npos)
        label.remove_prefix(bar + 1);
    if (const auto process = label.find(") ");
        label.starts_with('(') && process != std::string_view::npos)
        label.remove_prefix(process + 2);
    while (!label.empty() && std::isalnum(static_cast<unsigned char>(label.front())) == 0) {
        const bool colour = label.starts_with("\x1b[");
        label.remove_prefix(colour ? std::min(label.find('m'), label.size() - 1) + 1 : 1);
    }
    return label;
}

bool all_zero(const TimeSummary& times) {
    const std::array printed{times.mean, times.p50, times.p90,
                             times.p95,  times.p99, times.standard_deviation};
    return std::all_of(printed.begin(), printed.end(),
                       [](const auto& figure) { return figure.value_or(0) == 0; });
}

/// The tools print 0 for what they did not measure: gaps of one-token answers, times of a run
/// without a success. Gaps of 0 in answers whose tokens took time stay: they are a finding.
void drop_unmeasured(BenchmarkResult& figures) {
    const bool none_succeeded = figures.successful_requests == 0;
    const bool tokens_took_time = !all_zero(figures.time_per_output_token);
    for (TimeSummary* times : {&figures.time_to_first_token, &figures.time_per_output_token,
                               &figures.inter_token_latency, &figures.latency}) {
        const bool a_finding = times == &figures.inter_token_latency && tokens_took_time;
        if (none_succeeded || (all_zero(*times) && !a_finding)) *times = {};
    }
    if (none_succeeded) return;
    for (auto* figure : {&figures.input_tokens, &figures.peak_concurrent_requests,
                         &figures.peak_output_tokens_per_second})
        if (*figure == 0) figure->reset();
}

/// GPUStack prints GuideLLM's largest rate as the peak: that of an interval of 0.1 ms between two
/// tokens (hack/perf/perf_doc_common.py), no rate over a second.
void drop_rate_of_instant(PublishedResult& result) {
    auto& peak = result.result.peak_output_tokens_per_second;
    if (result.tool != "gpustack" || !peak) return;
    result.unread["peak output token throughput(tok/s), over an instant"] = text_of(*peak);
    peak.reset();
}

/// Behind a value, in its line: `1280.00 -> 1600.00`, `1 280.00`. Nobody knows which counts.
bool goes_on_with_number(std::string_view rest) {
    rest = rest.substr(0, rest.find('\n'));
    constexpr std::array<std::string_view, 7> between{"->",  "=>", "\xe2\x86\x92", "|", "/",
                                                      "vs.", "vs"};
    for (bool skipped = true; skipped;) {
        while (!rest.empty() && blank(rest.front())) rest.remove_prefix(1);
        const auto sign = std::find_if(between.begin(), between.end(),
                                       [&](std::string_view one) { return rest.starts_with(one); });
        skipped = sign != between.end();
        if (skipped) rest.remove_prefix(sign->size());
    }
    return !rest.empty() && std::isdigit(static_cast<unsigned char>(rest.front())) != 0;
}

/// How the tools say that there is no such figure: no cap, no rate, too few requests.
bool says_none(std::string_view value) {
    return value == "N/A" || value == "None" || value == "not set" || value == "inf";
}

}  // namespace

void read_block(std::string_view block, PublishedResult& into) {
    std::set<std::string> seen, twice;  // figures that are printed, and those with two values
    std::size_t label_start = 0;
    for (std::size_t colon = block.find(':'); colon != std::string_view::npos;
         colon = block.find(':', colon + 1)) {
        if (colon < label_start) continue;  // within a value
        std::string_view label = block.substr(label_start, colon - label_start);
        // Of what stands before a colon, a rule of dashes and earlier lines belong to no label.
        if (const auto rule = label.rfind("--"); rule != std::string_view::npos)
            label.remove_prefix(rule + 2);
        while (!label.empty() && blank(label.back())) label.remove_suffix(1);
        if (const auto line = label.rfind('\n'); line != std::string_view::npos)
            label.remove_prefix(line + 1);
        std::size_t start = colon + 1;
        while (start < block.size() && blank(block[start]) && block[start] != '\n') ++start;
        std::size_t end = start;
        while (end < block.size() && !blank(block[end])) ++end;
        if (block.substr(start).starts_with("not set"))
            end = start + std::string_view("not set").size();
        const std::string value(block.substr(start, end - start));
        const bool another = goes_on_with_number(block.substr(end));
        const std::string name = spelled(without_prefix(label));
        label_start = end;
        if (name.empty() || value.empty()) continue;
        if (into.tool.empty()) into.tool = tool_of(name);
        const auto figure = figure_of(name);
        if (value == "N/A" || (figure && says_none(value))) continue;
        // The power of ten goes into the text, so that 15.12 ms is the double nearest to 0.01512.
        const auto number =
            figure && !another && value != "-1"  // not known
                ? real_of(figure->second == 0 ? value
                                              : value + "e" + std::to_string(figure->second))
                : std::nullopt;
        bool taken = false;
        if (number && std::isfinite(*number))
            for_each_figure(into.result,
                            [&](const std::string& metric, std::optional<double>& field) {
                                if (metric != figure->first) return;
                                // Two blocks side by side: nobody knows whose it is.
                                const bool other = !seen.insert(metric).second && field != number;
                                if (other) twice.insert(metric);
                                if (twice.contains(metric)) field.reset();
                                else field = number;
                                taken = !other;
                            });
        if (taken) continue;
        std::string& unread = into.unread[name];
        unread += (unread.empty() ? "" : "; ") + value;  // some labels stand in two sections
    }
    drop_unmeasured(into.result);
    drop_rate_of_instant(into);
}

}  // namespace servetune
