// SPDX-License-Identifier: Apache-2.0
#include "results/traffic.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

std::string line_of(double time, int input, int output, const std::string& more = "") {
    return "{\"timestamp_seconds\": " + fixed_text(1795859600 + time, 3) +
           ", \"input_tokens\": " + std::to_string(input) +
           ", \"output_tokens\": " + std::to_string(output) + more + "}\n";
}

Traffic traffic_of(const TemporaryFolder& folder, const std::string& log, double window = 600) {
    return read_traffic({folder.write("log", log)}, window);
}

std::string said_by(const Traffic& traffic) {
    std::string all;
    for (const std::string& line : traffic.lines()) all += line + "\n";
    return all;
}

std::string refusal_of_log(const TemporaryFolder& folder, const std::string& log) {
    return message_of<ParseError>([&] { (void)traffic_of(folder, log); });
}

}  // namespace

TEST_CASE("traffic: all of a short log, in the order of its times, and what is left out") {
    const TemporaryFolder folder;
    const Traffic traffic = traffic_of(
        folder, line_of(5, 30, 3) + line_of(2.5, 10, 1) + "noise\n" + line_of(4, 20, 0) +
                    R"({"timestamp": 1795859604, "prompt_tokens": null, "output_tokens": 1})");
    REQUIRE(traffic.requests.size() == 3);
    CHECK(traffic.requests[0].input_tokens == 10);
    CHECK(traffic.requests[1].output_tokens == 1);  // of none: an engine cannot be asked for that
    CHECK(traffic.requests[2].seconds.value() == Approx(2.5));
    CHECK(traffic.unread == 2);
    CHECK(traffic.begins == "2026-11-28 09:53");
    CHECK(has(said_by(traffic), "left out: 2 lines"));
    const Traffic csv = traffic_of(folder,
                                   "timestamp,prompt_tokens,completion_tokens,session_id\n"
                                   "2026-11-28 09:53:46.5,40,7,a\n2026-11-28 09:53:47,4,1,a\n");
    CHECK(csv.requests.size() == 2);
    CHECK(csv.requests[1].seconds == 0.5);
    CHECK(csv.conversations == 1);
}

TEST_CASE("traffic: records in a list, in a page, and with a comma behind them") {
    const TemporaryFolder folder;
    const std::string one = replaced(line_of(0, 10, 1), "\n", ""),
                      other = replaced(line_of(1, 20, 2, R"(, "messages": [{"role": "user"}])"),
                                       "\n", ""),
                      third = replaced(line_of(2, 30, 3), "\n", "");
    for (const std::string& log :
         {one + ",\n" + other + ",\n" + third + ",\n", "[" + one + "," + other + "," + third + "]",
          "[" + one + ",\n " + other + ",\n " + third + "]\n",
          "[\n" + one + ",\n" + other + ",\n" + third + "\n]",
          "{\"data\": [" + one + "," + other + "," + third + "], \"total\": 3, \"page\": 1}",
          "{\"data\": [" + one + "]}\n{\"data\": [" + other + "," + third + "]}",
          "{\"data\": [\n" + one + ",\n" + other + ",\n" + third + "\n], \"total\": 3}"}) {
        INFO(log);
        const Traffic traffic = traffic_of(folder, log);
        REQUIRE(traffic.requests.size() == 3);
        CHECK(traffic.requests[1].input_tokens == 20);
        CHECK(traffic.unread == 0);
    }
    const Traffic cut = traffic_of(folder, "[" + one + ",\n" + other + ",\n" + third.substr(0, 9));
    CHECK(cut.requests.size() == 2);
    CHECK(cut.unread == 1);
}

TEST_CASE("traffic: of a long log the busiest window, so that an idle night is not replayed") {
    const TemporaryFolder folder;
    std::string log;
    for (int i = 0; i < 100; ++i) log += line_of(i * 60 + 0.5, 10, 1);
    for (int i = 0; i < 50; ++i) log += line_of(40'000 + i, 20, 2);
    for (int i = 0; i < 100; ++i) log += line_of(80'000 + i * 60, 30, 3);
    const Traffic traffic = traffic_of(folder, log, 60);
    CHECK(traffic.requests.size() == 50);
    CHECK(traffic.requests.front().input_tokens == 20);
    CHECK(traffic.window_seconds == Approx(49));
    CHECK(traffic.logged == 250);
    CHECK(traffic.begins == "2026-11-28 21:00");
    // Lines that are not in the order of their times, and two logs of one traffic.
    std::string first, second;
    for (int i = 49; i >= 0; --i) (i % 2 == 0 ? first : second) += line_of(40'000 + i, 20, 2);
    const Traffic both =
        read_traffic({folder.write("1", first + line_of(0, 10, 1)), folder.write("2", second)}, 60);
    CHECK(both.requests.size() == 50);
    CHECK(both.requests[7].seconds.value() == Approx(7));
}

TEST_CASE("traffic: requests of a clock that counts seconds are spread over them") {
    const TemporaryFolder folder;
    const Traffic traffic =
        traffic_of(folder, line_of(0, 1, 1) + line_of(1, 1, 1) + line_of(1, 1, 1));
    CHECK(traffic.spread);
    CHECK(traffic.requests[2].seconds == 1.5);
}

TEST_CASE("traffic: beginnings are numbered as they come, and no text or name leaves") {
    const TemporaryFolder folder;
    const auto asked = [](double time, const std::string& ids) {
        return line_of(
            time, 64, 1,
            R"(, "session_id": "Rosalind", "block_tokens": 16, "hash_ids": [)" + ids + "]");
    };
    const Traffic traffic = traffic_of(
        folder, asked(0.5, "90210, 77123, 5") + asked(1, "90210, 77123, 6") + asked(2, "4"));
    CHECK(traffic.requests[0].blocks == std::vector<std::uint64_t>{1, 2});
    CHECK(traffic.requests[1].blocks == traffic.requests[0].blocks);
    CHECK(traffic.requests[2].blocks.empty());
    CHECK(traffic.shared == Approx(32.0 / 192));
    CHECK(traffic.conversations == 1);
    const std::string written = traffic.trace_text() + traffic.workload_text("t", "t.jsonl") +
                                said_by(traffic) + refusal_of_log(folder, "Rosalind 90210 77123") +
                                refusal_of_log(folder, R"({"input_tokens": "Rosalind"})") +
                                refusal_of_log(folder, R"({"Rosalind": )");
    for (const char* secret : {"Rosalind", "90210", "77123"}) CHECK_FALSE(has(written, secret));
    CHECK(has(traffic.trace_text(), R"("block_tokens": 16, "hash_ids": [1, 2]})"));
}

TEST_CASE("traffic: a log of which most lines tell of no request is refused, with the way out") {
    const TemporaryFolder folder;
    for (const std::string& log :
         {std::string(), std::string("INFO 11-28 09:53:46 Received request a\n"),
          line_of(0, 1, 1) + "noise\nnoise\n", std::string(100'000, '['),
          std::string("{\"timestamp\": 1e999, \"prompt_tokens\": 1}"),
          std::string("\xff\xfe\0{", 4)})
        CHECK(has(refusal_of_log(folder, log), "python3 -m servetune.traffic FORMAT"));
    CHECK(has(message_of<IoError>([&] { (void)read_traffic({folder.path() / "none"}, 60); }),
              "cannot read"));
}
