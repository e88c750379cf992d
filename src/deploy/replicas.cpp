// SPDX-License-Identifier: Apache-2.0
#include "replicas.hpp"

#include "servetune/detail/host/gpu_memory.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <thread>
#include <utility>

namespace servetune {

struct Replicas::One {
    ReservedPort port{};
    std::unique_ptr<Deployment> deployment{};
    std::exception_ptr error{};
};

namespace {

std::string all_devices(const std::vector<std::string>& gpus) {
    std::string result;
    for (const std::string& one : gpus)
        if (!one.empty()) result += (result.empty() ? "" : ",") + one;
    return result;
}

/// Those of every copy; any where one may run on any.
std::vector<int> all_cores(const std::vector<std::vector<int>>& cores, const std::vector<int>& otherwise) {
    if (cores.empty()) return otherwise;
    std::set<int> result;
    for (const std::vector<int>& one : cores) {
        if (one.empty()) return {};
        result.insert(one.begin(), one.end());
    }
    return {result.begin(), result.end()};
}

/// What ended the others is none: they were stopped for it.
bool is_worse(const Failure& failure, const std::optional<Failure>& than) {
    return !than || (than->kind == FailureKind::cancelled && failure.kind != FailureKind::cancelled);
}

}  // namespace

Replicas::Replicas(const Engine& engine, const Render& render, const std::string& served_model, const DeployOptions& options,
                   const std::vector<std::string>& gpus, const std::vector<std::vector<int>>& cores, const std::stop_token& stop)
    : mark_(options.mark),
      cores_(all_cores(cores, options.cores)),
      gpus_(all_devices(gpus)),
      watched_(!options.launcher || options.launcher->on_this_machine()) {
    if (gpus.size() > 1 && watched_) memory_before_ = GpuMemory(gpus_, options.nvidia_smi).used();
    for (std::size_t i = 0; i < std::max<std::size_t>(gpus.size(), 1); ++i) all_.push_back(std::make_unique<One>());
    std::stop_source given_up;
    const std::stop_callback by_user(stop, [&] { given_up.request_stop(); });
    const auto start = [&](std::size_t i) {
        One& one = *all_[i];
        try {
            DeployOptions mine = options;
            if (!gpus.empty()) mine.gpus = gpus[i];
            if (!cores.empty()) mine.cores = cores[i];
            if (i > 0) {
                mine.folder /= "replica-" + std::to_string(i);
                mine.waits = {};  // the first one speaks for all
            }
            one.deployment = std::make_unique<Deployment>(engine, render(one.port.number()), served_model, one.port, std::move(mine),
                                                          given_up.get_token());
            if (one.deployment->started().failure) given_up.request_stop();
        } catch (...) {
            one.error = std::current_exception();
            given_up.request_stop();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < all_.size(); ++i) threads.emplace_back([&start, i] { start(i); });
        start(0);
    }
    for (const auto& one : all_)
        if (one->error) {
            const std::exception_ptr error = one->error;
            std::erase_if(all_, [](const auto& other) { return other->deployment == nullptr; });
            if (!all_.empty()) (void)this->stop();
            std::rethrow_exception(error);
        }
    for (const auto& one : all_) {
        const DeploymentStart& start_of_one = one->deployment->started();
        started_.seconds = std::max(started_.seconds, start_of_one.seconds);
        started_.queued_seconds = std::max(started_.queued_seconds, start_of_one.queued_seconds);
        for (const auto& [what, value] : start_of_one.place)
            if (std::string& all = started_.place[what]; all.empty()) all = value;
            else if ((", " + all + ", ").find(", " + value + ", ") == std::string::npos) all += ", " + value;
        if (start_of_one.failure && is_worse(*start_of_one.failure, started_.failure)) started_.failure = start_of_one.failure;
    }
    if (started_.failure) (void)this->stop();
}

Replicas::~Replicas() {
    try {
        if (!all_.empty()) (void)stop();
    } catch (...) {  // NOLINT(bugprone-empty-catch): each deployment's own destructor tries again
    }
}

Endpoint Replicas::endpoint() const {
    Endpoint result = all_.front()->deployment->endpoint();
    for (std::size_t i = 1; i < all_.size(); ++i) result.replicas.push_back(all_[i]->deployment->endpoint().url);
    return result;
}

std::optional<Failure> Replicas::first_failure(const std::function<std::optional<Failure>(const Deployment&)>& of) const {
    std::optional<Failure> result;
    for (const auto& one : all_)
        if (const auto failure = of(*one->deployment); failure && is_worse(*failure, result)) result = failure;
    return result;
}

std::optional<Failure> Replicas::died() const {
    return first_failure([](const Deployment& one) { return one.died(); });
}

std::optional<Failure> Replicas::changed() const {
    return first_failure([](const Deployment& one) { return one.changed(); });
}

std::optional<Failure> Replicas::lost() const {
    return first_failure([](const Deployment& one) { return one.lost(); });
}

bool Replicas::reset_cache() {
    bool all = true;
    for (const auto& one : all_) all = one->deployment->reset_cache() && all;
    return all;
}

std::vector<std::string> Replicas::not_in_force() const {
    std::vector<std::string> result;
    for (const auto& one : all_)
        for (const std::string& line : one->deployment->not_in_force())
            if (std::find(result.begin(), result.end(), line) == result.end()) result.push_back(line);
    return result;
}

std::unique_ptr<MachineWatch> Replicas::watch(MachineWatchOptions options) const {
    if (all_.size() == 1 || !watched_) return all_.front()->deployment->watch(std::move(options));
    options.gpus = gpus_;
    options.cores = cores_;
    options.before = memory_before_;
    return std::make_unique<MachineWatch>(WatchedProcesses{all_.front()->deployment->process_id(), mark_}, std::move(options));
}

std::vector<std::string> Replicas::decisive() const {
    for (const auto& one : all_)
        if (const auto failure = one->deployment->died(); failure && failure->kind != FailureKind::cancelled)
            return one->deployment->decisive();
    return all_.front()->deployment->decisive();
}

std::string Replicas::log_trouble() const {
    std::string result;
    for (const auto& one : all_)
        if (const std::string trouble = one->deployment->log_trouble(); !trouble.empty()) result += (result.empty() ? "" : "; ") + trouble;
    return result;
}

Ended Replicas::stop() {
    std::vector<Ended> ended(all_.size());
    const auto end = [&](std::size_t i) {
        try {
            ended[i] = all_[i]->deployment->stop();
        } catch (...) {
            all_[i]->error = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < all_.size(); ++i) threads.emplace_back([&end, i] { end(i); });
        end(0);
    }
    for (const auto& one : all_)
        if (one->error) std::rethrow_exception(std::exchange(one->error, nullptr));
    Ended result = ended.front();
    for (std::size_t i = 1; i < ended.size(); ++i) {
        result.seconds = std::max(result.seconds, ended[i].seconds);
        result.report += ended[i].report;
    }
    return result;
}

}  // namespace servetune
