// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/feasible_set.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"

using namespace servetune;
using namespace servetune::test;

TEST_CASE("CSV: quotes, commas, line ends, byte order mark") {
    const auto rows = parse_csv(
        "\xEF\xBB\xBF"
        "a,\"b,\"\"c\"\"\n2\",d\r\n\r\n,,\nlast",
        "t.csv");
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].cells == std::vector<std::string>{"a", "b,\"c\"\n2", "d"});
    CHECK(rows[1].cells == std::vector<std::string>{"", "", ""});
    CHECK(rows[1].line == 4);
    CHECK(rows[2].cells == std::vector<std::string>{"last"});
    CHECK(parse_csv(csv_line({"x,\"y\"", "", "z\n"}), "t.csv")[0].cells ==
          std::vector<std::string>{"x,\"y\"", "", "z\n"});
    CHECK(message_of<ParseError>([] { (void)parse_csv("a\nb,\"c", "t.csv"); }) ==
          "t.csv:2: a quoted cell is never closed");
}

TEST_CASE(
    "CSV: no cell is a formula of a spreadsheet, numbers stay numbers, and what is read is what "
    "was written") {
    const std::vector<std::string> attacks{
        "=1+1", "+1+cmd|' /C calc'!A0", "-2+3",      "@SUM(A1)", "\tx", "\r=1",
        "\n=1", "--max-num-seqs 64",    "-c failed", "=\"a\",b"};
    for (const std::string& cell : attacks) {
        const std::string line = csv_line({cell, "x"});
        INFO(line);
        CHECK(line.find_first_not_of('"') == line.find('\''));
    }
    for (const char* cell :
         {"-1.5", "-1e-3", "1", "-", "it's", "'quoted'", "a=b", "x-y", "'", "''"})
        CHECK(csv_line({cell, "x"}) == std::string(cell) + ",x\n");
    std::vector<std::string> all = attacks;
    for (const char* cell : {"'=1", "''=1", "'-1.5", "'\tx", "''", "'a"}) all.emplace_back(cell);
    CHECK(parse_csv(csv_line(all), "t.csv").front().cells == all);
}

TEST_CASE("tables that cannot be read say where and why") {
    const auto error = [](const std::string& text) {
        return message_of<ParseError>([&] { (void)parse_table(text, "t.csv"); });
    };
    CHECK(error("") == "t.csv:1: a table starts with a line of column names");
    CHECK(
        error("a,b\n1,2\n") ==
        "t.csv:1: the table has no column 'status' (left of it: parameters, right of it: metrics)");
    CHECK(error("a,a,status\n") == "t.csv:1: the column 'a' stands twice");
    CHECK(error("a,status,x\n") == "t.csv:1: the table has no rows");
    CHECK(error("a,status,x\n1,ok\n") == "t.csv:2: 3 cells wanted, got 2");
    CHECK(error("a,status,x\n1,ok,fast\n") == "t.csv:2: x: a number wanted, got 'fast'");
    CHECK(error("a,status,x\n1,okay,1\n")
              .starts_with("t.csv:2: status: 'okay' is unknown; known: ok, hung"));
    CHECK(error("a,status,verdict\n1,ok,fine\n") ==
          "t.csv:2: verdict: sound, unchecked, suspect or unsound wanted, got 'fine'");
    CHECK(message_of<IoError>([] { (void)read_table("/nowhere/t.csv"); }) ==
          "cannot read /nowhere/t.csv: No such file or directory");
}

namespace {

SearchSpace space() {
    return SearchSpace({Parameter::choice("backend", {"fa3", "triton"}),
                        Parameter::integer("seqs", 1, 8).or_unset(),
                        Parameter::boolean("draft").when("backend", {"fa3"})});
}
constexpr const char* measured =
    "block,backend,seqs,draft,workload,status,total_tokens_per_second,latency_mean_seconds,message,"
    "verdict,findings,note\n"
    "0,fa3,engine,false,short,ok,100,2,,suspect,peak order,first\n"
    "1,fa3,4,true,short,ok,120,1,,,,\n"
    "2,fa3,4,true,short,ok,120,1,,,,printed twice\n"
    "3,triton,engine,,short,out_of_memory,,,no room,,,\n"
    "4,fa3,engine,false,long,ok,50,4,,,,\n"
    "5,triton,2,,short,ok,90,3,,,,\n"
    "6,triton,2,,short,ok,110,3,,,,\n";

}  // namespace

