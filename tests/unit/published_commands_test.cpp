// SPDX-License-Identifier: Apache-2.0
// Whose command a block has: where documents print several, or other things that look like one.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/detail/interop/published.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<Engine> shipped_engines = shipped_catalogue.engines();

const std::string figures =
    "```\n============ Serving Benchmark Result ============\nSuccessful requests: 10\nBenchmark duration (s): 9.9\n"
    "==================================================\n```\n";

std::vector<PublishedResult> published_in(const std::string& document) { return read_published(document, shipped_engines); }

std::string shell_fence(const std::string& text) { return "```bash\n" + text + "\n```\n"; }

/// The only result's command, or why it has none.
std::string command_above(const std::string& document) {
    const auto results = published_in(document);
    REQUIRE(results.size() == 1);
    CHECK(results[0].arguments_unknown == results[0].arguments.empty());
    return results[0].not_recognised.empty() ? results[0].arguments : "?" + results[0].not_recognised;
}

}  // namespace

TEST_CASE("published: the benchmark's model says whose command it is") {
    const std::string two =
        "## Large\n" + shell_fence("vllm serve org/Large-70B -tp 4") + "## Small\n" + shell_fence("vllm serve org/Small-8B");
    const auto measured = [&](const std::string& flags) { return "## Run\n" + shell_fence("vllm bench serve " + flags) + figures; };
    CHECK(command_above(two + measured("--model org/Large-70B")) == "vllm serve org/Large-70B -tp 4");
    CHECK(command_above(two + measured("--model=mirror/small-8b")) == "vllm serve org/Small-8B");
    CHECK(command_above(two + measured("--model served --tokenizer org/Large-70B")) == "vllm serve org/Large-70B -tp 4");
    CHECK(command_above(two + shell_fence("MODEL=org/Large-70B\nvllm bench serve --model $MODEL") + figures) ==
          "vllm serve org/Large-70B -tp 4");
    CHECK(command_above(two + measured("--model org/Other-1B")) ==
          "?the benchmark names model org/Other-1B, and the command above starts org/Small-8B");
    const std::string one = shell_fence("vllm serve org/Small-8B --served-model-name tiny");
    CHECK(command_above(one + measured("--model tiny")) == "vllm serve org/Small-8B --served-model-name tiny");
    CHECK(command_above(shell_fence("vllm serve $MODEL -tp 2") + measured("--model org/Small-8B")) == "vllm serve $MODEL -tp 2");
    CHECK(command_above(shell_fence("vllm serve /data/weights") + measured("--model org/Small-8B")) == "vllm serve /data/weights");
    // A run between two launches: the second took the place of the first.
    CHECK(command_above(shell_fence("vllm serve org/Small-8B") + measured("--model org/Small-8B").substr(0, 60) + "\n```\n" +
                        shell_fence("vllm serve org/Small-8B -tp 2") + figures) == "vllm serve org/Small-8B -tp 2");
}

TEST_CASE("published: launches side by side are several, unless one is of the block's section or is named there") {
    const std::string tabs =
        "=== \"Chip A\"\n\n    ```bash\n    vllm serve org/M-8B -tp 4\n    ```\n\n=== \"Chip B\"\n\n    ```bash\n"
        "    vllm serve org/M-8B -tp 8\n    ```\n\n";
    CHECK(command_above(tabs + "### Benchmark\n" + figures) == "?several commands: vllm serve org/M-8B -tp 4 | vllm serve org/M-8B -tp 8");
    const std::string sections =
        "## Hopper\n" + shell_fence("vllm serve org/M-8B -tp 4") + "## Blackwell\n" + shell_fence("vllm serve org/M-8B -tp 8");
    CHECK(command_above("# G\n" + sections + "## Benchmark\n" + figures).starts_with("?several commands"));
    CHECK(command_above("# G\n" + sections + "## Benchmark on Hopper\n" + figures) == "vllm serve org/M-8B -tp 4");
    CHECK(command_above("# G\n" + sections + "### Benchmark\n" + figures) == "vllm serve org/M-8B -tp 8");
    const auto both = published_in("# G\n" + sections + "## On Hopper\n" + figures + "## On Blackwell\n" + figures);
    REQUIRE(both.size() == 2);
    CHECK(both[0].arguments == "vllm serve org/M-8B -tp 4");
    CHECK(both[1].arguments == "vllm serve org/M-8B -tp 8");
}

