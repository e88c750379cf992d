// SPDX-License-Identifier: Apache-2.0
// What makes a study another one: every key of the format, changed, against a table of what it must
// do.
#include "base/files.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"
#include "study_file/keys.hpp"
#include "study_file/yaml.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr const char* defined_engine = R"(engine: toy
versions: "1.0"
launch: [toy, "{model}"]
weight_cache: {launch: [toy-cache, "{model}"], parameters: [mode], engine: [--cached], ready: held, used: taken, ready_within: 1min}
roles: {prefill: {arguments: [--first]}, decode: {}, router: [router, ["{prefill_url}"], ["{decode_url}"]]}
parameters:
  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: 8}
  mode: {flag: --mode, choice: [engine, fast, slow], earlier: {until: "0.9", flag: --way}}
)";

/// A study as pieces that a row of the table replaces or adds to.
using Pieces = std::map<std::string, std::string>;
const Pieces plain{
    {"study", "s"},
    {"model", "org/m"},
    {"engine", "toy"},
    {"workloads",
     "[{workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}, requests: 10}]"},
    {"objective", "{maximize: total_tokens_per_second}"},
    {"space", "{seqs: {choice: [8, 16]}, mode: {choice: [engine, fast]}}"},
    {"others", "default"},
    {"strategy", "exhaustive"},
    {"evaluator", "{command: [./measure, \"{config}\"]}"}};

class Studies {
public:
    Studies() {
        folder_.write("toy.yaml", defined_engine);
        folder_.write("toy2.yaml", replaced(defined_engine, "flag: --mode", "flag: --way"));
        folder_.write("t.csv",
                      "seqs,mode,status,total_tokens_per_second\n8,engine,ok,100\n16,engine,ok,"
                      "110\n8,fast,ok,100\n16,fast,ok,110\n");
        folder_.write("u.csv",
                      "seqs,mode,status,total_tokens_per_second\n8,engine,ok,100\n16,engine,ok,"
                      "111\n8,fast,ok,100\n16,fast,ok,110\n");
        folder_.write("base.yaml", "min_gain: 3%\n");
        folder_.write("w1.yaml",
                      "workload: w\nrequests: 10\ndataset: {kind: random, input_tokens: 8, "
                      "output_tokens: 8}\n");
        folder_.write("w2.yaml",
                      "workload: w\nrequests: 12\ndataset: {kind: random, input_tokens: 8, "
                      "output_tokens: 8}\n");
        folder_.write("some.yaml",
                      "preset: some\ndoc: d\nspace: {toy: {seqs: {choice: [8, 64]}}}\n");
        folder_.write(
            "traits.yaml",
            read_file(std::filesystem::path(search_spaces) / "traits/vllm.yaml") + "\n# ours\n");
        folder_.write("pod1.yaml", "spec: {containers: [{name: engine, image: a}]}\n");
        folder_.write(
            "pod2.yaml",
            "spec: {nodeSelector: {gpu: h100}, containers: [{name: engine, image: a}]}\n");
        folder_.write("pod3.yaml", "spec: {containers: [{name: engine}]}\n");
        folder_.write("p1.txt", "one\n");
        folder_.write("p2.txt", "two\n");
    }
    std::map<std::string, std::string> definition(const Pieces& pieces) const {
        std::string text;
        for (const auto& [key, value] : pieces)
            if (!value.empty()) text += key + ": " + value + "\n";
        INFO(text);
        return set_up(load_study(folder_.write("study.yaml", text), Catalogue(search_spaces)),
                      folder_.path() / "out")
            .definition();
    }
    const TemporaryFolder& folder() const { return folder_; }

private:
    TemporaryFolder folder_;
};

Pieces evaluator(const std::string& kind, const std::string& body) {
    return {{"evaluator", "{" + kind + ": {" + body + "}}"}};
}
Pieces with(Pieces some, const Pieces& more) {
    for (const auto& [key, value] : more) some[key] = value;
    return some;
}

