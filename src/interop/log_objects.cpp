// SPDX-License-Identifier: Apache-2.0
// Requests as JSON objects, or as rows of CSV.
#include "logged_request.hpp"
#include "prompt_blocks.hpp"

#include "base/lower_case.hpp"
#include "base/nesting.hpp"
#include "servetune/detail/base/fingerprint.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace servetune {
namespace {

using LoggedObject = nlohmann::json;

constexpr double most_logged_tokens =
    1U << 24U;  ///< of a prompt or an answer; the longest contexts have 10 million

constexpr std::array<std::string_view, 13> logged_times{
    "startTime",    "start_time", "timestamp_seconds", "timestamp_milliseconds",
    "timestamp",    "TIMESTAMP",  "Timestamp",         "arrived_at",
    "arrival_time", "created_at", "request_timestamp", "@timestamp",
    "time"};
constexpr std::array<std::string_view, 7> logged_inputs{
    "input_tokens",   "prompt_tokens",      "input_length", "ContextTokens",
    "Request tokens", "num_prefill_tokens", "promptTokens"};
constexpr std::array<std::string_view, 7> logged_outputs{
    "output_tokens",   "completion_tokens", "output_length",   "GeneratedTokens",
    "Response tokens", "num_decode_tokens", "completionTokens"};

/// The places of an object where a request, its answer and their counts may stand.
class LogPlaces {
public:
    explicit LogPlaces(const LoggedObject& root) {
        add(&root);
        for (const char* inner : {"request", "body", "response"})
            if (const LoggedObject* part = member(root, inner)) {
                add(part);
                add(member(*part, "body"));
            }
    }
    /// The first that is there and is not null.
    template <class Names>
    [[nodiscard]] std::pair<std::string_view, const LoggedObject*> find(const Names& names) const {
        for (const std::string_view name : names)
            for (const LoggedObject* place : places_)
                if (const auto found = place->find(name);
                    found != place->end() && !found->is_null() && *found != "")
                    return {name, &*found};
        return {"", nullptr};
    }
    [[nodiscard]] const LoggedObject* one(std::string_view name) const {
        return find(std::array{name}).second;
    }

    static const LoggedObject* member(const LoggedObject& object, const char* name) {
        const auto found = object.is_object() ? object.find(name) : object.end();
        return found != object.end() && found->is_object() ? &*found : nullptr;
    }

private:
    void add(const LoggedObject* place) {
        if (place == nullptr) return;
        places_.push_back(place);
        if (const LoggedObject* usage = member(*place, "usage")) places_.push_back(usage);
    }
    std::vector<const LoggedObject*> places_{};
};

std::string logged_text(const LoggedObject* value) {
    return value == nullptr         ? ""
           : value->is_string()     ? value->get<std::string>()
           : value->is_structured() ? ""
                                    : value->dump();
}

std::optional<double> logged_number(const LoggedObject* value) {
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();  // finite: JSON has no others
    if (!value->is_string()) return std::nullopt;
    const auto& text = value->get_ref<const std::string&>();
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(number))
        return std::nullopt;
    return number;
}

std::optional<std::int64_t> logged_tokens(const LoggedObject* value) {
    const auto number = logged_number(value);
    if (!number || !(*number >= 0 && *number <= most_logged_tokens)) return std::nullopt;
    return std::llround(*number);
}

std::uint64_t logged_hash(const LoggedObject* value) {
    const std::string text = logged_text(value);
    return text.empty() ? 0 : fingerprint_of(text).bits;
}

/// What a chat, a prompt or an answer says, from front to back, to whoever takes texts.
template <class Take>
void each_text(const LoggedObject& value, const Take& take) {
    if (value.is_string()) take(value.get_ref<const std::string&>());
    else if (value.is_array())
        for (const LoggedObject& item : value) each_text(item, take);
    else if (value.is_object())
        for (const char* name : {"role", "content", "text", "tool_calls", "arguments", "function",
                                 "message", "choices"})
            if (const auto found = value.find(name); found != value.end()) each_text(*found, take);
}

