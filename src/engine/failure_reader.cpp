// SPDX-License-Identifier: Apache-2.0
#include "failure_reader.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace servetune {
namespace {

constexpr std::string_view begins = "Traceback (most recent call last):";
constexpr std::size_t most_open = 32;  // processes that fail at the same time
constexpr std::size_t most_lines =
    400;  // of one traceback: recursion ends at 1000 calls, which Python shortens
constexpr std::size_t most_message_bytes = 500;

bool is_decimal(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
bool is_of_name(char letter, char also = '-') {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == also;
}
bool is_python_name(char letter) { return is_of_name(letter, '.'); }
bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }
std::string kept_start(std::string_view message) { return start_of(message, most_message_bytes); }

/// The first of the words that a text has, or the end of them.
template <class Words>
auto word_within(std::string_view text, const Words& words) {
    return find_if(words, [&](std::string_view word) { return contains(text, word); });
}

/// `D` of "a.b.D".
std::string_view plain_class(std::string_view name) { return name.substr(name.rfind('.') + 1); }

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
            std::fill(result.begin() + std::ptrdiff_t(begin), result.begin() + std::ptrdiff_t(end),
                      '0');
        begin = end;
    }
    return result;
}

/// `torch.OutOfMemoryError` of "torch.OutOfMemoryError: ..."; empty where the text is no exception.
/// A class name has letters of both cases; "INFO: ..." is a message.
std::string_view class_of(std::string_view text) {
    const auto end =
        std::size_t(std::find_if_not(text.begin(), text.end(), is_python_name) - text.begin());
    const std::string_view name = text.substr(0, end);
    if (name.empty() || is_decimal(name.front()) || (end < text.size() && text[end] != ':'))
        return {};
    const std::string_view last = plain_class(name);
    const bool both = lower_case(std::string(last)) != last &&
                      any_of(last, [](unsigned char c) { return std::islower(c) != 0; });
    return both ? name : std::string_view{};
}

bool ends_on_request(std::string_view text) {
    constexpr std::array<std::string_view, 4> words{"KeyboardInterrupt", "SystemExit",
                                                    "CancelledError", "GeneratorExit"};
    return contains(words, plain_class(class_of(text)));
}

bool below_error(std::string_view prefix) {
    constexpr std::array<std::string_view, 6> levels{"WARNING",  "INFO", "DEBUG",
                                                     "Warning:", "[W] ", "[I] "};
    // NCCL_DEBUG=INFO stands further behind.
    return word_within(prefix.substr(0, 120), levels) != levels.end();
}

/// Lower case, and a blank for what joins words.
std::string in_words(const std::string& text) {
    std::string result = lower_case(text);
    for (char& letter : result)
        if (letter == '_' || letter == '-') letter = ' ';
    return result;
}

/// Whether a line has the name, or, as a sentence has it, its words ("Chunked prefill" is
/// enable_chunked_prefill). One word of English is no name: `fit`, `device`.
bool names(std::string line, std::string name) {
    if (!name.starts_with("--")) {
        line = in_words(line);
        name = in_words(name);
        if (name.starts_with("enable ") && name.find(' ', 7) != npos) name.erase(0, 7);
        if (!contains(name, ' ')) return false;
    }
    for (auto at = line.find(name); at != npos; at = line.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || !is_of_name(line[at - 1])) &&
            (end == line.size() || !is_of_name(line[end])))
            return true;
    }
    return false;
}

/// Whether a pattern of this kind counts in a line with its words.
bool counts(const FailurePattern& pattern, FailureKind kind, std::string_view line,
            const std::string& words, std::span<const std::string> set) {
    const std::size_t at = line.find(words), end = at + words.size();
    if (kind != FailureKind::ignored_flags) return !below_error(line.substr(0, at));
    // The sentence up to the words, and a name just behind them: "A is on. --x will be ignored
    // because of --y", "unknown variable: X". "A is set, disabling B" is about B alone.
    const bool active = words.ends_with("ing");
    const std::size_t begin = line.substr(0, at).rfind(". ") + 1;  // npos + 1 is 0
    const std::size_t next = std::min(line.find_first_not_of(": ", end), line.size());
    return any_of(set, [&](const std::string& name) {
        return pattern.of.empty()
                   ? (!active && names(std::string(line.substr(begin, at - begin)), name)) ||
                         names(std::string(line.substr(next, name.size() + 1)), name)
                   : contains(pattern.of, name);
    });
}

}  // namespace

