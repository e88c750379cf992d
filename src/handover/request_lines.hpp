// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/request_record.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace servetune {

/// Writes one JSON object a request, gzip compressed: everything of the record, `null` for what is
/// absent (docs/reference/json-output.md), as an OutputFile (base/files.hpp): a device or a FIFO is
/// written, not replaced. Throws IoError; then there is no new file.
void write_records(const std::filesystem::path& file, std::span<const RequestRecord> records);

/// Reads them back. Throws IoError and ParseError.
std::vector<RequestRecord> read_records(const std::filesystem::path& file);

/// One line of such a file, with its line break, and back. `place`: for errors. Throws ParseError.
std::string line_of(const RequestRecord& record);
RequestRecord record_in(const std::string& line, const std::string& place);

}  // namespace servetune
