// SPDX-License-Identifier: Apache-2.0
#include "readers.hpp"

#include "base/nearest.hpp"
#include "engine/load_level.hpp"
#include "engine/per_device.hpp"
#include "keys.hpp"
#include "load/capacity.hpp"
#include "load/http.hpp"
#include "secrets.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/detail/deploy/quality_gate.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/outcome.hpp"
#include "trial/metric_text.hpp"

#include <array>
#include <cstdlib>

namespace servetune {
namespace {

/// Goals that ask for the most load that keeps the limits: the word, the metric, and the arrival
/// that finds it.
struct LoadGoal {
    std::string_view word;
    std::string_view metric;
    Arrival::Kind arrival;
};
constexpr std::array<LoadGoal, 5> load_goals{{
    {"request_rate", sustained_requests_per_second, Arrival::Kind::largest_rate},
    {"sustained_requests_per_second_per_gpu", "sustained_requests_per_second_per_gpu",
     Arrival::Kind::largest_rate},
    {"goodput_requests_per_second_per_gpu", "goodput_requests_per_second_per_gpu",
     Arrival::Kind::largest_rate},
    {"concurrency", sustained_concurrency, Arrival::Kind::largest_concurrency},
    {"goodput", "goodput_requests_per_second", Arrival::Kind::largest_rate},
}};

const LoadGoal* load_goal(std::string_view word) {
    const auto found = find_if(load_goals, [&](const LoadGoal& goal) { return goal.word == word; });
    return found == load_goals.end() ? nullptr : &*found;
}

/// `words`: of a load test, whose metrics we name; other evaluators have names of their own.
std::string goal_metric(const std::string& word, Direction direction, bool words) {
    if (!words) return word;
    const LoadGoal* goal = direction == Direction::maximize ? load_goal(word) : nullptr;
    return goal != nullptr ? std::string(goal->metric) : metric_of_word(word);
}

Objective goals_and_limits(const Yaml& node, bool words) {
    if (!node.is_mapping())
        node.fail_wanted(
            "a mapping such as {maximize: total_tokens_per_second, limits: [\"ttft_p95 <= 2s\"]}");
    node.check_keys(keys::objective);
    std::vector<Goal> goals;  // in the file's order: the first one leads
    for (const auto& [key, value] : node.entries()) {
        if (key != keys::objective.maximize.name && key != keys::objective.minimize.name) continue;
        const Direction direction =
            key == keys::objective.maximize.name ? Direction::maximize : Direction::minimize;
        if (value.is_sequence() && value.items().empty())
            value.fail_wanted("a metric or a list of metrics");
        for (const Yaml& item : value.items_or_one()) {
            const std::string metric = goal_metric(item.text(), direction, words);
            if (words && direction == Direction::maximize && less_is_better(metric))
                item.fail("less of '" + metric + "' is better: write it under `minimize`");
            if (any_of(goals, [&](const Goal& goal) { return goal.metric == metric; }))
                item.fail("'" + metric + "' is a goal already");
            goals.push_back({metric, direction});
        }
    }
    if (goals.empty())
        node.fail(
            "an objective has a goal: maximize or minimize, with a metric or a list of metrics");
    if (goals.size() > 2) node.fail("at most two goals wanted; make limits of the others");
    Objective result(std::move(goals));
    AllErrors errors;
    if (const Yaml* limits = node.find(keys::objective.limits))
        for (const Yaml& limit : limits->is_scalar() ? std::vector<Yaml>{*limits} : limits->items())
            errors.in([&] {
                try {
                    result.limits.push_back(Limit::parse(limit.text(), words));
                } catch (const ParseError& error) {
                    limit.fail(error.what());
                }
                const Limit& bound = result.limits.back();
                if (words && bound.metric.starts_with("success_ratio") && bound.at_least &&
                    bound.bound > 1)
                    limit.fail("a share is at most 1: write 99% or 0.99");
                for (const Limit& other : result.limits)
                    if (other.metric == bound.metric && other.at_least != bound.at_least &&
                        !other.keeps(bound.bound))
                        limit.fail("no figure keeps both this and '" + other.text() + "'");
            });
    errors.throw_any();
    return result;
}

/// The figures of a single workload have plain names.
void use_plain_names(StudyFile& study) {
    if (study.workloads.size() != 1) return;
    const auto use_plain = [&](std::string& metric) {
        const auto [name, workload] = MetricKey::of(metric);
        if (workload == study.workloads.front().name) metric = std::string(name);
    };
    for (Goal& goal : study.objective.goals) use_plain(goal.metric);
    for (Limit& limit : study.objective.limits) use_plain(limit.metric);
}

}  // namespace

void read_objective(const Yaml& node, bool words, StudyFile& study) {
    study.objective = goals_and_limits(node, words);
    use_plain_names(study);
}

void look_for_load(const Yaml& root, StudyFile& study) {
    const Yaml& objective = root.at(keys::study.objective);
    if (const Yaml* maximize = objective.find(keys::objective.maximize))
        for (const Yaml& item : maximize->items_or_one()) {
            const LoadGoal* goal = load_goal(item.text());
            if (goal == nullptr) continue;
            for (Workload& workload : study.workloads) {
                Arrival& arrival = workload.arrival;
                const bool same = arrival.kind == goal->arrival ||
                                  (arrival.searched() && goal->word.starts_with("goodput"));
                const bool of_rates = arrival.kind == Arrival::Kind::rate ||
                                      arrival.kind == Arrival::Kind::concurrency ||
                                      arrival.kind == Arrival::Kind::all_at_once;
                if (workload.dataset.kind == Dataset::Kind::multi_turn || !(same || of_rates))
                    item.fail(
                        "the largest load is looked for with single requests at a constant "
                        "rate or concurrency, the same for all workloads, and '" +
                        workload.name + "' has another dataset or arrival");
                if (same) continue;
                arrival.kind = goal->arrival;
            }
        }
    const bool searched = any_of(
        study.workloads, [](const Workload& workload) { return workload.arrival.searched(); });
    if (!searched) return;
    if (none_of(study.objective.limits, grows_with_load))
        objective.fail(
            "no limit grows with load, which the largest load needs: add one such as limits: "
            "[\"ttft_p95 <= 500ms\"]");
    const bool goodput = any_of(study.objective.goals, [](const Goal& goal) {
        return goal.metric.starts_with("goodput_");
    });
    const ServiceLimits service = service_limits(study.objective.limits);
    if (goodput && !service.time_to_first_token_seconds && !service.time_per_output_token_seconds &&
        !service.latency_seconds)
        objective.fail(
            "goodput counts requests that keep a limit on ttft, tpot or latency: add one for all "
            "workloads");
    for (const auto* list : {&study.workloads, &study.report_workloads})
        for (const Workload& workload : *list) {
            if (!workload.arrival.searched() || !workload.requests) continue;
            try {
                const CapacitySearch possible(workload.arrival, std::size_t(*workload.requests));
            } catch (const UsageError& error) {
                root.at(list == &study.workloads ? keys::study.workloads
                                                 : keys::study.report_workloads)
                    .fail("'" + workload.name + "': " + error.what());
            }
        }
    if (const Yaml* space = root.find(keys::study.space))
        for (const auto& [name, node] : space->entries())
            if (is_load_level(name))
                node.fail("the workloads look for their largest load already; leave this out");
}

namespace {

/// Why a study of this kind never measures power, whatever the machine is; empty: it may.
std::string never_measures_power(const StudyFile& file) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy == nullptr)
        return "power is measured where the engine is started: `evaluator: {deploy: ...}`";
    return deploy->options.measure.watch
               ? ""
               : "power is measured while the machine is watched: leave out `watch: off`";
}

