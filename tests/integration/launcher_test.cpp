// SPDX-License-Identifier: Apache-2.0
// How engines are started: as processes, in podman's containers for real, in docker's with podman
// behind its words.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "servetune/engine_evaluator.hpp"
#include "servetune/study_file.hpp"
#include "support/autotune.hpp"
#include "support/container_world.hpp"
#include "support/http.hpp"
#include "support/real_engines.hpp"
#include "support/test.hpp"
#include "support/tiny_model.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

using WordList = std::vector<std::string>;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
bool holds(const WordList& words, const std::string& word) { return std::find(words.begin(), words.end(), word) != words.end(); }

/// A script in the place of the docker client: it answers `image inspect` and records all words.
/// `behind`: what it hands over to, without what only docker knows; empty: nothing.
std::string docker_script(const TemporaryFolder& folder, const WordList& behind = {}) {
    std::string script = "#!/bin/bash\nprintf '%q ' \"$@\" >> '" + (folder.path() / "calls").string() + "'; echo >> '" +
                         (folder.path() / "calls").string() + "'\n";
    if (behind.empty()) {
        script += "case \"$1 $2\" in 'image inspect') echo 'servetune: sha256:abc [\"docker.io/org/engine@sha256:def\"] \"\"';; esac\n";
    } else {
        script += "words=(); for word in \"$@\"; do case \"$word\" in --gpus=*) ;; *) words+=(\"$word\");; esac; done\nexec";
        for (const std::string& word : behind) script += " '" + word + "'";
        script += " \"${words[@]}\"\n";
    }
    const fs::path file = folder.write("docker", script);
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
}

LaunchRequest simple_request() {
    LaunchRequest request;
    request.command.argv = {"vllm", "serve", "/models/m", "--config=options.yaml", "--port", "8125"};
    request.command.files = {{"options.yaml", "{}"}};
    request.environment = {{"HF_TOKEN", "hf_123456"}, {"CUDA_VISIBLE_DEVICES", "7"}};
    request.image = "org/engine:1";
    request.folder = "/studies/s/trials/3";
    request.mark = "/studies/s";
    request.gpus = "2,5";
    request.cores = {0, 1};
    return request;
}

struct DeployedIn {
    explicit DeployedIn(const PodmanWorld& world, ContainerOptions launching, const std::string& simengine = "")
        : evaluator_options(options_of(folder, std::move(launching), simengine)) {
        (void)world;
        Engine engine = Catalogue(fs::path(SERVETUNE_SOURCE) / "search_spaces").engine(std::string("vllm"));
        SpaceDescription description{{engine}};
        description.others_searched = false;
        composition = std::make_unique<Composition>(std::move(description));
    }
    static EngineEvaluator::Options options_of(const TemporaryFolder& folder, ContainerOptions launching, const std::string& simengine) {
        EngineEvaluator::Options options;
        options.folder = folder.path() / "study";
        options.deploy.launcher = container_launcher(std::move(launching));
        options.deploy.environment = {{"SIMENGINE_OPTIONS", "--start-scale 1000 --time-scale 50 " + simengine}};
        options.deploy.mark = options.folder.string();
        options.deploy.stop_within_seconds = 3;
        options.deploy.ready_within_seconds = 20;
        options.measure.warm_up_requests = 2;
        options.measure.infrastructure_retries = 0;
        return options;
    }
    Outcome measure() const {
        Workload workload;
        workload.name = "small";
        workload.dataset.input_tokens = 64;
        workload.dataset.output_tokens = 32;
        workload.requests = 40;
        workload.arrival.kind = Arrival::Kind::concurrency;
        workload.arrival.in_flight = 8;
        workload.ignore_eos = true;
        EngineEvaluator evaluator(*composition, "Qwen/Qwen3-8B", StudyWorkloads{{workload}}, evaluator_options);
        return evaluator.evaluate({}, {});
    }
    TemporaryFolder folder;
    EngineEvaluator::Options evaluator_options;
    std::unique_ptr<Composition> composition;
};

