// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_pool.hpp"
#include "evidence.hpp"
#include "identifiable.hpp"
#include "level_geometry.hpp"
#include "servetune/rng.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// How many trials come before the model decides: max(4, min(D/2 + 2, a third of the budget)). At
/// 20 trials a third was 1.6 +- 1.6 points of regret better than a fifth, on four of five tasks,
/// with two thirds of the crashes (10 seeds each). More would be spent blindly: SMAC's quarter of
/// the budget and Kernel Tuner's twenty valid points are what a small budget cannot pay.
[[nodiscard]] std::size_t start_trials(std::size_t dimensions, std::size_t budget);

/// What a performance engineer does first: the default with one parameter at another level and
/// everything below it at its own default. This is done for each level that at least
/// `large_subtree` other parameters depend on (an engine, a method of speculation) and that nothing
/// was tried with yet; parameters with the most below them come first. A failure of such a trial
/// says something of that level. When engine and back end changed together, a refused back end cost
/// a whole engine (observed: in 40 trials the search never came back to it). If the only trial with
/// a level failed, one more has one parameter below it changed, unordered ones first (a back end):
/// so the failure of a part is not held against the whole. `may_work`: what need not be tried;
/// `seed`: the order of equals. Nothing where no such level is left. O(parameters^2 + levels (tried
/// + parameters)).
[[nodiscard]] std::optional<Configuration> own_default(
    const SearchSpace& space, const std::vector<ConfigurationEvidence>& tried,
    const std::function<bool(const Configuration&)>& may_work, std::uint64_t seed = 0);
inline constexpr std::size_t large_subtree = 3;

