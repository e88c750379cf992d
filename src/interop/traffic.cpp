// SPDX-License-Identifier: Apache-2.0
#include "traffic.hpp"

#include "length_histograms.hpp"
#include "log_stream.hpp"
#include "logged_request.hpp"
#include "prompt_blocks.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace servetune {
namespace {

using LinePart = LoggedRequest::Part;
using LineKept = LoggedRequest::Kept;

constexpr std::size_t most_window_requests =
    1'000'000;                                ///< what a workload sends at most (load/dataset.cpp)
constexpr double most_window_tokens = 500e6;  ///< likewise
constexpr std::size_t most_bins =
    4'000'000;  ///< of counts over time: 3 years of the default window
constexpr int bins_of_window = 20;
constexpr std::uint64_t seed_of_drawn_lengths = 42;

/// An estimate as a length that can be sent.
std::int64_t whole_tokens(double estimate) {
    return std::llround(std::clamp(estimate, 1.0, static_cast<double>(1U << 24U)));
}

/// How many requests came in a piece of the log's time, and which records tell of them.
struct Bin {
    std::size_t requests = 0, first = 0, last = 0;
};

struct Window {
    double from = 0, to = 0;
    std::size_t first = 0, last = 0;  ///< records
};

/// A request of the window while it is put together.
struct TrafficRow {
    LoggedRequest said;
    bool arrived = false, answered = false, lost = false;
    std::int64_t pieces = 0;  ///< tokens in the pieces of its answer
};

/// The first of the windows with most requests.
Window busiest_window(const std::map<std::int64_t, Bin>& bins, double bin_seconds) {
    std::size_t most = 0;
    std::size_t sum = 0;
    std::int64_t best = 0;
    auto front = bins.begin();
    for (const auto& [at, bin] : bins) {
        sum += bin.requests;
        for (; front->first <= at - bins_of_window; ++front) sum -= front->second.requests;
        if (sum > most) {
            most = sum;
            best = front->first;
        }
    }
    Window window{static_cast<double>(best) * bin_seconds,
                  static_cast<double>(best + bins_of_window) * bin_seconds, ~std::size_t{0}, 0};
    for (auto at = bins.lower_bound(best); at != bins.end() && at->first < best + bins_of_window;
         ++at) {
        window.first = std::min(window.first, at->second.first);
        window.last = std::max(window.last, at->second.last);
    }
    return window;
}

std::string moment_text(double seconds, bool has_year) {
    if (seconds < 1e8)
        return "second " + text_of(std::floor(seconds));  // of a trace that begins at 0
    const auto whole = std::chrono::sys_seconds(
        std::chrono::seconds(static_cast<std::int64_t>(std::floor(seconds))));
    const auto day = std::chrono::floor<std::chrono::days>(whole);
    const std::chrono::year_month_day date(day);
    const auto two = [](auto number) { return (number < 10 ? "0" : "") + std::to_string(number); };
    const auto in_day = (whole - day).count();
    return (has_year ? std::to_string(static_cast<int>(date.year())) + "-" : "") +
           two(static_cast<unsigned>(date.month())) + "-" + two(static_cast<unsigned>(date.day())) +
           " " + two(in_day / 3600) + ":" + two(in_day / 60 % 60);
}

class LogReading {
public:
    LogReading(const std::vector<std::filesystem::path>& files, double window_seconds)
        : window_seconds_(window_seconds) {
        for (const std::filesystem::path& file : files)
            if (LengthHistograms::is_one(file)) histograms_.add(file);
            else logs_.push_back(file);
    }

