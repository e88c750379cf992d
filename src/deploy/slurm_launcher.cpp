// SPDX-License-Identifier: Apache-2.0
// Engines as jobs of Slurm, by srun in the foreground.
#include "host/kept_output.hpp"
#include "host/start_program.hpp"
#include "hub_tokens.hpp"
#include "job_launcher.hpp"
#include "launch_clients.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/error.hpp"
#include "takes_connection.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A job as squeue tells of it. States: squeue(1), JOB STATE CODES.
struct Job {
    std::string id, name, state, reason, node;
    [[nodiscard]] bool waits() const {
        return state == "PENDING" || state == "CONFIGURING" || state == "REQUEUED";
    }
    [[nodiscard]] bool is_there() const {
        constexpr std::array<std::string_view, 9> alive{"PENDING",    "CONFIGURING", "RUNNING",
                                                        "COMPLETING", "SUSPENDED",   "STAGE_OUT",
                                                        "SIGNALING",  "RESIZING",    "STOPPED"};
        return std::find(alive.begin(), alive.end(), state) != alive.end();
    }
};

/// Between the fields of a line; in no state, reason or name of a node.
constexpr char between = '|';
constexpr const char* job_format = "--format=%i|%j|%T|%r|%N";

std::vector<Job> jobs_in(const std::string& output) {
    std::vector<Job> result;
    for (const std::string& line : lines_of(output)) {
        std::vector<std::string> fields(1);
        for (const char c : line)
            if (c == between) fields.emplace_back();
            else fields.back() += c;
        if (fields.size() == 5)
            result.push_back({fields[0], fields[1], fields[2], fields[3], fields[4]});
    }
    return result;
}

/// `Name=value` of a line of scontrol; the first one of that name.
std::string field_in(const std::string& line, const std::string& name) {
    const auto at = (" " + line).find(" " + name + "=");
    if (at == std::string::npos) return {};
    const auto from = at + name.size() + 1;
    return line.substr(from, line.find_first_of(" \n", from) - from);
}

/// What the machine did to a job, by its state, or by the reason that squeue gives while it is
/// still being cleaned up.
std::optional<Failure> of_machine(const std::string& job, std::string_view state) {
    constexpr std::string_view out_of_time =
        "ran into its time limit: give it more with --time among the `options` of `slurm`, "
        "and run again with --accept-changes";
    static const std::map<std::string_view, std::string_view> known{
        {"PREEMPTED", "was preempted by another job"},
        {"NODE_FAIL", "lost its node"},
        {"BOOT_FAIL", "got a node that did not boot"},
        {"TIMEOUT", out_of_time},
        {"DEADLINE", "ran into its deadline"},
        {"REVOKED", "was revoked"},
        {"CANCELLED", "was cancelled by somebody"},
        {"TimeLimit", out_of_time},
        {"NodeDown", "lost its node"},
        {"Preempted", "was preempted by another job"},
        {"Prolog", "got a node whose prolog failed"},
        {"JobLaunchFailure", "could not be started on its node"},
        {"RaisedSignal:53(Real-time_signal_19)", "got a node whose prolog failed"}};
    if (state == "OUT_OF_MEMORY" || state == "OutOfMemory")
        return Failure{FailureKind::out_of_memory,
                       job + " was killed for want of memory: see --mem"};
    const auto found = known.find(state);
    if (found == known.end()) return std::nullopt;
    return Failure{FailureKind::infrastructure, job + " " + std::string(found->second)};
}

/// `env` and what it takes away: a client of Slurm takes options from its environment too, and
/// inside of a job srun would only start a step of that job. Slurm's own programs are looked for in
/// this program's PATH, not in the engine's.
std::vector<std::string> client(const std::string& program) {
    const auto file = find_program(program);
    const auto env = find_program("env");
    if (file.empty() || env.empty())
        throw IoError("there is no program '" + program + "' in $PATH to start jobs with");
    std::vector<std::string> words{env.string()};
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::string called(text.substr(0, text.find('=')));
        for (const char* beginning : {"SLURM_", "SRUN_", "SQUEUE_", "SCANCEL_", "SCONTROL_"})
            if (called.starts_with(beginning) && called != "SLURM_CONF")
                words.push_back("--unset=" + called);
    }
    words.push_back(file.string());
    return words;
}

class SlurmLauncher : public JobLauncher {
public:
    explicit SlurmLauncher(SlurmOptions options) : options_(std::move(options)) {}

    [[nodiscard]] std::string name() const override { return "slurm"; }
    [[nodiscard]] std::string listen_address() const override { return options_.listen; }

    [[nodiscard]] std::string trouble(const std::string& /*image*/) const override {
        try {
            for (const char* program : {"srun", "squeue", "scancel"}) (void)client(program);
            const RanCommand command = ask("scontrol", {"ping"});
            return command.exit_code == 0
                       ? ""
                       : "Slurm's controller does not answer: " + complaint_in(command);
        } catch (const IoError& error) {
            return error.what();
        }
    }

