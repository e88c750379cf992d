// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace servetune {

/// What a finish reason says of an answer.
enum class Finish {
    by_itself,  ///< the model ended it: end of sequence, a stop word, a tool call
    at_length,  ///< the limit of tokens ended it
    broken_off  ///< the server gave it up: abort, error, content_filter, and every reason not listed below
};

namespace finish_reason_detail {

inline constexpr std::array<std::pair<std::string_view, Finish>, 13> whole_answers{{
    // OpenAI's, which vLLM, SGLang, llama.cpp, TensorRT-LLM and LMDeploy use.
    {"stop", Finish::by_itself},
    {"length", Finish::at_length},
    {"tool_calls", Finish::by_itself},
    {"function_call", Finish::by_itself},
    // Text Generation Inference, DJL; Together.
    {"eos_token", Finish::by_itself},
    {"stop_sequence", Finish::by_itself},
    {"eos", Finish::by_itself},
    // Anthropic, Cohere, Gemini and gateways to them.
    {"end_turn", Finish::by_itself},
    {"tool_use", Finish::by_itself},
    {"tool_call", Finish::by_itself},
    {"complete", Finish::by_itself},
    {"max_tokens", Finish::at_length},
    // Mistral: the model's context is full.
    {"model_length", Finish::at_length},
}};

}  // namespace finish_reason_detail

/// `STOP` and `tool-calls` are read as `stop` and `tool_calls`.
inline Finish finish_of(std::string_view reason) {
    const auto same = [&](const auto& known) {
        return std::equal(reason.begin(), reason.end(), known.first.begin(), known.first.end(),
                          [](char said, char wanted) {
                              const char lower = said >= 'A' && said <= 'Z'
                                                     ? static_cast<char>(said - 'A' + 'a')
                                                     : said;
                              return (lower == '-' ? '_' : lower) == wanted;
                          });
    };
    const auto& known = finish_reason_detail::whole_answers;
    const auto found = std::find_if(known.begin(), known.end(), same);
    return found == known.end() ? Finish::broken_off : found->second;
}

}  // namespace servetune
