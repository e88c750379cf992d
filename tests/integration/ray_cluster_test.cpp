// SPDX-License-Identifier: Apache-2.0
// Engines as jobs of a real Ray of two nodes, which scripts/get-ray fetches; else skipped.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "support/deployed_study.hpp"
#include "support/elsewhere.hpp"
#include "support/ray_world.hpp"
#include "support/test.hpp"

#include <chrono>
#include <memory>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<const Launcher> on_ray(const std::string& address, const std::string& token = "",
                                       std::vector<std::string> more = {}) {
    more.push_back("address " + address);
    if (!token.empty()) {
        setenv("SERVETUNE_TEST_RAY_TOKEN", token.c_str(), 1);
        more.emplace_back("token_env SERVETUNE_TEST_RAY_TOKEN");
    }
    return launcher_with("ray", more);
}

/// A server on a port of a node, with a bound.
struct BoundEngine {
    BoundEngine(const RayWorld& world, int node, int bound_seconds, int port) {
        launcher = on_ray(world.address(), RayWorld::token,
                          {"bound " + std::to_string(bound_seconds) + "s",
                           "resources.node:" + world.node(node) + " 0.001"});
        request.command.argv = {"python3",     "-m",        "http.server", std::to_string(port),
                                "--directory", "/var/empty"};
        request.port = port;
        request.mark = folder.path().string();
        request.stop_within_seconds = 3;
        launch = launcher->launch(request);
        client = std::make_unique<Process>(client_of(launch));
        host = placed(*launcher, launch).host;
    }
    [[nodiscard]] bool answers() const {
        return ran({"/usr/bin/env", "curl", "--silent", "--max-time", "2",
                    "http://" + host + ":" + std::to_string(request.port)},
                   folder.path())
                   .code == 0;
    }
    TemporaryFolder folder;
    std::shared_ptr<const Launcher> launcher;
    LaunchRequest request;
    Launch launch;
    std::unique_ptr<Process> client;
    std::string host;
};

}  // namespace

TEST_CASE("ray: the launchers' contract holds on a real Ray", "[ray]") {
    const RayWorld world;
    if (!world.works()) return;
    check_launcher({(on_ray(world.address(), RayWorld::token))});
    CHECK(has((on_ray(world.address()))->trouble(""), "wants a token (401)"));
    CHECK(has((on_ray(world.address(), "not the token, but as long as one"))->trouble(""),
              "refuses the token (403)"));

    const LauncherWorld launching{(on_ray(world.address(), RayWorld::token))};
    {  // what the node has in its environment is there; what is Ray's own is not
        Launched one(launching, {"/bin/sh", "-c", "echo \"$OF_THE_NODE $RAY_ADDRESS.\""});
        REQUIRE(one.process().wait(60s));
        CHECK(one.said() == "inherited .\n");
    }
    {  // more devices than any node has
        LaunchRequest request;
        request.command.argv = {"true"};
        request.devices = 8;
        request.mark = "/a/study";
        const Launch launch = launching.launcher->launch(request);
        Process client(client_of(launch));
        std::string waits;
        const bool said = comes_true([&] {
            return has(waits = launching.launcher->place(launch).waits, "no node has more than 2");
        });
        INFO(waits);
        CHECK(said);
        (void)end_launched(*launching.launcher, launch, client, 1s);
    }
}

