// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace servetune::test {

/// A program run by a test, from an argument vector, its output in files. Killed and waited for at
/// the end of its life.
class ChildProcess {
public:
    /// `largest_file`: bytes after which its writes fail, as on a full disk; 0: no limit.
    ChildProcess(const std::vector<std::string>& argv, const std::filesystem::path& folder,
                 rlim_t largest_file = 0) {
        static std::atomic<int> children{0};  // of one folder, also at the same time
        const std::string name = "child-" + std::to_string(++children);
        out_ = folder / (name + ".out");
        err_ = folder / (name + ".err");
        std::vector<char*> words;
        for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        const int out = open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        const int err = open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        // A signal to a child that has not started the program yet must not reach the handlers of
        // the tests.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid_ = fork();
        if (pid_ != 0) {
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
            close(out);
            close(err);
        }
        if (pid_ < 0) throw std::runtime_error("cannot fork");
        if (pid_ == 0) {
            if (chdir(folder.c_str()) != 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
            const rlimit limit{largest_file, largest_file};
            if (largest_file > 0 && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
            // The tests may themselves have been started in the background of a script, where INT
            // is ignored.
            for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
    static int code_of(int status) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    static std::string content(const std::filesystem::path& file) {
        std::ifstream stream(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    pid_t pid_ = -1;
    int code_ = 0;  ///< once it has been waited for
    std::filesystem::path out_;
    std::filesystem::path err_;
};

/// A process as /proc has it.
struct SeenProcess {
    int group = 0;
    std::uint64_t start_ticks = 0;  ///< since boot
    /// A zombie: it has ended. When it goes from the process table is up to its parent; for one
    /// whose parent has ended that is init, which may look for zombies every few seconds only (2 s
    /// was seen).
    bool dead = false;
};

/// Nothing where there is no such process.
inline std::optional<SeenProcess> seen_process(const std::string& id) {
    std::ifstream stream("/proc/" + id + "/stat");
    std::string line;
    if (!std::getline(stream, line)) return std::nullopt;
    std::istringstream words(
        line.substr(line.rfind(')') + 1));  // the name before it may hold anything
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() < 20) return std::nullopt;
    return SeenProcess{std::stoi(fields[2]), std::stoull(fields[19]),
                       fields[0] == "Z" || fields[0] == "X"};
}

inline bool alive(int id) {
    const auto seen = seen_process(std::to_string(id));
    return seen && !seen->dead;
}

/// The processes of a group that live.
inline std::vector<int> living_in_group(int group) {
    std::vector<int> result;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string id = entry.path().filename().string();
        if (std::isdigit(id.front()) == 0) continue;
        const auto seen = seen_process(id);
        if (seen && seen->group == group && !seen->dead) result.push_back(std::stoi(id));
    }
    return result;
}

}  // namespace servetune::test
