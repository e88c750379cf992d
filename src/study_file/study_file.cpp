// SPDX-License-Identifier: Apache-2.0

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "engine/version.hpp"
#include "evaluator_type.hpp"
#include "keys.hpp"
#include "knowledge.hpp"
#include "readers.hpp"
#include "secrets.hpp"
#include "servetune/study_checks.hpp"
#include "study_snapshot.hpp"

#include <set>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// `use:` chains, the nearest file last; a circle ends at the depth bound. Keys are checked once
/// all is laid together.
Yaml resolved(const Yaml& node, int depth = 0) {
    if (!node.is_mapping()) node.fail_wanted("a mapping of keys");
    const Yaml* use = node.find(keys::study.use);
    if (use == nullptr) return node;
    if (depth > 10) use->fail("more than 10 studies use each other; is it a circle?");
    const fs::path base = path_of(*use);
    if (!text_exists(base, node.snapshot())) use->fail("there is no file " + base.string());
    return resolved(Yaml::load(base, node.snapshot()), depth + 1)
        .overlaid(node.without(keys::study.use), keys::study.space);
}

QualityOptions read_quality(const Yaml& node, const StudyFile& study) {
    const auto& table = keys::quality;
    if (!std::holds_alternative<DeployChoice>(study.measuring))
        node.fail("only `evaluator: {deploy: ...}` asks an engine for answers");
    QualityOptions options;
    read_table(node, table, options);
    if (const Yaml* file = node.find(table.prompts)) {
        const fs::path prompts = path_of(*file);
        if (!text_exists(prompts, node.snapshot()))
            file->fail("there is no file " + prompts.string());
        options.prompts = parts_of(read_text(prompts, node.snapshot()), '\n');
        std::erase_if(options.prompts,
                      [](const std::string& line) { return trimmed(line).empty(); });
        if (options.prompts.empty()) file->fail("there is no prompt in " + prompts.string());
    }
    if (!options.command.empty() && !options.prompts.empty())
        node.fail("has prompts or a command, not both");
    return options;
}

std::vector<KnowledgeChoice> read_knowledge(const Yaml& node) {
    std::vector<KnowledgeChoice> result;
    for (const Yaml& item : node.items()) {
        if (item.is_scalar()) {
            std::string word;
            read_as(is::one_of<keys::knowledge_words>, item, word);
            result.push_back({.kind = word == keys::knowledge_words.back()
                                          ? KnowledgeChoice::Kind::recipes
                                          : KnowledgeChoice::Kind::cost_model});
            continue;
        }
        KnowledgeChoice choice;
        read_table(item, keys::knowledge, choice);
        if (item.entries().size() != 1)
            item.fail("one source wanted: cost_model, recipes, {study: FOLDER} or {table: FILE}");
        choice.kind = item.find(keys::knowledge.study) != nullptr ? KnowledgeChoice::Kind::study
                                                                  : KnowledgeChoice::Kind::table;
        result.push_back(std::move(choice));
    }
    return result;
}

/// What a file may leave out whose study somebody else measures, or that replays a space of its
/// own.
Yaml completed(const Yaml& root) {
    return Yaml::parse("study: \"-\"\nmodel: \"\"\nworkloads: []\nevaluator: {}\n", root.file(),
                       root.snapshot())
        .overlaid(root, keys::study.space);
}

/// Whether a table answers, and no engine is named whose commands its rows would be.
bool replays_own_space(const Yaml& written) {
    const Yaml* evaluator = written.find(keys::study.evaluator);
    return evaluator != nullptr && evaluator->is_mapping() &&
           evaluator->find(keys::evaluator.replay) != nullptr &&
           written.find(keys::study.engine) == nullptr;
}

}  // namespace

Yaml spelled_out(const KeyType& type, const Yaml& node) {
    if (type.form == KeyType::Form::either && type.other->form == KeyType::Form::keyed) {
        if (!node.is_mapping() && node.kind() != Yaml::Kind::null)
            for (const Key& key : type.other->keys())
                if (key.has(short_form)) return node.under(key);
        return spelled_out(*type.other, node);
    }
    if (type.form != KeyType::Form::keyed || !node.is_mapping()) return node;
    Yaml result = node;
    for (const Key& key : type.keys())
        if (const Yaml* child = node.find(key))
            result = result.with(key, spelled_out(*key.type, *child));
    return result;
}

std::vector<std::pair<std::string, double>> StudyFile::weighted_workloads() const {
    std::vector<std::pair<std::string, double>> result;
    for (const Workload& workload : workloads) result.emplace_back(workload.name, workload.weight);
    return result;
}

std::string text_of_facts(const fs::path& file, const StudySource& source) {
    return file.extension() == ".gguf" ? std::to_string(fs::file_size(file))
                                       : read_text(file, source.snapshot);
}

