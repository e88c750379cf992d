// SPDX-License-Identifier: Apache-2.0
// What is wrong with a cluster before the first trial: each its own message. kubectl is a script
// that answers in the words of kubectl 1.37.2, which were seen with a real API server.
#include "deploy/kubernetes_checks.hpp"
#include "support/script.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr const char* answering_kubectl = R"(cd "${0%/*}" && echo "$*" >>asked
case "$*" in
*"version --client"*) cat version ;;
*"config current-context"*) [ -e context ] && cat context || { echo "error: current-context is not set" >&2; exit 1; } ;;
*"config get-contexts"*) printf 'lab\nhome\n' ;;
*"auth can-i"*) [ -e login ] && { cat login >&2; exit 1; }
  while read -r denied; do case "$*" in *"can-i $denied"*) echo no; exit 1 ;; esac; done <denied; echo yes ;;
*"create --dry-run=server"*) cat >manifest; grep -q '"kind":"Pod"' manifest && kind=pod || kind=job
  [ -e "refused-$kind" ] && { cat "refused-$kind" >&2; exit 1; }; echo "$kind/x" ;;
*"get resourcequotas"*) [ -e quotas ] && cat quotas || exit 1 ;;
*"get nodes"*) [ -e nodes ] && cat nodes || { echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1; } ;;
*) echo "error: unknown command" >&2; exit 1 ;;
esac
)";

