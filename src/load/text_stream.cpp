// SPDX-License-Identifier: Apache-2.0
#include "text_stream.hpp"

#include "base/nesting.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace servetune {

TextStream::TextStream(std::string file) : file_(std::move(file)), buffer_(std::size_t{1} << 20U) {
    std::error_code unknown;  // then opening it says what is wrong
    if (std::filesystem::is_directory(file_, unknown))
        throw IoError("cannot read " + file_ + ": it is a folder");
    stream_.open(file_, std::ios::binary);
    if (!stream_)
        throw IoError("cannot read " + file_ + ": " + std::generic_category().message(errno));
    if (peek() == 0xEF) {  // a byte order mark
        for (const int wanted : {0xEF, 0xBB, 0xBF})
            if (next() != wanted) fail(1, "text in UTF-8 wanted");
    }
}

bool TextStream::refill() {
    stream_.read(buffer_.data(), std::streamsize(buffer_.size()));
    at_ = 0;
    end_ = std::size_t(stream_.gcount());
    if (stream_.bad()) throw IoError("cannot read " + file_ + " to its end");
    return end_ > 0;
}

std::string_view TextStream::before(char one, char other) {
    if (peek() < 0) return {};
    const auto begin = buffer_.begin() + std::ptrdiff_t(at_);
    const auto stop = std::find_if(begin, buffer_.begin() + std::ptrdiff_t(end_),
                                   [&](char c) { return c == one || c == other; });
    line_ += std::size_t(std::count(begin, stop, '\n'));
    const std::string_view result(buffer_.data() + at_, std::size_t(stop - begin));
    at_ += result.size();
    return result;
}

bool TextStream::line(std::string& into, std::size_t most) {
    into.clear();
    if (peek() < 0) return false;
    const std::size_t start = line_;
    while (peek() >= 0) {
        const std::string_view rest(buffer_.data() + at_, end_ - at_);
        const std::size_t stop = std::min(rest.find('\n'), rest.size());
        if (into.size() + stop > most)
            fail(start, "a line of at most " + std::to_string(most >> 20U) + " MiB wanted");
        into.append(rest.substr(0, stop));
        at_ += stop;
        if (stop < rest.size()) {
            (void)next();
            break;
        }
    }
    if (!into.empty() && into.back() == '\r') into.pop_back();
    return true;
}

void TextStream::fail(std::size_t line, const std::string& message) const {
    throw ParseError(place(line) + ": " + message);
}

nlohmann::json json_of_line(const TextStream& stream, std::size_t line, const std::string& text) {
    try {
        return nlohmann::json::parse(text, RefuseDeep());
    } catch (const nlohmann::json::exception& error) {
        stream.fail(line, std::string("not JSON: ") + error.what());
    } catch (const ParseError& error) {
        stream.fail(line, error.what());
    }
}

}  // namespace servetune
