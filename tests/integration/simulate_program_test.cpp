// SPDX-License-Identifier: Apache-2.0
// `autotune simulate` and runs of the simulate evaluator, from outside.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
const fs::path root = fs::path(SERVETUNE_SOURCE) / "search_spaces";
const std::string shipped = (root / "studies/simulated-h100.yaml").string();

std::string study(const std::string& model, const std::string& hardware) {
    return "study: own\nmodel: " + model + "\nhardware: " + hardware +
           "\nengine: vllm\nworkloads:\n  - {workload: w, use: random, input_tokens: 200, "
           "output_tokens: 20, requests: 100}\n"
           "objective: {maximize: total_tokens_per_second}\nspace:\n  max_num_seqs: {choice: "
           "[engine, 8, 32, 64]}\n"
           "  gpu_memory_utilization: {choice: [engine, 0.8, 0.95]}\nothers: default\nstrategy: "
           "exhaustive\nevaluator: {simulate: {noise: "
           "1%}}\n";
}

}  // namespace

TEST_CASE("simulate: predictions are called predictions, in text and in JSON") {
    const TemporaryFolder folder;
    const std::string file =
        folder.write("study.yaml", study("Qwen/Qwen3-8B", "h100-sxm")).string();
    const Ran text = autotune({"simulate", file, "--top", "2"}, folder.path());
    INFO(text.out << text.err);
    CHECK(text.code == 0);
    CHECK(text.out.find("PREDICTED, not measured: Qwen/Qwen3-8B on h100-sxm") == 0);
    CHECK(has(text.out, "of 12 configurations simulated"));
    CHECK(has(text.out, "the default: vllm serve Qwen/Qwen3-8B\n"));
    CHECK(has(text.out, "memory of the first:\n  device                           79.65 GiB\n"));
    CHECK(has(text.out, "These are guesses to start from"));

    const Ran ran = autotune({"simulate", file, "--json", "--top", "3"}, folder.path());
    const Json json = Json::parse(ran.out);
    CHECK(json["kind"] == "prediction");
    CHECK(json["study"] == "own");
    CHECK(json["hardware"] == "h100-sxm");
    CHECK(json["objective"] == "total_tokens_per_second");
    REQUIRE(json["best"].size() == 3);
    CHECK(json["best"][0]["predicted"] >= json["best"][1]["predicted"]);
    CHECK(json["best"][0]["predicted"] == json["best"][0]["metrics"]["total_tokens_per_second"]);
    CHECK(json["best"][0]["argv"][0] == "vllm");
    CHECK(autotune({"simulate", file, "--json", "--top", "3"}, folder.path()).out == ran.out);

    const Json better = Json::parse(
        autotune({"simulate", file, "--json", "--hardware", "h200-sxm"}, folder.path()).out);
    CHECK(better["hardware"] == "h200-sxm");
    CHECK(better["best"][0]["predicted"].get<double>() >=
          json["best"][0]["predicted"].get<double>());
}

TEST_CASE("simulate and validate: a chip and a model of the user's own, by file beside the study") {
    const TemporaryFolder folder;
    std::string chip = read_file(root / "hardware/l4.yaml");
    chip.replace(chip.find("hardware: l4"), 12, "hardware: my-chip");
    chip.replace(chip.find("memory_bytes: 24152899584"), 25, "memory_bytes: 85520809984");
    chip += "unverified: [flops_per_second.fp8]\n";
    std::string model = read_file(root / "models/qwen3-8b.yaml");
    model.replace(model.find("model: Qwen/Qwen3-8B"), 20, "model: my/Own-8B");
    model.replace(model.find("also: [Qwen3-8B]"), 16, "also: [Own-8B]");
    fs::create_directories(folder.path() / "study");
    folder.write("study/chip.yaml", chip);
    folder.write("study/model.yml", model);
    folder.write("study/s.yaml", study("./model.yml", "./chip.yaml"));
    // From another folder: files are beside the study.
    const Ran text = autotune({"simulate", "study/s.yaml"}, folder.path());
    INFO(text.out << text.err);
    CHECK(text.code == 0);
    CHECK(text.out.find("PREDICTED, not measured: my/Own-8B on my-chip") == 0);
    CHECK(has(text.out,
              "take care: figures of my-chip that were not seen in its maker's data sheet: "
              "flops_per_second.fp8; what is"));
    CHECK(has(text.out, "vllm serve my/Own-8B"));
    CHECK(has(text.out, "device                           79.65 GiB\n"));
    const Json json =
        Json::parse(autotune({"simulate", "study/s.yaml", "--json"}, folder.path()).out);
    CHECK(json["hardware"] == "my-chip");
    REQUIRE(json["take_care"].size() == 2);
    CHECK(has(json["take_care"][1].get<std::string>(),
              "the cost model of vllm was never checked on my-chip"));
    const Ran valid = autotune({"validate", "study/s.yaml"}, folder.path());
    INFO(valid.out << valid.err);
    CHECK(valid.code == 0);
    CHECK(has(valid.out, "warning: figures of my-chip that were not seen"));
    // Other figures make another study; a file that is not there is said with its place.
    const auto run = [&] {
        return autotune({"run", "study/s.yaml", "--quiet", "--directory", "out"}, folder.path());
    };
    CHECK(run().code == 0);
    folder.write("study/chip.yaml", chip + "# again\n");
    const Ran changed = run();
    CHECK(changed.code == 2);
    CHECK(has(changed.err, "hardware.facts"));
    folder.write("study/s.yaml", study("Qwen/Qwen3-8B-GGUF", "./none.yaml"));
    CHECK(has(autotune({"validate", "study/s.yaml"}, folder.path()).err,
              "study/s.yaml:3:11: 'hardware': there is no file "));
    folder.write("study/s.yaml", study("a/Qwen3-8B-AWQ", "l4"));
    CHECK(has(autotune({"validate", "study/s.yaml"}, folder.path()).out,
              "warning: a/Qwen3-8B-AWQ is Qwen/Qwen3-8B in awq, by its name\n"));
}