/// Why a deployment of `words`, called vLLM, does not start.
Failure start_failure_of(const LauncherWorld& world, const WordList& words, const ReservedPort& port, const std::string& gpus = "") {
    const TemporaryFolder folder;
    DeployOptions options;
    options.folder = folder.path();
    options.mark = folder.path().string();
    options.launcher = world.launcher;
    options.image = world.image;
    options.gpus = gpus;
    options.environment = {{"SIMENGINE_OPTIONS", "--start-scale 1000"}};
    options.stop_within_seconds = 2;
    Command command;
    command.argv = words;
    Deployment deployment(Catalogue(fs::path(SERVETUNE_SOURCE) / "search_spaces").engine(std::string("vllm")), command, "Qwen/Qwen3-8B",
                          port, options);
    REQUIRE(deployment.started().failure);
    return *deployment.started().failure;
}

std::string study_in_containers(const PodmanWorld& world, const std::string& images, const std::string& more) {
    return "study: contained\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nstrategy: exhaustive\nmin_gain: 5%\nnoise_cv: 2%\n"
           "workloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: 96}, requests: 32, "
           "arrival: {rate: inf}, ignore_eos: true}]\n"
           "objective: {maximize: total_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}\n"
           "evaluator: {deploy: {" +
           world.container_key(images) +
           ", environment: {SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", HF_TOKEN: \"${SERVETUNE_TEST_TOKEN}\"}, "
           "ready_within: 20s, stop_within: 2s, warm_up: 1, watch: off}}\n" +
           more;
}

}  // namespace

TEST_CASE("launcher: processes of this machine keep the contract") {
    check_launcher({local_launcher()});
    const Launch launch = local_launcher()->launch(simple_request());
    CHECK(launch.argv == simple_request().command.argv);
    CHECK(launch.environment.at("CUDA_VISIBLE_DEVICES") == "2,5");
    CHECK(launch.environment.at("CUDA_DEVICE_ORDER") == "PCI_BUS_ID");
    CHECK(launch.name.empty());
}

TEST_CASE("launcher: containers of podman keep the contract") {
    if (!podman_world().works()) return;
    check_launcher({container_launcher(podman_world().launching()), PodmanWorld::image});
    CHECK(podman_world().containers().empty());
}

TEST_CASE("launcher: docker's words keep the contract, with podman behind them") {
    if (!podman_world().works()) return;
    const TemporaryFolder folder;
    ContainerOptions options = podman_world().launching();
    options.kind = ContainerKind::docker;
    options.program = {docker_script(folder, podman_world().program)};
    check_launcher({container_launcher(options), PodmanWorld::image});
    CHECK(podman_world().containers().empty());
}

