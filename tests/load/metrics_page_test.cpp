// SPDX-License-Identifier: Apache-2.0
// Pages of metrics as engines write them, and as nobody should: what is read, what is absent.
#include "load/metrics_page.hpp"

#include "base/files.hpp"
#include "servetune/catalogue.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <filesystem>
#include <map>
#include <regex>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Two engines of one server, as prometheus_client writes them.
const std::string two_engines =
    R"(# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 1.0e+03
vllm:prompt_tokens_total{engine="1",model_name="a}b\"c le=\"7\" "} 500.0 1700000000000
vllm:prompt_tokens_created{engine="0",model_name="Qwen/Qwen3-8B"} 1.7e+09
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.6
)";

}  // namespace

TEST_CASE(
    "metrics page: values are summed over models and engines, whatever stands in their labels") {
    CHECK(metric_in(two_engines, "vllm:prompt_tokens_total") == 1500);
    CHECK_FALSE(metric_in(two_engines, "vllm:prompt_tokens"));
    CHECK_FALSE(metric_in("", "x"));
}

TEST_CASE(
    "metrics page: a number that cannot be makes its metric absent, and no line makes a reader of "
    "others") {
    for (const char* value :
         {"NaN", "-1", "+Inf", "-Inf", "1e16", "1e999", "", "x", "0x10", "1,5"}) {
        INFO(value);
        CHECK_FALSE(metric_in("a 3\na{b=\"c\"} " + std::string(value) + "\n", "a"));
    }
    CHECK(metric_in("a 9007199254740992\n", "a") == 9007199254740992);
    CHECK(metric_in("a{b=\"c 9\na 2\r\n# a 7\n{ 5\na{b=c} 4\n=\n", "a") ==
          2);  // labels that are not closed or quoted are no sample
    CHECK(metric_in(std::string(1'000'000, '{') + "\na{" + std::string(1'000'000, ',') + "} 3\n",
                    "a") == 3);
}

TEST_CASE("metrics page: every shipped engine with counters names what a watch needs") {
    for (const Engine& engine : shipped_catalogue.engines()) {
        INFO(engine.name);
        if (engine.counters.empty()) continue;
        for (const char* name : {"url", "prompt_tokens", "generated_tokens", "prefix_hit_tokens",
                                 "running_requests", "waiting_requests"})
            CHECK(engine.counters.contains(name));
    }
}

TEST_CASE("metrics page: the dashboard asks for metrics that an engine file names") {
    std::string names;
    for (const Engine& engine : shipped_catalogue.engines())
        for (const auto& [ours, theirs] : engine.counters) names += " " + theirs + " ";
    const std::string text =
        read_file(fs::path(SERVETUNE_SOURCE) / "packaging" / "grafana" / "servetune.json");
    const std::regex metric("(vllm|sglang|llamacpp):([a-z0-9_]+)");
    std::size_t found = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), metric), end; at != end; ++at, ++found) {
        INFO(at->str());
        const std::string whole =
            std::regex_replace(at->str(), std::regex("_(bucket|count|sum)$"), "");
        CHECK((has(names, " " + at->str() + " ") || has(names, " " + whole + " ")));
    }
    CHECK(found > 50);
}
