// SPDX-License-Identifier: Apache-2.0
#include "serving_command.hpp"

#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "engine/failure_reader.hpp"
#include "options_files.hpp"
#include "shell_branches.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>

namespace servetune {
namespace {

using Words = std::vector<std::string>;

/// A program is the same wherever it lies, and one Python is as good as another.
bool same_launcher(std::string_view a, std::string_view b) {
    a = program_name(a);
    b = program_name(b);
    return a == b || (a.starts_with("python") && b.starts_with("python"));
}

/// Several commands, of which nobody knows the one that was measured, are none; one is itself.
ServingCommand only_one(std::vector<ServingCommand> found) {
    if (found.size() == 1) return std::move(found.front());
    ServingCommand result{"", "", "several commands: " + cut_to(found[0].text, 80) + " | " + cut_to(found[1].text, 80)};
    result.several = std::move(found);
    return result;
}

void add_different(std::vector<ServingCommand>& found, ServingCommand command) {
    constexpr std::size_t enough = 100;  // nobody chooses among more
    const auto same = [&](const ServingCommand& other) { return other.text == command.text; };
    if (found.size() < enough && std::none_of(found.begin(), found.end(), same)) found.push_back(std::move(command));
}

/// The words of a title in lower case, dots and dashes inside them kept.
Words title_words(std::string_view title) {
    Words result;
    std::string word;
    const auto end_word = [&] {
        while (!word.empty() && (word.back() == '.' || word.back() == '-')) word.pop_back();
        if (!word.empty()) result.push_back(word);
        word.clear();
    };
    for (const char c : title) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0 || c == '.' || c == '-') word += static_cast<char>(std::tolower(u));
        else end_word();
    }
    end_word();
    return result;
}

/// The words before the first flag or blank of a launch template.
Words launch_words(const Words& launch) {
    Words result;
    for (const std::string& word : launch) {
        if (word.find('{') != std::string::npos || word.starts_with("--")) break;
        result.push_back(word);
    }
    if (!result.empty() && result.back().starts_with('-')) result.pop_back();
    return result;
}

/// A text that Kubernetes or Docker Compose starts containers from. What it starts is not read.
bool is_manifest(std::string_view text) {
    bool result = false;
    for_each_trimmed_line(text, [&](std::string_view line) {
        if (line.starts_with("- ")) line = trimmed(line.substr(2));
        result = result || line.starts_with("image: ") || line.starts_with("kind: ");
    });
    return result;
}

}  // namespace

const Engine* ServingCommands::launched_at(const std::vector<std::string>& words, std::size_t at) const {
    const Engine* found = nullptr;
    std::size_t longest = 0;
    for (const Engine& engine : engines_) {
        std::vector<Words> starts = engine.started_as;
        starts.push_back(launch_words(engine.launch));
        for (const Words& start : starts) {
            if (start.size() <= longest || at + start.size() > words.size() || !same_launcher(words[at], start.front())) continue;
            if (!std::equal(start.begin() + 1, start.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1)) continue;
            found = &engine;
            longest = start.size();
        }
    }
    return found;
}

const Engine* ServingCommands::engine_of_image(const std::string& word) const {
    for (const Engine& engine : engines_)
        for (const std::string& image : engine.images) {
            const auto at = word.find(image);
            if (at == std::string::npos || (at > 0 && word[at - 1] != '/')) continue;
            const std::size_t behind = at + image.size();
            const bool has_tag = image.find(':') != std::string::npos;
            if (behind == word.size() || word[behind] == '@' || word[behind] == (has_tag ? '-' : ':')) return &engine;
        }
    return nullptr;
}

