// SPDX-License-Identifier: Apache-2.0
// Files of traits and hardware: every complaint says where and what was wanted.
#include "support/test.hpp"

#include "base/files.hpp"
#include "base/present.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/study_checks.hpp"
#include "study/table.hpp"
#include "support/shipped.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// `KEY: ...` of the first level with another value.
std::string with_value(const std::string& text, const std::string& key, const std::string& value) {
    const auto at = text.find("\n" + key + ":") + 1;
    REQUIRE(at != 0);
    return std::string(text).replace(at, text.find('\n', at) - at, key + ": " + value);
}

/// What is said to a traits file, without the folder it stands in.
std::string complaint(const std::string& content) {
    const TemporaryFolder folder;
    const auto file = folder.write("own.yaml", content);
    const std::string message =
        message_of<ParseError>([&] { (void)Catalogue(search_spaces).traits(file.string()); });
    INFO(message);
    if (!message.empty()) CHECK(message.find(file.string() + ":") == 0);
    return message.empty() ? "" : message.substr(file.string().size());
}

}  // namespace

TEST_CASE("traits: those that ship are read, and a file of one's own as well") {
    for (const char* name : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        const EngineTraits traits = Catalogue(search_spaces).traits(name);
        CHECK(traits.engine == name);
        CHECK(traits.attention.contains(traits.default_attention));
        CHECK((traits.bandwidth_efficiency > 0 && traits.bandwidth_efficiency <= 1));
        CHECK(
            complaint(read_file(search_spaces / "traits" / (std::string(name) + ".yaml"))).empty());
    }
    CHECK(has(message_of<IoError>([] { (void)Catalogue(search_spaces).traits("vlm"); }), "vllm"));
}

TEST_CASE("traits: figures that make no sense are refused where they stand") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const auto line_of = [&](const std::string& key) {
        const auto at = shipped.find("\n" + key + ":") + 1;
        return ":" +
               std::to_string(
                   1 + std::count(shipped.begin(), shipped.begin() + std::ptrdiff_t(at), '\n')) +
               ":";
    };
    struct Case {
        std::string key, value, wanted;
    };
    for (const Case& c :
         {Case{"bandwidth_efficiency", "0", "a share: more than 0, at most 1"},
          {"step_overhead_seconds", "-1e-3", "a number of at least 0"},
          {"context_bytes", ".inf", "number"},
          {"step_overhead_seconds", ".nan", "number"},
          {"load_bytes_per_second", "0", "a positive number"},
          {"fraction_of", "everything", "device, weights_cache, free or none"},
          {"checks_context", "perhaps", "true or false"},
          {"compute_efficiency", "{bf16: 0, other: 0.3}", "a share: more than 0, at most 1"},
          {"compute_efficiency", "{bf16: 0.4}", "'other' is missing"}}) {
        INFO(c.key << ": " << c.value);
        const std::string message = complaint(with_value(shipped, c.key, c.value));
        CHECK(message.find(line_of(c.key)) == 0);
        CHECK(has(message, c.wanted));
    }
}

TEST_CASE("traits: a figure without a source is refused, an unknown key and a missing one too") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const std::string no_source =
        complaint(replaced(shipped, "  step_overhead_seconds: \"", "  step_overhead_second: \""));
    CHECK(has(no_source, "'step_overhead_seconds'"));
    CHECK(has(no_source, "has no source: say where the figure is from under 'sources'"));
    const std::string unknown =
        complaint(replaced(shipped, "\nstep_overhead_seconds:", "\nstep_overhead_second:"));
    CHECK(has(unknown, "'step_overhead_second'"));
    CHECK(has(unknown, "step_overhead_seconds"));
    CHECK(has(complaint(replaced(shipped, "\nengine: vllm", "")), "'engine'"));
    CHECK(complaint("engine: [").find(":1:") == 0);
}

