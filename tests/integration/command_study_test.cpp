// SPDX-License-Identifier: Apache-2.0
// Whole studies by autotune whose trials a program of the user's measures: how it is named, killed,
// gone on with and stopped.
#include "servetune/command_evaluator.hpp"

#include "base/files.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"
#include "support/lines_in.hpp"
#include "support/process.hpp"
#include "support/script.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

/// The watchdog's process of a tuner: proc(5), "pid (name) state parent ..."; 0: it has none.
int watchdog_of(int tuner) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
        std::ifstream stream(entry.path() / "stat");
        std::string text;
        if (!std::getline(stream, text) || !has(text, "(servetune-watch)")) continue;
        std::istringstream fields(text.substr(text.rfind(')') + 1));
        std::string state;
        int parent = 0;
        if (fields >> state >> parent && parent == tuner) return std::stoi(text);
    }
    return 0;
}

/// A study whose script measures a made-up function: most at 256 sequences, more with fp8, out of
/// memory at 1024 of them.
struct StudyInFolder {
    explicit StudyInFolder(const std::string& more_script = "",
                           const std::string& evaluator = R"({command: [./measure, "{config}"]})") {
        script(folder, R"(seqs=$(printf '%s' "$1" | sed 's/.*"max_num_seqs":\([0-9]*\).*/\1/')
request=$(cat)
echo "${request%%,*}" >> measured
)" + more_script + R"(case $seqs in
    1024) echo '{"failure": {"kind": "out_of_memory", "message": "no room"}}'; exit 1 ;;
    256) speed=1500 ;;
    *) speed=1000 ;;
esac
case "$1" in *'"kv_cache_dtype":"fp8"'*) speed=$((speed + 300)) ;; esac
echo "{\"metrics\": {\"total_tokens_per_second\": $speed}}"
)",
               "measure");
        file = folder.write("study.yaml", R"(study: measured
model: Qwen/Qwen3-8B
engine: vllm
workloads: [{use: chat}]
objective: {maximize: total_tokens_per_second}
space:
  max_num_seqs: {choice: [128, 256, 512, 1024], default: 128, ordered: true}
  kv_cache_dtype: {choice: [engine, fp8]}
others: default
strategy: exhaustive
evaluator: )" + evaluator + "\n");
    }
    [[nodiscard]] Words command() const {
        return {SERVETUNE_PROGRAM,    "run",    file.string(), "--directory",
                directory().string(), "--json", "--quiet"};
    }
    [[nodiscard]] fs::path directory() const { return folder.path() / "out"; }
    [[nodiscard]] Words measured() const { return lines_in(folder.path() / "measured"); }

    TemporaryFolder folder;
    fs::path file;
};

std::string load_error(const std::string& evaluator) {
    const StudyInFolder study("", evaluator);
    std::string message = message_of<ParseError>([&] {
        (void)load_study(study.file, Catalogue(fs::path(SERVETUNE_SOURCE) / "search_spaces"));
    });
    const std::string place = study.file.string() + ":";
    CHECK((message.empty() || message.starts_with(place)));
    return message.substr(std::min(place.size(), message.size()));
}

}  // namespace

