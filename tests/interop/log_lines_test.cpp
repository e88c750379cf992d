// SPDX-License-Identifier: Apache-2.0
#include "interop/log_stream.hpp"
#include "interop/log_time.hpp"
#include "interop/logged_request.hpp"
#include "interop/python_text.hpp"
#include "servetune/error.hpp"
#include "support/test.hpp"

#include <zlib.h>

using namespace servetune;
using namespace servetune::test;

namespace {

using Part = LoggedRequest::Part;
using Kept = LoggedRequest::Kept;

LoggedRequest of_line(const std::string& line) {
    LogLines lines;
    const auto request = lines.read(line, true);
    REQUIRE(request);
    return *request;
}

std::string keys_of(const std::string& text) {
    PythonText python(text);
    std::string result;
    for (PythonText::Item item; python.next(item);)
        result += std::string(item.key) +
                  (item.opens     ? "("
                   : item.is_text ? "'" + std::string(item.value) + "'"
                                  : "=" + std::string(item.value)) +
                  (item.cut ? "~" : "") + " ";
    return result;
}

}  // namespace

TEST_CASE("log time: the forms that logs have") {
    const auto seconds = [](const char* text) { return log_time(text).value().seconds; };
    CHECK(seconds("2026-11-28T09:53:46Z") == 1795859626);
    CHECK(seconds("2026-11-28 09:53:46.250") == 1795859626.25);
    CHECK(seconds("2026-11-28 09:53:46,5") == 1795859626.5);
    CHECK(seconds("2026-11-28T10:53:46+01:00") == 1795859626);
    CHECK(seconds("28/Nov/2026:04:23:46 -0530") == 1795859626);
    CHECK(seconds("1795859626.250") == 1795859626.25);
    CHECK(seconds("1795859626250") == 1795859626.25);
    CHECK(seconds("1795859626250000") == Approx(1795859626.25).epsilon(1e-15));
    CHECK_FALSE(log_time("2026-11-28 09:53:46").value().has_zone);
    CHECK(log_time("2026-11-28 09:53:46").value().whole);
    CHECK_FALSE(log_time("11-28 09:53:46").value().has_year);
    for (const char* none :
         {"", "yesterday", "2026-02-30 09:53:46", "2026-11-28 24:53:46",
          "28/Nop/2026:04:23:46 -0530", "-5", "2026-11-28", "2026-11-28 09:53:46 and more"})
        CHECK_FALSE(log_time(none));
}

TEST_CASE(
    "log time: a clock without a zone goes on when daylight saving ends, and one without a year at "
    "New Year") {
    LogClock clock;
    const auto at = [&](const char* text) { return clock.seconds(log_time(text).value()); };
    const double before = at("2026-10-25 02:59:59");
    CHECK(at("2026-10-25 02:00:01") == before + 2);
    CHECK(at("2026-10-25 02:00:00") ==
          before + 1);  // lines that were swapped are no change of the clock
    CHECK(at("2026-10-25 03:00:00") == before + 3601);
    CHECK(clock.was_set());
    LogClock yearless;
    const double last = yearless.seconds(log_time("12-31 23:59:59").value());
    CHECK(yearless.seconds(log_time("01-01 00:00:01").value()) == last + 2);
    LogClock zoned;
    const double summer = zoned.seconds(log_time("2026-10-25T02:59:59+02:00").value());
    CHECK(zoned.seconds(log_time("2026-10-25T02:00:01+01:00").value()) == summer + 2);
    CHECK_FALSE(zoned.was_set());
}

TEST_CASE("Python's prints: no text inside looks like a key") {
    CHECK(
        keys_of("obj=A(rid='x', text='say \\'rid=7\\', {\"n\": 1}', n=-3.5, ids=[1, 22]), "
                "out={'k': {'type': 'stop'}, 'e': 0.5}") ==
        "obj( rid'x' text'say \\'rid=7\\', {\"n\": 1}' n=-3.5 ids=1, 22 out( k( type'stop' e=0.5 ");
    CHECK(keys_of("text='ab' ... 'yz', ids=[1, 2] ... [8], x=None") ==
          "text'ab'~ 'yz' ids=1, 2~ =8 x=None ");
    CHECK(keys_of("text='no end") == "text'no end' ");
    CHECK(PythonText::plain("it\\'s\\n\\\\x \\u1234") == "it's\n\\x \\u1234");
}

