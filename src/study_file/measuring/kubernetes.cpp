// SPDX-License-Identifier: Apache-2.0
#include "kubernetes.hpp"

#include "deploy/pod_manifest.hpp"
#include "jobs.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study_file/key_reader.hpp"
#include "study_file/keys.hpp"
#include "study_file/space_reader.hpp"
#include "study_file/study_definition.hpp"
#include "study_file/yaml_json.hpp"

namespace servetune {
namespace {

void refuse_variables_of_both(const Yaml& deploy, const KubernetesOptions& options) {
    if (const Yaml* environment = deploy.find(keys::deploy.environment))
        for (const std::string& name : template_variables(options))
            if (const Yaml* own = environment->entry(std::string_view(name)))
                own->fail("the template sets it too, under `env`: one of them");
}

/// What stands in a manifest is read by everybody who may read pods.
std::string remedy_for_secret_of_pod(const std::string& name) {
    return "everybody who may read pods would see this secret. Put it into a Secret "
           "(kubectl create secret generic my-secrets --from-literal=" +
           name +
           "=...), name that in the template's container "
           "(envFrom: [{secretRef: {name: my-secrets}}]), and leave it out here";
}

}  // namespace

std::optional<KubernetesOptions> read_kubernetes(const Yaml& deploy) {
    const Yaml* at = deploy.find(keys::deploy.kubernetes);
    if (at == nullptr) return std::nullopt;
    const auto& table = keys::kubernetes;
    at->check_keys(table);
    KubernetesOptions options;
    read(*at, table.program, options.program);
    read(*at, table.namespace_, options.name_space);
    read(*at, table.context, options.context);
    read(*at, table.images, options.images);
    read(*at, table.devices, options.devices);
    if (at->find(table.reach) != nullptr)
        read_word<kubernetes_reaches>(*at, table.reach, options.reach.emplace());
    options.pod_template = json_text_of(Yaml::load(path_of(at->at(table.template_))));
    if (const std::string why = options.why_invalid(); !why.empty()) at->fail(why);
    refuse_parts_of_machine(deploy, "Kubernetes", "pod");
    refuse_secrets(deploy, remedy_for_secret_of_pod);
    refuse_variables_of_both(deploy, options);
    return options;
}

void define_kubernetes(const KubernetesOptions& options, const Redactor& secrets,
                       std::map<std::string, std::string>& definition) {
    definition[of_later_versions + "evaluator.deploy.kubernetes.template"] =
        fingerprint_of(secrets.with_fingerprints(options.pod_template)).text();
}

std::string note_of_kubernetes(const KubernetesOptions& options) {
    std::string way =
        "to the pod's address, or through a port-forward where this program was outside of the "
        "cluster.";
    if (options.reach == KubernetesReach::pod) way = "to the pod's address.";
    if (options.reach == KubernetesReach::forward)
        way = "through the API server (kubectl port-forward), which delays each token.";
    if (options.reach == KubernetesReach::node) way = "to its node.";
    return "Every trial was a Job of Kubernetes. The load test ran where this program does, and "
           "its requests went " +
           way;
}

}  // namespace servetune
