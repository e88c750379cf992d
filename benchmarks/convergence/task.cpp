// SPDX-License-Identifier: Apache-2.0
#include "task.hpp"

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/standings.hpp"

#include <cmath>

namespace servetune::convergence {
namespace {

constexpr std::uint64_t default_stream =
    0x64656661756c74;  // apart from the noise's streams, which are trial numbers

bool passing(const Outcome& outcome, const Objective& objective) {
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr || measurement->validity.verdict == Verdict::unsound) return false;
    return none_of(objective.limits,
                   [&](const Limit& limit) { return limit.holds(measurement->metrics) == false; });
}

}  // namespace

Task::Task(Definition definition) : definition_(std::move(definition)) {
    const SearchSpace space(definition_.parameters, definition_.constraints);
    const FeasibleSet feasible(space);
    const Objective& objective = definition_.objective;
    std::vector<double> values;
    feasible.for_each([&](const Configuration& configuration) {
        ++configurations_;
        const Outcome outcome = definition_.truth(configuration);
        if (passing(outcome, objective))
            values.push_back(
                std::get<Measurement>(outcome).metrics.at(objective.leading().metric).value);
        return true;
    });
    if (values.empty()) throw SpaceError(definition_.name + ": no configuration passes");
    sort(values, [&](double a, double b) { return objective.leading().better(a, b); });
    best_ = values.front();
    const auto count = double(configurations_);
    failing_share_ = 1 - double(values.size()) / count;
    if (definition_.success_share > 0) {
        const auto last =
            std::size_t(std::ceil(definition_.success_share * double(values.size()))) - 1;
        good_regret_ = 1 - 1 / (1 + objective.leading().gain(best_, values[last])) + 1e-12;
    }
    std::size_t good = 0;
    for (const double value : values)
        good += 1 - 1 / (1 + objective.leading().gain(best_, value)) <= good_regret_ ? 1 : 0;
    good_share_ = double(good) / count;
}

std::shared_ptr<const Problem> Task::problem(double noise_cv, std::uint64_t seed) const {
    const std::pair key{noise_cv, definition_.own_default ? 0 : seed};
    const std::lock_guard lock(mutex_);
    auto& problem = problems_[key];
    if (problem) return problem;
    std::vector<Parameter> parameters = definition_.parameters;
    if (!definition_.own_default) {
        const SearchSpace space(parameters, definition_.constraints);
        const FeasibleSet feasible(space);
        Rng rng(derive_seed(seed, default_stream));
        Configuration drawn = feasible.sample(rng);
        while (!passing(definition_.truth(drawn), definition_.objective))
            drawn = feasible.sample(rng);
        for (Parameter& parameter : parameters)
            if (const Value* value = drawn.find(parameter.name)) parameter.default_value = *value;
    }
    Decision decision;
    decision.noise_cv = noise_cv;
    problem =
        std::make_shared<const Problem>(SearchSpace(std::move(parameters), definition_.constraints),
                                        definition_.objective, decision);
    return problem;
}

Outcome Task::measured(const Configuration& configuration, double noise_cv, std::uint64_t seed,
                       std::uint64_t trial) const {
    Outcome outcome = definition_.truth(configuration);
    if (auto* measurement = std::get_if<Measurement>(&outcome)) {
        Rng rng(derive_seed(seed, trial));
        const auto metric = measurement->metrics.find(definition_.objective.leading().metric);
        if (metric != measurement->metrics.end())
            metric->second.value *= std::exp(noise_cv * rng.normal());
    }
    return outcome;
}

bool held_back(const Task::Definition& task) {
    return !task.known_before && (fingerprint_of(task.name).bits >> 32) % 2 == 1;
}

std::string Task::half() const { return held_back(definition_) ? "test" : "development"; }

double Task::regret_of_default() const {
    const SearchSpace space(definition_.parameters, definition_.constraints);
    const Configuration usual = space.default_configuration();
    return space.feasible(usual) ? regret(usual) : 1;  // of a table that does not have it
}

double Task::seconds(const Configuration& configuration) const {
    if (definition_.seconds) return definition_.seconds(configuration);
    constexpr double measured = 180;
    constexpr double failed = 60;
    return std::holds_alternative<Failure>(definition_.truth(configuration)) ? failed : measured;
}

double Task::regret(const Configuration& configuration) const {
    return regret_of(definition_.truth(configuration));
}

double Task::regret_of(const Outcome& outcome) const {
    if (!passing(outcome, definition_.objective)) return 1;
    const double value =
        std::get<Measurement>(outcome).metrics.at(definition_.objective.leading().metric).value;
    return 1 - 1 / (1 + definition_.objective.leading().gain(best_, value));
}

}  // namespace servetune::convergence
