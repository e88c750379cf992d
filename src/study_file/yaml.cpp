// SPDX-License-Identifier: Apache-2.0
#include "yaml.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "secrets.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "study/plain_value.hpp"
#include "study_snapshot.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

namespace servetune {

/// Makes our tree from yaml-cpp's, within bounds: an alias may make a small file large, in nodes
/// and, where it repeats a long text or stands below a long key, in bytes.
class YamlBuilder {
public:
    YamlBuilder(const std::string& name, const Snapshot& snapshot)
        : file_(std::make_shared<Yaml::File>(Yaml::File{name, snapshot})) {}

    Yaml build(const YAML::Node& node, const std::string& path, int depth) {
        constexpr std::size_t most_nodes = 1'000'000;
        constexpr std::size_t most_bytes = 32U << 20U;
        constexpr int deepest = 100;
        Yaml result;
        result.file_ = file_;
        result.path_ = path;
        result.line_ = node.Mark().line + 1;
        result.column_ = node.Mark().column + 1;
        if (++nodes_ > most_nodes)
            result.fail("the file expands to more than " + std::to_string(most_nodes) + " nodes");
        bytes_ += path.size() + (node.IsScalar() ? node.Scalar().size() : 0);
        if (bytes_ > most_bytes)
            result.fail("the file expands to more than " + std::to_string(most_bytes) + " bytes");
        if (depth > deepest) result.fail("nested more than " + std::to_string(deepest) + " deep");
        if (node.IsScalar()) {
            result.kind_ = Yaml::Kind::scalar;
            result.quoted_ = node.Tag() == "!";
            result.scalar_ = expanded(node.Scalar(), result);
            if (contains(result.scalar_, '\0'))
                result.fail("a NUL character, which no flag or path can have");
        } else if (node.IsSequence()) {
            result.kind_ = Yaml::Kind::sequence;
            for (std::size_t i = 0; i < node.size(); ++i)
                result.items_.push_back(
                    build(node[i], path + "[" + std::to_string(i) + "]", depth + 1));
        } else if (node.IsMap()) {
            result.kind_ = Yaml::Kind::mapping;
            std::set<std::string> seen;
            for (const auto& entry : node) {
                if (!entry.first.IsScalar()) result.fail("a key must be a plain word");
                const std::string key = entry.first.Scalar();
                Yaml child = build(entry.second, path.empty() ? key : path + "." + key, depth + 1);
                if (entry.second.Mark().line < 0 || entry.second.IsNull()) {
                    child.line_ = entry.first.Mark().line + 1;
                    child.column_ = entry.first.Mark().column + 1;
                }
                if (!seen.insert(key).second) {
                    child.line_ = entry.first.Mark().line + 1;
                    child.column_ = entry.first.Mark().column + 1;
                    child.fail("the key stands twice");
                }
                result.entries_.emplace_back(key, std::move(child));
            }
        }
        return result;
    }

private:
    std::string expanded(const std::string& text, const Yaml& at) {
        std::string result;
        for (std::size_t i = 0; i < text.size();) {
            const auto dollar = std::min(text.find('$', i), text.size());
            result.append(text, i, dollar - i);
            i = dollar;
            if (text.compare(i, 3, "$${") == 0) {
                result += "${";
                i += 3;
            } else if (text.compare(i, 2, "${") == 0) {
                const auto end = text.find('}', i);
                if (end == npos) at.fail("'${' without '}'");
                const std::string inside = text.substr(i + 2, end - i - 2);
                const auto dash = inside.find(":-");
                const std::string name = inside.substr(0, dash);
                if (!is_variable_name(name))
                    at.fail("'${" + inside + "}': '" + name +
                            "' is no name of an environment variable; write $${ for a plain ${");
                if (const char* value = std::getenv(name.c_str())) {
                    for (std::string_view rest = value; !rest.empty();
                         rest.remove_prefix(character_length(rest)))
                        if (character_length(rest) == 0)
                            at.fail("the environment variable '" + name + "' is not UTF-8 text");
                    keep_secret(value, name);
                    result += value;
                } else if (dash != npos) result += inside.substr(dash + 2);
                else if (file_->snapshot && file_->snapshot->shows_unset_variables()) {
                    // A value that none has, so that all who write `${NAME}` for the value do so.
                    keep_secret("value-of-" + name, name);
                    result += "value-of-" + name;
                } else
                    at.fail("the environment variable '" + name +
                            "' is not set; set it, or write ${" + name + ":-default}");
                i = end + 1;
            } else if (i < text.size()) result += text[i++];
        }
        return result;
    }

