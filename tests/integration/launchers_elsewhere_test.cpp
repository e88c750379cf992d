// SPDX-License-Identifier: Apache-2.0
// Engines that other programs start: by ssh in another network namespace, as jobs of a real Slurm
// of several nodes, in a Kubernetes that is a folder, in a Ray that is a dashboard of ours, and by
// a program of a user's.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "support/deployed_study.hpp"
#include "support/elsewhere.hpp"
#include "support/fake_cluster.hpp"
#include "support/ray_dashboard.hpp"
#include "support/remote_engine.hpp"
#include "support/script.hpp"
#include "support/slurm_world.hpp"
#include "support/ssh_world.hpp"
#include "support/test.hpp"

#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using WordList = std::vector<std::string>;

const WordList in_jobs{"listen 127.0.0.1"};

const SshWorld& ssh_world() {
    static const SshWorld world;
    return world;
}

/// A launcher with these lines before each request, beside its settings.
std::shared_ptr<const Launcher> launcher_told(
    const std::string& name, const WordList& settings,
    const std::vector<std::pair<std::string, std::string>>& lines) {
    WrappedOptions options = launching(name, settings);
    options.lines.insert(options.lines.end(), lines.begin(), lines.end());
    return wrapped_launcher(std::move(options));
}

WordList in_shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

/// How it ended, as a deployment asks: kind and message; "": as its engine did.
std::string failure_of(const Launcher& launcher, Launched& one) {
    if (!one.process().wait(60s)) return "it does not end: " + one.said();
    const auto failure = launcher.ended(one.launch(), one.process().exit_code().value_or(0), {});
    return failure ? std::string(name_in(failure_kinds, failure->kind)) + ": " + failure->message
                   : "";
}

void check_machine_is_blamed(const std::string& message, const std::string& what) {
    INFO(message);
    CHECK(message.starts_with("the machine: "));
    CHECK(has(message, what));
}

/// What was printed but for the launcher's own words.
std::string of_engine(const Launched& one) {
    std::string result;
    std::istringstream lines(one.said());
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("servetune: ")) result += line + "\n";
    return result;
}

/// A launcher of a user's: the engine is a process here, in a session of its own.
constexpr const char* own_launcher = R"sh(verb=$1
fact() { printf '%s\n' "$*" >&3; }
name= study= words=0
while IFS= read -r line && [ -n "$line" ]; do
    case $line in
        "name "*) name=${line#name } ;;
        "study "*) study=${line#study } ;;
        "environment "*) export "${line#environment }" ;;
        "set where"*) where=${line#set where } ;;
        "set "*) unknown=${line#set } ;;
        "word "*) [ $words = 1 ] || set --; words=1; set -- "$@" "${line#word }" ;;
    esac
done
of() { grep -lszx "MY_$1=$2" /proc/[0-9]*/environ | while IFS=/ read -r _ _ id _; do
    [ -z "$(tr -d '\0' </proc/$id/cmdline 2>/dev/null)" ] || echo "$id"; done; }
case $verb in
    about) [ -z "$unknown" ] || fact "wrong there is no setting '${unknown%% *}'" ;;
    check) [ "$where" = here ] || fact "wrong nobody is at '$where'" ;;
    start)
        command -v "$1" >/dev/null || { fact "failed unsupported there is no $1"; exit 127; }
        exec 4<&0
        MY_STUDY=$study MY_NAME=$name SERVETUNE_STUDY= SERVETUNE_GROUP= setsid "$@" </dev/null 3>&- 4<&- &
        engine=$!
        fact "at 127.0.0.1"
        { while read -r _ <&4; do :; done; kill -TERM $engine; sleep 3; kill -KILL $engine; } >/dev/null 2>&1 3>&- &
        while wait $engine; code=$?; kill -0 $engine 2>/dev/null; do :; done
        fact "ended $code"
        exit $code ;;
    leftovers) for id in $(of STUDY "$study"); do fact "left process $id"; done ;;
    remove)
        [ -z "$name" ] && ids=$(of STUDY "$study") || ids=$(of NAME "$name")
        [ -z "$ids" ] || kill -KILL $ids; sleep 0.2 ;;
esac
)sh";

}  // namespace

