// SPDX-License-Identifier: Apache-2.0
#include "servetune/study_file/study_file.hpp"

#include "../io/all_errors.hpp"
#include "budget_reader.hpp"
#include "keys.hpp"
#include "measuring/kind.hpp"
#include "measuring/load_test.hpp"
#include "parameter_reader.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/engine/per_device.hpp"
#include "servetune/engine/version.hpp"
#include "servetune/io/files.hpp"
#include "servetune/io/key_reader.hpp"
#include "servetune/io/secrets.hpp"
#include "servetune/load/capacity.hpp"
#include "space_reader.hpp"
#include "study_definition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// `use:` chains, the nearest file last; a circle ends at the depth bound. Keys are checked once all is laid together.
Yaml resolved(const Yaml& node, int depth = 0) {
    if (!node.is_mapping()) node.fail_wanted("a mapping of keys");
    const Yaml* use = node.find(keys::study.use);
    if (use == nullptr) return node;
    if (depth > 10) use->fail("more than 10 studies use each other; is it a circle?");
    const fs::path base = path_of(*use);
    std::error_code unknown;
    if (!fs::exists(base, unknown)) use->fail("there is no file " + base.string());
    return resolved(Yaml::load(base), depth + 1).overlaid(node.without(keys::study.use), keys::study.space);
}

/// Goals that ask for the most load that keeps the limits: the word, the metric, and the arrival that finds it.
struct LoadGoal {
    std::string_view word;
    std::string_view metric;
    Arrival::Kind arrival;
};
constexpr std::array<LoadGoal, 5> load_goals{{
    {"request_rate", sustained_requests_per_second, Arrival::Kind::largest_rate},
    {"sustained_requests_per_second_per_gpu", "sustained_requests_per_second_per_gpu", Arrival::Kind::largest_rate},
    {"goodput_requests_per_second_per_gpu", "goodput_requests_per_second_per_gpu", Arrival::Kind::largest_rate},
    {"concurrency", sustained_concurrency, Arrival::Kind::largest_concurrency},
    {"goodput", "goodput_requests_per_second", Arrival::Kind::largest_rate},
}};

const LoadGoal* load_goal(std::string_view word) {
    const auto found = std::find_if(load_goals.begin(), load_goals.end(), [&](const LoadGoal& goal) { return goal.word == word; });
    return found == load_goals.end() ? nullptr : &*found;
}

/// `words`: of a load test, whose metrics we name; other evaluators have names of their own.
std::string goal_metric(const std::string& word, Direction direction, bool words) {
    if (!words) return word;
    const LoadGoal* goal = direction == Direction::maximize ? load_goal(word) : nullptr;
    return goal != nullptr ? std::string(goal->metric) : metric_of_word(word);
}

/// Of a load test, what a goal such as `request_rate` asks of the workloads' arrivals, and what a search for the
/// largest load needs.
void look_for_load(const Yaml& root, StudyFile& study) {
    const Yaml& objective = root.at(keys::study.objective);
    if (const Yaml* maximize = objective.find(keys::objective.maximize))
        for (const Yaml& item : maximize->is_sequence() ? maximize->items() : std::vector<Yaml>{*maximize}) {
            const LoadGoal* goal = load_goal(item.text());
            if (goal == nullptr) continue;
            for (Workload& workload : study.workloads) {
                Arrival& arrival = workload.arrival;
                const bool any = goal->word.starts_with("goodput");
                if (workload.dataset.kind == Dataset::Kind::multi_turn)
                    item.fail("'" + workload.name +
                              "' has conversations, whose turns wait for answers, so that a load that is asked for is not reached; give "
                              "it another dataset");
                if (arrival.searched() && !any && arrival.kind != goal->arrival)
                    item.fail("'" + workload.name + "' looks for another load; give all workloads the arrival " +
                              std::string(name_in(arrival_kinds, goal->arrival)));
                if (arrival.searched()) continue;
                if (arrival.kind == Arrival::Kind::trace || arrival.kind == Arrival::Kind::ramp)
                    item.fail("the largest load is looked for at a constant rate or concurrency, and '" + workload.name +
                              "' has an arrival of another kind; give it `arrival: {largest_rate: {}}`");
                arrival.kind = goal->arrival;
            }
        }
    const bool searched =
        std::any_of(study.workloads.begin(), study.workloads.end(), [](const Workload& workload) { return workload.arrival.searched(); });
    if (!searched) return;
    if (std::none_of(study.objective.limits.begin(), study.objective.limits.end(), grows_with_load))
        objective.fail(
            "the largest load that keeps the limits is looked for, and no limit grows with load; add one such as "
            "limits: [\"ttft_p95 <= 500ms\"]");
    const bool goodput = std::any_of(study.objective.goals.begin(), study.objective.goals.end(),
                                     [](const Goal& goal) { return goal.metric.starts_with("goodput_"); });
    const ServiceLimits service = service_limits(study.objective.limits);
    if (goodput && !service.time_to_first_token_seconds && !service.time_per_output_token_seconds && !service.latency_seconds)
        objective.fail(
            "goodput counts the requests that keep a limit on time to first token, time per output token or latency, and "
            "there is none for all workloads");
    for (const auto* list : {&study.workloads, &study.report_workloads})
        for (const Workload& workload : *list) {
            if (!workload.arrival.searched() || !workload.requests) continue;
            try {
                const CapacitySearch possible(workload.arrival, static_cast<std::size_t>(*workload.requests));
            } catch (const UsageError& error) {
                root.at(list == &study.workloads ? keys::study.workloads : keys::study.report_workloads)
                    .fail("'" + workload.name + "': " + error.what());
            }
        }
    if (const Yaml* load = root.find(keys::study.load))
        load->fail("the workloads look for their largest load already; leave out `load`, or give them fixed arrivals");
}

