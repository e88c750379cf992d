// SPDX-License-Identifier: Apache-2.0
// Who is compared: a strategy of ours, or a program that speaks JSON lines.
#pragma once

#include "servetune/strategy.hpp"
#include "task.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace servetune::convergence {

/// Chooses the trials of one run after the other; used by one thread.
class Contender {
public:
    virtual ~Contender() = default;
    /// `problem`: the task's with this seed. `task`: for contenders that know more than it.
    virtual void begin(const Problem& problem, const Task& task, std::size_t budget,
                       std::uint64_t seed) = 0;
    struct Asked {
        std::optional<Configuration> configuration{};  ///< nothing: it is done
        std::string why{};
        std::size_t infeasible = 0;  ///< answers that broke a known constraint; they cost no trial
    };
    /// The history's last trial was told since the last ask. It is never empty: trial 0 is the
    /// default, whatever the contender.
    virtual Asked ask(std::span<const Trial> history) = 0;
    /// Of each measured configuration the chance that its model gives to less than what was
    /// measured, from all other measurements (`Surrogate::leave_one_out_chances`). Nothing of a
    /// contender without such a model.
    [[nodiscard]] virtual std::vector<double> leave_one_out_chances(
        std::span<const Trial> /*history*/) const {
        return {};
    }
};

/// `NAME`: one of `own_contenders()`; `NAME@4`: the same with four trials under way at once.
/// `NAME=program words...`: a peer. Throws UsageError.
std::unique_ptr<Contender> contender(const std::string& described);
std::string name_of_contender(const std::string& described);
/// What follows the `@`; else 1.
std::size_t workers_of(const std::string& described);
/// Whether it does otherwise with another budget: our Bayesian strategies. `NAME~=program`: a peer
/// that looks at its budget.
bool knows_budget(const std::string& described);
std::vector<std::string> own_contenders();

/// The program is started at the first `begin` and serves all runs of this object.
std::unique_ptr<Contender> peer(const std::string& name, const std::string& command);

}  // namespace servetune::convergence
