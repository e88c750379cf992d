// SPDX-License-Identifier: Apache-2.0
#include "confirmation.hpp"

#include "base/probability.hpp"
#include "verdict.hpp"

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

Gain PairedComparison::gain(const Standing& candidate, double level) const {
    const std::vector<double> mine = gains(candidate);
    const FigureScale& scale = standings_.scale(k_);
    if (mine.empty()) return Gain::unknown(0, scale);
    const auto n = static_cast<double>(mine.size());
    double mean = 0;
    for (const double one : mine) mean += one / n;
    if (mine.size() < 2) return Gain::unknown(std::expm1(mean), scale);
    const auto [variance, freedom] = spread(mine);
    const double reach = std::sqrt(2 * variance / n) * student_quantile(1 - level, freedom);
    return {
        std::expm1(mean), std::expm1(mean - reach), std::expm1(mean + reach), level, false, scale};
}

std::pair<double, std::size_t> PairedComparison::spread(const std::vector<double>& mine) const {
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

Spread PairedComparison::spread_of(std::vector<Cell> cells) {
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

Answer Confirmation::next() const {
    const Standings standings = problem_.standings(history_);
    const auto open = [](const Trial* trial) { return !trial->told(); };
    if (std::any_of(standings.trials().begin(), standings.trials().end(),
                    [&](const Trial* trial) { return open(trial) && !confirms(*trial); }))
        return Waiting{};
    const std::vector<ConfirmationRound> rounds = confirmation_rounds(standings.trials());
    if (!rounds.empty() && !searched_since(rounds.back(), standings)) {
        const ConfirmationRound& last = rounds.back();
        std::vector<Trial> before;
        std::copy_if(history_.begin(), history_.end(), std::back_inserter(before),
                     [&](const Trial& trial) { return trial.id < last.front()->id; });
        for (Configuration& one : next_round(problem_.standings(before)))
            if (!has(last, one)) return propose(std::move(one), rounds.size());
        if (std::any_of(last.begin(), last.end(), open)) return Waiting{};
    }
    std::vector<Configuration> all = next_round(standings);
    if (all.empty())
        return Finished{rounds.empty() ? "nothing looks better than the default"
                                       : "what looked best is settled"};
    return propose(std::move(all.front()), rounds.size() + 1);
}

/// Who takes part in the round that follows a history in which all is told, in order; empty:
/// nobody.
std::vector<Configuration> Confirmation::next_round(const Standings& standings) const {
    const Configuration usual = problem_.space.default_configuration();
    const Standing* base = standings.find(usual);
    if (base != nullptr && !base->passes()) base = nullptr;
    const std::vector<ConfirmationRound> rounds = confirmation_rounds(standings.trials());
    const bool anew = rounds.empty() || searched_since(rounds.back(), standings);
    const std::size_t left = most_ - std::min(most_, standings.trials().size());
    const std::vector<Goal>& goals = problem_.objective.goals;
    const auto in_rounds = [&](const Standing& one) {
        return static_cast<std::size_t>(std::count_if(
            rounds.begin(), rounds.end(),
            [&](const ConfirmationRound& round) { return has(round, one.configuration); }));
    };
    const auto gain_of = [&](const Standing& one, std::size_t k) {
        return PairedComparison(standings, goals[k], k, *base).gain(one);
    };
    const auto looked_at = [&](const Standing& one) {
        return base != nullptr &&
               std::find(interim_analyses.begin(), interim_analyses.end(),
                         PairedComparison(standings, goals[0], 0, *base).rounds(one)) !=
                   interim_analyses.end();
    };
    const auto proven = [&](const Standing& one) {
        if (!looked_at(one)) return false;
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (meets_min_gain(problem_.decision, gain_of(one, k))) return true;
        return false;
    };
    const auto settled = [&](const Standing& one) {
        if (in_rounds(one) >= (base != nullptr ? interim_analyses.back() : least_rounds))
            return true;
        if (!looked_at(one)) return false;
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (gain_of(one, k).high >= problem_.decision.min_gain) return false;
        return true;
    };
    const auto seems_to_gain = [&](const Standing& a, const Standing& b, double share) {
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (gain_between(goals[k], a.goals[k].estimate, b.goals[k].estimate).value >= share)
                return true;
        return false;
    };
    const auto took_part = [&](const Standing& one) {
        return !anew && has(rounds.back(), one.configuration);
    };
    const auto smaller = [&](const Standing& one, const Standing& than) {
        return &one != &than &&
               is_reduction_of(problem_.space, one.configuration, than.configuration);
    };

    // A tenth is what a machine's drift may hide.
    constexpr double may_be_hidden = 0.1;
    std::vector<const Standing*> finalists;
    std::size_t tested = 0;
    for (const Standing& one : standings.all()) {
        if (one.configuration == usual || !one.passes()) continue;
        if (proven(one) && (took_part(one) || &one == standings.best())) return {};
        tested += in_rounds(one) >= least_rounds ? 1 : 0;
        if (!settled(one) && (base == nullptr || seems_to_gain(one, *base, -may_be_hidden)))
            finalists.push_back(&one);
    }
    std::stable_sort(finalists.begin(), finalists.end(), [&](const Standing* a, const Standing* b) {
        return problem_.objective.leading().better(a->estimate().mean, b->estimate().mean);
    });
    const auto going_on = std::stable_partition(
        finalists.begin(), finalists.end(), [&](const Standing* one) { return took_part(*one); });
    const bool go_on = going_on != finalists.begin();
    std::vector<const Standing*> chosen;
    if (go_on) chosen.assign(finalists.begin(), going_on);
    else if (anew) chosen = finalists;
    else if (constexpr std::size_t most_tested = 3;
             base != nullptr && tested < most_tested && left >= 2 * least_rounds &&
             !finalists.empty() &&
             seems_to_gain(*finalists.front(), *base, problem_.decision.min_gain))
        chosen = {finalists.front()};
    if (chosen.empty()) return {};

    const std::size_t done = in_rounds(*chosen.front());
    const std::size_t of_three = 3 * (least_rounds - std::min(least_rounds, done));
    std::size_t most_chosen = 1;
    if (base == nullptr)
        most_chosen = anew ? std::clamp<std::size_t>(left / least_rounds, 1, 3) : chosen.size();
    else if (done < least_rounds && left >= of_three && (!anew || left < 4 * least_rounds))
        most_chosen = 2;
    const Standing& leader = *chosen.front();
    const Standing* reduced = nullptr;
    for (const Standing* one : chosen) {
        if (base == nullptr || !smaller(*one, leader)) continue;
        if (of_three > left && !seems_to_gain(*one, *base, problem_.decision.min_gain)) continue;
        if (meets_min_gain(problem_.decision, gain_between(problem_.objective.leading(),
                                                           leader.estimate(), one->estimate())))
            continue;
        const auto settings = [&](const Standing& of) {
            return settings_beyond_default(problem_.space, of.configuration);
        };
        if (reduced == nullptr || settings(*one) < settings(*reduced)) reduced = one;
    }
    std::vector<Configuration> result;
    if (base != nullptr) result.push_back(usual);
    // Where there is no room for both the smaller one is confirmed: it would be recommended.
    if (reduced == nullptr || of_three <= left) result.push_back(leader.configuration);
    if (reduced != nullptr) result.push_back(reduced->configuration);
    else
        for (std::size_t i = 1; i < std::min(most_chosen, chosen.size()); ++i)
            result.push_back(chosen[i]->configuration);
    // Backwards every second time. Who is new comes after the default, which ends the round before.
    const bool all_again =
        !rounds.empty() && std::all_of(result.begin(), result.end(), [&](const Configuration& one) {
            return has(rounds.back(), one);
        });
    if (all_again && rounds.back().front()->configuration == result.front())
        std::reverse(result.begin(), result.end());
    return result;
}

}  // namespace servetune
