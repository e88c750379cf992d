// SPDX-License-Identifier: Apache-2.0
#include "table_belief.hpp"

#include "../row_reader.hpp"
#include "perf/cost_check.hpp"
#include "predict/cost_belief.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <set>

namespace servetune::convergence {
namespace {

/// How a row was measured.
struct Deployed {
    std::string engine, version, chip, command;
    double in_flight = 1, requests = 1, input_tokens = 1, output_tokens = 1;
    double devices = 1;  ///< that the objective divides by
};

double number(const TableCells& cells, const std::string& column) {
    return std::stod(cells.at(column));
}

std::string trtllm(const std::string& model, const std::string& tp, double context,
                   const std::string& more = "", const std::string& options = "") {
    return fmt::format(
        "trtllm-serve {} --tp_size {} --max_seq_len {:.0f} --max_num_tokens {:.0f}{} "
        "--extra_llm_api_options options.yaml | {{\"kv_cache_config\": {{\"dtype\": \"fp8\", "
        "\"enable_block_reuse\": false}}{}, \"stream_interval\": 10}}",
        model, tp, context, context, more, options);
}

constexpr double infx_context = 2248;

Deployed infx(const TableCells& cells) {
    constexpr double mean_tokens = 922;  // of InferenceX's lengths at 1K + 1K
    Deployed row;
    row.chip = cells.at("system");
    std::replace(row.chip.begin(), row.chip.end(), '_', '-');
    row.in_flight = number(cells, "concurrency");
    row.requests = 10 * row.in_flight;
    row.input_tokens = row.output_tokens = mean_tokens;
    row.engine = cells.at("backend") == "trtllm" ? "tensorrt-llm" : cells.at("backend");
    row.version = row.engine == "vllm"     ? "0.11.0"
                  : row.engine == "sglang" ? "0.5.5.post1"
                                           : "1.2.0rc1";
    return row;
}

std::optional<Deployed> infx_llama70b(const TableCells& cells) {
    Deployed row = infx(cells);
    const std::string& tp = cells.at("tp");
    row.devices = number(cells, "tp");
    const std::string model = "nvidia/Llama-3.3-70B-Instruct-" +
                              std::string(cells.at("precision") == "fp4" ? "FP4" : "FP8");
    if (row.engine == "vllm")
        row.command = "vllm serve " + model + " --tensor-parallel-size=" + tp +
                      " --kv-cache-dtype=fp8 --async-scheduling --no-enable-prefix-caching "
                      "--max-num-batched-tokens=8192 --max-model-len=10240 "
                      "--gpu-memory-utilization=0.9 --max-num-seqs=" +
                      (row.chip == "b200-sxm" ? "512" : cells.at("concurrency"));
    else row.command = trtllm(model, tp, infx_context);
    return row;
}

std::optional<Deployed> infx_dsr1(const TableCells& cells) {
    Deployed row = infx(cells);
    row.devices = number(cells, "tp") * number(cells, "attn_dp");
    // Of products such as 8 x 8 the devices are the experts' groups.
    const double devices = std::max(number(cells, "moe_tp"), number(cells, "moe_ep"));
    if (devices > 8) return std::nullopt;  // several machines
    const std::string tp = fmt::format("{:.0f}", devices);
    const bool experts = number(cells, "moe_ep") > 1;
    const std::string model = cells.at("precision") == "fp4" ? "nvidia/DeepSeek-R1-0528-FP4"
                                                             : "deepseek-ai/DeepSeek-R1-0528";
    if (row.engine == "sglang")
        row.command = "python3 -m sglang.launch_server --model-path " + model + " --tp-size " + tp +
                      " --disable-radix-cache" + (experts ? " --ep-size " + tp : "");
    else
        row.command = trtllm(model, tp, infx_context, experts ? " --ep_size " + tp : "",
                             number(cells, "attn_dp") > 1 ? ", \"enable_attention_dp\": true" : "");
    return row;
}

std::optional<Deployed> aic(const TableCells& cells) {
    if (cells.at("precision") == "fp4") return std::nullopt;  // a Hopper has no such kernels
    Deployed row{.engine = "tensorrt-llm", .version = "1.0.0", .chip = "h100-sxm", .command = {}};
    row.in_flight = number(cells, "batch_size");
    row.requests = 10 * row.in_flight;
    row.input_tokens = number(cells, "isl");
    row.output_tokens = number(cells, "osl");
    row.devices = number(cells, "tp_size");
    row.command =
        trtllm(std::string("Qwen/Qwen3-32B") + (cells.at("precision") == "fp8" ? "-FP8" : ""),
               cells.at("tp_size"), row.input_tokens + row.output_tokens + 100);
    return row;
}

std::optional<Deployed> vllmbench(const TableCells& cells) {
    struct Load {
        double requests, input, output;
    };
    const std::map<std::string, Load> loads{{"chat", {200, 256, 256}},
                                            {"long_decode", {100, 128, 2048}},
                                            {"long_prompt", {100, 4096, 128}},
                                            {"saturation", {256, 128, 128}}};
    const Load& load = loads.at(cells.at("workload"));
    Deployed row{.engine = "vllm", .version = "0.24.0", .chip = "l40s", .command = {}};
    row.in_flight = number(cells, "concurrency");
    row.requests = load.requests;
    row.input_tokens = load.input;
    row.output_tokens = load.output;
    const std::string& precision = cells.at("precision");
    const std::string& guesses = cells.at("speculative");
    row.command =
        "vllm serve " +
        std::string(precision == "bf16"          ? "unsloth/Llama-3.1-8B-Instruct"
                    : precision == "fp8-dynamic" ? "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic"
                                                 : "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8") +
        " --max-num-seqs=" + cells.at("max_num_seqs") +
        (cells.at("kv_cache_dtype") == "fp8" ? " --kv-cache-dtype=fp8" : "") +
        (cells.at("chunked_prefill") == "false" ? " --no-enable-chunked-prefill" : "") +
        (guesses == "ngram"
             ? " --speculative-config={\"method\":\"ngram\",\"num_speculative_tokens\":4}"
         : guesses == "eagle3" ? " --speculative-config={\"method\":\"eagle3\",\"model\":\"yuhuili/"
                                 "EAGLE3-LLaMA3.1-Instruct-8B\",\"num_speculative_tokens\":3}"
                               : "");
    return row;
}

using Reader = std::optional<Deployed> (*)(const TableCells&);
const std::map<std::string, Reader> readers{{"infx_llama70b", infx_llama70b},
                                            {"infx_dsr1", infx_dsr1},
                                            {"aic", aic},
                                            {"vllmbench", vllmbench}};

/// A row, read.
struct Row {
    SpeedRow speed;
    double margin = 0;
    double factor = 1;  ///< of the objective's figure for each output token/s
};

class TableBelief : public PriorMean {
public:
    using Rows = std::map<Configuration, Row>;
    TableBelief(std::shared_ptr<const Rows> rows, Objective objective,
                const std::optional<SpeedFactors>& factors)
        : rows_(std::move(rows)), objective_(std::move(objective)), fitted_(factors) {
        for (const auto& [configuration, row] : *rows_) {
            PriorBelief& belief = beliefs_[configuration];
            ServingTarget target = row.speed.target;
            target.traits = scaled(std::move(target.traits), factors.value_or(SpeedFactors{}));
            const QuickEstimate quick = quick_estimate(CostModel(target, row.speed.settings),
                                                       row.speed.means, row.speed.arrival);
            belief.margin = row.margin;
            belief.log_value = std::log(quick.output_tokens_per_second * row.factor);
            belief.log_error = error_within(check_of(target.traits, target.hardware, target.model));
            for (const Limit& limit : objective_.limits)
                belief.limits.push_back(margin_of(
                    limit, limit.metric == "tpot_ms" ? 1e3 * quick.time_per_output_token_seconds
                                                     : quick.latency_seconds));
        }
    }
    [[nodiscard]] std::string name() const override { return "the cost model"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
        const auto* found = entry_in(beliefs_, configuration);
        return found == nullptr ? PriorBelief{} : *found;
    }
    /// As a study's (`CostBelief::fitted_to`), by each configuration's first measurement.
    [[nodiscard]] std::shared_ptr<const PriorMean> fitted_to(
        std::span<const Trial> history, const Decision& decision) const override {
        if (fitted_) return nullptr;
        std::set<Configuration> known;
        std::vector<SpeedErrors> errors;
        for (const Trial& trial : history) {
            const Measurement* measured = trial.measurement();
            const auto* row = entry_in(*rows_, trial.configuration);
            if (measured == nullptr || !decision.believes(*measured) || row == nullptr ||
                !known.insert(trial.configuration).second)
                continue;
            SpeedRow speed = row->speed;
            speed.measured = {
                {"output_tokens_per_second",
                 measured->metrics.at(objective_.leading().metric).value / row->factor}};
            errors.emplace_back([speed = std::move(speed)](const SpeedFactors& factors) {
                return speed.errors(factors);
            });
        }
        errors.resize(std::bit_floor(errors.size()));
        if (errors.empty()) return nullptr;
        return std::make_shared<TableBelief>(rows_, objective_, fitted_factors(errors));
    }

private:
    std::shared_ptr<const Rows> rows_;
    Objective objective_;
    std::optional<SpeedFactors> fitted_;
    std::map<Configuration, PriorBelief> beliefs_{};
};

Row read(const Deployed& deployed, RowReader& reader) {
    const Serving serving =
        reader.read(deployed.engine, deployed.version, deployed.chip, deployed.command);
    if (!serving.refused.serves) throw UsageError(serving.refused.cause);
    const CostModel cost(serving.target, serving.settings);
    if (cost.memory().cache_tokens == 0) throw UsageError("no memory for the cache");
    TrafficMeans means;
    means.requests = std::size_t(deployed.requests);
    means.prompt_tokens = deployed.input_tokens;
    means.output_tokens = deployed.output_tokens;
    return {{serving.target,
             serving.settings,
             means,
             {.kind = Arrival::Kind::concurrency, .in_flight = std::int64_t(deployed.in_flight)},
             {}},
            memory_margin(cost.memory(), deployed.input_tokens + deployed.output_tokens),
            1 / deployed.devices};
}

}  // namespace

std::shared_ptr<const PriorMean> belief_of(
    const TableChoice& choice, const std::vector<std::pair<Configuration, TableCells>>& rows) {
    const auto* deployed_of = entry_in(readers, choice.kind);
    if (deployed_of == nullptr) return nullptr;
    const Catalogue catalogue = Catalogue::standard();
    RowReader reader(catalogue);
    auto read_rows = std::make_shared<TableBelief::Rows>();
    std::size_t predicted = 0;  // of the rows, some of which repeat a configuration
    for (const auto& [configuration, cells] : rows) {
        try {
            const auto deployed = (*deployed_of)(cells);
            if (!deployed) continue;
            read_rows->emplace(configuration, read(*deployed, reader));
            ++predicted;
        } catch (const Error&) {
            continue;  // nothing is believed of it
        }
    }
    if (2 * predicted < rows.size()) return nullptr;
    return std::make_shared<TableBelief>(std::move(read_rows), choice.objective, std::nullopt);
}

}  // namespace servetune::convergence
