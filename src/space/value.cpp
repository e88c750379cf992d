// SPDX-License-Identifier: Apache-2.0
#include "servetune/value.hpp"

#include "servetune/detail/base/number_text.hpp"

namespace servetune {

std::string text_of(const Value& value) {
    struct {
        std::string operator()(Unset) const { return std::string(unset_text); }
        std::string operator()(bool b) const { return b ? "true" : "false"; }
        std::string operator()(std::int64_t i) const { return std::to_string(i); }
        std::string operator()(double d) const { return text_of(d); }
        std::string operator()(const std::string& s) const { return s; }
    } visitor;
    return std::visit(visitor, value);
}

}  // namespace servetune
