// SPDX-License-Identifier: Apache-2.0
#include "run_command.hpp"

#include "servetune/base/error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A process group that does not outlive this object.
class Group {
public:
    explicit Group(pid_t leader) : leader_(leader) {}
    ~Group() { (void)end(); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    /// Whether the leader has ended. It is not waited for yet: until then its id, and so the group's, is nobody else's.
    [[nodiscard]] bool leader_ended() const {
        siginfo_t info{};
        return waitid(P_PID, static_cast<id_t>(leader_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == leader_;
    }
    /// Kills what is left and gives the leader's wait status.
    int end() {
        int status = 0;
        if (leader_ > 0) {
            kill(-leader_, SIGKILL);
            while (waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
            }
            leader_ = -1;
        }
        return status;
    }

private:
    pid_t leader_;
};

/// What the child does between fork and exec: only what is safe there.
[[noreturn]] void become(char* const* argv, int output, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = open("/dev/null", O_RDONLY);
    if (getppid() != parent || nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(126);
    execv(argv[0], argv);
    _exit(127);
}

/// Reads what is there; false at the end of the stream.
bool read_some(int from, std::string& into) {
    std::array<char, 65536> buffer{};
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

fs::path find_program(const std::string& name) {
    const auto runnable = [](const fs::path& file) {
        std::error_code error;
        return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) return runnable(name) ? fs::path(name) : fs::path();
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const fs::path file = fs::path(folder) / name; !folder.empty() && runnable(file)) return file;
    return {};
}

RanCommand run_command(const std::vector<std::string>& argv, std::chrono::milliseconds time, std::size_t output_bytes) {
    std::vector<std::string> words = argv;
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::array<int, 2> pipe_ends{};
    const auto cannot = [&] { throw IoError("cannot start " + argv.front() + ": " + std::generic_category().message(errno)); };
    if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) cannot();
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) become(pointers.data(), pipe_ends[1], parent);
    const int fork_error = errno;
    close(pipe_ends[1]);
    if (child < 0) {
        close(pipe_ends[0]);
        errno = fork_error;
        cannot();
    }
    setpgid(child, child);  // as the child does: whoever comes first
    Group group(child);
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);

    RanCommand result;
    const auto deadline = Clock::now() + time;
    // The pipe may stay open after the command has ended, in a process that it left behind: both are looked at in turns.
    for (bool open = true;;) {
        pollfd waiting{open ? pipe_ends[0] : -1, POLLIN, 0};
        (void)poll(&waiting, 1, 20);
        const bool ended = group.leader_ended();
        while (open && result.output.size() <= output_bytes) {
            const std::size_t before = result.output.size();
            open = read_some(pipe_ends[0], result.output);
            if (result.output.size() == before) break;
        }
        if (result.output.size() > output_bytes) result.end = RanCommand::End::too_much_output;
        else if (!ended && Clock::now() >= deadline) result.end = RanCommand::End::out_of_time;
        else if (!ended) continue;
        break;
    }
    close(pipe_ends[0]);
    const int status = group.end();
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

}  // namespace servetune
