// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include "metrics.hpp"
#include "servetune/rng.hpp"
#include "space/value_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace simengine {
namespace {

double seconds_since_1970() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

using OrderedJson = nlohmann::ordered_json;
constexpr std::string_view json_type = "application/json";

/// Names all tokens of a prompt: the same for the same prompt.
std::uint64_t key_of(const std::vector<Token>& prompt, std::uint64_t seed) {
    std::uint64_t key = servetune::mix64(seed);
    for (const Token token : prompt)
        key = servetune::mix64(key ^ static_cast<std::uint64_t>(token));
    return key;
}

/// How many tokens the answer gets, and whether the limit is what ends it.
std::pair<std::int64_t, bool> answer_length(const CompletionRequest& asked, std::int64_t context,
                                            std::uint64_t key) {
    const std::int64_t room =
        std::max<std::int64_t>(1, context - static_cast<std::int64_t>(asked.prompt.size()));
    const std::int64_t most = std::min(room, asked.max_tokens.value_or(room));
    if (asked.ignore_eos) return {most, true};
    const std::int64_t natural = std::max(natural_length(key), asked.min_tokens);
    return {std::min(natural, most), natural >= most};
}

}  // namespace

Service::Service(ServiceOptions options, const servetune::CostModel& cost,
                 const EngineLoopOptions& loop, Hooks hooks)
    : options_(std::move(options)),
      dialect_(*options_.dialect),
      tokenizer_(cost.target().model.vocabulary),
      hooks_(std::move(hooks)),
      started_at_(seconds_since_1970()),
      loop_(cost, loop, [this](const servetune::TokenEvent& event) { deliver(event); }) {}

void Service::refuse(Exchange& exchange, const HttpRefusal& refusal) const {
    exchange.answer(refusal.status, json_type, error_json(dialect_, refusal));
}

bool Service::authorized(const HttpRequest& request) const {
    return options_.api_key.empty() || !request.path.starts_with("/v1/") ||
           request.authorization == "Bearer " + options_.api_key;
}

bool Service::serves(const std::string& model) const {
    if (model.empty() || !dialect_.checks_model || model == shown_name()) return true;
    return std::find(options_.served_names.begin(), options_.served_names.end(), model) !=
           options_.served_names.end();
}

std::string Service::shown_name() const {
    return options_.faults.wrong_model.empty() ? options_.served_names.front()
                                               : options_.faults.wrong_model;
}

void Service::handle(const HttpRequest& request, Exchange& exchange) {
    if (!authorized(request)) return refuse(exchange, {401, "Unauthorized", "Unauthorized"});
    if (handle_completion(request, exchange) || handle_about(request, exchange) ||
        handle_reset(request, exchange))
        return;
    if (dialect_.kind == EngineKind::llama_cpp)
        return refuse(exchange, {404, "File Not Found", "not_found_error"});
    exchange.answer(404, json_type, R"({"detail":"Not Found"})");
}

// ---- completions

bool Service::handle_completion(const HttpRequest& request, Exchange& exchange) {
    const bool chat = request.path == "/v1/chat/completions";
    if (!chat && request.path != "/v1/completions") return false;
    if (request.method != "POST") {
        exchange.answer(405, json_type, R"({"detail":"Method Not Allowed"})");
        return true;
    }
    if (misbehave_at_request()) return true;
    CompletionRequest asked;
    if (const auto wrong = read_completion_request(dialect_, request.body, chat, tokenizer_, asked))
        refuse(exchange, *wrong);
    else if (!serves(asked.model))
        refuse(exchange,
               {404, fmt::format("The model `{}` does not exist.", asked.model), "NotFoundError"});
    else if (const auto longer = too_long(dialect_, asked, loop_.cost().max_context_tokens()))
        refuse(exchange, *longer);
    else if (const auto other = not_its_role(asked)) refuse(exchange, *other);
    else complete(asked, exchange);
    return true;
}

/// Of what the request says of caches it keeps what is this engine's part. An engine of SGLang that
/// has one role takes no other requests.
std::optional<HttpRefusal> Service::not_its_role(CompletionRequest& asked) const {
    const bool apart = options_.role == EngineRole::prefill || options_.role == EngineRole::decode;
    if (options_.role == EngineRole::whole || options_.role == EngineRole::decode)
        asked.gives.reset();
    if (options_.role == EngineRole::whole || options_.role == EngineRole::prefill)
        asked.takes.reset();
    if (dialect_.kind != EngineKind::sglang || !apart || asked.gives || asked.takes)
        return std::nullopt;
    return HttpRefusal{400,
                       "Invalid request: this engine has one part of the work, and the request "
                       "names no bootstrap room"};
}

/// True when there is nobody left to answer.
bool Service::misbehave_at_request() {
    if (requests_ == 0 && hooks_.first_request) hooks_.first_request();
    ++requests_;
    if (requests_ == options_.faults.die_at_requests) hooks_.die();
    if (requests_ != options_.faults.restart_mid_run) return false;
    pending_.clear();
    loop_.restart();
    tokens_ = events_ = finished_ = arrived_tokens_ = 0;
    started_at_ = seconds_since_1970();
    hooks_.drop_all();
    return true;
}

