// SPDX-License-Identifier: Apache-2.0
#include "router_command.hpp"

#include "dialect.hpp"
#include "engine_command.hpp"
#include "servetune/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace simengine {
namespace {

constexpr int refusal_code = 2;  ///< argparse's

// Read in py_src/vllm_router/router_args.py of vllm-project/router at 1700eefa; sglang_router, of
// which it is a fork, has the same of these.
constexpr std::array policies{"random",       "round_robin",     "cache_aware",
                              "power_of_two", "consistent_hash", "sticky_round_robin"};
constexpr std::array flags_without_effect{"--policy",
                                          "--prefill-policy",
                                          "--decode-policy",
                                          "--log-level",
                                          "--log-dir",
                                          "--prometheus-port",
                                          "--prometheus-host",
                                          "--request-timeout-secs",
                                          "--max-concurrent-requests",
                                          "--queue-size",
                                          "--kv-connector",
                                          "--worker-startup-check-interval",
                                          "--retry-max-retries"};
constexpr std::array switches_without_effect{"--disable-retries", "--disable-circuit-breaker"};

/// One command line while it is read.
class RouterReader {
public:
    RouterReader(RouterCommand command, std::vector<std::string> given)
        : command_(std::move(command)), words_(std::move(given)) {}

    RouterCommand read() {
        for (; at_ < words_.size(); ++at_) read_flag(words_[at_]);
        if (command_.wants_help) return std::move(command_);
        if (!apart_)
            refuse("this router is copied for prefill and decode apart alone: " + switch_name() +
                   " wanted");
        if (command_.prefill.empty() || command_.decode.empty())
            refuse("at least one --prefill and one --decode wanted");
        return std::move(command_);
    }

private:
    [[noreturn]] void refuse(const std::string& sentence) const {
        throw CommandRefused(
            fmt::format("usage: {0} [options]\n{0}: error: {1}\n", command_.program, sentence),
            refusal_code);
    }
    [[nodiscard]] std::string switch_name() const {
        return command_.way == RouterCommand::Way::both_at_once ? "--pd-disaggregation"
                                                                : "--vllm-pd-disaggregation";
    }

    void read_flag(const std::string& word) {
        const auto equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        if (equals != std::string::npos)
            words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                          word.substr(equals + 1));
        const auto is_one_of = [&](const auto& list) {
            return std::find(list.begin(), list.end(), flag) != list.end();
        };
        if (flag == "--help" || flag == "-h") command_.wants_help = true;
        else if (flag == switch_name()) apart_ = true;
        else if (flag == "--host") command_.host = take(flag);
        else if (flag == "--port") command_.port = port_of(flag, take(flag), 0);
        else if (flag == "--worker-startup-timeout-secs")
            command_.startup_seconds = static_cast<double>(number_of(flag, take(flag)));
        else if (flag == "--prefill") read_prefill();
        else if (flag == "--decode") command_.decode.push_back({engine_at(flag, take(flag)), 0});
        else if (is_one_of(switches_without_effect)) command_.not_copied.push_back(flag);
        else if (is_one_of(flags_without_effect)) read_without_effect(flag);
        else refuse("unrecognized arguments: " + word);
    }

    /// `URL [PORT]`; the port may be the word none.
    void read_prefill() {
        RoutedEngine engine{engine_at("--prefill", take("--prefill")), 0};
        if (at_ + 1 < words_.size() && !words_[at_ + 1].starts_with("-")) {
            const std::string& port = words_[++at_];
            if (port != "none") engine.bootstrap_port = port_of("--prefill", port, 1);
        }
        command_.prefill.push_back(engine);
    }

    void read_without_effect(const std::string& flag) {
        const std::string value = take(flag);
        const bool policy = flag.ends_with("policy");
        if (policy && std::find(policies.begin(), policies.end(), value) == policies.end())
            refuse(fmt::format("argument {}: invalid choice: '{}'", flag, value));
        if (flag == "--policy" && value == "round_robin") command_.takes_turns = true;
        else command_.not_copied.push_back(flag + "=" + value);
    }

    std::string take(const std::string& flag) {
        if (at_ + 1 >= words_.size() || words_[at_ + 1].starts_with("--"))
            refuse("argument " + flag + ": expected one argument");
        return words_[++at_];
    }
    std::int64_t number_of(const std::string& flag, const std::string& text) const {
        const auto number = servetune::integer_of(text);
        if (!number) refuse(fmt::format("argument {}: invalid int value: '{}'", flag, text));
        return *number;
    }
    std::uint16_t port_of(const std::string& flag, const std::string& text,
                          std::int64_t least) const {
        const std::int64_t number = number_of(flag, text);
        if (number < least || number > 65535)
            refuse(fmt::format("argument {}: a port wanted, got '{}'", flag, text));
        return static_cast<std::uint16_t>(number);
    }
    Address engine_at(const std::string& flag, const std::string& url) const {
        const auto address = address_of(url);
        if (!address)
            refuse(fmt::format("argument {}: http://HOST:PORT wanted, got '{}'", flag, url));
        return *address;
    }

    RouterCommand command_;
    std::vector<std::string> words_;
    std::size_t at_ = 0;
    bool apart_ = false;
};

}  // namespace

std::optional<RouterCommand> read_router_command(const std::vector<std::string>& words) {
    RouterCommand command;
    std::size_t used = 0;
    if (!words.empty() && base_name(words[0]) == "vllm-router") {
        command.program = "vllm-router";
        used = 1;
    } else if (words.size() > 2 && base_name(words[0]).starts_with("python") && words[1] == "-m" &&
               words[2] == "sglang_router.launch_router") {
        command.way = RouterCommand::Way::both_at_once;
        command.program = "launch_router.py";
        used = 3;
    } else return std::nullopt;
    return RouterReader(std::move(command),
                        {words.begin() + static_cast<std::ptrdiff_t>(used), words.end()})
        .read();
}

}  // namespace simengine
