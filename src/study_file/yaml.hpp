// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "key.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/value.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// A node of a YAML file that knows where it stands: every complaint starts with `file:line:column:
/// 'path':`.
///
/// Scalars have `${NAME}` replaced by the environment variable (an error when it is not set;
/// `${NAME:-text}` gives a default; `$${` is a plain `${`), and messages show `${NAME}` in its
/// place (study_file/secrets.hpp). Aliases are resolved; a file is one document of at most 1 MiB
/// and expands to at most a million nodes, 32 MiB of text, 100 deep.
class Yaml {
public:
    enum class Kind { null, scalar, sequence, mapping };

    /// Throws IoError when the file cannot be read, ParseError when it is not YAML, not UTF-8, has
    /// a second document, or a key stands twice.
    static Yaml load(const std::filesystem::path& file);
    static Yaml parse(std::string_view text, const std::string& name);

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] bool is_mapping() const { return kind_ == Kind::mapping; }
    [[nodiscard]] bool is_sequence() const { return kind_ == Kind::sequence; }
    [[nodiscard]] bool is_scalar() const { return kind_ == Kind::scalar; }
    [[nodiscard]] bool is_quoted() const { return quoted_; }
    [[nodiscard]] const std::string& file() const { return *file_; }

    /// Throws ParseError when it is no mapping, has keys that are not in the table (nearest first),
    /// or lacks required ones: all of them in one message, a line each.
    void check_keys(std::span<const Key> known) const;
    /// The same for a table of keys (src/study_file/keys.hpp).
    template <class Table>
    void check_keys(const Table& table) const {
        const auto rows = rows_of(table);
        check_keys(std::span<const Key>(rows));
    }
    /// A child of a mapping; null when absent.
    [[nodiscard]] const Yaml* find(const Key& key) const { return entry(key.name); }
    /// The same of a key that must be there. Throws ParseError as check_keys.
    [[nodiscard]] const Yaml& at(const Key& key) const;
    /// A child of a mapping whose names are free (parameters, engines); null when absent. A key has
    /// a row in a table and is read by it: a name that stands in the program does not compile.
    [[nodiscard]] const Yaml* entry(std::string_view name) const;
    template <std::size_t n>
    const Yaml* entry(const char (&name)[n]) const = delete;
    /// In the file's order. Throws ParseError when it is no mapping.
    [[nodiscard]] const std::vector<std::pair<std::string, Yaml>>& entries() const;
    /// Throws ParseError when it is no sequence.
    [[nodiscard]] const std::vector<Yaml>& items() const;

    // Scalars. Each throws ParseError that says what was wanted and what stands there.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Value value() const;  ///< quoted: a string; plain: as value_of
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] std::int64_t integer() const;
    [[nodiscard]] double real() const;
    [[nodiscard]] double seconds()
        const;  ///< `8h`, `20min`, `90s`, `500ms`; at most a hundred years
    [[nodiscard]] double positive_seconds() const;    ///< the same, and more than nothing
    [[nodiscard]] double fraction() const;            ///< `1%` or `0.01`; at most 1
    [[nodiscard]] std::vector<Value> values() const;  ///< a list, or one value

    /// Copies of this mapping with `over`'s keys in place of its own; the mappings under `merged`
    /// are merged name by name.
    [[nodiscard]] Yaml overlaid(const Yaml& over, const Key& merged) const;
    [[nodiscard]] Yaml without(const Key& key) const;
    /// In the place of this node a mapping with the node under the key; this mapping with another
    /// child under a key that it has; an empty mapping.
    [[nodiscard]] Yaml under(const Key& key) const;
    [[nodiscard]] Yaml with(const Key& key, Yaml child) const;
    [[nodiscard]] Yaml empty_mapping() const;

    [[noreturn]] void fail(const std::string& message) const;
    [[noreturn]] void fail_wanted(std::string_view wanted) const;
    /// `file:line:column`.
    [[nodiscard]] std::string place() const;

private:
    friend class YamlBuilder;
    [[nodiscard]] Yaml laid_under(const Yaml& over, std::string_view merged) const;

    Kind kind_ = Kind::null;
    std::string scalar_;
    bool quoted_ = false;
    std::vector<std::pair<std::string, Yaml>> entries_;
    std::vector<Yaml> items_;
    std::shared_ptr<const std::string> file_;
    std::shared_ptr<const Redactor>
        secrets_;  ///< what `${NAME}` gave in this file: messages show the name
    std::string path_;
    int line_ = 0;
    int column_ = 0;
};

}  // namespace servetune
