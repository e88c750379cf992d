// SPDX-License-Identifier: Apache-2.0
#include "support/stream_server.hpp"

#include "support/answers.hpp"
#include "support/http.hpp"
#include "support/test.hpp"

#include <array>
#include <cerrno>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace servetune::test;

namespace {

/// A client that knows nothing of HTTP: what it sends, and what it has read up to the end of the
/// connection or of its patience.
class Client {
public:
    explicit Client(const StreamServer& server, long patience_ms = 20'000) {
        const timeval patience{patience_ms / 1000, patience_ms % 1000 * 1000};
        setsockopt(socket_.id(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        const sockaddr_in address = loopback(server.port());
        error =
            connect(socket_.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
                ? 0
                : errno;
    }
    void say(std::string_view bytes) const {
        REQUIRE(send(socket_.id(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
    void ask(const std::string& behave,
             const std::string& fields =
                 R"("stream":true,"max_tokens":4,"stream_options":{"include_usage":true})",
             bool chat = true) const {
        const std::string body = std::string(R"({"model":"any",)") +
                                 (chat ? R"("messages":[{"role":"user","content":"r7 two three"}],)"
                                       : R"("prompt":[5,6,7,8],)") +
                                 fields + "}";
        say(std::string("POST /v1/") + (chat ? "chat/" : "") +
            "completions HTTP/1.1\r\nHost: x\r\nX-Behave: " + behave +
            "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    /// Reads until what has come ends in `ending`; with an empty one until the connection ends or
    /// patience does.
    std::string read(std::string_view ending = "") {
        std::array<char, 65536> buffer{};
        std::string all;
        while (ending.empty() || !all.ends_with(ending)) {
            const ssize_t got = recv(socket_.id(), buffer.data(), buffer.size(), 0);
            error = got < 0 ? errno : 0;
            if (got <= 0) break;
            all.append(buffer.data(), static_cast<std::size_t>(got));
        }
        return all;
    }
    int error = 0;

private:
    Socket socket_;
};

constexpr std::string_view last_chunk = "0\r\n\r\n";
const std::string quick = "first=0.001,gap=0.0005,";

/// The whole answer to a stream of four tokens.
std::string streamed(const StreamServer& server, const std::string& behave, bool chat = true) {
    Client client(server);
    client.ask(quick + behave,
               R"("stream":true,"max_tokens":4,"stream_options":{"include_usage":true})", chat);
    return client.read(last_chunk);
}

/// The body of a chunked answer, and how many chunks it had.
std::pair<std::string, int> unchunked(const std::string& answer) {
    std::string body;
    int chunks = 0;
    for (std::size_t at = answer.find("\r\n\r\n") + 4; at < answer.size();) {
        const std::size_t size = std::stoul(answer.substr(at), nullptr, 16);
        at = answer.find("\r\n", at) + 2;
        body += answer.substr(at, size);
        at += size + 2;
        if (size > 0) ++chunks;
    }
    return {body, chunks};
}

std::size_t count(std::string_view text, std::string_view what) {
    std::size_t result = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos;
         at = text.find(what, at + what.size()))
        ++result;
    return result;
}

std::vector<std::int64_t> stamps(std::string text) {
    std::vector<std::int64_t> result;
    for (std::size_t at = 0; (at = text.find(" t0", at)) != std::string::npos; ++at)
        result.push_back(stamp_in(std::string_view(text).substr(at)));
    return result;
}

}  // namespace

TEST_CASE("stream server: a stream in vLLM's shape, and the truth about it") {
    StreamServer server;
    const std::string answer = streamed(server, "");
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.find("content-type: text/event-stream") != std::string::npos);
    const auto [body, chunks] = unchunked(answer);
    CHECK(chunks == 7);  // role, four tokens, usage, [DONE]
    CHECK(body.find(R"("delta":{"role":"assistant","content":""})") <
          body.find(R"("content":" t)"));
    CHECK(count(body, R"("finish_reason":"length")") == 1);
    CHECK(
        body.find(
            R"("choices":[],"usage":{"prompt_tokens":3,"total_tokens":7,"completion_tokens":4}})") !=
        std::string::npos);
    CHECK(body.ends_with("data: [DONE]\n\n"));
    REQUIRE(server.wait_for_ended(1, 20));
    const RequestTruth truth = server.truth().at(0);
    CHECK(stamps(body) == truth.chunk_sent_ns);
    CHECK(truth.chunk_sent_ns.size() == 4);
    CHECK(truth.chunk_sent_ns.front() - truth.received_ns >= 1'000'000);  // never early
    CHECK(truth.chunk_sent_ns.back() - truth.received_ns >= 2'500'000);
    CHECK(truth.end == "answered");
    CHECK(truth.label == "r7");
    CHECK(truth.prompt_tokens == 3);
    CHECK(truth.output_tokens == 4);
    CHECK(truth.body.find("r7 two three") != std::string::npos);
}

TEST_CASE(
    "stream server: completions, ids, answers that are not streamed, models, health, counters, "
    "truth") {
    StreamServer server({.behaviour = parse_behaviour("first=0.001,gap=0")});
    const std::string text = streamed(server, "", false);
    CHECK(count(text, R"("text":" t)") == 4);
    CHECK(text.find(R"("role")") == std::string::npos);
    CHECK(text.find(R"("prompt_tokens":4)") != std::string::npos);
    const HttpAnswer whole = http(
        server.port(), "/v1/chat/completions",
        R"({"model":"any","max_completion_tokens":3,"messages":[{"role":"user","content":[{"type":"text","text":"a b"}]}]})");
    CHECK(whole.status == 200);
    CHECK(stamps(whole.body).size() == 3);
    CHECK(whole.body.find(R"("completion_tokens":3)") != std::string::npos);
    CHECK(whole.body.find(R"("prompt_tokens":2)") != std::string::npos);
    CHECK(http(server.port(), "/v1/models").body.find(R"("id":"test")") != std::string::npos);
    CHECK(http(server.port(), "/health").status == 200);
    CHECK(http(server.port(), "/nowhere").status == 404);
    CHECK(http(server.port(), "/v1/completions", "{").status == 400);
    CHECK(http(server.port(), "/v1/chat/completions", R"({"model":"behave:crlff","messages":[]})")
              .body.find("unknown word 'crlff'") != std::string::npos);
    const std::string metrics = http(server.port(), "/metrics").body;
    CHECK(metrics.find("vllm:prompt_tokens_total{engine=\"0\",model_name=\"test\"} 6.0\n") !=
          std::string::npos);
    CHECK(metrics.find("vllm:generation_tokens_total{engine=\"0\",model_name=\"test\"} 7.0\n") !=
          std::string::npos);
    CHECK(metrics.find("finished_reason=\"length\",model_name=\"test\"} 2.0\n") !=
          std::string::npos);
    CHECK(http(server.port(), "/truth").body.find(R"("end":"answered")") != std::string::npos);
    CHECK(server.totals().most_in_flight == 1);
}

TEST_CASE(
    "stream server: connections are kept, requests may come in pieces or together, 100-continue is "
    "answered") {
    StreamServer server({.behaviour = parse_behaviour("first=0,gap=0")});
    Client client(server);
    client.ask("");
    client.ask("");
    CHECK(client.read(last_chunk).starts_with("HTTP/1.1 200"));
    REQUIRE(server.wait_for_ended(2, 20));
    CHECK(server.totals().connections == 1);
    Client piecemeal(server);
    piecemeal.say("POST /v1/completions HTTP/1.1\r\nExpect: 100-con");
    piecemeal.say("tinue\r\nContent-Length: 40\r\n\r\n");
    CHECK(piecemeal.read("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    piecemeal.say(R"({"model":"any","prompt":"a )");
    piecemeal.say(R"(b","stream":1})");
    CHECK(piecemeal.read("}").starts_with("HTTP/1.1 400"));  // stream is no boolean
}

TEST_CASE("stream server: no token is early, in lockstep or staggered") {
    for (const auto pace :
         {StreamServerOptions::Pace::lockstep, StreamServerOptions::Pace::staggered}) {
        StreamServer server({.pace = pace, .behaviour = parse_behaviour("first=0.001,gap=0.005")});
        std::deque<Client> clients;
        for (int i = 0; i < 3; ++i) clients.emplace_back(server).ask("");
        for (Client& client : clients) CHECK(stamps(client.read(last_chunk)).size() == 4);
        REQUIRE(server.wait_for_ended(3, 20));
        for (const RequestTruth& truth : server.truth()) {
            CHECK(truth.chunk_sent_ns.front() - truth.received_ns >= 1'000'000);
            CHECK(truth.chunk_sent_ns.back() - truth.received_ns >= 16'000'000);
        }
    }
}

TEST_CASE("stream server: what events hold") {
    StreamServer server;
    CHECK(count(streamed(server, "reasoning"), R"("delta":{"reasoning":" t)") == 4);
    CHECK(count(streamed(server, "reasoning_content"), R"("delta":{"reasoning_content":" t)") == 4);
    const std::string thinking = streamed(server, "reasoning,thinking=3");
    CHECK(count(thinking, R"({"reasoning":" t)") == 3);
    CHECK(count(thinking, R"({"content":" t)") == 1);
    CHECK(count(streamed(server, "tool_calls"),
                R"("tool_calls":[{"index":0,"function":{"arguments":" t)") == 4);
    CHECK(streamed(server, "no_role").find(R"("role")") == std::string::npos);
    CHECK(streamed(server, "role_early").find(R"("role")") != std::string::npos);
    CHECK(count(streamed(server, "empty_chunks=2"), R"("content":"")") == 1 + 8);
    const std::string several = streamed(server, "chunk_tokens=3");
    CHECK(stamps(several).size() == 2);
    CHECK(several.find(R"("completion_tokens":4)") != std::string::npos);
    CHECK(streamed(server, "utf8").find("\u00e9\u6f22\U0001f600 t") != std::string::npos);
    CHECK(streamed(server, "big").size() > 10'000'000);
    CHECK(streamed(server, "no_usage").find("usage") == std::string::npos);
    const std::string inside = streamed(server, "usage_in_finish");
    CHECK(count(inside, "\"usage\"") == 1);
    CHECK(inside.find("\"usage\"") < inside.find("[DONE]"));
    CHECK(inside.find("\"choices\":[]") == std::string::npos);
    CHECK(count(streamed(server, "continuous_usage"), "\"usage\"") == 6);
    CHECK(streamed(server, "cached=2").find(R"("prompt_tokens_details":{"cached_tokens":2}})") !=
          std::string::npos);
    CHECK(streamed(server, "finish_apart")
              .find(R"("delta":{"content":""},"logprobs":null,"finish_reason":"length")") !=
          std::string::npos);
    CHECK(streamed(server, "finish_stop").find(R"("finish_reason":"stop")") != std::string::npos);
    CHECK(streamed(server, "no_finish").find(R"("finish_reason":"l)") == std::string::npos);
    const std::string fewer = streamed(server, "fewer=1");
    CHECK(stamps(fewer).size() == 3);
    CHECK(fewer.find(R"("finish_reason":"stop")") != std::string::npos);
    CHECK(stamps(streamed(server, "tokens=6")).size() == 6);
    CHECK(streamed(server, "no_done").find("DONE") == std::string::npos);
}

TEST_CASE("stream server: how events and bytes are written") {
    StreamServer server;
    const std::string crlf = unchunked(streamed(server, "crlf")).first;
    CHECK(count(crlf, "\r\n\r\n") == 7);
    CHECK(count(crlf, "\n") == 14);
    CHECK(count(unchunked(streamed(server, "cr")).first, "}\r\rdata") == 6);
    CHECK(count(streamed(server, "no_space"), "data:{") == 6);
    CHECK(count(streamed(server, "spaced_json"), R"("delta": {"content": " t)") == 4);
    CHECK(count(streamed(server, "multiline"), ",\ndata: ") == 6);
    CHECK(streamed(server, "fields").find("event: message\nid: 0\ndata: {") != std::string::npos);
    CHECK(count(streamed(server, "ping"), ": ping\n\n") == 7);
    const std::string together = streamed(server, "coalesce=4");
    CHECK(stamps(together).size() == 4);
    for (const char* behave :
         {"http_chunks=5", "http_chunks=1,utf8,split", "split", "split=3,utf8,crlf",
          "split=100,drip=0.0005", "slow_headers=0.0001"}) {
        INFO(behave);
        const auto [body, chunks] = unchunked(streamed(server, behave));
        CHECK(stamps(body).size() == 4);
        CHECK(body.find("[DONE]") != std::string::npos);
        if (std::string_view(behave).starts_with("http_chunks")) CHECK(chunks > 250);
    }
    Client whole(server);
    whole.ask(quick + "content_length");
    const std::string answer = whole.read("[DONE]\n\n");
    const std::size_t length = std::stoul(answer.substr(answer.find("content-length: ") + 16));
    CHECK(answer.size() - answer.find("\r\n\r\n") - 4 == length);
    CHECK(answer.find("transfer-encoding") == std::string::npos);
    CHECK(stamps(answer).size() == 4);
    for (const auto& [behave, promise] :
         {std::pair{"until_close", true}, {"connection_close", true}, {"drop", false}}) {
        INFO(behave);
        Client client(server);
        client.ask(quick + behave);
        const std::string closed = client.read();
        CHECK(client.error == 0);  // the end of the connection, not of patience
        CHECK((closed.find("connection: close") != std::string::npos) == promise);
        CHECK(stamps(closed).size() == 4);
        CHECK((closed.find("transfer-encoding") == std::string::npos) ==
              (std::string_view(behave) == "until_close"));
    }
}

TEST_CASE("stream server: answers that are none, or break off") {
    StreamServer server;
    const auto asked = [&](const std::string& behave, int error = 0) {
        Client client(server);
        client.ask(quick + behave + ",drop");
        std::string answer = client.read();
        INFO(behave);
        CHECK(client.error == error);
        return answer;
    };
    CHECK(asked("status").starts_with("HTTP/1.1 500 "));
    CHECK(asked("status=429").starts_with("HTTP/1.1 429 "));
    const std::string redirect = asked("redirect");
    CHECK(redirect.starts_with("HTTP/1.1 302 "));
    CHECK(redirect.find("location: " + server.url() + "/elsewhere\r\n") != std::string::npos);
    CHECK(asked("html").find("<html>") != std::string::npos);
    CHECK(asked("not_sse").find("text/event-stream") != std::string::npos);
    CHECK_FALSE(asked("garbage").starts_with("HTTP"));
    const std::string reset = asked("reset=3,gap=0.02", ECONNRESET);
    CHECK(stamps(reset).size() == 3);
    CHECK(stamps(asked("close=1")).size() == 1);
    CHECK(stamps(asked("close")).size() == 2);
    const std::string truncated = asked("truncated=1");
    CHECK(stamps(truncated).size() == 1);
    CHECK_FALSE(truncated.ends_with("\n\n\r\n"));
    CHECK_FALSE(truncated.ends_with(last_chunk));
    const std::string failed = asked("error_event=1");
    CHECK(failed.find(R"(data: {"error":{"message":"the engine died")") > failed.find(" t0"));
    CHECK(failed.starts_with("HTTP/1.1 200 "));
    for (const auto& [behave, tokens, begins] :
         {std::tuple{"silent", 0, false}, {"stall=0", 0, true}, {"stall=2", 2, true}}) {
        INFO(behave);
        Client client(server, 200);
        client.ask(quick + behave);
        const std::string answer = client.read();
        CHECK(client.error == EAGAIN);  // patience has ended, the connection has not
        CHECK(answer.empty() != begins);
        CHECK(stamps(answer).size() == static_cast<std::size_t>(tokens));
    }
    REQUIRE(server.wait_for_ended(14, 20));
    std::vector<std::string> ends;
    for (const RequestTruth& truth : server.truth()) ends.push_back(truth.end);
    CHECK(ends == std::vector<std::string>{"status", "status", "redirect", "html", "not_sse",
                                           "garbage", "reset", "close", "close", "truncated",
                                           "error_event", "silent", "stall", "stall"});
}

TEST_CASE(
    "stream server: a share of the requests, a server that loads, one that refuses, one that "
    "goes") {
    StreamServer server({.behaviour = parse_behaviour("status=500,share=0.25,first=0,gap=0")});
    int failed = 0;
    for (int i = 0; i < 8; ++i)
        if (http(server.port(), "/v1/completions", R"({"model":"any","prompt":"a"})").status == 500)
            ++failed;
    CHECK(failed == 2);
    const StreamServer loading({.behaviour = parse_behaviour("loading=1000")});
    CHECK(http(loading.port(), "/health").status == 503);
    CHECK(http(loading.port(), "/v1/models").status == 503);
    const StreamServer refusing({.listening = false});
    CHECK(Client(refusing).error == ECONNREFUSED);
    StreamServer going;
    Client client(going);
    client.ask("first=1000,role_early");
    CHECK(client.read("\n\n\r\n").find("role") != std::string::npos);
    going.stop();
    CHECK(going.truth().at(0).end == "unfinished");
    CHECK(Client(going).error == ECONNREFUSED);
}

TEST_CASE("stream server: the words of a behaviour") {
    CHECK(parse_behaviour("reset=3,crlf").reset == 3);
    CHECK(parse_behaviour("crlf").crlf == 1);
    CHECK_FALSE(parse_behaviour("").crlf);
    CHECK(merged(parse_behaviour("gap=1,crlf"), parse_behaviour("gap=2")).gap == 2);
    CHECK(message_of<std::invalid_argument>([] {
              (void)parse_behaviour("crlf,rest");
          }).starts_with("unknown word 'rest'; known: first gap"));
    CHECK(message_of<std::invalid_argument>([] { (void)parse_behaviour("gap"); }) ==
          "'gap' wants a number: seconds between token chunks");
    CHECK(message_of<std::invalid_argument>([] { (void)parse_behaviour("gap=-1"); }) ==
          "'gap' wants a number >= 0, got '-1'");
}