/// The next point of a start: the default with a few parameters changed, those of which least is
/// known, so that after `trials` of them each has been touched once. A trial that changes all at
/// once, as a design that fills the space does, mostly tells that something was bad and not what;
/// engines' defaults are chosen with care, and what few changes cost is small (observed on a
/// synthetic engine of 8 parameters: start points of maximin reached 33 to 55 % of the best value,
/// the default 70 %, and the search stayed beside the default for ten trials more).
///
/// Greedy: one change after the other, categories that nothing tried has before numbers, of which a
/// sixth of the scale from all that was tried is far enough (a quarter of a real one); of several
/// the level nearest to the default, of equals the parameter that `seed` puts first. Parameters of
/// two values are changed before all others, so that they can be told apart (identifiable.hpp).
/// `evidence`: the default's comes first. `trials_left`: with this one. `may_work`: what need not
/// be tried. Nothing where every such point was tried. O(changes levels tried).
template <class MayWork>
std::optional<Configuration> start_point(const SearchSpace& space, const LevelGeometry& geometry,
                                         const std::vector<ConfigurationEvidence>& evidence,
                                         std::size_t trials, std::size_t trials_left,
                                         const MayWork& may_work, std::uint64_t seed = 0) {
    std::vector<EncodedPoint> tried;
    std::vector<Configuration> told;
    for (const ConfigurationEvidence& entry : evidence) {
        tried.push_back(entry.point);
        if (entry.works) told.push_back(entry.configuration);
    }
    constexpr double far_enough = 0.0625;
    constexpr double another_category = 0.25;
    const auto news_of = [&](std::size_t d, const EncodedPoint& point) {
        double nearest = 1;
        for (const EncodedPoint& other : tried)
            nearest = std::min(nearest, geometry.squared_distance(d, point, other));
        return nearest >= 1 && !geometry.ordered(d) ? another_category
                                                    : std::min(nearest, far_enough);
    };
    const auto news = [&](const EncodedPoint& point) {
        double sum = 0;
        for (std::size_t d = 0; d < geometry.dimensions(); ++d) sum += news_of(d, point);
        return sum;
    };
    const Configuration usual = space.default_configuration();
    const EncodedPoint centre = geometry.encode(usual);
    const auto distance = [&](const EncodedPoint& point) {
        double sum = 0;
        for (std::size_t d = 0; d < geometry.dimensions(); ++d)
            sum += geometry.squared_distance(d, point, centre);
        return sum;
    };
    const std::vector<std::size_t> order = ordered_by(seed, space.parameters().size());
    const std::vector<std::string> of_two = two_valued(space, order);
    const std::size_t others =
        geometry.dimensions() - std::min(of_two.size(), geometry.dimensions());
    const std::size_t changes = (others + trials - 1) / std::max<std::size_t>(trials, 1);
    std::vector<bool> has_children(order.size(), false);
    for (const Parameter& parameter : space.parameters())
        for (const Condition& condition : parameter.active_when)
            has_children[space.index_of(condition.parent)] = true;
    Configuration place = usual;
    for (const std::string& name : to_tell_apart(of_two, usual, told, trials_left)) {
        Configuration candidate =
            space.changed(place, {{name, other_value(space.at(name), *usual.find(name))}});
        if (space.feasible(candidate) && may_work(candidate)) place = std::move(candidate);
    }
    double known = news(geometry.encode(place));
    for (std::size_t change = 0; change < changes; ++change) {
        std::optional<Configuration> best;
        double best_news = known;
        double best_distance = 0;
        const EncodedPoint here_encoded = geometry.encode(place);
        const double here_away = distance(here_encoded);
        EncodedPoint moved = here_encoded;
        for (const std::size_t index : order) {
            const Parameter& parameter = space.parameters()[index];
            const std::optional<std::size_t> own = geometry.dimension_of(index);
            if (!own || contains(of_two, parameter.name)) continue;
            const Value* here = place.find(parameter.name);
            const Value* usually = usual.find(parameter.name);
            if (here == nullptr || (usually != nullptr && *here != *usually))
                continue;  // inactive, or changed already
            std::vector<Value> values;
            // Of a long scale an even part: neighbours are alike, and each level costs a
            // configuration.
            const std::size_t levels = parameter.level_count();
            for (const std::size_t level : spread_levels(
                     parameter, parameter.ordered() ? 64 : std::max<std::size_t>(levels, 2)))
                values.push_back(parameter.level(level));
            if (parameter.continuous())
                for (const double at : {0.0, 0.25, 0.5, 0.75, 1.0})
                    values.emplace_back(parameter.at_position(at));
            for (const Value& value : values) {
                const auto candidate_made = [&] {
                    Assignment changed = place.assignment();
                    changed[parameter.name] = value;
                    return space.completed(changed);
                };
                double fresh = 0;
                double away = 0;
                if (has_children[index]) {
                    const EncodedPoint point = geometry.encode(candidate_made());
                    fresh = news(point);
                    away = distance(point);
                } else {  // nothing else moves
                    geometry.encode(index, value, moved);
                    fresh = known - news_of(*own, here_encoded) + news_of(*own, moved);
                    away = here_away + geometry.squared_distance(*own, moved, centre);
                    moved.levels[*own] = here_encoded.levels[*own];
                    moved.positions[*own] = here_encoded.positions[*own];
                }
                constexpr double same = 1e-12;
                if (fresh < best_news - same || fresh <= known + same ||
                    (fresh < best_news + same && best && away >= best_distance))
                    continue;
                Configuration candidate = candidate_made();
                if (!space.feasible(candidate) || !may_work(candidate)) continue;
                best = std::move(candidate);
                best_news = fresh;
                best_distance = away;
            }
        }
        if (!best) break;
        place = std::move(*best);
        known = best_news;
    }
    return place == usual ? std::nullopt : std::optional<Configuration>(place);
}

/// The next point of a design that fills the space: the candidate that brings most levels that
/// nothing tried has, then the farthest from what was tried (maximin; Johnson, Moore, Ylvisaker
/// 1990), by the mean distance over the dimensions, weighted by its chance to work. `chances`: one
/// for each candidate. Of more than `looked_at` candidates so many are drawn. Ties: the first, from
/// a place on that `seed` draws. O(looked_at tried D).
[[nodiscard]] std::size_t farthest(const LevelGeometry& geometry, const CandidatePool& pool,
                                   const std::vector<EncodedPoint>& tried,
                                   const std::vector<double>& chances, std::uint64_t seed = 0,
                                   std::size_t looked_at = 20'000);

}  // namespace servetune
