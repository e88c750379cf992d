// SPDX-License-Identifier: Apache-2.0
// Engines as jobs of Ray, on a dashboard of ours that runs them as processes.
#include "contract/launcher_contract.hpp"
#include "deploy/ray_jobs.hpp"
#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/detail/host/port.hpp"
#include "support/on_ray.hpp"
#include "support/ray_dashboard.hpp"
#include "support/test.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

/// Of ten that tests beside this one seldom have too.
const int first_port = 18000 + getpid() % 100 * 10;
std::string ports(int count) {
    return std::to_string(first_port) + "-" + std::to_string(first_port + count - 1);
}

constexpr const char* ray_token = "0123456789abcdef0123456789abcdef";

/// What /bin/sh makes of an entrypoint whose engine prints its words.
std::string printed_by(const nlohmann::json& job) {
    const TemporaryFolder folder;
    ProcessOptions options;
    options.argv = {"/bin/sh", "-c", job.at("entrypoint")};
    options.folder = folder.path();
    options.environment["RAY_ADDRESS"] = "a-cluster";
    Process process(options);
    REQUIRE(process.wait(20s));
    (void)process.end(1s);
    std::string result;
    for (const std::string& line : process.lines()) result += line + "\n";
    return result;
}

}  // namespace

TEST_CASE("ray: every word of an engine's command comes through /bin/sh as it is") {
    RayOptions options = on_ray("http://head:8265");
    LaunchRequest request;
    const std::vector<std::string> odd{
        "a b",      "",          "$(id)",      "; echo no", "'\"",
        "it's",     "tab\there", "line\nfeed", "\\n",       "*",
        "~",        "$HOME",     "`id`",       "!!",        "--json={\"a\": \"b c\"}",
        "\xc3\xa9", "#",         "&",          ">x",        "%s"};
    request.command.argv = {"printf", "<%s>"};
    std::string expected;
    for (const std::string& word : odd) {
        request.command.argv.push_back(word);
        expected += "<" + word + ">";
    }
    CHECK(printed_by(ray_job_of(options, request, "name", "label")) == expected + "\n");

    request.command.argv = {"/bin/sh", "-c", "echo \"$RAY_ADDRESS.\"; cat deep/options.yaml; pwd"};
    request.command.files = {{"deep/options.yaml", "a: 'x'\n  b: \\2 %s\n"}};
    const std::string with_file = printed_by(ray_job_of(options, request, "name", "label"));
    CHECK(with_file.starts_with(".\na: 'x'\n  b: \\2 %s\n/"));
    std::string folder = with_file.substr(with_file.rfind("\n/") + 1);
    folder.pop_back();
    CHECK_FALSE(fs::exists(folder));
    request.command.argv = {"nul\0"};
    request.command.argv.front() += '\0';
    CHECK_THROWS_AS(ray_job_of(options, request, "name", "label"), UsageError);
}

