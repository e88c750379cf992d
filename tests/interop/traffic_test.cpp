// SPDX-License-Identifier: Apache-2.0
#include "interop/traffic.hpp"
#include "base/files.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/rng.hpp"
#include "servetune/error.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <array>

using namespace servetune;
using namespace servetune::test;

namespace {

std::string line_of(double time, int input, int output, const std::string& more = "") {
    return "{\"timestamp\": " + fixed_text(1795859600 + time, 3) +
           ", \"prompt_tokens\": " + std::to_string(input) +
           ", \"completion_tokens\": " + std::to_string(output) + more + "}\n";
}

/// A prompt of words that no other text here has.
std::string secret_text(std::uint64_t seed, std::size_t words) {
    Rng rng(seed);
    std::string text;
    for (std::size_t i = 0; i < words; ++i) {
        text += i == 0 ? "" : " ";
        for (std::size_t k = 0; k < 4 + rng.index(6); ++k)
            text += static_cast<char>('a' + rng.index(26));
    }
    return text;
}

Traffic traffic_of(const TemporaryFolder& folder, const std::string& log, double window = 600) {
    return read_traffic({folder.write("log", log)}, window);
}

std::string said_by(const Traffic& traffic) {
    std::string all;
    for (const std::string& line : told(traffic)) all += line + "\n";
    return all;
}

std::string refusal_of_log(const TemporaryFolder& folder, const std::string& log,
                           double window = 600) {
    return message_of<ParseError>([&] { (void)traffic_of(folder, log, window); });
}

std::string prometheus(const std::string& series) {
    return R"({"status": "success", "data": {"resultType": "matrix", "result": [)" + series + "]}}";
}
std::string buckets(const std::string& name, const std::string& bound, const std::string& values) {
    return R"({"metric": {"__name__": ")" + name + R"(_bucket", "le": ")" + bound +
           R"("}, "values": [)" + values + "]}";
}

}  // namespace

TEST_CASE("traffic: all of a short log, in the order of its times, and what is left out") {
    const TemporaryFolder folder;
    const Traffic traffic =
        traffic_of(folder, line_of(5, 30, 3) + line_of(2, 10, 1, ", \"id\": \"a\"") +
                               line_of(3, 20, 2, ", \"status\": \"failure\"") + "noise\n" +
                               line_of(4, 20, 2, ", \"cache_hit\": true") + line_of(4, 20, 0) +
                               line_of(6, 10, 1, ", \"id\": \"a\"") +
                               line_of(7, 20, 2, ", \"call_type\": \"aembedding\""));
    REQUIRE(traffic.requests.size() == 3);
    CHECK(traffic.requests[0].input_tokens == 10);
    CHECK(traffic.requests[1].output_tokens == 1);  // of none: an engine cannot be asked for that
    CHECK(traffic.requests[2].seconds == Approx(3));
    CHECK(traffic.counts.lines == 8);
    CHECK(traffic.counts.failed == 1);
    CHECK(traffic.counts.cached == 1);
    CHECK(traffic.counts.other == 1);
    CHECK(traffic.counts.repeated == 1);
    CHECK(traffic.begins == "2026-11-28 09:53");
    CHECK(has(said_by(traffic), "3 requests in 3 s"));
}

