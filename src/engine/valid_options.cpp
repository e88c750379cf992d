// SPDX-License-Identifier: Apache-2.0
// What options of measuring can be, each in one place.
#include "servetune/base/option_check.hpp"
#include "servetune/engine/attach_evaluator.hpp"
#include "servetune/engine/command_evaluator.hpp"
#include "servetune/engine/engine_evaluator.hpp"
#include "servetune/engine/fit.hpp"
#include "servetune/engine/simulate_evaluator.hpp"

#include <sched.h>

#include <algorithm>
#include <set>

namespace servetune {
namespace {

constexpr std::size_t most_retries = 10;  // each waits four times as long as the one before: the tenth twelve days

void check_cores(OptionCheck& check, const std::vector<int>& cores) {
    for (const int core : cores)
        check.that(core >= 0 && core < CPU_SETSIZE, "cores", "numbers in [0, " + std::to_string(CPU_SETSIZE - 1) + "]",
                   std::to_string(core));
}

/// What an environment cannot hold would be cut, or be another variable.
void check_environment(OptionCheck& check, const std::map<std::string, std::string>& environment) {
    for (const auto& [name, value] : environment)
        check.that(!name.empty() && name.find('=') == std::string::npos && name.find('\0') == std::string::npos &&
                       value.find('\0') == std::string::npos,
                   "environment", "names without '=' and text without NUL", "'" + name + "'");
}

void check_weights(OptionCheck& check, const StudyWorkloads& workloads) {
    std::set<std::string> names;
    for (const auto* list : {&workloads.searched, &workloads.reported})
        for (const Workload& workload : *list) {
            check.that(workload.weight > 0 && workload.weight <= most_weight, "weight of '" + workload.name + "'", "a number in (0, 1e6]",
                       std::to_string(workload.weight));
            check.that(!workload.name.empty() && names.insert(workload.name).second, "workloads", "names, each once",
                       "'" + workload.name + "'");
        }
}

}  // namespace

std::string MachineWatchOptions::why_invalid() const {
    OptionCheck check;
    check.seconds("nvidia_smi_within_seconds", nvidia_smi_within_seconds).seconds("every_seconds", every_seconds);
    check_cores(check, cores);
    return check.text();
}

std::string MeasureOptions::why_invalid() const {
    OptionCheck check;
    check.part("load", load.why_invalid())
        .seconds("trial_within_seconds", trial_within_seconds)
        .within("warm_up_requests", static_cast<double>(warm_up_requests), 0, 1e6)
        .within("infrastructure_retries", static_cast<double>(infrastructure_retries), 0, most_retries);
    if (watch) check.part("watch", watch->why_invalid());
    return check.text();
}

std::string ProcessOptions::why_invalid() const {
    OptionCheck check;
    check.that(!argv.empty() && !argv.front().empty(), "argv", "a program", "none");
    check_cores(check, cores);
    check_environment(check, environment);
    return check.text();
}

std::string DeployOptions::why_invalid() const {
    OptionCheck check;
    check.seconds("ready_within_seconds", ready_within_seconds.value_or(1))
        .within("stop_within_seconds", stop_within_seconds, 0, longest_seconds)
        .within("failed_line_grace_seconds", failed_line_grace_seconds, 0, longest_seconds);
    check_cores(check, cores);
    check_environment(check, environment);
    return check.text();
}

std::string EngineEvaluator::Options::why_invalid() const {
    return OptionCheck().part("deploy", deploy.why_invalid()).part("measure", measure.why_invalid()).text();
}

std::string AttachEvaluator::Options::why_invalid() const {
    return OptionCheck().that(!url.empty(), "url", "an address", "none").part("measure", measure.why_invalid()).text();
}

std::string CommandEvaluator::Options::why_invalid() const {
    OptionCheck check;
    check.that(!argv.empty() && !argv.front().empty(), "argv", "a program", "none")
        .seconds("within_seconds", within_seconds)
        .within("stop_within_seconds", stop_within_seconds, 0, longest_seconds)
        .at_least("answer_bytes", answer_bytes, 1);
    check_environment(check, environment);
    return check.text();
}

std::string FitOptions::why_invalid() const {
    return OptionCheck()
        .at_least("factors", factors.size(), 1)
        .at_least("metrics", metrics.size(), 1)
        .at_least("folds", folds, 1)
        .at_least("evaluations", evaluations, 1)
        .text();
}

std::string SimulateEvaluator::Options::why_invalid() const {
    OptionCheck check;
    check.part("noise", noise.why_invalid());
    for (const auto& [name, weight] : weights)
        check.that(weight > 0 && weight <= most_weight, "weight of '" + name + "'", "a number in (0, 1e6]", std::to_string(weight));
    return check.text();
}

std::string StudyWorkloads::why_invalid() const {
    OptionCheck check;
    check_weights(check, *this);
    return check.text();
}

}  // namespace servetune
