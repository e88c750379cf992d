// SPDX-License-Identifier: Apache-2.0
// `autotune export`: the trials of a study for other programs.
#include "commands.hpp"
#include "output.hpp"
#include "record.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "handover/result_export.hpp"
#include "report/report_json.hpp"
#include "servetune/error.hpp"
#include "study/json.hpp"
#include "study/table.hpp"
#include "study/trial_rules.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <set>

namespace autotune {

namespace {

std::string findings_text(const Validity& validity) {
    std::set<std::string> ids;
    for (const Finding& finding : validity.findings) ids.insert(finding.id);
    return fmt::format("{}", fmt::join(ids, " "));
}

/// A table of measured configurations, as `replay` and `knowledge` read it: a row for each told
/// trial of the search, and for each fall under stress that counts.
std::string csv_of_trials(const StudySetup& setup, const std::vector<Trial>& trials) {
    std::vector<std::string> head{"block"};
    for (const Parameter& parameter : setup.problem->space.parameters())
        head.push_back(parameter.name);
    head.emplace_back("status");
    std::set<std::string> metrics;
    for (const Trial& trial : trials)
        if (trial.of_search() && trial.measurement() != nullptr)
            for (const auto& [name, metric] : trial.measurement()->metrics) metrics.insert(name);
    head.insert(head.end(), metrics.begin(), metrics.end());
    head.insert(head.end(), {"verdict", "findings", "message"});
    std::string result = csv_line(head);
    const bool falls = falls_count(trials, setup.problem->space.default_configuration());
    for (const Trial& trial : trials) {
        if (!trial.told() || !(trial.of_search() || (falls && trial.fell()))) continue;
        std::vector<std::string> row{std::to_string(trial.id)};
        for (const Parameter& parameter : setup.problem->space.parameters()) {
            const Value* value = trial.configuration.find(parameter.name);
            row.push_back(value == nullptr ? "" : text_of(*value));
        }
        const Measurement* measured = trial.measurement();
        row.push_back(measured != nullptr
                          ? "ok"
                          : std::string(name_in(failure_kinds, trial.failure()->kind)));
        for (const std::string& name : metrics) {
            const auto* found = measured == nullptr ? nullptr : entry_in(measured->metrics, name);
            row.push_back(found == nullptr ? "" : text_of(found->value));
        }
        if (measured != nullptr)
            row.insert(row.end(), {std::string(name_in(verdicts, measured->validity.verdict)),
                                   findings_text(measured->validity), ""});
        else row.insert(row.end(), {"", "", printable_line(secrets()(trial.failure()->message))});
        result += csv_line(row);
    }
    return result;
}

/// A JSON object a line for each trial, those of report workloads and pending ones too.
std::string json_lines_of_trials(const std::vector<Trial>& trials) {
    std::string result;
    for (const Trial& trial : trials) {
        OrderedJson line{
            {"trial", trial.id},
            {"workload", trial.workload},
            {"configuration", OrderedJson::parse(json_of(trial.configuration))},
            {"seed", trial.seed},
            {"why", trial.why},
            {"asked_at", trial.asked_at},
            {"started_at", or_null(trial.started_at)},
            {"told_at", or_null(trial.told_at)},
            {"environment", trial.environment ? OrderedJson(*trial.environment) : OrderedJson()},
            {"outcome",
             trial.told() ? OrderedJson::parse(json_of(*trial.outcome)) : OrderedJson()}};
        result += shown_json(std::move(line)) + "\n";
    }
    return result;
}

}  // namespace

int export_trials(const ExportArguments& arguments) {
    const std::string& as = arguments.format;
    const bool reports = as == "llm-d", record = as == "record";
    if ((reports || record) && !arguments.output)
        throw UsageError("--as " + as + " writes a folder: say it with --output");
    if (record) return export_record(arguments);
    if (as == "optuna")
        throw UsageError(
            "Optuna's own library writes its storage: pip install 'servetune[optuna]', then "
            "python3 -m servetune.export_optuna STUDY sqlite:///FILE");
    const StudySetup setup = set_up(arguments.load_to_read());
    const std::vector<Trial> trials =
        read_journal(setup, arguments.folder_to_read(setup.file)).trials();
    if (reports) {
        const auto files = llm_d_reports(setup, trials);
        if (files.empty()) throw UsageError("no trial has a measurement that counts");
        for (const auto& [name, report] : files) {
            const fs::path file = *arguments.output / name;
            fs::create_directories(file.parent_path());
            write_file(file, shown_json(report, 1) + "\n");
        }
        return done;
    }
    const std::string text =
        as == "csv" ? csv_of_trials(setup, trials) : json_lines_of_trials(trials);
    if (arguments.output) write_file(*arguments.output, text);
    else put_controls(stdout, printable(text));
    return done;
}

}  // namespace autotune
