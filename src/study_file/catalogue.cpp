// SPDX-License-Identifier: Apache-2.0
#include "servetune/catalogue.hpp"

#include "all_errors.hpp"
#include "base/files.hpp"
#include "base/kept_texts.hpp"
#include "base/lower_case.hpp"
#include "base/nesting.hpp"
#include "engine/json_form.hpp"
#include "engine_file_parts.hpp"
#include "key_reader.hpp"
#include "keys.hpp"
#include "load/data_files.hpp"
#include "parameter_reader.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"
#include "servetune/search_space.hpp"
#include "yaml_text.hpp"

#include <nlohmann/json.hpp>

#include <sys/auxv.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <span>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Conditions, constraints and json flags may only name the engine's own parameters; said where
/// they stand.
void check_names(const Engine& engine, const Yaml& file) {
    std::vector<std::string> known;
    for (const EngineParameter& parameter : engine.parameters)
        known.push_back(parameter.parameter.name);
    const auto check = [&](const std::string& name, const Yaml& at) {
        if (engine.find(name) == nullptr)
            at.fail("'" + name + "' is not a parameter of " + engine.name +
                    "; known: " + listed(nearest_first(name, known)));
    };
    for (const auto& [name, node] : file.at(keys::engine.parameters).entries())
        if (const Yaml* when = node.find(keys::parameter.when))
            for (const auto& [parent, values] : when->entries()) check(parent, values);
    if (const Yaml* aliases = file.find(keys::engine.aliases))
        for (const auto& [spelling, meant] : aliases->entries())
            if (!meant.text().starts_with("{model}")) check(meant.text(), meant);
    if (const Yaml* devices = file.find(keys::engine.devices))
        for (std::size_t i = 0; i < engine.devices.size(); ++i) {
            const Yaml& at =
                devices->is_sequence() ? devices->items()[i] : devices->entries()[i].second;
            check(engine.devices[i].parameter, at);
            for (const Condition& condition : engine.devices[i].unless) check(condition.parent, at);
        }
    if (const Yaml* cache = file.find(keys::engine.weight_cache)) {
        for (const Yaml& name : cache->at(keys::weight_cache.parameters).items())
            check(name.text(), name);
        for (const Condition& condition : engine.weight_cache->when)
            check(condition.parent, cache->at(keys::weight_cache.when));
    }
    if (const Yaml* render = file.find(keys::engine.render))
        for (std::size_t i = 0; i < engine.json_flags.size(); ++i)
            for (const auto& [key, name] : engine.json_flags[i].fields)
                check(name, render->items()[i]);
    if (const Yaml* constraints = file.find(keys::engine.constraints))
        for (std::size_t i = 0; i < engine.constraints.size(); ++i)
            for (const std::string& name : names_of(engine.constraints[i])) {
                const bool of_model = name.starts_with("model.") &&
                                      std::holds_alternative<Require>(engine.constraints[i]);
                if (!of_model) check(name, constraints->items()[i]);
                else if (std::find(model_facts.begin(), model_facts.end(), name) ==
                         model_facts.end())
                    constraints->items()[i].fail(
                        "'" + name + "' is nothing that rules may ask of a model; known: " +
                        listed(nearest_first(name, std::vector<std::string>(model_facts.begin(),
                                                                            model_facts.end()))));
            }
}

/// Loading and compiling a large model for the first time takes most of it.
constexpr double ready_within_usually = 20 * 60.0;

/// Where a mapping stood once in place of what stands there now.
void check_old(const Yaml& node, std::string_view table) {
    for (const Yaml& item : node.is_sequence() ? node.items() : std::vector<Yaml>{node})
        if (item.is_mapping()) item.check_keys(std::span<const Key>{}, table);
}

std::vector<DeviceFactor> read_device_factors(const Yaml& node) {
    std::vector<DeviceFactor> result;
    if (node.is_sequence()) check_old(node, "devices");
    if (node.is_sequence())
        for (const Yaml& item : node.items()) result.push_back({item.text()});
    else
        for (const auto& [name, unless] : node.entries())
            result.push_back({name, read_conditions(unless)});
    return result;
}

/// What differs from OpenAI's paths.
std::map<std::string, std::string> read_api(const Yaml& file) {
    const auto& table = keys::engine;
    std::map<std::string, std::string> result;
    if (const Yaml* api = file.find(table.api)) {
        check_old(*api, table.api.name);
        if (read<std::string>(file, table.api) == "completions")
            result["completions"] = "/v1/completions";
    }
    if (const Yaml* path = file.find(table.server_info)) {
        read(file, table.server_info, result["server_info"]);
        if (!path->text().starts_with('/')) path->fail_wanted("a path such as /get_server_info");
    }
    return result;
}

