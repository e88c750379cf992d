// SPDX-License-Identifier: Apache-2.0
// `autotune watch`: a server whose traffic changes, one that restarts, and pages of all kinds.
#include "support/autotune.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/simengine.hpp"
#include "support/test.hpp"

#include <poll.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

/// A study on paper of requests with 256 + 32 tokens, 8 in flight; its folder.
fs::path watched_folder(const TemporaryFolder& folder, const std::string& engine = "vllm") {
    const fs::path file = folder.write(
        "watched.yaml",
        "study: watched\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: " + engine +
            "\nworkloads: [{use: random, input_tokens: 256, output_tokens: 32, requests: 200, "
            "ignore_eos: true, arrival: {concurrency: 8}}]\n"
            "objective: {maximize: total_tokens_per_second}\n"
            "space: {max_num_seqs: {choice: [64, 128], ordered: true, default: 64}}\n"
            "others: default\nstrategy: exhaustive\nbudget: {trials: 2}\n"
            "evaluator: {simulate: {}}\n");
    const Ran run = autotune({"run", file.string(), "--quiet"}, folder.path());
    INFO(run.err);
    REQUIRE(run.code == 0);
    return folder.path() / "watched";
}

std::vector<Json> lines_of_json(const std::string& out) {
    std::vector<Json> result;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line));
    return result;
}

Ran watch(const fs::path& study, const std::string& url, std::vector<std::string> more) {
    std::vector<std::string> words{"watch", study.string(), "--url", url};
    words.insert(words.end(), more.begin(), more.end());
    return autotune(words, study.parent_path());
}

