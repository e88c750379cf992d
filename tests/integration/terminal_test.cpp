// SPDX-License-Identifier: Apache-2.0
// What `autotune` shows: on terminals of several widths, into files, and into what cannot be
// written to.
#include "support/terminal.hpp"
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

const std::string failure_reason = "CUDA out of memory: tried to allocate 20.00 GiB on GPU 0";

/// A replayed study of six configurations with long names, one of which runs out of memory, slow
/// enough to be watched.
fs::path watched_study(const TemporaryFolder& folder, const std::string& delay = "150ms") {
    folder.write("t.csv",
                 "max_num_batched_tokens,max_num_seqs,status,total_tokens_per_second,message\n"
                 "2048,128,ok,1000,\n2048,256,ok,1100,\n2048,512,ok,1200,\n8192,128,ok,1300,\n8192,"
                 "256,out_of_memory,,\"" +
                     failure_reason + "\"\n8192,512,ok,900,\n");
    return folder.write(
        "study.yaml",
        "study: watched\nmodel: m\nengine: vllm\nothers: default\nstrategy: exhaustive\n"
        "workloads: [{workload: w, dataset: {kind: random, input_tokens: 1, output_tokens: 1}}]\n"
        "objective: {maximize: total_tokens_per_second}\n"
        "space: {max_num_batched_tokens: {choice: [2048, 8192], default: 2048}, max_num_seqs: "
        "{choice: [128, 256, 512], "
        "default: 128}}\n"
        "budget: {trials: 10000, wall_clock: 5min}\nevaluator: {replay: {table: t.csv, delay: " +
            delay + "}}\n");
}

std::size_t rows_with(const ShownRows& shown, const std::string& what) {
    return std::size_t(count_if(shown.rows(), [&](const auto& row) { return has(row, what); }));
}

std::size_t told_in(const fs::path& folder) {
    try {
        const auto trials = SqliteJournal::read(folder).trials();
        return std::size_t(count_if(trials, [](const Trial& trial) { return trial.told(); }));
    } catch (const Error&) {
        return 0;  // not there yet
    }
}

/// `autotune` with these words in a shell that first does something with its standard streams.
Ran redirected(const std::string& how, std::vector<std::string> words, const fs::path& folder) {
    words.insert(words.begin(), {"/bin/sh", "-c", how, "sh", SERVETUNE_PROGRAM});
    return ran(words, folder);
}

}  // namespace

TEST_CASE("completion: shells offer the commands, options and words of the program") {
    const TemporaryFolder folder;
    const auto script = [&](const char* shell) {
        const Ran made = autotune({"completion", shell}, folder.path());
        REQUIRE(made.code == 0);
        return folder.write(std::string("completion.") + shell, made.out).string();
    };
    const std::string path = std::string("export PATH=") +
                             fs::path(SERVETUNE_PROGRAM).parent_path().string() + ":$PATH; ";
    const std::string bash = script("bash");
    const auto offered = [&](const std::string& words, int at) {
        return ran({"/bin/bash", "--norc", "-c",
                    path + "source " + bash + "; COMP_WORDS=(" + words + "); COMP_CWORD=" +
                        std::to_string(at) + "; _autotune; printf '%s\\n' \"${COMPREPLY[@]}\""},
                   folder.path())
            .out;
    };
    CHECK(offered("autotune ru", 1) == "run\n");
    CHECK(has(offered("autotune ''", 1), "\nvalidate\n"));
    CHECK(offered("autotune run s.yaml --dr", 3) == "--dry-run\n");
    CHECK(offered("autotune export s.yaml --format ''", 4) ==
          "csv\njsonl\nllm-d\noptuna\nrecord\n");
    CHECK(has(offered("autotune completion ''", 2), "zsh\n"));
    CHECK(offered("autotune run --directory ''", 3) == "\n");  // then files
    CHECK(autotune({"completion", "tcsh"}, folder.path()).code == 2);
    const std::string zsh = script("zsh");
    if (fs::exists("/usr/bin/zsh")) {
        const Ran checked =
            ran({"/usr/bin/zsh", "-f", "-c",
                 path + "autoload -Uz compinit; compinit -u -d " +
                     (folder.path() / "dump").string() + "; source " + zsh +
                     "; print $_comps[autotune]; _describe() { print -l -- ${(P)2} }; "
                     "words=(autotune export s.yaml --f); CURRENT=4; _autotune"},
                folder.path());
        INFO(checked.err);
        CHECK(checked.code == 0);
        CHECK(checked.err.empty());
        CHECK(checked.out.starts_with("_autotune\n--format:Format; llm-d"));
    } else WARN("skipped: there is no zsh");
    const std::string fish = script("fish");
    if (std::filesystem::exists("/usr/bin/fish")) {
        const auto of_fish = [&](const std::string& line) {
            return ran({"/usr/bin/env", "HOME=" + folder.path().string(), "/usr/bin/fish",
                        "--no-config", "-c",
                        path + "source " + fish + "; complete -C'" + line + "'"},
                       folder.path())
                .out;
        };
        CHECK(has(of_fish("autotune ru"), "run\t"));
        CHECK(has(of_fish("autotune run s.yaml --dr"), "--dry-run\t"));
        CHECK(has(of_fish("autotune export s.yaml --format "), "optuna"));
    } else WARN("skipped: there is no fish");
}

