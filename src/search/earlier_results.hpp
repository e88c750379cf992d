// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace servetune {

class LevelGeometry;
class Standings;
class FittedModels;

/// What an earlier study (or a measured table) says of this study's configurations: the posterior
/// mean of a Gaussian process of ln(objective), fitted as `Bayesian` fits its own to all that was
/// measured then.
///
/// A parameter of this study is one of the earlier study's where they have a concept in common,
/// else where they have the same name. What only the earlier one had stays as it was in the earlier
/// default; what only this one has makes no difference, and neither does what never varied then.
/// There is no margin: what failed then counts as a bad value (FailureModel::hybrid), so it is
/// guarded as the rest of it is.
///
///     beliefs.push_back(std::make_shared<EarlierResults>(
///         "the study 'h100'", trials, concepts, objective, decision, space));
class EarlierResults : public PriorMean {
public:
    /// `trials`: the earlier history, its default first. `concepts`: the earlier parameters' where
    /// they have one. `constants`: values of parameters that this study has without varying them
    /// (its only engine). Throws UsageError where nothing was measured, or nothing varied that this
    /// study has too.
    EarlierResults(std::string name, const std::vector<Trial>& trials,
                   const std::map<std::string, std::string>& concepts, const Objective& objective,
                   const Decision& decision, const SearchSpace& space,
                   const Assignment& constants = {});
    ~EarlierResults() override;

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override;
    /// The best ten, in this study's values: the same, or of numbers the nearest. Those of another
    /// engine and those that break a rule here are left out.
    [[nodiscard]] const std::vector<Winner>& winners() const override { return winners_; }

    /// Names (or concepts) of the parameters that both have and that varied then.
    [[nodiscard]] std::vector<std::string> shared() const;

private:
    /// One idea: what the earlier study called it, and what this one does.
    struct Link {
        std::string key{};                        ///< the concept, else the name
        std::set<std::string> earlier{};          ///< at most one is active at a time
        std::vector<const Parameter*> current{};  ///< while it is made
        std::vector<std::string> names{};         ///< of `current`
        /// where this study has none: as it was in the earlier default; nothing: inactive
        std::optional<Value> otherwise{};
        std::vector<std::optional<Value>> values{};  ///< of each earlier trial
    };
    static constexpr std::size_t most_results =
        256;  ///< a fit of more takes minutes, and a belief needs no more

    static Value plain(const Value& value);
    static std::vector<Link> links(const std::vector<Trial>& trials,
                                   const std::map<std::string, std::string>& concepts,
                                   const SearchSpace& space, const Assignment& constants);
    static Parameter parameter_of(const Link& link);
    /// `standings`: of `history`, whose trials the links have the values of.
    [[nodiscard]] std::vector<Winner> winners_of(const std::vector<Trial>& history,
                                                 const Standings& standings, const Goal& goal,
                                                 const SearchSpace& space,
                                                 const Assignment& constants) const;

    std::string name_;
    std::vector<Link> links_{};
    std::vector<Winner> winners_{};
    std::unique_ptr<Problem> problem_{};
    std::unique_ptr<LevelGeometry> geometry_{};
    std::unique_ptr<FittedModels> model_{};
};

}  // namespace servetune
