// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// An engine behind a router.
struct RoutedEngine {
    Address address{};
    std::uint16_t bootstrap_port = 0;  ///< of a prefill engine that has one
};

/// A router's command: which engines, and how a request passes them.
struct RouterCommand {
    enum class Way {
        one_after_the_other,  ///< vllm-router: prefill answers where its cache is, decode is told
        both_at_once,         ///< sglang_router: both are told of a room, and find each other
    };
    Way way = Way::one_after_the_other;
    std::string program{};  ///< as its messages call it
    std::string host = "127.0.0.1";
    std::uint16_t port = 30000;
    std::vector<RoutedEngine> prefill{};
    std::vector<RoutedEngine> decode{};
    bool takes_turns = false;  ///< --policy round_robin; else the engine with the fewest requests
    double startup_seconds = 600;
    std::vector<std::string> not_copied{};  ///< flags that are known and do nothing here
    bool wants_help = false;
};

/// The command of a router that stands there: `vllm-router ...` or `python3 -m
/// sglang_router.launch_router ...`. Nothing: it is none. Throws CommandRefused where the router
/// would refuse it.
std::optional<RouterCommand> read_router_command(const std::vector<std::string>& words);

}  // namespace simengine
