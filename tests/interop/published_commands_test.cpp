// SPDX-License-Identifier: Apache-2.0
// Whose command a result has: that of its own fence, or of the fence directly above. Else none.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "interop/serving_command.hpp"
#include "servetune/result_file.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<Engine> shipped_engines = shipped_catalogue.engines();

const std::string figures =
    "```\n============ Serving Benchmark Result ============\nSuccessful requests: 10\nBenchmark "
    "duration (s): 9.9\n"
    "==================================================\n```\n";

std::vector<PublishedResult> published_in(const std::string& document) {
    return read_published(document, shipped_engines);
}

std::string shell_fence(const std::string& text) { return "```bash\n" + text + "\n```\n"; }

/// The only result's command, or why it has none.
std::string command_above(const std::string& document) {
    const auto results = published_in(document);
    REQUIRE(results.size() == 1);
    CHECK(results[0].arguments_unknown == results[0].arguments.empty());
    return results[0].not_recognised.empty() ? results[0].arguments
                                             : "?" + results[0].not_recognised;
}

}  // namespace

TEST_CASE("published: a result has the command of its own fence, or of the fence directly above") {
    const std::string launched = "vllm serve org/M-8B -tp 2";
    CHECK(command_above(shell_fence(launched) + figures) == launched);
    CHECK(command_above("??? info \"Serving script\"\n" + shell_fence(launched) +
                        "\n??? info \"Benchmark result\"\n" + figures) == launched);
    CHECK(command_above("<details>\n" + shell_fence(launched) +
                        "</details>\n<details>\n<summary>Result</summary>\n\n" + figures) ==
          launched);
    CHECK(command_above("```\n" + launched +
                        " > log 2>&1 &\nvllm bench serve --model org/M-8B\nsome output\n" +
                        figures.substr(4)) == launched);
    // Not in a fence of its own, directly below one.
    CHECK(command_above(shell_fence(launched) + figures.substr(4, figures.size() - 8)) == launched);
    // The fence of the result says another one.
    CHECK(command_above(shell_fence(launched) + "```\n$ vllm serve org/M-8B -tp 4\n" +
                        figures.substr(4)) == "vllm serve org/M-8B -tp 4");
    // Or one that nobody knows.
    CHECK(command_above(shell_fence(launched) + "```\n$ mindie serve org/M-8B\n" +
                        figures.substr(4)) == "?mindie serve org/M-8B");
    CHECK(command_above(shell_fence("--max-num-seqs=64\n--seed 1") + figures) ==
          "--max-num-seqs=64 --seed 1");
}

TEST_CASE("published: a command further away is none, and the result says so") {
    const std::string launch = shell_fence("vllm serve org/M-8B -tp 2");
    const std::string why =
        "?none stands directly above it, the last one before it is: vllm serve org/M-8B -tp 2";
    for (const std::string& between :
         {std::string("Again:\n"), std::string("## Results\n"), std::string("- high load\n"),
          std::string("=== \"Chip B\"\n"), std::string("Same, with `--enforce-eager`:\n"),
          std::string("### TP = 4\n"), std::string("vllm serve org/M-8B -tp 4\n"),
          shell_fence("vllm bench serve --model org/M-8B"), shell_fence("pip install vllm"),
          std::string("```\nsome output\n```\n")}) {
        INFO(between);
        const std::string said = command_above(launch + between + figures);
        CHECK((said == why || said == "?some output"));
    }
    // A command in prose is none, and a document without any says nothing more.
    CHECK(command_above("vllm serve org/M-8B -tp 2\n" + figures).empty());
    CHECK(command_above("Started by `vllm serve org/M-8B -tp 2`.\n" + figures).empty());
    const auto results = published_in(launch + figures + figures + "## Again\n" + figures);
    REQUIRE(results.size() == 3);
    CHECK_FALSE(results[0].arguments_unknown);
    for (const std::size_t i : {1U, 2U}) {
        CHECK(results[i].arguments_unknown);
        CHECK("?" + results[i].not_recognised == why);
    }
}

