// SPDX-License-Identifier: Apache-2.0
// The flat results of `vllm bench serve` (benchmark_serving.py before it) and of SGLang's
// bench_serving, which came from it: one object a run, times in milliseconds, arrays with one entry
// a request in seconds. Summaries of `vllm bench sweep`: such runs in a list (summary.json), or as
// rows of the table that pandas writes (summary.csv). Also our own, which are vLLM's and more.
#include "result_format.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "study/table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using B = BenchmarkResult;

/// `request_goodput:` is how vLLM spelled it until 0.9.1. SGLang has its own name of the latency.
constexpr std::array<FigureRow, 22> serving_figures{
    {{"completed", &B::successful_requests},
     {"failed", &B::failed_requests},
     {"duration", &B::duration_seconds},
     {"max_concurrency", &B::maximum_concurrency},
     {"max_concurrent_requests", &B::peak_concurrent_requests},
     {"concurrency", &B::mean_concurrency},
     {"request_rate", &B::requested_rate_per_second},
     {"total_input_tokens", &B::input_tokens},
     {"total_output_tokens", &B::output_tokens},
     {"request_throughput", &B::requests_per_second},
     {"request_goodput:", &B::goodput_requests_per_second},
     {"request_goodput", &B::goodput_requests_per_second},
     {"input_throughput", &B::input_tokens_per_second},
     {"output_throughput", &B::output_tokens_per_second},
     {"max_output_tokens_per_s", &B::peak_output_tokens_per_second},
     {"total_token_throughput", &B::total_tokens_per_second},
     {"total_throughput", &B::total_tokens_per_second},
     {"*_ttft_ms", &B::time_to_first_token, -3},
     {"*_tpot_ms", &B::time_per_output_token, -3},
     {"*_itl_ms", &B::inter_token_latency, -3},
     {"*_e2el_ms", &B::latency, -3},
     {"*_e2e_latency_ms", &B::latency, -3}}};
constexpr std::array<TextRow, 4> serving_texts{{{"model_id", &PublishedResult::model},
                                                {"server_info>model_path", &PublishedResult::model},
                                                {"dataset_name", &PublishedResult::dataset},
                                                {"date", &PublishedResult::date}}};
constexpr StatisticNames serving_statistics{"mean", "median", "p90", "p95", "p99", "std"};
constexpr std::array<TextRow, 3> our_texts{{{"model_id", &PublishedResult::model},
                                            {"servetune>dataset", &PublishedResult::dataset},
                                            {"date", &PublishedResult::date}}};

/// The numbers of an array, an entry that is none as 0; nothing when there is no such array.
std::optional<std::vector<double>> numbers_of(const Json* array) {
    if (array == nullptr || !array->is_array()) return std::nullopt;
    std::vector<double> result;
    for (const Json& entry : *array) result.push_back(figure_at(entry, {}).value_or(0));
    return result;
}

/// Fills what the summary does not have; both tools take percentiles as `summary_of` does.
void complete(TimeSummary& times, std::vector<double> values) {
    if (std::all_of(values.begin(), values.end(), [](double value) { return value == 0; })) return;
    const TimeSummary own = summary_of_times(std::move(values));
    for (const auto statistic : time_statistics)
        if (!(times.*statistic)) times.*statistic = own.*statistic;
}

