// SPDX-License-Identifier: Apache-2.0
// What users write, and every way of writing it wrong.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "study_file/keys.hpp"
#include "study_file/readers.hpp"
#include "study_file/schema.hpp"
#include "study_file/yaml.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const char* const engine_yaml = R"(engine: toy
launch: [toy, "{model}"]
parameters:
  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: 8}
  tokens: {flag: --tokens, int: {low: 16, high: 4096, scale: log2}, default: engine, engine_default: 512}
  mode: {flag: --mode, choice: [engine, fast, slow]}
  depth: {flag: --depth, int: {low: 1, high: 4}, default: 2, when: {mode: fast}}
constraints:
  - {require: "tokens >= seqs", because: "the toy says so"}
)";
const char* const study_yaml = R"(study: s
model: org/m
engine: toy
workloads:
  - {workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}}
objective: {maximize: total_tokens_per_second}
space:
  seqs: {choice: [8, 16]}
others: default
strategy: exhaustive
evaluator: {replay: t.csv}
)";
const char* const table_csv = "seqs,status,total_tokens_per_second\n8,ok,100\n16,ok,110\n";

/// Three files that fit together, one of them changed; the message says `DIR` for their folder.
std::string error_of(const std::string& engine, const std::string& study,
                     const std::string& table = table_csv) {
    const TemporaryFolder folder;
    folder.write("toy.yaml", engine);
    folder.write("t.csv", table);
    const auto file = folder.write("study.yaml", study);
    std::string message =
        message_of<Error>([&] { (void)set_up(load_study(file, Catalogue(folder.path()))); });
    for (auto at = message.find(folder.path().string()); at != std::string::npos;
         at = message.find(folder.path().string()))
        message.replace(at, folder.path().string().size(), "DIR");
    return message;
}
std::string study_error(const std::string& what, const std::string& with) {
    return error_of(engine_yaml, replaced(study_yaml, what, with));
}
std::string engine_error(const std::string& what, const std::string& with) {
    return error_of(replaced(engine_yaml, what, with), study_yaml);
}

}  // namespace

TEST_CASE(
    "a study may be called after its engine or its workload: neither it nor its neighbour reads it "
    "as that") {
    const std::string text = replaced(read_file(search_spaces / "studies/demo.yaml"),
                                      "{use: random, input_tokens: 128, output_tokens: 8, "
                                      "requests: 16, arrival: {concurrency: 8}}",
                                      "chat");
    const Catalogue catalogue(search_spaces);
    const TemporaryFolder folder;
    for (const char* name : {"vllm.yaml", "chat.yaml", "neighbour.yaml"}) {
        const StudyFile study = load_study(folder.write(name, text), catalogue);
        CHECK(study.composition->engines().front().name == "vllm");
        CHECK(study.workloads.front().name == "chat");
    }
    // A file of that name with an engine is the engine, though a broken one.
    folder.write("vllm.yaml", "engine: vllm\nlaunch: [serve]\n");
    CHECK(has(
        message_of<Error>([&] { (void)load_study(folder.path() / "neighbour.yaml", catalogue); }),
        "the key 'parameters' is missing"));
}

TEST_CASE("a workload that cannot be read is not missed where workloads are counted or named") {
    const std::string two = replaced(study_yaml, "output_tokens: 8}}",
                                     "output_tokens: 8}}\n  - {workload: x, dataset: {kind: "
                                     "random, input_tokens: 8, output_tokens: 8}, requests: many}");
    const auto errors = [&](const std::string& objective) {
        return error_of(engine_yaml,
                        replaced(replaced(two, "{maximize: total_tokens_per_second}", objective),
                                 "others: default", "others: default\nnever_worse_than: 1%"));
    };
    const std::string only =
        "DIR/study.yaml:6:89: 'workloads[1].requests': an integer wanted, got 'many'";
    CHECK(errors("{maximize: total_tokens_per_second}") == only);
    CHECK(errors("{maximize: total_tokens_per_second, limits: [\"requests_per_second@x >= 1\"]}") ==
          only);
}

TEST_CASE("bad input: every way of writing a study or an engine wrong is said with its place") {
    const auto file =
        std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/cases/study_errors.yaml";
    const Yaml rows = Yaml::load(file);
    for (const Yaml& row : rows.items()) {
        const std::string what = row.items()[1].text(), with = row.items()[2].text();
        const std::string says =
            row.items()[0].text() == "study" ? study_error(what, with) : engine_error(what, with);
        INFO(row.place() << ": " << says);
        const std::string expected = row.items()[3].text();
        CHECK((expected.empty()              ? says.empty()
               : expected.starts_with("DIR") ? says.starts_with(expected)
                                             : has(says, expected)));
    }
}

