// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/io/study_file.hpp"
#include "servetune/study/observer.hpp"

#include <string>

namespace autotune {

/// What a person sees of a running study on standard error: on a terminal one line that is overwritten (trial, incumbent, gain over
/// the default, time left), elsewhere one plain line a trial.
class Progress : public servetune::Observer {
public:
    Progress(const servetune::StudySetup& setup, const servetune::Budget& budget, bool terminal);
    ~Progress() override;

    void resumed(std::span<const servetune::Trial> history) override;
    void started(const servetune::Trial& trial) override;
    void told(const servetune::Trial& trial, std::span<const servetune::Trial> history) override;

private:
    void show(const std::string& line, bool overwrite);
    /// What is tried, told by what is changed.
    [[nodiscard]] std::string subject(const servetune::Trial& trial) const;

    const servetune::StudySetup& setup_;
    servetune::Budget budget_;
    bool terminal_;
    bool line_open_ = false;
    std::string incumbent_;
};

}  // namespace autotune
