// SPDX-License-Identifier: Apache-2.0
// Serving commands in manifests of Kubernetes and Docker Compose.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/results/published.hpp"

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

std::string copies_of(const std::string& text, std::size_t times) {
    std::string result;
    for (std::size_t i = 0; i < times; ++i) result += text;
    return result;
}

std::string pod_deployment(const std::string& container, const std::string& count = "1") {
    return "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: " + count + "\n  template:\n    spec:\n      containers:\n" +
           container;
}

}  // namespace

TEST_CASE("published: a container of Kubernetes starts its command, or its image") {
    CHECK(started_by(
              yaml_fence(pod_deployment("      - name: llm\n        command: [vllm, serve]\n        args: [org/M-8B, -tp, \"2\"]\n"))) ==
          "vllm serve org/M-8B -tp 2");
    CHECK(started_by(yaml_fence(pod_deployment("      - image: vllm/vllm-openai:v0.11.0\n        args:\n          - \"--model\"\n"
                                               "          - org/M-8B\n          - --max-num-seqs=64\n          - --dtype auto\n"))) ==
          "vllm serve --model org/M-8B --max-num-seqs=64 --dtype auto");
    CHECK(started_by(yaml_fence("containers:\n- image: own:1\n  command: [\"/bin/sh\", \"-c\"]\n  args: [\"pip install x && vllm serve "
                                "org/M-8B\"]\n")) == "vllm serve org/M-8B");
    CHECK(started_by(yaml_fence("containers:\n- image: own:1\n  command: [/bin/bash, -lc]\n  args:\n  - |\n    set -e\n"
                                "    sglang serve --model-path $NAME \\\n      --tp 4\n  env: [{name: NAME, value: org/M-8B}]\n")) ==
          "NAME=org/M-8B sglang serve --model-path org/M-8B --tp 4");
    // A whole command in one item, as people write it.
    CHECK(started_by(yaml_fence("args:\n- vllm serve org/M-8B --config '{\"a\":1}'\n")) == "vllm serve org/M-8B --config {\"a\":1}");
    CHECK(started_by(yaml_fence("args: [vllm, serve, org/M-8B, '--config {\"a\": 1}']\n")) == "vllm serve org/M-8B --config '{\"a\": 1}'");
    // Further right, in a quotation, without the language, with the line ends of Windows.
    CHECK(started_by("1. So\n\n    ```\n    kind: Pod\n    ---\n    command: [vllm, serve, org/M-8B]\n    ```\n") == "vllm serve org/M-8B");
    CHECK(started_by(yaml_fence("disk: {OWNER}/{NAME}\n---\ncommand: [vllm, serve, org/M-8B]\n")) == "vllm serve org/M-8B");
    CHECK(started_by("> ```yaml\n> kind: Pod\n>\n> command: [vllm, serve, org/M-8B]\n> ```\n") == "vllm serve org/M-8B");
    CHECK(started_by(yaml_fence("kind: Pod\r\ncommand:\r\n- vllm\r\n- serve\r\n- org/M-8B\r\n")) == "vllm serve org/M-8B");
    CHECK(started_by(bash_fence("kubectl apply -f - <<'EOF'\nkind: Pod\ncommand: [vllm, serve, org/M-8B]\nEOF\nkubectl get pods")) ==
          "vllm serve org/M-8B");
    CHECK(started_by(bash_fence("cat > run.sh <<EOF\nvllm serve org/M-8B\nEOF\nbash run.sh")) == "vllm serve org/M-8B");
}