TEST_CASE("elsewhere: a program of the user's keeps the launchers' contract") {
    const TemporaryFolder folder;
    const fs::path program = script(folder, own_launcher, "own");
    const auto with = [&](const std::string& setting) {
        WrappedOptions options{"launcher", {program.string()}};
        options.lines.emplace_back("set", setting);
        return wrapped_launcher(std::move(options));
    };
    check_launcher({with("where here")});
    CHECK(has(with("where there")->trouble(""), "nobody is at 'there'"));
    CHECK(has(with("color red")->wrong_settings(), "`launcher` of `deploy`: there is no setting"));
    CHECK_THROWS_AS(with("color red")->launch({}), UsageError);
}

TEST_CASE("elsewhere: an engine's output never says how it ended, and a launcher that dies does") {
    const TemporaryFolder folder;
    const auto started = [&](const std::string& lines) {
        return wrapped_launcher({"mine", {script(folder, lines, "mine").string()}});
    };
    const std::string facts = "failed infrastructure a node is gone";
    {
        const LauncherWorld world{
            started("[ $1 = start ] || exit 0; echo '" + facts + "'; echo 'ended 0' >&3; exit 9")};
        Launched one(world, {"engine"});
        CHECK(failure_of(*world.launcher, one) == "");
        CHECK(one.process().exit_code() == 9);
    }
    {
        const LauncherWorld world{
            started("[ $1 = start ] || exit 0; echo 'ended 0'; kill -KILL $$")};
        Launched one(world, {"engine"});
        CHECK(has(failure_of(*world.launcher, one), "infrastructure: the launcher mine ended"));
    }
    {
        const LauncherWorld world{started("[ $1 = start ] || exit 0; echo '" + facts + "' >&3")};
        Launched one(world, {"engine"});
        CHECK(failure_of(*world.launcher, one) == "infrastructure: a node is gone");
    }
    {  // what cannot be ended keeps the next one from being started
        const LauncherWorld world{
            started("[ $1 = remove ] && [ ! -e gone ] && echo 'left it stays' >&3; exit 0")};
        LaunchRequest request;
        request.command.argv = {"engine"};
        const Launch launch = world.launcher->launch(request);
        CHECK(world.launcher->remove(launch) == "it stays\n");
        CHECK_THROWS_AS(world.launcher->launch(request), IoError);
    }
    CHECK(has(wrapped_launcher({"mine", {"/no/such/launcher"}})->trouble(""), "/no/such/launcher"));
}

TEST_CASE("elsewhere: an engine that ends while this program stands still is not to blame",
          "[long]") {
    const TemporaryFolder folder;
    std::string lines = own_launcher;
    const std::string hears = "read -r _ <&4";
    lines.replace(lines.find(hears), hears.size(), "timeout 21 sh -c 'read -r _' <&4");
    WrappedOptions options{"mine", {script(folder, lines, "mine").string()}};
    options.lines.emplace_back("set", "where here");
    RemoteEngine engine(wrapped_launcher(std::move(options)), 4000);
    const std::string message = engine.disturbed([] {
        const std::string self = std::to_string(getpid());
        const Process stops(
            {.argv = in_shell("kill -STOP " + self + "; sleep 25; kill -CONT " + self)});
        REQUIRE(stops.wait(40s));
    });
    check_machine_is_blamed(message, ": this program stood still for 2");
}

