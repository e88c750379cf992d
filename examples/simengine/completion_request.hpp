// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialect.hpp"
#include "text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simengine {

/// A prompt's cache that goes from one engine to another: what it is called and where it is.
struct Handover {
    std::uint64_t room = 0;
    std::string host{};
    std::uint16_t port = 0;
};

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
    bool include_usage = false;       ///< of a stream
    bool thinks = false;              ///< asked for: chat_template_kwargs.enable_thinking
    bool cache_prompt = true;         ///< llama.cpp: whether earlier prompts may be used again
    std::optional<Handover> gives{};  ///< its prompt's cache, to an engine that goes on
    std::optional<Handover> takes{};  ///< the same, from the engine that made it
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

}  // namespace simengine
