// SPDX-License-Identifier: Apache-2.0
#include "manifests.hpp"

#include "../base/text.hpp"
#include "servetune/base/error.hpp"
#include "servetune/engine/composition.hpp"
#include "servetune/io/yaml.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

namespace servetune {
namespace {

using Words = std::vector<std::string>;

/// A child of a mapping, or of what `<<` merges into it.
const Yaml* merged_child(const Yaml& node, std::string_view name) {
    if (!node.is_mapping()) return nullptr;
    if (const Yaml* own = node.entry(name)) return own;
    constexpr std::string_view merge = "<<";
    const Yaml* merged = node.entry(merge);
    if (merged == nullptr) return nullptr;
    if (!merged->is_sequence()) return merged_child(*merged, name);
    for (const Yaml& item : merged->items())
        if (const Yaml* child = merged_child(item, name)) return child;
    return nullptr;
}

/// A value as printed; `{NAME}`, which documents write for what a reader fills in, is a mapping to YAML. Nothing: it is
/// no single value.
std::optional<std::string> printed_value(const Yaml& node) {
    if (node.is_scalar()) return node.text();
    if (node.is_mapping() && node.entries().size() == 1 && node.entries().front().second.kind() == Yaml::Kind::null)
        return "{" + node.entries().front().first + "}";
    return std::nullopt;
}

/// The words of `command: [...]` or `command: text`. Whole commands and flags with their value also stand in one item
/// of a list. Nothing where an item is no text.
std::optional<Words> printed_words(const Yaml* node) {
    if (node == nullptr || node->kind() == Yaml::Kind::null) return Words{};
    if (!node->is_sequence()) {
        const auto text = printed_value(*node);
        return text ? std::optional(shell_words(*text)) : std::nullopt;
    }
    Words result;
    for (const Yaml& item : node->items()) {
        const auto word = printed_value(item);
        if (!word) return std::nullopt;
        result.push_back(*word);
    }
    return result;
}

/// `-c` of a shell: what stands behind it is a script.
bool begins_script(const std::string& word) {
    return word.size() > 1 && word.front() == '-' && word[1] != '-' && word.find('c') != std::string::npos &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1) == std::string::npos;
}

bool is_shell_program(std::string_view word) {
    constexpr std::array<std::string_view, 5> shells{"sh", "bash", "zsh", "dash", "ash"};
    return is_one_of(program_name(word), shells);
}

/// Words that stand in one item: `vllm serve org/M`, `--port 8000`.
Words parted(const Words& words) {
    Words result;
    for (const std::string& word : words) {
        const auto blank = word.find_first_of(" \t\n");
        const bool program = result.empty() && word.find_first_of("{[('\"$") != 0;
        const bool flag = word.starts_with('-') && word.substr(0, blank).find('=') == std::string::npos;
        if (blank == std::string::npos || (!program && !flag)) {
            result.push_back(word);
        } else if (flag && (word.find('{') != std::string::npos || word.find(" -") == std::string::npos)) {
            result.push_back(word.substr(0, blank));
            result.push_back(unquoted(trimmed(std::string_view(word).substr(blank))));
        } else {
            for (std::string& part : shell_words(word)) result.push_back(std::move(part));
        }
    }
    return result;
}

/// `$(NAME)` as Kubernetes puts it in: only what the container's environment has.
std::string with_environment(const std::string& word, const std::map<std::string, std::string>& environment) {
    std::string result;
    for (std::size_t i = 0; i < word.size(); ++i) {
        const auto end = word.compare(i, 2, "$(") == 0 ? word.find(')', i) : std::string::npos;
        const auto known = end == std::string::npos ? environment.end() : environment.find(word.substr(i + 2, end - i - 2));
        if (known == environment.end()) {
            result += word[i];
            continue;
        }
        result += known->second;
        i = end;
    }
    return result;
}

/// `env: [{name: A, value: b}]`, `environment: [A=b]` or `{A: b}`.
std::map<std::string, std::string> container_environment(const Yaml& container) {
    std::map<std::string, std::string> result;
    constexpr std::string_view name_key = "name", value_key = "value";
    for (const std::string_view key : {"env", "environment"}) {
        const Yaml* given = merged_child(container, key);
        if (given == nullptr) continue;
        const auto add = [&](const std::string& name, const Yaml& value) {
            if (const auto text = printed_value(value); text && is_assignment(name + "=")) result[name] = *text;
        };
        if (given->is_mapping())
            for (const auto& [name, value] : given->entries()) add(name, value);
        if (!given->is_sequence()) continue;
        for (const Yaml& item : given->items()) {
            const Yaml* name = merged_child(item, name_key);
            const Yaml* value = merged_child(item, value_key);
            if (name != nullptr && name->is_scalar() && value != nullptr) add(name->text(), *value);
            if (!item.is_scalar() || !is_assignment(item.text())) continue;
            const std::string text = item.text();
            result[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
        }
    }
    return result;
}

/// A number of servers, where it is more than one.
std::string several_replicas(const Yaml& node) {
    if (!node.is_scalar()) return "";
    const std::string text = node.text();
    unsigned long count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    return error == std::errc() && end == text.data() + text.size() && count > 1 ? text : "";
}

/// Walks through manifests and collects their containers.
class ContainerCollector {
public:
    void visit(const Yaml& node, bool compose, const std::string& replicas) {
        if (node.is_sequence())
            for (const Yaml& item : node.items()) visit(item, compose, replicas);
        if (!node.is_mapping()) return;
        constexpr std::array<std::string_view, 4> parts{"image", "command", "args", "entrypoint"};
        const bool container =
            std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return merged_child(node, part) != nullptr; });
        if (container && add(node, compose, replicas)) return;
        constexpr std::string_view replicas_key = "replicas";
        const Yaml* more = node.entry(replicas_key);
        const std::string below = more == nullptr || several_replicas(*more).empty() ? replicas : several_replicas(*more);
        for (const auto& [key, child] : node.entries()) {
            // What runs before the container, looks after it, or is merged into others; and a resource as it was.
            constexpr std::array<std::string_view, 9> others{
                "initContainers", "readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "healthcheck", "<<",
                "configs",        "volumes"};
            if (!is_one_of(key, others) && !key.starts_with("x-")) visit(child, compose || key == "services", below);
        }
    }