TEST_CASE("help: a row of the table says value, bounds, default and what is required") {
    const TemporaryFolder folder;
    CHECK(has(autotune({"--help"}, folder.path()).out, "\n  validate    Check a study"));
    const auto in_a_row = [&](const std::string& command) {
        std::string text = autotune({command, "--help"}, folder.path()).out;
        for (std::size_t at = 0; (at = text.find("\n    ", at)) != std::string::npos;)
            text.replace(at, text.find_first_not_of(" \n", at) - at, " ");
        return text;
    };
    const std::string bench = in_a_row("bench");
    CHECK(has(bench, "\nUsage: autotune bench [OPTIONS]\n"));
    CHECK(has(bench, "\n  --requests N"));
    CHECK(has(bench, "\n  --no-stream  "));
    CHECK(has(autotune({"capacity", "--help"}, folder.path()).out, "\n  --sweep NUMBER,...  "));
    CHECK(has(bench, "\n  --duration TIME  "));
    CHECK(has(bench, "with or without /v1 (required)\n"));
    CHECK(has(bench, "random:INPUTxOUTPUT tokens (default: random:512x128)\n"));
    CHECK(has(in_a_row("recommend"), "Port to listen on, 1 to 65535 (default: 8000)\n"));
    const std::string run = in_a_row("run");
    CHECK(has(run, "\n  --view [PORT]  "));
    CHECK(has(run, "\nUsage: autotune run [OPTIONS] STUDY\n"));
    CHECK(has(run, "until measurements contradict them (can be repeated)\n"));
}

TEST_CASE("help: in the forms that people type, in lines of at most 100 columns") {
    const TemporaryFolder folder;
    const auto said = [&](const std::vector<std::string>& words) {
        const Ran ran = autotune(words, folder.path());
        CHECK(ran.code == 0);
        return ran.out;
    };
    const std::string all = said({"help"});
    CHECK(all == said({"--help"}));
    CHECK(said({"help", "run"}) == said({"run", "-h"}));
    CHECK(said({"-V"}) == said({"--version"}));
    CHECK(has(said({"list", "hardware"}), "\nh100-sxm\n"));
    CHECK(said({"completion", "words", "bench", "--hardware", "h100-s"}) == "h100-sxm\n");
    std::string texts = all;
    std::istringstream names(said({"completion", "words", "help", ""}));
    std::size_t commands = 0;
    for (std::string name; std::getline(names, name); ++commands) texts += said({"help", name});
    CHECK(commands > 25);
    std::istringstream lines(texts);
    for (std::string line; std::getline(lines, line);) {
        INFO(line);
        CHECK(line.size() <= 100);
    }
}

