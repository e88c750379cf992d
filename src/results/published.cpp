// SPDX-License-Identifier: Apache-2.0
#include "servetune/results/published.hpp"

#include "../base/text.hpp"
#include "result_block.hpp"
#include "servetune/engine/composition.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

namespace servetune {
namespace {

/// Reads the text between blocks from start to end and remembers what was said last.
class Surroundings {
public:
    explicit Surroundings(std::vector<std::string> launchers) : launchers_(std::move(launchers)) {}

    /// The text since the last block, up to the next one.
    void read(std::string_view text) {
        labels_.clear();
        command_here_ = false;
        subject_.clear();
        std::size_t at = 0;
        while (at < text.size()) {
            const auto fence = text.find("```", at);
            const auto piece = text.substr(at, fence == std::string_view::npos ? std::string_view::npos : fence - at);
            if (in_fence_) read_fence(piece);
            else read_prose(piece);
            if (fence == std::string_view::npos) break;
            in_fence_ = !in_fence_;
            at = fence + 3;
        }
        derive();
    }

    void describe(PublishedResult& result) const {
        for (const auto& [level, title] : headings_) result.sections.push_back(title);
        result.labels.assign(labels_.rbegin(), labels_.rend());
        for (auto heading = headings_.rbegin(); heading != headings_.rend(); ++heading) result.labels.push_back(heading->second);
        result.arguments = arguments_;
        result.arguments_derived = derived_;
        result.not_recognised = not_recognised_;
        result.arguments_unknown = !not_recognised_.empty();
    }

private:
    [[nodiscard]] bool launches(std::string_view line) const {
        return std::any_of(launchers_.begin(), launchers_.end(),
                           [&](const std::string& launcher) { return line == launcher || line.starts_with(launcher + " "); });
    }

    void set_command(std::string_view command) {
        std::string joined;
        for (const std::string& word : shell_words(command)) joined += (joined.empty() ? "" : " ") + word;
        arguments_ = base_ = joined;
        command_here_ = true;
        derived_ = false;
        not_recognised_.clear();
    }

