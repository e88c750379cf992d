// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial.hpp"

namespace servetune {

/// Where trials are kept. Each call is one durable step: when it returns, the event survives the
/// death of the process.
///
/// A trial is asked once, started any number of times (a started trial whose process died is
/// started again), each time perhaps interrupted, told once, with finite numbers and no negative
/// standard error. Anything else throws UsageError and keeps nothing: what a journal has taken, it
/// can read again. Implementations: `MemoryJournal` below, `SqliteJournal` (sqlite_journal.hpp);
/// all run tests/contract/journal_contract.hpp.
class Journal {
public:
    virtual ~Journal() = default;
    /// Records a new trial; its id must be the number of trials so far.
    virtual void asked(const Trial& trial) = 0;
    virtual void started(std::uint64_t id, double at) = 0;
    /// Records that the last start of an open trial ended without a result and without the death of
    /// the process, as a stop by the user does. A journal that does not keep it (the default) takes
    /// such a start for a death.
    virtual void interrupted(std::uint64_t /*id*/, double /*at*/) {}
    virtual void told(std::uint64_t id, const SharedOutcome& outcome, double at) = 0;
    /// All trials, by id.
    [[nodiscard]] virtual std::vector<Trial> trials() const = 0;
};

/// The rules of a trial's life, checked on the trials kept so far; shared by the journals. Throws
/// UsageError.
inline void check_asked(const std::vector<Trial>& trials, const Trial& trial) {
    if (trial.id != trials.size())
        throw UsageError("trial " + std::to_string(trial.id) + " cannot be asked: the next id is " +
                         std::to_string(trials.size()));
}
inline void check_open(const std::vector<Trial>& trials, std::uint64_t id) {
    if (id >= trials.size())
        throw UsageError("there is no trial " + std::to_string(id) + ": " +
                         std::to_string(trials.size()) + " were asked");
    if (trials[id].told()) throw UsageError("trial " + std::to_string(id) + " is already told");
}
inline void check_started(const std::vector<Trial>& trials, std::uint64_t id) {
    check_open(trials, id);
    if (trials[id].unended_starts == 0)
        throw UsageError("trial " + std::to_string(id) + " is not under way");
}

/// Whether a figure is 0 or of a size that can be meant. Beyond, sums, squares and ratios of a few
/// figures overflow or vanish, and what is concluded from them would be wrong.
inline bool has_sound_size(double figure) {
    constexpr double smallest = 1e-100;
    constexpr double largest = 1e100;
    const double size = std::abs(figure);
    return size == 0 || (size >= smallest && size <= largest);
}

/// Which number of a measurement no journal keeps, in words; empty: all are fit.
std::string unfit_number_in(const Measurement& measurement);

/// The same outcome, or Failure{invalid_result} where a number of it cannot be.
inline Outcome failed_if_unfit(Outcome outcome) {
    const auto* measurement = std::get_if<Measurement>(&outcome);
    std::string message = measurement != nullptr ? unfit_number_in(*measurement) : "";
    return message.empty() ? std::move(outcome)
                           : Failure{FailureKind::invalid_result, std::move(message)};
}
void check_told(const std::vector<Trial>& trials, std::uint64_t id, const SharedOutcome& outcome);

/// Keeps trials as long as it lives: for tests, and for tools that keep their own books.
class MemoryJournal : public Journal {
public:
    void asked(const Trial& trial) override {
        check_asked(trials_, trial);
        trials_.push_back(trial);
        trials_.back().unended_starts = 0;
    }
    void started(std::uint64_t id, double at) override {
        check_open(trials_, id);
        trials_[id].started_at = at;
        ++trials_[id].unended_starts;
    }
    void interrupted(std::uint64_t id, double /*at*/) override {
        check_started(trials_, id);
        --trials_[id].unended_starts;
    }
    void told(std::uint64_t id, const SharedOutcome& outcome, double at) override {
        check_told(trials_, id, outcome);
        trials_[id].outcome = outcome;
        trials_[id].told_at = at;
    }
    [[nodiscard]] std::vector<Trial> trials() const override { return trials_; }

private:
    std::vector<Trial> trials_;
};

}  // namespace servetune