TEST_CASE("elsewhere: settings that cannot be are refused before anybody is asked") {
    const FakeCluster cluster;
    const auto wrong = [](const std::string& name, const WordList& settings,
                          const std::vector<std::pair<std::string, std::string>>& lines = {}) {
        return launcher_told(name, settings, lines)->wrong_settings();
    };
    for (const char* host : {"", "-oProxyCommand=id", "a b", "a'b"}) {
        INFO(host);
        CHECK(has(wrong("ssh", {std::string("host ") + host}), "host: "));
    }
    CHECK(wrong("ssh", {"host user@node", "address 10.0.0.5"}) == "");
    CHECK(launcher_with("ssh", {"host h", "address 10.0.0.5"})->listen_address() == "10.0.0.5");
    CHECK(has(wrong("ssh", {"host h", "adress 10.0.0.5"}), "no setting 'adress'"));
    CHECK(has(wrong("ssh", {"host h"}, {{"workers", "2"}}), "list them under `gpus`"));
    for (const char* word : {"--job-name=x", "--job-n=x", "--input", "--", "partition",
                             "--gres=gpu:1", "-N2", "-Jx", "--exp=NONE", "--clusters=a"}) {
        INFO(word);
        CHECK(has(wrong("slurm", {"listen 0.0.0.0", std::string("options ") + word}), "options: "));
    }
    CHECK(wrong("slurm", {"listen 0.0.0.0", "options --partition=gpu", "options -c4"}) == "");
    CHECK(has(wrong("slurm", {}), "listen: "));  // where the engine listens is the user's to say
    CHECK(has(wrong("slurm", in_jobs, {{"listed", "gpus"}}), "leave `gpus` out"));
    CHECK(has(wrong("slurm", in_jobs, {{"variable", "SLURM_PARTITION"}}), "change srun itself"));
    const std::string head = "address http://head:8265";
    CHECK(wrong("ray", {head, "resources.CPU 4"}) == "");
    for (const auto& [setting, what] :
         std::vector<std::pair<std::string, std::string>>{{"address head:8265", "address"},
                                                          {"address http://u:p@h:1", "address"},
                                                          {"ports 80-90", "ports"},
                                                          {"ports 19000-18000", "ports"},
                                                          {"bound 0s", "bound"},
                                                          {"resources.GPU 1", "resources"},
                                                          {"resources.x 0", "resources"},
                                                          {"color red", "no setting 'color'"}})
        CHECK(has(wrong("ray", {head, setting}), what));
    CHECK(has(wrong("ray", {head}, {{"secret", "HF_TOKEN"}}), "see this secret"));
    const std::vector<std::pair<std::string, std::string>> pod{
        {"data", std::string("template ") + FakeCluster::pod_template}};
    CHECK(wrong("kubernetes", {"template pod.json"}, pod) == "");
    CHECK(has(wrong("kubernetes", {"reach ingress"}, pod), "pod, forward, node"));
    CHECK(has(wrong("kubernetes", {}, {{"data", "template {\"kind\": \"Job\"}"}}), "template: "));
}

TEST_CASE("elsewhere: what ssh is asked for, with no secret among its words") {
    const TemporaryFolder folder;
    const fs::path client =
        script(folder, "cd '" + folder.path().string() +
                           "' && printf '%s\n' \"$@\" >words && cat >told && exit 7");
    const auto launcher = launcher_with("ssh", {"host user@node", "program " + client.string()});
    LaunchRequest request;
    request.command.argv = {"vllm", "serve", "/models/m", "--json={\"a\":\n 1}", "$(id)"};
    request.command.files = {{"deep/options.yaml", "a: 1\n  b: \\2"}};
    request.environment = {{"HF_TOKEN", "hf_123456"}, {"CUDA_VISIBLE_DEVICES", "7"}};
    request.mark = "/studies/s";
    request.gpus = "2,5";
    request.cores = {0, 1};
    request.port = 8125;
    const Launch launch = launcher->launch(request);
    Process process(client_of(launch));
    REQUIRE(comes_true([&] { return fs::exists(folder.path() / "told"); }));
    process.hang_up();
    REQUIRE(process.wait(20s));
    const std::string words = read_file(folder.path() / "words");
    const std::string told = read_file(folder.path() / "told");
    for (const char* part :
         {"BatchMode=yes\n", "127.0.0.1:8125:127.0.0.1:8125\n", "\n--\nuser@node\nexec sh -c '"})
        CHECK(has(words, part));
    CHECK_FALSE(has(words, "hf_123456"));
    CHECK(has(told,
              "environment CUDA_DEVICE_ORDER=PCI_BUS_ID\nenvironment "
              "CUDA_VISIBLE_DEVICES=2,5\nenvironment HF_TOKEN=hf_123456\nfile "
              "deep/options.yaml\ncontent a: 1\nmore   b: \\2\ncores 0,1\nword vllm\nword "
              "serve\nword /models/m\nword --json={\"a\":\nmore  1}\nword $(id)\n"));
    request.environment = {{"a.b", "no name for a shell"}};
    CHECK_THROWS_AS(launcher->launch(request), UsageError);
}

TEST_CASE("elsewhere: ssh keeps the launchers' contract") {
    if (!ssh_world().works()) return;
    check_launcher({launcher_with("ssh", ssh_world().settings())});
}

