// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/behaviour.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace servetune::test {

/// What of a request the answer depends on.
struct CompletionRequest {
    std::uint64_t number = 0;
    bool chat = true;
    bool stream = true;
    bool include_usage = false;
    std::string model = "test";
    std::int64_t prompt_tokens = 0;
    std::int64_t tokens = 0;  ///< of the answer
    Behaviour behaviour{};
};

/// The bytes of one answer, in vLLM's shape (events of about 230 bytes). Appends to buffers;
/// nothing is allocated for a token once these are large enough.
class AnswerWriter {
public:
    explicit AnswerWriter(const CompletionRequest& request);

    void head(std::string& out, std::int64_t content_length = -1) const;
    void role(std::string& out);
    /// One chunk of `tokens` tokens, the sum being `so_far`. Its text holds `stamp`.
    void token(std::string& out, std::int64_t stamp, std::int64_t tokens, std::int64_t so_far);
    /// Finish reason, usage, [DONE]: what still has to come.
    void end(std::string& out);
    void error(std::string& out);
    void half_event(std::string& out);
    /// A comment, as servers send it to keep a connection alive.
    void comment(std::string& out) const;
    /// The end of the last HTTP chunk, where there are chunks.
    void close_body(std::string& out) const;
    /// Head and body of an answer that is not streamed.
    void whole(std::string& out, std::int64_t stamp);

    [[nodiscard]] std::string_view finish_reason() const;

private:
    void event(std::string& out, std::string_view json);
    void frame(std::string& out, std::string_view bytes) const;
    void add_usage(std::int64_t output_tokens);
    void add_text(std::int64_t stamp, std::int64_t tokens);
    [[nodiscard]] std::string shaped(std::string json) const;

    CompletionRequest request_;
    bool chunked_ = true;
    bool finished_ = false;
    std::int64_t chunks_ = 0;
    std::int64_t hidden_ = 0;                    ///< tokens that are counted and not sent
    std::string before_, after_, after_finish_;  ///< of an event: up to the delta, and from it on
    std::string text_open_, text_close_, think_open_, think_close_;
    std::string line_end_;
};

/// When the token was sent, by its text: after " t" the 20 digits of CLOCK_MONOTONIC in
/// nanoseconds. -1: there is none.
std::int64_t stamp_in(std::string_view text);

/// Whole answers without a stream.
std::string plain_answer(int status, std::string_view type, std::string_view body,
                         bool close = false, std::string_view more_headers = {});

}  // namespace servetune::test
