// SPDX-License-Identifier: Apache-2.0
#include "serving_command.hpp"

#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "engine/launcher.hpp"
#include "server_settings.hpp"
#include "servetune/detail/interop/published.hpp"
#include "servetune/error.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace servetune {
namespace {

using Words = std::vector<std::string>;

/// Words of a shell between which a line may run, or not, or often.
bool begins_branch(std::string_view line) {
    constexpr std::array<std::string_view, 8> words{"if",    "case",   "for",      "while",
                                                    "until", "select", "function", "elif"};
    return is_one_of(line.substr(0, line.find_first_of(" \t;")), words) || line.ends_with("() {") ||
           line.ends_with("(){");
}

/// The YAML file from which a command reads settings; empty: none.
std::string settings_file(const Words& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        const bool joined = words[i].starts_with("--") && equals != std::string::npos;
        const std::string value = joined ? words[i].substr(equals + 1) : words[i];
        const bool is_value = joined || words[i - 1].starts_with("--");
        if (is_value && (value.ends_with(".yaml") || value.ends_with(".yml")) &&
            value.find_first_of(" {") == std::string::npos)
            return value;
    }
    return "";
}

std::string joined_segment(const Words& words) { return cut_to(joined_words(words), 200); }

}  // namespace

const Engine* ServingCommands::launched(const Words& words, std::size_t at) const {
    return launched_at(engines_, words, at).engine;
}

const Engine* ServingCommands::engine_of_image(const std::string& word) const {
    for (const Engine& engine : engines_)
        for (const std::string& image : engine.images) {
            const auto at = word.find(image);
            if (at == std::string::npos || (at > 0 && word[at - 1] != '/')) continue;
            const std::size_t behind = at + image.size();
            const bool has_tag = image.find(':') != std::string::npos;
            if (behind == word.size() || word[behind] == '@' ||
                word[behind] == (has_tag ? '-' : ':'))
                return &engine;
        }
    return nullptr;
}

