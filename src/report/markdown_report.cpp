// SPDX-License-Identifier: Apache-2.0
#include "base/url.hpp"
#include "markdown_page.hpp"
#include "markdown_sections.hpp"
#include "report_view.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/report.hpp"
#include "time_spent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

namespace servetune {
namespace {

/// Metrics worth a column beside the objective, with how people know them.
constexpr std::pair<std::string_view, std::string_view> companions[] = {
    {"time_per_output_token_mean_seconds", "mean TPOT (ms)"},
    {"time_to_first_token_mean_seconds", "mean TTFT (ms)"}};

class Markdown : private MarkdownPage {
public:
    Markdown(const ReportView& view, std::string_view stop_reason)
        : MarkdownPage(view),
          setup_(view.setup),
          problem_(*view.setup.problem),
          stop_reason_(stop_reason) {}

    std::string text(const std::string& effects, const std::string& account) {
        line("# {}{}{}{}\n", file_.name, file_.model.empty() ? "" : ": ", file_.model,
             file_.machine.hardware.empty() ? "" : " on " + file_.machine.hardware);
        conclusion();
        before_and_after();
        out_ += account;
        front();
        if (const auto* staged = dynamic_cast<const Staged*>(setup_.strategy.get()))
            stages(*staged);
        else all_results();
        out_ += effects;
        out_ += predicted_section(view_);
        refused();
        out_ += audit_section(view_);
        notes();
        return file_.secrets(out_);
    }

private:
    [[nodiscard]] std::optional<double> mean_of(const Standing& standing) const {
        if (standing.measured() > 0) return standing.estimate().mean;
        return value_in(view_.means(standing.configuration), problem_.objective.leading().metric);
    }
    [[nodiscard]] std::string objective_of(const Standing& standing) const {
        const auto value = mean_of(standing);
        return value ? figure_text(problem_.objective.leading().metric, *value) : "-";
    }
    /// For a column whose header names the unit.
    [[nodiscard]] static std::string plain(const Metrics& metrics, std::string_view metric) {
        const auto value = value_in(metrics, metric);
        return value ? plain_figure_text(metric, *value) : "-";
    }
    [[nodiscard]] std::string stated(std::optional<double> gain) const {
        return gain ? stated_text(*gain, view_.standings.scale()) : "-";
    }
    /// Of a row of a table; `over_default`: the base is the default.
    [[nodiscard]] std::string gain_of(const Standing& standing, std::optional<double> base,
                                      bool over_default) const {
        const auto mean = mean_of(standing);
        return over_default ? stated(view_.gain_in_table(standing.configuration, mean, base))
                            : gain_text(mean, base);
    }
    [[nodiscard]] std::string gain_text(std::optional<double> candidate,
                                        std::optional<double> base) const {
        const FigureScale& scale = view_.standings.scale();
        const auto gain = stated_gain(problem_.objective.leading(), scale, candidate.value_or(0),
                                      base.value_or(0));
        return candidate && base && gain ? stated_text(*gain, scale) : "-";
    }

