// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include "base/nesting.hpp"

namespace servetune {

void check_utf8(const std::string& text, const std::string& what) {
    try {
        (void)nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
        throw UsageError(
            what + " is not UTF-8: " +
            nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
}

nlohmann::ordered_json to_json(const Metrics& metrics) {
    auto result = nlohmann::ordered_json::object();
    for (const auto& [name, metric] : metrics) {
        result[name] = {{"value", metric.value}};
        if (metric.standard_error) result[name]["standard_error"] = *metric.standard_error;
        if (metric.replicates > 1) result[name]["replicates"] = metric.replicates;
    }
    return result;
}

std::string json_of(const Configuration& configuration) {
    for (const auto& [name, value] : configuration.entries()) {
        check_utf8(name, "the name of a parameter");
        if (const auto* text = std::get_if<std::string>(&value))
            check_utf8(*text, "the value of '" + name + "'");
    }
    return to_json(configuration).dump();
}

Configuration configuration_from_json(std::string_view json) {
    const auto object = shallow_json<nlohmann::json>(json);
    if (!object.is_object())
        throw ParseError("a configuration is a JSON object, got '" +
                         std::string(json.substr(0, 60)) + "'");
    std::vector<Configuration::Entry> entries;
    for (const auto& [name, value] : object.items()) {
        std::optional<Value> given = value_from_json(value);
        if (!given)
            throw ParseError("'" + name + "': a value is null, true, false, a number or a string");
        entries.emplace_back(name, std::move(*given));
    }
    return Configuration(std::move(entries));
}

std::string json_of(const Outcome& outcome) {
    nlohmann::ordered_json result;
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
        result = {{"failure", name_in(failure_kinds, failure->kind)},
                  {"message", failure->message},
                  {"log", failure->log_path}};
        if (!failure->log_lines.empty()) result["log_lines"] = failure->log_lines;
    } else {
        const auto& measurement = std::get<Measurement>(outcome);
        for (const auto& [name, metric] : measurement.metrics)
            check_utf8(name, "the name of a metric");
        result["metrics"] = to_json(measurement.metrics);
        result["verdict"] = name_in(verdicts, measurement.validity.verdict);
        result["findings"] = nlohmann::ordered_json::array();
        for (const Finding& finding : measurement.validity.findings)
            result["findings"].push_back({{"id", finding.id},
                                          {"left", finding.left},
                                          {"right", finding.right},
                                          {"cause", finding.cause}});
    }
    if (const Place& place = place_of(outcome); !place.empty()) result["place"] = place;
    // Bytes of a log that are no UTF-8 must not stop a study.
    return result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

namespace {

/// A mean is told with the number of its runs: a wrong one would make any figure certain.
std::size_t replicates_in(const nlohmann::json& value, const std::string& metric) {
    constexpr std::uint64_t most = 1'000'000;
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
        value.get<std::uint64_t>() > most)
        throw ParseError("metric '" + metric + "': replicates from 1 to " + std::to_string(most) +
                         " wanted, got " +
                         value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return value.get<std::size_t>();
}

}  // namespace

Outcome outcome_from_json(std::string_view json) {
    try {
        const auto object = nlohmann::json::parse(json, RefuseDeep());
        if (object.contains("failure")) {
            const auto kind = named_in(failure_kinds, object.at("failure").get<std::string>());
            Failure result{kind.value_or(FailureKind::other),
                           object.at("message").get<std::string>(),
                           object.at("log").get<std::string>()};
            if (object.contains("log_lines")) object.at("log_lines").get_to(result.log_lines);
            if (object.contains("place")) object.at("place").get_to(result.place);
            return result;
        }
        Measurement result;
        for (const auto& [name, metric] : object.at("metrics").items()) {
            Metric& into = result.metrics[name];
            into.value = metric.at("value").get<double>();
            if (metric.contains("standard_error"))
                into.standard_error = metric.at("standard_error").get<double>();
            if (metric.contains("replicates"))
                into.replicates = replicates_in(metric.at("replicates"), name);
        }
        const auto verdict = named_in(verdicts, object.at("verdict").get<std::string>());
        if (!verdict) throw ParseError("unknown verdict in an outcome");
        result.validity.verdict = *verdict;
        for (const auto& finding : object.at("findings"))
            result.validity.findings.push_back(
                {finding.at("id"), finding.at("left"), finding.at("right"), finding.at("cause")});
        if (object.contains("place")) object.at("place").get_to(result.place);
        return result;
    } catch (const nlohmann::json::exception& error) {
        throw ParseError(std::string("not an outcome: ") + error.what());
    }
}

}  // namespace servetune
