// SPDX-License-Identifier: Apache-2.0
#include "html_text.hpp"
#include "html_view.hpp"
#include "study/json_values.hpp"

#include <cmath>
#include <map>

namespace servetune {
namespace {

/// Six digits are more than a measurement has, and five hundred trials of a hundred metrics stay
/// small.
nlohmann::ordered_json short_number(std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return nullptr;
    if (*value == 0) return 0;
    const double scale = std::pow(10, 5 - std::floor(std::log10(std::abs(*value))));
    const double rounded = std::round(*value * scale) / scale;
    if (rounded == std::floor(rounded) && std::abs(rounded) < 1e15)
        return static_cast<std::int64_t>(rounded);
    return rounded;
}

nlohmann::ordered_json page_values(const std::vector<std::string>& names, const Metrics& metrics) {
    nlohmann::ordered_json result = nlohmann::ordered_json::array();
    for (const std::string& name : names) {
        auto value = value_in(metrics, name);
        if (value && shown_in_milliseconds(name)) *value *= 1e3;
        result.push_back(short_number(value));
    }
    return result;
}

}  // namespace

std::string html_data(const HtmlView& page, const std::string& report_json) {
    using OrderedJson = nlohmann::ordered_json;
    OrderedJson data;
    data["version"] = 1;
    data["study"] = page.view.setup.file.name;
    data["metrics"] = page.metrics;
    data["titles"] = OrderedJson::array();
    data["less"] = OrderedJson::array();
    for (const std::string& name : page.metrics) {
        data["titles"].push_back(metric_title(name));
        data["less"].push_back(less_is_better(page.view.setup.file.objective, name));
    }
    const std::string& goal = page.leading().metric;
    data["goal"] = metric_title(goal);
    const std::vector<VariedParameter> varied = varied_parameters(page);
    data["parameters"] = OrderedJson::array();
    std::vector<std::map<std::string, std::size_t>> places;
    for (const VariedParameter& parameter : varied) {
        OrderedJson values = OrderedJson::array();
        std::map<std::string, std::size_t>& place = places.emplace_back();
        for (const Value& value : parameter.values) {
            place.emplace(text_of(value), values.size());
            values.push_back(text_of(value));
        }
        data["parameters"].push_back({{"name", parameter.name}, {"values", std::move(values)}});
    }
    data["latencies"] = OrderedJson::array();
    for (const LatencyFamily& family : latency_families(page)) {
        OrderedJson one{{"title", family.title},
                        {"levels", OrderedJson::array()},
                        {"metrics", OrderedJson::array()}};
        for (const auto& [level, place] : family.levels) {
            one["levels"].push_back(level);
            one["metrics"].push_back(place);
        }
        data["latencies"].push_back(std::move(one));
    }
    data["configurations"] = OrderedJson::array();
    for (const HtmlRow& row : page.rows) {
        OrderedJson settings = OrderedJson::array();
        for (std::size_t k = 0; k < varied.size(); ++k) {
            const Value* value = row.standing->configuration.find(varied[k].name);
            settings.push_back(value == nullptr ? OrderedJson(nullptr)
                                                : OrderedJson(places[k].at(text_of(*value))));
        }
        data["configurations"].push_back(
            {{"name", row.name},
             {"kind", row.kind},
             {"passes", row.standing->passes()},
             {"verdict", row.verdict},
             {"figure", short_number(row.value && shown_in_milliseconds(goal)
                                         ? std::optional(*row.value * 1e3)
                                         : row.value)},
             {"settings", std::move(settings)},
             {"values", page_values(page.metrics, row.means)}});
    }
    data["trials"] = OrderedJson::array();
    for (const Trial& trial : page.view.trials) {
        const auto row = page.row_of(trial.configuration);
        if (!trial.told() || !row) continue;
        OrderedJson one{{"id", trial.id},
                        {"of", *row},
                        {"workload", trial.workload},
                        {"seconds", short_number(trial.cost_seconds())}};
        one["failure"] = trial.failure() != nullptr
                             ? OrderedJson(name_in(failure_kinds, trial.failure()->kind))
                             : OrderedJson(nullptr);
        if (trial.measurement() != nullptr)
            one["values"] = page_values(page.metrics, trial.measurement()->metrics);
        data["trials"].push_back(std::move(one));
    }
    redact(data, page.view.setup.file.secrets);
    data["report"] = OrderedJson::parse(report_json);  // without secrets already
    return html_json(data.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace servetune
