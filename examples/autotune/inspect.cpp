// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "observers.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "report/report_json.hpp"
#include "report/report_view.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/report.hpp"
#include "servetune/search_space.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/study_checks.hpp"
#include "study_file/yaml.hpp"

#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace autotune {

namespace {

FoundDevices devices_here() {
    static const FoundDevices found = find_devices();
    return found;
}

}  // namespace

bool StudyArguments::names_journal() const {
    std::error_code unknown;
    const fs::path journal = SqliteJournal::file_of(study);
    if (fs::is_directory(study, unknown)) return has_journal(study);
    if (!fs::is_regular_file(journal, unknown)) return false;
    std::string begin(15, '\0');
    return std::ifstream(journal, std::ios::binary).read(begin.data(), 15) &&
           begin == "SQLite format 3";
}

fs::path StudyArguments::folder(const StudyFile& file) const {
    return directory || !names_journal() ? directory.value_or(file.name) : folder_of_journal();
}

fs::path StudyArguments::folder_to_read(const StudyFile& file) const {
    const fs::path here = folder(file), beside = study.parent_path() / file.name;
    return !directory && !has_journal(here) && has_journal(beside) ? beside : here;
}

fs::path StudyArguments::folder_to_read() const {
    return !directory && names_journal() ? folder_of_journal()
                                         : folder_to_read(load(MeasuredBy::either));
}

fs::path StudyArguments::folder_of_journal() const {
    return study.filename() == "study.db" ? study.parent_path() : study;
}

StudyText StudyArguments::study_text() const {
    std::error_code unknown;
    if (names_journal())
        return StudyText::kept_by(SqliteJournal::file_of(study), SqliteJournal::texts_of(study));
    if (fs::is_directory(study, unknown))
        throw UsageError(study.string() + " is a folder without a journal (study.db)");
    if (study.extension() == ".db" && fs::is_empty(study, unknown))
        throw IoError("journal " + study.string() + " is empty");
    if (study != "/dev/stdin" && study.parent_path() != "/dev/fd") return study;
    static std::map<fs::path, std::string> texts;  // a pipe gives it once
    if (!texts.contains(study)) texts[study] = read_file(study);
    StudyText result(study.filename());  // relative paths in it count from here
    result.kept.emplace(fs::absolute(result.file).lexically_normal().string(), texts[study]);
    return result;
}

std::string StudyArguments::strategy_name() const {
    return strategy.empty() && names_journal() ? SqliteJournal::definition_of(study)["strategy"]
                                               : strategy;
}

StudyFile StudyArguments::load(MeasuredBy by) const {
    const auto knew_facts = [this](const StudyFile& file) {
        return !has_journal(folder(file)) ||
               SqliteJournal::definition_of(folder(file)).contains("model.facts");
    };
    return load_study(study_text(), Catalogue::standard(), strategy_name(), by,
                      {devices_here, {}, knew_facts});
}

StudyFile StudyArguments::load_to_read(bool shows_unset_variables) const {
    const auto kept = [this](const StudyFile& file) -> std::map<std::string, std::string> {
        const fs::path journal = SqliteJournal::file_of(folder_to_read(file));
        try {
            return SqliteJournal::definition_of(folder_to_read(file));
        } catch (const IoError&) {
            std::error_code unknown;
            if (!fs::exists(journal, unknown)) throw;
            return {};  // whoever reads its trials says what is wrong with it
        }
    };
    StudyText text = study_text();
    text.shows_unset_variables = shows_unset_variables && !text.journal.empty();
    StudyFile file = load_study(text, Catalogue::standard(), strategy_name(), MeasuredBy::either,
                                {devices_here, kept});
    return file;
}

