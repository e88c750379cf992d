// SPDX-License-Identifier: Apache-2.0
// The reader of answers: streams of events cut anywhere, and every way an answer can go wrong.
#include "support/test.hpp"

#include "load/answer_reader.hpp"
#include "load/request_body.hpp"

#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::string chat(const std::string& delta, const std::string& reason = "null",
                 const std::string& more = "") {
    return R"({"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":)" + delta +
           R"(,"finish_reason":)" + reason + "}]" + more + "}";
}
const std::string usage =
    R"(,"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}})";

/// Role, three tokens, the reason, the usage, the end: what vLLM sends.
std::string whole_stream(const std::string& line_end = "\n") {
    std::string text;
    for (const std::string& event :
         {chat(R"({"role":"assistant","content":""})"), chat(R"({"content":"Gr\u00fc"})"),
          chat(R"({"content":"ße"})"), chat(R"({"content":"."})"), chat("{}", R"("length")"),
          R"({"choices":[])" + usage + "}", std::string("[DONE]")})
        text += "data: " + event + line_end + line_end;
    return text;
}

struct Read {
    RequestRecord record;
    std::string text;
};

/// Reads `parts`, each at its own time: 1, 2, 3, ...
Read read_parts(const std::vector<std::string>& parts, AnswerReader::Expected expected = {},
                int status = 200, const std::string& type = "text/event-stream; charset=utf-8",
                RequestEnd failure = RequestEnd::success, std::int64_t asked = 3) {
    Read result;
    simdjson::dom::parser parser;
    expected.keep_text = true;
    AnswerReader reader(result.record, asked, expected, parser);
    reader.begin(status, type);
    double now = 0;
    for (const std::string& part : parts)
        if (!reader.feed(part, ++now, false)) break;
    reader.end(++now, failure, failure == RequestEnd::success ? "" : "the connection ended");
    result.text = reader.text();
    return result;
}

std::string event(const std::string& data) { return "data: " + data + "\n\n"; }

RequestEnd end_of(const std::vector<std::string>& parts, AnswerReader::Expected expected = {}) {
    return read_parts(parts, expected).record.end;
}

}  // namespace

TEST_CASE("a stream reads the same wherever it is cut, with every line end") {
    for (const std::string line_end : {"\n", "\r\n", "\r"}) {
        const std::string stream = whole_stream(line_end);
        for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
            const Read answer = read_parts({stream.substr(0, cut), stream.substr(cut)});
            REQUIRE(answer.record.end == RequestEnd::success);
            REQUIRE(answer.record.chunks == 3);
            REQUIRE(answer.record.empty_chunks == 2);
            REQUIRE(answer.record.gaps.size() == 2);
            REQUIRE(answer.record.input_tokens == 7);
            REQUIRE(answer.record.output_tokens == 3);
            REQUIRE(answer.record.cached_tokens == 4);
            REQUIRE(answer.record.finish_reason == "length");
            REQUIRE(answer.text == "Grüße.");
        }
        std::vector<std::string> bytes;
        for (const char c : stream) bytes.emplace_back(1, c);
        CHECK(read_parts(bytes).text == "Grüße.");
    }
}

TEST_CASE("times: the first and last token, gaps between reads, chunks that came together") {
    const std::string a = event(chat(R"({"content":"a"})"));
    const Read answer = read_parts({event(chat(R"({"role":"assistant","content":""})")), a, a + a,
                                    a, event(chat("{}", R"("stop")", usage)), "data: [DONE]\n\n"});
    CHECK(answer.record.first_token == 2);
    CHECK(answer.record.last_token == 4);
    CHECK(answer.record.gaps == std::vector<float>{1, 0, 1});
    CHECK(answer.record.coalesced_chunks == 1);
    CHECK(answer.record.done == 6);  // at [DONE], not when the connection ended
}

