// SPDX-License-Identifier: Apache-2.0
// Tables of measurements that others made.
#include "base/files.hpp"
#include "study/table.hpp"
#include "table_belief.hpp"
#include "table_choices.hpp"
#include "task.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

namespace servetune::convergence {
namespace {

/// The choice's rows, with the columns that its task needs, as `parse_table` reads them. A failure
/// that this project has no name for is `other`.
std::string rows_of(const TableChoice& choice, const std::filesystem::path& file) {
    const std::vector<CsvRow> rows = parse_csv(read_file(file), file.string());
    const std::vector<std::string>& header = rows.at(0).cells;
    const auto status =
        std::size_t(std::find(header.begin(), header.end(), "status") - header.begin());
    const auto wanted = [&](const std::string& metric) {
        const auto bounds = [&](const Limit& limit) { return limit.metric == metric; };
        const std::vector<Limit>& limits = choice.objective.limits;
        return metric == choice.objective.leading().metric || any_of(limits, bounds);
    };
    std::string text;
    for (const CsvRow& row : rows) {
        const bool is_header = &row == &rows.front();
        std::vector<std::string> cells;
        bool fits = row.cells.size() == header.size();
        for (std::size_t i = 0; fits && i < header.size(); ++i) {
            const auto* fixed = entry_in(choice.fixed, header[i]);
            if (fixed != nullptr) {
                const std::string& cell = *fixed;
                fits = is_header || row.cells[i] == cell ||
                       (cell.ends_with('/') && row.cells[i].starts_with(cell));
            } else if (i < status) cells.push_back(row.cells[i]);
            else if (i == status)
                cells.push_back(is_header || row.cells[i] == "ok" ||
                                        named_in(failure_kinds, row.cells[i])
                                    ? row.cells[i]
                                    : "other");
            else if (wanted(header[i])) cells.push_back(row.cells[i]);
        }
        if (fits) text += csv_line(cells);
    }
    return text;
}

/// Of repetitions that gave numbers the mean of each metric; a failure where none did.
Outcome averaged(const std::vector<Outcome>& repetitions) {
    Measurement mean;
    double count = 0;
    for (const Outcome& outcome : repetitions)
        if (const auto* measurement = std::get_if<Measurement>(&outcome)) {
            ++count;
            for (const auto& [name, metric] : measurement->metrics)
                mean.metrics[name].value += metric.value;
        }
    if (count == 0) return repetitions.front();
    for (auto& [name, metric] : mean.metrics) metric.value /= count;
    return mean;
}

/// The pairs of levels that occur, where not all do, and the rules.
std::vector<Constraint> rules_for(const Allow& rows, const std::vector<std::string>& rules) {
    std::vector<Constraint> constraints;
    for (std::size_t i = 0; i < rows.names.size(); ++i)
        for (std::size_t j = i + 1; j < rows.names.size(); ++j) {
            Allow pairs{{rows.names[i], rows.names[j]}, {}, "only these were measured"};
            std::set<Value> first;
            std::set<Value> second;
            for (const Allow::Row& row : rows.rows) {
                pairs.rows.insert({row[i], row[j]});
                first.insert(*row[i]);
                second.insert(*row[j]);
            }
            if (pairs.rows.size() < first.size() * second.size())
                constraints.emplace_back(std::move(pairs));
        }
    for (const std::string& rule : rules)
        constraints.push_back(require(rule, "only these were measured"));
    return constraints;
}

Task::Definition task_of(const TableChoice& choice, const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / (choice.table + ".csv");
    const MeasuredTable table = parse_table(rows_of(choice, file), file.string());
    Task::Definition task;
    task.name = choice.task;
    task.what = choice.what;
    task.objective = choice.objective;
    task.success_share = choice.success_share;
    Allow allow{{}, {}, "only these were measured"};
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < table.parameters.size(); ++i) {
        std::set<Value> values;
        for (const MeasuredTable::Row& row : table.rows)
            values.insert(value_of(row.cells[i].value_or("")));
        if (values.size() < 2) continue;
        const bool none = values.erase(Unset{}) > 0;  // no flag
        const bool numbers =
            all_of(values, [](const Value& value) { return number_of(value).has_value(); });
        columns.push_back(i);
        allow.names.push_back(table.parameters[i]);
        Parameter parameter =
            Parameter::choice(table.parameters[i], {values.begin(), values.end()}, numbers);
        task.parameters.push_back(none ? std::move(parameter).or_unset() : std::move(parameter));
    }
    std::map<Configuration, std::vector<Outcome>> measured;
    std::vector<std::pair<Configuration, TableCells>> cells;
    for (const MeasuredTable::Row& row : table.rows) {
        Allow::Row allowed;
        Assignment assignment;
        for (const std::size_t i : columns) {
            const Value value = value_of(row.cells[i].value_or(""));
            allowed.emplace_back(value);
            assignment.emplace(table.parameters[i], value);
        }
        const auto* measurement = std::get_if<Measurement>(&row.outcome);
        if (measurement != nullptr &&
            !measurement->metrics.contains(choice.objective.leading().metric))
            continue;
        allow.rows.insert(std::move(allowed));
        cells.emplace_back(Configuration::of(assignment), choice.fixed);
        for (std::size_t i = 0; i < table.parameters.size(); ++i)
            cells.back().second[table.parameters[i]] = row.cells[i].value_or("");
        measured[cells.back().first].push_back(row.outcome);
    }
    auto truth = std::make_shared<std::map<Configuration, Outcome>>();
    for (const auto& [configuration, repetitions] : measured)
        truth->emplace(configuration, averaged(repetitions));
    task.belief = belief_of(choice, cells);
    task.known_before = choice.known_before;
    if (choice.rules) task.constraints = rules_for(allow, *choice.rules);
    else task.constraints = {std::move(allow)};
    const SearchSpace space(task.parameters, task.constraints);
    if (const double size = FeasibleSet(space).size(); size != double(truth->size()))
        throw ParseError(file.string() + ": its rules leave " + text_of(size) +
                         " configurations, it has " + std::to_string(truth->size()));
    for (const auto& [configuration, outcome] : *truth)
        if (!space.feasible(configuration))
            throw ParseError(file.string() + ": its rules forbid the row " + configuration.text());
    task.truth = [truth](const Configuration& configuration) { return truth->at(configuration); };
    for (const auto& [configuration, outcome] : *truth) {
        task.rows.push_back({task.rows.size(), configuration});
        task.rows.back().outcome = outcome;
    }
    // The first row is another study's default: one that ran.
    std::stable_partition(task.rows.begin(), task.rows.end(), [](const Trial& row) {
        return std::holds_alternative<Measurement>(*row.outcome);
    });
    return task;
}

/// A person has a few earlier studies, not all.
constexpr std::size_t most_earlier = 3;

}  // namespace

std::vector<Task::Definition> table_tasks(const std::filesystem::path& folder) {
    std::vector<Task::Definition> result;
    std::vector<std::string> kinds;
    for (const TableChoice& choice : table_choices())
        if (std::filesystem::exists(folder / (choice.table + ".csv"))) {
            result.push_back(task_of(choice, folder));
            kinds.push_back(choice.kind);
        }
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::vector<std::size_t> alike;
        for (std::size_t j = 0; j < result.size(); ++j)
            if (j != i && kinds[j] == kinds[i] && !kinds[i].empty()) alike.push_back(j);
        stable_sort(alike, [&](std::size_t a, std::size_t b) {
            return std::max(a, i) - std::min(a, i) < std::max(b, i) - std::min(b, i);
        });
        if (alike.size() > most_earlier) alike.resize(most_earlier);
        for (const std::size_t j : alike)
            result[i].earlier.push_back({"the table of " + result[j].name, result[j].rows});
    }
    return result;
}

}  // namespace servetune::convergence
