// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/bayesian.hpp"
#include "servetune/strategy/contrast.hpp"
#include "servetune/strategy/effects_floor.hpp"
#include "servetune/strategy/held_levels.hpp"
#include "servetune/strategy/variant_grid.hpp"

#include <Eigen/QR>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// One level of a parameter against the average of the parameter's levels.
struct MainEffect {
    std::string parameter;
    Value level;
    CredibleInterval gain{};   ///< share: 0.02 is 2 % better
    std::size_t measured = 0;  ///< configurations with a number that have the level

    [[nodiscard]] bool known() const { return measured > 0 && gain.known(); }
};

/// Two parameters that do together what neither does alone.
struct PairEffect {
    std::array<std::string, 2> parameters;
    double share = 0;             ///< of the variance of the objective over the space, beyond what both give alone
    std::array<Value, 2> levels;  ///< where that is most, of those that were measured together
    CredibleInterval gain{};      ///< there, beyond what both levels give alone
    std::size_t together = 0;     ///< configurations with a number that have both, at least `least_together`
};

/// What parameters do over the space as a whole, by the models that `Bayesian` fits to a history, whatever strategy asked it (`Explanation` compares with the
/// default instead).
///
/// The decomposition of variance of Hutter, Hoos, Leyton-Brown (ICML 2014), of ln(objective), over an even sample of the space: a main effect is the average with
/// the parameter set to a level, less the average over its levels in the same configurations; an interaction is what the average of two levels together has beyond
/// both main effects. Only feasible configurations enter. Values are posterior means; intervals are from the posterior covariance of such averages, exact but for two
/// things: they are of averages over `most_covaried` configurations at most, no narrower than those over all by expectation, and what a model cannot say is not
/// in them. Below the floor nothing is said.
class Effects {
public:
    static constexpr std::size_t most_drawn = 2000;     ///< for the variance over the space
    static constexpr std::size_t most_levels = 8;       ///< of a parameter: the default and others spread evenly
    static constexpr std::size_t most_pair_levels = 5;  ///< the same of each of a pair
    static constexpr std::size_t most_points =
        25'000;  ///< configurations for all main effects, and again for all pairs: half a second each
    static constexpr std::size_t most_believed = 2'000;  ///< the same where beliefs are asked for: a cost model takes some 0.2 ms for each
    static constexpr std::size_t most_covaried = 400;    ///< of one interval: its covariance is O(points^2)
    static constexpr double least_share =
        0.001;  ///< of a pair: less comes of rounding, and of grids in which rules leave nothing to compare
    static constexpr std::size_t most_pairs = 3;  ///< shown: the strongest

    /// All must outlive it. `beliefs`: those of `bayesian`'s options.
    Effects(const Problem& problem, std::span<const Trial> trials, const Bayesian& bayesian, const Beliefs& beliefs);

    [[nodiscard]] const EffectsFloor& floor() const { return floor_; }
    /// Whether any main effect is known.
    [[nodiscard]] bool learned() const {
        return std::any_of(main_.begin(), main_.end(), [](const MainEffect& one) { return one.known(); });
    }
    /// In the space's order; empty unless there is enough.
    [[nodiscard]] const std::vector<MainEffect>& main() const { return main_; }
    /// The strongest first; empty unless something is learned.
    [[nodiscard]] const std::vector<PairEffect>& pairs() const { return pairs_; }

private:
    struct Parts {
        const LearnedModel& model;
        const std::vector<Configuration>& sample;
        std::vector<const Parameter*> parameters{};
    };

    [[nodiscard]] std::vector<Configuration> drawn() const;
    [[nodiscard]] static std::vector<Value> levels_of(const Parameter& parameter, std::size_t most);
    void find_main(const Parts& parts);
    void find_pairs(const Parts& parts);

    const Problem& problem_;
    const Beliefs& beliefs_;
    LevelGeometry geometry_;
    EffectsFloor floor_{};
    std::vector<MainEffect> main_{};
    std::vector<PairEffect> pairs_{};
};

