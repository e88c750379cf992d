// SPDX-License-Identifier: Apache-2.0
// Engines on other machines: by ssh in another network namespace, as jobs of a real Slurm of
// several nodes.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "support/deployed_study.hpp"
#include "support/remote_engine.hpp"
#include "support/slurm_world.hpp"
#include "support/ssh_world.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;
using WordList = std::vector<std::string>;

SlurmOptions in_jobs() {
    SlurmOptions options;
    options.listen = "127.0.0.1";
    return options;
}

const SshWorld& ssh_world() {
    static const SshWorld world;
    return world;
}

}  // namespace

TEST_CASE("remote: what ssh and srun are asked for") {
    LaunchRequest request;
    request.command.argv = {"vllm", "serve", "/models/m", "--json={\"a\":\n 1}", "$(id)"};
    request.command.files = {{"deep/options.yaml", "a: 1\n  b: \\2"}};
    request.environment = {{"HF_TOKEN", "hf_123456"}, {"CUDA_VISIBLE_DEVICES", "7"}};
    request.mark = "/studies/s";
    request.gpus = "2,5";
    request.devices = 2;
    request.cores = {0, 1};
    request.port = 8125;

    SshOptions options;
    options.host = "user@node";
    const Launch by_ssh = ssh_launcher(options)->launch(request);
    const WordList& words = by_ssh.argv;
    CHECK(words.front() == "ssh");
    CHECK(std::find(words.begin(), words.end(), "BatchMode=yes") != words.end());
    CHECK(std::find(words.begin(), words.end(), "127.0.0.1:8125:127.0.0.1:8125") != words.end());
    CHECK(words[words.size() - 2] == "user@node");
    CHECK(words[words.size() - 3] == "--");
    CHECK(words.back().starts_with("exec sh -c '"));
    CHECK(words.back().find('\\') == std::string::npos);
    CHECK(std::count(words.back().begin(), words.back().end(), '\'') == 2);
    CHECK(by_ssh.environment.empty());
    CHECK(by_ssh.beats.count() > 0);
    CHECK(has(by_ssh.told, "\nu30\np20\n"));
    CHECK(
        has(by_ssh.told,
            "eCUDA_DEVICE_ORDER=PCI_BUS_ID\neCUDA_VISIBLE_DEVICES=2,5\neHF_TOKEN=hf_123456\nfdeep/"
            "options.yaml\nla: 1\n"
            "l  b: \\2\nwtaskset\nw--cpu-list\nw0,1\nwvllm\nwserve\nw/models/m\nw--json={\"a\":\nc "
            "1}\nw$(id)\n\n"));
    for (const std::string& word : words) CHECK_FALSE(has(word, "hf_123456"));
    options.address = "10.0.0.5";
    CHECK_FALSE(has(
        [&] {
            std::string all;
            for (const std::string& word : ssh_launcher(options)->launch(request).argv)
                all += word + "\n";
            return all;
        }(),
        "8125"));
    CHECK(ssh_launcher(options)->listen_address() == "10.0.0.5");

    if (program_in_path("srun").empty()) {
        CHECK_THROWS_AS(slurm_launcher(in_jobs())->launch(request), IoError);
        return;
    }
    SlurmOptions job = in_jobs();
    job.options = {"--partition=gpu"};
    job.gres = "gpu:h100";
    setenv("SLURM_JOB_ID", "17", 1);
    const Launch by_srun = slurm_launcher(job)->launch(request);
    unsetenv("SLURM_JOB_ID");
    WordList expected{"--partition=gpu", "--job-name=" + by_srun.name, "--nodes=1", "--ntasks=1",
                      "--input=none",    "--gres=gpu:h100:2"};
    expected.insert(expected.end(), request.command.argv.begin(), request.command.argv.end());
    const auto srun = std::find_if(by_srun.argv.begin(), by_srun.argv.end(),
                                   [](const std::string& word) { return word.ends_with("/srun"); });
    REQUIRE(srun != by_srun.argv.end());
    CHECK(by_srun.argv.front().ends_with("/env"));
    CHECK(std::find(by_srun.argv.begin(), srun, "--unset=SLURM_JOB_ID") != srun);
    CHECK(WordList(srun + 1, by_srun.argv.end()) == expected);
    CHECK(by_srun.environment == std::map<std::string, std::string>{{"HF_TOKEN", "hf_123456"}});
    request.environment["SLURM_PARTITION"] = "x";
    CHECK_THROWS_AS(slurm_launcher(job)->launch(request), UsageError);
    request.environment = {{"a.b", "no name for a shell"}};
    CHECK_THROWS_AS(ssh_launcher(options)->launch(request), UsageError);
}

