// SPDX-License-Identifier: Apache-2.0
// Where a printed block begins and ends in a document that somebody copied by hand, and what its
// zeros mean.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/audit.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/result_file.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<PublishedResult> blocks_in(const std::string& document) {
    static const std::vector<Engine> engines = shipped_catalogue.engines();
    return read_published(document, engines);
}

/// A block without the rule that ends it.
std::string open_block(int successes, double rate, const std::string& more = "") {
    return "============ Serving Benchmark Result ============\nSuccessful requests:    " +
           std::to_string(successes) + "\nRequest throughput (req/s):   " + std::to_string(rate) +
           "\n" + more;
}
const std::string rule(50, '=');

}  // namespace

TEST_CASE("published blocks: one whose rule is missing ends with its fence, a heading or HTML") {
    const auto two = blocks_in(
        "# Small\n```bash\nvllm serve org/a-8b --max-num-seqs 8\n```\n```\n" + open_block(90, 2) +
        "```\n# Large\n```bash\nvllm serve org/b-70b --max-num-seqs 64\n```\n```\n" +
        open_block(80, 4) + rule + "\n```\n");
    REQUIRE(two.size() == 2);
    CHECK(two[0].arguments == "vllm serve org/a-8b --max-num-seqs 8");
    CHECK(two[0].sections.back() == "Small");
    CHECK(two[1].arguments == "vllm serve org/b-70b --max-num-seqs 64");
    CHECK(two[1].sections.back() == "Large");
    for (const char* end : {"```\nOf other runs. ", "\n# Later\n", "\n</details>\n"}) {
        INFO(end);
        const auto one = blocks_in("```\n" + open_block(90, 2) + end +
                                   "Maximum request concurrency: 7\nMean ITL (ms): 3\n");
        REQUIRE(one.size() == 1);
        CHECK(one[0].result.requests_per_second == 2);
        CHECK_FALSE(one[0].result.maximum_concurrency.has_value());
        CHECK_FALSE(one[0].result.inter_token_latency.mean.has_value());
    }
}

TEST_CASE("published blocks: quoted, listed, coloured, in a difference and from a log") {
    for (const char* prefix : {"> ", "+", "+ ", "- ", "  ", "bench-1  | ", "\x1b[32m", "INFO | "}) {
        INFO(prefix);
        std::string document;
        for (const char* line :
             {"==== Serving Benchmark Result ====", "Successful requests: 90",
              "-----Inter-token Latency-----", "Mean ITL (ms): 12.5", "====================="})
            document += prefix + std::string(line) + "\n";
        const auto one = blocks_in(document);
        REQUIRE(one.size() == 1);
        CHECK(one[0].result.successful_requests == 90);
        CHECK(one[0].result.inter_token_latency.mean == 0.0125);
        CHECK(one[0].unread.empty());
    }
}

TEST_CASE("published blocks: zeros of what was not measured are absent") {
    const auto prefill =
        blocks_in(
            open_block(
                10, 0.5,
                "Total input tokens: 0\nPeak concurrent requests: 0\nMean TTFT (ms): 9000.00\n"
                "Mean ITL (ms): 0.00\nMedian ITL (ms): 0.00\nP99 ITL (ms): 0.00\n") +
            rule)[0]
            .result;
    CHECK_FALSE(prefill.inter_token_latency.mean.has_value());
    CHECK_FALSE(prefill.inter_token_latency.p99.has_value());
    CHECK_FALSE(prefill.input_tokens.has_value());
    CHECK_FALSE(prefill.peak_concurrent_requests.has_value());
    CHECK(prefill.time_to_first_token.mean == 9);
    // A median of nothing beside a mean of something is a finding, so it stays.
    const auto odd =
        blocks_in(open_block(10, 0.5, "Mean TTFT (ms): 9000.00\nMedian TTFT (ms): 0.00\n") +
                  rule)[0]
            .result;
    CHECK(odd.time_to_first_token.p50 == 0);
    const auto unseen =
        blocks_in(open_block(10, 0.5, "Mean TPOT (ms): 42.50\nMean ITL (ms): 0.00\n") + rule)[0]
            .result;
    CHECK(unseen.inter_token_latency.mean == 0);
}

TEST_CASE(
    "published blocks: of a run without a success nothing is measured, and the audit says so") {
    const auto failed = blocks_in(open_block(0, 2, "Mean TTFT (ms): 120.00\n") + rule)[0].result;
    CHECK_FALSE(failed.time_to_first_token.mean.has_value());
    const Validity validity = audit(failed, {});
    CHECK(validity.verdict == Verdict::unsound);
    REQUIRE(validity.findings.size() == 1);
    CHECK(validity.findings[0].id == "complete");
    CHECK(validity.findings[0].left == "0 requests succeeded");
}

TEST_CASE("published blocks: the only number of requests above a block is what was sent") {
    const auto planned = [](const std::string& above) {
        return blocks_in(above + "\n" + open_block(1648, 2) + rule)[0].planned_requests;
    };
    CHECK(planned("vllm bench serve --model m --num-prompts 3000") == 3000);
    CHECK_FALSE(
        planned("vllm bench serve --num-prompts 1648 and later --num-prompts 3000").has_value());
    CHECK_FALSE(planned("with --num-prompts 2000, then --num-prompts 3000")
                    .has_value());                                  // 1648 = 16 * 103 may be meant
    CHECK(planned("vllm bench serve --num-prompts 4000") == 4000);  // however few came back
}

TEST_CASE("published blocks: a title keeps what stands behind a dash, a bar or a number") {
    for (const char* title : {"Router - Least Load", "FP8 | 8 GPUs", "Run #2, again"}) {
        const auto one =
            blocks_in("# Top\n## " + std::string(title) + "\n" + open_block(90, 2) + rule);
        REQUIRE(one.size() == 1);
        CHECK(one[0].sections == std::vector<std::string>{"Top", title});
    }
}