/// Why `quality_drop` cannot be a goal, or a limit where the file has no `quality`.
std::string why_no_quality(const StudyFile& file) {
    if (file.quality) return "it can be a limit, and no goal";
    const bool deploys = std::holds_alternative<DeployChoice>(file.measuring);
    return deploys ? "answers are compared for `quality`: add `quality: {}` to the study"
                   : "only `evaluator: {deploy: ...}` with `quality` compares answers";
}

}  // namespace

namespace {

/// The metrics of the load tests of a study, and why it has others not.
struct LoadTestMetrics {
    std::vector<std::string> known{"success_ratio", std::string(tokens_per_second_per_user)};
    std::map<std::string, std::string, std::less<>> missing{};

    explicit LoadTestMetrics(const StudyFile& file) {
        const bool own_devices = !std::holds_alternative<AttachChoice>(file.measuring);
        const bool priced = file.machine.usd_per_device_hour.has_value();
        const std::vector<std::string> without_price = per_device_metrics(false);
        const auto all_look_for = [&](Arrival::Kind kind) {  // combined, each must have it
            return all_of(file.workloads,
                          [&](const Workload& w) { return w.arrival.kind == kind; });
        };
        const bool rate = all_look_for(Arrival::Kind::largest_rate);
        if (rate) known.emplace_back(sustained_requests_per_second);
        if (all_look_for(Arrival::Kind::largest_concurrency))
            known.emplace_back(sustained_concurrency);
        for (const std::string& name : per_device_metrics(true)) {
            const bool needs_price = !contains(without_price, name);
            if (name.starts_with("sustained_") && !rate) continue;
            add(name, !own_devices ? "cannot be had: the devices of a server that runs already are "
                                     "not known"
                      : needs_price && !priced
                          ? "needs a price: write `hardware: {price_per_hour: DOLLARS}`, for all "
                            "devices together"
                          : "");
        }
        const BenchmarkResult figures;
        for_each_figure(
            figures, [&](const std::string& name, const std::optional<double>&) { add(name, ""); });
        const std::string no_power = never_measures_power(file);
        for (const std::string& name : power_metrics())
            add(name, no_power.empty() ? "" : "cannot be had: " + no_power);
        add(std::string(ready_seconds_metric),
            own_devices ? "" : "cannot be had: `attach` measures a server that runs already");
        missing.emplace(quality_drop, "cannot be had: " + why_no_quality(file));
    }

