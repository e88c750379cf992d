// SPDX-License-Identifier: Apache-2.0
// The load generator against simengine at a known pace, with its faults, and against given bytes:
// the right numbers or the right error, never a wrong number.
#include "servetune/detail/load/load_generator.hpp"
#include "load/event_loop.hpp"
#include "support/canned_server.hpp"
#include "support/stand_in.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "load/http.hpp"

#include "base/url.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"
#include "servetune/load_test.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

Endpoint endpoint_of(const std::string& url) {
    Endpoint endpoint{url, "m"};
    endpoint.counters = {{"prompt_tokens", "vllm:prompt_tokens_total"},
                         {"generated_tokens", "vllm:generation_tokens_total"}};
    return endpoint;
}
Endpoint endpoint_of(const StandIn& server) { return endpoint_of(server.url()); }

std::vector<PlannedRequest> plan_of(std::size_t count, std::int64_t output_tokens = 6) {
    std::vector<PlannedRequest> plan(count);
    for (std::size_t i = 0; i < count; ++i) {
        plan[i].text = "r" + std::to_string(i) + " two three";
        plan[i].output_tokens = output_tokens;
    }
    return plan;
}

/// Of the chat prompts of `plan_of`: "r", the number, "two", "three".
constexpr std::int64_t prompt_tokens = 4 + StandIn::template_tokens;

Arrival closed(std::int64_t in_flight) {
    return {.kind = Arrival::Kind::concurrency, .in_flight = in_flight};
}

void check_succeeded(const std::vector<RequestRecord>& records) {
    for (const RequestRecord& record : records) {
        INFO(record.error);
        CHECK(record.succeeded());
    }
}

LoadTest load_test_of(const Dataset& dataset, std::size_t requests, std::int64_t in_flight) {
    LoadTest test;
    test.workload.name = "w";
    test.workload.dataset = dataset;
    test.workload.requests = requests;
    test.workload.arrival = closed(in_flight);
    test.workload.ignore_eos = true;
    test.salt = 7;
    return test;
}

/// One request, six tokens asked for.
RequestRecord ask(const std::string& url, double patience_seconds = 10) {
    Endpoint endpoint = endpoint_of(url);
    endpoint.metrics_path.clear();
    return generate_load(endpoint, plan_of(1), {},
                         {.request_timeout_seconds = 3 * patience_seconds,
                          .stall_timeout_seconds = patience_seconds,
                          .ignore_eos = true,
                          .warm_connections = false})
        .records[0];
}

/// Two pieces of a stream: three tokens, then three more, the counts and the end.
const std::string three_tokens = [] {
    std::string text;
    for (int i = 0; i < 3; ++i)
        text += "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" w\"}}]}\n\n";
    return text;
}();
const std::string rest =
    three_tokens +
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}],"
    "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":6}}\n\ndata: [DONE]\n\n";
const std::string stream_head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
const std::string chunked_head = stream_head + "Transfer-Encoding: chunked\r\n\r\n";

/// In HTTP chunks of so many bytes.
std::string in_chunks(std::string text, std::size_t size) {
    std::string result;
    for (; !text.empty(); text.erase(0, size)) {
        char length[20];
        std::snprintf(length, sizeof length, "%zx\r\n", std::min(size, text.size()));
        result += length + text.substr(0, size) + "\r\n";
    }
    return result;
}

}  // namespace

