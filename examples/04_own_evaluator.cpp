// SPDX-License-Identifier: Apache-2.0
// An evaluator of your own: anything that turns a configuration into metrics or into a failure with
// a reason. Crashes are data.
#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"

#include <iostream>

using namespace servetune;

class Toy : public Evaluator {
public:
    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        if (context.stop.stop_requested())
            return Failure{FailureKind::cancelled, "stopped by the user"};
        const double fraction = std::get<double>(*configuration.find("memory_fraction"));
        if (fraction > 0.95)
            return Failure{FailureKind::out_of_memory, "no room for the activations"};
        return Measurement{
            {{"total_tokens_per_second", {10000 * fraction}}, {"success_ratio", {1.0}}}};
    }
    [[nodiscard]] bool replicates_inform() const override {
        return false;
    }  // the answer is always the same
};

int main() {
    Objective objective;
    objective.limits = {Limit::parse("success_ratio >= 0.99")};
    const Problem problem(SearchSpace({Parameter::real("memory_fraction", 0.5, 1.0)}), objective,
                          Decision{});
    const Random strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal, {7});
    Toy toy;
    const Summary summary = study.run(toy, {20});
    std::cout << name_in(stop_reasons, summary.reason) << ": "
              << summary.recommendation.recommended.text() << '\n';
    return summary.recommendation.best && !summary.recommendation.keep_default ? 0 : 1;
}
