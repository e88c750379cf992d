// SPDX-License-Identifier: Apache-2.0
// `autotune recommend --as ...`: each file is read by a reader of its own kind, where one is at
// hand.
#include "handover/artefact.hpp"
#include "base/files.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml.hpp"
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

const std::string planted = "hf_Plantedf0rArtefacts";

bool artefact_has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A study of a simulated engine, run to its end: the recommendation is `quantization = fp8` on one
/// GPU of two.
struct FinishedStudy {
    explicit FinishedStudy(const std::string& engine = "vllm",
                           const std::string& space = "{quantization: {choice: [none, fp8]}}",
                           const std::string& more = "") {
        setenv("SERVETUNE_TEST_TOKEN", planted.c_str(), 1);
        folder.write("study.yaml",
                     "study: My study_1\nmodel: Qwen/Qwen3-14B\nhardware: {device: h100-sxm, "
                     "count: 2}\nengine: " +
                         engine +
                         "\nworkloads: [{use: random, input_tokens: 512, output_tokens: 128, "
                         "requests: 60, arrival: "
                         "{concurrency: 32}}]\nobjective: {maximize: "
                         "total_tokens_per_second}\nothers: default\nspace: " +
                         space + "\nstrategy: exhaustive\nevaluator: {simulate: {}}\n" + more);
        const Ran run =
            autotune({"run", "study.yaml", "--quiet", "--directory", "out"}, folder.path());
        INFO(run.out << run.err);
        REQUIRE(run.code == 0);
        // What runs engines for real has an environment too: the same trials, told to another
        // evaluator.
    }
    [[nodiscard]] Ran recommend(std::vector<std::string> words) const {
        words.insert(words.begin(), {"recommend", "study.yaml", "--directory", "out"});
        return autotune(std::move(words), folder.path());
    }
    TemporaryFolder folder;
};

/// A study whose engines would be started, with an environment of hard words; nothing of it is run.
StudySetup hard_setup(const TemporaryFolder& folder, const std::string& deploy = "") {
    setenv("SERVETUNE_TEST_TOKEN", planted.c_str(), 1);
    return set_up(load_study(
        folder.write(
            "hard.yaml",
            "study: hard\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\n"
            "hardware: {count: 4}\nspace: {tensor_parallel_size: 2}\n"
            "arguments: [--api-key, \"${SERVETUNE_TEST_TOKEN}\", \"it's $HOME 100% \\\"of\\\" \\\\ "
            "$(id) `id`\"]\n"
            "workloads: [{use: random}]\nobjective: {maximize: "
            "total_tokens_per_second}\nevaluator: {deploy: "
            "{environment: {HF_TOKEN: \"${SERVETUNE_TEST_TOKEN}\", ODD: \"a $b 5% \\\"c\\\"\"}" +
                deploy + "}}\n"),
        shipped_catalogue));
}

Artefact artefact_from(const StudySetup& setup, const std::string& kind,
                       DeploymentOptions options = {}) {
    return artefact_of(kind, setup, setup.problem->space.default_configuration(), options);
}

std::string artefact_tool(const std::string& name) {
    for (const char* folder : {"/usr/bin/", "/bin/"})
        if (fs::exists(folder + name)) return folder + name;
    return {};
}

}  // namespace

