// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "study_file/study_predictions.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

std::string goodness(const Fit& fit) {
    return fmt::format(
        "median error {:.1f} %, worst {:.1f} %; rows held out: median {:.1f} %, worst {:.1f} %",
        fit.median_error * 100, fit.worst_error * 100, fit.held_out_median_error * 100,
        fit.held_out_worst_error * 100);
}

void print_fit(const std::string& engine, const Fit& fit, std::size_t rows) {
    put(stdout, "{}: {} rows\n", engine, rows);
    for (const auto& [factor, value] : fit.values) put(stdout, "  {:<28} {:.4g}\n", factor, value);
    put(stdout, "\n  {:>12} {:>12} {:>8} {:>12} {:>8}\n", "measured", "predicted", "", "held out",
        "");
    for (const FitError& error : fit.errors)
        put(stdout, "  {:>12.5g} {:>12.5g} {:>+7.1f}% {:>12.5g} {:>+7.1f}%  {} {}\n",
            error.measured, error.predicted, (error.predicted / error.measured - 1) * 100,
            error.predicted_held_out, (error.predicted_held_out / error.measured - 1) * 100,
            error.metric, error.row);
    put(stdout, "  {}\n\n", goodness(fit));
}

OrderedJson fit_json(const Fit& fit) {
    OrderedJson errors = OrderedJson::array();
    for (const FitError& error : fit.errors)
        errors.push_back({{"row", error.row},
                          {"metric", error.metric},
                          {"measured", error.measured},
                          {"predicted", error.predicted},
                          {"predicted_held_out", error.predicted_held_out}});
    return {{"factors", fit.values},
            {"median_error", fit.median_error},
            {"worst_error", fit.worst_error},
            {"held_out_median_error", fit.held_out_median_error},
            {"held_out_worst_error", fit.held_out_worst_error},
            {"rows", errors}};
}

}  // namespace

int fit_table(const FitArguments& arguments) {
    const StudyFile study = arguments.load();
    if (study.machine.hardware.empty())
        throw UsageError(study.source.file.string() +
                         " names no hardware: what the rows were measured on must be known");
    FitOptions options;
    if (!arguments.factors.empty()) options.factors = arguments.factors;
    if (arguments.metrics.empty()) options.metrics = {study.objective.leading().metric};
    else options.metrics = arguments.metrics;
    const FitTable table = read_fit_table(arguments.table, study, arguments.workload);
    if (!arguments.json)
        for (const std::string& why : table.left_out) put(stdout, "left out: {}\n", why);
    if (table.rows.empty())
        throw UsageError(arguments.table.string() + ": no row is left to fit to");
    if (arguments.output && table.rows.size() > 1)
        throw UsageError(
            "the table has rows of several engines; one file cannot hold the traits of all: fit "
            "tables of one engine each");
    if (arguments.output) check_writable(*arguments.output);
    OrderedJson all = OrderedJson::object();
    for (const auto& [engine, rows] : table.rows) {
        const Fit result = fit(rows, options);
        if (arguments.json) all[engine] = fit_json(result);
        else print_fit(engine, result, rows.size());
        if (!arguments.output) continue;
        const Catalogue catalogue = study.catalogue();
        const auto shipped = catalogue.find("traits", engine, catalogue.root() / "traits");
        const std::string source =
            fmt::format("fitted to {} ({} rows): {}", arguments.table.filename().string(),
                        rows.size(), goodness(result));
        write_file(*arguments.output, fitted_traits_file(shipped, result, source));
        if (!arguments.json)
            put(stdout,
                "written: {}; a study takes it with evaluator: {{simulate: {{traits: {{{}: "
                "FILE}}}}}}\n",
                arguments.output->string(), engine);
    }
    if (arguments.json) put_json(OrderedJson{{"left_out", table.left_out}, {"engines", all}});
    return done;
}

}  // namespace autotune
