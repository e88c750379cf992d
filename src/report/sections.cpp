// SPDX-License-Identifier: Apache-2.0
// What a report says, a function a section; `document_of` has their order.
#include "base/probability.hpp"
#include "content.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/outcome.hpp"
#include "study/verdict.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace servetune {
namespace {

/// What people look at beside goals and limits, where it was measured.
constexpr std::array usual_columns{"time_per_output_token_mean_seconds",
                                   "time_to_first_token_mean_seconds",
                                   "usd_per_million_output_tokens", "joules_per_output_token"};

Cell figure_cell(std::string_view metric, std::optional<double> value) {
    return {value ? figure_text(metric, *value) : "-", value};
}

std::string interval_or_none(const Gain& gain) {
    return gain.has_interval() ? interval_text(gain) : "not known";
}

std::string credible_text(const CredibleInterval& gain, const FigureScale& scale) {
    return gain_text(gain.low, scale) + " to " + gain_text(gain.high, scale);
}

std::size_t passing_in(const ReportView& view) {
    return count_if(view.standings.all(), [](const Standing& one) { return one.passes(); });
}

/// Of a study of a published recipe: what each of its changes does here.
Section recipe_section(const Content& content) {
    const ReportView& view = content.view;
    Section section{"recipe", "Which of the recipe's changes earn their place"};
    section.kind = "brief";
    const RecipeChanges found = recipe_changes(view);
    Table table{section.title,
                {"change", "in the recipe", "without", "gain of keeping it", "", "verdict"}};
    table.texts = 3;
    std::vector<std::string> idle;
    for (const RecipeChange& one : found.changes) {
        if (one.gain) table.header[4] = interval_name(*one.gain);
        if (one.verdict == RecipeVerdict::nothing_seen && one.gain) idle.push_back(one.parameter);
        table.rows.push_back({{one.parameter, text_of(one.value), text_of(one.without),
                               one.gain ? gain_text(one.gain->value, view.scale()) : "-",
                               one.gain ? interval_or_none(*one.gain) : one.reason,
                               std::string(name_in(recipe_verdicts, one.verdict))}});
    }
    if (!table.rows.empty()) section.say("The recipe: " + view.setup.command_text(found.recipe));
    section.show(std::move(table));
    if (!idle.empty())
        section.say("Nothing was seen of " + joined(idle) +
                    ": without any one the recipe is as fast, as far as these measurements tell.");
    if (!found.changes.empty() && view.recommendation.conclusion == Conclusion::inconclusive)
        section.say("The study is inconclusive: none of this is proven.");
    return section;
}

Section verdict_section(const Content& content) {
    const ReportView& view = content.view;
    const Headline headline = headline_of(view);
    Section section{"verdict", "Conclusion"};
    section.kind = "brief verdict " + std::string(name_in(conclusions, headline.conclusion)) +
                   (headline.unsound.empty() ? "" : " doubted");
    section.blocks.emplace_back(
        view.gains() ? Paragraph{headline.title, true,
                                 " (" + view.changes(view.recommendation.recommended) + ")."}
                     : Paragraph{headline.title + ".", true});
    if (const std::vector<GainRow> rows = gain_rows(content); !rows.empty()) {
        const std::string& metric = view.goal().metric;
        section.draw(gain_figure(content),
                     fmt::format("{}: {} with the default, {} recommended.", metric_title(metric),
                                 figure_text(metric, rows.front().before),
                                 figure_text(metric, rows.front().after)));
    }
    section.say(headline.reason + (headline.advice.empty() ? "" : " " + headline.advice));
    section.say(headline.given_away);
    return section;
}

/// Where the verdict's row is not the only one.
Section gains_section(const Content& content) {
    const ReportView& view = content.view;
    Section section{"gains", "Before and after"};
    const std::vector<GainRow> rows = gain_rows(content);
    if (rows.size() < 2) return section;
    const std::string& metric = view.goal().metric;
    Table table{"Before and after",
                {"workload", metric_title(metric) + ", default", "recommended", "gain",
                 interval_name(rows.front().gain)}};
    for (const GainRow& one : rows)
        table.rows.push_back(
            {{one.label, figure_cell(metric, one.before), figure_cell(metric, one.after),
              gain_text(one.gain.value, view.scale()), interval_or_none(one.gain)}});
    section.show(std::move(table));
    return section;
}

Section search_section(const Content& content) {
    Section section{"search", "Path of the search"};
    section.draw(path_figure(content));
    return section;
}

Section command_section(const Content& content) {
    const Headline headline = headline_of(content.view);
    Section section{"serve", "What to " + content.view.use("serve")};
    section.kind = "brief";
    if (!headline.command.empty())
        section.blocks.emplace_back(Code{"bash", headline.command, "command"});
    return section;
}

Section study_section(const Content& content) {
    const ReportView& view = content.view;
    const StudyFile& file = view.setup.file;
    const ReportView::Counts counts = view.counts();
    Section section{"study", "The study"};
    section.kind = "brief";
    Facts facts;
    const auto fact = [&](const char* name, const std::string& value) {
        if (!value.empty()) facts.rows.emplace_back(name, value);
    };
    fact("model", file.model);
    fact("hardware", file.machine.hardware);
    for (const Goal& goal : view.problem().objective.goals)
        fact("goal", (goal.direction == Direction::maximize ? "maximize " : "minimize ") +
                         metric_title(goal.metric));
    for (const Limit& limit : view.problem().objective.limits) fact("limit", limit.readable());
    for (const Workload& workload : file.workloads) fact("workload", workload.name);
    fact("trials", fmt::format("{}, {} failed", counts.completed, counts.failed));
    if (const TimeSpent spent = time_spent_in(view.trials); spent.trials >= 1)
        fact("time of trials", spent.text());
    fact("strategy", fmt::format("{}, seed {}", file.strategy.name, file.seed));
    std::string ended = content.stop_reason.empty() ? "not yet" : content.stop_reason;
    std::replace(ended.begin(), ended.end(), '_', ' ');
    fact("ended", ended);
    section.blocks.emplace_back(std::move(facts));
    section.say(file.measured_by());
    return section;
}

std::string limit_sentence(const LimitMargin& one, const ReportView& view) {
    const std::string& metric = one.limit.metric;
    return fmt::format(
        "Limit {}{}: {}, {} {}. {}.", one.limit.readable(),
        one.workload.empty() ? "" : " on " + one.workload, figure_text(metric, one.value),
        figure_text(metric, std::abs(one.margin)), one.margin < 0 ? "too far" : "to spare",
        one.refuses ? fmt::format("It refuses {}, which is {} better", view.changes(*one.refuses),
                                  gain_text(one.costs->value, one.costs->scale))
                    : "No better configuration was rejected by this limit");
}

Section limits_section(const Content& content) {
    Section section{"limits", "What keeps it from being better"};
    section.kind = "brief";
    if (content.explained == nullptr || !content.explained->limits) return section;
    const WhatLimits& found = *content.explained->limits;
    std::vector<std::string> texts;
    // Those that refuse something better, else the nearest: it stands first.
    for (const LimitMargin& one : found.limits)
        if (one.refuses || texts.empty()) texts.push_back(limit_sentence(one, content.view));
    for (const AtTheEnd& one : found.at_the_end)
        texts.push_back(
            fmt::format("{} = {} is the {} value that was searched: widen its range to see whether "
                        "more is gained.",
                        one.parameter, text_of(one.value), one.largest ? "largest" : "smallest"));
    section.list(texts);
    return section;
}

Section more_section(const Content& content) {
    Section section{"hour", "Expected gain of more trials"};
    section.kind = "brief";
    if (content.explained == nullptr) return section;
    if (!content.explained->more) {
        section.say("Not known: " + content.explained->no_more + ".");
        section.vague = true;
        return section;
    }
    const MoreTrials& more = *content.explained->more;
    if (more.further.untried == 0) {
        section.say("Nothing: every configuration of the space was tried.");
        return section;
    }
    const FigureScale& scale = content.view.scale();
    section.say(fmt::format(
        "{}{} are expected to gain {} over what is recommended (95 %: {}). P(a gain worth having) "
        "{:.0f} %.",
        counted_text(more.further.trials, "further trial"),
        more.seconds > 0 ? " (" + spent_text(more.seconds) + " at this study's pace)" : "",
        gain_text(more.further.gain.value, scale), credible_text(more.further.gain, scale),
        100 * more.further.chance_changed));
    return section;
}

/// Who fell under stress and why, and what answers change.
std::vector<std::string> stress_notes(const ReportView& view) {
    std::vector<std::string> texts;
    // Falls that count are in the search's history.
    const bool all_fall = none_of(view.search, [](const Trial& trial) { return trial.fell(); });
    for (const Trial& trial : view.trials) {
        if (trial.purpose != Purpose::stress) continue;
        const std::string who =
            trial.configuration == view.base() ? "the default" : view.changes(trial.configuration);
        if (trial.fell())
            texts.push_back("Under stress " + who + " failed, " +
                            (all_fall ? "and nothing is refused for what the default does too: "
                                      : "so it is not recommended: ") +
                            trial.failure()->message);
        if (trial.measurement() == nullptr) continue;
        std::string text =
            "Under stress " + who + " served the longest prompts, a burst and a soak";
        if (const auto changed = value_in(trial.measurement()->metrics, quality_drop);
            changed && trial.configuration != view.base())
            text += "; " + plain_percent(*changed) +
                    " of the text of its greedy answers differs from the default's";
        if (const auto preemptions = value_in(trial.measurement()->metrics, "server_preemptions");
            preemptions && *preemptions > 0)
            text += "; it preempted " + counted_text(std::size_t(*preemptions), "request");
        for (const Finding& finding : trial.measurement()->validity.findings)
            text += "; " + finding.cause;
        texts.push_back(text + ".");
    }
    const Recommendation& result = view.recommendation;
    if (view.setup.file.is_stressed() && result.best && !result.keep_default &&
        none_of(view.trials, [&](const Trial& trial) {
            return (trial.fell() || (trial.purpose == Purpose::stress && trial.measurement())) &&
                   trial.configuration == result.recommended;
        }))
        texts.push_back("What is recommended has not been under stress.");
    return texts;
}

/// Which values an engine has in force, where it cannot be asked: what differs is a finding.
std::string in_force_text(const ReportView& view) {
    const StudyFile& file = view.setup.file;
    if (!std::holds_alternative<DeployChoice>(file.measuring) || !file.composition) return "";
    const Engine& engine = file.composition->engine_of(view.recommendation.recommended);
    return engine.api.contains("server_info")
               ? ""
               : "In force: " + engine.name + " does not tell which values of its flags are.";
}

/// How sure the verdict is.
Section confidence_section(const Content& content) {
    const ReportView& view = content.view;
    const Recommendation& result = view.recommendation;
    const Decision& decision = view.problem().decision;
    Section section{"certain", "Confidence"};
    section.kind = "brief";
    std::vector<std::string> texts;
    const auto say = [&](const std::string& text) {
        if (!text.empty()) texts.push_back(text);
    };
    if (decision.rule == Decision::Rule::published)
        say("Decided as published studies do: the larger number wins if it gains " +
            plain_percent(decision.min_gain) + ", whatever the noise.");
    if (!view.scale().ratios())
        say("Some figures are 0 or below, so they are compared by differences, in the metric's "
            "unit.");
    if (view.gains()) {
        if (view.gain_is_by_rounds())
            say(fmt::format(
                "The gain is by {} rounds of both in turn after the search, all other figures are "
                "by all measurements.",
                rounds_of(view.problem(), view.standings, *view.standings.find(result.recommended),
                          view.standings.find(view.base()))));
        else if (result.gain.has_interval())
            say("The gain's interval is corrected for picking the best of all that were tried.");
        if (result.p_best)
            say(fmt::format("P(the best of the {} configurations that pass) {}.", passing_in(view),
                            *result.p_best > 0.99  // measurements never make a certainty
                                ? "> 99 %"
                                : fmt::format("{:.0f} %", *result.p_best * 100)));
        if (result.gain.has_interval() && result.gain.low <= 0)
            say("The gain's interval holds zero: the default may be as good.");
    }
    if (!view.search.empty()) say("Noise: " + noise_text(view) + ".");
    if (const std::string drift = drift_text(view.standings); !drift.empty())
        say("Drift: " + drift + ".");
    if (!result.tied.empty()) {
        std::vector<std::string> tied;
        for (const Configuration& one : result.tied)
            tied.push_back(view.changes(one) + " (" +
                           figure_text(view.goal().metric,
                                       view.figure(*view.standings.find(one)).value_or(0)) +
                           ")");
        say("Not distinguishable from it at that noise: " + joined(tied, "; ") +
            ". 'autotune compare' decides between two.");
    }
    for (const auto& notes : {stress_notes(view), quality_notes(view), other_work_notes(view)})
        for (const std::string& note : notes) say(note);
    say(in_force_text(view));
    say(not_tried_text(view));
    section.list(texts);
    return section;
}

/// Of several goals: what no other one beats in all of them, as a table and with the commands.
Section front_section(const Content& content) {
    const ReportView& view = content.view;
    const Recommendation& result = view.recommendation;
    const std::vector<Goal> goals = view.problem().objective.goals;
    Section section{"front", "Pareto front"};
    if (result.front.empty()) return section;
    section.say(fmt::format(
        "{} of the {} configurations that pass: each is better than any other in at least one "
        "goal, by the means, or equal in all. Which trade is worth it, measurements do not say; "
        "what is best in {} stands first.",
        result.front.size(), passing_in(view), view.goal().metric));
    Table table{section.title, {"place", "setting"}};
    table.texts = 2;
    for (const Goal& goal : goals)
        table.header.insert(table.header.end(), {metric_title(goal.metric), "95 %"});
    table.header.emplace_back("measured");
    const auto add = [&](const std::string& place, const FrontPoint& point) {
        Row& row = table.rows.emplace_back(Row{{place, view.changes(point.configuration)}});
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const std::string& metric = goals[k].metric;
            const Estimate& estimate = point.estimates[k];
            row.cells.push_back(figure_cell(metric, estimate.mean));
            // As the verdict: where nothing was measured twice, the noise is only assumed.
            row.cells.emplace_back(view.standings.replicated() > 0
                                       ? figure_text(metric, estimate.low()) + " to " +
                                             figure_text(metric, estimate.high())
                                       : "-");
        }
        row.cells.emplace_back(std::to_string(point.estimates.front().replicates));
    };
    bool has_default = false;
    for (std::size_t i = 0; i < result.front.size(); ++i) {
        add(std::to_string(i + 1), result.front[i]);
        has_default = has_default || result.front[i].configuration == view.base();
    }
    if (result.default_passes && !has_default) {
        FrontPoint beaten{view.base(), {}};
        for (const auto& goal : view.standings.find(view.base())->goals)
            beaten.estimates.push_back(goal.estimate);
        add("beaten", beaten);
    }
    section.show(std::move(table));
    for (std::size_t i = 0; i < result.front.size(); ++i) {
        const Configuration& one = result.front[i].configuration;
        section.say(fmt::format("{}) {}{}", i + 1, view.changes(one),
                                one == result.recommended ? " (recommended)" : ""));
        section.blocks.emplace_back(Code{"bash", view.setup.advice(one)});
    }
    return section;
}