TEST_CASE("published: all results of a fence have its command, changed by a comment of flags") {
    const std::string block = figures.substr(4, figures.size() - 8);
    const auto results = published_in(
        shell_fence("vllm serve org/M-8B --attention-backend=FLASH_ATTN") +
        "```\n# random 4K input\n" + block + "\n# --attention-backend=TRITON_ATTN --seed 1\n" +
        block + "# random 2K input\n" + block + "```\n");
    REQUIRE(results.size() == 3);
    CHECK(results[0].arguments == "vllm serve org/M-8B --attention-backend=FLASH_ATTN");
    CHECK(results[0].labels == std::vector<std::string>{"random 4K input"});
    CHECK(results[1].arguments == "vllm serve org/M-8B --attention-backend=TRITON_ATTN --seed 1");
    CHECK(results[2].arguments == "vllm serve org/M-8B --attention-backend=FLASH_ATTN");
}

TEST_CASE(
    "published: a comment or a box title that may say something else than the command leaves "
    "none") {
    const auto commented = [](const std::string& comment, const std::string& flags = "") {
        return command_above(shell_fence("vllm serve org/M-8B" + flags) + "```\n# " + comment +
                             "\n" + figures.substr(4));
    };
    for (const char* comment : {"fp8", "with --enforce-eager", "max_num_seqs 512", "seed=1", "TP4",
                                "now on DP 2", "-tp 4", "vllm serve org/Other"}) {
        INFO(comment);
        CHECK(commented(comment) ==
              "?'" + std::string(comment) + "' above it may change: vllm serve org/M-8B");
    }
    CHECK(commented("fp8", " --quantization fp8") == "vllm serve org/M-8B --quantization fp8");
    for (const char* comment : {"random 4K input", "high load", "ShareGPT", "baseline"})
        CHECK(commented(comment) == "vllm serve org/M-8B");
    CHECK(command_above(shell_fence("vllm serve org/M-8B") +
                        "??? info \"Benchmark result (FP8)\"\n" + figures) ==
          "?'??? info \"Benchmark result (FP8)\"' may change: vllm serve org/M-8B");
}

TEST_CASE(
    "published: blocks above their commands have none, and blanks and dashes are read as they were "
    "typed") {
    const auto below = published_in("# A\n" + figures + shell_fence("vllm serve org/M-8B -tp 2") +
                                    figures + shell_fence("vllm serve org/M-8B -tp 4"));
    REQUIRE(below.size() == 2);
    CHECK(below[0].arguments_unknown);
    CHECK(below[1].arguments_unknown);
    CHECK(below[1].not_recognised.starts_with(
        "the first result has no command above it and the last has one below"));
    CHECK(published_in(figures + shell_fence("vllm serve org/M-8B -tp 2") + figures)[1].arguments ==
          "vllm serve org/M-8B -tp 2");
    CHECK(command_above(
              shell_fence("vllm\xc2\xa0serve org/M-8B \xe2\x80\x93\xe2\x80\x93max-num-seqs\xc2\xa0"
                          "64 \xe2\x80\x93tp 2 "
                          "\xe2\x80\x94"
                          "enforce-eager") +
              figures) == "vllm serve org/M-8B --max-num-seqs 64 -tp 2 --enforce-eager");
}

TEST_CASE("published: a script whose command is not certain has none, and says why") {
    const auto why = [](const std::string& script) {
        return command_above(shell_fence(script) + figures);
    };
    CHECK(why("vllm serve org/A\nvllm serve org/B") ==
          "?several commands: vllm serve org/A | vllm serve org/B");
    CHECK(why("vllm serve org/A > a.log & vllm serve org/B > b.log &")
              .starts_with("?several commands"));
    CHECK(why("vllm serve org/A -tp 2\nvllm serve org/A -tp 2") == "vllm serve org/A -tp 2");
    for (const char* branch :
         {"if [ $NEW ]; then\n  export FAST=1\nfi\nvllm serve org/A",
          "case $CHIP in\n*) N=1 ;;\nesac\nvllm serve org/A",
          "for n in 1 2; do\n  vllm serve org/A -tp $n\ndone", "start() {\n  vllm serve org/A\n}",
          "vllm serve org/A &\nuntil curl localhost; do sleep 1; done"})
        CHECK(why(branch).starts_with("?the script has branches, loops or functions: "));
    for (const char* file :
         {"vllm serve org/A --config cfg.yaml", "vllm serve org/A --config=cfg.yml"})
        CHECK(why(file).starts_with("?its settings are in the file cfg.y"));
    CHECK(why("vllm serve org/A -tp $(nvidia-smi -L | wc -l)")
              .starts_with("?a part of it is what another command prints"));
    CHECK(why("ARGS=\"--seed 1 --enforce-eager\"\nvllm serve org/A $ARGS")
              .starts_with("?a variable of several words"));
    CHECK(why("vllm serve org/A\nTypeError: unexpected keyword") ==
          "?a line beside it is not understood: TypeError: unexpected keyword");
    CHECK(why("./start_engine.sh 80") == "?./start_engine.sh 80");
    CHECK(why("mindie serve org/A") == "?mindie serve org/A");
    CHECK(why("docker run --entrypoint /bin/bash vllm/vllm-openai:v1")
              .starts_with("?a container with another program"));
    CHECK(why("docker compose up -d") == "?docker compose up -d");
    CHECK(why("--seed 1\nand more") == "?a line beside its flags is not understood: and more");
    CHECK(command_above("```yaml\nkind: Pod\n```\n" + figures) ==
          "?a fence of 'yaml' stands directly above it");
    // An environment in a fence of its own holds for the server behind it.
    CHECK(command_above(shell_fence("export VLLM_ATTENTION_BACKEND=FLASHINFER") +
                        shell_fence("vllm serve org/A") + figures) ==
          "?a fence further up sets its environment: export VLLM_ATTENTION_BACKEND=FLASHINFER");
}

