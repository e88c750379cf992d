// SPDX-License-Identifier: Apache-2.0
#include "study_predictions.hpp"

#include "audit_context.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/load_level.hpp"
#include "predict/study_fit.hpp"
#include "servetune/audit.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "base/present.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/outcome.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace servetune {
namespace {

/// The load tests of a configuration, one after the other; nothing: one of them would not end well.
std::optional<double> load_seconds(const SimulateEvaluator& evaluator,
                                   const SimulateEvaluator::Started& started,
                                   const StudyFile& file) {
    if (started.failure) return std::nullopt;
    double sum = 0;
    for (const Workload& workload : file.workloads) {
        const auto same = [&](const SimulatedWorkload& one) {
            return one.workload.name == workload.name;
        };
        const auto found =
            std::find_if(evaluator.workloads().begin(), evaluator.workloads().end(), same);
        if (found == evaluator.workloads().end()) return std::nullopt;
        const Outcome outcome = evaluator.measured(started, *found, 0);
        const auto* measurement = std::get_if<Measurement>(&outcome);
        if (measurement == nullptr) return std::nullopt;
        const auto duration = measurement->metrics.find("duration_seconds");
        if (duration == measurement->metrics.end()) return std::nullopt;
        sum += duration->second.value;
    }
    return sum;
}

/// The same as a trial measured it.
std::optional<double> measured_load_seconds(const Measurement& measurement, const StudyFile& file) {
    double sum = 0;
    for (const Workload& workload : file.workloads) {
        const auto found = measurement.metrics.find(
            MetricKey{"duration_seconds", file.workloads.size() > 1 ? workload.name : ""}.text());
        if (found == measurement.metrics.end()) return std::nullopt;
        sum += found->second.value;
    }
    return sum;
}

double middle(std::vector<double> values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    return *half;
}

}  // namespace

std::optional<double> expected_trial_seconds(const StudySetup& setup,
                                             const Configuration& configuration,
                                             std::span<const Trial> history) {
    const StudyFile& file = setup.file;
    const bool deploys = std::holds_alternative<DeployChoice>(file.measuring);
    if (!deploys && !std::holds_alternative<AttachChoice>(file.measuring) &&
        !std::holds_alternative<SimulateChoice>(file.measuring))
        return std::nullopt;
    std::unique_ptr<SimulateEvaluator> evaluator = simulated(file);
    std::vector<std::string> names;
    for (const Workload& workload : file.workloads) names.push_back(workload.name);
    if (const auto measured = measured_speeds(history, setup.problem->decision, names);
        !measured.empty())
        evaluator = evaluator->with(factors_of(*evaluator, measured));
    const SimulateEvaluator::Started started = evaluator->started(configuration);
    const auto load = load_seconds(*evaluator, started, file);
    if (!load) return std::nullopt;
    constexpr std::size_t enough = 5;  // each is simulated; the median of more hardly differs
    std::vector<double> ratios;        // measured / predicted
    std::vector<double> around;        // start, warm-up, stop
    for (const Trial& trial : history) {
        const Measurement* measurement = trial.measurement();
        if (!trial.of_search() || measurement == nullptr || measurement->validity.ended_early() ||
            ratios.size() >= enough)
            continue;
        const auto took = measured_load_seconds(*measurement, file);
        const auto predicted =
            load_seconds(*evaluator, evaluator->started(trial.configuration), file);
        if (!took || !predicted || !(*predicted > 0) || !(trial.cost_seconds() > 0)) continue;
        ratios.push_back(*took / *predicted);
        around.push_back(std::max(0.0, trial.cost_seconds() - *took));
    }
    if (ratios.empty()) return *load + (deploys ? started.start.seconds : 0);
    return *load * middle(std::move(ratios)) + middle(std::move(around));
}
namespace {

namespace fs = std::filesystem;

/// The cells of one row by the names of their columns.
class Cells {
public:
    /// `workload`: whose figures they are, where a row has those of several; empty: the only ones.
    Cells(const std::vector<std::string>& names, const CsvRow& row, std::string workload = "")
        : names_(names), row_(row), workload_(std::move(workload)) {}
    [[nodiscard]] std::string text(std::string_view name) const {
        for (std::size_t i = 0; i < std::min(names_.size(), row_.cells.size()); ++i)
            if (names_[i] == name) return row_.cells[i];
        return "";
    }
    [[nodiscard]] BenchmarkResult result() const {
        BenchmarkResult result;
        for_each_figure(result, [&](const std::string& name, std::optional<double>& field) {
            field = figure(name);
        });
        const auto ratio = figure("success_ratio");
        if (!result.requested_requests && result.successful_requests && ratio && *ratio > 0)
            result.requested_requests = std::round(*result.successful_requests / *ratio);
        return result;
    }

private:
    [[nodiscard]] std::optional<double> figure(const std::string& name) const {
        return real_of(text(MetricKey{name, workload_}.text()));
    }