TEST_CASE("traits: a version has the figures of its time") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const auto at = shipped.find("\nbefore:");
    REQUIRE(at != std::string::npos);
    const std::string rest = shipped.substr(shipped.find("\n\n", at));
    const auto with = [&](const std::string& before) {
        return shipped.substr(0, at) + "\nbefore:\n" + before + rest;
    };
    const TemporaryFolder folder;
    const std::string own =
        folder
            .write(
                "own.yaml",
                with("  \"0.20\": {layer_seconds: 1.0e-5, defaults: {max_num_seqs: [{value: 7}]}}\n"
                     "  \"0.9\": {layer_seconds: 2.0e-5, compute_efficiency: {other: 0.5}}\n"))
            .string();
    const auto of = [&](const char* version) {
        return Catalogue(search_spaces).traits(own, version);
    };
    const EngineTraits newest = of("");
    for (const char* version : {"0.20.0", "0.20", "0.24.0"})
        CHECK(of(version).layer_seconds == newest.layer_seconds);
    CHECK(of("0.19.1").layer_seconds == 1.0e-5);
    CHECK(of("0.19.1").defaults.at("max_num_seqs").size() == 1);
    CHECK(of("0.19.1").defaults.at("max_num_batched_tokens").size() ==
          newest.defaults.at("max_num_batched_tokens").size());
    CHECK(of("0.19.1").compute("bf16") == newest.compute("bf16"));
    CHECK(of("0.8.5").layer_seconds == 2.0e-5);
    CHECK(of("0.8.5").compute("bf16") == 0.5);
    CHECK(of("0.8.5").defaults.at("max_num_seqs").size() ==
          1);  // what was before 0.20 was before 0.9 too
    CHECK(has(complaint(with(
                  "  \"0.9\": {layer_seconds: 1.0e-5}\n  \"0.20\": {layer_seconds: 2.0e-5}\n")),
              "the newest first"));
    CHECK(has(complaint(with("  soon: {layer_seconds: 1.0e-5}\n")),
              "a version of the engine wanted"));
    CHECK(has(complaint(with("  \"0.9\": {compute_efficiency: {bf16: 0.5}}\n")),
              "'other' is missing"));
    CHECK(has(complaint(with("  \"0.9\": {context_bytes: 1}\n")), "context_bytes"));
}

TEST_CASE(
    "traits: whoever was checked has an interval for every chip and model, narrow ones first") {
    const Catalogue catalogue(search_spaces);
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm"}) {
        const EngineTraits traits = catalogue.traits(engine, "");
        REQUIRE_FALSE(traits.checked.empty());
        for (const CostCheck& one : traits.checked) {
            INFO(engine << " " << one.hardware << " " << one.models);
            const bool last = &one == &traits.checked.back();
            CHECK((one.hardware.empty() && one.models.empty()) == last);
            CHECK((last || one.rows >= 10));
            for (const auto* range : {&one.output_tokens_per_second, &one.time_per_output_token,
                                      &one.time_to_first_token}) {
                REQUIRE((range->empty() || range->size() == 2));
                if (!range->empty()) CHECK((range->front() <= 1 && range->back() >= 1));
            }
        }
        CHECK(traits.checked.front().rows <= traits.checked.back().rows);
    }
}

