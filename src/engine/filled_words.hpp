// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of engine files with their places filled in.

#include "servetune/detail/engine/composition.hpp"

#include <string>
#include <utility>
#include <vector>

namespace servetune {

using Texts = std::vector<std::pair<std::string, std::string>>;  ///< place -> what stands there

inline bool names_address(const std::string& word) {
    return word.find("{host}") != std::string::npos || word.find("{port}") != std::string::npos ||
           word.find("side_port}") != std::string::npos;  // also `{prefill_side_port}`
}

/// `{name}` in a word, replaced by its text.
inline std::string with_texts(std::string word, const Texts& texts) {
    for (const auto& [name, text] : texts) {
        const std::string place = "{" + name + "}";
        for (auto at = word.find(place); at != std::string::npos;
             at = word.find(place, at + text.size()))
            word.replace(at, place.size(), text);
    }
    return word;
}

/// The places of an address, and further ones.
inline Texts texts_of(const LaunchTarget& target, Texts further) {
    further.insert(further.end(), {{"host", target.host},
                                   {"port", std::to_string(target.port)},
                                   {"side_port", std::to_string(target.side_port)}});
    return further;
}

/// Where no address is given a word that needs it is left out, and the flag before it.
inline void add_filled(std::vector<std::string>& argv, const std::vector<std::string>& words,
                       const Texts& texts, bool has_address) {
    for (const std::string& word : words) {
        if (has_address || !names_address(word)) argv.push_back(with_texts(word, texts));
        else if (!argv.empty() && argv.back().starts_with("-")) argv.pop_back();
    }
}

}  // namespace servetune
