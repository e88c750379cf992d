// SPDX-License-Identifier: Apache-2.0
#include "space/decision_diagram.hpp"

namespace servetune {

LevelRuns::LevelRuns(const SearchSpace& space) : space_(space), fixed_(space.parameters().size()) {
    const auto apart = [&](std::size_t parameter, const Value& value) {
        if (!has_runs(space.parameters()[parameter])) return;
        const auto level = space.parameters()[parameter].level_of(value);
        if (!level) return;
        fixed_[parameter].push_back(static_cast<std::uint32_t>(*level));
        fixed_[parameter].push_back(static_cast<std::uint32_t>(*level) + 1U);
    };
    for (std::size_t i = 0; i < fixed_.size(); ++i) apart(i, Unset{});
    for (const Parameter& parameter : space.parameters())
        for (const Condition& condition : parameter.active_when)
            for (const Value& value : condition.values)
                apart(space.index_of(condition.parent), value);
    for (const Constraint& constraint : space.constraints()) {
        if (const auto* forbid = std::get_if<Forbid>(&constraint))
            for (const auto& [name, values] : forbid->values)
                for (const Value& value : values) apart(space.index_of(name), value);
        if (const auto* allow = std::get_if<Allow>(&constraint))
            for (const Allow::Row& row : allow->rows)
                for (std::size_t k = 0; k < row.size(); ++k)
                    if (row[k]) apart(space.index_of(allow->names[k]), *row[k]);
    }
    for (std::vector<std::uint32_t>& places : fixed_) sort_once(places);
}

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
        const auto done = count_if(rule, [&](std::size_t i) { return decided[i]; });
        return done > 0 && done < rule.size();
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
        return has_runs(space.parameters()[i]) && any_of(rules_of[i], [&](std::size_t r) {
                   return any_of(rules[r], [&](std::size_t other) {
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
            if (!all_of(conditions,
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

ValueClasses::Tables ValueClasses::classes(const SearchSpace& space, std::size_t which,
                                           std::size_t most_combinations) {
    const std::vector<std::size_t>& scope = space.scope(which);
    std::vector<std::vector<Value>> levels;
    std::size_t combinations = 1;
    for (const std::size_t i : scope) {
        const Parameter& parameter = space.parameters()[i];
        const std::size_t count = parameter.level_count() + 1;
        if (parameter.continuous() || has_runs(parameter) ||
            count > most_combinations / combinations)
            return {};
        combinations *= count;
        levels.emplace_back();
        for (std::size_t level = 0; level + 1 < count; ++level)
            levels.back().push_back(parameter.level(level));
    }
    // Each level's column of answers, over the combinations of the others in a fixed order.
    std::vector<std::vector<std::vector<bool>>> columns;
    std::map<std::size_t, Slot> slots;
    for (std::size_t k = 0; k < scope.size(); ++k) columns.emplace_back(levels[k].size() + 1);
    std::vector<std::size_t> chosen(scope.size(), 0);
    for (std::size_t n = 0; n < combinations; ++n) {
        std::size_t rest = n;
        for (std::size_t k = 0; k < scope.size(); ++k) {
            chosen[k] = rest % (levels[k].size() + 1);
            rest /= levels[k].size() + 1;
            slots[scope[k]] = chosen[k] == 0 ? Slot{Slot::State::inactive, nullptr}
                                             : Slot{Slot::State::active, &levels[k][chosen[k] - 1]};
        }
        const bool answer = space.is_broken(which, [&](std::size_t i) { return slots[i]; });
        for (std::size_t k = 0; k < scope.size(); ++k) columns[k][chosen[k]].push_back(answer);
    }
    Tables tables;
    for (std::size_t k = 0; k < scope.size(); ++k) {
        std::map<std::vector<bool>, std::uint32_t> numbers;
        Classes& of_parameter = tables.emplace_back();
        for (std::size_t level = 0; level < columns[k].size(); ++level) {
            const auto [at, is_new] =
                numbers.emplace(columns[k][level], static_cast<std::uint32_t>(numbers.size()));
            of_parameter.of_level.push_back(at->second);
            if (is_new)
                of_parameter.firsts.push_back(level == 0 ? std::nullopt
                                                         : std::optional(levels[k][level - 1]));
        }
    }
    return tables;
}

AllowedRows::Range AllowedRows::narrowed(Range range, std::size_t column,
                                         std::uint32_t level) const {
    const auto begin = rows_.begin() + std::ptrdiff_t(range.from);
    const auto end = rows_.begin() + std::ptrdiff_t(range.to);
    const auto from =
        std::partition_point(begin, end, [&](const Row& row) { return row[column] < level; });
    const auto to =
        std::partition_point(from, end, [&](const Row& row) { return row[column] == level; });
    return {std::size_t(from - rows_.begin()), std::size_t(to - rows_.begin())};
}

std::optional<AllowedRows> AllowedRows::of(const SearchSpace& space, std::size_t which,
                                           const std::vector<std::size_t>& sequence) {
    const auto* allow = std::get_if<Allow>(&space.constraints()[which]);
    if (allow == nullptr) return std::nullopt;
    const std::vector<std::size_t>& scope = space.scope(which);
    AllowedRows result;
    std::vector<std::size_t> cells;  // of the columns, in a row as it is written
    for (const std::size_t parameter : sequence) {
        const auto found = std::find(scope.begin(), scope.end(), parameter);
        if (found == scope.end()) continue;
        if (space.parameters()[parameter].continuous()) return std::nullopt;
        result.parameters_.push_back(parameter);
        cells.push_back(std::size_t(found - scope.begin()));
    }
    std::vector<std::map<std::optional<Value>, std::optional<std::uint32_t>>> known(
        cells.size());  // each value is looked up once
    for (const Allow::Row& written : allow->rows) {
        Row row;
        for (std::size_t k = 0; k < cells.size(); ++k) {
            const std::optional<Value>& cell = written[cells[k]];
            const auto [at, is_new] = known[k].try_emplace(cell);
            if (is_new && !cell) at->second = inactive;
            else if (is_new)
                if (const auto level = space.parameters()[result.parameters_[k]].level_of(*cell))
                    at->second = static_cast<std::uint32_t>(*level);
            const std::optional<std::uint32_t>& level = at->second;
            if (!level) break;  // no level: no configuration is this row
            row.push_back(*level);
        }
        if (row.size() == cells.size()) result.rows_.push_back(std::move(row));
    }
    sort(result.rows_);
    return result;
}

}  // namespace servetune