TEST_CASE("published: what a branch of a shell script sets is not known") {
    const std::string script = "if [ \"$CHIP\" = new ]; then\n  SETUP=new.yaml\nelse\n  SETUP=old.yaml\nfi\n";
    CHECK(command_above(shell_fence(script + "vllm serve org/M-8B --config ${SETUP}") + figures) ==
          "?depends on a branch of the shell script: SETUP");
    CHECK(command_above(shell_fence(script + "vllm serve org/M-8B") + figures) == "vllm serve org/M-8B");
    CHECK(command_above(shell_fence("case $CHIP in\n  new) export KERNELS=1 ;;\n  *) export KERNELS=0 ;;\nesac\nvllm serve org/M-8B") +
                        figures) == "?depends on a branch of the shell script: KERNELS");
}

TEST_CASE("published: only what a launch printed is a crash") {
    const std::string launch = shell_fence("vllm serve org/M-8B");
    CHECK(published_in(launch + "- `--flag`: where it says \"CUDA out of memory\"\nValueError: of prose\n" + figures).size() == 1);
    CHECK(published_in(launch + "````\nThe answer:\n\n```python\ndef f():\n    \"\"\"\n    ValueError: If n is negative\n```\n````\n" +
                       figures)
              .size() == 1);
    CHECK(published_in(launch + "```\nINFO start\nValueError: no such kernel\n```\n" + figures).size() == 2);
}

TEST_CASE("published: a list item labels nothing behind a heading") {
    const auto results = published_in("- High\n- Low\n\n```\nlater\n```\n\n## Other chip\n" + figures);
    REQUIRE(results.size() == 1);
    CHECK(results[0].labels == std::vector<std::string>{"Other chip"});
}

TEST_CASE("published results: a block that only shows what an output looks like is no result") {
    const std::string title = "============ Serving Benchmark Result ============\n";
    const std::string shape = title + "Successful requests:   xxx\nOutput token throughput (tok/s):   xxx.xx\nMean TTFT (ms):   ...\n";
    const std::string real = title + "Successful requests:   10\nOutput token throughput (tok/s):   12.50\n";
    CHECK(message_of<ParseError>([&] { (void)read_results(shape, "f", {}); }) ==
          "f: its result blocks have no figures that can be read: what stands for them (xxx.xx), or a log puts something before each line");
    const std::string client = "vllm bench serve --model m --request-rate 8 --max-concurrency 4\n";  // asked for, not measured
    CHECK_FALSE(message_of<ParseError>([&] { (void)read_results(client + shape, "f", {}); }).empty());
    const auto results = read_results(shape + "\n" + real, "f", {});
    REQUIRE(results.size() == 1);
    CHECK(results.front().index == 0);
    CHECK(results.front().result.output_tokens_per_second == 12.5);
}

TEST_CASE("published: requests, tokens and what programs print are no commands, and sudo and ticks hide none") {
    const std::string launch = shell_fence("vllm serve org/M-8B");
    for (const char* between : {"curl http://localhost -d '{\n  \"model\": \"org/M-8B\",\n  \"prompt\": \"hi\"\n}'",
                                "export HF_TOKEN=<your own token>", "local-completions (model=org/M-8B,url=x), limit: None"})
        CHECK(command_above(launch + shell_fence(between) + figures) == "vllm serve org/M-8B");
    CHECK(command_above(shell_fence("sudo docker run --gpus all vllm/vllm-openai:latest --model org/M-8B") + figures) ==
          "vllm serve --model org/M-8B");
    CHECK(command_above(shell_fence("docker run --entrypoint vllm vllm/vllm-openai:latest serve org/M-8B") + figures) ==
          "vllm serve org/M-8B");
    CHECK(command_above(shell_fence("docker run -it --entrypoint /bin/bash vllm/vllm-openai:latest") + figures).starts_with("?"));
    CHECK(command_above("Started by\n`./bin/llama-server -m m.gguf -np 1`\n" + figures) == "./bin/llama-server -m m.gguf -np 1");
    CHECK(command_above(shell_fence("NAME=org/M-8B\nvllm serve $NAME") + figures) == "vllm serve org/M-8B");
}

