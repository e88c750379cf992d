// SPDX-License-Identifier: Apache-2.0
// What each tool writes, in rows; what a row cannot say, in a function of the tool.
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "result_format.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "study/table.hpp"
#include "table_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using B = BenchmarkResult;
using P = PublishedResult;

/// The node at a path; nullptr when any key is missing or its parent is no object. `0`: of a list
/// the first.
const Json* node_at(const Json& value, std::string_view path) {
    const Json* at = &value;
    for (const std::string& key : parts_of(path, '>')) {
        if (const auto index = integer_of(key); at->is_array() && index) {
            if (at->size() <= std::size_t(*index)) return nullptr;
            at = &(*at)[std::size_t(*index)];
            continue;
        }
        if (!at->is_object()) return nullptr;
        const auto child = at->find(key);
        if (child == at->end()) return nullptr;
        at = &*child;
    }
    return at;
}

/// The finite number at a path, times ten to the `exponent` (the double nearest to the decimal).
/// Anything else is no figure: null, text in the place of a number. A negative one is a figure that
/// cannot be, and the audit says so.
std::optional<double> figure_at(const Json& value, std::string_view path, int exponent = 0) {
    const Json* node = node_at(value, path);
    if (node == nullptr || !node->is_number()) return std::nullopt;
    const double number = node->get<double>();
    if (!std::isfinite(number)) return std::nullopt;
    if (exponent == 0 || number == 0) return number;
    // Shifted in the text, so that 15.12 ms is the double nearest to 0.01512.
    const std::string text = text_of(number);
    const auto power = text.find('e');
    const auto digits = std::string_view(text).substr(0, power);
    const std::int64_t shifted =
        exponent +
        (power == npos
             ? 0
             : integer_of(text.substr(power + (text[power + 1] == '+' ? 2 : 1))).value_or(0));
    return real_of(std::string(digits) + "e" + std::to_string(shifted));
}
/// The same of what was asked for, where a negative number says "none" or "not known".
std::optional<double> setting_at(const Json& value, std::string_view path) {
    const auto figure = figure_at(value, path);
    return figure < 0.0 ? std::nullopt : figure;
}

bool is_text_at(const Json& value, std::string_view path) {
    const Json* node = node_at(value, path);
    return node != nullptr && node->is_string();
}
/// In one line; empty when there is none.
std::string text_at(const Json& value, std::string_view path) {
    return is_text_at(value, path) ? one_line(node_at(value, path)->get_ref<const std::string&>())
                                   : "";
}
bool is_at(const Json& value, std::string_view path, const Json& wanted) {
    const Json* node = node_at(value, path);
    return node != nullptr && *node == wanted;
}
/// A line of tables/known_by.txt: the tool, then what its results have.
bool is_known_by(const Json& value, const Texts& line) {
    return std::all_of(line.begin() + 1, line.end(), [&](std::string_view path) {
        const bool any = path.ends_with('?');
        const Json* node = node_at(value, path.substr(0, path.size() - std::size_t(any)));
        return node != nullptr && (any || node->is_number());
    });
}

/// By the names of units in files; a figure of an unknown unit is none.
constexpr std::array<std::pair<std::string_view, int>, 11> units{{{"ns", -9},
                                                                  {"us", -6},
                                                                  {"ms", -3},
                                                                  {"ms/token", -3},
                                                                  {"sec", 0},
                                                                  {"s", 0},
                                                                  {"seconds", 0},
                                                                  {"s/token", 0},
                                                                  {"tokens/s", 0},
                                                                  {"queries/s", 0},
                                                                  {"count", 0}}};
std::optional<int> exponent_of(std::string_view unit) {
    const auto* found = find_if(units, [&](const auto& one) { return one.first == unit; });
    return found == units.end() ? std::nullopt : std::optional(found->second);
}

constexpr std::array time_statistics{&TimeSummary::mean, &TimeSummary::p50,
                                     &TimeSummary::p90,  &TimeSummary::p95,
                                     &TimeSummary::p99,  &TimeSummary::standard_deviation};