    /// A command that we do not know is not the one before it either.
    void forget_command(std::string_view printed) {
        constexpr std::size_t longest = 200;
        std::size_t end = std::min(printed.size(), longest);
        while (end < printed.size() && (static_cast<unsigned char>(printed[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
        not_recognised_ = printed.substr(0, end);
        arguments_.clear();
        base_.clear();
        command_here_ = true;
        derived_ = false;
    }

    /// What starts no engine: clients that measure, downloads, what looks around. Their fences say nothing of the
    /// serving command.
    static bool serves_nothing(std::string_view line) {
        constexpr std::array programs{"apt",  "apt-get",   "cat",    "cd",         "conda",      "curl",
                                      "echo", "evalscope", "git",    "guidellm",   "hf",         "huggingface-cli",
                                      "kill", "ls",        "mkdir",  "modelscope", "nvidia-smi", "pip",
                                      "pip3", "pkill",     "source", "tar",        "unzip",      "wget"};
        if (line.find("bench") != std::string_view::npos) return true;
        const std::string_view program = line.substr(0, line.find(' '));
        return std::find(programs.begin(), programs.end(), program) != programs.end();
    }

    /// The first line of a fence that may be a serving command; empty where there is none. Without the name of a shell
    /// before it a fence may hold anything (tables, logs): there only what says that it serves is taken for a command.
    static std::string_view unknown_command(std::string_view text, bool is_shell) {
        std::string_view found;
        for_each_line(text, [&](std::string_view line) {
            if (!found.empty() || line.empty() || line.starts_with("#") || serves_nothing(line)) return;
            bool serves = is_shell;
            for (const std::string_view word : {" serve", "server", "launch_", "docker run ", "podman run ", " --model", "mindie"})
                serves = serves || line.find(word) != std::string_view::npos;
            if (serves) found = line;
        });
        // A fence of several commands, one of which measures: `python bench.py \` goes on with lines that are its
        // flags.
        return serves_nothing(text) && !is_shell ? std::string_view() : found;
    }

    /// A fence holds a command, only flags, or comments that introduce the block it goes on to.
    void read_fence(std::string_view text) {
        bool is_shell = false;
        for (const std::string_view language : {"bash", "yaml", "shell", "console"}) {
            if (!text.starts_with(language)) continue;
            text.remove_prefix(language.size());
            is_shell = language != "yaml";
        }
        const std::string_view whole = trimmed(text);
        if (whole.starts_with("--") || launches(whole)) return set_command(whole);
        if (const std::string_view unknown = unknown_command(text, is_shell); !unknown.empty()) forget_command(unknown);
        for_each_line(text, [&](std::string_view line) {
            if (!line.starts_with("# ")) return;
            const std::string_view comment = trimmed(line.substr(2));
            if (comment.starts_with("--")) {
                if (not_recognised_.empty()) replace_flags(comment);  // else there is nothing whose flags they are
            } else labels_.emplace_back(comment);
        });
    }

    /// `--flag=value` of a comment in place of the last command's, or added to it.
    void replace_flags(std::string_view comment) {
        std::vector<std::string> command = shell_words(base_);
        for (const std::string& flag : shell_words(comment)) {
            const std::string name = flag.substr(0, flag.find('='));
            const auto same = std::find_if(command.begin(), command.end(),
                                           [&](const std::string& word) { return word.substr(0, word.find('=')) == name; });
            if (same != command.end()) *same = flag;
            else command.push_back(flag);
        }
        arguments_.clear();
        for (const std::string& word : command) arguments_ += (arguments_.empty() ? "" : " ") + word;
    }

    void read_prose(std::string_view text) {
        for_each_line(text, [&](std::string_view line) {
            if (launches(line)) return set_command(line);
            if (line.starts_with("- ") && line.find(':') == std::string_view::npos) labels_.emplace_back(trimmed(line.substr(2)));
            const bool one_word = !line.empty() && line.find(' ') == std::string_view::npos && line.find('#') == std::string_view::npos;
            if (one_word && line.find('=') == std::string_view::npos) subject_ = line;
        });
        // Headings and profiles, wherever they stand: line breaks may be lost.
        for (std::size_t at = text.find_first_of("#P"); at != std::string_view::npos; at = text.find_first_of("#P", at)) {
            const std::string_view rest = text.substr(at);
            if (rest.starts_with("Profile: `")) {
                const auto end = rest.find('`', 10);
                if (end != std::string_view::npos) labels_.emplace_back(rest.substr(10, end - 10));
                ++at;
                continue;
            }
            const std::size_t level = std::min(rest.find_first_not_of('#'), rest.size());
            const bool heading = level > 0 && level < rest.size() && rest[level] == ' ' &&
                                 (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0);
            if (heading) add_heading(level, title_of(rest.substr(level + 1)));
            at += std::max<std::size_t>(level, 1);
        }
    }

    /// A title ends with its line, or, where lines are lost, with whatever Markdown begins next.
    static std::string title_of(std::string_view rest) {
        const auto ends = [](std::string_view at) {
            for (const std::string_view next : {"\n", " #", " - ", "???", "!!!", " |"})
                if (at.starts_with(next)) return true;
            return false;
        };
        std::size_t end = 0;  // step by step: a search for each mark would read to the end of the document for every title
        while (end < rest.size() && !ends(rest.substr(end))) ++end;
        return std::string(trimmed(rest.substr(0, end)));
    }

    void add_heading(std::size_t level, std::string title) {
        while (!headings_.empty() && headings_.back().first >= level) headings_.pop_back();
        headings_.emplace_back(level, std::move(title));
    }

    /// A section that names a model but prints no command: the last command with its model's name replaced.
    void derive() {
        if (command_here_ || subject_.empty()) return;
        std::vector<std::string> words = shell_words(base_);
        for (std::string& word : words) {
            const auto slash = word.rfind('/');
            if (word.starts_with("--") || slash == std::string::npos) continue;
            const std::string name = word.substr(slash + 1);
            const std::string family = name.substr(0, name.find('-'));
            if (!std::string_view(subject_).starts_with(family)) continue;
            derived_ = derived_ || name != subject_;
            word.replace(slash + 1, std::string::npos, subject_);
        }
        base_.clear();
        for (const std::string& word : words) base_ += (base_.empty() ? "" : " ") + word;
        arguments_ = base_;
    }

    template <class Use>
    static void for_each_line(std::string_view text, const Use& use) {
        while (!text.empty()) {
            const auto end = text.find('\n');
            use(trimmed(text.substr(0, end)));
            if (end == std::string_view::npos) break;
            text.remove_prefix(end + 1);
        }
    }

    std::vector<std::string> launchers_;
    std::vector<std::pair<std::size_t, std::string>> headings_;
    std::vector<std::string> labels_;
    std::string base_;       ///< the last command printed (or derived)
    std::string arguments_;  ///< it, with the flags of the last comment
    std::string subject_;
    std::string not_recognised_;  ///< the command that took its place, where it is none that we know
    bool derived_ = false;
    bool command_here_ = false;
    bool in_fence_ = false;
};

}  // namespace

std::vector<PublishedResult> read_published(std::string_view text, const std::vector<std::string>& launchers) {
    constexpr std::string_view marker = "Serving Benchmark Result";
    constexpr std::string_view rule = "==========";
    std::vector<PublishedResult> results;
    Surroundings surroundings(launchers);
    std::size_t after_last = 0;
    for (std::size_t at = text.find(marker); at != std::string_view::npos; at = text.find(marker, after_last)) {
        std::size_t begin = at;  // the rule before the title belongs to the block
        while (begin > after_last && (text[begin - 1] == '=' || text[begin - 1] == ' ')) --begin;
        surroundings.read(text.substr(after_last, begin - after_last));
        std::size_t content = at + marker.size();
        while (content < text.size() && (text[content] == '=' || text[content] == ' ')) ++content;
        const std::size_t next = std::min(text.find(marker, content), text.size());
        const std::size_t end = content + std::min(text.substr(content, next - content).find(rule), next - content);
        PublishedResult result;
        result.index = results.size();
        surroundings.describe(result);
        read_block(text.substr(content, end - content), result);
        results.push_back(std::move(result));
        after_last = end;
        while (after_last < text.size() && text[after_last] == '=') ++after_last;
    }
    return results;
}

}  // namespace servetune
