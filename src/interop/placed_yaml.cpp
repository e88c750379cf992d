// SPDX-License-Identifier: Apache-2.0
#include "placed_yaml.hpp"

#include "servetune/error.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace servetune {
namespace {

constexpr std::string_view mark_of_utf8 = "\xEF\xBB\xBF";

bool is_yaml_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Makes the tree of what yaml-cpp's parser finds.
class TreeBuilder : public YAML::EventHandler {
public:
    TreeBuilder(std::string_view file, std::size_t offset) : file_(file), offset_(offset) {}

    void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        leaf(node(YamlNode::Kind::null, mark, anchor, ""));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        aliased_.insert(anchor);
        leaf(node(YamlNode::Kind::alias, mark, anchor, ""));
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        YamlNode scalar = node(YamlNode::Kind::scalar, mark, anchor, tag);
        scalar.text = value;
        leaf(std::move(scalar));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value style) override {
        open(node(YamlNode::Kind::sequence, mark, anchor, tag), style);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value style) override {
        open(node(YamlNode::Kind::mapping, mark, anchor, tag), style);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

    YamlNode taken() {
        mark_shared(root_, false);
        return std::move(root_);
    }

private:
    struct Open {
        YamlNode node;
        std::vector<YamlNode> children{};
    };
    YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor,
                  const std::string& tag) {
        YamlNode result;
        result.kind = kind;
        result.tag = tag;
        result.anchor = anchor;
        std::size_t at = offset_ + static_cast<std::size_t>(std::max(0, mark.pos));
        while (kind != YamlNode::Kind::alias && at < file_.size() &&
               (file_[at] == '&' || file_[at] == '!')) {
            while (at < file_.size() && !is_yaml_blank(file_[at])) ++at;
            while (at < file_.size() && is_yaml_blank(file_[at])) ++at;
        }
        result.begin = at;
        return result;
    }
    void open(YamlNode started, YAML::EmitterStyle::value style) {
        constexpr std::size_t deepest = 100;
        if (open_.size() >= deepest)
            throw ParseError("the file nests deeper than " + std::to_string(deepest));
        started.flow = style == YAML::EmitterStyle::Flow;
        open_.push_back({std::move(started)});
    }
    void leaf(YamlNode done) {
        if (open_.empty()) root_ = std::move(done);
        else open_.back().children.push_back(std::move(done));
    }
    void close() {
        Open last = std::move(open_.back());
        open_.pop_back();
        if (last.node.kind == YamlNode::Kind::sequence) last.node.items = std::move(last.children);
        else {
            std::set<std::string> seen;
            for (std::size_t i = 0; i + 1 < last.children.size(); i += 2) {
                const YamlNode& key = last.children[i];
                if (key.kind == YamlNode::Kind::scalar && !seen.insert(key.text).second)
                    throw ParseError("the key '" + key.text + "' stands twice in one mapping");
                last.node.entries.emplace_back(std::move(last.children[i]),
                                               std::move(last.children[i + 1]));
            }
        }
        leaf(std::move(last.node));
    }
    void mark_shared(YamlNode& at, bool below) {
        at.shared = below || (at.anchor != 0 && at.kind != YamlNode::Kind::alias &&
                              aliased_.contains(at.anchor));
        for (auto& [key, value] : at.entries) mark_shared(value, at.shared);
        for (YamlNode& item : at.items) mark_shared(item, at.shared);
    }

    std::string_view file_;
    std::size_t offset_;
    std::vector<Open> open_{};
    YamlNode root_{};
    std::set<std::size_t> aliased_{};
};

