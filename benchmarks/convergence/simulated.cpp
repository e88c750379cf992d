// SPDX-License-Identifier: Apache-2.0
// A part of the simulated study that can be listed: the engine, the weights, the memory and each engine's batch sizes
// and cache; all else as by default.
#include "servetune/io/files.hpp"
#include "servetune/io/json.hpp"
#include "servetune/predict/cost_belief.hpp"
#include "servetune/study_file/study_file.hpp"
#include "task.hpp"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

namespace servetune::convergence {
namespace {

const std::set<std::string> kept{"engine",
                                 "quantization",
                                 "memory_fraction",
                                 "vllm.max_num_seqs",
                                 "vllm.max_num_batched_tokens",
                                 "vllm.kv_cache_dtype",
                                 "sglang.max_running_requests",
                                 "sglang.chunked_prefill_size",
                                 "sglang.kv_cache_dtype",
                                 "tensorrt-llm.max_batch_size",
                                 "tensorrt-llm.max_num_tokens",
                                 "tensorrt-llm.kv_cache_dtype"};

using Truths = std::map<Configuration, Outcome>;

/// What the cost model expects, asked once for each configuration.
struct Believed : PriorMean {
    std::map<Configuration, PriorBelief> of{};
    [[nodiscard]] std::string name() const override { return "the cost model"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override { return of.at(configuration); }
};

/// Lines of `configuration TAB outcome`; the first says of which study.
Truths read_truths(const std::filesystem::path& file, const std::string& header) {
    Truths truths;
    if (!std::filesystem::exists(file)) return truths;
    std::istringstream lines(read_file(file));
    std::string line;
    if (!std::getline(lines, line) || line != header) return truths;  // of another study
    while (std::getline(lines, line)) {
        const std::size_t tab = line.find('\t');
        if (tab == std::string::npos || line.back() != '}') continue;  // cut short: computed again
        truths.emplace(configuration_from_json(line.substr(0, tab)), outcome_from_json(line.substr(tab + 1)));
    }
    return truths;
}

/// The objective, the limits' metrics and the verdict; a hundred other metrics are dropped.
Outcome reduced(Outcome outcome, const Objective& objective) {
    if (auto* failure = std::get_if<Failure>(&outcome)) return Failure{failure->kind, failure->message};
    const auto& measurement = std::get<Measurement>(outcome);
    Measurement result{{}, {measurement.validity.verdict, {}}};
    const auto keep = [&](const std::string& name) {
        for (const auto& [key, metric] : measurement.metrics)
            if (key == name || key.starts_with(name + "@")) result.metrics.emplace(key, Metric{metric.value, {}});
    };
    keep(objective.leading().metric);
    for (const Limit& limit : objective.limits) keep(limit.metric);
    return result;
}

}  // namespace

Task::Definition simulated_task(const std::filesystem::path& study, const std::filesystem::path& cache, std::size_t threads) {
    StudyFile file = load_study(study, Catalogue::standard());
    if (auto* choice = std::get_if<SimulateChoice>(&file.measuring)) choice->noise = {};  // the truth
    const SearchSpace whole(file.composition->parameters(), file.composition->constraints());
    Task::Definition task;
    task.name = "simulated_h100";
    task.what = "a part of the simulated H100 study: three engines, weights, memory, batch sizes, cache";
    task.objective = file.objective;
    task.own_default = true;
    for (const Parameter& parameter : whole.parameters())
        if (kept.contains(parameter.name)) task.parameters.push_back(parameter);
    for (const Constraint& constraint : whole.constraints()) {
        const auto names = names_of(constraint);
        if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return kept.contains(name); }))
            task.constraints.push_back(constraint);
    }
    const SearchSpace part(task.parameters, task.constraints);
    std::string header = "truth of " + fingerprint_of(read_file(study)).text() + " over";
    for (const Parameter& parameter : part.parameters()) header += " " + parameter.name + "(" + parameter.domain_text() + ")";
    const std::filesystem::path store = cache / "simulated_h100.truth";
    auto truths = std::make_shared<Truths>(read_truths(store, header));
    if (truths->empty()) write_file(store, header + "\n");
    std::vector<Configuration> missing;
    FeasibleSet(part).for_each([&](const Configuration& configuration) {
        if (!truths->contains(configuration)) missing.push_back(configuration);
        return true;
    });
    const auto evaluator = simulated(file);
    std::ofstream out(store, std::ios::app);
    out << '\n';  // after a line that was cut short
    std::mutex mutex;
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < threads; ++worker)
        workers.emplace_back([&, worker] {
            for (std::size_t i = worker; i < missing.size(); i += threads) {
                const Outcome outcome = reduced(evaluator->predicted(whole.completed(missing[i].assignment())), file.objective);
                const std::lock_guard lock(mutex);
                out << json_of(missing[i]) << '\t' << json_of(outcome) << std::endl;  // what is found is kept, whatever ends this
                truths->emplace(missing[i], outcome);
            }
        });
    workers.clear();
    if (!out) throw IoError("cannot write " + store.string());
    std::vector<std::pair<std::string, double>> weights = file.weighted_workloads();
    const CostBelief cost_model(simulated(file), file.objective.leading().metric, std::move(weights));
    auto beliefs = std::make_shared<Believed>();
    for (const auto& [configuration, outcome] : *truths)
        beliefs->of.emplace(configuration, cost_model.belief(whole.completed(configuration.assignment())));
    task.belief = std::move(beliefs);
    task.truth = [truths](const Configuration& configuration) { return truths->at(configuration); };
    return task;
}

}  // namespace servetune::convergence
