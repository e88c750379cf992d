// SPDX-License-Identifier: Apache-2.0
#include "servetune/configuration.hpp"
#include "servetune/value.hpp"

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

Configuration::Configuration(std::vector<Entry> entries) : entries_(std::move(entries)) {
    const auto by_name = [](const Entry& a, const Entry& b) { return a.first < b.first; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_name))
        std::sort(entries_.begin(), entries_.end(), by_name);
    const auto same_name = [](const Entry& a, const Entry& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(entries_.begin(), entries_.end(), same_name);
    if (twice != entries_.end())
        throw UsageError("a configuration sets '" + twice->first + "' twice");
}

}  // namespace servetune
