// SPDX-License-Identifier: Apache-2.0
// A against B: two studies' defaults, or a study's default and one changed configuration of it;
// with `--gate`: may the candidate B take the place of the baseline A?
#include "commands.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "base/probability.hpp"
#include "base/text.hpp"
#include "report/comparison.hpp"
#include "results/compared_runs.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "study/comparison.hpp"
#include "trial/comparable_figures.hpp"
#include "trial/metric_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace autotune {

namespace {

/// One of the two that are compared: the default of a study, with its journal.
struct Side {
    const char* name;
    StudyArguments arguments{};
    fs::path folder{};
    StudySetup setup{};
    RunHooks hooks{};
    std::optional<SqliteJournal> journal{};
    std::unique_ptr<Study> study{};
    Configuration configuration{};
    /// Metrics that each measurement must have, above 0; the leading goal's first.
    std::vector<std::string> needed{};
    std::size_t first_here = 0;  ///< number of the first trial of this process

    // What it has measured.
    std::vector<const Measurement*> measured{};  ///< usable, in the order of measuring
    std::vector<double> values{};                ///< the first of `needed` in each of them
    std::size_t failures = 0,
                unreliable = 0;  ///< of this process: what caused earlier ones may be mended
    std::string why_failed{}, why_unreliable{};
    std::vector<std::string> log_lines{};          ///< of the failure in `why_failed`
    std::map<std::string, WorkLengths> lengths{};  ///< of the requests, by workload
    double seconds = 0;                            ///< that all its trials took

