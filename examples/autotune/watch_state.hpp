// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/traffic_judge.hpp"
#include "report/watched_study.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// What a watch comes to.
enum class WatchVerdict { as_recommended, tune_again, slower, undecided };
std::string_view name_of(WatchVerdict verdict);

/// All that a watch has seen and judged: what text, JSON and metrics are written from.
struct WatchState {
    servetune::ServerWindow last{};   ///< between the last two readings
    servetune::ServerWindow whole{};  ///< since the watch began, without what restarts cut off
    std::size_t readings = 0, failed = 0, restarts = 0;
    std::vector<servetune::JudgedTrait> traits{};
    servetune::JudgedTrait speed{};

    [[nodiscard]] WatchVerdict verdict() const;
    /// One sentence for a person.
    [[nodiscard]] std::string verdict_text() const;
};

/// One line for the last window. `clock`: its time of day.
std::string window_line(const WatchState& state, std::string_view clock);
/// What the server did, how it compares, and the verdict.
std::string watch_text(const WatchState& state, const servetune::WatchedStudy& study);
/// The last window and the judgement, as docs/reference/json-output.md has them.
nlohmann::ordered_json window_json(const WatchState& state);
nlohmann::ordered_json verdict_json(const WatchState& state);
/// For Prometheus: the judgement, and how the readings went. The server's own figures are on its
/// own page.
std::string watch_metrics(const WatchState& state, const std::string& study);

}  // namespace autotune