    void conclusion() {
        line("## Conclusion\n");
        const Headline headline = headline_of(view_);
        const bool gains = result_.conclusion == Conclusion::recommended && result_.default_passes;
        if (gains)
            line("**{}** ({}).{}\n", headline.title,
                 difference(result_.recommended, result_.default_configuration),
                 headline.unsound.empty() ? "" : " " + headline.unsound + " " + headline.advice);
        else
            line("**{}.** {}{}\n", headline.title, headline.reason,
                 headline.advice.empty() ? "" : " " + headline.advice);
        if (result_.conclusion == Conclusion::nothing_passes) return;
        block("bash", headline.command);
        if (problem_.decision.rule == Decision::Rule::published)
            line(
                "Decided as published studies do: the larger number wins if it gains {}, whatever "
                "the noise.\n",
                plain_percent(problem_.decision.min_gain));
        if (!view_.standings.scale().ratios())
            line(
                "Some figures are 0 or below, so they are compared by differences, in the metric's "
                "unit.\n");
        if (gains) {
            if (!result_.gain.has_interval())
                line("The gain is by one measurement each: there is no interval.\n");
            else if (problem_.is_confirmed())
                line(
                    "The gain's 95 % interval is {}, by {} rounds of both in turn after the "
                    "search.\n",
                    interval_text(result_.gain),
                    rounds_of(problem_, view_.standings, *view_.standings.find(result_.recommended),
                              view_.standings.find(result_.default_configuration)));
            else
                line(
                    "The gain's 95 % interval is {}, corrected for picking the best of all that "
                    "were tried.\n",
                    interval_text(result_.gain));
            if (result_.p_best)
                line(
                    "The probability that this is the best of the {} configurations that pass is "
                    "{}.\n",
                    passing(), probability_text(*result_.p_best));
            if (result_.gain.has_interval() && result_.gain.low <= 0)
                line(
                    "That interval holds zero: by these measurements alone the default cannot be "
                    "told apart from the recommendation.\n");
        }
        if (const std::string differs = environment_difference(view_); gains && !differs.empty())
            line("{}\n", differs);
        if (result_.conclusion != Conclusion::inconclusive) line("Noise: {}.\n", noise_text(view_));
        if (const std::string drift = drift_text(view_.standings); !drift.empty())
            line("Drift: {}.\n", drift);
        if (!result_.tied.empty()) {
            line("Not distinguishable from it{} at that noise:\n", in_leading());
            for (const Configuration& tied : result_.tied)
                line("- {} ({})", difference(tied, result_.default_configuration),
                     objective_of(*view_.standings.find(tied)));
            out_ += '\n';
        }
        if (!headline.given_away.empty()) line("{}\n", headline.given_away);
    }

    [[nodiscard]] std::ptrdiff_t passing() const {
        return std::count_if(view_.standings.all().begin(), view_.standings.all().end(),
                             [](const Standing& s) { return s.passes(); });
    }
    /// An interval of measurements never makes a certainty.
    static std::string probability_text(double p) {
        return p > 0.99 ? "more than 99 %" : fmt::format("{:.0f} %", p * 100);
    }

    /// Which goal a single figure is of, where there are several.
    [[nodiscard]] std::string in_leading() const {
        return problem_.objective.several() ? " in " + problem_.objective.leading().metric : "";
    }

    /// Of several goals: what no other one beats in all of them, as a table and with the commands.
    void front() {
        if (result_.front.empty()) return;
        const std::vector<Goal> goals = problem_.objective.goals;
        line("## The front\n");
        line(
            "{} of the {} configurations that pass: each is better than any other in at least one "
            "goal, by the means, or equal in all. "
            "Which trade "
            "is worth it, measurements do not say; what is best in {} stands first.\n",
            result_.front.size(), passing(), problem_.objective.leading().metric);
        std::string header = "| | setting |";
        std::string rule = "|---:|---|";
        for (const Goal& goal : goals) {
            header += " " + shown(goal.text()) + " | 95 % |";
            rule += "---:|---:|";
        }
        line("{} {} | {} | measured |", Markup{header}, companions[0].second, companions[1].second);
        line("{}---:|---:|---:|", Markup{rule});
        const auto row = [&](const std::string& name, const Configuration& configuration,
                             const std::vector<Estimate>& estimates) {
            std::string cells;
            for (std::size_t k = 0; k < goals.size(); ++k) {
                const auto figure = [&](double value) {
                    return figure_text(goals[k].metric, value);
                };
                // As the verdict: where nothing was measured twice, the noise is only assumed.
                const std::string interval =
                    view_.standings.replicated() > 0
                        ? figure(estimates[k].low()) + " to " + figure(estimates[k].high())
                        : "-";
                cells += fmt::format(" {} | {} |", figure(estimates[k].mean), interval);
            }
            const Metrics means = view_.means(configuration);
            line("| {} | {} |{} {} | {} | {} |", name,
                 difference(configuration, result_.default_configuration), Markup{cells},
                 plain(means, companions[0].first), plain(means, companions[1].first),
                 estimates.front().replicates);
        };
        bool has_default = false;
        for (std::size_t i = 0; i < result_.front.size(); ++i) {
            const FrontPoint& point = result_.front[i];
            row(std::to_string(i + 1), point.configuration, point.estimates);
            has_default = has_default || point.configuration == result_.default_configuration;
        }
        if (result_.default_passes && !has_default) {
            std::vector<Estimate> estimates;
            for (std::size_t k = 0; k < goals.size(); ++k)
                estimates.push_back(
                    view_.standings.find(result_.default_configuration)->goals[k].estimate);
            row("beaten", result_.default_configuration, estimates);
        }
        out_ += '\n';
        for (std::size_t i = 0; i < result_.front.size(); ++i) {
            line("{}. {}{}\n", i + 1,
                 difference(result_.front[i].configuration, result_.default_configuration),
                 result_.front[i].configuration == result_.recommended ? " (recommended)" : "");
            block("bash", setup_.advice(result_.front[i].configuration));
        }
    }

