// SPDX-License-Identifier: Apache-2.0
#include "kept_output.hpp"

#include <algorithm>

namespace servetune {

void KeptOutput::append(std::string_view bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_ += bytes.size();
    const std::size_t first = std::min(bytes.size(), half - head_.size());
    head_ += bytes.substr(0, first);
    bytes.remove_prefix(first);
    if (bytes.size() > half) bytes.remove_prefix(bytes.size() - half);
    while (!bytes.empty()) {
        const std::size_t part = std::min(bytes.size(), half - next_);
        if (ring_.size() < next_ + part) ring_.resize(next_ + part);
        bytes.copy(ring_.data() + next_, part);
        next_ = (next_ + part) % half;
        bytes.remove_prefix(part);
    }
}

std::string KeptOutput::from(std::size_t& position) const {
    const std::scoped_lock lock(mutex_);
    if (position >= bytes_) return {};
    std::string text = position < head_.size() ? head_.substr(position) : std::string();
    const std::size_t ring_begins = bytes_ - ring_.size();  // as a position in all that was printed
    const std::size_t wanted = std::clamp(position, ring_begins, bytes_);
    if (ring_begins > std::max(position, head_.size())) text += '\n';
    // The ring begins at `next_` once it turns.
    const std::size_t begin = ring_.size() == half ? next_ : 0;
    const std::size_t skipped = wanted - ring_begins;
    const std::size_t to_its_end = ring_.size() - begin;
    if (skipped < to_its_end) text.append(ring_, begin + skipped, std::string::npos);
    const std::size_t turned = std::max(skipped, to_its_end) - to_its_end;
    text.append(ring_, turned, begin - turned);
    position = bytes_;
    return text;
}

std::vector<std::string> lines_of(std::string_view text) {
    constexpr std::size_t longest = 4096;
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
        if (!line.empty()) lines.emplace_back(line.substr(0, longest));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return lines;
}

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
        std::rotate(last.begin(), last.begin() + std::ptrdiff_t(ring_total_ % ring_most_),
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
        at += std::size_t(put);
        bytes.remove_prefix(std::size_t(put));
    }
    return true;
}

}  // namespace servetune
