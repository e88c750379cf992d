// SPDX-License-Identifier: Apache-2.0
#include "servetune/feasible_set.hpp"

#include "decision_diagram.hpp"

#include <unordered_map>

namespace servetune {

/// A number of at least 0 that may be far beyond the range of a double (five hundred parameters of
/// a thousand levels are 1e1500 configurations), with a double's 53 bits.
class WideNumber {
public:
    WideNumber() = default;
    /// `value` is finite and at least 0.
    explicit WideNumber(double value) : mantissa_(value) { normalize(); }

    WideNumber& operator+=(const WideNumber& other) {
        if (mantissa_ == 0) return *this = other;
        if (other.mantissa_ == 0) return *this;
        if (other.steps_ > steps_) {
            const WideNumber mine = *this;
            *this = other;
            return *this += mine;
        }
        if (steps_ - other.steps_ <= 1)
            mantissa_ += other.steps_ == steps_ ? other.mantissa_ : other.mantissa_ / step;
        normalize();
        return *this;
    }
    friend WideNumber operator*(WideNumber number, double factor) {
        number.mantissa_ *= factor;
        number.normalize();
        return number;
    }
    /// The quotient of two numbers; `whole` is not 0.
    friend double ratio(const WideNumber& part, const WideNumber& whole) {
        return std::ldexp(part.mantissa_ / whole.mantissa_,
                          static_cast<int>(part.steps_ - whole.steps_) * step_bits);
    }

private:
    static constexpr int step_bits = 512;
    static constexpr double step = 0x1p512;

    /// The mantissa is 0 or in [2^-256, 2^256).
    void normalize() {
        if (mantissa_ >= 0x1p256) {
            mantissa_ /= step;
            ++steps_;
        } else if (mantissa_ < 0x1p-256 && mantissa_ > 0) {
            mantissa_ *= step;
            --steps_;
        }
    }

    double mantissa_ = 0;  ///< the number is mantissa * 2^(512 steps)
    std::int32_t steps_ = 0;
};

namespace {

/// A set of constraints that cannot be met together though any one less could (deletion filter), as
/// text. `is_empty(space)`: whether a space has no feasible configuration.
std::string conflict_text(const SearchSpace& space, const auto& is_empty) {
    std::vector<Constraint> needed = space.constraints();
    for (std::size_t i = needed.size(); i-- > 0;) {
        std::vector<Constraint> rest = needed;
        rest.erase(rest.begin() + std::ptrdiff_t(i));
        if (is_empty(SearchSpace(space.parameters(), rest))) needed = std::move(rest);
    }
    std::string result;
    for (const Constraint& constraint : needed)
        result.append(result.empty() ? "'" : " and '").append(text_of(constraint)).append("'") +=
            reason(constraint).empty() ? "" : " (" + reason(constraint) + ")";
    return result;
}

}  // namespace

class FeasibleSet::Diagram {
public:
    using Visit = std::function<bool(const Configuration&)>;

    Diagram(const SearchSpace& space, std::size_t most_states);

    [[nodiscard]] double size() const { return size_; }
    [[nodiscard]] bool finite() const { return finite_; }
    [[nodiscard]] std::size_t states() const { return states_.size(); }
    [[nodiscard]] Configuration at(double index) const;
    void for_each(const Visit& visit) const;
    [[nodiscard]] Configuration at_point(const std::vector<double>& point) const;
    [[nodiscard]] Configuration sample(Rng& rng, std::size_t attempts) const;

private:
    using Key = DiagramKey;
    static constexpr std::uint32_t inactive = AllowedRows::inactive;
    static constexpr std::uint32_t real = 0xfffffffeU;
    static constexpr std::uint32_t settled = 0xfffffffdU;

    /// A half made configuration.
    struct Prefix {
        std::vector<Value> values;
        std::vector<Slot> slots;
        std::vector<std::uint32_t> levels;
        std::vector<std::vector<AllowedRows::Range>>
            fitting;  ///< by constraint with rows: those left after so many of its columns
    };

    /// Levels of an integer with runs that are the same below; only those with anything below.
    struct Run {
        std::uint32_t first = 0;
        std::uint32_t last = 0;
        double count_before = 0;
        double share_up_to = 0;  ///< of what is drawn, [0, 1]
    };
    /// What lies below a state.
    struct State {
        double count = 0;
        WideNumber weight{};  ///< in draws
        std::vector<Run> runs{};
    };
    /// What one number of [0, 1) chooses, and its place within that, [0, 1).
    struct Chosen {
        std::uint32_t choice = inactive;
        double place = 0;
    };

