// SPDX-License-Identifier: Apache-2.0
#include "study_profile.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study_file/measuring/kind.hpp"

#include <cmath>
#include <set>

namespace servetune {
namespace {

/// Of a positive number, as text.
std::string nearest_power_of_two(double number) {
    return short_number_text(std::exp2(std::round(std::log2(number))));
}

std::string class_of_workload(const Workload& workload) {
    std::string result(name_in(dataset_kinds, workload.dataset.kind));
    const auto& [input, output] =
        std::pair(workload.dataset.input_tokens, workload.dataset.output_tokens);
    if (input && *input > 0) result += " " + nearest_power_of_two(static_cast<double>(*input));
    if (output && *output > 0)
        result += " to " + nearest_power_of_two(static_cast<double>(*output));
    const Arrival& arrival = workload.arrival;
    result += ", " + std::string(name_in(arrival_kinds, arrival.kind));
    if (arrival.in_flight > 0)
        result += " " + nearest_power_of_two(static_cast<double>(arrival.in_flight));
    if (arrival.requests_per_second > 0)
        result += " " + nearest_power_of_two(arrival.requests_per_second);
    return result;
}

/// `a + b`.
std::string sum_text(const std::set<std::string>& parts) {
    std::string result;
    for (const std::string& part : parts) result += (result.empty() ? "" : " + ") + part;
    return result;
}

}  // namespace

std::string workload_class(const std::vector<Workload>& workloads) {
    std::set<std::string> classes;
    for (const Workload& workload : workloads) classes.insert(class_of_workload(workload));
    return sum_text(classes);
}

void add_profile(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const StudyFile& file = setup.file;
    if (!file.kept.empty()) {
        for (const auto& [path, text] : file.kept)
            if (path.starts_with(profile_paths)) definition[path] = text;
        return;
    }
    const MeasuringKind& kind = kind_of(file);
    if (kind.machine == nullptr) return;
    std::set<std::string> engines;
    std::set<std::string> versions;
    for (const Engine& engine : file.composition->engines()) {
        const std::string version = kind.version(file, engine, definition);
        engines.insert(engine.name);
        versions.insert(engine.name + " " + (version.empty() ? unknown_version : version));
    }
    const auto add = [&](const char* name, const std::string& text) {
        definition[profile_paths + name] = text;
    };
    add("machine", kind.machine(file));
    add("model", file.model);
    add("engine", sum_text(engines));
    add("version", sum_text(versions));
    add("workloads", workload_class(file.workloads));
}

}  // namespace servetune
