// SPDX-License-Identifier: Apache-2.0
#include "child_group.hpp"

#include "servetune/base/error.hpp"
#include "servetune/process/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Why a child could not become its program.
struct Refusal {
    enum class Step { input_and_output, folder, cores, program } step;
    int error;
};

/// All that the child needs between fork and exec, made before: there it may not ask for memory.
struct Prepared {
    const char* file;
    char* const* argv;
    char* const* environment;
    const char* folder;  ///< null: stays
    const char* input;
    const cpu_set_t* cores;  ///< null: any
    int answer, output, report, signal_when_parent_ends;
    pid_t parent;
};

/// What the child does between fork and exec: only what is safe there.
[[noreturn]] void become(const Prepared& wanted) {
    const auto refuse = [&](Refusal::Step step) {
        const Refusal refusal{step, errno};
        (void)!write(wanted.report, &refusal, sizeof refusal);
        _exit(127);
    };
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, wanted.signal_when_parent_ends);
    if (getppid() != wanted.parent) _exit(126);
    // What this process blocks and ignores is not the program's affair: it must hear TERM.
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    for (int number = 1; number < 32; ++number) sigaction(number, &usual, nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);

    const int input = open(wanted.input, O_RDONLY);
    if (input < 0 || dup2(input, 0) < 0 || dup2(wanted.answer, 1) < 0 || dup2(wanted.output, 2) < 0)
        refuse(Refusal::Step::input_and_output);
    if (wanted.folder != nullptr && chdir(wanted.folder) != 0) refuse(Refusal::Step::folder);
    if (wanted.cores != nullptr && sched_setaffinity(0, sizeof *wanted.cores, wanted.cores) != 0) refuse(Refusal::Step::cores);
#ifdef SYS_close_range
    constexpr unsigned close_on_exec = 4;  // CLOSE_RANGE_CLOEXEC: files that somebody opened without it
    (void)syscall(SYS_close_range, 3U, ~0U, close_on_exec);
#endif
    execve(wanted.file, wanted.argv, wanted.environment);
    refuse(Refusal::Step::program);
    _exit(127);
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
}

std::string error_text(int error) { return std::generic_category().message(error); }

std::string why(const Refusal& refusal, const ChildProgram& program) {
    const std::string cannot = "cannot start " + program.file.string();
    switch (refusal.step) {
        case Refusal::Step::input_and_output: return cannot + ": no input and output for it: " + error_text(refusal.error);
        case Refusal::Step::folder: return cannot + " in " + program.folder.string() + ": " + error_text(refusal.error);
        case Refusal::Step::cores: return cannot + " on the cores asked for: " + error_text(refusal.error);
        case Refusal::Step::program: break;
    }
    if (refusal.error == ENOENT && fs::exists(program.file)) return cannot + ": the interpreter that its first line names is not there";
    return cannot + ": " + error_text(refusal.error);
}

cpu_set_t set_of(const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) {
        if (core < 0 || core >= CPU_SETSIZE) throw IoError("there is no core " + std::to_string(core));
        CPU_SET(static_cast<std::size_t>(core), &set);
    }
    return set;
}

/// The groups that were started and are not reaped, for `kill_started_groups`, which may take no lock. One that finds no place here is left to
/// the kernel's word and to the watchdog.
std::array<std::atomic<int>, 1024> started_groups{};
static_assert(std::atomic<int>::is_always_lock_free);

void remember_group(int group) {
    for (std::atomic<int>& place : started_groups) {
        int free = 0;
        if (place.compare_exchange_strong(free, group)) return;
    }
}

void forget_group(int group) {
    for (std::atomic<int>& place : started_groups) {
        int mine = group;
        if (place.compare_exchange_strong(mine, 0)) return;
    }
}

}  // namespace

void kill_started_groups() noexcept {
    for (const std::atomic<int>& place : started_groups)
        if (const int group = place; group > 0) kill(-group, SIGKILL);
}

fs::path find_program(const std::string& name, const std::string& path) {
    const auto runnable = [](const fs::path& file) {
        std::error_code error;
        return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) return runnable(name) ? fs::path(name) : fs::path();
    const char* own = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    std::istringstream folders(!path.empty() ? path : own != nullptr ? own : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const fs::path file = fs::path(folder) / name; !folder.empty() && runnable(file)) return file;
    return {};
}

Pipe::Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("cannot make a pipe: " + error_text(errno));
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
}

ChildGroup::ChildGroup(const ChildProgram& program, int output, int answer) {
    std::vector<std::string> argv = program.argv;
    std::vector<std::string> environment = program.environment;
    const std::vector<char*> words = pointers_to(argv);
    const std::vector<char*> variables = pointers_to(environment);
    const cpu_set_t cores = set_of(program.cores);
    Pipe report;
    const Prepared prepared{program.file.c_str(),
                            words.data(),
                            program.environment.empty() ? environ : variables.data(),
                            program.folder.empty() ? nullptr : program.folder.c_str(),
                            program.input.empty() ? "/dev/null" : program.input.c_str(),
                            program.cores.empty() ? nullptr : &cores,
                            answer >= 0 ? answer : output,
                            output,
                            report.in.id(),
                            program.signal_when_parent_ends,
                            getpid()};
    id_ = fork();
    if (id_ == 0) become(prepared);
    if (id_ < 0) throw IoError("cannot start " + program.file.string() + ": " + error_text(errno));
    setpgid(id_, id_);  // as the child does: whoever comes first
    report.in.reset();
    Refusal refusal{};
    ssize_t got = 0;
    while ((got = read(report.out.id(), &refusal, sizeof refusal)) < 0 && errno == EINTR) {
    }
    if (got == sizeof refusal) {
        while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
        }
        throw IoError(why(refusal, program));
    }
    remember_group(id_);
    handle_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, id_, 0U)));
}

ChildGroup::~ChildGroup() {
    signal(SIGKILL);
    (void)wait(std::chrono::seconds(2));  // a process that waits for a device does not hear it
    reap();
}

std::optional<int> ChildGroup::exit_code() const {
    const std::scoped_lock lock(mutex_);
    if (reaped_) return reaped_;
    siginfo_t info{};
    const int result = waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (result != 0 && errno == ECHILD) return 128;  // somebody else has waited for it: its code is lost
    if (result != 0 || info.si_pid != id_) return std::nullopt;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

bool ChildGroup::wait(std::chrono::milliseconds time) const {
    const auto deadline = Clock::now() + time;
    while (!ended()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        pollfd waiting{handle_.id(), POLLIN, 0};
        (void)poll(&waiting, 1, handle_.id() >= 0 ? static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)) : 1);
    }
    return true;
}

void ChildGroup::signal(int number) const {
    const std::scoped_lock lock(mutex_);
    if (!reaped_) kill(-id_, number);
}

void ChildGroup::reap() {
    const std::optional<int> code = exit_code();
    const std::scoped_lock lock(mutex_);
    if (!code || reaped_) return;
    forget_group(id_);  // first: its id may be somebody else's once it is waited for
    (void)waitpid(id_, nullptr, WNOHANG);
    reaped_ = code;
}

}  // namespace servetune
