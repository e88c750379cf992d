// SPDX-License-Identifier: Apache-2.0
// Whether a server's traffic is still the study's: changes are found soon, and the same traffic
// is hardly ever called another one.
#include "report/production_check.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/rng.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

const TrafficFigures as_studied{{"requests per second", 2},
                                {"prompt tokens", 700},
                                {"output tokens", 150},
                                {"cache hits", 0.3},
                                {"seconds per output token", 0.03}};

/// A server whose load wanders by 15 % and whose lengths by 5 %, minute after minute.
struct MadeUpServer {
    explicit MadeUpServer(std::uint64_t seed) : rng(seed) {}

    PageCounters minute() {
        constexpr double memory = 0.9, fresh = 0.4359;
        busy = memory * busy + fresh * rng.normal();
        longer = memory * longer + fresh * rng.normal();
        const double mean = 60 * rate * std::exp(0.15 * busy);
        const double count = std::max(1.0, std::round(mean + std::sqrt(mean) * rng.normal()));
        const double few = 1 + 0.8 * rng.normal() / std::sqrt(count);
        const double prompts = count * prompt * std::exp(0.05 * longer) * few;
        const double outputs = count * output * (1 + 0.8 * rng.normal() / std::sqrt(count));
        for (const auto& [name, more] : PageCounters{
                 {"latency_seconds_count", count},
                 {"latency_seconds_sum", outputs * per_token},
                 {"request_prompt_tokens_count", count},
                 {"request_prompt_tokens_sum", prompts},
                 {"request_generated_tokens_count", count},
                 {"request_generated_tokens_sum", outputs},
                 {"prefix_queried_tokens", prompts},
                 {"prefix_hit_tokens", prompts * std::clamp(hits + 0.03 * rng.normal(), 0.0, 1.0)},
                 {"per_token_seconds_count", count},
                 {"per_token_seconds_sum", count * per_token * (1 + 0.01 * rng.normal())}})
            page[name] += more;
        return page;
    }

    Rng rng;
    double rate = 2, prompt = 700, output = 150, hits = 0.3, per_token = 0.03;
    double busy = 0, longer = 0;
    PageCounters page{};
};

void watch(ProductionCheck& check, MadeUpServer& server, int minutes) {
    for (double i = 0; i < minutes; ++i) (void)check.add(server.minute(), 60 * i);
}

}  // namespace

TEST_CASE("watch: the same traffic is called the same, on 50 simulated days") {
    int alarms = 0, same = 0;
    for (std::uint64_t day = 0; day < 50; ++day) {
        ProductionCheck check(as_studied);
        MadeUpServer server(derive_seed(7, day));
        bool alarm = false;
        for (double minute = 0; minute < 1440; ++minute) {
            (void)check.add(server.minute(), 60 * minute);
            const WatchVerdict verdict = check.verdict();
            alarm = alarm || verdict == WatchVerdict::tune_again || verdict == WatchVerdict::slower;
        }
        alarms += alarm ? 1 : 0;
        same += check.verdict() == WatchVerdict::as_recommended ? 1 : 0;
    }
    CHECK(alarms <= 3);
    CHECK(same >= 30);
}

TEST_CASE("watch: each change is found within half an hour, by its name") {
    struct Change {
        const char* name;
        double MadeUpServer::*figure;
        double to;
        WatchVerdict verdict;
    };
    for (const Change& change :
         {Change{"prompt tokens", &MadeUpServer::prompt, 1400, WatchVerdict::tune_again},
          Change{"output tokens", &MadeUpServer::output, 70, WatchVerdict::tune_again},
          Change{"requests per second", &MadeUpServer::rate, 5, WatchVerdict::tune_again},
          Change{"cache hits", &MadeUpServer::hits, 0.6, WatchVerdict::tune_again},
          Change{"seconds per output token", &MadeUpServer::per_token, 0.05,
                 WatchVerdict::slower}}) {
        INFO(change.name);
        ProductionCheck check(as_studied);
        MadeUpServer server(3);
        server.*change.figure = change.to;
        watch(check, server, 30);
        CHECK(check.verdict() == change.verdict);
        const auto judged = check.judged();
        const auto found =
            find_if(judged, [&](const JudgedFigure& one) { return one.name == change.name; });
        REQUIRE(found != judged.end());
        CHECK(found->likeness == Similarity::changed);
        CHECK(found->low.value() < found->high.value());
    }
}

