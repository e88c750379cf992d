// SPDX-License-Identifier: Apache-2.0
// `autotune suggest`: the best command that is known for a model on a chip, without a trial.
#include "commands.hpp"
#include "first_study.hpp"
#include "output.hpp"
#include "templates.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/present.hpp"
#include "base/text.hpp"
#include "engine/flag_facts.hpp"
#include "engine/launcher.hpp"
#include "predict/cost_belief.hpp"
#include "report/report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "study/verdict.hpp"
#include "study_file/recipes.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// What is asked.
struct SuggestQuery {
    Catalogue catalogue = Catalogue::standard();
    std::string model;
    std::filesystem::path model_file{};  ///< where the model is given by its facts
    std::optional<ServedModel> facts{};  ///< nothing: its figures are not known
    HardwareSpec chip{};
    Engine engine{};
    std::string newest{};  ///< version of the engine whose flags are known; empty: none is stored
};

/// A command with what it rests on.
struct Suggestion {
    Command command{};
    std::int64_t devices = 1;
    std::optional<RecipeMatch> match{};  ///< nothing: it is a guess
    AppliedRecipe applied{};
    std::string memory{};  ///< what the cost model says of it
    bool checked = false;  ///< the cost model could look
    std::optional<double> gain{};
    bool no_gain = false;  ///< beyond the error: the command is the default's
    std::vector<std::string>
        unchecked{};          ///< parameters that change the numbers a model computes with
    std::string error{};      ///< of a guess: how far the cost model was off
    std::string missing{};    ///< what the command needs before it works
    std::string served{};     ///< another checkpoint than was asked for
    std::string elsewhere{};  ///< a gain that was measured with another engine or checkpoint
};

/// The one known model whose id ends in this name; else the name.
std::string full_name(const std::string& name, const Catalogue& catalogue) {
    std::set<std::string> ids;
    for (const ModelSpec& spec : catalogue.all_models())
        if (lower_case(spec.name).ends_with("/" + lower_case(name))) ids.insert(spec.name);
    return ids.size() == 1 ? *ids.begin() : name;
}

/// The same of an engine.
SuggestQuery with_engine(SuggestQuery wanted, Engine engine) {
    wanted.engine = std::move(engine);
    const std::vector<FlagFacts> versions =
        known_versions(wanted.catalogue.root(), wanted.engine.name);
    wanted.newest = versions.empty() ? "" : versions.back().version;
    return wanted;
}

SuggestQuery wanted_by(const SuggestArguments& arguments) {
    SuggestQuery wanted;
    wanted.model = arguments.model;
    wanted.chip = wanted.catalogue.hardware(arguments.hardware);
    if (arguments.model.ends_with(".yaml")) {
        wanted.facts = wanted.catalogue.model(arguments.model);
        wanted.model_file = std::filesystem::absolute(arguments.model).lexically_normal();
        wanted.model = wanted.facts->model.name;
        wanted.catalogue.use_model(wanted.model_file);
    } else {
        wanted.model = full_name(wanted.model, wanted.catalogue);
        wanted.facts = served_model(wanted.model, wanted.catalogue.all_models());
    }
    return wanted;
}

/// Whether the recipe's command starts, by the cost model. Nothing: it does, or nobody can tell.
/// Says in `of` what was checked.
std::optional<std::string> why_not_started(const SuggestQuery& wanted,
                                           const Composition& composition,
                                           const Configuration& configuration, Suggestion& of) {
    std::string why = "the figures of " + wanted.model + " are not known";
    if (wanted.facts) try {
            const EngineTraits traits = wanted.catalogue.traits(wanted.engine.name);
            std::vector<ServingReader> readers;
            readers.emplace_back(wanted.engine, traits, wanted.catalogue.all_models(), wanted.chip);
            const SimulateEvaluator evaluator(composition, wanted.model, std::move(readers), {},
                                              {});
            const SimulateEvaluator::Started started = evaluator.started(configuration);
            of.checked = !started.failure || started.failure->kind != FailureKind::unsupported;
            if (!started.failure) of.memory = present(started.cost).memory().text();
            else why = started.start.cause.empty() ? started.failure->message : started.start.cause;
            if (of.checked) return started.failure ? std::optional(why) : std::nullopt;
        } catch (const Error& error) {
            why = error.what();
        }
    of.memory = "not checked: " + why;
    return std::nullopt;
}

