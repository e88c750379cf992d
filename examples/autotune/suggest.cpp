// SPDX-License-Identifier: Apache-2.0
// `autotune suggest`: the best command that is known for a model on a chip, without a trial.
#include "commands.hpp"
#include "first_study.hpp"
#include "known_study.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "templates.hpp"

#include "base/nearest.hpp"
#include "base/present.hpp"
#include "base/text.hpp"
#include "engine/flag_facts.hpp"
#include "engine/launcher.hpp"
#include "perf/cost_check.hpp"
#include "predict/cost_belief.hpp"
#include "report/report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "study/verdict.hpp"
#include "study_file/readers.hpp"
#include "study_file/recipes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// What is asked.
struct SuggestQuery {
    Catalogue catalogue = Catalogue::standard();
    std::string model;
    fs::path model_file{};               ///< with its facts, where they do not ship
    bool by_hand = false;                ///< it was named in place of the model
    std::optional<ServedModel> facts{};  ///< nothing: its figures are not known
    HardwareSpec chip{};
    std::string chip_note{};  ///< what its name was taken for
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
        unchecked{};  ///< parameters that change the numbers a model computes with
    std::optional<double> predicted{};                    ///< of a guess: total tokens/s
    std::optional<std::pair<double, double>> interval{};  ///< with 90 %
    std::string error{};                                  ///< by which rows
    std::string missing{};    ///< what the command needs before it works
    std::string served{};     ///< another checkpoint than was asked for
    std::string fewer{};      ///< why it takes no fewer devices, where the context decides
    std::string elsewhere{};  ///< a gain that was measured with another engine or checkpoint
};

/// What nobody has compared the answers of.
void note_unchecked(const Parameter& parameter, const Value& value, Suggestion& of) {
    if (changes_answers(parameter) && value != parameter.default_value)
        of.unchecked.push_back(parameter.name);
}