TEST_CASE("manual: commands, options and exit codes, as roff") {
    const TemporaryFolder folder;
    const Ran page = autotune({"man"}, folder.path());
    REQUIRE(page.code == 0);
    CHECK(has(page.out, ".SS autotune run\n"));
    CHECK(has(page.out, ".SS autotune ask\\-tell\n"));
    CHECK(has(page.out, "\\fB\\-\\-dry\\-run\\fR\n"));
    CHECK(has(page.out, ".SH EXIT STATUS\n"));
    const std::string file = folder.write("autotune.1", page.out).string();
    if (std::filesystem::exists("/usr/bin/groff")) {
        const Ran shown = ran({"/usr/bin/groff", "-man", "-ww", "-Tutf8", file}, folder.path());
        CHECK(shown.code == 0);
        CHECK(shown.err.empty());
    } else WARN("skipped: there is no groff");
    CHECK(autotune({"--version"}, folder.path()).out.starts_with("autotune "));
}

TEST_CASE(
    "terminal: log lines stand above the status lines, time left, best and the failure's reason "
    "are seen at every width") {
    for (const unsigned columns : {60U, 80U, 200U}) {
        const TemporaryFolder folder;
        OnTerminal program({SERVETUNE_PROGRAM, "run", watched_study(folder).string()},
                           folder.path(), static_cast<unsigned short>(columns));
        std::set<std::string> status;  // the last two rows whenever something has come
        const int code = program.watch([&](const ShownRows& shown) {
            for (const std::string& row : shown.rows()) CHECK(row.size() <= columns);
            CHECK(rows_with(shown, " of at most ") <=
                  1);  // one status, never a second below an old one
            for (const std::string& row : shown.rows())
                CHECK_FALSE(has(row, " of a..."));  // the bound is there or not
            if (shown.rows().size() > 1) status.insert(shown.rows()[shown.rows().size() - 2]);
        });
        INFO(columns << " columns:\n" << program.shown().text());
        CHECK(code == 0);
        CHECK(program.shown().unknown().empty());
        for (int trial = 0; trial < 6; ++trial)
            CHECK(rows_with(program.shown(), "trial " + std::to_string(trial) + " | ") == 1);
        CHECK(rows_with(program.shown(), " of at most ") == 0);  // gone at the end
        std::string whole;  // a long line goes on in the next row
        for (const std::string& row : program.shown().rows()) {
            const auto begin = row.find_first_not_of(' ');
            if (begin != std::string::npos)
                whole += (whole.empty() ? "" : " ") +
                         row.substr(begin, row.find_last_not_of(' ') + 1 - begin);
        }
        CHECK(has(whole, " | out_of_memory: " + failure_reason));
        CHECK(has(whole, "Recommended: +30.0 % over the default"));
        const auto seen = [&](const std::string& one, const std::string& other) {
            return any_of(status,
                          [&](const auto& row) { return has(row, one) && has(row, other); });
        };
        // Before a trial has told what one takes the clock counts; then what is left of six
        // configurations.
        CHECK(seen("trial 0 of at most 6", "about 5 min left"));
        CHECK(seen(" s left", "best 1000"));
        CHECK(seen(" s left", "best 1300 (+30.0 %)"));
        CHECK_FALSE(seen("min left", "best "));
    }
}

