// SPDX-License-Identifier: Apache-2.0
// What a study recommends, in a deploy file that is there.
#include "recommend_into.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "report/document.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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
        if (at.empty() ||
            std::find(command.names.begin(), command.names.end(), at) != command.names.end())
            fitting.push_back(&command);
    if (fitting.size() == 1) return *fitting.front();
    if (fitting.empty())
        throw UsageError("--at " + at + ": " + name + " has " + joined_names(file.commands));
    throw UsageError(name + " starts " + engine + " in several places; say which with --at NAME: " +
                     joined_names(file.commands));
}

std::string figures_text(const RecommendedHere& recommended) {
    const StudyFile& file = recommended.setup.file;
    std::string text;
    const Recommendation& result = recommended.result;
    if (!result.keep_default && result.default_passes) {
        const std::string metric = file.objective.leading().metric;
        text += fmt::format("- {}: {} over the default", metric,
                            gain_text(result.gain.value, result.gain.scale));
        if (result.gain.has_interval())
            text += fmt::format(" (95 % interval: {} to {})",
                                gain_text(result.gain.low, result.gain.scale),
                                gain_text(result.gain.high, result.gain.scale));
        text += "\n";
    }
    const auto measured = [&](const Configuration& configuration, const char* whose) {
        for (const Trial& trial : recommended.trials)
            if (const Measurement* one = trial.measurement();
                one != nullptr && trial.workload.empty() && trial.configuration == configuration) {
                if (const auto found = one->metrics.find(file.objective.leading().metric);
                    found != one->metrics.end())
                    text += fmt::format("- {} in trial {}: {:.6g}\n", whose, trial.id,
                                        found->second.value);
                return;
            }
    };
    measured(result.default_configuration, "the default");
    if (!result.keep_default) measured(result.recommended, "recommended");
    return text;
}

std::string changes_text(const DeployDifference& difference) {
    std::string text = "| what | before | after |\n|---|---|---|\n";
    const auto cell = [](const std::string& words) {
        return words.empty() ? std::string("not set") : "`" + secrets()(words) + "`";
    };
    for (const DeployChange& change : difference.changes)
        text += "| `" + change.name + "` | " + cell(change.before) + " | " + cell(change.after) +
                " |\n";
    return text;
}

std::string request_title(const RecommendedHere& recommended) {
    return recommended.setup.file.name + ": " + recommended.headline.title;
}

/// The text of a merge request.
std::string request_text(const RecommendedHere& recommended, const DeployDifference& difference) {
    const StudyFile& file = recommended.setup.file;
    std::string text = recommended.headline.reason + "\n";
    if (const std::string figures = figures_text(recommended); !figures.empty())
        text += "\n## Figures\n\n" + figures;
    text += "\n## What changes\n\n" + changes_text(difference) + "\n## Risks\n\n";
    for (const std::string& risk : difference.risks) text += "- " + risk + "\n";
    if (!recommended.headline.unsound.empty()) text += "- " + recommended.headline.unsound + "\n";
    const Engine& engine = file.composition->engine_of(recommended.result.recommended);
    return text +
           fmt::format(
               "- The gain holds for the load that was measured; another model, GPU, engine "
               "version or traffic may give another answer.\n\n## How it was measured\n\nThe "
               "study `{}` finished {} trials of {}{}{}. {}\n\nTo go back, revert this change.\n",
               file.name,
               std::count_if(recommended.trials.begin(), recommended.trials.end(),
                             [](const Trial& trial) { return trial.told(); }),
               engine.name,
               file.composition->version_of(engine).empty()
                   ? ""
                   : " " + file.composition->version_of(engine),
               file.model.empty() ? "" : " with " + file.model, file.measured_by());
}

OrderedJson changes_json(const DeployDifference& difference) {
    OrderedJson list = OrderedJson::array();
    for (const DeployChange& change : difference.changes)
        list.push_back(
            {{"name", change.name},
             {"before", change.before.empty() ? OrderedJson(nullptr) : OrderedJson(change.before)},
             {"after", change.after.empty() ? OrderedJson(nullptr) : OrderedJson(change.after)}});
    return list;
}

std::string change_line(const DeployChange& change) {
    return change.name + ": " + (change.before.empty() ? "not set" : change.before) + " -> " +
           (change.after.empty() ? "not set" : change.after) + (change.by_hand ? " (by hand)" : "");
}

/// What changed in the file: its own words, and nothing of what stands around them.
std::string diff_text(const std::string& name, const DeployDifference& difference) {
    std::string result = "--- " + name + "\n+++ " + name + "\n";
    for (const DeployChange& change : difference.changes) {
        if (!change.before.empty()) result += "- " + change.before + "\n";
        if (!change.after.empty()) result += "+ " + change.after + "\n";
    }
    return result;
}

