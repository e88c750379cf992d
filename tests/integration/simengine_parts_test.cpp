// SPDX-License-Identifier: Apache-2.0
// simengine's parts without a socket: tokens, texts, commands, faults, the loop on a
// clock of the test.
#include "support/test.hpp"

#include "command_line.hpp"
#include "completion.hpp"
#include "engine_loop.hpp"
#include "engine_setup.hpp"
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/error.hpp"
#include "text.hpp"

#include <map>

using namespace servetune;
using namespace servetune::test;
using namespace simengine;

namespace {

EngineSetup setup_of(std::vector<std::string> words, const std::string& figures = "") {
    Options options;
    options.search_spaces = SERVETUNE_SOURCE "/search_spaces";
    options.model = figures;
    options.engine_words = std::move(words);
    return set_up(options);
}

std::size_t tokens_in(const std::string& text) {
    std::vector<Token> tokens;
    Tokenizer(150'000).encode(text, tokens);
    return tokens.size();
}

/// Sends the same requests through both, on a clock of the test: nothing waits.
void check_against_simulator(const std::string& flag) {
    INFO(flag);
    const EngineSetup setup =
        setup_of({"vllm", "serve", "Qwen/Qwen3-8B", "--max-num-seqs=4", flag});
    std::vector<SimulatedTraffic::Request> requests;
    for (int i = 0; i < 20; ++i)
        requests.push_back(
            {.input_tokens = 100 + 10 * i, .output_tokens = 30 + i, .at_seconds = 0.013 * i});
    const SimulatedRun said =
        simulate(*setup.cost, SimulatedTraffic(requests, {.kind = Arrival::Kind::trace}));

    std::map<std::size_t, std::vector<double>> sent;
    TimePoint now = Clock::now() + std::chrono::hours(1);
    const TimePoint start = now;
    EngineLoop loop(*setup.cost, {}, [&](const TokenEvent& event) {
        sent[event.id].push_back(std::chrono::duration<double>(now - start).count());
    });
    for (std::size_t i = 0; i < requests.size();) {
        const TimePoint arrival =
            start + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(requests[i].at_seconds));
        if (const auto next = loop.next(); next && *next < arrival) {
            now = *next;
            loop.run(now);
            continue;
        }
        loop.submit({.id = i,
                     .input_tokens = requests[i].input_tokens,
                     .output_tokens = requests[i].output_tokens},
                    arrival);
        ++i;
    }
    while (const auto next = loop.next()) {
        now = *next;
        loop.run(now);
    }
    REQUIRE(sent.size() == requests.size());
    for (const RequestRecord& record : said.records) {
        INFO(record.index);
        REQUIRE(sent[record.index].size() == record.gaps.size() + 1);
        CHECK(sent[record.index].front() == Approx(*record.first_token).margin(1e-5));
        CHECK(sent[record.index].back() == Approx(*record.last_token).margin(1e-5));
    }
    CHECK(loop.running() == 0);
    CHECK(loop.waiting() == 0);
    CHECK(loop.cache_use() == 0);
    CHECK(loop.counters().requests_finished == requests.size());
}

}  // namespace

TEST_CASE("simengine: texts are cut into tokens as byte-pair vocabularies cut them") {
    CHECK(tokens_in("") == 0);
    CHECK(tokens_in("the in to of") == 4);
    CHECK(tokens_in("internationalisation") == 3);
    CHECK(tokens_in("12345") == 2);
    CHECK(tokens_in("a  b") == 3);
    CHECK(tokens_in("a\n\nb") == 3);
    CHECK(tokens_in("(...)") == 3);
    CHECK(tokens_in("\u00e9\u6f22\U0001f600") == 3);
    CHECK(tokens_in("\xff\xfe") == 2);
    CHECK(tokens_in("   ") == 1);
    const AnswerText answer(7);
    std::string text;
    for (std::int64_t i = 0; i < 300; ++i) text += answer.token(i);
    CHECK(tokens_in(text) == 300);
    std::vector<Token> said, read;
    answer.encode(300, Tokenizer(150'000), said);
    Tokenizer(150'000).encode(text, read);
    CHECK(said == read);
    CHECK(piece_names(said, 16).size() == 18);
    read.back() ^= 1;
    CHECK(piece_names(said, 16) == piece_names(read, 16));  // the last tokens fill no piece
    read.front() ^= 1;
    CHECK(piece_names(said, 16).back() != piece_names(read, 16).back());
}

TEST_CASE("simengine: a command is read as its engine reads it") {
    const EngineSetup of_vllm =
        setup_of({"vllm", "serve", "--port=1", "Qwen/Qwen3-8B", "--max_num_seqs", "12",
                  "--no-enable-prefix-caching", "-tp=2"});
    CHECK(of_vllm.cost->settings().max_sequences == 12);
    CHECK_FALSE(of_vllm.cost->settings().prefix_cache);
    CHECK(of_vllm.cost->settings().tensor_parallel == 2);
    CHECK(of_vllm.served_names == std::vector<std::string>{"Qwen/Qwen3-8B"});
    const EngineSetup of_llama = setup_of({"/usr/bin/llama-server", "-m", "/m/Qwen3-8B-Q8_0.gguf",
                                           "-np", "3", "-c", "9000", "-a", "mine"},
                                          "Qwen/Qwen3-8B");
    CHECK(of_llama.cost->settings().max_sequences == 3);
    CHECK(of_llama.served_names == std::vector<std::string>{"mine"});
    CHECK(setup_of({"python3.11", "-m", "sglang.launch_server", "--model", "Qwen/Qwen3-8B",
                    "--max-running-requests", "5"})
              .cost->settings()
              .max_sequences == 5);
    CHECK(setup_of({"trtllm-serve", "serve", "Qwen/Qwen3-8B", "--max_batch_size=6"})
              .cost->settings()
              .max_sequences == 6);
    CHECK_THROWS_AS(setup_of({"vllm", "serve", "Qwen/Qwen3-8B", "--port", "x"}), CommandRefused);
    CHECK_THROWS_AS(setup_of({"python3", "-m", "sglang.launch_server", "--port", "1"}),
                    CommandRefused);
    CHECK_THROWS_AS(setup_of({"vllm", "bench"}), UsageError);
}

TEST_CASE("simengine: the loop plans what the simulator plans") {
    for (const char* flag : {"--no-async-scheduling", "--data-parallel-size=2",
                             "--api-server-count=3", "--stream-interval=4"})
        check_against_simulator(flag);
}

TEST_CASE("simengine: faults are read with their values") {
    const Faults faults = Faults::of(
        {"exit_at_load", "stop_slowly=0.5", "wrong_model=a/b", "die_at_tokens=9", "ignore_term"});
    CHECK(faults.exit_at_load == 137);
    CHECK(faults.stop_slowly_seconds == 0.5);
    CHECK(faults.wrong_model == "a/b");
    CHECK(faults.die_at_tokens == 9);
    CHECK(faults.ignore_term);
    CHECK(message_of<UsageError>([] { (void)Faults::of({"ignore_term=1"}); }) ==
          "--fault ignore_term: no value wanted, got '1'");
    CHECK(has(message_of<UsageError>([] { (void)Faults::of({"exit_at_once=900"}); }),
              "an exit code, 0 ... 255,"));
    CHECK(has(fault_names(), "flood_log=BYTES_PER_SECOND"));
}
