// SPDX-License-Identifier: Apache-2.0
// The load generator against a server that knows what it sent when, and misbehaves on request: the
// right numbers or the right error, never a wrong number.
#include "servetune/detail/load/load_generator.hpp"
#include "load/event_loop.hpp"
#include "support/stream_server.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "load/http.hpp"

#include "base/url.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"
#include "servetune/load_test.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

Endpoint endpoint_of(const StreamServer& server, const std::string& behave = "") {
    Endpoint endpoint{server.url(), behave.empty() ? "m" : "behave:" + behave};
    endpoint.counters = {{"prompt_tokens", "vllm:prompt_tokens_total"},
                         {"generated_tokens", "vllm:generation_tokens_total"}};
    return endpoint;
}

std::vector<PlannedRequest> plan_of(std::size_t count, std::int64_t output_tokens = 6) {
    std::vector<PlannedRequest> plan(count);
    for (std::size_t i = 0; i < count; ++i) {
        plan[i].text = "r" + std::to_string(i) + " two three";
        plan[i].output_tokens = output_tokens;
    }
    return plan;
}

Arrival closed(std::int64_t in_flight) {
    return {.kind = Arrival::Kind::concurrency, .in_flight = in_flight};
}

/// One request.
RequestRecord ask(const StreamServer& server, const std::string& behave, bool stream = true,
                  Endpoint::Api api = Endpoint::Api::chat, double patience_seconds = 10) {
    Endpoint endpoint = endpoint_of(server, behave);
    endpoint.stream = stream;
    endpoint.api = api;
    endpoint.metrics_path.clear();
    return generate_load(endpoint, plan_of(1), {},
                         {.request_timeout_seconds = 3 * patience_seconds,
                          .stall_timeout_seconds = patience_seconds,
                          .ignore_eos = true})
        .records[0];
}

}  // namespace

TEST_CASE("load: every way of saying the same gives the same numbers") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.005,gap=0.002")});
    for (const std::string behave : {"tokens=6",
                                     "reasoning",
                                     "reasoning_content",
                                     "tool_calls",
                                     "function_call",
                                     "audio",
                                     "parts",
                                     "reasoning,thinking=3",
                                     "parts,thinking=3",
                                     "no_role",
                                     "role_early",
                                     "empty_chunks=2",
                                     "utf8",
                                     "usage_in_finish",
                                     "continuous_usage",
                                     "finish_apart",
                                     "finish_stop",
                                     "no_done",
                                     "crlf",
                                     "cr",
                                     "no_space",
                                     "spaced_json",
                                     "multiline",
                                     "fields",
                                     "ping",
                                     "http_chunks=7",
                                     "http_chunks=1",
                                     "split=1",
                                     "split=5,crlf,ping",
                                     "until_close",
                                     "connection_close",
                                     "cached=2"}) {
        INFO(behave);
        const RequestRecord record = ask(server, behave);
        INFO(record.error);
        CHECK(record.end == RequestEnd::success);
        CHECK(record.chunks == 6);
        CHECK(record.gaps.size() == 5);
        CHECK(record.output_tokens == 6);
        CHECK(record.input_tokens == 3);
        REQUIRE(record.first_token);
        CHECK(*record.first_token - record.sent >= 0.004);
        CHECK(*record.last_token >=
              *record.first_token);  // equal where a busy machine lets all come in one read
    }
    CHECK(ask(server, "cached=2").cached_tokens == 2);
    CHECK(ask(server, "big").chunks == 6);
    const RequestRecord pairs = ask(server, "chunk_tokens=2");
    CHECK(pairs.chunks == 3);
    CHECK(pairs.output_tokens == 6);
    const RequestRecord together = ask(server, "content_length");
    CHECK(together.chunks == 6);
    CHECK(together.coalesced_chunks > 0);  // the client says that it could not see the times
    const RequestRecord whole = ask(server, "tokens=6", false);
    CHECK(whole.end == RequestEnd::success);
    CHECK(whole.output_tokens == 6);
    CHECK_FALSE(whole.first_token);
    const RequestRecord completion =
        ask(server, "usage_in_finish", true, Endpoint::Api::completions);
    CHECK(completion.end == RequestEnd::success);
    CHECK(completion.chunks == 6);
}

