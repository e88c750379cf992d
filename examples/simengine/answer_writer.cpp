// SPDX-License-Identifier: Apache-2.0
#include "answer_writer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

namespace simengine {
namespace {

constexpr std::string_view event_begin = "data: ";
constexpr std::string_view event_end = "\n\n";

void append_hexadecimal(std::string& out, std::size_t number) {
    std::array<char, 20> digits{};
    out.append(digits.data(),
               std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr);
}

}  // namespace

AnswerWriter::AnswerWriter(const Dialect& dialect, AnswerFacts facts)
    : dialect_(dialect), facts_(std::move(facts)), text_(facts_.text_key) {
    const bool chat = facts_.chat;
    head_ = fmt::format(R"({{"id":"{}-{:032x}","object":"{}","created":{},"model":{},"choices":[)",
                        chat ? "chatcmpl" : "cmpl", facts_.number,
                        !chat           ? "text_completion"
                        : facts_.stream ? "chat.completion.chunk"
                                        : "chat.completion",
                        std::time(nullptr), nlohmann::json(facts_.model).dump());
    const std::string opened =
        std::string(event_begin) + head_ + R"({"index":0,)" + (chat ? R"("delta":{)" : "");
    before_ = opened + (chat ? R"("content":")" : R"("text":")");
    before_unread_ = opened + R"("thoughts":")";
    before_thought_ = opened + '"' + std::string(dialect_.reasoning) + R"(":")";
    const std::string closed =
        std::string(chat ? "\"}" : "\"") + R"(,"logprobs":null,"finish_reason":)";
    after_ = closed + "null}]}";
    after_last_ = dialect_.finish_apart ? after_
                                        : closed + '"' + std::string(facts_.finish_reason) +
                                              R"(","stop_reason":null}]})";
    if (facts_.faults.wrong_json) after_ = after_last_ = closed;
}

void AnswerWriter::event(std::string& out, std::string_view before, std::string_view text,
                         std::string_view after) const {
    append_hexadecimal(out, before.size() + text.size() + after.size() + event_end.size());
    out += "\r\n";
    out += before;
    out += text;
    out += after;
    out += event_end;
    out += "\r\n";
}

void AnswerWriter::tokens(std::string& out, std::int64_t tokens, std::int64_t cached_tokens) {
    if (sent_ == 0) cached_tokens_ = cached_tokens;
    const std::int64_t until = std::min(facts_.output_tokens, sent_ + tokens);
    const std::int64_t from = std::max(sent_, std::min(facts_.faults.hidden_tokens, until));
    if (until > from && !std::exchange(begun_, true) && facts_.chat)
        event(
            out, event_begin, head_,
            R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})");
    const std::int64_t thoughts_end = facts_.chat ? std::clamp(thoughts(), from, until) : from;
    if (thoughts_end > from)
        event(out, before_thought_, text(from, thoughts_end),
              thoughts_end == facts_.output_tokens ? after_last_ : after_);
    const std::string& before =
        thoughts_end < facts_.faults.unread_tokens ? before_unread_ : before_;
    if (until == thoughts_end + 1)
        event(out, before, text_.token(thoughts_end),
              until == facts_.output_tokens ? after_last_ : after_);
    else if (until > thoughts_end)
        event(out, before, text(thoughts_end, until),
              until == facts_.output_tokens ? after_last_ : after_);
    sent_ = until;
    if (ended()) end(out);
}

/// What comes behind the last token: the reason, the usage, the end of the stream and of the HTTP
/// body.
void AnswerWriter::end(std::string& out) {
    const std::string reason =
        fmt::format(R"("logprobs":null,"finish_reason":"{}"}}])", facts_.finish_reason);
    const bool usage_here = dialect_.usage_in_finish && !facts_.chat;
    if (dialect_.finish_apart)
        event(
            out, event_begin,
            head_ + R"({"index":0,)" + (facts_.chat ? R"("delta":{},)" : R"("text":"",)") + reason,
            usage_here && !facts_.faults.no_usage ? ",\"usage\":" + usage_json() + "}" : "}");
    if ((facts_.usage || facts_.faults.usage_unasked) && !facts_.faults.no_usage && !usage_here)
        event(out, event_begin, head_, "],\"usage\":" + usage_json() + "}");
    event(out, event_begin, "[DONE]", "");
    out += "0\r\n\r\n";
}

std::string AnswerWriter::text(std::int64_t from, std::int64_t to) const {
    std::string result;
    for (std::int64_t i = from; i < to; ++i) result += text_.token(i);
    return result;
}

std::string AnswerWriter::usage_json() const {
    const std::int64_t share = facts_.faults.bad_usage ? 2 : 1;
    const std::int64_t input = facts_.prompt_tokens / share, output = facts_.output_tokens / share;
    return fmt::format(
        R"({{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{},"prompt_tokens_details":{}{}}})",
        input, input + output, output,
        facts_.says_cached ? fmt::format(R"({{"cached_tokens":{}}})", cached_tokens_) : "null",
        facts_.faults.hidden_tokens > 0
            ? fmt::format(R"(,"completion_tokens_details":{{"reasoning_tokens":{}}})",
                          facts_.faults.hidden_tokens)
            : "");
}

std::string AnswerWriter::whole(std::int64_t cached_tokens) const {
    AnswerWriter told = *this;
    told.cached_tokens_ = cached_tokens;
    const std::int64_t spoken_from = facts_.chat ? thoughts() : 0;
    const std::string said = '"' + text(spoken_from, facts_.output_tokens) + '"';
    std::string choice;
    if (facts_.chat)
        choice = fmt::format(
            R"({{"index":0,"message":{{"role":"assistant","content":{},"{}":{}}},)", said,
            dialect_.reasoning, spoken_from > 0 ? '"' + text(0, spoken_from) + '"' : "null");
    else choice = fmt::format(R"({{"index":0,"text":{},)", said);
    if (facts_.faults.wrong_json) return head_ + choice;
    return head_ + choice +
           fmt::format(R"("logprobs":null,"finish_reason":"{}","stop_reason":null}}]{}}})",
                       facts_.finish_reason,
                       facts_.faults.no_usage ? "" : ",\"usage\":" + told.usage_json());
}

}  // namespace simengine
