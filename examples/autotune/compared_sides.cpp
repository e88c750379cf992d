// SPDX-License-Identifier: Apache-2.0
#include "compared_sides.hpp"

#include "output.hpp"
#include "plan.hpp"
#include "study_journal.hpp"

#include "servetune/detail/base/normal.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace autotune {

using namespace servetune;

namespace {

constexpr std::size_t most_failures = 2;  ///< of its own, of one side
constexpr std::size_t most_unreliable =
    3;  ///< unsound measurements, or failures that were not its own

}  // namespace

bool Measured::open(bool quiet) {
    if (!quiet)
        hooks.say = [this](const std::string& line) {
            put_text(stderr, (measuring.empty() ? "" : measuring + ": ") + line + "\n");
        };
    StudyFile file = arguments.load();
    for (const auto& missing : {missing_models(file), missing_devices(file), missing_power(file),
                                set_by_own_environment(file)})
        if (!missing.empty()) throw UsageError(missing.front());
    if (file.starts_processes())
        hooks.watchdog = watchdog_for(file.processes().stop_within_seconds);
    setup = set_up(std::move(file), folder, hooks);
    if (!setup.problem->replicates_inform)
        throw UsageError(
            arguments.study.string() +
            ": its evaluator gives the same answer every time; there is nothing to compare");
    journal = open_journal(folder, setup, false);
    if (!journal) return false;
    if (setup.file.starts_processes()) end_what_was_left(setup);
    study = std::make_unique<Study>(*setup.problem, *setup.strategy, *journal,
                                    Study::Options{setup.file.seed});
    first_here = study->trials().size();
    return true;
}

void Side::look() {
    values.clear();
    measured.clear();
    log_lines.clear();
    lengths.clear();
    failures = unreliable = broken = 0;
    seconds = 0;
    const auto here = [&](const Trial& trial) { return trial.id >= of->first_here ? 1U : 0U; };
    for (const Trial& trial : of->study->trials()) {
        if (trial.configuration != configuration) continue;
        seconds += trial.cost_seconds();
        if (const Failure* failure = trial.failure()) {
            const bool own = teaches(failure->kind);
            (own ? failures : unreliable) += here(trial);
            (own ? why_failed : why_unreliable) =
                fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
            if (own) log_lines = failure->log_lines;
        }
        const Measurement* measurement = trial.measurement();
        if (measurement == nullptr) continue;
        if (std::string why = why_unusable(*measurement); !why.empty()) {
            unreliable += here(trial);
            why_unreliable = std::move(why);
            continue;
        }
        measured.push_back(measurement);
        values.push_back(measurement->metrics.find(needed.front())->second.value);
        WorkLengths::add(lengths, measurement->metrics);
        for (const Limit& limit : of->setup.problem->objective.limits)
            if (const auto holds = limit.holds(measurement->metrics); holds != true) {
                ++broken;
                why_broken =
                    holds ? limit.broken_text(measurement->metrics) : limit.unjudged_text();
                break;
            }
    }
}

std::string Side::why_unusable(const Measurement& measurement) const {
    for (const std::string& metric : needed) {
        const auto found = measurement.metrics.find(metric);
        if (found == measurement.metrics.end()) return "the result has no " + metric;
        if (!(found->second.value > 0)) return metric + " is not above 0, and ratios are compared";
    }
    return of->setup.problem->decision.believes(measurement) ? "" : "the audit refuses it";
}

bool Side::measure(std::size_t pair, std::uint64_t seed, const std::stop_token& stop) {
    const auto open = of->study->open_trial(configuration);
    const std::uint64_t id =
        open ? *open : of->study->propose(configuration, fmt::format("pair {}", pair + 1)).id;
    of->study->start(id);
    of->measuring = name;
    const StudySetup fresh =
        set_up(of->arguments.load(), of->folder, of->hooks);  // its engine ends with it
    Outcome outcome = fresh.evaluator->evaluate(configuration, {id, seed, "", stop});
    const auto* failure = std::get_if<Failure>(&outcome);
    if (stop.stop_requested() && failure != nullptr && failure->kind == FailureKind::cancelled)
        return false;
    of->study->tell(id, std::move(outcome));
    look();
    return true;
}

