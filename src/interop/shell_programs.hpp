// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// Programs that start another one, whose words stand behind theirs.
constexpr std::array<std::string_view, 29> wrappers{"sudo",    "nohup",      "time",
                                                    "env",     "exec",       "uv",
                                                    "uvx",     "numactl",    "taskset",
                                                    "setsid",  "stdbuf",     "screen",
                                                    "tmux",    "srun",       "mpirun",
                                                    "mpiexec", "poetry",     "conda",
                                                    "mamba",   "micromamba", "pixi",
                                                    "nice",    "apptainer",  "singularity",
                                                    "bash",    "sh",         "trtllm-llmapi-launch",
                                                    "kubectl", "command"};

constexpr std::array<std::string_view, 3> container_programs{"docker", "podman", "nerdctl"};

/// Options of these whose value is a name or a place, never a program: `--name llama-server`.
constexpr std::array<std::string_view, 18> container_names{
    "--name",  "--hostname", "-h",    "--network", "--net",     "--network-alias",
    "--label", "-l",         "-v",    "--volume",  "--mount",   "-w",
    "--user",  "-u",         "--pod", "-p",        "--publish", "--workdir"};

/// Devices, access to hubs, logging: two commands that differ in these alone are one configuration.
bool changes_nothing(std::string_view variable);
/// A command that prints what it can do, or its version, and ends.
bool says_only_help(std::string_view command);
/// What starts no engine: clients that measure, downloads, what looks around.
bool serves_nothing(std::string_view command);

}  // namespace servetune
