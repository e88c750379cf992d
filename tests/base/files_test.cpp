// SPDX-License-Identifier: Apache-2.0
// Where what is written goes: never in the place of a device, a FIFO or a link, and never half.
#include "support/in_child.hpp"
#include "support/records.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <future>
#include <iostream>

using namespace servetune;
using namespace servetune::test;

namespace {

std::size_t files_in(const fs::path& folder) {
    return std::size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

fs::path fifo_in(const TemporaryFolder& folder) {
    const fs::path file = folder.path() / "fifo";
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    return file;
}

/// Reads a FIFO to its end while the test writes into it.
std::future<std::string> reader_of(const fs::path& file) {
    return std::async(std::launch::async, [file] { return read_file(file); });
}

/// A device of our own, with the numbers of one of the machine's; nothing where this user may not
/// make or open one.
std::optional<fs::path> device_in(const TemporaryFolder& folder, const char* name,
                                  unsigned minor_number) {
    fs::path file = folder.path() / name;
    if (mknod(file.c_str(), S_IFCHR | 0600, makedev(1, minor_number)) != 0) return std::nullopt;
    const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return std::nullopt;
    close(descriptor);
    return file;
}

const std::vector<RequestRecord> one_record(1);

}  // namespace

TEST_CASE("a file is written as a whole, and keeps its mode") {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "report.md";
    write_file(file, "first");
    CHECK(read_file(file) == "first");
    REQUIRE(chmod(file.c_str(), 0640) == 0);
    write_file(file, "second");
    CHECK(read_file(file) == "second");
    CHECK(fs::status(file).permissions() == static_cast<fs::perms>(0640));
    {
        OutputFile given_up(file);
        given_up.write("half");
    }
    CHECK(read_file(file) == "second");
    CHECK(files_in(folder.path()) == 1);
    CHECK(message_of<IoError>([&] { write_file(folder.path(), "x"); }) ==
          "cannot write " + folder.path().string() + ": it is a folder");
    CHECK(message_of<IoError>([&] { write_file(folder.path() / "no/x", "x"); }) ==
          "cannot write " + (folder.path() / "no/x").string() + ": No such file or directory");
}

TEST_CASE("a file that is to be whole is looked at just before it is replaced") {
    const TemporaryFolder folder;
    const fs::path file = folder.write("compose.yaml", "old");
    OutputFile output(file, true);
    output.write("new");
    CHECK_THROWS_AS(output.commit([&] {
        CHECK(read_file(output.written()) == "new");
        throw UsageError("it was changed meanwhile");
    }),
                    UsageError);
    CHECK(read_file(file) == "old");
    CHECK_THROWS_AS(OutputFile("/dev/null", true), IoError);
}

TEST_CASE("whether a file can be written is known before, and changes nothing") {
    const TemporaryFolder folder;
    folder.write("old.txt", "old");
    CHECK_NOTHROW(check_writable(folder.path() / "old.txt"));
    CHECK_NOTHROW(check_writable(folder.path() / "new.txt"));
    CHECK_NOTHROW(check_writable("/dev/full"));  // only writing shows it
    CHECK(read_file(folder.path() / "old.txt") == "old");
    CHECK(files_in(folder.path()) == 1);
    CHECK(has(message_of<IoError>([&] { check_writable(folder.path() / "none/new.txt"); }),
              "No such file or directory"));
    CHECK(has(message_of<IoError>([&] { check_writable(folder.path()); }), "it is a folder"));
}

TEST_CASE("a file that cannot be written to its end is as it was") {
    const TemporaryFolder folder;
    const fs::path file = folder.write("report.md", "old");
    CHECK(in_child([&]() -> std::string {
              std::signal(SIGXFSZ, SIG_DFL);
              const rlimit limit{1000, 1000};
              setrlimit(RLIMIT_FSIZE, &limit);
              write_file(file, std::string(5000, 'x'));
              return "written";
          }) == "cannot write " + file.string() + ": File too large");
    CHECK(read_file(file) == "old");
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("symbolic links are followed where the user's file is one, and nowhere else") {
    const TemporaryFolder folder;
    const fs::path victim = folder.write("victim", "dear");
    fs::create_directory(folder.path() / "elsewhere");
    const fs::path target = folder.path() / "elsewhere/report.md";
    const fs::path link = folder.path() / "report.md";
    fs::create_symlink("elsewhere/report.md", link);  // to a file that is not there yet
    fs::create_symlink(victim, target.string() + ".part");
    fs::create_symlink(victim, link.string() + ".part");
    for (const char* content : {"first", "second"}) {
        write_file(link, content);
        CHECK(fs::is_symlink(fs::symlink_status(link)));
        CHECK(fs::is_regular_file(fs::symlink_status(target)));
        CHECK(read_file(target) == content);
    }
    write_records(link, one_record);
    CHECK(fs::is_symlink(fs::symlink_status(link)));
    CHECK(read_records(target).size() == 1);
    CHECK(read_file(victim) == "dear");
    CHECK(fs::is_symlink(
        fs::symlink_status(target.string() + ".part")));  // somebody else's: it stays
    const fs::path circle = folder.path() / "circle";
    fs::create_symlink("circle", circle);
    CHECK(message_of<IoError>([&] { write_file(circle, "x"); }) ==
          "cannot write " + circle.string() + ": Too many levels of symbolic links");
}

TEST_CASE("a FIFO is written, not replaced, one that nobody reads is an error, not a wait") {
    const TemporaryFolder folder;
    const fs::path fifo = fifo_in(folder);
    {
        auto reader = reader_of(fifo);
        write_file(fifo, "through the FIFO");
        CHECK(reader.get() == "through the FIFO");
    }
    {
        auto reader = reader_of(fifo);
        write_records(fifo, one_record);
        folder.write("records", reader.get());
        CHECK(read_records(folder.path() / "records").size() == 1);
    }
    {  // a reader that goes away
        auto reader = std::async(std::launch::async,
                                 [&] { close(open(fifo.c_str(), O_RDONLY | O_CLOEXEC)); });
        CHECK(message_of<IoError>([&] {
                  OutputFile output(fifo);
                  reader.get();
                  output.write("x");
              }) == "cannot write " + fifo.string() + ": Broken pipe");
    }
    CHECK(message_of<IoError>([&] { write_file(fifo, "x"); }) ==
          "cannot write " + fifo.string() +
              ": it is a FIFO, and no process has opened it for reading");
    CHECK(fs::is_fifo(fs::symlink_status(fifo)));
    CHECK_FALSE(fs::exists(fifo.string() + ".part"));
}

TEST_CASE("a device that has no end is not read for ever") {
    CHECK(message_of<IoError>([] { (void)read_file("/dev/zero"); }) ==
          "cannot read /dev/zero: it is a device, and has no end");
    CHECK(read_file("/dev/null").empty());
}

TEST_CASE("a device is written, not replaced") {
    const TemporaryFolder folder;
    const auto null = device_in(folder, "null", 3);
    const auto full = device_in(folder, "full", 7);
    if (!null || !full) {
        std::cout << "skipped: this user may not make devices\n";
        return;
    }
    const fs::path link = folder.path() / "link";
    fs::create_symlink(*null, link);
    for (const fs::path& file : {*null, link}) {
        write_file(file, "away");
        write_records(file, one_record);
    }
    CHECK(message_of<IoError>([&] { write_file(*full, "x"); }) ==
          "cannot write " + full->string() + ": No space left on device");
    CHECK(message_of<IoError>([&] { write_records(*full, one_record); }) ==
          "cannot write " + full->string() + ": No space left on device");
    for (const fs::path& file : {*null, *full})
        CHECK(fs::is_character_file(fs::symlink_status(file)));
    CHECK(files_in(folder.path()) == 3);
}

TEST_CASE("a descriptor of the process itself, such as /dev/stdout, is written") {
    const TemporaryFolder folder;
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const fs::path link = folder.path() / "stdout";
    fs::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), link);
    write_file(link, "into the pipe");
    std::string got(100, ' ');
    got.resize(std::size_t(read(ends[0], got.data(), got.size())));
    CHECK(got == "into the pipe");
    close(ends[0]);
    close(ends[1]);
    // A regular file goes on where the process is in it.
    const fs::path file = folder.path() / "output";
    const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(write(descriptor, "before ", 7) == 7);
    write_file("/dev/fd/" + std::to_string(descriptor), "within");
    REQUIRE(write(descriptor, " after", 6) == 6);
    close(descriptor);
    CHECK(read_file(file) == "before within after");
    CHECK(files_in(folder.path()) == 2);
}