    void before_and_after() {
        if (result_.conclusion != Conclusion::recommended) return;
        line("## Before and after\n");
        const std::string& metric = problem_.objective.leading().metric;
        line(
            "| workload | {0}, default | {0}, recommended | gain | mean TPOT (ms), default | "
            "recommended |",
            metric);
        line("|---|---:|---:|---:|---:|---:|");
        const auto row = [&](const std::string& name, const Metrics& before, const Metrics& after,
                             const std::string& of, std::optional<double> gain = {}) {
            const auto shown = [&](const Metrics& metrics) {
                const auto value = value_in(metrics, MetricKey{metric, of}.text());
                return value ? figure_text(metric, *value) : std::string("-");
            };
            const std::string tpot = MetricKey{companions[0].first, of}.text();
            line("| {} | {} | {} | {} | {} | {} |", name, shown(before), shown(after),
                 gain ? stated(gain)
                      : gain_text(value_in(after, MetricKey{metric, of}.text()),
                                  value_in(before, MetricKey{metric, of}.text())),
                 plain(before, tpot), plain(after, tpot));
        };
        const bool several = file_.workloads.size() > 1;
        const Metrics before = view_.judged_means(result_.default_configuration);
        const Metrics after = view_.judged_means(result_.recommended);
        const auto gain = view_.gain_in_table(result_.recommended, value_in(after, metric),
                                              value_in(before, metric));
        if (several)
            for (const Workload& workload : file_.workloads)
                row(workload.name, before, after, workload.name);
        else if (!file_.workloads.empty())
            row(file_.workloads.front().name, before, after, "", gain);
        else
            row(file_.measured_outside() ? "measured outside" : "the table", before, after, "",
                gain);
        for (const Workload& workload : file_.report_workloads)
            row(workload.name, view_.means(result_.default_configuration, workload.name),
                view_.means(result_.recommended, workload.name), "");
        out_ += '\n';
        for (const std::string& text : lengths_texts(view_)) line("{}\n", text);
    }

    /// Of a candidate that passes but is not the step's winner.
    [[nodiscard]] std::string judged(const Standing& candidate, const Standing& base) const {
        if (!base.passes()) return "";
        const Gain gain =
            gain_between(problem_.objective.leading(), candidate.estimate(), base.estimate());
        if (gain.value <= 0) return "loses";
        return worth_it(problem_.decision, gain) ? "gains less than the winner"
                                                 : "no gain worth having";
    }

    /// What became of a configuration; what was chosen in bold.
    [[nodiscard]] Markup verdict_cell(const std::string& verdict) const {
        return {verdict == "recommended" || verdict == "carried on" ? "**" + verdict + "**"
                                                                    : shown(verdict)};
    }

