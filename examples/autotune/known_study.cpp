// SPDX-License-Identifier: Apache-2.0
// `autotune init --preset known`: a study of what is published for a model on a chip.
#include "known_study.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "engine/flag_facts.hpp"
#include "engine/launcher.hpp"
#include "predict/cost_belief.hpp"
#include "results/project_recipes.hpp"
#include "servetune/error.hpp"
#include "space/value_json.hpp"
#include "study/confirmation.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_trials = 9;  ///< in all: the default, the search, what confirms

/// A configuration of the study, by what it changes.
struct KnownCandidate {
    std::string name;
    Assignment changes{};
    double matters = 0;  ///< how far its value is from the recipe's, by the cost model
    const KnownRecipe* recipe = nullptr;  ///< that it is
};

/// Whether a parameter is a name or how answers are written: it is the same in all trials.
bool is_about_words(const Engine& engine, const std::string& name) {
    const EngineParameter* declared = engine.find(name);
    const std::string concept_name = declared == nullptr ? "" : declared->parameter.concept_name;
    return concept_name == "reasoning_parser" || concept_name == "served_model_name";
}

/// The space and the stages of some candidates. `defaults`: of parameters that have another than
/// the engine's.
std::string keys_of(const std::vector<KnownCandidate>& candidates, const Engine& engine,
                    const Assignment& defaults, const KnownRecipe& recipe,
                    const std::string& version) {
    OrderedJson space = OrderedJson::object();
    std::string stages = "strategy:\n  staged:\n    compare_with: baseline\n    stages:\n";
    for (const auto& [name, value] : defaults) space[name] = to_json(value);
    for (const KnownCandidate& candidate : candidates) {
        OrderedJson values = OrderedJson::object();
        for (const auto& [name, value] : candidate.changes) {
            const EngineParameter* declared = engine.find(name);
            OrderedJson& entry = space[name];
            if (!entry.is_object()) {
                const Value* own = entry_in(defaults, name);
                const Value first = own != nullptr        ? *own
                                    : declared != nullptr ? declared->parameter.default_value
                                                          : Value(Unset{});
                entry = {{"choice", {to_json(first)}}};
                if (own != nullptr) entry["default"] = to_json(first);
                if (declared == nullptr) entry["env"] = name;
            }
            OrderedJson& levels = entry["choice"];
            values[name] = to_json(value);
            if (!contains(levels, values[name])) levels.push_back(values[name]);
        }
        std::string stage =  // a line with the name, and one with what it changes
            yaml_document({{candidate.name, OrderedJson::array({std::move(values)})}});
        stage.insert(stage.find("\n  - {") + 1, "        ");
        stages += "      - " + stage;
    }
    OrderedJson keys{{"space", std::move(space)}, {"others", "default"}};
    if (!version.empty()) keys["engine_versions"] = {{engine.name, version}};
    if (!recipe.applied.arguments.empty()) keys["arguments"] = recipe.applied.arguments;
    keys["notes"] = {"The recipe: " + recipe.match.recipe.source};
    return yaml_document(keys) + stages;
}

/// Whether a value is what the engine does without it.
bool is_usual(const Engine& engine, const Assignment& defaults, const std::string& name,
              const Value& value) {
    if (const Value* own = entry_in(defaults, name)) return value == *own;
    const EngineParameter* declared = engine.find(name);
    return declared != nullptr && (value == declared->parameter.default_value ||
                                   value == declared->parameter.value_when_unset);
}

}  // namespace

