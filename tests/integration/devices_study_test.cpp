// SPDX-License-Identifier: Apache-2.0
// Studies on a machine with several devices. There is none here: a script stands in for nvidia-smi,
// and simengine takes devices in a folder (`--devices`).
#include "base/files.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

struct GpuMachine {
    explicit GpuMachine(int count, const std::string& watts = "300.00") {
        fs::create_directories(folder.path() / "bin");
        fs::create_directories(folder.path() / "gpus");
        fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / "bin/vllm");
        std::string script = "#!/bin/sh\ncase \"$1\" in\n--query-gpu=index,uuid,name,*)\n";
        for (int i = 0; i < count; ++i)
            script += "echo '" + std::to_string(i) + ", GPU-" + std::to_string(i) +
                      "a, NVIDIA H100 80GB HBM3, 81559'\n";
        script += ";;\n--query-gpu=index,uuid,memory.used,*)\n";
        for (int i = 0; i < count; ++i)
            script += "echo '" + std::to_string(i) + ", GPU-" + std::to_string(i) +
                      "a, 500, 81559, 1755, 1980, 64, " + watts + ", 0x0000000000000000'\n";
        script += ";;\nesac\n";
        folder.write("bin/nvidia-smi", script);
        fs::permissions(folder.path() / "bin/nvidia-smi", fs::perms::owner_all);
    }
    [[nodiscard]] Ran run(const std::string& command, const std::string& study,
                          const std::vector<std::string>& more = {}) const {
        folder.write("study.yaml", study);
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        std::vector<std::string> words{
            "/usr/bin/env",
            "-u",
            "CUDA_VISIBLE_DEVICES",
            "PATH=" + (folder.path() / "bin").string() + ":" + path,
            "SIMENGINE_OPTIONS=--start-scale 1000 --time-scale 30 --devices " +
                (folder.path() / "gpus").string(),
            SERVETUNE_PROGRAM,
            command,
            "study.yaml"};
        words.insert(words.end(), more.begin(), more.end());
        return ran(words, folder.path());
    }
    [[nodiscard]] std::vector<std::string> claims() const {
        std::ifstream stream(folder.path() / "gpus/claims");
        std::vector<std::string> lines;
        for (std::string line; std::getline(stream, line);) lines.push_back(line);
        return lines;
    }

    TemporaryFolder folder;
};

std::string moe_study(const std::string& machine, const std::string& evaluator,
                      const std::string& goal, const std::string& more) {
    return "study: layouts\nmodel: Qwen/Qwen3-30B-A3B\nengine: vllm\n" + machine +
           "workloads: [{workload: w, dataset: {kind: random, input_tokens: 64, output_tokens: "
           "16}, requests: 24, ignore_eos: true, "
           "arrival: {concurrency: 8}}]\nobjective: {maximize: " +
           goal + "}\nevaluator: " + evaluator + "\naudit: report\n" +
           more;  // it runs faster than any H100
}

/// The product of the layout flags of a recommended command.
std::int64_t devices_in(const std::string& command) {
    std::int64_t devices = 1;
    for (const std::string& word : shell_words(command))
        for (const char* flag :
             {"--tensor-parallel-size=", "--pipeline-parallel-size=", "--data-parallel-size="})
            if (word.starts_with(flag))
                devices *= std::stoll(word.substr(std::string(flag).size()));
    return devices;
}

}  // namespace

TEST_CASE(
    "devices: the moe preset recommends in the simulator what fits one GPU or eight, by what a GPU "
    "does") {
    for (const int count : {1, 8}) {
        const GpuMachine none(0);
        const std::string machine = "hardware: {device: h100-sxm, count: " + std::to_string(count) +
                                    ", price_per_hour: 20}\n";
        for (const char* goal : {"total_tokens_per_second", "total_tokens_per_second_per_gpu"}) {
            INFO(count << " " << goal);
            fs::remove_all(none.folder.path() / "layouts");
            const Ran ran = none.run("run", moe_study(machine, "{simulate: {}}", goal,
                                                      "preset: moe\nbudget: {trials: 25}\n"));
            INFO(ran.out << ran.err);
            REQUIRE(ran.code == 0);
            const std::string script =
                none.run("recommend", read_file(none.folder.path() / "study.yaml")).out;
            REQUIRE(script.find("\nexec vllm serve ") != std::string::npos);
            const std::string command = script.substr(script.find("\nexec "));
            INFO(command);
            CHECK(devices_in(command) <= count);
            const bool warned =
                (ran.out + ran.err).find("layouts of different numbers of devices compete") !=
                std::string::npos;
            CHECK(warned == (count == 8 && std::string(goal) == "total_tokens_per_second"));
        }
    }
}

