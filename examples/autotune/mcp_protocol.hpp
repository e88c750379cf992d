// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mcp_tools.hpp"

#include <nlohmann/json.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace autotune {

/// The Model Context Protocol of a server over standard input and output: JSON-RPC 2.0, a message a
/// line. Two eras (modelcontextprotocol.io/specification): up to 2025-11-25 a client begins with
/// `initialize`; from 2026-07-28 on each request says its version in `_meta`, and
/// `server/discover` tells what there is. There a client that declares the extension for tasks gets
/// long work as one.
class McpServer {
public:
    using OrderedJson = nlohmann::ordered_json;
    using Send = std::function<void(const OrderedJson& message)>;

    /// `send` is called by any thread.
    McpServer(Tools& tools, Send send) : tools_(tools), send_(std::move(send)) {}
    /// Cancels what runs, and waits for it.
    ~McpServer();
    McpServer(const McpServer&) = delete;
    McpServer& operator=(const McpServer&) = delete;

    /// Answers a line of the client: at once, or from a thread of its own where it takes time.
    void hear(const std::string& line);

private:
    struct Call;
    [[nodiscard]] OrderedJson answer(const OrderedJson& request, bool modern);
    void call_tool(const OrderedJson& request, bool modern);
    void read_resource(const OrderedJson& request, bool modern);
    void answer_of_task(const OrderedJson& request);
    /// Answers the request with this id from a thread of its own.
    void begin(const OrderedJson& id,
               std::function<OrderedJson(const std::function<bool()>& cancelled)> work);
    Tools& tools_;
    const Send send_;
    std::mutex mutex_{};
    std::map<std::string, std::shared_ptr<Call>> calls_{};  ///< by the id of the request, as JSON
};

}  // namespace autotune
