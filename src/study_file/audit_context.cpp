// SPDX-License-Identifier: Apache-2.0
#include "servetune/study_file/audit_context.hpp"

#include "servetune/study_file/catalogue.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace servetune {
namespace {

/// A flag with its value, written `--flag=value` or `--flag value`; a word without a flag has an empty one.
struct Argument {
    std::string flag;
    std::string value;
};

std::vector<Argument> arguments_of(const std::vector<std::string>& words) {
    std::vector<Argument> result;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!words[i].starts_with('-')) {
            result.push_back({"", words[i]});
            continue;
        }
        const auto equals = words[i].find('=');
        if (equals != std::string::npos) result.push_back({words[i].substr(0, equals), words[i].substr(equals + 1)});
        else if (i + 1 < words.size() && !words[i + 1].starts_with('-')) {
            result.push_back({words[i], words[i + 1]});
            ++i;
        } else result.push_back({words[i], ""});
    }
    return result;
}

template <std::size_t n>
bool among(const std::array<std::string_view, n>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

constexpr std::array<std::string_view, 4> model_flags{"--model", "--model-path", "-m", "--hf-repo"};
constexpr std::array<std::string_view, 16> parallel_flags{"--tensor-parallel-size",
                                                          "-tp",
                                                          "--tp",
                                                          "--tp-size",
                                                          "--tp_size",
                                                          "--tensor_parallel_size",
                                                          "--data-parallel-size",
                                                          "-dp",
                                                          "--dp-size",
                                                          "--dp",
                                                          "-pp",
                                                          "--pp-size",
                                                          "--pipeline-parallel-size",
                                                          "--pp_size",
                                                          "--pipeline_parallel_size",
                                                          "--pp"};
constexpr std::array<std::string_view, 4> draft_counts{"--speculative-num-draft-tokens", "--draft-max", "--draft", "--draft-n"};
constexpr std::array<std::string_view, 2> cache_off{"--no-enable-prefix-caching", "--disable-radix-cache"};

/// What comes first among the words that no flag takes: the program, its subcommand, `python3 -m module`, or the model.
bool starts_an_engine(const std::string& word) {
    const std::string name = word.substr(word.rfind('/') + 1);
    return name == "vllm" || name == "serve" || name == "trtllm-serve" || name == "python" || name == "python3" || name == "llama-server" ||
           name == "sglang";
}

/// The number behind `"num_speculative_tokens":` in a JSON text.
std::optional<double> speculative_tokens(const std::string& json) {
    const std::string key = "num_speculative_tokens";
    auto at = json.find(key);
    if (at == std::string::npos) return std::nullopt;
    at = json.find_first_of("0123456789", at + key.size());
    if (at == std::string::npos) return std::nullopt;
    return real_of(json.substr(at, json.find_first_not_of("0123456789", at) - at));
}

const Workload* find_workload(const StudyFile& study, const std::string& name) {
    for (const auto* list : {&study.workloads, &study.report_workloads})
        for (const Workload& workload : *list)
            if (workload.name == name || (name.empty() && list->size() == 1)) return &workload;
    return nullptr;
}

/// The command that a row of a table was measured with; nothing when it lies outside the space.
std::optional<std::vector<std::string>> command_of(const MeasuredTable& table, const MeasuredTable::Row& row, const SearchSpace& space,
                                                   const StudyFile& study) {
    const auto values = ReplayEvaluator::parsed(table, row, space);
    Assignment assignment;
    for (std::size_t i = 0; i < table.parameters.size(); ++i) {
        const Parameter* parameter = space.find(table.parameters[i]);
        if (parameter == nullptr || !values[i]) continue;
        if (!parameter->contains(*values[i])) return std::nullopt;
        assignment[table.parameters[i]] = *values[i];
    }
    const Command command = study.composition->render(space.completed(assignment), {study.model, {}, 0});
    std::vector<std::string> words = command.argv;
    for (const auto& [path, value] : command.options()) words.push_back("--" + path + "=" + value);
    return words;
}

}  // namespace