void Service::complete(const CompletionRequest& asked, Exchange& exchange) {
    const auto input = static_cast<std::int64_t>(asked.prompt.size());
    const std::uint64_t key = key_of(asked.prompt, options_.seed);
    const auto [planned, by_length] = answer_length(asked, loop_.cost().max_context_tokens(), key);
    const bool aborts =
        options_.faults.abort_every > 0 && requests_ % options_.faults.abort_every == 0;
    const std::int64_t output = asked.gives ? 1
                                : aborts    ? std::min<std::int64_t>(2, planned)
                                            : planned;
    if (const std::string refusal = loop_.refusal(input, output, asked.takes.has_value());
        !refusal.empty())
        return refuse(exchange, {400, refusal});

    const std::size_t id = next_id_++;
    servetune::EngineRequest work{.id = id, .input_tokens = input, .output_tokens = output};
    if (asked.cache_prompt && loop_.cost().settings().prefix_cache) {
        std::vector<Token> all = asked.prompt;
        AnswerText(key).encode(output, tokenizer_, all);
        work.pieces =
            piece_names(all, static_cast<std::size_t>(servetune::EngineCore::prefix_piece_tokens));
    }
    AnswerFacts facts;
    facts.chat = asked.chat;
    facts.stream = asked.stream;
    facts.usage = asked.include_usage;
    facts.thinks = asked.chat && (options_.reasons || asked.thinks);
    facts.model = shown_name();
    facts.number = key ^ id;
    facts.text_key = key;
    facts.prompt_tokens = input;
    facts.output_tokens = output;
    facts.finish_reason = aborts ? "abort" : by_length ? "length" : "stop";
    facts.text_is_unread = options_.faults.unread_text;
    facts.says_cached = options_.says_cached;
    facts.halves_usage = options_.faults.bad_usage;
    facts.breaks_json = options_.faults.wrong_json;
    Pending& pending =
        pending_.emplace(id, Pending{&exchange, asked.stream, AnswerWriter(dialect_, facts)})
            .first->second;
    exchange.set_work(id);
    if (asked.gives) pending.room = dialect_.kind == EngineKind::sglang ? asked.gives->room : id;
    if (asked.takes) {
        pending.later = std::move(work);
        return hooks_.fetch(id, *asked.takes, input);
    }
    loop_.submit(std::move(work), Clock::now());
    hooks_.wake();
    if (asked.stream) exchange.begin_stream();
}

void Service::arrived(std::size_t work, const std::string& error) {
    const auto found = pending_.find(work);
    if (found == pending_.end()) return;
    Pending& pending = found->second;
    Exchange& exchange = *pending.exchange;
    if (!error.empty()) {
        pending_.erase(found);
        return refuse(
            exchange,
            {500, "the cache of the prompt did not come from the prefill engine: " + error,
             "InternalServerError"});
    }
    servetune::EngineRequest request = std::move(*std::exchange(pending.later, std::nullopt));
    request.prompt_is_computed = true;
    pending.arrived = true;
    const bool stream = pending.stream;
    loop_.submit(std::move(request), Clock::now());
    hooks_.wake();
    if (stream) exchange.begin_stream();
}

void Service::gone(std::size_t work) {
    const auto found = pending_.find(work);
    if (found == pending_.end()) return;
    if (found->second.room) hooks_.offer(*found->second.room, false);
    pending_.erase(found);
    loop_.cancel(work);
}

/// The cache is to be had from now on; vLLM says in its answer where.
void Service::give(Pending& pending) {
    if (!pending.room) return;
    hooks_.offer(*pending.room, true);
    if (dialect_.kind != EngineKind::vllm || pending.stream || !bytes_.ends_with('}')) return;
    bytes_.pop_back();
    bytes_ += ",\"kv_transfer_params\":" +
              OrderedJson{{"do_remote_prefill", true},
                          {"do_remote_decode", false},
                          {"remote_engine_id", "simengine"},
                          {"remote_request_id", std::to_string(*pending.room)},
                          {"remote_host", options_.side.host},
                          {"remote_port", options_.side.port},
                          {"tp_size", loop_.cost().settings().tensor_parallel}}
                  .dump() +
              "}";
}

void Service::deliver(const servetune::TokenEvent& event) {
    tokens_ += event.tokens;
    if (options_.faults.die_at_tokens > 0 && tokens_ >= options_.faults.die_at_tokens) hooks_.die();
    if (options_.faults.stall_mid_stream > 0 && events_ >= options_.faults.stall_mid_stream) return;
    ++events_;
    const auto found = pending_.find(event.id);
    if (found == pending_.end()) return;
    Pending& pending = found->second;
    Exchange& exchange = *pending.exchange;
    if (event.first) {
        pending.cached = event.cached_tokens;
        if (pending.arrived) arrived_tokens_ += pending.writer.prompt_tokens();
    }
    bytes_.clear();
    if (pending.stream) pending.writer.tokens(bytes_, event.tokens, pending.cached);
    else if (event.finished) bytes_ = pending.writer.whole(pending.cached);
    const bool stream = pending.stream;
    if (event.finished) {
        give(pending);
        ++finished_;
        pending_.erase(found);
    }
    // What follows may end the connection, and the work with it.
    if (!stream) {
        if (event.finished) exchange.answer(200, json_type, bytes_);
        return;
    }
    exchange.write(bytes_);
    if (event.finished) exchange.end_stream();
}