KnownStudy::KnownStudy(FirstStudy& study, const std::filesystem::path& more, bool fixed,
                       const Catalogue& catalogue)
    : engine_(catalogue.engine(study.engine)) {
    if (study.hardware.empty() || !study.attach.empty())
        throw UsageError("--preset known starts engines on a known chip: say it with --hardware");
    chip_ = catalogue.hardware(study.hardware);
    if (study.as.empty()) version_ = installed_version(engine_.launch);
    const RecipeWish wish{study.model, chip_, version_};
    const std::vector<HardwareSpec> chips = catalogue.all_hardware();
    std::vector<Recipe> all;
    if (!more.empty()) {
        if (engine_.name != "vllm")
            throw UsageError(
                "--recipes: vllm-project/recipes has commands of vllm; the engine is " +
                engine_.name);
        all = recipes_of_project(more, wish, chips, notes_);
    }
    for (Recipe& recipe : recipes_of(catalogue, engine_.name)) all.push_back(std::move(recipe));
    std::vector<RecipeMatch> fitting = matching(all, wish, chips);
    if (!fitting.empty() && fitting.front().same_model)
        std::erase_if(fitting, [](const RecipeMatch& one) { return !one.same_model; });
    for (RecipeMatch& match : fitting) {
        const std::string& source = match.recipe.source;
        KnownRecipe known{match, applied(match.recipe, engine_, version_, chip_, catalogue.root())};
        for (const std::string& dropped : known.applied.dropped)
            notes_.push_back(source + ": without " + dropped);
        try {
            const Composition composition = composed(known.applied, engine_, version_, chip_);
            const SearchSpace space(composition.parameters(), composition.constraints());
            known.devices = std::size_t(composition.devices_of(space.default_configuration()));
        } catch (const SpaceError& error) {
            notes_.push_back(source + ": " + error.what());
            continue;
        }
        if (fixed && known.devices > study.gpus) {
            notes_.push_back(fmt::format("{}: it takes {} devices, and the study has {}", source,
                                         known.devices, study.gpus));
            continue;
        }
        if (recipes_.empty()) {
            if (!fixed) study.gpus = std::max(study.gpus, known.devices);
            // The usual layout, unless the model's figures say another.
            if (const Value* said = entry_in(known.applied.values, study.spread_by))
                study.layout = std::size_t(number_of(*said).value_or(1));
        }
        if (known.devices <= study.gpus) recipes_.push_back(std::move(known));
    }
    if (!recipes_.empty()) return;
    std::vector<std::string> elsewhere;
    for (const Recipe& recipe : all)
        for (const HardwareSpec& chip : chips)
            if (contains(recipe.hardware, chip.name) && !contains(elsewhere, chip.name) &&
                !matching({recipe}, {study.model, chip, ""}, chips).empty())
                elsewhere.push_back(chip.name);
    throw UsageError(fmt::format(
        "nothing that is published for {} with {} {} fits {}{}{}; `autotune init` without --preset "
        "known searches without it",
        study.model, engine_.name, version_.empty() ? "(the newest)" : version_, chip_.name,
        notes_text(), elsewhere.empty() ? "" : ". There are recipes for " + listed(elsewhere)));
}

std::string KnownStudy::notes_text() const {
    std::string text;
    for (const std::string& note : notes_) text += "; " + note;
    return text;
}

