// SPDX-License-Identifier: Apache-2.0
#include "import.hpp"

#include "base/lower_case.hpp"
#include "repeats.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "workload_groups.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace servetune {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* separator) {
    std::string result;
    for (const std::string& part : parts) result += (result.empty() ? "" : separator) + part;
    return result;
}

std::map<std::string, double> result_figures(const BenchmarkResult& result) {
    std::map<std::string, double> found;
    for_each_figure(result, [&](const std::string& name, const std::optional<double>& field) {
        if (field) found[name] = *field;
    });
    return found;
}

/// The metrics that any row has, in the order of the figures; `success_ratio` after them.
std::vector<std::string> columns(const std::vector<std::map<std::string, double>>& rows) {
    std::vector<std::string> result;
    const auto used = [&](const std::string& name) {
        return std::any_of(rows.begin(), rows.end(),
                           [&](const auto& row) { return row.contains(name); });
    };
    const BenchmarkResult names_only;
    for_each_figure(names_only, [&](const std::string& name, const std::optional<double>&) {
        if (used(name)) result.push_back(name);
    });
    if (used("success_ratio")) result.emplace_back("success_ratio");
    return result;
}

void append_cells(std::vector<std::string>& cells, const std::map<std::string, double>& row,
                  const std::vector<std::string>& metrics) {
    for (const std::string& name : metrics) {
        const auto found = row.find(name);
        cells.push_back(found == row.end() ? "" : text_of(found->second));
    }
}

/// The workload that a label of the block names.
const Workload* named_workload(const PublishedResult& result,
                               const std::vector<Workload>& workloads) {
    for (const std::string& label : result.labels)
        for (const Workload& workload : workloads)
            if (std::find(workload.printed_as.begin(), workload.printed_as.end(), label) !=
                workload.printed_as.end())
                return &workload;
    return nullptr;
}

/// The only one without a printed name, to which blocks without a known label belong.
const Workload* workload_without_name(const std::vector<Workload>& workloads) {
    const auto unnamed = [](const Workload& workload) { return workload.printed_as.empty(); };
    if (std::count_if(workloads.begin(), workloads.end(), unnamed) != 1) return nullptr;
    return &*std::find_if(workloads.begin(), workloads.end(), unnamed);
}

/// A command that crashed has no workload, so it is the first's; one that failed under a load is of
/// the only one with that load. Nothing: none is, several are, or the load had more to it than its
/// size.
const Workload* workload_of_failure(const PublishedResult& result,
                                    const std::vector<Workload>& workloads) {
    const Work failed(result);
    if (!failed.rate && !failed.in_flight && result.unread.empty())
        return workloads.empty() ? nullptr : &workloads.front();
    if (!result.unread.empty() && workloads.size() != 1) return nullptr;
    const auto fits =
        [&](const Workload& workload) {  // a rate with a bound is written as the bound
            const Arrival& arrival = workload.arrival;
            if (failed.in_flight)
                return arrival.kind == Arrival::Kind::concurrency &&
                       static_cast<double>(arrival.in_flight) == *failed.in_flight;
            return !failed.rate || (arrival.kind == Arrival::Kind::rate &&
                                    arrival.requests_per_second == *failed.rate);
        };
    if (std::count_if(workloads.begin(), workloads.end(), fits) != 1) return nullptr;
    return &*std::find_if(workloads.begin(), workloads.end(), fits);
}

/// Blocks of several workloads are not one workload's: why none of those without a known label is
/// taken for `unnamed`; empty where all can be.
std::string why_several(const std::vector<const PublishedResult*>& without_label,
                        const Workload& unnamed) {
    for (const PublishedResult* result : without_label) {
        const PublishedResult* first = without_label.front();
        if (const Work one(first->result), other(result->result); !one.same(other))
            return "blocks without a known label are of several workloads (block " +
                   std::to_string(first->index) + ": " + one.text() + "; block " +
                   std::to_string(result->index) + ": " + other.text() +
                   "); say what the document calls the blocks of '" + unnamed.name +
                   "' (printed_as)";
    }
    return "";
}

/// What a row without a study says of its command.
std::string note_of(const PublishedResult& result) {
    if (!result.not_recognised.empty()) return "command not recognised: " + result.not_recognised;
    return result.arguments_unknown ? "command not in the file" : "";
}

}  // namespace

