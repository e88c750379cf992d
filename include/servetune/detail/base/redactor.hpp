// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// RFC 4648, section 4, with padding.
std::string base64(std::string_view bytes);

/// How a secret may stand in a text: as it is (the first), in a quoted word of a shell, in JSON
/// with and without characters beyond ASCII, percent-encoded (RFC 3986), in hexadecimal digits, and
/// in base64, of its own or in the middle of other bytes, in both alphabets. None stands twice.
std::vector<std::string> secret_forms(const std::string& secret);

/// Knows the secrets of a run (keys, passwords, values of environment variables) and takes them out
/// of a text before it is written or printed.
///
///     Redactor secrets;
///     secrets.add("sk-1234567890", "${API_KEY}");
///     secrets("error: invalid key sk-1234567890");  // "error: invalid key ${API_KEY}"
class Redactor {
public:
    /// A shorter text is not taken out: it would be found by chance in every other line.
    static constexpr std::size_t shortest = 4;

    /// `shown`: what stands in the secret's place, in whatever form it comes (`secret_forms`).
    void add(const std::string& secret, const std::string& shown = "***") {
        add(secret, shown, true);
    }
    /// One that is only known to this machine: `with_fingerprints` leaves it as it is, since it is
    /// not the study's.
    void add_unnamed(const std::string& secret, const std::string& shown) {
        add(secret, shown, false);
    }
    void add(const Redactor& others) {
        for (const Secret& secret : others.secrets_) insert(secret);
        sort();
    }
    [[nodiscard]] bool empty() const { return secrets_.empty(); }

    /// A part of a text: what stands between secrets, or one of them.
    struct Piece {
        std::string text;      ///< as it stands there
        std::string shown{};   ///< what stands in a secret's place; empty: the piece is no secret
        bool as_it_is = true;  ///< the secret stands there in no other form
    };

    /// `text` without the secrets. What stands in their place is not looked at again. O(length of
    /// the text * number of secrets).
    [[nodiscard]] std::string operator()(std::string_view text) const {
        std::string result;
        parted(text, [&](std::string_view part, const Secret* secret) {
            result += secret == nullptr ? part : secret->shown;
        });
        return result;
    }
    /// The same, with four digits of a fingerprint behind each: tells whether a secret has changed,
    /// and little else.
    [[nodiscard]] std::string with_fingerprints(std::string_view text) const {
        std::string result;
        parted(text, [&](std::string_view part, const Secret* secret) {
            if (secret == nullptr || !secret->named) result += part;
            else result += secret->shown + "#" + fingerprint_of(secret->text).text().substr(0, 4);
        });
        return result;
    }
    /// The same in pieces, for who has to know which of them stands for a secret.
    [[nodiscard]] std::vector<Piece> pieces(std::string_view text) const {
        std::vector<Piece> result;
        parted(text, [&](std::string_view part, const Secret* secret) {
            if (secret != nullptr)
                result.push_back({std::string(part), secret->shown, secret->as_it_is});
            else if (!part.empty()) result.push_back({std::string(part)});
        });
        return result;
    }

private:
    struct Secret {
        std::string text, shown;
        bool named = true;     ///< by the study
        bool as_it_is = true;  ///< else in another form
    };

    void add(const std::string& secret, const std::string& shown, bool named) {
        if (secret.size() < shortest) return;
        for (const std::string& form : secret_forms(secret))
            insert({form, shown, named, form == secret});
        sort();
    }
    void insert(const Secret& secret) {
        const auto known = std::find_if(secrets_.begin(), secrets_.end(),
                                        [&](const Secret& one) { return one.text == secret.text; });
        if (known == secrets_.end()) secrets_.push_back(secret);
        else if (secret.named && !known->named) *known = secret;
    }
    /// Of two that begin at one place the longer is taken out.
    void sort() {
        std::stable_sort(secrets_.begin(), secrets_.end(), [](const Secret& a, const Secret& b) {
            return a.text.size() > b.text.size();
        });
    }

    /// `take` gets each part of the text, with the secret that it is or null.
    template <class Take>
    void parted(std::string_view text, const Take& take) const {
        std::vector<std::size_t> next(secrets_.size());  // where each is found from here on
        for (std::size_t i = 0; i < secrets_.size(); ++i) next[i] = text.find(secrets_[i].text);
        for (std::size_t at = 0;;) {
            const auto first = std::min_element(next.begin(), next.end());
            if (first == next.end() || *first == std::string_view::npos)
                return take(text.substr(at), nullptr);
            const Secret& secret = secrets_[std::size_t(first - next.begin())];
            take(text.substr(at, *first - at), nullptr);
            take(text.substr(*first, secret.text.size()), &secret);
            at = *first + secret.text.size();
            for (std::size_t i = 0; i < secrets_.size(); ++i)
                if (next[i] < at) next[i] = text.find(secrets_[i].text, at);
        }
    }

    std::vector<Secret> secrets_{};
};

/// Takes the secrets out of all texts of a JSON value (nlohmann's), whatever is between quotes
/// there; keys stay.
template <class Json>
void redact(Json& value, const Redactor& secrets) {
    if (value.is_string()) value = secrets(value.template get<std::string>());
    else if (value.is_structured())
        for (auto& child : value) redact(child, secrets);
}

}  // namespace servetune
