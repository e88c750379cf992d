// SPDX-License-Identifier: Apache-2.0
#include "interop/deploy_edit.hpp"

#include "support/test.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::filesystem::path spaces_of_deploys =
    std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces";

/// What a study recommends that tuned these parameters.
DeployWish wish_for(std::vector<std::string> flags,
                    std::map<std::string, std::string> environment = {}, std::int64_t gpus = 0) {
    DeployWish wish;
    static const Engine engine = Catalogue(spaces_of_deploys).engine("vllm");
    static const auto reader =
        std::make_shared<const CommandReader>(std::vector{engine}, spaces_of_deploys);
    wish.engine = engine;
    wish.reader = reader;
    wish.flags = std::move(flags);
    wish.environment = std::move(environment);
    wish.gpus = gpus;
    wish.tuned = {"max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching",
                  "tensor_parallel_size", "--speculative-config"};
    return wish;
}

const DeployWish more_seqs = wish_for({"--max-num-seqs=512"});

DeployEdit edited(const std::string& text, const DeployWish& wish = more_seqs,
                  const std::string& name = "deploy.yaml", std::size_t which = 0) {
    const DeployFile file = read_deploy_file(text, name, wish.engine);
    REQUIRE(which < file.commands.size());
    return edit_deploy_file(file, file.commands[which], wish, name);
}

const std::string compose = R"(# ours
services:
  chat:   # the engine
    image: "vllm/vllm-openai:v0.20.0"
    command:
      - --model=Qwen/Qwen3-8B   # its model
      - --max-num-seqs=64       # small

      # keep the cache on
      - '--api-key=abcdef-12345'
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
  web:
    image: nginx
    command: [nginx, -g, "daemon off;"]
)";

const std::string pod = R"(apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
  - name: engine
    image: registry.local/mine:1
    command: ["vllm", "serve", 'Qwen/Qwen3-8B']
    args: ["--max-num-seqs", "64", "--port", "8000"]
    resources:
      limits: {nvidia.com/gpu: "1"}
  - name: logs
    image: fluentd
    args: [-c, /etc/fluentd.conf]
)";

const std::string unit = R"([Unit]
Description=an engine

[Service]
Environment="HF_HOME=/srv/hub"
# the command
ExecStart=/opt/vllm/bin/vllm serve Qwen/Qwen3-8B \
    --max-num-seqs 64 \
    # a comment between its lines
    --port 8000
Restart=always
)";

const std::string script = R"(#!/bin/bash
set -e
export VLLM_LOGGING_LEVEL=INFO
echo "vllm serve is next"   # no command
cat <<EOF
vllm serve other --max-num-seqs 1
EOF
exec vllm serve "$MODEL" \
    --max-num-seqs 64 \
    --host 0.0.0.0 > log.txt 2>&1
)";

const std::string helm = R"(servingEngineSpec:
  modelSpec:
  - name: "chat"
    requestGPU: 1
    engineConfig:
      enablePrefixCaching: true
      maxModelLen: 4096
      extraArgs: ["--max-num-seqs", "64"]
)";

}  // namespace

TEST_CASE("deploy file: an item of a block list changes, and nothing else of compose") {
    const DeployEdit edit = edited(compose);
    CHECK(edit.unsafe.empty());
    CHECK(edit.text == replaced(compose, "--max-num-seqs=64 ", "--max-num-seqs=512 "));
}

TEST_CASE("deploy file: a flag is added behind the last known one, in the file's own form") {
    const DeployEdit edit =
        edited(compose, wish_for({"--max-num-seqs=64", "--max-num-batched-tokens=8192"}));
    CHECK(edit.text ==
          replaced(compose, "'--api-key=abcdef-12345'\n",
                   "'--api-key=abcdef-12345'\n      - '--max-num-batched-tokens=8192'\n"));
    const DeployEdit words =
        edited(pod, wish_for({"--max-num-seqs=64", "--max-num-batched-tokens=8192"}));
    CHECK(words.text ==
          replaced(pod, "\"8000\"]", "\"8000\", \"--max-num-batched-tokens\", \"8192\"]"));
}

