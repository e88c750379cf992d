// SPDX-License-Identifier: Apache-2.0
#include "host/log_file.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace fs = std::filesystem;

TEST_CASE("log file: one that rotates keeps whole lines, the newest of them, and stays bounded") {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "engine.log";
    constexpr std::size_t most = 1000;
    std::string all;
    {
        LogFile log(file, most, true);
        for (int i = 0; i < 2000; ++i) {
            const std::string line = "line " + std::to_string(i) + "\n";
            all += line;
            log.write(line);
        }
        log.finish();
        CHECK(log.trouble().empty());
    }
    std::string kept = read_file(file);
    for (int older = 1; older <= LogFile::older_files; ++older)
        kept.insert(0, read_file(file.string() + "." + std::to_string(older)));
    CHECK(all.ends_with(kept));
    CHECK(kept.starts_with("line "));
    CHECK(kept.size() > 4 * most);
    std::size_t bytes = 0;
    std::ptrdiff_t files = 0;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
        bytes += entry.file_size();
        ++files;
    }
    CHECK(files == LogFile::older_files + 1);
    CHECK(bytes <= 5 * (most + 10));
}

TEST_CASE(
    "log file: an earlier program's log is kept beside that of the next, and only if it rotates") {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "engine.log";
    for (const char* text : {"first\n", "second\n"}) {
        LogFile log(file, 1000, true);
        log.write(text);
    }
    CHECK(read_file(file) == "second\n");
    CHECK(read_file(file.string() + ".1") == "first\n");
    { const LogFile empty(file, 1000, true); }
    {
        const LogFile empty(file, 1000, true);
    }  // of one that printed nothing there is nothing to keep
    CHECK(read_file(file.string() + ".1") == "second\n");
    CHECK_FALSE(fs::exists(file.string() + ".3"));
    { LogFile(file, 1000).write("alone\n"); }
    CHECK(read_file(file) == "alone\n");
    CHECK(read_file(file.string() + ".1") == "second\n");
}
