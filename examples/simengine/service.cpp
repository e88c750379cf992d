// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include "servetune/rng.hpp"
#include "space/value_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace simengine {
namespace {

namespace asio = boost::asio;

double seconds_since_1970() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

using OrderedJson = nlohmann::ordered_json;
constexpr std::string_view json_type = "application/json";

/// Names all tokens of a prompt: the same for the same prompt.
std::uint64_t key_of(const std::vector<Token>& prompt, std::uint64_t seed) {
    std::uint64_t key = servetune::mix64(seed);
    for (const Token token : prompt) key = servetune::mix64(key ^ std::uint64_t(token));
    return key;
}

/// How many tokens the answer gets, and whether the limit is what ends it.
std::pair<std::int64_t, bool> answer_length(const CompletionRequest& asked, std::int64_t context,
                                            std::uint64_t key) {
    const std::int64_t room =
        std::max<std::int64_t>(1, context - std::int64_t(asked.prompt.size()));
    const std::int64_t most = std::min(room, asked.max_tokens.value_or(room));
    if (asked.ignore_eos) return {most, true};
    const std::int64_t natural = std::max(natural_length(key), asked.min_tokens);
    return {std::min(natural, most), natural >= most};
}

/// Of an engine that goes on where others computed the prompt: SGLang's flag, or what vLLM's says.
bool only_decodes(const EngineCommand& command) {
    const auto config =
        OrderedJson::parse(command.value("--kv-transfer-config").value_or("{}"), nullptr, false);
    return command.value("--disaggregation-mode") == "decode" ||
           (config.is_object() && config.value("kv_role", OrderedJson()) == "kv_consumer");
}

/// How long the keys and values of so many tokens take from an engine like this one, over the link
/// of each of its devices. Throws UsageError where the chip's link is not known.
double cache_transfer_seconds(const servetune::CostModel& cost, std::int64_t tokens) {
    const servetune::ServingSettings& settings = cost.settings();
    const auto pairs = double(settings.tensor_parallel * settings.pipeline_parallel);
    return cost.target().traits.all_reduce_seconds +
           cost.cache_bytes(tokens) / (cost.link(settings.devices()) * pairs);
}

/// What the engine counts at this moment.
struct EngineFigures {
    servetune::EngineCounters counters{};
    std::size_t running = 0;
    std::size_t waiting = 0;
    double cache_use = 0;
    std::int64_t finished = 0;
    double started_at = 0;  ///< seconds since 1970
    std::string model{};
    const ObservedFigures* observed = nullptr;
};

struct Figure {
    double value = 0;
    std::string_view type = "counter";
};

/// What a name of ours counts; nothing for one that this engine does not have.
std::optional<Figure> figure(const Dialect& dialect, std::string_view name,
                             const EngineFigures& now) {
    const auto count = [](std::uint64_t number) { return Figure{double(number), "counter"}; };
    const auto gauge = [](double number) { return Figure{number, "gauge"}; };
    const servetune::EngineCounters& counted = now.counters;
    if (name == "prompt_tokens")  // llama.cpp leaves out what came from the cache
        return count(counted.prompt_tokens -
                     (dialect.kind == EngineKind::llama_cpp ? counted.prefix_hit_tokens : 0));
    if (name == "generated_tokens") return count(counted.generated_tokens);
    if (name == "prefix_queried_tokens") return count(counted.prefix_queried_tokens);
    if (name == "prefix_hit_tokens") return count(counted.prefix_hit_tokens);
    if (name == "drafted_tokens") return count(counted.drafted_tokens);
    if (name == "accepted_tokens") return count(counted.accepted_tokens);
    if (name == "preemptions") return count(counted.preemptions);
    if (name == "running_requests") return gauge(double(now.running));
    if (name == "waiting_requests") return gauge(double(now.waiting));
    if (name == "cache_used_share") return gauge(now.cache_use);
    return std::nullopt;
}

/// In Prometheus' text format. `names`: an engine file's `counters`, our name -> the engine's.
std::string prometheus_text(const Dialect& dialect, const std::map<std::string, std::string>& names,
                            const EngineFigures& figures) {
    const std::string model = nlohmann::json(figures.model).dump();
    const std::string labels = dialect.kind == EngineKind::llama_cpp ? ""
                               : dialect.kind == EngineKind::vllm
                                   ? fmt::format("{{engine=\"0\",model_name={}}}", model)
                                   : fmt::format("{{model_name={}}}", model);
    std::string text;
    const auto add = [&](std::string_view name, std::string_view type, std::string_view with,
                         double value) {
        text += fmt::format("# TYPE {} {}\n{}{} {}\n", name, type, name, with,
                            servetune::text_of(value));
    };
    for (const auto& [ours, theirs] : names) {
        if (theirs.find(' ') != std::string::npos) continue;  // a sum of names that are there
        if (const auto seen = figures.observed->find(ours); seen != figures.observed->end())
            text += fmt::format("# TYPE {0} summary\n{0}_sum{1} {2}\n{0}_count{1} {3}\n", theirs,
                                labels, servetune::text_of(seen->second.sum), seen->second.count);
        else if (const auto known = figure(dialect, ours, figures))
            add(theirs, known->type, labels, known->value);
    }
    if (dialect.kind == EngineKind::vllm)
        add("vllm:request_success_total", "counter",
            fmt::format("{{engine=\"0\",finished_reason=\"length\",model_name={}}}", model),
            double(figures.finished));
    if (dialect.kind != EngineKind::llama_cpp)
        add("process_start_time_seconds", "gauge", "", figures.started_at);
    return text;
}

}  // namespace

