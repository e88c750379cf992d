// SPDX-License-Identifier: Apache-2.0
#pragma once

// A cluster of Slurm on this machine: a controller, and nodes of two cores and two devices each,
// that are no GPUs.

#include "support/container_world.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "servetune/detail/host/port.hpp"
#include "servetune/detail/host/process.hpp"
#include "support/waiting.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <list>
#include <map>

namespace servetune::test {

class SlurmWorld {
public:
    explicit SlurmWorld(int nodes, const std::string& more_settings = "") : nodes_(nodes) {
        for (const char* name : {"slurmctld", "slurmd", "munged", "srun"})
            if (program_anywhere(name).empty()) why_not_ = std::string("there is no ") + name;
        if (geteuid() != 0) why_not_ = "slurmd needs root";
        if (!why_not_.empty()) return;
        const std::string at = folder_.path().string();
        std::ofstream key(at + "/munge.key", std::ios::binary);
        for (int i = 0; i < 1024; ++i) key.put(static_cast<char>(i * 37));
        key.close();
        std::filesystem::permissions(at + "/munge.key", std::filesystem::perms::owner_read);
        // An engine on the same machine would be found by the marks in its environment; on a node
        // it could not be.
        std::filesystem::permissions(
            folder_.write("prolog",
                          "#!/bin/sh\necho unset SERVETUNE_STUDY\necho unset SERVETUNE_GROUP\n"),
            std::filesystem::perms::owner_all);
        for (const char* name : {"gpu0", "gpu1"})
            (void)mknod((at + "/" + name).c_str(), S_IFCHR | 0600, makedev(1, 3));
        const std::string last = std::to_string(nodes);
        folder_.write("gres.conf",
                      "NodeName=n[1-" + last + "] Name=gpu File=" + at + "/gpu[0-1]\n");
        std::string host = ran({"/bin/hostname"}, folder_.path()).out;
        host = host.substr(0, host.find('\n'));
        const auto free_port = [this] { return std::to_string(ports_.emplace_back().number()); };
        std::string node_lines;
        for (int node = 1; node <= nodes; ++node)
            node_lines += "NodeName=n" + std::to_string(node) + " NodeHostname=" + host +
                          " NodeAddr=127.0.0.1 Port=" + free_port() +
                          " CPUs=2 RealMemory=1000 Gres=gpu:2\n";
        folder_.write(
            "slurm.conf",
            "ClusterName=test\nSlurmctldHost=" + host +
                "(127.0.0.1)\nSlurmUser=root\nAuthType=auth/munge\nCryptoType=crypto/"
                "munge\nAuthInfo=socket=" +
                at +
                "/munge.sock\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/"
                "none\nMpiDefault=none\n"
                "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/"
                "none\n"
                "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSwitchType=switch/"
                "none\nSlurmctldPort=" +
                free_port() + "\nStateSaveLocation=" + at + "/state\nSlurmdSpoolDir=" + at +
                "/spool-%n\nSlurmctldPidFile=" + at + "/controller.pid\nSlurmdPidFile=" + at +
                "/node-%n.pid\nReturnToService=2\nSlurmdParameters=config_overrides\nGresTypes="
                "gpu\nKillWait=5\n"
                "TaskProlog=" +
                at + "/prolog\n" + more_settings + node_lines +
                "PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1\n"
                "PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2\n");
        for (const char* folder : {"state"})
            std::filesystem::create_directories(folder_.path() / folder);
        setenv("SLURM_CONF", (at + "/slurm.conf").c_str(), 1);
        start("munged", {"--force", "--foreground", "--socket", at + "/munge.sock", "--key-file",
                         at + "/munge.key", "--pid-file", at + "/munge.pid", "--seed-file",
                         at + "/munge.seed", "--log-file", at + "/munge.log"});
        (void)comes_true([&] { return std::filesystem::exists(at + "/munge.sock"); });
        start_controller({"-c"});
        for (int node = 1; node <= nodes; ++node) start_node(node);
        const std::string all = std::to_string(nodes) + "\n";
        if (!comes_true([&] {
                return asked({"sinfo", "--noheader", "--partition=low", "--states=idle",
                              "--format=%D"}) == all;
            }))
            why_not_ = "its nodes do not become idle: " + asked({"scontrol", "show", "node", "n1"});
    }
    ~SlurmWorld() {
        for (auto& [name, process] : processes_)
            if (name != "munged") (void)process->end(std::chrono::seconds(5));
        for (int node = 1; node <= nodes_; ++node)
            kill_jobs_on("n" + std::to_string(node));  // no daemon ends them any more
        processes_.clear();
        unsetenv("SLURM_CONF");
    }
    SlurmWorld(const SlurmWorld&) = delete;
    SlurmWorld& operator=(const SlurmWorld&) = delete;

