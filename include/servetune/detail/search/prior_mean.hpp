// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/decision.hpp"
#include "servetune/objective.hpp"
#include "servetune/search_space.hpp"
#include "servetune/trial.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// How far inside a limit a value is; above 0: kept. Rates and times as ln of their ratio to the
/// limit, for they are ratios; `success_ratio` as the difference of logits after Laplace's rule for
/// some hundred requests, so that 1 is a number too; at or below 0 as differences.
[[nodiscard]] double margin_of(const Limit& limit, double value);

/// What is believed of a configuration before it is measured.
struct PriorBelief {
    std::optional<double>
        log_value{};  ///< ln of the objective, right up to a factor; nothing: not known
    /// How surely it gives a number at all, in standard deviations: a memory model's margin over
    /// its error, say; -3 to 3. Nothing: not known.
    std::optional<double> margin{};
    /// Of each limit of the objective how far inside it is, as `margin_of`; may end early.
    std::vector<std::optional<double>> limits{};
    /// Standard deviation of `log_value` around what is measured, between configurations of one
    /// study: as it was checked on measurements. Nothing: it never was.
    std::optional<double> log_error{};

    friend bool operator==(const PriorBelief&, const PriorBelief&) = default;
};

/// A configuration of this study that was good elsewhere.
struct Winner {
    Configuration configuration{};
    /// `the best of the table t.csv, but for attention_backend = fa3, which this study cannot have`
    std::string why{};

    friend bool operator==(const Winner&, const Winner&) = default;
};

/// Knowledge from outside of the study: a cost model, an earlier study, a published table. It
/// enters the surrogate as a regressor whose coefficient is fitted, so that knowledge that is wrong
/// is noticed and dropped (search/surrogate.hpp). Pure: the same configuration, the same belief.
class PriorMean {
public:
    virtual ~PriorMean() = default;
    /// For people: `the cost model of h100-sxm`.
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual PriorBelief belief(const Configuration& configuration) const = 0;
    /// What was measured to be best elsewhere, the best first, as configurations of this study: a
    /// trial of the first one costs less than a search for it. Empty: nothing was measured.
    [[nodiscard]] virtual const std::vector<Winner>& winners() const {
        static const std::vector<Winner> none;
        return none;
    }
    /// The same knowledge, corrected by what a study has measured: a pure function of the history.
    /// Null: it stays as it is.
    [[nodiscard]] virtual std::shared_ptr<const PriorMean> fitted_to(
        std::span<const Trial> /*history*/, const Decision& /*decision*/) const {
        return nullptr;
    }
};

/// Several of them, asked together.
class Beliefs {
public:
    Beliefs() = default;
    /// `recipes`: what others run, of which no figure is known; the best first.
    explicit Beliefs(std::vector<std::shared_ptr<const PriorMean>> sources,
                     std::vector<Winner> recipes = {})
        : sources_(std::move(sources)), recipes_(std::move(recipes)) {}

    [[nodiscard]] std::size_t size() const { return sources_.size(); }
    [[nodiscard]] const PriorMean& operator[](std::size_t i) const { return *sources_[i]; }
    /// Each corrected by what was measured, where it can be.
    [[nodiscard]] Beliefs fitted_to(std::span<const Trial> history,
                                    const Decision& decision) const {
        Beliefs result;
        result.recipes_ = recipes_;
        for (const auto& source : sources_) {
            auto fitted = source->fitted_to(history, decision);
            result.sources_.push_back(fitted ? std::move(fitted) : source);
        }
        return result;
    }
    /// All but the sources at these places.
    [[nodiscard]] Beliefs without(const std::set<std::size_t>& places) const {
        Beliefs result;
        result.recipes_ = recipes_;
        for (std::size_t i = 0; i < sources_.size(); ++i)
            if (!places.contains(i)) result.sources_.push_back(sources_[i]);
        return result;
    }
    /// The recipes, then of each source its best that this space takes, but for the default and for
    /// what is there already.
    [[nodiscard]] std::vector<Winner> winners(const SearchSpace& space) const;
    /// One of each.
    [[nodiscard]] std::vector<PriorBelief> of(const Configuration& configuration) const {
        std::vector<PriorBelief> result;
        for (const auto& source : sources_) result.push_back(source->belief(configuration));
        return result;
    }

    /// Whether the sources are the same objects, and the recipes equal.
    friend bool operator==(const Beliefs&, const Beliefs&) = default;

private:
    std::vector<std::shared_ptr<const PriorMean>> sources_{};
    std::vector<Winner> recipes_{};
};

/// How surely a configuration works by what is believed: the first margin that any source has,
/// within +-3; 0 where none has one.
inline double believed_margin(const std::vector<PriorBelief>& beliefs) {
    for (const PriorBelief& belief : beliefs)
        if (belief.margin) return std::clamp(*belief.margin, -3.0, 3.0);
    return 0;
}

}  // namespace servetune
