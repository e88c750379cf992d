// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the clients have in common that stand for a trial in a cluster (`autotune launch-client`).

#include "base/descriptor.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace servetune {

/// Lines of such a client's own begin so; all others are the engine's.
inline constexpr std::string_view stand_in_says = "servetune: launch-client: ";
/// Its exit code where it could not do its work (as that of `podman run`).
inline constexpr int stand_in_failed = 125;
/// Its exit code where it was told to end before the engine had an end of its own: 128 + SIGTERM.
inline constexpr int stand_in_ended = 143;
/// Its parent says so often that it still wants the trial.
inline constexpr std::chrono::seconds stand_in_beat{5};
/// A cluster that is being restarted answers within this.
inline constexpr std::chrono::seconds cluster_patience{60};

/// Prints one on standard error.
void stand_in_speaks(const std::string& words);

/// Whether somebody still wants the trial: a first line, then a line feed from time to time on
/// standard input (ProcessOptions::beats), and no TERM, INT or HUP. The signals are blocked from
/// here on.
class Wanted {
public:
    /// Without a byte for so long nobody waits for the trial. The figure is ssh's
    /// (docs/decisions/010-other-machines.md).
    static constexpr std::chrono::seconds usual_silence{30};

    explicit Wanted(std::chrono::duration<double> silent_within = usual_silence);

    /// The first line; nothing where none comes.
    std::optional<std::string> line();
    void silent_within(std::chrono::duration<double> time) { silent_within_ = time; }

    /// Looks; once it is false it stays so.
    bool still();
    /// Waits so long, less where nobody wants it any more.
    bool still_after(std::chrono::milliseconds time);
    /// Whether the one who started this is gone, not only tired of it.
    [[nodiscard]] bool alone() const {
        return input_ended_ || std::chrono::steady_clock::now() - last_ > silent_within_;
    }

    /// To be polled; -1: it has ended.
    [[nodiscard]] int input() const;
    [[nodiscard]] int signals() const { return wanted_ ? signals_.id() : -1; }

private:
    std::chrono::duration<double> silent_within_;
    Descriptor signals_{};
    std::string heard_{};  ///< until the first line is whole
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    bool wanted_ = true, input_ended_ = false, has_line_ = false;
};

}  // namespace servetune
