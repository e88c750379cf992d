// SPDX-License-Identifier: Apache-2.0
#include "gate.hpp"

#include "output.hpp"

#include "base/files.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace autotune {

using namespace servetune;

namespace {

using CheckEnd = GateCheck::End;

/// The workload that a check without one of its own is of: the only one of the study.
std::string only_workload(const Side& side) {
    const std::vector<Workload>& all = side.of->setup.file.workloads;
    return all.size() == 1 ? all.front().name : "";
}

/// The workloads that a goal has figures of: by the first measurement, before it by the study.
std::vector<std::string> workloads_of(const Goal& goal, const Side& a) {
    if (const std::string_view own = MetricKey::of(goal.metric).workload; !own.empty())
        return {std::string(own)};
    std::vector<std::string> result;
    if (!a.measured.empty()) {
        for (const auto& [workload, figure] : figures_of(a.measured.front()->metrics, goal.metric))
            if (!workload.empty()) result.emplace_back(workload);
    } else if (a.of->setup.file.workloads.size() > 1)
        for (const Workload& workload : a.of->setup.file.workloads) result.push_back(workload.name);
    return result.empty() ? std::vector<std::string>{""} : result;
}

std::size_t measured_pairs(const Side& a, const Side& b) {
    return std::min(a.measured.size(), b.measured.size());
}

/// A limit on one workload, and in how many of its measurements each side breaks it.
struct LimitCheck {
    const Limit* limit;
    std::string workload;
    std::size_t a = 0, b = 0;
    std::string figures{};  ///< of B

    [[nodiscard]] static bool mostly(std::size_t broken, const Side& side) {
        return broken > 0 && 2 * broken >= side.measured.size();
    }
};

std::vector<LimitCheck> limit_checks(const Side& a, const Side& b) {
    std::vector<LimitCheck> result;
    for (const Limit& limit : a.of->setup.problem->objective.limits) {
        std::set<std::string> workloads;
        for (const Side* side : {&a, &b})
            for (const Measurement* one : side->measured)
                for (const auto& [workload, figure] : limit.figures(one->metrics))
                    workloads.insert(workload);
        if (workloads.size() > 1) workloads.erase("");  // a mean of the others
        if (workloads.empty()) workloads.insert("");
        for (const std::string& workload : workloads) {
            LimitCheck& check = result.emplace_back(LimitCheck{&limit, workload});
            const std::string key = MetricKey{limit.metric, workload}.text();
            for (const Side* side : {&a, &b})
                for (const Measurement* one : side->measured) {
                    const auto found = one->metrics.find(key);
                    const bool keeps =
                        found != one->metrics.end() && limit.keeps(found->second.value);
                    (side == &a ? check.a : check.b) += keeps ? 0 : 1;
                    if (side == &b)
                        check.figures += (check.figures.empty() ? "" : ", ") +
                                         (found == one->metrics.end()
                                              ? "none"
                                              : figure_text(limit.metric, found->second.value));
                }
        }
    }
    return result;
}

GateCheck check_of(const LimitCheck& check, const Side& a, const Side& b, bool ended) {
    GateCheck result{"limit " + check.limit->readable(),
                     check.workload.empty() ? only_workload(a) : check.workload};
    const bool a_breaks = LimitCheck::mostly(check.a, a);
    const bool b_breaks = LimitCheck::mostly(check.b, b);
    result.text = fmt::format("B breaks it in {} of {} measurements, A in {} of {}", check.b,
                              b.measured.size(), check.a, a.measured.size());
    if (!check.figures.empty()) result.text += "; B has " + check.figures;
    result.end = !ended || b.measured.empty() ? CheckEnd::undecided
                 : !b_breaks                  ? CheckEnd::passed
                 : a_breaks                   ? CheckEnd::not_judged
                                              : CheckEnd::failed;
    return result;
}

GateCheck check_of(const GoalCheck& check, const Side& a, bool ended, bool failed) {
    GateCheck result{check.goal.direction == Direction::maximize ? "maximize " : "minimize ",
                     check.workload.empty() ? only_workload(a) : check.workload};
    result.name += MetricKey::of(check.goal.metric).name;
    result.text = check.text();
    for (const double value : check.a) result.a.push_back(figure_text(check.goal.metric, value));
    for (const double value : check.b) result.b.push_back(figure_text(check.goal.metric, value));
    const Comparison::Verdict verdict = check.comparison.verdict();
    if (check.why_none.empty() && verdict == Comparison::Verdict::not_worse)
        result.end = CheckEnd::passed;
    else if (check.why_none.empty() && verdict == Comparison::Verdict::worse)
        result.end = CheckEnd::failed;
    else {
        result.end = ended && failed && check.open() ? CheckEnd::not_judged : CheckEnd::undecided;
        if (!ended) result.text += "; not finished";
        else if (result.end == CheckEnd::not_judged)
            result.text += "; not decided when another check failed";
    }
    return result;
}

/// What a reader of the summary sees of both, equal or not.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> always_shown{
    {{"profile.engine", "engine"},
     {"profile.version", "version"},
     {"profile.model", "model"},
     {"profile.machine", "machine"},
     {"profile.workloads", "workloads"}}};

