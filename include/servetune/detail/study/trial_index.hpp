// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace servetune {

/// What a study asks of its trials again and again, kept up to date so that a trial costs O(log n)
/// and not a walk through all of them.
class TrialIndex {
public:
    /// A trial that was asked. One that was told already counts as told.
    void add(const Trial& trial) {
        Asked& asked = asked_[{trial.workload, trial.configuration}];
        ++asked.times;
        if (trial.told()) {
            count(trial);
            return;
        }
        if (!trial.of_search()) return;
        asked.open.insert(trial.id);
        open_.insert(trial.id);
    }
    /// The outcome of a trial that was added.
    void told(const Trial& trial) {
        asked_[{trial.workload, trial.configuration}].open.erase(trial.id);
        open_.erase(trial.id);
        count(trial);
    }

    [[nodiscard]] std::size_t told_in_search() const { return told_in_search_; }
    [[nodiscard]] double longest_seconds() const {
        return longest_seconds_;
    }  ///< 0: no trial was told
    /// Trials of the search that are not told.
    [[nodiscard]] const std::set<std::uint64_t>& open() const { return open_; }
    /// How many trials of a workload (empty: the search) a configuration has had.
    [[nodiscard]] std::uint64_t times(const std::string& workload,
                                      const Configuration& configuration) const {
        const auto found = asked_.find({workload, configuration});
        return found == asked_.end() ? 0 : found->second.times;
    }
    /// The oldest trial of the search with this configuration that is not told.
    [[nodiscard]] std::optional<std::uint64_t> open_trial(
        const Configuration& configuration) const {
        const auto found = asked_.find({"", configuration});
        if (found == asked_.end() || found->second.open.empty()) return std::nullopt;
        return *found->second.open.begin();
    }

private:
    struct Asked {
        std::uint64_t times = 0;
        std::set<std::uint64_t> open{};
    };
    void count(const Trial& trial) {
        if (trial.of_void_check()) return;
        if (trial.of_search()) ++told_in_search_;
        longest_seconds_ = std::max(longest_seconds_, trial.cost_seconds());
    }

    std::map<std::pair<std::string, Configuration>, Asked> asked_{};
    std::set<std::uint64_t> open_{};
    std::size_t told_in_search_ = 0;
    double longest_seconds_ = 0;
};

}  // namespace servetune
