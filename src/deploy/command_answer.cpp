// SPDX-License-Identifier: Apache-2.0
#include "command_answer.hpp"

#include "base/nearest.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <vector>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// A piece of what was printed, short enough for a message and without control characters.
std::string excerpt(std::string_view text) {
    constexpr std::size_t most = 120;
    std::string result(text.substr(0, most));
    for (char& c : result)
        if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
    return "'" + result + (text.size() > most ? "...'" : "'");
}

/// JSON has no NaN, but Python's json.dumps and others write it: outside of strings NaN, Infinity
/// and -Infinity become strings, so that the message can say which metric has it.
std::string with_quoted_nan(std::string_view text) {
    std::string result;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto is = [&](std::string_view word) {
            return !in_string && text.substr(i, word.size()) == word;
        };
        const std::string_view word = is("NaN")         ? "NaN"
                                      : is("-Infinity") ? "-Infinity"
                                      : is("Infinity")  ? "Infinity"
                                                        : "";
        if (!word.empty()) {
            result += '"' + std::string(word) + '"';
            i += word.size() - 1;
            continue;
        }
        result += text[i];
        if (in_string && text[i] == '\\' && i + 1 < text.size()) result += text[++i];
        else if (text[i] == '"') in_string = !in_string;
    }
    return result;
}

