// SPDX-License-Identifier: Apache-2.0
#include "answer_reader.hpp"

#include "servetune/load/calibration.hpp"

#include <algorithm>
#include <array>

namespace servetune {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t most_body_bytes = 256U << 20U;
constexpr std::size_t most_error_bytes = 2048;

/// A chunk carries tokens when one of these is not empty: the chunk that only names the role does not.
constexpr std::array token_fields{"content", "reasoning_content", "reasoning", "text"};

std::string_view string_in(const auto& object, const char* key) {
    std::string_view text;
    return object[key].get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// The message of OpenAI's error object, of a plain string, or the beginning of the JSON. Never empty.
std::string message_in(const dom::element& error) {
    std::string_view text;
    if (error.get_string().get(text) != simdjson::SUCCESS) text = string_in(error, "message");
    if (!text.empty()) return std::string(text.substr(0, most_error_bytes));
    return "an error without a message: " + simdjson::minify(error).substr(0, most_error_bytes);
}

}  // namespace

void AnswerReader::begin(int status, std::string_view content_type) {
    record_.http_status = status;
    is_stream_ = status == 200 && content_type.starts_with("text/event-stream");
    if (status == 200 && expected_.stream && !is_stream_ && !content_type.starts_with("application/json"))
        fail(RequestEnd::malformed, "a stream of events wanted, got '" + std::string(content_type.substr(0, 100)) + "'");
}

bool AnswerReader::feed(std::string_view bytes, double now, bool same_read) {
    now_ = now;
    if (!same_read) chunk_in_read_ = false;
    if (failed_) return record_.http_status != 200;
    if (!is_stream_) {
        const std::size_t most = record_.http_status == 200 ? most_body_bytes : 16 * most_error_bytes;
        body_.append(bytes.substr(0, most - std::min(most, body_.size())));
        if (record_.http_status == 200 && body_.size() == most) fail(RequestEnd::malformed, "an answer of more than 256 MiB");
        return !failed_;
    }
    if (!events_.feed(bytes, [&](std::string_view data) { read_event(data); })) fail(RequestEnd::malformed, "an event of more than 64 MiB");
    return !failed_;
}

void AnswerReader::read_event(std::string_view data) {
    if (failed_ || done_at_) return;
    if (data == "[DONE]") {
        done_at_ = now_;
        return;
    }
    dom::object object;
    if (parser_.parse(data.data(), data.size()).get_object().get(object) != simdjson::SUCCESS)
        fail(RequestEnd::malformed, "an event that is no JSON object: " + std::string(data.substr(0, 200)));
    else read_object(object, false);
}

void AnswerReader::read_object(const dom::object& object, bool whole) {
    dom::element error;
    if (object["error"].get(error) == simdjson::SUCCESS && !error.is_null()) return fail(RequestEnd::error_event, message_in(error));
    dom::array choices;
    const bool has_choices = object["choices"].get_array().get(choices) == simdjson::SUCCESS;
    dom::object usage;
    const bool has_usage = object["usage"].get_object().get(usage) == simdjson::SUCCESS;
    if (!has_choices && !has_usage)
        return fail(RequestEnd::malformed, "an object without choices: " + simdjson::minify(object).substr(0, 200));
    if (has_usage) read_usage(usage);
    if (!has_choices || choices.size() == 0) return;
    bool tokens = false;
    for (const dom::element element : choices) {
        dom::object choice;
        if (element.get_object().get(choice) != simdjson::SUCCESS) return fail(RequestEnd::malformed, "a choice that is no object");
        tokens = read_choice(choice) || tokens;
    }
    if (whole) return;
    if (!tokens) {
        ++record_.empty_chunks;
        return;
    }
    ++record_.chunks;
    if (chunk_in_read_) ++record_.coalesced_chunks;
    if (record_.last_token) record_.gaps.push_back(static_cast<float>(now_ - *record_.last_token));
    if (!record_.first_token) record_.first_token = now_;
    record_.last_token = now_;
    chunk_in_read_ = true;
}

bool AnswerReader::read_choice(const dom::object& choice) {
    if (const auto reason = string_in(choice, "finish_reason"); !reason.empty()) record_.finish_reason = reason;
    dom::object part;
    if (choice["delta"].get_object().get(part) != simdjson::SUCCESS && choice["message"].get_object().get(part) != simdjson::SUCCESS)
        part = choice;  // completions have the text beside the reason
    bool tokens = false;
    for (const char* field : token_fields) {
        const std::string_view text = string_in(part, field);
        if (text.empty()) continue;
        tokens = true;
        if (expected_.estimate) all_text_.append(text);
        if (expected_.keep_text && (field == token_fields.front() || field == token_fields.back())) text_.append(text);
    }
    dom::array calls;
    return tokens || (part["tool_calls"].get_array().get(calls) == simdjson::SUCCESS && calls.size() > 0);
}

void AnswerReader::read_usage(const dom::object& usage) {
    const auto count = [](const auto& found, std::optional<std::int64_t>& into) {
        constexpr std::int64_t most = std::int64_t{1} << 40;  // sums of such counts stay within 64 bits
        std::int64_t number = 0;
        if (found.get_int64().get(number) == simdjson::SUCCESS && number >= 0 && number <= most) into = number;
    };
    count(usage["prompt_tokens"], record_.input_tokens);
    count(usage["completion_tokens"], record_.output_tokens);
    count(usage["prompt_tokens_details"]["cached_tokens"], record_.cached_tokens);
}

void AnswerReader::read_body() {
    dom::element element;
    const bool json = parser_.parse(body_.data(), body_.size()).get(element) == simdjson::SUCCESS;
    dom::object object;
    const bool is_object = json && element.get_object().get(object) == simdjson::SUCCESS;
    if (record_.http_status != 200) {
        dom::element error;
        const bool said = is_object && object["error"].get(error) == simdjson::SUCCESS;
        fail(RequestEnd::http_error, "status " + std::to_string(record_.http_status) +
                                         (body_.empty() ? "" : ": " + (said ? message_in(error) : body_.substr(0, most_error_bytes))));
    } else if (!is_object) fail(RequestEnd::malformed, "an answer that is no JSON object: " + body_.substr(0, 200));
    else {
        read_object(object, true);
        if (expected_.stream && !failed_) fail(RequestEnd::malformed, "a stream of events wanted, got one whole answer");
    }
}

void AnswerReader::fail(RequestEnd end, std::string_view error) {
    if (failed_) return;
    failed_ = true;
    record_.end = end;
    record_.error = error;
}

void AnswerReader::end(double now, RequestEnd failure, std::string_view error) {
    now_ = now;
    record_.done = done_at_.value_or(now);
    // An answer that has said [DONE] is whole, however the connection ends after it.
    if (failure != RequestEnd::success && !complete()) fail(failure, error);
    if (!failed_ && !is_stream_) read_body();
    if (failed_) return;
    if (!is_stream_) record_.last_token = now;
    if (expected_.estimate && !record_.output_tokens) record_.estimated_tokens = estimated_tokens(all_text_);
    if (record_.finish_reason.empty()) fail(RequestEnd::truncated, "the answer ended without a finish reason");
    else if (expected_.usage && !record_.output_tokens) fail(RequestEnd::no_usage, "the answer does not say how many tokens it has");
    else if (expected_.exact_length && record_.output_tokens && *record_.output_tokens != asked_tokens_)
        fail(RequestEnd::wrong_length, "asked for " + std::to_string(asked_tokens_) + " tokens to the end, got " +
                                           std::to_string(*record_.output_tokens) + " (" + record_.finish_reason + ")");
    else record_.end = RequestEnd::success;
}

}  // namespace servetune