    /// False: the journal cannot be opened; standard error says why.
    bool open(const CompareArguments& compared);
    void look();
    /// Empty: it is usable.
    [[nodiscard]] std::string why_unusable(const Measurement& measurement) const;
    /// One measurement more, of a fresh start. False: the user stopped it.
    /// `seed`: of the load, the same for both of a pair.
    bool measure(std::size_t pair, std::uint64_t seed, const std::stop_token& stop);
};

/// How a comparison ended, for a person and for a program.
struct Ending {
    /// a name of `Comparison::verdicts`, or b_fails, a_fails, b_breaks_limit, unreliable
    std::string word;
    std::string text;
    ExitCode code = done;
};

constexpr std::size_t most_failures = 2;  ///< of its own, of one side
constexpr std::size_t most_unreliable =
    3;  ///< unsound measurements, or failures that were not its own

bool Side::open(const CompareArguments& compared) {
    if (!compared.quiet)
        hooks.say = [this](const std::string& line) {
            put_text(stderr, std::string(name) + ": " + line + "\n");
        };
    StudyFile file = arguments.load();
    refuse(missing_for(file));
    if (file.starts_processes())
        hooks.watchdog = watchdog_for(file.processes().stop_within_seconds);
    setup = set_up(std::move(file), folder, hooks);
    refuse_flags(setup, folder);
    if (!setup.problem->replicates_inform)
        throw UsageError(
            arguments.study.string() +
            ": its evaluator gives the same answer every time; there is nothing to compare");
    journal = open_journal(folder, setup, false);
    if (!journal) return false;
    if (setup.file.starts_processes()) end_what_was_left(setup);
    study = std::make_unique<Study>(*setup.problem, *setup.strategy, *journal,
                                    Study::Options{setup.file.seed});
    first_here = study->trials().size();
    configuration = setup.problem->space.default_configuration();
    for (const Goal& goal : setup.problem->objective.goals)
        if (needed.empty() || compared.gate) needed.push_back(goal.metric);
    look();
    return true;
}

void Side::look() {
    values.clear();
    measured.clear();
    log_lines.clear();
    lengths.clear();
    failures = unreliable = 0;
    seconds = 0;
    const auto here = [&](const Trial& trial) { return trial.id >= first_here ? 1U : 0U; };
    for (const Trial& trial : study->trials()) {
        if (trial.configuration != configuration) continue;
        seconds += trial.cost_seconds();
        if (const Failure* failure = trial.failure()) {
            const bool own = teaches(failure->kind);
            (own ? failures : unreliable) += here(trial);
            (own ? why_failed : why_unreliable) =
                fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
            if (own) log_lines = failure->log_lines;
        }
        const Measurement* measurement = trial.measurement();
        if (measurement == nullptr) continue;
        if (std::string why = why_unusable(*measurement); !why.empty()) {
            unreliable += here(trial);
            why_unreliable = std::move(why);
            continue;
        }
        measured.push_back(measurement);
        values.push_back(measurement->metrics.find(needed.front())->second.value);
        WorkLengths::add(lengths, measurement->metrics);
    }
}

std::string Side::why_unusable(const Measurement& measurement) const {
    for (const std::string& metric : needed) {
        const auto* found = entry_in(measurement.metrics, metric);
        if (found == nullptr) return "the result has no " + metric;
        if (!(found->value > 0)) return metric + " is not above 0, and ratios are compared";
    }
    return setup.problem->decision.believes(measurement) ? "" : "the audit refuses it";
}

bool Side::measure(std::size_t pair, std::uint64_t seed, const std::stop_token& stop) {
    const auto open = study->open_trial(configuration);
    const std::uint64_t id =
        open ? *open : study->propose(configuration, fmt::format("pair {}", pair + 1)).id;
    study->start(id);
    const StudySetup fresh = set_up(arguments.load(), folder, hooks);  // its engine ends with it
    Outcome outcome = fresh.evaluator->evaluate(configuration, {id, seed, "", stop});
    const auto* failure = std::get_if<Failure>(&outcome);
    if (stop.stop_requested() && failure != nullptr && failure->kind == FailureKind::cancelled)
        return false;
    study->tell(id, std::move(outcome));
    look();
    return true;
}

/// Why no further pair can be measured; nothing: it can.
std::optional<Ending> ended_early(const Side& a, const Side& b) {
    if (a.failures >= most_failures)
        return Ending{"a_fails", "A fails, so there is nothing to compare with: " + a.why_failed,
                      environment_error};
    if (b.failures >= most_failures)
        return Ending{"b_fails", "B fails: " + b.why_failed, answer_is_no};
    for (const Side* side : {&a, &b})
        if (side->unreliable >= most_unreliable)
            return Ending{"unreliable",
                          fmt::format("the measurements of {} cannot be relied on: {}", side->name,
                                      side->why_unreliable),
                          environment_error};
    return std::nullopt;
}

/// Where the lengths of both sides' requests differ beyond noise, and the goal depends on them: no
/// figures can be compared. Nothing: they do not.
std::optional<Ending> length_mismatch(const Side& a, const Side& b) {
    const std::string& metric = a.setup.problem->objective.leading().metric;
    for (const auto& [workload, of_b] : b.lengths) {
        const auto* found = entry_in(a.lengths, workload);
        if (found == nullptr) continue;
        const bool says_nothing = share_of_equal_work(metric, of_b, *found) == 1.0 &&
                                  share_of_equal_work(metric, *found, of_b) == 1.0;
        if (says_nothing) continue;  // the goal does not depend on lengths
        const WorkLengths& of_a = *found;
        const double all = (of_a.input.tokens > 0 ? of_a.input.mean() : 0) + of_a.output.mean();
        for (const bool output : {true, false}) {
            const RequestLength& mine = output ? of_b.output : of_b.input;
            const RequestLength& of_a_length = output ? of_a.output : of_a.input;
            if (of_a_length.tokens > 0 &&
                other_length(mine, of_a_length, of_a_length.mean() / all, normal_95))
                return Ending{
                    "unreliable",
                    fmt::format("A and B did not do the same work: B has {} {} tokens a request{}, "
                                "A has {}. Fix the lengths "
                                "(`ignore_eos: true`)",
                                short_number_text(mine.mean()), output ? "output" : "input",
                                workload.empty() ? "" : " on " + workload,
                                short_number_text(of_a_length.mean())),
                    environment_error};
        }
    }
    return std::nullopt;
}

/// Throws UsageError unless objective, limits and workloads are the same, by their values: the same
/// data in another file is the same workload.
void check_alike(const StudySetup& a, const StudySetup& b) {
    std::map<std::string, std::array<std::string, 2>> all;
    for (const StudySetup* side : {&a, &b})
        for (const auto& [path, text] : side->definition())
            if ((path.starts_with("objective") || path.starts_with("workloads.") ||
                 path.starts_with(file_paths + "data.")) &&
                !path.ends_with(".dataset.path"))  // two checkouts have data in two folders
                all.try_emplace(path, std::array<std::string, 2>{"absent", "absent"})
                    .first->second[side == &a ? 0 : 1] = text;
    for (const auto& [path, texts] : all)
        if (texts[0] != texts[1])
            throw UsageError(
                fmt::format("they cannot be compared: {} of A is {}, of B {}",
                            path.substr(path.starts_with(file_paths) ? file_paths.size() : 0),
                            texts[0], texts[1]));
}

/// A folder that holds the trials of another comparison would pair old measurements with new ones.
/// Throws UsageError.
void check_folder(const fs::path& folder, const Side& a, const Side& b) {
    bool others = a.values.size() > b.values.size() + 1 || b.values.size() > a.values.size() + 1;
    for (const Side* side : {&a, &b})
        for (const Trial& trial : side->study->trials())
            others = others || trial.configuration != side->configuration;
    if (others)
        throw UsageError(
            folder.string() +
            " holds the trials of another comparison; give this one a --directory of its own");
}

/// `+3.1 % (95 % interval 1 % to 5 %, 4 pairs)`.
std::string compared_text(const Comparison& comparison) {
    const Gain gain = comparison.gain();
    if (comparison.pairs() == 0) return "not measured";
    if (!gain.has_interval()) return percent(gain.value) + " (1 pair)";
    return fmt::format("{} (95 % interval {} to {}, {} pairs)", percent(gain.value),
                       percent(gain.low), percent(gain.high), comparison.pairs());
}

using CheckEnd = GateCheck::End;
using PairVerdict = Comparison::Verdict;

/// A goal on one workload, by the pairs in which both sides were measured.
struct GoalCheck {
    Goal goal;  ///< its metric is the key of the figure: `total_tokens_per_second@chat`
    std::string workload{};  ///< for people; empty: the figure is of all
    Comparison comparison;
    std::string why_none{};  ///< why it cannot be compared; empty: it can
    std::vector<double> a{}, b{};