    [[nodiscard]] std::size_t depth_end() const { return order_.sequence.size(); }
    [[nodiscard]] Prefix empty_prefix() const {
        const std::size_t n = depth_end();
        return {std::vector<Value>(n), std::vector<Slot>(n),
                std::vector<std::uint32_t>(n, inactive), all_fit_};
    }
    [[nodiscard]] std::uint32_t choice_count(const Prefix& prefix, std::size_t depth) const;
    [[nodiscard]] std::uint32_t choice(std::size_t depth, std::uint32_t i,
                                       std::uint32_t count) const;
    bool decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const;
    bool breaks(Prefix& prefix, std::size_t parameter, std::size_t which) const;
    [[nodiscard]] Slot seen(const Prefix& prefix, std::size_t which, std::size_t parameter) const;
    void undo(Prefix& prefix, std::size_t depth) const {
        prefix.slots[order_.sequence[depth]] = {};
        prefix.levels[order_.sequence[depth]] = inactive;
    }
    /// As a `Require` sees parameters: a real that was chosen stays unknown for good.
    [[nodiscard]] static auto slots_for_good(const Prefix& prefix) {
        return [&prefix](std::size_t i) {
            return prefix.levels[i] == real ? Slot{Slot::State::inactive, nullptr}
                                            : prefix.slots[i];
        };
    }
    void append_state(const Prefix& prefix, std::size_t which, Key& key) const;
    [[nodiscard]] Key key(const Prefix& prefix, std::size_t depth) const;
    /// Counts what lies below; the state is kept.
    const State& counted(Prefix& prefix, std::size_t depth, std::size_t most_states);
    void check_cost(std::size_t most_states) const;
    void count_runs(State& state, Prefix& prefix, std::size_t depth, std::size_t most_states);
    [[nodiscard]] const State& known(const Prefix& prefix, std::size_t depth) const {
        return depth == depth_end() ? complete_ : states_.at(key(prefix, depth));
    }
    /// Whether its levels are looked at in runs, where it is active.
    [[nodiscard]] bool in_runs(std::size_t depth) const {
        return !order_.is_free[depth] && has_runs(space_.parameters()[order_.sequence[depth]]);
    }
    [[nodiscard]] double share(std::size_t depth, std::uint32_t first, std::uint32_t last) const {
        const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
        return first >= settled
                   ? 1
                   : parameter.share_below(last + std::size_t{1}) - parameter.share_below(first);
    }
    [[nodiscard]] Prefix walk(double index) const;
    template <class NumberAt>
    [[nodiscard]] Prefix drawn(const NumberAt& number_at) const;
    [[nodiscard]] Chosen choose(Prefix& prefix, std::size_t depth, std::uint32_t choices,
                                double number) const;
    [[nodiscard]] Configuration made(const Prefix& prefix) const;
    bool visit_below(Prefix& prefix, std::size_t depth, const Visit& visit) const;

