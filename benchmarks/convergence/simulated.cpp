// SPDX-License-Identifier: Apache-2.0
// Landscapes of the simulator, without its noise. Each configuration is simulated once; what came
// out is kept in a file.
#include "base/files.hpp"
#include "predict/cost_belief.hpp"
#include "servetune/study_file.hpp"
#include "task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_map>

namespace servetune::convergence {
namespace {

/// A part of the simulated study that can be listed: the engine, the weights, the memory and each
/// engine's batch sizes and cache; all else as by default.
const std::set<std::string> part_of_h100{"engine",
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

/// Outcomes by the fingerprints of their configurations: a hundred thousand of them in some 10 MB.
/// Metrics that neither the objective nor a limit asks for are dropped, and the words of a failure.
class Truths {
public:
    explicit Truths(const Objective& objective) {
        wanted_.push_back(objective.leading().metric);
        for (const Limit& limit : objective.limits) wanted_.push_back(limit.metric);
    }
    [[nodiscard]] std::string metrics() const { return fmt::format("{}", fmt::join(wanted_, " ")); }
    [[nodiscard]] bool contains(const Configuration& configuration) const {
        return rows_.contains(key_of(configuration));
    }
    [[nodiscard]] Outcome at(const Configuration& configuration) const {
        const Row& row = rows_.at(key_of(configuration));
        if (row.failure) return Failure{*row.failure, ""};
        Measurement result{{}, {row.verdict, {}}};
        for (const auto& [name, value] : row.values)
            result.metrics.emplace(names_[name], Metric{value, {}});
        return result;
    }
    [[nodiscard]] double seconds(const Configuration& configuration) const {
        return rows_.at(key_of(configuration)).seconds;
    }
    /// Keeps the outcome and answers its line in the file. `seconds`: of the trial.
    std::string add(const Configuration& configuration, const Outcome& outcome, double seconds) {
        std::string line = fmt::format("{:016x} {:.4g}", key_of(configuration), seconds);
        if (const auto* failure = std::get_if<Failure>(&outcome))
            line += fmt::format(" failed {}", name_in(failure_kinds, failure->kind));
        else {
            const auto& measurement = std::get<Measurement>(outcome);
            line += fmt::format(" {}", name_in(verdicts, measurement.validity.verdict));
            for (const auto& [name, metric] : measurement.metrics)
                if (any_of(wanted_, [&, &name = name](const std::string& one) {
                        return name == one || name.starts_with(one + "@");
                    }))
                    line += fmt::format(" {} {}", name, text_of(metric.value));
        }
        (void)read(line);
        return line;
    }
    /// False where the line is none, cut short for instance.
    bool read(const std::string& line) {
        std::istringstream words(line);
        std::string key, kind, name, number;
        Row row;
        if (!(words >> key >> number >> kind) || key.size() != 16) return false;
        const auto seconds = real_of(number);
        if (!seconds) return false;
        row.seconds = *seconds;
        if (kind == "failed") {
            words >> name;
            row.failure = named_in(failure_kinds, name);
            if (!row.failure) return false;
        } else {
            const auto verdict = named_in(verdicts, kind);
            if (!verdict) return false;
            row.verdict = *verdict;
            while (words >> name >> number) {
                const auto value = real_of(number);
                if (!value) return false;
                row.values.emplace_back(place_of(name), *value);
            }
            if (row.values.empty()) return false;
        }
        rows_[std::stoull(key, nullptr, 16)] = std::move(row);
        return true;
    }

private:
    struct Row {
        std::optional<FailureKind> failure{};
        Verdict verdict = Verdict::sound;
        double seconds = 0;
        std::vector<std::pair<std::size_t, double>> values{};  ///< place in `names_`, value
    };
    static std::uint64_t key_of(const Configuration& configuration) {
        return fingerprint_of(configuration.text()).bits;
    }
    std::size_t place_of(const std::string& name) {
        const auto place =
            std::size_t(std::find(names_.begin(), names_.end(), name) - names_.begin());
        if (place == names_.size()) names_.push_back(name);
        return place;
    }

    std::vector<std::string> wanted_, names_{};
    std::unordered_map<std::uint64_t, Row> rows_{};
};

/// A study's text but for its objective: the truth does not depend on the numbers of its limits.
std::string without_objective(const std::string& text) {
    std::istringstream lines(text);
    std::string result;
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("objective:")) result += line + "\n";
    return result;
}

/// What a trial would take: the start, until it serves or is given up; the warm-up and the stop,
/// together half a minute; the load, of all workloads, or half a minute of it where it dies.
double trial_seconds(const SimulateEvaluator& evaluator, const Configuration& configuration,
                     const Outcome& outcome) {
    constexpr double beside = 30;
    constexpr double until_death = 30;
    const StartResult start = evaluator.started(configuration).start;
    if (!start.serves) return start.seconds;
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr) return start.seconds + until_death;
    double load = 0;
    double all = 0;
    for (const auto& [name, metric] : measurement->metrics)
        if (name == "duration_seconds") all = metric.value;
        else if (name.starts_with("duration_seconds@")) load += metric.value;
    return start.seconds + beside + (load > 0 ? load : all);
}

/// What the cost model expects, asked when it is wanted. Keeps the study that it reads.
class Believed : public PriorMean {
public:
    Believed(std::shared_ptr<const StudyFile> file, SearchSpace whole)
        : file_(std::move(file)),
          whole_(std::move(whole)),
          model_(simulated(*file_), file_->objective, file_->weighted_workloads()) {}
    [[nodiscard]] std::string name() const override { return "the cost model"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
        return model_.belief(whole_.completed(configuration.assignment()));
    }

private:
    std::shared_ptr<const StudyFile> file_;
    SearchSpace whole_;
    CostBelief model_;
};

/// `parameters`: those that are searched; empty: all.
Task::Definition task_of(const std::filesystem::path& study,
                         const std::set<std::string>& parameters,
                         const std::filesystem::path& cache, std::size_t threads) {
    auto file = std::make_shared<StudyFile>(load_study(study, Catalogue::standard()));
    if (auto* choice = std::get_if<SimulateChoice>(&file->measuring))
        choice->noise = {};  // the truth
    const SearchSpace whole(file->composition->parameters(), file->composition->constraints());
    const auto searched = [&](const std::string& name) {
        return parameters.empty() || parameters.contains(name);
    };
    Task::Definition task;
    task.what = fmt::format("{} on {}, {}", file->model, file->machine.chip(),
                            file->objective.leading().metric);
    task.objective = file->objective;
    for (const Parameter& parameter : whole.parameters())
        if (searched(parameter.name)) task.parameters.push_back(parameter);
    for (const Constraint& constraint : whole.constraints()) {
        const auto names = names_of(constraint);
        if (all_of(names, searched)) task.constraints.push_back(constraint);
    }
    const SearchSpace part(task.parameters, task.constraints);
    auto truths = std::make_shared<Truths>(file->objective);
    std::string header = "truth of " + fingerprint_of(without_objective(read_file(study))).text() +
                         ", " + truths->metrics() + ", seconds, over";
    for (const Parameter& parameter : part.parameters())
        header += " " + parameter.name + "(" + parameter.domain_text() + ")";

    const std::filesystem::path store = cache / (study.stem().string() + ".truth");
    std::ifstream known(store);
    std::string line;
    if (std::getline(known, line) && line == header)
        while (std::getline(known, line))
            truths->read(line);             // a line that was cut short is simulated again
    else write_file(store, header + "\n");  // of another study
    std::vector<Configuration> missing;
    FeasibleSet(part).for_each([&](const Configuration& configuration) {
        if (!truths->contains(configuration)) missing.push_back(configuration);
        return true;
    });
    const auto evaluator = simulated(*file);
    std::ofstream out(store, std::ios::app);
    if (!missing.empty()) out << '\n';  // after a line that was cut short
    std::mutex mutex;
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < threads; ++worker)
        workers.emplace_back([&, worker] {
            for (std::size_t i = worker; i < missing.size(); i += threads) {
                const Configuration completed = whole.completed(missing[i].assignment());
                const Outcome outcome = evaluator->predicted(completed);
                const double seconds = trial_seconds(*evaluator, completed, outcome);
                const std::lock_guard lock(mutex);
                out << truths->add(missing[i], outcome, seconds)
                    << '\n';  // what is found is kept, whatever ends this
            }
        });
    workers.clear();
    if (!out) throw IoError("cannot write " + store.string());
    task.belief = std::make_shared<Believed>(file, whole);
    task.truth = [truths](const Configuration& configuration) { return truths->at(configuration); };
    task.seconds = [truths](const Configuration& configuration) {
        return truths->seconds(configuration);
    };
    return task;
}

}  // namespace

