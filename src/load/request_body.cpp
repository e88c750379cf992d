// SPDX-License-Identifier: Apache-2.0
#include "request_body.hpp"

#include "base/nesting.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

namespace servetune {

bool takes_field(const Endpoint& endpoint, const std::string& field) {
    return !contains(endpoint.refused_fields, field);
}

std::string path_of(const Endpoint& endpoint) {
    if (!endpoint.answers_path.empty()) return endpoint.answers_path;
    return endpoint.api == Endpoint::Api::chat ? "/v1/chat/completions" : "/v1/completions";
}

std::string request_body(const Endpoint& endpoint, const PlannedRequest& request,
                         const std::vector<std::string>& turns, bool ignore_eos) {
    using OrderedJson = nlohmann::ordered_json;
    OrderedJson object{{"model", endpoint.model}};
    if (endpoint.api == Endpoint::Api::chat) {
        OrderedJson messages = OrderedJson::array();
        for (std::size_t i = 0; i < turns.size(); ++i)
            messages.push_back(
                {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", turns[i]}});
        messages.push_back({{"role", "user"}, {"content", request.text}});
        object["messages"] = std::move(messages);
    } else {
        std::string prompt;
        for (const std::string& turn : turns) prompt += turn + "\n";
        object["prompt"] = prompt + request.text;
    }
    if (request.output_tokens > 0)
        object[takes_field(endpoint, "max_tokens") ? "max_tokens" : "max_completion_tokens"] =
            request.output_tokens;
    object["stream"] = endpoint.stream;
    if (endpoint.stream && endpoint.usage && takes_field(endpoint, "stream_options"))
        object["stream_options"] = {{"include_usage", true}};
    if (ignore_eos && takes_field(endpoint, "ignore_eos")) object["ignore_eos"] = true;
    if (!endpoint.extra_body.empty()) {
        const auto extra = shallow_json<OrderedJson>(endpoint.extra_body);
        if (!extra.is_object())
            throw UsageError(
                "the extra body of requests is a JSON object such as {\"temperature\": 0}, got '" +
                endpoint.extra_body + "'");
        object.update(extra);
    }
    return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace servetune
