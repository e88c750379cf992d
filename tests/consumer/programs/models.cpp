// SPDX-License-Identifier: Apache-2.0
// The compiled models behind a program of other compiler flags (-march=native): a study that
// learns, with knowledge of the program's own, and what the models say afterwards. Nothing of Eigen
// crosses the border.
#include "expect.hpp"

#include <servetune/explanation.hpp>
#include <servetune/servetune.hpp>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#ifdef EIGEN_WORLD_VERSION
#error "a promised header shows Eigen"
#endif

using namespace servetune;

namespace {

double speed(const Configuration& c) {
    const double x = c.number("x");
    return 100 * std::exp(-(x - 0.3) * (x - 0.3)) + double(c.integer("n")) +
           (c.text("kind") == "b" ? 8 : 0);
}

class Knowledge : public PriorMean {
public:
    [[nodiscard]] std::string name() const override { return "a model of the program's own"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
        return {std::log(speed(configuration)), {}};
    }
};

std::vector<Parameter> parameters() {
    return {real("x", 0, 1), integer("n", 1, 64).log2(), choice("kind", {"a", "b"})};
}

void check_settings() {
    Study study({.parameters = parameters(), .maximize = "speed", .trials = 20});
    const Recommendation result = study.optimize(speed);
    expect(result.conclusion == Conclusion::recommended,
           "nothing is recommended: " + text_of(result));
    expect(result.recommended.integer("n") == 64 && result.recommended.text("kind") == "b",
           "found " + result.recommended.text());
}

void check_knowledge() {
    const Problem problem(SearchSpace(parameters()), Objective{"speed", Direction::maximize},
                          Decision{});
    Bayesian::Options options;
    options.beliefs = Beliefs({std::make_shared<Knowledge>()});
    const Bayesian strategy(options);
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    for (int i = 0; i < 15; ++i) {
        const AskResult trial = study.ask();
        if (!trial) break;
        study.tell(trial->id, Measurement{{{"speed", {speed(trial->configuration)}}}});
    }
    const Effects effects = Explanation(problem, study.trials(), strategy).effects();
    std::set<std::string> told;
    for (const MainEffect& effect : effects.main) told.insert(effect.parameter);
    expect(told.size() == 3, text("effects of ", told.size(), " parameters"));
}

}  // namespace

int main() {
    check_settings();
    check_knowledge();
    return wrong;
}
