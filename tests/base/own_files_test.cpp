// SPDX-License-Identifier: Apache-2.0
// Who removes or replaces a file knows that it made it.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "deploy/trial_folders.hpp"
#include "host/kept_output.hpp"
#include "results/written_study.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// A result whose command is refused (8 batched tokens cannot hold 512 sequences) or fits.
ResultSource results_of(bool fits) {
    const std::string text =
        "```\nvllm serve m --max-num-seqs " +
        std::string(fits ? "8" : "512 --max-num-batched-tokens 8") +
        "\n```\n============ Serving Benchmark Result ============\nSuccessful requests: 100\n"
        "Benchmark duration (s): 10.00\nTotal generated tokens: 1000\nRequest throughput (req/s): "
        "10.0\n"
        "Output token throughput (tok/s): 100.0\n"
        "==================================================\n";
    ResultSource source;
    source.results = read_results(text, "a.md", shipped_catalogue.engines());
    source.files.assign(source.results.size(), "a.md");
    return source;
}

void write_to(const fs::path& file, bool fits) {
    (void)write_study(results_of(fits), {}, file, shipped_catalogue);
}

}  // namespace

TEST_CASE(
    "own files: a new file replaces nothing, and goes only where it still is the one that was "
    "made") {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "a";
    {
        NewFile made(file);
        made.write("long text");
        made.write("short");
        CHECK(read_file(file) == "short");
        CHECK(has(message_of<UsageError>([&] { NewFile second(file); }), "a is there already"));
    }
    CHECK_FALSE(fs::exists(file));
    {
        NewFile made(file);
        fs::remove(file);
        write_file(file, "of somebody else");
    }
    CHECK(read_file(file) == "of somebody else");
    fs::remove(file);
    {
        NewFile made(file);
        made.write("kept");
        made.keep();
    }
    CHECK(read_file(file) == "kept");
    fs::create_symlink("nowhere", folder.path() / "link");
    CHECK_THROWS_AS(NewFile(folder.path() / "link"), UsageError);
    CHECK(fs::is_symlink(folder.path() / "link"));
    REQUIRE(mkfifo((folder.path() / "fifo").c_str(), 0600) == 0);
    CHECK_THROWS_AS(NewFile(folder.path() / "fifo"), UsageError);
    CHECK(fs::is_fifo(folder.path() / "fifo"));
    CHECK_THROWS_AS(NewFile(folder.path() / "no/such"), IoError);
}

TEST_CASE("own files: a study that is written of results leaves what was there") {
    const TemporaryFolder folder;
    const fs::path study = folder.path() / "mine.yaml";
    const fs::path table = folder.path() / "mine.csv";
    write_file(study, "by hand");
    CHECK(
        has(message_of<UsageError>([&] { write_to(study, false); }), "mine.yaml is there already"));
    CHECK(read_file(study) == "by hand");
    CHECK_FALSE(fs::exists(table));
    fs::remove(study);
    write_file(table, "my own table");
    CHECK(has(message_of<UsageError>([&] { write_to(study, true); }), "mine.csv is there already"));
    CHECK(read_file(table) == "my own table");
    CHECK_FALSE(fs::exists(study));
    fs::remove(table);
    CHECK_FALSE(message_of<Error>([&] { write_to(study, false); }).empty());
    CHECK(fs::is_empty(folder.path()));  // what does not replay is not left behind
    CHECK_NOTHROW(write_to(study, true));
    CHECK(has(read_file(study), "table: mine.csv"));
    CHECK(has(read_file(table), "output_tokens_per_second"));
}

TEST_CASE("own files: only folders with a trial's log make room for others") {
    const TemporaryFolder folder;
    for (const char* trial : {"trials/0", "trials/1", "trials/2"})
        fs::create_directories(folder.path() / trial);
    folder.write("trials/0/engine.log", std::string(1000, 'x'));
    folder.write("trials/1/notes.txt",
                 std::string(1000, 'x'));  // named by somebody who counts, too
    folder.write("trials/2/command.log", std::string(1000, 'x'));
    TrialFolders folders;
    folders.begin(folder.path() / "trials/3", 1, 0);
    CHECK_FALSE(fs::exists(folder.path() / "trials/0"));
    CHECK(fs::exists(folder.path() / "trials/1/notes.txt"));
    CHECK_FALSE(fs::exists(folder.path() / "trials/2"));
}

TEST_CASE("own files: a trial whose servers have folders of their own makes room too") {
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / "trials/0/prefill-0");
    folder.write("trials/0/prefill-0/engine.log", std::string(1000, 'x'));
    fs::create_directories(folder.path() / "trials/1/notes");
    folder.write("trials/1/notes/mine.txt", std::string(1000, 'x'));
    TrialFolders folders;
    folders.begin(folder.path() / "trials/3", 1, 0);
    CHECK_FALSE(fs::exists(folder.path() / "trials/0"));
    CHECK(fs::exists(folder.path() / "trials/1/notes/mine.txt"));
}

TEST_CASE(
    "own files: no output waits for the reader of a FIFO, none follows a link to a file of "
    "others") {
    const TemporaryFolder folder;
    const fs::path fifo = folder.path() / "engine.log";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(has(message_of<IoError>([&] { LogFile log(fifo, 4096); }), "it is a FIFO"));
    CHECK(has(message_of<IoError>([&] { write_plain_file(fifo, "x"); }), "cannot write"));
    folder.write("theirs", "precious");
    fs::create_symlink("theirs", folder.path() / "log");
    CHECK(has(message_of<IoError>([&] { LogFile log(folder.path() / "log", 4096); }),
              "a link to a file of others"));
    CHECK(
        has(message_of<IoError>([&] { write_plain_file(folder.path() / "log", "x", O_NOFOLLOW); }),
            "cannot write"));
    CHECK(read_file(folder.path() / "theirs") == "precious");
}
