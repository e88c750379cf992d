// SPDX-License-Identifier: Apache-2.0
// `autotune bench` from outside, against simengine: what it prints, saves and answers.
#include "support/autotune.hpp"
#include "support/canned_server.hpp"
#include "support/records.hpp"
#include "support/stand_in.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

Ran bench(const std::string& url, const TemporaryFolder& folder, std::vector<std::string> more,
          bool quiet = true) {
    if (quiet) more.insert(more.begin(), "--quiet");
    more.insert(more.begin(), {"bench", "--url", url});
    return autotune(more, folder.path());
}
Ran bench(const StandIn& server, const TemporaryFolder& folder,
          const std::vector<std::string>& more) {
    return bench(server.url(), folder, more);
}

/// 24 requests for 12 tokens after 30, the result as JSON.
Json result_of(const std::vector<std::string>& faults, const TemporaryFolder& folder,
               const std::vector<std::string>& more = {}, std::int64_t chunk_tokens = 1) {
    const StandIn server({.first = 0.003, .faults = faults, .chunk_tokens = chunk_tokens});
    std::vector<std::string> words{
        "--workload", "random:30x12", "--requests", "24", "--concurrency", "4", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ended = bench(server, folder, words);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return Json::parse(ended.out);
}

bool has_finding(const Json& result, const std::string& id) {
    for (const Json& finding : result.at("servetune").at("findings"))
        if (finding.at("id").get<std::string>() == id) return true;
    return false;
}

bool notes_say(const Json& result, const std::string& text) {
    return has(result.at("servetune").at("notes").dump(), text);
}

}  // namespace

TEST_CASE("bench: report, vLLM's JSON, records and a comparison with an earlier result") {
    const StandIn server({.first = 0.01, .gap = 0.004});
    const TemporaryFolder folder;
    const std::vector<std::string> load{"--workload", "random:30x12",  "--requests",
                                        "48",         "--concurrency", "6"};
    auto first = load;
    first.insert(first.end(), {"--save", "first.json", "--records", "first.jsonl.gz"});
    const Ran ended = bench(server, folder, first);
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(has(ended.out, "Successful requests:                     48"));
    CHECK(has(ended.out, "Total generated tokens:                  576"));
    CHECK(has(ended.out, "random words; lengths as the server counts them"));
    CHECK(has(ended.out, "The server counted:"));
    CHECK(has(ended.out, "Verdict: "));

    const Json saved = Json::parse(read_file(folder.path() / "first.json"));
    CHECK(saved["completed"] == 48);
    CHECK(saved["total_input_tokens"] == 48 * 30);
    CHECK(saved["total_output_tokens"] == 48 * 12);
    CHECK(saved["max_concurrency"] == 6);
    CHECK(saved["servetune"]["verdict"].is_string());
    CHECK(saved["servetune"]["figures"]["server_output_tokens"] == 48 * 12);

    const std::vector<RequestRecord> records = read_records(folder.path() / "first.jsonl.gz");
    REQUIRE(records.size() == 48);
    for (const RequestRecord& record : records) {
        CHECK(record.succeeded());
        CHECK(record.gaps.size() == 11);
        CHECK(record.output_tokens == 12);
    }
    CHECK(has(message_of<ParseError>([&] { (void)read_records(folder.write("x.gz", "{}\n")); }),
              "x.gz:1: not a request's record"));

    auto json = load;
    json.emplace_back("--json");
    CHECK(Json::parse(bench(server, folder, json).out)["servetune"]["workload_fingerprint"] ==
          saved["servetune"]["workload_fingerprint"]);
}

TEST_CASE("bench: the answer is no when the result cannot be believed, and mistakes are said") {
    const StandIn server({.first = 0.002, .gap = 0.001, .faults = {"http_status=500", "every=20"}});
    const TemporaryFolder folder;
    const Ran failing =
        bench(server, folder, {"--workload", "random:8x4", "--requests", "40", "--completions"});
    CHECK(failing.code == 1);
    CHECK(has(failing.out, " http_error: status 500"));
    CHECK(has(failing.out, "Verdict: unsound"));
    CHECK(has(failing.out, "complete: "));
}