TEST_CASE("published: prompts, variables, pipes and clients beside a command hide none") {
    const std::string launched = "vllm serve org/M-8B -tp 2";
    for (const char* script :
         {"cd /app && source bin/activate; %", "export HF_TOKEN=x\n%", "docker exec -it llm %",
          "kubectl exec -it pod -- %", "!% &", "+ %\n+ vllm bench serve --model org/M-8B",
          "NAME=org/M-8B\nvllm serve ${NAME} -tp 2", "PORT=$(shuf -n 1)\n%", "% > bench.log 2>&1 &",
          "% 2>&1 | tee bench.log", "nohup % > log &",
          "% & sleep 60 && vllm bench serve --model org/M-8B", "%  # a comment",
          "vllm serve org/M-8B \\\n  -tp 2", "vllm serve org/M-8B\n-tp 2", "bash -c \"%\"",
          "sudo env %", "vllm serve --help\n%",
          "docker run --gpus all vllm/vllm-openai:v1 vllm serve org/M-8B -tp 2"}) {
        std::string text = script;
        if (const auto at = text.find('%'); at != std::string::npos) text.replace(at, 1, launched);
        INFO(text);
        CHECK(command_above(shell_fence(text) + figures) == launched);
    }
    CHECK(command_above(shell_fence("vllm serve org/M-8B --served-model-name bench-model") +
                        figures) == "vllm serve org/M-8B --served-model-name bench-model");
}

TEST_CASE("published: a command that a person says is of the results that have none") {
    auto results =
        published_in(shell_fence("vllm serve org/M-8B -tp 2") + figures + "## Later\n" + figures);
    REQUIRE(results.size() == 2);
    give_command(results, "VLLM_USE_V1=1 vllm serve org/M-8B", shipped_engines);
    CHECK(results[0].arguments == "vllm serve org/M-8B -tp 2");
    CHECK(results[1].arguments == "VLLM_USE_V1=1 vllm serve org/M-8B");
    CHECK(results[1].engine == "vllm");
    CHECK_FALSE(results[1].arguments_unknown);
    CHECK(results[1].not_recognised.empty());
    for (const char* none : {"", "./start.sh", "--seed 1", "vllm serve org/A; vllm serve org/B"})
        CHECK(message_of<UsageError>([&] {
                  give_command(results, none, shipped_engines);
              }).starts_with("--command: wanted the command"));
}

