// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace servetune::test {

/// A program that answers each line with a line, over pipes. Killed and waited for at the end of
/// its life.
class ConversationProcess {
public:
    ConversationProcess(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
        signal(SIGPIPE, SIG_IGN);  // a program that has ended is seen by its missing answer
        int to[2];
        int from[2];
        if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
            throw std::runtime_error("cannot make pipes");
        std::vector<char*> words;
        for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        pid_ = fork();
        if (pid_ < 0) throw std::runtime_error("cannot fork");
        if (pid_ == 0) {
            const int err =
                open((folder / "child.err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
            if (chdir(folder.c_str()) != 0 || dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0 ||
                dup2(err, 2) < 0)
                _exit(126);
            execv(words[0], words.data());
            _exit(127);
        }
        close(to[0]);
        close(from[1]);
        in_ = to[1];
        out_ = from[0];
    }
    ~ConversationProcess() {
        if (pid_ > 0) kill(pid_, SIGKILL);
        (void)end();
        close(out_);
    }
    ConversationProcess(const ConversationProcess&) = delete;
    ConversationProcess& operator=(const ConversationProcess&) = delete;

    void say(const std::string& line) const {
        const std::string whole = line + "\n";
        for (std::size_t at = 0; at < whole.size();) {
            const ssize_t wrote = write(in_, whole.data() + at, whole.size() - at);
            if (wrote < 0) return;
            at += std::size_t(wrote);
        }
    }
    /// The next line that it says; empty when it has ended.
    std::string heard() {
        for (;;) {
            if (const auto end = kept_.find('\n'); end != std::string::npos) {
                const std::string line = kept_.substr(0, end);
                kept_.erase(0, end + 1);
                return line;
            }
            char bytes[4096];
            const ssize_t got = read(out_, bytes, sizeof bytes);
            if (got <= 0) return "";
            kept_.append(bytes, std::size_t(got));
        }
    }
    std::string answer(const std::string& line) {
        say(line);
        return heard();
    }
    void kill_now() const { kill(pid_, SIGKILL); }
    /// Ends its input; the exit code, or 128 + the signal that ended it.
    int end() {
        if (in_ >= 0) close(in_);
        in_ = -1;
        int status = 0;
        if (pid_ > 0) waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

private:
    pid_t pid_ = -1;
    int in_ = -1;
    int out_ = -1;
    std::string kept_;
};

}  // namespace servetune::test
