// SPDX-License-Identifier: Apache-2.0
#include "import.hpp"

#include "base/text.hpp"
#include "engine/shell_word.hpp"
#include "printed_block.hpp"
#include "report/report_view.hpp"
#include "result_format.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "workloads.hpp"

#include <optional>
#include <utility>

namespace servetune {
namespace {

using Figures = std::map<std::string, double>;

Figures figures_of_result(const BenchmarkResult& result) {
    Figures found;
    for_each_figure(result, [&](const std::string& name, const std::optional<double>& field) {
        if (field) found[name] = *field;
    });
    return found;
}

struct TableRow {
    Texts cells{};  ///< in front of the figures
    Figures figures{};
    const PublishedResult* source = nullptr;
    std::string note{};
};

/// A table with the figures that any row has, in the order of BenchmarkResult; `success_ratio`
/// after them.
std::string table_text(Texts header, const std::vector<TableRow>& rows) {
    Texts metrics;
    const auto add_used = [&](const std::string& name) {
        if (any_of(rows, [&](const TableRow& row) { return row.figures.contains(name); }))
            metrics.push_back(name);
    };
    const BenchmarkResult names_only;
    for_each_figure(names_only,
                    [&](const std::string& name, const std::optional<double>&) { add_used(name); });
    add_used("success_ratio");
    header.emplace_back("status");
    const bool judged =
        any_of(rows, [](const TableRow& row) { return row.source->validity != Validity{}; });
    if (judged) header.insert(header.end(), {"verdict", "findings"});
    header.insert(header.end(), metrics.begin(), metrics.end());
    header.insert(header.end(), {"arguments", "note"});
    std::string csv = csv_line(header);
    for (const TableRow& row : rows) {
        Texts cells = row.cells;
        cells.emplace_back("ok");
        if (judged) {
            Texts ids;
            for (const Finding& finding : row.source->validity.findings) ids.push_back(finding.id);
            cells.insert(cells.end(), {std::string(name_in(verdicts, row.source->validity.verdict)),
                                       joined(ids, " ")});
        }
        for (const std::string& name : metrics) {
            const auto* found = entry_in(row.figures, name);
            cells.push_back(found == nullptr ? "" : text_of(*found));
        }
        cells.insert(cells.end(), {row.source->arguments, row.note});
        for (std::string& cell : cells) cell = printable(cell);
        csv += csv_line(cells);
    }
    return csv;
}

/// The workload that a label of the result names.
const Workload* workload_of_labels(const PublishedResult& result, const StudyFile& study) {
    for (const std::string& label : result.labels)
        if (const Workload* found = study.workload_called(label)) return found;
    return nullptr;
}

/// The only one without a printed name, to which results without a known label belong.
const Workload* workload_without_name(const StudyFile& study) {
    std::vector<const Workload*> found;
    for (const auto* list : {&study.workloads, &study.report_workloads})
        for (const Workload& workload : *list)
            if (workload.printed_as.empty()) found.push_back(&workload);
    return found.size() == 1 ? found.front() : nullptr;
}

/// Why results without a known label are not all taken for `unnamed`; empty where they are.
std::string why_several(const std::vector<const PublishedResult*>& without_label,
                        const Workload& unnamed) {
    for (const PublishedResult* result : without_label)
        if (const Work one(*without_label.front()), other(*result); !one.same(other))
            return "results without a known label are of several workloads (result " +
                   std::to_string(without_label.front()->index) + ": " + one.text() + "; result " +
                   std::to_string(result->index) + ": " + other.text() +
                   "); say what the file calls those of '" + unnamed.name + "' (printed_as)";
    return "";
}

}  // namespace

std::string why_no_command(const PublishedResult& result) {
    if (!result.not_recognised.empty()) return "command not recognised: " + result.not_recognised;
    return result.arguments_unknown ? "the file does not say how the engine was started" : "";
}

ReadCommand read_command(const PublishedResult& result, const Composition& composition,
                         const CommandReader& commands, const std::string& model) {
    if (std::string why = why_no_command(result); !why.empty()) return {{}, std::move(why)};
    const Texts words = shell_words(result.arguments);
    ReadCommand best;
    bool found = false;
    Texts fitting;  // engines that know all of the flags
    for (const Engine& engine : composition.engines()) {
        if (!result.engine.empty() && result.engine != lower_case(engine.name)) continue;
        Composition::Parsed parsed = composition.parse(commands.read({words}, engine.name), model);
        if (parsed.engine != nullptr && parsed.unknown.empty() &&
            (fitting.empty() || fitting.back() != parsed.engine->name))
            fitting.push_back(parsed.engine->name);
        if (!found || (parsed.unknown.empty() && !best.parsed.unknown.empty()))
            best.parsed = std::move(parsed);
        found = true;
    }
    if (!found) return {composition.parse(words, model), "the study has no " + result.engine};
    if (!best.parsed.unknown.empty())
        best.why_not = "the study does not know " + joined(best.parsed.unknown, ", ");
    else if (best.parsed.engine == nullptr) best.why_not = "no engine of the study starts so";
    else if (fitting.size() > 1)
        best.why_not =
            "flags alone, which " + joined(fitting, " and ") + " both have: whose is not said";
    return best;
}

Imported import_for_study(const std::vector<PublishedResult>& results, const StudyFile& study) {
    const SearchSpace space(study.composition->parameters());
    const CommandReader commands(study.composition->engines(), study.source.search_spaces);
    std::vector<ReadCommand> read;  // one a result
    std::vector<const PublishedResult*> without_label;
    for (const PublishedResult& result : results) {
        read.push_back(read_command(result, *study.composition, commands, study.model));
        if (read.back().why_not.empty() && workload_of_labels(result, study) == nullptr)
            without_label.push_back(&result);
    }
    const Workload* unnamed = workload_without_name(study);
    const std::string several = unnamed == nullptr ? "" : why_several(without_label, *unnamed);
    Imported imported;
    std::vector<PlacedResult> rows;
    std::vector<Figures> figures;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const PublishedResult& result = results[i];
        const Workload* workload = workload_of_labels(result, study);
        if (workload == nullptr && several.empty()) workload = unnamed;
        if (!read[i].why_not.empty()) imported.unplaced.push_back({result, read[i].why_not});
        else if (workload == nullptr)
            imported.unplaced.push_back(
                {result, several.empty()
                             ? "no workload is printed as '" + joined(result.labels, "' or '") + "'"
                             : several});
        else {
            rows.push_back({&result, workload->name, space.completed(read[i].parsed.values)});
            figures.push_back(figures_of_result(result.result));
            const auto& successful = result.result.successful_requests;
            const double requested = result.result.requested_requests.value_or(
                workload->requests ? double(*workload->requests) : 0);
            if (successful && requested > 0)
                figures.back()["success_ratio"] = *successful / requested;
        }
    }
    const Texts why_mixed = why_no_repeat(rows);
    for (std::size_t i = rows.size(); i-- > 0;)
        if (!why_mixed[i].empty()) {
            imported.unplaced.push_back({*rows[i].source, why_mixed[i]});
            rows.erase(rows.begin() + std::ptrdiff_t(i));
            figures.erase(figures.begin() + std::ptrdiff_t(i));
        }
    sort(imported.unplaced,
         [](const Unplaced& a, const Unplaced& b) { return a.result.index < b.result.index; });
    imported.rows = rows.size();