namespace {

std::string conditions_text(const Parameter& parameter) {
    std::string result;
    for (const Condition& condition : parameter.active_when) {
        result += (result.empty() ? "when " : " and ") + condition.parent + " = ";
        for (std::size_t i = 0; i < condition.values.size(); ++i)
            result += (i == 0 ? "" : " or ") + text_of(condition.values[i]);
    }
    return result;
}

/// The devices that layouts may take, and who says so.
std::string machine_text(const StudyFile& file) {
    const auto& machine = file.machine;
    std::vector<std::string> parts;
    if (!machine.hardware.empty()) {
        const auto chip = hardware_in(machine.hardware, file.catalogue().all_hardware());
        parts.push_back(machine.hardware + (chip && chip->name != machine.hardware
                                                ? ", taken for " + chip->name
                                                : ""));
    }
    if (machine.devices)
        parts.push_back("a trial may take " +
                        counted_text(std::size_t(*machine.devices), "device"));
    if (!machine.gpus().empty())
        parts.push_back(
            "nvidia-smi finds " + machine.gpus() +
            (machine.hardware_found.empty() ? "" : ", taken for " + machine.hardware_found));
    if (machine.usd_per_device_hour)
        parts.push_back(
            fmt::format("{:.2f} US dollars per device and hour", *machine.usd_per_device_hour));
    return fmt::format("{}", fmt::join(parts, "; "));
}

OrderedJson machine_json(const StudyFile& file) {
    OrderedJson object{{"device", nullptr},
                       {"count", nullptr},
                       {"found", nullptr},
                       {"usd_per_device_hour", nullptr}};
    if (!file.machine.chip().empty()) object["device"] = file.machine.chip();
    if (file.machine.devices) object["count"] = *file.machine.devices;
    if (!file.machine.gpus().empty()) object["found"] = file.machine.gpus();
    if (file.machine.usd_per_device_hour)
        object["usd_per_device_hour"] = *file.machine.usd_per_device_hour;
    return object;
}

int print_validation(const StudySetup& setup, std::vector<std::string> problems,
                     const ValidateArguments& arguments) {
    const bool json = arguments.json;
    const Problem& problem = *setup.problem;
    std::vector<std::string> asked;
    for (std::string& text : flag_problems(setup, arguments.ask_installed, asked))
        problems.push_back(std::move(text));
    std::vector<std::string> faults;  // of the machines that trials would run on, not of the study
    const auto launcher = setup.file.processes().launcher;
    for (std::string& text : missing_images(setup))
        (launcher && !launcher->on_this_machine() ? faults : problems).push_back(std::move(text));
    if (!problems.empty()) {
        if (json)
            put_json(
                OrderedJson{{"valid", false}, {"error", problems.front()}, {"problems", problems}});
        else put_each(stderr, "autotune: ", problems);
        return answer_is_no;
    }
    std::vector<std::string> warnings =
        warnings_of(setup, arguments.folder(setup.file), arguments.ask_installed && faults.empty());
    for (std::string& fact : facts_to_know(setup.file)) warnings.push_back(std::move(fact));
    const int code = faults.empty() ? done : environment_error;
    const Plan plan = plan_of(setup, arguments.folder(setup.file));
    const Command command = setup.command(problem.space.default_configuration());
    if (json) {
        OrderedJson object{{"valid", faults.empty()}};
        if (!faults.empty()) object.update({{"error", faults.front()}, {"problems", faults}});
        object.update({{"study", setup.file.name},
                       {"parameters", OrderedJson::array()},
                       {"constraints", OrderedJson::array()}});
        for (const Parameter& parameter : problem.space.parameters())
            object["parameters"].push_back({{"name", parameter.name},
                                            {"domain", parameter.domain_text()},
                                            {"default", text_of(parameter.default_value)},
                                            {"active", conditions_text(parameter)}});
        for (const Constraint& constraint : problem.space.constraints())
            object["constraints"].push_back(
                {{"rule", text_of(constraint)}, {"because", reason(constraint)}});
        object["size"] = problem.feasible.size();
        object["continuous"] = !problem.feasible.finite();
        object["preset"] = text_or_null(setup.file.preset_by_default);
        object["plan"] = {{"trials", plan.by_time ? OrderedJson() : OrderedJson(plan.trials)},
                          {"done", plan.done},
                          {"trial_seconds", or_null(plan.trial_seconds)},
                          {"seconds", or_null(plan.seconds())},
                          {"text", plan.text()}};
        object["default_command"] = command.argv;
        object["machine"] = machine_json(setup.file);
        object["facts"] = text_or_null(setup.file.model_file.string());
        object["installed"] = asked;
        object["warnings"] = warnings;
        put_json(object);
        return code;
    }
    put(stdout, "{}: {}, strategy {}\n\n", setup.file.name,
        setup.file.has_commands() ? setup.file.model : "a space of its own",
        setup.strategy->name());
    std::size_t width = 0;
    for (const Parameter& parameter : problem.space.parameters())
        width = std::max(width, parameter.name.size());
    for (const Parameter& parameter : problem.space.parameters()) {
        const std::string conditions = conditions_text(parameter);
        put(stdout, "  {:{}}  {}; default {}{}\n", parameter.name, width, parameter.domain_text(),
            text_of(parameter.default_value), conditions.empty() ? "" : "; " + conditions);
    }
    if (const std::size_t rules = problem.space.constraints().size(); rules > 0)
        put(stdout, "  and {} (--json lists them)\n", counted_text(rules, "rule"));
    if (!setup.file.preset_by_default.empty())
        put(stdout,
            "\nsearched: the preset {}, as the study has no `space` (`others: search` searches all "
            "flags)",
            setup.file.preset_by_default);
    const std::string size = size_text(problem.feasible.size());
    const std::string count = text_of(problem.feasible.size());
    put(stdout, "\n{} feasible configuration{}{}{}\nrun: {}\ndefault: {}\n", count,
        count == "1" ? "" : "s", size.starts_with("about") ? " (" + size + ")" : "",
        problem.feasible.finite() ? "" : " (each real counted once)", plan.trials_text(),
        setup.file.has_commands() ? command.text() : problem.space.default_configuration().text());
    if (const std::string machine = machine_text(setup.file); !machine.empty())
        put(stdout, "hardware: {}\n", machine);
    if (!setup.file.model_file.empty()) put(stdout, "facts: {}\n", setup.file.model_file.string());
    put_each(stdout, "", asked);
    for (const std::string& line : warnings) put_text(stdout, "warning: " + line + "\n");
    put_each(stderr, "autotune: ", faults);
    return code;
}

/// What became of the last run, of a study that has not ended; lines. The journal cannot hold it:
/// where it could be written, there was room.
std::string last_run_text(const StudyFile& file, const fs::path& folder) {
    if (somebody_writes(folder)) return "  a run is under way\n";
    std::string text;
    const std::string how = last_end(folder);
    const std::string error = std::string(name_in(stop_reasons, StopReason::error)) + " ";
    if (how.starts_with(error))
        text += "  the last run stopped: " + how.substr(error.size()) + "\n";
    std::error_code unknown;
    constexpr std::uintmax_t enough = 1U << 20U;
    const fs::space_info disk = fs::space(folder, unknown);
    if (!unknown && disk.available < enough)
        text += fmt::format("  the disk of {} is full: {} KiB are free; make room first\n",
                            folder.string(), disk.available >> 10U);
    return text + (file.is_external()
                       ? "  no program asks or tells now; yours goes on where it was\n"
                       : "  no run is under way; 'autotune run' goes on\n");
}

/// Whether it is no folder and this process may read it. It is not opened: a pipe is read once.
bool can_be_read(const fs::path& file) {
    std::error_code unknown;
    return access(file.c_str(), R_OK) == 0 && !fs::is_directory(file, unknown);
}

/// A damaged journal and a full disk are the environment's, as in `run`.
int rescue_journal(const fs::path& folder_or_file) {
    try {
        const RescuedJournal rescued = SqliteJournal::rescue(folder_or_file);
        const auto told = std::ranges::count_if(rescued.trials, &Trial::told);
        const bool whole = rescued.stopped_by.empty() && rescued.left_out.empty();
        put(stdout, "rescued {}, {} of them told, into {}{}\n",
            counted_text(rescued.trials.size(), "trial"), told, rescued.file.string(),
            whole ? "; nothing was damaged" : "");
        put_each(stdout, "  ", rescued.left_out);
        if (!rescued.stopped_by.empty())
            put(stdout, "  not all could be read: {}\n", rescued.stopped_by);
        if (!whole && told > 0)
            put(stdout,
                "to go on with them, move it over {} and remove that file's -wal and -shm\n",
                SqliteJournal::file_of(folder_or_file).string());
        return done;
    } catch (const IoError& error) {
        put(stderr, "autotune: {}\n", error.what());
        return environment_error;
    }
}

}  // namespace

