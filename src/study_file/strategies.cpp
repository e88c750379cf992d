// SPDX-License-Identifier: Apache-2.0
#include "strategies.hpp"

#include "servetune/bayesian.hpp"
#include "servetune/quasi_random.hpp"
#include "servetune/simple_strategies.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace servetune {
namespace {

using Made = std::unique_ptr<Strategy>;

constexpr std::array<StrategyKind, 6> strategy_rows{{
    {"staged", false,
     [](const StudySetup& setup) -> Made {
         return std::make_unique<Staged>(setup.file.strategy.staged);
     }},
    {"random", true, [](const StudySetup&) -> Made { return std::make_unique<Random>(); }},
    {"exhaustive", true, [](const StudySetup&) -> Made { return std::make_unique<Exhaustive>(); }},
    {"quasi_random", true,
     [](const StudySetup& setup) -> Made {
         return std::make_unique<QuasiRandom>(setup.file.seed);
     }},
    {"local_search", false,
     [](const StudySetup&) -> Made { return std::make_unique<LocalSearch>(); }},
    {"bayesian", true,
     [](const StudySetup& setup) -> Made {
         return std::make_unique<Bayesian>(setup.bayesian_options());
     }},
}};

}  // namespace

const StrategyKind& strategy_kind(std::string_view name) {
    const auto* const row =
        std::find_if(strategy_rows.begin(), strategy_rows.end(),
                     [&](const StrategyKind& kind) { return kind.name == name; });
    if (row == strategy_rows.end())
        throw std::logic_error("the strategy '" + std::string(name) +
                               "' has no row in strategies.cpp");
    return *row;
}

std::vector<std::string> strategies_for_several_goals() {
    std::vector<std::string> names;
    for (const StrategyKind& kind : strategy_rows)
        if (kind.takes_several_goals) names.emplace_back(kind.name);
    return names;
}

std::vector<std::string> strategy_names() {
    std::vector<std::string> names;
    for (const StrategyKind& kind : strategy_rows) names.emplace_back(kind.name);
    return names;
}

}  // namespace servetune
