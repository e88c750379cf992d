// SPDX-License-Identifier: Apache-2.0
#include "surroundings.hpp"

#include "base/text.hpp"
#include "shell_programs.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace servetune {
namespace {

/// What a title says of the weights, in lower case: the whole title, but for `quantization` and the
/// like. Empty: nothing.
std::string quantization_in(std::string_view title) {
    constexpr std::size_t longest = 100;
    if (title.size() > longest) return "";
    std::string low;
    for (const char c : title) low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const std::string_view more : {"quantization", "quantized", "weights", "weight", "precision", ":"})
        for (auto at = low.find(more); at != std::string::npos; at = low.find(more)) low.erase(at, more.size());
    const std::string word(trimmed(low));
    constexpr std::array<std::string_view, 19> names{
        "fp8",   "fp4",       "awq",        "gptq",      "int4",      "int8",       "nvfp4",      "mxfp4",        "mxfp8", "w8a8",
        "w4a16", "w8a8-int8", "awq-marlin", "gptq-int4", "gptq-int8", "int4-w4a16", "int8-w8a16", "bitsandbytes", "gguf"};
    return std::find(names.begin(), names.end(), word) == names.end() ? "" : word;
}

/// The lines of a difference as they are after it.
std::string after_difference(std::string_view text) {
    std::string after;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view line = text.substr(at, text.find('\n', at) - at);
        at += line.size() + 1;
        if (line.starts_with('-') || line.starts_with("+++") || line.starts_with("@@")) continue;
        after += std::string(line.substr(line.starts_with('+') || line.starts_with(' ') ? 1 : 0)) + "\n";
    }
    return after;
}

constexpr std::size_t longest_introduction = 160;

/// A line of its own above a block: `Same, with --enable-x:`, `**with --enable-x**`, `- with
/// --enable-x`.
bool introduces(std::string_view line) {
    return line.size() <= longest_introduction &&
           (line.ends_with(':') || line.ends_with(":**") || (line.starts_with("**") && line.ends_with("**")) ||
            line.starts_with("<summary>") || (line.starts_with("- ") && line.find(':') == std::string_view::npos));
}

}  // namespace

void Surroundings::read(std::string_view text, std::vector<PublishedResult>& failed) {
    failed_ = &failed;
    labels_.clear();
    items_.clear();
    command_here_ = false;
    subject_.clear();
    doubt_.clear();
    introductions_.clear();
    other_launches_.clear();
    std::size_t at = 0;
    while (at < text.size()) {
        auto fence = text.find("```", at);
        std::size_t ticks = 0;  // a fence of four holds fences of three
        while (fence != std::string_view::npos) {
            ticks = std::min(text.find_first_not_of('`', fence), text.size()) - fence;
            if (!in_fence_ || ticks >= fence_ticks_) break;
            fence = text.find("```", fence + ticks);
        }
        const auto piece = text.substr(at, fence == std::string_view::npos ? std::string_view::npos : fence - at);
        if (in_fence_) read_fence(piece, fence == std::string_view::npos);
        else read_prose(piece);
        launches_.read_clients(piece);
        if (fence == std::string_view::npos) break;
        if (in_fence_ && !command_here_) arguments_ = base_;  // a comment is of its fence
        in_fence_ = !in_fence_;
        fence_ticks_ = in_fence_ ? ticks : 0;
        at = fence + ticks;
    }
    derive();
    measured_ = true;
    if (std::string found = doubt_of(introductions_); !found.empty()) lasting_doubt_ = std::move(found);
}

void Surroundings::describe(PublishedResult& result, bool crashed) const {
    for (const Title& heading : headings_) result.sections.push_back(heading.text);
    result.labels.assign(labels_.rbegin(), labels_.rend());
    for (auto heading = headings_.rbegin(); heading != headings_.rend(); ++heading) result.labels.push_back(heading->text);
    const std::string named = engine_of_titles(base_engine_.empty() ? 0 : base_when_);
    const Launches::Launch* one = crashed ? nullptr : launches_.one_of_several();
    if (one != nullptr && (named.empty() || named == one->engine)) {
        result.arguments = one->text;
        result.engine = one->engine;
        return;
    }
    result.not_recognised = not_recognised_.empty() && crashed_ && !crashed ? "the command above it crashed" : not_recognised_;
    if (not_recognised_.empty() && !base_engine_.empty() && !named.empty() && named != base_engine_)
        result.not_recognised = "none is printed for " + named + ", the one before is of " + base_engine_;
    const Launches::Launch* last = launches_.last();
    const bool printed = !crashed && result.not_recognised.empty() && last != nullptr && last->text == base_;
    const Launches::Choice chosen = printed ? launches_.for_block(place(), result.labels) : Launches::Choice{};
    if (printed && chosen.launch == nullptr) result.not_recognised = chosen.why_none;
    result.arguments_unknown = !result.not_recognised.empty() || !commanded_;
    result.engine = base_engine_.empty() ? named : base_engine_;
    if (!commanded_) result.quantization = quantization_of_titles();
    if (result.arguments_unknown) return;
    if (printed && chosen.launch->text != base_) {
        result.arguments = chosen.launch->text;
        result.engine = chosen.launch->engine;
        return;
    }
    result.arguments = arguments_;
    result.arguments_derived = derived_;
    result.doubt = doubt_of_titles();
    if (result.doubt.empty()) result.doubt = chosen.other;
    result.arguments_inherited = taken_ && arguments_ == base_ && !derived_;
    if (!command_here_) result.quantization = quantization_of_titles();
}

