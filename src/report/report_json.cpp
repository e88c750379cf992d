// SPDX-License-Identifier: Apache-2.0
#include "report_json.hpp"

#include "servetune/outcome.hpp"
#include "study/json.hpp"

#include <cmath>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Metrics are plain numbers here; standard errors are in the journal.
OrderedJson metrics_of(const ReportView& view, const Configuration& configuration,
                       std::string_view workload = "") {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, metric] : view.means(configuration, workload))
        object[name] = metric.value;
    return object;
}

/// A limit with the figure that is held against it.
OrderedJson limit_json(const Limit& limit, const std::string& workload, double value) {
    return {{"metric", limit.metric},
            {"workload", workload},
            {limit.at_least ? "at_least" : "at_most", limit.bound},
            {"value", value}};
}

/// Its words and environment are null where it is several commands.
void add_serving_command(OrderedJson& object, const StudySetup& setup,
                         const Configuration& configuration) {
    const bool several = setup.file.composition->needs_router(configuration);
    const Command command = several ? Command{} : setup.command(configuration);
    object["argv"] = several ? OrderedJson() : OrderedJson(command.argv);
    object["environment"] = several ? OrderedJson() : OrderedJson(command.environment);
    object["command"] = setup.command_text(configuration);
}

/// Every told configuration with the figures that decide: goals and limited metrics, each
/// workload's own too.
void add_deciding_figures(OrderedJson& object, const ReportView& view) {
    const Problem& problem = view.problem();
    const std::vector<Goal> goals = problem.objective.goals;
    const std::vector<Limit>& limits = problem.objective.limits;
    object["limits"] = OrderedJson::array();
    for (const Limit& limit : limits)
        object["limits"].push_back(
            {{"metric", limit.metric}, {limit.at_least ? "at_least" : "at_most", limit.bound}});
    object["results"] = OrderedJson::array();
    for (const Standing& standing : view.standings.all()) {
        if (!standing.told()) continue;
        OrderedJson figures = OrderedJson::object();
        for (const auto& [name, metric] : view.means(standing.configuration)) {
            const auto is_of = [&, &name = name](const auto& one) {
                return one.metric == name || one.metric == MetricKey::of(name).name;
            };
            if (any_of(goals, is_of) || any_of(limits, is_of)) figures[name] = metric.value;
        }
        OrderedJson broken = OrderedJson::array();
        for (const Limit& limit : limits)
            for (const auto& [workload, value] : limited_figures(standing, limit, problem.decision))
                if (!limit.keeps(value)) broken.push_back(limit_json(limit, workload, value));
        object["results"].push_back({{"configuration", to_json(standing.configuration)},
                                     {"passes", standing.passes()},
                                     {"measurements", std::size_t(standing.leading().total_runs())},
                                     {"metrics", figures},
                                     {"broken", broken}});
    }
    object["other_work"] = OrderedJson::array();
    for (const Standing& standing : view.standings.all())
        for (const LengthMismatch& work : standing.other_work)
            object["other_work"].push_back({{"configuration", to_json(standing.configuration)},
                                            {"workload", work.workload},
                                            {"tokens", work.output ? "output" : "input"},
                                            {"mean", work.mine},
                                            {"default", work.usual}});
}

/// Where nothing passes: what comes nearest.
OrderedJson closest_json(const std::optional<Closest>& closest) {
    if (!closest) return nullptr;
    OrderedJson broken = OrderedJson::array();
    for (const BrokenLimit& one : closest->broken) {
        broken.push_back(limit_json(one.limit, one.workload, one.value));
        broken.back()["passes_with"] = one.loosened().bound;
    }
    return {{"configuration", to_json(closest->configuration)}, {"broken", broken}};
}