/// What differs between two definitions without any effect on how their defaults are measured, or
/// what the commands show.
constexpr std::array<std::string_view, 22> not_shown{
    "command",     "constraints[", "decision",      "earlier",    "file.data.",
    "file.flags.", "file.roles.",  "file.strategy", "knowledge[", "machine.devices",
    "min_gain",    "model",        "noise_cv",      "profile.",   "report_workloads.",
    "seed",        "space.",       "strategy",      "study",      "suggestions",
    "workloads.",  "file.seed"};

std::vector<GateReport::Row> rows_of(const Side& a, const Side& b) {
    const std::map<std::string, std::string> of_a = a.of->setup.definition();
    const std::map<std::string, std::string> of_b = b.of->setup.definition();
    const auto text = [](const std::map<std::string, std::string>& all, const std::string& path) {
        const auto found = all.find(path);
        return found == all.end() ? std::string() : found->second;
    };
    std::vector<GateReport::Row> result;
    for (const auto& [path, what] : always_shown) {
        GateReport::Row row{std::string(what), text(of_a, std::string(path)),
                            text(of_b, std::string(path))};
        if (!row.a.empty() || !row.b.empty()) result.push_back(std::move(row));
    }
    std::set<std::string> paths;
    for (const auto* each : {&of_a, &of_b})
        for (const auto& entry : *each) paths.insert(entry.first);
    for (const std::string& path : paths) {
        const bool shown = std::none_of(not_shown.begin(), not_shown.end(),
                                        [&](const auto& one) { return path.starts_with(one); }) ||
                           path == "model.facts";
        if (shown && text(of_a, path) != text(of_b, path))
            result.push_back(
                {path.starts_with(of_later_versions) ? path.substr(of_later_versions.size()) : path,
                 text(of_a, path), text(of_b, path)});
    }
    return result;
}

}  // namespace

std::string GoalCheck::text() const {
    if (!why_none.empty()) return why_none;
    if (comparison.pairs() == 0) return "not measured";
    const Gain gain = comparison.gain();
    if (!gain.has_interval()) return percent(gain.value) + " (1 pair)";
    return fmt::format("{} (95 % interval {} to {}, {} pairs)", percent(gain.value),
                       percent(gain.low), percent(gain.high), comparison.pairs());
}

std::vector<GoalCheck> goal_checks(const CompareArguments& arguments, const Side& a,
                                   const Side& b) {
    std::vector<std::pair<Goal, std::string>> all;
    for (const Goal& goal : a.of->setup.problem->objective.goals)
        for (const std::string& workload : workloads_of(goal, a))
            all.emplace_back(
                Goal{MetricKey{MetricKey::of(goal.metric).name, workload}.text(), goal.direction},
                workload);
    const double error = 0.05 / static_cast<double>(all.size());
    const Comparison none({arguments.margin, std::min<std::size_t>(3, arguments.pairs),
                           arguments.pairs, Comparison::Question::not_worse, error});
    std::vector<GoalCheck> result;
    for (auto& [goal, workload] : all) {
        GoalCheck& check = result.emplace_back(GoalCheck{goal, workload, none});
        for (std::size_t i = 0; i < measured_pairs(a, b) && check.open(); ++i) {
            const auto figure = [&](const Side& side) {
                const auto found = side.measured[i]->metrics.find(check.goal.metric);
                const bool positive =
                    found != side.measured[i]->metrics.end() && found->second.value > 0;
                if (!positive)
                    check.why_none = fmt::format("a result of {} has no {} above 0", side.name,
                                                 check.goal.metric);
                return positive ? found->second.value : 0;
            };
            const double of_a = figure(a);
            const double of_b = figure(b);
            if (!check.why_none.empty()) break;
            check.a.push_back(of_a);
            check.b.push_back(of_b);
            check.comparison.add(std::log1p(check.goal.gain(of_b, of_a)));
        }
    }
    return result;
}

