// SPDX-License-Identifier: Apache-2.0
// Answers without an end, and JSON that nests without one: what a server may take of this program
// has a bound.
#include "support/test.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "load/answer_reader.hpp"
#include "load/http.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/error.hpp"
#include "study/json.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <regex>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string one_token =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";

/// What becomes of an answer that repeats `part`, at most so many times.
struct Repeated {
    Repeated(const std::string& part, std::int64_t asked, std::size_t most, int status = 200,
             const std::string& type = "text/event-stream", bool stream = true) {
        simdjson::dom::parser parser;
        AnswerReader reader(record, asked, {.stream = stream}, parser);
        reader.begin(status, type);
        while (times < most && reader.feed(part, 1.0 + double(++times), false)) {
        }
        moved_at = reader.moved_at();
        reader.end(1e6);
    }
    RequestRecord record{};
    std::size_t times = 0;
    double moved_at = 0;
};

}  // namespace

TEST_CASE("endless answers: events that go on for ever end with a failure that says so") {
    const Repeated four(one_token, 4, 1'000'000);
    CHECK(four.record.end == RequestEnd::malformed);
    CHECK(has(four.record.error, "the answer does not end: "));
    CHECK(has(four.record.error, " and 4 tokens were asked for"));
    CHECK(four.times == 1024 + 16 * 4 + 1);
    CHECK(four.record.gaps.size() < 2000);
    const Repeated many(one_token, 2000,
                        30'000);  // as many as were asked for, eight answers to each, are no fault
    CHECK(many.times == 30'000);
    CHECK_FALSE(has(many.record.error, "does not end"));
    const Repeated empty("data: {\"choices\":[]}\n\n", 4, 1'000'000);  // without a token
    CHECK(has(empty.record.error, "the answer does not end: "));
    const Repeated unbounded(one_token, 0,
                             40'000);  // "as many as the model likes" has a bound of its own
    CHECK(unbounded.times == 40'000);
}

TEST_CASE("endless answers: bytes have a bound by the tokens that were asked for") {
    const std::string mebibyte(1U << 20U, 'x');
    const Repeated line(mebibyte, 4, 1000);  // one event
    CHECK(
        has(line.record.error,
            "the answer does not end: 0 events and 17 MiB have come, and 4 tokens were asked for"));
    const Repeated comments(":" + mebibyte + "\n", 4, 1000);
    CHECK(comments.record.end == RequestEnd::malformed);
    CHECK(comments.times == 17);
    CHECK(has(comments.record.error, "the answer does not end: 0 events and 17 MiB have come"));
    const Repeated whole(mebibyte, 4, 1000, 200, "application/json", false);
    CHECK(has(whole.record.error, "the answer does not end: "));
    const Repeated large(mebibyte, 4000, 1000, 200, "application/json",
                         false);  // what is kept has a bound of its own
    CHECK(has(large.record.error, "an answer of more than 64 MiB"));
    CHECK(large.times == 64);
    CHECK(has(Repeated(mebibyte, 4000, 1000).record.error, "an event of more than 64 MiB"));
    const Repeated error("{\"error\": \"it hurts\"}" + std::string(1U << 20U, ' '), 4, 1000, 500,
                         "application/json");
    CHECK(error.record.end == RequestEnd::http_error);
    CHECK(error.times < 20);
}

TEST_CASE("endless answers: comments and blanks keep a connection, and are no answer") {
    CHECK(Repeated(": ping\n\n", 4, 10).moved_at == 0);
    CHECK(Repeated(" \r\n", 4, 10, 200, "application/json", false).moved_at == 0);
    CHECK(Repeated(one_token, 4, 10).moved_at == 11);
    CHECK(Repeated("{", 4, 10, 200, "application/json", false).moved_at == 11);
    const Repeated named("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" +
                             std::string(100'000, 'x') + "\"}]}\n\n",
                         4, 1);
    CHECK(named.record.finish_reason.size() <= 100);
}

TEST_CASE("deep JSON: nothing that is read nests deeper than anything that is meant") {
    const std::string deep = std::string(1'000'000, '[');
    const std::string deep_object = "{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}";
    for (const std::string& text : {deep, deep_object}) {
        CHECK(shallow_json<nlohmann::json>(text).is_discarded());
        CHECK_THROWS_AS(outcome_from_json(text), ParseError);
        CHECK_THROWS_AS(configuration_from_json(text), ParseError);
        CHECK_THROWS_AS(found_devices_from_json(text), ParseError);
        CHECK(trouble_text(Reply{.status = 500, .body = text}).size() < 1000);
    }
    CHECK(shallow_json<nlohmann::json>("{\"a\":[[1]]}")["a"][0][0] == 1);
}

TEST_CASE("deep JSON: every place that reads JSON of others has the bound") {
    const std::filesystem::path source = SERVETUNE_SOURCE;
    // What this program has made itself, a line before.
    const std::regex ours(
        R"(::parse\((json_of\(|json_report\(|report_json|json\)|report\)|line\)\)\)|file\.second\)))");
    std::size_t found = 0;
    for (const char* folder : {"src", "include", "examples/autotune"})
        for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder)) {
            if (!entry.is_regular_file() || entry.path().filename() == "nesting.hpp") continue;
            std::istringstream lines(read_file(entry.path()));
            for (std::string line; std::getline(lines, line);) {
                if (!has(line, "son::parse(")) continue;
                ++found;
                INFO(entry.path().string() << ": " << line);
                CHECK((has(line, "RefuseDeep") || has(line, ", keep)") ||
                       std::regex_search(line, ours)));
            }
        }
    CHECK(found > 10);
}
