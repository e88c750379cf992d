// SPDX-License-Identifier: Apache-2.0
#include "first_study.hpp"

#include "templates.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/engine.hpp"
#include "servetune/error.hpp"
#include "servetune/objective.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <regex>

namespace autotune {

using namespace servetune;

namespace {

std::string workload_text(const FirstStudy& study) {
    const bool small = study.gpus == 0;  // a CPU: a load test of a large machine would take hours
    const std::size_t requests = std::max<std::size_t>(small ? 32 : 200, 4 * study.concurrency);
    const std::string load = study.as_recorded
                                 ? ""
                                 : fmt::format(", requests: {}, arrival: {{concurrency: {}}}",
                                               requests, study.concurrency);
    const auto lengths = lengths_in(study.traffic);
    return "{use: " +
           (lengths ? fmt::format("random, input_tokens: {}, output_tokens: {}", lengths->first,
                                  lengths->second)
                    : yaml_text(study.traffic)) +
           load + "}";
}

std::string objective_of(const std::string& goal) {
    const auto text = [](const std::string& limit, const char* metric) {
        return fmt::format("{{{}, limits: [{}success_ratio >= 0.99]}}", metric, limit);
    };
    constexpr const char* throughput = "maximize: total_tokens_per_second";
    if (goal == "throughput") return text("", throughput);
    if (goal == "latency") return text("", "minimize: e2el_mean");
    try {
        (void)Limit::parse(goal, true);
    } catch (const ParseError& error) {
        const bool is_limit = goal.find_first_of("<>") != npos;
        throw UsageError("the goal is throughput, latency, or a limit such as 'ttft_p95 < 2s'" +
                         (is_limit ? std::string(": ") + error.what() : ", got '" + goal + "'"));
    }
    return text(nlohmann::json(goal).dump() + ", ", throughput);
}

/// The dashboard where `ray job submit` would look for it (Ray 2.60, "Ray Jobs CLI"), else on this
/// machine.
std::string ray_address() {
    for (const char* name : {"RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"}) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
        const std::string said = value == nullptr ? "" : value;
        if (said.starts_with("http") && said.find('@') == npos) return said;
    }
    return "http://127.0.0.1:8265";
}

/// The evaluator, and a line that says what it does.
std::pair<std::string, const char*> evaluator_of(const FirstStudy& study) {
    if (!study.attach.empty()) return {"{attach: " + yaml_text(study.attach) + "}", ""};
    if (study.as == "simulate") return {"simulate", ""};
    if (study.as == "ray")
        return {"{deploy: {ray: {address: " + yaml_text(ray_address()) + "}}}",
                "Each trial is a job of this Ray cluster (the address of its dashboard): it starts "
                "the engine."};
    if (study.as == "kubernetes")
        return {"{deploy: {kubernetes: {template: pod.yaml}}}",
                "Each trial starts the engine in a pod that is made from this one, load-tests it "
                "and ends it."};
    return {"deploy", "Each trial starts the engine on this machine, load-tests it and ends it."};
}

}  // namespace

std::string FirstStudy::name() const {
    std::string result = file.stem().string();
    result.erase(0, std::min(result.find_first_not_of('.'), result.size()));
    return result.empty() ? "study" : result;
}

std::string FirstStudy::text() const {
    const auto [evaluator, why] = evaluator_of(*this);
    return filled_yaml(
        study_yaml_in,
        {{{"file", Command{{file.string()}}.text()},
          {"study", name()},
          {"model", model},
          {"engine", engine},
          {"hardware", hardware},
          {"several", gpus > 1 || all_said ? "yes" : ""},
          {"only_count", hardware.empty() && gpus > 1 ? "yes" : ""},
          {"gpus", std::to_string(gpus)},
          {"workload", workload_text(*this)},
          {"objective", objective_of(goal)},
          {"attach", attach},
          {"preset", attach.empty() && known.empty() ? preset : ""},
          {"known", known},
          {"layout", known.empty() && (layout > 1 || (all_said && !spread_by.empty()))
                         ? std::to_string(layout)
                         : ""},
          {"spread", fmt::format("{{{}: {}}}", spread_by, layout)},
          {"budget", budget.empty() ? "30 trials" : budget},
          {"why", why},
          {"evaluator", evaluator}}});
}

std::optional<std::pair<std::int64_t, std::int64_t>> lengths_in(const std::string& text) {
    const auto x = text.find('x');
    const auto input = integer_of(std::string_view(text).substr(0, x));
    const auto output = x == npos ? std::nullopt : integer_of(std::string_view(text).substr(x + 1));
    constexpr std::int64_t most = 999'999'999;
    if (!input || !output || std::min(*input, *output) < 1 || std::max(*input, *output) > most)
        return std::nullopt;
    return std::pair(*input, *output);
}

std::string NamedWeights::text() const {
    return fmt::format("{:.4g}e9 parameters x {:.3g} bytes = {:.0f} GB{}", parameters / 1e9,
                       bytes_each, parameters * bytes_each / 1e9,
                       says_type ? "" : " (16 bits, as it says no other type)");
}

std::optional<NamedWeights> weights_named(const std::string& model) {
    static const std::regex size(
        "[-_](?:([0-9]{1,4})x|[ae])?([0-9]{1,5}(?:\\.[0-9]+)?)b(?=[-_.]|$)");
    static const std::regex types(
        "[-_.](?:(gguf|i?q[1-8]|exl|hqq|int[23]|[2356]-?bit|mlx)|"
        "(int4|4-?bit|nvfp4|mxfp4|fp4|awq|gptq|w4a)|(fp8|float8|int8|8-?bit|w8a))");
    const std::string name = "-" + lower_case(model.substr(model.rfind('/') + 1));
    NamedWeights result;
    for (std::sregex_iterator one(name.begin(), name.end(), size), end; one != end; ++one) {
        constexpr double own = 0.75;  // of 8x22B: the experts share attention (8x7B has 46.7e9)
        const double copies = (*one)[1].matched ? own * std::stod((*one)[1]) : 1;
        result.parameters = std::max(result.parameters, copies * std::stod((*one)[2]) * 1e9);
    }
    for (std::sregex_iterator one(name.begin(), name.end(), types), end; one != end; ++one) {
        if ((*one)[1].matched) return std::nullopt;
        result.says_type = true;
        result.bytes_each = std::min(result.bytes_each, (*one)[2].matched ? 0.5 : 1.0);
    }
    return result.parameters > 0 ? std::optional(result) : std::nullopt;
}

std::string unknown_text(const std::string& model, const HardwareSpec& chip,
                         const Catalogue& catalogue) {
    std::vector<std::string> known;
    for (const ModelSpec& spec : catalogue.all_models()) known.push_back(spec.name);
    std::string text = "its figures are not known" + nearest_text(model, known);
    if (const auto named = weights_named(model))
        text += fmt::format(". By its name it takes at least {} of {}: {}",
                            named->least_devices(chip), chip.name, named->text());
    return text;
}

std::size_t devices_by_name(const std::string& model, const HardwareSpec& chip) {
    const auto named = weights_named(model);
    return named ? std::bit_ceil(named->least_devices(chip)) : 1;
}

std::string parameter_of(const Engine& engine, std::string_view called) {
    for (const EngineParameter& one : engine.parameters)
        if (one.parameter.concept_name == called) return one.parameter.name;
    return "";
}

std::string with_path(std::string message, const std::filesystem::path& from,
                      const std::filesystem::path& to) {
    for (std::size_t at = 0; (at = message.find(from.string(), at)) != npos;
         at += to.string().size())
        message.replace(at, from.string().size(), to.string());
    return message;
}

}  // namespace autotune
