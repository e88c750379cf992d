// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/process.hpp"

#include "base/files.hpp"
#include "kept_output.hpp"
#include "process_table.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "start_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <set>
#include <thread>
#include <utility>

namespace servetune {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// The standard input of a program that is told something first and then hears from us at regular
/// times (ProcessOptions::beats). One thread writes; any thread may hang up. The writer's thread
/// must have SIGPIPE blocked: the program may be gone.
class FedInput {
public:
    FedInput(std::string first, milliseconds beats) : pending_(std::move(first)), beats_(beats) {
        (void)fcntl(pipe_.in.id(), F_SETFL, O_NONBLOCK);
    }

    [[nodiscard]] int for_the_program() const { return pipe_.out.id(); }
    void program_has_it() { pipe_.out.reset(); }

    /// To be polled for POLLOUT; -1: there is nothing to write now.
    [[nodiscard]] int waits_to_write() const {
        const std::scoped_lock lock(mutex_);
        return pending_.empty() ? -1 : pipe_.in.id();
    }
    /// Milliseconds until `write` is due though nothing waits; -1: never more.
    [[nodiscard]] int due_in() const {
        const std::scoped_lock lock(mutex_);
        if (pipe_.in.id() < 0) return -1;
        const auto left = std::chrono::ceil<milliseconds>(next_beat_ - Clock::now()).count();
        return static_cast<int>(std::clamp<std::int64_t>(left, 0, beats_.count()));
    }
    /// What waits, and a beat where it is time: as far as the pipe takes it.
    void write() {
        const std::scoped_lock lock(mutex_);
        if (pipe_.in.id() < 0) return;
        if (Clock::now() >= next_beat_) {
            if (pending_.empty()) pending_ = "\n";  // else it hears from us anyway
            next_beat_ = Clock::now() + beats_;
            const nanoseconds now = since_boot();
            longest_silence_ = std::max(longest_silence_, now - last_beat_);
            last_beat_ = now;
        }
        while (!pending_.empty()) {
            const ssize_t wrote = ::write(pipe_.in.id(), pending_.data(), pending_.size());
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote < 0 && errno == EAGAIN) return;
            if (wrote < 0) {  // it reads no more
                pending_.clear();
                pipe_.in.reset();
                return;
            }
            pending_.erase(0, std::size_t(wrote));
        }
    }
    void hang_up() {
        const std::scoped_lock lock(mutex_);
        pending_.clear();
        pipe_.in.reset();
    }
    /// The last one included, which goes on while nothing is written.
    [[nodiscard]] nanoseconds longest_silence() const {
        const std::scoped_lock lock(mutex_);
        return pipe_.in.id() < 0 ? longest_silence_
                                 : std::max(longest_silence_, since_boot() - last_beat_);
    }

private:
    /// The time in which this machine sleeps counts, as it does for a program elsewhere.
    static nanoseconds since_boot() {
        struct timespec now {};
        (void)clock_gettime(CLOCK_BOOTTIME, &now);
        return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
    }
    mutable std::mutex mutex_{};
    Pipe pipe_{};
    std::string pending_;
    milliseconds beats_;
    Clock::time_point next_beat_ = Clock::now() + beats_;
    nanoseconds last_beat_ = since_boot(), longest_silence_{0};
};