TEST_CASE("log lines: an engine's received requests, their details and what became of them") {
    const std::string head =
        "\x1b[0;36m(APIServer pid=7)\x1b[0;0m INFO 11-28 09:53:46 [request_logger.py:63] ";
    const auto received = of_line(head +
                                  "Received request chatcmpl-1: params: SamplingParams(n=1, "
                                  "max_tokens=12, stop=['prompt: ']), lora_request: None.");
    CHECK(received.part == Part::received);
    CHECK(received.start.has_value());
    CHECK_FALSE(received.input_tokens);
    const auto details = of_line(head +
                                 "Request chatcmpl-1 details: prompt: 'a', prompt_token_ids: [5, "
                                 "6, 7, 8], prompt_embeds shape: None.");
    CHECK(details.part == Part::details);
    CHECK(details.id == received.id);
    CHECK(details.input_tokens == 4);
    const auto answered = of_line(
        head +
        "Generated response chatcmpl-1: output: 'one two, \\'three\\'', finish_reason: stop");
    CHECK(answered.part == Part::answered);
    CHECK(answered.id == received.id);
    CHECK(answered.output_estimate == Approx(7).margin(3));
    CHECK(of_line(head + "Generated response chatcmpl-1 details: output_token_ids: [4, 5, 6]")
              .output_tokens == 3);
    CHECK(of_line(head + "Generated response chatcmpl-1 (streaming complete): output: "
                         "'<streaming_complete: 41 tokens>', finish_reason: x")
              .output_tokens == 41);
    CHECK(of_line(head + "Request chatcmpl-1 aborted.").part == Part::lost);
    CHECK(of_line(head + "Request chatcmpl-1 failed (bad request).").part == Part::lost);
    LogLines lines;
    CHECK_FALSE(lines.read(head + "Added request chatcmpl-1.", true));
    CHECK_FALSE(lines.read(
        head + "Generated response chatcmpl-1 (streaming delta): output: 'a', finish_reason: None",
        true));
    const auto piece = of_line(
        head +
        "Generated response chatcmpl-1 (streaming delta) details: output_token_ids: [60307, 4]");
    CHECK(piece.part == Part::piece);
    CHECK(piece.output_tokens == 2);
    CHECK(lines.understood() == 0);
    // Older versions print the prompt in the line itself.
    CHECK(of_line("INFO 11-28 09:53:46 logger.py:43] Received request cmpl-2: prompt: 'x', params: "
                  "P(a=1), prompt_token_ids: [1, 2, 3], "
                  "lora_request: None.")
              .input_tokens == 3);
    // As loggers and containers wrap it.
    const auto wrapped = of_line(
        "{\"log\": \"INFO 11-28 09:53:46 [a.py:1] Received request chatcmpl-1: params: P()\\n\", "
        "\"stream\": \"stdout\"}");
    CHECK(wrapped.id == received.id);
    CHECK(wrapped.start == received.start);
    CHECK(of_line("{\"asctime\": \"2026-11-28 09:53:46,123\", \"message\": \"Received request "
                  "chatcmpl-1: params: P()\"}")
              .start == 1795859626.123);
}

TEST_CASE("log lines: an engine's finished requests, as text and as JSON") {
    const auto text = of_line(
        "[2026-11-28 09:53:50] Finish: obj=GenerateReqInput(rid='r1', session_id='s', text='it is "
        "\\'out={\\' here', input_ids=None, "
        "sampling_params={'max_new_tokens': 8}), out={'text': \"'prompt_tokens': 9\", 'meta_info': "
        "{'id': 'r1', 'finish_reason': {'type': "
        "'length', 'length': 8}, 'prompt_tokens': 120, 'completion_tokens': 8, 'cached_tokens': "
        "64, 'e2e_latency': 1.5}}");
    CHECK(text.part == Part::whole);
    CHECK(text.kept == Kept::yes);
    CHECK(text.input_tokens == 120);
    CHECK(text.output_tokens == 8);
    CHECK(text.start == 1795859630 - 1.5);
    CHECK(text.session != 0);
    const std::string json =
        R"({"timestamp": "2026-11-28T09:53:50.500000", "event": "request.finished", "rid": "r1", "obj": {"session_id": "s", "text": "abc"}, )"
        R"("out": {"text": "x", "meta_info": {"finish_reason": {"type": "stop"}, "prompt_tokens": 120, "completion_tokens": 8, "e2e_latency": 1.5}}})";
    const auto object = of_line("[2026-11-28 09:53:50] " + json);
    CHECK(object.start == 1795859629);
    CHECK(object.id == text.id);
    CHECK(object.session == text.session);
    CHECK(object.input_tokens == 120);
    CHECK(of_line(replaced(json, "\"stop\"", "\"abort\"")).kept == Kept::failed);
    CHECK(of_line(replaced(json, "\"r1\"", "\"HEALTH_CHECK_1\"")).kept == Kept::other);
    LogLines lines;
    CHECK_FALSE(lines.read(
        "[2026-11-28 09:53:50] Receive: obj=GenerateReqInput(rid='r1', text='a, b', x=1)", true));
    CHECK(
        lines.read("[2026-11-28 09:53:51] Finish: obj=G(rid='r1'), out={'meta_info': "
                   "{'prompt_tokens': 1, 'completion_tokens': 2}}",
                   true));
}

