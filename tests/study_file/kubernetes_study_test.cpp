// SPDX-License-Identifier: Apache-2.0
// Studies whose engines are Jobs of Kubernetes: what is read from the study and its pod template,
// and what is refused.
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "study_file/yaml_text.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string engine_of_pods = R"(engine: toy
versions: "1.0"
launch: [toy, "{model}"]
flag_variables: [TOY_]
parameters:
  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: 8}
)";
const std::string plain_pod =
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: engine\n    image: org/toy:1\n";

/// A study in Kubernetes with this under `kubernetes`, this beside it, and this template.
class PodStudy {
public:
    explicit PodStudy(const std::string& pod, const std::string& kubernetes = "",
                      const std::string& beside = "") {
        folder_.write("toy.yaml", engine_of_pods);
        folder_.write("pod.yaml", pod);
        text_ =
            "study: s\nmodel: org/m\nengine: toy\nhardware: {device: h100-sxm, count: 4}\n"
            "workloads: [{workload: w, dataset: {kind: random, input_tokens: 8, output_tokens: 8}, "
            "requests: 10}]\n"
            "objective: {maximize: total_tokens_per_second}\nspace: {seqs: {choice: [8, 16]}}\n"
            "evaluator: {deploy: {kubernetes: {template: pod.yaml" +
            kubernetes + "}" + beside + "}}\n";
    }
    [[nodiscard]] StudyFile read() const {
        return load_study(folder_.write("study.yaml", text_), Catalogue(search_spaces));
    }
    [[nodiscard]] KubernetesOptions options() const {
        return std::get<DeployChoice>(read().measuring).kubernetes.value();
    }
    [[nodiscard]] std::string refusal() const {
        try {
            (void)read();
            return "";
        } catch (const Error& error) {
            return error.what();
        }
    }

private:
    TemporaryFolder folder_;
    std::string text_;
};

}  // namespace

TEST_CASE("kubernetes study: its keys and its template are read") {
    const KubernetesOptions options = PodStudy(plain_pod,
                                               ", namespace: tuning, context: lab, reach: forward, "
                                               "devices: amd.com/gpu, program: [kubectl, --as=me]",
                                               ", workers: 3")
                                          .options();
    CHECK(options.name_space == "tuning");
    CHECK(options.context == "lab");
    CHECK(options.reach == KubernetesReach::forward);
    CHECK(options.devices == "amd.com/gpu");
    CHECK(options.program == std::vector<std::string>{"kubectl", "--as=me"});
    CHECK(nlohmann::json::parse(options.pod_template)["spec"]["containers"][0]["image"] ==
          "org/toy:1");
    CHECK(PodStudy(plain_pod).options().reach == std::nullopt);
    const PodStudy several("spec: {containers: [{name: engine}]}",
                           ", images: [org/toy:1, org/toy:2]");
    CHECK(several.read().composition->parameters().size() == 2);  // seqs and container.image
}

TEST_CASE("kubernetes study: what cannot be is refused, with the place") {
    CHECK(has(PodStudy(plain_pod + "    args: [x]\n").refusal(),
              "template: `spec.containers[0].args`: leave it out"));
    CHECK(has(PodStudy(plain_pod, "", ", gpus: \"0\"").refusal(),
              "Kubernetes itself gives each pod its devices: leave this out"));
    CHECK(has(PodStudy(plain_pod, "", ", cores: [0]").refusal(),
              "Kubernetes itself gives each pod its cores: leave this out"));
    CHECK(has(PodStudy(plain_pod, "", ", ssh: {host: a}").refusal(),
              "by ssh, or as a job of Slurm, Kubernetes or Ray: one of them"));
    CHECK(
        has(PodStudy(plain_pod, "", ", weight_cache: on").refusal(), "no container, ssh, slurm, "));
    CHECK(has(PodStudy(plain_pod, "", ", workers: 2, replicas: fill").refusal(),
              "give `workers: 1`"));
    CHECK(has(PodStudy(plain_pod, ", reach: ingress").refusal(), "pod, forward or node"));
    CHECK(has(PodStudy("kind: Deployment\n").refusal(),
              "of a Deployment or Job, what stands under `spec.template`"));
    CHECK(has(PodStudy("a: [\n").refusal(), "pod.yaml:"));
    const std::string variables = plain_pod + "    env: [{name: OMP_NUM_THREADS, value: \"8\"}]\n";
    CHECK(has(PodStudy(variables, "", ", environment: {OMP_NUM_THREADS: \"4\"}").refusal(),
              "the template sets it too, under `env`"));
    CHECK(PodStudy(variables, "", ", environment: {OMP_PLACES: cores}").refusal().empty());
    const std::string of_flag = plain_pod + "    env: [{name: TOY_SEQS, value: \"8\"}]\n";
    CHECK(has(PodStudy(of_flag).refusal(), "it sets 'TOY_SEQS': "));
    const std::string labels = "metadata: {labels: {on: x, shared: yes}}\n" + plain_pod;
    CHECK(has(PodStudy(labels).refusal(), "'yes' is a text or a boolean"));
}

TEST_CASE("kubernetes study: a secret goes by reference, and the message has the words for it") {
    const std::string said =
        PodStudy(plain_pod, "", ", environment: {HF_TOKEN: abcdefgh}").refusal();
    CHECK(has(said, "envFrom: [{secretRef: {name: my-secrets}}]"));
    CHECK(has(said, "--from-literal=HF_TOKEN=..."));
    CHECK_FALSE(has(said, "abcdefgh"));
    setenv("SERVETUNE_TEST_TOKEN", "qwertzuiop", 1);
    const std::string under_another_name =
        PodStudy(plain_pod, "", ", environment: {SIGNED_BY: \"${SERVETUNE_TEST_TOKEN}\"}")
            .refusal();
    CHECK(has(under_another_name, "everybody who may read pods would see this secret"));
    CHECK_FALSE(has(under_another_name, "qwertzuiop"));
    unsetenv("SERVETUNE_TEST_TOKEN");
    CHECK(PodStudy(plain_pod, "", ", environment: {VLLM_LOGGING_LEVEL: DEBUG, HF_TOKEN: \"\"}")
              .refusal()
              .empty());
}

TEST_CASE(
    "yaml json: plain words are numbers and booleans, quoted ones are texts, and doubtful ones are "
    "refused") {
    const auto json = [](const std::string& text) { return json_text_of(Yaml::parse(text, "f")); };
    CHECK(
        json("{a: 3, b: 1.5, c: true, d: x, e: \"3\", f: 'true', g: ~, h: [], i: {}, name: engine, "
             "z: -2}") ==
        R"({"a":3,"b":1.5,"c":true,"d":"x","e":"3","f":"true","g":null,"h":[],"i":{},"name":"engine","z":-2})");
    CHECK(json("{\"spec\": {\"q\": \"16Gi\", \"n\": 8000}}") ==
          R"({"spec":{"q":"16Gi","n":8000}})");  // JSON is YAML
    for (const char* doubtful : {"a: on", "a: No", "a: TRUE", "a: 0444"})
        CHECK_THROWS_WITH(json(doubtful), Catch::Matchers::Contains("by the version of YAML"));
    CHECK(json("{a: \"on\", b: \"0444\", c: 0, d: 0.5}") ==
          R"({"a":"on","b":"0444","c":0,"d":0.5})");
}