    Traffic traffic() {
        if (logs_.empty()) from_histograms();
        else {
            count();
            collect();
            settle();
        }
        number_blocks();
        return std::move(traffic_);
    }

private:
    /// Reads all logs, or what the window needs of them; `take` gets requests and where they stand.
    template <class Take>
    void each_request(const Window* window, const Take& take) {
        TrafficCounts& counts = traffic_.counts;
        std::size_t record_index = 0;
        for (const std::filesystem::path& log : logs_) {
            LogStream stream(log);
            LogLines lines;
            std::string record;
            for (bool first = true; stream.next(record); first = false) {
                const std::size_t index = record_index++;
                // The first line may name columns, and a clock that was set counts from there.
                if (window != nullptr && index < window->first && !first && !clocks_were_set_)
                    continue;
                const bool inside =
                    window != nullptr && index >= window->first && index <= window->last;
                if (window != nullptr && index > window->last && !any_waits()) return;
                if (const auto request = lines.read(record, inside)) take(*request, index);
            }
            if (window != nullptr) continue;
            clocks_were_set_ = clocks_were_set_ || lines.clock_was_set();
            counts.too_long += stream.too_long();
            if (stream.cut_off())
                remark(log.filename().string() +
                       " ends in the middle of its compressed data; it was read up to there");
            if (lines.understood() == 0)
                throw ParseError(log.string() +
                                 ": no line tells of a request; a log of an engine that logs "
                                 "requests, of a proxy or of a web server wanted, a "
                                 "trace, JSON lines with `timestamp`, `prompt_tokens` and "
                                 "`completion_tokens`, or histograms of a Prometheus "
                                 "server (docs/guides/your-own-traffic.md)");
        }
        if (window == nullptr) counts.lines = record_index;
    }
    /// Whether an answer may still come for a request that the window has.
    [[nodiscard]] bool any_waits() const { return waiting_ > 0; }

    void count() {
        const double bin_seconds = window_seconds_ / bins_of_window;
        std::map<std::int64_t, Bin> bins;
        double first = 1e18, last = -1e18;
        TrafficCounts& counts = traffic_.counts;
        each_request(nullptr, [&](const LoggedRequest& request, std::size_t index) {
            if (request.part == LinePart::lost || request.kept == LineKept::failed) ++counts.failed;
            if (request.kept == LineKept::cached) ++counts.cached;
            if (request.kept == LineKept::other) ++counts.other;
            if (!counts_in(request)) return;
            ++counts.requests;
            first = std::min(first, *request.start);
            last = std::max(last, *request.start);
            Bin& bin = bins[static_cast<std::int64_t>(std::floor(*request.start / bin_seconds))];
            if (bin.requests++ == 0) bin.first = index;
            bin.last = index;
            if (bins.size() > most_bins)
                throw ParseError("requests in more than " + std::to_string(most_bins) +
                                 " pieces of " + text_of(bin_seconds) +
                                 " s: the times in the logs are not those of one traffic; a longer "
                                 "--window makes longer pieces");
        });
        if (counts.requests == 0)
            throw ParseError(
                "the logs have no request that a model answered: " + std::to_string(counts.failed) +
                " failed, " + std::to_string(counts.cached) + " were answered by a cache, " +
                std::to_string(counts.other) + " asked for something else");
        traffic_.log_seconds = last - first;
        window_ = traffic_.log_seconds <= window_seconds_
                      ? Window{first, last + 1, 0, ~std::size_t{0}}
                      : busiest_window(bins, bin_seconds);
        constexpr std::size_t lines_before =
            100;  // of details of the first request, and of others between
        window_.first -= std::min(window_.first, lines_before);
    }
    static bool counts_in(const LoggedRequest& request) {
        return request.kept == LineKept::yes && request.start &&
               (request.part == LinePart::whole || request.part == LinePart::received);
    }

    void collect() {
        std::unordered_map<std::uint64_t, std::size_t> by_id;
        double tokens = 0;
        each_request(&window_, [&](const LoggedRequest& request, std::size_t) {
            if (request.kept != LineKept::yes || !request.start) return;
            const auto known = request.id == 0 ? by_id.end() : by_id.find(request.id);
            if (known != by_id.end()) {
                add(rows_[known->second], request);
                return;
            }
            const bool inside = *request.start >= window_.from && *request.start < window_.to;
            if (!inside || (request.part != LinePart::whole && request.part != LinePart::received &&
                            request.part != LinePart::details))
                return;
            if (request.id != 0) by_id.emplace(request.id, rows_.size());
            rows_.push_back({request, request.part != LinePart::details,
                             request.part == LinePart::whole, false});
            if (request.part != LinePart::whole) ++waiting_;
            tokens +=
                static_cast<double>(request.input_tokens.value_or(0)) + request.input_estimate;
            if (rows_.size() > most_window_requests || tokens > most_window_tokens)
                throw ParseError("the busiest " + seconds_text(window_seconds_) +
                                 " have more than " + std::to_string(most_window_requests) +
                                 " requests or " + text_of(most_window_tokens) +
                                 " tokens; take a shorter --window");
        });
    }

