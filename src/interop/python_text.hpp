// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace servetune {

/// Reads values as Python prints them (`Name(key='text', other=[1, 2])`, `{'key': 3.5}`), so that
/// no text inside of them can look like one of their keys.
class PythonText {
public:
    explicit PythonText(std::string_view text) : text_(text) {}

    struct Item {
        std::string_view key{};  ///< in front of it; empty: none
        std::string_view
            value{};  ///< a number or a word; of a text what stands between its quotes; of a list of numbers its inside
        bool is_text = false;
        bool opens = false;  ///< `key` is of a list, an object or a call, whose items come next
        bool cut = false;    ///< ` ... ` follows: only its first half
    };

    /// The next item; false at the end.
    bool next(Item& item);

    /// What a text between quotes says. Of escapes only those are undone that change by what else
    /// is in the text: quotes, and with them backslashes; also line ends and tabs.
    static std::string plain(std::string_view quoted);

private:
    std::string_view literal();

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace servetune