int validate(const ValidateArguments& arguments) {
    std::vector<std::string> missing;
    try {
        StudyFile file = arguments.load();
        missing = missing_for(file);
        return print_validation(set_up(std::move(file)), missing, arguments);
    } catch (const Error& error) {
        if (!can_be_read(arguments.study))
            throw;  // nothing is known of the study: main says why, as for other commands
        std::vector<std::string> problems = parts_of(error.what(), '\n');
        problems.insert(problems.end(), missing.begin(), missing.end());
        if (arguments.json)
            put_json(
                OrderedJson{{"valid", false}, {"error", error.what()}, {"problems", problems}});
        else
            put_text(stderr,
                     missing.empty() ? complaint_of(error) : complaint_of(ParseErrors(problems)));
        return answer_is_no;
    }
}

int status(const StatusArguments& arguments) {
    if (arguments.rescue) return rescue_journal(arguments.folder_to_read());
    const StudySetup setup = set_up(arguments.load_to_read());
    const fs::path folder = arguments.folder_to_read(setup.file);
    const std::vector<Trial> trials = read_journal(setup, folder).trials();
    const std::string_view ended = ended_because(setup, trials, folder);
    if (arguments.json) {
        put_text(stdout, json_report(setup, trials, ended, false) + "\n");
        return done;
    }
    const ReportView view(setup, trials);
    const ReportView::Counts counts = view.counts();
    const std::size_t told = counts.completed, failed = counts.failed;
    put(stdout, "{}: {} measured, {} failed", setup.file.name, counted_text(told - failed, "trial"),
        failed == 0 ? "none" : std::to_string(failed));
    const auto open = count_if(trials, [](const Trial& trial) { return !trial.told(); });
    if (open > 0)
        put(stdout, ", {} {}", open, somebody_writes(folder) ? "under way" : "not finished");
    put(stdout, "\n");
    for (const Trial& trial : trials)
        if (!trial.told())
            put(stdout, "  pending: trial {}{}: {} ({})\n", trial.id,
                trial.started_at ? ", started" : "", trial.configuration.text(), trial.why);
    put_text(stdout, ended.empty() ? last_run_text(setup.file, folder)
                                   : fmt::format("  ended: {}\n", ended));
    const Headline headline = headline_of(view);
    put(stdout, "  {}: {}.{}{}\n", ended.empty() ? "so far" : "conclusion", headline.title,
        headline.reason.empty() ? "" : " " + headline.reason,
        headline.advice.empty() ? "" : " " + headline.advice);
    if (!headline.command.empty()) put_text(stdout, "  " + headline.command + "\n");
    put(stdout, "  time of trials: {}\n", time_spent_in(trials).text());
    return done;
}

