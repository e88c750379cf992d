// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study.hpp"

namespace servetune {

/// `Study::run` with several trials at once: one evaluator for each part of the machine, such as a
/// GPU. All evaluators measure alike; trial ids, asks and the journal stay in the caller's thread,
/// and the strategy sees trials under way.
///
/// First it is checked that neighbours do not disturb each other: the default on the first worker
/// alone, then on all at once. Where the first worker then differs by more than noise (2.5 standard
/// errors, and at least `min_gain`), the figures of the check are told as failures of the machine
/// and the study goes on with one trial at a time. A worker that differs from the median of the
/// others (3 standard errors) gets no further trial. A study that goes on finds both in its
/// journal. An interrupted check is made again and spends no budget.
///
/// What looks best is confirmed by one worker: its rounds compare one part of the machine.
class WorkersRun {
public:
    using Say = std::function<void(const std::string&)>;

    /// All must outlive it. `evaluators`: at least one. `say`: gets lines for a person, or empty.
    WorkersRun(Study& study, std::span<Evaluator* const> evaluators, const Budget& budget,
               Observer* observer = nullptr, Say say = {})
        : study_(study),
          evaluators_(evaluators),
          budget_(budget),
          observer_(observer),
          say_(std::move(say)) {}

    /// As `Study::run`. The first worker that takes trials measures what is reported at the end.
    Summary run(const std::stop_token& stop = {});

private:
    class Loop;
    Study& study_;
    std::span<Evaluator* const> evaluators_;
    Budget budget_;
    Observer* observer_;
    Say say_;
};

}  // namespace servetune