    [[nodiscard]] Launch launch(const LaunchRequest& request) const override {
        end_earlier();
        Launch result;
        result.environment = request.environment;
        hand_on_hub_tokens(result.environment);
        result.environment.erase("CUDA_VISIBLE_DEVICES");  // Slurm says which devices the job has
        for (const auto& [variable, value] : result.environment)
            if (variable.starts_with("SLURM_") || variable.starts_with("SRUN_"))
                throw UsageError("the engine's environment has '" + variable +
                                 "', which would change srun itself; use `options` of `slurm`");
        result.name = new_launch_name(label_here_of(request.mark));
        result.program = request.command.argv.front();
        result.argv = client("srun");
        const auto add = [&](const std::vector<std::string>& words) {
            result.argv.insert(result.argv.end(), words.begin(), words.end());
        };
        add(options_.options);
        add({"--job-name=" + result.name, "--nodes=1", "--ntasks=1",
             "--input=none"});  // the last one of two counts
        if (request.devices > 0 && !options_.gres.empty())
            add({"--gres=" + options_.gres + ":" + std::to_string(request.devices)});
        add(request.command.argv);
        return result;
    }

    [[nodiscard]] LaunchedAt place(const Launch& launch) const override {
        const auto job = job_of(launch.name);
        if (!job) {
            const std::scoped_lock lock(mutex_);
            const auto since = asked_since_.emplace(launch.name, Clock::now()).first->second;
            if (Clock::now() - since > 60s)
                throw IoError(
                    "srun runs, but squeue has shown no job " + launch.name +
                    " for a minute; look for `options` of `slurm` that lead to another cluster");
            return {"the job is being submitted", {}};
        }
        if (job->waits()) return {"job " + job->id + " waits in Slurm's queue: " + job->reason, {}};
        if (job->node.empty()) return {};  // it has ended already
        const std::string address = field_in(told_of_node(job->node), "NodeAddr");
        if (address.empty())
            throw IoError("Slurm does not say the address of the node " + job->node);
        return {{}, address};
    }

    bool ask_to_end(const Launch& launch, Process& /*process*/) const override {
        (void)ask("scancel", {"--name=" + launch.name});
        return true;
    }