    /// Whether another pair may decide it.
    [[nodiscard]] bool open() const { return why_none.empty() && comparison.open(); }
    [[nodiscard]] PairVerdict verdict() const {
        return why_none.empty() ? comparison.verdict() : PairVerdict::undecided;
    }
};

/// The workload of a check: its own, else the only one of the study.
std::string shown_workload(const std::string& workload, const Side& side) {
    const std::vector<Workload>& all = side.setup.file.workloads;
    return workload.empty() && all.size() == 1 ? all.front().name : workload;
}

/// The workloads that a goal has figures of: by the first measurement, before it by the study.
std::vector<std::string> workloads_of(const Goal& goal, const Side& a) {
    if (const std::string_view own = MetricKey::of(goal.metric).workload; !own.empty())
        return {std::string(own)};
    std::vector<std::string> result;
    if (!a.measured.empty()) {
        for (const auto& [workload, figure] : figures_of(a.measured.front()->metrics, goal.metric))
            if (!workload.empty()) result.emplace_back(workload);
    } else if (a.setup.file.workloads.size() > 1)
        for (const Workload& workload : a.setup.file.workloads) result.push_back(workload.name);
    return result.empty() ? std::vector<std::string>{""} : result;
}

std::size_t measured_pairs(const Side& a, const Side& b) {
    return std::min(a.measured.size(), b.measured.size());
}

/// What is compared: the leading goal; of a gate each goal on each workload, a test of
/// non-inferiority (`Comparison::Question::not_worse`), which takes no more pairs once it is
/// decided. B passes where all pass and fails where one fails. The intervals of k checks hold
/// together with 95 % (each misses with 5 % / k, Bonferroni). So a B that loses the margin or more
/// in any check passes with at most 2.5 %, and one that loses it in none fails with at most 2.5 %.
std::vector<GoalCheck> goal_checks(const CompareArguments& arguments, const Side& a,
                                   const Side& b) {
    const bool gate = arguments.gate;
    const Objective& objective = a.setup.problem->objective;
    std::vector<std::pair<Goal, std::string>> all;
    if (!gate) all.emplace_back(objective.leading(), "");
    else
        for (const Goal& goal : objective.goals)
            for (const std::string& workload : workloads_of(goal, a))
                all.emplace_back(Goal{MetricKey{MetricKey::of(goal.metric).name, workload}.text(),
                                      goal.direction},
                                 workload);
    const Comparison none(
        {arguments.margin, std::min<std::size_t>(3, arguments.pairs), arguments.pairs,
         gate ? Comparison::Question::not_worse : Comparison::Question::which_is_better,
         0.05 / double(all.size())});
    std::vector<GoalCheck> result;
    for (auto& [goal, workload] : all) {
        GoalCheck& check = result.emplace_back(GoalCheck{goal, workload, none});
        for (std::size_t i = 0; i < measured_pairs(a, b) && (!gate || check.open()); ++i) {
            for (const Side* side : {&a, &b}) {
                const Metrics& metrics = side->measured[i]->metrics;
                const auto* found = entry_in(metrics, check.goal.metric);
                if (found == nullptr || !(found->value > 0))
                    check.why_none = fmt::format("a result of {} has no {} above 0", side->name,
                                                 check.goal.metric);
                else (side == &a ? check.a : check.b).push_back(found->value);
            }
            if (!check.why_none.empty()) break;
            check.comparison.add(std::log1p(check.goal.gain(check.b.back(), check.a.back())));
        }
    }
    return result;
}

/// One check for each limit and workload: whether B breaks it in half of its measurements or more,
/// and A does not.
std::vector<GateCheck> limit_checks(const Side& a, const Side& b, bool ended) {
    std::vector<GateCheck> result;
    for (const Limit& limit : a.setup.problem->objective.limits) {
        std::set<std::string> workloads;
        for (const Side* side : {&a, &b})
            for (const Measurement* one : side->measured)
                for (const auto& [workload, figure] : limit.figures(one->metrics))
                    workloads.insert(workload);
        if (workloads.size() > 1) workloads.erase("");  // a mean of the others
        if (workloads.empty()) workloads.insert("");
        for (const std::string& workload : workloads) {
            const std::string key = MetricKey{limit.metric, workload}.text();
            std::string figures;
            const auto broken = [&](const Side& side) {
                std::size_t count = 0;
                figures.clear();
                for (const Measurement* one : side.measured) {
                    const auto* found = entry_in(one->metrics, key);
                    const bool is_there = found != nullptr;
                    count += is_there && limit.keeps(found->value) ? 0 : 1;
                    figures += (figures.empty() ? "; B has " : ", ") +
                               (is_there ? figure_text(limit.metric, found->value) : "none");
                }
                return count;
            };
            const auto mostly = [](std::size_t count, const Side& side) {
                return count > 0 && 2 * count >= side.measured.size();
            };
            const std::size_t of_a = broken(a), of_b = broken(b);
            result.push_back(
                {"limit " + limit.readable(), shown_workload(workload, a),
                 !ended || b.measured.empty() ? CheckEnd::undecided
                 : !mostly(of_b, b)           ? CheckEnd::passed
                 : mostly(of_a, a)            ? CheckEnd::not_judged
                                              : CheckEnd::failed,
                 fmt::format("B breaks it in {} of {} measurements, A in {} of {}{}", of_b,
                             b.measured.size(), of_a, a.measured.size(), figures)});
        }
    }
    return result;
}

GateCheck check_of(const GoalCheck& check, const Side& a) {
    const PairVerdict verdict = check.verdict();
    GateCheck result{check.goal.direction == Direction::maximize ? "maximize " : "minimize ",
                     shown_workload(check.workload, a),
                     verdict == PairVerdict::worse       ? CheckEnd::failed
                     : verdict == PairVerdict::undecided ? CheckEnd::undecided
                                                         : CheckEnd::passed,
                     check.why_none.empty() ? compared_text(check.comparison) : check.why_none};
    result.name += MetricKey::of(check.goal.metric).name;
    for (const double value : check.a) result.a.push_back(figure_text(check.goal.metric, value));
    for (const double value : check.b) result.b.push_back(figure_text(check.goal.metric, value));
    return result;
}

/// What all checks come to.
Ending ending_of(const std::vector<GoalCheck>& goals, const CompareArguments& arguments,
                 const Side& a, const Side& b) {
    const auto listed = [](const std::vector<GateCheck>& checks, CheckEnd end) {
        std::string list;
        for (const GateCheck& check : checks)
            if (check.end == end)
                list += (list.empty() ? "" : "; ") + check.name +
                        (check.workload.empty() ? "" : " on " + check.workload) + ": " + check.text;
        return list;
    };
    std::vector<GateCheck> checks;
    for (const GoalCheck& goal : goals) checks.push_back(check_of(goal, a));
    if (const std::string broken = listed(limit_checks(a, b, true), CheckEnd::failed);
        !broken.empty())
        return {"b_breaks_limit", "B breaks a limit that A keeps: " + broken, answer_is_no};
    if (const std::string worse = listed(checks, CheckEnd::failed); !worse.empty())
        return {"worse", "B is worse: " + worse, answer_is_no};
    if (const std::string open = listed(checks, CheckEnd::undecided); !open.empty())
        return {"undecided", "Undecided: " + open + "; more pairs would tell", undecided};
    const PairVerdict verdict = goals.front().verdict();
    const std::string text = verdict == PairVerdict::better ? "B is better"
                             : verdict == PairVerdict::same
                                 ? "A and B are the same"
                                 : fmt::format("B is not worse by {:g} %", arguments.margin * 100);
    return {std::string(name_in(Comparison::verdicts, verdict)),
            text + ": " + listed(checks, CheckEnd::passed), done};
}

/// `ending`: nothing while it is measured.
GateReport gate_report(const std::vector<GoalCheck>& goals, const Side& a, const Side& b,
                       const std::optional<Ending>& ending) {
    const bool b_fails = ending && ending->word == "b_fails";
    const bool none =
        ending && (b_fails || ending->word == "a_fails" || ending->word == "unreliable");
    GateReport report;
    report.study = a.setup.file.name;
    report.headline =
        ending ? ending->text : fmt::format("Not finished: {} pairs so far.", measured_pairs(a, b));
    report.end = !ending                        ? CheckEnd::undecided
                 : ending->code == answer_is_no ? CheckEnd::failed
                 : ending->code == done         ? CheckEnd::passed
                                                : CheckEnd::undecided;
    report.checks.push_back(
        {"both are measured", "",
         b_fails           ? CheckEnd::failed
         : !ending || none ? CheckEnd::undecided
                           : CheckEnd::passed,
         none ? ending->text
              : fmt::format("A {} times, B {} times", a.measured.size(), b.measured.size()),
         none ? (b_fails ? b : a).log_lines : std::vector<std::string>{}});
    for (const GoalCheck& goal : goals) {
        report.checks.push_back(check_of(goal, a));
        if (report.end == CheckEnd::failed && goal.open())
            report.checks.back().end = CheckEnd::not_judged;  // another check failed before
    }
    for (GateCheck& check : limit_checks(a, b, ending.has_value()))
        report.checks.push_back(std::move(check));
    if (none)
        for (std::size_t i = 1; i < report.checks.size(); ++i) {
            report.checks[i].end = CheckEnd::not_judged;
            report.checks[i].text = "not judged, as the measurements do not serve";
        }
    report.a_command = a.setup.advice(a.configuration);
    report.b_command = b.setup.advice(b.configuration);
    report.seconds = a.seconds + b.seconds;
    return report;
}

OrderedJson interval_json(const Gain& gain) {
    return {{"value", gain.value}, {"low", gain.low}, {"high", gain.high}};  // infinite: null
}

/// B of `--set` as a study of its own that starts from A: written into B's folder.
fs::path study_with(const CompareArguments& arguments, const fs::path& folder,
                    const std::string& name) {
    std::string text = "use: " + OrderedJson(fs::absolute(arguments.study).string()).dump() +
                       "\nstudy: " + OrderedJson(name + " with other flags").dump() + "\nspace:\n";
    for (const std::string& setting : arguments.settings) {
        const auto equals = setting.find('=');
        if (equals == npos)
            throw UsageError("--set: NAME=VALUE is wanted, such as max_num_seqs=64; got '" +
                             setting + "'");
        const Value value = value_of(setting.substr(equals + 1));
        const auto* words = std::get_if<std::string>(&value);
        text += "  " + OrderedJson(setting.substr(0, equals)).dump() + ": " +
                (words != nullptr ? OrderedJson(*words).dump() : text_of(value)) + "\n";
    }
    fs::create_directories(folder);
    write_file(folder / "study.yaml", text);
    return folder / "study.yaml";
}

/// What is measured until it is known: which of both is better, or whether B passes.
struct Asked {
    const CompareArguments& arguments;
    const Side& a;
    const Side& b;
    fs::path folder;

