// SPDX-License-Identifier: Apache-2.0

#include "audit_parts.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {
namespace {

constexpr double least_shift = 0.05;     ///< of the run's mean by the part that differs
constexpr double shortest_seconds = 2;   ///< in less, one pause of the machine is a change
constexpr std::size_t most_blocks = 20;  ///< as batches of throughputs are
constexpr std::size_t fewest_blocks = 8;
constexpr std::size_t fewest_blocks_of_part = 2;

/// One figure of each request that counts, in the order of sending.
struct Series {
    const char* name;
    std::vector<double> seconds{};
    // Logarithms of what moves the figure besides.
    std::vector<double> prompts{};    ///< tokens of the prompt
    std::vector<double> answers{};    ///< tokens of the answer
    std::vector<double> in_flight{};  ///< requests beside it; empty: always as many
};

/// How many standard deviations of the blocks the best split of 8 to 20 blocks is wide, at most, in
/// 99.5 % of rows without a step (40 000 rows each). `rounds`: blocks are whole rounds of a closed
/// loop, taken as correlated by 0.5 from one to the next; else by 0.75.
double critical(std::size_t blocks, bool rounds) {
    constexpr std::array<double, 13> of_rounds{8.20, 7.23, 6.47, 5.84, 5.60, 5.21, 4.93,
                                               4.74, 4.54, 4.37, 4.17, 4.16, 4.02};
    constexpr std::array<double, 13> of_others{10.18, 9.09, 8.36, 7.66, 7.26, 6.95, 6.56,
                                               6.37,  6.16, 5.91, 5.82, 5.63, 5.52};
    return (rounds ? of_rounds : of_others)[std::min(blocks, most_blocks) - fewest_blocks];
}

double average_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// What is left of `values` once a straight line over `by` explains what it can.
std::vector<double> without_line(std::vector<double> values, const std::vector<double>& by) {
    const double mean = average_of(by);
    const double height = average_of(values);
    double both = 0;
    double squares = 0;
    for (std::size_t i = 0; i < by.size(); ++i) {
        both += (by[i] - mean) * (values[i] - height);
        squares += (by[i] - mean) * (by[i] - mean);
    }
    if (!(squares > 0)) return values;
    for (std::size_t i = 0; i < by.size(); ++i) values[i] -= both / squares * (by[i] - mean);
    return values;
}

/// Means of blocks that follow each other; each block has as many values, but for some at the end.
std::vector<double> blocks_of(const std::vector<double>& values, std::size_t count,
                              std::size_t size) {
    std::vector<double> blocks;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t end = i + 1 == count ? values.size() : (i + 1) * size;
        blocks.push_back(average_of(std::span(values).subspan(i * size, end - i * size)));
    }
    return blocks;
}

/// Means of the values before an index, and from another one on.
std::pair<double, double> means(const std::vector<double>& values, std::size_t until,
                                std::size_t from) {
    return {average_of(std::span(values).first(until)),
            average_of(std::span(values).subspan(from))};
}

std::string in_milliseconds_shown(double seconds) { return figure_shown(seconds * 1e3) + " ms"; }

/// Two parts of a row of blocks, without the block between them, in which the change may lie.
struct Split {
    std::size_t at = 0;     ///< the block between
    double difference = 0;  ///< of the means of logarithms, the first part's minus the second's
    double left = 0;        ///< sum of squares around both
};

/// `beside`: what else moves the blocks (requests in flight); of that, what a straight line
/// explains within the parts is taken out.
Split split_at(std::size_t at, std::vector<double> blocks, std::vector<double> beside) {
    const auto centered = [at](std::vector<double>& values) {
        const double first = average_of(std::span(values).first(at));
        const double second = average_of(std::span(values).subspan(at + 1));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = i == at ? 0 : values[i] - (i < at ? first : second);
        return first - second;
    };
    Split result{at, centered(blocks)};
    if (!beside.empty()) {
        const double distance = centered(beside);
        const double squares =
            std::inner_product(beside.begin(), beside.end(), beside.begin(), 0.0);
        const double slope =
            squares > 0
                ? std::inner_product(beside.begin(), beside.end(), blocks.begin(), 0.0) / squares
                : 0;
        for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] -= slope * beside[i];
        result.difference -= slope * distance;
    }
    result.left = std::inner_product(blocks.begin(), blocks.end(), blocks.begin(), 0.0);
    return result;
}

