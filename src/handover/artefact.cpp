// SPDX-License-Identifier: Apache-2.0
#include "artefact.hpp"

#include "artefact_values.hpp"
#include "base/text.hpp"
#include "engine/shell_word.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"
#include "template_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

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

std::string no_variable(const std::string& name) {
    throw UsageError("${" + name +
                     "} is a secret, and no variable can stand there; say it in an environment "
                     "variable that the engine reads");
}

std::string same_text(const std::string& text) { return text; }

std::string plain_place(const std::string& text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+";
    if (text.find_first_not_of(plain) != std::string::npos)
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
    return "\"" +
           word_as(
               word,
               [&](const std::string& text) {
                   if (text.find_first_of("\n\r") != std::string::npos)
                       throw UsageError(
                           "a word of the command has a character that a systemd unit cannot hold");
                   std::string result;
                   for (const char c : text) {
                       if (doubled.find(c) != std::string_view::npos) result += c;
                       if (c == '"' || c == '\\') result += '\\';
                       result += c;
                   }
                   return result;
               },
               [](const std::string& name) { return "${" + name + "}"; }) +
           "\"";
}

/// What ExecStart= begins with changes how it is run, and no variable is put in there.
std::string unit_program(const std::string& path) {
    if (path.empty() || path.find(variable_mark) != std::string::npos ||
        std::string_view("@-:+!").find(path.front()) != std::string_view::npos ||
        path.find('$') != std::string::npos)
        throw UsageError("a systemd unit cannot start '" + path +
                         "': a program that begins with none of @-:+! and has no $ wanted");
    return unit_place(path, "%$");
}

/// Go templates are put into the whole of an LLMInferenceService, the user's words too (kserve:
/// ReplaceVariables in pkg/controller/v1alpha2/llmisvc/config_merge.go).
std::string go_template_place(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool opens = text.compare(i, 2, "{{") == 0;
        result += opens ? "{{`{{`}}" : std::string(1, text[i]);
        if (opens) ++i;
    }
    return result;
}

/// Nothing in it ends its line, and it does not go on in the next one.
std::string comment_place(const std::string& text) {
    std::string line = printable_line(text);
    if (line.ends_with('\\')) line += ' ';
    return line;
}

/// As templates take them.
TemplateValues template_values_of(const OrderedJson& object) {
    const auto text = [](const OrderedJson& value) -> std::string {
        if (value.is_boolean()) return value.get<bool>() ? "yes" : "";
        return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
    };
    TemplateValues result;
    for (const auto& [key, value] : object.items())
        if (value.is_object()) result.lists[key] = {template_values_of(value)};
        else if (!value.is_array()) result.texts[key] = text(value);
        else {
            std::vector<TemplateValues>& list = result.lists[key];
            for (const OrderedJson& item : value)
                list.push_back(item.is_object() ? template_values_of(item)
                                                : TemplateValues{{{".", text(item)}}, {}});
        }
    return result;
}

}  // namespace

std::string json_text(const OrderedJson& value, int blanks) {
    try {
        return value.dump(blanks);
    } catch (const OrderedJson::exception&) {
        throw UsageError("a word of the command is not UTF-8, and JSON cannot hold it");
    }
}

std::string shell_place(const std::string& word) {
    const std::string result = word_as(
        word, quoted_where_needed, [](const std::string& name) { return "\"${" + name + "}\""; });
    return result.empty() ? "''" : result;
}