TEST_CASE("bench: burstiness, headers and what a body has more come to the server") {
    CannedServer server(answer(500, "{}"));
    const TemporaryFolder folder;
    const Json even = result_of({}, folder);
    CHECK(even.at("burstiness") == 1);
    const Json bursts = result_of({}, folder, {"--rate", "100", "--burstiness", "inf"});
    CHECK(bursts.at("burstiness") == Json("inf"));
    (void)bench(server.url(), folder,
                {"--workload", "random:8x4", "--requests", "2", "--model", "m", "--completions",
                 "--header", "X-Tenant:7", "--extra-body", R"({"temperature": 0})"});
    REQUIRE_FALSE(server.requests().empty());
    bool came = false;
    for (const std::string& request : server.requests()) {
        CHECK(has(request, "X-Tenant: 7"));
        const Json body = Json::parse(request.substr(request.find("\r\n\r\n") + 4), nullptr, false);
        came = came || (body.is_object() && body.value("temperature", -1) == 0);
    }
    CHECK(came);
}

TEST_CASE("bench: why a server cannot be asked is said: connection, name, status, redirect") {
    const TemporaryFolder folder;
    const auto error = [&](int status, const std::vector<std::string>& more = {},
                           const std::string& location = "") {
        const CannedServer server(
            answer(status, R"({"error":{"message":"not for you"}})", location));
        const Ran ended = bench(server.url(), folder, more);
        CHECK(ended.code == (status == 404 ? 2 : 3));  // its model can be said
        return ended.err;
    };
    const std::string nobody = nobody_listens();
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--model", "m"}, {"--model", "m", "--completions"}}) {
        const std::string refused = bench(nobody, folder, more).err;
        INFO(refused);
        CHECK(has(refused, "Connection refused"));
        CHECK(has(refused, nobody + "/v1/"));
    }
    CHECK_FALSE(
        has(bench("http://no-such-host.invalid", folder, {}).err, "no-such-host.invalid: "));
    CHECK(has(bench("http://no-such-host.invalid", folder, {}).err, "resolve host"));
    CHECK(has(bench("ftp://127.0.0.1", folder, {}).err, "begins with http:// or https://"));
    CHECK(has(error(401), "answers 401 (no API key, or a wrong one): not for you"));
    CHECK(has(error(503), "answers 503: not for you"));
    const std::string elsewhere = "Location: https://elsewhere.invalid/v1/models\r\n";
    CHECK(has(error(302, {}, elsewhere),
              "answers 302: a redirect to https://elsewhere.invalid/v1/models"));
    CHECK(has(error(404), "answers, but has no list of models"));
    CHECK(
        has(error(401, {"--model", "m"}), "answers 401 (no API key, or a wrong one): not for you"));
    CHECK(has(error(302, {"--model", "m"}, elsewhere), "a redirect to https://elsewhere.invalid"));
    CHECK(has(error(422, {"--model", "m"}),
              "refuses the load test's requests: status 422: not for you"));
}