TEST_CASE("launcher: what podman and docker are asked for, word by word") {
    const TemporaryFolder folder;
    ContainerOptions options;
    options.images = {"org/engine:1"};
    options.program = {docker_script(folder), "--context", "x"};
    // The client's own options come first, so that this script does not see what it is asked.
    CHECK(holds(container_launcher(options)->trouble("org/engine:1"), "there is no image 'org/engine:1' here"));
    CHECK(holds(read_file(folder.path() / "calls"), "--context x image inspect --format"));
    options.program = {options.program.front()};
    options.volumes = {"/cache:/root/.cache:ro", "/data:/data"};
    options.models = {"/models/m", "/models/not-served"};
    options.options = {"--cap-add=SYS_NICE"};
    options.shm_bytes = 1000;
    options.memory_bytes = 2000;
    for (const ContainerKind kind : {ContainerKind::podman, ContainerKind::docker}) {
        options.kind = kind;
        const auto plain = container_launcher(options);
        const Launch launch = plain->launch(simple_request());
        WordList words(launch.argv.begin() + 1, launch.argv.end());
        const std::string label = words.at(4);
        CHECK(label.starts_with("--label=servetune.study="));
        CHECK(words.at(1) == "--name=" + launch.name);
        WordList expected{"run",
                          words[1],
                          "--pull=never",
                          "--log-driver=none",
                          label,
                          "--network=host",
                          "--shm-size=1000",
                          "--memory=2000",
                          "--mount=type=bind,source=/cache,target=/root/.cache,readonly",
                          "--mount=type=bind,source=/data,target=/data",
                          "--mount=type=bind,source=/models/m,target=/models/m,readonly",
                          "--cap-add=SYS_NICE"};
        if (kind == ContainerKind::podman) expected.insert(expected.end(), {"--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=5"});
        else expected.push_back("--gpus=\"device=2,5\"");
        expected.insert(expected.end(),
                        {"--cpuset-cpus=0,1", "--env=HF_TOKEN", "--env=SERVETUNE_STUDY", "--env=SERVETUNE_GROUP", "--env=SPT_NOENV",
                         "--mount=type=bind,source=/studies/s/trials/3,target=/run/servetune,readonly", "--entrypoint=vllm", "sha256:abc",
                         "serve", "/models/m", "--config=/run/servetune/options.yaml", "--port", "8125"});
        CHECK(words == expected);
        CHECK(launch.environment == std::map<std::string, std::string>{{"HF_TOKEN", "hf_123456"}});
        CHECK(plain->launch(simple_request()).name != launch.name);
        CHECK(plain->pinned("org/engine:1") == "sha256:abc [\"docker.io/org/engine@sha256:def\"]");
        CHECK(plain->remove(launch) == "");
        const std::string calls = read_file(folder.path() / "calls");
        CHECK(holds(calls, (kind == ContainerKind::podman ? "rm --force --time=0 --volumes " : "rm --force --volumes ") + launch.name));
        CHECK(plain->leftovers("/studies/s").empty());
        CHECK(holds(read_file(folder.path() / "calls"), "ps --all --filter " + label.substr(2, 5) + "=servetune.study="));
        LaunchRequest compiling = simple_request();
        compiling.caches = {"TRITON_CACHE_DIR", "VLLM_CACHE_ROOT"};
        compiling.environment["VLLM_CACHE_ROOT"] = "/own";  // the study's own
        const Launch kept = plain->launch(compiling);
        CHECK(holds(kept.argv, "--mount=type=volume,source=servetune-caches-abc,target=/var/cache/servetune"));
        CHECK(kept.environment.at("TRITON_CACHE_DIR") == "/var/cache/servetune/TRITON_CACHE_DIR");
        CHECK(kept.environment.at("VLLM_CACHE_ROOT") == "/own");
        CHECK(holds(kept.argv, "--env=TRITON_CACHE_DIR"));
        ContainerOptions as_user = options;
        as_user.options = {"--user=1000"};
        CHECK_FALSE(container_launcher(as_user)->launch(compiling).environment.contains("TRITON_CACHE_DIR"));
        LaunchRequest shown = simple_request();
        CHECK(plain->shown(shown).text().find("hf_123456") == std::string::npos);
        CHECK(holds(plain->shown(shown).argv, "--env=HF_TOKEN"));
        LaunchRequest changed = simple_request();
        changed.environment = {{"LD_PRELOAD", "/x.so"}};
        CHECK(holds(message_of<IoError>([&] { (void)plain->launch(changed); }), "the engine's environment has 'LD_PRELOAD'"));
    }
}