/// What was passed over, each with the reason.
struct PassedOver {
    std::vector<std::string> recipes{};
    bool too_large = false;  ///< one of them by the name's own count of parameters
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

/// The name of a folder counts only where its files have the shape of the model of that name.
bool is_what_it_is_called(const SuggestQuery& wanted) {
    if (!fs::path(wanted.model).is_absolute() || !wanted.facts) return true;
    const auto named = served_model(wanted.model, Catalogue::standard().all_models());
    const auto shape = [](const ModelSpec& of) {
        return std::tuple(of.layers, of.hidden_size, of.attention_heads, of.vocabulary, of.experts);
    };
    return named && shape(named->model) == shape(wanted.facts->model);
}

/// The figures of the model: those that ship, else those of its own files. A file that a person
/// names has to be right.
void find_facts(SuggestQuery& wanted) {
    wanted.facts.reset();
    wanted.by_hand = names_model_file(wanted.model);
    std::error_code unknown;
    const bool is_path = wanted.by_hand || fs::exists(wanted.model, unknown);
    if (!is_path) {
        wanted.model = full_name(wanted.model, wanted.catalogue);
        wanted.facts = served_model(wanted.model, wanted.catalogue.all_models());
        if (wanted.facts && wanted.facts->model.weights.contains(wanted.facts->quantization)) {
            ModelSpec& model = wanted.facts->model;
            if (wanted.facts->quantization == model.native_type)
                if (std::string note = note_of(*wanted.facts, wanted.model); !note.empty())
                    model.notes.push_back(std::move(note));
            return;
        }
        wanted.facts.reset();  // what it weighs is not known
        if (wanted.catalogue.file_of_model(wanted.model).empty()) return;
    } else if (!wanted.by_hand) wanted.model = (fs::canonical(wanted.model)).string();
    try {
        wanted.facts = wanted.by_hand
                           ? wanted.catalogue.model(wanted.model)
                           : ServedModel{wanted.catalogue.model_from_files(wanted.model)};
    } catch (const Error& error) {
        if (is_path) throw;
        complain("autotune: {}; its figures are not used\n", error.what());
        return;
    }
    wanted.model_file = wanted.by_hand ? fs::absolute(wanted.model).lexically_normal()
                                       : wanted.catalogue.file_of_model(wanted.model);
    if (wanted.by_hand) wanted.model = wanted.facts->model.name;
    wanted.facts->quantization = wanted.facts->model.native_type;
    wanted.catalogue.use_model(wanted.model_file, wanted.model);
    if (!is_what_it_is_called(wanted))
        if (const auto named = served_model(wanted.model, Catalogue::standard().all_models()))
            wanted.facts->model.notes.push_back("the folder is called like " + named->model.name +
                                                ", and its files are of another model");
}

SuggestQuery wanted_by(const SuggestArguments& arguments) {
    SuggestQuery wanted;
    wanted.model = arguments.model;
    wanted.chip = wanted.catalogue.hardware(arguments.hardware);
    wanted.chip_note =
        why_ambiguous(arguments.hardware, wanted.chip, wanted.catalogue.all_hardware());
    find_facts(wanted);
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
/// goes to `passed_over`. Where nobody can tell, what its source served there has to be the same.
std::optional<Suggestion> suggested_by(const RecipeMatch& match, const SuggestQuery& wanted,
                                       PassedOver& passed_over) {
    const auto pass_over = [&](const std::string& why) {
        const std::string& served = match.recipe.checkpoint;
        passed_over.recipes.push_back(
            match.recipe.source + ": " + why +
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
        result.devices = composition.devices_of(configuration);
        if (!result.checked && !match.has_room) {
            const auto named = weights_named(wanted.model);
            if (named && named->least_devices(wanted.chip) > std::size_t(result.devices)) {
                passed_over.too_large = true;
                return pass_over(fmt::format(
                    "it does not fit by the name's own count: {}, and {} x {} have {:.0f} GB",
                    named->text(), result.devices, wanted.chip.name,
                    double(result.devices) * wanted.chip.memory_bytes / 1e9));
            }
            return pass_over(match.difference() + ", and nobody can tell whether it fits: memory " +
                             result.memory);
        }
        result.command = composition.render(configuration, {wanted.model, {}, 0});
        for (const EngineParameter& one : wanted.engine.parameters)
            if (const Value* said = entry_in(result.applied.values, one.parameter.name))
                note_unchecked(one.parameter, *said, result);
        for (const auto& [name, value] : result.applied.environment)
            result.command.environment.emplace(name, value);
        result.match = match;
        return result;
    } catch (const SpaceError& error) {
        return pass_over(error.what());
    }
}

std::vector<RecipeMatch> matches_of(const SuggestQuery& wanted) {
    if (!is_what_it_is_called(wanted)) return {};
    return matching(recipes_of(wanted.catalogue, wanted.engine.name),
                    {wanted.model, wanted.chip, ""}, wanted.catalogue.all_hardware());
}

/// The nearest recipe that starts.
std::optional<Suggestion> by_recipe(const SuggestQuery& wanted, PassedOver& passed_over) {
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
            find_facts(best->wanted);
            best->match.same_quantization = best->match.has_room = true;
        }
    }
    return best;
}

}  // namespace

Configuration best_believed(const StudySetup& setup, std::optional<double>& gain,
                            std::optional<double>& predicted) {
    const CostBelief belief(simulated(setup.file), setup.problem->objective,
                            setup.file.weighted_workloads());
    constexpr std::size_t most = 1000;  // some 0.2 ms each
    const Configuration default_ = setup.problem->space.default_configuration();
    const PriorBelief of_default = belief.belief(default_);
    const std::optional<double> value_of_default =
        of_default.margin.value_or(0) < 0 ? std::nullopt : of_default.log_value;
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
    if (highest) predicted = std::exp(*highest);
    return best;
}

