// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "key.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace servetune {

/// What is wrong in several places of a file: its message has a line for each.
class ParseErrors : public ParseError {
public:
    explicit ParseErrors(std::vector<std::string> each)
        : ParseError(text_of_all(each)), each_(std::move(each)) {}
    [[nodiscard]] const std::vector<std::string>& each() const { return each_; }

private:
    static std::string text_of_all(const std::vector<std::string>& each) {
        std::string result;
        for (const std::string& one : each) result += (result.empty() ? "" : "\n") + one;
        return result;
    }
    std::vector<std::string> each_;
};

/// Collects the errors of a file, so that a person sees all of them in one go: its parts are read
/// one by one, and an error in one of them does not hide those of the others.
///
///     AllErrors errors;
///     errors.in([&] { read_this(node); });
///     errors.in([&] { read_that(node); });
///     errors.throw_any();
class AllErrors {
public:
    /// Reads a part; keeps what is wrong with it. False: something is.
    template <class Part>
    bool in(const Part& part) {
        try {
            part();
            return true;
        } catch (const ParseErrors& errors) {
            for (const std::string& one : errors.each()) add(one);
        } catch (const ParseError& error) {
            add(error.what());
        }
        return false;
    }
    [[nodiscard]] bool any() const { return !all_.empty(); }
    /// There are as many as a person reads: further ones are not kept.
    [[nodiscard]] bool full() const { return all_.size() >= most; }
    /// Throws ParseErrors for several, by their lines, ParseError for one, nothing for none.
    void throw_any() const {
        if (all_.empty()) return;
        if (all_.size() == 1) throw ParseError(all_.front());
        std::vector<std::string> sorted = all_;
        if (full())
            sorted.push_back(sorted.back().substr(0, sorted.back().find(": ")) +
                             ": there may be more errors; these are the first");
        stable_sort(sorted, [](const auto& a, const auto& b) { return place_in(a) < place_in(b); });
        throw ParseErrors(std::move(sorted));
    }

private:
    /// A key that is missing is said once, however many parts miss it.
    void add(const std::string& message) {
        if (!full() && !contains(all_, message)) all_.push_back(message);
    }
    /// File and line of a message that begins with `file:line:`.
    static std::pair<std::string, long> place_in(const std::string& message) {
        for (auto colon = message.find(':'); colon != std::string::npos;
             colon = message.find(':', colon + 1)) {
            const auto digits =
                std::min(message.find_first_not_of("0123456789", colon + 1), message.size());
            if (digits == colon + 1 || digits > colon + 10 || digits == message.size() ||
                message[digits] != ':')
                continue;
            return {message.substr(0, colon),
                    std::stol(message.substr(colon + 1, digits - colon - 1))};
        }
        return {message, 0};
    }
    static constexpr std::size_t most = 100;
    std::vector<std::string> all_{};
};

/// `8h`, `20min`, `90s`, `500ms` as seconds; nothing: it is no duration.
[[nodiscard]] std::optional<double> seconds_of(std::string_view text);

class StudySnapshot;

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
    /// `snapshot`: of the study that the file is of; null: it is read from the disk.
    static Yaml load(const std::filesystem::path& file,
                     const std::shared_ptr<StudySnapshot>& snapshot = {});
    static Yaml parse(std::string_view text, const std::string& name,
                      const std::shared_ptr<StudySnapshot>& snapshot = {});

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] bool is_mapping() const { return kind_ == Kind::mapping; }
    [[nodiscard]] bool is_sequence() const { return kind_ == Kind::sequence; }
    [[nodiscard]] bool is_scalar() const { return kind_ == Kind::scalar; }
    [[nodiscard]] bool is_quoted() const { return quoted_; }
    [[nodiscard]] const std::string& file() const { return file_->name; }
    [[nodiscard]] const std::shared_ptr<StudySnapshot>& snapshot() const { return file_->snapshot; }

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
    /// A list's, or this node alone where it is none.
    [[nodiscard]] std::vector<Yaml> items_or_one() const {
        return is_sequence() ? items_ : std::vector<Yaml>{*this};
    }

    // Scalars. Each throws ParseError that says what was wanted and what stands there.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Value value() const;  ///< quoted: a string; plain: as value_of
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] std::int64_t integer() const;
    [[nodiscard]] double real() const;
    [[nodiscard]] double seconds()
        const;  ///< `8h`, `20min`, `90s`, `500ms`; at most a hundred years
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
    struct File {
        std::string name;
        std::shared_ptr<StudySnapshot> snapshot{};
        Redactor secrets{};  ///< what `${NAME}` gave in this file: messages show the name
    };
    void move_to(const std::shared_ptr<const File>& file);
    std::shared_ptr<const File> file_;
    std::string path_;
    int line_ = 0;
    int column_ = 0;
};

}  // namespace servetune
