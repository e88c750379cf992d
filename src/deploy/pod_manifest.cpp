// SPDX-License-Identifier: Apache-2.0
#include "pod_manifest.hpp"

#include "base/utf8.hpp"
#include "base/variable_name.hpp"
#include "launch_clients.hpp"
#include "pod_template.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/error.hpp"
#include "trial_folders.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// The cluster removes what nobody has removed so long after its end.
constexpr std::int64_t kept_after_end_seconds = 3600;
/// Ends a pod that nobody else could end: longer than any engine serves for a trial.
constexpr std::int64_t longest_pod_seconds = std::int64_t{24} * 3600;
/// A lost node's pod is given up after so long; the cluster's default is 300 s.
constexpr std::int64_t lost_node_seconds = 60;
/// Of all annotations of an object (k8s.io/apimachinery, pkg/api/validation,
/// TotalAnnotationSizeLimitB).
constexpr std::size_t most_annotation_bytes = 256UL << 10UL;

constexpr const char* shm_volume = "servetune-shm";
constexpr const char* files_volume = "servetune-files";
/// Beside the engine's files; none of these begins with a dot.

PodTemplate template_of(const KubernetesOptions& options) {
    PodTemplate result =
        pod_template_of(options.pod_template, options.devices, !options.images.empty());
    if (!result.wrong.empty()) throw UsageError("kubernetes: " + options.why_invalid());
    return result;
}

/// A manifest is JSON.
void check_text(const std::string& text, const std::string& what) {
    try {
        (void)utf8_text(text, what);
    } catch (const ParseError& error) {
        throw UsageError(std::string("no pod can be given what is not UTF-8 text: ") +
                         error.what());
    }
}

/// Kubernetes replaces `$(NAME)` and makes one `$` of two (API reference, Container.command).
std::string unexpanded(const std::string& text, const std::string& what) {
    check_text(text, what);
    std::string result;
    for (const char c : text) result += c == '$' ? "$$" : std::string(1, c);
    return result;
}

bool mounts(const Json& container, const char* path) {
    const Json all = container.value("volumeMounts", Json::array());
    return std::any_of(all.begin(), all.end(),
                       [&](const Json& one) { return one.value("mountPath", "") == path; });
}

