// SPDX-License-Identifier: Apache-2.0
// A strategy, an evaluator and a journal of somebody else, held against the contracts that are
// installed beside the library.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN  // of Catch2 2, whose one header has the main function
#endif
#include "contract/evaluator_contract.hpp"
#include "contract/journal_contract.hpp"
#include "contract/strategy_contract.hpp"

#include <servetune/search_space.hpp>
#include <servetune/servetune.hpp>

using namespace servetune;

namespace {

/// From the best so far to what is beside it; then whatever is left.
class Uphill : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "uphill"; }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng& rng) const override {
        const Standings standings = problem.standings(history);
        if (const Standing* best = standings.best())
            for (const Configuration& next : neighbours(problem.space, best->configuration))
                if (standings.find(next) == nullptr)
                    return Proposal{next, "beside the best so far"};
        if (auto drawn = draw_unseen(problem.feasible, history, rng))
            return Proposal{std::move(*drawn), "elsewhere"};
        return Finished{"everything is measured"};
    }
};

class Toy : public Evaluator {
public:
    Outcome evaluate(const Configuration& configuration, const EvaluationContext&) override {
        if (configuration.number("x") > 15) return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{{{"rate", {configuration.number("x")}}}};
    }
};

SearchSpace space() {
    return SearchSpace({Parameter::integer("x", 0, 20), Parameter::boolean("y")});
}

}  // namespace

TEST_CASE("a strategy of somebody else keeps the contract") {
    const Problem problem(space(), Objective("total_tokens_per_second"), Decision{});
    test::check_strategy([] { return std::make_unique<Uphill>(); }, problem);
}

TEST_CASE("so do an evaluator and a journal") {
    Toy toy;
    test::check_evaluator(toy, space());
    MemoryJournal journal;
    test::check_journal(journal);
}