/// How many requests were in flight.
class InFlight {
public:
    explicit InFlight(std::span<const RequestRecord> records) {
        std::vector<std::pair<double, int>> changes;
        for (const RequestRecord& record : records) {
            if (!(record.done > record.sent)) continue;
            changes.emplace_back(record.sent, 1);
            changes.emplace_back(record.done, -1);
        }
        sort(changes);
        int now = 0;
        double together = 0;
        double before = 0;
        for (const auto& [at, change] : changes) {
            together += now * (at - before);
            now += change;
            before = at;
            points_.push_back({at, together, now});
        }
    }

    [[nodiscard]] double mean(double from, double to) const {
        return (until(to) - until(from)) / (to - from);
    }

private:
    struct Point {
        double at;
        double together;  ///< seconds of all requests until then
        int now;
    };
    [[nodiscard]] double until(double at) const {
        auto after =
            std::upper_bound(points_.begin(), points_.end(), at,
                             [](double value, const Point& point) { return value < point.at; });
        if (after == points_.begin()) return 0;
        --after;
        return after->together + after->now * (at - after->at);
    }
    std::vector<Point> points_;
};

class Comparison {
public:
    Comparison(const LoadRun& run, const Arrival& arrival) : arrival_(arrival) {
        for (const RequestRecord& record : run.records)
            if (record.succeeded()) requests_.push_back(&record);
        stable_sort(requests_, [](const auto* a, const auto* b) { return a->sent < b->sent; });
        const std::vector<double> all = output_tokens_of(run.records);
        for (std::size_t i = 0; i < run.records.size(); ++i) tokens_[&run.records[i]] = all[i];
        if (arrival.kind == Arrival::Kind::rate) beside_.emplace(run.records);
    }

    Steadiness result() {
        const bool closed = arrival_.kind == Arrival::Kind::concurrency;
        if (!closed && arrival_.kind != Arrival::Kind::rate)
            return missing(std::string(name_in(arrival_kinds, arrival_.kind)) +
                           " has no steady state");
        leave_out_start_and_end(closed);
        if (requests_.empty() ||
            requests_.back()->done - requests_.front()->sent < shortest_seconds)
            return missing("less than " + short_number_text(shortest_seconds) +
                           " s between the start and the end of the run");
        std::vector<Series> all;
        if (Series times = per_token(); 2 * times.seconds.size() >= requests_.size())
            all.push_back(std::move(times));
        if (closed || all.empty()) all.push_back(latencies());
        Steadiness result;
        for (const Series& series : all) {
            const Blocks blocks = blocks_for(series.seconds.size());
            if (blocks.count < fewest_blocks)
                return missing("too few requests between the start and the end of the run (" +
                               std::to_string(series.seconds.size()) + ")");
            result.finding = difference_of(series, blocks);
            if (result.finding) break;
        }
        return result;
    }

private:
    static Steadiness missing(std::string why) {
        return {std::nullopt, NotChecked{"steady", std::move(why)}};
    }

    /// While the loop fills and drains, fewer requests share the engine: a closed loop's first and
    /// last ones, one for each place; at a rate those sent before the first answer and answered
    /// after the last arrival.
    void leave_out_start_and_end(bool closed) {
        if (requests_.empty()) return;
        if (closed) {
            const auto places = std::size_t(arrival_.in_flight);
            if (requests_.size() <= 2 * places) return requests_.clear();
            requests_.erase(requests_.end() - std::ptrdiff_t(places), requests_.end());
            requests_.erase(requests_.begin(), requests_.begin() + std::ptrdiff_t(places));
            return;
        }
        double first_done = requests_.front()->done;
        for (const RequestRecord* request : requests_)
            first_done = std::min(first_done, request->done);
        const double last_sent = requests_.back()->sent;
        std::erase_if(requests_, [&](const RequestRecord* request) {
            return request->sent < first_done || request->done > last_sent;
        });
    }

    void add(const RequestRecord& request, double seconds, Series& to) const {
        to.seconds.push_back(seconds);
        to.prompts.push_back(std::log(std::max(1.0, double(request.input_tokens.value_or(0)))));
        to.answers.push_back(std::log(std::max(1.0, tokens_.at(&request))));
        if (beside_) to.in_flight.push_back(std::log(beside_->mean(request.sent, request.done)));
    }