Task::Definition simulated_h100(const std::filesystem::path& study,
                                const std::filesystem::path& cache, std::size_t threads) {
    Task::Definition task = task_of(study, part_of_h100, cache, threads);
    task.name = "simulated_h100";
    task.what =
        "a part of the simulated H100 study: three engines, weights, memory, batch sizes, cache";
    task.own_default = true;
    task.known_before = true;
    return task;
}

std::vector<Task::Definition> simulated_tasks(
    const std::filesystem::path& landscapes, const std::filesystem::path& cache,
    std::size_t threads, const std::function<bool(const std::string&)>& wanted) {
    std::vector<Task::Definition> tasks;
    std::istringstream lines(read_file(landscapes));
    std::string line, document;
    const auto add = [&] {
        const std::string key = "study: ";
        const std::size_t at = document.find(key);
        if (at == std::string::npos) return;  // what stands before the first document
        const std::size_t begin = at + key.size();
        const std::string name = document.substr(begin, document.find('\n', begin) - begin);
        if (!wanted(name)) return;
        const std::filesystem::path study = cache / (name + ".yaml");
        write_file(study, document);
        Task::Definition task = task_of(study, {}, cache, threads);
        task.name = name;
        tasks.push_back(std::move(task));
    };
    while (std::getline(lines, line)) {
        if (line != "---") {
            document += line + "\n";
            continue;
        }
        add();
        document.clear();
    }
    add();
    return tasks;
}

}  // namespace servetune::convergence
