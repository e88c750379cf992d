// SPDX-License-Identifier: Apache-2.0
// The report of a study in a browser while it runs: what is served, to whom, and that the study
// does not notice.
#include "support/autotune.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Eleven configurations that give a number after `delay`, one that runs out of memory.
fs::path slow_study(const TemporaryFolder& folder, const std::string& delay,
                    bool with_latency = false) {
    const std::string more =
        with_latency ? ",time_to_first_token_p95_seconds,latency_p95_seconds" : "";
    std::string table =
        "max_num_seqs,kv_cache_dtype,status,total_tokens_per_second" + more + ",message\n";
    int n = 0;
    for (const char* seqs : {"64", "128", "256", "512", "1024", "2048"})
        for (const char* type : {"engine", "fp8"}) {
            const bool fails = ++n == 12;
            table += std::string(seqs) + "," + type +
                     (fails ? ",out_of_memory,," : ",ok," + std::to_string(1000 + 37 * n) + ",");
            if (with_latency)
                table +=
                    fails ? ",," : std::to_string(0.1 * n) + "," + std::to_string(7.0 / n) + ",";
            table += fails ? "</script><b>\n" : "\n";
        }
    folder.write("t.csv", table);
    return folder.write("page.yaml",
                        "study: page\nmodel: m\nengine: vllm\nothers: default\nstrategy: "
                        "exhaustive\nworkloads: [random]\n"
                        "objective: {maximize: total_tokens_per_second}\n"
                        "space: {max_num_seqs: {choice: [64, 128, 256, 512, 1024, 2048], ordered: "
                        "true, default: 64}, kv_cache_dtype: "
                        "[engine, fp8]}\nevaluator: {replay: {table: t.csv, delay: " +
                            delay + "}}\n");
}

/// The port of the page that a program has said it serves; 0: it has not.
std::uint16_t port_in(const std::string& said) {
    const auto at = said.find("http://");
    const auto colon = at == std::string::npos ? at : said.find(':', at + 7);
    return colon == std::string::npos
               ? 0
               : static_cast<std::uint16_t>(std::atoi(said.c_str() + colon + 1));
}

std::uint16_t port_of(const ChildProcess& process) {
    std::uint16_t port = 0;
    REQUIRE(comes_true([&] { return (port = port_in(process.err() + process.out())) != 0; }));
    return port;
}