TEST_CASE("launcher: names that would be read as options, and volumes that are none, are refused") {
    const auto why = [](const auto& change) {
        ContainerOptions options;
        options.images = {"org/engine:1"};
        change(options);
        return options.why_invalid();
    };
    CHECK(why([](ContainerOptions&) {}).empty());
    for (const char* image : {"", "--privileged", "org/engine:1 --privileged", "$(id)", "org/engine;id", "org\nengine"})
        CHECK(holds(why([&](ContainerOptions& options) { options.images = {image}; }), "image: a name such as"));
    for (const char* volume : {"/a", "a:/b", "/a:b", "/a:/b:rx", "/a,readonly:/b", "/a:/b\"", "/a:/b:ro:z", ""})
        CHECK(holds(why([&](ContainerOptions& options) { options.volumes = {volume}; }), "volumes: SOURCE:TARGET"));
    CHECK(holds(why([](ContainerOptions& options) { options.models = {"/a,b"}; }), "model: an absolute path"));
    CHECK(holds(why([](ContainerOptions& options) { options.images.clear(); }), "image: the name of an image wanted, got none"));
    CHECK(holds(why([](ContainerOptions& options) { options.shm_bytes = 0; }), "shm_bytes"));

    const TemporaryFolder folder;
    const auto refusal = [&](const std::string& deploy) {
        const auto file = folder.write("s.yaml",
                                       "study: s\nmodel: org/m\nengine: vllm\nothers: default\nworkloads: [{use: random}]\n"
                                       "objective: {maximize: total_tokens_per_second}\nevaluator: {deploy: {" +
                                           deploy + "}}\n");
        return message_of<Error>([&] { (void)load_study(file, Catalogue(fs::path(SERVETUNE_SOURCE) / "search_spaces")); });
    };
    CHECK(holds(refusal("launcher: podman"),
                "an old key: leave it out, `container`, `ssh`, `slurm`, `kubernetes` or `ray` says it (docker: `container: {program: "
                "[docker], ...}`)"));
    CHECK(holds(refusal("container: {image: a}, ssh: {host: b}"), "one of them"));
    CHECK(holds(refusal("container: {program: [docker], image: \"--privileged\"}"), "image: a name such as"));
    CHECK(holds(refusal("container: {program: [docker]}"), "image"));
    CHECK(refusal("container: {program: [docker], image: [a:1, b:2]}").empty());
}

TEST_CASE("launcher: a client that is missing, a daemon that is gone and an image that is not there are told apart") {
    const TemporaryFolder folder;
    ContainerOptions options;
    options.images = {"org/engine:1"};
    options.program = {"/no/such/podman"};
    CHECK(container_launcher(options)->trouble("org/engine:1") == "there is no program '/no/such/podman' in $PATH to run containers with");
    CHECK(container_launcher(options)->leftovers("/s").empty());

    const auto client = [&](const std::string& says, int code) {
        const auto file = folder.write("client", "#!/bin/sh\necho '" + says + "' >&2\nexit " + std::to_string(code) + "\n");
        fs::permissions(file, fs::perms::owner_all);
        options.program = {file.string()};
        options.kind = ContainerKind::docker;
        return container_launcher(options);
    };
    const std::string gone = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    CHECK(client(gone, 1)->trouble("org/engine:1") == "docker cannot run containers here: " + gone);
    CHECK(holds(message_of<IoError>([&] { (void)client(gone, 1)->leftovers("/s"); }),
                "does not say which containers an earlier run has left"));
    const auto failure = client(gone, 1)->ended({{}, {}, "servetune-x", "org/engine:1", "vllm"}, 125, {gone});
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    const std::string none = client("Error: No such image: org/engine:1", 1)->trouble("org/engine:1");
    CHECK(holds(none, "there is no image 'org/engine:1' here"));
    CHECK(holds(none, "docker pull org/engine:1"));
    CHECK(holds(client("permission denied", 1)->remove({{}, {}, "servetune-x"}), "would not go: permission denied"));

    // The real client, where there is one and no daemon behind it.
    if (const std::string docker = program_in_path("docker"); !docker.empty() && ran({docker, "version"}, folder.path()).code != 0) {
        options.program = {docker};
        CHECK(holds(container_launcher(options)->trouble("org/engine:1"), "docker cannot run containers here: "));
    }
}

