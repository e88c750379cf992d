// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/feasible_set.hpp"

#include "servetune/detail/space/feasible_walks.hpp"

namespace servetune {

FeasibleSet::FeasibleSet(const SearchSpace& space, std::size_t most_states, MayBeEmpty)
    : space_(space), order_(space), by_name_(order_.sequence), classes_(space), runs_(space) {
    std::sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
        return space.parameters()[a].name < space.parameters()[b].name;
    });
    for (const Parameter& parameter : space.parameters())
        finite_ = finite_ && !parameter.continuous();
    for (std::size_t which = 0; which < space.constraints().size(); ++which) {
        const std::optional<AllowedRows>& rows =
            rows_.emplace_back(AllowedRows::of(space, which, order_.sequence));
        all_fit_.push_back(rows ? rows->nothing_decided() : std::vector<AllowedRows::Range>{});
    }
    Prefix prefix = empty_prefix();
    size_ = counted(prefix, 0, most_states).count;
}

std::uint32_t FeasibleSet::choice_count(const Prefix& prefix, std::size_t depth) const {
    const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
    if (!space_.is_active(parameter, [&](std::size_t i) { return prefix.slots[i]; })) return 0;
    return static_cast<std::uint32_t>(parameter.level_count()) + (parameter.continuous() ? 1U : 0U);
}

std::uint32_t FeasibleSet::choice(std::size_t depth, std::uint32_t i, std::uint32_t count) const {
    if (count == 0) return inactive;
    return i + 1 == count && space_.parameters()[order_.sequence[depth]].continuous() ? real : i;
}

/// Sets the parameter at `depth`, except a real; false when that certainly breaks a constraint.
bool FeasibleSet::decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const {
    const std::size_t i = order_.sequence[depth];
    prefix.levels[i] = level;
    if (level == inactive) prefix.slots[i] = {Slot::State::inactive, nullptr};
    else if (level != real) {
        prefix.values[i] = space_.parameters()[i].level(level);
        prefix.slots[i] = {Slot::State::active, &prefix.values[i]};
    }
    const std::vector<std::size_t>& checks = order_.constraints_of[i];
    return std::none_of(checks.begin(), checks.end(),
                        [&](std::size_t which) { return breaks(prefix, i, which); });
}

/// Whether what was decided last certainly breaks a constraint.
bool FeasibleSet::breaks(Prefix& prefix, std::size_t parameter, std::size_t which) const {
    const std::optional<AllowedRows>& rows = rows_[which];
    if (!rows)
        return space_.is_broken(which, [&](std::size_t i) { return seen(prefix, which, i); });
    const std::size_t column = rows->column_of(parameter);
    std::vector<AllowedRows::Range>& fitting = prefix.fitting[which];
    fitting[column + 1] = rows->narrowed(fitting[column], column, prefix.levels[parameter]);
    return fitting[column + 1].empty();
}

const FeasibleSet::State& FeasibleSet::counted(Prefix& prefix, std::size_t depth,
                                               std::size_t most_states) {
    if (depth == depth_end()) return complete_;
    Key state = key(prefix, depth);
    if (const auto known = states_.find(state); known != states_.end()) return known->second;
    State found;
    const std::uint32_t choices = choice_count(prefix, depth);
    if (choices > 0 && order_.is_free[depth]) {
        const State& below = counted(prefix, depth + 1, most_states);
        found = {choices * below.count, below.weight * choices};
    } else if (choices > 0 && in_runs(depth)) count_runs(found, prefix, depth, most_states);
    else
        for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i, ++branches_) {
            if (const std::uint32_t taken = choice(depth, i, choices);
                decide(prefix, depth, taken)) {
                const State& below = counted(prefix, depth + 1, most_states);
                found.count += below.count;
                found.weight += below.weight * share(depth, taken, taken);
            }
            undo(prefix, depth);
        }
    check_cost(most_states);
    return states_[std::move(state)] = std::move(found);
}