TEST_CASE("elsewhere: an engine behind ssh is measured through the connection and directly") {
    if (!ssh_world().works()) return;
    for (const std::string& address : {std::string(), ssh_world().address()}) {
        WordList settings = ssh_world().settings();
        if (!address.empty()) settings.push_back("address " + address);
        const auto launcher = launcher_with("ssh", settings);
        RemoteEngine engine(launcher);
        const Outcome outcome = engine.measure();
        INFO((std::get_if<Failure>(&outcome) != nullptr ? std::get<Failure>(outcome).message : ""));
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        CHECK(std::get<Measurement>(outcome).metrics.at("output_tokens_per_second").value > 100);
        CHECK(launcher->leftovers(engine.mark()).empty());
    }
    const auto stranger = launcher_with("ssh", ssh_world().settings("nobody@"));
    CHECK(has(stranger->trouble(""), "ssh to nobody@other-machine failed: "));
    RemoteEngine engine(stranger);
    CHECK(has(message_of<IoError>([&] { (void)engine.measure(); }), "Permission denied"));
}

TEST_CASE(
    "elsewhere: a connection that is cut under load is the machine's fault, and its engine ends",
    "[long]") {
    if (!ssh_world().works()) return;
    const auto launcher = launcher_with("ssh", ssh_world().settings());
    RemoteEngine engine(launcher, 4000);
    engine.options.measure.load.stall_timeout_seconds = 60;
    const std::string message = engine.disturbed([] { ssh_world().connect(false); });
    check_machine_is_blamed(message, "the connection to other-machine failed");
    // Still cut: nobody tells it. It ends when it has not heard from us for 10 s.
    const auto cut = std::chrono::steady_clock::now();
    CHECK(comes_true([&] { return engine.processes() == 0; }, 45));
    INFO(seconds_since(cut));
    ssh_world().connect(true);
    REQUIRE(comes_true([&] { return launcher->trouble("").empty(); }));
    CHECK(launcher->leftovers(engine.mark()).empty());
}

TEST_CASE("elsewhere: jobs of Slurm keep the launchers' contract") {
    const SlurmWorld world(1);
    if (!world.works()) return;
    check_launcher({launcher_with("slurm", in_jobs)});
}

TEST_CASE(
    "elsewhere: a job's time in the queue is not its start, and a killed controller changes "
    "nothing",
    "[long]") {
    SlurmWorld world(1);
    if (!world.works()) return;
    const TemporaryFolder folder;
    ProcessOptions before;
    before.argv = {"srun", "--cpus-per-task=2", "--input=none", "sleep", "12"};
    Process neighbour(before);
    REQUIRE(comes_true([&] {
        return has(world.asked({"squeue", "--noheader", "--format=%T"}), "RUNNING");
    }));
    const auto launcher = launcher_with("slurm", {"listen 127.0.0.1", "options --cpus-per-task=2"});
    RemoteEngine engine(launcher, 200);
    engine.options.deploy.ready_within_seconds = 8;
    const std::string message = engine.disturbed([&] {
        world.kill_controller();
        std::this_thread::sleep_for(500ms);
        world.start_controller();
    });
    INFO(engine.phases());
    CHECK(message == "measured");
    CHECK(has(engine.phases(), "waits in Slurm's queue: "));
    CHECK(launcher->leftovers(engine.mark()).empty());
}

