// SPDX-License-Identifier: Apache-2.0
#include "servetune/explanation.hpp"

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

constexpr std::size_t most_sampled = 2000;  ///< for the variance over the space
constexpr std::size_t most_levels =
    8;  ///< of an ordered parameter: the default and others spread evenly
constexpr std::size_t most_choices =
    64;  ///< the same of one without an order: what one level does says nothing of another
constexpr std::size_t most_pair_levels = 5;  ///< the same of each of a pair
/// configurations for all main effects, and again for all pairs: half a second each
constexpr std::size_t most_points = 25'000;
constexpr std::size_t most_believed =
    2'000;  ///< the same where beliefs are asked for: a cost model takes some 0.2 ms for each
constexpr std::size_t most_covaried = 400;  ///< of one interval: its covariance is O(points^2)
/// of a pair: less comes of rounding, and of grids in which rules leave nothing to compare
constexpr double least_share = 0.001;
constexpr std::size_t most_pairs = 3;  ///< the strongest

/// All of a small space, else an even draw, in an order that says nothing; always the same.
std::vector<Configuration> drawn_in_any_order(const Problem& problem) {
    Rng rng(fingerprint_of(Candidates::key_of(problem)).bits);
    std::vector<Configuration> result;
    if (problem.feasible.finite() && problem.feasible.size() <= double(most_sampled)) {
        problem.feasible.for_each([&](const Configuration& configuration) {
            return result.push_back(configuration), true;
        });
        for (std::size_t i = result.size(); i > 1; --i)
            std::swap(result[i - 1], result[rng.index(i)]);
        return result;
    }
    for (std::size_t i = 0; i < most_sampled; ++i) result.push_back(problem.feasible.sample(rng));
    return result;
}

std::vector<Value> levels_of(const Parameter& parameter, std::size_t most) {
    std::vector<Value> result;
    for (const std::size_t level : spread_levels(parameter, most))
        result.push_back(parameter.level(level));
    for (std::size_t k = 0; k < most && parameter.continuous(); ++k)
        result.emplace_back(parameter.at_position(double(k) / double(most - 1)));
    if (!contains(result, parameter.default_value)) result.push_back(parameter.default_value);
    return result;
}

std::vector<Value> main_levels(const Parameter& parameter) {
    return levels_of(parameter,
                     parameter.ordered() || parameter.continuous() ? most_levels : most_choices);
}

bool varies(const Parameter& parameter) {
    return parameter.continuous() || parameter.level_count() > 1;
}

std::vector<ShownLevel> shown_levels(const SearchSpace& space) {
    std::vector<ShownLevel> result;
    for (const Parameter& parameter : space.parameters())
        if (varies(parameter))
            for (Value& level : main_levels(parameter))
                result.push_back({&parameter, std::move(level), most_levels});
    return result;
}

class EffectFinder {
public:
    /// `fitted`: above the floor; must outlive it.
    explicit EffectFinder(const FittedHistory& fitted)
        : fitted_(fitted),
          evidence_(fitted.model()->evidence()),
          refused_(fitted.standings, shown_levels(fitted.problem.space)),
          sample_(refused_.without(drawn_in_any_order(fitted.problem))) {
        for (const Parameter& parameter : fitted.problem.space.parameters())
            if (varies(parameter)) parameters_.push_back(&parameter);
    }

    [[nodiscard]] std::vector<MainEffect> main() const;
    [[nodiscard]] std::vector<PairEffect> pairs() const;

private:
    /// One pair of parameters before the strongest are chosen.
    struct Candidate {
        PairEffect effect;
        VariantGrid grid;
        Eigen::VectorXd of_cells;  ///< weights that make the effect of the averages
        double value = 0;
    };

    /// How many rows of a grid whose cells are so many, all grids together.
    [[nodiscard]] std::size_t rows_of(std::size_t cells) const {
        return (fitted_.beliefs.size() > 0 ? most_believed : most_points) /
               std::max<std::size_t>(cells, 1);
    }
    [[nodiscard]] double variance_over_space() const;
    /// Nothing: they were never measured together, or too seldom. `looked_at` counts cells that the
    /// strongest is chosen from.
    [[nodiscard]] std::optional<Candidate> candidate(
        const std::array<std::string, 2>& names, const std::array<std::vector<Value>, 2>& levels,
        std::size_t rows, std::size_t& looked_at) const;

