// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which 90 % intervals predictions have, by rows that they were not fitted to.

#include "engine/version.hpp"
#include "search/output_scale.hpp"
#include "servetune/detail/perf/engine_traits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

inline constexpr std::array<std::vector<double> CostCheck::*, 3> checked_figures{
    &CostCheck::output_tokens_per_second, &CostCheck::time_per_output_token,
    &CostCheck::time_to_first_token};

/// ln(measured / predicted) of one row's figures, predicted without the rows of its model.
struct Residual {
    std::string version{}, chip{}, architecture{}, family{}, model{}, configuration{};
    std::array<std::optional<double>, 3> logs{};
    std::string setup{};  ///< source, version, chip, model and lengths
};

inline bool within_range(const std::vector<double>& range, double log) {
    return !range.empty() && std::log(range.front()) <= log && log <= std::log(range.back());
}

/// The 5 % and 95 % quantiles of one figure, a model weighing as much as the root of its number of
/// rows, drawn apart by 1 + 1 / models: of a few models nobody knows how the next one differs. 1
/// is within.
inline std::vector<double> range_of(const std::vector<const Residual*>& rows, std::size_t figure) {
    std::map<std::string, double> per_model;
    for (const Residual* row : rows)
        if (row->logs[figure]) per_model[row->model] += 1;
    std::vector<std::pair<double, double>> weighted;
    double total = 0;
    for (const Residual* row : rows)
        if (row->logs[figure]) {
            weighted.emplace_back(*row->logs[figure], 1 / std::sqrt(per_model.at(row->model)));
            total += weighted.back().second;
        }
    if (weighted.empty()) return {};
    sort(weighted);
    const auto quantile = [&](double share) {
        double below = 0;
        for (const auto& [log, weight] : weighted)
            if ((below += weight) >= share * total) return log;
        return weighted.back().first;
    };
    const double middle = quantile(0.5);
    const double apart = 1 + 1 / double(per_model.size());
    return {std::exp(std::min(0.0, middle + (quantile(0.05) - middle) * apart)),
            std::exp(std::max(0.0, middle + (quantile(0.95) - middle) * apart))};
}

/// Standard deviation of tokens/s around the median of the setup, by the median of what is off: of
/// setups of three rows, each without the row nearest to its median, which is off by nothing.
/// Nothing: of fewer than ten rows.
inline double within_setups(const std::vector<const Residual*>& rows) {
    std::map<std::string, std::vector<double>> setups;
    for (const Residual* row : rows)
        if (row->logs[0]) setups[row->setup].push_back(*row->logs[0]);
    std::vector<double> off;
    std::size_t count = 0;
    for (auto& [setup, logs] : setups) {
        if (logs.size() < 3) continue;
        count += logs.size();
        const double middle = median_of(logs);
        for (double& log : logs) log = std::abs(log - middle);
        sort(logs);
        off.insert(off.end(), logs.begin() + 1, logs.end());
    }
    constexpr double of_normal = 1.4826;
    return count < 10 ? 0 : of_normal * median_of(std::move(off));
}

