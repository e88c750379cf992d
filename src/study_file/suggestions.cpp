// SPDX-License-Identifier: Apache-2.0
#include "suggestions.hpp"

#include "servetune/error.hpp"
#include "yaml.hpp"

#include <cmath>
#include <cstdint>
#include <utility>

namespace servetune {

void check_takes_suggestions(const std::string& strategy) {
    if (strategy != "bayesian")
        throw UsageError("the strategy '" + strategy + "' takes no suggestions, 'bayesian' does");
}

Value as_parameter_has_it(const Parameter& parameter, Value value) {
    if (parameter.contains(value)) return value;
    if (const auto* whole = std::get_if<std::int64_t>(&value);
        whole != nullptr && parameter.contains(static_cast<double>(*whole)))
        return static_cast<double>(*whole);
    constexpr double exact = 9007199254740992.0;  // 2^53: beyond, a double is not every integer
    if (const auto* real = std::get_if<double>(&value);
        real != nullptr && std::abs(*real) <= exact && std::trunc(*real) == *real)
        if (const auto whole = static_cast<std::int64_t>(*real); parameter.contains(whole))
            return whole;
    if (const std::string text = text_of(value); parameter.contains(text)) return text;
    return value;
}

std::vector<Configuration> read_suggestions(const std::filesystem::path& file,
                                            const Composition& composition,
                                            const SearchSpace& space) {
    const Yaml root = Yaml::load(file);
    std::vector<Configuration> result;
    for (const Yaml& item : root.items()) {
        Assignment values;
        for (const auto& [name, node] : item.entries()) {
            try {
                const Parameter& parameter = space.at(composition.resolve(name));
                if (!values
                         .emplace(parameter.name,
                                  as_parameter_has_it(parameter, composition.normalized(
                                                                     parameter.name, node.value())))
                         .second)
                    node.fail("'" + parameter.name + "' is set twice");
            } catch (const SpaceError& error) {
                node.fail(error.what());
            }
        }
        try {
            Configuration configuration = space.changed(space.default_configuration(), values);
            if (const auto violations = space.violations(configuration); !violations.empty())
                item.fail(violations.front());
            result.push_back(std::move(configuration));
        } catch (const SpaceError& error) {
            item.fail(error.what());
        }
    }
    return result;
}

}  // namespace servetune