TEST_CASE(
    "devices: those that nvidia-smi finds bound the layouts, and each engine gets those of its "
    "layout") {
    const GpuMachine four(4);
    const std::string study = moe_study(
        "", "{deploy: {watch: off, warm_up: 1}}", "total_tokens_per_second_per_gpu",
        "space: {tensor_parallel_size: {choice: [1, 2, 4, 8], ordered: true}, data_parallel_size: "
        "{choice: [1, 2]}}\nothers: default\nstrategy: exhaustive\nbudget: {trials: 5}\n"
        "default_again: 0\n");
    const Ran validated = four.run("validate", study);
    INFO(validated.out << validated.err);
    REQUIRE(validated.code == 0);
    CHECK(validated.out.find("hardware: a trial may take 4 devices; nvidia-smi finds 4 x NVIDIA "
                             "H100 80GB HBM3, 80 GiB each, taken for "
                             "h100-sxm\n") != std::string::npos);
    CHECK(validated.out.find("5 feasible configurations") !=
          std::string::npos);  // 1, 2, 4, 1x2, 2x2
    const auto object = nlohmann::json::parse(four.run("validate", study, {"--json"}).out);
    CHECK(object["machine"]["count"] == 4);
    CHECK(object["machine"]["found"] == "4 x NVIDIA H100 80GB HBM3, 80 GiB each");

    const Ran tuned = four.run("run", study);
    INFO(tuned.out << tuned.err);
    CHECK((tuned.code == 0 || tuned.code == 1));
    const std::vector<std::string> claims = four.claims();
    CHECK(std::count(claims.begin(), claims.end(), "1 of 1: 0") >= 1);
    CHECK(std::count(claims.begin(), claims.end(), "2 of 2: 0,1") >= 2);
    CHECK(std::count(claims.begin(), claims.end(), "4 of 4: 0,1,2,3") >= 2);
    for (const std::string& line : claims)
        CHECK(line.substr(0, line.find(' ')) ==
              line.substr(line.find("of ") + 3, line.find(':') - line.find("of ") - 3));
}

