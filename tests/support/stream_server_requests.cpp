// SPDX-License-Identifier: Apache-2.0
// The stream server's requests: how they are read, and the answers that are no stream of tokens.
#include "support/stream_server_loop.hpp"

#include "support/answers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace servetune::test {

namespace {

using Json = nlohmann::json;
using namespace std::string_view_literals;

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

/// The value of a header, without spaces around it; empty when it is not there.
std::string header(std::string_view head, std::string_view name) {
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;
         at = head.find("\r\n", at + 2)) {
        const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
        const auto colon = line.find(':');
        if (colon == std::string_view::npos || lower(line.substr(0, colon)) != name) continue;
        std::string_view value = line.substr(colon + 1);
        while (value.starts_with(' ')) value.remove_prefix(1);
        while (value.ends_with(' ')) value.remove_suffix(1);
        return std::string(value);
    }
    return {};
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> result;
    constexpr std::string_view space = " \t\r\n\f\v";
    for (std::size_t at = text.find_first_not_of(space); at != std::string_view::npos;) {
        const std::size_t end = std::min(text.size(), text.find_first_of(space, at));
        result.push_back(text.substr(at, end - at));
        at = text.find_first_not_of(space, end);
    }
    return result;
}

/// Counts the prompt's tokens and finds its label.
void read_prompt(const Json& body, bool chat, std::int64_t& tokens, std::string& label) {
    const auto add = [&](const std::string& text) {
        const auto words = words_of(text);
        tokens += static_cast<std::int64_t>(words.size());
        if (!words.empty()) label = words.front().substr(0, 64);
    };
    if (chat) {
        for (const Json& message : body.at("messages")) {
            const Json& content = message.at("content");
            if (content.is_string()) add(content.get<std::string>());
            else if (content.is_array())
                for (const Json& part : content)
                    if (part.contains("text")) add(part.at("text").get<std::string>());
        }
        return;
    }
    const Json& prompt = body.at("prompt");
    if (prompt.is_string()) add(prompt.get<std::string>());
    else {
        tokens = static_cast<std::int64_t>(prompt.size());
        label = std::to_string(prompt.at(0).get<std::int64_t>());
    }
}

/// The words that say how fast and how long, without the vices.
Behaviour well_behaved(const Behaviour& behaviour) {
    Behaviour result;
    result.first = behaviour.first, result.gap = behaviour.gap, result.tokens = behaviour.tokens;
    result.chunk_tokens = behaviour.chunk_tokens;
    return result;
}

}  // namespace

void StreamServer::Loop::process_input(Connection& connection) {
    while (connection.id >= 0 && !connection.answer &&
           connection.after_out == Connection::After::keep) {
        const auto end = connection.in.find("\r\n\r\n");
        if (end == std::string::npos) return;
        HttpRequest request;
        request.head = connection.in.substr(0, end + 2);
        const std::string length = header(request.head, "content-length");
        const std::size_t size = length.empty() ? 0 : std::strtoull(length.c_str(), nullptr, 10);
        if (connection.in.size() < end + 4 + size) {
            if (!connection.continued && lower(header(request.head, "expect")) == "100-continue") {
                connection.continued = true;
                write(connection, "HTTP/1.1 100 Continue\r\n\r\n");
            }
            return;
        }
        request.body = connection.in.substr(end + 4, size);
        connection.in.erase(0, end + 4 + size);
        connection.continued = false;
        const auto space = request.head.find(' ');
        request.method = request.head.substr(0, space);
        request.path =
            request.head.substr(space + 1, request.head.find(' ', space + 1) - space - 1);
        request.behave = header(request.head, "x-behave");
        request.close = lower(header(request.head, "connection")) == "close";
        ++shared_.requests;
        handle(connection, request);
    }
}