    /// A configuration's figures under a limit, those that break it in bold: one, or one for each
    /// workload.
    [[nodiscard]] std::string limited_cell(const Standing& standing, const Limit& limit) const {
        std::string result;
        for (const auto& [workload, value] : limited_figures(standing, limit, problem_.decision)) {
            const std::string figure = plain_figure_text(limit.metric, value);
            result += (result.empty() ? "" : "; ") +
                      (workload.empty() ? "" : shown(workload) + " ") +
                      (limit.keeps(value) ? figure : "**" + figure + "**");
        }
        return result.empty() ? "-" : result;
    }
    void result_row(const Standing* standing, const std::string& name, std::optional<double> base,
                    const std::string& verdict, bool over_default = false) {
        const std::string gain = standing == nullptr ? "-" : gain_of(*standing, base, over_default);
        const Metrics means =
            standing == nullptr ? Metrics{} : view_.means(standing->configuration);
        std::string limited;
        for (const Limit& limit : problem_.objective.limits)
            limited += " " + (standing == nullptr ? "-" : limited_cell(*standing, limit)) + " |";
        line("| {} | {} | {} | {} | {} |{}{} {} |", name,
             standing == nullptr ? "-" : objective_of(*standing), gain,
             plain(means, companions[0].first), plain(means, companions[1].first), Markup{limited},
             Markup{view_.standings.replicated() == 0
                        ? ""
                        : fmt::format(" {:.0f} |",
                                      standing == nullptr ? 0 : standing->leading().total_runs())},
             verdict_cell(verdict));
    }
    void result_header() {
        std::string names;
        std::string rules;
        for (const Limit& limit : problem_.objective.limits) {
            names += " " + shown(limit.readable()) + " |";
            rules += "---:|";
        }
        if (view_.standings.replicated() > 0) {
            names += " measured |";
            rules += "---:|";
        }
        line("| setting | {} | gain | {} | {} |{} |", problem_.objective.leading().metric,
             companions[0].second, companions[1].second, Markup{names});
        line("|---|---:|---:|---:|---:|{}---|", Markup{rules});
    }

    void stages(const Staged& staged) {
        const Staged::Walk walk = staged.walk(problem_, view_.search);
        line("## Steps\n");
        struct Option {
            std::string stage, best, gain, printed;
        };
        std::vector<Option> options;
        for (const Staged::Step& step : walk.steps) {
            const Standing* base = view_.standings.find(step.base);
            const auto base_value = mean_of(*base);
            const bool over_default = step.base == result_.default_configuration;
            line("### {}\n", step.stage->name);
            line("On top of {}:\n",
                 Markup{markdown_code(file_.secrets(setup_.command_text(step.base)))});
            result_header();
            const Standing* best = nullptr;
            bool base_listed = false;
            for (const Staged::Candidate& candidate : step.candidates) {
                const std::string name = Configuration::of(candidate.changes).text();
                if (!candidate.excluded.empty()) {
                    result_row(nullptr, name, base_value, "not tried: " + candidate.excluded);
                    continue;
                }
                const Standing* standing = view_.standings.find(candidate.configuration);
                if (standing == nullptr || !standing->told()) {
                    result_row(nullptr, name, base_value, "not measured yet");
                    continue;
                }
                const bool is_base = candidate.configuration == step.base;
                base_listed = base_listed || is_base;
                const auto better = [&](const Standing& a, const Standing& b) {
                    if (a.passes() != b.passes()) return a.passes();
                    return mean_of(a) && mean_of(b) &&
                           problem_.objective.leading().better(*mean_of(a), *mean_of(b));
                };
                if (best == nullptr || better(*standing, *best)) best = standing;
                std::string verdict = !standing->passes() ? "refused: " + standing->refused
                                      : is_base           ? "the base"
                                                          : "";
                if (step.winner == candidate.configuration)
                    verdict = step.stage->carried ? "carried on" : "worth having";
                else if (verdict.empty()) verdict = judged(*standing, *base);
                result_row(standing, name, base_value, verdict, over_default);
            }
            if (!base_listed) result_row(base, "(nothing changed)", base_value, "the base");
            out_ += '\n';
            const auto printed = file_.printed.find(step.stage->name);
            options.push_back(
                {step.stage->name,
                 best == nullptr ? "-" : objective_of(*best) + (best->passes() ? "" : " (refused)"),
                 best == nullptr ? "-" : gain_of(*best, base_value, over_default),
                 printed == file_.printed.end() ? "" : printed->second});
        }
        line("## Summary of options\n");
        const bool with_printed = !file_.printed.empty();
        line("| option | best {} | gain over the step's base |{}",
             problem_.objective.leading().metric, with_printed ? " printed in the document |" : "");
        line("|---|---:|---:|{}", with_printed ? "---:|" : "");
        for (const Option& option : options)
            line("| {} | {} | {} |{}", option.stage, option.best, option.gain,
                 Markup{with_printed ? " " + shown(option.printed) + " |" : ""});
        out_ += '\n';
        say_what_gains_are_by();
    }

