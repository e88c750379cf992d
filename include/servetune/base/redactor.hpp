// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/fingerprint.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Knows the secrets of a run (keys, passwords, values of environment variables) and takes them out of a text before it
/// is written or printed.
///
///     Redactor secrets;
///     secrets.add("sk-1234567890", "${API_KEY}");
///     secrets("error: invalid key sk-1234567890");  // "error: invalid key ${API_KEY}"
class Redactor {
public:
    /// A shorter text is not taken out: it would be found by chance in every other line.
    static constexpr std::size_t shortest = 4;

    /// `shown`: what stands in the secret's place.
    void add(const std::string& secret, const std::string& shown = "***") {
        if (secret.size() < shortest) return;
        // As it is, as it stands in a quoted word of a shell, and as it stands in JSON.
        std::string in_shell;
        std::string in_json;
        for (const char c : secret) {
            in_shell += c == '\'' ? std::string("'\\''") : std::string(1, c);
            in_json += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
        }
        for (const std::string& text : {secret, in_shell, in_json})
            if (std::none_of(secrets_.begin(), secrets_.end(), [&](const Secret& known) { return known.text == text; }))
                secrets_.push_back({text, shown});
        // Of two that begin at one place the longer is taken out.
        std::stable_sort(secrets_.begin(), secrets_.end(), [](const Secret& a, const Secret& b) { return a.text.size() > b.text.size(); });
    }
    void add(const Redactor& others) {
        for (const Secret& secret : others.secrets_) add(secret.text, secret.shown);
    }
    [[nodiscard]] bool empty() const { return secrets_.empty(); }

    /// `text` without the secrets. What stands in their place is not looked at again. O(length of the text * number of
    /// secrets).
    [[nodiscard]] std::string operator()(std::string_view text) const {
        return replaced(text, [](const Secret& secret) { return secret.shown; });
    }
    /// The same, with four digits of a fingerprint behind each: tells whether a secret has changed, and little else.
    [[nodiscard]] std::string with_fingerprints(std::string_view text) const {
        return replaced(text, [](const Secret& secret) { return secret.shown + "#" + fingerprint_of(secret.text).text().substr(0, 4); });
    }

private:
    struct Secret {
        std::string text, shown;
    };

    template <class Shown>
    [[nodiscard]] std::string replaced(std::string_view text, const Shown& shown) const {
        std::vector<std::size_t> next(secrets_.size());  // where each is found from here on
        for (std::size_t i = 0; i < secrets_.size(); ++i) next[i] = text.find(secrets_[i].text);
        std::string result;
        for (std::size_t at = 0;;) {
            const auto first = std::min_element(next.begin(), next.end());
            if (first == next.end() || *first == std::string_view::npos) return result.append(text.substr(at));
            const Secret& secret = secrets_[static_cast<std::size_t>(first - next.begin())];
            result.append(text.substr(at, *first - at)).append(shown(secret));
            at = *first + secret.text.size();
            for (std::size_t i = 0; i < secrets_.size(); ++i)
                if (next[i] < at) next[i] = text.find(secrets_[i].text, at);
        }
    }

    std::vector<Secret> secrets_{};
};

/// Takes the secrets out of all texts of a JSON value (nlohmann's), whatever is between quotes there; keys stay.
template <class Json>
void redact(Json& value, const Redactor& secrets) {
    if (value.is_string()) value = secrets(value.template get<std::string>());
    else if (value.is_structured())
        for (auto& child : value) redact(child, secrets);
}

}  // namespace servetune
