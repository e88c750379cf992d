// SPDX-License-Identifier: Apache-2.0
// What happens to a study when its run has ended: who is told (`on_done`).
#include "support/autotune.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <filesystem>
#include <string>
#include <utility>

using namespace servetune;
using namespace servetune::test;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string simulated_study(const std::string& name, const std::string& hardware,
                            const std::string& more = "") {
    return "study: " + name + "\nmodel: Qwen/Qwen3-8B\nhardware: " + hardware +
           "\nengine: vllm\n"
           "workloads: [{workload: small, dataset: {kind: random, input_tokens: 128, "
           "output_tokens: 32}, requests: 60, "
           "arrival: {concurrency: 16}}]\n"
           "objective: {maximize: total_tokens_per_second}\n"
           "space: {max_num_seqs: {choice: [4, 8, 16], default: 4}}\nothers: default\nstrategy: "
           "exhaustive\n"
           "budget: {trials: 13}\nevaluator: {simulate: {noise: 1%}}\n" +
           more;
}

}  // namespace

TEST_CASE(
    "study end: the program of on_done gets the verdict as words, and its failure changes no exit "
    "code") {
    const TemporaryFolder folder;
    std::filesystem::permissions(
        folder.write("tell", "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done > told.txt\n"),
        std::filesystem::perms::owner_all);
    const std::string words = "[\"" + (folder.path() / "tell").string() +
                              "\", \"{study}: {verdict}\", \"{outcome}\", \"{reason}\", "
                              "\"{report}\", \"{other} $(id); {\"]";
    folder.write("study.yaml", simulated_study("a name", "h100-sxm", "on_done: " + words + "\n"));
    const Ran ended =
        autotune({"run", "study.yaml", "--directory", "out", "--quiet"}, folder.path());
    INFO(ended.out << ended.err);
    REQUIRE(ended.code == 0);
    const std::string told = read_file(folder.path() / "told.txt");
    INFO(told);
    CHECK(told.starts_with("<a name: Recommended: +"));
    CHECK(contains(told, "><recommended><strategy_finished><"));
    CHECK(contains(told, "out/report.html>"));
    CHECK(told.ends_with("<{other} $(id); {>"));

    // Run again, nothing is new, so nobody is told; with more trials there is.
    fs::remove(folder.path() / "told.txt");
    REQUIRE(autotune({"run", "study.yaml", "--directory", "out", "--quiet"}, folder.path()).code ==
            0);
    CHECK_FALSE(fs::exists(folder.path() / "told.txt"));
    std::string larger = simulated_study("a name", "h100-sxm", "on_done: " + words + "\n");
    for (const auto& [old, now] :
         {std::pair{"[4, 8, 16]", "[4, 8, 16, 32]"}, std::pair{"trials: 13", "trials: 30"}})
        larger.replace(larger.find(old), std::string(old).size(), now);
    folder.write("study.yaml", larger);
    REQUIRE(autotune({"run", "study.yaml", "--directory", "out", "--quiet", "--accept-changes"},
                     folder.path())
                .code == 0);
    CHECK(fs::exists(folder.path() / "told.txt"));

    folder.write(
        "fails.yaml",
        simulated_study("fails", "h100-sxm", "on_done: [/bin/sh, -c, \"echo no mail; exit 4\"]\n"));
    const Ran fails = autotune({"run", "fails.yaml", "--quiet"}, folder.path());
    CHECK(fails.code == 0);
    CHECK(contains(fails.err, "`on_done`: /bin/sh ended with exit code 4: no mail"));
    folder.write("none.yaml", simulated_study("none", "h100-sxm", "on_done: [/no/such/program]\n"));
    const Ran none = autotune({"run", "none.yaml", "--quiet"}, folder.path());
    CHECK(none.code == 0);
    CHECK(contains(none.err, "`on_done`: cannot start /no/such/program"));
}
