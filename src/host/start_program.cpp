// SPDX-License-Identifier: Apache-2.0
#include "start_program.hpp"

#include "boost_process.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Why a child could not become its program.
struct Refusal {
    enum class Step { input_and_output, folder, cores, program } step;
    int error;
};

/// A handler of Boost.Process. `on_setup` runs before the fork: it gives the words as they are, for
/// Boost 1.74 reads the first character of each word, of empty ones too. `on_exec_setup` and
/// `on_exec_error` run in the child of a process with threads: they call only what is safe there,
/// and allocate no memory.
struct ChildSteps : boost_process::extend::handler {
    template <class Executor>
    void on_setup(Executor& executor) const {
        executor.exe = file;
        executor.cmd_line = words;
        executor.env = variables;
    }
    template <class Executor>
    void on_exec_setup(Executor& /*executor*/) {
        (void)setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, signal_when_parent_ends);
        if (getppid() != parent) _exit(126);
        hear_every_signal();
        for (int standard = 0; standard < 3; ++standard)
            if (dup2(standards[std::size_t(standard)], standard) < 0)
                refuse(Refusal::Step::input_and_output);
        if (folder != nullptr && chdir(folder) != 0) refuse(Refusal::Step::folder);
        if (cores != nullptr && sched_setaffinity(0, sizeof *cores, cores) != 0)
            refuse(Refusal::Step::cores);
        keep_only_facts();
    }
    template <class Executor>
    void on_exec_error(Executor& /*executor*/, const std::error_code& error) const {
        errno = error.value();
        refuse(Refusal::Step::program);
    }
    template <class Executor>
    void on_fork_error(Executor& /*executor*/, const std::error_code& error) {
        fork_error = error.value();
    }

    ChildSteps(const char* its_file, char** its_words, char** its_variables)
        : file(its_file), words(its_words), variables(its_variables) {}

    const char* file;
    char** words;
    char** variables;
    std::array<int, 3> standards{};    ///< what becomes standard input, output and error
    const char* folder = nullptr;      ///< null: stays
    const cpu_set_t* cores = nullptr;  ///< null: any
    int facts = -1;                    ///< -1: none
    int report = -1;                   ///< takes a Refusal; closed by execve
    int signal_when_parent_ends = SIGKILL;
    pid_t parent = getpid();
    int fork_error = 0;

private:
    /// Whatever this process blocks and ignores.
    static void hear_every_signal() {
        struct sigaction usual {};
        usual.sa_handler = SIG_DFL;
        for (int number = 1; number < 32; ++number) sigaction(number, &usual, nullptr);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
    }
    void keep_only_facts() {
#ifdef SYS_close_range
        constexpr unsigned close_on_exec = 4;  // CLOSE_RANGE_CLOEXEC
        (void)syscall(SYS_close_range, 3U, ~0U, close_on_exec);
#endif
        if (facts < 0) return;
        if (report == 3) report = fcntl(report, F_DUPFD_CLOEXEC, 4);
        if ((facts == 3 ? fcntl(3, F_SETFD, 0) : dup2(facts, 3)) < 0)
            refuse(Refusal::Step::input_and_output);
    }
    [[noreturn]] void refuse(Refusal::Step step) const {
        const Refusal refusal{step, errno};
        (void)!write(report, &refusal, sizeof refusal);
        _exit(127);
    }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
}

std::string why(const Refusal& refusal, const ChildProgram& program) {
    const std::string cannot = "cannot start " + program.file.string();
    const std::string error = std::generic_category().message(refusal.error);
    switch (refusal.step) {
        case Refusal::Step::input_and_output:
            return cannot + ": no input and output for it: " + error;
        case Refusal::Step::folder: return cannot + " in " + program.folder.string() + ": " + error;
        case Refusal::Step::cores: return cannot + " on the cores asked for: " + error;
        case Refusal::Step::program: break;
    }
    if (refusal.error == ENOENT && fs::exists(program.file))
        return cannot + ": the interpreter that its first line names is not there";
    if (refusal.error == EAGAIN)
        return cannot + ": " + error + "; processes are limited (ulimit -u)";
    return cannot + ": " + error;
}

