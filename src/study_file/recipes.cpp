// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include "base/kept_texts.hpp"
#include "base/lower_case.hpp"
#include "engine/version.hpp"
#include "fact_keys.hpp"
#include "key_reader.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/perf/model_spec.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <tuple>

namespace servetune {
namespace {

/// As an options file has it: a list stands there as text.
nlohmann::ordered_json option_json(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return text_of(value);
}

Recipe read_recipe(const Yaml& node) {
    const auto& table = keys::recipe;
    node.check_keys(table);
    Recipe recipe{read<std::vector<std::string>>(node, table.models)};
    if (recipe.models.empty()) node.at(table.models).fail("at least one model wanted");
    read(node, table.alike, recipe.alike);
    read(node, table.quantization, recipe.quantization);
    read(node, table.checkpoints, recipe.checkpoints);
    read(node, table.hardware, recipe.hardware);
    read(node, table.goal, recipe.goal);
    std::string flags;
    read(node, table.flags, flags);
    recipe.command.argv = shell_words(flags);
    if (!flags.empty() && !flags.starts_with('-'))
        node.at(table.flags).fail_wanted("flags, without launcher and model");
    read(node, table.environment, recipe.command.environment);
    std::map<std::string, Value> settings;
    read(node, table.settings, settings);
    nlohmann::ordered_json options;
    for (const auto& [path, value] : settings) options[path] = option_json(value);
    if (!options.is_null()) recipe.command.files["options.yaml"] = options.dump();
    read(node, table.since, recipe.since);
    read(node, table.until, recipe.until);
    read(node, table.measured, recipe.measured);
    if (node.find(table.source) == nullptr)
        node.fail("no source: say where the recipe was published");
    read(node, table.source, recipe.source);
    read(node, table.licence, recipe.licence);
    return recipe;
}

/// Which of the models `served` is; its quantization is empty for their own. Nothing: none of them.
std::optional<ServedModel> meant_among(const std::string& served,
                                       const std::vector<std::string>& models) {
    std::vector<ModelSpec> specs;
    for (const std::string& model : models) specs.push_back({model});
    return served_model(served, specs);
}

/// The chip itself where the recipe is for it, else the first of its chips with the same
/// architecture; empty: it has none.
std::string nearest_chip(const Recipe& recipe, const HardwareSpec& wanted,
                         const std::vector<HardwareSpec>& known) {
    std::string result;
    for (const std::string& name : recipe.hardware) {
        if (name == wanted.name) return name;
        const bool same_kind =
            std::any_of(known.begin(), known.end(), [&](const HardwareSpec& chip) {
                return chip.name == name && chip.architecture == wanted.architecture;
            });
        if (same_kind && result.empty()) result = name;
    }
    return result;
}

std::string name_in_hub(const std::string& id) { return lower_case(id.substr(id.rfind('/') + 1)); }

/// The checkpoint that is named as the wanted model and one word more, `Qwen3-8B-FP8`; empty: none.
std::string checkpoint_of(const std::string& wanted, const Recipe& recipe) {
    const std::string beginning = name_in_hub(wanted) + "-";
    for (const std::string& checkpoint : recipe.checkpoints)
        if (const std::string name = name_in_hub(checkpoint);
            name.starts_with(beginning) && name.find('-', beginning.size()) == std::string::npos)
            return checkpoint;
    return "";
}

}  // namespace

std::vector<Recipe> recipes_of(const Catalogue& catalogue, const std::string& engine) {
    const std::filesystem::path path = catalogue.root() / "recipes" / (engine + ".yaml");
    if (!text_exists(path)) return {};
    const Yaml file = Yaml::load(path);
    file.check_keys(keys::recipes);
    if (const auto named = read<std::string>(file, keys::recipes.engine); named != engine)
        file.at(keys::recipes.engine)
            .fail("'" + engine + "' wanted, the file's name; got '" + named + "'");
    std::vector<Recipe> result;
    for (const Yaml& node : file.at(keys::recipes.recipes).items())
        result.push_back(read_recipe(node));
    return result;
}

std::string RecipeMatch::difference() const {
    if (same_model && same_quantization && same_chip) return "";
    std::string text = "published for " + model;
    if (!same_model) text += " (of the same family and size class)";
    if (!same_quantization)
        text += " in " + (recipe.quantization.empty() ? "its own type" : recipe.quantization);
    if (!same_chip) text += " on " + chip + " (of the same architecture)";
    return text;
}

std::vector<RecipeMatch> matching(const std::vector<Recipe>& recipes, const RecipeWish& wish,
                                  const std::vector<HardwareSpec>& known) {
    std::vector<RecipeMatch> result;
    for (const Recipe& recipe : recipes) {
        if (!version_within(wish.version, recipe.since, recipe.until)) continue;
        const auto same = meant_among(wish.model, recipe.models);
        const auto alike = same ? std::nullopt : meant_among(wish.model, recipe.alike);
        const std::string chip = nearest_chip(recipe, wish.chip, known);
        if ((!same && !alike) || chip.empty()) continue;
        const ServedModel& meant = same ? *same : *alike;
        result.push_back({recipe, same ? meant.model.name : recipe.models.front(), chip,
                          same.has_value(), meant.quantization == recipe.quantization,
                          chip == wish.chip.name, checkpoint_of(wish.model, recipe)});
    }
    std::stable_sort(result.begin(), result.end(), [](const RecipeMatch& a, const RecipeMatch& b) {
        const auto rank = [](const RecipeMatch& match) {
            return std::tuple(!match.same_model, !match.same_quantization, !match.same_chip);
        };
        return rank(a) < rank(b);
    });
    return result;
}

}  // namespace servetune
