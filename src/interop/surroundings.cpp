// SPDX-License-Identifier: Apache-2.0
#include "surroundings.hpp"

#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace servetune {
namespace {

/// The title of a box that folds its text, or the mark of its end.
bool is_box_title(std::string_view line) {
    constexpr std::array<std::string_view, 5> starts{"???", "<details", "</details", "<summary",
                                                     "</summary"};
    return std::any_of(starts.begin(), starts.end(),
                       [&](std::string_view start) { return line.starts_with(start); });
}

/// `??? info "Result"` -> `Result"`, `<summary>Result</summary>` -> `Result</summary>`
std::string_view title_of_box(std::string_view line) {
    const auto begin = line.find_first_of("\">");
    return begin == std::string_view::npos ? std::string_view() : line.substr(begin + 1);
}

/// Takes the name of its language off the text of a fence.
std::string_view take_language(std::string_view& text) {
    const std::string_view language =
        text.substr(0, std::min(text.find_first_of(" \t\r\n"), text.size()));
    if (language.starts_with("--")) return {};
    text.remove_prefix(language.size());
    return language;
}

/// `tp4`, `DP`: how many devices a model is spread over.
bool names_parallelism(std::string_view word) {
    word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
    constexpr std::array<std::string_view, 5> kinds{"tp", "dp", "pp", "ep", "mtp"};
    return std::any_of(kinds.begin(), kinds.end(), [&](std::string_view kind) {
        return word.starts_with(kind) &&
               word.find_first_not_of("0123456789-=", kind.size()) == std::string_view::npos;
    });
}

}  // namespace

void Surroundings::read(std::string_view text) {
    labels_.clear();
    items_.clear();
    command_here_ = false;
    changes_.clear();
    contradiction_.clear();
    for (std::size_t at = 0; at < text.size();) {
        auto fence = text.find("```", at);
        std::size_t ticks = 0;  // a fence of four holds fences of three
        while (fence != std::string_view::npos) {
            ticks = std::min(text.find_first_not_of('`', fence), text.size()) - fence;
            if (!in_fence_ || ticks >= fence_ticks_) break;
            fence = text.find("```", fence + ticks);
        }
        const bool ends = fence == std::string_view::npos;
        const auto piece = text.substr(at, ends ? fence : fence - at);
        if (!in_fence_) read_prose(piece);
        else if (ends) read_own_fence(piece);
        else {
            ServingCommand found = read_fence(piece);
            note(found);
            above_ = has_result_ ? ServingCommand{} : std::move(found);
        }
        if (ends) break;
        in_fence_ = !in_fence_;
        if (in_fence_) own_ = above_;
        fence_ticks_ = in_fence_ ? ticks : 0;
        has_result_ = false;
        at = fence + ticks;
    }
}

void Surroundings::end_result() {
    has_result_ = in_fence_;
    if (!in_fence_) above_ = {};
}

void Surroundings::describe(PublishedResult& result) const {
    for (const Heading& heading : headings_) result.sections.push_back(heading.text);
    result.labels.assign(labels_.rbegin(), labels_.rend());
    for (auto heading = headings_.rbegin(); heading != headings_.rend(); ++heading)
        result.labels.push_back(heading->text);
    const ServingCommand& command = in_fence_ ? own_ : above_;
    result.arguments_unknown = command.text.empty() || !contradiction_.empty();
    if (!result.arguments_unknown) {
        result.engine = command.engine;
        result.arguments = changes_.empty() ? command.text : with_flags(command.text, changes_);
    } else if (!command.not_recognised.empty()) result.not_recognised = command.not_recognised;
    else if (!command.text.empty())
        result.not_recognised =
            "'" + contradiction_ + "' above it may change: " + cut_to(command.text, 120);
    else if (!last_.empty())
        result.not_recognised =
            "none stands directly above it, the last one before it is: " + cut_to(last_, 120);
}

void Surroundings::note(ServingCommand& found) {
    if (found.text.empty()) {
        if (found.not_recognised.starts_with("export ")) environment_ = found.not_recognised;
        return;
    }
    last_ = found.text;
    command_here_ = true;
    const std::string exported = std::exchange(environment_, "");
    if (!exported.empty() && !found.engine.empty())
        found = {"", "", "a fence further up sets its environment: " + exported};
}

ServingCommand Surroundings::read_fence(std::string_view text) const {
    constexpr std::array<std::string_view, 9> shells{"",    "bash", "shell", "console", "sh",
                                                     "zsh", "text", "txt",   "log"};
    const std::string_view language = take_language(text);
    if (!is_one_of(language, shells))
        return {"", "", "a fence of '" + cut_to(language, 40) + "' stands directly above it"};
    if (const std::string_view whole = trimmed(text);
        whole.starts_with("--") && whole.find_first_not_of("-= ") != std::string_view::npos) {
        const std::vector<std::string> lines = shell_lines(whole);
        if (lines.size() > 1)
            return {"", "", "a line beside its flags is not understood: " + cut_to(lines[1], 120)};
        return {joined_words(shell_words(lines.front())), engine_of_headings(), ""};
    }
    return commands_.in_script(text);
}

