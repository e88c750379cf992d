// SPDX-License-Identifier: Apache-2.0
// `autotune serve`: the recommended engine, again after a fall, and an end whatever happens.
// simengine stands in for the engine.
#include "support/autotune.hpp"
#include "support/deployed_study.hpp"
#include "support/http.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <csignal>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

bool says(const std::string& text, const std::string& part) { return has(text, part); }

/// `autotune serve` of a study that recommends `--max-num-seqs=32`; its default is 4.
class Served {
public:
    explicit Served(const DeployedStudy& study, const std::vector<std::string>& more = {},
                    const std::vector<std::string>& before = {})
        : study_(study),
          before_(study.engines().size()),
          port_(free_port()),
          process_(words(more, before), study.folder()) {}

    [[nodiscard]] bool answers() const { return http(port_, "/health").status == 200; }
    [[nodiscard]] bool comes_to_answer() const {
        return comes_true([&] { return answers(); });
    }
    [[nodiscard]] bool comes_to_say(const std::string& text) const {
        return comes_true([&] { return says(process_.err(), text); });
    }
    /// Those that were started for it, in their order.
    [[nodiscard]] std::vector<DeployedStudy::StartedEngine> engines() const {
        std::vector<DeployedStudy::StartedEngine> all = study_.engines();
        all.erase(all.begin(), all.begin() + std::ptrdiff_t(before_));
        return all;
    }
    /// Whether nothing of its engines is there any more.
    [[nodiscard]] bool comes_to_leave_nothing() const {
        return comes_true([&] {
            for (const auto& engine : engines())
                if (!living_in_group(engine.id).empty()) return false;
            return listeners(port_).empty();
        });
    }
    [[nodiscard]] fs::path folder() const {
        return study_.directory() / ("serve-" + std::to_string(port_));
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] ChildProcess& process() { return process_; }

private:
    [[nodiscard]] std::vector<std::string> words(std::vector<std::string> more,
                                                 const std::vector<std::string>& before) const {
        more.insert(more.begin(), {"--port", std::to_string(port_)});
        return study_.words("serve", more, before);
    }
    const DeployedStudy& study_;
    std::size_t before_;
    std::uint16_t port_;
    ChildProcess process_;
};

/// A study that was measured and recommends.
struct Tuned : DeployedStudy {
    Tuned() {
        const Ran tuned = run({"--quiet"});
        INFO(tuned.out << tuned.err);
        REQUIRE(tuned.code == 0);
        REQUIRE(says(tuned.out, best_command));
    }
};

}  // namespace

TEST_CASE(
    "serve: the recommended engine answers, is started again when it is killed, and TERM leaves "
    "nothing") {
    const Tuned study;
    Served served(study);
    REQUIRE(served.comes_to_answer());
    REQUIRE(served.comes_to_say("serves at http://127.0.0.1:" + std::to_string(served.port())));
    CHECK(says(http(served.port(), "/v1/models").body, "Qwen/Qwen3-8B"));
    REQUIRE(served.engines().size() == 1);
    CHECK(says(served.engines().front().words, "--max-num-seqs=32"));
    CHECK(says(served.engines().front().words, "--host 127.0.0.1"));
    CHECK(fs::file_size(served.folder() / "engine.log") > 0);

    kill(served.engines().front().id, SIGKILL);
    REQUIRE(comes_true([&] { return served.engines().size() == 2; }));
    REQUIRE(served.comes_to_answer());
    CHECK(says(served.engines().back().words, "--max-num-seqs=32"));
    CHECK(says(served.process().err(), "exit code 137 (KILL)"));
    CHECK(says(served.process().err(), "; starts again in 1"));

    served.process().signal(SIGTERM);
    CHECK(served.process().wait() == 0);
    CHECK(served.comes_to_leave_nothing());
}

TEST_CASE("serve: an engine that falls each time is given up, with its reason and exit code 3") {
    const Tuned study;
    study.set_faults({{"", "exit_at_once=7"}});
    Served served(study, {"--restarts", "1"});
    CHECK(served.process().wait() == 3);
    CHECK(served.engines().size() == 2);
    CHECK(says(served.process().err(), "exit code 7"));
    CHECK(served.comes_to_leave_nothing());
}

