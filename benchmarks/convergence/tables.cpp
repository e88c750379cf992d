// SPDX-License-Identifier: Apache-2.0
// Tables of measurements that others made. What is the load or the machine and no choice is fixed
// or bounded, so that no optimizer wins by asking for more load.
#include "base/files.hpp"
#include "study/table.hpp"
#include "task.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace servetune::convergence {
namespace {

struct Choice {
    std::string task, table, what;
    Objective objective;
    std::map<std::string, std::string> fixed;  ///< parameters that are the task
    double success_share;                      ///< 0: within 5 %
    /// Strategies were tuned on it before tasks were split.
    bool known_before = true;
    /// What, with the pairs of levels that occur, says which rows exist: the same constraints as a
    /// list of rows, told in a form that is quick to decide. Nothing: the list.
    std::optional<std::vector<std::string>> rules{};
};

/// The tile with its border of 7 on either side fits into 48 KiB of shared memory.
const std::string convolution_tile = "use_shmem == 0 or (block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) * 4 <= 49152";

const std::vector<Choice>& choices() {
    static const std::vector<Choice> list{{"kt_convolution",
                                           "kt_convolution_a100",
                                           "a GPU kernel, 4362 combinations, few good ones",
                                           {"time_ms", Direction::minimize, {}},
                                           {},
                                           0.01,
                                           true,
                                           {{convolution_tile}}},
                                          {"argonne_1024",
                                           "argonne_meta-llama-3-8b",
                                           "hardware, framework and batch for 1024 tokens in and out, answered within 20 s",
                                           {"throughput_per_hw", Direction::maximize, {Limit::parse("latency_s <= 20")}},
                                           {{"io_len", "1024"}},
                                           0},
                                          {"aic_1024_512",
                                           "aic_qwen32b_h100_trtllm",
                                           "parallelism, precision and batch for 1024 in and 512 out at 40 ms a token at most",
                                           {"tok_s_gpu", Direction::maximize, {Limit::parse("tpot_ms <= 40")}},
                                           {{"isl", "1024"}, {"osl", "512"}},
                                           0},
                                          {"infx_dsr1",
                                           "infx_dsr1_1k1k",
                                           "engine, precision, parallelism and load on one system at 25 ms a token at most",
                                           {"tok_s_gpu", Direction::maximize, {Limit::parse("tpot_ms <= 25")}},
                                           {{"system", "b200_sxm"}},
                                           0},
                                          {"infx_llama70b",
                                           "infx_llama70b_1k1k",
                                           "engine, precision, parallelism and load on one system at 20 ms a token at most",
                                           {"tok_s_gpu", Direction::maximize, {Limit::parse("tpot_ms <= 20")}},
                                           {{"system", "b200_sxm"}},
                                           0},
                                          {"kt_convolution_w6600",
                                           "kt_convolution_w6600",
                                           "the same kernel on another chip",
                                           {"time_ms", Direction::minimize, {}},
                                           {},
                                           0.01,
                                           false,
                                           {{convolution_tile}}},
                                          {"kt_dedispersion_w7800",
                                           "kt_dedispersion_w7800",
                                           "a GPU kernel, 11130 combinations, flat",
                                           {"time_ms", Direction::minimize, {}},
                                           {},
                                           0.01,
                                           false,
                                           std::vector<std::string>{}},
                                          {"kt_pnpoly_rtx3090",
                                           "kt_pnpoly_rtx3090",
                                           "a GPU kernel, 4092 combinations, some do not run",
                                           {"time_ms", Direction::minimize, {}},
                                           {},
                                           0.01,
                                           false,
                                           std::vector<std::string>{}},
                                          {"llama_server",
                                           "llama-server",
                                           "a real engine on two processors, 12 flags, means of three runs",
                                           {"output_tokens_per_second", Direction::maximize, {}},
                                           {},
                                           0,
                                           false}};
    return list;
}

/// `fail:KIND` is a table's own word for a failure that this project has no name for.
std::string with_our_failures(std::string text) {
    for (std::size_t at = text.find(",fail:"); at != std::string::npos; at = text.find(",fail:", at)) {
        const std::size_t end = text.find(',', at + 1);
        text.replace(at, end - at, ",other");
    }
    return text;
}

/// The pairs of levels that occur, where not all do, and the rules.
std::vector<Constraint> rules_for(const Allow& rows, const std::vector<std::string>& rules) {
    std::vector<Constraint> constraints;
    for (std::size_t i = 0; i < rows.names.size(); ++i)
        for (std::size_t j = i + 1; j < rows.names.size(); ++j) {
            Allow pairs{{rows.names[i], rows.names[j]}, {}, "only these were measured"};
            std::set<Value> first;
            std::set<Value> second;
            for (const Allow::Row& row : rows.rows) {
                pairs.rows.insert({row[i], row[j]});
                first.insert(*row[i]);
                second.insert(*row[j]);
            }
            if (pairs.rows.size() < first.size() * second.size()) constraints.emplace_back(std::move(pairs));
        }
    for (const std::string& rule : rules) constraints.push_back(require(rule, "only these were measured"));
    return constraints;
}

Task::Definition task_of(const Choice& choice, const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / (choice.table + ".csv");
    const MeasuredTable table = parse_table(with_our_failures(read_file(file)), file.string());
    Task::Definition task;
    task.name = choice.task;
    task.what = choice.what;
    task.objective = choice.objective;
    task.success_share = choice.success_share;
    std::vector<const MeasuredTable::Row*> rows;
    for (const MeasuredTable::Row& row : table.rows) {
        bool fits = true;
        for (std::size_t i = 0; i < table.parameters.size(); ++i)
            if (const auto fixed = choice.fixed.find(table.parameters[i]); fixed != choice.fixed.end())
                fits = fits && row.cells[i] == fixed->second;
        if (fits) rows.push_back(&row);
    }
    Allow allow{{}, {}, "only these were measured"};
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < table.parameters.size(); ++i) {
        std::set<Value> values;
        for (const MeasuredTable::Row* row : rows) values.insert(value_of(row->cells[i].value_or("")));
        if (values.size() < 2) continue;
        const bool none = values.erase(Unset{}) > 0;  // no flag
        const bool numbers = std::all_of(values.begin(), values.end(), [](const Value& value) { return number_of(value).has_value(); });
        columns.push_back(i);
        allow.names.push_back(table.parameters[i]);
        Parameter parameter = Parameter::choice(table.parameters[i], {values.begin(), values.end()}, numbers);
        task.parameters.push_back(none ? std::move(parameter).or_unset() : std::move(parameter));
    }
    auto truth = std::make_shared<std::map<Configuration, Outcome>>();
    for (const MeasuredTable::Row* row : rows) {
        Allow::Row allowed;
        Assignment assignment;
        for (const std::size_t i : columns) {
            const Value value = value_of(row->cells[i].value_or(""));
            allowed.emplace_back(value);
            assignment.emplace(table.parameters[i], value);
        }
        allow.rows.insert(std::move(allowed));
        truth->emplace(Configuration::of(assignment), row->outcome);
    }
    task.known_before = choice.known_before;
    if (choice.rules) task.constraints = rules_for(allow, *choice.rules);
    else task.constraints = {std::move(allow)};
    const SearchSpace space(task.parameters, task.constraints);
    if (const double size = FeasibleSet(space).size(); size != static_cast<double>(truth->size()))
        throw ParseError(file.string() + ": its rules leave " + text_of(size) + " configurations, it has " + std::to_string(truth->size()));
    for (const auto& [configuration, outcome] : *truth)
        if (!space.feasible(configuration)) throw ParseError(file.string() + ": its rules forbid the row " + configuration.text());
    task.truth = [truth](const Configuration& configuration) { return truth->at(configuration); };
    return task;
}

}  // namespace

std::vector<Task::Definition> table_tasks(const std::filesystem::path& folder) {
    std::vector<Task::Definition> result;
    for (const Choice& choice : choices())
        if (std::filesystem::exists(folder / (choice.table + ".csv"))) result.push_back(task_of(choice, folder));
    return result;
}

}  // namespace servetune::convergence