TEST_CASE("published: a launch in a substitution, and values out of one") {
    const std::string launched = "vllm serve org/M-8B -tp 2";
    for (const char* format :
         {"PID=$(% > log 2>&1 & echo $!)", "PID=`%`", "export ID=\"$(docker exec -d llm %)\"", "PID=$(\n% &\necho $!\n)"}) {
        std::string line = format;
        line.replace(line.find('%'), 1, launched);
        CHECK(command_above(shell_fence(line) + figures) == launched);
    }
    CHECK(command_above(shell_fence("vllm serve org/M-8B -tp $(nvidia-smi -L | wc -l) --port 80") + figures) ==
          "vllm serve org/M-8B -tp '$(nvidia-smi -L | wc -l)' --port 80");
    CHECK(command_above(shell_fence("TP=$(nproc --all)\nvllm serve org/M-8B -tp $TP") + figures) ==
          "vllm serve org/M-8B -tp '$(nproc --all)'");
    CHECK(command_above(shell_fence("MODEL=org/M-8B\nARGS=$(echo serve $MODEL \\\n  -tp 2\n)\nARGS=($ARGS)\nvllm \"${ARGS[@]}\"") +
                        figures) == launched);
    CHECK(
        command_above(shell_fence("ARGS=(\n  org/M-8B  # the model\n  -tp 2\n)\nARGS+=(--config '{\"a\": 1}')\nvllm serve \"${ARGS[@]}\"") +
                      figures) == launched + " --config '{\"a\": 1}'");
    CHECK(command_above(shell_fence("FLAGS=\"-tp 2\"\nFLAGS+=\" --port 80\"\nvllm serve org/M-8B $FLAGS") + figures) ==
          launched + " --port 80");
    CHECK(command_above(shell_fence("if [ $NEW ]; then\n  MORE=(--fast)\nfi\nARGS=(-tp 2 \"${MORE[@]}\")\nvllm serve org/M-8B ${ARGS[@]}") +
                        figures) == "?depends on a branch of the shell script: ARGS");
    CHECK(command_above(shell_fence("cd /app && source bin/activate; " + launched) + figures) == launched);
}

TEST_CASE("published: a line that only sets or waits is not the reason why no command is known") {
    const std::string launch = shell_fence("vllm serve org/M-8B");
    for (const char* between : {"PORT=$(shuf -i 2000-65000 -n 1)", "export IP=$(hostname -I | head -1)", "HOSTS=(a b)\nHOSTS+=(c)",
                                "while [ -z \"$IP\" ]; do\n  IP=$(dig host +short)\n  [ -z \"$IP\" ] && sleep 1\ndone", "N=`nproc --all`",
                                "gcloud compute ssh machine --zone here", "INFO: Started server process [7]",
                                "kubectl run look --image=web/curl -- sh -c \"sleep 9\"", "> kubectl get pods\n>\n> kubectl get nodes"})
        CHECK(command_above(launch + shell_fence(between) + figures) == "vllm serve org/M-8B");
    CHECK(command_above(launch + shell_fence("gcloud compute ssh machine --command ./start.sh") + figures).starts_with("?gcloud"));
    CHECK(command_above(launch + shell_fence("PORT=$(shuf -n 1)\n./start_engine.sh $PORT") + figures) == "?./start_engine.sh $PORT");
}

TEST_CASE("published: of several launches in one fence the benchmark's model says which") {
    const std::string both = shell_fence("vllm serve org/Large-70B -tp 4\nvllm serve org/Small-8B");
    const std::string none = "?several commands: vllm serve org/Large-70B -tp 4 | vllm serve org/Small-8B";
    const auto measured = [&](const std::string& model) { return shell_fence("vllm bench serve --model " + model) + figures; };
    CHECK(command_above(both + figures) == none);
    CHECK(command_above(both + measured("org/Large-70B")) == "vllm serve org/Large-70B -tp 4");
    CHECK(command_above(both + measured("org/Small-8B")) == "vllm serve org/Small-8B");
    CHECK(command_above(both + measured("org/Other-1B")) == none);
    CHECK(command_above(both + measured("$MODEL")) == none);
    CHECK(command_above(both + measured("org/Small-8B").substr(0, 50) + "\n```\n" + measured("org/Large-70B")) == none);
    CHECK(command_above(both + "## SGLang\n" + measured("org/Small-8B")) == none);
    CHECK(command_above(shell_fence("vllm serve org/Small-8B -tp 4\nvllm serve org/Small-8B") + measured("org/Small-8B"))
              .starts_with("?several"));
    CHECK(
        command_above(shell_fence("vllm serve $MODEL -tp 4\nvllm serve org/Small-8B") + measured("org/Small-8B")).starts_with("?several"));
    // Each block has its own client.
    const auto results = published_in(both + measured("org/Small-8B") + measured("org/Large-70B") + figures);
    REQUIRE(results.size() == 3);
    CHECK(results[0].arguments == "vllm serve org/Small-8B");
    CHECK(results[1].arguments == "vllm serve org/Large-70B -tp 4");
    CHECK(results[2].arguments.empty());
}