TEST_CASE("serve: kill -9 leaves no engine, and the next start needs no help") {
    const Tuned study;
    {
        Served served(study);
        REQUIRE(served.comes_to_answer());
        served.process().signal(SIGKILL);
        served.process().wait();
        CHECK(served.comes_to_leave_nothing());
    }
    Served again(study);
    CHECK(again.comes_to_answer());
}

TEST_CASE("serve: it ends at once while an engine starts, and while it waits for the next start") {
    const Tuned study;
    study.set_faults({{"", "slow_start=60"}});
    Served starting(study);
    REQUIRE(comes_true([&] { return starting.engines().size() == 1; }));
    starting.process().signal(SIGINT);
    CHECK(starting.process().wait() == 0);
    CHECK(starting.comes_to_leave_nothing());

    study.set_faults({{"", "exit_at_once"}});
    Served waiting(study);
    REQUIRE(waiting.comes_to_say("starts again in"));
    waiting.process().signal(SIGTERM);
    CHECK(waiting.process().wait() == 0);
    CHECK(waiting.comes_to_leave_nothing());
}

TEST_CASE("serve: a port that is taken is said, also by a server of the same study") {
    const Tuned study;
    Served first(study);
    REQUIRE(first.comes_to_answer());
    const std::string port = std::to_string(first.port());
    const Ran same = ran(study.words("serve", {"--port", port}), study.folder());
    INFO(same.err);
    CHECK(same.code == 3);
    CHECK(says(same.err, "serve-" + port));
    CHECK(first.answers());  // the second one has ended nothing

    const DeployedStudy other;
    REQUIRE(other.run({"--quiet"}).code == 0);
    const Ran taken = ran(other.words("serve", {"--port", port}), other.folder());
    CHECK(taken.code == 3);
    CHECK(says(
        taken.err,
        "port " + port +
            " of 127.0.0.1 is taken: another program listens there; choose another with --port"));
    CHECK(first.answers());
}

TEST_CASE("serve: without a proven gain it serves the default, and a run beside it ends nothing") {
    const DeployedStudy study;
    REQUIRE(study.run({"--quiet", "--trials", "1"}).code == 0);
    Served served(study);
    REQUIRE(served.comes_to_answer());
    CHECK(says(served.engines().front().words, "--max-num-seqs=4"));
    CHECK(study.run({"--quiet", "--trials", "1"}).code == 0);  // ends what earlier runs left
    CHECK(served.answers());
}

TEST_CASE("serve: a study whose trials started nothing here is refused with what to do instead") {
    const TemporaryFolder folder;
    folder.write(
        "paper.yaml",
        "study: paper\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nhardware: h100-sxm\n"
        "workloads: [{workload: w, dataset: {kind: random, input_tokens: 64, output_tokens: 16}, "
        "requests: 8, arrival: "
        "{concurrency: 4}}]\nobjective: {maximize: total_tokens_per_second}\nspace: {max_num_seqs: "
        "{choice: [4, 8], default: 4}}\n"
        "evaluator: {simulate: {}}\nbudget: {trials: 2}\n");
    REQUIRE(autotune({"run", "paper.yaml", "--quiet"}, folder.path()).code == 0);
    const Ran refused = autotune({"serve", "paper.yaml"}, folder.path());
    CHECK(refused.code == 2);
    CHECK(says(refused.err, "the trials of this study started no engine"));
    CHECK(says(refused.err, "`autotune recommend --as KIND`"));
    CHECK(autotune({"serve", "none.yaml"}, folder.path()).code != 0);
    CHECK(says(autotune({"serve", "paper.yaml", "--token-file", "t"}, folder.path()).err,
               "the page is for this machine alone"));
    CHECK(autotune({"serve", "paper.yaml", "--host", "10.0.0.1"}, folder.path()).code == 2);
}
