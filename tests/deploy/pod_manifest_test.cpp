// SPDX-License-Identifier: Apache-2.0
// The Job of a trial, from the user's template: what is theirs stays, what is ours is set, what
// clashes is named.
#include "deploy/pod_manifest.hpp"
#include "servetune/error.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

const std::string kubernetes_data = SERVETUNE_SOURCE "/tests/data/kubernetes/";

std::string data_text(const std::string& name) {
    std::ifstream stream(kubernetes_data + name);
    return {std::istreambuf_iterator<char>(stream), {}};
}

const std::string small_template =
    R"({"spec": {"containers": [{"name": "main", "image": "org/engine:1"}]}})";

/// The small template with one member of the pod, or of its container, set.
std::string with_member(const std::string& path, const std::string& json) {
    Json pod = Json::parse(small_template);
    pod[Json::json_pointer(path)] = Json::parse(json);
    return pod.dump();
}

LaunchRequest some_request() {
    LaunchRequest request;
    request.command.argv = {"vllm", "serve", "/models/m", "--port=8000"};
    request.devices = 2;
    request.stop_within_seconds = 20.5;
    return request;
}

std::string why(const std::string& pod_template) {
    return KubernetesOptions{.pod_template = pod_template}.why_invalid();
}

std::string refusal(const KubernetesOptions& options, const LaunchRequest& request) {
    try {
        (void)trial_job(options, request, "n", "l");
        return "";
    } catch (const UsageError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE(
    "pod manifest: a template with everything of a cluster's becomes the Job that is written "
    "down") {
    LaunchRequest request = some_request();
    request.folder = "/home/me/study/trials/7/prefill-0";
    request.command.argv = {"vllm", "serve",       "/models/m",        "--port=8000", "$(HOME)",
                            "a$$b", "it's \"so\"", "--options=o.json", "o.json"};
    request.command.files = {{"o.json", "{\"a\": \"$(HOME)\"}\n"}};
    request.environment = {{"CUDA_VISIBLE_DEVICES", "0,1"}, {"VLLM_LOGGING_LEVEL", "$(X)"}};
    KubernetesOptions options{.pod_template = data_text("template.json")};
    REQUIRE(options.why_invalid() == "");
    const Json job = trial_job(options, request, "servetune-abc-1", "abc");
    CHECK(job == Json::parse(data_text("job.json")));
    CHECK(engine_container(options) == "engine");
    CHECK(images_of(options) == std::vector<std::string>{"org/engine:1"});
}

TEST_CASE("pod manifest: what every trial needs is there, whatever the template lacks") {
    const Json job = trial_job({.pod_template = small_template}, some_request(), "n", "l");
    CHECK(job["spec"]["backoffLimit"] == 0);
    CHECK(job["spec"]["completions"] == 1);
    CHECK(job["spec"]["ttlSecondsAfterFinished"] == 3600);
    CHECK(job["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "servetune");
    const Json& pod = job["spec"]["template"];
    CHECK(pod["metadata"]["labels"]["servetune/study"] == "l");
    const Json& spec = pod["spec"];
    CHECK(spec["restartPolicy"] == "Never");
    CHECK(spec["enableServiceLinks"] == false);
    CHECK(spec["automountServiceAccountToken"] == false);
    CHECK(spec["terminationGracePeriodSeconds"] == 21);
    CHECK(spec["activeDeadlineSeconds"] == 86400);
    CHECK_FALSE(spec.contains("hostNetwork"));
    REQUIRE(spec["tolerations"].size() == 2);
    for (const Json& one : spec["tolerations"]) CHECK(one["tolerationSeconds"] == 60);
    const Json& container = spec["containers"][0];
    CHECK(container["name"] == "main");  // the only one is the engine's
    CHECK(container["command"] == Json({"vllm", "serve", "/models/m", "--port=8000"}));
    CHECK(container["resources"]["limits"]["nvidia.com/gpu"] == 2);
    CHECK(container["terminationMessagePolicy"] == "FallbackToLogsOnError");
    CHECK(container["volumeMounts"][0]["mountPath"] == "/dev/shm");
    CHECK(spec["volumes"][0]["emptyDir"]["medium"] == "Memory");
    for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
        CHECK_FALSE(container.contains(probe));
}

TEST_CASE(
    "pod manifest: servers of one trial may share a node, and other trials of the study may not") {
    CHECK(trial_label("/s/trials/7") == "7");
    for (const char* server : {"prefill-0", "decode-1", "router", "replica-1", "default"})
        CHECK(trial_label(std::filesystem::path("/s/trials/7") / server) == "7");
    CHECK(trial_label("/2026/s/trials/12/router") == "12");
    CHECK_FALSE(trial_label("/mine/engine").empty());
    CHECK(trial_label("/mine/engine") != trial_label("/mine/other"));
    CHECK(trial_label("").find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE(
    "pod manifest: a user may say the bound, shared memory, where trials run beside each other, "
    "and the devices") {
    Json pod = Json::parse(small_template);
    pod["spec"]["activeDeadlineSeconds"] = 600;
    pod["spec"]["affinity"]["podAntiAffinity"] = Json::object();
    pod["spec"]["volumes"] =
        Json::parse(R"([{"name": "mine", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}])");
    pod["spec"]["containers"][0]["volumeMounts"] =
        Json::parse(R"([{"name": "mine", "mountPath": "/dev/shm"}])");
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] = 1;
    KubernetesOptions options{.pod_template = pod.dump(),
                              .reach = KubernetesReach::node,
                              .images = {"org/a:1", "org/b:1"},
                              .devices = ""};
    CHECK(has(options.why_invalid(),
              "`spec.containers[0].image`: leave it out, `images` of `kubernetes` says it"));
    pod["spec"]["containers"][0].erase("image");
    options.pod_template = pod.dump();
    REQUIRE(options.why_invalid() == "");
    LaunchRequest request = some_request();
    const auto image = [&] {
        return trial_job(options, request, "n",
                         "l")["spec"]["template"]["spec"]["containers"][0]["image"];
    };
    CHECK(image() == "org/a:1");
    request.image = "org/b:1";
    CHECK(image() == "org/b:1");
    const Json spec = trial_job(options, request, "n", "l")["spec"]["template"]["spec"];
    CHECK(spec["activeDeadlineSeconds"] == 600);
    CHECK(spec["affinity"]["podAntiAffinity"] == Json::object());
    CHECK(spec["volumes"].size() == 1);
    CHECK(spec["containers"][0]["resources"]["limits"] == Json{{"nvidia.com/mig-1g.10gb", 1}});
    CHECK(spec["hostNetwork"] == true);
    CHECK(spec["dnsPolicy"] == "ClusterFirstWithHostNet");
}

TEST_CASE("pod manifest: what is not the user's to say is refused with its path and the reason") {
    const std::string container = "/spec/containers/0/";
    const std::vector<std::vector<std::string>> rows{
        {container + "command", R"(["x"])",
         "`spec.containers[0].command`: leave it out, each trial has its own"},
        {container + "args", R"(["x"])", "`spec.containers[0].args`: leave it out"},
        {container + "ports", R"([{"containerPort": 8000}])", "`spec.containers[0].ports`"},
        {container + "livenessProbe", "{}",
         "`spec.containers[0].livenessProbe`: leave it out, it would kill an engine that starts "
         "slowly"},
        {container + "readinessProbe", "{}", "`spec.containers[0].readinessProbe`"},
        {container + "startupProbe", "{}", "`spec.containers[0].startupProbe`"},
        {container + "image", "\"\"", "`spec.containers[0].image`: the engine's image wanted"},
        {container + "resources", R"({"limits": {"nvidia.com/gpu": 1}})",
         "`spec.containers[0].resources.limits.nvidia.com/gpu`: leave it out, the layout of each "
         "trial says it"},
        {container + "volumeMounts", R"([{"name": "x", "mountPath": "/run/servetune"}])",
         "`spec.containers[0].volumeMounts[0].mountPath`"},
        {container + "env",
         R"([{"name": "A", "value": "1"}, {"name": "HF_TOKEN", "value": "hf_abc"}])",
         "`spec.containers[0].env[1].value`: HF_TOKEN is a secret by its name"},
        {container + "env", R"([{"name": "A", "value": 1}])",
         "`spec.containers[0].env[0].value`: text wanted, got 1: put it in quotes"},
        {"/spec/initContainers", R"([{"name": "i", "env": [{"name": "API_KEY", "value": "k"}]}])",
         "`spec.initContainers[0].env[0].value`: API_KEY is a secret"},
        {container + "resources", "[]", "`spec.containers[0].resources`: a mapping wanted, got []"},
        {container + "resources", R"({"limits": []})",
         "`spec.containers[0].resources.limits`: a mapping wanted, got []"},
        {container + "volumeMounts", R"([{"name": "x", "mountPath": 3}])",
         "`spec.containers[0].volumeMounts[0].mountPath`: text wanted, got 3"},
        {"/spec/tolerations", R"(["x"])",
         "`spec.tolerations`: a list of mappings wanted, got [\"x\"]"},
        {"/spec/tolerations", R"({"key": "x"})", "`spec.tolerations`: a list of mappings wanted"},
        {"/spec/tolerations", R"([{"key": 1}])", "`spec.tolerations[0].key`: text wanted, got 1"},
        {"/spec/affinity", R"(["x"])", "`spec.affinity`: a mapping wanted"},
        {"/spec/restartPolicy", "\"OnFailure\"",
         "`spec.restartPolicy`: leave it out, an engine that ends is a result"},
        {"/spec/terminationGracePeriodSeconds", "30", "`stop_within` of `deploy` says it"},
        {"/spec/enableServiceLinks", "true", "`spec.enableServiceLinks`"},
        {"/spec/automountServiceAccountToken", "true", "`spec.automountServiceAccountToken`"},
        {"/spec/hostNetwork", "true", "`reach: node` of `kubernetes` says it"},
        {"/spec/volumes", R"([{"name": "servetune-shm"}])",
         "`spec.volumes[0].name`: names that begin with 'servetune' are ours"},
        {"/spec/containers", R"([{"name": "a"}, {"name": "b"}])",
         "`spec.containers`: one of the 2 must be named `engine`"},
        {"/spec/containers", "[]", "`spec.containers`: one container wanted, named `engine`"},
        {"/spec/containers", "{}", "`spec.containers`: a list of mappings with a `name` wanted"},
        {"/metadata", R"({"name": "p"})", "`metadata.name`: each trial has a name of its own"},
        {"/metadata", R"({"namespace": "p"})",
         "`metadata.namespace`: `namespace` of `kubernetes` says it"},
        {"/metadata", R"({"labels": {"servetune/study": "x"}})",
         "`metadata.labels.servetune/study`: it is this program's"},
        {"/metadata", R"({"labels": {"app.kubernetes.io/managed-by": "x"}})",
         "it is this program's"},
        {"/metadata", R"({"labels": {"on": true}})",
         "`metadata.labels.on`: text wanted, got true: put it in quotes"},
        {"/status", "{}", "`status`: a template has `metadata` and `spec` only"},
        {"/kind", "\"Deployment\"", "'Deployment' is none: a Pod or PodTemplate wanted"}};
    for (const auto& row : rows) {
        const std::string said = why(with_member(row[0], row[1]));
        INFO(row[0] << ": " << said);
        CHECK(has(said, row[2]));
    }
    CHECK(why(with_member("/spec/restartPolicy", "\"Never\"")) == "");
    for (const char* empty : {"/spec/affinity", "/spec/tolerations"}) {  // a key without a value
        CHECK(why(with_member(empty, "null")) == "");
        CHECK(refusal({.pod_template = with_member(empty, "null")}, some_request()) == "");
    }
    CHECK(refusal({.pod_template = with_member(container + "resources", "null")}, some_request()) ==
          "");
    CHECK(why(with_member(container + "env", R"([{"name": "HF_TOKEN", "value": ""}])")) == "");
    CHECK(has(why("[]"), "an object of kind Pod or PodTemplate wanted"));
    CHECK(has(why("{"), "an object of kind Pod or PodTemplate wanted"));
    CHECK(has(why("{}"), "`spec`: a mapping wanted"));
    CHECK(has(
        why(R"({"kind": "PodTemplate", "template": {"spec": {"containers": [{"name": "a", "image": "i", "args": []}]}}})"),
        "`template.spec.containers[0].args`"));
    // Everything at once.
    Json both = Json::parse(with_member("/spec/hostNetwork", "true"));
    both["spec"]["containers"][0]["args"] = Json::array();
    CHECK(has(why(both.dump()), "hostNetwork"));
    CHECK(has(why(both.dump()), "args"));
}

TEST_CASE(
    "pod manifest: a secret, a variable set twice and a file that no pod can hold are refused") {
    const KubernetesOptions options{
        .pod_template =
            with_member("/spec/containers/0/env", R"([{"name": "NCCL_DEBUG", "value": "WARN"}])")};
    LaunchRequest request = some_request();
    request.environment = {{"HF_TOKEN", "hf_abc"}};
    CHECK(has(refusal(options, request), "the secret HF_TOKEN"));
    CHECK_FALSE(has(refusal(options, request), "hf_abc"));
    request.environment = {{"NCCL_DEBUG", "INFO"}};
    CHECK(has(refusal(options, request),
              "sets NCCL_DEBUG under `env`, and so does the study: one of them"));
    request.environment.clear();
    request.command.files = {{"f", "\xff"}};
    CHECK(has(refusal(options, request), "UTF-8"));
    request.command.files = {{"f", std::string(262144, 'x')}};
    CHECK(has(refusal(options, request), "a pod's annotations at most 262144"));
    request.command.files = {{"f", std::string(262100, 'x')}};
    CHECK(refusal(options, request) == "");
    request.command.argv.emplace_back("\xff");
    CHECK(has(refusal(options, request), "UTF-8"));
}

TEST_CASE("pod manifest: options that no cluster takes are refused") {
    const auto said = [](KubernetesOptions options) {
        options.pod_template = small_template;
        return options.why_invalid();
    };
    CHECK(said({}) == "");
    CHECK(has(said({.name_space = "Not_One"}), "namespace: lower-case letters"));
    CHECK(has(said({.context = "--x"}), "context"));
    CHECK(has(said({.devices = "gpu"}), "devices: the name of a resource such as nvidia.com/gpu"));
    CHECK(has(said({.program = {""}}), "program"));
}