    std::vector<ManifestContainer> found{};

private:
    /// Nothing is added where `command` and the like are no words.
    bool add(const Yaml& node, bool compose, const std::string& replicas) {
        constexpr std::string_view image_key = "image", command_key = "command", args_key = "args", entrypoint_key = "entrypoint";
        constexpr std::string_view deploy_key = "deploy", replicas_key = "replicas", scale_key = "scale", environment_key = "environment";
        ManifestContainer result;
        const Yaml* image = merged_child(node, image_key);
        if (image != nullptr && image->is_scalar()) result.image = image->text();
        else if (image != nullptr) return false;
        const auto command = printed_words(merged_child(node, command_key));
        const auto args = printed_words(merged_child(node, args_key));
        const auto entrypoint = printed_words(merged_child(node, entrypoint_key));
        if (!command || !args || !entrypoint) return false;
        if (result.image.empty() && command->empty() && args->empty() && entrypoint->empty()) return false;
        // `command` is the entry point to Kubernetes; to Compose it stands behind that.
        compose = compose || !entrypoint->empty() || merged_child(node, environment_key) != nullptr;
        const bool behind = compose || (!command->empty() && command->front().starts_with('-'));
        result.entry = behind ? *entrypoint : *command;
        result.arguments = behind ? *command : *args;
        if (behind) result.arguments.insert(result.arguments.end(), args->begin(), args->end());
        const auto environment = container_environment(node);
        const auto put_in = [&](std::string& word) {
            if (!compose) word = with_environment(word, environment);
            for (auto at = word.find("$$"); compose && at != std::string::npos; at = word.find("$$", at + 1)) word.erase(at, 1);
        };
        for (std::string& word : result.entry) put_in(word);
        for (std::string& word : result.arguments) put_in(word);
        for (const auto& [name, value] : environment)
            if (!changes_nothing(name)) result.environment.emplace(name, value);
        result.replicas = replicas;
        const Yaml* deploy = merged_child(node, deploy_key);
        for (const Yaml* count : {merged_child(node, scale_key), deploy == nullptr ? nullptr : merged_child(*deploy, replicas_key)})
            if (count != nullptr && !several_replicas(*count).empty()) result.replicas = several_replicas(*count);
        find_script(result);
        found.push_back(std::move(result));
        return true;
    }

    /// `[sh, -c]` and what stands behind it.
    static void find_script(ManifestContainer& container) {
        Words all = container.entry;
        all.insert(all.end(), container.arguments.begin(), container.arguments.end());
        const std::size_t in_entry = container.entry.size();
        for (std::size_t at = 1; !all.empty() && is_shell_program(all.front()) && at + 1 < all.size() && all[at].starts_with('-'); ++at) {
            if (!begins_script(all[at])) continue;
            // Words that were meant to be one: `entrypoint: [sh, -c]`, `command: vllm serve org/M`.
            container.script = all[at + 1];
            if (in_entry == at + 1 && all[at + 1].find(' ') == std::string::npos)
                container.script = joined_words(Words(all.begin() + static_cast<std::ptrdiff_t>(at) + 1, all.end()));
            return;
        }
        container.entry = parted(container.entry);
        const bool program = container.entry.empty();
        Words behind = program ? parted(container.arguments) : Words{};
        if (!program) {  // there the first item is no program
            container.arguments.insert(container.arguments.begin(), container.entry.front());
            behind = parted(container.arguments);
            behind.erase(behind.begin());
        }
        container.arguments = std::move(behind);
    }
};

