// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include "templates.hpp"

#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"
#include "servetune/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/Version.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace autotune {
namespace {

constexpr const char* purpose =
    "autotune finds, on your own GPU, model and traffic, the launch flags that make an LLM serving "
    "engine fastest.";
constexpr const char* of_help = "Print this help message and exit";
constexpr const char* of_version = "Print the version and exit";

std::string joined_by(const std::vector<std::string>& words, std::string_view between) {
    return fmt::format("{}", fmt::join(words, between));
}

/// `text` with a backslash before each of these characters.
std::string with_backslashes(const std::string& text, std::string_view before) {
    std::string result;
    for (const char c : text)
        result += before.find(c) == before.npos ? std::string(1, c) : std::string("\\") + c;
    return result;
}

/// As it stands in a list: `--port N`, `STUDY`.
std::string shown_name(const OptionRow& option) {
    if (option.by_place()) return option.names;
    const std::string value = option.value_text();
    return joined_by(option.spellings(), ", ") + (value.empty() ? "" : " " + value);
}

std::string help_line(const std::string& name, const std::string& what) {
    constexpr std::size_t column = 34;
    return name.size() + 3 > column ? fmt::format("  {}\n{:{}}{}\n", name, "", column, what)
                                    : fmt::format("  {:{}}{}\n", name, column - 2, what);
}

std::vector<std::string> names_of(const std::vector<CommandRow>& all) {
    std::vector<std::string> result;
    for (const CommandRow& command : all) result.push_back(command.name);
    return result;
}

std::vector<std::string> all_spellings(const CommandRow& command) {
    std::vector<std::string> result{"-h", "--help"};
    for (const OptionRow& option : command.options)
        for (const std::string& one : option.spellings()) result.push_back(one);
    return result;
}

/// The option of this spelling; nullptr: there is none.
const OptionRow* option_called(const CommandRow& command, const std::string& name) {
    for (const OptionRow& option : command.options)
        for (const std::string& one : option.spellings())
            if (one == name) return &option;
    return nullptr;
}

/// nullptr: there is none.
const CommandRow* command_called(const std::vector<CommandRow>& all, std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const CommandRow& one) { return one.name == name; });
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

std::string roff_option(const OptionRow& option) {
    std::string names = option.by_place() ? "\\fI" + for_roff(option.names) + "\\fR" : "";
    for (const std::string& one : option.spellings())
        names += (names.empty() ? "\\fB" : ", \\fB") + for_roff(one) + "\\fR";
    if (const std::string value = option.value_text(); !value.empty() && !option.by_place())
        names += option.words.empty() ? " \\fI" + for_roff(value) + "\\fR" : " " + for_roff(value);
    return ".TP\n" + names + "\n" + for_roff(option.described()) + "\n";
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

/// `; nearest: ...`, or what to use in place of what an earlier version had.
std::string instead_text(const std::string& instead, const std::string& name,
                         const std::vector<std::string>& known) {
    return instead.empty() ? servetune::nearest_text(name, known) : "; " + instead;
}

}  // namespace

std::string help_text(const std::vector<CommandRow>& all) {
    std::string out =
        fmt::format("{}\nUsage: autotune [OPTIONS] COMMAND\n\nOptions:\n{}{}", purpose,
                    help_line("-h, --help", of_help), help_line("--version", of_version));
    std::string_view group;
    for (const CommandRow& command : all) {
        if (group != command.group) out += "\n" + command.group + ":\n";
        group = command.group;
        out += fmt::format("  {:12}{}\n", command.name, command.what);
    }
    out += "\nExit codes:\n";
    for (const auto& [code, meaning] : exit_codes())
        out += fmt::format("  {:<4} {}\n", code, meaning);
    return out;
}

std::string help_text(const CommandRow& command) {
    std::string places, options = "\nOptions:\n" + help_line("-h, --help", of_help);
    for (const OptionRow& option : command.options)
        (option.by_place() ? places : options) += help_line(shown_name(option), option.described());
    return fmt::format("{}\nUsage: autotune {}\n{}{}\nExit codes: autotune --help\n", command.what,
                       usage_of(command), places.empty() ? "" : "\nArguments:\n" + places, options);
}

