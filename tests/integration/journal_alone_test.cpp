// SPDX-License-Identifier: Apache-2.0
// A journal without its study's files: on another computer, or after these were changed or deleted.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/sqlite_journal.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const fs::path shipped_study =
    fs::path(SERVETUNE_SOURCE) / "search_spaces/published/qwen3-14b-h100";

}  // namespace

TEST_CASE(
    "journal alone: every command that reads says the same without the study's files, and a run "
    "resumes") {
    const TemporaryFolder there;
    const TemporaryFolder here;
    fs::create_directories(there.path() / "parts");
    fs::copy_file(shipped_study / "study.yaml", there.path() / "parts/published.yaml");
    fs::copy_file(shipped_study / "results.csv", there.path() / "parts/results.csv");
    const std::string study =
        there.write("tune.yaml", "use: parts/published.yaml\nstudy: tune\n").string();
    REQUIRE(autotune({"run", study, "--trials", "4", "--quiet"}, there.path()).code == 0);

    const std::vector<std::vector<std::string>> readers{
        {"status"},  {"report"},    {"report", "--json"}, {"report", "--html"},
        {"explain"}, {"recommend"}, {"export"},           {"export", "--format", "jsonl"}};
    std::vector<Ran> before;
    for (std::vector<std::string> words : readers) {
        words.insert(words.begin() + 1, {study, "--directory", "tune"});
        before.push_back(autotune(words, there.path()));
        CHECK(before.back().code ==
              (words[0] == "explain" ? 1 : 0));  // four trials explain nothing
    }
    fs::copy_file(there.path() / "tune/study.db", here.path() / "copied.db");
    fs::create_directories(here.path() / "moved");
    fs::copy_file(there.path() / "tune/study.db", here.path() / "moved/study.db");
    fs::remove_all(there.path() / "parts");
    fs::remove(study);
    for (const char* journal : {"copied.db", "moved", "moved/study.db"})
        for (std::size_t i = 0; i < readers.size(); ++i) {
            std::vector<std::string> words = readers[i];
            words.insert(words.begin() + 1, journal);
            const Ran now = autotune(words, here.path());
            INFO(words[0] << " " << journal << ": " << now.err);
            CHECK(now.code == before[i].code);
            CHECK(now.out == before[i].out);
        }

    const std::size_t told = SqliteJournal::read(here.path() / "moved").trials().size();
    const Ran more = autotune({"run", "moved", "--trials", "6"}, here.path());
    INFO(more.err);
    CHECK(more.code == 0);
    CHECK(has(more.err, "resuming after " + std::to_string(told) + " trials\n"));
    CHECK(SqliteJournal::read(here.path() / "moved").trials().size() > told);
    CHECK(autotune({"status", "moved"}, here.path()).code == 0);
}

TEST_CASE(
    "journal alone: a comment is no change of the study, a folder without a journal is named") {
    const TemporaryFolder folder;
    const std::string text = read_file(shipped_study / "study.yaml");
    fs::copy_file(shipped_study / "results.csv", folder.path() / "results.csv");
    const std::string study = folder.write("s.yaml", text).string();
    REQUIRE(autotune({"run", study, "--directory", "d", "--trials", "3", "--quiet"}, folder.path())
                .code == 0);
    folder.write("s.yaml", "# a remark\n" + text);
    CHECK(autotune({"run", study, "--directory", "d", "--trials", "4", "--quiet"}, folder.path())
              .code == 0);
    CHECK(has(SqliteJournal::texts_of(folder.path() / "d").at(study), "# a remark\n"));
    // A study that ships is kept too, its engine is not.
    const std::string shipped = (shipped_study / "study.yaml").string();
    REQUIRE(
        autotune({"run", shipped, "--directory", "e", "--trials", "3", "--quiet"}, folder.path())
            .code == 0);
    CHECK(SqliteJournal::texts_of(folder.path() / "e").size() ==
          3);  // the study, its table, and which of them is the study
    CHECK(autotune({"report", "e"}, folder.path()).out ==
          autotune({"report", shipped, "--directory", "e"}, folder.path()).out);
    // A journal that is damaged is rescued by its folder, though nothing can be read of its study.
    std::fstream(folder.path() / "e/study.db", std::ios::in | std::ios::out | std::ios::binary)
            .seekp(4096 * 3)
        << std::string(64, 'x');
    CHECK(autotune({"report", "e"}, folder.path()).code != 0);
    const Ran rescued = autotune({"status", "e", "--rescue"}, folder.path());
    INFO(rescued.err);
    CHECK(rescued.code == 0);
    CHECK(fs::exists(folder.path() / "e/study.rescued.db"));
    // So is one whose end is missing.
    fs::create_directories(folder.path() / "cut");
    fs::copy_file(folder.path() / "d/study.db", folder.path() / "cut/study.db");
    const auto whole = fs::file_size(folder.path() / "cut/study.db");
    fs::resize_file(folder.path() / "cut/study.db", whole - 4096 - 100);
    const Ran cut = autotune({"status", "cut", "--rescue"}, folder.path());
    INFO(cut.out << cut.err);
    CHECK(cut.code == 0);
    CHECK(has(cut.out, "not all could be read: the file lacks its last 4196 bytes"));
    CHECK(fs::exists(folder.path() / "cut/study.rescued.db"));
    CHECK(fs::file_size(folder.path() / "cut/study.db") == whole - 4196);  // it is as it was
    fs::create_directories(folder.path() / "nothing");
    folder.write("nothing/study.db", "");
    CHECK(has(autotune({"report", "nothing/study.db"}, folder.path()).err,
              "autotune: journal nothing/study.db is empty\n"));
    CHECK(has(autotune({"status", "nothing", "--rescue"}, folder.path()).err,
              "study.db is empty, so nothing of it can be rescued\n"));
    fs::create_directories(folder.path() / "empty");
    const Ran none = autotune({"report", "empty"}, folder.path());
    CHECK(none.code == 2);
    CHECK(none.err == "autotune: empty is a folder without a journal (study.db)\n");
}