/// A kubectl in a folder of its own, with a cluster where all is well until a file says otherwise.
class AnsweringCluster {
public:
    AnsweringCluster() {
        options.program = {script(folder_, answering_kubectl, "kubectl").string()};
        options.pod_template =
            R"({"spec": {"containers": [{"name": "engine", "image": "org/engine:1"}]}})";
        options.reach = KubernetesReach::pod;
        options.devices_of_trial = 2;
        set("version",
            R"({"clientVersion": {"major": "1", "minor": "37", "gitVersion": "v1.37.2"}})");
        set("context", "lab\n");
        set("denied", "");
    }
    void set(const std::string& file, const std::string& text) const { folder_.write(file, text); }
    [[nodiscard]] std::string trouble() const {
        return kubernetes_trouble(options, "", std::chrono::milliseconds(0));
    }
    [[nodiscard]] std::vector<std::string> remarks() const { return kubernetes_remarks(options); }
    [[nodiscard]] std::string read(const std::string& file) const {
        std::ifstream stream(folder_.path() / file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    KubernetesOptions options{};

private:
    TemporaryFolder folder_{};
};

}  // namespace

TEST_CASE("kubernetes checks: where all is well, nothing is said and nothing is made") {
    AnsweringCluster cluster;
    cluster.options.context = "lab";
    cluster.options.name_space = "tuning";
    CHECK(cluster.trouble() == "");
    const std::string asked = cluster.read("asked");
    CHECK(has(asked, "--context=lab --namespace=tuning auth can-i create jobs.batch\n"));
    CHECK(has(asked, "auth can-i get pods --subresource=log\n"));
    CHECK_FALSE(has(asked, "portforward"));  // the pod's address is reached
    const auto pod = nlohmann::json::parse(cluster.read("manifest"));
    CHECK(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 2);
    cluster.options.reach = KubernetesReach::forward;
    CHECK(cluster.trouble() == "");
    CHECK(has(cluster.read("asked"), "auth can-i create pods --subresource=portforward\n"));
}

TEST_CASE("kubernetes checks: each thing that is missing has its own message") {
    AnsweringCluster cluster;
    SECTION("kubectl") {
        cluster.options.program = {"no-such-kubectl"};
        CHECK(has(cluster.trouble(), "there is no program 'no-such-kubectl' in $PATH"));
    }
    SECTION("a kubectl that is new enough") {
        cluster.set(
            "version",
            R"({"clientVersion": {"major": "1", "minor": "24+", "gitVersion": "v1.24.3"}})");
        CHECK(cluster.trouble() == "kubectl v1.24.3 is too old: 1.25 or newer wanted");
        cluster.set("version", "what?");
        CHECK(has(cluster.trouble(), "kubectl does not say its version"));
    }
    SECTION("a context") {
        cluster.options.context = "prod";
        CHECK(cluster.trouble() == "kubectl knows no context 'prod'; it knows lab, home");
        cluster.options.context = "";
        std::filesystem::remove(
            std::filesystem::path(cluster.options.program.front()).parent_path() / "context");
        CHECK(has(cluster.trouble(),
                  "kubectl has no current context (current-context is not set): `kubectl config "
                  "use-context NAME`"));
    }
    SECTION("a login") {
        cluster.set("login", "error: You must be logged in to the server (Unauthorized)\n");
        CHECK(has(cluster.trouble(),
                  "does not accept the login of the current context (expired?): log in again"));
        cluster.set("login",
                    "Unable to connect to the server: getting credentials: exec: executable aws "
                    "failed with exit code 255\n");
        CHECK(has(cluster.trouble(), "does not accept the login"));
    }
    SECTION("the API server") {
        cluster.set("login",
                    "The connection to the server 10.0.0.1:6443 was refused - did you specify the "
                    "right host or port?\n");
        CHECK(has(cluster.trouble(),
                  "the API server of the current context does not answer: The connection to the "
                  "server 10.0.0.1:6443"));
    }
    SECTION("rights") {
        cluster.options.name_space = "tuning";
        cluster.set("denied", "delete jobs.batch\nget pods --subresource=log\n");
        CHECK(has(
            cluster.trouble(),
            "may not, in the namespace 'tuning': delete jobs.batch, get pods/log; ask for a Role"));
    }
    SECTION("a namespace") {
        cluster.set("refused-job",
                    "Error from server (NotFound): error when creating \"STDIN\": namespaces "
                    "\"tuning\" not found\n");
        CHECK(has(cluster.trouble(),
                  "there is no such namespace: (NotFound): namespaces \"tuning\" not found"));
    }
    SECTION("a field that the cluster knows") {
        cluster.set(
            "refused-job",
            "Error from server (BadRequest): error when creating \"STDIN\": Job in version \"v1\" "
            "cannot be handled "
            "as a Job: strict decoding error: unknown field \"spec.template.spec.nodeSelctor\"\n");
        CHECK(has(cluster.trouble(), "the template has a field that this cluster does not know"));
        CHECK(has(cluster.trouble(), "spec.template.spec.nodeSelctor"));
    }
    SECTION("room in the quota") {
        cluster.set("refused-pod",
                    "Error from server (Forbidden): error when creating \"STDIN\": pods \"x\" is "
                    "forbidden: exceeded quota: q, "
                    "requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, "
                    "limited: requests.nvidia.com/gpu=1\n");
        CHECK(has(cluster.trouble(), "the quota of its namespace leaves no room for a trial: "));
        CHECK(has(cluster.trouble(), "requested: requests.nvidia.com/gpu=2"));
        cluster.set("denied", "create pods\n");  // then the quotas are read, where that is allowed
        cluster.set("quotas", R"({"items": [{"metadata": {"name": "q"}, "spec": {}, "status": {
            "hard": {"requests.nvidia.com/gpu": "4", "pods": "1"}, "used": {"requests.nvidia.com/gpu": "3"}}}]})");
        CHECK(
            cluster.trouble() ==
            "the quota of its namespace leaves no room for a trial: exceeded quota: q, requested: "
            "requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=3, limited: "
            "requests.nvidia.com/gpu=4");
        cluster.options.devices_of_trial = 1;
        CHECK(cluster.trouble() == "");
        CHECK(has(cluster.remarks().front(), "this login may not create pods"));
    }
    SECTION("a pod that admission takes") {
        cluster.set("refused-pod",
                    "Error from server (Forbidden): error when creating \"STDIN\": pods \"x\" is "
                    "forbidden: no PriorityClass "
                    "with name none was found\n");
        CHECK(has(cluster.trouble(), "the cluster would refuse a trial, made of the template: "));
        CHECK(has(cluster.trouble(), "no PriorityClass with name none was found"));
    }
}

TEST_CASE(
    "kubernetes checks: whether a node fits is a remark, and so is that nodes may not be listed") {
    AnsweringCluster cluster;
    REQUIRE(cluster.remarks().size() == 1);
    CHECK(cluster.remarks().front() ==
          "whether a node fits is seen with the first trial: this login may not list nodes");
    cluster.set("nodes", "n1\t{}\t{\"nvidia.com/gpu\":\"1\"}\t\t\n");
    CHECK(cluster.remarks().front() ==
          "none of the 1 nodes of the cluster would take a trial of 2 nvidia.com/gpu (the largest "
          "has 1): "
          "1 node: too few nvidia.com/gpu; trials wait until one does");
    cluster.set("nodes", "n1\t{}\t{\"nvidia.com/gpu\":\"2\"}\t\t\n");
    CHECK(cluster.remarks().empty());
}
