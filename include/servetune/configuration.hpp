// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <map>
#include <utility>
#include <vector>

namespace servetune {

/// Some parameters set to values, by name: a candidate of a stage, what `--set` says, a table row's
/// cells.
using Assignment = std::map<std::string, Value, std::less<>>;

/// One point of a search space: an immutable value, sorted by name. A name that is absent is
/// inactive.
///
/// Made by `SearchSpace`, whose configurations are canonical: every active parameter present, every
/// inactive one absent, so equal behaviour is equal configuration. Comparing is by value;
/// `fingerprint()` is stable and stored in journals.
class Configuration {
public:
    using Entry = std::pair<std::string, Value>;

    Configuration() = default;
    /// The names may come in any order. Throws UsageError when one comes twice.
    explicit Configuration(std::vector<Entry> entries);
    static Configuration of(const Assignment& assignment) {
        return Configuration(std::vector<Entry>(assignment.begin(), assignment.end()));
    }

    /// The value of `name`, or null when it is inactive. Lives as long as the configuration. O(log
    /// n).
    [[nodiscard]] const Value* find(std::string_view name) const {
        const auto before = [](const Entry& entry, std::string_view wanted) {
            return entry.first < wanted;
        };
        const auto found = std::lower_bound(entries_.begin(), entries_.end(), name, before);
        return found != entries_.end() && found->first == name ? &found->second : nullptr;
    }
    /// The number that the value of `name` is. Throws UsageError when it is inactive or no number.
    [[nodiscard]] double number(std::string_view name) const {
        const Value* value = find(name);
        const auto number = value == nullptr ? std::nullopt : number_of(*value);
        if (!number)
            throw UsageError("'" + std::string(name) + "' has no number in the configuration " +
                             text());
        return *number;
    }

    /// The value of `name` in its own type. Each throws UsageError when it is inactive or of
    /// another type.
    [[nodiscard]] std::int64_t integer(std::string_view name) const {
        return typed<std::int64_t>(name, "integer");
    }
    [[nodiscard]] bool flag(std::string_view name) const { return typed<bool>(name, "flag"); }
    [[nodiscard]] const std::string& text(std::string_view name) const {
        return typed<std::string>(name, "text");
    }

    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
    /// With another value for the entry of this number.
    [[nodiscard]] Configuration with(std::size_t entry, Value value) const {
        Configuration result = *this;
        result.entries_[entry].second = std::move(value);
        return result;
    }
    [[nodiscard]] Assignment assignment() const { return {entries_.begin(), entries_.end()}; }

    /// `max_num_seqs=512 performance_mode=throughput`.
    [[nodiscard]] std::string text() const {
        std::string result;
        for (const auto& [name, value] : entries_)
            result += (result.empty() ? "" : " ") + name + "=" + text_of(value);
        return result;
    }

    /// Depends on names, types and values only. Each field is framed by its length, so no two
    /// configurations share a text.
    [[nodiscard]] Fingerprint fingerprint() const {
        std::string bytes;
        for (const auto& [name, value] : entries_) {
            const std::string text = text_of(value);
            bytes += std::to_string(name.size()) + ":" + name + "Ubirs"[value.index()] +
                     std::to_string(text.size()) + ":" + text;
        }
        return fingerprint_of(bytes);
    }

    friend bool operator==(const Configuration&, const Configuration&) = default;
    friend bool operator<(const Configuration& a, const Configuration& b) {
        return a.entries_ < b.entries_;
    }

private:
    template <class T>
    [[nodiscard]] const T& typed(std::string_view name, const char* type) const {
        const Value* value = find(name);
        const T* wanted = value == nullptr ? nullptr : std::get_if<T>(value);
        if (wanted == nullptr)
            throw UsageError("'" + std::string(name) + "' has no " + type +
                             " in the configuration " + text());
        return *wanted;
    }

    std::vector<Entry> entries_;
};

/// What `configuration` has otherwise than `base`: `quantization = fp8, sglang.attention_backend =
/// triton`; empty when nothing. What it leaves to the engine and `base` does not have at all is not
/// worth a word.
inline std::string difference_text(const Configuration& configuration, const Configuration& base) {
    std::string result;
    for (const auto& [name, value] : configuration.entries()) {
        const Value* other = base.find(name);
        if (other == nullptr ? !is_unset(value) : *other != value)
            result += (result.empty() ? "" : ", ") + name + " = " + text_of(value);
    }
    return result;
}

}  // namespace servetune