TEST_CASE("remote: options that would be read as others are refused") {
    for (const char* host : {"", "-oProxyCommand=id", "a b", "a'b", "a\nb"}) {
        SshOptions options;
        options.host = host;
        INFO(host);
        CHECK_THROWS_AS(ssh_launcher(options), UsageError);
    }
    for (const char* word : {"--job-name=x", "--job-n=x", "--input", "--", "partition",
                             "--gres=gpu:1", "-N2", "-Jx", "--exp=NONE", "--clusters=a"}) {
        SlurmOptions options = in_jobs();
        options.options = {word};
        INFO(word);
        CHECK_THROWS_AS(slurm_launcher(options), UsageError);
    }
    CHECK_THROWS_AS(slurm_launcher({}),
                    UsageError);  // where the engine listens is the user's to say
}

TEST_CASE("remote: ssh keeps the launchers' contract") {
    if (!ssh_world().works()) return;
    check_launcher({ssh_launcher(ssh_world().launching())});
}

TEST_CASE("remote: an engine behind ssh is measured through the connection and directly") {
    if (!ssh_world().works()) return;
    for (const std::string& address : {std::string(), ssh_world().address()}) {
        SshOptions options = ssh_world().launching();
        options.address = address;
        const auto launcher = ssh_launcher(options);
        RemoteEngine engine(launcher);
        const Outcome outcome = engine.measure();
        INFO((std::get_if<Failure>(&outcome) != nullptr ? std::get<Failure>(outcome).message : ""));
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        CHECK(std::get<Measurement>(outcome).metrics.at("output_tokens_per_second").value > 100);
        CHECK(launcher->leftovers(engine.mark()).empty());
    }
    SshOptions options = ssh_world().launching();
    options.host = "nobody@" + options.host;
    CHECK(has(ssh_launcher(options)->trouble(""), "ssh to nobody@other-machine failed: "));
    RemoteEngine engine(ssh_launcher(options));
    CHECK(has(message_of<IoError>([&] { (void)engine.measure(); }), "Permission denied"));
}

TEST_CASE(
    "remote: a connection that is cut under load is the machine's fault, and its engine ends") {
    if (!ssh_world().works()) return;
    const auto launcher = ssh_launcher(ssh_world().launching());
    RemoteEngine engine(launcher, 4000);
    engine.options.measure.load.stall_timeout_seconds = 60;
    const std::string message = engine.disturbed([] { ssh_world().connect(false); });
    INFO(message);
    CHECK(message.starts_with("the machine: "));
    CHECK(has(message, "the connection to other-machine failed"));
    // Still cut: nobody tells it. It ends when it has not heard from us for 10 s.
    const auto cut = std::chrono::steady_clock::now();
    CHECK(comes_true([&] { return engine.processes() == 0; }, 45));
    INFO(seconds_since(cut));
    ssh_world().connect(true);
    REQUIRE(comes_true([&] { return launcher->trouble("").empty(); }));
    CHECK(launcher->leftovers(engine.mark()).empty());
}

TEST_CASE("remote: jobs of Slurm keep the launchers' contract") {
    const SlurmWorld world(1);
    if (!world.works()) return;
    check_launcher({slurm_launcher(in_jobs())});
}

