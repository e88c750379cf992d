// SPDX-License-Identifier: Apache-2.0
#include "shell_branches.hpp"

#include "../base/text.hpp"
#include "servetune/engine/composition.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <cctype>

namespace servetune {

bool ShellBranches::read(std::string_view line) {
    std::string_view word = line.substr(0, line.find_first_of(" \t;"));
    if (word == "if" || word == "case") {
        const bool ends = trimmed(line).ends_with("fi") || trimmed(line).ends_with("esac");
        if (ends) set(line);
        else ++depth_;
        return true;
    }
    if (word == "fi" || word == "esac") {
        if (depth_ > 0) --depth_;
        return true;
    }
    if (depth_ == 0) return false;
    set(line);
    return word == "else" || word == "elif" || word == "then" || word == ";;" || word.ends_with(')');
}

std::string ShellBranches::depended_on(std::string_view line, const std::map<std::string, std::string>& exported) const {
    for (const std::string& name : set_) {
        if ((exported_.contains(name) || exported.contains(name)) && !changes_nothing(name)) return name;
        for (const std::string& used : {"$" + name, "${" + name}) {
            const auto at = line.find(used);
            const auto behind = at == std::string_view::npos ? at : at + used.size();
            if (behind == std::string_view::npos) continue;
            if (behind == line.size() || (std::isalnum(static_cast<unsigned char>(line[behind])) == 0 && line[behind] != '_')) return name;
        }
    }
    return "";
}

void ShellBranches::set(std::string_view line) {
    for (const std::string& word : shell_words(line))
        if (is_assignment(word)) {
            set_.insert(word.substr(0, word.find('=')));
            if (line.find("export ") != std::string_view::npos) exported_.insert(word.substr(0, word.find('=')));
        }
}

}  // namespace servetune
