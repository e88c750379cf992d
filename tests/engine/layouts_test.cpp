// SPDX-License-Identifier: Apache-2.0
// Which layouts of several devices can be: as many devices as there are, heads and experts that can
// be shared out.
#include "servetune/detail/host/devices.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

StudyFile layout_study(const std::string& engine, const std::string& model,
                       const std::string& lines) {
    const TemporaryFolder folder;
    return load_study(
        folder.write("s.yaml", "study: s\nmodel: " + model + "\nengine: " + engine + "\n" + lines +
                                   "workloads: [{use: random, requests: 8}]\nobjective: {maximize: "
                                   "total_tokens_per_second}\n"
                                   "evaluator: {simulate: {}}\n"),
        shipped_catalogue);
}

SearchSpace space_of_layouts(const StudyFile& study) {
    return SearchSpace(study.composition->parameters(), study.composition->constraints());
}

std::int64_t layout_factor(const Configuration& configuration, const std::string& name) {
    const Value* value = configuration.find(name);
    const auto* count = value != nullptr ? std::get_if<std::int64_t>(value) : nullptr;
    return count != nullptr ? *count : 1;
}

/// A script in nvidia-smi's place that lists these lines for any question.
std::string smi_that_says(const TemporaryFolder& folder, const std::string& lines, int code = 0) {
    const auto file = folder.write(
        "smi", "#!/bin/sh\ncat <<END\n" + lines + "END\nexit " + std::to_string(code) + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
}

}  // namespace

TEST_CASE("layouts: the moe preset crosses nothing that does not fit one GPU or eight") {
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm"})
        for (const std::int64_t count : {1, 8}) {
            INFO(engine << " on " << count);
            const StudyFile study = layout_study(
                engine, "Qwen/Qwen3-30B-A3B",
                "preset: moe\nhardware: {device: h100-sxm, count: " + std::to_string(count) +
                    "}\n");
            const SearchSpace space = space_of_layouts(study);
            const FeasibleSet feasible(space);
            Rng rng(3);
            std::int64_t most = 0;
            std::set<std::int64_t> experts;
            for (int i = 0; i < 500; ++i) {
                const Configuration drawn = feasible.sample(rng);
                const std::int64_t devices = study.composition->devices_of(drawn);
                most = std::max(most, devices);
                const std::int64_t tensor = std::max(layout_factor(drawn, "tensor_parallel_size"),
                                                     layout_factor(drawn, "tp_size"));
                const std::int64_t expert = layout_factor(drawn, "ep_size");
                experts.insert(expert);
                REQUIRE(devices <= count);
                REQUIRE(32 % tensor == 0);
                REQUIRE(tensor % expert == 0);
            }
            CHECK(most == count);
            if (std::string(engine) != "vllm") CHECK(experts.size() == (count == 1 ? 1 : 4));
        }
}

TEST_CASE(
    "layouts: heads, experts and layers of a known model bound them, of an unknown one nothing is "
    "known") {
    const std::string tensor =
        "hardware: {device: h100-sxm, count: 8}\nspace: {tensor_parallel_size: {choice: [1, 2, 3, "
        "4, 5, 6, 7, 8]}}\nothers: default\n";
    const auto feasible_sizes = [&](const std::string& model) {
        return FeasibleSet(space_of_layouts(layout_study("vllm", model, tensor))).size();
    };
    CHECK(feasible_sizes("Qwen/Qwen3-8B") == 4);  // 32 heads, 8 of keys: 1, 2, 4, 8
    CHECK(feasible_sizes("Qwen/Qwen3-14B") ==
          4);  // 40 heads, 8 of keys: 5 would divide the heads, but not those of keys
    CHECK(feasible_sizes("openai/gpt-oss-20b") == 4);
    CHECK(feasible_sizes("org/unknown") == 8);
    const SearchSpace dense = space_of_layouts(layout_study("vllm", "Qwen/Qwen3-8B", tensor));
    const auto broken =
        dense.violations(dense.completed({{"tensor_parallel_size", std::int64_t{3}}}));
    REQUIRE_FALSE(broken.empty());
    CHECK(has(broken.front(), "(32 % tensor_parallel_size) == 0"));
    CHECK(has(broken.front(), "attention heads must be divisible"));

    const std::string experts =
        "hardware: {device: h100-sxm, count: 2}\nspace: {tensor_parallel_size: 2, "
        "enable_expert_parallel: {choice: [false, true]}}\n"
        "others: default\n";
    CHECK(FeasibleSet(space_of_layouts(layout_study("vllm", "Qwen/Qwen3-8B", experts))).size() ==
          1);
    CHECK(
        FeasibleSet(space_of_layouts(layout_study("vllm", "Qwen/Qwen3-30B-A3B", experts))).size() ==
        2);
    const std::string alone =
        "hardware: h100-sxm\nspace: {enable_expert_parallel: {choice: [false, true]}}\nothers: "
        "default\n";
    CHECK(FeasibleSet(space_of_layouts(layout_study("vllm", "Qwen/Qwen3-30B-A3B", alone))).size() ==
          1);
    const std::string stages =
        "hardware: {device: h100-sxm, count: 64}\nspace: {pipeline_parallel_size: {choice: [1, 32, "
        "64]}}\nothers: default\n";
    CHECK(FeasibleSet(space_of_layouts(layout_study("vllm", "Qwen/Qwen3-8B", stages))).size() ==
          2);  // 36 layers
    // What stands in every command counts in rules too.
    const StudyFile always =
        layout_study("sglang", "Qwen/Qwen3-30B-A3B",
                     "hardware: {device: h100-sxm, count: 4}\narguments: [--tp-size, \"4\"]\n"
                     "space: {ep_size: {choice: [1, 2, 3, 4]}}\nothers: default\n");
    CHECK(FeasibleSet(space_of_layouts(always)).size() == 3);
    // Data parallel attention by one copy is switched off by SGLang itself.
    const StudyFile attention = layout_study(
        "sglang", "Qwen/Qwen3-30B-A3B",
        "hardware: {device: h100-sxm, count: 4}\nspace: {tp_size: 4, dp_size: {choice: [1, 2, 4]}, "
        "enable_dp_attention: {choice: [false, true]}}\nothers: default\n");
    CHECK(FeasibleSet(space_of_layouts(attention)).size() == 3);
}