/// A node that does not answer is given up soon, unless the user says when.
void add_tolerations(Json& spec) {
    Json& all = spec["tolerations"];
    if (all.is_null()) all = Json::array();
    for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
        const bool said = std::any_of(all.begin(), all.end(),
                                      [&](const Json& one) { return one.value("key", "") == key; });
        if (!said)
            all.push_back({{"key", key},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", lost_node_seconds}});
    }
}

/// No two trials of a study on one node, unless the user says where they may be.
void add_anti_affinity(Json& spec, const std::string& label, const std::string& trial) {
    Json& affinity = spec["affinity"];
    if (affinity.contains("podAntiAffinity")) return;
    Json selector{{"matchLabels", {{std::string(pod_study_label), label}}}};
    selector["matchExpressions"] = Json::array({{{"key", std::string(pod_trial_label)},
                                                 {"operator", "NotIn"},
                                                 {"values", Json::array({trial})}}});
    affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = Json::array(
        {{{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", std::move(selector)}}});
}

void add_environment(Json& container, const LaunchRequest& request) {
    Json& all = container["env"];
    if (all.is_null()) all = Json::array();
    for (const auto& [name, value] : request.environment) {
        if (name == "CUDA_VISIBLE_DEVICES") continue;  // the pod has the devices it has
        if (const std::string why = wrong_with_variable(name); !why.empty())
            throw UsageError("the engine's environment: " + why);
        if (names_secret(name) && !value.empty())
            throw UsageError("the engine's environment has the secret " + name +
                             ": everybody who may read pods would see it. " +
                             "Put it into a Secret of the namespace, and name that under `envFrom` "
                             "or `env` of the template");
        if (std::any_of(all.begin(), all.end(), [&called = name](const Json& one) {
                return one.value("name", "") == called;
            }))
            throw UsageError("the template's container '" + container.value("name", "") +
                             "' sets " + name + " under `env`, and so does the study: one of them");
        all.push_back({{"name", name}, {"value", unexpanded(value, "the variable " + name)}});
    }
    if (all.empty()) container.erase("env");
}

void add_command(Json& container, const LaunchRequest& request) {
    Json words = Json::array();
    const Command& command = request.command;
    for (std::size_t i = 0; i < command.argv.size(); ++i)
        words.push_back(unexpanded(
            i == 0 ? command.argv[i] : with_place(command.argv[i], command.files, files_folder),
            "a word of the engine's command"));
    container["command"] = std::move(words);
}

/// The engine's files, as annotations that the node makes files of again.
void add_files(Json& metadata, Json& spec, Json& container,
               const std::map<std::string, std::string>& files) {
    if (files.empty()) return;
    Json items = Json::array();
    std::size_t bytes = 0;
    for (const auto& [name, content] : files) {
        const std::string key = std::string(own_names) + "/file-" + std::to_string(items.size());
        check_text(content, "the engine's file " + name);
        bytes += key.size() + content.size();
        metadata["annotations"][key] = content;
        items.push_back(
            {{"path", name}, {"fieldRef", {{"fieldPath", "metadata.annotations['" + key + "']"}}}});
    }
    if (bytes > most_annotation_bytes)
        throw UsageError("the engine's files have " + std::to_string(bytes) +
                         " bytes, and a pod's annotations at most " +
                         std::to_string(most_annotation_bytes));
    spec["volumes"].push_back(
        {{"name", files_volume}, {"downwardAPI", {{"items", std::move(items)}}}});
    container["volumeMounts"].push_back(
        {{"name", files_volume}, {"mountPath", files_folder}, {"readOnly", true}});
}

Json with_labels(Json metadata, const std::string& label, const std::string& trial) {
    metadata["labels"][std::string(managed_by_label)] = own_names;
    metadata["labels"][std::string(pod_study_label)] = label;
    metadata["labels"][std::string(pod_trial_label)] = trial;
    return metadata;
}

}  // namespace

std::string engine_container(const KubernetesOptions& options) {
    return template_of(options).engine_container().at("name").get<std::string>();
}

std::vector<std::string> template_variables(const KubernetesOptions& options) {
    std::vector<std::string> result;
    const Json all = template_of(options).engine_container().value("env", Json::array());
    for (const Json& one : all) result.push_back(one.at("name").get<std::string>());
    return result;
}

std::vector<std::string> images_of(const KubernetesOptions& options) {
    if (!options.images.empty()) return options.images;
    return {template_of(options).engine_container().at("image").get<std::string>()};
}

std::string trial_label(const std::filesystem::path& folder) {
    if (const auto trial = trial_folder_of(folder)) return trial->filename().string();
    return label_of(folder.string());
}

nlohmann::json trial_job(const KubernetesOptions& options, const LaunchRequest& request,
                         const std::string& name, const std::string& label) {
    PodTemplate pod = template_of(options);
    Json& spec = pod.spec;
    if (!spec.contains("volumes")) spec["volumes"] = Json::array();
    spec["restartPolicy"] = "Never";
    spec["enableServiceLinks"] = false;
    spec["automountServiceAccountToken"] = false;
    spec["terminationGracePeriodSeconds"] =
        static_cast<std::int64_t>(std::ceil(request.stop_within_seconds));
    if (!spec.contains("activeDeadlineSeconds"))
        spec["activeDeadlineSeconds"] = longest_pod_seconds;
    if (options.reach == KubernetesReach::node) {
        spec["hostNetwork"] = true;
        if (!spec.contains("dnsPolicy")) spec["dnsPolicy"] = "ClusterFirstWithHostNet";
    }
    add_tolerations(spec);
    const std::string trial = trial_label(request.folder);
    add_anti_affinity(spec, label, trial);
    Json& container = spec["containers"][pod.engine];
    if (!options.images.empty())
        container["image"] = request.image.empty() ? options.images.front() : request.image;
    container["terminationMessagePolicy"] = "FallbackToLogsOnError";
    add_command(container, request);
    add_environment(container, request);
    if (request.devices > 0 && !options.devices.empty())
        container["resources"]["limits"][options.devices] = request.devices;
    if (!container.contains("volumeMounts")) container["volumeMounts"] = Json::array();
    if (!mounts(container, "/dev/shm")) {
        spec["volumes"].push_back({{"name", shm_volume}, {"emptyDir", {{"medium", "Memory"}}}});
        container["volumeMounts"].push_back({{"name", shm_volume}, {"mountPath", "/dev/shm"}});
    }
    Json metadata = with_labels(pod.metadata, label, trial);
    const Json labels = metadata["labels"];  // a queue looks at the Job's
    add_files(metadata, spec, container, request.command.files);
    Json job = {{"backoffLimit", 0},
                {"completions", 1},
                {"parallelism", 1},
                {"ttlSecondsAfterFinished", kept_after_end_seconds},
                {"template", {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}}}};
    return {{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"metadata", {{"name", name}, {"labels", labels}}},
            {"spec", std::move(job)}};
}

std::string KubernetesOptions::why_invalid() const {
    const auto is_name = [](const std::string& text) {  // RFC 1123, as of namespaces
        constexpr std::size_t longest = 63;
        return text.size() <= longest && text.front() != '-' && text.back() != '-' &&
               std::all_of(text.begin(), text.end(), [](char c) {
                   return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
               });
    };
    OptionCheck check;
    check.that(program.empty() || !program.front().empty(), "program", "a program and its words",
               "an empty word");
    check.that(context.empty() || context.front() != '-', "context", "a context of the kubeconfig",
               "'" + context + "'");
    check.that(name_space.empty() || is_name(name_space), "namespace",
               "lower-case letters, digits and '-'", "'" + name_space + "'");
    for (const std::string& image : images)
        check.that(!image.empty() && image.front() != '-' &&
                       image.find_first_of(" \t\n") == std::string::npos,
                   "images", "names such as docker.io/org/engine:1.0", "'" + image + "'");
    check.that(devices.empty() || devices.find('/') != std::string::npos, "devices",
               "the name of a resource such as nvidia.com/gpu, or \"\"", "'" + devices + "'");
    std::string result = check.text();
    for (const std::string& wrong : pod_template_of(pod_template, devices, !images.empty()).wrong)
        result += (result.empty() ? "" : "; ") + std::string("template: ") + wrong;
    return result;
}

}  // namespace servetune