TEST_CASE("command: a study names the program, its limits and its surroundings") {
    CHECK(load_error("{command: [./measure, \"{config}\"]}").empty());
    CHECK(load_error("{command: {run: [python3, measure.py], trial_within: 1h, stop_within: 5s, "
                     "environment: {A: b}}}")
              .empty());
    CHECK(has(load_error("{command: ./measure --fast}"),
              "'evaluator.command': a list wanted, got './measure --fast'"));
    CHECK(has(load_error("{command: []}"), "'evaluator.command': at least one wanted"));
    CHECK(has(load_error("{command: [\"\"]}"), "a program"));
    CHECK(has(load_error("{command: [./measure, \"{folde}\"]}"), "11:34: "));
    CHECK(has(load_error("{command: [./measure, \"{folde}\"]}"),
              "{folde} is no placeholder; known: {folder}, "));
    CHECK(has(load_error("{command: {trial_within: 1h}}"), "'run'"));
    CHECK(has(load_error("{command: {run: [a], withn: 1h}}"), "within"));
    CHECK(has(load_error("{command: [a], replay: b.csv}"),
              "one evaluator wanted: replay, simulate, attach, deploy or command"));

    const StudyInFolder written(
        "", "{command: {run: [../bin/measure, x], trial_within: 90s, environment: {A: b}}}");
    const StudySetup setup = set_up(
        load_study(written.file, Catalogue(fs::path(SERVETUNE_SOURCE) / "search_spaces")), "out");
    const CommandEvaluator::Options& options =
        std::get<CommandChoice>(setup.file.measuring).options;
    CHECK(options.argv.front() == (written.folder.path().parent_path() / "bin/measure").string());
    CHECK(options.working_folder == written.folder.path());
    CHECK(options.within_seconds == 90);
    CHECK(options.workloads == Words{"chat"});
    CHECK(setup.file.processes().mark == fs::absolute("out").string());
    const auto definition = setup.definition();
    CHECK(definition.at("evaluator.command") == "../bin/measure x");
    CHECK(definition.contains("evaluator.command.environment.A"));
}

TEST_CASE("command: autotune finds the best of a function that a script measures") {
    const StudyInFolder study;
    ChildProcess run(study.command(), study.folder.path());
    const auto code = run.wait_at_most(100s);
    INFO(run.err());
    REQUIRE(code == 0);
    const auto report = nlohmann::json::parse(run.out());
    const auto& best = report.at("recommended").at("configuration");
    CHECK(best.at("max_num_seqs") == 256);
    CHECK(best.at("kv_cache_dtype") == "fp8");
    CHECK(report.at("recommended").at("metrics").at("total_tokens_per_second") == 1800);
    CHECK(report.at("recommended").at("gain").at("value").get<double>() == Approx(0.8));
    CHECK(has(report.at("failures").dump(), "out_of_memory"));
    CHECK(report.at("trials").at("failed") == 2);
    CHECK(has(read_file(study.directory() / "report.md"),
              "measured by " + (study.folder.path() / "measure").string()));
    const auto request =
        nlohmann::json::parse(read_file(study.directory() / "trials/0/request.json"));
    CHECK(request.at("command").at(0) == "vllm");
    CHECK(request.at("configuration").at("max_num_seqs") == 128);
    CHECK(leftovers(study.directory().string()).empty());
}

TEST_CASE(
    "command: kill -9 leaves nothing, not even what has left the group: the watchdog ends it") {
    const StudyInFolder study(
        "setsid sleep 600 >/dev/null 2>&1 &\ncase \"$request\" in '{\"trial\":1,'*) sleep 600 ;; "
        "esac\n");
    const std::string mark = study.directory().string();
    ChildProcess run(study.command(), study.folder.path());
    REQUIRE(comes_true([&] { return study.measured().size() == 2; }, 60));
    REQUIRE(comes_true([&] { return !leftovers(mark).empty(); }));
    run.signal(SIGKILL);
    run.wait();
    CHECK(comes_true([&] { return leftovers(mark).empty(); }));
}