ServiceOptions ServiceOptions::of(const EngineSetup& setup, const Options& options) {
    const EngineCommand& command = setup.command;
    const Dialect& dialect = *setup.dialect;
    const auto is_on = [&](std::string_view flag) {
        return flag.empty() || command.is_on(std::string(flag));
    };
    const std::string parser = command.value("--reasoning-parser")
                                   .value_or(command.value("--reasoning_parser").value_or(""));
    ServiceOptions result;
    result.dialect = &dialect;
    result.engine = setup.engine;
    // vLLM 0.32.0 counts guesses only where it makes some.
    if (setup.cost->settings().speculation.tokens == 0)
        for (const char* guesses : {"drafted_tokens", "accepted_tokens"})
            result.engine.counters.erase(guesses);
    result.version = setup.version;
    result.served_names = setup.served_names;
    result.model = command.model;
    result.flags = command.flags;
    result.parameters = setup.parameters;
    result.api_key = command.value("--api-key").value_or("");
    result.metrics = is_on(dialect.metrics_needs);
    result.says_cached = is_on(dialect.cached_needs);
    result.reasons = !parser.empty();
    for (const auto& [path, needed] : setup.engine.between_runs)
        for (const auto& [name, value] : needed) {
            const char* set =
                std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): there is one thread
            result.can_reset = result.can_reset && set != nullptr && set == value;
        }
    if ((result.decodes = only_decodes(command)))
        (void)cache_transfer_seconds(*setup.cost, 1);  // or it does not serve
    result.loop = {options.seed, options.noise, options.time_scale, options.pace};
    result.faults = options.faults;
    return result;
}

Service::Service(asio::io_context& context, ServiceOptions options,
                 const servetune::CostModel& cost, Hooks hooks)
    : options_(std::move(options)),
      dialect_(*options_.dialect),
      tokenizer_(cost.target().model.vocabulary),
      hooks_(std::move(hooks)),
      started_at_(seconds_since_1970()),
      loop_(cost, options_.loop, [this](const servetune::TokenEvent& event) { deliver(event); }),
      timer_(context) {}