void StreamServer::Loop::handle(Connection& connection, const HttpRequest& request) {
    const auto answer = [&](int status, std::string_view type, std::string_view body) {
        if (request.close) connection.after_out = Connection::After::close;
        write(connection, plain_answer(status, type, body, request.close));
    };
    constexpr std::string_view json = "application/json", text = "text/plain; charset=utf-8";
    const double age = static_cast<double>(now_ns() - shared_.started_ns) / 1e9;
    if (request.path == "/truth") {
        if (request.method == "DELETE") {
            const std::lock_guard lock(shared_.mutex);
            shared_.log.clear();
            shared_.lateness.clear();
            shared_.most_in_flight = shared_.in_flight.load();
            return answer(200, json, "{}");
        }
        return answer(200, json, shared_.truth_json());
    }
    if (age < shared_.options.behaviour.loading.value_or(0))
        return answer(
            503, json,
            R"({"error":{"message":"Loading model","type":"unavailable_error","code":503}})");
    if (request.method == "GET" && request.path == "/health") return answer(200, text, "");
    if (request.method == "GET" && request.path == "/metrics")
        return answer(200, text, shared_.metrics());
    if (const auto& status = shared_.options.behaviour.models_status;
        status && request.path == "/v1/models") {
        const std::string where = *status >= 300 && *status < 400
                                      ? "location: https://elsewhere.invalid/v1/models\r\n"
                                      : "";
        return write(connection,
                     plain_answer(static_cast<int>(*status), json,
                                  R"({"error":{"message":"no list for you"}})", false, where));
    }
    if (request.method == "GET" && request.path == "/v1/models")
        return answer(
            200, json,
            R"({"object":"list","data":[{"id":"test","object":"model","owned_by":"test","max_model_len":131072}]})");
    const bool chat = request.path == "/v1/chat/completions";
    if (request.method != "POST" || (!chat && request.path != "/v1/completions"))
        return answer(404, json, R"({"detail":"Not Found"})");
    try {
        handle_completion(connection, request, chat);
    } catch (const std::exception& error) {
        connection.answer.reset();
        answer(
            400, json,
            Json{{"error", {{"message", error.what()}, {"type", "BadRequestError"}, {"code", 400}}}}
                .dump());
    }
}

void StreamServer::Loop::handle_completion(Connection& connection, const HttpRequest& http,
                                           bool chat) {
    const std::int64_t received = connection.received_ns;
    const Json body = Json::parse(http.body);
    CompletionRequest request;
    request.chat = chat;
    request.model = body.at("model").get<std::string>();
    request.stream = body.value("stream", false);
    if (const auto options = body.find("stream_options"); options != body.end())
        request.include_usage = options->value("include_usage", false);
    std::string label;
    read_prompt(body, chat, request.prompt_tokens, label);

    Behaviour behaviour = shared_.options.behaviour;
    if (request.model.starts_with("behave:"))
        behaviour = merged(behaviour, parse_behaviour(request.model.substr(7)));
    behaviour = merged(behaviour, parse_behaviour(http.behave));
    request.number = shared_.completions++;
    if (static_cast<double>(request.number) < behaviour.cold.value_or(0)) {
        behaviour.first =
            behaviour.first.value_or(first_default) * behaviour.cold_times.value_or(cold_default);
        behaviour.gap =
            behaviour.gap.value_or(gap_default) * behaviour.cold_times.value_or(cold_default);
    }
    if (behaviour.share) {
        const auto number = static_cast<double>(request.number);
        if (std::floor((number + 1) * *behaviour.share) <= std::floor(number * *behaviour.share))
            behaviour = well_behaved(behaviour);
    }
    int status = 0;
    if (const std::string words = refusal(body, behaviour, status); !words.empty())
        return write(connection, plain_answer(status, "application/json", words));
    std::int64_t tokens = static_cast<std::int64_t>(shared_.options.tokens);
    for (const char* key : {"max_tokens", "max_completion_tokens"})
        if (const auto asked = body.find(key); asked != body.end() && asked->is_number_integer())
            tokens = asked->get<std::int64_t>();
    if (behaviour.tokens) tokens = static_cast<std::int64_t>(*behaviour.tokens);
    if (behaviour.fewer)
        tokens -= *behaviour.fewer < 0 ? tokens / 2 : static_cast<std::int64_t>(*behaviour.fewer);
    if (behaviour.abort)
        tokens = *behaviour.abort < 0
                     ? tokens / 2
                     : std::min(tokens, static_cast<std::int64_t>(*behaviour.abort));
    request.tokens = std::max<std::int64_t>(1, tokens);
    request.behaviour = behaviour;

    connection.answer = std::make_unique<Answer>(
        Answer{.request = request, .writer = AnswerWriter(request), .truth = {}});
    Answer& answer = *connection.answer;
    answer.gap_ns = in_ns(behaviour.gap.value_or(gap_default));
    answer.chunk_tokens =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(behaviour.chunk_tokens.value_or(1)));
    answer.chunks = (request.tokens + answer.chunk_tokens - 1) / answer.chunk_tokens;
    answer.coalesce = behaviour.content_length ? answer.chunks : 1;
    for (const BehaviourWord& word : behaviour_words)
        if (word.name == "reset" || word.name == "close" || word.name == "stall" ||
            word.name == "truncated" || word.name == "error_event")
            if (const auto at = behaviour.*word.field) {
                answer.breaks = &word;
                answer.break_at = *at < 0 ? answer.chunks / 2
                                          : std::min(answer.chunks, static_cast<std::int64_t>(*at));
            }
    answer.close_after = http.close || behaviour.connection_close || behaviour.until_close;
    answer.serial = next_serial_++;
    RequestTruth& truth = answer.truth;
    truth.number = request.number;
    truth.path = http.path;
    if (shared_.options.keep_requests) truth.head = http.head, truth.body = http.body;
    truth.label = std::move(label);
    truth.received_ns = received;
    truth.prompt_tokens = request.prompt_tokens;
    truth.chunk_sent_ns.reserve(
        static_cast<std::size_t>(std::min<std::int64_t>(answer.chunks, 1 << 20)));
    const std::uint64_t in_flight = ++shared_.in_flight;
    for (std::uint64_t most = shared_.most_in_flight;
         most < in_flight && !shared_.most_in_flight.compare_exchange_weak(most, in_flight);) {
    }

    connection.slow_left = behaviour.split ? ~std::size_t{0} : 0;
    connection.slow_bytes = static_cast<std::size_t>(std::max(1.0, behaviour.split.value_or(1)));
    connection.slow_pause_ns = 0;
    if (misanswer(connection, answer)) return;
    shared_.prompt_tokens += static_cast<std::uint64_t>(request.prompt_tokens);
    shared_.cached_tokens += static_cast<std::uint64_t>(behaviour.cached.value_or(0));
    schedule_first(connection);
    if (!request.stream || behaviour.content_length) return;
    bytes_.clear();
    answer.writer.head(bytes_);
    if (behaviour.slow_headers) {
        connection.slow_left = bytes_.size();
        connection.slow_bytes = 1;
        connection.slow_pause_ns = in_ns(*behaviour.slow_headers);
    }
    if (behaviour.role_early && chat && !behaviour.no_role) answer.writer.role(bytes_);
    write(connection, bytes_);
}

