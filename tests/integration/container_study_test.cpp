// SPDX-License-Identifier: Apache-2.0
// Studies whose engines run in podman's containers, for real.
#include "base/files.hpp"
#include "servetune/engine_evaluator.hpp"
#include "support/autotune.hpp"
#include "support/container_world.hpp"
#include "support/http.hpp"
#include "support/real_engines.hpp"
#include "support/test.hpp"
#include "support/tiny_model.hpp"

#include <csignal>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::string study_in_containers(const PodmanWorld& world, const std::string& images,
                                const std::string& more) {
    return "study: contained\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nstrategy: "
           "exhaustive\nmin_gain: 5%\nnoise_cv: 2%\n"
           "workloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: "
           "96}, requests: 32, "
           "arrival: {rate: inf}, ignore_eos: true}]\n"
           "objective: {maximize: total_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}\n"
           "stress: off\nevaluator: {deploy: {" +
           world.container_key(images) +
           ", environment: {SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", HF_TOKEN: "
           "\"${SERVETUNE_TEST_TOKEN}\"}, "
           "ready_within: 20s, stop_within: 2s, warm_up: 1, watch: off}}\n" +
           more;
}

}  // namespace

TEST_CASE(
    "launcher: autotune tunes over two images by podman, shows the command, and writes no secret") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    const std::string token = "hf_Planted5ecretOfTheTest";
    setenv("SERVETUNE_TEST_TOKEN", token.c_str(), 1);
    const std::string images =
        std::string("[\"") + PodmanWorld::image + "\", \"" + PodmanWorld::other_image + "\"]";
    folder.write("study.yaml", study_in_containers(
                                   world, images,
                                   "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: "
                                   "{trials: 10}\n"));  // four, then three rounds of two
    const Ran validated = autotune({"validate", "study.yaml"}, folder.path());
    INFO(validated.out << validated.err);
    CHECK(validated.code == 0);
    CHECK(has(validated.out, "container.image"));
    const Ran tuned = autotune({"run", "study.yaml", "--directory", "out"}, folder.path());
    INFO(tuned.out << tuned.err);
    REQUIRE(tuned.code == 0);
    CHECK(has(tuned.out, "--entrypoint=vllm localhost/servetune-test:"));
    CHECK(has(tuned.out, "--max-num-seqs=32"));
    CHECK(world.containers().empty());
    std::string all = tuned.out + tuned.err;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "out"))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(has(all, token));
    CHECK(has(read_file(folder.path() / "out/report.md"), "localhost/servetune-test:1 = sha256:"));
    // An image of the same name that is another one is another study.
    (void)world.podman({"tag", PodmanWorld::other_image, "localhost/servetune-test:3"});
    folder.write(
        "one.yaml",
        study_in_containers(
            world, "localhost/servetune-test:3",
            "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: {trials: 1}\n"));
    CHECK(autotune({"run", "one.yaml", "--directory", "one"}, folder.path()).code <= 1);
    (void)world.podman({"tag", PodmanWorld::image, "localhost/servetune-test:3"});
    const Ran changed = autotune({"run", "one.yaml", "--directory", "one"}, folder.path());
    INFO(changed.out << changed.err);
    CHECK(changed.code == 2);
    CHECK(has(changed.err, "container.image localhost/servetune-test:3"));
    (void)world.podman({"untag", PodmanWorld::image, "localhost/servetune-test:3"});
    folder.write("none.yaml",
                 study_in_containers(world, "localhost/servetune-none:1", "budget: {trials: 1}\n"));
    const Ran missing = autotune({"validate", "none.yaml"}, folder.path());
    CHECK(missing.code == 1);
    CHECK(has(missing.err, "there is no image 'localhost/servetune-none:1' here"));
}

TEST_CASE("launcher: a real llama-server in an image of podman is tuned", "[long]") {
    if (!podman_world().works()) return;
    const std::string server = llama_server();
    if (server.empty()) {
        WARN("skipped: podman does not run here: with llama-server");
        return;
    }
    PodmanWorld& world = podman_world();
    const Ran made = world.make_llama_image(fs::path(server).parent_path());
    INFO(made.out << made.err);
    REQUIRE(made.code == 0);
    const TemporaryFolder folder;
    folder.write("tiny.gguf", TinyModel{.context_tokens = 32768}.gguf());
    folder.write(
        "study.yaml",
        "study: llama-in-an-image\nmodel: " + (folder.path() / "tiny.gguf").string() +
            "\nengine: llama.cpp\nworkloads: [{workload: small, dataset: {kind: random, "
            "input_tokens: 64, output_tokens: 16}, "
            "requests: 12, arrival: {concurrency: 4}, ignore_eos: true}]\n"
            "objective: {maximize: output_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}\n"
            "space: {threads: 1, ctx_size: 32768, parallel: {choice: [engine, 8], ordered: "
            "true}}\nothers: default\n"
            "strategy: exhaustive\nbudget: {trials: 3}\nstress: off\nevaluator: {deploy: {" +
            world.container_key(PodmanWorld::llama_image) +
            ", ready_within: 60s, stop_within: 20s, warm_up: 2, watch: off}}\n");
    const Ran tuned = autotune({"run", "study.yaml", "--directory", "out"}, folder.path());
    INFO(tuned.out << tuned.err);
    CHECK((tuned.code == 0 || tuned.code == 1));
    CHECK(has(read_file(folder.path() / "out/report.md"), "localhost/servetune-llama:1 = sha256:"));
    CHECK(has(tuned.err, "serves after"));
    CHECK_FALSE(has(tuned.err, "failed"));
    CHECK(world.containers().empty());
}

