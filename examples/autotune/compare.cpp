// SPDX-License-Identifier: Apache-2.0
// A against B: two studies' defaults, or a study's default and one changed configuration of it.
#include "commands.hpp"
#include "measuring_here.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "servetune/detail/base/normal.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "study/comparison.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_failures = 2;    ///< of its own, of one side
constexpr std::size_t most_unreliable = 3;  ///< unsound measurements, or failures that were not its own

/// A study, its journal and what measures it.
struct Measured {
    StudyArguments arguments{};
    std::filesystem::path folder{};
    StudySetup setup{};
    RunHooks hooks{};
    std::optional<SqliteJournal> journal{};
    std::unique_ptr<Study> study{};
    std::size_t first_here = 0;  ///< number of the first trial of this process
    std::string measuring{};     ///< the side that is measured now: both may have a trial 0

    /// `quiet`: no lines while a trial runs. `by_journal`: nothing is measured, so the machine is
    /// the journal's. False: the journal cannot be opened; standard error says why.
    bool open(bool by_journal, bool quiet) {
        if (!quiet)
            hooks.say = [this](const std::string& line) { put_text(stderr, (measuring.empty() ? "" : measuring + ": ") + line + "\n"); };
        if (by_journal) arguments.directory = folder;
        StudyFile file = by_journal ? arguments.load_to_read() : arguments.load();
        if (by_journal && !file.said_twice.empty()) throw ParseError(file.said_twice.front());
        if (!by_journal)
            for (const auto& missing : {missing_models(file), missing_devices(file), missing_power(file), set_by_own_environment(file)})
                if (!missing.empty()) throw UsageError(missing.front());
        if (file.starts_processes()) hooks.watchdog = watchdog_for(file.processes().stop_within_seconds);
        setup = set_up(std::move(file), folder, hooks);
        if (!setup.problem->replicates_inform)
            throw UsageError(arguments.study.string() + ": its evaluator gives the same answer every time; there is nothing to compare");
        journal = open_journal(folder, setup, false);
        if (!journal) return false;
        if (setup.file.starts_processes()) end_what_was_left(setup);
        study = std::make_unique<Study>(*setup.problem, *setup.strategy, *journal, Study::Options{setup.file.seed});
        first_here = study->trials().size();
        return true;
    }
};

/// One of the two that are compared, and what is known of it.
struct Side {
    const char* name;
    Measured* of;
    Configuration configuration{};
    std::vector<double> values{};              ///< usable, in the order in which they were measured
    std::size_t failures = 0, unreliable = 0;  ///< of this process: what caused earlier ones may be mended
    std::size_t broken = 0;                    ///< measurements that break a limit
    std::string why_failed{}, why_unreliable{}, why_broken{};
    std::map<std::string, WorkLengths> lengths{};  ///< of the requests behind `values`, by workload

    void look() {
        values.clear();
        lengths.clear();
        failures = unreliable = broken = 0;
        const auto here = [&](const Trial& trial) { return trial.id >= of->first_here ? 1U : 0U; };
        const Objective& objective = of->setup.problem->objective;
        for (const Trial& trial : of->study->trials()) {
            if (trial.configuration != configuration) continue;
            if (const Failure* failure = trial.failure()) {
                (teaches(failure->kind) ? failures : unreliable) += here(trial);
                (teaches(failure->kind) ? why_failed : why_unreliable) =
                    fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
            }
            const Measurement* measurement = trial.measurement();
            if (measurement == nullptr) continue;
            const auto value = measurement->metrics.find(objective.leading().metric);
            const bool present = value != measurement->metrics.end();
            if (!present || !(value->second.value > 0) || !of->setup.problem->decision.believes(*measurement)) {
                unreliable += here(trial);
                why_unreliable = !present                     ? "the result has no " + objective.leading().metric
                                 : !(value->second.value > 0) ? objective.leading().metric + " is not above 0, and ratios are compared"
                                                              : "the audit refuses it";
                continue;
            }
            values.push_back(value->second.value);
            WorkLengths::add(lengths, measurement->metrics);
            for (const Limit& limit : objective.limits)
                if (const auto holds = limit.holds(measurement->metrics); holds != true) {
                    ++broken;
                    why_broken = holds ? limit.broken_text(measurement->metrics) : limit.unjudged_text();
                    break;
                }
        }
    }
    [[nodiscard]] bool mostly_broken() const { return broken > 0 && 2 * broken >= values.size(); }