TEST_CASE("load: what is no whole answer is an error of its kind") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.005,gap=0.002")});
    const auto end = [&](const std::string& behave) {
        return std::string(
            name_in(request_ends, ask(server, behave, true, Endpoint::Api::chat, 0.5).end));
    };
    CHECK(end("no_usage") == "no_usage");
    CHECK(end("no_finish") == "truncated");
    CHECK(end("tokens=9") == "wrong_length");
    CHECK(end("tokens=4") == "wrong_length");  // another limit came first
    CHECK(end("abort=3") == "not_finished");
    CHECK(end("status=500") == "http_error");
    CHECK(end("redirect") == "http_error");
    CHECK(end("html") == "malformed");
    CHECK(end("not_sse") == "truncated");
    CHECK(end("garbage") == "malformed");
    CHECK(end("silent") == "stalled");
    CHECK(end("reset=3") == "reset");
    CHECK(end("close=3") == "reset");
    CHECK(end("stall=3") == "stalled");
    CHECK((end("truncated=3") == "reset" || end("truncated=3") == "malformed"));
    CHECK(end("error_event=3") == "error_event");
    CHECK(end("slow_headers=0.0001") == "success");
    CHECK(end("first=30") == "stalled");
    CHECK(end("gap=0.1,tokens=60") == "timed_out");
    const RequestRecord broken = ask(server, "reset=3");
    CHECK(broken.chunks == 3);  // what was seen is kept, and is no success
    CHECK_FALSE(broken.output_tokens);

    const StreamServer loading({.behaviour = parse_behaviour("loading=60")});
    CHECK(ask(loading, "").error.starts_with("status 503"));
    const StreamServer closed_port({.listening = false});
    CHECK(name_in(request_ends, ask(closed_port, "").end) == "not_connected");
}

TEST_CASE("load: one in twenty fails, the others are not touched by it") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.002,gap=0.0005")});
    const LoadRun run = generate_load(endpoint_of(server, "share=0.05,status=500"), plan_of(200),
                                      closed(16), {.ignore_eos = true});
    const auto failed = std::count_if(run.records.begin(), run.records.end(),
                                      [](const RequestRecord& r) { return !r.succeeded(); });
    CHECK(failed == 10);
    for (const RequestRecord& record : run.records)
        if (record.succeeded()) CHECK(record.chunks == 6);
        else CHECK(record.error.starts_with("status 500"));
}

TEST_CASE(
    "load: an open loop keeps its schedule whatever the server does, and never has more in flight "
    "than allowed") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.05,gap=0.001")});
    auto plan = plan_of(50);
    for (std::size_t i = 0; i < plan.size(); ++i)
        plan[i].at_seconds = 0.004 * static_cast<double>(i);
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

    const StreamServer narrow({.behaviour = parse_behaviour("first=0.02,gap=0.001")});
    const LoadRun limited =
        generate_load(endpoint_of(narrow), plan, {}, {.most_in_flight = 3, .ignore_eos = true});
    CHECK(narrow.totals().most_in_flight == 3);
    CHECK(std::all_of(limited.records.begin(), limited.records.end(),
                      [](const RequestRecord& r) { return r.succeeded(); }));
}

TEST_CASE("load: a closed loop keeps its places full, on one thread or on three") {
    for (const std::size_t loops : {1U, 3U}) {
        const StreamServer server({.behaviour = parse_behaviour("first=0.005,gap=0.001")});
        const LoadRun run = generate_load(endpoint_of(server), plan_of(100), closed(9),
                                          {.loops = loops, .ignore_eos = true});
        CHECK(server.totals().most_in_flight == 9);
        CHECK(run.server.requests == std::nullopt);
        CHECK(run.server.output_tokens == 600);
        for (const RequestRecord& record : run.records) CHECK(record.succeeded());
    }
}

TEST_CASE("load: conversations: a turn carries what was said, and fails with the turn before it") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.002,gap=0.0005")});
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
    const LoadRun lost =
        generate_load(endpoint_of(server, "status=500"), plan, closed(2), {.ignore_eos = true});
    CHECK(lost.records[0].end == RequestEnd::http_error);
    CHECK(lost.records[1].error == "the turn before it failed");
    CHECK(lost.records[2].error == "the turn before it failed");
}

