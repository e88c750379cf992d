// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/audit.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "study_file/audit_context.hpp"
#include "support/shipped.hpp"

#include <cmath>
#include <functional>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

/// 800 requests of 1000 tokens in and 100 out through 8 slots on an H100: every identity holds.
BenchmarkResult flawless() {
    BenchmarkResult r;
    r.successful_requests = 800;
    r.failed_requests = 0;
    r.time_to_first_token = {0.1, 0.1, 0.11, 0.12, 0.13};
    r.time_per_output_token = {0.01, 0.01, 0.011, 0.012, 0.013};
    r.inter_token_latency = {0.01, 0.01, 0.011, 0.012, 0.013};
    r.latency = {1.09, 1.09, 1.1, 1.11, 1.12};
    r.duration_seconds = 109.5;
    r.input_tokens = 800'000;
    r.output_tokens = 80'000;
    r.requests_per_second = 800 / 109.5;
    r.output_tokens_per_second = 80'000 / 109.5;
    r.total_tokens_per_second = 880'000 / 109.5;
    r.peak_output_tokens_per_second = 900;
    r.maximum_concurrency = 8;
    r.client.loop_lag_p99 = 0.0001;
    r.client.coalesced_share = 0.01;
    r.client.processor_share = 0.2;
    r.server.output_tokens = 80'000;
    r.server.input_tokens = 800'000;
    r.server.prefix_hit_tokens = 0;
    return r;
}

AuditContext all_known() {
    AuditContext c;
    c.requested_requests = 800;
    c.concurrency_cap = 8;
    c.closed_loop = true;
    c.equal_output_lengths = true;
    c.mean_input_tokens = 1000;
    ModelSpec model{"org/Model-8B"};
    model.parameters_active = 8e9;
    model.parameters_embedding = 1e9;
    model.native_type = "bf16";
    model.weights = {{"bf16", {16e9, 15e9, "bf16"}}};
    c.served = ServedModel{model, "bf16"};
    c.command_is_known = true;
    HardwareSpec hardware{"chip"};
    hardware.memory_bandwidth_bytes_per_second = 3.35e12;
    hardware.flops_per_second = {{"bf16", 989e12}};
    c.hardware = hardware;
    return c;
}

std::set<std::string> ids(const Validity& validity) {
    std::set<std::string> result;
    for (const Finding& finding : validity.findings) result.insert(finding.id);
    return result;
}

const Finding* finding_of(const Validity& validity, std::string_view id) {
    for (const Finding& finding : validity.findings)
        if (finding.id == id) return &finding;
    return nullptr;
}

/// The measured rows of a published table, audited as its study does it.
std::vector<std::pair<MeasuredTable::Row, Validity>> audited(const std::string& study) {
    const StudyFile file =
        load_study(search_spaces / "published" / study, Catalogue(search_spaces));
    MeasuredTable table = read_table(std::get<ReplayChoice>(file.measuring).table);
    audit_rows(table, file);
    std::vector<std::pair<MeasuredTable::Row, Validity>> result;
    for (const MeasuredTable::Row& row : table.rows)
        result.emplace_back(row, std::get<Measurement>(row.outcome).validity);
    return result;
}

}  // namespace

TEST_CASE(
    "audit: the chat template's words may come from the cache, also where the server counts "
    "without them") {
    BenchmarkResult r = flawless();
    r.server.prefix_hit_tokens = 800 * 14;
    r.server.input_tokens = 800'000 - 800 * 14;
    CHECK(audit(r, all_known()).verdict == Verdict::sound);
    r.server.prefix_hit_tokens = 800 * 14 + 20'000;
    CHECK(audit(r, all_known()).findings.front().left ==
          "31200 of 800000 prompt tokens came from the prefix cache");
}

TEST_CASE("audit: a flawless measurement is sound with everything known and with nothing known") {
    const Validity all = audit(flawless(), all_known());
    INFO((all.findings.empty()
              ? ""
              : all.findings[0].id + ": " + all.findings[0].left + "; " + all.findings[0].right));
    CHECK(all == Validity{});
    CHECK(audit(flawless()) == Validity{});
    CHECK(audit(BenchmarkResult{}) == Validity{Verdict::unchecked, {}});
    CHECK(not_checked(flawless(), all_known()).size() ==
          1);  // load_bound: a closed loop has no rate
}