void Surroundings::read_own_fence(std::string_view text) {
    if (!has_result_) (void)take_language(text);
    ServingCommand found = commands_.in_output(text);
    note(found);
    const bool has_own = !found.text.empty() || !found.not_recognised.empty();
    if (has_own) own_ = std::move(found);
    for_each_trimmed_line(text, [&](std::string_view line) {
        if (!has_own && line.starts_with("$ ") && !serves_nothing(without_prompt(line)))
            own_ = {"", "", cut_to(without_prompt(line), 200)};
        if (line.starts_with("# ")) read_comment(trimmed(line.substr(2)));
    });
}

void Surroundings::read_comment(std::string_view comment) {
    if (comment.starts_with("--")) {
        changes_ = comment;
        return;
    }
    add_label(comment);
    if (may_change(comment, own_.text) || !commands_.in_output(comment).text.empty())
        contradiction_ = cut_to(comment, 200);
}

bool Surroundings::may_change(std::string_view text, std::string_view command, bool is_box) const {
    if (text.find("--") != std::string_view::npos) return true;
    const std::vector<std::string> words = words_of_title(text);
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        const bool is_setting =
            word.find_first_of("_=") != std::string::npos || names_parallelism(word);
        const bool is_value = (words.size() == 1 || is_box) && commands_.is_choice(word) &&
                              lower_case(std::string(command)).find(word) == std::string::npos;
        return is_setting || is_value;
    });
}

std::string Surroundings::engine_of_headings() const {
    for (auto heading = headings_.rbegin(); heading != headings_.rend(); ++heading)
        if (std::string named = commands_.engine_named(heading->text); !named.empty()) return named;
    return "";
}

void Surroundings::add_label(std::string_view label) {
    constexpr std::size_t most = 200;  // nobody calls a block by what stands farther above
    if (labels_.size() == most) labels_.erase(labels_.begin());
    labels_.emplace_back(label);
}

void Surroundings::pass(std::string_view prose) {
    for_each_trimmed_line(prose, [&](std::string_view line) {
        if (line.empty()) return;
        if (!is_box_title(line) || line.find(" #") != std::string_view::npos) above_ = {};
        else if (!above_.text.empty() && may_change(title_of_box(line), above_.text, true))
            above_ = {"", "",
                      "'" + cut_to(line, 120) + "' may change: " + cut_to(above_.text, 120)};
    });
}

void Surroundings::read_prose(std::string_view text) {
    pass(text);
    std::size_t titles = 0;  // up to where headings were read
    for_each_trimmed_line(text, [&](std::string_view line) {
        if (!line.empty())
            add_headings(text, titles, static_cast<std::size_t>(line.data() - text.data()) + 1);
        if (line.starts_with("- ") && line.find(':') == std::string_view::npos) {
            add_label(trimmed(line.substr(2)));
            items_.insert(labels_.back());
        }
    });
    add_headings(text, titles, text.size());
    // Profiles, wherever they stand: line breaks may be lost.
    constexpr std::string_view profile = "Profile: `";
    for (auto at = text.find(profile); at != std::string_view::npos;
         at = text.find(profile, at + 1)) {
        const std::string_view name = text.substr(at + profile.size());
        if (const auto end = name.find('`'); end != std::string_view::npos)
            add_label(name.substr(0, end));
    }
}

void Surroundings::add_headings(std::string_view text, std::size_t& at, std::size_t until) {
    for (at = text.find('#', at); at < until; at = text.find('#', at)) {
        const std::string_view rest = text.substr(at);
        const std::size_t level = std::min(rest.find_first_not_of('#'), rest.size());
        constexpr std::size_t deepest = 6;  // of Markdown
        const bool heading =
            level <= deepest && level < rest.size() && rest[level] == ' ' &&
            (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0);
        if (heading) add_heading(level, title_of(rest.substr(level + 1)));
        at += level;
    }
}

std::string Surroundings::title_of(std::string_view rest) {
    constexpr std::size_t longest_title = 200;
    const std::string_view line = rest.substr(0, rest.substr(0, longest_title).find('\n'));
    if (line.size() < std::min(rest.size(), longest_title)) return std::string(trimmed(line));
    const auto ends = [](std::string_view at) {
        for (const std::string_view next : {"\n", " #", " - ", "???", "!!!", " |"})
            if (at.starts_with(next)) return true;
        return false;
    };
    std::size_t end =
        0;  // step by step: a search for each mark would read to the end of the document for every title
    while (end < rest.size() && !ends(rest.substr(end))) ++end;
    return std::string(trimmed(rest.substr(0, end)));
}

void Surroundings::add_heading(std::size_t level, std::string title) {
    while (!headings_.empty() && headings_.back().level >= level) headings_.pop_back();
    headings_.push_back({level, std::move(title)});
    std::erase_if(labels_, [&](const std::string& label) { return items_.contains(label); });
    items_.clear();
}

}  // namespace servetune
