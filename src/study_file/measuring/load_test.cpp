// SPDX-License-Identifier: Apache-2.0
#include "load_test.hpp"

#include "engine/per_device.hpp"
#include "load/capacity.hpp"
#include "load/http.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/deploy/quality_gate.hpp"
#include "servetune/detail/host/power.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/error.hpp"
#include "study_file/all_errors.hpp"
#include "study_file/keys.hpp"
#include "study_file/secrets.hpp"

#include <algorithm>
#include <cstdlib>

namespace servetune {

std::string key_from(const std::string& name, const StudyFile& file) {
    if (name.empty() || !file.kept.empty()) return "";  // a study that is only read asks no server
    const char* key = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (key == nullptr)
        throw UsageError(file.source.file.string() + ": the environment has no " + name +
                         ", which `api_key_env` names");
    CollectSecrets::found(key, "${" + name + "}");
    check_header_text(
        file.source.file.string() + ": the key in " + name + ", which `api_key_env` names", key);
    return key;
}

void add_facts(const StudyFile& file, MeasureOptions& options) {
    const Catalogue catalogue = file.catalogue();
    options.models = catalogue.all_models();
    options.limits = file.objective.limits;
    // These compare with another configuration than the best so far.
    if (file.strategy.name == "local_search" || file.strategy.name == "staged") options.give_up = 0;
    if (!file.machine.chip().empty())
        options.hardware = hardware_in(file.machine.chip(), catalogue.all_hardware());
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

void check_objective_of_load_test(const StudyFile& file, const Yaml* objective) {
    AllErrors errors;
    const auto fail = [&](const std::string& under, const Yaml* at, const std::string& message) {
        errors.in([&] {
            if (at != nullptr) at->fail(message);
            throw ParseError(file.source.file.string() + ": '" + under + "': " + message);
        });
    };
    const Yaml* limits = objective == nullptr ? nullptr : objective->find(keys::objective.limits);
    std::vector<std::string> known{"success_ratio", std::string(tokens_per_second_per_user)};
    const bool own_devices = !std::holds_alternative<AttachChoice>(
        file.measuring);  // those of somebody else's server are not known
    if (own_devices)
        for (std::string& name : per_device_metrics(file.machine.usd_per_device_hour.has_value()))
            if (!name.starts_with("sustained_")) known.push_back(std::move(name));
    const auto all_look_for =
        [&](Arrival::Kind kind) {  // a combined figure needs that of every workload
            return std::all_of(file.workloads.begin(), file.workloads.end(),
                               [&](const Workload& w) { return w.arrival.kind == kind; });
        };
    if (all_look_for(Arrival::Kind::largest_rate))
        known.emplace_back(sustained_requests_per_second);
    if (all_look_for(Arrival::Kind::largest_rate) && own_devices)
        known.push_back(std::string(sustained_requests_per_second) + "_per_gpu");
    if (all_look_for(Arrival::Kind::largest_concurrency)) known.emplace_back(sustained_concurrency);
    const BenchmarkResult none;
    for_each_figure(none, [&](const std::string& name, const std::optional<double>&) {
        known.push_back(name);
    });
    const std::string no_power = never_measures_power(file);
    if (no_power.empty())
        for (std::string& name : power_metrics()) known.push_back(std::move(name));
    const std::vector<std::string> of_devices = per_device_metrics(true);
    const auto unknown = [&](const std::string& metric, const char* key, const Yaml* at) {
        const std::string name(MetricKey::of(metric).name);
        if (is_power_metric(name)) fail(key, at, "'" + metric + "' cannot be had: " + no_power);
        else if (name == quality_drop)
            fail(key, at, "'" + metric + "' cannot be had: " + why_no_quality(file));
        else if (name.starts_with("sustained_") ||
                 std::find(of_devices.begin(), of_devices.end(), name) == of_devices.end())
            fail(key, at,
                 "a load test has no metric '" + metric +
                     "'; it has: " + listed(nearest_first(name, known)));
        else if (!own_devices)
            fail(key, at,
                 "'" + metric +
                     "' cannot be had: the devices of a server that runs already are not known");
        else
            fail(key, at,
                 "'" + metric +
                     "' needs a price: write `hardware: {price_per_hour: DOLLARS}`, for all "
                     "devices together");
    };
    const auto check_workload = [&](const std::string& metric, const char* key, const Yaml* where) {
        const std::string workload(MetricKey::of(metric).workload);
        if (workload.empty()) return;
        std::vector<std::string> names;
        for (const Workload& one : file.workloads) names.push_back(one.name);
        if (std::find(names.begin(), names.end(), workload) == names.end())
            fail(key, where,
                 "'" + metric + "' names no workload of the study; it has: " +
                     listed(nearest_first(workload, names)));
    };
    for (const Goal& goal : file.objective.goals) {
        check_workload(goal.metric, "objective", objective);
        const std::string_view name = MetricKey::of(goal.metric).name;
        if (std::find(known.begin(), known.end(), name) == known.end())
            unknown(goal.metric, "objective", objective);
    }
    if (file.quality) known.emplace_back(quality_drop);
    for (std::size_t i = 0; i < file.objective.limits.size();
         ++i) {  // one that is never there would never be broken
        const std::string& metric = file.objective.limits[i].metric;
        const std::string name(MetricKey::of(metric).name);
        const Yaml* at = limits == nullptr       ? nullptr
                         : limits->is_sequence() ? &limits->items()[i]
                                                 : limits;
        check_workload(metric, "objective.limits", at);
        if (std::find(known.begin(), known.end(), name) != known.end() ||
            name.starts_with("trial_"))
            continue;
        unknown(metric, "objective.limits", at);
    }
    errors.throw_any();
}

}  // namespace servetune