TEST_CASE(
    "remote: a job's time in the queue is not its start, and a killed controller changes nothing") {
    SlurmWorld world(1);
    if (!world.works()) return;
    const TemporaryFolder folder;
    ProcessOptions before;
    before.argv = {"srun", "--cpus-per-task=2", "--input=none", "sleep", "12"};
    Process neighbour(before);
    REQUIRE(comes_true([&] {
        return has(world.asked({"squeue", "--noheader", "--format=%T"}), "RUNNING");
    }));
    SlurmOptions options = in_jobs();
    options.options = {"--cpus-per-task=2"};
    RemoteEngine engine(slurm_launcher(options), 200);
    engine.options.deploy.ready_within_seconds = 8;
    const std::string message = engine.disturbed([&] {
        world.kill_controller();
        std::this_thread::sleep_for(500ms);
        world.start_controller();
    });
    INFO(engine.phases());
    CHECK(message == "measured");
    CHECK(has(engine.phases(), "waits in Slurm's queue: "));
    CHECK(slurm_launcher(options)->leftovers(engine.mark()).empty());
}

TEST_CASE(
    "remote: a node that dies, a job that is preempted or cancelled, are the machine's fault") {
    SlurmWorld world(2,
                     "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nSlurmdTimeout=15\n");
    if (!world.works()) return;
    SlurmOptions options = in_jobs();
    options.options = {"--cpus-per-task=2", "--nodelist=n2"};
    const auto launcher = slurm_launcher(options);
    {
        RemoteEngine engine(launcher, 4000);
        const std::string message = engine.disturbed([&] {
            (void)world.asked({"scancel", "--user=root"});
        });
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "was cancelled by somebody"));
    }
    {
        RemoteEngine engine(launcher, 4000, true);
        const std::string message = engine.disturbed([&] {
            (void)world.asked({"srun", "--partition=high", "--nodelist=n2", "--cpus-per-task=2",
                               "--input=none", "/bin/true"});
        });
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "preempted"));
    }
    {
        RemoteEngine engine(launcher, 4000);
        engine.options.measure.load.stall_timeout_seconds = 3;
        const std::string message = engine.disturbed([&] { world.kill_node(2); });
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "the node n2"));
    }
    CHECK(has(world.asked({"squeue", "--noheader", "--format=%T"}) + "-", "-"));
}

namespace {

/// A start of about 1.5 s, in which the engine sleeps, and a short load test.
DeployedStudy::Text study_in_jobs(const std::string& more, int configurations = 15) {
    DeployedStudy::Text text;
    std::string values;
    for (int i = 0; i < configurations; ++i) values += (i == 0 ? "" : ", ") + std::to_string(8 + i);
    text.space = "{max_num_seqs: {choice: [" + values + "], default: 8}}";
    text.workload =
        "{kind: random, input_tokens: 64, output_tokens: 16}, requests: 16, arrival: {concurrency: "
        "4}";
    text.deploy =
        "slurm: {listen: 127.0.0.1}, ready_within: 60s, stop_within: 8s, stall_timeout: 20s, "
        "trial_within: 120s, warm_up: 1" +
        more;
    text.more = "budget: {trials: " + std::to_string(configurations + 5) + "}\n";
    text.clock = "--start-scale 25 --time-scale 12";
    return text;
}

}  // namespace

TEST_CASE(
    "remote: a study with four workers runs four jobs at once, validates, and says so in the "
    "report") {
    const SlurmWorld world(4);
    if (!world.works()) return;
    const DeployedStudy study(study_in_jobs(", workers: 4"));
    const Ran validated = ran(study.words("run", {"--dry-run"}), study.folder());
    INFO(validated.out << validated.err);
    CHECK(validated.code == 0);
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    REQUIRE((ended.code == 0 || ended.code == 1));
    const std::vector<Trial> trials = study.trials();
    CHECK(trials.size() >= 15);
    for (const Trial& trial : trials) CHECK(trial.told());
    if (has(ended.err, "4 trials at once")) CHECK(most_trials_at_once(trials) == 4);
    CHECK(world.asked({"squeue", "--noheader"}).empty());
    CHECK(has(read_file(study.directory() / "report.md"), "Every trial was a job of Slurm."));
}

