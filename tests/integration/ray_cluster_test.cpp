// SPDX-License-Identifier: Apache-2.0
// Engines as jobs of a real Ray of two nodes, which scripts/get-ray fetches; else skipped.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "support/deployed_study.hpp"
#include "support/on_ray.hpp"
#include "support/ray_world.hpp"
#include "support/test.hpp"

#include "deploy/takes_connection.hpp"
#include "servetune/detail/base/present.hpp"

#include <chrono>
#include <memory>
#include <string>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// A server on a port of a node, with a bound.
struct BoundEngine {
    BoundEngine(const RayWorld& world, int node, double bound_seconds, int port) {
        RayOptions options = on_ray(world.address(), RayWorld::token);
        options.bound_seconds = bound_seconds;
        options.resources = {{"node:" + world.node(node), 0.001}};
        launcher = ray_launcher(options);
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
        return takes_connection(host, std::to_string(request.port));
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
    check_launcher({ray_launcher(on_ray(world.address(), RayWorld::token))});
    CHECK(has(ray_launcher(on_ray(world.address()))->trouble(""), "wants a token (401)"));
    CHECK(
        has(ray_launcher(on_ray(world.address(), "not the token, but as long as one"))->trouble(""),
            "refuses the token (403)"));

    const LauncherWorld launching{ray_launcher(on_ray(world.address(), RayWorld::token))};
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
    constexpr double bound_seconds = 45;
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
    const RayOptions options = on_ray(world.address(), RayWorld::token);
    const auto owned = study_on_ray(world.address(), "18200-18209", true, ", workers: 2");
    const DeployedStudy& study = *owned;
    const Ran validated = ran(study.words("run", {"--dry-run"}), study.folder());
    INFO(validated.out << validated.err);
    CHECK(validated.code == 0);
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    REQUIRE((ended.code == 0 || ended.code == 1));
    for (const Trial& trial : study.trials()) CHECK(trial.told());
    CHECK(study.trials().size() >= 3);
    CHECK(has(ended.out, best_command));
    CHECK(has(read_file(study.directory() / "report.md"), "Every trial was a job of Ray."));
    CHECK(ray_launcher(options)->leftovers(study.mark()).empty());
    std::string all = ended.out + ended.err;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(study.directory()))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(has(all, RayWorld::token));
}

TEST_CASE("ray: the study of the guide can run on a real Ray", "[ray]") {
    const RayWorld world;
    if (!world.works()) return;
    const std::string page = read_file(SERVETUNE_SOURCE "/docs/guides/ray.md");
    const std::string fence = "```yaml\n";
    const auto begin = page.find(fence) + fence.size();
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
