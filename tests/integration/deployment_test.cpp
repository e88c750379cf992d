// SPDX-License-Identifier: Apache-2.0
// Deployments of simengine, well-behaved and not: what each start comes to, and that nothing is
// left of it.
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/script.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/deployment.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/error.hpp"
#include "support/waiting.hpp"
#include "support/watched_machine.hpp"

#include <sys/resource.h>

#include <csignal>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

const std::string model = "Qwen/Qwen3-8B";

/// Why it failed to start; empty when it serves.
std::string why(const Deployment& deployment) {
    return deployment.started().failure ? deployment.started().failure->message : "";
}

/// A folder with simengine under the engines' names, a port, and what a study would say.
class OneEngine {
public:
    explicit OneEngine(const std::string& fault = "", const std::string& engine = "vllm")
        : engine_(shipped_catalogue.engine(engine)) {
        for (const char* name : {"vllm", "python3", "trtllm-serve", "llama-server"})
            fs::create_symlink(SIMENGINE_PROGRAM, programs_.path() / name);
        options.folder = programs_.path() / "trial";
        options.environment = {
            {"PATH", programs_.path().string() + ":" + std::getenv("PATH")},
            {"SIMENGINE_OPTIONS",
             "--start-scale 100000 --time-scale 100" + (fault.empty() ? "" : " --fault " + fault)}};
        options.mark = "study-" + programs_.path().filename().string();
        options.ready_within_seconds = 20;
        options.stop_within_seconds = 5;
    }
    /// Nothing of it may be left, however the test ended.
    ~OneEngine() {
        deployment_.reset();
        CHECK(leftovers(options.mark).empty());
        CHECK_FALSE(port.listening());
        if (group_ != 0) CHECK(living_in_group(group_) == std::vector<int>{});
    }
    OneEngine(const OneEngine&) = delete;
    OneEngine& operator=(const OneEngine&) = delete;

    Deployment& deploy(const Words& flags = {}, const std::stop_token& stop = {}) {
        Command command;
        for (std::string word : engine_.launch) {
            if (word == "{model}") word = model;
            if (word == "{host}") word = "127.0.0.1";
            if (word == "{port}") word = std::to_string(port.number());
            command.argv.push_back(word);
        }
        command.argv.insert(command.argv.end(), flags.begin(), flags.end());
        deployment_.reset();  // it would answer at the same port
        deployment_ = std::make_unique<Deployment>(engine_, command, model, port, options, stop);
        group_ = deployment_->process_id();
        return *deployment_;
    }
    Deployment& serving(const Words& flags = {}) {
        Deployment& deployment = deploy(flags);
        REQUIRE(why(deployment) == "");
        return deployment;
    }
    /// The failure of a start that must fail; after it nothing may be left though nobody has asked
    /// for that.
    Failure failure(const Words& flags = {}) {
        const Deployment& deployment = deploy(flags);
        REQUIRE(deployment.started().failure);
        CHECK(leftovers(options.mark).empty());
        CHECK_FALSE(port.listening());
        CHECK(deployment.started().failure->log_lines.size() <= 10);
        CHECK(deployment.started().failure->log_path == (options.folder / "engine.log").string());
        CHECK(deployment.died());
        CHECK_FALSE(deployment.decisive().empty());
        return *deployment.started().failure;
    }
    [[nodiscard]] std::size_t succeeded(std::size_t requests) const {
        std::vector<PlannedRequest> plan(requests, {.text = "the in to of", .output_tokens = 4});
        const LoadRun run = generate_load(deployment_->endpoint(), plan,
                                          {.kind = Arrival::Kind::concurrency, .in_flight = 1});
        return std::size_t(
            count_if(run.records, [](const RequestRecord& record) { return record.succeeded(); }));
    }

    /// Lets these lines run in the place of a program, and what they `exec` as "$served" be
    /// simengine.
    void put_before(const std::string& name, const std::string& lines) const {
        const fs::path served = programs_.path() / "served" / name;
        fs::create_directories(served.parent_path());
        fs::create_symlink(SIMENGINE_PROGRAM, served);
        fs::remove(programs_.path() / name);
        script(programs_, lines + "exec '" + served.string() + "' \"$@\"\n", name);
    }

    DeployOptions options{};
    TemporaryFolder programs_{};
    ReservedPort port{};

private:
    Engine engine_;
    std::unique_ptr<Deployment> deployment_{};
    int group_ = 0;
};

}  // namespace

