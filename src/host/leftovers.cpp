// SPDX-License-Identifier: Apache-2.0
#include "process_table.hpp"
#include "servetune/detail/host/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>

namespace servetune {
namespace {

/// Those with the mark, and those in a group with one of them; `groups` remembers the groups, whose
/// marked ones may go first.
std::vector<RunningProcess> marked(const std::string& mark, std::set<int>& groups) {
    std::vector<RunningProcess> all = own_processes();
    std::erase_if(all, [](const RunningProcess& one) { return one.dead; });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
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

std::vector<Leftover> end_leftovers(const std::string& mark, std::chrono::milliseconds patience) {
    if (mark.empty()) return {};
    std::set<int> groups;
    const Condemned condemned{
        [&] { return marked(mark, groups); },
        [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }};
    if (signal_until_gone(condemned, SIGTERM, patience).empty()) return {};
    return leftovers_of(
        signal_until_gone(condemned, SIGKILL, std::max(patience, std::chrono::milliseconds(100))));
}

}  // namespace servetune
