// SPDX-License-Identifier: Apache-2.0
// `autotune bench` from outside, against the test server: what it prints, saves and answers.
#include "support/process.hpp"
#include "support/stream_server.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "handover/request_lines.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

struct BenchRun {
    int code;
    std::string out, err;
};

BenchRun bench(const std::string& url, const TemporaryFolder& folder,
               const std::vector<std::string>& more, bool quiet = true) {
    std::vector<std::string> words{SERVETUNE_PROGRAM, "bench", "--url", url};
    if (quiet) words.emplace_back("--quiet");
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess process(words, folder.path());
    const int code = process.wait();
    return {code, process.out(), process.err()};
}
BenchRun bench(const StreamServer& server, const TemporaryFolder& folder,
               const std::vector<std::string>& more) {
    return bench(server.url(), folder, more);
}

/// 24 requests for 12 tokens after 30, the result as JSON.
Json result_of(const std::string& behaviour, const TemporaryFolder& folder,
               const std::vector<std::string>& more = {}) {
    const StreamServer server({.behaviour = parse_behaviour("first=0.003,gap=0.001," + behaviour)});
    std::vector<std::string> words{
        "--workload", "random:30x12", "--requests", "24", "--concurrency", "4", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const BenchRun ended = bench(server, folder, words);
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
    return result.at("servetune").at("notes").dump().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("bench: report, vLLM's JSON, records and a comparison with an earlier result") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.004")});
    const TemporaryFolder folder;
    const std::vector<std::string> load{"--workload", "random:30x12",  "--requests",
                                        "48",         "--concurrency", "6"};
    auto first = load;
    first.insert(first.end(),
                 {"--save", "first.json", "--records", "first.jsonl.gz", "--detailed"});
    const BenchRun ended = bench(server, folder, first);
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.find("Successful requests:                     48") != std::string::npos);
    CHECK(ended.out.find("Total generated tokens:                  576") != std::string::npos);
    CHECK(ended.out.find("random words; lengths as the server counts them") != std::string::npos);
    CHECK(ended.out.find("The server counted:") != std::string::npos);
    CHECK(ended.out.find("Verdict: ") != std::string::npos);

    const Json saved = Json::parse(read_file(folder.path() / "first.json"));
    CHECK(saved["completed"] == 48);
    CHECK(saved["total_input_tokens"] == 48 * 30);
    CHECK(saved["total_output_tokens"] == 48 * 12);
    CHECK(saved["max_concurrency"] == 6);
    CHECK(saved["itls"].size() == 48);
    CHECK(saved["servetune"]["verdict"].is_string());
    CHECK(saved["servetune"]["figures"]["server_output_tokens"] == 48 * 12);

    const std::vector<RequestRecord> records = read_records(folder.path() / "first.jsonl.gz");
    REQUIRE(records.size() == 48);
    for (const RequestRecord& record : records) {
        CHECK(record.succeeded());
        CHECK(record.gaps.size() == 11);
        CHECK(record.output_tokens == 12);
    }
    CHECK(message_of<ParseError>([&] {
              (void)read_records(folder.write("x.gz", "{}\n"));
          }).find("x.gz:1: not a request's record") != std::string::npos);

    auto second = load;
    second.insert(second.end(), {"--compare-with", "first.json"});
    const BenchRun compared = bench(server, folder, second);
    CHECK(compared.out.find("output_tokens_per_second") != std::string::npos);
    CHECK(compared.out.find("equal_work") ==
          std::string::npos);  // the same work: other prompts, the same lengths

    auto json = load;
    json.emplace_back("--json");
    CHECK(Json::parse(bench(server, folder, json).out)["servetune"]["workload_fingerprint"] ==
          saved["servetune"]["workload_fingerprint"]);
}

