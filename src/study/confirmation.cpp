// SPDX-License-Identifier: Apache-2.0
#include "confirmation.hpp"

#include "base/probability.hpp"
#include "comparison.hpp"
#include "servetune/detail/base/ranges.hpp"
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
        if (ended || any_of(result.back(), same)) result.emplace_back();
        result.back().push_back(trial);
        ended = false;
    }
    return result;
}

namespace {

constexpr double equal = 1e-9;  // of two gains: what arithmetic rounds

/// How far the mean of so many gains may be off that spread like that.
double reach_of(const Spread& spread, std::size_t gains, double level) {
    return std::sqrt(spread.squares / spread.freedom / double(gains)) *
           student_quantile(1 - level, std::size_t(spread.freedom));
}

double plain_mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

}  // namespace

std::optional<double> PairedComparison::gain_in(const Standing& candidate,
                                                const ConfirmationRound* round) const {
    const auto figure = [&](const Standing& of) -> std::optional<double> {
        std::vector<double> figures;
        for (const Trial* trial : of.trials)
            if (round == nullptr ? !confirms(*trial)
                                 : std::count(round->begin(), round->end(), trial))
                if (const auto measured = standings_.as_measured(of, trial->id, k_))
                    figures.push_back(*measured);
        return figures.empty() ? std::nullopt : std::optional(plain_mean(figures));
    };
    const auto mine = figure(candidate);
    const auto its = figure(base_);
    if (!mine || !its) return std::nullopt;
    return std::log1p(problem_.objective.goals[k_].gain(*mine, *its));
}

std::vector<double> PairedComparison::gains(const Standing& candidate) const {
    std::vector<double> result;
    for (const ConfirmationRound& round : rounds_)
        if (const auto gain = gain_in(candidate, &round)) result.push_back(*gain);
    return result;
}

std::vector<double> PairedComparison::searched() const {
    std::vector<double> result{0};
    for (const Standing& one : standings_.all())
        if (one.passes() && &one != &base_)
            if (const auto gain = gain_in(one)) result.push_back(*gain);
    sort(result);
    return result;
}

Spread PairedComparison::assumed(std::size_t rounds) const {
    // Fewer than three rounds are not balanced against a load that comes and goes.
    const double load = rounds < least_rounds ? 0.05 : 0.03;
    // The search's gains spread by what configurations do as well: so much is believed of them.
    constexpr double most_noise = 0.05;
    constexpr double deviations = 0.6745;  // in a normal's median distance
    std::vector<double> all = searched();
    for (double& one : all) one = std::abs(one);
    sort(all);
    const double noise = std::max(problem_.decision.noise_cv,
                                  std::min(all[all.size() / 2] / deviations, most_noise));
    constexpr auto weight = double(assumed_freedom);
    return {weight * std::max(load * load, 2 * noise * noise), weight};
}

bool PairedComparison::is_exact(double gain) const {
    const std::vector<double> all = searched();
    return std::adjacent_find(all.begin(), all.end(), [&](double a, double b) {
               return b - a > equal && 5 * (b - a) < std::abs(gain);
           }) != all.end();
}

Gain PairedComparison::gain(const Standing& candidate, double level) const {
    std::vector<double> mine = gains(candidate);
    const std::size_t n = mine.size();
    const FigureScale& scale = standings_.scale(k_);
    if (n == 0) return Gain::unknown(0, scale);
    const double mean = plain_mean(mine);
    const std::optional<double> before = gain_in(candidate);
    if (n < least_rounds && before) mine.push_back(*before);
    Spread measured{0, double(mine.size() - 1)};
    for (const double one : mine) measured.squares += std::pow(one - plain_mean(mine), 2);
    Spread all = assumed(n);
    const double reach = reach_of(all += measured, n, level);
    double low = std::min(mean, before.value_or(mean)) - reach;
    double high = std::max(mean, before.value_or(mean)) + reach;
    if (n >= least_rounds || (before && measured.squares < equal * equal && is_exact(mean))) {
        const double alone = reach_of(measured, n, level);
        low = std::max(low, mean - alone);
        high = std::min(high, mean + alone);
    }
    return {std::expm1(mean), std::expm1(low), std::expm1(high), level, false, scale};
}

std::size_t rounds_needed(const Problem& problem, const Standings& standings) {
    constexpr double luck = 0.8;  // of what looks best after a search
    const Standing* base = standings.find(problem.space.default_configuration());
    if (base == nullptr || !base->passes()) return interim_analyses.back();
    const PairedComparison paired(problem, standings, 0, *base);
    double most = 0;
    for (const Standing& one : standings.all())
        if (one.passes()) most = std::max(most, paired.gain_in(one).value_or(0));
    for (std::size_t rounds = 1; rounds <= least_rounds; ++rounds)
        if (luck * most > reach_of(paired.assumed(rounds), rounds, verdict_level)) return rounds;
    return interim_analyses.back();
}