TEST_CASE("deployment: a failed start names the first cause, not the last line") {
    const auto failure_of = [](const std::string& engine, const std::string& log) {
        OneEngine stage("", engine);
        const fs::path words = stage.programs_.write("words.txt", log);
        for (const char* name : {"vllm", "llama-server"})
            stage.put_before(name, "cat '" + words.string() + "' >&2\nexit 1\n");
        return stage.failure();
    };
    const Failure worker =
        failure_of("vllm",
                   "(EngineCore pid=902) Traceback (most recent call last):\n"
                   "(EngineCore pid=902)   File \"flashinfer.py\", line 11, in <module>\n"
                   "(EngineCore pid=902) ModuleNotFoundError: No module named 'flashinfer'\n"
                   "(APIServer pid=778) Traceback (most recent call last):\n"
                   "(APIServer pid=778)   File \"utils.py\", line 1272, in wait\n"
                   "(APIServer pid=778) RuntimeError: Engine core initialization failed. See root "
                   "cause above.\n");
    CHECK(worker.kind == FailureKind::unsupported);
    CHECK(worker.message.ends_with(
        ", before it served: ModuleNotFoundError: No module named 'flashinfer'"));
    CHECK(worker.log_lines.front() == "File \"flashinfer.py\", line 11, in <module>");
    const Failure unknown = failure_of(
        "llama.cpp", "0.00.01 E load: the tensor 'x' has another shape\n0.00.02 E srv: exiting\n");
    CHECK(unknown.kind == FailureKind::other);
    CHECK(unknown.message.ends_with(
        "; its first error: 0.00.01 E load: the tensor 'x' has another shape"));
}

TEST_CASE("deployment: each engine starts, serves, is who it was, and goes at once") {
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        INFO(engine);
        OneEngine stage("", engine);
        Deployment& deployment =
            stage.serving(std::string(engine) == "sglang" ? Words{"--enable-metrics"} : Words{});
        CHECK(deployment.started().seconds < 5);
        CHECK(stage.succeeded(4) == 4);
        CHECK(deployment.same_server());
        CHECK_FALSE(deployment.died());
        CHECK(deployment.reset_cache() ==
              (std::string(engine) == "vllm" || std::string(engine) == "sglang"));
        CHECK(deployment.not_in_force().empty());
        const Ended ended = deployment.stop();
        CHECK_FALSE(ended.killed);
        CHECK(ended.report.empty());
        CHECK(ended.seconds < 3);
        CHECK_FALSE(deployment.same_server());
        CHECK_FALSE(deployment.died());
        CHECK(deployment.stop().exit_code == ended.exit_code);
    }
}

TEST_CASE("deployment fails: it serves and tells another value of a flag than was asked for") {
    OneEngine honest("", "sglang");
    CHECK(why(honest.deploy({"--schedule-conservativeness=0.7", "--mem-fraction-static=0.8",
                             "--max-running-requests=2"})) == "");
    OneEngine stage("", "sglang");
    stage.put_before("python3",
                     "for word; do shift; [ \"$word\" = --max-running-requests=2 ] && "
                     "word=--max-running-requests=64\nset -- \"$@\" \"$word\"; done\n");
    const Failure failure = stage.failure({"--max-running-requests=2"});
    CHECK(failure.kind == FailureKind::ignored_flags);
    CHECK(why(stage.deploy({"--max-running-requests=64"})) == "");
    CHECK(failure.message ==
          "sglang serves and says that a flag has no effect: --max-running-requests 2 was asked "
          "for, 64 is in force");
}

TEST_CASE("deployment fails: it serves and says that a flag has no effect") {
    OneEngine stage;
    stage.put_before(
        "vllm",
        "case \"$*\" in *FLASHINFER*) echo 'INFO 11-26 15:02:11 [cpu.py:74] Cannot use "
        "AttentionBackendEnum.FLASHINFER backend on CPU.'; sleep 0.5;; esac\n");
    CHECK(why(stage.deploy()) == "");
    const Failure failure = stage.failure({"--attention-backend=FLASHINFER"});
    CHECK(failure.kind == FailureKind::ignored_flags);
    CHECK(has(failure.message, "vllm serves and says that a flag has no effect: "));
    CHECK(has(failure.message, "Cannot use AttentionBackendEnum.FLASHINFER"));
}

TEST_CASE("deployment fails: never ready") {
    OneEngine stage("never_ready");
    stage.options.ready_within_seconds = 1;
    const Failure failure = stage.failure();
    CHECK(failure.kind == FailureKind::not_ready_in_time);
    CHECK(has(failure.message, "vllm did not serve within 1 s; GET /health: "));
}