TEST_CASE(
    "devices: replicas fill the machine, are measured as one server, and the recommendation starts "
    "them all") {
    const GpuMachine four(4);
    const std::string study = moe_study(
        "", "{deploy: {watch: off, warm_up: 1, replicas: fill}}", "total_tokens_per_second",
        "space: {tensor_parallel_size: {choice: [1, 2, 4], ordered: true}}\nothers: default\n"
        "strategy: exhaustive\nbudget: {trials: 3}\ndefault_again: 0\n");
    const Ran tuned = four.run("run", study);
    INFO(tuned.out << tuned.err);
    CHECK((tuned.code == 0 || tuned.code == 1));
    CHECK(tuned.err.find("compete") == std::string::npos);  // all use the same machine
    const std::string report = read_file(four.folder.path() / "layouts/report.md");
    CHECK(report.find("As many copies of the engine ran at once as the devices allow") !=
          std::string::npos);
    CHECK(report.find("\\`") == std::string::npos);  // words of ours need no escape
    const std::vector<std::string> claims = four.claims();
    for (const char* claim : {"1 of 1: 0", "1 of 1: 1", "1 of 1: 2", "1 of 1: 3", "2 of 2: 0,1",
                              "2 of 2: 2,3", "4 of 4: 0,1,2,3"})
        CHECK(std::count(claims.begin(), claims.end(), claim) == 1);
    const std::map<std::int64_t, double> wanted{{1, 4}, {2, 2}, {4, 1}};
    const auto trials = SqliteJournal::read(four.folder.path() / "layouts").trials();
    REQUIRE(trials.size() == 3);
    for (const Trial& trial : trials) {
        INFO(trial.configuration.text());
        REQUIRE(trial.measurement() != nullptr);
        const Metrics& metrics = trial.measurement()->metrics;
        const Value* layout = trial.configuration.find("tensor_parallel_size");
        CHECK(metrics.at("replicas").value ==
              wanted.at(layout == nullptr ? 1 : std::get<std::int64_t>(*layout)));
        CHECK(metrics.at("total_tokens_per_second_per_gpu").value ==
              Approx(metrics.at("total_tokens_per_second").value / 4));
        CHECK(metrics.at("server_output_tokens").value ==
              metrics.at("output_tokens").value);  // the sum over all
    }
    CHECK(leftovers((four.folder.path() / "layouts").string()).empty());

    const auto as = [&](const char* kind) {
        const Ran ran =
            four.run("recommend", study, {"--as", kind, "--image", "vllm/vllm-openai:v0.28.0"});
        INFO(ran.err);
        CHECK(ran.code == 0);
        return ran.out;
    };
    const std::string script = as("shell");
    INFO(script);
    const bool single = script.find("--tensor-parallel-size") == std::string::npos;
    const bool pairs = script.find("--tensor-parallel-size=2") != std::string::npos;
    if (single) {
        CHECK(script.find("# 4 replicas, ports 8000 to 8003: ") != std::string::npos);
        CHECK(script.find("\nCUDA_VISIBLE_DEVICES=3 vllm serve ") != std::string::npos);
        CHECK(tuned.out.find("measured as 4 copies") != std::string::npos);
        CHECK(as("kubernetes").find("\n  replicas: 4\n") != std::string::npos);
        CHECK(as("compose").find("\"8003:8000\"") != std::string::npos);
        CHECK(as("slurm").find("#SBATCH --gres=gpu:4\n") != std::string::npos);
    } else if (pairs)
        CHECK(script.find("\nCUDA_VISIBLE_DEVICES=2,3 vllm serve ") != std::string::npos);
    else CHECK(script.find("\nexec vllm serve ") != std::string::npos);
}

TEST_CASE(
    "devices: replicas take no more devices than the study says, and none where nobody knows "
    "them") {
    const std::string rest =
        "space: {tensor_parallel_size: 1}\nothers: default\nstrategy: exhaustive\nbudget: {trials: "
        "1}\n";
    const std::string fill = "{deploy: {watch: off, warm_up: 1, replicas: fill}}";
    const GpuMachine four(4);
    const Ran half =
        four.run("run", moe_study("hardware: {count: 2}\n", fill, "total_tokens_per_second", rest));
    INFO(half.out << half.err);
    const auto trials = SqliteJournal::read(four.folder.path() / "layouts").trials();
    REQUIRE(!trials.empty());
    REQUIRE(trials.front().measurement() != nullptr);
    CHECK(trials.front().measurement()->metrics.at("replicas").value == 2);
    std::vector<std::string> claims = four.claims();  // in the order in which they came
    std::sort(claims.begin(), claims.end());
    CHECK(claims == std::vector<std::string>{"1 of 1: 0", "1 of 1: 1"});
    const GpuMachine none(0);
    const Ran blind =
        none.run("run", moe_study("hardware: {count: 2}\n", fill, "total_tokens_per_second", rest));
    CHECK(blind.code == 3);
    CHECK((blind.out + blind.err)
              .find("`replicas: fill` needs to know the devices of this machine") !=
          std::string::npos);
}

