// SPDX-License-Identifier: Apache-2.0
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include "base/variable_name.hpp"
#include "host/environment.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>

using namespace servetune;
using namespace servetune::test;

namespace {

void write_below(const TemporaryFolder& folder, const std::string& name,
                 const std::string& content) {
    fs::create_directories((folder.path() / name).parent_path());
    folder.write(name, content);
}

constexpr const char* small_study =
    "study: envs\nmodel: Qwen/Qwen3-14B\nengine: vllm\nspace: {max_num_seqs: {choice: [4, 8]}}\n"
    "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\nstrategy: "
    "exhaustive\n"
    "evaluator: {command: [./measure, \"{config}\"]}\n";

}  // namespace

TEST_CASE("environment: variables by rule, never secrets") {
    for (const char* name : {"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "NCCL_P2P_DISABLE",
                             "PYTORCH_CUDA_ALLOC_CONF", "TORCHINDUCTOR_MAX_AUTOTUNE", "LD_PRELOAD",
                             "TOKENIZERS_PARALLELISM", "HSA_OVERRIDE_GFX_VERSION"})
        CHECK(can_change_speed(name));
    for (const char* name :
         {"HOME", "PATH", "VLLM_USE_V1", "HF_TOKEN", "CUDA_API_KEY", "NCCL_SECRET", "PS1"})
        CHECK_FALSE(can_change_speed(name));
    CHECK(can_change_speed("VLLM_USE_V1", {"VLLM_"}));
    CHECK(can_change_speed("VLLM_MAX_TOKENS_PER_STEP", {"VLLM_"}));
    for (const char* name : {"VLLM_API_KEY", "VLLM_APIKEY", "vllm_api_key", "VLLM_AUTHTOKEN",
                             "VLLM_DB_PASSWORD", "VLLM_S3_CREDENTIALS"}) {
        CHECK(names_secret(name));
        CHECK_FALSE(can_change_speed(name, {"VLLM_", "vllm_"}));
    }
    // What ships as data covers each engine's own.
    for (const auto& [engine, name] : {std::pair("vllm", "VLLM_ATTENTION_BACKEND"),
                                       {"sglang", "SGLANG_ENABLE_JIT_DEEPGEMM"},
                                       {"tensorrt-llm", "TRTLLM_ENABLE_PDL"},
                                       {"llama.cpp", "GGML_CUDA_FORCE_MMQ"}})
        CHECK(can_change_speed(name, shipped_catalogue.engine(engine).environment_prefixes));
}