TEST_CASE(
    "bench: streams that end without [DONE], with the counts beside the finish reason, are counted "
    "exactly") {
    const TemporaryFolder folder;
    for (const char* words :
         {"no_done,usage_in_finish", "no_done,usage_in_finish,finish_apart",
          "no_done,usage_in_finish,connection_close", "no_done,usage_in_finish,until_close"}) {
        INFO(words);
        const StreamServer server(
            {.behaviour = parse_behaviour(std::string("first=0.003,gap=0.001,") + words)});
        const BenchRun ended = bench(
            server, folder,
            {"--workload", "random:30x12", "--requests", "24", "--concurrency", "4", "--json"});
        INFO(ended.err);
        const Json figures = Json::parse(ended.out);
        CHECK(figures["completed"] == 24);
        CHECK(figures["total_output_tokens"] == 24 * 12);
        CHECK(figures["total_input_tokens"] == 24 * 30);
        CHECK(figures["servetune"]["figures"]["server_output_tokens"] == 24 * 12);
    }
}

TEST_CASE("bench: the answer is no when the result cannot be believed, and mistakes are said") {
    const StreamServer server(
        {.behaviour = parse_behaviour("first=0.002,gap=0.001,status=500,share=0.3")});
    const StreamServer good;
    const TemporaryFolder folder;
    const BenchRun failing =
        bench(server, folder, {"--workload", "random:8x4", "--requests", "40", "--token-ids"});
    CHECK(failing.code == 1);
    CHECK(failing.out.find("12 http_error: status 500") != std::string::npos);
    CHECK(failing.out.find("Verdict: unsound") != std::string::npos);
    CHECK(failing.out.find("complete: ") != std::string::npos);

    for (const char* lengths :
         {"8", "", "x", "ax4", "8x", "8x-1", "0x4", "8x4, requests: 9", "99999999999x1"})
        CHECK(bench(good, folder, {"--workload", std::string("random:") + lengths}).err ==
              "autotune: random:INPUTxOUTPUT in tokens wanted, such as random:1024x128, got "
              "'random:" +
                  std::string(lengths) + "'\n");
    CHECK(bench(good, folder, {"--api-key-env", "SERVETUNE_NO_SUCH_KEY"}).code == 2);
    CHECK(bench(good, folder, {"--workload", "no-such-workload"}).err.find("no-such-workload") !=
          std::string::npos);
    CHECK(bench(good, folder, {"--compare-with", "no-such-file.json"})
              .err.find("no-such-file.json") != std::string::npos);
}

TEST_CASE("bench: answers that the server broke off are failures with their reason") {
    const TemporaryFolder folder;
    const StreamServer server(
        {.behaviour = parse_behaviour("first=0.002,gap=0.001,abort=3,share=0.3")});
    const std::vector<std::string> load{"--workload", "random:8x8",    "--requests",
                                        "20",         "--concurrency", "4"};
    const BenchRun said = bench(server, folder, load);
    CHECK(said.code == 1);
    CHECK(said.out.find("Verdict: unsound") != std::string::npos);
    CHECK(said.out.find(" requests failed: 6 not_finished (abort): the server broke the answer "
                        "off: finish reason 'abort'") != std::string::npos);
    auto as_json = load;
    as_json.emplace_back("--json");
    const Json failures =
        Json::parse(bench(server, folder, as_json).out).at("servetune").at("failures");
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].at("kind") == "not_finished (abort)");
    CHECK(failures[0].at("count") == 6);
}