/// A recipe as the engine's newest version takes it; nothing: it does not start, and the reason
/// goes to `passed_over`.
std::optional<Suggestion> suggested_by(const RecipeMatch& match, const SuggestQuery& wanted,
                                       std::vector<std::string>& passed_over) {
    const auto pass_over = [&](const std::string& why) {
        const std::string& served = match.recipe.checkpoint;
        passed_over.push_back(match.recipe.source + ": " + why +
                              (match.same_quantization || served.empty()
                                   ? ""
                                   : "; its source served " + served + ": name that as MODEL"));
        return std::nullopt;
    };
    try {
        Suggestion result;
        result.applied =
            applied(match.recipe, wanted.engine, "", wanted.chip, wanted.catalogue.root());
        const Composition composition = composed(result.applied, wanted.engine, "", wanted.chip);
        const SearchSpace space(composition.parameters(), composition.constraints());
        const Configuration configuration = space.default_configuration();
        if (const auto why = why_not_started(wanted, composition, configuration, result))
            return pass_over(*why);
        if (!result.checked && !match.difference().empty())
            return pass_over(match.difference() + ", and nobody can tell whether it fits: memory " +
                             result.memory);
        result.command = composition.render(configuration, {wanted.model, {}, 0});
        for (const auto& [name, value] : result.applied.environment)
            result.command.environment.emplace(name, value);
        result.devices = composition.devices_of(configuration);
        result.match = match;
        return result;
    } catch (const SpaceError& error) {
        return pass_over(error.what());
    }
}

std::vector<RecipeMatch> matches_of(const SuggestQuery& wanted) {
    return matching(recipes_of(wanted.catalogue, wanted.engine.name),
                    {wanted.model, wanted.chip, ""}, wanted.catalogue.all_hardware());
}

/// The nearest recipe that starts.
std::optional<Suggestion> by_recipe(const SuggestQuery& wanted,
                                    std::vector<std::string>& passed_over) {
    for (const RecipeMatch& match : matches_of(wanted))
        if (auto result = suggested_by(match, wanted, passed_over)) return result;
    return std::nullopt;
}

/// Of all engines the recipe for this model and chip whose source measured the largest gain, and
/// what to ask for it: where that served another checkpoint, that one.
struct MeasuredElsewhere {
    SuggestQuery wanted{};
    RecipeMatch match{};
    double gain = 0;  ///< percent
};

std::optional<MeasuredElsewhere> best_measured(const SuggestQuery& wanted) {
    std::optional<MeasuredElsewhere> best;
    for (const Engine& engine : wanted.catalogue.engines()) {
        SuggestQuery query = wanted;
        query.engine = engine;
        for (const RecipeMatch& match : matches_of(query)) {
            const std::string& said = match.recipe.measured;
            const double gain = std::strtod(said.c_str(), nullptr);
            if (!match.same_model || !match.same_chip || gain <= 0 ||
                (best && best->gain >= gain) ||
                (!match.same_quantization && match.recipe.checkpoint.empty()))
                continue;
            best = {query, match, gain};
            if (match.same_quantization) continue;
            best->wanted.model = match.recipe.checkpoint;
            best->wanted.facts = served_model(best->wanted.model, wanted.catalogue.all_models());
            best->match.same_quantization = true;
        }
    }
    return best;
}

std::string share_text(double share) { return fmt::format("{:.0f} %", share * 100); }

/// How far predictions of this engine were off: in words, and the median on this chip or, where it
/// was never checked, the largest on others.
std::pair<std::string, std::optional<double>> error_of_predictions(const SuggestQuery& wanted) {
    std::optional<double> largest;
    for (const CostCheck& one : wanted.catalogue.traits(wanted.engine.name).checked) {
        if (one.hardware == wanted.chip.name)
            return {
                fmt::format("on {} half of them were off by at most {}{}: checked with {} of {} {}",
                            one.hardware, share_text(one.median_error),
                            one.rows < 5 ? ""  // which nine of ten?
                                         : ", nine of ten by at most " + share_text(one.error_90),
                            counted_text(one.rows, "measured configuration"), wanted.engine.name,
                            one.of),
                one.median_error};
        largest = std::max(largest.value_or(0), one.median_error);
    }
    return {fmt::format("not known: none for {} was ever checked with a measurement on {}",
                        wanted.engine.name, wanted.chip.name),
            largest};
}