TEST_CASE("environment: driver, governor, boost and limits of control groups, in milliseconds") {
    const TemporaryFolder machine;
    write_below(machine, "sys/module/nvidia/version", "550.54.15\n");
    for (const int policy : {0, 1, 2, 3})
        write_below(
            machine,
            "sys/devices/system/cpu/cpufreq/policy" + std::to_string(policy) + "/scaling_governor",
            policy == 3 ? "powersave\n" : "performance\n");
    write_below(machine, "sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    write_below(machine, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    write_below(machine, "sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    write_below(machine, "sys/fs/cgroup/a/memory.max", "max\n");
    write_below(machine, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    write_below(machine, "sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    write_below(machine, "proc/self/cgroup", "0::/a/b\n");
    EnvironmentOptions options;
    options.root = machine.path();
    options.inherits = false;
    options.set = {{"OMP_NUM_THREADS", "8"}, {"HF_TOKEN", "hf_0123456789"}, {"OTHER", "x"}};
    const auto begin = std::chrono::steady_clock::now();
    Environment found;
    for (int i = 0; i < 20; ++i) found = environment_now(options);
    const double each =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 20;
    CHECK(found.at("driver") == "550.54.15");
    CHECK(found.at("cpu governor") == "performance, powersave");
    CHECK(found.at("cpu boost") == "off");
    CHECK(found.at("cpu limit") == "4 cores");
    CHECK(found.at("memory limit") == "1024 MiB");
    CHECK(found.at("OMP_NUM_THREADS") == "8");
    CHECK(found.contains("kernel"));
    CHECK_FALSE(found.contains("HF_TOKEN"));
    CHECK_FALSE(found.contains("OTHER"));
    CHECK(each < 0.05);         // 0.2 ms on an idle machine
    options.driver = "570.86";  // nvidia-smi's word counts
    CHECK(environment_now(options).at("driver") == "570.86");
    // A path of the host's that is not there.
    const TemporaryFolder container;
    write_below(container, "proc/self/cgroup", "0::/docker/x\n");
    write_below(container, "sys/fs/cgroup/cpu.max", "150000 100000\n");
    options.root = container.path();
    CHECK(environment_now(options).at("cpu limit") == "1.5 cores");
    CHECK_FALSE(environment_now(options).contains("memory limit"));
    CHECK(differences({{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"c", "3"}}) ==
          std::vector<std::string>{"b: 2 -> not set", "c: not set -> 3"});
}

TEST_CASE("environment: the journal keeps each once, and the report names what differs") {
    const TemporaryFolder folder;
    const StudySetup setup =
        set_up(load_study(folder.write("s.yaml", small_study), shipped_catalogue));
    const StudyIdentity identity{"envs", setup.definition(), "1"};
    std::map<std::string, std::string> now{{"driver", "550.54"}, {"OMP_NUM_THREADS", "4"}};
    const Configuration usual = setup.problem->space.default_configuration();
    const Configuration other = setup.problem->space.completed({{"max_num_seqs", std::int64_t{8}}});
    const auto measure = [&](SqliteJournal& journal, const Configuration& configuration,
                             const Outcome& outcome) {
        const std::uint64_t id = journal.trials().size();
        journal.asked({id, configuration, "", 1, "test"});
        journal.started(id, 1);
        journal.told(id, outcome, 2);
    };
    {
        SqliteJournal journal = SqliteJournal::open(folder.path() / "j", identity);
        journal.keep_environment([&] { return now; });
        measure(journal, usual, Measurement{{{"total_tokens_per_second", {100}}}});
        measure(journal, usual, Measurement{{{"total_tokens_per_second", {101}}}});
    }
    {
        now["driver"] = "560.35";  // resumed after an update
        SqliteJournal journal = SqliteJournal::open(folder.path() / "j", identity);
        journal.keep_environment([&] { return now; });
        measure(journal, other, Measurement{{{"total_tokens_per_second", {150}}}});
        measure(journal, other, Measurement{{{"total_tokens_per_second", {151}}}});
        measure(journal, setup.problem->space.completed({{"max_num_seqs", std::int64_t{4}}}),
                Failure{FailureKind::other, "no"});
    }
    const SqliteJournal journal = SqliteJournal::read(folder.path() / "j");
    const std::vector<Trial> trials = journal.trials();
    REQUIRE(trials.size() == 5);
    CHECK(trials[0].environment == trials[1].environment);  // one for both
    for (const Trial& trial : trials) REQUIRE(trial.environment != nullptr);
    CHECK(trials[0].environment->at("driver") == "550.54");
    CHECK(trials[4].environment->at("driver") == "560.35");
    CHECK(journal.definition() == identity.definition);
    const std::string report = markdown_report(setup, trials, "");
    INFO(report);
    CHECK(has(report, "different environments (driver: 550.54"));
    CHECK(has(report, "from trial 2 on driver: 550.54"));
    CHECK_FALSE(has(report, "OMP"));
    CHECK(has(headline_of(setup, trials).reason, "driver: 550.54 -> 560.35"));
    CHECK(has(json_report(setup, trials, ""), "from trial 2 on driver: 550.54 -> 560.35"));
    // Where nothing differs nothing is said.
    std::vector<Trial> alike = trials;
    for (Trial& trial : alike) trial.environment = trials.front().environment;
    const std::string quiet = markdown_report(setup, alike, "");
    CHECK_FALSE(has(quiet, "different environments"));
    CHECK_FALSE(has(quiet, "environment changed"));
    // A rescued journal is whole.
    const RescuedJournal rescued = SqliteJournal::rescue(folder.path() / "j");
    CHECK(rescued.left_out.empty());
    CHECK(SqliteJournal::read(rescued.file).trials().at(4).environment->at("driver") == "560.35");
}

TEST_CASE("environment: secrets of the study and of addresses are taken out") {
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_SECRET", "hidden-0123456789", 1);
    setenv("NCCL_NET", "http://user:passw0rd9@host/ hidden-0123456789", 1);
    const StudySetup setup =
        set_up(load_study(folder.write("s.yaml", std::string(small_study) +
                                                     "notes: [\"${SERVETUNE_TEST_SECRET}\"]\n"),
                          shipped_catalogue));
    const auto environment = setup.environment();
    unsetenv("SERVETUNE_TEST_SECRET");
    unsetenv("NCCL_NET");
    const std::string text = environment.at("NCCL_NET");
    INFO(text);
    CHECK_FALSE(has(text, "hidden"));
    CHECK_FALSE(has(text, "passw0rd9"));
}

TEST_CASE("environment: a machine in a journal is the same machine again") {
    FoundDevices machine;
    machine.all = {{0, "GPU-0a", "NVIDIA H100 80GB HBM3", 81559UL << 20U, "550.54"},
                   {1, "GPU-1a", "NVIDIA H100 80GB HBM3", 0, ""}};
    machine.visible = {machine.all[1]};
    const FoundDevices again = found_devices_from_json(json_of(machine));
    CHECK(json_of(again) == json_of(machine));
    CHECK(again.text() == machine.text());
    CHECK(again.all.front().driver == "550.54");
    // Earlier versions kept how the GPUs are joined too.
    CHECK(found_devices_from_json(R"({"all":[],"visible":[],"nvlinks":[[0,1,18]]})").all.empty());
    CHECK_THROWS_AS(found_devices_from_json("{}"), ParseError);
    CHECK_THROWS_AS(found_devices_from_json("nothing"), ParseError);
}
