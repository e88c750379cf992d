// SPDX-License-Identifier: Apache-2.0
// Studies whose engines a launcher starts: what it is told of the study, and what is refused.
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "study_file/yaml_text.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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
    [[nodiscard]] WrappedOptions launcher() const {
        return std::get<DeployChoice>(read().measuring).wrapped.value();
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

TEST_CASE("launchers of a study: their settings are read, and told to them as they stand") {
    const PodStudy study(plain_pod, ", namespace: tuning, program: [kubectl, --as=me]",
                         ", workers: 3, environment: {HF_TOKEN: x, OMP_PLACES: cores}");
    const WrappedOptions launcher = study.launcher();
    CHECK(launcher.name == "kubernetes");
    CHECK(launcher.program.front().ends_with("/launchers/kubernetes"));
    CHECK(launcher.setting("namespace") == std::vector<std::string>{"tuning"});
    CHECK(launcher.setting("program") == std::vector<std::string>{"kubectl", "--as=me"});
    const auto told = [&](const std::string& word, const std::string& text) {
        return std::count(launcher.lines.begin(), launcher.lines.end(), std::pair(word, text)) == 1;
    };
    CHECK(told("workers", "3"));
    CHECK(told("variable", "OMP_PLACES"));
    CHECK(told("secret", "HF_TOKEN"));
    CHECK_FALSE(told("secret", "OMP_PLACES"));
    std::string data;
    for (const auto& [word, text] : launcher.lines)
        if (word == "data") data = text;
    REQUIRE(data.starts_with("template {"));
    CHECK(nlohmann::json::parse(data.substr(9))["spec"]["containers"][0]["image"] == "org/toy:1");
    const PodStudy several("spec: {containers: [{name: engine}]}",
                           ", images: [org/toy:1, org/toy:2]");
    CHECK(several.read().composition->parameters().size() == 2);  // seqs and container.image
}

TEST_CASE("launchers of a study: what cannot be is refused, with the place") {
    CHECK(has(PodStudy(plain_pod, "", ", ssh: {host: a}").refusal(), "started in one way"));
    CHECK(
        has(PodStudy(plain_pod, "", ", weight_cache: on").refusal(), "processes of this machine"));
    CHECK(has(PodStudy(plain_pod, "", ", workers: 2, replicas: fill").refusal(),
              "give `workers: 1`"));
    CHECK(has(PodStudy("a: [\n").refusal(), "pod.yaml:"));
    const std::string labels = "metadata: {labels: {on: x, shared: yes}}\n" + plain_pod;
    CHECK(has(PodStudy(labels).refusal(), "'yes' has another meaning in YAML 1.1"));
    // What only the launcher knows, it refuses before the first trial.
    const auto refused = [](const PodStudy& study) {
        return message_of<UsageError>([&] { (void)set_up(study.read(), "out"); });
    };
    CHECK(has(refused(PodStudy(plain_pod, ", reach: ingress")), "study.yaml: `kubernetes`"));
    CHECK(has(refused(PodStudy(plain_pod, ", color: red")), "no setting 'color'"));
    CHECK(has(refused(PodStudy(plain_pod, "", ", gpus: \"0\"")), "leave `gpus` out"));
    CHECK(has(refused(PodStudy(plain_pod + "    args: [x]\n")), "`args`"));
    const std::string said =
        refused(PodStudy(plain_pod, "", ", environment: {HF_TOKEN: abcdefgh}"));
    CHECK(has(said, "secretRef"));
    CHECK_FALSE(has(said, "abcdefgh"));
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
        CHECK_THROWS_WITH(json(doubtful), Catch::Matchers::Contains("YAML 1.1 than in 1.2"));
    CHECK(json("{a: \"on\", b: \"0444\", c: 0, d: 0.5}") ==
          R"({"a":"on","b":"0444","c":0,"d":0.5})");
}