TEST_CASE("recommend: the recommended command as a file of each kind") {
    const FinishedStudy study;
    const Ran shell = study.recommend({});
    INFO(shell.out << shell.err);
    REQUIRE(shell.code == 0);
    CHECK(artefact_has(shell.out, "# Recommended: +"));
    CHECK(artefact_has(shell.out,
                       "\nexport CUDA_VISIBLE_DEVICES=0\n"));  // of two, as it was measured
    CHECK(artefact_has(
        shell.out,
        "\nexec vllm serve Qwen/Qwen3-14B --host 127.0.0.1 --port 8000 --quantization=fp8\n"));
    CHECK(study.recommend({"--as", "shell"}).out == shell.out);

    const Ran slurm = study.recommend({"--as", "slurm", "--port", "9000"});
    CHECK(artefact_has(slurm.out, "#SBATCH --job-name=my-study-1\n"));
    CHECK(artefact_has(slurm.out, "#SBATCH --gres=gpu:1\n"));
    CHECK(artefact_has(slurm.out,
                       "\n# Add what your cluster wants, such as --partition, --account and "
                       "--time, as lines like these:\n#SBATCH "));
    const std::string reach =
        "\n# It listens on 127.0.0.1: only this machine reaches it. For others: recommend --host "
        "0.0.0.0\n";
    CHECK(artefact_has(slurm.out, reach));
    CHECK_FALSE(
        artefact_has(study.recommend({"--as", "slurm", "--host", "0.0.0.0"}).out, "It listens on"));
    CHECK(artefact_has(
        slurm.out,
        "\nexec srun vllm serve Qwen/Qwen3-14B --host 127.0.0.1 --port 9000 --quantization=fp8\n"));

    const Ran without = study.recommend({"--as", "compose"});
    CHECK(without.code == 2);
    CHECK(artefact_has(without.err, "an image is needed that has the engine: --image"));
    const Ran compose = study.recommend({"--as", "compose", "--image", "vllm/vllm-openai:v0.11.0"});
    const Yaml file = Yaml::parse(compose.out, "compose.yaml");
    const Yaml& engine = *file.entry(std::string("services"))->entry(std::string("engine"));
    CHECK(engine.entry(std::string("image"))->text() == "vllm/vllm-openai:v0.11.0");
    CHECK(engine.entry(std::string("command"))->items().size() == 7);
    CHECK(artefact_has(compose.out, "capabilities: [gpu]"));
    CHECK_FALSE(
        artefact_has(study.recommend({"--as", "compose", "--image", "a", "--gpus", "0"}).out,
                     "capabilities: [gpu]"));

    const Ran manifest =
        study.recommend({"--as", "kubernetes", "--image", "vllm/vllm-openai:v0.11.0"});
    REQUIRE(manifest.code == 0);
    const auto second = manifest.out.find("---\n");
    REQUIRE(second != std::string::npos);
    const Yaml deployment = Yaml::parse(manifest.out.substr(0, second), "deployment.yaml");
    CHECK(deployment.entry(std::string("kind"))->text() == "Deployment");
    CHECK(Yaml::parse(manifest.out.substr(second + 4), "service.yaml")
              .entry(std::string("kind"))
              ->text() == "Service");
    CHECK(artefact_has(manifest.out, "limits: {nvidia.com/gpu: 1}"));

    const Ran written = study.recommend({"--as", "systemd", "--output", "files"});
    CHECK(written.out == "files/my-study-1.service\n");
    CHECK(read_file(study.folder.path() / "files/my-study-1.service") ==
          study.recommend({"--as", "systemd"}).out);
    CHECK(study.recommend({"--as", "windows"}).code == 2);
    CHECK(study.recommend({"--as", "shell", "--output", "files"}).code == 0);
    CHECK((fs::status(study.folder.path() / "files/my-study-1.sh").permissions() &
           fs::perms::owner_exec) != fs::perms::none);
    CHECK((fs::status(study.folder.path() / "files/my-study-1.service").permissions() &
           fs::perms::owner_exec) == fs::perms::none);
    const auto object = nlohmann::json::parse(study.recommend({"--as", "slurm", "--json"}).out);
    CHECK(object["name"] == "my-study-1.sbatch");
    CHECK(artefact_has(object["text"], "#SBATCH"));
}

TEST_CASE("recommend: an engine that takes a file of options gets it beside the artefact") {
    const FinishedStudy study(
        "tensorrt-llm",
        "{stream_interval: {choice: [1, 8]}, max_batch_size: {choice: [engine, 16]}}");
    const Artefact artefact = [&] {
        const StudySetup setup =
            set_up(load_study(study.folder.path() / "study.yaml", shipped_catalogue));
        const Configuration set = setup.problem->space.changed(
            setup.problem->space.default_configuration(), {{"stream_interval", std::int64_t{8}}});
        CHECK(artefact_has(artefact_of("kubernetes", setup, set, {.image = "i"}).text,
                           "kind: ConfigMap"));
        CHECK(artefact_has(artefact_of("compose", setup, set, {.image = "i"}).text,
                           "/run/servetune/options.yaml"));
        return artefact_of("systemd", setup, set, {});
    }();
    CHECK(artefact_has(artefact.beside.at("options.yaml"), "\"stream_interval\": 8"));
    CHECK(artefact_has(artefact.text, "WorkingDirectory=/etc/my-study-1\n"));
}

