// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/study/summary.hpp"
#include "servetune/trial.hpp"

#include <string>
#include <utility>
#include <variant>

namespace servetune {

/// The answer of `Study::ask`: a trial to evaluate, waiting, or finished.
///
/// Who tells each trial before the next ask never waits, and may write `while (const auto trial =
/// study.ask())`. Who evaluates several at once distinguishes the three:
///     const AskResult asked = study.ask(budget);
///     if (asked.trial()) start(*asked.trial());
///     else if (asked.waiting()) study.tell(...);  // one of the trials under way, then ask again
///     else stop_because(asked.finished()->why);
class AskResult {
public:
    /// Nothing can be asked until a trial under way is told.
    struct Waiting {};
    /// Nothing will be asked any more.
    struct Finished {
        StopReason reason = StopReason::strategy_finished;
        std::string why{};  ///< for a person
    };

    explicit AskResult(Trial trial) : answer_(std::move(trial)) {}
    explicit AskResult(Waiting waiting) : answer_(waiting) {}
    explicit AskResult(Finished finished) : answer_(std::move(finished)) {}

    /// Null: there is none now.
    [[nodiscard]] const Trial* trial() const& { return std::get_if<Trial>(&answer_); }
    [[nodiscard]] const Trial* trial() const&& = delete;
    [[nodiscard]] bool waiting() const { return std::holds_alternative<Waiting>(answer_); }
    /// Null: it has not.
    [[nodiscard]] const Finished* finished() const& { return std::get_if<Finished>(&answer_); }
    [[nodiscard]] const Finished* finished() const&& = delete;

    /// Whether there is a trial.
    [[nodiscard]] explicit operator bool() const { return std::holds_alternative<Trial>(answer_); }
    /// The trial. Throws std::bad_variant_access where there is none.
    const Trial& operator*() const& { return std::get<Trial>(answer_); }
    const Trial& operator*() const&& = delete;
    const Trial* operator->() const { return &std::get<Trial>(answer_); }

private:
    std::variant<Trial, Waiting, Finished> answer_;
};

}  // namespace servetune
