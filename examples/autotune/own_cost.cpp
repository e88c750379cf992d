// SPDX-License-Identifier: Apache-2.0
#include "own_cost.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

namespace autotune {
namespace {

/// Of this process and of those that it has started and that have ended, with theirs.
double processor_seconds() {
    double seconds = 0;
    for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        struct rusage used {};
        if (getrusage(whose, &used) != 0) continue;
        for (const timeval& part : {used.ru_utime, used.ru_stime})
            seconds += static_cast<double>(part.tv_sec) + static_cast<double>(part.tv_usec) / 1e6;
    }
    return seconds;
}

}  // namespace

OwnCost::OwnCost() : began_seconds_(processor_seconds()) {}

std::string OwnCost::text(std::size_t trials) const {
    if (trials == 0) return "";
    return fmt::format("autotune's own cost: {:.2f} s of processor time a trial",
                       (processor_seconds() - began_seconds_) / static_cast<double>(trials));
}

}  // namespace autotune
