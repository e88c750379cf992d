// SPDX-License-Identifier: Apache-2.0
#include "servetune/replay.hpp"

#include "servetune/detail/base/option_check.hpp"
#include "servetune/rng.hpp"
#include "study/plain_value.hpp"

namespace servetune {
namespace {

/// The values of its metrics, in the order of their names; of a failure none.
std::vector<double> metric_values(const Outcome& outcome) {
    std::vector<double> figures;
    if (const auto* measurement = std::get_if<Measurement>(&outcome))
        for (const auto& [name, metric] : measurement->metrics) figures.push_back(metric.value);
    return figures;
}

}  // namespace

std::string ReplayEvaluator::Options::why_invalid() const {
    OptionCheck check;
    check.within("noise_cv", noise_cv, 0, 1);
    for (const auto& [name, weight] : workloads)
        check.that(weight > 0 && weight <= most_weight, "weight of '" + name + "'",
                   "a positive number", std::to_string(weight));
    return check.text();
}

std::vector<std::optional<Value>> ReplayEvaluator::parsed(const MeasuredTable& table,
                                                          const MeasuredTable::Row& row,
                                                          const SearchSpace& space) {
    std::vector<std::optional<Value>> values;
    for (std::size_t i = 0; i < table.parameters.size(); ++i) {
        const auto& cell = row.cells[i];
        const Parameter* parameter = space.find(table.parameters[i]);
        if (!cell || parameter == nullptr) {
            values.emplace_back(std::nullopt);
            continue;
        }
        values.emplace_back(read_for(*parameter, *cell));
    }
    return values;
}

ReplayEvaluator::ReplayEvaluator(const MeasuredTable& table, const SearchSpace& space,
                                 Options options)
    : parameters_(table.parameters), options_(std::move(options)), source_(table.source) {
    check_options("replay", options_.why_invalid());
    for (const Parameter& parameter : space.parameters()) {
        const bool varies = parameter.continuous() || parameter.level_count() > 1;
        if (varies && !contains(parameters_, parameter.name))
            throw SpaceError(source_ + ": the table has no column '" + parameter.name +
                             "', which the space varies; fix it or measure it");
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (space.find(parameters_[i]) != nullptr) continue;
        for (const MeasuredTable::Row& row : table.rows)
            if (row.cells[i] != table.rows.front().cells[i])
                throw SpaceError(source_ + ":" + std::to_string(row.line) + ": the table varies '" +
                                 parameters_[i] + "', which the space does not have");
    }
    std::map<std::pair<Key, std::vector<double>>, std::vector<std::size_t>> with_figures;
    for (const MeasuredTable::Row& row : table.rows) {
        Key key{row.workload, parsed(table, row, space)};
        // Equal outcomes have equal figures, so only those are compared: a table may have many rows
        // of a configuration.
        std::vector<std::size_t>& alike = with_figures[{key, metric_values(row.outcome)}];
        std::vector<Outcome>& outcomes = known_[std::move(key)];
        const auto same = [&](std::size_t other) { return outcomes[other] == row.outcome; };
        if (row.repeat.empty() && any_of(alike, same)) continue;
        alike.push_back(outcomes.size());
        outcomes.push_back(row.outcome);
    }
}

Outcome ReplayEvaluator::mean_of(const std::vector<Outcome>& outcomes) {
    if (outcomes.size() == 1) return outcomes.front();
    const auto n = double(outcomes.size());
    Measurement mean;
    std::map<std::string, std::vector<double>, std::less<>> values;
    for (const Outcome& outcome : outcomes) {
        if (std::holds_alternative<Failure>(outcome)) return outcome;
        const auto& measurement = std::get<Measurement>(outcome);
        for (const auto& [name, metric] : measurement.metrics) values[name].push_back(metric.value);
        mean.validity.verdict = std::max(mean.validity.verdict, measurement.validity.verdict);
        mean.validity.findings.insert(mean.validity.findings.end(),
                                      measurement.validity.findings.begin(),
                                      measurement.validity.findings.end());
    }
    for (const auto& [name, list] : values) {
        if (list.size() != outcomes.size()) continue;
        double sum = 0;
        double squares = 0;
        for (const double value : list) sum += value;
        for (const double value : list) squares += (value - sum / n) * (value - sum / n);
        mean.metrics[name] = {sum / n, std::sqrt(squares / (n - 1) / n), list.size()};
    }
    return mean;
}

void ReplayEvaluator::add_noise(Outcome& outcome, std::uint64_t seed) const {
    auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr) return;
    Rng rng(seed);
    const double factor = std::exp(options_.noise_cv * rng.normal());
    for (auto& [name, metric] : measurement->metrics) {
        if (name.ends_with("_per_second")) metric.value *= factor;
        else if (name.ends_with("_seconds")) metric.value /= factor;
    }
}

