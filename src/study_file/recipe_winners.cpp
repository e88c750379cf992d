// SPDX-License-Identifier: Apache-2.0
#include "recipe_winners.hpp"

#include "applied_recipe.hpp"
#include "search/nearest_value.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <optional>

namespace servetune {
namespace {

/// One recipe in the names and values of a study.
struct OfStudy {
    Assignment values{};
    std::string left_out{};  ///< `speculative_method = mtp, ...`
};

/// A parameter of the engine in the space; null: the study holds it at its default.
const Parameter* in_space(const Composition& composition, const SearchSpace& space,
                          const Engine& engine, const std::string& declared) {
    for (const PassedSetting& passed : composition.passed(engine))
        if (passed.declared == declared) return space.find(passed.parameter);
    return nullptr;
}

OfStudy of_study(const AppliedRecipe& recipe, const StudyFile& study, const SearchSpace& space,
                 const Engine& engine) {
    OfStudy result;
    const auto leave_out = [&](const std::string& what) {
        result.left_out += (result.left_out.empty() ? "" : ", ") + what;
    };
    if (study.composition->engines().size() > 1) result.values["engine"] = engine.name;
    for (const auto& [name, value] : recipe.values) {
        const Parameter* parameter = in_space(*study.composition, space, engine, name);
        const EngineParameter* declared = engine.find(name);
        const auto fits = parameter != nullptr ? nearest_value(*parameter, value) : std::nullopt;
        if (fits) result.values[parameter->name] = *fits;
        else if (declared == nullptr || parameter != nullptr ||
                 declared->parameter.default_value != value)
            leave_out(name + " = " + text_of(value));
    }
    for (const auto& [name, value] : recipe.environment) leave_out(name + "=" + value);
    for (const std::string& dropped : recipe.dropped)
        leave_out(dropped.substr(1, dropped.find("': ") - 1));
    return result;
}

std::string recipe_named(const RecipeMatch& match) {
    const std::string difference = match.difference();
    return "the published recipe " + match.recipe.source +
           (difference.empty() ? "" : ", " + difference);
}

std::string fingerprint_text(const AppliedRecipe& recipe) {
    std::string text;
    for (const auto& [name, value] : recipe.values) text += name + "=" + text_of(value) + "\n";
    return fingerprint_of(text).text();
}

void add_nearest(const StudyFile& study, const SearchSpace& space, const Engine& engine,
                 const HardwareSpec& chip, const Catalogue& catalogue, RecipeWinners& result) {
    const std::string version = study.composition->version_of(engine);
    for (const RecipeMatch& match :
         matching(recipes_of(catalogue, engine.name), {study.model, chip, version},
                  catalogue.all_hardware())) {
        const AppliedRecipe recipe = applied(match.recipe, engine, version, chip, catalogue.root());
        const std::int64_t devices = [&] {
            const Composition whole = composed(recipe, engine, version, chip);
            const SearchSpace one(whole.parameters(), whole.constraints());
            return whole.devices_of(one.default_configuration());
        }();
        const OfStudy own = of_study(recipe, study, space, engine);
        const Configuration configuration = space.completed(own.values);
        const auto violations = space.violations(configuration);
        const std::string why_not =
            study.composition->devices_of(configuration) < devices
                ? "it takes " + std::to_string(devices) + " devices, which this study does not give"
            : violations.empty() ? ""
                                 : violations.front();
        if (!why_not.empty()) {
            result.left_out.push_back(recipe_named(match) + ", is not tried: " + why_not);
            continue;
        }
        result.winners.push_back(
            {configuration,
             recipe_named(match) + (own.left_out.empty() ? ""
                                                         : ", but for " + own.left_out +
                                                               ", which this study cannot have")});
        result.said.push_back(recipe_named(match) + " (" + fingerprint_text(recipe) + ")");
        return;
    }
}

}  // namespace

RecipeWinners recipe_winners(const StudyFile& study, const SearchSpace& space) {
    RecipeWinners result;
    if (study.machine.chip().empty() || study.model.empty() || !study.has_commands()) return result;
    const Catalogue catalogue = study.catalogue();
    const auto chip = hardware_in(study.machine.chip(), catalogue.all_hardware());
    if (!chip) return result;
    for (const Engine& engine : study.composition->engines())
        add_nearest(study, space, engine, *chip, catalogue, result);
    return result;
}

}  // namespace servetune
