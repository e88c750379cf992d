// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include "first_study.hpp"
#include "machine_facts.hpp"
#include "observers.hpp"
#include "study_journal.hpp"

#include "engine/flag_facts.hpp"
#include "engine/help.hpp"
#include "engine/launcher.hpp"
#include "engine/version.hpp"
#include "host/nvidia_smi.hpp"
#include "host/start_program.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_checks.hpp"
#include "study/clocks.hpp"
#include "study/confirmation.hpp"
#include "study_file/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <set>

namespace autotune {

namespace {

using Texts = std::vector<std::string>;

std::vector<Trial> trials_in(const fs::path& folder) {
    if (!has_journal(folder)) return {};
    try {
        return SqliteJournal::read(folder).trials();
    } catch (const Error&) {
        return {};  // `run` says what is wrong with it
    }
}

/// What a trial takes before any was made.
void estimate_trial(const StudySetup& setup, Plan& plan) {
    const StudyFile& file = setup.file;
    if (const auto* replay = std::get_if<ReplayChoice>(&file.measuring)) {
        plan.trial_seconds = replay->delay_seconds;
        plan.source = "answers come from a table";
        return;
    }
    try {
        const auto began = std::chrono::steady_clock::now();
        const auto seconds =
            expected_trial_seconds(setup, setup.problem->space.default_configuration());
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        if (!seconds) return;
        const bool simulates = std::holds_alternative<SimulateChoice>(file.measuring);
        plan.trial_seconds = simulates ? took.count() : *seconds;
        plan.source = simulates ? "answers are computed" : "by the cost model of the default";
    } catch (const Error&) {
        plan.trial_seconds.reset();
        plan.source.clear();
    }
}

}  // namespace

std::string duration_text(double seconds) {
    if (seconds < 1) return "less than 1 s";
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.3g} h", seconds / 3600);
}

std::string size_text(double configurations) {
    constexpr double countable = 10'000;
    if (configurations < countable) return fmt::format("{:.0f}", configurations);
    return fmt::format("about 10^{:.0f}", std::round(std::log10(configurations)));
}

std::optional<double> Plan::seconds() const {
    if (!trial_seconds || by_time) return at_most_seconds;
    const double all = *trial_seconds * double(trials + 2 * stress_trials + report_trials);
    return at_most_seconds ? std::min(all, *at_most_seconds) : all;
}

std::string Plan::text() const {
    return fmt::format("{} configuration{}; {}", size_text(configurations),
                       configurations == 1 ? "" : "s", trials_text());
}

std::string Plan::trials_text() const {
    std::string result;
    if (done > 0 && trials == 0 && !by_time) result = fmt::format("all {} trials are done", done);
    else {
        const std::string bound = at_most ? "at most " : "about ";
        if (done > 0) result = fmt::format("trials done: {}; ", done);
        result += by_time    ? "as many trials as time allows"
                  : done > 0 ? fmt::format("{}{} left", bound, trials)
                             : bound + counted_text(trials, "trial");
        if (to_confirm > 0)
            result +=
                fmt::format(" ({} to search, {} to confirm)", trials - to_confirm, to_confirm);
        if (stress_trials > 0) result += fmt::format(", then {} under stress", stress_trials);
        if (report_trials > 0 && !by_time)
            result += fmt::format(", then {} with the report's workloads", report_trials);
        result += time_needed_text();
    }
    return result + (reaches_all ? ""
                                 : fmt::format("; the budget is not enough for {} configurations, "
                                               "and the strategy is to measure all",
                                               size_text(configurations)));
}

std::string Plan::time_needed_text() const {
    const std::optional<double> all = seconds();
    if (!all) return "; what a trial takes is not known before the first";
    if (all != at_most_seconds)
        return fmt::format(", {}{} ({})", *all < 1 ? "" : "about ", duration_text(*all), source);
    const std::string end = fmt::format(", ends after {} at the latest", duration_text(*all));
    return trial_seconds.value_or(0) > 0
               ? end + fmt::format(", time for about {:.0f} trials ({})",
                                   std::floor(*all / *trial_seconds), source)
               : end;
}