    const std::vector<std::string>& names_;
    const CsvRow& row_;
    std::string workload_;
};

constexpr double most_simulated = 1e6;
constexpr double most_tokens_simulated = 1e9;
constexpr std::int64_t longest_simulated = 1'000'000'000;  // one may be longer than the mean

/// As many requests as the row reports, together with its numbers of tokens.
SimulatedTraffic traffic_of(const Workload& workload, const BenchmarkResult& result,
                            const std::vector<PlannedRequest>& spread) {
    const double n = present(result.successful_requests);
    const double input = present(result.input_tokens) / n;
    const double output = present(result.output_tokens) / n;
    if (!(n <= most_simulated && input <= most_simulated && output <= most_simulated &&
          n * (input + output) <= most_tokens_simulated))
        throw UsageError(
            "it says " + short_number_text(n) + " requests of " + short_number_text(input) +
            " and " + short_number_text(output) + " tokens; at most a million of each, and " +
            short_number_text(most_tokens_simulated) + " tokens in all, are simulated");
    double mean_input = 0;
    double mean_output = 0;
    for (const PlannedRequest& request : spread) {
        mean_input +=
            static_cast<double>(request.input_tokens) / static_cast<double>(spread.size());
        mean_output +=
            static_cast<double>(request.output_tokens) / static_cast<double>(spread.size());
    }
    std::vector<SimulatedTraffic::Request> requests;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        SimulatedTraffic::Request request;
        double in = input;
        double out = output;
        if (!spread.empty()) {
            const PlannedRequest& shape = spread[i % spread.size()];
            in *= static_cast<double>(shape.input_tokens) / mean_input;
            out *= static_cast<double>(shape.output_tokens) / mean_output;
        }
        request.input_tokens = whole_number_within(std::round(in), 1, longest_simulated);
        request.output_tokens = whole_number_within(std::round(out), 1, longest_simulated);
        requests.push_back(std::move(request));
    }
    return {std::move(requests), workload.arrival};
}

/// What reading the rows of a table needs.
class RowReader {
public:
    explicit RowReader(const StudyFile& study)
        : study_(study),
          space_(study.composition->parameters()),
          commands_(std::make_shared<const CommandReader>(study.composition->engines(),
                                                          study.source.search_spaces)) {
        const Catalogue catalogue = study.catalogue();
        hardware_ = catalogue.hardware(study.machine.hardware);
        models_ = catalogue.all_models();
        for (const Engine& engine : study.composition->engines())
            readers_.emplace_back(engine, traits_of(study, catalogue, engine.name), models_,
                                  hardware_, study.composition->version_of(engine), commands_);
        Workload chat;
        chat.dataset = {Dataset::Kind::trace,
                        (catalogue.root() / "workloads" / "chat_lengths.csv").string()};
        spread_ = plan_requests(chat).requests;
    }

    /// Throws UsageError: why a row cannot be fitted to.
    [[nodiscard]] FitRow read(const Cells& cells, const Workload& named) const {
        const BenchmarkResult figures = cells.result();
        if (!figures.successful_requests || !(*figures.successful_requests >= 1) ||
            !figures.input_tokens || !figures.output_tokens)
            throw UsageError("it does not say how many requests and tokens there were");
        Command command{shell_words(cells.text("arguments"))};
        Workload workload = named;
        if (command.argv.empty()) {
            const Configuration configuration = configuration_of(cells);
            command = study_.composition->render(configuration, {study_.model, {}, 0});
            workload = at_load_level(workload, configuration);
        }
        check_sound(figures, workload, command);
        Serving serving = reader_of(command).read(command);
        (void)CostModel(serving.target, serving.settings);  // its weights must be known
        std::map<std::string, double> measured;
        for_each_figure(figures, [&](const std::string& name, const std::optional<double>& field) {
            if (field && *field > 0) measured[name] = *field;
        });
        const bool mixed = workload.dataset.kind != Dataset::Kind::random;
        return {workload.name + " " + command.text(), std::move(serving),
                traffic_of(workload, figures, mixed ? spread_ : std::vector<PlannedRequest>{}),
                std::move(measured)};
    }

private:
    [[nodiscard]] Configuration configuration_of(const Cells& cells) const {
        Assignment values;
        for (const Parameter& parameter : space_.parameters())
            if (const std::string cell = cells.text(parameter.name); !cell.empty())
                values[parameter.name] = value_of(cell);
        return space_.completed(values);
    }
    void check_sound(const BenchmarkResult& figures, const Workload& workload,
                     const Command& command) const {
        AuditContext context;
        context.hardware = hardware_;
        describe(context, workload, figures);
        describe(context, commands_->read(command), study_.model, models_);
        const Validity validity = audit(figures, context);
        if (validity.verdict == Verdict::unsound)
            throw UsageError("unsound: " + validity.findings.front().id + ", " +
                             validity.findings.front().left);
    }
    [[nodiscard]] const ServingReader& reader_of(const Command& command) const {
        const Composition::Parsed parsed =
            study_.composition->parse(commands_->read(command), study_.model);
        for (const ServingReader& reader : readers_)
            if (parsed.engine != nullptr && reader.engine().name == parsed.engine->name)
                return reader;
        throw UsageError("its command is none of the study's engines'");
    }