int report(const ReportArguments& arguments) {
    const StudySetup setup = set_up(arguments.load_to_read());
    const fs::path folder = arguments.folder_to_read(setup.file);
    const std::vector<Trial> trials = read_journal(setup, folder).trials();
    const std::string_view ended = ended_because(setup, trials, folder);
    const bool with_effects = !somebody_writes(folder);  // a load test would miss the core
    put_text(stdout, arguments.html   ? html_report(setup, trials, ended, with_effects)
                     : arguments.json ? json_report(setup, trials, ended, with_effects) + "\n"
                                      : markdown_report(setup, trials, ended, with_effects));
    if (!with_effects)
        complain("a run is under way: 'autotune explain' has what takes fitting models");
    return done;
}

int render(const RenderArguments& arguments) {
    const StudyFile file = arguments.load();
    const SearchSpace space(file.composition->parameters(), file.composition->constraints());
    if (arguments.random > 0) {
        const FeasibleSet feasible(space);
        Rng rng(arguments.seed.value_or(file.seed));
        for (std::size_t i = 0; i < arguments.random; ++i) {
            const Command command =
                file.composition->render(feasible.sample(rng), {file.model, {}, 0});
            const OrderedJson line{{"argv", command.argv},
                                   {"environment", command.environment},
                                   {"files", command.files}};
            put_text(stdout, (arguments.json ? line.dump() : command.text()) + "\n");
        }
        return done;
    }
    const Configuration configuration =
        space.changed(space.default_configuration(), settings_of(file, space, arguments.settings));
    const auto violations = space.violations(configuration);
    if (!violations.empty()) throw SpaceError(violations.front());
    const Command command = file.composition->render(configuration, {file.model, {}, 0});
    const bool several = file.composition->needs_router(configuration);
    if (arguments.json)
        put_json(OrderedJson{{"argv", several ? OrderedJson() : OrderedJson(command.argv)},
                             {"environment", command.environment}});
    else put_text(stdout, file.composition->shown(configuration, {file.model, {}, 0}) + "\n");
    return done;
}

}  // namespace autotune
