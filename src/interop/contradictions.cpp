// SPDX-License-Identifier: Apache-2.0
#include "contradictions.hpp"

#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <variant>

namespace servetune {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// `--Max_num-seqs` -> `max-num-seqs`
std::string plain_name(std::string_view text) {
    while (text.starts_with('-')) text.remove_prefix(1);
    std::string result = lower_case(std::string(text));
    std::replace(result.begin(), result.end(), '_', '-');
    return result;
}

/// Whether a text stands in the command and is no part of a longer word or number.
bool stands_in(std::string_view command, std::string_view what) {
    const auto joins = [](char c) { return is_digit(c) || is_letter(c) || c == '.'; };
    for (auto at = command.find(what); at != std::string_view::npos; at = command.find(what, at + 1)) {
        const std::size_t end = at + what.size();
        // `-tp4` has its number directly behind its name.
        const bool begins = at == 0 || !joins(command[at - 1]) || (is_digit(what.front()) && is_letter(command[at - 1]));
        if (begins && (end == command.size() || !joins(command[end]))) return true;
    }
    return false;
}

/// Of `TP8+PP2` the numbers, as texts.
std::vector<std::string> parallel_sizes(std::string_view title) {
    const std::string low = lower_case(std::string(title));
    std::vector<std::string> sizes;
    for (const std::string_view kind : {"tp", "dp", "pp"})
        for (auto at = low.find(kind); at != std::string::npos; at = low.find(kind, at + 1)) {
            if (at > 0 && is_letter(low[at - 1])) continue;
            std::size_t begin = at + kind.size();
            if (begin < low.size() && (low[begin] == '=' || low[begin] == '-' || low[begin] == ' ')) ++begin;
            std::size_t end = begin;
            while (end < low.size() && is_digit(low[end])) ++end;
            if (end > begin && end - begin < 3) sizes.push_back(low.substr(begin, end - begin));
        }
    return sizes;
}

/// Of `Qwen3-30B-A3B` 30b and a3b.
std::set<std::string> model_sizes(std::string_view text) {
    const std::string low = lower_case(std::string(text)) + " ";
    std::set<std::string> sizes;
    for (std::size_t at = 0; at + 1 < low.size(); ++at) {
        if (!is_digit(low[at]) || (at > 0 && (is_digit(low[at - 1]) || low[at - 1] == '.'))) continue;
        std::size_t end = at;
        while (is_digit(low[end]) || (low[end] == '.' && is_digit(low[end + 1]))) ++end;
        if (low[end] == 'b' && !is_letter(low[end + 1]) && !is_digit(low[end + 1])) sizes.insert(low.substr(at, end + 1 - at));
    }
    return sizes;
}

/// The words of a title without marks around them: "**with `--x`:**" -> with, --x.
std::vector<std::string> words_of_title(std::string_view title) {
    std::vector<std::string> words;
    constexpr std::string_view marks = "*_`'\"()[],;:.+";
    while (!title.empty()) {
        std::string_view word = title.substr(0, title.find_first_of(" \t<>|"));
        title.remove_prefix(std::min(title.size(), word.size() + 1));
        while (!word.empty() && marks.find(word.front()) != std::string_view::npos) word.remove_prefix(1);
        while (!word.empty() && marks.find(word.back()) != std::string_view::npos) word.remove_suffix(1);
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

}  // namespace

Contradictions::Contradictions(const std::vector<Engine>& engines) {
    for (const Engine& engine : engines) {
        std::string prefix;
        for (const char c : engine.name)
            prefix += is_letter(c) || is_digit(c) ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : '_';
        prefixes_.insert(prefix + "_");
        for (const auto& [alias, name] : engine.aliases) names_.insert(plain_name(alias));
        for (const EngineParameter& declared : engine.parameters) {
            names_.insert(plain_name(declared.parameter.name));
            if (const auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain))
                for (const Value& value : choice->values) names_.insert(plain_name(text_of(value)));
            const bool is_switch = std::holds_alternative<BoolDomain>(declared.parameter.domain);
            for (const std::string& flag : {declared.destination.flag, declared.destination.off_flag}) {
                if (!flag.starts_with("--") || flag.find('=') != std::string::npos) continue;
                names_.insert(plain_name(flag));
                (is_switch ? switches_ : settings_).insert(flag);
            }
        }
    }
}

bool Contradictions::between(std::string_view title, std::string_view command) const {
    if (command.empty()) return false;
    if (gives_number(title, command)) return true;
    for (const std::string& size : parallel_sizes(title))
        if (size != "1" && !stands_in(command, size)) return true;
    const std::set<std::string> sizes = model_sizes(title), served = model_sizes(command);
    if (!sizes.empty() && !served.empty() &&
        std::none_of(sizes.begin(), sizes.end(), [&](const std::string& size) { return served.contains(size); }))
        return true;
    const std::vector<std::string> words = words_of_title(title);
    if (words.size() == 1 && switches_.contains("--" + plain_name(words[0])) && words[0].find('-') != std::string::npos)
        return !stands_in(command, "--" + plain_name(words[0]));
    return names_flag(words, command) || names_setting(words, command) ||
           std::any_of(words.begin(), words.end(), [&](const std::string& word) { return names_variable(word, command); });
}

bool Contradictions::gives_number(std::string_view title, std::string_view command) const {
    const auto between = title.find_first_of("=:");
    if (between == std::string_view::npos) return false;
    const std::string_view number = trimmed(title.substr(between + 1));
    const bool counts = !number.empty() && number.find_first_not_of("0123456789.") == std::string_view::npos;
    return counts && names_.contains(plain_name(trimmed(title.substr(0, between)))) && !stands_in(command, number);
}

bool Contradictions::names_flag(const std::vector<std::string>& words, std::string_view command) const {
    constexpr std::array<std::string_view, 6> denials{"without", "no", "not", "minus", "removed", "dropped"};
    bool denied = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string flag = flag_of(words[i]);
        denied = denied || std::find(denials.begin(), denials.end(), lower_case(flag)) != denials.end();
        if (switches_.contains(flag)) {
            if (stands_in(command, flag) == denied) return true;
        } else if (settings_.contains(flag) && !denied) {
            const bool inside = flag.size() < words[i].size();
            const std::string value = inside                                                   ? words[i].substr(flag.size() + 1)
                                      : i + 1 < words.size() && !words[i + 1].starts_with('-') ? words[i + 1]
                                                                                               : "";
            // Behind a blank a word may be prose.
            const bool is_value = inside || (!value.empty() && (is_digit(value.front()) || names_.contains(plain_name(value))));
            if (is_value && !stands_in(command, value)) return true;
        }
    }
    return false;
}

bool Contradictions::names_setting(const std::vector<std::string>& words, std::string_view command) const {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t between = std::min(words[i].find_first_of("=:"), words[i].size());
        const std::string name = words[i].substr(0, between);
        if (name.starts_with('-') || name.find_first_of("-_") == std::string::npos || !names_.contains(plain_name(name))) continue;
        const std::string value = between < words[i].size() ? words[i].substr(between + 1) : i + 1 < words.size() ? words[i + 1] : "";
        if (!value.empty() && std::all_of(value.begin(), value.end(), is_digit) && !stands_in(command, value)) return true;
    }
    return false;
}

bool Contradictions::is_variable(std::string_view word) const {
    const std::string name(assigned_name(word));
    return std::any_of(prefixes_.begin(), prefixes_.end(), [&](const std::string& prefix) { return name.starts_with(prefix); });
}

bool Contradictions::names_variable(const std::string& word, std::string_view command) const {
    return is_variable(word) && !stands_in(command, word);
}

}  // namespace servetune