    const StudyFile& study_;
    SearchSpace space_;
    std::shared_ptr<const CommandReader> commands_;
    HardwareSpec hardware_;
    std::vector<ModelSpec> models_;
    std::vector<ServingReader> readers_;
    std::vector<PlannedRequest> spread_;
};

bool names_workloads(const std::vector<std::string>& header) {
    return std::any_of(header.begin(), header.end(), [](const std::string& name) {
        return !MetricKey::of(name).workload.empty();
    });
}

}  // namespace

FitTable read_fit_table(const fs::path& file, const StudyFile& study, const std::string& only) {
    const RowReader reader(study);
    const std::vector<CsvRow> csv = parse_csv(read_file(file), file.string());
    if (csv.empty()) throw ParseError(file.string() + ": an empty table");
    const std::vector<std::string>& header = csv.front().cells;
    FitTable result;
    const auto leave_out = [&](const CsvRow& row, const std::string& why) {
        result.left_out.push_back(file.string() + ":" + std::to_string(row.line) + ": " + why);
    };
    const auto add = [&](const CsvRow& row, const Workload& workload,
                         const std::string& figures_of) {
        if (!only.empty() && workload.name != only) return;
        try {
            FitRow read = reader.read(Cells(header, row, figures_of), workload);
            result.rows[read.serving.target.traits.engine].push_back(std::move(read));
        } catch (const UsageError& error) {
            leave_out(row, (figures_of.empty() ? "" : figures_of + ": ") + error.what());
        }
    };
    for (std::size_t i = 1; i < csv.size(); ++i) {
        const Cells cells(header, csv[i]);
        const std::string status = cells.text("status");
        const std::string called =
            cells.text("workload").empty() ? cells.text("label") : cells.text("workload");
        const Workload* named = called.empty() ? nullptr : study.workload_called(called);
        if (status != "ok") leave_out(csv[i], status.empty() ? "no status" : status);
        else if (cells.text("verdict") == name_in(verdicts, Verdict::unsound))
            leave_out(
                csv[i],
                "unsound" + (cells.text("findings").empty() ? "" : ": " + cells.text("findings")));
        else if (named != nullptr) add(csv[i], *named, "");
        else if (!called.empty()) leave_out(csv[i], "the study has no workload '" + called + "'");
        else if (study.workloads.size() == 1) add(csv[i], study.workloads.front(), "");
        // A study of several measures all of them in a trial, as `name@workload`.
        else if (!names_workloads(header))
            leave_out(csv[i], "it does not say which of the study's workloads it is of");
        else
            for (const Workload& workload : study.workloads) add(csv[i], workload, workload.name);
    }
    return result;
}

std::string fitted_traits_file(const fs::path& shipped, const Fit& fit, const std::string& source) {
    std::map<std::string, std::string> lines;  // key -> its figure
    for (const auto& [factor, value] : fit.values) {
        const std::string key = factor.substr(0, factor.find('.'));
        std::ostringstream text;
        text.precision(4);
        if (key == "compute_efficiency") {
            text << "{";
            for (const auto& [type, efficiency] : fit.traits.compute_efficiency)
                text << (type == fit.traits.compute_efficiency.begin()->first ? "" : ", ") << type
                     << ": " << efficiency;
            text << "}";
        } else text << value;
        lines[key] = text.str();
    }
    std::istringstream in(read_file(shipped));
    std::string result;
    for (std::string line; std::getline(in, line);) {
        const std::size_t indent =
            line.find_first_not_of(' ') == std::string::npos ? 0 : line.find_first_not_of(' ');
        const auto found = lines.find(
            line.substr(indent, line.find(':') == std::string::npos ? 0 : line.find(':') - indent));
        if (found != lines.end() && indent == 0) line = found->first + ": " + found->second;
        else if (found != lines.end() && indent == 2)
            line = "  " + found->first + ": \"" + source + "\"";
        result += line + "\n";
    }
    return result;
}

}  // namespace servetune
