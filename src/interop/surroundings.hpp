// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "contradictions.hpp"
#include "launches.hpp"
#include "servetune/detail/interop/published.hpp"
#include "serving_command.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Reads the text between blocks from start to end and remembers what was said last.
class Surroundings {
public:
    explicit Surroundings(const std::vector<Engine>& engines) : commands_(engines), contradictions_(engines) {}

    /// The text since the last block, up to the next one. The commands in it that crashed are added
    /// to `failed`.
    void read(std::string_view text, std::vector<PublishedResult>& failed);
    /// A block was read: what is launched behind it is not beside what stands above it.
    void end_block() {
        launches_.measured();
        taken_ = true;
    }
    /// Whether the text read last starts a server.
    [[nodiscard]] bool has_command() const { return command_here_ && !base_engine_.empty(); }

    /// What the text up to here says of the block that follows, or of the command that crashed.
    void describe(PublishedResult& result, bool crashed = false) const;

private:
    /// A title, label or line that may say whose figures follow it, and when it was read.
    struct Title {
        std::size_t level;  ///< of a heading; 0: a line of prose
        std::string text;
        std::size_t when;
    };

    [[nodiscard]] DocumentPlace place() const;
    /// The engine named nearest, behind `after`; nothing said further out counts where a nearer
    /// title names one.
    [[nodiscard]] std::string engine_of_titles(std::size_t after) const;
    [[nodiscard]] std::string quantization_of_titles() const;
    /// The nearest title behind the command, or a line that introduces the block, that contradicts
    /// the command.
    [[nodiscard]] std::string doubt_of_titles() const;
    [[nodiscard]] std::string doubt_of(const std::vector<Title>& titles) const;
    void set_command(std::string_view command, const std::string& engine);
    /// A command that we do not know is not the one before it either.
    void forget_command(const std::string& why);
    void take(const ServingCommand& found);
    /// A fence holds a command, only flags, what a crash printed, or comments that introduce the
    /// block it goes on to.
    void read_fence(std::string_view text, bool goes_on_to_block);
    /// `ValueError: ...`, which begins a paragraph; errors that a sentence speaks of are no crash.
    static bool is_exception(std::string_view line);
    /// A program, or an answer that holds one: what it says of errors is no crash.
    static bool is_program(std::string_view text);
    /// A comment above a block: flags that were changed, a value of one of them, or a label.
    void add_label(std::string_view label);
    void read_comment(std::string_view comment);
    /// A command that crashed before it was measured is a result, too.
    void note_failure(std::string_view line);
    void read_prose(std::string_view text);
    /// The headings that begin from `at` to `until`, wherever they stand: line breaks may be lost.
    void add_headings(std::string_view text, std::size_t& at, std::size_t until);
    /// `Baseline Backend Parameters: N/A`: the bare command.
    static bool says_no_parameters(std::string_view line);
    /// The last command without its flags, or no flags.
    void bare_command();
    /// A title ends with its line, or, where line breaks are lost, with whatever Markdown begins
    /// next.
    static std::string title_of(std::string_view rest);
    void add_heading(std::size_t level, std::string title);
    /// A section that names a model but prints no command: the last command with its model's name
    /// replaced.
    void derive();

    ServingCommands commands_;
    Contradictions contradictions_;
    std::vector<PublishedResult>* failed_ = nullptr;
    Launches launches_;
    std::vector<Title> headings_;
    Title tab_{};                        ///< `=== "name"`: what is indented below it
    std::vector<Title> other_launches_;  ///< lines since the last block that speak of a launch and are not read as one
    std::string environment_;            ///< what a fence without a command exports, for one that follows
    std::string lasting_doubt_;          ///< by a line above this block or an earlier one, up to the next command or title
    std::vector<Title> introductions_;   ///< lines such as `With --enable-x:` since the last block
    std::vector<std::string> labels_;
    std::set<std::string> items_;  ///< those of them that are list items: labels of what follows up to the next heading
    std::size_t now_ = 0;          ///< counts what was read
    std::string base_;             ///< the last command printed (or derived)
    std::string base_engine_;      ///< that it starts; empty: flags only
    std::size_t base_when_ = 0;
    std::string arguments_;  ///< it, with the flags of the last comment
    std::string subject_;
    std::size_t subject_when_ = 0;
    std::string doubt_;           ///< a comment that may be a value
    std::string not_recognised_;  ///< the command that took its place, where it is none that we know
    bool derived_ = false;
    bool command_here_ = false;
    bool commanded_ = false;  ///< the text had some command, or flags
    bool measured_ = false;   ///< the last command has a result
    bool taken_ = false;      ///< a block had it
    bool crashed_ = false;    ///< the last command did
    bool in_fence_ = false;
    std::size_t fence_ticks_ = 0;
};

}  // namespace servetune
