// SPDX-License-Identifier: Apache-2.0
#include "deploy_file.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "engine/command_reader.hpp"
#include "engine/launcher.hpp"
#include "servetune/error.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <utility>

namespace servetune {
namespace {

std::vector<std::string> words_as_texts(std::span<const FileWord> words) {
    std::vector<std::string> result;
    for (const FileWord& word : words) result.push_back(word.text());
    return result;
}

/// Programs of a platform that run this engine, before the flag that names the model.
std::size_t platform_words(const Engine& engine, const std::vector<std::string>& words,
                           std::size_t at) {
    const std::vector<std::string>& start = engine.started_by.dynamo;
    std::size_t count = 0;
    while (count < start.size() && !start[count].starts_with("--") &&
           start[count].find('{') == std::string::npos)
        ++count;
    if (count == 0 || at + count > words.size()) return 0;
    for (std::size_t i = 0; i < count; ++i) {
        const bool python = i == 0 && program_name(words[at]).starts_with("python") &&
                            start[0].starts_with("python");
        if (!python && words[at + i] != start[i]) return 0;
    }
    return count;
}

std::size_t line_number_of(std::string_view text, std::size_t byte) {
    return 1 + static_cast<std::size_t>(std::count(
                   text.begin(),
                   text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size())), '\n'));
}

/// The variable that a word is nothing but: `$NAME`, `${NAME}`, `$(NAME)`, `${NAME[@]}`.
std::string variable_named(const FileWord& word) {
    std::string_view text = word.text();
    if (!word.varies || !text.starts_with('$')) return "";
    text.remove_prefix(1);
    const bool brackets = (text.starts_with('{') && text.ends_with('}')) ||
                          (text.starts_with('(') && text.ends_with(')'));
    if (brackets) text = text.substr(1, text.size() - 2);
    for (const std::string_view all : {"[@]", "[*]"})
        if (text.ends_with(all)) text.remove_suffix(all.size());
    const bool name = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';
    });
    return name ? std::string(text) : "";
}

/// What a shell text assigns, by name; a name that is assigned twice has no words.
using Assigned = std::map<std::string, std::optional<std::vector<FileWord>>>;

FileWord value_of_assignment(const FileWord& word) {
    FileWord value = word;
    const std::size_t equals = word.text().find('=');
    value.value.text.erase(0, equals + 1);
    value.value.from.erase(value.value.from.begin(),
                           value.value.from.begin() + static_cast<std::ptrdiff_t>(equals + 1));
    value.file.begin = word.value.from[equals].end;
    // Quotes only around the value are its own.
    const bool quotes =
        !value.value.from.empty() && value.file.begin < value.value.from.front().begin;
    if (value.quote == Quoting::none && quotes) {
        value.quote = value.unit ? Quoting::unit_double : Quoting::shell_double;
        value.value.within.push_back(value.quote);
    }
    return value;
}

Assigned assigned_in(const std::vector<PlacedCommand>& commands) {
    Assigned result;
    std::size_t group = 0;
    const auto keep = [&](const std::string& name, std::optional<std::vector<FileWord>> words) {
        ++group;
        if (words)
            for (FileWord& word : *words) word.group = group;
        if (!result.emplace(name, words).second) result[name].reset();
    };
    for (const PlacedCommand& command : commands) {
        if (!command.array.empty()) keep(command.array, command.words);
        else
            for (const FileWord& word : command.words) {
                const std::string name(assigned_name(word.text()));
                if (name.empty()) continue;
                const FileWord value = value_of_assignment(word);
                std::vector<PlacedCommand> inside;
                if (value.text().starts_with('-')) inside = shell_commands(value.value);
                if (inside.size() == 1) keep(name, inside.front().words);
                else keep(name, std::nullopt);
            }
    }
    return result;
}

/// Words in place of variables that hold them.
void splice(std::vector<FileWord>& words, const Assigned& assigned) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto found = assigned.find(variable_named(words[i]));
        if (found == assigned.end() || !found->second) continue;
        const std::vector<FileWord>& inside = *found->second;
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), inside.begin(), inside.end());
        i += inside.size();
        --i;
    }
}

