// SPDX-License-Identifier: Apache-2.0
#include "handover/kept_load_test.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "handover/request_lines.hpp"
#include "servetune/error.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

KeptLoadTest made_up_test(std::size_t requests, std::size_t tokens) {
    KeptLoadTest test;
    test.trial = 3;
    test.seed = 18446744073709551557U;
    test.called = "chat";
    test.model = "org/model";
    test.servers = 2;
    test.result.run.duration_seconds = 1.0 / 3;
    test.result.run.client.processor_share = 0.1;
    test.result.run.server.preemptions = 7;
    test.result.plan.mean_output_tokens = double(tokens);
    float gap = 0.01F;
    for (std::size_t i = 0; i < requests; ++i) {
        RequestRecord record;
        record.index = i;
        record.end = RequestEnd::success;
        record.sent = 0.1 * double(i);
        record.first_token = record.sent + 0.05;
        record.last_token = record.sent + 1;
        record.done = record.sent + 1.001;
        record.output_tokens = std::int64_t(tokens);
        record.estimated_tokens = 1.5;
        for (std::size_t k = 1; k < tokens; ++k)
            record.gaps.push_back(gap = gap * 1.618F -
                                        static_cast<float>(static_cast<int>(gap * 1.618F / 0.02F)) *
                                            0.02F);
        test.result.run.records.push_back(record);
        test.result.plan.requests.push_back(
            {.input_tokens = 512, .output_tokens = std::int64_t(tokens)});
    }
    return test;
}

}  // namespace

TEST_CASE("kept load test: what is read is what was written, to the last bit") {
    const TemporaryFolder folder;
    const KeptLoadTest test = made_up_test(20, 128);
    const auto file = folder.path() / "3-0.jsonl.gz";
    write_load_test(file, test, {});
    const KeptLoadTest read = read_load_test(file);
    CHECK(read.trial == 3);
    CHECK(read.seed == test.seed);
    CHECK(read.called == "chat");
    CHECK(read.model == "org/model");
    CHECK(read.servers == 2);
    CHECK(read.result.run.duration_seconds == test.result.run.duration_seconds);
    CHECK(read.result.run.client.processor_share == 0.1);
    CHECK(read.result.run.server.preemptions == 7);
    CHECK(read.result.plan.requests.at(19).input_tokens == 512);
    REQUIRE(read.result.run.records.size() == 20);
    for (std::size_t i = 0; i < 20; ++i) {
        CHECK(read.result.run.records[i].gaps == test.result.run.records[i].gaps);
        CHECK(read.result.run.records[i].first_token == test.result.run.records[i].first_token);
        CHECK(read.result.run.records[i].estimated_tokens == 1.5);
    }
    // About 5 bytes a token and 150 a request, of gaps without any pattern.
    CHECK(std::filesystem::file_size(file) < 20 * (128 * 6 + 200));
}

TEST_CASE("kept load test: what is none is refused with its place") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "0-0.jsonl.gz";
    const auto refused = [&](const std::string& text) {
        GzipOutput output(file);
        output.write(text);
        output.commit();
        return message_of<ParseError>([&] { (void)read_load_test(file); });
    };
    CHECK(has(refused("{}\n"), "0-0.jsonl.gz:1: not a kept load test"));
    CHECK(has(refused(std::string(1000, '[') + "\n"), "nests deeper"));
    CHECK(has(refused("x"), "ends in the middle"));
    CHECK(has(refused(""), "without a request"));
    write_load_test(file, made_up_test(2, 4), {});
    const std::string whole = read_file(file);
    write_file(file, whole.substr(0, whole.size() / 2));
    CHECK_THROWS_AS(read_load_test(file), Error);
}

TEST_CASE("kept load test: the default and the latest trials stay where room is short") {
    const TemporaryFolder folder;
    const KeptLoadTest made_up = made_up_test(20, 128);
    KeptRequests kept(folder.path(), {}, 40'000);
    LoadTest test;
    for (std::uint64_t trial = 0; trial < 6; ++trial) {
        const Configuration configuration;
        kept.keep({.trial = trial,
                   .seed = 0,
                   .number = 0,
                   .configuration = configuration,
                   .model = "m",
                   .called = "chat",
                   .test = test,
                   .result = made_up.result});
    }
    std::vector<std::uint64_t> left;
    for (const auto& file : kept_load_tests(folder.path()))
        left.push_back(trial_of_kept(file).value());
    REQUIRE(left.size() >= 2);
    REQUIRE(left.size() < 6);
    CHECK(left.front() == 0);
    CHECK(left.back() == 5);
    CHECK_FALSE(trial_of_kept("x-0.jsonl.gz"));
    CHECK_FALSE(trial_of_kept("01-0.jsonl.gz"));
}