TEST_CASE("replay: rows answer, failures are failures, what is not there is not in the table") {
    const MeasuredTable table = parse_table(measured, "t.csv");
    CHECK(table.parameters == std::vector<std::string>{"backend", "seqs", "draft"});
    const SearchSpace searched = space();
    ReplayEvaluator replay(table, searched, {{{"short", 1}}});
    CHECK_FALSE(replay.replicates_inform());
    const auto ask = [&](const Assignment& changes, const std::string& workload = "") {
        return replay.evaluate(searched.completed(changes), {0, 1, workload, {}});
    };
    const Outcome first = ask({});
    CHECK(std::get<Measurement>(first).metrics.at("total_tokens_per_second").value == 100);
    CHECK(std::get<Measurement>(first).validity.verdict == Verdict::suspect);
    CHECK(std::get<Measurement>(first).validity.findings.size() == 2);
    CHECK(std::get<Measurement>(ask({}, "long")).metrics.at("total_tokens_per_second").value == 50);
    CHECK(std::get<Failure>(ask({{"backend", "triton"}})) ==
          Failure{FailureKind::out_of_memory, "no room"});
    CHECK(std::get<Failure>(ask({{"seqs", std::int64_t{8}}})).message ==
          "t.csv has no row for backend=fa3 draft=false seqs=8 under workload short");
    // Printed twice is one measurement; two different rows are replicates.
    CHECK_FALSE(std::get<Measurement>(ask({{"seqs", std::int64_t{4}}, {"draft", true}}))
                    .metrics.at("total_tokens_per_second")
                    .standard_error.has_value());
    const Metric mean =
        std::get<Measurement>(ask({{"backend", "triton"}, {"seqs", std::int64_t{2}}}))
            .metrics.at("total_tokens_per_second");
    CHECK(mean.value == 100);
    CHECK(mean.standard_error == Approx(10));
    CHECK(mean.replicates == 2);
}

TEST_CASE("replay: several workloads make one outcome") {
    const MeasuredTable table = parse_table(measured, "t.csv");
    const SearchSpace searched = space();
    ReplayEvaluator replay(table, searched, {{{"short", 1}, {"long", 1}}});
    const auto outcome =
        std::get<Measurement>(replay.evaluate(searched.default_configuration(), {}));
    CHECK(outcome.metrics.at("total_tokens_per_second").value == Approx(std::sqrt(5000.0)));
    CHECK(outcome.metrics.at("total_tokens_per_second@long").value == 50);
}

TEST_CASE("replay: seeded noise moves rates one way and times the other, by the stated spread") {
    const MeasuredTable table = parse_table(measured, "t.csv");
    const SearchSpace searched = space();
    ReplayEvaluator replay(table, searched, {{{"short", 1}}, 0.03});
    CHECK(replay.replicates_inform());
    double squares = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        const auto outcome = std::get<Measurement>(
            replay.evaluate(searched.default_configuration(), {0, seed, "", {}}));
        const double rate = outcome.metrics.at("total_tokens_per_second").value / 100;
        CHECK(outcome.metrics.at("latency_mean_seconds").value / 2 == Approx(1 / rate));
        squares += std::log(rate) * std::log(rate);
    }
    CHECK(std::sqrt(squares / 2000) == Approx(0.03).epsilon(0.06));
}

TEST_CASE("replay: a table that does not fit the space is refused") {
    const MeasuredTable table = parse_table(measured, "t.csv");
    CHECK(message_of<SpaceError>(
              [&] { ReplayEvaluator(table, SearchSpace({Parameter::boolean("other")}), {}); }) ==
          "t.csv: the table has no column 'other', which the space varies; fix it or measure it");
    CHECK(message_of<SpaceError>([&] {
              ReplayEvaluator(table,
                              SearchSpace({Parameter::choice("backend", {"fa3", "triton"}),
                                           Parameter::boolean("draft")}),
                              {});
          }) == "t.csv:3: the table varies 'seqs', which the space does not have");
}

TEST_CASE("replay: only what was measured can be made a constraint") {
    const MeasuredTable table = parse_table(measured, "t.csv");
    const SearchSpace whole = space();
    const SearchSpace searched(whole.parameters(),
                               {ReplayEvaluator::measured_only(table, whole, {"short"})});
    CHECK(FeasibleSet(searched).size() == 4);
    CHECK(searched.violations(whole.completed({{"seqs", std::int64_t{8}}})) ==
          std::vector<std::string>{"it breaks the rule: only the 4 known combinations of backend, "
                                   "seqs, draft (only these were measured (t.csv))"});
}
