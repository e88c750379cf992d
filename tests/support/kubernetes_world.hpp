// SPDX-License-Identifier: Apache-2.0
#pragma once

// A real Kubernetes on this machine (tests/cluster/start), with nodes that run pods and say that
// they have GPUs. The test's process is in the cluster's network while the world is there: so are
// the threads and programs that it starts then.

#include "support/container_world.hpp"

#include "base/files.hpp"
#include "support/elsewhere.hpp"
#include "support/waiting.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace servetune::test {

class KubernetesWorld {
public:
    static constexpr const char* image = "localhost/engine:1";
    static constexpr const char* name_space = "tuning";

    explicit KubernetesWorld(int nodes, int devices = 2) {
        const std::filesystem::path tools =
            std::filesystem::path(SERVETUNE_SOURCE) / "build/cluster";
        if (geteuid() != 0) why_not_ = "its namespaces need root";
        else if (!std::filesystem::exists(tools / "bin/kubectl"))
            why_not_ = "there is no " + tools.string() + "; scripts/get-cluster makes it";
        else if (free_memory_bytes() < (2LL << 30))
            why_not_ = "this machine has less than 2 GB of free memory";
        else if (const Ran made =
                     ran({"/usr/bin/env", "unshare", "--net", "--pid", "--fork", "--mount-proc",
                          "/bin/sh", "-c",
                          "mount -t tmpfs tmpfs /run && ip link set lo up && openssl version"},
                         folder_.path());
                 made.code != 0)
            why_not_ = "its namespaces cannot be made: " + made.err;
        if (!why_not_.empty()) return;
        kubectl_ = (tools / "bin/kubectl").string();
        own_network_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        begin({SERVETUNE_SOURCE "/tests/cluster/start", tools.string(), work().string(),
               std::to_string(nodes), std::to_string(devices),
               "vllm=" SERVETUNE_SOURCE "/tests/cluster/engine", "simengine=" SIMENGINE_PROGRAM,
               "autotune=" SERVETUNE_PROGRAM, "python3=/usr/bin/python3"});
        if (!hears("ready", 120)) {
            broken_ = "it does not start: " + said_ + read_file(folder_.path() / "start.err");
            return;
        }
        std::ifstream id(work() / "pid");
        std::string inside;
        std::getline(id, inside);
        const int network = open(("/proc/" + inside + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
        if (network < 0 || setns(network, CLONE_NEWNET) != 0)
            broken_ = "its network cannot be entered";
        if (network >= 0) close(network);
    }
    ~KubernetesWorld() {
        if (process_ > 0) {
            close(to_);
            if (!comes_true([&] { return waitpid(process_, nullptr, WNOHANG) != 0; }, 20)) {
                ::kill(process_, SIGKILL);
                (void)waitpid(process_, nullptr, 0);
            }
            close(from_);
        }
        if (own_network_ < 0) return;
        (void)setns(own_network_, CLONE_NEWNET);
        close(own_network_);
    }
    KubernetesWorld(const KubernetesWorld&) = delete;
    KubernetesWorld& operator=(const KubernetesWorld&) = delete;

    /// False, and said so (ctest looks for this line to call the test skipped), where it cannot
    /// run. Where it should run and does not, the test fails.
    [[nodiscard]] bool works() const {
        if (!broken_.empty()) FAIL(broken_);
        if (why_not_.empty()) return true;
        WARN("skipped: Kubernetes does not run here: " << why_not_);
        return false;
    }
    /// As `kill` or `start` of tests/cluster/start; `part`: such as api, kubelet-1, containerd-2.
    void kill(const std::string& part) { tell("kill " + part); }
    void start(const std::string& part) { tell("start " + part); }

    /// kubectl as the administrator, to its end.
    [[nodiscard]] Ran kubectl(std::vector<std::string> words) const {
        words.insert(words.begin(), {kubectl_, "--kubeconfig=" + (work() / "admin.conf").string(),
                                     std::string("--namespace=") + name_space});
        return ran(words, folder_.path());
    }
    [[nodiscard]] std::string asked(const std::vector<std::string>& words) const {
        return kubectl(words).out;
    }
    void create(const nlohmann::json& object) const {
        const Ran made =
            kubectl({"create", "-f", folder_.write("object.json", object.dump()).string()});
        INFO(made.err);
        REQUIRE(made.code == 0);
    }
    /// The same for what is below another object, such as a pod's eviction.
    void create_at(const std::string& path, const nlohmann::json& object) const {
        const Ran made = kubectl(
            {"create", "--raw", path, "-f", folder_.write("object.json", object.dump()).string()});
        INFO(made.err);
        REQUIRE(made.code == 0);
    }
    [[nodiscard]] nlohmann::json get(const std::string& kind, const std::string& name) const {
        const Ran got = kubectl({"get", kind, name, "--output=json"});
        return got.code == 0 ? nlohmann::json::parse(got.out) : nlohmann::json();
    }
    /// A pod of one container called `engine`.
    static nlohmann::json pod(const std::string& name, const std::string& script,
                              const nlohmann::json& limits = nlohmann::json::object()) {
        return {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", name}}},
                {"spec",
                 {{"restartPolicy", "Never"},
                  {"terminationGracePeriodSeconds", 1},
                  {"containers",
                   {{{"name", "engine"},
                     {"image", image},
                     {"command", {"/bin/sh", "-c", script}},
                     {"terminationMessagePolicy", "FallbackToLogsOnError"},
                     {"resources", {{"limits", limits}}}}}}}}};
    }

    /// The words of kubectl for an account: `tuner` may run trials in `name_space` and nothing
    /// else, `stranger` may nothing, the token of `nobody` is not known.
    [[nodiscard]] std::vector<std::string> client(const std::string& account = "tuner") const {
        return {kubectl_, "--kubeconfig=" + (work() / (account + ".conf")).string()};
    }
    /// `spec` and `engine`: what else stands in the template's, and in its container's.
    static nlohmann::json pod_template(const nlohmann::json& spec = {},
                                       const nlohmann::json& engine = {}) {
        nlohmann::json container = {{"name", "engine"}, {"image", image}};
        if (engine.is_object()) container.merge_patch(engine);
        nlohmann::json result = {
            {"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", {{"containers", {container}}}}};
        if (spec.is_object()) result["spec"].merge_patch(spec);
        return result;
    }
    [[nodiscard]] std::shared_ptr<const Launcher> launcher(
        const std::string& reach = "pod", const nlohmann::json& pod = pod_template(),
        const std::vector<std::string>& more = {}, const std::string& account = "tuner") const {
        WrappedOptions result = launching("kubernetes", {"template pod.json", "reach " + reach});
        for (const std::string& word : client(account))
            result.lines.emplace_back("set", "program " + word);
        for (const std::string& setting : more) result.lines.emplace_back("set", setting);
        result.lines.emplace_back("data", "template " + pod.dump());
        return wrapped_launcher(std::move(result));
    }

    /// What trials leave: Jobs and pods of the namespace, a line each.
    [[nodiscard]] std::string left() const {
        return asked({"get", "jobs,pods", "--no-headers", "--ignore-not-found"});
    }
    /// Requests of `tuner` to the API server so far, by verb and resource, as its audit log has
    /// them.
    [[nodiscard]] std::map<std::string, int> requests() const {
        std::map<std::string, int> result;
        std::ifstream stream(work() / "audit.log");
        for (std::string line; std::getline(stream, line);) {
            const auto event = nlohmann::json::parse(line, nullptr, false);
            if (event.is_discarded()) continue;  // the line that is being written
            const auto object = event.value("objectRef", nlohmann::json::object());
            const std::string sub = object.value("subresource", "");
            ++result[event.value("verb", "") + " " +
                     object.value("resource", event.value("requestURI", "")) +
                     (sub.empty() ? "" : "/" + sub)];
        }
        return result;
    }
    [[nodiscard]] std::filesystem::path work() const { return folder_.path() / "cluster"; }

private:
    static long long free_memory_bytes() {
        std::ifstream stream("/proc/meminfo");
        for (std::string line; std::getline(stream, line);)
            if (line.starts_with("MemAvailable:"))
                return std::strtoll(line.c_str() + 13, nullptr, 10) * 1024;
        return 0;
    }
    /// Its standard input is ours to hold: when this process is gone, however, the cluster ends.
    void begin(const std::vector<std::string>& argv) {
        int in[2], out[2];
        REQUIRE((pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0));
        const int err = open((folder_.path() / "start.err").c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        std::vector<char*> words;
        for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        process_ = fork();
        REQUIRE(process_ >= 0);
        if (process_ == 0) {
            for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
            if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err, 2) < 0 || setsid() < 0)
                _exit(126);
            execv(words[0], words.data());
            _exit(127);
        }
        close(in[0]);
        close(out[1]);
        close(err);
        to_ = in[1];
        from_ = out[0];
    }
    void tell(const std::string& line) {
        said_.clear();
        const std::string words = line + "\n";
        REQUIRE(write(to_, words.data(), words.size()) == static_cast<ssize_t>(words.size()));
        const bool done = hears("done", 90);
        INFO(line << ": " << said_ << read_file(folder_.path() / "start.err"));
        REQUIRE(done);
    }
    bool hears(const std::string& word, double within_seconds) {
        for (const auto start = std::chrono::steady_clock::now();
             seconds_since(start) < within_seconds;) {
            if (said_.find(word + "\n") != std::string::npos) return true;
            pollfd waiting{from_, POLLIN, 0};
            if (poll(&waiting, 1, 200) <= 0) continue;
            char bytes[256];
            const ssize_t got = read(from_, bytes, sizeof bytes);
            if (got <= 0) return false;
            said_.append(bytes, std::size_t(got));
        }
        return false;
    }

    TemporaryFolder folder_;
    std::string why_not_{};
    std::string broken_{};
    std::string kubectl_{};
    std::string said_{};
    int own_network_ = -1;
    pid_t process_ = -1;
    int to_ = -1;
    int from_ = -1;
};

}  // namespace servetune::test