    [[nodiscard]] Series per_token() const {
        Series result{"TPOT"};
        for (const RequestRecord* request : requests_) {
            const double tokens = tokens_.at(request);
            if (!request->first_token || !request->last_token || request->chunks < 2 ||
                !(tokens > 1))
                continue;
            const double each = (*request->last_token - *request->first_token) / (tokens - 1);
            if (!(each > 0)) continue;
            add(*request, each, result);
        }
        return result;
    }

    [[nodiscard]] Series latencies() const {
        Series result{"latency"};
        for (const RequestRecord* request : requests_) {
            if (!request->last_token || !(*request->last_token > request->sent)) continue;
            add(*request, *request->last_token - request->sent, result);
        }
        return result;
    }

    struct Blocks {
        std::size_t count = 0;
        std::size_t size = 1;  ///< requests of each
        bool rounds = false;   ///< each holds whole rounds of a closed loop
    };
    /// Requests of one round go together, so blocks hold whole rounds where there are enough of
    /// them.
    [[nodiscard]] Blocks blocks_for(std::size_t values) const {
        Blocks result;
        std::size_t unit = 1;
        if (arrival_.kind == Arrival::Kind::concurrency) {
            const auto places = std::size_t(std::max<std::int64_t>(1, arrival_.in_flight));
            result.rounds = values / places >= fewest_blocks;
            if (result.rounds) unit = places;
        }
        const std::size_t units = values / unit;
        if (!result.rounds && units < 2 * fewest_blocks) return result;
        result.size = unit * ((units + most_blocks - 1) / most_blocks);
        result.count = values / result.size;
        return result;
    }

    static std::optional<Finding> difference_of(const Series& series, const Blocks& kind) {
        const auto [count, size, rounds] = kind;
        std::vector<double> logs(series.seconds.size());
        std::transform(series.seconds.begin(), series.seconds.end(), logs.begin(),
                       [](double value) { return std::log(value); });
        logs = without_line(without_line(std::move(logs), series.prompts), series.answers);
        const std::vector<double> blocks = blocks_of(logs, count, size);
        std::vector<double> beside;
        if (!series.in_flight.empty()) beside = blocks_of(series.in_flight, count, size);
        const std::size_t least = std::max<std::size_t>(fewest_blocks_of_part, count / 8);
        Split best;
        for (std::size_t at = least; at + 1 + least <= count; ++at)
            if (const Split split = split_at(at, blocks, beside);
                best.at == 0 || split.left < best.left)
                best = split;
        const double spread = std::sqrt(best.left / double(count - 3));
        const double part = double(std::min(best.at, count - 1 - best.at)) / double(count - 1);
        const double shift = std::abs(best.difference) * part;
        if (std::abs(best.difference) < critical(count, rounds) * spread ||
            shift <= std::log1p(least_shift))
            return std::nullopt;
        const auto [first, rest] = means(series.seconds, best.at * size, (best.at + 1) * size);
        const bool was_cold = best.difference > 0;
        const std::string share =
            "the first " + percent_text(double(best.at * size) / double(series.seconds.size()), 0);
        return Finding{
            "steady",
            std::string("mean ") + series.name + " of " + share + " = " +
                in_milliseconds_shown(first),
            "of the rest = " + in_milliseconds_shown(rest),
            "not steady: " + share + " of the run was " +
                significant_text(std::max(first / rest, rest / first), 3) + " times " +
                (was_cold ? "slower" : "faster") +
                " than the rest, so the run's figures are a mixture of two states; " +
                (was_cold ? "the engine was still cold: measure once more, or warm it up longer"
                          : "the engine or its machine became slower: find the cause, and measure "
                            "once more")};
    }

    const Arrival& arrival_;
    std::vector<const RequestRecord*> requests_;
    std::map<const RequestRecord*, double> tokens_;
    std::optional<InFlight> beside_{};  ///< at a rate
};

}  // namespace

Steadiness steadiness_of(const LoadRun& run, const Arrival& arrival) {
    return Comparison(run, arrival).result();
}

}  // namespace servetune
