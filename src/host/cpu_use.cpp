// SPDX-License-Identifier: Apache-2.0
#include "cpu_use.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::string file_content(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return rest_of(stream);
}

/// proc(5): "pid (name) state parent group ... utime stime cutime cstime ... start time", the
/// fields 4, 5, 14 to 17 and 22.
std::optional<ProcessUse> use_of(const fs::path& proc, int id) {
    const std::string text = file_content(proc / std::to_string(id) / "stat");
    const std::size_t name_begin = text.find('(');
    const std::size_t name_end = text.rfind(')');
    if (name_begin == npos || name_end == npos || name_end < name_begin) return std::nullopt;
    ProcessUse use{.id = id, .name = text.substr(name_begin + 1, name_end - name_begin - 1)};
    std::istringstream fields(text.substr(name_end + 1));
    std::string skipped;
    std::array<std::uint64_t, 4> ticks{};
    fields >> skipped >> use.parent >> use.group;
    for (int field = 6; field < 14; ++field) fields >> skipped;
    for (std::uint64_t& one : ticks) fields >> one;
    for (int field = 18; field < 22; ++field) fields >> skipped;
    if (!(fields >> use.start_ticks)) return std::nullopt;
    use.ticks = ticks[0] + ticks[1];
    use.children_ticks = ticks[2] + ticks[3];
    return use;
}

bool has_mark(const fs::path& proc, int id, const std::string& mark) {
    const std::string text = '\0' + file_content(proc / std::to_string(id) / "environ") + '\0';
    return contains(text, '\0' + ("SERVETUNE_STUDY=" + mark) + '\0');
}

}  // namespace

std::optional<CpuTimes> cpu_times(const fs::path& proc, const std::vector<int>& cores) {
    std::ifstream stream(proc / "stat");
    CpuTimes all;
    CpuTimes chosen;
    for (std::string line; std::getline(stream, line) && line.starts_with("cpu");) {
        std::istringstream fields(line);
        std::string name;
        std::array<std::uint64_t, 8> ticks{};  // user nice system idle iowait irq softirq steal
        fields >> name;
        for (std::uint64_t& one : ticks)
            if (!(fields >> one)) one = 0;
        const bool total = name == "cpu";
        const bool named =
            any_of(cores, [&](int core) { return name == "cpu" + std::to_string(core); });
        if (!total) ++all.cores;
        for (CpuTimes* times : {total ? &all : nullptr, named ? &chosen : nullptr}) {
            if (times == nullptr) continue;
            times->busy += ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
            times->idle += ticks[3] + ticks[4];
            times->stolen += ticks[7];
        }
        if (named) ++chosen.cores;
    }
    if (!cores.empty()) return chosen.cores == cores.size() ? std::optional(chosen) : std::nullopt;
    return all.cores > 0 ? std::optional(all) : std::nullopt;
}

bool may_run_on(const fs::path& proc, int id, const std::vector<int>& cores) {
    std::ifstream stream(proc / std::to_string(id) / "status");
    static constexpr std::string_view key = "Cpus_allowed_list:";
    for (std::string line; std::getline(stream, line);) {
        if (!line.starts_with(key)) continue;
        for (const std::string& range : parts_of(line.substr(key.size()), ',')) {  // 0-3,8
            int first = 0;
            int last = 0;
            char to = 0;
            std::istringstream ends(range);
            if (!(ends >> first)) continue;
            if (!(ends >> to >> last)) last = first;
            if (any_of(cores, [&](int core) { return first <= core && core <= last; })) return true;
        }
        return false;
    }
    return true;
}

OurProcesses::OurProcesses(fs::path proc, int leader, std::string mark)
    : proc_(std::move(proc)), leader_(leader), self_(getpid()), mark_(std::move(mark)) {}

void OurProcesses::look() {
    last_.clear();
    std::error_code error;
    for (fs::directory_iterator entry(proc_, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        int id = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), id).ptr !=
            name.data() + name.size())
            continue;
        const auto use = use_of(proc_, id);
        if (!use) continue;
        names_[id] = use->name;
        const Identity identity{id, use->start_ticks};
        last_.emplace(identity, *use);
        const bool marked = !mark_.empty() && !ours_.contains(identity) &&
                            asked_for_mark_.insert(identity).second && has_mark(proc_, id, mark_);
        if (id == self_ || (leader_ > 0 && (id == leader_ || use->group == leader_)) || marked)
            ours_.insert(identity);
        if (ours_.contains(identity)) our_ids_.insert(id);
    }
    // Children of ours, until there are no more: of ours that live, for an id may be somebody
    // else's by now.
    std::set<int> parents;
    for (const auto& [identity, use] : last_)
        if (ours_.contains(identity)) parents.insert(use.id);
    for (bool more = true; more;) {
        more = false;
        for (const auto& [identity, use] : last_)
            if (parents.contains(use.parent) && ours_.insert(identity).second) {
                parents.insert(use.id);
                our_ids_.insert(use.id);
                more = true;
            }
    }
}

std::string OurProcesses::name(int id) const {
    const auto* found = entry_in(names_, id);
    return found == nullptr ? "" : *found;
}

std::uint64_t OurProcesses::ticks(bool with_self) const {
    std::uint64_t sum = 0;
    for (const auto& [identity, use] : last_)
        if (ours_.contains(identity) && (with_self || use.id != self_))
            sum += use.ticks + use.children_ticks;
    return sum;
}

std::vector<std::pair<std::string, std::uint64_t>> OurProcesses::greediest(
    const OurProcesses& before) const {
    std::vector<std::pair<std::string, std::uint64_t>> result;
    for (const auto& [identity, use] : last_) {
        const auto* earlier = entry_in(before.last_, identity);
        const std::uint64_t had = earlier == nullptr ? 0 : std::min(use.ticks, earlier->ticks);
        if (!ours_.contains(identity) && use.ticks > had)
            result.emplace_back(use.name, use.ticks - had);
    }
    sort(result, [](const auto& a, const auto& b) { return a.second > b.second; });
    return result;
}

}  // namespace servetune
