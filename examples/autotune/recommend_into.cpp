// SPDX-License-Identifier: Apache-2.0
// What a study recommends, in a deploy file that is there.
#include "recommend_into.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "base/token_shapes.hpp"
#include "base/url.hpp"
#include "base/variable_name.hpp"
#include "interop/deploy_edit.hpp"
#include "interop/deploy_units.hpp"
#include "report/escape.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
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

/// Where a value in quotes ends: escaped or doubled ones are a part of it.
std::size_t end_of_quoted(std::string_view text, std::size_t at, char quote) {
    for (; at < text.size() && text[at] != '\n'; ++at) {
        if (quote == '"' && text[at] == '\\' && at + 1 < text.size()) ++at;
        else if (text[at] == quote && quote == '\'' && at + 1 < text.size() &&
                 text[at + 1] == quote)
            ++at;
        else if (text[at] == quote) break;
    }
    return std::min(at, text.size());
}

/// Remembers what looks like a secret in a file of somebody's, so that it is never printed: values
/// of variables and flags with such names, tokens of headers, and passwords of addresses.
void keep_secrets_of(std::string_view text) {
    constexpr std::string_view of_names =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    constexpr std::string_view between = "\"' \t=:,\r\n\\";
    for (std::size_t at = text.find_first_of(of_names); at != std::string_view::npos;
         at = text.find_first_of(of_names, at)) {
        const std::size_t end = std::min(text.find_first_not_of(of_names, at), text.size());
        std::string name(text.substr(at, end - at));
        at = end;
        std::replace(name.begin(), name.end(), '-', '_');
        if (name != "Bearer" && (!names_secret(name) || name.find("NAME") != std::string::npos))
            continue;
        std::size_t value = std::min(text.find_first_not_of(between, end), text.size());
        if (value == end ||
            text.substr(end, value - end).find_first_of("=: ,\n") == std::string_view::npos)
            continue;
        const std::string_view gap = text.substr(end, value - end);
        const bool named_value = text.substr(value).starts_with("value:"),
                   flag = name.starts_with("__");
        if (gap.find('\n') != std::string_view::npos && gap.find(':') == std::string_view::npos &&
            !named_value && !flag)
            continue;
        if (flag && text.substr(value).starts_with("- "))
            value = std::min(text.find_first_not_of(between, value + 1), text.size());
        if (named_value) value = std::min(text.find_first_not_of(between, value + 6), text.size());
        const char quote = text[value - 1];
        if (quote == '"' || quote == '\'') {
            const std::string whole(text.substr(value, end_of_quoted(text, value, quote) - value));
            const bool named = quote == '"' && whole.starts_with('$');
            if (!whole.empty() && !named && !std::holds_alternative<bool>(value_of(whole)))
                secrets().add(whole);
        } else if (text.substr(value - 2, 2) == ": ") {  // of YAML, to the end of its line
            std::string_view whole = text.substr(
                value, std::min(text.find_first_of("\r\n", value), text.size()) - value);
            whole = whole.substr(0, whole.find(" #"));
            if (whole.find(' ') != std::string_view::npos && whole.find_first_of("${[&*|>") != 0)
                secrets().add(std::string(whole));
        }
        const std::size_t stop = std::min(text.find_first_of("\"' \t,\r\n", value), text.size());
        std::string secret(text.substr(value, stop - value));
        while (secret.ends_with(']') || secret.ends_with('}'))
            secret.pop_back();  // ends of lists and mappings
        const bool plain =
            secret.empty() ||
            std::string_view("$-{[<#&*").find(secret.front()) != std::string_view::npos ||
            secret.ends_with(':');
        if (!plain && !std::holds_alternative<bool>(value_of(secret))) secrets().add(secret);
    }
    for (std::size_t at = text.find("://"); at != std::string_view::npos;
         at = text.find("://", at + 1))
        add_user_info(secrets(), text.substr(at, text.find_first_of("\"' \t,\r\n", at) - at));
}

