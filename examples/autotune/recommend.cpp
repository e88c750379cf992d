// SPDX-License-Identifier: Apache-2.0
// What a study recommends: as a file that starts it, in a deploy file that is there (`--into`), and
// whether that file has it (`--check`).
#include "commands.hpp"
#include "output.hpp"
#include "record.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "handover/artefact.hpp"
#include "handover/deploy_file.hpp"
#include "report/report_json.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"

#include <nlohmann/json.hpp>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

std::string joined_names(const std::vector<DeployCommand>& commands) {
    std::string text;
    for (const DeployCommand& command : commands)
        text += (text.empty() ? "" : ", ") + command.label;
    return text;
}

/// The command that is meant.
const DeployCommand& chosen(const DeployFile& file, const std::string& name, const std::string& at,
                            const std::string& engine) {
    std::vector<const DeployCommand*> fitting;
    for (const DeployCommand& command : file.commands)
        if (at.empty() || ("/" + command.label).ends_with("/" + at)) fitting.push_back(&command);
    if (fitting.size() == 1) return *fitting.front();
    if (fitting.empty())
        throw UsageError("--at " + at + ": " + name + " has " + joined_names(file.commands));
    throw UsageError(name + " starts " + engine + " in several places; say which with --at NAME: " +
                     joined_names(file.commands));
}

OrderedJson changes_json(const DeployDifference& difference) {
    OrderedJson list = OrderedJson::array();
    for (const DeployChange& change : difference.changes)
        list.push_back({{"name", change.name},
                        {"before", text_or_null(change.before)},
                        {"after", text_or_null(change.after)}});
    return list;
}

std::string change_line(const DeployChange& change) {
    return change.name + ": " + (change.before.empty() ? "not set" : change.before) + " -> " +
           (change.after.empty() ? "not set" : change.after) + (change.by_hand ? " (by hand)" : "");
}

/// What changed in the file: its own words, and nothing of what stands around them.
std::string diff_text(const std::string& name, const DeployDifference& difference) {
    std::string result;
    const auto add = [&](const char* mark, const std::string& text) {
        if (!text.empty()) result += mark + shown_in_format(text) + "\n";
    };
    add("--- ", name);
    add("+++ ", name);
    for (const DeployChange& change : difference.changes) {
        add("- ", change.before);
        add("+ ", change.after);
    }
    return result;
}

void put_notes(const DeployDifference& difference) {
    put_each(stdout, "not known: ", difference.unknown);
    put_each(stdout, "note: ", difference.risks);
}

void put_difference(const DeployDifference& difference) {
    for (const DeployChange& change : difference.changes) put(stdout, "{}\n", change_line(change));
    put_notes(difference);
}

/// Where else a file says what it serves.
void add_checkpoints(const DeployFile& file, std::vector<std::string>& notes) {
    for (const std::string& place : file.checkpoints)
        notes.push_back(place + " names a checkpoint too; it is not read and not changed.");
}

int check(const RecommendArguments& arguments, const DeployFile& file, const DeployCommand& command,
          const DeploySpec& spec) {
    DeployDifference difference = difference_of(command, spec);
    add_checkpoints(file, difference.risks);
    const bool differs = !difference.changes.empty() && command.unsure.empty();
    const bool same =
        difference.changes.empty() && difference.unknown.empty() && !difference.no_checkpoint;
    if (arguments.json)
        put_json({{"file", arguments.check->string()},
                  {"at", command.label},
                  {"same", differs || same ? OrderedJson(same) : OrderedJson()},
                  {"differences", changes_json(difference)},
                  {"not_known", difference.unknown},
                  {"risks", difference.risks}});
    else {
        put_difference(difference);
        if (same || !differs)
            put(stdout, "{}: {} is {}\n", arguments.check->string(), command.label,
                same ? "as recommended" : "undecided");
    }
    return differs ? answer_is_no : same ? done : undecided;
}

/// A file that is not read: what is recommended, to be written into it by hand.
int print_recommended(const RecommendArguments& arguments, const fs::path& path,
                      const DeployFile& file, const DeploySpec& spec, const std::string& why) {
    std::vector<std::string> notes;
    add_checkpoints(file, notes);
    complain("autotune: {} is {}: {}. What is recommended:\n", path.string(),
             arguments.check ? "undecided" : "left as it is", why);
    if (arguments.json)
        put_json({{"file", path.string()},
                  {"same", nullptr},
                  {"changed", false},
                  {"why", why},
                  {"model", spec.model},
                  {"flags", spec.flags},
                  {"environment", spec.environment},
                  {"risks", notes}});
    else {
        if (!spec.model.empty()) put(stdout, "model: {}\n", spec.model);
        put_each(stdout, "", spec.flags);
        for (const auto& [variable, value] : spec.environment)
            put(stdout, "{}={}\n", variable, value);
        put_each(stdout, "note: ", notes);
    }
    return arguments.check ? undecided : left_alone;
}