/// Those that stand below a study, but for parameters and rules.
std::vector<const KeyType*> tables_of_study() {
    std::vector<const KeyType*> result;
    const std::set<std::string_view> others{"parameter", "range", "also", "earlier", "constraint"};
    const auto add = [&](const auto& self, const KeyType& type) -> void {
        if (type.element != nullptr) self(self, *type.element);
        if (type.other != nullptr) self(self, *type.other);
        if (type.form != KeyType::Form::keyed || others.contains(type.table)) return;
        for (const KeyType* known : result)
            if (known->table == type.table) return;
        result.push_back(&type);
        for (const Key& key : type.keys()) self(self, *key.type);
    };
    add(add, is::keyed<keys::study>);
    return result;
}

}  // namespace

TEST_CASE(
    "definition: every key of a study and its workloads either makes it another study or is known "
    "not to") {
    const auto pieces = [](const Yaml& node) {
        Pieces result;
        for (const auto& [key, value] : node.entries()) result[key] = value.text();
        return result;
    };
    const std::filesystem::path cases =
        std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/cases";
    const Yaml rows = Yaml::load(cases / "definition.yaml");
    std::set<std::string> left;  // rows of keys that are none
    for (const auto& [name, row] : rows.entries()) left.insert(name);
    const Studies studies;
    for (const KeyType* table : tables_of_study())
        for (const Key& key : table->keys()) {
            const std::string name = std::string(table->table) + "." + std::string(key.name);
            INFO(name);
            const Yaml* row = rows.entry(std::string_view(name));
            REQUIRE(row != nullptr);  // a key that is added to the format needs a row
            left.erase(name);
            if (row->items().empty()) continue;
            const bool same = studies.definition(with(plain, pieces(row->items()[0]))) ==
                              studies.definition(with(plain, pieces(row->items()[1])));
            CHECK(same == (key.has(ignored) || table->table == "budget"));
        }
    CHECK(left.empty());
}

TEST_CASE("definition: what stands in the files that a study names is part of it") {
    const Studies studies;
    const auto changes = [&](const Pieces& pieces, const std::string& file,
                             const std::string& content) {
        const auto before = studies.definition(with(plain, pieces));
        studies.folder().write(file, content);
        return before != studies.definition(with(plain, pieces));
    };
    CHECK(changes({}, "toy.yaml", replaced(defined_engine, "flag: --mode", "flag: --way")));
    CHECK_FALSE(
        changes({}, "toy.yaml",
                replaced(defined_engine, "flag: --mode", "doc: \"As before.\", flag: --way")));
    CHECK(changes({}, "toy.yaml",
                  replaced(defined_engine, "flag: --mode", "grows_memory: true, flag: --way")));
    CHECK(changes({{"workloads",
                    "[{workload: w, requests: 10, dataset: {kind: prompts, path: p1.txt, "
                    "output_tokens: 8}}]"}},
                  "p1.txt", "another\n"));
    CHECK(changes({{"evaluator", "{replay: t.csv}"}}, "t.csv",
                  "seqs,mode,status,total_tokens_per_second\n8,engine,ok,100\n16,engine,ok,110\n8,"
                  "fast,ok,100\n16,fast,ok,113\n"));
    CHECK(changes({{"use", "base.yaml"}}, "base.yaml", "seed: 5\n"));
}

TEST_CASE("definition: a journal of the study as it was before a change is not gone on with") {
    const Studies studies;
    const TemporaryFolder folder;
    const auto now = studies.definition(with(plain, evaluator("deploy", "trial_within: 1h")));
    { (void)SqliteJournal::open(folder.path(), {"s", now, "0.1.0"}); }
    const auto changed = studies.definition(with(plain, evaluator("deploy", "trial_within: 2h")));
    CHECK(has(message_of<UsageError>([&] {
                  (void)SqliteJournal::open(folder.path(), {"s", changed, "0.1.0"});
              }),
              "\n  file.evaluator.deploy.trial_within: was '1h', is '2h'\n"));
}