std::optional<Ending> ended_early(const Side& a, const Side& b) {
    if (a.failures >= most_failures)
        return Ending{"a_fails", "A fails, so there is nothing to compare with: " + a.why_failed,
                      environment_error};
    if (b.failures >= most_failures)
        return Ending{"b_fails", "B fails: " + b.why_failed, answer_is_no};
    for (const Side* side : {&a, &b})
        if (side->unreliable >= most_unreliable)
            return Ending{"unreliable",
                          fmt::format("the measurements of {} cannot be relied on: {}", side->name,
                                      side->why_unreliable),
                          environment_error};
    return std::nullopt;
}

std::optional<Ending> unequal_work(const Side& a, const Side& b) {
    const std::string& metric = a.of->setup.problem->objective.leading().metric;
    for (const auto& [workload, of_b] : b.lengths) {
        const auto found = a.lengths.find(workload);
        if (found == a.lengths.end()) continue;
        const bool says_nothing = share_of_equal_work(metric, of_b, found->second) == 1.0 &&
                                  share_of_equal_work(metric, found->second, of_b) == 1.0;
        if (says_nothing) continue;  // the goal does not depend on lengths
        const WorkLengths& of_a = found->second;
        const double all = (of_a.input.tokens > 0 ? of_a.input.mean() : 0) + of_a.output.mean();
        for (const bool output : {true, false}) {
            const RequestLength& mine = output ? of_b.output : of_b.input;
            const RequestLength& usual = output ? of_a.output : of_a.input;
            if (usual.tokens > 0 && other_length(mine, usual, usual.mean() / all, normal_95))
                return Ending{
                    "unreliable",
                    fmt::format("A and B did not do the same work: B has {} {} tokens a request{}, "
                                "A has {}. Fix the lengths "
                                "(`ignore_eos: true`)",
                                short_number_text(mine.mean()), output ? "output" : "input",
                                workload.empty() ? "" : " on " + workload,
                                short_number_text(usual.mean())),
                    environment_error};
        }
    }
    return std::nullopt;
}

void check_alike(const StudySetup& a, const StudySetup& b) {
    const auto measured = [](const StudySetup& setup) {
        std::map<std::string, std::string> all = setup.definition();
        const std::string data = of_later_versions + "data.";
        std::erase_if(all, [&](const auto& entry) {
            const std::string& path = entry.first;
            return !path.starts_with("objective") && !path.starts_with("workloads.") &&
                   !path.starts_with(data);
        });
        // Two checkouts of a repository have their data in different folders.
        for (const Workload& workload : setup.file.workloads) {
            std::string& text = all["workloads." + workload.name];
            const std::string place = "path=" + workload.dataset.path;
            if (const auto at = text.find(place); at != std::string::npos)
                text.erase(at, place.size());
        }
        return all;
    };
    const auto of_a = measured(a);
    const auto of_b = measured(b);
    for (const auto* list : {&of_a, &of_b})
        for (const auto& [path, text] : *list) {
            const auto in_a = of_a.find(path);
            const auto in_b = of_b.find(path);
            if (in_a != of_a.end() && in_b != of_b.end() && in_a->second == in_b->second) continue;
            const std::string_view shown = std::string_view(path).substr(
                path.starts_with(of_later_versions) ? of_later_versions.size() : 0);
            throw UsageError(fmt::format("they cannot be compared: {} of A is {}, of B {}", shown,
                                         in_a == of_a.end() ? "absent" : in_a->second,
                                         in_b == of_b.end() ? "absent" : in_b->second));
        }
}

void check_folder(const std::filesystem::path& folder, const Side& a, const Side& b) {
    bool others = a.values.size() > b.values.size() + 1 || b.values.size() > a.values.size() + 1;
    for (const Side* side : {&a, &b})
        for (const Trial& trial : side->of->study->trials())
            others = others || !((side->of == a.of && trial.configuration == a.configuration) ||
                                 (side->of == b.of && trial.configuration == b.configuration));
    if (others)
        throw UsageError(
            folder.string() +
            " holds the trials of another comparison; give this one a --directory of its own");
}

}  // namespace autotune