Answer Confirmation::next() const {
    const Standings standings = problem_.standings(history_);
    const auto open = [](const Trial* trial) { return !trial->told(); };
    if (any_of(standings.trials(),
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
        if (any_of(last, open)) return Waiting{};
    }
    std::vector<Configuration> all = next_round(standings);
    if (all.empty())
        return Finished{rounds.empty() ? "nothing looks better than the default"
                                       : "the confirmation is over"};
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
    const auto in_rounds = [&](const Standing& one) {
        return count_if(
            rounds, [&](const ConfirmationRound& round) { return has(round, one.configuration); });
    };
    const std::size_t wanted = std::min(least_rounds, rounds_needed(problem_, standings));
    const double min_gain = problem_.decision.min_gain;
    const auto took_part = [&](const Standing& one) {
        return !anew && has(rounds.back(), one.configuration);
    };

    // A tenth is what a machine's drift may hide.
    constexpr double may_be_hidden = 0.1;
    std::vector<const Standing*> chosen;
    std::size_t tested = 0;
    for (const Standing& one : standings.all()) {
        if (one.configuration == usual || !one.passes()) continue;
        const std::size_t done = in_rounds(one);
        tested += done > 0 ? 1 : 0;
        bool open = done < (base != nullptr ? interim_analyses.back() : least_rounds);
        if (base != nullptr &&
            std::count(interim_analyses.begin(), interim_analyses.end(), done) > 0) {
            bool less = true;
            for (std::size_t k = 0; k < one.goals.size(); ++k) {
                const Gain gain = PairedComparison(problem_, standings, k, *base).gain(one);
                if ((took_part(one) || &one == standings.best()) &&
                    meets_min_gain(problem_.decision, gain))
                    return {};
                less = less && gain.high < min_gain;
            }
            open = open && !less;
        }
        if (open &&
            (base == nullptr || seems_to_gain(problem_, one, *base,
                                              anew || took_part(one) ? -may_be_hidden : min_gain)))
            chosen.push_back(&one);
    }
    stable_sort(chosen, [&](const Standing* a, const Standing* b) {
        return problem_.objective.leading().better(a->estimate().mean, b->estimate().mean);
    });
    constexpr std::size_t most_tested = 3;
    const auto going_on = std::stable_partition(
        chosen.begin(), chosen.end(), [&](const Standing* one) { return took_part(*one); });
    if (going_on != chosen.begin()) chosen.erase(going_on, chosen.end());
    else if (!anew && (base == nullptr || tested >= most_tested || left < 2 * wanted)) return {};
    if (chosen.empty()) return {};

    const Standing& leader = *chosen.front();
    std::vector<Configuration> result;
    if (base == nullptr) {
        if (anew)
            chosen.resize(
                std::min(chosen.size(), std::clamp<std::size_t>(left / least_rounds, 1, 3)));
        for (const Standing* one : chosen) result.push_back(one->configuration);
    } else {
        const Standing* reduced = nullptr;
        const std::size_t done = std::min(wanted - 1, in_rounds(leader));
        const bool room = left >= 3 * (wanted - done);
        const auto settings = [&](const Standing& of) {
            return settings_beyond_default(problem_.space, of.configuration);
        };
        for (const Standing* one : chosen) {
            if (one == &leader ||
                !is_reduction_of(problem_.space, one->configuration, leader.configuration))
                continue;
            const Gain lost =
                gain_between(problem_.objective.leading(), leader.estimate(), one->estimate());
            if ((room ? !meets_min_gain(problem_.decision, lost)
                      : lost.value < min_gain && seems_to_gain(problem_, *one, *base, min_gain)) &&
                (reduced == nullptr || settings(*one) < settings(*reduced)))
                reduced = one;
        }
        // Where there is no room for both the smaller one is confirmed: it would be recommended.
        if (reduced == nullptr || room) result.push_back(leader.configuration);
        if (reduced != nullptr) result.push_back(reduced->configuration);
        result.push_back(usual);
    }
    if (result.size() > left) return {};
    sort(result);
    const std::size_t turn = turn_of(problem_.seed, in_rounds(leader), result.size());
    std::rotate(result.begin(), result.begin() + std::ptrdiff_t(turn), result.end());
    if (!rounds.empty())  // who was in the round before ends it
        std::stable_partition(result.begin(), result.end(),
                              [&](const Configuration& one) { return has(rounds.back(), one); });
    return result;
}

}  // namespace servetune