void FeasibleSet::check_cost(std::size_t most_states) const {
    if (states_.size() < most_states && branches_ <= 4 * most_states) return;
    throw SpaceError("the constraints tie too many parameters together: over " +
                     std::to_string(most_states) +
                     " states; name fewer parameters ('others: default'), or list candidates");
}

void FeasibleSet::count_runs(State& state, Prefix& prefix, std::size_t depth,
                             std::size_t most_states) {
    const std::size_t parameter = order_.sequence[depth];
    std::vector<std::uint32_t> firsts = runs_.firsts(
        parameter, [&](std::size_t i) { return prefix.slots[i]; }, branches_);
    check_cost(most_states);
    firsts.push_back(static_cast<std::uint32_t>(space_.parameters()[parameter].level_count()));
    std::vector<WideNumber> up_to;
    for (std::size_t i = 0; i + 1 < firsts.size(); ++i, ++branches_) {
        if (decide(prefix, depth, firsts[i])) {
            const State& below = counted(prefix, depth + 1, most_states);
            if (below.count > 0) {
                const std::uint32_t last = firsts[i + 1] - 1;
                state.runs.push_back({firsts[i], last, state.count});
                state.count += below.count * (last - firsts[i] + 1.0);
                state.weight += below.weight * share(depth, firsts[i], last);
                up_to.push_back(state.weight);
            }
        }
        undo(prefix, depth);
    }
    for (std::size_t i = 0; i < up_to.size(); ++i)
        state.runs[i].share_up_to = ratio(up_to[i], state.weight);
}

/// A parameter as a constraint sees it: what is counted for one level holds for its whole class.
Slot FeasibleSet::seen(const Prefix& prefix, std::size_t which, std::size_t parameter) const {
    if (prefix.slots[parameter].state == Slot::State::undecided || !classes_.known(which))
        return prefix.slots[parameter];
    const std::vector<std::size_t>& scope = space_.scope(which);
    const auto k =
        static_cast<std::size_t>(std::find(scope.begin(), scope.end(), parameter) - scope.begin());
    const std::uint32_t level = prefix.levels[parameter];
    return classes_.first_of(which, k, level == inactive ? std::nullopt : std::optional(level));
}

/// What an open constraint still remembers of the decided parameters in its scope.
void FeasibleSet::append_state(const Prefix& prefix, std::size_t which, Key& key) const {
    const auto slot_of = [&](std::size_t i) { return seen(prefix, which, i); };
    if (space_.is_settled(which, slot_of)) {
        key.push_back(settled);
        return;
    }
    const std::vector<std::size_t>& scope = space_.scope(which);
    const bool has_classes = classes_.known(which);
    if (const auto* rule = std::get_if<Require>(&space_.constraints()[which]);
        rule != nullptr && !has_classes)
        return rule->expression.append_state(
            [&](std::size_t i) { return LevelRuns::state_of(space_, scope[i], slot_of); }, key);
    const bool levels_matter = !std::holds_alternative<Forbid>(
        space_.constraints()[which]);  // else: all of its values so far
    for (std::size_t k = 0; k < scope.size(); ++k) {
        const std::uint32_t level = prefix.levels[scope[k]];
        if (prefix.slots[scope[k]].state == Slot::State::undecided) key.push_back(real);
        else if (has_classes)
            key.push_back(
                classes_.of(which, k, level == inactive ? std::nullopt : std::optional(level)));
        else key.push_back(levels_matter ? level : 0);
    }
}

FeasibleSet::Key FeasibleSet::key(const Prefix& prefix, std::size_t depth) const {
    Key result{static_cast<std::uint32_t>(depth)};
    for (const std::size_t which : order_.open_constraints[depth])
        append_state(prefix, which, result);
    for (const std::size_t child : order_.open_children[depth])
        result.push_back(space_.may_be_active(space_.parameters()[child],
                                              [&](std::size_t i) { return prefix.slots[i]; })
                             ? 1
                             : 0);
    return result;
}

}  // namespace servetune
