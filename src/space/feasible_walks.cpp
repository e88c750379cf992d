// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/feasible_walks.hpp"

namespace servetune {

Configuration FeasibleSet::made(const Prefix& prefix) const {
    std::vector<Configuration::Entry> entries;
    entries.reserve(by_name_.size());
    for (const std::size_t i : by_name_)
        if (prefix.levels[i] != inactive)
            entries.emplace_back(space_.parameters()[i].name, prefix.values[i]);
    return Configuration(std::move(entries));
}

FeasibleSet::Prefix FeasibleSet::walk(double index) const {
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
                                           static_cast<double>(run.last - run.first));
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

Configuration FeasibleSet::at(double index) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    if (!(index >= 0 && index < size_))
        throw UsageError("the space has " + text_of(size_) + " configurations, asked for number " +
                         text_of(index));
    return made(walk(std::floor(index)));
}

/// The choice in whose part of [0, 1) the number lies. Parts are as large as what can be drawn
/// below.
FeasibleSet::Chosen FeasibleSet::choose(Prefix& prefix, std::size_t depth, std::uint32_t choices,
                                        double number) const {
    const Parameter& parameter = space_.parameters()[order_.sequence[depth]];
    if (order_.is_free[depth]) {
        const auto levels = static_cast<double>(parameter.level_count());
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

Configuration FeasibleSet::at_point(const std::vector<double>& point) const {
    if (point.size() != depth_end())
        throw UsageError(std::to_string(depth_end()) + " coordinates wanted, got " +
                         std::to_string(point.size()));
    return made(drawn([&](std::size_t depth) { return point[depth]; }));
}

Configuration FeasibleSet::sample(Rng& rng, std::size_t attempts) const {
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
        Configuration one = made(drawn([&](std::size_t) { return rng.uniform(); }));
        if (finite_ || space_.feasible(one)) return one;
    }
    throw SpaceError("no feasible configuration in " + std::to_string(attempts) +
                     " draws: constraints on reals leave almost nothing");
}

}  // namespace servetune
