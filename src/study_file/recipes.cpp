// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "engine/command_reader.hpp"
#include "engine/engine_value.hpp"
#include "engine/flag_facts.hpp"
#include "engine/version.hpp"
#include "fact_keys.hpp"
#include "servetune/search_space.hpp"
#include "space/value_json.hpp"
#include "study_snapshot.hpp"

#include <nlohmann/json.hpp>

#include <tuple>

namespace servetune {
namespace {

Recipe read_recipe(const Yaml& node) {
    const auto& table = keys::recipe;
    Recipe recipe;
    read_table(node, table, recipe);
    std::string flags;
    read(node, table.flags, flags);
    recipe.command.argv = shell_words(flags);
    if (!flags.empty() && !flags.starts_with('-'))
        node.at(table.flags).fail_wanted("flags, without launcher and model");
    std::map<std::string, Value> settings;
    read(node, table.settings, settings);
    nlohmann::ordered_json options;
    for (const auto& [path, value] : settings) options[path] = to_json(value);
    if (!options.is_null()) recipe.command.files["options.yaml"] = options.dump();
    return recipe;
}

/// Which of the models `served` is; its quantization is empty for their own. Nothing: none of them.
std::optional<ServedModel> meant_among(const std::string& served,
                                       const std::vector<std::string>& models) {
    std::vector<ModelSpec> specs;
    for (const std::string& model : models) specs.push_back({model});
    return served_model(served, specs);
}

/// The chip itself where the recipe is for it, else that of its chips with the same architecture
/// that has the least memory; nothing: it has none.
const HardwareSpec* nearest_chip(const Recipe& recipe, const HardwareSpec& wanted,
                                 const std::vector<HardwareSpec>& known) {
    const HardwareSpec* result = nullptr;
    for (const HardwareSpec& chip : known) {
        if (chip.architecture != wanted.architecture || !contains(recipe.hardware, chip.name))
            continue;
        if (chip.name == wanted.name) return &chip;
        if (result == nullptr || chip.memory_bytes < result->memory_bytes) result = &chip;
    }
    return result;
}

}  // namespace

std::vector<Recipe> recipes_of(const Catalogue& catalogue, const std::string& engine) {
    const std::filesystem::path path = catalogue.root() / "recipes" / (engine + ".yaml");
    if (!text_exists(path, catalogue.snapshot())) return {};
    const Yaml file = Yaml::load(path, catalogue.snapshot());
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
        const HardwareSpec* chip = nearest_chip(recipe, wish.chip, known);
        if ((!same && !alike) || chip == nullptr) continue;
        const ServedModel& meant = same ? *same : *alike;
        const bool same_quantization = meant.quantization == recipe.quantization;
        result.push_back(
            {recipe, same ? meant.model.name : recipe.models.front(), chip->name, same.has_value(),
             same_quantization, chip->name == wish.chip.name,
             same && same_quantization && chip->memory_bytes <= wish.chip.memory_bytes});
    }
    stable_sort(result, [](const RecipeMatch& a, const RecipeMatch& b) {
        const auto rank = [](const RecipeMatch& match) {
            return std::tuple(!match.same_model, !match.same_quantization, !match.same_chip);
        };
        return rank(a) < rank(b);
    });
    return result;
}

namespace {

SpaceDescription description_of(const Assignment& values, const Engine& engine,
                                const std::string& version, const HardwareSpec& chip) {
    SpaceDescription description{{engine}};
    description.others_searched = false;
    description.architecture = chip.architecture;
    if (!version.empty()) description.versions[engine.name] = version;
    for (const auto& [name, value] : values) {
        SpaceEntry entry{name};
        entry.fixed = true;
        entry.default_value = value;
        description.entries.push_back(std::move(entry));
    }
    return description;
}

/// Why the engine takes no such values; empty: it takes them.
std::string recipe_refusal(const Assignment& values, const Engine& engine,
                           const std::string& version, const HardwareSpec& chip) {
    try {
        const Composition composition(description_of(values, engine, version, chip));
        const SearchSpace space(composition.parameters(), composition.constraints());
        const auto violations = space.violations(space.default_configuration());
        return violations.empty() ? "" : violations.front();
    } catch (const SpaceError& error) {
        return error.what();
    }
}

/// A value that a setting says for a parameter.
struct SaidValue {
    const EngineParameter* declared;
    Value value;
    std::string words;
};

/// Splits what a recipe says into values of parameters and the rest.
class RecipeReading {
public:
    RecipeReading(const Recipe& recipe, const Engine& engine, const std::string& version,
                  const std::filesystem::path& root)
        : engine_(engine), version_(version), facts_(facts_in(root)) {
        const std::vector<Engine> engines{engine};
        const CommandReader reader(engines, root);
        const CommandSettings read = reader.read(recipe.command, engine.name);
        for (const Setting& setting : read.settings) take(setting);
    }