TEST_CASE("traits: a study is told where the cost model was never checked, or is far off") {
    std::string own = read_file(search_spaces / "traits/vllm.yaml");
    const auto at = own.find("\nchecked:");
    REQUIRE(at != std::string::npos);
    const std::string range = ", output_tokens_per_second: [0.75, 1.5]}\n";
    own.replace(at, own.find("\n\n", at) - at,
                "\nchecked:\n  - {hardware: h100-sxm, rows: 90, of: A" + range +
                    "  - {until: \"0.12\", rows: 80, of: B" + range +
                    "  - {hardware: hopper, rows: 70, of: \"A, C\", output_tokens_per_second: "
                    "[0.5, 1.3]}\n");
    const TemporaryFolder folder;
    const std::string traits = folder.write("own.yaml", own).string();
    const auto study_on = [&](const std::string& chip) {
        return load_study(
            folder.write("study.yaml",
                         "study: s\nmodel: Qwen/Qwen3-8B\nhardware: " + chip +
                             "\nengine: vllm\nworkloads: [{use: random}]\n"
                             "objective: {maximize: output_tokens_per_second}\nothers: default\n"
                             "space: {max_num_seqs: {choice: [16, 64]}}\n"
                             "evaluator: {simulate: {traits: {vllm: " +
                             traits + "}}}\nbudget: {trials: 2}\n"),
            Catalogue(search_spaces));
    };
    CHECK(doubts_of_cost_model(study_on("h100-sxm")).empty());  // twice, not more
    CHECK_FALSE(has(study_on("h100-sxm").measured_by(), "Take care"));
    const std::string off =
        "the cost model of vllm: measured / predicted output tokens/s are 0.5 to 1.3 (90 % of 70 "
        "measured rows of A, C, none or few of them on h200-sxm)";
    CHECK(doubts_of_cost_model(study_on("h200-sxm")) == std::vector{off});
    CHECK(doubts_of_cost_model(study_on("h100-sxm"), "h200-sxm") == std::vector{off});
    CHECK(has(study_on("h200-sxm").measured_by(), "Take care: " + off));
    CHECK(doubts_of_cost_model(study_on("l4")) ==
          std::vector<std::string>{"the cost model of vllm was never checked on l4"});
    CHECK(has(complaint(replaced(own, "rows: 90", "rows: 0")), "checked"));
}

TEST_CASE("traits: attention is checked") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const auto attention = [&](const std::string& said) {
        return complaint(replaced(shipped, "decode_efficiency: 0.8", said));
    };
    CHECK(has(attention("decode_efficiency: 0, cache_typ"), "cache_typ"));
}

TEST_CASE(
    "hardware: figures that nobody saw in a data sheet are named, and are figures of the file") {
    const Catalogue catalogue(search_spaces);
    CHECK(catalogue.hardware("h100-sxm").note_of_unverified().empty());
    const std::string note = catalogue.hardware("a10g").note_of_unverified();
    CHECK(note.find("figures of a10g that were not seen in its maker's data sheet: "
                    "flops_per_second; what is predicted") == 0);
    CHECK(has(note, "from memory"));
    for (const HardwareSpec& chip :
         catalogue.all_hardware()) {  // who says so in the source says so in the list
        INFO(chip.name);
        for (const char* words : {"not verified", "Not verified", "not seen", "No data sheet"})
            if (has(chip.source, words) && chip.name != "a100-pcie-80gb")
                CHECK_FALSE(chip.unverified.empty());
        for (const std::string& figure : chip.unverified) {
            INFO(figure);
            CHECK((figure == "memory_bytes" || figure == "memory_bandwidth_bytes_per_second" ||
                   figure == "flops_per_second" || figure == "link_bytes_per_second" ||
                   chip.flops_per_second.contains(figure.substr(figure.find('.') + 1))));
        }
    }
}

TEST_CASE(
    "hardware: unknown names are answered with the nearest, senseless figures with their place") {
    const Catalogue catalogue(search_spaces);
    const std::string unknown = message_of<IoError>([&] { (void)catalogue.hardware("h100-sx"); });
    CHECK(has(unknown, "h100-sx"));
    CHECK(has(unknown, "h100-sxm"));
    CHECK(has(message_of<IoError>([&] { (void)catalogue.model("Qwen/Qwen3-14"); }), "Qwen3-14B"));
    const TemporaryFolder folder;
    const std::string shipped = read_file(search_spaces / "hardware/l4.yaml");
    std::filesystem::create_directories(folder.path() / "hardware");
    const auto file =
        folder.write("hardware/l4.yaml", with_value(shipped, "link_bytes_per_second", "-5"));
    const std::string message =
        message_of<ParseError>([&] { (void)Catalogue(folder.path()).hardware("l4"); });
    CHECK(message.find(file.string() + ":") == 0);
    CHECK(has(message, "link_bytes_per_second"));
}

