// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// RFC 3339 with up to nine digits of a second, as nanoseconds since 1970; nothing: it is none.
[[nodiscard]] std::optional<std::int64_t> nanoseconds_of(std::string_view time);

/// The log of a container from several readings of it (`kubectl logs --timestamps`), each line
/// once. A reading may break off anywhere, and the next one begins with lines that were there
/// already. How many is not known, since a node begins a new file when one is large; so lines are
/// told apart by their time and content. Lines of both outputs of a container are stamped by two
/// writers, so that their times may be out of order by a moment: what is that late counts by
/// content.
class StampedLog {
public:
    explicit StampedLog(std::function<void(std::string_view line)> print)
        : print_(std::move(print)) {}

    /// Since when the next reading has to begin, as `--since-time` takes it; empty: from the start.
    [[nodiscard]] std::string since() const;
    /// A new reading begins. What the one before had of an unfinished line is dropped: it comes
    /// again.
    void begin();
    void take(std::string_view bytes);
    /// No reading follows: the unfinished line is one.
    void finish();
    /// The last line without a time: not the engine's but the node's, about its log.
    [[nodiscard]] const std::string& complaint() const { return complaint_; }

private:
    using Key = std::pair<std::int64_t, std::size_t>;  ///< time, and hash of the line
    void take_line(std::string_view line);

    std::function<void(std::string_view)> print_;
    std::string unfinished_{};
    std::string complaint_{};
    std::int64_t latest_ = 0;              ///< of all lines that were printed
    std::map<Key, std::size_t> recent_{};  ///< how often each was printed, of the last moment
    std::map<Key, std::size_t> again_{};   ///< of these, what this reading has not brought yet
    std::int64_t printed_before_ = 0;      ///< all lines before are printed
};

}  // namespace servetune
