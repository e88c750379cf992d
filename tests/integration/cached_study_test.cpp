// SPDX-License-Identifier: Apache-2.0
// The cache of finished studies: what a run says and learns of what earlier runs measured.
#include "support/autotune.hpp"
#include "support/deployed_study.hpp"
#include "support/simengine.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/sqlite_journal.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// A deployed study with a cache of its own. The engine is of a version that its package tells.
class StudyWithCache {
public:
    StudyWithCache() { becomes("0.11.0"); }
    void becomes(const std::string& version) const {
        const fs::path packages = study_.folder() / "lib/python3.12/site-packages";
        fs::remove_all(packages);
        fs::create_directories(packages / ("vllm-" + version + ".dist-info"));
    }
    [[nodiscard]] fs::path studies() const { return study_.folder() / "cache/studies"; }
    /// In that folder, with the strategy that learns.
    Ran run_in(const std::string& folder, std::vector<std::string> more = {},
               std::vector<std::string> environment = {}) {
        study_.put_into(study_.folder() / folder);
        more.insert(more.begin(), {"--strategy", "bayesian"});
        if (environment.empty())
            environment = {"SERVETUNE_CACHE=" + (study_.folder() / "cache").string()};
        environment.insert(environment.begin(), "/usr/bin/env");
        return study_.run(more, environment);
    }
    [[nodiscard]] std::vector<Trial> trials() const { return study_.trials(); }
    [[nodiscard]] fs::path file(const std::string& name) const { return study_.directory() / name; }
    [[nodiscard]] const fs::path& folder() const { return study_.folder(); }
    [[nodiscard]] std::vector<fs::path> kept() const {
        std::vector<fs::path> result;
        for (const auto& entry : fs::directory_iterator(studies())) result.push_back(entry.path());
        return result;
    }

private:
    DeployedStudy study_;
};

std::string value_of_second(const std::vector<Trial>& trials) {
    REQUIRE(trials.size() > 1);
    return trials[1].configuration.text();
}

}  // namespace

TEST_CASE(
    "cached study: the second run says the answer and its date at once, and tries what was best as "
    "its second trial") {
    StudyWithCache study;
    const Ran first = study.run_in("first");
    INFO(first.err);
    REQUIRE(first.code == 0);
    CHECK_FALSE(has(first.err, "made before"));
    CHECK_FALSE(has(value_of_second(study.trials()),
                    "32"));  // nothing is known, and the levels are tried in their order
    REQUIRE(study.kept().size() == 1);
    CHECK(has(first.err, "kept for later runs: " + study.kept().front().string()));

    const Ran plan = study.run_in("plan", {"--dry-run"});
    INFO(plan.out << plan.err);
    CHECK(plan.code == 0);
    CHECK(has(plan.out, "this study was made before, on 20"));
    CHECK_FALSE(fs::exists(study.file("study.db")));

    const Ran second = study.run_in("second");
    INFO(second.err);
    REQUIRE(second.code == 0);
    CHECK(has(second.err, "this study was made before, on 20"));
    CHECK(has(second.err,
              ", in " +
                  std::to_string(SqliteJournal::read(study.folder() / "first").trials().size()) +
                  " trials: " + study.kept().front().string()));
    CHECK(has(second.err, "\n  then: Recommended: "));
    CHECK(has(second.err, "\n  " + best_command));
    CHECK(has(second.err, "all is measured anew"));
    CHECK(has(value_of_second(study.trials()), "max_num_seqs=32"));
    CHECK(study.trials()[0].started_at >
          SqliteJournal::read(study.folder() / "first").trials().back().told_at);
    CHECK(study.kept().size() == 1);
    CHECK(has(second.err, "kept for later runs, in place of an earlier run's "));
    // The report names what was learned, and says the same afterwards and without the cache.
    const std::string report = read_file(study.file("report.md"));
    CHECK(has(report, "which the cache had"));
    fs::remove_all(study.studies());
    CHECK(autotune({"report", (study.folder() / "second").string()}, study.folder()).out == report);
    const Ran resumed = study.run_in("second");
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    CHECK_FALSE(has(resumed.err, "made before"));
    CHECK(has(resumed.out, "nothing was left to measure"));
    // Whoever has the journal alone goes on without it.
    fs::remove(study.file("earlier.db"));
    CHECK(study.run_in("second").code == 0);
    CHECK(has(autotune({"explain", (study.folder() / "second").string()}, study.folder()).err,
              "the run also learned from the study 'deployed'"));
}

TEST_CASE(
    "cached study: --no-cache neither looks nor adds, knowledge of the user's own goes first") {
    StudyWithCache study;
    const Ran without = study.run_in("a", {"--no-cache"});
    CHECK(without.code == 0);
    CHECK_FALSE(fs::exists(study.studies()));
    CHECK_FALSE(has(without.err, "later runs"));
    REQUIRE(study.run_in("b").code == 0);
    const auto written = fs::last_write_time(study.kept().front());
    const Ran again = study.run_in("c", {"--no-cache"});
    CHECK(again.code == 0);
    CHECK_FALSE(has(again.err, "made before"));
    CHECK_FALSE(fs::exists(study.file("earlier.db")));
    CHECK(fs::last_write_time(study.kept().front()) == written);
    const Ran taught = study.run_in("d", {"--learn-from", (study.folder() / "a").string()});
    INFO(taught.err);
    CHECK(taught.code == 0);
    CHECK(has(taught.err, "this study was made before"));  // it is an answer all the same
    CHECK_FALSE(fs::exists(study.file("earlier.db")));
}