TEST_CASE(
    "simulate: kernels that a chip refuses are not proposed, ties are one row, idle flags are left "
    "out") {
    const TemporaryFolder folder;
    const auto of = [](const std::string& preset) {
        return "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: sglang\npreset: " +
               preset +
               "\nworkloads:\n  - {workload: w, use: random, input_tokens: 200, output_tokens: 20, "
               "requests: 60}\n"
               "objective: {maximize: total_tokens_per_second}\nevaluator: {simulate: {}}\n";
    };
    const std::string file = folder.write("study.yaml", of("quick")).string();
    const auto best_on = [&](const std::string& hardware) {
        const Ran ran =
            autotune({"simulate", file, "--json", "--configurations", "30", "--hardware", hardware},
                     folder.path());
        INFO(ran.err);
        REQUIRE(ran.code == 0);
        return Json::parse(ran.out)["best"];
    };
    for (const char* hardware : {"h100-sxm", "b200-sxm", "mi300x", "a100-sxm-80gb"}) {
        INFO(hardware);
        const Json best = best_on(hardware);
        REQUIRE_FALSE(best.empty());
        std::set<std::string> figures;
        for (const Json& row : best) {
            INFO(row.dump());
            if (std::string(hardware) != "h100-sxm") CHECK_FALSE(has(row["command"], "fa3"));
            if (std::string(hardware) == "mi300x") CHECK_FALSE(has(row["command"], "flashinfer"));
            CHECK(figures.insert(row["predicted"].dump())
                      .second);  // no two rows with the same figure
            // 60 requests at once never need room for 128, nor does any cap from there on: such a
            // flag is idle.
            CHECK_FALSE(has(row["command"], "--max-running-requests"));
        }
    }
    const Ran text = autotune(
        {"simulate", file, "--configurations", "30", "--hardware", "b200-sxm"}, folder.path());
    CHECK(has(text.out, "flags that change no figure are left out"));
}

TEST_CASE(
    "simulate: a model that fits under no flag is said before anything runs, with the memory "
    "plan") {
    const TemporaryFolder folder;
    const std::string file = folder.write("study.yaml", study("Qwen/Qwen3-32B", "l4")).string();
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"simulate", file},
          {"run", file, "--directory", (folder.path() / "run").string()}}) {
        const Ran ran = autotune(arguments, folder.path());
        INFO(ran.err);
        CHECK(ran.code != 0);
        CHECK(ran.out.empty());
        CHECK(has(ran.err,
                  "no configuration of this study would start; the default: weights and libraries "
                  "need 6"));
        CHECK(has(ran.err, "  device                           22.49 GiB\n"));
        CHECK(has(ran.err, "  missing "));
    }
    CHECK_FALSE(fs::exists(folder.path() / "run" / "report.md"));
}

TEST_CASE(
    "simulate: a simulated study runs, is reported as simulated, and goes on where it stopped") {
    const TemporaryFolder folder;
    const auto run = [&](const std::string& directory, const char* trials) {
        const Ran ran =
            autotune({"run", shipped, "--directory", (folder.path() / directory).string(),
                      "--trials", trials, "--json", "--quiet"},
                     folder.path());
        INFO(ran.err);
        REQUIRE(ran.code == 0);
        return Json::parse(ran.out);
    };
    const Json whole = run("whole", "12");
    CHECK(whole["trials"]["told"] == 12);
    const std::string report = read_file(folder.path() / "whole/report.md");
    CHECK((has(report, "simulated") && has(report, "rediction")));
    (void)run("parts", "5");
    const Json parts = run("parts", "12");
    CHECK(parts["trials"] == whole["trials"]);
    CHECK(parts["recommended"] == whole["recommended"]);
    CHECK(parts["best_observed"] == whole["best_observed"]);
}
