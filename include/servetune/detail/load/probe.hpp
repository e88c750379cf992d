// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/calibration.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/error.hpp"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// The server cannot be asked, or answers what no load test can use.
class ServerError : public IoError {
public:
    using IoError::IoError;
};

/// What a server accepts and tells, found with one request of the load test's kind.
struct Handshake {
    /// Fields that we add by ourselves and that the server refuses (`Endpoint::refused_fields`),
    /// and the server's words for each.
    std::vector<std::string> refused_fields{}, reasons{};
    bool counts_tokens = true;  ///< its answers have `usage`, where that was asked for
};

/// Sends one request for one token with the very fields of a load test. A server that refuses it
/// (400, 422) is asked again without one, two and more of the fields that it could do without,
/// until it accepts; at most 8 requests. `max_tokens` is replaced by `max_completion_tokens`, the
/// other fields are left out. Throws ServerError with the cause where the server cannot be reached,
/// redirects, or refuses the request also without them. Trouble that passes by (429, 5xx, an answer
/// that breaks off) is left to the load test.
Handshake try_request(const Endpoint& endpoint, bool ignore_eos, const std::stop_token& stop = {});

/// The endpoint as the load test uses it after `handshake`: without the refused fields, and without
/// waiting for counts that do not come.
Endpoint as_agreed(Endpoint endpoint, const Handshake& handshake);

/// Asks for one token after `text` and says how many tokens the server counted for the request.
/// Throws ServerError with the cause when there is no answer, also because of `stop`, or no
/// `usage.prompt_tokens` in it.
std::int64_t count_prompt_tokens(const Endpoint& endpoint, const std::string& text,
                                 const std::stop_token& stop = {});

/// `calibrate` with this server; nothing where its answers have no `usage.prompt_tokens`, and after
/// `stop`. Throws as `calibrate` and `count_prompt_tokens`.
std::optional<Calibration> calibrated(const Endpoint& endpoint, const std::stop_token& stop = {});

/// The models that the server says it serves (`Endpoint::models_path`); empty where it answers and
/// has no such list. Throws ServerError with the cause where it cannot be reached or refuses to say
/// (connection, name, certificate, status, redirect).
std::vector<std::string> served_models(const Endpoint& endpoint);

}  // namespace servetune
