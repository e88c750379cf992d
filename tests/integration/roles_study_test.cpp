// SPDX-License-Identifier: Apache-2.0
// Studies of prefill and decode apart, deployed: simengine in both roles behind the tests' router.
// No real engine ran so.
#include "handover/artefact.hpp"
#include "load/http.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"
#include "support/autotune.hpp"
#include "support/lines_in.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A machine with three devices, and engines that go wrong where a word of theirs says so.
class ThreeDevices {
public:
    ThreeDevices() {
        fs::create_directories(folder.path() / "bin");
        fs::create_directories(folder.path() / "gpus");
        std::string script = "#!/bin/sh\ncase \"$1\" in\n--query-gpu=index,uuid,name,*)\n";
        for (const char* i : {"0", "1", "2"})
            script +=
                std::string("echo '") + i + ", GPU-" + i + "a, NVIDIA H100 80GB HBM3, 81559'\n";
        script += ";;\n--query-gpu=index,uuid,memory.used,*)\n";
        for (const char* i : {"0", "1", "2"})
            script += std::string("echo '") + i + ", GPU-" + i +
                      "a, 500, 81559, 1755, 1980, 64, 300.00, 0x0000000000000000'\n";
        put("nvidia-smi", script + ";;\nesac\n");
        put("vllm-router", "#!/bin/sh\necho \"router $$ $*\" >> '" + record() +
                               "'\nexec python3 '" SERVETUNE_SOURCE
                               "/tests/support/router.py' \"$@\"\n");
        set_faults("", "");
    }
    ~ThreeDevices() { (void)end_leftovers(mark(), std::chrono::seconds(1)); }
    ThreeDevices(const ThreeDevices&) = delete;
    ThreeDevices& operator=(const ThreeDevices&) = delete;

    /// Engines whose words hold `word` do `fault` from now on.
    void set_faults(const std::string& word, const std::string& fault) const {
        put("vllm", "#!/bin/sh\necho \"engine $$ $*\" >> '" + record() + "'\n" +
                        (word.empty() ? ""
                                      : "case \"$*\" in *" + word +
                                            "*) SIMENGINE_OPTIONS=\"$SIMENGINE_OPTIONS --fault " +
                                            fault + "\"; export SIMENGINE_OPTIONS ;; esac\n") +
                        "exec '" SIMENGINE_PROGRAM "' vllm \"$@\"\n");
    }
    void study(const std::string& evaluator, const std::string& workload, const std::string& roles,
               const std::string& more = "") const {
        folder.write("study.yaml",
                     "study: apart\nmodel: Qwen/Qwen3-8B\nengine: vllm\nhardware: {device: "
                     "h100-sxm, count: 3}\nothers: default\n"
                     "strategy: exhaustive\ndecision: published\ndefault_again: 0\nmin_gain: "
                     "5%\nnoise_cv: 2%\naudit: report\n"
                     "workloads: [{workload: w, dataset: {kind: random, " +
                         workload +
                         ", ignore_eos: true}]\n"
                         "objective: {maximize: total_tokens_per_second}\nspace: {max_num_seqs: "
                         "8}\nstress: off\nroles: " +
                         roles + "\nevaluator: " + evaluator + "\n" + more);
    }
    [[nodiscard]] std::vector<std::string> words(const std::string& command,
                                                 const std::vector<std::string>& more = {}) const {
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        std::vector<std::string> result{
            "/usr/bin/env",
            "-u",
            "CUDA_VISIBLE_DEVICES",
            "PATH=" + (folder.path() / "bin").string() + ":" + path,
            "SIMENGINE_OPTIONS=--start-scale 1000 --time-scale 1 --devices " +
                (folder.path() / "gpus").string(),
            SERVETUNE_PROGRAM,
            command,
            "study.yaml"};
        result.insert(result.end(), more.begin(), more.end());
        return result;
    }
    [[nodiscard]] Ran run(const std::string& command = "run",
                          const std::vector<std::string>& more = {}) const {
        return ran(words(command, more), folder.path());
    }
    [[nodiscard]] fs::path directory() const { return folder.path() / "apart"; }
    [[nodiscard]] std::string mark() const { return directory().string(); }
    [[nodiscard]] std::vector<Trial> trials() const {
        return SqliteJournal::read(directory()).trials();
    }
    [[nodiscard]] std::vector<std::string> lines(const std::string& file) const {
        return lines_in(folder.path() / file);
    }
    /// Processes that were started and live; of the study by its mark or by their number.
    [[nodiscard]] std::string left() const {
        std::string result;
        for (const Leftover& one : leftovers(mark())) result += one.command + "\n";
        for (const std::string& line : lines("started.txt"))
            if (!living_in_group(std::atoi(line.c_str() + line.find(' '))).empty())
                result += line + "\n";
        return result;
    }

