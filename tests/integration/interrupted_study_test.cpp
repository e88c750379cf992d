// SPDX-License-Identifier: Apache-2.0
// Studies that are interrupted: by Ctrl-C, by kill -9, by a disk that is full, by a second process.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/published.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "servetune/sqlite_journal.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// The 14B study slowed down, for watching, stopping and killing.
fs::path interruptible_study(const TemporaryFolder& folder, const std::string& delay) {
    return folder.write("slow.yaml", "use: " + (published / "qwen3-14b-h100/study.yaml").string() +
                                         "\nstudy: slow\nevaluator: {replay: {table: " +
                                         (published / "qwen3-14b-h100/results.csv").string() +
                                         ", unmeasured: exclude, delay: " + delay + "}}\n");
}

}  // namespace

TEST_CASE("Ctrl-C stops cleanly and the study goes on, twice stops at once") {
    const TemporaryFolder folder;
    const std::string study = interruptible_study(folder, "400ms").string();
    {
        ChildProcess process({SERVETUNE_PROGRAM, "run", study}, folder.path());
        REQUIRE(comes_to_trial(folder.path() / "slow", 2));
        process.signal(SIGINT);
        CHECK(process.wait() == 130);
        CHECK(process.out() ==
              "stopped; what was told is kept in slow, 'autotune run' goes on there\n");
    }
    const auto told = SqliteJournal::read(folder.path() / "slow").trials();
    CHECK(told.size() >= 2);
    CHECK_FALSE(told.back().told());
    {
        const std::string long_study = interruptible_study(folder, "60s").string();
        ChildProcess process(
            {SERVETUNE_PROGRAM, "run", long_study, "--directory", "other", "--quiet"},
            folder.path());
        REQUIRE(comes_to_trial(folder.path() / "other", 1));
        process.signal(SIGTERM);
        process.signal(SIGINT);
        CHECK(process.wait() == 130);
    }
    CHECK(autotune({"run", interruptible_study(folder, "0s").string(), "--quiet"}, folder.path())
              .code == 0);
}

