// SPDX-License-Identifier: Apache-2.0
// `autotune import LOG --write-workload FILE`: the traffic in logs becomes a workload.
#include "commands.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "results/traffic.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace autotune {

using namespace servetune;

/// The trace goes beside the workload, and nothing that is there is replaced.
int import_traffic(const ImportArguments& arguments) {
    if (arguments.study || arguments.write_study || arguments.rest || arguments.output ||
        !arguments.command.empty() || !arguments.objective.empty())
        throw UsageError(
            "--write-workload reads logs; of the other options it takes --window and --json");
    constexpr double default_window_seconds = 600;  // a trial of some minutes
    const std::filesystem::path& file = *arguments.write_workload;
    if (!names_yaml_file(file.string()))
        throw UsageError("--write-workload: a file ending in .yaml wanted, got " + file.string());
    const double window_seconds = arguments.window_seconds.value_or(default_window_seconds);
    if (window_seconds < 1)
        throw UsageError("--window: a second or more wanted, got " + seconds_text(window_seconds));
    std::filesystem::path trace = file;
    trace.replace_extension(".jsonl");
    NewFile new_workload(file);
    NewFile new_trace(trace);
    const Traffic traffic = read_traffic(arguments.documents, window_seconds);
    new_trace.write(traffic.trace_text());
    new_workload.write(traffic.workload_text(file.stem().string(), trace.filename().string()));
    Workload workload = Catalogue::standard().workload(
        Yaml::parse(nlohmann::json(file.string()).dump(), "--write-workload"));
    workload.requests = 1;
    (void)plan_requests(workload);  // what is left behind can be sent
    new_workload.keep();
    new_trace.keep();
    const std::vector<std::string> lines = traffic.lines();
    if (arguments.json)
        put_json({{"workload", file.string()},
                  {"trace", trace.string()},
                  {"requests", traffic.requests.size()},
                  {"seconds", traffic.window_seconds},
                  {"shared_prefix_share", traffic.shared},
                  {"conversations", traffic.conversations},
                  {"remarks", lines}});
    else
        for (const std::string& line : lines) put(stdout, "{}\n", line);
    put(stderr, "{} and {} are written; `use: {}` in a study sends this traffic\n", file.string(),
        trace.string(), file.string());
    return done;
}

}  // namespace autotune
