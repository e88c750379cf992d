// SPDX-License-Identifier: Apache-2.0
// What the single answers of a run show: tokens that nobody saw, times that run backwards.
#include "support/test.hpp"

#include "load/audit_parts.hpp"

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

RequestRecord answer(std::int64_t tokens) {
    RequestRecord record;
    record.end = RequestEnd::success;
    record.sent = 1;
    record.first_token = 1.1;
    record.last_token = 1.3;
    record.gaps = {0.1F, 0.1F};
    record.output_tokens = tokens;
    return record;
}
RequestRecord silent(std::int64_t tokens) {
    RequestRecord record = answer(tokens);
    record.first_token.reset();
    record.last_token.reset();
    record.gaps.clear();
    return record;
}

}  // namespace

TEST_CASE(
    "answers: where tokens are counted and none are seen the result is unsound, with the cause") {
    CHECK(audit_answers(std::vector<RequestRecord>(20, answer(32))) == Validity{});
    Validity found = audit_answers(std::vector<RequestRecord>(20, silent(32)));
    REQUIRE(found.findings.size() == 1);
    CHECK(found.verdict == Verdict::unsound);
    CHECK(found.findings[0].id == "unseen");
    CHECK(found.findings[0].left ==
          "no token text seen in any of 20 answers that count 640 tokens");
    CHECK(has(found.findings[0].cause, "sends no text"));

    std::vector<RequestRecord> unread(20, answer(32));
    for (RequestRecord& record : unread) record.unread_field = "thoughts";
    CHECK(has(audit_answers(unread).findings.at(0).cause, "text in the field 'thoughts'"));
    std::vector<RequestRecord> thinking(20, silent(32));
    for (RequestRecord& record : thinking) record.hidden_tokens = 32;
    found = audit_answers(thinking);
    REQUIRE(found.findings.size() == 2);
    CHECK(has(found.findings[0].cause, "all their tokens are reasoning"));
    CHECK(found.findings[1].id == "hidden_tokens");

    // As many as a sound result may miss, and more.
    std::vector<RequestRecord> some(200, answer(32));
    some[0] = some[1] = silent(32);
    CHECK(audit_answers(some) == Validity{});
    some[2] = silent(32);
    CHECK(audit_answers(some).verdict == Verdict::unsound);
    CHECK(audit_answers(some).findings[0].left ==
          "no token text seen in 3 answers that count 96 tokens");
    // The end of a sequence alone is no text; failed answers and whole ones say nothing.
    CHECK(audit_answers(std::vector<RequestRecord>(20, silent(1))) == Validity{});
    std::vector<RequestRecord> failed(20, silent(32));
    for (RequestRecord& record : failed) record.end = RequestEnd::not_finished;
    CHECK(audit_answers(failed) == Validity{});
    std::vector<RequestRecord> whole(20, silent(32));
    for (RequestRecord& record : whole) record.last_token = 2;
    CHECK(audit_answers(whole) == Validity{});
}

TEST_CASE("answers: hidden tokens are a note") {
    std::vector<RequestRecord> records(10, answer(64));
    for (RequestRecord& record : records) record.hidden_tokens = 48;
    const Validity found = audit_answers(records);
    CHECK(found.verdict == Verdict::sound);
    REQUIRE(found.findings.size() == 1);
    CHECK(found.findings[0].left == "480 tokens were counted and not sent");
    CHECK(found.findings[0].right == "output = 640 tokens");
}

TEST_CASE("answers: a token before its request, or before an earlier token, is unsound") {
    for (int fault = 0; fault < 3; ++fault) {
        std::vector<RequestRecord> records(400, answer(32));
        if (fault == 0) records[7].first_token = 0.99997;
        if (fault == 1) records[7].last_token = 1.05;
        if (fault == 2) records[7].gaps[1] = -0.0001F;
        const Validity found = audit_answers(records);
        CHECK(found.verdict == Verdict::unsound);
        REQUIRE(found.findings.size() == 1);
        CHECK(found.findings[0].id == "order");
        CHECK(found.findings[0].left.starts_with("1 answers have a token before"));
    }
}