std::optional<ServingCommand> ServingCommands::in_segment(Words words, const Variables& exported) const {
    Variables own;  // of this command, beside what is exported: that is copied for a launch only
    const auto sets = [&](const std::string& word) {
        const auto equals = word.find('=');
        own[word.substr(0, equals)] = unquoted(std::string_view(word).substr(equals + 1));
    };
    const auto environment = [&] {
        Variables result = exported;
        for (const auto& [name, value] : own) result[name] = value;
        return result;
    };
    std::size_t first = 0;
    while (first < words.size() && is_assignment(words[first])) sets(words[first++]);
    if (first == words.size()) return std::nullopt;
    if (const std::size_t begin = executed_at(words, first); begin > 0) {
        for (std::size_t at = first; at + 1 < begin; ++at) {
            if ((words[at] == "-e" || words[at] == "--env") && is_assignment(words[at + 1])) sets(words[at + 1]);
            if (words[at].starts_with("--env=") && is_assignment(words[at].substr(6))) sets(words[at].substr(6));
        }
        const Words program(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
        return executed_at(program, 0) > 0 ? std::nullopt : in_segment(program, environment());
    }
    const std::string program(program_name(words[first]));
    bool container = is_one_of(program, container_programs);
    if (is_one_of(program, wrappers))  // `sudo docker run`, `nohup podman run`
        for (std::size_t at = first + 1; at + 1 < words.size() && !container; ++at) {
            if (launched_at(words, at) != nullptr || words[at].find(' ') != std::string::npos) break;
            container = is_one_of(program_name(words[at]), container_programs) && words[at + 1] == "run";
        }
    const bool wrapped = container || is_one_of(program, wrappers);
    const auto answer = [&](const Engine& engine, Words command) {
        std::string before;
        for (const auto& [name, value] : environment())
            if (!changes_nothing(name)) before += joined_words({name + "=" + value}) + " ";
        return ServingCommand{before + joined_words(command), lower_case(engine.name), ""};
    };
    const auto from = [&](std::size_t at) { return Words(words.begin() + static_cast<std::ptrdiff_t>(at), words.end()); };
    std::string entry;                    // what the container starts in place of its image's program
    std::size_t assigned = words.size();  // the last word that was an assignment for the program behind; none yet
    for (std::size_t at = first; at < words.size() && (at == first || wrapped); ++at) {
        // A container's own options may hold a `=`; `env` behind its image is one more wrapper.
        if (at > first && is_assignment(words[at]) &&
            (!container || words[at - 1] == "-e" || words[at - 1] == "--env" || words[at - 1] == "env" || assigned + 1 == at)) {
            sets(words[at]);
            if (!container || words[at - 1] == "env" || assigned + 1 == at) assigned = at;
        }
        if (container && at > first && is_one_of(words[at - 1], container_names)) continue;
        if (container && at > first && words[at - 1] == "--entrypoint") {
            entry = words[at];
            continue;
        }
        if (container && words[at].starts_with("--entrypoint=")) entry = words[at].substr(13);
        if (container && words[at].starts_with("--env=") && is_assignment(words[at].substr(6))) sets(words[at].substr(6));
        if (const Engine* engine = launched_at(words, at)) return answer(*engine, from(at));
        // `sh -c "..."`: a command in one word.
        if (at > first && words[at].find(' ') != std::string::npos && words[at - 1].starts_with('-') && words[at - 1].ends_with('c')) {
            Variables shell, inside = environment();
            return in_shell_line(words[at], shell, inside);
        }
        if (!container) continue;
        const Engine* engine = engine_of_image(words[at]);
        if (engine == nullptr) continue;
        Words command;
        if (!entry.empty()) {
            command = from(at);
            command.front() = entry;
            return launched_at(command, 0) == nullptr ? std::nullopt : std::optional(answer(*launched_at(command, 0), command));
        }
        bool launches = false;  // what the image is told to run, in place of its own entry point
        for (std::size_t rest = at + 1; rest < words.size() && !launches; ++rest) launches = launched_at(words, rest) != nullptr;
        if (launches) continue;
        command = launch_words(engine->launch);
        const Words more = from(at + 1);
        command.insert(command.end(), more.begin(), more.end());
        return answer(*engine, command);
    }
    return std::nullopt;
}

std::optional<ServingCommand> ServingCommands::in_shell_line(std::string_view line, Variables& shell, Variables& exported) const {
    line = without_prompt(line);
    if (set_array(line, shell)) return std::nullopt;
    const Substitutions substitutions(line);
    Words words;
    for (const std::string& printed : shell_words(substitutions.line())) {
        const std::string inside = substitutions.inside(printed);
        if (inside.starts_with("echo ") && inside.find_first_of("|;&<>`(") == std::string::npos) {  // what it prints is the value
            Words value;
            for (const std::string& word : shell_words(std::string_view(inside).substr(5)))
                for (std::string& one : filled_in_words(word, shell)) value.push_back(std::move(one));
            words.push_back(printed.substr(0, printed.find('=') + 1) + joined_words(value));
            continue;
        }
        // `PID=$(vllm serve ... & echo $!)`; what is inside that again starts no server.
        if (!inside.empty() && !serves_nothing(inside) && inside.find("=$(") == std::string::npos &&
            inside.find("=`") == std::string::npos) {
            Variables inner = shell, inner_exported = exported;
            if (auto found = in_shell_line(inside, inner, inner_exported)) return found;
        }
        for (std::string& word : filled_in_words(printed, shell)) words.push_back(std::move(word));
    }
    std::vector<Words> segments(1);
    for (std::string& word : words) {
        if (word.starts_with('#') && word != "#") break;  // a comment behind the command
        if (word == "#") break;
        const bool redirects = word.starts_with('>') || word.starts_with("2>") || word.starts_with("1>") || word.starts_with("&>");
        if (word == "&&" || word == "||" || word == "|" || word == ";" || word == "&" || redirects) {
            segments.emplace_back();
            if (redirects) break;
            continue;
        }
        const bool ends = word.size() > 1 && word.back() == ';';
        if (ends) word.pop_back();
        segments.back().push_back(substitutions.restored(word));
        if (ends) segments.emplace_back();
    }
    for (Words& segment : segments) {
        if (segment.empty()) continue;
        const bool exports = segment.front() == "export" || segment.front() == "set";
        const auto begin = segment.begin() + (exports ? 1 : 0);
        const auto assigns = [](const std::string& word) { return !assigned_name(word).empty(); };
        if (begin != segment.end() && std::all_of(begin, segment.end(), assigns)) {
            for (auto word = begin; word != segment.end(); ++word) {
                const std::string name(assigned_name(*word));
                const std::string value = unquoted(std::string_view(*word).substr(word->find('=') + 1));
                constexpr std::size_t longest = 16384;
                constexpr std::size_t most_variables = 1000, most_exported = 200;  // of any script
                if (shell.size() >= most_variables && !shell.contains(name)) continue;
                if (word->find("+=") == name.size()) shell[name] = shell[name].size() > longest ? value : shell[name] + value;
                else shell[name] = value;
                if (exports && exported.size() < most_exported) exported[name] = shell[name];
            }
            continue;
        }
        if (auto found = in_segment(segment, exported)) return found;
    }
    return std::nullopt;
}

std::optional<ServingCommand> ServingCommands::in_script(std::string_view text, bool is_shell) const {
    Variables shell, exported;
    ShellBranches branches;
    OpenQuotes quotes;
    std::vector<ServingCommand> found;
    std::string unknown;
    bool measures = false;
    // Each launch costs as much as there are variables. No script has so many launches.
    constexpr std::size_t most_launches = 1000;
    std::size_t launches = 0, started_behind = 0;
    for (const std::string& printed : closed_shell_lines(text)) {
        if (launches == most_launches) break;
        if (quotes.goes_on(printed)) continue;
        const std::string_view line = without_preparation(without_prompt(printed));
        if (serves_nothing(line)) {
            measures = true;
            // `vllm serve ... & sleep 60 && vllm bench serve ...`
            const std::string_view before = line.substr(0, std::min({line.find(" & "), line.find(" && "), line.find("; ")}));
            if (before.size() < line.size() && !serves_nothing(before) && started_behind++ < most_launches) {
                Variables set = shell, set_exported = exported;
                auto command = in_shell_line(before, set, set_exported);
                if (command && branches.depended_on(before, set_exported).empty()) {
                    add_different(found, std::move(*command));
                    continue;
                }
            }
            quotes.begin(line);
            continue;
        }
        if (branches.read(line)) continue;
        if (auto command = in_shell_line(line, shell, exported)) {
            if (const std::string name = branches.depended_on(line, exported); !name.empty())
                return ServingCommand{"", "", "depends on a branch of the shell script: " + name};
            add_different(found, std::move(*command));
            ++launches;
            continue;
        }
        const Words words = shell_words(Substitutions(line).line());
        if (words.empty() || line == ">") continue;                        // an empty line of a quotation
        if (const std::size_t begin = executed_at(words, 0); begin > 0) {  // only goes into the container, or looks around there
            const Words inside(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
            constexpr std::array<std::string_view, 3> shells{"sh", "bash", "zsh"};
            const bool enters = inside.empty() || (is_one_of(program_name(inside[0]), shells) && inside.size() < 3);
            if (enters || serves_nothing(joined_words(inside))) continue;
        }
        const bool exports =
            words.size() > 1 && words[0] == "export" && line.find("&&") == std::string::npos && line.find(';') == std::string::npos;
        const bool output =
            line.starts_with('|') || line.starts_with("INFO") || (words.size() > 1 && words[1].starts_with('('));  // of a program
        constexpr std::array<std::string_view, 4> declarations{"export", "local", "readonly", "declare"};
        Variables none;
        const bool assigns = exports || output || is_shell_keyword(words[0]) || set_array(line, none) || line.ends_with("() {") ||
                             std::all_of(words.begin(), words.end(), [&](const std::string& word) {
                                 return !assigned_name(word).empty() || (&word == &words.front() && is_one_of(word, declarations));
                             });
        if (assigns || (!is_shell && !says_that_it_serves(line))) continue;
        if (unknown.empty()) unknown = line;
    }
    if (!found.empty()) return only_one(std::move(found));
    if (!exported.empty() && unknown.empty() && !measures) {  // an environment without the command that it is for
        const auto counts = std::find_if(exported.begin(), exported.end(), [](const auto& one) {
            return !changes_nothing(one.first) && one.second.find("$(") == std::string::npos && one.second.find('`') == std::string::npos;
        });
        if (counts != exported.end()) return ServingCommand{"", "", "export " + cut_to(counts->first + "=" + counts->second, 180)};
    }
    // `python bench.py \` goes on with lines that are its flags.
    if (unknown.empty() || (measures && !is_shell)) return std::nullopt;
    return ServingCommand{"", "", cut_to(unknown, 200)};
}

std::optional<ServingCommand> ServingCommands::in_fence(std::string_view text, bool is_shell) const {
    if (!is_shell && is_manifest(text)) return ServingCommand{"", "", "a manifest of Kubernetes or Docker Compose"};
    auto found = in_script(text, is_shell);
    if (found) take_options_file(*found, files_written(text));
    return found;
}

std::optional<ServingCommand> ServingCommands::in_line(std::string_view line) const {
    Variables shell, exported;
    auto found = in_shell_line(line, shell, exported);
    if (found) take_options_file(*found, {});
    return found;
}

std::string ServingCommands::engine_named(std::string_view title) const {
    std::set<std::string> named;
    for (const std::string& word : title_words(title)) {
        // Engines that we do not serve ourselves: a block under their name has no command of ours.
        constexpr std::array<std::string_view, 6> others{"mindie", "lmdeploy", "tgi", "ollama", "mlc-llm", "exllamav2"};
        if (is_one_of(word, others)) named.insert(word);
        for (const Engine& engine : engines_) {
            const std::string name = lower_case(engine.name);
            const auto program = launch_words(engine.launch);
            if (word == name || word.starts_with(name + "-") || (program.size() == 1 && word == program.front())) named.insert(name);
        }
    }
    return named.size() == 1 ? *named.begin() : "";
}

bool ServingCommands::is_choice(std::string_view word) const {
    for (const Engine& engine : engines_)
        for (const EngineParameter& declared : engine.parameters)
            if (const auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain))
                for (const Value& value : choice->values)
                    if (!is_unset(value) && std::holds_alternative<std::string>(value) && text_of(value) == word && word != "none" &&
                        word != "auto")
                        return true;
    return false;
}

std::optional<std::string> ServingCommands::with_choice(const std::string& command, std::string_view word) const {
    Words words = shell_words(command);
    std::set<std::string> flags;  // that could have this value
    for (const Engine& engine : engines_)
        for (const EngineParameter& declared : engine.parameters) {
            const auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain);
            if (choice == nullptr || declared.destination.flag.empty()) continue;
            for (const Value& value : choice->values)
                if (!is_unset(value) && text_of(value) == word) flags.insert(declared.destination.flag);
        }
    std::optional<std::string> result;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!flags.contains(flag_of(words[i]))) continue;
        if (result) return std::nullopt;
        Words changed = words;
        const bool inside = words[i].find('=') != std::string::npos;
        if (inside) changed[i] = flag_of(words[i]) + "=" + std::string(word);
        else if (i + 1 < words.size()) changed[i + 1] = word;
        else return std::nullopt;
        result = joined_words(changed);
    }
    return result;
}