    /// Whoever reads the file hears of it, and messages about the file do not have it. What would
    /// be found by chance is left out (study_file/secrets.hpp).
    void keep_secret(const std::string& value, const std::string& name) {
        constexpr std::size_t long_number = 8;
        if (!std::holds_alternative<std::string>(value_of(value)) && value.size() < long_number)
            return;
        const std::string shown = "${" + name + "}";
        file_->secrets.add(value, shown);
        CollectSecrets::found(value, shown);
    }

    std::shared_ptr<Yaml::File> file_;
    std::size_t nodes_ = 0;
    std::size_t bytes_ = 0;
};

namespace {

/// Remembers where the content of a document begins.
class ContentStart : public YAML::EventHandler {
public:
    void OnDocumentStart(const YAML::Mark& mark) override { document = mark.line + 1; }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { begin(mark); }
    void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  const std::string& /*value*/) override {
        begin(mark);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                         YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
        begin(mark);
    }
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                    YAML::EmitterStyle::value /*style*/) override {
        begin(mark);
    }
    void OnMapEnd() override {}

    int document = 0;           ///< where it begins, from 1
    std::optional<int> line{};  ///< of its first content, from 1; none: it is empty

private:
    void begin(const YAML::Mark& mark) {
        if (!line) line = mark.line + 1;
    }
};

/// Throws where text follows the first document. Reads three documents and no more: where a broken
/// text goes on after its document, as in `{},`, yaml-cpp 0.7 finds empty documents without end,
/// and its `LoadAll` takes all memory (found by the fuzzer).
void check_one_document(const std::string& text, const std::string& name) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    ContentStart first, second, third;
    if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(second)) return;
    if (!second.line && parser.HandleNextDocument(third))
        throw ParseError(name + ":" + std::to_string(third.document) +
                         ": not YAML: text after the end of the document");
    throw ParseError(name + ":" + std::to_string(second.line.value_or(second.document)) +
                     ": a second YAML document, and a file has one; remove the '---' (or '...') "
                     "above it, or make two files");
}

/// yaml-cpp names neither tabs nor indentation where they are the reason.
std::string indentation_hint(std::string_view text, const YAML::Exception& error) {
    for (int at = 0; at < error.mark.line; ++at) {
        const auto end = text.find('\n');
        if (end == npos) return "";
        text.remove_prefix(end + 1);
    }
    const std::string_view indentation = text.substr(0, text.find_first_not_of(" \t"));
    if (contains(indentation, '\t'))
        return "; a tab is in front of this line, and YAML indents with blanks";
    const bool of_map = contains(error.msg, "map");
    return indentation.empty() || !of_map ? "" : "; are the lines of one mapping indented alike?";
}

}  // namespace

Yaml Yaml::load(const std::filesystem::path& file, const Snapshot& snapshot) {
    return parse(read_text(file, snapshot), file.string(), snapshot);
}

Yaml Yaml::parse(std::string_view text, const std::string& path, const Snapshot& snapshot) {
    const std::string name = snapshot ? snapshot->name_of(path) : path;
    // Measured with yaml-cpp 0.7: 1 MiB of one list takes 0.8 s and 257 MB, of one text 0.1 s and
    // 18 MB. The largest file of the search spaces has 34 kB.
    constexpr std::size_t largest = 1U << 20U;
    if (text.size() > largest)
        throw ParseError(name + ": a YAML file has at most " + std::to_string(largest) +
                         " bytes, got " + std::to_string(text.size()));
    text = utf8_text(text, name);
    // One command reads the files that ship some ten times, and a copy costs a tenth of parsing.
    static std::mutex guard;
    static std::map<std::string, const Yaml, std::less<>> parsed;  // by text
    static std::size_t bytes = 0;                                  // of these texts
    const bool same_everywhere = text.find('$') == npos;           // no variable's value
    if (same_everywhere) {
        const std::lock_guard lock(guard);
        if (const auto* found = entry_in(parsed, text)) {
            Yaml result = *found;
            result.move_to(std::make_shared<File>(File{path, snapshot}));
            return result;
        }
    }
    try {
        const std::string copy(text);
        check_one_document(copy, name);
        Yaml result = YamlBuilder(path, snapshot).build(YAML::Load(copy), "", 0);
        if (same_everywhere) {
            const std::lock_guard lock(guard);
            if (bytes + copy.size() > largest) parsed.clear();
            bytes = parsed.empty() ? copy.size() : bytes + copy.size();
            Yaml kept = result;
            kept.move_to(nullptr);
            parsed.try_emplace(copy, std::move(kept));
        }
        return result;
    } catch (const YAML::Exception& error) {
        throw ParseError(name + ":" + std::to_string(error.mark.line + 1) + ":" +
                         std::to_string(error.mark.column + 1) + ": not YAML: " + error.msg +
                         indentation_hint(text, error));
    }
}

