// SPDX-License-Identifier: Apache-2.0
#include "checkup.hpp"

#include "host/environment.hpp"
#include "host/process_table.hpp"
#include "host/processor.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace autotune {

using namespace servetune;
using State = Checkup::State;

namespace {

std::string gib(double bytes) { return fixed_text(bytes / (1UL << 30UL), 1) + " GiB"; }

std::string fact_in(const Environment& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? "" : found->second;
}

Checkup processor(const Environment& facts) {
    const std::string cores = fact_in(facts, "cores");
    const std::string limit = fact_in(facts, "cpu limit");
    const std::string found = processor_text() + ", of which this process may use " + cores +
                              (limit.empty() ? std::string() : " (control group: " + limit + ")");
    // The load generator, the engine's HTTP server and its scheduler keep a core busy each; a
    // fourth for all others.
    constexpr double enough = 4;
    const double usable = std::min(cores.empty() ? enough : std::strtod(cores.c_str(), nullptr),
                                   limit.empty() ? enough : std::strtod(limit.c_str(), nullptr));
    if (usable >= enough) return {"processor", State::fine, found};
    return {"processor", State::worth_knowing,
            found + ": the load generator shares them with the engine, so results may be suspect",
            "load-test from another machine (`attach`), or with less load"};
}

std::vector<Checkup> governor(const Environment& facts) {
    const std::string how = fact_in(facts, "cpu governor");
    if (how.find("powersave") == std::string::npos && how.find("ondemand") == std::string::npos)
        return {};
    return {{"cpu governor", State::worth_knowing,
             how + ": clocks rise only under load, which adds noise",
             "sudo cpupower frequency-set -g performance"}};
}

/// Bytes of a row of /proc/meminfo; 0: not told.
double memory_row(const std::string& name) {
    std::ifstream lines("/proc/meminfo");
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name + ":"))
            return std::strtod(line.c_str() + name.size() + 1, nullptr) * 1024;
    return 0;
}

Checkup memory(const Environment& facts) {
    const std::string limit = fact_in(facts, "memory limit");
    const double available = memory_row("MemAvailable");
    const double allowed =
        limit.empty() ? available
                      : std::min(available, std::strtod(limit.c_str(), nullptr) * (1 << 20));
    const std::string found = gib(available) + " of " + gib(memory_row("MemTotal")) + " available" +
                              (limit.empty() ? "" : " (control group: " + limit + ")");
    // A Python engine with its libraries takes some GiB before the weights.
    constexpr double little = 8.0 * (1UL << 30UL);
    if (allowed >= little) return {"memory", State::fine, found};
    return {"memory", State::worth_knowing,
            found + ": little for an engine that loads weights through it",
            "end other programs, or raise the container's limit"};
}

/// Docker gives 64 MiB (docker run, --shm-size); processes of several GPUs talk through it (NCCL,
/// environment variables, NCCL_SHM_DISABLE).
Checkup shared_memory() {
    struct statvfs disk {};
    if (statvfs("/dev/shm", &disk) != 0)
        return {"/dev/shm", State::worth_knowing, "is not there; engines on several GPUs need it",
                "mount a tmpfs on /dev/shm"};
    const double bytes = static_cast<double>(disk.f_blocks) * static_cast<double>(disk.f_frsize);
    constexpr double enough = 1UL << 30UL;
    if (bytes >= enough) return {"/dev/shm", State::fine, gib(bytes)};
    return {"/dev/shm", State::worth_knowing,
            gib(bytes) + ": too little for an engine on several GPUs",
            "start this container with --shm-size=8g or --ipc=host"};
}

/// The load generator raises the soft limit by itself.
Checkup open_files() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const std::string found = limit.rlim_max == RLIM_INFINITY
                                  ? std::string("any number")
                                  : "at most " + std::to_string(limit.rlim_max);
    // Requests in flight: the largest load of a shipped workload has 1000 at once.
    constexpr rlim_t enough = 4096;
    if (limit.rlim_max >= enough) return {"open files", State::fine, found};
    return {"open files", State::worth_knowing,
            found + ": each request in flight takes one, here and in the engine",
            "raise it (ulimit -Hn, limits.conf, --ulimit nofile=65536 of a container)"};
}

Checkup ports() {
    try {
        require_loopback();
        const ReservedPort port;
        return {"ports", State::fine,
                fmt::format("127.0.0.1 takes connections, and {} is free for an engine",
                            port.number())};
    } catch (const IoError& error) {
        return {"ports", State::stops, error.what(),
                "give this container a network of its own with a loopback, or --network=host"};
    }
}

std::vector<Checkup> process_table() {
    try {
        require_process_table();
        return {};
    } catch (const IoError& error) {
        return {
            {"/proc", State::stops, error.what(), "mount it: engines are found and ended by it"}};
    }
}

}  // namespace

std::vector<Checkup> checkups_of_machine() {
    const Environment facts = environment_now({.inherits = false});
    std::vector<Checkup> result{processor(facts)};
    for (auto&& part : {governor(facts),
                        {memory(facts), shared_memory(), open_files(), ports()},
                        process_table()})
        result.insert(result.end(), part.begin(), part.end());
    return result;
}

}  // namespace autotune