TEST_CASE("launcher: kill -9 of autotune at any moment leaves no container after the next start") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_TOKEN", "hf_Planted5ecretOfTheTest", 1);
    folder.write(
        "study.yaml",
        study_in_containers(
            world, PodmanWorld::image,
            "space: {max_num_seqs: {choice: [4, 3, 32], default: 4}}\nbudget: {trials: 3}\n"));
    const std::vector<std::string> words{SERVETUNE_PROGRAM, "run", "study.yaml", "--directory",
                                         "out"};
    std::string last;
    const char* wanted = std::getenv("SERVETUNE_CONTAINER_KILLS");  // NOLINT(concurrency-mt-unsafe)
    const int kills = wanted != nullptr ? std::atoi(wanted) : 6;
    int found = 0;
    for (int i = 0; i < kills; ++i) {
        ChildProcess tuner(words, folder.path());
        // From before the first container to well into its load.
        std::this_thread::sleep_for(std::chrono::milliseconds(150 + 2400 * i / kills));
        tuner.signal(SIGKILL);
        (void)tuner.wait();
        found += world.containers().empty() ? 0 : 1;
        if (i % 2 == 1)
            fs::remove_all(folder.path() / "out");  // from the beginning, or where it was
    }
    const Ran next = autotune({"run", "study.yaml", "--directory", "out"}, folder.path());
    INFO(next.out << next.err);
    CHECK(next.code == 0);
    CHECK(world.containers().empty());
    CHECK(found > 0);  // else nothing was shown
}

TEST_CASE(
    "launcher: autotune serves what it recommends in a container, again after a kill, and removes "
    "it",
    "[long]") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_TOKEN", "hf_Planted5ecretOfTheTest", 1);
    folder.write(
        "study.yaml",
        study_in_containers(
            world, PodmanWorld::image,
            "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: {trials: 8}\n"));
    const Ran tuned =
        autotune({"run", "study.yaml", "--directory", "out", "--quiet"}, folder.path());
    INFO(tuned.out << tuned.err);
    REQUIRE(tuned.code == 0);
    const std::uint16_t port = free_port();
    ChildProcess server({SERVETUNE_PROGRAM, "serve", "out", "--port", std::to_string(port)},
                        folder.path());
    const auto comes_to_say = [&](const std::string& text, std::size_t times) {
        return comes_true([&] {
            const std::string said = server.err();
            std::size_t count = 0;
            for (auto at = said.find(text); at != std::string::npos; at = said.find(text, at + 1))
                ++count;
            return count == times;
        });
    };
    REQUIRE(comes_to_say("serves at", 1));
    CHECK(http(port, "/health").status == 200);
    const std::string running = world.containers();  // NAME STATUS, of one
    REQUIRE(std::count(running.begin(), running.end(), '\n') == 1);
    REQUIRE(world.podman({"kill", running.substr(0, running.find(' '))}).code == 0);
    REQUIRE(comes_to_say("serves at", 2));
    CHECK(http(port, "/health").status == 200);
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
    CHECK(world.containers().empty());
    CHECK_FALSE(has(server.err(), "Planted5ecret"));
}

TEST_CASE("launcher: podman starts the Kubernetes manifest that autotune recommends", "[long]") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_TOKEN", "hf_Planted5ecretOfTheTest", 1);
    const ReservedPort port;
    // No variable of the environment is a secret here: a Secret would have to be made first.
    std::string study =
        study_in_containers(world, PodmanWorld::image,
                            "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: "
                            "{trials: 8}\n");  // two, then three rounds
    const std::string secret = ", HF_TOKEN: \"${SERVETUNE_TEST_TOKEN}\"";
    study.erase(study.find(secret), secret.size());
    folder.write("study.yaml", study);
    const Ran tuned =
        autotune({"run", "study.yaml", "--directory", "out", "--quiet"}, folder.path());
    INFO(tuned.out << tuned.err);
    REQUIRE(tuned.code == 0);
    const Ran written =
        autotune({"recommend", "study.yaml", "--directory", "out", "--as", "kubernetes", "--port",
                  std::to_string(port.number()), "--output", "files"},
                 folder.path());
    INFO(written.out << written.err);
    REQUIRE(written.code == 0);
    const std::string file = (folder.path() / "files/contained.yaml").string();
    const Ran played = world.podman({"kube", "play", "--network=host", file});
    INFO(read_file(file) << played.out << played.err);
    if (played.code != 0 && has(played.err, "catatonit")) {
        WARN("skipped: podman does not run here: pods need catatonit");
        return;
    }
    REQUIRE(played.code == 0);
    const Ran made = world.podman(
        {"ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.Image}} {{.Command}}"});
    CHECK(has(made.out, "--max-num-seqs=32"));
    const bool serves = comes_true(
        [&] { return http(static_cast<std::uint16_t>(port.number()), "/health").status == 200; });
    const Ran logs = world.podman({"logs", "contained-pod-engine"});
    INFO(made.out << logs.out << logs.err);
    CHECK(serves);
    CHECK(world.podman({"kube", "down", file}).code == 0);
    CHECK(world.containers().empty());
}