/// `--into FILE` and `--check FILE`: `undecided` where it cannot be told, `left_alone` where the
/// file cannot be changed safely.
int recommend_into(const RecommendArguments& arguments, const StudySetup& setup,
                   const Configuration& recommended, const DeploymentOptions& options) {
    const fs::path path = arguments.into ? *arguments.into : *arguments.check;
    const std::string name = path.filename().string();
    const DeploySpec spec = deploy_spec_of(
        setup, recommended, deployment_of(setup, recommended, options, StartedIn::cluster));
    DeployFile file;
    std::string text = read_file(path);
    try {
        file = read_deploy_file(std::move(text), name, spec.engine);
        if (file.commands.empty())
            throw ParseError("no list of words and no line in it starts " + spec.engine.name);
    } catch (const ParseError& error) {
        return print_recommended(arguments, path, file, spec, error.what());
    }
    const DeployCommand& command = chosen(file, path.string(), arguments.at, spec.engine.name);
    if (arguments.check) return check(arguments, file, command, spec);
    DeployEdit edit = edit_deploy_file(file, command, spec, name);
    DeployDifference& difference = edit.difference;
    add_checkpoints(file, difference.risks);
    OrderedJson object{{"file", path.string()},
                       {"at", command.label},
                       {"changed", false},
                       {"differences", changes_json(difference)},
                       {"not_known", difference.unknown}};
    if (!edit.unsafe.empty()) {
        complain("autotune: {} is left as it is: {}.{}\n", path.string(), edit.unsafe,
                 difference.changes.empty() ? "" : " What to change in " + command.label + ":");
        object["why"] = edit.unsafe;
        if (arguments.json) put_json(object);
        else put_difference(difference);
        return left_alone;
    }
    const bool changed = edit.text != file.text;
    const auto record = fs::path(path).replace_extension("record");
    const bool with_record = changed && command.of_recipe;
    if (with_record) write_record_of(setup, arguments.folder_to_read(setup.file), record);
    try {
        if (changed) replace_deploy_file(path, file.text, edit.text);
    } catch (const IoError& error) {
        put_text(stderr, complaint_of(error));
        return environment_error;
    }
    if (arguments.json) {
        object["changed"] = changed;
        object["record"] = text_or_null(with_record ? record.string() : "");
        object["diff"] = changed ? diff_text(name, difference) : "";
        object["risks"] = difference.risks;
        put_json(object);
    } else {
        if (changed) put_text(stdout, diff_text(name, difference) + "\n");
        else
            put(stdout, "{}: {} {}; nothing is changed\n", path.string(), command.label,
                difference.no_checkpoint ? "has the recommended flags" : "is as recommended");
        if (with_record) put(stdout, "evidence: {}\n", record.string());
        put_notes(difference);
    }
    return done;
}

/// Who may read a script may start it.
fs::perms for_who_reads(const fs::path& file) {
    const auto now = static_cast<unsigned>(fs::status(file).permissions());
    return static_cast<fs::perms>((now & 0444U) >> 2U);
}

}  // namespace

int recommend_as(const RecommendArguments& arguments) {
    if (arguments.check && contains(arguments.check->string(), "://"))
        throw UsageError(
            "--check wants a deploy file; `autotune watch` holds a server against its study");
    if (!arguments.image.empty() && arguments.as != "compose" && arguments.as != "kubernetes")
        throw UsageError("--image has no effect with --as " + arguments.as +
                         ", which starts the engine as the study does: leave it out, or take --as "
                         "compose or --as kubernetes");
    const StudySetup setup = set_up(arguments.load_to_read());
    const std::vector<Trial> trials =
        read_journal(setup, arguments.folder_to_read(setup.file)).trials();
    const Headline headline = headline_of(setup, trials);
    const Recommendation result = recommend(*setup.problem, search_history(*setup.problem, trials));
    if (result.conclusion == Conclusion::nothing_passes) {
        complain("autotune: {}. {}", headline.title, headline.reason);
        return nothing_feasible;
    }
    DeploymentOptions options{
        arguments.host, arguments.port, arguments.image, arguments.gpus,
        setup.file.secrets(
            headline.title +
            (result.conclusion == Conclusion::inconclusive ? ": this starts the default." : ".") +
            (headline.unsound.empty() ? "" : " " + headline.unsound))};
    for (const Trial& trial : trials)
        if (const Measurement* measured = trial.measurement();
            measured != nullptr && trial.configuration == result.recommended)
            if (const auto* copies = entry_in(measured->metrics, "replicas"))
                options.replicas = std::int64_t(copies->value);
    if (arguments.into || arguments.check)
        return recommend_into(arguments, setup, result.recommended, options);
    const Artefact artefact = artefact_of(arguments.as, setup, result.recommended, options);
    if (!artefact.left_out.empty())
        put(stderr, "warning: {} does not have what the study has: {}\n", artefact.name,
            artefact.left_out);
    if (arguments.output) {
        fs::create_directories(*arguments.output);
        write_file(*arguments.output / artefact.name, artefact.text);
        if (artefact.executable)
            fs::permissions(*arguments.output / artefact.name,
                            for_who_reads(*arguments.output / artefact.name),
                            fs::perm_options::add);
        for (const auto& [name, content] : artefact.beside)
            write_file(*arguments.output / name, content);
    }
    if (arguments.json) {
        put_json(OrderedJson{{"kind", arguments.as},
                             {"name", artefact.name},
                             {"text", artefact.text},
                             {"beside", artefact.beside},
                             {"left_out", artefact.left_out}});
        return done;
    }
    if (arguments.output) {
        put(stdout, "{}\n", (*arguments.output / artefact.name).string());
        for (const auto& [name, content] : artefact.beside)
            put(stdout, "{}\n", (*arguments.output / name).string());
        return done;
    }
    if (!artefact.beside.empty())
        throw UsageError("there are more files (" + artefact.beside.begin()->first +
                         "): --output DIR writes all");
    put_text(stdout, artefact.text);
    return done;
}

}  // namespace autotune
