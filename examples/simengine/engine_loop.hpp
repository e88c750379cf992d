// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/engine_core.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

namespace simengine {

/// How much later than planned events were, in buckets of an eighth of a power of two (9 % wide).
class Lateness {
public:
    void add(std::int64_t nanoseconds) {
        const double bucket = nanoseconds < 1 ? 0.0 : 8 * std::log2(double(nanoseconds));
        ++counts_[std::min(counts_.size() - 1, std::size_t(bucket))];
        ++count_;
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }
    /// The upper end of the bucket that this share of all events lies in or below; 0 without
    /// events.
    [[nodiscard]] double quantile_seconds(double share) const {
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            if ((seen += counts_[i]) > 0 && double(seen) >= share * double(count_))
                return std::exp2(double(i + 1) / 8) / 1e9;
        return 0;
    }

private:
    std::array<std::uint64_t, 320> counts_{};
    std::uint64_t count_ = 0;
};

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// Times that are said beforehand, in place of those of the cost model: each request's tokens come
/// on their own, however many others there are. A load generator is held against these.
struct Pace {
    double first_seconds = 0.005, gap_seconds = 0.001;
    enum class Kind {
        exact,      ///< each request by itself
        staggered,  ///< each is later by another share of the gap: all tokens spread evenly
        lockstep    ///< on the ticks of one clock of period gap: tokens come together
    };
    Kind kind = Kind::exact;
};

struct EngineLoopOptions {
    std::uint64_t seed = 0;
    servetune::StepNoise noise{};
    double time_scale = 1;  ///< so many times faster than the engine
    std::optional<Pace> pace{};
};

/// The engine in real time: front ends before and behind the replicas' step loops, as in
/// `servetune::simulate`.
///
/// It has no timer: whoever owns it calls `run` no later than `next` says. Everything happens at
/// the moment it was planned for, not at the moment somebody came to do it: a step begins where the
/// one before it ended, so delays do not add up. Only when it is more than a second behind (the
/// machine slept) it lets the time pass for good.
class EngineLoop {
public:
    using Deliver = std::function<void(const servetune::TokenEvent&)>;

    EngineLoop(const servetune::CostModel& cost, const EngineLoopOptions& options, Deliver deliver);

    /// EngineCore::refusal.
    [[nodiscard]] std::string refusal(std::int64_t input_tokens, std::int64_t output_tokens,
                                      bool prompt_is_computed) const;
    [[nodiscard]] const servetune::CostModel& cost() const { return cores_.front().core.cost(); }

    /// A request that has just been read; `refusal` must have nothing against it, its id must be
    /// new.
    /// `slower`: with a pace, so many times.
    void submit(servetune::EngineRequest request, TimePoint now, double slower = 1);
    void cancel(std::size_t id);
    void clear_prefix_cache();
    /// All requests and counters are forgotten, as after a restart.
    void restart();

    /// When the next thing is planned.
    [[nodiscard]] std::optional<TimePoint> next() const;
    /// Does what is planned up to `now`; after so many deliveries it returns, and `next` is in the
    /// past.
    void run(TimePoint now, int most_deliveries = 256);
    /// A step did not fit into the device's memory: the engine would have died.
    [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

    [[nodiscard]] servetune::EngineCounters counters() const;
    [[nodiscard]] std::size_t running() const;
    [[nodiscard]] std::size_t waiting() const;  ///< in the front ends too
    [[nodiscard]] double cache_use() const;
    [[nodiscard]] const Lateness& lateness() const { return lateness_; }

private:
    enum class What { arrive, admit, step_end, send, pace };
    struct Planned {
        TimePoint at;
        std::uint64_t order;  ///< of what is planned for the same moment
        What what;
        std::size_t replica;
        servetune::TokenEvent event;  ///< send; else the id alone
        bool operator>(const Planned& other) const {
            return at != other.at ? at > other.at : order > other.order;
        }
    };
    struct Replica {
        servetune::EngineCore core;
        std::vector<servetune::TokenEvent> made{};  ///< by the step under way
        bool stepping = false;
        std::size_t assigned = 0;  ///< requests that have not ended
    };
    struct Request {
        std::size_t replica = 0;  ///< none until it is admitted
        std::size_t front_end = 0;
        servetune::EngineRequest waiting{};  ///< until then
        bool finished = false;         ///< in the engine; its last tokens may still be on their way
        servetune::TokenEvent held{};  ///< tokens that are not sent alone (stream_interval)
        double slower = 1;
    };

    void make_cores();
    void plan(TimePoint at, What what, std::size_t replica, const servetune::TokenEvent& event);
    void begin_pace(const Request& request, TimePoint now);
    void send_at_pace(const Planned& planned);
    void arrive(const Planned& planned);
    void admit(const Planned& planned);
    void begin_step(std::size_t replica, TimePoint at);
    void end_step(const Planned& planned, TimePoint now);
    void hand_over(servetune::TokenEvent event, TimePoint at);
    void send(const Planned& planned);
    TimePoint through_front_end(std::size_t front_end, TimePoint at, double seconds);
    [[nodiscard]] Clock::duration real(double engine_seconds) const;

    servetune::CostModel cost_;
    EngineLoopOptions options_;
    Deliver deliver_;
    std::vector<Replica> cores_;
    std::vector<TimePoint> front_end_free_at_;
    std::unordered_map<std::size_t, Request> requests_;
    std::priority_queue<Planned, std::vector<Planned>, std::greater<>> planned_;
    std::uint64_t next_order_ = 0;
    std::size_t in_front_ends_ = 0;
    bool hangs_ = false;
    bool out_of_memory_ = false;
    servetune::EngineCounters paced_{};
    TimePoint started_ = Clock::now();
    Lateness lateness_;
};

}  // namespace simengine
