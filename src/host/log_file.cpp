// SPDX-License-Identifier: Apache-2.0
#include "log_file.hpp"

#include "servetune/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace servetune {
namespace {

constexpr std::size_t note_bytes = 80;  // "\n[servetune: ... bytes left out]\n"

}  // namespace

LogFile::LogFile(const std::filesystem::path& file, std::size_t most_bytes, bool rotates)
    : path_(file),
      rotates_(rotates),
      head_most_(rotates ? most_bytes : std::max<std::size_t>(most_bytes, 1024) / 2),
      ring_most_(rotates ? 0 : head_most_ - note_bytes) {
    if (file.empty()) return;
    std::error_code unknown;
    if (rotates && std::filesystem::is_regular_file(file, unknown) &&
        !std::filesystem::is_empty(file, unknown))
        rename_older();
    make();
}

void LogFile::make() {
    std::error_code unknown;
    if (std::filesystem::is_fifo(path_, unknown) ||
        (std::filesystem::is_symlink(std::filesystem::symlink_status(path_, unknown)) &&
         std::filesystem::is_regular_file(path_, unknown)))
        throw IoError("cannot write " + path_.string() +
                      ": it is a FIFO, or a link to a file of others; remove it");
    file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file_.id() < 0)
        throw IoError("cannot write " + path_.string() + ": " +
                      std::generic_category().message(errno));
}

/// What cannot be renamed is written over: the disk stays bounded.
void LogFile::rename_older() const {
    const auto numbered = [this](int number) {
        return std::filesystem::path(path_.string() + "." + std::to_string(number));
    };
    std::error_code unknown;
    for (int number = older_files; number > 1; --number)
        std::filesystem::rename(numbered(number - 1), numbered(number), unknown);
    std::filesystem::rename(path_, numbered(1), unknown);
}

void LogFile::write_rotating(std::string_view bytes) {
    if (head_ + bytes.size() > head_most_ && head_ > 0) {
        const auto line_end = bytes.find('\n');
        const std::string_view rest_of_line =
            bytes.substr(0, line_end == std::string_view::npos ? 0 : line_end + 1);
        (void)put(rest_of_line, head_);
        bytes.remove_prefix(rest_of_line.size());
        rename_older();
        head_ = 0;
        try {
            make();
        } catch (const IoError& error) {
            const std::scoped_lock lock(mutex_);
            trouble_ = std::string("the log ends early: ") + error.what();
            file_.reset();
            return;
        }
    }
    if (put(bytes, head_)) head_ += bytes.size();
}

void LogFile::write(std::string_view bytes) {
    if (file_.id() < 0) return;
    if (rotates_) return write_rotating(bytes);
    const std::string_view first = bytes.substr(0, head_most_ - head_);
    if (!put(first, head_)) return;
    head_ += first.size();
    bytes.remove_prefix(first.size());
    if (bytes.size() > ring_most_) {
        ring_total_ += bytes.size() - ring_most_;
        bytes.remove_prefix(bytes.size() - ring_most_);
    }
    while (!bytes.empty()) {
        const std::size_t at = ring_total_ % ring_most_;
        const std::string_view part = bytes.substr(0, ring_most_ - at);
        if (!put(part, head_most_ + at)) return;
        ring_total_ += part.size();
        bytes.remove_prefix(part.size());
    }
}

void LogFile::finish() {
    if (file_.id() < 0 || rotates_ || ring_total_ <= ring_most_) return file_.reset();
    std::string last(ring_most_, ' ');
    if (pread(file_.id(), last.data(), last.size(), static_cast<off_t>(head_most_)) ==
        static_cast<ssize_t>(last.size())) {
        std::rotate(last.begin(),
                    last.begin() + static_cast<std::ptrdiff_t>(ring_total_ % ring_most_),
                    last.end());
        (void)put("\n[servetune: " + std::to_string(ring_total_ - ring_most_) +
                      " bytes left out]\n" + last,
                  head_most_);
    }
    file_.reset();
}

std::string LogFile::trouble() const {
    const std::scoped_lock lock(mutex_);
    return trouble_;
}

bool LogFile::put(std::string_view bytes, std::size_t at) {
    while (!bytes.empty()) {
        const ssize_t put = pwrite(file_.id(), bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            const std::scoped_lock lock(mutex_);
            trouble_ = std::string(rotates_ ? "the log has gaps" : "the log ends early") +
                       ": cannot write " + path_.string() + ": " +
                       std::generic_category().message(errno);
            if (!rotates_) file_.reset();  // a program that runs for weeks may find room again
            return false;
        }
        at += static_cast<std::size_t>(put);
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
}

}  // namespace servetune
