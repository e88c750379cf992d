// SPDX-License-Identifier: Apache-2.0
// Where a YAML file starts an engine: containers, services of compose, values of Helm.
#include "deploy_file.hpp"

#include "engine/command_reader.hpp"
#include "servetune/error.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

using NodeKind = YamlNode::Kind;

/// A mapping or list on the way from the document to a command.
struct YamlStep {
    const YamlNode* node;
    std::string key;  ///< of the one above it; of an item its name, if it has one
    std::string path;
};
using YamlWay = std::vector<YamlStep>;

/// `maxModelLen`, `max_model_len`, `max-model-len` as a flag.
std::string flag_of_key(std::string_view key) {
    std::string flag = "--";
    for (const char c : key) {
        if (std::isupper(static_cast<unsigned char>(c)) != 0) flag += '-';
        flag += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return flag;
}

bool ends_with_any(std::string_view key, std::span<const std::string_view> endings) {
    std::string low;
    for (const char c : key) low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return std::any_of(endings.begin(), endings.end(),
                       [&](std::string_view ending) { return low.ends_with(ending); });
}

/// Keys that say what a thing is, not which.
bool is_structure(std::string_view key) {
    constexpr std::array<std::string_view, 14> words{"spec",
                                                     "template",
                                                     "containers",
                                                     "services",
                                                     "podTemplate",
                                                     "jobTemplate",
                                                     "leaderWorkerTemplate",
                                                     "extraPodSpec",
                                                     "mainContainer",
                                                     "components",
                                                     "items",
                                                     "data",
                                                     "model",
                                                     "predictor"};
    return is_one_of(key, words);
}

class YamlFinder {
public:
    YamlFinder(DeployFile& file, const Engine& engine)
        : file_(file), engine_(engine), reader_({engine}) {}

    void find() {
        for (std::size_t i = 0; i < file_.documents.size(); ++i) {
            document_ = &file_.documents[i];
            YamlWay way;
            walk(*document_, "", std::to_string(i), way);
        }
    }

private:
    void walk(const YamlNode& node, const std::string& key, const std::string& path, YamlWay& way) {
        const std::string own_name = node.text_of("name");
        way.push_back({&node, own_name.empty() ? key : own_name, path});
        if (node.kind == NodeKind::mapping) {
            look_at(node, key, path, way);
            for (const auto& [name, value] : node.entries)
                if (name.kind == NodeKind::scalar)
                    walk(value, name.text, path + "/" + name.text, way);
        }
        for (std::size_t i = 0; i < node.items.size(); ++i)
            walk(node.items[i], "", path + "/" + item_name(node, i), way);
        if (node.kind == NodeKind::scalar && document_->text_of("kind") == "ConfigMap" &&
            node.text.find('\n') != std::string::npos)
            script(node, path, way);
        way.pop_back();
    }

    void script(const YamlNode& node, const std::string& path, const YamlWay& way) {
        try {
            for (DeployCommand& found :
                 engine_commands(shell_commands(placed_scalar(file_.text, node)), engine_)) {
                found.paths = {path};
                add(std::move(found), node, way);
            }
        } catch (const ParseError&) {
            return;  // another language than the shell's
        }
    }

    void look_at(const YamlNode& node, const std::string& key, const std::string& path,
                 const YamlWay& way) {
        DeployCommand found;
        std::vector<FileWord> words;
        for (const char* part : {"entrypoint", "command", "args"})
            if (const YamlNode* value = node.find(part);
                value != nullptr && value->kind != NodeKind::mapping) {
                const std::string below = path + "/" + part;
                if (value->kind == NodeKind::null) continue;
                found.paths.push_back(below);
                gather(*value, words, found.unsafe);
            }
        read_environment(node, path, found);
        if (found.add_environment.form == EnvironmentPlace::Form::none)
            new_environment(node, path, found);
        if (const std::size_t start = words.size(); take_words(node, words, found) || start > 0) {
            if (found.words.empty() && found.program.empty()) return entries(node, key, path, way);
            return add(std::move(found), node, way);
        }
        if (take_variables(found)) return add(std::move(found), node, way);
        entries(node, key, path, way);
    }

    /// The words of a list, or of one text.
    void gather(const YamlNode& value, std::vector<FileWord>& words, std::string& unsafe) {
        const std::size_t group = ++groups_;
        if (value.shared) unsafe = "its command has an anchor that other places use";
        if (value.kind == NodeKind::scalar) {
            const std::vector<PlacedCommand> commands =
                shell_commands(placed_scalar(file_.text, value));
            for (const PlacedCommand& command : commands)
                for (const FileWord& word : command.words)
                    words.push_back(word), words.back().group = group;
            if (commands.size() > 1) unsafe = "its command is several commands";
        } else if (value.kind == NodeKind::sequence)
            for (const YamlNode& item : value.items) {
                if (item.kind != NodeKind::scalar) {
                    unsafe = "its command has an item that is no text";
                    continue;
                }
                if (item.shared) unsafe = "its command has an anchor that other places use";
                words.push_back(scalar_word(file_.text, item, value.flow));
                words.back().group = group;
            }
        else unsafe = "its command is an alias";
    }

    /// Which of a container's words are the engine's; false: none.
    bool take_words(const YamlNode& node, const std::vector<FileWord>& words,
                    DeployCommand& found) {
        if (words.empty()) return false;
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::string& flag = words[i - 1].text();
            const bool is_script = flag.starts_with('-') && !flag.starts_with("--") &&
                                   flag.ends_with('c') &&
                                   words[i].text().find(' ') != std::string::npos;
            const bool shell = i > 1 && is_one_of(program_of(words.front().text()), shells);
            if (!is_script || !shell) continue;
            std::vector<DeployCommand> inside =
                engine_commands(shell_commands(words[i].value), engine_);
            if (inside.empty()) return false;
            if (inside.size() > 1) found.unsafe = "its script starts the engine more than once";
            found.words = std::move(inside.front().words);
            found.program = inside.front().program;
            for (auto& [name, word] : inside.front().environment)
                found.environment.insert_or_assign(name, word);
            for (const auto& [name, word] : inside.front().environment)
                found.environment_paths.erase(name);
            if (found.add_environment.form == EnvironmentPlace::Form::none)
                found.add_environment = inside.front().add_environment;
            add_named_variables(found);
            return true;
        }
        if (const auto place = engine_start(words, engine_, true)) {
            for (std::size_t i = 0; i < place->flags; ++i)
                found.program += (i == 0 ? "" : " ") + words[i].text();
            found.words.assign(words.begin() + static_cast<std::ptrdiff_t>(place->flags),
                               words.end());
        } else if (is_image_of(engine_, node.text_of("image")) &&
                   node.find("entrypoint") == nullptr)
            found.words = words;
        else if (are_flags_of(engine_, words)) found.words = words;
        else return false;
        if (found.program.empty() && found.words.empty()) return false;
        add_named_variables(found);
        return true;
    }

    static std::string program_of(const std::string& word) {
        return word.substr(word.rfind('/') + 1);
    }
    static constexpr std::array<std::string_view, 5> shells{"sh", "bash", "dash", "zsh", "ash"};

    /// The words of a variable of the container that holds flags.
    [[nodiscard]] std::vector<FileWord> words_of_variable(const FileWord& value) {
        std::vector<PlacedCommand> commands;
        try {
            commands = shell_commands(value.value);
        } catch (const ParseError&) {
            return {};
        }
        if (commands.size() != 1) return {};
        const std::size_t group = ++groups_;
        for (FileWord& word : commands.front().words) word.group = group;
        return commands.front().words;
    }
    /// Variables that the words name (`$EXTRA`, `$(EXTRA)`), or that the platform puts behind them.
    void add_named_variables(DeployCommand& found) {
        for (const auto& [name, path] : std::map(found.environment_paths)) {
            const auto value = found.environment.find(name);
            if (value == found.environment.end() || !value->second.text().starts_with('-'))
                continue;
            const auto at = std::find_if(
                found.words.begin(), found.words.end(), [&, &named = name](const FileWord& word) {
                    return word.varies &&
                           (word.text() == "$" + named || word.text() == "${" + named + "}" ||
                            word.text() == "$(" + named + ")");
                });
            if (at == found.words.end() && name != engine_.started_by.kserve) continue;
            const std::vector<FileWord> inside = words_of_variable(value->second);
            found.paths.push_back(path);
            const auto where = at == found.words.end() ? at : found.words.erase(at);
            found.words.insert(where, inside.begin(), inside.end());
            found.environment.erase(value);
            found.environment_paths.erase(name);
        }
    }
    /// A container whose words are all in a variable.
    bool take_variables(DeployCommand& found) {
        for (const auto& [name, path] : std::map(found.environment_paths)) {
            const FileWord value = found.environment.at(name);
            constexpr std::array<std::string_view, 3> endings{"_args", "_flags", "_opts"};
            if (name != engine_.started_by.kserve && !ends_with_any(name, endings)) continue;
            const std::vector<FileWord> words = words_of_variable(value);
            if (name != engine_.started_by.kserve && !are_flags_of(engine_, words)) continue;
            if (words.empty()) continue;
            found.words = words;
            found.paths = {path};
            found.environment.erase(name);
            found.environment_paths.erase(name);
            return true;
        }
        return false;
    }

    void read_environment(const YamlNode& node, const std::string& path, DeployCommand& found) {
        using Form = EnvironmentPlace::Form;
        for (const char* part : {"env", "environment"}) {
            const YamlNode* env = node.find(part);
            if (env == nullptr || env->shared) continue;
            const std::string below = path + "/" + part;
            for (const auto& [name, value] : env->entries)
                if (name.kind == NodeKind::scalar && value.kind == NodeKind::scalar) {
                    keep_variable(found, name.text, value, env->flow, below + "/" + name.text);
                    if (!env->flow)
                        found.add_environment = below_line(Form::mapping, name, value, below);
                }
            for (std::size_t i = 0; i < env->items.size(); ++i) {
                const YamlNode& item = env->items[i];
                const std::string at = below + "/" + item_name(*env, i);
                if (item.kind == NodeKind::scalar) {
                    const std::string name(assigned_name(item.text));
                    if (name.empty()) continue;
                    keep_variable(found, name, item, env->flow, at);
                    FileWord& word = found.environment.at(name);
                    const std::size_t length = name.size() + 1;
                    word.value.text.erase(0, length);
                    word.value.from.erase(
                        word.value.from.begin(),
                        word.value.from.begin() + static_cast<std::ptrdiff_t>(length));
                    word.key = {0, length};  // `NAME=` is a part of the item
                    if (!env->flow)
                        found.add_environment = below_line(Form::assignments, item, item, below);
                } else if (const YamlNode* value = item.find("value");
                           value != nullptr && value->kind == NodeKind::scalar) {
                    keep_variable(found, item.text_of("name"), *value, item.flow, at + "/value");
                    if (!env->flow && !item.entries.empty())
                        found.add_environment =
                            below_line(Form::name_and_value, item.entries.front().first,
                                       item.entries.back().second, below);
                }
            }
        }
    }
    void keep_variable(DeployCommand& found, const std::string& name, const YamlNode& value,
                       bool flow, const std::string& path) {
        try {
            FileWord word = scalar_word(file_.text, value, flow);
            word.stands = FileWord::Stands::as_entry;
            found.environment.insert_or_assign(name, std::move(word));
            found.environment_paths.insert_or_assign(name, path);
        } catch (const ParseError&) {
            return;  // a form that nobody needs to change
        }
    }
    /// Where a container without variables gets a list of them: above its command.
    void new_environment(const YamlNode& node, const std::string& path,
                         DeployCommand& found) const {
        const bool compose =
            document_->find("services") != nullptr && document_->find("kind") == nullptr;
        const bool container = node.find("image") != nullptr || document_->find("kind") != nullptr;
        if (!container || node.flow || node.find("env") != nullptr ||
            node.find("environment") != nullptr)
            return;
        for (const auto& [name, value] : node.entries) {
            if (name.text != "command" && name.text != "args" && name.text != "entrypoint")
                continue;
            const std::size_t line = file_.text.rfind('\n', name.begin) + 1;
            const std::string before = file_.text.substr(line, name.begin - line);
            if (before.find_first_not_of(' ') != std::string::npos) continue;
            const auto form =
                compose ? EnvironmentPlace::Form::new_mapping : EnvironmentPlace::Form::new_list;
            found.add_environment = {
                form, line, before, path + (compose ? "/environment" : "/env"), {}};
            return;
        }
    }
    /// Behind the line on which `last` ends, as far in as the line of `first`.
    [[nodiscard]] EnvironmentPlace below_line(EnvironmentPlace::Form form, const YamlNode& first,
                                              const YamlNode& last, const std::string& path) const {
        const std::string& text = file_.text;
        const std::size_t line = text.rfind('\n', first.begin) + 1;
        const std::string before = text.substr(line, first.begin - line);
        if (before.find_first_not_of(form == EnvironmentPlace::Form::mapping ? " " : " -") !=
            std::string::npos)
            return {};
        std::size_t end = last.begin;
        if (last.kind == NodeKind::scalar) end = scalar_word(text, last, false).file.end;
        if (last.kind == NodeKind::mapping || last.kind == NodeKind::sequence) return {};
        end = std::min(text.find('\n', end), text.size());
        if (end > 0 && text[end - 1] == '\r') --end;
        return {form, end, line_break() + before, path, {}};
    }
    [[nodiscard]] std::string line_break() const {
        return file_.text.find("\r\n") != std::string::npos ? "\r\n" : "\n";
    }

    /// A mapping whose keys are flags: `engineArgs: {maxNumSeqs: 64}`, perhaps with a list of more.
    void entries(const YamlNode& node, const std::string& key, const std::string& path,
                 const YamlWay& way) {
        constexpr std::array<std::string_view, 3> endings{"config", "args", "arguments"};
        constexpr std::array<std::string_view, 2> kwargs{"kwargs", "args"};
        constexpr std::array<std::string_view, 2> lists{"extraargs", "extra_args"};
        DeployCommand found;
        std::vector<FileWord> further;
        bool has_list = false;
        const bool named = ends_with_any(key, endings) || ends_with_any(key, kwargs);
        for (const auto& [name, value] : node.entries) {
            if (name.kind != NodeKind::scalar) continue;
            const std::string below = path + "/" + name.text;
            if (ends_with_any(name.text, lists) &&
                (value.kind == NodeKind::sequence || value.kind == NodeKind::scalar)) {
                gather(value, further, found.unsafe);
                found.paths.push_back(below);
                has_list = true;
            } else if (named && value.kind == NodeKind::scalar) {
                FileWord word = scalar_word(file_.text, value, node.flow);
                const std::string flag = flag_of_key(name.text);
                const CommandSettings read = reader_.flags({flag + "=" + value.text}, engine_);
                if (read.settings.empty() ||
                    read.settings.front().kind != Setting::Kind::parameter ||
                    read.settings.front().beginning)
                    continue;
                word.key = {name.begin, name.begin + name.text.size()};
                word.stands = FileWord::Stands::as_entry;
                PlacedText whole;
                for (const char c : flag + "=") whole.add(c, {word.file.begin, word.file.begin});
                for (std::size_t i = 0; i < word.value.text.size(); ++i)
                    whole.add(word.value.text[i], word.value.from[i]);
                word.value = std::move(whole);
                if (value.shared)
                    found.unsafe = "its settings have an anchor that other places use";
                found.words.push_back(std::move(word));
                found.paths.push_back(below);
            }
        }
        if (found.words.empty() && !(has_list && are_flags_of(engine_, further))) return;
        if (!has_list) found.entries_path = path;
        found.words.insert(found.words.end(), further.begin(), further.end());
        read_environment(way.size() > 1 ? *way[way.size() - 2].node : node,
                         way.size() > 1 ? way[way.size() - 2].path : path, found);
        add(std::move(found), node, way);
    }

    void keep_gpus(const YamlNode& value, const std::string& path, DeployCommand& found) {
        if (value.kind != NodeKind::scalar) return;
        FileWord word = scalar_word(file_.text, value, false);
        word.stands = FileWord::Stands::as_entry;
        found.gpus.push_back({std::move(word), path});
    }
    /// The nearest place that asks for GPUs, from the command up.
    void find_gpus(const YamlWay& way, DeployCommand& found) {
        constexpr std::array<std::string_view, 4> counts{"requestgpu", "gpucount", "numgpus",
                                                         "num_gpus"};
        for (auto step = way.rbegin(); step != way.rend() && found.gpus.empty(); ++step) {
            for (const auto& [name, value] : step->node->entries)
                if (ends_with_any(name.text, counts))
                    keep_gpus(value, step->path + "/" + name.text, found);
            if (const YamlNode* parallelism = step->node->find("parallelism"))
                if (const YamlNode* tensor = parallelism->find("tensor"))
                    keep_gpus(*tensor, step->path + "/parallelism/tensor", found);
            if (const YamlNode* resources = step->node->find("resources"))
                for (const char* part : {"limits", "requests"})
                    if (const YamlNode* amounts = resources->find(part))
                        for (const auto& [name, value] : amounts->entries)
                            if (name.text == "gpu" || name.text.ends_with("/gpu"))
                                keep_gpus(value,
                                          step->path + "/resources/" + part + "/" + name.text,
                                          found);
            const YamlNode* at = step->node;
            for (const char* part : {"deploy", "resources", "reservations", "devices"})
                at = at != nullptr ? at->find(part) : nullptr;
            if (at == nullptr) continue;
            for (std::size_t i = 0; i < at->items.size(); ++i)
                if (const YamlNode* count = at->items[i].find("count"))
                    keep_gpus(*count,
                              step->path + "/deploy/resources/reservations/devices/" +
                                  item_name(*at, i) + "/count",
                              found);
        }
    }

    void add(DeployCommand found, const YamlNode& node, const YamlWay& way) {
        const YamlNode* metadata = document_->find("metadata");
        const std::string object = metadata != nullptr ? metadata->text_of("name") : "";
        const std::string kind = document_->text_of("kind");
        std::string nearest;
        for (auto step = way.rbegin(); step != way.rend(); ++step) {
            if (step->key.empty() || is_structure(step->key)) continue;
            if (nearest.empty()) nearest = step->key;
            found.names.push_back(step->key);
        }
        found.label = (kind.empty() ? "" : kind + "/") + object +
                      (object.empty() || nearest.empty() ? "" : "/") + nearest;
        found.names.push_back(object);
        found.names.push_back(found.label);
        for (const YamlStep& step : way)
            if (step.node->shared) found.unsafe = "it stands below an anchor that other places use";
        if (node.find("<<") != nullptr && found.unsafe.empty() && found.words.empty())
            found.unsafe = "it merges another mapping";
        find_gpus(way, found);
        file_.commands.push_back(std::move(found));
    }

    DeployFile& file_;
    const Engine& engine_;
    CommandReader reader_;
    const YamlNode* document_ = nullptr;
    std::size_t groups_ = 0;
};

}  // namespace

void find_in_yaml(DeployFile& file, const Engine& engine) { YamlFinder(file, engine).find(); }

}  // namespace servetune
