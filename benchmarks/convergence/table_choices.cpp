// SPDX-License-Identifier: Apache-2.0
// What is the load or the machine and no choice is fixed or bounded, so that no optimizer wins by
// asking for more load.
#include "table_choices.hpp"

namespace servetune::convergence {
namespace {

/// The tile with its border of 7 on either side fits into 48 KiB of shared memory.
const std::string convolution_tile =
    "use_shmem == 0 or (block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) * 4 "
    "<= 49152";

Objective most(const std::string& metric, const std::string& limit = "") {
    Objective objective{metric, Direction::maximize, {}};
    if (!limit.empty()) objective.limits.push_back(Limit::parse(limit));
    return objective;
}

void add_kernels(std::vector<TableChoice>& list) {
    const Objective quickest{"time_ms", Direction::minimize, {}};
    constexpr double few = 0.01;
    const std::vector<std::string> pairs_only;
    list.push_back({"kt_convolution",
                    "kt_convolution_a100",
                    "a GPU kernel, 4362 combinations, few good ones",
                    quickest,
                    {},
                    few,
                    true,
                    {{convolution_tile}},
                    "convolution"});
    list.push_back({"kt_convolution_w6600",
                    "kt_convolution_w6600",
                    "the same kernel on another maker's chip",
                    quickest,
                    {},
                    few,
                    false,
                    {{convolution_tile}},
                    "convolution"});
    list.push_back({"kt_dedispersion_w7800",
                    "kt_dedispersion_w7800",
                    "a GPU kernel, 11130 combinations, flat",
                    quickest,
                    {},
                    few,
                    false,
                    pairs_only});
    list.push_back({"kt_pnpoly_rtx3090",
                    "kt_pnpoly_rtx3090",
                    "a GPU kernel, 4092 combinations, some do not run",
                    quickest,
                    {},
                    few,
                    false,
                    pairs_only});
}

/// Measured serving systems: the load is a parameter where a limit on its latency bounds it.
void add_systems(std::vector<TableChoice>& list) {
    for (const int tokens : {128, 256, 512, 1024, 2048})  // 20 s for 1024 tokens, and in proportion
        list.push_back(
            {"argonne_" + std::to_string(tokens),
             "argonne_meta-llama-3-8b",
             "hardware, framework and batch for so many tokens in and out, in 19.5 ms a token",
             most("throughput_per_hw",
                  "latency_s <= " + (tokens == 1024 ? "20" : text_of(tokens / 51.2))),
             {{"io_len", std::to_string(tokens)}},
             0,
             tokens == 1024,
             {},
             "argonne"});
    for (const auto& [in, out] : std::vector<std::pair<int, int>>{{1024, 128},
                                                                  {1024, 256},
                                                                  {1024, 512},
                                                                  {1024, 1024},
                                                                  {2048, 128},
                                                                  {2048, 256},
                                                                  {2048, 512},
                                                                  {4000, 1000},
                                                                  {4096, 128},
                                                                  {4096, 256},
                                                                  {4096, 512},
                                                                  {4096, 1024}})
        list.push_back({"aic_" + std::to_string(in) + "_" + std::to_string(out),
                        "aic_qwen32b_h100_trtllm",
                        "parallelism, precision and batch for so many tokens in and out, at 40 ms "
                        "a token at most",
                        most("tok_s_gpu", "tpot_ms <= 40"),
                        {{"isl", std::to_string(in)}, {"osl", std::to_string(out)}},
                        0,
                        in == 1024 && out == 512,
                        {},
                        "aic"});
    const auto infx = [&](const std::string& kind, const std::string& suffix,
                          const std::string& system, const std::string& milliseconds) {
        list.push_back(
            {kind + suffix,
             kind + "_1k1k",
             "engine, precision, parallelism and load on one system, at most so many ms a token: " +
                 milliseconds,
             most("tok_s_gpu", "tpot_ms <= " + milliseconds),
             {{"system", system}},
             0,
             suffix.empty(),
             {},
             kind});
    };
    infx("infx_dsr1", "", "b200_sxm", "25");
    infx("infx_dsr1", "_gb200", "gb200", "25");
    infx("infx_dsr1", "_h200", "h200_sxm", "25");
    infx("infx_llama70b", "", "b200_sxm", "20");
    infx("infx_llama70b", "_h100", "h100_sxm", "20");
    infx("infx_llama70b", "_h200", "h200_sxm", "20");
}

/// One engine on one card, its flags at one load.
void add_engines(std::vector<TableChoice>& list) {
    list.push_back({"llama_server", "llama-server",
                    "a real engine on two processors, 12 flags, means of three runs",
                    most("output_tokens_per_second")});
    for (const auto& [name, runs] : {std::pair{"slo_single", "multiseed/"},
                                     std::pair{"slo_concurrent", "multiseed_concurrent/"}})
        list.push_back({name,
                        "slo_qwen2_1p5b_a100_vllm019",
                        "a real engine on a GPU, 7 flags, drawn configurations: goodput",
                        most("goodput_tps"),
                        {{"run", runs}},
                        0,
                        false,
                        {},
                        "slo"});
    for (const std::string workload : {"chat", "long_decode", "long_prompt", "saturation"})
        list.push_back({"vllmbench_" + workload + "_16",
                        "vllmbench_llama8b_l40s_vllm024",
                        "a real engine on a GPU, weights, speculation and batch, 16 requests at "
                        "once, means of repetitions",
                        most("output_throughput_tok_s"),
                        {{"workload", workload}, {"concurrency", "16"}},
                        0,
                        false,
                        {},
                        "vllmbench"});
    const auto published = [&](const std::string& name, const std::string& study,
                               const std::string& workload, const std::string& limit) {
        list.push_back({"published_" + name,
                        study + "/results",
                        "a published study's printed results",
                        most("total_tokens_per_second", limit),
                        {{"workload", workload}},
                        0,
                        false,
                        {},
                        study == "qwen3-8b-jetson-thor" ? "thor" : ""});
    };
    published("qwen3_14b_h100", "qwen3-14b-h100", "sharegpt", "");
    published("qwen3.5_9b_h100", "qwen3.5-9b-h100", "sharegpt", "success_ratio >= 0.99");
    published("qwen3_8b_jetson_thor", "qwen3-8b-jetson-thor", "high_load", "");
    published("qwen3_8b_jetson_thor_low", "qwen3-8b-jetson-thor", "low_load", "");
}

}  // namespace

const std::vector<TableChoice>& table_choices() {
    static const std::vector<TableChoice> list = [] {
        std::vector<TableChoice> all;
        add_kernels(all);
        add_systems(all);
        add_engines(all);
        return all;
    }();
    return list;
}

}  // namespace servetune::convergence
