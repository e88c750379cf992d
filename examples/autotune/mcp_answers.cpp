// SPDX-License-Identifier: Apache-2.0
#include "mcp_answers.hpp"

#include "commands.hpp"

#include "base/nesting.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace autotune {

using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr std::size_t longest_text = 4000;

std::string shortened(std::string text) {
    if (text.size() <= longest_text) return text;
    return text.substr(0, longest_text) + "\n... (" + std::to_string(text.size() - longest_text) +
           " bytes more)";
}

OrderedJson first_of(const OrderedJson& list, std::size_t most) {
    OrderedJson result = OrderedJson::array();
    for (std::size_t i = 0; i < std::min(most, list.size()); ++i) result.push_back(list[i]);
    if (list.size() > most)
        result.push_back("... and " + std::to_string(list.size() - most) + " more");
    return result;
}

/// Those of the names that are there.
OrderedJson picked(const OrderedJson& from, std::initializer_list<const char*> names) {
    OrderedJson result = OrderedJson::object();
    for (const char* name : names)
        if (const auto found = from.find(name); found != from.end() && !found->is_null())
            result[name] = *found;
    return result;
}

/// Of all figures those of the goals and limits, and those that anybody asks for first.
OrderedJson chosen_metrics(const OrderedJson& metrics, const OrderedJson& report) {
    std::vector<std::string> wanted{"requests_per_second",
                                    "output_tokens_per_second",
                                    "total_tokens_per_second",
                                    "ttft_mean",
                                    "ttft_p95",
                                    "tpot_mean",
                                    "latency_p95",
                                    "success_ratio"};
    const OrderedJson objective = report.value("objective", OrderedJson::object());
    for (const auto& [direction, metric] : objective.items())
        if (metric.is_string()) wanted.push_back(metric);
    for (const char* list : {"goals", "limits"}) {
        const OrderedJson entries = report.value(list, OrderedJson::array());
        for (const OrderedJson& one : entries) wanted.push_back(one.value("metric", ""));
    }
    OrderedJson result = OrderedJson::object();
    for (const auto& [name, value] : metrics.items())
        if (std::find(wanted.begin(), wanted.end(), name.substr(0, name.find('@'))) != wanted.end())
            result[name] = value;
    return result;
}

OrderedJson of_report(const OrderedJson& report) {
    OrderedJson told = picked(report, {"study", "verdict", "headline", "reason", "advice", "notes",
                                       "objective", "limits", "trials", "stop_reason", "noise"});
    if (const auto found = report.find("recommended");
        found != report.end() && found->is_object()) {
        told["recommended"] = picked(
            *found, {"command", "environment", "keep_default", "gain", "configuration", "metrics"});
        const auto gain = found->find("gain");
        if (gain != found->end() && gain->is_null()) told["recommended"]["gain"] = nullptr;
    }
    if (const auto found = report.find("default"); found != report.end() && found->is_object())
        told["default"] = picked(*found, {"metrics", "verdict"});
    for (const char* side : {"recommended", "default"})
        if (const auto found = told.find(side); found != told.end() && found->contains("metrics"))
            (*found)["metrics"] = chosen_metrics(found->at("metrics"), report);
    if (const auto found = told.find("recommended");
        found != told.end() && found->contains("configuration")) {
        OrderedJson& configuration = (*found)["configuration"];
        for (auto one = configuration.begin(); one != configuration.end();)
            one = one->is_null() ? configuration.erase(one) : std::next(one);
    }
    for (const char* list :
         {"failures", "pending", "refused", "audit", "environment_changes", "other_work"})
        if (const auto found = report.find(list); found != report.end() && !found->empty()) {
            constexpr std::size_t most = 5;
            told[list] = first_of(*found, most);
        }
    if (const auto found = told.find("failures"); found != told.end())
        for (OrderedJson& failure : *found)
            if (failure.is_object()) failure.erase("log_lines");
    const std::string verdict = report.value("verdict", "");
    told["next"] =
        verdict == "recommended"
            ? "`recommend` makes the file to serve with; `explain` says why it is faster"
        : verdict == "keep_default" ? "serve with the default; `explain` says what was tried"
        : verdict == "inconclusive"
            ? "`start` with more `trials`, or mend what `reason` names; keep the default until then"
            : "mend what `failures` and `refused` name, or loosen the limits, then `start` again";
    return told;
}

OrderedJson of_validation(const OrderedJson& read) {
    OrderedJson told =
        picked(read, {"valid", "error", "problems", "study", "size", "machine", "installed"});
    if (const auto words = read.find("default_command"); words != read.end())
        told["default_command"] = servetune::Command{words->get<std::vector<std::string>>()}.text();
    if (const auto found = read.find("warnings"); found != read.end())
        told["warnings"] = first_of(*found, 10);
    if (const auto found = read.find("plan"); found != read.end())
        told["plan"] = found->value("text", "");
    if (const auto found = read.find("parameters"); found != read.end()) {
        constexpr std::size_t most = 60;
        OrderedJson parameters = OrderedJson::array();
        for (const OrderedJson& one : *found)
            parameters.push_back(one.value("name", "") + ": " + one.value("domain", ""));
        told["parameters"] = first_of(parameters, most);
    }
    told["next"] = read.value("valid", false)
                       ? "`start` the study"
                       : "mend the study's file where `problems` says, then `validate` again";
    return told;
}

