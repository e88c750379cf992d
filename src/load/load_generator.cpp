// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/load_generator.hpp"

#include "event_loop.hpp"
#include "request_body.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/error.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <latch>
#include <mutex>
#include <system_error>
#include <thread>

namespace servetune {
namespace {

constexpr double progress_seconds = 0.5;

void check_load(const Endpoint& endpoint, std::span<const PlannedRequest> plan,
                const Arrival& arrival, const LoadOptions& options) {
    if (plan.empty()) throw UsageError("a load test needs at least one request");
    (void)bases_of(endpoint);
    check_options("the load test", options.why_invalid());
    if (arrival.kind == Arrival::Kind::concurrency && arrival.in_flight < 1)
        throw UsageError("a load test needs at least one request in flight");
    std::vector<bool> followed(plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
        const std::optional<std::size_t>& follows = plan[i].follows;
        if (!follows) continue;
        if (*follows >= i)
            throw UsageError("request " + std::to_string(i) + " follows one that is not before it");
        if (followed[*follows])
            throw UsageError("two requests follow request " + std::to_string(*follows));
        followed[*follows] = true;
    }
}

/// What this process has open; 0 where it cannot be seen.
std::size_t open_descriptors() {
    std::error_code none;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator it("/proc/self/fd", none), end; it != end;
         it.increment(none))
        ++count;
    return count;
}

/// Raises the soft limit of open files as far as the hard one allows. Throws UsageError when that
/// is not enough.
void allow_connections(std::size_t connections) {
    constexpr rlim_t comfort =
        256;  // files, look-ups of names, whatever else the program does meanwhile
    constexpr rlim_t at_least = 64;  // a loop has five of its own, and there are few loops
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= connections + comfort) return;
    limit.rlim_cur = std::min(std::max(connections + comfort, limit.rlim_cur), limit.rlim_max);
    const rlim_t needed = connections + open_descriptors() + at_least;
    if (limit.rlim_cur < needed || setrlimit(RLIMIT_NOFILE, &limit) != 0)
        throw UsageError(std::to_string(connections) + " requests in flight need " +
                         std::to_string(needed) + " open files, the system allows " +
                         std::to_string(limit.rlim_max) + " (ulimit -n)");
}

/// Requests in flight at once that the arrival process may lead to; how many of them to connect
/// before the clock starts.
struct Places {
    std::size_t most = 1;
    std::size_t warm = 1;
};
Places places_for(std::span<const PlannedRequest> plan, const Arrival& arrival,
                  const LoadOptions& options) {
    if (arrival.kind == Arrival::Kind::concurrency) {
        const std::size_t most = std::min(std::size_t(arrival.in_flight), plan.size());
        return {most, most};
    }
    const std::size_t most = std::min(options.most_in_flight.value_or(plan.size()), plan.size());
    // Those of the first second: a burst finds its connections, and a slow rate does not open
    // thousands that it never needs.
    const auto first_second =
        count_if(plan, [](const PlannedRequest& r) { return !r.follows && r.at_seconds < 1; });
    return {most, std::min(most, std::max<std::size_t>(first_second, 16))};
}

/// Conversations whole, dealt one by one to the loops.
std::vector<std::vector<std::size_t>> shares(std::span<const PlannedRequest> plan,
                                             std::size_t loops) {
    std::vector<std::vector<std::size_t>> result(loops);
    std::vector<std::size_t> owner(plan.size());
    std::size_t conversations = 0;
    for (std::size_t i = 0; i < plan.size(); ++i) {
        const std::optional<std::size_t>& follows = plan[i].follows;
        owner[i] = follows ? owner[*follows] : conversations++ % loops;
        result[owner[i]].push_back(i);
    }
    return result;
}

ClientHealth health_of(const std::vector<std::unique_ptr<EventLoop>>& loops,
                       const std::vector<RequestRecord>& records, double seconds) {
    ClientHealth result;
    std::vector<double> lags;
    double busiest = 0;
    double longest_stop = 0;
    long connects = 0;
    for (const auto& loop : loops) {
        longest_stop = std::max(longest_stop, loop->longest_stop());
        lags.insert(lags.end(), loop->lags().begin(), loop->lags().end());
        busiest = std::max(busiest, loop->processor_seconds());
        connects += loop->connects();
    }
    sort(lags);
    if (!lags.empty()) {
        result.loop_lag_p50 = percentile(lags, 0.5);
        result.loop_lag_p99 = percentile(lags, 0.99);
        result.loop_lag_max = std::max(lags.back(), longest_stop);
    }
    std::vector<double> waits;
    double chunks = 0, coalesced = 0;
    for (const RequestRecord& record : records) {
        if (record.end != RequestEnd::cancelled) waits.push_back(record.sent - record.scheduled);
        chunks += record.chunks;
        coalesced += record.coalesced_chunks;
    }
    sort(waits);
    if (!waits.empty()) {
        result.send_lag_p50 = percentile(waits, 0.5);
        result.send_lag_p99 = percentile(waits, 0.99);
    }
    if (chunks > 0) result.coalesced_share = coalesced / chunks;
    if (seconds > 0) result.processor_share = busiest / seconds;
    result.connects = double(connects);
    return result;
}

