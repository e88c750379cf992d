// SPDX-License-Identifier: Apache-2.0
// A kubectl without a cluster, for tests: a folder is the API server, and the one container of each
// Job's pod is a process of this machine, that knows nothing of who started it. It answers in the
// words of kubectl 1.37, as far as the launcher asks.
//
// fake_kubectl --cluster=FOLDER WORDS. In the folder:
//   calls            each call's words, a line each
//   down             while it is there, nobody answers, and what runs on is cut off
//   forbidden        the same, with the words of an API server that has just begun
//   pending          while it is there, pods wait; its content is the scheduler's message
//   waiting          while it is there, containers wait; its content is the reason
//   refusing         while it is there, nobody listens behind a port-forward
//   stuck            while it is there, no pod that is deleted goes, and nobody waits long for one
//   jobs/NAME        of each Job: `job` and `pod` as JSON, `log` with a time before each line,
//                    `deleted` once it is to go, `disrupted` (a reason) by the test; `files`
#include "fake_kubectl_jobs.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace fake_kubectl;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

[[noreturn]] void end_with(const std::string& complaint, int code = 1) {
    std::cout.flush();
    std::cerr << complaint << std::endl;
    _exit(code);
}

void must_answer() {
    if (fs::exists(cluster / "down"))
        end_with(
            "The connection to the server 192.0.2.1:6443 was refused - did you specify the right "
            "host or port?");
    if (fs::exists(cluster / "forbidden"))
        end_with(
            "Error from server (Forbidden): pods is forbidden: User \"tuner\" cannot list resource "
            "\"pods\" in API group \"\"");
}

/// RFC 3339 with nanoseconds, as a container's log has it.
std::string now_text() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    std::array<char, 64> text{};
    const auto length = strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::snprintf(text.data() + length, text.size() - length, ".%09ldZ", now.tv_nsec);
    return text.data();
}

/// The words of a call.
struct Words {
    std::vector<std::string> plain{};
    std::map<std::string, std::string> options{};
    [[nodiscard]] bool has(const std::string& name) const { return options.contains(name); }
    [[nodiscard]] std::string option(const std::string& name) const {
        return has(name) ? options.at(name) : "";
    }
    [[nodiscard]] std::string word(std::size_t i) const { return i < plain.size() ? plain[i] : ""; }
};

/// The engine: the Job's first container as a process.
class Node {
public:
    explicit Node(const Job& job) : job_(job) {}

    void run() {
        while (fs::exists(cluster / "pending") && !ending()) {
            job_.set("Pending", nullptr, content(cluster / "pending"));
            std::this_thread::sleep_for(10ms);
        }
        while (fs::exists(cluster / "waiting") && !ending()) {
            job_.set(
                "Pending",
                {{"waiting",
                  {{"reason", content(cluster / "waiting")}, {"message", "as the test says"}}}});
            std::this_thread::sleep_for(10ms);
        }
        if (!ending()) start();
        while (fs::exists(cluster / "stuck")) std::this_thread::sleep_for(10ms);
        while (!ending()) std::this_thread::sleep_for(10ms);
        std::this_thread::sleep_for(
            300ms);  // the finalizer of the Job keeps a pod until it is counted
        std::error_code gone;
        fs::remove(job_.file("pod"), gone);
        while (!fs::exists(job_.file("deleted")) && fs::exists(cluster))
            std::this_thread::sleep_for(10ms);
        fs::remove_all(job_.file("job").parent_path(), gone);
    }

private:
    /// The folder may be gone too: then the test has ended.
    [[nodiscard]] bool ending() const {
        return !job_.is_there() || fs::exists(job_.file("deleted")) ||
               !content(job_.file("disrupted")).empty();
    }

    /// `$(NAME)` of a known variable is its value, `$$` is `$` (API reference, Container.command).
    [[nodiscard]] static std::string expanded(const std::string& word,
                                              const std::map<std::string, std::string>& known) {
        std::string result;
        for (std::size_t i = 0; i < word.size(); ++i) {
            const auto end = word.find(')', i);
            if (word.compare(i, 2, "$$") == 0) result += word[i++];
            else if (word.compare(i, 2, "$(") == 0 && end != std::string::npos &&
                     known.contains(word.substr(i + 2, end - i - 2))) {
                result += known.at(word.substr(i + 2, end - i - 2));
                i = end;
            } else result += word[i];
        }
        return result;
    }

