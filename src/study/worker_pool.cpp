// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/worker_pool.hpp"

namespace servetune {

WorkerPool::WorkerPool(std::span<Evaluator* const> evaluators)
    : busy_(evaluators.size(), false), retired_(evaluators.size(), false) {
    for (std::size_t i = 0; i < evaluators.size(); ++i) jobs_.emplace_back();
    for (std::size_t i = 0; i < evaluators.size(); ++i)
        threads_.emplace_back([this, i, evaluator = evaluators[i]](const std::stop_token& over) {
            work(i, *evaluator, over);
        });
}

void WorkerPool::work(std::size_t worker, Evaluator& evaluator, const std::stop_token& over) {
    for (;;) {
        std::unique_lock lock(mutex_);
        if (!there_is_work_.wait(lock, over, [&] { return jobs_[worker].has_value(); })) return;
        auto [configuration, context] = std::move(*jobs_[worker]);
        jobs_[worker].reset();
        lock.unlock();
        Done done{worker, context.trial};
        try {
            done.outcome = evaluator.evaluate(configuration, context);
        } catch (...) {
            done.error = std::current_exception();
        }
        lock.lock();
        done_.push_back(std::move(done));
        something_is_done_.notify_all();
    }
}

}  // namespace servetune
