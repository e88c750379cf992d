// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine_setup.hpp"
#include "http.hpp"
#include "service.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace servetune::test {

/// simengine's vLLM in this process, at a pace that the test says: it serves the model "m", has any
/// of simengine's faults of load and answers, and knows what it sent when. A prompt has a token for
/// each of its words (of up to eight letters), and seven of the chat template.
class StandIn {
public:
    struct Setting {
        double first = 0.005, gap = 0.001;  ///< seconds
        std::vector<std::string> faults{};
        std::int64_t chunk_tokens = 1;
    };
    static constexpr std::int64_t template_tokens = 7;

    StandIn() : StandIn(Setting{}) {}
    /// Listens when it returns.
    explicit StandIn(const Setting& setting)
        : cost_(cost_of(setting)),
          service_(context_, options_of(setting), cost_,
                   {.die = [](const std::string&) {},
                    .drop_all = [this] { server_.drop_connections(); }}),
          server_(context_, {.handle =
                                 [this](const simengine::HttpRequest& request,
                                        simengine::Exchange& exchange) {
                                     service_.handle(request, exchange);
                                 },
                             .gone = [this](std::size_t work) { service_.gone(work); }}) {
        server_.bind("127.0.0.1", 0);
        port_ = server_.port();
        server_.listen();
        thread_ = std::thread([this] { context_.run(); });
    }
    ~StandIn() { stop(); }
    StandIn(const StandIn&) = delete;
    StandIn& operator=(const StandIn&) = delete;

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::vector<simengine::ServedRequest> served() const {
        return asked([](const simengine::Service& service) { return service.served(); });
    }
    [[nodiscard]] simengine::ServedTotals totals() const {
        return asked([](const simengine::Service& service) { return service.totals(); });
    }
    /// Closes everything, in the middle of whatever it does; the port refuses from then on.
    void stop() {
        if (!thread_.joinable()) return;
        boost::asio::post(context_, [this] {
            server_.close();
            context_.stop();
        });
        thread_.join();
    }

private:
    static const simengine::EngineSetup& setup() {
        static const simengine::EngineSetup one = [] {
            simengine::Options options;
            options.search_spaces = SERVETUNE_SOURCE "/search_spaces";
            options.engine_words = {"vllm", "serve", "Qwen/Qwen3-8B"};
            return simengine::set_up(options);
        }();
        return one;
    }
    static CostModel cost_of(const Setting& setting) {
        ServingSettings settings = setup().cost->settings();
        settings.stream_interval = setting.chunk_tokens;
        return {setup().cost->target(), settings};
    }
    static simengine::ServiceOptions options_of(const Setting& setting) {
        simengine::Options options;
        options.pace = simengine::Pace{setting.first, setting.gap};
        options.faults = simengine::Faults::of(setting.faults);
        simengine::ServiceOptions result = simengine::ServiceOptions::of(setup(), options);
        result.served_names = {"m"};
        return result;
    }
    /// In the server's thread, which alone touches the service while it runs.
    template <class Ask>
    auto asked(Ask ask) const -> std::invoke_result_t<Ask, const simengine::Service&> {
        if (!thread_.joinable()) return ask(service_);
        std::promise<std::invoke_result_t<Ask, const simengine::Service&>> answer;
        boost::asio::post(context_, [&] { answer.set_value(ask(service_)); });
        return answer.get_future().get();
    }

    mutable boost::asio::io_context context_{1};
    CostModel cost_;
    simengine::Service service_;
    simengine::Server server_;  ///< ends before the service, which it tells of clients that leave
    std::uint16_t port_ = 0;
    std::thread thread_;
};

}  // namespace servetune::test