TEST_CASE("deploy file: a flag that the study left out is removed with its value") {
    CHECK(edited(compose, wish_for({})).text ==
          replaced(compose, "      - --max-num-seqs=64       # small\n", ""));
    CHECK(edited(pod, wish_for({})).text == replaced(pod, "\"--max-num-seqs\", \"64\", ", ""));
    CHECK(edited(script, wish_for({}), "start.sh").text ==
          replaced(script, " \\\n    --max-num-seqs 64", ""));
    CHECK(edited(unit, wish_for({}), "chat.service").text ==
          replaced(unit, " \\\n    --max-num-seqs 64", ""));
}

TEST_CASE("deploy file: what is as recommended is left alone, byte by byte") {
    for (const std::string& text : {compose, pod})
        CHECK(edited(text, wish_for({"--max-num-seqs=64"})).text == text);
    const DeployWish wish = wish_for(
        {"--max-num-seqs=512", "--max-num-batched-tokens=8192", "--no-enable-prefix-caching"},
        {{"VLLM_USE_X", "1"}});
    for (const auto& [text, name] :
         {std::pair(compose, "a.yaml"), {pod, "b.yaml"}, {unit, "c.service"}, {script, "d.sh"}}) {
        const std::string once = edited(text, wish, name).text;
        CHECK(!once.empty());
        CHECK(edited(once, wish, name).text == once);
    }
}

TEST_CASE("deploy file: numbers with a suffix and other spellings of a flag say the same") {
    const DeployWish wish = wish_for({"--max-num-batched-tokens=8192"});
    CHECK(edited(replaced(pod, "\"--max-num-seqs\", \"64\"", "--max_num_batched_tokens=8K"), wish)
              .difference.changes.empty());
    const DeployEdit edit =
        edited(replaced(pod, "\"--max-num-seqs\", \"64\"", "--max_num_batched_tokens=4K"), wish);
    CHECK(edit.text.find("--max_num_batched_tokens=8192") != std::string::npos);
}

TEST_CASE("deploy file: a switch gives way to its opposite") {
    const std::string text =
        replaced(compose, "--max-num-seqs=64       # small", "--enable-prefix-caching");
    CHECK(edited(text, wish_for({"--no-enable-prefix-caching"})).text ==
          replaced(text, "--enable-prefix-caching", "--no-enable-prefix-caching"));
}

TEST_CASE("deploy file: JSON is compared as JSON and written in the quotes of its place") {
    const std::string text =
        replaced(script, "--max-num-seqs 64",
                 "--speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": 2}'");
    CHECK(
        edited(text,
               wish_for({R"(--speculative-config={"num_speculative_tokens":2,"method":"ngram"})"}),
               "s.sh")
            .text == text);
    const DeployEdit edit = edited(
        text, wish_for({R"(--speculative-config={"method":"ngram","num_speculative_tokens":5})"}),
        "s.sh");
    CHECK(edit.unsafe.empty());
    CHECK(edit.text.find(
              R"(--speculative-config '{"method":"ngram","num_speculative_tokens":5}' \)") !=
          std::string::npos);
    const DeployEdit item =
        edited(compose,
               wish_for({"--max-num-seqs=64",
                         R"(--speculative-config={"method":"ngram","num_speculative_tokens":5})"}));
    CHECK(item.unsafe.empty());
    CHECK(item.text.find(
              R"(- '--speculative-config={"method":"ngram","num_speculative_tokens":5}')") !=
          std::string::npos);
}

TEST_CASE("deploy file: a unit of systemd, its comments and its continuation lines") {
    const DeployEdit edit =
        edited(unit, wish_for({"--max-num-seqs=512"}, {{"VLLM_USE_X", "1"}}), "chat.service");
    CHECK(edit.unsafe.empty());
    CHECK(edit.text == replaced(replaced(unit, "--max-num-seqs 64", "--max-num-seqs 512"),
                                "# the command", "Environment=VLLM_USE_X=1\n# the command"));
}

