// SPDX-License-Identifier: Apache-2.0
// What engines say of their own flags: reading it, and asking a program for it within limits.
#include "support/help_text.hpp"
#include "support/process.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "engine/help.hpp"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

using Flags = std::set<std::string>;

std::string help_script(const TemporaryFolder& folder, const std::string& name,
                        const std::string& body) {
    const std::filesystem::path file = folder.write(name, "#!/bin/sh\n" + body);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
}

InstalledFlags asked_for_help(const std::string& program, const HelpLimits& limits = {},
                              std::vector<std::vector<std::string>> help = {{"--help"}},
                              std::vector<std::string> of_removed = {}) {
    Engine engine{"e"};
    engine.help_of_removed = std::move(of_removed);
    engine.launch = {program, "--model", "{model}", "--port", "{port}"};
    engine.help = std::move(help);
    return installed_flags(engine, limits);
}

}  // namespace

TEST_CASE("help: argparse lists a flag with its spellings, values and description") {
    CHECK(flags_in_help("usage: serve [-h] [--hidden-in-usage N]\n"
                        "             [--more N]\n"
                        "\n"
                        "options:\n"
                        "  -h, --help            show this and exit\n"
                        "  --seats SEATS, -s SEATS\n"
                        "                        How many, see --other-flag, or\n"
                        "                        --third-flag, -3\n"
                        "  --lights, --no-lights\n"
                        "  --dtype {auto,half,-}, -d {auto,half,-}\n"
                        "  --list [LIST ...]     Several, 1 or more, -x is none of them\n"
                        "  --part.of.json JSON   A part\n"
                        "  - a bullet, --not-this\n"
                        "  -- nor this\n"
                        "  -1 is a number\n") == Flags{"-h", "--help", "--seats", "-s", "--lights",
                                                       "--no-lights", "--dtype", "-d", "--list",
                                                       "--part.of.json"});
}

TEST_CASE("help: click puts the way off behind a slash, and its names have underscores") {
    CHECK(flags_in_help("Usage: serve [OPTIONS] MODEL\n"
                        "\n"
                        "Options:\n"
                        "  --max_seats INTEGER           Most of them. [default: 8; x>=1]\n"
                        "  --lights / --no_lights        On, or -- off\n"
                        "  -v, --verbose                 More, --more\n"
                        "  --level [low|high]\n"
                        "  --file=PATH\n") ==
          Flags{"--max_seats", "--lights", "--no_lights", "-v", "--verbose", "--level", "--file"});
}

TEST_CASE("help: llama.cpp pads short spellings with blanks and lists the negations") {
    CHECK(flags_in_help("----- common params -----\n"
                        "\n"
                        "-fa,   --flash-attn [on|off|auto]       attention (default: 'auto')\n"
                        "-kvu,  --kv-unified, -no-kvu, --no-kv-unified\n"
                        "                                        one cache, --not-this\n"
                        "-h,    --help, --usage                  print usage\r\n"
                        "--gone N                                the argument has been removed. "
                        "use the respective\n"
                        "--part-*-of it\n"
                        "--types none,one,two                    a list, -y\n"
                        "--tab N\twide, --not-that\n",
                        {"has been deleted", "the argument has been removed"}) ==
          Flags{"-fa", "--flash-attn", "-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified", "-h",
                "--help", "--usage", "--types", "--tab"});
    CHECK(flags_in_help("").empty());
    CHECK(flags_in_help("-").empty());
}

TEST_CASE(
    "help: of a pair that switches on and off the older spelling is taken too, though no help "
    "lists it") {
    CHECK(flags_in_help(
              "  --enable-cache, --disable-cache\n"
              "                        Share prefixes, see --enable-other, --disable-other\n"
              "  --disable-cascade, --enable-cascade\n"
              "  --eager, --no-eager\n"
              "  --enable-log, -l\n"
              "  --enable-a, --disable-b\n") ==
          Flags{"--enable-cache", "--disable-cache", "--no-enable-cache", "--disable-cascade",
                "--enable-cascade", "--no-disable-cascade", "--eager", "--no-eager", "--enable-log",
                "-l", "--enable-a", "--disable-b"});
    // What vLLM 0.33 prints, made of its stored facts: each way off of the engine file is there.
    std::set<std::string> ways_off;
    const std::set<std::string> flags =
        flags_in_help(help_text_of(search_spaces / "engines/versions/vllm-0.33.0.json"));
    for (const EngineParameter& declared : shipped_catalogue.engine("vllm").parameters)
        if (const std::string& off = declared.destination.off_flag;
            off.starts_with("--no-enable-") || off.starts_with("--no-disable-")) {
            INFO(off);
            CHECK(flags.contains(off));
            CHECK(flags.contains("--" + off.substr(5)));
            ways_off.insert(off);
        }
    CHECK(ways_off.size() == 9);
}