ServingCommand ServingCommands::launched_by(const Words& words, const Variables& exported) const {
    Variables own;  // of this command, beside what is exported: that is copied for a launch only
    const auto sets = [&](const std::string& word) {
        const auto equals = word.find('=');
        own[word.substr(0, equals)] = unquoted(std::string_view(word).substr(equals + 1));
    };
    std::size_t first = 0;
    while (first < words.size() && is_assignment(words[first])) sets(words[first++]);
    if (first == words.size()) return {};
    const std::string program(program_name(words[first]));
    bool container = is_one_of(program, container_programs);
    if (is_one_of(program, wrappers))  // `sudo docker run`, `nohup podman run`
        for (std::size_t at = first + 1; at + 1 < words.size() && !container; ++at) {
            if (launched(words, at) != nullptr || words[at].find(' ') != std::string::npos) break;
            container =
                is_one_of(program_name(words[at]), container_programs) && words[at + 1] == "run";
        }
    const bool wrapped = container || is_one_of(program, wrappers);
    const auto environment = [&] {
        Variables all = exported;
        for (const auto& [name, value] : own) all[name] = value;
        std::string before;
        for (const auto& [name, value] : all)
            if (!changes_nothing(name)) before += joined_words({name + "=" + value}) + " ";
        return before;
    };
    const auto answer = [&](const Engine& engine, const Words& command) {
        return ServingCommand{environment() + joined_words(command), lower_case(engine.name), ""};
    };
    const auto from = [&](std::size_t at) {
        return Words(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    };
    std::size_t assigned =
        words.size();  // the last word that was an assignment for the program behind; none yet
    for (std::size_t at = first; at < words.size() && (at == first || wrapped); ++at) {
        // A container's own options may hold a `=`; `env` behind its image is one more wrapper.
        if (at > first && is_assignment(words[at]) &&
            (!container || words[at - 1] == "-e" || words[at - 1] == "--env" ||
             words[at - 1] == "env" || assigned + 1 == at)) {
            sets(words[at]);
            if (!container || words[at - 1] == "env" || assigned + 1 == at) assigned = at;
        }
        if (container && at > first && is_one_of(words[at - 1], container_names)) continue;
        if (container && words[at].starts_with("--entrypoint"))
            return {"", "", "a container with another program: " + joined_segment(words)};
        if (container && words[at].starts_with("--env=") && is_assignment(words[at].substr(6)))
            sets(words[at].substr(6));
        if (const Engine* engine = launched(words, at)) return answer(*engine, from(at));
        // `sh -c "..."`: a command in one word.
        if (at > first && words[at].find(' ') != std::string::npos &&
            words[at - 1].starts_with('-') && words[at - 1].ends_with('c')) {
            ServingCommand inside = in_output(words[at]);
            if (!inside.text.empty()) inside.text = environment() + inside.text;
            return inside;
        }
        if (!container) continue;
        const Engine* engine = engine_of_image(words[at]);
        if (engine == nullptr) continue;
        bool launches = false;  // what the image is told to run, in place of its own entry point
        for (std::size_t rest = at + 1; rest < words.size() && !launches; ++rest)
            launches = launched(words, rest) != nullptr;
        if (launches) continue;
        Words command = launcher_words(*engine);
        const Words more = from(at + 1);
        command.insert(command.end(), more.begin(), more.end());
        return answer(*engine, command);
    }
    return {};
}

/// What was read of a text so far.
struct ServingCommands::Script {
    Variables shell{}, exported{};
    std::vector<ServingCommand> found{};  ///< different ones; two are as bad as more
    std::size_t launches = 0;
    std::string unsure{};   ///< why a command of this text is not certain
    std::string unknown{};  ///< a part that may start a server

    void doubt(const std::string& why) {
        if (unsure.empty()) unsure = why;
    }
    void assign(const std::string& word, bool exports) {
        constexpr std::size_t longest = 16384, most = 200;
        const std::string name(assigned_name(word));
        const std::string value = unquoted(std::string_view(word).substr(word.find('=') + 1));
        std::string& now = shell[name];
        now = word.find("+=") == name.size() && now.size() <= longest ? now + value : value;
        if ((exports || exported.contains(name)) && exported.size() < most) exported[name] = now;
    }
    void forget(const std::string& name) {
        shell.erase(name);
        exported.erase(name);
    }
};

void ServingCommands::read_segment(Words words, Script& script) const {
    const bool exports = words.front() == "export" || words.front() == "set";
    const auto begin = words.begin() + (exports ? 1 : 0);
    const auto assigns = [](const std::string& word) { return !assigned_name(word).empty(); };
    if (begin != words.end() && std::all_of(begin, words.end(), assigns)) {
        constexpr std::size_t most_variables = 1000;  // of any script
        for (auto word = begin; word != words.end(); ++word)
            if (script.shell.size() < most_variables)
                script.assign(filled_in(*word, script.shell), exports);
        return;
    }
    bool several = false;  // a shell makes several words of one variable
    for (std::string& word : words) {
        const bool had_blank = word.find(' ') != std::string::npos;
        word = filled_in(word, script.shell);
        several = several || (!had_blank && word.find(' ') != std::string::npos);
    }
    ServingCommand command = launched_by(words, script.exported);
    if (!command.not_recognised.empty()) return script.found.push_back(std::move(command));
    if (command.text.empty()) {
        if (script.unknown.empty() && !serves_nothing(joined_words(words)))
            script.unknown = joined_segment(words);
        return;
    }
    if (says_only_help(command.text)) return;
    if (several) script.doubt("a variable of several words: " + joined_segment(words));
    if (const std::string file = settings_file(words); !file.empty())
        script.doubt("its settings are in the file " + file + ": " + joined_segment(words));
    ++script.launches;
    if (script.found.empty() || script.found.front().text != command.text)
        script.found.push_back(std::move(command));
}

void ServingCommands::read_line(std::string_view line, Script& script) const {
    if (begins_branch(line))
        script.doubt("the script has branches, loops or functions: " + cut_to(line, 120));
    if (line.find("$(") != std::string_view::npos || line.find('`') != std::string_view::npos) {
        const Words words = shell_words(line);
        bool launches = false;
        for (std::size_t at = 0; at < words.size() && !launches; ++at)
            launches = launched(words, at) != nullptr;
        if (launches)
            script.found.push_back(
                {"", "", "a part of it is what another command prints: " + cut_to(line, 120)});
        const std::string name(
            words.empty()
                ? std::string_view()
                : assigned_name(words.front() == "export" ? words.back() : words.front()));
        script.forget(name);
        if (words.size() > 1 && words.front() == "export" && !changes_nothing(name))
            script.doubt("a part of its environment is what another command prints: " +
                         cut_to(line, 120));
        if (!launches && name.empty() && script.unknown.empty() && !serves_nothing(line))
            script.unknown = cut_to(line, 200);
        return;
    }
    std::vector<Words> segments(1);
    bool piped = false;  // what a command prints goes into it
    bool file = false;   // of a redirection
    for (std::string& word : shell_words(line)) {
        if (word.starts_with('#')) break;  // a comment behind the command
        const bool begins =
            word == "&&" || word == "||" || word == "|" || word == ";" || word == "&";
        if (begins) {
            piped = word == "|";
            segments.emplace_back();
            continue;
        }
        const bool redirects = word.starts_with('>') || word.starts_with("2>") ||
                               word.starts_with("1>") || word.starts_with("&>");
        if (piped || std::exchange(file, redirects && word.ends_with('>')) || redirects) continue;
        const bool ends = word.size() > 1 && word.back() == ';';
        if (ends) word.pop_back();
        segments.back().push_back(std::move(word));
        if (ends) segments.emplace_back();
    }
    for (Words& segment : segments)
        if (!segment.empty()) read_segment(std::move(segment), script);
}

ServingCommand ServingCommands::in_text(std::string_view text, bool is_script) const {
    Script script;
    constexpr std::size_t most =
        100;  // bounds the work: each launch costs as much as its variables
    for (const std::string& line : shell_lines(text))
        if (script.found.size() < 2 && script.launches < most)
            read_line(without_prompt(line), script);
    if (script.found.empty() && is_script && script.unknown.empty())
        for (const auto& [name, value] : script.exported)  // an environment without its command
            if (!changes_nothing(name))
                return {"", "", "export " + cut_to(name + "=" + value, 180)};
    if (script.found.empty()) return {"", "", is_script ? script.unknown : ""};
    if (script.found.size() > 1)
        return {"", "",
                "several commands: " + cut_to(script.found[0].text, 80) + " | " +
                    cut_to(script.found[1].text, 80)};
    if (is_script)
        script.doubt(
            script.unknown.empty() ? "" : "a line beside it is not understood: " + script.unknown);
    if (!script.unsure.empty()) return {"", "", script.unsure};
    return script.found.front();
}

std::string ServingCommands::engine_named(std::string_view heading) const {
    std::set<std::string> named;
    for (const std::string& word : words_of_title(heading)) {
        // Engines that we do not serve ourselves: a block under their name has no command of ours.
        constexpr std::array<std::string_view, 6> others{"mindie", "lmdeploy", "tgi",
                                                         "ollama", "mlc-llm",  "exllamav2"};
        if (is_one_of(word, others)) named.insert(word);
        for (const Engine& engine : engines_) {
            const std::string name = lower_case(engine.name);
            const auto program = launcher_words(engine);
            if (word == name || word.starts_with(name + "-") ||
                (program.size() == 1 && word == program.front()))
                named.insert(name);
        }
    }
    return named.size() == 1 ? *named.begin() : "";
}

bool ServingCommands::is_choice(std::string_view word) const {
    for (const Engine& engine : engines_)
        for (const EngineParameter& declared : engine.parameters)
            if (const auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain))
                for (const Value& value : choice->values)
                    if (!is_unset(value) && std::holds_alternative<std::string>(value) &&
                        text_of(value) == word && word != "none" && word != "auto")
                        return true;
    return false;
}

void give_command(std::vector<PublishedResult>& results, const std::string& command,
                  const std::vector<Engine>& engines) {
    const ServingCommand given = ServingCommands(engines).in_script(command);
    if (given.text.empty())
        throw UsageError("--command: wanted the command that starts an engine, got '" + command +
                         "'" + (given.not_recognised.empty() ? "" : ": " + given.not_recognised));
    const auto engine = std::find_if(engines.begin(), engines.end(), [&](const Engine& one) {
        return lower_case(one.name) == given.engine;
    });
    for (PublishedResult& result : results) {
        if (!result.arguments_unknown) continue;
        std::string arguments = given.text;
        if (engine != engines.end()) {
            const auto own = changing_settings(*engine, result, results);
            const bool knows_failure = result.server_settings_are_given &&
                                       why_settings_not_known(*engine, result, own).empty();
            if (!result.failure.empty() && (own.empty() || !knows_failure)) continue;
            add_settings(arguments, *engine, own);
        } else if (!result.failure.empty()) continue;
        result.arguments = std::move(arguments);
        result.engine = given.engine;
        result.arguments_unknown = false;
        result.not_recognised.clear();
    }
}

}  // namespace servetune
