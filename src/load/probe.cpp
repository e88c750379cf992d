// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/probe.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "http.hpp"
#include "request_body.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
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

/// Throws IoError where the server does not answer as it should.
Reply asked_for_one_token(const Endpoint& endpoint, const std::string& text) {
    Endpoint whole = endpoint;
    whole.stream = false;
    Reply reply =
        post(endpoint, path_of(endpoint),
             request_body(whole, {.text = text, .output_tokens = 1}, {}, false), patience_seconds);
    if (!reply.error.empty() || reply.status != 200)
        throw IoError(address_of(endpoint) + trouble_text(reply));
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

std::vector<std::string> and_field(std::vector<std::string> fields, const std::string& field) {
    fields.push_back(field);
    return fields;
}
std::vector<std::string> without_field(std::vector<std::string> fields, const std::string& field) {
    std::erase(fields, field);
    return fields;
}

/// Finds the fields without which the server accepts the request, and the answer that it gives
/// then. At most twelve requests.
RequestRecord find_refused(TriedRequest& request, RequestRecord record, Handshake& result) {
    std::vector<std::string> left = request.optional_fields();
    const auto refuse = [&](const std::string& field) {
        result.refused_fields.push_back(field);
        result.reasons.push_back(record.error);
        std::erase(left, field);
    };
    while (refuses_fields(record) && !left.empty()) {
        const auto named = std::find_if(left.begin(), left.end(), [&](const std::string& field) {
            return record.error.find(field) != std::string::npos;
        });
        if (named != left.end()) {
            refuse(std::string(*named));
            record = request.without(result.refused_fields);
            continue;
        }
        // It does not say which: one by one, then all.
        for (const std::string& field : std::vector<std::string>(left)) {
            RequestRecord one = request.without(and_field(result.refused_fields, field));
            if (refuses_fields(one)) continue;
            refuse(field);
            return one;
        }
        for (const std::string& field : std::vector<std::string>(left)) refuse(field);
        record = request.without(result.refused_fields);
    }
    return record;
}

}  // namespace

Handshake try_request(const Endpoint& endpoint, bool ignore_eos, const std::stop_token& stop) {
    TriedRequest request(endpoint, ignore_eos, stop);
    const RequestRecord first = request.without({});
    RequestRecord record = first;
    Handshake result;
    if (refuses_fields(first)) {
        record = find_refused(request, first, result);
        if (refuses_fields(record))
            throw IoError(address_of(endpoint) +
                          " refuses the load test's requests: " + first.error);
        // A message may name fields that are welcome, as when it repeats the whole request.
        for (std::size_t i = 0;
             result.refused_fields.size() > 1 && i < result.refused_fields.size();) {
            RequestRecord again =
                request.without(without_field(result.refused_fields, result.refused_fields[i]));
            if (refuses_fields(again)) {
                ++i;
                continue;
            }
            record = std::move(again);
            result.refused_fields.erase(result.refused_fields.begin() +
                                        static_cast<std::ptrdiff_t>(i));
            result.reasons.erase(result.reasons.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    const bool passes_by =
        record.http_status == 408 || record.http_status == 429 || record.http_status >= 500;
    if (record.end == RequestEnd::http_error && !passes_by)
        (void)asked_for_one_token(as_agreed(endpoint, result), "Hello");  // says more
    if (record.end == RequestEnd::not_connected ||
        (record.end == RequestEnd::http_error && !passes_by))
        throw IoError(address_of(endpoint) + ": " + record.error);
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

std::int64_t count_prompt_tokens(const Endpoint& endpoint, const std::string& text) {
    const Reply reply = asked_for_one_token(endpoint, text);
    if (const auto count = prompt_tokens_in(reply)) return *count;
    throw IoError(address_of(endpoint) +
                  " does not say how many tokens a prompt has (usage.prompt_tokens): " +
                  printable_line(reply.body.substr(0, 200)));
}

std::optional<Calibration> calibrated(const Endpoint& endpoint, const TokenCount& count) {
    if (prompt_tokens_in(asked_for_one_token(endpoint, "the")).value_or(0) < 1) return std::nullopt;
    if (count) return calibrate(count);
    return calibrate([&](const std::string& text) { return count_prompt_tokens(endpoint, text); });
}

std::vector<std::string> served_models(const Endpoint& endpoint) {
    const ModelList list = ask_for_models(endpoint, 10);
    if (list.state == ModelList::State::no_answer)
        throw IoError("GET " + without_user_info(server_url(endpoint.url)) + endpoint.models_path +
                      trouble_text(list.reply));
    return list.names;
}

}  // namespace servetune
