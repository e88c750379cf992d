// SPDX-License-Identifier: Apache-2.0
// How fast strategies find what is good, side by side: README.md says how it is judged.
#include "aggregate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace {

using namespace servetune;
using namespace servetune::convergence;
namespace fs = std::filesystem;

constexpr const char* usage =
    "convergence tasks   [options]          what the tasks are like\n"
    "convergence run     [options]          runs what FILE does not have yet\n"
    "convergence aggregate --results FILE   all tasks together; --against NAME: whose losses are "
    "listed (bayesian)\n"
    "options: --results FILE  --tables FOLDER (again)  --study FILE  --landscapes FILE  --cache "
    "FOLDER  --half development|test  --tasks "
    "A,B  "
    "--contenders A,B  --peer NAME=COMMAND (again; "
    "NAME~=COMMAND: it looks at its budget)\n"
    "         --noise 0.01,0.03  --budgets 20,40  --seeds N  --first-seed N  --jobs N\n";

struct Options {
    std::string command;
    fs::path results = "convergence.csv", study, landscapes, cache = ".";
    std::vector<fs::path> tables;
    std::vector<std::string> tasks, contenders, peers;
    std::vector<double> noises{0.03};
    std::vector<std::size_t> budgets{20, 40};
    std::size_t seeds = 20, first_seed = 1, jobs = 1;
    std::string against, half;
};

std::size_t whole(const std::string& text) {
    const auto number = integer_of(text);
    if (!number || *number < 0) throw UsageError("a whole number wanted, got '" + text + "'");
    return std::size_t(*number);
}

double noise_of(const std::string& text) {
    const auto number = real_of(text);
    if (!number || !(*number >= 0))
        throw UsageError("a coefficient of variation such as 0.03 wanted, got '" + text + "'");
    return *number;
}

std::size_t above_0(const std::string& text) {
    const std::size_t number = whole(text);
    if (number == 0) throw UsageError("a number above 0 wanted, got '" + text + "'");
    return number;
}

std::string half_of(const std::string& text) {
    if (text != "development" && text != "test")
        throw UsageError("--half development or --half test wanted, got '" + text + "'");
    return text;
}

Options options_of(int argc, char** argv) {
    Options options;
    if (argc < 2) throw UsageError(usage);
    options.command = argv[1];
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const std::string value = argv[i + 1];
        if (name == "--results") options.results = value;
        else if (name == "--tables") options.tables.emplace_back(value);
        else if (name == "--study") options.study = value;
        else if (name == "--landscapes") options.landscapes = value;
        else if (name == "--half") options.half = half_of(value);
        else if (name == "--cache") options.cache = value;
        else if (name == "--tasks") options.tasks = split(value, ',');
        else if (name == "--contenders") options.contenders = split(value, ',');
        else if (name == "--peer") options.peers.push_back(value);
        else if (name == "--against") options.against = value;
        else if (name == "--seeds") options.seeds = whole(value);
        else if (name == "--first-seed") options.first_seed = whole(value);
        else if (name == "--jobs") options.jobs = above_0(value);
        else if (name == "--noise") {
            options.noises.clear();
            for (const std::string& part : split(value, ','))
                options.noises.push_back(noise_of(part));
        } else if (name == "--budgets") {
            options.budgets.clear();
            for (const std::string& part : split(value, ','))
                options.budgets.push_back(above_0(part));
        } else throw UsageError("unknown option " + name + "\n" + usage);
    }
    if (argc % 2 != 0) throw UsageError(std::string("the last option has no value\n") + usage);
    return options;
}

std::vector<std::unique_ptr<Task>> tasks_of(const Options& options) {
    std::vector<Task::Definition> definitions = synthetic_tasks();
    for (const fs::path& folder : options.tables)
        for (Task::Definition& definition : table_tasks(folder))
            definitions.push_back(std::move(definition));
    const auto wanted = [&](const std::string& name) {
        return options.tasks.empty() || contains(options.tasks, name);
    };
    const auto in_half = [&](const Task::Definition& definition) {
        return options.half.empty() || held_back(definition) == (options.half == "test");
    };
    if (!options.study.empty() && wanted("simulated_h100") && options.half != "test")
        definitions.push_back(simulated_h100(options.study, options.cache, options.jobs));
    if (!options.landscapes.empty())
        for (Task::Definition& definition : simulated_tasks(
                 options.landscapes, options.cache, options.jobs, [&](const std::string& name) {
                     return wanted(name) && in_half({.name = name, .what = {}, .parameters = {}});
                 }))
            definitions.push_back(std::move(definition));
    std::vector<std::unique_ptr<Task>> tasks;
    for (Task::Definition& definition : definitions)
        if (wanted(definition.name) && in_half(definition))
            tasks.push_back(std::make_unique<Task>(std::move(definition)));
    for (const std::string& name : options.tasks)
        if (none_of(tasks, [&](const auto& task) { return task->name() == name; }))
            throw UsageError("no task '" + name +
                             "'; tables need --tables, the simulated study --study, other "
                             "simulated ones --landscapes");
    return tasks;
}