TEST_CASE("published: a server may be called like a client, and a client may start behind it in one line") {
    const auto of_second = [&](const std::string& line) {
        const auto results = published_in(shell_fence("vllm serve org/Small-8B -tp 2") + figures + shell_fence(line) + figures);
        REQUIRE(results.size() == 2);
        return results[1].not_recognised.empty() ? results[1].arguments : "?" + results[1].not_recognised;
    };
    for (const char* server : {"vllm serve org/Small-8B --served-model-name bench-model", "vllm serve org/benchmaxx-8B",
                               "vllm serve org/Small-8B --chat-template /srv/bench/chat.jinja"})
        CHECK(of_second(server) == server);
    CHECK(of_second("vllm serve org/Small-8B -tp 4 > bench.log 2>&1 &") == "vllm serve org/Small-8B -tp 4");
    CHECK(of_second("vllm serve org/Small-8B -tp 4 | tee bench.log") == "vllm serve org/Small-8B -tp 4");
    CHECK(of_second("vllm serve org/Small-8B -tp 4 & sleep 60 && vllm bench serve --model org/Small-8B") ==
          "vllm serve org/Small-8B -tp 4");
    for (const char* client :
         {"vllm bench serve --model org/Small-8B", "python3 -m sglang.bench_serving --backend vllm",
          "docker run a/b:1 python3 bench.py --num-prompts 3", "bash -c 'python3 benchmark_serving.py --model org/Small-8B'",
          "kubectl apply -f ai/genaiperf-deploy.yaml",
          "timeout 900 bash -c 'while [ \"$(curl -s localhost:8000/v1/models)\" != 200 ]; do sleep 2; done' || { echo late; exit 1; }"})
        CHECK(of_second(client) == "vllm serve org/Small-8B -tp 2");
}

TEST_CASE("published: a title that says something else of the server than the command leaves it in doubt") {
    const auto doubts = [&](const std::string& title, const std::string& command) {
        const auto results = published_in(shell_fence(command) + title + "\n" + figures);
        REQUIRE(results.size() == 1);
        CHECK(results[0].arguments == command);
        return results[0].doubt;
    };
    const std::string drafts = R"(vllm serve org/Small-8B -tp 8 --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}')";
    const std::string plain = "vllm serve org/Small-8B";
    CHECK(doubts("### MTP = 1", drafts) == "MTP = 1");
    CHECK(doubts("### MTP = 3", drafts).empty());
    CHECK(doubts("### TP=4", drafts) == "TP=4");
    CHECK(doubts("### TP8", drafts).empty());
    CHECK(doubts("### TP8+DP2 on one node", drafts) == "TP8+DP2 on one node");
    CHECK(doubts("### --max-num-seqs: 64", plain + " --max-num-seqs 640") == "--max-num-seqs: 64");
    CHECK(doubts("### max_num_seqs = 640", plain + " --max-num-seqs 640").empty());
    CHECK(doubts("### With `--enable-chunked-prefill`", plain) == "With `--enable-chunked-prefill`");
    CHECK(doubts("### With `--enable-chunked-prefill`", plain + " --enable-chunked-prefill").empty());
    CHECK(doubts("### Without --enable-chunked-prefill", plain).empty());
    CHECK(doubts("### Without --enable-chunked-prefill", plain + " --enable-chunked-prefill") == "Without --enable-chunked-prefill");
    CHECK(doubts("### enforce-eager", plain) == "enforce-eager");
    CHECK(doubts("### enforce-eager", plain + " --enforce-eager").empty());
    CHECK(doubts("### --kv-cache-dtype fp8", plain) == "--kv-cache-dtype fp8");
    CHECK(doubts("### --kv-cache-dtype fp8", plain + " --kv-cache-dtype=fp8").empty());
    CHECK(doubts("Same as above but with `--max-num-seqs 512`:\n", plain) == "Same as above but with `--max-num-seqs 512`:");
    CHECK(doubts("**+ `--enable-expert-parallel`**\n", plain) == "**+ `--enable-expert-parallel`**");
    CHECK(doubts("Now with VLLM_USE_X=0:\n", "VLLM_USE_X=1 " + plain) == "Now with VLLM_USE_X=0:");
    CHECK(doubts("Now with VLLM_USE_X=1:\n", "VLLM_USE_X=1 " + plain).empty());
    for (const char* other :
         {"### Concurrency = 64", "### Run: 2", "### ISL = 1024", "### MTP = on", "### MTP", "### Results: MTP = 1 of 3", "### = 4",
          "### MTP =", "### Sweep of --max-num-seqs", "### eager", "With `--num-prompts 100`:",
          "You may add `--enable-expert-parallel` for large models, as its guide says.\n\nOutput:", "HTTP2 = 1:"})
        CHECK(doubts(other, drafts).empty());
    // The command stands behind the title.
    CHECK(published_in("### TP = 4\n" + shell_fence(plain) + figures)[0].doubt.empty());
}

