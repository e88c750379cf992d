// SPDX-License-Identifier: Apache-2.0
// scripts/check-parser: commands against an engine's own parser, whose heavy imports are not there.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::filesystem::path repository_root = SERVETUNE_SOURCE;

Ran check_parser(std::vector<std::string> words, const std::filesystem::path& folder) {
    words.insert(words.begin(), (repository_root / "scripts/check-parser").string());
    return ran(words, folder);
}
const std::string made_up_engine = (repository_root / "tests/data/check_parser").string();

std::string argv_line(const std::string& flags) {
    return "{\"argv\": [\"quill\", \"m\"" + flags + "], \"environment\": {}}\n";
}

}  // namespace

TEST_CASE(
    "check-parser: an engine's own checks run without its libraries, and every reason is counted") {
    const TemporaryFolder folder;
    folder.write("good.jsonl", argv_line("") + argv_line(", \"--rows=4\", \"--shards=2\""));
    const Ran good = check_parser(
        {"quill", made_up_engine, "--entry", "quill.arguments:check", "--commands", "good.jsonl"},
        folder.path());
    INFO(good.out << good.err);
    CHECK(good.code == 0);
    CHECK(has(good.out, "quill: 2 commands, 2 accepted, 0 refused, 0 not decided\n"));
    CHECK(has(good.out, "not there: heavy_library, torch_of_quill\n"));
    CHECK(has(good.out, "quill.broken: RuntimeError: needs a press"));

    folder.write("bad.jsonl", argv_line(", \"--rows=3\", \"--shards=2\"") +
                                  argv_line(", \"--rows=5\", \"--shards=4\"") +
                                  argv_line(", \"--rows=16\"") + argv_line(", \"--paper=glossy\"") +
                                  argv_line(", \"--colour=red\"") +
                                  argv_line(", \"--paper=lined\"") + argv_line(", \"--rows=8\""));
    const Ran bad = check_parser(
        {"quill", made_up_engine, "--entry", "quill.arguments:check", "--commands", "bad.jsonl"},
        folder.path());
    INFO(bad.out << bad.err);
    CHECK(bad.code == 1);
    CHECK(has(bad.out, "quill: 7 commands, 1 accepted, 5 refused, 1 not decided\n"));
    CHECK(has(
        bad.out,
        "refused: 2 x AssertionError: rows (3) must be divisible by shards (2) (arguments.py:"));
    CHECK(has(bad.out, "refused: 1 x ValueError: 'plain' paper takes at most 8 rows, not 16"));
    CHECK(has(bad.out, "invalid choice: 'glossy'"));
    CHECK(has(bad.out, "unrecognized arguments: --colour=red"));
    CHECK(has(bad.out, "not decided (the check needs more than the facts): 1 x AttributeError"));
}

TEST_CASE(
    "check-parser: what a rule forbids must be refused by the engine, and a neighbour taken") {
    const TemporaryFolder folder;
    if (ran({"python3", "-c", "import yaml"}, folder.path()).code != 0) {
        WARN("skipped: python3 has no module yaml");
        return;
    }
    folder.write(
        "quill.yaml",
        "engine: quill\nlaunch: [quill, \"{model}\"]\nparameters:\n"
        "  rows:\n    flag: --rows\n    int: {low: 1, high: 64, scale: log2}\n    default: 1\n"
        "  shards:\n    flag: --shards\n    int: {low: 1, high: 8}\n    default: 1\n"
        "  paper:\n    flag: --paper\n    choice: [engine, plain]\n    default: engine\n"
        "constraints:\n"
        "  - require: \"rows % shards == 0\"\n    because: quill refuses it\n"
        "  - forbid: {rows: [16, 32, 64]}\n    because: quill refuses it\n"
        "  - forbid: {rows: 2, shards: 2}\n    because: nobody knows\n"
        "  - forbid: {paper: plain}\n    because: \"this changes nothing\"\n");
    const Ran rules = check_parser({"quill", made_up_engine, "--entry", "quill.arguments:check",
                                    "--version", "1.0", "--rules", "--engine-file", "quill.yaml"},
                                   folder.path());
    INFO(rules.out << rules.err);
    CHECK(rules.code == 0);
    CHECK(has(rules.out, "confirmed: require rows % shards == 0\n"));
    CHECK(has(rules.out, "confirmed: forbid {\"rows\": [16, 32, 64]}\n"));
    CHECK(has(rules.out, "taken by what was reached: forbid {\"rows\": 2, \"shards\": 2}\n"));
    CHECK(has(rules.out, "twin, taken as it says: forbid {\"paper\": \"plain\"}\n"));
    CHECK(has(rules.out,
              "quill 1.0: 4 rules, 2 confirmed, 1 taken by what was reached, 1 twin, taken as it "
              "says\n"));
}

