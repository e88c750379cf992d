// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <istream>
#include <string_view>
#include <system_error>
#include <utility>

namespace servetune {

/// A file descriptor that is closed with its owner; -1: none.
class Descriptor {
public:
    explicit Descriptor(int id = -1) : id_(id) {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : id_(other.id_) { other.id_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(id_, other.id_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    [[nodiscard]] int id() const { return id_; }
    void reset() {
        if (id_ >= 0) ::close(id_);
        id_ = -1;
    }
    [[nodiscard]] int release() { return std::exchange(id_, -1); }  ///< it is the caller's to close

private:
    int id_;
};

/// What is left in a stream. An error while it is read (a file of /proc whose process has ended)
/// sets `bad()` and is no exception, as it would be through std::istreambuf_iterator.
std::string rest_of(std::istream& stream);
/// The whole of a file. Throws IoError.
std::string read_file(const std::filesystem::path& file);
/// `~` and `~user` at the start as a shell expands them; any other text as it is. Throws IoError
/// for a user that does not exist.
std::string with_home(const std::string& path);

/// A file that is being written. Symbolic links are followed to the file they name.
///
/// A new or regular file is written beside its place, under a name that ends in `.part`, and
/// `commit` renames it: a reader sees the old content or the new, never half. It keeps the mode of
/// the file that it replaces. Where the folder takes no new file, or the file is a mount point, the
/// file itself is written, unless it is to be `whole` at every moment: that is an error then. A device, a FIFO or a descriptor of this process (`/dev/stdout`) is
/// opened and written, never replaced. A FIFO without a reader fails after
/// `reader_patience_seconds`. A reader that goes away and a file that is too large are errors, not
/// signals.
class OutputFile {
public:
    /// Throws IoError, as every call.
    explicit OutputFile(const std::filesystem::path& file, bool whole = false);
    /// Without `commit`: a new or regular file is as it was before.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view bytes);
    /// The file that holds what is written until `commit`.
    [[nodiscard]] const std::filesystem::path& written() const {
        return part_.empty() ? file_ : part_;
    }
    /// All that was written is on the disk and in its place. `last_look` is called just before that
    /// is taken, and may throw.
    void commit(const std::function<void()>& last_look = {});

    static constexpr double reader_patience_seconds = 3;

private:
    [[noreturn]] void fail(int error) const;
    void open_new_part();
    void open_in_place(int why);

    std::filesystem::path file_;    ///< as the caller named it
    std::filesystem::path target_;  ///< behind all symbolic links
    std::filesystem::path part_{};  ///< empty: `file_` itself is written
    int descriptor_ = -1;
    bool regular_ = true;
    const bool whole_;
};

/// A file that was not there before. It goes again with this object unless it is kept, and only
/// where it still is the file that was made here.
class NewFile {
public:
    /// Makes it, empty. Throws UsageError where something is at this path, a link that leads
    /// nowhere too; IoError.
    explicit NewFile(std::filesystem::path file);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    /// Writes the whole of it. Throws IoError.
    void write(std::string_view content);
    void keep() { kept_ = true; }
    [[nodiscard]] const std::filesystem::path& path() const { return file_; }

private:
    std::filesystem::path file_;
    int descriptor_ = -1;
    bool kept_ = false;
};

/// Throws IoError where `write_file` could not write this file, for whoever has long work to do
/// before. Nothing is changed; a device or a FIFO is not opened.
void check_writable(const std::filesystem::path& file);
/// Writes the whole of a file, as OutputFile does. Throws IoError.
void write_file(const std::filesystem::path& file, std::string_view content);

/// Writes a whole file in place. A FIFO without a reader is an error, not a wait. `more_flags`: of
/// open(2). Throws IoError. Where a reader must see the old content or the new: write_file
/// (base/files.hpp).
void write_plain_file(const std::filesystem::path& file, std::string_view content,
                      int more_flags = 0);

/// Where temporary files go: `$TMPDIR`, else /tmp. Throws IoError where that is no folder.
inline std::filesystem::path temporary_files() {
    std::error_code error;
    std::filesystem::path result = std::filesystem::temp_directory_path(error);
    if (!error) return result;
    const char* set = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing sets it
    throw IoError("a temporary file is needed, and " + std::string(set == nullptr ? "/tmp" : set) +
                  " is no folder; set TMPDIR to one that can be written");
}

/// A new folder, which goes again with all that is in it: all of it was made by whoever has the
/// folder.
class OwnFolder {
public:
    /// `beginning` followed by six letters. Throws IoError.
    explicit OwnFolder(const std::filesystem::path& beginning) {
        std::string pattern = beginning.string() + "XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr)
            throw IoError("cannot make the folder " + pattern + ": " +
                          std::generic_category().message(errno));
        folder_ = pattern;
    }
    ~OwnFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return folder_; }

private:
    std::filesystem::path folder_;
};

}  // namespace servetune