/// As strict servers refuse fields that they do not know; empty: nothing to refuse.
std::string StreamServer::Loop::refusal(const Json& body, const Behaviour& behaviour, int& status) {
    const std::array<std::pair<const char*, std::optional<double>>, 3> fields{
        {{"ignore_eos", behaviour.no_ignore_eos},
         {"stream_options", behaviour.no_stream_options},
         {"max_tokens", behaviour.no_max_tokens}}};
    for (const auto& [field, refused] : fields) {
        if (!refused || !body.contains(field)) continue;
        status = static_cast<int>(*refused);
        if (behaviour.vague) return R"({"detail":"Invalid request"})";
        return Json{{"detail",
                     {{{"type", "extra_forbidden"},
                       {"loc", {"body", field}},
                       {"msg", "Extra inputs are not permitted"}}}}}
            .dump();
    }
    return {};
}

/// Answers that are none. False: the behaviour asks for no such thing.
bool StreamServer::Loop::misanswer(Connection& connection, Answer& answer) {
    const Behaviour& behaviour = answer.request.behaviour;
    const auto say = [&](std::string_view word, int status, std::string_view bytes, bool close) {
        const bool closes = close || answer.close_after;
        bytes_ = bytes;
        end_answer(connection, word, status);
        if (closes) connection.after_out = Connection::After::close;
        write(connection, bytes_);
        return true;
    };
    if (behaviour.status) {
        const int status = static_cast<int>(*behaviour.status);
        return say("status", status,
                   plain_answer(status, "application/json",
                                R"({"error":{"message":"the engine refuses","type":"error"}})"),
                   false);
    }
    if (behaviour.redirect)
        return say("redirect", 302,
                   plain_answer(302, "text/plain", "", false,
                                "location: http://127.0.0.1:" + std::to_string(shared_.port) +
                                    "/elsewhere\r\n"),
                   false);
    if (behaviour.html)
        return say(
            "html", 200,
            plain_answer(200, "text/html; charset=utf-8",
                         "<!DOCTYPE html>\n<html><body><h1>Welcome to nginx!</h1></body></html>\n"),
            false);
    if (behaviour.not_sse)
        return say("not_sse", 200,
                   plain_answer(200, "text/event-stream",
                                "hello\n{\"choices\":[]}\n\nwhat is this: \xff\xfe\n\n"),
                   false);
    if (behaviour.garbage)
        return say("garbage", 0, "\x16\x03\x01\x02\x00SSH-2.0-nobody\r\n\r\n\x00\x01garbage"sv,
                   true);
    if (behaviour.silent) {
        answer.truth.end = "silent";
        return true;  // nothing is due
    }
    return false;
}

}  // namespace servetune::test
