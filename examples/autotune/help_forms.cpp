// SPDX-License-Identifier: Apache-2.0
#include "help_forms.hpp"

#include "commands.hpp"

#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"
#include "servetune/version.hpp"

#include <fmt/core.h>
#include <boost/version.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace autotune {
namespace {

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

/// Options of earlier versions, and what to say of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> old_options{{
    {"--serve", "; the page of a run is --view now"},
    {"--token-file", "; the page is `autotune view` now"},
    {"--hangs-after", "; a unit of systemd or a compose file can check its health"},
    {"--metrics", "; packaging/grafana/alerts.yaml has rules for Prometheus"},
}};

/// What to write instead of an option that a command does not have.
std::string option_instead(const std::string& name, const std::vector<std::string>& known) {
    const auto* const old = std::find_if(old_options.begin(), old_options.end(),
                                         [&name](const auto& one) { return one.first == name; });
    return old == old_options.end() ? servetune::nearest_text(name, known)
                                    : std::string(old->second);
}

/// The words that an option takes, where it takes only these.
std::vector<std::string> words_of(const CLI::Option& option) {
    std::vector<std::string> result;
    const std::string type = option.get_type_name();  // TEXT:{csv,jsonl}
    const auto begin = type.find('{');
    const auto end = type.find('}', begin == std::string::npos ? 0 : begin);
    if (begin == std::string::npos || end == std::string::npos) return result;
    std::string word;
    for (const char c : type.substr(begin + 1, end - begin - 1) + ",") {
        if (c != ',') word += c;
        else if (!word.empty()) result.push_back(std::exchange(word, ""));
    }
    return result;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string words_joined(const std::vector<std::string>& words, const std::string& between) {
    std::string result;
    for (const std::string& word : words) result += (result.empty() ? "" : between) + word;
    return result;
}

bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

/// What stands for an option's value: its words, `N`, `NUMBER`, `TIME` or `VALUE`; empty: it takes
/// none.
std::string value_text(const CLI::Option& option) {
    if (!takes_value(option)) return "";
    const std::string type = option.get_type_name();  // UINT:INTEGER
    const auto is = [&](const char* part) { return type.find(part) != std::string::npos; };
    const auto words = words_of(option);
    std::string text = !words.empty() ? words_joined(words, "|")
                       : is("TIME")   ? "TIME"
                       : is("INT")    ? "N"
                       : is("FLOAT")  ? "NUMBER"
                                      : "VALUE";
    if (option.get_delimiter() != '\0') text += std::string(1, option.get_delimiter()) + "...";
    else if (takes_several(option) && option.get_allow_extra_args()) text += "...";
    return option.get_items_expected_min() == 0 ? "[" + text + "]" : text;
}

/// The description, and behind it the bounds, the default, and whether the option has to be there.
std::string option_described(const CLI::Option& option) {
    std::string text = option.get_description();
    const std::string type = option.get_type_name();
    if (const auto range = type.find(" in ["); range != std::string::npos) {
        std::string bounds =
            type.substr(range + 5, type.find(']', range) - range - 5);  // 1 - 65535
        if (const auto between = bounds.find(" - "); between != std::string::npos)
            bounds.replace(between, 3, " to ");
        text += ", " + bounds;
    }
    if (const std::string usual = option.get_default_str(); !usual.empty())
        text += " (default: " + usual + ")";
    if (takes_several(option) && !option.get_allow_extra_args()) text += " (can be repeated)";
    if (option.get_required() && !option.get_positional()) text += " (required)";
    return text;
}

/// `--help`, `-h`: as they are typed.
std::vector<std::string> spellings(const CLI::Option& option) {
    std::vector<std::string> result;
    for (const std::string& name : option.get_snames()) result.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) result.push_back("--" + name);
    return result;
}

class PlainFormatter : public CLI::Formatter {
public:
    std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
        return is_positional ? option->get_name(true) : words_joined(spellings(*option), ", ");
    }
    std::string make_option_opts(const CLI::Option* option) const override {
        const bool positional = spellings(*option).empty();
        const std::string value = positional ? "" : value_text(*option);
        return value.empty() ? "" : " " + value;
    }
    std::string make_option_desc(const CLI::Option* option) const override {
        return option_described(*option);
    }
    std::string make_usage(const CLI::App* app, std::string name) const override {
        const auto path =
            name.rfind('/', name.find(' '));  // the program as it was called, without its folder
        return CLI::Formatter::make_usage(app,
                                          path == std::string::npos ? name : name.substr(path + 1));
    }
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
    std::vector<const CLI::Option*> result;
    for (const CLI::Option* option : app.get_options())
        if (spellings(*option).empty() == positional) result.push_back(option);
    return result;
}