    const FittedHistory& fitted_;
    const std::vector<ConfigurationEvidence>& evidence_;
    const RefusedLevels refused_;
    const std::vector<Configuration> sample_;
    std::vector<const Parameter*> parameters_{};
};

std::vector<MainEffect> EffectFinder::main() const {
    struct Compared {
        std::vector<MainEffect> levels{};
        std::vector<Assignment> cells{};  ///< of those that are not refused
    };
    std::vector<Compared> compared;
    std::size_t all = 0;
    std::size_t together = 0;
    for (const Parameter* parameter : parameters_) {
        Compared& one = compared.emplace_back();
        for (const Value& level : main_levels(*parameter)) {
            const std::vector<ShownLevel> shown{{parameter, level, most_levels}};
            one.levels.push_back(
                {parameter->name, level, {}, measured_with(evidence_, shown), refused_.why(shown)});
            if (one.levels.back().refused.empty()) one.cells.push_back({{parameter->name, level}});
        }
        all += one.cells.size();
        together += one.cells.size() == 2
                        ? 1
                        : one.cells.size();  // of two levels both effects say the same
    }
    std::vector<MainEffect> result;
    for (Compared& one : compared) {
        const auto count = static_cast<Eigen::Index>(one.cells.size());
        Eigen::VectorXd averages;
        Eigen::VectorXd variances = Eigen::VectorXd::Zero(count);
        if (count > 1) {
            const VariantGrid grid(fitted_, sample_, std::move(one.cells),
                                   std::max<std::size_t>(rows_of(all), 8));
            averages = grid.averages();
            variances = fitted_
                            .posterior_of(grid.contrasts(Eigen::MatrixXd::Identity(count, count),
                                                         most_covaried))
                            .covariance.diagonal();
        }
        Eigen::Index cell = 0;
        for (MainEffect& effect : one.levels) {
            if (effect.refused.empty()) {
                const Eigen::Index c = cell++;
                if (variances(c) <= 0) continue;  // not feasible in those rows
                effect.gain = fitted_.as_gain({averages(c), variances(c)}, together);
            }
            result.push_back(std::move(effect));
        }
    }
    return result;
}

double EffectFinder::variance_over_space() const {
    const Eigen::VectorXd values = fitted_.means(fitted_.points_of(sample_));
    return (values.array() - values.mean()).square().mean();
}

std::vector<PairEffect> EffectFinder::pairs() const {
    const double variance = variance_over_space();
    if (!(variance > 1e-12)) return {};
    std::vector<std::vector<Value>> levels;
    for (const Parameter* parameter : parameters_) {
        levels.push_back(levels_of(*parameter, most_pair_levels));
        std::erase_if(levels.back(), [&](const Value& level) {
            return !refused_.why({{parameter, level, most_pair_levels}}).empty();
        });
    }
    std::size_t all = 0;
    for (std::size_t p = 0; p < levels.size(); ++p)
        for (std::size_t q = p + 1; q < levels.size(); ++q)
            all += levels[p].size() * levels[q].size();
    const std::size_t rows = std::clamp<std::size_t>(rows_of(all), 4, 200);
    std::vector<Candidate> candidates;
    std::size_t looked_at = 0;
    for (std::size_t p = 0; p < levels.size(); ++p)
        for (std::size_t q = p + 1; q < levels.size(); ++q)
            if (auto one = candidate({parameters_[p]->name, parameters_[q]->name},
                                     {levels[p], levels[q]}, rows, looked_at)) {
                one->effect.share /= variance;
                if (one->effect.share >= least_share) candidates.push_back(std::move(*one));
            }
    stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
        return a.effect.share > b.effect.share;
    });
    std::vector<PairEffect> result;
    for (Candidate& one : candidates) {
        if (result.size() == most_pairs) break;
        const double variance_of_effect =
            fitted_.posterior_of(one.grid.contrasts(one.of_cells, most_covaried)).covariance(0, 0);
        one.effect.gain = fitted_.as_gain({one.value, variance_of_effect}, looked_at);
        result.push_back(std::move(one.effect));
    }
    return result;
}