    void say_what_gains_are_by() {
        if (result_.conclusion == Conclusion::recommended && view_.gain_is_by_rounds())
            line(
                "The gain of the recommended setting over the default is by the rounds after the "
                "search. All other figures are by all "
                "measurements.\n");
    }

    void all_results() {
        line("## Results\n");
        result_header();
        const Standing* base = view_.standings.find(result_.default_configuration);
        std::vector<const Standing*> sorted;
        for (const Standing& standing : view_.standings.all())
            if (standing.told()) sorted.push_back(&standing);
        std::stable_sort(sorted.begin(), sorted.end(), [&](const Standing* a, const Standing* b) {
            if (a->passes() != b->passes()) return a->passes();
            return a->passes() &&
                   problem_.objective.leading().better(a->estimate().mean, b->estimate().mean);
        });
        for (const Standing* standing : sorted) {
            std::string verdict = standing->passes() ? "" : "refused: " + standing->refused;
            if (standing == base && result_.default_unsound)
                verdict = "the default: " + standing->refused;
            else if (standing->configuration == result_.recommended &&
                     result_.conclusion == Conclusion::recommended)
                verdict = "recommended";
            else if (standing == base && standing->passes()) verdict = "the default";
            result_row(standing, difference(standing->configuration, result_.default_configuration),
                       base == nullptr ? std::nullopt : mean_of(*base), verdict, true);
        }
        out_ += '\n';
        say_what_gains_are_by();
    }

    /// The last one of this configuration.
    [[nodiscard]] const Failure* failure_of(const Configuration& configuration) const {
        const Failure* result = nullptr;
        for (const Trial& trial : view_.trials)
            if (trial.configuration == configuration && trial.failure() != nullptr)
                result = trial.failure();
        return result;
    }

    void refused() {
        bool any = false;
        for (const Standing& standing : view_.standings.all()) {
            if (!standing.told() || standing.passes()) continue;
            if (!any) line("## Failed or refused\n");
            any = true;
            line("- {}: {}", difference(standing.configuration, result_.default_configuration),
                 standing.refused);
            if (const Failure* failure = failure_of(standing.configuration);
                failure != nullptr && !failure->log_lines.empty()) {
                std::string log;
                for (const std::string& said : failure->log_lines) log += said + '\n';
                out_ += '\n' + markdown_block("text", log, "  ");
            }
        }
        if (any) out_ += '\n';
    }

    /// Nobody should take an empty cell for a measurement that showed nothing.
    void not_measured() {
        if (!result_.best) return;
        for (const Workload& workload : file_.report_workloads) {
            const auto why = [&](const Configuration& configuration) {
                return why_not_measured(view_, configuration, workload.name, stop_reason_);
            };
            const std::string of_default = why(result_.default_configuration);
            const std::string of_recommended = why(result_.recommended);
            if (!of_default.empty() && (of_default == of_recommended || result_.keep_default))
                line("- The report workload {} was not measured: {}.", workload.name, of_default);
            else {
                if (!of_default.empty())
                    line("- The report workload {} was not measured with the default: {}.",
                         workload.name, of_default);
                if (!of_recommended.empty())
                    line("- The report workload {} was not measured with the recommendation: {}.",
                         workload.name, of_recommended);
            }
        }
    }

