// SPDX-License-Identifier: Apache-2.0
#include "servetune/study_file/catalogue.hpp"

#include "keys.hpp"
#include "parameter_reader.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/io/files.hpp"
#include "servetune/io/yaml.hpp"
#include "servetune/space/search_space.hpp"
#include "servetune/trial/outcome.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const Yaml& node) {
    std::vector<std::string> result;
    for (const Yaml& item : node.items()) result.push_back(item.text());
    return result;
}

/// Conditions, constraints and json flags may only name the engine's own parameters; said where they stand.
void check_names(const Engine& engine, const Yaml& file) {
    std::vector<std::string> known;
    for (const EngineParameter& parameter : engine.parameters) known.push_back(parameter.parameter.name);
    const auto check = [&](const std::string& name, const Yaml& at) {
        if (engine.find(name) == nullptr)
            at.fail("'" + name + "' is not a parameter of " + engine.name + "; known: " + listed(nearest_first(name, known)));
    };
    for (const auto& [name, node] : file.find("parameters")->entries())
        if (const Yaml* when = node.find("when"))
            for (const auto& [parent, values] : when->entries()) check(parent, values);
    if (const Yaml* aliases = file.find("aliases"))
        for (const auto& [spelling, meant] : aliases->entries())
            if (meant.text() != "{model}") check(meant.text(), meant);
    if (const Yaml* devices = file.find("devices"))
        for (std::size_t i = 0; i < engine.devices.size(); ++i) {
            check(engine.devices[i].parameter, devices->items()[i]);
            for (const Condition& condition : engine.devices[i].unless) check(condition.parent, devices->items()[i]);
        }
    if (const Yaml* render = file.find("render"))
        for (std::size_t i = 0; i < engine.json_flags.size(); ++i)
            for (const auto& [key, name] : engine.json_flags[i].fields) check(name, render->items()[i]);
    if (const Yaml* constraints = file.find("constraints"))
        for (std::size_t i = 0; i < engine.constraints.size(); ++i)
            for (const std::string& name : names_of(engine.constraints[i])) check(name, constraints->items()[i]);
}

DeviceFactor read_device_factor(const Yaml& node) {
    if (!node.is_mapping()) return {node.text()};
    node.check_keys(keys::device_factor);
    const Yaml* unless = node.find("unless");
    return {node.find("parameter")->text(), unless != nullptr ? read_conditions(*unless) : std::vector<Condition>{}};
}

std::map<std::string, std::string> read_api(const Yaml& node) {
    node.check_keys(keys::api);
    for (const auto& [name, value] : node.entries()) {
        if (name == "style" && value.text() != "openai") value.fail_wanted("openai");
        if (name != "style" && !value.text().starts_with('/')) value.fail_wanted("a path such as /v1/models");
    }
    return read_texts(node);
}

