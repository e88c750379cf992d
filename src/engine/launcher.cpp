// SPDX-License-Identifier: Apache-2.0
#include "launcher.hpp"

#include <algorithm>

namespace servetune {
namespace {

bool same_program(std::string_view a, std::string_view b) {
    a = program_name(a);
    b = program_name(b);
    return a == b || (a.starts_with("python") && b.starts_with("python"));
}

bool begins_at(const std::vector<std::string>& words, std::size_t at,
               const std::vector<std::string>& start) {
    if (start.empty() || at + start.size() > words.size() ||
        !same_program(words[at], start.front()))
        return false;
    return std::equal(start.begin() + 1, start.end(),
                      words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

}  // namespace

std::vector<std::string> launcher_words(const Engine& engine) {
    std::vector<std::string> result;
    for (const std::string& word : engine.launch) {
        if (word.find('{') != std::string::npos || word.starts_with("--")) break;
        result.push_back(word);
    }
    if (!result.empty() && result.back().starts_with('-'))
        result.pop_back();  // the flag that takes the first blank
    return result;
}

Launched launched_at(std::span<const Engine> engines, const std::vector<std::string>& words,
                     std::size_t at) {
    Launched result;
    for (const Engine& engine : engines) {
        const auto consider = [&](const std::vector<std::string>& start) {
            if (start.size() > result.words && begins_at(words, at, start))
                result = {&engine, start.size()};
        };
        consider(launcher_words(engine));
        for (const std::vector<std::string>& start : engine.started_as) consider(start);
    }
    return result;
}

const Engine* engine_of_image(std::span<const Engine> engines, std::string_view word) {
    for (const Engine& engine : engines)
        for (const std::string& image : engine.images) {
            const auto at = word.find(image);
            if (at == std::string_view::npos || (at > 0 && word[at - 1] != '/')) continue;
            const std::size_t behind = at + image.size();
            const bool has_tag = image.find(':') != std::string::npos;
            if (behind == word.size() || word[behind] == '@' ||
                word[behind] == (has_tag ? '-' : ':'))
                return &engine;
        }
    return nullptr;
}

}  // namespace servetune