Engine read_engine(const Yaml& file) {
    const auto& table = keys::engine;
    file.check_keys(table);
    Engine engine{read<std::string>(file, table.engine)};
    read(file, table.versions, engine.versions);
    read(file, table.launch, engine.launch);
    if (std::none_of(engine.launch.begin(), engine.launch.end(), [](const std::string& word) {
            return word.find("{model}") != std::string::npos;
        }))
        file.at(table.launch).fail("the command has no {model}");
    read(file, table.started_as, engine.started_as);
    for (std::size_t i = 0; i < engine.started_as.size(); ++i)
        if (engine.started_as[i].empty())
            file.at(table.started_as).items()[i].fail("a command begins with at least one word");
    read(file, table.images, engine.images);
    read(file, table.aliases, engine.aliases);
    read(file, table.not_about_speed, engine.not_about_speed);
    read(file, table.help, engine.help);
    read(file, table.help_of_removed, engine.help_of_removed);
    for (std::size_t i = 0; i < engine.help_of_removed.size(); ++i)
        if (engine.help_of_removed[i].empty())
            file.at(table.help_of_removed).items()[i].fail("no words are in every line");
    read_word<keys::flag_styles>(file, table.flag_style, engine.flag_style);
    read(file, table.options_flag, engine.options_flag);
    for (const auto& [key, into] : {std::pair(table.file_flags, &engine.file_flags),
                                    {table.flag_variables, &engine.flag_variables},
                                    {table.environment_prefixes, &engine.environment_prefixes}}) {
        read(file, key, *into);
        for (std::size_t i = 0; i < into->size(); ++i)
            if ((*into)[i].empty())
                file.at(key).items()[i].fail("every name begins with nothing: a word wanted");
    }
    read(file, table.caches, engine.caches);
    read(file, table.model_files, engine.model_files);
    for (std::size_t i = 0; i < engine.model_files.size(); ++i)
        if (const std::string name = fs::path(engine.model_files[i]).filename().string();
            !name.starts_with("*.") || name.size() < 3)
            file.at(table.model_files)
                .items()[i]
                .fail("FOLDER/*.ENDING wanted, got '" + engine.model_files[i] + "'");
    if (const Yaml* ready = file.find(table.ready)) check_old(*ready, table.ready.name);
    read(file, table.ready, engine.ready_path);
    engine.ready_within_seconds = ready_within_usually;
    read(file, table.ready_within, engine.ready_within_seconds);
    engine.api = read_api(file);
    read(file, table.reported_as, engine.reported_as);
    read(file, table.counters, engine.counters);
    if (const Yaml* paths = file.find(keys::engine.between_runs)) {
        if (paths->is_sequence()) check_old(*paths, keys::engine.between_runs.name);
        std::map<std::string, std::map<std::string, std::string>> needs;
        read(file, keys::engine.between_runs, needs);
        engine.between_runs.assign(needs.begin(), needs.end());
    }
    if (const Yaml* list = file.find(keys::engine.failures))
        for (const Yaml& item : list->items()) {
            item.check_keys(keys::failure);
            const Yaml& kind = item.at(keys::failure.kind);
            if (!named_in(failure_kinds, kind.text()))
                kind.fail("'" + kind.text() + "' is no kind of failure");
            engine.failures.push_back(
                {kind.text(), read<std::vector<std::string>>(item, keys::failure.match)});
            read(item, keys::failure.source, engine.failures.back().source);
        }
    for (const auto& [name, node] : file.at(keys::engine.parameters).entries())
        engine.parameters.push_back(read_parameter(name, node));
    for (const auto& [name, node] : file.at(keys::engine.parameters).entries())
        if (node.find(keys::parameter.option) != nullptr && engine.options_flag.empty())
            node.at(keys::parameter.option).fail("the engine has no options_flag");
    if (const Yaml* list = file.find(keys::engine.render))
        for (const Yaml& item : list->items()) {
            item.check_keys(keys::render);
            JsonFlag flag{read<std::string>(item, keys::render.flag), {}};
            for (const auto& [key, value] : item.at(keys::render.json).entries()) {
                const std::string text = value.text();
                const std::vector<std::string> names = names_in_form(text);
                std::map<std::string, std::string> ones;
                for (const std::string& name : names) {
                    flag.fields.emplace_back(key, name);
                    ones[name] = "1";
                }
                if (names.empty() ||
                    shallow_json<nlohmann::json>(filled_form(text, ones)).is_discarded())
                    value.fail_wanted("'{parameter}', or JSON with {parameter} in it");
                if (text != "{" + names.front() + "}") flag.forms.emplace(key, text);
            }
            if (const Yaml* when = item.find(keys::render.when)) flag.when = read_conditions(*when);
            engine.json_flags.push_back(std::move(flag));
        }
    if (const Yaml* list = file.find(keys::engine.constraints))
        for (const Yaml& item : list->items()) {
            engine.constraints.push_back(read_constraint(item));
            std::pair<std::string, std::string> versions;
            read(item, keys::constraint.since, versions.first);
            read(item, keys::constraint.until, versions.second);
            if (!versions.first.empty() || !versions.second.empty())
                engine.constraint_versions[text_of(engine.constraints.back())] =
                    std::move(versions);
        }
    if (const Yaml* list = file.find(keys::engine.architectures))
        engine.architectures = read_architectures(*list);
    if (const Yaml* daemon = file.find(keys::engine.weight_cache)) {
        engine.weight_cache = read_weight_cache(*daemon);
        if (daemon->find(keys::weight_cache.ready_within) == nullptr)
            engine.weight_cache->ready_within_seconds = engine.ready_within_seconds;
    }
    if (const Yaml* starts = file.find(keys::engine.started_by))
        engine.started_by = read_started_by(*starts);
    if (const Yaml* devices = file.find(keys::engine.devices))
        engine.devices = read_device_factors(*devices);
    if (const Yaml* roles = file.find(keys::engine.roles)) engine.roles = read_roles(*roles);
    check_names(engine, file);
    try {
        std::vector<Parameter> parameters;
        for (const EngineParameter& parameter : engine.parameters)
            parameters.push_back(parameter.parameter);
        std::vector<Constraint> rules = engine.constraints;
        for (Constraint& constraint : rules)
            if (auto* rule = std::get_if<Require>(&constraint))
                rule->expression = with_model_facts(rule->expression, {});
        const SearchSpace space(std::move(parameters), std::move(rules));
    } catch (const SpaceError& error) {
        throw ParseError(file.at(keys::engine.parameters).place() + ": " + error.what());
    }
    return engine;
}