double first_trial_seconds(const StudySetup& setup) {
    Plan plan;
    estimate_trial(setup, plan);
    return plan.trial_seconds.value_or(0);
}

double next_time_of_day(int minutes) {
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    localtime_r(&now, &day);
    day.tm_hour = minutes / 60;
    day.tm_min = minutes % 60;
    day.tm_sec = 0;
    std::time_t then = 0;
    do {
        day.tm_isdst = -1;
        then = std::mktime(&day);
        ++day.tm_mday;
    } while (then <= now);
    return double(then);
}

namespace {

/// Trials of a search that measures each of so many configurations once, and the default again when
/// that is due; infinite where they cannot be counted.
double each_once(const StudySetup& setup, double repeated) {
    if (!setup.problem->feasible.finite()) return std::numeric_limits<double>::infinity();
    const double configurations = setup.problem->feasible.size();
    const std::size_t every =
        setup.problem->replicates_inform ? setup.file.default_again_every() : 0;
    const double again = every == 0 ? 0 : std::floor((configurations - 1) / double(every));
    return configurations + std::max(repeated, again);
}

}  // namespace

std::optional<TrialsExpected> trials_expected(const StudySetup& setup, const Budget& budget,
                                              std::span<const Trial> history) {
    const Problem& problem = *setup.problem;
    std::set<Configuration> seen;
    std::size_t repeated = 0, confirming = 0;
    for (const Trial& trial : search_history(problem, history))
        if (trial.fell()) continue;
        else if (confirms(trial)) ++confirming;
        else if (!seen.insert(trial.configuration).second) ++repeated;
    double all =
        confirming == 0 ? each_once(setup, double(repeated)) : double(seen.size() + repeated);
    if (problem.is_confirmed()) all += double(std::max(confirming, 2 * least_rounds));
    if (all < double(budget.trials))
        return TrialsExpected{std::size_t(all), !problem.is_confirmed()};
    if (budget.trials >= trials_of_a_time) return std::nullopt;
    return TrialsExpected{budget.trials};
}

std::string changed_since(const StudySetup& setup, const fs::path& folder) {
    if (!has_journal(folder)) return "";
    try {
        const std::string changes = SqliteJournal::read(folder).changes_in(setup.definition());
        if (changes.empty()) return "";
        return folder.string() +
               " holds trials of a study that differs from this one: 'run' wants --accept-changes "
               "or another --directory:" +
               changes;
    } catch (const Error& error) {
        return error.what();
    }
}

namespace {

/// `31 of 200 configurations, drawn evenly, do`.
std::string how_many_start(const SimulateEvaluator& evaluator, const FeasibleSet& feasible) {
    constexpr std::size_t most = 200;
    const bool all = feasible.finite() && feasible.size() <= double(most);
    const std::size_t tries = all ? std::size_t(feasible.size()) : most;
    Rng rng(1);
    std::size_t starting = 0;
    for (std::size_t i = 0; i < tries; ++i)
        if (!evaluator.started(all ? feasible.at(double(i)) : feasible.sample(rng)).failure)
            ++starting;
    return fmt::format("{} of {} configurations{} do", starting, tries,
                       all ? "" : ", drawn evenly,");
}

}  // namespace

std::string memory_text(const StudySetup& setup) {
    const StudyFile& file = setup.file;
    if (!std::holds_alternative<DeployChoice>(file.measuring) || file.machine.chip().empty())
        return "";
    const Configuration default_ = setup.problem->space.default_configuration();
    const std::int64_t devices = file.composition->devices_of(default_);
    constexpr const char* unchecked = "memory was not checked: ";
    try {
        const Catalogue catalogue = file.catalogue();
        const HardwareSpec chip = catalogue.hardware(file.machine.chip());
        if (!served_model(file.model, catalogue.all_models()))
            return fmt::format("{}nothing is known of {}: {}; the default takes {} x {}", unchecked,
                               file.model, unknown_text(file.model, chip, catalogue), devices,
                               chip.name);
        const auto evaluator = simulated(file);
        const auto started = evaluator->started(default_);
        if (!started.failure) return "";
        if (started.failure->kind == FailureKind::unsupported && started.start.cause.empty())
            return unchecked + started.failure->message;
        constexpr std::size_t tries = 200;
        if (const std::string why = why_nothing_starts(*evaluator, *setup.problem, tries);
            !why.empty())
            return "by the cost model " + why;
        return fmt::format("by the cost model the default does not start on {} x {}, {}: {}",
                           devices, chip.name, how_many_start(*evaluator, setup.problem->feasible),
                           started.failure->message);
    } catch (const Error&) {
        return "";  // it knows no such model or hardware
    }
}

