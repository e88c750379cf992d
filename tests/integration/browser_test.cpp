// SPDX-License-Identifier: Apache-2.0
// The page in a real browser, driven by playwright-core: what it looks like and what it does, at a
// desk, on a phone, in the dark and on paper. The cases are in tests/browser/page_test.mjs.
// $SERVETUNE_TEST_PICTURES: a folder that gets pictures to look at. Debian's chromium and packages
// from npm are needed; without them this is skipped.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <unistd.h>

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

bool drives_browser() {
    const bool here = access("/usr/bin/chromium", X_OK) == 0 &&
                      fs::exists(fs::path(BROWSER_PACKAGES) / "node_modules/playwright-core");
    if (!here) WARN("skipped: /usr/bin/chromium or playwright-core is missing");
    return here;
}

/// A table of results, as many as there are combinations of four parameters, with latencies at four
/// percentiles. Where `fails`, all ran out of memory; else those of the largest batch did. Words of
/// the log look like markup.
void write_results(const TemporaryFolder& folder, int sizes, bool fails) {
    std::string table =
        "max_num_seqs,kv_cache_dtype,max_num_batched_tokens,enable_prefix_caching,status,total_"
        "tokens_per_second";
    for (const char* family : {"time_to_first_token", "time_per_output_token", "latency"})
        for (const char* level : {"mean", "p50", "p90", "p95", "p99"})
            table += "," + std::string(family) + "_" + level + "_seconds";
    table += ",message\n";
    int n = 0;
    for (int size = 1; size <= sizes; ++size)
        for (const char* type : {"engine", "fp8"})
            for (const int tokens : {1024, 2048, 4096})
                for (const char* caching : {"true", "false"}) {
                    ++n;
                    table += std::to_string(16 * size) + "," + type + "," + std::to_string(tokens) +
                             "," + caching;
                    if (fails || (size == sizes && tokens == 4096)) {
                        table += ",out_of_memory," + std::string(16, ',') +
                                 "\"</script><script>document.title='taken'</script><img src=x "
                                 "onerror=alert(1)> \x1b[31mred\"\n";
                        continue;
                    }
                    const double noise = 20 * std::sin(12.9898 * n);
                    const double rate = 2000 + 800 * std::sqrt(size) + (*type == 'f' ? 300 : 0) +
                                        tokens / 8.0 + noise;
                    table += ",ok," + std::to_string(rate);
                    for (const double first :
                         {0.05 * size + tokens / 40000.0, 0.01 + 0.001 * size, 0.8 + 0.3 * size})
                        for (const double level : {1.0, 0.9, 1.5, 1.9, 3.0})
                            table += "," + std::to_string(first * level);
                    table += ",\n";
                }
    if (fails) {  // a row that no configuration has, so that the table has the metrics
        table += "8,engine,1024,true,ok";
        for (int k = 0; k < 16; ++k) table += ",1";
        table += ",\n";
    }
    folder.write("t.csv", table);
}

/// The page of a study over such a table.
fs::path page_to_browse(const TemporaryFolder& folder, const std::string& name, int sizes,
                        bool fails = false) {
    write_results(folder, sizes, fails);
    std::string choices;
    for (int size = 1; size <= sizes; ++size)
        choices += (size > 1 ? ", " : "") + std::to_string(16 * size);
    const auto study = folder.write(
        name + ".yaml", "study: " + name +
                            "\nmodel: org/m\nengine: vllm\nothers: default\nstrategy: "
                            "exhaustive\nworkloads: [random]\n" +
                            "objective: {maximize: total_tokens_per_second, limits: "
                            "[time_to_first_token_p95_seconds <= 900ms]}\nspace:\n  max_num_seqs: "
                            "{choice: [" +
                            choices +
                            "], ordered: true, default: 16}\n  kv_cache_dtype: [engine, fp8]\n  "
                            "max_num_batched_tokens: {choice: " +
                            "[1024, 2048, 4096], ordered: true, default: 1024}\n  "
                            "enable_prefix_caching: [true, false]\n" +
                            "budget: 600 trials\nevaluator: {replay: t.csv}\n");
    const Ran run = autotune({"run", study.string(), "--quiet"}, folder.path());
    INFO(run.err);
    REQUIRE(run.code == (fails ? 4 : 0));
    return folder.path() / name / "report.html";
}

/// Cases of tests/browser/page_test.mjs, in a browser of their own each.
void holds(const fs::path& page, const std::vector<std::string>& cases,
           const TemporaryFolder& folder) {
    const char* const pictures = std::getenv("SERVETUNE_TEST_PICTURES");
    for (const std::string& one : cases) {
        std::vector<std::string> command{"/usr/bin/env",
                                         "SERVETUNE_BROWSER_PACKAGES=" BROWSER_PACKAGES,
                                         "node",
                                         SERVETUNE_SOURCE "/tests/browser/page_test.mjs",
                                         one,
                                         page.string()};
        if (pictures != nullptr) command.emplace_back(pictures);
        const Ran shown = ran(command, folder.path());
        INFO(one << "\n" << shown.err);
        CHECK(shown.code == 0);
        CHECK(has(shown.out, "holds: " + one));
    }
}

}  // namespace

TEST_CASE(
    "browser: the page opens silently, its tables work, it has contrast and names, it prints") {
    if (!drives_browser()) return;
    const TemporaryFolder folder;
    holds(page_to_browse(folder, "page", 4), {"opens", "tables", "access", "paper"}, folder);
}

TEST_CASE("browser: drawings are as wide as a phone") {
    if (!drives_browser()) return;
    const TemporaryFolder folder;
    holds(page_to_browse(folder, "page", 4), {"phone"}, folder);
}

TEST_CASE("browser: charts by mouse, by keys, with chosen values") {
    if (!drives_browser()) return;
    const TemporaryFolder folder;
    holds(page_to_browse(folder, "page", 4), {"mouse", "keys", "swipe"}, folder);
}

TEST_CASE("browser: a study of five hundred trials, and one in which everything failed") {
    if (!drives_browser()) return;
    const TemporaryFolder folder;
    holds(page_to_browse(folder, "large", 42), {"opens", "phone"}, folder);
    holds(page_to_browse(folder, "failed", 2, true), {"opens", "failed", "phone"}, folder);
}

TEST_CASE("browser: the pictures of the documentation are made from a page") {
    if (!drives_browser()) return;
    const TemporaryFolder folder;
    const fs::path build = fs::path(SERVETUNE_PROGRAM).parent_path().parent_path();
    const Ran made =
        ran({SERVETUNE_SOURCE "/scripts/report-pictures", build.string(), folder.path().string()},
            folder.path());
    INFO(made.err);
    CHECK(made.code == 0);
    for (const char* name : {"report.png", "report-phone.png"}) {
        // Letters differ from machine to machine; signature, header and width of a picture do not.
        constexpr std::size_t head = 20;
        const std::string drawn = read_file(folder.path() / name);
        const std::string shown = read_file(fs::path(SERVETUNE_SOURCE) / "docs" / name);
        REQUIRE(drawn.size() > head);
        REQUIRE(shown.size() > head);
        CHECK(drawn.substr(0, head) == shown.substr(0, head));
        CHECK(shown.size() < 400'000);
    }
}
