// SPDX-License-Identifier: Apache-2.0
#include "shell_branches.hpp"

#include "base/text.hpp"
#include "servetune/detail/engine/composition.hpp"
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
    if (depth_ == 0) {
        if (!used_in(line).empty()) set(line);  // what is made of such a variable is not known either
        return false;
    }
    set(line);
    return word == "else" || word == "elif" || word == "then" || word == ";;" || word.ends_with(')');
}

std::string ShellBranches::depended_on(std::string_view line, const std::map<std::string, std::string>& exported) const {
    for (const std::string& name : set_)
        if ((exported_.contains(name) || exported.contains(name)) && !changes_nothing(name)) return name;
    return used_in(line);
}

std::string ShellBranches::used_in(std::string_view line) const {
    if (set_.empty()) return "";
    for (auto at = line.find('$'); at != std::string_view::npos; at = line.find('$', at + 1)) {
        std::size_t begin = at + 1;
        if (begin < line.size() && line[begin] == '{') ++begin;
        std::size_t end = begin;
        while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_')) ++end;
        if (std::string name(line.substr(begin, end - begin)); set_.contains(name)) return name;
    }
    return "";
}

void ShellBranches::set(std::string_view line) {
    for (const std::string& word : shell_words(line))
        if (const std::string name(assigned_name(word)); !name.empty()) {
            set_.insert(name);
            if (line.find("export ") != std::string_view::npos) exported_.insert(name);
        }
}

}  // namespace servetune
