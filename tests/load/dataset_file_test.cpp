// SPDX-License-Identifier: Apache-2.0
// Requests that are read from files: ShareGPT's conversations, prompts, traces, and what is wrong
// with a file.
#include "support/test.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "study_file/readers.hpp"
#include "support/planned_texts.hpp"
#include "support/shipped.hpp"
#include "support/tokenize_server.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

Workload file_workload(Dataset::Kind kind, const std::filesystem::path& file,
                       std::optional<std::int64_t> requests = std::nullopt) {
    return {.name = "w", .dataset = {.kind = kind, .path = file.string()}, .requests = requests};
}

std::string repeated_word(const std::string& word, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : " ") + word;
    return text;
}

std::string conversation(const std::string& question, const std::string& answer) {
    return R"({"id": "x", "conversations": [{"from": "human", "value": ")" + question +
           R"("}, {"from": "gpt", "value": ")" + answer + R"("}]})";
}

/// The message with the folder's name replaced.
template <class Action>
std::string failure(const TemporaryFolder& folder, const Action& action) {
    std::string message = message_of<Error>(action);
    for (auto at = message.find(folder.path().string()); at != std::string::npos;
         at = message.find(folder.path().string()))
        message.replace(at, folder.path().string().size(), "DIR");
    return message;
}

}  // namespace

TEST_CASE(
    "sharegpt: the usual filters, a sample by the seed, again from those kept where there are too "
    "few") {
    const TemporaryFolder folder;
    std::string text = "[";
    for (int i = 0; i < 30; ++i)
        text += conversation("question number " + std::to_string(i) + " is this one",
                             repeated_word("answer", 10 + i)) +
                ",\n";
    text += conversation("too short", repeated_word("answer", 10)) + ",\n";
    text += conversation("a question of five words", "no") + ",\n";
    text += conversation(repeated_word("long", 1100), repeated_word("answer", 10)) + ",\n";
    text += conversation(repeated_word("long", 900), repeated_word("answer", 1200)) + ",\n";
    text +=
        R"({"id": "one turn", "conversations": [{"from": "human", "value": "only a question, no answer"}]})";
    text += ",\n{\"id\": \"none\"}]\n";
    const auto file = folder.write("s.json", text);
    Workload workload = file_workload(Dataset::Kind::sharegpt, file, 30);
    const Plan plan = plan_requests(workload);
    std::set<std::string> different;
    std::set<std::int64_t> lengths;
    for (const PlannedRequest& request : plan.requests) {
        different.insert(request.text);
        CHECK(request.text.starts_with("question number "));
        CHECK(request.output_tokens == 10 + std::stoi(request.text.substr(16)));
        CHECK(request.input_tokens == 6);
    }
    CHECK(different.size() == 30);
    CHECK_FALSE(plan.lengths_exact);
    CHECK(plan.description.starts_with("30 conversations of fitting length of 36 in "));
    CHECK(plan.requests[0].text != "question number 0 is this one");  // shuffled; this seed

    workload.requests = 10;
    const std::vector<std::string> ten = texts_of(plan_requests(workload));
    const std::vector<std::string> thirty = texts_of(plan);
    CHECK(std::equal(ten.begin(), ten.end(), thirty.begin()));
    workload.seed = 1;
    CHECK(texts_of(plan_requests(workload)) != ten);
    workload.requests = 100;
    const std::vector<std::string> hundred = texts_of(plan_requests(workload));
    CHECK(hundred.size() == 100);
    CHECK(std::set<std::string>(hundred.begin(), hundred.end()).size() == 30);

    const Plan salted = plan_requests(workload, {.salt = 1});
    same_lengths(salted, plan_requests(workload, {.salt = 2}));
    CHECK(longest_common_start(texts_of(salted)) <= 4);
    CHECK(salted.requests[5].text.ends_with("\n\n" + hundred[5]));
    CHECK(salted.requests[5].input_tokens > plan_requests(workload).requests[5].input_tokens);

    workload.dataset.output_tokens = 77;  // then short answers are no reason
    CHECK(plan_requests(workload).description.starts_with(
        "100 requests of the 32 conversations of fitting length of 36 in "));
    CHECK(plan_requests(workload).requests[0].output_tokens == 77);
    workload.dataset.max_total_tokens = 20;
    CHECK(failure(folder, [&] { (void)plan_requests(workload); }) ==
          "DIR/s.json: none of its 36 conversations has two turns of fitting lengths: at least 4 "
          "tokens each, a prompt of at most 1024, "
          "together at most 20");
}

