// SPDX-License-Identifier: Apache-2.0
#include "traffic.hpp"

#include "base/present.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <array>
#include <cmath>
#include <ctime>
#include <unordered_map>
#include <unordered_set>

namespace servetune {
namespace {

double time_of(const TraceRow& row) { return present(row.seconds); }

std::string moment_text(double seconds) {
    if (seconds < 1e8) return "second " + fixed_text(std::floor(seconds), 0);  // begins at 0
    const auto whole = static_cast<std::time_t>(std::floor(seconds));
    std::tm utc{};
    std::array<char, 32> text{};
    ::gmtime_r(&whole, &utc);
    (void)std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &utc);
    return text.data();
}

std::vector<TraceRow> all_requests(const std::vector<std::filesystem::path>& files,
                                   Traffic& traffic) {
    std::vector<TraceRow> all;
    for (const std::filesystem::path& file : files) {
        LoggedRequests found = read_requests(file.string());
        if (found.unread >= found.rows.size())
            throw ParseError(
                file.string() +
                (found.unread == 0
                     ? ": it is empty"
                     : ": " + std::to_string(found.unread) + " of " +
                           std::to_string(found.unread + found.rows.size()) +
                           " lines have no time and lengths of a request, the first is line " +
                           std::to_string(found.first_unread)) +
                "; JSON Lines or CSV with timestamp, input_tokens and output_tokens wanted. Logs "
                "of engines, proxies and web servers: python3 -m servetune.traffic FORMAT " +
                file.string() + " > requests.jsonl");
        traffic.unread += found.unread;
        std::move(found.rows.begin(), found.rows.end(), std::back_inserter(all));
    }
    stable_sort(all, [](const TraceRow& a, const TraceRow& b) { return time_of(a) < time_of(b); });
    return all;
}

/// Those of one second of a clock that shows no fractions, at even distances over it.
bool spread_over_seconds(std::vector<TraceRow>& rows) {
    const auto is_whole = [](const TraceRow& row) {
        return time_of(row) == std::floor(time_of(row));
    };
    if (rows.size() < 2 || !all_of(rows, is_whole)) return false;
    bool any = false;
    for (std::size_t from = 0; from < rows.size();) {
        std::size_t to = from;
        while (to < rows.size() && rows[to].seconds == rows[from].seconds) ++to;
        any = any || to - from > 1;
        for (std::size_t i = from; i < to; ++i)
            rows[i].seconds = time_of(rows[i]) + double(i - from) / double(to - from);
        from = to;
    }
    return any;
}

/// The first of the windows with most requests.
std::vector<TraceRow> busiest(std::vector<TraceRow> all, double seconds) {
    std::size_t best = 0, most = 0;
    for (std::size_t from = 0, to = 0; from < all.size(); ++from) {
        while (to < all.size() && time_of(all[to]) < time_of(all[from]) + seconds) ++to;
        if (to - from > most) {
            most = to - from;
            best = from;
        }
    }
    const auto begin = all.begin() + std::ptrdiff_t(best);
    return {std::make_move_iterator(begin), std::make_move_iterator(begin + std::ptrdiff_t(most))};
}

/// Numbers in place of names, and only for beginnings that two prompts have; how much that is.
void number_blocks(Traffic& traffic) {
    std::unordered_map<std::uint64_t, std::uint32_t> prompts;
    for (const TraceRow& row : traffic.requests)
        for (const std::uint64_t name : row.blocks) ++prompts[name];
    std::unordered_map<std::uint64_t, std::uint64_t> numbers;
    std::unordered_set<std::uint64_t> sessions;
    double tokens = 0, shared = 0;
    for (TraceRow& row : traffic.requests) {
        std::vector<std::uint64_t> blocks;
        std::int64_t found = 0;
        for (const std::uint64_t name : row.blocks) {
            if (prompts.at(name) < 2) break;  // no later one is shared either
            const auto [place, is_new] = numbers.emplace(name, numbers.size() + 1);
            blocks.push_back(place->second);
            if (!is_new) found += row.block_tokens;
        }
        row.blocks = std::move(blocks);
        tokens += double(row.input_tokens);
        shared += double(std::min(found, row.input_tokens));
        if (row.session != 0) sessions.insert(row.session);
    }
    traffic.conversations = sessions.size();
    traffic.shared = tokens > 0 ? shared / tokens : 0;
}

}  // namespace

Traffic read_traffic(const std::vector<std::filesystem::path>& files, double window_seconds) {
    Traffic traffic;
    std::vector<TraceRow> all = all_requests(files, traffic);
    traffic.spread = spread_over_seconds(all);
    traffic.logged = all.size();
    traffic.log_seconds = time_of(all.back()) - time_of(all.front());
    traffic.requests = traffic.log_seconds <= window_seconds
                           ? std::move(all)
                           : busiest(std::move(all), window_seconds);
    const double first = time_of(traffic.requests.front());
    traffic.begins = moment_text(first);
    for (TraceRow& row : traffic.requests) row.seconds = time_of(row) - first;
    traffic.window_seconds = time_of(traffic.requests.back());
    number_blocks(traffic);
    return traffic;
}

std::string Traffic::trace_text() const {
    std::string result;
    for (const TraceRow& row : requests) {
        result += "{\"timestamp\": " + fixed_text(time_of(row) * 1000, 1) +
                  ", \"input_length\": " + std::to_string(row.input_tokens) +
                  ", \"output_length\": " + std::to_string(row.output_tokens);
        if (!row.blocks.empty())
            result +=
                ", \"block_tokens\": " + std::to_string(row.block_tokens) + ", \"hash_ids\": [";
        for (std::size_t i = 0; i < row.blocks.size(); ++i)
            result += (i == 0 ? "" : ", ") + std::to_string(row.blocks[i]);
        result += row.blocks.empty() ? "}\n" : "]}\n";
    }
    return result;
}

std::vector<std::string> Traffic::lines() const {
    double input = 0, output = 0;
    for (const TraceRow& row : requests) {
        input += double(row.input_tokens);
        output += double(row.output_tokens);
    }
    const auto count = double(requests.size());
    const bool all = requests.size() == logged;
    std::vector<std::string> result{
        counted_text(requests.size(), "request") + (all ? " in " : " in the busiest ") +
            seconds_text(std::round(window_seconds)) + " (from " + begins +
            (all ? ")"
                 : "), of " + std::to_string(logged) + " in " +
                       seconds_text(std::round(log_seconds))),
        "mean prompt " + number_text(input / count, 1) + " tokens, answer " +
            number_text(output / count, 1) + "; " +
            number_text(window_seconds > 0 ? count / window_seconds : 0) + " requests a second; " +
            percent_text(shared, 1) + " of the prompts' tokens begin an earlier prompt too" +
            (conversations > 0 ? "; " + counted_text(conversations, "conversation") : "")};
    if (unread > 0)
        result.push_back("left out: " + counted_text(unread, "line") + " without time or lengths");
    if (spread) result.emplace_back("the log counts whole seconds: requests are spread over them");
    return result;
}

std::string Traffic::workload_text(const std::string& name, const std::string& trace) const {
    std::string result =
        "# Recorded traffic: lengths, times and which prompts begin alike, and no text.\n"
        "# `speed: 2` in the arrival sends it twice as fast.\n";
    for (const std::string& line : lines()) result += "# " + line + "\n";
    return result + "workload: " + yaml_text(name) +
           "\ndataset: {kind: trace, path: " + yaml_text(trace) +
           "}\narrival: {rate: timestamps}\nignore_eos: true\n";
}

}  // namespace servetune
