// SPDX-License-Identifier: Apache-2.0
// `autotune recommend --as ...`: each file is read by a reader of its own kind, where one is at
// hand.
#include "handover/artefact.hpp"
#include "base/files.hpp"
#include "servetune/error.hpp"
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/script.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string planted = "hf_Plantedf0rArtefacts";

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

TEST_CASE("recommend: hard words reach the engine as they are, secrets are in no file") {
    const TemporaryFolder folder;
    const StudySetup setup = hard_setup(folder);
    const std::string hard = "it's $HOME 100% \"of\" \\ $(id) `id`";
    for (const std::string kind : {"shell", "systemd", "compose", "kubernetes", "slurm"}) {
        const Artefact artefact = artefact_from(
            setup, kind, {.image = "org/i:1", .title = "Recommended\nExecStart=/bin/false"});
        INFO(artefact.text);
        CHECK_FALSE(has(artefact.text, planted));
        CHECK(has(artefact.text, "SERVETUNE_TEST_TOKEN"));
        CHECK(has(artefact.text, "HF_TOKEN"));
        CHECK_FALSE(has(artefact.text, "\nExecStart=/bin/false"));
    }
    // A shell reads it for real, with the secrets from outside and not without.
    script(folder,
           "for word in \"$@\"; do printf '<%s>\\n' \"$word\"; done\necho "
           "\"$HF_TOKEN|$ODD|$CUDA_VISIBLE_DEVICES\"\n",
           "vllm");
    folder.write("serve.sh", artefact_from(setup, "shell").text);
    const Ran served = ran(
        {"/usr/bin/env", "PATH=" + folder.path().string() + ":/usr/bin:/bin",
         "HF_TOKEN=from-outside", "SERVETUNE_TEST_TOKEN=key-from-outside", "/bin/sh", "serve.sh"},
        folder.path());
    CHECK(served.code == 0);
    CHECK(has(served.out, "<--tensor-parallel-size=2>\n<--api-key>\n<key-from-outside>\n<" + hard +
                              ">\nfrom-outside|a $b 5% \"c\"|0,1\n"));
    CHECK(
        ran({"/usr/bin/env", "-u", "HF_TOKEN", "-u", "SERVETUNE_TEST_TOKEN", "/bin/sh", "serve.sh"},
            folder.path())
            .code != 0);
    folder.write("job.sbatch", artefact_from(setup, "slurm").text);
    CHECK(ran({"/bin/sh", "-n", "job.sbatch"}, folder.path()).code == 0);

    const std::string compose = artefact_from(setup, "compose", {.image = "org/i:1"}).text;
    CHECK(has(compose, "- \"${SERVETUNE_TEST_TOKEN?}\"\n"));
    CHECK(has(compose, "\"HF_TOKEN\": \"${HF_TOKEN?}\"\n"));
    CHECK(has(compose, "- \"it's $$HOME 100% \\\"of\\\" \\\\ $$(id) `id`\"\n"));
    const std::string manifest = artefact_from(setup, "kubernetes", {.image = "org/i:1"}).text;
    CHECK(has(manifest, "- \"it's $$HOME 100% \\\"of\\\" \\\\ $$(id) `id`\"\n"));
    CHECK(has(manifest, "- \"$(SERVETUNE_TEST_TOKEN)\"\n"));
    CHECK(has(manifest, "secretKeyRef: {name: \"hard\", key: \"HF_TOKEN\"}"));

    const StudySetup contained =
        hard_setup(folder, ", container: {program: [docker], image: org/i:1}");
    CHECK(has(artefact_from(contained, "kubernetes").text, "image: \"org/i:1\""));
    const std::string client = artefact_from(contained, "slurm").text;
    CHECK(has(client, "exec srun docker run --rm --network=host --shm-size=34359738368"));
    CHECK(has(client, "--env=HF_TOKEN"));
    CHECK_FALSE(has(client, planted));
}

TEST_CASE("recommend: a file that has not the options of the study's container names them") {
    const TemporaryFolder folder;
    const StudySetup setup =
        hard_setup(folder,
                   ", container: {program: [docker], image: org/i:1, options: [--cap-add=SYS_NICE, "
                   "\"--label=K=${SERVETUNE_TEST_TOKEN}\"]}");
    for (const std::string kind : {"compose", "kubernetes"}) {
        const Artefact artefact = artefact_from(setup, kind);
        CHECK(has(
            artefact.text,
            "# Not in this file, options of the study's container: --cap-add=SYS_NICE --label=K="));
        CHECK(artefact.left_out.starts_with("--cap-add=SYS_NICE --label=K="));
        CHECK_FALSE(has(artefact.text + artefact.left_out, planted));
    }
    const Artefact shell = artefact_from(setup, "shell");  // its command has them
    CHECK(shell.left_out.empty());
    CHECK(has(shell.text, " --cap-add=SYS_NICE "));
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
    CHECK(has(unit.text, "EnvironmentFile=/etc/hard.env\n"));
    CHECK(has(unit.text, "ExecStart=\"" + (folder.path() / "vllm").string() + "\" \"serve\""));
    CHECK(has(unit.text, "\"it's $$HOME 100%% \\\"of\\\" \\\\ $$(id) `id`\"\n"));
    CHECK(has(unit.text, "Environment=\"ODD=a $b 5%% \\\"c\\\"\"\n"));
    folder.write(unit.name, unit.text);
    const Ran good = ran({verify, "verify", "--man=no", unit.name}, folder.path());
    INFO(unit.text << good.out << good.err);
    CHECK(good.code == 0);
    CHECK_FALSE(has(good.err, unit.name));
    // The reader does read: it does not take everything.
    folder.write("bad.service", unit.text + "[Service]\nExecStart=\"/no/such/program\n");
    const Ran bad = ran({verify, "verify", "--man=no", "bad.service"}, folder.path());
    CHECK((bad.code != 0 || has(bad.err, "bad.service")));
}
