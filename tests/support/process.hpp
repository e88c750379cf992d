// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace servetune::test {

/// A program run by a test, from an argument vector, its output in files. Killed and waited for at the end of its life.
class ChildProcess {
public:
    /// `largest_file`: bytes after which its writes fail, as on a full disk; 0: no limit.
    ChildProcess(const std::vector<std::string>& argv, const std::filesystem::path& folder, rlim_t largest_file = 0)
        : out_(folder / "child.out"), err_(folder / "child.err") {
        std::vector<char*> words;
        for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        pid_ = fork();
        if (pid_ < 0) throw std::runtime_error("cannot fork");
        if (pid_ == 0) {
            const int out = open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
            const int err = open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
            if (chdir(folder.c_str()) != 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
            const rlimit limit{largest_file, largest_file};
            if (largest_file > 0 && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
            // The tests may themselves have been started in the background of a script, where INT is ignored.
            for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
            execv(words[0], words.data());
            _exit(127);
        }
    }
    ~ChildProcess() {
        if (pid_ > 0) {
            signal(SIGKILL);
            wait();
        }
    }
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    [[nodiscard]] pid_t id() const { return pid_; }
    void signal(int number) const { kill(pid_, number); }
    /// The exit code, or 128 + the signal that ended it.
    int wait() {
        int status = 0;
        if (pid_ > 0) waitpid(pid_, &status, 0);
        pid_ = -1;
        return code_of(status);
    }
    /// As `wait`; nothing when it still runs after that time.
    std::optional<int> wait_at_most(std::chrono::milliseconds time) {
        const auto deadline = std::chrono::steady_clock::now() + time;
        while (pid_ > 0) {
            int status = 0;
            if (waitpid(pid_, &status, WNOHANG) != 0) {
                pid_ = -1;
                code_ = code_of(status);
            } else if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
            else std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return code_;
    }
    [[nodiscard]] std::string out() const { return content(out_); }
    [[nodiscard]] std::string err() const { return content(err_); }

private:
    static int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }
    static std::string content(const std::filesystem::path& file) {
        std::ifstream stream(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    pid_t pid_ = -1;
    int code_ = 0;  ///< once it has been waited for
    std::filesystem::path out_;
    std::filesystem::path err_;
};

/// Its line of /proc behind the name: "state parent group ..." (proc(5)). Empty: there is no such process, or it is a
/// zombie. A zombie has ended; when it goes from the process table is up to its parent. For one whose parent has ended
/// that is init, and an init may look for zombies every few seconds only (2 s was seen).
inline std::string living_process(const std::filesystem::path& process) {
    std::ifstream stream(process / "stat", std::ios::binary);
    const std::string line(std::istreambuf_iterator<char>(stream), {});
    const auto name_end = line.rfind(") ");
    const std::string fields = name_end == std::string::npos ? "" : line.substr(name_end + 2);
    return fields.starts_with('Z') || fields.starts_with('X') ? "" : fields;
}
inline bool alive(int id) { return !living_process("/proc/" + std::to_string(id)).empty(); }

/// What of a process group lives, each as "id: state parent group ...".
inline std::vector<std::string> living_in_group(int group) {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (std::isdigit(entry.path().filename().native().front()) == 0) continue;
        const std::string fields = living_process(entry.path());
        std::istringstream words(fields);
        char state = 0;
        int parent = 0;
        int its_group = 0;
        if (words >> state >> parent >> its_group && its_group == group) result.push_back(entry.path().filename().string() + ": " + fields);
    }
    return result;
}

}  // namespace servetune::test
