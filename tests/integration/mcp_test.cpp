// SPDX-License-Identifier: Apache-2.0
// `autotune mcp` by its bytes: what no official client would send, and how it ends.
// scripts/check-mcp has the official clients.
#include "support/autotune.hpp"
#include "support/conversation.hpp"
#include "support/deployed_study.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/detail/host/process.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <string>

using namespace servetune;
using namespace servetune::test;
using nlohmann::json;

namespace {

class McpConversation {
public:
    explicit McpConversation(const std::filesystem::path& folder)
        : process_({SERVETUNE_PROGRAM, "mcp"}, folder) {}
    /// The answer to a line.
    json answer(const std::string& line) {
        process_.say(line);
        return json::parse(process_.heard());
    }
    json answer(const json& message) { return answer(message.dump()); }
    json called(const std::string& tool, const json& arguments) {
        return answer({{"jsonrpc", "2.0"},
                       {"id", ++id_},
                       {"method", "tools/call"},
                       {"params", {{"name", tool}, {"arguments", arguments}}}});
    }
    [[nodiscard]] ConversationProcess& process() { return process_; }

private:
    ConversationProcess process_;
    int id_ = 100;
};

json request(int id, const std::string& method, const json& parameters = json::object()) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", parameters}};
}

}  // namespace

TEST_CASE("mcp: lines that are no request are answered as JSON-RPC wants, and the server goes on") {
    const TemporaryFolder folder;
    McpConversation server(folder.path());
    CHECK(server.answer(std::string("{"))["error"]["code"] == -32700);
    CHECK(server.answer(std::string("[]"))["error"]["code"] == -32600);
    CHECK(server.answer(std::string("7"))["error"]["code"] == -32600);
    CHECK(server.answer(std::string(R"({"id": 1})"))["error"]["code"] == -32600);
    CHECK(server.answer(std::string(R"({"id": {}, "method": "ping"})"))["error"]["code"] == -32600);
    CHECK(server.answer(std::string(2UL << 20UL, 'x'))["error"]["code"] == -32700);
    CHECK(server.answer(std::string(100000, '['))["error"]["code"] == -32700);
    CHECK(server.answer(request(2, "tools/run"))["error"]["code"] == -32601);
    CHECK(server.answer(request(3, "tools/call", {{"name", "sh"}}))["error"]["code"] == -32602);
    CHECK(server.answer(std::string(
              R"({"id": 4, "method": "tools/list", "params": 7})"))["error"]["code"] == -32602);
    server.process().say(R"({"jsonrpc": "2.0", "method": "notifications/initialized"})");
    server.process().say(
        R"({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})");
    server.process().say(R"({"jsonrpc": "2.0", "id": 8, "result": {}})");
    server.process().say("");
    CHECK(server.answer(request(5, "ping")) ==
          json{{"jsonrpc", "2.0"}, {"id", 5}, {"result", json::object()}});
}

TEST_CASE("mcp: both eras of the protocol, and a version that nobody knows") {
    const TemporaryFolder folder;
    McpConversation server(folder.path());
    const auto agreed = [&](const char* version) {
        return server
            .answer(request(1, "initialize",
                            {{"protocolVersion", version}}))["result"]["protocolVersion"]
            .get<std::string>();
    };
    CHECK(agreed("2024-11-05") == "2024-11-05");
    CHECK(agreed("2025-11-25") == "2025-11-25");
    CHECK(agreed("1999-01-01") == "2025-11-25");
    const auto said = [](const char* version) {
        return json{{"_meta", {{"io.modelcontextprotocol/protocolVersion", version}}}};
    };
    const json found = server.answer(request(2, "server/discover", said("2026-07-28")))["result"];
    CHECK(found["supportedVersions"].front() == "2026-07-28");
    CHECK(found["resultType"] == "complete");
    CHECK(server.answer(request(3, "tools/list", said("2026-07-28")))["result"]["ttlMs"] == 0);
    CHECK_FALSE(server.answer(request(4, "tools/list"))["result"].contains("ttlMs"));
    const json refused = server.answer(request(5, "tools/list", said("2099-01-01")))["error"];
    CHECK(refused["code"] == -32022);
    CHECK(refused["data"]["supported"].front() == "2026-07-28");
    CHECK(server.answer(request(6, "initialize", said("2026-07-28")))["error"]["code"] == -32601);
}

