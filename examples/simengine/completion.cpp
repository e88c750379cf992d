// SPDX-License-Identifier: Apache-2.0
#include "completion.hpp"

#include "servetune/value.hpp"

#include <fmt/format.h>
#include <simdjson.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

namespace simengine {
namespace {

namespace dom = simdjson::dom;

/// What it holds may be asked for until the next call: everything runs in one thread.
dom::parser& parser() {
    thread_local dom::parser one;  // several services in a test, each with a thread
    return one;
}

template <class T>
bool get(const dom::object& object, const char* key, T& value) {
    return object[key].get(value) == simdjson::SUCCESS;
}

bool is_true(const dom::object& object, const char* key) {
    bool value = false;
    return get(object, key, value) && value;
}

std::optional<std::int64_t> integer(const dom::object& object, const char* key) {
    std::int64_t value = 0;
    if (get(object, key, value)) return value;
    return std::nullopt;
}

HttpRefusal refused(std::string message) { return {.message = std::move(message)}; }

std::string first_word(std::string_view text) {
    constexpr std::size_t most = 64;
    return std::string(text.substr(0, std::min(most, text.find(' '))));
}

/// A message's text, alone or in parts of type text.
std::optional<HttpRefusal> add_content(const dom::object& message, std::string& text) {
    std::string_view whole;
    if (get(message, "content", whole)) {
        text = whole;
        return std::nullopt;
    }
    dom::array parts;
    if (!get(message, "content", parts))
        return refused("messages: a content wanted that is a text or a list of parts");
    for (const dom::element part : parts) {
        std::string_view piece;
        if (part["text"].get(piece) != simdjson::SUCCESS)
            return refused("messages: only parts with a text are understood here");
        text += piece;
    }
    return std::nullopt;
}

std::optional<HttpRefusal> add_messages(const dom::object& object, const Tokenizer& tokenizer,
                                        CompletionRequest& request) {
    dom::array messages;
    if (!get(object, "messages", messages) || messages.size() == 0)
        return refused("messages: a list of at least one message wanted");
    for (const dom::element element : messages) {
        dom::object message;
        std::string_view role;
        if (element.get(message) != simdjson::SUCCESS || !get(message, "role", role))
            return refused("messages: each is an object with a role and a content");
        std::string text;
        if (auto wrong = add_content(message, text)) return wrong;
        tokenizer.encode_message(role, text, request.prompt);
        request.label = first_word(text);
    }
    tokenizer.encode_turn("assistant", request.prompt);
    return std::nullopt;
}

std::optional<HttpRefusal> add_ids(const dom::array& ids, std::vector<Token>& tokens) {
    tokens.reserve(ids.size());
    for (const dom::element element : ids) {
        std::int64_t id = 0;
        if (element.get(id) != simdjson::SUCCESS || id < 0 || id > 0x7fffffff)
            return refused("prompt: token ids wanted");
        tokens.push_back(static_cast<Token>(id));
    }
    return std::nullopt;
}

/// A text, token ids, or a list of one of these.
std::optional<HttpRefusal> add_prompt(dom::element prompt, const Tokenizer& tokenizer,
                                      CompletionRequest& request) {
    std::vector<Token>& tokens = request.prompt;
    std::string_view text;
    dom::array list;
    if (prompt.get(list) == simdjson::SUCCESS && list.size() == 1 && !list.at(0).is_int64())
        prompt = list.at(0).value();
    if (prompt.get(text) == simdjson::SUCCESS) {
        tokenizer.encode(text, tokens);
        request.label = first_word(text);
    } else if (prompt.get(list) == simdjson::SUCCESS) {
        if (auto wrong = add_ids(list, tokens)) return wrong;
    } else return refused("prompt: a text or token ids wanted");
    if (tokens.empty()) return refused("prompt: at least one token wanted");
    return std::nullopt;
}

std::optional<HttpRefusal> read_prompt(const dom::object& object, const Tokenizer& tokenizer,
                                       CompletionRequest& request) {
    if (request.chat) return add_messages(object, tokenizer, request);
    dom::element prompt;
    if (!get(object, "prompt", prompt)) return refused("prompt: field required");
    return add_prompt(prompt, tokenizer, request);
}

std::optional<HttpRefusal> parse(std::string_view body, dom::object& object) {
    if (parser().parse(body.data(), body.size()).get(object) != simdjson::SUCCESS)
        return HttpRefusal{400, "the body is no JSON object", "Bad Request"};
    return std::nullopt;
}

constexpr std::string_view event_begin = "data: ";
constexpr std::string_view event_end = "\n\n";

void append_hexadecimal(std::string& out, std::size_t number) {
    std::array<char, 20> digits{};
    out.append(digits.data(),
               std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr);
}

}  // namespace

std::optional<HttpRefusal> read_completion_request(const Dialect& dialect, std::string_view body,
                                                   bool chat, const Tokenizer& tokenizer,
                                                   CompletionRequest& request) {
    dom::object object;
    if (auto wrong = parse(body, object)) return wrong;
    request.chat = chat;
    std::string_view model;
    if (get(object, "model", model)) request.model = model;
    if (auto wrong = read_prompt(object, tokenizer, request)) return wrong;
    request.max_tokens = integer(object, "max_completion_tokens");
    for (const char* key : {"max_tokens", "n_predict"})
        if (!request.max_tokens) request.max_tokens = integer(object, key);
    if (dialect.kind == EngineKind::llama_cpp && request.max_tokens && *request.max_tokens == -1)
        request.max_tokens.reset();  // as many as it likes
    if (request.max_tokens && *request.max_tokens < 1)
        return refused(fmt::format("max_tokens must be at least 1, got {}.", *request.max_tokens));
    if (!chat && !request.max_tokens)
        request.max_tokens = 16;  // of completions, as OpenAI's interface has it
    request.min_tokens = integer(object, "min_tokens").value_or(0);
    request.ignore_eos = is_true(object, "ignore_eos");
    request.stream = is_true(object, "stream");
    bool cache = true;
    if (get(object, "cache_prompt", cache)) request.cache_prompt = cache;
    dom::object options;
    request.include_usage =
        get(object, "stream_options", options) && is_true(options, "include_usage");
    request.thinks =
        get(object, "chat_template_kwargs", options) && is_true(options, "enable_thinking");
    return std::nullopt;
}

std::optional<HttpRefusal> too_long(const Dialect& dialect, const CompletionRequest& request,
                                    std::int64_t context) {
    const auto input = std::int64_t(request.prompt.size());
    const std::int64_t output = request.max_tokens.value_or(1);
    const std::string_view message = input >= context && !dialect.long_prompt.empty()
                                         ? dialect.long_prompt
                                     : input + output > context ? dialect.long_request
                                                                : std::string_view();
    if (message.empty()) return std::nullopt;  // an answer is cut where the context ends
    HttpRefusal result = refused(said(dialect, message,
                                      {{"input", std::to_string(input)},
                                       {"output", std::to_string(output)},
                                       {"total", std::to_string(input + output)},
                                       {"context", std::to_string(context)}}));
    if (dialect.kind == EngineKind::llama_cpp) result.type = "exceed_context_size_error";
    return result;
}

std::string error_json(const Dialect& dialect, const HttpRefusal& refusal) {
    using OrderedJson = nlohmann::ordered_json;
    if (dialect.flat_errors)
        return OrderedJson{{"object", "error"},
                           {"message", refusal.message},
                           {"type", refusal.type},
                           {"param", nullptr},
                           {"code", refusal.status}}
            .dump();
    if (dialect.kind == EngineKind::llama_cpp) {
        const std::string type =
            refusal.type == "BadRequestError" ? "invalid_request_error" : refusal.type;
        return OrderedJson{
            {"error", {{"code", refusal.status}, {"message", refusal.message}, {"type", type}}}}
            .dump();
    }
    return OrderedJson{{"error",
                        {{"message", refusal.message},
                         {"type", refusal.type},
                         {"param", nullptr},
                         {"code", refusal.status}}}}
        .dump();
}

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