Engine read_engine(const Yaml& file) {
    file.check_keys(keys::engine);
    Engine engine{file.find("engine")->text()};
    if (const Yaml* versions = file.find("versions")) engine.versions = versions->text();
    engine.launch = words(*file.find("launch"));
    if (std::none_of(engine.launch.begin(), engine.launch.end(),
                     [](const std::string& word) { return word.find("{model}") != std::string::npos; }))
        file.find("launch")->fail("the command has no {model}");
    if (const Yaml* starts = file.find("started_as"))
        for (const Yaml& item : starts->items()) {
            engine.started_as.push_back(words(item));
            if (engine.started_as.back().empty()) item.fail("a command begins with at least one word");
        }
    if (const Yaml* aliases = file.find("aliases")) engine.aliases = read_texts(*aliases);
    if (const Yaml* help = file.find("help")) {
        engine.help.clear();
        for (const Yaml& item : help->items()) engine.help.push_back(words(item));
    }
    if (const Yaml* style = file.find("flag_style")) {
        if (style->text() != "equals" && style->text() != "separate") style->fail_wanted("equals or separate");
        engine.flag_style = style->text() == "equals" ? Engine::FlagStyle::equals : Engine::FlagStyle::separate;
    }
    if (const Yaml* flag = file.find("options_flag")) engine.options_flag = flag->text();
    if (const Yaml* ready = file.find("ready")) {
        ready->check_keys(keys::ready);
        engine.ready_path = ready->find("http_get")->text();
        engine.ready_within_seconds = ready->find("within")->positive_seconds();
    }
    if (const Yaml* api = file.find("api")) engine.api = read_api(*api);
    if (const Yaml* names = file.find("reported_as")) engine.reported_as = read_texts(*names);
    if (const Yaml* counters = file.find("counters")) engine.counters = read_texts(*counters);
    if (const Yaml* list = file.find("between_runs"))
        for (const Yaml& item : list->items()) {
            item.check_keys(keys::between_runs);
            const Yaml* needs = item.find("needs_env");
            engine.between_runs.emplace_back(item.find("http_post")->text(),
                                             needs != nullptr ? read_texts(*needs) : std::map<std::string, std::string>{});
        }
    if (const Yaml* list = file.find("failures"))
        for (const Yaml& item : list->items()) {
            item.check_keys(keys::failure);
            const Yaml& kind = *item.find("kind");
            if (!named_in(failure_kinds, kind.text())) kind.fail("'" + kind.text() + "' is no kind of failure");
            engine.failures.push_back({kind.text(), words(*item.find("match"))});
        }
    for (const auto& [name, node] : file.find("parameters")->entries()) engine.parameters.push_back(read_parameter(name, node));
    for (const auto& [name, node] : file.find("parameters")->entries())
        if (node.find("option") != nullptr && engine.options_flag.empty()) node.find("option")->fail("the engine has no options_flag");
    if (const Yaml* list = file.find("render"))
        for (const Yaml& item : list->items()) {
            item.check_keys(keys::render);
            JsonFlag flag{item.find("flag")->text(), {}};
            for (const auto& [key, value] : item.find("json")->entries()) {
                const std::string text = value.text();
                if (text.size() < 3 || text.front() != '{' || text.back() != '}') value.fail_wanted("'{parameter}'");
                flag.fields.emplace_back(key, text.substr(1, text.size() - 2));
            }
            if (const Yaml* when = item.find("when")) flag.when = read_conditions(*when);
            engine.json_flags.push_back(std::move(flag));
        }
    if (const Yaml* list = file.find("constraints"))
        for (const Yaml& item : list->items()) engine.constraints.push_back(read_constraint(item));
    if (const Yaml* list = file.find("architectures")) engine.architectures = read_architectures(*list);
    if (const Yaml* list = file.find("devices"))
        for (const Yaml& item : list->items()) engine.devices.push_back(read_device_factor(item));
    check_names(engine, file);
    try {
        std::vector<Parameter> parameters;
        for (const EngineParameter& parameter : engine.parameters) parameters.push_back(parameter.parameter);
        const SearchSpace space(std::move(parameters), engine.constraints);
    } catch (const SpaceError& error) {
        throw ParseError(file.find("parameters")->place() + ": " + error.what());
    }
    return engine;
}

std::optional<std::int64_t> positive_count(const Yaml& node, std::string_view key) {
    const Yaml* child = node.find(key);
    if (child == nullptr) return std::nullopt;
    const std::int64_t value = child->integer();
    if (value < 1) child->fail_wanted("an integer of at least 1");
    return value;
}

