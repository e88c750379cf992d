// SPDX-License-Identifier: Apache-2.0
#include "support/answers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace servetune::test {

namespace {

constexpr std::string_view many_bytes = "\u00e9\u6f22\U0001f600";  // 2, 3 and 4 bytes

void append_number(std::string& out, std::int64_t number) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.append(digits.data(), end);
}

std::string hexadecimal(std::uint64_t number, const char* format) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, static_cast<unsigned long long>(number));
    return text.data();
}

/// Buffers of the thread, so that a token allocates nothing.
struct Scratch {
    std::string json, event;
};
Scratch& scratch() {
    static thread_local Scratch buffers;
    return buffers;
}

/// Spaces after colons and commas that are outside of strings. `json` may be a piece that begins
/// and ends outside of them.
std::string with_spaces(const std::string& json) {
    std::string result;
    bool inside = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        result += json[i];
        if (json[i] == '"' && (i == 0 || json[i - 1] != '\\')) inside = !inside;
        if (!inside && (json[i] == ':' || json[i] == ',')) result += ' ';
    }
    return result;
}

}  // namespace

AnswerWriter::AnswerWriter(const CompletionRequest& request) : request_(request) {
    const Behaviour& behaviour = request_.behaviour;
    chunked_ = request_.stream && !behaviour.content_length && !behaviour.until_close;
    line_end_ = behaviour.crlf ? "\r\n" : behaviour.cr ? "\r" : "\n";
    // A time and an id of the length that vLLM's have: events are as long as real ones.
    const std::string id =
        hexadecimal(request_.number, request_.chat ? "chatcmpl-%032llx" : "cmpl-%032llx");
    before_ = R"({"id":")" + id + R"(","object":")" +
              (request_.chat ? "chat.completion.chunk" : "text_completion") +
              R"(","created":1763700000,"model":)" + nlohmann::json(request_.model).dump() +
              R"(,"choices":[{"index":0,)" + (request_.chat ? R"("delta":{)" : "");
    const std::string middle =
        std::string(request_.chat ? "}" : "") + R"(,"logprobs":null,"finish_reason":)";
    after_ = middle + R"(null,"token_ids":null}]})";
    after_finish_ =
        middle + '"' + std::string(finish_reason()) + R"(","stop_reason":null,"token_ids":null}]})";
    before_ = shaped(before_), after_ = shaped(after_), after_finish_ = shaped(after_finish_);

    const std::string colon = behaviour.spaced_json ? ": " : ":";
    text_open_ = '"' + std::string(request_.chat ? "content" : "text") + '"' + colon + '"';
    text_close_ = "\"";
    think_open_ = text_open_, think_close_ = text_close_;
    if (request_.chat && (behaviour.reasoning || behaviour.reasoning_content))
        think_open_ =
            std::string(behaviour.reasoning ? R"("reasoning")" : R"("reasoning_content")") + colon +
            '"';
    const auto wrapped = [&](bool wanted, const char* open, const char* close) {
        if (request_.chat && wanted) think_open_ = shaped(open), think_close_ = close;
    };
    wrapped(behaviour.tool_calls.has_value(),
            R"("tool_calls":[{"index":0,"function":{"arguments":")", "\"}}]");
    wrapped(behaviour.function_call.has_value(), R"("function_call":{"arguments":")", "\"}");
    wrapped(behaviour.audio.has_value(), R"("audio":{"id":"audio-0","transcript":")", "\"}");
    wrapped(behaviour.parts.has_value(), R"("content":[{"type":"text","text":")", "\"}]");
    wrapped(behaviour.unread.has_value(), R"("thoughts":")", "\"");
    if (behaviour.hidden)
        hidden_ = *behaviour.hidden < 0 ? request_.tokens / 2
                                        : static_cast<std::int64_t>(*behaviour.hidden);
}

std::string AnswerWriter::shaped(std::string json) const {
    return request_.behaviour.spaced_json ? with_spaces(json) : json;
}

std::string_view AnswerWriter::finish_reason() const {
    if (request_.behaviour.abort) return "abort";
    return request_.behaviour.finish_stop || request_.behaviour.fewer ? "stop" : "length";
}

void AnswerWriter::head(std::string& out, std::int64_t content_length) const {
    out += "HTTP/1.1 200 OK\r\nserver: stream_server\r\ncontent-type: ";
    out += request_.stream ? "text/event-stream; charset=utf-8\r\n" : "application/json\r\n";
    if (chunked_) out += "transfer-encoding: chunked\r\n";
    else if (content_length >= 0)
        out += "content-length: ", append_number(out, content_length), out += "\r\n";
    if (request_.behaviour.connection_close || request_.behaviour.until_close)
        out += "connection: close\r\n";
    out += "\r\n";
}

