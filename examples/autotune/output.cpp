// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "commands.hpp"
#include "screen.hpp"

#include "base/text.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

namespace autotune {

using namespace servetune;

Redactor& secrets() {
    static Redactor known;
    return known;
}

void put_controls(std::FILE* to, std::string_view text) noexcept {
    (void)std::fwrite(text.data(), 1, text.size(),
                      to);  // who wants to know whether it was written asks for ferror at the end
}

void put_text(std::FILE* to, std::string_view text) noexcept {
    try {
        const std::string shown = printable(secrets()(text));
        if (to != stderr) put_controls(to, shown);
        else if (!shown.empty()) screen().line(shown);
    } catch (
        const std::
            exception&) {  // NOLINT(bugprone-empty-catch): no memory, nothing that could be printed
    }
}

namespace {

std::string message_in_plain_words(const std::exception& error) {
    if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
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
    nlohmann::ordered_json shown = value;
    redact(shown, secrets());
    put_controls(stdout, printable(shown.dump(2, ' ', false,
                                              nlohmann::ordered_json::error_handler_t::replace)) +
                             "\n");
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

}  // namespace autotune
