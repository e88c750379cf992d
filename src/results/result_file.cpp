// SPDX-License-Identifier: Apache-2.0
#include "servetune/result_file.hpp"

#include "base/nearest.hpp"
#include "base/nesting.hpp"
#include "printed_block.hpp"
#include "result_format.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>

namespace servetune {

const nlohmann::json* node_at(const nlohmann::json& value, std::string_view path) {
    const nlohmann::json* at = &value;
    while (!path.empty()) {
        const std::string_view key = path.substr(0, path.find('>'));
        path.remove_prefix(std::min(path.size(), key.size() + 1));
        if (!at->is_object()) return nullptr;
        const auto child = at->find(std::string(key));
        if (child == at->end()) return nullptr;
        at = &*child;
    }
    return at;
}

std::optional<double> figure_at(const nlohmann::json& value, std::string_view path, int exponent) {
    const auto* node = node_at(value, path);
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
        (power == std::string::npos
             ? 0
             : integer_of(text.substr(power + (text[power + 1] == '+' ? 2 : 1))).value_or(0));
    return real_of(std::string(digits) + "e" + std::to_string(shifted));
}

std::optional<double> setting_at(const nlohmann::json& value, std::string_view path) {
    const auto figure = figure_at(value, path);
    return figure < 0.0 ? std::nullopt : figure;
}

std::string text_at(const nlohmann::json& value, std::string_view path) {
    const auto* node = node_at(value, path);
    return node != nullptr && node->is_string() ? one_line(node->get_ref<const std::string&>())
                                                : "";
}

TimeSummary times_at(const nlohmann::json& value, std::string_view path,
                     const StatisticNames& statistics, int exponent) {
    TimeSummary result;
    const std::size_t star = path.find('*');
    if (star == std::string_view::npos) result.mean = figure_at(value, path, exponent);
    else
        for (std::size_t i = 0; i < statistics.size(); ++i)
            if (!statistics[i].empty())
                result.*time_statistics[i] =
                    figure_at(value, std::string(path).replace(star, 1, statistics[i]), exponent);
    return result;
}

PublishedResult read_fields(const nlohmann::json& value, const ToolFields& fields) {
    PublishedResult result;
    result.tool = fields.tool;
    result.arguments_unknown = true;
    for (const FigureRow& row : fields.figures)
        if (row.place.figure != nullptr) {
            if (const auto figure = figure_at(value, row.path, row.exponent))
                result.result.*row.place.figure = figure;
        } else {
            TimeSummary& times = result.result.*row.place.times;
            const TimeSummary found = times_at(value, row.path, fields.statistics, row.exponent);
            for (const auto statistic : time_statistics)
                if (found.*statistic) times.*statistic = found.*statistic;
        }
    for (const TextRow& row : fields.texts)
        if (std::string& text = result.*row.text; text.empty()) text = text_at(value, row.path);
    return result;
}

std::map<std::string, std::string> unread_of(const nlohmann::json& value, const ToolFields& fields,
                                             std::set<std::string> others) {
    for (const TextRow& row : fields.texts) others.emplace(row.path);
    for (const FigureRow& row : fields.figures) {
        others.emplace(row.path);
        if (const std::size_t star = row.path.find('*'); star != std::string_view::npos)
            for (const std::string_view name : fields.statistics)
                others.insert(std::string(row.path).replace(star, 1, name));
    }
    return scalars_of(value, others);
}

std::vector<PublishedResult> read_rows(const nlohmann::json& value,
                                       bool (*is_row)(const nlohmann::json& row),
                                       PublishedResult (*read)(const nlohmann::json& row),
                                       std::string_view what) {
    if (!value.is_array()) return {read(value)};
    std::vector<PublishedResult> results;
    for (const nlohmann::json& row : value) {
        if (!is_row(row))
            throw ParseError("value " + std::to_string(results.size() + 1) + " of the list is no " +
                             std::string(what) + " wanted, as in those before it");
        results.push_back(read(row));
    }
    return results;
}

void drop_unmeasured(BenchmarkResult& figures) {
    const auto all_zero = [](const TimeSummary& times) {
        return std::all_of(time_statistics.begin(), time_statistics.end(),
                           [&](auto statistic) { return (times.*statistic).value_or(0) == 0; });
    };
    const bool none_succeeded = figures.successful_requests && *figures.successful_requests <= 0;
    const bool tokens_took_time = !all_zero(figures.time_per_output_token);
    for (const auto family : time_families) {
        const bool a_finding = family == &BenchmarkResult::inter_token_latency && tokens_took_time;
        if (none_succeeded || (all_zero(figures.*family) && !a_finding)) figures.*family = {};
    }
    if (none_succeeded) return;
    for (auto* figure : {&figures.input_tokens, &figures.peak_concurrent_requests,
                         &figures.peak_output_tokens_per_second})
        if (*figure == 0) figure->reset();  // a success cannot do without: not counted
}

std::optional<double> total_of(const std::optional<double>& mean,
                               const std::optional<double>& successes) {
    const double total = std::round(mean.value_or(0) * std::max(0.0, successes.value_or(0)));
    return total != 0 && std::isfinite(total) ? std::optional(total) : std::nullopt;
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

std::optional<std::string> scalar_text(const nlohmann::json& value) {
    if (value.is_string()) return one_line(value.get_ref<const std::string&>());
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number())
        return value.is_number_float() ? text_of(value.get<double>()) : value.dump();
    return std::nullopt;
}

std::map<std::string, std::string> scalars_of(const nlohmann::json& object,
                                              const std::set<std::string>& without) {
    std::map<std::string, std::string> result;
    if (!object.is_object()) return result;
    for (const auto& [key, value] : object.items())
        if (const auto text = scalar_text(value); text && !without.contains(key))
            result[one_line(key)] = *text;
    return result;
}

std::string settings_text(const std::map<std::string, std::string>& settings) {
    std::string text;
    for (const auto& [name, value] : settings)
        text += (text.empty() ? "" : ", ") + name + "=" + value;
    return text;
}

std::optional<int> time_exponent_of(std::string_view unit) {
    constexpr std::array<std::pair<std::string_view, int>, 6> units{
        {{"ns", -9}, {"us", -6}, {"ms", -3}, {"sec", 0}, {"s", 0}, {"seconds", 0}}};
    for (const auto& [name, exponent] : units)
        if (unit == name) return exponent;
    return std::nullopt;
}

TimeSummary summary_of_times(std::vector<double> samples) {
    if (samples.empty()) return {};
    TimeSummary summary = summary_of(std::move(samples));
    for (const auto statistic : time_statistics)
        if (auto& value = summary.*statistic; value && !std::isfinite(*value)) value.reset();
    return summary;
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
namespace {

using Json = nlohmann::json;

/// Calls `visit` with each format, the more special ones first.
template <class Visit>
void for_each_format(const Visit& visit) {
    for (const auto& formats : {serving_formats, aiperf_formats, other_formats})
        for (const ResultFormat& format : formats) visit(format);
}

/// As deep as YAML may nest (study_file/yaml.hpp); results nest less than ten.
constexpr std::size_t deepest = 100;

std::string place(std::string_view text, std::size_t at, const std::string& name) {
    const std::string_view before = text.substr(0, std::min(at, text.size()));
    const auto line = before.rfind('\n');
    return name + ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ":" +
           std::to_string(before.size() - (line == std::string_view::npos ? 0 : line + 1) + 1) +
           ": ";
}

constexpr std::string_view json_blanks = " \n\r\t";

/// `{"`, `{}`, `[{`, `[]`: JSON. A link (`[text](address)`) or a template (`{% raw %}`) begins a
/// document.
bool begins_json(std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(json_blanks), text.size());
    if (first == text.size() || (text[first] != '{' && text[first] != '[')) return false;
    const std::size_t second = text.find_first_not_of(json_blanks, first + 1);
    return second == std::string_view::npos ||
           std::string_view(text[first] == '{' ? "\"}" : "{]").find(text[second]) !=
               std::string_view::npos;
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
            if (json_blanks.find(c) != std::string_view::npos) continue;
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
[[noreturn]] void refuse(const Json& value, const std::string& no_figure) {
    const std::string not_numbers =
        no_figure.empty()
            ? ""
            : "; NaN and Infinity are no figures, and the first of them stands at " + no_figure;
    std::string known;
    for_each_format([&](const ResultFormat& format) {
        known += "\n  " + std::string(format.tool) + ": " + std::string(format.keys);
    });
    throw ParseError(
        "no benchmark's result: " + found(value) +
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
        std::vector<PublishedResult> printed = read_printed_blocks(content, engines);
        if (printed.empty())
            throw ParseError(name +
                             ": no result in it: give the JSON or CSV that the benchmark wrote, or "
                             "its printed \"Serving Benchmark Result\" block, with --command where "
                             "the serving command does not stand directly above it "
                             "(docs/reference/result-formats.md)");
        // What an output looks like is no result.
        std::erase_if(printed, [](const PublishedResult& one) { return !has_figures(one.result); });
        if (printed.empty())
            throw ParseError(name +
                             ": its result blocks have no figures that can be read: placeholders "
                             "stand for them (xxx.xx), or a log puts something before each line");
        add_results(results, std::move(printed), name);
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
        const ResultFormat* format = nullptr;
        for_each_format([&](const ResultFormat& known) {
            if (format == nullptr && known.recognises(json)) format = &known;
        });
        std::vector<PublishedResult> more;
        try {
            if (format == nullptr) {
                const std::string at = value.no_figure ? place(text, *value.no_figure, name) : "";
                refuse(json, at.substr(0, at.rfind(": ")));
            }
            more = format->read(json);
            if (more.empty())
                throw ParseError("a file of " + std::string(format->tool) + " without a result");
        } catch (const ParseError& error) {
            throw ParseError(place(text, value.begin, name) + error.what());
        }
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
