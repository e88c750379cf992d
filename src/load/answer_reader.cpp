// SPDX-License-Identifier: Apache-2.0
#include "answer_reader.hpp"

#include "base/text.hpp"
#include "request_body.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/calibration.hpp"
#include "servetune/error.hpp"

#include <array>

namespace servetune {
namespace {

namespace dom = simdjson::dom;
using namespace std::string_view_literals;

/// What a finish reason says of an answer.
enum class Finish {
    by_itself,  ///< the model ended it: end of sequence, a stop word, a tool call
    at_length,  ///< the limit of tokens ended it
    /// the server gave it up: abort, error, content_filter, and every reason not listed below
    broken_off
};

constexpr std::array<std::pair<std::string_view, Finish>, 13> whole_answers{{
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

/// `STOP` and `tool-calls` are read as `stop` and `tool_calls`.
Finish finish_of(std::string_view reason) {
    const auto same = [&](const auto& known) {
        return std::equal(reason.begin(), reason.end(), known.first.begin(), known.first.end(),
                          [](char said, char wanted) {
                              const char lower = said >= 'A' && said <= 'Z'
                                                     ? static_cast<char>(said - 'A' + 'a')
                                                     : said;
                              return (lower == '-' ? '_' : lower) == wanted;
                          });
    };
    const auto found = find_if(whole_answers, same);
    return found == whole_answers.end() ? Finish::broken_off : found->second;
}

constexpr std::size_t most_error_bytes = 2048;
constexpr std::size_t most_name_bytes = 100;  ///< of a finish reason, of a field

// How long an answer may be, by the tokens that were asked for. An event is a token; some servers
// send a few without text beside them, or one for each of several answers. An event has some
// hundred bytes, with the most probable tokens some thousand; before it a server may repeat the
// prompt.
constexpr std::size_t most_asked = 65536;  ///< taken for "as many as the model likes"
constexpr std::size_t events_of_a_token = 16;
constexpr std::size_t other_events = 1024;
constexpr std::size_t bytes_of_a_token = 64U << 10U;
constexpr std::size_t other_bytes = 16U << 20U;
constexpr std::size_t most_whole_bytes = 64U
                                         << 20U;  ///< of an event, or of an answer that comes whole
std::size_t tokens_at_most(std::int64_t asked) {
    return asked > 0 ? std::size_t(asked) : most_asked;
}

/// Fields that hold the text of an answer, in OpenAI's interface and in those made like it. A chunk
/// carries tokens when one of them holds text: the chunk that only names the role does not.
constexpr std::array answer_fields{"content"sv, "text"sv};
constexpr std::array reasoning_fields{"reasoning"sv, "reasoning_content"sv, "reasoning_text"sv,
                                      "reasoning_details"sv, "thinking"sv};
constexpr std::array other_fields{"refusal"sv, "tool_calls"sv, "function_call"sv, "audio"sv};
/// Fields that stand beside the text and are none.
constexpr std::array fields_without_text{"role"sv,
                                         "id"sv,
                                         "index"sv,
                                         "type"sv,
                                         "name"sv,
                                         "object"sv,
                                         "logprobs"sv,
                                         "stop_reason"sv,
                                         "delta"sv,
                                         "status"sv,
                                         "message"sv,
                                         "format"sv,
                                         "token_ids"sv,
                                         "finish_reason"sv,
                                         "matched_stop"sv,
                                         "signature"sv,
                                         "annotations"sv,
                                         "expires_at"sv,
                                         "tool_call_id"sv,
                                         "prompt_token_ids"sv,
                                         "prompt_logprobs"sv,
                                         "native_finish_reason"sv,
                                         "content_filter_results"sv};
/// Status reports in a field of their own are rare; text is in every event.
constexpr double most_unread = 0.05;
/// Reasoning counted in chunks is off by less: a chunk of reasoning holds about as many tokens as
/// one of the answer.
constexpr double reasoning_is_hidden = 1.5;

template <std::size_t Size>
bool is_one_of(const std::array<std::string_view, Size>& names, std::string_view name) {
    return contains(names, name);
}

std::string_view string_in(const auto& object, const char* key) {
    std::string_view text;
    return object[key].get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// The message of OpenAI's error object, of a plain string, or the beginning of the JSON. Never
/// empty.
std::string message_in(const dom::element& error) {
    std::string_view text;
    if (error.get_string().get(text) != simdjson::SUCCESS) text = string_in(error, "message");
    if (!text.empty()) return std::string(text.substr(0, most_error_bytes));
    return "an error without a message: " + simdjson::minify(error).substr(0, most_error_bytes);
}

/// Whether a string that is not empty is in a value.
bool has_text(const dom::element& value) {
    if (std::string_view text; value.get_string().get(text) == simdjson::SUCCESS)
        return !text.empty();
    if (dom::array list; value.get_array().get(list) == simdjson::SUCCESS)
        return any_of(list, has_text);
    if (dom::object object; value.get_object().get(object) == simdjson::SUCCESS)
        return any_of(object, [](const auto& field) { return has_text(field.value); });
    return false;
}

}  // namespace

AnswerReader::AnswerReader(RequestRecord& record, std::int64_t asked_tokens, Expected expected,
                           dom::parser& parser)
    : record_(record),
      asked_tokens_(asked_tokens),
      expected_(expected),
      parser_(parser),
      most_bytes_(other_bytes + bytes_of_a_token * tokens_at_most(asked_tokens)),
      most_events_(other_events + events_of_a_token * tokens_at_most(asked_tokens)),
      events_(std::min(most_bytes_, most_whole_bytes)) {}

void AnswerReader::begin(int status, std::string_view content_type) {
    record_.http_status = status;
    is_stream_ = status == 200 && content_type.starts_with("text/event-stream");
    if (status == 200 && expected_.stream && !is_stream_ &&
        !content_type.starts_with("application/json"))
        fail(RequestEnd::malformed,
             "a stream of events wanted, got '" + std::string(content_type.substr(0, 100)) + "'");
}

bool AnswerReader::feed(std::string_view bytes, double now, bool same_read) {
    now_ = now;
    if (!same_read) chunk_in_read_ = false;
    if (goes_on_for_ever(bytes.size())) return false;
    if (failed_) return record_.http_status != 200;
    if (!is_stream_) {
        const std::size_t most = record_.http_status == 200
                                     ? std::min(most_bytes_, most_whole_bytes)
                                     : 16 * most_error_bytes;
        body_.append(bytes.substr(0, most - std::min(most, body_.size())));
        if (bytes.find_first_not_of(" \t\r\n") != npos) moved_at_ = now;
        if (record_.http_status == 200 && body_.size() == most)
            fail(RequestEnd::malformed,
                 "an answer of more than " + std::to_string(most >> 20U) + " MiB");
        return !failed_;
    }
    if (!events_.feed(bytes, [&](std::string_view data) { read_event(data); }))
        fail(RequestEnd::malformed,
             "an event of more than " +
                 std::to_string(std::min(most_bytes_, most_whole_bytes) >> 20U) + " MiB");
    return !failed_;
}

/// Whether it has become longer than any answer to so many tokens; then it has failed.
bool AnswerReader::goes_on_for_ever(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= most_bytes_ && count_ <= most_events_) return false;
    if (record_.http_status != 200) read_body();  // what it says is more than that it does not end
    const std::string asked = asked_tokens_ > 0
                                  ? std::to_string(asked_tokens_) + " tokens were asked for"
                                  : "no number of tokens was asked for";
    fail(RequestEnd::malformed, "the answer does not end: " + std::to_string(count_) +
                                    " events and " + std::to_string(bytes_ >> 20U) +
                                    " MiB have come, and " + asked);
    return true;
}

void AnswerReader::read_event(std::string_view data) {
    if (failed_ || done_at_) return;
    moved_at_ = now_;
    if (++count_ > most_events_) {
        (void)goes_on_for_ever(0);
        return;
    }
    if (data == "[DONE]") {
        done_at_ = now_;
        return;
    }
    dom::object object;
    if (parser_.parse(data.data(), data.size()).get_object().get(object) != simdjson::SUCCESS)
        fail(RequestEnd::malformed,
             "an event that is no JSON object: " + std::string(data.substr(0, 200)));
    else read_object(object, false);
}

void AnswerReader::read_object(const dom::object& object, bool whole) {
    dom::element error;
    if (object["error"].get(error) == simdjson::SUCCESS && !error.is_null())
        return fail(RequestEnd::error_event, message_in(error));
    dom::array choices;
    const bool has_choices = object["choices"].get_array().get(choices) == simdjson::SUCCESS;
    dom::object usage;
    const bool has_usage = object["usage"].get_object().get(usage) == simdjson::SUCCESS;
    if (!has_choices && !has_usage)
        return fail(RequestEnd::malformed,
                    "an object without choices: " + simdjson::minify(object).substr(0, 200));
    if (has_usage) read_usage(usage);
    if (!has_choices || choices.size() == 0) return;
    bool tokens = false;
    answer_in_chunk_ = false;
    for (const dom::element element : choices) {
        dom::object choice;
        if (element.get_object().get(choice) != simdjson::SUCCESS)
            return fail(RequestEnd::malformed, "a choice that is no object");
        tokens = read_choice(choice) || tokens;
    }
    if (whole) return;
    if (!tokens) {
        ++record_.empty_chunks;
        return;
    }
    ++record_.chunks;
    reasoning_chunks_ += answer_in_chunk_ ? 0 : 1;
    if (chunk_in_read_) ++record_.coalesced_chunks;
    if (record_.last_token) record_.gaps.push_back(static_cast<float>(now_ - *record_.last_token));
    if (!record_.first_token) record_.first_token = now_;
    record_.last_token = now_;
    chunk_in_read_ = true;
}

/// Of several answers to one request, one that was broken off decides.
void AnswerReader::read_finish_reason(const dom::object& choice) {
    std::string_view reason = string_in(choice, "finish_reason");
    dom::object object;
    if (choice["finish_reason"].get_object().get(object) == simdjson::SUCCESS)
        reason = string_in(object, "type");
    if (reason.empty()) return;
    if (record_.finish_reason.empty() || finish_of(record_.finish_reason) != Finish::broken_off)
        record_.finish_reason = reason.substr(0, most_name_bytes);
}

bool AnswerReader::read_choice(const dom::object& choice) {
    read_finish_reason(choice);
    dom::object fields;
    if (choice["delta"].get_object().get(fields) != simdjson::SUCCESS &&
        choice["message"].get_object().get(fields) != simdjson::SUCCESS)
        fields = choice;  // completions have the text beside the reason
    bool tokens = false;
    for (const auto& [name, value] : fields) {
        if (is_one_of(answer_fields, name)) tokens = read_text(value, Part::answer) || tokens;
        else if (is_one_of(reasoning_fields, name))
            tokens = read_text(value, Part::reasoning) || tokens;
        else if (is_one_of(other_fields, name)) tokens = read_text(value, Part::other) || tokens;
    }
    if (!tokens) note_unread(fields);
    return tokens;
}

/// Of a choice without text: the field that holds one all the same.
void AnswerReader::note_unread(const dom::object& fields) {
    for (const auto& [name, value] : fields) {
        if (is_one_of(answer_fields, name) || is_one_of(reasoning_fields, name) ||
            is_one_of(other_fields, name))
            continue;
        if (is_one_of(fields_without_text, name) || !has_text(value)) continue;
        ++unread_chunks_;
        record_.unread_field = name.substr(0, most_name_bytes);
        return;
    }
}

/// Reads the text in a value: a string, a list of parts, an object around it. False: there is none.
bool AnswerReader::read_text(const dom::element& value, Part part) {
    std::string_view text;
    if (value.get_string().get(text) == simdjson::SUCCESS) {
        if (text.empty()) return false;
        if (expected_.estimate) all_text_.append(text);
        if (expected_.keep_text && part == Part::answer) text_.append(text);
        answer_in_chunk_ = answer_in_chunk_ || part != Part::reasoning;
        return true;
    }
    bool found = false;
    if (dom::array list; value.get_array().get(list) == simdjson::SUCCESS)
        for (const dom::element item : list) found = read_text(item, part) || found;
    if (dom::object object; value.get_object().get(object) == simdjson::SUCCESS)
        for (const auto& [name, inner] : object) {
            if (name == "data")
                found = (part == Part::other && has_text(inner)) ||
                        found;  // sound; encrypted where it is reasoning
            else if (name == "name" || !is_one_of(fields_without_text, name))
                found =
                    read_text(inner, is_one_of(reasoning_fields, name) ? Part::reasoning : part) ||
                    found;
        }
    return found;
}

void AnswerReader::read_usage(const dom::object& usage) {
    const auto count = [](const auto& found, std::optional<std::int64_t>& into) {
        constexpr std::int64_t most = std::int64_t{1}
                                      << 40;  // sums of such counts stay within 64 bits
        std::int64_t number = 0;
        if (found.get_int64().get(number) == simdjson::SUCCESS && number >= 0 && number <= most)
            into = number;
    };
    count(usage["prompt_tokens"], record_.input_tokens);
    count(usage["completion_tokens"], record_.output_tokens);
    count(usage["prompt_tokens_details"]["cached_tokens"], record_.cached_tokens);
    count(usage["total_tokens"], total_tokens_);
    count(usage["reasoning_tokens"], reasoning_tokens_);
    count(usage["completion_tokens_details"]["reasoning_tokens"], reasoning_tokens_);
}

void AnswerReader::read_body() {
    dom::element element;
    const bool json = parser_.parse(body_.data(), body_.size()).get(element) == simdjson::SUCCESS;
    dom::object object;
    const bool is_object = json && element.get_object().get(object) == simdjson::SUCCESS;
    if (record_.http_status != 200) {
        dom::element error;
        const bool said = is_object && object["error"].get(error) == simdjson::SUCCESS;
        fail(RequestEnd::http_error,
             "status " + std::to_string(record_.http_status) +
                 (body_.empty()
                      ? ""
                      : ": " + (said ? message_in(error) : body_.substr(0, most_error_bytes))));
    } else if (!is_object)
        fail(RequestEnd::malformed, "an answer that is no JSON object: " + body_.substr(0, 200));
    else {
        read_object(object, true);
        if (expected_.stream && !failed_)
            fail(RequestEnd::malformed, "a stream of events wanted, got one whole answer");
    }
}

/// Tokens that are in the count of the answer and whose text did not come.
std::int64_t AnswerReader::hidden_tokens() const {
    const std::int64_t reasoning = reasoning_tokens_.value_or(0);
    if (reasoning == 0 || !record_.output_tokens || !is_stream_) return 0;
    const std::int64_t output = *record_.output_tokens;
    // Some servers count the reasoning beside the answer, not in it; the total tells.
    const std::int64_t beside = record_.input_tokens.value_or(0) + output + reasoning;
    if (reasoning > output || total_tokens_ == beside) return 0;
    const std::uint32_t answer_chunks = record_.chunks - reasoning_chunks_;
    if (reasoning_chunks_ == 0) return reasoning;
    if (answer_chunks == 0) return 0;  // how many tokens a chunk holds is not known
    const double each = std::max(1.0, double(output - reasoning) / answer_chunks);
    const double came = each * reasoning_chunks_;
    return double(reasoning) > reasoning_is_hidden * came ? reasoning - std::int64_t(came) : 0;
}

void AnswerReader::fail(RequestEnd end, std::string_view error) {
    if (failed_) return;
    failed_ = true;
    record_.end = end;
    record_.error =
        printable_line(error);  // a server's words: no line of them looks like one of ours
}

void AnswerReader::end(double now, RequestEnd failure, std::string_view error) {
    now_ = now;
    record_.done = done_at_.value_or(now);
    // An answer that has said [DONE] is whole, however the connection ends after it.
    if (failure != RequestEnd::success && !complete()) fail(failure, error);
    if (!failed_ && !is_stream_) read_body();
    if (failed_) return;
    if (!is_stream_) record_.last_token = now;
    if (expected_.estimate && !record_.output_tokens)
        record_.estimated_tokens = estimated_tokens(all_text_);
    record_.hidden_tokens = hidden_tokens();
    if (!is_stream_ || double(unread_chunks_) <= most_unread * (unread_chunks_ + record_.chunks))
        record_.unread_field.clear();
    judge();
}

/// Whether an answer that came whole is what was asked for.
void AnswerReader::judge() {
    const std::string& reason = record_.finish_reason;
    const Finish finish = finish_of(reason);
    if (reason.empty())
        return fail(RequestEnd::truncated, "the answer ended without a finish reason");
    if (finish == Finish::broken_off)
        return fail(RequestEnd::not_finished, "the server broke the answer off: finish reason '" +
                                                  reason.substr(0, 100) + "'");
    if (expected_.usage && !record_.output_tokens)
        return fail(RequestEnd::no_usage, "the answer does not say how many tokens it has");
    const std::int64_t got = record_.output_tokens.value_or(asked_tokens_);
    const bool shorter = got < asked_tokens_ && finish == Finish::by_itself;
    if (expected_.exact_length && got != asked_tokens_ && !shorter)
        return fail(RequestEnd::wrong_length, "asked for " + std::to_string(asked_tokens_) +
                                                  " tokens to the end, got " + std::to_string(got) +
                                                  " (" + reason + ")");
    record_.end = RequestEnd::success;
}

std::string text_of_answer(const std::string& body) {
    RequestRecord record;
    simdjson::dom::parser parser;
    AnswerReader reader(record, 0, {.stream = false, .usage = false, .estimate = true}, parser);
    reader.begin(200, "application/json");
    (void)reader.feed(body, 0, false);
    reader.end(0);
    if (!record.succeeded()) throw IoError("its answer is none: " + record.error);
    return reader.all_text();
}

}  // namespace servetune
