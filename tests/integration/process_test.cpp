// SPDX-License-Identifier: Apache-2.0
// Processes from outside: what they get, what is kept of what they print, and that nothing of them
// is left.
#include "support/process.hpp"
#include "support/script.hpp"
#include "support/test.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "support/http.hpp"
#include "support/in_child.hpp"
#include "support/waiting.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

std::string content(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::size_t printed_bytes(const Process& process) {
    std::size_t position = 0;
    (void)process.printed_from(position);
    return position;
}

bool prints(const Process& process, const std::string& line) {
    return comes_true([&] {
        const Words lines = process.lines();
        return contains(lines, line);
    });
}

double resident_mib() {
    std::ifstream stream("/proc/self/statm");
    long pages = 0;
    stream >> pages >> pages;
    return double(pages * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// How many of them run a script; what the scripts run comes and goes.
std::size_t shells(const std::vector<Leftover>& left) {
    return std::size_t(
        count_if(left, [](const Leftover& one) { return one.command.starts_with("/bin/sh "); }));
}

const std::string deaf = "trap '' TERM\necho ready\nwhile :; do sleep 1; done\n";

}  // namespace

TEST_CASE("process: words, environment, files, folder, cores and log are the program's") {
    const TemporaryFolder folder;
    const fs::path program =
        script(folder,
               "echo \"$1|$2|$OURS|$SERVETUNE_STUDY|$SPT_NOENV\"\npwd\ncat options/one.yaml\n"
               "grep Cpus_allowed_list /proc/self/status\necho wrong >&2\nexit 3\n");
    const fs::path home = folder.path() / "trials/1";
    Process process({.argv = {program.string(), "a b", "$HOME;"},
                     .environment = {{"OURS", "x=y"}},
                     .files = {{"options/one.yaml", "one: 1\n"}},
                     .folder = home,
                     .log = home / "engine.log",
                     .mark = "study 7",
                     .cores = {0}});
    REQUIRE(process.wait(5s));
    CHECK_FALSE(process.running());
    CHECK(process.exit_code() == 3);
    const Words lines = process.lines();
    CHECK(lines == Words{"a b|$HOME;|x=y|study 7|1", home.string(), "one: 1",
                         "Cpus_allowed_list:\t0", "wrong"});
    CHECK(process.start_ticks() > 0);
    const Ended ended = process.end();
    CHECK(ended.exit_code == 3);
    CHECK_FALSE(ended.killed);
    CHECK(ended.report.empty());
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    CHECK(content(home / "engine.log") == text);
    CHECK(printed_bytes(process) == text.size());
    CHECK(process.lines(2) == Words{lines.front(), lines.back()});
}

TEST_CASE(
    "process: a file is its input, and its answer is kept apart from what it says on standard "
    "error") {
    const TemporaryFolder folder;
    const fs::path input = folder.write("input", "first\nsecond\n");
    const fs::path program = script(folder, "read line\necho \"log: $line\" >&2\ncat\nexit 3\n");
    Process process({.argv = {program.string()},
                     .input = input,
                     .log = folder.path() / "log",
                     .answer_bytes = 100});
    REQUIRE(process.wait(5s));
    CHECK(process.answer() == "second\n");
    CHECK(process.lines() == Words{"log: first"});
    CHECK(process.end().exit_code == 3);
    CHECK(process.answer() == "second\n");
    CHECK(content(folder.path() / "log") == "log: first\n");

    const fs::path much = script(folder, "head -c 3000000 /dev/zero\n", "much");
    Process flood({.argv = {much.string()}, .answer_bytes = 5000});
    REQUIRE(flood.wait(20s));
    CHECK(flood.end().exit_code == 0);
    CHECK(flood.answer() == std::string(5000, '\0'));
    CHECK(flood.answer_printed() == 3000000);
    CHECK(printed_bytes(flood) == 0);

    CHECK(message_of<IoError>([&] {
              const Process none({.argv = {"/bin/true"}, .input = folder.path() / "none"});
          }) == "cannot start /bin/true: no input and output for it: No such file or directory");
}

TEST_CASE(
    "process: one that leaves the group and becomes a program in the moment when the others end is "
    "ended too") {
    const TemporaryFolder folder;
    const std::string mark = folder.path().string();
    const fs::path program = script(
        folder,
        "setsid sleep 600 >/dev/null 2>&1 &\ni=0\nwhile [ $i -lt $1 ]; do i=$((i + 1)); done\n");
    for (int i = 0; i < 50; ++i) {
        Process process({.argv = {program.string(), std::to_string(i * 40)}, .mark = mark});
        REQUIRE(process.wait(20s));
        CHECK(process.end(10s).report.empty());
    }
    std::this_thread::sleep_for(200ms);  // whoever was missed is a program by now
    CHECK(leftovers(mark).empty());
    CHECK(end_leftovers(mark).empty());
}

TEST_CASE("process: one that hears TERM is gone at once, whatever this thread blocks") {
    sigset_t term;
    sigset_t before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &before);
    for (int i = 0; i < 5; ++i) {
        Process process({.argv = {"sleep", "100"}});
        CHECK(process.running());
        const Ended ended = process.end();
        CHECK(ended.exit_code == 128 + SIGTERM);
        CHECK_FALSE(ended.killed);
        CHECK(ended.seconds < 1);
        CHECK(kill(-process.id(), 0) != 0);  // no zombie either: it was ours to wait for
        CHECK(process.end().exit_code == 128 + SIGTERM);
        CHECK_FALSE(process.running());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("process: one that ignores TERM is killed, with its children") {
    const TemporaryFolder folder;
    Process process({.argv = {script(folder, deaf).string()}});
    REQUIRE(prints(process, "ready"));
    const Ended ended = process.end(100ms);
    CHECK(ended.killed);
    CHECK(ended.exit_code == 128 + SIGKILL);
    CHECK(ended.remaining.empty());
    CHECK(ended.seconds < 5);
    CHECK(living_in_group(process.id()) == std::vector<int>{});
}

TEST_CASE("process: children that the leader leaves behind are ended, in the group or out of it") {
    const TemporaryFolder folder;
    const fs::path child = script(folder, deaf, "child");
    for (const std::string& how : {std::string(), std::string("setsid ")}) {
        Process process({.argv = {script(folder, how + child.string() +
                                                     " &\necho child $!\nsleep 0.2\nexit 4\n")
                                      .string()}});
        REQUIRE(prints(process, "ready"));
        REQUIRE(process.wait(5s));
        const auto left = leftovers("nobody");
        CHECK(left.empty());
        Words lines = process.lines();
        sort(lines);  // "child 123", "ready"
        const int grandchild = std::stoi(lines.front().substr(6));
        CHECK(alive(grandchild));
        const Ended ended = process.end(100ms);
        CHECK(ended.killed);
        CHECK(ended.exit_code == 4);
        CHECK_FALSE(alive(grandchild));
        CHECK(living_in_group(process.id()) == std::vector<int>{});
    }
}

TEST_CASE("process: a child that clears its environment and leaves the group is ended too") {
    const TemporaryFolder folder;
    for (const char* leader : {"wait\n", "exec sleep 600\n"}) {
        Process process(
            {.argv = {script(folder, std::string("env -i PATH=\"$PATH\" setsid sleep 600 "
                                                 ">/dev/null 2>&1 &\necho $!\n") +
                                         leader)
                          .string()}});
        REQUIRE(comes_true([&] { return !process.lines().empty(); }));
        const int child = std::stoi(process.lines().front());
        std::this_thread::sleep_for(200ms);  // until it is what it becomes
        CHECK(process.end(2s).report.empty());
        CHECK_FALSE(alive(child));
    }
}

TEST_CASE("process: its end is the end of the group, without being asked") {
    const TemporaryFolder folder;
    int group = 0;
    {
        const Process process({.argv = {script(folder, deaf).string()}});
        group = process.id();
        REQUIRE(prints(process, "ready"));
    }
    CHECK(living_in_group(group) == std::vector<int>{});
}

TEST_CASE("process: a flood fills neither memory nor disk, and its first and last words are kept") {
    const TemporaryFolder folder;
    constexpr std::size_t log_bytes = 1 << 20;
    const double before = resident_mib();
    const auto begin = Clock::now();
    Process process(
        {.argv =
             {script(
                  folder,
                  "echo first words\nyes 0123456789 | head -c 200000000\necho\necho last words\n")
                  .string()},
         .log = folder.path() / "log",
         .log_bytes = log_bytes});
    REQUIRE(process.wait(40s));
    CHECK(seconds_since(begin) < 30);  // 0.2 s on a machine that is idle
    const Words lines = process.lines();
    CHECK(lines.size() == 2000);
    CHECK(lines.front() == "first words");
    CHECK(lines.back() == "last words");
    CHECK(process.lines(10).size() == 10);
    CHECK(resident_mib() - before < 100);  // 5, and what sanitizers keep
    CHECK(fs::file_size(folder.path() / "log") <= log_bytes);
    process.end();
    const std::string log = content(folder.path() / "log");
    CHECK(log.size() <= log_bytes);
    CHECK(log.size() > log_bytes - 200);
    CHECK(log.starts_with("first words\n0123456789\n"));
    CHECK(log.ends_with("0123456789\n01\nlast words\n"));
    const auto note = log.find("\n[servetune: ");
    REQUIRE(note != std::string::npos);
    const auto note_end = log.find(" bytes left out]\n", note);
    const std::size_t left_out = std::stoul(log.substr(note + 13));
    CHECK(left_out + log.size() - (note_end + 17 - note) == printed_bytes(process));
    CHECK(std::count(log.begin(), log.end(), '[') == 1);
}

TEST_CASE("process: how long nobody spoke to a program is known, also while this one is stopped") {
    const Process deaf({.argv = {"/bin/cat"}});
    CHECK(deaf.longest_silence() == 0s);
    const Process hears({.argv = {"/bin/cat"}, .beats = 50ms});
    const std::string self = std::to_string(getpid());
    const Process stops(
        {.argv = {"/bin/sh", "-c", "kill -STOP " + self + "; sleep 1.5; kill -CONT " + self}});
    REQUIRE(stops.wait(20s));
    CHECK(comes_true([&] { return hears.longest_silence() >= 1400ms; }));
}

TEST_CASE("process: a full disk ends the log, not the process") {
    const TemporaryFolder folder;
    const fs::path talks = script(folder, "for i in 1 2 3; do echo line $i; sleep 0.05; done\n");
    Process process({.argv = {talks.string()}, .log = "/dev/full"});
    REQUIRE(process.wait(5s));
    const Words lines = process.lines();
    REQUIRE(lines.size() == 4);
    CHECK(lines[2] == "line 3");
    CHECK(lines[3] ==
          "[servetune: the log ends early: cannot write /dev/full: No space left on device]");
    CHECK(process.exit_code() == 0);

    // The same by the size that a file may have, which comes with a signal that would end us.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{1000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    Process limited({.argv = {"seq", "1000"}, .log = folder.path() / "log"});
    CHECK(limited.wait(5s));
    CHECK(comes_true([&] { return !limited.log_trouble().empty(); }));
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(has(limited.log_trouble(), "File too large"));
    CHECK(limited.lines(4000)[999] == "1000");
    CHECK(fs::file_size(folder.path() / "log") == 1000);
}

TEST_CASE("process: carriage returns, long lines and what has no end of line are lines") {
    const TemporaryFolder folder;
    Process process({.argv = {script(folder,
                                     "printf 'load 1%%\\rload 2%%\\rERROR\\r\\n'\nhead -c 10000 "
                                     "/dev/zero | tr '\\0' x\n")
                                  .string()}});
    REQUIRE(process.wait(5s));
    CHECK(process.lines() == Words{"load 1%", "load 2%", "ERROR", std::string(4096, 'x')});
    std::size_t position = 9;
    CHECK(process.printed_from(position).starts_with("oad 2%\rERROR"));
    CHECK(process.printed_from(position).empty());
}

TEST_CASE("process: descriptors and threads are given back") {
    Process({.argv = {"true"}}).end();  // what libraries and sanitizers start once is there now
    const auto descriptors = entries("/proc/self/fd");
    const auto threads = entries("/proc/self/task");
    for (int i = 0; i < 30; ++i) {
        Process process({.argv = {"true"}});
        if (i % 2 == 0) process.end();
    }
    CHECK(entries("/proc/self/fd") == descriptors);
    CHECK(entries("/proc/self/task") == threads);
}

TEST_CASE("process: what a killed tuner leaves behind is recognised and ended, and nobody else") {
    const TemporaryFolder folder;
    const std::string mark = "study-" + folder.path().filename().string();
    const fs::path child = script(folder, "trap '' TERM\nwhile :; do sleep 1; done\n",
                                  "child");  // silent: nobody will read it
    const fs::path program =
        script(folder, "trap '' TERM\n" + child.string() + " &\nenv -i " + child.string() +
                           " &\nsetsid " + child.string() + " &\nwhile :; do sleep 1; done\n");
    const Process other({.argv = {"sleep", "100"}, .mark = mark + "-b"});
    int group = 0;
    const auto has_left = [&](const Leftover& one) { return one.group != group; };
    std::vector<Leftover> left;
    // The leader, both children in its group (one forgot the mark), the one that left it. A process
    // that is about to become another program shows no environment for a moment: so it is looked at
    // again.
    const auto all_are_there = [&] {
        left = leftovers(mark);
        return shells(left) == 4 && any_of(left, has_left) &&
               any_of(left, [&](const Leftover& one) {
                   return one.id == group && one.group == group && one.start_ticks > 0 &&
                          one.command == "/bin/sh " + program.string();
               });
    };
    {
        ChildProcess tuner({HOLD_PROCESS, mark, "0", program.string()}, folder.path());
        REQUIRE(comes_true([&] { return has(tuner.out(), "\n"); }));
        group = std::stoi(tuner.out());
        REQUIRE(comes_true(all_are_there));
        tuner.signal(SIGKILL);
        tuner.wait();
    }
    const bool all_left = comes_true(all_are_there);
    for (const Leftover& one : left)
        UNSCOPED_INFO(one.id << " in " << one.group << ": " << one.command);
    CHECK(all_left);
    CHECK(end_leftovers(mark, 2s)
              .empty());  // they are deaf to TERM; a busy machine takes a while to bury them
    CHECK(leftovers(mark).empty());
    CHECK(living_in_group(group) == std::vector<int>{});
    for (const Leftover& one : left) CHECK_FALSE(alive(one.id));
    CHECK(other.running());
    CHECK(leftovers("").empty());
}

TEST_CASE("process: an engine that hears TERM goes when its tuner is killed") {
    const TemporaryFolder folder;
    const std::string mark = "study-" + folder.path().filename().string();
    ChildProcess tuner({HOLD_PROCESS, mark, "0", "sleep", "100"}, folder.path());
    REQUIRE(comes_true([&] { return leftovers(mark).size() == 1 && has(tuner.out(), "\n"); }));
    tuner.signal(SIGKILL);
    tuner.wait();
    CHECK(comes_true([&] { return leftovers(mark).empty(); }));
}

TEST_CASE(
    "watchdog: nothing outlives a tuner that is killed with -9: a wrapper's child, one deaf to "
    "TERM, one that left the group") {
    const TemporaryFolder folder;
    const std::string mark = "study-" + folder.path().filename().string();
    const fs::path engine = script(folder, "trap '' TERM\nwhile :; do sleep 1; done\n", "engine");
    const fs::path wrapper = script(folder, "setsid " + engine.string() + " &\nenv -i " +
                                                engine.string() + " &\n" + engine.string() + "\n");
    const Process other({.argv = {"sleep", "100"}, .mark = mark + "-b"});
    ChildProcess tuner({HOLD_PROCESS, mark, "200", wrapper.string()}, folder.path());
    REQUIRE(comes_true([&] { return shells(leftovers(mark)) == 4 && has(tuner.out(), "\n"); }));
    const auto left = leftovers(mark);
    const int watchdog = std::stoi(tuner.out().substr(tuner.out().find(' ')));
    CHECK(alive(watchdog));
    CHECK(getsid(watchdog) == watchdog);  // no terminal's Ctrl-C
    // It holds nothing of the tuner's: a lock, a port or a pipe would stay with it.
    CHECK(entries("/proc/" + std::to_string(watchdog) + "/fd") == 4);
    for (const char* standard : {"0", "1", "2"})
        CHECK(fs::read_symlink("/proc/" + std::to_string(watchdog) + "/fd/" + standard) ==
              "/dev/null");
    kill(watchdog, SIGTERM);
    kill(watchdog, SIGINT);
    tuner.signal(SIGKILL);
    tuner.wait();
    CHECK(comes_true([&] { return leftovers(mark).empty(); }, 10));
    for (const Leftover& one : left) CHECK(comes_true([&] { return !alive(one.id); }, 10));
    CHECK(comes_true([&] { return !alive(watchdog); }, 10));  // it does not outlive its work
    CHECK(other.running());
}

TEST_CASE(
    "watchdog: starts with the first process, is replaced when it is killed, and ends with its "
    "object") {
    const auto descriptors = entries("/proc/self/fd");
    auto watchdog = std::make_shared<Watchdog>(100ms);
    CHECK(watchdog->id() == 0);
    const Process first({.argv = {"sleep", "100"}, .watchdog = watchdog});
    const int id = watchdog->id();
    REQUIRE(id > 0);
    {
        Process second({.argv = {"sleep", "100"}, .watchdog = watchdog});
        CHECK(watchdog->id() == id);
        CHECK_FALSE(second.end().killed);
    }
    kill(id, SIGKILL);
    REQUIRE(comes_true([&] { return !alive(id); }));
    Process third({.argv = {"sleep", "100"}, .watchdog = watchdog});
    const int again = watchdog->id();
    CHECK(again != id);
    CHECK(alive(again));
    CHECK(message_of<IoError>([&] {
              const Process none({.argv = {"/bin/true"}, .input = "/none", .watchdog = watchdog});
          }) != "");
    CHECK_FALSE(third.end().killed);
    CHECK(first.running());
    {
        // Its end with something left to watch: as when the program died.
        const Process deaf_one({.argv = {"/bin/sh", "-c", deaf}});
        REQUIRE(prints(deaf_one, "ready"));
        {
            Watchdog alone(100ms);
            alone.watch("none");
            alone.started("none", deaf_one.id(), deaf_one.start_ticks());
        }
        CHECK(deaf_one.wait(10s));
        CHECK(deaf_one.exit_code() == 128 + SIGKILL);
    }
    watchdog.reset();
    CHECK(alive(again));  // `first` still has it
    CHECK(entries("/proc/self/fd") > descriptors);
}

TEST_CASE("process: on the way out of a program every group that it started is killed at once") {
    Process process({.argv = {"/bin/sh", "-c", deaf}});
    REQUIRE(prints(process, "ready"));
    Process ended({.argv = {"true"}});
    REQUIRE(ended.wait(5s));
    CHECK(ended.end().exit_code == 0);
    kill_started_groups();
    CHECK(process.wait(5s));
    CHECK(process.exit_code() == 128 + SIGKILL);
    kill_started_groups();
}

TEST_CASE(
    "port: reserved ports differ, are free, outside of the kernel's range, and leave nothing "
    "behind") {
    std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
    int low = 0;
    int high = 0;
    range >> low >> high;
    const auto descriptors = entries("/proc/self/fd");
    // Versions before this one kept lock files there, which stayed after a kill -9.
    const auto port_files = [] {
        std::set<fs::path> files;
        for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
            if (entry.path().filename().string().starts_with("servetune-port-"))
                files.insert(entry.path());
        return files;
    };
    const std::set<fs::path> files_before = port_files();
    {
        std::vector<std::unique_ptr<ReservedPort>> ports;
        std::vector<int> numbers;
        for (int i = 0; i < 500; ++i) {
            ports.push_back(std::make_unique<ReservedPort>());
            numbers.push_back(ports.back()->number());
            CHECK((numbers.back() < low || numbers.back() > high || low < 20'000));
        }
        sort(numbers);
        CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
        for (const fs::path& file : port_files()) CHECK(files_before.contains(file));
        const ReservedPort& port = *ports.front();
        CHECK_FALSE(port.listening());
        const Socket server;
        const sockaddr_in address = loopback(static_cast<std::uint16_t>(port.number()));
        REQUIRE(bind(server.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
                0);
        CHECK_FALSE(port.listening());
        REQUIRE(listen(server.id(), 1) == 0);
        CHECK(port.listening());
    }
    CHECK(entries("/proc/self/fd") == descriptors);
}

TEST_CASE("ports: rows are whole, nobody else's while they are held, and given back") {
    const std::size_t descriptors = entries("/proc/self/fd");
    {
        std::vector<std::unique_ptr<ReservedPorts>> rows;
        std::set<int> numbers;
        for (int i = 0; i < 40; ++i) {
            const int first = rows.emplace_back(std::make_unique<ReservedPorts>(8))->first();
            CHECK(first >= 20'000);
            for (int port = first; port < first + 8; ++port) CHECK(numbers.insert(port).second);
        }
        for (int i = 0; i < 200; ++i) CHECK_FALSE(numbers.contains(ReservedPort().number()));
        CHECK(ReservedPorts(0).first() == 0);
    }
    CHECK(entries("/proc/self/fd") == descriptors);
}