/// Whether a text names a variable of the shell.
bool names_variable(std::string_view text, const std::string& name) {
    for (std::size_t at = text.find('$'); at != std::string_view::npos;
         at = text.find('$', at + 1)) {
        std::string_view rest = text.substr(at + 1);
        if (rest.starts_with('{')) rest.remove_prefix(1);
        if (!rest.starts_with(name)) continue;
        const char behind = rest.size() > name.size() ? rest[name.size()] : ' ';
        if (std::isalnum(static_cast<unsigned char>(behind)) == 0 && behind != '_') return true;
    }
    return false;
}

/// Why the variables from which a command takes flags are not to be changed, or hide some of them.
std::string unsafe_variable(const std::vector<FileWord>& words,
                            const std::vector<PlacedCommand>& commands, const Engine& engine,
                            const Assigned& assigned) {
    for (const FileWord& word : words) {
        const std::string name = variable_named(word);
        const auto found = assigned.find(name);
        if (found == assigned.end()) continue;
        bool flags = false, elsewhere = false;
        for (const PlacedCommand& command : commands) {
            const bool own = command.array == name;
            const bool prints =
                !command.words.empty() && (command.words.front().text() == "echo" ||
                                           command.words.front().text() == "printf");
            const bool starts =
                command.array.empty() && engine_start(command.words, engine, false).has_value();
            for (const FileWord& one : command.words) {
                const bool set = own || assigned_name(one.text()) == name;
                flags = flags || (set && (one.text().starts_with("--") ||
                                          one.text().find("=--") != std::string::npos ||
                                          one.text().find(" --") != std::string::npos));
                elsewhere = elsewhere || (!prints && !starts && names_variable(one.text(), name));
            }
        }
        if (!found->second && flags)
            return "the flags in $" + name + " are put together in several places";
        if (found->second && elsewhere)
            return "$" + name + ", which holds flags of it, is used for something else too";
    }
    return "";
}

void find_in_shell(DeployFile& file, const Engine& engine) {
    const PlacedText whole = PlacedText::whole_file(file.text);
    const std::vector<PlacedCommand> commands = shell_commands(whole);
    for (const PlacedCommand& command : commands)
        file.lines.push_back(words_as_texts(command.words));
    file.commands = engine_commands(commands, engine);
    for (DeployCommand& command : file.commands) {
        const std::size_t at =
            command.words.empty() ? command.add_environment.at : command.words.front().file.begin;
        command.label = "line " + std::to_string(line_number_of(file.text, at));
        command.names = {command.label, std::to_string(line_number_of(file.text, at))};
    }
}

/// A setting of a unit with its continuation lines: where its value begins and ends.
std::vector<std::pair<std::string, Span>> unit_settings(std::string_view text) {
    std::vector<std::pair<std::string, Span>> result;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        std::size_t end = at;
        for (bool goes_on = true; goes_on;) {
            const std::size_t stop = std::min(text.find('\n', at), text.size());
            std::string_view line = text.substr(at, stop - at);
            if (line.ends_with('\r')) line.remove_suffix(1);
            const std::string_view bare = trimmed(line);
            const bool comment = bare.starts_with('#') || bare.starts_with(';');
            goes_on = stop < text.size() &&
                      ((comment && at != begin) || (!comment && line.ends_with('\\')));
            end = at + line.size();
            at = std::min(stop + 1, text.size());
        }
        const std::string_view line = text.substr(begin, end - begin);
        const std::size_t equals = line.find('=');
        if (equals != std::string_view::npos && !trimmed(line).starts_with('#') &&
            !trimmed(line).starts_with(';'))
            result.emplace_back(std::string(trimmed(line.substr(0, equals))),
                                Span{begin + equals + 1, end});
        else if (trimmed(line).starts_with('['))
            result.emplace_back(std::string(trimmed(line)), Span{begin, end});
    }
    return result;
}

