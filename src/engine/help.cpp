// SPDX-License-Identifier: Apache-2.0
#include "help.hpp"

#include "base/text.hpp"
#include "host/run_command.hpp"
#include "host/start_program.hpp"
#include "launcher.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace servetune {

using namespace std::chrono_literals;

namespace {

/// The flag at the front of `text`: one or two dashes, a letter, and what else names are made of;
/// empty when none is there.
std::string_view flag_at_front(std::string_view text) {
    const std::size_t dashes = std::min(text.find_first_not_of('-'), text.size());
    if (dashes < 1 || dashes > 2 || dashes == text.size() ||
        std::isalpha(static_cast<unsigned char>(text[dashes])) == 0)
        return {};
    const auto end = std::find_if(text.begin() + std::ptrdiff_t(dashes), text.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.';
    });
    // `--part-*-of-it` in a description is no name.
    if (end != text.end() && !contains(" \t\r,=[/(<", *end)) return {};
    return text.substr(0, std::size_t(end - text.begin()));
}

/// From behind one spelling to the next one of the line: it stands behind a comma or a slash,
/// before the two blanks or the tab that begin the description. Empty: there is none.
std::string_view next_spelling(std::string_view rest) {
    for (; !rest.empty() && !rest.starts_with("  ") && !rest.starts_with('\t');
         rest.remove_prefix(1)) {
        if (rest.front() != ',' && rest.front() != '/') continue;
        const std::string_view next = trimmed(rest.substr(1));
        if (!flag_at_front(next).empty()) return next;
    }
    return {};
}

/// What switches off what `flag` switches on, where the two are listed as a pair: `--disable-x` of
/// `--enable-x`.
std::string other_of_pair(std::string_view flag) {
    for (const auto& [prefix, inverse] :
         {std::pair("--enable-", "--disable-"), std::pair("--disable-", "--enable-")})
        if (flag.starts_with(prefix))
            return inverse + std::string(flag.substr(std::string_view(prefix).size()));
    return {};
}

/// What the last words of a failure are, for a message.
std::string said_last(std::string_view output) {
    const std::string_view all = trimmed(output);
    const std::string_view last = trimmed(all.substr(all.rfind('\n') + 1));
    return last.empty() ? "without a word" : fmt::format("saying: {}", last.substr(0, 200));
}

/// Why the answer is not the whole help; empty when it is.
std::string refusal(const RanCommand& ran, const HelpLimits& limits,
                    const std::set<std::string>& flags, const std::vector<std::string>& expected) {
    if (ran.end == RanCommand::End::out_of_time)
        return fmt::format("gave no answer within {} s and was stopped",
                           std::chrono::duration<double>(limits.time).count());
    if (ran.end == RanCommand::End::too_much_output)
        return fmt::format("printed more than {} bytes and was stopped", limits.output_bytes);
    if (ran.exit_code != 0)
        return fmt::format("ended with exit code {}, {}", ran.exit_code, said_last(ran.output));
    for (const std::string& flag : expected)
        if (!flags.contains(flag)) return fmt::format("does not list {}, so not all flags", flag);
    return {};
}

}  // namespace

std::set<std::string> flags_in_help(std::string_view text,
                                    const std::vector<std::string>& of_removed) {
    std::set<std::string> flags;
    for (const std::string& line : parts_of(text, '\n')) {
        // argparse and click indent flags by 2, llama.cpp by none; all indent the lines of a
        // description by 24 or more.
        if (line.starts_with("         ")) continue;
        if (any_of(of_removed, [&](const std::string& words) { return contains(line, words); }))
            continue;
        const std::string_view first = flag_at_front(trimmed(line));
        for (std::string_view rest = trimmed(line); !flag_at_front(rest).empty();) {
            const std::string_view flag = flag_at_front(rest);
            flags.emplace(flag);
            // Of such a pair the older spelling `--no-enable-x` is taken too and listed nowhere
            // (vLLM 0.33).
            if (flag == other_of_pair(first)) flags.insert("--no-" + std::string(first.substr(2)));
            rest = next_spelling(rest.substr(flag.size()));
        }
    }
    return flags;
}

InstalledFlags installed_flags(const Engine& engine, HelpLimits limits) {
    if (limits.time.count() == 0)
        limits.time =
            std::max(60s, std::chrono::seconds(std::llround(engine.ready_within_seconds / 5)));
    const std::vector<std::string> program = launcher_words(engine);
    if (program.empty())
        return {"",
                {},
                "the launch command of " + engine.name +
                    " names no program: its --help was not consulted"};
    const std::filesystem::path file = find_program(program.front());
    if (file.empty())
        return {program.front(),
                {},
                program.front() + " is not installed here: its --help was not consulted"};
    std::vector<std::string> expected;
    for (std::size_t i = program.size(); i < engine.launch.size(); ++i)
        if (engine.launch[i].starts_with('-'))
            expected.push_back(engine.launch[i].substr(0, engine.launch[i].find('=')));

    InstalledFlags result;
    for (const std::vector<std::string>& words : engine.help) {
        std::vector<std::string> argv = program;
        argv.insert(argv.end(), words.begin(), words.end());
        result.command = fmt::format("{}", fmt::join(argv, " "));
        argv.front() = file.string();
        const RanCommand ran = run_command(argv, limits.time, limits.output_bytes);
        std::set<std::string> flags = flags_in_help(ran.output, engine.help_of_removed);
        const std::string why = refusal(ran, limits, flags, expected);
        if (why.empty()) return {result.command, std::move(flags), ""};
        result.why_not = fmt::format("'{}' {}: it was not consulted", result.command, why);
        if (ran.end == RanCommand::End::out_of_time)
            break;  // asking in other words would take as long again
    }
    return result;
}

}  // namespace servetune