DocumentPlace Surroundings::place() const {
    DocumentPlace result;
    for (const Title& heading : headings_) result.emplace_back(heading.when, heading.text);
    if (!tab_.text.empty()) result.emplace_back(tab_.when, tab_.text);
    return result;
}

std::string Surroundings::engine_of_titles(std::size_t after) const {
    if (subject_when_ > after)
        if (const std::string named = commands_.engine_named(subject_); !named.empty()) return named;
    for (auto heading = headings_.rbegin(); heading != headings_.rend(); ++heading)
        if (heading->when > after)
            if (const std::string named = commands_.engine_named(heading->text); !named.empty()) return named;
    return "";
}

std::string Surroundings::quantization_of_titles() const {
    if (subject_when_ > base_when_)
        if (const std::string named = quantization_in(subject_); !named.empty()) return named;
    return headings_.empty() || headings_.back().when < base_when_ ? "" : quantization_in(headings_.back().text);
}

std::string Surroundings::doubt_of(const std::vector<Title>& titles) const {
    constexpr std::ptrdiff_t nearest = 20;
    for (auto title = titles.rbegin(); title != titles.rend() && title->when > base_when_; ++title) {
        if (title - titles.rbegin() == nearest) break;
        if (contradictions_.between(title->text, arguments_)) return cut_to(title->text, 200);
    }
    return "";
}

std::string Surroundings::doubt_of_titles() const {
    if (!doubt_.empty()) return doubt_;
    if (!other_launches_.empty() && other_launches_.back().when > base_when_) return cut_to(other_launches_.back().text, 200);
    return lasting_doubt_.empty() ? doubt_of(headings_) : lasting_doubt_;
}

void Surroundings::set_command(std::string_view command, const std::string& engine) {
    arguments_ = base_ = command;
    base_engine_ = engine;
    base_when_ = ++now_;
    command_here_ = true;
    commanded_ = true;
    derived_ = false;
    measured_ = taken_ = crashed_ = false;
    lasting_doubt_.clear();
    not_recognised_.clear();
}

void Surroundings::forget_command(const std::string& why) {
    set_command("", "");
    launches_.interrupt();
    not_recognised_ = why;
}

void Surroundings::take(const ServingCommand& found) {
    if (!found.not_recognised.empty()) {
        if (found.not_recognised.starts_with("export ") && contradictions_.is_variable(std::string_view(found.not_recognised).substr(7)))
            environment_ = found.not_recognised;
        forget_command(found.not_recognised);
        std::vector<Launches::Launch> several;
        for (const ServingCommand& one : found.several) several.push_back({one.text, one.engine, place()});
        if (!several.empty()) launches_.add_several(std::move(several));
        return;
    }
    if (says_only_help(found.text)) return;
    set_command(found.text, found.engine);
    // It holds for a server that is started in the same shell.
    if (!environment_.empty() && found.text.find(environment_.substr(7)) == std::string::npos) doubt_ = environment_;
    environment_.clear();
    launches_.add(found.text, found.engine, place());
}

void Surroundings::read_fence(std::string_view text, bool goes_on_to_block) {
    bool is_shell = false;
    for (const std::string_view language : {"bash", "shell", "console", "yaml", "yml", "text", "txt", "sh", "log"}) {
        if (!text.starts_with(language) ||
            (text.size() > language.size() && std::isspace(static_cast<unsigned char>(text[language.size()])) == 0))
            continue;
        text.remove_prefix(language.size());
        is_shell = language != "yaml" && language != "yml" && language != "text" && language != "txt" && language != "log";
        break;
    }
    const std::string after = text.starts_with("diff\n") ? after_difference(text.substr(5)) : "";
    if (!after.empty()) text = after;
    const std::string_view whole = trimmed(text);
    if (whole.starts_with("--")) {
        std::string flags;
        for (const std::string& line : shell_lines(whole)) flags += (flags.empty() ? "" : " ") + line;
        launches_.interrupt();
        return set_command(joined_words(shell_words(flags)), "");
    }
    bool has_command = false;
    if (const auto found = commands_.in_fence(text, is_shell && !goes_on_to_block)) {
        // What a crash printed may speak of servers.
        const bool crash = !found->not_recognised.empty() && !commands_.failure_in(found->not_recognised).empty();
        if (!crash) {
            take(*found);
            has_command = true;
            if (!goes_on_to_block && (is_shell || !command_here_)) return;
        }
    }
    const bool is_code = is_program(text);
    for_each_trimmed_line(text, [&](std::string_view line) {
        if (line.empty()) return;
        if (line.starts_with("#") && commands_.failure_in(line).empty()) {
            if (goes_on_to_block && line.starts_with("# ")) read_comment(trimmed(line.substr(2)));
            return;
        }
        if (!goes_on_to_block && !is_code) note_failure(line);
        if (!is_code && !has_command && commands_.names_other_launch(line, base_))
            other_launches_.push_back({0, std::string(line), ++now_});
    });
}

