// SPDX-License-Identifier: Apache-2.0
// `init --as kubernetes`: what runs a study inside a cluster. That the cluster takes it and runs it
// is tested by cluster_run_test.cpp.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "study_file/yaml.hpp"

#include <filesystem>
#include <map>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// The documents of a manifest by kind and name, and each as text.
struct ManifestPart {
    Yaml yaml;
    std::string text;
};
std::map<std::string, ManifestPart> parts_of(const std::string& manifest) {
    std::map<std::string, ManifestPart> result;
    for (std::size_t at = 0; at < manifest.size();) {
        std::size_t end = manifest.find("\n---\n", at);
        if (end == std::string::npos) end = manifest.size();
        const std::string text = manifest.substr(at, end - at) + "\n";
        const Yaml yaml = Yaml::parse(text, "part");
        const std::string kind = yaml.entry(std::string_view("kind"))->text();
        const std::string name =
            yaml.entry(std::string_view("metadata"))->entry(std::string_view("name"))->text();
        result.insert({kind + " " + name, ManifestPart{yaml, text}});
        at = end + 5;
    }
    return result;
}

const std::vector<std::string> packing{"init",     "--as",      "kubernetes",
                                       "--output", "chat.yaml", "--yes"};

}  // namespace

TEST_CASE(
    "init --as kubernetes: study, pod and manifest are written, and the study is valid where it "
    "will run") {
    const TemporaryFolder folder;
    std::vector<std::string> words = packing;
    words.insert(words.end(), {"--engine", "vllm", "--model", "Qwen/Qwen3-14B", "--hardware",
                               "h100-sxm", "--image", "r.example/servetune:1"});
    const Ran made = autotune(words, folder.path());
    INFO(made.out << made.err);
    REQUIRE(made.code == 0);
    CHECK(has(made.out,
              "wrote servetune.yaml\nnext: kubectl create configmap servetune-chat "
              "--from-file=chat.yaml --from-file=pod.yaml, then kubectl apply -f servetune.yaml"));
    const std::string study = read_file(folder.path() / "chat.yaml");
    CHECK(has(study, "\nevaluator: {deploy: {kubernetes: {template: pod.yaml}}}\n"));
    CHECK(has(study, "\nhardware: h100-sxm\n"));
    const std::string pod = read_file(folder.path() / "pod.yaml");
    CHECK(has(pod, "image: vllm/vllm-openai "));
    CHECK(has(pod, "claimName: servetune-chat-models"));
    CHECK(has(pod, "resources: {requests: {cpu: \"2\", memory: 6G}}"));
    const auto parts = parts_of(read_file(folder.path() / "servetune.yaml"));
    std::set<std::string> kinds;
    for (const auto& [name, part] : parts) kinds.insert(name);
    CHECK(kinds == std::set<std::string>{"Deployment servetune-chat-page", "Job servetune-chat",
                                         "PersistentVolumeClaim servetune-chat",
                                         "PersistentVolumeClaim servetune-chat-models",
                                         "Role servetune-chat", "RoleBinding servetune-chat",
                                         "ServiceAccount servetune-chat"});
    const std::string& job = parts.at("Job servetune-chat").text;
    CHECK(has(job, "image: \"r.example/servetune:1\"\n"));
    CHECK(has(job,
              "command: [autotune, run, \"/study/chat.yaml\", --directory, /servetune/study, "
              "--view]\n"));
    CHECK(has(job, "- {name: study, configMap: {name: servetune-chat}}\n"));
    CHECK(has(parts.at("Deployment servetune-chat-page").text,
              "command: [autotune, view, /servetune/study]\n"));
    CHECK(has(job, "onPodConditions: [{type: DisruptionTarget}]\n"));

    // Nothing that is there is replaced, and a pod that the user has stays even with --force.
    folder.write("pod.yaml", "mine");
    words.emplace_back("--force");
    for (const bool force : {false, true}) {
        const Ran again = autotune({words.begin(), words.end() - (force ? 0 : 1)}, folder.path());
        CHECK(again.code == (force ? 0 : 2));
        CHECK(read_file(folder.path() / "pod.yaml") == "mine");
    }
    // For the pod there is the first one's, and for the run too.
    words[4] = "other.yaml";
    words.pop_back();
    const Ran second = autotune(words, folder.path());
    CHECK(second.code == 2);
    CHECK(has(second.err, "servetune.yaml is there already"));
    CHECK_FALSE(fs::exists(folder.path() / "other.yaml"));
}

TEST_CASE(
    "init --as ray: a study whose trials are jobs of the cluster that Ray's own programs would "
    "use") {
    const TemporaryFolder folder;
    const auto made = [&](const std::string& name, const std::string& address) {
        const Ran ran =
            test::ran({"/usr/bin/env", "RAY_API_SERVER_ADDRESS=" + address, SERVETUNE_PROGRAM,
                       "init", "--as", "ray", "--output", name, "--yes", "--engine", "vllm",
                       "--model", "Qwen/Qwen3-14B", "--hardware", "h100-sxm"},
                      folder.path());
        INFO(ran.out << ran.err);
        REQUIRE(ran.code == 0);
        return read_file(folder.path() / name);
    };
    CHECK(has(made("a.yaml", "http://head:8265"),
              "\nevaluator: {deploy: {ray: {address: \"http://head:8265\"}}}\n"));
    CHECK(has(made("b.yaml", "ray://head:10001"),
              "\nevaluator: {deploy: {ray: {address: \"http://127.0.0.1:8265\"}}}\n"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "servetune.yaml"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "pod.yaml"));
}

TEST_CASE("init --as kubernetes: a model of a volume is no claim of ours") {
    const TemporaryFolder folder;
    std::vector<std::string> words = packing;
    words.insert(words.end(), {"--engine", "vllm", "--model", "/shared/models/m"});
    const Ran made = autotune(words, folder.path());
    INFO(made.out << made.err);
    REQUIRE(made.code == 0);
    CHECK(has(read_file(folder.path() / "pod.yaml"),
              "mountPath: \"/shared/models\", readOnly: true"));
    CHECK_FALSE(has(read_file(folder.path() / "servetune.yaml"), "-models"));
    CHECK(has(read_file(folder.path() / "servetune.yaml"), "image: \"servetune:"));
}