TEST_CASE("load: an answer reads the same however its bytes are sent") {
    const std::string all = three_tokens + rest;
    const std::string length = "Content-Length: " + std::to_string(all.size()) + "\r\n\r\n";
    using Then = Canned::Then;
    for (const Canned& canned :
         {Canned{chunked_head + in_chunks(all, 7) + "0\r\n\r\n"},
          Canned{chunked_head + in_chunks(all, 1) + "0\r\n\r\n"},
          Canned{chunked_head + in_chunks(all, 60) + "0\r\n\r\n", Then::keep, 1},
          Canned{chunked_head + in_chunks(all, 60) + "0\r\n\r\n", Then::keep, 5},
          Canned{stream_head + "\r\n" + all, Then::close},
          Canned{stream_head + "Connection: close\r\n" + length + all, Then::close},
          Canned{stream_head + length + all}}) {
        INFO(canned.bytes.substr(0, 200) << " by " << canned.piece);
        const CannedServer server(canned);
        const RequestRecord record = ask(server.url());
        INFO(record.error);
        CHECK(record.end == RequestEnd::success);
        CHECK(record.chunks == 6);
        CHECK(record.gaps.size() == 5);
        CHECK(record.output_tokens == 6);
        CHECK(record.input_tokens == 3);
        REQUIRE(record.first_token);
        CHECK(*record.last_token >= *record.first_token);
        // What comes in one read says that its times could not be seen.
        if (canned.piece > 1000) CHECK(record.coalesced_chunks > 0);
    }
    std::string big = all;
    big.insert(big.find(" w"), std::string(10'000'000, 'x'));
    const CannedServer server({stream_head + "\r\n" + big, Then::close});
    CHECK(ask(server.url()).chunks == 6);
}

TEST_CASE("load: an engine's answers: chat and completions, streamed and whole, tokens in pairs") {
    const StandIn server({.first = 0.005, .gap = 0.002});
    Endpoint endpoint = endpoint_of(server);
    const auto record_of = [](const Endpoint& asked) {
        return generate_load(asked, plan_of(1), {}, {.ignore_eos = true}).records[0];
    };
    const RequestRecord chat = record_of(endpoint);
    CHECK(chat.end == RequestEnd::success);
    CHECK(chat.chunks == 6);
    CHECK(chat.gaps.size() == 5);
    CHECK(chat.output_tokens == 6);
    CHECK(chat.input_tokens == prompt_tokens);
    CHECK(*chat.first_token - chat.sent >= 0.004);
    endpoint.stream = false;
    const RequestRecord whole = record_of(endpoint);
    CHECK(whole.end == RequestEnd::success);
    CHECK(whole.output_tokens == 6);
    CHECK_FALSE(whole.first_token);
    endpoint.stream = true;
    endpoint.api = Endpoint::Api::completions;
    CHECK(record_of(endpoint).end == RequestEnd::success);
    CHECK(record_of(endpoint).chunks == 6);
    const StandIn pairs({.chunk_tokens = 2});
    const RequestRecord paired = record_of(endpoint_of(pairs));
    CHECK(paired.chunks == 3);
    CHECK(paired.output_tokens == 6);
}

TEST_CASE("load: what is no answer, or breaks off, is an error of its kind") {
    using Then = Canned::Then;
    const auto record = [](const Canned& canned) {
        const CannedServer server(canned);
        return ask(server.url(), 0.5);
    };
    const auto end = [&](const Canned& canned) {
        return std::string(name_in(request_ends, record(canned).end));
    };
    const std::string three = chunked_head + in_chunks(three_tokens, 1000);
    CHECK(end(answer(500, "{\"error\":{\"message\":\"no\"}}")) == "http_error");
    CHECK(end(answer(302, "", "Location: http://127.0.0.1:1/elsewhere\r\n")) == "http_error");
    CHECK(end(answer(200, "<html></html>", "Content-Type: text/html\r\n")) == "malformed");
    CHECK(end(answer(200, "hello\n{\"choices\":[]}\n\n\xff\xfe\n\n",
                     "Content-Type: text/event-stream\r\n")) == "truncated");
    CHECK(end({std::string("\x16\x03\x01\x02\x00SSH-2.0-nobody\r\n\r\n\x00\x01", 25),
               Then::close}) == "malformed");
    CHECK(end({"", Then::wait}) == "stalled");
    CHECK(end({three, Then::reset}) == "reset");
    CHECK(end({three, Then::close}) == "reset");
    CHECK(end({three, Then::wait}) == "stalled");
    CHECK(end({three + "20\r\ndata: {\"choi", Then::close}) == "reset");
    const RequestRecord broken = record({three, Then::reset});
    CHECK(broken.chunks == 3);  // what was seen is kept, and is no success
    CHECK_FALSE(broken.output_tokens);

    const StandIn late({.first = 30});
    CHECK(ask(late.url(), 0.5).end == RequestEnd::stalled);
    const StandIn slow({.gap = 0.35});
    CHECK(ask(slow.url(), 0.5).end == RequestEnd::timed_out);
    const CannedServer loading(answer(503, "{}"));
    CHECK(ask(loading.url()).error.starts_with("status 503"));
    CHECK(ask(nobody_listens()).end == RequestEnd::not_connected);
}