TEST_CASE("mine-rules: what an engine's source refuses and no rule has is listed") {
    const TemporaryFolder folder;
    folder.write("quill.yaml",
                 "engine: quill\nparameters:\n  rows:\n    flag: --rows\n  shards:\n    flag: "
                 "--shards\n  paper:\n    flag: --paper-kind\n"
                 "  depth:\n    flag: --depth\n    when: {paper: lined}\nconstraints:\n  - "
                 "require: \"rows % shards == 0\"\n");
    std::filesystem::create_directories(folder.path() / "quill");
    folder.write("quill/checks.py",
                 "def f(self, log):\n    assert self.rows % self.shards == 0, 'rows by shards'\n"
                 "    if self.paper_kind == 'plain' and self.rows > 8:\n        raise "
                 "ValueError(f'plain paper has {8} rows')\n"
                 "    if self.depth:\n        log.warning('--depth does nothing on --paper-kind "
                 "plain')\n    raise KeyError('colour')\n");
    const Ran mined =
        ran({(repository_root / "scripts/mine-rules").string(), "quill", folder.path().string(),
             "quill/*.py", "--engine-file", (folder.path() / "quill.yaml").string()},
            folder.path());
    INFO(mined.out << mined.err);
    CHECK(mined.code == 0);
    CHECK(mined.out ==
          "quill/checks.py:4: refuses paper, rows: plain paper has rows\n"
          "quill: 4 raises, asserts and warnings in 1 files, 3 about parameters of quill.yaml, 2 "
          "covered by a rule or a condition, "
          "1 to read\n");
    CHECK(ran({(repository_root / "scripts/mine-rules").string(), "quill", folder.path().string(),
               "--engine-file", (folder.path() / "quill.yaml").string()},
              folder.path())
              .code == 2);
}

TEST_CASE("check-parser: what it cannot run is said, with exit code 2") {
    const TemporaryFolder folder;
    folder.write("one.jsonl", argv_line(""));
    const auto refused = [&](std::vector<std::string> words) {
        words.insert(words.end(), {"--commands", "one.jsonl"});
        const Ran result = check_parser(words, folder.path());
        CHECK(result.code == 2);
        CHECK(result.out.empty());
        return result.err;
    };
    CHECK(has(refused({"vllm", folder.path().string()}), "no package vllm in"));
    CHECK(has(refused({"quill", made_up_engine}), "--entry MODULE:FUNCTION is needed for quill"));
    CHECK(has(refused({"quill", folder.path().string(), "--entry", "quill.arguments:check"}),
              "no module quill.arguments in"));
    CHECK(
        has(refused({"quill", made_up_engine, "--entry", "quill.broken:check"}), "needs a press"));
    const Ran absent = check_parser(
        {"quill", made_up_engine, "--entry", "quill.arguments:check", "--commands", "none.jsonl"},
        folder.path());
    CHECK(absent.code == 2);
    CHECK(has(absent.err, "none.jsonl"));
}

TEST_CASE("render --random prints commands of allowed configurations, one a line") {
    const TemporaryFolder folder;
    folder.write("study.yaml",
                 "study: s\nmodel: Qwen/Qwen3-14B\nengine: vllm\nhardware: {device: h100-sxm, "
                 "count: 2}\nworkloads: [{use: random}]\n"
                 "objective: {maximize: total_tokens_per_second}\nothers: default\n"
                 "space: {max_num_seqs: [64, 128, 256], max_num_batched_tokens: [128, "
                 "8192]}\nevaluator: {simulate: {}}\n");
    const auto lines = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"render", "study.yaml", "--random", "40", "--json"});
        const Ran result = autotune(more, folder.path());
        INFO(result.err);
        REQUIRE(result.code == 0);
        return result.out;
    };
    const std::string drawn = lines({});
    CHECK(std::count(drawn.begin(), drawn.end(), '\n') == 40);
    std::set<std::string> commands;
    std::istringstream all(drawn);
    for (std::string line; std::getline(all, line);) {
        const auto command = nlohmann::json::parse(line);
        const std::string words = command.at("argv").dump();
        CHECK(has(words, "\"vllm\",\"serve\",\"Qwen/Qwen3-14B\""));
        CHECK_FALSE((has(words, "max-num-seqs=256") &&
                     has(words, "max-num-batched-tokens=128")));  // vLLM refuses it
        commands.insert(words);
    }
    CHECK(commands.size() == 11);  // both parameters may be left to the engine, too
    CHECK(lines({}) == drawn);
    CHECK(lines({"--seed", "7"}) != drawn);
    CHECK(autotune({"render", "study.yaml", "--random", "2", "--set", "max_num_seqs=64"},
                   folder.path())
              .code != 0);
    CHECK(autotune({"render", "study.yaml", "--seed", "7"}, folder.path()).code != 0);
}