TEST_CASE(
    "terminal: into a file go plain lines, without a control character, and with what is left") {
    const TemporaryFolder folder;
    const Ran run = autotune({"run", watched_study(folder).string()}, folder.path());
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(
        none_of(run.err, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 6);
    CHECK(has(run.err, "trial 0 | the default | 1000 (+0.00 %) | best 1000 (+0.00 %) | "));
    CHECK(has(run.err, " | out_of_memory: " + failure_reason + " | best 1"));
    CHECK(has(run.err, " | best 1300 (+30.0 %) | "));
    CHECK_FALSE(has(run.err, "min left"));  // of the clock: six configurations are over before
    CHECK(has(run.err, " s left\n"));
    CHECK(has(run.err, " | search done\n"));
}

TEST_CASE("terminal: a screen that cannot be written to costs no trial") {
    // Full, closed, and with a reader that has gone.
    for (const std::string& how :
         {std::string("exec \"$@\" 2>/dev/full"), std::string("exec \"$@\" 2>&-"),
          std::string("exec \"$@\" <&- 2>&-"),
          std::string(
              "{ sleep 0.3; \"$@\" 2>&1 >&3; echo $? >code; } 3>out | true; exit $(cat code)")}) {
        const TemporaryFolder folder;
        const Ran run =
            redirected(how, {"run", watched_study(folder, "30ms").string()}, folder.path());
        INFO(how << "\n" << run.err);
        CHECK(run.code == 0);
        CHECK(told_in(folder.path() / "watched") == 6);
        const std::string lock = read_file(folder.path() / "watched/study.lock");
        CHECK_FALSE(has(lock, "trial"));
    }
}

TEST_CASE("terminal: a reader that does not read does not hold the study up") {
    const TemporaryFolder folder;
    // The pipe's 64 KiB fill with long lines: `sleep` never reads, and the study ends all the same.
    const std::string study = watched_study(folder, "10ms").string();
    folder.write("t.csv", replaced(read_file(folder.path() / "t.csv"), failure_reason,
                                   std::string(100'000, 'x')));
    const Ran run = redirected(
        "{ \"$@\" 2>&1 >/dev/null; echo $? >code; } | { exec 3<&0; while [ ! -e code ]; do sleep "
        "0.1; done; }; "
        "exit $(cat code)",
        {"run", study}, folder.path());
    CHECK(run.code == 0);
    CHECK(told_in(folder.path() / "watched") == 6);
}

TEST_CASE("terminal: what cannot be printed on standard output is an error with a message") {
    const TemporaryFolder folder;
    const std::string study = watched_study(folder, "0s").string();
    REQUIRE(autotune({"run", study, "--quiet"}, folder.path()).code == 0);
    const std::string table =
        SERVETUNE_SOURCE "/search_spaces/published/qwen3-8b-jetson-thor/other-models.csv";
    const std::string document = SERVETUNE_SOURCE "/tests/data/results/sglang.jsonl";
    const std::vector<std::vector<std::string>> commands{
        {"status", study},    {"status", study, "--json"}, {"report", study},
        {"explain", study},   {"render", study},           {"validate", study, "--no-installed"},
        {"engines"},          {"schema", "study"},         {"audit", table},
        {"import", document}, {"run", study, "--quiet"},   {"--version"},
        {"run", "--help"}};
    for (const auto& words : commands) {
        INFO(words.front());
        const Ran full = redirected("exec \"$@\" >/dev/full", words, folder.path());
        CHECK(full.code == 3);
        CHECK(has(full.err, "autotune: cannot write all of the output to standard output"));
        const Ran closed = redirected("exec \"$@\" >&-", words, folder.path());
        CHECK(closed.code == 3);
        CHECK(has(closed.err, "autotune: cannot write all of the output to standard output"));
        if (words.front() != "import")  // which tells on standard error what it found
            CHECK(redirected("exec \"$@\" >/dev/null 2>/dev/full", words, folder.path()).code == 0);
    }
}

TEST_CASE(
    "terminal: a reader of standard output that has gone ends a command quietly, and takes no "
    "trial from a run") {
    const TemporaryFolder folder;
    const std::string study = watched_study(folder, "20ms").string();
    // As a shell starts it, and where SIGPIPE is ignored, as below some service managers.
    for (const std::string before : {"", "trap '' PIPE; "}) {
        const std::string to_nobody =
            before + "{ sleep 0.3; \"$@\"; echo $? >code; } | true; exit $(cat code)";
        fs::remove_all(folder.path() / "watched");
        for (const auto& words :
             {std::vector<std::string>{"run", study, "--quiet"}, {"run", study, "--json-lines"}}) {
            INFO(before << words.back());
            fs::remove_all(folder.path() / "watched");
            const Ran run = redirected(to_nobody, words, folder.path());
            CHECK(run.code == 141);
            CHECK(run.err.empty());
            CHECK(told_in(folder.path() / "watched") == 6);
            CHECK(fs::exists(folder.path() / "watched/report.md"));
        }
        for (const auto& words : {std::vector<std::string>{"report", study},
                                  {"engines"},
                                  {"schema", "study"},
                                  {"run", "--help"}}) {
            INFO(before << words.front());
            const Ran gone = redirected(to_nobody, words, folder.path());
            CHECK(gone.code == 141);
            CHECK(gone.err.empty());
        }
        const Ran wrong = redirected(to_nobody, {"report", "none.yaml"}, folder.path());
        CHECK(wrong.code == 2);  // what went wrong before is said
    }
    fs::remove_all(folder.path() / "watched");
    const Ran closed = redirected("exec \"$@\" >&-", {"run", study, "--quiet"}, folder.path());
    CHECK(closed.code == 3);
    CHECK(told_in(folder.path() / "watched") == 6);
}

TEST_CASE(
    "signals: what was ignored when the program began stays ignored, as with nohup and in the "
    "background of a script") {
    const TemporaryFolder folder;
    {
        const std::string study = watched_study(folder).string();
        ChildProcess process({"/bin/sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh",
                              SERVETUNE_PROGRAM, "run", study},
                             folder.path());
        REQUIRE(comes_true([&] { return told_in(folder.path() / "watched") >= 1; }));
        for (const int signal : {SIGHUP, SIGINT, SIGHUP, SIGINT}) process.signal(signal);
        const auto code = process.wait_at_most(60s);
        INFO(process.err());
        CHECK(code == 0);
        CHECK(told_in(folder.path() / "watched") == 6);
        CHECK_FALSE(has(process.err(), "stopping"));
    }
    {
        // The others are still heard.
        ChildProcess process({"/bin/sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh",
                              SERVETUNE_PROGRAM, "run", "study.yaml", "--directory", "other"},
                             folder.path());
        REQUIRE(comes_true([&] { return told_in(folder.path() / "other") >= 1; }));
        process.signal(SIGTERM);
        CHECK(process.wait_at_most(60s) == 130);
        CHECK(has(process.err(),
                  "stopping; the trial that is running will be repeated by the next run. Once "
                  "more: stop at once.\n"));
    }
}

TEST_CASE(
    "terminal: colours on a terminal only, and none where NO_COLOR is set or the terminal is "
    "dumb") {
    const auto colours_with = [](const std::string& setting) {
        const TemporaryFolder folder;
        OnTerminal program({"/usr/bin/env", setting, SERVETUNE_PROGRAM, "run",
                            watched_study(folder, "10ms").string()},
                           folder.path(), 100);
        CHECK(program.watch([](const ShownRows&) {}) == 0);
        CHECK(program.shown().unknown().empty());
        return program.shown().colours();
    };
    const std::string coloured = colours_with("TERM=xterm");
    CHECK(has(coloured, "\033[31m"));  // the failed trial
    CHECK(has(coloured, "\033[32m"));  // a new best
    CHECK(colours_with("NO_COLOR=1").empty());
    CHECK(colours_with("TERM=dumb").empty());
}

TEST_CASE("json lines: an event a line, from the first trial to the report") {
    const TemporaryFolder folder;
    const Ran run =
        autotune({"run", watched_study(folder, "10ms").string(), "--json-lines"}, folder.path());
    INFO(run.out << run.err);
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    std::vector<nlohmann::json> events;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);)
        events.push_back(nlohmann::json::parse(line));
    const auto count = [&](const std::string& event) {
        return count_if(events, [&](const auto& one) { return one["event"] == event; });
    };
    CHECK(count("started") == 6);
    CHECK(count("told") == 6);
    REQUIRE(count("ended") == 1);
    CHECK(events.back()["event"] == "ended");
    CHECK(events.back()["reason"] == "strategy_finished");
    CHECK(events.back()["report"]["verdict"] == "recommended");
    const auto last = std::find_if(events.rbegin(), events.rend(),
                                   [](const auto& one) { return one["event"] == "told"; });
    CHECK((*last)["best"]["value"] == 1300.0);
    CHECK((*last)["best"]["gain"]["value"].get<double>() == Approx(0.3));
    CHECK(none_of(run.out, [](char c) { return c == '\r' || c == '\033'; }));
    const Ran again =
        autotune({"run", (folder.path() / "study.yaml").string(), "--json-lines"}, folder.path());
    CHECK(nlohmann::json::parse(again.out.substr(0, again.out.find('\n')))["event"] == "resumed");
}