void AnswerWriter::frame(std::string& out, std::string_view bytes) const {
    if (!chunked_) {
        out += bytes;
        return;
    }
    const std::size_t size =
        request_.behaviour.http_chunks
            ? std::max<std::size_t>(1, static_cast<std::size_t>(*request_.behaviour.http_chunks))
            : bytes.size();
    for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
        const std::string_view piece = bytes.substr(0, size);
        std::array<char, 20> digits{};
        out.append(
            digits.data(),
            std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16).ptr);
        out += "\r\n";
        out += piece;
        out += "\r\n";
    }
}

void AnswerWriter::event(std::string& out, std::string_view json) {
    const Behaviour& behaviour = request_.behaviour;
    std::string& event = scratch().event;
    event.clear();
    if (behaviour.ping) event += ": ping", event += line_end_, event += line_end_;
    if (behaviour.fields)
        event += "event: message", event += line_end_,
            event += "id: ", append_number(event, chunks_), event += line_end_;
    const std::string_view name = behaviour.no_space ? "data:" : "data: ";
    event += name;
    const auto comma = behaviour.multiline ? json.find(',') : std::string_view::npos;
    if (comma != std::string_view::npos) {
        event += json.substr(0, comma + 1);
        event += line_end_;
        event += name;
        json.remove_prefix(comma + 1);
    }
    event += json;
    event += line_end_;
    event += line_end_;
    frame(out, event);
}

void AnswerWriter::add_usage(std::int64_t output_tokens) {
    std::string& json = scratch().json;
    const bool spaced = request_.behaviour.spaced_json.has_value();
    const auto add = [&](std::string_view key, std::int64_t number) {
        json += key;
        json += spaced ? ": " : ":";
        append_number(json, number);
    };
    json.pop_back();
    json += spaced ? R"(, "usage": {)" : R"(,"usage":{)";
    add(R"("prompt_tokens")", request_.prompt_tokens);
    add(spaced ? R"(, "total_tokens")" : R"(,"total_tokens")",
        request_.prompt_tokens + output_tokens);
    add(spaced ? R"(, "completion_tokens")" : R"(,"completion_tokens")", output_tokens);
    if (request_.behaviour.cached) {
        json += spaced ? R"(, "prompt_tokens_details": {)" : R"(,"prompt_tokens_details":{)";
        add(R"("cached_tokens")", static_cast<std::int64_t>(*request_.behaviour.cached));
        json += '}';
    }
    if (hidden_ > 0) {
        json +=
            spaced ? R"(, "completion_tokens_details": {)" : R"(,"completion_tokens_details":{)";
        add(R"("reasoning_tokens")", hidden_);
        json += '}';
    }
    json += "}}";
}

void AnswerWriter::role(std::string& out) {
    std::string& json = scratch().json;
    json = before_;
    json += request_.behaviour.spaced_json ? R"("role": "assistant", "content": "")"
                                           : R"("role":"assistant","content":"")";
    json += after_;
    if (request_.behaviour.continuous_usage) add_usage(0);
    event(out, json);
}

void AnswerWriter::add_text(std::int64_t stamp, std::int64_t tokens) {
    std::string& json = scratch().json;
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), stamp).ptr;
    if (request_.behaviour.plain_words) {
        for (std::int64_t i = 0; i < tokens; ++i) json += " and";
        return;
    }
    json += request_.behaviour.utf8 ? many_bytes : std::string_view{};
    json += " t";
    json.append(static_cast<std::size_t>(20 - (end - digits.data())), '0');
    json.append(digits.data(), end);
    for (std::int64_t i = 1; i < tokens; ++i) json += " w";
    if (request_.behaviour.big && chunks_ == 0)
        json.append(static_cast<std::size_t>(*request_.behaviour.big), 'x');
}

void AnswerWriter::token(std::string& out, std::int64_t stamp, std::int64_t tokens,
                         std::int64_t so_far) {
    if (so_far <= hidden_ && so_far < request_.tokens) return;
    const Behaviour& behaviour = request_.behaviour;
    const double thinking = !behaviour.thinking ? 1e18
                            : *behaviour.thinking < 0
                                ? std::floor(static_cast<double>(request_.tokens) / 2)
                                : *behaviour.thinking;
    const bool thinks = static_cast<double>(chunks_) < thinking;
    const std::string& open = thinks ? think_open_ : text_open_;
    const std::string& close = thinks ? think_close_ : text_close_;
    std::string& json = scratch().json;
    for (double i = 0; behaviour.empty_chunks && i < *behaviour.empty_chunks; ++i) {
        json = before_;
        json += open;
        json += close;
        json += after_;
        if (behaviour.continuous_usage) add_usage(so_far - tokens);
        event(out, json);
    }
    const bool finish =
        so_far >= request_.tokens && !behaviour.finish_apart && !behaviour.no_finish;
    json = before_;
    json += open;
    add_text(stamp, tokens);
    json += close;
    json += finish ? after_finish_ : after_;
    if (!behaviour.no_usage &&
        (behaviour.continuous_usage || (finish && behaviour.usage_in_finish)))
        add_usage(so_far);
    finished_ = finished_ || finish;
    event(out, json);
    ++chunks_;
}

