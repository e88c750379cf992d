// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi and rocm-smi call a chip, and which of the known ones it is.
#include "servetune/catalogue.hpp"
#include "servetune/study_file.hpp"
#include "study_file/readers.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

FoundHardware recognised(const std::vector<std::pair<std::string, double>>& devices) {
    static const std::vector<HardwareSpec> known = Catalogue(search_spaces).all_hardware();
    FoundDevices found;
    for (const auto& [name, mib] : devices)
        found.visible.push_back({.index = static_cast<int>(found.visible.size()),
                                 .uuid = "GPU-" + std::to_string(found.visible.size()),
                                 .name = name,
                                 .memory_bytes = std::uint64_t(mib) << 20U});
    return hardware_of(found, known);
}

}  // namespace

TEST_CASE("found hardware: the names that tools print are those of shipped chips") {
    struct Printed {
        const char* name;
        double mib;
        const char* chip;
    };
    for (const Printed& printed :
         {Printed{"NVIDIA H100 80GB HBM3", 81559, "h100-sxm"},
          {"NVIDIA H100 PCIe", 81559, "h100-pcie"},
          {"NVIDIA H200", 143771, "h200-sxm"},
          {"NVIDIA H20", 97871, "h20-sxm"},
          {"NVIDIA A100-SXM4-80GB", 81920, "a100-sxm-80gb"},
          {"NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40gb"},
          {"NVIDIA A100 80GB PCIe", 81920, "a100-pcie-80gb"},
          {"NVIDIA A100-PCIE-40GB", 40960, "a100-pcie-40gb"},
          {"NVIDIA A10G", 23028, "a10g"},
          {"NVIDIA A10", 23028, "a10"},
          {"NVIDIA L4", 23034, "l4"},
          {"NVIDIA L40S", 46068, "l40s"},
          {"NVIDIA RTX A6000", 49140, "a6000"},
          {"NVIDIA GeForce RTX 3090", 24576, "rtx-3090"},
          {"NVIDIA GeForce RTX 4090", 24564, "rtx-4090"},
          {"NVIDIA GeForce RTX 5090", 32607, "rtx-5090"},
          {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "rtx-pro-6000"},
          {"NVIDIA B200", 183359, "b200-sxm"},
          {"NVIDIA GB10", 0, "dgx-spark"},
          {"NVIDIA Thor", 0, "jetson-thor"},
          {"AMD Instinct MI300X", 196592, "mi300x"},
          {"AMD Instinct MI325X", 0, "mi325x"}}) {
        INFO(printed.name);
        const FoundHardware found = recognised({{printed.name, printed.mib}});
        CHECK(found.name == printed.chip);
        CHECK(found.why_not == "");
    }
    CHECK(recognised({}).name == "");
    CHECK(recognised({}).why_not == "");
    CHECK(
        recognised(std::vector<std::pair<std::string, double>>(8, {"NVIDIA H200", 143771})).name ==
        "h200-sxm");
}

TEST_CASE(
    "found hardware: what is like a chip that is known is not taken for it, and the nearest are "
    "named") {
    for (const auto& [name, mib] :
         {std::pair{"NVIDIA H100 NVL", 95830.0},
          {"NVIDIA H100 80GB HBM3", 40000.0},  // a part of one
          {"NVIDIA H200 NVL", 143771.0},
          {"NVIDIA GeForce RTX 4090 D", 24564.0},
          {"NVIDIA GeForce RTX 4090", 49140.0},  // with twice the memory
          {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887.0},
          {"NVIDIA L40S-8Q", 8192.0},
          {"Tesla V100-SXM2-16GB", 16384.0}}) {
        INFO(name);
        const FoundHardware found = recognised({{name, mib}});
        CHECK(found.name == "");
        CHECK(has(found.why_not, name));
    }
    const std::vector<HardwareSpec> known = shipped_catalogue.all_hardware();
    for (const char* also : {"h100", "H100", "h200", "h100-sxm"})
        CHECK(why_unknown(also, known).empty());
    CHECK(has(why_unknown("h100-sxn", known),
              "'h100-sxn' is none of the chips known here; nearest: "));
    CHECK(has(why_unknown("h1000", known), "nearest: h100-sxm, h100-pcie, "));
    CHECK(has(recognised({{"NVIDIA H100 NVL", 95830}}).why_not, "h100"));
    CHECK(recognised({{"NVIDIA L4", 23034}, {"NVIDIA L40S", 46068}}).why_not ==
          "nvidia-smi finds different chips: l4 and l40s");
}

TEST_CASE(
    "found hardware: a study that names another chip than the machine has is told, and its report "
    "says it") {
    const TemporaryFolder folder;
    const auto said = [&](const std::string& hardware, const std::string& name, double mib,
                          const std::string& deploy = "{}") {
        const auto file = folder.write(
            "study.yaml", "study: s\nmodel: Qwen/Qwen3-8B\nengine: vllm\n" + hardware +
                              "workloads: [{use: random, input_tokens: 8, output_tokens: 8}]\n"
                              "objective: {maximize: output_tokens_per_second}\nothers: default\n"
                              "space: {max_num_seqs: {choice: [engine, 64]}}\nbudget: {trials: 1}\n"
                              "evaluator: {deploy: " +
                              deploy + "}\n");
        FoundDevices machine;
        machine.all = {
            {.index = 0, .uuid = "GPU-0", .name = name, .memory_bytes = std::uint64_t(mib) << 20U}};
        machine.visible = machine.all;
        const StudyFile study = load_study(file, shipped_catalogue, "", MeasuredBy::evaluator,
                                           {[&] { return machine; }, {}});
        std::string warned;
        for (const std::string& warning : study.warnings) warned += warning + '\n';
        const std::string differs = "nvidia-smi finds h100-sxm here";
        CHECK(has(warned, differs) == has(study.measured_by(), differs));
        return has(warned, differs) ? warned : "";
    };
    const std::string h100 = "NVIDIA H100 80GB HBM3";
    for (const char* chip : {"l4", "h200-sxm"}) {
        const std::string warned = said("hardware: " + std::string(chip) + "\n", h100, 81559);
        CHECK(has(warned, "the study is for " + std::string(chip) +
                              ", and nvidia-smi finds h100-sxm here"));
        CHECK(has(warned, "write `hardware: h100-sxm`"));
    }
    CHECK(said("hardware: h100-sxm\n", h100, 81559).empty());
    CHECK(said("", h100, 81559).empty());
    CHECK(said("hardware: my own box\n", h100, 81559).empty());                // not known here
    CHECK(said("hardware: l4\n", h100, 40000).empty());                        // a part of one
    CHECK(said("hardware: l4\n", h100, 81559, "{ssh: {host: far}}").empty());  // it runs elsewhere
}