TEST_CASE("devices: an engine's power is measured, per token too, and both are goals and limits") {
    const GpuMachine four(4);
    const auto study = [](const std::string& requests, const std::string& arrival,
                          const std::string& objective, const std::string& deploy = "warm_up: 1") {
        return "study: power\nmodel: Qwen/Qwen3-8B\nengine: vllm\nworkloads: [{workload: w, "
               "dataset: {kind: random, input_tokens: 64, "
               "output_tokens: 16}, requests: " +
               requests + ", ignore_eos: true, arrival: {" + arrival + "}}]\nobjective: {" +
               objective + "}\nevaluator: {deploy: {" + deploy +
               "}}\nspace: {tensor_parallel_size: 2}\nothers: default\nstrategy: "
               "exhaustive\nbudget: {trials: 1}\ndefault_again: 0\n";
    };
    const std::string goal =
        "minimize: joules_per_output_token, limits: [\"power_mean_watts <= 700\"]";
    const Ran tuned = four.run("run", study("48", "rate: 4", goal));  // twelve seconds
    INFO(tuned.out << tuned.err);
    const auto trials = SqliteJournal::read(four.folder.path() / "power").trials();
    REQUIRE(!trials.empty());
    REQUIRE(trials.front().measurement() != nullptr);
    const Metrics& metrics = trials.front().measurement()->metrics;
    REQUIRE(metrics.contains("power_mean_watts"));
    CHECK(metrics.at("power_mean_watts").value == Approx(600));  // of the two that the layout takes
    CHECK(metrics.at("power_peak_watts").value == Approx(600));
    CHECK(metrics.at("joules_per_output_token").value ==
          Approx(600 / metrics.at("output_tokens_per_second").value));
    CHECK(metrics.at("joules_per_total_token").value ==
          Approx(600 / metrics.at("total_tokens_per_second").value));
    CHECK(read_file(four.folder.path() / "power/report.md").find("joules_per_output_token") !=
          std::string::npos);

    // A load test that is over at once has no figure, and says why.
    fs::remove_all(four.folder.path() / "power");
    const Ran brief =
        four.run("run", study("8", "concurrency: 8", "maximize: output_tokens_per_second"));
    INFO(brief.out << brief.err);
    CHECK(brief.err.find("w: power and energy are not known: ") != std::string::npos);
    const auto brief_trials = SqliteJournal::read(four.folder.path() / "power").trials();
    REQUIRE(brief_trials.front().measurement() != nullptr);
    CHECK_FALSE(brief_trials.front().measurement()->metrics.contains("power_mean_watts"));

    const GpuMachine blind(2, "[N/A]");
    for (const char* command : {"validate", "run"}) {
        const Ran refused = blind.run(command, study("48", "rate: 4", goal));
        INFO(refused.out << refused.err);
        CHECK(refused.code != 0);
        CHECK(refused.err.find("study.yaml: the objective names power_mean_watts, and nothing here "
                               "measures power: nvidia-smi tells the "
                               "power of no GPU that this study may use ([N/A])") !=
              std::string::npos);
    }
    CHECK(four.run("validate", study("48", "rate: 4", goal)).code == 0);
}

TEST_CASE("devices: engines and workers get neighbours in the list of devices") {
    const GpuMachine four(4);
    const std::string pairs =
        "space: {tensor_parallel_size: 2}\nothers: default\nstrategy: exhaustive\nbudget: {trials: "
        "1}\ndefault_again: 0\n";
    const std::string filled = moe_study("", "{deploy: {watch: off, warm_up: 1, replicas: fill}}",
                                         "total_tokens_per_second", pairs);
    const Ran tuned = four.run("run", filled);
    INFO(tuned.out << tuned.err);
    std::vector<std::string> claims = four.claims();
    std::sort(claims.begin(), claims.end());
    CHECK(claims == std::vector<std::string>{"2 of 2: 0,1", "2 of 2: 2,3"});
    const std::string script = four.run("recommend", filled, {"--as", "shell"}).out;
    INFO(script);
    CHECK(script.find("\nCUDA_VISIBLE_DEVICES=0,1 vllm serve ") != std::string::npos);
    CHECK(script.find("\nCUDA_VISIBLE_DEVICES=2,3 vllm serve ") != std::string::npos);

    fs::remove(four.folder.path() / "gpus/claims");
    fs::remove_all(four.folder.path() / "layouts");
    const Ran workers = four.run(
        "run",
        moe_study(
            "", "{deploy: {watch: off, warm_up: 1, gpus: \"0,1,2,3\", workers: 2}}",
            "total_tokens_per_second",
            "space: {tensor_parallel_size: 2, max_num_seqs: {choice: [8, 16, 32, 64]}}\nothers: "
            "default\nstrategy: exhaustive\nbudget: {trials: 4}\ndefault_again: 0\n"));
    INFO(workers.out << workers.err);
    claims = four.claims();
    CHECK(claims.size() >= 4);
    for (const std::string& claim : claims)
        CHECK((claim == "2 of 2: 0,1" || claim == "2 of 2: 2,3"));
    CHECK(std::count(claims.begin(), claims.end(), "2 of 2: 2,3") >= 1);
}