void Yaml::move_to(const std::shared_ptr<const File>& file) {
    file_ = file;
    for (auto& [name, child] : entries_) child.move_to(file);
    for (Yaml& child : items_) child.move_to(file);
}

std::string Yaml::place() const {
    return (file_->snapshot ? file_->snapshot->name_of(file_->name) : file_->name) + ":" +
           std::to_string(line_) + ":" + std::to_string(column_);
}

void Yaml::fail(const std::string& message) const {
    // A key or a text may be as long as the file. A message names it and does not repeat it.
    constexpr std::size_t longest_path = 500, longest_message = 2000;
    const std::string where = path_.empty() ? "" : "'" + start_of(path_, longest_path) + "': ";
    throw ParseError(printable_line(
        file_->secrets(place() + ": " + where + start_of(message, longest_message))));
}

void Yaml::fail_wanted(std::string_view wanted) const {
    constexpr std::size_t longest_quote = 100;
    const std::string got =
        kind_ == Kind::null ? "nothing"
        : kind_ == Kind::scalar && path_.empty()
            ? "a text"  // a file of another kind: not its words
        : kind_ == Kind::scalar
            ? "'" + start_of(scalar_.substr(0, scalar_.find('\n')), longest_quote) + "'"
        : kind_ == Kind::sequence ? "a list"
                                  : "a mapping";
    fail(std::string(wanted) + " wanted, got " + got);
}

namespace {

/// Keys of earlier versions, and words of the libraries: what does the same in a file.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> other_words{{
    {"integer", "int: {low: 1, high: 8}"},
    {"log2", "scale: log2, in `int` or `real`"},
    {"engines", "engine: [NAME, NAME]"},
    {"rules", "constraints: [{require: \"a >= b\"}]"},
    {"rule", "constraints: [{require: \"a >= b\"}]"},
    {"on_done", "run your program behind 'autotune run', which writes report.json"},
    {"over", "guard each workload by `never_worse_than`, or name goals as METRIC@WORKLOAD"},
    {"ramp", "give several workloads, each with a `rate`"},
    {"drafts", "fix the engine's draft model under `space`"},
    {"give_up", "trials end early once they are surely 10 % slower than the best"},
}};

/// What may stand in place of an unknown key, those that are spelled alike first.
std::string known_keys_text(const std::string& wrong, const std::vector<std::string>& names) {
    for (const auto& [other, instead] : other_words)
        if (other == wrong) return "instead: " + std::string(instead);
    constexpr std::size_t few = 8, longest_name = 64;  // a whole text is like no name
    if (names.empty()) return "none is known here";
    return "known: " +
           listed(nearest_first(std::string_view(wrong).substr(0, longest_name), names), few) +
           (names.size() > few ? "; search_spaces/FORMAT.md has all" : "");
}

}  // namespace

void Yaml::check_keys(std::span<const Key> known) const {
    std::vector<std::string> names = names_in(known);
    if (!is_mapping() && !names.empty()) fail_wanted("a mapping with " + listed(names, 5));
    AllErrors errors;
    for (const auto& [key, child] : entries())
        if (!errors.full() && !contains(names, key))
            errors.in([&, key = key, &child = child] {
                child.fail("unknown key; " + known_keys_text(key, names));
            });
    for (const Key& key : known)
        if (key.has(required)) errors.in([&] { (void)at(key); });
    errors.throw_any();
}