/// nlohmann's reason without its own numbering: `[json.exception.parse_error.101] parse error at
/// ...`.
std::string reason_of(const Json::exception& error) {
    const std::string_view what = error.what();
    const auto end = what.find("] ");
    return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

Json parsed_answer(std::string_view text) {
    try {
        return Json::parse(with_quoted_nan(text), RefuseDeepAndTwice());
    } catch (const Json::exception& error) {
        throw ParseError("what it printed is not JSON: " + reason_of(error) +
                         "; wanted is one object, alone or on the last line; got " + excerpt(text));
    }
}

/// All that was printed where that is one object, else the last line that begins with '{'.
Json object_in(std::string_view printed) {
    const std::string_view all = trimmed(printed);
    if (all.empty())
        throw ParseError(
            "it printed nothing on standard output; wanted: {\"metrics\": {...}} or {\"failure\": "
            "{...}}");
    if (all.front() == '{') {
        Json whole = Json::parse(with_quoted_nan(all), RefuseDeepAndTwice(), false);
        if (whole.is_object()) return whole;
    }
    for (std::string_view rest = all; !rest.empty();) {
        const auto line_break = rest.rfind('\n');
        const std::string_view line =
            trimmed(line_break == std::string_view::npos ? rest : rest.substr(line_break + 1));
        if (line.starts_with('{')) return parsed_answer(line);
        rest =
            line_break == std::string_view::npos ? std::string_view() : rest.substr(0, line_break);
    }
    throw ParseError(
        "no line that it printed is a JSON object; the last thing it printed must be one, on one "
        "line: {\"metrics\": {...}}");
}

void check_keys(const Json& object, const std::string& where,
                const std::vector<std::string>& known) {
    if (!object.is_object())
        throw ParseError(where + " must be a JSON object, got " + excerpt(object.dump()));
    for (const auto& [key, value] : object.items())
        if (std::find(known.begin(), known.end(), key) == known.end())
            throw ParseError("unknown key '" + key + "' in " + where +
                             "; known: " + listed(nearest_first(key, known)));
}

template <class Enum, std::size_t n>
std::string names_near(const std::string& wanted,
                       const std::array<std::pair<Enum, std::string_view>, n>& table,
                       const std::vector<Enum>& without = {}) {
    std::vector<std::string> names;
    for (const auto& [value, name] : table)
        if (std::find(without.begin(), without.end(), value) == without.end())
            names.emplace_back(name);
    return listed(nearest_first(wanted, names), names.size());
}

/// At most 4 KiB of it, as of a line of a log: journals and reports hold it.
std::string text_at_key(const Json& object, const std::string& key, const std::string& where) {
    constexpr std::size_t most = 4096;
    const auto found = object.find(key);
    if (found == object.end()) return "";
    if (found->is_string()) {
        std::string text = found->get<std::string>();
        std::size_t end = std::min(most, text.size());
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
            --end;  // not inside a character
        text.resize(end);
        for (char& c : text)  // one line: reports put it into tables
            if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
        return text;
    }
    if (found->is_number()) return found->dump();
    throw ParseError("'" + key + "' in " + where + " must be a text, got " +
                     excerpt(found->dump()));
}

double number_in(const Json& value, const std::string& what) {
    if (value.is_number()) return value.get<double>();  // finite: JSON has nothing else
    throw ParseError(what + " must be a finite number, got " + excerpt(value.dump()));
}

/// Nothing where it is null: not measured.
std::optional<Metric> read_metric(const std::string& name, const Json& value) {
    if (name.empty() || name.front() == '@' || name.back() == '@')
        throw ParseError("a metric needs a name (name or name@workload), got '" + name + "'");
    const std::string what = "metric '" + name + "'";
    if (value.is_null()) return std::nullopt;
    if (!value.is_object()) return Metric{number_in(value, what)};
    check_keys(value, what, {"value", "standard_error"});
    if (!value.contains("value")) throw ParseError(what + " has no 'value'");
    if (value.at("value").is_null()) return std::nullopt;
    Metric metric{number_in(value.at("value"), what)};
    if (value.contains("standard_error") && !value.at("standard_error").is_null()) {
        metric.standard_error =
            number_in(value.at("standard_error"), "the standard_error of " + what);
        if (*metric.standard_error < 0)
            throw ParseError("the standard_error of " + what + " is below 0");
    }
    return metric;
}

Validity read_validity(const Json& object) {
    check_keys(object, "'validity'", {"verdict", "findings"});
    Validity result;
    const std::string verdict = text_at_key(object, "verdict", "'validity'");
    const auto known = named_in(verdicts, verdict);
    if (!known)
        throw ParseError("'verdict' in 'validity' must be one of " + names_near(verdict, verdicts) +
                         ", got '" + verdict + "'");
    result.verdict = *known;
    const auto findings = object.find("findings");
    if (findings == object.end()) return result;
    if (!findings->is_array())
        throw ParseError("'findings' in 'validity' must be a list, got " +
                         excerpt(findings->dump()));
    for (const Json& finding : *findings) {
        check_keys(finding, "a finding", {"id", "left", "right", "cause"});
        const auto text = [&](const char* key) { return text_at_key(finding, key, "a finding"); };
        result.findings.push_back({text("id"), text("left"), text("right"), text("cause")});
        if (result.findings.back().id.empty()) throw ParseError("a finding needs an 'id'");
    }
    return result;
}

Failure read_failure(const Json& object) {
    static const std::vector<FailureKind> ours{
        FailureKind::cancelled, FailureKind::not_in_table};  // not for a program to say
    check_keys(object, "'failure'", {"kind", "message"});
    const std::string kind = text_at_key(object, "kind", "'failure'");
    const std::string message = text_at_key(object, "message", "'failure'");
    const auto known = named_in(failure_kinds, kind);
    if (!known || std::find(ours.begin(), ours.end(), *known) != ours.end())
        throw ParseError("'kind' in 'failure' must be one of " +
                         names_near(kind, failure_kinds, ours) + ", got '" + kind +
                         "' with the message " + excerpt(message));
    return {*known, message.empty() ? "the program says " + kind + " and no more"
                                    : printable_line(message)};
}

Measurement read_measurement(const Json& answer) {
    const Json& metrics = answer.at("metrics");
    if (!metrics.is_object())
        throw ParseError("'metrics' must be a JSON object, got " + excerpt(metrics.dump()));
    Measurement result;
    for (const auto& [name, value] : metrics.items())
        if (const auto metric = read_metric(name, value)) result.metrics[name] = *metric;
    if (const auto validity = answer.find("validity"); validity != answer.end())
        result.validity = read_validity(*validity);
    return result;
}

}  // namespace

CommandAnswer read_command_answer(std::string_view printed) {
    try {
        const Json answer = object_in(printed);
        check_keys(answer, "its answer", {"metrics", "validity", "failure"});
        if (answer.contains("failure") == answer.contains("metrics"))
            throw ParseError("its answer must have either 'metrics' or 'failure'; it is " +
                             excerpt(answer.dump()));
        if (answer.contains("failure")) return {read_failure(answer.at("failure")), true};
        return {read_measurement(answer)};
    } catch (const ParseError& error) {
        return {Failure{FailureKind::invalid_result, error.what()}};
    }
}

}  // namespace servetune
