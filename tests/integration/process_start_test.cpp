// SPDX-License-Identifier: Apache-2.0
// Starts of programs: what a program gets, and what is said and left where it cannot start.
#include "support/script.hpp"
#include "support/test.hpp"

#include "host/start_program.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "support/in_child.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("process: what cannot be started says why") {
    const TemporaryFolder folder;
    const auto why = [](ProcessOptions options) {
        return message_of<IoError>([&] { const Process process(options); });
    };
    CHECK(why({.argv = {"no-such-program-here"}}) ==
          "cannot start no-such-program-here: no such program in $PATH");
    CHECK(why({.argv = {"/no/such"}}) == "cannot start /no/such: no such program");
    const fs::path plain = folder.write("plain", "#!/no/interpreter\n");
    CHECK(why({.argv = {plain.string()}}) ==
          "cannot start " + plain.string() + ": no such program");
    fs::permissions(plain, fs::perms::owner_all);
    CHECK(has(why({.argv = {plain.string()}}),
              "the interpreter that its first line names is not there"));
    CHECK(why({.argv = {"true"}, .folder = plain / "below"}).find("cannot make the folder") == 0);
    CHECK(has(why({.argv = {"true"}, .folder = folder.path(), .log = folder.path()}),
              "Is a directory"));
    CHECK(has(why({.argv = {"true"}, .cores = {900}}), "on the cores asked for"));
    fs::create_symlink("/dev/full", folder.path() / "options.yaml");
    CHECK(has(why({.argv = {"true"}, .files = {{"options.yaml", "a: 1"}}, .folder = folder.path()}),
              "No space left on device"));
}

TEST_CASE(
    "process: an empty word is a word, and none of this process's descriptors is the program's") {
    // No O_CLOEXEC: as a library may open it.
    const int ours = open("/dev/null", O_RDONLY);  // NOLINT(android-cloexec-open)
    REQUIRE(ours >= 0);
    // printf(1) takes the arguments two by two. The shell has 0, 1 and 2; `ls` opens the folder
    // itself.
    Process process(
        {.argv = {"/bin/sh", "-c", "printf '[%s|%s]\\n' \"$@\"; ls /proc/self/fd | wc -l", "sh", "",
                  "a", "b", ""}});
    REQUIRE(process.wait(5s));
    CHECK(process.lines() == Words{"[|a]", "[b|]", "4"});
    close(ours);
}

TEST_CASE("process: a program that cannot start leaves no child, no descriptor and no file") {
    const TemporaryFolder folder;
    const fs::path program = script(folder, "exit 0\n", "no_interpreter");
    folder.write("no_interpreter", "#!/no/interpreter\n");
    Process({.argv = {"true"}}).end();
    const auto descriptors = entries("/proc/self/fd");
    for (const fs::path& input : {fs::path(), folder.path() / "input"}) {
        CHECK_FALSE(message_of<IoError>([&] {
                        const Process none({.argv = {program.string()}, .input = input});
                    }).empty());
        siginfo_t child{};
        CHECK(waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == -1);
        CHECK(errno == ECHILD);
    }
    CHECK_FALSE(fs::exists(folder.path() / "input"));
    CHECK(entries("/proc/self/fd") == descriptors);
    CHECK(has(message_of<IoError>([&] { const Process none({.argv = {"true"}, .cores = {900}}); }),
              "on the cores"));
    CHECK(waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) == -1);
}

TEST_CASE(
    "process: a folder, a descriptor or a child that cannot be had is an error, and the program "
    "does not run") {
    const TemporaryFolder folder;
    const fs::path program = script(folder, "echo ran > \"$1\"\n");
    const fs::path ran = folder.path() / "ran";
    const auto why = [&](ChildProgram child, int output) {
        child.file = program;
        child.argv = {"program", ran.string()};
        return message_of<IoError>([&] { start_program(child, output); });
    };
    const std::string cannot = "cannot start " + program.string();
    CHECK(why({.folder = "/no/such"}, 2) == cannot + " in /no/such: No such file or directory");
    CHECK(why({.folder = program}, 2) == cannot + " in " + program.string() + ": Not a directory");
    CHECK(why({}, 999) == cannot + ": no input and output for it: Bad file descriptor");
    if (geteuid() == 0)  // a user with a limit: root has none
        CHECK(in_child([&] {
                  const rlimit none{0, 0};
                  if (setrlimit(RLIMIT_NPROC, &none) != 0 || setresuid(65534, 65534, 65534) != 0)
                      return std::string("not limited");
                  start_program({.file = "/bin/true", .argv = {"true"}}, 2);
                  return std::string("started");
              }) ==
              "cannot start /bin/true: Resource temporarily unavailable; processes are limited "
              "(ulimit -u)");
    CHECK(waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) == -1);
    CHECK_FALSE(fs::exists(ran));
}
