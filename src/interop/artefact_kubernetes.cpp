// SPDX-License-Identifier: Apache-2.0
// Artefacts for Kubernetes itself: pods, and what keeps them running.
#include "artefact_words.hpp"
#include "artefact_writers.hpp"

#include "deploy/pod_template.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

constexpr std::string_view folder_of_files = "/run/servetune";
/// Quoted where it is somebody's.
std::string yaml_path(const std::string& path) {
    return path == "/dev/shm" || path == folder_of_files ? path : yaml_scalar(path);
}

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
        (requests ? fmt::format("  httpGet: {{path: {}, port: {}}}\n",
                                yaml_scalar(deployment.ready_path), deployment.first().port)
                  : "") +
        "  periodSeconds: 10\n";
    // An engine under full load may answer late: only one that is silent for minutes is restarted.
    return "startupProbe:\n" + asked +
           fmt::format(
               "  failureThreshold: {}\n",
               static_cast<int>(std::ceil(deployment.ready_within_seconds / period_seconds)) + 1) +
           "readinessProbe:\n" + asked + "  timeoutSeconds: 5\nlivenessProbe:\n" + asked +
           "  timeoutSeconds: 10\n  failureThreshold: 18\n";
}

using Json = nlohmann::json;

/// The user's pod; nothing of it where the study has none.
PodTemplate deployment_template(const DeploymentModel& deployment) {
    if (!deployment.pod_template.empty())
        return pod_template_of(deployment.pod_template, deployment.device_resource, true);
    PodTemplate none;
    none.spec["containers"] = Json::array({Json::object()});
    return none;
}

/// JSON is YAML.
std::string items_of(const Json& list, const std::function<bool(const Json&)>& wanted) {
    std::string result;
    for (const Json& item : list)
        if (wanted(item)) result += "- " + item.dump() + "\n";
    return result;
}
std::string items_of(const Json& list) {
    return items_of(list, [](const Json&) { return true; });
}

std::string environment_text(const DeploymentModel& deployment, const std::string& more,
                             const Json& container) {
    const DeployedEngine& engine = deployment.first();
    std::string items = more;
    std::set<std::string> secret = engine.variables;
    for (const auto& [variable, word] : engine.environment)
        if (!has_variable(word))
            items +=
                "- {name: " + yaml_scalar(variable) + ", value: " + kubernetes_word(word) + "}\n";
        else secret.insert(variable);
    for (const std::string& variable : secret)
        items += "- name: " + yaml_scalar(variable) +
                 "\n  valueFrom: {secretKeyRef: {name: " + yaml_scalar(deployment.name) +
                 ", key: " + yaml_scalar(variable) + "}}\n";
    const std::string theirs =
        items_of(container.value("env", Json::array()), [&](const Json& item) {
            const std::string name = item.value("name", "");
            return !engine.environment.contains(name) && !secret.contains(name);
        });
    return items.empty() && theirs.empty() ? "" : "env:\n" + indented(theirs + items, 2);
}

std::string resources_text(const DeploymentModel& deployment, const Json& container) {
    Json resources = container.value("resources", Json::object());
    const std::int64_t gpus = gpus_of_pod(deployment);
    if (gpus == 0 && resources.empty()) return "";
    if (resources.empty())
        return fmt::format("resources:\n  limits: {{{}: {}}}\n", deployment.device_resource, gpus);
    if (gpus > 0) resources["limits"][deployment.device_resource] = gpus;
    return "resources: " + resources.dump() + "\n";
}

/// What else the user's container says, but for what this program says of every engine.
std::string further_container(const Json& container) {
    std::string result;
    for (const auto& [key, value] : container.items())
        if (key != "name" && key != "image" && key != "imagePullPolicy" && key != "env" &&
            key != "resources" && key != "volumeMounts" && key != "lifecycle" &&
            key != "workingDir")
            result += key + ": " + value.dump() + "\n";
    return result;
}

