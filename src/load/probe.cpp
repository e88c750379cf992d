// SPDX-License-Identifier: Apache-2.0
#include "servetune/load/probe.hpp"

#include "http.hpp"
#include "request_body.hpp"
#include "servetune/base/error.hpp"

#include <nlohmann/json.hpp>

namespace servetune {

std::int64_t count_prompt_tokens(const Endpoint& endpoint, const std::string& text) {
    Endpoint whole = endpoint;
    whole.stream = false;
    const Reply reply = post(endpoint, path_of(endpoint.api), request_body(whole, {.text = text, .output_tokens = 1}, {}, false), 120);
    const std::string where = endpoint.url + path_of(endpoint.api);
    if (!reply.error.empty()) throw IoError(where + ": " + reply.error);
    if (reply.status != 200) throw IoError(where + " answered " + std::to_string(reply.status) + ": " + reply.body.substr(0, 500));
    const auto object = nlohmann::json::parse(reply.body, nullptr, false);
    if (const auto usage = object.is_object() ? object.find("usage") : object.end(); usage != object.end() && usage->is_object())
        if (const auto count = usage->find("prompt_tokens"); count != usage->end() && count->is_number_integer())
            return count->get<std::int64_t>();
    throw IoError(where + " does not say how many tokens a prompt has (usage.prompt_tokens): " + reply.body.substr(0, 200));
}

std::vector<std::string> served_models(const Endpoint& endpoint) {
    std::vector<std::string> result;
    const Reply reply = get(endpoint, "/v1/models", 10);
    const auto object = nlohmann::json::parse(reply.body, nullptr, false);
    if (reply.status != 200 || !object.is_object() || !object.contains("data") || !object["data"].is_array()) return result;
    for (const auto& model : object["data"])
        if (model.is_object() && model.contains("id") && model["id"].is_string()) result.push_back(model["id"].get<std::string>());
    return result;
}

}  // namespace servetune