void TracebackReader::read(std::string_view raw) {
    const std::string line = plain(raw);
    const std::string same = without_clock(line);
    if (const std::size_t at = line.find(begins); at != npos) {
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
            if (open_[i].lines > most_lines) open_.erase(open_.begin() + std::ptrdiff_t(i));
            return;
        }
    if (exception_) return;
    if (contains(line, "terminate called after throwing an instance of")) thrown_ = true;
    else if (const std::size_t what = line.find("what():"); thrown_ && what != npos)
        exception_ = kept_start(
            trimmed(std::string_view(line).substr(what + std::string_view("what():").size())));
    else if (const std::size_t fatal = line.find("Fatal Python error: "); fatal != npos)
        exception_ = kept_start(std::string_view(line).substr(fatal));
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
    if (trimmed(text).empty()) return true;
    if (is_blank(text.front())) {
        if (trimmed(text).starts_with("File \"")) open.place = trimmed(text);
        return true;
    }
    if (class_of(text).empty())
        return !open.prefix.empty();  // without a prefix it may be another process's line
    const Open done = std::move(open);
    open_.erase(open_.begin() + (&open - open_.data()));
    finish(done, text);
    return false;
}

bool TracebackReader::follows(const std::string& exception) const {
    if (engine_ == nullptr) return false;
    const auto known = decisive_line(*engine_, std::span(&exception, 1));
    return known && known->kind == FailureKind::crashed_under_load;
}

void TracebackReader::finish(const Open& open, std::string_view text) {
    if (open.ignored || ends_on_request(text)) return;
    if (exception_ && (follows(std::string(text)) || !(open.linked || follows(*exception_))))
        return;
    exception_ = kept_start(text);
    place_ = open.place;
    prefix_ = open.prefix;
    message_goes_on_ = true;
}

/// A message in several lines has its reason in the second ("1 validation error for ModelConfig").
void TracebackReader::read_after_exception(std::string_view line, std::string_view same) {
    if (!same.starts_with(prefix_)) return;
    const std::string_view text = line.substr(prefix_.size());
    if (message_goes_on_ && !text.empty() && is_blank(text.front()) && !trimmed(text).empty() &&
        exception_->size() < most_message_bytes)
        exception_ = kept_start(*exception_ + " " + std::string(trimmed(text)));
    if (!trimmed(text).empty()) message_goes_on_ = false;
    if (text.starts_with("The above exception was the direct cause of") ||
        text.starts_with("During handling of the above exception"))
        chain_goes_on_ = true;
}

bool is_error_line(std::string_view line) {
    const std::string text = plain(line.substr(0, most_message_bytes));
    constexpr std::array<std::string_view, 6> words{"ERROR",  "FATAL",  "CRITICAL",
                                                    "error:", "fatal:", "[E] "};
    if (word_within(text, words) != words.end()) return true;
    // A clock, the level as one letter, the message.
    const std::size_t clock = text.find(' ');
    const auto of_clock = [](char letter) {
        return is_decimal(letter) || letter == '.' || letter == ':';
    };
    return clock != npos && clock > 0 && text.compare(clock, 3, " E ") == 0 &&
           std::all_of(text.begin(), text.begin() + std::ptrdiff_t(clock), of_clock);
}

FailureKind kind_of_exception(std::string_view exception) {
    const std::string_view name = class_of(exception);
    if (name == "MemoryError") return FailureKind::out_of_memory;
    if (name.ends_with("ValidationError")) return FailureKind::rejected_flags;
    // A back end's package that is not installed: other values of the flags may not need it.
    constexpr std::array<std::string_view, 6> lacks{"ModuleNotFoundError", "ImportError",
                                                    "NotImplementedError", "not supported",
                                                    "does not support",    "nsupported"};
    return word_within(exception, lacks) == lacks.end() ? FailureKind::other
                                                        : FailureKind::unsupported;
}

std::optional<DecisiveLine> decisive_line(const Engine& engine, std::span<const std::string> log,
                                          std::span<const std::string> set) {
    for (const std::string& line : log)
        for (const FailurePattern& pattern : engine.failures) {
            const auto words = word_within(line, pattern.match);
            if (words == pattern.match.end() ||
                word_within(line, pattern.unless) != pattern.unless.end())
                continue;
            const FailureKind kind =
                named_in(failure_kinds, pattern.kind).value_or(FailureKind::other);
            if (counts(pattern, kind, line, *words, set)) return DecisiveLine{kind, line};
        }
    return std::nullopt;
}

}  // namespace servetune