TEST_CASE("interrupted while the study is still being prepared, the program ends at once") {
    const TemporaryFolder folder;
    const fs::path table = folder.path() / "t.csv";
    REQUIRE(::mkfifo(table.c_str(), 0600) == 0);  // a table whose end never comes
    const std::string study =
        folder
            .write("s.yaml", "use: " + (published / "qwen3-14b-h100/study.yaml").string() +
                                 "\nstudy: slow\nevaluator: {replay: {table: t.csv}}\n")
            .string();
    ChildProcess process({SERVETUNE_PROGRAM, "run", study}, folder.path());
    int writer = -1;
    REQUIRE(comes_true(
        [&] { return (writer = ::open(table.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }));  // it reads
    process.signal(SIGINT);
    CHECK(process.wait_at_most(std::chrono::seconds(20)) == 130);
    CHECK(has(process.err(), "stopped before the first trial; nothing is lost"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "slow/study.db"));
    ::close(writer);
}

TEST_CASE("a disk that fills up: every size at which writing stops leaves a study that goes on") {
    const TemporaryFolder reference;
    const std::string study = (published / "qwen3-14b-h100/study.yaml").string();
    REQUIRE(autotune({"run", study, "--directory", "d", "--quiet"}, reference.path()).code == 0);
    const std::vector<Trial> whole = SqliteJournal::read(reference.path() / "d").trials();
    int refused = 0;
    for (rlim_t limit = 4096; limit <= 300'000; limit += 24'000) {
        const TemporaryFolder folder;
        ChildProcess process({SERVETUNE_PROGRAM, "run", study, "--directory", "d", "--quiet"},
                             folder.path(), limit);
        const int code = process.wait();
        INFO("limit " << limit << ": " << process.err());
        CHECK((code == 0 || code == 3));
        if (code == 3) {
            ++refused;
            CHECK(process.err().starts_with("autotune: "));
        }
        // With room again the study goes on where it was, unless not even its journal could be
        // made: then it begins.
        if (autotune({"run", study, "--directory", "d", "--quiet"}, folder.path()).code != 0) {
            CHECK(limit < 20'000);
            continue;
        }
        const std::vector<Trial> ended = SqliteJournal::read(folder.path() / "d").trials();
        REQUIRE(ended.size() == whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i) CHECK(ended[i].outcome == whole[i].outcome);
    }
    CHECK(refused > 2);
}

TEST_CASE("status: says whether a run is under way, and why the last one stopped") {
    const TemporaryFolder folder;
    const std::string study = interruptible_study(folder, "30ms").string();
    const auto status = [&] { return autotune({"status", study}, folder.path()).out; };
    {
        ChildProcess full({SERVETUNE_PROGRAM, "run", study, "--quiet"}, folder.path(),
                          100'000);  // as on a full disk
        REQUIRE(full.wait() == 3);
        const std::string why =
            full.err().substr(10, full.err().find('\n') - 10);  // behind "autotune: "
        INFO(full.err());
        const std::string said = status();
        INFO(said);
        CHECK(has(said, "\n  the last run stopped: " + why +
                            "\n  no run is under way; 'autotune run' goes on\n"));
    }
    {
        const std::string slower = interruptible_study(folder, "2s").string();
        ChildProcess running({SERVETUNE_PROGRAM, "run", slower, "--quiet", "--accept-changes"},
                             folder.path());
        const auto seen = [&] {
            return has(autotune({"status", slower}, folder.path()).out, "\n  a run is under way\n");
        };
        CHECK(comes_true(seen));
        running.signal(SIGINT);
        CHECK(running.wait() == 130);
        CHECK(has(status(), "\n  no run is under way; 'autotune run' goes on\n  so far: "));
    }
    REQUIRE(
        autotune({"run", interruptible_study(folder, "0s").string(), "--quiet", "--accept-changes"},
                 folder.path())
            .code == 0);
    CHECK_FALSE(has(status(), "under way"));  // it has ended
}

TEST_CASE("two processes cannot run one study") {
    const TemporaryFolder folder;
    const std::string study = interruptible_study(folder, "2s").string();
    ChildProcess first({SERVETUNE_PROGRAM, "run", study, "--quiet"}, folder.path());
    REQUIRE(comes_to_trial(folder.path() / "slow", 1));
    const TemporaryFolder elsewhere;  // so that the two do not share their output files
    const Ran second = autotune({"run", study, "--directory", (folder.path() / "slow").string()},
                                elsewhere.path());
    CHECK(second.code == 3);
    CHECK(has(second.err, "another process is running this study"));
    CHECK(autotune({"status", study, "--directory", (folder.path() / "slow").string()},
                   elsewhere.path())
              .code == 0);
}

TEST_CASE(
    "kill -9 at random moments: no told trial is lost, and the study ends as an unkilled one") {
    const TemporaryFolder folder;
    const std::string study = interruptible_study(folder, "30ms").string();
    CHECK(autotune({"run", study, "--directory", "whole", "--quiet"}, folder.path()).code == 0);
    const std::vector<Trial> whole = SqliteJournal::read(folder.path() / "whole").trials();

    const char* wanted = std::getenv("SERVETUNE_TEST_KILLS");  // NOLINT(concurrency-mt-unsafe)
    const int all_kills = wanted != nullptr ? std::stoi(wanted) : 50;
    Rng rng(20261121);
    std::vector<Trial> before;
    int kills = 0;
    while (kills < all_kills) {
        // A study that is done has nothing left to kill: begin another.
        const std::string directory = "killed" + std::to_string(kills / 10);
        if (kills % 10 == 0) before.clear();
        {
            ChildProcess process(
                {SERVETUNE_PROGRAM, "run", study, "--directory", directory, "--quiet"},
                folder.path());
            std::this_thread::sleep_for(
                std::chrono::microseconds(static_cast<int>(rng.uniform() * 120'000)));
            process.signal(SIGKILL);
            (void)process.wait();
        }
        ++kills;
        if (!fs::exists(folder.path() / directory / "study.db")) continue;
        std::vector<Trial> after;
        try {
            after = SqliteJournal::read(folder.path() / directory).trials();
        } catch (const IoError&) {
            CHECK(
                before.empty());  // killed while the journal was being made: nothing had been told
            continue;
        }
        for (const Trial& trial : before) {
            REQUIRE(trial.id < after.size());
            if (trial.told()) CHECK(after[trial.id].outcome == trial.outcome);
        }
        before = after;
        if (kills % 10 != 0) continue;
        REQUIRE(autotune({"run", study, "--directory", directory, "--quiet"}, folder.path()).code ==
                0);
        const std::vector<Trial> ended = SqliteJournal::read(folder.path() / directory).trials();
        REQUIRE(ended.size() == whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i) {
            CHECK(ended[i].configuration == whole[i].configuration);
            CHECK(ended[i].workload == whole[i].workload);
            CHECK(ended[i].seed == whole[i].seed);
            CHECK(ended[i].outcome == whole[i].outcome);
        }
    }
}