TEST_CASE("mcp: long work is a task for a client that knows tasks, and a job for all others") {
    const TemporaryFolder folder;
    folder.write("s.yaml",
                 "study: s\nmodel: Qwen/Qwen3-8B\nengine: vllm\nhardware: h100-sxm\nworkloads: "
                 "[chat]\npreset: quick\n"
                 "objective: {maximize: total_tokens_per_second}\nevaluator: {simulate: "
                 "{}}\nbudget: {trials: 300}\n");
    McpConversation server(folder.path());
    json meta{{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}};
    int id = 0;
    const auto asked = [&](const std::string& method, json parameters) {
        parameters["_meta"] = meta;
        return server.answer(request(++id, method, parameters));
    };
    const json start{{"name", "start"}, {"arguments", {{"study", "s.yaml"}}}};
    const json extensions{{"io.modelcontextprotocol/tasks", json::object()}};
    CHECK(asked("server/discover", {})["result"]["capabilities"]["extensions"] == extensions);
    const json job = asked("tools/call", start)["result"];
    CHECK(job["resultType"] == "complete");
    CHECK(job["structuredContent"]["job"] == "start-1");
    const json refused = asked("tasks/get", {{"taskId", "start-1"}})["error"];
    CHECK(refused["code"] == -32021);
    CHECK(refused["data"]["requiredCapabilities"]["extensions"] == extensions);
    meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] = extensions;
    const json task = asked("tools/call", start)["result"];
    CHECK(task["resultType"] == "task");
    CHECK(task["taskId"] == "start-1");
    CHECK(task["status"] == "working");
    CHECK(task["ttlMs"] == nullptr);
    CHECK(asked("tools/call", {{"name", "validate"},
                               {"arguments", {{"study", "s.yaml"}}}})["result"]["resultType"] ==
          "complete");
    CHECK(asked("tasks/get", {{"taskId", "start-2"}})["error"]["code"] == -32602);
    CHECK(asked("tasks/get", {{"taskId", json::array()}})["error"]["code"] == -32602);
    CHECK(asked("tasks/update", {{"taskId", "start-1"},
                                 {"inputResponses", json::object()}})["result"]["resultType"] ==
          "complete");
    CHECK(asked("tasks/cancel", {{"taskId", "start-1"}})["result"]["resultType"] == "complete");
    json last;
    CHECK(comes_true(
        [&] {
            return (last = asked("tasks/get", {{"taskId", "start-1"}})["result"])["status"] ==
                   "cancelled";
        },
        60));
    CHECK(last["resultType"] == "complete");
    CHECK_FALSE(last.contains("result"));
    CHECK(server.answer(request(++id, "tasks/get", {{"taskId", "start-1"}}))["error"]["code"] ==
          -32601);  // up to 2025-11-25
}

TEST_CASE("mcp: a secret of the environment is in no answer") {
    const TemporaryFolder folder;
    folder.write("study.yaml",
                 "study: s\nmodel: ${HF_TOKEN}\nengine: vllm\nobjective: {maximize: x}\n");
    ConversationProcess process(
        {"/usr/bin/env", "HF_TOKEN=hf_shownnowhere", SERVETUNE_PROGRAM, "mcp"}, folder.path());
    process.say(
        request(1, "tools/call", {{"name", "validate"}, {"arguments", {{"study", "study.yaml"}}}})
            .dump());
    const std::string heard = process.heard();
    CHECK(heard.find("structuredContent") != std::string::npos);
    CHECK(heard.find("hf_shownnowhere") == std::string::npos);
}

TEST_CASE("mcp: a run ends with the server, by its input's end and by kill -9, and goes on later") {
    const DeployedStudy study(DeployedStudy::Text{});
    std::vector<std::string> words = study.words("mcp");
    words.resize(5);  // without the study
    for (const bool killed : {false, true}) {
        const std::size_t before = study.engines().size();
        ConversationProcess process(words, study.folder());
        process.say(request(1, "tools/call",
                            {{"name", "start"},
                             {"arguments", {{"study", "study.yaml"}, {"directory", "study"}}}})
                        .dump());
        const json told = json::parse(process.heard())["result"]["structuredContent"];
        CHECK(told["state"] == "working");
        CHECK(comes_true([&] { return study.engines().size() > before; }));
        if (killed) process.kill_now();
        CHECK(process.end() == (killed ? 128 + SIGKILL : 0));
        CHECK(comes_true([&] { return leftovers(study.mark()).empty(); }));
    }
    Ran again;
    CHECK(comes_true([&] {
        return (again = study.run()).code != 3;
    }));  // the run that ends holds the folder a moment longer
    INFO(again.err);
    CHECK(again.code == 0);
}