TEST_CASE(
    "load: requests are spread over replicas, a conversation stays with its own, and counters are "
    "summed") {
    const StreamServer first({.behaviour = parse_behaviour("first=0.005,gap=0.001")});
    const StreamServer slow({.behaviour = parse_behaviour("first=0.02,gap=0.004")});
    Endpoint endpoint = endpoint_of(first);
    endpoint.replicas = {slow.url() + "/v1"};
    const LoadRun run = generate_load(endpoint, plan_of(120), closed(8), {.ignore_eos = true});
    for (const RequestRecord& record : run.records) CHECK(record.succeeded());
    CHECK(first.totals().completions + slow.totals().completions == 120);
    // The fewest in flight: never more than half of the places, and the quick one serves more.
    CHECK(first.totals().most_in_flight == 4);
    CHECK(slow.totals().most_in_flight == 4);
    CHECK(first.totals().completions > 2 * slow.totals().completions);
    CHECK(run.server.output_tokens == 720);
    CHECK(run.client.connects <= 1);  // both were warm

    auto plan = plan_of(40, 3);
    for (std::size_t i = 0; i < plan.size(); ++i)
        if (i % 4 != 0) plan[i].follows = i - 1;
    const StreamServer a({.behaviour = parse_behaviour("first=0.002,gap=0.0005")});
    const StreamServer b({.behaviour = parse_behaviour("first=0.002,gap=0.0005")});
    endpoint = endpoint_of(a);
    endpoint.replicas = {b.url()};
    for (const RequestRecord& record :
         generate_load(endpoint, plan, closed(5), {.ignore_eos = true}).records)
        CHECK(record.succeeded());
    CHECK(a.totals().completions % 4 == 0);
    CHECK(b.totals().completions % 4 == 0);
    CHECK(a.totals().completions > 0);
    CHECK(b.totals().completions > 0);

    // One of them does not listen: its requests fail with their reason, and nothing is summed of a
    // part.
    const StreamServer gone({.listening = false});
    endpoint.replicas = {gone.url()};
    const LoadRun half = generate_load(endpoint, plan_of(20), closed(4), {.ignore_eos = true});
    const auto failed = std::count_if(half.records.begin(), half.records.end(),
                                      [](const RequestRecord& r) { return !r.succeeded(); });
    CHECK(failed > 0);
    CHECK(failed < 20);
    CHECK_FALSE(half.server.output_tokens.has_value());
    endpoint.replicas = {"ftp://nowhere"};
    CHECK_THROWS_AS(generate_load(endpoint, plan_of(1), {}), UsageError);
}