    [[nodiscard]] bool works() const {
        if (why_not_.empty()) return true;
        WARN("skipped: Slurm does not run here: " << why_not_);
        return false;
    }
    [[nodiscard]] std::string asked(std::vector<std::string> words) const {
        words.front() = program_anywhere(words.front());
        return ran(words, folder_.path()).out;
    }
    void start_controller(std::vector<std::string> words = {}) {
        words.insert(words.begin(), "-D");
        start("slurmctld", words);
    }
    void start_node(int number) {
        const std::string name = "n" + std::to_string(number);
        std::filesystem::create_directories(folder_.path() / ("spool-" + name));
        start("slurmd", {"-D", "-N", name}, name);
    }
    void kill_controller() { kill_it("slurmctld"); }
    /// Its daemon, and everything that runs on it: as if the machine were gone.
    void kill_node(int number) {
        const std::string name = "n" + std::to_string(number);
        kill_it(name);
        kill_jobs_on(name);
    }
    [[nodiscard]] int nodes() const { return nodes_; }

private:
    void kill_jobs_on(const std::string& name) const {
        std::error_code none;
        for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
            std::ifstream stream(process.path() / "environ", std::ios::binary);
            const std::string environment =
                "\0" + std::string(std::istreambuf_iterator<char>(stream), {});
            if (environment.find(std::string("\0SLURMD_NODENAME=", 17) + name + '\0') ==
                    std::string::npos ||
                environment.find(folder_.path().string()) == std::string::npos)
                continue;
            const std::string id = process.path().filename();
            std::ifstream status(process.path() / "stat");
            const std::string words{std::istreambuf_iterator<char>(status), {}};
            const int parent = words.empty() ? 0 : std::stoi(words.substr(words.rfind(')') + 4));
            kill(std::stoi(id), SIGKILL);
            std::ifstream called("/proc/" + std::to_string(parent) + "/comm");
            std::string parents_name;
            if (std::getline(called, parents_name) && parents_name == "slurmstepd")
                kill(parent, SIGKILL);
        }
    }
    static std::string program_anywhere(const std::string& name) {
        for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
            if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
        return {};
    }
    void start(const std::string& program, std::vector<std::string> words,
               const std::string& called = "") {
        words.insert(words.begin(), program_anywhere(program));
        ProcessOptions options;
        options.argv = std::move(words);
        options.folder = folder_.path();
        options.log = folder_.path() / ((called.empty() ? program : called) + ".log");
        processes_[called.empty() ? program : called] = std::make_unique<Process>(options);
    }
    void kill_it(const std::string& name) {
        kill(processes_.at(name)->id(), SIGKILL);
        (void)processes_.at(name)->end(std::chrono::seconds(1));
        processes_.erase(name);
    }

    TemporaryFolder folder_;
    int nodes_;
    std::list<ReservedPort> ports_;
    std::map<std::string, std::unique_ptr<Process>> processes_;
    std::string why_not_;
};

}  // namespace servetune::test
