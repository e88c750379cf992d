// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "commands.hpp"

#include "base/text.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <system_error>

namespace autotune {

Redactor& secrets() {
    static Redactor known;
    return known;
}

namespace {

/// CI services take lines that begin with `::`, `##[` and the like for commands, blanks before or
/// not. None of ours does.
std::string without_commands(std::string text) {
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at)) {
        at = std::min(text.find_first_not_of(" \t\n", at), text.size());
        const std::string_view line = std::string_view(text).substr(at, 3);
        if (line.starts_with("::") ||
            (line.starts_with("##") && line.size() > 2 && line.find_first_of(" #\n", 2) == npos))
            text.insert(at, 1, '\'');
    }
    return text;
}

}  // namespace

void put_controls(std::FILE* to, std::string_view text) noexcept {
    (void)std::fwrite(text.data(), 1, text.size(),
                      to);  // who wants to know whether it was written asks for ferror at the end
}

void put_text(std::FILE* to, std::string_view text) noexcept {
    try {
        const std::string shown = without_commands(printable(secrets()(text)));
        if (to != stderr) put_controls(to, shown);
        else if (!shown.empty()) screen().line(shown);
    } catch (
        const std::
            exception&) {  // NOLINT(bugprone-empty-catch): no memory, nothing that could be printed
    }
}

namespace {

std::string message_in_plain_words(const std::exception& error) {
    if (const auto* files = dynamic_cast<const fs::filesystem_error*>(&error))
        return fmt::format("cannot use {}: {}", files->path1().string(), files->code().message());
    return plain_words(error);
}

/// Whether standard output leads to a pipe or socket that nobody reads any more.
bool no_reader_is_left() noexcept {
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

std::string complaint_of(const std::exception& error) {
    // A name in a file may be as long as the file: a message does not repeat it.
    constexpr std::size_t longest_message = 200'000;
    const std::string message = start_of(message_in_plain_words(error), longest_message);
    const auto lines = 1 + std::count(message.begin(), message.end(), '\n');
    if (lines < 2 || dynamic_cast<const ParseError*>(&error) == nullptr)
        return "autotune: " + message;
    return fmt::format("autotune: {} errors:\n{}", lines, message);
}

void put_json(const nlohmann::ordered_json& value) {
    put_controls(stdout, shown_json(value, 2) + "\n");
}

std::string shown_json(nlohmann::ordered_json value, int indent) {
    redact(value, secrets());
    return printable(
        value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void put_each(std::FILE* to, std::string_view before, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) put(to, "{}{}\n", before, line);
}

std::string local_time(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::string text(32, '\0');
    text.resize(std::strftime(text.data(), text.size(), format, &local));
    return text;
}

std::string api_key_in(const std::string& variable) {
    const char* value =
        std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (value == nullptr)
        throw UsageError("the environment has no " + variable + ", which --api-key-env names");
    secrets().add(value, "${" + variable + "}");
    return value;
}

void occupy_standard_streams() noexcept {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
        if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
        const int wrong_way = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        const int got =
            open("/dev/null", wrong_way);  // NOLINT(android-cloexec-open): children have their own
        if (got < 0)
            (void)open("/", O_RDONLY);  // the lowest number that is free, which is this one
    }
}

int with_output_written(int code) noexcept {
    errno = 0;
    const bool failed_before = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !failed_before) return code;
    const int error = errno;
    if (error == EPIPE || no_reader_is_left()) return code == done ? reader_gone : code;
    try {
        complain("autotune: cannot write all of the output to standard output{}",
                 error == 0 ? "" : ": " + std::generic_category().message(error));
    } catch (...) {  // NOLINT(bugprone-empty-catch): the exit code says it too
    }
    return environment_error;
}

bool is_set(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
    return value != nullptr && *value != '\0';
}

namespace {

constexpr std::string_view between_parts = " | ";
constexpr std::string_view cut_mark = "...";

bool dumb_terminal() {
    const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nothing sets it
    return term != nullptr && std::string_view(term) == "dumb";
}

/// Control characters would move the cursor that status lines rely on.
std::string without_controls(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return result;
}

/// The lines of a text, one of them empty where it is.
std::vector<std::string> split_lines(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    std::vector<std::string> result;
    for (;;) {
        const auto end = text.find('\n');
        result.push_back(without_controls(text.substr(0, end)));
        if (end == npos) return result;
        text.remove_prefix(end + 1);
    }
}

std::string joined_parts(const std::vector<LinePart>& parts) {
    std::string result;
    for (const LinePart& part : parts)
        if (!part.text.empty())
            result += (result.empty() ? std::string_view() : between_parts), result += part.text;
    return result;
}

}  // namespace

std::size_t columns_of(std::string_view text) noexcept {
    return count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

std::string cut_to(std::string_view text, std::size_t columns) {
    if (columns_of(text) <= columns) return std::string(text);
    const std::size_t kept = columns > cut_mark.size() ? columns - cut_mark.size() : 0;
    std::size_t end = 0;
    for (std::size_t seen = 0; end < text.size(); ++end)
        if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U && seen++ == kept) break;
    return std::string(text.substr(0, end)) + std::string(cut_mark.substr(0, columns));
}

std::string wrapped(std::string_view text, std::size_t columns) {
    std::string result;
    std::size_t filled = 0;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t wide = columns_of(word);
        if (!result.empty()) {
            const bool fits = filled + 1 + wide <= columns;
            result += fits ? " " : "\n  ";
            filled = fits ? filled + 1 : 2;
        }
        result += word;
        filled += wide;
    }
    return result;
}

