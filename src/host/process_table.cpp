// SPDX-License-Identifier: Apache-2.0
#include "process_table.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/process.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

std::string proc_content(int id, const char* file) {
    const Descriptor from = open_of_process(id, file);
    std::string text;
    std::array<char, 16384> buffer{};
    ssize_t got = 0;
    while (from.id() >= 0 && (got = read(from.id(), buffer.data(), buffer.size())) > 0)
        text.append(buffer.data(), std::size_t(got));
    return text;
}

/// Whether execve is at work: the process has memory of a user's, and its environment has no end
/// yet (proc(5): vsize is the 23rd field of stat, env_end the 51st; 0 too where we may not look).
bool becomes_a_program(int id) {
    if (open_of_process(id, "environ").id() < 0) return false;
    const std::string text = proc_content(id, "stat");
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    const std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
    constexpr std::size_t first = 3;  // the field after the name
    return words.size() > 51 - first && words[23 - first] != "0" && words[51 - first] == "0";
}

}  // namespace

Descriptor open_of_process(int id, std::string_view name) {
    std::array<char, 64> path{};
    constexpr std::string_view folder = "/proc/";
    char* end = std::copy(folder.begin(), folder.end(), path.data());
    end = std::to_chars(end, path.data() + 32, id).ptr;
    *end++ = '/';
    *std::copy(name.begin(), name.end(), end) = '\0';
    return Descriptor(open(path.data(), O_RDONLY | O_CLOEXEC));
}

// proc(5): "pid (name) state parent group session ... start time", the 22nd; the name may hold
// anything.
std::optional<RunningProcess> running_process(int id) {
    std::array<char, 1024> buffer{};
    const Descriptor file = open_of_process(id, "stat");
    const ssize_t got = file.id() < 0 ? 0 : read(file.id(), buffer.data(), buffer.size());
    std::string_view text(buffer.data(), got > 0 ? std::size_t(got) : 0);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string_view::npos || text.size() < name_end + 3) return std::nullopt;
    text.remove_prefix(name_end + 2);
    RunningProcess process{.id = id, .dead = text.front() == 'Z' || text.front() == 'X'};
    for (int field = 3; field <= 22; ++field) {
        const std::string_view word = text.substr(0, text.find(' '));
        const auto read_into = [&](auto& number) {
            std::from_chars(word.data(), word.data() + word.size(), number);
        };
        if (field == 4) read_into(process.parent);
        if (field == 5) read_into(process.group);
        if (field == 22) read_into(process.start_ticks);
        text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    return process.start_ticks > 0 ? std::optional(process) : std::nullopt;
}

void require_process_table() {
    std::array<char, 32> self{};
    const ssize_t got = readlink("/proc/self", self.data(), self.size());
    const std::string id(self.data(), got > 0 ? std::size_t(got) : 0);
    if (id == std::to_string(getpid())) {
        if (running_process(getpid())) return;
        if (open_of_process(getpid(), "stat").id() < 0)  // such as too many open files
            throw IoError("engines cannot be watched here: cannot read /proc/" + id +
                          "/stat: " + std::generic_category().message(errno));
    }
    throw IoError("engines cannot be watched here: /proc " +
                  std::string(id.empty() ? "is not mounted" : "shows other process ids than ours") +
                  "; mount it (mount -t proc proc /proc) and run again");
}

std::vector<RunningProcess> own_processes() {
    std::vector<RunningProcess> result;
    std::error_code error;
    for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        int id = 0;
        struct stat owner {};
        if (std::from_chars(name.data(), name.data() + name.size(), id).ptr !=
                name.data() + name.size() ||
            id == getpid() || stat(at->path().c_str(), &owner) != 0 || owner.st_uid != geteuid())
            continue;
        if (const auto process = running_process(id)) result.push_back(*process);
    }
    return result;
}

bool has_in_environment(int id, const std::string& name_and_value, Clock::time_point deadline) {
    bool waits = true;
    for (;;) {
        const std::string text = '\0' + proc_content(id, "environ");
        if (text.size() > 1 || !waits) return contains(text, '\0' + name_and_value + '\0');
        waits = becomes_a_program(id) && Clock::now() < deadline;
        if (waits) std::this_thread::sleep_for(1ms);
    }
}

std::string command_of(int id) {
    std::string words = proc_content(id, "cmdline");
    while (!words.empty() && words.back() == '\0') words.pop_back();
    std::replace(words.begin(), words.end(), '\0', ' ');
    return words;
}

void signal_process(const RunningProcess& process, int signal) {
    const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process.id, 0U)));
    const bool no_handles = handle.id() < 0 && errno == ENOSYS;
    const auto now = running_process(process.id);
    if (!now || now->start_ticks != process.start_ticks) return;
    if (no_handles) kill(process.id, signal);
    else if (handle.id() >= 0)
        (void)syscall(SYS_pidfd_send_signal, handle.id(), signal, nullptr, 0U);
}

std::vector<RunningProcess> signal_until_gone(const Condemned& condemned, int signal,
                                              milliseconds patience) {
    const auto deadline = Clock::now() + patience;
    std::set<std::pair<int, std::uint64_t>> told;
    for (auto pause = 1ms;; pause = std::min(2 * pause, 20ms)) {
        const std::vector<RunningProcess> left = condemned.living();
        for (const RunningProcess& one : left)
            if (told.emplace(one.id, one.start_ticks).second &&
                !(condemned.heard && condemned.heard(one)))
                signal_process(one, signal);
        const auto remaining = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        if (left.empty() || remaining <= 0ms) return left;
        if (condemned.wait) condemned.wait(std::min(pause, remaining));
        else std::this_thread::sleep_for(std::min(pause, remaining));
    }
}

std::vector<RunningProcess> end_all(const Condemned& condemned, milliseconds patience) {
    std::vector<RunningProcess> left = signal_until_gone(condemned, SIGTERM, patience);
    if (!left.empty())
        left = signal_until_gone(condemned, SIGKILL, std::max<milliseconds>(patience, 100ms));
    return left;
}

namespace {

/// Those with the mark, and those in a group with one of them; `groups` remembers the groups, whose
/// marked ones may go first.
std::vector<RunningProcess> marked(const std::string& mark, std::set<int>& groups) {
    std::vector<RunningProcess> all = own_processes();
    std::erase_if(all, [](const RunningProcess& one) { return one.dead; });
    const auto deadline = Clock::now() + 500ms;
    std::set<int> with_mark;
    for (const RunningProcess& one : all)
        if (has_in_environment(one.id, "SERVETUNE_STUDY=" + mark, deadline)) {
            with_mark.insert(one.id);
            if (one.group != getpgrp()) groups.insert(one.group);
        }
    std::erase_if(all, [&](const RunningProcess& one) {
        return !with_mark.contains(one.id) && !groups.contains(one.group);
    });
    return all;
}

std::vector<Leftover> leftovers_of(const std::vector<RunningProcess>& processes) {
    std::vector<Leftover> result;
    for (const RunningProcess& one : processes)
        result.push_back({one.id, one.group, one.start_ticks, command_of(one.id)});
    return result;
}

}  // namespace

std::vector<Leftover> leftovers(const std::string& mark) {
    std::set<int> groups;
    return mark.empty() ? std::vector<Leftover>{} : leftovers_of(marked(mark, groups));
}

std::vector<Leftover> end_leftovers(const std::string& mark, milliseconds patience) {
    if (mark.empty()) return {};
    std::set<int> groups;
    return leftovers_of(end_all({[&] { return marked(mark, groups); }}, patience));
}

}  // namespace servetune