TEST_CASE(
    "deploy file: a script's only command is found between comments, words and here-documents") {
    const DeployEdit edit = edited(script, more_seqs, "start.sh");
    CHECK(edit.unsafe.empty());
    CHECK(edit.text == replaced(script, "--max-num-seqs 64", "--max-num-seqs 512"));
    CHECK(edited(script, wish_for({"--max-num-seqs=64"}, {{"VLLM_LOGGING_LEVEL", "ERROR"}}), "s")
              .text == replaced(script, "LEVEL=INFO", "LEVEL=ERROR"));
}

TEST_CASE("deploy file: flags in an array or a variable of the script change where they stand") {
    const std::string array =
        "#!/bin/bash\nARGS=(\n  --max-num-seqs 64  # small\n  --port 8000\n)\nvllm serve m "
        "\"${ARGS[@]}\"\n";
    CHECK(edited(array, more_seqs, "s.sh").text == replaced(array, "64", "512"));
    const std::string variable =
        "#!/bin/sh\nEXTRA=\"--max-num-seqs 64\"\nvllm serve m --port 8000 $EXTRA\n";
    CHECK(edited(variable, more_seqs, "s.sh").text == replaced(variable, "64", "512"));
}

TEST_CASE("deploy file: a script in sh -c of a pod, of compose and of a unit") {
    const std::string literal = replaced(pod, R"(    command: ["vllm", "serve", 'Qwen/Qwen3-8B']
    args: ["--max-num-seqs", "64", "--port", "8000"])",
                                         R"(    command: [sh, -c]
    args:
    - |
      set -e
      # starts it
      exec vllm serve Qwen/Qwen3-8B \
        --max-num-seqs 64 \
        --port $PORT)");
    const DeployEdit edit = edited(literal);
    CHECK(edit.unsafe.empty());
    CHECK(edit.text == replaced(literal, "--max-num-seqs 64", "--max-num-seqs 512"));
    const std::string folded =
        "services:\n  chat:\n    image: mine\n    command: >-\n      bash -c 'vllm serve m\n      "
        "--max-num-seqs 64'\n";
    CHECK(edited(folded).text == replaced(folded, "64", "512"));
    const std::string of_unit =
        "[Service]\nExecStart=/bin/bash -c \"vllm serve m --max-num-seqs 64\"\n";
    CHECK(edited(of_unit, more_seqs, "x.service").text == replaced(of_unit, "64", "512"));
}

TEST_CASE("deploy file: a text of compose keeps its lines, and its image says the engine") {
    const std::string text =
        "services:\n  chat:\n    image: vllm/vllm-openai\n    command: >\n      --model m\n      "
        "--port 8000\n";
    const DeployEdit edit = edited(text);
    CHECK(edit.text == text + "      --max-num-seqs 512\n");
}

TEST_CASE("deploy file: values of Helm, as keys and as a list of further words") {
    const DeployEdit edit = edited(
        helm,
        wish_for({"--max-num-seqs=512", "--no-enable-prefix-caching", "--tensor-parallel-size=2"},
                 {}, 2));
    CHECK(edit.unsafe.empty());
    CHECK(edit.text ==
          replaced(replaced(replaced(helm, "\"64\"", "\"512\", \"--tensor-parallel-size\", \"2\""),
                            "enablePrefixCaching: true", "enablePrefixCaching: false"),
                   "requestGPU: 1", "requestGPU: 2"));
    const std::string keys = "llm:\n  engine_kwargs:\n    max_num_seqs: 64\n    dtype: auto\n";
    CHECK(edited(keys, wish_for({"--max-num-seqs=512", "--max-num-batched-tokens=8192"})).text ==
          "llm:\n  engine_kwargs:\n    max_num_seqs: 512\n    dtype: auto\n    "
          "max_num_batched_tokens: 8192\n");
}

