// SPDX-License-Identifier: Apache-2.0
// autotune inside a real Kubernetes: what `init --as kubernetes` writes is taken and runs, goes on
// after a kill, stops in order, and leaves nothing. The commands are those of the guide.
#include "base/files.hpp"
#include "support/autotune.hpp"
#include "support/kubernetes_world.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <csignal>
#include <sstream>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

const std::string study_in_cluster =
    "study: chat\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nstrategy: "
    "exhaustive\ndecision: published\n"
    "workloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: 16}, "
    "requests: 16, arrival: {concurrency: "
    "4}}]\n"
    "objective: {maximize: total_tokens_per_second}\nspace: {max_num_seqs: {choice: [8, 9, 10, "
    "11], default: 8}}\nbudget: {trials: 4}\n"
    "stress: off\nevaluator: {deploy: {kubernetes: {template: pod.yaml}, ready_within: 60s, "
    "warm_up: 1}}\n";

std::string pod_in_cluster(const std::string& start_scale) {
    return "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - name: engine\n      image: " +
           std::string(KubernetesWorld::image) +
           "\n      env: [{name: SIMENGINE_OPTIONS, value: \"--start-scale " + start_scale +
           " --time-scale 12\"}]\n";
}

/// The commands of the guide that name this file, in order.
std::vector<std::vector<std::string>> commands_of_guide() {
    std::vector<std::vector<std::string>> result;
    std::istringstream lines(read_file(SERVETUNE_SOURCE "/docs/guides/elsewhere.md"));
    bool here = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("<!--")) here = has(line, "cluster_run_test.cpp");
        if (!here || !line.starts_with("kubectl ")) continue;
        std::istringstream words(line.substr(0, line.find(" #")));
        std::vector<std::string>& command = result.emplace_back();
        for (std::string word; words >> word;) command.push_back(word);
    }
    return result;
}

/// A study in the cluster, its journal in a folder of this machine.
class RunInCluster {
public:
    explicit RunInCluster(const KubernetesWorld& world, const std::string& start_scale = "8")
        : world_(world) {
        fs::permissions(folder_.path(),
                        fs::perms::owner_all | fs::perms::others_exec | fs::perms::group_exec);
        fs::create_directory(volume());
        fs::permissions(volume(), fs::perms::all);
        folder_.write("pod.yaml", pod_in_cluster(start_scale));
        const Ran made =
            autotune({"init", "--as", "kubernetes", "--image", KubernetesWorld::image, "--engine",
                      "vllm", "--model", "Qwen/Qwen3-8B", "--output", "chat.yaml", "--yes"},
                     folder_.path());
        INFO(made.out << made.err);
        REQUIRE(made.code == 0);
        folder_.write("chat.yaml", study_in_cluster);
        REQUIRE(kubectl({"create", "configmap", "servetune-chat", "--from-file=chat.yaml",
                         "--from-file=pod.yaml"})
                    .code == 0);
        // The image of tests has no kubectl.
        const std::string client = fs::canonical(world.client().front()).string();
        std::string manifest = read_file(folder_.path() / "servetune.yaml");
        manifest = with_each(manifest, "            - {name: tmp, mountPath: /tmp}\n",
                             "            - {name: client, mountPath: /bin/kubectl}\n");
        manifest = with_each(
            manifest, "        - {name: tmp, emptyDir: {}}\n",
            "        - {name: client, hostPath: {path: \"" + client + "\", type: File}}\n");
        folder_.write("servetune.yaml", manifest);
        world_.create({{"apiVersion", "v1"},
                       {"kind", "PersistentVolume"},
                       {"metadata", {{"name", "journal"}}},
                       {"spec",
                        {{"capacity", {{"storage", "5Gi"}}},
                         {"accessModes", {"ReadWriteOnce"}},
                         {"hostPath", {{"path", volume().string()}}}}}});
    }
    RunInCluster(const RunInCluster&) = delete;
    RunInCluster& operator=(const RunInCluster&) = delete;

