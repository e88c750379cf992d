// SPDX-License-Identifier: Apache-2.0
#include "weight_cache.hpp"

#include "../process/elapsed.hpp"
#include "checkpoint_files.hpp"
#include "servetune/base/error.hpp"
#include "servetune/machine/gpu_memory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <system_error>
#include <thread>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Ours alone, short (a socket's path has at most 107 bytes), and the same after a kill: what a dead tuner left there
/// is removed.
fs::path private_folder(const std::string& mark) {
    static std::atomic<int> count = 0;
    const fs::path folder = fs::temp_directory_path() / ("servetune-" + fingerprint_of(mark).text() + "-" + std::to_string(count++));
    std::error_code stays;
    fs::remove_all(folder, stays);
    if (mkdir(folder.c_str(), S_IRWXU) != 0)
        throw IoError("no folder for the sockets of the weight cache: " + folder.string() + ": " + std::generic_category().message(errno));
    return folder;
}

/// What decides which weights lie there, but for the devices.
std::string key_of_weights(const Command& daemon, const Fingerprint& files) {
    std::string result = daemon.text() + "\n" + files.text();
    for (const auto& [name, content] : daemon.files) result += "\n" + name + "\n" + content;
    return result;
}

std::string last_words_of_daemon(const Process& process) {
    const std::vector<std::string> lines = process.lines();
    return lines.empty() ? "it printed nothing" : "its last line: " + lines.back();
}

}  // namespace

struct WeightCache::Daemon {
    std::string key;
    GpuMemory memory;
    std::vector<GpuMemoryUse> before = memory.used();
    Process process;
    bool ready = false;
};

WeightCache::WeightCache(Options options) : options_(std::move(options)) {}

WeightCache::~WeightCache() {
    try {
        release();
    } catch (...) {  // NOLINT(bugprone-empty-catch): each daemon's own destructor tries again
    }
    std::error_code stays;
    if (!sockets_.empty()) fs::remove_all(sockets_, stays);
}

const fs::path& WeightCache::sockets() {
    if (sockets_.empty()) sockets_ = private_folder(options_.mark);
    return sockets_;
}

std::string WeightCache::refused(const std::string& key) const {
    const auto found = refused_.find(key);
    return found == refused_.end() ? "" : found->second;
}

std::optional<WeightCacheCommands> WeightCache::hold(const Composition& composition, const Configuration& configuration,
                                                     const std::string& model, const std::vector<std::string>& gpus, const fs::path& folder,
                                                     const std::stop_token& stop) {
    const auto load_itself = [&](const std::string& why) {
        why_not_ = why;
        release();
        return std::nullopt;
    };
    if (const std::string why = composition.why_no_weight_cache(configuration); !why.empty()) return load_itself(why);
    const WeightCacheCommands commands = composition.render_weight_cache(configuration, model, sockets().string());
    const auto files = checkpoint_files(commands.model, options_.environment);
    if (!files) return load_itself("no file of " + commands.model + " is on this machine yet, so a change of it would not be seen");
    held_ = key_of_weights(commands.daemon, *files);
    if (const std::string why = refused(held_); !why.empty()) return load_itself(why);

    const std::set<std::string> wanted(gpus.begin(), gpus.end());
    std::erase_if(daemons_, [&](const auto& one) {
        const bool stays = wanted.contains(one.first) && one.second->key == held_ && one.second->process.running();
        if (!stays) end(*one.second);
        return !stays;
    });
    for (const std::string& devices : wanted) {
        if (daemons_.contains(devices)) continue;
        const std::string number = daemons_.empty() ? "" : "-" + std::to_string(daemons_.size());
        start(devices, held_, commands.daemon, folder / ("weight-cache" + number + ".log"));
    }
    for (const auto& [devices, daemon] : daemons_)
        if (const std::string why = wait_until_ready(*daemon, commands, stop); !why.empty()) {
            if (!stop.stop_requested()) refused_[held_] = why;
            return load_itself(why);
        }
    why_not_.clear();
    return commands;
}

void WeightCache::start(const std::string& gpus, const std::string& key, const Command& command, const fs::path& log) {
    ProcessOptions process;
    process.argv = command.argv;
    process.environment = command.environment;
    for (const auto& [name, value] : options_.environment) process.environment[name] = value;
    if (!gpus.empty()) process.environment["CUDA_VISIBLE_DEVICES"] = gpus;
    process.files = command.files;
    process.folder = log.parent_path();
    process.log = log;
    process.log_bytes = options_.log_bytes;
    process.mark = options_.mark;
    process.cores = options_.cores;
    process.watchdog = options_.watchdog;
    GpuMemory memory(gpus, options_.nvidia_smi);
    std::vector<GpuMemoryUse> before = memory.used();
    daemons_[gpus] = std::unique_ptr<Daemon>(new Daemon{key, std::move(memory), std::move(before), Process(process)});
}

/// Empty: it holds the weights.
std::string WeightCache::wait_until_ready(Daemon& daemon, const WeightCacheCommands& commands, const std::stop_token& stop) const {
    const auto begin = std::chrono::steady_clock::now();
    std::size_t position = 0;
    for (std::string printed; !daemon.ready;) {
        const bool runs = daemon.process.running();  // before its last words are read
        printed += daemon.process.printed_from(position);
        daemon.ready = printed.find(commands.ready) != std::string::npos;
        if (daemon.ready) break;
        printed.erase(0, printed.size() - std::min(printed.size(), commands.ready.size()));  // a line may come in two pieces
        if (stop.stop_requested()) return "stopped";
        if (!runs) return "the daemon ended, " + last_words_of_daemon(daemon.process);
        if (seconds_since(begin) > commands.ready_within_seconds)
            return "the daemon was not ready within " + seconds_text(commands.ready_within_seconds) + ", " +
                   last_words_of_daemon(daemon.process);
        (void)daemon.process.wait(20ms);
    }
    return {};
}

void WeightCache::end(Daemon& daemon) const {
    const std::chrono::milliseconds patience(std::llround(options_.stop_within_seconds * 1000));
    (void)daemon.process.end(patience);
    (void)daemon.memory.wait_until_free(daemon.before, patience);
}

void WeightCache::release() {
    for (const auto& [devices, daemon] : daemons_) end(*daemon);
    daemons_.clear();
    std::error_code trouble;
    if (sockets_.empty()) return;
    for (const fs::directory_entry& left : fs::directory_iterator(sockets_, trouble)) fs::remove_all(left.path(), trouble);
}

void WeightCache::give_up(const std::string& why) { refused_[held_] = why; }

}  // namespace servetune
