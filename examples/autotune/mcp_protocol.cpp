// SPDX-License-Identifier: Apache-2.0
#include "mcp_protocol.hpp"

#include "output.hpp"

#include "base/nesting.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"
#include "servetune/version.hpp"

#include <algorithm>
#include <array>

namespace autotune {

using namespace servetune;
using OrderedJson = McpServer::OrderedJson;

namespace {

constexpr std::string_view modern_version = "2026-07-28";
constexpr std::array<std::string_view, 4> handshake_versions{"2025-11-25", "2025-06-18",
                                                             "2025-03-26", "2024-11-05"};
constexpr const char* version_field = "io.modelcontextprotocol/protocolVersion";
constexpr const char* server_field = "io.modelcontextprotocol/serverInfo";
constexpr const char* client_field = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* tasks_extension = "io.modelcontextprotocol/tasks";

constexpr int parse_error = -32700, invalid_request = -32600, unknown_method = -32601,
              invalid_arguments = -32602, internal_error = -32603;
constexpr int unknown_resource = -32002, missing_capability = -32021, unsupported_version = -32022;

constexpr const char* instructions =
    "Finds the launch flags that make an LLM serving engine fastest on this machine, and proves it "
    "by load tests. Usual order: `init` (or "
    "a study that is there), `validate`, `start`, `status` with wait_seconds until it ends, "
    "`report`, `explain`, `recommend`. "
    "A verdict `keep_default` or `inconclusive` is an answer: never recommend a gain that the "
    "report does not prove.";

struct RpcError {
    int code;
    std::string message;
    OrderedJson data{};
};

OrderedJson server_info() {
    return {
        {"name", "servetune"}, {"title", "servetune"}, {"version", std::string(library_version)}};
}

OrderedJson error_message(const OrderedJson& id, const RpcError& error) {
    OrderedJson told{{"code", error.code}, {"message", error.message}};
    if (!error.data.is_null()) told["data"] = error.data;
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", told}};
}

/// What 2026-07-28 wants in each result beside its content.
OrderedJson in_form(OrderedJson result, bool modern, bool cacheable) {
    if (!modern) return result;
    result["resultType"] = "complete";
    result["_meta"][server_field] = server_info();
    if (cacheable) {
        result["ttlMs"] = 0;
        result["cacheScope"] = "private";
    }
    return result;
}

OrderedJson capabilities() {
    return {{"tools", OrderedJson::object()}, {"resources", OrderedJson::object()}};
}

OrderedJson with_tasks() { return {{"extensions", {{tasks_extension, OrderedJson::object()}}}}; }

OrderedJson initialized(const OrderedJson& parameters) {
    const std::string wanted = parameters.value("protocolVersion", "");
    const bool known = std::find(handshake_versions.begin(), handshake_versions.end(), wanted) !=
                       handshake_versions.end();
    return {{"protocolVersion", known ? wanted : std::string(handshake_versions.front())},
            {"capabilities", capabilities()},
            {"serverInfo", server_info()},
            {"instructions", instructions}};
}

OrderedJson discovered() {
    OrderedJson versions = OrderedJson::array({std::string(modern_version)});
    for (const std::string_view version : handshake_versions)
        versions.push_back(std::string(version));
    OrderedJson all = capabilities();
    all.update(with_tasks());
    return {{"supportedVersions", versions}, {"capabilities", all}, {"instructions", instructions}};
}

/// A field of an object; null where there is none, or it is no object.
const OrderedJson& field_of(const OrderedJson& object, const char* name) {
    static const OrderedJson none;
    if (!object.is_object()) return none;
    const auto found = object.find(name);
    return found == object.end() ? none : *found;
}

const OrderedJson& meta_of(const OrderedJson& request) {
    return field_of(field_of(request, "params"), "_meta");
}

std::string version_of(const OrderedJson& request) {
    const OrderedJson& version = field_of(meta_of(request), version_field);
    return version.is_string() ? version.get<std::string>() : "";
}

bool takes_tasks(const OrderedJson& request) {
    return field_of(field_of(field_of(meta_of(request), client_field), "extensions"),
                    tasks_extension)
        .is_object();
}

/// What a tool says as the result of a call.
OrderedJson tool_result(const OrderedJson& told) {
    const std::string text =
        secrets()(told.dump(1, ' ', false, OrderedJson::error_handler_t::replace));
    OrderedJson result{{"content", OrderedJson::array({{{"type", "text"}, {"text", text}}})},
                       {"structuredContent", shallow_json<OrderedJson>(text)}};
    if (result["structuredContent"].is_discarded()) result.erase("structuredContent");
    if (told.value("state", "") == "failed") result["isError"] = true;
    return result;
}

OrderedJson task_fields(Tools::Task task) {
    if (const auto message = task.fields.find("statusMessage"); message != task.fields.end())
        *message = secrets()(message->get<std::string>());
    if (!task.told.is_null()) task.fields["result"] = in_form(tool_result(task.told), true, false);
    return std::move(task.fields);
}

}  // namespace

struct McpServer::Call {
    std::atomic<bool> cancelled = false;
    std::atomic<bool> ended = false;
    std::jthread thread{};
};

McpServer::~McpServer() {
    std::map<std::string, std::shared_ptr<Call>> calls;
    {
        const std::scoped_lock lock(mutex_);
        calls.swap(calls_);
    }
    for (const auto& [id, call] : calls) call->cancelled = true;
    // Their threads are joined here, with the lock free.
}

void McpServer::call_tool(const OrderedJson& request, bool modern) {
    const OrderedJson id = request.at("id");
    const OrderedJson parameters = request.value("params", OrderedJson::object());
    const auto name = parameters.find("name");
    if (name == parameters.end() || !name->is_string() || !Tools::has(name->get<std::string>()))
        throw RpcError{invalid_arguments, "there is no such tool: `tools/list` has them"};
    const OrderedJson token = field_of(meta_of(request), "progressToken");
    const bool as_task =
        modern && takes_tasks(request) && Tools::makes_jobs(name->get<std::string>());
    const auto progress = [this, token](double done, const std::string& what) {
        if (token.is_null()) return;
        OrderedJson told{
            {"progressToken", token}, {"progress", done}, {"message", secrets()(what)}};
        send_({{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", told}});
    };
    const auto arguments = parameters.value("arguments", OrderedJson::object());
    begin(id, [this, modern, as_task, progress, arguments,
               tool = name->get<std::string>()](const std::function<bool()>& cancelled) {
        OrderedJson told;
        try {
            told = tools_.call(tool, arguments, progress, cancelled);
        } catch (const UsageError& error) {
            told = {{"state", "failed"},
                    {"reason", error.what()},
                    {"next", "mend the arguments, then try again"}};
        } catch (const std::exception& error) {
            told = {{"state", "failed"},
                    {"reason", error.what()},
                    {"next", "mend what `reason` names on this machine, then try again"}};
        }
        if (!as_task || told.value("state", "") != "working")
            return in_form(tool_result(told), modern, false);
        OrderedJson task = in_form(
            task_fields(tools_.task(told.at("job").get<std::string>(), cancelled)), true, false);
        task["resultType"] = "task";
        return task;
    });
}

void McpServer::answer_of_task(const OrderedJson& request) {
    if (!takes_tasks(request))
        throw RpcError{missing_capability,
                       "the client did not declare that it knows tasks",
                       {{"requiredCapabilities", with_tasks()}}};
    const OrderedJson& named = field_of(request.at("params"), "taskId");
    const std::string id = named.is_string() ? named.get<std::string>() : "";
    begin(request.at("id"), [this, id, method = request.at("method").get<std::string>()](
                                const std::function<bool()>& cancelled) {
        try {
            if (method == "tasks/get")
                return in_form(task_fields(tools_.task(id, cancelled)), true, false);
            if (method == "tasks/cancel") tools_.cancel_task(id);
            else (void)tools_.task(id, cancelled);  // tasks/update: none of ours asks for anything
            return in_form(OrderedJson::object(), true, false);
        } catch (const UsageError& error) {
            throw RpcError{invalid_arguments, error.what()};
        }
    });
}

void McpServer::read_resource(const OrderedJson& request, bool modern) {
    const OrderedJson parameters = request.value("params", OrderedJson::object());
    const auto uri = parameters.find("uri");
    const std::string wanted =
        uri != parameters.end() && uri->is_string() ? uri->get<std::string>() : "";
    begin(request.at("id"), [this, modern, wanted](const std::function<bool()>& cancelled) {
        try {
            OrderedJson contents = OrderedJson::array();
            contents.push_back(tools_.read_resource(wanted, cancelled));
            return in_form({{"contents", contents}}, modern, true);
        } catch (const UsageError& error) {
            throw RpcError{modern ? invalid_arguments : unknown_resource, error.what()};
        }
    });
}

void McpServer::begin(const OrderedJson& id,
                      std::function<OrderedJson(const std::function<bool()>& cancelled)> work) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(calls_, [](const auto& one) { return one.second->ended.load(); });
    if (calls_.contains(id.dump()))
        throw RpcError{invalid_request, "a request with this id runs already"};
    auto call = std::make_shared<Call>();
    calls_[id.dump()] = call;
    call->thread = std::jthread([this, id, work = std::move(work), &call = *call] {
        OrderedJson message;
        try {
            message = {{"jsonrpc", "2.0"},
                       {"id", id},
                       {"result", work([&] { return call.cancelled.load(); })}};
        } catch (const RpcError& error) {
            message = error_message(id, error);
        } catch (const std::exception& error) {
            message = error_message(id, {internal_error, secrets()(error.what())});
        }
        if (!call.cancelled) send_(message);
        call.ended = true;
    });
}

OrderedJson McpServer::answer(const OrderedJson& request, bool modern) {
    const std::string method = request.at("method").get<std::string>();
    const OrderedJson parameters = request.value("params", OrderedJson::object());
    if (method == "server/discover") return in_form(discovered(), true, true);
    if (method == "initialize" && !modern) return initialized(parameters);
    if (method == "ping" && !modern) return OrderedJson::object();
    if (method == "tools/list") return in_form({{"tools", Tools::list()}}, modern, true);
    if (method == "resources/list")
        return in_form({{"resources", tools_.resources()}}, modern, true);
    if (method == "resources/templates/list")
        return in_form({{"resourceTemplates", OrderedJson::array()}}, modern, true);
    throw RpcError{unknown_method, "there is no method " + printable_line(method)};
}

void McpServer::hear(const std::string& line) {
    const OrderedJson request = shallow_json<OrderedJson>(line);
    if (request.is_discarded())
        return send_(error_message(nullptr, {parse_error, "a line of JSON wanted"}));
    if (!request.is_object())
        return send_(error_message(nullptr, {invalid_request, "a JSON object wanted"}));
    const auto id = request.find("id");
    const auto method = request.find("method");
    if (method == request.end() || !method->is_string()) {
        if (id != request.end() && (request.contains("result") || request.contains("error")))
            return;  // an answer: we ask for nothing
        return send_(error_message(nullptr, {invalid_request, "a `method` wanted"}));
    }
    if (id == request.end()) {  // a notification
        if (*method != "notifications/cancelled") return;
        const auto parameters = request.find("params");
        if (parameters == request.end() || !parameters->is_object()) return;
        const std::scoped_lock lock(mutex_);
        if (const auto call = calls_.find(parameters->value("requestId", OrderedJson()).dump());
            call != calls_.end())
            call->second->cancelled = true;
        return;
    }
    if (!id->is_string() && !id->is_number_integer())
        return send_(
            error_message(nullptr, {invalid_request, "an `id` wanted: text or a whole number"}));
    try {
        if (const auto parameters = request.find("params");
            parameters != request.end() && !parameters->is_object())
            throw RpcError{invalid_arguments, "`params`: an object wanted"};
        const std::string version = version_of(request);
        const bool modern =
            !version.empty() && std::find(handshake_versions.begin(), handshake_versions.end(),
                                          version) == handshake_versions.end();
        if (modern && version != modern_version)
            throw RpcError{
                unsupported_version,
                "this server speaks " + std::string(modern_version),
                {{"supported", discovered()["supportedVersions"]}, {"requested", version}}};
        if (*method == "tools/call") return call_tool(request, modern);
        if (*method == "resources/read") return read_resource(request, modern);
        if (modern &&
            (*method == "tasks/get" || *method == "tasks/update" || *method == "tasks/cancel"))
            return answer_of_task(request);
        send_({{"jsonrpc", "2.0"}, {"id", *id}, {"result", answer(request, modern)}});
    } catch (const RpcError& error) {
        send_(error_message(*id, error));
    } catch (const std::exception& error) {
        send_(error_message(*id, {internal_error, secrets()(error.what())}));
    }
}

}  // namespace autotune