    [[nodiscard]] std::optional<Failure> lost(const Launch& launch) const override {
        try {
            const auto job = job_of(launch.name);
            if (!job) return std::nullopt;
            const std::string called = "job " + job->id;
            if (job->state == "SUSPENDED" || job->state == "STOPPED")
                return Failure{FailureKind::infrastructure,
                               called + " is held by Slurm: " + job->state};
            for (const std::string& word : {job->state, job->reason})
                if (auto known = of_machine(called, word)) return known;
            if (job->node.empty()) return std::nullopt;
            const std::string node = told_of_node(job->node);
            const std::string state = field_in(node, "State");
            const std::string port = port_in(node);
            if (state.find("DOWN") != std::string::npos ||
                state.find("NOT_RESPONDING") != std::string::npos ||
                (!port.empty() && !takes_connection(field_in(node, "NodeAddr"), port)))
                return Failure{FailureKind::infrastructure,
                               "the node " + job->node + " of " + called + " does not answer"};
        } catch (const IoError& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<Failure> ended(
        const Launch& launch, int /*exit_code*/,
        const std::vector<std::string>& lines) const override {
        for (const std::string& line : lines)
            if (line.find("error: execve(): ") != std::string::npos)
                return Failure{FailureKind::unsupported,
                               "the node cannot start '" + launch.program + "': " + line};
        try {
            auto job = job_of(launch.name);
            const std::string called = job ? "job " + job->id : "the job";
            // The step's words come first; the job's last state follows.
            for (const std::string& line : lines)
                for (const auto& [words, state] :
                     {std::pair(" DUE TO TIME LIMIT", "TIMEOUT"),
                      std::pair(" DUE TO PREEMPTION", "PREEMPTED"),
                      std::pair(" DUE TO NODE FAILURE", "NODE_FAIL"),
                      std::pair("error: Node failure on ", "NODE_FAIL")})
                    if (line.find(words) != std::string::npos) return of_machine(called, state);
            for (const auto until = Clock::now() + 30s;
                 job && job->is_there() && Clock::now() < until; job = job_of(launch.name)) {
                if (auto known = of_machine(called, job->reason)) return known;
                std::this_thread::sleep_for(100ms);
            }
            if (job)
                for (const std::string& word : {job->state, job->reason})
                    if (auto known = of_machine(called, word)) return known;
            for (
                const std::string& line :
                lines)  // `srun: error: n1: task 0: Exited with exit code 7` is the engine's own end
                if (line.starts_with("srun: error: ") && line.find(": task ") == std::string::npos)
                    return Failure{FailureKind::infrastructure,
                                   "Slurm did not run the job: " + line};
        } catch (const IoError& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
        return std::nullopt;
    }

private:
    [[nodiscard]] std::vector<JobLeft> jobs_left(const std::string& mark) const override {
        std::vector<JobLeft> result;
        if (mark.empty()) return result;
        for (const Job& job :
             jobs_in(told("squeue", {"--noheader", "--all", "--user=" + std::to_string(geteuid()),
                                     job_format})))
            if (job.name.starts_with("servetune-" + label_here_of(mark) + "-"))
                result.push_back({job.name, text_of(job)});
        return result;
    }
    static std::string text_of(const Job& job) {
        return "job " + job.id + " (" + job.name + ") " + job.state +
               (job.node.empty() ? "" : " on " + job.node);
    }
    static RanCommand ask(const std::string& program, const std::vector<std::string>& words) {
        std::vector<std::string> all = client(program);
        all.insert(all.end(), words.begin(), words.end());
        return ask_client(std::move(all), "start jobs");
    }

    /// Again and again for a while, as a controller that is being restarted answers soon.
    static std::string told(const std::string& program, const std::vector<std::string>& words) {
        const auto until = Clock::now() + 30s;
        for (auto wait = 100ms;; wait = std::min(2 * wait, std::chrono::milliseconds(5000))) {
            const RanCommand command = ask(program, words);
            if (command.end == RanCommand::End::exited && command.exit_code == 0)
                return command.output;
            if (Clock::now() > until)
                throw IoError("Slurm does not answer (" + program + "): " + complaint_in(command));
            std::this_thread::sleep_for(wait);
        }
    }
    static std::optional<Job> job_of(const std::string& name) {
        auto jobs = jobs_in(
            told("squeue", {"--noheader", "--all", "--states=all", "--name=" + name, job_format}));
        return jobs.empty() ? std::nullopt : std::optional(std::move(jobs.front()));
    }
    static std::string told_of_node(const std::string& node) {
        return told("scontrol", {"show", "node", node, "--oneliner"});
    }

    /// The port of a node's slurmd; empty: not known. A node tells it only where it is not the
    /// cluster's.
    static std::string port_in(const std::string& node) {
        std::string port = field_in(node, "Port");
        if (!port.empty()) return port;
        for (const std::string& line : lines_of(told("scontrol", {"show", "config"})))
            if (line.starts_with("SlurmdPort"))
                for (const char c : line)
                    if (c >= '0' && c <= '9') port += c;
        return port;
    }

    /// Cancels it and waits. Why it would not go, after twice the time that clusters give a deaf
    /// one (KillWait, 30 s by default); empty: it is gone.
    [[nodiscard]] std::string removed(const std::string& name) const override {
        try {
            std::optional<Job> job = job_of(name);
            if (!job || !job->is_there()) return {};
            (void)ask("scancel", {job->id});
            const auto until = Clock::now() + 60s;
            for (auto wait = 20ms; job && job->is_there(); job = job_of(name)) {
                if (Clock::now() > until) return "it would not go: " + text_of(*job);
                std::this_thread::sleep_for(wait);
                wait = std::min(2 * wait, std::chrono::milliseconds(500));
            }
            return {};
        } catch (const IoError& error) {
            return "the job " + name + " may be left: " + error.what();
        }
    }

    mutable std::mutex mutex_{};
    mutable std::map<std::string, Clock::time_point>
        asked_since_{};  ///< jobs that nobody has seen yet
    const SlurmOptions options_;
};

}  // namespace

std::string SlurmOptions::why_invalid() const {
    // What would take the job out of sight, or its output; srun takes beginnings of long names too.
    constexpr std::array<std::string_view, 9> ours{"--job-name", "--input",  "--ntasks",
                                                   "--nodes",    "--gres",   "--output",
                                                   "--error",    "--export", "--clusters"};
    constexpr std::string_view our_letters = "JNnioeM";
    OptionCheck check;
    check.that(!listen.empty() && listen.front() != '-' && listen.find(' ') == std::string::npos,
               "listen",
               "the address of a node that the engine listens on, 0.0.0.0 for all of them, as the "
               "load test comes from this machine",
               listen.empty() ? "none" : "'" + listen + "'");
    for (const std::string& word : options) {
        const std::string called = word.substr(0, word.find('='));
        constexpr std::size_t shortest = 4;
        const bool is_long = word.starts_with("--") && called.size() >= shortest &&
                             std::none_of(ours.begin(), ours.end(), [&](std::string_view one) {
                                 return one.starts_with(called);
                             });
        const bool is_letter = word.size() >= 2 && word.front() == '-' && word[1] != '-' &&
                               our_letters.find(word[1]) == std::string::npos;
        check.that(is_long || is_letter, "options",
                   "options of srun in one word each, such as --partition=gpu, other than those "
                   "that this program sets",
                   "'" + word + "'");
    }
    check.that(gres.find_first_of(" ,") == std::string::npos, "gres",
               "the name of the devices, such as gpu or gpu:h100", "'" + gres + "'");
    return check.text();
}

std::shared_ptr<const Launcher> slurm_launcher(SlurmOptions options) {
    check_options("slurm", options.why_invalid());
    return std::make_shared<SlurmLauncher>(std::move(options));
}

}  // namespace servetune
