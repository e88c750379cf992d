// SPDX-License-Identifier: Apache-2.0
#include "printed_block.hpp"

#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "engine/launcher.hpp"
#include "engine/shell_word.hpp"
#include "result_format.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace servetune {
namespace {

bool blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// A label in lower case, without the blanks around it and before an opening bracket: "Mean
/// Latency(s)" and "TPOT (ms)" alike.
std::string spelled(std::string_view label) {
    std::string result;
    for (const char c : label) {
        if (c == '(')
            while (!result.empty() && blank(result.back())) result.pop_back();
        if (!result.empty() || !blank(c))
            result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    while (!result.empty() && blank(result.back())) result.pop_back();
    return result;
}

/// Who prints such a label and nobody else; vLLM's own are printed by others, too.
std::string_view tool_of(std::string_view label) {
    for (const std::string_view sglang :
         {"backend", "traffic request rate", "total generated tokens(retokenized)",
          "mean e2e latency(ms)"})
        if (label == sglang) return "sglang";
    return label == "mean latency(s)" ? "gpustack" : "";
}

/// GPUStack prints GuideLLM's largest rate as the peak: that of an interval of 0.1 ms between two
/// tokens (hack/perf/perf_doc_common.py), no rate over a second.
void drop_rate_of_instant(PublishedResult& result) {
    auto& peak = result.result.peak_output_tokens_per_second;
    if (result.tool != "gpustack" || !peak) return;
    result.unread["peak output token throughput(tok/s), over an instant"] = text_of(*peak);
    peak.reset();
}

/// Behind a value, in its line: `1280.00 -> 1600.00`, `1 280.00`. Nobody knows which counts.
bool goes_on_with_number(std::string_view rest) {
    rest = rest.substr(0, rest.find('\n'));
    const std::size_t next = rest.find_first_not_of(" \t\r");
    return next < rest.size() && std::isalpha(static_cast<unsigned char>(rest[next])) == 0 &&
           rest[next] != '=' && !rest.substr(next).starts_with("--") &&
           rest.find_first_of("0123456789", next) != npos;
}

/// How the tools say that there is no such figure: no cap, no rate, too few requests.
bool says_none(std::string_view value) {
    return value == "N/A" || value == "None" || value == "not set" || value == "inf";
}

// -------------------------------------------------------------------------------------------------
// the command above

/// Devices, access to hubs, logging: two commands that differ in these alone are one configuration.
bool changes_no_measurement(std::string_view variable) {
    if (variable.ends_with("_VISIBLE_DEVICES") || names_secret(variable)) return true;
    for (const std::string_view part : {"HF_", "HUGGING", "LOGGING", "NCCL_DEBUG", "PYTHON"})
        if (contains(variable, part)) return true;
    return false;
}

/// The name in `NAME=value`; empty: it is none.
std::string_view variable_set_by(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('='));
    return name.size() < word.size() && is_variable_name(name) ? name : std::string_view();
}

/// Where the text directly above a result stands: in its own fence, in the fence above, or in the
/// last lines above. Lines are given in order, from the end of the result before.
class TextAbove {
public:
    void read(std::string_view line) {
        const std::string_view text = trimmed(line);
        const std::size_t ticks = std::min(text.find_first_not_of('`'), text.size());
        const bool fence = ticks > 2 && (fence_ == 0 || (ticks >= fence_ && ticks == text.size()));
        if (fence && fence_ == 0) {
            fence_ = ticks;
            own_.clear();
            has_result_ = false;
        } else if (fence) {
            fence_ = 0;
            above_ = has_result_ ? "" : own_;
        } else if (fence_ > 0) own_.append(line).append("\n");
        else if (!text.empty()) {
            const bool goes_on = above_.ends_with("\\\n");
            (goes_on ? above_ : above_ = "").append(text).append("\n");
        }
    }
    std::string take() {
        std::string text = fence_ > 0 && !trimmed(own_).empty() ? own_ : above_;
        own_.clear();
        above_.clear();
        has_result_ = true;
        return text;
    }

private:
    std::size_t fence_ = 0;  ///< ticks of the open one; a fence of four holds fences of three
    bool has_result_ = false;
    std::string own_{}, above_{};
};

}  // namespace