Section trade_section(const Content& content) {
    Section section{"trade-offs", "Trade-offs"};
    section.draw(trade_figure(content));
    return section;
}

Section latency_section(const Content& content) {
    Section section{"latency", "Latencies"};
    section.kind = "pairs";
    section.draw(latency_figure(content));
    return section;
}

/// A table of configurations: the goal, what it gains, and each metric that decides.
class ResultTable {
public:
    ResultTable(const Content& content, std::string title)
        : content_(content), table_{std::move(title), {}} {
        const Objective& objective = content.view.problem().objective;
        table_.header = {"setting", metric_title(objective.leading().metric), "gain"};
        std::set<std::string> shown;
        for (const Goal& goal : objective.goals) shown.insert(goal.metric);
        for (const Limit& limit : objective.limits) shown.insert(limit.metric);
        for (std::size_t k = 1; k < objective.goals.size(); ++k)
            columns_.push_back(objective.goals[k].metric);
        for (const char* metric : usual_columns)
            if (!shown.contains(metric) && any_of(content.rows, [&](const ResultRow& row) {
                    return row.means.find(metric) != row.means.end();
                }))
                columns_.emplace_back(metric);
        for (const std::string& metric : columns_) table_.header.push_back(metric_title(metric));
        for (const Limit& limit : objective.limits) table_.header.push_back(limit.readable());
        if (repeated()) table_.header.emplace_back("measured");
        table_.header.emplace_back("verdict");
    }
    /// `row` null: nothing was measured of it.
    void add(const std::string& name, const ResultRow* row, std::optional<double> gain,
             const std::string& verdict) {
        const ReportView& view = content_.view;
        Row& out = table_.rows.emplace_back(
            Row{{name, figure_cell(view.goal().metric, row == nullptr ? std::nullopt : row->value),
                 Cell(gain ? stated_text(*gain, view.scale()) : "-", gain)}});
        for (const std::string& metric : columns_)
            out.cells.push_back(
                figure_cell(metric, row == nullptr ? std::nullopt : value_in(row->means, metric)));
        for (const Limit& limit : view.problem().objective.limits)
            out.cells.push_back(row == nullptr ? Cell("-") : limited(*row->standing, limit));
        if (repeated()) {
            const double runs = row == nullptr ? 0 : row->standing->leading().total_runs();
            out.cells.emplace_back(fmt::format("{:.0f}", runs), runs);
        }
        out.cells.emplace_back(verdict).strong =
            verdict == "recommended" || verdict == "carried on";
        if (row == nullptr) return;
        // Its cell says which limit it breaks, and by what.
        if (row->standing->refusal == Refusal::limit) out.cells.back().text = "refused";
        out.kind = row->kind;
        out.of = std::size_t(row - content_.rows.data());
    }
    [[nodiscard]] Table& table() { return table_; }

private:
    [[nodiscard]] bool repeated() const { return content_.view.standings.replicated() > 0; }
    /// A configuration's figures under a limit: one, or one for each workload.
    [[nodiscard]] Cell limited(const Standing& standing, const Limit& limit) const {
        std::vector<std::string> texts;
        Cell cell("-");
        for (const auto& [workload, value] :
             limited_figures(standing, limit, content_.view.problem().decision)) {
            texts.push_back((workload.empty() ? "" : workload + " ") +
                            figure_text(limit.metric, value) +
                            (limit.keeps(value) ? "" : " broken"));
            cell.bad = cell.bad || !limit.keeps(value);
            if (!cell.sorted_by ||
                (limit.at_least ? value < *cell.sorted_by : value > *cell.sorted_by))
                cell.sorted_by = value;
        }
        if (!texts.empty()) cell.text = joined(texts, "; ");
        return cell;
    }