Plan plan_of(const StudySetup& setup, const fs::path& folder) {
    Plan plan;
    const StudyFile& file = setup.file;
    plan.configurations = setup.problem->feasible.size();
    const Spent spent = spent_in(setup, file.budget, trials_in(folder));
    plan.done = spent.searched;
    plan.by_time = !spent.all;
    const TrialsExpected all = spent.all.value_or(TrialsExpected{});
    plan.trials = all.trials - std::min(all.trials, plan.done);
    plan.at_most = all.at_most;
    if (all.at_most && plan.done == 0)
        plan.to_confirm = all.trials - search_trials(*setup.problem, all.trials);
    plan.reaches_all =
        file.strategy.name != "exhaustive" || plan.by_time || !setup.problem->feasible.finite() ||
        each_once(setup, 0) <= double(search_trials(*setup.problem, file.budget.trials));
    plan.report_trials = 2 * file.report_workloads.size();
    plan.stress_trials = file.is_stressed() ? 2 - std::min<std::size_t>(2, spent.stressed) : 0;
    if (std::isfinite(file.budget.wall_clock_seconds))
        plan.at_most_seconds = file.budget.wall_clock_seconds;
    if (file.budget_until) {
        const double until = next_time_of_day(*file.budget_until) - unix_seconds();
        plan.at_most_seconds = std::min(plan.at_most_seconds.value_or(until), until);
    }
    if (spent.trials_seconds > 0) {
        plan.trial_seconds = spent.each_seconds();
        plan.source = "as the trials so far took";
    } else estimate_trial(setup, plan);
    if (const std::size_t workers = 1 + setup.neighbours.size();
        workers > 1 && plan.trial_seconds) {
        *plan.trial_seconds /= double(workers);
        plan.source += fmt::format(", {} trials at once", workers);
    }
    return plan;
}

namespace {

/// Devices and cores that the study gives its engines and this machine does not have.
Texts missing_devices(const StudyFile& file) {
    Texts result;
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy == nullptr || deploy->elsewhere()) return result;
    const DeployOptions& options = deploy->options.deploy;
    const std::string place = file.source.at() + "`";
    const std::vector<Device> devices =
        file.machine.found ? file.machine.found->all : std::vector<Device>{};
    std::string here;
    std::vector<GpuState> states;
    for (const Device& device : devices) {
        here +=
            (here.empty() ? "" : ", ") + std::to_string(device.index) + " (" + device.uuid + ")";
        states.push_back({.index = device.index, .uuid = device.uuid});
    }
    const auto names =
        options.gpus.empty() || devices.empty() ? std::nullopt : named_gpus(options.gpus);
    for (const std::string& name : names.value_or(Texts{}))
        if (!name.starts_with("MIG-") && only_named(std::vector{name}, states).empty())
            result.push_back(place + "gpus` of `deploy` lists " + name +
                             ", and nvidia-smi finds only " + here + " here");
    for (const int core : options.cores)
        if (!deploy->container && !may_start_on(core))
            result.push_back(place + "cores` of `deploy` lists " + std::to_string(core) +
                             ", which this machine does not have or does not give to this process");
    return result;
}

/// Files of workloads that are not there, of a study that sends them to a server.
Texts missing_data(const StudyFile& file) {
    Texts result;
    const bool sends = std::holds_alternative<DeployChoice>(file.measuring) ||
                       std::holds_alternative<AttachChoice>(file.measuring);
    if (!sends) return result;
    for (const auto* list : {&file.workloads, &file.report_workloads})
        for (const Workload& workload : *list) {
            if (workload.dataset.path.empty()) continue;
            try {
                const fs::path data = file_of(workload.dataset);
                std::error_code unknown;
                if (!fs::exists(data, unknown))
                    result.push_back(file.source.at() + "the workload '" + workload.name +
                                     "' draws from " + data.string() + ", which does not exist");
            } catch (const Error& error) {
                result.push_back(file.source.at() + "the workload '" + workload.name +
                                 "': " + error.what());
            }
        }
    return result;
}

}  // namespace

