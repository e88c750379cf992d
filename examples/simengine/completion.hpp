// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "dialect.hpp"
#include "text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simengine {

/// What a client asks for.
struct CompletionRequest {
    bool chat = false;
    std::string model{};
    std::vector<Token> prompt{};
    std::string label{};  ///< the first word of the prompt's last text
    std::optional<std::int64_t> max_tokens{};
    std::int64_t min_tokens = 0;
    bool ignore_eos = false;
    bool stream = false;
    bool include_usage = false;  ///< of a stream
    bool thinks = false;         ///< asked for: chat_template_kwargs.enable_thinking
    bool cache_prompt = true;    ///< llama.cpp: whether earlier prompts may be used again
};

/// An answer other than 200.
struct HttpRefusal {
    int status = 400;
    std::string message{};
    std::string type = "BadRequestError";
};

/// Reads the body of a request. Returns what is wrong with it, or nothing.
std::optional<HttpRefusal> read_completion_request(const Dialect& dialect, std::string_view body,
                                                   bool chat, const Tokenizer& tokenizer,
                                                   CompletionRequest& request);

/// Why it is too long for `context` tokens: in the engine's words; nothing when it fits. `output`
/// tokens are those asked for, or 0.
std::optional<HttpRefusal> too_long(const Dialect& dialect, const CompletionRequest& request,
                                    std::int64_t context);

/// The body that goes with it.
std::string error_json(const Dialect& dialect, const HttpRefusal& refusal);

/// What an answer says beside its text.
struct AnswerFacts {
    bool chat = false;
    bool stream = false;
    bool usage = true;  ///< whole answers always have it
    bool thinks = false;
    std::string model{};
    std::uint64_t number = 0;  ///< of the request: its id in the answer
    std::uint64_t text_key = 0;
    std::int64_t prompt_tokens = 0;
    std::int64_t output_tokens = 0;
    std::string_view finish_reason = "length";
    bool says_cached = true;
    AnswerFaults faults{};
};

/// Writes the answer to one request in the engine's shape: whole, or event by event, each event
/// framed as an HTTP chunk. What is the same in all events is made once; an event costs a few
/// copies.
class AnswerWriter {
public:
    AnswerWriter(const Dialect& dialect, AnswerFacts facts);

    /// Appends the events that the next `tokens` tokens are told in; with the first ones what comes
    /// before, with the last ones what ends the stream. `cached_tokens` counts only with the first.
    void tokens(std::string& out, std::int64_t tokens, std::int64_t cached_tokens);
    [[nodiscard]] std::int64_t prompt_tokens() const { return facts_.prompt_tokens; }
    [[nodiscard]] bool ended() const { return sent_ >= facts_.output_tokens; }
    /// The body of a whole answer.
    [[nodiscard]] std::string whole(std::int64_t cached_tokens) const;

private:
    void event(std::string& out, std::string_view before, std::string_view text,
               std::string_view after) const;
    void end(std::string& out);
    [[nodiscard]] std::string usage_json() const;
    /// Tokens of the answer that are thoughts: the first third.
    [[nodiscard]] std::int64_t thoughts() const {
        return facts_.thinks ? facts_.output_tokens / 3 : 0;
    }
    [[nodiscard]] std::string text(std::int64_t from, std::int64_t to) const;

    const Dialect& dialect_;
    AnswerFacts facts_;
    AnswerText text_;
    std::string head_{};    ///< up to the choices' list: `{"id":...,"choices":[`
    std::string before_{};  ///< up to the text, as an event
    std::string before_thought_{};
    std::string before_unread_{};
    std::string after_{};       ///< behind the text
    std::string after_last_{};  ///< behind the last text
    std::int64_t sent_ = 0;
    bool begun_ = false;
    std::int64_t cached_tokens_ = 0;
};

}  // namespace simengine