/// The configuration of which the cost model expects most, of the default and those drawn.
Configuration best_believed(const StudySetup& setup, std::optional<double>& gain) {
    const CostBelief belief(simulated(setup.file), setup.problem->objective.leading().metric,
                            setup.file.weighted_workloads());
    constexpr std::size_t most = 1000;  // some 0.2 ms each
    const Configuration default_ = setup.problem->space.default_configuration();
    const std::optional<double> value_of_default = belief.belief(default_).log_value;
    Configuration best = default_;
    std::optional<double> highest = value_of_default;
    Rng rng(1);
    for (std::size_t i = 0; i < most; ++i) {
        const Configuration one = setup.problem->feasible.sample(rng);
        const PriorBelief believed = belief.belief(one);
        if (!believed.log_value || believed.margin.value_or(0) < 0 ||
            (highest && *believed.log_value <= *highest))
            continue;
        best = one;
        highest = believed.log_value;
    }
    if (highest && value_of_default) gain = std::exp(*highest - *value_of_default) - 1;
    // The smallest command that is expected to do the same.
    for (const auto& [name, value] : Assignment(best.entries().begin(), best.entries().end())) {
        Assignment fewer(best.entries().begin(), best.entries().end());
        fewer[name] = setup.problem->space.at(name).default_value;
        const Configuration smaller = setup.problem->space.completed(fewer);
        constexpr double same = 1e-3;
        const PriorBelief believed = belief.belief(smaller);
        if (highest && believed.log_value && setup.problem->space.feasible(smaller) &&
            *believed.log_value > *highest - same && believed.margin.value_or(0) >= 0)
            best = smaller;
    }
    return best;
}

/// Where the study of a guess stands: on no disk.
const std::string draft_folder = "/suggest";
const std::string draft_name = "/suggest.yaml";

/// The cost model's guess on so many devices, of the study that `init` would write. Throws where
/// nothing starts there.
Suggestion guess_on(const SuggestQuery& wanted, std::size_t devices) {
    FirstStudy study;
    study.file = draft_name;
    study.model = wanted.model_file.empty() ? wanted.model : wanted.model_file.string();
    study.engine = wanted.engine.name;
    study.hardware = wanted.chip.name;
    study.preset = "quick";
    study.as = "simulate";
    study.spread_by = parameter_of(wanted.engine, "tensor_parallel_size");
    study.gpus = study.layout = devices;
    study.all_said = true;
    std::map<std::string, std::string> texts{{study_of_texts, draft_name},
                                             {draft_name, study.text()}};
    if (!wanted.model_file.empty())
        texts[wanted.model_file.string()] = read_file(wanted.model_file);
    const StudyText draft = StudyText::kept_by(draft_folder, std::move(texts));
    const StudySetup setup = set_up(load_study(draft, wanted.catalogue));
    Suggestion result;
    Configuration best = best_believed(setup, result.gain);
    const auto [error_text, error] = error_of_predictions(wanted);
    result.no_gain = result.gain && (!error || *result.gain <= *error);
    if (result.no_gain) best = setup.problem->space.default_configuration();
    for (const auto& [name, value] : best.entries())
        if (const Parameter& parameter = setup.problem->space.at(name);
            changes_answers(parameter) && value != parameter.default_value)
            result.unchecked.push_back(name);
    result.command = setup.command(best);
    result.devices = setup.file.composition->devices_of(best);
    const auto started = simulated(setup.file)->started(best);
    if (started.failure)
        throw UsageError(started.start.cause.empty() ? started.failure->message
                                                     : started.start.cause);
    result.memory = present(started.cost).memory().text();
    result.error = error_text;
    return result;
}

