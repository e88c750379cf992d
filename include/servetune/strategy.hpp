// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/decision.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/standings.hpp"
#include "servetune/trial.hpp"

#include <span>

namespace servetune {

/// What is to be solved; the same for every ask of a study. A copy shares the space.
class Problem {
    struct Parts {
        explicit Parts(SearchSpace of) : space(std::move(of)), feasible(space) {}
        const SearchSpace space;
        const FeasibleSet feasible;
    };
    std::shared_ptr<const Parts> parts_;

public:
    /// Throws SpaceError when the space is empty or its default configuration, which is always
    /// trial 0, is not feasible; UsageError where the objective or the decision cannot be.
    Problem(SearchSpace search_space, Objective what_for, Decision how_decided);

    const SearchSpace& space;
    const FeasibleSet& feasible;
    const Objective objective;
    const Decision decision;
    /// Whether measuring a configuration again tells something new; false for a table's fixed rows.
    bool replicates_inform = true;
    /// What a study tells its strategy: its seed, and the trials of its budget; nothing: they are
    /// not known.
    std::uint64_t seed = 0;
    std::optional<std::size_t> trials{};

    /// What a history of its search says of each configuration, against the default.
    [[nodiscard]] Standings standings(std::span<const Trial> history) const {
        return {history, objective, decision, space.default_configuration()};
    }
    Standings standings(std::vector<Trial>&&) const = delete;
    /// Whether a verdict rests on measurements made after the search. Not where they are always the
    /// same, nor where the larger number wins as published studies have it.
    [[nodiscard]] bool is_confirmed() const {
        return replicates_inform && decision.rule == Decision::Rule::significant;
    }
};

/// What a strategy sees of a journal: the trials of the search whose configurations the space
/// (still) has. After a changed study was accepted a journal may hold others; they teach nothing.
/// Nor does a check of the workers that came to nothing.
std::vector<Trial> search_history(const Problem& problem, std::span<const Trial> trials);

/// A configuration to measure next, and why, in words for people.
struct Proposal {
    Configuration configuration;
    std::string why;
    Purpose purpose = Purpose::search;
};
/// Nothing to propose until a pending trial is told.
struct Waiting {};
/// Nothing to propose any more, and why.
struct Finished {
    std::string why;
};
using Answer = std::variant<Proposal, Waiting, Finished>;

/// Decides what to try next.
///
/// `ask` is a pure function of its arguments: a fresh object with the same history answers the
/// same, so resuming, replaying and testing are one code path. The history holds the search trials
/// asked so far, trial 0 (the default configuration) first; pending ones have no outcome. Every
/// implementation runs tests/contract/strategy_contract.hpp.
class Strategy {
public:
    virtual ~Strategy() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual Answer ask(const Problem& problem, std::span<const Trial> history,
                                     Rng& rng) const = 0;
};

}  // namespace servetune