Objective read_objective(const Yaml& node, bool words) {
    node.check_keys(keys::objective);
    std::vector<Goal> goals;  // in the file's order: the first one leads
    for (const auto& [key, value] : node.entries()) {
        if (key != keys::objective.maximize.name && key != keys::objective.minimize.name) continue;
        const Direction direction = key == keys::objective.maximize.name ? Direction::maximize : Direction::minimize;
        if (value.is_sequence() && value.items().empty()) value.fail_wanted("a metric or a list of metrics");
        for (const Yaml& item : value.is_sequence() ? value.items() : std::vector<Yaml>{value}) {
            const std::string metric = goal_metric(item.text(), direction, words);
            if (words && direction == Direction::maximize && less_is_better(metric))
                item.fail("less of '" + metric + "' is better: write it under `minimize`");
            if (std::any_of(goals.begin(), goals.end(), [&](const Goal& goal) { return goal.metric == metric; }))
                item.fail("'" + metric + "' is a goal already");
            goals.push_back({metric, direction});
        }
    }
    if (goals.empty()) node.fail("an objective has a goal: maximize or minimize, with a metric or a list of metrics");
    Objective result(std::move(goals));
    AllErrors errors;
    if (const Yaml* limits = node.find(keys::objective.limits))
        for (const Yaml& limit : limits->is_scalar() ? std::vector<Yaml>{*limits} : limits->items())
            errors.in([&] {
                try {
                    result.limits.push_back(Limit::parse(limit.text(), words));
                } catch (const ParseError& error) {
                    limit.fail(error.what());
                }
                const Limit& bound = result.limits.back();
                if (words && bound.metric.starts_with("success_ratio") && bound.at_least && bound.bound > 1)
                    limit.fail("a share is at most 1: write 99% or 0.99");
            });
    errors.throw_any();
    return result;
}

/// What becomes of the figures of several workloads.
void read_over(const Yaml& node, StudyFile& study) {
    std::string over = "mean";
    read(node, keys::objective.over, over);
    if (over == "mean") return;
    if (study.workloads.size() < 2) node.at(keys::objective.over).fail("says how workloads count together, and there is one");
    if (over == "worst") {
        study.objective.over = Objective::Over::worst;
        return;
    }
    std::vector<Goal> each;
    for (const Goal& goal : study.objective.goals)
        for (const Workload& workload : study.workloads) {
            if (goal.metric.find('@') != std::string::npos)
                node.at(keys::objective.over).fail("'" + goal.metric + "' is of one workload already");
            each.push_back({goal.metric + "@" + workload.name, goal.direction});
        }
    study.objective.goals = std::move(each);
}

