// SPDX-License-Identifier: Apache-2.0
#include "artefact_words.hpp"

#include "engine/shell_word.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>

namespace servetune {
namespace {

/// The text with every `$` doubled, so that it is no variable (compose: "Interpolation"; Kubernetes
/// reads `$$` as `$` in commands, arguments and variables alike: "Define Dependent Environment
/// Variables").
std::string with_doubled_dollars(const std::string& text) {
    std::string result;
    for (const char c : text) result += c == '$' ? std::string("$$") : std::string(1, c);
    return result;
}

}  // namespace

std::string comment_line(std::string_view text) {
    std::string line = "# " + printable_line(text);
    if (line.ends_with('\\')) line += ' ';
    return line + "\n";
}

std::string head_lines(const DeploymentModel& deployment) {
    std::string result = deployment.title.empty() ? "" : comment_line(deployment.title);
    for (const std::string& note : deployment.to_change) result += comment_line(note);
    return result;
}

std::string ports_line(const DeploymentModel& deployment) {
    const std::vector<DeployedEngine>& engines = deployment.engines;
    if (engines.size() < 2) return "";
    if (deployment.has_roles())
        return fmt::format("# requests go to the router, port {}\n", engines.back().port);
    return fmt::format(
        "# {} replicas, ports {} to {}: put a load balancer before them (fewest requests in "
        "flight)\n",
        engines.size(), engines.front().port, engines.back().port);
}

void refuse_bytes(const Word& word, std::string_view refused, std::string_view format) {
    for (const WordPiece& piece : word)
        if (piece.text.find('\0') != std::string::npos ||
            piece.text.find_first_of(refused) != std::string::npos)
            throw UsageError(
                fmt::format("a word of the command has a character that a {} cannot hold", format));
}

std::string shell_word(const Word& word) {
    std::string result;
    for (const WordPiece& piece : word)
        result += piece.variable ? "\"${" + piece.text + "}\"" : quoted_where_needed(piece.text);
    return result.empty() ? "''" : result;
}

/// systemd.syntax(7), "Quoting", and systemd.unit(5), "Specifiers": quotes and backslashes are
/// escaped, `%` is doubled; `$`: systemd.service(5) and systemd.exec(5).
std::string unit_word(const Word& word, bool dollars) {
    refuse_bytes(word, "\n\r", "systemd unit");
    std::string result = "\"";
    for (const WordPiece& piece : word)
        if (piece.variable) result += "${" + piece.text + "}";
        else
            for (const char c : piece.text) {
                if (c == '%' || (c == '$' && dollars)) result += c;
                if (c == '"' || c == '\\') result += '\\';
                result += c;
            }
    return result + "\"";
}

std::string yaml_scalar(const std::string& text) {
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(character_length(rest)))
        if (character_length(rest) == 0)
            throw UsageError("a word of the command is not UTF-8, and YAML cannot hold it");
    return yaml_quoted(text);
}

std::string compose_word(const Word& word) {
    std::string text;
    for (const WordPiece& piece : word)
        text += piece.variable ? "${" + piece.text + "?}" : with_doubled_dollars(piece.text);
    return yaml_scalar(text);
}

std::string kubernetes_text(const Word& word) {
    std::string text;
    for (const WordPiece& piece : word)
        text += piece.variable ? "$(" + piece.text + ")" : with_doubled_dollars(piece.text);
    return text;
}

std::string kubernetes_word(const Word& word) { return yaml_scalar(kubernetes_text(word)); }

std::string joined(const std::vector<Word>& words, const std::string& between,
                   const std::function<std::string(const Word&)>& text) {
    std::string result;
    bool first = true;
    for (const Word& word : words) {
        result += (first ? "" : between) + text(word);
        first = false;
    }
    return result;
}

std::string indented(std::string_view lines, int blanks) {
    std::string result;
    bool begins = true;
    for (const char c : lines) {
        if (begins && c != '\n') result.append(static_cast<std::size_t>(blanks), ' ');
        result += c;
        begins = c == '\n';
    }
    return result;
}

std::string list_item(std::string_view lines) { return "- " + indented(lines, 2).substr(2); }

}  // namespace servetune
