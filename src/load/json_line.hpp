// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/nesting.hpp"
#include "servetune/error.hpp"
#include "text_stream.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace servetune {

/// The JSON in a line of a file. Throws ParseError `file:line:` where it is none, or nests too
/// deep.
inline nlohmann::json json_of_line(const TextStream& stream, std::size_t line,
                                   const std::string& text) {
    try {
        return nlohmann::json::parse(text, RefuseDeep());
    } catch (const nlohmann::json::exception& error) {
        stream.fail(line, std::string("not JSON: ") + error.what());
    } catch (const ParseError& error) {
        stream.fail(line, error.what());
    }
}

}  // namespace servetune