/// The loop's next step is done when it is due.
void Service::wake() {
    const std::optional<TimePoint> next = loop_.next();
    if (!next || (armed_ && *armed_ <= *next)) return;
    armed_ = next;
    timer_.expires_at(*next);
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
        if (cancelled) return;
        armed_.reset();
        loop_.run(Clock::now());
        if (loop_.out_of_memory()) hooks_.die("load_out_of_memory");
        wake();
    });
}

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
    if (fail_at_request()) return true;
    answer_faults_ = options_.faults.of_answer(requests_);
    CompletionRequest asked;
    if (const auto wrong = read_completion_request(dialect_, request.body, chat, tokenizer_, asked))
        refuse(exchange, *wrong);
    else if (const auto status = answer_faults_.http_status)
        refuse(exchange, {*status, "simengine was told to fail", "InternalServerError"});
    else if (const auto field = refused_field(request.body)) refuse(exchange, *field);
    else if (!serves(asked.model))
        refuse(exchange,
               {404, fmt::format("The model `{}` does not exist.", asked.model), "NotFoundError"});
    else if (const auto longer = too_long(dialect_, asked, loop_.cost().max_context_tokens()))
        refuse(exchange, *longer);
    else complete(asked, request.received, exchange);
    return true;
}

/// As strict servers refuse fields that they do not know.
std::optional<HttpRefusal> Service::refused_field(const std::string& body) const {
    if (answer_faults_.refused_fields.empty()) return std::nullopt;
    const auto object = OrderedJson::parse(body, nullptr, false);
    for (const std::string& field : answer_faults_.refused_fields) {
        if (!object.contains(field)) continue;
        if (answer_faults_.vague_refusals) return HttpRefusal{400, "Invalid request"};
        return HttpRefusal{422, "Extra inputs are not permitted: body." + field};
    }
    return std::nullopt;
}

/// True when there is nobody left to answer.
bool Service::fail_at_request() {
    ++requests_;
    const Faults& faults = options_.faults;
    if (requests_ == faults.die_at_requests ||
        (faults.die_in_flight > 0 && std::int64_t(pending_.size()) + 1 >= faults.die_in_flight))
        hooks_.die("died");
    if (requests_ != options_.faults.restart_mid_run) return false;
    pending_.clear();
    loop_.restart();
    tokens_ = events_ = finished_ = arrived_tokens_ = 0;
    observed_.clear();
    started_at_ = seconds_since_1970();
    hooks_.drop_all();
    return true;
}