// ---- what it says of itself

bool Service::handle_about(const HttpRequest& request, Exchange& exchange) {
    const auto json = [&](const std::string& body) {
        exchange.answer(200, json_type, body);
        return true;
    };
    const std::string& path = request.path;
    const EngineKind kind = dialect_.kind;
    if (path == "/health" || (path == "/health_generate" && kind == EngineKind::sglang)) {
        if (kind == EngineKind::llama_cpp) return json(R"({"status":"ok"})");
        exchange.answer(200, "text/plain", "");
        return true;
    }
    if (path == "/v1/models") return json(models_json());
    if (path == "/simengine") return json(status_json());
    if ((path == "/get_server_info" || path == "/server_info") && kind == EngineKind::sglang)
        return json(server_info_json());
    if (path != "/metrics") return false;
    if (kind == EngineKind::tensorrt_llm)
        return json("[]");  // its list of steps, which reading empties; it has no counters
    if (options_.metrics)
        exchange.answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text());
    else if (kind == EngineKind::llama_cpp)
        refuse(exchange,
               {501, "This server does not support metrics endpoint. Start it with `--metrics`",
                "not_supported_error"});
    else return false;
    return true;
}

std::string Service::models_json() const {
    OrderedJson data = OrderedJson::array();
    for (const std::string& name : options_.served_names)
        data.push_back(
            {{"id", options_.faults.wrong_model.empty() ? name : options_.faults.wrong_model},
             {"object", "model"},
             {"created", static_cast<std::int64_t>(started_at_)},
             {"owned_by", dialect_.kind == EngineKind::llama_cpp ? "llamacpp" : dialect_.engine},
             {"root", options_.model},
             {"max_model_len", loop_.cost().max_context_tokens()}});
    return OrderedJson{{"object", "list"}, {"data", data}}.dump();
}

std::string Service::server_info_json() const {
    const auto& settings = loop_.cost().settings();
    OrderedJson object{{"model_path", options_.model},
                       {"served_model_name", shown_name()},
                       {"version", options_.version}};
    for (const auto& [name, value] : options_.parameters) object[name] = servetune::to_json(value);
    for (const auto& [flag, values] : options_.flags) {
        std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
        std::replace(name.begin(), name.end(), '-', '_');
        object[name] = OrderedJson::parse(values.back(), nullptr, false);
        if (object[name].is_discarded()) object[name] = values.back();
    }
    object["max_total_num_tokens"] = loop_.cost().memory().cache_tokens;
    object["max_running_requests"] = settings.max_sequences;
    return object.dump();
}

std::string Service::status_json() const {
    const Lateness& late = loop_.lateness();
    return OrderedJson{{"events", late.count()},
                       {"late_p50_seconds", late.quantile_seconds(0.5)},
                       {"late_p99_seconds", late.quantile_seconds(0.99)},
                       {"processor_seconds", static_cast<double>(std::clock()) / CLOCKS_PER_SEC},
                       {"steps", loop_.counters().steps},
                       {"requests", requests_},
                       {"running", loop_.running()},
                       {"waiting", loop_.waiting()},
                       {"cache_use", loop_.cache_use()}}
        .dump();
}

std::string Service::metrics_text() const {
    servetune::EngineCounters counters = loop_.counters();
    counters.prompt_tokens += static_cast<std::uint64_t>(
        arrived_tokens_);  // engines count them, wherever they were computed
    return prometheus_text(dialect_, options_.engine.counters,
                           {.counters = counters,
                            .running = loop_.running(),
                            .waiting = loop_.waiting(),
                            .cache_use = loop_.cache_use(),
                            .finished = finished_,
                            .started_at = started_at_,
                            .model = shown_name()});
}

// ---- the cache

bool Service::handle_reset(const HttpRequest& request, Exchange& exchange) {
    const auto& resets = options_.engine.between_runs;
    const bool known = std::any_of(resets.begin(), resets.end(),
                                   [&](const auto& reset) { return reset.first == request.path; });
    if (!known || !options_.can_reset) return false;
    if (request.method != "POST" && dialect_.kind != EngineKind::sglang) {
        exchange.answer(405, json_type, R"({"detail":"Method Not Allowed"})");
        return true;
    }
    loop_.clear_prefix_cache();
    if (dialect_.kind == EngineKind::sglang) exchange.answer(200, "text/plain", "Cache flushed.\n");
    else exchange.answer(200, json_type, "");
    return true;
}

}  // namespace simengine