constexpr std::array times_of_requests{&B::time_to_first_token, &B::time_per_output_token,
                                       &B::inter_token_latency, &B::latency};

/// Adds what a line `PATH = FIGURE [UNIT] [each] [>KEY]` says.
void add_row(FormatTable& table, std::string_view line, std::span<const std::string> statistics) {
    const std::size_t middle = line.find(" = ");
    const std::string path(line.substr(0, middle));
    const Texts words = words_of(line.substr(middle + 3));
    FormatRow row{path};
    row.read_only = table.read_only;
    for (std::size_t i = 1; i < words.size(); ++i)
        if (words[i] == "each") row.each = true;
        else if (words[i].starts_with('>'))
            row.unit_path = path.substr(0, path.rfind('>')) + words[i];
        else row.exponent = exponent_of(row.unit = words[i]).value();
    for (const auto& [name, text] :
         {std::pair{"model", &P::model}, {"dataset", &P::dataset}, {"date", &P::date}})
        if (words[0] == name) row.text = text;
    const std::size_t star = path.find('*');
    const std::string figure = words[0] + (star == npos ? "" : "_mean_seconds");
    Texts names;
    const B no_figures;
    for_each_figure(no_figures,
                    [&](const std::string& name, const auto&) { names.push_back(name); });
    row.figure = std::size_t(std::find(names.begin(), names.end(), figure) - names.begin());
    if (row.text == nullptr && row.figure == names.size() && figure != "title")
        throw std::logic_error("no figure: " + figure);
    if (star == npos) table.rows.push_back(row);
    else
        for (const std::string& statistic : statistics) {
            row.path = std::string(path).replace(star, 1, statistic);
            if (statistic != "-") table.rows.push_back(row);
            ++row.figure;
        }
}

std::map<std::string, FormatTable, std::less<>> read_format_tables() {
    std::map<std::string, FormatTable, std::less<>> result;
    FormatTable* table = nullptr;
    Texts statistics;
    for (const std::string& line : parts_of(figures_of_tools_txt.text, '\n')) {
        if (line.empty() || line.starts_with('#')) continue;
        if (line.starts_with('[')) table = &result[line.substr(1, line.size() - 2)];
        else if (line == "read only") table->read_only = true;
        else if (line.starts_with("statistics: ")) statistics = words_of(line.substr(12));
        else if (line.starts_with("used: "))
            for (std::string& key : words_of(line.substr(6))) table->used.insert(std::move(key));
        else add_row(*table, line, statistics);
    }
    for (auto& [name, one] : result)
        for (const FormatRow& row : one.rows) one.used.insert(row.path);
    return result;
}

PublishedResult read_one(const Json& value, const ResultFormat& format) {
    const FormatTable& table = format_table(format.table);
    PublishedResult result;
    result.tool = format.tool;
    result.arguments_unknown = true;
    const auto figures = figures_in(result.result);
    for (const FormatRow& row : table.rows) {
        if (row.text != nullptr) {
            if (std::string& text = result.*row.text; text.empty()) text = text_at(value, row.path);
            continue;
        }
        const auto exponent =
            row.unit_path.empty() ? row.exponent : exponent_of(text_at(value, row.unit_path));
        if (const auto figure = figure_at(value, row.path, exponent.value_or(0));
            exponent && figure)
            *figures[row.figure] = figure;
    }
    if (!table.used.contains("*"))
        for (const auto& [key, child] : value.items())
            if (!child.is_structured() && !child.is_null() && !table.used.contains(key))
                result.unread[one_line(key)] = child.is_string() ? text_at(child, {})
                                               : child.is_number_float()
                                                   ? text_of(child.get<double>())
                                                   : child.dump();
    format.finish(value, result);
    // Of a mean of the successes their sum.
    const double successes = std::max(0.0, result.result.successful_requests.value_or(0));
    for (const FormatRow& row : table.rows) {
        if (!row.each || !figure_at(value, row.path)) continue;
        auto& figure = *figures[row.figure];
        if (figure) *figure = std::round(*figure * successes);
        if (figure && !(*figure != 0 && std::isfinite(*figure))) figure.reset();
    }
    return result;
}

