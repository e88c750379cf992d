// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// What cores have done since boot, in clock ticks (proc(5), /proc/stat).
struct CpuTimes {
    std::uint64_t busy = 0;    ///< user, nice, system, interrupts; guests are in user already
    std::uint64_t idle = 0;    ///< with waiting for disks
    std::uint64_t stolen = 0;  ///< had work and was not run by the hypervisor
    std::size_t cores = 0;
};

/// Of these cores, all where none is named; nothing where `proc` does not tell of one of them.
std::optional<CpuTimes> cpu_times(const std::filesystem::path& proc, const std::vector<int>& cores);
/// Whether this process may run on one of them; true where `proc` does not tell.
bool may_run_on(const std::filesystem::path& proc, int id, const std::vector<int>& cores);

/// A process and its CPU time.
struct ProcessUse {
    int id = 0, parent = 0, group = 0;
    std::uint64_t start_ticks = 0;     ///< with the id its identity
    std::uint64_t ticks = 0;           ///< its own
    std::uint64_t children_ticks = 0;  ///< of those that it has waited for, and of theirs
    std::string name{};
};

/// Which of a machine's processes are ours: this one, the group of `leader`, all that descends from
/// these or carries `mark`. Who was ours once stays ours, wherever it goes.
class OurProcesses {
public:
    OurProcesses(std::filesystem::path proc, int leader, std::string mark);
    void look();
    [[nodiscard]] bool ours(int id) const { return our_ids_.contains(id); }
    [[nodiscard]] bool seen(int id) const {
        return names_.contains(id);
    }  ///< at any look, ours or not
    [[nodiscard]] std::string name(int id) const;
    /// Of all ours at the last look, with what has ended and was waited for; this process left out
    /// where not `with_self`.
    [[nodiscard]] std::uint64_t ticks(bool with_self) const;
    /// The others that have had most since the look that `before` remembers: name and ticks, most
    /// first.
    [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> greediest(
        const OurProcesses& before) const;

private:
    using Identity = std::pair<int, std::uint64_t>;
    std::filesystem::path proc_;
    int leader_;
    int self_;
    std::string mark_;
    std::map<Identity, ProcessUse> last_{};
    std::set<Identity> ours_{}, asked_for_mark_{};
    std::set<int> our_ids_{};
    std::map<int, std::string> names_{};
};

}  // namespace servetune