    const Content& content_;
    Table table_;
    std::vector<std::string> columns_{};
};

/// Of a study in stages: each with all its candidates, and the best of each.
Section steps_section(const Content& content) {
    const ReportView& view = content.view;
    const StudyFile& file = view.setup.file;
    Section section{"steps", "Steps"};
    const auto* staged = dynamic_cast<const Staged*>(view.setup.strategy.get());
    if (staged == nullptr) return section;
    const bool with_printed = !file.printed.empty();
    Table options{
        "Summary of options",
        {"option", "best " + metric_title(view.goal().metric), "gain over the step's base"}};
    if (with_printed) options.header.emplace_back("printed in the document");
    const auto row_at = [&](const Configuration& configuration) -> const ResultRow* {
        const auto at = content.row_of(configuration);
        return at ? &content.rows[*at] : nullptr;
    };
    for (const Staged::Step& step : staged->walk(view.problem(), view.search).steps) {
        const ResultRow* base = row_at(step.base);
        const auto gain_of = [&](const ResultRow* row) -> std::optional<double> {
            if (row == nullptr || !row->value || base == nullptr || !base->value) return {};
            return step.base == view.base()
                       ? row->gain
                       : stated_gain(view.goal(), view.scale(), *row->value, *base->value);
        };
        section.blocks.emplace_back(Heading{step.stage->name});
        section.say("On top of " + view.setup.command_text(step.base) + ":");
        ResultTable table(content, step.stage->name);
        const ResultRow* best = nullptr;
        bool base_listed = false;
        for (const Staged::Candidate& candidate : step.candidates) {
            const std::string name = Configuration::of(candidate.changes).text();
            const ResultRow* row =
                candidate.excluded.empty() ? row_at(candidate.configuration) : nullptr;
            std::string verdict = !candidate.excluded.empty() ? "not tried: " + candidate.excluded
                                                              : "not measured yet";
            if (row != nullptr) {
                const bool is_base = candidate.configuration == step.base;
                base_listed = base_listed || is_base;
                // Rows stand in their order, the best first.
                if (best == nullptr || row < best) best = row;
                verdict = !row->standing->passes() ? "refused: " + row->standing->refused
                          : step.winner == candidate.configuration
                              ? step.stage->carried ? "carried on" : "worth having"
                          : is_base ? "the base"
                                    : "";
            }
            table.add(name, row, gain_of(row), verdict);
        }
        if (!base_listed) table.add("(nothing changed)", base, gain_of(base), "the base");
        section.show(std::move(table.table()));
        Row& row = options.rows.emplace_back(Row{{step.stage->name}});
        if (best == nullptr) row.cells.insert(row.cells.end(), {"-", "-"});
        else {
            Cell figure = figure_cell(view.goal().metric, best->value);
            if (!best->standing->passes()) figure.text += " (refused)";
            row.cells.push_back(std::move(figure));
            const auto gain = gain_of(best);
            row.cells.emplace_back(gain ? stated_text(*gain, view.scale()) : "-");
        }
        const auto printed = file.printed.find(step.stage->name);
        if (with_printed)
            row.cells.emplace_back(printed == file.printed.end() ? "" : printed->second);
    }
    if (options.rows.empty()) return section;
    section.blocks.emplace_back(Heading{"Summary of options"});
    section.show(std::move(options));
    section.say(
        "One step after the other finds a local optimum: combinations that no step lists were not "
        "measured.");
    return section;
}