/// Where layouts of several sizes compete by a figure that grows with the devices, the largest wins for no merit.
std::string larger_looks_better(const StudyFile& study) {
    const std::string& metric = study.objective.leading().metric;
    if (study.objective.leading().direction != Direction::maximize || !grows_with_devices(metric) || study.devices.value_or(1) < 2)
        return "";
    if (const auto* deploy = std::get_if<DeployChoice>(&study.measuring); deploy != nullptr && deploy->options.fill_devices) return "";
    constexpr std::array<std::string_view, 3> layouts{"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"};
    for (const Parameter& parameter : study.composition->parameters())
        if (std::find(layouts.begin(), layouts.end(), parameter.concept_name) != layouts.end() && parameter.level_count() > 1)
            return "layouts of different numbers of devices compete by " + metric + ", and the largest will look best; maximize " +
                   metric.substr(0, metric.find('@')) + "_per_gpu" + metric.substr(std::min(metric.find('@'), metric.size())) +
                   " to compare what a device does";
    return "";
}

QualityChoice read_quality(const Yaml& node, const StudyFile& study) {
    const auto& table = keys::quality;
    node.check_keys(table);
    if (!std::holds_alternative<DeployChoice>(study.measuring)) node.fail("only `evaluator: {deploy: ...}` asks an engine for answers");
    QualityChoice result;
    QualityOptions& options = result.options;
    if (const Yaml* file = node.find(table.prompts)) {
        std::istringstream lines(read_file(path_of(*file)));
        for (std::string line; std::getline(lines, line);)
            if (line.find_first_not_of(" \t\r") != std::string::npos) options.prompts.push_back(line);
        if (options.prompts.empty()) file->fail("there is no prompt in it");
    }
    read(node, table.answer_tokens, options.answer_tokens);
    read(node, table.command, options.command);
    read(node, table.metric, options.metric);
    read(node, table.within, options.within_seconds);
    if (!options.command.empty() && !options.prompts.empty()) node.fail("has prompts or a command, not both");
    if (const Yaml* names = node.find(table.parameters))
        for (const Yaml& name : names->items()) {
            try {
                result.parameters.push_back(study.composition->resolve(name.text()));
            } catch (const SpaceError& error) {
                name.fail(error.what());
            }
        }
    return result;
}

/// Candidate values of a stage, under the names of the space and inside its domains.
Assignment read_candidate(const Yaml& node, const Composition& composition) {
    Assignment result;
    for (const auto& [name, value] : node.entries()) {
        std::string known;
        try {
            known = composition.resolve(name);
        } catch (const SpaceError& error) {
            value.fail(error.what());
        }
        const auto parameter = std::find_if(composition.parameters().begin(), composition.parameters().end(),
                                            [&](const Parameter& p) { return p.name == known; });
        if (!parameter->contains(value.value()))
            value.fail(text_of(value.value()) + " is outside the domain of '" + known + "' (" + parameter->domain_text() + ")");
        result[known] = value.value();
    }
    return result;
}

Stage read_stage(const Yaml& node, const Composition& composition, bool baseline) {
    Stage stage;
    const auto resolve = [&](const Yaml& name) {
        try {
            return composition.resolve(name.text());
        } catch (const SpaceError& error) {
            name.fail(error.what());
        }
    };
    if (node.is_scalar()) {
        stage.product = {resolve(node)};
        stage.name = node.text();
    } else if (node.is_sequence()) {
        for (const Yaml& name : node.items()) {
            stage.product.push_back(resolve(name));
            stage.name += (stage.name.empty() ? "" : " x ") + name.text();
        }
    } else {
        node.check_keys(keys::stage);
        read(node, keys::stage.stage, stage.name);
        const Yaml* product = node.find(keys::stage.product);
        const Yaml* candidates = node.find(keys::stage.candidates);
        if ((product == nullptr) == (candidates == nullptr)) node.fail("a stage has either a product or candidates");
        if (product != nullptr)
            for (const Yaml& name : product->items()) stage.product.push_back(resolve(name));
        else
            for (const Yaml& candidate : candidates->items()) stage.candidates.push_back(read_candidate(candidate, composition));
    }
    stage.carried = !baseline || stage.product == std::vector<std::string>{"engine"};
    read(node, keys::stage.carried, stage.carried);
    return stage;
}

void read_bayesian(const Yaml& node, BayesianOptions& options) {
    const auto& table = keys::bayesian;
    node.check_keys(table);
    read_word<failure_models>(node, table.failures, options.learning.failures);
    read(node, table.additive, options.learning.additive);
    read(node, table.explore_every, options.explore_every);
    read(node, table.patience, options.patience);
    read_word<keys::gain_units>(node, table.per, options.per_second);
}

