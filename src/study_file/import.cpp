// SPDX-License-Identifier: Apache-2.0
#include "servetune/study_file/import.hpp"

#include "servetune/base/error.hpp"
#include "servetune/base/printable.hpp"
#include "servetune/io/table.hpp"

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

/// The workload that a label of the block names.
const Workload* named_workload(const PublishedResult& result, const std::vector<Workload>& workloads) {
    for (const std::string& label : result.labels)
        for (const Workload& workload : workloads)
            if (std::find(workload.printed_as.begin(), workload.printed_as.end(), label) != workload.printed_as.end()) return &workload;
    return nullptr;
}

/// The only one without a printed name, to which blocks without a known label belong.
const Workload* workload_without_name(const std::vector<Workload>& workloads) {
    const auto unnamed = [](const Workload& workload) { return workload.printed_as.empty(); };
    if (std::count_if(workloads.begin(), workloads.end(), unnamed) != 1) return nullptr;
    return &*std::find_if(workloads.begin(), workloads.end(), unnamed);
}

/// The work that a block's figures tell of, where they do.
struct Work {
    std::optional<double> input_tokens, output_tokens;  ///< of a request, on average
    std::optional<double> in_flight, rate;              ///< as they were asked for

    explicit Work(const BenchmarkResult& result) : in_flight(result.maximum_concurrency), rate(result.requested_rate_per_second) {
        if (!result.successful_requests || *result.successful_requests <= 0) return;
        if (result.input_tokens) input_tokens = *result.input_tokens / *result.successful_requests;
        if (result.output_tokens) output_tokens = *result.output_tokens / *result.successful_requests;
    }
    /// Prompts of one workload differ by their draw and by the template around them, answers by where the model ends
    /// them.
    [[nodiscard]] bool same(const Work& other) const {
        const auto near = [](const std::optional<double>& a, const std::optional<double>& b, double factor) {
            return !a || !b || (*a <= *b * factor && *b <= *a * factor);
        };
        return near(input_tokens, other.input_tokens, 1.25) && near(output_tokens, other.output_tokens, 2) &&
               near(in_flight, other.in_flight, 1) && near(rate, other.rate, 1);
    }
    [[nodiscard]] std::string text() const {
        std::string result;
        const auto add = [&](const std::optional<double>& value, const char* what) {
            if (value) result += (result.empty() ? "" : ", ") + text_of(std::round(*value)) + what;
        };
        add(input_tokens, " input tokens");
        add(output_tokens, " output tokens");
        add(in_flight, " in flight");
        add(rate, " requests a second");
        return result;
    }
};

/// Why nobody knows which of the study's configurations a block was measured with; empty where that is known.
std::string why_no_command(const PublishedResult& result, const Composition::Parsed& parsed) {
    if (!result.not_recognised.empty()) return "command not recognised: " + result.not_recognised;
    if (result.arguments_unknown) return "the file does not say how the engine was started";
    return parsed.unknown.empty() ? "" : "the study does not know " + joined(parsed.unknown, ", ");
}

/// Blocks of several workloads are not one workload's: why none of those without a known label is taken for `unnamed`;
/// empty where all can be.
std::string why_several(const std::vector<const PublishedResult*>& without_label, const Workload& unnamed) {
    for (const PublishedResult* result : without_label) {
        const PublishedResult* first = without_label.front();
        if (const Work one(first->result), other(result->result); !one.same(other))
            return "blocks without a known label are of several workloads (block " + std::to_string(first->index) + ": " + one.text() +
                   "; block " + std::to_string(result->index) + ": " + other.text() + "); say what the document calls the blocks of '" +
                   unnamed.name + "' (printed_as)";
    }
    return "";
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
    const auto parsed_command = [&](const PublishedResult& result) {
        return study.composition->parse(shell_words(result.arguments), study.model);
    };
    const Workload* unnamed = workload_without_name(workloads);
    std::vector<const PublishedResult*> without_label;  // of the study's engines
    for (const PublishedResult& result : results)
        if (why_no_command(result, parsed_command(result)).empty() && named_workload(result, workloads) == nullptr)
            without_label.push_back(&result);
    const std::string several = unnamed == nullptr ? "" : why_several(without_label, *unnamed);
    for (const PublishedResult& result : results) {
        const auto parsed = parsed_command(result);
        const std::string why_not = why_no_command(result, parsed);
        const Workload* workload = named_workload(result, workloads);
        if (workload == nullptr && several.empty()) workload = unnamed;
        if (!why_not.empty()) imported.unplaced.push_back({result, why_not});
        else if (workload == nullptr)
            imported.unplaced.push_back(
                {result, several.empty() ? "no workload is printed as '" + joined(result.labels, "' or '") + "'" : several});
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
        std::vector<std::string> cells{std::to_string(row.source->index),
                                       row.source->sections.empty() ? "" : printable(row.source->sections.back()), row.workload};
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
        std::vector<std::string> cells{std::to_string(results[i].index), printable(joined(results[i].sections, " / ")),
                                       results[i].labels.empty() ? "" : printable(results[i].labels.front())};
        for (const auto& [name, field] : origins) cells.push_back(printable(results[i].*field));
        cells.emplace_back("ok");
        append_cells(cells, rows[i], metrics);
        cells.insert(cells.end(), {printable(results[i].arguments),
                                   !results[i].not_recognised.empty() ? "command not recognised: " + printable(results[i].not_recognised)
                                   : results[i].arguments_derived     ? "no command is printed for it: derived from an earlier one"
                                                                      : ""});
        csv += csv_line(cells);
    }
    return csv;
}

}  // namespace servetune