void add_label(PublishedResult& result, const std::string& label) {
    if (!label.empty()) result.labels.push_back(label);
}

// -------------------------------------------------------------------------------------------------
// `vllm bench serve`, and SGLang's bench_serving, which came from it: times in milliseconds. Our
// own, which are vLLM's and more.

void finish_serving(const Json& value, PublishedResult& result) {
    BenchmarkResult& figures = result.result;
    drop_unmeasured(figures);
    // SGLang counts no failures: its details have an error for each request, "" of a success.
    if (const Json* errors = node_at(value, "errors");
        errors != nullptr && errors->is_array() && !figures.failed_requests) {
        const auto good = double(std::count(errors->begin(), errors->end(), ""));
        if (figures.successful_requests == good)
            figures.failed_requests = double(errors->size()) - good;
    }
    for (const char* key : {"_benchmark_name", "label", "tag"})
        add_label(result, text_at(value, key));
    add_label(result, result.dataset);
    if (is_at(value, "run_number", -1)) result.labels.emplace_back("warm-up");  // of a sweep
}

/// The keys of vLLM in our files are the same figures in its units, for its readers; ours are
/// exact. The verdict is what the audit said when the load test ended.
void finish_ours(const Json& value, PublishedResult& result) {
    for_each_figure(result.result, [&](const std::string& name, std::optional<double>& figure) {
        figure = figure_at(value, "servetune>figures>" + name);
    });
    if (const auto verdict = named_in(verdicts, text_at(value, "servetune>verdict"))) {
        result.validity.verdict = *verdict;
        const Json* findings = node_at(value, "servetune>findings");
        if (findings != nullptr && findings->is_array())
            for (const Json& finding : *findings)
                result.validity.findings.push_back(
                    {text_at(finding, "id"), text_at(finding, "left"), text_at(finding, "right"),
                     text_at(finding, "cause")});
    }
    add_label(result, text_at(value, "label"));
    add_label(result, result.dataset);
    result.arguments_unknown = !is_text_at(value, "servetune>arguments");
    if (!result.arguments_unknown)
        result.arguments = value.at("servetune").at("arguments").get<std::string>();
}

// -------------------------------------------------------------------------------------------------
// NVIDIA's GenAI-Perf and AIPerf: one object a metric with its unit and statistics

void finish_metrics(const Json& value, PublishedResult& result) {
    // Without streaming GenAI-Perf writes the whole latency as the time to the first token.
    if (is_at(value, "input_config>endpoint>streaming", false))
        result.result.time_to_first_token = result.result.time_per_output_token = {};
}

void finish_genai_perf(const Json& value, PublishedResult& result) {
    finish_metrics(value, result);
    result.result.inter_token_latency = {};
    if (is_at(value, "input_config>perf_analyzer>measurement>mode", "request_count"))
        result.result.requested_requests =
            setting_at(value, "input_config>perf_analyzer>measurement>num");
    // -1: without bounds on times.
    result.result.goodput_requests_per_second = setting_at(value, "request_goodput>avg");
}

void finish_aiperf(const Json& value, PublishedResult& result) {
    finish_metrics(value, result);
    BenchmarkResult& figures = result.result;
    // The count is left out of a run without errors; two other fields then say that there were
    // none. A run without successes has no count of them either.
    const auto rate = figure_at(value, "request_error_rate>avg");
    if (!figures.failed_requests && (rate == 0 || is_at(value, "error_summary", Json::array())))
        figures.failed_requests = 0;
    if (!figures.successful_requests && rate == 100) figures.successful_requests = 0;
    if (is_at(value, "was_cancelled", true)) add_cut_short(result, "the tool says: cancelled");
    // The load, in the configuration of 2026: of the one phase that is no warm-up.
    std::vector<Json> measured;
    if (const Json* phases = node_at(value, "input_config>phases");
        phases != nullptr && phases->is_array())
        for (const Json& phase : *phases)
            if (!is_at(phase, "kind", "warmup") && !is_at(phase, "name", "warmup"))
                measured.push_back(phase);
    if (measured.size() != 1) return;
    for (const auto& [key, figure] : {std::pair{"concurrency", &figures.maximum_concurrency},
                                      {"rate", &figures.requested_rate_per_second},
                                      {"requests", &figures.requested_requests}})
        if (const auto asked = setting_at(measured[0], key)) *figure = asked;
}

