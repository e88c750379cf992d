// SPDX-License-Identifier: Apache-2.0
#include "effects.hpp"

#include "candidates.hpp"
#include "insight.hpp"
#include "servetune/search_space.hpp"

#include <Eigen/QR>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace servetune {
namespace {

/// All of a small space, else an even draw, in an order that says nothing; always the same.
std::vector<Configuration> drawn_in_any_order(const Problem& problem) {
    Rng rng(fingerprint_of(Candidates::key_of(problem)).bits);
    std::vector<Configuration> result;
    if (problem.feasible.finite() &&
        problem.feasible.size() <= static_cast<double>(Effects::max_drawn)) {
        problem.feasible.for_each([&](const Configuration& configuration) {
            return result.push_back(configuration), true;
        });
        for (std::size_t i = result.size(); i > 1; --i)
            std::swap(result[i - 1], result[rng.index(i)]);
        return result;
    }
    for (std::size_t i = 0; i < Effects::max_drawn; ++i)
        result.push_back(problem.feasible.sample(rng));
    return result;
}

std::vector<Value> levels_of(const Parameter& parameter, std::size_t most) {
    std::vector<Value> result;
    if (parameter.by_ratio())
        for (const std::size_t level : spread_levels(parameter, most))
            result.push_back(parameter.level(level));
    const std::size_t count = parameter.by_ratio()     ? 0
                              : parameter.continuous() ? most
                                                       : std::min(most, parameter.level_count());
    for (std::size_t k = 0; k < count; ++k) {
        const double u = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0;
        if (parameter.continuous()) result.emplace_back(parameter.at_position(u));
        else
            result.push_back(parameter.level(static_cast<std::size_t>(
                std::lround(u * static_cast<double>(parameter.level_count() - 1)))));
    }
    if (std::find(result.begin(), result.end(), parameter.default_value) == result.end())
        result.push_back(parameter.default_value);
    return result;
}

std::vector<Value> main_levels(const Parameter& parameter) {
    return levels_of(parameter, parameter.ordered() || parameter.continuous()
                                    ? Effects::most_levels
                                    : Effects::most_choices);
}

}  // namespace

struct Effects::Parts {
    const FittedHistory& fitted;
    const PendingAwareModel& model;
    const std::vector<Configuration>& sample;
    const RefusedLevels& refused;
    std::vector<const Parameter*> parameters{};

    [[nodiscard]] bool believes() const { return fitted.beliefs.size() > 0; }
};

Effects::Effects(const FittedHistory& fitted) : floor_(fitted.floor) {
    std::vector<const Parameter*> varied;
    for (const Parameter& parameter : fitted.problem.space.parameters())
        if (parameter.continuous() || parameter.level_count() > 1) varied.push_back(&parameter);
    if (!floor_.enough() || varied.empty()) return;
    std::vector<std::pair<const Parameter*, Value>> levels;
    for (const Parameter* parameter : varied)
        for (Value& level : main_levels(*parameter))
            levels.emplace_back(parameter, std::move(level));
    std::vector<ShownLevel> shown;
    for (const auto& [parameter, level] : levels) shown.push_back({*parameter, level, most_levels});
    const RefusedLevels refused(fitted.standings, shown);
    const std::vector<Configuration> sample = refused.without(drawn_in_any_order(fitted.problem));
    const Parts parts{fitted, *fitted.model(), sample, refused, varied};
    find_main(parts);
    if (learned()) find_pairs(parts);
}

std::size_t Effects::left_out(const Parameter& parameter) const {
    const auto told = static_cast<std::size_t>(std::count_if(
        main_.begin(), main_.end(),
        [&](const MainEffect& effect) { return effect.parameter == parameter.name; }));
    return parameter.level_count() - std::min(parameter.level_count(), told);  // a real has none
}

