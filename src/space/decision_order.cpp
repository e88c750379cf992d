// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/decision_order.hpp"

#include "servetune/detail/space/level_runs.hpp"

namespace servetune {

DecisionOrder::DecisionOrder(const SearchSpace& space) {
    const std::size_t n = space.parameters().size();
    constraints_of.resize(n);
    std::vector<std::vector<std::size_t>>
        rules;  // parameters of each: constraints first, then conditions
    for (std::size_t which = 0; which < space.constraints().size(); ++which) {
        rules.push_back(space.scope(which));
        for (const std::size_t i : space.scope(which)) constraints_of[i].push_back(which);
    }
    std::vector<std::size_t> child_of_rule;
    std::vector<bool> is_parent(n, false);
    for (std::size_t i = 0; i < n; ++i) {
        const Parameter& parameter = space.parameters()[i];
        if (parameter.active_when.empty()) continue;
        rules.push_back({i});
        child_of_rule.push_back(i);
        for (const Condition& condition : parameter.active_when) {
            rules.back().push_back(space.index_of(condition.parent));
            is_parent[rules.back().back()] = true;
        }
    }
    std::vector<bool> decided(n, false);
    const auto is_open = [&](const std::vector<std::size_t>& rule) {
        const auto done =
            std::count_if(rule.begin(), rule.end(), [&](std::size_t i) { return decided[i]; });
        return done > 0 && done < static_cast<std::ptrdiff_t>(rule.size());
    };
    const auto record_open = [&] {
        open_constraints.emplace_back();
        open_children.emplace_back();
        for (std::size_t r = 0; r < rules.size(); ++r) {
            if (!is_open(rules[r])) continue;
            if (r < space.constraints().size()) open_constraints.back().push_back(r);
            else open_children.back().push_back(child_of_rule[r - space.constraints().size()]);
        }
    };
    std::vector<std::vector<std::size_t>> rules_of(n);
    for (std::size_t r = 0; r < rules.size(); ++r)
        for (const std::size_t i : rules[r]) rules_of[i].push_back(r);
    const auto waits = [&](std::size_t i) {
        return has_runs(space.parameters()[i]) &&
               std::any_of(rules_of[i].begin(), rules_of[i].end(), [&](std::size_t r) {
                   return std::any_of(rules[r].begin(), rules[r].end(), [&](std::size_t other) {
                       return !decided[other] && !has_runs(space.parameters()[other]) &&
                              r < space.constraints().size();
                   });
               });
    };
    while (sequence.size() < n) {
        record_open();
        std::size_t best = n;
        bool best_waits = true;
        auto fewest = std::numeric_limits<std::ptrdiff_t>::max();
        for (const std::size_t i : space.parents_first()) {
            if (decided[i]) continue;
            const auto& conditions = space.parameters()[i].active_when;
            if (!std::all_of(conditions.begin(), conditions.end(),
                             [&](const Condition& c) { return decided[space.index_of(c.parent)]; }))
                continue;
            // Only the rules of i change: count how many it opens less how many it closes.
            std::ptrdiff_t change = 0;
            for (const std::size_t r : rules_of[i]) change -= is_open(rules[r]) ? 1 : 0;
            decided[i] = true;
            for (const std::size_t r : rules_of[i]) change += is_open(rules[r]) ? 1 : 0;
            decided[i] = false;
            const bool must_wait = waits(i);
            if (must_wait == best_waits ? change < fewest : best_waits) {
                best_waits = must_wait;
                fewest = change;
                best = i;
            }
        }
        decided[best] = true;
        sequence.push_back(best);
        is_free.push_back(constraints_of[best].empty() && !is_parent[best]);
    }
}

}  // namespace servetune
