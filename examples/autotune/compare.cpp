// SPDX-License-Identifier: Apache-2.0
// A against B: two studies' defaults, or a study's default and one changed configuration of it.
#include "commands.hpp"
#include "compared_sides.hpp"
#include "gate.hpp"
#include "output.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "study/comparison.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

Ending verdict_of(const Comparison& comparison, const Side& a, const Side& b) {
    if (auto work = unequal_work(a, b)) return *work;
    if (b.mostly_broken() && !a.mostly_broken())
        return {"b_breaks_limit", "B breaks a limit that A keeps: " + b.why_broken, answer_is_no};
    const Gain gain = comparison.gain();
    const std::string figures =
        fmt::format("{} (95 % interval {} to {}, {} pairs)", percent(gain.value), percent(gain.low),
                    percent(gain.high), comparison.pairs());
    switch (comparison.verdict()) {
        case Comparison::Verdict::better: return {"better", "B is better: " + figures, done};
        case Comparison::Verdict::worse: return {"worse", "B is worse: " + figures, answer_is_no};
        case Comparison::Verdict::same: return {"same", "A and B are the same: " + figures, done};
        case Comparison::Verdict::not_worse:  // only a gate asks for it
        case Comparison::Verdict::undecided: break;
    }
    return {"undecided", "Undecided: " + figures + "; more pairs would tell", undecided};
}

/// By pairs, in the order in which both were measured.
Comparison compared(const CompareArguments& arguments, const Side& a, const Side& b) {
    Comparison comparison(
        {arguments.margin, std::min<std::size_t>(3, arguments.pairs), arguments.pairs});
    const Goal& goal = a.of->setup.problem->objective.leading();
    for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i)
        comparison.add(std::log1p(goal.gain(b.values[i], a.values[i])));
    return comparison;
}

/// `goals`: of a gate, else empty.
void print_comparison(const Ending& verdict, const Comparison& comparison,
                      const std::vector<GoalCheck>& goals, const Side& a, const Side& b) {
    const auto side = [](const Side& one) {
        return OrderedJson{{"command", one.of->setup.command_text(one.configuration)},
                           {"values", one.values}};
    };
    const auto gain = [](const Comparison& of) {
        const auto bound = [](double value) {
            return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
        };
        return OrderedJson{{"value", bound(of.gain().value)},
                           {"low", bound(of.gain().low)},
                           {"high", bound(of.gain().high)}};
    };
    OrderedJson result{
        {"verdict", verdict.word},  {"text", verdict.text}, {"pairs", comparison.pairs()},
        {"gain", gain(comparison)}, {"a", side(a)},         {"b", side(b)}};
    for (const GoalCheck& goal : goals)
        result["goals"].push_back(
            {{"metric", goal.goal.metric},
             {"verdict", name_in(Comparison::verdicts, goal.comparison.verdict())},
             {"pairs", goal.comparison.pairs()},
             {"gain", gain(goal.comparison)}});
    put_json(result);
}

/// Whether all settings are of parameters, and values, that the study knows.
bool study_knows(const StudySetup& setup, const std::vector<std::string>& settings) {
    try {
        const SearchSpace& space = setup.problem->space;
        const Assignment known = settings_of(setup.file, space, settings);
        return std::all_of(known.begin(), known.end(), [&](const auto& one) {
            return space.at(one.first).contains(one.second);
        });
    } catch (const SpaceError&) {
        return false;
    }
}

constexpr std::string_view written_here = "# written by `autotune compare`: ";

/// B as a study of its own that starts from A, for flags that A does not search: written into the
/// comparison's folder.
std::filesystem::path study_with(const CompareArguments& arguments,
                                 const std::filesystem::path& folder, const std::string& name) {
    std::string text = std::string(written_here) + "A with --set\nuse: " +
                       OrderedJson(std::filesystem::absolute(arguments.study).string()).dump() +
                       "\nstudy: " + OrderedJson(name + " with other flags").dump() + "\nspace:\n";
    for (const std::string& setting : arguments.settings) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos)
            throw UsageError("--set: NAME=VALUE is wanted, such as max_num_seqs=64; got '" +
                             setting + "'");
        const Value value = servetune::value_of(setting.substr(equals + 1));
        const auto* words = std::get_if<std::string>(&value);
        text += "  " + OrderedJson(setting.substr(0, equals)).dump() + ": " +
                (words != nullptr ? OrderedJson(*words).dump() : text_of(value)) + "\n";
    }
    std::filesystem::create_directories(folder);
    const std::filesystem::path file = folder / "b.yaml";
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(file, unknown)) &&
        !(std::filesystem::is_regular_file(file, unknown) &&
          read_file(file).starts_with(written_here)))
        throw UsageError(file.string() +
                         " is there already, and was not written by `autotune compare`; take "
                         "another --directory");
    write_file(file, text);
    return file;
}