// -------------------------------------------------------------------------------------------------
// GuideLLM since 0.4

/// How GuideLLM itself prints a strategy: `synchronous`, `concurrent@4`, `constant@6.50`,
/// `throughput@unlimited`.
void finish_guidellm(const Json& value, PublishedResult& result) {
    if (value.contains("args") || value.contains("run_stats"))
        throw ParseError(
            "a report of GuideLLM before 0.4, whose time per output token is another: measure "
            "with a later one");
    BenchmarkResult& figures = result.result;
    // A distribution of nothing is written as zeros with count 0.
    for (const FormatRow& row : format_table("guidellm").rows)
        if (const std::size_t end = row.path.rfind("successful>");
            end != std::string::npos &&
            figure_at(value, row.path.substr(0, end) + "successful>count") == 0)
            figures_in(figures)[row.figure]->reset();
    // Cancelled at the time limit: neither successful nor failed.
    if (const auto cut = figure_at(value, "metrics>request_totals>incomplete"); cut && *cut > 0) {
        result.unread["incomplete requests"] = text_of(*cut);
        figures.requested_requests =
            *cut + figures.successful_requests.value_or(0) + figures.failed_requests.value_or(0);
    }
    // A window within the run: whoever is in flight at its edges counts, whole.
    for (const char* edge : {"warmup_duration", "cooldown_duration"})
        if (figure_at(value, edge) > 0.0) figures.duration_seconds.reset();
    std::string type = text_at(value, "config>strategy>type_");
    if (type.empty()) type = text_at(value, "config>strategy>kind");
    const auto streams = setting_at(value, "config>strategy>streams"),
               rate = setting_at(value, "config>strategy>rate"),
               // Since 0.8 a strategy without a cap says 10240, its profile null.
        most = node_at(value, "config>profile>max_concurrency") == nullptr
                   ? setting_at(value, "config>strategy>max_concurrency")
                   : setting_at(value, "config>profile>max_concurrency");
    figures.maximum_concurrency = type == "synchronous" ? 1 : type == "concurrent" ? streams : most;
    if (type == "constant" || type == "poisson") figures.requested_rate_per_second = rate;
    if (type == "concurrent" && streams) type += "@" + text_of(*streams);
    else if (type == "throughput") type += "@" + (most ? text_of(*most) : "unlimited");
    else if (const auto asked = figures.requested_rate_per_second)
        type += "@" + fixed_text(*asked, 2);
    add_label(result, type);
}

// -------------------------------------------------------------------------------------------------
// `evalscope perf` since 0.17.1

/// Totals are means of all successes; means are -1 where nothing succeeded, 0 where nothing was
/// measured. An answer that was not streamed has its latency as the time to the first token.
void finish_evalscope(const Json&, PublishedResult& result) {
    BenchmarkResult& figures = result.result;
    for (auto* load : {&figures.maximum_concurrency, &figures.requested_rate_per_second})
        if (*load <= 0) load->reset();
    for (const auto family : times_of_requests)
        if (!(figures.successful_requests > 0.0) || (figures.*family).mean == 0)
            figures.*family = {};
    if (!figures.time_per_output_token.mean) figures.time_to_first_token = {};
}

// -------------------------------------------------------------------------------------------------
// InferenceX (InferenceMAX before): agg_*.json of one run, or agg_bmk.json, a list of them, made of
// vLLM's result: times in seconds, tokens a second of one GPU

