// SPDX-License-Identifier: Apache-2.0
#include "log_stream.hpp"

#include "servetune/error.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace servetune {

void LogStream::Close::operator()(gzFile_s* file) const { gzclose(file); }

LogStream::LogStream(const std::filesystem::path& file)
    : file_(file.string()), buffer_(std::size_t{1} << 20U) {
    std::error_code unknown;  // then opening it says what is wrong
    if (std::filesystem::is_directory(file, unknown))
        throw IoError("cannot read " + file_ + ": it is a folder");
    errno = 0;
    stream_.reset(gzopen(file_.c_str(), "rb"));  // which reads a plain file as it is
    if (!stream_)
        throw IoError("cannot read " + file_ + ": " + std::generic_category().message(errno));
    for (const int mark : {0xEF, 0xBB, 0xBF})
        if (peek() == mark) ++at_;
    while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') ++at_;
    // A line of a log may begin with a bracket too, in front of its date.
    if (peek() != '[') return;
    const std::string_view rest(buffer_.data() + at_ + 1, end_ - at_ - 1);
    const auto first = rest.find_first_not_of(" \t\r\n");
    is_array_ = first == std::string_view::npos || rest[first] == '{' || rest[first] == ']';
}

int LogStream::peek() {
    if (at_ < end_) return static_cast<unsigned char>(buffer_[at_]);
    const int got = gzread(stream_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int code = Z_OK;
    (void)gzerror(stream_.get(), &code);
    if (code == Z_BUF_ERROR) cut_off_ = true;
    else if (got < 0)
        throw IoError("cannot read " + file_ +
                      " to its end: " + (code == Z_ERRNO ? "the disk says no" : "damaged gzip"));
    at_ = 0;
    end_ = static_cast<std::size_t>(std::max(got, 0));
    return end_ > 0 ? static_cast<unsigned char>(buffer_[0]) : -1;
}

bool LogStream::next(std::string& record) {
    record.clear();
    return is_array_ ? next_object(record) : next_line(record);
}

bool LogStream::next_line(std::string& record) {
    if (peek() < 0) return false;
    bool fits = true;
    while (peek() >= 0) {
        const std::string_view rest(buffer_.data() + at_, end_ - at_);
        const std::size_t stop = std::min(rest.find('\n'), rest.size());
        fits = fits && record.size() + stop <= most_record_bytes;
        if (fits) record.append(rest.substr(0, stop));
        at_ += stop;
        if (stop < rest.size()) {
            ++at_;
            break;
        }
    }
    if (!fits) {
        record.clear();
        ++too_long_;
    }
    if (!record.empty() && record.back() == '\r') record.pop_back();
    return true;
}

bool LogStream::next_object(std::string& record) {
    while (peek() >= 0 && peek() != '{') ++at_;
    if (peek() < 0) return false;
    int depth = 0;
    bool fits = true;
    bool in_text = false;
    bool escaped = false;
    while (peek() >= 0) {
        const char c = buffer_[at_++];
        fits = fits && record.size() < most_record_bytes;
        if (fits) record += c;
        if (in_text) {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if (c == '"') in_text = true;
        else if (c == '{') ++depth;
        else if (c == '}' && --depth == 0) break;
    }
    if (!fits) {
        record.clear();
        ++too_long_;
    }
    return true;
}

}  // namespace servetune
