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

std::size_t KeptOutput::bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
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

}  // namespace servetune
