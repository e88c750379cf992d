// SPDX-License-Identifier: Apache-2.0
// How words stand in the files of each format.
#include "artefact_values.hpp"

#include "engine/shell_word.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"
#include "template_files.hpp"
#include "word_template.hpp"

#include <functional>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The word's text and variables, each put in its form.
template <class Text, class Variable>
std::string word_as(const OrderedJson& word, const Text& text, const Variable& variable) {
    if (word.is_string()) return text(word.get<std::string>());
    std::string result;
    for (const OrderedJson& piece : word.at("pieces"))
        result += piece.is_string() ? text(piece.get<std::string>())
                                    : variable(piece.at("variable").get<std::string>());
    return result;
}

std::string no_variable(const std::string& name) {
    throw UsageError("${" + name +
                     "} is a secret, and no variable can stand there; say it in an environment "
                     "variable that the engine reads");
}

std::string same_text(const std::string& text) { return text; }

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

std::string shell_place(const OrderedJson& word) {
    const std::string result = word_as(
        word, quoted_where_needed, [](const std::string& name) { return "\"${" + name + "}\""; });
    return result.empty() ? "''" : result;
}

/// systemd.syntax(7), "Quoting"; systemd.unit(5), "Specifiers": `%` is doubled; systemd.service(5):
/// `$` too on a command line.
std::string unit_place(const OrderedJson& word, std::string_view doubled) {
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
std::string unit_program(const OrderedJson& word) {
    const std::string path = word.is_string() ? word.get<std::string>() : "";
    if (path.empty() || std::string_view("@-:+!").find(path.front()) != std::string_view::npos ||
        path.find('$') != std::string::npos)
        throw UsageError("a systemd unit cannot start '" + path +
                         "': a program that begins with none of @-:+! and has no $ wanted");
    return unit_place(word, "%$");
}

/// Go templates are put into the whole of an LLMInferenceService, the user's words too (kserve:
/// ReplaceVariables in pkg/controller/v1alpha2/llmisvc/config_merge.go).
std::string go_template_place(const OrderedJson& word) {
    const auto text = word.get<std::string>();
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool opens = text.compare(i, 2, "{{") == 0;
        result += opens ? "{{`{{`}}" : std::string(1, text[i]);
        if (opens) ++i;
    }
    return result;
}

/// Nothing in it ends its line, and it does not go on in the next one.
std::string comment_place(const OrderedJson& word) {
    std::string line = printable_line(word.get<std::string>());
    if (line.ends_with('\\')) line += ' ';
    return line;
}

std::string json_place(const OrderedJson& value, int blanks) {
    try {
        return value.is_object() && value.contains("pieces")
                   ? word_as(value, same_text, no_variable)
                   : value.dump(blanks);
    } catch (const OrderedJson::exception&) {
        throw UsageError("a word of the command is not UTF-8, and JSON cannot hold it");
    }
}

}  // namespace

std::string filled_artefact(std::string_view text, const OrderedJson& values) {
    static const WordTemplates parts{
        .escapes = {{"shell", {shell_place}},
                    {"unit", {[](const OrderedJson& word) { return unit_place(word, "%$"); }}},
                    {"unit_value", {[](const OrderedJson& word) { return unit_place(word, "%"); }}},
                    {"unit_program", {unit_program}},
                    {"yaml", {[](const OrderedJson& word) {
                         return yaml_scalar(word_as(word, same_text, no_variable));
                     }}},
                    {"json", {[](const OrderedJson& value) { return json_place(value, -1); }, ""}},
                    {"pretty",
                     {[](const OrderedJson& value) { return json_place(value, 2); }, "", true}},
                    {"compose",
                     {[](const OrderedJson& word) {
                          return yaml_scalar(
                              word_as(word, doubled_dollars,
                                      [](const std::string& name) { return "${" + name + "?}"; }));
                      },
                      ", "}},
                    {"kubernetes",
                     {[](const OrderedJson& word) {
                          return yaml_scalar(
                              word_as(word, doubled_dollars,
                                      [](const std::string& name) { return "$(" + name + ")"; }));
                      },
                      ", "}},
                    {"comment", {comment_place}},
                    {"go_template", {go_template_place}}},
        .templates = {{"head", head_in.text},
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
                      {"left_out", left_out_in.text}}};
    return fill_words(text, values, parts);
}

}  // namespace servetune