Dataset read_dataset(const Yaml& node) {
    const auto& table = keys::dataset;
    node.check_keys(table);
    Dataset result;
    read_word<dataset_kinds>(node, table.kind, result.kind);
    if (const Yaml* path = node.find(table.path)) result.path = text_with_home(*path);
    result.folder = on_disk(node.file()).parent_path().string();
    read(node, table.input_tokens, result.input_tokens);
    read(node, table.output_tokens, result.output_tokens);
    read(node, table.prefix_tokens, result.prefix_tokens);
    read(node, table.prefix_groups, result.prefix_groups);
    read(node, table.turns, result.turns);
    read(node, table.range_ratio, result.range_ratio);
    if (result.kind == Dataset::Kind::sharegpt) {
        result.min_tokens = sharegpt_min_tokens;
        result.max_prompt_tokens = sharegpt_max_prompt_tokens;
        result.max_total_tokens = sharegpt_max_total_tokens;
    }
    const bool needs_path = result.kind == Dataset::Kind::sharegpt ||
                            result.kind == Dataset::Kind::trace ||
                            result.kind == Dataset::Kind::prompts;
    if (needs_path && result.path.empty())
        node.fail("a data set of kind " + std::string(name_in(dataset_kinds, result.kind)) +
                  " needs a path");
    if (result.kind == Dataset::Kind::random && (!result.input_tokens || !result.output_tokens))
        node.fail("a random data set needs input_tokens and output_tokens");
    if (result.kind == Dataset::Kind::shared_prefix &&
        (!result.prefix_tokens || !result.input_tokens || !result.output_tokens))
        node.fail("a shared_prefix data set needs prefix_tokens, input_tokens and output_tokens");
    if (result.kind == Dataset::Kind::multi_turn &&
        (!result.turns || !result.input_tokens || !result.output_tokens))
        node.fail("a multi_turn data set needs turns, input_tokens and output_tokens");
    return result;
}

