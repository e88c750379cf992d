// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "completion.hpp"
#include "dialect.hpp"
#include "engine_loop.hpp"
#include "engine_setup.hpp"
#include "http.hpp"
#include "text.hpp"

#include "servetune/configuration.hpp"
#include "servetune/engine.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace simengine {

/// What the engine answers with, beside its timing.
struct ServiceOptions {
    const Dialect* dialect = nullptr;
    servetune::Engine engine{};               ///< counters, paths that empty the cache
    std::string version{};                    ///< of the engine
    std::vector<std::string> served_names{};  ///< the first is what it calls itself
    std::string model{};                      ///< as the command names it
    std::map<std::string, std::vector<std::string>>
        flags{};  ///< of the command, for /get_server_info
    servetune::Assignment parameters{};
    std::string api_key{};    ///< empty: none is needed
    bool metrics = true;      ///< has /metrics
    bool says_cached = true;  ///< usage says how many tokens came from the cache
    bool reasons = false;     ///< answers begin with thoughts
    bool can_reset = true;    ///< the environment allows the cache to be emptied
    bool decodes = false;     ///< each prompt's cache comes from a prefill engine
    EngineLoopOptions loop{};
    Faults faults{};

    static ServiceOptions of(const EngineSetup& setup, const Options& options);
};

/// One completion as the server knows it; kept where there is a pace.
struct ServedRequest {
    std::string label{};  ///< the first word of its prompt
    TimePoint received{};
    std::vector<TimePoint> sent{};  ///< just before each event with tokens was written
};

struct ServedTotals {
    std::int64_t requests = 0;  ///< completions
    std::size_t in_flight = 0, most_in_flight = 0;
    std::int64_t tokens = 0;
};

/// What was seen of a figure of requests: engines publish histograms, and this their sums.
struct Observed {
    double sum = 0;
    std::uint64_t count = 0;
};
using ObservedFigures = std::map<std::string, Observed, std::less<>>;

/// All paths of the engine's HTTP interface, without a socket: requests come in, answers go out
/// through their exchanges.
class Service {
public:
    struct Hooks {
        /// The engine ends now, hard; its log has the lines of this event (EngineTraits::log).
        std::function<void(const std::string& event)> die;
        std::function<void()> drop_all;  ///< all connections end now
    };
    Service(boost::asio::io_context& context, ServiceOptions options,
            const servetune::CostModel& cost, Hooks hooks);

    void handle(const HttpRequest& request, Exchange& exchange);
    /// The client whose work this was has left.
    void gone(std::size_t work);
    [[nodiscard]] EngineLoop& loop() { return loop_; }
    [[nodiscard]] ServedTotals totals() const {
        return {requests_, pending_.size(), most_in_flight_, tokens_};
    }
    [[nodiscard]] const std::vector<ServedRequest>& served() const { return served_; }

private:
    struct Pending {
        Exchange* exchange;
        bool stream;
        AnswerWriter writer;
        std::int64_t cached = 0;
        double slower = 1;
        TimePoint begun = Clock::now();
        TimePoint first{}, last{};  ///< tokens
        std::int64_t output_tokens = 0;
        std::size_t number = 0;  ///< in `served_`
    };

    bool handle_completion(const HttpRequest& request, Exchange& exchange);
    bool handle_about(const HttpRequest& request, Exchange& exchange);
    bool handle_reset(const HttpRequest& request, Exchange& exchange);
    void complete(const CompletionRequest& asked, TimePoint received, Exchange& exchange);
    [[nodiscard]] std::optional<HttpRefusal> refused_field(const std::string& body) const;
    void wake();
    void deliver(const servetune::TokenEvent& event);
    void observe(Pending& pending, const servetune::TokenEvent& event);
    bool fail_at_request();
    void refuse(Exchange& exchange, const HttpRefusal& refusal) const;
    [[nodiscard]] bool authorized(const HttpRequest& request) const;
    [[nodiscard]] bool serves(const std::string& model) const;
    [[nodiscard]] std::string shown_name() const;
    [[nodiscard]] std::string models_json() const;
    [[nodiscard]] std::string server_info_json() const;
    [[nodiscard]] std::string status_json() const;
    [[nodiscard]] std::string served_json() const;
    [[nodiscard]] std::string metrics_text() const;

    ServiceOptions options_;
    const Dialect& dialect_;
    Tokenizer tokenizer_;
    Hooks hooks_;
    std::unordered_map<std::size_t, Pending> pending_;
    std::size_t next_id_ = 1;
    std::int64_t requests_ = 0, tokens_ = 0, events_ = 0;
    std::int64_t finished_ = 0;
    std::int64_t arrived_tokens_ = 0;  ///< of prompts that another engine computed
    TimePoint cache_arrived_{};        ///< the last one; one comes after the other
    double started_at_;                ///< seconds since 1970
    std::string bytes_;                ///< of the answer that is being written
    AnswerFaults answer_faults_{};     ///< of the request at hand
    std::size_t most_in_flight_ = 0;
    std::vector<ServedRequest> served_{};
    ObservedFigures observed_{};  ///< by our names of an engine file's `counters`
    EngineLoop loop_;
    boost::asio::steady_timer timer_;  ///< of the loop's next step
    std::optional<TimePoint> armed_{};
};

}  // namespace simengine
