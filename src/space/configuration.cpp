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
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_name)) sort(entries_, by_name);
    const auto same_name = [](const Entry& a, const Entry& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(entries_.begin(), entries_.end(), same_name);
    if (twice != entries_.end())
        throw UsageError("a configuration sets '" + twice->first + "' twice");
}

double Configuration::number(std::string_view name) const {
    const Value* value = find(name);
    const auto number = value == nullptr ? std::nullopt : number_of(*value);
    if (!number)
        throw UsageError("'" + std::string(name) + "' has no number in the configuration " +
                         text());
    return *number;
}

namespace {

/// The value of `name` in its own type.
template <class T>
const T& typed_value(const Configuration& configuration, std::string_view name, const char* type) {
    const Value* value = configuration.find(name);
    const T* wanted = value == nullptr ? nullptr : std::get_if<T>(value);
    if (wanted == nullptr)
        throw UsageError("'" + std::string(name) + "' has no " + type + " in the configuration " +
                         configuration.text());
    return *wanted;
}

}  // namespace

std::int64_t Configuration::integer(std::string_view name) const {
    return typed_value<std::int64_t>(*this, name, "integer");
}
bool Configuration::flag(std::string_view name) const {
    return typed_value<bool>(*this, name, "flag");
}
const std::string& Configuration::text(std::string_view name) const {
    return typed_value<std::string>(*this, name, "text");
}

std::string Configuration::text() const {
    std::string result;
    for (const auto& [name, value] : entries_)
        result += (result.empty() ? "" : " ") + name + "=" + text_of(value);
    return result;
}

Fingerprint Configuration::fingerprint() const {
    std::string bytes;
    for (const auto& [name, value] : entries_) {
        const std::string text = text_of(value);
        bytes += std::to_string(name.size()) + ":" + name + "Ubirs"[value.index()] +
                 std::to_string(text.size()) + ":" + text;
    }
    return fingerprint_of(bytes);
}

std::string difference_text(const Configuration& configuration, const Configuration& base) {
    std::string result;
    for (const auto& [name, value] : configuration.entries()) {
        const Value* other = base.find(name);
        if (other == nullptr ? !is_unset(value) : *other != value)
            result += (result.empty() ? "" : ", ") + name + " = " + text_of(value);
    }
    return result;
}

}  // namespace servetune