TEST_CASE("deploy file: the variable by which a platform takes flags") {
    const std::string text = R"(kind: LLMInferenceService
metadata: {name: chat}
spec:
  template:
    containers:
    - name: main
      env:
      - name: VLLM_ADDITIONAL_ARGS
        value: "--max-num-seqs=64 --tool-call-parser 'a b'"
)";
    const DeployEdit edit = edited(
        text,
        wish_for({"--max-num-seqs=512", "--max-num-batched-tokens=8192"}, {{"VLLM_USE_X", "on"}}));
    CHECK(edit.unsafe.empty());
    CHECK(edit.text == replaced(replaced(text, "seqs=64", "seqs=512"), "'a b'\"\n",
                                "'a b' --max-num-batched-tokens=8192\"\n      - name: VLLM_USE_X\n "
                                "       value: \"on\"\n"));
}

TEST_CASE("deploy file: the number of GPUs follows the layout where one place says it") {
    const DeployWish two = wish_for({"--max-num-seqs=64", "--tensor-parallel-size=2"}, {}, 2);
    CHECK(edited(pod, two).text.find("nvidia.com/gpu: \"2\"") != std::string::npos);
    CHECK(edited(compose, two).text.find("count: 2,") != std::string::npos);
    const DeployEdit none = edited(
        replaced(pod, "      limits: {nvidia.com/gpu: \"1\"}\n", "      limits: {cpu: 1}\n"), two);
    CHECK(none.unsafe.empty());
    CHECK(none.difference.by_hand ==
          std::vector<std::string>{
              "GPUs: the command takes 2; the file says nowhere how many it gets"});
    CHECK(edited(replaced(compose, "count: 1", "count: all"), two).difference.by_hand.size() == 1);
}

TEST_CASE("deploy file: variables are changed, added to a list, or get a list") {
    const DeployWish wish = wish_for({"--max-num-seqs=64"}, {{"VLLM_USE_X", "1"}});
    const std::string mapping = replaced(
        compose, "    command:\n", "    environment:\n      VLLM_USE_X: 0   # off\n    command:\n");
    CHECK(edited(mapping, wish).text == replaced(mapping, "X: 0 ", "X: 1 "));
    const std::string list =
        replaced(compose, "    command:\n", "    environment: \n      - A=b\n    command:\n");
    CHECK(edited(list, wish).text ==
          replaced(list, "- A=b\n", "- A=b\n      - \"VLLM_USE_X=1\"\n"));
    CHECK(edited(compose, wish).text ==
          replaced(compose, "    command:\n",
                   "    environment:\n      VLLM_USE_X: \"1\"\n    command:\n"));
    const std::string docker = "#!/bin/sh\ndocker run --rm vllm/vllm-openai:v1 --max-num-seqs 64\n";
    CHECK(edited(docker, wish, "r.sh").text == replaced(docker, "run", "run -e VLLM_USE_X=1"));
}

TEST_CASE("deploy file: a byte order mark, CRLF, tabs and a missing last line end stay") {
    std::string text = "\xEF\xBB\xBF";
    for (const char c : compose) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    text.resize(text.size() - 2);
    const DeployEdit edit =
        edited(text, wish_for({"--max-num-seqs=512", "--max-num-batched-tokens=8192"}));
    CHECK(edit.unsafe.empty());
    CHECK(edit.text == replaced(replaced(text, "=64 ", "=512 "), "12345'\r\n",
                                "12345'\r\n      - '--max-num-batched-tokens=8192'\r\n"));
    const std::string tabs = "#!/bin/sh\nvllm serve m \\\n\t--max-num-seqs 64";
    CHECK(edited(tabs, wish_for({"--max-num-seqs=512", "--max-num-batched-tokens=1"}), "s").text ==
          "#!/bin/sh\nvllm serve m \\\n\t--max-num-seqs 512 \\\n\t--max-num-batched-tokens 1");
}

