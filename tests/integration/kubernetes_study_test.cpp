// SPDX-License-Identifier: Apache-2.0
// Whole studies whose trials are pods of a cluster that is a folder, so in every run of the tests;
// tests/integration/cluster_study_test.cpp has them on a real one.
#include "base/files.hpp"
#include "support/deployed_study.hpp"
#include "support/fake_cluster.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <variant>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// Three configurations; the engine is the study's own `vllm` in a pod that is a process.
class StudyInFolder {
public:
    explicit StudyInFolder(const FakeCluster& cluster, const std::string& reach = "pod") : study_(text(cluster, reach)) {
        write_file(study_.folder() / "pod.json", cluster.options().pod_template);
    }
    [[nodiscard]] const DeployedStudy& study() const { return study_; }
    [[nodiscard]] std::size_t told() const {
        try {
            const std::vector<Trial> trials = study_.trials();
            return static_cast<std::size_t>(std::count_if(trials.begin(), trials.end(), [](const Trial& one) { return one.told(); }));
        } catch (const Error&) {
            return 0;  // no journal yet
        }
    }

private:
    static DeployedStudy::Text text(const FakeCluster& cluster, const std::string& reach) {
        const KubernetesOptions options = cluster.options();
        DeployedStudy::Text result;
        result.deploy = "kubernetes: {template: pod.json, devices: \"\", reach: " + reach + ", program: [\"" + options.program[0] +
                        "\", \"" + options.program[1] +
                        "\"]}, ready_within: 20s, stop_within: 2s, stall_timeout: 10s, trial_within: 60s, warm_up: 1, "
                        "environment: {SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", SERVETUNE_SEARCH_SPACES: "
                        "\"" SERVETUNE_SOURCE "/search_spaces\", PATH: \"" +
                        cluster.programs_of_pods() + ":/usr/local/bin:/usr/bin:/bin\"}";
        return result;
    }
    const DeployedStudy study_;
};

}  // namespace

TEST_CASE("kubernetes study: killed with -9 in the middle it goes on, nothing is left, and the best is found") {
    const FakeCluster cluster;
    const StudyInFolder in_folder(cluster);
    const DeployedStudy& study = in_folder.study();
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    std::vector<Trial> before;
    {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        const bool began = comes_true([&] { return in_folder.told() >= 1 || process.wait_at_most(0ms); }, 60);
        INFO(process.err());
        REQUIRE(began);
        const std::size_t trials = study.engines().size();
        CHECK(comes_true([&] { return study.engines().size() > trials || process.wait_at_most(0ms); }, 60));
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(5s));
        before = study.trials();
    }
    // Its client ends the pod by itself.
    CHECK(comes_true([&] { return cluster.jobs().empty(); }, 20));
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.find("--max-num-seqs=32") != std::string::npos);
    const std::vector<Trial> trials = study.trials();
    REQUIRE(trials.size() >= before.size());
    for (const Trial& trial : before)
        if (trial.told()) CHECK(trials[trial.id].outcome == trial.outcome);
    CHECK(cluster.jobs().empty());
    CHECK(study.left().empty());
}

TEST_CASE("kubernetes study: what a client that was killed too has left is ended at the next start") {
    const FakeCluster cluster;
    const StudyInFolder in_folder(cluster, "forward");
    const DeployedStudy& study = in_folder.study();
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        const bool began = comes_true([&] { return !study.engines().empty() || process.wait_at_most(0ms); }, 60);
        INFO(process.err());
        REQUIRE(began);
        // The client first, which would delete its job, while the tuner cannot answer to that.
        REQUIRE(::kill(process.id(), SIGSTOP) == 0);
        for (const Leftover& one : leftovers(study.mark())) (void)::kill(one.id, SIGKILL);
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(5s));
    }
    CHECK(cluster.jobs().size() == 1);
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(cluster.jobs().empty());
    CHECK(study.left().empty());
    CHECK(cluster.content("calls").find("port-forward pod/") != std::string::npos);
    CHECK(read_file(study.directory() / "report.md").find("through the API server") != std::string::npos);
}
