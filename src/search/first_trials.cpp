// SPDX-License-Identifier: Apache-2.0
#include "first_trials.hpp"

#include "base/probability.hpp"
#include "start_design.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

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
}

std::size_t FirstTrials::of_knowledge(const Beliefs& beliefs, const SearchSpace& space) {
    constexpr std::size_t of_model = 2;
    bool model = false;
    for (std::size_t i = 0; i < beliefs.size(); ++i) model = model || beliefs[i].winners().empty();
    return beliefs.winners(space).size() + (model ? of_model : 0);
}

std::optional<Proposal> FirstTrials::next(const std::vector<Configuration>& suggestions) const {
    if (evidence_.size() <= of_knowledge_)
        if (auto proposal = by_knowledge()) return proposal;
    return by_design(suggestions);
}

std::optional<Proposal> FirstTrials::by_knowledge() const {
    for (const Winner& winner : beliefs_.winners(problem_.space))
        if (!tried(winner.configuration) && may_work(winner.configuration))
            return Proposal{winner.configuration, winner.why};
    for (std::size_t source = 0; source < beliefs_.size(); ++source)
        if (beliefs_[source].winners().empty())
            if (auto proposal = by_model(source)) return proposal;
    return std::nullopt;
}

std::optional<Proposal> FirstTrials::by_model(std::size_t source) const {
    constexpr double as_good = 0.05;  // ln: less than any model's error
    const std::vector<bool> out = ran_out_.covers(candidates_.pool());
    const double sign = problem_.objective.leading().direction == Direction::maximize ? 1 : -1;
    constexpr double unknown = -std::numeric_limits<double>::infinity();
    std::vector<double> believed(candidates_.pool().size(), unknown);
    for (std::size_t i = 0; i < believed.size(); ++i) {
        const std::vector<PriorBelief> beliefs = candidates_.beliefs(i);
        if (const auto& value = beliefs[source].log_value;
            value && !out[i] && (!margins_ || believed_margin(beliefs) >= 0))
            believed[i] = sign * *value;
    }
    const auto best = std::max_element(believed.begin(), believed.end());
    if (best == believed.end() || *best == unknown) return std::nullopt;
    const std::string name = beliefs_[source].name();
    Configuration first =
        candidates_.configuration(static_cast<std::size_t>(best - believed.begin()));
    if (!tried(first)) return Proposal{std::move(first), "best by " + name};
    if (behind_default(first)) return std::nullopt;
    std::optional<std::size_t> other;
    double farthest_of_them = 0;
    for (std::size_t i = 0; i < believed.size(); ++i) {
        if (believed[i] < *best - as_good) continue;
        const double here = squared_distance_to_nearest(candidates_.geometry(),
                                                        candidates_.pool().point(i), points_);
        if (here <= farthest_of_them) continue;
        other = i;
        farthest_of_them = here;
    }
    if (!other) return std::nullopt;
    return Proposal{candidates_.configuration(*other),
                    "as good by " + name + ", and unlike all that was tried"};
}

std::optional<Proposal> FirstTrials::by_design(
    const std::vector<Configuration>& suggestions) const {
    const auto works = [&](const Configuration& one) { return may_work(one); };
    const bool half_left =
        2 * evidence_.size() < trials_ + 1;  // the rest of the start is the design's
    auto own = half_left ? own_default(problem_.space, evidence_, works, seed_) : std::nullopt;
    if (own) return Proposal{std::move(*own), "a level that much depends on, at its own defaults"};
    if (const auto found = std::find_if(suggestions.begin(), suggestions.end(), works);
        found != suggestions.end())
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
    return std::any_of(evidence_.begin(), evidence_.end(), [&](const ConfigurationEvidence& entry) {
        return entry.configuration == configuration;
    });
}

bool FirstTrials::behind_default(const Configuration& configuration) const {
    const auto found = std::find_if(
        evidence_.begin(), evidence_.end(),
        [&](const ConfigurationEvidence& entry) { return entry.configuration == configuration; });
    if (found == evidence_.end() || found->under_way()) return false;
    const ConfigurationEvidence& usual = evidence_.front();
    if (!found->measured() || !usual.measured()) return usual.measured();
    return problem_.objective.leading().better(usual.means.front(), found->means.front());
}

bool FirstTrials::may_work(const Configuration& configuration) const {
    return (!margins_ || believed_margin(beliefs_.of(configuration)) > -1) &&
           !ran_out_.covers({candidates_.geometry().encode(configuration)}).front();
}

}  // namespace servetune