OrderedJson of_effects(const OrderedJson& read) {
    if (!read.contains("effects")) return read;  // of one trial
    OrderedJson told = picked(read, {"configurations", "needed", "explanation"});
    OrderedJson effects = read["effects"];
    const auto size_of = [](const OrderedJson& one) {
        const auto gain = one.find("gain");
        return gain == one.end() || !gain->is_object() ? 0.0 : std::abs(gain->value("value", 0.0));
    };
    std::stable_sort(
        effects.begin(), effects.end(),
        [&](const OrderedJson& a, const OrderedJson& b) { return size_of(a) > size_of(b); });
    constexpr std::size_t most_effects = 12, most_interactions = 3;
    told["effects"] = first_of(effects, most_effects);
    if (const auto found = read.find("interactions"); found != read.end())
        told["interactions"] = first_of(*found, most_interactions);
    told["next"] = "`propose` a combination that was not measured, or read `report`";
    return told;
}

/// The figures of a load test without its lists.
OrderedJson of_load_test(const OrderedJson& read) {
    OrderedJson told = OrderedJson::object();
    for (const auto& [name, value] : read.items())
        if (value.is_number() || value.is_boolean() ||
            (value.is_string() && value.get_ref<const std::string&>().size() < 200))
            told[name] = value;
    if (const auto ours = read.find("servetune"); ours != read.end() && ours->is_object()) {
        if (const auto audit = ours->find("audit"); audit != ours->end()) told["audit"] = *audit;
        if (const auto refused = ours->find("refused_fields");
            refused != ours->end() && !refused->empty())
            told["refused_fields"] = *refused;
    }
    told["next"] =
        "believe figures only where the audit found nothing; `start` a study to find better flags";
    return told;
}

OrderedJson told_by(const std::string& tool, const OrderedJson& read) {
    if (tool == "report" || tool == "start") return of_report(read);
    if (tool == "validate") return of_validation(read);
    if (tool == "explain") return of_effects(read);
    if (tool == "bench") return of_load_test(read);
    if (tool == "audit")
        return {{"results", first_of(read, 20)},
                {"next", "distrust what is unsound; the broken identity says why"}};
    if (tool == "recommend") {
        OrderedJson told = picked(read, {"kind", "name", "text", "beside", "left_out"});
        told["next"] = "write `text` into a file called `name`, beside it those of `beside`";
        return told;
    }
    if (tool == "suggest") {
        OrderedJson told = read;
        for (const char* name : {"argv", "translated", "not_checked"}) told.erase(name);
        told["next"] = "a suggestion is not measured here: `init` and `start` prove it";
        return told;
    }
    if (tool == "compare") {
        OrderedJson told = picked(read, {"verdict", "text", "pairs", "gain"});
        if (read.value("verdict", "") == "undecided")
            told["next"] = "measure on with more `pairs`: the folder's are kept";
        return told;
    }
    return read;
}

std::string reason_of(int exit_code, const std::vector<std::string>& said) {
    std::string reason;
    for (const std::string& line : said) reason += (reason.empty() ? "" : "\n") + line;
    return reason.empty() ? "exit code " + std::to_string(exit_code) : shortened(reason);
}

}  // namespace

OrderedJson answer_of(const std::string& tool, int exit_code, const std::string& printed,
                      const std::vector<std::string>& said) {
    const OrderedJson read = servetune::shallow_json<OrderedJson>(printed);
    OrderedJson told = OrderedJson::object();
    const bool failed = exit_code == usage_error || exit_code == environment_error ||
                        exit_code < 0 || exit_code > stopped;
    told["state"] = failed ? "failed" : "done";
    if (!read.is_discarded() && !read.is_null() && (!failed || read.is_object())) {
        const OrderedJson rest = told_by(tool, read);
        for (const auto& [name, value] : rest.items()) told[name] = value;
    } else if (!failed) told["text"] = shortened(printed);
    if (!told.contains("reason") && (failed || !said.empty()))
        told["reason"] = said.empty() && told.contains("text") ? told["text"].get<std::string>()
                                                               : reason_of(exit_code, said);
    if (failed)
        told["next"] = exit_code == environment_error
                           ? "mend what `reason` names on this machine, then try again"
                           : "mend the arguments or the file that `reason` names, then try again";
    if (!told.contains("next")) told["next"] = tool == "init" ? "`validate` the file" : "go on";
    return told;
}

}  // namespace autotune