StrategyChoice read_strategy(const Yaml* node, const Composition& composition, const std::string& replaced) {
    StrategyChoice result;
    const auto check_name = [&](const std::string& name, const auto& fail) {
        std::vector<std::string> known;
        for (const Key& key : rows_of(keys::strategy)) known.emplace_back(key.name);
        if (std::find(known.begin(), known.end(), name) != known.end()) return;
        fail("'" + name + "' is no strategy; known: " + listed(nearest_first(name, known)));
    };
    const Yaml* staged = nullptr;
    const Yaml* bayesian = nullptr;
    if (node != nullptr && node->is_scalar()) {
        check_name(node->text(), [&](const std::string& message) { node->fail(message); });
        result.name = node->text();
    } else if (node != nullptr) {
        node->check_keys(keys::strategy);
        if (node->entries().size() != 1) node->fail("one strategy wanted");
        result.name = node->entries().front().first;
        staged = node->find(keys::strategy.staged);
        bayesian = node->find(keys::strategy.bayesian);
        if (staged == nullptr && bayesian == nullptr) node->entries().front().second.check_keys(std::span<const Key>{});
    }
    if (!replaced.empty()) {
        check_name(replaced, [](const std::string& message) { throw UsageError(message); });
        result.name = replaced;
    }
    if (bayesian != nullptr) read_bayesian(*bayesian, result.bayesian);
    if (staged != nullptr) {
        staged->check_keys(keys::staged);
        bool baseline = false;
        read_word<keys::comparisons>(*staged, keys::staged.compare_with, baseline);
        read(*staged, keys::staged.replicates, result.staged.replicates);
        const Yaml& stages = staged->at(keys::staged.stages);
        if (stages.items().empty()) stages.fail("at least one stage wanted");
        for (const Yaml& stage : stages.items()) result.staged.stages.push_back(read_stage(stage, composition, baseline));
    } else if (result.name == keys::strategy.staged.name) {
        // Without stages: every parameter that can vary, one after the other, in the space's order.
        for (const Parameter& parameter : composition.parameters())
            if (!parameter.continuous() && parameter.level_count() > 1) result.staged.stages.push_back({parameter.name, {parameter.name}});
    }
    return result;
}

std::vector<KnowledgeChoice> read_knowledge(const Yaml& node) {
    std::vector<KnowledgeChoice> result;
    for (const Yaml& item : node.items()) {
        item.check_keys(keys::knowledge);
        if (item.entries().size() != 1) item.fail("one source wanted: cost_model, study or table");
        if (const Yaml* model = item.find(keys::knowledge.cost_model)) {
            model->check_keys(std::span<const Key>{});
            result.push_back({});
        }
        if (const Yaml* study = item.find(keys::knowledge.study))
            result.push_back({.kind = KnowledgeChoice::Kind::study, .path = path_of(*study)});
        if (const Yaml* table = item.find(keys::knowledge.table))
            result.push_back({.kind = KnowledgeChoice::Kind::table, .path = path_of(*table)});
    }
    return result;
}

/// Of a study that somebody else measures: what a file may leave out.
Yaml completed_for_outside(const Yaml& root, const fs::path& file) {
    return Yaml::parse("study: \"-\"\nmodel: \"\"\nworkloads: []\nevaluator: {}\n", file.string())
        .overlaid(root.without(keys::study.evaluator), keys::study.space);
}

}  // namespace

std::vector<std::pair<std::string, double>> StudyFile::weighted_workloads() const {
    std::vector<std::pair<std::string, double>> result;
    for (const Workload& workload : workloads) result.emplace_back(workload.name, workload.weight);
    return result;
}

Catalogue StudyFile::catalogue() const {
    Catalogue result(search_spaces);
    if (!model_file.empty()) result.use_model(model_file);
    if (!hardware_file.empty()) result.use_hardware(hardware_file);
    return result;
}

const Workload* StudyFile::workload_called(std::string_view wanted) const {
    for (const auto* list : {&workloads, &report_workloads})
        for (const Workload& workload : *list)
            if (workload.name == wanted ||
                std::find(workload.printed_as.begin(), workload.printed_as.end(), wanted) != workload.printed_as.end())
                return &workload;
    return nullptr;
}