    Texts header{"block", "workload"};
    for (const Parameter& parameter : space.parameters())
        if (parameter.continuous() || parameter.level_count() > 1) header.push_back(parameter.name);
    std::vector<TableRow> table;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const PublishedResult& source = *rows[i].source;
        TableRow row{{std::to_string(source.index), rows[i].workload}, figures[i], &source, ""};
        for (std::size_t name = 2; name < header.size(); ++name) {
            const Value* value = rows[i].configuration.find(header[name]);
            row.cells.push_back(value == nullptr ? "" : text_of(*value));
        }
        table.push_back(std::move(row));
    }
    imported.csv = table_text(std::move(header), table);
    return imported;
}

std::string csv_of(const std::vector<PublishedResult>& results) {
    // What a file says of itself, where any does.
    std::vector<std::pair<const char*, std::string PublishedResult::*>> origins{
        {"tool", &PublishedResult::tool},
        {"model", &PublishedResult::model},
        {"dataset", &PublishedResult::dataset},
        {"date", &PublishedResult::date}};
    std::erase_if(origins, [&](const auto& origin) {
        return all_of(results, [&](const PublishedResult& result) {
            return (result.*origin.second).empty();
        });
    });
    Texts header{"block", "label"};
    for (const auto& [name, field] : origins) header.emplace_back(name);
    std::vector<TableRow> table;
    for (const PublishedResult& result : results) {
        TableRow row{
            {std::to_string(result.index), result.labels.empty() ? "" : result.labels.front()},
            figures_of_result(result.result),
            &result,
            why_no_command(result)};
        for (const auto& [name, field] : origins) row.cells.push_back(result.*field);
        table.push_back(std::move(row));
    }
    return table_text(std::move(header), table);
}
void give_command(std::vector<PublishedResult>& results, const std::string& command,
                  const std::vector<Engine>& engines) {
    const ServingCommand given = serving_command(command, engines);
    if (given.text.empty())
        throw UsageError("--command: wanted the command that starts an engine, got '" + command +
                         "': " + given.not_recognised);
    for (PublishedResult& result : results) {
        if (!result.arguments_unknown) continue;
        result.arguments = given.text;
        result.engine = given.engine;
        result.arguments_unknown = false;
        result.not_recognised.clear();
    }
}

}  // namespace servetune