    /// One measurement more, of a fresh start. False: the user stopped it.
    /// `seed`: of the load, the same for both of a pair.
    bool measure(std::size_t pair, std::uint64_t seed, const std::stop_token& stop) {
        const auto open = of->study->open_trial(configuration);
        const std::uint64_t id = open ? *open : of->study->propose(configuration, fmt::format("pair {}", pair + 1)).id;
        of->study->start(id);
        of->measuring = name;
        const StudySetup fresh = set_up(of->arguments.load(), of->folder, of->hooks);  // its engine ends with it
        Outcome outcome = fresh.evaluator->evaluate(configuration, {id, seed, "", stop});
        const auto* failure = std::get_if<Failure>(&outcome);
        if (stop.stop_requested() && failure != nullptr && failure->kind == FailureKind::cancelled) return false;
        of->study->tell(id, std::move(outcome));
        look();
        return true;
    }
};

/// How it ended, for a person and for a program.
struct Ending {
    std::string word;  ///< better, worse, same, undecided, b_fails, a_fails, b_breaks_limit, unreliable
    std::string text;
    ExitCode code = done;
};

std::optional<Ending> ended_early(const Side& a, const Side& b) {
    if (a.failures >= most_failures)
        return Ending{"a_fails", "A fails, so there is nothing to compare with: " + a.why_failed, environment_error};
    if (b.failures >= most_failures) return Ending{"b_fails", "B fails: " + b.why_failed, answer_is_no};
    for (const Side* side : {&a, &b})
        if (side->unreliable >= most_unreliable)
            return Ending{"unreliable", fmt::format("the measurements of {} cannot be relied on: {}", side->name, side->why_unreliable),
                          environment_error};
    return std::nullopt;
}

/// How the lengths of requests of both sides differ, beyond noise, where the goal depends on them;
/// empty: not at all.
std::string unequal_work(const Side& a, const Side& b) {
    const std::string& metric = a.of->setup.problem->objective.leading().metric;
    for (const auto& [workload, of_b] : b.lengths) {
        const auto found = a.lengths.find(workload);
        if (found == a.lengths.end()) continue;
        const bool says_nothing =
            share_of_equal_work(metric, of_b, found->second) == 1.0 && share_of_equal_work(metric, found->second, of_b) == 1.0;
        if (says_nothing) continue;  // the goal does not depend on lengths
        const WorkLengths& of_a = found->second;
        const double all = (of_a.input.tokens > 0 ? of_a.input.mean() : 0) + of_a.output.mean();
        for (const bool output : {true, false}) {
            const RequestLength& mine = output ? of_b.output : of_b.input;
            const RequestLength& usual = output ? of_a.output : of_a.input;
            if (usual.tokens > 0 && other_length(mine, usual, usual.mean() / all, normal_95))
                return fmt::format("B has {} {} tokens a request{}, A has {}", short_number_text(mine.mean()), output ? "output" : "input",
                                   workload.empty() ? "" : " on " + workload, short_number_text(usual.mean()));
        }
    }
    return "";
}

Ending verdict_of(const Comparison& comparison, const Side& a, const Side& b) {
    if (const std::string work = unequal_work(a, b); !work.empty())
        return {"unreliable", "A and B did not do the same work: " + work + ". Fix the lengths (`ignore_eos: true`)", environment_error};
    if (b.mostly_broken() && !a.mostly_broken()) return {"b_breaks_limit", "B breaks a limit that A keeps: " + b.why_broken, answer_is_no};
    const Gain gain = comparison.gain();
    const std::string figures = fmt::format("{} (95 % interval {} to {}, {} pairs)", percent(gain.value), percent(gain.low),
                                            percent(gain.high), comparison.pairs());
    switch (comparison.verdict()) {
        case Comparison::Verdict::better: return {"better", "B is better: " + figures, done};
        case Comparison::Verdict::worse: return {"worse", "B is worse: " + figures, answer_is_no};
        case Comparison::Verdict::same: return {"same", "A and B are the same: " + figures, done};
        case Comparison::Verdict::undecided: break;
    }
    return {"undecided", "Undecided: " + figures + "; more pairs would tell", undecided};
}

/// By pairs, in the order in which both were measured.
Comparison compared(const CompareArguments& arguments, const Side& a, const Side& b) {
    Comparison comparison({arguments.margin, std::min<std::size_t>(3, arguments.pairs), arguments.pairs});
    const Goal& goal = a.of->setup.problem->objective.leading();
    for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i)
        comparison.add(std::log1p(goal.gain(b.values[i], a.values[i])));
    return comparison;
}

