// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "templates.hpp"

#include "base/nearest.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/version.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace autotune {
namespace {

constexpr const char* of_help = "Print this help message and exit";
constexpr const char* of_version = "Print the version and exit";
constexpr std::size_t help_columns = 100;

/// `text` with a backslash before each of these characters.
std::string with_backslashes(const std::string& text, std::string_view before) {
    std::string result;
    for (const char c : text)
        result += before.find(c) == before.npos ? std::string(1, c) : std::string("\\") + c;
    return result;
}

std::vector<std::string> names_of(const std::vector<CommandRow>& all) { return names_in(all); }

std::vector<std::string> all_spellings(const CommandRow& command) {
    std::vector<std::string> result{"-h", "--help"};
    for (const OptionRow& option : command.options)
        for (const auto& one : option.spellings()) result.push_back(one);
    return result;
}

/// The option of this spelling; nullptr: there is none.
const OptionRow* option_called(const CommandRow& command, const std::string& name) {
    for (const OptionRow& option : command.options)
        for (const auto& one : option.spellings())
            if (one == name) return &option;
    return nullptr;
}

/// nullptr: there is none.
const CommandRow* command_called(const std::vector<CommandRow>& all, std::string_view name) {
    const auto found = find_if(all, [&](const CommandRow& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

/// A text of roff's: no requests, hyphens that can be searched for.
std::string for_roff(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (result.empty() && (c == '.' || c == '\'')) result += "\\&";
        if (c == '\\') result += "\\e";
        else if (c == '-') result += "\\-";
        else if (c != '`') result += c;
    }
    return result;
}

/// `run [OPTIONS] STUDY`.
std::string usage_of(const CommandRow& command) {
    std::string usage = command.name + (command.options.empty() ? "" : " [OPTIONS]");
    for (const OptionRow& option : command.options)
        if (option.by_place())
            usage += (option.required ? " " + option.names : " [" + option.names + "]") +
                     (option.takes_several() ? "..." : "");
    return usage;
}

std::string help_line(const std::string& name, const std::string& what, std::size_t column = 34) {
    std::string rows = wrapped(what, help_columns - column);
    if (name.size() + 3 > column) rows = "\n" + rows;
    for (std::size_t at = 0; (at = rows.find('\n', at) + 1) != 0;) rows.insert(at, column, ' ');
    return fmt::format("  {:{}}{}", name, rows.starts_with('\n') ? 0 : column - 2, rows);
}

/// What the templates say of a command.
TemplateValues command_values(const CommandRow& command) {
    TemplateValues values{{{"name", command.name},
                           {"what", command.what},
                           {"about", wrapped(command.what, help_columns)},
                           {"in_list", help_line(command.name, command.what, 14)},
                           {"usage", usage_of(command)},
                           {"help_line", help_line("-h, --help", of_help)},
                           {"has_places", ""}}};
    for (const OptionRow& option : command.options) {
        const auto value = option.by_place() ? "" : option.value_text();
        const auto names = option.by_place()
                               ? option.names
                               : fmt::format("{}", fmt::join(option.spellings(), ", "));
        const auto shown = names + (value.empty() ? "" : " " + value);
        values.lists[option.by_place() ? "places" : "options"].push_back(
            {{{"names", names},
              {"value", value},
              {"shown", shown},
              {"described", option.described()},
              {"line", help_line(shown, option.described())}}});
        if (option.by_place()) values.texts["has_places"] = "yes";
    }
    return values;
}

/// The same of all, in groups, with the exit codes.
std::string filled_with_commands(const EmbeddedFile& file, const std::vector<CommandRow>& all) {
    TemplateValues values{{{"version", std::string(library_version)},
                           {"help", of_help},
                           {"help_line", help_line("-h, --help", of_help)},
                           {"version_help", of_version},
                           {"version_line", help_line("-V, --version", of_version)}}};
    std::vector<TemplateValues>& groups = values.lists["groups"];
    for (const CommandRow& command : all) {
        if (groups.empty() || groups.back().texts["group"] != command.group)
            groups.push_back({{{"group", command.group}}});
        groups.back().lists["commands"].push_back(command_values(command));
    }
    for (const auto& [code, meaning] : exit_codes())
        values.lists["codes"].push_back(
            {{{"code", std::to_string(code)},
              {"meaning", meaning},
              {"in_list", help_line(std::to_string(code), meaning, 7)}}});
    const auto cell = [](const std::string& text) { return with_backslashes(text, "|"); };
    return fill_template(file.text, values, {{"roff", for_roff}, {"cell", cell}});
}

/// `; nearest: ...`, or what to use in place of what an earlier version had.
std::string instead_text(const std::string& instead, const std::string& name,
                         const std::vector<std::string>& known) {
    return instead.empty() ? nearest_text(name, known) : "; " + instead;
}

}  // namespace

std::string why_no_word(const std::string& text, const std::vector<std::string>& words) {
    if (contains(words, text)) return "";
    const auto instead = instead_of(text);
    const auto near = nearest_text(text, words);
    return "there is no '" + text + "'" + (instead.empty() ? "" : ": " + instead) +
           (near.empty() ? "; known: " + listed(words, words.size()) : near);
}

std::string help_text(const std::vector<CommandRow>& all) {
    return filled_with_commands(help_in, all);
}

std::string help_text(const CommandRow& command) {
    return fill_template(command_help_in.text, command_values(command));
}

std::string help_text(const std::vector<CommandRow>& all, const std::string& command) {
    const auto* one = command_called(all, command);
    return one == nullptr ? help_text(all) : help_text(*one);
}

std::string completion_script(const std::string& shell) {
    return std::string((shell == "bash"  ? completion_bash_in
                        : shell == "zsh" ? completion_zsh_in
                                         : completion_fish_in)
                           .text);
}

std::string completions(const std::vector<CommandRow>& all, std::span<const char* const> words) {
    const std::string last = words.empty() ? "" : words.back();
    const CommandRow* command = nullptr;
    const OptionRow* before = nullptr;  // the option whose value is wanted
    for (const char* word : words.first(words.empty() ? 0 : words.size() - 1)) {
        before = command == nullptr ? nullptr : option_called(*command, word);
        if (command == nullptr) command = command_called(all, word);
    }
    if (before != nullptr && !before->takes_value()) before = nullptr;
    std::string result;
    const auto offer = [&](const std::string& word, const std::string& what) {
        if (word.starts_with(last)) result += word + (what.empty() ? "" : "\t" + what) + "\n";
    };
    if (command == nullptr) {
        for (const CommandRow& one : all) offer(one.name, one.what);
        offer("--version", of_version);
    }
    if (before == nullptr && (command == nullptr || last.starts_with('-')))
        offer("--help", of_help);
    if (command == nullptr) return result;
    if (before != nullptr)
        for (const auto& [name, kind] : std::map<std::string, std::string>{
                 {"--engine", "engines"}, {"--hardware", "hardware"}, {"--workload", "workloads"}})
            if (before->names == name)
                for (const auto& one : shipped(kind)) offer(one, "");
    for (const OptionRow& option : command->options) {
        if (before != nullptr ? &option == before : option.by_place())
            for (const std::string& word : option.words) offer(word, "");
        else if (before == nullptr && last.starts_with('-'))
            for (const auto& one : option.spellings()) offer(one, option.help);
    }
    return result;
}

std::vector<std::string> shipped(const std::string& kind) {
    std::vector<std::string> result;
    const auto folder = Catalogue::standard().root() / kind;
    for (const auto& file : fs::directory_iterator(folder))
        if (file.path().extension() == ".yaml") result.push_back(file.path().stem().string());
    sort(result);
    return result;
}

std::string manual_page(const std::vector<CommandRow>& all) {
    return filled_with_commands(manual_1_in, all);
}

std::string markdown_page(const std::vector<CommandRow>& all) {
    return filled_with_commands(commands_md_in, all);
}

std::string complaint_of(const std::vector<CommandRow>& all, const std::string& parser_says,
                         std::span<const char* const> words) {
    const CommandRow* command = nullptr;
    std::string called = "autotune";
    std::string what = parser_says;
    bool is_value = false;  // of the option before
    for (const std::string word : words.subspan(std::min<std::size_t>(1, words.size()))) {
        const auto name = word.substr(0, word.find('='));
        if (std::exchange(is_value, false) || word == "--") continue;
        if (word.starts_with('-') && word.size() > 2) {
            const auto known = command != nullptr
                                   ? all_spellings(*command)
                                   : std::vector<std::string>{"-h", "--help", "-V", "--version"};
            if (!contains(known, name)) {
                what = "there is no option " + name + instead_text(instead_of(name), name, known);
                break;
            }
            const OptionRow* option = command != nullptr ? option_called(*command, name) : nullptr;
            // An option of two names is called by the one that was typed.
            if (option != nullptr)
                for (const std::string& other : option->spellings())
                    if (what.starts_with(other + ": ")) what.replace(0, other.size(), name);
            if (what.starts_with(name + ": 1 req")) what = name + ": a value is missing";
            is_value =
                option != nullptr && option->takes_value() && !option->if_alone && word == name;
        } else if (command == nullptr && !word.starts_with('-')) {
            command = command_called(all, word);
            if (command == nullptr) {
                what = "there is no command '" + word + "'" +
                       instead_text(instead_of(word), word, names_of(all));
                break;
            }
            called += " " + word;
        }
    }
    return fmt::format("{}: {}\n{} --help says more\n", called, what, called);
}

}  // namespace autotune