    void add(TrafficRow& row, const LoggedRequest& said) {
        if (said.part == LinePart::whole || (said.part == LinePart::received && row.arrived)) {
            ++traffic_.counts.repeated;
            return;
        }
        if (said.part == LinePart::received) {
            row.arrived = true;
            row.said.start = said.start;
        }
        if ((said.part == LinePart::answered || said.part == LinePart::lost) && !row.answered &&
            !row.lost)
            --waiting_;
        if (said.part == LinePart::answered) row.answered = true;
        if (said.part == LinePart::lost) row.lost = true;
        if (said.part == LinePart::piece) {
            row.pieces += said.output_tokens.value_or(0);
            return;
        }
        LoggedRequest& into = row.said;
        if (!into.input_tokens) into.input_tokens = said.input_tokens;
        if (!into.output_tokens) into.output_tokens = said.output_tokens;
        into.output_estimate = std::max(into.output_estimate, said.output_estimate);
        if (into.blocks.empty() && !said.blocks.empty()) {
            into.blocks = said.blocks;
            into.block_tokens = said.block_tokens;
            into.blocks_of_text = said.blocks_of_text;
            into.input_estimate = said.input_estimate;
            into.cut = said.cut;
        }
    }

    /// Makes requests of the rows.
    void settle() {
        const bool answers = std::any_of(rows_.begin(), rows_.end(),
                                         [](const TrafficRow& row) { return row.answered; });
        const std::size_t all = rows_.size();
        std::erase_if(rows_, [](const TrafficRow& row) { return !row.arrived || row.lost; });
        if (answers)
            traffic_.counts.unanswered =
                std::erase_if(rows_, [](const TrafficRow& row) { return !row.answered; });
        std::stable_sort(rows_.begin(), rows_.end(), [](const TrafficRow& a, const TrafficRow& b) {
            return *a.said.start < *b.said.start;
        });
        if (rows_.empty())
            throw ParseError("none of the " + std::to_string(all) + " requests in the busiest " +
                             seconds_text(window_seconds_) + " has an answer in the log");
        fill_lengths();
        spread_seconds();
        const double begin = *rows_.front().said.start;
        traffic_.window_seconds = *rows_.back().said.start - begin;
        traffic_.begins = moment_text(begin, rows_.front().said.has_year);
        for (TrafficRow& row : rows_)
            traffic_.requests.push_back({*row.said.start - begin,
                                         *row.said.input_tokens,
                                         std::max<std::int64_t>(1, *row.said.output_tokens),
                                         {},
                                         0});
    }

