// SPDX-License-Identifier: Apache-2.0
// An engine as a job of Ray: what is submitted.
#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "engine/shell_word.hpp"
#include "ray_jobs.hpp"
#include "servetune/error.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace servetune {
namespace {

/// A word for /bin/sh, whatever stands in it.
std::string word_for_ray(const std::string& text) {
    if (text.find('\0') != std::string::npos)
        throw UsageError(
            "a word of the engine's command has a NUL character, which no shell passes on");
    return shell_quoted(text);
}

std::string whole_seconds(double seconds) {
    return std::to_string(static_cast<std::int64_t>(std::ceil(seconds)));
}

/// Writes the files into a new folder and goes there.
std::string writing(const std::map<std::string, std::string>& files) {
    std::string result = "st_folder=$(mktemp -d) && cd \"$st_folder\" || exit 254; ";
    for (const auto& [name, content] : files) {
        const std::string file = word_for_ray(name);
        if (const auto slash = name.rfind('/'); slash != std::string::npos && slash > 0)
            result += "mkdir -p " + word_for_ray(name.substr(0, slash)) + " && ";
        result += "printf %s " + word_for_ray(content) + " > " + file + " || exit 254; ";
    }
    return result + "export st_folder; ";
}

/// Runs its words, waits for their end also when it gets TERM itself, and removes the folder.
constexpr const char* removes_folder =
    R"sh('trap : TERM; "$@" & st_engine=$!; while :; do wait $st_engine; st_code=$?; kill -0 $st_engine 2> /dev/null || break; done; )sh"
    R"sh(cd /; rm -rf -- "$st_folder"; exit $st_code')sh";

}  // namespace

nlohmann::json ray_job_of(const RayOptions& options, const LaunchRequest& request,
                          const std::string& name, const std::string& label) {
    // Ray's own address is set in a job: an engine that uses Ray for itself would join this
    // cluster.
    std::string entrypoint = "unset RAY_ADDRESS; ";
    if (!request.command.files.empty()) entrypoint += writing(request.command.files);
    entrypoint +=
        "exec timeout --signal=TERM --kill-after=" + std::to_string(ray_kill_after_seconds) + " " +
        whole_seconds(options.bound_seconds);
    if (!request.command.files.empty())
        entrypoint += std::string(" /bin/sh -c ") + removes_folder + " servetune";
    for (const std::string& word : request.command.argv) entrypoint += " " + word_for_ray(word);

    nlohmann::json variables = nlohmann::json::object();
    for (const auto& [variable, value] : request.environment) {
        if (const std::string why = wrong_with_variable(variable); !why.empty())
            throw UsageError("the engine's environment: " + why);
        variables[variable] = value;
    }
    variables.erase("CUDA_VISIBLE_DEVICES");  // Ray says which devices the job has
    variables["RAY_JOB_STOP_WAIT_TIME_S"] = whole_seconds(request.stop_within_seconds);

    nlohmann::json job{{"submission_id", name},
                       {"entrypoint", entrypoint},
                       {"metadata",
                        {{"servetune", label},
                         {"servetune_port", std::to_string(request.port)},
                         {"servetune_bound", whole_seconds(options.bound_seconds)}}},
                       {"runtime_env", {{"env_vars", variables}}}};
    if (request.devices > 0) job["entrypoint_num_gpus"] = request.devices;
    for (const auto& [resource, amount] : options.resources) {
        if (resource == "CPU") job["entrypoint_num_cpus"] = amount;
        else if (resource == "memory") job["entrypoint_memory"] = static_cast<std::int64_t>(amount);
        else job["entrypoint_resources"][resource] = amount;
    }
    return job;
}

std::string token_of(const RayOptions& options) {
    std::string token;
    if (!options.token_file.empty()) {
        std::ifstream stream(options.token_file, std::ios::binary);
        if (!stream)
            throw UsageError("`token_file` of `ray`: " + options.token_file + " cannot be read");
        token = trimmed(std::string{std::istreambuf_iterator<char>(stream), {}});
        if (token.empty())
            throw UsageError("`token_file` of `ray`: there is no token in " + options.token_file);
    } else if (!options.token_env.empty()) {
        const char* value = std::getenv(
            options.token_env.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
        if (value == nullptr || *value == '\0')
            throw UsageError("the environment has no " + options.token_env +
                             ", which `token_env` of `ray` names");
        token = value;
    }
    return token;
}

}  // namespace servetune
