// SPDX-License-Identifier: Apache-2.0
// Functions of the kind that serving engines are: rates that multiply, cliffs beside the best
// place, memory that runs out without warning. None copies a real engine's numbers; what they share
// with one is their shape.
#include "task.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace servetune::convergence {
namespace {

double number(const Configuration& configuration, const char* name) {
    return number_of(*configuration.find(name)).value();
}
bool is(const Configuration& configuration, const char* name, const char* text) {
    const Value* value = configuration.find(name);
    return value != nullptr && *value == Value(std::string(text));
}
Outcome rate(double value) { return Measurement{{{"rate", {value}}}}; }
Outcome crash(FailureKind kind) { return Failure{kind, "it died"}; }

/// A hump of this height loss at one unit's distance.
double hump(double x, double centre, double width) {
    return std::exp(-0.5 * (x - centre) * (x - centre) / width / width);
}

std::vector<Value> texts(std::initializer_list<const char*> list) {
    std::vector<Value> values;
    for (const char* text : list) values.emplace_back(std::string(text));
    return values;
}

/// Memory that runs out: batch sizes want to be large, the cache needs what they and the weights
/// leave, speculation pays only for small batches and brings two parameters of its own.
/// Conditionals, interactions, a smooth hidden border; the best lies near it.
Task::Definition engine_like() {
    Task::Definition task;
    task.name = "engine";
    task.what =
        "memory runs out past a hidden border, speculation is conditional, batch sizes interact";
    task.objective = {"rate", Direction::maximize, {}};
    task.parameters = {
        Parameter::choice("parallel", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}}, true),
        Parameter::choice("memory", {0.7, 0.8, 0.85, 0.9, 0.95, 0.98}, true),
        Parameter::integer("seqs", 16, 4096, Scale::log2).growing_memory(),
        Parameter::integer("tokens", 1024, 65536, Scale::log2).growing_memory(),
        Parameter::choice("weights", texts({"bf16", "fp8", "int4"})),
        Parameter::choice("speculation", texts({"none", "ngram", "draft"})),
        Parameter::integer("guesses", 1, 4).when("speculation", texts({"ngram", "draft"})),
        Parameter::boolean("graphs", true)};
    task.constraints = {require("tokens >= seqs")};
    task.truth = [](const Configuration& c) -> Outcome {
        const double parallel = number(c, "parallel");
        const double seqs = std::log2(number(c, "seqs"));
        const double tokens = std::log2(number(c, "tokens"));
        const double weights = is(c, "weights", "bf16") ? 28 : is(c, "weights", "fp8") ? 15 : 9;
        const bool graphs = std::get<bool>(*c.find("graphs"));
        const double guesses = c.find("guesses") != nullptr ? number(c, "guesses") : 0;
        const double activations =
            std::exp2(tokens - 11) * 0.9 + (graphs ? std::exp2(seqs - 9) * 1.5 + 2 : 0);
        const double draft = is(c, "speculation", "draft") ? 6 : 0;
        const double spare = 80 * (1 - number(c, "memory")) - 0.25 * activations / parallel;
        const double cache =
            80 * number(c, "memory") - (weights + draft) / parallel - activations / parallel;
        if (cache < 24 || spare < 0) return crash(FailureKind::out_of_memory);
        if (draft > 0 && is(c, "weights", "int4") && parallel > 1)
            return crash(FailureKind::unsupported);
        const double batch = std::min(number(c, "seqs"), cache * 9 * parallel);
        double value = 400 * std::pow(batch, 0.55) / (1 + batch / 2500);
        value *= 0.6 + 0.4 * hump(tokens, 13.2 + 0.35 * (seqs - 8), 2.0);
        value *= is(c, "weights", "bf16")  ? 1
                 : is(c, "weights", "fp8") ? 1.22
                                           : 1.3 - 0.07 * std::max(0.0, seqs - 6);
        value *= std::pow(parallel, -0.25);  // per GPU
        value *= graphs ? 1.15 - 0.02 * std::max(0.0, seqs - 8) : 1;
        if (is(c, "speculation", "ngram"))
            value *= 1 + 0.05 * guesses - 0.03 * std::max(0.0, seqs - 5) * guesses / 2;
        if (draft > 0) value *= 1 + 0.25 * hump(guesses, 3, 1.2) - 0.09 * std::max(0.0, seqs - 6);
        return rate(value);
    };
    return task;
}