void AnswerWriter::end(std::string& out) {
    const Behaviour& behaviour = request_.behaviour;
    std::string& json = scratch().json;
    if (!finished_ && !behaviour.no_finish) {
        json = before_;
        json += text_open_;
        json += text_close_;
        json += after_finish_;
        if (!behaviour.no_usage && (behaviour.usage_in_finish || behaviour.continuous_usage))
            add_usage(request_.tokens);
        event(out, json);
    }
    if (request_.include_usage && !behaviour.no_usage && !behaviour.usage_in_finish) {
        json.assign(before_, 0, before_.find(R"("choices")"));
        json += behaviour.spaced_json ? R"("choices": []})" : R"("choices":[]})";
        add_usage(request_.tokens);
        event(out, json);
    }
    if (!behaviour.no_done) event(out, "[DONE]");
}

void AnswerWriter::error(std::string& out) {
    event(
        out,
        shaped(
            R"({"error":{"message":"the engine died","type":"InternalServerError","param":null,"code":500}})"));
    if (!request_.behaviour.no_done) event(out, "[DONE]");
}

void AnswerWriter::half_event(std::string& out) {
    frame(out, "data: " + before_.substr(0, before_.size() / 2));
}

void AnswerWriter::comment(std::string& out) const { frame(out, ": still here\n\n"); }

void AnswerWriter::close_body(std::string& out) const {
    if (chunked_) out += "0\r\n\r\n";
}

void AnswerWriter::whole(std::string& out, std::int64_t stamp) {
    std::string& json = scratch().json;
    json.clear();
    for (std::int64_t i = 0; i < request_.tokens; ++i, ++chunks_) add_text(stamp, 1);
    const Behaviour& behaviour = request_.behaviour;
    nlohmann::json choice{{"index", 0}, {"logprobs", nullptr}, {"finish_reason", finish_reason()}};
    if (behaviour.no_finish) choice["finish_reason"] = nullptr;
    if (!request_.chat) choice["text"] = json;
    else if (behaviour.reasoning)
        choice["message"] = {{"role", "assistant"}, {"content", nullptr}, {"reasoning", json}};
    else if (behaviour.reasoning_content)
        choice["message"] = {
            {"role", "assistant"}, {"content", nullptr}, {"reasoning_content", json}};
    else choice["message"] = {{"role", "assistant"}, {"content", json}};
    nlohmann::json answer{{"id", hexadecimal(request_.number, "chatcmpl-%032llx")},
                          {"object", request_.chat ? "chat.completion" : "text_completion"},
                          {"created", 1763700000},
                          {"model", request_.model},
                          {"choices", nlohmann::json::array({choice})}};
    if (!behaviour.no_usage) {
        answer["usage"] = {{"prompt_tokens", request_.prompt_tokens},
                           {"completion_tokens", request_.tokens},
                           {"total_tokens", request_.prompt_tokens + request_.tokens}};
        if (behaviour.cached)
            answer["usage"]["prompt_tokens_details"] = {
                {"cached_tokens", static_cast<std::int64_t>(*behaviour.cached)}};
    }
    const std::string body = answer.dump();
    head(out, behaviour.until_close ? -1 : static_cast<std::int64_t>(body.size()));
    out += body;
}

std::int64_t stamp_in(std::string_view text) {
    const auto at = text.find(" t");
    return at == std::string_view::npos ? -1
                                        : std::atoll(std::string(text.substr(at + 2, 20)).c_str());
}

std::string plain_answer(int status, std::string_view type, std::string_view body, bool close,
                         std::string_view more_headers) {
    std::string out = "HTTP/1.1 ";
    append_number(out, status);
    out += status == 200   ? " OK"
           : status == 302 ? " Found"
           : status == 503 ? " Service Unavailable"
           : status == 404 ? " Not Found"
           : status == 400 ? " Bad Request"
                           : " Error";
    out += "\r\nserver: stream_server\r\ncontent-type: ";
    out += type;
    out += "\r\ncontent-length: ";
    append_number(out, static_cast<std::int64_t>(body.size()));
    out += "\r\n";
    out += more_headers;
    if (close) out += "connection: close\r\n";
    out += "\r\n";
    out += body;
    return out;
}

}  // namespace servetune::test