std::string quoted_for_shell(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

/// Every spelling of an app's options; with `only_values`, of those that take a value.
std::vector<std::string> all_spellings(const CLI::App& app) {
    std::vector<std::string> result;
    for (const CLI::Option* option : options_of(app, false))
        for (const std::string& one : spellings(*option)) result.push_back(one);
    return result;
}

std::string bash_script(const CLI::App& app) {
    std::vector<std::string> names;
    std::string values;
    std::string options;
    for (const CLI::App* command : commands_of(app)) {
        names.push_back(command->get_name());
        std::vector<std::string> offered = all_spellings(*command);
        std::string words_of_place;
        for (const CLI::Option* option : options_of(*command, true))
            if (const auto words = words_of(*option); !words.empty())
                words_of_place = words_joined(words, " ");
        for (const CLI::Option* option : options_of(*command, false)) {
            if (!takes_value(*option)) continue;
            std::string pattern;
            for (const std::string& one : spellings(*option))
                pattern += (pattern.empty() ? "" : "|") + command->get_name() + ":" + one;
            const auto words = words_of(*option);
            values += "    " + pattern + ") " +
                      (words.empty() ? ""
                                     : "COMPREPLY=($(compgen -W '" + words_joined(words, " ") +
                                           "' -- \"$cur\")); ") +
                      "return ;;\n";
        }
        options += "    " + command->get_name() + ") options='" + words_joined(offered, " ") +
                   "' words='" + words_of_place + "' ;;\n";
    }
    const std::vector<std::string> own = all_spellings(app);
    return "# bash: source <(autotune completion bash)\n"
           "_autotune() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' "
           "options='' words='' i\n"
           "    COMPREPLY=()\n"
           "    for ((i = 1; i < COMP_CWORD; ++i)); do\n"
           "        case ${COMP_WORDS[i]} in -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac\n"
           "    done\n"
           "    if [[ -z $command ]]; then\n"
           "        COMPREPLY=($(compgen -W '" +
           words_joined(names, " ") + " " + words_joined(own, " ") +
           "' -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    case $command:$prev in\n" +
           values +
           "    esac\n"
           "    case $command in\n" +
           options +
           "    esac\n"
           "    if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
           "    elif [[ -n $words ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); fi\n"
           "}\n"
           "complete -o default -F _autotune autotune  # where nothing is offered: files\n";
}

/// For a description of zsh's `_arguments` and `_describe`.
std::string for_zsh(const std::string& text) {
    std::string result;
    for (const char c : text)
        result += std::string_view("[]:\\").find(c) != std::string_view::npos
                      ? std::string("\\") + c
                      : std::string(1, c);
    return result;
}

std::string zsh_script(const CLI::App& app) {
    std::string commands;
    std::string arguments;
    for (const CLI::App* command : commands_of(app)) {
        commands +=
            "        " +
            quoted_for_shell(command->get_name() + ":" + for_zsh(command->get_description())) +
            "\n";
        arguments += "    " + command->get_name() + ")\n        _arguments";
        for (const CLI::Option* option : options_of(*command, false)) {
            const auto words = words_of(*option);
            const std::string what = "[" + for_zsh(option->get_description()) + "]";
            const std::string value =
                takes_value(*option)
                    ? ":value:" + (words.empty() ? std::string("_files")
                                                 : "(" + words_joined(words, " ") + ")")
                    : "";
            for (const std::string& one : spellings(*option)) {
                const std::string name =
                    takes_value(*option) && one.starts_with("--") ? one + "=" : one;
                arguments += " \\\n            " + quoted_for_shell(name + what + value);
            }
        }
        std::string place = "'*:file:_files'";
        for (const CLI::Option* option : options_of(*command, true))
            if (const auto words = words_of(*option); !words.empty())
                place = quoted_for_shell("1:" + for_zsh(option->get_name(true)) + ":(" +
                                         words_joined(words, " ") + ")");
        arguments += " \\\n            " + place + "\n        ;;\n";
    }
    return "#compdef autotune\n"
           "# zsh: source <(autotune completion zsh), or as _autotune in a folder of $fpath\n"
           "compdef _autotune autotune\n"
           "_autotune() {\n"
           "    local -a commands\n"
           "    commands=(\n" +
           commands +
           "    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe -t commands command commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $words[1] in\n" +
           arguments +
           "    esac\n"
           "}\n"
           "if [[ $funcstack[1] == _autotune ]]; then _autotune \"$@\"; fi\n";
}

std::string fish_script(const CLI::App& app) {
    const auto quoted = [](const std::string& text) {
        std::string result = "'";
        for (const char c : text)
            result += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
        return result + "'";
    };
    std::string out = "# fish: autotune completion fish | source\n";
    for (const CLI::App* command : commands_of(app))
        out += "complete -c autotune -f -n __fish_use_subcommand -a " + command->get_name() +
               " -d " + quoted(command->get_description()) + "\n";
    for (const CLI::App* command : commands_of(app)) {
        const std::string within =
            "complete -c autotune -n '__fish_seen_subcommand_from " + command->get_name() + "'";
        for (const CLI::Option* option : command->get_options()) {
            const auto words = words_of(*option);
            const std::string choice =
                words.empty() ? "" : " -a " + quoted(words_joined(words, " "));
            if (spellings(*option).empty()) {
                if (!words.empty()) out += within + " -f" + choice + "\n";
                continue;
            }
            out += within;
            for (const std::string& name : option->get_snames()) out += " -s " + name;
            for (const std::string& name : option->get_lnames()) out += " -l " + name;
            if (takes_value(*option)) out += words.empty() ? " -r" : " -x" + choice;
            out += " -d " + quoted(option->get_description()) + "\n";
        }
    }
    return out;
}

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

std::string roff_options(const CLI::App& app) {
    std::string out;
    for (const bool positional : {true, false})
        for (const CLI::Option* option : options_of(app, positional)) {
            std::string names =
                positional ? "\\fI" + for_roff(option->get_name(true)) + "\\fR" : "";
            for (const std::string& one : spellings(*option))
                names += (names.empty() ? "\\fB" : ", \\fB") + for_roff(one) + "\\fR";
            if (const std::string value = positional ? "" : value_text(*option); !value.empty())
                names += words_of(*option).empty() ? " \\fI" + for_roff(value) + "\\fR"
                                                   : " " + for_roff(value);
            out += ".TP\n" + names + "\n" + for_roff(option_described(*option)) + "\n";
        }
    return out;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> plain_help() {
    auto result = std::make_shared<PlainFormatter>();
    constexpr std::size_t column = 34;
    result->column_width(column);
    return result;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
    if (shell == "bash") return bash_script(app);
    if (shell == "zsh") return zsh_script(app);
    if (shell == "fish") return fish_script(app);
    throw servetune::UsageError("completion is for bash, zsh and fish, not for '" + shell + "'");
}

std::string manual_page(const CLI::App& app) {
    std::string out = fmt::format(".TH AUTOTUNE 1 \"\" \"servetune {}\" \"User Commands\"\n",
                                  servetune::library_version);
    out += ".SH NAME\nautotune \\- tunes the launch flags of LLM serving engines\n";
    out += ".SH SYNOPSIS\n.B autotune\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n";
    out += ".SH DESCRIPTION\n" + for_roff(app.get_description()) + "\n" + ".SH OPTIONS\n" +
           roff_options(app) + ".SH COMMANDS\n";
    for (const CLI::App* command : commands_of(app))
        out += ".SS autotune " + for_roff(command->get_name()) + "\n" +
               for_roff(command->get_description()) + ".\n" + roff_options(*command);
    out += ".SH EXIT STATUS\n";
    for (const auto& [code, meaning] : exit_codes)
        out += fmt::format(".TP\n.B {}\n{}\n", code, for_roff(std::string(meaning)));
    out +=
        ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colours on a terminal\n.TP\n.B "
        "SERVETUNE_SEARCH_SPACES\nthe folder with engines, workloads, "
        "models and hardware\n.TP\n.B SERVETUNE_TOKEN\nwhat a reader of a page has to know that "
        "others reach\n";
    return out;
}

std::string complaint_of(const CLI::App& app, const CLI::ParseError& error,
                         std::span<const char* const> words) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
    const CLI::App* command = &app;
    std::string called = "autotune";
    std::string what = error.what();
    const CLI::Option* before = nullptr;  // whose value the next word is
    for (const std::string word : words.subspan(std::min<std::size_t>(1, words.size()))) {
        const std::string name = word.substr(0, word.find('='));
        if (std::exchange(before, nullptr) != nullptr || word == "--") continue;
        if (word.starts_with("--")) {
            const auto known = all_spellings(*command);
            const CLI::Option* option = command->get_option_no_throw(name);
            if (option == nullptr) {
                what = "there is no option " + name + option_instead(name, known);
                break;
            }
            if (takes_value(*option) && option->get_items_expected_min() > 0 && word == name)
                before = option;
        } else if (command == &app && !word.starts_with('-')) {
            if (std::find(names.begin(), names.end(), word) == names.end()) {
                what = "there is no command '" + word + "'" + servetune::nearest_text(word, names);
                break;
            }
            command = app.get_subcommand(word);
            called += " " + word;
        }
    }
    return fmt::format("{}: {}\n{} --help says more\n", called, what, called);
}

std::string exit_codes_text() {
    std::string out = "Exit codes:\n";
    for (const auto& [code, meaning] : exit_codes)
        out += fmt::format("  {:<4} {}\n", code, meaning);
    return out;
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