TEST_CASE("watch: less load and more speed are no change, and few requests say nothing") {
    ProductionCheck check(as_studied);
    MadeUpServer server(5);
    watch(check, server, 3);
    CHECK(check.verdict() == WatchVerdict::undecided);
    CHECK(has(check.too_few_requests(), "5 batches of at least 100 are needed, and "));
    // Of fewer than one batch the figures are shown all the same; of none that is said.
    ProductionCheck few(as_studied);
    MadeUpServer quiet(7);
    quiet.rate = 0.5;
    watch(few, quiet, 2);
    CHECK(few.too_few_requests() ==
          "Too few requests to judge by: 5 batches of at least 100 are needed, and 0 came.");
    for (const JudgedFigure& one : few.judged()) {
        CHECK(one.now);
        CHECK(one.likeness == Similarity::undecided);
    }
    ProductionCheck none(as_studied);
    (void)none.add(quiet.page, 0);
    (void)none.add(quiet.page, 60);
    CHECK(none.too_few_requests() == "No request came.");
    server.rate = 1;
    server.per_token = 0.01;
    ProductionCheck easy(as_studied);
    watch(easy, server, 60);
    CHECK(easy.verdict() != WatchVerdict::tune_again);
    CHECK(easy.verdict() != WatchVerdict::slower);
    CHECK(ProductionCheck({}).verdict() == WatchVerdict::undecided);
    CHECK(server.page.size() == 10);
}

TEST_CASE("watch: a counter that falls is a restart, and nothing is counted over it") {
    ProductionCheck check(as_studied);
    CHECK_FALSE(check.add({{"latency_seconds_count", 1000}}, 0));
    const auto figures = check.add({{"latency_seconds_count", 1060}}, 60);
    REQUIRE(figures);
    CHECK(figures->at("requests per second") == 1);
    CHECK_FALSE(check.add({{"latency_seconds_count", 30}}, 120));
    CHECK(check.restarts() == 1);
    CHECK(check.requests() == 60);
}

TEST_CASE("watch: pages of SGLang and llama.cpp are read under the shipped names") {
    const auto read = [](const std::string& name, const std::string& page) {
        for (const Engine& engine : shipped_catalogue.engines())
            if (engine.name == name) return read_counters(page, engine.counters);
        FAIL("no engine " << name);
        return PageCounters{};
    };
    // As 0.5.23 writes them: labels of the scheduler, of streaming and of the cache's source.
    const PageCounters of_sglang = read("sglang", R"(# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="Qwen/Qwen3-8B",tp_rank="0"} 3.0
sglang:prompt_tokens_total{is_streaming="true",model_name="Qwen/Qwen3-8B"} 900.0
sglang:prompt_tokens_total{is_streaming="false",model_name="Qwen/Qwen3-8B"} 100.0
sglang:cached_tokens_total{cache_source="device",model_name="Qwen/Qwen3-8B"} 200.0
sglang:cached_tokens_total{cache_source="host",model_name="Qwen/Qwen3-8B"} 50.0
sglang:e2e_request_latency_seconds_sum{is_streaming="true",model_name="Qwen/Qwen3-8B"} 4.5
sglang:e2e_request_latency_seconds_bucket{is_streaming="true",le="0.1",model_name="x"} 0.0
sglang:e2e_request_latency_seconds_count{is_streaming="true",model_name="Qwen/Qwen3-8B"} 4.0
)");
    CHECK(of_sglang.at("prompt_tokens") == 1000);
    CHECK(of_sglang.at("prefix_hit_tokens") == 250);
    CHECK(of_sglang.at("running_requests") == 3);
    CHECK(of_sglang.at("latency_seconds_sum") == 4.5);
    CHECK(of_sglang.at("latency_seconds_count") == 4);
    CHECK_FALSE(of_sglang.contains("preemptions"));
    const PageCounters of_llama = read("llama.cpp",
                                       "llamacpp:prompt_tokens_total 300\n"
                                       "llamacpp:prompt_tokens_cached_total 100\n"
                                       "llamacpp:requests_processing 2\n");
    CHECK(of_llama.at("prefix_queried_tokens") == 400);
    CHECK(of_llama.at("prefix_hit_tokens") == 100);
    CHECK(read("vllm", "<html>503</html>").empty());
}
