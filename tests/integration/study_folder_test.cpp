// SPDX-License-Identifier: Apache-2.0
// A study's folder from outside: read by others, moved in mid-run, with something else in the place
// of its files.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <iostream>

using namespace servetune;
using namespace servetune::test;

namespace {

const fs::path fast_study =
    fs::path(SERVETUNE_SOURCE) / "search_spaces/published/qwen3-14b-h100/study.yaml";

}  // namespace

TEST_CASE(
    "a study's folder that is moved in mid-run ends the run with an error, put back, it goes on") {
    const TemporaryFolder folder;
    const fs::path study = folder.write(
        "slow.yaml", "use: " + fast_study.string() + "\nstudy: slow\nevaluator: {replay: {table: " +
                         (fast_study.parent_path() / "results.csv").string() +
                         ", unmeasured: exclude, delay: 300ms}}\n");
    const fs::path directory = folder.path() / "slow";
    std::size_t recorded = 0;
    {
        ChildProcess process({SERVETUNE_PROGRAM, "run", study.string(), "--quiet"}, folder.path());
        REQUIRE(comes_true([&] { return trials_so_far(directory).size() >= 2; }));
        fs::rename(directory, folder.path() / "away");
        const auto code = process.wait_at_most(std::chrono::seconds(60));
        INFO(process.err());
        REQUIRE(code == 3);
        CHECK(process.err() ==
              "autotune: journal slow/study.db: slow/study.db was removed, moved or replaced while "
              "the study ran, so nothing more can be "
              "recorded; put back what was there and run again, or choose another --directory\n");
        CHECK_FALSE(fs::exists(directory));
        recorded = trials_so_far(folder.path() / "away").size();
        CHECK(recorded >= 2);
    }
    fs::rename(folder.path() / "away", directory);
    const Ran again = autotune({"run", study.string(), "--quiet"}, folder.path());
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(trials_so_far(directory).size() == 15);
}

TEST_CASE(
    "another user reads a study: status, report, explain, and what another study learns from it") {
    const TemporaryFolder folder;
    fs::permissions(folder.path(), static_cast<fs::perms>(0755));
    const std::string study = fast_study.string();
    REQUIRE(autotune({"run", study, "--directory", "kept", "--quiet"}, folder.path()).code == 0);
    const std::vector<std::string> as_nobody{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                             "--clear-groups", SERVETUNE_PROGRAM};
    std::vector<std::string> version = as_nobody;
    version.emplace_back("--version");
    if (geteuid() != 0 || ran(version, folder.path()).code != 0) {
        std::cout << "skipped: only root can become somebody else, who must be allowed to start "
                     "the program\n";
        return;
    }
    const std::string kept = (folder.path() / "kept").string();
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"status", study, "--directory", kept},
          std::vector<std::string>{"status", study, "--directory", kept, "--json"},
          std::vector<std::string>{"report", study, "--directory", kept},
          std::vector<std::string>{"explain", study, "--directory", kept},
          std::vector<std::string>{"explain", study, "--directory", kept, "--strategy", "bayesian",
                                   "--learn-from", kept + "/study.db"},
          std::vector<std::string>{"render", study}}) {
        INFO(words.front());
        const Ran own = autotune(words, folder.path());
        std::vector<std::string> all = as_nobody;
        all.insert(all.end(), words.begin(), words.end());
        const Ran other = ran(all, folder.path());
        CHECK(other.code == own.code);
        CHECK(other.out == own.out);
        CHECK(other.err == own.err);
        CHECK(own.code ==
              (words.back().ends_with("study.db") ? 2 : 0));  // a study does not learn from itself
    }
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(kept))
        files += entry.path().filename().string().starts_with("study.") ? 1 : 0;
    CHECK(files == 2);  // study.db and study.lock: reading has left nothing
}