/// Rates are those of one GPU. Where prompts and answers do not add up to all tokens, or servers on
/// several nodes share the work, nobody knows by how many GPUs the tool divided.
void finish_inferencex(const Json& value, PublishedResult& result) {
    const auto tensor = setting_at(value, "tp");
    const double gpus = tensor.value_or(0) * setting_at(value, "pp").value_or(1) *
                        setting_at(value, "pcp_size").value_or(1);
    const auto whole = [&](const char* key) {
        const auto rate = figure_at(value, key);
        return rate && std::isfinite(*rate * gpus) ? std::optional(*rate * gpus) : std::nullopt;
    };
    if (gpus > 0 && !is_at(value, "is_multinode", true)) {
        const auto all = whole("tput_per_gpu"), prompts = whole("input_tput_per_gpu"),
                   answers = whole("output_tput_per_gpu");
        const bool adds_up = !all || !prompts || !answers ||
                             std::abs(*prompts + *answers - *all) <= 1e-6 * std::abs(*all);
        result.result.total_tokens_per_second = all;
        result.unread.erase("tput_per_gpu");
        if (adds_up) {
            result.result.input_tokens_per_second = prompts;
            result.result.output_tokens_per_second = answers;
            result.unread.erase("input_tput_per_gpu");
            result.unread.erase("output_tput_per_gpu");
        }
    }
    // The engine's flags are in a recipe elsewhere.
    const std::string framework = text_at(value, "framework");
    if (framework == "vllm" || framework == "sglang") result.engine = framework;
    std::string label = text_at(value, "hw");
    for (const std::string& part : {framework, text_at(value, "precision")})
        if (!part.empty()) label += " " + part;
    for (const char* key : {"isl", "osl", "conc"})  // rows of one list are of other loads
        if (const auto number = setting_at(value, key))
            label += std::string(" ") + key + "=" + text_of(*number);
    add_label(result, label);
}

// -------------------------------------------------------------------------------------------------
// llama-bench: prompts alone, answers alone, or both, of one stream. No server and no requests:
// rates and lengths only

void finish_llama_bench(const Json& value, PublishedResult& result) {
    BenchmarkResult& figures = result.result;
    std::string label;
    for (auto [tokens, name] :
         {std::pair{&figures.input_tokens, "pp"}, std::pair{&figures.output_tokens, "tg"}}) {
        if (!(*tokens > 0)) tokens->reset();
        else label += (label.empty() ? "" : "+") + std::string(name) + short_number_text(**tokens);
    }
    (figures.input_tokens && figures.output_tokens ? figures.total_tokens_per_second
     : figures.input_tokens                        ? figures.input_tokens_per_second
                            : figures.output_tokens_per_second) = figure_at(value, "avg_ts");
    // Behind a context of so many tokens, which are in no rate and no time.
    if (const auto depth = setting_at(value, "n_depth"); depth && *depth > 0)
        label += " @ d" + short_number_text(*depth);
    add_label(result, label);
}

// -------------------------------------------------------------------------------------------------
// inference-perf since 0.7, a stage or all of them

/// In a stage of a fixed concurrency all requests are scheduled for its start, and their number is
/// the rate.
void finish_inference_perf(const Json&, PublishedResult& result) {
    BenchmarkResult& figures = result.result;
    if (figures.maximum_concurrency) figures.requested_rate_per_second.reset();
    if (!figures.requested_rate_per_second) figures.client = {};
}

// -------------------------------------------------------------------------------------------------
// llm-d's Benchmark Report 0.2, of any load generator

