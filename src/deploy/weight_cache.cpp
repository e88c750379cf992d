// SPDX-License-Identifier: Apache-2.0
#include "weight_cache.hpp"

#include "base/files.hpp"
#include "cached_models.hpp"
#include "host/elapsed.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/error.hpp"
#include "servetune/launcher.hpp"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// For sockets, and for this user alone.
fs::path make_private_folder() {
    constexpr std::size_t longest =
        40;  // a socket's path has at most 107 bytes, and its name up to 60
    fs::path parent = temporary_files();
    if (parent.string().size() > longest) parent = "/tmp";
    std::string folder = (parent / "servetune-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr)
        throw IoError("no folder for the sockets of the weight cache in " + parent.string() + ": " +
                      std::generic_category().message(errno));
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
    if (sockets_.empty()) sockets_ = make_private_folder();
    return sockets_;
}

std::optional<WeightCacheCommands> WeightCache::hold(const Composition& composition,
                                                     const Configuration& configuration,
                                                     const std::string& model,
                                                     const std::vector<std::string>& gpus,
                                                     const std::stop_token& stop) {
    const auto load_itself = [&](const std::string& why) {
        why_not_ = why;
        release();
        return std::nullopt;
    };
    if (const std::string why = composition.why_no_weight_cache(configuration); !why.empty())
        return load_itself(why);
    WeightCacheCommands commands;
    std::optional<Fingerprint> files;
    try {
        commands = composition.render_weight_cache(configuration, model, sockets().string());
        files = checkpoint_files(commands.model, options_.environment);
    } catch (const std::exception&
                 error) {  // the folder for sockets: an engine that loads its weights needs none
        return load_itself(error.what());
    }
    if (!files)
        return load_itself("no file of " + commands.model +
                           " is on this machine yet, so a change of it would not be seen");
    held_ = key_of_weights(commands.daemon, *files);
    if (const auto* refused = entry_in(refused_, held_)) return load_itself(*refused);
    if (const std::string why = why_not_ready(gpus, commands, stop); !why.empty()) {
        if (!stop.stop_requested()) refused_[held_] = why;
        return load_itself(why);
    }
    why_not_.clear();
    return commands;
}

/// Ends daemons that are of no use, starts those that are missing and waits for them. Empty: all
/// hold the weights.
std::string WeightCache::why_not_ready(const std::vector<std::string>& gpus,
                                       const WeightCacheCommands& commands,
                                       const std::stop_token& stop) {
    const std::set<std::string> wanted(gpus.begin(), gpus.end());
    std::set<std::string> useless;
    bool died = false;
    for (const auto& [devices, daemon] : daemons_) {
        const bool runs = daemon->process.running();
        died = died || (!runs && daemon->key == held_);
        if (!runs || daemon->key != held_ || !wanted.contains(devices)) useless.insert(devices);
    }
    end(useless);
    if (died) return "its daemon died";
    try {
        for (const std::string& devices : wanted)
            if (!daemons_.contains(devices)) start(devices, held_, commands.daemon);
    } catch (const std::exception& error) {
        return error.what();
    }
    for (const auto& [devices, daemon] : daemons_)
        if (std::string why = wait_until_ready(*daemon, commands, stop); !why.empty()) return why;
    return {};
}

void WeightCache::start(const std::string& gpus, const std::string& key, const Command& command) {
    LaunchRequest request{.command = command, .environment = command.environment, .gpus = gpus};
    for (const auto& [name, value] : options_.environment) request.environment[name] = value;
    const Launch launch =
        local_launcher()->launch(request);  // devices are numbered as for the engine
    std::error_code trouble;
    int number = 1;
    const auto log = [&] { return options_.folder / (std::to_string(number) + ".log"); };
    while (fs::exists(log(), trouble)) ++number;
    ProcessOptions process;
    process.argv = launch.argv;
    process.environment = launch.environment;
    process.files = command.files;
    process.folder = options_.folder;
    process.log = log();
    process.log_bytes = options_.log_bytes;
    process.mark = options_.mark;
    process.cores = options_.cores;
    process.watchdog = options_.watchdog;
    GpuMemory memory(gpus, options_.nvidia_smi);
    std::vector<GpuMemoryUse> before = memory.used();
    daemons_[gpus] = std::unique_ptr<Daemon>(
        new Daemon{key, std::move(memory), std::move(before), Process(process)});
}

/// Empty: it holds the weights.
std::string WeightCache::wait_until_ready(Daemon& daemon, const WeightCacheCommands& commands,
                                          const std::stop_token& stop) const {
    const auto begin = std::chrono::steady_clock::now();
    std::size_t position = 0;
    for (std::string printed; !daemon.ready;) {
        const bool runs = daemon.process.running();  // before its last words are read
        printed += daemon.process.printed_from(position);
        daemon.ready = contains(printed, commands.ready);
        if (daemon.ready) break;
        printed.erase(
            0, printed.size() - std::min(printed.size(),
                                         commands.ready.size()));  // a line may come in two pieces
        if (stop.stop_requested()) return "stopped";
        if (!runs) return "the daemon ended, " + last_words_of_daemon(daemon.process);
        if (seconds_since(begin) > commands.ready_within_seconds)
            return "the daemon was not ready within " +
                   seconds_text(commands.ready_within_seconds) + ", " +
                   last_words_of_daemon(daemon.process);
        (void)daemon.process.wait(20ms);
    }
    return {};
}

/// All at the same time. Throws as `release`.
void WeightCache::end(const std::set<std::string>& devices) {
    const std::chrono::milliseconds patience(std::llround(options_.stop_within_seconds * 1000));
    std::vector<std::string> reports(devices.size());
    {
        std::vector<std::jthread> threads;
        auto report = reports.begin();
        for (const std::string& one : devices)
            threads.emplace_back([&daemon = *daemons_.at(one), &to = *report++, patience] {
                try {
                    to = daemon.process.end(patience).report;
                    to += daemon.memory.wait_until_free(daemon.before, patience);
                } catch (const std::exception& error) {
                    to = error.what();
                }
            });
    }
    std::string all;
    for (const std::string& report : reports) all += report;
    for (const std::string& one : devices) daemons_.erase(one);
    std::error_code trouble;
    if (daemons_.empty() && !sockets_.empty())
        for (const fs::directory_entry& left : fs::directory_iterator(sockets_, trouble)) {
            std::error_code stays;
            fs::remove_all(left.path(), stays);
        }
    if (!all.empty())
        throw IoError("a daemon of the weight cache was ended, and something of it is left: " +
                      all);
}

void WeightCache::release() {
    std::set<std::string> all;
    for (const auto& [devices, daemon] : daemons_) all.insert(devices);
    end(all);
}

bool WeightCache::alive() const {
    return all_of(daemons_, [](const auto& one) { return one.second->process.running(); });
}

void WeightCache::give_up(const std::string& why) { refused_[held_] = why; }

}  // namespace servetune
