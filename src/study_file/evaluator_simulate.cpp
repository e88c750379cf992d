// SPDX-License-Identifier: Apache-2.0
// `evaluator: {simulate: ...}`: the cost model and the simulator answer.
#include "engine/command_reader.hpp"
#include "engine/load_level.hpp"
#include "evaluator_type.hpp"
#include "keys.hpp"
#include "perf/cost_check.hpp"
#include "readers.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_checks.hpp"
#include "study_snapshot.hpp"

namespace servetune {
namespace {

/// The traits that the study names for an engine, else the engine's name.
std::string traits_name(const StudyFile& file, const std::string& engine) {
    const auto* simulate = std::get_if<SimulateChoice>(&file.measuring);
    if (simulate == nullptr) return engine;
    const auto* own = entry_in(simulate->traits, engine);
    return own != nullptr ? std::filesystem::absolute(*own).string() : engine;
}

class SimulateType final : public EvaluatorType {
public:
    SimulateType() : EvaluatorType({keys::evaluator.simulate.name}) {}
    [[nodiscard]] EvaluatorConfig read(const Yaml& node) const override {
        SimulateChoice result;
        read_table(node, keys::simulate, result);
        return result;
    }
    void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
               const RunHooks& /*hooks*/) const override {
        setup.problem = problem_of(file);
        for (const Parameter& parameter : setup.problem->space.parameters())
            if (is_load_level(parameter.name))
                throw UsageError(file.source.at() + "'" + parameter.name +
                                 "': a simulated study predicts each workload under its own "
                                 "'arrival'; write the load there, or measure with deploy or "
                                 "attach");
        check_simulated_names(file);
        auto evaluator = simulated(file);
        if (const std::string why = why_nothing_starts(*evaluator, *setup.problem); !why.empty())
            throw SpaceError(file.source.at() + why);
        setup.evaluator = std::move(evaluator);
    }
    void define(const StudySetup& setup,
                std::map<std::string, std::string>& definition) const override {
        for (const Engine& engine : setup.file.composition->engines())
            definition["evaluator.simulate.traits." + engine.name] =
                fingerprint_of(traits_text(setup.file, engine.name)).text();
    }
    [[nodiscard]] std::string note(const StudyFile& file) const override {
        std::string result = "Simulated: every number here is a prediction of the cost model for " +
                             file.machine.hardware +
                             "; nothing was measured. Measure before you believe it.";
        for (const std::string& doubt : doubts_of_cost_model(file))
            result += " Take care: " + doubt + ".";
        return result;
    }
    [[nodiscard]] std::string why_not(const StudyFile& file) const override {
        return file.machine.hardware.empty() ? "to simulate, the study must say on which 'hardware'"
                                             : "";
    }
};

}  // namespace

const EvaluatorType& simulate_type() {
    static const SimulateType type;
    return type;
}

std::string traits_text(const StudyFile& file, const std::string& engine) {
    const Catalogue catalogue = file.catalogue();
    const auto kernels = catalogue.root() / "kernels" / (engine + ".yaml");
    const auto& snapshot = file.source.snapshot;
    return read_text(
               catalogue.find("traits", traits_name(file, engine), catalogue.root() / "traits"),
               snapshot) +
           (text_exists(kernels, snapshot) ? read_text(kernels, snapshot) : "");
}

EngineTraits traits_of(const StudyFile& file, const Catalogue& catalogue,
                       const std::string& engine) {
    std::string version;
    for (const Engine& one : file.composition->engines())
        if (one.name == engine) version = file.composition->version_of(one);
    return catalogue.traits(traits_name(file, engine), version);
}

std::vector<std::string> doubts_of_cost_model(const StudyFile& file, const std::string& hardware) {
    constexpr double large = 2;  ///< highest / lowest of measured / predicted
    const Catalogue catalogue = file.catalogue();
    const auto chip =
        hardware_in(hardware.empty() ? file.machine.chip() : hardware, catalogue.all_hardware());
    const auto model = served_model(file.model, catalogue.all_models());
    if (!chip || !model) return {};
    std::vector<std::string> result;
    for (const Engine& engine : file.composition->engines()) {
        EngineTraits traits;
        try {
            traits = traits_of(file, catalogue, engine.name);
        } catch (const IoError&) {
            continue;  // an engine of the user's own, of which the cost model knows nothing
        }
        const CostCheck* check = check_of(traits, *chip, model->model);
        const auto range = interval_of(check, "tokens_per_second", 1);
        if (!range)
            result.push_back("the cost model of " + engine.name + " was never checked on " +
                             chip->name);
        else if (range->second > large * range->first)
            result.push_back("the cost model of " + engine.name +
                             ": measured / predicted output tokens/s are " + interval_text(range) +
                             " (90 % of " + rows_text(*check, *chip, model->model) + ")");
    }
    return result;
}

namespace {

/// An unknown model is said with the nearest names, one with files of its own with their fault.
void check_model(const StudyFile& study, const Catalogue& catalogue) {
    try {
        (void)catalogue.model(study.model);
    } catch (const IoError&) {
        if (!catalogue.file_of_model(study.model).empty())
            (void)catalogue.model_from_files(study.model);
        throw;
    }
}

}  // namespace

