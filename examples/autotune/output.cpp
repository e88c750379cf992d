// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "screen.hpp"

#include "base/utf8.hpp"
#include "servetune/detail/base/plain_words.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>

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

}  // namespace autotune
