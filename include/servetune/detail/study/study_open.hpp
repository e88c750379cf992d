// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trials that a process leaves open, and what becomes of them. Included by study.hpp.
#include "servetune/study.hpp"

namespace servetune {

inline void Study::start(std::uint64_t id) {
    const double at = options_.now();
    const bool again = began_.contains(id);
    if (again) journal_.interrupted(id, at);
    journal_.started(id, at);
    if (!again) ++trials_[id].unended_starts;
    trials_[id].started_at = at;
    began_[id] = options_.steady();
}

inline void Study::take_up_open_trials() {
    for (const std::uint64_t id : index_.open()) {
        if (in_space(id)) unoffered_.insert(id);
        if (options_.measured_elsewhere) trials_[id].unended_starts = 0;
    }
}

inline AskResult Study::handed_out(AskResult asked) {
    if (asked && asked->started_at) {
        start(asked->id);
        return AskResult(trials_[asked->id]);
    }
    return asked;
}

inline void Study::tell_deadly(Observer* observer) {
    constexpr std::size_t deaths = 2;  // one may be the machine's
    for (const std::uint64_t id : std::set<std::uint64_t>(unoffered_)) {
        if (trials_[id].unended_starts < deaths || began_.contains(id)) continue;
        tell(id, Failure{FailureKind::other,
                         "the process ended during this trial, twice, before it had a result: the "
                         "trial is not started a third time"});
        if (observer != nullptr) observer->told(trials_[id], trials_);
    }
}

inline Study::~Study() {
    for (const auto& [id, at] : began_) try {
            journal_.interrupted(id, options_.now());
        } catch (
            ...) {  // NOLINT(bugprone-empty-catch): a journal that keeps nothing more has said so before
        }
}

}  // namespace servetune