void finish_llm_d(const Json& value, PublishedResult& result) {
    BenchmarkResult& figures = result.result;
    const double ended =
        figures.requested_requests.value_or(NAN) - figures.failed_requests.value_or(NAN) -
        figure_at(value, "results>request_performance>aggregate>requests>incomplete").value_or(0);
    if (std::isfinite(ended)) figures.successful_requests = ended;
    // AIPerf calls so what others call time per output token.
    const std::string generator = text_at(value, "scenario>load>standardized>tool");
    if (generator == "aiperf" && !figures.time_per_output_token.mean)
        std::swap(figures.time_per_output_token, figures.inter_token_latency);
    if (!generator.empty()) result.tool += " of " + generator;
    for (const char* path : {"scenario>load>metadata>description", "run>description"})
        add_label(result, text_at(value, path));
    // The flags of one engine; where there are none, nobody says that it had none.
    const Json* flags = node_at(value, "scenario>stack>0>native>args");
    if (flags == nullptr || !flags->is_object() || node_at(value, "scenario>stack>1")) return;
    for (const auto& [name, text] : flags->items()) {
        result.arguments_unknown = false;
        result.arguments += "--" + one_line(name) + " " + text_at(text, {}) + " ";
    }
}

constexpr std::array<ResultFormat, 11> known_formats{
    {{"servetune", "servetune", finish_ours},
     {"sglang", "serving", finish_serving},
     {"vllm", "serving", finish_serving},
     {"aiperf", "metrics", finish_aiperf},
     {"genai-perf", "metrics", finish_genai_perf},
     {"guidellm", "guidellm", finish_guidellm, "benchmarks"},
     {"evalscope", "evalscope", finish_evalscope},
     {"inferencex", "inferencex", finish_inferencex},
     {"llama-bench", "llama-bench", finish_llama_bench},
     {"inference-perf", "inference-perf", finish_inference_perf},
     {"llm-d", "llm-d", finish_llm_d}}};

/// The lines of tables/known_by.txt.
const std::vector<Texts>& known_by() {
    static const auto all = [] {
        std::vector<Texts> lines;
        for (const std::string& line : parts_of(known_by_txt.text, '\n'))
            if (!line.empty() && !line.starts_with('#'))
                for (lines.emplace_back(); const std::string& word : parts_of(line, ','))
                    lines.back().emplace_back(trimmed(word));
        return lines;
    }();
    return all;
}

constexpr std::array<std::string_view, 3> sweep_columns{"duration", "completed",
                                                        "request_throughput"};

std::string found_in(const Json& value) {
    if (value.is_array()) return "a list of " + std::to_string(value.size()) + " values";
    Texts keys;
    if (value.is_object())
        for (const auto& [key, child] : value.items())
            if (keys.size() < 8) keys.push_back(one_line(std::string_view(key).substr(0, 40)));
    return keys.empty() ? "nothing with a key"
                        : "an object with the keys " + listed(keys, keys.size()) +
                              (value.size() > keys.size() ? ", ..." : "");
}

[[noreturn]] void refuse(const Json& value) {
    std::string known;
    std::string_view last;
    for (const auto& line : known_by())
        if (std::exchange(last, line[0]) != line[0])
            known +=
                fmt::format("\n  {}: {}", line[0], fmt::join(line.begin() + 1, line.end(), ", "));
    known = replaced_all(replaced_all(known, ">", "."), "?", "");
    throw ParseError("no benchmark's result: " + found_in(value) + "; known:" + known);
}

}  // namespace

const FormatTable& format_table(std::string_view name) {
    static const auto tables = read_format_tables();
    return tables.find(name)->second;
}

std::vector<std::optional<double>*> figures_in(BenchmarkResult& result) {
    std::vector<std::optional<double>*> all;
    for_each_figure(result, [&](const std::string&, auto& figure) { all.push_back(&figure); });
    return all;
}