TEST_CASE("traffic: of a long log the busiest window, so that an idle night is not replayed") {
    const TemporaryFolder folder;
    std::string log;
    for (int i = 0; i < 100; ++i) log += line_of(i * 60, 10, 1);
    for (int i = 0; i < 50; ++i) log += line_of(40'000 + i, 20, 2);
    for (int i = 0; i < 100; ++i) log += line_of(80'000 + i * 60, 30, 3);
    const Traffic traffic = traffic_of(folder, log, 60);
    CHECK(traffic.requests.size() == 50);
    CHECK(traffic.requests.front().input_tokens == 20);
    CHECK(traffic.window_seconds == Approx(49));
    CHECK(traffic.counts.requests == 250);
    CHECK(has(said_by(traffic),
              "50 requests in the busiest 49 s (from 2026-11-28 21:00), of 250 in 85940 s"));
    // Lines that are not in the order of their times, and two logs of one traffic.
    std::string first, second;
    for (int i = 49; i >= 0; --i) (i % 2 == 0 ? first : second) += line_of(40'000 + i, 20, 2);
    const Traffic both =
        read_traffic({folder.write("1", first + line_of(0, 10, 1)), folder.write("2", second)}, 60);
    CHECK(both.requests.size() == 50);
    CHECK(both.requests[7].seconds == Approx(7));
}

TEST_CASE("traffic: an engine that counts whole seconds, and answers on lines of their own") {
    const TemporaryFolder folder;
    const auto line = [](int second, const std::string& message) {
        return "(APIServer pid=1) INFO 11-28 09:53:" + std::string(second < 10 ? "0" : "") +
               std::to_string(second) + " [request_logger.py:63] " + message + "\n";
    };
    const auto whole = [&](int second, const std::string& id, int tokens) {
        std::string ids = "1";
        for (int i = 1; i < tokens; ++i) ids += ", " + std::to_string(i);
        return line(second, "Request " + id + " details: prompt: None, prompt_token_ids: [" + ids +
                                "], prompt_embeds shape: None.") +
               line(second, "Received request " + id +
                                ": params: SamplingParams(max_tokens=9), lora_request: None.");
    };
    const auto answer = [&](int second, const std::string& id) {
        return line(second, "Generated response " + id + " details: output_token_ids: [1, 2, 3]") +
               line(second, "Generated response " + id + ": output: 'a b c', finish_reason: stop");
    };
    const auto streamed = [&](int second, const std::string& id) {
        return line(second, "Generated response " + id +
                                " (streaming delta) details: output_token_ids: [1, 2]") +
               line(second, "Generated response " + id +
                                " (streaming delta) details: output_token_ids: [3, 4, 5]") +
               line(second, "Generated response " + id +
                                " (streaming complete) details: output_token_ids: None") +
               line(
                   second,
                   "Generated response " + id +
                       " (streaming complete): output: 'a b c', finish_reason: streaming_complete");
    };
    const Traffic traffic =
        traffic_of(folder, whole(1, "a", 100) + whole(1, "b", 100) + whole(2, "c", 7) +
                               answer(3, "b") + answer(3, "a") + whole(4, "d", 5) +
                               line(5, "Request d aborted.") + whole(5, "e", 5) + streamed(9, "c"));
    REQUIRE(traffic.requests.size() == 3);
    CHECK(traffic.requests[0].input_tokens == 100);
    CHECK(traffic.requests[0].output_tokens == 3);
    CHECK(traffic.requests[0].blocks == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
    CHECK(traffic.requests[1].blocks == traffic.requests[0].blocks);
    CHECK(traffic.requests[1].seconds == 0.5);
    CHECK(traffic.requests[2].blocks.empty());
    CHECK(traffic.requests[2].output_tokens == 5);
    CHECK(traffic.shared == Approx(96.0 / 207));
    CHECK(traffic.counts.failed == 1);
    CHECK(traffic.counts.unanswered == 1);
    CHECK(traffic.begins == "11-28 09:53");
    CHECK(has(said_by(traffic), "spread evenly"));
    // A log of arrivals alone has nothing to send, and says what to do.
    const std::string arrivals =
        line(1, "Received request a: params: SamplingParams(max_tokens=9), lora_request: None.");
    CHECK(
        has(refusal_of_log(folder, arrivals),
            "no request says how long its prompt is: have the log say it, or give the histograms"));
}

TEST_CASE("traffic: turns of conversations, by what they begin with and by their sessions") {
    const TemporaryFolder folder;
    const std::string system = secret_text(1, 60);
    const auto chat = [&](double time, const std::string& more, const std::string& rest = "") {
        return line_of(time, 200, 5,
                       R"(, "messages": [{"role": "user", "content": ")" + system + R"("})" + more +
                           "]" + rest);
    };
    const auto turn = [](const std::string& role, std::uint64_t seed) {
        return R"(, {"role": ")" + role + R"(", "content": ")" + secret_text(seed, 30) + "\"}";
    };
    const std::string one = turn("user", 2), two = one + turn("assistant", 3) + turn("user", 4);
    const Traffic traffic =
        traffic_of(folder, chat(0, one) + chat(1, two) + chat(2, turn("user", 5)));
    CHECK(traffic.conversations == 2);
    CHECK(traffic.requests[1].blocks.size() > traffic.requests[2].blocks.size());
    CHECK(traffic.shared > 0.3);
    CHECK(traffic_of(folder, line_of(0, 5, 5, R"(, "session_id": "x")") +
                                 line_of(1, 5, 5, R"(, "session_id": "x")") +
                                 line_of(2, 5, 5, R"(, "session_id": "y")"))
              .conversations == 2);
}

TEST_CASE("traffic: nothing of a prompt leaves, neither in what is written nor in what is said") {
    const TemporaryFolder folder;
    const std::string system = secret_text(1, 80);
    std::vector<std::string> texts{system};
    std::string log;
    for (std::uint64_t i = 0; i < 30; ++i) {
        texts.push_back(secret_text(100 + i, 40));
        texts.push_back(secret_text(200 + i, 20));
        const std::string ending = i % 7 == 3 ? "" : "}]";  // some lines are broken in the middle
        log += "{\"timestamp\": " + std::to_string(1795859600 + i) + ", \"id\": \"" +
               secret_text(300 + i, 1) + "\", \"session_id\": \"" + secret_text(400 + i, 1) +
               "\", \"user\": \"" + secret_text(500 + i, 2) +
               "\", \"messages\": [{\"role\": \"system\", \"content\": \"" + system +
               "\"}, {\"role\": \"user\", \"content\": \"" + texts[texts.size() - 2] + "\"" +
               ending + ", \"response\": {\"choices\": [{\"message\": {\"content\": \"" +
               texts.back() + "\"}}]}}\n";
        texts.push_back(secret_text(300 + i, 1));
        texts.push_back(secret_text(400 + i, 1));
        texts.push_back(secret_text(500 + i, 2));
    }
    const Traffic traffic = traffic_of(folder, log);
    CHECK(traffic.requests.size() == 26);
    CHECK(traffic.requests.back().blocks.size() == 5);
    std::string written = trace_text(traffic) + workload_text(traffic, "traffic", "traffic.jsonl");
    // And where the same texts are no log at all.
    written += refusal_of_log(folder, system + "\n" + texts[1]);
    written += refusal_of_log(folder, "{\"messages\": \"" + system + "\"}\n[" + system);
    written += refusal_of_log(
        folder, "{\"timestamp\": \"" + system + "\", \"prompt_tokens\": \"" + system + "\"}");
    written += refusal_of_log(folder, R"({"data": {"resultType": ")" + system + "\"}}");
    CHECK(has(written, "no line tells of a request"));
    std::size_t looked = 0;
    for (const std::string& text : texts)
        for (std::size_t at = 0; at + 8 <= text.size(); ++at, ++looked)
            REQUIRE_FALSE(has(written, text.substr(at, 8)));
    CHECK(looked > 5000);
    // The trace has no letter but those of its keys.
    std::string bare = trace_text(traffic);
    for (const std::string& key :
         {std::string("timestamp"), std::string("input_length"), std::string("output_length"),
          std::string("block_tokens"), std::string("hash_ids")})
        for (auto at = bare.find(key); at != std::string::npos; at = bare.find(key))
            bare.erase(at, key.size());
    CHECK(bare.find_first_not_of("{}[]\":,. \n0123456789") == std::string::npos);
}

TEST_CASE(
    "traffic: numbers name beginnings in the order in which they come, whatever the texts are") {
    const TemporaryFolder folder;
    const auto trace = [&](std::uint64_t seed) {
        std::string log;
        for (std::uint64_t i = 0; i < 6; ++i)
            log += line_of(static_cast<double>(i), 400, 5,
                           R"(, "prompt_ids": 1, "prompt": ")" +
                               std::string(i % 2 == 0 ? "a" : "b") + std::string(700, 'x') + "\"") +
                   (seed == 0 ? "" : "");
        return trace_text(traffic_of(folder, log));
    };
    CHECK(trace(0) == trace(1));
    CHECK(has(trace(0), "\"hash_ids\": [1, 2"));
}

TEST_CASE(
    "traffic: lengths that a log lacks come from histograms, and histograms alone make traffic") {
    const TemporaryFolder folder;
    const std::string both =
        buckets("engine:request_prompt_tokens", "100",
                R"([1000, "5"], [1060, "5"], [1120, "45"], [1180, "3"])") +
        ", " +
        buckets("engine:request_prompt_tokens", "1000",
                R"([1000, "10"], [1060, "10"], [1120, "90"], [1180, "6"])") +
        ", " +
        buckets("engine:request_prompt_tokens", "+Inf",
                R"([1000, "10"], [1060, "10"], [1120, "90"], [1180, "6"])") +
        ", " +
        buckets("engine:request_generation_tokens", "20",
                R"([1000, "0"], [1060, "0"], [1120, "80"], [1180, "6"])") +
        ", " +
        buckets("engine:request_generation_tokens", "+Inf",
                R"([1000, "0"], [1060, "0"], [1120, "80"], [1180, "6"])") +
        ", " + buckets("engine:request_max_generation_tokens", "1", R"([1000, "0"], [1060, "9"])");
    const auto file = folder.write("range.json", prometheus(both));
    const Traffic alone = read_traffic({file}, 60);
    CHECK(alone.requests.size() ==
          80);  // of the second minute; the counters began anew in the third
    CHECK(alone.counts.requests == 86);
    CHECK(alone.requests.back().seconds <= 60);
    const auto short_ones =
        std::count_if(alone.requests.begin(), alone.requests.end(),
                      [](const TrafficRequest& one) { return one.input_tokens <= 100; });
    CHECK(short_ones > 25);  // half of them, but for luck
    CHECK(short_ones < 55);
    CHECK(std::all_of(alone.requests.begin(), alone.requests.end(), [](const TrafficRequest& one) {
        return one.input_tokens <= 1000 && one.output_tokens <= 20;
    }));
    CHECK(has(said_by(alone), "no finer than their buckets"));
    CHECK(trace_text(read_traffic({file}, 60)) == trace_text(alone));
    std::string access;
    for (int i = 0; i < 5; ++i)
        access += "10.0.0.1 - - [28/Nov/2026:10:53:5" + std::to_string(i) +
                  " +0100] \"POST /v1/chat/completions HTTP/1.1\" 200 2500 \"-\" \"-\" 0.500\n";
    CHECK(has(refusal_of_log(folder, access), "no request says how long its prompt is"));
    const Traffic with_log = read_traffic({folder.write("access.log", access), file}, 60);
    CHECK(with_log.requests.size() == 5);
    CHECK(has(said_by(with_log),
              "lengths of 5 of 5 prompts and 5 of 5 answers are drawn from the histograms"));
    CHECK(
        has(message_of<ParseError>([&] {
                (void)read_traffic(
                    {folder.write(
                        "rate.json",
                        prometheus(R"({"metric": {"le": "1"}, "values": [[1, "2"], [2, "3"]]})"))},
                    60);
            }),
            "rate() drops their names"));
}

TEST_CASE("traffic: logs without any request, or with times of no one traffic") {
    const TemporaryFolder folder;
    CHECK(has(refusal_of_log(folder, ""), ": no line tells of a request; a log of an engine"));
    CHECK(refusal_of_log(folder, line_of(0, 1, 1, ", \"status\": \"failure\"")) ==
          "the logs have no request that a model answered: 1 failed, 0 were answered by a cache, 0 "
          "asked for something else");
    CHECK(has(message_of<IoError>([&] { (void)read_traffic({folder.path() / "none"}, 60); }),
              "cannot read"));
}