TEST_CASE("load: a server that leaves each connection after one answer loses no request") {
    const CannedServer server(
        {chunked_head + in_chunks(rest, 1000) + "0\r\n\r\n", Canned::Then::leave});
    Endpoint endpoint = endpoint_of(server.url());
    endpoint.metrics_path.clear();
    const LoadRun run = generate_load(endpoint, plan_of(64), closed(8));
    check_succeeded(run.records);
}

TEST_CASE("load: one in twenty fails, the others are not touched by it") {
    const StandIn server({.first = 0.002, .gap = 0.0005, .faults = {"http_status", "every=20"}});
    const LoadRun run =
        generate_load(endpoint_of(server), plan_of(200), closed(16), {.ignore_eos = true});
    const auto failed =
        count_if(run.records, [](const RequestRecord& r) { return !r.succeeded(); });
    CHECK(failed == 10);
    for (const RequestRecord& record : run.records)
        if (record.succeeded()) CHECK(record.chunks == 6);
        else CHECK(record.error.starts_with("status 500"));
}

TEST_CASE(
    "load: an open loop keeps its schedule whatever the server does, and never has more in flight "
    "than allowed") {
    const StandIn server({.first = 0.05, .gap = 0.001});
    auto plan = plan_of(50);
    for (std::size_t i = 0; i < plan.size(); ++i) plan[i].at_seconds = 0.004 * double(i);
    const LoadRun run = generate_load(endpoint_of(server), plan,
                                      {.kind = Arrival::Kind::rate, .requests_per_second = 250},
                                      {.ignore_eos = true});
    for (const RequestRecord& record : run.records) {
        CHECK(record.succeeded());
        CHECK(record.scheduled == Approx(plan[record.index].at_seconds));
        CHECK(record.sent >= record.scheduled);
    }
    CHECK(server.totals().most_in_flight > 5);
    CHECK(run.duration_seconds >= 0.2);

    const StandIn narrow({.first = 0.02, .gap = 0.001});
    const LoadRun limited =
        generate_load(endpoint_of(narrow), plan, {}, {.most_in_flight = 3, .ignore_eos = true});
    CHECK(narrow.totals().most_in_flight == 3);
    check_succeeded(limited.records);
}

TEST_CASE("load: a closed loop keeps its places full, on one thread or on three") {
    for (const std::size_t loops : {1U, 3U}) {
        const StandIn server({.first = 0.005, .gap = 0.001});
        const LoadRun run = generate_load(endpoint_of(server), plan_of(100), closed(9),
                                          {.loops = loops, .ignore_eos = true});
        CHECK(server.totals().most_in_flight == 9);
        CHECK(run.server.requests == std::nullopt);
        CHECK(run.server.output_tokens == 600);
        check_succeeded(run.records);
    }
}

