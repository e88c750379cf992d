// SPDX-License-Identifier: Apache-2.0
#include "model_list.hpp"
#include "base/nesting.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace servetune {

ModelList ask_for_models(const Endpoint& endpoint, double timeout_seconds, const GiveUp& give_up) {
    using State = ModelList::State;
    ModelList result;
    result.reply = get(endpoint, endpoint.models_path, timeout_seconds, give_up);
    const long status = result.reply.status;
    if (!result.reply.error.empty()) return result;
    if (status == 404 || status == 405 || status == 501) result.state = State::no_such_path;
    if (status != 200) return result;
    result.state = State::not_a_list;
    const auto object = shallow_json<nlohmann::json>(result.reply.body);
    const auto data = object.is_object() ? object.find("data") : object.end();
    if (!object.is_object() || data == object.end() || !data->is_array()) return result;
    result.state = State::listed;
    for (const auto& model : *data)
        if (const auto id = model.is_object() ? model.find("id") : model.end();
            model.is_object() && id != model.end() && id->is_string())
            result.names.push_back(id->get<std::string>());
    return result;
}

}  // namespace servetune