inline Effects::Effects(const Problem& problem, std::span<const Trial> trials, const Bayesian& bayesian, const Beliefs& beliefs)
    : problem_(problem), beliefs_(beliefs), geometry_(problem.space) {
    const std::vector<Trial> history = search_history(problem, trials);
    const Standings standings(history, problem.objective, problem.decision);
    floor_ = EffectsFloor::of(problem.space, standings);
    std::vector<const Parameter*> varied;
    for (const Parameter& parameter : problem.space.parameters())
        if (parameter.continuous() || parameter.level_count() > 1) varied.push_back(&parameter);
    if (!floor_.enough() || varied.empty()) return;
    const LearnedModel model = bayesian.learned(problem, standings, geometry_);
    const std::vector<Configuration> sample = drawn();
    find_main({model, sample, varied});
    if (learned()) find_pairs({model, sample, varied});
}

/// All of a small space, else an even draw, in an order that says nothing; always the same.
inline std::vector<Configuration> Effects::drawn() const {
    Rng rng(fingerprint_of(Candidates::key_of(problem_)).bits);
    std::vector<Configuration> result;
    if (problem_.feasible.finite() && problem_.feasible.size() <= static_cast<double>(most_drawn)) {
        problem_.feasible.for_each([&](const Configuration& configuration) { return result.push_back(configuration), true; });
        for (std::size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[rng.index(i)]);
        return result;
    }
    for (std::size_t i = 0; i < most_drawn; ++i) result.push_back(problem_.feasible.sample(rng));
    return result;
}

inline std::vector<Value> Effects::levels_of(const Parameter& parameter, std::size_t most) {
    std::vector<Value> result;
    const std::size_t count = parameter.continuous() ? most : std::min(most, parameter.level_count());
    for (std::size_t k = 0; k < count; ++k) {
        const double u = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0;
        if (parameter.continuous()) result.emplace_back(parameter.at_position(u));
        else result.push_back(parameter.level(static_cast<std::size_t>(std::lround(u * static_cast<double>(parameter.level_count() - 1)))));
    }
    if (std::find(result.begin(), result.end(), parameter.default_value) == result.end()) result.push_back(parameter.default_value);
    return result;
}

inline void Effects::find_main(const Parts& parts) {
    std::size_t all = 0;
    for (const Parameter* parameter : parts.parameters) all += levels_of(*parameter, most_levels).size();
    const std::size_t rows = std::max<std::size_t>((beliefs_.size() > 0 ? most_believed : most_points) / all, 8);
    for (const Parameter* parameter : parts.parameters) {
        const std::vector<Value> levels = levels_of(*parameter, most_levels);
        std::vector<Assignment> cells;
        for (const Value& level : levels) cells.push_back({{parameter->name, level}});
        const VariantGrid whole(problem_, parts.sample, std::move(cells), rows);
        if (whole.size() == 0) continue;
        const VariantGrid::Averages found = whole.averages(parts.model, geometry_, beliefs_);
        const auto count = static_cast<Eigen::Index>(levels.size());
        const std::vector<Prediction> posterior = posterior_of(
            parts.model, geometry_, whole.shortened(most_covaried).contrasts(Eigen::MatrixXd::Identity(count, count), geometry_, beliefs_));
        for (Eigen::Index l = 0; l < count; ++l) {
            if (found.counts(l) == 0 || posterior[static_cast<std::size_t>(l)].variance <= 0) continue;  // not feasible in those rows
            main_.push_back({parameter->name, levels[static_cast<std::size_t>(l)],
                             as_gain(parts.model, {found.values(l), posterior[static_cast<std::size_t>(l)].variance}),
                             measured_with(parts.model.lessons(), {{*parameter, levels[static_cast<std::size_t>(l)], most_levels}})});
        }
    }
}

