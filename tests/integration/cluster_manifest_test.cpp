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

std::string data_of(const std::map<std::string, ManifestPart>& parts, const std::string& map,
                    const std::string& file) {
    const Yaml* content = parts.at("ConfigMap " + map)
                              .yaml.entry(std::string_view("data"))
                              ->entry(std::string_view(file));
    return content == nullptr ? "" : content->text();
}

const std::vector<std::string> packing{"init",     "--as",      "kubernetes",
                                       "--output", "chat.yaml", "--yes"};

const std::string attached =
    "study: Chat_TP 2\nmodel: m\nengine: vllm\nworkloads: [random]\nobjective: {maximize: "
    "total_tokens_per_second}\nspace: "
    "{load.concurrency: [1, 2]}\n"
    "budget: 2 trials\nevaluator: {attach: \"http://engine:8000\"}\n";

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
              "wrote servetune.yaml (with chat.yaml, pod.yaml)\nnext: autotune validate chat.yaml, "
              "then kubectl apply -f "));
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
    CHECK(kinds == std::set<std::string>{
                       "ConfigMap servetune-chat", "Deployment servetune-chat-page",
                       "Job servetune-chat", "PersistentVolumeClaim servetune-chat",
                       "PersistentVolumeClaim servetune-chat-models", "Role servetune-chat",
                       "RoleBinding servetune-chat", "ServiceAccount servetune-chat"});
    CHECK(data_of(parts, "servetune-chat", "chat.yaml") == study);
    CHECK(data_of(parts, "servetune-chat", "pod.yaml") == pod);
    const std::string& job = parts.at("Job servetune-chat").text;
    CHECK(has(job, "image: \"r.example/servetune:1\"\n"));
    CHECK(has(job,
              "command: [autotune, run, \"/study/chat.yaml\", --directory, /servetune/study, "
              "--view, \"127.0.0.1:8420\"]\n"));
    CHECK(has(job, "onPodConditions: [{type: DisruptionTarget}]\n"));

    // Changed files are taken as they are, with the image of before.
    folder.write("chat.yaml", "# mine\n" + study);
    folder.write("pod.yaml", pod + "# a tab:\t\xC3\xA9\n");
    const Ran again = autotune(packing, folder.path());
    INFO(again.err);
    REQUIRE(again.code == 0);
    const std::string packed = read_file(folder.path() / "servetune.yaml");
    CHECK(data_of(parts_of(packed), "servetune-chat", "chat.yaml") == "# mine\n" + study);
    CHECK(data_of(parts_of(packed), "servetune-chat", "pod.yaml") == pod + "# a tab:\t\xC3\xA9\n");
    CHECK(has(packed, "image: \"r.example/servetune:1\"\n"));
}

TEST_CASE(
    "init --as kubernetes: a second study of one folder is refused, for the pod there is the first "
    "one's") {
    const TemporaryFolder folder;
    std::vector<std::string> words = packing;
    words.insert(words.end(), {"--engine", "vllm", "--model", "Qwen/Qwen3-14B"});
    REQUIRE(autotune(words, folder.path()).code == 0);
    const std::string manifest = read_file(folder.path() / "servetune.yaml");
    words[4] = "chat.yaml.2.yaml";
    for (const bool force : {false, true}) {
        if (force) words.push_back("--force");
        const Ran refused = autotune(words, folder.path());
        CHECK(refused.code == 2);
        CHECK(has(refused.err,
                  "servetune.yaml runs another study of this folder: put each study into a folder "
                  "of its own"));
        CHECK_FALSE(std::filesystem::exists(folder.path() / "chat.yaml.2.yaml"));
    }
    CHECK(read_file(folder.path() / "servetune.yaml") == manifest);
    std::filesystem::create_directory(folder.path() / "two");
    words[4] = "two/chat.yaml";
    CHECK(autotune(words, folder.path()).code == 0);
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

TEST_CASE(
    "init --as kubernetes: a study takes the files along that it names, and is refused what it "
    "cannot have") {
    const TemporaryFolder folder;
    const std::string& text = attached;
    folder.write("notes.txt", "and more.txt");
    folder.write("more.txt", "more\n\n");
    folder.write("other.txt", "not named");
    const auto refused = [&] {
        const Ran ran = autotune(packing, folder.path());
        CHECK(ran.code == 2);
        return ran.err;
    };
    const auto packs = [&] {
        const Ran ran = autotune(packing, folder.path());
        INFO(ran.err);
        REQUIRE(ran.code == 0);
        return parts_of(read_file(folder.path() / "servetune.yaml"));
    };
    folder.write("chat.yaml", text + "# see notes.txt\n");
    const auto parts = packs();
    CHECK(data_of(parts, "servetune-chat-tp-2", "notes.txt") == "and more.txt");
    CHECK(data_of(parts, "servetune-chat-tp-2", "more.txt") == "more\n\n");
    CHECK(data_of(parts, "servetune-chat-tp-2", "other.txt").empty());

    folder.write("notes.txt", std::string("\0", 1));
    CHECK(has(refused(), "notes.txt is no text, and goes into no ConfigMap"));
    folder.write("notes.txt", std::string(1 << 20, 'x'));
    CHECK(has(refused(), " bytes, and a ConfigMap holds 1048576: "));
    folder.write("notes.txt", "");
    folder.write("chat.yaml", replaced(text, "evaluator: {attach: \"http://engine:8000\"}",
                                       "evaluator: deploy"));
    CHECK(has(refused(),
              "servetune.yaml was not written: chat.yaml cannot run in a cluster as it is: "));
    folder.write("servetune.yaml", "mine\n");
    folder.write("chat.yaml", text);
    CHECK(has(refused(), "servetune.yaml is there already, and is not of this command"));
    CHECK(read_file(folder.path() / "servetune.yaml") == "mine\n");
}

TEST_CASE("init --as kubernetes: a secret goes into no ConfigMap, which hides none") {
    const TemporaryFolder folder;
    const std::string on_ray =
        "study: s\nmodel: m\nengine: vllm\nhardware: h100-sxm\nworkloads: [random]\nobjective: "
        "{maximize: total_tokens_per_second}\n"
        "preset: quick\nbudget: 2 trials\nevaluator: {deploy: {ray: {address: "
        "\"http://head:8265\", token_file: dashboard}}}\n";
    folder.write("dashboard", "sesame-of-the-cluster\n");
    folder.write("chat.yaml", on_ray);
    const auto refused = [&](const std::string& file) {
        const Ran ran = autotune(packing, folder.path());
        INFO(ran.err);
        CHECK(ran.code == 2);
        CHECK(has(ran.err, file + " has a secret, and a ConfigMap hides none"));
        CHECK_FALSE(has(ran.err + ran.out, "sesame"));
        CHECK_FALSE(std::filesystem::exists(folder.path() / "servetune.yaml"));
    };
    refused("dashboard");
    folder.write("HF_TOKEN", "sesame");
    folder.write("chat.yaml", attached + "# HF_TOKEN is the hub's\n");
    refused("HF_TOKEN");
}
