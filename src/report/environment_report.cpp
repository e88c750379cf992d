// SPDX-License-Identifier: Apache-2.0
// What of the surroundings changed between trials: a part of a difference in speed may be theirs.
#include "host/environment.hpp"
#include "report_view.hpp"

#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

/// All environments in which a configuration was measured, with what of its nodes matters.
std::vector<Environment> environments_of(const ReportView& view,
                                         const Configuration& configuration) {
    std::vector<Environment> result;
    for (const Trial& trial : view.search) {
        if (trial.configuration != configuration || trial.measurement() == nullptr) continue;
        Environment all = trial.environment ? *trial.environment : Environment{};
        for (const auto& [name, value] : trial.measurement()->place)
            if (name != name_of_node) all.emplace(name, value);
        if (trial.environment || !all.empty()) result.push_back(std::move(all));
    }
    return result;
}

/// `trials ran on nodes of several kinds, ...; node devices: A (5 trials), B (3 trials)` for each
/// fact of the nodes in which trials differ.
std::vector<std::string> different_nodes(std::span<const Trial> trials) {
    std::map<std::string, std::map<std::string, std::size_t>> counts;
    for (const Trial& trial : trials)
        if (trial.measurement() != nullptr)
            for (const auto& [name, value] : trial.measurement()->place)
                if (name != name_of_node) ++counts[name][value];
    std::vector<std::string> result;
    for (const auto& [name, values] : counts) {
        if (values.size() < 2) continue;
        std::string text;
        for (const auto& [value, times] : values)
            text += (text.empty() ? "" : ", ") + value + " (" + std::to_string(times) +
                    (times == 1 ? " trial)" : " trials)");
        result.push_back(
            "trials ran on nodes of several kinds, keep to one by the template's nodeSelector; " +
            name + ": " + text);
    }
    return result;
}

/// What they say of one name, each once.
std::string values_in(const std::vector<Environment>& environments, const std::string& name) {
    std::set<std::string> values;
    for (const Environment& one : environments) {
        const auto found = one.find(name);
        values.insert(found == one.end() ? "not set" : found->second);
    }
    std::string result;
    for (const std::string& value : values) result += (result.empty() ? "" : " and ") + value;
    return result;
}

}  // namespace

std::vector<std::string> environment_changes(std::span<const Trial> trials) {
    std::vector<std::string> result = different_nodes(trials);
    const Environment* before = nullptr;
    for (const Trial& trial : trials) {
        if (!trial.environment) continue;
        if (before != nullptr)
            for (const std::string& one : differences(*before, *trial.environment))
                result.push_back("from trial " + std::to_string(trial.id) + " on " + one);
        before = &*trial.environment;
    }
    return result;
}

std::string environment_difference(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const Configuration& other =
        result.keep_default && result.best ? *result.best : result.recommended;
    if (other == result.default_configuration) return "";
    const auto of_default = environments_of(view, result.default_configuration);
    const auto of_other = environments_of(view, other);
    if (of_default.empty() || of_other.empty()) return "";
    std::set<std::string> names;
    for (const auto* list : {&of_default, &of_other})
        for (const Environment& one : *list)
            for (const auto& entry : one) names.insert(entry.first);
    std::string text;
    for (const std::string& name : names) {
        const std::string before = values_in(of_default, name), after = values_in(of_other, name);
        if (before != after)
            text += (text.empty() ? "" : "; ") + name + ": " + before + " -> " + after;
    }
    return text.empty() ? ""
                        : "The default and the best were measured in different environments (" +
                              text + "): a part of the difference may be theirs.";
}

}  // namespace servetune