/// The same of the pod.
std::string further_pod(const PodTemplate& pod) {
    std::string result;
    for (const auto& [key, value] : pod.spec.items())
        if (key != "containers" && key != "volumes" && key != "restartPolicy" &&
            key != "terminationGracePeriodSeconds" && key != "enableServiceLinks")
            result += key + ": " + value.dump() + "\n";
    return result;
}

std::string config_map_of(const DeploymentModel& deployment) {
    const DeployedEngine& engine = deployment.first();
    if (engine.files.empty()) return "";
    std::string result =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + yaml_scalar(deployment.name) +
        "}\ndata:\n";
    for (const auto& [file, content] : engine.files)
        result += "  " + yaml_scalar(file) + ": " + yaml_scalar(content) + "\n";
    return result + "---\n";
}

std::string image_line(const DeploymentModel& deployment, const Json& container) {
    if (deployment.image.empty()) return "";
    if (has_variable(deployment.image))
        throw UsageError(
            "the image has a secret, and Kubernetes puts none in there; say it with --image");
    return "image: " + yaml_scalar(deployment.image.front().text) +
           "\nimagePullPolicy: " + container.value("imagePullPolicy", "IfNotPresent") + "\n";
}

std::vector<Word> all_but_first(const std::vector<Word>& words) {
    return {words.begin() + 1, words.end()};
}

std::string service_text(const DeploymentModel& deployment, const std::string& selector) {
    return "apiVersion: v1\nkind: Service\nmetadata: {name: " + yaml_scalar(deployment.name) +
           "}\nspec:\n  selector: {" + selector +
           fmt::format("}}\n  ports: [{{port: {0}, targetPort: {0}}}]\n", deployment.first().port);
}

std::string spread_line(const DeploymentModel& deployment) {
    return deployment.copies() > 1 ? "# the Service spreads connections over the pods at random, "
                                     "not by requests in flight\n"
                                   : "";
}

std::string pod_spec(const PodText& pod) {
    return pod.pod + "enableServiceLinks: false\ncontainers:\n" + indented(pod.containers, 2) +
           "volumes:\n" + indented(pod.volumes, 2);
}

PodWish whole_command(const std::vector<Word>& argv) {
    PodWish wish;
    wish.command = {argv.front()};
    wish.args = all_but_first(argv);
    return wish;
}

}  // namespace

std::int64_t gpus_of_pod(const DeploymentModel& deployment) { return deployment.first().gpus; }