/// The counters once they have settled: servers count an answer a moment after its last byte.
ServerCounters settled_counters(const Endpoint& endpoint) {
    ServerCounters last = read_counters(endpoint);
    for (int i = 0; i < 10 && last.output_tokens; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ServerCounters next = read_counters(endpoint);
        if (next.output_tokens == last.output_tokens && next.input_tokens == last.input_tokens &&
            i > 0)
            return next;
        last = next;
    }
    return last;
}

}  // namespace

LoadRun generate_load(const Endpoint& endpoint, std::span<const PlannedRequest> plan,
                      const Arrival& arrival, const LoadOptions& options,
                      const std::stop_token& stop) {
    check_load(endpoint, plan, arrival, options);
    const Places places = places_for(plan, arrival, options);
    allow_connections(places.most);

    LoadRun run;
    run.library = curl_version();
    run.records.resize(plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) run.records[i].index = i;
    LoadTask task{.endpoint = endpoint, .plan = plan, .options = options, .records = run.records};
    task.closed_loop = arrival.kind == Arrival::Kind::concurrency;
    task.path = path_of(endpoint);
    task.bases = bases_of(endpoint);
    task.in_flight = std::vector<std::atomic<std::size_t>>(task.bases.size());
    task.bodies.resize(plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i)
        if (!plan[i].follows)
            task.bodies[i] = request_body(endpoint, plan[i], {}, options.ignore_eos);

    const std::size_t count = std::min(options.loops, places.most);
    std::vector<std::unique_ptr<EventLoop>> loops;
    const auto parts = shares(plan, count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto part_of = [&](std::size_t whole) {
            return whole / count + (i < whole % count ? 1 : 0);
        };
        loops.push_back(std::make_unique<EventLoop>(task, parts[i], part_of(places.most)));
    }
    const ServerCounters before = read_counters(endpoint);

    std::mutex mutex;
    std::condition_variable all_ended;
    std::size_t running = count;
    std::exception_ptr failure;
    std::latch warmed(std::ptrdiff_t(count) + 1);
    std::latch started(1);
    double epoch = 0;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < count; ++i)
            threads.emplace_back([&, i] {
                try {
                    if (options.warm_connections)
                        loops[i]->warm(places.warm / count + (i < places.warm % count ? 1 : 0));
                } catch (...) {
                    const std::lock_guard lock(mutex);
                    failure = std::current_exception();
                }
                warmed.arrive_and_wait();
                started.wait();
                try {
                    loops[i]->run(epoch);
                } catch (...) {
                    const std::lock_guard lock(mutex);
                    failure = std::current_exception();
                }
                const std::lock_guard lock(mutex);
                --running;
                all_ended.notify_all();
            });
        const std::stop_callback stopping(stop, [&] {
            for (const auto& loop : loops) loop->stop();
        });
        warmed.arrive_and_wait();
        epoch = monotonic_seconds() + 0.005;  // all threads are awake by then
        started.count_down();
        std::unique_lock lock(mutex);
        while (!all_ended.wait_for(lock, std::chrono::duration<double>(progress_seconds),
                                   [&] { return running == 0; }))
            if (options.progress)
                options.progress({monotonic_seconds() - epoch, task.sent, task.ended, task.failed,
                                  plan.size(), task.token_chunks});
    }
    if (failure) std::rethrow_exception(failure);

    run.stopped = stop.stop_requested();
    run.started_at_monotonic_seconds = epoch;
    double first = run.records.front().scheduled, last = 0;
    for (const RequestRecord& record : run.records) {
        first = std::min(first, record.scheduled);
        last = std::max(last, record.done);
    }
    run.duration_seconds = last - first;
    for (const auto& loop : loops) run.left_open += loop->left_open();
    run.client = health_of(loops, run.records, run.duration_seconds);
    run.server = difference(settled_counters(endpoint), before);
    return run;
}

}  // namespace servetune