/// Of several goals: which they are, and what no other one beats in all of them.
void add_front(OrderedJson& object, const ReportView& view) {
    const std::vector<Goal> goals = view.setup.file.objective.goals;
    object["goals"] = OrderedJson::array();
    for (const Goal& goal : goals)
        object["goals"].push_back(
            {{"metric", goal.metric},
             {"direction", goal.direction == Direction::maximize ? "maximize" : "minimize"}});
    object["front"] = OrderedJson::array();
    for (const FrontPoint& point : view.recommendation.front) {
        OrderedJson& row = object["front"].emplace_back();
        row["configuration"] = to_json(point.configuration);
        add_serving_command(row, view.setup, point.configuration);
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const Estimate& estimate = point.estimates[k];
            row["estimates"][goals[k].metric] = {{"value", estimate.mean},
                                                 {"low", estimate.low()},
                                                 {"high", estimate.high()},
                                                 {"measurements", estimate.replicates}};
        }
        row["metrics"] = metrics_of(view, point.configuration);
    }
}

/// What became of the trials one by one.
void add_trials(OrderedJson& object, const ReportView& view) {
    const ReportView::Counts counts = view.counts();
    const auto* unsound = entry_in(counts.verdicts, Verdict::unsound);
    object["trials"] = {{"told", counts.completed},
                        {"failed", counts.failed},
                        {"unsound", unsound == nullptr ? 0 : *unsound}};
    object["pending"] = OrderedJson::array();
    for (const char* list : {"refused", "failures", "audit"}) object[list] = OrderedJson::array();
    for (const Trial& trial : view.trials) {
        const OrderedJson configuration = to_json(trial.configuration);
        if (!trial.told())
            object["pending"].push_back({{"trial", trial.id},
                                         {"configuration", configuration},
                                         {"workload", trial.workload},
                                         {"started_at", or_null(trial.started_at)},
                                         {"why", trial.why}});
        if (const Failure* failure = trial.failure())
            object["failures"].push_back({{"trial", trial.id},
                                          {"workload", trial.workload},
                                          {"configuration", configuration},
                                          {"kind", name_in(failure_kinds, failure->kind)},
                                          {"message", failure->message},
                                          {"log", failure->log_path},
                                          {"log_lines", failure->log_lines}});
        if (trial.measurement() == nullptr ||
            trial.measurement()->validity.verdict == Verdict::sound)
            continue;
        const Validity& validity = trial.measurement()->validity;
        OrderedJson findings = OrderedJson::array();
        for (const Finding& finding : validity.findings)
            findings.push_back({{"id", finding.id},
                                {"left", finding.left},
                                {"right", finding.right},
                                {"cause", finding.cause}});
        object["audit"].push_back({{"trial", trial.id},
                                   {"configuration", configuration},
                                   {"workload", trial.workload},
                                   {"verdict", name_in(verdicts, validity.verdict)},
                                   {"findings", findings}});
    }
    for (const Standing& standing : view.standings.all())
        if (standing.told() && !standing.passes())
            object["refused"].push_back(
                {{"configuration", to_json(standing.configuration)}, {"reason", standing.refused}});
}