TEST_CASE(
    "bench: a server that refuses our fields is measured without them, and the result says so") {
    const TemporaryFolder folder;
    using Fields = std::vector<std::string>;
    const auto refused = [](const Json& result) {
        return result.at("servetune").at("refused_fields").get<Fields>();
    };
    for (const std::vector<std::string>& faults :
         {Fields{"answer_tokens=12", "refuse_field=ignore_eos"},
          {"answer_tokens=12", "refuse_field=ignore_eos", "vague_refusals"}}) {
        INFO(faults.size());
        const Json result = result_of(faults, folder);
        CHECK(result.at("completed") == 24);
        CHECK(result.at("total_output_tokens") == 24 * 12);
        CHECK(refused(result) == Fields{"ignore_eos"});
        CHECK(notes_say(result, "the server refuses the field ignore_eos"));
        CHECK_FALSE(has_finding(result, "lengths"));  // this server gave every token asked for
    }
    const Json shorter = result_of({"refuse_field=ignore_eos", "answer_tokens=5"}, folder);
    CHECK(shorter.at("total_output_tokens") == 24 * 5);
    CHECK(has_finding(shorter, "lengths"));
    CHECK(shorter.at("servetune").at("verdict") == Json("suspect"));

    CHECK(refused(result_of({"refuse_field=ignore_eos", "refuse_field=max_tokens"}, folder)) ==
          Fields{"ignore_eos", "max_tokens"});
    const Json all =
        result_of({"answer_tokens=12", "refuse_field=max_tokens", "refuse_field=ignore_eos",
                   "refuse_field=stream_options", "vague_refusals", "usage_unasked"},
                  folder);
    CHECK(refused(all) == Fields{"ignore_eos", "stream_options", "max_tokens"});
    CHECK(all.at("total_output_tokens") == 24 * 12);  // counted: usage comes unasked
    CHECK_FALSE(has_finding(all, "counts"));
    CHECK(refused(result_of({}, folder)).empty());
}

TEST_CASE("bench: a server that counts no tokens is measured, with estimates that are called so") {
    const TemporaryFolder folder;
    using Faults = std::vector<std::string>;
    for (const auto& [faults, chunk_tokens] :
         {std::pair(Faults{"no_usage"}, 1),
          std::pair(Faults{"refuse_field=stream_options", "no_usage"}, 1),
          std::pair(Faults{"no_usage"}, 4)}) {
        INFO(faults.size() << " " << chunk_tokens);
        const Json result = result_of(faults, folder, {}, chunk_tokens);
        CHECK(result.at("completed") == 24);
        CHECK(result.at("total_output_tokens") ==
              24 * 12);  // by pieces, or by their text where pieces hold several
        CHECK(result.at("total_input_tokens") == 24 * 30);  // as planned
        CHECK(result.at("servetune").at("tokens_are_estimated") == true);
        CHECK(has_finding(result, "counts"));
        CHECK(notes_say(result, "the server gave no token count for 24 answers"));
        CHECK(notes_say(result, "24 prompts: their planned lengths are counted instead"));
    }
    CHECK(notes_say(result_of({"no_usage"}, folder, {}, 4), "estimated from their text"));
    const Json whole = result_of({"no_usage"}, folder, {"--no-stream"});
    CHECK(whole.at("total_output_tokens") == 24 * 12);
    CHECK(result_of({}, folder).at("servetune").at("tokens_are_estimated") == false);
}

TEST_CASE("bench: progress is written to a file as lines, and intervals of times are positive") {
    // Most are quick, some take long.
    const StandIn server({.first = 0.002, .faults = {"slower=200", "every=5"}});
    const TemporaryFolder folder;
    const Ran ended = bench(
        server.url(), folder,
        {"--workload", "random:8x6", "--requests", "20", "--rate", "15", "--completions"}, false);
    INFO(ended.err << ended.out);
    CHECK_FALSE(has(ended.err, "\r"));
    CHECK(has(ended.err, " of 20 ended, "));
    CHECK_FALSE(has(ended.out, "\r"));
    CHECK_FALSE(has(ended.out, "  -"));  // as a negative low end would be printed
    CHECK_FALSE(has(ended.out, ".. -"));
}

TEST_CASE("bench: Ctrl-C reports what has come") {
    const StandIn server({.first = 0.01, .gap = 0.05});
    const TemporaryFolder folder;
    ChildProcess process(
        {SERVETUNE_PROGRAM, "bench", "--url", server.url(), "--quiet", "--workload",
         "random:8x2000", "--requests", "20", "--concurrency", "4", "--warmup", "0"},
        folder.path());
    while (server.totals().in_flight < 4)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    process.signal(SIGINT);
    CHECK(process.wait() == 130);
    CHECK(has(process.out(), "20 cancelled: the run was stopped"));
}