TEST_CASE("log lines: a proxy's payloads, spend logs and tables") {
    const std::string payload =
        R"({"id": "a", "trace_id": "t", "call_type": "acompletion", "cache_hit": null, "status": "success", "prompt_tokens": 40, )"
        R"("completion_tokens": 7, "startTime": 1795859626.5, "endTime": 1795859628.0, "messages": [{"role": "user", "content": "hello"}], "error_str": null})";
    const auto said = of_line(payload);
    CHECK(said.start == 1795859626.5);
    CHECK(said.input_tokens == 40);
    CHECK(said.output_tokens == 7);
    CHECK(said.kept == Kept::yes);
    CHECK(of_line("{\"standard_logging_object\": " + payload + "}").id == said.id);
    CHECK(of_line(replaced(payload, "\"success\"", "\"failure\"")).kept == Kept::failed);
    CHECK(of_line(replaced(payload, "\"cache_hit\": null", "\"cache_hit\": \"True\"")).kept ==
          Kept::cached);
    CHECK(of_line(replaced(payload, "acompletion", "aembedding")).kept == Kept::other);
    LogLines table;
    CHECK_FALSE(
        table.read("request_id,startTime,prompt_tokens,completion_tokens,status,messages", true));
    const auto row = table.read(
        R"(b,2026-11-28 09:53:46.500,40,7,success,"[{""role"": ""user"", ""content"": ""a, b""}]")",
        true);
    REQUIRE(row);
    CHECK(row->start == 1795859626.5);
    CHECK(row->output_tokens == 7);
    CHECK(row->input_estimate > 0);
    // A request with its time, as a client kept it: lengths are those of its texts.
    const auto asked = of_line(
        R"({"timestamp": "2026-11-28T09:53:46Z", "request": {"messages": [{"role": "user", "content": "When does the first boat leave?"}]}, )"
        R"("response": {"choices": [{"message": {"content": "At six."}}]}})");
    CHECK_FALSE(asked.input_tokens);
    CHECK(asked.input_estimate == Approx(9).margin(3));
    CHECK(asked.output_estimate == Approx(3).margin(1));
    CHECK(
        of_line(
            R"({"timestamp": "2026-11-28T09:53:46Z", "request": {"prompt": "a"}, "response": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}})")
            .input_tokens == 3);
}

TEST_CASE("log lines: a web server's access log") {
    const std::string line =
        R"(10.0.0.1 - - [28/Nov/2026:10:53:50 +0100] "POST /v1/chat/completions HTTP/1.1" 200 2500 "-" "python 3.1 0.999" 1.500 request_length=1500 ct=text/event-stream)";
    const auto said = of_line(line);
    CHECK(said.start == 1795859630 - 1.5);
    CHECK(said.bytes_only);
    CHECK(said.input_estimate == 200);  // (1500 - 700) / 4
    CHECK(said.output_estimate == 10);  // 2500 / 250
    CHECK(of_line(replaced(line, "] \"POST", "] \"GET")).kept == Kept::other);
    CHECK(of_line(replaced(line, "/v1/chat/completions", "/health")).kept == Kept::other);
    CHECK(of_line(replaced(line, " 200 ", " 429 ")).kept == Kept::failed);
    CHECK(of_line(replaced(line, " ct=text/event-stream", " 1795859631.250")).start ==
          1795859629.75);
    const auto json = of_line(
        R"({"time_iso8601": "2026-11-28T10:53:50+01:00", "msec": "1795859630.250", "request": "POST /v1/completions HTTP/1.1", "status": "200", )"
        R"("body_bytes_sent": "1100", "request_length": "1500", "request_time": "1.500", "sent_http_content_type": "application/json"})");
    CHECK(json.start == 1795859628.75);
    CHECK(json.output_estimate == 100);
    CHECK(
        of_line(R"({"time_local": "28/Nov/2026:10:53:50 +0100", "uri": "/metrics", "status": 200})")
            .kept == Kept::other);
}

