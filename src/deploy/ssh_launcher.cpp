// SPDX-License-Identifier: Apache-2.0
// Engines on another machine, by OpenSSH's client.
#include "base/variable_name.hpp"
#include "host/kept_output.hpp"
#include "launch_clients.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/error.hpp"
#include "ssh_scripts.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

using namespace std::chrono_literals;

constexpr int ssh_failed =
    255;  // ssh(1): the exit status of the remote command, or 255 if an error occurred
constexpr int cannot_be_run = 126;  // setsid(1)
constexpr int is_not_there = 127;
constexpr auto beat_every = 5s;

constexpr std::string_view answer_line = "servetune: ";
constexpr std::string_view all_answered = "servetune. all";

/// One item of `start_script`'s input, whatever line feeds are in it.
std::string item(char kind, std::string_view text) {
    std::string result(1, kind);
    for (const char c : text) {
        result += c;
        if (c == '\n') result += 'c';
    }
    return result + "\n";
}

std::string lines_of_file(const std::string& name, const std::string& content) {
    std::string result = item('f', name);
    for (std::size_t from = 0; from < content.size();) {
        const std::size_t end = std::min(content.find('\n', from), content.size());
        result += "l" + content.substr(from, end - from) + "\n";
        from = end + 1;
    }
    return result;
}

std::string whole(double seconds) {
    return std::to_string(static_cast<std::int64_t>(std::ceil(seconds)));
}

class SshLauncher : public Launcher {
public:
    explicit SshLauncher(SshOptions options) : options_(std::move(options)) {}

    [[nodiscard]] std::string name() const override { return "ssh"; }
    [[nodiscard]] bool on_this_machine() const override { return false; }
    [[nodiscard]] std::string listen_address() const override {
        return options_.address.empty() ? "127.0.0.1" : options_.address;
    }
    [[nodiscard]] std::string pinned(const std::string& /*image*/) const override { return {}; }
    [[nodiscard]] LaunchedAt place(const Launch& /*launch*/) const override {
        return {{}, listen_address()};
    }
    [[nodiscard]] Command shown(const LaunchRequest& request) const override {
        return request.command;
    }

    [[nodiscard]] std::string trouble(const std::string& /*image*/) const override {
        try {
            std::string missing;
            for (const std::string& tool : answers(tools_script, std::string(remote_tools) + "\n"))
                missing += (missing.empty() ? "" : ", ") + tool;
            return missing.empty() ? ""
                                   : "there is no " + missing + " on " + options_.host +
                                         "; engines are started with them";
        } catch (const IoError& error) {
            return error.what();
        }
    }

    [[nodiscard]] Launch launch(const LaunchRequest& request) const override {
        not_removed_.try_again([&](const std::string& name) { return removed(name); });
        Launch result;
        result.name = new_launch_name(label_here_of(request.mark));
        result.program = request.command.argv.front();
        result.beats = beat_every;
        std::vector<std::string> more{"-o", "ExitOnForwardFailure=yes"};
        if (const std::string port = std::to_string(request.port);
            options_.address.empty() && request.port != 0)
            more.insert(more.end(), {"-L", "127.0.0.1:" + port + ":127.0.0.1:" + port});
        result.argv = words({remote_command(start_script)}, more);
        std::string& told = result.told;
        told += item('s', label_here_of(request.mark)) + item('n', result.name) +
                item('u', whole(options_.unheard_within_seconds)) +
                item('p', whole(request.stop_within_seconds));
        std::map<std::string, std::string> environment = request.environment;
        if (!request.gpus.empty()) {
            environment["CUDA_VISIBLE_DEVICES"] = request.gpus;
            environment.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // as nvidia-smi counts
        }
        for (const auto& [variable, value] : environment) {
            if (const std::string why = wrong_with_variable(variable); !why.empty())
                throw UsageError("the engine's environment: " + why);
            told += item('e', variable + "=" + value);
        }
        for (const auto& [file, content] : request.command.files)
            told += lines_of_file(file, content);
        std::string cores;
        for (const int core : request.cores)
            cores += (cores.empty() ? "" : ",") + std::to_string(core);
        if (!cores.empty())
            told += item('w', "taskset") + item('w', "--cpu-list") + item('w', cores);
        for (const std::string& word : request.command.argv) told += item('w', word);
        told += "\n";
        return result;
    }

    /// The script over there ends the engine when we hang up, and then hands its last words and its
    /// exit code on.
    bool ask_to_end(const Launch& /*launch*/, Process& process) const override {
        process.hang_up();
        return true;
    }