    void start() {
        const Json job = job_.manifest();
        if (!job.is_object()) return;
        const Json& container = job.at("spec").at("template").at("spec").at("containers")[0];
        std::map<std::string, std::string> environment{
            {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            {"HOME", "/root"}};
        for (const Json& one : container.value("env", Json::array()))
            environment[one.at("name")] = expanded(one.value("value", ""), environment);
        std::vector<std::string> words;
        job_.write_files();
        for (const Json& word : container.at("command")) {
            words.push_back(expanded(word, environment));
            const std::string mount = "/run/servetune";
            for (auto at = words.back().find(mount); at != std::string::npos;
                 at = words.back().find(mount, at + 1))
                words.back().replace(at, mount.size(), job_.file("files").string());
        }
        std::array<int, 2> out{}, err{};
        if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) return;
        const int engine = fork();
        if (engine == 0) be_engine(words, environment, out[1], err[1]);
        close(out[1]);
        close(err[1]);
        job_.set("Running", {{"running", {{"startedAt", now_text()}}}});
        const std::int64_t grace = job.at("spec")
                                       .at("template")
                                       .at("spec")
                                       .value("terminationGracePeriodSeconds", std::int64_t{30});
        const int status = watch(engine, {out[0], err[0]}, grace);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        Json end = {{"exitCode", code},
                    {"reason", code == 0 ? "Completed" : "Error"},
                    {"startedAt", now_text()}};
        if (code == not_started) {
            end["exitCode"] = 128;
            end["reason"] = "StartError";
            end["message"] =
                "failed to create containerd task: failed to create shim task: OCI runtime create "
                "failed: runc create failed: "
                "unable to start container process: exec: \"" +
                words.front() + "\": stat " + words.front() +
                ": no such file or directory: unknown";
        }
        job_.set(end["exitCode"] == 0 ? "Succeeded" : "Failed", {{"terminated", end}});
    }

    [[noreturn]] static void be_engine(const std::vector<std::string>& words,
                                       const std::map<std::string, std::string>& environment,
                                       int out, int err) {
        setsid();
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(err, STDERR_FILENO);
        clearenv();
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> argv;
        for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        execvp(argv[0], argv.data());
        _exit(not_started);
    }

    /// Writes its log until it has ended, and ends it when it is to go. Its status.
    int watch(int engine, const std::array<int, 2>& from, std::int64_t grace) {
        std::ofstream log(job_.file("log"), std::ios::binary | std::ios::app);
        std::array<std::string, 2> unfinished{};
        std::array<bool, 2> open{true, true};
        bool told = false;
        auto kill_at = Clock::time_point::max();
        int status = 0;
        for (bool ended = false; !ended || open[0] || open[1];) {
            std::array<pollfd, 2> waiting{
                {{open[0] ? from[0] : -1, POLLIN, 0}, {open[1] ? from[1] : -1, POLLIN, 0}}};
            (void)poll(waiting.data(), waiting.size(), 20);
            for (std::size_t i = 0; i < 2; ++i) {
                if ((waiting.at(i).revents & (POLLIN | POLLHUP)) == 0) continue;
                std::array<char, 65536> buffer{};
                const ssize_t got = read(from.at(i), buffer.data(), buffer.size());
                if (got <= 0) open.at(i) = false;
                else unfinished.at(i).append(buffer.data(), std::size_t(got));
                for (std::size_t end = 0; (end = unfinished.at(i).find('\n')) != std::string::npos;
                     unfinished.at(i).erase(0, end + 1))
                    log << now_text() << ' ' << unfinished.at(i).substr(0, end + 1);
                log.flush();
            }
            if (!ended && waitpid(engine, &status, WNOHANG) == engine) ended = true;
            if (!told && ending()) {
                told = true;
                job_.set("Running", {{"running", {{"startedAt", now_text()}}}});
                kill(engine, SIGTERM);
                constexpr std::int64_t longest_grace = 3;  // tests wait for it
                kill_at = Clock::now() + std::chrono::seconds(std::min(grace, longest_grace));
            }
            if (Clock::now() > kill_at || (ended && told))
                kill(-engine, SIGKILL);  // a container's end ends all of it
            if (ended && !told) kill(-engine, SIGKILL);
        }
        return status;
    }

    static constexpr int not_started = 251;
    const Job job_;
};

int create(const Words& words) {
    must_answer();
    const Json manifest = Json::parse(std::cin, nullptr, false);
    if (manifest.is_discarded()) end_with("error: error parsing STDIN: no JSON");
    if (words.has("dry-run")) {
        std::cout << "job.batch/" << manifest["metadata"].value("name", "x") << "\n";
        return 0;
    }
    const Job job(cluster / "jobs" / manifest.at("metadata").at("name").get<std::string>());
    if (job.is_there())
        end_with("Error from server (AlreadyExists): error when creating \"STDIN\": jobs.batch \"" +
                 job.name() + "\" already exists");
    fs::create_directories(job.file("job").parent_path());
    put(job.file("job"), manifest.dump());
    put(job.file("log"), "");
    if (const int between = fork(); between != 0) (void)waitpid(between, nullptr, 0);
    else {  // nobody's: a node
        setsid();
        if (fork() != 0) _exit(0);
        (void)prctl(PR_SET_PDEATHSIG, 0);
        const int nothing = open("/dev/null", O_RDWR);
        for (const int stream : {0, 1, 2}) (void)dup2(nothing, stream);
        Node(job).run();
        _exit(0);
    }
    std::cout << "job.batch/" << job.name() << " created\n";
    return 0;
}