    void fill_lengths() {
        histograms_.restrict_to(window_.from, window_.to);
        double counted = 0, estimated = 0;
        for (const TrafficRow& row : rows_)
            if (row.said.input_tokens && row.said.blocks_of_text && !row.said.cut) {
                counted += static_cast<double>(*row.said.input_tokens);
                estimated += row.said.input_estimate;
            }
        scale_ = estimated > 0 && counted > 0 ? std::clamp(counted / estimated, 0.2, 5.0) : 1;
        Rng rng(seed_of_drawn_lengths);
        std::size_t drawn_inputs = 0, drawn_outputs = 0, guessed_inputs = 0, guessed_outputs = 0,
                    cut = 0;
        bool bytes = false;
        for (TrafficRow& row : rows_) {
            LoggedRequest& said = row.said;
            if (!said.output_tokens && row.pieces > 0) said.output_tokens = row.pieces;
            cut += said.cut ? 1 : 0;
            if (!said.input_tokens && said.input_estimate > 0 && !said.cut &&
                !(said.bytes_only && histograms_.has_inputs())) {
                said.input_tokens =
                    whole_tokens(said.input_estimate * (said.bytes_only ? 1 : scale_));
                ++guessed_inputs;
                bytes = bytes || said.bytes_only;
            }
            if (!said.output_tokens && said.output_estimate > 0 &&
                !(said.bytes_only && histograms_.has_outputs())) {
                said.output_tokens =
                    whole_tokens(said.output_estimate * (said.bytes_only ? 1 : scale_));
                ++guessed_outputs;
                bytes = bytes || said.bytes_only;
            }
            if (!said.input_tokens && histograms_.has_inputs()) {
                said.input_tokens = histograms_.input(rng);
                ++drawn_inputs;
            }
            if (!said.output_tokens && histograms_.has_outputs()) {
                said.output_tokens = histograms_.output(rng);
                ++drawn_outputs;
            }
        }
        const auto lacks = [&](const char* what, const auto& has) {
            if (std::any_of(rows_.begin(), rows_.end(), has)) return;
            throw ParseError("no request says how long its " + std::string(what) +
                             " is: have the log say it, or give the histograms of a Prometheus "
                             "server beside it (docs/guides/your-own-traffic.md)");
        };
        lacks("prompt", [](const TrafficRow& row) { return row.said.input_tokens.has_value(); });
        lacks("answer", [](const TrafficRow& row) { return row.said.output_tokens.has_value(); });
        traffic_.counts.no_length = std::erase_if(rows_, [](const TrafficRow& row) {
            return !row.said.input_tokens || !row.said.output_tokens;
        });
        if (rows_.empty())
            throw ParseError("no request says how long both its prompt and its answer are");
        const auto of_all = [&](std::size_t count) {
            return std::to_string(count) + " of " + std::to_string(rows_.size());
        };
        if (guessed_inputs + guessed_outputs > 0)
            remark("lengths of " + of_all(guessed_inputs) + " prompts and " +
                   of_all(guessed_outputs) + " answers are estimated, from " +
                   (bytes         ? "bytes on the wire: no more than a guess"
                    : scale_ != 1 ? "their texts, with the " + short_number_text(scale_) +
                                        " tokens for one of the estimate that the others have"
                                  : "their texts, within about 10 % in English"));
        if (drawn_inputs + drawn_outputs > 0)
            remark("lengths of " + of_all(drawn_inputs) + " prompts and " + of_all(drawn_outputs) +
                   " answers are drawn from the histograms: no finer than their buckets, prompts "
                   "and answers each for itself");
        if (cut > 0)
            remark(of_all(cut) +
                   " prompts are cut off in the log: what they share is known of their first part "
                   "only");
        if (std::none_of(rows_.begin(), rows_.end(),
                         [](const TrafficRow& row) { return !row.said.blocks.empty(); }))
            remark(
                "the log has no prompts, so nobody knows which begin alike: a prefix cache finds "
                "nothing in this traffic");
    }

    /// A clock that counts whole seconds makes bursts that were none.
    void spread_seconds() {
        if (!std::all_of(rows_.begin(), rows_.end(),
                         [](const TrafficRow& row) { return row.said.whole_seconds; }))
            return;
        bool any = false;
        for (std::size_t i = 0; i < rows_.size();) {
            std::size_t end = i;
            while (end < rows_.size() && *rows_[end].said.start == *rows_[i].said.start) ++end;
            any = any || end - i > 1;
            const double second = *rows_[i].said.start;
            for (std::size_t k = i; k < end; ++k)
                rows_[k].said.start =
                    second + (static_cast<double>(k - i) + 0.5) / static_cast<double>(end - i);
            i = end;
        }
        if (any)
            remark(
                "the log's clock counts whole seconds: requests of the same second are spread "
                "evenly over it");
    }

    void from_histograms() {
        if (!histograms_.has_inputs() || !histograms_.has_outputs())
            throw ParseError(std::string("buckets of the lengths of ") +
                             (histograms_.has_inputs() ? "answers" : "prompts") +
                             " are missing; ask for both histograms, or give a log beside");
        const auto steps = histograms_.arrivals();
        double best = -1;
        double best_from = 0;
        for (auto first = steps.begin(); first != steps.end(); ++first) {
            const double from = first->first - first->second.first;
            double sum = 0;
            for (auto step = first; step != steps.end() && step->first <= from + window_seconds_;
                 ++step)
                sum += step->second.second;
            traffic_.counts.requests +=
                static_cast<std::size_t>(std::llround(first->second.second));
            if (sum <= best) continue;
            best = sum;
            best_from = from;
        }
        if (!(best >= 1)) throw ParseError("no request ended in the time of the histograms");
        if (best > static_cast<double>(most_window_requests))
            throw ParseError("the busiest " + seconds_text(window_seconds_) + " have more than " +
                             std::to_string(most_window_requests) +
                             " requests; take a shorter --window");
        traffic_.log_seconds =
            steps.rbegin()->first - (steps.begin()->first - steps.begin()->second.first);
        histograms_.restrict_to(best_from, best_from + window_seconds_);
        Rng rng(seed_of_drawn_lengths);
        std::vector<double> times;
        double longest = 0;
        for (const auto& [end, step] : steps)
            if (end > best_from && end <= best_from + window_seconds_) {
                longest = std::max(longest, step.first);
                for (long i = 0; i < std::lround(step.second); ++i)
                    times.push_back(end - step.first * rng.uniform());
            }
        std::sort(times.begin(), times.end());
        if (times.empty())
            throw ParseError(
                "the steps of the histograms are longer than the window; take a longer --window or "
                "ask with a shorter step");
        for (const double time : times) {
            const std::int64_t input = histograms_.input(rng);
            traffic_.requests.push_back(
                {time - times.front(), input, histograms_.output(rng), {}, 0});
        }
        traffic_.window_seconds = times.back() - times.front();
        traffic_.begins = moment_text(times.front(), true);
        remark("arrivals are random within steps of " + seconds_text(longest) +
               " and are those of the ends of answers; lengths are drawn from the histograms, no "
               "finer than their buckets, prompts and "
               "answers each for itself");
        remark(
            "histograms do not say which prompts begin alike: a prefix cache finds nothing in this "
            "traffic");
    }