void add_recommended(OrderedJson& object, const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const FigureScale& scale = view.scale();
    OrderedJson& recommended = object["recommended"];
    recommended["configuration"] = to_json(result.recommended);
    add_serving_command(recommended, view.setup, result.recommended);
    recommended["metrics"] = metrics_of(view, result.recommended);
    recommended["gain"] = nullptr;
    if (result.default_passes && result.conclusion != Conclusion::inconclusive) {
        recommended["gain"] = gain_json(result.gain);
        recommended["gain"]["p_best"] = or_null(result.p_best);
    }
    recommended["keep_default"] = result.keep_default;
    object["given_away"] = result.given_away ? gain_json(*result.given_away) : OrderedJson(nullptr);
    object["compared_by"] = scale.ratios() ? "ratios" : "differences";
    object["noise"] = {{"value", view.standings.noise() * (scale.ratios() ? 1 : scale.unit)},
                       {"repeated_configurations", view.standings.replicated()}};
    const Drift& drift = view.standings.drift();
    object["drift"] = {
        {"checks", drift.checks()},
        {"chance", drift.chance()},
        {"change", scale.ratios() ? drift.change() : std::abs(scale.stated(-drift.change()))}};
    object["best_observed"] = nullptr;
    if (result.best)
        object["best_observed"] = {{"configuration", to_json(*result.best)},
                                   {"metrics", metrics_of(view, *result.best)}};
    object["stress"] = OrderedJson::array();
    for (const Trial& trial : view.trials)
        if (trial.purpose == Purpose::stress && trial.told())
            object["stress"].push_back(
                {{"configuration", to_json(trial.configuration)},
                 {"survived", trial.measurement() != nullptr},
                 {"reason", trial.failure() != nullptr ? trial.failure()->message : ""},
                 {"answers_changed",
                  trial.measurement() != nullptr
                      ? or_null(value_in(trial.measurement()->metrics, quality_drop))
                      : OrderedJson()}});
    object["not_distinguishable"] = OrderedJson::array();
    for (const Configuration& tied : result.tied)
        object["not_distinguishable"].push_back(to_json(tied));
    object["report_workloads"] = OrderedJson::object();
    for (const Workload& workload : view.setup.file.report_workloads) {
        OrderedJson& row = object["report_workloads"][workload.name];
        row = {{"default", metrics_of(view, view.base(), workload.name)},
               {"recommended", metrics_of(view, result.recommended, workload.name)}};
    }
}

/// What each change of a recipe does; null: the study is of none.
OrderedJson recipe_json(const ReportView& view) {
    const RecipeChanges found = recipe_changes(view);
    if (found.changes.empty()) return nullptr;
    OrderedJson result{{"configuration", to_json(found.recipe)}, {"changes", OrderedJson::array()}};
    for (const RecipeChange& one : found.changes)
        result["changes"].push_back({{"parameter", one.parameter},
                                     {"recipe", to_json(one.value)},
                                     {"without", to_json(one.without)},
                                     {"gain", one.gain ? gain_json(*one.gain) : OrderedJson()},
                                     {"verdict", name_in(recipe_verdicts, one.verdict)},
                                     {"reason", text_or_null(one.reason)}});
    return result;
}

OrderedJson gain_json(const CredibleInterval& gain, const FigureScale& scale) {
    return {{"value", scale.stated(gain.value)},
            {"low", scale.stated(gain.low)},
            {"high", scale.stated(gain.high)}};
}

OrderedJson effects_json(const Effects& effects, const SearchSpace& space,
                         const FigureScale& scale) {
    OrderedJson result{{"configurations", effects.floor.measured},
                       {"needed", effects.floor.needed()},
                       {"learned", effects.learned()},
                       {"main", OrderedJson::array()},
                       {"left_out", OrderedJson::object()},
                       {"interactions", OrderedJson::array()}};
    for (const Parameter& parameter : space.parameters())
        if (const std::size_t more = effects.left_out(parameter);
            more > 0 && parameter.level_count() > 1 && !effects.main.empty())
            result["left_out"][parameter.name] = more;
    for (const MainEffect& effect : effects.main)
        result["main"].push_back(
            {{"parameter", effect.parameter},
             {"level", to_json(effect.level)},
             {"gain", effect.refused.empty() ? gain_json(effect.gain, scale) : OrderedJson()},
             {"measured", effect.measured},
             {"refused", text_or_null(effect.refused)}});
    for (const PairEffect& pair : effects.pairs)
        result["interactions"].push_back(
            {{"parameters", pair.parameters},
             {"share", pair.share},
             {"levels", OrderedJson::array({to_json(pair.levels[0]), to_json(pair.levels[1])})},
             {"gain", gain_json(pair.gain, scale)},
             {"together", pair.together}});
    return result;
}