/// The arrays of `--save-detailed` (vLLM) and `--output-details` (SGLang): counts of requests and
/// times that the summary lacks. `errors` says which succeeded; without it (`latencies` alone, in
/// vLLM's short form of 2026) those that took time.
void read_details(const Json& object, bool latency_is_sum_of_gaps, BenchmarkResult& result) {
    const auto latencies = numbers_of(node_at(object, "latencies"));
    const Json* errors = node_at(object, "errors");
    const bool marked = errors != nullptr && errors->is_array();
    if (!marked && !latencies) return;
    const std::size_t issued = marked ? errors->size() : latencies->size();
    const auto succeeded = [&](std::size_t i) {
        return marked ? (*errors)[i] == "" : (*latencies)[i] > 0;
    };
    double successes = 0;
    for (std::size_t i = 0; i < issued; ++i) successes += succeeded(i) ? 1 : 0;
    if (result.successful_requests && *result.successful_requests != successes)
        return;  // arrays of something else
    result.successful_requests = successes;
    if (!result.failed_requests) result.failed_requests = static_cast<double>(issued) - successes;

    const auto column = [&](const char* key) {
        const auto values = numbers_of(node_at(object, key));
        return values && values->size() == issued ? values : std::nullopt;
    };
    const auto first = column("ttfts"), input = column("input_lens"),
               output = column("output_lens"), whole = column("latencies");
    const Json* gaps = node_at(object, "itls");
    const bool streamed = gaps != nullptr && gaps->is_array() && gaps->size() == issued;
    std::vector<double> firsts, tokens, between, all;
    double input_tokens = 0;
    for (std::size_t i = 0; i < issued; ++i) {
        if (!succeeded(i)) continue;
        if (input) input_tokens += (*input)[i];
        if (first) firsts.push_back((*first)[i]);
        std::optional<double> latency;
        if (whole) latency = (*whole)[i];
        if (streamed) {
            const auto own = numbers_of(&(*gaps)[i]).value_or(std::vector<double>{});
            between.insert(between.end(), own.begin(), own.end());
            if (!whole && first && latency_is_sum_of_gaps)
                latency = (*first)[i] + std::accumulate(own.begin(), own.end(), 0.0);
        }
        if (latency) all.push_back(*latency);
        if (latency && first && output && (*first)[i] > 0 && *latency >= (*first)[i] &&
            (*output)[i] > 1)
            tokens.push_back((*latency - (*first)[i]) / ((*output)[i] - 1));
    }
    complete(result.time_to_first_token, std::move(firsts));
    complete(result.time_per_output_token, std::move(tokens));
    complete(result.inter_token_latency, std::move(between));
    complete(result.latency, std::move(all));
    // SGLang's runs of several turns write 0.
    if (input && result.input_tokens.value_or(0) == 0 && input_tokens > 0)
        result.input_tokens = input_tokens;
}

PublishedResult read_flat(const Json& object, bool sglang) {
    const ToolFields fields{sglang ? "sglang" : "vllm", serving_figures, serving_texts,
                            serving_statistics};
    PublishedResult result = read_fields(object, fields);
    BenchmarkResult& figures = result.result;
    std::set<std::string> asked{"num_prompts", "_benchmark_name", "label", "tag"};
    for (const FigureRow& row : serving_figures) {
        if (row.place.times == nullptr) continue;
        // vLLM writes it beside the median when it is asked for.
        const std::string key = std::string(row.path).replace(0, 1, "p50");
        asked.insert(key);
        auto& p50 = (figures.*row.place.times).p50;
        if (!p50) p50 = figure_at(object, key, row.exponent);
    }
    drop_unmeasured(figures);
    read_details(object, !sglang, figures);
    // The argument, not the number issued (a data set may have fewer): taken only where nothing
    // better is known, as then requests that vanished without a line (before 0.11.1) would
    // otherwise go unnoticed.
    const auto asked_for = figure_at(object, "num_prompts");
    if (!figures.failed_requests && asked_for >= figures.successful_requests)
        figures.requested_requests = asked_for;
    // `vllm bench sweep` adds its settings under the names that they have in its files, and this
    // name of a combination.
    for (const std::string& label : {text_at(object, "_benchmark_name"), text_at(object, "label"),
                                     text_at(object, "tag"), result.dataset})
        if (!label.empty()) result.labels.push_back(label);
    if (const Json* run = node_at(object, "run_number"); run != nullptr && *run == -1)
        result.labels.emplace_back("warm-up");
    if (figure_at(object, "rtfx") == 0) asked.insert("rtfx");
    result.unread = unread_of(object, fields, std::move(asked));
    // What SGLang's server says of itself; with vLLM's client people write it themselves
    // (`--metadata`).
    const Json* reported = node_at(object, "server_info");
    result.server_settings_are_given = reported == nullptr || !reported->is_object();
    if (!result.server_settings_are_given) result.server_settings = scalars_of(*reported);
    else
        for (const auto& [name, text] : result.unread) {
            std::string spelled = name;  // a sweep's files may spell names as flags
            std::replace(spelled.begin(), spelled.end(), '-', '_');
            result.server_settings[spelled] = text;
        }
    return result;
}

