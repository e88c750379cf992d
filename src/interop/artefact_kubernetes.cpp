// SPDX-License-Identifier: Apache-2.0
// Artefacts for Kubernetes itself: pods, and what keeps them running.
#include "artefact_words.hpp"
#include "artefact_writers.hpp"

#include "servetune/error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace servetune {
namespace {

constexpr std::string_view files_folder = "/run/servetune";
/// New requests still come for a while after a pod was told to end: the balancers hear of it later.
/// llm-d and KServe wait as long (guides/recipes/modelserver/components/graceful-shutdown;
/// config/llmisvcconfig).
constexpr int seconds_before_end = 15;
/// For requests in flight and the engine's own end; as long as the unit of systemd gives.
constexpr int seconds_to_end = 60;

/// `requests`: with what is asked; else somebody else's probes get these times.
std::string probes_text(const DeploymentModel& deployment, bool requests) {
    if (deployment.ready_path.empty()) return "";
    constexpr double period_seconds = 10;
    const std::string asked =
        (requests ? fmt::format("  httpGet: {{path: {}, port: {}}}\n", yaml_scalar(deployment.ready_path), deployment.first().port) : "") +
        "  periodSeconds: 10\n";
    // An engine under full load may answer late: only one that is silent for minutes is restarted.
    return "startupProbe:\n" + asked +
           fmt::format("  failureThreshold: {}\n", static_cast<int>(std::ceil(deployment.ready_within_seconds / period_seconds)) + 1) +
           "readinessProbe:\n" + asked + "  timeoutSeconds: 5\nlivenessProbe:\n" + asked + "  timeoutSeconds: 10\n  failureThreshold: 18\n";
}

std::string environment_text(const DeploymentModel& deployment, const std::string& more) {
    const DeployedEngine& engine = deployment.first();
    std::string items = more;
    std::set<std::string> secret = engine.variables;
    for (const auto& [variable, word] : engine.environment)
        if (!has_variable(word)) items += "- {name: " + yaml_scalar(variable) + ", value: " + kubernetes_word(word) + "}\n";
        else secret.insert(variable);
    std::string secrets;
    for (const std::string& variable : secret)
        secrets += "- name: " + yaml_scalar(variable) + "\n  valueFrom: {secretKeyRef: {name: " + yaml_scalar(deployment.name) +
                   ", key: " + yaml_scalar(variable) + "}}\n";
    return items.empty() && secrets.empty() ? "" : "env:\n" + indented(items + secrets, 2);
}

std::string config_map_of(const DeploymentModel& deployment) {
    const DeployedEngine& engine = deployment.first();
    if (engine.files.empty()) return "";
    std::string result = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + yaml_scalar(deployment.name) + "}\ndata:\n";
    for (const auto& [file, content] : engine.files) result += "  " + yaml_scalar(file) + ": " + yaml_scalar(content) + "\n";
    return result + "---\n";
}

std::string image_line(const DeploymentModel& deployment) {
    if (deployment.image.empty()) return "";
    if (has_variable(deployment.image)) throw UsageError("the image has a secret, and Kubernetes puts none in there; say it with --image");
    return "image: " + yaml_scalar(deployment.image.front().text) + "\nimagePullPolicy: IfNotPresent\n";
}

std::vector<Word> all_but_first(const std::vector<Word>& words) { return {words.begin() + 1, words.end()}; }

std::string service_text(const DeploymentModel& deployment, const std::string& selector) {
    return "apiVersion: v1\nkind: Service\nmetadata: {name: " + yaml_scalar(deployment.name) + "}\nspec:\n  selector: {" + selector +
           fmt::format("}}\n  ports: [{{port: {0}, targetPort: {0}}}]\n", deployment.first().port);
}

std::string spread_line(const DeploymentModel& deployment) {
    return deployment.copies() > 1 ? "# the Service spreads connections over the pods at random, not by requests in flight\n" : "";
}

std::string pod_spec(const PodText& pod) {
    return pod.grace + "enableServiceLinks: false\ncontainers:\n" + indented(list_item(pod.container), 2) + "volumes:\n" +
           indented(pod.volumes, 2);
}

/// The words of a machine of a group; `first`: of the one that answers requests.
std::vector<Word> words_of_node(const DeploymentModel& deployment, bool first) {
    std::vector<Word> result = deployment.first().argv;
    if (deployment.nodes == 1) return result;
    if (deployment.over_nodes.each.empty())
        throw UsageError(deployment.engine +
                         " has no words in its engine file that spread it over several machines in this version (`nodes`)");
    std::vector<std::string> words = deployment.over_nodes.each;
    if (!first) words.insert(words.end(), deployment.over_nodes.others.begin(), deployment.over_nodes.others.end());
    for (const std::string& word : words) {
        Word filled;
        std::string text = word;
        for (const auto& [mark, variable] :
             {std::pair("{nodes}", "LWS_GROUP_SIZE"), {"{rank}", "LWS_WORKER_INDEX"}, {"{leader}", "LWS_LEADER_ADDRESS"}})
            if (const auto at = text.find(mark); at != std::string::npos) {
                if (at > 0) filled.push_back({text.substr(0, at)});
                filled.push_back({variable, true});
                text = text.substr(at + std::string_view(mark).size());
            }
        if (!text.empty()) filled.push_back({text});
        result.push_back(filled);
    }
    return result;
}

PodWish whole_command(const std::vector<Word>& argv) {
    PodWish wish;
    wish.command = {argv.front()};
    wish.args = all_but_first(argv);
    return wish;
}

}  // namespace

std::int64_t gpus_of_pod(const DeploymentModel& deployment) { return deployment.first().gpus / deployment.nodes; }