Dataset read_dataset(const Yaml& node) {
    node.check_keys(keys::dataset);
    Dataset result;
    const Yaml& kind = *node.find("kind");
    const auto known = named_in(dataset_kinds, kind.text());
    if (!known) kind.fail_wanted("random, sharegpt, trace, prompts, shared_prefix or multi_turn");
    result.kind = *known;
    if (const Yaml* path = node.find("path")) result.path = text_with_home(*path);
    result.folder = fs::path(node.file()).parent_path().string();
    result.input_tokens = positive_count(node, "input_tokens");
    result.output_tokens = positive_count(node, "output_tokens");
    result.min_tokens = positive_count(node, "min_tokens");
    result.max_prompt_tokens = positive_count(node, "max_prompt_tokens");
    result.max_total_tokens = positive_count(node, "max_total_tokens");
    result.prefix_tokens = positive_count(node, "prefix_tokens");
    result.prefix_groups = positive_count(node, "prefix_groups");
    result.turns = positive_count(node, "turns");
    if (const Yaml* ratio = node.find("range_ratio")) {
        result.range_ratio = ratio->real();
        if (!(result.range_ratio >= 0 && result.range_ratio <= 1)) ratio->fail_wanted("a number in [0, 1]");
    }
    const bool needs_path =
        result.kind == Dataset::Kind::sharegpt || result.kind == Dataset::Kind::trace || result.kind == Dataset::Kind::prompts;
    if (needs_path && result.path.empty()) node.fail("a data set of kind " + kind.text() + " needs a path");
    if (result.kind == Dataset::Kind::random && (!result.input_tokens || !result.output_tokens))
        node.fail("a random data set needs input_tokens and output_tokens");
    if (result.kind == Dataset::Kind::shared_prefix && (!result.prefix_tokens || !result.input_tokens || !result.output_tokens))
        node.fail("a shared_prefix data set needs prefix_tokens, input_tokens and output_tokens");
    if (result.kind == Dataset::Kind::multi_turn && (!result.turns || !result.input_tokens || !result.output_tokens))
        node.fail("a multi_turn data set needs turns, input_tokens and output_tokens");
    return result;
}

void check_rate(const Yaml& node, double rate) {
    if (rate < slowest_rate || rate > fastest_rate) node.fail("a rate of 1e-6 to 1e9 requests a second wanted");
}

Arrival read_arrival(const Yaml& node) {
    node.check_keys(keys::arrival);
    Arrival result;
    int given = 0;
    if (const Yaml* rate = node.find("rate"); rate != nullptr && ++given > 0 && rate->text() != "inf" && rate->text() != ".inf") {
        result.kind = Arrival::Kind::rate;
        result.requests_per_second = rate->real();
        if (!(result.requests_per_second > 0)) rate->fail_wanted("a positive number or inf");
        check_rate(*rate, result.requests_per_second);
    }
    if (const auto concurrency = positive_count(node, "concurrency")) {
        ++given;
        result.kind = Arrival::Kind::concurrency;
        if (*concurrency > most_concurrency) node.find("concurrency")->fail_wanted("an integer of at most a million");
        result.in_flight = *concurrency;
    }
    if (const Yaml* trace = node.find("trace")) {
        ++given;
        if (trace->text() != "timestamps") trace->fail_wanted("timestamps");
        result.kind = Arrival::Kind::trace;
    }
    if (const Yaml* ramp = node.find("ramp")) {
        ++given;
        ramp->check_keys(keys::ramp);
        result.kind = Arrival::Kind::ramp;
        result.requests_per_second = ramp->find("from")->real();
        result.to_requests_per_second = ramp->find("to")->real();
        if (!(result.requests_per_second >= 0) || !(result.to_requests_per_second >= 0) ||
            !(result.requests_per_second + result.to_requests_per_second > 0))
            ramp->fail("rates of at least 0 wanted, one of them positive");
        check_rate(*ramp, std::max(result.requests_per_second, result.to_requests_per_second));
    }
    if (given > 1) node.fail("an arrival is one of rate, concurrency, trace, ramp");
    if (const Yaml* burstiness = node.find("burstiness")) {
        if (result.kind != Arrival::Kind::rate && result.kind != Arrival::Kind::ramp)
            burstiness->fail("burstiness goes with a finite rate or a ramp");
        const bool even = burstiness->text() == "inf" || burstiness->text() == ".inf";
        result.burstiness = even ? std::numeric_limits<double>::infinity() : burstiness->real();
        if (!(result.burstiness > 0)) burstiness->fail_wanted("a positive number or inf");
    }
    return result;
}

