// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/objective.hpp"
#include "servetune/replay.hpp"
#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

/// What a person says of a table.
struct PlainTableRequest {
    std::string objective;  ///< `COLUMN`, `maximize:COLUMN` or `minimize:COLUMN`
    std::vector<std::string>
        parameters{};  ///< the columns that are parameters; empty: those left of the objective
};

/// A CSV table of configurations and figures as a table that can be replayed.
struct PlainTable {
    std::string csv;      ///< in the format of study/table.hpp
    MeasuredTable table;  ///< what `csv` holds
    Goal goal;
    std::vector<std::string> remarks{};  ///< what each column was taken for, and what is missing
};

/// Reads a CSV file (separator: comma, semicolon or tab, whichever the first line has most of)
/// whose rows are measurements. Rows with equal parameters are repeats. Without a list of
/// parameters these are the columns left of the objective but for those called like a metric, and
/// like a count of rows (`run`, `seed`); other columns with numbers are figures.
///
/// An objective without a number makes a failed row. A parameter without a value is left to the
/// engine. The request says the direction, or the objective is called like a metric. Throws
/// ParseError `name:line:` for what is broken.
PlainTable read_plain_table(std::string_view text, const std::string& name,
                            const PlainTableRequest& request);

/// The study that replays it: every row is looked at, and the first measured one is the default.
/// `table_file`: where `csv` is, as the study names it.
std::string study_of(const PlainTable& table, const std::string& study,
                     const std::string& table_file);

/// A value for `yaml_document`.
inline nlohmann::ordered_json value_tree(const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    if (const auto* number = std::get_if<double>(&value)) return *number;
    if (const auto* truth = std::get_if<bool>(&value)) return *truth;
    if (is_unset(value)) return nullptr;
    return text_of(value);
}

/// `{choice: [...], ordered: true, default: ...}` of a parameter; numbers are ordered.
inline nlohmann::ordered_json choice_tree(std::vector<Value> values,
                                          const std::optional<Value>& start) {
    const bool numbers = all_of(
        values, [](const Value& value) { return is_unset(value) || number_of(value).has_value(); });
    if (numbers)
        stable_sort(values, [](const Value& a, const Value& b) {
            return number_of(a).value_or(-INFINITY) < number_of(b).value_or(-INFINITY);
        });
    nlohmann::ordered_json tree;
    for (const Value& value : values) tree["choice"].push_back(value_tree(value));
    if (numbers) tree["ordered"] = true;
    if (start) tree["default"] = value_tree(*start);
    return tree;
}

}  // namespace servetune