namespace {

bool is_load_test(const MeasuringChoice& measuring) {
    return std::holds_alternative<SimulateChoice>(measuring) || std::holds_alternative<AttachChoice>(measuring) ||
           std::holds_alternative<DeployChoice>(measuring);
}

/// Whether the file's own evaluator is one, though somebody else measures.
bool names_load_test(const Yaml& written) {
    const Yaml* evaluator = written.find(keys::study.evaluator);
    if (evaluator == nullptr) return false;
    if (evaluator->is_scalar())
        return std::find(keys::plain_evaluators.begin(), keys::plain_evaluators.end(), evaluator->text()) != keys::plain_evaluators.end();
    if (!evaluator->is_mapping()) return false;
    for (const Key& key : {keys::evaluator.simulate, keys::evaluator.attach, keys::evaluator.deploy})
        if (evaluator->find(key) != nullptr) return true;
    return false;
}

/// The measuring and the space of a study, and the machine that they are for.
void read_what_is_searched(const Yaml& root, const Catalogue& catalogue, bool outside, AllErrors& errors, StudyFile& study) {
    const bool known = errors.in([&] { study.measuring = read_measuring(spelled_out_evaluator(root.at(keys::study.evaluator)), outside); });
    if (!known) study.measuring = DeployChoice{};  // only to read the rest: the study is refused
    errors.in([&] { read_machine(root, catalogue, study); });
    if (known && kind_of(study).why_not != nullptr)
        if (const std::string why = kind_of(study).why_not(study); !why.empty())
            errors.in([&] { root.at(keys::study.evaluator).fail(why); });
    errors.in([&] {
        study.composition = read_space(root, catalogue, study);
        for (std::string& warning : unchecked_versions(*study.composition, catalogue)) study.warnings.push_back(std::move(warning));
    });
}

void read_traffic(const Yaml& root, const Catalogue& catalogue, bool outside, AllErrors& errors, StudyFile& study) {
    std::set<std::string> names;
    const auto read_workloads = [&](const Yaml& list, std::vector<Workload>& into) {
        for (const Yaml& item : list.is_scalar() ? std::vector<Yaml>{list} : list.items())
            errors.in([&] {
                into.push_back(catalogue.workload(item));
                if (!names.insert(into.back().name).second)
                    item.fail("there are two workloads '" + into.back().name + "'; give one another name ('workload:')");
            });
    };
    errors.in([&] {
        const Yaml& workloads = root.at(keys::study.workloads);
        read_workloads(workloads, study.workloads);
        if (study.workloads.empty() && !outside && !errors.any()) workloads.fail("at least one workload wanted");
    });
    errors.in([&] {
        if (const Yaml* list = root.find(keys::study.report_workloads)) read_workloads(*list, study.report_workloads);
    });
}

/// The figures of a single workload have plain names.
void use_plain_names(StudyFile& study) {
    if (study.workloads.size() != 1) return;
    const std::string own = "@" + study.workloads.front().name;
    for (Goal& goal : study.objective.goals)
        if (goal.metric.ends_with(own)) goal.metric.resize(goal.metric.size() - own.size());
    for (Limit& limit : study.objective.limits)
        if (limit.metric.ends_with(own)) limit.metric.resize(limit.metric.size() - own.size());
}

void read_goals(const Yaml& root, const Yaml& written, bool outside, AllErrors& errors, StudyFile& study) {
    errors.in([&] {
        if (const Yaml* quality = root.find(keys::study.quality); quality != nullptr && !outside && study.composition != nullptr)
            study.quality = read_quality(*quality, study);
    });
    const bool has_goals = errors.in([&] {
        const Yaml& objective = root.at(keys::study.objective);
        study.objective = read_objective(objective, is_load_test(study.measuring) || names_load_test(written));
        use_plain_names(study);
        read_over(objective, study);
    });
    if (has_goals && is_load_test(study.measuring))
        errors.in([&] {
            look_for_load(root, study);
            if (!outside) check_objective_of_load_test(study, root.find(keys::study.objective));
        });
    if (has_goals && study.composition != nullptr)
        if (const std::string warning = larger_looks_better(study); !warning.empty()) study.warnings.push_back(warning);
    errors.in([&] {
        const Yaml* guard = root.find(keys::study.guard);
        if (guard == nullptr) return;
        guard->check_keys(keys::guard);
        study.decision.never_worse_than = read<double>(*guard, keys::guard.never_worse_than);
        if (study.workloads.size() == 1) guard->fail("guards workloads from each other, and there is one");
    });
}

void read_decision(const Yaml& root, AllErrors& errors, StudyFile& study) {
    errors.in([&] { read_word<keys::decision_rules>(root, keys::study.decision, study.decision.rule); });
    errors.in([&] { read(root, keys::study.min_gain, study.decision.min_gain); });
    errors.in([&] { read(root, keys::study.noise_cv, study.decision.noise_cv); });
    errors.in([&] { read(root, keys::study.default_again, study.default_again); });
    errors.in([&] { read(root, keys::study.audit, study.audit); });
    study.decision.enforce_audit = study.audit == "enforce";
    errors.in([&] {
        if (const Yaml* budget = root.find(keys::study.budget)) read_budget(*budget, study);
    });
    errors.in([&] { read(root, keys::study.seed, study.seed); });
    errors.in([&] { read(root, keys::study.notes, study.notes); });
    errors.in([&] {
        read(root, keys::study.on_done, study.on_done);
        // As the words of `command`: a path stands beside the study.
        if (!study.on_done.empty() && study.on_done.front().find('/') != std::string::npos)
            study.on_done.front() = (fs::absolute(study.file).parent_path() / study.on_done.front()).string();
    });
}

void read_published_document(const Yaml& root, StudyFile& study) {
    const Yaml* published = root.find(keys::study.published);
    if (published == nullptr) return;
    published->check_keys(keys::published);
    read(*published, keys::published.document, study.document);
    const Yaml* printed = published->find(keys::published.printed);
    if (printed == nullptr) return;
    read(*published, keys::published.printed, study.printed);
    for (const auto& [stage, value] : printed->entries())
        if (std::none_of(study.strategy.staged.stages.begin(), study.strategy.staged.stages.end(),
                         [s = stage](const Stage& known) { return known.name == s; }) &&
            study.strategy.name == "staged")
            value.fail("there is no stage '" + stage + "'");
}

StudyFile read_study(const fs::path& file, const Catalogue& catalogue, const std::string& strategy, MeasuredBy by) {
    const Yaml written = resolved(Yaml::load(file));
    StudyFile study;
    const bool outside = by == MeasuredBy::outside || (by == MeasuredBy::either && written.find(keys::study.evaluator) == nullptr);
    const Yaml root = outside ? completed_for_outside(written, file) : written;
    AllErrors errors;
    errors.in([&] { root.check_keys(keys::study); });
    study.file = file;
    study.search_spaces = catalogue.root();
    errors.in([&] {
        study.name = written.find(keys::study.study) != nullptr ? root.at(keys::study.study).text() : file.stem().string();
        if (study.name.empty() || study.name.find('/') != std::string::npos || study.name.starts_with('.'))
            root.at(keys::study.study).fail("a study's name is its folder's: no '/', no leading '.'");
    });
    errors.in([&] { read_model_name(root.at(keys::study.model), catalogue, study); });
    read_what_is_searched(root, catalogue, outside, errors, study);
    read_traffic(root, catalogue, outside, errors, study);
    read_goals(root, written, outside, errors, study);
    read_decision(root, errors, study);
    if (study.composition != nullptr)
        if (const std::string note = larger_looks_better(study); !note.empty()) study.notes.push_back("Take care: " + note + ".");
    if (study.composition != nullptr)
        errors.in([&] { study.strategy = read_strategy(root.find(keys::study.strategy), *study.composition, strategy); });
    errors.in([&] {
        if (const Yaml* knowledge = root.find(keys::study.knowledge)) study.knowledge = read_knowledge(*knowledge);
        else if (!std::holds_alternative<SimulateChoice>(study.measuring))  // it would look up its own answers
            study.knowledge.push_back({.kind = KnowledgeChoice::Kind::cost_model, .by_default = true});
    });
    errors.in([&] { read_published_document(root, study); });
    errors.throw_any();
    study.written = written_settings(root, study);
    return study;
}

}  // namespace

std::size_t StudyFile::default_again_every() const {
    if (default_again) return *default_again;
    constexpr std::size_t usual = 10;
    constexpr std::size_t least_trials = 15;  // of a smaller budget it would take too much
    return measures() && decision.rule == Decision::Rule::significant && budget.trials >= least_trials ? usual : 0;
}

StudyFile load_study(const fs::path& file, const Catalogue& catalogue, const std::string& strategy, MeasuredBy by) {
    Redactor secrets;
    const CollectSecrets collecting(secrets);
    return without_secrets_in_errors(secrets, [&] {
        StudyFile study = read_study(file, catalogue, strategy, by);
        study.secrets = secrets;
        return study;
    });
}

}  // namespace servetune