TEST_CASE("token text is found wherever an engine puts it, the role is none") {
    const auto chunks = [](const std::string& delta) {
        return read_parts({event(chat(delta)), event(chat("{}", R"("stop")", usage))})
            .record.chunks;
    };
    CHECK(chunks(R"({"content":"x"})") == 1);
    CHECK(chunks(R"({"reasoning":"x"})") == 1);
    CHECK(chunks(R"({"reasoning_content" : "x","content":null})") == 1);
    CHECK(chunks(R"({"tool_calls":[{"index":0,"function":{"arguments":"{"}}]})") == 1);
    CHECK(chunks(R"({"role":"assistant","content":""})") == 0);
    CHECK(chunks(R"({"content":null,"tool_calls":[]})") == 0);
    CHECK(chunks(R"({"note":"\"content\":\"x\""})") == 0);
    CHECK(chunks(R"({"thinking":"x"})") == 1);
    CHECK(chunks(R"({"refusal":"x"})") == 1);
    CHECK(chunks(R"({"function_call":{"arguments":"{"}})") == 1);
    CHECK(chunks(R"({"audio":{"id":"a","transcript":"x"}})") == 1);
    CHECK(chunks(R"({"audio":{"id":"a","data":"UklGRg=="}})") == 1);
    CHECK(chunks(R"({"content":[{"type":"text","text":"x"}]})") == 1);
    CHECK(chunks(R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]})") ==
          1);
    CHECK(chunks(R"({"reasoning_details":[{"type":"reasoning.text","text":"x","format":"f"}]})") ==
          1);
    CHECK(chunks(R"({"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]})") == 0);
    CHECK(chunks(R"({"content":[],"audio":{"id":"a","expires_at":1},"function_call":null})") == 0);
    CHECK(chunks(R"({"content":[{"type":"text","text":""}]})") == 0);
    CHECK(
        read_parts(
            {event(chat(
                R"({"content":[{"type":"thinking","thinking":"no"},{"type":"text","text":"yes"}]})"))})
            .text == "yes");
    const Read completion =
        read_parts({event(R"({"choices":[{"text":"x","finish_reason":null}],"usage":null})"),
                    event(R"({"choices":[{"text":"","finish_reason":"length"}])" + usage + "}")});
    CHECK(completion.record.end == RequestEnd::success);
    CHECK(completion.record.chunks == 1);
    CHECK(completion.text == "x");
}

TEST_CASE("an answer that the server broke off has failed, with the reason") {
    const std::string token = event(chat(R"({"content":"x"})"));
    const auto ended = [&](const std::string& reason) {
        return read_parts({token, event(chat("{}", reason, usage))}).record;
    };
    for (const char* whole : {"stop", "length", "tool_calls", "function_call", "eos_token",
                              "stop_sequence", "eos", "end_turn", "max_tokens", "tool_use",
                              "model_length", "STOP", "MAX_TOKENS", "tool-calls", "COMPLETE"}) {
        INFO(whole);
        CHECK(ended('"' + std::string(whole) + '"').end == RequestEnd::success);
    }
    for (const char* broken : {"abort", "error", "content_filter", "insufficient_system_resource",
                               "timeout", "cancelled", "refusal", "stopp"}) {
        INFO(broken);
        const RequestRecord record = ended('"' + std::string(broken) + '"');
        CHECK(record.end == RequestEnd::not_finished);
        CHECK(record.error ==
              "the server broke the answer off: finish reason '" + std::string(broken) + "'");
        CHECK(record.finish_reason == broken);
    }
    CHECK(ended(R"({"type":"abort","message":"out of blocks"})").error ==
          "the server broke the answer off: finish reason 'abort'");
    CHECK(ended(R"({"type":"length","length":3})").end == RequestEnd::success);
    // Of several answers to one request the one that was broken off decides, whichever comes last.
    const auto two = [&](const char* first, const char* second) {
        return end_of({token, event(chat("{}", first)), event(chat("{}", second, usage))});
    };
    CHECK(two(R"("abort")", R"("stop")") == RequestEnd::not_finished);
    CHECK(two(R"("stop")", R"("abort")") == RequestEnd::not_finished);
    CHECK(two(R"("stop")", R"("length")") == RequestEnd::success);
    const std::string body =
        R"({"choices":[{"message":{"content":"abc"},"finish_reason":"abort"}])" + usage + "}";
    CHECK(read_parts({body}, {.stream = false}, 200, "application/json").record.end ==
          RequestEnd::not_finished);
    CHECK_THROWS_AS(text_of_answer(body), IoError);
    CHECK(
        text_of_answer(
            R"({"choices":[{"message":{"reasoning":"a","content":[{"type":"text","text":"b"}]},"finish_reason":"stop"}]})") ==
        "ab");
}

TEST_CASE(
    "an answer that the model ended before the tokens asked for is shorter, one that was cut has "
    "failed") {
    const std::string token = event(chat(R"({"content":"x"})"));
    const auto end = [&](const char* reason, std::int64_t asked) {
        return read_parts({token, event(chat("{}", reason, usage))}, {.exact_length = true}, 200,
                          "text/event-stream", RequestEnd::success, asked)
            .record.end;
    };
    CHECK(end(R"("stop")", 8) == RequestEnd::success);
    CHECK(end(R"("eos_token")", 8) == RequestEnd::success);
    CHECK(end(R"("length")", 3) == RequestEnd::success);
    CHECK(end(R"("length")", 8) == RequestEnd::wrong_length);  // another limit came first
    CHECK(end(R"("stop")", 2) == RequestEnd::wrong_length);
}

