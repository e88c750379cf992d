// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/option_check.hpp"
#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// One step of a staged search: some partial configurations, tried on top of what was decided
/// before.
struct Stage {
    std::string name;
    /// Every combination of these parameters' levels is a candidate; or, when it is empty,
    /// `candidates` are.
    std::vector<std::string> product{};
    std::vector<Assignment> candidates{};
    /// Whether its winner becomes the base of the later stages. Always so in comparison with the
    /// incumbent; in comparison with a baseline only stages that choose the baseline itself (the
    /// engine, say) set it.
    bool carried = true;
};

/// The method of the published tuning studies: one parameter (or group) after the other, the rest
/// held fixed.
///
/// The base is the default configuration at first. Each stage measures its candidates on top of the
/// base; its best passing candidate is worth having when `meets_min_gain(decision, gain over the
/// base)`. A carried stage's worthy winner becomes the base. With every stage carried this is the
/// comparison with the incumbent; with only the first carried, all later stages are measured
/// against one baseline and the best of them wins in the end.
///
/// Where the decision asks for significance and measuring again informs, a best candidate that
/// gains enough but not significantly is measured again, in turn with the base, until it is decided
/// or both have `replicates` measurements; only where later stages build on it, for the study
/// confirms what is best in the end.
class Staged : public Strategy {
public:
    /// The stages in their order, and how often a comparison is measured.
    struct Options {
        std::vector<Stage> stages;
        std::size_t replicates =
            3;  ///< most measurements of one configuration to settle a comparison

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const {
            OptionCheck check;
            check.within("replicates", double(replicates), 1, 1000);
            for (const Stage& stage : stages)
                check.that(stage.product.empty() != stage.candidates.empty(),
                           "stage '" + stage.name + "'", "a product or candidates",
                           stage.product.empty() ? "neither" : "both");
            return check.text();
        }
    };

    /// Throws UsageError where the options cannot be.
    explicit Staged(Options options) : options_(std::move(options)) {
        check_options("staged", options_.why_invalid());
    }

    [[nodiscard]] std::string name() const override { return "staged"; }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng&) const override {
        return walk(problem, history).answer;
    }

    /// One candidate of a stage. `excluded` says why it was not tried at all (a constraint, not in
    /// the table, no effect here).
    struct Candidate {
        Assignment changes;
        Configuration configuration{};
        std::string excluded{};
    };
    /// What happened in a stage that was reached.
    struct Step {
        const Stage* stage;
        Configuration base;
        std::vector<Candidate> candidates;
        std::optional<Configuration>
            winner{};  ///< the candidate worth having; nothing when the base stands
        bool complete = false;
    };
    /// What happened so far, and what to do next.
    struct Walk {
        std::vector<Step> steps;
        Answer answer;
    };
    /// Goes through the stages as far as the history reaches. The steps' stages point into this
    /// object.
    [[nodiscard]] Walk walk(const Problem& problem, std::span<const Trial> history) const;

private:
    [[nodiscard]] static std::vector<Assignment> assignments(const Stage& stage,
                                                             const SearchSpace& space);
    [[nodiscard]] static std::vector<Candidate> candidates(const Stage& stage,
                                                           const SearchSpace& space,
                                                           const Configuration& base);
    /// Decides a step whose candidates are all told; a proposal when a replicate is needed first.
    /// `last`: nothing is measured on top of its winner any more.
    std::optional<Answer> decide(Step& step, const Problem& problem, const Standings& standings,
                                 bool last) const;

    Options options_;
};

}  // namespace servetune