TEST_CASE("deploy file: what only the place of the run knows is not changed") {
    const std::string value = replaced(compose, "--max-num-seqs=64", "--max-num-seqs=${SEQS}");
    CHECK(edited(value).unsafe.find("known only where it runs") != std::string::npos);
    CHECK(edited(value).text.empty());
    CHECK(!edited(replaced(script, "64", "${SEQS:-64}"), more_seqs, "s.sh").unsafe.empty());
    CHECK(!edited(replaced(unit, "64", "%i"), more_seqs, "s.service").unsafe.empty());
    // A template elsewhere does not matter.
    CHECK(edited(replaced(compose, "Qwen/Qwen3-8B ", "${MODEL:-a b} ")).unsafe.empty());
}

TEST_CASE("deploy file: a value that the file would expand is not written") {
    CHECK(!edited(compose, wish_for({"--max-num-seqs=$HOME"})).unsafe.empty());
}

TEST_CASE("deploy file: several engines have names, and the others stay") {
    const std::string two = compose +
                            "  mail:\n    image: vllm/vllm-openai:v0.20.0\n    command: [--model, "
                            "m, --max-num-seqs, \"8\"]\n";
    const DeployFile file = read_deploy_file(two, "x.yaml", more_seqs.engine);
    REQUIRE(file.commands.size() == 2);
    CHECK(file.commands[0].label == "chat");
    CHECK(file.commands[1].label == "mail");
    CHECK(edited(two, more_seqs, "x.yaml", 1).text == replaced(two, "\"8\"", "\"512\""));
}

TEST_CASE("deploy file: documents of one file are told apart") {
    const std::string other =
        replaced(replaced(pod, "name: chat", "name: other"), "\"64\"", "\"32\"");
    const std::string both = pod + "---\n" + other;
    const DeployFile file = read_deploy_file(both, "x.yaml", more_seqs.engine);
    REQUIRE(file.commands.size() == 2);
    CHECK(file.commands[1].label == "Pod/other/engine");
    CHECK(edited(both, more_seqs, "x.yaml", 1).text ==
          pod + "---\n" + replaced(other, "\"32\"", "\"512\""));
}

TEST_CASE("deploy file: anchors that other places use are not changed") {
    const std::string list =
        "services:\n  a:\n    image: vllm/vllm-openai\n    command: &c [--max-num-seqs, \"64\"]\n  "
        "b:\n    image: vllm/vllm-openai\n    "
        "command: *c\n";
    CHECK(edited(list).unsafe.find("anchor") != std::string::npos);
    const std::string merged =
        "x-base: &base\n  image: vllm/vllm-openai\n  command: [--max-num-seqs, "
        "\"64\"]\nservices:\n  a:\n    <<: *base\n";
    CHECK(!edited(merged).unsafe.empty());
    const std::string item =
        "x-n: &n \"64\"\nservices:\n  a:\n    image: vllm/vllm-openai\n    command: "
        "[--max-num-seqs, *n]\n";
    CHECK(!edited(item).unsafe.empty());
    // An anchor that nobody uses, and one elsewhere, do no harm.
    const std::string own =
        "services:\n  a: &a\n    image: vllm/vllm-openai\n    command: [--max-num-seqs, !!str "
        "\"64\"]\n    labels: &l {x: y}\n    "
        "annotations: *l\n";
    CHECK(edited(own).text == replaced(own, "\"64\"", "\"512\""));
}