    const SearchSpace& space_;
    DecisionOrder order_;
    std::vector<std::size_t> by_name_;  ///< parameters in the order of their names
    ValueClasses classes_;
    LevelRuns runs_;
    std::vector<std::optional<AllowedRows>> rows_{};  ///< by constraint
    std::vector<std::vector<AllowedRows::Range>>
        all_fit_{};  ///< of a prefix that has decided nothing
    std::unordered_map<Key, State, DiagramKeyHash> states_;
    const State complete_{1, WideNumber(1), {}};
    std::vector<std::size_t> cost_{};  ///< by depth, of a look at a branch
    std::size_t branches_ = 0;         ///< looked at, by their cost
    double size_ = 0;
    bool finite_ = true;
};

FeasibleSet::Diagram::Diagram(const SearchSpace& space, std::size_t most_states)
    : space_(space), order_(space), by_name_(order_.sequence), classes_(space), runs_(space) {
    sort(by_name_, [&](std::size_t a, std::size_t b) {
        return space.parameters()[a].name < space.parameters()[b].name;
    });
    for (const Parameter& parameter : space.parameters())
        finite_ = finite_ && !parameter.continuous();
    for (std::size_t which = 0; which < space.constraints().size(); ++which) {
        const std::optional<AllowedRows>& rows =
            rows_.emplace_back(AllowedRows::of(space, which, order_.sequence));
        all_fit_.push_back(rows ? rows->nothing_decided() : std::vector<AllowedRows::Range>{});
    }
    constexpr std::size_t names_of_most_rules = 10;
    for (const std::size_t parameter : order_.sequence) {
        std::size_t names = 0;  // of the widest rule
        for (const std::size_t which : order_.constraints_of[parameter])
            names = std::max(names, space.scope(which).size());
        cost_.push_back(1 + names / names_of_most_rules);
    }
    Prefix prefix = empty_prefix();
    size_ = counted(prefix, 0, most_states).count;
}

std::uint32_t FeasibleSet::Diagram::choice_count(const Prefix& prefix, std::size_t depth) const {
    const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
    if (!space_.is_active(parameter, [&](std::size_t i) { return prefix.slots[i]; })) return 0;
    return static_cast<std::uint32_t>(parameter.level_count()) + (parameter.continuous() ? 1U : 0U);
}

std::uint32_t FeasibleSet::Diagram::choice(std::size_t depth, std::uint32_t i,
                                           std::uint32_t count) const {
    if (count == 0) return inactive;
    return i + 1 == count && space_.parameters()[order_.sequence[depth]].continuous() ? real : i;
}

/// Sets the parameter at `depth`, except a real; false when that certainly breaks a constraint.
bool FeasibleSet::Diagram::decide(Prefix& prefix, std::size_t depth, std::uint32_t level) const {
    const std::size_t i = order_.sequence[depth];
    prefix.levels[i] = level;
    if (level == inactive) prefix.slots[i] = {Slot::State::inactive, nullptr};
    else if (level != real) {
        prefix.values[i] = space_.parameters()[i].level(level);
        prefix.slots[i] = {Slot::State::active, &prefix.values[i]};
    }
    const std::vector<std::size_t>& checks = order_.constraints_of[i];
    return none_of(checks, [&](std::size_t which) { return breaks(prefix, i, which); });
}

/// Whether what was decided last certainly breaks a constraint.
bool FeasibleSet::Diagram::breaks(Prefix& prefix, std::size_t parameter, std::size_t which) const {
    const std::optional<AllowedRows>& rows = rows_[which];
    if (!rows)
        return space_.is_broken(which, [&](std::size_t i) { return seen(prefix, which, i); });
    const std::size_t column = rows->column_of(parameter);
    std::vector<AllowedRows::Range>& fitting = prefix.fitting[which];
    fitting[column + 1] = rows->narrowed(fitting[column], column, prefix.levels[parameter]);
    return fitting[column + 1].empty();
}

const FeasibleSet::Diagram::State& FeasibleSet::Diagram::counted(Prefix& prefix, std::size_t depth,
                                                                 std::size_t most_states) {
    if (depth == depth_end()) return complete_;
    Key state = key(prefix, depth);
    if (const auto* known = entry_in(states_, state)) return *known;
    State found;
    const std::uint32_t choices = choice_count(prefix, depth);
    if (choices > 0 && order_.is_free[depth]) {
        const State& below = counted(prefix, depth + 1, most_states);
        found = {choices * below.count, below.weight * choices};
    } else if (choices > 0 && in_runs(depth)) count_runs(found, prefix, depth, most_states);
    else
        for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i, branches_ += cost_[depth]) {
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

/// Throws for too many. Names what most states differ in: the parameter with the most levels of
/// the rules that are open there.
void FeasibleSet::Diagram::check_cost(std::size_t most_states) const {
    if (states_.size() < most_states && branches_ <= 4 * most_states) return;
    std::vector<std::size_t> by_depth(depth_end());
    for (const auto& [key, state] : states_) ++by_depth[key.front()];
    const auto depth =
        std::size_t(std::max_element(by_depth.begin(), by_depth.end()) - by_depth.begin());
    const Parameter* widest = &space_.parameters()[order_.sequence[depth]];
    std::string rule;
    for (const std::size_t which : order_.open_constraints[depth])
        for (const std::size_t i : space_.scope(which))
            if (const Parameter& one = space_.parameters()[i];
                rule.empty() || one.level_count() > widest->level_count()) {
                widest = &one;
                rule = " in '" + text_of(space_.constraints()[which]) + "'";
            }
    constexpr std::size_t few = 64;
    std::size_t step = 2;
    while (widest->level_count() / step > few) step *= 2;
    throw SpaceError("the constraints tie too many parameters together: over " +
                     std::to_string(most_states) + " states, most for the " +
                     std::to_string(widest->level_count()) + " values of '" + widest->name + "'" +
                     rule + "; give it `step: " + std::to_string(step) +
                     "` or a list of values, or leave it out of a rule");
}

void FeasibleSet::Diagram::count_runs(State& state, Prefix& prefix, std::size_t depth,
                                      std::size_t most_states) {
    const std::size_t parameter = order_.sequence[depth];
    std::vector<std::uint32_t> firsts = runs_.firsts(parameter, slots_for_good(prefix), branches_);
    check_cost(most_states);
    firsts.push_back(static_cast<std::uint32_t>(space_.parameters()[parameter].level_count()));
    std::vector<WideNumber> up_to;
    for (std::size_t i = 0; i + 1 < firsts.size(); ++i, branches_ += cost_[depth]) {
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
Slot FeasibleSet::Diagram::seen(const Prefix& prefix, std::size_t which,
                                std::size_t parameter) const {
    if (prefix.slots[parameter].state == Slot::State::undecided || !classes_.known(which))
        return prefix.slots[parameter];
    const std::vector<std::size_t>& scope = space_.scope(which);
    const auto k = std::size_t(std::find(scope.begin(), scope.end(), parameter) - scope.begin());
    const std::uint32_t level = prefix.levels[parameter];
    return classes_.first_of(which, k, level == inactive ? std::nullopt : std::optional(level));
}

/// What an open constraint still remembers of the decided parameters in its scope.
void FeasibleSet::Diagram::append_state(const Prefix& prefix, std::size_t which, Key& key) const {
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
            [&](std::size_t i) {
                return LevelRuns::state_of(space_, scope[i], slots_for_good(prefix));
            },
            key);
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

FeasibleSet::Diagram::Key FeasibleSet::Diagram::key(const Prefix& prefix, std::size_t depth) const {
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

bool FeasibleSet::Diagram::visit_below(Prefix& prefix, std::size_t depth,
                                       const Visit& visit) const {
    if (depth == depth_end()) return visit(made(prefix));
    const std::uint32_t choices = choice_count(prefix, depth);
    const auto look = [&](std::uint32_t level) {
        const bool possible = decide(prefix, depth, level) && known(prefix, depth + 1).count > 0;
        const bool go_on = !possible || visit_below(prefix, depth + 1, visit);
        undo(prefix, depth);
        return go_on;
    };
    if (choices > 0 && in_runs(depth)) {
        for (const Run& run : known(prefix, depth).runs)
            for (std::uint32_t level = run.first; level <= run.last; ++level)
                if (!look(level)) return false;
        return true;
    }
    for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i)
        if (!look(choice(depth, i, choices))) return false;
    return true;
}

void FeasibleSet::Diagram::for_each(const Visit& visit) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    Prefix prefix = empty_prefix();
    visit_below(prefix, 0, visit);
}

/// A configuration by a number of [0, 1) for each decision (`number_at(depth)`) that leaves a
/// choice.
template <class NumberAt>
FeasibleSet::Diagram::Prefix FeasibleSet::Diagram::drawn(const NumberAt& number_at) const {
    Prefix prefix = empty_prefix();
    for (std::size_t depth = 0; depth < depth_end(); ++depth) {
        const std::uint32_t choices = choice_count(prefix, depth);
        const std::size_t i = order_.sequence[depth];
        const bool open = choices > 1 || (choices == 1 && space_.parameters()[i].continuous());
        const Chosen chosen = open ? choose(prefix, depth, choices, number_at(depth))
                                   : Chosen{choice(depth, 0, choices)};
        (void)decide(prefix, depth, chosen.choice);
        if (chosen.choice == real)
            prefix.values[i] = space_.parameters()[i].at_position(chosen.place);
    }
    return prefix;
}

Configuration FeasibleSet::Diagram::made(const Prefix& prefix) const {
    std::vector<Configuration::Entry> entries;
    entries.reserve(by_name_.size());
    for (const std::size_t i : by_name_)
        if (prefix.levels[i] != inactive)
            entries.emplace_back(space_.parameters()[i].name, prefix.values[i]);
    return Configuration(std::move(entries));
}

FeasibleSet::Diagram::Prefix FeasibleSet::Diagram::walk(double index) const {
    Prefix prefix = empty_prefix();
    for (std::size_t depth = 0; depth < depth_end(); ++depth) {
        const std::uint32_t choices = choice_count(prefix, depth);
        if (choices > 0 && order_.is_free[depth]) {
            // All choices have as many completions: no need to try them.
            const double below = known(prefix, depth + 1).count;
            const double taken = std::min(std::floor(index / below), choices - 1.0);
            index -= taken * below;
            (void)decide(prefix, depth, choice(depth, static_cast<std::uint32_t>(taken), choices));
            continue;
        }
        if (choices > 0 && in_runs(depth)) {
            const std::vector<Run>& runs = known(prefix, depth).runs;
            const auto starts_after = [&](const Run& run) { return run.count_before > index; };
            const Run& run = *(std::find_if(runs.begin() + 1, runs.end(), starts_after) - 1);
            (void)decide(prefix, depth, run.first);
            const double below = known(prefix, depth + 1).count;
            const double within = std::min(std::floor((index - run.count_before) / below),
                                           double(run.last - run.first));
            index -= run.count_before + within * below;
            (void)decide(prefix, depth, run.first + static_cast<std::uint32_t>(within));
            continue;
        }
        for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i) {
            if (decide(prefix, depth, choice(depth, i, choices))) {
                const double below = known(prefix, depth + 1).count;
                if (index < below) break;
                index -= below;
            }
            undo(prefix, depth);
        }
    }
    return prefix;
}

Configuration FeasibleSet::Diagram::at(double index) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    if (!(index >= 0 && index < size_))
        throw UsageError("the space has " + text_of(size_) + " configurations, asked for number " +
                         text_of(index));
    return made(walk(std::floor(index)));
}

/// The choice in whose part of [0, 1) the number lies. Parts are as large as what can be drawn
/// below.
FeasibleSet::Diagram::Chosen FeasibleSet::Diagram::choose(Prefix& prefix, std::size_t depth,
                                                          std::uint32_t choices,
                                                          double number) const {
    const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
    if (order_.is_free[depth]) {
        const auto levels = double(parameter.level_count());
        const double place = number * choices;
        if (place >= levels && parameter.continuous()) return {real, place - levels};
        return {static_cast<std::uint32_t>(parameter.level_at_share(place))};
    }
    const State& here = known(prefix, depth);
    if (in_runs(depth)) {
        const auto ends_after = [&](double wanted, const Run& run) {
            return wanted < run.share_up_to;
        };
        auto run = std::upper_bound(here.runs.begin(), here.runs.end(), number, ends_after);
        if (run == here.runs.end()) --run;
        const double from = run == here.runs.begin() ? 0 : (run - 1)->share_up_to;
        const double low = parameter.share_below(run->first);
        const double within =
            (number - from) / (run->share_up_to - from) * share(depth, run->first, run->last);
        return {std::clamp(static_cast<std::uint32_t>(parameter.level_at_share(low + within)),
                           run->first, run->last)};
    }
    Chosen last;  // the last possible one, should rounding leave something over
    for (std::uint32_t i = 0; i < choices; ++i) {
        const std::uint32_t taken = choice(depth, i, choices);
        double part = 0;
        if (decide(prefix, depth, taken))
            part = ratio(known(prefix, depth + 1).weight * share(depth, taken, taken), here.weight);
        undo(prefix, depth);
        if (part <= 0) continue;
        last = {taken, std::min(number / part, 1.0)};
        if (number < part) return last;
        number -= part;
    }
    return last;
}

Configuration FeasibleSet::Diagram::at_point(const std::vector<double>& point) const {
    if (point.size() != depth_end())
        throw UsageError(std::to_string(depth_end()) + " coordinates wanted, got " +
                         std::to_string(point.size()));
    return made(drawn([&](std::size_t depth) { return point[depth]; }));
}

Configuration FeasibleSet::Diagram::sample(Rng& rng, std::size_t attempts) const {
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
        Configuration one = made(drawn([&](std::size_t) { return rng.uniform(); }));
        if (finite_ || space_.feasible(one)) return one;
    }
    throw SpaceError("no feasible configuration in " + std::to_string(attempts) +
                     " draws: constraints on reals leave almost nothing");
}

