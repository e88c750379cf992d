// SPDX-License-Identifier: Apache-2.0
// A person's own table of configurations and figures: what each column is taken for, and which
// configuration wins.
#include "results/plain_table.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string most = "maximize:score";

PlainTable table_of(const std::string& text, const std::string& objective = most,
                    std::vector<std::string> parameters = {}) {
    return read_plain_table(text, "t.csv", {objective, std::move(parameters)});
}
std::string table_error(const std::string& text, const std::string& objective = most,
                        std::vector<std::string> parameters = {}) {
    return message_of<ParseError>([&] { (void)table_of(text, objective, std::move(parameters)); });
}
std::string parameters_of(const PlainTable& plain) {
    std::string names;
    for (const std::string& name : plain.table.parameters)
        names += (names.empty() ? "" : " ") + name;
    return names;
}

/// The study that is written for a table, run to its end.
Recommendation recommended(const PlainTable& plain) {
    const TemporaryFolder folder;
    folder.write("t.table.csv", plain.csv);
    const StudySetup setup = set_up(
        load_study(folder.write("t.yaml", study_of(plain, "t", "t.table.csv")), shipped_catalogue));
    MemoryJournal journal;
    Study study(*setup.problem, *setup.strategy, journal, {setup.file.seed});
    return study.run(*setup.evaluator, setup.file.budget).recommendation;
}
std::string winner(const std::string& text, const std::string& objective = most) {
    const Recommendation found = recommended(table_of(text, objective));
    return found.best ? found.recommended.text() : "none";
}

const std::string plain_text =
    "threads,backend,score\n1,x,3\n1,x,3.1\n2,x,4\n2,y,7\n4,x,6\n4,y,5\n";

}  // namespace

TEST_CASE("plain table: a person's table becomes a study with the right winner") {
    const PlainTable first = table_of(plain_text);
    CHECK(parameters_of(first) == "threads backend");
    CHECK(first.goal == Goal{"score", Direction::maximize});
    CHECK(first.csv.starts_with(
        "threads,backend,repeat,status,score,message\n1,x,1,ok,3,\n1,x,2,ok,3.1,\n"));
    CHECK(winner(plain_text) == "backend=y threads=2");
    CHECK(winner(plain_text, "minimize:score") == "backend=x threads=1");
    CHECK(winner("threads,latency_mean_seconds\n1,30\n2,10\n4,20\n", "latency_mean_seconds") ==
          "threads=2");  // less of it
}

TEST_CASE("plain table: separators, line ends, marks, quotes and blanks change nothing") {
    std::string semicolons = plain_text, crlf;
    std::replace(semicolons.begin(), semicolons.end(), ',', ';');
    for (const char c : plain_text) crlf += c == '\n' ? "\r\n" : std::string(1, c);
    std::string tabs = plain_text;
    std::replace(tabs.begin(), tabs.end(), ',', '\t');
    const std::string expected = table_of(plain_text).csv;
    for (const std::string& same : {semicolons, tabs, crlf, "\xEF\xBB\xBF" + plain_text,
                                    replaced(plain_text, "threads", "\"threads\""),
                                    replaced(plain_text, "2,y,7", " 2 ,\"y\", 7.0 ")})
        CHECK(table_of(same).csv == expected);
}

TEST_CASE("plain table: equal rows are repeats, each of which counts") {
    // Means 8 and 7.5. Equal rows taken for one row printed twice would give 7 and 7.5.
    const std::string text = "k,score\nc,1\nc,1\na,10\na,10\na,4\nb,7.5\nb,7.5\nb,7.5\n";
    CHECK(has(table_of(text).csv, "a,2,ok,10,\n"));
    const PlainTable counted = table_of("run,k,score\n1,c,1\n2,c,1.1\n1,a,5\n2,a,5.2\n");
    CHECK(parameters_of(counted) == "k");
    CHECK(has(counted.csv, "a,2,ok,5.2,\n"));
    const MeasuredTable table = table_of(text).table;
    const SearchSpace space({Parameter::choice("k", {"c", "a", "b"})});
    ReplayEvaluator replay(table, space, {});
    const Outcome outcome = replay.evaluate(space.completed({{"k", "a"}}), {});
    CHECK(std::get<Measurement>(outcome).metrics.at("score").value == 8);
    CHECK(std::get<Measurement>(outcome).metrics.at("score").replicates == 3);
}

