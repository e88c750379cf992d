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

LogFile::LogFile(const std::filesystem::path& file, std::size_t most_bytes)
    : path_(file),
      head_most_(std::max<std::size_t>(most_bytes, 1024) / 2),
      ring_most_(head_most_ - note_bytes) {
    if (file.empty()) return;
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

void LogFile::write(std::string_view bytes) {
    if (file_.id() < 0) return;
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
    if (file_.id() < 0 || ring_total_ <= ring_most_) return file_.reset();
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
            trouble_ = "the log ends early: cannot write " + path_.string() + ": " +
                       std::generic_category().message(errno);
            file_.reset();
            return false;
        }
        at += static_cast<std::size_t>(put);
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
}

}  // namespace servetune