TEST_CASE(
    "cached study: another version of the engine and another question are learned from and answer "
    "nothing") {
    StudyWithCache study;
    REQUIRE(study.run_in("old").code == 0);
    study.becomes("0.12.0");
    const Ran other = study.run_in("new");
    INFO(other.err);
    CHECK(other.code == 0);
    CHECK_FALSE(has(other.err, "made before"));
    CHECK(has(other.err, "learning from the study 'deployed', "));
    CHECK(has(other.err, " with vllm 0.11.0 (now vllm 0.12.0): "));
    CHECK(has(value_of_second(study.trials()), "max_num_seqs=32"));
    CHECK(study.kept().size() == 2);
    const std::string text = read_file(study.folder() / "study.yaml");
    write_file(study.folder() / "study.yaml",
               replaced(text, "choice: [4, 3, 32]", "choice: [4, 3, 16, 32]"));
    const Ran wider = study.run_in("wider");
    INFO(wider.err);
    CHECK_FALSE(has(wider.err, "made before"));
    CHECK(
        has(wider.err, "on the same machine, with the same model, engine and kind of workload: "));
    write_file(study.folder() / "study.yaml",
               replaced(text, "model: Qwen/Qwen3-8B", "model: Qwen/Qwen3-4B"));
    const Ran model = study.run_in("model");
    CHECK_FALSE(has(model.err, "made before"));
    CHECK_FALSE(has(model.err, "learning from"));
}

TEST_CASE(
    "cached study: a damaged file, a cache that cannot be written and no home cost one line each") {
    StudyWithCache study;
    REQUIRE(study.run_in("a").code == 0);
    write_file(study.kept().front(), std::string(9000, 'x'));
    const Ran damaged = study.run_in("b");
    INFO(damaged.err);
    CHECK(damaged.code == 0);
    CHECK(has(damaged.err, study.kept().front().string() + ": "));
    CHECK(has(damaged.err, "; it is left out, remove it\n"));
    CHECK(has(damaged.err, "kept for later runs, in place of a file that cannot be read: "));
    const Ran unwritable = study.run_in("c", {}, {"SERVETUNE_CACHE=/proc/servetune"});
    CHECK(unwritable.code == 0);
    INFO(unwritable.err);
    CHECK(has(unwritable.err,
              "not kept for later runs: cannot make the folder /proc/servetune/studies: "));
    const Ran homeless =
        study.run_in("d", {}, {"-u", "SERVETUNE_CACHE", "-u", "XDG_CACHE_HOME", "-u", "HOME"});
    INFO(homeless.err);
    CHECK(homeless.code == 0);
    CHECK(has(homeless.err,
              "not kept for later runs: none of SERVETUNE_CACHE, XDG_CACHE_HOME and HOME names a "
              "folder for it"));
}

TEST_CASE("cached study: a colleague's file under any name counts, and holds no secret") {
    StudyWithCache study;
    const std::string secret = "s3cret-of-the-study";
    const std::string text = read_file(study.folder() / "study.yaml");
    write_file(study.folder() / "study.yaml",
               replaced(text, "evaluator: {deploy: {",
                        "evaluator: {deploy: {environment: {APP_TOKEN: \"${APP_TOKEN}\"}, "));
    const std::vector<std::string> with_secret{
        "APP_TOKEN=" + secret, "SERVETUNE_CACHE=" + (study.folder() / "cache").string()};
    const Ran first = study.run_in("a", {}, with_secret);
    INFO(first.err);
    REQUIRE(first.code == 0);
    const fs::path kept = study.kept().front();
    CHECK_FALSE(has(read_file(kept), secret));
    fs::rename(kept, study.studies() / "from a colleague.db");
    CHECK(has(study.run_in("b", {}, with_secret).err, "from a colleague.db"));
}

TEST_CASE("cached study: an attached server is learned from, what is simulated is not kept") {
    const TemporaryFolder folder;
    SimEngine engine(SIMENGINE_PROGRAM,
                     {"--time-scale", "50", "--start-scale", "1000", "--search-spaces",
                      (fs::path(SERVETUNE_SOURCE) / "search_spaces").string(), "vllm", "serve",
                      "Qwen/Qwen3-8B", "--port", "0"});
    REQUIRE(engine.wait_until_ready());
    const auto run = [&](const std::string& name, const std::string& evaluator,
                         const std::string& space) {
        const std::string study =
            folder
                .write(name + ".yaml",
                       "study: " + name +
                           "\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nworkloads: "
                           "[{workload: w, "
                           "dataset: {kind: random, input_tokens: 64, output_tokens: 32}, "
                           "requests: 40, ignore_eos: true}]\n"
                           "objective: {maximize: output_tokens_per_second}\ndecision: "
                           "published\nspace: " +
                           space + "\nbudget: {trials: 3}\nevaluator: " + evaluator + "\n")
                .string();
        return ran({"/usr/bin/env", "SERVETUNE_CACHE=" + (folder.path() / "cache").string(),
                    SERVETUNE_PROGRAM, "run", study},
                   folder.path());
    };
    const Ran simulated =
        run("simulated", "simulate\nhardware: h100-sxm", "{max_num_seqs: [64, 256]}");
    INFO(simulated.err);
    CHECK(simulated.code == 0);
    CHECK_FALSE(has(simulated.err, "later runs"));
    CHECK_FALSE(fs::exists(folder.path() / "cache"));
    const std::string attach = "{attach: {url: \"" + engine.url() + "\", warm_up: 4}}";
    const Ran first = run("first", attach, "{load.concurrency: [1, 4, 16]}");
    INFO(first.err);
    CHECK(first.code == 0);
    CHECK(has(first.err, "kept for later runs: "));
    const Ran second = run("second", attach, "{load.concurrency: [1, 4, 16]}");
    INFO(second.err);
    CHECK_FALSE(has(second.err, "made before"));
    CHECK(has(second.err, "learning from the study 'first', "));
}