/// Without what stands in front of every line: blanks, marks of a quotation.
std::string without_margin(std::string_view text) {
    constexpr std::string_view margins = " \t>";
    std::vector<std::string_view> lines;
    std::optional<std::string_view> margin;
    while (!text.empty()) {
        const auto end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        const auto content = line.find_first_not_of(margins);
        lines.push_back(content == std::string_view::npos ? std::string_view() : line);
        if (content == std::string_view::npos) continue;
        const std::string_view before = line.substr(0, content);
        if (!margin) margin = before;
        const auto same = std::mismatch(margin->begin(), margin->end(), before.begin(), before.end()).first - margin->begin();
        margin = margin->substr(0, static_cast<std::size_t>(same));
    }
    std::string result;
    for (const std::string_view line : lines) result += std::string(line.empty() ? line : line.substr(margin->size())) + "\n";
    return result;
}

}  // namespace

std::string ManifestContainer::text() const {
    if (!script.empty()) return script;
    std::vector<std::string> words = entry;
    words.insert(words.end(), arguments.begin(), arguments.end());
    return joined_words(words);
}

std::vector<ManifestContainer> containers_in(std::string_view text) {
    constexpr std::size_t largest = 64U << 10U;
    constexpr std::size_t most_aliases = 4;
    constexpr std::array<std::string_view, 4> keys{"image:", "command:", "args:", "entrypoint:"};
    const auto starts_something = [&](std::string_view part) {
        return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return part.find(key) != std::string_view::npos; });
    };
    if (text.size() > largest || !starts_something(text)) return {};
    std::size_t aliases = 0;
    for (auto at = text.find('*'); at != std::string_view::npos; at = text.find('*', at + 1))
        if (at + 1 < text.size() && std::string_view(" \t\r\n").find(text[at + 1]) == std::string_view::npos) ++aliases;
    if (aliases > most_aliases || (aliases > 0 && text.size() > largest / 8)) return {};
    text.remove_prefix(std::min(text.find('\n'), text.size()));  // what stands behind the ticks
    std::string yaml;
    for (const char c : without_margin(text)) {
        if (c == '{' && yaml.ends_with('$')) yaml.insert(yaml.size() - 1, 1, '$');  // no variable of ours
        yaml += c;
    }
    ContainerCollector collector;
    try {
        for (std::size_t begin = 0; begin < yaml.size();) {
            std::size_t end = begin;
            do end = std::min(yaml.find("\n---", end), yaml.size() - 1) + 1;
            while (end < yaml.size() && yaml.find_first_of(" \t\n", end + 3) != end + 3);
            const std::string_view document = std::string_view(yaml).substr(begin, end - begin);
            // Others may be broken: documents leave blanks in them for a reader to fill in.
            if (starts_something(document)) collector.visit(Yaml::parse(document, "manifest"), false, "");
            begin = end;
        }
    } catch (const ParseError&) {
        return {};
    }
    return std::move(collector.found);
}

ShellManifests manifests_in_shell(std::string_view text) {
    ShellManifests result;
    int tried = 0;  // each reads on for its end
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        result.rest += std::string(line) + "\n";
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto mark = line.find("<<");
        if (mark == std::string_view::npos || ++tried > 32) continue;
        std::string_view word = line.substr(mark + 2);
        while (!word.empty() && std::string_view("- '\"").find(word.front()) != std::string_view::npos) word.remove_prefix(1);
        word = word.substr(0, word.find_first_of(" \t'\";|>&)<"));
        if (trimmed(word).empty()) continue;
        word = trimmed(word);
        std::size_t body = 0;  // up to the line that is the word
        for (std::size_t at = 0; body == 0 && at < text.size() && at < (64U << 10U);) {
            const std::size_t stop = std::min(text.find('\n', at), text.size());
            if (trimmed(text.substr(at, stop - at)) == word) body = at;
            at = stop + 1;
        }
        if (body == 0) continue;
        std::vector<ManifestContainer> found = containers_in("\n" + std::string(text.substr(0, body)));
        if (found.empty()) result.rest += text.substr(0, body);
        std::move(found.begin(), found.end(), std::back_inserter(result.containers));
        text.remove_prefix(body);
        if (found.empty()) continue;
        text.remove_prefix(std::min(std::min(text.find('\n'), text.size()) + 1, text.size()));
    }
    return result;
}

}  // namespace servetune