TEST_CASE("sharegpt: files that are none end with the line") {
    const TemporaryFolder folder;
    const auto error = [&](const std::string& text) {
        const auto file = folder.write("s.json", text);
        return failure(
            folder, [&] { (void)plan_requests(file_workload(Dataset::Kind::sharegpt, file, 3)); });
    };
    CHECK(error("") == "DIR/s.json:1: a JSON array of conversations wanted");
    CHECK(error("{}") == "DIR/s.json:1: a JSON array of conversations wanted");
    CHECK(error("[\n") == "DIR/s.json:2: the file ends before the ']' of its array");
    CHECK(error("[\n{\"conversations\": [") ==
          "DIR/s.json:2: the file ends in the middle of the conversation that begins here");
    CHECK(error("[\n\n{} {}]") == "DIR/s.json:3: ',' or ']' wanted after a conversation");
    CHECK(error("[{},]") == "DIR/s.json:1: a conversation {\"conversations\": [...]} wanted");
    CHECK(error("[3]") == "DIR/s.json:1: a conversation {\"conversations\": [...]} wanted");
    CHECK(error("[{\"conversations\": 3}]") ==
          "DIR/s.json:1: 'conversations': a list of turns wanted, got number");
    CHECK(error("[{\"conversations\": [1, 2]}]") ==
          "DIR/s.json:1: 'conversations[0]': a turn {\"from\": ..., \"value\": text} wanted");
    CHECK(error("[{\"a\": \xff}]").starts_with("DIR/s.json:1: not JSON: "));
    CHECK(error("[{\"a\": \"\xff\"}]").starts_with("DIR/s.json:1: not JSON: "));
    CHECK(error("[{\"a\": " + std::string(100'000, '[')) ==
          "DIR/s.json:1: brackets at most 64 deep wanted");
    CHECK(error("[" + conversation("a b c d e", "a b c d e") + "] x") ==
          "DIR/s.json:1: nothing wanted after the array");
    CHECK(error("[]") ==
          "DIR/s.json: none of its 0 conversations has two turns of fitting lengths: at least 4 "
          "tokens each, a prompt of at most 1024, "
          "together at most 2048");
    CHECK(failure(folder, [&] {
              (void)plan_requests(file_workload(Dataset::Kind::sharegpt, folder.path() / "no", 3));
          }) == "cannot read DIR/no: No such file or directory");
    CHECK(failure(folder, [&] {
              (void)plan_requests(file_workload(Dataset::Kind::sharegpt, folder.path(), 3));
          }) == "cannot read DIR: it is a folder");
}

TEST_CASE("prompts: prompt, text or messages, again from the start where there are too few") {
    const TemporaryFolder folder;
    const auto file = folder.write("p.jsonl",
                                   "\xEF\xBB\xBF{\"prompt\": \"first one\", \"output_tokens\": "
                                   "7}\r\n\n{\"text\": \"second\"}\n"
                                   "{\"messages\": [{\"role\": \"system\", \"content\": \"be "
                                   "brief\"}, {\"role\": \"user\", \"content\": \"hi\"}]}");
    const Plan plan = plan_requests(file_workload(Dataset::Kind::prompts, file));
    CHECK(texts_of(plan) == std::vector<std::string>{"first one", "second", "be brief\n\nhi"});
    CHECK(plan.requests[0].output_tokens == 7);
    CHECK(plan.requests[1].output_tokens == 0);
    CHECK(*plan.mean_output_tokens == 7);
    CHECK_FALSE(plan.lengths_exact);
    Workload five = file_workload(Dataset::Kind::prompts, file, 5);
    five.dataset.output_tokens = 9;
    CHECK(texts_of(plan_requests(five))[3] == "first one");
    CHECK(plan_requests(five).requests[0].output_tokens == 9);
    CHECK(longest_common_start(texts_of(plan_requests(five, {.salt = 4}))) <=
          2);  // also of the two that are the same prompt
    const auto error = [&](const std::string& text) {
        const auto bad = folder.write("bad.jsonl", text);
        return failure(folder,
                       [&] { (void)plan_requests(file_workload(Dataset::Kind::prompts, bad)); });
    };
    CHECK(error("") == "DIR/bad.jsonl: at least one prompt wanted, the file has none");
    CHECK(error("{\"prompt\": \"x\"}\n{\"promt\": \"x\"}") ==
          "DIR/bad.jsonl:2: one of prompt, text, messages wanted");
    CHECK(error("{\"prompt\": 3}") == "DIR/bad.jsonl:1: 'prompt': text wanted, got number");
    CHECK(error("{\"prompt\": \"\"}") == "DIR/bad.jsonl:1: a prompt that is not empty wanted");
    CHECK(error("{\"prompt\": \"x\", \"output_tokens\": 18446744073709551615}") ==
          "DIR/bad.jsonl:1: 'output_tokens': an integer in [1, 16777216] wanted, got "
          "18446744073709551615");
    CHECK(error("[1]") ==
          "DIR/bad.jsonl:1: an object with prompt, text or messages wanted, got array");
}

TEST_CASE("trace: Azure's rows, in order, at their times") {
    const TemporaryFolder folder;
    const auto file =
        folder.write("t.csv",
                     "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,480,10\n"
                     "2023-11-16 18:17:04.0319600,31,8\r\n2023-11-17 00:00:00.0000000,110,0");
    Workload workload = file_workload(Dataset::Kind::trace, file);
    workload.arrival.kind = Arrival::Kind::trace;
    const Plan plan = plan_requests(workload, {.salt = 1});
    REQUIRE(plan.requests.size() == 3);
    CHECK(plan.requests[0].input_tokens == 480);
    CHECK(words_of(plan.requests[0].text).size() == 480);
    CHECK(plan.requests[0].output_tokens == 10);
    CHECK(plan.requests[2].output_tokens == 1);
    CHECK(plan.requests[0].at_seconds == 0);
    CHECK(plan.requests[1].at_seconds == Approx(0.052).epsilon(1e-9));
    CHECK(plan.requests[2].at_seconds == Approx(20576.02004).epsilon(1e-12));
    same_lengths(plan, plan_requests(workload, {.salt = 2}));
    TokenizeServer server{.around = 40};
    const Plan counted = plan_requests(workload, {.calibration = calibrated(server)});
    CHECK(server(counted.requests[0].text) == 480);
    CHECK(counted.requests[1].input_tokens == 41);
    CHECK(counted.description.ends_with(
        "; 1 prompts are longer than asked, for the server counts 40 tokens around any text"));
    workload.requests = 2;
    CHECK(plan_requests(workload).requests.size() == 2);
    workload.requests = 4;
    CHECK(failure(folder, [&] { (void)plan_requests(workload); }) ==
          "workload 'w': 'requests': 4 wanted, DIR/t.csv has 3; ask for as many, or leave it out");
    workload.requests = 3;
    workload.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = 4};
    CHECK(plan_requests(workload).requests[2].at_seconds == 0.5);
}

TEST_CASE("trace: equal hash ids are equal text, block by block") {
    const TemporaryFolder folder;
    const auto file = folder.write("m.jsonl",
                                   "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": "
                                   "5, \"hash_ids\": [1, 2, 3]}\n"
                                   "{\"timestamp\": 1500, \"input_length\": 1030, "
                                   "\"output_length\": 6, \"hash_ids\": [1, 2, 4]}\n"
                                   "{\"timestamp\": 3000, \"input_length\": 600, "
                                   "\"output_length\": 7, \"hash_ids\": [5, 2]}\n");
    Workload workload = file_workload(Dataset::Kind::trace, file);
    workload.arrival.kind = Arrival::Kind::trace;
    const Plan plan = plan_requests(workload, {.salt = 1});
    std::vector<std::vector<std::string>> words;
    for (const PlannedRequest& request : plan.requests) words.push_back(words_of(request.text));
    CHECK(words[0].size() == 1100);
    CHECK(plan.requests[1].at_seconds == 1.5);  // milliseconds
    const std::size_t common = common_start(words[0], words[1]);
    CHECK(common >= 1024);
    CHECK(common <= 1026);
    CHECK(common_start(words[0], words[2]) <= 3);
    CHECK(std::equal(words[2].begin() + 512, words[2].end(),
                     words[0].begin() + 512));  // block 2 has its text wherever it stands
    same_lengths(plan, plan_requests(workload, {.salt = 2}));
}

TEST_CASE("trace: blocks of the size that it says, and times as fast as asked") {
    const TemporaryFolder folder;
    const std::string rows =
        "{\"timestamp\": 0, \"input_length\": 100, \"output_length\": 5, \"block_tokens\": 33, "
        "\"hash_ids\": [1, 2]}\n"
        "{\"timestamp\": 1500, \"input_length\": 80, \"output_length\": 6, \"block_tokens\": 33, "
        "\"hash_ids\": [1, 2]}\n";
    Workload workload = file_workload(Dataset::Kind::trace, folder.write("m.jsonl", rows));
    workload.arrival.kind = Arrival::Kind::trace;
    workload.arrival.speed = 2;
    const Plan plan = plan_requests(workload, {.salt = 1});
    const std::size_t common =
        common_start(words_of(plan.requests[0].text), words_of(plan.requests[1].text));
    CHECK(common >= 66);
    CHECK(common <= 68);
    CHECK(plan.requests[1].at_seconds == 0.75);
    CHECK(plan.requests[1].input_tokens == 80);
    workload.dataset.path = folder.write("0.jsonl", replaced(rows, "33", "0")).string();
    CHECK(failure(folder, [&] { (void)plan_requests(workload); }) ==
          "DIR/0.jsonl:1: 'block_tokens': at least 1 wanted, got 0");
}

TEST_CASE("trace: other names and times, and what is none") {
    const TemporaryFolder folder;
    const auto plan = [&](const std::string& text, Arrival::Kind arrival = Arrival::Kind::trace) {
        Workload workload = file_workload(Dataset::Kind::trace, folder.write("t", text));
        workload.arrival.kind = arrival;
        return plan_requests(workload);
    };
    const auto error = [&](const std::string& text) {
        return failure(folder, [&] { (void)plan(text); });
    };
    CHECK(plan("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log "
               "Type\n5,ChatGPT,472,18,490,Conversation log\n"
               "45.5,ChatGPT,1087,230,1317,Conversation log\n")
              .requests[1]
              .at_seconds == 40.5);
    CHECK(plan("{\"timestamp\": 10, \"input_tokens\": 5, \"output_tokens\": 5}\n{\"timestamp\": "
               "12.5, \"input_tokens\": 5, "
               "\"output_tokens\": 5}")
              .requests[1]
              .at_seconds == 2.5);
    CHECK(plan("timestamp,input_tokens,output_tokens\n2024-02-29T23:59:59.5Z,1,1\n2024-03-01 "
               "02:00:00.25+02:00,2,2")
              .requests[1]
              .at_seconds == 0.75);
    CHECK(plan("timestamp_milliseconds,input_tokens,output_tokens\n1700000000250,374.0,"
               "1\n1700000001500,2,2")
              .requests[1]
              .at_seconds == 1.25);
    CHECK(plan("input_tokens,output_tokens\n4,5", Arrival::Kind::all_at_once).requests.size() == 1);
    CHECK(error("input_tokens,output_tokens\n4,5") ==
          "workload 'w': arrival {rate: timestamps}: DIR/t has no time stamps");
    CHECK(error("") == "DIR/t: at least one request wanted, the trace has none");
    CHECK(error("a,output_tokens\n") ==
          "DIR/t:1: a column with the prompts' lengths wanted, one of: input_tokens, input_length, "
          "ContextTokens, prompt_tokens, Request "
          "tokens, "
          "num_prefill_tokens");
    CHECK(error("timestamp,input_tokens,output_tokens\n1,2\n") == "DIR/t:2: 3 cells wanted, got 2");
    CHECK(error("timestamp,input_tokens,output_tokens\n2,2,2\n1,2,2\n") ==
          "DIR/t:3: time stamps that do not go back wanted; sort the file by them");
    CHECK(error("timestamp,input_tokens,output_tokens\nnoon,2,2\n") ==
          "DIR/t:2: 'timestamp': seconds or a date and time (2023-11-16 18:17:03.97) wanted, got "
          "'noon'");
    CHECK(has(error("timestamp,input_tokens,output_tokens\n2023-13-01 00:00:00,2,2\n"),
              "got '2023-13-01"));
    for (const char* bad :
         {"-1", "1e300", "nan", "inf", "1.5", "", "16777217", "99999999999999999999"})
        CHECK(error("timestamp,input_tokens,output_tokens\n1," + std::string(bad) + ",2\n") ==
              "DIR/t:2: 'input_tokens': a number of tokens in [0, 16777216] wanted, got '" +
                  std::string(bad) + "'");
    CHECK(has(error("timestamp,input_tokens,output_tokens\nnan,2,2\n"), "seconds or a date"));
    CHECK(
        error("{\"input_tokens\": 4, \"output_tokens\": 4}\n{").starts_with("DIR/t:2: not JSON: "));
    CHECK(error("{\"input_tokens\": 4, \"output_tokens\": 4}\nx") ==
          "DIR/t:2: an object as on the lines before wanted");
    CHECK(error("{\"input_tokens\": 4, \"output_tokens\": 4, \"timestamp\": 1}\n{\"input_tokens\": "
                "4, \"output_tokens\": 4}") ==
          "DIR/t:2: a time stamp on every row wanted, or on none");
    CHECK(error("{\"input_tokens\": 4, \"output_tokens\": 4, \"hash_ids\": [1.5]}") ==
          "DIR/t:1: 'hash_ids': a list of integers wanted, got 1.5");
    // A kilobyte that asks for 16 billion words.
    std::string huge = "input_tokens,output_tokens\n";
    for (int i = 0; i < 1000; ++i) huge += "16777216,1\n";
    CHECK(has(message_of<UsageError>([&] { (void)plan(huge, Arrival::Kind::all_at_once); }),
              "prompts of at most 500000000 tokens together wanted"));
}

TEST_CASE("workloads from YAML: what is needed, burstiness inf, files beside the file") {
    const TemporaryFolder folder;
    folder.write("t.csv", "input_tokens,output_tokens\n4,5\n");
    const auto read = [&](const std::string& text) {
        return workload_in(shipped_catalogue, Yaml::load(folder.write("w.yaml", text)));
    };
    const Workload even = read(
        "{workload: w, dataset: {kind: trace, path: t.csv}, arrival: {rate: 2, burstiness: inf}}");
    CHECK(std::isinf(even.arrival.burstiness));
    CHECK(plan_requests(even).requests.size() == 1);  // found beside w.yaml
    const std::string traced =
        "{workload: w, dataset: {kind: trace, path: t.csv}, arrival: {rate: ";
    CHECK(read(traced + "timestamps, speed: 2.5}}").arrival.speed == 2.5);
    CHECK(failure(folder, [&] {
              (void)read(traced + "2, speed: 2}}");
          }).ends_with("'arrival.speed': speed goes with `rate: timestamps`"));
    CHECK(has(failure(folder, [&] { (void)read(traced + "timestamps, speed: 1001}}"); }),
              "a number from 0.001 to 1000 wanted, got"));
    for (const char* shipped : {"random", "shared_prefix", "multi_turn"}) {
        Workload workload = read("use: " + std::string(shipped) + "\nrequests: 20");
        CHECK(plan_requests(workload).requests.size() == 20);
    }
    CHECK(failure(folder, [&] {
              (void)read("{workload: w, dataset: {kind: multi_turn, turns: 2}}");
          }) == "DIR/w.yaml:1:24: 'dataset': a data set of kind multi_turn needs input_tokens");
}
