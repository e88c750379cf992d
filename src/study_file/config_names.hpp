// SPDX-License-Identifier: Apache-2.0
// What stands in a config.json, and what the names of a family of architectures make of it.
#pragma once

#include "model_files.hpp"
#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace servetune {

/// Null where there is none, or `of` is null or no object.
const nlohmann::json* child_of(const nlohmann::json* of, const char* key);
/// The texts under a key: one, or a list of them.
std::vector<std::string> texts_in(const nlohmann::json* of, const char* key);
std::string text_in(const nlohmann::json* of, const char* key);  ///< the first of them
/// Of a boolean 1 or 0.
double json_number_in(const nlohmann::json* of, const char* key, double otherwise = 0);

/// Adds it, once.
void note(std::vector<std::string>& notes, const std::string& text);

/// What the names of a family come to, at one layer after another.
class ConfigNames {
public:
    /// `assumed`: what a name is where nothing says it. Its words go to `notes`, with each key that
    /// text and whole say differently.
    ConfigNames(const std::string& file, const nlohmann::json& whole, const nlohmann::json& text,
                std::vector<const Alternatives*> names, const Alternatives& assumed,
                std::vector<std::string>& notes)
        : file_(file),
          parts_{&text, &whole},
          names_(std::move(names)),
          assumed_(assumed),
          notes_(notes) {}

    void enter(std::int64_t layer) {
        layer_ = layer;
        std::erase_if(known_, [](const auto& one) { return one.second.at_layer; });
    }
    std::optional<double> number(const std::string& alternatives) {
        return figure(kept(alternatives, [&] { return value_of(alternatives); }));
    }
    /// A whole number above 0. Throws ParseError with the keys that may say it and what stands
    /// there.
    double needed(const std::string& name);
    /// Keys that sound as if they decided the shape, and that nothing has read.
    [[nodiscard]] std::vector<std::string> unread() const;
    /// What an expression is about: `heads 32, kv_heads 5`.
    std::string figures_of(const Expression& of);
    bool holds(const Expression& condition) {
        return figure(kept(condition.text(), [&] { return value_of(condition); })).value_or(0) != 0;
    }

private:
    struct Known {
        std::optional<Value> value{};
        bool at_layer = false;
    };

    static std::optional<double> figure(const Known& known) {
        return known.value ? number_of(*known.value) : std::nullopt;
    }
    template <class Compute>
    const Known& kept(const std::string& key, const Compute& compute) {
        auto found = known_.find(key);
        if (found == known_.end()) {
            const bool outer = std::exchange(at_layer_, false);
            auto value = compute();
            found = known_.insert_or_assign(key, Known{std::move(value), at_layer_}).first;
            at_layer_ = outer;
        }
        at_layer_ = at_layer_ || found->second.at_layer;
        return found->second;
    }

    std::string spelled(const std::string& name) const;
    std::optional<Value> value_of(const Expression& one);
    /// Of `a | b` the first that has a value.
    std::optional<Value> value_of(const std::string& alternatives);
    const Value* named(const std::string& name);
    std::optional<Value> read(std::string path);
    std::optional<Value> read_in(const nlohmann::json* at, const std::string& path);

    const std::string& file_;
    std::array<const nlohmann::json*, 2> parts_;
    std::vector<const Alternatives*> names_;
    const Alternatives& assumed_;
    std::vector<std::string>& notes_;
    std::set<std::string> read_{};  ///< keys, without what is below them
    std::int64_t layer_ = 0;
    bool at_layer_ = false;  ///< what is being read depends on the layer
    std::vector<std::string> open_{};
    std::unordered_map<std::string, Known> known_{};
    std::unordered_map<std::string, std::vector<Expression>> parsed_{};
};

}  // namespace servetune