TEST_CASE("log lines: prompts that begin alike have the same names up to there") {
    const auto of_messages = [](const std::string& system, const std::string& user) {
        return of_line(
                   R"({"timestamp": 1795859626, "prompt_tokens": 9, "completion_tokens": 1, "messages": [{"role": "system", "content": ")" +
                   system + R"("}, {"role": "user", "content": ")" + user + R"("}]})")
            .blocks;
    };
    std::string system;
    for (int i = 0; i < 40; ++i) system += "rule " + std::to_string(i) + " of the house is this; ";
    const auto first =
        of_messages(system, "When does the boat leave, and from where does it leave today?");
    const auto second = of_messages(
        system, "Which of the two ferries to the islands has the larger deck for cars?");
    const auto other = of_messages("An" + system, "When does the boat leave?");
    REQUIRE(first.size() > 20);
    std::size_t same = 0;
    while (same < std::min(first.size(), second.size()) && first[same] == second[same]) ++same;
    CHECK(same >= first.size() - 3);
    CHECK(same < first.size());
    CHECK(other.front() != first.front());
}

TEST_CASE("log lines: hostile ones are none, and nobody falls over them") {
    LogLines lines;
    for (const std::string& line :
         {std::string(100'000, '['), std::string(100'000, '{'),
          std::string("{\"timestamp\": 1e999, \"prompt_tokens\": 1}"),
          std::string("INFO 11-28 09:53:46 x] Received request "), std::string("Finish: obj="),
          std::string("\xff\xfe\0{", 4),
          std::string(
              "[2026-11-28 09:53:50] {\"event\": \"request.finished\", \"obj\": 1, \"out\": []}")
              .substr(0, 40),
          std::string("x [28/Nov/2026:10:53:50 +0100] \"")})
        (void)lines.read(line, true);
    CHECK_FALSE(lines
                    .read("[2026-11-28 09:53:51] Finish: obj=G(rid='r1'), out={'meta_info': "
                          "{'prompt_tokens': 1e300, 'e2e_latency': -1e300}}",
                          true)
                    ->input_tokens);
    CHECK_FALSE(lines.read(
        R"({"event": "request.finished", "rid": "a", "obj": {}, "out": {"meta_info": {"e2e_latency": 1e300}}})",
        true));
    CHECK(lines
              .read("{\"timestamp\": 5, \"prompt_tokens\": 1e300, \"completion_tokens\": -4, "
                    "\"messages\": []}",
                    true)
              ->input_tokens == std::nullopt);
}

TEST_CASE("log stream: lines, objects of an array, gzip, and what is too long") {
    const TemporaryFolder folder;
    const auto records = [](const std::filesystem::path& file) {
        LogStream stream(file);
        std::vector<std::string> result;
        for (std::string record; stream.next(record);) result.push_back(record);
        return std::pair(result, stream.too_long());
    };
    const std::vector<std::string> two{"a", "b"};
    CHECK(records(folder.write("plain", "a\r\nb")).first == two);
    CHECK(records(folder.write("array", "[\n {\"x\": \"}\\\"{\"},\n\n {\"y\": {}}]")).first ==
          std::vector<std::string>{"{\"x\": \"}\\\"{\"}", "{\"y\": {}}"});
    CHECK(records(folder.write("dates", "[2026-11-28 09:53:50] a\n")).first ==
          std::vector<std::string>{"[2026-11-28 09:53:50] a"});
    CHECK(records(folder.write("none", "")).first.empty());
    const auto packed = folder.path() / "log.gz";
    gzFile file = gzopen(packed.c_str(), "wb");
    REQUIRE(gzwrite(file, "a\nb\n", 4) == 4);
    gzclose(file);
    CHECK(records(packed).first == two);
    std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 6);
    LogStream cut(packed);
    for (std::string record; cut.next(record);) {
    }
    CHECK(cut.cut_off());
    const auto long_line =
        records(folder.write("long", std::string(LogStream::most_record_bytes + 1, 'x') + "\nb"));
    CHECK(long_line.first == std::vector<std::string>{"", "b"});
    CHECK(long_line.second == 1);
    CHECK(message_of<IoError>([&] {
              LogStream stream(folder.path());
          }).ends_with(": it is a folder"));
}