namespace {

namespace fs = std::filesystem;

std::uint64_t start_of_process(int id) {
    return running_process(id).value_or(RunningProcess{}).start_ticks;
}

/// In its environment and its children's: which Process they are of.
std::string new_token() {
    static std::atomic<int> made = 0;
    return std::to_string(getpid()) + "-" + std::to_string(start_of_process(getpid())) + "-" +
           std::to_string(++made);
}

Descriptor wake_up_event() {
    Descriptor event(eventfd(0, EFD_CLOEXEC));
    if (event.id() < 0)
        throw IoError("cannot start a process: no event to wake its reader: " +
                      std::generic_category().message(errno));
    return event;
}

std::vector<std::string> environment_of(const ProcessOptions& options, const std::string& token) {
    std::map<std::string, std::string> wanted = options.environment;
    wanted["SERVETUNE_GROUP"] = token;
    if (!options.mark.empty()) wanted["SERVETUNE_STUDY"] = options.mark;
    // Python's setproctitle, which vLLM and SGLang use, writes a process's title over the
    // environment in /proc unless it finds this.
    wanted.emplace("SPT_NOENV", "1");
    std::vector<std::string> result;
    for (std::string& text : inherited_environment())
        if (!wanted.contains(text.substr(0, text.find('=')))) result.push_back(std::move(text));
    for (const auto& [name, value] : wanted) result.push_back(name + "=" + value);
    return result;
}

ChildProgram program_of(const ProcessOptions& options, const std::string& token) {
    if (options.argv.empty())
        throw UsageError("a process needs a program: its argument vector is empty");
    const auto path = options.environment.find("PATH");
    const fs::path file =
        find_program(options.argv.front(), path == options.environment.end() ? "" : path->second);
    if (file.empty())
        throw IoError("cannot start " + options.argv.front() +
                      (!contains(options.argv.front(), '/') ? ": no such program in $PATH"
                                                            : ": no such program"));
    return {fs::absolute(file),
            options.argv,
            environment_of(options, token),
            options.folder,
            options.input,
            -1,
            options.facts ? options.facts->id() : -1,
            options.cores,
            SIGTERM};
}

void write_files(const ProcessOptions& options) {
    std::error_code error;
    for (const fs::path& folder : {options.folder, options.log.parent_path()})
        if (!folder.empty() && !fs::create_directories(folder, error) && error)
            throw IoError("cannot make the folder " + folder.string() + ": " + error.message());
    for (const auto& [name, content] : options.files) {
        const fs::path file = options.folder / name;
        fs::create_directories(file.parent_path(), error);
        write_plain_file(file, content);
    }
}

/// Reads once what is there; false at the end of the stream.
template <class Take>
bool read_once(int from, std::vector<char>& buffer, const Take& take) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got > 0) take(std::string_view(buffer.data(), std::size_t(got)));
    return got != 0;
}

}  // namespace

