// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial.hpp"

#include <span>

namespace servetune {

/// Is told what a running study does, in the study's thread, after the journal has it; for progress
/// lines and logs. Does nothing by itself. What it throws ends the run (StopReason::error); no told
/// trial is lost by that, and the next run goes on.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void resumed(std::span<const Trial> /*history*/) {}
    virtual void started(const Trial& /*trial*/) {}
    virtual void told(const Trial& /*trial*/, std::span<const Trial> /*history*/) {}
};

}  // namespace servetune