OrderedJson limits_json(const WhatLimits& limits) {
    OrderedJson result{{"limits", OrderedJson::array()}, {"at_the_end", OrderedJson::array()}};
    for (const LimitMargin& one : limits.limits) {
        OrderedJson row = limit_json(one.limit, one.workload, one.value);
        row["margin"] = one.margin;
        row["refuses"] = one.refuses ? to_json(*one.refuses) : OrderedJson();
        row["costs"] = one.costs ? gain_json(*one.costs) : OrderedJson();
        result["limits"].push_back(std::move(row));
    }
    for (const AtTheEnd& one : limits.at_the_end)
        result["at_the_end"].push_back({{"parameter", one.parameter},
                                        {"value", text_of(one.value)},
                                        {"end", one.largest ? "largest" : "smallest"}});
    return result;
}

/// `what_limits` and `one_more_hour`.
OrderedJson explanation_json(const Explained& explained, const FigureScale& scale) {
    OrderedJson result{
        {"what_limits", explained.limits ? limits_json(*explained.limits) : OrderedJson()},
        {"one_more_hour", nullptr}};
    if (const auto& more = explained.more)
        result["one_more_hour"] = {
            {"trials", more->further.trials},
            {"seconds", more->seconds > 0 ? OrderedJson(more->seconds) : OrderedJson()},
            {"gain", gain_json(more->further.gain, scale)},
            {"chance_worth_having", more->further.chance_changed},
            {"likely", more->likely}};
    return result;
}

}  // namespace

OrderedJson text_or_null(std::string_view text) {
    return text.empty() ? OrderedJson() : OrderedJson(text);
}

OrderedJson gain_json(const Gain& gain) {
    const bool known = gain.has_interval();
    return {{"value", gain.scale.stated(gain.value)},
            {"low", known ? OrderedJson(gain.scale.stated(gain.low)) : OrderedJson()},
            {"high", known ? OrderedJson(gain.scale.stated(gain.high)) : OrderedJson()},
            {"level", gain.level}};
}

OrderedJson json_of(const Explained& explained, const ReportView& view) {
    return {{"effects", effects_json(explained.effects, view.problem().space, view.scale())},
            {"explanation", explanation_json(explained, view.scale())}};
}

std::string json_of(const ReportView& view, std::string_view stop_reason,
                    const Explained* explained) {
    const StudyFile& file = view.setup.file;
    const Recommendation& result = view.recommendation;
    const Headline headline = headline_of(view);
    OrderedJson object;
    object["version"] = 1;
    object["study"] = file.name;
    object["strategy"] = file.strategy.name;
    object["objective"] = {{view.goal().direction == Direction::maximize ? "maximize" : "minimize",
                            view.goal().metric}};
    if (auto recipe = recipe_json(view); !recipe.is_null()) object["recipe"] = std::move(recipe);
    if (file.objective.several()) add_front(object, view);
    object["verdict"] = name_in(conclusions, headline.conclusion);
    object["headline"] = headline.title;
    object["reason"] = headline.reason;
    object["advice"] = headline.advice;
    object["notes"] = quality_notes(view);
    if (const std::string measured_by = file.measured_by(); !measured_by.empty())
        object["notes"].insert(object["notes"].begin(), measured_by);
    const Measurement* of_default = view.measured(view.base());
    object["default"] = {
        {"configuration", to_json(view.base())},
        {"metrics", metrics_of(view, view.base())},
        {"verdict", of_default == nullptr
                        ? OrderedJson(nullptr)
                        : OrderedJson(name_in(verdicts, of_default->validity.verdict))}};
    object["recommended"] = nullptr;
    if (result.conclusion != Conclusion::nothing_passes) add_recommended(object, view);
    else object["closest"] = closest_json(result.closest);
    add_deciding_figures(object, view);
    add_trials(object, view);
    if (explained != nullptr) object.update(json_of(*explained, view));
    object["environment_changes"] = environment_changes(view.trials);
    object["cost_seconds"] = time_spent_in(view.trials).trials;
    object["stop_reason"] = text_or_null(stop_reason);
    redact(object, file.secrets);
    return object.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace servetune
