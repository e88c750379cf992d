// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine_command.hpp"
#include "upstream.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace simengine {

/// Which part of an engine over several machines this process is.
struct EnginePart {
    std::int64_t nodes = 1;
    std::int64_t rank = 0;  ///< 0: the first one, which answers requests
    Address leader{};       ///< where the first one waits for the others
};

/// By its flags: `--nnodes`, `--node-rank`, and SGLang's `--dist-init-addr`, or vLLM's
/// `--master-addr` and `--master-port` (127.0.0.1, 29501). Throws CommandRefused where they cannot
/// be.
EnginePart engine_part_of(const Dialect& dialect, const EngineCommand& command);

/// The connections between the first node and the others, on the io_context's thread.
class EngineNodes {
public:
    struct Handlers {
        std::function<void()> all_here;  ///< of the first: every other node has come
        std::function<void(const std::string& why)>
            lost;  ///< the other end of a connection is gone
    };
    EngineNodes(boost::asio::io_context& context, EnginePart part, Handlers handlers);
    ~EngineNodes();
    EngineNodes(const EngineNodes&) = delete;
    EngineNodes& operator=(const EngineNodes&) = delete;

    /// Of the first: takes the port. Throws IoError.
    void listen();
    /// Of the first: whether every other node has come.
    [[nodiscard]] bool complete() const;
    /// Of another: tries until the first one takes it.
    void join();

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace simengine