TEST_CASE("tokens that are counted and not sent are known as hidden") {
    const auto hidden = [](const std::vector<std::string>& deltas, const std::string& counts) {
        std::vector<std::string> parts;
        for (const std::string& delta : deltas) parts.push_back(event(chat(delta)));
        parts.push_back(
            event(chat("{}", R"("stop")", R"(,"usage":{"prompt_tokens":7,)" + counts + "}")));
        return read_parts(parts).record.hidden_tokens;
    };
    const std::string x = R"({"content":"x"})";
    const std::string r = R"({"reasoning":"x"})";
    const std::string details =
        R"("completion_tokens":64,"completion_tokens_details":{"reasoning_tokens":48})";
    CHECK(hidden({x, x}, details) == 48);
    CHECK(hidden({x, x}, R"("completion_tokens":64,"reasoning_tokens":48)") ==
          48);  // SGLang's place
    CHECK(hidden({x, x},
                 R"("completion_tokens":64,"completion_tokens_details":{"reasoning_tokens":0})") ==
          0);
    CHECK(hidden({x, x}, R"("completion_tokens":64,"completion_tokens_details":null)") == 0);
    // All of it came.
    CHECK(hidden({r, r, r, x},
                 R"("completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":3})") ==
          0);
    CHECK(hidden({r, x},
                 R"("completion_tokens":8,"completion_tokens_details":{"reasoning_tokens":4})") ==
          0);  // four in each
    CHECK(hidden({r, r}, details) ==
          0);  // cut while it thought: how much a chunk holds is not known
    // A summary of it came.
    CHECK(
        hidden({r, r, x, x},
               R"("completion_tokens":102,"completion_tokens_details":{"reasoning_tokens":100})") ==
        98);
    // Counted beside the answer, not in it.
    CHECK(hidden({x, x},
                 R"("completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":48})") ==
          0);
    CHECK(
        hidden(
            {x, x},
            R"("completion_tokens":64,"total_tokens":119,"completion_tokens_details":{"reasoning_tokens":48})") ==
        0);
}

TEST_CASE("text in a field that is not read is named") {
    const std::string end = event(chat("{}", R"("stop")", usage));
    const std::string unread = event(chat(R"({"thoughts":"x"})"));
    CHECK(read_parts({unread, unread, end}).record.unread_field == "thoughts");
    CHECK(read_parts({unread, unread, end}).record.chunks == 0);
    CHECK(read_parts({unread, event(chat(R"({"content":"x"})")), end}).record.unread_field ==
          "thoughts");
    CHECK(read_parts({event(chat(R"({"blocks":[{"inner":{"words":"x"}}]})")), end})
              .record.unread_field == "blocks");
    CHECK(read_parts({event(chat(R"({"role":"assistant","content":"","id":"y"})")),
                      event(chat(R"({"content":"x","note":"y"})")), end})
              .record.unread_field.empty());
    // One report among many texts is none of them.
    std::vector<std::string> parts{event(chat(R"({"queue":"waiting"})"))};
    parts.insert(parts.end(), 40, event(chat(R"({"content":"x"})")));
    parts.push_back(end);
    CHECK(read_parts(parts).record.unread_field.empty());
}

TEST_CASE("comments, other fields, blanks and byte order marks are no events") {
    const Read answer =
        read_parts({"\xef\xbb\xbf: ping\n\nevent: message\nid: 4\nretry: 10\ndata:" +
                        chat(R"({"content":"x"})") + "\n\n:\n\n\n\n",
                    event(chat("{}", R"("stop")", usage)), "data: [DONE]\n\n"});
    CHECK(answer.record.end == RequestEnd::success);
    CHECK(answer.record.chunks == 1);
    // An event may spread over several data lines.
    CHECK(read_parts({"data: {\"choices\":\ndata: [{\"text\":\"x\",\"finish_reason\":\"stop\"}]" +
                      usage.substr(0, 0) + ",\ndata: " + usage.substr(1) + "}\n\n"})
              .record.end == RequestEnd::success);
}

