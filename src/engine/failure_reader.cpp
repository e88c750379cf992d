// SPDX-License-Identifier: Apache-2.0
#include "failure_reader.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace servetune {
namespace {

constexpr std::string_view begins = "Traceback (most recent call last):";
constexpr std::size_t most_open = 32;  // processes that fail at the same time
constexpr std::size_t most_lines =
    400;  // of one traceback: recursion ends at 1000 calls, message_bounded by Python
constexpr std::size_t most_message_bytes = 500;

bool is_decimal(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
bool is_python_name(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
}
bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }

/// Without the colours of a terminal.
std::string plain(std::string_view line) {
    std::string result;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
            i = std::min(line.find('m', i), line.size());
            continue;
        }
        result += line[i];
    }
    return result;
}

/// Numbers beside a colon or a full stop as zeros: a clock goes on within one traceback, a process
/// number does not.
std::string without_clock(std::string_view text) {
    std::string result(text);
    for (std::size_t begin = 0; begin < result.size();) {
        if (!is_decimal(result[begin])) {
            ++begin;
            continue;
        }
        std::size_t end = begin;
        while (end < result.size() && is_decimal(result[end])) ++end;
        const auto is_clock = [](char letter) { return letter == ':' || letter == '.'; };
        if ((begin > 0 && is_clock(result[begin - 1])) ||
            (end < result.size() && is_clock(result[end])))
            std::fill(result.begin() + static_cast<std::ptrdiff_t>(begin),
                      result.begin() + static_cast<std::ptrdiff_t>(end), '0');
        begin = end;
    }
    return result;
}

std::string_view stripped_line(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

/// `torch.OutOfMemoryError` of "torch.OutOfMemoryError: ..."; empty where the text is no exception.
/// A class name has letters of both cases; "INFO: ..." is a message.
std::string_view class_of(std::string_view text) {
    const auto end = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_python_name) - text.begin());
    const std::string_view name = text.substr(0, end);
    if (name.empty() || is_decimal(name.front()) || (end < text.size() && text[end] != ':'))
        return {};
    const std::string_view last =
        name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
    const auto is = [](int (*what)(int)) {
        return [what](char letter) { return what(static_cast<unsigned char>(letter)) != 0; };
    };
    const bool both = std::any_of(last.begin(), last.end(), is(std::islower)) &&
                      std::any_of(last.begin(), last.end(), is(std::isupper));
    return both ? name : std::string_view{};
}

bool ends_on_request(std::string_view text) {
    const std::string_view name = class_of(text);
    const std::string_view last =
        name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
    constexpr std::array<std::string_view, 4> words{"KeyboardInterrupt", "SystemExit",
                                                    "CancelledError", "GeneratorExit"};
    return std::find(words.begin(), words.end(), last) != words.end();
}

bool below_error(std::string_view prefix) {
    constexpr std::array<std::string_view, 3> levels{"WARNING", "INFO", "DEBUG"};
    return std::any_of(levels.begin(), levels.end(), [&](std::string_view level) {
        return prefix.find(level) != std::string_view::npos;
    });
}

std::string message_bounded(std::string_view text) {
    return text.size() <= most_message_bytes
               ? std::string(text)
               : std::string(text.substr(0, most_message_bytes)) + " ...";
}

}  // namespace

void TracebackReader::read(std::string_view raw) {
    const std::string line = plain(raw);
    const std::string same = without_clock(line);
    if (const std::size_t at = line.find(begins); at != std::string::npos) {
        if (open_.size() >= most_open) open_.erase(open_.begin());
        Open open{same.substr(0, at)};
        open.linked = chain_goes_on_ && open.prefix == prefix_;
        open.ignored = below_error(open.prefix);
        if (open.linked) chain_goes_on_ = false;
        open_.push_back(std::move(open));
        message_goes_on_ = false;
        return;
    }
    if (exception_) read_after_exception(line, same);
    for (std::size_t i = 0; i < open_.size(); ++i)
        if (continue_with(open_[i], line, same)) {
            if (open_[i].lines > most_lines)
                open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
            return;
        }
    if (exception_) return;
    if (line.find("terminate called after throwing an instance of") != std::string::npos)
        thrown_ = true;
    else if (const std::size_t what = line.find("what():"); thrown_ && what != std::string::npos)
        exception_ = message_bounded(stripped_line(
            std::string_view(line).substr(what + std::string_view("what():").size())));
    else if (const std::size_t fatal = line.find("Fatal Python error: ");
             fatal != std::string::npos)
        exception_ = message_bounded(std::string_view(line).substr(fatal));
}