void check_simulated_names(const StudyFile& study, const std::string& hardware) {
    const Catalogue catalogue = study.catalogue();
    if (hardware.empty())
        placed(study.source, "'hardware'", [&] { (void)catalogue.hardware(study.machine.chip()); });
    placed(study.source, "'model'", [&] { check_model(study, catalogue); });
}

std::unique_ptr<SimulateEvaluator> simulated(const StudyFile& file, const std::string& hardware) {
    const Catalogue catalogue = file.catalogue();
    const HardwareSpec chip = catalogue.hardware(hardware.empty() ? file.machine.chip() : hardware);
    const std::vector<ModelSpec> models = catalogue.all_models();
    check_model(file, catalogue);
    const auto* choice = std::get_if<SimulateChoice>(&file.measuring);
    std::vector<ServingReader> readers;
    const std::vector<Engine>& engines = file.composition->engines();
    const bool has_arguments = any_of(engines, [&](const Engine& engine) {
        return !file.composition->arguments_of(engine).empty();  // a person wrote them
    });
    const auto commands =
        has_arguments ? std::make_shared<const CommandReader>(engines, catalogue.root()) : nullptr;
    for (const Engine& engine : engines)
        readers.emplace_back(engine, traits_of(file, catalogue, engine.name), models, chip,
                             file.composition->version_of(engine), commands);
    std::vector<SimulatedWorkload> workloads;
    for (const auto* list : {&file.workloads, &file.report_workloads})
        for (const Workload& workload : *list)
            workloads.push_back(
                {workload, SimulatedTraffic(plan_requests(workload).requests, workload.arrival)});
    SimulateEvaluator::Options options{file.weighted_workloads(),
                                       choice != nullptr ? choice->noise : StepNoise{},
                                       file.machine.usd_per_device_hour, file.objective.limits};
    return std::make_unique<SimulateEvaluator>(*file.composition, file.model, std::move(readers),
                                               std::move(workloads), std::move(options));
}

namespace {

/// The load tests of a configuration, one after the other; nothing: one of them would not end well.
std::optional<double> load_seconds(const SimulateEvaluator& evaluator,
                                   const SimulateEvaluator::Started& started,
                                   const StudyFile& file) {
    if (started.failure) return std::nullopt;
    double sum = 0;
    for (const Workload& workload : file.workloads) {
        const auto same = [&](const SimulatedWorkload& one) {
            return one.workload.name == workload.name;
        };
        const auto found = find_if(evaluator.workloads(), same);
        if (found == evaluator.workloads().end()) return std::nullopt;
        const Outcome outcome = evaluator.measured(started, *found, 0);
        const auto* measurement = std::get_if<Measurement>(&outcome);
        if (measurement == nullptr) return std::nullopt;
        const auto* duration = entry_in(measurement->metrics, "duration_seconds");
        if (duration == nullptr) return std::nullopt;
        sum += duration->value;
    }
    return sum;
}

}  // namespace

std::optional<double> expected_trial_seconds(const StudySetup& setup,
                                             const Configuration& configuration) {
    const StudyFile& file = setup.file;
    const bool deploys = std::holds_alternative<DeployChoice>(file.measuring);
    if (!deploys && !std::holds_alternative<AttachChoice>(file.measuring) &&
        !std::holds_alternative<SimulateChoice>(file.measuring))
        return std::nullopt;
    const std::unique_ptr<SimulateEvaluator> evaluator = simulated(file);
    const SimulateEvaluator::Started started = evaluator->started(configuration);
    const auto load = load_seconds(*evaluator, started, file);
    return load ? std::optional(*load + (deploys ? started.start.seconds : 0)) : std::nullopt;
}

std::string why_nothing_starts(const SimulateEvaluator& evaluator, const Problem& problem,
                               std::size_t most) {
    Rng rng(1);
    const bool all = problem.feasible.finite() && problem.feasible.size() <= double(most);
    const std::size_t tries = all ? std::size_t(problem.feasible.size()) : most;
    std::optional<MemoryPlan> nearest;
    std::int64_t longest = 0;  // that has to fit its cache; 0: none has to
    std::string first;
    for (std::size_t i = 0; i <= tries; ++i) {
        const Configuration configuration = i == 0 ? problem.space.default_configuration()
                                            : all  ? problem.feasible.at(double(i - 1))
                                                   : problem.feasible.sample(rng);
        const SimulateEvaluator::Started started = evaluator.started(configuration);
        if (!started.failure) return "";
        if (first.empty()) first = started.failure->message;
        if (!started.cost) continue;
        const MemoryPlan& plan = started.cost->memory();
        if (nearest && plan.missing_bytes >= nearest->missing_bytes) continue;
        nearest = plan;
        longest =
            started.cost->target().traits.checks_context ? started.cost->max_context_tokens() : 0;
    }
    std::string result = all ? "no configuration of this study would start"
                             : "none of " + std::to_string(tries) +
                                   " configurations of this study, drawn evenly, would start";
    result += "; the default: " + first;
    if (!nearest) return result;
    result +=
        nearest->cache_tokens > 0 && nearest->cache_tokens < longest
            ? "\nthe context of " + std::to_string(longest) +
                  " tokens decides: --max-model-len=" + std::to_string(nearest->cache_tokens) +
                  " or less starts, where memory is:\n"
            : "\nwhere the least memory is missing:\n";
    result += nearest->text();
    result.pop_back();  // its last line end
    return result;
}

}  // namespace servetune