TEST_CASE("deploy file: what is no file of these kinds is refused") {
    const auto refused = [](const std::string& text, const std::string& name) {
        return message_of<ParseError>(
            [&] { (void)read_deploy_file(text, name, more_seqs.engine); });
    };
    CHECK(refused("a: 1\na: 2\n", "x.yaml").find("stands twice") != std::string::npos);
    CHECK(refused("a: [1\n", "x.yaml").find("line ") == 0);
    CHECK(refused("{{ if .Values.x }}\nkind: Pod\n{{ end }}\n", "x.yaml").find("template") !=
          std::string::npos);
    CHECK(refused(std::string(200, '[') + std::string(200, ']'), "x.yaml").find("deeper") !=
          std::string::npos);
    CHECK(refused(std::string((1U << 20U) + 1, 'a'), "x").find("1 MiB") != std::string::npos);
    CHECK(refused("#!/bin/sh\nvllm serve 'm\n", "x.sh").find("quote") != std::string::npos);
    CHECK(refused(std::string("a\0b", 3), "x.sh").find("zero byte") != std::string::npos);
    CHECK(read_deploy_file("a: 1\n", "x.yaml", more_seqs.engine).commands.empty());
    CHECK(read_deploy_file("#!/bin/sh\npkill -f 'vllm serve'\necho vllm serve m\n", "x.sh",
                           more_seqs.engine)
              .commands.empty());
}

TEST_CASE("deploy file: aliases do not make a small file large") {
    std::string bomb = "a0: &a0 [x, x]\n";
    for (int i = 1; i < 40; ++i)
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
                std::to_string(i - 1) + ", *a" + std::to_string(i - 1) + "]\n";
    CHECK(edited(bomb + compose).text == bomb + replaced(compose, "=64 ", "=512 "));
}

TEST_CASE("deploy file: any beginning of a file is read or refused") {
    for (const auto& [text, name] : {std::pair(compose, "a.yaml"),
                                     {pod, "b.yaml"},
                                     {unit, "c.service"},
                                     {script, "d.sh"},
                                     {helm, "e.yaml"}})
        for (std::size_t length = 0; length <= text.size(); length += 3) {
            try {
                const DeployFile file =
                    read_deploy_file(text.substr(0, length), name, more_seqs.engine);
                for (const DeployCommand& command : file.commands) {
                    const DeployEdit edit = edit_deploy_file(file, command, more_seqs, name);
                    CHECK((!edit.unsafe.empty() || edit.text.find("512") != std::string::npos));
                }
            } catch (const ParseError&) {
                SUCCEED();
            }
        }
}

TEST_CASE(
    "deploy file: risks are named: what was not measured, another model, arguments of the study") {
    const std::string text = replaced(compose, "'--api-key=abcdef-12345'", "--kv-cache-dtype=fp8");
    DeployWish wish = wish_for({"--max-num-seqs=512", "--max-model-len=8192"});
    wish.model = "Qwen/Qwen3-14B";
    const std::vector<std::string> risks = edited(text, wish).difference.risks;
    CHECK(risks == std::vector<std::string>{
                       "--max-model-len=8192 is an argument of the study, not a result of it: see "
                       "that you want it.",
                       "The file has --kv-cache-dtype=fp8, which the study did not measure.",
                       "The file serves Qwen/Qwen3-8B; the study measured Qwen/Qwen3-14B."});
}