TEST_CASE("published: a block below another one has the other's command, and says so, and comments in its fence are titles") {
    const std::string block = figures.substr(4);  // without the fence
    const auto results = published_in(shell_fence("vllm serve org/Small-8B") + figures + "Once more:\n" + figures +
                                      "```\n# now max_num_seqs 512\n" + block + shell_fence("vllm serve org/Small-8B -tp 2") + figures);
    REQUIRE(results.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) CHECK(results[i].arguments == "vllm serve org/Small-8B");
    CHECK_FALSE(results[0].arguments_inherited);
    CHECK(results[1].arguments_inherited);
    CHECK(results[1].doubt.empty());
    CHECK(results[2].doubt == "now max_num_seqs 512");
    CHECK_FALSE(results[3].arguments_inherited);
}

TEST_CASE("published: blocks above their commands have none, and blanks and dashes are read as they were typed") {
    const auto below = published_in("# A\n" + figures + shell_fence("vllm serve org/Small-8B -tp 2") + figures +
                                    shell_fence("vllm serve org/Small-8B -tp 4"));
    REQUIRE(below.size() == 2);
    CHECK(below[0].arguments_unknown);
    CHECK(below[1].arguments_unknown);
    CHECK(below[1].not_recognised.starts_with("the first result has no command above it and the last has one below"));
    CHECK(published_in(figures + shell_fence("vllm serve org/Small-8B -tp 2") + figures)[1].arguments == "vllm serve org/Small-8B -tp 2");
    CHECK(command_above(shell_fence("vllm\xc2\xa0serve org/Small-8B \xe2\x80\x93\xe2\x80\x93max-num-seqs\xc2\xa0"
                                    "64 \xe2\x80\x93tp 2 "
                                    "\xe2\x80\x94"
                                    "enforce-eager") +
                        figures) == "vllm serve org/Small-8B --max-num-seqs 64 -tp 2 --enforce-eager");
}

TEST_CASE("published: of a difference the lines behind it count") {
    CHECK(command_above("```diff\n@@ -1 +1 @@\n-vllm serve org/Small-8B -tp 2\n+vllm serve org/Small-8B -tp 4\n```\n" + figures) ==
          "vllm serve org/Small-8B -tp 4");
    CHECK(command_above("```diff\n vllm serve org/Small-8B \\\n-  -tp 2\n+  -tp 4\n```\n" + figures) == "vllm serve org/Small-8B -tp 4");
    CHECK(command_above(shell_fence("vllm serve org/Small-8B -tp 2") + "```diff\n-def a():\n+def b():\n```\n" + figures) ==
          "vllm serve org/Small-8B -tp 2");
}

TEST_CASE("published: of two blocks side by side no figure is taken that they print differently, and logs name their process") {
    const auto results = published_in(
        "```\n==== Serving Benchmark Result ====    ==== Serving Benchmark ====\n"
        "Successful requests: 100             Successful requests: 100\nBenchmark duration (s): 10.0         Benchmark duration (s): "
        "8.0\n```\n"
        "```\n(Client pid=12) ==== Serving Benchmark Result ====\n(Client pid=12) Successful requests: 7\n```\n");
    REQUIRE(results.size() == 2);
    CHECK(results[0].result.successful_requests == 100);
    CHECK_FALSE(results[0].result.duration_seconds);
    CHECK(results[0].unread.contains("benchmark duration(s)"));
    CHECK(results[1].result.successful_requests == 7);
}