Catalogue StudyFile::catalogue() const {
    Catalogue result = Catalogue(source.search_spaces).through(source.snapshot);
    if (!model_file.empty()) result.use_model(model_file, model);
    if (!machine.hardware_file.empty()) result.use_hardware(machine.hardware_file);
    return result;
}

const Workload* StudyFile::workload_called(std::string_view wanted) const {
    for (const auto* list : {&workloads, &report_workloads})
        for (const Workload& workload : *list)
            if (workload.name == wanted || contains(workload.printed_as, wanted)) return &workload;
    return nullptr;
}

namespace {

bool is_load_test(const EvaluatorConfig& measuring) {
    return std::holds_alternative<SimulateChoice>(measuring) ||
           std::holds_alternative<AttachChoice>(measuring) ||
           std::holds_alternative<DeployChoice>(measuring);
}

/// Whether the file's own evaluator is one, though somebody else measures.
bool names_load_test(const Yaml& written) {
    const Yaml* evaluator = written.find(keys::study.evaluator);
    if (evaluator == nullptr) return false;
    if (evaluator->is_scalar()) return true;  // those that need no options
    for (const Key& key :
         {keys::evaluator.simulate, keys::evaluator.attach, keys::evaluator.deploy})
        if (evaluator->find(key) != nullptr) return true;
    return false;
}

/// The measuring and the space of a study, and the machine that they are for.
void read_what_is_searched(const Yaml& root, const Catalogue& catalogue, bool outside,
                           const MachineSource& machine, AllErrors& errors, StudyFile& study) {
    const bool known = errors.in([&] {
        const Yaml& evaluator = root.at(keys::study.evaluator);
        study.source.places.emplace("'evaluator'", evaluator.place());
        study.measuring = read_measuring(spelled_out_evaluator(evaluator), outside);
    });
    if (!known)
        study.measuring.emplace<DeployChoice>();  // only to read the rest: the study is refused
    if (known && machine.kept) study.kept = machine.kept(study);
    errors.in([&] { read_machine(root, catalogue, machine, study); });
    if (known)
        if (const std::string why = evaluator_of(study).why_not(study); !why.empty())
            errors.in([&] { root.at(keys::study.evaluator).fail(why); });
    errors.in([&] {
        study.composition = read_space(root, catalogue, study);
        for (std::string& warning : unchecked_versions(*study.composition, catalogue))
            study.warnings.push_back(std::move(warning));
    });
    errors.in([&] { check_conflicting_settings(root, study); });
}

/// In place of a workload that could not be read, only to read the rest: the study is refused.
Workload unread_workload(const Yaml& item) {
    Workload result;
    const Yaml* name = item.is_mapping() ? item.find(keys::workload.workload) : &item;
    if (name == nullptr) name = item.find(keys::workload.use);
    if (name != nullptr && name->is_scalar()) result.name = name->text();
    return result;
}

void read_traffic(const Yaml& root, const Catalogue& catalogue, bool may_have_none,
                  AllErrors& errors, StudyFile& study) {
    std::set<std::string> names;
    const auto read_workloads = [&](const Yaml& list, std::vector<Workload>& into) {
        for (const Yaml& item : list.is_scalar() ? std::vector<Yaml>{list} : list.items()) {
            const std::size_t before = into.size();
            errors.in([&] {
                into.push_back(workload_in(catalogue, item));
                if (!names.insert(into.back().name).second)
                    item.fail("there are two workloads '" + into.back().name +
                              "'; give one another name ('workload:')");
            });
            if (into.size() == before) into.push_back(unread_workload(item));
        }
    };
    errors.in([&] {
        const Yaml& workloads = root.at(keys::study.workloads);
        read_workloads(workloads, study.workloads);
        if (study.workloads.empty() && !may_have_none && !errors.any())
            workloads.fail("at least one workload wanted");
    });
    errors.in([&] {
        if (const Yaml* list = root.find(keys::study.report_workloads))
            read_workloads(*list, study.report_workloads);
    });
}

void read_goals(const Yaml& root, const Yaml& written, bool outside, AllErrors& errors,
                StudyFile& study) {
    if (const Yaml* quality = outside ? nullptr : root.find(keys::study.quality)) {
        study.quality.emplace();  // a limit on it is right, whatever is wrong with its options
        if (study.composition != nullptr)
            errors.in([&] { study.quality = read_quality(*quality, study); });
    }
    const bool has_goals = errors.in([&] {
        read_objective(root.at(keys::study.objective),
                       is_load_test(study.measuring) || names_load_test(written), study);
    });
    if (has_goals && is_load_test(study.measuring))
        errors.in([&] {
            look_for_load(root, study);
            if (!outside) check_objective_of_load_test(study, root.at(keys::study.objective));
        });
    if (has_goals && study.composition != nullptr)
        if (std::string warning = larger_looks_better(study); !warning.empty())
            study.warnings.push_back(std::move(warning));
    if (study.decision.never_worse_than && study.workloads.size() == 1)
        errors.in([&] {
            root.at(keys::study.never_worse_than)
                .fail("guards workloads from each other, and there is one");
        });
}

/// The rows that are bound to the study, and what follows from them.
void read_settings(const Yaml& root, AllErrors& errors, StudyFile& study) {
    errors.in([&] { read_table(root, keys::study, study); });
    study.decision.enforce_audit = study.audit == "enforce";
    errors.in([&] {
        if (const Yaml* budget = root.find(keys::study.budget)) read_budget(*budget, study);
    });
}

void check_published(const Yaml& root, const StudyFile& study) {
    const Yaml* published = root.find(keys::study.published);
    if (published == nullptr || study.strategy.name != "staged") return;
    const auto& stages = study.strategy.staged.stages;
    for (const auto& [stage, value] : published->entries())
        if (none_of(stages, [s = stage](const Stage& known) { return known.name == s; }))
            value.fail("there is no stage '" + stage + "'");
}

StudyFile read_study(const fs::path& file, const Catalogue& catalogue, const std::string& strategy,
                     MeasuredBy by, const MachineSource& machine) {
    const Yaml written =
        spelled_out(is::keyed<keys::study>, resolved(Yaml::load(file, catalogue.snapshot())));
    StudyFile study;
    const bool outside =
        by == MeasuredBy::outside ||
        (by == MeasuredBy::either && written.find(keys::study.evaluator) == nullptr);
    const bool own_space = outside || replays_own_space(written);
    const Yaml root = outside     ? completed(written.without(keys::study.evaluator))
                      : own_space ? completed(written)
                                  : written;
    AllErrors errors;
    study.source.file = file;
    study.source.search_spaces = catalogue.root();
    study.source.snapshot = catalogue.snapshot();
    read_settings(root, errors, study);
    errors.in([&] {
        study.name = written.find(keys::study.study) != nullptr ? root.at(keys::study.study).text()
                                                                : file.stem().string();
        if (study.name.empty() || contains(study.name, '/') || study.name.starts_with('.'))
            root.at(keys::study.study)
                .fail("a study's name is its folder's: no '/', no leading '.'");
    });
    errors.in([&] { read_model_name(root.at(keys::study.model), catalogue, machine, study); });
    read_what_is_searched(root, catalogue, outside, machine, errors, study);
    read_traffic(root, catalogue, own_space, errors, study);
    if (study.composition)
        if (std::string warning = guesses_on_random_words(study); !warning.empty())
            study.warnings.push_back(std::move(warning));
    read_goals(root, written, outside, errors, study);
    errors.in([&] {
        const Yaml* node = root.find(keys::study.strategy);
        if (study.composition != nullptr)
            study.strategy = read_strategy(node, *study.composition, strategy);
        else if (node != nullptr) check_strategy(*node);
    });
    errors.in([&] {
        if (const Yaml* knowledge = root.find(keys::study.knowledge))
            study.knowledge = read_knowledge(*knowledge);
        else if (!std::holds_alternative<SimulateChoice>(
                     study.measuring)) {  // it would look up its own answers
            study.knowledge.push_back(
                {.kind = KnowledgeChoice::Kind::cost_model, .by_default = true});
            if (!std::holds_alternative<ReplayChoice>(
                    study.measuring))  // a recipe may rest on the same table
                study.knowledge.push_back(
                    {.kind = KnowledgeChoice::Kind::recipes, .by_default = true});
        }
    });
    errors.in([&] { check_published(root, study); });
    errors.throw_any();
    study.source.settings = written_settings(root, study);
    return study;
}

}  // namespace

