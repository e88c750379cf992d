// SPDX-License-Identifier: Apache-2.0
// scripts/engine-flags: which flags a version takes, from its help or its source, and what changed.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "engine/flag_facts.hpp"

#include <nlohmann/json.hpp>

#include <map>

using namespace servetune;
using namespace servetune::test;

namespace {

const fs::path repository = SERVETUNE_SOURCE;

Ran engine_flags(std::vector<std::string> words, const TemporaryFolder& folder) {
    words.insert(words.begin(), (repository / "scripts/engine-flags").string());
    return ran(words, folder.path());
}
/// Flag -> what it writes of it in v.json.
auto facts_written(std::vector<std::string> words, const TemporaryFolder& folder) {
    words.insert(words.end(), {"--out", "v.json"});
    const Ran now = engine_flags(words, folder);
    INFO(now.out << now.err);
    REQUIRE(now.code == 0);
    std::map<std::string, std::string> result;
    const auto written = nlohmann::json::parse(read_file(folder.path() / "v.json"));
    for (const auto& [flag, fact] : written.at("flags").items()) result[flag] = fact.dump();
    return result;
}
std::string sample(const char* name) {
    return (repository / "tests/data/engine_flags" / name).string();
}

}  // namespace

TEST_CASE("engine-flags: help becomes a versions file, and the difference to the one before") {
    const TemporaryFolder folder;
    const Ran old = engine_flags(
        {"quill", "1.0", "--help-text", sample("old.txt"), "--out", "old.json", "--complete"},
        folder);
    INFO(old.err);
    REQUIRE(old.code == 0);
    const Ran now = engine_flags({"quill", "1.1", "--help-text", sample("new.txt"), "--out",
                                  "new.json", "--against", "old.json"},
                                 folder);
    CHECK(now.code == 0);
    CHECK(has(now.out, "new.json: 5 flags, 0 of them by name only"));
    CHECK(has(now.out,
              "against old: 4 differences\n  + --number (int)\n  + --split (x, y)\n"
              "  - --tensor-parallel-size\n  ~ --cache-type: came c, d went b\n"));
    const FlagFacts facts = FlagFacts::load(folder.path() / "old.json");  // what the program reads
    CHECK(facts.complete);
    CHECK(facts.version == "1.0");
    CHECK(facts.flags.size() == 5);
    CHECK(facts.flags.at("-tp").name == "--tensor-parallel-size");
    CHECK(facts.flags.at("--cache-type").values == std::vector<std::string>{"a", "b"});
    CHECK(facts.flags.at("--fast").negatable);
    CHECK_FALSE(FlagFacts::load(folder.path() / "new.json").complete);
    // A flag that lists its spellings in another order is the same one.
    folder.write(
        "turned.txt",
        "options:\n  --tp-size N, --tensor-parallel-size N\n                        devices\n");
    const Ran turned = engine_flags(
        {"quill", "1.2", "--help-text", "turned.txt", "--out", "t.json", "--against", "old.json"},
        folder);
    CHECK_FALSE(has(turned.out, "tensor-parallel-size"));
    CHECK_FALSE(has(turned.out, "tp-size"));
}

TEST_CASE(
    "engine-flags: a way off is never another name of the way on, and an example is no flag") {
    const TemporaryFolder folder;
    folder.write(
        "h.txt",
        "Pass JSON so:\n   --json-arg '{\"key\": 1}'\n   --json-arg.key1 value1 --json-arg.key2 "
        "value2\n\noptions:\n"
        "  --enable-cache, --disable-cache\n  --disable-cascade, --enable-cascade\n  --eager, "
        "--no-eager\n"
        "  --cache-type {'auto','fp8',None}, -ct {'auto','fp8',None}\n"
        "-kvo,  --kv-offload, -nkvo, --no-kv-offload\n                        where it lies\n"
        "--webui, --ui, --no-webui\n  --enable-parts, -p, --disable-parts\n  --enable-wholes, "
        "--no-enable-wholes, -w\n"
        "  --size SIZE   how large\n");
    auto fact = facts_written({"quill", "3.0", "--help-text", "h.txt"}, folder);
    CHECK(fact.size() == 9);
    CHECK(fact["--size"] ==
          R"({"type":"string","verified":false})");  // a help does not say that it is a number
    CHECK(fact["--enable-parts"] ==
          R"({"negatable":true,"negations":["--disable-parts"],"short":"-p","type":"bool"})");
    CHECK(fact["--enable-wholes"] == R"({"negatable":true,"short":"-w","type":"bool"})");
    CHECK(fact["--enable-cache"] ==
          R"({"negatable":true,"negations":["--disable-cache"],"type":"bool"})");
    CHECK(fact["--disable-cascade"] ==
          R"({"negatable":true,"negations":["--enable-cascade"],"type":"bool"})");
    CHECK(fact["--eager"] == R"({"negatable":true,"type":"bool"})");
    CHECK(fact["--cache-type"] == R"({"short":"-ct","type":"choice","values":["auto","fp8"]})");
    CHECK(
        fact["--kv-offload"] ==
        R"({"negatable":true,"negations":["--no-kv-offload","-nkvo"],"short":"-kvo","type":"bool"})");
    // What the program makes of it: each way off switches off, the hidden one too.
    const FlagFacts facts = FlagFacts::load(folder.path() / "v.json");
    CHECK_FALSE(facts.flags.at("--enable-cache").negated);
    for (const char* on : {"-p", "-w"}) CHECK_FALSE(facts.flags.at(on).negated);
    for (const char* off : {"--disable-cache", "--enable-cascade", "-nkvo", "--no-kv-offload"})
        CHECK(facts.flags.at(off).negated);
    CHECK(facts
              .problems({{"quill", "--no-enable-cache", "--no-disable-cascade", "--no-eager"}},
                        Engine{"quill"})
              .empty());
}

