// SPDX-License-Identifier: Apache-2.0
#include "support/behaviour.hpp"

#include <charconv>
#include <stdexcept>

namespace servetune::test {

namespace {

std::invalid_argument unknown(std::string_view name) {
    std::string message = "unknown word '" + std::string(name) + "'; known:";
    for (const BehaviourWord& word : behaviour_words) message += " " + std::string(word.name);
    return std::invalid_argument(message);
}

double number_of(const BehaviourWord& word, std::string_view written) {
    double result = 0;
    const auto [end, error] =
        std::from_chars(written.data(), written.data() + written.size(), result);
    if (error != std::errc{} || end != written.data() + written.size() || !(result >= 0))
        throw std::invalid_argument("'" + std::string(word.name) + "' wants a number >= 0, got '" +
                                    std::string(written) + "'");
    return result;
}

}  // namespace

Behaviour parse_behaviour(std::string_view words) {
    Behaviour result;
    while (!words.empty()) {
        const auto end = words.find(',');
        const std::string_view word = words.substr(0, end);
        words = end == std::string_view::npos ? std::string_view{} : words.substr(end + 1);
        const auto equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        const BehaviourWord* known = nullptr;
        for (const BehaviourWord& candidate : behaviour_words)
            if (candidate.name == name) known = &candidate;
        if (known == nullptr) throw unknown(name);
        if (equals != std::string_view::npos)
            result.*known->field = number_of(*known, word.substr(equals + 1));
        else if (known->alone) result.*known->field = known->alone;
        else
            throw std::invalid_argument("'" + std::string(name) +
                                        "' wants a number: " + std::string(known->meaning));
    }
    return result;
}

Behaviour merged(const Behaviour& under, const Behaviour& over) {
    Behaviour result = under;
    for (const BehaviourWord& word : behaviour_words)
        if (over.*word.field) result.*word.field = over.*word.field;
    return result;
}

std::string describe_behaviour_words() {
    std::string result;
    for (const BehaviourWord& word : behaviour_words) {
        std::string name(word.name);
        if (!word.alone) name += "=N";
        else if (*word.alone != 1 || word.meaning.find(" N ") != std::string_view::npos)
            name += "[=N]";
        result += "  " + name + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ') +
                  std::string(word.meaning) + "\n";
    }
    return result;
}

}  // namespace servetune::test