TEST_CASE("a file whose folder takes no new one, and a mount point, are written in place") {
    const TemporaryFolder folder;
    fs::create_directory(folder.path() / "closed");
    const fs::path file = folder.write("closed/report.md", "old and longer");
    fs::permissions(folder.path(), static_cast<fs::perms>(0755));
    if (geteuid() != 0) {
        std::cout << "skipped: only root can become somebody else\n";
        return;
    }
    REQUIRE(chmod(file.c_str(), 0666) == 0);
    CHECK(in_child([&]() -> std::string {
              if (setuid(65534) != 0) return "cannot become nobody";
              write_file(file, "new");
              return read_file(file);
          }) == "new");
    REQUIRE(chmod(file.c_str(), 0644) == 0);
    CHECK(in_child([&]() -> std::string {
              if (setuid(65534) != 0) return "cannot become nobody";
              write_file(file, "newer");
              return "written";
          }) == "cannot write " + file.string() + ": Permission denied");
    CHECK(read_file(file) == "new");

    const fs::path outside = folder.write("outside", "of the container");
    const std::string mounted = in_child([&]() -> std::string {
        if (unshare(CLONE_NEWNS) != 0 ||
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount(outside.c_str(), file.c_str(), nullptr, MS_BIND, nullptr) != 0)
            return "skipped: this user may not mount";
        write_file(file, "inside");
        return "done";
    });
    if (mounted != "done") std::cout << mounted << "\n";
    else {
        CHECK(read_file(outside) == "inside");
        CHECK(read_file(file) == "new");
    }
}

TEST_CASE("a stream that breaks while it is read is bad, and throws nothing") {
    struct Breaks : std::streambuf {
        int_type underflow() override {
            if (given_) throw std::ios_base::failure("No such process");
            given_ = true;
            setg(text_, text_, text_ + 3);
            return traits_type::to_int_type(text_[0]);
        }
        char text_[4] = "abc";
        bool given_ = false;
    } breaks;
    std::istream stream(&breaks);
    (void)rest_of(stream);
    CHECK(stream.bad());
}