/// A connection that a test leaves as it is.
std::unique_ptr<Socket> connected(std::uint16_t port, const std::string& bytes = "") {
    auto socket = std::make_unique<Socket>();
    const timeval patience{20, 0};
    setsockopt(socket->id(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address = loopback(port);
    REQUIRE(connect(socket->id(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    if (!bytes.empty())
        REQUIRE(send(socket->id(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    return socket;
}

/// What comes until `until`, or to the end.
std::string received(const Socket& socket, const std::string& until = "") {
    std::string result;
    std::array<char, 65536> buffer{};
    while (until.empty() || !has(result, until)) {
        const ssize_t got = recv(socket.id(), buffer.data(), buffer.size(), 0);
        if (got <= 0) break;
        result.append(buffer.data(), std::size_t(got));
    }
    return result;
}

std::string exchanged(std::uint16_t port, const std::string& bytes) {
    return received(*connected(port, bytes));
}

std::string get(const std::string& path, const std::string& more = "",
                const std::string& method = "GET") {
    return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + more +
           "\r\n";
}

int status_of(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}

nlohmann::json state_at(std::uint16_t port) {
    const std::string answer = exchanged(port, get("/state"));
    REQUIRE(status_of(answer) == 200);
    return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

const std::vector<std::string> serving{SERVETUNE_PROGRAM, "view", "page.yaml", "--port", "0"};

/// Of a study that is over, served by a program of its own.
std::uint16_t finished_study(const TemporaryFolder& folder) {
    slow_study(folder, "0ms");
    REQUIRE(autotune({"run", "page.yaml", "--quiet"}, folder.path()).code == 0);
    return 0;
}

}  // namespace

TEST_CASE("live page: page and state of a study that runs, and its end") {
    const TemporaryFolder folder;
    slow_study(folder, "400ms");
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "0"}, folder.path());
    const std::uint16_t port = port_of(run);
    REQUIRE(comes_to_trial(folder.path() / "page", 3));
    const std::string page = exchanged(port, get("/"));
    CHECK(status_of(page) == 200);
    CHECK(has(page, "connect-src 'self'"));
    CHECK(has(page, "id=\"live\""));
    CHECK(has(page, "max_num_seqs = 128"));
    // Between two trials none runs: asked again until one does.
    nlohmann::json state;
    CHECK(comes_true([&] { return (state = state_at(port))["trial"] != ""; }));
    CHECK(state["running"] == true);
    CHECK(state["told"] >= 2);
    CHECK(has(state["best"].get<std::string>(), "best "));
    CHECK(state["began"].is_number());
    CHECK(state["left"].is_number());
    // Who asks to the end is told it, and gets the last page.
    const std::string version = state["version"];
    CHECK(comes_true([&] { return (state = state_at(port))["ended"] != ""; }));
    CHECK(has(state["ended"].get<std::string>(), "The run has ended: Recommended"));
    CHECK(state["version"] != version);
    const std::string last = exchanged(port, get("/"));
    CHECK(has(last, "12, 1 failed</dd>"));
    CHECK(has(last, "strategy finished</dd>"));
    CHECK_FALSE(has(last, "not yet"));
    CHECK(run.wait() == 0);
    // The same study without a page gives the same report; the file itself follows nobody.
    CHECK_FALSE(has(read_file(folder.path() / "page/report.html"), "id=\"live\""));
}

TEST_CASE("live page: what is no request for it is refused, and the server goes on") {
    const TemporaryFolder folder;
    finished_study(folder);
    ChildProcess server(serving, folder.path());
    const std::uint16_t port = port_of(server);
    // No HTTP, and a head that is too large: the connection ends without an answer.
    CHECK(status_of(exchanged(port, "what is this\r\n\r\n")) == 0);
    CHECK(status_of(exchanged(port, std::string(200, '\x01') + "\r\n\r\n")) == 0);
    CHECK(status_of(exchanged(port, get("/", "X: " + std::string(20000, 'a') + "\r\n"))) == 0);
    CHECK(status_of(exchanged(port, get("/", "", "POST"))) == 405);
    CHECK(status_of(exchanged(port, get("/", "", "DELETE"))) == 405);
    for (const char* coding : {"chunked", "gzip", "chunked, identity", ""}) {
        // What follows must not be answered as a request of its own.
        const std::string smuggled =
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: " + std::string(coding) +
            "\r\n\r\n0\r\n\r\n";
        const std::string answer = exchanged(port, smuggled + get("/state"));
        INFO(coding << ": " << answer);
        CHECK(answer.find("HTTP/1.1 ", 9) == std::string::npos);
    }
    for (const char* path : {"//evil.example/x", "/\\evil.example", "/a\\b", "http://127.0.0.1/",
                             "/study.db", "/../page.yaml", "/events", "/metrics"})
        CHECK(status_of(exchanged(port, get(path))) == 404);
    CHECK(status_of(exchanged(port, get("/", "Host: localhost\r\n"))) == 421);
    CHECK(status_of(exchanged(port, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")) == 421);
    // A name of somebody else's that leads to this machine.
    for (const char* host :
         {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""})
        CHECK(
            status_of(exchanged(port, std::string("GET / HTTP/1.1\r\nConnection: close\r\nHost: ") +
                                          host + "\r\n\r\n")) == 421);
    for (const char* host : {"localhost", "LOCALHOST:8420", "127.0.0.1:99", "[::1]:8420"})
        CHECK(
            status_of(exchanged(port, std::string("GET / HTTP/1.1\r\nConnection: close\r\nHost: ") +
                                          host + "\r\n\r\n")) == 200);
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
}

TEST_CASE(
    "live page: clients that do nothing, or do not read, hold up neither the study nor others for "
    "long") {
    const TemporaryFolder folder;
    slow_study(folder, "1s");
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "0"}, folder.path());
    const std::uint16_t port = port_of(run);
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<Socket>> clients;
    for (int i = 0; i < 30; ++i) clients.push_back(connected(port));  // never say anything
    for (int i = 0; i < 34; ++i)
        clients.push_back(connected(port, "GET / HTTP/1.1\r\nHo"));  // never say the rest
    CHECK(comes_true([&] { return status_of(exchanged(port, get("/state"))) == 0; }));
    // Ten seconds are what a request may take.
    CHECK(comes_true([&] { return status_of(exchanged(port, get("/state"))) == 200; }));
    CHECK(std::chrono::steady_clock::now() - began > std::chrono::seconds(8));
    CHECK(run.wait() == 0);
    const Ran told = autotune({"status", "page.yaml"}, folder.path());
    CHECK(has(told.out, "11 trials measured, 1 failed"));
}

TEST_CASE("live page: a port that is taken and a wrong one are said before anything is started") {
    const TemporaryFolder folder;
    finished_study(folder);
    ChildProcess server(serving, folder.path());
    const std::string taken = std::to_string(port_of(server));
    const TemporaryFolder other;
    slow_study(other, "0ms");
    const Ran refused = autotune({"run", "page.yaml", "--view", taken}, other.path());
    INFO(refused.err);
    CHECK(refused.code == 3);
    CHECK(has(refused.err,
              "cannot serve a page on 127.0.0.1:" + taken + ": the port is taken; choose another"));
    CHECK_FALSE(fs::exists(other.path() / "page"));
    for (const char* wrong : {"99999", "x", "0.0.0.0:8420", "-1"}) {
        const Ran no = autotune({"run", "page.yaml", "--view", wrong}, other.path());
        INFO(wrong << ": " << no.err);
        CHECK(no.code == 2);
    }
    CHECK(has(autotune({"view", "page.yaml", "--address", "0.0.0.0:8420"}, other.path()).err,
              "the page is for this machine alone"));
}

TEST_CASE(
    "live page: view takes the folder of a study, says whether somebody measures, and tells what "
    "it cannot read") {
    const TemporaryFolder folder;
    slow_study(folder, "800ms");
    CHECK(autotune({"view", "page.yaml", "--port", "0"}, folder.path()).code !=
          0);  // nothing is there yet
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--quiet"}, folder.path());
    REQUIRE(comes_to_trial(folder.path() / "page", 2));
    const TemporaryFolder elsewhere;
    ChildProcess server(
        {SERVETUNE_PROGRAM, "view", (folder.path() / "page/").string(), "--port", "0"},
        elsewhere.path());
    const std::uint16_t port = port_of(server);
    CHECK(state_at(port)["running"] == true);
    CHECK(state_at(port)["ended"] == "");
    // A core that fits models would be missed by the load test, whoever asks.
    for (const char* who : {"status", "report"}) {
        const Ran asked = autotune({who, "page.yaml", "--json"}, folder.path());
        const auto json = nlohmann::json::parse(asked.out);
        CHECK_FALSE(json.contains("effects"));
        CHECK(json["stop_reason"].is_null());
    }
    CHECK(run.wait() == 0);
    CHECK(comes_true([&] { return state_at(port)["running"] == false; }));
    CHECK(state_at(port)["ended"] == "strategy_finished");
    const std::string page = exchanged(port, get("/"));
    CHECK(has(page, "What the parameters do"));  // fitted once nobody measures any more
    CHECK(has(page, "strategy finished</dd>"));
    CHECK_FALSE(has(page, "not yet"));
    const Ran told = autotune({"status", "page.yaml"}, folder.path());
    CHECK(has(told.out, "\n  ended: strategy_finished\n  conclusion: Recommended: "));
    CHECK(nlohmann::json::parse(autotune({"report", "page.yaml", "--json"}, folder.path()).out)
              .contains("effects"));
    server.signal(SIGINT);
    CHECK(server.wait() == 0);
    fs::remove(folder.path() / "page.yaml");  // the journal has it
    const TemporaryFolder third;              // what a child says is a file of its folder
    ChildProcess alone(
        {SERVETUNE_PROGRAM, "view", (folder.path() / "page").string(), "--port", "0"},
        third.path());
    const std::uint16_t port_alone = port_of(alone);
    CHECK(state_at(port_alone)["running"] == false);
    alone.signal(SIGINT);
    CHECK(alone.wait() == 0);
    const Ran lost = autotune({"view", elsewhere.path().string()}, elsewhere.path());
    CHECK(lost.code == 2);
    CHECK(has(lost.err, " is a folder without a journal (study.db)\n"));
}

TEST_CASE("live page: the gain is over the default of today, once it was changed") {
    const TemporaryFolder folder;
    finished_study(folder);
    std::string text = read_file(folder.path() / "page.yaml");
    text.replace(text.find("default: 64"), 11, "default: 256");
    folder.write("page.yaml", text);
    REQUIRE(autotune({"run", "page.yaml", "--quiet", "--accept-changes"}, folder.path()).code == 0);
    ChildProcess server(serving, folder.path());
    CHECK(state_at(port_of(server))["best"] ==
          "best 1407, +18.7 % over the default (not confirmed yet)");  // 1185 with 256
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
}

TEST_CASE(
    "live page: in a browser, what a person has chosen stays while trials end, and the "
    "end is shown") {
    if (access("/usr/bin/chromium", X_OK) != 0 ||
        !fs::exists(fs::path(BROWSER_PACKAGES) / "node_modules/playwright-core")) {
        WARN("skipped: /usr/bin/chromium or playwright-core is missing");
        return;
    }
    const TemporaryFolder folder;
    slow_study(folder, "2500ms", true);
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "0"}, folder.path());
    const std::uint16_t port = port_of(run);
    REQUIRE(comes_to_trial(folder.path() / "page", 3));
    const Ran shown = ran({"/usr/bin/env", "SERVETUNE_BROWSER_PACKAGES=" BROWSER_PACKAGES, "node",
                           SERVETUNE_SOURCE "/tests/browser/page_test.mjs", "live",
                           "http://127.0.0.1:" + std::to_string(port) + "/"},
                          folder.path());
    INFO(shown.err);
    CHECK(shown.code == 0);
    CHECK(has(shown.out, "holds: live"));
    CHECK(run.wait() == 0);
}