    /// Numbers in place of hashes, and only for beginnings that two prompts have; how much that is.
    void number_blocks() {
        std::unordered_map<std::uint64_t, std::uint32_t> prompts;
        for (const TrafficRow& row : rows_)
            for (const std::uint64_t name : row.said.blocks) ++prompts[name];
        std::unordered_map<std::uint64_t, std::uint64_t> numbers;
        std::unordered_set<std::uint64_t> sessions;
        std::unordered_set<std::uint64_t> whole_prompts;  // the last block of each
        double tokens = 0, shared = 0;
        bool known = false;
        for (std::size_t i = 0; i < traffic_.requests.size(); ++i) {
            TrafficRequest& request = traffic_.requests[i];
            tokens += static_cast<double>(request.input_tokens);
            if (rows_.empty()) continue;
            const LoggedRequest& said = rows_[i].said;
            const auto [group, block] = grouped(said);
            request.block_tokens = block;
            bool old = true;
            bool goes_on = false;
            double found = 0;
            for (std::size_t k = 0; k < said.blocks.size(); ++k) {
                const std::uint64_t name = said.blocks[k];
                goes_on = goes_on || whole_prompts.contains(name);
                if ((k + 1) % group != 0) continue;
                if (prompts.at(name) < 2) continue;
                const auto [place, is_new] = numbers.emplace(name, numbers.size() + 1);
                request.blocks.push_back(place->second);
                old = old && !is_new;
                found += old ? static_cast<double>(block) : 0;
            }
            shared += std::min(found, static_cast<double>(request.input_tokens));
            if (said.session != 0) goes_on = !sessions.insert(said.session).second;
            known =
                known || said.session != 0 ||
                said.block_tokens == PromptBlocks::tokens;  // a trace names pieces of blocks too
            traffic_.conversations += goes_on ? 0 : 1;
            if (!said.blocks.empty()) whole_prompts.insert(said.blocks.back());
        }
        if (!known) traffic_.conversations = 0;
        traffic_.shared = tokens > 0 ? shared / tokens : 0;
    }

    /// How many blocks make one of the trace, and its tokens: whole ones, within two percent of
    /// what estimated blocks are.
    [[nodiscard]] std::pair<std::size_t, std::int64_t> grouped(const LoggedRequest& said) const {
        if (!said.blocks_of_text) return {1, said.block_tokens};
        constexpr double close = 0.02;
        constexpr std::size_t most_group = 8;
        for (std::size_t group = 1;; ++group) {
            const double exact =
                static_cast<double>(said.block_tokens) * scale_ * static_cast<double>(group);
            const double whole = std::max(1.0, std::round(exact));
            if (std::abs(whole / exact - 1) < close || group == most_group)
                return {group, std::llround(whole)};
        }
    }

    void remark(std::string text) { traffic_.remarks.push_back(std::move(text)); }

    double window_seconds_;
    std::vector<std::filesystem::path> logs_{};
    LengthHistograms histograms_{};
    Window window_{};
    std::vector<TrafficRow> rows_{};
    std::size_t waiting_ = 0;  ///< of them: whose end was not seen
    bool clocks_were_set_ = false;
    double scale_ = 1;  ///< tokens for one of the estimate
    Traffic traffic_{};
};

}  // namespace

Traffic read_traffic(const std::vector<std::filesystem::path>& files, double window_seconds) {
    return LogReading(files, window_seconds).traffic();
}

}  // namespace servetune
