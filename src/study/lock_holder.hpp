// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace servetune {

/// Who writes a study, as `study.lock` says it: for people, and for a start on another machine,
/// where neither this process nor its locks can be seen.
struct LockHolder {
    std::string process;  ///< its number
    std::string host;     ///< the machine's name, of a pod the pod's
    std::string boot;     ///< the machine's boot id; empty: it tells none
    std::string start;    ///< of this run: no other has the same
    std::uint64_t beats = 0;
    bool ended = false;  ///< in order: nothing is written any more

    /// This process, with a new `start`.
    [[nodiscard]] static LockHolder here();
    /// Nothing: an earlier version wrote it, or something else did.
    [[nodiscard]] static std::optional<LockHolder> in(const std::string& text);
    /// The process's number, then the others, each on a line. The same length for each beat, so
    /// that it is written in place.
    [[nodiscard]] std::string text() const;
    /// `process 7 on node-2`.
    [[nodiscard]] std::string name() const;
};

}  // namespace servetune
