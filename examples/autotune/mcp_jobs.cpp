// SPDX-License-Identifier: Apache-2.0
#include "mcp_jobs.hpp"

#include "host/start_program.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace autotune {

using namespace servetune;

namespace {

/// This very program, with this program's own environment: a study reads its secrets from it, which
/// other children never inherit.
ProcessOptions process_of(std::vector<std::string> words, const std::filesystem::path& folder) {
    ProcessOptions options;
    options.argv = std::move(words);
    options.argv.insert(options.argv.begin(),
                        std::filesystem::read_symlink("/proc/self/exe").string());
    options.environment = secret_variables();
    options.folder = folder;
    options.answer_bytes = 8UL << 20UL;
    return options;
}

}  // namespace

Job::Job(std::string id, std::string tool, std::filesystem::path subject,
         std::vector<std::string> words, const std::filesystem::path& folder)
    : id_(std::move(id)),
      tool_(std::move(tool)),
      subject_(std::move(subject)),
      process_(process_of(std::move(words), folder)) {}

double Job::seconds() const {
    const double now =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (running()) return now;
    double not_seen = -1;
    (void)seconds_.compare_exchange_strong(not_seen, now);
    return seconds_;
}

std::string Job::answer() {
    const std::scoped_lock lock(ending_);
    // The end of the leader is not the end of its output: `end` reads the rest.
    if (!process_.running()) (void)process_.end();
    return process_.answer();
}

std::vector<std::string> Job::said() const {
    constexpr std::size_t last = 20;
    std::vector<std::string> lines = process_.lines();
    if (lines.size() > last)
        lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(last));
    return lines;
}

void Job::stop() {
    const std::scoped_lock lock(ending_);
    (void)process_.end(std::chrono::minutes(2));
}

void Job::cancel() {
    if (!cancelled_.exchange(true)) canceller_ = std::jthread([this] { stop(); });
}

Jobs::~Jobs() {
    std::vector<std::jthread> enders;
    for (const auto& [number, job] : all_)
        if (job->running()) enders.emplace_back([&job = *job] { job.stop(); });
}

std::shared_ptr<Job> Jobs::start(const std::string& tool, const std::filesystem::path& subject,
                                 std::vector<std::string> words) {
    const std::scoped_lock lock(mutex_);
    const auto running = std::count_if(all_.begin(), all_.end(),
                                       [](const auto& one) { return one.second->running(); });
    if (static_cast<std::size_t>(running) >= most_running)
        throw UsageError(
            std::to_string(running) +
            " commands run already, the most at once: wait for one (`status`) or end one (`stop`)");
    for (auto one = all_.begin(); one != all_.end() && all_.size() >= most_kept;)
        one = one->second->running() ? std::next(one) : all_.erase(one);
    const std::size_t number = ++made_;
    auto job = std::make_shared<Job>(tool + "-" + std::to_string(number), tool, subject,
                                     std::move(words), folder_);
    all_[number] = job;
    return job;
}

std::shared_ptr<Job> Jobs::find(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    for (const auto& [number, job] : all_)
        if (job->id() == id) return job;
    return nullptr;
}

std::shared_ptr<Job> Jobs::of(const std::string& tool, const std::filesystem::path& subject) const {
    const std::scoped_lock lock(mutex_);
    for (auto one = all_.rbegin(); one != all_.rend(); ++one)
        if (one->second->tool() == tool && one->second->subject() == subject) return one->second;
    return nullptr;
}

}  // namespace autotune