void put_difference(const DeployDifference& difference) {
    for (const DeployChange& change : difference.changes)
        put(stdout, "{}\n", printable_line(change_line(change)));
    for (const std::string& what : difference.unknown)
        put(stdout, "not known: {}\n", printable_line(what));
    for (const std::string& risk : difference.risks)
        put(stdout, "note: {}\n", printable_line(risk));
}

int check(const RecommendArguments& arguments, const DeployCommand& command,
          const DeploySpec& spec) {
    const DeployDifference difference = difference_of(command, spec);
    const bool differs = !difference.changes.empty() && command.unsure.empty();
    const bool same = difference.changes.empty() && difference.unknown.empty();
    if (arguments.json)
        put_json({{"file", *arguments.check},
                  {"at", command.label},
                  {"same", differs || same ? OrderedJson(same) : OrderedJson(nullptr)},
                  {"differences", changes_json(difference)},
                  {"not_known", difference.unknown},
                  {"risks", difference.risks}});
    else {
        put_difference(difference);
        if (same) put(stdout, "{}: {} is as recommended\n", *arguments.check, command.label);
    }
    return differs ? answer_is_no : same ? done : undecided;
}

/// A file that is not read: what is recommended, to be written into it by hand.
int print_recommended(const RecommendArguments& arguments, const std::filesystem::path& path,
                      const DeploySpec& spec, const std::string& why) {
    complain("autotune: {} is {}: {}. What is recommended:\n", path.string(),
             arguments.check ? "undecided" : "left as it is", why);
    if (arguments.json)
        put_json({{"file", path.string()},
                  {"same", nullptr},
                  {"changed", false},
                  {"why", why},
                  {"flags", spec.flags},
                  {"environment", spec.environment}});
    else {
        for (const std::string& flag : spec.flags) put(stdout, "{}\n", flag);
        for (const auto& [variable, value] : spec.environment)
            put(stdout, "{}={}\n", variable, value);
    }
    return arguments.check ? undecided : left_alone;
}

}  // namespace

int recommend_into(const RecommendArguments& arguments, const RecommendedHere& recommended) {
    const std::filesystem::path path =
        arguments.into ? *arguments.into : std::filesystem::path(*arguments.check);
    const std::string name = path.filename().string();
    const DeploymentModel deployment = deployment_of(
        recommended.setup, recommended.result.recommended, recommended.options, StartedIn::cluster);
    if (deployment.has_roles()) {
        complain(
            "autotune: {} is left as it is: the recommended configuration runs prefill and decode "
            "apart; `recommend --as compose`, `--as systemd` and `--as shell` print its servers\n",
            path.string());
        return arguments.check ? answer_is_no : left_alone;
    }
    const DeploySpec spec =
        deploy_spec_of(recommended.setup, recommended.result.recommended, deployment);
    if (arguments.check &&
        (arguments.check->starts_with("http://") || arguments.check->starts_with("https://")))
        return check_running(arguments, recommended, deployment, spec);
    DeployFile file;
    std::string text = read_file(path);
    try {
        file = read_deploy_file(std::move(text), name, spec.engine);
        if (file.commands.empty())
            throw ParseError("no list of words and no line in it starts " + spec.engine.name);
    } catch (const ParseError& error) {
        return print_recommended(arguments, path, spec, error.what());
    }
    const DeployCommand& command = chosen(file, path.string(), arguments.at, spec.engine.name);
    if (arguments.check) return check(arguments, command, spec);
    const DeployEdit edit = edit_deploy_file(file, command, spec, name);
    const DeployDifference& difference = edit.difference;
    OrderedJson object{{"file", path.string()},
                       {"at", command.label},
                       {"changed", false},
                       {"differences", changes_json(difference)},
                       {"not_known", difference.unknown}};
    if (!edit.unsafe.empty()) {
        complain("autotune: {} is left as it is: {}. What to change in {}:\n", path.string(),
                 edit.unsafe, command.label);
        object["why"] = edit.unsafe;
        if (arguments.json) put_json(object);
        else put_difference(difference);
        return left_alone;
    }
    const bool changed = edit.text != file.text;
    try {
        if (changed) replace_deploy_file(path, file.text, edit.text);
    } catch (const IoError& error) {
        complain("{}", complaint_of(error));
        return environment_error;
    }
    if (arguments.json) {
        object["changed"] = changed;
        object["diff"] = changed ? diff_text(name, difference) : "";
        object["title"] = request_title(recommended);
        object["body"] = request_text(recommended, difference);
        put_json(object);
    } else if (!changed)
        put(stdout, "{}: {} is as recommended; nothing is changed\n", path.string(), command.label);
    else
        put(stdout, "{}\n# {}\n\n{}", printable(diff_text(name, difference)),
            request_title(recommended), request_text(recommended, difference));
    return done;
}

}  // namespace autotune