const std::vector<Outcome>* ReplayEvaluator::find(const Configuration& configuration,
                                                  const std::string& workload) const {
    Allow::Row values;
    for (const std::string& name : parameters_) {
        const Value* value = configuration.find(name);
        values.push_back(value != nullptr ? std::optional(*value) : std::nullopt);
    }
    const auto found = known_.find({workload, values});
    return found == known_.end() ? nullptr : &found->second;
}

Outcome ReplayEvaluator::answer(const Configuration& configuration, const std::string& workload,
                                std::uint64_t seed) const {
    if (const std::vector<Outcome>* outcomes = find(configuration, workload)) {
        if (options_.noise_cv <= 0) return mean_of(*outcomes);
        std::vector<Outcome> noisy = *outcomes;
        const std::uint64_t own =
            derive_seed(seed, configuration.fingerprint().bits ^ fingerprint_of(workload).bits);
        for (std::size_t i = 0; i < noisy.size(); ++i)
            add_noise(noisy[i], i == 0 ? own : derive_seed(own, i));
        return mean_of(noisy);
    }
    return Failure{FailureKind::not_in_table,
                   source_ + " has no row for " + configuration.text() +
                       (workload.empty() ? "" : " under workload " + workload)};
}

Outcome ReplayEvaluator::evaluate(const Configuration& configuration,
                                  const EvaluationContext& context) {
    if (!context.workload.empty()) return answer(configuration, context.workload, context.seed);
    if (options_.workloads.empty()) return answer(configuration, "", context.seed);
    std::vector<WorkloadMetrics> parts;
    Validity validity;
    for (const auto& [workload, weight] : options_.workloads) {
        Outcome outcome = answer(configuration, workload, context.seed);
        if (std::holds_alternative<Failure>(outcome)) return outcome;
        auto& measurement = std::get<Measurement>(outcome);
        parts.push_back({workload, weight, std::move(measurement.metrics)});
        validity.verdict = std::max(validity.verdict, measurement.validity.verdict);
        validity.findings.insert(validity.findings.end(), measurement.validity.findings.begin(),
                                 measurement.validity.findings.end());
    }
    return Measurement{combined(parts), std::move(validity)};
}

Allow ReplayEvaluator::measured_only(const MeasuredTable& table, const SearchSpace& space,
                                     const std::vector<std::string>& workloads) {
    Allow allow{{}, {}, "only these were measured (" + table.source + ")", true};
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < table.parameters.size(); ++i)
        if (space.find(table.parameters[i]) != nullptr) {
            allow.names.push_back(table.parameters[i]);
            columns.push_back(i);
        }
    for (const MeasuredTable::Row& row : table.rows) {
        if (!workloads.empty() && !contains(workloads, row.workload)) continue;
        const auto values = parsed(table, row, space);
        Allow::Row allowed;
        for (const std::size_t column : columns) allowed.push_back(values[column]);
        allow.rows.insert(std::move(allowed));
    }
    return allow;
}

}  // namespace servetune
