// SPDX-License-Identifier: Apache-2.0
#include "knowledge.hpp"

#include "base/nearest.hpp"
#include "evaluator_type.hpp"
#include "predict/cost_belief.hpp"
#include "readers.hpp"
#include "recipes.hpp"
#include "search/earlier_results.hpp"
#include "search/nearest_value.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/json.hpp"
#include "study/plain_value.hpp"
#include "study/table.hpp"
#include "study/trial_rules.hpp"
#include "study_snapshot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace servetune {
namespace {

namespace fs = std::filesystem;

struct Source {
    std::shared_ptr<const PriorMean> belief{};  ///< null: it knows nothing here
    std::string text;
};

/// Values that the study has without searching them.
Assignment constants_of(const StudyFile& study) {
    if (study.composition->engines().size() > 1 || !study.has_commands()) return {};
    return {{"engine", study.composition->engines().front().name}};
}

Source cost_model(const StudyFile& study) {
    try {
        if (study.workloads.empty()) throw UsageError("the study names no workload");
        if (study.machine.chip().empty())
            throw UsageError("the study does not say on which hardware");
        if (const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
            deploy != nullptr && deploy->options.fill_devices)
            throw UsageError(
                "it predicts one copy of the engine, and `replicas: fill` measures several");
        auto evaluator = simulated(study);
        std::string rests_on = study.machine.chip() + " " + study.model;
        for (const Engine& engine : study.composition->engines())
            rests_on += traits_text(study, engine.name);
        for (const fs::path& own : {study.model_file, study.machine.hardware_file})
            if (!own.empty()) rests_on += text_of_facts(own, study.source);
        auto belief = std::make_shared<CostBelief>(std::move(evaluator), study.objective,
                                                   study.weighted_workloads());
        const bool estimated =
            QuickEstimate{1, 1, 1, 1, 1, 1, 1}.metric(study.objective.leading().metric).has_value();
        return {std::move(belief), (estimated ? "the cost model ("
                                              : "the cost model, of memory only: it does not "
                                                "estimate " +
                                                    study.objective.leading().metric + " (") +
                                       fingerprint_of(rests_on).text() + ")"};
    } catch (const Error& error) {
        return {nullptr, std::string("the cost model knows nothing here: ") + error.what()};
    }
}

bool same_journal(const fs::path& named, const fs::path& own_folder) {
    std::error_code not_there;
    return !own_folder.empty() && fs::equivalent(SqliteJournal::file_of(named),
                                                 SqliteJournal::file_of(own_folder), not_there);
}

/// What was measured elsewhere.
struct Observations {
    std::string name;     ///< of messages: `the study 'x' in FOLDER`
    std::string text;     ///< the same for a journal
    std::string content;  ///< what it rests on
    std::vector<Trial> trials{};
};

Observations observed_by_study(const StudyFile& study, const fs::path& folder) {
    const SqliteJournal journal = SqliteJournal::read(folder);
    Observations result{"the study '" + journal.study_name() + "' in " + folder.string(),
                        "the study '" + journal.study_name() + "', ", ""};
    const auto definition = journal.definition();
    const auto* aim = entry_in(definition, "objective");
    // Of several goals the leading one comes first: that is what the optimizer takes knowledge of.
    if (aim == nullptr || aim->substr(0, aim->find(", ")) != study.objective.leading().text())
        throw UsageError(result.name + " was to " +
                         (aim == nullptr ? "do something unknown" : *aim) + ", this one is to " +
                         study.objective.leading().text() + ": it can teach nothing about that");
    std::vector<Trial> trials = journal.trials();
    const bool falls = !trials.empty() && falls_count(trials, trials.front().configuration);
    for (Trial& trial : trials) {
        if (!trial.told() || (!trial.of_search() && (!falls || !trial.fell()))) continue;
        result.content += trial.configuration.text() + json_of(*trial.outcome) + "\n";
        result.trials.push_back(std::move(trial));
    }
    result.text += std::to_string(result.trials.size()) + " trials";
    return result;
}

/// The rows as trials: one for each different configuration, numbered as they stand; of `workloads`
/// (name, weight) together where the table has workloads, and then only where each has a row.
std::vector<Trial> trials_of(const MeasuredTable& table, const SearchSpace& space,
                             const std::vector<std::pair<std::string, double>>& workloads) {
    std::vector<Configuration> configurations;
    std::map<Configuration, std::vector<const MeasuredTable::Row*>> rows;
    for (const MeasuredTable::Row& row : table.rows) {
        Assignment values;
        for (std::size_t i = 0; i < table.parameters.size(); ++i)
            if (const auto& cell = row.cells[i]) {
                const Parameter* parameter = space.find(table.parameters[i]);
                values[table.parameters[i]] =
                    parameter != nullptr ? read_for(*parameter, *cell) : value_of(*cell);
            }
        Configuration configuration = Configuration::of(values);
        auto& same = rows[configuration];
        if (same.empty()) configurations.push_back(std::move(configuration));
        same.push_back(&row);
    }
    std::vector<Trial> result;
    for (const Configuration& configuration : configurations) {
        const std::vector<const MeasuredTable::Row*>& same = rows.at(configuration);
        if (same.front()->workload.empty()) {
            for (const MeasuredTable::Row* row : same)
                result.push_back({result.size(), configuration, "", 0, "", row->outcome});
            continue;
        }
        std::vector<WorkloadMetrics> parts;
        std::optional<Outcome> failed;
        std::size_t answered = 0;
        Validity validity;
        for (const auto& [name, weight] : workloads)
            for (const MeasuredTable::Row* row : same) {
                if (row->workload != name) continue;
                ++answered;
                if (const auto* measurement = std::get_if<Measurement>(&row->outcome)) {
                    parts.push_back({name, weight, measurement->metrics});
                    validity.verdict = std::max(validity.verdict, measurement->validity.verdict);
                } else failed = row->outcome;
                break;
            }
        if (failed) result.push_back({result.size(), configuration, "", 0, "", *failed});
        else if (answered == workloads.size())
            result.push_back(
                {result.size(), configuration, "", 0, "", Measurement{combined(parts), validity}});
    }
    if (result.empty() && !table.rows.empty()) {
        std::set<std::string> known;
        for (const MeasuredTable::Row& row : table.rows) known.insert(row.workload);
        throw UsageError(
            "the table " + table.source +
            " has no configuration under all of this study's workloads; it has: " +
            listed(nearest_first(workloads.front().first,
                                 std::vector<std::string>(known.begin(), known.end()))));
    }
    return result;
}

Observations observed_in_table(const StudyFile& study, const fs::path& file,
                               const SearchSpace& space) {
    Observations result{"the table " + file.string(), "a table of ",
                        read_text(file, study.source.snapshot)};
    const MeasuredTable table = parse_table(result.content, file.string());
    const std::vector<std::string> metrics = metrics_of(table);
    const std::string& aim = study.objective.leading().metric;
    if (!contains(metrics, aim))
        throw UsageError(result.name + " has no metric '" + aim +
                         "'; it has: " + listed(nearest_first(aim, metrics)));
    if (study.workloads.empty() && !table.rows.empty() && !table.rows.front().workload.empty())
        throw UsageError(result.name +
                         " has rows of several workloads: the study must name those that count "
                         "under 'workloads'");
    result.trials = trials_of(table, space, study.weighted_workloads());
    result.text += std::to_string(result.trials.size()) + " configurations";
    return result;
}

Source measured_source(const StudyFile& study, const KnowledgeChoice& choice,
                       const SearchSpace& space) {
    const bool of_study = choice.kind == KnowledgeChoice::Kind::study;
    std::error_code unknown;
    if (of_study && study.source.of_journal &&
        !fs::exists(SqliteJournal::file_of(choice.path), unknown))
        return {nullptr, "the study in " + choice.path.string() + " is not here"};
    const Observations seen = of_study ? observed_by_study(study, choice.path)
                                       : observed_in_table(study, choice.path, space);
    return {std::make_shared<EarlierResults>(
                seen.name, seen.trials, concepts_of(seen.trials, study.catalogue()),
                study.objective, study.decision, space, constants_of(study)),
            seen.text + " (" + fingerprint_of(seen.content).text() + ")"};
}

}  // namespace

