// SPDX-License-Identifier: Apache-2.0
#include "config_names.hpp"

#include "base/text.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {

namespace {

constexpr double largest_figure = 1e15;

}  // namespace

void note(std::vector<std::string>& notes, const std::string& text) {
    if (!contains(notes, text)) notes.push_back(text);
}

using Json = nlohmann::json;

const Json* child_of(const Json* of, const char* key) {
    if (of == nullptr || !of->is_object()) return nullptr;
    const auto found = of->find(key);
    return found == of->end() || found->is_null() ? nullptr : &*found;
}

std::vector<std::string> texts_in(const Json* of, const char* key) {
    std::vector<std::string> result;
    const Json* child = child_of(of, key);
    if (child != nullptr)
        for (const Json& one : child->is_array() ? *child : Json::array({*child}))
            if (one.is_string()) result.push_back(one.get<std::string>());
    return result;
}
std::string text_in(const Json* of, const char* key) {
    const auto texts = texts_in(of, key);
    return texts.empty() ? "" : texts.front();
}

double json_number_in(const Json* of, const char* key, double otherwise) {
    const Json* child = child_of(of, key);
    if (child == nullptr || !(child->is_number() || child->is_boolean())) return otherwise;
    return child->is_boolean() ? child->get<bool>() ? 1.0 : 0.0 : child->get<double>();
}

double ConfigNames::needed(const std::string& name) {
    const auto value = number(name);
    std::string found;
    const std::string keys =
        replaced_all(replaced_all(spelled(name), " | ", "', '"), "config.", "");
    bool whole = value && *value > 0 && *value == std::floor(*value);
    for (const Json* part : parts_)
        for (const std::string& key : read_)
            if (const Json* there = child_of(part, key.c_str());
                found.empty() && there != nullptr && keys.find(key) != npos &&
                ("'" + keys + "'").find("'" + key + "'") != npos) {
                found = key + " is " + start_of(there->dump(), 40);
                whole = whole && !there->is_boolean();
            }
    if (whole) return *value;
    throw ParseError(file_ + ": '" + keys + "': a whole number above 0 wanted, " +
                     (found.empty() ? "and none of them is there" : "and " + found));
}

std::vector<std::string> ConfigNames::unread() const {
    constexpr std::array<std::string_view, 14> tell{
        "period", "interval", "pattern", "freq",  "expert", "moe",    "mamba",
        "ssm",    "linear_",  "conv",    "_rank", "window", "layers", "multi_query"};
    std::vector<std::string> result;
    for (const auto& [key, value] : parts_.front()->items())
        if (!read_.contains(key) && !value.is_null() && !value.is_boolean() &&
            any_of(tell, [&, &key = key](std::string_view part) { return key.find(part) != npos; }))
            result.push_back(key);
    return result;
}

std::string ConfigNames::figures_of(const Expression& of) {
    std::string result;
    for (const std::string& name : of.names())
        if (const Value* value = named(name))
            result += (result.empty() ? "" : ", ") + name + " " + text_of(*value);
    return result;
}

std::string ConfigNames::spelled(const std::string& name) const {
    for (const Alternatives* names : names_)
        if (const auto* found = entry_in(*names, name)) return *found;
    return name;
}

std::optional<Value> ConfigNames::value_of(const Expression& one) {
    auto value = one.value([&](std::size_t i) { return named(one.names()[i]); });
    if (!value) return value;
    if (const bool* truth = std::get_if<bool>(&*value)) return *truth ? 1.0 : 0.0;
    const auto number = number_of(*value);
    return number && !std::isfinite(*number) ? std::nullopt : value;
}

std::optional<Value> ConfigNames::value_of(const std::string& alternatives) {
    const auto [at_text, fresh] = parsed_.try_emplace(alternatives);
    std::vector<Expression>& parsed = at_text->second;
    for (std::size_t at = 0; fresh && at <= alternatives.size();) {
        const auto end = std::min(alternatives.find('|', at), alternatives.size());
        parsed.push_back(parse_expression(alternatives.substr(at, end - at)));
        at = end + 1;
    }
    for (const Expression& one : parsed)
        if (auto value = value_of(one)) return value;
    return std::nullopt;
}

const Value* ConfigNames::named(const std::string& name) {
    const bool own = contains(open_, name);
    const std::string key = own ? "config." + name : name;
    const Known& known = kept(key, [&] {
        const std::string spelling = own ? name : spelled(name);
        open_.push_back(name);
        auto value = spelling == name ? read(key) : value_of(spelling);
        if (const auto* other = entry_in(assumed_, name); !value && other != nullptr)
            if ((value = value_of(*other)))
                note(notes_, "'" + spelling + "' is not there: " + *other + " is assumed");
        open_.pop_back();
        return value;
    });
    return known.value ? &*known.value : nullptr;
}

std::optional<Value> ConfigNames::read(std::string path) {
    at_layer_ = path == "layer";
    if (at_layer_) return double(layer_);
    if (path.starts_with("config.")) path.erase(0, 7);
    read_.insert(path.substr(0, path.find('.')));
    const auto inner = read_in(parts_.front(), path);
    const bool was_at_layer = at_layer_;
    auto outer = read_in(parts_.back(), path);
    at_layer_ = at_layer_ || was_at_layer;
    if (!inner) return outer;
    if (outer && *outer != *inner && number_of(*inner) && number_of(*outer))
        note(notes_, "'" + path + "' is " + text_of(*inner) +
                         " in the part of the language model and " + text_of(*outer) +
                         " above it: the first counts");
    return inner;
}

std::optional<Value> ConfigNames::read_in(const Json* at, const std::string& path) {
    const auto index = std::size_t(layer_);
    Json made;
    for (std::size_t from = 0; at != nullptr && from < path.size();) {
        const auto dot = std::min(path.find('.', from), path.size());
        const std::string part = path.substr(from, dot - from);
        const bool has = part == "has" || part == "has1";
        at_layer_ = at_layer_ || has || part == "i";
        if (part == "i" && at->is_array()) {
            if (index >= at->size())
                throw ParseError(file_ + ": '" + path.substr(0, from - 1) + "' has " +
                                 std::to_string(at->size()) + " entries, too few for layer " +
                                 std::to_string(layer_));
            at = &(*at)[index];
        } else if (part == "i" && at->is_string()) {
            const auto& letters = at->get_ref<const std::string&>();
            made = index < letters.size() ? letters.substr(index, 1) : "";
            at = &made;
        } else if (at->is_array() && (has || part == "size")) {
            const Json wanted(layer_ + (part == "has1" ? 1 : 0));
            made = has ? std::count(at->begin(), at->end(), wanted) : std::int64_t(at->size());
            at = &made;
        } else at = child_of(at, part.c_str());
        from = dot + 1;
    }
    if (at == nullptr) return std::nullopt;
    if (at->is_boolean()) return at->get<bool>() ? 1.0 : 0.0;
    if (at->is_string()) return at->get<std::string>();
    if (!at->is_number()) return std::nullopt;
    const auto number = at->get<double>();
    if (!(std::abs(number) <= largest_figure))
        throw ParseError(file_ + ": '" + path + "': " + at->dump() + " is too large");
    return number < 0 ? std::nullopt : std::optional<Value>(number);
}

}  // namespace servetune
