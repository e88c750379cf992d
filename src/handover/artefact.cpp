// SPDX-License-Identifier: Apache-2.0
#include "artefact.hpp"

#include "base/text.hpp"
#include "engine/shell_word.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"
#include "template_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

namespace servetune {
namespace {

/// Before and behind the name of a variable in a word; no word has it otherwise.
constexpr char variable_mark = '\0';

std::string marked_word(const Word& word) {
    std::string result;
    for (const WordPiece& piece : word)
        result += piece.variable ? variable_mark + piece.text + variable_mark : piece.text;
    return result;
}

/// The word's text and variables, each put in its form.
template <class Text, class Variable>
std::string word_as(std::string_view word, const Text& text, const Variable& variable) {
    std::string result;
    for (bool is_variable = false;; is_variable = !is_variable) {
        const std::string piece(word.substr(0, word.find(variable_mark)));
        if (is_variable) result += variable(piece);
        else if (!piece.empty()) result += text(piece);
        if (piece.size() == word.size()) return result;
        word.remove_prefix(piece.size() + 1);
    }
}

std::string plain_place(const std::string& text) {
    if (!text.empty() && (quoted_where_needed(text) != text || contains(text, '%')))
        throw UsageError("'" + text + "' has a character that cannot stand there");
    return text;
}

/// compose reads `$$` as `$` (Interpolation), Kubernetes in commands, arguments and variables alike
/// (Define Dependent Environment Variables).
std::string doubled_dollars(const std::string& text) {
    std::string result;
    for (const char c : text) result += c == '$' ? std::string("$$") : std::string(1, c);
    return result;
}

std::string yaml_scalar(const std::string& text) {
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(character_length(rest)))
        if (character_length(rest) == 0)
            throw UsageError("a word of the command is not UTF-8, and YAML cannot hold it");
    return yaml_quoted(text);
}

/// systemd.syntax(7), "Quoting"; systemd.unit(5), "Specifiers": `%` is doubled; systemd.service(5):
/// `$` too on a command line.
std::string unit_place(const std::string& word, std::string_view doubled) {
    const auto text = [&](const std::string& piece) {
        if (piece.find_first_of("\n\r") != npos)
            throw UsageError(
                "a word of the command has a character that a systemd unit cannot hold");
        std::string result;
        for (const char c : piece) {
            if (contains(doubled, c)) result += c;
            if (c == '"' || c == '\\') result += '\\';
            result += c;
        }
        return result;
    };
    return "\"" + word_as(word, text, [](const std::string& name) { return "${" + name + "}"; }) +
           "\"";
}

/// What ExecStart= begins with changes how it is run, and no variable is put in there.
std::string unit_program(const std::string& path) {
    if (path.empty() || contains(path, variable_mark) || contains("@-:+!", path.front()) ||
        contains(path, '$'))
        throw UsageError("a systemd unit cannot start '" + path +
                         "': a program that begins with none of @-:+! and has no $ wanted");
    return unit_place(path, "%$");
}

/// Nothing in it ends its line, and it does not go on in the next one.
std::string comment_place(const std::string& text) {
    std::string line = printable_line(text);
    if (line.ends_with('\\')) line += ' ';
    return line;
}

std::string shell_place(const std::string& word) {
    const std::string result = word_as(
        word, quoted_where_needed, [](const std::string& name) { return "\"${" + name + "}\""; });
    return result.empty() ? "''" : result;
}

/// Each throws UsageError for what it cannot hold. A place without an escape takes plain words.
std::string filled_artefact(std::string_view text, const TemplateValues& values) {
    using Text = const std::string&;
    static const TemplateEscapes escapes{
        {"", plain_place},
        {"shell", shell_place},
        {"unit", [](Text word) { return unit_place(word, "%$"); }},
        {"unit_value", [](Text word) { return unit_place(word, "%"); }},
        {"unit_program", unit_program},
        {"yaml", yaml_scalar},
        {"compose",
         [](Text word) {
             return yaml_scalar(
                 word_as(word, doubled_dollars, [](Text name) { return "${" + name + "?}"; }));
         }},
        {"kubernetes",
         [](Text word) {
             return yaml_scalar(
                 word_as(word, doubled_dollars, [](Text name) { return "$(" + name + ")"; }));
         }},
        {"comment", comment_place}};
    static const TemplateParts parts{{"head", head_in.text}, {"exports", exports_in.text}};
    return fill_template(text, values, escapes, parts);
}

/// What templates may name: texts, words with variables in `variable_mark`, and lists of these.
TemplateValues template_values_of(const DeploymentModel& model) {
    constexpr double period_seconds = 10;  // of the probes
    const auto if_any = [](std::int64_t number) {
        return number > 0 ? std::to_string(number) : std::string();
    };
    TemplateValues values;
    values.texts = {
        {"name", model.name},
        {"image", marked_word(model.image)},
        {"program", marked_word(model.argv.front())},
        {"port", std::to_string(model.port)},
        {"gpus", if_any(model.gpus)},
        {"device_resource", model.device_resource},
        {"shm_bytes", std::to_string(model.shm_bytes)},
        {"copies", std::to_string(model.copies)},
        {"spread", model.copies > 1 ? "yes" : ""},
        {"ready_path", model.ready_path},
        {"failures_at_start",
         std::to_string(static_cast<int>(std::ceil(model.ready_within_seconds / period_seconds)) +
                        1)},
        {"has_environment", model.environment.empty() && model.variables.empty() ? "" : "yes"},
        {"has_binds", model.mounts.empty() && model.files.empty() ? "" : "yes"}};
    values.lists["rest"] = {};
    const auto add = [&](const char* list, const std::string& text) {
        values.lists[list].push_back({{{".", text}}, {}});
    };
    if (!model.title.empty()) add("head", model.title);
    for (const std::string& note : model.to_change) add("head", note);
    for (const Word& word : model.argv) add("argv", marked_word(word));
    for (std::size_t i = 1; i < model.argv.size(); ++i) add("rest", marked_word(model.argv[i]));
    for (const std::string& name : model.variables) add("variables", name);
    for (const auto& [name, word] : model.environment) {
        const bool secret = has_variable(word);
        values.lists["environment"].push_back(
            {{{"variable", name},
              {"secret", secret ? "yes" : ""},
              {"value", marked_word(secret ? Word{{name, true}} : word)},
              {"assignment", name + "=" + marked_word(word)}},
             {}});
    }
    for (const std::string& path : model.mounts)
        values.lists["mounts"].push_back(
            {{{"mount", "model-" + std::to_string(values.lists["mounts"].size())}, {"path", path}},
             {}});
    for (const auto& [name, content] : model.files)
        values.lists["files"].push_back({{{"file", name}, {"content", content}}, {}});
    return values;
}

/// A kind of artefact: its template, and what differs from the others.
struct ArtefactKind {
    std::string_view name;
    std::string_view file;  ///< `*`: the study's name
    const EmbeddedFile& text;
    StartedIn where;
};

constexpr std::array kinds{
    ArtefactKind{"shell", "*.sh", shell_sh_in, StartedIn::shell},
    ArtefactKind{"systemd", "*.service", systemd_service_in, StartedIn::service_manager},
    ArtefactKind{"compose", "compose.yaml", compose_yaml_in, StartedIn::container},
    ArtefactKind{"slurm", "*.sbatch", slurm_sbatch_in, StartedIn::shell},
    ArtefactKind{"kubernetes", "*.yaml", kubernetes_yaml_in, StartedIn::cluster}};

const ArtefactKind& kind_named(std::string_view name) {
    const auto* const found =
        find_if(kinds, [&](const ArtefactKind& kind) { return kind.name == name; });
    if (found == kinds.end())
        throw UsageError("'" + std::string(name) + "' is no kind of file: " +
                         fmt::format("{}", fmt::join(artefact_kinds(), ", ")) +
                         " wanted; for llm-d, KServe, Dynamo, Ray Serve or GPUStack take image, "
                         "arguments and environment from kubernetes");
    return *found;
}

}  // namespace