TEST_CASE("bench: every option says what it wants in our own words") {
    const StreamServer server;
    const TemporaryFolder folder;
    const auto says = [&](const std::vector<std::string>& words, const std::string& wanted) {
        const BenchRun ended = bench(server, folder, words);
        INFO(ended.err);
        CHECK(ended.code == 2);
        CHECK(ended.err.find(wanted) != std::string::npos);
        for (const char* foreign :
             {"json.exception", "basic_string", "std::", "Could not convert", "not in range"})
            CHECK(ended.err.find(foreign) == std::string::npos);
        return ended.err;
    };
    says({"--header", "plain"},
         "--header wants NAME:VALUE, such as 'X-Tenant: 7'; there is no colon");
    says({"--header", "A:"}, "A has no value");
    says({"--header", "A: \t "}, "A has no value");
    says({"--header", ": v"}, "a name has letters");
    says({"--header", "A B: v"}, "a name has letters");
    CHECK(says({"--header", "A: s3cret\r\nB: c"}, "control characters").find("s3cret") ==
          std::string::npos);
    says({"--extra-body", "[1]"},
         "--extra-body wants a JSON object such as {\"temperature\": 0}, got '[1]'");
    says({"--extra-body", "{"}, "--extra-body wants a JSON object");
    says({"--rate", "abc"}, "--rate: a number above 0, or inf, wanted, got 'abc'");
    says({"--rate", "-1"}, "--rate: a number above 0, or inf, wanted, got '-1'");
    says({"--request-timeout", "1e999"}, "--request-timeout: a number above 0 wanted");
    says({"--requests", "-3"}, "--requests: an integer of at least 1 wanted, got '-3'");
    says({"--concurrency", "1.5"}, "--concurrency: an integer of at least 1 wanted, got '1.5'");
    says({"--salt", "99999999999999999999999"}, "--salt: an integer of at least 0 wanted");
    says({"--rate", "9", "--burstiness", "nan"},
         "--burstiness: a number above 0, or inf, wanted, got 'nan'");
    says({"--burstiness", "2"}, "--burstiness goes with arrivals at a rate");
    says({"--duration", "5s"}, "--duration goes with --rate or --concurrency");
    says({"--duration", "5s", "--requests", "9"}, "--duration and --requests exclude each other");
    says({"--sweep", "1,2", "--rate", "9"}, "for limits or rates see `autotune capacity`");

    const Json even = result_of("", folder, {});
    CHECK(even.at("burstiness") == 1);
    const BenchRun ended =
        bench(server, folder,
              {"--workload", "random:8x4", "--requests", "20", "--rate", "100", "--burstiness",
               "inf", "--json", "--header", "X-Tenant:7", "--extra-body", R"({"temperature": 0})"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(Json::parse(ended.out).at("burstiness") == Json("inf"));
    const RequestTruth last = server.truth().back();
    CHECK(last.head.find("X-Tenant: 7") != std::string::npos);
    CHECK(Json::parse(last.body).at("temperature") == 0);
}

TEST_CASE("bench: why a server cannot be asked is said: connection, name, status, redirect") {
    const TemporaryFolder folder;
    const auto error = [&](const std::string& behaviour,
                           const std::vector<std::string>& more = {}) {
        const StreamServer server({.behaviour = parse_behaviour(behaviour)});
        const BenchRun ended = bench(server, folder, more);
        CHECK(ended.code == 2);
        return ended.err;
    };
    const StreamServer nobody({.listening = false});
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--model", "m"}, {"--model", "m", "--token-ids"}}) {
        const std::string refused = bench(nobody, folder, more).err;
        INFO(refused);
        CHECK(refused.find("Connection refused") != std::string::npos);
        CHECK(refused.find(nobody.url() + "/v1/") != std::string::npos);
    }
    CHECK(bench("http://no-such-host.invalid", folder, {}).err.find("no-such-host.invalid: ") ==
          std::string::npos);
    CHECK(bench("http://no-such-host.invalid", folder, {}).err.find("resolve host") !=
          std::string::npos);
    CHECK(bench("ftp://127.0.0.1", folder, {}).err.find("begins with http:// or https://") !=
          std::string::npos);
    CHECK(error("models_status=401")
              .find("answers 401 (no API key, or a wrong one): no list for you") !=
          std::string::npos);
    CHECK(error("models_status=503").find("answers 503: no list for you") != std::string::npos);
    CHECK(error("models_status=302")
              .find("answers 302: a redirect to https://elsewhere.invalid/v1/models") !=
          std::string::npos);
    CHECK(error("models_status=404").find("answers, but has no list of models") !=
          std::string::npos);
    CHECK(error("status=401", {"--model", "m"})
              .find("answers 401 (no API key, or a wrong one): the engine refuses") !=
          std::string::npos);
    CHECK(error("redirect", {"--model", "m"}).find("a redirect to http://127.0.0.1:") !=
          std::string::npos);
    CHECK(error("status=422", {"--model", "m"})
              .find("refuses the load test's requests: status 422: the engine refuses") !=
          std::string::npos);
}

TEST_CASE("bench: an address is taken with /v1 behind it, or with a path of the interface") {
    const StreamServer server;
    const TemporaryFolder folder;
    for (const char* path :
         {"", "/", "/v1", "/v1/", "/v1//", "/v1/chat/completions", "/v1/models/"}) {
        const BenchRun ended =
            bench(server.url() + path, folder, {"--workload", "random:8x4", "--requests", "4"});
        INFO(path << ": " << ended.err);
        CHECK(ended.code == 0);
        CHECK(ended.out.find("Successful requests:                     4 ") != std::string::npos);
    }
}

TEST_CASE(
    "bench: a server that refuses our fields is measured without them, and the result says so") {
    const TemporaryFolder folder;
    using Fields = std::vector<std::string>;
    const auto refused = [](const Json& result) {
        return result.at("servetune").at("refused_fields").get<Fields>();
    };
    for (const char* words : {"no_ignore_eos", "no_ignore_eos,vague", "no_ignore_eos=400"}) {
        INFO(words);
        const Json result = result_of(words, folder);
        CHECK(result.at("completed") == 24);
        CHECK(result.at("total_output_tokens") == 24 * 12);
        CHECK(refused(result) == Fields{"ignore_eos"});
        CHECK(notes_say(result, "the server refuses the field ignore_eos"));
        CHECK_FALSE(has_finding(result, "lengths"));  // this server gave every token asked for
    }
    const Json shorter = result_of("no_ignore_eos,tokens=5", folder);
    CHECK(shorter.at("total_output_tokens") == 24 * 5);
    CHECK(has_finding(shorter, "lengths"));
    CHECK(shorter.at("servetune").at("verdict") == Json("suspect"));

    CHECK(refused(result_of("no_max_tokens,no_ignore_eos", folder)) ==
          Fields{"ignore_eos", "max_tokens"});
    const Json all = result_of(
        "no_max_tokens,no_ignore_eos,no_stream_options,vague,usage_in_finish,no_done", folder);
    CHECK(refused(all) == Fields{"ignore_eos", "stream_options", "max_tokens"});
    CHECK(all.at("total_output_tokens") == 24 * 12);  // counted: usage comes unasked
    CHECK_FALSE(has_finding(all, "counts"));
    CHECK(refused(result_of("", folder)).empty());
}

TEST_CASE("bench: a server that counts no tokens is measured, with estimates that are called so") {
    const TemporaryFolder folder;
    for (const char* words :
         {"no_usage", "no_stream_options,no_usage", "no_usage,chunk_tokens=4"}) {
        INFO(words);
        const Json result = result_of(std::string("plain_words,") + words, folder);
        CHECK(result.at("completed") == 24);
        CHECK(result.at("total_output_tokens") ==
              24 * 12);  // by pieces, or by their text where pieces hold several
        CHECK(result.at("total_input_tokens") == 24 * 30);  // as planned
        CHECK(result.at("servetune").at("tokens_are_estimated") == true);
        CHECK(has_finding(result, "counts"));
        CHECK(notes_say(result, "the server gave no token count for 24 answers"));
        CHECK(notes_say(result, "24 prompts: their planned lengths are counted instead"));
    }
    CHECK(notes_say(result_of("plain_words,no_usage,chunk_tokens=4", folder),
                    "estimated from their text"));
    const Json whole = result_of("plain_words,no_usage", folder, {"--no-stream"});
    CHECK(whole.at("total_output_tokens") == 24 * 12);
    CHECK(result_of("", folder).at("servetune").at("tokens_are_estimated") == false);
}

TEST_CASE("bench: progress is written to a file as lines, and intervals of times are positive") {
    const StreamServer server(
        {.behaviour =
             parse_behaviour("first=0.002,gap=0.2,share=0.2")});  // most are quick, some take long
    const TemporaryFolder folder;
    const BenchRun ended = bench(
        server.url(), folder,
        {"--workload", "random:8x6", "--requests", "20", "--rate", "15", "--token-ids"}, false);
    INFO(ended.err << ended.out);
    CHECK(ended.err.find('\r') == std::string::npos);
    CHECK(ended.err.find(" of 20 ended, ") != std::string::npos);
    CHECK(ended.out.find('\r') == std::string::npos);
    CHECK(ended.out.find("  -") == std::string::npos);  // as a negative low end would be printed
    CHECK(ended.out.find(".. -") == std::string::npos);
}

TEST_CASE("bench: Ctrl-C reports what has come") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.05")});
    const TemporaryFolder folder;
    ChildProcess process(
        {SERVETUNE_PROGRAM, "bench", "--url", server.url(), "--quiet", "--workload",
         "random:8x2000", "--requests", "20", "--concurrency", "4", "--token-ids", "--warmup", "0"},
        folder.path());
    while (server.totals().in_flight < 4)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    process.signal(SIGINT);
    CHECK(process.wait() == 130);
    CHECK(process.out().find("20 cancelled: the run was stopped") != std::string::npos);
}