    [[nodiscard]] std::optional<Failure> ended(
        const Launch& launch, int exit_code, const std::vector<std::string>& lines) const override {
        std::string all;
        for (const std::string& line : lines) all += line + "\n";
        const std::string last = complaint_in({.exit_code = exit_code, .output = all});
        if (exit_code == ssh_failed) {  // ssh does not always say why
            const auto tells = [&](std::string_view word) {
                return last.find(word) != std::string::npos;
            };
            const bool of_ssh = tells("ssh") || tells("ermission denied") || tells("onnection") ||
                                tells("ey verification");
            return Failure{FailureKind::infrastructure,
                           "the connection to " + options_.host +
                               " failed: " + (of_ssh ? last : "it was cut, or nobody answered")};
        }
        if (exit_code == remote_folder_failed)
            return Failure{FailureKind::infrastructure,
                           options_.host + " has no place for the engine's files: " + last};
        const bool not_started =
            all.find("setsid: ") != std::string::npos || all.find("taskset: ") != std::string::npos;
        if ((exit_code == cannot_be_run || exit_code == is_not_there) && not_started)
            return Failure{FailureKind::unsupported,
                           options_.host + " cannot start '" + launch.program + "': " + last};
        return std::nullopt;
    }

    std::string remove(const Launch& launch) const override {
        const std::string why = removed(launch.name);
        if (!why.empty()) not_removed_.add(launch.name);
        return why.empty() ? why : why + "\n";
    }
    [[nodiscard]] std::vector<std::string> leftovers(const std::string& mark) const override {
        return of_study("look", mark);
    }
    std::vector<std::string> end_leftovers(const std::string& mark) const override {
        return of_study("end", mark);
    }

private:
    [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& command,
                                                 const std::vector<std::string>& more = {}) const {
        std::vector<std::string> result =
            options_.program.empty() ? std::vector<std::string>{"ssh"} : options_.program;
        // A connection of its own, without a terminal, an agent or questions; nothing is said but
        // errors.
        std::vector<std::string> always{"-T", "-x", "-S", "none"};
        for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5",
                                   "ServerAliveCountMax=3", "LogLevel=ERROR", "RemoteCommand=none",
                                   "ForwardAgent=no", "SendEnv=-*"})
            always.insert(always.end(), {"-o", option});
        result.insert(result.end(), always.begin(), always.end());
        result.insert(result.end(), more.begin(), more.end());
        result.insert(result.end(), {"--", options_.host});
        result.insert(result.end(), command.begin(), command.end());
        return result;
    }

    [[nodiscard]] std::vector<std::string> of_study(const std::string& what,
                                                    const std::string& mark) const {
        if (mark.empty()) return {};
        return answers(find_script, what + "\nSERVETUNE_STUDY=" + label_here_of(mark) + "\n");
    }

    /// Ends what is left of a launch. Why it would not go; empty: nothing is left.
    [[nodiscard]] std::string removed(const std::string& name) const {
        std::string result;
        try {
            for (const std::string& left :
                 answers(find_script, "end\nSERVETUNE_LAUNCH=" + name + "\n"))
                result += (result.empty() ? "on " + options_.host + " process " : ", ") + left;
            return result.empty() ? result : result + " does not go, not even on KILL";
        } catch (const IoError& error) {
            return error.what();
        }
    }

    /// What a script answers to `told`, a line each. Throws IoError where it does not come to its
    /// end.
    [[nodiscard]] std::vector<std::string> answers(std::string_view script,
                                                   const std::string& told) const {
        ProcessOptions options;
        options.argv = words({remote_command(script)}, {"-o", "ClearAllForwardings=yes"});
        options.beats = 60s;
        options.told = told;
        Process process(options);
        constexpr auto patience = 60s;
        if (!process.wait(patience)) (void)process.end(1s);
        std::vector<std::string> result;
        std::string last = "it did not answer in time";
        for (const std::string& line : process.lines()) {
            if (line == all_answered) return result;
            if (line.starts_with(answer_line)) result.push_back(line.substr(answer_line.size()));
            last = line;
        }
        throw IoError("ssh to " + options_.host + " failed: " + last);
    }

    const SshOptions options_;
    mutable NotRemoved not_removed_{};
};

}  // namespace

std::string SshOptions::why_invalid() const {
    const auto is_plain = [](std::string_view text) {
        return !text.empty() && text.front() != '-' &&
               std::all_of(text.begin(), text.end(), [](unsigned char c) {
                   return c > ' ' && c != '\'' && c != '"' && c != 0x7f;
               });
    };
    OptionCheck check;
    check.that(
        is_plain(host), "host",
        "a name, user@name or a Host of ssh_config, without blanks and not beginning with '-'",
        "'" + host + "'");
    check.that(address.empty() || (is_plain(address) && address != "0.0.0.0" && address != "::"),
               "address", "one address of that machine, to which the load test can go",
               "'" + address + "'");
    check.that(program.empty() || !program.front().empty(), "program", "a program and its words",
               "an empty word");
    check.within("unheard_within_seconds", unheard_within_seconds, 10,
                 3600);  // two beats, and what the network needs
    return check.text();
}

std::shared_ptr<const Launcher> ssh_launcher(SshOptions options) {
    check_options("ssh", options.why_invalid());
    return std::make_shared<SshLauncher>(std::move(options));
}

}  // namespace servetune
