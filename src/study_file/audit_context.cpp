// SPDX-License-Identifier: Apache-2.0
#include "audit_context.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

/// The command that a row of a table was measured with; nothing when it lies outside the space.
std::optional<Command> command_of(const MeasuredTable& table, const MeasuredTable::Row& row,
                                  const SearchSpace& space, const StudyFile& study) {
    const auto values = ReplayEvaluator::parsed(table, row, space);
    Assignment assignment;
    for (std::size_t i = 0; i < table.parameters.size(); ++i) {
        const Parameter* parameter = space.find(table.parameters[i]);
        const std::optional<Value>& value = values[i];
        if (parameter == nullptr || !value) continue;
        if (!parameter->contains(*value)) return std::nullopt;
        assignment[table.parameters[i]] = *value;
    }
    return study.composition->render(space.completed(assignment), {study.model, {}, 0});
}

/// What a command says of speculation, quantization, devices and the prefix cache.
struct Facts {
    std::string quantization{};  ///< empty: that of the checkpoint
    double devices = 1;
    bool prefix_cache_off = false;
    bool speculates = false;
    std::optional<double> guesses{};  ///< tokens guessed a step, where the command says it

    void read(const Engine& engine, const EngineParameter& declared, const std::string& value) {
        const std::string& idea = declared.parameter.concept_name;
        const Value& usual = declared.parameter.default_value;
        const bool changes = value != (is_unset(usual) ? "" : text_of(usual));
        const bool guesses_tokens = idea == "speculative_tokens" ||
                                    idea == "speculative_tree_tokens" ||
                                    idea == "speculative_ngram_tokens";
        if (any_of(engine.devices, [&](const DeviceFactor& factor) {
                return factor.parameter == declared.parameter.name;
            }))
            devices *= std::max(1.0, real_of(value).value_or(1));
        else if (idea == "quantization" && changes) quantization = value;
        else if (idea == "prefix_cache" || idea == "no_prefix_cache")
            prefix_cache_off =
                prefix_cache_off || value == (idea == "prefix_cache" ? "false" : "true");
        else if (guesses_tokens ||
                 ((idea == "draft_model" || idea.starts_with("speculative")) && changes))
            speculates = true;
        if (const auto tokens = real_of(value); guesses_tokens && tokens)
            guesses = std::max(guesses.value_or(0), *tokens);
    }
};

}  // namespace

BenchmarkResult result_of(const Metrics& metrics) {
    BenchmarkResult result;
    for_each_figure(result, [&](const std::string& name, std::optional<double>& field) {
        if (const auto* found = entry_in(metrics, name)) field = found->value;
    });
    const auto* ratio = entry_in(metrics, "success_ratio");
    if (!result.requested_requests && result.successful_requests && ratio != nullptr &&
        ratio->value > 0)
        result.requested_requests = std::round(*result.successful_requests / ratio->value);
    return result;
}

void describe(AuditContext& context, const CommandSettings& command, const std::string& model,
              const std::vector<ModelSpec>& known) {
    Facts facts;
    for (const Setting& setting : command.settings) {
        if (!setting.parameters.empty())
            facts.read(*command.engine, *setting.parameters.front(), setting.value);
        else if (setting.kind != Setting::Kind::json && setting.value != "false" &&
                 contains(setting.name, "speculative"))
            facts.speculates = true;
    }
    context.devices = facts.devices;
    context.command_is_known =
        command.start != CommandSettings::Start::unknown && !command.settings.empty();
    if (facts.prefix_cache_off) context.prefix_cache_intended = false;
    context.served = served_model(command.model.empty() ? model : command.model, known);
    if (context.served && !facts.quantization.empty() &&
        context.served->quantization == context.served->model.native_type)
        context.served->quantization = facts.quantization;
    // At most every token that was guessed is accepted, and the model's own comes on top.
    if (!facts.speculates) context.tokens_per_step = 1;
    else if (facts.guesses) context.tokens_per_step = *facts.guesses + 1;
    else context.tokens_per_step = std::nullopt;
}

bool compares_times(const Objective& objective) {
    return all_of(objective.goals,
                  [](const Goal& goal) { return goal.metric.ends_with("_seconds"); });
}

std::vector<Command> commands_of(const MeasuredTable& table, const StudyFile& study) {
    if (!study.has_commands()) return {};
    const SearchSpace space(study.composition->parameters());
    const auto known = [&](const std::string& name) { return space.find(name) != nullptr; };
    std::vector<Command> result;
    if (!all_of(table.parameters, known)) return result;
    for (const MeasuredTable::Row& row : table.rows)
        result.push_back(command_of(table, row, space, study).value_or(Command{}));
    return result;
}

void audit_rows(MeasuredTable& table, const StudyFile& study) {
    const Catalogue catalogue = study.catalogue();
    std::optional<HardwareSpec> hardware;
    if (!study.machine.hardware.empty())
        hardware = hardware_in(study.machine.hardware, catalogue.all_hardware());
    std::vector<ModelSpec> models;  // what a command says is for physics, which needs hardware
    std::optional<CommandReader> commands;
    if (hardware) {
        models = catalogue.all_models();
        commands.emplace(study.composition->engines(), catalogue.root());
    }
    const SearchSpace space(study.composition->parameters());
    struct Together {
        std::vector<BenchmarkResult> results;
        std::vector<Measurement*> measurements;
    };
    std::map<std::string, Together> by_workload;
    for (MeasuredTable::Row& row : table.rows) {
        auto* measurement = std::get_if<Measurement>(&row.outcome);
        if (measurement == nullptr) continue;
        const BenchmarkResult result = result_of(measurement->metrics);
        AuditContext context;
        context.hardware = hardware;
        context.rate_is_intended = compares_times(study.objective);
        const bool only = row.workload.empty() && study.workloads.size() == 1;
        if (const Workload* workload =
                only ? &study.workloads.front() : study.workload_called(row.workload))
            describe(context, *workload, result);
        if (const auto command = commands ? command_of(table, row, space, study) : std::nullopt)
            describe(context, commands->read(*command), study.model, models);
        add(measurement->validity, audit(result, context));
        by_workload[row.workload].results.push_back(result);
        by_workload[row.workload].measurements.push_back(measurement);
    }
    for (auto& [workload, together] : by_workload) {
        const std::vector<Validity> found = audit_together(together.results);
        for (std::size_t i = 0; i < found.size(); ++i)
            add(together.measurements[i]->validity, found[i]);
    }
}

}  // namespace servetune