TEST_CASE("launcher: engines in containers of podman are measured, and what goes wrong is told as what it is") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const DeployedIn good(world, world.launching());
    const Outcome outcome = good.measure();
    INFO((std::holds_alternative<Failure>(outcome) ? std::get<Failure>(outcome).message : ""));
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    CHECK(std::get<Measurement>(outcome).metrics.at("success_ratio").value == 1);
    CHECK(holds(read_file(good.evaluator_options.folder / "trials/0/engine.log"), "Application startup complete"));
    CHECK(world.containers().empty());

    const auto failure_of = [&](ContainerOptions options, const std::string& simengine) {
        const DeployedIn bad(world, std::move(options), simengine);
        const Outcome told = bad.measure();
        REQUIRE(std::holds_alternative<Failure>(told));
        CHECK(world.containers().empty());
        return std::get<Failure>(told);
    };
    const Failure died = failure_of(world.launching(), "--misbehave die_at_tokens=500");
    CHECK(died.kind == FailureKind::crashed_under_load);
    CHECK(failure_of(world.launching(), "--hardware l4 --model Qwen/Qwen3-32B").kind == FailureKind::out_of_memory);
    CHECK(failure_of(world.launching(), "--misbehave exit_at_load=3").kind == FailureKind::other);

    ContainerOptions missing = world.launching();
    missing.images = {"localhost/servetune-none:1"};
    const DeployedIn without(world, missing);
    CHECK(holds(message_of<IoError>([&] { (void)without.measure(); }), "there is no image 'localhost/servetune-none:1' here"));
}

TEST_CASE("launcher: a container that is killed for want of memory has run out of it, a port that is taken is the machine's fault") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    ContainerOptions tight = world.launching();
    tight.memory_bytes = 32L << 20L;
    tight.options.push_back("--memory-swap=33554432");
    const LauncherWorld bounded{container_launcher(tight), PodmanWorld::image};
    // With control groups of version 1 podman does not say that it was this; the kernel's count
    // does.
    const Failure eaten = start_failure_of(bounded, {"/bin/sh", "-c", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"}, ReservedPort());
    INFO(eaten.message);
    CHECK(eaten.kind == FailureKind::out_of_memory);
    CHECK(holds(eaten.message, "want of memory"));

    // No such GPU on this machine.
    const LauncherWorld plain{container_launcher(world.launching()), PodmanWorld::image};
    const Failure without = start_failure_of(plain, {"/bin/sh", "-c", "exit 0"}, ReservedPort(), "0,1");
    INFO(without.message);
    CHECK(without.kind == FailureKind::infrastructure);
    CHECK(holds(without.message, "podman cannot give the container its GPUs"));

    const ReservedPort port;
    const Socket holder;  // somebody listens there, and answers nothing
    const sockaddr_in address = loopback(static_cast<std::uint16_t>(port.number()));
    REQUIRE(bind(holder.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(holder.id(), 1) == 0);
    const WordList serve{"vllm", "serve", "Qwen/Qwen3-8B", "--host", "127.0.0.1", "--port", std::to_string(port.number())};
    const Failure taken = start_failure_of(plain, serve, port);
    INFO(taken.message);
    CHECK(taken.kind == FailureKind::infrastructure);
    CHECK(holds(taken.message, "Address already in use"));
}

TEST_CASE("launcher: autotune tunes over two images by podman, shows the command, and writes no secret") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    const std::string token = "hf_Planted5ecretOfTheTest";
    setenv("SERVETUNE_TEST_TOKEN", token.c_str(), 1);
    const std::string images = std::string("[\"") + PodmanWorld::image + "\", \"" + PodmanWorld::other_image + "\"]";
    folder.write("study.yaml",
                 study_in_containers(
                     world, images,
                     "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: {trials: 10}\n"));  // four, then three rounds of two
    const Ran validated = autotune({"validate", "study.yaml"}, folder.path());
    INFO(validated.out << validated.err);
    CHECK(validated.code == 0);
    CHECK(holds(validated.out, "container.image"));
    const Ran tuned = autotune({"run", "study.yaml", "--directory", "out"}, folder.path());
    INFO(tuned.out << tuned.err);
    REQUIRE(tuned.code == 0);
    CHECK(holds(tuned.out, "--entrypoint=vllm localhost/servetune-test:"));
    CHECK(holds(tuned.out, "--max-num-seqs=32"));
    CHECK(world.containers().empty());
    std::string all = tuned.out + tuned.err;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "out"))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(holds(all, token));
    CHECK(holds(read_file(folder.path() / "out/report.md"), "localhost/servetune-test:1 = sha256:"));
    // An image of the same name that is another one is another study.
    (void)world.podman({"tag", PodmanWorld::other_image, "localhost/servetune-test:3"});
    folder.write("one.yaml", study_in_containers(world, "localhost/servetune-test:3",
                                                 "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: {trials: 1}\n"));
    CHECK(autotune({"run", "one.yaml", "--directory", "one"}, folder.path()).code <= 1);
    (void)world.podman({"tag", PodmanWorld::image, "localhost/servetune-test:3"});
    const Ran changed = autotune({"run", "one.yaml", "--directory", "one"}, folder.path());
    INFO(changed.out << changed.err);
    CHECK(changed.code == 2);
    CHECK(holds(changed.err, "container.image localhost/servetune-test:3"));
    (void)world.podman({"untag", PodmanWorld::image, "localhost/servetune-test:3"});
    folder.write("none.yaml", study_in_containers(world, "localhost/servetune-none:1", "budget: {trials: 1}\n"));
    const Ran missing = autotune({"validate", "none.yaml"}, folder.path());
    CHECK(missing.code == 1);
    CHECK(holds(missing.err, "there is no image 'localhost/servetune-none:1' here"));
}

