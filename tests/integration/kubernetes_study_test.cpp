// SPDX-License-Identifier: Apache-2.0
// Whole studies whose trials are pods of a cluster that is a folder, so in every run of the tests;
// tests/integration/cluster_study_test.cpp has them on a real one.
#include "base/files.hpp"
#include "support/deployed_study.hpp"
#include "support/fake_cluster.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <nlohmann/json.hpp>

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
    explicit StudyInFolder(const FakeCluster& cluster, const std::string& reach = "pod")
        : study_(text(cluster, reach)) {
        write_file(study_.folder() / "pod.json", cluster.options().pod_template);
    }
    [[nodiscard]] const DeployedStudy& study() const { return study_; }
    [[nodiscard]] std::size_t told() const {
        try {
            const std::vector<Trial> trials = study_.trials();
            return static_cast<std::size_t>(std::count_if(
                trials.begin(), trials.end(), [](const Trial& one) { return one.told(); }));
        } catch (const Error&) {
            return 0;  // no journal yet
        }
    }

private:
    static DeployedStudy::Text text(const FakeCluster& cluster, const std::string& reach) {
        const KubernetesOptions options = cluster.options();
        DeployedStudy::Text result;
        result.deploy = "kubernetes: {template: pod.json, devices: \"\", reach: " + reach +
                        ", program: [\"" + options.program[0] + "\", \"" + options.program[1] +
                        "\"]}, ready_within: 20s, stop_within: 2s, stall_timeout: 10s, "
                        "trial_within: 60s, warm_up: 1, "
                        "environment: {SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", "
                        "SERVETUNE_SEARCH_SPACES: "
                        "\"" SERVETUNE_SOURCE "/search_spaces\", PATH: \"" +
                        cluster.programs_of_pods() + ":/usr/local/bin:/usr/bin:/bin\"}";
        return result;
    }
    const DeployedStudy study_;
};

}  // namespace

TEST_CASE(
    "kubernetes study: killed with -9 in the middle it goes on, nothing is left, and the best is "
    "found") {
    const FakeCluster cluster;
    const StudyInFolder in_folder(cluster);
    const DeployedStudy& study = in_folder.study();
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    std::vector<Trial> before;
    {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        const bool began =
            comes_true([&] { return in_folder.told() >= 1 || process.wait_at_most(0ms); }, 60);
        INFO(process.err());
        REQUIRE(began);
        const std::size_t trials = study.engines().size();
        CHECK(comes_true(
            [&] { return study.engines().size() > trials || process.wait_at_most(0ms); }, 60));
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

TEST_CASE(
    "kubernetes study: what a client that was killed too has left is ended at the next start") {
    const FakeCluster cluster;
    const StudyInFolder in_folder(cluster, "forward");
    const DeployedStudy& study = in_folder.study();
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        const bool began =
            comes_true([&] { return !study.engines().empty() || process.wait_at_most(0ms); }, 60);
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
    CHECK(read_file(study.directory() / "report.md").find("through the API server") !=
          std::string::npos);
}

TEST_CASE(
    "kubernetes study: what no trial can start with ends the run at the first, with what to mend") {
    const FakeCluster cluster;
    const StudyInFolder in_folder(cluster);
    const DeployedStudy& study = in_folder.study();
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    cluster.set("waiting", "InvalidImageName");
    const Ran stopped = study.run();
    INFO(stopped.out << stopped.err);
    CHECK(stopped.code == 3);
    CHECK(has(stopped.err, "its image has no valid name"));
    CHECK(has(stopped.err, "mend `image` of the template"));
    CHECK_FALSE(has(stopped.err, "tried again"));
    CHECK(in_folder.told() == 0);
    CHECK(cluster.jobs().empty());
    std::size_t made = 0;
    const std::string calls = cluster.content("calls");
    for (auto at = calls.find("create --v"); at != std::string::npos;
         at = calls.find("create --v", at + 1))
        ++made;
    CHECK(made == 1);
    cluster.unset("waiting");
    CHECK(study.run().code == 0);  // the trial is still to be made
}

TEST_CASE(
    "kubernetes study: one whose cluster does not answer is shown, and then the cluster's fault") {
    const FakeCluster cluster;
    const StudyInFolder in_folder(cluster);
    const DeployedStudy& study = in_folder.study();
    cluster.set("down");
    const Ran shown = autotune({"validate", "study.yaml", "--no-installed"}, study.folder());
    INFO(shown.out << shown.err);
    CHECK(shown.code == 3);
    CHECK(has(shown.out, "3 feasible configurations"));
    CHECK(has(shown.err, "The connection to the server 192.0.2.1:6443 was refused"));
    const Ran told =
        autotune({"validate", "study.yaml", "--no-installed", "--json"}, study.folder());
    CHECK(told.code == 3);
    const auto object = nlohmann::json::parse(told.out);
    CHECK(object["valid"] == false);
    CHECK(object["size"] == 3);
    CHECK(has(object["error"].get<std::string>(), "192.0.2.1:6443"));
    cluster.unset("down");
    CHECK(autotune({"validate", "study.yaml", "--no-installed"}, study.folder()).code == 0);
}