bool all_numbers(const Json& value, std::initializer_list<std::string_view> keys) {
    return std::all_of(keys.begin(), keys.end(), [&](std::string_view key) {
        const Json* node = node_at(value, key);
        return node != nullptr && node->is_number();
    });
}

bool is_sglang(const Json& value) {
    return all_numbers(value, {"duration", "completed"}) &&
           (value.contains("total_output_tokens_retokenized") ||
            value.contains("mean_e2e_latency_ms") ||
            (value.contains("input_throughput") && value.contains("dataset_name")));
}
constexpr std::array<std::string_view, 3> vllm_keys{"duration", "completed", "request_throughput"};
constexpr std::string_view vllm_keys_text = "duration, completed, request_throughput";
bool is_vllm(const Json& value) {
    return all_numbers(value, {vllm_keys[0], vllm_keys[1], vllm_keys[2]});
}

// -------------------------------------------------------------------------------------------------
// our own

/// What the audit said when the load test ended. A file without it, or with a word that is none,
/// says nothing.
Validity own_verdict(const Json& value) {
    const auto verdict = named_in(verdicts, text_at(value, "servetune>verdict"));
    if (!verdict) return {};
    Validity result{*verdict, {}};
    const Json* findings = node_at(value, "servetune>findings");
    if (findings != nullptr && findings->is_array())
        for (const Json& finding : *findings)
            result.findings.push_back({text_at(finding, "id"), text_at(finding, "left"),
                                       text_at(finding, "right"), text_at(finding, "cause")});
    return result;
}

/// The keys of vLLM in our files are the same figures in its units, for its readers; ours are
/// exact.
std::vector<PublishedResult> read_ours(const Json& value) {
    PublishedResult result = read_fields(value, {.tool = "servetune", .texts = our_texts});
    for_each_figure(result.result, [&](const std::string& name, std::optional<double>& figure) {
        figure = figure_at(value, "servetune>figures>" + name);
    });
    result.validity = own_verdict(value);
    for (const std::string& label : {text_at(value, "label"), result.dataset})
        if (!label.empty()) result.labels.push_back(label);
    const Json* arguments = node_at(value, "servetune>arguments");
    result.arguments_unknown = arguments == nullptr || !arguments->is_string();
    if (!result.arguments_unknown) result.arguments = arguments->get<std::string>();
    return {result};
}

// -------------------------------------------------------------------------------------------------
// sweeps

bool is_run(const Json& run) { return is_sglang(run) || is_vllm(run); }

/// What a client reports is no setting, also where we have no figure for it.
bool is_reported(const std::string& name) {
    return name == "run_number" || name.ends_with("_ms") || name.starts_with("spec_decode_") ||
           name.starts_with("diffusion_") || name.starts_with("probe_") || name.starts_with("rtfx");
}

/// What the runs of a sweep differ in names each: nothing in the file says which keys are the
/// settings of the sweep, so these are its scalars that no figure has, the cap and the rate, where
/// they differ.
void label_by_difference(std::vector<PublishedResult>& runs) {
    std::vector<std::map<std::string, std::string>> settings;
    std::map<std::string, std::map<std::string, std::size_t>> seen;  // name -> value -> runs
    for (const PublishedResult& run : runs) {
        auto own = run.unread;
        std::erase_if(own, [](const auto& each) { return is_reported(each.first); });
        if (run.result.maximum_concurrency)
            own["max_concurrency"] = text_of(*run.result.maximum_concurrency);
        if (run.result.requested_rate_per_second)
            own["request_rate"] = text_of(*run.result.requested_rate_per_second);
        for (const auto& [name, text] : own) ++seen[name][text];
        settings.push_back(std::move(own));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        std::erase_if(settings[i], [&](const auto& each) {
            return seen.at(each.first).at(each.second) == runs.size();
        });
        runs[i].run = one_line(settings_text(settings[i]));
    }
}

