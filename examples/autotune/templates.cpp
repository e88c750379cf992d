// SPDX-License-Identifier: Apache-2.0
#include "templates.hpp"

#include <nlohmann/json.hpp>

namespace autotune {

servetune::TemplateValues template_values(const nlohmann::ordered_json& json) {
    const auto text_of = [](const nlohmann::ordered_json& value) -> std::string {
        if (value.is_string()) return value.get<std::string>();
        if (value.is_boolean()) return value.get<bool>() ? "yes" : "";
        return value.is_null() ? "" : value.dump();
    };
    servetune::TemplateValues result;
    for (const auto& [key, value] : json.items()) {
        if (!value.is_structured()) {
            result.texts[key] = text_of(value);
            continue;
        }
        std::vector<servetune::TemplateValues>& list = result.lists[key];
        for (const auto& [name, entry] : value.items())
            list.push_back(
                value.is_object()
                    ? servetune::TemplateValues{{{"name", name}, {"value", text_of(entry)}}}
                : entry.is_object() ? template_values(entry)
                                    : servetune::TemplateValues{{{"it", text_of(entry)}}});
    }
    return result;
}

}  // namespace autotune