/// Answers every request with what `make` gives, whole, and closes the connection.
class PageServer {
public:
    explicit PageServer(std::function<std::string(int)> make) : make_(std::move(make)) {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        REQUIRE(bind(server_.id(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(listen(server_.id(), 16) == 0);
        REQUIRE(getsockname(server_.id(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port_ = ntohs(address.sin_port);
        thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::string asked() const {
        return asked_;
    }  ///< the last request; after the client has ended

private:
    void serve(const std::stop_token& stop) {
        for (int count = 0; !stop.stop_requested();) {
            pollfd waits{server_.id(), POLLIN, 0};
            if (poll(&waits, 1, 20) <= 0) continue;
            const int client = accept(server_.id(), nullptr, nullptr);
            if (client < 0) continue;
            std::array<char, 4096> buffer{};
            const ssize_t got = recv(client, buffer.data(), buffer.size(), 0);
            asked_.assign(buffer.data(), std::size_t(std::max<ssize_t>(got, 0)));
            const std::string answer = make_(count++);
            for (std::size_t at = 0; at < answer.size() && !stop.stop_requested();) {
                const ssize_t sent =
                    send(client, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
                if (sent <= 0) break;
                at += std::size_t(sent);
            }
            close(client);
        }
    }
    std::function<std::string(int)> make_;
    Socket server_{};
    std::uint16_t port_ = 0;
    std::string asked_{};
    std::jthread thread_{};  // last: ends before what it uses
};

std::string http_page(const std::string& body, const std::string& more = "") {
    return "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// gzip without compression (RFC 1952, one stored block of RFC 1951).
std::string gzipped(const std::string& text) {
    std::uint32_t crc = ~0U;
    for (const char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int i = 0; i < 8; ++i) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    REQUIRE(text.size() < 65536);
    const auto little = [](std::uint32_t value, int bytes) {
        std::string result;
        for (int i = 0; i < bytes; ++i)
            result += static_cast<char>((value >> (8U * static_cast<unsigned>(i))) & 0xFFU);
        return result;
    };
    const auto size = static_cast<std::uint32_t>(text.size());
    std::string result("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11);
    return result + little(size, 2) + little(~size, 2) + text + little(~crc, 4) + little(size, 4);
}

/// A page of vLLM with two engines after so many requests of 256 + 32 tokens each, whose latencies
/// keep eight of them in flight at `rate` a second.
std::string vllm_page(double requests, double rate = 200) {
    std::ostringstream out;
    for (const int engine : {0, 1}) {
        const double each = requests / 2;
        const std::string labels =
            "{engine=\"" + std::to_string(engine) + "\",model_name=\"Qwen/Qwen3-8B\"";
        const auto sample = [&](const std::string& name, double value) {
            out << name << labels << "} " << value << "\n";
        };
        const auto histogram = [&](const std::string& name, const std::string& below,
                                   const std::string& above, double value) {
            out << name << "_bucket" << labels << ",le=\"" << below << "\"} 0.0\n";
            out << name << "_bucket" << labels << ",le=\"" << above << "\"} " << each << "\n";
            out << name << "_bucket" << labels << ",le=\"+Inf\"} " << each << "\n";
            sample(name + "_count", each);
            sample(name + "_sum", each * value);
        };
        out.precision(12);
        sample("vllm:prompt_tokens_total", each * 256);
        sample("vllm:generation_tokens_total", each * 32);
        sample("vllm:prefix_cache_queries_total", each * 256);
        sample("vllm:prefix_cache_hits_total", 0);
        sample("vllm:num_preemptions_total", 0);
        sample("vllm:num_requests_running", 4);
        sample("vllm:num_requests_waiting", 0);
        sample("vllm:kv_cache_usage_perc", 0.25);
        histogram("vllm:request_prompt_tokens", "200.0", "500.0", 256);
        histogram("vllm:request_generation_tokens", "20.0", "50.0", 32);
        histogram("vllm:time_to_first_token_seconds", "0.01", "0.02", 0.015);
        histogram("vllm:e2e_request_latency_seconds", "0.01", "0.3", 8 / rate);
    }
    return out.str();
}

}  // namespace

TEST_CASE("watch: a change of the prompts in the middle is found, and what to do is said",
          "[busy]") {
    const TemporaryFolder folder;
    const fs::path study = watched_folder(folder);
    SimEngine engine(SIMENGINE_PROGRAM, {"--start-scale", "100000", "--time-scale", "10", "vllm",
                                         "serve", "Qwen/Qwen3-8B", "--port", "0"});
    REQUIRE(engine.wait_until_ready());
    const fs::path bench_folder = folder.path() / "bench";
    fs::create_directories(bench_folder);
    const auto load = [&](const std::string& workload, const std::string& requests) {
        return std::vector<std::string>{
            SERVETUNE_PROGRAM, "bench",      "--url",  engine.url(),    "--workload",
            workload,          "--requests", requests, "--concurrency", "8",
            "--ignore-eos",    "--warmup",   "0",      "--quiet"};
    };
    auto traffic = std::make_unique<ChildProcess>(load("random:256x32", "30000"), bench_folder);
    REQUIRE(
        comes_true([&] { return Json::parse(engine.get("/simengine").body).at("requests") > 50; }));
    const Ran same =
        watch(study, engine.url() + "/metrics", {"--interval", "500ms", "--for", "10s"});
    INFO(same.out << same.err);
    CHECK(same.code == 0);
    CHECK(has(same.out, "As recommended"));

    ChildProcess watching({SERVETUNE_PROGRAM, "watch", study.string(), "--url", engine.url(),
                           "--interval", "500ms", "--for", "20s", "--json-lines"},
                          folder.path());
    std::this_thread::sleep_for(std::chrono::seconds(8));
    traffic = std::make_unique<ChildProcess>(load("random:1024x32", "10000"), bench_folder);
    const int code = watching.wait();
    const std::vector<Json> events = lines_of_json(watching.out());
    INFO(watching.err() << watching.out());
    CHECK(code == 1);
    REQUIRE_FALSE(events.empty());
    const Json& verdict = events.back();
    CHECK(verdict.at("event") == "verdict");
    CHECK(verdict.at("verdict") == "tune_again");
    const Json& prompts = verdict.at("figures").at(1);
    CHECK(prompts.at("name") == "prompt tokens");
    CHECK(prompts.at("likeness") == "changed");
    CHECK(prompts.at("now").get<double>() / prompts.at("study").get<double>() ==
          Approx(4).epsilon(0.1));
    CHECK(verdict.at("study_workload") == "random");
    CHECK(count_if(events, [](const Json& event) {
              return event.value("verdict", "") == "as_recommended";
          }) > 0);
}

TEST_CASE(
    "watch: engines of one server are summed, packed pages are read, a restart is no change") {
    const TemporaryFolder folder;
    const fs::path study = watched_folder(folder);
    const PageServer server([](int count) {
        if (count == 5)
            return std::string("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
        const std::string page =
            vllm_page(count < 10 ? 1000 + 100 * count : 100 * (count - 9), 500);
        return http_page(gzipped(page), "Content-Encoding: gzip\r\n");
    });
    const Ran ran =
        watch(study, server.url(), {"--interval", "200ms", "--for", "4s", "--json-lines"});
    INFO(ran.out << ran.err);
    CHECK(has(server.asked(), "GET /metrics HTTP/1.1"));
    CHECK(has(server.asked(), "Accept-Encoding: "));
    const std::vector<Json> events = lines_of_json(ran.out);
    REQUIRE(events.size() > 10);
    const Json& verdict = events.back();
    CHECK(verdict.at("restarts") == 1);
    CHECK(verdict.at("failed") == 1);
    CHECK(verdict.at("figures").at(1).at("likeness") == "same");
    CHECK(verdict.at("figures").at(2).at("likeness") == "same");
    CHECK(verdict.at("requests").get<double>() == Approx(1900).epsilon(0.1));
    CHECK(ran.code != 2);
    CHECK(events.front().at("event") == "window");
    CHECK(events.front().at("figures").at("prompt tokens") == 256);
}

TEST_CASE(
    "watch: a page that ends nowhere, is huge, or is another's is an error of the environment, in "
    "time") {
    const TemporaryFolder folder;
    const fs::path study = watched_folder(folder);
    const std::string endless = "HTTP/1.1 200 OK\r\n\r\n" + std::string(9U << 20U, '#');
    for (const auto& [page, said] :
         {std::pair{endless, "more than 8 MiB"},
          {http_page("<html>hello</html>"), "none of the metrics"},
          {http_page("vllm:prompt_tokens_total NaN\nvllm:num_requests_running -1\n"),
           "none of the metrics"},
          {http_page("\x1f\x8b nothing", "Content-Encoding: gzip\r\n"), "/metrics: "},
          {std::string("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), "401"},
          {std::string(), "/metrics: "}}) {
        const std::string& whole = page;  // clang takes no structured binding into a lambda
        const PageServer server([&whole](int) { return whole; });
        const Ran ran = watch(study, server.url(), {"--once", "--interval", "200ms"});
        INFO(ran.out << ran.err);
        CHECK(ran.code == 3);
        CHECK(has(ran.err, said));
    }
    const Ran nobody = watch(study, "http://127.0.0.1:" + std::to_string(free_port()), {"--once"});
    CHECK(nobody.code == 3);
}

TEST_CASE("watch: one reading is exit code 0, an open question 6, a stopped one 130") {
    const TemporaryFolder folder;
    const fs::path study = watched_folder(folder);
    const PageServer server([](int count) { return http_page(vllm_page(1000 + 100 * count)); });
    const Ran once = watch(study, server.url(), {"--once", "--interval", "200ms"});
    INFO(once.out << once.err);
    CHECK(once.code == 0);
    CHECK(has(once.out, "Inconclusive"));
    CHECK(watch(study, server.url(), {"--interval", "200ms", "--for", "400ms"}).code == 6);
    ChildProcess watching({SERVETUNE_PROGRAM, "watch", study.string(), "--url", server.url(),
                           "--interval", "200ms", "--for", "60s"},
                          folder.path());
    REQUIRE(comes_true([&] { return has(watching.out(), "requests per second"); }));
    watching.signal(SIGTERM);
    CHECK(watching.wait() == 130);
    CHECK(has(watching.out(), "against random"));
}

TEST_CASE("watch: studies that have nothing to be watched by are refused with the reason") {
    const TemporaryFolder folder;
    folder.write("t.csv", "threads,status,score\n1,ok,1\n2,ok,2\n");
    const fs::path file = folder.write(
        "own.yaml",
        "study: own\nobjective: {maximize: score}\nspace: {threads: {choice: [1, 2], default: 1}}\n"
        "strategy: exhaustive\nbudget: {trials: 2}\nevaluator: {replay: {table: t.csv}}\n");
    (void)autotune({"run", file.string(), "--quiet"}, folder.path());
    const Ran ran = watch(file, "http://127.0.0.1:1", {});
    INFO(ran.err);
    CHECK(ran.code == 2);
    CHECK(watch(file, "127.0.0.1:1", {}).code == 2);
    CHECK(watch(file, "http://127.0.0.1:1", {"--once", "--for", "1h"}).code == 2);
}