PublishedResult read_run(const Json& run) { return read_flat(run, is_sglang(run)); }

std::vector<PublishedResult> read_runs(const Json& runs) {
    std::vector<PublishedResult> results =
        read_rows(runs, is_run, read_run, "run: " + std::string(vllm_keys_text));
    if (runs.is_array()) label_by_difference(results);
    return results;
}

/// pandas writes `64.0` in a column of whole numbers where a row has none, `True`, and nothing for
/// None and NaN. Lists of requests are no figures of a summary.
std::optional<Json> value_of_sweep_cell(const std::string& column, const std::string& cell) {
    static const std::set<std::string> texts{"date",  "endpoint_type",  "backend",
                                             "label", "model_id",       "tokenizer_id",
                                             "tag",   "_benchmark_name"};
    if (cell.empty() || column.empty() || cell.front() == '[' || cell.front() == '{')
        return std::nullopt;
    if (texts.contains(column)) return Json(cell);  // a model may be called `7e5`
    if (const auto number = real_of(cell)) return Json(*number);
    return cell == "True" || cell == "False" ? Json(cell == "True") : Json(cell);
}

constexpr std::array<ResultFormat, 5> known_serving_formats{
    {{"servetune", "servetune.figures",
      [](const Json& value) {
          const Json* figures = node_at(value, "servetune>figures");
          return figures != nullptr && figures->is_object();
      },
      read_ours},
     {"sglang",
      "duration, completed and total_output_tokens_retokenized, mean_e2e_latency_ms or "
      "dataset_name",
      is_sglang, read_runs},
     {"vllm", vllm_keys_text, is_vllm, read_runs},
     {"vllm bench sweep", "a list of vLLM's or SGLang's results (summary.json)",
      [](const Json& value) { return value.is_array() && !value.empty() && is_run(value.front()); },
      read_runs},
     {"vllm bench sweep", "error_type, error and serve_overrides: a failed run",
      [](const Json& value) {
          return node_at(value, "serve_overrides") != nullptr &&
                 !text_at(value, "error_type").empty();
      },
      [](const Json&) -> std::vector<PublishedResult> {
          throw ParseError("a run of `vllm bench sweep` that failed has no figures: leave it out");
      }}}};

}  // namespace

const std::span<const ResultFormat> serving_formats(known_serving_formats);

bool is_sweep_table(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const std::string header = "," + std::string(text.substr(0, text.find_first_of("\r\n"))) + ",";
    return std::all_of(vllm_keys.begin(), vllm_keys.end(), [&](std::string_view wanted) {
        return header.find("," + std::string(wanted) + ",") != std::string::npos;
    });
}

std::vector<PublishedResult> read_sweep_table(std::string_view text, const std::string& name) {
    const std::vector<CsvRow> rows = parse_csv(text, name);
    const std::vector<std::string>& header = rows.front().cells;
    if (rows.size() > most_results + 1)
        throw ParseError(name + ": more than " + std::to_string(most_results) + " rows; split it");
    if (rows.size() < 2) throw ParseError(name + ": a table of `vllm bench sweep` without a row");
    Json runs = Json::array();
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::vector<std::string>& cells = cells_of(rows[r], header.size(), name);
        Json& run = runs.emplace_back(Json::object());
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (auto value = value_of_sweep_cell(header[i], cells[i]))
                run[header[i]] = std::move(*value);
        if (!is_run(run))
            throw ParseError(name + ":" + std::to_string(rows[r].line) +
                             ": no run: numbers wanted in " + std::string(vllm_keys_text));
    }
    return read_runs(runs);
}

}  // namespace servetune
