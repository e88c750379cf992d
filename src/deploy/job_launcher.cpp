// SPDX-License-Identifier: Apache-2.0
#include "job_launcher.hpp"

#include <utility>

namespace servetune {

std::string JobLauncher::remove(const Launch& launch) const {
    const std::string why = removed(launch.name);
    if (!why.empty() && keeps_others_out(launch.name)) not_removed_.add(launch.name);
    return why.empty() ? why : why + "\n";
}

std::vector<std::string> JobLauncher::leftovers(const std::string& mark) const {
    std::vector<std::string> result;
    for (JobLeft& job : jobs_left(mark)) result.push_back(std::move(job.text));
    return result;
}

std::vector<std::string> JobLauncher::end_leftovers(const std::string& mark) const {
    std::vector<std::string> result;
    for (const JobLeft& job : jobs_left(mark))
        if (std::string why = removed(job.name); !why.empty()) result.push_back(std::move(why));
    return result;
}

}  // namespace servetune
