// SPDX-License-Identifier: Apache-2.0
// How engines are started: as processes, in podman's containers for real, in docker's with podman
// behind its words.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "servetune/engine_evaluator.hpp"
#include "servetune/study_file.hpp"
#include "support/container_world.hpp"
#include "support/http.hpp"
#include "support/script.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using WordList = std::vector<std::string>;

/// A script in the place of the docker client: it answers `image inspect` and records all words.
/// `behind`: what it hands over to, without what only docker knows; empty: nothing.
std::string docker_script(const TemporaryFolder& folder, const WordList& behind = {}) {
    std::string script = "#!/bin/bash\nprintf '%q ' \"$@\" >> '" +
                         (folder.path() / "calls").string() + "'; echo >> '" +
                         (folder.path() / "calls").string() + "'\n";
    if (behind.empty()) {
        script +=
            "case \"$1 $2\" in 'image inspect') echo 'servetune: sha256:abc "
            "[\"docker.io/org/engine@sha256:def\"] \"\"';; esac\n";
    } else {
        script +=
            "words=(); for word in \"$@\"; do case \"$word\" in --gpus=*) ;; *) "
            "words+=(\"$word\");; esac; done\nexec";
        for (const std::string& word : behind) script += " '" + word + "'";
        script += " \"${words[@]}\"\n";
    }
    const fs::path file = folder.write("docker", script);
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
}

LaunchRequest simple_request() {
    LaunchRequest request;
    request.command.argv = {"vllm",   "serve", "/models/m", "--config=options.yaml",
                            "--port", "8125"};
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
    explicit DeployedIn(const PodmanWorld& world, ContainerOptions launching,
                        const std::string& simengine = "")
        : evaluator_options(options_of(folder, std::move(launching), simengine)) {
        (void)world;
        Engine engine = shipped_catalogue.engine(std::string("vllm"));
        SpaceDescription description{{engine}};
        description.others_searched = false;
        composition = std::make_unique<Composition>(std::move(description));
    }
    static EngineEvaluator::Options options_of(const TemporaryFolder& folder,
                                               ContainerOptions launching,
                                               const std::string& simengine) {
        EngineEvaluator::Options options;
        options.folder = folder.path() / "study";
        options.deploy.launcher = container_launcher(std::move(launching));
        options.deploy.environment = {
            {"SIMENGINE_OPTIONS", "--start-scale 1000 --time-scale 50 " + simengine}};
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
        EngineEvaluator evaluator(*composition, "Qwen/Qwen3-8B", StudyWorkloads{{workload}},
                                  evaluator_options);
        return evaluator.evaluate({}, {});
    }
    TemporaryFolder folder;
    EngineEvaluator::Options evaluator_options;
    std::unique_ptr<Composition> composition;
};