struct Process::State {
    explicit State(const ProcessOptions& options)
        : program(program_of(options, token)),
          log((write_files(options), options.log), options.log_bytes),
          answer_most(options.answer_bytes),
          watchdog(options.watchdog) {
        require_process_table();
        if (answer_most > 0) apart = std::make_unique<Pipe>();
        if (options.beats.count() > 0)
            input = std::make_unique<FedInput>(options.told, options.beats);
        if (watchdog)
            watchdog->watch(token);  // before it starts: this program may be killed at any moment
        std::promise<void> started;
        {
            // for the reader: the program's TERM is not its affair, nor is SIGXFSZ for a log that
            // is too large
            const SignalsBlocked blocked;
            reader = std::thread([&] { live(started); });
        }
        try {
            started.get_future().get();
        } catch (...) {
            reader.join();
            if (watchdog) watchdog->ended(token);
            throw;
        }
        start_ticks = start_of_process(child->id());
        if (watchdog) watchdog->started(token, child->id(), start_ticks);
    }
    ~State() {
        if (!ended && sweep(SIGKILL, std::chrono::seconds(2)).empty()) stop_watching();
        finish_reading();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    /// What would not go stays watched: the watchdog tries once more when this program has ended.
    void stop_watching() const {
        if (watchdog) watchdog->ended(token);
    }

    /// The reader's life. It starts the child, because the kernel tells a child of its parent's end
    /// when the thread that made it ends.
    void live(std::promise<void>& started) {
        try {
            if (input) program.input_descriptor = input->for_the_program();
            child =
                std::make_unique<ChildGroup>(program, output.in.id(), apart ? apart->in.id() : -1);
        } catch (...) {
            started.set_exception(std::current_exception());
            return;
        }
        output.in.reset();
        if (apart) apart->in.reset();
        if (input) input->program_has_it();
        started.set_value();
        read_until_told();
        log.finish();
    }

    void read_until_told() {
        constexpr int a_lot = 1 << 20;  // /proc/sys/fs/pipe-max-size: fewer wake-ups when it floods
        for (const int out : {output.out.id(), apart ? apart->out.id() : -1}) {
            (void)fcntl(out, F_SETPIPE_SZ, a_lot);
            (void)fcntl(out, F_SETFL, O_NONBLOCK);
        }
        std::vector<char> buffer(a_lot);
        for (bool open = true, answers = apart != nullptr, told = false; !told;) {
            std::array<pollfd, 4> waiting{{{open ? output.out.id() : -1, POLLIN, 0},
                                           {answers ? apart->out.id() : -1, POLLIN, 0},
                                           {stop_reading.id(), POLLIN, 0},
                                           {input ? input->waits_to_write() : -1, POLLOUT, 0}}};
            (void)poll(waiting.data(), waiting.size(), input ? input->due_in() : -1);
            told = waiting[2].revents != 0;
            if (input) input->write();
            // When told to stop: what is there still, once; somebody who would not go may write for
            // ever.
            const std::scoped_lock lock(reading);
            open = open && read_once(output.out.id(), buffer, [&](std::string_view bytes) {
                       kept.append(bytes);
                       log.write(bytes);
                   });
            answers = answers && read_once(apart->out.id(), buffer, [&](std::string_view bytes) {
                          answer_printed += bytes.size();
                          answer += bytes.substr(0, answer_most - answer.size());
                      });
        }
    }
    /// What a leader that has ended printed last may still be in the pipe. A grandchild may print
    /// for ever: half a second at most.
    void catch_up() const {
        const auto deadline = Clock::now() + milliseconds(500);
        for (int waiting = 1; child->ended() && !over && Clock::now() < deadline;
             std::this_thread::sleep_for(milliseconds(1))) {
            const std::scoped_lock lock(reading);
            int answering = 0;
            if (apart) (void)ioctl(apart->out.id(), FIONREAD, &answering);
            if (ioctl(output.out.id(), FIONREAD, &waiting) != 0 || waiting + answering == 0) return;
        }
    }
    void finish_reading() {
        if (!reader.joinable()) return;
        (void)eventfd_write(stop_reading.id(), 1);
        reader.join();
    }

    /// What of the group, of those that left it, or of their children, lives.
    [[nodiscard]] std::vector<RunningProcess> living() const {
        std::vector<RunningProcess> all = own_processes();
        const auto deadline = Clock::now() + milliseconds(500);
        std::erase_if(all, [&](const RunningProcess& one) {
            return one.dead || one.start_ticks < start_ticks;  // descendants are younger
        });
        std::set<int> ids;
        for (const RunningProcess& one : all)
            if (one.group == child->id() || known.contains({one.id, one.start_ticks}) ||
                has_in_environment(one.id, "SERVETUNE_GROUP=" + token, deadline))
                ids.insert(one.id);
        for (std::size_t before = 0; before != ids.size();) {  // children, whatever they cleared
            before = ids.size();
            for (const RunningProcess& one : all)
                if (ids.contains(one.parent)) ids.insert(one.id);
        }
        std::erase_if(all, [&](const RunningProcess& one) { return !ids.contains(one.id); });
        for (const RunningProcess& one : all) known.emplace(one.id, one.start_ticks);
        // Where /proc has gone meanwhile, the leader at least is known.
        if (all.empty() && !child->ended())
            all.push_back({.id = child->id(), .group = child->id(), .start_ticks = start_ticks});
        return all;
    }
    std::vector<RunningProcess> sweep(int signal, milliseconds patience) const {
        (void)living();  // while each child has its parent
        child->signal(signal);
        const auto wait = [&](milliseconds time) {
            if (child->ended()) std::this_thread::sleep_for(time);
            else (void)child->wait(time);
        };
        return signal_until_gone(
            {[&] { return living(); }, wait,
             [&](const RunningProcess& one) { return one.group == child->id(); }},
            signal, patience);
    }

    const std::string token = new_token();
    ChildProgram program;
    LogFile log;
    KeptOutput kept{};
    Pipe output{};
    std::unique_ptr<Pipe> apart{};      ///< for the standard output alone
    std::unique_ptr<FedInput> input{};  ///< where it hears from us
    std::size_t answer_most;
    std::string answer{};  ///< with `answer_printed`: read under `reading`
    std::size_t answer_printed = 0;
    const std::shared_ptr<Watchdog> watchdog;
    mutable std::mutex reading{};  ///< held from the pipe to what is kept
    Descriptor stop_reading = wake_up_event();
    std::unique_ptr<ChildGroup> child{};
    std::uint64_t start_ticks = 0;
    mutable std::set<std::pair<int, std::uint64_t>> known{};  ///< that were found to be its own
    std::optional<Ended> ended{};
    std::atomic<bool> over = false;  ///< `ended` is there
    std::thread reader{};
};

Process::Process(const ProcessOptions& options) {
    check_options("a process", options.why_invalid());
    state_ = std::make_unique<State>(options);
}
Process::~Process() = default;

int Process::id() const { return state_->child->id(); }
std::uint64_t Process::start_ticks() const { return state_->start_ticks; }
bool Process::running() const { return !state_->child->ended(); }
std::optional<int> Process::exit_code() const { return state_->child->exit_code(); }
bool Process::wait(milliseconds time) const { return state_->child->wait(time); }
void Process::hang_up() {
    if (state_->input) state_->input->hang_up();
}
nanoseconds Process::longest_silence() const {
    return state_->input ? state_->input->longest_silence() : nanoseconds(0);
}
std::string Process::printed_from(std::size_t& position) const {
    state_->catch_up();
    return state_->kept.from(position);
}
std::string Process::answer() const {
    state_->catch_up();
    const std::scoped_lock lock(state_->reading);
    return state_->answer;
}
std::size_t Process::answer_printed() const {
    const std::scoped_lock lock(state_->reading);
    return state_->answer_printed;
}
std::string Process::log_trouble() const { return state_->log.trouble(); }

std::vector<std::string> Process::lines(std::size_t most) const {
    std::size_t position = 0;
    std::vector<std::string> lines = lines_of(printed_from(position));
    if (const std::string trouble = log_trouble(); !trouble.empty())
        lines.push_back("[servetune: " + trouble + "]");
    if (lines.size() > most)
        lines.erase(lines.begin() + std::ptrdiff_t(most - most / 2),
                    lines.end() - std::ptrdiff_t(most / 2));
    return lines;
}

Ended Process::end(milliseconds patience) {
    if (const std::optional<Ended>& ended = state_->ended) return *ended;
    const auto begin = Clock::now();
    Ended result;
    std::vector<RunningProcess> left = state_->sweep(SIGTERM, patience);
    if (!left.empty()) {
        result.killed = true;
        left = state_->sweep(SIGKILL, std::max(patience, milliseconds(100)));
    }
    for (const RunningProcess& one : left) {
        result.remaining.push_back(one.id);
        result.report += "process " + std::to_string(one.id) +
                         " does not go, not even on KILL: " + command_of(one.id) + "\n";
    }
    result.exit_code = exit_code();
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (left.empty()) {
        state_->child->reap();
        state_->stop_watching();
    }
    state_->finish_reading();
    state_->ended = result;
    state_->over = true;
    return result;
}

std::string ProcessOptions::why_invalid() const {
    OptionCheck check;
    check.that(!argv.empty() && !argv.front().empty(), "argv", "a program", "none");
    check.that(told.empty() || beats.count() > 0, "told", "nothing without `beats`", "something");
    check.that(input.empty() || beats.count() == 0, "input", "nothing with `beats`", "a file");
    check_cores(check, cores);
    check_environment(check, environment);
    return check.text();
}

}  // namespace servetune
