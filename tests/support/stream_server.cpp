// SPDX-License-Identifier: Apache-2.0
// The stream server as its users see it, and what it knows of its requests.
#include "support/stream_server.hpp"

#include "support/stream_server_loop.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

namespace servetune::test {

namespace {

using Json = nlohmann::json;

}  // namespace

std::string StreamServer::Shared::metrics() const {
    std::string out;
    const auto add = [&](std::string_view name, std::string_view type, double value,
                         std::string_view labels = R"(engine="0",model_name="test")") {
        out += "# TYPE " + std::string(name) + " " + std::string(type) + "\n" + std::string(name) +
               "{" + std::string(labels) + "} " + Json(value).dump() + "\n";
    };
    add("vllm:num_requests_running", "gauge", static_cast<double>(in_flight));
    add("vllm:num_requests_waiting", "gauge", 0);
    add("vllm:num_preemptions_total", "counter", 0);
    add("vllm:prefix_cache_queries_total", "counter", static_cast<double>(prompt_tokens));
    add("vllm:prefix_cache_hits_total", "counter", static_cast<double>(cached_tokens));
    add("vllm:prompt_tokens_total", "counter", static_cast<double>(prompt_tokens));
    add("vllm:generation_tokens_total", "counter", static_cast<double>(generation_tokens));
    add("vllm:request_success_total", "counter", static_cast<double>(ended_length),
        R"(engine="0",finished_reason="length",model_name="test")");
    out += R"(vllm:request_success_total{engine="0",finished_reason="stop",model_name="test"} )" +
           Json(static_cast<double>(ended_stop)).dump() + "\n";
    return out;
}

std::string StreamServer::Shared::truth_json() const {
    Json requests_json = Json::array();
    const std::lock_guard lock(mutex);
    for (const RequestTruth& truth : log)
        requests_json.push_back({{"number", truth.number},
                                 {"path", truth.path},
                                 {"label", truth.label},
                                 {"end", truth.end},
                                 {"status", truth.status},
                                 {"received_ns", truth.received_ns},
                                 {"done_ns", truth.done_ns},
                                 {"chunk_sent_ns", truth.chunk_sent_ns},
                                 {"prompt_tokens", truth.prompt_tokens},
                                 {"output_tokens", truth.output_tokens}});
    return Json{{"requests", std::move(requests_json)},
                {"connections", connections.load()},
                {"most_in_flight", most_in_flight.load()},
                {"late_p50_seconds", lateness.quantile_seconds(0.5)},
                {"late_p99_seconds", lateness.quantile_seconds(0.99)}}
        .dump();
}

StreamServer::StreamServer(const StreamServerOptions& options)
    : shared_(std::make_unique<Shared>()) {
    shared_->options = options;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options.threads); ++i)
        loops_.push_back(std::make_unique<Loop>(*shared_, i));
    for (const auto& loop : loops_) loop->start();
}

StreamServer::~StreamServer() { stop(); }

void StreamServer::stop() {
    shared_->stopping = true;
    loops_.clear();
}

std::uint16_t StreamServer::port() const { return shared_->port; }
std::string StreamServer::url() const {
    return "http://127.0.0.1:" + std::to_string(shared_->port);
}

std::vector<RequestTruth> StreamServer::truth() const {
    const std::lock_guard lock(shared_->mutex);
    std::vector<RequestTruth> result = shared_->log;
    std::sort(result.begin(), result.end(),
              [](const RequestTruth& a, const RequestTruth& b) { return a.number < b.number; });
    return result;
}

ServerTotals StreamServer::totals() const {
    const std::lock_guard lock(shared_->mutex);
    const Shared& shared = *shared_;
    return {
        shared.connections,   shared.requests,          shared.completions,
        shared.log.size(),    shared.in_flight,         shared.most_in_flight,
        shared.prompt_tokens, shared.generation_tokens, shared.ended_length + shared.ended_stop};
}

bool StreamServer::wait_for_ended(std::uint64_t count, double seconds) const {
    std::unique_lock lock(shared_->mutex);
    return shared_->ended.wait_for(lock, std::chrono::duration<double>(seconds),
                                   [&] { return shared_->log.size() >= count; });
}

}  // namespace servetune::test