bool is_selected(const Json& labels, const std::string& selector, const Job& job) {
    const auto equals = selector.find('=');
    const std::string key = selector.substr(0, equals);
    const std::string value = selector.substr(equals + 1);
    return key == "job-name" ? job.name() == value : labels.value(key, "") == value;
}

Json list_of(const std::string& kind, const std::string& selector) {
    Json items = Json::array();
    for (const Job& job : all_jobs()) {
        const Json manifest = job.manifest();
        const Json one = kind == "jobs" ? manifest : job.pod();
        if (!manifest.is_object() || !one.is_object()) continue;  // removed by now
        if (is_selected(manifest.at("metadata").value("labels", Json::object()), selector, job))
            items.push_back(one);
    }
    return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
}

int get(const Words& words) {
    must_answer();
    const std::string kind = words.word(1);
    if (kind == "job") {
        const Job job(cluster / "jobs" / words.word(2));
        if (job.is_there()) std::cout << job.manifest().dump() << "\n";
        return 0;
    }
    if (kind == "events")
        std::cout << R"({"kind": "List", "items": []})"
                  << "\n";
    else if (kind == "nodes") end_with("Error from server (Forbidden): nodes is forbidden");
    else std::cout << list_of(kind, words.option("selector")).dump() << "\n";
    return 0;
}

int delete_job(const Words& words) {
    must_answer();
    const Job job(cluster / "jobs" / words.word(2));
    if (!job.is_there()) return 0;
    put(job.file("deleted"), "yes");
    std::cout << "job.batch \"" << job.name() << "\" deleted\n";
    if (words.option("wait") == "false") return 0;
    const auto until =
        Clock::now() + (fs::exists(cluster / "stuck")
                            ? 1s
                            : std::chrono::seconds(std::stoi(words.option("timeout"))));
    while (job.is_there()) {
        must_answer();
        if (Clock::now() > until)
            end_with("error: timed out waiting for the condition on jobs/" + job.name());
        std::this_thread::sleep_for(10ms);
    }
    return 0;
}

int logs(const Words& words) {
    must_answer();
    const std::string pod = words.word(1);
    const std::vector<Job> all = all_jobs();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Job& one) {
        return one.pod_name() == pod && fs::exists(one.file("pod"));
    });
    if (found == all.end())
        end_with("Error from server (NotFound): pods \"" + pod + "\" not found");
    const Job& job = *found;
    std::ifstream log(job.file("log"), std::ios::binary);
    for (std::string line;; std::this_thread::sleep_for(10ms)) {
        const Json now = job.pod();  // before the last lines are read
        const bool over =
            !words.has("follow") || now.is_discarded() || now["status"]["phase"] != "Running";
        while (std::getline(log, line))
            if (words.option("since-time").empty() ||
                line.substr(0, 19) >= words.option("since-time").substr(0, 19))
                std::cout << (words.has("timestamps") ? line : line.substr(line.find(' ') + 1))
                          << "\n";
        std::cout.flush();
        log.clear();
        if (over) return 0;
        if (fs::exists(cluster / "down")) end_with("error: unexpected EOF");
    }
}

}  // namespace

int main(int argc, char** argv) {
    Words words;
    std::string all;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto equals = word.find('=');
        if (!word.starts_with("--")) words.plain.push_back(word);
        else
            words.options[word.substr(2, equals == std::string::npos ? equals : equals - 2)] =
                equals == std::string::npos ? "" : word.substr(equals + 1);
        if (i > 1) all += word + " ";
    }
    cluster = words.option("cluster");
    if (const int calls =
            open((cluster / "calls").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        calls >= 0) {
        all += "\n";
        (void)!write(calls, all.data(), all.size());
        close(calls);
    }
    const std::string command = words.word(0);
    if (command == "create") return create(words);
    if (command == "get") return get(words);
    if (command == "delete") return delete_job(words);
    if (command == "logs") return logs(words);
    if (command == "version") {
        std::cout << R"({"clientVersion": {"major": "1", "minor": "37", "gitVersion": "v1.37.2"}})"
                  << "\n";
        return 0;
    }
    if (command == "config") {
        std::cout << "test\n";
        return 0;
    }
    must_answer();
    if (command == "auth") std::cout << "yes\n";
    else if (command == "port-forward") {
        std::cout << "Forwarding from 127.0.0.1:" << words.word(2) << std::endl;
        while (!fs::exists(cluster / "down") && !fs::exists(cluster / "refusing"))
            std::this_thread::sleep_for(10ms);
        if (fs::exists(cluster / "refusing"))
            std::cerr << "an error occurred forwarding: dial tcp4 127.0.0.1: connect: connection "
                         "refused\n";
        end_with("error: lost connection to pod");
    } else end_with("error: unknown command \"" + command + "\"");
    return 0;
}