/// Groups from narrow to wide: chip and kind of model with the versions that were run, without
/// them, the architecture and kind of model, the kind of model, all. A group needs ten rows of
/// three configurations of two models, and other rows than the next wider one.
inline std::vector<CostCheck> checks_of(const std::vector<Residual>& rows) {
    struct Group {
        CostCheck check{};
        std::vector<const Residual*> rows{};
    };
    const auto release = [](const Residual& row) {
        const std::size_t dot = row.version.find('.');
        return row.version.substr(0, row.version.find_first_of(".p", dot + 1));
    };
    std::vector<CostCheck> result;
    std::vector<const Residual*> firsts;  // a row of each
    std::vector<std::map<std::string, Group>> levels(5);
    const auto keys_of = [&](const Residual& row) {
        return std::array<std::string, 5>{row.chip + " " + row.family + " " + release(row),
                                          row.chip + " " + row.family,
                                          row.architecture + " " + row.family, row.family, ""};
    };
    for (const Residual& row : rows) {
        const auto keys = keys_of(row);
        for (std::size_t level = row.version.empty() ? 1 : 0; level < keys.size(); ++level) {
            Group& group = levels[level][keys[level]];
            group.rows.push_back(&row);
            if (level == 0) group.check.since = group.check.until = release(row);
            if (level < 2) group.check.hardware = row.chip;
            if (level == 2) group.check.hardware = row.architecture;
            if (level < 4) group.check.models = row.family;
        }
    }
    for (std::size_t level = 0; level < levels.size(); ++level)
        for (auto& [key, group] : levels[level]) {
            std::set<std::string> models;
            std::set<std::string> configurations;
            for (const Residual* row : group.rows) {
                models.insert(row->model.substr(row->model.find('/') + 1));
                configurations.insert(row->configuration);
            }
            const bool last = level + 1 == levels.size();
            const bool alone =
                !last &&
                levels[level + 1].at(keys_of(*group.rows.front())[level + 1]).rows.size() ==
                    group.rows.size();
            if (!last &&
                (group.rows.size() < 10 || configurations.size() < 3 || models.size() < 2 || alone))
                continue;
            group.check.rows = group.rows.size();
            group.check.of = fmt::format("{}", fmt::join(models, ", "));
            for (std::size_t figure = 0; figure < checked_figures.size(); ++figure)
                group.check.*checked_figures[figure] = range_of(group.rows, figure);
            const auto keys = keys_of(*group.rows.front());
            // Of a chip without rows nobody knows more than of those with them.
            for (std::size_t i = 0; i < result.size(); ++i)
                for (const auto figure : checked_figures)
                    if (result[i].since.empty() && keys_of(*firsts[i])[level] == keys[level] &&
                        !(result[i].*figure).empty() && !(group.check.*figure).empty()) {
                        auto& range = group.check.*figure;
                        range.front() = std::min(range.front(), (result[i].*figure).front());
                        range.back() = std::max(range.back(), (result[i].*figure).back());
                    }
            for (std::size_t wider = level; wider < keys.size() && !(group.check.within > 0);
                 ++wider)
                group.check.within = within_setups(levels[wider].at(keys[wider]).rows);
            result.push_back(group.check);
            firsts.push_back(group.rows.front());
        }
    return result;
}

inline bool is_of(const CostCheck& check, const Residual& row) {
    return version_within(row.version, check.since, check.until) &&
           (check.hardware.empty() || check.hardware == row.chip ||
            check.hardware == row.architecture) &&
           (check.models.empty() || check.models == row.family);
}

/// Of each figure, the share of rows within intervals made from rows of the other models.
inline std::array<double, 3> coverage(const std::vector<Residual>& rows) {
    std::map<std::string, std::vector<CostCheck>> without;
    std::array<std::size_t, 3> within{};
    std::array<std::size_t, 3> all{};
    for (const Residual& row : rows) {
        auto [checks, is_new] = without.try_emplace(row.model);
        if (is_new) {
            std::vector<Residual> others;
            std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
                         [&](const Residual& other) { return other.model != row.model; });
            checks->second = checks_of(others);
        }
        const auto check =
            find_if(checks->second, [&](const CostCheck& one) { return is_of(one, row); });
        if (check == checks->second.end()) continue;
        for (std::size_t figure = 0; figure < all.size(); ++figure)
            if (row.logs[figure]) {
                ++all[figure];
                within[figure] +=
                    within_range((*check).*checked_figures[figure], *row.logs[figure]);
            }
    }
    std::array<double, 3> result{};
    for (std::size_t figure = 0; figure < all.size(); ++figure)
        result[figure] = double(within[figure]) / double(std::max<std::size_t>(1, all[figure]));
    return result;
}

/// As a line of traits has it.
inline std::string text_of(const CostCheck& check) {
    std::string text = "{";
    if (!check.since.empty())
        text += fmt::format("since: \"{}\", until: \"{}\", ", check.since, check.until);
    if (!check.hardware.empty()) text += "hardware: " + check.hardware + ", ";
    if (!check.models.empty()) text += "models: " + check.models + ", ";
    text += fmt::format("rows: {}, of: \"{}\"", check.rows, check.of);
    constexpr std::array<const char*, 3> names{"output_tokens_per_second", "time_per_output_token",
                                               "time_to_first_token"};
    for (std::size_t figure = 0; figure < names.size(); ++figure)
        if (const auto& range = check.*checked_figures[figure]; !range.empty())
            text += fmt::format(", {}: [{:.3g}, {:.3g}]", names[figure], range[0], range[1]);
    if (check.within > 0) text += fmt::format(", within: {:.2g}", check.within);
    return text + "}";
}

}  // namespace servetune