TEST_CASE("what is no whole answer is an error of its kind, never a number") {
    const std::string token = event(chat(R"({"content":"x"})"));
    const std::string last = event(chat("{}", R"("stop")", usage));
    CHECK(end_of({token}) == RequestEnd::truncated);
    CHECK(end_of({token, "data: [DONE]\n\n"}) == RequestEnd::truncated);
    CHECK(end_of({token, event(chat("{}", R"("stop")"))}) == RequestEnd::no_usage);
    CHECK(end_of({token, event(chat("{}", R"("stop")"))}, {.usage = false}) == RequestEnd::success);
    CHECK(end_of({token, last}, {.exact_length = true}) == RequestEnd::success);
    CHECK(end_of({token, event(R"({"error":{"message":"out of memory","code":500}})")}) ==
          RequestEnd::error_event);
    CHECK(end_of({token, event(R"({"error":"x\nautotune: y"})")}) == RequestEnd::error_event);
    CHECK(end_of({token, "data: {\"choices\":[{\"del\n\n"}) == RequestEnd::malformed);
    CHECK(end_of({event("[]")}) == RequestEnd::malformed);
    CHECK(end_of({event("{" + usage.substr(1) + "}")}) ==
          RequestEnd::truncated);  // counts, and no choices at all
    CHECK(end_of({event(R"({"object":"unknown"})")}) == RequestEnd::malformed);
    CHECK(end_of({event(R"({"choices":[1]})")}) == RequestEnd::malformed);
    CHECK(end_of({"data: " + std::string(65U << 20U, 'x')}) == RequestEnd::malformed);
    CHECK(read_parts({token, last}, {.exact_length = true}, 200, "text/event-stream",
                     RequestEnd::success, 2)
              .record.error == "asked for 2 tokens to the end, got 3 (stop)");
    CHECK(read_parts({token}, {}, 200, "text/event-stream", RequestEnd::reset).record.end ==
          RequestEnd::reset);
    CHECK(read_parts({token, last}, {}, 200, "text/event-stream", RequestEnd::reset).record.end ==
          RequestEnd::reset);
    CHECK(read_parts({token, last, "data: [DONE]\n\n"}, {}, 200, "text/event-stream",
                     RequestEnd::reset)
              .record.end == RequestEnd::success);
    CHECK(read_parts({"<html>"}, {}, 200, "text/html").record.error ==
          "a stream of events wanted, got 'text/html'");
    CHECK(read_parts({R"({"error":"no such model"})"}, {}, 200, "application/json").record.error ==
          "no such model");
    CHECK(read_parts({R"({"error":{"message":"overloaded"}})"}, {}, 503, "application/json")
              .record.error == "status 503: overloaded");
    CHECK(read_parts({R"({"error":""})"}, {}, 200, "application/json").record.error ==
          R"(an error without a message: "")");
    CHECK(read_parts({R"({"error":{"message":"","code":4}})"}, {}, 200, "application/json")
              .record.error == R"(an error without a message: {"message":"","code":4})");
    CHECK(read_parts({}, {}, 302, "").record.error == "status 302");
    CHECK(read_parts({std::string(1U << 20U, 'e')}, {}, 500, "text/plain").record.error.size() <
          4096);
}

TEST_CASE("an answer that is not streamed is read whole") {
    const std::string body =
        R"({"choices":[{"message":{"role":"assistant","content":"abc"},"finish_reason":"length"}])" +
        usage + "}";
    const Read answer =
        read_parts({body.substr(0, 9), body.substr(9)}, {.stream = false}, 200, "application/json");
    CHECK(answer.record.end == RequestEnd::success);
    CHECK(answer.record.output_tokens == 3);
    CHECK_FALSE(answer.record.first_token);  // nobody saw it
    CHECK(answer.record.last_token == 3);
    CHECK(answer.record.chunks == 0);
    CHECK(answer.text == "abc");
    CHECK(read_parts({body}, {}, 200, "application/json").record.error ==
          "a stream of events wanted, got one whole answer");
    CHECK(read_parts({"{\"choices\":"}, {.stream = false}, 200, "application/json").record.end ==
          RequestEnd::malformed);
}

TEST_CASE(
    "the body of a request: conversation, length, what the user adds, bytes that are no UTF-8 do "
    "not stop it") {
    Endpoint endpoint{"http://x", "m"};
    endpoint.extra_body = R"({"temperature":0})";
    const auto chat_body = nlohmann::json::parse(
        request_body(endpoint, {.text = "b\xff", .output_tokens = 5}, {"a", "answer"}, true));
    CHECK(chat_body["messages"].size() == 3);
    CHECK(chat_body["messages"][1] ==
          nlohmann::json({{"role", "assistant"}, {"content", "answer"}}));
    CHECK(chat_body["max_tokens"] == 5);
    CHECK(chat_body["ignore_eos"] == true);
    CHECK(chat_body["temperature"] == 0);
    CHECK(chat_body["stream_options"]["include_usage"] == true);
    endpoint.api = Endpoint::Api::completions;
    endpoint.stream = false;
    const auto prompt = nlohmann::json::parse(request_body(endpoint, {.text = "a"}, {}, false));
    CHECK(prompt["prompt"] == "a");
    CHECK_FALSE(prompt.contains("max_tokens"));
    CHECK_FALSE(prompt.contains("stream_options"));
    CHECK_FALSE(prompt.contains("ignore_eos"));
}