ReadCommand read_command(const PublishedResult& result, const Composition& composition,
                         const CommandReader& commands, const std::string& model) {
    if (!result.not_recognised.empty())
        return {{}, "command not recognised: " + result.not_recognised};
    if (result.arguments_unknown) return {{}, "the file does not say how the engine was started"};
    const std::vector<std::string> words = shell_words(result.arguments);
    ReadCommand best;
    bool found = false;
    std::vector<std::string> fitting;  // engines that know all of the flags
    for (const Engine& engine : composition.engines()) {
        if (!result.engine.empty() && result.engine != lower_case(engine.name)) continue;
        const Composition::Parsed parsed =
            composition.parse(commands.read({words}, engine.name), model);
        if (parsed.engine != nullptr && parsed.unknown.empty())
            fitting.push_back(parsed.engine->name);
        if (!found || (parsed.unknown.empty() && !best.parsed.unknown.empty()))
            best.parsed = parsed;
        found = true;
    }
    if (!found) return {composition.parse(words, model), "the study has no " + result.engine};
    fitting.erase(std::unique(fitting.begin(), fitting.end()), fitting.end());
    if (!best.parsed.unknown.empty())
        best.why_not = "the study does not know " + joined(best.parsed.unknown, ", ");
    else if (best.parsed.engine == nullptr) best.why_not = "no engine of the study starts so";
    else if (fitting.size() > 1)
        best.why_not = "flags alone, which " + joined(fitting, " and ") +
                       " both have, and no heading says whose they are";
    return best;
}

Imported import_for_study(const std::vector<PublishedResult>& results, const StudyFile& study) {
    std::vector<Workload> workloads = study.workloads;
    workloads.insert(workloads.end(), study.report_workloads.begin(), study.report_workloads.end());
    const SearchSpace space(study.composition->parameters());
    std::vector<std::string> names;
    for (const Parameter& parameter : space.parameters())
        if (parameter.continuous() || parameter.level_count() > 1) names.push_back(parameter.name);

    struct Row : PlacedResult {
        std::map<std::string, double> metrics{};
    };
    Imported imported;
    std::vector<Row> rows;
    const CommandReader commands(study.composition->engines(), study.source.search_spaces);
    std::vector<ReadCommand> read;  // one a result
    for (const PublishedResult& result : results)
        read.push_back(read_command(result, *study.composition, commands, study.model));
    const Workload* unnamed = workload_without_name(workloads);
    std::vector<const PublishedResult*> without_label;  // of the study's engines
    for (std::size_t i = 0; i < results.size(); ++i)
        if (read[i].why_not.empty() && results[i].failure.empty() &&
            named_workload(results[i], workloads) == nullptr)
            without_label.push_back(&results[i]);
    const std::string several = unnamed == nullptr ? "" : why_several(without_label, *unnamed);
    for (std::size_t i = 0; i < results.size(); ++i) {
        const PublishedResult& result = results[i];
        const auto& parsed = read[i].parsed;
        std::string why_not = read[i].why_not;
        const Workload* workload = named_workload(result, workloads);
        if (workload == nullptr && several.empty()) workload = unnamed;
        if (!result.failure.empty() && workload == nullptr)
            workload = workload_of_failure(result, workloads);
        if (!why_not.empty()) imported.unplaced.push_back({result, why_not});
        else if (workload == nullptr)
            imported.unplaced.push_back(
                {result, !result.failure.empty() ? "it failed under a load that is not that of "
                                                   "exactly one workload of the study (" +
                                                       Work(result).text() + ")"
                         : several.empty()
                             ? "no workload is printed as '" + joined(result.labels, "' or '") + "'"
                             : several});
        else {
            Row row{{&result, workload->name, space.completed(parsed.values)},
                    result_figures(result.result)};
            const auto& successful = result.result.successful_requests;
            const auto& failed = result.result.failed_requests;
            const double requested = result.result.requested_requests
                                         ? *result.result.requested_requests
                                     : successful && failed    ? *successful + *failed
                                     : result.planned_requests ? *result.planned_requests
                                     : workload->requests ? static_cast<double>(*workload->requests)
                                                          : 0;
            if (successful && requested > 0) row.metrics["success_ratio"] = *successful / requested;
            rows.push_back(std::move(row));
        }
    }
    const std::vector<std::string> why_mixed = why_no_repeat({rows.begin(), rows.end()});
    std::vector<Row> kept;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (why_mixed[i].empty()) kept.push_back(std::move(rows[i]));
        else imported.unplaced.push_back({*rows[i].source, why_mixed[i]});
    }
    rows = std::move(kept);
    imported.rows = rows.size();
    imported.remarks = what_repeats_differ_in({rows.begin(), rows.end()});
    std::vector<std::map<std::string, double>> all;
    for (const Row& row : rows) all.push_back(row.metrics);
    const std::vector<std::string> metrics = columns(all);
    const bool any_failed = std::any_of(
        rows.begin(), rows.end(), [](const Row& row) { return !row.source->failure.empty(); });

    std::vector<std::string> header{"block", "section", "workload"};
    header.insert(header.end(), names.begin(), names.end());
    header.emplace_back("status");
    header.insert(header.end(), metrics.begin(), metrics.end());
    if (any_failed) header.emplace_back("message");
    header.insert(header.end(), {"arguments", "note"});
    imported.csv = csv_line(header);
    std::map<std::map<std::string, double>, std::size_t>
        first_with;  // figures -> the first block that has them
    for (const Row& row : rows) {
        std::vector<std::string> cells{
            std::to_string(row.source->index),
            row.source->sections.empty() ? "" : printable(row.source->sections.back()),
            row.workload};
        for (const std::string& name : names) {
            const Value* value = row.configuration.find(name);
            cells.push_back(value == nullptr ? "" : text_of(*value));
        }
        cells.push_back(row.source->failure.empty() ? "ok" : row.source->failure);
        append_cells(cells, row.metrics, metrics);
        if (any_failed) cells.push_back(printable(row.source->failure_message));
        std::string note;
        auto figures = result_figures(row.source->result);
        if (const auto found = first_with.find(figures);
            found != first_with.end() && row.source->failure.empty())
            note = "printed twice: the same block as " + std::to_string(found->second);
        else first_with.emplace(std::move(figures), row.source->index);
        cells.insert(cells.end(), {printable(row.source->arguments), note});
        imported.csv += csv_line(cells);
    }
    return imported;
}