/// Why a deployment of `words`, called vLLM, does not start.
Failure start_failure_of(const LauncherWorld& world, const WordList& words,
                         const ReservedPort& port, const std::string& gpus = "") {
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
    Deployment deployment(shipped_catalogue.engine(std::string("vllm")), command, "Qwen/Qwen3-8B",
                          port, options);
    REQUIRE(deployment.started().failure);
    return *deployment.started().failure;
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
    CHECK(has(container_launcher(options)->trouble("org/engine:1"),
              "there is no image 'org/engine:1' here"));
    CHECK(has(read_file(folder.path() / "calls"), "--context x image inspect --format"));
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
        if (kind == ContainerKind::podman)
            expected.insert(expected.end(),
                            {"--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=5"});
        else expected.push_back("--gpus=\"device=2,5\"");
        expected.insert(
            expected.end(),
            {"--cpuset-cpus=0,1", "--env=HF_TOKEN", "--env=SERVETUNE_STUDY",
             "--env=SERVETUNE_GROUP", "--env=SPT_NOENV",
             "--mount=type=bind,source=/studies/s/trials/3,target=/run/servetune,readonly",
             "--entrypoint=vllm", "sha256:abc", "serve", "/models/m",
             "--config=/run/servetune/options.yaml", "--port", "8125"});
        CHECK(words == expected);
        CHECK(launch.environment == std::map<std::string, std::string>{{"HF_TOKEN", "hf_123456"}});
        CHECK(plain->launch(simple_request()).name != launch.name);
        CHECK(plain->pinned("org/engine:1") == "sha256:abc [\"docker.io/org/engine@sha256:def\"]");
        CHECK(plain->remove(launch) == "");
        const std::string calls = read_file(folder.path() / "calls");
        CHECK(has(calls, (kind == ContainerKind::podman ? "rm --force --time=0 --volumes "
                                                        : "rm --force --volumes ") +
                             launch.name));
        CHECK(plain->leftovers("/studies/s").empty());
        CHECK(has(read_file(folder.path() / "calls"),
                  "ps --all --filter " + label.substr(2, 5) + "=servetune.study="));
        LaunchRequest compiling = simple_request();
        compiling.caches = {"TRITON_CACHE_DIR", "VLLM_CACHE_ROOT"};
        compiling.environment["VLLM_CACHE_ROOT"] = "/own";  // the study's own
        const Launch kept = plain->launch(compiling);
        CHECK(contains(
            kept.argv,
            "--mount=type=volume,source=servetune-caches-abc,target=/var/cache/servetune"));
        CHECK(kept.environment.at("TRITON_CACHE_DIR") == "/var/cache/servetune/TRITON_CACHE_DIR");
        CHECK(kept.environment.at("VLLM_CACHE_ROOT") == "/own");
        CHECK(contains(kept.argv, "--env=TRITON_CACHE_DIR"));
        ContainerOptions as_user = options;
        as_user.options = {"--user=1000"};
        CHECK_FALSE(container_launcher(as_user)->launch(compiling).environment.contains(
            "TRITON_CACHE_DIR"));
        LaunchRequest shown = simple_request();
        CHECK_FALSE(has(plain->shown(shown).text(), "hf_123456"));
        CHECK(contains(plain->shown(shown).argv, "--env=HF_TOKEN"));
        LaunchRequest changed = simple_request();
        changed.environment = {{"LD_PRELOAD", "/x.so"}};
        CHECK(has(message_of<IoError>([&] { (void)plain->launch(changed); }),
                  "the engine's environment has 'LD_PRELOAD'"));
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
    for (const char* image :
         {"", "--privileged", "org/engine:1 --privileged", "$(id)", "org/engine;id", "org\nengine"})
        CHECK(has(why([&](ContainerOptions& options) { options.images = {image}; }),
                  "image: a name such as"));
    for (const char* volume :
         {"/a", "a:/b", "/a:b", "/a:/b:rx", "/a,readonly:/b", "/a:/b\"", "/a:/b:ro:z", ""})
        CHECK(has(why([&](ContainerOptions& options) { options.volumes = {volume}; }),
                  "volumes: SOURCE:TARGET"));
    CHECK(has(why([](ContainerOptions& options) { options.models = {"/a,b"}; }),
              "model: an absolute path"));
    CHECK(has(why([](ContainerOptions& options) { options.images.clear(); }),
              "image: the name of an image wanted, got none"));
    CHECK(has(why([](ContainerOptions& options) { options.shm_bytes = 0; }), "shm_bytes"));

    const TemporaryFolder folder;
    const auto refusal = [&](const std::string& deploy) {
        const auto file = folder.write(
            "s.yaml",
            "study: s\nmodel: org/m\nengine: vllm\nothers: default\nworkloads: [{use: random}]\n"
            "objective: {maximize: total_tokens_per_second}\nstress: off\nevaluator: {deploy: {" +
                deploy + "}}\n");
        return message_of<Error>([&] { (void)load_study(file, shipped_catalogue); });
    };
    CHECK(has(refusal("launcher: podman"), "'evaluator.deploy.launcher': `program` wanted"));
    CHECK(has(refusal("container: {image: a}, ssh: {host: b}"),
              "'evaluator.deploy.ssh': an engine is started in one way"));
    CHECK(has(refusal("container: {program: [docker], image: \"--privileged\"}"),
              "image: a name such as"));
    CHECK(has(refusal("container: {program: [docker]}"), "image"));
    CHECK(refusal("container: {program: [docker], image: [a:1, b:2]}").empty());
}

