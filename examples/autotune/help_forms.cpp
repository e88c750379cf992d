// SPDX-License-Identifier: Apache-2.0
#include "help_forms.hpp"

#include "commands.hpp"

#include "base/template.hpp"
#include "base/nearest.hpp"
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

using servetune::fill_template;
using servetune::TemplateValues;

constexpr const char* purpose =
    "autotune finds, on your own GPU, model and traffic, the launch flags that make an LLM serving "
    "engine fastest.";
constexpr const char* of_help = "Print this help message and exit";
constexpr const char* of_version = "Print the version and exit";

constexpr std::array<std::pair<int, std::string_view>, 10> exit_codes{{
    {done, "success, also where the verdict is to keep the default, or inconclusive"},
    {answer_is_no,
     "the answer is no: an invalid study (`validate`), a worse B (`compare`), other traffic "
     "(`watch`), an unsound result, nothing to "
     "explain, another command (`recommend --check`)"},
    {usage_error,
     "usage error: a wrong option, an unreadable file, an invalid study (all but `validate`)"},
    {environment_error,
     "environment error: a missing program, a full disk, a failing A (`compare`), a folder in use, "
     "no engine that stays up (`serve`), "
     "no server (`recommend --check`)"},
    {nothing_feasible, "no configuration passes, whatever the verdict"},
    {without_results,
     "`audit` or `import`: a file has no results; the others were read, and 1 and 2 take "
     "precedence"},
    {undecided,
     "undecided: `compare` after all pairs, `capacity` if no load breaks the limits, `watch`, "
     "`recommend --check` of a server that does "
     "not tell all"},
    {left_alone, "`recommend --into`: the file cannot be changed safely and is left as it is"},
    {stopped, "stopped by the user"},
    {reader_gone,
     "the reader of standard output ended first, such as `head -1`; a run continues to its end"},
}};

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

/// The words that stand by their place, such as the kinds of shells.
std::vector<std::string> words_by_place(const CommandRow& command) {
    for (const OptionRow& option : command.options)
        if (option.by_place() && !option.words.empty()) return option.words;
    return {};
}