void check_rate(const Yaml& node, double rate) {
    if (rate < slowest_rate || rate > fastest_rate)
        node.fail("a rate of 1e-6 to 1e9 requests a second wanted");
}

/// A positive number; infinity for `inf`.
double read_rate(const Yaml& node) {
    if (node.is_scalar() && std::find(keys::infinite_words.begin(), keys::infinite_words.end(),
                                      node.text()) != keys::infinite_words.end())
        return std::numeric_limits<double>::infinity();
    const double rate = node.real();
    if (!(rate > 0)) node.fail_wanted("a positive number or inf");
    return rate;
}

LoadSearch read_load_search(const Yaml& node) {
    const auto& table = keys::load_search;
    node.check_keys(table);
    LoadSearch result;
    read(node, table.from, result.from);
    read(node, table.to, result.to);
    for (const auto& [key, bound] :
         {std::pair(table.from, result.from), std::pair(table.to, result.to)})
        if (bound && (*bound < slowest_rate || *bound > fastest_rate))
            node.at(key).fail_wanted("a load of 1e-6 to 1e9");
    if (result.from && result.to && *result.from >= *result.to) node.fail("`from` is below `to`");
    return result;
}

Arrival read_arrival(const Yaml& node) {
    const auto& table = keys::arrival;
    node.check_keys(table);
    Arrival result;
    int given = 0;
    if (const Yaml* rate = node.find(table.rate)) {
        ++given;
        if (rate->is_scalar() && rate->text() == "timestamps") result.kind = Arrival::Kind::trace;
        else if (const double requests_per_second = read_rate(*rate);
                 !std::isinf(requests_per_second)) {
            result.kind = Arrival::Kind::rate;
            result.requests_per_second = requests_per_second;
            check_rate(*rate, requests_per_second);
        }
    }
    if (node.find(table.concurrency) != nullptr) {
        ++given;
        result.kind = Arrival::Kind::concurrency;
        read(node, table.concurrency, result.in_flight);
    }
    if (const Yaml* ramp = node.find(table.ramp)) {
        ++given;
        ramp->check_keys(keys::ramp);
        result.kind = Arrival::Kind::ramp;
        result.requests_per_second = read<double>(*ramp, keys::ramp.from);
        result.to_requests_per_second = read<double>(*ramp, keys::ramp.to);
        if (!(result.requests_per_second + result.to_requests_per_second > 0))
            ramp->fail("rates of at least 0 wanted, one of them positive");
        check_rate(*ramp, std::max(result.requests_per_second, result.to_requests_per_second));
    }
    if (const Yaml* search = node.find(table.largest_rate)) {
        ++given;
        result.kind = Arrival::Kind::largest_rate;
        result.search = read_load_search(*search);
    }
    if (const Yaml* search = node.find(table.largest_concurrency)) {
        ++given;
        result.kind = Arrival::Kind::largest_concurrency;
        result.search = read_load_search(*search);
    }
    if (given > 1)
        node.fail(
            "an arrival is one of rate, concurrency, ramp, largest_rate, largest_concurrency");
    if (const Yaml* speed = node.find(table.speed)) {
        if (result.kind != Arrival::Kind::trace) speed->fail("speed goes with `rate: timestamps`");
        read(node, table.speed, result.speed);
        if (result.speed < slowest_replay || result.speed > fastest_replay)
            speed->fail_wanted("a number from 0.001 to 1000");
    }
    if (const Yaml* burstiness = node.find(table.burstiness)) {
        if (result.kind != Arrival::Kind::rate && result.kind != Arrival::Kind::ramp &&
            result.kind != Arrival::Kind::largest_rate)
            burstiness->fail("burstiness goes with a finite rate, a ramp or largest_rate");
        result.burstiness = read_rate(*burstiness);
    }
    return result;
}

Workload read_workload(const Yaml& node, Workload result) {
    const auto& table = keys::workload;
    AllErrors errors;
    const auto read_it = [&](const Key& key, auto& into) {
        errors.in([&] { read(node, key, into); });
    };
    errors.in([&] { node.check_keys(table); });
    read_it(table.workload, result.name);
    errors.in([&] {
        if (const Yaml* dataset = node.find(table.dataset)) result.dataset = read_dataset(*dataset);
    });
    read_it(table.input_tokens, result.dataset.input_tokens);
    read_it(table.output_tokens, result.dataset.output_tokens);
    read_it(table.requests, result.requests);
    errors.in([&] {
        if (const Yaml* arrival = node.find(table.arrival)) result.arrival = read_arrival(*arrival);
    });
    read_it(table.seed, result.seed);
    read_it(table.ignore_eos, result.ignore_eos);
    read_it(table.weight, result.weight);
    read_it(table.printed_as, result.printed_as);
    if (result.name.empty()) errors.in([&] { node.fail("a workload needs a name ('workload:')"); });
    errors.throw_any();
    return result;
}

