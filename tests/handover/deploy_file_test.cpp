// SPDX-License-Identifier: Apache-2.0
#include "handover/deploy_file.hpp"

#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "support/shipped.hpp"

#include <sys/xattr.h>

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What a study recommends that tuned these parameters.
DeploySpec wish_for(std::vector<std::string> flags,
                    std::map<std::string, std::string> environment = {}, std::int64_t gpus = 0) {
    DeploySpec wish;
    static const Engine engine = shipped_catalogue.engine("vllm");
    static const auto reader =
        std::make_shared<const CommandReader>(std::vector{engine}, search_spaces);
    wish.engine = engine;
    wish.reader = reader;
    wish.flags = std::move(flags);
    wish.environment = std::move(environment);
    wish.gpus = gpus;
    wish.tuned = {"max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching",
                  "tensor_parallel_size", "--speculative-config"};
    return wish;
}

const DeploySpec more_seqs = wish_for({"--max-num-seqs=512"});

DeployFile read_yaml(const std::string& text) {
    return read_deploy_file(text, "x.yaml", more_seqs.engine);
}

DeployEdit edited(const std::string& text, const DeploySpec& wish = more_seqs,
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

}  // namespace

TEST_CASE("deploy file: flags change, come and go where they stand, and nothing else does") {
    const std::string line =
        "services:\n  chat:\n    image: mine\n    command: vllm serve m --max-num-seqs 64\n";
    const std::string dash = "      - '--api-key=abcdef-12345'\n";
    struct Case {
        std::string text;
        std::vector<std::string> flags;
        std::string what, with;
    };
    for (const auto& [text, flags, what, with] : std::vector<Case>{
             {compose, {"--max-num-seqs=512"}, "--max-num-seqs=64 ", "--max-num-seqs=512 "},
             {compose,
              {"--max-num-seqs=64", "--max-num-batched-tokens=8192"},
              dash,
              dash + "      - '--max-num-batched-tokens=8192'\n"},
             {pod,
              {"--max-num-seqs=64", "--max-num-batched-tokens=8192"},
              "\"8000\"]",
              "\"8000\", \"--max-num-batched-tokens=8192\"]"},
             {pod, {"--max-num-seqs=512"}, "\"64\"", "\"512\""},
             {compose, {}, "      - --max-num-seqs=64       # small\n", ""},
             {line, {"--max-num-seqs=512"}, "64", "512"},
             {line,
              {"--max-num-seqs=64", "--no-enable-prefix-caching"},
              "64\n",
              "64 --no-enable-prefix-caching\n"},
             {replaced(pod, "\"--port\", \"8000\"", "\"--enable-prefix-caching\""),
              {"--max-num-seqs=64", "--max-num-batched-tokens=8192"},
              "\"--enable-prefix-caching\"",
              "\"--max-num-batched-tokens=8192\""},
             {replaced(compose, "'--api-key=abcdef-12345'", "--enable-prefix-caching"),
              {"--max-num-seqs=64", "--max-num-batched-tokens=8192"},
              "\n\n      # keep the cache on\n      - --enable-prefix-caching\n",
              "\n      - --max-num-batched-tokens=8192\n\n      # keep the cache on\n"},
             {replaced(compose, "--max-num-seqs=64       # small", "--enable-prefix-caching"),
              {"--no-enable-prefix-caching"},
              "--enable",
              "--no-enable"},
             {replaced(pod, "\"--max-num-seqs\", \"64\"", "--max_num_batched_tokens=4K"),
              {"--max-num-batched-tokens=8192"},
              "4K",
              "8192"},
             {replaced(pod, "\"--port\", \"8000\"", "\"--max-num-seqs\", \"128\""),
              {"--max-num-seqs=512"},
              "\"128\"",
              "\"512\""},
             {compose,
              {"--max-num-seqs=64", R"(--speculative-config={"method":"ngram"})"},
              dash,
              dash + "      - '--speculative-config={\"method\":\"ngram\"}'\n"}}) {
        std::string windows = "\xEF\xBB\xBF";
        for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
        const DeployEdit edit = edited(text, wish_for(flags));
        INFO(edit.unsafe << "\n" << edit.text);
        CHECK(edit.text == replaced(text, what, with));
        CHECK(edited(edit.text, wish_for(flags)).text == edit.text);
        CHECK(edited(windows, wish_for(flags)).text.size() > edit.text.size());
    }
    CHECK(edited(replaced(pod, "\"--max-num-seqs\", \"64\"", "--max_num_batched_tokens=8K"),
                 wish_for({"--max-num-batched-tokens=8192"}))
              .difference.changes.empty());
}

