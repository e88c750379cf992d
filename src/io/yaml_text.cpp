// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/yaml_text.hpp"

#include "servetune/base/lower_case.hpp"
#include "servetune/space/value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <variant>

namespace servetune {

std::string yaml_text(const std::string& text) {
    static const std::set<std::string> booleans{"on", "off", "yes", "no", "y", "n", "null", "true", "false"};
    std::string literal;
    for (std::size_t i = 0; i < text.size(); ++i) literal += text.compare(i, 2, "${") == 0 ? "$$" : std::string(1, text[i]);
    const bool plain =
        !literal.empty() && std::holds_alternative<std::string>(value_of(literal)) && !booleans.contains(lower_case(literal)) &&
        std::isalnum(static_cast<unsigned char>(literal.front())) != 0 &&
        literal.find_first_not_of("0123456789-") != std::string::npos &&  // 2026-11-25 is a date to some
        std::all_of(literal.begin(), literal.end(), [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._/-+").find(c) != std::string_view::npos;
        });
    return plain ? literal : nlohmann::json(literal).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace servetune
