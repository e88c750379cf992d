// SPDX-License-Identifier: Apache-2.0
// Artefacts for one machine: a script, a job of Slurm, units of systemd, a file of compose.
#include "artefact_words.hpp"
#include "artefact_writers.hpp"

#include "servetune/error.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace servetune {
namespace {

/// The first word of ExecStart=: what it may begin with changes how it is run, and no variable is
/// put in.
std::string unit_program(const Word& word) {
    const std::string path = word.size() == 1 && !word.front().variable ? word.front().text : "";
    if (path.empty() || std::string_view("@-:+!").find(path.front()) != std::string_view::npos ||
        path.find('$') != std::string::npos)
        throw UsageError("a systemd unit cannot start '" + path +
                         "': a program that begins with none of @-:+! and has no $ wanted");
    return unit_word(word);
}

/// Of a server, in front of its command.
std::string assignments_text(const DeployedEngine& engine) {
    std::string result;
    for (const auto& [name, word] : engine.environment)
        if (!has_variable(word)) result += name + "=" + shell_word(word) + " ";
    return result;
}

std::set<std::string> variables_of(const DeploymentModel& deployment) {
    std::set<std::string> result;
    for (const DeployedEngine& engine : deployment.engines)
        result.insert(engine.variables.begin(), engine.variables.end());
    return result;
}

std::string exports_text(const DeployedEngine& engine, bool devices_too) {
    std::string result;
    for (const auto& [name, word] : engine.environment)
        if (!has_variable(word) && (devices_too || name != "CUDA_VISIBLE_DEVICES"))
            result += "export " + name + "=" + shell_word(word) + "\n";
    return result;
}

std::string unit_text(const DeploymentModel& deployment, const DeployedEngine& engine) {
    std::string result = head_lines(deployment);
    result +=
        "[Unit]\nDescription=LLM serving engine of the study " + deployment.name +
        "\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\nType=exec\n";
    for (const auto& [name, word] : engine.environment)
        if (!has_variable(word)) {
            Word assigned{{name + "="}};
            assigned.insert(assigned.end(), word.begin(), word.end());
            result += "Environment=" + unit_word(assigned, false) + "\n";
        }
    if (!engine.variables.empty()) {
        result += "# lines NAME=value, for root alone:";
        for (const std::string& name : engine.variables) result += " " + name;
        result += "\nEnvironmentFile=/etc/" + deployment.name + ".env\n";
    }
    if (!engine.files.empty())
        result += "# the files beside this unit lie there\nWorkingDirectory=/etc/" +
                  deployment.name + "\n";
    result += "ExecStart=" + unit_program(engine.argv.front());
    for (std::size_t i = 1; i < engine.argv.size(); ++i) result += " " + unit_word(engine.argv[i]);
    result += "\n";
    result +=
        "Restart=on-failure\nRestartSec=5\nTimeoutStopSec=60\nLimitNOFILE=65536\n\n[Install]"
        "\nWantedBy=multi-user.target\n";
    return result;
}

std::string compose_service(const DeploymentModel& deployment, const DeployedEngine& engine,
                            const std::string& called) {
    std::string result = "  " + called + ":\n    image: " + compose_word(deployment.image) +
                         "\n    entrypoint: [" + compose_word(engine.argv.front()) +
                         "]\n    command:\n";
    for (std::size_t i = 1; i < engine.argv.size(); ++i)
        result += "      - " + compose_word(engine.argv[i]) + "\n";
    // Roles find each other on the loopback, as in the trials.
    result += engine.role.empty()
                  ? fmt::format("    ports: [\"{}:{}\"]\n", engine.port, deployment.first().port)
                  : "    network_mode: host\n";
    result += fmt::format("    shm_size: {}\n    restart: unless-stopped\n", deployment.shm_bytes);
    if (!engine.environment.empty()) result += "    environment:\n";
    for (const auto& [name, word] : engine.environment)
        result += "      " + yaml_scalar(name) + ": " +
                  (has_variable(word) ? compose_word({{name, true}}) : compose_word(word)) + "\n";
    if (!deployment.mounts.empty() || !engine.files.empty()) result += "    volumes:\n";
    for (const std::string& path : deployment.mounts)
        result += "      - {type: bind, source: " + compose_word({{path}}) +
                  ", target: " + compose_word({{path}}) + ", read_only: true}\n";
    for (const auto& [name, content] : engine.files)
        result += "      - {type: bind, source: " + compose_word({{"./" + name}}) +
                  ", target: " + compose_word({{"/run/servetune/" + name}}) +
                  ", read_only: true}\n";
    if (!engine.files.empty()) result += "    working_dir: /run/servetune\n";
    std::string which;
    for (const std::string& device : engine.devices)
        which += (which.empty() ? "device_ids: [" : ", ") + compose_word({{device}});
    if (engine.gpus > 0)
        result += fmt::format(
            "    deploy:\n      resources:\n        reservations:\n          devices: [{{driver: "
            "nvidia, {}, capabilities: [gpu]}}]\n",
            which.empty() ? fmt::format("count: {}", engine.gpus) : which + "]");
    return result;
}

}  // namespace