void read_prompt(const LogPlaces& places, LoggedRequest& request) {
    constexpr std::array<std::string_view, 4> names{"messages", "prompt", "input", "text"};
    const LoggedObject* found = places.find(names).second;
    LoggedObject parsed;  // in a table a chat is a text
    if (found != nullptr && found->is_string() && !found->get_ref<const std::string&>().empty() &&
        found->get_ref<const std::string&>().front() == '[') {
        parsed = shallow_json<LoggedObject>(found->get_ref<const std::string&>());
        if (!parsed.is_discarded()) found = &parsed;
    }
    if (found == nullptr) return;
    PromptBlocks blocks;
    if (const LoggedObject* tools = places.one("tools"))
        each_text(*tools, [&](const std::string& text) { blocks.add_text(text); });
    if (found->is_array() && !found->empty() && found->front().is_number_integer()) {
        for (const LoggedObject& id : *found)
            if (id.is_number_integer()) blocks.add_id(id.get<std::int64_t>());
    } else {
        each_text(*found, [&](const std::string& text) { blocks.add_text(text + "\n"); });
        request.blocks_of_text = true;
    }
    request.input_estimate = blocks.token_count();
    request.blocks = blocks.names();
    request.block_tokens = PromptBlocks::tokens;
}

void read_answer(const LogPlaces& places, LoggedRequest& request) {
    constexpr std::array<std::string_view, 4> names{"choices", "completion", "response", "output"};
    if (const LoggedObject* found = places.find(names).second)
        each_text(*found, [&](const std::string& text) {
            if (text != "assistant") request.output_estimate += estimated_tokens(text);
        });
}

void read_hash_ids(const LoggedObject& ids, const LogPlaces& places, LoggedRequest& request) {
    constexpr std::int64_t as_in_mooncake = 512;
    if (!ids.is_array()) return;
    for (const LoggedObject& id : ids) {
        if (id.is_structured() || id.is_null()) return request.blocks.clear();
        request.blocks.push_back(id.is_string() ? logged_hash(&id)
                                                : fingerprint_of(id.dump()).bits);
    }
    constexpr std::array<std::string_view, 2> names{"block_tokens", "block_size"};
    request.block_tokens = logged_tokens(places.find(names).second).value_or(as_in_mooncake);
}

/// Whether a proxy says that it asked no model for an answer, or got none.
LoggedRequest::Kept kept_of(const LogPlaces& places) {
    using Kept = LoggedRequest::Kept;
    if (const std::string hit = lower_case(logged_text(places.one("cache_hit"))); hit == "true")
        return Kept::cached;
    if (const std::string call = lower_case(logged_text(places.one("call_type")));
        !call.empty() && call.find("completion") == std::string::npos &&
        call.find("response") == std::string::npos && call.find("message") == std::string::npos &&
        call.find("generate") == std::string::npos)
        return Kept::other;
    if (const LoggedObject* tags = places.one("request_tags"); tags != nullptr && tags->is_array())
        for (const LoggedObject& tag : *tags)
            if (tag.is_string() &&
                tag.get_ref<const std::string&>().find("health-check") != std::string::npos)
                return Kept::other;
    const LoggedObject* status = places.one("status");
    if (const auto code = logged_number(status)) return *code >= 400 ? Kept::failed : Kept::yes;
    const std::string word = lower_case(logged_text(status));
    if (word.find("fail") != std::string::npos || word.find("error") != std::string::npos ||
        word.find("abort") != std::string::npos)
        return Kept::failed;
    for (const char* name : {"error", "exception", "error_str"})
        if (const LoggedObject* error = places.one(name);
            error != nullptr && *error != false && !(error->is_structured() && error->empty()))
            return Kept::failed;
    return Kept::yes;
}

bool read_start(const LogPlaces& places, LogClock& clock, LoggedRequest& request) {
    const auto [name, value] = places.find(logged_times);
    auto time = log_time(logged_text(value));
    if (value == nullptr || !time) return false;
    // As a trace says it: from its own beginning, in the unit that its other names tell.
    const bool milliseconds = name == "timestamp_milliseconds" ||
                              (name == "timestamp" && (places.one("input_length") != nullptr ||
                                                       places.one("hash_ids") != nullptr));
    if (const auto number = logged_number(value); number && milliseconds)
        *time = {*number / 1000, true, true, false};
    request.start = clock.seconds(*time);
    request.whole_seconds = time->whole;
    return true;
}