/// The same on the fewest devices that hold the model; nothing: no number does, and why.
std::optional<Suggestion> by_cost_model(const SuggestQuery& wanted, std::string& why_not) {
    for (std::size_t devices = 1; devices <= most_devices; devices *= 2) try {
            return guess_on(wanted, devices);
        } catch (const IoError&) {  // of a file, whatever the number of devices
            throw;
        } catch (const Error& error) {
            why_not = fmt::format("on {} of {}: {}", devices, wanted.chip.name,
                                  with_path(error.what(), draft_folder + draft_name, "its study"));
        }
    return std::nullopt;
}

OrderedJson suggestion_json(const Suggestion& suggestion, const SuggestQuery& wanted,
                            const std::vector<std::string>& passed_over) {
    OrderedJson json{{"kind", suggestion.match ? "recipe" : "guess"},
                     {"model", wanted.model},
                     {"hardware", wanted.chip.name},
                     {"engine", wanted.engine.name},
                     {"version", wanted.newest},
                     {"command", suggestion.command.text()},
                     {"argv", suggestion.command.argv},
                     {"environment", suggestion.command.environment},
                     {"files", suggestion.command.files},
                     {"devices", suggestion.devices},
                     {"memory", suggestion.memory},
                     {"missing", suggestion.missing},
                     {"served", suggestion.served},
                     {"elsewhere", suggestion.elsewhere},
                     {"passed_over", passed_over}};
    if (suggestion.match) {
        const Recipe& recipe = suggestion.match->recipe;
        json.update(OrderedJson{{"source", recipe.source},
                                {"licence", recipe.licence},
                                {"goal", recipe.goal},
                                {"measured", recipe.measured},
                                {"difference", suggestion.match->difference()},
                                {"left_out", suggestion.applied.dropped},
                                {"not_checked", suggestion.applied.environment}});
    } else
        json.update(OrderedJson{{"predicted_gain", or_null(suggestion.gain)},
                                {"within_error", suggestion.no_gain},
                                {"error", suggestion.error},
                                {"quality_not_measured", suggestion.unchecked}});
    return json;
}

/// A JSON object as values: texts and numbers, `yes` for true and nothing for false, lists of
/// objects; a list of texts has `it`, an object of texts `name` and `value`.
TemplateValues template_values(const nlohmann::ordered_json& json) {
    const auto text_of = [](const nlohmann::ordered_json& value) -> std::string {
        if (value.is_string()) return value.get<std::string>();
        if (value.is_boolean()) return value.get<bool>() ? "yes" : "";
        return value.is_null() ? "" : value.dump();
    };
    TemplateValues result;
    for (const auto& [key, value] : json.items()) {
        if (!value.is_structured()) {
            result.texts[key] = text_of(value);
            continue;
        }
        std::vector<TemplateValues>& list = result.lists[key];
        for (const auto& [name, entry] : value.items())
            list.push_back(value.is_object()
                               ? TemplateValues{{{"name", name}, {"value", text_of(entry)}}}
                           : entry.is_object() ? template_values(entry)
                                               : TemplateValues{{{"it", text_of(entry)}}});
    }
    return result;
}

std::string gain_text(const Suggestion& suggestion) {
    if (suggestion.no_gain)
        return fmt::format(
            "this is the default: the largest predicted gain, {:+.1f} %, is within the error of "
            "such predictions",
            present(suggestion.gain) * 100);
    if (!suggestion.gain) return "the default would not start there, by the same model";
    return fmt::format("predicted gain over the default: {:+.1f} % of total tokens/s",
                       *suggestion.gain * 100);
}

void print_suggestion(const Suggestion& suggestion, const SuggestQuery& wanted,
                      const OrderedJson& json) {
    std::string memory = suggestion.memory;
    const bool lines = memory.ends_with('\n');
    if (lines) memory.pop_back();
    TemplateValues values = template_values(json);
    values.texts.insert({{"memory_text", (lines ? "\n" : " ") + memory},
                         {"gain", gain_text(suggestion)},
                         {"init", Command{{"autotune", "init", "--model", wanted.model, "--engine",
                                           wanted.engine.name, "--hardware", wanted.chip.name,
                                           "--gpus", std::to_string(suggestion.devices)}}
                                      .text()}});
    put_text(stdout, fill_template(suggestion_txt_in.text, values));
}

