// SPDX-License-Identifier: Apache-2.0
#include "servetune/result_file.hpp"

#include "aiperf_records.hpp"
#include "base/nesting.hpp"
#include "perf_table.hpp"
#include "printed_tables.hpp"
#include "result_formats.hpp"
#include "result_sweep.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// In the order in which they are tried: the more special first.
const std::array<const ResultFormat*, 16> formats{
    &servetune_format,      &gpustack_format,
    &guidellm_format,       &aiperf_sweep_format,
    &aiperf_runs_format,    &aiperf_format,
    &genai_perf_format,     &sglang_format,
    &vllm_format,           &sweep_format,
    &inference_perf_format, &llama_bench_format,
    &evalscope_format,      &evalscope_percentiles_format,
    &inferencex_format,     &sweep_failure_format};

/// As deep as YAML may nest (study_file/yaml.hpp); results nest less than ten.
constexpr std::size_t deepest = 100;

std::string place(std::string_view text, std::size_t at, const std::string& name) {
    const std::string_view before = text.substr(0, std::min(at, text.size()));
    const auto line = before.rfind('\n');
    return name + ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ":" +
           std::to_string(before.size() - (line == std::string_view::npos ? 0 : line + 1) + 1) +
           ": ";
}

bool json_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::size_t after_blanks(std::string_view text, std::size_t at) {
    while (at < text.size() && json_blank(text[at])) ++at;
    return at;
}

/// `{"`, `{}`, `[{`, `[]`: JSON. A link (`[text](address)`) or a template (`{% raw %}`) begins a
/// document.
bool begins_json(std::string_view text) {
    const std::size_t first = after_blanks(text, 0);
    if (first == text.size() || (text[first] != '{' && text[first] != '[')) return false;
    const std::size_t second = after_blanks(text, first + 1);
    if (second == text.size()) return true;
    return text[first] == '{' ? text[second] == '"' || text[second] == '}'
                              : text[second] == '{' || text[second] == ']';
}

/// One value of a stream of values: `{...}` or `[...]`. Python writes the bare words NaN, Infinity
/// and -Infinity, which are no JSON and never a figure: an empty text of the same length takes
/// their place, so that places in messages stay right.
struct JsonText {
    std::size_t begin, end;
    std::optional<std::size_t> no_figure{};  ///< where the first of these words stood
};
std::vector<JsonText> values_of(std::string& text, const std::string& name) {
    std::vector<JsonText> values;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (depth == 0) {
            if (json_blank(c)) continue;
            if (c != '{' && c != '[')
                throw ParseError(place(text, i, name) +
                                 "a JSON object wanted, one a line or one in the whole file");
            values.push_back({.begin = i, .end = text.size()});
        }
        if (c == '"') {
            for (++i; i < text.size() && text[i] != '"'; ++i)
                if (text[i] == '\\') ++i;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest)
                throw ParseError(place(text, i, name) + "JSON nested more than " +
                                 std::to_string(deepest) + " deep");
        } else if (c == '}' || c == ']') {
            if (--depth == 0) values.back().end = i + 1;
        } else if (c == 'N' || c == 'I' || c == '-') {
            for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
                if (text.compare(i, word.size(), word) != 0) continue;
                if (!values.back().no_figure) values.back().no_figure = i;
                text.replace(i, word.size(), "\"\"" + std::string(word.size() - 2, ' '));
                i += word.size() - 1;
                break;
            }
        }
    }
    return values;
}

/// Parses one value. The texts of prompts and answers and GuideLLM's records of requests have no
/// figure for us and can be most of the file: they are passed over.
Json parsed_json(std::string_view text, JsonText value, const std::string& name) {
    static const std::set<std::string, std::less<>> passed_over{
        "requests", "request_samples", "generated_texts", "pdf", "internal_states"};
    // A field of a small object takes up to a kilobyte. Reports have some thousands.
    constexpr std::size_t most_fields = 300'000;
    const auto keep = [once = RefuseDeepAndTwice(), fields = std::size_t{0}](
                          int depth, Json::parse_event_t event, Json& key) mutable {
        (void)once(depth, event, key);
        if (event == Json::parse_event_t::key && ++fields > most_fields)
            throw ParseError("JSON of more than " + std::to_string(most_fields) +
                             " fields is not read");
        return event != Json::parse_event_t::key ||
               !passed_over.contains(key.get_ref<const std::string&>());
    };
    try {
        return Json::parse(text.substr(value.begin, value.end - value.begin), keep);
    } catch (const Json::parse_error& error) {
        const std::size_t at = value.begin + (error.byte == 0 ? 0 : error.byte - 1);
        const bool cut_off = at >= text.size() || value.end == text.size();
        throw ParseError(place(text, at, name) + "not JSON" + (cut_off ? ", or cut off" : ""));
    } catch (const ParseError& error) {
        throw ParseError(place(text, value.begin, name) + error.what());
    } catch (const Json::exception& error) {  // a number that no double holds
        throw ParseError(place(text, value.begin, name) + "not readable: " + error.what());
    }
}

