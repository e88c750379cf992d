// SPDX-License-Identifier: Apache-2.0
// Every output of the program at places where something else is: a file of the user, a FIFO, a
// link, a device.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "study_file/yaml.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const std::string tiny_study =
    "study: tiny\nmodel: m\nengine: vllm\nothers: default\nstrategy: exhaustive\nbudget: {trials: "
    "4}\nworkloads: [random]\n"
    "objective: {maximize: total_tokens_per_second}\nspace: {max_num_seqs: {choice: [64, 128], "
    "ordered: true, default: 64}}\n"
    "evaluator: {replay: {table: t.csv}}\n";

/// A folder with a study that has run, and the nodes that outputs may meet.
struct OutputPlace {
    OutputPlace() {
        folder.write("tiny.yaml", tiny_study);
        folder.write(
            "t.csv",
            "max_num_seqs,status,total_tokens_per_second\n64,ok,1\n128,ok,1.0000000000000002\n");
        folder.write("doc.md",
                     "```\nvllm serve m --max-num-seqs 8\n```\n============ Serving Benchmark "
                     "Result ============\n"
                     "Successful requests: 100\nBenchmark duration (s): 10.00\nTotal generated "
                     "tokens: 1000\n"
                     "Output token throughput (tok/s): "
                     "100.0\n==================================================\n");
        fs::create_symlink("loop", path() / "loop");
        REQUIRE(mkfifo((path() / "fifo").c_str(), 0600) == 0);
    }
    [[nodiscard]] const fs::path& path() const { return folder.path(); }
    [[nodiscard]] Ran run(const Words& words) const { return autotune(words, path()); }
    TemporaryFolder folder;
};

const Words init{"init", "--yes", "--engine", "vllm", "--model", "m", "--output"};
Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

}  // namespace

TEST_CASE("outputs: import --write-study and init leave alone what they did not make") {
    const OutputPlace place;
    place.folder.write("mine.yaml", "by hand");
    CHECK(place.run({"import", "doc.md", "--write-study", "mine.yaml"}).code == 2);
    CHECK(read_file(place.path() / "mine.yaml") == "by hand");
    CHECK_FALSE(fs::exists(place.path() / "mine.csv"));
    place.folder.write("new.csv", "my own table");
    const Ran beside = place.run({"import", "doc.md", "--write-study", "new.yaml"});
    CHECK(beside.code == 2);
    CHECK(has(beside.err, "new.csv is there already"));
    CHECK(read_file(place.path() / "new.csv") == "my own table");
    CHECK_FALSE(fs::exists(place.path() / "new.yaml"));
    for (const char* node : {"loop", "fifo"}) {
        INFO(node);
        CHECK(place.run({"import", "doc.md", "--write-study", node}).code == 2);
        CHECK(place.run(with(init, {node})).code == 2);
        CHECK(place.run(with(init, {node, "--force"})).code != 0);
    }
    if (const fs::path null = place.path() / "null";
        mknod(null.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {  // root
        CHECK(place.run({"import", "doc.md", "--write-study", "null"}).code == 2);
        CHECK(place.run(with(init, {"null", "--force"})).code == 2);
        CHECK(fs::is_character_file(null));
    }
    CHECK(fs::is_symlink(fs::symlink_status(place.path() / "loop")));
    CHECK(fs::is_fifo(place.path() / "fifo"));
    // What would be no study replaces none, with --force neither, and leaves nothing beside it.
    const Ran wrong = place.run(with(init, {"mine.yaml", "--force", "--budget", "{"}));
    CHECK(wrong.code == 2);
    CHECK(has(wrong.err, "nothing was written; the study would have been wrong: "));
    CHECK_FALSE(has(wrong.err, "/.mine."));
    CHECK(read_file(place.path() / "mine.yaml") == "by hand");
    CHECK(place.run(with(init, {"mine.yaml", "--force"})).code == 0);
    CHECK(has(read_file(place.path() / "mine.yaml"), "study: mine"));
    for (const auto& entry : fs::directory_iterator(place.path()))
        CHECK_FALSE(entry.path().filename().string().starts_with("."));
}

TEST_CASE(
    "outputs: exports, and a run's reports beside a FIFO, wait for nobody and remove nothing of "
    "others") {
    const OutputPlace place;
    CHECK(place.run({"run", "tiny.yaml", "--directory", "d", "--quiet"}).code ==
          0);  // two figures one unit in the last place apart
    CHECK(has(read_file(place.path() / "d/report.html"), "</svg>"));
    REQUIRE(mkfifo((place.path() / "kept.csv.part").c_str(), 0600) == 0);
    CHECK(place.run({"export", "tiny.yaml", "--directory", "d", "--output", "kept.csv"}).code == 0);
    CHECK(fs::is_fifo(place.path() / "kept.csv.part"));
    fs::remove(place.path() / "d/report.json");
    REQUIRE(mkfifo((place.path() / "d/report.json").c_str(), 0600) == 0);
    const Ran again = place.run({"run", "tiny.yaml", "--directory", "d", "--quiet"});
    CHECK(again.code == 3);
    CHECK(has(again.err, "it is a FIFO, and no process has opened it for reading"));
}

TEST_CASE("program: what it says to words, in tests/data/cases/program.yaml") {
    const fs::path source = SERVETUNE_SOURCE;
    const Yaml cases = Yaml::load(source / "tests/data/cases/program.yaml");
    for (const Yaml& one : cases.items()) {
        const auto of = [&one](std::string_view key) { return one.entry(key); };
        const TemporaryFolder folder;
        if (const Yaml* files = of("files"))
            for (const auto& [name, content] : files->entries()) folder.write(name, content.text());
        Words words;
        for (const Yaml& word : of("words")->items()) {
            const std::string text = word.text();
            words.push_back(text.starts_with("@/") ? (source / text.substr(2)).string() : text);
        }
        const Ran ran = autotune(words, folder.path());
        INFO(one.place() << ": " << ran.out << ran.err);
        CHECK(ran.code == (of("code") == nullptr ? 2 : of("code")->integer()));
        for (const Yaml& part : of("says")->items()) CHECK(has(ran.out + ran.err, part.text()));
        if (const Yaml* never = of("never")) CHECK_FALSE(has(ran.out + ran.err, never->text()));
    }
}