inline void Effects::find_pairs(const Parts& parts) {
    const std::vector<double> over_space = means_of(parts.model, geometry_, beliefs_, parts.sample);
    double mean = 0;
    double variance = 0;
    for (const double value : over_space) mean += value / static_cast<double>(over_space.size());
    for (const double value : over_space) variance += (value - mean) * (value - mean) / static_cast<double>(over_space.size());
    if (!(variance > 1e-12)) return;

    std::vector<std::vector<Value>> levels;
    for (const Parameter* parameter : parts.parameters) levels.push_back(levels_of(*parameter, most_pair_levels));
    std::size_t all = 0;
    for (std::size_t p = 0; p < levels.size(); ++p)
        for (std::size_t q = p + 1; q < levels.size(); ++q) all += levels[p].size() * levels[q].size();
    const std::size_t rows =
        std::clamp<std::size_t>((beliefs_.size() > 0 ? most_believed : most_points) / std::max<std::size_t>(all, 1), 4, 200);
    struct Candidate {
        PairEffect effect;
        VariantGrid grid;
        Eigen::VectorXd of_cells;
        double value = 0;
    };
    std::vector<Candidate> candidates;
    for (std::size_t p = 0; p < levels.size(); ++p)
        for (std::size_t q = p + 1; q < levels.size(); ++q) {
            const std::string& first = parts.parameters[p]->name;
            const std::string& second = parts.parameters[q]->name;
            std::vector<Assignment> cells;
            for (const Value& a : levels[p])
                for (const Value& b : levels[q]) cells.push_back({{first, a}, {second, b}});
            VariantGrid found(problem_, parts.sample, std::move(cells), rows);
            if (found.size() == 0) continue;
            const auto count = static_cast<Eigen::Index>(found.cells().size());
            const VariantGrid::Averages average = found.averages(parts.model, geometry_, beliefs_);
            // What no sum of a row and a column gives: t = (I - P) m, P the least squares fit of both main effects, weighted by how many rows have a cell.
            Eigen::MatrixXd design = Eigen::MatrixXd::Zero(count, static_cast<Eigen::Index>(levels[p].size() + levels[q].size()));
            for (Eigen::Index c = 0; c < count; ++c) {
                design(c, c / static_cast<Eigen::Index>(levels[q].size())) = 1;
                design(c, static_cast<Eigen::Index>(levels[p].size()) + c % static_cast<Eigen::Index>(levels[q].size())) = 1;
            }
            const Eigen::VectorXd root = average.counts.cwiseSqrt();
            const Eigen::MatrixXd weighted = root.asDiagonal() * design;
            const Eigen::MatrixXd fit = design * weighted.completeOrthogonalDecomposition().pseudoInverse() * root.asDiagonal();
            const Eigen::MatrixXd beyond = Eigen::MatrixXd::Identity(count, count) - fit;
            const Eigen::VectorXd t = (average.counts.array() > 0).select(beyond * average.values, 0.0);
            // Rows are those of the sample in which both are active.
            const auto both = std::count_if(parts.sample.begin(), parts.sample.end(), [&](const Configuration& one) {
                return one.find(first) != nullptr && one.find(second) != nullptr;
            });
            const double active = static_cast<double>(both) / static_cast<double>(parts.sample.size());
            std::optional<Eigen::Index> most;
            std::size_t together = 0;
            for (Eigen::Index c = 0; c < count; ++c) {
                if (most && !(std::abs(t(c)) > std::abs(t(*most)))) continue;
                const Assignment& cell = found.cells()[static_cast<std::size_t>(c)];
                const std::size_t measured = measured_with(
                    parts.model.lessons(),
                    {{*parts.parameters[p], cell.at(first), most_pair_levels}, {*parts.parameters[q], cell.at(second), most_pair_levels}});
                if (measured < least_together) continue;
                most = c;
                together = measured;
            }
            if (!most) continue;
            const Eigen::Index strongest = *most;
            PairEffect effect{{first, second}, active * average.counts.dot(t.cwiseAbs2()) / average.counts.sum() / variance, {}};
            effect.levels = {found.cells()[static_cast<std::size_t>(strongest)].at(first),
                             found.cells()[static_cast<std::size_t>(strongest)].at(second)};
            effect.together = together;
            candidates.push_back({std::move(effect), std::move(found), beyond.row(strongest).transpose(), t(strongest)});
        }
    std::erase_if(candidates, [](const Candidate& one) { return !(one.effect.share >= least_share); });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.effect.share > b.effect.share; });
    if (candidates.size() > most_pairs) candidates.erase(candidates.begin() + most_pairs, candidates.end());
    for (Candidate& candidate : candidates) {
        const Contrasts strongest = candidate.grid.shortened(most_covaried).contrasts(candidate.of_cells, geometry_, beliefs_);
        const Prediction posterior = posterior_of(parts.model, geometry_, strongest).front();
        candidate.effect.gain = as_gain(parts.model, {candidate.value, posterior.variance});
        pairs_.push_back(std::move(candidate.effect));
    }
}

}  // namespace servetune
