// SPDX-License-Identifier: Apache-2.0
#include "budget_reader.hpp"

#include "key_reader.hpp"
#include "keys.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/study_file.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

std::string_view without_blanks(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

/// Minutes after midnight.
int read_time_of_day(const Yaml& node) {
    const std::string text = node.text();
    const auto colon = text.find(':');
    const auto hours = integer_of(std::string_view(text).substr(0, colon));
    const auto minutes = colon == std::string::npos
                             ? std::nullopt
                             : integer_of(std::string_view(text).substr(colon + 1));
    if (!hours || !minutes || *hours < 0 || *hours > 23 || *minutes < 0 || *minutes > 59)
        node.fail_wanted("a time of day such as \"07:00\"");
    return static_cast<int>(*hours * 60 + *minutes);
}

/// `30 trials`, `1 trial`, `30`.
std::optional<std::int64_t> trial_count_in(std::string_view text) {
    for (const std::string_view noun : {"trials", "trial"})
        if (text.ends_with(noun)) {
            text.remove_suffix(noun.size());
            break;
        }
    const auto count = integer_of(without_blanks(text));
    return count && *count > 0 ? count : std::nullopt;
}

/// `45min`, `2 h`.
std::optional<double> seconds_said_in(std::string_view text) {
    constexpr std::pair<std::string_view, double> units[] = {
        {"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}, {"d", 86400}};
    for (const auto& [unit, factor] : units) {
        if (!text.ends_with(unit)) continue;
        const auto number = real_of(without_blanks(text.substr(0, text.size() - unit.size())));
        if (number && *number > 0 && *number * factor <= longest_seconds) return *number * factor;
    }
    return std::nullopt;
}

void read_short_budget(const Yaml& node, StudyFile& study) {
    const std::string whole = node.text();
    bool has_trials = false;
    bool has_time = false;
    for (std::string_view rest = whole; !rest.empty();) {
        const auto comma = std::min(rest.find(','), rest.size());
        const std::string_view part = without_blanks(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        if (const auto trials = trial_count_in(part); trials && !has_trials) {
            study.budget.trials = static_cast<std::size_t>(*trials);
            has_trials = true;
        } else if (const auto seconds = seconds_said_in(part); seconds && !has_time) {
            study.budget.wall_clock_seconds = *seconds;
            has_time = true;
        } else
            node.fail_wanted(
                "a budget such as '30 trials', '45min', '60 trials, 8h' or {trials: 30, until: "
                "\"07:00\"}");
    }
    if (!has_trials && !has_time) node.fail_wanted("a budget such as '30 trials' or '45min'");
    if (!has_trials) study.budget.trials = trials_of_a_time;
}

}  // namespace

void read_budget(const Yaml& budget, StudyFile& study) {
    if (budget.is_scalar()) return read_short_budget(budget, study);
    budget.check_keys(keys::budget);
    read(budget, keys::budget.trials, study.budget.trials);
    read(budget, keys::budget.wall_clock, study.budget.wall_clock_seconds);
    if (const Yaml* until = budget.find(keys::budget.until))
        study.budget_until = read_time_of_day(*until);
    const bool has_time = budget.find(keys::budget.wall_clock) != nullptr || study.budget_until;
    if (has_time && budget.find(keys::budget.trials) == nullptr)
        study.budget.trials = trials_of_a_time;
    read(budget, keys::budget.serves, study.budget.serves_seconds);
    study.budget.when_not_worth_it = budget.find(keys::budget.serves) != nullptr;
}

}  // namespace servetune