TEST_CASE("layouts: a rule of an engine file may ask of a model only what is known of models") {
    const TemporaryFolder folder;
    const auto engine_with = [&](const std::string& rule) {
        return message_of<Error>([&] {
            folder.write("mine.yaml",
                         "engine: mine\nlaunch: [mine, \"{model}\"]\nparameters:\n"
                         "  shards: {flag: --shards, int: {low: 1, high: 8}, default: 1, doc: d, "
                         "source: s}\n"
                         "constraints: [{" +
                             rule + "}]\n");
            folder.write(
                "s.yaml",
                "study: s\nmodel: Qwen/Qwen3-8B\nengine: mine.yaml\nworkloads: [{use: random}]\n"
                "objective: {maximize: total_tokens_per_second}\nevaluator: {replay: t.csv}\n");
            (void)load_study(folder.path() / "s.yaml", shipped_catalogue);
        });
    };
    CHECK(engine_with("require: \"model.layers % shards == 0\"").empty());
    CHECK(has(engine_with("require: \"model.heads % shards == 0\""),
              "'model.heads' is nothing that rules may ask of a model; known: "));
    CHECK(
        has(engine_with("forbid: {model.layers: 3}"), "'model.layers' is not a parameter of mine"));
}

TEST_CASE(
    "devices: those that nvidia-smi lists are counted and named, and CUDA_VISIBLE_DEVICES chooses "
    "among them") {
    const TemporaryFolder folder;
    const std::string two =
        "0, GPU-aaa, NVIDIA H100 80GB HBM3, 81559\n1, GPU-bbb, NVIDIA H100 80GB HBM3, 81559\n";
    unsetenv("CUDA_VISIBLE_DEVICES");
    const FoundDevices found =
        find_devices(smi_that_says(folder, two + "2, GPU-ccc, NVIDIA L4, [N/A]\n"));
    CHECK(found.text() == "2 x NVIDIA H100 80GB HBM3, 80 GiB each + 1 x NVIDIA L4");
    CHECK(found.all.size() == 3);
    CHECK(found.trouble.empty());
    CHECK(groups_of_devices("", found, 2).front() == std::vector<std::string>{"0", "1"});
    CHECK(groups_of_devices("2,0", found, 1).front() == std::vector<std::string>{"2"});
    CHECK(message_of<IoError>([&] { (void)groups_of_devices("", found, 4); }) ==
          "the configuration takes 4 devices, and there are 3");
    CHECK(groups_of_devices("", {}, 4).empty());  // nobody says which there are

    setenv("CUDA_VISIBLE_DEVICES", "GPU-ccc,0", 1);
    const FoundDevices allowed =
        find_devices(smi_that_says(folder, two + "2, GPU-ccc, NVIDIA L4, 23034\n"));
    CHECK(allowed.all.size() == 3);
    CHECK(allowed.text() == "1 x NVIDIA L4, 22 GiB each + 1 x NVIDIA H100 80GB HBM3, 80 GiB each");
    CHECK(groups_of_devices("", allowed, 1).front() == std::vector<std::string>{"GPU-ccc"});
    unsetenv("CUDA_VISIBLE_DEVICES");

    CHECK(find_devices("no-such-nvidia-smi").trouble.empty());
    const FoundDevices none = find_devices(smi_that_says(folder, "No devices were found\n", 6));
    CHECK(none.all.empty());
    CHECK(none.trouble == "nvidia-smi: No devices were found");
    CHECK(find_devices(smi_that_says(folder, "", 9)).trouble == "nvidia-smi: exit code 9");
}
