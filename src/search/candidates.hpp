// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_pool.hpp"
#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// What can be proposed: the whole space where it can be listed, else an even sample of it, the
/// same one for one seed; and what is believed of each.
class Candidates {
public:
    static constexpr std::size_t max_listed =
        1'000'000;  ///< 24 MB and half a second for each listing of twelve parameters
    static constexpr std::size_t max_believed =
        20'000;  ///< where beliefs are asked for: a cost model takes some 50 us for each
    static constexpr std::size_t most_sampled = 20'000;  ///< of what cannot be listed

    Candidates(const Problem& problem, const Beliefs& beliefs, std::uint64_t seed = 0)
        : geometry_(problem.space), pool_(geometry_) {
        const std::size_t most = beliefs.size() == 0 ? max_listed : max_believed;
        if (problem.feasible.finite() && problem.feasible.size() <= double(most)) {
            listed_ = true;
            problem.feasible.for_each([&](const Configuration& configuration) {
                return add(configuration, beliefs), true;
            });
            return;
        }
        Rng rng(reseeded(fingerprint_of(key_of(problem)).bits, seed));
        std::set<std::uint64_t> known;
        std::vector<Configuration> drawn;
        constexpr std::size_t most_values =
            2'500'000;  // of all parameters together: each takes some 500 ns
        const std::size_t parameters = std::max<std::size_t>(problem.space.parameters().size(), 1);
        const std::size_t sample =
            std::min(most_sampled, std::max<std::size_t>(most_values / parameters, 1));
        for (std::size_t i = 0; i < 2 * sample && drawn.size() < sample; ++i)
            if (Configuration one = problem.feasible.sample(rng);
                known.insert(one.fingerprint().bits).second)
                drawn.push_back(std::move(one));
        sort(drawn);
        for (const Configuration& configuration : drawn) add(configuration, beliefs);
    }

    /// Asks again what is believed of each, where that has changed.
    void believe(const Beliefs& beliefs) {
        beliefs_.clear();
        for (std::size_t i = 0; i < pool_.size(); ++i)
            for (PriorBelief& belief : beliefs.of(configuration(i))) beliefs_.push_back(belief);
    }

    /// Decides where draws begin: spaces that differ have different ones.
    static std::string key_of(const Problem& problem) {
        std::string key = problem.space.default_configuration().text() + " of " +
                          text_of(problem.feasible.size());
        for (const Parameter& parameter : problem.space.parameters()) {
            key += "|" + parameter.name + " " + parameter.domain_text() + " " +
                   parameter.concept_name + (parameter.grows_memory ? "+" : "");
            if (parameter.value_when_unset) key += "~" + text_of(*parameter.value_when_unset);
        }
        for (const Constraint& constraint : problem.space.constraints())
            key += "|" + text_of(constraint);
        return key;
    }

    [[nodiscard]] const LevelGeometry& geometry() const { return geometry_; }
    [[nodiscard]] const CandidatePool& pool() const { return pool_; }
    [[nodiscard]] bool listed() const { return listed_; }
    [[nodiscard]] Configuration configuration(std::size_t i) const {
        if (geometry_.finite()) return geometry_.decode(pool_.point(i), {});
        const auto from = numbers_.begin() + std::ptrdiff_t(i * geometry_.dimensions());
        return geometry_.decode(pool_.point(i),
                                {from, from + std::ptrdiff_t(geometry_.dimensions())});
    }
    /// Of candidate i; empty where there are no sources.
    [[nodiscard]] std::vector<PriorBelief> beliefs(std::size_t i) const {
        const std::size_t sources = pool_.size() == 0 ? 0 : beliefs_.size() / pool_.size();
        const auto from = beliefs_.begin() + std::ptrdiff_t(i * sources);
        return {from, from + std::ptrdiff_t(sources)};
    }

private:
    void add(const Configuration& configuration, const Beliefs& beliefs) {
        pool_.add(geometry_, geometry_.encode(configuration));
        if (!geometry_.finite())
            for (const double number : geometry_.numbers(configuration)) numbers_.push_back(number);
        for (PriorBelief& belief : beliefs.of(configuration)) beliefs_.push_back(belief);
    }

    LevelGeometry geometry_;
    CandidatePool pool_;
    bool listed_ = false;
    std::vector<double> numbers_{};  ///< of continuous dimensions, a row a candidate
    std::vector<PriorBelief> beliefs_{};
};

}  // namespace servetune