TEST_CASE("load: a stop ends the run at once and what has come is reported") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.05,tokens=1000")});
    std::stop_source stop;
    std::jthread later([&] {
        (void)comes_true([&] {
            return server.totals().in_flight == 4 && server.totals().generation_tokens >= 12;
        });
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
    auto server = std::make_unique<StreamServer>(
        StreamServerOptions{.behaviour = parse_behaviour("first=0.01,gap=0.01,tokens=100")});
    Endpoint endpoint = endpoint_of(*server);
    std::jthread killer([&] {
        server->wait_for_ended(0, 0);
        while (server->totals().in_flight < 4)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        server->stop();
    });
    const LoadRun run = generate_load(endpoint, plan_of(20, 100), closed(4), {.ignore_eos = true});
    std::set<RequestEnd> ends;
    for (const RequestRecord& record : run.records) ends.insert(record.end);
    CHECK_FALSE(ends.contains(RequestEnd::success));
    CHECK(ends.contains(RequestEnd::not_connected));
    CHECK_FALSE(run.server.output_tokens);  // nobody left to ask
}

TEST_CASE("load: the key goes to the server and nowhere else") {
    const StreamServer server;
    Endpoint endpoint = endpoint_of(server, "status=401");
    endpoint.api_key = "sk-secret-0123";
    const LoadRun run = generate_load(endpoint, plan_of(1), {});
    REQUIRE(server.wait_for_ended(1, 10));
    CHECK(server.truth().at(0).head.find("Authorization: Bearer sk-secret-0123") !=
          std::string::npos);
    CHECK(run.records[0].error.find("sk-secret") == std::string::npos);
    CHECK(server.truth().at(0).head.find("Expect:") == std::string::npos);
    endpoint.headers = {{"X-Token", "abcd-1234"}};
    endpoint.url = "http://me:pass%77ord@" + endpoint.url.substr(7);
    const Redactor secrets = secrets_of(endpoint);
    CHECK(secrets("sk-secret-0123 abcd-1234 pass%77ord password " + base64("me:password")) ==
          "*** *** *** *** ***");
    for (const std::string bad : {"a\r\nX-Evil: 1", "a\nb", "a\x7F", "\x01"}) {
        Endpoint odd = endpoint_of(server, "");
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
    CHECK(server.truth().size() == 1);  // nothing was sent
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
    const StreamServer server({.behaviour = parse_behaviour("first=0.002,gap=0.001")});
    const RequestRecord record = ask(server, "endless");
    INFO(record.error);
    CHECK(record.end == RequestEnd::success);
    CHECK(record.output_tokens == 6);
    CHECK(record.done - record.sent < 5);  // the server never ends it

    const LoadRun run = generate_load(endpoint_of(server, "endless=0.001"), plan_of(6), closed(2),
                                      {.ignore_eos = true});
    CHECK(std::all_of(run.records.begin(), run.records.end(),
                      [](const RequestRecord& one) { return one.succeeded(); }));
    CHECK(run.left_open == 6);
    CHECK(run.duration_seconds < 30);
    CHECK(
        generate_load(endpoint_of(server), plan_of(6), closed(2), {.ignore_eos = true}).left_open ==
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
    CHECK(message_of<UsageError>([] {
              (void)server_url("h:8000");
          }).find("http://127.0.0.1:8000") != std::string::npos);
}

TEST_CASE("load test: calibrated, planned, sent, summarised, and sound") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.002")});
    LoadTest test;
    test.endpoint = endpoint_of(server);
    test.workload.name = "random";
    test.workload.dataset = {
        .kind = Dataset::Kind::random, .input_tokens = 40, .output_tokens = 16};
    test.workload.requests = 64;
    test.workload.arrival = closed(8);
    test.workload.ignore_eos = true;
    test.salt = 7;
    const LoadTestResult result = run_load_test(test);
    for (const Finding& finding : result.validity.findings)
        UNSCOPED_INFO(finding.id + ": " + finding.left + " against " + finding.right);
    for (const Finding& finding : result.validity.findings)
        CHECK(finding.id == "client");  // a busy machine may be slow, never inconsistent
    const BenchmarkResult& figures = result.statistics.result;
    CHECK(result.plan.lengths_exact);
    CHECK(figures.input_tokens == 64 * 40);
    CHECK(figures.output_tokens == 64 * 16);
    CHECK(figures.server.output_tokens == figures.output_tokens);
    CHECK(figures.successful_requests == 64);
    CHECK(*figures.time_to_first_token.mean >= 0.009);
    CHECK(*figures.time_per_output_token.mean >= 0.0019);
    CHECK(count_prompt_tokens(test.endpoint, "a b c") == 3);
}

TEST_CASE(
    "load test: the growing prompts of conversations, and shared prefixes, are the data set's") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.002,gap=0.001")});
    for (const Dataset& dataset : {Dataset{.kind = Dataset::Kind::multi_turn,
                                  .input_tokens = 64,
                                  .output_tokens = 16,
                                  .turns = 4},
                                   Dataset{.kind = Dataset::Kind::shared_prefix,
                                   .input_tokens = 64,
                                   .output_tokens = 16,
                                   .prefix_tokens = 200}}) {
        LoadTest test;
        test.endpoint = endpoint_of(server);
        test.workload.name = "w";
        test.workload.dataset = dataset;
        test.workload.requests = 24;
        test.workload.arrival = closed(4);
        test.workload.ignore_eos = true;
        test.salt = 7;
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
    const StreamServer server({.behaviour = parse_behaviour("first=0.002,gap=0.001")});
    LoadTest test;
    test.workload.name = "random";
    test.workload.dataset = {
        .kind = Dataset::Kind::random, .input_tokens = 20, .output_tokens = 16};
    test.workload.requests = 20;
    test.workload.arrival = closed(4);
    test.workload.ignore_eos = true;
    test.salt = 7;
    const auto result = [&](const std::string& behave) {
        test.endpoint = endpoint_of(server, behave);
        return run_load_test(test);
    };
    const auto found = [](const LoadTestResult& of, std::string_view id) {
        return std::any_of(of.validity.findings.begin(), of.validity.findings.end(),
                           [&](const Finding& finding) { return finding.id == id; });
    };
    const LoadTestResult early = result("fewer=6");
    CHECK(early.statistics.result.successful_requests == 20);
    CHECK(early.statistics.result.output_tokens == 20 * 10);
    CHECK(found(early, "lengths"));
    CHECK(early.validity.verdict >= Verdict::suspect);
    CHECK(has(early.statistics.notes.back(),
              "the server takes the field ignore_eos, but 20 answers ended by themselves"));
    CHECK_FALSE(found(result("tokens=16"), "lengths"));

    // Sixteen tokens counted, twelve of them not sent.
    const LoadTestResult hidden = result("hidden=12,gap=0.004");
    CHECK(found(hidden, "hidden_tokens"));
    CHECK_FALSE(found(hidden, "chunks"));
    CHECK_FALSE(found(hidden, "decomposition"));
    CHECK(*hidden.statistics.result.time_per_output_token.p50 >
          0.0035);  // 0.0008 if the hidden ones counted
    const LoadTestResult unread = result("unread");
    CHECK(unread.validity.verdict == Verdict::unsound);
    CHECK(found(unread, "unseen"));
    CHECK_FALSE(unread.statistics.result.time_to_first_token.mean);
    CHECK_FALSE(unread.statistics.result.latency.mean);
    CHECK(unread.statistics.result.output_tokens == 20 * 16);
    CHECK(found(result("unread,thinking=8"), "unseen"));  // the half of it
    const LoadTestResult aborted = result("abort=3,share=0.3");
    CHECK(aborted.statistics.result.failed_requests == 6);
    CHECK(aborted.validity.verdict == Verdict::unsound);
    CHECK(found(aborted, "complete"));
}
