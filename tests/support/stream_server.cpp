// SPDX-License-Identifier: Apache-2.0
#include "support/stream_server.hpp"

#include "support/answers.hpp"
#include "support/http.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <utility>

namespace servetune::test {

namespace {

using Pace = StreamServerOptions::Pace;
using Json = nlohmann::json;
using namespace std::string_view_literals;
constexpr std::int64_t second_ns = 1'000'000'000;

std::int64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * second_ns + time.tv_nsec;
}

std::int64_t in_ns(double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); }

class Descriptor {
public:
    explicit Descriptor(int id) : id_(id) {
        if (id_ < 0) throw std::runtime_error(std::string("stream server: ") + std::strerror(errno));
    }
    ~Descriptor() { close(id_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int id() const { return id_; }

private:
    int id_;
};

/// How late tokens were, in buckets of a quarter of a power of two.
class Lateness {
public:
    void add(std::int64_t ns) {
        const auto bucket = ns < 1 ? 0.0 : 4 * std::log2(static_cast<double>(ns));
        ++counts_[std::min(counts_.size() - 1, static_cast<std::size_t>(bucket))];
    }
    void clear() {
        for (auto& count : counts_) count = 0;
    }
    [[nodiscard]] double quantile_seconds(double share) const {
        std::uint64_t all = 0, seen = 0;
        for (const auto& count : counts_) all += count;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            if ((seen += counts_[i]) > 0 && static_cast<double>(seen) >= share * static_cast<double>(all))
                return std::exp2(static_cast<double>(i + 1) / 4) / 1e9;
        return 0;
    }

private:
    std::array<std::atomic<std::uint64_t>, 180> counts_{};
};

struct HttpRequest {
    std::string method, path, head, body, behave;
    bool close = false;
};

/// An answer under way.
struct Answer {
    CompletionRequest request;
    AnswerWriter writer;
    RequestTruth truth;
    std::int64_t gap_ns = 0;
    std::int64_t chunk_tokens = 1, chunks = 0, coalesce = 1;
    std::int64_t chunks_sent = 0, tokens_sent = 0;
    const BehaviourWord* breaks = nullptr;
    std::int64_t break_at = 0;
    bool begun = false, close_after = false, endless = false;
    std::uint64_t serial = 0;
};

struct Connection {
    enum class After { keep, close, reset };
    int id = -1;
    std::uint32_t slot = 0, generation = 0;
    std::string in, out;
    std::size_t out_at = 0;
    bool wants_out = false, continued = false;
    After after_out = After::keep;
    std::size_t slow_left = 0, slow_bytes = 1;  ///< how much of the answer is still written piece by piece
    std::int64_t slow_pause_ns = 0;
    bool pausing = false;
    bool ready = false;            ///< in the queue of those whose input is looked at
    std::int64_t received_ns = 0;  ///< the last read
    std::unique_ptr<Answer> answer{};
};

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

/// The value of a header, without spaces around it; empty when it is not there.
std::string header(std::string_view head, std::string_view name) {
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
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

/// What all loops share.
struct StreamServer::Shared {
    StreamServerOptions options;
    std::uint16_t port = 0;
    std::int64_t started_ns = now_ns();
    std::atomic<bool> stopping{false};
    std::atomic<std::uint64_t> connections{0}, requests{0}, completions{0}, in_flight{0}, most_in_flight{0}, prompt_tokens{0},
        generation_tokens{0}, ended_length{0}, ended_stop{0}, cached_tokens{0};
    Lateness lateness;
    mutable std::mutex mutex;
    mutable std::condition_variable ended;
    std::vector<RequestTruth> log;

    void keep(RequestTruth truth) {
        --in_flight;
        {
            const std::lock_guard lock(mutex);
            log.push_back(std::move(truth));
        }
        ended.notify_all();
    }
    [[nodiscard]] std::string metrics() const;
    [[nodiscard]] std::string truth_json() const;
};

class StreamServer::Loop {
public:
    Loop(Shared& shared, std::size_t index);
    ~Loop() { stop(); }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    void start() {
        thread_ = std::jthread([this] { run(); });
    }
    void stop();

private:
    struct Due {
        std::int64_t at;
        std::uint32_t slot;
        bool pause;            ///< the end of a pause between writes, not a token
        std::uint64_t serial;  ///< of the answer; of the connection when it is a pause
        bool operator>(const Due& other) const { return at > other.at; }
    };
    static constexpr std::uint64_t listener_tag = ~std::uint64_t{0}, timer_tag = listener_tag - 1, stop_tag = listener_tag - 2;
    static constexpr int most_sends_in_a_row = 256;  ///< before arriving requests are read, so that receipts are not stamped late

    void run();
    void watch(int id, std::uint64_t tag, std::uint32_t events, int operation = EPOLL_CTL_ADD) const;
    void send_what_is_due();
    void look_at_input();
    void arm();
    void accept_all();
    void read(Connection& connection);
    void process_input(Connection& connection);
    void handle(Connection& connection, const HttpRequest& request);
    void handle_completion(Connection& connection, const HttpRequest& request, bool chat);
    bool misanswer(Connection& connection, Answer& answer);
    void schedule_first(Connection& connection);
    void step(Connection& connection, std::int64_t due);
    void break_off(Connection& connection);
    void finish(Connection& connection);
    static std::string refusal(const Json& body, const Behaviour& behaviour, int& status);
    void end_answer(Connection& connection, std::string_view end, int status);
    void write(Connection& connection, std::string_view bytes);
    void flush(Connection& connection);
    void close_connection(Connection& connection);

    Shared& shared_;
    std::size_t index_;
    Socket listener_;
    Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
    Descriptor timer_{timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
    Descriptor stop_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<std::uint32_t> free_slots_;
    std::deque<std::pair<std::uint32_t, std::uint32_t>> ready_;  ///< slots and generations with input to look at
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::int64_t armed_at_ = 0;
    std::uint64_t next_serial_ = 1;
    std::string bytes_;        ///< of the answer that is being written
    std::vector<char> input_;  ///< of one read
    std::jthread thread_;
};

// ---- the loop ----

StreamServer::Loop::Loop(Shared& shared, std::size_t index) : shared_(shared), index_(index), input_(65536) {
    const int on = 1;
    setsockopt(listener_.id(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    fcntl(listener_.id(), F_SETFL, O_NONBLOCK);
    if (shared_.options.threads > 1) setsockopt(listener_.id(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    sockaddr_in address = loopback(shared_.port != 0 ? shared_.port : shared_.options.port);
    socklen_t size = sizeof address;
    if (bind(listener_.id(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(listener_.id(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        (shared_.options.listening && listen(listener_.id(), 8192) != 0))
        throw std::runtime_error("stream server: cannot listen on port " + std::to_string(shared_.options.port) + ": " +
                                 std::strerror(errno));
    shared_.port = ntohs(address.sin_port);
    if (shared_.options.listening) watch(listener_.id(), listener_tag, EPOLLIN);
    watch(timer_.id(), timer_tag, EPOLLIN);
    watch(stop_.id(), stop_tag, EPOLLIN);
}

void StreamServer::Loop::watch(int id, std::uint64_t tag, std::uint32_t events, int operation) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    epoll_ctl(epoll_.id(), operation, id, &event);
}

void StreamServer::Loop::stop() {
    const std::uint64_t one = 1;
    if (thread_.joinable() && ::write(stop_.id(), &one, sizeof one) == sizeof one) thread_.join();
    for (const auto& connection : connections_)
        if (connection->id >= 0) close_connection(*connection);
}

void StreamServer::Loop::run() {
    if (shared_.options.core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(static_cast<std::size_t>(shared_.options.core) + index_, &cores);
        sched_setaffinity(0, sizeof cores, &cores);
    }
    std::array<epoll_event, 512> events{};
    for (;;) {
        const bool busy = !ready_.empty() || (!due_.empty() && due_.top().at <= now_ns());
        if (!busy) arm();
        const int count = epoll_wait(epoll_.id(), events.data(), static_cast<int>(events.size()), busy ? 0 : -1);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            const std::uint64_t tag = event.data.u64;
            if (tag == stop_tag) return;
            if (tag == listener_tag) accept_all();
            if (tag >= stop_tag) continue;
            Connection& connection = *connections_[tag >> 32U];
            const auto same = [&] { return connection.id >= 0 && connection.generation == static_cast<std::uint32_t>(tag); };
            if (same() && (event.events & EPOLLOUT) != 0) flush(connection);
            if (same() && (event.events & ~std::uint32_t{EPOLLOUT}) != 0) read(connection);
        }
        send_what_is_due();
        look_at_input();
    }
}

/// Few at a time: of many requests that come at once, the last is stamped when it comes and not when the others have
/// been answered.
void StreamServer::Loop::look_at_input() {
    for (int i = 0; i < 16 && !ready_.empty(); ++i) {
        const auto [slot, generation] = ready_.front();
        ready_.pop_front();
        Connection& connection = *connections_[slot];
        if (connection.id < 0 || connection.generation != generation) continue;
        connection.ready = false;
        process_input(connection);
    }
}

void StreamServer::Loop::arm() {
    const std::int64_t next = due_.empty() ? 0 : due_.top().at;
    if (next == armed_at_ && next == 0) return;
    itimerspec when{};
    when.it_value = {next / second_ns, next % second_ns};
    timerfd_settime(timer_.id(), TFD_TIMER_ABSTIME, &when, nullptr);
    armed_at_ = next;
}

void StreamServer::Loop::send_what_is_due() {
    const std::int64_t until = now_ns();
    for (int sends = 0; sends < most_sends_in_a_row && !due_.empty() && due_.top().at <= until; ++sends) {
        const Due due = due_.top();
        due_.pop();
        Connection& connection = *connections_[due.slot];
        if (due.pause && connection.id >= 0 && connection.generation == due.serial) {
            connection.pausing = false;
            flush(connection);
        } else if (!due.pause && connection.answer && connection.answer->serial == due.serial) step(connection, due.at);
    }
}

void StreamServer::Loop::accept_all() {
    for (int id = 0; (id = accept4(listener_.id(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        const int on = 1;
        setsockopt(id, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (free_slots_.empty()) {
            free_slots_.push_back(static_cast<std::uint32_t>(connections_.size()));
            connections_.push_back(std::make_unique<Connection>());
            connections_.back()->slot = free_slots_.back();
        }
        Connection& connection = *connections_[free_slots_.back()];
        free_slots_.pop_back();
        const std::uint32_t slot = connection.slot, generation = connection.generation + 1;
        connection = Connection{};
        connection.id = id, connection.slot = slot, connection.generation = generation;
        ++shared_.connections;
        watch(id, std::uint64_t{slot} << 32U | generation, EPOLLIN);
    }
}

void StreamServer::Loop::close_connection(Connection& connection) {
    if (connection.answer) end_answer(connection, shared_.stopping ? "unfinished" : "abandoned", 200);
    if (connection.after_out == Connection::After::reset) {
        const linger at_once{1, 0};
        setsockopt(connection.id, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(connection.id);
    connection.id = -1;
    connection.in = {}, connection.out = {};
    free_slots_.push_back(connection.slot);
}

// ---- bytes ----

void StreamServer::Loop::read(Connection& connection) {
    for (;;) {
        const ssize_t got = recv(connection.id, input_.data(), input_.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) return close_connection(connection);
        connection.in.append(input_.data(), static_cast<std::size_t>(got));
        connection.received_ns = now_ns();
        if (!std::exchange(connection.ready, true)) ready_.emplace_back(connection.slot, connection.generation);
        if (static_cast<std::size_t>(got) < input_.size()) return;
    }
}

void StreamServer::Loop::write(Connection& connection, std::string_view bytes) {
    if (connection.out.empty() && connection.slow_left == 0) {
        const ssize_t sent = send(connection.id, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return close_connection(connection);
        if (sent == static_cast<ssize_t>(bytes.size())) {
            if (connection.after_out != Connection::After::keep) close_connection(connection);
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, sent)));
    }
    connection.out += bytes;
    flush(connection);
}

void StreamServer::Loop::flush(Connection& connection) {
    if (connection.pausing) return;
    bool wait = false;
    while (connection.out_at < connection.out.size() && !wait) {
        std::size_t size = connection.out.size() - connection.out_at;
        const bool slow = connection.slow_left > 0;
        if (slow) size = std::min(size, connection.slow_bytes);
        const ssize_t sent = send(connection.id, connection.out.data() + connection.out_at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return close_connection(connection);
        wait = sent < 0 || slow;
        if (sent < 0) continue;
        connection.out_at += static_cast<std::size_t>(sent);
        if (!slow) continue;
        connection.slow_left -= std::min(connection.slow_left, static_cast<std::size_t>(sent));
        if (connection.slow_pause_ns > 0 && connection.out_at < connection.out.size()) {
            connection.pausing = true;
            due_.push({now_ns() + connection.slow_pause_ns, connection.slot, true, connection.generation});
        }
    }
    const bool rest = connection.out_at < connection.out.size();
    if (!rest) {
        connection.out.clear();
        connection.out_at = 0;
        if (connection.after_out != Connection::After::keep) return close_connection(connection);
    }
    const bool wants_out = rest && !connection.pausing;
    if (wants_out != connection.wants_out) {
        connection.wants_out = wants_out;
        watch(connection.id, std::uint64_t{connection.slot} << 32U | connection.generation,
              wants_out ? EPOLLIN | std::uint32_t{EPOLLOUT} : std::uint32_t{EPOLLIN}, EPOLL_CTL_MOD);
    }
}

// ---- requests ----

void StreamServer::Loop::process_input(Connection& connection) {
    while (connection.id >= 0 && !connection.answer && connection.after_out == Connection::After::keep) {
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
        request.path = request.head.substr(space + 1, request.head.find(' ', space + 1) - space - 1);
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
        return answer(503, json, R"({"error":{"message":"Loading model","type":"unavailable_error","code":503}})");
    if (request.method == "GET" && request.path == "/health") return answer(200, text, "");
    if (request.method == "GET" && request.path == "/metrics") return answer(200, text, shared_.metrics());
    if (const auto& status = shared_.options.behaviour.models_status; status && request.path == "/v1/models") {
        const std::string where = *status >= 300 && *status < 400 ? "location: https://elsewhere.invalid/v1/models\r\n" : "";
        return write(connection, plain_answer(static_cast<int>(*status), json, R"({"error":{"message":"no list for you"}})", false, where));
    }
    if (request.method == "GET" && request.path == "/v1/models")
        return answer(200, json, R"({"object":"list","data":[{"id":"test","object":"model","owned_by":"test","max_model_len":131072}]})");
    const bool chat = request.path == "/v1/chat/completions";
    if (request.method != "POST" || (!chat && request.path != "/v1/completions")) return answer(404, json, R"({"detail":"Not Found"})");
    try {
        handle_completion(connection, request, chat);
    } catch (const std::exception& error) {
        connection.answer.reset();
        answer(400, json, Json{{"error", {{"message", error.what()}, {"type", "BadRequestError"}, {"code", 400}}}}.dump());
    }
}

void StreamServer::Loop::handle_completion(Connection& connection, const HttpRequest& http, bool chat) {
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
    if (request.model.starts_with("behave:")) behaviour = merged(behaviour, parse_behaviour(request.model.substr(7)));
    behaviour = merged(behaviour, parse_behaviour(http.behave));
    request.number = shared_.completions++;
    if (behaviour.share) {
        const auto number = static_cast<double>(request.number);
        if (std::floor((number + 1) * *behaviour.share) <= std::floor(number * *behaviour.share)) behaviour = well_behaved(behaviour);
    }
    int status = 0;
    if (const std::string words = refusal(body, behaviour, status); !words.empty())
        return write(connection, plain_answer(status, "application/json", words));
    std::int64_t tokens = static_cast<std::int64_t>(shared_.options.tokens);
    for (const char* key : {"max_tokens", "max_completion_tokens"})
        if (const auto asked = body.find(key); asked != body.end() && asked->is_number_integer()) tokens = asked->get<std::int64_t>();
    if (behaviour.tokens) tokens = static_cast<std::int64_t>(*behaviour.tokens);
    if (behaviour.fewer) tokens -= *behaviour.fewer < 0 ? tokens / 2 : static_cast<std::int64_t>(*behaviour.fewer);
    request.tokens = std::max<std::int64_t>(1, tokens);
    request.behaviour = behaviour;

    connection.answer = std::make_unique<Answer>(Answer{.request = request, .writer = AnswerWriter(request), .truth = {}});
    Answer& answer = *connection.answer;
    answer.gap_ns = in_ns(behaviour.gap.value_or(0.001));
    answer.chunk_tokens = std::max<std::int64_t>(1, static_cast<std::int64_t>(behaviour.chunk_tokens.value_or(1)));
    answer.chunks = (request.tokens + answer.chunk_tokens - 1) / answer.chunk_tokens;
    answer.coalesce =
        behaviour.content_length ? answer.chunks : std::max<std::int64_t>(1, static_cast<std::int64_t>(behaviour.coalesce.value_or(1)));
    for (const BehaviourWord& word : behaviour_words)
        if (word.name == "reset" || word.name == "close" || word.name == "stall" || word.name == "truncated" || word.name == "error_event")
            if (const auto at = behaviour.*word.field) {
                answer.breaks = &word;
                answer.break_at = *at < 0 ? answer.chunks / 2 : std::min(answer.chunks, static_cast<std::int64_t>(*at));
            }
    answer.close_after = http.close || behaviour.connection_close || behaviour.until_close || behaviour.drop;
    answer.serial = next_serial_++;
    RequestTruth& truth = answer.truth;
    truth.number = request.number;
    truth.path = http.path;
    if (shared_.options.keep_requests) truth.head = http.head, truth.body = http.body;
    truth.label = std::move(label);
    truth.received_ns = received;
    truth.prompt_tokens = request.prompt_tokens;
    truth.chunk_sent_ns.reserve(static_cast<std::size_t>(std::min<std::int64_t>(answer.chunks, 1 << 20)));
    const std::uint64_t in_flight = ++shared_.in_flight;
    for (std::uint64_t most = shared_.most_in_flight; most < in_flight && !shared_.most_in_flight.compare_exchange_weak(most, in_flight);) {
    }

    connection.slow_left = behaviour.split || behaviour.drip ? ~std::size_t{0} : 0;
    connection.slow_bytes = static_cast<std::size_t>(std::max(1.0, behaviour.split.value_or(1)));
    connection.slow_pause_ns = in_ns(behaviour.drip.value_or(0));
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
    const std::array<std::pair<const char*, std::optional<double>>, 3> fields{{{"ignore_eos", behaviour.no_ignore_eos},
                                                                               {"stream_options", behaviour.no_stream_options},
                                                                               {"max_tokens", behaviour.no_max_tokens}}};
    for (const auto& [field, refused] : fields) {
        if (!refused || !body.contains(field)) continue;
        status = static_cast<int>(*refused);
        if (behaviour.vague) return R"({"detail":"Invalid request"})";
        return Json{{"detail", {{{"type", "extra_forbidden"}, {"loc", {"body", field}}, {"msg", "Extra inputs are not permitted"}}}}}
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
                   plain_answer(status, "application/json", R"({"error":{"message":"the engine refuses","type":"error"}})"), false);
    }
    if (behaviour.redirect)
        return say(
            "redirect", 302,
            plain_answer(302, "text/plain", "", false, "location: http://127.0.0.1:" + std::to_string(shared_.port) + "/elsewhere\r\n"),
            false);
    if (behaviour.html)
        return say("html", 200,
                   plain_answer(200, "text/html; charset=utf-8", "<!DOCTYPE html>\n<html><body><h1>Welcome to nginx!</h1></body></html>\n"),
                   false);
    if (behaviour.not_sse)
        return say("not_sse", 200, plain_answer(200, "text/event-stream", "hello\n{\"choices\":[]}\n\nwhat is this: \xff\xfe\n\n"), false);
    if (behaviour.garbage) return say("garbage", 0, "\x16\x03\x01\x02\x00SSH-2.0-nobody\r\n\r\n\x00\x01garbage"sv, true);
    if (behaviour.silent) {
        answer.truth.end = "silent";
        return true;  // nothing is due
    }
    return false;
}

// ---- answers ----

void StreamServer::Loop::schedule_first(Connection& connection) {
    Answer& answer = *connection.answer;
    const Behaviour& behaviour = answer.request.behaviour;
    std::int64_t due = answer.truth.received_ns + in_ns(behaviour.first.value_or(0.005));
    if (shared_.options.pace == Pace::staggered) {
        // Multiples of the golden ratio spread evenly, however many there are.
        const double share = static_cast<double>(answer.request.number) * 0.6180339887498949;
        due += in_ns((share - std::floor(share)) * static_cast<double>(answer.gap_ns) / 1e9);
    } else if (shared_.options.pace == Pace::lockstep && answer.gap_ns > 0) {
        const std::int64_t since = due - shared_.started_ns;
        due = shared_.started_ns + (since + answer.gap_ns - 1) / answer.gap_ns * answer.gap_ns;
    }
    if (!answer.request.stream || behaviour.content_length) due += (answer.chunks - 1) * answer.gap_ns;
    due_.push({due, connection.slot, false, answer.serial});
}

void StreamServer::Loop::step(Connection& connection, std::int64_t due) {
    Answer& answer = *connection.answer;
    if (answer.endless) {
        bytes_.clear();
        answer.writer.comment(bytes_);
        due_.push({now_ns() + in_ns(*answer.request.behaviour.endless), connection.slot, false, answer.serial});
        return write(connection, bytes_);
    }
    if (answer.breaks != nullptr && answer.chunks_sent >= answer.break_at) return break_off(connection);
    bytes_.clear();
    const std::int64_t now = now_ns();
    shared_.lateness.add(now - due);
    const Behaviour& behaviour = answer.request.behaviour;
    const bool whole = !answer.request.stream || behaviour.content_length;
    if (whole && answer.breaks != nullptr) return break_off(connection);
    if (!answer.request.stream) {
        answer.writer.whole(bytes_, now);
        answer.tokens_sent = answer.request.tokens;
        answer.truth.chunk_sent_ns.push_back(now);
        shared_.generation_tokens += static_cast<std::uint64_t>(answer.tokens_sent);
        return finish(connection);
    }
    if (!std::exchange(answer.begun, true) && answer.request.chat && !behaviour.no_role && (!behaviour.role_early || whole))
        answer.writer.role(bytes_);
    for (std::int64_t i = 0; i < answer.coalesce && answer.chunks_sent < answer.chunks; ++i) {
        if (answer.breaks != nullptr && answer.chunks_sent >= answer.break_at) break;
        const std::int64_t tokens = std::min(answer.chunk_tokens, answer.request.tokens - answer.tokens_sent);
        const std::int64_t stamp = i == 0 ? now : now_ns();
        answer.tokens_sent += tokens;
        ++answer.chunks_sent;
        answer.truth.chunk_sent_ns.push_back(stamp);
        answer.writer.token(bytes_, stamp, tokens, answer.tokens_sent);
        shared_.generation_tokens.fetch_add(static_cast<std::uint64_t>(tokens), std::memory_order_relaxed);
    }
    if (answer.chunks_sent == answer.chunks && answer.breaks == nullptr) return finish(connection);
    std::int64_t next = due + answer.gap_ns * answer.coalesce;
    if (next < now)
        next = shared_.options.pace == Pace::lockstep && answer.gap_ns > 0 ? now + answer.gap_ns - (now - due) % answer.gap_ns : now;
    due_.push({next, connection.slot, false, answer.serial});
    write(connection, bytes_);
}

void StreamServer::Loop::break_off(Connection& connection) {
    Answer& answer = *connection.answer;
    const std::string_view word = answer.breaks->name;
    bytes_.clear();
    const bool stream = answer.request.stream && !answer.request.behaviour.content_length;
    if (stream && !answer.begun && answer.request.chat && !answer.request.behaviour.no_role && !answer.request.behaviour.role_early &&
        word != "reset")
        answer.writer.role(bytes_);
    if (word == "stall") {
        answer.truth.end = word;
        return write(connection, bytes_);  // and nothing is due any more
    }
    if (word == "error_event") {
        if (stream) answer.writer.error(bytes_), answer.writer.close_body(bytes_);
        else
            bytes_ =
                plain_answer(200, "application/json", R"({"error":{"message":"the engine died","type":"InternalServerError","code":500}})");
        if (answer.close_after) connection.after_out = Connection::After::close;
    } else {
        if (word == "truncated" && stream) answer.writer.half_event(bytes_);
        else if (word == "truncated")
            bytes_ = plain_answer(200, "application/json", std::string(400, ' ')), bytes_.resize(bytes_.size() - 390),
            bytes_ += R"({"choices":)";
        connection.after_out = word == "reset" ? Connection::After::reset : Connection::After::close;
    }
    end_answer(connection, word, 200);
    if (bytes_.empty() && connection.out.empty()) return close_connection(connection);
    write(connection, bytes_);
    if (connection.id < 0) return;
    connection.received_ns = now_ns();
    process_input(connection);
}

void StreamServer::Loop::finish(Connection& connection) {
    Answer& answer = *connection.answer;
    if (answer.request.stream) {
        answer.writer.end(bytes_);
        if (answer.request.behaviour.endless) {
            ++shared_.ended_length;
            answer.endless = true;
            answer.truth.end = "endless";
            due_.push({now_ns() + in_ns(*answer.request.behaviour.endless), connection.slot, false, answer.serial});
            return write(connection, bytes_);
        }
        if (answer.request.behaviour.content_length) {
            std::string head;
            answer.writer.head(head, static_cast<std::int64_t>(bytes_.size()));
            bytes_.insert(0, head);
        }
        answer.writer.close_body(bytes_);
    }
    ++(answer.writer.finish_reason() == "stop" ? shared_.ended_stop : shared_.ended_length);
    if (answer.close_after) connection.after_out = Connection::After::close;
    end_answer(connection, "answered", 200);
    write(connection, bytes_);
    if (connection.id < 0) return;
    connection.received_ns = now_ns();
    process_input(connection);
}

void StreamServer::Loop::end_answer(Connection& connection, std::string_view end, int status) {
    RequestTruth truth = std::move(connection.answer->truth);
    truth.output_tokens = connection.answer->tokens_sent;
    connection.answer.reset();
    if (truth.end.empty()) truth.end = end;
    truth.status = status;
    truth.done_ns = now_ns();
    shared_.keep(std::move(truth));
}

// ---- what the server knows ----

std::string StreamServer::Shared::metrics() const {
    std::string out;
    const auto add = [&](std::string_view name, std::string_view type, double value,
                         std::string_view labels = R"(engine="0",model_name="test")") {
        out += "# TYPE " + std::string(name) + " " + std::string(type) + "\n" + std::string(name) + "{" + std::string(labels) + "} " +
               Json(value).dump() + "\n";
    };
    add("vllm:num_requests_running", "gauge", static_cast<double>(in_flight));
    add("vllm:num_requests_waiting", "gauge", 0);
    add("vllm:num_preemptions_total", "counter", 0);
    add("vllm:prefix_cache_queries_total", "counter", static_cast<double>(prompt_tokens));
    add("vllm:prefix_cache_hits_total", "counter", static_cast<double>(cached_tokens));
    add("vllm:prompt_tokens_total", "counter", static_cast<double>(prompt_tokens));
    add("vllm:generation_tokens_total", "counter", static_cast<double>(generation_tokens));
    add("vllm:request_success_total", "counter", static_cast<double>(ended_length),
        R"(engine="0",finished_reason="length",model_name="test")");
    out += R"(vllm:request_success_total{engine="0",finished_reason="stop",model_name="test"} )" +
           Json(static_cast<double>(ended_stop)).dump() + "\n";
    return out;
}

std::string StreamServer::Shared::truth_json() const {
    Json requests_json = Json::array();
    const std::lock_guard lock(mutex);
    for (const RequestTruth& truth : log)
        requests_json.push_back({{"number", truth.number},
                                 {"path", truth.path},
                                 {"label", truth.label},
                                 {"end", truth.end},
                                 {"status", truth.status},
                                 {"received_ns", truth.received_ns},
                                 {"done_ns", truth.done_ns},
                                 {"chunk_sent_ns", truth.chunk_sent_ns},
                                 {"prompt_tokens", truth.prompt_tokens},
                                 {"output_tokens", truth.output_tokens}});
    return Json{{"requests", std::move(requests_json)},
                {"connections", connections.load()},
                {"most_in_flight", most_in_flight.load()},
                {"late_p50_seconds", lateness.quantile_seconds(0.5)},
                {"late_p99_seconds", lateness.quantile_seconds(0.99)}}
        .dump();
}

StreamServer::StreamServer(const StreamServerOptions& options) : shared_(std::make_unique<Shared>()) {
    shared_->options = options;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options.threads); ++i) loops_.push_back(std::make_unique<Loop>(*shared_, i));
    for (const auto& loop : loops_) loop->start();
}

StreamServer::~StreamServer() { stop(); }

void StreamServer::stop() {
    shared_->stopping = true;
    loops_.clear();
}

std::uint16_t StreamServer::port() const { return shared_->port; }
std::string StreamServer::url() const { return "http://127.0.0.1:" + std::to_string(shared_->port); }

std::vector<RequestTruth> StreamServer::truth() const {
    const std::lock_guard lock(shared_->mutex);
    std::vector<RequestTruth> result = shared_->log;
    std::sort(result.begin(), result.end(), [](const RequestTruth& a, const RequestTruth& b) { return a.number < b.number; });
    return result;
}

ServerTotals StreamServer::totals() const {
    const std::lock_guard lock(shared_->mutex);
    const Shared& shared = *shared_;
    return {shared.connections,   shared.requests,          shared.completions,
            shared.log.size(),    shared.in_flight,         shared.most_in_flight,
            shared.prompt_tokens, shared.generation_tokens, shared.ended_length + shared.ended_stop};
}

bool StreamServer::wait_for_ended(std::uint64_t count, double seconds) const {
    std::unique_lock lock(shared_->mutex);
    return shared_->ended.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return shared_->log.size() >= count; });
}

}  // namespace servetune::test
