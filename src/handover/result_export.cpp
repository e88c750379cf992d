// SPDX-License-Identifier: Apache-2.0
#include "result_export.hpp"

#include "base/text.hpp"
#include "results/result_format.hpp"
#include "servetune/version.hpp"
#include "space/value_json.hpp"
#include "study_file/audit_context.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Figure = std::optional<double>;

/// What JSON can hold.
Figure finite(const Figure& figure) {
    return figure && std::isfinite(*figure) ? figure : std::nullopt;
}

/// A figure in the row's unit; nothing where that is not finite.
Figure written(const FormatRow& row, const Figure& figure) {
    return finite(figure ? Figure(*figure * std::pow(10, -row.exponent)) : std::nullopt);
}

/// The figures of a result at the paths of a format. Counts are integers in files; ours may be
/// fractions where a tool gave a mean.
void add_figures(OrderedJson& json, std::string_view format, BenchmarkResult result) {
    const auto place = [](const std::string& path) {
        return OrderedJson::json_pointer("/" + replaced_all(path, ">", "/"));
    };
    const auto figures = figures_in(result);
    for (const FormatRow& row : format_table(format).rows) {
        if (row.text != nullptr || row.read_only) continue;
        Figure value = written(row, *figures[row.figure]);
        if (row.each && value) value = finite(*value / result.successful_requests.value_or(0));
        // A distribution without a mean is none.
        const bool first = row.unit_path.empty() || row.path.ends_with(">mean");
        if (!value || (!first && !json.contains(place(row.unit_path)))) continue;
        if (!row.unit_path.empty()) json[place(row.unit_path)] = row.unit;
        constexpr double exact = 1e15;  // beyond about 9e15 not every integer is a double
        const bool whole =
            row.unit == "count" && std::floor(*value) == *value && std::abs(*value) < exact;
        json[place(row.path)] = whole ? OrderedJson(std::int64_t(*value)) : OrderedJson(*value);
    }
}

/// Flags by their names, each with the words behind it.
OrderedJson flags_json(const std::vector<std::string>& argv) {
    OrderedJson flags = OrderedJson::object();
    OrderedJson* flag = nullptr;
    for (const std::string& word : argv) {
        const std::size_t equals = word.find('=');
        if (word.starts_with("--")) {
            flag = &flags[word.substr(2, equals - 2)];
            if (equals != std::string::npos) *flag = word.substr(equals + 1);
        } else if (flag != nullptr)
            *flag = flag->is_null() ? word : flag->get<std::string>() + " " + word;
    }
    return flags;
}

/// The engines of a configuration, as the report's components.
OrderedJson stack_of(const StudySetup& setup, const Trial& trial) {
    const StudyFile& file = setup.file;
    const Configuration& configuration = trial.configuration;
    const auto* copies = entry_in(trial.measurement()->metrics, "replicas");
    OrderedJson stack = OrderedJson::array();
    if (!file.has_commands()) return stack;
    const auto known = [](std::string text) {
        return text.empty() ? std::string("unknown") : text;
    };
    const Engine& engine = file.composition->engine_of(configuration);
    for (const ServerGroup& group : file.composition->groups(configuration)) {
        const Command command =
            file.composition->render(configuration, {file.model, {}, 0}, group.role);
        OrderedJson degrees = OrderedJson::object();
        for (const Parameter& one : setup.problem->space.parameters())
            for (const char* degree :
                 {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"})
                if (const Value* ways = configuration.find(one.name);
                    one.concept_name == degree && ways != nullptr && number_of(*ways))
                    degrees[std::string(degree, 1) + "p"] = to_json(*ways);
        const std::string role = group.role.empty() ? "replica" : group.role;
        stack.push_back(
            {{"metadata", {{"label", role}, {"cfg_id", configuration.fingerprint().text()}}},
             {"standardized",
              {{"kind", "inference_engine"},
               {"tool", engine.name},
               {"tool_version", known(file.composition->version_of(engine))},
               {"role", role},
               {"replicas", copies == nullptr ? group.count : std::int64_t(copies->value)},
               {"model", {{"name", file.model}}},
               {"accelerator",
                {{"model", known(file.machine.chip())},
                 {"count", group.devices},
                 {"parallelism", degrees}}}}},
             {"native", {{"args", flags_json(command.argv)}, {"envars", command.environment}}}});
    }
    return stack;
}

std::string utc_text(double seconds) {
    return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time_t(seconds)));
}

}  // namespace