TEST_CASE("plain table: numbers, words, truths and empty cells") {
    const PlainTable mixed =
        table_of("num,r,w,b,e,score\n64,0.50,auto,true,,1\n128,0.9,8,false,x,2\n");
    CHECK(has(mixed.csv, "64,0.50,auto,true,engine,1,ok,1,\n128,0.9,8,false,x,1,ok,2,\n"));
    const std::string study = study_of(mixed, "s", "s.csv");
    CHECK(has(study, "num: {choice: [64, 128], ordered: true, default: 64}"));
    CHECK(has(study, "w: {choice: [auto, 8], default: auto}"));
    CHECK(has(study, "b: {choice: [true, false], default: true}"));
    CHECK(has(study, "e: {choice: [engine, x], default: engine}"));
    CHECK(winner("n,e,score\n1,,1\n1,x,2\n") == "e=x n=1");
    // What has no number has failed, and the first row with one is the default.
    const PlainTable failed = table_of("n,score\n1,\n2,nan\n3,OOM\n4,5\n5,6\n");
    CHECK(has(failed.csv,
              "1,1,invalid_result,,score has no number\n2,1,invalid_result,,score has no "
              "number\n3,1,invalid_result,,score has no number\n4,1,ok,5,\n"));
    CHECK(has(study_of(failed, "s", "s.csv"), "default: 4}"));
    CHECK(winner("n,score\n1,\n2,nan\n3,OOM\n4,5\n5,6\n") == "n=5");
}

TEST_CASE("plain table: parameters stand left of the objective, or are said") {
    CHECK(parameters_of(table_of("threads,ttft_p95,score,heat\n1,5,7,1\n2,6,8,1\n")) == "threads");
    CHECK(has(table_of("threads,score,heat,who\n1,5,7,a\n2,6,8,b\n").csv,
              "threads,repeat,status,score,heat,message\n"));
    const std::string noisy =
        "k,heat,score\na,1.5,1\nb,1.25,2\nc,1.75,3\na,1.1,4\nb,1.9,5\nc,1.3,6\n";
    CHECK(parameters_of(table_of(noisy, most, {"k"})) == "k");
    CHECK(
        table_error(noisy) ==
        "t.csv:1: the column 'heat' differs in rows that agree in all else: is it a parameter, or "
        "does it tell repeats apart? Say which are parameters: --parameter 'k', and 'heat' if it "
        "is one");
    CHECK(parameters_of(table_of(noisy, most, {"k", "heat"})) == "k heat");
    // Where nothing is repeated without it, it is one.
    CHECK(parameters_of(table_of("k,heat,score\na,1.5,1\na,1.25,2\n")) == "k heat");
    CHECK(parameters_of(table_of("k,j,heat,score\na,1,1.5,1\na,2,1.25,2\nb,1,1.7,3\n")) ==
          "k j heat");
    const std::string odd = "batch size,block,engine,score (%)\n1,5,a,7\n2,6,b,8\n";
    const PlainTable renamed = table_of(odd, "maximize:score (%)");
    CHECK(parameters_of(renamed) == "batch_size block_ engine_");
    CHECK(renamed.goal.metric == "score");
    CHECK(winner(odd, "maximize:score (%)") == "batch_size=2 block_=6 engine_=b");
}

TEST_CASE("plain table: what cannot be known is refused with its place") {
    struct Row {
        const char* text;
        std::string said, objective = most;
        std::vector<std::string> parameters{};
    };
    const Row rows[] = {
        {"", "1: a line of column names and rows below it wanted"},
        {"a,score\n", "1: a line of column names and rows below it wanted"},
        {"a,a,score\n1,2,3\n", "1: the columns 'a' and 'a' would have one name"},
        {"a b,a_b,score\n1,2,3\n", "1: the columns 'a b' and 'a_b' would have one name"},
        {"a,score\n1,2\n3\n", "3: 2 cells wanted, got 1"},
        {"a,score\n1,2\n", "1: --objective: the table has no column 'scor'; it has: score, a",
         "scor"},
        {"a,score\n1,2\n",
         "1: the column 'score' is the objective, so it is no parameter",
         most,
         {"score"}},
        {"a,score\n1,2\n",
         "1: --parameter: the table has no column 'b'; it has: a, score",
         most,
         {"b"}},
        {"score\n1\n",
         "1: no column left of the objective is a parameter; say which are: --parameter "
         "COLUMN"},
        {"a,y\n1,2\n",
         "1: nothing says whether more or less of 'y' is better; write --objective "
         "maximize:y or --objective minimize:y",
         "y"},
        {"a,score\n1,x\n", "2: no row has a number under 'score'"},
        {"a,score\n1,2\n2,12 ms\n", "3: score: a number wanted, got '12 ms'"},
        {"a,score\n1,2\n2,-85%\n", "3: score: a number wanted, got '-85%'"},
        {"a,score\n1,\"2\n", "2: a quoted cell is never closed"},
    };
    for (const auto& [text, said, objective, parameters] : rows)
        CHECK(table_error(text, objective, parameters) == "t.csv:" + said);
    CHECK(winner("a,y\n1,2\n2,3\n", "maximize:y") == "a=2");
    CHECK(winner("a,y\n1,2\n2,3\n", "minimize:y") == "a=1");
    CHECK(has(table_error("k,status,score\na,ok,1\n"), "a study replays it"));
}