void describe(const Options& options) {
    fmt::print(
        "| task | half | configurations | fail | good | default's regret | what it is "
        "|\n|---|---|---:|---:|---:|---:|---|\n");
    for (const auto& task : tasks_of(options))
        fmt::print("| {} | {} | {} | {:.1f} % | {:.3f} %{} | {:.1f} % | {} |\n", task->name(),
                   task->half(), task->configurations(), task->failing_share() * 100,
                   task->good_share() * 100,
                   task->success_share() > 0
                       ? fmt::format(" (best {:g} %)", task->success_share() * 100)
                       : "",
                   task->regret_of_default() * 100, task->what());
}

void run_all(const Options& options) {
    const auto tasks = tasks_of(options);
    std::vector<std::string> contenders =
        options.contenders.empty() ? own_contenders() : options.contenders;
    contenders.insert(contenders.end(), options.peers.begin(), options.peers.end());
    std::set<RunKey> done;
    for (const Run& run : read_runs(options.results)) done.insert(run.key);
    struct Job {
        const Task* task;
        std::string contender;
        RunKey key;
        std::vector<std::size_t> looks;  ///< ascending; the last is the budget
    };
    std::vector<Job> jobs;
    for (std::size_t seed = options.first_seed; seed < options.first_seed + options.seeds;
         ++seed)  // outermost: a run that is cut short is fair
        for (const auto& task : tasks)
            for (const double noise : options.noises)
                for (const std::string& contender : contenders) {
                    std::vector<std::size_t> missing;
                    for (const std::size_t budget : options.budgets)
                        if (!done.contains(
                                {task->name(), name_of_contender(contender), noise, budget, seed}))
                            missing.push_back(budget);
                    sort(missing);
                    const auto add = [&](std::vector<std::size_t> looks) {
                        jobs.push_back({task.get(),
                                        contender,
                                        {task->name(), name_of_contender(contender), noise,
                                         looks.back(), seed},
                                        looks});
                    };
                    if (!knows_budget(contender) && !missing.empty()) add(std::move(missing));
                    else
                        for (const std::size_t budget : missing) add({budget});
                }
    fmt::print(stderr, "{} runs to do, {} done before\n", jobs.size(), done.size());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::string problem;
    const auto work = [&] {
        std::map<std::string, std::unique_ptr<Contender>>
            mine;  // a peer's process serves all runs of one thread
        try {
            for (std::size_t i = next++; i < jobs.size(); i = next++) {
                const Job& job = jobs[i];
                auto& one = mine[job.contender];
                if (!one) one = contender(job.contender);
                const std::vector<Run> results =
                    run(*job.task, *one, job.key, job.looks, workers_of(job.contender));
                const std::lock_guard lock(mutex);
                for (const Run& result : results) append_run(options.results, result);
            }
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex);
            problem = error.what();
            next = jobs.size();
        }
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < options.jobs; ++i) threads.emplace_back(work);
    work();
    threads.clear();
    if (!problem.empty()) throw UsageError(problem);
}

/// Of the tasks and contenders that are named; of all where none is.
std::vector<Run> runs_of(const Options& options) {
    const auto wanted = [](const std::vector<std::string>& names, const std::string& name) {
        return names.empty() || contains(names, name);
    };
    std::vector<Run> runs;
    for (Run& run : read_runs(options.results))
        if (wanted(options.tasks, run.key.task) && wanted(options.contenders, run.key.contender))
            runs.push_back(std::move(run));
    if (runs.empty()) throw UsageError("no results in " + options.results.string());
    const auto ran = [&](const Run& run) { return run.key.contender == options.against; };
    if (!options.against.empty() && none_of(runs, ran))
        throw UsageError("--against: no run of '" + options.against + "' in " +
                         options.results.string());
    return runs;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Options options = options_of(argc, argv);
        if (options.command == "tasks") describe(options);
        else if (options.command == "run") run_all(options);
        else if (options.command == "aggregate")
            fmt::print("{}", aggregate_of(runs_of(options),
                                          options.against.empty() ? "bayesian" : options.against));
        else throw UsageError(usage);
    } catch (const Error& error) {
        fmt::print(stderr, "convergence: {}\n", error.what());
        return 2;
    }
    return 0;
}