std::string completion_script(const std::string& shell) {
    return std::string((shell == "bash"  ? servetune::completion_bash_in
                        : shell == "zsh" ? servetune::completion_zsh_in
                                         : servetune::completion_fish_in)
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
    for (const OptionRow& option : command->options) {
        if (before != nullptr ? &option == before : option.by_place())
            for (const std::string& word : option.words) offer(word, "");
        else if (before == nullptr && last.starts_with('-'))
            for (const std::string& one : option.spellings()) offer(one, option.help);
    }
    return result;
}

std::string manual_page(const std::vector<CommandRow>& all) {
    servetune::TemplateValues values{{{"version", std::string(servetune::library_version)},
                                      {"purpose", purpose},
                                      {"help", of_help},
                                      {"version_help", of_version}}};
    for (const CommandRow& command : all) {
        std::string options;
        for (const OptionRow& option : command.options) options += roff_option(option);
        values.lists["commands"].push_back(
            {{{"name", command.name}, {"what", command.what}, {"options", options}}});
    }
    for (const auto& [code, meaning] : exit_codes())
        values.lists["codes"].push_back({{{"code", std::to_string(code)}, {"meaning", meaning}}});
    return fill_template(servetune::manual_1_in.text, values, {{"roff", for_roff}});
}

std::string markdown_page(const std::vector<CommandRow>& all) {
    const auto row = [](const std::string& name, const std::string& what) {
        return "| `" + with_backslashes(name, "|") + "` | " + with_backslashes(what, "|") + " |\n";
    };
    std::string out;
    for (const CommandRow& command : all) {
        out += "<!-- autotune " + command.name + " -->\n\n" + row(usage_of(command), command.what) +
               "|---|---|\n";
        for (const OptionRow& option : command.options)
            out += row(shown_name(option), option.described());
        out += "\n<!-- end -->\n";
    }
    out += "<!-- exit codes -->\n\n| code | meaning |\n|---|---|\n";
    for (const auto& [code, meaning] : exit_codes())
        out += fmt::format("| {} | {} |\n", code, meaning);
    return out + "\n<!-- end -->\n";
}

std::string complaint_of(const std::vector<CommandRow>& all, const std::string& parser_says,
                         std::span<const char* const> words) {
    const CommandRow* command = nullptr;
    std::string called = "autotune";
    std::string what = parser_says;
    bool is_value = false;  // of the option before
    for (const std::string word : words.subspan(std::min<std::size_t>(1, words.size()))) {
        const std::string name = word.substr(0, word.find('='));
        if (std::exchange(is_value, false) || word == "--") continue;
        if (word.starts_with("--")) {
            const auto known = command != nullptr
                                   ? all_spellings(*command)
                                   : std::vector<std::string>{"-h", "--help", "--version"};
            if (std::find(known.begin(), known.end(), name) == known.end()) {
                const std::string of = command != nullptr ? command->name : "";
                what =
                    "there is no option " + name + instead_text(instead_of(of, name), name, known);
                break;
            }
            const OptionRow* option = command != nullptr ? option_called(*command, name) : nullptr;
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

std::string version_text() {
#if defined(__clang__)
    std::string compiler = "clang " __clang_version__;
    while (compiler.ends_with(' ')) compiler.pop_back();  // zig's
#else
    const std::string compiler = "g++ " __VERSION__;
#endif
#if defined(NDEBUG)
    const char* const checks = "without assertions";
#else
    const char* const checks = "with assertions";
#endif
    constexpr int of_major = 100'000;
    constexpr int of_minor = 100;
    return fmt::format("autotune {}\nbuilt with {}, {}; Boost {}.{}.{}, fmt {}.{}.{}, CLI11 {}",
                       servetune::library_version, compiler, checks, BOOST_VERSION / of_major,
                       BOOST_VERSION / of_minor % 1000, BOOST_VERSION % of_minor,
                       FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
                       CLI11_VERSION);
}

}  // namespace autotune
