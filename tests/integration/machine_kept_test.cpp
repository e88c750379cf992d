// SPDX-License-Identifier: Apache-2.0
// A study that was made on a machine with GPUs is read on one without: its journal holds the
// machine.
#include "servetune/sqlite_journal.hpp"
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// An nvidia-smi that lists `count` GPUs and notes each time that it is started.
void write_nvidia_smi(const TemporaryFolder& folder, const std::string& bin, int count,
                      const std::string& name, const std::string& driver) {
    fs::create_directories(folder.path() / bin);
    std::string script = "#!/bin/sh\necho \"$1\" >> " + (folder.path() / "asked").string() +
                         "\ncase \"$1\" in\n--query-gpu=index,uuid,name,*)\n";
    for (int i = 0; i < count; ++i)
        script += "echo '" + std::to_string(i) + ", GPU-" + std::to_string(i) + "a, " + name +
                  ", 81559, " + driver + "'\n";
    script += ";;\n--query-gpu=index,uuid,memory.used,*)\n";
    for (int i = 0; i < count; ++i)
        script += "echo '" + std::to_string(i) + ", GPU-" + std::to_string(i) +
                  "a, 500, 81559, 1755, 1980, 64, 300.00, 0x0000000000000000'\n";
    script += ";;\nesac\n";
    folder.write(bin + "/nvidia-smi", script);
    fs::permissions(folder.path() / bin / "nvidia-smi", fs::perms::owner_all);
}

struct Machines {
    Machines() {
        write_nvidia_smi(folder, "two", 2, "NVIDIA H100 80GB HBM3", "550.54");
        write_nvidia_smi(folder, "updated", 2, "NVIDIA H100 80GB HBM3", "560.35");
        write_nvidia_smi(folder, "other", 2, "NVIDIA A100-SXM4-80GB", "550.54");
        write_nvidia_smi(folder, "laptop", 0, "", "");
        fs::create_directories(folder.path() / "gpus");
        for (const char* bin : {"two", "updated", "other"})
            fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / bin / "vllm");
        folder.write("study.yaml",
                     "study: pair\nmodel: Qwen/Qwen3-14B\nengine: vllm\nspace: "
                     "{tensor_parallel_size: {choice: [1, 2], ordered: true}}\n"
                     "workloads: [{workload: w, dataset: {kind: random, input_tokens: 64, "
                     "output_tokens: 16}, requests: 12, ignore_eos: true, "
                     "arrival: {concurrency: 4}}]\nobjective: {maximize: "
                     "total_tokens_per_second}\nstrategy: exhaustive\naudit: report\n"
                     "budget: {trials: 2}\ndefault_again: 0\nevaluator: {deploy: {watch: off, "
                     "warm_up: 1}}\n");
    }
    [[nodiscard]] Ran on(const std::string& machine, std::vector<std::string> more) const {
        std::error_code none;
        fs::remove(folder.path() / "asked", none);
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        std::vector<std::string> words{
            "/usr/bin/env",
            "-u",
            "CUDA_VISIBLE_DEVICES",
            "PATH=" + (folder.path() / machine).string() + ":" + path,
            "SIMENGINE_OPTIONS=--start-scale 1000 --time-scale 30 --devices " +
                (folder.path() / "gpus").string(),
            SERVETUNE_PROGRAM,
            more.front(),
            "study.yaml"};
        words.insert(words.end(), more.begin() + 1, more.end());
        return ran(words, folder.path());
    }
    [[nodiscard]] bool asked() const { return fs::exists(folder.path() / "asked"); }

    TemporaryFolder folder;
};

}  // namespace

TEST_CASE("machine: a study of two GPUs is read on a laptop, which starts no nvidia-smi") {
    const Machines machines;
    const Ran tuned = machines.on("two", {"run", "--quiet"});
    INFO(tuned.out << tuned.err);
    REQUIRE((tuned.code == 0 || tuned.code == 1));
    const auto trials = SqliteJournal::read(machines.folder.path() / "pair").trials();
    REQUIRE(trials.size() >= 2);
    REQUIRE(trials.front().environment != nullptr);
    CHECK(trials.front().environment->at("driver") == "550.54");

    const std::vector<std::vector<std::string>> reading{{"status"},
                                                        {"status", "--json"},
                                                        {"report"},
                                                        {"report", "--json"},
                                                        {"report", "--html"},
                                                        {"explain"},
                                                        {"explain", "--trial", "1"},
                                                        {"recommend"},
                                                        {"recommend", "--as", "systemd"},
                                                        {"export"},
                                                        {"export", "--format", "jsonl"}};
    for (const auto& words : reading) {
        const Ran here = machines.on("laptop", words);
        INFO(words.front() << " " << words.back() << "\n" << here.out << here.err);
        CHECK_FALSE(machines.asked());
        CHECK((here.code == 0 || here.code == 1));
        CHECK(here.err.empty());  // nothing differs from what the journal holds
        if (words.back() != "systemd")
            CHECK(here.out == machines.on("two", words).out);  // that names the program's place
        CHECK_FALSE(machines.asked());
    }
    // Commands that measure, or say what would be measured, ask.
    (void)machines.on("two", {"validate"});
    CHECK(machines.asked());
}

TEST_CASE("machine: a run on another machine says what differs, and changes nothing silently") {
    const Machines machines;
    REQUIRE(machines.on("two", {"run", "--quiet", "--trials", "1"}).code <= 1);
    const std::string was =
        "machine.found: was '2 x NVIDIA H100 80GB HBM3, 80 GiB each', is '2 x NVIDIA "
        "A100-SXM4-80GB, 80 GiB each'";
    const Ran other = machines.on("other", {"run", "--quiet"});
    INFO(other.out << other.err);
    CHECK(other.code == 2);
    CHECK(has(other.err, was));
    CHECK(has(other.err, "--accept-changes"));
    const Ran planned = machines.on("other", {"run", "--dry-run"});
    CHECK(has(planned.out, was));
    const Ran none = machines.on("laptop", {"run", "--quiet"});
    CHECK(none.code == 2);
    CHECK(SqliteJournal::read(machines.folder.path() / "pair").trials().size() == 1);

    // The same machine with another driver goes on, and the report names it.
    const Ran updated = machines.on("updated", {"run", "--quiet", "--trials", "2"});
    INFO(updated.out << updated.err);
    CHECK((updated.code == 0 || updated.code == 1));
    const Ran report = machines.on("laptop", {"report"});
    CHECK(has(report.out, "from trial 1 on driver: 550.54"));
    const auto json = nlohmann::json::parse(machines.on("laptop", {"report", "--json"}).out);
    REQUIRE(json["environment_changes"].size() == 1);
    CHECK(json["environment_changes"][0] == "from trial 1 on driver: 550.54 -> 560.35");
}
