// SPDX-License-Identifier: Apache-2.0
#include "on_done.hpp"

#include "output.hpp"

#include "servetune/detail/host/process.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

namespace autotune {

using namespace servetune;

void tell_that_it_is_done(const std::vector<std::string>& words, const RunEnd& end) {
    if (words.empty()) return;
    const std::array<std::pair<std::string_view, std::string>, 5> values{
        {{"{study}", end.study},
         {"{outcome}", end.outcome},
         {"{verdict}", end.verdict},
         {"{reason}", end.reason},
         {"{report}", end.report.string()}}};
    ProcessOptions options;
    for (const std::string& word : words) {
        std::string filled;
        for (std::size_t at = 0;
             at < word.size();) {  // once through: what is put in is not looked at again
            const std::pair<std::string_view, std::string>* found = nullptr;
            for (const auto& value : values)
                if (word.compare(at, value.first.size(), value.first) == 0) found = &value;
            filled += found != nullptr ? found->second : std::string(1, word[at]);
            at += found != nullptr ? found->first.size() : 1;
        }
        options.argv.push_back(std::move(filled));
    }
    try {
        Process process(options);
        constexpr std::chrono::seconds patience(60);
        if (!process.wait(patience))
            complain("autotune: `on_done`: {} was not done within a minute and is ended",
                     words.front());
        else if (const int code = process.exit_code().value_or(0); code != 0) {
            const std::vector<std::string> lines = process.lines();
            complain("autotune: `on_done`: {} ended with exit code {}{}", words.front(), code,
                     lines.empty() ? "" : ": " + lines.back());
        }
        (void)process.end(std::chrono::seconds(2));
    } catch (const std::exception& error) {
        complain("autotune: `on_done`: {}", error.what());
    }
}

}  // namespace autotune