TEST_CASE("bench: requests before are not counted, a duration becomes a number of requests") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.02,gap=0.001")});
    const TemporaryFolder folder;
    const auto completed = [&](std::vector<std::string> words) {
        words.insert(words.end(), {"--workload", "random:30x12", "--json"});
        const BenchRun ended = bench(server, folder, words);
        INFO(ended.err);
        REQUIRE(ended.code == 0);
        return Json::parse(ended.out);
    };
    const Json warm = completed({"--requests", "10", "--warmup", "7"});
    CHECK(warm["completed"] == 10);
    CHECK(server.truth().size() >= 17);
    CHECK(completed({"--rate", "40", "--duration", "500ms"})["completed"] == 20);
    const Json closed =
        completed({"--concurrency", "2", "--duration", "2s"});  // some 30 ms a request
    CHECK(closed["completed"] > 40);
    CHECK(closed["duration"] > 1.0);
    CHECK(closed["duration"] < 4.0);
    // A rate with a bound on what is in flight: ten requests a second of 30 ms each are never two.
    CHECK(completed({"--rate", "200", "--concurrency", "1", "--requests", "20"})["duration"] >
          20 * 0.03);
    const StreamServer broken({.behaviour = parse_behaviour("status=500")});
    const BenchRun none =
        bench(broken, folder, {"--warmup", "2", "--requests", "4", "--workload", "random:30x12"});
    CHECK(none.code != 0);
}