TEST_CASE(
    "bad input: what is wrong with one parameter hides neither what is wrong with others nor the "
    "strategy") {
    std::string study =
        replaced(study_yaml, "seqs: {choice: [8, 16]}",
                 "seqs: [0, 8, 128]\n  depth: [1, 9]\n  mode: {choice: [fast, fast]}");
    study = replaced(study, "strategy: exhaustive", "strategy: bayes");
    study = replaced(study, "output_tokens: 8}}", "output_tokens: 8}, requests: many, seed: -}");
    study =
        replaced(study, "objective: {maximize: total_tokens_per_second}", "objective: throughput");
    const std::string all = error_of(engine_yaml, study);
    INFO(all);
    for (const char* each : {"8:9: 'space.seqs': 0 is outside the range in the file of toy",
                             "8:9: 'space.seqs': 128 is outside",
                             "9:10: 'space.depth': 9 is outside", "the choice lists 'fast' twice",
                             "'bayes' is no strategy", "'objective': a mapping such as {maximize: ",
                             "'workloads[0].requests': an integer", "'workloads[0].seed': "})
        CHECK(has(all, each));
    CHECK(std::count(all.begin(), all.end(), '\n') == 7);
    CHECK_FALSE(has(all, "checkpoint"));
}

TEST_CASE("bad input: files that are missing, unreadable or do not fit") {
    CHECK(message_of<IoError>([] {
              (void)load_study("/nowhere/study.yaml", Catalogue("/nowhere"));
          }) == "cannot read /nowhere/study.yaml: No such file or directory");
    CHECK(error_of(engine_yaml, study_yaml, "seqs,total_tokens_per_second\n8,100\n") ==
          "DIR/t.csv:1: the table has no column 'status' (left of it: parameters, right of it: "
          "metrics)");
    CHECK(error_of(engine_yaml, "study: [s\n") ==
          "DIR/study.yaml:2:1: not YAML: end of sequence flow not found");
    CHECK(error_of(engine_yaml, "- s\n") ==
          "DIR/study.yaml:1:1: a mapping of keys wanted, got a list");
}

TEST_CASE("bad input: a workload of a file of its own has a data set there or in the study") {
    const TemporaryFolder folder;
    folder.write("toy.yaml", engine_yaml);
    folder.write("t.csv", table_csv);
    folder.write("load.yaml", "workload: load\nrequests: 10\n");
    const auto read = [&](const std::string& more) {
        const auto file = folder.write(
            "study.yaml",
            replaced(
                study_yaml,
                "  - {workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}}",
                "  - {use: ./load.yaml" + more + "}"));
        (void)set_up(load_study(file, Catalogue(folder.path())));
    };
    CHECK(message_of<ParseError>([&] { read(""); }) ==
          folder.path().string() + "/./load.yaml:1:1: a workload needs a dataset");
    CHECK_NOTHROW(read(", dataset: {kind: random, input_tokens: 8, output_tokens: 8}"));
}

TEST_CASE("environment variables in values") {
    setenv("SERVETUNE_TEST_VARIABLE", "org/from-environment", 1);
    unsetenv("SERVETUNE_TEST_UNSET");
    CHECK(Yaml::parse("a: x-${SERVETUNE_TEST_VARIABLE}", "f").entry(std::string("a"))->text() ==
          "x-org/from-environment");
    CHECK(Yaml::parse("a: ${SERVETUNE_TEST_UNSET:-default}", "f").entry(std::string("a"))->text() ==
          "default");
    CHECK(Yaml::parse("a: $${HOME}", "f").entry(std::string("a"))->text() == "${HOME}");
}

TEST_CASE("units and types of scalars") {
    const Yaml node = Yaml::parse(
        "{h: 8h, ms: 500ms, min: 20min, p: 0.5%, s: 0.02, q: '512', i: 512, b: true, e: engine}",
        "f");
    CHECK(node.entry(std::string("h"))->seconds() == 28800);
    CHECK(node.entry(std::string("ms"))->seconds() == 0.5);
    CHECK(node.entry(std::string("min"))->seconds() == 1200);
    CHECK(node.entry(std::string("p"))->fraction() == 0.005);
    CHECK(node.entry(std::string("s"))->fraction() == 0.02);
    CHECK(node.entry(std::string("q"))->value() == Value("512"));
    CHECK(node.entry(std::string("i"))->value() == Value(std::int64_t{512}));
    CHECK(node.entry(std::string("b"))->value() == Value(true));
    CHECK(node.entry(std::string("e"))->value() == Value(Unset{}));
}