/// Objective, limits and workloads, as the definitions of both studies say them.
void check_alike(const StudySetup& a, const StudySetup& b) {
    const auto measured = [](const StudySetup& setup) {
        std::map<std::string, std::string> all = setup.definition();
        std::erase_if(all,
                      [](const auto& entry) { return !entry.first.starts_with("objective") && !entry.first.starts_with("workloads."); });
        return all;
    };
    const auto of_a = measured(a);
    const auto of_b = measured(b);
    for (const auto* list : {&of_a, &of_b})
        for (const auto& [path, text] : *list) {
            const auto in_a = of_a.find(path);
            const auto in_b = of_b.find(path);
            if (in_a != of_a.end() && in_b != of_b.end() && in_a->second == in_b->second) continue;
            throw UsageError(fmt::format("they cannot be compared: {} of A is {}, of B {}", path,
                                         in_a == of_a.end() ? "absent" : in_a->second, in_b == of_b.end() ? "absent" : in_b->second));
        }
}

/// A folder that holds the trials of another comparison would pair old measurements with new ones.
void check_folder(const std::filesystem::path& folder, const Side& a, const Side& b) {
    bool others = a.values.size() > b.values.size() + 1 || b.values.size() > a.values.size() + 1;
    for (const Side* side : {&a, &b})
        for (const Trial& trial : side->of->study->trials())
            others = others || !((side->of == a.of && trial.configuration == a.configuration) ||
                                 (side->of == b.of && trial.configuration == b.configuration));
    if (others) throw UsageError(folder.string() + " holds the trials of another comparison; give this one a --directory of its own");
}

void print_comparison(const Ending& verdict, const Comparison& comparison, const Side& a, const Side& b) {
    const auto side = [](const Side& one) {
        return OrderedJson{{"command", one.of->setup.command(one.configuration).text()}, {"values", one.values}};
    };
    const Gain gain = comparison.gain();
    const auto bound = [](double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); };
    put_json(OrderedJson{{"verdict", verdict.word},
                         {"text", verdict.text},
                         {"pairs", comparison.pairs()},
                         {"gain", {{"value", bound(gain.value)}, {"low", bound(gain.low)}, {"high", bound(gain.high)}}},
                         {"a", side(a)},
                         {"b", side(b)}});
}

/// Whether all settings are of parameters, and values, that the study knows.
bool study_knows(const StudySetup& setup, const std::vector<std::string>& settings) {
    try {
        const SearchSpace& space = setup.problem->space;
        const Assignment known = settings_of(setup.file, space, settings);
        return std::all_of(known.begin(), known.end(), [&](const auto& one) { return space.at(one.first).contains(one.second); });
    } catch (const SpaceError&) {
        return false;
    }
}

constexpr std::string_view written_here = "# written by `autotune compare`: ";

/// B as a study of its own that starts from A, for flags that A does not search: written into the
/// comparison's folder.
std::filesystem::path study_with(const CompareArguments& arguments, const std::filesystem::path& folder, const std::string& name) {
    std::string text = std::string(written_here) +
                       "A with --set\nuse: " + OrderedJson(std::filesystem::absolute(arguments.study).string()).dump() +
                       "\nstudy: " + OrderedJson(name + " with other flags").dump() + "\nspace:\n";
    for (const std::string& setting : arguments.settings) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos) throw UsageError("--set wants name=value, got '" + setting + "'");
        const Value value = servetune::value_of(setting.substr(equals + 1));
        const auto* words = std::get_if<std::string>(&value);
        text += "  " + OrderedJson(setting.substr(0, equals)).dump() + ": " +
                (words != nullptr ? OrderedJson(*words).dump() : text_of(value)) + "\n";
    }
    std::filesystem::create_directories(folder);
    const std::filesystem::path file = folder / "b.yaml";
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(file, unknown)) &&
        !(std::filesystem::is_regular_file(file, unknown) && read_file(file).starts_with(written_here)))
        throw UsageError(file.string() + " is there already, and was not written by `autotune compare`; take another --directory");
    write_file(file, text);
    return file;
}

