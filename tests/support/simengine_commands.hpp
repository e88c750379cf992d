// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands that simengine takes each engine's place with, what it is asked, and how a load on
// it went. The test's target says which program (SIMENGINE_PROGRAM).

#include "support/simengine.hpp"
#include "support/test.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/load_generator.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace servetune::test {

using Words = std::vector<std::string>;

inline const std::string model = "Qwen/Qwen3-8B";
inline const std::string program = SIMENGINE_PROGRAM;

inline Words joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

inline const Words vllm{"vllm", "serve", model, "--port", "0"};
inline const Words sglang{"python3", "-m", "sglang.launch_server", "--model-path", model,
                          "--port",  "0"};
inline const Words trtllm{"trtllm-serve", model, "--port", "0"};
inline const Words llama{"llama-server", "-m", model, "--port", "0", "-c", "16384"};

/// Fast enough that no test waits for it.
inline Words fast(const Words& engine, const Words& own = {}) {
    return joined(joined({"--start-scale", "100000", "--time-scale", "100"}, own), engine);
}

/// One that has begun to serve.
struct ReadyEngine : SimEngine {
    explicit ReadyEngine(const Words& words) : SimEngine(program, words) {
        REQUIRE(wait_until_ready());
    }
};

inline nlohmann::json chat_body(std::int64_t tokens,
                                const std::string& text = "hello there, how are you?") {
    return {{"model", model},
            {"messages", {{{"role", "user"}, {"content", text}}}},
            {"max_tokens", tokens},
            {"ignore_eos", true}};
}

inline std::string words_text(std::size_t count, const std::string& first = "the") {
    std::string text = first;
    for (std::size_t i = 1; i < count; ++i) text += " of";
    return text;
}

struct EndedProgram {
    int code;
    std::string err;
};

inline EndedProgram ended(const Words& words) {
    SimEngine engine(program, words);
    const auto code = engine.process().wait_at_most(std::chrono::seconds(20));
    return {code.value_or(-1), engine.process().err()};
}

inline std::vector<PlannedRequest> plan_of(std::size_t requests, std::int64_t tokens) {
    std::vector<PlannedRequest> plan(requests);
    for (std::size_t i = 0; i < requests; ++i) {
        plan[i].text = words_text(20, "request" + std::to_string(i));
        plan[i].output_tokens = tokens;
    }
    return plan;
}

inline LoadRun load(const SimEngine& engine, std::size_t requests, std::int64_t tokens,
                    std::int64_t in_flight, const LoadOptions& options = {}) {
    return generate_load({engine.url(), model}, plan_of(requests, tokens),
                         {.kind = Arrival::Kind::concurrency, .in_flight = in_flight}, options);
}

inline std::size_t succeeded(const LoadRun& run) {
    return std::size_t(
        count_if(run.records, [](const RequestRecord& record) { return record.succeeded(); }));
}

/// Waits until the log says so; false after ten seconds.
inline bool says(SimEngine& engine, const std::string& text) {
    for (int i = 0; i < 2000; ++i) {
        if (engine.process().err().find(text) != std::string::npos) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

}  // namespace servetune::test