TEST_CASE("deploy file: what is not literal, or stands for several places, is not changed") {
    const std::string flow = replaced(pod, "[\"--max-num-seqs\", \"64\", ",
                                      "[\"--max-num-seqs\", \"64\",  # fixed\n           ");
    struct Case {
        std::string text;
        std::vector<std::string> flags;
        std::string why;
    };
    for (
        const auto& [text, flags, why] : std::vector<Case>{
            {replaced(compose, "--max-num-seqs=64", "--max-num-seqs=${SEQS}"), {}, "where it runs"},
            {"services:\n  a:\n    image: vllm/vllm-openai\n    command: >\n      --model m\n      "
             "--port 8000\n",
             {"--max-num-seqs=512"},
             "several lines"},
            {"services:\n  a:\n    image: x\n    command: vllm serve m --x 'a b'\n",
             {"--max-num-seqs=512"},
             "signs of a shell"},
            {replaced(compose, "'--api-key=abcdef-12345'", "--config=more.yaml"),
             {"--max-num-seqs=512"},
             "--config takes a file"},
            {compose, {"--max-num-seqs=$HOME"}, "may expand"},
            {flow, {}, "first word of its list would go"},
            {replaced(pod, "\"--port\"", "--, \"--port\""),
             {"--max-num-seqs=64", "--seed=1"},
             "take that word away"},
            {"services:\n  a:\n    image: x\n    command: [vllm, serve]\n",
             {"--seed=1"},
             "by hand"},
            {replaced(pod, "\"--max-num-seqs\"", "--max-num-se"), {}, "may stand for"},
            {replaced(pod, "\"64\"", "\"64\", \"32\""), {"--max-num-seqs=64"}, "Word 4 behind"},
            {replaced(pod, "\"--max-num-seqs\", \"64\"", "--speculative-config=ngram"),
             {},
             "Word 2 behind"},
            {replaced(compose, "    image:", "    extends: {service: base}\n    image:"),
             {"--max-num-seqs=512"},
             "`extends` adds"},
            {pod, {"--max-num-seqs=64", "--tensor-parallel-size=2"}, "GPUs is changed by hand"},
            {"services:\n  a:\n    image: vllm/vllm-openai\n    command: [--max-num-seqs=64]\n",
             {},
             "would go"}}) {
        INFO(text);
        const DeployEdit edit = edited(text, wish_for(flags, {}, 2));
        CHECK(edit.text.empty());
        CHECK(has(edit.unsafe, why));
        CHECK_FALSE(edit.unsafe.ends_with('.'));  // it goes into a sentence
    }
    DeploySpec more = wish_for({"--max-num-seqs=512"}, {{"VLLM_USE_X", "1"}});
    more.tuned.insert("VLLM_USE_X");
    CHECK(has(edited(compose, more).unsafe, "VLLM_USE_X is changed by hand"));
    for (const char* elsewhere : {"env_file: [a.env]", "environment: [VLLM_USE_X]",
                                  "environment: {VLLM_USE_X: \"${USE_X}\"}"})
        CHECK(
            has(edited(replaced(compose, "deploy:", std::string(elsewhere) + "\n    deploy:"), more)
                    .unsafe,
                "The value of VLLM_USE_X is known only where it runs"));
    DeploySpec llama = more_seqs;
    llama.engine = shipped_catalogue.engine("llama.cpp");
    CHECK(has(read_deploy_file("a: {command: [llama-server, -c, 8], envFrom: [{secretRef: x}]}\n",
                               "a.yaml", llama.engine)
                  .commands.at(0)
                  .unsure,
              "variables of another file"));
}