Artefact shell_artefact(const DeploymentModel& deployment) {
    const DeployedEngine& engine = deployment.first();
    const bool one = deployment.engines.size() == 1;
    std::string text = "#!/bin/sh\n" + head_lines(deployment) + ports_line(deployment);
    for (const std::string& name : variables_of(deployment))
        text += ": \"${" + name + ":?the engine needs it}\"\nexport " + name + "\n";
    if (!deployment.has_roles()) text += exports_text(engine, one);
    if (one)
        return {deployment.name + ".sh",
                text + "exec " + joined(engine.argv, " ", shell_word) + "\n",
                engine.files,
                {},
                true};
    text +=
        "st_pids=\ntrap 'trap \"\" INT TERM; kill $st_pids 2>/dev/null; wait; exit 143' INT TERM\n";
    for (const DeployedEngine& each : deployment.engines)
        text += (deployment.has_roles()
                     ? "# " + each.role + "\n" + assignments_text(each)
                     : "CUDA_VISIBLE_DEVICES=" +
                           shell_word(each.environment.at("CUDA_VISIBLE_DEVICES")) + " ") +
                joined(each.argv, " ", shell_word) + " &\nst_pids=\"$st_pids $!\"\n";
    text +=
        "st_code=0\nfor st_pid in $st_pids; do wait \"$st_pid\" || st_code=$?; done\nexit "
        "$st_code\n";
    return {deployment.name + ".sh", text, engine.files, {}, true};
}

Artefact slurm_artefact(const DeploymentModel& deployment) {
    const DeployedEngine& engine = deployment.first();
    const auto count = static_cast<std::int64_t>(deployment.engines.size());
    std::string text = "#!/bin/sh\n" + head_lines(deployment) + ports_line(deployment) +
                       "# Add what your cluster wants, such as --partition, --account and --time, "
                       "as lines like these:\n#SBATCH --job-name=" +
                       deployment.name +
                       fmt::format("\n#SBATCH --nodes=1\n#SBATCH --ntasks={}\n", count);
    if (engine.gpus > 0) text += fmt::format("#SBATCH --gres=gpu:{}\n", count * engine.gpus);
    text += "#SBATCH --output=%x-%j.log\n";
    for (const std::string& name : engine.variables)
        text += ": \"${" + name + ":?the engine needs it: sbatch --export=ALL}\"\n";
    text += exports_text(engine, count == 1);
    if (count == 1) text += "exec srun " + joined(engine.argv, " ", shell_word) + "\n";
    else {
        // A step sees the devices that it was given as 0, 1, ... Without --mem=0 the first would
        // have the memory of all, and the others would wait for its end (tried with Slurm 22.05).
        for (const DeployedEngine& each : deployment.engines)
            text += fmt::format("srun --exact --mem=0 --ntasks=1 --gres=gpu:{} ", each.gpus) +
                    joined(each.argv, " ", shell_word) + " &\n";
        text += "wait\n";
    }
    return {deployment.name + ".sbatch", text, engine.files};
}

/// One unit, or `NAME-0.service` and the others beside it; of roles `NAME-prefill-1.service` and
/// the others.
Artefact systemd_artefact(const DeploymentModel& deployment) {
    const std::vector<DeployedEngine>& engines = deployment.engines;
    const std::string& name = deployment.name;
    if (engines.size() == 1)
        return {name + ".service", unit_text(deployment, engines.front()), engines.front().files};
    const auto file = [&](std::size_t i) {
        return name + "-" + (engines[i].role.empty() ? std::to_string(i) : engines[i].role) +
               ".service";
    };
    Artefact result{file(0), ports_line(deployment) + unit_text(deployment, engines.front()),
                    engines.front().files};
    for (std::size_t i = 1; i < engines.size(); ++i)
        result.beside[file(i)] = ports_line(deployment) + unit_text(deployment, engines[i]);
    return result;
}

Artefact compose_artefact(const DeploymentModel& deployment) {
    const std::vector<DeployedEngine>& engines = deployment.engines;
    std::string text = head_lines(deployment) + ports_line(deployment) +
                       "name: " + yaml_scalar(deployment.name) + "\nservices:\n";
    for (std::size_t i = 0; i < engines.size(); ++i)
        text += compose_service(deployment, engines[i],
                                !engines[i].role.empty() ? engines[i].role
                                : engines.size() == 1    ? "engine"
                                                         : fmt::format("engine-{}", i));
    return {"compose.yaml", text, engines.front().files};
}

}  // namespace servetune