/// A study may be called after the engine that it tunes; it is not what it names.
/// The file of this program, links followed; without /proc as it was started. Empty: unknown.
fs::path this_program() {
    std::error_code error;
    fs::path result = fs::read_symlink("/proc/self/exe", error);
    if (!error) return result;
    const auto* started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));  // getauxval(3)
    return started == nullptr ? fs::path() : fs::canonical(started, error);
}

bool is_study(const fs::path& file) {
    const Yaml text = Yaml::load(file);
    return text.is_mapping() && text.find(keys::study.objective) != nullptr;
}

}  // namespace

Catalogue Catalogue::standard() {
    if (const char* given = std::getenv("SERVETUNE_SEARCH_SPACES")) return Catalogue(given);
    std::error_code error;
    for (fs::path folder = this_program().parent_path(); !folder.empty();
         folder = folder.parent_path()) {
        for (const fs::path& candidate :
             {folder / "share/servetune/search_spaces", folder / "search_spaces"})
            if (fs::is_directory(candidate / "engines", error)) return Catalogue(candidate);
        if (folder == folder.root_path()) break;
    }
    throw IoError(
        "no folder 'search_spaces' beside or above the program; set SERVETUNE_SEARCH_SPACES");
}

fs::path Catalogue::find(const std::string& kind, const std::string& name,
                         const fs::path& beside) const {
    std::error_code error;
    if (name.find('/') != std::string::npos || names_yaml_file(name)) {
        const fs::path file = servetune::beside(beside, with_home(name));
        if (!text_exists(file)) throw IoError("there is no file " + file.string());
        return file;
    }
    for (const std::string& spelled : {name, lower_case(name)})  // vLLM is vllm
        for (const fs::path& folder : {beside, root_ / kind}) {
            const fs::path file = folder / (spelled + ".yaml");
            if (text_exists(file) && (folder != beside || !is_study(file))) return file;
        }
    std::vector<std::string> known;
    if (fs::is_directory(root_ / kind, error))
        for (const auto& entry : fs::directory_iterator(root_ / kind))
            if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
    std::sort(known.begin(), known.end());
    throw IoError("there is no '" + name + "' among the " + kind + " in " +
                  (root_ / kind).string() + "; known: " + listed(nearest_first(name, known)));
}

Engine Catalogue::engine(const Yaml& named) const {
    fs::path file;
    try {
        file = find("engines", named.text(), fs::path(named.file()).parent_path());
    } catch (const IoError& error) {
        named.fail(error.what());
    }
    return read_engine(Yaml::load(file));
}

Engine Catalogue::engine(const std::string& name) const {
    return read_engine(Yaml::load(find("engines", name, root_ / "engines")));
}

std::vector<Engine> Catalogue::engines() const {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root_ / "engines"))
        if (entry.path().extension() == ".yaml") files.insert(entry.path());
    std::vector<Engine> result;
    for (const fs::path& file : files)
        result.push_back(engine(Yaml::parse("\"" + file.string() + "\"", "engines")));
    return result;
}

Workload Catalogue::workload(const Yaml& described) const {
    const Yaml* used = described.is_mapping() ? described.find(keys::workload.use) : &described;
    Workload result;
    if (used != nullptr) {
        fs::path file;
        try {
            file = find("workloads", used->text(), fs::path(used->file()).parent_path());
        } catch (const IoError& error) {
            used->fail(error.what());
        }
        const Yaml found = Yaml::load(file);
        if (const Yaml* another = found.find(keys::workload.use))
            another->fail("a workload that is used cannot use another");
        result = read_workload(found, {});
        const bool own =
            described.is_mapping() && described.find(keys::workload.dataset) != nullptr;
        if (!own && found.find(keys::workload.dataset) == nullptr)
            found.fail("a workload needs a dataset");
    } else if (described.find(keys::workload.dataset) == nullptr)
        described.fail("a workload needs a dataset (or use:)");
    return described.is_mapping() ? read_workload(described, std::move(result)) : result;
}

}  // namespace servetune
