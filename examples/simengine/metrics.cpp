// SPDX-License-Identifier: Apache-2.0
#include "metrics.hpp"

#include "servetune/value.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>

namespace simengine {
namespace {

struct Figure {
    double value = 0;
    std::string_view type = "counter";
};

/// What a name of ours counts; nothing for one that this engine does not have.
std::optional<Figure> figure(const Dialect& dialect, std::string_view name,
                             const EngineFigures& now) {
    const auto count = [](std::uint64_t number) {
        return Figure{static_cast<double>(number), "counter"};
    };
    const auto gauge = [](double number) { return Figure{number, "gauge"}; };
    const servetune::EngineCounters& counted = now.counters;
    if (name == "prompt_tokens")  // llama.cpp leaves out what came from the cache
        return count(counted.prompt_tokens -
                     (dialect.kind == EngineKind::llama_cpp ? counted.prefix_hit_tokens : 0));
    if (name == "generated_tokens") return count(counted.generated_tokens);
    if (name == "prefix_queried_tokens") return count(counted.prefix_queried_tokens);
    if (name == "prefix_hit_tokens") return count(counted.prefix_hit_tokens);
    if (name == "drafted_tokens") return count(counted.drafted_tokens);
    if (name == "accepted_tokens") return count(counted.accepted_tokens);
    if (name == "preemptions") return count(counted.preemptions);
    if (name == "running_requests") return gauge(static_cast<double>(now.running));
    if (name == "waiting_requests") return gauge(static_cast<double>(now.waiting));
    if (name == "cache_used_share") return gauge(now.cache_use);
    return std::nullopt;
}

}  // namespace

std::string prometheus_text(const Dialect& dialect, const std::map<std::string, std::string>& names,
                            const EngineFigures& figures) {
    const std::string model = nlohmann::json(figures.model).dump();
    const std::string labels = dialect.kind == EngineKind::llama_cpp ? ""
                               : dialect.kind == EngineKind::vllm
                                   ? fmt::format("{{engine=\"0\",model_name={}}}", model)
                                   : fmt::format("{{model_name={}}}", model);
    std::string text;
    const auto add = [&](std::string_view name, std::string_view type, std::string_view with,
                         double value) {
        text += fmt::format("# TYPE {} {}\n{}{} {}\n", name, type, name, with,
                            servetune::text_of(value));
    };
    for (const auto& [ours, theirs] : names) {
        if (theirs.find(' ') != std::string::npos) continue;  // a sum of names that are there
        if (const auto known = figure(dialect, ours, figures))
            add(theirs, known->type, labels, known->value);
    }
    if (dialect.kind == EngineKind::vllm)
        add("vllm:request_success_total", "counter",
            fmt::format("{{engine=\"0\",finished_reason=\"length\",model_name={}}}", model),
            static_cast<double>(figures.finished));
    if (dialect.kind != EngineKind::llama_cpp)
        add("process_start_time_seconds", "gauge", "", figures.started_at);
    return text;
}

}  // namespace simengine