namespace {

/// Where the study of a guess stands: on no disk.
const std::string draft_name = "/suggest.yaml";

/// The study that `init` would write for so many devices.
StudyFile first_study(const SuggestQuery& wanted, std::size_t devices) {
    FirstStudy study;
    study.file = draft_name;
    study.model = wanted.by_hand ? wanted.model_file.string() : wanted.model;
    study.engine = wanted.engine.name;
    study.hardware = wanted.chip.name;
    study.preset = "quick";
    study.as = "simulate";
    study.spread_by = parameter_of(wanted.engine, "tensor_parallel_size");
    study.gpus = study.layout = devices;
    study.all_said = true;
    StudyText draft(draft_name);
    draft.kept.emplace(draft_name, study.text());
    // A model by its own files is found there again: in a catalogue that has it, it ships.
    const bool own = !wanted.by_hand && !wanted.model_file.empty();
    return load_study(draft, own ? Catalogue::standard() : wanted.catalogue);
}

/// The cost model's guess of it. Throws where nothing starts.
Suggestion guess_of(const SuggestQuery& wanted, const StudySetup& setup) {
    const EngineTraits traits = wanted.catalogue.traits(wanted.engine.name);
    Suggestion result;
    Configuration best = best_believed(setup, result.gain, result.predicted);
    const CostCheck* check = check_of(traits, wanted.chip, wanted.facts->model);
    // Half of the errors, by the interval of nine of ten, as in a normal distribution.
    constexpr double half_of_them = 0.41;
    const auto range = interval_of(check, "total_tokens_per_second", 1);
    result.no_gain = result.gain &&
                     (!range || *result.gain <= half_of_them / 2 * (range->second - range->first));
    if (result.no_gain) {
        best = setup.problem->space.default_configuration();
        *result.predicted /= 1 + *result.gain;
    }
    if (result.predicted)
        result.interval = interval_of(check, "total_tokens_per_second", *result.predicted);
    for (const auto& [name, value] : best.entries())
        note_unchecked(setup.problem->space.at(name), value, result);
    result.command = setup.command(best);
    result.devices = setup.file.composition->devices_of(best);
    const auto started = simulated(setup.file)->started(best);
    if (started.failure)
        throw UsageError(started.start.cause.empty() ? started.failure->message
                                                     : started.start.cause);
    const MemoryPlan& memory = present(started.cost).memory();
    if (memory.free_bytes < 0)
        throw UsageError("a full step of prompts does not fit beside the cache:\n" + memory.text());
    result.memory = memory.text();
    result.checked = true;
    result.error = check != nullptr
                       ? "90 % of " + rows_text(*check, wanted.chip, wanted.facts->model)
                       : wanted.engine.name + " was never checked";
    return result;
}

/// The same on the fewest devices that hold the model; nothing: no number does, and why.
std::optional<Suggestion> by_cost_model(const SuggestQuery& wanted, std::string& why_not) {
    const auto most =
        std::size_t(wanted.chip.devices_per_node.value_or(std::int64_t(most_devices)));
    std::vector<std::pair<std::string, std::string>> tried;  // numbers of devices, and why not
    std::string memory, context;
    for (std::size_t devices = 1; devices <= most; devices *= 2) try {
            StudyFile study = first_study(wanted, devices);
            why_not = context_text(study);
            if (!why_not.empty()) return std::nullopt;
            Suggestion result = guess_of(wanted, set_up(std::move(study)));
            result.fewer = context;
            return result;
        } catch (const IoError&) {  // of a file, whatever the number of devices
            throw;
        } catch (const Error& error) {
            auto [why, plan] = sentence_and_memory(
                with_path(with_path(error.what(), draft_name + ": ", ""), draft_name, "its study"));
            why.erase(std::min(why.find("; predicted, "), why.size()));
            if (!plan.empty()) memory = plan;
            if (plan.starts_with("the context of "))
                context = fmt::format("on {} of {} {}", devices, wanted.chip.name,
                                      plan.substr(0, plan.find(", where")));
            if (!tried.empty() && tried.back().second == why)
                tried.back().first += fmt::format(", {}", devices);
            else tried.emplace_back(std::to_string(devices), why);
        }
    for (why_not = "by the cost model nothing starts"; const auto& [devices, why] : tried)
        why_not += fmt::format("\non {} of {}: {}", devices, wanted.chip.name, why);
    why_not += "\n" + memory;
    return std::nullopt;
}

OrderedJson suggestion_json(const Suggestion& suggestion, const SuggestQuery& wanted,
                            const PassedOver& passed_over) {
    OrderedJson json{
        {"kind", suggestion.match ? "recipe" : "guess"},
        {"model", wanted.model},
        {"hardware", wanted.chip.name},
        {"hardware_note", wanted.chip_note},
        {"engine", wanted.engine.name},
        {"version", wanted.newest},
        {"command", suggestion.command.text()},
        {"argv", suggestion.command.argv},
        {"environment", suggestion.command.environment},
        {"files", suggestion.command.files},
        {"devices", suggestion.devices},
        {"memory", suggestion.memory},
        {"checked", suggestion.checked},
        {"quality_not_measured", suggestion.unchecked},
        {"missing", suggestion.missing},
        {"fewer_devices", suggestion.fewer},
        {"served", suggestion.served},
        {"elsewhere", suggestion.elsewhere},
        {"facts", wanted.model_file.string()},
        {"notes", wanted.facts ? wanted.facts->model.notes : std::vector<std::string>{}},
        {"passed_over", passed_over.recipes}};
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
                                {"predicted", or_null(suggestion.predicted)},
                                {"predicted_90_percent", or_null(suggestion.interval)},
                                {"error", suggestion.error}});
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