const Yaml& Yaml::at(const Key& key) const {
    if (const Yaml* child = find(key)) return *child;
    fail("the key '" + std::string(key.name) + "' is missing: " + key.type->wanted_text());
}

const Yaml* Yaml::entry(std::string_view name) const {
    for (const auto& [key, child] : entries_)
        if (key == name) return &child;
    return nullptr;
}

const std::vector<std::pair<std::string, Yaml>>& Yaml::entries() const {
    if (!is_mapping()) fail_wanted("a mapping");
    return entries_;
}

const std::vector<Yaml>& Yaml::items() const {
    if (!is_sequence()) fail_wanted("a list");
    return items_;
}

std::string Yaml::text() const {
    if (!is_scalar()) fail_wanted("text");
    return scalar_;
}

Value Yaml::value() const {
    if (!is_scalar()) fail_wanted("a value");
    return quoted_ ? Value(scalar_) : value_of(scalar_);
}

bool Yaml::boolean() const {
    if (is_scalar() && (scalar_ == "true" || scalar_ == "false")) return scalar_ == "true";
    fail_wanted("true or false");
}

std::int64_t Yaml::integer() const {
    if (is_scalar()) {
        const Value value = plain_value(scalar_);
        if (const auto* result = std::get_if<std::int64_t>(&value)) return *result;
    }
    fail_wanted("an integer");
}

double Yaml::real() const {
    if (is_scalar())
        if (const auto result = real_of(scalar_)) return *result;
    fail_wanted("a number");
}

std::optional<double> seconds_of(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, double>, 5> units{
        {{"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}, {"d", 86400}}};
    for (const auto& [unit, factor] : units) {
        if (!text.ends_with(unit)) continue;
        const auto number = real_of(text.substr(0, text.size() - unit.size()));
        if (number && *number >= 0) return *number * factor;
    }
    return std::nullopt;
}

double Yaml::seconds() const {
    const auto result = is_scalar() ? seconds_of(scalar_) : std::nullopt;
    if (!result) fail_wanted("a duration such as 500ms, 90s, 20min, 8h or 2d");
    if (*result > longest_seconds) fail_wanted("a duration of at most a hundred years");
    return *result;
}

double Yaml::fraction() const {
    if (is_scalar()) {
        const double one = scalar_.ends_with('%') ? 100 : 1;
        const auto number =
            real_of(std::string_view(scalar_).substr(0, scalar_.size() - (one > 1 ? 1 : 0)));
        if (number && *number > one) fail_wanted("a share of at most 100 %");
        if (number && *number >= 0) return *number / one;
    }
    fail_wanted("a share such as 1% or 0.01");
}

std::vector<Value> Yaml::values() const {
    if (!is_sequence()) return {value()};
    std::vector<Value> result;
    for (const Yaml& item : items()) result.push_back(item.value());
    return result;
}

Yaml Yaml::overlaid(const Yaml& over, const Key& merged) const {
    return laid_under(over, merged.name);
}

Yaml Yaml::laid_under(const Yaml& over, std::string_view merged) const {
    Yaml result = over;
    result.entries_ = entries();
    for (const auto& [key, child] : over.entries()) {
        const auto old =
            find_if(result.entries_, [k = key](const auto& entry) { return entry.first == k; });
        if (old == result.entries_.end()) result.entries_.emplace_back(key, child);
        else old->second = key == merged ? old->second.laid_under(child, "") : child;
    }
    return result;
}

Yaml Yaml::under(const Key& key) const {
    Yaml result = *this;
    result.kind_ = Kind::mapping;
    result.scalar_.clear();
    result.items_.clear();
    result.entries_ = {{std::string(key.name), *this}};
    return result;
}

Yaml Yaml::with(const Key& key, Yaml child) const {
    Yaml result = *this;
    for (auto& [name, node] : result.entries_)
        if (name == key.name) node = std::move(child);
    return result;
}

Yaml Yaml::empty_mapping() const {
    Yaml result = *this;
    result.kind_ = Kind::mapping;
    result.scalar_.clear();
    result.entries_.clear();
    return result;
}

Yaml Yaml::without(const Key& key) const {
    Yaml result = *this;
    std::erase_if(result.entries_, [&](const auto& entry) { return entry.first == key.name; });
    return result;
}

}  // namespace servetune