TEST_CASE("deploy file: which checkpoint is served is said, or that the command does not say it") {
    DeploySpec wish = wish_for({"--max-num-seqs=64"});
    wish.model = "Qwen/Qwen3-8B";
    const auto of = [&](const std::string& text) {
        return difference_of(read_deploy_file(text, "a.yaml", wish.engine).commands.at(0), wish);
    };
    CHECK_FALSE(of(compose).no_checkpoint);
    const DeployDifference none =
        of(replaced(compose, "      - --model=Qwen/Qwen3-8B   # its model\n", ""));
    CHECK(none.changes.empty());
    CHECK(none.no_checkpoint);
    CHECK(has(none.risks.back(), "names no checkpoint; the study measured Qwen/Qwen3-8B"));
    const std::string chart =
        "modelSpec:\n- modelURL: meta-llama/x\n  storageUri: hf://b/c\n  maxModelLen: 8\n  env: "
        "{MODEL_ID: d/e}\n  mountPath: /models\n";
    CHECK(read_deploy_file(chart, "a.yaml", wish.engine).checkpoints ==
          std::vector<std::string>{"line 2: modelURL", "line 3: storageUri", "line 5: MODEL_ID"});
}

TEST_CASE("deploy file: what is no such file is refused") {
    std::string bomb = "a0: &a0 [x, x]\n";
    struct Case {
        std::string text, name, why;
    };
    for (const auto& [text, name, why] : std::vector<Case>{
             {"a: 1\na: 2\n", "x.yaml", "stands twice"},
             {"a: [1\n", "x.yaml", "line "},
             {bomb + compose + "x: *a0\n", "x.yaml", "alias"},
             {"a: !!str 1\n", "x.yaml", "a tag"},
             {"{{ if .Values.x }}\nkind: Pod\n{{ end }}\n", "x.yaml", "template"},
             {replaced(compose, "seqs=64", "seqs={{ .Values.n }}"), "x.yaml", "template"},
             {"  # {{ if .Values.x }}\n" + compose, "x.yaml", "template"},
             {"  # {% if x %}\n" + compose, "x.yaml", "template"},
             {"#@ if data.values.x:\n" + compose, "x.yaml", "template"},
             {"a: *hunter2\n", "x.yaml", "line 1: the referenced anchor is not defined"},
             {std::string(2000, '[') + std::string(2000, ']'), "x.yaml", "line "},
             {std::string((1U << 20U) + 1, 'a'), "x.yaml", "1 MiB"},
             {"#!/bin/sh\nvllm serve m\n", "x.sh", "only files of YAML"},
             {"[Service]\nExecStart=vllm serve m\n", "x.service", "only files of YAML"},
             {std::string("a\0b", 3), "x.yaml", "zero byte"}}) {
        INFO(why);
        const auto read = [&, &content = text, &file = name] {
            (void)read_deploy_file(content, file, more_seqs.engine);
        };
        CHECK(has(message_of<ParseError>(read), why));
    }
    CHECK(read_yaml("a: 1\n").commands.empty());
    const std::string started_by_shell =
        replaced(pod, R"(    command: ["vllm", "serve", 'Qwen/Qwen3-8B']
    args: ["--max-num-seqs", "64", "--port", "8000"])",
                 "    command: [sh, -c]\n    args:\n    - |\n      exec vllm serve Qwen/Qwen3-8B");
    CHECK(read_yaml(started_by_shell).commands.empty());
    const std::string helm = "engineConfig:\n  maxNumSeqs: 64\n  extraArgs: [\"--x\"]\n";
    CHECK(read_yaml(helm).commands.empty());
}