TEST_CASE("published: a container's environment stands in front, without secrets and what the cluster knows") {
    const std::string environment =
        "  env:\n  - name: VLLM_USE_V1\n    value: \"1\"\n  - {name: HF_TOKEN, value: abc}\n  - {name: DB_PASSWORD, value: abc}\n"
        "  - name: KEY\n    valueFrom: {secretKeyRef: {name: s, key: k}}\n  - {name: FOLDER, value: {YOUR_FOLDER}}\n"
        "  - {name: HF_HOME, value: /data}\n";
    CHECK(started_by(yaml_fence("containers:\n- command: [vllm, serve, /w/$(FOLDER), --download-dir, $(HF_HOME), -tp, $(UNSET)]\n" +
                                environment)) ==
          "FOLDER={YOUR_FOLDER} VLLM_USE_V1=1 vllm serve /w/{YOUR_FOLDER} --download-dir /data -tp $(UNSET)");
    // No variable of the machine that reads the document.
    CHECK(started_by(yaml_fence("command: [vllm, serve, \"${HOME}\", -tp, \"${TP:-2}\"]\n")) == "vllm serve ${HOME} -tp ${TP:-2}");
}

TEST_CASE("published: a service of Docker Compose starts its command behind its image's entry point") {
    const auto service = [](const std::string& text) { return yaml_fence("services:\n  llm:\n" + text); };
    const std::string image = "    image: vllm/vllm-openai:latest\n";
    const std::string launched = "vllm serve --model org/M-8B --port 8000";
    CHECK(started_by(service(image + "    command: --model org/M-8B --port 8000\n")) == launched);
    CHECK(started_by(service(image + "    command: >\n      --model org/M-8B\n      --port 8000\n")) == launched);
    CHECK(started_by(service(image + "    command: |\n      --model org/M-8B \\\n      --port 8000\n")) == launched);
    CHECK(started_by(service(image + "    command: [\"--model\", org/M-8B, --port, \"8000\"]\n")) == launched);
    CHECK(started_by(service(image + "    entrypoint: [vllm, serve]\n    command: [--model, org/M-8B, --port, \"8000\"]\n")) == launched);
    CHECK(started_by(service("    image: own:1\n    entrypoint: /bin/sh -c\n    command: \"vllm serve org/M-8B\"\n")) ==
          "vllm serve org/M-8B");
    CHECK(started_by(service("    image: own:1\n    command: bash -c \"vllm serve org/M-8B -tp $$N\"\n    environment: {N: 4, B: }\n")) ==
          "N=4 vllm serve org/M-8B -tp 4");
    CHECK(started_by(service(image +
                             "    command: --model org/M-8B --port 8000\n    environment:\n      - VLLM_USE_V1=1\n      - HF_TOKEN\n" +
                             "  ui:\n    image: web/ui:1\n")) == "VLLM_USE_V1=1 " + launched);
    CHECK(started_by(yaml_fence("x-all: &all\n  image: vllm/vllm-openai:latest\n  environment: [A_B=1]\nservices:\n  one:\n    <<: *all\n"
                                "    command: --model org/M-8B --port 8000\n")) == "A_B=1 " + launched);
}

