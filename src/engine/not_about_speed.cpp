// SPDX-License-Identifier: Apache-2.0
#include "not_about_speed.hpp"

#include "servetune/value.hpp"

#include <algorithm>

namespace servetune {
namespace {

/// The flag of a word, as all its spellings have it.
std::string plain_flag(const std::string& word) {
    std::string flag = word.substr(0, word.find_first_of("=."));
    std::replace(flag.begin(), flag.end(), '_', '-');
    return flag.starts_with("--no-") ? "--" + flag.substr(5) : flag;
}

}  // namespace

NotAboutSpeed::NotAboutSpeed(const Engine& engine) {
    for (const std::string& flag : engine.not_about_speed) listed_.insert(plain_flag(flag));
    for (const std::string& word : engine.launch)
        if (word.starts_with('-')) kept_.insert(plain_flag(word));
    for (const EngineParameter& declared : engine.parameters)
        for (const Destination* to : {&declared.destination, &declared.earlier})
            for (const std::string& flag : {to->flag, to->off_flag})
                if (!flag.empty()) kept_.insert(plain_flag(flag));
}

bool NotAboutSpeed::has(const std::string& word) const { return word.starts_with('-') && listed_.contains(plain_flag(word)); }

void NotAboutSpeed::take_from(std::vector<std::string>& words) const {
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!has(words[i]) || kept_.contains(plain_flag(words[i]))) {
            kept.push_back(words[i]);
            continue;
        }
        if (words[i].find('=') != std::string::npos) continue;
        while (i + 1 < words.size() && (!words[i + 1].starts_with('-') || real_of(words[i + 1]))) ++i;
    }
    words = std::move(kept);
}

}  // namespace servetune