std::string csv_of(const std::vector<PublishedResult>& results) {
    std::vector<std::map<std::string, double>> rows;
    for (const PublishedResult& result : results) rows.push_back(result_figures(result.result));
    const std::vector<std::string> metrics = columns(rows);
    // What a block or a file says of itself, where any does.
    std::vector<std::pair<const char*, std::string PublishedResult::*>> origins{
        {"tool", &PublishedResult::tool},
        {"tool_version", &PublishedResult::tool_version},
        {"model", &PublishedResult::model},
        {"dataset", &PublishedResult::dataset},
        {"date", &PublishedResult::date}};
    std::erase_if(origins, [&](const auto& origin) {
        return std::all_of(results.begin(), results.end(), [&](const PublishedResult& result) {
            return (result.*origin.second).empty();
        });
    });
    std::vector<std::string> header{"block", "section", "label"};
    for (const auto& [name, field] : origins) header.emplace_back(name);
    header.emplace_back("status");
    header.insert(header.end(), metrics.begin(), metrics.end());
    const bool any_failed =
        std::any_of(results.begin(), results.end(),
                    [](const PublishedResult& result) { return !result.failure.empty(); });
    if (any_failed) header.emplace_back("message");
    header.insert(header.end(), {"arguments", "note"});
    std::string csv = csv_line(header);
    for (std::size_t i = 0; i < results.size(); ++i) {
        std::vector<std::string> cells{
            std::to_string(results[i].index), printable(joined(results[i].sections, " / ")),
            results[i].labels.empty() ? "" : printable(results[i].labels.front())};
        for (const auto& [name, field] : origins) cells.push_back(printable(results[i].*field));
        cells.push_back(results[i].failure.empty() ? "ok" : results[i].failure);
        append_cells(cells, rows[i], metrics);
        if (any_failed) cells.push_back(printable(results[i].failure_message));
        cells.insert(cells.end(),
                     {printable(results[i].arguments), printable(note_of(results[i]))});
        csv += csv_line(cells);
    }
    return csv;
}

}  // namespace servetune
