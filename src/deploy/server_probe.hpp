// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/load_generator.hpp"
#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What a server said when it was asked whether it serves.
struct ProbeAnswer {
    enum class State { not_yet, serves, failed, not_allowed } state = State::not_yet;
    FailureKind kind = FailureKind::other;  ///< of `failed`
    std::string
        message{};  ///< of `not_allowed` (401, 403) with what to do: asking again would not help
};

/// Asks a server of this engine whether it serves `endpoint.model`, and what it is.
class ServerProbe {
public:
    /// `give_up`: asked while an answer is waited for.
    ServerProbe(const Engine& engine, Endpoint endpoint, std::function<bool()> give_up)
        : engine_(engine), endpoint_(std::move(endpoint)), give_up_(std::move(give_up)) {}

    /// Ready path, list of models and, with `completion`, a first completion, as far as it gets.
    [[nodiscard]] ProbeAnswer ask(double timeout_seconds, bool completion = true) const;
    /// Why its list of models, if it has one, does not hold the model now: no answer, or another
    /// model. Empty: it does.
    [[nodiscard]] std::string why_not_listed() const;
    /// When the server says its process began; nothing where it does not tell.
    [[nodiscard]] std::optional<double> process_start_seconds() const;

private:
    [[nodiscard]] ProbeAnswer ask_models(double timeout_seconds) const;
    [[nodiscard]] ProbeAnswer ask_completion(double timeout_seconds) const;

    const Engine& engine_;
    Endpoint endpoint_;
    std::function<bool()> give_up_;
};

/// How an engine's server at `url` is spoken to, and one on this port of the loopback.
Endpoint endpoint_of(const Engine& engine, const std::string& url, const std::string& model);
Endpoint endpoint_of(const Engine& engine, int port, const std::string& model);

/// A flag that was asked for, and what the server tells of it.
struct EffectiveFlag {
    enum class State {
        not_told,  ///< nothing, what may mean anything, or what the engine chose itself
        same,
        perhaps_other,  ///< another text, fraction or share: `FlagsNotInForce::perhaps`
        other
    };
    std::string flag{};   ///< as the engine file spells it
    std::string asked{};  ///< empty: it stands alone
    State state = State::not_told;
    std::string told{};  ///< its value as JSON; empty: nothing

    [[nodiscard]] std::string text() const { return flag + (asked.empty() ? "" : " " + asked); }
};
/// Fills in what the server's `server_info` tells. False: the engine has none, or no answer came.
bool ask_flags_in_force(const Engine& engine, const Endpoint& endpoint,
                        std::vector<EffectiveFlag>& flags);

/// Flags that the server has otherwise, a line each.
struct FlagsNotInForce {
    std::vector<std::string> sure{};
    /// Texts may be other names, and fractions may be scaled: with data parallel attention SGLang
    /// 0.5.23 tells 0.3 of the schedule_conservativeness asked for, and EAGLE for NEXTN. Whole
    /// numbers may be shares: of chunked_prefill_size it then tells that of one replica.
    std::vector<std::string> perhaps{};
};
/// Of the flags in `argv`, by the server's `server_info`; empty where it does not tell.
FlagsNotInForce flags_not_in_force(const Engine& engine, const Endpoint& endpoint,
                                   const std::vector<std::string>& argv);

}  // namespace servetune