TEST_CASE("deploy file: several engines and documents have names, and the others stay") {
    const std::string two = compose +
                            "  mail:\n    image: vllm/vllm-openai:v0.20.0\n    command: [--model, "
                            "m, --max-num-seqs, \"8\"]\n";
    const DeployFile file = read_yaml(two);
    REQUIRE(file.commands.size() == 2);
    CHECK(file.commands[0].label == "chat");
    CHECK(file.commands[1].label == "mail");
    CHECK(edited(two, more_seqs, "x.yaml", 1).text == replaced(two, "\"8\"", "\"512\""));
    const std::string other =
        replaced(replaced(pod, "name: chat", "name: other"), "\"64\"", "\"32\"");
    const std::string both = pod + "---\n" + other;
    CHECK(read_yaml(both).commands.at(1).label == "Pod/other/engine");
    CHECK(edited(both, more_seqs, "x.yaml", 1).text ==
          pod + "---\n" + replaced(other, "\"32\"", "\"512\""));
}

TEST_CASE("deploy file: any beginning of a file is read or refused") {
    for (const std::string& text : {compose, pod})
        for (std::size_t length = 0; length <= text.size(); length += 3) {
            try {
                const DeployFile file =
                    read_deploy_file(text.substr(0, length), "a.yaml", more_seqs.engine);
                for (const DeployCommand& command : file.commands) {
                    const DeployEdit edit = edit_deploy_file(file, command, more_seqs, "a.yaml");
                    CHECK((!edit.unsafe.empty() || has(edit.text, "512")));
                }
            } catch (const ParseError&) {
                SUCCEED();
            }
        }
}

TEST_CASE("deploy file: risks are named, and values of unknown flags are not") {
    const std::string text = replaced(compose, "'--api-key=abcdef-12345'",
                                      "--kv-cache-dtype=fp8\n      - --own-flag=s3cr3t");
    DeploySpec wish = wish_for({"--max-num-seqs=512", "--max-model-len=8192"});
    wish.model = "Qwen/Qwen3-14B";
    std::string all;
    for (const std::string& risk : edited(text, wish).difference.risks) all += risk + "\n";
    for (const char* part : {"--kv-cache-dtype=fp8", "serves Qwen/Qwen3-8B", "--own-flag ***"})
        CHECK(has(all, part));
    CHECK_FALSE(has(all, "s3cr3t"));
}

