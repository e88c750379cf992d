// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/probability.hpp"
#include "servetune/decision.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/rng.hpp"

namespace servetune {

/// By how many places the order of `of` is turned, two or three that are measured in turn, in round
/// n: drawn from the seed for six rounds at a time. Of two the third round's order is the first's
/// reversed, and rounds four to six reverse the orders of the first three; of three each has each
/// place once in three rounds. So a load of the machine that comes back every two, three or four
/// measurements meets none of them in all of three rounds.
inline std::size_t turn_of(std::uint64_t seed, std::size_t n, std::size_t of) {
    const std::uint64_t drawn = derive_seed(seed, n / 6);
    if (of != 2) return (drawn + n) % of;
    return ((n % 3 == 1 ? drawn / 2 : drawn + n % 3 / 2) + n / 3) % 2;
}

/// Whether B is better than A, by pairs of measurements that are made right after each other: what
/// the machine does meanwhile, it does to both.
///
///     Comparison comparison({.margin = 0.01, .least_pairs = 3, .most_pairs = 10});
///     while (comparison.open()) comparison.add(std::log(measure_b() / measure_a()));
///
/// The 95 % interval is valid although it is looked at after every pair, the first look that
/// decides ends it, and more pairs may be allowed later: look k has the part 1 / (k (k + 1)) of the
/// 5 %, and all parts add to 1 (Bonferroni). Student's t needs not know how large the noise is.
///
/// A gate asks another question (`Question::not_worse`), of non-inferiority: the hypothesis is that
/// B loses the margin or more. B passes where the interval is above minus the margin, and fails
/// where it is below. So one that loses the margin or more passes with at most half of `error`,
/// however often one looks, and one that loses the margin or less fails with at most half of it.
class Comparison {
public:
    enum class Question {
        which_is_better,
        not_worse  ///< is B not worse than A by the margin?
    };
    enum class Verdict {
        undecided,  ///< more pairs would tell
        better,     ///< the interval of B's gain is above 0, and reaches beyond the margin
        worse,      ///< below 0, and beyond the margin; of a gate: below minus the margin
        same,       ///< within the margin, either way
        not_worse   ///< of a gate: above minus the margin
    };
    static constexpr std::array<std::pair<Verdict, std::string_view>, 5> verdicts{
        {{Verdict::undecided, "undecided"},
         {Verdict::better, "better"},
         {Verdict::worse, "worse"},
         {Verdict::same, "same"},
         {Verdict::not_worse, "not_worse"}}};

    struct Options {
        double margin = 0.01;         ///< a smaller difference is none
        std::size_t least_pairs = 3;  ///< before the first look
        std::size_t most_pairs = 10;
        Question question = Question::which_is_better;
        double error =
            0.05;  ///< the interval misses the truth with this probability, over all looks

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const {
            return OptionCheck()
                .within("margin", margin, 0, 1)
                .at_least("least_pairs", least_pairs, 2)
                .at_least("most_pairs", most_pairs, least_pairs)
                .that(error > 0 && error < 1, "error", "above 0 and below 1", std::to_string(error))
                .text();
        }
    };

    /// Throws UsageError where the options cannot be.
    explicit Comparison(Options options) : options_(options) {
        check_options("the comparison", options_.why_invalid());
    }

    /// One pair: ln of B's figure over A's, turned so that more is better.
    void add(double log_ratio) { log_ratios_.push_back(log_ratio); }

    [[nodiscard]] std::size_t pairs() const { return log_ratios_.size(); }
    /// Of B over A, as a share. Before two pairs the interval is infinite.
    [[nodiscard]] Gain gain() const {
        const auto n = double(log_ratios_.size());
        double mean = 0;
        for (const double value : log_ratios_) mean += value / n;
        if (log_ratios_.size() < 2)
            return {std::expm1(mean), -1, std::numeric_limits<double>::infinity()};
        double squares = 0;
        for (const double value : log_ratios_) squares += (value - mean) * (value - mean);
        const double error = std::sqrt(squares / (n - 1) / n);
        const double look = std::max(1.0, n + 1 - double(options_.least_pairs));
        const double reach =
            error * student_quantile(options_.error / (look * (look + 1)), log_ratios_.size() - 1);
        return {std::expm1(mean), std::expm1(mean - reach), std::expm1(mean + reach)};
    }
    [[nodiscard]] Verdict verdict() const {
        if (log_ratios_.size() < options_.least_pairs) return Verdict::undecided;
        const Gain of_b = gain();
        if (options_.question == Question::not_worse)
            return of_b.low > -options_.margin    ? Verdict::not_worse
                   : of_b.high < -options_.margin ? Verdict::worse
                                                  : Verdict::undecided;
        if (of_b.low > -options_.margin && of_b.high < options_.margin) return Verdict::same;
        return of_b.low > 0 ? Verdict::better : of_b.high < 0 ? Verdict::worse : Verdict::undecided;
    }
    /// Whether another pair is to be measured.
    [[nodiscard]] bool open() const {
        return pairs() < options_.most_pairs && verdict() == Verdict::undecided;
    }

private:
    Options options_;
    std::vector<double> log_ratios_{};
};

}  // namespace servetune