TEST_CASE("bench: requests before are not counted, a duration becomes a number of requests") {
    const StandIn server({.first = 0.02, .gap = 0.001});
    const TemporaryFolder folder;
    const auto completed = [&](std::vector<std::string> words) {
        words.insert(words.end(), {"--workload", "random:30x12", "--json"});
        const Ran ended = bench(server, folder, words);
        INFO(ended.err);
        REQUIRE(ended.code == 0);
        return Json::parse(ended.out);
    };
    const Json warm = completed({"--requests", "10", "--warmup", "7"});
    CHECK(warm["completed"] == 10);
    CHECK(server.totals().requests >= 17);
    CHECK(completed({"--rate", "40", "--duration", "500ms"})["completed"] == 20);
    const Json closed =
        completed({"--concurrency", "2", "--duration", "2s"});  // some 30 ms a request
    CHECK(closed["completed"] > 40);
    CHECK(closed["duration"] > 1.0);
    CHECK(closed["duration"] < 4.0);
    // A rate with a bound on what is in flight: ten requests a second of 30 ms each are never two.
    CHECK(completed({"--rate", "200", "--concurrency", "1", "--requests", "20"})["duration"] >
          20 * 0.03);
    const StandIn broken({.faults = {"http_status=500"}});
    const Ran none =
        bench(broken, folder, {"--warmup", "2", "--requests", "4", "--workload", "random:30x12"});
    CHECK(none.code != 0);
}

TEST_CASE("bench: what the audit said stands in the file, for an audit that knows less too") {
    const StandIn server({.first = 0.003, .gap = 0.001});
    const TemporaryFolder folder;
    const Ran too_fast =
        bench(server, folder,
              {"--workload", "random:30x20", "--requests", "12", "--concurrency", "2", "--save",
               "u.json", "--hardware", "h100-sxm", "--facts-of", "Qwen/Qwen3-32B"});
    INFO(too_fast.out << too_fast.err);
    CHECK(too_fast.code == 1);
    REQUIRE(has_finding(Json::parse(read_file(folder.path() / "u.json")), "physics"));
    ChildProcess audit({SERVETUNE_PROGRAM, "audit", "u.json", "--json"}, folder.path());
    CHECK(audit.wait() == 1);
    const Json audited = Json::parse(audit.out());
    CHECK(audited[0]["verdict"] == "unsound");
    std::size_t physics = 0;
    for (const Json& finding : audited[0]["findings"])
        physics += finding["id"] == "physics" ? 1 : 0;
    CHECK(physics == 1);
    for (const Json& missing : audited[0]["not_checked"]) CHECK(missing["id"] != "physics");
}

TEST_CASE("bench: a result that cannot be saved is said before the load, or printed all the same") {
    const TemporaryFolder folder;
    const StandIn server({.first = 0.003, .gap = 0.001});
    const std::vector<std::string> load{"--workload", "random:30x12",  "--requests",
                                        "12",         "--concurrency", "2"};
    auto full = load;
    full.insert(full.end(), {"--save", "/dev/full", "--records", "r.jsonl.gz"});
    const Ran ended = bench(server, folder, full);
    CHECK(ended.code == 2);
    CHECK(has(ended.err, "cannot write /dev/full: No space left on device"));
    CHECK(has(ended.out, "Successful requests:                     12"));
    CHECK(read_records(folder.path() / "r.jsonl.gz").size() == 12);
    const Ran table =
        autotune({"capacity", "--concurrency", "--quiet", "--url", server.url(), "--sweep", "1,2",
                  "--workload", "random:30x12", "--requests", "12", "--save", "/dev/full"},
                 folder.path());
    CHECK(table.code == 2);
    CHECK(has(table.out, "tok/s/user"));
}

TEST_CASE("bench: limits of a good request take units") {
    const StandIn server({.first = 0.003, .gap = 0.001});
    const TemporaryFolder folder;
    const Ran with_unit = bench(server, folder,
                                {"--ttft-limit", "500ms", "--latency-limit", "90 s", "--requests",
                                 "6", "--workload", "30x12", "--json"});
    INFO(with_unit.err);
    REQUIRE(with_unit.code == 0);
    CHECK(Json::parse(with_unit.out)["request_goodput"].get<double>() > 0);
}
