// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include "base/probability.hpp"
#include "study/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace servetune {
namespace {

/// What a million tokens takes by one measurement; nothing: it does not tell.
using CostOf = std::function<std::optional<double>(const Trial&)>;

class CostFigures {
public:
    CostFigures(const ReportView& view, CostOf cost) : view_(view), cost_(std::move(cost)) {
        for (const Standing& standing : view.standings.all())
            spread_ += Spread::of(values_of(standing.configuration, false));
    }

    [[nodiscard]] ServingCost::Figure figure(const std::vector<double>& values) const {
        double mean = 0;
        for (const double value : values) mean += value / static_cast<double>(values.size());
        return with_reach(mean, mean, 1 / static_cast<double>(values.size()));
    }
    [[nodiscard]] ServingCost::Figure change(const std::vector<double>& before,
                                             const std::vector<double>& after) const {
        const double ratio = figure(after).value / figure(before).value;
        ServingCost::Figure result = with_reach(
            ratio, ratio,
            1 / static_cast<double>(before.size()) + 1 / static_cast<double>(after.size()));
        result.value -= 1;
        if (result.low) *result.low -= 1, *result.high -= 1;
        return result;
    }
    /// By what is believed and whole. `judged`: where the gain is by rounds, theirs alone.
    [[nodiscard]] std::vector<double> values_of(const Configuration& configuration,
                                                bool judged) const {
        std::set<std::uint64_t> rounds;
        if (judged && view_.gain_is_by_rounds())
            for (const ConfirmationRound& round : confirmation_rounds(view_.standings.trials()))
                for (const Trial* trial : round) rounds.insert(trial->id);
        std::vector<double> result;
        for (const Trial* trial : view_.standings.trials()) {
            const Measurement* measurement = trial->measurement();
            if (measurement == nullptr || trial->configuration != configuration ||
                measurement->validity.ended_early() ||
                !view_.setup.problem->decision.believes(*measurement) ||
                (!rounds.empty() && !rounds.contains(trial->id)))
                continue;
            if (const auto value = cost_(*trial); value && *value > 0 && std::isfinite(*value))
                result.push_back(*value);
        }
        return result;
    }

private:
    /// `runs`: 1 / n, of a ratio the sum of both.
    [[nodiscard]] ServingCost::Figure with_reach(double value, double centre, double runs) const {
        const auto freedom = static_cast<std::size_t>(spread_.freedom);
        if (freedom == 0) return {value};
        constexpr double beyond = 0.05;
        const double reach =
            student_quantile(beyond, freedom) * std::sqrt(spread_.squares / spread_.freedom * runs);
        return {value, centre * std::exp(-reach), centre * std::exp(reach)};
    }

    const ReportView& view_;
    CostOf cost_;
    Spread spread_{};
};

}  // namespace

ServingCosts serving_costs(const ReportView& view) {
    ServingCosts result;
    const StudySetup& setup = view.setup;
    const Recommendation& recommendation = view.recommendation;
    if (recommendation.conclusion == Conclusion::nothing_passes) return result;
    const auto price = setup.file.machine.usd_per_device_hour;
    const auto add = [&](const char* unit, const char* tokens, const CostOf& cost) {
        const CostFigures figures(view, cost);
        const std::vector<double> before =
            figures.values_of(recommendation.default_configuration, true);
        const std::vector<double> after = figures.values_of(recommendation.recommended, true);
        if (after.empty()) return false;
        ServingCost& row =
            result.all.emplace_back(ServingCost{unit, tokens, {}, figures.figure(after), {}});
        if (before.empty()) return true;
        row.of_default = figures.figure(before);
        if (!recommendation.keep_default &&
            recommendation.recommended != recommendation.default_configuration)
            row.change = figures.change(before, after);
        return true;
    };
    bool dollars = false;
    bool energy = false;
    for (const char* tokens : {"output", "total"}) {
        const std::string rate = std::string(tokens) + "_tokens_per_second";
        if (price)
            dollars |= add("USD", tokens, [&](const Trial& trial) -> std::optional<double> {
                const auto per_second = value_in(trial.measurement()->metrics, rate);
                if (!per_second) return std::nullopt;
                const double devices =
                    static_cast<double>(setup.file.composition->devices_of(trial.configuration)) *
                    value_in(trial.measurement()->metrics, "replicas").value_or(1);
                return *price * devices / 3600 / *per_second * 1e6;
            });
        energy |= add("kWh", tokens, [&](const Trial& trial) -> std::optional<double> {
            const auto joules = value_in(trial.measurement()->metrics,
                                         "joules_per_" + std::string(tokens) + "_token");
            return joules ? std::optional(*joules * 1e6 / 3.6e6) : std::nullopt;
        });
    }
    if (!dollars)
        result.no_dollars = price ? "no measurement has a rate of tokens"
                                  : "the study has no price: write 'hardware: {price_per_hour: "
                                    "DOLLARS}', of all devices together";
    if (!energy)
        result.no_energy = setup.file.measures() ? "no measurement has the power of its GPUs"
                                                 : "nothing was measured here";
    return result;
}

}  // namespace servetune