TEST_CASE(
    "bench: a server that was cold for half of the run is not believed, one that becomes warm "
    "before is") {
    const TemporaryFolder folder;
    const std::vector<std::string> load{
        "--workload", "random:30x32", "--requests", "96", "--concurrency", "8", "--json"};
    const auto with = [&](const std::string& word, const std::string& value) {
        auto words = load;
        words.insert(words.end(), {word, value});
        return words;
    };
    const StreamServer cold({.behaviour = parse_behaviour("first=0.02,gap=0.006,cold=56")});
    const BenchRun half = bench(cold, folder, with("--warmup", "0"));
    CHECK(half.code == 1);
    const Json unsteady = Json::parse(half.out);
    CHECK(unsteady.at("servetune").at("verdict") == "unsound");
    REQUIRE(has_finding(unsteady, "steady"));
    CHECK(unsteady.at("servetune").at("findings").dump().find("times slower than the rest") !=
          std::string::npos);

    // The first round is cold, the second one is faster, the third one is not faster any more.
    const StreamServer soon(
        {.behaviour = parse_behaviour("first=0.02,gap=0.006,cold=14,cold_times=3")});
    std::vector<std::string> words = load;
    const BenchRun warmed = bench(soon.url(), folder, words, false);
    INFO(warmed.err);
    CHECK_FALSE(has_finding(Json::parse(warmed.out), "steady"));
    CHECK(warmed.err.find("warm-up: 24 requests in 3 rounds, the first ") != std::string::npos);
    CHECK(warmed.err.find("; the server is steady") != std::string::npos);
}

TEST_CASE("bench: a rate that is not reached is suspect, where requests wait in the client too") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.05,gap=0.005")});
    const TemporaryFolder folder;
    const BenchRun ended = bench(server, folder,
                                 {"--workload", "random:30x32", "--requests", "80", "--rate", "60",
                                  "--concurrency", "4", "--json"});
    INFO(ended.err);
    const Json result = Json::parse(ended.out);
    CHECK(result.at("servetune").at("verdict") == "suspect");
    CHECK(has_finding(result, "rate"));
    CHECK(has_finding(result, "sent_late"));
    CHECK(result.at("mean_ttft_ms").get<double>() < 500);  // what it looks like without the wait
}

