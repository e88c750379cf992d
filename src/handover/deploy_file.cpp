// SPDX-License-Identifier: Apache-2.0
// Where a file of YAML starts an engine.
#include "deploy_file.hpp"

#include "engine/launcher.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

namespace servetune {
namespace {

struct DeployNode {
    enum class Kind { null, scalar, sequence, mapping } kind = Kind::null;
    std::string text{};
    std::size_t begin = 0;  ///< byte of the file
    bool flow = false;      ///< a list in brackets
    std::vector<std::pair<std::string, DeployNode>> entries{};
    std::vector<DeployNode> items{};

    [[nodiscard]] const DeployNode* find(std::string_view key) const {
        for (const auto& [name, value] : entries)
            if (name == key) return &value;
        return nullptr;
    }
    [[nodiscard]] std::string text_of(std::string_view key) const {
        const DeployNode* found = find(key);
        return found != nullptr ? found->text : "";
    }
};

/// Makes the tree of what yaml-cpp's parser finds.
class DeployTree : public YAML::EventHandler {
public:
    explicit DeployTree(std::size_t offset) : offset_(offset) {}
    DeployNode root{};

    void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        done(node(DeployNode::Kind::null, mark, "", anchor));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse(mark); }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        DeployNode scalar = node(DeployNode::Kind::scalar, mark, tag, anchor);
        scalar.text = value;
        done(std::move(scalar));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value style) override {
        open(node(DeployNode::Kind::sequence, mark, tag, anchor), style);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value style) override {
        open(node(DeployNode::Kind::mapping, mark, tag, anchor), style);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

private:
    [[noreturn]] static void refuse(const YAML::Mark& mark) {
        throw ParseError("line " + std::to_string(mark.line + 1) +
                         " has an anchor, an alias or a tag, through which one change may be one "
                         "of several places");
    }
    [[nodiscard]] DeployNode node(DeployNode::Kind kind, const YAML::Mark& mark,
                                  const std::string& tag, YAML::anchor_t anchor) const {
        if (anchor != 0 || (!tag.empty() && tag != "?" && tag != "!")) refuse(mark);
        DeployNode result;
        result.kind = kind;
        result.begin = offset_ + static_cast<std::size_t>(std::max(0, mark.pos));
        return result;
    }
    void open(DeployNode started, YAML::EmitterStyle::value style) {
        constexpr std::size_t deepest = 100;
        if (open_.size() >= deepest)
            throw ParseError("the file nests deeper than " + std::to_string(deepest));
        started.flow = style == YAML::EmitterStyle::Flow;
        open_.push_back(std::move(started));
    }
    /// Keys and values of a mapping stand in turn among its items until it is closed.
    void done(DeployNode finished) {
        (open_.empty() ? root = DeployNode() : open_.back().items.emplace_back()) =
            std::move(finished);
    }
    void close() {
        DeployNode last = std::move(open_.back());
        open_.pop_back();
        if (last.kind == DeployNode::Kind::mapping) {
            const std::vector<DeployNode> both = std::exchange(last.items, {});
            for (std::size_t i = 0; i + 1 < both.size(); i += 2) {
                if (both[i].kind != DeployNode::Kind::scalar || last.find(both[i].text) != nullptr)
                    throw ParseError("the key '" + both[i].text +
                                     "' stands twice in one mapping, or is no text");
                last.entries.emplace_back(both[i].text, both[i + 1]);
            }
        }
        done(std::move(last));
    }

    std::size_t offset_;
    std::vector<DeployNode> open_{};
};

std::vector<DeployNode> documents_of(const std::string& file) {
    const std::size_t offset = file.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    std::istringstream stream(file.substr(offset));
    std::vector<DeployNode> documents;
    try {
        YAML::Parser parser(stream);
        for (DeployTree tree(offset); parser.HandleNextDocument(tree); tree = DeployTree(offset))
            documents.push_back(std::move(tree.root));
    } catch (const YAML::Exception& error) {
        throw ParseError("line " + std::to_string(error.mark.line + 1) + ": " + error.msg);
    }
    return documents;
}

/// Where a scalar stands, if its bytes are its text: no escapes, no folded lines.
DeployWord placed_word(const std::string& file, const DeployNode& scalar) {
    DeployWord word{.text = scalar.text};
    const std::string& text = scalar.text;
    const char first = scalar.begin < file.size() ? file[scalar.begin] : '\n';
    const bool quoted = first == '\'' || first == '"';
    const std::size_t begin = scalar.begin + (quoted ? 1 : 0);
    const bool same =
        file.compare(begin, text.size(), text) == 0 &&
        text.find_first_of(quoted ? std::string{first, '\n'} : "\n") == std::string::npos;
    if (text.empty() || !same || (first == '"' && text.find('\\') != std::string::npos) ||
        (quoted && (begin + text.size() >= file.size() || file[begin + text.size()] != first)))
        return word;
    word.begin = scalar.begin;
    word.end = begin + text.size() + (quoted ? 1 : 0);
    word.quote = quoted ? first : '\0';
    return word;
}

/// Signs that a shell, compose, Kubernetes or Helm reads.
bool varies(std::string_view text) {
    return text.find('$') != std::string_view::npos || text.find('`') != std::string_view::npos ||
           text.find("{{") != std::string_view::npos;
}

std::string joined_with_blanks(const std::vector<std::string>& words) {
    std::string result;
    for (const std::string& word : words) result += (result.empty() ? "" : " ") + word;
    return result;
}

class DeployFinder {
public:
    DeployFinder(DeployFile& file, const Engine& engine)
        : file_(file), engine_(engine), program_(joined_with_blanks(launcher_words(engine))) {}