/// All words of flags with such names: some take several keys.
void keep_secrets_of(const DeployFile& file, const DeployWish& wish) {
    for (const DeployCommand& command : file.commands)
        for (const FlagUnit& unit : flag_units(command.texts(), wish.engine, *wish.reader)) {
            std::string name = unit.flag;
            std::replace(name.begin(), name.end(), '-', '_');
            if (!names_secret(name)) continue;
            for (std::size_t i = unit.words.front().find('=') == std::string::npos ? 1 : 0;
                 i < unit.words.size(); ++i)
                if (!unit.words[i].starts_with('$'))
                    secrets().add(i == 0 ? unit.value : unit.words[i]);
        }
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

std::string request_text(const RecommendArguments& arguments, const RecommendedHere& recommended,
                         const DeployCommand& command, const DeployDifference& difference) {
    const StudyFile& file = recommended.setup.file;
    std::string text = recommended.headline.reason + "\n";
    if (const std::string figures = figures_text(recommended); !figures.empty())
        text += "\n## Figures\n\n" + figures;
    text += "\n## What changes\n\nIn " + arguments.into->filename().string() + ", " +
            command.label + ":\n\n" + changes_text(difference);
    text += "\n## Risks\n\n";
    for (const std::string& risk : difference.risks) text += "- " + risk + "\n";
    for (const std::string& what : difference.by_hand) text += "- To do by hand: " + what + "\n";
    if (!recommended.headline.unsound.empty()) text += "- " + recommended.headline.unsound + "\n";
    text +=
        "- The gain holds for the load that was measured; another model, GPU, engine version or "
        "traffic may give another answer.\n";
    text += "\n## How it was measured\n\n";
    std::size_t finished = 0;
    for (const Trial& trial : recommended.trials) finished += trial.outcome.has_value() ? 1 : 0;
    text += fmt::format("The study `{}` finished {} trials of {}", file.name, finished,
                        file.composition->engine_of(recommended.result.recommended).name);
    const std::string version =
        file.composition->version_of(file.composition->engine_of(recommended.result.recommended));
    text += (version.empty() ? "" : " " + version) +
            (file.model.empty() ? "" : " with " + file.model) + ".";
    if (const std::string by = file.measured_by(); !by.empty()) text += " " + by;
    for (const Workload& workload : file.workloads) text += " Load: " + workload.name + ".";
    text += "\n\n## How to go back\n\nRevert this change, or:\n\n";
    for (const DeployChange& change : difference.changes)
        text += "- `" + change.name + "`: " +
                (change.before.empty() ? std::string("remove it") : "`" + change.before + "`") +
                "\n";
    return text;
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
    if (!change.name.starts_with('-'))
        return change.name + ": " + (change.before.empty() ? "not set" : change.before) + " -> " +
               (change.after.empty() ? "not set" : change.after);
    if (change.after.empty()) return "remove " + change.before;
    if (change.before.empty()) return "add " + change.after;
    return change.before + " -> " + change.after;
}

int check(const RecommendArguments& arguments, const DeployCommand& command,
          const DeployWish& wish) {
    DeployDifference difference = difference_of(command, wish);
    const bool same = difference.changes.empty() && difference.by_hand.empty();
    if (arguments.json)
        put_json({{"file", *arguments.check},
                  {"at", command.label},
                  {"same", same},
                  {"differences", changes_json(difference)},
                  {"not_known", difference.by_hand},
                  {"risks", difference.risks}});
    else {
        for (const DeployChange& change : difference.changes)
            put(stdout, "{}: {}, recommended: {}\n", change.name,
                change.before.empty() ? "not set" : change.before,
                change.after.empty() ? "not set" : change.after);
        for (const std::string& what : difference.by_hand)
            put(stdout, "not as recommended: {}\n", what);
        for (const std::string& risk : difference.risks) put(stdout, "note: {}\n", risk);
        if (same) put(stdout, "{}: {} is as recommended\n", *arguments.check, command.label);
    }
    return same ? done : answer_is_no;
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
            "apart, which takes servers of two "
            "kinds and a router; `recommend --as compose`, `--as systemd` and `--as shell` print "
            "them\n",
            path.string());
        return arguments.check ? answer_is_no : left_alone;
    }
    const DeployWish wish = wish_of(recommended.setup, recommended.result.recommended, deployment);
    if (arguments.check &&
        (arguments.check->starts_with("http://") || arguments.check->starts_with("https://")))
        return check_running(arguments, recommended, deployment, wish);
    std::string text = read_file(path);
    keep_secrets_of(text);
    DeployFile file;
    try {
        file = read_deploy_file(std::move(text), name, wish.engine);
        if (file.commands.empty())
            throw ParseError("it starts no " + wish.engine.name +
                             " in a form that is known; `recommend --as` prints a whole file");
    } catch (const ParseError& error) {
        complain("autotune: {} is left as it is: {}. What is recommended:\n", path.string(),
                 error.what());
        for (const std::string& flag : wish.flags) put(stdout, "{}\n", flag);
        for (const auto& [variable, value] : wish.environment)
            put(stdout, "{}={}\n", variable, value);
        return left_alone;
    }
    keep_secrets_of(file, wish);
    const DeployCommand& command = chosen(file, path.string(), arguments.at, wish.engine.name);
    if (arguments.check) return check(arguments, command, wish);
    const DeployEdit edit = edit_deploy_file(file, command, wish, name);
    const DeployDifference& difference = edit.difference;
    if (!edit.unsafe.empty()) {
        complain("autotune: {} is left as it is: {}. What to change in {}:\n", path.string(),
                 edit.unsafe, command.label);
        if (arguments.json)
            put_json({{"file", path.string()},
                      {"at", command.label},
                      {"changed", false},
                      {"why", edit.unsafe},
                      {"differences", changes_json(difference)},
                      {"by_hand", difference.by_hand}});
        else {
            for (const DeployChange& change : difference.changes)
                put(stdout, "{}\n", change_line(change));
            for (const std::string& what : difference.by_hand) put(stdout, "{}\n", what);
        }
        return left_alone;
    }
    const bool changed = edit.text != file.text;
    try {
        if (changed) write_file(path, edit.text);
    } catch (const IoError& error) {
        complain("{}", complaint_of(error));
        return environment_error;
    }
    const std::string diff =
        without_token_shapes(secrets()(unified_diff(file.text, edit.text, name)));
    if (arguments.json) {
        put_json({{"file", path.string()},
                  {"at", command.label},
                  {"changed", changed},
                  {"differences", changes_json(difference)},
                  {"diff", diff},
                  {"title", request_title(recommended)},
                  {"body", request_text(arguments, recommended, command, difference)},
                  {"by_hand", difference.by_hand}});
        return changed || difference.by_hand.empty() ? done : left_alone;
    }
    if (!changed && !difference.by_hand.empty()) {
        complain("autotune: {} is left as it is. What to do by hand in {}:\n", path.string(),
                 command.label);
        for (const std::string& what : difference.by_hand) put(stdout, "{}\n", what);
        return left_alone;
    }
    if (!changed) {
        put(stdout, "{}: {} is as recommended; nothing is changed\n", path.string(), command.label);
        return done;
    }
    put(stdout, "{}\n# {}\n\n{}", diff, request_title(recommended),
        request_text(arguments, recommended, command, difference));
    return done;
}

}  // namespace autotune
