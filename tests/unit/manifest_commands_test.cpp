// SPDX-License-Identifier: Apache-2.0
// Manifests, and commands that run inside a container.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/detail/interop/published.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<Engine> manifest_engines = shipped_catalogue.engines();

const std::string manifest_figures =
    "```\n============ Serving Benchmark Result ============\nSuccessful requests: 10\nBenchmark duration (s): 9.9\n"
    "==================================================\n```\n";

std::string yaml_fence(const std::string& text) { return "```yaml\n" + text + "```\n"; }
std::string bash_fence(const std::string& text) { return "```bash\n" + text + "\n```\n"; }

/// The only result's command, or why it has none.
std::string started_by(const std::string& document) {
    const auto results = read_published(document + manifest_figures, manifest_engines);
    REQUIRE(results.size() == 1);
    CHECK(results[0].arguments_unknown == results[0].arguments.empty());
    return results[0].not_recognised.empty() ? results[0].arguments : "?" + results[0].not_recognised;
}

}  // namespace

TEST_CASE("published: what a manifest starts is not read, and no older command is taken for it") {
    const std::string launched = "vllm serve org/M-8B -tp 2";
    for (const char* manifest :
         {"spec:\n  containers:\n  - name: vllm\n    image: vllm/vllm-openai\n    args: [--model, org/M-8B]\n",
          "services:\n  llm:\n    image: lmsysorg/sglang\n    command: python3 -m sglang.launch_server --model-path org/M-8B\n",
          "apiVersion: v1\nkind: Pod\nspec:\n  containers: [{command: [vllm, serve, org/M-8B]}]\n"}) {
        INFO(manifest);
        CHECK(started_by(bash_fence(launched) + yaml_fence(manifest)) == "?a manifest of Kubernetes or Docker Compose");
    }
    CHECK(started_by(bash_fence(launched) + bash_fence("kubectl apply -f llm.yaml")) == "?kubectl apply -f llm.yaml");
    CHECK(started_by(bash_fence("kubectl apply -f - <<EOF\nkind: Pod\nEOF")).starts_with("?kubectl apply"));
    CHECK(started_by(bash_fence(launched) + bash_fence("docker compose up -d")) == "?docker compose up -d");
    CHECK(started_by(yaml_fence("kind: Pod\n") + bash_fence(launched)) == launched);
}

TEST_CASE("published: a command that runs inside a container") {
    const std::string launched = "vllm serve org/M-8B -tp 2";
    for (const char* before :
         {"docker exec vllm ", "sudo docker exec -it -w /app vllm ", "kubectl exec -it -n prod llama-server -c vllm -- ",
          "docker compose -f x.yaml exec llm ", "docker-compose exec llm ", "kubectl exec deploy/llm -- nohup "})
        CHECK(started_by(bash_fence(before + launched)) == launched);
    CHECK(started_by(bash_fence("docker exec -e VLLM_USE_V1=1 --env=HF_TOKEN=x llm bash -c \"" + launched + " > log\"")) ==
          "VLLM_USE_V1=1 " + launched);
    // Who goes into a container, looks around or measures there, starts nothing.
    for (const char* after : {"sudo docker exec -it $USER-llm bash", "kubectl exec -it pod -- /bin/sh", "docker exec llm nvidia-smi",
                              "docker exec llm vllm bench serve --model org/M-8B", "docker exec llm /root/perftest.sh",
                              "docker run -v $(pwd)/nginx.conf:/etc/nginx/nginx.conf:ro -d --net=host nginx:1.29"})
        CHECK(started_by(bash_fence(launched) + bash_fence(after)) == launched);
    CHECK(started_by(bash_fence(launched) + bash_fence("docker exec llm ./start.sh")) == "?docker exec llm ./start.sh");
    CHECK(started_by(bash_fence("ARGS=\"--max-num-seqs 64 --enforce-eager\"\nvllm serve org/M-8B $ARGS > log 2>&1 &")) ==
          "vllm serve org/M-8B --max-num-seqs 64 --enforce-eager");
    CHECK(started_by(bash_fence("docker exec a docker exec b " + launched)).starts_with("?docker exec a"));
}