std::string vllm_json(const BenchmarkResult& result, const ExportContext& context) {
    OrderedJson json{{"date", context.date},
                     {"endpoint_type", context.backend},
                     {"backend", context.backend},
                     {"label", nullptr},
                     {"model_id", context.model},
                     {"tokenizer_id", nullptr},
                     {"request_rate", "inf"},
                     {"burstiness", "inf"},  // as of request_rate
                     {"max_concurrency", nullptr},
                     {"request_goodput", nullptr},
                     {"rtfx", 0.0}};  // audio only
    if (const Figure value = finite(context.burstiness)) json["burstiness"] = *value;
    add_figures(json, "serving", result);
    OrderedJson& ours = json["servetune"];
    ours = {{"format", 1}};
    if (!context.dataset.empty()) ours["dataset"] = context.dataset;
    ours["figures"] = OrderedJson::object();
    for_each_figure(result, [&](const std::string& name, const Figure& figure) {
        if (const Figure value = finite(figure)) ours["figures"][name] = *value;
    });
    return json.dump(-1, ' ', false,
                     OrderedJson::error_handler_t::replace);  // an error's text may be any bytes
}

std::string text_block(BenchmarkResult result) {
    constexpr int width = 50;
    std::string block = fmt::format("{:=^{}}\n", " Serving Benchmark Result ", width), title;
    const auto figures = figures_in(result);
    for (const FormatRow& row : format_table("block").rows)
        if (row.figure == figures.size()) title = fmt::format("{:-^{}}\n", row.path, width);
        else if (const Figure value = written(row, *figures[row.figure]))
            block += std::exchange(title, "") +
                     fmt::format("{:<40} {:<10}\n", row.path,
                                 fmt::format("{:.{}f}", *value, row.unit == "count" ? 0 : 2));
    return block + std::string(width, '=') + "\n";
}

std::map<std::string, OrderedJson> llm_d_reports(const StudySetup& setup,
                                                 const std::vector<Trial>& trials) {
    std::map<std::string, OrderedJson> reports;
    const StudyFile& file = setup.file;
    std::vector<Workload> workloads = file.workloads;
    workloads.insert(workloads.end(), file.report_workloads.begin(), file.report_workloads.end());
    for (const Trial& trial : trials) {
        const Measurement* measured = trial.measurement();
        if (measured == nullptr || measured->validity.verdict == Verdict::unsound) continue;
        for (const Workload& workload : workloads) {
            const bool alone = trial.workload == workload.name ||
                               (trial.workload.empty() && file.workloads.size() == 1 &&
                                file.workloads[0].name == workload.name);
            Metrics metrics;
            for (const auto& [name, metric] : measured->metrics)
                if (const MetricKey key = MetricKey::of(name);
                    key.workload == workload.name || (alone && key.workload.empty()))
                    metrics.emplace(key.name, metric);
            BenchmarkResult figures = result_of(metrics);
            if (!has_figures(figures)) continue;
            if (const auto good = figures.successful_requests; good && !figures.requested_requests)
                figures.requested_requests = *good + figures.failed_requests.value_or(0);
            const double began = trial.started_at.value_or(trial.asked_at);
            const std::string run =
                fmt::format("{} [{} trial {} {}, {}]", file.model, file.name, trial.id,
                            workload.name, name_in(verdicts, measured->validity.verdict));
            OrderedJson& report = reports[fmt::format("trial_{}/benchmark_report_v0.2,_{}.yaml",
                                                      trial.id, workload.name)];
            report = {
                {"version", "0.2.1"},
                {"run",
                 {{"uid", fmt::format("{} {}", run, began)},
                  {"eid", file.name},
                  {"time",
                   {{"start", utc_text(began)}, {"end", utc_text(trial.told_at.value_or(began))}}},
                  {"description", run}}},
                {"scenario",
                 {{"stack", stack_of(setup, trial)},
                  {"load",
                   {{"metadata", {{"description", workload.name}}},
                    {"standardized",
                     {{"tool", "servetune"},
                      {"tool_version", library_version},
                      {"source", workload.dataset.path.empty() ? "random" : "sampled"},
                      {"input_seq_len",
                       {{"distribution", "other"},
                        {"value", figures.input_tokens.value_or(0) /
                                      std::max(1.0, figures.successful_requests.value_or(0))}}}}},
                    {"native", OrderedJson::object()}}}}}};
            add_figures(report, "llm-d", figures);
        }
    }
    return reports;
}

}  // namespace servetune
