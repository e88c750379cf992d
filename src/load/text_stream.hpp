// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A file read from front to back in pieces; it knows where it is. Throws IoError where it cannot
/// be read.
class TextStream {
public:
    explicit TextStream(std::string file);

    /// The next byte; -1 at the end.
    int next() {
        const int c = peek();
        if (c >= 0) {
            ++at_;
            if (c == '\n') ++line_;
        }
        return c;
    }
    int peek() {
        if (at_ == end_ && !refill()) return -1;
        return static_cast<unsigned char>(buffer_[at_]);
    }
    /// What comes before the next of these two bytes, as far as it is in the buffer; valid until
    /// the next call. Empty: one of them is next, or the end.
    std::string_view before(char one, char other);
    /// The next line without its end, and the line before it counted; false at the end. Throws
    /// ParseError for one of more than `most` bytes.
    bool line(std::string& into, std::size_t most);

    [[nodiscard]] std::size_t line_number() const { return line_; }  ///< of the next byte, from 1
    /// `file:line`.
    [[nodiscard]] std::string place(std::size_t line) const {
        return file_ + ":" + std::to_string(line);
    }
    [[nodiscard]] const std::string& file() const { return file_; }
    [[noreturn]] void fail(std::size_t line, const std::string& message) const;

private:
    bool refill();

    std::string file_;
    std::ifstream stream_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, end_ = 0, line_ = 1;
};

/// The JSON in a line of a file. Throws ParseError `file:line:` where it is none, or nests too
/// deep.
nlohmann::json json_of_line(const TextStream& stream, std::size_t line, const std::string& text);

}  // namespace servetune