TEST_CASE("ray: an engine that Ray leaves alive ends at its bound", "[ray]") {
    const RayWorld world;
    if (!world.works()) return;
    constexpr int bound_seconds = 45;
    {  // the other node's Ray dies
        BoundEngine engine(world, 2, bound_seconds, 18101);
        CHECK(engine.host == world.node(2));
        REQUIRE(comes_true([&] { return engine.answers(); }));
        world.kill_raylet(2);
        REQUIRE(engine.client->wait(60s));
        const auto failure = engine.launcher->ended(
            engine.launch, engine.client->exit_code().value_or(0), engine.client->lines());
        REQUIRE(failure);
        CHECK(failure->kind == FailureKind::infrastructure);
        CHECK(has(failure->message, "lost its node or its supervisor"));
        CHECK(engine.answers());
        const std::string why = engine.launcher->remove(engine.launch);
        CHECK(has(why, "it would not go: the engine of job " + engine.launch.name + " answers on " +
                           world.node(2) + ":18101"));
        CHECK(engine.launcher->leftovers(engine.request.mark).size() == 1);
        CHECK(comes_true([&] { return !engine.answers(); }, bound_seconds + 25));
        CHECK(engine.launcher->remove(engine.launch) == "");
        CHECK(engine.launcher->leftovers(engine.request.mark).empty());
    }
    {  // the head dies
        BoundEngine engine(world, 1, bound_seconds, 18102);
        REQUIRE(comes_true([&] { return engine.answers(); }));
        world.kill_head();
        std::this_thread::sleep_for(5s);
        CHECK(engine.client->running());  // for a minute it could come back
        CHECK(engine.answers());
        CHECK(comes_true([&] { return !engine.answers(); }, bound_seconds + 25));
        REQUIRE(engine.client->wait(90s));
        CHECK(engine.client->exit_code() == 125);
    }
}

TEST_CASE("ray: a study of two workers on a real Ray recommends what one on this machine would",
          "[ray]") {
    const RayWorld world;
    if (!world.works()) return;
    const auto launcher = on_ray(world.address(), RayWorld::token);
    DeployedStudy::Text text;
    text.deploy =
        "ray: {address: \"" + world.address() +
        "\", token_env: SERVETUNE_TEST_RAY_TOKEN, ports: 18200-18209, bound: 10min}, workers: 2, "
        "ready_within: 60s, stop_within: 4s, stall_timeout: 20s, trial_within: 120s, warm_up: 1, "
        "environment: {SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", PATH: "
        "\"BIN:/usr/bin:/bin\", SERVETUNE_SEARCH_SPACES: \"" SERVETUNE_SOURCE "/search_spaces\"}";
    text.more = "budget: {trials: 8}\n";
    const DeployedStudy study(text);
    std::string file = read_file(study.folder() / "study.yaml");
    file.replace(file.find("BIN:"), 3, (study.folder() / "bin").string());
    write_file(study.folder() / "study.yaml", file);
    const Ran validated = ran(study.words("run", {"--dry-run"}), study.folder());
    INFO(validated.out << validated.err);
    CHECK(validated.code == 0);
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    REQUIRE((ended.code == 0 || ended.code == 1));
    for (const Trial& trial : study.trials()) CHECK(trial.told());
    CHECK(study.trials().size() >= 3);
    CHECK(has(ended.out, best_command));
    CHECK(has(read_file(study.directory() / "report.md"), "by the launcher ray,"));
    CHECK(launcher->leftovers(study.mark()).empty());
    std::string all = ended.out + ended.err;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(study.directory()))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(has(all, RayWorld::token));
}

TEST_CASE("ray: the study of the guide can run on a real Ray", "[ray]") {
    const RayWorld world;
    if (!world.works()) return;
    const std::string page = read_file(SERVETUNE_SOURCE "/docs/guides/elsewhere.md");
    const std::string fence = "```yaml\n";
    const auto begin = page.find(fence, page.find("`on-ray.yaml`")) + fence.size();
    std::string text = page.substr(begin, page.find("```", begin) - begin);
    const std::string head = "http://head:8265";
    REQUIRE(has(text, head));
    text.replace(text.find(head), head.size(), world.address());
    const TemporaryFolder folder;
    folder.write("ray-token", std::string(RayWorld::token) + "\n");
    const std::vector<std::string> words{SERVETUNE_PROGRAM, "validate",
                                         folder.write("on-ray.yaml", text).string()};
    const Ran validated = ran(words, folder.path());
    INFO(validated.out << validated.err);
    CHECK(validated.code == 0);
    CHECK_FALSE(has(validated.out + validated.err, "Ray's dashboard"));
    folder.write("ray-token", "another-token-of-the-same-length\n");
    const Ran refused = ran(words, folder.path());
    INFO(refused.out << refused.err);
    CHECK(has(refused.out + refused.err, "refuses the token (403)"));
    CHECK_FALSE(has(refused.out + refused.err, "another-token"));
}