void Service::complete(const CompletionRequest& asked, TimePoint received, Exchange& exchange) {
    const auto input = std::int64_t(asked.prompt.size());
    const std::uint64_t key = key_of(asked.prompt, options_.loop.seed);
    const auto [planned, by_length] = answer_length(asked, loop_.cost().max_context_tokens(), key);
    const std::int64_t other = answer_faults_.answer_tokens;
    const std::int64_t output =
        other > 0 ? other : std::min(planned, answer_faults_.abort_after.value_or(planned));
    if (const std::string refusal = loop_.refusal(input, output, options_.decodes);
        !refusal.empty())
        return refuse(exchange, {400, refusal});

    const std::size_t id = next_id_++;
    servetune::EngineRequest work{.id = id, .input_tokens = input, .output_tokens = output};
    if (asked.cache_prompt && loop_.cost().settings().prefix_cache) {
        std::vector<Token> all = asked.prompt;
        AnswerText(key).encode(output, tokenizer_, all);
        work.pieces = piece_names(all, std::size_t(servetune::EngineCore::prefix_piece_tokens));
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
    facts.finish_reason = answer_faults_.abort_after ? "abort"
                          : by_length && other == 0  ? "length"
                                                     : "stop";
    facts.says_cached = options_.says_cached;
    facts.faults = answer_faults_;
    Pending& pending =
        pending_.emplace(id, Pending{&exchange, asked.stream, AnswerWriter(dialect_, facts)})
            .first->second;
    pending.slower = answer_faults_.slower;
    pending.number = served_.size();
    most_in_flight_ = std::max(most_in_flight_, pending_.size());
    if (options_.loop.pace) served_.push_back({asked.label, received});
    exchange.set_work(id);
    // A pace counts from the receipt.
    TimePoint begins = options_.loop.pace ? received : Clock::now();
    if (options_.decodes) {
        work.prompt_is_computed = true;
        const double seconds =
            cache_transfer_seconds(loop_.cost(), input) / options_.loop.time_scale;
        begins = cache_arrived_ =
            std::max(begins, cache_arrived_) +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    loop_.submit(std::move(work), begins, pending.slower);
    wake();
    if (asked.stream) exchange.begin_stream();
}

void Service::gone(std::size_t work) {
    const auto found = pending_.find(work);
    if (found == pending_.end()) return;
    pending_.erase(found);
    loop_.cancel(work);
}

/// In seconds of this process, which `--time-scale` makes shorter than the engine's.
void Service::observe(Pending& pending, const servetune::TokenEvent& event) {
    const TimePoint now = Clock::now();
    const auto add = [this](const char* name, double value) {
        Observed& figure = observed_[name];
        figure.sum += value;
        ++figure.count;
    };
    const auto seconds = [](TimePoint from, TimePoint to) {
        return std::chrono::duration<double>(to - from).count();
    };
    if (event.first) add("first_token_seconds", seconds(pending.begun, pending.first = now));
    else add("token_gap_seconds", seconds(pending.last, now));
    pending.last = now;
    pending.output_tokens += event.tokens;
    if (!event.finished) return;
    const auto output = double(pending.output_tokens);
    add("latency_seconds", seconds(pending.begun, now));
    add("request_prompt_tokens", double(pending.writer.prompt_tokens()));
    add("request_generated_tokens", output);
    if (output > 1) add("per_token_seconds", seconds(pending.first, now) / (output - 1));
}

void Service::deliver(const servetune::TokenEvent& event) {
    tokens_ += event.tokens;
    if (options_.faults.die_at_tokens > 0 && tokens_ >= options_.faults.die_at_tokens)
        hooks_.die("died");
    if (options_.faults.stall_mid_stream > 0 && events_ >= options_.faults.stall_mid_stream) return;
    ++events_;
    const auto found = pending_.find(event.id);
    if (found == pending_.end()) return;
    Pending& pending = found->second;
    Exchange& exchange = *pending.exchange;
    if (event.first) {
        pending.cached = event.cached_tokens;
        if (options_.decodes) arrived_tokens_ += pending.writer.prompt_tokens();
    }
    observe(pending, event);
    bytes_.clear();
    if (pending.stream) pending.writer.tokens(bytes_, event.tokens, pending.cached);
    else if (event.finished) bytes_ = pending.writer.whole(pending.cached);
    const bool stream = pending.stream;
    if (options_.loop.pace && !bytes_.empty()) served_[pending.number].sent.push_back(Clock::now());
    if (event.finished) {
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
    if (path == "/simengine/requests") return json(served_json());
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
             {"created", std::int64_t(started_at_)},
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
                       {"processor_seconds", double(std::clock()) / CLOCKS_PER_SEC},
                       {"steps", loop_.counters().steps},
                       {"requests", requests_},
                       {"running", loop_.running()},
                       {"waiting", loop_.waiting()},
                       {"cache_use", loop_.cache_use()}}
        .dump();
}

std::string Service::served_json() const {
    const auto nanoseconds = [](TimePoint time) {
        return std::chrono::nanoseconds(time.time_since_epoch()).count();
    };
    OrderedJson all = OrderedJson::array();
    for (const ServedRequest& one : served_) {
        OrderedJson& object = all.emplace_back(OrderedJson{
            {"label", one.label}, {"received_ns", nanoseconds(one.received)}, {"sent_ns", {}}});
        for (const TimePoint time : one.sent) object["sent_ns"].push_back(nanoseconds(time));
    }
    return all.dump();
}

std::string Service::metrics_text() const {
    servetune::EngineCounters counters = loop_.counters();
    counters.prompt_tokens +=
        std::uint64_t(arrived_tokens_);  // engines count them, wherever they were computed
    return prometheus_text(dialect_, options_.engine.counters,
                           {.counters = counters,
                            .running = loop_.running(),
                            .waiting = loop_.waiting(),
                            .cache_use = loop_.cache_use(),
                            .finished = finished_,
                            .started_at = started_at_,
                            .model = shown_name(),
                            .observed = &observed_});
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