bool TracebackReader::continue_with(Open& open, std::string_view line, std::string_view same) {
    if (open.first_line) {
        if (same.starts_with(open.prefix + "  File ")) open.first_line = false;
        else if (same.starts_with("  File ")) {
            open.prefix.clear();
            open.first_line = false;
        } else return false;
    }
    if (!same.starts_with(open.prefix)) return false;
    const std::string_view text = line.substr(open.prefix.size());
    ++open.lines;
    if (stripped_line(text).empty()) return true;
    if (is_blank(text.front())) {
        if (stripped_line(text).starts_with("File \"")) open.place = stripped_line(text);
        return true;
    }
    if (class_of(text).empty())
        return !open.prefix.empty();  // without a prefix it may be another process's line
    const Open done = std::move(open);
    open_.erase(open_.begin() + (&open - open_.data()));
    finish(done, text);
    return false;
}

void TracebackReader::finish(const Open& open, std::string_view text) {
    if (open.ignored || ends_on_request(text) || (exception_ && !open.linked)) return;
    exception_ = message_bounded(text);
    place_ = open.place;
    prefix_ = open.prefix;
    message_goes_on_ = true;
}

/// A message in several lines has its reason in the second ("1 validation error for ModelConfig").
void TracebackReader::read_after_exception(std::string_view line, std::string_view same) {
    if (!same.starts_with(prefix_)) return;
    const std::string_view text = line.substr(prefix_.size());
    if (message_goes_on_ && !text.empty() && is_blank(text.front()) &&
        !stripped_line(text).empty() && exception_->size() < most_message_bytes)
        exception_ = message_bounded(*exception_ + " " + std::string(stripped_line(text)));
    if (!stripped_line(text).empty()) message_goes_on_ = false;
    if (text.starts_with("The above exception was the direct cause of") ||
        text.starts_with("During handling of the above exception"))
        chain_goes_on_ = true;
}

bool is_error_line(std::string_view line) {
    const std::string text = plain(line.substr(0, most_message_bytes));
    constexpr std::array<std::string_view, 5> words{"ERROR", "FATAL", "CRITICAL",
                                                    "error:", "fatal:"};
    if (std::any_of(words.begin(), words.end(),
                    [&](std::string_view word) { return text.find(word) != std::string::npos; }))
        return true;
    // A clock, the level as one letter, the message.
    const std::size_t clock = text.find(' ');
    const auto of_clock = [](char letter) {
        return is_decimal(letter) || letter == '.' || letter == ':';
    };
    return clock != std::string::npos && clock > 0 && text.compare(clock, 3, " E ") == 0 &&
           std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(clock), of_clock);
}

FailureKind kind_of_exception(std::string_view exception) {
    const std::string_view name = class_of(exception);
    if (name == "MemoryError") return FailureKind::out_of_memory;
    // A back end's package that is not installed: other values of the flags may not need it.
    if (name == "ModuleNotFoundError" || name == "ImportError") return FailureKind::unsupported;
    return FailureKind::other;
}

std::optional<DecisiveLine> decisive_line(const Engine& engine, std::span<const std::string> log) {
    for (const std::string& line : log)
        for (const FailurePattern& pattern : engine.failures) {
            const auto is_in = [&](const std::string& text) {
                return line.find(text) != std::string::npos;
            };
            if (std::any_of(pattern.match.begin(), pattern.match.end(), is_in))
                return DecisiveLine{
                    named_in(failure_kinds, pattern.kind).value_or(FailureKind::other), line};
        }
    return std::nullopt;
}

}  // namespace servetune