std::map<std::string, std::string> concepts_of(const std::vector<Trial>& trials,
                                               const Catalogue& catalogue) {
    std::map<std::string, std::set<std::string>> found;
    std::set<std::string> names;
    for (const Trial& trial : trials)
        for (const auto& [name, value] : trial.configuration.entries()) names.insert(name);
    for (const Engine& engine : catalogue.engines())
        for (const std::string& name : names)
            if (const EngineParameter* declared = engine.find(local_name(name, engine)))
                found[name].insert(declared->parameter.concept_name);
    std::map<std::string, std::string> result;
    for (const auto& [name, concepts] : found)
        if (concepts.size() == 1 && !concepts.begin()->empty()) result[name] = *concepts.begin();
    return result;
}

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

GatheredKnowledge gather_knowledge(const StudyFile& study, const SearchSpace& space,
                                   const fs::path& own_folder) {
    GatheredKnowledge result;
    std::vector<std::shared_ptr<const PriorMean>> sources;
    std::vector<Winner> recipes;
    for (const KnowledgeChoice& choice : study.knowledge) {
        if (choice.kind == KnowledgeChoice::Kind::recipes) {
            if (!recipes.empty()) throw UsageError("knowledge: recipes is there twice");
            RecipeWinners found = recipe_winners(study, space);
            recipes = std::move(found.winners);
            if (!choice.by_default)
                result.texts.insert(result.texts.end(), found.left_out.begin(),
                                    found.left_out.end());
            if (!choice.by_default && recipes.empty() && found.left_out.empty())
                result.texts.emplace_back(
                    "recipes: none is published for this model, chip and engine");
            result.texts.insert(result.texts.end(), found.said.begin(), found.said.end());
            continue;
        }
        if (choice.kind == KnowledgeChoice::Kind::study && same_journal(choice.path, own_folder))
            throw UsageError("knowledge: " + choice.path.string() +
                             " is this study's own journal; what it measured it knows anyway");
        Source source = choice.kind == KnowledgeChoice::Kind::cost_model
                            ? cost_model(study)
                            : measured_source(study, choice, space);
        if (contains(result.texts, source.text))
            throw UsageError("knowledge: " + source.text +
                             " is there twice; it would be believed twice");
        if (choice.by_default && !source.belief) continue;
        if (source.belief) sources.push_back(std::move(source.belief));
        result.texts.push_back(std::move(source.text));
    }
    result.beliefs = Beliefs(std::move(sources), std::move(recipes));
    return result;
}

void add_profile(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const StudyFile& file = setup.file;
    if (!file.kept.empty()) {
        for (const auto& [path, text] : file.kept)
            if (path.starts_with(profile_paths)) definition[path] = text;
        return;
    }
    const EvaluatorType& evaluator = evaluator_of(file);
    const std::string machine = evaluator.machine(file);
    if (machine.empty()) return;
    std::set<std::string> engines;
    std::set<std::string> versions;
    for (const Engine& engine : file.composition->engines()) {
        const std::string version = evaluator.version(file, engine, definition);
        engines.insert(engine.name);
        versions.insert(engine.name + " " + (version.empty() ? "unknown" : version));
    }
    const auto add = [&](const char* name, const std::string& text) {
        definition[profile_paths + name] = text;
    };
    add("machine", machine);
    add("model", file.model);
    add("engine", fmt::format("{}", fmt::join(engines, " + ")));
    add("version", fmt::format("{}", fmt::join(versions, " + ")));
}

}  // namespace servetune
