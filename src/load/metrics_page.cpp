// SPDX-License-Identifier: Apache-2.0
#include "metrics_page.hpp"

#include "servetune/value.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

constexpr std::string_view blanks_in_a_line = " \t\r";

std::string_view without_blanks_before(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(blanks_in_a_line), text.size()));
}

/// Removes `{a="b",c="d"}` from the front of `rest`, and keeps the values as they are written;
/// false: it is not closed, or is something else.
bool pass_labels(std::string_view& rest, std::map<std::string, std::string>* kept = nullptr) {
    rest.remove_prefix(1);
    for (;;) {
        rest = without_blanks_before(rest);
        if (rest.empty()) return false;
        if (rest.front() == ',') {
            rest.remove_prefix(1);
            continue;
        }
        if (rest.front() == '}') {
            rest.remove_prefix(1);
            return true;
        }
        const std::size_t equals = rest.find('=');
        if (equals == std::string_view::npos) return false;
        const std::string_view name = rest.substr(0, equals);
        rest = without_blanks_before(rest.substr(equals + 1));
        if (rest.empty() || rest.front() != '"') return false;
        std::size_t end = 1;
        while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
        if (end >= rest.size()) return false;
        if (kept != nullptr) kept->emplace(name, rest.substr(1, end - 1));
        rest.remove_prefix(end + 1);
    }
}

/// Past the largest one, additions of 1 are lost, and no server has counted so far.
bool is_count(const std::optional<double>& value) {
    constexpr double largest = 9'007'199'254'740'992;  // 2^53
    return value && *value >= 0 && *value <= largest;
}

/// Calls `use` with what follows the name on each line of a metric, until it answers false.
template <class Use>
void each_sample(std::string_view page, std::string_view metric, Use&& use) {
    while (!page.empty()) {
        const std::string_view line = page.substr(0, page.find('\n'));
        page.remove_prefix(std::min(page.size(), line.size() + 1));
        std::string_view rest = without_blanks_before(line);
        if (!rest.starts_with(metric)) continue;
        rest.remove_prefix(metric.size());
        if (rest.find_first_of("{ \t") != 0 && !rest.empty()) continue;  // of a longer name
        if (!use(without_blanks_before(rest))) return;
    }
}

}  // namespace

std::optional<double> metric_in(std::string_view page, std::string_view metric) {
    double sum = 0;
    std::size_t series = 0;
    bool countable = true;
    each_sample(page, metric, [&](std::string_view rest) {
        if (rest.starts_with('{') && !pass_labels(rest)) return true;  // no sample
        rest = without_blanks_before(rest);
        const auto value =
            real_of(rest.substr(0, rest.find_first_of(blanks_in_a_line)));  // a time may follow
        countable = is_count(value);
        sum += value.value_or(0);
        ++series;
        return countable;
    });
    return countable && series > 0 && std::isfinite(sum) ? std::optional(sum) : std::nullopt;
}

std::map<std::string, std::string> labels_in(std::string_view page, std::string_view metric) {
    std::map<std::string, std::string> labels;
    each_sample(page, metric, [&](std::string_view rest) {
        if (!rest.starts_with('{') || !pass_labels(rest, &labels)) labels.clear();
        return labels.empty();
    });
    return labels;
}

}  // namespace servetune
