// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/confirmation_rounds.hpp"

#include "servetune/detail/base/student.hpp"

namespace servetune {

std::vector<ConfirmationRound> confirmation_rounds(std::span<const Trial* const> trials) {
    std::vector<ConfirmationRound> result;
    bool ended = true;
    for (const Trial* trial : trials) {
        if (!confirms(*trial)) {
            ended = true;
            continue;
        }
        const auto same = [&](const Trial* other) {
            return other->configuration == trial->configuration;
        };
        if (ended || std::any_of(result.back().begin(), result.back().end(), same))
            result.emplace_back();
        result.back().push_back(trial);
        ended = false;
    }
    return result;
}

Gain PairedFigures::gain(const Standing& candidate) const {
    const std::vector<double> mine = gains(candidate);
    const FigureScale& scale = standings_.scale(k_);
    if (mine.empty()) return Gain::unknown(0, scale);
    const auto n = static_cast<double>(mine.size());
    double mean = 0;
    for (const double one : mine) mean += one / n;
    Gain result = Gain::unknown(std::expm1(mean), scale);
    if (mine.size() < 2) return result;
    const auto [variance, freedom] = spread(mine);
    const double error = std::sqrt(2 * variance / n);
    const double reach = error * student_quantile(0.05, freedom);
    const double sure = error * student_quantile(0.01, freedom);
    result.low = std::expm1(mean - reach);
    result.high = std::expm1(mean + reach);
    result.proven = std::expm1(mean - sure);
    result.excluded = std::expm1(mean + sure);
    return result;
}

std::pair<double, std::size_t> PairedFigures::spread(const std::vector<double>& mine) const {
    std::vector<Cell> pair;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        pair.push_back({0, i, 0});  // the base gains nothing over itself
        pair.push_back({1, i, mine[i]});
    }
    std::vector<Cell> all;
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
        std::vector<Cell> of_round;
        for (std::size_t c = 0; c < standings_.all().size(); ++c)
            if (const Standing& one = standings_.all()[c]; &one != &base_)
                if (const auto gain = gain_in(one, rounds_[i]))
                    of_round.push_back({c + 1, i, *gain});
        if (of_round.empty()) continue;
        all.push_back({0, i, 0});
        all.insert(all.end(), of_round.begin(), of_round.end());
    }
    const Spread alone = spread_of(pair);
    const Spread together = spread_of(all);
    constexpr double much = 6;  // as `assumption_is_contradicted`
    const bool own = alone.squares / alone.freedom > much * together.squares / together.freedom;
    const Spread& used = own ? alone : together;
    return {used.squares / used.freedom, static_cast<std::size_t>(used.freedom)};
}

Spread PairedFigures::spread_of(std::vector<Cell> cells) {
    constexpr int enough = 100;
    std::map<std::size_t, std::pair<double, double>> sums[2];
    for (int i = 0; i < enough; ++i)
        for (const int by : {0, 1}) {
            const auto key = [by](const Cell& cell) {
                return by == 0 ? cell.configuration : cell.round;
            };
            sums[by].clear();
            for (const Cell& cell : cells) {
                auto& [sum, count] = sums[by][key(cell)];
                sum += cell.gain;
                ++count;
            }
            for (Cell& cell : cells) {
                const auto& [sum, count] = sums[by].at(key(cell));
                cell.gain -= sum / count;
            }
        }
    double squares = 0;
    for (const Cell& cell : cells) squares += cell.gain * cell.gain;
    return {squares, static_cast<double>(cells.size() + 1 - sums[0].size() - sums[1].size())};
}

}  // namespace servetune
