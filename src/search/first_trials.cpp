// SPDX-License-Identifier: Apache-2.0
#include "first_trials.hpp"

#include "base/probability.hpp"
#include "output_scale.hpp"
#include "start_design.hpp"

#include <algorithm>

namespace servetune {

FirstTrials::FirstTrials(const Problem& problem, const Candidates& candidates,
                         std::vector<ConfigurationEvidence> evidence, const Beliefs& beliefs,
                         std::size_t of_knowledge, std::size_t budget, std::uint64_t seed)
    : problem_(problem),
      candidates_(candidates),
      evidence_(std::move(evidence)),
      beliefs_(beliefs),
      of_knowledge_(of_knowledge),
      trials_(start_trials(candidates.geometry().dimensions(), budget)),
      seed_(seed),
      margins_(margins_hold(evidence_)),
      ran_out_(problem.space, candidates.geometry(), evidence_) {
    for (const ConfigurationEvidence& entry : evidence_) points_.push_back(entry.point);
    // A model that promises nothing has no trial; a sure one takes all of the design but one trial.
    for (std::size_t source = 0; source < beliefs_.size() && !evidence_.empty(); ++source) {
        constexpr double surely = 2;  // errors
        const auto& error = evidence_.front().beliefs[source].log_error;
        const double promise = promised(source).first;
        if (error && promise > surely * *error) skipped_ = trials_ - 2;
        else if (!(promise > 0) && beliefs_[source].winners().empty()) ++skipped_;
    }
}

std::size_t FirstTrials::of_knowledge(const Beliefs& beliefs, const SearchSpace& space) {
    std::size_t models = 0;
    for (std::size_t i = 0; i < beliefs.size(); ++i) models += beliefs[i].winners().empty() ? 1 : 0;
    return beliefs.winners(space).size() + models;
}

std::optional<Proposal> FirstTrials::next(const std::vector<Configuration>& suggestions) const {
    if (evidence_.size() + skipped_ >= trials_ + of_knowledge_) return std::nullopt;
    if (evidence_.size() <= of_knowledge_)
        if (auto proposal = by_knowledge()) return proposal;
    return by_design(suggestions);
}

std::optional<Proposal> FirstTrials::by_knowledge() const {
    for (const Winner& winner : beliefs_.winners(problem_.space))
        if (!tried(winner.configuration) && may_work(winner.configuration))
            return Proposal{winner.configuration, winner.why};
    for (std::size_t source = 0; source < beliefs_.size() && !evidence_.empty(); ++source) {
        const auto [promise, place] = promised(source);
        if (!(promise > 0)) continue;
        const Configuration best = candidates_.configuration(place);
        if (!tried(best)) return Proposal{best, "best by " + beliefs_[source].name()};
    }
    return std::nullopt;
}

std::pair<double, std::size_t> FirstTrials::promised(std::size_t source) const {
    constexpr double unchecked = 0.3;  // ln: the error of a model that nobody checked
    const std::vector<bool> out = ran_out_.covers(candidates_.pool());
    const double sign = problem_.objective.leading().direction == Direction::maximize ? 1 : -1;
    std::vector<double> worth;
    std::pair<double, std::size_t> best;
    for (std::size_t i = 0; i < out.size() && beliefs_[source].winners().empty(); ++i) {
        const std::vector<PriorBelief> beliefs = candidates_.beliefs(i);
        const PriorBelief& belief = beliefs[source];
        if (!belief.log_value || out[i] || (margins_ && believed_margin(beliefs) < 0)) continue;
        worth.push_back(sign * *belief.log_value);
        for (const auto& margin : belief.limits)
            if (margin)
                worth.back() += log_normal_cdf(*margin / belief.log_error.value_or(unchecked));
        if (worth.size() == 1 || worth.back() > best.first) best = {worth.back(), i};
    }
    return {best.first - median_of(worth), best.second};
}

std::optional<Proposal> FirstTrials::by_design(
    const std::vector<Configuration>& suggestions) const {
    const auto works = [&](const Configuration& one) { return may_work(one); };
    const bool half_left =
        2 * evidence_.size() < trials_ + 1;  // the rest of the start is the design's
    auto own = half_left ? own_default(problem_.space, evidence_, works, seed_) : std::nullopt;
    if (own) return Proposal{std::move(*own), "a level that much depends on, at its own defaults"};
    if (const auto found = find_if(suggestions, works); found != suggestions.end())
        return Proposal{*found, "suggested"};
    const std::size_t left = trials_ + of_knowledge_ - evidence_.size();
    auto few_changes = start_point(problem_.space, candidates_.geometry(), evidence_, trials_ - 1,
                                   left, works, seed_);
    if (few_changes && !tried(*few_changes))
        return Proposal{std::move(*few_changes),
                        "the default with its least-tried settings changed"};
    const std::vector<bool> out = ran_out_.covers(candidates_.pool());
    std::vector<double> chances;
    for (std::size_t i = 0; i < candidates_.pool().size(); ++i) {
        const double by_margin =
            margins_ ? normal_cdf(0.5 + believed_margin(candidates_.beliefs(i))) : 1;
        chances.push_back(out[i] ? std::min(by_margin, OutOfMemoryRule::chance) : by_margin);
    }
    Configuration far = candidates_.configuration(
        farthest(candidates_.geometry(), candidates_.pool(), points_, chances, seed_));
    if (tried(far)) return std::nullopt;
    return Proposal{std::move(far), "far from all that was tried"};
}

bool FirstTrials::tried(const Configuration& configuration) const {
    return any_of(evidence_, [&](const ConfigurationEvidence& entry) {
        return entry.configuration == configuration;
    });
}

bool FirstTrials::may_work(const Configuration& configuration) const {
    return (!margins_ || believed_margin(beliefs_.of(configuration)) > -1) &&
           !ran_out_.covers({candidates_.geometry().encode(configuration)}).front();
}

}  // namespace servetune
