// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/load_generator.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <optional>
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

/// Reads the answer to one request, byte by byte as it comes, into its record. One object serves
/// one request after the other.
class AnswerReader {
public:
    /// What is asked of every answer.
    struct Expected {
        bool stream = true;
        bool usage = true;
        /// The tokens asked for. An answer that the model ended earlier is a shorter one, not a
        /// failed one: its server takes `ignore_eos` and does nothing with it.
        bool exact_length = false;
        bool keep_text = false;  ///< a later turn repeats it
        bool estimate = false;   ///< where the server counts no tokens, estimate them from the text
    };

    /// `parser` is shared by the answers that one thread reads.
    AnswerReader(RequestRecord& record, std::int64_t asked_tokens, Expected expected,
                 simdjson::dom::parser& parser);

    /// The status and content type are known; comes before the first `feed`.
    void begin(int status, std::string_view content_type);
    /// Bytes of the body that one read at `now` brought (several calls may belong to one read).
    /// False: no need to read on, it has failed.
    bool feed(std::string_view bytes, double now, bool same_read);
    /// The answer ended at `now`: by itself, or by `failure` of the connection with `error`.
    void end(double now, RequestEnd failure = RequestEnd::success, std::string_view error = {});

    /// `[DONE]` has come: nothing that matters follows.
    [[nodiscard]] bool complete() const { return done_at_.has_value(); }
    /// When it came.
    [[nodiscard]] std::optional<double> done_at() const { return done_at_; }
    /// When the last event came, or the last bytes of an answer without events. Comments, and
    /// blanks before an answer, only keep a connection alive. 0: nothing came.
    [[nodiscard]] double moved_at() const { return moved_at_; }
    [[nodiscard]] const std::string& text() const { return text_; }
    /// The same with the reasoning and all else; kept where `Expected::estimate` asks for it.
    [[nodiscard]] const std::string& all_text() const { return all_text_; }

private:
    /// What a text of an answer is.
    enum class Part { answer, reasoning, other };

    void read_event(std::string_view data);
    void read_object(const simdjson::dom::object& object, bool whole);
    bool read_choice(const simdjson::dom::object& choice);
    bool read_text(const simdjson::dom::element& value, Part part);
    void note_unread(const simdjson::dom::object& fields);
    void read_finish_reason(const simdjson::dom::object& choice);
    void read_usage(const simdjson::dom::object& usage);
    void read_body();
    void judge();
    [[nodiscard]] bool goes_on_for_ever(std::size_t bytes);
    [[nodiscard]] std::int64_t hidden_tokens() const;
    void fail(RequestEnd end, std::string_view error);

    RequestRecord& record_;
    std::int64_t asked_tokens_;
    Expected expected_;
    simdjson::dom::parser& parser_;
    const std::size_t most_bytes_;   ///< of an answer to so many tokens
    const std::size_t most_events_;  ///< the same
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;  ///< of events
    SseParser events_;
    std::string body_;      ///< of an answer that is no stream of events
    std::string text_;      ///< what a later turn repeats
    std::string all_text_;  ///< with the reasoning
    std::optional<std::int64_t> total_tokens_{}, reasoning_tokens_{};  ///< as `usage` has them
    std::uint32_t reasoning_chunks_ = 0;  ///< chunks that carried reasoning only
    std::uint32_t unread_chunks_ = 0;     ///< events whose only text is in a field not known
    bool answer_in_chunk_ = false;
    bool is_stream_ = false;
    bool failed_ = false;
    std::optional<double> done_at_{};  ///< when `[DONE]` came
    bool chunk_in_read_ = false;
    double now_ = 0;
    double moved_at_ = 0;
};

}  // namespace servetune
