// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"
#include "servetune/detail/trial/request_record.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Writes a gzip compressed file, as an OutputFile: a device or a FIFO is written, not replaced.
class GzipOutput {
public:
    /// Throws IoError, as every call.
    explicit GzipOutput(const std::filesystem::path& file);
    ~GzipOutput();
    GzipOutput(const GzipOutput&) = delete;
    GzipOutput& operator=(const GzipOutput&) = delete;

    void write(std::string_view bytes);
    /// All of it is in its place. Without: there is no new file.
    void commit();

private:
    struct Stream;
    OutputFile output_;
    std::unique_ptr<Stream> stream_;
};

/// Calls `line(number from 1, text)` for each line of a gzip compressed or plain file. Throws
/// IoError; ParseError where it ends within a line, unpacks to more than 1 GiB, or has a line of
/// more than 32 MiB.
void each_gzip_line(const std::filesystem::path& file,
                    const std::function<void(std::size_t, const std::string&)>& line);

/// Puts the fields of a record into an object, `null` for what is absent.
struct WriteFields {
    nlohmann::ordered_json& object;

    template <class T>
    void operator()(const char* key, const T& value) const {
        object[key] = value;
    }
    template <class T>
    void operator()(const char* key, const std::optional<T>& value) const {
        object[key] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    }
};
/// Takes them out again. Throws nlohmann's exceptions.
struct ReadFields {
    const nlohmann::ordered_json& object;

    template <class T>
    void operator()(const char* key, T& value) const {
        object.at(key).get_to(value);
    }
    template <class T>
    void operator()(const char* key, std::optional<T>& value) const {
        if (const nlohmann::ordered_json& found = object.at(key); !found.is_null())
            value = found.get<T>();
    }
};

/// Writes one JSON object a request, gzip compressed: everything of the record, `null` for what is
/// absent (docs/reference/json-output.md), as an OutputFile (base/files.hpp): a device or a FIFO is
/// written, not replaced. Throws IoError; then there is no new file.
void write_records(const std::filesystem::path& file, std::span<const RequestRecord> records);

/// One line of such a file, with its line break, and back. `place`: for errors. Throws ParseError.
std::string line_of(const RequestRecord& record);
RequestRecord record_in(const std::string& line, const std::string& place);

}  // namespace servetune