TEST_CASE(
    "deploy file: another checkpoint of the study is written into the file, whose other models are "
    "for a person") {
    DeployWish wish = wish_for({"--max-num-seqs=64"});
    wish.model = "Qwen/Qwen3-8B-FP8";
    wish.other_models = {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B-AWQ"};
    for (const std::string& text :
         {compose, pod, replaced(pod, "'Qwen/Qwen3-8B'", "--model, 'Qwen/Qwen3-8B'")}) {
        const DeployEdit edit = edited(text, wish);
        CHECK(edit.unsafe.empty());
        CHECK(edit.text == replaced(text, "Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8"));
        REQUIRE(edit.difference.changes.size() == 1);
        CHECK(edit.difference.changes.front().name == "model");
        CHECK(edit.difference.risks.back() ==
              "Clients that ask for Qwen/Qwen3-8B by name have to ask for Qwen/Qwen3-8B-FP8.");
        CHECK(edited(edit.text, wish).difference.changes.empty());
    }
    const std::string named =
        replaced(pod, "\"--port\", \"8000\"", "\"--served-model-name\", \"chat\"");
    CHECK(edited(named, wish).difference.risks.empty());
    const auto by_hand = [&](const std::string& text, const std::string& name) {
        return edited(text, wish, name).difference.by_hand;
    };
    CHECK(by_hand(script, "d.sh") ==
          std::vector<std::string>{"the model: $MODEL; recommended: Qwen/Qwen3-8B-FP8"});
    CHECK(by_hand(helm, "e.yaml") ==
          std::vector<std::string>{
              "the model: the command names none; recommended: Qwen/Qwen3-8B-FP8"});
    CHECK(by_hand(replaced(pod, "Qwen/Qwen3-8B", "/srv/mine"), "p.yaml") ==
          std::vector<std::string>{
              "the model: the file serves /srv/mine; recommended: Qwen/Qwen3-8B-FP8"});
}

TEST_CASE("deploy file: the same flag twice counts as its last, and both go when it is removed") {
    const std::string text = replaced(pod, "\"--port\", \"8000\"", "\"--max-num-seqs\", \"128\"");
    CHECK(edited(text).text == replaced(text, "\"128\"", "\"512\""));
    CHECK(edited(replaced(pod, "\"--port\"", "\"--max-num-seqs=7\", \"--port\""), wish_for({}))
              .unsafe.empty());
    CHECK(edited(replaced(pod, "\"--port\"", "\"--max-num-seqs=7\", \"--port\""), wish_for({}))
              .text == replaced(pod, "\"--max-num-seqs\", \"64\", ", ""));
}

TEST_CASE("deploy file: a script in a ConfigMap") {
    const std::string text =
        "kind: ConfigMap\nmetadata: {name: run}\ndata:\n  run.sh: |\n    #!/bin/sh\n    vllm serve "
        "m --max-num-seqs 64\n  other: |\n    "
        "it's text\n";
    CHECK(edited(text).text == replaced(text, "64", "512"));
}

TEST_CASE(
    "deploy file: the diff has three lines of context and says where a last line end is missing") {
    CHECK(unified_diff("a\nb\nc\nd\ne\nf", "a\nb\nc\nd\nE\nf", "x") ==
          "--- a/x\n+++ b/x\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n+E\n f\n\\ No newline at end of "
          "file\n");
    CHECK(unified_diff("a\n", "a\n", "x").empty());
    CHECK(unified_diff("", "a\n", "x") == "--- a/x\n+++ b/x\n@@ -0,0 +1,1 @@\n+a\n");
}

TEST_CASE("deploy file: what other commands take from the same place is not changed") {
    const std::string two =
        "#!/bin/sh\nARGS=\"--max-num-seqs 64\"\nvllm serve a $ARGS &\nvllm serve b $ARGS\n";
    CHECK(edited(two, more_seqs, "s.sh").unsafe ==
          "it would change line 4 too, which takes it from the same place");
    const std::string exported =
        "#!/bin/sh\nexport VLLM_USE_X=0\nvllm serve a --port 1 &\nvllm serve b --port 2\n";
    CHECK(!edited(exported, wish_for({}, {{"VLLM_USE_X", "1"}}), "s.sh").unsafe.empty());
    const std::string other =
        "#!/bin/sh\nARGS=\"--max-num-seqs 64\"\nmeasure $ARGS\nvllm serve b $ARGS\n";
    CHECK(edited(other, more_seqs, "s.sh").unsafe ==
          "$ARGS, which holds flags of it, is used for something else too");
    const std::string said = replaced(other, "measure", "echo");
    CHECK(edited(said, more_seqs, "s.sh").text == replaced(said, "64", "512"));
}

TEST_CASE("deploy file: flags that several assignments put together hide none from a change") {
    for (const char* flags : {"ARGS=(--port 1)\nARGS+=(--max-num-seqs 64)",
                              "ARGS='--port 1'\nARGS=\"$ARGS --max-num-seqs 64\""})
        CHECK(edited("#!/bin/bash\n" + std::string(flags) + "\nvllm serve m ${ARGS[@]}\n",
                     more_seqs, "s.sh")
                  .unsafe == "the flags in $ARGS are put together in several places");
    CHECK(edited("#!/bin/sh\nvllm serve --port 1 -- m\n", more_seqs, "s.sh").unsafe.find("'--'") !=
          std::string::npos);
}

TEST_CASE("deploy file: no comment goes with a flag that is removed from between others") {
    const std::string array =
        "#!/bin/bash\nARGS=(\n  --port 8000  # fixed\n  --max-num-seqs 64\n)\nvllm serve m "
        "\"${ARGS[@]}\"\n";
    const std::string flow = replaced(pod, "[\"--max-num-seqs\", \"64\", ",
                                      "[\"--max-num-seqs\", \"64\",  # fixed\n           ");
    const std::string between = replaced(
        unit, "    --port 8000\n", "    --port 8000 \\\n    # fixed\n    --max-num-seqs 64\n");
    const std::string last = replaced(between, "    --max-num-seqs 64 \\\n", "");
    CHECK(edited(array, wish_for({}), "s.sh").unsafe ==
          "a comment beside '--max-num-seqs' would go with it");
    CHECK(edited(flow, wish_for({})).unsafe ==
          "a comment beside '--max-num-seqs' would go with it");
    CHECK(edited(last, wish_for({}), "x.service").unsafe ==
          "a comment beside '--max-num-seqs' would go with it");
}

TEST_CASE("deploy file: a variable stays a text, and is not expanded where it is put") {
    const std::string text = replaced(
        pod,
        "    resources:", "    env:\n    - name: VLLM_USE_X\n      value: auto\n    resources:");
    for (const char* value : {"1", "true", "Off", "null", "010", "1.5"})
        CHECK(edited(text, wish_for({"--max-num-seqs=64"}, {{"VLLM_USE_X", value}})).text ==
              replaced(text, "value: auto", "value: \"" + std::string(value) + "\""));
    CHECK(edited(text, wish_for({"--max-num-seqs=64"}, {{"VLLM_USE_X", "flash"}})).text ==
          replaced(text, "value: auto", "value: flash"));
    CHECK(!edited(text, wish_for({}, {{"VLLM_USE_X", "a$(B)"}})).unsafe.empty());
    CHECK(!edited(unit, wish_for({}, {{"VLLM_USE_X", "a%h"}}), "x.service").unsafe.empty());
    CHECK(!edited(unit, wish_for({"--max-num-seqs=%h"}), "x.service").unsafe.empty());
    const std::string root = "#!/bin/sh\nsudo vllm serve m --port 1\n";
    CHECK(!edited(root, wish_for({}, {{"VLLM_USE_X", "1"}}), "s.sh").unsafe.empty());
}

TEST_CASE("deploy file: the checkpoint that the study chose takes the place of the model") {
    DeployWish wish = wish_for({"--max-num-seqs=64"});
    wish.model = "Qwen/Qwen3-8B-FP8";
    wish.other_models = {"Qwen/Qwen3-8B"};
    CHECK(edited(compose, wish).text ==
          replaced(compose, "--model=Qwen/Qwen3-8B ", "--model=Qwen/Qwen3-8B-FP8 "));
    const std::string start = "#!/bin/sh\nvllm serve Qwen/Qwen3-8B --max-num-seqs 64 # ours\n";
    CHECK(edited(start, wish, "s.sh").text == replaced(start, "Qwen3-8B ", "Qwen3-8B-FP8 "));
    const DeployEdit elsewhere =
        edited(replaced(start, "Qwen/Qwen3-8B", "/models/q"), wish, "s.sh");
    CHECK(elsewhere.difference.changes.empty());
    CHECK(elsewhere.difference.by_hand ==
          std::vector<std::string>{
              "the model: the file serves /models/q; recommended: Qwen/Qwen3-8B-FP8"});
}