TEST_CASE("published: what else starts a server above a block leaves the command in doubt") {
    const std::string first = shell_fence("vllm serve org/Small-8B --max-num-seqs 256");
    const auto doubt = [&](const std::string& between) {
        const auto results = published_in(first + figures + between + "\n" + figures);
        REQUIRE(results.size() == 2);
        return results[1].doubt + results[1].not_recognised;
    };
    for (const char* line : {"Server: `vllm serve org/Small-8B -tp 2`\n", "And with `vllm serve org/Small-8B -tp 2` I get\n",
                             "- Server: `vllm serve org/Small-8B -tp 2`", "| server | `vllm serve org/Small-8B -tp 2` |",
                             "<pre>vllm serve org/Small-8B -tp 2</pre>", "```\n{\"command\": \"vllm serve org/Small-8B -tp 2\"}\n```"})
        CHECK(doubt(line).find("vllm serve org/Small-8B -tp 2") != std::string::npos);
    for (const char* line : {"Again with `vllm serve org/Small-8B --max-num-seqs 256`\n", "`vllm serve` is quick\n",
                             "see `vllm serve --help`\n", "```\nvllm serve --help\n```"})
        CHECK(doubt(line).empty());
    // Two fences with nothing measured between them, in a text without titles.
    const auto both =
        published_in("**Before:**\n" + shell_fence("vllm serve org/Small-8B") + "**After:**\n" +
                     shell_fence("vllm serve org/Small-8B --async-scheduling") + "**Before:**\n" + figures + "**After:**\n" + figures);
    REQUIRE(both.size() == 2);
    for (const PublishedResult& result : both) CHECK(result.doubt == "vllm serve org/Small-8B");
    // An environment in a fence of its own holds for the server behind it.
    const std::string exported =
        shell_fence("export VLLM_ATTENTION_BACKEND=FLASHINFER") + "Then:\n" + shell_fence("vllm serve org/Small-8B");
    CHECK(published_in(exported + figures)[0].doubt == "export VLLM_ATTENTION_BACKEND=FLASHINFER");
    // Another model's size; a doubt that goes on to the next run.
    CHECK(published_in(first + "### org/Large-70B\n" + figures)[0].doubt == "org/Large-70B");
    CHECK(published_in(first + "### Small-8B on one card\n" + figures)[0].doubt.empty());
    const auto runs = published_in(first + "With `--enforce-eager`, run 1:\n" + figures + "run 2:\n" + figures + "## Plain\n" + figures);
    CHECK(runs[1].doubt == "With `--enforce-eager`, run 1:");
    CHECK(runs[2].doubt.empty());
}

TEST_CASE("published: traces of a shell, lines of short flags, a launch that crashed in its own fence, lines with two values") {
    CHECK(command_above("```\n+ vllm serve org/Small-8B -tp 2\n+ vllm bench serve --model org/Small-8B\n```\n" + figures) ==
          "vllm serve org/Small-8B -tp 2");
    CHECK(command_above(shell_fence("!vllm serve org/Small-8B -tp 2 &") + figures) == "vllm serve org/Small-8B -tp 2");
    CHECK(command_above(shell_fence("vllm serve org/Small-8B\n  --max-num-seqs 64\n  -tp 2\n  --enforce-eager") + figures) ==
          "vllm serve org/Small-8B --max-num-seqs 64 -tp 2 --enforce-eager");
    const auto crashed =
        published_in("```\nvllm serve org/Small-8B --max-num-seqs 4096\ntorch.OutOfMemoryError: CUDA out of memory.\n```\n" + figures);
    REQUIRE(crashed.size() == 2);
    CHECK(crashed[0].failure == "out_of_memory");
    CHECK(crashed[0].arguments == "vllm serve org/Small-8B --max-num-seqs 4096");
    CHECK(crashed[1].not_recognised == "the command above it crashed");
    for (const char* duration : {"10.00 -> 8.00", "1 280.00", "10.00 | 8.00", "10.00   8.00", "10.00 vs 8.00"}) {
        const auto results = published_in(
            std::string("==== Serving Benchmark Result ====\nSuccessful requests: 10\nBenchmark duration (s): ") + duration + "\n====\n");
        REQUIRE(results.size() == 1);
        CHECK_FALSE(results[0].result.duration_seconds);
        CHECK(results[0].unread.contains("benchmark duration(s)"));
    }
    CHECK(published_in("==== Serving Benchmark Result ====\nBenchmark duration (s): 10.00 (+10 %)\n====\n")[0].result.duration_seconds ==
          10);
}