TEST_CASE("deployment fails: exits at once, at load, refuses its flags") {
    {
        OneEngine stage("exit_at_once=3");
        const Failure failure = stage.failure();
        CHECK(failure.kind == FailureKind::other);
        CHECK(has(failure.message, "vllm ended with exit code 3 after "));
    }
    {
        OneEngine stage("exit_at_load=137");
        const Failure failure = stage.failure();
        CHECK(failure.kind ==
              FailureKind::other);  // neither its log nor the kernel says that memory was out
        CHECK(has(failure.message, "exit code 137 (KILL)"));
        CHECK(has(failure.message, "its last line: "));
    }
    OneEngine stage;
    const Failure failure = stage.failure({"--max-num-seqz=3"});
    CHECK(failure.kind == FailureKind::rejected_flags);
    CHECK(has(failure.message, "unrecognized arguments: --max-num-seqz"));
}

TEST_CASE("deployment fails: out of memory, and then it hangs") {
    OneEngine stage("oom_then_hang");
    stage.options.failed_line_grace_seconds = 0.3;
    const Failure failure = stage.failure();
    CHECK(failure.kind == FailureKind::out_of_memory);
    CHECK(has(failure.message, "vllm said why it fails and was still there 0.3 s later: "));
    CHECK(has(failure.message, "CUDA out of memory"));
}

TEST_CASE(
    "deployment fails: what has no memory because others hold the GPU is no failure of the "
    "configuration") {
    OneEngine stage("oom_then_hang");
    stage.options.failed_line_grace_seconds = 0.3;
    const FakeSmi smi;
    stage.options.nvidia_smi = smi.program();
    smi.say("gpus", row({.used = "70000"}));
    const std::string message = message_of<IoError>([&] { stage.deploy(); });
    CHECK(has(message, "GPU 0 had 70000 MiB of its 81559 MiB in use before vllm was started"));
    CHECK(has(message, "CUDA out of memory"));

    smi.say("gpus", row({.used = "30000"}));
    CHECK(stage.failure().kind == FailureKind::out_of_memory);
    smi.say("gpus", row({.used = "30000"}) +
                        row({.index = 1, .used = "70000"}));  // the engine begins with GPU 0
    CHECK(stage.failure().kind == FailureKind::out_of_memory);
}

TEST_CASE(
    "deployment: one that answers 503 for a while, listens late or starts slowly is waited for") {
    for (const char* fault : {"answer_503=0.6", "listen_late=0.6", "slow_start=0.6"}) {
        INFO(fault);
        OneEngine stage(fault);
        const Deployment& deployment = stage.serving();
        CHECK(deployment.started().seconds > 0.6);
        CHECK(deployment.started().seconds < 5);
        CHECK(stage.succeeded(2) == 2);
    }
}