std::string filled_artefact(std::string_view text, const OrderedJson& values) {
    using Text = const std::string&;
    static const TemplateEscapes escapes{
        {"", plain_place},
        {"raw", same_text},
        {"shell", shell_place},
        {"unit", [](Text word) { return unit_place(word, "%$"); }},
        {"unit_value", [](Text word) { return unit_place(word, "%"); }},
        {"unit_program", unit_program},
        {"yaml", [](Text word) { return yaml_scalar(word_as(word, same_text, no_variable)); }},
        {"json", [](Text word) { return json_text(word_as(word, same_text, no_variable)); }},
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
        {"comment", comment_place},
        {"go_template", go_template_place}};
    static const TemplateParts parts{{"head", head_in.text},
                                     {"exports", exports_in.text},
                                     {"needs", needs_in.text},
                                     {"files", files_in.text},
                                     {"config_map", config_map_yaml_in.text},
                                     {"pod", pod_in.text},
                                     {"image", image_in.text},
                                     {"engine", engine_in.text},
                                     {"probes", probes_in.text},
                                     {"engine_more", engine_more_in.text},
                                     {"other_containers", other_containers_in.text},
                                     {"volumes", volumes_in.text},
                                     {"left_out", left_out_in.text}};
    return fill_template(text, template_values_of(values), escapes, parts);
}
namespace {

using OrderedJson = nlohmann::ordered_json;

enum class NeedsImage { no, of_engine, of_platform };

/// A kind of artefact: its template, and what differs from the others.
struct ArtefactKind {
    std::string_view name;
    std::string_view file;  ///< `*`: the study's name
    const EmbeddedFile& text;
    StartedIn where;
    NeedsImage image;
    bool roles = false;  ///< it takes prefill and decode apart
    void (*add_values)(const DeploymentModel& deployment, OrderedJson& values) = nullptr;
};

constexpr std::array kinds{
    ArtefactKind{"shell", "*.sh", shell_sh_in, StartedIn::shell, NeedsImage::no, true},
    ArtefactKind{"systemd", "*.service", systemd_service_in, StartedIn::service_manager,
                 NeedsImage::no, true},
    ArtefactKind{"compose", "compose.yaml", compose_yaml_in, StartedIn::container,
                 NeedsImage::of_engine, true},
    ArtefactKind{"slurm", "*.sbatch", slurm_sbatch_in, StartedIn::shell, NeedsImage::no},
    ArtefactKind{"kubernetes", "*.yaml", kubernetes_yaml_in, StartedIn::cluster,
                 NeedsImage::of_engine, false, add_pod},
    ArtefactKind{"llm-d", "patch.yaml", llm_d_yaml_in, StartedIn::cluster, NeedsImage::no, false,
                 add_llm_d},
    ArtefactKind{"kserve", "*.yaml", kserve_yaml_in, StartedIn::cluster, NeedsImage::no, false,
                 add_kserve},
    ArtefactKind{"dynamo", "*.yaml", dynamo_yaml_in, StartedIn::cluster, NeedsImage::of_platform,
                 false, add_dynamo},
    ArtefactKind{"rayservice", "*.yaml", rayservice_yaml_in, StartedIn::cluster,
                 NeedsImage::of_platform, false, add_rayservice},
    ArtefactKind{"gpustack", "*.json", gpustack_json_in, StartedIn::cluster, NeedsImage::no, false,
                 add_gpustack}};

const ArtefactKind& kind_named(std::string_view name) {
    const auto* const found = std::find_if(
        kinds.begin(), kinds.end(), [&](const ArtefactKind& kind) { return kind.name == name; });
    if (found == kinds.end())
        throw UsageError("'" + std::string(name) + "' is no kind of file: " +
                         fmt::format("{}", fmt::join(artefact_kinds(), ", ")) + " wanted");
    return *found;
}

void check_image(const ArtefactKind& kind, const Engine& engine, bool has_image, bool asked) {
    if (kind.image == NeedsImage::of_platform && !asked)
        throw UsageError(fmt::format("an image is needed that has {} and {}: --image IMAGE",
                                     kind.name, engine.name));
    if (kind.image != NeedsImage::of_engine || has_image) return;
    const std::string image = engine.images.empty() ? "IMAGE" : engine.images.front();
    throw UsageError("an image is needed that has the engine: --image " + image +
                     (engine.images.empty() || image.find(':') != std::string::npos ? "" : ":TAG") +
                     ", or `container` in the study");
}

std::string file_name(const ArtefactKind& kind, const std::string& study) {
    const std::size_t star = kind.file.find('*');
    return star == std::string_view::npos ? std::string(kind.file)
                                          : study + std::string(kind.file.substr(star + 1));
}

}  // namespace

std::vector<std::string> artefact_kinds() {
    std::vector<std::string> result;
    for (const ArtefactKind& kind : kinds) result.emplace_back(kind.name);
    return result;
}

Artefact artefact_of(std::string_view name, const DeploymentModel& deployment) {
    const ArtefactKind& kind = kind_named(name);
    OrderedJson values = values_of(deployment);
    if (kind.add_values != nullptr) kind.add_values(deployment, values);
    Artefact result{file_name(kind, deployment.name), ""};
    result.left_out = deployment.left_out;
    if (const auto more = values.find("left_out"); more != values.end() && !more->empty())
        result.left_out += (result.left_out.empty() ? "" : " ") + more->get<std::string>();
    result.executable = kind.file.ends_with(".sh");
    for (const auto& [file, content] : deployment.first().files)
        if (kind.where != StartedIn::cluster) result.beside[file] = content;
    if (const auto beside = values.find("beside"); beside != values.end())
        for (const auto& [file, text] : beside->items()) result.beside[file] = text;
    if (kind.where != StartedIn::service_manager || deployment.engines.size() == 1) {
        result.text = filled_artefact(kind.text.text, values);
        return result;
    }
    for (std::size_t i = 0; i < deployment.engines.size(); ++i) {  // a file each
        OrderedJson own = values;
        own.update(values["engines"][i]);
        const std::string& role = deployment.engines[i].role;
        const std::string file =
            file_name(kind, deployment.name + "-" + (role.empty() ? std::to_string(i) : role));
        std::string text = filled_artefact(kind.text.text, own);
        if (i == 0) result.name = file, result.text = std::move(text);
        else result.beside[file] = std::move(text);
    }
    return result;
}

Artefact artefact_of(std::string_view name, const StudySetup& setup,
                     const Configuration& configuration, const DeploymentOptions& options) {
    const ArtefactKind& kind = kind_named(name);
    const bool roles =
        setup.file.has_commands() && setup.file.composition->needs_router(configuration);
    if (roles && !kind.roles)
        throw UsageError(
            "this configuration runs prefill and decode apart, which takes servers of two kinds "
            "and a router: --as shell, --as systemd, --as compose");
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    const bool client = kind.where == StartedIn::shell || kind.where == StartedIn::service_manager;
    if ((options.replicas > 1 || roles) && client && deploy != nullptr && deploy->container)
        throw UsageError(roles ? "the containers of roles are started by compose: --as compose"
                               : "several containers are started by compose or Kubernetes: --as "
                                 "compose, --as kubernetes");
    const DeploymentModel deployment = deployment_of(setup, configuration, options, kind.where);
    check_image(kind, setup.file.composition->engine_of(configuration), !deployment.image.empty(),
                !options.image.empty());
    return artefact_of(name, deployment);
}

}  // namespace servetune
