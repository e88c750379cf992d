// SPDX-License-Identifier: Apache-2.0
// What each writer writes, as it stands in tests/data/artefacts. `scripts/test-artefacts` gives the
// same files to a real API server and to the schemas of the platforms.
#include "handover/artefact.hpp"

#include "support/deployment_models.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<std::string> cluster_kinds{"kubernetes", "llm-d",      "kserve",
                                             "dynamo",     "rayservice", "gpustack"};

/// The files of an artefact below one another.
std::string whole_artefact(const Artefact& artefact) {
    std::string result = artefact.text;
    for (const auto& [name, text] : artefact.beside) result += "# ---- " + name + "\n" + text;
    return result;
}

/// Compares with the file of that name. `SERVETUNE_WRITE_GOLDEN=1` writes it: look at what changed.
void check_golden(const std::string& name, const Artefact& artefact) {
    const std::filesystem::path file =
        std::filesystem::path(SERVETUNE_SOURCE "/tests/data/artefacts") / name;
    const std::string text = whole_artefact(artefact);
    if (std::getenv("SERVETUNE_WRITE_GOLDEN") != nullptr)
        write_file(file, text);  // NOLINT(concurrency-mt-unsafe)
    INFO(name);
    CHECK(text == read_file(file));
}

bool runs(const std::string& kind, const DeploymentModel& model) {
    return (kind != "kserve" || !model.platforms.kserve.empty()) &&
           (kind != "rayservice" || !model.platforms.ray.empty());
}

/// GPUStack puts no variable into flags, Ray neither.
DeploymentModel without_secret_words(DeploymentModel model) {
    std::erase_if(model.engines.front().argv, [](const Word& word) {
        return has_variable(word) || word == Word{{"--api-key"}};
    });
    return model;
}

}  // namespace

TEST_CASE("artefacts: what each writer writes for a cluster stands in its golden file") {
    for (const std::string& kind : cluster_kinds)
        for (const std::string& engine : {std::string("vllm"), std::string("sglang")}) {
            const std::string ending = kind == "gpustack" ? ".json" : ".yaml";
            DeploymentModel plain = plain_deployment(engine);
            DeploymentModel hard = hard_deployment(engine);
            if (!runs(kind, plain)) {
                CHECK_THROWS_AS(artefact_of(kind, plain), UsageError);
                continue;
            }
            if (kind == "gpustack") hard = without_secret_words(hard);
            check_golden(kind + "-" + engine + "-plain" + ending, artefact_of(kind, plain));
            check_golden(kind + "-" + engine + "-hard" + ending, artefact_of(kind, hard));
        }
}

TEST_CASE("artefacts: what the user's pod says is in the winner's too") {
    for (const std::string& kind : cluster_kinds)
        if (kind != "gpustack")
            check_golden(kind + "-template.yaml", artefact_of(kind, templated_deployment()));
    const std::string text = artefact_of("kubernetes", templated_deployment()).text;
    CHECK(has(text, "amd.com/gpu"));
    CHECK_FALSE(has(text, "nvidia.com/gpu"));
    CHECK_FALSE(has(text, "\"INFO\""));   // the study's own value was measured
    CHECK_FALSE(has(text, "name: shm"));  // theirs is at /dev/shm
}

TEST_CASE("artefacts: KServe's template reads the words as they are, a secret from its variable") {
    const DeploymentModel model = hard_deployment();
    const std::string text = artefact_of("kserve", model).text;
    const std::string before = "{name: \"VLLM_ADDITIONAL_ARGS\", value: ";
    const auto at = text.find(before) + before.size();
    std::string value =
        nlohmann::json::parse(text.substr(at, text.find("}\n", at) - at)).get<std::string>();
    // KServe's controller runs it as a template of Go, then Kubernetes reads `$$` as `$`.
    for (std::size_t i = 0; (i = value.find("{{`{{`}}")) != std::string::npos;)
        value.replace(i, 8, "{{");
    for (std::size_t i = 0; (i = value.find("$$", i)) != std::string::npos; ++i) value.erase(i, 1);
    const TemporaryFolder folder;
    // As config/llmisvcconfig/config-llm-template.yaml of KServe has it.
    folder.write("template.sh",
                 "eval \"exec printf '<%s>\\n' first \\\n  ${NOTHING} \\\n  "
                 "${VLLM_ADDITIONAL_ARGS} \\\n  $@\"\n");
    ChildProcess shell({"/usr/bin/env", "VLLM_ADDITIONAL_ARGS=" + value,
                        "SERVING_KEY=it's \"$HOME\"", "bash", "template.sh"},
                       folder.path());
    CHECK(shell.wait() == 0);
    std::string expected = "<first>\n";
    for (const Word& word : model.first().flags())
        expected += "<" + (has_variable(word) ? "it's \"$HOME\"" : word.front().text) + ">\n";
    CHECK(shell.out() == expected);
}

TEST_CASE("artefacts: what a platform cannot carry is refused or named") {
    const auto with_words = [](std::vector<std::string> words) {
        DeploymentModel model = plain_deployment();
        for (const std::string& word : words) model.engines.front().argv.push_back({{word}});
        return model;
    };
    CHECK(has(message_of<UsageError>([&] {
                  (void)artefact_of("rayservice", with_words({"--max-model-len", "8k"}));
              }),
              "write the number out"));
    CHECK(has(message_of<UsageError>([&] {
                  (void)artefact_of("rayservice", with_words({"-tp", "2"}));
              }),
              "'-tp' has no name"));
    CHECK(has(message_of<UsageError>([&] {
                  (void)artefact_of("rayservice", with_words({"--compilation-config=3",
                                                              "--compilation-config.mode=1"}));
              }),
              "no place in engine_kwargs"));
    const Artefact ray =
        artefact_of("rayservice", with_words({"--api-key", "k", "--seed", "-1", "--lora-dirs", "a",
                                              "b", "--quantization=007"}));
    CHECK(ray.left_out == "--api-key k");
    CHECK(has(
        ray.text,
        "# Not in this file, flags of the engine's own server, which Ray replaces: --api-key k\n"));
    CHECK(has(ray.text, "\"seed\": -1"));
    CHECK(has(ray.text, "\"quantization\": \"007\""));
    CHECK(has(message_of<UsageError>([&] { (void)artefact_of("gpustack", hard_deployment()); }),
              "'${SERVING_KEY}' has a secret"));
    CHECK(has(message_of<UsageError>(
                  [&] { (void)artefact_of("gpustack", with_words({"--chat-template=-a b"})); }),
              "cannot hold the value '-a b'"));
    CHECK(artefact_of("gpustack", without_secret_words(hard_deployment())).left_out == "HF_TOKEN");
    DeploymentModel local = plain_deployment();
    local.model = "/models/x";
    local.mounts = {"/models/x"};
    CHECK(has(message_of<UsageError>([&] { (void)artefact_of("kserve", local); }),
              "hf://, s3://, oci:// or pvc:// wanted"));
    CHECK(has(artefact_of("gpustack", local).text, "\"local_path\": \"/models/x\""));
    DeploymentModel tagged = plain_deployment();
    CHECK_FALSE(has(artefact_of("dynamo", tagged).text, "runtimeVersionOverride"));
    tagged.image = {{"registry:5000/dynamo:latest"}};
    CHECK(has(artefact_of("dynamo", tagged).text,
              "# The image's tag is no version: add runtimeVersionOverride"));
}