std::size_t StudyFile::default_again_every() const {
    if (default_again) return *default_again;
    constexpr std::size_t usual = 10;
    return measures() && decision.rule == Decision::Rule::significant ? usual : 0;
}

StudyFile load_study(const StudyText& text, const Catalogue& catalogue, const std::string& strategy,
                     MeasuredBy by, const MachineSource& machine) {
    Redactor secrets;
    const CollectSecrets collecting(secrets);
    const auto snapshot = std::make_shared<StudySnapshot>(text, catalogue.root());
    return without_secrets_in_errors(secrets, [&] {
        StudyFile study = read_study(text.file, catalogue.through(snapshot), strategy, by, machine);
        study.source.of_journal = !text.journal.empty();
        study.secrets = secrets;
        study.secrets.add(secrets_of_environment());
        return study;
    });
}

namespace {

/// What a trial says goes to journal, log and report: without the secrets of the study.
class WithoutSecrets : public Evaluator {
public:
    WithoutSecrets(std::unique_ptr<Evaluator> inner, Redactor secrets)
        : inner_(std::move(inner)), secrets_(std::move(secrets)) {}

    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        return without_secrets_in_errors(secrets_, [&] {
            Outcome outcome = inner_->evaluate(configuration, context);
            if (auto* failure = std::get_if<Failure>(&outcome)) {
                failure->message = printable_line(secrets_(failure->message));
                for (std::string& line : failure->log_lines) line = secrets_(line);
            } else
                for (Finding& finding : std::get<Measurement>(outcome).validity.findings)
                    for (std::string* text : {&finding.left, &finding.right, &finding.cause})
                        *text = secrets_(*text);
            return outcome;
        });
    }
    [[nodiscard]] bool replicates_inform() const override { return inner_->replicates_inform(); }

private:
    std::unique_ptr<Evaluator> inner_;
    Redactor secrets_;
};