TEST_CASE(
    "published: a command that a person says is of the results of JSON files, with their own "
    "settings") {
    // A client's own keys (`tokenizer_id`) are no settings of the server.
    const auto result = [](const std::string& more) {
        return R"({"duration": 4, "completed": 24, "request_throughput": 6, "tokenizer_id": "org/M-8B")" +
               more + "}";
    };
    auto client = read_results(result(""), "f", shipped_engines);
    give_command(client, "vllm serve org/M-8B", shipped_engines);
    CHECK(client[0].arguments == "vllm serve org/M-8B");
    CHECK_FALSE(client[0].arguments_unknown);
    // What a person or a sweep wrote into the file of a parameter goes behind the command.
    auto swept = read_results(
        "[" + result(R"(, "max_num_seqs": "32")") + "," + result(R"(, "max_num_seqs": "64")") + "]",
        "f", shipped_engines);
    REQUIRE(swept.size() == 2);
    swept[1].failure = "engine_error";
    give_command(swept, "vllm serve org/M-8B", shipped_engines);
    CHECK(swept[0].arguments == "vllm serve org/M-8B --max-num-seqs=32");
    CHECK(swept[1].arguments_unknown);  // nobody knows what the tokenizer did to the failure
    // SGLang's server reports all: only what differs between its results is added.
    const auto served = [](int running) {
        return R"({"duration": 4, "completed": 24, "total_output_tokens_retokenized": 9, "server_info": {"model_path": "org/M-8B",)"
               R"( "schedule_policy": "fcfs", "max_running_requests": )" +
               std::to_string(running) + "}}";
    };
    auto one = read_results(served(32), "f", shipped_engines);
    give_command(one, "python3 -m sglang.launch_server --model-path org/M-8B", shipped_engines);
    CHECK(one[0].arguments == "python3 -m sglang.launch_server --model-path org/M-8B");
    auto two = read_results(served(32) + "\n" + served(64), "f", shipped_engines);
    REQUIRE(two.size() == 2);
    give_command(two, "python3 -m sglang.launch_server --model-path org/M-8B", shipped_engines);
    CHECK(two[1].arguments ==
          "python3 -m sglang.launch_server --model-path org/M-8B --max-running-requests=64");
}

TEST_CASE("published: a list item labels nothing behind a heading") {
    const auto results =
        published_in("- High\n- Low\n\n```\nlater\n```\n\n## Other chip\n" + figures);
    REQUIRE(results.size() == 1);
    CHECK(results[0].labels == std::vector<std::string>{"Other chip"});
}

TEST_CASE("published results: a block that only shows what an output looks like is no result") {
    const std::string title = "============ Serving Benchmark Result ============\n";
    const std::string shape = title +
                              "Successful requests:   xxx\nOutput token throughput (tok/s):   "
                              "xxx.xx\nMean TTFT (ms):   ...\n";
    const std::string real =
        title + "Successful requests:   10\nOutput token throughput (tok/s):   12.50\n";
    CHECK(message_of<ParseError>([&] { (void)read_results(shape, "f", {}); }) ==
          "f: its result blocks have no figures that can be read: what stands for them (xxx.xx), "
          "or a log puts something before each line");
    const std::string client =
        "vllm bench serve --model m --request-rate 8 --max-concurrency 4\n";  // asked for, not measured
    CHECK_FALSE(
        message_of<ParseError>([&] { (void)read_results(client + shape, "f", {}); }).empty());
    const auto results = read_results(shape + "\n" + real, "f", {});
    REQUIRE(results.size() == 1);
    CHECK(results.front().index == 0);
    CHECK(results.front().result.output_tokens_per_second == 12.5);
}

TEST_CASE(
    "published: of two blocks side by side no figure is taken that they print differently, and "
    "logs name their process") {
    const auto results = published_in(
        "```\n==== Serving Benchmark Result ====    ==== Serving Benchmark ====\n"
        "Successful requests: 100             Successful requests: 100\nBenchmark duration (s): "
        "10.0         Benchmark duration (s): "
        "8.0\n```\n"
        "```\n(Client pid=12) ==== Serving Benchmark Result ====\n(Client pid=12) Successful "
        "requests: 7\n```\n");
    REQUIRE(results.size() == 2);
    CHECK(results[0].result.successful_requests == 100);
    CHECK_FALSE(results[0].result.duration_seconds);
    CHECK(results[0].unread.contains("benchmark duration(s)"));
    CHECK(results[1].result.successful_requests == 7);
}

TEST_CASE("published: a line with two values has none") {
    for (const char* duration :
         {"10.00 -> 8.00", "1 280.00", "10.00 | 8.00", "10.00   8.00", "10.00 vs 8.00"}) {
        const auto results =
            published_in(std::string("==== Serving Benchmark Result ====\nSuccessful requests: "
                                     "10\nBenchmark duration (s): ") +
                         duration + "\n====\n");
        REQUIRE(results.size() == 1);
        CHECK_FALSE(results[0].result.duration_seconds);
        CHECK(results[0].unread.contains("benchmark duration(s)"));
    }
    CHECK(
        published_in(
            "==== Serving Benchmark Result ====\nBenchmark duration (s): 10.00 (+10 %)\n====\n")[0]
            .result.duration_seconds == 10);
}
