// SPDX-License-Identifier: Apache-2.0
// Files of traits and hardware: every complaint says where and what was wanted.
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "study/table.hpp"
#include "support/shipped.hpp"

#include <algorithm>
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
    CHECK(message_of<IoError>([] { (void)Catalogue(search_spaces).traits("vlm"); }).find("vllm") !=
          std::string::npos);
}

TEST_CASE("traits: figures that make no sense are refused where they stand") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const auto line_of = [&](const std::string& key) {
        const auto at = shipped.find("\n" + key + ":") + 1;
        return ":" +
               std::to_string(1 + std::count(shipped.begin(),
                                             shipped.begin() + static_cast<std::ptrdiff_t>(at),
                                             '\n')) +
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
        CHECK(message.find(c.wanted) != std::string::npos);
    }
}

TEST_CASE("traits: a figure without a source is refused, an unknown key and a missing one too") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const std::string no_source =
        complaint(replaced(shipped, "  step_overhead_seconds: \"", "  step_overhead_second: \""));
    CHECK(no_source.find("'step_overhead_seconds'") != std::string::npos);
    CHECK(no_source.find("has no source: say where the figure is from under 'sources'") !=
          std::string::npos);
    const std::string unknown =
        complaint(replaced(shipped, "\nstep_overhead_seconds:", "\nstep_overhead_second:"));
    CHECK(unknown.find("'step_overhead_second'") != std::string::npos);
    CHECK(unknown.find("step_overhead_seconds") != std::string::npos);
    CHECK(complaint(replaced(shipped, "\nengine: vllm", "")).find("'engine'") != std::string::npos);
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
    CHECK(
        complaint(with("  \"0.9\": {layer_seconds: 1.0e-5}\n  \"0.20\": {layer_seconds: 2.0e-5}\n"))
            .find("the newest first") != std::string::npos);
    CHECK(complaint(with("  soon: {layer_seconds: 1.0e-5}\n"))
              .find("a version of the engine wanted") != std::string::npos);
    CHECK(complaint(with("  \"0.9\": {compute_efficiency: {bf16: 0.5}}\n"))
              .find("'other' is missing") != std::string::npos);
    CHECK(complaint(with("  \"0.9\": {context_bytes: 1}\n")).find("context_bytes") !=
          std::string::npos);
}

TEST_CASE(
    "traits: who was checked is checked on chips that are known, and by rows that are in the "
    "table") {
    const Catalogue catalogue(search_spaces);
    const std::string measured =
        read_file(search_spaces.parent_path() / "benchmarks/accuracy/measured.csv");
    std::map<std::string, std::pair<CostCheck, std::size_t>> found;  // and its rows
    std::vector<CsvRow> rows = parse_csv(measured, "measured.csv");
    rows.erase(rows.begin());
    for (const CsvRow& row : rows) {
        const std::string& engine = row.cells.at(1);
        const std::string& chip = row.cells.at(3);
        const EngineTraits traits = catalogue.traits(engine, row.cells.at(2));
        const auto check = std::find_if(traits.checked.begin(), traits.checked.end(),
                                        [&](const CostCheck& one) { return one.hardware == chip; });
        INFO(engine << " " << row.cells.at(2) << " on " << chip);
        REQUIRE(check != traits.checked.end());
        auto& [of, count] = found[engine + " " + chip + " " + check->of];
        of = *check;
        ++count;
    }
    for (const auto& [name, one] : found) {
        INFO(name);
        CHECK(one.first.rows == one.second);
        CHECK(one.first.median_error <= one.first.error_90);
    }
    CHECK(found.size() == 13);
}

TEST_CASE(
    "traits: a study is told where the cost model was never checked, and where it is far off") {
    std::string own = read_file(search_spaces / "traits/vllm.yaml");
    const auto at = own.find("\nchecked:");
    REQUIRE(at != std::string::npos);
    own.replace(at, own.find("\n\n", at) - at,
                "\nchecked:\n  - {hardware: h100-sxm, rows: 9, median_error: 0.25, error_90: 0.9, "
                "of: 0.24 with Qwen3-8B}\n"
                "  - {hardware: h200-sxm, rows: 7, median_error: 0.304, error_90: 0.9, of: 0.24 "
                "with Qwen3-8B}\n");
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
    CHECK(doubts_of_cost_model(study_on("h100-sxm")).empty());  // a quarter, not more
    CHECK(study_on("h100-sxm").measured_by().find("Take care") == std::string::npos);
    const std::string off =
        "the cost model of vllm is off by 30 % on h200-sxm (median over 7 rows of 0.24 with "
        "Qwen3-8B)";
    CHECK(doubts_of_cost_model(study_on("h200-sxm")) == std::vector{off});
    CHECK(doubts_of_cost_model(study_on("h100-sxm"), "h200-sxm") == std::vector{off});
    CHECK(study_on("h200-sxm").measured_by().find("Take care: " + off) != std::string::npos);
    CHECK(doubts_of_cost_model(study_on("l4")) ==
          std::vector<std::string>{"the cost model of vllm was never checked on l4"});
    CHECK(complaint(replaced(own, "rows: 9", "rows: 0")).find("checked") != std::string::npos);
}

TEST_CASE("traits: attention is checked") {
    const std::string shipped = read_file(search_spaces / "traits/vllm.yaml");
    const auto attention = [&](const std::string& said) {
        return complaint(replaced(shipped, "decode_efficiency: 0.8", said));
    };
    CHECK(attention("decode_efficiency: 0, cache_typ").find("cache_typ") != std::string::npos);
}

TEST_CASE(
    "hardware: figures that nobody saw in a data sheet are named, and are figures of the file") {
    const Catalogue catalogue(search_spaces);
    CHECK(catalogue.hardware("h100-sxm").note_of_unverified().empty());
    const std::string note = catalogue.hardware("a10g").note_of_unverified();
    CHECK(note.find("figures of a10g that were not seen in its maker's data sheet: "
                    "flops_per_second; what is predicted") == 0);
    CHECK(note.find("from memory") != std::string::npos);
    for (const HardwareSpec& chip :
         catalogue.all_hardware()) {  // who says so in the source says so in the list
        INFO(chip.name);
        for (const char* words : {"not verified", "Not verified", "not seen", "No data sheet"})
            if (chip.source.find(words) != std::string::npos && chip.name != "a100-pcie-80gb")
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
    CHECK(unknown.find("h100-sx") != std::string::npos);
    CHECK(unknown.find("h100-sxm") != std::string::npos);
    CHECK(message_of<IoError>([&] { (void)catalogue.model("Qwen/Qwen3-14"); }).find("Qwen3-14B") !=
          std::string::npos);
    const TemporaryFolder folder;
    const std::string shipped = read_file(search_spaces / "hardware/l4.yaml");
    std::filesystem::create_directories(folder.path() / "hardware");
    const auto file =
        folder.write("hardware/l4.yaml", with_value(shipped, "link_bytes_per_second", "-5"));
    const std::string message =
        message_of<ParseError>([&] { (void)Catalogue(folder.path()).hardware("l4"); });
    CHECK(message.find(file.string() + ":") == 0);
    CHECK(message.find("link_bytes_per_second") != std::string::npos);
}