TEST_CASE(
    "devices: where one replica cannot start, all end, and the trial fails with that one's words") {
    const GpuMachine two(2);
    const std::string study = moe_study("", "{deploy: {watch: off, warm_up: 1, replicas: fill}}",
                                        "total_tokens_per_second",
                                        "space: {tensor_parallel_size: 1}\nothers: "
                                        "default\nstrategy: exhaustive\nbudget: {trials: 1}\n");
    const TemporaryFolder beside;
    ChildProcess other({"/usr/bin/env", "CUDA_VISIBLE_DEVICES=1", SIMENGINE_PROGRAM,
                        "--start-scale", "1000", "--devices", (two.folder.path() / "gpus").string(),
                        "vllm", "serve", "Qwen/Qwen3-8B", "--port", "0"},
                       beside.path());
    REQUIRE(comes_true([&] { return other.out().find("listening on") != std::string::npos; }));
    const Ran tuned = two.run("run", study);
    INFO(tuned.out << tuned.err);
    const auto trials = SqliteJournal::read(two.folder.path() / "layouts").trials();
    REQUIRE(!trials.empty());
    REQUIRE(trials.front().failure() != nullptr);
    CHECK(trials.front().failure()->message.find("GPU 1 is another engine's") != std::string::npos);
    CHECK(trials.front().failure()->log_path.find("replica-1") != std::string::npos);
    CHECK(leftovers((two.folder.path() / "layouts").string()).empty());
}

TEST_CASE("devices: an answer that four devices give sooner than one could is possible") {
    const GpuMachine four(4);
    const std::string study =
        "study: layouts\nmodel: Qwen/Qwen3-32B\nhardware: h100-sxm\nengine: vllm\n"
        "workloads: [{workload: w, dataset: {kind: random, input_tokens: 64, output_tokens: 24}, "
        "requests: 4, ignore_eos: true, "
        "arrival: {concurrency: 1}}]\nobjective: {minimize: mean_tpot_seconds}\n"
        "evaluator: {deploy: {watch: off, warm_up: 1, environment: {SIMENGINE_OPTIONS: "
        "\"--start-scale 1000 --hardware h100-sxm\"}}}\n"
        "space: {tensor_parallel_size: 4}\nothers: default\nstrategy: exhaustive\nbudget: {trials: "
        "1}\n";
    const Ran tuned = four.run("run", study);
    INFO(tuned.out << tuned.err);
    const auto trials = SqliteJournal::read(four.folder.path() / "layouts").trials();
    REQUIRE(!trials.empty());
    REQUIRE(trials.front().measurement() != nullptr);
    CHECK(trials.front().measurement()->metrics.at("time_per_output_token_mean_seconds").value <
          0.0195);  // 65.5e9 bytes at 3.35e12 bytes/s
    for (const Finding& finding : trials.front().measurement()->validity.findings)
        CHECK(finding.id != "physics");
}

TEST_CASE(
    "devices: a study that says more devices than there are is told, and a trial that takes them "
    "ends the run") {
    const GpuMachine one(1);
    const std::string study =
        moe_study("hardware: {count: 4}\n", "{deploy: {watch: off, warm_up: 1}}",
                  "total_tokens_per_second_per_gpu",
                  "space: {tensor_parallel_size: 4}\nothers: default\nstrategy: "
                  "exhaustive\nbudget: {trials: 2}\n");
    const Ran validated = one.run("validate", study);
    CHECK(validated.out.find("the study says that there are 4 devices, and nvidia-smi finds 1") !=
          std::string::npos);
    const Ran tuned = one.run("run", study);
    INFO(tuned.out << tuned.err);
    CHECK(tuned.code == 3);
    CHECK((tuned.out + tuned.err).find("the configuration takes 4 devices, and there are 1") !=
          std::string::npos);
    CHECK(one.claims().empty());
}

