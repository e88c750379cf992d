// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace servetune {

/// Splits a stream of server-sent events (WHATWG HTML, 9.2) as it comes, wherever the network cut
/// it: lines end with LF, CRLF or CR, an empty line ends an event, a line beginning with a colon is
/// a comment, the `data` lines of an event are joined by LF. Other fields are read and ignored.
/// What follows the last empty line is no event.
class SseParser {
public:
    /// Memory that one event may take; more makes `feed` return false for ever after.
    explicit SseParser(std::size_t most_bytes = 64U << 20U) : most_bytes_(most_bytes) {}

    /// Calls `event(data)` for each event that `bytes` completes; the view ends with the call.
    template <class OnEvent>
    bool feed(std::string_view bytes, const OnEvent& event) {
        while (!bytes.empty() && !too_long_) {
            if (skip_line_feed_ && bytes.front() == '\n') bytes.remove_prefix(1);
            skip_line_feed_ = false;
            const std::size_t end = line_end(bytes);
            if (end == std::string_view::npos) {
                keep(bytes);
                break;
            }
            if (line_.empty()) take_line(bytes.substr(0, end), event);
            else {
                keep(bytes.substr(0, end));
                if (!too_long_) take_line(line_, event);
                line_.clear();
            }
            skip_line_feed_ = bytes[end] == '\r';
            bytes.remove_prefix(end + 1);
        }
        return !too_long_;
    }

private:
    /// The first CR or LF; two searches for one character each are many times faster than one for
    /// either.
    static std::size_t line_end(std::string_view bytes) {
        const std::size_t line_feed = bytes.find('\n');
        return std::min(line_feed, bytes.substr(0, line_feed).find('\r'));
    }

    void keep(std::string_view part) {
        if (line_.size() + data_.size() + part.size() > most_bytes_) too_long_ = true;
        else line_.append(part);
    }

    template <class OnEvent>
    void take_line(std::string_view line, const OnEvent& event) {
        if (first_line_ && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
        first_line_ = false;
        if (line.empty()) {
            if (has_data_) event(std::string_view(data_));
            data_.clear();
            has_data_ = false;
            return;
        }
        if (!line.starts_with("data")) return;
        line.remove_prefix(4);
        if (!line.empty() && line.front() != ':') return;  // another field: `database`
        if (!line.empty()) line.remove_prefix(1);
        if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
        if (data_.size() + line.size() >= most_bytes_) {
            too_long_ = true;
            return;
        }
        if (has_data_) data_ += '\n';
        data_.append(line);
        has_data_ = true;
    }

    std::size_t most_bytes_;
    std::string line_;  ///< the part of a line that came with earlier bytes
    std::string data_;
    bool has_data_ = false;
    bool first_line_ = true;
    bool skip_line_feed_ = false;
    bool too_long_ = false;
};

}  // namespace servetune