TEST_CASE("recommend: hard words reach the engine as they are, secrets are in no file") {
    const TemporaryFolder folder;
    const StudySetup setup = hard_setup(folder);
    const std::string hard = "it's $HOME 100% \"of\" \\ $(id) `id`";
    for (const std::string kind : {"shell", "systemd", "compose", "kubernetes", "slurm"}) {
        const Artefact artefact = artefact_from(
            setup, kind, {.image = "org/i:1", .title = "Recommended\nExecStart=/bin/false"});
        INFO(artefact.text);
        CHECK_FALSE(artefact_has(artefact.text, planted));
        CHECK(artefact_has(artefact.text, "SERVETUNE_TEST_TOKEN"));
        CHECK(artefact_has(artefact.text, "HF_TOKEN"));
        CHECK_FALSE(artefact_has(artefact.text, "\nExecStart=/bin/false"));
    }
    // A shell reads it for real, with the secrets from outside and not without.
    folder.write("vllm",
                 "#!/bin/sh\nfor word in \"$@\"; do printf '<%s>\\n' \"$word\"; done\necho "
                 "\"$HF_TOKEN|$ODD|$CUDA_VISIBLE_DEVICES\"\n");
    fs::permissions(folder.path() / "vllm", fs::perms::owner_all);
    folder.write("serve.sh", artefact_from(setup, "shell").text);
    const Ran served = ran(
        {"/usr/bin/env", "PATH=" + folder.path().string() + ":/usr/bin:/bin",
         "HF_TOKEN=from-outside", "SERVETUNE_TEST_TOKEN=key-from-outside", "/bin/sh", "serve.sh"},
        folder.path());
    CHECK(served.code == 0);
    CHECK(
        artefact_has(served.out, "<--tensor-parallel-size=2>\n<--api-key>\n<key-from-outside>\n<" +
                                     hard + ">\nfrom-outside|a $b 5% \"c\"|0,1\n"));
    CHECK(
        ran({"/usr/bin/env", "-u", "HF_TOKEN", "-u", "SERVETUNE_TEST_TOKEN", "/bin/sh", "serve.sh"},
            folder.path())
            .code != 0);
    folder.write("job.sbatch", artefact_from(setup, "slurm").text);
    CHECK(ran({"/bin/sh", "-n", "job.sbatch"}, folder.path()).code == 0);

    const std::string compose = artefact_from(setup, "compose", {.image = "org/i:1"}).text;
    CHECK(artefact_has(compose, "- \"${SERVETUNE_TEST_TOKEN?}\"\n"));
    CHECK(artefact_has(compose, "\"HF_TOKEN\": \"${HF_TOKEN?}\"\n"));
    CHECK(artefact_has(compose, "- \"it's $$HOME 100% \\\"of\\\" \\\\ $$(id) `id`\"\n"));
    const std::string manifest = artefact_from(setup, "kubernetes", {.image = "org/i:1"}).text;
    CHECK(artefact_has(manifest, "- \"it's $$HOME 100% \\\"of\\\" \\\\ $$(id) `id`\"\n"));
    CHECK(artefact_has(manifest, "- \"$(SERVETUNE_TEST_TOKEN)\"\n"));
    CHECK(artefact_has(manifest, "secretKeyRef: {name: \"hard\", key: \"HF_TOKEN\"}"));

    const StudySetup contained =
        hard_setup(folder, ", container: {program: [docker], image: org/i:1}");
    CHECK(artefact_has(artefact_from(contained, "kubernetes").text, "image: \"org/i:1\""));
    const std::string client = artefact_from(contained, "slurm").text;
    CHECK(artefact_has(client, "exec srun docker run --rm --network=host --shm-size=34359738368"));
    CHECK(artefact_has(client, "--env=HF_TOKEN"));
    CHECK_FALSE(artefact_has(client, planted));
}

TEST_CASE("recommend: a file that has not the options of the study's container names them") {
    const TemporaryFolder folder;
    const StudySetup setup =
        hard_setup(folder,
                   ", container: {program: [docker], image: org/i:1, options: [--cap-add=SYS_NICE, "
                   "\"--label=K=${SERVETUNE_TEST_TOKEN}\"]}");
    for (const std::string kind : {"compose", "kubernetes"}) {
        const Artefact artefact = artefact_from(setup, kind);
        CHECK(artefact_has(
            artefact.text,
            "# Not in this file, options of the study's container: --cap-add=SYS_NICE --label=K="));
        CHECK(artefact.left_out.starts_with("--cap-add=SYS_NICE --label=K="));
        CHECK_FALSE(artefact_has(artefact.text + artefact.left_out, planted));
    }
    const Artefact shell = artefact_from(setup, "shell");  // its command has them
    CHECK(shell.left_out.empty());
    CHECK(artefact_has(shell.text, " --cap-add=SYS_NICE "));
    CHECK(artefact_from(hard_setup(folder, ", container: {program: [docker], image: org/i:1}"),
                        "compose")
              .left_out.empty());
}

TEST_CASE("recommend: systemd takes the unit, with words that it would read itself") {
    const std::string verify = artefact_tool("systemd-analyze");
    if (verify.empty()) {
        WARN("skipped: there is no systemd-analyze here");
        return;
    }
    const TemporaryFolder folder;
    fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / "vllm");
    const std::string path = folder.path().string() + ":/usr/bin:/bin";
    const char* before = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    const std::string kept = before;
    setenv("PATH", path.c_str(), 1);
    const Artefact unit = artefact_from(hard_setup(folder), "systemd");
    setenv("PATH", kept.c_str(), 1);
    CHECK(unit.name == "hard.service");
    CHECK(artefact_has(unit.text, "EnvironmentFile=/etc/hard.env\n"));
    CHECK(artefact_has(unit.text,
                       "ExecStart=\"" + (folder.path() / "vllm").string() + "\" \"serve\""));
    CHECK(artefact_has(unit.text, "\"it's $$HOME 100%% \\\"of\\\" \\\\ $$(id) `id`\"\n"));
    CHECK(artefact_has(unit.text, "Environment=\"ODD=a $b 5%% \\\"c\\\"\"\n"));
    folder.write(unit.name, unit.text);
    const Ran good = ran({verify, "verify", "--man=no", unit.name}, folder.path());
    INFO(unit.text << good.out << good.err);
    CHECK(good.code == 0);
    CHECK_FALSE(artefact_has(good.err, unit.name));
    // The reader does read: it does not take everything.
    folder.write("bad.service", unit.text + "[Service]\nExecStart=\"/no/such/program\n");
    const Ran bad = ran({verify, "verify", "--man=no", "bad.service"}, folder.path());
    CHECK((bad.code != 0 || artefact_has(bad.err, "bad.service")));
}
