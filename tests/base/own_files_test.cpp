// SPDX-License-Identifier: Apache-2.0
// Who removes or replaces a file knows that it made it.
#include "support/test.hpp"

#include "base/files.hpp"
#include "deploy/trial_folders.hpp"
#include "host/kept_output.hpp"
#include "servetune/error.hpp"

#include <sys/stat.h>
#include <unistd.h>

using namespace servetune;
using namespace servetune::test;

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

TEST_CASE("own files: only folders with a trial's log make room for others") {
    const TemporaryFolder folder;
    const fs::path& here = folder.path();
    for (const char* trial : {"trials/0", "trials/1", "trials/2"})
        fs::create_directories(here / trial);
    folder.write("trials/0/engine.log", std::string(1000, 'x'));
    folder.write("trials/1/notes.txt",
                 std::string(1000, 'x'));  // named by somebody who counts, too
    folder.write("trials/2/command.log", std::string(1000, 'x'));
    TrialFolders folders;
    folders.begin(here / "trials/3", 1, 0);
    CHECK_FALSE(fs::exists(here / "trials/0"));
    CHECK(fs::exists(here / "trials/1/notes.txt"));
    CHECK_FALSE(fs::exists(here / "trials/2"));
}

TEST_CASE("own files: a trial whose servers have folders of their own makes room too") {
    const TemporaryFolder folder;
    const fs::path& here = folder.path();
    fs::create_directories(here / "trials/0/prefill-0");
    folder.write("trials/0/prefill-0/engine.log", std::string(1000, 'x'));
    fs::create_directories(here / "trials/1/notes");
    folder.write("trials/1/notes/mine.txt", std::string(1000, 'x'));
    TrialFolders folders;
    folders.begin(here / "trials/3", 1, 0);
    CHECK_FALSE(fs::exists(here / "trials/0"));
    CHECK(fs::exists(here / "trials/1/notes/mine.txt"));
}

TEST_CASE(
    "own files: no output waits for the reader of a FIFO, none follows a link to a file of "
    "others") {
    const TemporaryFolder folder;
    const fs::path& here = folder.path();
    const fs::path fifo = here / "engine.log";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(has(message_of<IoError>([&] { LogFile log(fifo, 4096); }), "it is a FIFO"));
    CHECK(has(message_of<IoError>([&] { write_plain_file(fifo, "x"); }), "cannot write"));
    folder.write("theirs", "precious");
    fs::create_symlink("theirs", here / "log");
    CHECK(has(message_of<IoError>([&] { LogFile log(here / "log", 4096); }),
              "a link to a file of others"));
    CHECK(has(message_of<IoError>([&] { write_plain_file(here / "log", "x", O_NOFOLLOW); }),
              "cannot write"));
    CHECK(read_file(here / "theirs") == "precious");
}