TEST_CASE("bench: a sweep is a table of loads") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.004,gap=0.001")});
    const TemporaryFolder folder;
    const BenchRun table = bench(
        server, folder, {"--sweep", "4,1,2", "--workload", "random:30x12", "--requests", "12"});
    INFO(table.err);
    CHECK(table.code == 0);
    CHECK(table.out.find("tok/s/user") != std::string::npos);
    CHECK(table.out.find("\n           1 ") < table.out.find("\n           4 "));
}

TEST_CASE("bench: a sweep says the verdict of each load, and its exit code the gravest") {
    const StreamServer server(
        {.behaviour = parse_behaviour("first=0.002,gap=0.001,abort=2,share=0.3")});
    const TemporaryFolder folder;
    const BenchRun table =
        bench(server, folder, {"--sweep", "1,2", "--workload", "random:8x4", "--requests", "40"});
    INFO(table.out << table.err);
    CHECK(table.code == 1);
    CHECK(table.out.find("verdict\n") != std::string::npos);
    CHECK(table.out.find("unsound\n           2 ") != std::string::npos);
    CHECK(table.out.find("\n1, unsound:\n") != std::string::npos);
    CHECK(table.out.find("  complete: ") != std::string::npos);
}

TEST_CASE("bench: what the audit said stands in the file, for an audit that knows less too") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.003,gap=0.001")});
    const TemporaryFolder folder;
    const BenchRun too_fast =
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
    CHECK(bench(server, folder,
                {"--workload", "random:30x20", "--requests", "12", "--compare-with", "u.json"})
              .out.find("u.json is unsound by its own verdict\n") != std::string::npos);
}

TEST_CASE("bench: a result that cannot be saved is said before the load, or printed all the same") {
    const TemporaryFolder folder;
    for (const char* option :
         {"--save", "--records"})  // nobody listens there: the place is looked at first
        CHECK(bench("http://127.0.0.1:1", folder, {option, "nodir/x.json"}).err ==
              "autotune: cannot write nodir/x.json: No such file or directory\n");
    CHECK(bench("http://127.0.0.1:1", folder, {"--sweep", "1,2", "--save", "nodir/x.json"})
              .err.find("cannot write nodir/x.json") != std::string::npos);
    const StreamServer server({.behaviour = parse_behaviour("first=0.003,gap=0.001")});
    const std::vector<std::string> load{"--workload", "random:30x12",  "--requests",
                                        "12",         "--concurrency", "2"};
    auto full = load;
    full.insert(full.end(), {"--save", "/dev/full", "--records", "r.jsonl.gz"});
    const BenchRun ended = bench(server, folder, full);
    CHECK(ended.code == 2);
    CHECK(ended.err.find("cannot write /dev/full: No space left on device") != std::string::npos);
    CHECK(ended.out.find("Successful requests:                     12") != std::string::npos);
    CHECK(read_records(folder.path() / "r.jsonl.gz").size() == 12);
    const BenchRun table = bench(server, folder,
                                 {"--sweep", "1,2", "--workload", "random:30x12", "--requests",
                                  "12", "--save", "/dev/full"});
    CHECK(table.code == 2);
    CHECK(table.out.find("tok/s/user") != std::string::npos);
}

TEST_CASE("bench: limits of a good request take units") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.003,gap=0.001")});
    const TemporaryFolder folder;
    CHECK(bench(server, folder, {"--num-prompts", "6"}).code == 2);  // vLLM's spelling is not ours
    const BenchRun with_unit = bench(server, folder,
                                     {"--ttft-limit", "500ms", "--latency-limit", "90 s",
                                      "--requests", "6", "--workload", "random:30x12", "--json"});
    INFO(with_unit.err);
    REQUIRE(with_unit.code == 0);
    CHECK(Json::parse(with_unit.out)["request_goodput"].get<double>() > 0);
    CHECK(bench(server, folder, {"--ttft-limit", "500"}).err.find("say the unit: 500ms or 500s") !=
          std::string::npos);
    for (const char* wrong : {"500mss", "ms", "-1ms", "0", "nan", "inf", "1e400s"})
        CHECK(bench(server, folder, {"--ttft-limit", wrong})
                  .err.find("seconds, or a time such as 500ms, wanted") != std::string::npos);
    CHECK(bench(server, folder, {"--workload", "512x128"})
              .err.find("--workload 512x128: write random:512x128") != std::string::npos);
}