    TemporaryFolder folder;

private:
    void put(const std::string& name, const std::string& script) const {
        const fs::path file = folder.write("bin/" + name + ".new", script);
        fs::permissions(file, fs::perms::owner_all);
        fs::rename(file, folder.path() / "bin" / name);
    }
    [[nodiscard]] std::string record() const { return (folder.path() / "started.txt").string(); }
};

const std::string deployed =
    "{deploy: {watch: off, warm_up: 2, ready_within: 20s, stop_within: 2s, trial_within: 60s}}";

/// 1: prefill and decode together.
std::int64_t engines_of(const Trial& trial) {
    const Configuration& its = trial.configuration;
    return its.find("prefill.count") == nullptr
               ? 1
               : its.integer("prefill.count") + its.integer("decode.count");
}

/// The configuration with the best figure.
std::string best_of(const std::vector<Trial>& trials) {
    std::pair<double, std::string> best;
    for (const Trial& trial : trials)
        if (trial.measurement() != nullptr)
            best = std::max(best, {trial.measurement()->metrics.at("total_tokens_per_second").value,
                                   trial.configuration.text()});
    return best.second;
}

std::string text_of_trials(const std::vector<Trial>& trials) {
    std::string result;
    for (const Trial& trial : trials)
        result +=
            trial.configuration.text() + ": " +
            (trial.measurement() != nullptr
                 ? std::to_string(trial.measurement()->metrics.at("total_tokens_per_second").value)
             : trial.failure() != nullptr ? trial.failure()->message
                                          : "open") +
            "\n";
    return result;
}

}  // namespace

TEST_CASE("roles: a deployed study finds the ratio of prefill to decode that suits the load",
          "[busy]") {
    const std::string roles = "{prefill: {count: [1, 2]}, decode: {count: [1, 2]}}";
    // Long prompts and short answers want two that compute prompts, the other way round two that
    // answer.
    const std::map<std::string, std::string> cases{
        {"input_tokens: 3000, output_tokens: 4}, requests: 40, arrival: {rate: inf}",
         "prefill.count=2"},
        {"input_tokens: 32, output_tokens: 64}, requests: 96, arrival: {rate: inf}",
         "decode.count=2"}};
    for (const auto& [workload, wanted] : cases) {
        INFO(workload);
        const ThreeDevices machine;
        machine.study(deployed, workload, roles);
        const Ran tuned = machine.run();
        INFO(tuned.out << tuned.err);
        CHECK((tuned.code == 0 || tuned.code == 1));
        const std::vector<Trial> trials = machine.trials();
        INFO("deployed:\n" << text_of_trials(trials));
        CHECK(trials.size() == 4);  // together, 1:1, 2:1, 1:2
        // Of three engines each: whatever else the machine does, their order stays.
        std::vector<Trial> three;
        std::copy_if(trials.begin(), trials.end(), std::back_inserter(three),
                     [](const Trial& trial) { return engines_of(trial) == 3; });
        const std::string best = best_of(three);
        CHECK(has(best, wanted));
        CHECK(machine.left() == "");

        for (const Trial& trial : trials) {
            if (engines_of(trial) == 1) continue;
            REQUIRE(trial.measurement() != nullptr);
            const Metrics& metrics = trial.measurement()->metrics;
            CHECK(metrics.at("total_tokens_per_second_per_gpu").value ==
                  Approx(metrics.at("total_tokens_per_second").value / double(engines_of(trial))));
            const auto* counted =
                entry_in(metrics, "server_output_tokens");  // of the decode engines
            if (counted != nullptr) CHECK(counted->value == metrics.at("output_tokens").value);
            else CHECK(trial.configuration.text() != best);  // its load test was ended early
            const fs::path below = machine.directory() / "trials" / std::to_string(trial.id);
            for (const char* part : {"prefill-0", "decode-0", "router"})
                CHECK(fs::exists(below / part / "engine.log"));
            CHECK(fs::exists(below / "prefill-1") ==
                  (trial.configuration.integer("prefill.count") == 2));
        }
        const std::vector<std::string> claims = machine.lines("gpus/claims");
        for (const char* claim : {"1 of 1: 0", "1 of 1: 1", "1 of 1: 2"})
            CHECK(std::count(claims.begin(), claims.end(), claim) >= 2);
        const std::vector<std::string> started = machine.lines("started.txt");
        CHECK(count_if(started,
                       [](const std::string& line) { return line.starts_with("router "); }) == 3);
    }
}