TEST_CASE(
    "command: after kill -9 a study goes on, no told trial is measured again, and what was left is "
    "ended") {
    const StudyInFolder study(
        "setsid sleep 600 >/dev/null 2>&1 &\n[ -e go ] || case \"$request\" in '{\"trial\":3,'*) "
        "sleep 600 ;; esac\n");
    const std::string mark = study.directory().string();
    {
        ChildProcess first(study.command(), study.folder.path());
        REQUIRE(comes_true([&] { return study.measured().size() == 4; }, 60));
        REQUIRE(comes_true([&] { return !leftovers(mark).empty(); }));
        const int watchdog =
            watchdog_of(first.id());  // it is killed as well, as by `systemctl kill -s KILL`
        REQUIRE(watchdog > 0);
        kill(watchdog, SIGKILL);
        first.signal(SIGKILL);
        first.wait();
    }
    CHECK_FALSE(leftovers(mark).empty());  // the one that left the group hears nothing
    const std::vector<Trial> before = SqliteJournal::read(study.directory()).trials();
    REQUIRE(before.size() == 4);
    CHECK_FALSE(before.back().told());

    study.folder.write("go", "");
    ChildProcess second(study.command(), study.folder.path());
    const auto code = second.wait_at_most(100s);
    INFO(second.err());
    REQUIRE(code == 0);
    CHECK(has(second.err(), "ending what an earlier run left"));
    CHECK(leftovers(mark).empty());
    const std::vector<Trial> after = SqliteJournal::read(study.directory()).trials();
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(before[i].told());
        CHECK(after.at(i).outcome == before[i].outcome);
        CHECK(after.at(i).configuration == before[i].configuration);
    }
    const Words measured = study.measured();
    for (std::size_t i = 0; i < after.size(); ++i)
        CHECK(std::count(measured.begin(), measured.end(), "{\"trial\":" + std::to_string(i)) ==
              (i == 3 ? 2 : 1));
    CHECK(nlohmann::json::parse(second.out())
              .at("recommended")
              .at("configuration")
              .at("max_num_seqs") == 256);
}

TEST_CASE("command: a study that is stopped ends its program and keeps the trial open") {
    const StudyInFolder study("[ -e go ] || sleep 600\n");
    {
        ChildProcess run(study.command(), study.folder.path());
        REQUIRE(comes_true([&] { return study.measured().size() == 1; }, 60));
        run.signal(SIGINT);
        CHECK(run.wait_at_most(60s) == 130);
    }
    CHECK(leftovers(study.directory().string()).empty());
    const std::vector<Trial> trials = SqliteJournal::read(study.directory()).trials();
    REQUIRE(trials.size() == 1);
    CHECK_FALSE(trials.front().told());
}

TEST_CASE(
    "command: a trial that runs when the budget's time is over is ended, and what was told is "
    "kept") {
    const StudyInFolder study(
        "[ -e go ] || case \"$request\" in '{\"trial\":2,'*) sleep 600 ;; esac\n",
        "{command: [./measure, \"{config}\"]}\nbudget: {wall_clock: 15s}");
    {
        ChildProcess run(study.command(), study.folder.path());
        const auto code = run.wait_at_most(60s);  // a trial that is not ended lasts ten minutes
        INFO(run.err());
        REQUIRE(code == 0);
        CHECK(nlohmann::json::parse(run.out()).at("stop_reason") == "wall_clock_spent");
    }
    CHECK(has(read_file(study.directory() / "run.log"),
              "the budget's time is over: what was running is ended"));
    CHECK(leftovers(study.directory().string()).empty());
    const std::vector<Trial> before = SqliteJournal::read(study.directory()).trials();
    REQUIRE(before.size() == 3);
    CHECK(before[0].measurement() != nullptr);
    CHECK(before[1].measurement() != nullptr);
    CHECK_FALSE(before[2].told());

    study.folder.write("go", "");
    ChildProcess again(study.command(), study.folder.path());
    REQUIRE(again.wait_at_most(60s) == 0);
    const std::vector<Trial> after = SqliteJournal::read(study.directory()).trials();
    CHECK(after.at(1).outcome == before[1].outcome);
    CHECK(after.at(2).told());
}

TEST_CASE(
    "command: a study whose program is not there ends with what to do, and the trial stays open") {
    const StudyInFolder study;
    fs::remove(study.folder.path() / "measure");
    ChildProcess run(study.command(), study.folder.path());
    CHECK(run.wait_at_most(60s) == 3);
    CHECK(has(run.err(), "trial 0 cannot be measured here: cannot start " +
                             (study.folder.path() / "measure").string() + ": no such program"));
    const std::vector<Trial> trials = SqliteJournal::read(study.directory()).trials();
    REQUIRE(trials.size() == 1);
    CHECK_FALSE(trials.front().told());
}