std::string unknown_text(const SuggestQuery& wanted) {
    std::set<std::string> known;
    for (const ModelSpec& spec : wanted.catalogue.all_models()) known.insert(spec.name);
    constexpr std::size_t few = 5;
    return fmt::format(
        "nothing is known of {} on {} with {}: no recipe, and no figures for the cost model. "
        "Nearest known models: {}. Name a file with its facts as MODEL (search_spaces/FORMAT.md, "
        "'model'), or measure: autotune init --model {}",
        wanted.model, wanted.chip.name, wanted.engine.name,
        listed(nearest_first(wanted.model, std::vector(known.begin(), known.end())), few),
        Command{{wanted.model}}.text());
}

/// An answer without a command.
int no_command(const SuggestArguments& arguments, const std::string& kind, const std::string& why,
               const std::vector<std::string>& passed_over, ExitCode code) {
    if (arguments.json)
        put_json(OrderedJson{{"kind", kind},
                             {"model", arguments.model},
                             {"reason", why},
                             {"passed_over", passed_over}});
    else {
        put_each(stdout, "passed over: ", passed_over);
        put(stdout, "{}\n", why);
    }
    return code;
}

/// Where the engine takes a file: the name that one would have, in place of the id.
void name_model_file(Suggestion& suggestion, const SuggestQuery& wanted) {
    suggestion.missing = model_file_missing(wanted.engine, wanted.model);
    if (suggestion.missing.empty()) return;
    const std::string file =
        wanted.model.substr(wanted.model.rfind('/') + 1) + model_ending_of(wanted.engine);
    std::replace(suggestion.command.argv.begin(), suggestion.command.argv.end(), wanted.model,
                 file);
    suggestion.missing += ": put the path of yours in place of " + file;
}

}  // namespace

int suggest(const SuggestArguments& arguments) {
    SuggestQuery wanted = wanted_by(arguments);
    std::vector<std::string> passed_over;
    std::optional<Suggestion> suggestion;
    const std::optional<MeasuredElsewhere> measured = best_measured(wanted);
    if (arguments.engine.empty()) {
        if (measured) {
            suggestion = suggested_by(measured->match, measured->wanted, passed_over);
            if (suggestion && measured->wanted.model != wanted.model)
                suggestion->served = measured->wanted.model + " in place of " + wanted.model +
                                     ": what it loses in quality was not measured here";
            wanted = with_engine(measured->wanted, measured->wanted.engine);
        }
        if (!suggestion)
            return no_command(
                arguments, "unknown",
                fmt::format("no gain of {} on {} is published with any engine: "
                            "--engine NAME gives the nearest recipe of one, or a guess",
                            arguments.model, wanted.chip.name),
                passed_over, answer_is_no);
    } else wanted = with_engine(wanted, wanted.catalogue.engine(arguments.engine));
    if (const auto& chips = wanted.engine.architectures;
        !chips.empty() &&
        std::find(chips.begin(), chips.end(), wanted.chip.architecture) == chips.end())
        return no_command(
            arguments, "nothing_fits",
            fmt::format("{} does not run on {} ({}); it runs on {}", wanted.engine.name,
                        wanted.chip.name, wanted.chip.architecture, listed(chips, chips.size())),
            {}, nothing_feasible);
    if (!suggestion) suggestion = by_recipe(wanted, passed_over);
    if (!suggestion && !wanted.facts)
        return no_command(arguments, "unknown", unknown_text(wanted), passed_over, answer_is_no);
    std::string why_not;
    if (!suggestion) suggestion = by_cost_model(wanted, why_not);
    if (!suggestion)
        return no_command(arguments, "nothing_fits", "by the cost model nothing starts " + why_not,
                          passed_over, nothing_feasible);
    if (measured && (!suggestion->match ||
                     suggestion->match->recipe.measured != measured->match.recipe.measured))
        suggestion->elsewhere = fmt::format("{} serving {}: {}; without --engine that is printed",
                                            measured->wanted.engine.name, measured->wanted.model,
                                            measured->match.recipe.measured);
    name_model_file(*suggestion, wanted);
    const OrderedJson json = suggestion_json(*suggestion, wanted, passed_over);
    if (arguments.json) put_json(json);
    else print_suggestion(*suggestion, wanted, json);
    return done;
}

}  // namespace autotune
