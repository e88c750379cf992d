// SPDX-License-Identifier: Apache-2.0
#pragma once

// OpenSSH's server in a network namespace of its own: another machine, as far as the network goes.

#include "support/container_world.hpp"
#include "support/elsewhere.hpp"

namespace servetune::test {

class SshWorld {
public:
    static constexpr const char* host = "other-machine";

    SshWorld() {
        for (const char* name : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"})
            if (access(name, X_OK) != 0) why_not_ = std::string("there is no ") + name;
        ip_ = access("/usr/sbin/ip", X_OK) == 0 ? "/usr/sbin/ip" : "/sbin/ip";
        if (access(ip_.c_str(), X_OK) != 0) why_not_ = "there is no ip (iproute2)";
        if (geteuid() != 0) why_not_ = "a network namespace needs root";
        if (!why_not_.empty()) return;
        const std::string at = folder_.path().string();
        for (const auto& words : std::vector<std::vector<std::string>>{
                 {"netns", "add", name_},
                 {"link", "add", near_, "type", "veth", "peer", "name", "far", "netns", name_},
                 {"addr", "add", near_address_ + "/30", "dev", near_},
                 {"link", "set", near_, "up"},
                 {"-n", name_, "addr", "add", far_address_ + "/30", "dev", "far"},
                 {"-n", name_, "link", "set", "far", "up"},
                 {"-n", name_, "link", "set", "lo", "up"}})
            if (const Ran done = ip(words); done.code != 0) {
                why_not_ = "ip " + words.front() + ": " + done.err;
                return;
            }
        for (const char* key : {"host_key", "user_key"})
            (void)ran(
                {"/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at + "/" + key},
                folder_.path());
        const std::string public_key = read_text(folder_.path() / "host_key.pub");
        folder_.write("known_hosts", far_address_ + " " + public_key);
        folder_.write("authorized_keys", read_text(folder_.path() / "user_key.pub"));
        folder_.write("sshd_config", "Port 22\nListenAddress " + far_address_ + "\nHostKey " + at +
                                         "/host_key\nAuthorizedKeysFile " + at +
                                         "/authorized_keys\nStrictModes no\nUsePAM "
                                         "no\nPasswordAuthentication no\nPermitRootLogin yes\n"
                                         "PidFile none\nMaxStartups 50\n");
        folder_.write("ssh_config", std::string("Host ") + host + "\n  HostName " + far_address_ +
                                        "\n  User root\n  IdentityFile " + at +
                                        "/user_key\n  IdentitiesOnly yes\n  UserKnownHostsFile " +
                                        at + "/known_hosts\n  StrictHostKeyChecking yes\n");
        std::filesystem::create_directories("/run/sshd");
        ProcessOptions options;
        options.argv = {
            ip_, "netns", "exec", name_, "/usr/sbin/sshd", "-D", "-e", "-f", at + "/sshd_config"};
        options.folder = folder_.path();
        server_ = std::make_unique<Process>(options);
        if (!comes_true([&] { return launcher_with("ssh", settings())->trouble("").empty(); }))
            why_not_ = launcher_with("ssh", settings())->trouble("");
    }
    ~SshWorld() {
        server_.reset();
        (void)ip({"netns", "delete", name_});
        (void)ip({"link", "delete", near_});
    }
    SshWorld(const SshWorld&) = delete;
    SshWorld& operator=(const SshWorld&) = delete;

    [[nodiscard]] bool works() const {
        if (why_not_.empty()) return true;
        WARN("skipped: no ssh server runs here: " << why_not_);
        return false;
    }
    /// Of `ssh`, with another user where one is named.
    [[nodiscard]] std::vector<std::string> settings(const std::string& user = "") const {
        return {"host " + user + host, "program ssh", "program -F", "program " + config(),
                "unheard_within 10"};
    }
    [[nodiscard]] std::string config() const { return (folder_.path() / "ssh_config").string(); }
    [[nodiscard]] const std::string& address() const { return far_address_; }
    /// The cable: out, in.
    void connect(bool connected) const {
        (void)ip({"link", "set", near_, connected ? "up" : "down"});
    }

private:
    [[nodiscard]] Ran ip(std::vector<std::string> words) const {
        words.insert(words.begin(), ip_);
        return ran(words, folder_.path());
    }
    static std::string read_text(const std::filesystem::path& file) {
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    TemporaryFolder folder_;
    std::string ip_;
    const std::string name_ = "servetune-" + std::to_string(getpid());
    const std::string near_ = "st" + std::to_string(getpid() % 1000000);
    // A test that was killed leaves its network behind: the next one has another.
    const std::string net_ = "10.213." + std::to_string(getpid() % 250) + ".";
    const std::string near_address_ = net_ + "1";
    const std::string far_address_ = net_ + "2";
    std::unique_ptr<Process> server_;
    std::string why_not_;
};

}  // namespace servetune::test
