// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "live_page.hpp"
#include "observers.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "handover/kept_load_test.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/study_checks.hpp"
#include "servetune/workers.hpp"

#include <unistd.h>

#include <cmath>

namespace autotune {

namespace {

void print_conclusion(const Headline& headline, const Summary& summary, const fs::path& folder) {
    // Sentences are broken between words on a terminal; the command is not, so that it can be
    // copied.
    const std::size_t columns =
        isatty(STDOUT_FILENO) == 1 ? columns_of_terminal(STDOUT_FILENO) - 1 : npos;
    const auto sentence = [&](const std::string& text) {
        put_text(stdout, wrapped(printable_line(secrets()(text)), columns) + "\n");
    };
    sentence(headline.title + "." + (headline.reason.empty() ? "" : " " + headline.reason) +
             (headline.advice.empty() ? "" : " " + headline.advice));
    if (!headline.command.empty()) put_text(stdout, "\n  " + headline.command + "\n\n");
    if (const std::size_t front = summary.recommendation.front.size(); front > 0)
        put(stdout, "{} on the front of the goals, each with its command in the report\n", front);
    if (!headline.given_away.empty()) sentence(headline.given_away);
    put(stdout, "report: {}\n        {}\n", (folder / "report.md").string(),
        (folder / "report.html").string());
}

/// What a file holds; empty: it cannot be read.
std::string text_kept_in(const fs::path& file) {
    try {
        std::error_code unknown;
        return fs::is_regular_file(file, unknown) ? read_file(file) : "";
    } catch (const IoError&) {
        return "";
    }
}

/// Whether a run was stopped because its time was `over`, and not by the user; then the summary
/// says so.
bool ended_by_time(Summary& summary, const std::stop_token& user, StopReason over) {
    if (summary.reason != StopReason::stopped_by_user || user.stop_requested()) return false;
    summary.reason = over;
    summary.message = "the budget's time was over before the running trial was";
    return true;
}

/// What a run would do. Nothing is started or written.
int print_plan(const StudySetup& setup, const fs::path& folder) {
    refuse_flags(setup, folder);
    std::vector<std::string> warnings = warnings_of(setup, folder, true);
    for (std::string& missing : missing_images(setup)) warnings.push_back(std::move(missing));
    put_each(stdout, "knowledge: ", setup.knowledge);
    for (const std::string& one : warnings) put_text(stdout, "warning: " + one + "\n");
    const Plan plan = plan_of(setup, folder);
    const bool begun = plan.done > 0;
    put_text(stdout, plan.text() + "\n");
    put(stdout, "{} {}\n", begun ? "goes on in" : "writes into", folder.string());
    put_text(stdout, std::string("trial 0 ") + (begun ? "was: " : "would be: ") +
                         setup.advice(setup.problem->space.default_configuration()) + "\n");
    return done;
}

/// Whatever ends a run: engines end while who is told of it is there. The page only reads the rest.
struct EnginesEnd {
    StudySetup& setup;
    ~EnginesEnd() {
        setup.neighbours.clear();
        setup.evaluator.reset();
    }
};

/// The study with what the command line adds.
StudyFile study_to_run(const RunArguments& arguments) {
    StudyFile file = arguments.load();
    if (arguments.trials) file.budget.trials = *arguments.trials;
    if (arguments.seconds) file.budget.wall_clock_seconds = *arguments.seconds;
    if (file.budget_until) file.budget.until = next_time_of_day(*file.budget_until);
    add_earlier_studies(file, arguments.learn_from);
    add_suggestions(file, arguments.suggest);
    return file;
}

}  // namespace

int run(const RunArguments& arguments) {
    StopSignals signals("the trial that is running will be repeated by the next run", true);
    StudyFile file = study_to_run(arguments);
    if (file.measures()) file.budget.same_failures = 3;  // the default and two others
    refuse(missing_for(file));
    Budget budget = file.budget;
    const fs::path folder = arguments.folder(file);
    if (arguments.dry_run) return print_plan(set_up(std::move(file), folder), folder);
    std::optional<LivePage> page;      // with --view
    std::optional<RunLog> log;         // once the folder is ours
    std::optional<EventLines> events;  // with --json-lines
    std::optional<Progress> progress;  // unless quiet
    const bool quiet = arguments.quiet || arguments.json_lines;
    const auto say = [&, aloud = !quiet && !arguments.json](const std::string& line) {
        if (log) log->say(line);
        if (events) events->said(line);
        if (aloud) put_text(stderr, line);
    };
    RunHooks hooks{say};
    hooks.phase = [&](std::uint64_t trial, const std::string& what) {
        if (progress) progress->phase(trial, what);
        if (events) events->phase(trial, what);
        if (page) page->phase("trial " + std::to_string(trial) + ": " + what);
    };
    Redactor known = secrets();
    known.add(file.secrets);
    KeptRequests requests(folder, std::move(known));
    hooks.keep = [&](const MeasuredLoad& load) { requests.keep(load); };
    if (file.starts_processes())
        hooks.watchdog = watchdog_for(file.processes().stop_within_seconds);
    const auto shared = std::make_shared<StudySetup>(set_up(std::move(file), folder, hooks));
    StudySetup& setup = *shared;
    const EnginesEnd engines_end{setup};
    refuse_flags(setup, folder);
    if (const auto missing = missing_images(setup); !missing.empty()) {
        complain("autotune: {}", missing.front());
        return environment_error;
    }
    if (std::isfinite(budget.wall_clock_seconds) || std::isfinite(budget.until))
        budget.first_trial_seconds = first_trial_seconds(setup);
    if (arguments.view) try {
            page.emplace(shared, folder, budget, static_cast<std::uint16_t>(*arguments.view),
                         [] { return true; });
        } catch (const IoError& error) {
            complain("autotune: {}", error.what());
            return environment_error;
        }
    if (arguments.json_lines) events.emplace(setup);
    if (page) say("page: " + page->url());
    for (const std::string& warning : setup.file.warnings) say("warning: " + warning);
    for (const std::string& note : setup.file.composition->notes()) say("warning: " + note);
    for (const std::string& source : setup.knowledge) say("knowledge: " + source);
    auto journal = open_journal(folder, setup, arguments.accept_changes);
    if (!journal) return environment_error;
    if (setup.file.starts_processes()) end_what_was_left(setup);

    Study::Options options{setup.file.seed};
    for (const Workload& workload : setup.file.report_workloads)
        options.report_workloads.push_back(workload.name);
    options.default_again_every = setup.file.default_again_every();
    options.stress = setup.file.is_stressed();
    options.measured_elsewhere = true;
    Study study(*setup.problem, *setup.strategy, *journal, std::move(options));
    Summary summary;
    {
        Observer* shown = nullptr;
        if (events) shown = &*events;
        else if (!quiet) shown = &progress.emplace(setup, budget);
        log.emplace(folder, shown);
        signals.prepared();
        std::vector<Evaluator*> evaluators{setup.evaluator.get()};
        for (const auto& neighbour : setup.neighbours) evaluators.push_back(neighbour.get());
        const TimeLimit limit(budget, signals.token());
        summary = evaluators.size() == 1
                      ? study.run(*setup.evaluator, budget, limit.token(), &*log)
                      : WorkersRun(study, evaluators, budget, &*log, say).run(limit.token());
        if (const auto over = limit.reached();
            over && ended_by_time(summary, signals.token(), *over))
            say("the budget's time is over: what was running is ended, and the next run repeats "
                "it");
        setup.neighbours.clear();
        setup.evaluator.reset();  // an engine that still serves ends here
        log->ends(
            name_in(stop_reasons, summary.reason),
            summary.message + (summary.reason == StopReason::trials_spent ? spent_of(budget) : ""));
        log.reset();
        progress.reset();
    }
    const std::string_view reason = name_in(stop_reasons, summary.reason);
    if (summary.reason == StopReason::error) {
        complain("autotune: {}", summary.message);
        if (journal->in_place())
            complain("what was told is kept in {}; run again to go on", folder.string());
        return environment_error;
    }
    if (!journal->in_place()) {
        complain(
            "autotune: {} was removed, moved or replaced while the study ran; put it back to see "
            "its report",
            SqliteJournal::file_of(folder).string());
        return environment_error;
    }
    const std::vector<Trial> trials = journal->trials();  // with the environment of each
    const Reports reports = all_reports(setup, trials, reason);
    const bool is_new = reports.json + "\n" != text_kept_in(folder / "report.json");
    try {
        write_file(folder / "report.md", reports.markdown);
        write_file(folder / "report.json", reports.json + "\n");
        write_file(folder / "report.html", reports.html);
    } catch (const IoError& error) {
        complain("autotune: {}\nthe journal is complete; 'autotune report' prints the report",
                 error.what());
        return environment_error;
    }
    Headline headline = headline_of(setup, trials);
    const bool by_clock =
        summary.reason == StopReason::wall_clock_spent || summary.reason == StopReason::deadline;
    const bool no_time = by_clock && std::ranges::none_of(trials, &Trial::told);
    if (no_time) headline.reason = "The budget's time was over before anything was measured.";
    if (page)
        page->ended(reason, fmt::format("The run has ended: {}. {} has the report.", headline.title,
                                        (folder / "report.html").string()));
    if (summary.reason == StopReason::nothing_starts)
        complain(
            "autotune: {}\nmend that, then run again; with another --directory, so that what has "
            "failed is tried again too",
            summary.message);
    if (no_time)
        complain("autotune: {}\nraise the budget's `wall_clock` or `until`, then run again",
                 summary.message);
    if (events) events->ended(reason, reports.json);
    else if (arguments.json) put_text(stdout, reports.json + "\n");
    else if (arguments.conclusion && summary.reason == StopReason::stopped_by_user)
        put(stdout, "stopped; what was told is kept in {}, 'autotune run' goes on there\n",
            folder.string());
    else if (arguments.conclusion) {
        print_conclusion(headline, summary, folder);
        if (!is_new && !summary.message.empty())
            put(stdout, "nothing was left to measure: {}\n", summary.message);
    }
    if (summary.reason == StopReason::stopped_by_user) return stopped;
    return summary.recommendation.best ? done : nothing_feasible;
}

}  // namespace autotune
