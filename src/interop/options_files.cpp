// SPDX-License-Identifier: Apache-2.0
#include "options_files.hpp"

#include "base/text.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace servetune {
namespace {

using Words = std::vector<std::string>;

std::string file_name(std::string_view word) {
    while (word.starts_with("./")) word.remove_prefix(2);
    return std::string(word);
}

bool is_options_file(std::string_view word) {
    return (word.ends_with(".yaml") || word.ends_with(".yml")) && word.find_first_of(" {") == std::string_view::npos;
}

std::string with_dashes(std::string_view name) {
    std::string result(name);
    std::replace(result.begin(), result.end(), '_', '-');
    return result;
}

bool gives_flag(const Words& words, const std::string& flag) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return with_dashes(word.substr(0, word.find('='))) == with_dashes(flag); });
}

/// The flags that say the same as a file of `name: value` lines; nothing where a line is anything
/// else.
std::optional<Words> as_flags(std::string_view yaml, const Words& command) {
    Words result;
    for (std::size_t at = 0; at < yaml.size();) {
        const std::size_t end = std::min(yaml.find('\n', at), yaml.size());
        std::string_view line = yaml.substr(at, end - at);
        at = end + 1;
        if (const auto comment = line.find(" #"); comment != std::string_view::npos) line = line.substr(0, comment);
        while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
        if (line.empty() || line.front() == '#' || line == "---") continue;
        const auto colon = line.find(": ");
        if (colon == std::string_view::npos || line.front() == ' ' || line.front() == '-') return std::nullopt;
        const std::string flag = "--" + std::string(line.substr(0, colon));
        const std::string value = unquoted(line.substr(line.find_first_not_of(' ', colon + 1)));
        if (value == "false" || value.find_first_of("[{&*|>") == 0) return std::nullopt;
        if (gives_flag(command, flag)) continue;  // the command line wins
        result.push_back(flag);
        if (value != "true") result.push_back(value);
    }
    return result;
}

}  // namespace

std::map<std::string, std::string> files_written(std::string_view shell) {
    std::map<std::string, std::string> files;
    std::string name, mark, content;
    for (std::size_t at = 0; at < shell.size();) {
        const std::size_t end = std::min(shell.find('\n', at), shell.size());
        std::string_view line = shell.substr(at, end - at);
        at = end + 1;
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (!mark.empty()) {
            if (line.substr(std::min(line.find_first_not_of(" \t"), line.size())) == mark) {
                files[file_name(name)] = content;
                mark.clear();
            } else content += std::string(line) + "\n";
            continue;
        }
        const auto here = line.find("<<");
        if (here == std::string_view::npos) continue;
        std::string_view rest = line.substr(here + 2);
        while (!rest.empty() && (rest.front() == '-' || rest.front() == ' ')) rest.remove_prefix(1);
        mark = unquoted(rest.substr(0, rest.find_first_of(" >|")));
        content.clear();
        name.clear();
        for (const std::string& word : shell_words(line))
            if (is_options_file(word.substr(word.find_first_not_of('>') == std::string::npos ? 0 : word.find_first_not_of('>'))))
                name = word.substr(word.find_first_not_of('>'));
    }
    return files;
}

void take_options_file(ServingCommand& command, const std::map<std::string, std::string>& files) {
    for (ServingCommand& one : command.several) take_options_file(one, files);
    if (command.engine.empty() || command.text.empty()) return;
    const Words words = shell_words(command.text);
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        const bool joined = words[i].starts_with("--") && equals != std::string::npos;
        const std::string value = joined ? words[i].substr(equals + 1) : words[i];
        if (!is_options_file(value) || (!joined && !words[i - 1].starts_with("--"))) continue;
        const auto found = files.find(file_name(value));
        const auto flags = found == files.end() ? std::nullopt : as_flags(found->second, words);
        if (!flags) {
            command = {"", "",
                       found == files.end()
                           ? "its settings are in the file " + value + ", which is not beside it: " + cut_to(command.text, 120)
                           : "its settings are in the file " + value + ", which says more than flags can: " + cut_to(command.text, 120)};
            return;
        }
        Words all(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(joined ? i : i - 1));
        all.insert(all.end(), flags->begin(), flags->end());
        all.insert(all.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
        command.text = joined_words(all);
        return take_options_file(command, files);
    }
}

}  // namespace servetune