bool Surroundings::is_exception(std::string_view line) {
    const std::string_view word = line.substr(0, line.find(' '));
    return word.ends_with("Error:") || word.ends_with("Exception:");
}

bool Surroundings::is_program(std::string_view text) {
    if (text.find("Traceback") != std::string_view::npos) return false;
    bool result = false;
    for_each_trimmed_line(text, [&](std::string_view line) {
        for (const std::string_view word : {"def ", "class ", "import ", "from ", "async def "}) result = result || line.starts_with(word);
    });
    return result;
}

void Surroundings::add_label(std::string_view label) {
    constexpr std::size_t most = 200;  // nobody calls a block by what stands farther above
    if (labels_.size() == most) labels_.erase(labels_.begin());
    labels_.emplace_back(label);
}

void Surroundings::read_comment(std::string_view comment) {
    if (comment.starts_with("--")) {
        if (not_recognised_.empty()) {  // else there is nothing whose flags they are
            arguments_ = with_flags(base_, std::string(comment));
        }
        return;
    }
    add_label(comment);
    introductions_.push_back({0, std::string(comment), ++now_});
    const bool one_word = comment.find_first_of(" =:") == std::string_view::npos;
    if (!one_word || base_.empty() || !not_recognised_.empty() || !commands_.is_choice(comment)) return;
    if (const auto changed = commands_.with_choice(base_, comment)) arguments_ = *changed;
    else doubt_ = comment;
}

void Surroundings::note_failure(std::string_view line) {
    if (measured_ || !command_here_) return;
    const std::string kind = commands_.failure_in(line);
    if (kind.empty()) return;
    PublishedResult result;
    derive();
    describe(result, true);
    result.failure = kind;
    while (line.starts_with('#') || line.starts_with(' ')) line.remove_prefix(1);
    result.failure_message = std::string(line.substr(0, 300));
    while (!result.failure_message.empty() && (static_cast<unsigned char>(result.failure_message.back()) & 0x80U) != 0 && line.size() > 300)
        result.failure_message.pop_back();
    failed_->push_back(std::move(result));
    measured_ = crashed_ = true;
    launches_.measured();
}

void Surroundings::read_prose(std::string_view text) {
    std::size_t continued = 0;  // lines that a command of prose goes on over
    std::size_t titles = 0;     // up to where titles were read
    Title last_line{};          // what a block stands directly below
    const std::string_view all = text;
    bool blank = true;  // the line before
    for_each_trimmed_line(text, [&](std::string_view line) {
        const bool begins = std::exchange(blank, line.empty());
        if (!line.empty()) add_headings(all, titles, static_cast<std::size_t>(line.data() - all.data()) + 1);
        if (continued > 0) {
            --continued;
            return;
        }
        const bool indented = line.data() > all.data() && line.data()[-1] != '\n';
        if (line.starts_with("=== \"")) tab_ = {0, std::string(line.substr(4)), ++now_};
        else if (!line.empty() && !indented) tab_ = {};
        if (const auto found = commands_.in_line(line)) {
            std::string whole(line);
            std::string_view rest = all.substr(static_cast<std::size_t>(line.data() + line.size() - all.data()));
            while (trimmed(whole).ends_with('\\') && rest.find('\n') != std::string_view::npos) {
                rest.remove_prefix(rest.find('\n') + 1);
                whole += "\n" + std::string(rest.substr(0, rest.find('\n')));
                ++continued;
            }
            const auto complete = commands_.in_fence(whole, true);
            const ServingCommand& command = complete ? *complete : *found;
            // The name of a program and no more is talk about it.
            if (command.text.find(" -") == std::string::npos && shell_words(command.text).size() < 3) return;
            return take(command);
        }
        if (says_no_parameters(line)) return bare_command();
        if (!line.empty() && !line.starts_with('#')) last_line = {0, std::string(line), ++now_};
        if (introduces(line)) introductions_.push_back(last_line);
        if (commands_.names_other_launch(line, base_)) other_launches_.push_back({0, std::string(line), ++now_});
        if (begins && is_exception(line)) note_failure(line);
        if (line.starts_with("- ") && line.find(':') == std::string_view::npos) {
            add_label(trimmed(line.substr(2)));
            items_.insert(labels_.back());
        }
        const bool one_word = !line.empty() && line.find(' ') == std::string_view::npos && line.find('#') == std::string_view::npos;
        if (one_word && line.size() <= longest_introduction && line.find('=') == std::string_view::npos) {
            subject_ = line;
            subject_when_ = ++now_;
        }
    });
    add_headings(all, titles, all.size());
    if (!last_line.text.empty() && last_line.text.size() <= longest_introduction) introductions_.push_back(last_line);
    // Profiles, wherever they stand: line breaks may be lost.
    for (std::size_t at = text.find('P'); at != std::string_view::npos; at = text.find('P', at + 1)) {
        const std::string_view rest = text.substr(at);
        if (rest.starts_with("Profile: `")) {
            const auto end = rest.find('`', 10);
            if (end != std::string_view::npos) add_label(rest.substr(10, end - 10));
            continue;
        }
        if (says_no_parameters(rest.substr(0, 24)) && text.substr(0, at).find('\n') == std::string_view::npos)
            bare_command();  // where lines were lost
    }
}