TEST_CASE("launcher: a real llama-server in an image of podman is tuned") {
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
    folder.write("study.yaml",
                 "study: llama-in-an-image\nmodel: " + (folder.path() / "tiny.gguf").string() +
                     "\nengine: llama.cpp\nworkloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: 16}, "
                     "requests: 12, arrival: {concurrency: 4}, ignore_eos: true}]\n"
                     "objective: {maximize: output_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}\n"
                     "space: {threads: 1, ctx_size: 32768, parallel: {choice: [engine, 8], ordered: true}}\nothers: default\n"
                     "strategy: exhaustive\nbudget: {trials: 3}\nevaluator: {deploy: {" +
                     world.container_key(PodmanWorld::llama_image) + ", ready_within: 60s, stop_within: 20s, warm_up: 2, watch: off}}\n");
    const Ran tuned = autotune({"run", "study.yaml", "--directory", "out"}, folder.path());
    INFO(tuned.out << tuned.err);
    CHECK((tuned.code == 0 || tuned.code == 1));
    CHECK(holds(read_file(folder.path() / "out/report.md"), "localhost/servetune-llama:1 = sha256:"));
    CHECK(holds(tuned.err, "serves after"));
    CHECK_FALSE(holds(tuned.err, "failed"));
    CHECK(world.containers().empty());
}

TEST_CASE("launcher: kill -9 of autotune at any moment leaves no container after the next start") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_TOKEN", "hf_Planted5ecretOfTheTest", 1);
    folder.write("study.yaml", study_in_containers(world, PodmanWorld::image,
                                                   "space: {max_num_seqs: {choice: [4, 3, 32], default: 4}}\nbudget: {trials: 3}\n"));
    const std::vector<std::string> words{SERVETUNE_PROGRAM, "run", "study.yaml", "--directory", "out"};
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
        if (i % 2 == 1) fs::remove_all(folder.path() / "out");  // from the beginning, or where it was
    }
    const Ran next = autotune({"run", "study.yaml", "--directory", "out"}, folder.path());
    INFO(next.out << next.err);
    CHECK(next.code == 0);
    CHECK(world.containers().empty());
    CHECK(found > 0);  // else nothing was shown
}