std::string found(const Json& value) {
    if (value.is_array())
        return "a list of " + std::to_string(value.size()) +
               (value.size() == 1 ? " value" : " values");
    std::vector<std::string> keys;
    for (const auto& [key, child] : value.items())
        if (keys.size() < 8) keys.push_back(one_line(std::string_view(key).substr(0, 40)));
    return keys.empty() ? "an empty object"
                        : "an object with the keys " + listed(keys, keys.size()) +
                              (value.size() > keys.size() ? ", ..." : "");
}

/// `no_figure`: the place of a word such as NaN in it; empty: there is none.
[[noreturn]] void refuse(const Json& value, const std::string& where,
                         const std::string& no_figure) {
    const std::string not_numbers =
        no_figure.empty()
            ? ""
            : "; NaN and Infinity are no figures, and the first of them stands at " + no_figure;
    std::string known;
    for (const ResultFormat* format : formats)
        known += "\n  " + std::string(format->tool) + ": " + std::string(format->keys);
    throw ParseError(
        where + "no benchmark's result: " + found(value) +
        (value.is_array()
             ? " (vLLM's *.pytorch.json are such lists: the result is the file beside it)"
             : "") +
        not_numbers + "; known:" + known);
}

void add_results(std::vector<PublishedResult>& results, std::vector<PublishedResult> more,
                 const std::string& name) {
    for (PublishedResult& result : more) {
        if (results.size() == most_results)
            throw ParseError(name + ": more than " + std::to_string(most_results) +
                             " results in one file; split it");
        // Both counts say how many requests were issued; a tool's own "requested" is what was asked
        // for.
        BenchmarkResult& figures = result.result;
        if (figures.successful_requests && figures.failed_requests)
            figures.requested_requests = *figures.successful_requests + *figures.failed_requests;
        for (auto* asked : {&figures.requested_requests, &figures.maximum_concurrency,
                            &figures.requested_rate_per_second})
            if (*asked < 0) asked->reset();  // -1: no bound
        result.index = results.size();
        results.push_back(std::move(result));
    }
}

}  // namespace

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

bool is_result_table(std::string_view content) {
    return is_sweep_table(content) || is_perf_table(content);
}

std::vector<PublishedResult> read_results(std::string_view content, const std::string& name,
                                          const std::vector<Engine>& engines) {
    if (content.size() > largest_result_bytes)
        throw ParseError(name + ": results have at most " + std::to_string(largest_result_bytes) +
                         " bytes, got " + std::to_string(content.size()));
    std::vector<PublishedResult> results;
    if (is_sweep_table(content)) {
        add_results(results, read_sweep_table(content, name), name);
        return results;
    }
    if (is_perf_table(content)) {
        add_results(results, {read_perf_table(content, name)}, name);
        return results;
    }
    if (!begins_json(content)) {
        std::vector<PublishedResult> published = read_published(content, engines);
        if (published.empty())
            throw ParseError(name +
                             ": no result in it; wanted: printed blocks of vLLM, SGLang or "
                             "GPUStack, printed tables of " +
                             std::string(printed_table_tools) +
                             ", JSON or CSV of a benchmark (docs/reference/result-formats.md)");
        // What an output looks like is no result.
        std::erase_if(published, [](const PublishedResult& result) {
            return result.failure.empty() && !has_figures(result.result);
        });
        if (published.empty())
            throw ParseError(name +
                             ": its result blocks have no figures that can be read: what stands "
                             "for them (xxx.xx), or a log puts something "
                             "before each line");
        add_results(results, std::move(published), name);
        return results;
    }
    std::string text(content);
    AiperfRecords records;
    std::size_t first_record = 0;
    for (const JsonText& value : values_of(text, name)) {
        const Json json = parsed_json(text, value, name);
        if (AiperfRecords::recognises(json)) {  // one a request, not one a result
            if (records.empty()) first_record = value.begin;
            records.add(json);
            continue;
        }
        const auto format =
            std::find_if(formats.begin(), formats.end(),
                         [&](const ResultFormat* known) { return known->recognises(json); });
        if (format == formats.end()) {
            const std::string at = value.no_figure ? place(text, *value.no_figure, name) : "";
            refuse(json, place(text, value.begin, name), at.substr(0, at.rfind(": ")));
        }
        std::vector<PublishedResult> more;
        try {
            more = (*format)->read(json);
        } catch (const ParseError& error) {
            throw ParseError(place(text, value.begin, name) + error.what());
        }
        if (more.empty())
            throw ParseError(place(text, value.begin, name) + "a file of " +
                             std::string((*format)->tool) + " without a result");
        add_results(results, std::move(more), name);
    }
    if (!records.empty()) {
        try {
            add_results(results, {records.result()}, name);
        } catch (const ParseError& error) {
            throw ParseError(place(text, first_record, name) + error.what());
        }
    }
    return results;
}

}  // namespace servetune
