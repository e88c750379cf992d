// SPDX-License-Identifier: Apache-2.0
#include "planned_requests.hpp"

#include "base/whole_number.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace servetune {

void PlannedRequests::read(std::string_view between) {
    constexpr std::array<std::string_view, 7> names{
        "--num-prompts",  "--num-prompt",    "--max-requests", "--request-count",
        "--num-requests", "total_requests:", "num_prompts:"};
    nearest_.clear();
    for (const std::string_view name : names)
        for (auto at = between.find(name); at != std::string_view::npos;
             at = between.find(name, at + name.size())) {
            std::size_t begin = at + name.size();
            while (begin < between.size() && (between[begin] == ' ' || between[begin] == '='))
                ++begin;
            std::size_t end = begin;
            while (end < between.size() && end < begin + 9 &&
                   std::isdigit(static_cast<unsigned char>(between[end])) != 0)
                ++end;
            if (const auto number = real_of(between.substr(begin, end - begin));
                end > begin && number)
                nearest_.insert(*number);
        }
    all_.insert(nearest_.begin(), nearest_.end());
}

std::optional<double> PlannedRequests::of(const BenchmarkResult& result) const {
    const double successes = result.successful_requests.value_or(0);
    const auto whole = whole_number(successes);
    if (!whole || *whole < 0) return std::nullopt;  // no count: a text may say 1e308
    // The only command above says how many were sent, however few of them came back.
    if (nearest_.size() == 1 && *nearest_.begin() > successes) return *nearest_.begin();
    if (all_.contains(successes) || *whole % 10 == 0) return std::nullopt;
    const bool power_of_two = *whole > 0 && (*whole & (*whole - 1)) == 0;
    if (nearest_.size() != 1 && (*whole % 16 == 0 || power_of_two)) return std::nullopt;
    const auto more = all_.upper_bound(successes);
    return more != all_.end() && successes >= *more / 2 ? std::optional(*more) : std::nullopt;
}

}  // namespace servetune
