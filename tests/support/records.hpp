// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "handover/request_lines.hpp"

namespace servetune::test {

/// What `write_records` wrote. Throws IoError and ParseError.
inline auto read_records(const std::filesystem::path& file) {
    std::vector<RequestRecord> all;
    each_gzip_line(file, [&](auto n, auto& line) {
        all.push_back(record_in(line, file.string() + ":" + std::to_string(n)));
    });
    return all;
}

}  // namespace servetune::test