    AppliedRecipe result{};
    std::vector<SaidValue> values{};

private:
    [[nodiscard]] std::optional<FlagFacts> facts_in(const std::filesystem::path& root) const {
        if (!version_.empty()) return facts_for(root, engine_.name, version_);
        std::vector<FlagFacts> all = known_versions(root, engine_.name);
        return all.empty() ? std::nullopt : std::optional(std::move(all.back()));
    }
    /// `vllm has it to 0.16 only, and this is for 0.33.0`; empty: the version has it.
    [[nodiscard]] std::string why_absent(const EngineParameter& declared) const {
        if (version_within(version_, declared.since, declared.until)) return "";
        return engine_.name + " has it" +
               (declared.since.empty() ? "" : " from " + declared.since) +
               (declared.until.empty() ? "" : " to " + declared.until) + " only, and this is for " +
               (facts_ ? facts_->version : "the newest");
    }

    void take(const Setting& setting) {
        using Kind = Setting::Kind;
        if (setting.kind == Kind::launch || setting.kind == Kind::model ||
            setting.kind == Kind::json)
            return;
        if (setting.kind == Kind::variable) {
            result.environment[setting.name] = setting.value;
            return;
        }
        if (setting.kind == Kind::parameter) {
            for (const EngineParameter* declared : setting.parameters)
                if (const EngineParameter* ours = engine_.find(declared->parameter.name)) {
                    if (const std::string why = why_absent(*ours); !why.empty())
                        result.dropped.push_back("'" + setting.text() + "': " + why);
                    else
                        values.push_back({ours, normalized_value(*ours, value_of(setting.value)),
                                          setting.text()});
                }
            return;
        }
        if (setting.kind != Kind::flag || !setting.words.front().starts_with('-')) {
            result.dropped.push_back("'" + setting.text() + "': what it does in " + engine_.name +
                                     " is not known here");
            return;
        }
        const std::vector<std::string> problems =
            facts_ ? facts_->problems({setting.words}, engine_) : std::vector<std::string>{};
        if (!problems.empty())
            result.dropped.push_back("'" + setting.text() + "': " + problems.front());
        else
            result.arguments.insert(result.arguments.end(), setting.words.begin(),
                                    setting.words.end());
    }
    const Engine& engine_;
    std::string version_;
    std::optional<FlagFacts> facts_;
};

}  // namespace

AppliedRecipe applied(const Recipe& recipe, const Engine& engine, const std::string& version,
                      const HardwareSpec& chip, const std::filesystem::path& root) {
    RecipeReading reading(recipe, engine, version, root);
    AppliedRecipe result = std::move(reading.result);
    Assignment all;
    for (const SaidValue& said : reading.values) all[said.declared->parameter.name] = said.value;
    if (recipe_refusal(all, engine, version, chip).empty()) {
        result.values = std::move(all);
        return result;
    }
    // One by one, until no further value is taken: some need others first.
    std::vector<SaidValue> left = std::move(reading.values);
    std::map<std::string, std::string> why;
    for (bool again = true; again;) {
        again = false;
        for (auto said = left.begin(); said != left.end();) {
            Assignment with = result.values;
            with[said->declared->parameter.name] = said->value;
            why[said->words] = recipe_refusal(with, engine, version, chip);
            if (!why[said->words].empty()) {
                ++said;
                continue;
            }
            result.values = std::move(with);
            said = left.erase(said);
            again = true;
        }
    }
    for (const SaidValue& said : left)
        result.dropped.push_back("'" + said.words + "': " + why[said.words]);
    return result;
}

Composition composed(const AppliedRecipe& recipe, const Engine& engine, const std::string& version,
                     const HardwareSpec& chip) {
    SpaceDescription description = description_of(recipe.values, engine, version, chip);
    description.arguments[engine.name] = recipe.arguments;
    return Composition(std::move(description));
}

}  // namespace servetune