Section results_section(const Content& content) {
    Section section{"configurations", "Results"};
    if (content.rows.empty()) return section;
    section.draw(
        "<div class=\"tools only-script\"><label>Show rows with: <input id=\"filter\" "
        "type=\"search\"></label><span id=\"shown\" role=\"status\"></span></div>\n");
    ResultTable table(content, "all configurations");
    for (const ResultRow& row : content.rows) table.add(row.name, &row, row.gain, row.verdict);
    table.table().id = "results";
    table.table().sortable = true;
    section.show(std::move(table.table()));
    return section;
}

Section interactions_section(const Content& content) {
    Section section{"interactions", "Interactions"};
    if (content.explained == nullptr || !content.explained->effects.learned()) return section;
    const FigureScale& scale = content.view.scale();
    std::vector<std::string> texts;
    for (const PairEffect& pair : content.explained->effects.pairs)
        if (pair.gain.known())
            texts.push_back(fmt::format(
                "{} and {}: {:.0f} % of all differences in the space; {} = {} with {} = {} gives "
                "{} (95 % interval {}) beyond what each gives alone, measured together {} times.",
                pair.parameters[0], pair.parameters[1], pair.share * 100, pair.parameters[0],
                text_of(pair.levels[0]), pair.parameters[1], text_of(pair.levels[1]),
                gain_text(pair.gain.value, scale), credible_text(pair.gain, scale), pair.together));
    section.vague = texts.empty();
    if (texts.empty()) section.say("None is known: no two parameters are proven to interact.");
    section.list(texts);
    return section;
}

