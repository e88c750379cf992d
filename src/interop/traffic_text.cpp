// SPDX-License-Identifier: Apache-2.0
// What is written of traffic: a trace, the workload that sends it, and what people are told.
#include "traffic.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "study_file/yaml_text.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace servetune {

std::string trace_text(const Traffic& traffic) {
    std::string result;
    for (const TrafficRequest& request : traffic.requests) {
        result += "{\"timestamp\": " + fixed_text(request.seconds * 1000, 1) +
                  ", \"input_length\": " + std::to_string(request.input_tokens) +
                  ", \"output_length\": " + std::to_string(request.output_tokens);
        if (!request.blocks.empty()) {
            result +=
                ", \"block_tokens\": " + std::to_string(request.block_tokens) + ", \"hash_ids\": [";
            for (std::size_t i = 0; i < request.blocks.size(); ++i)
                result += (i == 0 ? "" : ", ") + std::to_string(request.blocks[i]);
            result += "]";
        }
        result += "}\n";
    }
    return result;
}

std::vector<std::string> told(const Traffic& traffic) {
    const TrafficCounts& counts = traffic.counts;
    double input = 0, output = 0;
    for (const TrafficRequest& request : traffic.requests) {
        input += static_cast<double>(request.input_tokens);
        output += static_cast<double>(request.output_tokens);
    }
    const auto count = static_cast<double>(traffic.requests.size());
    const bool all = traffic.log_seconds <= traffic.window_seconds * 1.01 + 1;
    const std::string span = seconds_text(std::round(traffic.window_seconds));
    std::vector<std::string> lines;
    lines.push_back(counted_text(traffic.requests.size(), "request") +
                    (all ? " in " : " in the busiest ") + span + " (from " + traffic.begins +
                    (all ? ")"
                         : "), of " + std::to_string(counts.requests) + " in " +
                               seconds_text(std::round(traffic.log_seconds))));
    lines.push_back("mean prompt " + number_text(input / count, 1) + " tokens, answer " +
                    number_text(output / count, 1) + "; " +
                    number_text(traffic.window_seconds > 0 ? count / traffic.window_seconds : 0) +
                    " requests a second; " + percent_text(traffic.shared, 1) +
                    " of the prompts' tokens begin an earlier prompt too" +
                    (traffic.conversations > 0
                         ? "; " + counted_text(traffic.conversations, "conversation")
                         : ""));
    std::string left_out;
    for (const auto& [number, what] : std::array<std::pair<std::size_t, const char*>, 7>{
             {{counts.failed, "failed"},
              {counts.cached, "answered by a proxy's cache"},
              {counts.other, "health checks and other questions than for an answer"},
              {counts.repeated, "repeated"},
              {counts.unanswered, "without an answer in the log"},
              {counts.no_length, "without a length"},
              {counts.too_long, "lines longer than 16 MiB"}}})
        if (number > 0)
            left_out +=
                (left_out.empty() ? "left out: " : ", ") + std::to_string(number) + " " + what;
    if (!left_out.empty()) lines.push_back(left_out);
    lines.insert(lines.end(), traffic.remarks.begin(), traffic.remarks.end());
    return lines;
}

std::string workload_text(const Traffic& traffic, const std::string& name,
                          const std::string& trace) {
    std::string result =
        "# Recorded traffic, as `autotune import` read it from logs. It has lengths, times and "
        "which prompts begin alike,\n"
        "# and no text. `speed: 2` in the arrival sends it twice as fast.\n";
    for (const std::string& line : told(traffic)) result += "# " + line + "\n";
    return result + "workload: " + yaml_text(name) +
           "\ndataset: {kind: trace, path: " + yaml_text(trace) +
           "}\narrival: {rate: timestamps}\nignore_eos: true\n";
}

}  // namespace servetune