std::optional<EffectFinder::Candidate> EffectFinder::candidate(
    const std::array<std::string, 2>& names, const std::array<std::vector<Value>, 2>& levels,
    std::size_t rows, std::size_t& looked_at) const {
    if (levels[0].size() < 2 || levels[1].size() < 2) return std::nullopt;
    std::vector<Assignment> cells;
    for (const Value& a : levels[0])
        for (const Value& b : levels[1]) cells.push_back({{names[0], a}, {names[1], b}});
    VariantGrid grid(fitted_, sample_, std::move(cells), rows);
    if (grid.size() == 0) return std::nullopt;
    const auto count = static_cast<Eigen::Index>(grid.cells().size());
    const Eigen::VectorXd counts = grid.counts(grid.size());
    // What no sum of a row and a column gives: t = (I - P) m, P the least squares fit of both main
    // effects, weighted by how many rows have a cell.
    const auto first = static_cast<Eigen::Index>(levels[0].size());
    const auto second = static_cast<Eigen::Index>(levels[1].size());
    Eigen::MatrixXd design = Eigen::MatrixXd::Zero(count, first + second);
    for (Eigen::Index c = 0; c < count; ++c) {
        design(c, c / second) = 1;
        design(c, first + c % second) = 1;
    }
    const Eigen::VectorXd root = counts.cwiseSqrt();
    const Eigen::MatrixXd weighted = root.asDiagonal() * design;
    const Eigen::MatrixXd fit =
        design * weighted.completeOrthogonalDecomposition().pseudoInverse() * root.asDiagonal();
    const Eigen::MatrixXd beyond = Eigen::MatrixXd::Identity(count, count) - fit;
    const Eigen::VectorXd t = (counts.array() > 0).select(beyond * grid.averages(), 0.0);

    std::optional<Eigen::Index> strongest;
    PairEffect effect{names, 0, {}};
    for (Eigen::Index c = 0; c < count; ++c) {
        const Assignment& cell = grid.cells()[std::size_t(c)];
        const std::vector<ShownLevel> both{
            {&fitted_.problem.space.at(names[0]), cell.at(names[0]), most_pair_levels},
            {&fitted_.problem.space.at(names[1]), cell.at(names[1]), most_pair_levels}};
        const std::size_t measured = measured_with(evidence_, both);
        if (measured < least_together || !refused_.why(both).empty()) continue;
        ++looked_at;
        if (strongest && !(std::abs(t(c)) > std::abs(t(*strongest)))) continue;
        strongest = c;
        effect.levels = {both[0].level, both[1].level};
        effect.together = measured;
    }
    if (!strongest) return std::nullopt;
    // Rows are those of the sample in which both are active.
    const auto active = count_if(sample_, [&](const Configuration& one) {
        return one.find(names[0]) != nullptr && one.find(names[1]) != nullptr;
    });
    effect.share =
        double(active) / double(sample_.size()) * counts.dot(t.cwiseAbs2()) / counts.sum();
    return Candidate{std::move(effect), std::move(grid), beyond.row(*strongest).transpose(),
                     t(*strongest)};
}

}  // namespace

std::size_t Effects::left_out(const Parameter& parameter) const {
    const auto told = count_if(
        main, [&](const MainEffect& effect) { return effect.parameter == parameter.name; });
    return parameter.level_count() - std::min(parameter.level_count(), told);  // a real has none
}

Effects Explanation::effects() const {
    Effects result{fitted_->floor};
    if (!result.floor.enough() || result.floor.varied == 0) return result;
    const EffectFinder finder(*fitted_);
    result.main = finder.main();
    if (result.learned()) result.pairs = finder.pairs();
    return result;
}

}  // namespace servetune
