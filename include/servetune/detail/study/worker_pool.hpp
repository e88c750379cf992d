// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/evaluator.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace servetune {

/// One thread for each evaluator. The caller's thread sends trials and fetches what became of them.
class WorkerPool {
public:
    struct Done {
        std::size_t worker = 0;
        std::uint64_t trial = 0;
        Outcome outcome{};
        std::exception_ptr error{};  ///< the evaluator threw: the tuner cannot go on
    };

    /// `evaluators`: must outlive this; each is called from one thread only.
    explicit WorkerPool(std::span<Evaluator* const> evaluators);
    /// Waits for what is under way.
    ~WorkerPool() {
        for (std::jthread& thread : threads_) thread.request_stop();
    }
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// The first one without a trial; nothing: all have one.
    [[nodiscard]] std::optional<std::size_t> idle() const {
        for (std::size_t i = 0; i < busy_.size(); ++i)
            if (!busy_[i] && !retired_[i]) return i;
        return std::nullopt;
    }
    [[nodiscard]] bool all_idle() const {
        return std::find(busy_.begin(), busy_.end(), true) == busy_.end();
    }
    [[nodiscard]] std::size_t size() const {
        return static_cast<std::size_t>(std::count(retired_.begin(), retired_.end(), false));
    }
    /// The first that takes trials.
    [[nodiscard]] std::size_t first() const {
        const auto at = std::find(retired_.begin(), retired_.end(), false);
        return at == retired_.end() ? 0 : static_cast<std::size_t>(at - retired_.begin());
    }
    /// Takes no further trial.
    void retire(std::size_t worker) { retired_[worker] = true; }
    void send(std::size_t worker, Configuration configuration, EvaluationContext context) {
        busy_[worker] = true;
        const std::lock_guard lock(mutex_);
        jobs_[worker].emplace(std::move(configuration), std::move(context));
        there_is_work_.notify_all();
    }
    /// Waits for the next that is done.
    Done next() {
        std::unique_lock lock(mutex_);
        something_is_done_.wait(lock, [&] { return !done_.empty(); });
        Done result = std::move(done_.front());
        done_.pop_front();
        busy_[result.worker] = false;
        return result;
    }

private:
    void work(std::size_t worker, Evaluator& evaluator, const std::stop_token& over);

    std::vector<bool> busy_, retired_;  // the caller's
    std::mutex mutex_;
    std::condition_variable_any there_is_work_;
    std::condition_variable something_is_done_;
    std::deque<std::optional<std::pair<Configuration, EvaluationContext>>> jobs_;
    std::deque<Done> done_{};
    std::vector<std::jthread> threads_;  // last: ends before what it uses
};

}  // namespace servetune
