// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"
#include "serving_command.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Reads the text between results from start to end.
///
/// A result has the command of its own fence, or of the fence directly above: between the two stand
/// only blank lines and the titles of boxes (`??? info "Benchmark result"`, `<summary>`). All
/// results of one fence have its command; a comment of flags (`# --max-num-seqs 512`) changes it
/// for the result below. If a title or a comment may say something else than the command, the
/// result has none.
class Surroundings {
public:
    explicit Surroundings(const std::vector<Engine>& engines) : commands_(engines) {}

    /// The text since the last result, up to the next one.
    void read(std::string_view text);
    /// A result was read.
    void end_result();
    /// Whether the text read last has a command.
    [[nodiscard]] bool has_command() const { return command_here_; }

    /// What the text up to here says of the result that follows.
    void describe(PublishedResult& result) const;

private:
    struct Heading {
        std::size_t level;
        std::string text;
    };

    void read_prose(std::string_view text);
    /// Ends what stands directly above, unless the text is blank or the title of a box.
    void pass(std::string_view prose);
    /// A fence that is complete and has no result: the command that it says.
    [[nodiscard]] ServingCommand read_fence(std::string_view text) const;
    /// The text of a fence above a result in it.
    void read_own_fence(std::string_view text);
    void read_comment(std::string_view comment);
    /// Whether a text above a result may say something else than its command. A comment of several
    /// words may name a load (`random 4K input`), and `random` is a value of flags, too.
    [[nodiscard]] bool may_change(std::string_view text, std::string_view command,
                                  bool is_box = false) const;
    /// Remembers a command, for fences behind it and for messages.
    void note(ServingCommand& found);
    [[nodiscard]] std::string engine_of_headings() const;
    /// The headings that begin from `at` to `until`, wherever they stand: line breaks may be lost.
    void add_headings(std::string_view text, std::size_t& at, std::size_t until);
    /// A heading ends with its line, or, where line breaks are lost, with whatever Markdown begins
    /// next.
    static std::string title_of(std::string_view rest);
    void add_heading(std::size_t level, std::string title);
    void add_label(std::string_view label);

    ServingCommands commands_;
    std::vector<Heading> headings_;
    std::vector<std::string> labels_;
    std::set<std::string>
        items_;  ///< those of them that are list items: labels of what follows up to the next heading
    ServingCommand above_{};  ///< of what stands directly above
    ServingCommand
        own_{};            ///< of the fence that is open: its own, or what stands directly above it
    std::string changes_;  ///< flags of a comment above the result
    std::string contradiction_;  ///< a comment that may say something else than the command
    std::string last_;           ///< the last command of the document, wherever it stands
    std::string environment_;  ///< an export in a fence without a command, for the one that follows
    bool command_here_ = false;
    bool in_fence_ = false;
    bool has_result_ = false;  ///< the open fence
    std::size_t fence_ticks_ = 0;
};

}  // namespace servetune