cpu_set_t set_of(const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) {
        if (core < 0 || core >= CPU_SETSIZE)
            throw IoError("there is no core " + std::to_string(core));
        CPU_SET(std::size_t(core), &set);
    }
    return set;
}

}  // namespace

fs::path find_program(const std::string& name, const std::string& path) {
    const auto runnable = [](const fs::path& file) {
        std::error_code error;
        return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
    };
    if (contains(name, '/')) return runnable(name) ? fs::path(name) : fs::path();
    const char* own = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    for (const std::string& folder : parts_of(!path.empty()    ? path
                                              : own != nullptr ? own
                                                               : "",
                                              ':'))
        if (const fs::path file = fs::path(folder) / name; !folder.empty() && runnable(file))
            return file;
    return {};
}

std::vector<std::string> inherited_environment() {
    std::vector<std::string> result;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (!names_secret(text.substr(0, text.find('=')))) result.emplace_back(text);
    }
    return result;
}

std::map<std::string, std::string> secret_variables() {
    std::map<std::string, std::string> result;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const auto at = text.find('=');
        if (at != std::string_view::npos && names_secret(text.substr(0, at)))
            result[std::string(text.substr(0, at))] = text.substr(at + 1);
    }
    return result;
}

bool may_start_on(int core) {
    if (core < 0 || core >= CPU_SETSIZE) return false;
    const cpu_set_t set = set_of({core});
    bool may = false;
    std::thread([&] {
        may = sched_setaffinity(0, sizeof set, &set) == 0;
    }).join();  // a thread has a set of its own
    return may;
}

int start_program(const ChildProgram& program, int output, int answer) {
    std::vector<std::string> argv = program.argv;
    std::vector<std::string> environment =
        program.environment.empty() ? inherited_environment() : program.environment;
    std::vector<char*> words = pointers_to(argv);
    std::vector<char*> variables = pointers_to(environment);
    const cpu_set_t cores = set_of(program.cores);
    const char* input_file = program.input.empty() ? "/dev/null" : program.input.c_str();
    const Descriptor file_opened(
        program.input_descriptor < 0 ? open(input_file, O_RDONLY | O_CLOEXEC) : -1);
    const int input = program.input_descriptor < 0 ? file_opened.id() : program.input_descriptor;
    if (input < 0) throw IoError(why({Refusal::Step::input_and_output, errno}, program));
    Pipe pipe;
    ChildSteps steps(program.file.c_str(), words.data(), variables.data());
    steps.standards = {input, answer >= 0 ? answer : output, output};
    if (!program.folder.empty()) steps.folder = program.folder.c_str();
    if (!program.cores.empty()) steps.cores = &cores;
    steps.facts = program.facts;
    steps.report = pipe.in.id();
    steps.signal_when_parent_ends = program.signal_when_parent_ends;
    pid_t child = 0;
    {
        const SignalsBlocked blocked;  // no handler of this program's runs in the child
        boost_process::child started(boost_process::exe = program.file.string(),
                                     boost_process::ignore_error, steps);
        child = started.id();
        started.detach();  // Boost neither waits for it nor kills it: its id stays ours
    }
    if (steps.fork_error != 0)
        throw IoError(why({Refusal::Step::program, steps.fork_error}, program));

    pipe.in.reset();
    Refusal refusal{};
    ssize_t got = 0;
    while ((got = read(pipe.out.id(), &refusal, sizeof refusal)) < 0 && errno == EINTR) {
    }
    if (got != sizeof refusal) return child;
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    throw IoError(why(refusal, program));
}

namespace {

using Clock = std::chrono::steady_clock;

/// The groups that were started and are not reaped, for `kill_started_groups`, which may take no
/// lock. One that finds no place here is left to the kernel's word and to the watchdog.
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

ChildGroup::ChildGroup(const ChildProgram& program, int output, int answer)
    : id_(start_program(program, output, answer)) {
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
    if (result != 0 && errno == ECHILD)
        return 128;  // somebody else has waited for it: its code is lost
    if (result != 0 || info.si_pid != id_) return std::nullopt;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

bool ChildGroup::wait(std::chrono::milliseconds time) const {
    const auto deadline = Clock::now() + time;
    while (!ended()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        pollfd waiting{handle_.id(), POLLIN, 0};
        (void)poll(
            &waiting, 1,
            handle_.id() >= 0 ? static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)) : 1);
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