/// What is measured until it is known: which of both is better, or whether B passes.
struct Asked {
    const CompareArguments& arguments;
    const Side& a;
    const Side& b;
    std::filesystem::path folder;

    [[nodiscard]] bool open() const {
        return arguments.gate ? gate_open(goal_checks(arguments, a, b))
                              : compared(arguments, a, b).open();
    }
    [[nodiscard]] Ending ending() const {
        return arguments.gate ? gate_ending(goal_checks(arguments, a, b), arguments, a, b)
                              : verdict_of(compared(arguments, a, b), a, b);
    }
    /// A gate's files say what is known, whenever this process ends.
    void write(const std::optional<Ending>& ending) const {
        if (arguments.gate)
            write_gate(folder, gate_report(goal_checks(arguments, a, b), arguments, a, b, ending));
    }
    void print(const Ending& ending) const {
        const std::vector<GoalCheck> goals =
            arguments.gate ? goal_checks(arguments, a, b) : std::vector<GoalCheck>{};
        if (arguments.json) return print_comparison(ending, compared(arguments, a, b), goals, a, b);
        put(stdout, "{}{}\n", ending.text, ending.text.ends_with('.') ? "" : ".");
        if (arguments.gate)
            put(stdout, "summary: {}\nJUnit:   {}\n", (folder / "gate.md").string(),
                (folder / "gate.xml").string());
    }
};

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
    if (by_journal && arguments.other &&
        !std::filesystem::exists(SqliteJournal::file_of(second.folder), unknown))
        return std::nullopt;
    if (arguments.other && !second.open(by_journal, arguments.quiet)) return environment_error;
    Side a{"A", &first, first.setup.problem->space.default_configuration()};
    Side b{"B", arguments.other ? &second : &first};
    if (arguments.other) {
        check_alike(first.setup, second.setup);
        b.configuration = second.setup.problem->space.default_configuration();
    } else {
        const SearchSpace& space = first.setup.problem->space;
        b.configuration = space.changed(a.configuration,
                                        settings_of(first.setup.file, space, arguments.settings));
        if (const auto violations = space.violations(b.configuration); !violations.empty())
            throw SpaceError(violations.front());
        if (a.configuration == b.configuration)
            throw UsageError("--set changes nothing of the study's default: A and B are the same");
    }
    for (Side* side : {&a, &b}) {
        for (const Goal& goal : side->of->setup.problem->objective.goals)
            if (side->needed.empty() || arguments.gate) side->needed.push_back(goal.metric);
        side->look();
    }
    const Asked asked{arguments, a, b, folder};
    if (by_journal && !ended_early(a, b) && asked.open()) return std::nullopt;
    for (Side* side : {&a, &b}) {
        if (!arguments.quiet)
            put(stderr, "{}: {}\n", side->name, side->of->setup.command_text(side->configuration));
    }
    if (first.setup.problem->objective.over == Objective::Over::worst)
        throw UsageError(
            "compare takes the mean of several workloads; leave out `over: worst`, or compare with "
            "a study of each workload");
    check_folder(folder, a, b);
    signals.prepared();
    std::optional<Ending> verdict;
    if (!asked.open())
        put(stderr, "decided by what {} holds; another --directory measures anew\n",
            folder.string());
    try {
        asked.write(std::nullopt);
        while (!(verdict = ended_early(a, b)) && asked.open()) {
            const std::size_t pair = std::min(a.values.size(), b.values.size());
            const bool both = a.values.size() == b.values.size();
            // A B, B A, A B: what changes evenly meanwhile favours neither.
            Side& next = (both ? pair % 2 == 0 : a.values.size() < b.values.size()) ? a : b;
            if (!next.measure(pair, derive_seed(first.setup.file.seed, pair), signals.token())) {
                put(stdout,
                    "stopped; what was measured is kept in {}, the same command goes on there\n",
                    folder.string());
                return stopped;
            }
            asked.write(std::nullopt);
            if (arguments.quiet) continue;
            const std::size_t pairs = std::min(a.values.size(), b.values.size());
            if (pairs > pair) {
                const Goal& goal = first.setup.problem->objective.leading();
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

}  // namespace

int compare(const CompareArguments& arguments) {
    if (arguments.settings.empty() == !arguments.other)
        throw UsageError(
            "compare wants two studies, or one and --set name=value for what B changes");
    StopSignals signals("the measurement that is running will be repeated by the next run", true);
    std::error_code unknown;
    if (arguments.gate)  // those of an earlier run would be taken for this one's
        for (const char* file : {"gate.xml", "gate.md"})
            std::filesystem::remove(arguments.directory.value_or("comparison") / file, unknown);
    if (std::filesystem::exists(
            SqliteJournal::file_of(arguments.directory.value_or("comparison") / "a"), unknown))
        if (const auto code = compare(arguments, signals, true)) return *code;
    return present(compare(arguments, signals, false));
}

}  // namespace autotune
