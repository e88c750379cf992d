// SPDX-License-Identifier: Apache-2.0
// An evaluator that ends the process, in a child each time: after the second death a trial is
// failed, and the study goes on to its end.
#include "expect.hpp"

#include <servetune/servetune.hpp>
#include <servetune/sqlite_journal.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;

namespace {

constexpr double deadly_above = 8;
constexpr int death = 7;

class Poison : public Evaluator {
public:
    Outcome evaluate(const Configuration& configuration, const EvaluationContext&) override {
        const double x = configuration.number("x");
        if (x > deadly_above) std::_Exit(death);
        return Measurement{{{"rate", {10 + x}}}};
    }
};

int run_in(const std::filesystem::path& folder) {
    const Problem problem(SearchSpace({Parameter::integer("x", 0, 12)}), Objective("rate"),
                          Decision{});
    const Random strategy;
    SqliteJournal journal = SqliteJournal::open(folder, {"poison", {{"version", "1"}}, "1"});
    Study study(problem, strategy, journal, {.seed = 3});
    Poison evaluator;
    const Summary summary = study.run(evaluator, {.trials = 20});
    return summary.reason == StopReason::strategy_finished &&
                   summary.recommendation.recommended.number("x") == deadly_above
               ? 0
               : 1;
}

int status_of_child(const std::filesystem::path& folder) {
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(run_in(folder));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int main() {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / text("servetune-poison-", ::getpid());
    int deaths = 0;
    int status = death;
    while (status == death && deaths < 30) {
        status = status_of_child(folder);
        deaths += status == death ? 1 : 0;
    }
    expect(status == 0,
           text("the study comes to its end, not to ", status, " after ", deaths, " deaths"));
    const std::vector<Trial> trials = SqliteJournal::read(folder).trials();
    int deadly = 0;
    for (const Trial& trial : trials) {
        const bool kills = trial.configuration.number("x") > deadly_above;
        deadly += kills ? 1 : 0;
        expect(kills == (trial.failure() != nullptr), text("trial ", trial.id));
        expect(
            !kills || (trial.failure() != nullptr && trial.failure()->kind == FailureKind::other),
            "the kind of a deadly trial");
    }
    expect(trials.size() > 13,
           text("all 13 configurations and the confirmation, not ", trials.size(), " trials"));
    expect(deadly == 4 && deaths == 8, text(deadly, " deadly trials, ", deaths, " deaths"));
    std::filesystem::remove_all(folder);
    return wrong;
}
