// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"

#include <limits>

namespace servetune {

/// The configuration nearest to one that the rules forbid: fewest parameters changed, then the
/// smallest change on the parameters' scales (a share of the range; 1 where there is no order).
///
/// Whatever repairs a broken rule changes one of its parameters. So the search changes these alone,
/// in breadth: first all that one change repairs, then two, at most `most_changes`. Of an ordered
/// parameter with many levels an even part is tried, and what is found is moved towards the
/// forbidden value by bisection.
class NearestFeasible {
public:
    static constexpr std::size_t most_changes = 4;
    static constexpr std::size_t most_levels = 64;     ///< of one parameter
    static constexpr std::size_t most_tried = 20'000;  ///< configurations

    struct Found {
        Configuration configuration{};
        std::vector<std::string> changed{};
    };

    explicit NearestFeasible(const SearchSpace& space) : space_(space) {}

    /// `kept`: parameters that must not change. Nothing: none within the bounds.
    [[nodiscard]] std::optional<Found> to(const Configuration& forbidden,
                                          const std::set<std::string>& kept) const {
        std::vector<Found> front{{forbidden, {}}};
        std::set<Configuration> seen{forbidden};
        for (std::size_t depth = 0; depth < most_changes && !front.empty(); ++depth) {
            std::vector<Found> next;
            std::optional<Found> best;
            double least = std::numeric_limits<double>::infinity();
            for (const Found& from : front)
                for (const std::string& name : repairing(from.configuration)) {
                    const bool again = std::find(from.changed.begin(), from.changed.end(), name) !=
                                       from.changed.end();
                    if (again || kept.contains(name)) continue;
                    for (const Value& value : values_of(space_.at(name))) {
                        if (seen.size() >= most_tried) break;
                        auto one = changed(from, name, value);
                        if (!one || !seen.insert(one->configuration).second) continue;
                        if (!space_.feasible(one->configuration)) next.push_back(std::move(*one));
                        else {
                            Found near = nearer(forbidden, *one);
                            const double size = size_of(forbidden, near);
                            if (size >= least) continue;
                            least = size;
                            best = std::move(near);
                        }
                    }
                }
            if (best) return best;
            front = std::move(next);
        }
        return std::nullopt;
    }

private:
    /// The parameters of the rules that a configuration breaks.
    [[nodiscard]] std::set<std::string> repairing(const Configuration& configuration) const {
        std::set<std::string> result;
        for (const std::string& broken : space_.violations(configuration))
            for (const Constraint& rule : space_.constraints())
                if (broken.ends_with(explained_text_of(rule)))
                    for (const std::string& name : names_of(rule))
                        if (space_.find(name) != nullptr) result.insert(name);
        return result;
    }
    [[nodiscard]] static std::vector<Value> values_of(const Parameter& parameter) {
        std::vector<Value> result;
        if (parameter.continuous()) {
            for (std::size_t i = 0; i < most_levels; ++i)
                result.emplace_back(
                    parameter.at_position(static_cast<double>(i) / (most_levels - 1)));
        } else
            for (const std::size_t level :
                 parameter.ordered()
                     ? spread_levels(parameter, most_levels)
                     : evenly_spread(parameter.level_count(), parameter.level_count()))
                result.push_back(parameter.level(level));
        return result;
    }
    [[nodiscard]] std::optional<Found> changed(const Found& from, const std::string& name,
                                               const Value& value) const {
        try {
            Found result{space_.changed(from.configuration, {{name, value}}), from.changed};
            result.changed.push_back(name);
            return result;
        } catch (const SpaceError&) {
            return std::nullopt;  // the parameter is inactive there
        }
    }
    /// The last change of `found`, an ordered parameter with many levels, as small as the rules
    /// allow between both ends.
    [[nodiscard]] Found nearer(const Configuration& forbidden, const Found& found) const {
        const std::string& name = found.changed.back();
        const Parameter& parameter = space_.at(name);
        const Value* from = forbidden.find(name);
        const Value* to = found.configuration.find(name);
        if (!parameter.ordered() || parameter.continuous() || from == nullptr || to == nullptr ||
            parameter.level_count() <= most_levels)
            return found;
        auto outside = parameter.level_of(*from);
        auto inside = parameter.level_of(*to);
        Found best = found;
        if (!outside || !inside) return best;
        while ((*inside > *outside ? *inside - *outside : *outside - *inside) > 1) {
            const std::size_t middle = (*inside + *outside) / 2;
            Configuration one =
                space_.changed(found.configuration, {{name, parameter.level(middle)}});
            if (space_.feasible(one)) {
                best.configuration = std::move(one);
                inside = middle;
            } else outside = middle;
        }
        return best;
    }
    [[nodiscard]] double size_of(const Configuration& a, const Found& b) const {
        double sum = 0;
        for (const std::string& name : b.changed) {
            const Parameter& parameter = space_.at(name);
            const Value* mine = a.find(name);
            const Value* other = b.configuration.find(name);
            const auto from = mine == nullptr ? std::nullopt : number_of(*mine);
            const auto to = other == nullptr ? std::nullopt : number_of(*other);
            const bool numbers =
                from && to && !std::holds_alternative<ChoiceDomain>(parameter.domain);
            if (numbers) sum += std::abs(parameter.position_of(*from) - parameter.position_of(*to));
            else if (parameter.ordered() && mine != nullptr && other != nullptr &&
                     parameter.level_of(*mine) && parameter.level_of(*other)) {
                const auto levels =
                    static_cast<double>(std::max<std::size_t>(parameter.level_count() - 1, 1));
                sum += std::abs(static_cast<double>(*parameter.level_of(*mine)) -
                                static_cast<double>(*parameter.level_of(*other))) /
                       levels;
            } else sum += 1;
        }
        return sum;
    }

    const SearchSpace& space_;
};

}  // namespace servetune