    void notes() {
        line("## Notes\n");
        const auto told = std::count_if(view_.trials.begin(), view_.trials.end(),
                                        [](const Trial& t) { return t.told(); });
        const TimeSpent spent = time_spent_in(view_.trials);
        line("- {} trial{}, {} in all, strategy {}, seed {}{}.", told, told == 1 ? "" : "s",
             spent_text(spent.trials), file_.strategy.name, file_.seed,
             stop_reason_.empty() ? "; the study is not over"
                                  : fmt::format("; ended: {}", stop_reason_));
        if (const std::string measured_by = file_.measured_by(); !measured_by.empty())
            line("- {}", measured_by);
        for (const std::string& note : knowledge_notes(view_)) line("- {}", note);
        const auto quality = value_in(view_.means(result_.recommended), quality_drop);
        if (quality && !result_.keep_default)
            line("- Quality: {} against the default ({}).",
                 plain_percent(std::abs(*quality)) + (*quality < 0 ? " gained" : " lost"),
                 file_.quality && !file_.quality->command.empty()
                     ? "of its accuracy"
                     : "1 - the agreement of greedy answers");
        for (const std::string& note : quality_notes(view_)) line("- {}", note);
        not_measured();
        for (const std::string& note : other_work_notes(view_)) line("- {}", note);
        constexpr std::size_t most_guesses = 6;
        const std::vector<std::string> guesses = speculation_notes(view_);
        for (std::size_t i = 0; i < std::min(guesses.size(), most_guesses); ++i)
            line("- {}", guesses[i]);
        constexpr std::size_t most_changes = 10;
        const std::vector<std::string> changes = environment_changes(view_.trials);
        for (std::size_t i = 0; i < std::min(changes.size(), most_changes); ++i)
            line("- The environment changed: {}.", changes[i]);
        if (changes.size() > most_changes)
            line("- It changed {} times more.", changes.size() - most_changes);
        std::size_t suspect = 0;
        std::size_t unsound = 0;
        std::size_t unchecked = 0;
        for (const Trial& trial : view_.trials) {
            if (trial.measurement() == nullptr) continue;
            unchecked += trial.measurement()->validity.verdict == Verdict::unchecked ? 1 : 0;
            suspect += trial.measurement()->validity.verdict == Verdict::suspect ? 1 : 0;
            unsound += trial.measurement()->validity.verdict == Verdict::unsound ? 1 : 0;
        }
        if (suspect + unsound > 0)
            line("- The audit finds {} suspect and {} unsound measurement{} (audit: {}).", suspect,
                 unsound, unsound == 1 ? "" : "s", file_.audit);
        if (unchecked > 0)
            line(
                "- {} measurement{} could not be checked: no figures that could be held against "
                "each other, such as a duration, tokens and "
                "mean latencies.",
                unchecked, unchecked == 1 ? "" : "s");
        if (const std::string time = spent.text(); !time.empty())
            line("- Time: of these {}, {}.", spent_text(spent.trials), time);
        const auto* staged = dynamic_cast<const Staged*>(setup_.strategy.get());
        if (staged != nullptr)
            line(
                "- One step after the other finds a local optimum: combinations that no step lists "
                "were not measured.");
        for (const std::string& note : file_.notes) line("- {}", note);
    }

    const StudySetup& setup_;
    const Problem& problem_;
    std::string stop_reason_;
};

}  // namespace

std::string markdown_of(const ReportView& view, std::string_view stop_reason,
                        const std::string& effects, const std::string& account) {
    return Markdown(view, stop_reason).text(effects, account);
}

}  // namespace servetune