void Effects::find_main(const Parts& parts) {
    struct Compared {
        const Parameter* parameter;
        std::vector<MainEffect> levels{};
        std::vector<Assignment> cells{};  ///< of those that are not refused
    };
    std::vector<Compared> compared;
    std::size_t all = 0;
    std::size_t together = 0;
    for (const Parameter* parameter : parts.parameters) {
        Compared& one = compared.emplace_back(Compared{parameter});
        for (const Value& level : main_levels(*parameter)) {
            const std::vector<ShownLevel> shown{{*parameter, level, most_levels}};
            one.levels.push_back({parameter->name,
                                  level,
                                  {},
                                  measured_with(parts.model.evidence(), shown),
                                  parts.refused.why(shown)});
            if (one.levels.back().refused.empty()) one.cells.push_back({{parameter->name, level}});
        }
        all += one.cells.size();
        together += one.cells.size() == 2
                        ? 1
                        : one.cells.size();  // of two levels both effects say the same
    }
    const std::size_t rows = std::max<std::size_t>(
        (parts.believes() ? most_believed : most_points) / std::max<std::size_t>(all, 1), 8);
    for (Compared& one : compared) {
        const auto count = static_cast<Eigen::Index>(one.cells.size());
        VariantGrid::Averages found{Eigen::VectorXd::Zero(count), Eigen::VectorXd::Zero(count)};
        std::vector<Prediction> posterior;
        if (count > 1) {
            const VariantGrid whole(parts.fitted.problem, parts.sample, std::move(one.cells), rows);
            if (whole.size() > 0) {
                found = whole.averages(parts.model, parts.fitted.geometry, parts.fitted.beliefs);
                posterior =
                    posterior_of(parts.model, parts.fitted.geometry,
                                 whole.shortened(most_covaried)
                                     .contrasts(Eigen::MatrixXd::Identity(count, count),
                                                parts.fitted.geometry, parts.fitted.beliefs));
            }
        }
        Eigen::Index cell = 0;
        for (MainEffect& effect : one.levels) {
            if (effect.refused.empty()) {
                const Eigen::Index l = cell++;
                if (found.counts(l) == 0 || posterior[static_cast<std::size_t>(l)].variance <= 0)
                    continue;  // not feasible in those rows
                effect.gain = as_gain(
                    parts.model, {found.values(l), posterior[static_cast<std::size_t>(l)].variance},
                    together);
            }
            main_.push_back(std::move(effect));
        }
    }
}