void read_block(std::string_view block, PublishedResult& into) {
    const FormatTable& known = format_table("printed");
    const auto figures = figures_in(into.result);
    std::set<std::optional<double>*> seen, twice;  // that are printed, and with two values
    std::size_t label_start = 0;
    for (std::size_t colon = block.find(':'); colon != npos; colon = block.find(':', colon + 1)) {
        if (colon < label_start) continue;  // within a value
        std::string_view label = block.substr(label_start, colon - label_start);
        // Of what stands before a colon, a rule of dashes and earlier lines belong to no label.
        if (const auto rule = label.rfind("--"); rule != npos) label.remove_prefix(rule + 2);
        while (!label.empty() && blank(label.back())) label.remove_suffix(1);
        if (const auto line = label.rfind('\n'); line != npos) label.remove_prefix(line + 1);
        std::size_t start = colon + 1;
        while (start < block.size() && blank(block[start]) && block[start] != '\n') ++start;
        std::size_t end = start;
        while (end < block.size() && !blank(block[end])) ++end;
        if (block.substr(start).starts_with("not set"))
            end = start + std::string_view("not set").size();
        const std::string value(block.substr(start, end - start));
        const bool another = goes_on_with_number(block.substr(end));
        const std::string name = spelled(label);
        label_start = end;
        if (name.empty() || value.empty()) continue;
        if (into.tool.empty()) into.tool = tool_of(name);
        const auto row =
            find_if(known.rows, [&](const FormatRow& one) { return one.path == name; });
        if (value == "N/A" || (row != known.rows.end() && says_none(value))) continue;
        // The power of ten goes into the text, so that 15.12 ms is the double nearest to 0.01512.
        const auto number =
            row != known.rows.end() && !another && value != "-1"  // not known
                ? real_of(row->exponent == 0 ? value : value + "e" + std::to_string(row->exponent))
                : std::nullopt;
        bool taken = false;
        if (number && std::isfinite(*number)) {
            std::optional<double>* figure = figures[row->figure];
            // Two blocks side by side: nobody knows whose it is.
            taken = seen.insert(figure).second || *figure == number;
            if (!taken) twice.insert(figure);
            *figure = twice.contains(figure) ? std::nullopt : number;
        }
        if (taken) continue;
        std::string& unread = into.unread[name];
        unread += (unread.empty() ? "" : "; ") + value;  // some labels stand in two sections
    }
    drop_unmeasured(into.result);
    drop_rate_of_instant(into);
}

ServingCommand serving_command(std::string_view text, const std::vector<Engine>& engines) {
    std::string shell;
    for (const std::string& all : parts_of(text, '\n')) {
        std::string_view line = trimmed(all);
        if (line.starts_with("$ ") || line.starts_with("> ")) line.remove_prefix(2);
        shell.append(line).append("\n");
    }
    std::vector<ShellCommand> commands;
    try {
        commands = shell_commands(shell);
    } catch (const ParseError& error) {
        return {"", "",
                std::string("no shell reads what stands directly above it: ") + error.what()};
    }
    ServingCommand found;
    for (const ShellCommand& command : commands) {
        const std::string_view said = std::string_view(shell).substr(
            command.front().begin, command.back().end - command.front().begin);
        const auto none = [&](const std::string& why) {
            return ServingCommand{"", "", why + ": " + start_of(said, 200)};
        };
        const Texts words = shell_words(said);
        std::size_t at = 0;
        std::string environment;
        for (; at < words.size() && !variable_set_by(words[at]).empty(); ++at)
            if (!changes_no_measurement(variable_set_by(words[at])))
                environment += shell_line({words[at]}) + " ";
        const Engine* engine =
            at == words.size() ? nullptr : launched_at(engines, words, at).engine;
        if (engine == nullptr) return none("what stands directly above it starts no engine");
        if (!found.text.empty()) return none("several commands");
        for (std::size_t i = 0; i < command.size(); ++i) {
            const std::string& word = command[i].text;
            if (!command[i].literal && word.find_first_of("$`") != npos &&
                (i >= at || !changes_no_measurement(variable_set_by(word))))
                return none("a part of it is known only where it runs");
            if (word.ends_with(".yaml") || word.ends_with(".yml"))
                return none("its settings are in a file");
        }
        found.text = environment + shell_line({words.begin() + std::ptrdiff_t(at), words.end()});
        found.engine = lower_case(engine->name);
    }
    if (found.text.empty()) found.not_recognised = "no command stands directly above it";
    return found;
}

std::vector<PublishedResult> read_printed_blocks(std::string_view text,
                                                 const std::vector<Engine>& engines) {
    constexpr std::string_view title = "Serving Benchmark Result";
    std::vector<PublishedResult> results;
    TextAbove above;
    std::size_t after_last = 0;
    for (std::size_t at = text.find(title); at != npos; at = text.find(title, after_last)) {
        std::size_t begin = at;  // the rule before the title belongs to the block
        while (begin > after_last && (text[begin - 1] == '=' || text[begin - 1] == ' ')) --begin;
        for (const std::string& line : parts_of(text.substr(after_last, begin - after_last), '\n'))
            above.read(line);
        std::size_t content = at + title.size();
        while (content < text.size() && (text[content] == '=' || text[content] == ' ')) ++content;
        // A block ends with its rule; where that is missing, with its fence, at a heading, at HTML
        // or at the next block.
        std::string_view block = text.substr(content);
        for (const std::string_view end :
             {title, std::string_view("=========="), std::string_view("```"),
              std::string_view("\n#"), std::string_view("\n</")})
            block = block.substr(0, block.find(end));
        after_last = content + block.size();
        while (after_last < text.size() && text[after_last] == '=') ++after_last;
        PublishedResult result;
        ServingCommand command = serving_command(above.take(), engines);
        result.arguments = std::move(command.text);
        result.engine = std::move(command.engine);
        result.not_recognised = std::move(command.not_recognised);
        result.arguments_unknown = result.arguments.empty();
        read_block(block, result);
        results.push_back(std::move(result));
    }
    return results;
}

}  // namespace servetune