    [[nodiscard]] fs::path volume() const { return folder_.path() / "volume"; }
    [[nodiscard]] std::size_t told() const {
        const std::vector<Trial> trials = trials_so_far(volume() / "study");
        return std::size_t(count_if(trials, [](const Trial& one) { return one.told(); }));
    }
    /// kubectl with these words behind its name; paths are of the study's folder.
    Ran kubectl(std::vector<std::string> words) const {
        for (std::string& word : words)
            for (const char* file : {"servetune.yaml", "chat.yaml", "pod.yaml"})
                if (word == file || word == std::string("--from-file=") + file)
                    word.replace(word.find(file), std::string::npos,
                                 (folder_.path() / file).string());
        return world_.kubectl(words);
    }
    /// The same again until it succeeds: pods take a while.
    void comes_to_succeed(const std::vector<std::string>& words) const {
        Ran last{};
        const bool good = comes_true([&] { return (last = kubectl(words)).code == 0; }, 90);
        INFO(words.front() << ": " << last.out << last.err);
        CHECK(good);
    }
    /// What the page answers behind a port-forward with these words.
    [[nodiscard]] std::string page_by(const std::vector<std::string>& words) const {
        std::vector<std::string> all = world_.client("admin");
        all.emplace_back(std::string("--namespace=") + KubernetesWorld::name_space);
        all.insert(all.end(), words.begin(), words.end());
        ChildProcess forward(all, folder_.path());
        Ran page{};
        (void)comes_true(
            [&] {
                return (page = ran({"/usr/bin/env", "curl", "--fail", "--silent", "--show-error",
                                    "http://127.0.0.1:8420/"},
                                   folder_.path()))
                           .code == 0;
            },
            30);
        forward.signal(SIGKILL);
        (void)forward.wait();
        return page.out + page.err + forward.out() + forward.err();
    }
    [[nodiscard]] bool completes() const {
        return comes_true(
            [&] {
                return has(kubectl({"get", "job", "servetune-chat",
                                    "--output=jsonpath={.status.conditions[*].type}"})
                               .out,
                           "Complete");
            },
            180);
    }
    /// The process of the run as this machine sees it; 0: there is none.
    [[nodiscard]] static pid_t process() {
        for (const auto& entry : fs::directory_iterator("/proc")) {
            std::ifstream file(entry.path() / "cmdline");
            const std::string words{std::istreambuf_iterator<char>(file), {}};
            if (has(words, std::string("autotune\0run\0/study/chat.yaml", 29)))
                return std::stoi(entry.path().filename());
        }
        return 0;
    }
    /// Jobs of trials, a line each.
    [[nodiscard]] std::string trials_left() const {
        return kubectl({"get", "jobs", "--selector=app.kubernetes.io/managed-by=servetune",
                        "--no-headers", "--ignore-not-found"})
            .out;
    }

private:
    static std::string with_each(std::string text, const std::string& after,
                                 const std::string& what) {
        for (std::size_t at = text.find(after); at != std::string::npos;
             at = text.find(after, at + after.size() + what.size()))
            text.insert(at + after.size(), what);
        return text;
    }
    const KubernetesWorld& world_;
    TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("cluster run: the guide's commands run a study, which a kill does not end, and show it") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    const RunInCluster run(world);
    const std::vector<std::vector<std::string>> commands = commands_of_guide();
    REQUIRE(commands.size() == 9);
    bool killed = false;
    for (const std::vector<std::string>& command : commands) {
        const std::vector<std::string> words(command.begin() + 1, command.end());
        INFO(command[1] << " " << (command.size() > 2 ? command[2] : ""));
        if (words.front() == "port-forward") {
            const std::string page = run.page_by(words);
            INFO(page.substr(0, 500));
            CHECK(page.starts_with("<!doctype html>"));
        } else if (words.front() == "scale" || words.front() == "delete") {
            if (words.front() == "scale") {
                REQUIRE(run.completes());
                CHECK(run.told() == 4);
                CHECK(run.trials_left().empty());
            }
            CHECK(run.kubectl(words).code == 0);
        } else if (words.front() == "logs") {
            // To its end it would wait for the run's; in the middle of which the run is killed.
            REQUIRE(comes_true([&] { return run.told() >= 2; }, 120));
            const pid_t process = RunInCluster::process();
            REQUIRE(process > 0);
            REQUIRE(kill(process, SIGKILL) == 0);
            killed = true;
            run.comes_to_succeed(words);
        } else run.comes_to_succeed(words);
    }
    CHECK(killed);
    CHECK(run.trials_left().empty());
    CHECK(comes_true([&] { return world.left().empty(); }, 60));
    const std::string left =
        run.kubectl({"get", "pvc,role,rolebinding,deployment,serviceaccount", "--output=name"}).out;
    CHECK_FALSE(has(left, "servetune"));
}

TEST_CASE("cluster run: a suspended Job ends its trial in order and goes on later") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    const RunInCluster run(world, "4");
    REQUIRE(run.kubectl({"apply", "-f", "servetune.yaml"}).code == 0);
    REQUIRE(comes_true([&] { return run.told() >= 1 && !run.trials_left().empty(); }, 120));
    REQUIRE(run.kubectl({"patch", "job", "servetune-chat", "-p", R"({"spec":{"suspend":true}})"})
                .code == 0);
    REQUIRE(comes_true([&] { return RunInCluster::process() == 0; }, 60));
    CHECK(comes_true([&] { return run.trials_left().empty(); }, 10));
    CHECK(has(read_file(run.volume() / "study/run.log"), " ends: stopped_by_user"));
    const std::size_t before = run.told();
    CHECK(before < 4);
    REQUIRE(run.kubectl({"patch", "job", "servetune-chat", "-p", R"({"spec":{"suspend":false}})"})
                .code == 0);
    REQUIRE(run.completes());
    CHECK(run.told() == 4);
    CHECK(has(run.kubectl({"logs", "job/servetune-chat"}).out,
              "resuming after " + std::to_string(before) + " trial"));
}
