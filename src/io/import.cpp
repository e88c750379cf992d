// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/import.hpp"

#include "servetune/base/error.hpp"
#include "servetune/io/table.hpp"

#include <algorithm>
#include <map>

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
        return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.contains(name); });
    };
    const BenchmarkResult names_only;
    for_each_figure(names_only, [&](const std::string& name, const std::optional<double>&) {
        if (used(name)) result.push_back(name);
    });
    if (used("success_ratio")) result.emplace_back("success_ratio");
    return result;
}

void append_cells(std::vector<std::string>& cells, const std::map<std::string, double>& row, const std::vector<std::string>& metrics) {
    for (const std::string& name : metrics) {
        const auto found = row.find(name);
        cells.push_back(found == row.end() ? "" : text_of(found->second));
    }
}

/// The workload that a label of the block names; else the only one without a printed name.
const Workload* workload_of(const PublishedResult& result, const std::vector<Workload>& workloads) {
    for (const std::string& label : result.labels)
        for (const Workload& workload : workloads)
            if (std::find(workload.printed_as.begin(), workload.printed_as.end(), label) != workload.printed_as.end()) return &workload;
    const auto unnamed = [](const Workload& workload) { return workload.printed_as.empty(); };
    if (std::count_if(workloads.begin(), workloads.end(), unnamed) != 1) return nullptr;
    return &*std::find_if(workloads.begin(), workloads.end(), unnamed);
}

}  // namespace

std::vector<std::string> launchers_of(const std::vector<Engine>& engines) {
    std::vector<std::string> result;
    for (const Engine& engine : engines) {
        std::string words;
        for (const std::string& word : engine.launch) {
            if (word.find('{') != std::string::npos || word.starts_with("--")) break;
            words += (words.empty() ? "" : " ") + word;
        }
        result.push_back(words);
    }
    return result;
}

Imported import_for_study(const std::vector<PublishedResult>& results, const StudyFile& study) {
    std::vector<Workload> workloads = study.workloads;
    workloads.insert(workloads.end(), study.report_workloads.begin(), study.report_workloads.end());
    const SearchSpace space(study.composition->parameters());
    std::vector<std::string> names;
    for (const Parameter& parameter : space.parameters())
        if (parameter.continuous() || parameter.level_count() > 1) names.push_back(parameter.name);

    struct Row {
        const PublishedResult* source;
        std::string workload;
        Configuration configuration;
        std::map<std::string, double> metrics;
    };
    Imported imported;
    std::vector<Row> rows;
    for (const PublishedResult& result : results) {
        const auto parsed = study.composition->parse(shell_words(result.arguments), study.model);
        const Workload* workload = workload_of(result, workloads);
        if (result.arguments_unknown) imported.unplaced.push_back({result, "the file does not say how the engine was started"});
        else if (!parsed.unknown.empty()) imported.unplaced.push_back({result, "the study does not know " + joined(parsed.unknown, ", ")});
        else if (workload == nullptr)
            imported.unplaced.push_back({result, "no workload is printed as '" + joined(result.labels, "' or '") + "'"});
        else {
            Row row{&result, workload->name, space.completed(parsed.values), result_figures(result.result)};
            const auto& successful = result.result.successful_requests;
            const auto& failed = result.result.failed_requests;
            const double requested = result.result.requested_requests                  ? *result.result.requested_requests
                                     : successful && failed                            ? *successful + *failed
                                     : workload->requests && !result.arguments_derived ? static_cast<double>(*workload->requests)
                                                                                       : 0;
            if (successful && requested > 0) row.metrics["success_ratio"] = *successful / requested;
            rows.push_back(std::move(row));
        }
    }
    imported.rows = rows.size();
    std::vector<std::map<std::string, double>> all;
    for (const Row& row : rows) all.push_back(row.metrics);
    const std::vector<std::string> metrics = columns(all);

    std::vector<std::string> header{"block", "section", "workload"};
    header.insert(header.end(), names.begin(), names.end());
    header.emplace_back("status");
    header.insert(header.end(), metrics.begin(), metrics.end());
    header.insert(header.end(), {"arguments", "note"});
    imported.csv = csv_line(header);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        std::vector<std::string> cells{std::to_string(row.source->index), row.source->sections.empty() ? "" : row.source->sections.back(),
                                       row.workload};
        for (const std::string& name : names) {
            const Value* value = row.configuration.find(name);
            cells.push_back(value == nullptr ? "" : text_of(*value));
        }
        cells.emplace_back("ok");
        append_cells(cells, row.metrics, metrics);
        std::string note = row.source->arguments_derived ? "no command is printed for this checkpoint: derived from the first one's" : "";
        for (std::size_t earlier = 0; earlier < i; ++earlier)
            if (result_figures(rows[earlier].source->result) == result_figures(row.source->result))
                note += (note.empty() ? "" : "; ") + std::string("printed twice: the same block as ") +
                        std::to_string(rows[earlier].source->index);
        cells.insert(cells.end(), {row.source->arguments, note});
        imported.csv += csv_line(cells);
    }
    return imported;
}

std::string csv_of(const std::vector<PublishedResult>& results) {
    std::vector<std::map<std::string, double>> rows;
    for (const PublishedResult& result : results) rows.push_back(result_figures(result.result));
    const std::vector<std::string> metrics = columns(rows);
    // What a block or a file says of itself, where any does.
    std::vector<std::pair<const char*, std::string PublishedResult::*>> origins{{"tool", &PublishedResult::tool},
                                                                                {"tool_version", &PublishedResult::tool_version},
                                                                                {"model", &PublishedResult::model},
                                                                                {"dataset", &PublishedResult::dataset},
                                                                                {"date", &PublishedResult::date}};
    std::erase_if(origins, [&](const auto& origin) {
        return std::all_of(results.begin(), results.end(), [&](const PublishedResult& result) { return (result.*origin.second).empty(); });
    });
    std::vector<std::string> header{"block", "section", "label"};
    for (const auto& [name, field] : origins) header.emplace_back(name);
    header.emplace_back("status");
    header.insert(header.end(), metrics.begin(), metrics.end());
    header.insert(header.end(), {"arguments", "note"});
    std::string csv = csv_line(header);
    for (std::size_t i = 0; i < results.size(); ++i) {
        std::vector<std::string> cells{std::to_string(results[i].index), joined(results[i].sections, " / "),
                                       results[i].labels.empty() ? "" : results[i].labels.front()};
        for (const auto& [name, field] : origins) cells.push_back(results[i].*field);
        cells.emplace_back("ok");
        append_cells(cells, rows[i], metrics);
        cells.insert(cells.end(), {results[i].arguments,
                                   results[i].arguments_derived ? "no command is printed for it: derived from an earlier one" : ""});
        csv += csv_line(cells);
    }
    return csv;
}

}  // namespace servetune
