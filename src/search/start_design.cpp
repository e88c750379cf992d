// SPDX-License-Identifier: Apache-2.0
#include "start_design.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace servetune {

std::size_t start_trials(std::size_t dimensions, std::size_t budget) {
    const auto by_dimensions = dimensions / 2 + 2;
    return std::max<std::size_t>(4, std::min(by_dimensions, budget / 3));
}

namespace {

/// Whether `parameter` is active only where `parent` has a value for which `holds` is true.
template <class Holds>
bool depends_on(const Parameter& parameter, const std::string& parent, const Holds& holds) {
    return any_of(parameter.active_when, [&](const Condition& condition) {
        return condition.parent == parent && any_of(condition.values, holds);
    });
}

bool already_tried(const std::vector<ConfigurationEvidence>& tried,
                   const Configuration& configuration) {
    return any_of(tried, [&](const ConfigurationEvidence& entry) {
        return entry.configuration == configuration;
    });
}

/// The own default of a level with one parameter that depends on it at another of its values,
/// unordered ones first.
std::optional<Configuration> with_another_part(
    const SearchSpace& space, const std::string& parent, const Configuration& own,
    const std::vector<ConfigurationEvidence>& tried,
    const std::function<bool(const Configuration&)>& may_work, std::uint64_t seed) {
    const Value& level_of_parent = *own.find(parent);
    for (const bool ordered : {false, true})
        for (const std::size_t index : ordered_by(seed, space.parameters().size())) {
            const Parameter& part = space.parameters()[index];
            const Value* here = own.find(part.name);
            if (here == nullptr || part.continuous() || part.ordered() != ordered) continue;
            if (!depends_on(part, parent,
                            [&](const Value& value) { return value == level_of_parent; }))
                continue;
            for (std::size_t level = 0; level < part.level_count(); ++level) {
                if (part.level(level) == *here) continue;
                Assignment changed = own.assignment();
                changed[part.name] = part.level(level);
                Configuration candidate = space.completed(changed);
                if (!already_tried(tried, candidate) && space.feasible(candidate) &&
                    may_work(candidate))
                    return candidate;
            }
        }
    return std::nullopt;
}

}  // namespace

std::optional<Configuration> own_default(const SearchSpace& space,
                                         const std::vector<ConfigurationEvidence>& tried,
                                         const std::function<bool(const Configuration&)>& may_work,
                                         std::uint64_t seed) {
    const auto below = [&](const Parameter& parent, const auto& holds) {
        return count_if(space.parameters(), [&](const Parameter& other) {
            return depends_on(other, parent.name, holds);
        });
    };
    const auto any = [](const Value&) { return true; };
    std::vector<std::size_t> order = ordered_by(seed, space.parameters().size());
    stable_sort(order, [&](std::size_t a, std::size_t b) {
        return below(space.parameters()[a], any) > below(space.parameters()[b], any);
    });
    for (const std::size_t index : order) {
        const Parameter& parameter = space.parameters()[index];
        if (parameter.continuous() || below(parameter, any) < large_subtree) continue;
        for (std::size_t level = 0; level < parameter.level_count(); ++level) {
            const Value value = parameter.level(level);
            if (below(parameter, [&](const Value& one) { return one == value; }) < large_subtree)
                continue;
            std::size_t with = 0;
            bool works = false;
            for (const ConfigurationEvidence& entry : tried) {
                const Value* there = entry.configuration.find(parameter.name);
                if (there == nullptr || *there != value) continue;
                ++with;
                works = works || entry.works;
            }
            Configuration own = space.completed({{parameter.name, value}});
            if (works || with > 1 || own.find(parameter.name) == nullptr) continue;
            if (!already_tried(tried, own)) {
                if (space.feasible(own) && may_work(own)) return own;
            } else if (auto other =
                           with_another_part(space, parameter.name, own, tried, may_work, seed))
                return other;
        }
    }
    return std::nullopt;
}

std::size_t farthest(const LevelGeometry& geometry, const CandidatePool& pool,
                     const std::vector<EncodedPoint>& tried, const std::vector<double>& chances,
                     std::uint64_t seed, std::size_t looked_at) {
    const std::size_t dimensions = geometry.dimensions();
    std::vector<std::set<std::uint32_t>> seen(dimensions);
    for (const EncodedPoint& point : tried)
        for (std::size_t d = 0; d < dimensions; ++d) seen[d].insert(point.levels[d]);
    std::size_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    const std::size_t from = seed == 0 || pool.size() == 0 ? 0 : Rng(seed).index(pool.size());
    Rng draws(derive_seed(seed, tried.size()));
    for (std::size_t k = 0; k < std::min(pool.size(), looked_at); ++k) {
        const std::size_t i =
            pool.size() > looked_at ? draws.index(pool.size()) : (from + k) % pool.size();
        const EncodedPoint candidate = pool.point(i);
        double fresh = 0;
        for (std::size_t d = 0; d < dimensions; ++d)
            fresh += seen[d].contains(candidate.levels[d]) ? 0 : 1;
        double nearest = tried.empty() ? 0 : std::numeric_limits<double>::infinity();
        for (const EncodedPoint& other : tried) {
            double sum = 0;
            for (std::size_t d = 0; d < dimensions; ++d)
                sum += geometry.squared_distance(d, candidate, other);
            nearest = std::min(nearest, sum);
        }
        const auto wide = double(std::max<std::size_t>(dimensions, 1));
        const double score = (std::sqrt(nearest / wide) + fresh / wide) * chances[i];
        if (score > best_score) {
            best_score = score;
            best = i;
        }
    }
    return best;
}

}  // namespace servetune