Section effects_section(const Content& content) {
    Section section{"effects", "What the parameters do"};
    if (content.explained == nullptr) return section;
    const Effects& effects = content.explained->effects;
    const EffectsFloor& floor = effects.floor;
    const SearchSpace& space = content.view.problem().space;
    const FigureScale& scale = content.view.scale();
    if (floor.varied == 0) return section;
    section.vague = !effects.learned();
    if (!floor.enough()) {
        section.say(
            fmt::format("Not known yet: {} measured, {} needed to tell the effects of {} apart.",
                        counted_text(floor.measured, "configuration"), floor.needed(),
                        counted_text(floor.varied, "parameter")));
        return section;
    }
    section.say(fmt::format(
        "Of each level on {}, over the average of the parameter's levels while everything else "
        "stays as it is, as models learned it from {} configurations "
        "(docs/explanation/optimizer.md). With 95 % all intervals hold at once.{}",
        metric_title(content.view.goal().metric), floor.measured,
        effects.learned() ? "" : " No effect is proven: every interval includes 0."));
    const std::string drawing = effects_figure(content);
    section.draw(drawing);
    std::set<std::string> known;
    std::set<std::string> unknown;
    for (const MainEffect& effect : effects.main)
        if (effect.known()) known.insert(effect.parameter);
    Table table{"The effect of each level", {"parameter", "level", "gain", "interval", "measured"}};
    table.texts = 2;
    table.text_only = !drawing.empty();
    for (const MainEffect& effect : effects.main) {
        const bool refused = !effect.refused.empty();
        if (!refused && !known.contains(effect.parameter)) {
            unknown.insert(effect.parameter);
            continue;
        }
        const bool is_default = effect.level == space.at(effect.parameter).default_value;
        table.rows.push_back(
            {{effect.parameter, text_of(effect.level) + (is_default ? " (default)" : ""),
              refused ? "refused" : gain_text(effect.gain.value, scale),
              refused ? effect.refused
                      : credible_text(effect.gain, scale) + (effect.known() ? ""
                                                             : effect.measured == 0
                                                                 ? " (not measured at this level)"
                                                                 : " (not proven: includes 0)"),
              std::to_string(effect.measured)}});
    }
    section.show(std::move(table));
    for (const Parameter& parameter : space.parameters())
        if (const std::size_t more = effects.left_out(parameter);
            more > 0 && known.contains(parameter.name))
            section.say(fmt::format("Not shown: {} of {}.", counted_text(more, "more level"),
                                    parameter.name));
    if (effects.learned() && !unknown.empty())
        section.say("No effect is proven of " + joined({unknown.begin(), unknown.end()}) + ".");
    return section;
}

