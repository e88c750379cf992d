// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch_clients.hpp"
#include "servetune/launcher.hpp"

#include <string>
#include <vector>

namespace servetune {

/// What launchers share whose engines are jobs of a cluster, which chooses machine and devices and
/// finds a job by its name.
class JobLauncher : public Launcher {
public:
    [[nodiscard]] bool on_this_machine() const override { return false; }
    [[nodiscard]] bool gives_out_devices() const override { return true; }
    [[nodiscard]] std::string pinned(const std::string& /*image*/) const override { return {}; }
    [[nodiscard]] Command shown(const LaunchRequest& request) const override {
        return request.command;
    }

    std::string remove(const Launch& launch) const override;
    [[nodiscard]] std::vector<std::string> leftovers(const std::string& mark) const override;
    std::vector<std::string> end_leftovers(const std::string& mark) const override;

protected:
    struct JobLeft {
        std::string name{};
        std::string text{};  ///< for a person
    };
    /// Jobs of a study that are still there.
    [[nodiscard]] virtual std::vector<JobLeft> jobs_left(const std::string& mark) const = 0;
    /// Ends a job and waits for it. Why it would not go, for a person; empty: it is gone.
    [[nodiscard]] virtual std::string removed(const std::string& name) const = 0;
    /// Whether a job that would not go keeps the next one from being started.
    [[nodiscard]] virtual bool keeps_others_out(const std::string& /*name*/) const { return true; }
    /// To be called before a job is started. Throws IoError where an earlier one would not go.
    void end_earlier() const {
        not_removed_.try_again([this](const std::string& name) { return removed(name); });
    }

private:
    mutable NotRemoved not_removed_{};
};

}  // namespace servetune
