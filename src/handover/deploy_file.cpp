// SPDX-License-Identifier: Apache-2.0
// Where a file of YAML starts an engine.
#include "deploy_file.hpp"

#include "base/text.hpp"
#include "engine/launcher.hpp"
#include "engine/shell_word.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace servetune {
namespace {

std::string text_of_scalar(const YAML::Node& node) {
    return node.IsDefined() && node.IsScalar() ? node.Scalar() : "";
}

/// Empty: it is no mapping, or has no such text.
std::string deploy_text_at(const YAML::Node& mapping, const char* key) {
    return mapping.IsDefined() && mapping.IsMap() ? text_of_scalar(mapping[key]) : "";
}

/// In the order in which their words follow each other.
constexpr std::array<const char*, 3> word_keys{"entrypoint", "command", "args"};

/// Whether a key names a checkpoint: `modelURL`, `storageUri`, `MODEL_ID`.
bool says_model(const std::string& key, const std::string& value) {
    const std::string low = lower_case(key);
    return contains(value, '/') && (contains(low, "model") || low == "storageuri");
}

class DeployFinder {
public:
    DeployFinder(DeployFile& file, const Engine& engine)
        : file_(file), engine_(engine), offset_(file.text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

    void find() {
        std::vector<YAML::Node> documents;
        try {
            documents = YAML::LoadAll(file_.text.substr(offset_));
        } catch (const YAML::Exception& error) {
            // Behind a colon it repeats what stands there, which may be a secret.
            throw ParseError("line " + std::to_string(error.mark.line + 1) + ": " +
                             error.msg.substr(0, error.msg.find(':')));
        }
        for (const YAML::Node& document : documents) {
            document_ = document;
            walk(document_, "");
            if (document_.IsMap()) recipe_in(document_["model"], engine_);
        }
    }

private:
    void walk(const YAML::Node& node, const std::string& key, bool in_command = false) {
        const std::string line = "line " + std::to_string(node.Mark().line + 1) + ": ";
        const auto refuse = [&](const std::string& why) { throw ParseError(line + why); };
        if (!node.Tag().empty() && node.Tag() != "?" && node.Tag() != "!") refuse("it has a tag");
        if (!node.IsNull() && !seen_.emplace(node.Mark().pos, node.Type()).second)
            refuse("an alias stands for it, through which one change is one of several places");
        const std::string text = text_of_scalar(node);
        if (!in_command) {
            file_.parts.push_back(key);
            file_.parts.push_back(fmt::format("{} {} {}", node.Type(), node.size(), text));
        }
        if (says_model(key, text)) file_.checkpoints.push_back(line + key);
        if (node.IsSequence())
            for (const YAML::Node& item : node) walk(item, "", in_command);
        if (!node.IsMap()) return;
        std::set<std::string> keys;
        for (const auto& entry : node)
            if (!entry.first.IsScalar() || !keys.insert(entry.first.Scalar()).second)
                refuse("a key stands twice in one mapping, or is no text");
        const std::size_t which = file_.commands.size();
        command_in(node, key);
        const bool has_command = file_.commands.size() > which;
        for (const auto& entry : node) {
            const std::string& its = entry.first.Scalar();
            walk(entry.second, its,
                 (has_command && std::count(word_keys.begin(), word_keys.end(), its) > 0) ||
                     its == "base_args");
        }
    }

    /// The words that a recipe of vllm-project/recipes has for all chips.
    void recipe_in(const YAML::Node& model, const Engine& engine) {
        const std::string name = deploy_text_at(model, "model_id");
        if (name.empty() || !model["base_args"].IsSequence() || engine.name != "vllm") return;
        DeployCommand& found = file_.commands.emplace_back();
        found.label = start_of(name, 100);
        found.of_recipe = true;
        found.words.push_back({.text = name});
        std::erase(file_.checkpoints,  // it is read
                   fmt::format("line {}: model_id", model["model_id"].Mark().line + 1));
        gather(model["base_args"], 1, found);
        const std::size_t at = offset_ + std::size_t(model["base_args"].Mark().pos);
        if (found.words.size() == 1 && file_.text.compare(at, 2, "[]") == 0)
            found.empty_list = at + 1;
        for (const char* part :
             {"variants", "hardware_overrides", "strategy_overrides", "features"})
            lists_in(document_[part], part, found);
    }
    void lists_in(const YAML::Node& node, const std::string& place, DeployCommand& of) const {
        if (!node.IsDefined() || node.IsScalar() || node.IsNull()) return;
        if (node.IsSequence()) {
            Texts words;
            for (const YAML::Node& item : node) words.push_back(text_of_scalar(item));
            of.added.emplace_back(place, std::move(words));
            return;
        }
        for (const auto& entry : node)
            lists_in(entry.second, place + "." + text_of_scalar(entry.first), of);
    }

    void command_in(const YAML::Node& node, const std::string& key) {
        DeployCommand found;
        for (std::size_t list = 0; list < word_keys.size(); ++list)
            if (const YAML::Node value = node[word_keys[list]];
                value.IsDefined() && !value.IsNull())
                gather(value, list, found);
        if (found.words.empty()) return;
        const std::string kind = deploy_text_at(document_, "kind");
        const bool own_program =
            node["entrypoint"].IsDefined() || (!kind.empty() && node["command"].IsDefined());
        const std::size_t launch = launched_at(std::span(&engine_, 1), found.texts(), 0).words;
        if (launch == 0 &&
            (own_program ||
             engine_of_image(std::span(&engine_, 1), deploy_text_at(node, "image")) == nullptr))
            return;
        found.words.erase(found.words.begin(), found.words.begin() + std::ptrdiff_t(launch));
        read_environment(node, found);
        for (const std::string& word : found.texts())
            for (const std::string& flag : engine_.file_flags)
                if (word == flag || word.starts_with(flag + "="))
                    found.unsure = flag + " takes a file that may set any flag of it";
        if (node["extends"].IsDefined()) found.unsure = "`extends` adds what stands elsewhere";
        const std::string own = deploy_text_at(node, "name");
        // 100 bytes of a name, which stands in the label of each command.
        for (const std::string& name :
             {kind, deploy_text_at(std::as_const(document_)["metadata"], "name"),
              own.empty() ? key : own})
            if (!name.empty())
                found.label += (found.label.empty() ? "" : "/") + start_of(name, 100);
        if (found.label.empty()) found.label = "the file";
        file_.commands.push_back(std::move(found));
    }

    /// The words of a list, or of one line without signs of a shell.
    void gather(const YAML::Node& value, std::size_t list, DeployCommand& found) const {
        const auto keep = [&](DeployWord word, DeployWord::Stands stands) {
            word.stands = stands;
            word.list = list;
            if (word.text.find_first_of("$`") != npos)
                found.unsure = "a word of it is known only where it runs";
            found.words.push_back(std::move(word));
        };
        if (value.IsSequence()) {
            const bool flow = value.Style() == YAML::EmitterStyle::Flow;
            for (const YAML::Node& item : value)
                if (item.IsScalar())
                    keep(placed(item),
                         flow ? DeployWord::Stands::flow_item : DeployWord::Stands::block_item);
                else found.unsure = "an item of its command is no text";
            return;
        }
        const DeployWord line = value.IsScalar() ? placed(value) : DeployWord{};
        bool plain = line.end != 0;
        const std::size_t from = line.begin + (line.end - line.begin > line.text.size() ? 1 : 0);
        for (std::size_t at = line.text.find_first_not_of(' '); at < line.text.size();) {
            const std::size_t end = std::min(line.text.find(' ', at), line.text.size());
            const std::string word = line.text.substr(at, end - at);
            plain = plain && quoted_where_needed(word) == word;
            keep({.text = word, .begin = from + at, .end = from + end},
                 DeployWord::Stands::in_line);
            at = line.text.find_first_not_of(' ', end);
        }
        if (!plain)
            found.unsure = "its command is a text of several lines, or with signs of a shell";
    }

    /// Where a scalar stands, if its bytes are its text: no escapes, no folded lines.
    [[nodiscard]] DeployWord placed(const YAML::Node& scalar) const {
        DeployWord word{.text = scalar.Scalar()};
        const std::size_t at = offset_ + std::size_t(std::max(0, scalar.Mark().pos));
        for (const std::string quote : {"", "'", "\""}) {
            const std::string whole = quote + word.text + quote;
            const std::string other = quote == "\"" ? "\n\"\\" : "\n" + quote;
            if (word.text.empty() || word.text.find_first_of(other) != npos ||
                file_.text.compare(at, whole.size(), whole) != 0)
                continue;
            word.begin = at;
            word.end = at + whole.size();
        }
        return word;
    }

    void read_environment(const YAML::Node& node, DeployCommand& found) const {
        for (const char* part : {"env", "environment"})
            for (const auto& entry : node[part])
                if (entry.first.IsDefined())
                    found.environment[text_of_scalar(entry.first)] = text_of_scalar(entry.second);
                else if (entry.IsMap())
                    found.environment[deploy_text_at(entry, "name")] =
                        deploy_text_at(entry, "value");
                else {
                    const std::string text = text_of_scalar(entry) + "=";
                    const std::size_t equals = text.find('=');
                    found.environment[text.substr(0, equals)] =
                        text.substr(equals + 1, text.size() - equals - 2);
                }
        found.more_variables = node["envFrom"].IsDefined() || node["env_file"].IsDefined();
        for (const std::string& beginning : engine_.flag_variables) {
            if (found.more_variables)
                found.unsure = "variables of another file may set flags of it";
            for (const auto& [name, value] : found.environment)
                if (name.starts_with(beginning))
                    found.unsure = "the variable " + name + " sets flags of it too";
        }
    }

    DeployFile& file_;
    const Engine& engine_;
    std::size_t offset_;
    YAML::Node document_{};
    std::set<std::pair<int, int>> seen_{};  ///< place and kind: an alias is its target once more
};

}  // namespace

Texts DeployCommand::texts() const {
    Texts result;
    for (const DeployWord& word : words) result.push_back(word.text);
    return result;
}

DeployFile read_deploy_file(std::string text, std::string_view name, const Engine& engine) {
    constexpr std::size_t longest = 1U << 20U;
    if (text.size() > longest) throw ParseError("a deploy file of more than 1 MiB is not read");
    if (contains(text, '\0')) throw ParseError("it has a zero byte, so it is no text");
    if (!names_yaml_file(name))
        throw ParseError("only files of YAML are read (.yaml, .yml); scripts and units are not");
    for (const char* mark : {"{{", "{%", "#@"})  // Helm and Go, Jinja, ytt: in comments too
        if (contains(text, mark)) throw ParseError("it is a template, by its " + std::string(mark));
    DeployFile file;
    file.text = std::move(text);
    DeployFinder(file, engine).find();
    return file;
}

}  // namespace servetune
