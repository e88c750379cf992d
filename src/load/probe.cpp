// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/probe.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "http.hpp"
#include "request_body.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace servetune {
namespace {

constexpr double patience_seconds = 120;  // for one token; a server under load may take its time

std::string address_of(const Endpoint& endpoint) {
    return without_user_info(server_url(endpoint.url)) + path_of(endpoint);
}

/// `usage.prompt_tokens` of the answer to a request for one token, where it has that.
std::optional<std::int64_t> prompt_tokens_in(const Reply& reply) {
    const auto object = nlohmann::json::parse(reply.body, RefuseDeepAndTwice(), false);
    const auto usage = object.is_object() ? object.find("usage") : object.end();
    if (!object.is_object() || usage == object.end() || !usage->is_object()) return std::nullopt;
    const auto count = usage->find("prompt_tokens");
    constexpr std::uint64_t most = std::uint64_t{1}
                                   << 40;  // sums of such counts stay within 64 bits
    if (count == usage->end() || !count->is_number_unsigned() || count->get<std::uint64_t>() > most)
        return std::nullopt;
    return count->get<std::int64_t>();
}

/// Throws ServerError where the server does not answer as it should.
Reply asked_for_one_token(const Endpoint& endpoint, const std::string& text,
                          const std::stop_token& stop) {
    Endpoint whole = endpoint;
    whole.stream = false;
    Reply reply = post(endpoint, path_of(endpoint),
                       request_body(whole, {.text = text, .output_tokens = 1}, {}, false),
                       patience_seconds, [&] { return stop.stop_requested(); });
    if (!reply.error.empty() || reply.status != 200)
        throw ServerError(address_of(endpoint) + trouble_text(reply));
    return reply;
}

// -------------------------------------------------------------------------------------------------
// what of a request is accepted

/// Statuses by which servers refuse a request that they do not understand: FastAPI's and
/// transformers' 422, hosted interfaces' 400.
bool refuses_fields(const RequestRecord& record) {
    return record.http_status == 400 || record.http_status == 422;
}

/// One request of the load test's kind, sent and read as the load test does it.
class TriedRequest {
public:
    TriedRequest(const Endpoint& endpoint, bool ignore_eos, const std::stop_token& stop)
        : endpoint_(endpoint), ignore_eos_(ignore_eos), stop_(stop) {
        endpoint_.metrics_path.clear();
        request_.output_tokens = 1;
        request_.text = "Hello";
    }
    [[nodiscard]] RequestRecord without(const std::vector<std::string>& fields) {
        endpoint_.refused_fields = fields;
        const LoadOptions options{.request_timeout_seconds = patience_seconds,
                                  .stall_timeout_seconds = patience_seconds,
                                  .ignore_eos = ignore_eos_,
                                  .warm_connections = false};
        return generate_load(endpoint_, {&request_, 1}, {}, options, stop_).records.front();
    }
    /// What of it the server could do without.
    [[nodiscard]] std::vector<std::string> optional_fields() const {
        std::vector<std::string> fields;
        if (ignore_eos_) fields.emplace_back("ignore_eos");
        if (endpoint_.stream && endpoint_.usage) fields.emplace_back("stream_options");
        fields.emplace_back("max_tokens");
        return fields;
    }

private:
    Endpoint endpoint_;
    PlannedRequest request_;
    bool ignore_eos_;
    std::stop_token stop_;
};

/// All choices of them, those of few fields first.
std::vector<std::vector<std::string>> choices_of(const std::vector<std::string>& fields) {
    std::vector<std::vector<std::string>> result(1);
    for (const std::string& field : fields)
        for (std::size_t i = 0, known = result.size(); i < known; ++i) {
            result.push_back(result[i]);
            result.back().push_back(field);
        }
    stable_sort(result, [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return result;
}

}  // namespace

Handshake try_request(const Endpoint& endpoint, bool ignore_eos, const std::stop_token& stop) {
    TriedRequest request(endpoint, ignore_eos, stop);
    RequestRecord record;
    Handshake result;
    std::map<std::vector<std::string>, std::string> refusals;  // fields left out -> what it said
    for (const std::vector<std::string>& left_out : choices_of(request.optional_fields())) {
        record = request.without(left_out);
        result.refused_fields = left_out;
        if (!refuses_fields(record)) break;
        refusals[left_out] = record.error;
    }
    if (refuses_fields(record))
        throw ServerError(address_of(endpoint) +
                          " refuses the load test's requests: " + refusals.at({}));
    for (const std::string& field : result.refused_fields) {
        std::vector<std::string> with_it = result.refused_fields;
        std::erase(with_it, field);
        result.reasons.push_back(refusals.at(with_it));
    }
    const bool passes_by =
        record.http_status == 408 || record.http_status == 429 || record.http_status >= 500;
    if (record.end == RequestEnd::http_error && !passes_by)
        (void)asked_for_one_token(as_agreed(endpoint, result), "Hello", stop);  // says more
    if (record.end == RequestEnd::not_connected ||
        (record.end == RequestEnd::http_error && !passes_by))
        throw ServerError(address_of(endpoint) + ": " + record.error);
    result.counts_tokens = record.end != RequestEnd::no_usage;
    return result;
}

Endpoint as_agreed(Endpoint endpoint, const Handshake& handshake) {
    endpoint.refused_fields = handshake.refused_fields;
    endpoint.usage = endpoint.usage && handshake.counts_tokens;
    return endpoint;
}

// -------------------------------------------------------------------------------------------------
// how it counts

std::int64_t count_prompt_tokens(const Endpoint& endpoint, const std::string& text,
                                 const std::stop_token& stop) {
    const Reply reply = asked_for_one_token(endpoint, text, stop);
    if (const auto count = prompt_tokens_in(reply)) return *count;
    throw ServerError(address_of(endpoint) +
                      " does not say how many tokens a prompt has (usage.prompt_tokens): " +
                      printable_line(reply.body.substr(0, 200)));
}

std::optional<Calibration> calibrated(const Endpoint& endpoint, const std::stop_token& stop) {
    try {
        if (prompt_tokens_in(asked_for_one_token(endpoint, "the", stop)).value_or(0) < 1)
            return std::nullopt;
        return calibrate(
            [&](const std::string& text) { return count_prompt_tokens(endpoint, text, stop); });
    } catch (const IoError&) {
        if (stop.stop_requested()) return std::nullopt;
        throw;
    }
}

std::vector<std::string> served_models(const Endpoint& endpoint) {
    const ModelList list = ask_for_models(endpoint, 10);
    if (list.state == ModelList::State::no_answer)
        throw ServerError("GET " + without_user_info(server_url(endpoint.url)) +
                          endpoint.models_path + trouble_text(list.reply));
    return list.names;
}

}  // namespace servetune