PodText pod_text(const DeploymentModel& deployment, const PodWish& wish) {
    const DeployedEngine& engine = deployment.first();
    PodText result;
    std::string mounts;
    if (wish.shm) {
        result.volumes = fmt::format("- name: shm\n  emptyDir: {{medium: Memory, sizeLimit: \"{}\"}}\n", deployment.shm_bytes);
        mounts = "- {name: shm, mountPath: /dev/shm}\n";
    }
    for (std::size_t i = 0; i < deployment.mounts.size(); ++i) {
        result.volumes += fmt::format("- name: model-{}\n  hostPath: {{path: {}}}\n", i, yaml_scalar(deployment.mounts[i]));
        mounts += fmt::format("- {{name: model-{}, mountPath: {}, readOnly: true}}\n", i, yaml_scalar(deployment.mounts[i]));
    }
    if (!engine.files.empty()) {
        result.config_map = config_map_of(deployment);
        result.volumes += "- name: files\n  configMap: {name: " + yaml_scalar(deployment.name) + "}\n";
        mounts += fmt::format("- {{name: files, mountPath: {}, readOnly: true}}\n", files_folder);
    }
    if (!engine.variables.empty()) {
        result.what_needed = "# needs: kubectl create secret generic " + deployment.name + " --from-env-file=FILE, with lines NAME=value:";
        for (const std::string& variable : engine.variables) result.what_needed += " " + variable;
        result.what_needed += "\n";
    }
    result.container = "name: " + wish.container + "\n" + image_line(deployment);
    if (!wish.command.empty()) result.container += "command: [" + joined(wish.command, ", ", kubernetes_word) + "]\n";
    if (!wish.args.empty()) result.container += "args:\n  - " + joined(wish.args, "\n  - ", kubernetes_word) + "\n";
    result.container += environment_text(deployment, wish.more_environment);
    if (!engine.files.empty()) result.container += fmt::format("workingDir: {}\n", files_folder);
    if (const std::int64_t gpus = gpus_of_pod(deployment); gpus > 0)
        result.container += fmt::format("resources:\n  limits: {{nvidia.com/gpu: {}}}\n", gpus);
    if (wish.probes != PodWish::Probes::none)
        result.container += probes_text(deployment, wish.probes == PodWish::Probes::own) +
                            fmt::format("lifecycle:\n  preStop: {{exec: {{command: [sleep, \"{}\"]}}}}\n", seconds_before_end);
    if (!mounts.empty()) result.container += "volumeMounts:\n" + indented(mounts, 2);
    result.grace = fmt::format("terminationGracePeriodSeconds: {}\n", seconds_before_end + seconds_to_end);
    return result;
}

Artefact kubernetes_artefact(const DeploymentModel& deployment) {
    const std::string name = yaml_scalar(deployment.name);
    const PodText pod = pod_text(deployment, whole_command(deployment.first().argv));
    return {deployment.name + ".yaml", head_lines(deployment) + spread_line(deployment) + pod.what_needed + pod.config_map +
                                           "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name +
                                           "\n  labels: {app: " + name + "}\nspec:\n  replicas: " + std::to_string(deployment.copies()) +
                                           "\n  strategy: {type: Recreate}\n  selector:\n    matchLabels: {app: " + name +
                                           "}\n  template:\n    metadata:\n      labels: {app: " + name + "}\n    spec:\n" +
                                           indented(pod_spec(pod), 6) + "---\n" + service_text(deployment, "app: " + name)};
}

Artefact lws_artefact(const DeploymentModel& deployment) {
    const std::string name = yaml_scalar(deployment.name);
    const PodText leader = pod_text(deployment, whole_command(words_of_node(deployment, true)));
    PodWish wish = whole_command(words_of_node(deployment, false));
    wish.probes = PodWish::Probes::none;  // it answers no requests
    const PodText worker = pod_text(deployment, wish);
    return {deployment.name + ".yaml",
            head_lines(deployment) + spread_line(deployment) + leader.what_needed + leader.config_map +
                "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: " + name + "}\nspec:\n  replicas: " +
                std::to_string(deployment.copies()) + "\n  leaderWorkerTemplate:\n    size: " + std::to_string(deployment.nodes) +
                "\n    restartPolicy: RecreateGroupOnPodRestart\n    leaderTemplate:\n      metadata:\n        labels: {role: leader}\n"
                "      spec:\n" +
                indented(pod_spec(leader), 8) + "    workerTemplate:\n      spec:\n" + indented(pod_spec(worker), 8) + "---\n" +
                service_text(deployment, "leaderworkerset.sigs.k8s.io/name: " + name + ", role: leader")};
}

Artefact llm_d_artefact(const DeploymentModel& deployment) {
    PodWish wish = whole_command(deployment.first().argv);
    wish.container = "modelserver";
    wish.probes = PodWish::Probes::times;
    const PodText pod = pod_text(deployment, wish);
    std::string head = head_lines(deployment) + pod.what_needed;
    if (deployment.first().port != 8000) head += comment_line("The guides' Deployments expect the engine at port 8000.");
    if (deployment.image.empty()) head += comment_line("The image is the guide's: its engine must have the version that was measured.");
    Artefact result{"patch.yaml", head + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: decode}\nspec:\n  replicas: " +
                                      std::to_string(deployment.copies()) + "\n  template:\n    spec:\n" + indented(pod_spec(pod), 6)};
    std::string resources = "  - ../base  # the folder of your guide's model server, such as .../modelserver/gpu/vllm/base\n";
    if (!pod.config_map.empty()) {
        resources += "  - files.yaml\n";
        result.beside["files.yaml"] = pod.config_map.substr(0, pod.config_map.size() - 4);
    }
    result.beside["kustomization.yaml"] =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n" + resources + "patches:\n  - path: patch.yaml\n";
    return result;
}

}  // namespace servetune