bool ServingCommands::names_other_launch(std::string_view line, std::string_view command) const {
    const auto names = [&](const std::vector<std::string>& launch) {
        std::string start;  // the program, or the module behind an interpreter
        for (const std::string& word : launch) {
            if (word.find('{') != std::string::npos || word.starts_with("--")) break;
            if (word.find('.') != std::string::npos) start = word;
            else start += (start.empty() ? "" : " ") + word;
        }
        constexpr std::size_t most = 100;  // in one line
        std::size_t count = 0;
        for (auto at = line.find(start); !start.empty() && at != std::string_view::npos && count < most; at = line.find(start, at + 1)) {
            ++count;
            const std::string_view rest = line.substr(at, line.find_first_of("`<\"'", at) - at);
            if (rest.size() < start.size() + 2 || rest[start.size()] != ' ') continue;
            const std::string_view model = rest.substr(start.size() + 1, rest.find(' ', start.size() + 1) - start.size() - 1);
            const bool is_model = !model.starts_with('-') && model.find_first_of("/-$0123456789") != std::string_view::npos;
            const bool has_flags = rest.find(" --") != std::string_view::npos && !says_only_help(rest);
            if ((is_model || has_flags) && command.find(trimmed(rest)) == std::string_view::npos) return true;
        }
        return false;
    };
    return std::any_of(engines_.begin(), engines_.end(), [&](const Engine& engine) {
        return names(engine.launch) || std::any_of(engine.started_as.begin(), engine.started_as.end(), names);
    });
}