TEST_CASE(
    "launcher: a client that is missing, a daemon that is gone and an image that is not there are "
    "told apart") {
    const TemporaryFolder folder;
    ContainerOptions options;
    options.images = {"org/engine:1"};
    options.program = {"/no/such/podman"};
    CHECK(container_launcher(options)->trouble("org/engine:1") ==
          "there is no program '/no/such/podman' in $PATH to run containers with");
    CHECK(container_launcher(options)->leftovers("/s").empty());

    const auto client = [&](const std::string& says, int code) {
        options.program = {
            script(folder, "echo '" + says + "' >&2\nexit " + std::to_string(code)).string()};
        options.kind = ContainerKind::docker;
        return container_launcher(options);
    };
    const std::string gone =
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
        "running?";
    CHECK(client(gone, 1)->trouble("org/engine:1") == "docker cannot run containers here: " + gone);
    CHECK(has(message_of<IoError>([&] { (void)client(gone, 1)->leftovers("/s"); }),
              "does not say which containers an earlier run has left"));
    const auto failure =
        client(gone, 1)->ended({{}, {}, "servetune-x", "org/engine:1", "vllm"}, 125, {gone});
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    const std::string none =
        client("Error: No such image: org/engine:1", 1)->trouble("org/engine:1");
    CHECK(has(none, "there is no image 'org/engine:1' here"));
    CHECK(has(none, "docker pull org/engine:1"));
    CHECK(has(client("permission denied", 1)->remove({{}, {}, "servetune-x"}),
              "would not go: permission denied"));

    // The real client, where there is one and no daemon behind it.
    if (const std::string docker = program_in_path("docker");
        !docker.empty() && ran({docker, "version"}, folder.path()).code != 0) {
        options.program = {docker};
        CHECK(has(container_launcher(options)->trouble("org/engine:1"),
                  "docker cannot run containers here: "));
    }
}

TEST_CASE(
    "launcher: engines in containers of podman are measured, and what goes wrong is told as what "
    "it is") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    const DeployedIn good(world, world.launching());
    const Outcome outcome = good.measure();
    INFO((std::holds_alternative<Failure>(outcome) ? std::get<Failure>(outcome).message : ""));
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    CHECK(std::get<Measurement>(outcome).metrics.at("success_ratio").value == 1);
    CHECK(has(read_file(good.evaluator_options.folder / "trials/0/engine.log"),
              "Application startup complete"));
    CHECK(world.containers().empty());

    const auto failure_of = [&](ContainerOptions options, const std::string& simengine) {
        const DeployedIn bad(world, std::move(options), simengine);
        const Outcome told = bad.measure();
        REQUIRE(std::holds_alternative<Failure>(told));
        CHECK(world.containers().empty());
        return std::get<Failure>(told);
    };
    const Failure died = failure_of(world.launching(), "--fault die_at_tokens=500");
    CHECK(died.kind == FailureKind::crashed_under_load);
    CHECK(failure_of(world.launching(), "--hardware l4 --model Qwen/Qwen3-32B").kind ==
          FailureKind::out_of_memory);
    CHECK(failure_of(world.launching(), "--fault exit_at_load=3").kind == FailureKind::other);

    ContainerOptions missing = world.launching();
    missing.images = {"localhost/servetune-none:1"};
    const DeployedIn without(world, missing);
    CHECK(has(message_of<IoError>([&] { (void)without.measure(); }),
              "there is no image 'localhost/servetune-none:1' here"));
}

TEST_CASE(
    "launcher: a container that is killed for want of memory has run out of it, a port that is "
    "taken is the machine's fault") {
    if (!podman_world().works()) return;
    const PodmanWorld& world = podman_world();
    ContainerOptions tight = world.launching();
    tight.memory_bytes = 32L << 20L;
    tight.options.push_back("--memory-swap=33554432");
    const LauncherWorld bounded{container_launcher(tight), PodmanWorld::image};
    // With control groups of version 1 podman does not say that it was this; the kernel's count
    // does.
    const Failure eaten = start_failure_of(
        bounded, {"/bin/sh", "-c", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"}, ReservedPort());
    INFO(eaten.message);
    CHECK(eaten.kind == FailureKind::out_of_memory);
    CHECK(has(eaten.message, "want of memory"));

    // No such GPU on this machine.
    const LauncherWorld plain{container_launcher(world.launching()), PodmanWorld::image};
    const Failure without =
        start_failure_of(plain, {"/bin/sh", "-c", "exit 0"}, ReservedPort(), "0,1");
    INFO(without.message);
    CHECK(without.kind == FailureKind::infrastructure);
    CHECK(has(without.message, "podman cannot give the container its GPUs"));

    const ReservedPort port;
    const Socket holder;  // somebody listens there, and answers nothing
    const sockaddr_in address = loopback(static_cast<std::uint16_t>(port.number()));
    REQUIRE(bind(holder.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(holder.id(), 1) == 0);
    const WordList serve{"vllm",
                         "serve",
                         "Qwen/Qwen3-8B",
                         "--host",
                         "127.0.0.1",
                         "--port",
                         std::to_string(port.number())};
    const Failure taken = start_failure_of(plain, serve, port);
    INFO(taken.message);
    CHECK(taken.kind == FailureKind::infrastructure);
    CHECK(has(taken.message, "Address already in use"));
}
