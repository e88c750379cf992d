// SPDX-License-Identifier: Apache-2.0
// `autotune compare`, from outside: two studies, or one study and what is changed of it.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;

std::string compared_study(const std::string& space, const std::string& noise = "1%",
                           const std::string& limits = "") {
    return "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads:\n  - "
           "{workload: w, use: random, input_tokens: "
           "200, output_tokens: 200, requests: 100, arrival: {concurrency: 64}}\nobjective: "
           "{maximize: total_tokens_per_second" +
           limits + "}\nspace: " + space +
           "\nothers: default\nstrategy: exhaustive\nevaluator: {simulate: {noise: " + noise +
           "}}\n";
}

const std::string levels = "{max_num_seqs: {choice: [engine, 8, 32, 256, 512]}}";

}  // namespace

TEST_CASE("compare: what is worse, better or the same is called so, with an exit code") {
    const TemporaryFolder folder;
    const std::string a = folder.write("a.yaml", compared_study(levels)).string();
    const auto set = [&](const std::string& value, const std::string& directory) {
        return autotune({"compare", a, "--set", "max_num_seqs=" + value, "--directory", directory,
                         "--quiet", "--json", "--margin", "0.04"},
                        folder.path());
    };
    const Ran worse = set("8", "worse");
    INFO(worse.out << worse.err);
    CHECK(worse.code == 1);
    const Json json = Json::parse(worse.out);
    CHECK(json["verdict"] == "worse");
    CHECK(json["goals"][0]["gain"]["high"].get<double>() < -0.5);
    CHECK(json["a"]["values"].size() == json["goals"][0]["pairs"].get<std::size_t>());
    CHECK(has(json["b"]["command"].get<std::string>(), "--max-num-seqs=8"));

    const Ran same = set("512", "same");  // 64 at a time do not need more than 256
    INFO(same.out << same.err);
    CHECK(same.code == 0);
    CHECK(Json::parse(same.out)["verdict"] == "same");

    const std::string slow =
        folder.write("slow.yaml", compared_study("{max_num_seqs: 8}")).string();
    const Ran better = autotune({"compare", slow, a, "--directory", "better"}, folder.path());
    INFO(better.out << better.err);
    CHECK(better.code == 0);
    CHECK(has(better.out, "B is better: maximize total_tokens_per_second on w: +"));
    CHECK(has(better.err, "pair 1: A "));
}

TEST_CASE("compare: --set takes flags that the study does not search") {
    const TemporaryFolder folder;
    const std::string a = folder.write("a.yaml", compared_study(levels)).string();
    const Ran other = autotune({"compare", a, "--set", "max_num_batched_tokens=256", "--set",
                                "kv_cache_dtype=fp8", "--directory", "out"},
                               folder.path());
    INFO(other.out << other.err);
    CHECK((other.code == 0 || other.code == 1 || other.code == 6));
    CHECK(has(other.err, "--max-num-batched-tokens=256"));
    CHECK(has(other.err, "--kv-cache-dtype=fp8"));
    CHECK(std::filesystem::exists(folder.path() / "out/b/study.yaml"));
    const Ran unknown =
        autotune({"compare", a, "--set", "no_such_flag=1", "--directory", "none"}, folder.path());
    CHECK(unknown.code == 2);
    CHECK(has(unknown.err, "no_such_flag"));
    const Ran beyond = autotune({"compare", a, "--set", "max_num_seqs=77", "--directory", "beyond"},
                                folder.path());
    INFO(beyond.err);
    CHECK(has(beyond.err, "--max-num-seqs=77"));  // not one of the study's own levels
}

TEST_CASE("compare: goes on where it stopped, and says what it cannot compare") {
    const TemporaryFolder folder;
    const std::string a = folder.write("a.yaml", compared_study(levels, "10%")).string();
    const std::vector<std::string> words{"compare", a,   "--set", "max_num_seqs=512",
                                         "--pairs", "3", "--json"};
    const Ran first = autotune(words, folder.path());
    INFO(first.out << first.err);
    CHECK(first.code == 6);
    CHECK(Json::parse(first.out)["verdict"] == "undecided");
    const Ran again = autotune(words, folder.path());
    CHECK(again.out == first.out);
    CHECK_FALSE(has(again.err, "pair "));  // nothing was measured
    std::vector<std::string> more = words;
    more[5] = "4";
    const Json longer = Json::parse(autotune(more, folder.path()).out);
    CHECK(longer["goals"][0]["pairs"].get<std::size_t>() >= 3);
    CHECK(longer["a"]["values"][0] == Json::parse(first.out)["a"]["values"][0]);

    CHECK(autotune({"compare", a}, folder.path()).code == 2);
    CHECK(
        autotune({"compare", a, "--set", "max_num_seqs=engine", "--directory", "d"}, folder.path())
            .code == 2);
    const std::string other =
        folder
            .write("other.yaml",
                   replaced(compared_study(levels), "maximize: total", "maximize: output"))
            .string();
    const Ran unlike = autotune({"compare", a, other, "--directory", "e"}, folder.path());
    CHECK(unlike.code == 2);
    CHECK(has(unlike.err,
              "they cannot be compared: objective of A is maximize total_tokens_per_second, of B "
              "maximize output"));
    const Ran another = autotune({"compare", a, "--set", "max_num_seqs=8"},
                                 folder.path());  // into the folder of the first
    CHECK(another.code == 3);
    CHECK(has(another.err, "max_num_seqs"));
    const std::string sure = folder.write("sure.yaml", compared_study(levels, "0")).string();
    CHECK(has(
        autotune({"compare", sure, "--set", "max_num_seqs=8", "--directory", "f"}, folder.path())
            .err,
        "same answer every time"));
}

TEST_CASE("compare: a B that fails, or that alone breaks a limit, is refused") {
    const TemporaryFolder folder;
    const std::string a =
        folder.write("a.yaml", compared_study("{quantization: {choice: [none, gptq]}}")).string();
    const Ran fails =
        autotune({"compare", a, "--set", "quantization=gptq", "--quiet"}, folder.path());
    INFO(fails.out << fails.err);
    CHECK(fails.code == 1);
    CHECK(has(fails.out, "B fails: rejected_flags: the checkpoint is bf16, not gptq"));

    const std::string limited =
        folder
            .write("limited.yaml",
                   compared_study(levels, "1%", ", limits: [time_to_first_token_p95_seconds <= 2]"))
            .string();
    const Ran broken = autotune(
        {"compare", limited, "--set", "max_num_seqs=8", "--directory", "limited", "--quiet"},
        folder.path());
    INFO(broken.out << broken.err);
    CHECK(broken.code == 1);
    CHECK(has(broken.out, "B breaks a limit that A keeps: limit time_to_first_token_p95_seconds"));
}
