// SPDX-License-Identifier: Apache-2.0
#include "servetune/result_file.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "printed_block.hpp"
#include "result_format.hpp"
#include "servetune/audit.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "space/value_json.hpp"
#include "study_file/yaml.hpp"

#include <set>
#include <utility>

namespace servetune {

namespace {

using Json = nlohmann::json;

/// As deep as YAML may nest (study_file/yaml.hpp); results nest less than ten.
constexpr std::size_t deepest = 100;

std::string place(std::string_view text, std::size_t at, const std::string& name) {
    const std::string_view before = text.substr(0, std::min(at, text.size()));
    return name + ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ":" +
           std::to_string(before.size() - before.rfind('\n')) + ": ";  // npos is -1
}

constexpr std::string_view json_blanks = " \n\r\t";

/// `{"`, `{}`, `[{`, `[]`: JSON. A link (`[text](address)`) or a template (`{% raw %}`) begins a
/// document.
bool begins_json(std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(json_blanks), text.size());
    if (first == text.size() || (text[first] != '{' && text[first] != '[')) return false;
    const std::size_t second = text.find_first_not_of(json_blanks, first + 1);
    return second == std::string_view::npos ||
           contains(std::string_view(text[first] == '{' ? "\"}" : "{]"), text[second]);
}

/// One value of a stream of values: `{...}` or `[...]`. Python writes the bare words NaN, Infinity
/// and -Infinity, which are no JSON and never a figure: an empty text of the same length takes
/// their place, so that places in messages stay right.
struct JsonText {
    std::size_t begin, end;
    bool has_bare_word = false;
};
std::vector<JsonText> values_of(std::string& text, const std::string& name) {
    std::vector<JsonText> values;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (depth == 0) {
            if (contains(json_blanks, c)) continue;
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
                values.back().has_bare_word = true;
                text.replace(i, word.size(), "\"\"" + std::string(word.size() - 2, ' '));
                i += word.size() - 1;
                break;
            }
        }
    }
    return values;
}

/// Parses one value. The texts of prompts and answers and GuideLLM's records of requests have no
/// figure for us and can be most of the file: they are passed over. Deeper, `requests` is how many
/// AIPerf was asked for.
Json parsed_json(std::string_view text, JsonText value, const std::string& name) {
    static const std::set<std::string, std::less<>> passed_over{
        "request_samples", "generated_texts", "pdf", "internal_states"};
    // A field of a small object takes up to a kilobyte. Reports have some thousands.
    constexpr std::size_t most_fields = 300'000;
    const auto keep = [once = RefuseDeepAndTwice(), fields = std::size_t{0}](
                          int depth, Json::parse_event_t event, Json& key) mutable {
        (void)once(depth, event, key);
        if (event == Json::parse_event_t::key && ++fields > most_fields)
            throw ParseError("JSON of more than " + std::to_string(most_fields) +
                             " fields is not read");
        return event != Json::parse_event_t::key ||
               (key == "requests" ? depth > 3
                                  : !passed_over.contains(key.get_ref<const std::string&>()));
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

Json json_of(const Yaml& yaml) {
    Json json;
    if (yaml.is_scalar()) json = to_json(yaml.value());
    else if (yaml.is_sequence())
        for (const Yaml& item : yaml.items()) json.push_back(json_of(item));
    else if (yaml.is_mapping())
        for (const auto& [key, child] : yaml.entries()) json[key] = json_of(child);
    return json;
}

void add_results(std::vector<PublishedResult>& results, std::vector<PublishedResult> more,
                 const std::string& name) {
    for (PublishedResult& result : more) {
        if (results.size() == most_results)
            throw ParseError(name + ": more than " + std::to_string(most_results) +
                             " results in one file; split it");
        // A tool's own "requested" is what was asked for; both counts say how many were issued.
        BenchmarkResult& figures = result.result;
        if (figures.requested_requests < figures.successful_requests)
            figures.requested_requests.reset();
        if (figures.successful_requests && figures.failed_requests) {
            const double issued = *figures.successful_requests + *figures.failed_requests;
            if (const auto asked = figures.requested_requests; asked && 0.99 * *asked > issued)
                add_cut_short(result,
                              text_of(*asked) + " were asked for, " + text_of(issued) + " ended");
            figures.requested_requests = issued;
        }
        for (auto* asked : {&figures.requested_requests, &figures.maximum_concurrency,
                            &figures.requested_rate_per_second})
            if (*asked < 0) asked->reset();  // -1: no bound
        result.index = results.size();
        results.push_back(std::move(result));
    }
}

}  // namespace

void add_cut_short(PublishedResult& result, std::string why) {
    if (result.validity.findings.empty())
        add(result.validity,
            {Verdict::suspect,
             {{"complete", "not all requests ended", std::move(why),
               "cut short (cancelled, a time limit, too few prompts): its longest answers may be "
               "missing"}}});
}

bool is_result_table(std::string_view content) { return is_sweep_table(content); }

std::vector<PublishedResult> read_results(std::string_view content, const std::string& name,
                                          const std::vector<Engine>& engines) {
    if (content.size() > largest_result_bytes)
        throw ParseError(name + ": results have at most " + std::to_string(largest_result_bytes) +
                         " bytes, got " + std::to_string(content.size()));
    std::vector<PublishedResult> results;
    if (is_sweep_table(content)) {
        add_results(results, results_of(rows_of_sweep_table(content, name)), name);
        return results;
    }
    // Reports of llm-d. A `${` in them is no variable.
    if (!begins_json(content) && contains(content, "\n  request_performance:") &&
        !contains(content, "```")) {
        const std::string text = replaced_all(std::string(content), "${", "$${");
        add_results(results, results_of(json_of(Yaml::parse(text, name))), name);
        return results;
    }
    if (!begins_json(content)) {
        std::vector<PublishedResult> printed = read_printed_blocks(content, engines);
        if (printed.empty())
            throw ParseError(name +
                             ": no result in it: give the JSON that the benchmark wrote, or its "
                             "printed \"Serving Benchmark Result\" block, with --command where the "
                             "serving command does not stand directly above it "
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
    for (const JsonText& value : values_of(text, name)) {
        const Json json = parsed_json(text, value, name);
        std::vector<PublishedResult> more;
        try {
            more = results_of(json);
        } catch (const ParseError& error) {
            throw ParseError(place(text, value.begin, name) + error.what() +
                             (value.has_bare_word
                                  ? "\nNaN and Infinity, which stand in it, are no figures"
                                  : ""));
        }
        add_results(results, std::move(more), name);
    }
    return results;
}

}  // namespace servetune