std::string init_command(const SuggestQuery& wanted, std::size_t devices) {
    return Command{{"autotune", "init", "--model", wanted.model, "--engine", wanted.engine.name,
                    "--hardware", wanted.chip.name, "--gpus", std::to_string(devices)}}
        .text();
}

void print_suggestion(const Suggestion& suggestion, const SuggestQuery& wanted,
                      const OrderedJson& json) {
    std::string memory = suggestion.memory;
    const bool lines = memory.ends_with('\n');
    if (lines) memory.pop_back();
    TemplateValues values = template_values(json);
    values.texts.insert(
        {{"memory_text", (lines ? "\n" : " ") + memory},
         {"gain", suggestion.gain ? fmt::format("{:+.1f}", *suggestion.gain * 100) : ""},
         {"interval",
          suggestion.interval ? interval_text(suggestion.interval) : "how far off is not known"},
         {"rate", suggestion.predicted ? number_text(*suggestion.predicted, 0) : ""},
         {"init", init_command(wanted, suggestion.devices)}});
    put_text(stdout, fill_template(suggestion_txt_in.text, values));
}

/// An answer without a command; `why` fills the template beside what is asked.
int no_command(const SuggestArguments& arguments, const SuggestQuery& wanted, TemplateValues why,
               const PassedOver& passed_over, ExitCode code) {
    why.texts.insert({{"model", arguments.model},
                      {"hardware", wanted.chip.name},
                      {"architecture", wanted.chip.architecture},
                      {"engine", wanted.engine.name},
                      {"passed_over", passed_over.recipes.empty() ? "" : "yes"},
                      {"too_large", passed_over.too_large ? "yes" : ""}});
    const std::string text(trimmed(fill_template(no_suggestion_txt_in.text, why)));
    if (arguments.json)
        put_json(OrderedJson{{"kind", code == nothing_feasible ? "nothing_fits" : "unknown"},
                             {"model", arguments.model},
                             {"reason", text},
                             {"passed_over", passed_over.recipes}});
    else {
        put_each(stdout, "passed over: ", passed_over.recipes);
        put_text(stdout, text + "\n");
    }
    return code;
}

/// The same of a model whose figures are not known.
int unknown_model(const SuggestArguments& arguments, const SuggestQuery& wanted,
                  const PassedOver& passed_over) {
    const std::string text = unknown_text(wanted.model, wanted.chip, wanted.catalogue);
    const std::size_t devices = devices_by_name(wanted.model, wanted.chip);
    return no_command(arguments, wanted,
                      {{{"unknown", text}, {"init", init_command(wanted, devices)}}}, passed_over,
                      passed_over.too_large ? nothing_feasible : answer_is_no);
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
    PassedOver passed_over;
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
            return no_command(arguments, wanted, {{{"unpublished", "yes"}}}, passed_over,
                              answer_is_no);
    } else wanted = with_engine(wanted, wanted.catalogue.engine(arguments.engine));
    if (const auto& chips = wanted.engine.architectures;
        !chips.empty() && !contains(chips, wanted.chip.architecture))
        return no_command(arguments, wanted, {{{"chips", listed(chips, chips.size())}}}, {},
                          nothing_feasible);
    if (!suggestion) suggestion = by_recipe(wanted, passed_over);
    if (!suggestion && !wanted.facts) return unknown_model(arguments, wanted, passed_over);
    std::string why_not;
    if (!suggestion) suggestion = by_cost_model(wanted, why_not);
    if (!suggestion)
        return no_command(arguments, wanted, {{{"why_not", why_not}}}, passed_over,
                          nothing_feasible);
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
