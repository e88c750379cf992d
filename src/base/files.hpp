// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <string_view>

namespace servetune {

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
/// file itself is written. A device, a FIFO or a descriptor of this process (`/dev/stdout`) is
/// opened and written, never replaced. A FIFO without a reader fails after
/// `reader_patience_seconds`. A reader that goes away and a file that is too large are errors, not
/// signals.
class OutputFile {
public:
    /// Throws IoError, as every call.
    explicit OutputFile(const std::filesystem::path& file);
    /// Without `commit`: a new or regular file is as it was before.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view bytes);
    /// All that was written is on the disk and in its place.
    void commit();

    static constexpr double reader_patience_seconds = 3;

private:
    [[noreturn]] void fail(int error) const;
    void open_new_part();
    void open_in_place();

    std::filesystem::path file_;    ///< as the caller named it
    std::filesystem::path target_;  ///< behind all symbolic links
    std::filesystem::path part_{};  ///< empty: `file_` itself is written
    int descriptor_ = -1;
    bool regular_ = true;
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

}  // namespace servetune