std::string fitted(std::vector<LinePart> parts, std::size_t columns) {
    constexpr std::size_t least = 8;  // of a part: less of it says nothing
    for (;;) {
        const std::string whole = joined_parts(parts);
        const std::size_t wide = columns_of(whole);
        if (wide <= columns) return whole;
        const auto has_text = [](const LinePart& part) { return !part.text.empty(); };
        if (count_if(parts, has_text) == 1) return cut_to(whole, columns);
        auto victim = find_if(parts, has_text);
        for (auto part = victim; part != parts.end(); ++part)
            if (has_text(*part) && part->rank > victim->rank) victim = part;
        const std::size_t too_much = wide - columns;
        const std::size_t its = columns_of(victim->text);
        victim->text = its >= too_much + least ? cut_to(victim->text, its - too_much) : "";
    }
}

Screen::Screen(int descriptor)
    : descriptor_(descriptor),
      terminal_(isatty(descriptor) == 1 && !dumb_terminal()),
      colours_(terminal_ && !is_set("NO_COLOR")) {}
Screen::~Screen() { leave(); }

std::size_t columns_of_terminal(int descriptor) noexcept {
    winsize size{};
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string Screen::styled(const std::string& text, LineStyle style) const {
    if (!colours_ || style == LineStyle::plain || text.empty()) return text;
    const std::string_view begin = style == LineStyle::good  ? "\033[32m"
                                   : style == LineStyle::bad ? "\033[31m"
                                                             : "\033[2m";
    return std::string(begin) + text + "\033[0m";
}

void Screen::line(std::string_view text, LineStyle style) noexcept {
    try {
        std::string whole;
        for (const std::string& one : split_lines(text)) whole += styled(one, style) + "\n";
        const std::scoped_lock lock(mutex_);
        write_with_status(whole);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a line
    }
}

void Screen::status(std::vector<std::string> lines) noexcept {
    if (!terminal_) return;
    try {
        const std::scoped_lock lock(mutex_);
        status_ = std::move(lines);
        write_with_status("");
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a line
    }
}

void Screen::leave() noexcept {
    try {
        const std::scoped_lock lock(mutex_);
        if (shown_ > 0) put("\n");
        shown_ = 0;
        status_.clear();
    } catch (...) {  // NOLINT(bugprone-empty-catch): it leaves
    }
}

/// Takes the status lines away, prints `text` and puts them below it, in one write: nothing
/// flickers, and nothing comes between.
void Screen::write_with_status(const std::string& text) {
    std::string bytes;
    if (shown_ > 0) {
        bytes = "\r";
        for (std::size_t i = 1; i < shown_; ++i) bytes += "\033[A";  // up
        bytes += "\033[J";  // clears from here to the end of the screen
    }
    if (lost_ > 0 && !text.empty())
        bytes += fmt::format("[{} lines could not be printed]\n", lost_);
    put(bytes + text + status_text());
    if (!stuck_) {
        shown_ = status_.size();
        if (!text.empty()) lost_ = 0;
    } else if (!text.empty()) ++lost_;
}

/// Without an end of line after the last: the cursor stays on it.
std::string Screen::status_text() const {
    std::string result;
    const std::size_t columns = width() - 1;  // in the last column some terminals begin a new line
    for (const std::string& one : status_)
        result += (result.empty() ? "" : "\n") +
                  styled(cut_to(without_controls(one), columns),
                         result.empty() ? LineStyle::plain : LineStyle::faint);
    return result;
}

void Screen::put(std::string_view bytes) noexcept {
    constexpr int patience_milliseconds = 1000;
    constexpr std::size_t at_once =
        4096;  // PIPE_BUF: what a pipe that can be written to takes without waiting
    while (!bytes.empty()) {
        pollfd waiting{descriptor_, POLLOUT, 0};
        const int ready = poll(&waiting, 1, stuck_ ? 0 : patience_milliseconds);
        if (ready < 0 && errno == EINTR) continue;
        const ssize_t wrote =
            ready > 0 ? write(descriptor_, bytes.data(), std::min(bytes.size(), at_once)) : 0;
        if (wrote < 0 && errno == EINTR) continue;
        stuck_ = wrote <= 0;
        if (stuck_) return;
        bytes.remove_prefix(std::size_t(wrote));
    }
}

Screen& screen() {
    static Screen standard_error(STDERR_FILENO);
    return standard_error;
}

}  // namespace autotune