void find_in_unit(DeployFile& file, const Engine& engine) {
    const PlacedText whole = PlacedText::whole_file(file.text);
    std::map<std::string, FileWord> environment;
    Assigned assigned;
    std::string section;
    std::size_t behind_environment = 0;
    for (const auto& [name, span] : unit_settings(file.text)) {
        PlacedText value;
        for (std::size_t i = span.begin; i < span.end; ++i) value.add(file.text[i], whole.from[i]);
        if (name.starts_with('[')) section = name;
        std::vector<FileWord> words =
            name.starts_with('[') ? std::vector<FileWord>{} : unit_words(value);
        std::vector<std::string> line{section, name};
        for (const FileWord& word : words) line.push_back(word.text());
        file.lines.push_back(line);
        if (section == "[Service]" && name == "Environment")
            behind_environment = std::min(file.text.find('\n', span.end), file.text.size() - 1) + 1;
        if (section == "[Service]" && name == "Environment")
            for (const FileWord& word : words)
                if (const std::string variable(assigned_name(word.text())); !variable.empty())
                    environment[variable] = value_of_assignment(word);
        if (section != "[Service]" || name != "ExecStart" || words.empty()) continue;
        PlacedCommand command{"", words};
        std::string& program = command.words.front().value.text;
        const std::size_t prefix = std::min(program.find_first_not_of("@-:+!"), program.size());
        program.erase(0, prefix);
        for (DeployCommand& found : engine_commands({command}, engine)) {
            const std::size_t line_start = file.text.rfind('\n', span.begin) + 1;
            found.label =
                "ExecStart of line " + std::to_string(line_number_of(file.text, span.begin));
            found.names = {found.label, std::to_string(line_number_of(file.text, span.begin)),
                           "ExecStart"};
            if (found.add_environment.form == EnvironmentPlace::Form::shell_prefix &&
                found.add_environment.within.empty())
                found.add_environment = {EnvironmentPlace::Form::unit_line, line_start, "", "", {}};
            file.commands.push_back(std::move(found));
        }
    }
    for (DeployCommand& command : file.commands)
        if (command.add_environment.form == EnvironmentPlace::Form::unit_line &&
            behind_environment > 0)
            command.add_environment.at = behind_environment;
    for (DeployCommand& command : file.commands)
        for (const auto& [name, word] : environment) command.environment.emplace(name, word);
}

/// Whether a text is a unit: a line `[Service]`.
bool looks_like_unit(std::string_view text) {
    bool found = false;
    for_each_trimmed_line(text,
                          [&](std::string_view line) { found = found || line == "[Service]"; });
    return found;
}

}  // namespace

std::vector<std::string> DeployCommand::texts() const { return words_as_texts(words); }

bool is_image_of(const Engine& engine, std::string_view word) {
    for (const std::string& image : engine.images) {
        const auto at = word.find(image);
        if (at == std::string_view::npos || (at > 0 && word[at - 1] != '/')) continue;
        const std::size_t behind = at + image.size();
        const bool has_tag = image.find(':') != std::string::npos;
        if (behind == word.size() || word[behind] == '@' || word[behind] == (has_tag ? '-' : ':'))
            return true;
    }
    return false;
}

std::optional<LaunchPlace> engine_start(const std::vector<FileWord>& words, const Engine& engine,
                                        bool anywhere,
                                        const std::map<std::string, std::string>& variables) {
    const std::vector<std::string> texts = words_as_texts(words);
    std::size_t first = 0;
    while (first < texts.size() && is_assignment(texts[first])) ++first;
    if (first == texts.size()) return std::nullopt;
    LaunchPlace result;
    const bool wrapped = anywhere || is_one_of(program_name(texts[first]), wrappers) ||
                         is_one_of(program_name(texts[first]), container_programs);
    std::optional<std::size_t> image;
    for (std::size_t at = first; at < texts.size() && (at == first || wrapped); ++at) {
        if (is_one_of(program_name(texts[at]), container_programs) && at + 1 < texts.size() &&
            texts[at + 1] == "run") {
            result.in_container = true;
            result.client = at + 1;
        }
        if (result.in_container && at > 0 && is_one_of(texts[at - 1], container_names)) continue;
        std::size_t count = launched_at(std::span(&engine, 1), texts, at).words;
        if (count == 0) count = platform_words(engine, texts, at);
        if (count > 0) {
            result.flags = at + count;
            return result;
        }
        if (result.in_container && !image && is_image_of(engine, filled_in(texts[at], variables)))
            image = at + 1;
    }
    if (!image) return std::nullopt;
    result.flags = *image;
    return result;
}