TEST_CASE(
    "audit: first tokens that were held back let later ones come together, but the whole answer "
    "keeps its floor") {
    const auto impossible = [](double ttft,
                               double tpot) {  // 8 tokens; 15 GB at 3.35 TB/s: 4.48 ms each
        BenchmarkResult r;
        r.successful_requests = 100;
        r.output_tokens = 800;
        r.time_to_first_token.mean = ttft;
        r.time_per_output_token.mean = tpot;
        return ids(audit(r, all_known())).contains("physics");
    };
    CHECK_FALSE(impossible(0.05, 0.001));  // 57 ms for 8 tokens
    for (const double tpot : {0.001, 1e-6, 0.0})
        CHECK(impossible(0.02, tpot));  // 27 ms or less, however small a printed unit is
    CHECK(impossible(0.006, 0.001));
    CHECK(impossible(0.01, 0.0043));  // most of the time is decoding: no excuse
}

TEST_CASE("audit: every identity, broken alone, is found alone") {
    struct Case {
        const char* id;
        Verdict verdict;
        std::function<void(BenchmarkResult&, AuditContext&)> spoil;
        const char* cause;
    };
    using R = BenchmarkResult;
    using C = AuditContext;
    const std::vector<Case> cases{
        {"window", Verdict::suspect, [](R& r, C&) { *r.total_tokens_per_second *= 1.02; },
         "rates over another window"},
        {"window", Verdict::unsound, [](R& r, C&) { *r.output_tokens_per_second *= 1.08; },
         "the rate is that of 101.39 s, the run took 109.50 s"},
        {"window", Verdict::unsound, [](R& r, C&) { *r.requests_per_second *= 0.9; },
         "another window"},
        {"decomposition", Verdict::unsound,
         [](R& r, C&) {
             r.time_per_output_token = {0.0094, 0.0094, {}, {}, 0.013};
             r.inter_token_latency = {0.0094, 0.0094};
         },
         "tokens not observed"},
        {"chunks", Verdict::suspect,
         [](R& r, C&) {
             r.inter_token_latency = {0.02, 0.02, 0.02, 0.02, 0.03};
         },
         "about 2 tokens came in each"},
        {"chunks", Verdict::suspect,
         [](R& r, C&) {
             r.inter_token_latency = {0.005, 0.004, 0.01, 0.02, 0.03};
         },
         "chunks without tokens"},
        {"little", Verdict::suspect,
         [](R&, C& c) {
             c.concurrency_cap = 7;
             c.closed_loop = false;
         },
         "more requests in flight than allowed"},
        {"little", Verdict::suspect, [](R&, C& c) { c.concurrency_cap = 16; },
         "did not keep its slots busy"},
        {"order", Verdict::suspect, [](R& r, C&) { r.latency.p95 = 1.0; }, "percentiles fall"},
        {"order", Verdict::suspect, [](R& r, C&) { r.inter_token_latency.p50 = 0; },
         "not observed one by one"},
        {"peak", Verdict::suspect, [](R& r, C&) { r.peak_output_tokens_per_second = 20'000; },
         "time collapsed"},
        {"peak", Verdict::suspect, [](R& r, C&) { r.peak_output_tokens_per_second = 500; },
         "below the mean"},
        {"complete", Verdict::unsound, [](R&, C& c) { c.requested_requests = 1000; },
         "survivors' bias"},
        {"complete", Verdict::suspect, [](R&, C& c) { c.mean_input_tokens = 1200; },
         "not the data set's"},
        {"load_bound", Verdict::suspect, [](R&, C& c) { c.requested_rate_per_second = 7.3; },
         "kept up with the rate offered"},
        {"client", Verdict::suspect, [](R& r, C&) { r.client.loop_lag_p99 = 0.0006; },
         "client-limited"},
        {"client", Verdict::suspect, [](R& r, C&) { r.client.coalesced_share = 0.06; },
         "client-limited"},
        {"client", Verdict::suspect, [](R& r, C&) { r.client.processor_share = 0.8; },
         "client-limited"},
        {"server", Verdict::unsound, [](R& r, C&) { r.server.output_tokens = 79'000; },
         "another server answered"},
        {"server", Verdict::unsound, [](R& r, C&) { r.server.output_tokens = 81'000; },
         "others used it"},
        {"server", Verdict::suspect, [](R& r, C&) { r.server.prefix_hit_tokens = 100'000; },
         "cache contamination"},
        // Of prompts that the server does not count: most came from its cache.
        {"server", Verdict::suspect,
         [](R& r, C&) {
             r.server.input_tokens = 1;
             r.server.prefix_hit_tokens = 100'000;
         },
         "cache contamination"},
        {"physics", Verdict::unsound,
         [](R&, C& c) { c.hardware->memory_bandwidth_bytes_per_second = 1.4e12; },
         "impossible: a token would need 1500 GB/s"},
        {"physics", Verdict::suspect,
         [](R&, C& c) {
             c.hardware->flops_per_second = {{"bf16", 120e12}};
         },
         "the prefix cache answered"},
    };
    for (const Case& one : cases) {
        BenchmarkResult result = flawless();
        AuditContext context = all_known();
        one.spoil(result, context);
        const Validity validity = audit(result, context);
        INFO(one.id << ": " << one.cause);
        CHECK(ids(validity) == std::set<std::string>{one.id});
        CHECK(validity.verdict == one.verdict);
        const Finding* finding = finding_of(validity, one.id);
        REQUIRE(finding != nullptr);
        INFO(finding->left << "; " << finding->right << ": " << finding->cause);
        CHECK(has(finding->cause, one.cause));
        CHECK_FALSE(finding->left.empty());
        CHECK_FALSE(finding->right.empty());
    }
}

TEST_CASE("audit: a client that does not see the decoding is named, in both tools' definitions") {
    BenchmarkResult r = flawless();
    // guidellm, where all tokens of a request fall on its first chunk: T = F / o, G = 0.
    r.time_per_output_token = {0.001};
    r.inter_token_latency = {0, 0};
    const Validity validity = audit(r, all_known());
    CHECK(validity.verdict == Verdict::unsound);
    CHECK(ids(validity) ==
          std::set<std::string>{"decomposition", "hidden_decode", "order", "physics"});
    CHECK(has(finding_of(validity, "decomposition")->cause, "guidellm's definition"));
    CHECK(finding_of(validity, "decomposition")->left == "T o = 0.1 s");
    CHECK(has(finding_of(validity, "hidden_decode")->cause, "90.8 % of a request's time"));

    // guidellm when it sees everything: T holds the TTFT, and nothing is wrong.
    r = flawless();
    r.time_per_output_token = {0.0109};
    CHECK(audit(r, all_known()) == Validity{});
    AuditContext told = all_known();
    told.dialect = Dialect::vllm;
    CHECK(ids(audit(r, told)) ==
          std::set<std::string>{"decomposition",
                                "chunks"});  // the same figures would be wrong of vLLM
}

TEST_CASE(
    "audit: with mixed lengths vLLM's mean TPOT may exceed the latency, but not fall short of it") {
    BenchmarkResult r = flawless();
    AuditContext c = all_known();
    c.equal_output_lengths = false;
    r.time_per_output_token.mean = 0.016;
    CHECK(audit(r, c) == Validity{});
    r.time_per_output_token.mean = 0.006;
    CHECK(ids(audit(r, c)) == std::set<std::string>{"decomposition"});
    r.latency = {};  // not printed: not derived
    CHECK(audit(r, c) == Validity{});
}

TEST_CASE(
    "audit: answers whose lengths were not enforced, or whose tokens are estimated, are flagged") {
    const BenchmarkResult r = flawless();
    const double mean = *r.output_tokens / *r.successful_requests;
    AuditContext context = all_known();
    context.asked_output_tokens = mean;
    CHECK(audit(r, context) == Validity{});
    context.asked_output_tokens = 1.1 * mean;
    CHECK(ids(audit(r, context)) == std::set<std::string>{"lengths"});
    CHECK(audit(r, context).verdict == Verdict::suspect);
    context = all_known();
    context.tokens_are_estimated = true;
    CHECK(ids(audit(r, context)) == std::set<std::string>{"counts"});
    CHECK(audit(r, context).verdict == Verdict::suspect);
}

TEST_CASE("audit: what is printed with two decimals is not held against more") {
    BenchmarkResult r = flawless();
    r.successful_requests = 10;
    r.duration_seconds = 81.59;
    r.input_tokens = 20431;
    r.output_tokens = 1280;
    r.requests_per_second = 0.12;  // 0.1226
    r.output_tokens_per_second = 15.69;
    r.total_tokens_per_second = 266.09;
    CHECK(finding_of(audit(r), "window") == nullptr);
    r.requests_per_second = 0.11;  // further than rounding
    REQUIRE(finding_of(audit(r), "window") != nullptr);
    CHECK(finding_of(audit(r), "window")->left == "requests_per_second = 0.11");
}

TEST_CASE("audit: half a printed unit is allowed as an amount, not as a share of what is printed") {
    BenchmarkResult r;
    r.successful_requests = 10;
    r.duration_seconds = 666.67;
    r.requests_per_second = 0.02;  // 0.0150
    CHECK(audit(r) == Validity{});
    r.requests_per_second = 0.01;
    CHECK(audit(r) == Validity{});
    r.requests_per_second = 0.03;
    CHECK(audit(r).verdict == Verdict::unsound);
    r.requests_per_second = 0;
    CHECK(audit(r).verdict == Verdict::unsound);

    r = BenchmarkResult{};  // 0.0149 and 0.0150 ms
    r.successful_requests = 100;
    r.output_tokens = 10'000;
    r.inter_token_latency.mean = 2e-5;
    r.time_per_output_token.mean = 1e-5;
    CHECK(audit(r) == Validity{});
    r.inter_token_latency.mean = 4e-5;
    CHECK(ids(audit(r)) == std::set<std::string>{"chunks"});

    r = BenchmarkResult{};  // 0.005 s through two slots
    r.successful_requests = 400;
    r.duration_seconds = 1;
    r.latency.mean = 0.01;
    r.maximum_concurrency = 2;
    CHECK(audit(r) == Validity{});
    r.latency.mean = 0.02;
    CHECK(ids(audit(r)) == std::set<std::string>{"little"});

    // 37 in flight of 64: the longest answers end alone.
    r.duration_seconds = 33;
    r.latency = {.mean = 3, .p99 = 13};
    r.maximum_concurrency = 64;
    AuditContext closed;
    closed.closed_loop = true;
    CHECK(ids(audit(r, closed)).empty());
    r.latency.p99 = 4;
    CHECK(ids(audit(r, closed)) == std::set<std::string>{"little"});
}

TEST_CASE("audit: a server whose queue grew did not keep up, whatever latency its queue explains") {
    AuditContext context;
    context.rate_is_intended = true;
    const auto noted = [&](double rate, double duration, double latency) {
        BenchmarkResult r;
        r.successful_requests = 200;
        r.duration_seconds = duration;
        r.latency.mean = latency;
        r.requested_rate_per_second = rate;
        return ids(audit(r, context)).contains("load_bound");
    };
    CHECK(noted(0.5, 408, 8));
    CHECK(noted(0.5, 425, 20));
    CHECK_FALSE(noted(0.5, 560, 140));  // 0.36 a second
    CHECK_FALSE(noted(1, 380, 160));
    CHECK_FALSE(noted(1, 380, 190));
}

TEST_CASE("audit: what is missing is said, never guessed") {
    AuditContext c = all_known();
    c.served = std::nullopt;
    const auto reason = [&](const char* id) {
        for (const NotChecked& one : not_checked(flawless(), c))
            if (one.id == id) return one.reason;
        return std::string();
    };
    CHECK(reason("physics") == "the model is not known");
    c = all_known();
    c.hardware = std::nullopt;
    CHECK(reason("physics") == "the hardware is not known");
    c = all_known();
    c.served->quantization = "gguf";
    CHECK(reason("physics") == "the bytes of org/Model-8B as gguf are not known");
    c.hardware->memory_bandwidth_bytes_per_second = 1;
    CHECK(audit(flawless(), c) == Validity{});
    // Speculation lowers the floor by the tokens of a step; when that number is not known there is
    // no floor.
    c = all_known();
    c.hardware->memory_bandwidth_bytes_per_second = 1e12;  // 15 ms a step
    CHECK(audit(flawless(), c).verdict == Verdict::unsound);
    c.tokens_per_step = 2;
    CHECK(audit(flawless(), c) == Validity{});
    c.tokens_per_step = std::nullopt;
    CHECK(audit(flawless(), c) == Validity{});
    c.tokens_per_step = 1;
    c.devices = 2;
    CHECK(audit(flawless(), c) == Validity{});
}

TEST_CASE("audit: a token that comes too soon is impossible only where no token was guessed") {
    AuditContext c = all_known();
    c.hardware->memory_bandwidth_bytes_per_second = 1e12;  // 15 ms a step
    c.command_is_known = false;
    BenchmarkResult r = flawless();
    const Validity unknown = audit(r, c);
    CHECK(unknown.verdict == Verdict::suspect);
    CHECK(ids(unknown) == std::set<std::string>{"physics"});
    CHECK(unknown.findings.front().cause.starts_with("most likely speculation"));
    CHECK_FALSE(has(unknown.findings.front().cause, "impossible"));
    // Our own load test sees that each came alone, and when.
    r.tokens_per_chunk = 1;
    CHECK(audit(r, c).verdict == Verdict::unsound);
    for (const double median : {0.001, 0.015}) {  // a server that sends what it guessed one by one
        r.inter_token_latency.p50 = median;
        CHECK(ids(audit(r, c)).contains("physics"));
        CHECK(audit(r, c).verdict == Verdict::suspect);
    }
    r = flawless();
    r.tokens_per_chunk = 2.5;
    CHECK(audit(r, c).verdict == Verdict::suspect);
}

TEST_CASE("audit: results that are compared did equal work") {
    std::vector<BenchmarkResult> results(4, flawless());
    results[1].output_tokens = 80'300;  // 0.4 %
    results[2].input_tokens = 1'600'000;
    results[2].output_tokens = 160'000;
    const std::vector<Validity> found = audit_together(results);
    CHECK(found[0] == Validity{});
    CHECK(found[1] == Validity{});
    CHECK(found[2].verdict == Verdict::suspect);
    CHECK(found[2].findings.size() == 2);
    CHECK(found[2].findings[0].left == "1600000 input tokens in 800 requests");
    CHECK(found[3] == Validity{});
    CHECK(audit_together({}).empty());
}

TEST_CASE(
    "audit: a peak of chunks, a run without a whole second and answers beside long prompts are no "
    "suspects") {
    // Three tokens come in a chunk: 243 chunks a second at most beside 731 tokens on average.
    BenchmarkResult r = flawless();
    r.peak_output_tokens_per_second = 300;
    CHECK(ids(audit(r, all_known())).contains("peak"));
    r.inter_token_latency = {0.03, 0.03, 0.031, 0.032, 0.033};
    CHECK_FALSE(ids(audit(r, all_known())).contains("peak"));
    r.peak_output_tokens_per_second = 200;  // fewer than that
    CHECK(ids(audit(r, all_known())).contains("peak"));

    r = BenchmarkResult{};
    r.successful_requests = 100;
    r.output_tokens = 1000;
    r.duration_seconds = 1.5;
    r.peak_output_tokens_per_second = 500;
    CHECK_FALSE(ids(audit(r)).contains("peak"));
    r.duration_seconds = 2.0 / 1.001;
    CHECK_FALSE(ids(audit(r)).contains("peak"));
    r.duration_seconds = 2.001;
    r.peak_output_tokens_per_second = 400;
    CHECK(ids(audit(r)).contains("peak"));

    std::vector<BenchmarkResult> results(3, flawless());
    for (BenchmarkResult& result : results)
        result.input_tokens = 3'200'000, result.output_tokens = 10'000;
    results[1].output_tokens = 9'855;  // 1.4 % of the answers, 0.005 % of the work
    results[2].output_tokens = 5'000;
    const std::vector<Validity> found = audit_together(results);
    CHECK(found[0] == Validity{});
    CHECK(found[1] == Validity{});
    CHECK(ids(found[2]) == std::set<std::string>{"equal_work"});
}

TEST_CASE(
    "audit: that a server keeps up with the rate offered is a note where the rate was the point") {
    AuditContext context = all_known();
    context.requested_rate_per_second = 7.3;
    CHECK(audit(flawless(), context).verdict == Verdict::suspect);
    context.rate_is_intended = true;
    const Validity noted = audit(flawless(), context);
    CHECK(noted.verdict == Verdict::sound);
    CHECK(ids(noted) == std::set<std::string>{"load_bound"});
    CHECK(finding_of(noted, "load_bound")->cause.starts_with("a note: "));
    CHECK(compares_times(Objective{"time_to_first_token_mean_seconds", Direction::minimize}));
    CHECK_FALSE(compares_times(Objective{"total_tokens_per_second"}));
}

TEST_CASE("audit: a median time of nothing beside a mean of seconds is unsound") {
    BenchmarkResult r;
    r.time_to_first_token.mean = 21.4;
    r.time_to_first_token.p50 = 0;
    CHECK(audit(r).verdict == Verdict::unsound);
    CHECK(ids(audit(r)) == std::set<std::string>{"order"});
    CHECK(finding_of(audit(r), "order")->left == "median TTFT = 0");
    r.time_to_first_token.mean = 0;
    CHECK(audit(r) == Validity{});
    r.latency.mean = 3;
    r.latency.p50 = 0;
    CHECK(audit(r).verdict == Verdict::unsound);
}

TEST_CASE(
    "audit: the published study of Qwen3.5-9B, 24 of 24 flagged and the client's fault named in "
    "23") {
    const auto rows = audited("qwen3.5-9b-h100/study.yaml");
    REQUIRE(rows.size() == 24);
    std::size_t named = 0;
    for (const auto& [row, validity] : rows) {
        INFO(row.line);
        CHECK(validity.verdict != Verdict::sound);
        std::string causes;
        for (const Finding& finding : validity.findings) causes += finding.cause + "\n";
        const bool fault =
            has(causes, "tokens not observed") || has(causes, "rates over another window");
        named += fault ? 1 : 0;
        CHECK((validity.verdict == Verdict::unsound) == fault);
        if (!fault) {
            CHECK(row.cells[0] == "sglang");
            CHECK(ids(validity) == std::set<std::string>{"peak"});
        }
    }
    CHECK(named == 23);
    CHECK(ids(rows[3].second).contains("complete"));  // speculation: 514 of 1000
    CHECK(ids(rows[22].second).contains("physics"));
    CHECK(ids(rows[22].second).contains("hidden_decode"));
    CHECK(ids(rows[20].second)
              .contains("load_bound"));  // one request a second, answered as they came
    CHECK(finding_of(rows[10].second, "decomposition") !=
          nullptr);  // fits vLLM's identity by accident
}

TEST_CASE("audit: the published study of Qwen3-14B has nothing unsound") {
    const auto rows = audited("qwen3-14b-h100/study.yaml");
    REQUIRE(rows.size() == 15);
    for (const auto& [row, validity] : rows) {
        INFO(row.line);
        CHECK(validity.verdict != Verdict::unsound);
        for (const Finding& finding : validity.findings) CHECK(finding.id == "equal_work");
    }
}

TEST_CASE(
    "audit: this project's own study on an H200 has nothing unsound, and FP8's inter-token latency "
    "is per chunk") {
    for (const auto& [row, validity] : audited("qwen3-8b-h200/study-loads.yaml")) {
        INFO(row.line);
        CHECK(validity.verdict == Verdict::sound);
    }
    const auto rows = audited("qwen3-8b-h200/study.yaml");
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].second.verdict == Verdict::sound);
    CHECK(rows[1].second.verdict == Verdict::suspect);
    CHECK(ids(rows[1].second) == std::set<std::string>{"chunks"});
}

TEST_CASE(
    "audit: the published study of the Jetson Thor, FP8 impossible, the low load answered from the "
    "prefix cache") {
    const auto rows = audited("qwen3-8b-jetson-thor/study.yaml");
    REQUIRE(rows.size() == 18);
    for (const auto& [row, validity] : rows) {
        const std::string quantization = row.cells[0].value_or("");
        INFO(quantization << " " << row.workload);
        CHECK((validity.verdict == Verdict::unsound) == (quantization == "fp8"));
        const bool high = row.workload == "high_load";
        const std::set<std::string> found = ids(validity);
        if (quantization == "fp8") CHECK(found.contains("physics"));
        else if (high && quantization != "gptq-int4") CHECK(found.empty());
        else if (high || quantization == "gguf")
            CHECK(found == std::set<std::string>{"equal_work"});
        else if (quantization == "fp4") CHECK(found.empty());
        else {
            CHECK(found == std::set<std::string>{"physics"});
            CHECK(has(validity.findings[0].cause, "prefix cache"));
        }
    }
}

TEST_CASE(
    "audit: a finding that a table has only the id of is not counted beside the same one with its "
    "numbers") {
    Validity validity{Verdict::suspect, {{"chunks"}, {"server", "2 tokens"}}};
    add(validity, {Verdict::unchecked, {{"chunks", "1.3 tokens a chunk"}, {"server", "3 tokens"}}});
    CHECK(validity.verdict == Verdict::suspect);
    std::vector<std::string> found;
    for (const Finding& finding : validity.findings)
        found.push_back(finding.id + ": " + finding.left);
    CHECK(found == std::vector<std::string>{"chunks: 1.3 tokens a chunk", "server: 2 tokens",
                                            "server: 3 tokens"});
}