TEST_CASE("published: a manifest that says no one server's command gives none") {
    const std::string before = bash_fence("vllm serve org/Old-1B");
    const auto two = [&](const std::string& a, const std::string& b) {
        return before + yaml_fence("kind: Pod\ncommand: [" + a + "]\n---\nkind: Pod\ncommand: [" + b + "]\n");
    };
    CHECK(started_by(two("vllm, serve, org/M-8B, -tp, 2", "vllm, serve, org/M-8B, -tp, 4")) ==
          "?several commands: vllm serve org/M-8B -tp 2 | vllm serve org/M-8B -tp 4");
    CHECK(started_by(two("vllm, serve, org/M-8B", "vllm, serve, org/M-8B")) == "vllm serve org/M-8B");
    CHECK(started_by(before + yaml_fence("containers:\n- image: own/engine:1\n  args: [--model, org/M-8B]\n")) ==
          "?image own/engine:1: --model org/M-8B");
    CHECK(started_by(before + yaml_fence(pod_deployment("      - command: [vllm, serve, org/M-8B]\n", "3"))) ==
          "?replicas: 3 of vllm serve org/M-8B");
    CHECK(started_by(before + yaml_fence(pod_deployment("      - command: [vllm, serve, org/M-8B]\n", "3")) +
                     bash_fence("kubectl apply -f llm.yaml")) == "?replicas: 3 of vllm serve org/M-8B");
    CHECK(started_by(before + yaml_fence("services:\n  a:\n    command: vllm serve org/M-8B\n    deploy: {replicas: 2}\n")) ==
          "?replicas: 2 of vllm serve org/M-8B");
    // What measures, or looks after a container, says nothing.
    CHECK(started_by(before + yaml_fence("command: [vllm]\nargs: [bench, serve, --model=org/Old-1B]\n")) == "vllm serve org/Old-1B");
    CHECK(started_by(before + yaml_fence("command: [vllm]\nargs: [bench, serve, --model=org/M-8B]\n")) ==
          "?the benchmark names model org/M-8B, and the command above starts org/Old-1B");
    CHECK(started_by(before +
                     yaml_fence(pod_deployment("      - image: web/ui:1\n        livenessProbe: {exec: {command: [vllm, serve, x]}}\n"))) ==
          "vllm serve org/Old-1B");
    CHECK(started_by(before + yaml_fence("a: {{ .Values.x }}\ncommand: [vllm, serve, org/M-8B]\n")) == "vllm serve org/Old-1B");
}

TEST_CASE("published: hostile manifests neither hang nor stop the reading") {
    const std::string launch = bash_fence("vllm serve org/M-8B");
    std::string bomb = "command: &a [x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c < 'k'; ++c) {
        const std::string last(1, static_cast<char>(c - 1));
        bomb += std::string(1, c) + ": &" + c + " [" + copies_of("*" + last + ", ", 8) + "*" + last + "]\n";
    }
    const std::string wide = "args: &a [" + copies_of("x,", 30'000) + "]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d]\n";
    for (const std::string& text : std::vector<std::string>{
             bomb, wide, "command: " + copies_of("[", 100'000), "command: " + copies_of("{a: ", 20'000),
             copies_of("  ", 30'000) + "command: \"", std::string("command:\n\t- vllm\n"), "command: {},\n{},\n" + bomb,
             "image: x\n" + copies_of("- ", 30'000), "command: [vllm" + copies_of(", a", 400'000) + "]\n",
             "image: x\n" + copies_of("a: &a\n---\n", 6'000), copies_of("cat <<EOF\nargs:\n", 60'000), "? [args:]\n: x\nargs: [a, \"b]\n",
             std::string("args: [a\0b]\n", 12), std::string("args: \xff\n")})
        CHECK(started_by(launch + "```\n" + text + "```\n").starts_with("vllm serve org/M-8B"));
}

TEST_CASE("published: kubectl apply and docker compose up start the manifest above, and no older command") {
    const std::string manifest = yaml_fence("kind: Pod\ncommand: [vllm, serve, org/M-8B]\n");
    const std::string apply = bash_fence("kubectl apply -f llm.yaml");
    CHECK(started_by(manifest + apply + bash_fence("kubectl exec -it client -- /bin/sh")) == "vllm serve org/M-8B");
    CHECK(started_by(manifest + bash_fence("docker compose up -d")) == "vllm serve org/M-8B");
    CHECK(started_by(bash_fence("vllm serve org/Old-1B") + apply) == "?kubectl apply -f llm.yaml");
    CHECK(started_by(manifest + bash_fence("kubectl apply -f llm.yaml\n./start.sh --model org/M-8B")) == "?./start.sh --model org/M-8B");
    const auto results = read_published(
        manifest + apply + manifest_figures + "## Next\n" + bash_fence("kubectl apply -f other.yaml") + manifest_figures + manifest_figures,
        manifest_engines);
    REQUIRE(results.size() == 3);
    CHECK(results[0].arguments == "vllm serve org/M-8B");
    CHECK(results[1].not_recognised == "kubectl apply -f other.yaml");
    CHECK(results[2].not_recognised == "kubectl apply -f other.yaml");
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
