// SPDX-License-Identifier: Apache-2.0
#include "json_form.hpp"

#include <algorithm>
#include <set>

namespace servetune {
namespace {

/// One part of a form: the parameter, and the text in front of it.
struct FormPart {
    std::string before;
    std::string name;
};

/// The parts of a form, and last the text behind them, without a name.
std::vector<FormPart> form_parts_of(std::string_view form) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    std::vector<FormPart> parts{{}};
    for (std::size_t at = 0; at < form.size(); ++at) {
        const std::size_t end =
            form[at] == '{' ? form.find_first_not_of(letters, at + 1) : std::string_view::npos;
        if (end != std::string_view::npos && end > at + 1 && form[end] == '}') {
            parts.back().name = form.substr(at + 1, end - at - 1);
            parts.emplace_back();
            at = end;
        } else if (form[at] != ' ') parts.back().before += form[at];
    }
    return parts;
}

}  // namespace

std::vector<std::string> names_in_form(std::string_view form) {
    std::vector<std::string> names;
    for (const FormPart& part : form_parts_of(form))
        if (!part.name.empty() && std::find(names.begin(), names.end(), part.name) == names.end())
            names.push_back(part.name);
    return names;
}

std::string filled_form(std::string_view form, const std::map<std::string, std::string>& texts) {
    std::string result;
    for (const FormPart& part : form_parts_of(form))
        result += part.before + (part.name.empty() ? "" : texts.at(part.name));
    return result;
}

std::optional<std::map<std::string, std::string>> values_in_form(std::string_view form,
                                                                 std::string_view text) {
    std::map<std::string, std::string> values;
    const std::vector<FormPart> parts = form_parts_of(form);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!text.starts_with(parts[i].before)) return std::nullopt;
        text.remove_prefix(parts[i].before.size());
        if (parts[i].name.empty()) break;
        const std::string value(text.substr(0, text.find_first_of(",]}")));
        text.remove_prefix(value.size());
        const auto [known, is_new] = values.emplace(parts[i].name, value);
        if (value.empty() || (!is_new && known->second != value)) return std::nullopt;
    }
    return text.empty() ? std::optional(values) : std::nullopt;
}

void remove_keys(JsonFlag& flag, const std::function<bool(const std::string&)>& is_gone) {
    std::set<std::string> gone;
    for (const auto& [key, name] : flag.fields)
        if (is_gone(name)) gone.insert(key);
    std::erase_if(flag.fields, [&](const auto& field) { return gone.contains(field.first); });
    std::erase_if(flag.forms, [&](const auto& form) { return gone.contains(form.first); });
}

}  // namespace servetune
