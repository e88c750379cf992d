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
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

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
        result.append(buffer.data(), static_cast<std::size_t>(got));
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

const std::vector<std::string> serving{SERVETUNE_PROGRAM, "view", "page.yaml", "--address",
                                       "127.0.0.1:0"};

/// Of a study that is over, served by a program of its own.
std::uint16_t finished_study(const TemporaryFolder& folder) {
    slow_study(folder, "0ms");
    REQUIRE(autotune({"run", "page.yaml", "--quiet"}, folder.path()).code == 0);
    return 0;
}

}  // namespace

TEST_CASE("live page: page, metrics and events of a study that runs") {
    const TemporaryFolder folder;
    slow_study(folder, "400ms");
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "127.0.0.1:0"},
                     folder.path());
    const std::uint16_t port = port_of(run);
    REQUIRE(comes_to_trial(folder.path() / "page", 3));
    const auto events = connected(port, get("/events", "Accept: text/event-stream\r\n"));
    const std::string first = received(*events, "\n\n");
    INFO(first);
    CHECK(status_of(first) == 200);
    CHECK(has(first, "Content-Type: text/event-stream"));
    const std::string page = exchanged(port, get("/"));
    CHECK(status_of(page) == 200);
    CHECK(has(page, "connect-src 'self'"));
    CHECK(has(page, "id=\"live\""));
    CHECK(has(page, "max_num_seqs = 128"));
    // Between two trials none runs: asked again until one does, or the run has ended.
    std::string metrics;
    do metrics = exchanged(port, get("/metrics"));
    while (!has(metrics, "servetune_trials{study=\"page\",state=\"running\"} 1\n") &&
           has(metrics, "servetune_running{study=\"page\"} 1\n"));
    CHECK(has(metrics, "servetune_trials{study=\"page\",state=\"running\"} 1\n"));
    CHECK(has(metrics, "servetune_running{study=\"page\"} 1\n"));
    CHECK(has(metrics, "servetune_best{study=\"page\",metric=\"total_tokens_per_second\"} "));
    CHECK(has(metrics, "servetune_left_seconds{study=\"page\"} "));
    const std::string rest = received(*events);  // to the end of the run
    INFO(rest);
    CHECK(run.wait() == 0);
    std::size_t renewed = 0;
    for (std::size_t at = rest.find("\"trial\":\"trial "); at != std::string::npos;
         at = rest.find("\"trial\":\"trial ", at + 1))
        ++renewed;
    CHECK(renewed >= 2);  // a look a second
    CHECK(has(rest, "The run has ended: Recommended"));
    for (std::size_t at = rest.find("data: "); at != std::string::npos;
         at = rest.find("data: ", at + 1))
        CHECK(nlohmann::json::accept(rest.substr(at + 6, rest.find('\n', at) - at - 6)));
    // The same study without a page gives the same report; the file itself follows nobody.
    CHECK_FALSE(has(read_file(folder.path() / "page/report.html"), "EventSource"));
}