TEST_CASE("deploy file: a long key, long names and many commands take no more than their bytes") {
    const std::string long_name(300'000, 'n');
    std::string children, services = "services:\n", words = "command: [vllm, serve, m";
    for (int i = 0; i < 40'000; ++i) children += "  k" + std::to_string(i) + ": v\n";
    for (int i = 0; i < 5'000; ++i)
        services +=
            "  s" + std::to_string(i) + ": {image: vllm/vllm-openai, command: [--seed=1]}\n";
    for (int i = 0; i < 20'000; ++i) words += ", --max-num-seqs, \"8\"";
    for (const std::string& text :
         {long_name.substr(0, 1000) + ":\n" + children,
          "metadata: {name: " + long_name + "}\n" + services, words + "]\n"}) {
        const DeployFile file = read_deploy_file(text, "a.yaml", more_seqs.engine);
        std::size_t bytes = 0;
        for (const std::string& part : file.parts) bytes += part.size();
        for (const DeployCommand& command : file.commands) bytes += command.label.size();
        CHECK(bytes < 4 * text.size());
        if (file.commands.size() == 1) CHECK(has(edited(text).text, "\"512\"]"));
    }
}

TEST_CASE("deploy file: a checkpoint of the study is written, another model is for a person") {
    DeploySpec wish = wish_for({"--max-num-seqs=64"});
    wish.model = "Qwen/Qwen3-8B-FP8";
    wish.other_models = {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B-AWQ"};
    for (const std::string& text :
         {compose, pod, replaced(pod, "'Qwen/Qwen3-8B'", "--model, 'Qwen/Qwen3-8B'")}) {
        const DeployEdit edit = edited(text, wish);
        INFO(edit.unsafe);
        CHECK(edit.text == replaced(text, "Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8"));
        CHECK(edited(edit.text, wish).difference.changes.empty());
    }
    const DeployEdit other = edited(replaced(pod, "Qwen/Qwen3-8B", "/srv/mine"), wish);
    CHECK(has(other.unsafe, "model is changed by hand"));
    CHECK(other.difference.changes.front().by_hand);
}

TEST_CASE("deploy file: a changed file takes the place of what was read, and of nothing else") {
    const TemporaryFolder folder;
    const auto file = folder.write("real.yaml", "old\n");
    fs::permissions(file, static_cast<fs::perms>(0640));
    fs::create_symlink("real.yaml", folder.path() / "link.yaml");
    replace_deploy_file(folder.path() / "link.yaml", "old\n", "new\n");
    CHECK(read_file(file) == "new\n");
    CHECK(fs::is_symlink(folder.path() / "link.yaml"));
    CHECK(fs::status(file).permissions() == static_cast<fs::perms>(0640));
    const auto refused = [&](const char* why, const char* before = "new\n") {
        return has(message_of<IoError>([&] { replace_deploy_file(file, before, "x\n"); }), why);
    };
    CHECK(refused("changed since it was read", "old\n"));
    fs::create_hard_link(file, folder.path() / "twice.yaml");
    CHECK(refused("several names"));
    fs::remove(folder.path() / "twice.yaml");
    fs::permissions(file, static_cast<fs::perms>(0444));
    CHECK(refused("it is read-only"));
    fs::permissions(file, static_cast<fs::perms>(0640));
    if (::setxattr(file.c_str(), "user.origin", "x", 1, 0) == 0)  // which tmpfs may not take
        CHECK(refused("extended attributes would change"));
    CHECK(read_file(file) == "new\n");
}

namespace {

std::string recipe_file_with(const std::string& base_args, const std::string& more = "") {
    return "meta: {title: ours}\nmodel:\n  model_id: Qwen/Qwen3-8B\n  base_args:" + base_args +
           "\n  base_env: {}\n" + more + "guide: |\n  Serve it.\n";
}

}  // namespace

TEST_CASE("recipe file: its base_args become the recommended ones, and nothing else changes") {
    CHECK(edited(recipe_file_with("\n    - \"--max-num-seqs\"\n    - \"64\"  # few")).text ==
          recipe_file_with("\n    - \"--max-num-seqs\"\n    - \"512\"  # few"));
    CHECK(edited(recipe_file_with(" [--trust-remote-code, \"--max-num-batched-tokens=4096\"]"))
              .text == recipe_file_with(" [--trust-remote-code, --max-num-seqs=512]"));
    CHECK(edited(recipe_file_with(" []")).text == recipe_file_with(" [\"--max-num-seqs=512\"]"));
}

TEST_CASE("recipe file: where another of its lists sets what was tuned it is left as it is") {
    const std::string seqs = "hardware_overrides:\n  amd: {extra_args: [--max-num-seqs, \"64\"]}\n";
    CHECK(has(edited(recipe_file_with(" []", seqs)).unsafe,
              "hardware_overrides.amd.extra_args sets --max-num-seqs too"));
    CHECK(edited(recipe_file_with(" []", seqs)).text.empty());
    const std::string other = "hardware_overrides:\n  amd: {extra_args: [--block-size, \"64\"]}\n";
    CHECK(edited(recipe_file_with(" []", other)).unsafe.empty());
    // A feature that already says what is recommended is no change.
    const std::string feature = "features: {many: {args: [--max-num-seqs, \"512\"]}}\n";
    CHECK(edited(recipe_file_with(" []", feature)).text == recipe_file_with(" []", feature));
}

TEST_CASE("recipe file: another checkpoint than the study's is said") {
    DeploySpec wish = more_seqs;
    wish.model = "org/other";
    CHECK(has(edited(recipe_file_with(" []"), wish).difference.risks.at(0),
              "The file serves Qwen/Qwen3-8B; the study measured org/other"));
}