TEST_CASE(
    "devices: lists of devices that are none, and devices and cores that are not here, are refused "
    "before anything starts") {
    const GpuMachine two(2);
    const auto validated = [&](const std::string& deploy, const std::string& command = "validate") {
        return two.run(
            command,
            moe_study(
                "", "{deploy: {" + deploy + "}}", "total_tokens_per_second",
                "space: {tensor_parallel_size: [1, 2]}\nothers: default\nbudget: {trials: 2}\n"));
    };
    using Rows = std::vector<std::pair<std::string, std::string>>;
    for (const auto& [deploy, why] :
         Rows{{"gpus: \"0,0\"", "the GPU 0 is listed twice in '0,0'"},
              {"gpus: \"0, 00\"", "the GPU 00 is listed twice in '0, 00'"},
              {"gpus: \"0,x\"", "wanted, got 'x' in '0,x'"},
              {"gpus: \"0,\"", "wanted, got '' in '0,'"},
              {"gpus: \"-1\"", "wanted, got '-1'"},
              {"gpus: \"0;1\"", "wanted, got '0;1'"},
              {"environment: {CUDA_VISIBLE_DEVICES: \"1,1\"}",
               "the GPU 1 is listed twice in '1,1'"}}) {
        const Ran refused = validated(deploy);
        INFO(deploy << '\n' << refused.err);
        CHECK(refused.code == 1);
        CHECK(refused.err.find("study.yaml:6:") != std::string::npos);
        CHECK(refused.err.find(why) != std::string::npos);
    }
    for (const auto& [deploy, what] :
         Rows{{"gpus: \"1,5\"",
               "`gpus` of `deploy` lists 5, and nvidia-smi finds only 0 (GPU-0a), 1 (GPU-1a)"},
              {"gpus: GPU-7", "`gpus` of `deploy` lists GPU-7"},
              {"cores: [1023]", "`cores` of `deploy` lists 1023"}})
        for (const char* command : {"validate", "run"}) {
            const Ran refused = validated(deploy, command);
            INFO(deploy << '\n' << refused.err);
            CHECK(refused.code == (command == std::string("run") ? 2 : 1));
            CHECK(refused.err.find(what) != std::string::npos);
        }
    CHECK(two.claims().empty());
    for (const char* deploy : {"gpus: \"1,0\"", "gpus: \"0, GPU-1a\"", "gpus: MIG-0", "gpus: \"\"",
                               "environment: {CUDA_VISIBLE_DEVICES: \"-1\"}"})
        CHECK(validated(deploy).code == 0);
}

TEST_CASE(
    "devices: a simulated engine refuses a layout that the model's shape does not allow, and takes "
    "its devices alone") {
    const GpuMachine machine(2);
    const auto engine = [&](const std::vector<std::string>& flags, const std::string& visible) {
        std::vector<std::string> words{"/usr/bin/env",
                                       "CUDA_VISIBLE_DEVICES=" + visible,
                                       SIMENGINE_PROGRAM,
                                       "--start-scale",
                                       "1000",
                                       "--devices",
                                       (machine.folder.path() / "gpus").string(),
                                       "vllm",
                                       "serve",
                                       "Qwen/Qwen3-8B",
                                       "--port",
                                       "0"};
        words.insert(words.end(), flags.begin(), flags.end());
        return words;
    };
    const Ran three = ran(engine({"--tensor-parallel-size=3"}, "0,1,2"), machine.folder.path());
    CHECK(three.code != 0);
    INFO(three.out << three.err);
    CHECK((three.out + three.err).find("32 % tensor_parallel_size") != std::string::npos);
    const Ran few = ran(engine({"--tensor-parallel-size=2"}, "0"), machine.folder.path());
    CHECK(few.code == 1);
    CHECK((few.out + few.err)
              .find("World size (2) is larger than the number of available GPUs (1)") !=
          std::string::npos);
    const TemporaryFolder beside;
    ChildProcess first(engine({"--tensor-parallel-size=2"}, "0,1"), beside.path());
    REQUIRE(comes_true([&] { return first.out().find("listening on") != std::string::npos; }));
    const Ran second = ran(engine({}, "1"), machine.folder.path());
    CHECK(second.code == 1);
    CHECK((second.out + second.err).find("GPU 1 is another engine's") != std::string::npos);
}