bool are_flags_of(const Engine& engine, const std::vector<FileWord>& words) {
    if (words.empty() || !words.front().text().starts_with('-')) return false;
    const CommandReader reader({engine});
    const CommandSettings read = reader.flags(words_as_texts(words), engine);
    return std::any_of(read.settings.begin(), read.settings.end(), [](const Setting& setting) {
        return setting.kind == Setting::Kind::parameter;
    });
}

std::vector<DeployCommand> engine_commands(const std::vector<PlacedCommand>& commands,
                                           const Engine& engine) {
    std::vector<DeployCommand> result;
    const Assigned assigned = assigned_in(commands);
    std::map<std::string, FileWord> exported;
    std::map<std::string, std::string> variables;
    for (const PlacedCommand& command : commands) {
        if (!command.array.empty() || command.words.empty()) continue;
        const std::vector<FileWord>& words = command.words;
        for (const FileWord& word : words)
            if (const std::string name(assigned_name(word.text())); !name.empty())
                variables[name] = word.text().substr(word.text().find('=') + 1);
        const bool exports = words.front().text() == "export";
        std::map<std::string, FileWord> own;
        for (std::size_t i = exports ? 1 : 0;
             i < words.size() && !assigned_name(words[i].text()).empty(); ++i)
            (exports ? exported : own)[std::string(assigned_name(words[i].text()))] =
                value_of_assignment(words[i]);
        const auto add_environment = [&](DeployCommand& found) {
            for (const auto& [name, word] : own) found.environment.emplace(name, word);
            for (const auto& [name, word] : exported) found.environment.emplace(name, word);
        };
        const auto place = engine_start(words, engine, false, variables);
        if (!place) {
            for (std::size_t i = 1; i < words.size(); ++i) {
                const bool script = words[i - 1].text().starts_with('-') &&
                                    words[i - 1].text().ends_with('c') &&
                                    !words[i - 1].text().starts_with("--");
                if (!script || words[i].text().find(' ') == std::string::npos) continue;
                for (DeployCommand& inside :
                     engine_commands(shell_commands(words[i].value), engine)) {
                    add_environment(inside);
                    result.push_back(std::move(inside));
                }
            }
            continue;
        }
        DeployCommand found;
        add_environment(found);
        for (std::size_t i = 0; i < place->flags; ++i)
            found.program += (i == 0 ? "" : " ") + words[i].text();
        if (place->in_container)
            for (std::size_t i = place->client + 1; i < place->flags; ++i)
                if (const std::string& before = words[i - 1].text();
                    before == "-e" || before == "--env")
                    if (const std::string name(assigned_name(words[i].text())); !name.empty())
                        found.environment[name] = value_of_assignment(words[i]);
        found.words.assign(words.begin() + static_cast<std::ptrdiff_t>(place->flags), words.end());
        found.unsafe = unsafe_variable(found.words, commands, engine, assigned);
        splice(found.words, assigned);
        const FileWord& beside = place->in_container ? words[place->client] : words.front();
        found.add_environment = {place->in_container ? EnvironmentPlace::Form::container_option
                                                     : EnvironmentPlace::Form::shell_prefix,
                                 place->in_container ? beside.file.end : beside.file.begin, "", "",
                                 beside.within};
        for (std::size_t i = 0; i < place->flags; ++i)
            if (program_name(words[i].text()) == "sudo")
                found.add_environment = {};  // it passes no variables on
        result.push_back(std::move(found));
    }
    return result;
}