bool gate_open(const std::vector<GoalCheck>& goals) {
    return std::none_of(goals.begin(), goals.end(),
                        [](const GoalCheck& one) { return one.worse(); }) &&
           std::any_of(goals.begin(), goals.end(), [](const GoalCheck& one) { return one.open(); });
}

Ending gate_ending(const std::vector<GoalCheck>& goals, const CompareArguments& arguments,
                   const Side& a, const Side& b) {
    if (auto work = unequal_work(a, b)) return *work;
    const std::string margin = fmt::format("{:g} %", arguments.margin * 100);
    std::string worse;
    std::string open;
    std::string broken;
    const auto add = [](std::string& list, const GateCheck& check) {
        list += (list.empty() ? "" : "; ") + check.name +
                (check.workload.empty() ? "" : " on " + check.workload) + ": " + check.text;
    };
    for (const GoalCheck& goal : goals) {
        const GateCheck check = check_of(goal, a, true, false);
        if (check.end == CheckEnd::failed) add(worse, check);
        if (check.end == CheckEnd::undecided) add(open, check);
    }
    for (const LimitCheck& limit : limit_checks(a, b))
        if (const GateCheck check = check_of(limit, a, b, true); check.end == CheckEnd::failed)
            add(broken, check);
    if (!worse.empty())
        return {"worse",
                fmt::format("B fails: it is worse than A by more than {}: {}", margin, worse),
                answer_is_no};
    if (!broken.empty())
        return {"b_breaks_limit", "B fails: it breaks a limit that A keeps: " + broken,
                answer_is_no};
    if (!open.empty())
        return {"undecided",
                fmt::format("Undecided: {}; more pairs, or a margin above {}, would tell", open,
                            margin),
                undecided};
    std::string all;
    for (const GoalCheck& goal : goals) add(all, check_of(goal, a, true, false));
    return {"not_worse", fmt::format("B passes: it is not worse than A by {}: {}", margin, all),
            done};
}

GateReport gate_report(const std::vector<GoalCheck>& goals, const CompareArguments& arguments,
                       const Side& a, const Side& b, const std::optional<Ending>& ending) {
    const bool b_fails = ending && ending->word == "b_fails";
    const bool none =
        ending && (b_fails || ending->word == "a_fails" || ending->word == "unreliable");
    const bool failed = ending && ending->code == answer_is_no;
    GateReport report;
    report.study = a.of->setup.file.name;
    report.headline =
        ending ? ending->text : fmt::format("Not finished: {} pairs so far.", measured_pairs(a, b));
    report.end = failed                           ? CheckEnd::failed
                 : ending && ending->code == done ? CheckEnd::passed
                                                  : CheckEnd::undecided;
    GateCheck measurable{"both are measured", "",
                         !none     ? CheckEnd::passed
                         : b_fails ? CheckEnd::failed
                                   : CheckEnd::undecided};
    measurable.text =
        none ? ending->text
             : fmt::format("A {} times, B {} times", a.measured.size(), b.measured.size());
    if (!ending) measurable.end = CheckEnd::undecided;
    if (none && ending->word != "unreliable") measurable.log = (b_fails ? b : a).log_lines;
    report.checks.push_back(std::move(measurable));
    for (const GoalCheck& goal : goals)
        report.checks.push_back(check_of(goal, a, ending.has_value(), failed));
    for (const LimitCheck& limit : limit_checks(a, b))
        report.checks.push_back(check_of(limit, a, b, ending.has_value()));
    if (none)
        for (std::size_t i = 1; i < report.checks.size(); ++i) {
            report.checks[i].end = CheckEnd::not_judged;
            report.checks[i].text = "not judged, as the measurements do not serve";
        }
    report.a_command = a.of->setup.advice(a.configuration);
    report.b_command = b.of->setup.advice(b.configuration);
    report.rows = rows_of(a, b);
    report.margin = arguments.margin;
    report.seconds = a.seconds + b.seconds;
    return report;
}

void write_gate(const std::filesystem::path& folder, const GateReport& report) {
    write_file(folder / "gate.xml", junit_xml(report, secrets()));
    write_file(folder / "gate.md", gate_markdown(report, secrets()));
}

}  // namespace autotune
