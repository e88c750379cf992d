// SPDX-License-Identifier: Apache-2.0
#include "word_template.hpp"

#include "servetune/error.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace servetune {
namespace {

using WordValue = nlohmann::ordered_json;

std::string with_blanks(std::string_view lines, std::size_t blanks) {
    std::string result;
    bool begins = true;
    for (const char c : lines) {
        if (begins && c != '\n') result.append(blanks, ' ');
        result += c;
        begins = c == '\n';
    }
    return result;
}

bool is_nothing(const WordValue& value) {
    return value.is_null() || value == false || value == 0 || value == "" ||
           (value.is_structured() && value.empty());
}

std::string plain_place(const WordValue& value) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+";
    if (value.is_number()) return value.dump();
    const auto text = value.get<std::string>();
    if (text.find_first_not_of(plain) != std::string::npos)
        throw UsageError("'" + text + "' has a character that cannot stand there");
    return text;
}

class WordTemplate {
public:
    explicit WordTemplate(const WordTemplates& parts) : parts_(parts) {}

    std::string fill(std::string_view text, const WordValue& values) {
        scopes_.push_back(&values);
        std::string result = filled(text);
        scopes_.pop_back();
        return result;
    }

private:
    struct Mark {
        std::size_t begin = 0, end = 0;  ///< with its braces
        std::string_view name{};         ///< what stands between them
        bool alone = false;              ///< on its line
    };

    /// The next mark; of a run of braces the last two open it.
    static Mark next_mark(std::string_view text, std::size_t from) {
        std::size_t begin = text.find("{{", from);
        if (begin == std::string_view::npos) return {text.size(), text.size()};
        while (text.substr(begin + 2).starts_with('{')) ++begin;
        const std::size_t end = text.find("}}", begin);
        if (end == std::string_view::npos) throw std::logic_error("template: a mark has no end");
        const std::size_t line = text.rfind('\n', begin) + 1;
        return {begin, end + 2, text.substr(begin + 2, end - begin - 2),
                text.substr(line, begin - line).find_first_not_of(' ') == std::string_view::npos &&
                    (end + 2 == text.size() || text[end + 2] == '\n')};
    }
    /// What goes with a mark that is alone: the blanks before it and the line end behind it.
    static std::size_t start_of(const Mark& mark, std::string_view text) {
        return mark.alone ? text.rfind('\n', mark.begin) + 1 : mark.begin;
    }
    static std::size_t end_of(const Mark& mark, std::string_view text) {
        return mark.alone && mark.end < text.size() ? mark.end + 1 : mark.end;
    }

    std::string filled(std::string_view text) {
        std::string result;
        std::size_t at = 0;
        for (;;) {
            const Mark mark = next_mark(text, at);
            if (mark.begin == text.size()) return result.append(text.substr(at));
            const char kind = mark.name.empty() ? ' ' : mark.name.front();
            const bool section = kind == '#' || kind == '?' || kind == '^';
            if (section || kind == '!') {
                result.append(text.substr(at, start_of(mark, text) - at));
                at = end_of(mark, text);
                if (section) at = put_section(mark, text, at, result);
                continue;
            }
            result.append(text.substr(at, mark.begin - at));
            at = mark.end;
            if (kind != '>') {
                put_value(mark.name, result);
                continue;
            }
            const std::string value = included(mark.name.substr(1));
            if (value.empty() && mark.alone) {
                result.resize(result.rfind('\n') + 1);
                at = end_of(mark, text);
            } else put_lines(value, result);
        }
    }
    std::size_t put_section(const Mark& mark, std::string_view text, std::size_t at,
                            std::string& result) {
        const std::string_view name = mark.name.substr(1);
        std::size_t depth = 1;
        Mark end{};
        for (std::size_t from = at; depth > 0; from = end.end) {
            end = next_mark(text, from);
            if (end.begin == text.size())
                throw std::logic_error("template: " + std::string(name) + " is not closed");
            if (end.name.empty() || end.name.substr(1) != name) continue;
            if (end.name.front() == '/') --depth;
            else if (end.name.front() != '>') ++depth;
        }
        const std::string_view body = text.substr(at, start_of(end, text) - at);
        const WordValue* value = find(name);
        const bool nothing = value == nullptr || is_nothing(*value);
        if (mark.name.front() == '^') {
            if (nothing) result += filled(body);
        } else if (nothing) {
        } else if (mark.name.front() == '?') result += filled(body);
        else if (!value->is_array()) result += fill(body, *value);
        else
            for (const WordValue& item : *value) result += fill(body, item);
        return end_of(end, text);
    }
    /// With its further lines as far in as the line that it is put into.
    static void put_lines(const std::string& value, std::string& result) {
        const std::size_t line = result.rfind('\n') + 1;
        const std::size_t in = std::min(result.find_first_not_of(" -", line), result.size()) - line;
        result += in == 0 ? value : with_blanks(value, in).substr(value.empty() ? 0 : in);
    }
    std::string included(std::string_view name) {
        std::string result = filled(parts_.templates.at(name));
        if (result.ends_with('\n')) result.pop_back();
        return result;
    }
    void put_value(std::string_view place, std::string& result) {
        const auto escape = parts_.escapes.find(place.substr(0, place.find(':')));
        const bool lines = escape != parts_.escapes.end() && escape->second.several_lines;
        if (lines) put_lines(value_of_place(place), result);
        else result += value_of_place(place);
    }
    std::string value_of_place(std::string_view place) {
        const std::size_t colon = place.find(':');
        if (colon == std::string_view::npos) return text_of_items(place, {plain_place});
        const WordEscape& escape = parts_.escapes.at(place.substr(0, colon));
        const std::string_view rest = place.substr(colon + 1);
        return rest.find(':') == std::string_view::npos ? text_of_items(rest, escape)
                                                        : escape.text(value_of_place(rest));
    }
    std::string text_of_items(std::string_view name, const WordEscape& escape) {
        const WordValue* value = find(name);
        if (value == nullptr)
            throw std::logic_error("template: there is no value " + std::string(name));
        if (!value->is_array() || escape.between.empty()) return escape.text(*value);
        std::string result;
        for (std::size_t i = 0; i < value->size(); ++i)
            result.append(i == 0 ? "" : escape.between).append(escape.text((*value)[i]));
        return result;
    }
    [[nodiscard]] const WordValue* find(std::string_view name) const {
        if (name == ".") return scopes_.back();
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if ((*scope)->is_object())
                if (const auto found = (*scope)->find(std::string(name)); found != (*scope)->end())
                    return &*found;
        return nullptr;
    }

    const WordTemplates& parts_;
    std::vector<const WordValue*> scopes_{};
};

}  // namespace

std::string fill_words(std::string_view text, const WordValue& values, const WordTemplates& parts) {
    return WordTemplate(parts).fill(text, values);
}

}  // namespace servetune