TEST_CASE(
    "roles: a prefill engine that breaks is the trial's failure, by name, and the study goes on") {
    const std::string workload =
        "input_tokens: 64, output_tokens: 8}, requests: 24, arrival: {concurrency: 4}";
    const std::string roles = "{prefill: {count: [1, 2]}, decode: {count: 1}}";
    const ThreeDevices machine;
    machine.study(deployed, workload, roles);
    machine.set_faults("kv_producer", "die_at_requests=9");
    const Ran tuned = machine.run();
    INFO(tuned.out << tuned.err << text_of_trials(machine.trials()));
    CHECK((tuned.code == 0 || tuned.code == 1));
    std::size_t failed = 0;
    for (const Trial& trial : machine.trials()) {
        if (trial.configuration.find("prefill.count") == nullptr)
            CHECK(trial.measurement() != nullptr);
        else {
            REQUIRE(trial.failure() != nullptr);
            CHECK(trial.failure()->kind == FailureKind::crashed_under_load);
            CHECK(trial.failure()->message.starts_with("prefill-"));
            CHECK(has(trial.failure()->log_path, "/prefill-"));
            ++failed;
        }
    }
    CHECK(failed == 2);
    CHECK(machine.left() == "");

    // At its start: with its role too, and the engine that was fine is ended.
    fs::remove_all(machine.directory());
    machine.set_faults("kv_consumer", "exit_at_load=3");
    const Ran again = machine.run();
    INFO(again.out << again.err << text_of_trials(machine.trials()));
    for (const Trial& trial : machine.trials())
        if (trial.configuration.find("prefill.count") != nullptr) {
            REQUIRE(trial.failure() != nullptr);
            CHECK(trial.failure()->message.starts_with("decode-0: vllm ended with exit code 3"));
        }
    CHECK(machine.left() == "");
}

TEST_CASE("roles: the winner's commands are printed, and no file is written of one of them") {
    const ThreeDevices machine;
    machine.study(deployed,
                  "input_tokens: 64, output_tokens: 16}, requests: 8, arrival: {rate: inf}",
                  "{prefill: {count: [1, 2]}, decode: {count: [1, 2]}}");
    const StudySetup setup = set_up(load_study(machine.folder.path() / "study.yaml",
                                               Catalogue(SERVETUNE_SOURCE "/search_spaces")));
    const SearchSpace& space = setup.problem->space;
    const Configuration apart =
        space.changed(space.default_configuration(), {{"roles", Value(std::string("apart"))},
                                                      {"prefill.count", Value(std::int64_t{1})},
                                                      {"decode.count", Value(std::int64_t{2})}});
    const std::string shown = setup.command_text(apart);
    CHECK(shown.find("# devices of prefill : decode = 1 : 2; each server needs its own\n# "
                     "prefill-1: 1 device\n") == 0);
    CHECK(has(shown, "--host 127.0.0.1 --port 8003"));
    CHECK(has(shown, "\n# router\nvllm-router "));
    for (const std::string& kind : artefact_kinds())
        CHECK_THROWS_AS(artefact_of(kind, setup, apart, {.image = "engine:1"}), UsageError);
}

TEST_CASE("roles: kill -9 leaves no engine and no router, and the study goes on where it was") {
    const ThreeDevices machine;
    machine.study(deployed,
                  "input_tokens: 64, output_tokens: 100}, requests: 40, arrival: {concurrency: 4}",
                  "{prefill: {count: 1}, decode: {count: [1, 2]}}");
    {
        ChildProcess tuner(machine.words("run"), machine.folder.path());
        const auto routers = [&] {
            const auto started = machine.lines("started.txt");
            return count_if(started,
                            [](const std::string& line) { return line.starts_with("router "); });
        };
        REQUIRE(comes_true([&] { return routers() >= 1; }));
        tuner.signal(SIGKILL);
        (void)tuner.wait_at_most(std::chrono::seconds(10));
    }
    CHECK(comes_true([&] { return machine.left().empty(); }));
    CHECK(machine.left() == "");
    const Ran resumed = machine.run();
    INFO(resumed.out << resumed.err << text_of_trials(machine.trials()));
    CHECK((resumed.code == 0 || resumed.code == 1));
    const auto trials = machine.trials();
    CHECK(count_if(trials, [](const Trial& trial) { return trial.measurement() != nullptr; }) == 3);
    CHECK(machine.left() == "");
}

TEST_CASE("roles: copies that fill the machine are refused beside them, before the first trial") {
    const ThreeDevices machine;
    machine.study("{deploy: {watch: off, replicas: fill}}",
                  "input_tokens: 64, output_tokens: 8}, requests: 4, arrival: {rate: inf}",
                  "{prefill: {count: 1}, decode: {count: 1}}");
    const Ran refused = machine.run();
    INFO(refused.out << refused.err);
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "without `replicas: fill`"));
    CHECK(machine.lines("started.txt").empty());
}