    void find(const std::vector<DeployNode>& documents) {
        for (std::size_t i = 0; i < documents.size(); ++i) {
            document_ = &documents[i];
            walk(*document_, "", std::to_string(i));
        }
    }

private:
    void walk(const DeployNode& node, const std::string& key, const std::string& path) {
        const std::string name = node.text_of("name");
        names_.push_back(name.empty() ? key : name);
        file_.scalars[path] = std::to_string(static_cast<int>(node.kind)) + node.text;
        if (node.kind == DeployNode::Kind::mapping) command_in(node, path);
        if (node.text.find('\n') != std::string::npos && mentions(node.text) && !in_command_) {
            DeployCommand script;
            script.unsure = "it is started by a script in the file";
            add(std::move(script));
        }
        for (const auto& [called, value] : node.entries) {
            const bool before = in_command_;
            in_command_ =
                in_command_ || called == "command" || called == "args" || called == "entrypoint";
            walk(value, called, path + "/" + called);
            in_command_ = before;
        }
        for (std::size_t i = 0; i < node.items.size(); ++i)
            walk(node.items[i], "", path + "/" + std::to_string(i));
        names_.pop_back();
    }

    [[nodiscard]] bool mentions(std::string_view text) const {
        return text.find(program_) != std::string_view::npos;
    }

    void command_in(const DeployNode& node, const std::string& path) {
        DeployCommand found;
        for (const char* part : {"entrypoint", "command", "args"})
            if (const DeployNode* value = node.find(part);
                value != nullptr && value->kind != DeployNode::Kind::null) {
                found.paths.push_back(path + "/" + part);
                gather(*value, found);
            }
        if (found.words.empty()) return;
        const std::vector<std::string> texts = found.texts();
        const bool of_cluster = document_->find("kind") != nullptr;
        const bool own_program =
            node.find("entrypoint") != nullptr || (of_cluster && node.find("command") != nullptr);
        std::size_t flags = launched_at(std::span(&engine_, 1), texts, 0).words;
        if (flags == 0) flags = words_of_dynamo(texts);
        const bool image =
            engine_of_image(std::span(&engine_, 1), node.text_of("image")) != nullptr;
        if (flags == 0 && (own_program || (!image && !begin_with_flags(texts)))) {
            if (!mentions(joined_with_blanks(texts))) return;
            found.unsure = "another program starts it";
        }
        found.words.erase(found.words.begin(),
                          found.words.begin() + static_cast<std::ptrdiff_t>(flags));
        read_environment(node, found);
        add(std::move(found));
    }

    void gather(const DeployNode& value, DeployCommand& found) {
        const std::size_t list = found.paths.size();
        const auto keep = [&](DeployWord word, DeployWord::Stands stands) {
            word.stands = stands;
            word.list = list;
            if (varies(word.text)) found.unsure = "a word of it is known only where it runs";
            found.words.push_back(std::move(word));
        };
        if (value.kind == DeployNode::Kind::sequence) {
            for (const DeployNode& item : value.items)
                if (item.kind == DeployNode::Kind::scalar)
                    keep(placed_word(file_.text, item), value.flow
                                                            ? DeployWord::Stands::flow_item
                                                            : DeployWord::Stands::block_item);
                else found.unsure = "an item of its command is no text";
            return;
        }
        constexpr std::string_view plain =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+ ";
        const DeployWord line = placed_word(file_.text, value);
        if (line.end == 0 || line.text.find_first_not_of(plain) != std::string::npos)
            found.unsure = "its command is a text of several lines, or with signs of a shell";
        for (std::size_t at = line.text.find_first_not_of(' '); at < line.text.size();) {
            const std::size_t end = std::min(line.text.find(' ', at), line.text.size());
            const std::size_t from = line.begin + (line.quote != 0 ? 1 : 0);
            keep({.text = line.text.substr(at, end - at), .begin = from + at, .end = from + end},
                 DeployWord::Stands::in_line);
            at = line.text.find_first_not_of(' ', end);
        }
    }