PodText pod_text(const DeploymentModel& deployment, const PodWish& wish) {
    const DeployedEngine& engine = deployment.first();
    const PodTemplate pod = deployment_template(deployment);
    const Json& container = pod.engine_container();
    const Json their_mounts = container.value("volumeMounts", Json::array());
    const Json their_volumes = pod.spec.value("volumes", Json::array());
    PodText result;
    std::string mounts = items_of(their_mounts);
    result.volumes = items_of(their_volumes);
    const auto add_volume = [&](std::string name, const std::string& what, const std::string& path,
                                bool read_only) {
        for (const Json& mount : their_mounts)
            if (mount.value("mountPath", "") == path) return;  // theirs is there
        for (const Json& volume : their_volumes)
            if (volume.value("name", "") == name) name = std::string(own_names) + "-" + name;
        result.volumes += "- name: " + name + "\n  " + what + "\n";
        mounts += "- {name: " + name + ", mountPath: " + yaml_path(path) +
                  (read_only ? ", readOnly: true}\n" : "}\n");
    };
    if (wish.shm)
        add_volume(
            "shm",
            fmt::format("emptyDir: {{medium: Memory, sizeLimit: \"{}\"}}", deployment.shm_bytes),
            "/dev/shm", false);
    for (std::size_t i = 0; i < deployment.mounts.size(); ++i)
        add_volume(fmt::format("model-{}", i),
                   "hostPath: {path: " + yaml_scalar(deployment.mounts[i]) + "}",
                   deployment.mounts[i], true);
    if (!engine.files.empty()) {
        result.config_map = config_map_of(deployment);
        add_volume("files", "configMap: {name: " + yaml_scalar(deployment.name) + "}",
                   std::string(folder_of_files), true);
    }
    if (!engine.variables.empty()) {
        result.what_needed = "# needs: kubectl create secret generic " + deployment.name +
                             " --from-env-file=FILE, with lines NAME=value:";
        for (const std::string& variable : engine.variables) result.what_needed += " " + variable;
        result.what_needed += "\n";
    }
    result.container = "name: " + wish.container + "\n" + image_line(deployment, container);
    if (!wish.command.empty())
        result.container += "command: [" + joined(wish.command, ", ", kubernetes_word) + "]\n";
    if (!wish.args.empty())
        result.container += "args:\n  - " + joined(wish.args, "\n  - ", kubernetes_word) + "\n";
    result.container += environment_text(deployment, wish.more_environment, container);
    if (!engine.files.empty()) result.container += fmt::format("workingDir: {}\n", folder_of_files);
    else if (container.contains("workingDir"))
        result.container += "workingDir: " + container["workingDir"].dump() + "\n";
    result.container += resources_text(deployment, container);
    if (wish.probes != PodWish::Probes::none) {
        result.container += probes_text(deployment, wish.probes == PodWish::Probes::own);
        result.container +=
            container.contains("lifecycle")
                ? "lifecycle: " + container["lifecycle"].dump() + "\n"
                : fmt::format("lifecycle:\n  preStop: {{exec: {{command: [sleep, \"{}\"]}}}}\n",
                              seconds_before_end);
    }
    result.container += further_container(container);
    if (!mounts.empty()) result.container += "volumeMounts:\n" + indented(mounts, 2);
    result.pod =
        fmt::format("terminationGracePeriodSeconds: {}\n", seconds_before_end + seconds_to_end) +
        further_pod(pod);
    std::string others;
    for (std::size_t i = 0; i < pod.spec["containers"].size(); ++i)
        if (i != pod.engine) others += "- " + pod.spec["containers"][i].dump() + "\n";
    result.containers = list_item(result.container) + others;
    return result;
}

Artefact kubernetes_artefact(const DeploymentModel& deployment) {
    const std::string name = yaml_scalar(deployment.name);
    const PodText pod = pod_text(deployment, whole_command(deployment.first().argv));
    return {deployment.name + ".yaml",
            head_lines(deployment) + spread_line(deployment) + pod.what_needed + pod.config_map +
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name +
                "\n  labels: {app: " + name +
                "}\nspec:\n  replicas: " + std::to_string(deployment.copies()) +
                "\n  strategy: {type: Recreate}\n  selector:\n    matchLabels: {app: " + name +
                "}\n  template:\n    metadata:\n      labels: {app: " + name + "}\n    spec:\n" +
                indented(pod_spec(pod), 6) + "---\n" + service_text(deployment, "app: " + name)};
}

Artefact llm_d_artefact(const DeploymentModel& deployment) {
    PodWish wish = whole_command(deployment.first().argv);
    wish.container = "modelserver";
    wish.probes = PodWish::Probes::times;
    const PodText pod = pod_text(deployment, wish);
    std::string head = head_lines(deployment) + pod.what_needed;
    if (deployment.first().port != 8000)
        head += comment_line("The guides' Deployments expect the engine at port 8000.");
    if (deployment.image.empty())
        head += comment_line(
            "The image is the guide's: its engine must have the version that was measured.");
    Artefact result{
        "patch.yaml",
        head +
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: decode}\nspec:\n  replicas: " +
            std::to_string(deployment.copies()) + "\n  template:\n    spec:\n" +
            indented(pod_spec(pod), 6)};
    std::string resources =
        "  - ../base  # the folder of your guide's model server, such as "
        ".../modelserver/gpu/vllm/base\n";
    if (!pod.config_map.empty()) {
        resources += "  - files.yaml\n";
        result.beside["files.yaml"] = pod.config_map.substr(0, pod.config_map.size() - 4);
    }
    result.beside["kustomization.yaml"] =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n" +
        resources + "patches:\n  - path: patch.yaml\n";
    return result;
}

}  // namespace servetune