std::string ServingCommands::failure_in(std::string_view line) const {
    while (!line.empty() && (line.front() == '#' || line.front() == ' ')) line.remove_prefix(1);
    const std::string text(line);
    for (const Engine& engine : engines_)
        if (const auto decisive = decisive_line(engine, std::span(&text, 1))) return std::string(name_in(failure_kinds, decisive->kind));
    const std::string low = lower_case(std::string(text.substr(0, 400)));
    if (low.starts_with("oom") || low.starts_with("out of memory") || low.starts_with("crash") || low.starts_with("failed to start")) {
        if (low.find("oom") != std::string::npos || low.find("out of memory") != std::string::npos) return "out_of_memory";
        return low.find("not supported") != std::string::npos || low.find("unsupported") != std::string::npos ? "unsupported"
               : low.find("inference") != std::string::npos                                                   ? "crashed_under_load"
                                                                                                              : "other";
    }
    // `ValueError: ...`, `torch.OutOfMemoryError: ...`, `NotImplementedError("...")`
    const std::size_t end = text.find_first_of(":( ");
    if (end == std::string::npos || text[end] == ' ') return "";
    const std::string_view name = std::string_view(text).substr(0, end);
    if (!name.ends_with("Error") && !name.ends_with("Exception")) return "";
    return low.find("not support") != std::string::npos || low.find("unsupported") != std::string::npos || name == "NotImplementedError"
               ? "unsupported"
               : "other";
}

}  // namespace servetune
