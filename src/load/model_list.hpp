// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <string>
#include <vector>

namespace servetune {

/// What a server answers to a GET of `Endpoint::models_path`, in the form of OpenAI's interface:
/// `{"data": [{"id": NAME}, ...]}`.
struct ModelList {
    enum class State {
        listed,        ///< `names` has the models, perhaps none
        no_such_path,  ///< 404, 405, 501: this server has no list of models
        not_a_list,    ///< 200, with something else; `reply` has it
        no_answer      ///< no connection, or another status; `reply` has the reason
    } state = State::no_answer;
    std::vector<std::string> names{};
    Reply reply{};
};

/// Asks for the list once and waits `timeout_seconds` at most.
ModelList ask_for_models(const Endpoint& endpoint, double timeout_seconds,
                         const GiveUp& give_up = {});

}  // namespace servetune
