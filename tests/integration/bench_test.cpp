// SPDX-License-Identifier: Apache-2.0
// `autotune bench` from outside, against the test server: what it prints, saves and answers.
#include "support/process.hpp"
#include "support/stream_server.hpp"
#include "support/test.hpp"

#include "servetune/base/error.hpp"
#include "servetune/io/files.hpp"
#include "servetune/io/records.hpp"

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

BenchRun bench(const StreamServer& server, const TemporaryFolder& folder, std::vector<std::string> more) {
    std::vector<std::string> words{SERVETUNE_PROGRAM, "bench", "--url", server.url(), "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess process(words, folder.path());
    const int code = process.wait();
    return {code, process.out(), process.err()};
}

}  // namespace

TEST_CASE("bench: report, vLLM's JSON, records and a comparison with an earlier result") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.004")});
    const TemporaryFolder folder;
    const std::vector<std::string> load{"--workload", "random:30x12", "--requests", "48", "--concurrency", "6"};
    auto first = load;
    first.insert(first.end(), {"--save", "first.json", "--records", "first.jsonl.gz", "--detailed"});
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
    CHECK(message_of<ParseError>([&] { (void)read_records(folder.write("x.gz", "{}\n")); }).find("x.gz:1: not a request's record") !=
          std::string::npos);

    auto second = load;
    second.insert(second.end(), {"--compare-with", "first.json"});
    const BenchRun compared = bench(server, folder, second);
    CHECK(compared.out.find("output_tokens_per_second") != std::string::npos);
    CHECK(compared.out.find("equal_work") == std::string::npos);  // the same work: other prompts, the same lengths

    auto json = load;
    json.emplace_back("--json");
    CHECK(Json::parse(bench(server, folder, json).out)["servetune"]["workload_fingerprint"] == saved["servetune"]["workload_fingerprint"]);
}

TEST_CASE("bench: streams that end without [DONE], with the counts beside the finish reason, are counted exactly") {
    const TemporaryFolder folder;
    for (const char* words : {"no_done,usage_in_finish", "no_done,usage_in_finish,finish_apart", "no_done,usage_in_finish,connection_close",
                              "no_done,usage_in_finish,until_close"}) {
        INFO(words);
        const StreamServer server({.behaviour = parse_behaviour(std::string("first=0.003,gap=0.001,") + words)});
        const BenchRun ended = bench(server, folder, {"--workload", "random:30x12", "--requests", "24", "--concurrency", "4", "--json"});
        INFO(ended.err);
        const Json figures = Json::parse(ended.out);
        CHECK(figures["completed"] == 24);
        CHECK(figures["total_output_tokens"] == 24 * 12);
        CHECK(figures["total_input_tokens"] == 24 * 30);
        CHECK(figures["servetune"]["figures"]["server_output_tokens"] == 24 * 12);
    }
}

TEST_CASE("bench: the answer is no when the result cannot be believed, and mistakes are said") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.002,gap=0.001,status=500,share=0.3")});
    const StreamServer good;
    const TemporaryFolder folder;
    const BenchRun failing = bench(server, folder, {"--workload", "random:8x4", "--requests", "40", "--token-ids"});
    CHECK(failing.code == 1);
    CHECK(failing.out.find("12 http_error: status 500") != std::string::npos);
    CHECK(failing.out.find("Verdict: unsound") != std::string::npos);
    CHECK(failing.out.find("complete: ") != std::string::npos);

    CHECK(bench(good, folder, {"--rate", "4", "--concurrency", "2"}).err == "autotune: --rate and --concurrency exclude each other\n");
    CHECK(bench(good, folder, {"--workload", "random:8"}).err ==
          "autotune: random:INPUTxOUTPUT wanted, such as random:1024x128, got 'random:8'\n");
    CHECK(bench(good, folder, {"--api-key-env", "SERVETUNE_NO_SUCH_KEY"}).code == 2);
    CHECK(bench(good, folder, {"--header", "plain"}).err == "autotune: --header NAME:VALUE wanted, got 'plain'\n");
    CHECK(bench(good, folder, {"--workload", "no-such-workload"}).err.find("no-such-workload") != std::string::npos);
    const StreamServer nobody({.listening = false});
    CHECK(bench(nobody, folder, {}).err == "autotune: " + nobody.url() + " does not say what it serves; name it with --model\n");
}

TEST_CASE("bench: Ctrl-C reports what has come") {
    const StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.05")});
    const TemporaryFolder folder;
    ChildProcess process({SERVETUNE_PROGRAM, "bench", "--url", server.url(), "--quiet", "--workload", "random:8x2000", "--requests", "20",
                          "--concurrency", "4", "--token-ids"},
                         folder.path());
    while (server.totals().in_flight < 4) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    process.signal(SIGINT);
    CHECK(process.wait() == 130);
    CHECK(process.out().find("20 cancelled: the run was stopped") != std::string::npos);
}