TEST_CASE("deployment fails: another model, answers that are no JSON, a port that is taken") {
    {
        OneEngine stage("wrong_model=somebody/else");
        const Failure failure = stage.failure();
        CHECK(failure.kind == FailureKind::wrong_model);
        CHECK(failure.message == "the server was to serve Qwen/Qwen3-8B, it serves somebody/else");
    }
    {
        OneEngine stage("wrong_json");
        const Failure failure = stage.failure();
        CHECK(failure.kind == FailureKind::load_test_failed);
        CHECK(has(failure.message,
                  "a first POST /v1/chat/completions is answered with what is no JSON: {"));
    }
    OneEngine stage;
    {
        const Socket server;
        const sockaddr_in address = loopback(static_cast<std::uint16_t>(stage.port.number()));
        REQUIRE(bind(server.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
                0);
        const Deployment& deployment = stage.deploy();
        REQUIRE(deployment.started().failure);
        CHECK(deployment.started().failure->kind == FailureKind::infrastructure);
        CHECK(has(deployment.started().failure->message, "ddress already in use"));
    }
}

TEST_CASE("deployment: ends that are not easy") {
    {
        OneEngine stage("grandchild_keeps_port");
        stage.options.stop_within_seconds = 0.3;
        Deployment& deployment = stage.serving();
        const Ended ended = deployment.stop();
        CHECK(ended.killed);
        CHECK(ended.report.empty());
        CHECK(ended.seconds < 3);
    }
    {
        // In the background, without its environment: by its words it is known.
        OneEngine stage;
        fs::remove(stage.programs_.path() / "vllm");
        script(stage.programs_,
               "(env -i setsid " SIMENGINE_PROGRAM
               " --start-scale 100000 --time-scale 100 vllm "
               "\"$@\" </dev/null >/dev/null 2>&1 &)\nexec sleep 600\n",
               "vllm");
        Deployment& deployment = stage.serving();
        CHECK(deployment.stop().report.empty());
        CHECK_FALSE(stage.port.listening());
    }
    {
        OneEngine stage("ignore_term");
        stage.options.stop_within_seconds = 0.3;
        Deployment& deployment = stage.serving();
        CHECK(deployment.stop().killed);
    }
    OneEngine stage("stop_slowly=0.5");
    Deployment& deployment = stage.serving();
    const Ended ended = deployment.stop();
    CHECK_FALSE(ended.killed);
    CHECK(ended.exit_code == 0);
    CHECK(ended.seconds >= 0.5);
    CHECK(ended.seconds < 3);
}

TEST_CASE("deployment: floods its log, on a disk that is full or not") {
    {
        OneEngine stage("flood_log=100000000");
        stage.options.log_bytes = 1 << 20;
        Deployment& deployment = stage.serving();
        CHECK(stage.succeeded(20) == 20);
        CHECK_FALSE(deployment.died());
        CHECK(deployment.log_trouble().empty());
        CHECK_FALSE(deployment.stop().killed);
        CHECK(fs::file_size(stage.options.folder / "engine.log") <= stage.options.log_bytes);
    }
    OneEngine stage;
    fs::create_directories(stage.options.folder);
    fs::create_symlink("/dev/full", stage.options.folder / "engine.log");
    const Deployment& deployment = stage.serving();
    CHECK(has(deployment.log_trouble(), "No space left on device"));
    CHECK(stage.succeeded(2) == 2);
}

TEST_CASE("deployment: one that dies under load, restarts or is killed is not who it was") {
    {
        OneEngine stage("die_at_requests=4");
        Deployment& deployment = stage.serving();
        CHECK(stage.succeeded(8) == 2);  // the first was the start's
        REQUIRE(comes_true([&] { return deployment.died().has_value(); }));
        CHECK(comes_true([&] {
            return has(deployment.died()->message, "vllm ended with exit code 1 under load: ");
        }));
        CHECK(deployment.died()->kind == FailureKind::crashed_under_load);
        CHECK(has(deployment.died()->message, "EngineCore encountered a fatal error"));
        CHECK_FALSE(deployment.same_server());
    }
    {
        OneEngine stage("restart_mid_run=3");
        const Deployment& deployment = stage.serving();
        CHECK(deployment.same_server());
        std::this_thread::sleep_for(1100ms);  // simengine tells its start in whole seconds
        CHECK(stage.succeeded(4) >= 3);
        CHECK(deployment.same_server() == false);
        CHECK_FALSE(deployment.died());
    }
    OneEngine stage;
    const Deployment& deployment = stage.serving();
    kill(deployment.process_id(), SIGKILL);
    REQUIRE(comes_true([&] { return deployment.died().has_value(); }));
    CHECK(has(deployment.died()->message,
              "vllm ended with exit code 137 (KILL) under load; its last line: "));
}

TEST_CASE("deployment: the machine's faults are exceptions") {
    OneEngine stage;
    stage.options.environment["PATH"] = "/no/such/folder";
    CHECK(message_of<IoError>([&] { stage.deploy(); }) ==
          "cannot start vllm: no such program in $PATH");
    stage.options.folder = "/proc/1/trial";
    stage.options.environment["PATH"] = stage.programs_.path().string();
    CHECK(
        has(message_of<IoError>([&] { stage.deploy(); }), "cannot make the folder /proc/1/trial"));
}

TEST_CASE("deployment: stopping is heard at any moment of a start") {
    for (const char* fault : {"never_ready", "answer_503=30", "listen_late=30"}) {
        INFO(fault);
        OneEngine stage(fault);
        std::stop_source source;
        Clock::time_point asked;
        std::thread stopper([&] {
            std::this_thread::sleep_for(700ms);
            asked = Clock::now();
            source.request_stop();
        });
        const Deployment& deployment = stage.deploy({}, source.get_token());
        const double took = seconds_since(asked);
        stopper.join();
        REQUIRE(deployment.started().failure);
        CHECK(deployment.started().failure->kind == FailureKind::cancelled);
        CHECK(
            // idle 0.1, to hear it and the end of the engine; not heard it is the 20 of
            // ready_within
            took < 10);
    }
    OneEngine stage;
    std::stop_source source;
    source.request_stop();
    CHECK(stage.deploy({}, source.get_token()).started().failure->kind == FailureKind::cancelled);
}

TEST_CASE("deployment: with 256 descriptors, again and again") {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{256, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const auto descriptors =
        std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    for (int i = 0; i < 8; ++i) {
        OneEngine stage(i % 2 == 0 ? "" : "exit_at_load");
        CHECK(stage.deploy().started().failure.has_value() == (i % 2 == 1));
    }
    CHECK(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()) ==
          descriptors);
    setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("deployment: two at once do not meet") {
    OneEngine first;
    OneEngine second("", "llama.cpp");
    CHECK(first.port.number() != second.port.number());
    Deployment& one = first.serving();
    Deployment& other = second.serving();
    CHECK(one.endpoint().url != other.endpoint().url);
    one.stop();
    CHECK_FALSE(other.died());
    CHECK(other.same_server());
    CHECK(second.succeeded(2) == 2);
}