FeasibleSet::FeasibleSet(const SearchSpace& space, std::size_t most_states)
    : diagram_(std::make_shared<const Diagram>(space, most_states)) {
    if (size() > 0) return;
    const auto is_empty = [](const SearchSpace& fewer) {
        return Diagram(fewer, 2'000'000).size() == 0;
    };
    throw SpaceError("the space is empty: no configuration satisfies " +
                     conflict_text(space, is_empty));
}
FeasibleSet::FeasibleSet(SearchSpace&& space, std::size_t most_states)
    : kept_(std::make_shared<const SearchSpace>(std::move(space))),
      diagram_(FeasibleSet(*kept_, most_states).diagram_) {}

double FeasibleSet::size() const { return diagram_->size(); }
bool FeasibleSet::finite() const { return diagram_->finite(); }
std::size_t FeasibleSet::states() const { return diagram_->states(); }
Configuration FeasibleSet::at(double index) const { return diagram_->at(index); }
void FeasibleSet::for_each(const std::function<bool(const Configuration&)>& visit) const {
    diagram_->for_each(visit);
}
Configuration FeasibleSet::at_point(const std::vector<double>& point) const {
    return diagram_->at_point(point);
}
Configuration FeasibleSet::sample(Rng& rng, std::size_t attempts) const {
    return diagram_->sample(rng, attempts);
}

}  // namespace servetune