TEST_CASE("aliases may not explode") {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
        for (int k = 1; k < 10; ++k) bomb += ", " + before;
        bomb += "]\n";
    }
    CHECK(has(message_of<ParseError>([&] { (void)Yaml::parse(bomb, "f"); }),
              "the file expands to more than 1000000 nodes"));
}

TEST_CASE("a study may start from another: keys replace, the space merges") {
    const TemporaryFolder folder;
    folder.write("toy.yaml", engine_yaml);
    folder.write("t.csv",
                 "seqs,mode,status,total_tokens_per_second\n8,fast,ok,100\n16,fast,ok,110\n");
    folder.write("base.yaml", study_yaml);
    const auto file = folder.write(
        "study.yaml", "use: base.yaml\nstudy: other\nspace: {mode: fast}\nbudget: {trials: 7}\n");
    const StudyFile study = load_study(file, Catalogue(folder.path()));
    CHECK(study.name == "other");
    CHECK(study.model == "org/m");
    CHECK(study.budget.trials == 7);
    CHECK(SearchSpace(study.composition->parameters()).default_configuration().text() ==
          "mode=fast seqs=8");
    folder.write("base.yaml", "use: study.yaml\nstudy: circle\n");
    CHECK(has(message_of<ParseError>([&] { (void)load_study(file, Catalogue(folder.path())); }),
              "more than 10 studies use each other; is it a circle?"));
}

TEST_CASE("the definition names what decides, and changes with it") {
    const TemporaryFolder folder;
    folder.write("toy.yaml", engine_yaml);
    folder.write("t.csv", table_csv);
    const auto definition = [&](const std::string& text) {
        return set_up(load_study(folder.write("study.yaml", text), Catalogue(folder.path())))
            .definition();
    };
    const auto one = definition(study_yaml);
    CHECK(one.at("space.seqs") == "one of 8, 16, default 8");
    CHECK(one.at("command") == "toy org/m");
    CHECK(definition(std::string(study_yaml) + "budget: {trials: 99}\n") == one);
    CHECK(definition(std::string(study_yaml) + "seed: 1\n") != one);
    folder.write("t.csv", "seqs,status,total_tokens_per_second\n8,ok,100\n16,ok,111\n");
    CHECK(definition(study_yaml) != one);
}

TEST_CASE("what takes memory is said by the engine's file, unless the study says otherwise") {
    const auto grows = [](const std::string& in_study) {
        const TemporaryFolder folder;
        folder.write("toy.yaml",
                     replaced(engine_yaml, "flag: --seqs,", "flag: --seqs, grows_memory: true,"));
        folder.write("t.csv", table_csv);
        const auto file =
            folder.write("study.yaml", replaced(study_yaml, "{choice: [8, 16]}", in_study));
        return set_up(load_study(file, Catalogue(folder.path())))
            .problem->space.at("seqs")
            .grows_memory;
    };
    CHECK(grows("{choice: [8, 16]}"));
    CHECK_FALSE(grows("{choice: [8, 16], grows_memory: false}"));
}

TEST_CASE(
    "an evaluator that starts processes says how long they get to end, the others start none") {
    const TemporaryFolder folder;
    folder.write("toy.yaml", engine_yaml);
    folder.write("t.csv", table_csv);
    const auto patience = [&](const std::string& evaluator) {
        const auto file =
            folder.write("study.yaml", replaced(study_yaml, "{replay: t.csv}", evaluator));
        const StudyFile study = load_study(file, Catalogue(folder.path()));
        CHECK((study.processes().stop_within_seconds > 0) == study.starts_processes());
        return study.processes().stop_within_seconds;
    };
    CHECK(patience("{deploy: {stop_within: 7s}}") == 7);
    CHECK(patience("{command: {run: [./measure], stop_within: 9s}}") == 9);
    CHECK(patience("{command: [./measure]}") == CommandEvaluator::Options{}.stop_within_seconds);
    CHECK(patience("{replay: t.csv}") == 0);
}