TEST_CASE("launcher: autotune serves what it recommends in a container, again after a kill, and removes it") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_TOKEN", "hf_Planted5ecretOfTheTest", 1);
    folder.write("study.yaml", study_in_containers(world, PodmanWorld::image,
                                                   "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: {trials: 8}\n"));
    const Ran tuned = autotune({"run", "study.yaml", "--directory", "out", "--quiet"}, folder.path());
    INFO(tuned.out << tuned.err);
    REQUIRE(tuned.code == 0);
    const std::uint16_t port = free_port();
    ChildProcess server({SERVETUNE_PROGRAM, "serve", "out", "--port", std::to_string(port)}, folder.path());
    const auto comes_to_say = [&](const std::string& text, std::size_t times) {
        return comes_true([&] {
            const std::string said = server.err();
            std::size_t count = 0;
            for (auto at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) ++count;
            return count == times;
        });
    };
    REQUIRE(comes_to_say("the recommended configuration serves at", 1));
    CHECK(http(port, "/health").status == 200);
    const std::string running = world.containers();  // NAME STATUS, of one
    REQUIRE(std::count(running.begin(), running.end(), '\n') == 1);
    REQUIRE(world.podman({"kill", running.substr(0, running.find(' '))}).code == 0);
    REQUIRE(comes_to_say("the recommended configuration serves at", 2));
    CHECK(http(port, "/health").status == 200);
    server.signal(SIGTERM);
    CHECK(server.wait() == 0);
    CHECK(world.containers().empty());
    CHECK_FALSE(holds(server.err() + read_file(folder.path() / "out" / ("serve-" + std::to_string(port)) / "run.log"), "Planted5ecret"));
}

TEST_CASE("launcher: podman starts the Kubernetes manifest that autotune recommends") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_TOKEN", "hf_Planted5ecretOfTheTest", 1);
    const ReservedPort port;
    // No variable of the environment is a secret here: a Secret would have to be made first.
    std::string study =
        study_in_containers(world, PodmanWorld::image,
                            "space: {max_num_seqs: {choice: [4, 32], default: 4}}\nbudget: {trials: 8}\n");  // two, then three rounds
    const std::string secret = ", HF_TOKEN: \"${SERVETUNE_TEST_TOKEN}\"";
    study.erase(study.find(secret), secret.size());
    folder.write("study.yaml", study);
    const Ran tuned = autotune({"run", "study.yaml", "--directory", "out", "--quiet"}, folder.path());
    INFO(tuned.out << tuned.err);
    REQUIRE(tuned.code == 0);
    const Ran written = autotune({"recommend", "study.yaml", "--directory", "out", "--as", "kubernetes", "--port",
                                  std::to_string(port.number()), "--output", "files"},
                                 folder.path());
    INFO(written.out << written.err);
    REQUIRE(written.code == 0);
    const std::string file = (folder.path() / "files/contained.yaml").string();
    const Ran played = world.podman({"kube", "play", "--network=host", file});
    INFO(read_file(file) << played.out << played.err);
    if (played.code != 0 && holds(played.err, "catatonit")) {
        WARN("skipped: podman does not run here: pods need catatonit");
        return;
    }
    REQUIRE(played.code == 0);
    const Ran made = world.podman({"ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.Image}} {{.Command}}"});
    CHECK(holds(made.out, "--max-num-seqs=32"));
    const bool serves = comes_true([&] { return http(static_cast<std::uint16_t>(port.number()), "/health").status == 200; });
    const Ran logs = world.podman({"logs", "contained-pod-engine"});
    INFO(made.out << logs.out << logs.err);
    CHECK(serves);
    CHECK(world.podman({"kube", "down", file}).code == 0);
    CHECK(world.containers().empty());
}