TEST_CASE("load: conversations: a turn carries what was said, and fails with the turn before it") {
    const StandIn server({.first = 0.002, .gap = 0.0005});
    auto plan = plan_of(9, 3);
    for (std::size_t i = 0; i < plan.size(); ++i)
        if (i % 3 != 0) plan[i].follows = i - 1;
    const LoadRun run = generate_load(endpoint_of(server), plan, closed(2), {.ignore_eos = true});
    for (std::size_t i = 0; i < plan.size(); ++i) {
        CHECK(run.records[i].succeeded());
        if (plan[i].follows) CHECK(run.records[i].sent >= run.records[i - 1].done);
        // Three words a turn, and what was answered to those before.
        if (i % 3 != 0) CHECK(*run.records[i].input_tokens > *run.records[i - 1].input_tokens);
    }
    const StandIn failing({.faults = {"http_status"}});
    const LoadRun lost = generate_load(endpoint_of(failing), plan, closed(2), {.ignore_eos = true});
    CHECK(lost.records[0].end == RequestEnd::http_error);
    CHECK(lost.records[1].error == "the turn before it failed");
    CHECK(lost.records[2].error == "the turn before it failed");
}

TEST_CASE(
    "load: requests are spread over replicas, a conversation stays with its own, and counters are "
    "summed") {
    const StandIn first({.first = 0.005, .gap = 0.001});
    const StandIn slow({.first = 0.05, .gap = 0.01});
    Endpoint endpoint = endpoint_of(first);
    endpoint.replicas = {slow.url() + "/v1"};
    const LoadRun run = generate_load(endpoint, plan_of(120), closed(8), {.ignore_eos = true});
    check_succeeded(run.records);
    CHECK(first.totals().requests + slow.totals().requests == 120);
    // The fewest in flight: never more than half of the places, and the quick one serves more.
    CHECK(first.totals().most_in_flight == 4);
    CHECK(slow.totals().most_in_flight == 4);
    CHECK(first.totals().requests > 2 * slow.totals().requests);
    CHECK(run.server.output_tokens == 720);
    CHECK(run.client.connects <= 1);  // both were warm

    auto plan = plan_of(40, 3);
    for (std::size_t i = 0; i < plan.size(); ++i)
        if (i % 4 != 0) plan[i].follows = i - 1;
    const StandIn a({.first = 0.002, .gap = 0.0005});
    const StandIn b({.first = 0.002, .gap = 0.0005});
    endpoint = endpoint_of(a);
    endpoint.replicas = {b.url()};
    check_succeeded(generate_load(endpoint, plan, closed(5), {.ignore_eos = true}).records);
    CHECK(a.totals().requests % 4 == 0);
    CHECK(b.totals().requests % 4 == 0);
    CHECK(a.totals().requests > 0);
    CHECK(b.totals().requests > 0);

    // One of them does not listen: its requests fail with their reason, and nothing is summed of a
    // part.
    endpoint.replicas = {nobody_listens()};
    const LoadRun half = generate_load(endpoint, plan_of(20), closed(4), {.ignore_eos = true});
    const auto failed =
        count_if(half.records, [](const RequestRecord& r) { return !r.succeeded(); });
    CHECK(failed > 0);
    CHECK(failed < 20);
    CHECK_FALSE(half.server.output_tokens.has_value());
    endpoint.replicas = {"ftp://nowhere"};
    CHECK_THROWS_AS(generate_load(endpoint, plan_of(1), {}), UsageError);
}

TEST_CASE("load: a stop ends the run at once and what has come is reported") {
    const StandIn server({.first = 0.01, .gap = 0.05});
    std::stop_source stop;
    std::jthread later([&] {
        (void)comes_true(
            [&] { return server.totals().in_flight == 4 && server.totals().tokens >= 12; });
        stop.request_stop();
    });
    const auto began = std::chrono::steady_clock::now();
    const LoadRun run = generate_load(endpoint_of(server), plan_of(50, 1000), closed(4),
                                      {.ignore_eos = true}, stop.get_token());
    CHECK(std::chrono::steady_clock::now() - began <
          std::chrono::seconds(10));  // unstopped it takes ten minutes
    CHECK(run.stopped);
    for (const RequestRecord& record : run.records) CHECK(record.end == RequestEnd::cancelled);
    CHECK(run.records[0].chunks > 0);
    CHECK(run.records[49].error == "the run was stopped before it was sent");
}