TEST_CASE("ray: what a job asks for") {
    RayOptions options = on_ray("http://head:8265");
    options.bound_seconds = 90.5;
    options.resources = {{"CPU", 4}, {"memory", 1e9}, {"accelerator_type:H100", 0.001}};
    LaunchRequest request;
    request.command.argv = {"vllm", "serve", "m"};
    request.environment = {{"A", "b c"}, {"CUDA_VISIBLE_DEVICES", "7"}};
    request.devices = 2;
    request.port = 18003;
    request.stop_within_seconds = 8;
    const nlohmann::json job = ray_job_of(options, request, "servetune-abc-1", "abc");
    CHECK(job["entrypoint"] ==
          "unset RAY_ADDRESS; exec timeout --signal=TERM --kill-after=20 91 'vllm' 'serve' 'm'");
    CHECK(job["submission_id"] == "servetune-abc-1");
    CHECK(job["entrypoint_num_gpus"] == 2);
    CHECK(job["entrypoint_num_cpus"] == 4.0);
    CHECK(job["entrypoint_memory"] == 1'000'000'000);
    CHECK(job["entrypoint_resources"] == nlohmann::json{{"accelerator_type:H100", 0.001}});
    CHECK(job["runtime_env"]["env_vars"] ==
          nlohmann::json{{"A", "b c"}, {"RAY_JOB_STOP_WAIT_TIME_S", "8"}});
    CHECK(job["metadata"] == nlohmann::json{{"servetune", "abc"},
                                            {"servetune_port", "18003"},
                                            {"servetune_bound", "91"}});
    request.environment = {{"a.b", "no name for a shell"}};
    CHECK_THROWS_AS(ray_job_of(options, request, "n", "l"), UsageError);
}

TEST_CASE("ray: options that cannot be are refused") {
    const auto refused = [](const auto& change) {
        RayOptions options = on_ray("http://head:8265");
        REQUIRE(options.why_invalid().empty());
        change(options);
        return options.why_invalid();
    };
    CHECK(has(refused([](RayOptions& o) { o.address = "head:8265"; }), "address"));
    CHECK(has(refused([](RayOptions& o) { o.address = "http://u:p@head:8265"; }), "address"));
    CHECK(has(refused([](RayOptions& o) { o.first_port = 80; }), "ports"));
    CHECK(has(refused([](RayOptions& o) { o.last_port = 17000; }), "ports"));
    CHECK(has(refused([](RayOptions& o) { o.bound_seconds = 0; }), "bound"));
    CHECK(has(refused([](RayOptions& o) { o.resources["GPU"] = 1; }), "resources"));
    CHECK(has(refused([](RayOptions& o) { o.resources["x"] = 0; }), "resources"));
    CHECK(has(refused([](RayOptions& o) {
                  o.token_env = "A";
                  o.token_file = "b";
              }),
              "token_env"));
    CHECK_THROWS_AS(ray_launcher({}), UsageError);
}

TEST_CASE("ray: concurrent engines get ports of the range, each the next one") {
    const std::pair range(first_port, first_port + 2);
    const ReservedPort one(range);
    const ReservedPort two(range);
    int third = 0;
    {
        const ReservedPort three(range);
        third = three.number();
        CHECK(one.number() + two.number() + third == 3 * first_port + 3);
        CHECK_THROWS_AS(ReservedPort(range), IoError);
    }
    CHECK(ReservedPort(range).number() == third);
}

TEST_CASE("ray: the launchers' contract holds on a dashboard of ours") {
    const RayDashboard dashboard(ray_token);
    check_launcher({ray_launcher(on_ray(dashboard.address(), ray_token))});
    CHECK(dashboard.count() == 0);
}

TEST_CASE("ray: what is wrong is said before the first trial") {
    const RayDashboard dashboard(ray_token);
    CHECK(ray_launcher(on_ray(dashboard.address(), ray_token))->trouble("") == "");
    CHECK(has(ray_launcher(on_ray(dashboard.address()))->trouble(""), "wants a token (401)"));
    CHECK(has(ray_launcher(on_ray(dashboard.address(), "another token"))->trouble(""),
              "refuses the token (403)"));
    RayOptions options = on_ray(dashboard.address(), ray_token);
    options.resources = {{"CPU", 3}};
    CHECK(has(ray_launcher(options)->trouble(""),
              "asks for 3 of 'CPU', and no node of " + options.address + " has more than 2"));
    options.resources = {{"accelerator_type:H100", 1}};
    CHECK(has(ray_launcher(options)->trouble(""), "has more than 0"));
    unsetenv("SERVETUNE_TEST_RAY_TOKEN");
    CHECK(
        has(ray_launcher(options)->trouble(""), "the environment has no SERVETUNE_TEST_RAY_TOKEN"));
    options.token_env.clear();
    options.token_file = "/no/such/file";
    CHECK(has(ray_launcher(options)->trouble(""), "/no/such/file cannot be read"));
    const TemporaryFolder folder;
    options.token_file = folder.write("token", std::string(ray_token) + "\n").string();
    options.resources.clear();
    CHECK(ray_launcher(options)->trouble("") == "");
    CHECK(has(ray_launcher(on_ray("http://127.0.0.1:" + std::to_string(free_port())))->trouble(""),
              "Connection refused"));
}

TEST_CASE("ray: a job that waits says for what, and then where it is") {
    RayDashboard dashboard;
    dashboard.hold(true);
    const LauncherWorld world{ray_launcher(on_ray(dashboard.address()))};
    const Launcher& launcher = *world.launcher;
    const auto begin = std::chrono::steady_clock::now();
    Launched one(world, {"/bin/sh", "-c", "echo begins; sleep 60"});
    REQUIRE(comes_true([&] {
        return has(launcher.place(one.launch()).waits, "waits for Ray: Job has not started yet.");
    }));
    CHECK(one.said() == "");
    dashboard.hold(false);
    const LaunchedAt at = placed(launcher, one.launch());
    CHECK(at.host == "127.0.0.1");
    CHECK(one.comes_to_say("begins"));
    CHECK(one.said() == "begins\n");  // nothing of Ray's own
    CHECK_FALSE(launcher.lost(one.launch()).has_value());
    CHECK(static_cast<double>(dashboard.log_requests) <= 2 + seconds_since(begin) / 2);
}

TEST_CASE("ray: a head that is silent for a while changes nothing") {
    RayDashboard dashboard;
    const LauncherWorld world{ray_launcher(on_ray(dashboard.address()))};
    Launched one(
        world, {"/bin/sh", "-c",
                "echo begins; while [ $((i=i+1)) -lt 60 ]; do sleep 0.1; done; echo ends; exit 5"});
    REQUIRE(one.comes_to_say("begins"));
    dashboard.silent(true);
    std::this_thread::sleep_for(8s);
    CHECK(one.process().running());
    dashboard.silent(false);
    REQUIRE(one.process().wait(20s));
    CHECK(one.process().exit_code() == 5);
    CHECK(one.said() == "begins\nends\n");
    CHECK_FALSE(world.launcher->ended(one.launch(), 5, one.process().lines()).has_value());
}

TEST_CASE("ray: what was done to a job is not held against its engine") {
    RayDashboard dashboard;
    const auto failed_by = [&](const auto& disturb, double bound_seconds = 3600) {
        RayOptions options = on_ray(dashboard.address());
        options.bound_seconds = bound_seconds;
        const LauncherWorld world{ray_launcher(options)};
        Launched one(world, {"/bin/sh", "-c", "echo begins; exec sleep 60"});
        REQUIRE(one.comes_to_say("begins"));
        disturb();
        REQUIRE(one.process().wait(30s));
        const auto failure = world.launcher->ended(
            one.launch(), one.process().exit_code().value_or(0), one.process().lines());
        REQUIRE(failure);
        CHECK(failure->kind == FailureKind::infrastructure);
        return failure->message;
    };
    CHECK(has(failed_by([&] { dashboard.stop_all(); }), "was stopped by somebody"));
    CHECK(has(failed_by([&] { dashboard.lose_supervisors(); }),
              "lost its node or its supervisor: Job supervisor actor died"));
    CHECK(has(failed_by([&] { dashboard.forget_all(); }), "Ray knows of no job servetune-"));
    CHECK(has(failed_by([] {}, 10), "reached its bound of 10 s: give it more with `bound`"));
}

TEST_CASE("ray: an engine that answers after its end would not go") {
    RayDashboard dashboard;
    const auto launcher = ray_launcher(on_ray(dashboard.address()));
    const TemporaryFolder folder;
    const ReservedPort port;
    LaunchRequest request;
    request.command.argv = {"/usr/bin/env",
                            "python3",
                            "-m",
                            "http.server",
                            std::to_string(port.number()),
                            "--directory",
                            folder.path().string()};
    request.port = port.number();
    request.mark = folder.path().string();
    const Launch launch = launcher->launch(request);
    Process process(client_of(launch));
    REQUIRE(placed(*launcher, launch).host == "127.0.0.1");
    REQUIRE(comes_true([&] { return port.listening(); }));
    dashboard.lose_supervisors();
    REQUIRE(process.wait(20s));
    const std::string why = launcher->remove(launch);
    CHECK(has(why, "it would not go: the engine of job " + launch.name +
                       " answers on 127.0.0.1:" + std::to_string(port.number())));
    CHECK(has(why, "it ends by itself within "));
    REQUIRE(launcher->leftovers(request.mark).size() == 1);
    CHECK_THROWS_AS(launcher->launch(request), IoError);  // never beside it
    dashboard.forget_all();                               // which ends it here
    CHECK(comes_true([&] { return !port.listening(); }));
    CHECK(launcher->remove(launch) == "");
    CHECK(launcher->leftovers(request.mark).empty());
}

TEST_CASE("ray: the client ends its job when nobody is behind it any more") {
    RayDashboard dashboard;
    const auto launcher = ray_launcher(on_ray(dashboard.address()));
    LaunchRequest request;
    request.command.argv = {"/bin/sh", "-c", "sleep 60"};
    request.mark = "/a/study";
    const Launch launch = launcher->launch(request);
    Process process(client_of(launch));
    REQUIRE(placed(*launcher, launch).host == "127.0.0.1");
    CHECK(launcher->leftovers(request.mark).size() == 1);
    process.hang_up();
    REQUIRE(process.wait(20s));
    CHECK(dashboard.count() == 0);
}

TEST_CASE("ray: a study goes to the next port where somebody has one, and leaves nothing") {
    RayDashboard dashboard(ray_token);
    const RayOptions options = on_ray(dashboard.address(), ray_token);
    // Two of the three ports of the range are somebody else's, on every address.
    const Socket first, second;
    for (const auto& [taken, port] :
         {std::pair(&first, first_port + 1), std::pair(&second, first_port + 2)}) {
        sockaddr_in address = loopback(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_ANY);
        REQUIRE(bind(taken->id(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(listen(taken->id(), 1) == 0);
    }
    const auto study = study_on_ray(dashboard.address(), ports(3), true);
    const Ran ended = study->run();
    INFO(ended.out << ended.err);
    REQUIRE(ended.code == 0);
    CHECK(has(ended.out, best_command));
    CHECK(has(read_file(study->directory() / "report.md"), "Every trial was a job of Ray."));
    CHECK(dashboard.count() == 0);
    CHECK(ray_launcher(options)->leftovers(study->mark()).empty());
    std::string all = ended.out + ended.err;
    for (const auto& entry : fs::recursive_directory_iterator(study->directory()))
        if (entry.is_regular_file()) all += read_file(entry.path());
    CHECK_FALSE(has(all, ray_token));
}

TEST_CASE("ray: kill -9 of autotune leaves no job that does not end, and loses no trial") {
    RayDashboard dashboard;
    const RayOptions options = on_ray(dashboard.address());
    const auto study = study_on_ray(dashboard.address(), ports(10), false);
    std::vector<Trial> before;
    for (int round = 0; round < 2; ++round) {
        ChildProcess process(study->words("run", {"--quiet"}), study->folder());
        REQUIRE(comes_true([&] { return dashboard.running() > 0 || process.wait_at_most(0s); }));
        std::this_thread::sleep_for(std::chrono::milliseconds(500 + 1500 * round));
        if (process.wait_at_most(0s)) break;
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(5s));
        // The client sees that its input ends. The watchdog may end it before Ray has forgotten the
        // job.
        CHECK(comes_true([&] { return dashboard.running() == 0; }));
        before = study->trials();
    }
    const Ran ended = study->run();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    const std::vector<Trial> trials = study->trials();
    for (const Trial& trial : trials) CHECK(trial.told());
    REQUIRE(trials.size() >= before.size());
    for (const Trial& trial : before)
        if (trial.told()) CHECK(trials[trial.id].outcome == trial.outcome);
    CHECK(dashboard.running() == 0);
}

TEST_CASE("ray: a secret in the environment is refused with what to do instead") {
    const TemporaryFolder folder;
    const std::vector<std::string> words{
        SERVETUNE_PROGRAM, "validate",
        folder
            .write("study.yaml",
                   "study: s\nmodel: /m\nengine: vllm\nworkloads: [chat]\nobjective: {maximize: "
                   "total_tokens_per_second}\nhardware: "
                   "h100-sxm\npreset: quick\nevaluator: {deploy: {ray: {address: "
                   "\"http://127.0.0.1:1\"}, environment: {HF_TOKEN: "
                   "\"hf_Planted5ecretOfTheTest\"}}}\n")
            .string()};
    const Ran refused = ran(words, folder.path());
    INFO(refused.out << refused.err);
    CHECK(refused.code == 1);
    CHECK(has(refused.err,
              "everybody who may see Ray's jobs would see this secret. Set HF_TOKEN where Ray is "
              "started on the nodes"));
    CHECK_FALSE(has(refused.err, "hf_Planted"));
}