std::string quoted_for_shell(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

constexpr std::string_view bash_template = R"(# bash: source <(autotune completion bash)
_autotune() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' options='' words='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; ++i)); do
        case ${COMP_WORDS[i]} in -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac
    done
    if [[ -z $command ]]; then
        COMPREPLY=($(compgen -W '{{names}} -h --help --version' -- "$cur"))
        return
    fi
    case $command:$prev in
{{#values}}
    {{pattern}}) {{#words}}COMPREPLY=($(compgen -W '{{words}}' -- "$cur")); {{/words}}return ;;
{{/values}}
    esac
    case $command in
{{#commands}}
    {{name}}) options='{{options}}' words='{{words}}' ;;
{{/commands}}
    esac
    if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))
    elif [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
}
complete -o default -F _autotune autotune  # where nothing is offered: files
)";

constexpr std::string_view zsh_template = R"(#compdef autotune
# zsh: source <(autotune completion zsh), or as _autotune in a folder of $fpath
compdef _autotune autotune
_autotune() {
    local -a commands
    commands=(
{{#commands}}
        {{described|quoted}}
{{/commands}}
    )
    if ((CURRENT == 2)); then
        _describe -t commands command commands
        return
    fi
    shift words
    ((CURRENT--))
    case $words[1] in
{{#commands}}
    {{name}})
        _arguments{{#arguments}} \
            {{argument|quoted}}{{/arguments}}
        ;;
{{/commands}}
    esac
}
if [[ $funcstack[1] == _autotune ]]; then _autotune "$@"; fi
)";

constexpr std::string_view fish_template = R"(# fish: autotune completion fish | source
{{#commands}}
complete -c autotune -f -n __fish_use_subcommand -a {{name}} -d {{what|fish}}
{{/commands}}
{{#commands}}
{{#entries}}
complete -c autotune -n '__fish_seen_subcommand_from {{name}}' {{entry}}
{{/entries}}
{{/commands}}
)";

/// What `_arguments` of zsh takes for a command.
std::vector<TemplateValues> zsh_arguments(const CommandRow& command) {
    const auto escaped = [](const std::string& text) { return with_backslashes(text, "[]:\\"); };
    std::vector<TemplateValues> result;
    const auto add = [&](std::string text) { result.push_back({{{"argument", std::move(text)}}}); };
    for (const OptionRow& option : command.options)
        for (const std::string& one : option.spellings())
            add(one + (option.takes_value() && one.starts_with("--") ? "=" : "") + "[" +
                escaped(option.help) + "]" +
                (!option.takes_value()  ? ""
                 : option.words.empty() ? ":value:_files"
                                        : ":value:(" + joined_by(option.words, " ") + ")"));
    const std::vector<std::string> words = words_by_place(command);
    add(words.empty() ? "*:file:_files" : "1:word:(" + joined_by(words, " ") + ")");
    return result;
}

std::string quoted_for_fish(const std::string& text) {
    return "'" + with_backslashes(text, "'\\") + "'";
}

/// What `complete` of fish takes for a command.
std::vector<TemplateValues> fish_entries(const CommandRow& command) {
    std::vector<TemplateValues> result;
    const auto add = [&](std::string text) { result.push_back({{{"entry", std::move(text)}}}); };
    if (const auto words = words_by_place(command); !words.empty())
        add("-f -a '" + joined_by(words, " ") + "'");
    for (const OptionRow& option : command.options) {
        if (option.by_place()) continue;
        std::string entry;
        for (const std::string& one : option.spellings())
            entry += (one.starts_with("--") ? "-l " + one.substr(2) : "-s " + one.substr(1)) + " ";
        if (!option.words.empty()) entry += "-x -a '" + joined_by(option.words, " ") + "' ";
        else if (option.takes_value()) entry += "-r ";
        add(entry + "-d " + quoted_for_fish(option.help));
    }
    return result;
}

TemplateValues completion_values(const std::vector<CommandRow>& all) {
    TemplateValues values{{{"names", joined_by(names_of(all), " ")}}};
    for (const CommandRow& command : all) {
        values.lists["commands"].push_back(
            {{{"name", command.name},
              {"what", command.what},
              {"described", command.name + ":" + with_backslashes(command.what, "[]:\\")},
              {"options", joined_by(all_spellings(command), " ")},
              {"words", joined_by(words_by_place(command), " ")}},
             {{"arguments", zsh_arguments(command)}, {"entries", fish_entries(command)}}});
        for (const OptionRow& option : command.options) {
            if (!option.takes_value() || option.by_place()) continue;
            std::vector<std::string> patterns;
            for (const std::string& one : option.spellings())
                patterns.push_back(command.name + ":" + one);
            values.lists["values"].push_back(
                {{{"pattern", joined_by(patterns, "|")}, {"words", joined_by(option.words, " ")}}});
        }
    }
    return values;
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

/// The option of this spelling; nullptr: there is none.
const OptionRow* option_called(const CommandRow& command, const std::string& name) {
    for (const OptionRow& option : command.options)
        for (const std::string& one : option.spellings())
            if (one == name) return &option;
    return nullptr;
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
    for (const auto& [code, meaning] : exit_codes)
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

std::string completion_script(const std::vector<CommandRow>& all, const std::string& shell) {
    const std::string_view text = shell == "bash"  ? bash_template
                                  : shell == "zsh" ? zsh_template
                                                   : fish_template;
    return fill_template(text, completion_values(all),
                         {{"quoted", quoted_for_shell}, {"fish", quoted_for_fish}});
}

std::string manual_page(const std::vector<CommandRow>& all) {
    std::string out = fmt::format(
        R"(.TH AUTOTUNE 1 "" "servetune {}" "User Commands"
.SH NAME
autotune \- tunes the launch flags of LLM serving engines
.SH SYNOPSIS
.B autotune
\fICOMMAND\fR [\fIOPTIONS\fR]
.SH DESCRIPTION
{}
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
{}
.TP
\fB\-\-version\fR
{}
.SH COMMANDS
)",
        servetune::library_version, for_roff(purpose), of_help, of_version);
    for (const CommandRow& command : all) {
        out +=
            fmt::format(".SS autotune {}\n{}.\n", for_roff(command.name), for_roff(command.what));
        for (const OptionRow& option : command.options) out += roff_option(option);
    }
    out += ".SH EXIT STATUS\n";
    for (const auto& [code, meaning] : exit_codes)
        out += fmt::format(".TP\n.B {}\n{}\n", code, for_roff(std::string(meaning)));
    return out + R"(.SH ENVIRONMENT
.TP
.B NO_COLOR
no colours on a terminal
.TP
.B SERVETUNE_SEARCH_SPACES
the folder with engines, workloads, models and hardware
.TP
.B SERVETUNE_TOKEN
what a reader of a page has to know that others reach
)";
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
    for (const auto& [code, meaning] : exit_codes)
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
            const auto found = std::find_if(
                all.begin(), all.end(), [&](const CommandRow& one) { return one.name == word; });
            if (found == all.end()) {
                what = "there is no command '" + word + "'" +
                       instead_text(instead_of(word), word, names_of(all));
                break;
            }
            command = &*found;
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
