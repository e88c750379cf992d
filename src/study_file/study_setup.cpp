// SPDX-License-Identifier: Apache-2.0
#include "../base/waiting.hpp"
#include "../load/http.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/base/url.hpp"
#include "servetune/engine/load_level.hpp"
#include "servetune/io/files.hpp"
#include "servetune/io/secrets.hpp"
#include "servetune/io/table.hpp"
#include "servetune/load/dataset.hpp"
#include "servetune/strategy/bayesian.hpp"
#include "servetune/strategy/exhaustive.hpp"
#include "servetune/strategy/local_search.hpp"
#include "servetune/strategy/quasi_random.hpp"
#include "servetune/study_file/audit_context.hpp"
#include "servetune/study_file/knowledge.hpp"
#include "servetune/study_file/study_file.hpp"
#include "servetune/traffic/benchmark_result.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

namespace servetune {
namespace {

/// Takes its time before it answers, so that a replayed run can be watched, stopped and killed.
class Delayed : public Evaluator {
public:
    Delayed(std::unique_ptr<Evaluator> inner, double seconds) : inner_(std::move(inner)), delay_(seconds) {}

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override {
        if (wait_or_stop(delay_, context.stop)) return Failure{FailureKind::cancelled, "stopped by the user"};
        return inner_->evaluate(configuration, context);
    }
    [[nodiscard]] bool replicates_inform() const override { return inner_->replicates_inform(); }

private:
    std::unique_ptr<Evaluator> inner_;
    std::chrono::duration<double> delay_;
};

/// What a trial says goes to journal, log and report: without the secrets of the study.
class WithoutSecrets : public Evaluator {
public:
    WithoutSecrets(std::unique_ptr<Evaluator> inner, Redactor secrets) : inner_(std::move(inner)), secrets_(std::move(secrets)) {}

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override {
        return without_secrets_in_errors(secrets_, [&] {
            Outcome outcome = inner_->evaluate(configuration, context);
            if (auto* failure = std::get_if<Failure>(&outcome)) {
                failure->message = secrets_(failure->message);
                for (std::string& line : failure->log_lines) line = secrets_(line);
            } else
                for (Finding& finding : std::get<Measurement>(outcome).validity.findings)
                    for (std::string* text : {&finding.left, &finding.right, &finding.cause}) *text = secrets_(*text);
            return outcome;
        });
    }
    [[nodiscard]] bool replicates_inform() const override { return inner_->replicates_inform(); }

private:
    std::unique_ptr<Evaluator> inner_;
    Redactor secrets_;
};

/// The key in the variable that `api_key_env` names; empty where it names none.
std::string key_from(const std::string& name, const StudyFile& file) {
    if (name.empty()) return "";
    const char* key = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (key == nullptr) throw UsageError(file.file.string() + ": the environment has no " + name + ", which `api_key_env` names");
    CollectSecrets::found(key, "${" + name + "}");
    check_header_text(file.file.string() + ": the key in " + name + ", which `api_key_env` names", key);
    return key;
}

void check_objective(const StudyFile& file, const MeasuredTable& table) {
    std::set<std::string> metrics;
    for (const MeasuredTable::Row& row : table.rows)
        if (const auto* measurement = std::get_if<Measurement>(&row.outcome))
            for (const auto& [name, metric] : measurement->metrics) metrics.insert(name);
    const std::vector<std::string> known(metrics.begin(), metrics.end());
    for (const Goal& goal : file.objective.goals())
        if (!metrics.contains(goal.metric))
            throw ParseError(file.file.string() + ": 'objective': " + table.source + " has no metric '" + goal.metric +
                             "'; it has: " + listed(nearest_first(goal.metric, known)));
}

/// Of what our own load test, real or simulated, measures; a workload's own figure is `name@workload`.
void check_objective_of_load_test(const StudyFile& file) {
    std::vector<std::string> known{"success_ratio"};
    const BenchmarkResult none;
    for_each_figure(none, [&](const std::string& name, const std::optional<double>&) { known.push_back(name); });
    for (const Goal& goal : file.objective.goals()) {
        const std::string name = goal.metric.substr(0, goal.metric.find('@'));
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw ParseError(file.file.string() + ": 'objective': a load test has no metric '" + goal.metric +
                             "'; it has: " + listed(nearest_first(name, known)));
    }
}

void check_strategy(const StudyFile& file) {
    const std::string& name = file.strategy.name;
    if (file.objective.several() && (name == "staged" || name == "local_search"))
        throw UsageError(file.file.string() + ": 'objective': the strategy " + name +
                         " compares one number, and there are several goals; bayesian, quasi_random, random and exhaustive take them");
}

}  // namespace

BayesianOptions StudySetup::bayesian_options() const {
    BayesianOptions options = file.strategy.bayesian;
    options.trials = file.budget.trials;
    options.beliefs = beliefs;
    options.learning.seed = file.seed;
    return options;
}

namespace {

std::unique_ptr<Strategy> strategy_of(const StudySetup& setup) {
    const StrategyChoice& choice = setup.file.strategy;
    if (choice.name == "bayesian") return std::make_unique<Bayesian>(setup.bayesian_options());
    if (choice.name == "random") return std::make_unique<Random>();
    if (choice.name == "exhaustive") return std::make_unique<Exhaustive>();
    if (choice.name == "quasi_random") return std::make_unique<QuasiRandom>(setup.file.seed);
    if (choice.name == "local_search") return std::make_unique<LocalSearch>();
    return std::make_unique<Staged>(choice.staged);
}

void set_up_replay(StudySetup& setup, const StudyFile& file) {
    const ReplayChoice& replay = *file.replay;
    MeasuredTable table = read_table(replay.table);
    check_objective(file, table);
    if (file.audit != "off") audit_rows(table, file);
    std::vector<Constraint> constraints = file.composition->constraints();
    const bool has_workloads = !table.rows.front().workload.empty();
    if (replay.exclude_unmeasured) {
        const SearchSpace whole(file.composition->parameters());
        std::vector<std::string> names;
        if (has_workloads)
            for (const Workload& workload : file.workloads) names.push_back(workload.name);
        constraints.emplace_back(ReplayEvaluator::measured_only(table, whole, names));
    }
    setup.problem =
        std::make_unique<Problem>(SearchSpace(file.composition->parameters(), std::move(constraints)), file.objective, file.decision);
    ReplayEvaluator::Options options{{}, replay.noise_cv};
    if (has_workloads) options.workloads = file.weighted_workloads();
    setup.evaluator = std::make_unique<ReplayEvaluator>(table, setup.problem->space, std::move(options));
    setup.problem->replicates_inform = setup.evaluator->replicates_inform();
    if (replay.delay_seconds > 0) setup.evaluator = std::make_unique<Delayed>(std::move(setup.evaluator), replay.delay_seconds);
}

void set_up_simulation(StudySetup& setup, const StudyFile& file) {
    setup.problem = std::make_unique<Problem>(SearchSpace(file.composition->parameters(), file.composition->constraints()), file.objective,
                                              file.decision);
    for (const Parameter& parameter : setup.problem->space.parameters())
        if (is_load_level(parameter.name))
            throw UsageError(file.file.string() +
                             ": 'load': a simulated study predicts each workload under its own 'arrival'; write the load there, " +
                             "or measure with deploy or attach");
    auto evaluator = simulated(file);
    if (const std::string why = why_nothing_starts(*evaluator, *setup.problem); !why.empty())
        throw SpaceError(file.file.string() + ": " + why);
    setup.problem->replicates_inform = evaluator->replicates_inform();
    setup.evaluator = std::move(evaluator);
}

/// What the audit's physics need.
void add_facts(const StudyFile& file, MeasureOptions& options) {
    const Catalogue catalogue(file.search_spaces);
    options.models = catalogue.all_models();
    if (!file.hardware.empty()) options.hardware = hardware_in(file.hardware, catalogue.all_hardware());
}

void set_up_deployment(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder) {
    setup.problem = std::make_unique<Problem>(SearchSpace(file.composition->parameters(), file.composition->constraints()), file.objective,
                                              file.decision);
    EngineEvaluator::Options& options = file.deploy->options;
    options.folder = folder.empty() ? std::filesystem::path(file.name) : folder;
    options.deploy.mark = std::filesystem::absolute(options.folder).string();
    options.deploy.api_key = key_from(file.deploy->api_key_environment, file);
    add_facts(file, options.measure);
    setup.evaluator =
        std::make_unique<EngineEvaluator>(*file.composition, file.model, StudyWorkloads{file.workloads, file.report_workloads}, options);
}

void set_up_attached(StudySetup& setup, StudyFile& file) {
    setup.problem = std::make_unique<Problem>(SearchSpace(file.composition->parameters(), file.composition->constraints()), file.objective,
                                              file.decision);
    AttachEvaluator::Options options = file.attach->options;
    add_facts(file, options.measure);
    options.api_key = key_from(file.attach->api_key_environment, file);
    setup.evaluator = std::make_unique<AttachEvaluator>(file.composition->engines().front(), file.model,
                                                        StudyWorkloads{file.workloads, file.report_workloads}, std::move(options));
}

void set_up_command(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder) {
    setup.problem = std::make_unique<Problem>(SearchSpace(file.composition->parameters(), file.composition->constraints()), file.objective,
                                              file.decision);
    CommandEvaluator::Options& options = file.command->options;
    options.folder = folder.empty() ? std::filesystem::path(file.name) : folder;
    options.mark = std::filesystem::absolute(options.folder).string();
    options.model = file.model;
    for (const Workload& workload : file.workloads) options.workloads.push_back(workload.name);
    for (const Goal& goal : file.objective.goals()) options.goals.push_back(goal.metric);
    options.render = [&composition = *file.composition, model = file.model](const Configuration& configuration) {
        return composition.render(configuration, {model, {}, 0});
    };
    setup.evaluator = std::make_unique<CommandEvaluator>(options);
}

}  // namespace

namespace {

StudySetup set_up_study(StudyFile& file, const std::filesystem::path& folder) {
    check_strategy(file);
    if (!file.measured_outside && !file.replay && !file.command) check_objective_of_load_test(file);
    StudySetup setup;
    if (file.measured_outside)
        setup.problem = std::make_unique<Problem>(SearchSpace(file.composition->parameters(), file.composition->constraints()),
                                                  file.objective, file.decision);
    else if (file.replay) set_up_replay(setup, file);
    else if (file.simulate) set_up_simulation(setup, file);
    else if (file.attach) set_up_attached(setup, file);
    else if (file.command) set_up_command(setup, file, folder);
    else set_up_deployment(setup, file, folder);
    if (file.measures()) setup.evaluator = std::make_unique<WithoutSecrets>(std::move(setup.evaluator), file.secrets);
    if (file.strategy.name == "bayesian") {
        GatheredKnowledge knowledge = gather_knowledge(file, setup.problem->space, folder);
        setup.beliefs = std::move(knowledge.beliefs);
        setup.knowledge = std::move(knowledge.texts);
    }
    setup.file = std::move(file);
    setup.strategy = strategy_of(setup);
    return setup;
}

}  // namespace

StudySetup set_up(StudyFile file, const std::filesystem::path& folder) {
    Redactor secrets = file.secrets;
    const CollectSecrets collecting(secrets);
    const CollectSecrets into_the_file(file.secrets);
    return without_secrets_in_errors(secrets, [&] { return set_up_study(file, folder); });
}

EngineTraits traits_of(const StudyFile& file, const Catalogue& catalogue, const std::string& engine) {
    if (file.simulate)
        if (const auto own = file.simulate->traits.find(engine); own != file.simulate->traits.end()) return catalogue.traits(own->second);
    return catalogue.traits(engine);
}

std::unique_ptr<SimulateEvaluator> simulated(const StudyFile& file, const std::string& hardware) {
    const Catalogue catalogue(file.search_spaces);
    const HardwareSpec chip = catalogue.hardware(hardware.empty() ? file.hardware : hardware);
    const std::vector<ModelSpec> models = catalogue.all_models();
    (void)catalogue.model(file.model);  // an unknown one is said with the nearest names
    const SimulateChoice choice = file.simulate.value_or(SimulateChoice{});
    std::vector<ServingReader> readers;
    for (const Engine& engine : file.composition->engines()) {
        readers.emplace_back(engine, traits_of(file, catalogue, engine.name), models, chip, file.composition->version_of(engine));
    }
    std::vector<SimulatedWorkload> workloads;
    for (const auto* list : {&file.workloads, &file.report_workloads})
        for (const Workload& workload : *list)
            workloads.push_back({workload, SimulatedTraffic(plan_requests(workload).requests, workload.arrival)});
    return std::make_unique<SimulateEvaluator>(*file.composition, file.model, std::move(readers), std::move(workloads),
                                               SimulateEvaluator::Options{file.weighted_workloads(), choice.noise});
}

std::string why_nothing_starts(const SimulateEvaluator& evaluator, const Problem& problem, std::size_t most) {
    Rng rng(1);
    const bool all = problem.feasible.finite() && problem.feasible.size() <= static_cast<double>(most);
    const std::size_t tries = all ? static_cast<std::size_t>(problem.feasible.size()) : most;
    std::optional<MemoryPlan> nearest;
    std::string first;
    for (std::size_t i = 0; i <= tries; ++i) {
        const Configuration configuration = i == 0 ? problem.space.default_configuration()
                                            : all  ? problem.feasible.at(static_cast<double>(i - 1))
                                                   : problem.feasible.sample(rng);
        const SimulateEvaluator::Started started = evaluator.started(configuration);
        if (!started.failure) return "";
        if (first.empty()) first = started.failure->message;
        if (!started.cost) continue;
        const MemoryPlan& plan = started.cost->memory();
        if (!nearest || plan.missing_bytes < nearest->missing_bytes) nearest = plan;
    }
    std::string result = all ? "no configuration of this study would start"
                             : "none of " + std::to_string(tries) + " configurations of this study, drawn evenly, would start";
    result += "; the default: " + first;
    if (nearest) result += "\nwhere the least memory is missing:\n" + nearest->text();
    return result;
}

}  // namespace servetune
