// SPDX-License-Identifier: Apache-2.0
// Prefill and decode apart, started on paper: what is whose.
#include "base/present.hpp"
#include "servetune/simulate_evaluator.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "roles on paper: answers are decode's, the cache is the smaller one, what nobody knows is of "
    "both") {
    const TemporaryFolder folder;
    const StudyFile study = load_study(
        folder.write(
            "s.yaml",
            "study: s\nmodel: Qwen/Qwen3-8B\nhardware: {device: h100-sxm, count: 4}\nengine: vllm\n"
            "workloads: [{use: random, input_tokens: 2000, output_tokens: 200, requests: 20, "
            "arrival: {rate: 8}}]\n"
            "objective: {maximize: total_tokens_per_second}\nothers: default\nevaluator: simulate\n"
            "arguments: [--nobody-knows-this=1]\n"
            "roles:\n  prefill: {count: [1, 2], gpu_memory_utilization: 0.5, tensor_parallel_size: "
            "2}\n"
            "  decode: {count: 1, speculative_method: ngram, num_speculative_tokens: 5}\n"),
        Catalogue(search_spaces));
    const SearchSpace space(study.composition->parameters(), study.composition->constraints());
    const Configuration apart = space.changed(space.default_configuration(),
                                              {{"roles", "apart"},
                                               {"decode.speculative_method", "ngram"},
                                               {"decode.num_speculative_tokens", std::int64_t{5}},
                                               {"prefill.gpu_memory_utilization", 0.5},
                                               {"prefill.tensor_parallel_size", std::int64_t{2}},
                                               {"prefill.count", std::int64_t{1}}});
    CAPTURE(apart.text());
    const SimulateEvaluator::Started started = simulated(study)->started(apart);
    REQUIRE(started.apart.has_value());
    CHECK(started.serving.settings.speculation.tokens == 5);
    CHECK(started.apart->prefill.settings().speculation.tokens == 0);
    CHECK(started.apart->devices() == 2 + 1);
    const std::int64_t smaller = std::min(started.apart->prefill.memory().cache_tokens,
                                          started.apart->decode.memory().cache_tokens);
    CHECK(started.apart->prefill.memory().cache_tokens !=
          started.apart->decode.memory().cache_tokens);
    CHECK(present(started.cost).memory().cache_tokens == smaller);
    CHECK(started.serving.unknown == std::vector<std::string>{"--nobody-knows-this=1"});
    const RolesApart& roles = *started.apart;
    CHECK(roles.seconds_to_move(100) ==
          Approx(roles.transfer_seconds +
                 roles.prefill.cache_bytes(100) / roles.transfer_bytes_per_second));
}
