// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"
#include "servetune/study.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace autotune {

/// Bytes of a line of ask and tell; a trial with a thousand metrics has some 50 thousand.
inline constexpr std::size_t longest_line = 1 << 20;

/// Ask and tell over lines of JSON (docs/reference/your-own-program.md): answers each line, in
/// order.
class AskTellConversation {
public:
    /// All three outlive it.
    AskTellConversation(const StudySetup& setup, const Budget& budget, Journal& journal);

    /// Throws ParseError, SpaceError and UsageError for a bad line, IoError when the journal cannot
    /// go on.
    nlohmann::ordered_json answer(const std::string& line);

private:
    nlohmann::ordered_json ask();
    nlohmann::ordered_json offer(const Trial& trial);
    nlohmann::ordered_json tell(const nlohmann::ordered_json& told);
    nlohmann::ordered_json propose(const nlohmann::ordered_json& proposed);
    nlohmann::ordered_json suggest(const nlohmann::ordered_json& suggested);
    [[nodiscard]] nlohmann::ordered_json recommendation() const;
    void check_feasible(const Configuration& configuration) const;
    std::uint64_t trial_of(Configuration configuration);

    const StudySetup& setup_;
    const Budget& budget_;
    Study study_;
};

}  // namespace autotune
