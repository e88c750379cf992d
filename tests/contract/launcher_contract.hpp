// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/launcher.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune::test {

/// A launcher where it works: `shell` and `sleep` are programs that it can start, `image` what it
/// starts them from.
struct LauncherWorld {
    std::shared_ptr<const Launcher> launcher;
    std::string image{};
    std::string shell = "/bin/sh";
    std::int64_t devices = 0;  ///< of each launch
};

/// Words of processes of this machine that hold `text`; those of this process are left out.
inline std::vector<std::string> command_lines_with(const std::string& text) {
    std::vector<std::string> result;
    std::error_code none;
    for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
        const std::string name = process.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos ||
            name == std::to_string(getpid()))
            continue;
        std::ifstream stream(process.path() / "cmdline", std::ios::binary);
        const std::string words{std::istreambuf_iterator<char>(stream), {}};
        if (has(words, text)) result.push_back(words);
    }
    return result;
}

/// The client of a launch, as a deployment starts it.
inline ProcessOptions client_of(const Launch& launch) {
    ProcessOptions result;
    result.argv = launch.argv;
    result.environment = launch.environment;
    result.told = launch.told;
    result.beats = launch.beats;
    result.facts = launch.facts;
    return result;
}

/// What a launcher started, as a deployment starts it.
class Launched {
public:
    /// `study`: whose it is; empty: of one of its own.
    Launched(const LauncherWorld& world, const std::vector<std::string>& words,
             const std::map<std::string, std::string>& environment = {},
             std::filesystem::path study = {})
        : study_(std::move(study)),
          world_(world),
          launch_(world.launcher->launch(request(world, words, environment))),
          process_(options()) {}
    ~Launched() {
        (void)end(std::chrono::seconds(1));
        (void)world_.launcher->remove(launch_);
    }
    Launched(const Launched&) = delete;
    Launched& operator=(const Launched&) = delete;

    [[nodiscard]] Process& process() { return process_; }
    Ended end(std::chrono::milliseconds patience) {
        return end_launched(*world_.launcher, launch_, process_, patience);
    }
    [[nodiscard]] const Launch& launch() const { return launch_; }
    [[nodiscard]] std::string mark() const {
        return (study_.empty() ? folder_.path() : study_).string();
    }
    [[nodiscard]] std::string said() const {
        std::string all;
        for (const std::string& line : process_.lines()) all += line + "\n";
        return all;
    }
    bool comes_to_say(const std::string& text) {
        return comes_true([&] { return has(said(), text); });
    }
    /// Of this study, anywhere: processes and what the launcher knows.
    [[nodiscard]] bool something_left() const {
        return !leftovers(mark()).empty() || !world_.launcher->leftovers(mark()).empty();
    }
    /// A container's helpers go a moment after it.
    [[nodiscard]] bool comes_to_nothing() const {
        return comes_true([&] { return !something_left(); });
    }

private:
    LaunchRequest request(const LauncherWorld& world, const std::vector<std::string>& words,
                          const std::map<std::string, std::string>& environment) const {
        LaunchRequest result;
        result.command.argv = words;
        result.environment = environment;
        result.image = world.image;
        result.folder = folder_.path();
        result.mark = mark();
        result.devices = world.devices;
        return result;
    }
    [[nodiscard]] ProcessOptions options() const {
        ProcessOptions result = client_of(launch_);
        result.folder = folder_.path();
        result.mark = mark();
        return result;
    }
    TemporaryFolder folder_;
    std::filesystem::path study_;
    const LauncherWorld& world_;
    Launch launch_;
    Process process_;
};