BenchmarkResult result_of(const Metrics& metrics) {
    BenchmarkResult result;
    for_each_figure(result, [&](const std::string& name, std::optional<double>& field) {
        if (const auto found = metrics.find(name); found != metrics.end()) field = found->second.value;
    });
    const auto ratio = metrics.find("success_ratio");
    if (!result.requested_requests && result.successful_requests && ratio != metrics.end() && ratio->second.value > 0)
        result.requested_requests = std::round(*result.successful_requests / ratio->second.value);
    return result;
}

void describe(AuditContext& context, const std::vector<std::string>& words, const std::string& model, const std::vector<ModelSpec>& known) {
    std::string served = model;
    std::string quantization;
    bool speculates = false;
    std::optional<double> drafts;
    bool first_word = true;
    context.devices = 1;
    for (const Argument& argument : arguments_of(words)) {
        const auto& [flag, value] = argument;
        const bool module = flag == "-m" && (value.starts_with("sglang") || value.starts_with("vllm"));
        if (flag.empty() && !starts_an_engine(value)) {
            if (first_word) served = value;
            first_word = false;
        } else if (among(model_flags, flag) && !module) served = value;
        else if (flag == "--quantization" || flag == "-q") quantization = value;
        else if (among(parallel_flags, flag)) context.devices *= std::max(1.0, real_of(value).value_or(1));
        else if (among(cache_off, flag)) context.prefix_cache_intended = false;
        if (flag.find("speculative") != std::string::npos || among(draft_counts, flag) || flag == "--model-draft" || flag == "-md") {
            speculates = true;
            const auto tokens = among(draft_counts, flag) ? real_of(value) : speculative_tokens(value);
            if (tokens) drafts = std::max(drafts.value_or(0), *tokens);
        }
    }
    context.served = served_model(served, known);
    if (context.served && !quantization.empty() && context.served->quantization == context.served->model.native_type)
        context.served->quantization = quantization;
    // At most every drafted token is accepted, and the model's own comes on top.
    if (!speculates) context.tokens_per_step = 1;
    else if (drafts) context.tokens_per_step = *drafts + 1;
    else context.tokens_per_step = std::nullopt;
}

std::optional<std::string> model_in(std::string_view text, const std::vector<ModelSpec>& known) {
    std::set<std::string> seen;  // each word is looked at once
    std::set<std::pair<std::string, std::string>> models;
    std::string name;
    const auto stops = [](char c) { return std::string_view(" \t\r\n`'\"*|,;:()[]<>{}\\").find(c) != std::string_view::npos; };
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && !stops(text[end])) ++end;
        const std::string word(text.substr(at, end - at));
        at = end + 1;
        if (word.find('-') == std::string::npos || word.size() > 200 || !seen.insert(word).second) continue;
        if (const auto served = served_model(word, known)) {
            models.emplace(served->model.name, served->quantization);
            name = word;
        }
    }
    return models.size() == 1 ? std::optional(name) : std::nullopt;
}

void audit_rows(MeasuredTable& table, const StudyFile& study) {
    const Catalogue catalogue(study.search_spaces);
    std::optional<HardwareSpec> hardware;
    if (!study.hardware.empty()) hardware = hardware_in(study.hardware, catalogue.all_hardware());
    std::vector<ModelSpec> models;  // what a command says is for physics, which needs hardware
    if (hardware) models = catalogue.all_models();
    const SearchSpace space(study.composition->parameters());
    struct Together {
        std::vector<BenchmarkResult> results;
        std::vector<Measurement*> measurements;
    };
    std::map<std::string, Together> by_workload;
    for (MeasuredTable::Row& row : table.rows) {
        auto* measurement = std::get_if<Measurement>(&row.outcome);
        if (measurement == nullptr) continue;
        const BenchmarkResult result = result_of(measurement->metrics);
        AuditContext context;
        context.hardware = hardware;
        if (const Workload* workload = find_workload(study, row.workload)) describe(context, *workload, result);
        if (const auto words = hardware ? command_of(table, row, space, study) : std::nullopt)
            describe(context, *words, study.model, models);
        add(measurement->validity, audit(result, context));
        by_workload[row.workload].results.push_back(result);
        by_workload[row.workload].measurements.push_back(measurement);
    }
    for (auto& [workload, together] : by_workload) {
        const std::vector<Validity> found = audit_together(together.results);
        for (std::size_t i = 0; i < found.size(); ++i) add(together.measurements[i]->validity, found[i]);
    }
}

}  // namespace servetune