/// Walks through the bytes of a scalar and its text side by side: blanks with a line end among them
/// are one blank, or a line end, of the text.
class ScalarAlignment {
public:
    ScalarAlignment(std::string_view file, const YamlNode& scalar)
        : file_(file), value_(scalar.text), at_(scalar.begin) {
        style_ = at_ < file_.size() ? file_[at_] : '\0';
        if (style_ == '|' || style_ == '>') {
            at_ = std::min(file_.find('\n', at_), file_.size() - 1) + 1;
            blanks();
        } else if (style_ == '\'' || style_ == '"') ++at_;
        else style_ = 'p';
        while (done_ < value_.size()) step();
        if ((style_ == '\'' || style_ == '"') && (at_ >= file_.size() || file_[at_] != style_))
            refuse();
    }
    PlacedText result{};
    [[nodiscard]] std::size_t end() const {
        return at_ + (style_ == '\'' || style_ == '"' ? 1 : 0);
    }
    [[nodiscard]] char style() const { return style_; }

private:
    [[noreturn]] void refuse() const {
        throw ParseError(
            "the form of the text '" + value_.substr(0, 40) + "' cannot be followed (line " +
            std::to_string(1 + std::count(file_.begin(),
                                          file_.begin() + static_cast<std::ptrdiff_t>(
                                                              std::min(at_, file_.size())),
                                          '\n')) +
            ")");
    }
    void take(std::size_t bytes) {
        result.add(value_[done_++], {at_, at_ + bytes});
        at_ += bytes;
    }
    void blanks() {
        std::size_t end = at_;
        bool line_end = style_ == '|' || style_ == '>' ? done_ == 0 : false;
        for (; end < file_.size(); ++end) {
            const bool folded = style_ == '"' && file_[end] == '\\' && end + 1 < file_.size() &&
                                (file_[end + 1] == '\n' || file_[end + 1] == '\r');
            if (!folded && !is_yaml_blank(file_[end])) break;
            line_end = line_end || file_[end] == '\n';
        }
        std::size_t last = done_;
        while (last < value_.size() && is_yaml_blank(value_[last])) ++last;
        if (!line_end && end == file_.size())
            line_end = true;  // a block whose last line has no end
        if (!line_end) {
            if (end - at_ < last - done_ ||
                value_.compare(done_, last - done_, file_.substr(at_, last - done_)) != 0)
                refuse();
            while (done_ < last) take(1);
            return;
        }
        for (; done_ < last; ++done_) result.add(value_[done_], {at_, end});
        at_ = end;
    }
    void step() {
        if (at_ >= file_.size() && !is_yaml_blank(value_[done_])) refuse();
        const char c = at_ < file_.size() ? file_[at_] : '\n';
        const char next = at_ + 1 < file_.size() ? file_[at_ + 1] : '\0';
        if (style_ == '"' && c == '\\' && next != '\n' && next != '\r') {
            const char meant = next == 'n'   ? '\n'
                               : next == 't' ? '\t'
                               : std::string_view("\\\"/ ").find(next) != std::string_view::npos
                                   ? next
                                   : '\0';
            if (meant != value_[done_]) refuse();
            take(2);
        } else if (is_yaml_blank(value_[done_])) {
            const std::size_t before = done_;
            blanks();
            if (done_ == before) refuse();
        } else if (style_ == '\'' && c == '\'') {
            if (next != '\'' || value_[done_] != '\'') refuse();
            take(2);
        } else if (c == value_[done_] && (style_ != '"' || c != '"')) take(1);
        else refuse();
    }

    std::string_view file_;
    const std::string& value_;
    std::size_t at_;
    std::size_t done_ = 0;
    char style_ = 'p';
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
    for (const auto& [name, value] : entries)
        if (name.kind == Kind::scalar && name.text == key) return &value;
    return nullptr;
}

std::string YamlNode::text_of(std::string_view key) const {
    const YamlNode* found = find(key);
    return found != nullptr && found->kind == Kind::scalar ? found->text : "";
}

void YamlNode::flatten(const std::string& path, std::map<std::string, std::string>& into) const {
    into[path] =
        std::to_string(static_cast<int>(kind)) + tag + "#" + std::to_string(anchor) + "=" + text;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::string key = path + "/" + entries[i].first.text;
        entries[i].second.flatten(
            entries[i].first.kind == Kind::scalar ? key : path + "/?" + std::to_string(i), into);
    }
    for (std::size_t i = 0; i < items.size(); ++i)
        items[i].flatten(path + "/" + item_name(*this, i), into);
}

std::string item_name(const YamlNode& list, std::size_t i) {
    const std::string name = list.items[i].text_of("name");
    const auto same = [&](const YamlNode& other) { return other.text_of("name") == name; };
    if (!name.empty() && std::count_if(list.items.begin(), list.items.end(), same) == 1)
        return "[" + name + "]";
    return "[" + std::to_string(i) + "]";
}

std::vector<YamlNode> yaml_documents(std::string_view file) {
    constexpr std::size_t longest = 1U << 20U;
    if (file.size() > longest) throw ParseError("a deploy file of more than 1 MiB is not changed");
    const std::size_t offset = file.starts_with(mark_of_utf8) ? mark_of_utf8.size() : 0;
    std::istringstream stream{std::string(file.substr(offset))};
    std::vector<YamlNode> documents;
    try {
        YAML::Parser parser(stream);
        for (;;) {
            TreeBuilder builder(file, offset);
            if (!parser.HandleNextDocument(builder)) break;
            documents.push_back(builder.taken());
        }
    } catch (const YAML::Exception& error) {
        throw ParseError("line " + std::to_string(error.mark.line + 1) + ": " + error.msg);
    }
    return documents;
}

PlacedText placed_scalar(std::string_view file, const YamlNode& scalar) {
    ScalarAlignment aligned(file, scalar);
    if (aligned.style() == '\'') aligned.result.within = {Quoting::yaml_single};
    if (aligned.style() == '"') aligned.result.within = {Quoting::yaml_double};
    aligned.result.expanded = true;
    return std::move(aligned.result);
}

FileWord scalar_word(std::string_view file, const YamlNode& scalar, bool in_flow) {
    FileWord word;
    ScalarAlignment aligned(file, scalar);
    word.value = placed_scalar(file, scalar);
    word.file = {scalar.begin, aligned.end()};
    word.quote = aligned.style() == '\''  ? Quoting::yaml_single
                 : aligned.style() == '"' ? Quoting::yaml_double
                                          : Quoting::none;
    word.stands = FileWord::Stands::as_item;
    word.in_flow = in_flow;
    word.varies =
        scalar.text.find('$') != std::string::npos || scalar.text.find("{{") != std::string::npos;
    return word;
}

}  // namespace servetune
