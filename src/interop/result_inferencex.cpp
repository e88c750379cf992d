// SPDX-License-Identifier: Apache-2.0
// Aggregates of InferenceX (InferenceMAX before): agg_*.json of one run, or agg_bmk.json, a list of
// them. A row of a fixed load is made of vLLM's result: times in seconds, tokens a second of one
// GPU. A row of a replayed agent is made of AIPerf's records and nests its figures.
#include "result_formats.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <cmath>

namespace servetune {
namespace {

using Json = nlohmann::json;

bool is_number_at(const Json& value, std::string_view key) {
    const Json* node = node_at(value, {key});
    return node != nullptr && node->is_number();
}

bool is_agent_row(const Json& row) {
    return node_at(row, {"request_metrics", "latency"}) != nullptr;
}

bool is_row(const Json& row) {
    const Json* hardware = node_at(row, {"hw"});
    return hardware != nullptr && hardware->is_string() && is_number_at(row, "conc") &&
           (is_number_at(row, "tput_per_gpu") || is_agent_row(row));
}

bool is_inferencex(const Json& value) {
    return is_row(value) || (value.is_array() && !value.empty() && is_row(value.front()));
}

/// The GPUs that rates of the whole deployment, of its prompts and of its answers were divided by.
struct Divisors {
    double all, prompts, answers;
};
std::optional<Divisors> divisors_of(const Json& row) {
    const auto prefill = setting_at(row, {"num_prefill_gpu"}),
               decode = setting_at(row, {"num_decode_gpu"});
    const Json* multinode = node_at(row, {"is_multinode"});
    if (multinode != nullptr && *multinode == true) {
        if (!prefill || !decode || *prefill <= 0) return std::nullopt;
        // Without decoding GPUs both phases run on the others.
        return Divisors{*prefill + *decode, *prefill, *decode > 0 ? *decode : *prefill};
    }
    const auto tensor = setting_at(row, {"tp"});
    if (!tensor || *tensor <= 0) return std::nullopt;
    const double gpus =
        *tensor * setting_at(row, {"pp"}).value_or(1) * setting_at(row, {"pcp_size"}).value_or(1);
    return Divisors{gpus, gpus, gpus};
}

/// Rates of the deployment. Before it named the GPUs of each phase the tool divided by some that
/// the row does not have: where prompts and answers do not add up to all tokens only the sum of
/// both is read.
void read_rates(ResultFields& fields, const Json& row, BenchmarkResult& figures) {
    const auto divisors = divisors_of(row);
    if (!divisors) return;
    const auto times = [](const std::optional<double>& rate, double gpus) {
        return rate && std::isfinite(*rate * gpus) ? std::optional(*rate * gpus) : std::nullopt;
    };
    const auto all = times(fields.figure("tput_per_gpu"), divisors->all);
    const auto prompts = times(figure_at(row, {"input_tput_per_gpu"}), divisors->prompts);
    const auto answers = times(figure_at(row, {"output_tput_per_gpu"}), divisors->answers);
    figures.total_tokens_per_second = all;
    if (all && prompts && answers && std::abs(*prompts + *answers - *all) > 1e-6 * *all) return;
    figures.input_tokens_per_second = prompts;
    figures.output_tokens_per_second = answers;
    (void)fields.figure("input_tput_per_gpu");
    (void)fields.figure("output_tput_per_gpu");
}

/// What a row says beside its figures. The engine's flags are in a recipe elsewhere.
void describe(ResultFields& fields, const Json& row, PublishedResult& result) {
    result.tool = "inferencex";
    result.arguments_unknown = true;
    result.model = fields.text("model");
    const std::string framework = fields.text("framework"), hardware = fields.text("hw"),
                      precision = fields.text("precision");
    if (framework == "vllm" || framework == "sglang") result.engine = framework;
    std::string label;
    for (const std::string& part : {hardware, framework, precision})
        if (!part.empty()) label += (label.empty() ? "" : " ") + part;
    // Rows of one list are of other loads: what names them says so.
    for (const char* key : {"isl", "osl", "conc"})
        if (const auto number = setting_at(row, {key}))
            label += std::string(" ") + key + "=" + text_of(*number);
    result.labels.push_back(label);
    result.unread = fields.unread();
    for (const auto& [key, text] :
         {std::pair{"hw", hardware}, {"framework", framework}, {"precision", precision}})
        if (!text.empty()) result.unread[key] = text;
}

PublishedResult read_fixed_row(const Json& row) {
    ResultFields fields(row);
    PublishedResult result;
    BenchmarkResult& figures = result.result;
    read_rates(fields, row, figures);
    figures.maximum_concurrency = fields.figure("conc");
    figures.time_to_first_token = fields.times("ttft", "", 0);
    figures.time_per_output_token = fields.times("tpot", "", 0);
    figures.inter_token_latency = fields.times("itl", "", 0);
    figures.latency = fields.times("e2el", "", 0);
    (void)fields.times("intvty", "", 0);  // reciprocals of the times per output token
    describe(fields, row, result);
    return result;
}

TimeSummary agent_times(const Json& row, std::string_view family) {
    const auto at = [&](std::string_view statistic) {
        return figure_at(row, {"request_metrics", "latency", family, statistic});
    };
    return {at("mean"), at("p50"), at("p90"), at("p95"), at("p99"), at("std")};
}

PublishedResult read_agent_row(const Json& row) {
    ResultFields fields(row);
    PublishedResult result;
    BenchmarkResult& figures = result.result;
    figures.successful_requests = fields.figure("num_requests_successful");
    (void)fields.figure(
        "num_requests_total");  // warm-up too; `conc` counts agents, which may have several in flight
    // Of the records that were dropped some are of the warm-up, with and without errors; the others
    // failed.
    const auto dropped = figure_at(row, {"request_accounting", "records_dropped_total"});
    const auto warm_up = figure_at(row, {"request_accounting", "records_warmup_dropped"});
    if (dropped && warm_up && *dropped >= *warm_up) figures.failed_requests = *dropped - *warm_up;
    const auto throughput = [&](std::string_view of) {
        return figure_at(row, {"request_metrics", "throughput", of, "tokens_per_second"});
    };
    figures.duration_seconds =
        figure_at(row, {"request_metrics", "throughput", "duration_seconds"});
    figures.input_tokens_per_second = throughput("input");
    figures.output_tokens_per_second = throughput("output");
    figures.total_tokens_per_second = throughput("total");
    const auto total = [&](std::string_view of) -> std::optional<double> {
        const auto mean = figure_at(row, {"request_metrics", "tokens", of, "mean"});
        if (!mean || figures.successful_requests.value_or(0) <= 0) return std::nullopt;
        const double tokens = std::round(*mean * *figures.successful_requests);
        return std::isfinite(tokens) ? std::optional(tokens) : std::nullopt;
    };
    figures.input_tokens = total("input");
    figures.output_tokens = total("output_actual");
    figures.time_to_first_token = agent_times(row, "ttft");
    figures.time_per_output_token = agent_times(row, "tpot");  // its `itl` is the same, AIPerf's
    figures.latency = agent_times(row, "e2el");
    describe(fields, row, result);
    const auto list = [&](const std::string& name, JsonPath path) {
        if (const Json* node = node_at(row, path))
            if (const auto text = scalar_text(*node)) result.unread[name] = *text;
    };
    list("qps mean", {"request_metrics", "qps", "mean"});
    list("theoretical_cache_hit_rate", {"request_metrics", "cache", "theoretical_cache_hit_rate"});
    list("gpu_cache_hit_rate", {"server_metrics", "cache", "gpu_cache_hit_rate"});
    list("warm-up requests", {"request_accounting", "records_warmup_dropped"});
    return result;
}

std::vector<PublishedResult> read_inferencex(const Json& value) {
    if (!value.is_array())
        return {is_agent_row(value) ? read_agent_row(value) : read_fixed_row(value)};
    std::vector<PublishedResult> results;
    for (const Json& row : value) {
        if (!is_row(row))
            throw ParseError("value " + std::to_string(results.size() + 1) +
                             " of the list is no row of InferenceX: hw, conc and tput_per_gpu " +
                             "or request_metrics wanted, as in those before it");
        results.push_back(is_agent_row(row) ? read_agent_row(row) : read_fixed_row(row));
    }
    return results;
}

}  // namespace

const ResultFormat inferencex_format{"inferencex",
                                     "hw, conc, and tput_per_gpu or request_metrics.latency",
                                     is_inferencex, read_inferencex};

}  // namespace servetune