void KnownStudy::write_into(FirstStudy& study, const Draft& draft) {
    Assignment defaults;
    if (study.layout > 1) defaults[study.spread_by] = std::int64_t(study.layout);
    for (const KnownRecipe& recipe : recipes_)
        for (const auto& [name, value] : recipe.applied.values)
            if (is_about_words(engine_, name)) defaults.emplace(name, value);
    std::vector<KnownCandidate> all;
    for (const KnownRecipe& recipe : recipes_) {
        KnownCandidate candidate{recipe.match.recipe.source, {}, 0, &recipe};
        for (const auto& [name, value] : recipe.applied.values)
            if (!is_about_words(engine_, name) && !is_usual(engine_, defaults, name, value))
                candidate.changes[name] = value;
        for (const auto& [name, value] : recipe.applied.environment)
            candidate.changes[name] = value;
        const bool again = any_of(
            all, [&](const KnownCandidate& other) { return other.changes == candidate.changes; });
        if (candidate.changes.empty() || again) {
            notes_.push_back(candidate.name + (again ? ": the same as one that is nearer"
                                                     : ": it changes nothing that decides speed"));
            continue;
        }
        all.push_back(std::move(candidate));
    }
    // Of recipes that are equally near, one of which something can be left out.
    const std::string nearest_by = all.empty() ? "" : all.front().recipe->match.difference();
    std::stable_partition(all.begin(), all.end(), [&](const KnownCandidate& one) {
        return one.changes.size() > 1 && one.recipe->match.difference() == nearest_by;
    });
    if (all.empty())
        throw UsageError("nothing that is published for " + study.model +
                         " changes what decides speed; `autotune init` without --preset known "
                         "searches");
    try {
        KnownCandidate best{"cost model"};
        const StudySetup plain = draft(study);
        std::optional<double> gain, predicted;
        const Configuration believed = best_believed(plain, gain, predicted);
        for (const auto& [name, value] : believed.entries())
            if (value != plain.problem->space.at(name).default_value) best.changes[name] = value;
        if (!best.changes.empty() && gain.value_or(0) > 0) all.push_back(std::move(best));
        else notes_.emplace_back("the cost model knows nothing better than the default");
    } catch (const Error& error) {
        const std::string why = error.what();
        notes_.push_back("the cost model expects nothing: " + why.substr(0, why.find("; known: ")));
    }
    study.known = keys_of(all, engine_, defaults, *all.front().recipe, version_);
    const StudySetup setup = draft(study);
    const SearchSpace& space = setup.problem->space;
    std::optional<CostBelief> belief;
    try {
        belief.emplace(simulated(setup.file), setup.problem->objective,
                       setup.file.weighted_workloads());
    } catch (const Error&) {  // what it says of the best holds here too
    }
    std::vector<Configuration> seen{space.default_configuration()};
    // Where nobody knows the model a flag of the engine counts, a foreign variable does not.
    const auto is_flag = [&](const auto& entry) { return engine_.find(entry.first) != nullptr; };
    // Nothing: it is not measured, and a note says why.
    const auto value_of_one = [&](const KnownCandidate& candidate) -> std::optional<double> {
        std::string why;
        double value = 0;
        try {
            const Configuration one =
                space.changed(space.default_configuration(), candidate.changes);
            const auto broken = space.violations(one);
            const PriorBelief believed = belief ? belief->belief(one) : PriorBelief{};
            if (contains(seen, one)) why = "measured already";
            else if (!broken.empty()) why = broken.front();
            else if (believed.margin.value_or(0) < 0) why = "by the cost model it does not start";
            else seen.push_back(one);
            value = belief ? believed.log_value.value_or(0)
                           : double(count_if(candidate.changes, is_flag));
        } catch (const SpaceError& error) {
            why = error.what();
        }
        if (why.empty()) return value;
        notes_.push_back(candidate.name + ": " + why);
        return std::nullopt;
    };
    // The first recipe that starts; then what differs from it.
    std::optional<double> of_recipe;
    std::size_t which = 0;
    for (; which < all.size() && all[which].recipe != nullptr && !of_recipe; ++which)
        of_recipe = value_of_one(all[which]);
    if (!of_recipe)
        throw UsageError("nothing that is published for " + study.model + " starts on " +
                         std::to_string(study.gpus) + " of " + chip_.name + ", by the cost model" +
                         notes_text());
    KnownCandidate recipe = std::move(all[which - 1]);
    all.erase(all.begin(), all.begin() + std::ptrdiff_t(which));
    const Configuration whole = space.changed(space.default_configuration(), recipe.changes);
    std::vector<KnownCandidate> less_one;
    for (const auto& [changed, value] : recipe.changes) {
        KnownCandidate& less = less_one.emplace_back(KnownCandidate{"without " + changed});
        const Configuration rest =  // what depends on it goes with it
            space.changed(whole, {{changed, space.at(changed).default_value}});
        for (const auto& [name, kept] : rest.entries())
            if (kept != space.at(name).default_value) less.changes[name] = kept;
    }
    // Those that matter least go; at most half of the rest are no question to the recipe.
    const auto keep = [&](std::vector<KnownCandidate>& of, std::size_t most) {
        stable_sort(of, [](const auto& a, const auto& b) { return a.matters > b.matters; });
        for (; of.size() > most; of.pop_back())
            notes_.push_back(
                (belief ? "left out, as the cost model expects least: " : "no start left: ") +
                of.back().name);
    };
    for (auto* part : {&all, &less_one}) {
        for (KnownCandidate& one : *part) {
            const auto value = value_of_one(one);
            one.matters = value ? std::abs(*value - *of_recipe) : -1;
        }
        std::erase_if(*part, [](const auto& one) { return one.matters < 0; });
    }
    const std::size_t places = search_trials(*setup.problem, most_trials) - 2;
    keep(all, std::max(places / 2, places - std::min(places, less_one.size())));
    keep(less_one, places - all.size());
    const KnownRecipe& nearest = *recipe.recipe;
    recipe.name = "recipe";
    std::vector<KnownCandidate> kept{std::move(recipe)};
    for (auto* part : {&less_one, &all}) kept.insert(kept.end(), part->begin(), part->end());
    notes_.insert(
        notes_.begin(),
        "recipe: " + nearest.match.recipe.source +
            (nearest.match.difference().empty() ? "" : ", " + nearest.match.difference()));
    study.known = keys_of(kept, engine_, defaults, nearest, version_);
    if (study.budget.empty()) study.budget = fmt::format("{} trials", most_trials);
}

}  // namespace autotune