TEST_CASE("live page: what is no request for it is refused, and the server goes on") {
    const TemporaryFolder folder;
    finished_study(folder);
    ChildProcess server(serving, folder.path());
    const std::uint16_t port = port_of(server);
    CHECK(status_of(exchanged(port, "what is this\r\n\r\n")) == 400);
    CHECK(status_of(exchanged(port, std::string(200, '\x01') + "\r\n\r\n")) == 400);
    CHECK(status_of(exchanged(port, get("/", "X: " + std::string(20000, 'a') + "\r\n"))) == 431);
    CHECK(status_of(exchanged(port, get("/", "", "POST"))) == 405);
    CHECK(status_of(exchanged(port, get("/", "", "DELETE"))) == 405);
    CHECK(status_of(exchanged(port, get("/", "Content-Length: 3\r\n") + "abc")) == 400);
    for (const char* coding :
         {"chunked", "gzip", "xchunked", "identity", "chunked, identity", "\tchunked", ""}) {
        // What follows must not be answered as a request of its own.
        const std::string smuggled =
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: " + std::string(coding) +
            "\r\n\r\n0\r\n\r\n";
        const std::string answer = exchanged(port, smuggled + get("/metrics"));
        INFO(coding << ": " << answer);
        CHECK(status_of(answer) == 400);
        CHECK(answer.find("HTTP/1.1 ", 9) == std::string::npos);
    }
    for (const char* path : {"//evil.example/x", "/\\evil.example", "//", "///x", "/a\\b"})
        CHECK(status_of(exchanged(port, get(path))) == 400);
    CHECK(status_of(exchanged(port, get("/", "Host: localhost\r\n"))) == 400);
    CHECK(status_of(exchanged(port, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400);
    CHECK(status_of(exchanged(port, get("http://127.0.0.1/"))) == 400);
    CHECK(status_of(exchanged(port, get("/study.db"))) == 404);
    CHECK(status_of(exchanged(port, get("/../page.yaml"))) == 404);
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
    const std::string head = exchanged(port, get("/", "", "HEAD"));
    CHECK(status_of(head) == 200);
    CHECK(head.ends_with("\r\n\r\n"));
    CHECK(has(head, "Content-Length: "));
    // Two requests on one connection.
    const auto kept = connected(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(has(received(*kept, "servetune_running"), "servetune_running"));
    const std::string again = get("/metrics");
    REQUIRE(send(kept->id(), again.data(), again.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(again.size()));
    CHECK(has(received(*kept), "HTTP/1.1 200 OK"));
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
}

TEST_CASE("live page: an address that others reach wants a token, which is never shown") {
    const TemporaryFolder folder;
    finished_study(folder);
    const Ran without = autotune({"view", "page.yaml", "--address", "0.0.0.0:0"}, folder.path());
    CHECK(without.code == 2);
    CHECK(has(without.err, "wants a token"));
    const std::string token = "0123456789abcdef-secret";
    const fs::path file = folder.write("token", token + "\n");
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    for (const auto& [bad, why] : std::vector<std::pair<std::string, std::string>>{
             {"short", "16 to 256 characters"},
             {"sixteen characters and blanks", "letters, digits"},
             {"\n", "is empty"}}) {
        const Ran refused = autotune({"view", "page.yaml", "--address", "0.0.0.0:0", "--token-file",
                                      folder.write("bad", bad).string()},
                                     folder.path());
        INFO(refused.err);
        CHECK(refused.code == 2);
        CHECK(has(refused.err, why));
    }
    ChildProcess server({SERVETUNE_PROGRAM, "view", "page.yaml", "--address", "0.0.0.0:0",
                         "--token-file", file.string()},
                        folder.path());
    const std::uint16_t port = port_of(server);
    for (const char* path : {"/", "/events", "/metrics", "/nothing",
                             "/?token=0123456789abcdef-secreT", "/?token=", "/?other=1"}) {
        INFO(path);
        const std::string answer = exchanged(port, get(path));
        CHECK(status_of(answer) == 401);
        CHECK_FALSE(has(answer, "servetune_"));
    }
    CHECK(status_of(exchanged(
              port, get("/", "Authorization: Bearer " + token.substr(1) + "\r\n"))) == 401);
    CHECK(status_of(exchanged(port, get("/", "Authorization: Basic " + token + "\r\n"))) == 401);
    CHECK(status_of(exchanged(port, get("/", "Cookie: autotune_token=" + token + "x\r\n"))) == 401);
    CHECK(status_of(exchanged(port, get("/metrics", "Authorization: Bearer " + token + "\r\n"))) ==
          200);
    const std::string moved = exchanged(port, get("/?token=" + token));
    CHECK(status_of(moved) == 303);
    CHECK(has(moved, "\r\nLocation: /\r\n"));
    for (const char* path :
         {"//evil.example/x", "/\\evil.example/x", "///evil.example", "//evil.example/%2e%2e"}) {
        const std::string elsewhere = exchanged(port, get(path + ("?token=" + token)));
        CHECK(status_of(elsewhere) == 400);
        CHECK_FALSE(has(elsewhere, "Location"));
    }
    CHECK(has(moved,
              "\r\nSet-Cookie: autotune_token=" + token + "; Path=/; HttpOnly; SameSite=Lax\r\n"));
    CHECK(status_of(exchanged(
              port, get("/", "Cookie: other=1; autotune_token=" + token + "\r\n"))) == 200);
    CHECK(status_of(exchanged(port,
                              "GET /metrics HTTP/1.1\r\nHost: tuner.example\r\nConnection: "
                              "close\r\nAuthorization: Bearer " +
                                  token + "\r\n\r\n")) == 200);
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
    CHECK_FALSE(has(server.out() + server.err(), token));
}

TEST_CASE(
    "live page: clients that do nothing, or do not read, hold up neither the study nor others for "
    "long") {
    const TemporaryFolder folder;
    slow_study(folder, "1s");
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "127.0.0.1:0"},
                     folder.path());
    const std::uint16_t port = port_of(run);
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<Socket>> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(connected(port, get("/events")));  // never read
    for (int i = 0; i < 30; ++i) clients.push_back(connected(port));  // never say anything
    for (int i = 0; i < 14; ++i)
        clients.push_back(connected(port, "GET / HTTP/1.1\r\nHo"));  // never say the rest
    CHECK(comes_true([&] { return status_of(exchanged(port, get("/metrics"))) == 503; }));
    // Ten seconds are what a request may take.
    CHECK(comes_true([&] { return status_of(exchanged(port, get("/metrics"))) == 200; }));
    CHECK(std::chrono::steady_clock::now() - began > std::chrono::seconds(8));
    CHECK(run.wait() == 0);
    const Ran told = autotune({"status", "page.yaml"}, folder.path());
    CHECK(has(told.out, "11 trials measured, 1 failed"));
}

TEST_CASE("live page: readers of events do not take all places") {
    const TemporaryFolder folder;
    finished_study(folder);
    ChildProcess server(serving, folder.path());
    const std::uint16_t port = port_of(server);
    std::vector<std::unique_ptr<Socket>> readers;
    int refused = 0;
    for (int i = 0; i < 64; ++i) {
        readers.push_back(connected(port, get("/events")));
        refused += status_of(received(*readers.back(), "\r\n\r\n")) == 503 ? 1 : 0;
    }
    CHECK(refused == 64 - 48);
    for (const char* path : {"/", "/metrics"}) CHECK(status_of(exchanged(port, get(path))) == 200);
    readers.resize(10);
    CHECK(comes_true(
        [&] { return status_of(received(*connected(port, get("/events")), "\r\n\r\n")) == 200; }));
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
}

TEST_CASE(
    "live page: a port that is taken and a wrong address are said before anything is started") {
    const TemporaryFolder folder;
    finished_study(folder);
    ChildProcess server(serving, folder.path());
    const std::string taken = "127.0.0.1:" + std::to_string(port_of(server));
    const TemporaryFolder other;
    slow_study(other, "0ms");
    const Ran refused = autotune({"run", "page.yaml", "--view", taken}, other.path());
    INFO(refused.err);
    CHECK(refused.code == 3);
    CHECK(has(refused.err,
              "cannot serve a page on " + taken + ": the port is taken; choose another"));
    CHECK_FALSE(fs::exists(other.path() / "page"));
    for (const char* wrong :
         {"127.0.0.1:99999", "127.0.0.1:", "127.0.0.1:x", "a b:80", "localhost:-1"}) {
        const Ran no = autotune({"run", "page.yaml", "--view", wrong}, other.path());
        INFO(wrong << ": " << no.err);
        CHECK(no.code == 2);
        CHECK(has(no.err, "write HOST:PORT"));
    }
    CHECK(autotune({"run", "page.yaml", "--token-file", "t"}, other.path()).code ==
          2);  // without --view
}

TEST_CASE(
    "live page: view takes the folder of a study, says whether somebody measures, and tells what "
    "it cannot read") {
    const TemporaryFolder folder;
    slow_study(folder, "500ms");
    CHECK(autotune({"view", "page.yaml", "--address", "127.0.0.1:0"}, folder.path()).code !=
          0);  // nothing is there yet
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--quiet"}, folder.path());
    REQUIRE(comes_to_trial(folder.path() / "page", 2));
    const TemporaryFolder elsewhere;
    ChildProcess server(
        {SERVETUNE_PROGRAM, "view", (folder.path() / "page/").string(), "--address", "127.0.0.1:0"},
        elsewhere.path());
    const std::uint16_t port = port_of(server);
    CHECK(has(exchanged(port, get("/metrics")), "servetune_running{study=\"page\"} 1\n"));
    CHECK(run.wait() == 0);
    CHECK(comes_true([&] {
        return has(exchanged(port, get("/metrics")), "servetune_running{study=\"page\"} 0\n");
    }));
    const std::string page = exchanged(port, get("/"));
    CHECK(has(page, "What the parameters do"));  // fitted once nobody measures any more
    server.signal(SIGINT);
    CHECK(server.wait() == 0);
    fs::remove(folder.path() / "page.yaml");  // the journal has it
    const TemporaryFolder third;              // what a child says is a file of its folder
    ChildProcess alone(
        {SERVETUNE_PROGRAM, "view", (folder.path() / "page").string(), "--address", "127.0.0.1:0"},
        third.path());
    const std::uint16_t port_alone = port_of(alone);
    CHECK(has(exchanged(port_alone, get("/metrics")), "servetune_running{study=\"page\"} 0\n"));
    alone.signal(SIGINT);
    CHECK(alone.wait() == 0);
    const Ran lost = autotune({"view", elsewhere.path().string()}, elsewhere.path());
    CHECK(lost.code == 2);
    CHECK(has(lost.err, " is a folder without a journal (study.db)\n"));
}

TEST_CASE("live page: a browser renews it while the study runs") {
    const fs::path browser = "/usr/bin/chromium";
    if (access(browser.c_str(), X_OK) != 0) {
        WARN("skipped: there is no " << browser);
        return;
    }
    const TemporaryFolder folder;
    slow_study(folder, "1s");
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "127.0.0.1:0"},
                     folder.path());
    const std::uint16_t port = port_of(run);
    REQUIRE(comes_to_trial(folder.path() / "page", 3));
    const std::string loaded_by_then = exchanged(port, get("/"));
    const TemporaryFolder at;
    // The browser's clock stands still as long as it reads events: it shows the page as it is after
    // the last one.
    const Ran shown =
        ran({browser.string(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--enable-logging=stderr", "--v=0",
             "--user-data-dir=" + (at.path() / "profile").string(), "--virtual-time-budget=3000",
             "--dump-dom", "http://127.0.0.1:" + std::to_string(port) + "/"},
            at.path());
    CHECK(run.wait() == 0);
    CHECK(shown.code == 0);
    for (const auto& line :
         {"TypeError", "ReferenceError", "SyntaxError", "Content Security Policy"})
        CHECK_FALSE(has(shown.err, line));
    const std::string all = "12, 1 failed</td>";
    CHECK_FALSE(has(loaded_by_then, all));
    CHECK(has(shown.out, all));
    CHECK(has(shown.out, "id=\"live-trial\">The run has ended: Recommended"));
    CHECK(has(
        shown.out,
        "<button type=\"button\">gain</button>"));  // the page's program ran on the new page, too
    const auto data = shown.out.find("id=\"data\">");
    REQUIRE(data != std::string::npos);
    const auto parsed = nlohmann::json::parse(
        shown.out.substr(data + 10, shown.out.find("</script>", data) - data - 10));
    CHECK(parsed["report"]["trials"]["told"] == 12);
}

TEST_CASE("live page: in a browser, what a person has chosen stays while trials end") {
    if (access("/usr/bin/chromium", X_OK) != 0 ||
        !fs::exists(fs::path(BROWSER_PACKAGES) / "node_modules/playwright-core")) {
        WARN("skipped: /usr/bin/chromium or playwright-core is missing");
        return;
    }
    const TemporaryFolder folder;
    slow_study(folder, "2500ms", true);
    ChildProcess run({SERVETUNE_PROGRAM, "run", "page.yaml", "--view", "127.0.0.1:0"},
                     folder.path());
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