void Effects::find_pairs(const Parts& parts) {
    const std::vector<double> over_space =
        means_of(parts.model, parts.fitted.geometry, parts.fitted.beliefs, parts.sample);
    double mean = 0;
    double variance = 0;
    for (const double value : over_space) mean += value / static_cast<double>(over_space.size());
    for (const double value : over_space)
        variance += (value - mean) * (value - mean) / static_cast<double>(over_space.size());
    if (!(variance > 1e-12)) return;

    std::vector<std::vector<Value>> levels;
    for (const Parameter* parameter : parts.parameters) {
        levels.push_back(levels_of(*parameter, most_pair_levels));
        std::erase_if(levels.back(), [&](const Value& level) {
            return !parts.refused.why({{*parameter, level, most_pair_levels}}).empty();
        });
    }
    std::size_t all = 0;
    for (std::size_t p = 0; p < levels.size(); ++p)
        for (std::size_t q = p + 1; q < levels.size(); ++q)
            all += levels[p].size() * levels[q].size();
    const std::size_t rows = std::clamp<std::size_t>(
        (parts.believes() ? most_believed : most_points) / std::max<std::size_t>(all, 1), 4, 200);
    struct Candidate {
        PairEffect effect;
        VariantGrid grid;
        Eigen::VectorXd of_cells;
        double value = 0;
    };
    std::vector<Candidate> candidates;
    std::size_t looked_at = 0;  // cells that the strongest is chosen from
    for (std::size_t p = 0; p < levels.size(); ++p)
        for (std::size_t q = p + 1; q < levels.size(); ++q) {
            if (levels[p].size() < 2 || levels[q].size() < 2) continue;
            const std::string& first = parts.parameters[p]->name;
            const std::string& second = parts.parameters[q]->name;
            std::vector<Assignment> cells;
            for (const Value& a : levels[p])
                for (const Value& b : levels[q]) cells.push_back({{first, a}, {second, b}});
            VariantGrid found(parts.fitted.problem, parts.sample, std::move(cells), rows);
            if (found.size() == 0) continue;
            const auto count = static_cast<Eigen::Index>(found.cells().size());
            const VariantGrid::Averages average =
                found.averages(parts.model, parts.fitted.geometry, parts.fitted.beliefs);
            // What no sum of a row and a column gives: t = (I - P) m, P the least squares fit of
            // both main effects, weighted by how many rows have a cell.
            Eigen::MatrixXd design = Eigen::MatrixXd::Zero(
                count, static_cast<Eigen::Index>(levels[p].size() + levels[q].size()));
            for (Eigen::Index c = 0; c < count; ++c) {
                design(c, c / static_cast<Eigen::Index>(levels[q].size())) = 1;
                design(c, static_cast<Eigen::Index>(levels[p].size()) +
                              c % static_cast<Eigen::Index>(levels[q].size())) = 1;
            }
            const Eigen::VectorXd root = average.counts.cwiseSqrt();
            const Eigen::MatrixXd weighted = root.asDiagonal() * design;
            const Eigen::MatrixXd fit = design *
                                        weighted.completeOrthogonalDecomposition().pseudoInverse() *
                                        root.asDiagonal();
            const Eigen::MatrixXd beyond = Eigen::MatrixXd::Identity(count, count) - fit;
            const Eigen::VectorXd t =
                (average.counts.array() > 0).select(beyond * average.values, 0.0);
            // Rows are those of the sample in which both are active.
            const auto both = std::count_if(
                parts.sample.begin(), parts.sample.end(), [&](const Configuration& one) {
                    return one.find(first) != nullptr && one.find(second) != nullptr;
                });
            const double active =
                static_cast<double>(both) / static_cast<double>(parts.sample.size());
            std::optional<Eigen::Index> most;
            std::size_t together = 0;
            for (Eigen::Index c = 0; c < count; ++c) {
                const Assignment& cell = found.cells()[static_cast<std::size_t>(c)];
                const std::vector<ShownLevel> both_levels{
                    {*parts.parameters[p], cell.at(first), most_pair_levels},
                    {*parts.parameters[q], cell.at(second), most_pair_levels}};
                const std::size_t measured = measured_with(parts.model.evidence(), both_levels);
                if (measured < least_together || !parts.refused.why(both_levels).empty()) continue;
                ++looked_at;
                if (most && !(std::abs(t(c)) > std::abs(t(*most)))) continue;
                most = c;
                together = measured;
            }
            if (!most) continue;
            const Eigen::Index strongest = *most;
            PairEffect effect{
                {first, second},
                active * average.counts.dot(t.cwiseAbs2()) / average.counts.sum() / variance,
                {}};
            effect.levels = {found.cells()[static_cast<std::size_t>(strongest)].at(first),
                             found.cells()[static_cast<std::size_t>(strongest)].at(second)};
            effect.together = together;
            candidates.push_back({std::move(effect), std::move(found),
                                  beyond.row(strongest).transpose(), t(strongest)});
        }
    std::erase_if(candidates,
                  [](const Candidate& one) { return !(one.effect.share >= least_share); });
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.effect.share > b.effect.share; });
    if (candidates.size() > most_pairs)
        candidates.erase(candidates.begin() + most_pairs, candidates.end());
    for (Candidate& candidate : candidates) {
        const Contrasts strongest =
            candidate.grid.shortened(most_covaried)
                .contrasts(candidate.of_cells, parts.fitted.geometry, parts.fitted.beliefs);
        const Prediction posterior =
            posterior_of(parts.model, parts.fitted.geometry, strongest).front();
        candidate.effect.gain =
            as_gain(parts.model, {candidate.value, posterior.variance}, looked_at);
        pairs_.push_back(std::move(candidate.effect));
    }
}

}  // namespace servetune
