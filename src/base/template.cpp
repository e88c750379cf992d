// SPDX-License-Identifier: Apache-2.0
#include "base/template.hpp"

#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <stdexcept>

namespace servetune {
namespace {

[[noreturn]] void wrong_template(const std::string& what, std::string_view name) {
    throw std::logic_error("a template: " + what + " '" + std::string(name) + "'");
}

struct TemplateMark {
    std::size_t begin = 0, end = 0;  ///< with its braces
    std::string_view name{};         ///< what stands between them
    bool alone = false;              ///< on its line
};

/// The next mark; of a run of braces the last two open it.
TemplateMark next_mark(std::string_view text, std::size_t from) {
    std::size_t begin = text.find("{{", from);
    const std::size_t end = begin == text.npos ? begin : text.find("}}", begin);
    if (end == text.npos) return {text.size(), text.size()};
    while (text.substr(begin + 2).starts_with('{')) ++begin;
    const std::size_t line = text.rfind('\n', begin) + 1;  // 0 if there is none
    return {begin, end + 2, text.substr(begin + 2, end - begin - 2),
            text.find_first_not_of(' ', line) == begin &&
                (end + 2 == text.size() || text[end + 2] == '\n')};
}
/// What goes with a mark that is alone: the blanks before it and the line end behind it.
std::size_t begin_with_blanks(const TemplateMark& mark, std::string_view text) {
    return mark.alone ? text.rfind('\n', mark.begin) + 1 : mark.begin;
}
std::size_t end_with_line(const TemplateMark& mark, std::string_view text) {
    return mark.alone && mark.end < text.size() ? mark.end + 1 : mark.end;
}

/// With its further lines as far in as the line that it is put into.
void put_lines(std::string_view value, std::string& result) {
    const std::size_t line = result.rfind('\n') + 1;
    const std::size_t in = std::min(result.find_first_not_of(" -", line), result.size()) - line;
    for (std::size_t i = 0; i < value.size(); ++i) {
        result += value[i];
        if (value[i] == '\n' && i + 1 < value.size() && value[i + 1] != '\n')
            result.append(in, ' ');
    }
}

class TemplateFiller {
public:
    TemplateFiller(const TemplateEscapes& escapes, const TemplateParts& parts)
        : escapes_(escapes), parts_(parts) {}

    std::string fill(std::string_view text, const TemplateValues& values) {
        scopes_.push_back(&values);
        std::string result = filled(text);
        scopes_.pop_back();
        return result;
    }

private:
    std::string filled(std::string_view text) {
        std::string result;
        for (std::size_t at = 0;;) {
            const TemplateMark mark = next_mark(text, at);
            if (mark.begin == text.size()) return result.append(text.substr(at));
            const char kind = mark.name.empty() ? ' ' : mark.name.front();
            const std::string_view name = mark.name.substr(mark.name.empty() ? 0 : 1);
            if (kind == '/') wrong_template("no begin of", name);
            const bool section = kind == '#' || kind == '?' || kind == '^';
            const std::size_t until =
                section || kind == '!' ? begin_with_blanks(mark, text) : mark.begin;
            result.append(text.substr(at, until - at));
            at = section || kind == '!' ? end_with_line(mark, text) : mark.end;
            if (section) at = put_section(kind, name, text, at, result);
            if (section || kind == '!') continue;
            std::string value = kind == '>' ? included(name) : text_of_place(mark.name);
            if (mark.alone && value.empty()) {
                result.resize(result.rfind('\n') + 1);
                at = end_with_line(mark, text);
            } else if (mark.alone || kind == '>') {
                if (value.ends_with('\n')) value.pop_back();
                put_lines(value, result);
            } else result += value;
        }
    }

    /// The end of the section whose body begins at `at`.
    std::size_t put_section(char kind, std::string_view name, std::string_view text, std::size_t at,
                            std::string& result) {
        TemplateMark end{};
        std::size_t from = at;
        for (std::size_t depth = 1; depth > 0; from = end.end) {
            end = next_mark(text, from);
            if (end.begin == text.size()) wrong_template("no end of", name);
            if (end.name.size() < 2 || end.name.substr(1) != name) continue;
            if (end.name.front() == '/') --depth;
            else if (contains("#?^", end.name.front())) ++depth;
        }
        const std::string_view body = text.substr(at, begin_with_blanks(end, text) - at);
        const auto* list = find(&TemplateValues::lists, name);
        const auto* one = list == nullptr ? find(&TemplateValues::texts, name) : nullptr;
        const bool there = list != nullptr ? !list->empty() : one != nullptr && !one->empty();
        if (there == (kind == '^')) return end_with_line(end, text);
        if (kind == '#' && list != nullptr)
            for (const TemplateValues& entry : *list) result += fill(body, entry);
        else result += filled(body);
        return end_with_line(end, text);
    }

    std::string included(std::string_view name) {
        if (const auto* part = entry_in(parts_, name)) return filled(*part);
        if (const auto* text = find(&TemplateValues::texts, name)) return *text;
        wrong_template("no part", name);
    }

    std::string text_of_place(std::string_view place) {
        const std::size_t bar = std::min(place.find('|'), place.size());
        std::string_view name = place.substr(0, bar);
        const bool commas = name.ends_with(',');
        if (commas) name.remove_suffix(1);
        const std::string_view by = place.substr(bar);
        if (const auto* text = find(&TemplateValues::texts, name)) return escaped(*text, by);
        const auto* list = find(&TemplateValues::lists, name);
        if (list == nullptr) wrong_template("no text", name);
        std::string result;
        for (const TemplateValues& entry : *list) {
            if (&entry != &list->front()) result += commas ? ", " : " ";
            result += escaped(entry.texts.at("."), by);
        }
        return result;
    }
    /// `by`: `|a|b`.
    std::string escaped(std::string text, std::string_view by) {
        do {
            const std::size_t next = std::min(by.find('|', 1), by.size());
            const std::string_view name =
                by.substr(by.empty() ? 0 : 1, next - (by.empty() ? 0 : 1));
            const auto* escape = entry_in(escapes_, name);
            if (escape != nullptr) text = (*escape)(text);
            else if (!name.empty()) wrong_template("no escape", name);
            by.remove_prefix(next);
        } while (!by.empty());
        return text;
    }

    template <class Map>
    const typename Map::mapped_type* find(Map TemplateValues::*kind, std::string_view name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (const auto at = ((*scope)->*kind).find(name); at != ((*scope)->*kind).end())
                return &at->second;
        return nullptr;
    }

    const TemplateEscapes& escapes_;
    const TemplateParts& parts_;
    std::vector<const TemplateValues*> scopes_{};  ///< the innermost is the last
};

}  // namespace

std::string fill_template(std::string_view text, const TemplateValues& values,
                          const TemplateEscapes& escapes, const TemplateParts& parts) {
    return TemplateFiller(escapes, parts).fill(text, values);
}

}  // namespace servetune