void check_strategy(const StudyFile& file) {
    const std::string& name = file.strategy.name;
    if (file.objective.several() && !takes_several_goals(name)) {
        std::vector<std::string> others = strategy_names();
        std::erase_if(others, [](const auto& other) { return !takes_several_goals(other); });
        throw UsageError(file.source.at() + "'objective': the strategy " + name +
                         " compares one number, and there are several goals; these take several: " +
                         listed(others));
    }
    if (!file.budget.when_not_worth_it) return;
    if (name != "bayesian")
        throw UsageError(file.source.at() +
                         "'budget.serves': only the strategy bayesian knows what is left to "
                         "gain, and this is " +
                         name);
    if (file.objective.several())
        throw UsageError(file.source.at() +
                         "'budget.serves': what a front gains has no worth in time; give one "
                         "goal or a budget of trials");
}

}  // namespace

std::map<std::string, std::string> StudySetup::environment() const {
    const auto options = evaluator_of(file).environment(file);
    if (!options) return {};
    Environment result = environment_now(*options);
    for (auto& [name, text] : result) {
        Redactor of_address;
        if (contains(text, "://")) add_user_info(of_address, text);
        text = printable_line(file.secrets(of_address(text)));
    }
    return result;
}

BayesianOptions StudySetup::bayesian_options() const {
    BayesianOptions options;
    // A time alone says nothing of how many trials it is enough for: start and confirmation are
    // those of the usual budget, and then the search goes on.
    options.trials = file.budget.trials == trials_of_a_time ? Budget{}.trials : file.budget.trials;
    if (file.budget.when_not_worth_it) options.serves_seconds = file.budget.serves_seconds;
    options.beliefs = beliefs;
    options.suggestions = suggestions;
    options.seed = file.seed;
    return options;
}

namespace {

StudySetup set_up_study(StudyFile& file, const std::filesystem::path& folder,
                        const RunHooks& hooks) {
    check_strategy(file);
    StudySetup setup;
    const EvaluatorType& evaluator = evaluator_of(file);
    evaluator.build(setup, file, folder, hooks);
    // Who measures elsewhere says by `noise_cv: 0` that a figure is exact.
    setup.problem->replicates_inform = setup.evaluator != nullptr
                                           ? setup.evaluator->replicates_inform()
                                           : file.decision.noise_cv > 0;
    if (evaluator.traits.measures)
        setup.evaluator =
            std::make_unique<WithoutSecrets>(std::move(setup.evaluator), file.secrets);
    for (auto& neighbour : setup.neighbours)
        neighbour = std::make_unique<WithoutSecrets>(std::move(neighbour), file.secrets);
    if (file.strategy.name == "bayesian") {
        GatheredKnowledge knowledge = gather_knowledge(file, setup.problem->space, folder);
        setup.beliefs = std::move(knowledge.beliefs);
        setup.knowledge = std::move(knowledge.texts);
        for (const std::filesystem::path& suggested : file.suggestions)
            for (Configuration& one :
                 read_suggestions(suggested, *file.composition, setup.problem->space))
                setup.suggestions->push_back(std::move(one));
    }
    setup.file = std::move(file);
    setup.strategy = make_strategy(setup);
    return setup;
}

}  // namespace

StudySetup set_up(StudyFile file, const std::filesystem::path& folder, const RunHooks& hooks) {
    Redactor secrets = file.secrets;
    const CollectSecrets collecting(secrets);
    const CollectSecrets into_the_file(file.secrets);
    return without_secrets_in_errors(secrets, [&] { return set_up_study(file, folder, hooks); });
}

}  // namespace servetune