TEST_CASE("load: a server that dies in the middle is an error of each request, and the run ends") {
    StandIn server({.first = 0.01, .gap = 0.01});
    Endpoint endpoint = endpoint_of(server);
    std::jthread killer([&] {
        while (server.totals().in_flight < 4)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        server.stop();
    });
    const LoadRun run = generate_load(endpoint, plan_of(20, 100), closed(4), {.ignore_eos = true});
    std::set<RequestEnd> ends;
    for (const RequestRecord& record : run.records) ends.insert(record.end);
    CHECK_FALSE(ends.contains(RequestEnd::success));
    CHECK(ends.contains(RequestEnd::not_connected));
    CHECK_FALSE(run.server.output_tokens);  // nobody left to ask
}

TEST_CASE("load: the key goes to the server and nowhere else") {
    CannedServer server(answer(401, "{}"));
    Endpoint endpoint = endpoint_of(server.url());
    endpoint.metrics_path.clear();
    endpoint.api_key = "sk-secret-0123";
    const LoadRun run = generate_load(endpoint, plan_of(1), {});
    const std::string head = server.requests().back();
    CHECK(has(head, "Authorization: Bearer sk-secret-0123"));
    CHECK_FALSE(has(run.records[0].error, "sk-secret"));
    CHECK_FALSE(has(head, "Expect:"));
    const std::size_t sent = server.requests().size();
    endpoint.headers = {{"X-Token", "abcd-1234"}};
    endpoint.url = "http://me:pass%77ord@" + endpoint.url.substr(7);
    const Redactor secrets = secrets_of(endpoint);
    CHECK(secrets("sk-secret-0123 abcd-1234 pass%77ord password " + base64("me:password")) ==
          "*** *** *** *** ***");
    for (const std::string bad : {"a\r\nX-Evil: 1", "a\nb", "a\x7F", "\x01"}) {
        Endpoint odd = endpoint_of(server.url());
        odd.api_key = bad;
        CHECK(has(message_of<UsageError>([&] { (void)generate_load(odd, plan_of(1), {}); }),
                  "the API key: text without control characters wanted"));
        odd.api_key.clear();
        odd.headers = {{"X", bad}};
        CHECK(has(message_of<UsageError>([&] { (void)generate_load(odd, plan_of(1), {}); }),
                  "the header X: text without"));
        odd.headers = {{bad, "x"}};
        CHECK(has(message_of<UsageError>([&] { (void)generate_load(odd, plan_of(1), {}); }),
                  "the name of a header: text without"));
    }
    CHECK(server.requests().size() == sent);
}

TEST_CASE("load: what cannot be sent is refused before anything is") {
    const auto error = [](Endpoint endpoint, std::vector<PlannedRequest> plan, Arrival arrival = {},
                          LoadOptions options = {}) {
        return message_of<UsageError>(
            [&] { (void)generate_load(endpoint, plan, arrival, options); });
    };
    CHECK(error({"http://127.0.0.1:1", "m"}, {}) == "a load test needs at least one request");
    CHECK(error({"127.0.0.1:1", "m"}, plan_of(1)) ==
          "a server's address begins with http:// or https://, such as http://127.0.0.1:8000, got "
          "'127.0.0.1:1'");
    CHECK(error({"http://127.0.0.1:1", "m"}, plan_of(1), closed(0)) ==
          "a load test needs at least one request in flight");
    Endpoint odd{"http://127.0.0.1:1", "m"};
    odd.extra_body = "[1]";
    CHECK(error(odd, plan_of(1)) ==
          "the extra body of requests is a JSON object such as {\"temperature\": 0}, got '[1]'");
    auto circle = plan_of(2);
    circle[0].follows = 1;
    CHECK(error({"http://127.0.0.1:1", "m"}, circle) ==
          "request 0 follows one that is not before it");
}