Texts missing_for(const StudyFile& file) {
    Texts result = missing_models(file);
    for (const auto& more : {missing_devices(file), missing_data(file), missing_power(file),
                             set_by_own_environment(file)})
        result.insert(result.end(), more.begin(), more.end());
    return result;
}

namespace {

/// Whether its engines are programs that this process finds.
bool starts_program_here(const StudyFile& file) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    return deploy != nullptr && !deploy->options.deploy.environment.contains("PATH") &&
           !deploy->container && !deploy->elsewhere();
}

/// What is known of the flags that an engine takes: the stored facts of the version that the study
/// names, and its own --help, of which a line goes to `asked`. A newer version, and one that lists
/// its flags itself, may have further ones.
std::vector<FlagFacts> known_flags(const StudyFile& file, const Engine& engine, bool ask,
                                   Texts& asked) {
    std::vector<FlagFacts> result;
    const std::string version = file.composition->version_of(engine);
    std::vector<FlagFacts> known = known_versions(file.source.search_spaces, engine.name);
    if (version.empty() && !known.empty()) result.push_back(std::move(known.back()));
    else if (auto stored = facts_for(file.source.search_spaces, engine.name, version)) {
        stored->complete &= compare_to_bound(version, known.back().version) <= 0;
        result.push_back(std::move(*stored));
    }
    if (!ask) return result;
    const InstalledFlags installed = installed_flags(engine);
    if (installed.flags.empty()) {
        asked.push_back(installed.why_not);
        return result;
    }
    asked.push_back(fmt::format("'{}' lists {} flags", installed.command, installed.flags.size()));
    for (FlagFacts& stored : result) stored.complete = false;
    result.push_back(FlagFacts::of_installed(engine.name, installed.command, installed.flags));
    return result;
}

std::string place_of_flag(const StudyFile& file, const Engine& engine, const std::string& flag) {
    if (!file.source.places.contains(flag))
        for (const PassedSetting& one : file.composition->passed(engine))
            if (one.flag == flag || one.option == flag) return file.source.at(one.parameter);
    return file.source.at(flag);
}

}  // namespace

Texts flag_problems(const StudySetup& setup, bool ask_installed, Texts& asked) {
    constexpr int draws = 300;
    Texts result;
    const StudyFile& file = setup.file;
    std::map<std::string, std::vector<FlagFacts>> facts;
    for (const Engine& engine : file.composition->engines())
        facts[engine.name] = known_flags(file, engine, ask_installed && file.has_commands(), asked);
    Rng rng(file.seed);
    for (int i = 0; i <= draws; ++i) {
        const Configuration configuration = i == 0 ? setup.problem->space.default_configuration()
                                                   : setup.problem->feasible.sample(rng);
        const Engine& engine = file.composition->engine_of(configuration);
        for (const ServerGroup& group : file.composition->groups(configuration)) {
            const Command command =
                file.composition->render(configuration, {file.model}, group.role);
            for (const FlagFacts& known : facts[engine.name]) {
                Texts flags;
                const Texts problems = known.problems(command, engine, &flags);
                for (std::size_t k = 0; k < problems.size(); ++k)
                    if (std::string text = place_of_flag(file, engine, flags[k]) + problems[k];
                        !contains(result, text))
                        result.push_back(std::move(text));
            }
        }
    }
    return result;
}

void refuse(const Texts& problems) {
    if (!problems.empty()) throw ParseErrors(problems);
}

void refuse_flags(const StudySetup& setup, const fs::path& folder) {
    if (!std::holds_alternative<DeployChoice>(setup.file.measuring) || has_journal(folder)) return;
    Texts asked;
    Texts problems = flag_problems(setup, false, asked);
    if (!problems.empty() && starts_program_here(setup.file))
        problems = flag_problems(setup, true, asked);
    refuse(problems);
}