    [[nodiscard]] std::vector<GoalCheck> goals() const { return goal_checks(arguments, a, b); }
    [[nodiscard]] bool open() const {
        const std::vector<GoalCheck> all = goals();
        return none_of(all,
                       [](const GoalCheck& one) { return one.verdict() == PairVerdict::worse; }) &&
               any_of(all, [](const GoalCheck& one) { return one.open(); });
    }
    [[nodiscard]] Ending ending() const {
        if (auto work = length_mismatch(a, b)) return *work;
        return ending_of(goals(), arguments, a, b);
    }
    /// A gate's files say what is known, whenever this process ends.
    void write(const std::optional<Ending>& ending) const {
        if (!arguments.gate) return;
        const GateReport report = gate_report(goals(), a, b, ending);
        write_file(folder / "gate.xml", junit_xml(report, secrets()));
        write_file(folder / "gate.md", gate_markdown(report, secrets()));
    }
    void print(const Ending& ending) const {
        if (arguments.json) return print_json(ending);
        put(stdout, "{}{}\n", ending.text, ending.text.ends_with('.') ? "" : ".");
        if (arguments.gate)
            put(stdout, "summary: {}\nJUnit:   {}\n", (folder / "gate.md").string(),
                (folder / "gate.xml").string());
    }

private:
    void print_json(const Ending& ending) const {
        OrderedJson result{{"verdict", ending.word}, {"text", ending.text}};
        for (const GoalCheck& goal : goals())
            result["goals"].push_back({{"metric", goal.goal.metric},
                                       {"verdict", name_in(Comparison::verdicts, goal.verdict())},
                                       {"pairs", goal.comparison.pairs()},
                                       {"gain", interval_json(goal.comparison.gain())}});
        for (const Side* side : {&a, &b})
            result[side == &a ? "a" : "b"] = {
                {"command", side->setup.command_text(side->configuration)},
                {"values", side->values}};
        put_json(result);
    }
};

int compare(const CompareArguments& arguments, StopSignals& signals) {
    const fs::path folder = arguments.directory.value_or("comparison");
    Side a{.name = "A", .folder = folder / "a"};
    Side b{.name = "B", .folder = folder / "b"};
    a.arguments.study = arguments.study;
    if (!a.open(arguments)) return environment_error;
    b.arguments.study =
        arguments.other ? *arguments.other : study_with(arguments, b.folder, a.setup.file.name);
    if (!b.open(arguments)) return environment_error;
    check_alike(a.setup, b.setup);
    const std::string a_command = a.setup.command_text(a.configuration);
    const std::string b_command = b.setup.command_text(b.configuration);
    if (!arguments.other && a_command == b_command)
        throw UsageError("--set changes nothing of the study's default: A and B are the same");
    if (!arguments.quiet) put_text(stderr, "A: " + a_command + "\nB: " + b_command);
    const Asked asked{arguments, a, b, folder};
    check_folder(folder, a, b);
    signals.prepared();
    std::optional<Ending> verdict;
    if (!asked.open())
        put(stderr, "decided by what {} holds; another --directory measures anew\n",
            folder.string());
    try {
        asked.write(std::nullopt);
        while (!(verdict = ended_early(a, b)) && asked.open()) {
            const std::size_t pair = measured_pairs(a, b);
            const std::size_t of_b = b.values.size();
            Side& next =
                (of_b == a.values.size() ? turn_of(a.setup.file.seed, pair, 2) > 0 : of_b == pair)
                    ? b
                    : a;
            if (!next.measure(pair, derive_seed(a.setup.file.seed, pair), signals.token())) {
                put(stdout,
                    "stopped; what was measured is kept in {}, the same command goes on there\n",
                    folder.string());
                return stopped;
            }
            asked.write(std::nullopt);
            if (arguments.quiet) continue;
            const std::size_t pairs = measured_pairs(a, b);
            if (pairs > pair) {
                const Goal& goal = a.setup.problem->objective.leading();
                put(stderr, "pair {}: A {}, B {} ({})\n", pairs,
                    figure_text(goal.metric, a.values[pair]),
                    figure_text(goal.metric, b.values[pair]),
                    percent(goal.gain(b.values[pair], a.values[pair])));
            } else if (next.values.size() == pair)
                put(stderr, "{} again: {}\n", next.name,
                    next.failures > 0 ? next.why_failed : next.why_unreliable);
        }
        if (!verdict) verdict = asked.ending();
        asked.write(verdict);
    } catch (const IoError& error) {
        complain("autotune: {}\nwhat was measured is kept in {}, the same command goes on there",
                 error.what(), folder.string());
        return environment_error;
    }
    asked.print(*verdict);
    return verdict->code;
}

std::vector<PublishedResult> results_of(const std::vector<fs::path>& files,
                                        const std::vector<Engine>& engines) {
    std::vector<PublishedResult> runs;
    std::set<std::string> contents;
    for (const fs::path& file : files) {
        const std::string content = read_file(file);
        if (!contents.insert(content).second)
            throw UsageError(file.string() + ": the same results are in another file of this side");
        for (PublishedResult& one :
             read_results(utf8_text(content, file.string()), file.string(), engines)) {
            one.index = runs.size();
            runs.push_back(std::move(one));
        }
    }
    return runs;
}

/// Results that somebody measured already, one or several runs of each side.
int compare_results(const CompareArguments& arguments) {
    const std::vector<Engine> engines = Catalogue::standard().engines();
    const std::string metric = metric_of_word(arguments.metric);
    const auto a = results_of(arguments.results, engines);
    const auto b = results_of(arguments.against, engines);
    const Goal goal{metric, less_is_better(metric) ? Direction::minimize : Direction::maximize};
    const ComparedRuns found = compare_runs(a, b, goal, arguments.margin);
    const std::string word(name_in(Comparison::verdicts, found.verdict));
    if (arguments.json) {
        OrderedJson json{{"verdict", word}, {"remarks", found.remarks}};
        for (const ComparedFigure& one : found.figures) {
            json["figures"].push_back({{"load", one.load},
                                       {"metric", one.metric},
                                       {"verdict", name_in(Comparison::verdicts, one.verdict)},
                                       {"gain", interval_json(one.gain)},
                                       {"a", one.a},
                                       {"b", one.b}});
            if (one.runs_needed) json["figures"].back()["runs_needed"] = *one.runs_needed;
        }
        put_json(json);
    } else {
        put(stdout, "{}\n",
            found.verdict == PairVerdict::better  ? "B is better."
            : found.verdict == PairVerdict::worse ? "B is worse."
            : found.verdict == PairVerdict::same
                ? fmt::format("B is the same, within {:g} %.", 100 * arguments.margin)
                : "Undecided.");
        put(stdout, "Gains of B over A, also of times: below zero B is worse.\n");
        std::string load;
        for (const ComparedFigure& one : found.figures) {
            if (one.load != load) put(stdout, "{}\n", load = one.load);
            put(stdout, "  {:36} {:9}  {}, {} of A, {} of B{}\n", one.metric,
                name_in(Comparison::verdicts, one.verdict),
                one.gain.has_interval()
                    ? fmt::format("{} (95 % interval {} to {})", percent(one.gain.value),
                                  percent(one.gain.low), percent(one.gain.high))
                    : percent(one.gain.value) + " (no interval without a second run)",
                counted_text(one.a.size(), "run"), counted_text(one.b.size(), "run"),
                one.runs_needed ? fmt::format("; {} runs of each would tell", *one.runs_needed)
                                : "");
        }
        put_each(stdout, "take care: ", found.remarks);
    }
    return found.verdict == PairVerdict::worse       ? answer_is_no
           : found.verdict == PairVerdict::undecided ? undecided
                                                     : done;
}

}  // namespace

int compare(const CompareArguments& arguments) {
    if (arguments.study.empty() != !arguments.results.empty())
        throw UsageError("wanted: studies, or --results FILE... --against FILE...");
    if (!arguments.results.empty()) return compare_results(arguments);
    if (arguments.settings.empty() == !arguments.other)
        throw UsageError(
            "compare wants two studies, or one and --set name=value for what B changes");
    StopSignals signals("the measurement that is running will be repeated by the next run", true);
    std::error_code unknown;
    if (arguments.gate)  // those of an earlier run would be taken for this one's
        for (const char* file : {"gate.xml", "gate.md"})
            fs::remove(arguments.directory.value_or("comparison") / file, unknown);
    return compare(arguments, signals);
}

}  // namespace autotune