std::vector<PublishedResult> results_of(const Json& value) {
    const Json* list = value.is_array() ? &value : nullptr;
    std::string_view key;  // of the report's list
    for (const ResultFormat& format : known_formats)
        if (const Json* found = node_at(value, format.list);
            !format.list.empty() && found != nullptr && found->is_array()) {
            list = found;
            key = format.list;
        }
    std::vector<PublishedResult> results;
    const auto read = [&](const Json& one) {
        const auto* const format = find_if(known_formats, [&](const ResultFormat& known) {
            return known.list == key && one.is_object() &&
                   any_of(known_by(), [&](const auto& line) {
                       return line[0] == known.tool && is_known_by(one, line);
                   });
        });
        if (format != known_formats.end()) results.push_back(read_one(one, *format));
        else if (results.empty()) refuse(value);
        else
            throw ParseError("value " + std::to_string(results.size() + 1) +
                             " of the list is no result, as those before it are: " + found_in(one));
    };
    if (list == nullptr) read(value);
    else
        for (const Json& one : *list) read(one);
    if (results.empty()) refuse(value);
    return results;
}

void drop_unmeasured(BenchmarkResult& figures) {
    const auto all_zero = [](const TimeSummary& times) {
        return all_of(time_statistics,
                      [&](auto statistic) { return (times.*statistic).value_or(0) == 0; });
    };
    const bool none_succeeded = figures.successful_requests && *figures.successful_requests <= 0;
    const bool tokens_took_time = !all_zero(figures.time_per_output_token);
    for (const auto family : times_of_requests) {
        const bool a_finding = family == &B::inter_token_latency && tokens_took_time;
        if (none_succeeded || (all_zero(figures.*family) && !a_finding)) figures.*family = {};
    }
    if (none_succeeded) return;
    for (auto* figure : {&figures.input_tokens, &figures.peak_concurrent_requests,
                         &figures.peak_output_tokens_per_second})
        if (*figure == 0) figure->reset();  // a success cannot do without: not counted
}

std::string one_line(std::string_view text) {
    constexpr std::size_t longest = 500;
    std::string result(text.substr(0, longest));
    if (text.size() > longest)  // not in the middle of a character
        while (!result.empty() &&
               (static_cast<unsigned char>(text[result.size()]) & 0xC0U) == 0x80U)
            result.pop_back();
    for (char& c : result)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
    return result;
}

bool has_figures(BenchmarkResult result) {
    for (auto* asked : {&result.requested_requests, &result.maximum_concurrency,
                        &result.requested_rate_per_second})
        asked->reset();
    bool some = false;
    for_each_figure(result, [&](const std::string&, const std::optional<double>& figure) {
        some = some || figure.has_value();
    });
    return some;
}

bool is_sweep_table(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const std::string header = "," + std::string(text.substr(0, text.find_first_of("\r\n"))) + ",";
    return all_of(sweep_columns, [&](std::string_view wanted) {
        return contains(header, "," + std::string(wanted) + ",");
    });
}

/// pandas writes `64.0` in a column of whole numbers where a row has none, and nothing for None and
/// NaN. A name is a text, also that of a model called `7e5`; lists of requests are no figures.
Json rows_of_sweep_table(std::string_view text, const std::string& name) {
    const std::vector<CsvRow> rows = parse_csv(text, name);
    const Texts& header = rows.front().cells;
    if (rows.size() < 2 || rows.size() > most_results + 1)
        throw ParseError(name + ": a table of 1 to " + std::to_string(most_results) +
                         " rows wanted, got " + std::to_string(rows.size() - 1));
    Json runs = Json::array();
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const Texts& cells = cells_of(rows[r], header.size(), name);
        Json& run = runs.emplace_back(Json::object());
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (cells[i].empty() || header[i].empty() || cells[i].front() == '[') continue;
            const auto number = real_of(cells[i]);
            const bool is_name = header[i] == "date" || header[i].ends_with("_id") ||
                                 header[i] == "label" || header[i] == "_benchmark_name";
            run[header[i]] = number && !is_name ? Json(*number) : Json(cells[i]);
        }
        for (const std::string_view column : sweep_columns)
            if (const auto cell = run.find(std::string(column));
                cell == run.end() || !cell->is_number())
                throw ParseError(name + ":" + std::to_string(rows[r].line) +
                                 ": a number wanted in " + std::string(column));
    }
    return runs;
}

}  // namespace servetune