Texts missing_here(const StudySetup& setup) {
    Texts result;
    const StudyFile& file = setup.file;
    if (const auto* attach = std::get_if<AttachChoice>(&file.measuring);
        attach != nullptr && !anybody_answers(attach->options.url))
        result.push_back("nothing listens on " + file.secrets(attach->options.url) +
                         ": start the server before 'run'");
    if (const auto* command = std::get_if<CommandChoice>(&file.measuring))
        if (!command->words.empty() && !contains(command->words.front(), '/') &&
            find_program(command->words.front()).empty())
            result.push_back("'run' needs the program " + command->words.front() +
                             ", which is not on the PATH here");
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy == nullptr) return result;
    if (deploy->options.deploy.launcher)
        for (std::string& remark : deploy->options.deploy.launcher->remarks())
            result.push_back(std::move(remark));
    for (const Engine& engine : file.composition->engines())
        if (const std::string missing = model_file_missing(engine, file.model); !missing.empty())
            result.push_back(missing + ": name the file under `model`");
    if (starts_program_here(file))
        for (const Engine& engine : file.composition->engines())
            if (!engine.launch.empty() && find_program(engine.launch.front()).empty())
                result.push_back("'run' needs the program " + engine.launch.front() + " (" +
                                 engine.name + "), which is not on the PATH here");
    return result;
}

Texts warnings_of(const StudySetup& setup, const fs::path& folder, bool here) {
    Texts result = setup.file.warnings;
    for (const Texts& more : {setup.file.composition->notes(), here ? missing_here(setup) : Texts{},
                              Texts{memory_text(setup), changed_since(setup, folder)}})
        std::copy_if(more.begin(), more.end(), std::back_inserter(result),
                     [](const std::string& text) { return !text.empty(); });
    return result;
}

std::pair<std::string, std::string> sentence_and_memory(const std::string& why) {
    const auto end = std::min(why.find('\n'), why.size());
    return {why.substr(0, end), why.substr(std::min(end + 1, why.size()))};
}

std::string context_text(const StudyFile& file) {
    const auto served = served_model(file.model, file.catalogue().all_models());
    const std::int64_t context = served ? served->model.context_tokens : 0;
    for (const Workload& workload : file.workloads)
        if (context > 0) try {
                const auto requests = plan_requests(workload).requests;
                const auto longer = count_if(requests, [&](const PlannedRequest& one) {
                    return one.input_tokens + one.output_tokens > context;
                });
                if (longer > 0)
                    return fmt::format(
                        "the model's context of {} tokens is shorter than the "
                        "prompts of {} with their answers ({} of {})",
                        context, workload.name, longer, requests.size());
            } catch (const Error&) {
                continue;  // `run` says what is wrong with its data
            }
    return "";
}

Texts facts_to_know(const StudyFile& file, const std::string& hardware) {
    Texts result;
    const Catalogue catalogue = file.catalogue();
    const std::string& said = hardware.empty() ? file.machine.chip() : hardware;
    const std::vector<HardwareSpec> known = catalogue.all_hardware();
    if (const auto chip =
            hardware.empty() ? hardware_in(said, known) : std::optional(catalogue.hardware(said)))
        for (std::string note : {chip->note_of_unverified(), why_ambiguous(said, *chip, known)})
            if (!note.empty()) result.push_back(std::move(note));
    if (const auto served = served_model(file.model, catalogue.all_models())) {
        result.insert(result.end(), served->model.notes.begin(), served->model.notes.end());
        for (std::string note : {note_of(*served, file.model), context_text(file)})
            if (!note.empty()) result.push_back(std::move(note));
    }
    const bool believed = any_of(file.knowledge, [](const KnowledgeChoice& choice) {
        return choice.kind == KnowledgeChoice::Kind::cost_model;
    });
    if (believed || !hardware.empty() || std::holds_alternative<SimulateChoice>(file.measuring))
        for (std::string& doubt : doubts_of_cost_model(file, hardware))
            result.push_back(std::move(doubt));
    return result;
}

}  // namespace autotune