/// No order to follow: six unordered parameters of four to six levels whose pairs matter as much as
/// themselves; whole pairs of levels do not work. The tables are drawn once, from a fixed seed.
Task::Definition tangled() {
    Task::Definition task;
    task.name = "tangled";
    task.what = "unordered parameters that matter in pairs; some pairs of levels do not work";
    task.objective = {"rate", Direction::maximize, {}};
    constexpr std::array<std::size_t, 6> levels{6, 5, 5, 4, 4, 4};
    for (std::size_t p = 0; p < levels.size(); ++p) {
        std::vector<Value> values;
        for (std::size_t l = 0; l < levels[p]; ++l)
            values.emplace_back(std::string(1, static_cast<char>('a' + l)));
        task.parameters.push_back(Parameter::choice("p" + std::to_string(p), std::move(values)));
    }
    struct Tables {
        std::array<std::array<double, 6>, 6> alone{};
        std::array<std::array<std::array<std::array<double, 6>, 6>, 6>, 6> pair{};
        std::array<std::array<std::array<std::array<bool, 6>, 6>, 6>, 6> dead{};
    };
    auto tables = std::make_shared<Tables>();
    Rng rng(20261);
    for (std::size_t p = 0; p < 6; ++p)
        for (double& value : tables->alone[p]) value = 0.12 * rng.normal();
    for (std::size_t p = 0; p < 6; ++p)
        for (std::size_t q = p + 1; q < 6; ++q)
            for (std::size_t a = 0; a < 6; ++a)
                for (std::size_t b = 0; b < 6; ++b) {
                    tables->pair[p][q][a][b] = 0.05 * rng.normal();
                    tables->dead[p][q][a][b] = rng.uniform() < 0.04;
                }
    task.truth = [tables](const Configuration& c) -> Outcome {
        std::array<std::size_t, 6> at{};
        for (std::size_t p = 0; p < 6; ++p)
            at[p] =
                std::size_t(std::get<std::string>(*c.find("p" + std::to_string(p))).front() - 'a');
        double sum = 0;
        for (std::size_t p = 0; p < 6; ++p) {
            sum += tables->alone[p][at[p]];
            for (std::size_t q = p + 1; q < 6; ++q) {
                if (tables->dead[p][q][at[p]][at[q]]) return crash(FailureKind::unsupported);
                sum += tables->pair[p][q][at[p]][at[q]];
            }
        }
        return rate(1000 * std::exp(sum));
    };
    return task;
}

/// A curved ridge of ordered parameters that ends at a cliff: along it everything must change
/// together, and beyond the best place it dies.
Task::Definition ridge() {
    Task::Definition task;
    task.name = "ridge";
    task.what = "five ordered parameters, a curved ridge that ends at a cliff";
    task.objective = {"rate", Direction::maximize, {}};
    for (const char* name : {"a", "b", "c", "d", "e"})
        task.parameters.push_back(Parameter::integer(name, 0, 7));
    task.truth = [](const Configuration& c) -> Outcome {
        const double a = number(c, "a") / 7;
        const double b = number(c, "b") / 7;
        const double cc = number(c, "c") / 7;
        const double d = number(c, "d") / 7;
        const double e = number(c, "e") / 7;
        if (a + 0.6 * b + 0.35 * d > 1.25) return crash(FailureKind::out_of_memory);
        const double off_ridge = (b - 0.15 - 0.9 * a * a) * (b - 0.15 - 0.9 * a * a) * 6 +
                                 (cc - 0.5 * a - 0.2) * (cc - 0.5 * a - 0.2) * 3;
        return rate(1000 * std::exp(1.1 * a - off_ridge - 1.2 * (d - 0.4) * (d - 0.4) -
                                    0.15 * std::abs(e - 0.7)));
    };
    return task;
}

/// Ten parameters of which three matter: most trials say nothing of most parameters. One branch
/// (half of the space at first sight) dies often.
Task::Definition sparse() {
    Task::Definition task;
    task.name = "sparse";
    task.what = "ten parameters, three matter; one of two branches dies often";
    task.objective = {"seconds", Direction::minimize, {}};
    task.parameters = {
        Parameter::choice("engine", texts({"x", "y"})),
        Parameter::choice("x_kernel", texts({"k1", "k2", "k3", "k4"})).when("engine", texts({"x"})),
        Parameter::integer("y_depth", 1, 6).when("engine", texts({"y"})),
        Parameter::integer("size", 64, 8192, Scale::log2)};
    for (int i = 0; i < 6; ++i)
        task.parameters.push_back(
            Parameter::choice("o" + std::to_string(i), texts({"p", "q", "r"})));
    task.truth = [](const Configuration& c) -> Outcome {
        const double size = std::log2(number(c, "size"));
        double value = 20 / (0.4 + hump(size, is(c, "engine", "x") ? 8.0 : 11.0, 1.6));
        if (is(c, "engine", "x"))
            value *= is(c, "x_kernel", "k3") ? 1 : is(c, "x_kernel", "k1") ? 1.3 : 1.15;
        else {
            const double depth = number(c, "y_depth");
            if (depth + size > 15.5 || (is(c, "o0", "p") && depth > 2))
                return crash(FailureKind::crashed_under_load);
            value *= 1.25 - 0.11 * depth;
        }
        value *= is(c, "o1", "r") ? 0.9 : 1;
        for (int i = 2; i < 6; ++i)
            value *= is(c, ("o" + std::to_string(i)).c_str(), "q") ? 0.99 : 1;
        return Measurement{{{"seconds", {value}}}};
    };
    return task;
}

}  // namespace

std::vector<Task::Definition> synthetic_tasks() {
    std::vector<Task::Definition> tasks{engine_like(), tangled(), ridge(), sparse()};
    for (Task::Definition& task : tasks) task.known_before = true;
    return tasks;
}

}  // namespace servetune::convergence
