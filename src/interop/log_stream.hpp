// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct gzFile_s;

namespace servetune {

/// A log read from front to back, plain or compressed by gzip, with memory for one of its records:
/// a line, or an object of the JSON array that the file is. Throws IoError where it cannot be read.
class LogStream {
public:
    /// A longer record is passed over. The longest contexts that engines offer have 10 million
    /// tokens, and a log that keeps such prompts keeps them for people to read, not for this.
    static constexpr std::size_t most_record_bytes = std::size_t{16} << 20U;

    explicit LogStream(const std::filesystem::path& file);

    /// The next record; false at the end. Of one that is passed over: an empty text.
    bool next(std::string& record);

    [[nodiscard]] std::size_t too_long() const {
        return too_long_;
    }                                                        ///< records that were passed over
    [[nodiscard]] bool cut_off() const { return cut_off_; }  ///< the compressed file ends too early

private:
    struct Close {
        void operator()(gzFile_s* file) const;
    };

    int peek();
    bool next_line(std::string& record);
    bool next_object(std::string& record);

    std::string file_;
    std::unique_ptr<gzFile_s, Close> stream_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, end_ = 0;
    std::size_t too_long_ = 0;
    bool is_array_ = false;
    bool cut_off_ = false;
};

}  // namespace servetune