std::vector<std::string> artefact_kinds() { return names_in(kinds); }

Artefact artefact_of(std::string_view name, const DeploymentModel& deployment) {
    const ArtefactKind& kind = kind_named(name);
    if (kind.where == StartedIn::cluster && has_variable(deployment.image))
        throw UsageError(
            "the image has a secret, and Kubernetes puts none in there; say it with --image");
    std::string file(kind.file);
    if (const std::size_t star = file.find('*'); star != npos)
        file.replace(star, 1, deployment.name);
    Artefact result{std::move(file),
                    filled_artefact(kind.text.text, template_values_of(deployment))};
    result.left_out = deployment.left_out;
    result.executable = kind.file.ends_with(".sh");
    if (kind.where != StartedIn::cluster) result.beside = deployment.files;  // else a ConfigMap
    return result;
}

Artefact artefact_of(std::string_view name, const StudySetup& setup,
                     const Configuration& configuration, const DeploymentOptions& options) {
    const StartedIn where = kind_named(name).where;
    const DeploymentModel deployment = deployment_of(setup, configuration, options, where);
    const bool needs_image = where == StartedIn::container || where == StartedIn::cluster;
    if (needs_image && deployment.image.empty()) {
        const Engine& engine = setup.file.composition->engine_of(configuration);
        throw UsageError("an image is needed that has the engine: --image " +
                         (engine.images.empty() ? "IMAGE" : engine.images.front()) +
                         ", or `container` in the study");
    }
    return artefact_of(name, deployment);
}

}  // namespace servetune