TEST_CASE(
    "an installed engine is asked for its flags, in other words until it lists those of its launch "
    "command") {
    const TemporaryFolder folder;
    const std::string groups = help_script(folder, "groups",
                                           "[ \"$1\" = --help=all ] && printf ' --model M\\n "
                                           "--port P\\n --seats S\\n' || echo ' --group G'\n");
    const InstalledFlags whole = asked_for_help(groups, {}, {{"--help"}, {"--help=all"}});
    CHECK(whole.command == groups + " --help=all");
    CHECK(whole.flags == Flags{"--model", "--port", "--seats"});
    CHECK(whole.why_not.empty());
    CHECK(asked_for_help(groups, {}, {{"--help=all"}}, {"seats S"}).flags ==
          Flags{"--model", "--port"});
    const InstalledFlags part = asked_for_help(groups);
    CHECK(part.flags.empty());
    CHECK(part.why_not ==
          "'" + groups + " --help' does not list --model, so not all flags: it was not consulted");
}

TEST_CASE("an engine that does not answer is said so in one line") {
    const TemporaryFolder folder;
    const std::string absent = (folder.path() / "absent").string();
    CHECK(asked_for_help(absent).why_not ==
          absent + " is not installed here: its --help was not consulted");
    CHECK(asked_for_help("no-such-engine-on-any-path").why_not ==
          "no-such-engine-on-any-path is not installed here: its --help was not consulted");
    const std::string failing =
        help_script(folder, "failing", "echo first; echo 'no device found' >&2; exit 3\n");
    CHECK(asked_for_help(failing).why_not ==
          "'" + failing +
              " --help' ended with exit code 3, saying: no device found: it was not consulted");
    const std::string killed = help_script(folder, "killed", "kill -9 $$\n");
    CHECK(asked_for_help(killed).why_not ==
          "'" + killed + " --help' ended with exit code 137, without a word: it was not consulted");
    const std::string talking =
        help_script(folder, "talking", "while :; do echo --model --port; done\n");
    HelpLimits few;
    few.output_bytes = 1000;
    CHECK(asked_for_help(talking, few).why_not ==
          "'" + talking +
              " --help' printed more than 1000 bytes and was stopped: it was not consulted");
}

TEST_CASE("an engine that hangs is stopped with everything it started") {
    const TemporaryFolder folder;
    const std::string hanging = help_script(
        folder, "hanging", "sleep 600 & echo $! > '" + folder.path().string() + "/pid'\nwait\n");
    HelpLimits soon;
    soon.time = std::chrono::milliseconds(500);
    const InstalledFlags none = asked_for_help(hanging, soon, {{"--help"}, {"--help=all"}});
    CHECK(none.flags.empty());
    CHECK(none.why_not ==
          "'" + hanging +
              " --help' gave no answer within 0.5 s and was stopped: it was not consulted");

    // One that ends but leaves a process behind, which keeps the pipe open, has answered.
    const std::string leaving = help_script(folder, "leaving",
                                            "sleep 600 & echo $! > '" + folder.path().string() +
                                                "/left'\necho '--model M'; echo '--port P'\n");
    CHECK(asked_for_help(leaving).flags == Flags{"--model", "--port"});
    for (const char* name : {"pid", "left"}) {
        pid_t pid = 0;
        std::ifstream(folder.path() / name) >> pid;
        REQUIRE(pid > 0);
        for (int i = 0; i < 1000 && alive(pid); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        CHECK_FALSE(alive(pid));
    }
}