void Surroundings::add_headings(std::string_view text, std::size_t& at, std::size_t until) {
    for (at = text.find('#', at); at < until; at = text.find('#', at)) {
        const std::string_view rest = text.substr(at);
        const std::size_t level = std::min(rest.find_first_not_of('#'), rest.size());
        constexpr std::size_t deepest = 6;  // of Markdown
        const bool heading = level <= deepest && level < rest.size() && rest[level] == ' ' &&
                             (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0);
        if (heading) add_heading(level, title_of(rest.substr(level + 1)));
        at += level;
    }
}

bool Surroundings::says_no_parameters(std::string_view line) {
    for (const std::string_view what : {"Parameters:", "parameters:"}) {
        const auto at = line.find(what);
        if (at == std::string_view::npos) continue;
        const std::string_view value = trimmed(line.substr(at + what.size()));
        for (const std::string_view none : {"N/A", "none", "None", "-"})
            if (value == none || (none == "N/A" && value.starts_with(none))) return true;
    }
    return false;
}

void Surroundings::bare_command() {
    std::string bare;
    const std::vector<std::string> words = shell_words(base_);
    for (std::size_t i = 0; i < words.size() && !base_engine_.empty(); ++i) {
        const bool of_model = words[i].starts_with("--model") || words[i] == "-m";
        if (words[i].starts_with("-") && !of_model) break;
        bare += (bare.empty() ? "" : " ") + joined_words({words[i]});
    }
    launches_.interrupt();
    set_command(bare, base_engine_);
}

std::string Surroundings::title_of(std::string_view rest) {
    constexpr std::size_t longest_title = 200;
    const std::string_view line = rest.substr(0, rest.substr(0, longest_title).find('\n'));
    if (line.size() < std::min(rest.size(), longest_title)) return std::string(trimmed(line));
    const auto ends = [](std::string_view at) {
        for (const std::string_view next : {"\n", " #", " - ", "???", "!!!", " |"})
            if (at.starts_with(next)) return true;
        return false;
    };
    std::size_t end = 0;  // step by step: a search for each mark would read to the end of the document for every title
    while (end < rest.size() && !ends(rest.substr(end))) ++end;
    return std::string(trimmed(rest.substr(0, end)));
}

void Surroundings::add_heading(std::size_t level, std::string title) {
    while (!headings_.empty() && headings_.back().level >= level) headings_.pop_back();
    headings_.push_back({level, std::move(title), ++now_});
    lasting_doubt_.clear();
    tab_ = {};
    std::erase_if(labels_, [&](const std::string& label) { return items_.contains(label); });
    items_.clear();
}

void Surroundings::derive() {
    if (command_here_ || subject_.empty()) return;
    std::vector<std::string> words = shell_words(base_);
    bool changed = false;
    for (std::string& word : words) {
        const auto slash = word.rfind('/');
        if (word.starts_with("--") || slash == std::string::npos) continue;
        const std::string name = word.substr(slash + 1);
        const std::string family = name.substr(0, name.find('-'));
        if (!std::string_view(subject_).starts_with(family)) continue;
        derived_ = derived_ || name != subject_;
        if (name == subject_) continue;
        word.replace(slash + 1, std::string::npos, subject_);
        changed = true;
    }
    if (!changed) return;
    base_ = joined_words(words);
    arguments_ = base_;
}

}  // namespace servetune