    [[nodiscard]] std::size_t words_of_dynamo(const std::vector<std::string>& words) const {
        std::size_t count = 0;
        for (const std::string& word : engine_.started_by.dynamo) {
            if (word.starts_with("--") || word.find('{') != std::string::npos) break;
            if (count >= words.size() || words[count] != word) return 0;
            ++count;
        }
        return count;
    }
    [[nodiscard]] bool begin_with_flags(const std::vector<std::string>& words) const {
        if (!words.front().starts_with("--")) return false;
        const CommandSettings read = CommandReader({engine_}).flags(words, engine_);
        return std::any_of(read.settings.begin(), read.settings.end(), [](const Setting& setting) {
            return setting.kind == Setting::Kind::parameter;
        });
    }

    void read_environment(const DeployNode& node, DeployCommand& found) const {
        for (const char* part : {"env", "environment"}) {
            const DeployNode* environment = node.find(part);
            if (environment == nullptr) continue;
            for (const auto& [name, value] : environment->entries)
                found.environment[name] = value.text;
            for (const DeployNode& item : environment->items)
                if (const std::size_t equals = item.text.find('='); equals != std::string::npos)
                    found.environment[item.text.substr(0, equals)] = item.text.substr(equals + 1);
                else if (const std::string name = item.text_of("name"); !name.empty())
                    found.environment[name] = item.text_of("value");
        }
        for (const auto& [name, value] : found.environment) {
            bool sets_flags = name == engine_.started_by.kserve;
            for (const std::string& beginning : engine_.flag_variables)
                sets_flags = sets_flags || name.starts_with(beginning);
            if (sets_flags) found.unsure = "the variable " + name + " sets flags of it too";
        }
        for (const std::string& word : found.texts())
            for (const std::string& flag : engine_.file_flags)
                if (word == flag || word.starts_with(flag + "="))
                    found.unsure = flag + " takes a file that may set any flag of it";
    }

    void add(DeployCommand found) {
        constexpr std::array<std::string_view, 10> structure{
            "spec",        "template",   "containers", "services", "podTemplate",
            "jobTemplate", "components", "items",      "data",     "metadata"};
        const DeployNode* metadata = document_->find("metadata");
        const std::string object = metadata != nullptr ? metadata->text_of("name") : "";
        std::string label = document_->text_of("kind");
        if (!object.empty()) label += (label.empty() ? "" : "/") + object;
        for (auto name = names_.rbegin(); name != names_.rend(); ++name) {
            if (name->empty() ||
                std::find(structure.begin(), structure.end(), *name) != structure.end())
                continue;
            if (found.names.empty()) label += (label.empty() ? "" : "/") + *name;
            found.names.push_back(*name);
        }
        found.label = label.empty() ? "the file" : label;
        found.names.push_back(object);
        found.names.push_back(found.label);
        file_.commands.push_back(std::move(found));
    }

    DeployFile& file_;
    const Engine& engine_;
    std::string program_;
    const DeployNode* document_ = nullptr;
    std::vector<std::string> names_{};  ///< on the way from the document
    bool in_command_ = false;
};

}  // namespace

std::vector<std::string> DeployCommand::texts() const {
    std::vector<std::string> result;
    for (const DeployWord& word : words) result.push_back(word.text);
    return result;
}

DeployFile read_deploy_file(std::string text, std::string_view name, const Engine& engine) {
    constexpr std::size_t longest = 1U << 20U;
    if (text.size() > longest) throw ParseError("a deploy file of more than 1 MiB is not read");
    if (text.find('\0') != std::string::npos)
        throw ParseError("it has a zero byte, so it is no text");
    if (!names_yaml_file(name))
        throw ParseError("only files of YAML are read (.yaml, .yml); scripts and units are not");
    if (text.starts_with("{{") || text.find("\n{{") != std::string::npos)
        throw ParseError("it is a template of Helm");
    DeployFile file;
    file.text = std::move(text);
    DeployFinder(file, engine).find(documents_of(file.text));
    return file;
}

}  // namespace servetune