TEST_CASE(
    "engine-flags: an engine's own parser says types, choices and defaults, without the engine's "
    "libraries") {
    const TemporaryFolder folder;
    const std::string package = (repository / "tests/data/check_parser").string();
    auto fact = facts_written(
        {"quill", "4.0", "--package", package, "--entry", "quill.arguments:parser"}, folder);
    CHECK(FlagFacts::load(folder.path() / "v.json").complete);
    CHECK(fact.size() == 6);
    CHECK(fact["--rows"] == R"({"default":1,"short":"-r","type":"int"})");
    CHECK(fact["--paper"] == R"({"default":"plain","type":"choice","values":["lined","plain"]})");
    CHECK(fact["--margin"] == R"({"type":"int"})");  // behind a wrapper for optional values
    CHECK(fact["--copies"] == R"({"default":1,"type":"choice","values":[1,2,4]})");
    CHECK(fact["--enable-ink"] ==
          R"({"deprecated":true,"negatable":true,"short":"-i","type":"bool"})");
    CHECK(engine_flags({"quill", "4.0", "--package", package, "--entry", "quill.broken:check",
                        "--out", "x.json"},
                       folder)
              .code == 2);
}

TEST_CASE("engine-flags: the engine files agree with the facts of every version that is stored") {
    const TemporaryFolder folder;
    const Ran checked = engine_flags({"--check"}, folder);
    INFO(checked.out << checked.err);
    CHECK(checked.code == 0);
    CHECK(has(checked.out, "vllm 0.33.0: "));
    CHECK(has(checked.out, "sglang 0.5.23: "));
}

TEST_CASE("engine-flags: source is parsed, never run: arguments of a parser and annotated fields") {
    const TemporaryFolder folder;
    auto fact = facts_written(
        {"quill", "2.0", "--source", sample("fields.py"), "--said", "tag 2.0"}, folder);
    CHECK(fact.size() == 11);
    CHECK(
        fact["--backend"] ==
        R"({"aliases":["--back-end"],"default":"one","type":"choice","values":["one","two","three"]})");
    CHECK(fact["--steps"] == R"({"type":"int"})");
    CHECK(fact["--ratio"] == R"({"default":0.5,"type":"float"})");
    CHECK(fact["--sizes"] == R"({"list":true,"type":"int"})");
    CHECK(fact["--method"] == R"({"default":"a","type":"choice","values":["a","b"]})");
    CHECK(fact["--fast"] == R"({"negatable":true,"type":"bool"})");
    CHECK(fact["--max-num"] == R"({"default":8,"short":"-m","type":"int"})");
    CHECK(fact["--on"] == R"({"type":"bool"})");
    CHECK(fact["--kind"] == R"({"default":"two","type":"choice","values":["one","two","three"]})");
    CHECK(fact["--elsewhere"] == R"({"verified":false})");
    CHECK(fact["--unknown-choice"] == R"({"type":"choice","verified":false})");
    CHECK(FlagFacts::load(folder.path() / "v.json").source == "tag 2.0");
}

TEST_CASE(
    "engine-flags: flags of an engine file that are gone end with 1, and input without flags with "
    "2") {
    const TemporaryFolder folder;
    folder.write("h.txt", "options:\n  --port PORT  x\n");
    const Ran gone =
        engine_flags({"vllm", "99.0", "--help-text", "h.txt", "--out", "v.json"}, folder);
    CHECK(gone.code == 1);
    CHECK(has(gone.out, "vllm.yaml is wrong in this version: "));
    CHECK(has(gone.out, "--max-num-seqs"));
    CHECK(has(gone.out, "against vllm-0.33.0"));  // the newest that is stored
    folder.write("empty.txt", "nothing here\n");
    folder.write("broken.py", "def f(:\n");
    for (const char* of :
         {"--help-text=empty.txt", "--source=broken.py", "--complete", "--help-text=none.txt"})
        CHECK(engine_flags({"quill", "1", of, "--out", "e.json"}, folder).code == 2);
    CHECK_FALSE(fs::exists(folder.path() / "e.json"));
}

TEST_CASE("engine-flags: what pip's registry has that is not stored, a line an engine") {
    const TemporaryFolder folder;
    fs::create_directory(folder.path() / "vllm");
    folder.write("vllm/index.html", "<a href='vllm-99.0rc1.zip'>v</a>");
    const Ran said =
        ran({"/usr/bin/env", "PIP_FIND_LINKS=", "PIP_INDEX_URL=file://" + folder.path().string(),
             (repository / "scripts/engine-flags").string(), "--newest"},
            folder.path());
    INFO(said.out << said.err);
    CHECK(said.code == 2);
    CHECK(has(said.out, "sglang: 0.5.23 is stored, no answer: No "));
    if (!has(said.out, "No module named pip"))
        CHECK(has(said.out, "vllm: 0.33.0 is stored, the registry has 99.0rc1: behind\n"));
}