Workload read_workload(const Yaml& node, Workload result) {
    node.check_keys(keys::workload);
    if (const Yaml* name = node.find("workload")) result.name = name->text();
    if (const Yaml* dataset = node.find("dataset")) result.dataset = read_dataset(*dataset);
    if (const auto tokens = positive_count(node, "input_tokens")) result.dataset.input_tokens = tokens;
    if (const auto tokens = positive_count(node, "output_tokens")) result.dataset.output_tokens = tokens;
    if (const auto requests = positive_count(node, "requests")) result.requests = requests;
    if (const Yaml* arrival = node.find("arrival")) result.arrival = read_arrival(*arrival);
    if (const Yaml* seed = node.find("seed")) {
        if (seed->integer() < 0) seed->fail_wanted("an integer of at least 0");
        result.seed = static_cast<std::uint64_t>(seed->integer());
    }
    if (const Yaml* ignore = node.find("ignore_eos")) result.ignore_eos = ignore->boolean();
    if (const Yaml* weight = node.find("weight")) {
        result.weight = weight->real();
        if (!(result.weight > 0 && result.weight <= most_weight)) weight->fail_wanted("a positive number, at most a million,");
    }
    if (const Yaml* printed = node.find("printed_as"))
        result.printed_as = printed->is_sequence() ? words(*printed) : std::vector{printed->text()};
    if (result.name.empty()) node.fail("a workload needs a name ('workload:')");
    return result;
}

}  // namespace

Catalogue Catalogue::standard() {
    if (const char* given = std::getenv("SERVETUNE_SEARCH_SPACES")) return Catalogue(given);
    std::error_code error;
    for (fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path(); !folder.empty(); folder = folder.parent_path()) {
        for (const fs::path& candidate : {folder / "share/servetune/search_spaces", folder / "search_spaces"})
            if (fs::is_directory(candidate / "engines", error)) return Catalogue(candidate);
        if (folder == folder.root_path()) break;
    }
    throw IoError("no folder 'search_spaces' beside or above the program; set SERVETUNE_SEARCH_SPACES");
}

fs::path Catalogue::find(const std::string& kind, const std::string& name, const fs::path& beside) const {
    std::error_code error;
    if (name.find('/') != std::string::npos || name.ends_with(".yaml")) {
        const fs::path file = beside / with_home(name);
        if (!fs::exists(file, error)) throw IoError("there is no file " + file.string());
        return file;
    }
    for (const fs::path& folder : {beside, root_ / kind})
        if (fs::exists(folder / (name + ".yaml"), error)) return folder / (name + ".yaml");
    std::vector<std::string> known;
    if (fs::is_directory(root_ / kind, error))
        for (const auto& entry : fs::directory_iterator(root_ / kind))
            if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
    std::sort(known.begin(), known.end());
    throw IoError("there is no '" + name + "' among the " + kind + " in " + (root_ / kind).string() +
                  "; known: " + listed(nearest_first(name, known)));
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

Engine Catalogue::engine(const std::string& name) const { return read_engine(Yaml::load(find("engines", name, root_ / "engines"))); }

std::vector<Engine> Catalogue::engines() const {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root_ / "engines"))
        if (entry.path().extension() == ".yaml") files.insert(entry.path());
    std::vector<Engine> result;
    for (const fs::path& file : files) result.push_back(engine(Yaml::parse("\"" + file.string() + "\"", "engines")));
    return result;
}

Workload Catalogue::workload(const Yaml& described) const {
    const Yaml* used = described.is_mapping() ? described.find("use") : &described;
    Workload result;
    if (used != nullptr) {
        fs::path file;
        try {
            file = find("workloads", used->text(), fs::path(used->file()).parent_path());
        } catch (const IoError& error) {
            used->fail(error.what());
        }
        const Yaml found = Yaml::load(file);
        if (found.find("use") != nullptr) found.find("use")->fail("a workload that is used cannot use another");
        result = read_workload(found, {});
    } else if (described.find("dataset") == nullptr) described.fail("a workload needs a dataset (or use:)");
    return described.is_mapping() ? read_workload(described, std::move(result)) : result;
}

}  // namespace servetune
