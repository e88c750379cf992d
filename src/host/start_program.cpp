// SPDX-License-Identifier: Apache-2.0
#include "start_program.hpp"

#include "base/variable_name.hpp"
#include "boost_process.hpp"
#include "pipe.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <thread>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Why a child could not become its program.
struct Refusal {
    enum class Step { input_and_output, folder, cores, program } step;
    int error;
};

/// The child's end of the pipe over which it says so. Boost's own pipe is not used:
/// docs/decisions/007-processes.md.
struct RefusalReport {
    int to;
    [[noreturn]] void refuse(Refusal::Step step, int error) const {
        const Refusal refusal{step, error};
        (void)!write(to, &refusal, sizeof refusal);
        _exit(127);
    }
};

// Handlers of Boost.Process. `on_setup` runs in the parent before the fork. `on_exec_setup` and
// `on_exec_error` run in the child of a process with threads: they call only what is safe there,
// and allocate no memory.

/// The words as they are. Boost.Process 1.74 reads the first character of each word, of empty ones
/// too.
struct ExactWords : boost_process::extend::handler {
    ExactWords(const char* its_file, char** its_argv, char** its_environment)
        : file(its_file), argv(its_argv), environment(its_environment) {}
    template <class Executor>
    void on_setup(Executor& executor) const {
        executor.exe = file;
        executor.cmd_line = argv;
        executor.env = environment;
    }
    const char* file;
    char** argv;
    char** environment;
};

/// The child ends with its parent, and hears every signal, whatever this process blocks and
/// ignores.
struct OwnSignals : boost_process::extend::handler {
    explicit OwnSignals(int when_parent_ends) : signal_when_parent_ends(when_parent_ends) {}
    template <class Executor>
    void on_exec_setup(Executor& /*executor*/) const {
        prctl(PR_SET_PDEATHSIG, signal_when_parent_ends);
        if (getppid() != parent) _exit(126);
        struct sigaction usual {};
        usual.sa_handler = SIG_DFL;
        for (int number = 1; number < 32; ++number) sigaction(number, &usual, nullptr);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
    }
    int signal_when_parent_ends;
    pid_t parent = getpid();
};

/// An initializer of Boost.Process whose failure ends the child. Boost reports such a failure, but
/// starts the program.
template <class Initializer>
struct OrRefuse : boost_process::extend::handler {
    OrRefuse(Initializer its_initializer, Refusal::Step its_step, RefusalReport its_report)
        : initializer(its_initializer), failure{its_step, its_report} {}
    template <class Executor>
    void on_exec_setup(Executor& /*executor*/) const {
        initializer.on_exec_setup(failure);
    }
    /// What the initializer takes for its executor.
    struct Failure {
        Refusal::Step step;
        RefusalReport report;
        void set_error(const std::error_code& error, const char* /*call*/) const {
            report.refuse(step, error.value());
        }
    };
    Initializer initializer;
    Failure failure;
};

/// Its folder and cores, and of this process's descriptors that of facts alone. Then the program,
/// or why not.
struct LastSteps : boost_process::extend::handler {
    LastSteps(const char* its_folder, const cpu_set_t* its_cores, int its_facts,
              RefusalReport its_report)
        : folder(its_folder), cores(its_cores), facts(its_facts), report(its_report) {}
    template <class Executor>
    void on_exec_setup(Executor& /*executor*/) {
        if (folder != nullptr && chdir(folder) != 0) report.refuse(Refusal::Step::folder, errno);
        if (cores != nullptr && sched_setaffinity(0, sizeof *cores, cores) != 0)
            report.refuse(Refusal::Step::cores, errno);
#ifdef SYS_close_range
        constexpr unsigned close_on_exec =
            4;  // CLOSE_RANGE_CLOEXEC: files that somebody opened without it
        (void)syscall(SYS_close_range, 3U, ~0U, close_on_exec);
#endif
        if (facts < 0) return;
        if (report.to == 3) report.to = fcntl(report.to, F_DUPFD_CLOEXEC, 4);
        if ((facts == 3 ? fcntl(3, F_SETFD, 0) : dup2(facts, 3)) < 0)
            report.refuse(Refusal::Step::input_and_output, errno);
    }
    template <class Executor>
    void on_exec_error(Executor& /*executor*/, const std::error_code& error) const {
        report.refuse(Refusal::Step::program, error.value());
    }
    const char* folder;      ///< null: stays
    const cpu_set_t* cores;  ///< null: any
    int facts;               ///< -1: none
    RefusalReport report;
};

/// Keeps why there is no child.
struct ForkError : boost_process::extend::handler {
    template <class Executor>
    void on_fork_error(Executor& /*executor*/, const std::error_code& error) {
        value = error.value();
    }
    int value = 0;
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
    return cannot + ": " + error;
}

cpu_set_t set_of(const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) {
        if (core < 0 || core >= CPU_SETSIZE)
            throw IoError("there is no core " + std::to_string(core));
        CPU_SET(static_cast<std::size_t>(core), &set);
    }
    return set;
}

}  // namespace

fs::path find_program(const std::string& name, const std::string& path) {
    const auto runnable = [](const fs::path& file) {
        std::error_code error;
        return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
    };
    if (name.find('/') != std::string::npos) return runnable(name) ? fs::path(name) : fs::path();
    const char* own = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    std::istringstream folders(!path.empty() ? path : own != nullptr ? own : "");
    for (std::string folder; std::getline(folders, folder, ':');)
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

    const RefusalReport report{pipe.in.id()};
    const auto into = [&](int standard, int from) {
        return OrRefuse(boost_process::posix::fd.bind(standard, from),
                        Refusal::Step::input_and_output, report);
    };
    boost_process::group group;
    ForkError fork_error;
    boost_process::child child(
        boost_process::exe = program.file.string(), boost_process::ignore_error, group, fork_error,
        ExactWords(program.file.c_str(), words.data(), variables.data()),
        OwnSignals(program.signal_when_parent_ends), into(0, input),
        into(1, answer >= 0 ? answer : output), into(2, output),
        LastSteps(program.folder.empty() ? nullptr : program.folder.c_str(),
                  program.cores.empty() ? nullptr : &cores, program.facts, report));
    child
        .detach();  // Boost must neither wait for the child nor kill it: its id stays ours until we wait
    group.detach();
    if (fork_error.value != 0)
        throw IoError(why({Refusal::Step::program, fork_error.value}, program));

    pipe.in.reset();
    Refusal refusal{};
    ssize_t got = 0;
    while ((got = read(pipe.out.id(), &refusal, sizeof refusal)) < 0 && errno == EINTR) {
    }
    if (got != sizeof refusal) return child.id();
    while (waitpid(child.id(), nullptr, 0) < 0 && errno == EINTR) {
    }
    throw IoError(why(refusal, program));
}

}  // namespace servetune