TEST_CASE("kernels: of each the newest counts that is not newer than the engine, else the oldest") {
    const TemporaryFolder folder;
    const std::string traits = read_file(search_spaces / "traits/vllm.yaml");
    for (const char* kind : {"traits", "kernels"})
        std::filesystem::create_directory(folder.path() / kind);
    folder.write("traits/vllm.yaml", traits);
    const auto of = [&](const std::string& version) {
        return Catalogue(folder.path()).traits("vllm", version).kernels;
    };
    CHECK(of("").empty());
    const std::string head = "engine: vllm\nsource: me\nlicence: MIT\nkernels:\n h100-sxm:\n";
    folder.write("kernels/vllm.yaml", head +
                                          "  \"0.9\": {gemm.bf16: [0.5, 0.6, 1e-6, 2]}\n"
                                          "  \"0.19\": {gemm.bf16: [0.7, 0.8, 2e-6, 3],"
                                          " moe.fp8: [0.1, 0.2, 3e-6, 1]}\n"
                                          "  \"0.20\": {gemm.bf16: [0.9, 1.0, 4e-6, 4]}\n");
    const auto compute = [&](const std::string& version, const std::string& kernel) {
        return of(version).at("h100-sxm").at(kernel).compute;
    };
    CHECK(compute("0.8.5", "gemm.bf16") == 0.5);
    CHECK(compute("0.18.2", "gemm.bf16") == 0.5);
    CHECK(compute("0.18.2", "moe.fp8") == 0.1);
    CHECK(compute("0.19.1", "gemm.bf16") == 0.7);
    CHECK(compute("", "gemm.bf16") == 0.9);
    CHECK(compute("", "moe.fp8") == 0.1);
    const KernelEfficiency last = of("0.28").at("h100-sxm").at("gemm.bf16");
    CHECK((last.bandwidth == 1 && last.seconds == 4e-6 && last.sharpness == 4));
    const auto own = folder.write("own.yaml", traits);  // its own figures count
    CHECK(Catalogue(folder.path()).traits(own.string()).kernels.empty());

    const auto complaint_of = [&](const std::string& row) {
        folder.write("kernels/vllm.yaml", head + "  \"0.9\": {gemm.bf16: " + row + "}\n");
        return message_of<ParseError>([&] { (void)of(""); });
    };
    CHECK(has(complaint_of("[0.5, 0.6, 1e-6]"), "vllm.yaml:6:"));
    CHECK(has(complaint_of("[0.5, -1, 1e-6, 1]"), "at least 0"));
    CHECK(complaint_of("[0.5, 0.6, 1e-6, 1]").empty());
}

TEST_CASE("kernels: those that ship are of known chips and within what is possible") {
    const Catalogue catalogue(search_spaces);
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm"})
        for (const char* version : {"0.1", "0.5.10", "0.15", "1.1", ""}) {
            const auto kernels = catalogue.traits(engine, version).kernels;
            CHECK(kernels.size() >= 8);
            for (const auto& [chip, of] : kernels) {
                CHECK(catalogue.hardware(chip).name == chip);
                for (const char* needed : {"gemm.bf16", "prefill.bf16", "decode.bf16"})
                    CHECK(of.contains(needed));
                for (const auto& [name, kernel] : of) {
                    INFO(engine << " " << version << " " << chip << " " << name);
                    CHECK((kernel.compute > 0) != name.starts_with("all_"));
                    CHECK(kernel.compute <= 1.2);
                    CHECK((kernel.bandwidth > 0 && kernel.bandwidth <= 1.2));
                    CHECK((kernel.seconds > 0 && kernel.seconds < 1.01e-4));
                    CHECK((kernel.sharpness >= 0.3 && kernel.sharpness <= 10));
                }
            }
        }
}

