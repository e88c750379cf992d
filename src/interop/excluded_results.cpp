// SPDX-License-Identifier: Apache-2.0
#include "excluded_results.hpp"

#include "repeats.hpp"

#include <algorithm>
#include <map>
#include <variant>

namespace servetune {

std::vector<std::string> excluded_by_rules(const std::vector<PublishedResult>& results,
                                           const Imported& imported, const StudySetup& setup) {
    const CommandReader commands(setup.file.composition->engines(),
                                 setup.file.source.search_spaces);
    std::vector<Constraint> rules = setup.problem->space.constraints();
    std::erase_if(rules, [](const Constraint& rule) {
        return std::holds_alternative<Allow>(rule);
    });  // what the other workloads measured
    const SearchSpace space(setup.problem->space.parameters(), std::move(rules));
    std::map<std::string, std::vector<std::size_t>> blocks;
    for (const PublishedResult& result : results) {
        const bool is_row =
            std::none_of(imported.unplaced.begin(), imported.unplaced.end(),
                         [&](const Unplaced& one) { return one.result.index == result.index; });
        if (!is_row || !result.failure.empty()) continue;
        const Assignment values =
            read_command(result, *setup.file.composition, commands, setup.file.model).parsed.values;
        for (const std::string& why : space.violations(space.completed(values)))
            blocks[why].push_back(result.index);
    }
    std::vector<std::string> remarks;
    for (const auto& [why, which] : blocks) {
        remarks.push_back(numbered("block", which) + (which.size() == 1 ? " is" : " are") +
                          " in the table, and the study does not search " +
                          (which.size() == 1 ? "it: " : "them: ") + why);
    }
    return remarks;
}

}  // namespace servetune