/// `by_journal`: by what the folder holds and on any machine; nothing where that does not decide.
std::optional<int> compare(CompareArguments arguments, StopSignals& signals, bool by_journal) {
    Measured first;
    Measured second;
    first.arguments.study = arguments.study;
    if (arguments.other) second.arguments.study = *arguments.other;
    const std::filesystem::path folder = arguments.directory.value_or("comparison");
    first.folder = folder / "a";
    second.folder = folder / "b";
    if (!first.open(by_journal, arguments.quiet)) return environment_error;
    if (!arguments.other && !study_knows(first.setup, arguments.settings)) {
        arguments.other = study_with(arguments, folder, first.setup.file.name);
        second.arguments.study = *arguments.other;
    }
    std::error_code unknown;
    if (by_journal && arguments.other && !std::filesystem::exists(SqliteJournal::file_of(second.folder), unknown)) return std::nullopt;
    if (arguments.other && !second.open(by_journal, arguments.quiet)) return environment_error;
    Side a{"A", &first, first.setup.problem->space.default_configuration()};
    Side b{"B", arguments.other ? &second : &first};
    if (arguments.other) {
        check_alike(first.setup, second.setup);
        b.configuration = second.setup.problem->space.default_configuration();
    } else {
        const SearchSpace& space = first.setup.problem->space;
        b.configuration = space.changed(a.configuration, settings_of(first.setup.file, space, arguments.settings));
        if (const auto violations = space.violations(b.configuration); !violations.empty()) throw SpaceError(violations.front());
        if (a.configuration == b.configuration) throw UsageError("--set changes nothing of the study's default: A and B are the same");
    }
    for (Side* side : {&a, &b}) side->look();
    if (by_journal && !ended_early(a, b) && compared(arguments, a, b).open()) return std::nullopt;
    for (Side* side : {&a, &b}) {
        if (!arguments.quiet) put(stderr, "{}: {}\n", side->name, side->of->setup.command(side->configuration).text());
    }
    if (first.setup.problem->objective.over == Objective::Over::worst)
        throw UsageError("compare takes the mean of several workloads; leave out `over: worst`, or compare with a study of each workload");
    check_folder(folder, a, b);
    signals.prepared();
    std::optional<Ending> verdict;
    if (!compared(arguments, a, b).open()) put(stderr, "decided by what {} holds; another --directory measures anew\n", folder.string());
    try {
        while (!(verdict = ended_early(a, b)) && compared(arguments, a, b).open()) {
            const std::size_t pair = std::min(a.values.size(), b.values.size());
            const bool both = a.values.size() == b.values.size();
            // A B, B A, A B: what changes evenly meanwhile favours neither.
            Side& next = (both ? pair % 2 == 0 : a.values.size() < b.values.size()) ? a : b;
            if (!next.measure(pair, derive_seed(first.setup.file.seed, pair), signals.token())) {
                put(stdout, "stopped; what was measured is kept in {}, the same command goes on there\n", folder.string());
                return stopped;
            }
            if (arguments.quiet) continue;
            const std::size_t pairs = std::min(a.values.size(), b.values.size());
            if (pairs > pair) {
                const Goal& goal = first.setup.problem->objective.leading();
                put(stderr, "pair {}: A {}, B {} ({})\n", pairs, figure_text(goal.metric, a.values[pair]),
                    figure_text(goal.metric, b.values[pair]), percent(goal.gain(b.values[pair], a.values[pair])));
            } else if (next.values.size() == pair)
                put(stderr, "{} again: {}\n", next.name, next.failures > 0 ? next.why_failed : next.why_unreliable);
        }
    } catch (const IoError& error) {
        complain("autotune: {}\nwhat was measured is kept in {}, the same command goes on there", error.what(), folder.string());
        return environment_error;
    }
    const Comparison comparison = compared(arguments, a, b);
    if (!verdict) verdict = verdict_of(comparison, a, b);
    if (arguments.json) print_comparison(*verdict, comparison, a, b);
    else put(stdout, "{}{}\n", verdict->text, verdict->text.ends_with('.') ? "" : ".");
    return verdict->code;
}

}  // namespace

int compare(const CompareArguments& arguments) {
    if (arguments.settings.empty() == !arguments.other)
        throw UsageError("compare wants two studies, or one and --set name=value for what B changes");
    StopSignals signals("the measurement that is running will be repeated by the next run", true);
    std::error_code unknown;
    if (std::filesystem::exists(SqliteJournal::file_of(arguments.directory.value_or("comparison") / "a"), unknown))
        if (const auto code = compare(arguments, signals, true)) return *code;
    return present(compare(arguments, signals, false));
}

}  // namespace autotune