TEST_CASE("kernels: what was measured comes out, as near as nine of ten rows of its table") {
    struct Row {  // of aiconfigurator, 095f58a5
        const char* engine;
        const char* version;
        const char* chip;
        const char* kernel;
        double flops;  // as docs/explanation/simulator.md says
        double bytes;
        double seconds;
        double error_90;
    };
    const auto gemm = [](double m, double n, double k, double width) {
        return std::pair(2 * m * n * k, n * k * width + m * (4 * k + 2 * n));
    };
    const auto [small, of_small] = gemm(64, 4096, 4096, 2);
    const auto [large, of_large] = gemm(8192, 4096, 4096, 2);
    const auto [fp4, of_fp4] = gemm(1024, 8192, 8192, 0.5625);
    const double experts = 3 * 7168.0 * 2048 * 32 * (1 - std::pow(1 - 8 / 256.0, 128));
    const double pairs = 128.0;  // 128 tokens, 8 of 256 experts, on one of 8 devices
    const double causal = 8192.0 * 8193 / 2;
    const double seen = 64.0 * 4096;
    const double latent = 32.0 * 4096;
    const std::vector<Row> rows{
        {"vllm", "0.19.0", "h100-sxm", "gemm.bf16", small, of_small, 15.3e-6, 0.18},
        {"vllm", "0.19.0", "h100-sxm", "gemm.bf16", large, of_large, 367e-6, 0.18},
        {"sglang", "0.5.9", "b200-sxm", "gemm.fp4", fp4, of_fp4, 39.3e-6, 0.32},
        {"sglang", "0.5.14", "h200-sxm", "moe.fp8_block", 6 * pairs * 7168 * 2048,
         experts + pairs * (6 * 7168 + 8 * 2048), 364e-6, 0.38},
        {"tensorrt-llm", "1.3.0", "b200-sxm", "prefill.bf16", 4 * 32 * 128 * causal,
         8192.0 * 128 * (2 * 8 * 2 + 4 * 32), 564e-6, 0.41},
        {"vllm", "0.19.0", "h100-sxm", "decode.bf16", 4 * 32 * 128 * seen,
         seen * 2 * 8 * 128 * 2 + 64.0 * 4 * 32 * 128, 360e-6, 0.18},
        {"sglang", "0.5.9", "h200-sxm", "mla_decode.bf16", 2 * 128 * 1088 * latent,
         latent * 576 * 2 + 32.0 * 2 * 1088 * 128, 84.9e-6, 0.14},
        {"vllm", "0.19.0", "h100-sxm", "all_reduce.8", 0, 2097152 * 2 * 7 / 8.0, 19.4e-6, 0.12},
    };
    const Catalogue catalogue(search_spaces);
    for (const Row& row : rows) {
        INFO(row.engine << " " << row.chip << " " << row.kernel << ", measured " << row.seconds);
        const HardwareSpec chip = catalogue.hardware(row.chip);
        const KernelEfficiency of =
            catalogue.traits(row.engine, row.version).kernels.at(row.chip).at(row.kernel);
        const std::string kernel = row.kernel;
        const bool exchange = of.compute == 0;
        const double first =
            exchange ? of.seconds
                     : row.flops /
                           (present(chip.flops(kernel.substr(kernel.find('.') + 1))) * of.compute);
        const double second =
            row.bytes / (of.bandwidth * (exchange ? present(chip.link_bytes_per_second) / 2
                                                  : chip.memory_bandwidth_bytes_per_second));
        const double predicted =
            (exchange ? 0 : of.seconds) +
            std::pow(std::pow(first, of.sharpness) + std::pow(second, of.sharpness),
                     1 / of.sharpness);
        CHECK(std::abs(std::log(predicted / row.seconds)) < row.error_90);
    }
}