/// By kind, the most frequent first, each with the lines of its log.
Section failures_section(const Content& content) {
    Section section{"failures", "Failed"};
    std::map<std::string, std::vector<const Trial*>> kinds;
    for (const Trial& trial : content.view.trials)
        if (trial.failure() != nullptr)
            kinds[std::string(name_in(failure_kinds, trial.failure()->kind))].push_back(&trial);
    std::vector<std::pair<std::string, std::vector<const Trial*>>> sorted(kinds.begin(),
                                                                          kinds.end());
    stable_sort(sorted,
                [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
    constexpr std::size_t most_shown = 20;
    for (const auto& [kind, trials] : sorted) {
        section.blocks.emplace_back(Heading{kind + ": " + counted_text(trials.size(), "trial")});
        std::vector<Item> items;
        for (std::size_t i = 0; i < std::min(trials.size(), most_shown); ++i) {
            const Trial& trial = *trials[i];
            Item& item = items.emplace_back(Item{fmt::format(
                "Trial {} ({}{}): {}", trial.id, content.view.changes(trial.configuration),
                trial.workload.empty() ? "" : ", workload " + trial.workload,
                trial.failure()->message)});
            for (const std::string& line : trial.failure()->log_lines) item.log += line + "\n";
        }
        if (trials.size() > most_shown)
            items.push_back({fmt::format("and {} more", trials.size() - most_shown)});
        section.list(std::move(items));
    }
    return section;
}

/// By what was found, not by trial.
Section audit_section(const Content& content) {
    struct Group {
        std::size_t unsound = 0, suspect = 0;
        const Trial* first = nullptr;
        const Finding* example = nullptr;
    };
    const ReportView& view = content.view;
    Section section{"audit", "Audit"};
    ReportView::Counts counts = view.counts();
    if (counts.measured == 0) return section;
    const std::size_t unchecked = counts.verdicts[Verdict::unchecked];
    section.say(fmt::format(
        "{} of {} measurements are sound, {} suspect, {} unsound. Unsound ones {}.{}",
        counts.verdicts[Verdict::sound], counts.measured, counts.verdicts[Verdict::suspect],
        counts.verdicts[Verdict::unsound],
        view.problem().decision.enforce_audit ? "cannot win"
                                              : "count all the same, as the study says",
        unchecked > 0 ? fmt::format(" {} could not be checked: they have no figures that could be "
                                    "held against each other.",
                                    unchecked)
                      : ""));
    std::map<std::string, Group> groups;
    for (const Trial& trial : view.trials) {
        if (trial.measurement() == nullptr) continue;
        const Validity& validity = trial.measurement()->validity;
        if (validity.verdict < Verdict::suspect) continue;
        std::set<std::string> seen;
        for (const Finding& finding : validity.findings) {
            if (!seen.insert(finding.id).second) continue;
            Group& group = groups[finding.id];
            ++(validity.verdict == Verdict::unsound ? group.unsound : group.suspect);
            // The gravest stands for all.
            if (group.example == nullptr ||
                (validity.verdict == Verdict::unsound && group.unsound == 1))
                group.first = &trial, group.example = &finding;
        }
    }
    Table table{"What was found", {"finding", "unsound", "suspect", "the first"}};
    for (const auto& [id, group] : groups)
        table.rows.push_back(
            {{id, std::to_string(group.unsound), std::to_string(group.suspect),
              fmt::format(
                  "{}{}: {}{}{}{}{}", view.changes(group.first->configuration),
                  group.first->workload.empty() ? "" : ", workload " + group.first->workload,
                  group.example->left, group.example->right.empty() ? "" : "; ",
                  group.example->right, group.example->cause.empty() ? "" : ". ",
                  group.example->cause)}});
    section.show(std::move(table));
    return section;
}

/// Nobody should take an empty cell for a measurement that showed nothing.
std::vector<std::string> not_measured_notes(const ReportView& view) {
    std::vector<std::string> texts;
    if (!view.recommendation.best) return texts;
    for (const Workload& workload : view.setup.file.report_workloads)
        for (const auto& [whose, configuration] :
             {std::pair("default", &view.base()),
              {"recommendation", &view.recommendation.recommended}})
            if (view.measured(*configuration, workload.name) == nullptr)
                texts.push_back("The report workload " + workload.name +
                                " was not measured with the " + whose + ".");
    return texts;
}

Section notes_section(const Content& content) {
    const ReportView& view = content.view;
    Section section{"notes", "Notes"};
    std::vector<std::string> texts = knowledge_notes(view);
    const auto add = [&](const std::vector<std::string>& more, std::size_t most) {
        texts.insert(texts.end(), more.begin(),
                     more.begin() + std::ptrdiff_t(std::min(most, more.size())));
    };
    const auto quality = value_in(view.means(view.recommendation.recommended), quality_drop);
    if (quality && !view.recommendation.keep_default)
        texts.push_back("Quality: " + plain_percent(std::abs(*quality)) +
                        (*quality < 0 ? " gained" : " lost") + " against the default (" +
                        (view.setup.file.quality && !view.setup.file.quality->command.empty()
                             ? "of its accuracy"
                             : "1 - the agreement of greedy answers") +
                        ").");
    constexpr std::size_t most_changes = 10;
    add(not_measured_notes(view), std::string::npos);
    std::vector<std::string> changes = environment_changes(view.trials);
    for (std::string& one : changes) one = "The environment changed: " + one + ".";
    add(changes, most_changes);
    if (changes.size() > most_changes)
        texts.push_back(fmt::format("It changed {} times more.", changes.size() - most_changes));
    add(view.setup.file.notes, std::string::npos);
    section.list(texts);
    return section;
}

}  // namespace

std::vector<GainRow> gain_rows(const Content& content) {
    const ReportView& view = content.view;
    const StudyFile& file = view.setup.file;
    const std::string& metric = view.goal().metric;
    std::vector<GainRow> rows;
    if (!view.gains()) return rows;
    const Configuration& recommended = view.recommendation.recommended;
    const Standing& best = *view.standings.find(recommended);
    const Standing& base = *view.standings.find(view.base());
    const Metrics after = view.judged_means(recommended);
    const Metrics before = view.judged_means(view.base());
    const bool several = file.workloads.size() > 1;
    rows.push_back({several                  ? "all together"
                    : file.workloads.empty() ? ""
                                             : file.workloads.front().name,
                    value_in(before, metric).value_or(base.estimate().mean),
                    value_in(after, metric).value_or(best.estimate().mean),
                    view.recommendation.gain});
    const auto add = [&](const std::string& label, const std::string& workload,
                         const Metrics& of_default, const Metrics& of_recommended, double runs) {
        const auto name = [&](std::string_view plain) { return MetricKey{plain, workload}.text(); };
        const auto a = value_in(of_recommended, name(metric));
        const auto b = value_in(of_default, name(metric));
        if (!a || !b || !view.scale().ratios() || !(*a > 0) || !(*b > 0)) return;
        // The chance interval of a ratio of two means whose relative error is the goal's.
        const double log_gain = std::log1p(view.goal().gain(*a, *b));
        const double level = view.recommendation.gain.level;
        const double reach =
            normal_quantile((1 + level) / 2) * view.standings.noise() * std::sqrt(runs);
        rows.push_back(
            {label, *b, *a,
             Gain{std::expm1(log_gain), std::expm1(log_gain - reach), std::expm1(log_gain + reach),
                  level, view.standings.replicated() == 0, view.scale()}});
    };
    if (several)
        for (const Workload& workload : file.workloads)
            add(workload.name, workload.name, before, after,
                1 / std::max(1.0, best.leading().total_runs()) +
                    1 / std::max(1.0, base.leading().total_runs()));
    for (const Workload& workload : file.report_workloads)
        add(workload.name, "", view.means(view.base(), workload.name),
            view.means(recommended, workload.name), 2);
    return rows;
}

Document explanation_of(const Content& content) {
    Document document{headline_of(content.view).title};
    for (const auto& section :
         {limits_section, more_section, interactions_section, effects_section})
        document.add(section(content));
    return document;
}

Document document_of(const Content& content) {
    const StudyFile& file = content.view.setup.file;
    Document document{file.name + (file.model.empty() ? "" : ": " + file.model) +
                      (file.machine.hardware.empty() ? "" : " on " + file.machine.hardware)};
    for (const auto& section_of :
         {recipe_section, verdict_section, search_section, command_section, gains_section,
          confidence_section, front_section, trade_section, latency_section, steps_section,
          results_section, limits_section, more_section, effects_section, interactions_section,
          failures_section, audit_section, notes_section, study_section})
        if (Section section = section_of(content); !section.vague) document.add(std::move(section));
    return document;
}

}  // namespace servetune
