// SPDX-License-Identifier: Apache-2.0
#include "completion_request.hpp"

#include "servetune/value.hpp"

#include <fmt/format.h>
#include <simdjson.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace simengine {
namespace {

namespace dom = simdjson::dom;

/// What it holds may be asked for until the next call: everything runs in one thread.
dom::parser& parser() {
    static dom::parser one;
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

std::optional<std::uint16_t> port_in(const dom::object& object, const char* key) {
    const std::int64_t port = integer(object, key).value_or(0);
    if (port < 1 || port > 65535) return std::nullopt;
    return static_cast<std::uint16_t>(port);
}

/// As routers write it: vLLM's asks the first engine to keep the cache and hands its answer to the
/// second one (`kv_transfer_params`); SGLang's tells both engines of a room at the first one.
std::optional<HttpRefusal> add_handover(const Dialect& dialect, const dom::object& object,
                                        CompletionRequest& request) {
    dom::object params;
    std::string_view text;
    if (dialect.kind == EngineKind::vllm && get(object, "kv_transfer_params", params)) {
        if (is_true(params, "do_remote_decode")) request.gives.emplace();
        if (!is_true(params, "do_remote_prefill")) return std::nullopt;
        const auto port = port_in(params, "remote_port");
        const auto room = get(params, "remote_request_id", text)
                              ? servetune::integer_of(std::string(text))
                              : std::nullopt;
        if (!port || !room || !get(params, "remote_host", text))
            return refused(
                "kv_transfer_params: remote_host, remote_port and remote_request_id wanted, as the "
                "prefill engine gave them");
        request.takes = {static_cast<std::uint64_t>(*room), std::string(text), *port};
    } else if (std::uint64_t room = 0; dialect.kind == EngineKind::sglang &&
                                       object["bootstrap_room"].get(room) == simdjson::SUCCESS) {
        const auto port = port_in(object, "bootstrap_port");
        if (!port || !get(object, "bootstrap_host", text))
            return refused("bootstrap_room: bootstrap_host and bootstrap_port wanted beside it");
        request.gives =
            request.takes = {room, std::string(text), *port};  // the engine's role says which
    }
    return std::nullopt;
}

std::optional<HttpRefusal> parse(std::string_view body, dom::object& object) {
    if (parser().parse(body.data(), body.size()).get(object) != simdjson::SUCCESS)
        return HttpRefusal{400, "the body is no JSON object", "Bad Request"};
    return std::nullopt;
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
    if (auto wrong = add_handover(dialect, object, request)) return wrong;
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
    const auto input = static_cast<std::int64_t>(request.prompt.size());
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

}  // namespace simengine