std::optional<LoggedRequest> read_logged_object(const LoggedObject& given, bool with_prompts,
                                                LogClock& clock) {
    const LoggedObject* payload = LogPlaces::member(given, "standard_logging_object");
    const LogPlaces places(payload == nullptr ? given : *payload);
    LoggedRequest request;
    constexpr std::array<std::string_view, 4> paths{"request_uri", "uri", "path", "request"};
    const auto input = logged_tokens(places.find(logged_inputs).second);
    if (const LoggedObject* path = places.find(paths).second;
        !input && path != nullptr && path->is_string() && places.one("status") != nullptr) {
        std::array<std::string, 6> said{};
        constexpr std::array<std::string_view, 2> ends{"msec", "time_iso8601"};
        constexpr std::array<std::string_view, 3> types{
            "sent_http_content_type", "upstream_http_content_type", "content_type"};
        constexpr std::array<std::string_view, 2> sizes{"body_bytes_sent", "bytes_sent"};
        said = {logged_text(places.one("request_method")), logged_text(path),
                logged_text(places.one("status")),         logged_text(places.find(types).second),
                logged_text(places.one("request_length")), logged_text(places.find(sizes).second)};
        auto end = log_time(logged_text(places.find(ends).second));
        if (!end) end = log_time(logged_text(places.one("time_local")));
        if (!end) end = log_time(logged_text(places.find(logged_times).second));
        if (!end) return std::nullopt;
        request.whole_seconds = end->whole;
        read_access({said[0], said[1], said[2], said[3], said[4], said[5],
                     logged_number(places.one("request_time"))},
                    clock.seconds(*end), request);
        return request;
    }
    if (!read_start(places, clock, request)) return std::nullopt;
    request.input_tokens = input;
    request.output_tokens = logged_tokens(places.find(logged_outputs).second);
    constexpr std::array<std::string_view, 5> ids{"request_id", "id", "rid", "litellm_call_id",
                                                  "call_id"};
    constexpr std::array<std::string_view, 4> sessions{"session_id", "conversation_id", "chat_id",
                                                       "trace_id"};
    request.id = logged_hash(places.find(ids).second);
    request.session = logged_hash(places.find(sessions).second);
    request.kept = kept_of(places);
    const LoggedObject* blocks = places.one("hash_ids");
    const bool has_prompt =
        places.find(std::array<std::string_view, 3>{"messages", "prompt", "input"}).second !=
        nullptr;
    if (!input && !has_prompt && request.kept == LoggedRequest::Kept::yes) return std::nullopt;
    if (with_prompts && request.kept == LoggedRequest::Kept::yes) {
        if (blocks != nullptr) read_hash_ids(*blocks, places, request);
        else read_prompt(places, request);
        if (!request.output_tokens) read_answer(places, request);
    }
    return request;
}

}  // namespace

std::optional<LoggedRequest> read_json_request(std::string_view line, bool with_prompts,
                                               LogClock& clock) {
    const auto object = shallow_json<LoggedObject>(line);
    if (!object.is_object()) return std::nullopt;
    return read_logged_object(object, with_prompts, clock);
}

bool names_requests(const std::vector<std::string>& columns) {
    const auto any = [&](const auto& names) {
        return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
            return std::find(columns.begin(), columns.end(), name) != columns.end();
        });
    };
    return any(logged_times) && any(logged_inputs);
}

std::optional<LoggedRequest> read_csv_request(const std::vector<std::string>& columns,
                                              const std::vector<std::string>& cells,
                                              bool with_prompts, LogClock& clock) {
    if (cells.size() != columns.size()) return std::nullopt;
    LoggedObject object = LoggedObject::object();
    for (std::size_t i = 0; i < cells.size(); ++i) object[columns[i]] = cells[i];
    return read_logged_object(object, with_prompts, clock);
}

}  // namespace servetune