TEST_CASE(
    "elsewhere: a node that dies, a job that is preempted or cancelled, are the machine's fault",
    "[long]") {
    SlurmWorld world(2,
                     "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nSlurmdTimeout=15\n");
    if (!world.works()) return;
    const auto launcher = launcher_with(
        "slurm", {"listen 127.0.0.1", "options --cpus-per-task=2", "options --nodelist=n2"});
    {
        RemoteEngine engine(launcher, 4000);
        const std::string message = engine.disturbed([&] {
            (void)world.asked({"scancel", "--user=root"});
        });
        check_machine_is_blamed(message, "was cancelled by somebody");
    }
    {
        RemoteEngine engine(launcher, 4000, true);
        const std::string message = engine.disturbed([&] {
            (void)world.asked({"srun", "--partition=high", "--nodelist=n2", "--cpus-per-task=2",
                               "--input=none", "/bin/true"});
        });
        check_machine_is_blamed(message, "preempted");
    }
    {
        RemoteEngine engine(launcher, 4000);
        engine.options.measure.load.stall_timeout_seconds = 3;
        const std::string message = engine.disturbed([&] { world.kill_node(2); });
        check_machine_is_blamed(message, "the node n2");
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
    "elsewhere: a study with four workers runs four jobs at once, validates, and says so in the "
    "report",
    "[long]") {
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
    CHECK(has(read_file(study.directory() / "report.md"), "by the launcher slurm,"));
}

TEST_CASE(
    "elsewhere: kill -9 of autotune leaves no job that the next run does not end, and loses no "
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

TEST_CASE(
    "elsewhere: a study over ssh recommends what one on this machine would, and writes no secret",
    "[long]") {
    if (!ssh_world().works()) return;
    const std::string token = "hf_Planted5ecretOfTheTest";
    setenv("SERVETUNE_TEST_TOKEN", token.c_str(), 1);
    DeployedStudy::Text text;
    text.deploy = std::string("ssh: {host: ") + SshWorld::host + ", program: [ssh, -F, \"" +
                  ssh_world().config() +
                  "\"]}, ready_within: 30s, stop_within: 8s, warm_up: 1, environment: {HF_TOKEN: "
                  "\"${SERVETUNE_TEST_TOKEN}\", "
                  "SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", PATH: "
                  "\"BIN:/usr/bin:/bin\", SERVETUNE_SEARCH_SPACES: \"" +
                  (fs::path(SERVETUNE_SOURCE) / "search_spaces").string() + "\"}";
    const DeployedStudy study(text);
    std::string file = read_file(study.folder() / "study.yaml");
    file.replace(file.find("BIN:"), 3, (study.folder() / "bin").string());
    write_file(study.folder() / "study.yaml", file);
    const Ran ended = study.run_well();
    CHECK(has(ended.out, best_command));
    CHECK(has(read_file(study.directory() / "report.md"), "by the launcher ssh,"));
    std::string all = ended.out + ended.err;
    for (const auto& entry : fs::recursive_directory_iterator(study.directory()))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(has(all, token));
}

TEST_CASE("elsewhere: Jobs of Kubernetes keep the launchers' contract") {
    const FakeCluster cluster;
    check_launcher({wrapped_launcher(cluster.options())});
    CHECK(cluster.jobs().empty());
}

TEST_CASE("elsewhere: no line of a pod is lost or repeated where the API server is gone for long") {
    const FakeCluster cluster;
    const LauncherWorld world{wrapped_launcher(cluster.options())};
    Launched one(world, in_shell("i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep "
                                 "0.1; done; exit 41"));
    REQUIRE(one.comes_to_say("line 5\n"));
    cluster.set("down");
    std::this_thread::sleep_for(1s);
    cluster.set("forbidden");
    cluster.unset("down");
    std::this_thread::sleep_for(500ms);
    cluster.unset("forbidden");
    CHECK(failure_of(*world.launcher, one) == "");
    std::string expected;
    for (int i = 1; i <= 40; ++i) expected += "line " + std::to_string(i) + "\n";
    CHECK(of_engine(one) == expected);
    CHECK(one.process().exit_code() == 41);
    CHECK_FALSE(has(cluster.content("calls"), "force"));
}

TEST_CASE("elsewhere: a pod that waits says why, and one that is taken away is the cluster's") {
    const FakeCluster cluster;
    const LauncherWorld world{wrapped_launcher(cluster.options())};
    const Launcher& launcher = *world.launcher;
    {
        cluster.set("pending", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
        Launched one(world, in_shell("echo begins; sleep 60"));
        REQUIRE(comes_true([&] {
            return has(launcher.place(one.launch()).waits, "Insufficient nvidia.com/gpu");
        }));
        CHECK_FALSE(one.end(10s).killed);
        CHECK(launcher.remove(one.launch()) == "");
        CHECK(one.comes_to_nothing());
        CHECK(of_engine(one).empty());
        cluster.unset("pending");
    }
    {
        cluster.set("waiting", "InvalidImageName");
        Launched one(world, in_shell("sleep 60"));
        CHECK(comes_true([&] {
            try {
                (void)launcher.place(one.launch());
                return false;
            } catch (const UsageError& error) {
                return has(error.what(), "its image has no valid name");
            }
        }));
        cluster.unset("waiting");
    }
    for (const auto& [file, content, says] :
         {std::tuple("/disrupted", "PreemptionByScheduler", "preempted"),
          std::tuple("/deleted", "yes", "deleted")}) {
        Launched one(world, in_shell("trap 'echo EngineDeadError; exit 1' TERM; echo begins; while "
                                     ":; do sleep 0.1; done"));
        REQUIRE(one.comes_to_say("begins"));
        REQUIRE(placed(launcher, one.launch()).host == "127.0.0.1");
        cluster.set("jobs/" + one.launch().name + file, content);
        const std::string failed = failure_of(launcher, one);
        INFO(failed);
        CHECK(failed.starts_with("infrastructure: "));
        CHECK(has(failed, says));
        CHECK(has(one.said(), "EngineDeadError"));
    }
}

TEST_CASE("elsewhere: a forward that breaks under load is the cluster's fault") {
    const FakeCluster cluster;
    const auto launcher = wrapped_launcher(cluster.options({"reach forward"}));
    const TemporaryFolder folder;
    LaunchRequest request;
    request.command.argv = in_shell("echo begins; sleep 300");
    request.mark = folder.path().string();
    request.port = 12345;
    const Launch launch = launcher->launch(request);
    cluster.set("refusing");  // nobody listens yet: it is made anew
    Process process(client_of(launch));
    const auto forwards = [&] {
        const std::string calls = cluster.content("calls");
        std::size_t result = 0;
        for (auto at = calls.find("port-forward "); at != std::string::npos;
             at = calls.find("port-forward ", at + 1))
            ++result;
        return result;
    };
    REQUIRE(comes_true([&] { return forwards() >= 3; }));
    cluster.unset("refusing");
    CHECK(comes_true([&] {
        const std::size_t so_far = forwards();
        std::this_thread::sleep_for(2s);
        return forwards() == so_far;  // the last one stands
    }));
    CHECK(process.running());
    cluster.set("down");
    REQUIRE(process.wait(20s));
    cluster.unset("down");
    const auto failure = launcher->ended(launch, process.exit_code().value_or(0), {});
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    CHECK(has(failure->message, "kubectl port-forward"));
    CHECK(launcher->remove(launch) == "");
    CHECK(launcher->leftovers(request.mark).empty());
}

TEST_CASE("elsewhere: a study in pods goes on after kill -9, and leaves nothing") {
    const FakeCluster cluster;
    DeployedStudy::Text text;
    text.deploy =
        "kubernetes: {template: pod.json, devices: \"\", reach: pod, program: [\"" +
        FakeCluster::kubectl() + "\", \"" + cluster.where() +
        "\"]}, ready_within: 20s, stop_within: 2s, stall_timeout: 10s, trial_within: 60s, "
        "warm_up: 1, environment: {SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale "
        "12\", SERVETUNE_SEARCH_SPACES: \"" SERVETUNE_SOURCE "/search_spaces\", PATH: \"" +
        cluster.programs_of_pods() + ":/usr/local/bin:/usr/bin:/bin\"}";
    const DeployedStudy study(text);
    write_file(study.folder() / "pod.json", FakeCluster::pod_template);
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    std::vector<Trial> before;
    {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        REQUIRE(comes_true([&] { return study.engines().size() > 1 || process.wait_at_most(0ms); },
                           90));
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(5s));
        before = study.trials();
    }
    CHECK(comes_true([&] { return cluster.jobs().empty(); }, 20));  // ended by their launcher
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(has(ended.out, best_command));
    const std::vector<Trial> trials = study.trials();
    for (const Trial& trial : before)
        if (trial.told()) CHECK(trials[trial.id].outcome == trial.outcome);
    CHECK(cluster.jobs().empty());
    CHECK(study.left().empty());
}

namespace {

constexpr const char* ray_token = "0123456789abcdef0123456789abcdef";

std::shared_ptr<const Launcher> on_ray(const RayDashboard& dashboard, WordList more = {}) {
    more.push_back("address " + dashboard.address());
    return launcher_with("ray", more);
}

}  // namespace

TEST_CASE("elsewhere: jobs of Ray keep the launchers' contract, with a token that nobody sees") {
    const RayDashboard dashboard(ray_token);
    setenv("SERVETUNE_TEST_RAY_TOKEN", ray_token, 1);
    const WordList token{"token_env SERVETUNE_TEST_RAY_TOKEN"};
    check_launcher({on_ray(dashboard, token)});
    CHECK(dashboard.count() == 0);
    CHECK(has(on_ray(dashboard)->trouble(""), "wants a token (401)"));
    setenv("SERVETUNE_TEST_RAY_TOKEN", "another", 1);
    CHECK(has(on_ray(dashboard, token)->trouble(""), "refuses the token (403)"));
    unsetenv("SERVETUNE_TEST_RAY_TOKEN");
    CHECK(has(on_ray(dashboard, token)->trouble(""), "has no SERVETUNE_TEST_RAY_TOKEN"));
    const TemporaryFolder folder;
    const WordList file{"token_file " +
                        folder.write("token", std::string(ray_token) + "\n").string()};
    CHECK(on_ray(dashboard, file)->trouble("") == "");
    WordList more = file;
    more.emplace_back("resources.CPU 3");
    CHECK(has(on_ray(dashboard, more)->trouble(""), "asks for 3 of 'CPU', and no node of"));
}

TEST_CASE("elsewhere: a job of Ray that waits, a silent head, and what is done to a job") {
    RayDashboard dashboard;
    const LauncherWorld world{on_ray(dashboard)};
    const Launcher& launcher = *world.launcher;
    {
        dashboard.hold(true);
        Launched one(world, in_shell("echo begins; while [ $((i=i+1)) -lt 100 ]; do sleep 0.1; "
                                     "done; echo ends; exit 5"));
        REQUIRE(comes_true([&] {
            return has(launcher.place(one.launch()).waits, "waits for Ray: Job has not started");
        }));
        dashboard.hold(false);
        CHECK(placed(launcher, one.launch()).host == "127.0.0.1");
        REQUIRE(one.comes_to_say("begins"));
        CHECK_FALSE(launcher.lost(one.launch()).has_value());
        dashboard.silent(true);
        std::this_thread::sleep_for(4s);
        CHECK(one.process().running());
        dashboard.silent(false);
        CHECK(failure_of(launcher, one) == "");
        CHECK(one.process().exit_code() == 5);
        CHECK(one.said() == "begins\nends\n");  // nothing of Ray's own
    }
    const auto failed_by = [&](const std::function<void()>& disturb,
                               const WordList& settings = {}) {
        const LauncherWorld bounded{on_ray(dashboard, settings)};
        Launched one(bounded, in_shell("echo begins; exec sleep 60"));
        REQUIRE(one.comes_to_say("begins"));
        disturb();
        return failure_of(*bounded.launcher, one);
    };
    CHECK(has(failed_by([&] { dashboard.stop_all(); }), "infrastructure: job"));
    CHECK(has(failed_by([&] { dashboard.lose_supervisors(); }), "lost its node or its supervisor"));
    CHECK(has(failed_by([&] { dashboard.forget_all(); }), "Ray knows of no job servetune-"));
    CHECK(has(failed_by([] {}, {"bound 10s"}), "reached its bound of 10 s"));
}

TEST_CASE("elsewhere: an engine that answers after its job's end would not go") {
    RayDashboard dashboard;
    const auto launcher = on_ray(dashboard);
    const TemporaryFolder folder;
    const ReservedPort port;
    LaunchRequest request;
    request.command.argv = {"/usr/bin/env",
                            "python3",
                            "-m",
                            "http.server",
                            std::to_string(port.number()),
                            "--directory",
                            folder.path().string()};
    request.port = port.number();
    request.mark = folder.path().string();
    const Launch launch = launcher->launch(request);
    Process process(client_of(launch));
    REQUIRE(placed(*launcher, launch).host == "127.0.0.1");
    REQUIRE(comes_true([&] { return port.listening(); }));
    dashboard.lose_supervisors();
    REQUIRE(process.wait(20s));
    CHECK(has(launcher->remove(launch), "it would not go: the engine of job " + launch.name));
    REQUIRE(launcher->leftovers(request.mark).size() == 1);
    CHECK_THROWS_AS(launcher->launch(request), IoError);  // never beside it
    dashboard.forget_all();                               // which ends it here
    CHECK(comes_true([&] { return !port.listening(); }));
    CHECK(launcher->remove(launch) == "");
    CHECK(launcher->leftovers(request.mark).empty());
}