TEST_CASE("load: an answer ends with [DONE], whatever the server sends after it") {
    const CannedServer server({chunked_head + in_chunks(three_tokens + rest, 1000),
                               Canned::Then::repeat, 1U << 20U,
                               in_chunks(": still here\n\n", 100)});
    const RequestRecord record = ask(server.url());
    INFO(record.error);
    CHECK(record.end == RequestEnd::success);
    CHECK(record.output_tokens == 6);
    CHECK(record.done - record.sent < 5);  // the server never ends it

    Endpoint endpoint = endpoint_of(server.url());
    endpoint.metrics_path.clear();
    const LoadRun run = generate_load(endpoint, plan_of(6), closed(2),
                                      {.ignore_eos = true, .warm_connections = false});
    check_succeeded(run.records);
    CHECK(run.left_open == 6);
    CHECK(run.duration_seconds < 30);
    const StandIn good;
    CHECK(generate_load(endpoint_of(good), plan_of(6), closed(2), {.ignore_eos = true}).left_open ==
          0);
}

TEST_CASE("load: an event loop that cannot be made leaves no descriptor open") {
    if (sanitized) return;  // which without descriptors takes objects for broken ones
    const auto open_now = [] {
        std::vector<int> numbers;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
            numbers.push_back(std::stoi(entry.path().filename()));
        return numbers;
    };
    const std::vector<PlannedRequest> plan = plan_of(1);
    const LoadOptions options;
    std::vector<RequestRecord> records(1);
    const Endpoint endpoint{"http://127.0.0.1:1", "m"};
    LoadTask task{.endpoint = endpoint, .plan = plan, .options = options, .records = records};
    task.path = "/v1/chat/completions";
    { const EventLoop once(task, {0}, 1); }  // what libcurl opens once and keeps is open now
    const std::vector<int> before = open_now();
    const auto highest = static_cast<rlim_t>(*std::max_element(before.begin(), before.end()));
    rlimit usual{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    std::size_t failed = 0;
    for (rlim_t most = 0; most <= highest + 8; ++most) {
        const rlimit few{most, usual.rlim_max};
        REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
        std::string error;
        try {
            const EventLoop loop(task, {0}, 1);
        } catch (const IoError& thrown) {
            error = thrown.what();
        }
        REQUIRE(setrlimit(RLIMIT_NOFILE, &usual) == 0);
        failed += error.empty() ? 0 : 1;
        INFO(most << ": " << error);
        CHECK(open_now() == before);
        CHECK((error.empty() || error.starts_with("a load test cannot open ")));
    }
    CHECK(failed >= 5);  // one for each descriptor that the loop needs
}

TEST_CASE("load: what comes before the paths of the interface") {
    CHECK(server_url("http://h:8000") == "http://h:8000");
    CHECK(server_url("http://h:8000/v1/") == "http://h:8000");
    CHECK(server_url("https://h/openai/v1") == "https://h/openai");
    CHECK(server_url("https://h/openai/v1/chat/completions") == "https://h/openai");
    CHECK(server_url("https://h/v1/completions//") == "https://h");
    CHECK(server_url("https://h/my-v1") == "https://h/my-v1");
    CHECK(server_url("https://h/v10") == "https://h/v10");
    CHECK(has(message_of<UsageError>([] { (void)server_url("h:8000"); }), "http://127.0.0.1:8000"));
}

TEST_CASE("load test: calibrated, planned, sent, summarised, and sound") {
    const StandIn server({.first = 0.01, .gap = 0.002});
    LoadTest test = load_test_of(
        {.kind = Dataset::Kind::random, .input_tokens = 40, .output_tokens = 16}, 64, 8);
    test.endpoint = endpoint_of(server);
    const LoadTestResult result = run_load_test(test);
    for (const Finding& finding : result.validity.findings)
        UNSCOPED_INFO(finding.id + ": " + finding.left + " against " + finding.right);
    for (const Finding& finding : result.validity.findings) {
        // A busy machine may be slow, or slower at the end; never inconsistent.
        const bool of_the_machine = finding.id == "client" || finding.id == "steady";
        CHECK(of_the_machine);
    }
    const BenchmarkResult& figures = result.statistics.result;
    CHECK(result.plan.lengths_exact);
    CHECK(figures.input_tokens == 64 * 40);
    CHECK(figures.output_tokens == 64 * 16);
    CHECK(figures.server.output_tokens == figures.output_tokens);
    CHECK(figures.successful_requests == 64);
    CHECK(*figures.time_to_first_token.mean >= 0.009);
    CHECK(*figures.time_per_output_token.mean >= 0.0019);
    CHECK(count_prompt_tokens(test.endpoint, "a b c") == 3 + StandIn::template_tokens);
}

TEST_CASE(
    "load test: the growing prompts of conversations, and shared prefixes, are the data set's") {
    const StandIn server({.first = 0.002, .gap = 0.001});
    for (const Dataset& dataset : {Dataset{.kind = Dataset::Kind::multi_turn,
                                  .input_tokens = 64,
                                  .output_tokens = 16,
                                  .turns = 4},
                                   Dataset{.kind = Dataset::Kind::shared_prefix,
                                   .input_tokens = 64,
                                   .output_tokens = 16,
                                   .prefix_tokens = 200}}) {
        LoadTest test = load_test_of(dataset, 24, 4);
        test.endpoint = endpoint_of(server);
        const LoadTestResult result = run_load_test(test);
        CHECK(result.plan.lengths_exact);
        CHECK(*result.statistics.result.input_tokens > 24 * 64 + 24 * 16);
        for (const Finding& finding : result.validity.findings) {
            INFO(finding.left << "; " << finding.right);
            CHECK(finding.id != "complete");
        }
    }
}

TEST_CASE(
    "load test: a server that takes ignore_eos and does nothing with it is measured, and the "
    "lengths are flagged") {
    LoadTest test = load_test_of(
        {.kind = Dataset::Kind::random, .input_tokens = 20, .output_tokens = 16}, 20, 4);
    const auto result = [&](const std::vector<std::string>& faults, double gap = 0.001) {
        const StandIn server({.first = 0.002, .gap = gap, .faults = faults});
        test.endpoint = endpoint_of(server);
        return run_load_test(test);
    };
    const auto found = [](const LoadTestResult& of, std::string_view id) {
        return any_of(of.validity.findings,
                      [&](const Finding& finding) { return finding.id == id; });
    };
    const LoadTestResult early = result({"answer_tokens=10"});
    CHECK(early.statistics.result.successful_requests == 20);
    CHECK(early.statistics.result.output_tokens == 20 * 10);
    CHECK(found(early, "lengths"));
    CHECK(early.validity.verdict >= Verdict::suspect);
    CHECK(has(early.statistics.notes.back(),
              "the server takes the field ignore_eos, but 20 answers ended by themselves"));
    CHECK_FALSE(found(result({}), "lengths"));

    // Sixteen tokens counted, twelve of them not sent.
    const LoadTestResult hidden = result({"hidden_tokens=12"}, 0.004);
    CHECK(found(hidden, "hidden_tokens"));
    CHECK_FALSE(found(hidden, "chunks"));
    CHECK_FALSE(found(hidden, "decomposition"));
    CHECK(*hidden.statistics.result.time_per_output_token.p50 >
          0.0035);  // 0.0008 if the hidden ones counted
    const LoadTestResult unread = result({"unread_text"});
    CHECK(unread.validity.verdict == Verdict::unsound);
    CHECK(found(unread, "unseen"));
    CHECK_FALSE(unread.statistics.result.time_to_first_token.mean);
    CHECK_FALSE(unread.statistics.result.latency.mean);
    CHECK(unread.statistics.result.output_tokens == 20 * 16);
    CHECK(found(result({"unread_text=8"}), "unseen"));  // the half of it
    const LoadTestResult aborted = result({"abort=3", "every=3"});
    CHECK(aborted.statistics.result.failed_requests >= 6);
    CHECK(aborted.validity.verdict == Verdict::unsound);
    CHECK(found(aborted, "complete"));
}