    /// What is wrong with a metric; empty: nothing.
    [[nodiscard]] std::string why_not(std::string_view name) const {
        if (contains(known, name)) return "";
        const auto* why = entry_in(missing, name);
        return why != nullptr ? *why : "no metric";
    }

private:
    void add(const std::string& name, const std::string& why_missing) {
        if (why_missing.empty()) known.push_back(name);
        else missing.emplace(name, why_missing);
    }
};

}  // namespace

void check_objective_of_load_test(const StudyFile& file, const Yaml& objective) {
    AllErrors errors;
    const LoadTestMetrics metrics(file);
    const auto check = [&](const std::string& metric, const Yaml& at, bool any) {
        const auto [name, workload] = MetricKey::of(metric);
        std::vector<std::string> workloads = names_in(file.workloads);
        std::string wrong;
        if (!workload.empty() && !contains(workloads, workload))
            wrong = "'" + metric + "' names no workload of the study; it has: " +
                    listed(nearest_first(workload, workloads));
        else if (const std::string why = any ? "" : metrics.why_not(name); why == "no metric")
            wrong = "a load test has no metric '" + metric +
                    "'; it has: " + listed(nearest_first(name, metrics.known));
        else if (!why.empty()) wrong = "'" + metric + "' " + why;
        if (!wrong.empty()) errors.in([&] { at.fail(wrong); });
    };
    for (const Goal& goal : file.objective.goals) check(goal.metric, objective, false);
    const Yaml* limits = objective.find(keys::objective.limits);
    for (std::size_t i = 0; i < file.objective.limits.size(); ++i) {
        const std::string& metric = file.objective.limits[i].metric;
        const std::string_view name = MetricKey::of(metric).name;
        const bool measured_beside =
            name.starts_with("trial_") || (file.quality && name == quality_drop);
        check(metric, limits->items_or_one()[i], measured_beside);
    }
    errors.throw_any();
}

std::string larger_looks_better(const StudyFile& study) {
    const std::string& metric = study.objective.leading().metric;
    if (study.objective.leading().direction != Direction::maximize || !grows_with_devices(metric) ||
        study.machine.devices.value_or(1) < 2)
        return "";
    const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
    if (deploy != nullptr && deploy->options.fill_devices) return "";
    constexpr std::array<std::string_view, 3> layouts{
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"};
    for (const Parameter& parameter : study.composition->parameters())
        if ((parameter.name == "roles" || contains(layouts, parameter.concept_name)) &&
            parameter.level_count() > 1)
            return "layouts of different numbers of devices compete by " + metric +
                   ", and the largest will look best; maximize " + per_device(metric) +
                   " to compare what a device does";
    return "";
}

}  // namespace servetune
