// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/hardware_spec.hpp"

#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace servetune {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool begins_with(std::string_view text, std::string_view name) {
    return text.size() >= name.size() &&
           std::equal(name.begin(), name.end(), text.begin(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

/// Words that make another chip of the name before them.
constexpr std::array<std::string_view, 9> variants{"nvl",    "ti",  "super", "se", "laptop",
                                                   "mobile", "cnx", "d",     "max"};

/// Whether what follows a name, behind blanks or a dash, makes another chip of it.
bool goes_on_as_variant(std::string_view rest) {
    if (!rest.empty() && (rest.front() == ' ' || rest.front() == '-')) rest.remove_prefix(1);
    std::size_t length = 0;
    while (length < rest.size() && is_word(rest[length])) ++length;
    return any_of(variants, [&](std::string_view variant) {
        return length == variant.size() && begins_with(rest, variant);
    });
}

/// Whether a dash and more follow: then it is part of a longer name that is not known.
bool goes_on(std::string_view rest) {
    return rest.size() > 1 && rest.front() == '-' && is_word(rest[1]);
}

}  // namespace

std::optional<HardwareSpec> hardware_in(std::string_view text,
                                        const std::vector<HardwareSpec>& known) {
    std::set<const HardwareSpec*> mentioned;
    bool another = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (!is_word(text[at]) || (at > 0 && is_word(text[at - 1]))) continue;
        const HardwareSpec* longest = nullptr;
        std::size_t length = 0;
        const auto consider = [&](const HardwareSpec& spec, const std::string& name) {
            const bool ends = at + name.size() >= text.size() || !is_word(text[at + name.size()]);
            if (name.size() <= length || !begins_with(text.substr(at), name) || !ends) return;
            longest = &spec;
            length = name.size();
        };
        for (const HardwareSpec& spec : known) {
            consider(spec, spec.name);
            for (const std::string& name : spec.also) consider(spec, name);
        }
        if (longest == nullptr) continue;
        if (goes_on_as_variant(text.substr(at + length))) another = true;
        else if (!goes_on(text.substr(at + length))) mentioned.insert(longest);
        at += length - 1;
    }
    if (another || mentioned.size() != 1) return std::nullopt;
    return **mentioned.begin();
}

std::string HardwareSpec::note_of_unverified() const {
    if (unverified.empty()) return "";
    std::string text = "figures of " + name + " that were not seen in its maker's data sheet:";
    for (const std::string& key : unverified)
        text += (&key == &unverified.front() ? " " : ", ") + key;
    return text + "; what is predicted and judged by them may be wrong (source: " + source + ")";
}

}  // namespace servetune