bool DeployFile::same_but_for(const DeployCommand& command, const DeployFile& now) const {
    if (kind != DeployFileKind::yaml) {
        std::size_t changed = 0;
        std::vector<std::vector<std::string>> old_lines = lines, new_lines = now.lines;
        const auto added = [](const std::vector<std::string>& line) {
            return line.size() > 2 && line[1] == "Environment";
        };
        if (new_lines.size() != old_lines.size()) {
            std::erase_if(old_lines, added);
            std::erase_if(new_lines, added);
        }
        if (new_lines.size() != old_lines.size()) return false;
        for (std::size_t i = 0; i < old_lines.size(); ++i)
            changed += old_lines[i] != new_lines[i] ? 1 : 0;
        std::set<std::size_t> groups;  // each may be a line of its own: an array, a variable
        for (const FileWord& word : command.words) groups.insert(word.group);
        return changed <= groups.size() + command.environment.size();
    }
    if (documents.size() != now.documents.size()) return false;
    std::map<std::string, std::string> before, after;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        documents[i].flatten(std::to_string(i), before);
        now.documents[i].flatten(std::to_string(i), after);
    }
    std::vector<std::string> own = command.paths;
    for (const auto& [name, path] : command.environment_paths) own.push_back(path);
    for (const GpuCount& count : command.gpus) own.push_back(count.path);
    const auto is_below = [](const std::string& path, const std::string& node) {
        return path.starts_with(node) && (path.size() == node.size() || path[node.size()] == '/');
    };
    const auto may_change = [&](const std::string& path) {
        return std::any_of(own.begin(), own.end(),
                           [&](const std::string& node) { return is_below(path, node); });
    };
    for (const auto& [path, value] : before) {
        const auto found = after.find(path);
        if ((found == after.end() || found->second != value) && !may_change(path)) return false;
    }
    return std::all_of(after.begin(), after.end(), [&](const auto& entry) {
        const bool grows =
            (!command.add_environment.path.empty() &&
             is_below(entry.first, command.add_environment.path)) ||
            (!command.entries_path.empty() && is_below(entry.first, command.entries_path));
        return before.contains(entry.first) || may_change(entry.first) || grows;
    });
}

DeployFile read_deploy_file(std::string text, std::string_view name, const Engine& engine) {
    constexpr std::size_t longest = 1U << 20U;
    if (text.size() > longest) throw ParseError("a deploy file of more than 1 MiB is not changed");
    if (text.find('\0') != std::string::npos)
        throw ParseError("it has a zero byte, so it is no text");
    DeployFile file;
    file.text = std::move(text);
    const bool named_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    if (!named_yaml && looks_like_unit(file.text)) file.kind = DeployFileKind::unit;
    else if (!named_yaml && (file.text.starts_with("#!") || name.ends_with(".sh")))
        file.kind = DeployFileKind::shell;
    else if (!named_yaml) {
        try {
            file.documents = yaml_documents(file.text);
            const bool structured =
                std::all_of(file.documents.begin(), file.documents.end(), [](const YamlNode& node) {
                    return node.kind == YamlNode::Kind::mapping ||
                           node.kind == YamlNode::Kind::null;
                });
            if (!structured || file.documents.empty()) file.kind = DeployFileKind::shell;
        } catch (const ParseError&) {
            file.kind =
                DeployFileKind::shell;  // then the shell's reader says what is wrong with it
        }
    }
    if (file.kind == DeployFileKind::yaml) {
        for_each_trimmed_line(file.text, [](std::string_view line) {
            if (line.starts_with("{{"))
                throw ParseError("it is a template of Helm; change the values that fill it in");
        });
        file.documents = yaml_documents(file.text);
        find_in_yaml(file, engine);
    } else if (file.kind == DeployFileKind::unit) find_in_unit(file, engine);
    else find_in_shell(file, engine);
    return file;
}

}  // namespace servetune