TEST_CASE(
    "remote: kill -9 of autotune leaves no job that the next run does not end, and loses no "
    "trial") {
    const SlurmWorld world(2);
    if (!world.works()) return;
    const DeployedStudy study(study_in_jobs(", workers: 2"));
    std::vector<Trial> before;
    for (int round = 0; round < 4; ++round) {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        std::this_thread::sleep_for(std::chrono::milliseconds(1500 + 1300 * round));
        if (process.wait_at_most(0s)) break;
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(5s));
        const std::vector<Trial> now = study.trials();
        for (const Trial& trial : before)
            if (trial.told()) CHECK(now[trial.id].outcome == trial.outcome);
        before = now;
    }
    const Ran ended = study.run({"--trials", "14"});
    INFO(ended.out << ended.err);
    CHECK((ended.code == 0 || ended.code == 1));
    for (const Trial& trial : study.trials()) CHECK(trial.told());
    CHECK(comes_true([&] { return world.asked({"squeue", "--noheader"}).empty(); }));
}

TEST_CASE("remote: sixty trials whose starts dominate, four jobs at once against one", "[.long]") {
    const SlurmWorld world(4);
    if (!world.works()) return;
    std::map<int, double> seconds;
    for (const int workers : {1, 4}) {
        DeployedStudy::Text text = study_in_jobs(", workers: " + std::to_string(workers), 60);
        text.more = "budget: {trials: 60}\n";
        text.clock = "--start-scale 10 --time-scale 1";  // a start takes some 6 s, a load test one
        const DeployedStudy study(text);
        const auto begin = std::chrono::steady_clock::now();
        const Ran ended = study.run();
        seconds[workers] = seconds_since(begin);
        INFO(ended.out << ended.err);
        REQUIRE((ended.code == 0 || ended.code == 1));
        CHECK(study.trials().size() == 60);
    }
    WARN("60 trials: one job at once " << seconds[1] << " s, four " << seconds[4]
                                       << " s: " << seconds[1] / seconds[4] << " times as fast");
    CHECK(seconds[1] / seconds[4] >= 3.4);
}

TEST_CASE(
    "remote: a study over ssh recommends what one on this machine would, and writes no secret") {
    if (!ssh_world().works()) return;
    const std::string token = "hf_Planted5ecretOfTheTest";
    setenv("SERVETUNE_TEST_TOKEN", token.c_str(), 1);
    DeployedStudy::Text text;
    const SshOptions options = ssh_world().launching();
    text.deploy = "ssh: {host: " + options.host + ", program: [ssh, -F, \"" +
                  options.program.back() +
                  "\"]}, ready_within: 30s, stop_within: 8s, warm_up: 1, environment: {HF_TOKEN: "
                  "\"${SERVETUNE_TEST_TOKEN}\", "
                  "SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", PATH: "
                  "\"BIN:/usr/bin:/bin\", SERVETUNE_SEARCH_SPACES: \"" +
                  (fs::path(SERVETUNE_SOURCE) / "search_spaces").string() + "\"}";
    const DeployedStudy study(text);
    std::string file = read_file(study.folder() / "study.yaml");
    file.replace(file.find("BIN:"), 3, (study.folder() / "bin").string());
    write_file(study.folder() / "study.yaml", file);
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    REQUIRE(ended.code == 0);
    CHECK(has(ended.out, best_command));
    CHECK(has(read_file(study.directory() / "report.md"),
              "its requests went through the ssh connection."));
    std::string all = ended.out + ended.err;
    for (const auto& entry : fs::recursive_directory_iterator(study.directory()))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(has(all, token));
}
