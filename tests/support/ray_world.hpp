// SPDX-License-Identifier: Apache-2.0
#pragma once

// A real Ray of two nodes in namespaces of its own (network, processes), with token authentication.
// Nothing of it is reachable from outside of this machine, and all of it ends with this object.

#include "support/container_world.hpp"
#include "support/real_engines.hpp"

#include "support/process.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

namespace servetune::test {

class RayWorld {
public:
    static constexpr const char* token = "0123456789abcdef0123456789abcdef";

    RayWorld() {
        const char* given = std::getenv("SERVETUNE_RAY");
        const std::filesystem::path ray =
            given != nullptr ? std::filesystem::path(given) : engines_folder / "ray/bin/ray";
        std::error_code none;
        if (!std::filesystem::exists(ray, none))
            why_not_ = "there is no " + ray.string() + "; scripts/get-ray fetches it";
        ip_ = access("/usr/sbin/ip", X_OK) == 0 ? "/usr/sbin/ip" : "/sbin/ip";
        if (access(ip_.c_str(), X_OK) != 0) why_not_ = "there is no ip (iproute2)";
        if (geteuid() != 0) why_not_ = "a network namespace needs root";
        if (!why_not_.empty()) return;
        for (const auto& words : std::vector<std::vector<std::string>>{
                 {"netns", "add", name_},
                 {"link", "add", near_, "type", "veth", "peer", "name", "far", "netns", name_},
                 {"addr", "add", net_ + "1/29", "dev", near_},
                 {"link", "set", near_, "up"},
                 {"-n", name_, "addr", "add", node(1) + "/29", "dev", "far"},
                 {"-n", name_, "addr", "add", node(2) + "/29", "dev", "far"},
                 {"-n", name_, "link", "set", "far", "up"},
                 {"-n", name_, "link", "set", "lo", "up"}})
            if (const Ran done = ip(words); done.code != 0) {
                (words.front() == "netns" ? why_not_ : broken_) =
                    "ip " + words.front() + ": " + done.err;
                return;
            }
        // Sizes are small: what runs here is no Python.
        const std::string common =
            " --num-cpus=2 --object-store-memory=80000000 --disable-usage-stats";
        folder_.write("start", "export PATH=" + ray.parent_path().string() +
                                   ":$PATH RAY_AUTH_MODE=token RAY_AUTH_TOKEN=" + token +
                                   " RAY_USAGE_STATS_ENABLED=0 OF_THE_NODE=inherited\n" +
                                   "ray start --head --node-ip-address=" + node(1) +
                                   " --port=6399 --dashboard-host=" + node(1) +
                                   " --dashboard-port=8265 --num-gpus=2 --temp-dir=" +
                                   folder_.path().string() + "/r" + common + "\n" +
                                   "ray start --address=" + node(1) + ":6399 --node-ip-address=" +
                                   node(2) + " --dashboard-agent-listen-port=52366 --num-gpus=2" +
                                   common + "\nexec sleep infinity\n");
        ProcessOptions options;
        options.argv = {ip_,
                        "netns",
                        "exec",
                        name_,
                        "/usr/bin/unshare",
                        "--pid",
                        "--fork",
                        "--mount-proc",
                        "--kill-child",
                        "/bin/bash",
                        (folder_.path() / "start").string()};
        options.folder = folder_.path();
        options.log = folder_.path() / "ray.log";
        processes_ = std::make_unique<Process>(options);
        constexpr double start_seconds = 120;  // 5 to 14 s were seen for one node
        const bool ready = comes_true(
            [&] {
                const std::string told =
                    ran({"/usr/bin/env", "curl", "--silent", "--max-time", "5", "--header",
                         std::string("Authorization: Bearer ") + token,
                         address() + "/nodes?view=summary"},
                        folder_.path())
                        .out;
                std::size_t alive = 0;
                for (auto at = told.find("\"ALIVE\""); at != std::string::npos;
                     at = told.find("\"ALIVE\"", at + 1))
                    ++alive;
                return alive >= 2;
            },
            start_seconds);
        if (!ready) broken_ = "its two nodes do not come: " + text_of_file(options.log);
    }
    ~RayWorld() {
        if (processes_)
            (void)processes_->end(std::chrono::milliseconds(100));  // unshare does not hear TERM
        processes_.reset();
        (void)ip({"netns", "delete", name_});
        (void)ip({"link", "delete", near_});
    }
    RayWorld(const RayWorld&) = delete;
    RayWorld& operator=(const RayWorld&) = delete;

    /// False, and said so (ctest looks for this line to call the test skipped), where it cannot
    /// run. Where it should run and does not, the test fails.
    [[nodiscard]] bool works() const {
        if (!broken_.empty()) FAIL(broken_);
        if (why_not_.empty()) return true;
        WARN("skipped: Ray does not run here: " << why_not_);
        return false;
    }
    [[nodiscard]] std::string address() const { return "http://" + node(1) + ":8265"; }
    /// 1: the head's.
    [[nodiscard]] std::string node(int number) const { return net_ + std::to_string(1 + number); }
    /// Ray's own processes of a node, not what runs in its jobs.
    void kill_raylet(int number) const {
        kill_those({"raylet/raylet", "node_ip_address=" + node(number)});
    }
    void kill_head() const {
        kill_those({"gcs/gcs_server", folder_.path().string()});
        kill_those({"ray::DashboardHead"});
        kill_those({"dashboard/dashboard.py", folder_.path().string()});
    }

private:
    static std::string text_of_file(const std::filesystem::path& file) {
        std::ifstream stream(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    /// Processes of these namespaces whose words hold all of `parts`.
    void kill_those(const std::vector<std::string>& parts) const {
        std::error_code none;
        const auto ours = std::filesystem::read_symlink(
            "/proc/" + std::to_string(processes_->id()) + "/ns/net", none);
        for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
            const std::string id = process.path().filename();
            if (id.find_first_not_of("0123456789") != std::string::npos) continue;
            if (std::filesystem::read_symlink(process.path() / "ns/net", none) != ours) continue;
            const std::string words = text_of_file(process.path() / "cmdline");
            bool all = true;
            for (const std::string& part : parts)
                all = all && words.find(part) != std::string::npos;
            if (all) kill(std::stoi(id), SIGKILL);
        }
    }
    [[nodiscard]] Ran ip(std::vector<std::string> words) const {
        words.insert(words.begin(), ip_);
        return ran(words, folder_.path());
    }

    TemporaryFolder folder_;
    std::string ip_;
    const std::string name_ = "servetune-ray-" + std::to_string(getpid());
    const std::string near_ = "sr" + std::to_string(getpid() % 1000000);
    // A test that was killed leaves its network behind: the next one has another.
    const std::string net_ = "10.214." + std::to_string(getpid() % 250) + ".";
    std::unique_ptr<Process> processes_;
    std::string why_not_;
    std::string broken_;
};

}  // namespace servetune::test