/// What every launcher keeps: output, exit code, environment and words come through unchanged; no
/// process list shows what the environment holds; TERM reaches the program, what does not go by it
/// is killed; nothing is left by an end, and what a killed client has left is found by the study's
/// mark and removed; a program that is missing is named.
inline void check_launcher(const LauncherWorld& world) {
    using namespace std::chrono_literals;
    const Launcher& launcher = *world.launcher;
    CHECK_FALSE(launcher.name().empty());
    REQUIRE(launcher.trouble(world.image) == "");
    CHECK((launcher.in_containers() && launcher.on_this_machine()) !=
          launcher.pinned(world.image).empty());

    {  // output and exit code
        Launched one(world, {world.shell, "-c", "echo to-out; echo to-err >&2; exit 7"});
        REQUIRE(one.process().wait(60s));
        CHECK(one.process().exit_code() == 7);
        CHECK(one.comes_to_say("to-out\n"));
        CHECK(one.comes_to_say("to-err\n"));
        CHECK_FALSE(launcher.ended(one.launch(), 7, one.process().lines()).has_value());
        (void)one.end(1s);
        CHECK(launcher.remove(one.launch()) == "");
        CHECK(launcher.remove(one.launch()) == "");  // again: it is gone
        CHECK(one.comes_to_nothing());
    }
    {  // words are words, whatever stands in them
        Launched one(world, {world.shell, "-c", "printf '<%s>' \"$@\"; echo", "x", "a b", "",
                             "$(id)", "; echo no", "'\"", "--rm", "tab\there"});
        REQUIRE(one.process().wait(60s));
        CHECK(one.comes_to_say("<a b><><$(id)><; echo no><'\"><--rm><tab\there>\n"));
    }
    {  // the environment, and who may see it
        const std::string secret = "hf_planted5ecret" + std::to_string(getpid());
        Launched one(world,
                     {world.shell, "-c",
                      "test \"$PLANTED\" = \"$PLANTED\" && echo length ${#PLANTED}; sleep 60"},
                     {{"PLANTED", secret}});
        REQUIRE(one.comes_to_say("length " + std::to_string(secret.size())));
        CHECK(command_lines_with(secret).empty());
        for (const std::string& word : one.launch().argv) CHECK_FALSE(has(word, secret));
        CHECK(one.something_left());
        (void)one.end(5s);
        CHECK(launcher.remove(one.launch()) == "");
        CHECK(one.comes_to_nothing());
    }
    {  // TERM is heard
        Launched one(
            world, {world.shell, "-c",
                    "trap 'echo was told; exit 3' TERM; echo waits; while :; do sleep 0.1; done"});
        REQUIRE(one.comes_to_say("waits"));
        const Ended ended = one.end(20s);
        CHECK_FALSE(ended.killed);
        CHECK(one.comes_to_say("was told"));
        CHECK(launcher.remove(one.launch()) == "");
        CHECK(one.comes_to_nothing());
    }
    {  // or not heard
        Launched one(world,
                     {world.shell, "-c", "trap '' TERM; echo waits; while :; do sleep 0.1; done"});
        REQUIRE(one.comes_to_say("waits"));
        CHECK(
            (one.end(1s).killed ||
             !launcher
                  .on_this_machine()));  // elsewhere a client may go while its engine does not hear
        CHECK(launcher.remove(one.launch()) == "");
        CHECK(one.comes_to_nothing());
    }
    {  // the client is killed: what it leaves is found and goes
        Launched one(world, {world.shell, "-c",
                             "trap '' TERM HUP; while :; do sleep 0.1; done & echo waits; wait"});
        REQUIRE(one.comes_to_say("waits"));
        kill(one.process().id(), SIGKILL);
        REQUIRE(one.process().wait(20s));
        CHECK(one.something_left());
        CHECK(launcher.leftovers(one.mark() + "-of-another-study").empty());
        CHECK(launcher.end_leftovers(one.mark()).empty());
        CHECK(end_leftovers(one.mark(), 1s).empty());
        CHECK(one.comes_to_nothing());
    }
    {  // no such program
        std::string message;
        try {
            Launched one(world, {"/no/such/engine", "serve"});
            REQUIRE(one.process().wait(60s));
            const auto failure = launcher.ended(one.launch(), one.process().exit_code().value_or(0),
                                                one.process().lines());
            REQUIRE(failure);
            CHECK(failure->kind == FailureKind::unsupported);
            message = failure->message;
        } catch (const IoError& error) {
            message = error.what();
        }
        CHECK(has(message, "/no/such/engine"));
    }
}

}  // namespace servetune::test
