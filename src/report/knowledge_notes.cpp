// SPDX-License-Identifier: Apache-2.0
#include "report_view.hpp"
#include "search/given_up.hpp"
#include "servetune/detail/study/unequal_work.hpp"

#include <fmt/format.h>

#include <cmath>

namespace servetune {

std::vector<std::string> knowledge_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const std::string& source : view.setup.knowledge)
        result.push_back(fmt::format("Knowledge: {}.", source));
    if (!view.setup.earlier.empty())
        result.push_back(
            fmt::format("Knowledge: {}, which the cache had. Its figures do not enter the verdict.",
                        view.setup.earlier));
    const Beliefs& beliefs = view.setup.beliefs;
    for (const GivenUp& one : given_up(beliefs, *view.setup.problem, view.standings))
        result.push_back(
            fmt::format("{} was given up: {} configurations that it expected to change the goal by "
                        "{:+.0f} % changed it by {:+.0f} %.",
                        beliefs[one.source].name(), one.trials, 100 * std::expm1(one.promised),
                        100 * std::expm1(one.measured)));
    return result;
}

std::vector<std::string> quality_notes(const ReportView& view) {
    std::vector<std::string> result;
    if (value_in(view.means(view.recommendation.recommended), quality_drop)) return result;
    for (const auto& [name, value] : view.recommendation.recommended.entries()) {
        const Parameter& parameter = view.setup.problem->space.at(name);
        if (changes_answers(parameter) && value != parameter.default_value)
            result.push_back(
                fmt::format("Quality not measured: {} = {} changes the numbers a model computes "
                            "with. Compare its answers before you serve it.",
                            name, text_of(value)));
    }
    return result;
}

}  // namespace servetune
