// SPDX-License-Identifier: Apache-2.0
#include "deploy_edit.hpp"

#include "deploy_units.hpp"
#include "engine/command_reader.hpp"
#include "engine/shell_word.hpp"
#include "servetune/error.hpp"
#include "shell_programs.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

/// Whether YAML reads plain text as a text or, where `number` is right too, as this very number.
bool plain_as_variable(const std::string& text, bool number) {
    constexpr std::array<std::string_view, 12> others{
        "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "none"};
    std::string low;
    for (const char c : text) low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (is_gpu_count(text)) return number && (text.size() == 1 || text.front() != '0');
    return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
           !is_one_of(low, others);
}

/// One replacement of bytes.
struct ByteEdit {
    Span place;
    std::string text;
};

/// Collects the edits of one command, and what its words are after them.
class CommandEditor {
public:
    CommandEditor(const DeployFile& file, const DeployCommand& command, const DeployWish& wish)
        : file_(file),
          text_(file.text),
          command_(command),
          words_(command.words),
          now_(command.texts()),
          gone_(words_.size(), false),
          file_units_(flag_units(now_, wish.engine, *wish.reader)),
          wish_(wish) {
        environment_ = texts_of_environment(command);
    }

    void apply(const DeployDifference& difference) {
        const std::vector<FlagUnit> wanted = flag_units(wish_.flags, wish_.engine, *wish_.reader);
        for (const DeployChange& change : difference.changes) {
            const auto is_meant = [&](const FlagUnit& unit) { return unit.name() == change.name; };
            const auto to = std::find_if(wanted.begin(), wanted.end(), is_meant);
            if (wish_.environment.contains(change.name) && to == wanted.end())
                set_variable(change.name, change.after);
            else if (change.name == "GPUs") set_gpus(change.after);
            else if (change.name == model_change) set_model(change.after);
            else if (change.after.empty()) {
                for (const FlagUnit& unit : file_units_)
                    if (unit.name() == change.name) remove(unit.begin, unit.end);
            } else if (to != wanted.end()) set_flag(*to);
        }
        for (const FlagUnit* unit : added_) add(*unit);
        flush_added();
    }

    [[nodiscard]] std::string result() {
        std::stable_sort(edits_.begin(), edits_.end(), [](const ByteEdit& a, const ByteEdit& b) {
            return a.place.begin != b.place.begin ? a.place.begin < b.place.begin
                                                  : a.place.end < b.place.end;
        });
        std::string text;
        std::size_t at = 0;
        for (const ByteEdit& edit : edits_) {
            if (edit.place.begin < at) throw ParseError("two changes touch the same place");
            text.append(text_, at, edit.place.begin - at).append(edit.text);
            at = edit.place.end;
        }
        return text.append(text_, at, std::string::npos);
    }
    [[nodiscard]] std::vector<std::string> expected() const {
        std::vector<std::string> words;
        for (std::size_t i = 0; i < now_.size(); ++i) {
            if (!gone_[i]) words.push_back(now_[i]);
            if (i == anchor_) words.insert(words.end(), new_words_.begin(), new_words_.end());
        }
        return words;
    }
    [[nodiscard]] const std::map<std::string, std::string>& environment() const {
        return environment_;
    }

    static std::map<std::string, std::string> texts_of_environment(const DeployCommand& command) {
        std::map<std::string, std::string> result;
        for (const auto& [name, word] : command.environment) result[name] = word.text();
        return result;
    }

private:
    void refuse(const std::string& why) const { throw ParseError(why); }
    /// Signs for which the file, or what reads it, puts something else.
    [[nodiscard]] bool would_expand(const std::string& text) const {
        const bool specifier =
            file_.kind == DeployFileKind::unit && text.find('%') != std::string::npos;
        return specifier || text.find('$') != std::string::npos ||
               text.find("{{") != std::string::npos;
    }
    void replace(std::size_t i, const std::string& text) {
        const FileWord& word = words_[i];
        if (word.varies) refuse("'" + word.text() + "' is known only where it runs");
        if (would_expand(text))
            refuse("the new value has a sign that the file may expand: " + text);
        const std::string shown =
            word.stands == FileWord::Stands::as_entry ? text.substr(text.find('=') + 1) : text;
        edits_.push_back({word.file, text_for(shown, word)});
        now_[i] = text;
    }
    [[nodiscard]] Span line_of_word(std::size_t i) const {
        const Span own = words_[i].stands == FileWord::Stands::as_entry
                             ? Span{words_[i].key.begin, words_[i].file.end}
                             : words_[i].file;
        const std::size_t begin = text_.rfind('\n', own.begin) + 1;
        const std::size_t end = std::min(text_.find('\n', own.end), text_.size() - 1) + 1;
        const std::string_view before = std::string_view(text_).substr(begin, own.begin - begin);
        std::string_view behind = std::string_view(text_).substr(own.end, end - own.end);
        behind.remove_prefix(std::min(behind.find_first_not_of(" \t\r\n"), behind.size()));
        const bool alone = before.find_first_not_of(" -") == std::string_view::npos &&
                           std::count(before.begin(), before.end(), '-') <= 1;
        if (!alone || (!behind.empty() && !behind.starts_with('#')))
            refuse("'" + words_[i].text() + "' does not stand alone on its line");
        return {begin, end};
    }
    [[nodiscard]] bool in_block(std::size_t i) const {
        return words_[i].stands != FileWord::Stands::in_text && !words_[i].in_flow;
    }

    void remove(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (words_[i].varies) refuse("'" + words_[i].text() + "' is known only where it runs");
            if (words_[i].group != words_[begin].group)
                refuse("'" + words_[begin].text() + "' and its value stand in different places");
            gone_[i] = true;
        }
        const auto others = [&](std::size_t i) {
            return i < words_.size() && words_[i].group == words_[begin].group;
        };
        if (in_block(begin)) {
            for (std::size_t i = begin; i < end; ++i) edits_.push_back({line_of_word(i), ""});
            bool left = false;
            for (std::size_t i = 0; i < words_.size(); ++i) left = left || (others(i) && !gone_[i]);
            if (!left) refuse("nothing would be left of the list");
            return;
        }
        // The blanks behind it go too where nothing is left before it, else those before it.
        Span place{words_[begin].file.begin, words_[end - 1].file.end};
        std::size_t kept = begin;
        while (kept > 0 && others(kept - 1) && gone_[kept - 1]) --kept;
        if (kept > 0 && others(kept - 1)) place.begin = words_[begin - 1].file.end;
        else if (others(end)) place.end = words_[end].file.begin;
        const auto has_comment = [&](std::size_t from, std::size_t to) {
            return from < to &&
                   std::string_view(text_).substr(from, to - from).find_first_of("#;") !=
                       std::string_view::npos;
        };
        bool comment = has_comment(place.begin, words_[begin].file.begin) ||
                       has_comment(words_[end - 1].file.end, place.end);
        for (std::size_t i = begin + 1; i < end; ++i)
            comment = comment || has_comment(words_[i - 1].file.end, words_[i].file.begin);
        if (comment) refuse("a comment beside '" + words_[begin].text() + "' would go with it");
        for (ByteEdit& edit : edits_)
            if (edit.text.empty() && edit.place.end == place.begin &&
                edit.place.begin < place.begin) {
                edit.place.end = place.end;
                return;
            }
        edits_.push_back({place, ""});
    }

    void set_flag(const FlagUnit& to) {
        const auto is_same = [&](const FlagUnit& unit) { return unit.key == to.key; };
        const auto last = std::find_if(file_units_.rbegin(), file_units_.rend(), is_same);
        if (last == file_units_.rend()) {
            added_.push_back(&to);
            return;
        }
        if (last->dotted || to.dotted) refuse("'" + to.name() + "' stands there in parts");
        const std::string& first = now_[last->begin];
        const std::size_t equals = first.find('=');
        const bool entry = words_[last->begin].stands == FileWord::Stands::as_entry;
        if (last->end - last->begin > 2) refuse("'" + to.name() + "' takes several words");
        if (entry) replace(last->begin, first.substr(0, equals + 1) + to.value);
        else if (to.alone || last->alone) {
            replace(last->begin, to.alone ? to.words.front() : first + "=" + to.value);
            if (last->end - last->begin == 2) remove(last->begin + 1, last->end);
        } else if (equals != std::string::npos)
            replace(last->begin, first.substr(0, equals + 1) + to.value);
        else replace(last->begin + 1, to.value);
    }

    void set_model(const std::string& model) {
        const FlagUnit* unit = model_unit(file_units_);
        if (unit == nullptr || unit->end - unit->begin > 2)
            return refuse("its model stands in no form that is known");
        const std::string& first = now_[unit->begin];
        const std::size_t equals = first.starts_with('-') ? first.find('=') : std::string::npos;
        if (unit->end - unit->begin == 2) replace(unit->begin + 1, model);
        else
            replace(unit->begin,
                    equals == std::string::npos ? model : first.substr(0, equals + 1) + model);
    }

    /// Behind the last flag that is known.
    void choose_anchor() {
        if (anchor_ != none) return;
        for (const FlagUnit& unit : file_units_) {
            bool known = true;
            for (std::size_t i = unit.begin; i < unit.end; ++i)
                known = known && !words_[i].varies && !gone_[i];
            if (known) anchor_ = unit.end - 1;
        }
        for (std::size_t i = words_.size(); i-- > 0 && anchor_ == none;)
            if (!gone_[i]) anchor_ = i;
        if (anchor_ == none) refuse("it has no word behind which a flag could be added");
    }
    /// What stands between two words of the file.
    [[nodiscard]] std::string gap(std::size_t i) const {
        std::string between =
            text_.substr(words_[i - 1].file.end, words_[i].file.begin - words_[i - 1].file.end);
        if (in_block(i)) {
            const std::size_t line = between.rfind('\n');
            if (line == std::string::npos) return "";
            const std::string own = between.substr(line + 1);
            return own.find_first_not_of(" -") == std::string::npos ? line_break() + own : "";
        }
        return between.find_first_not_of(" \t\r\n\\,") == std::string::npos ? between : "";
    }
    [[nodiscard]] std::string line_break() const {
        return text_.find("\r\n") != std::string::npos ? "\r\n" : "\n";
    }
    [[nodiscard]] bool one_group(std::size_t i) const {
        return i > 0 && words_[i].group == words_[anchor_].group &&
               words_[i - 1].group == words_[i].group &&
               words_[i - 1].file.end <= words_[i].file.begin;
    }

    void add(const FlagUnit& unit) {
        choose_anchor();
        const FileWord& beside = words_[anchor_];
        for (const FileWord& word : words_)
            if (word.text() == "--") refuse("it has a '--', behind which nothing is a flag");
        for (const std::string& word : unit.words)
            if (would_expand(word)) refuse("a value has a sign that the file may expand: " + word);
        if (beside.stands == FileWord::Stands::as_entry) return add_entry(unit);
        std::string before_flag, before_value;
        std::size_t separate = 0, joined = 0;
        for (const FlagUnit& other : file_units_) {
            if (words_[other.begin].group != beside.group) continue;
            if (other.begin > 0 && one_group(other.begin) && !gap(other.begin).empty())
                before_flag = gap(other.begin);
            if (other.end - other.begin == 2 && one_group(other.begin + 1)) {
                before_value = gap(other.begin + 1);
                ++separate;
            } else if (now_[other.begin].find('=') != std::string::npos) ++joined;
        }
        if (before_flag.empty()) {
            const std::size_t line = text_.rfind('\n', beside.file.begin) + 1;
            before_flag = in_block(anchor_)
                              ? line_break() + text_.substr(line, beside.file.begin - line)
                          : beside.in_flow ? ", "
                                           : " ";
        }
        if (in_block(anchor_)) (void)line_of_word(anchor_);
        const std::size_t equals = unit.words.front().find('=');
        const bool has_value =
            !unit.alone && (unit.words.size() == 2 || equals != std::string::npos);
        std::vector<std::string> words = unit.words;
        if (has_value) {
            const std::string flag = unit.words.front().substr(0, equals);
            const bool two = separate > joined || (separate == joined && unit.words.size() == 2);
            words = two ? std::vector<std::string>{flag, unit.value}
                        : std::vector<std::string>{flag + "=" + unit.value};
        }
        for (std::size_t i = 0; i < words.size(); ++i) {
            FileWord like = beside;
            if (like.quote != Quoting::none && like.stands == FileWord::Stands::in_text)
                like.quote = Quoting::none;
            insertion_ +=
                (i == 0 || before_value.empty() || in_block(anchor_) ? before_flag : before_value) +
                text_for(words[i], like);
            new_words_.push_back(words[i]);
        }
    }
    void add_entry(const FlagUnit& unit) {
        const FileWord& beside = words_[anchor_];
        const std::string key_text =
            text_.substr(beside.key.begin, beside.key.end - beside.key.begin);
        if (command_.entries_path.empty() || !(command_.entries_path.ends_with("rgs")))
            refuse("it has no list to which '" + unit.name() + "' could be added");
        std::string flag = unit.words.front().substr(0, unit.words.front().find('='));
        if (unit.alone && unit.value == "false" && flag.starts_with("--no-"))
            flag.replace(0, 5, "--");
        std::string key;
        const bool camel = std::any_of(key_text.begin(), key_text.end(),
                                       [](char c) { return c >= 'A' && c <= 'Z'; });
        const bool hyphens = key_text.find('-') != std::string::npos;
        for (std::size_t i = 2; i < flag.size(); ++i) {
            if (flag[i] != '-') key += flag[i];
            else if (camel && i + 1 < flag.size())
                key += static_cast<char>(std::toupper(static_cast<unsigned char>(flag[++i])));
            else key += hyphens ? '-' : '_';
        }
        FileWord like = beside;
        like.value.text = unit.value;
        const std::string entry = key + ": " + text_for(unit.value, like);
        const std::size_t line = text_.rfind('\n', beside.key.begin) + 1;
        insertion_ += beside.in_flow
                          ? ", " + entry
                          : line_break() + std::string(beside.key.begin - line, ' ') + entry;
        new_words_.push_back(flag + "=" + unit.value);
    }
    void flush_added() {
        if (insertion_.empty()) return;
        std::size_t at = words_[anchor_].file.end;
        if (in_block(anchor_)) {
            at = std::min(text_.find('\n', at), text_.size());
            if (at > 0 && text_[at - 1] == '\r') --at;
        }
        edits_.insert(edits_.begin(), {{at, at}, insertion_});
    }

    void set_variable(const std::string& name, const std::string& value) {
        if (file_.kind != DeployFileKind::shell && would_expand(value))
            refuse("the variable " + name + " has a sign that the file may expand: " + value);
        const auto there = command_.environment.find(name);
        if (there != command_.environment.end()) {
            FileWord word = there->second;
            if (word.varies) refuse("the variable " + name + " is known only where it runs");
            if (word.stands == FileWord::Stands::as_entry && word.quote == Quoting::none &&
                !plain_as_variable(value, is_gpu_count(word.text())))
                word.quote = Quoting::yaml_double;
            const bool item = word.key.end > 0;
            edits_.push_back({word.file, text_for(item ? name + "=" + value : value, word)});
        } else add_variable(name, value);
        environment_[name] = value;
    }
    void add_variable(const std::string& name, const std::string& value) {
        using Form = EnvironmentPlace::Form;
        const EnvironmentPlace& to = command_.add_environment;
        FileWord yaml;
        yaml.stands = FileWord::Stands::as_entry;
        yaml.quote = Quoting::yaml_double;
        const std::string assignment = name + "=" + quoted_where_needed(value);
        std::string text;
        switch (to.form) {
            case Form::none:
                return refuse("it has no list of variables to which " + name + " could be added");
            case Form::name_and_value: {
                const std::size_t indent = to.before.size() - (to.before.rfind('\n') + 1);
                text = to.before + "name: " + name + line_break() + std::string(indent, ' ') +
                       "value: " + text_for(value, yaml);
                break;
            }
            case Form::mapping: text = to.before + name + ": " + text_for(value, yaml); break;
            case Form::assignments: text = to.before + text_for(name + "=" + value, yaml); break;
            case Form::new_list:
            case Form::new_mapping: {
                const bool list = to.form == Form::new_list;
                if (!std::exchange(has_new_list_, true))
                    text = to.before + (list ? "env:" : "environment:") + line_break();
                text += to.before +
                        (list ? "  - name: " + name + line_break() + to.before + "    value: "
                              : "  " + name + ": ") +
                        text_for(value, yaml) + line_break();
                break;
            }
            case Form::shell_prefix: text = embedded(assignment + " ", to.within); break;
            case Form::container_option: text = embedded(" -e " + assignment, to.within); break;
            case Form::unit_line: {
                const bool plain = quoted_where_needed(value) == value;
                text =
                    "Environment=" +
                    (plain ? name + "=" + value
                           : "\"" + embedded(name + "=" + value, {Quoting::unit_double}) + "\"") +
                    line_break();
                break;
            }
        }
        edits_.push_back({{to.at, to.at}, text});
    }
    void set_gpus(const std::string& count) {
        for (const GpuCount& gpus : command_.gpus)
            edits_.push_back({gpus.word.file, text_for(count, gpus.word)});
    }

    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    const DeployFile& file_;
    const std::string& text_;
    const DeployCommand& command_;
    const std::vector<FileWord>& words_;
    std::vector<std::string> now_;
    std::vector<bool> gone_;
    std::vector<FlagUnit> file_units_;
    const DeployWish& wish_;
    std::vector<ByteEdit> edits_{};
    std::vector<const FlagUnit*> added_{};
    std::size_t anchor_ = none;
    std::string insertion_{};
    bool has_new_list_ = false;
    std::vector<std::string> new_words_{};
    std::map<std::string, std::string> environment_{};
};

}  // namespace

DeployEdit edit_deploy_file(const DeployFile& file, const DeployCommand& command,
                            const DeployWish& wish, const std::string& name) {
    DeployEdit result;
    result.difference = difference_of(command, wish);
    result.unsafe = command.unsafe;
    for (const std::string& what : wish.left_to_them)
        if (result.unsafe.empty()) result.unsafe = "no file can get all of it: " + what;
    if (!result.unsafe.empty()) return result;
    if (result.difference.changes.empty()) {
        result.text = file.text;
        return result;
    }
    try {
        CommandEditor editor(file, command, wish);
        editor.apply(result.difference);
        std::string text = editor.result();
        const DeployFile now = read_deploy_file(text, name, wish.engine);
        const auto which = static_cast<std::size_t>(&command - file.commands.data());
        if (now.commands.size() != file.commands.size())
            throw ParseError("the changed file would not start the engine as often as before");
        const DeployCommand& changed = now.commands[which];
        if (changed.texts() != editor.expected() || !difference_of(changed, wish).changes.empty())
            throw ParseError("the changed file would not say what is recommended");
        for (std::size_t i = 0; i < now.commands.size(); ++i)
            if (i != which && (now.commands[i].texts() != file.commands[i].texts() ||
                               CommandEditor::texts_of_environment(now.commands[i]) !=
                                   CommandEditor::texts_of_environment(file.commands[i])))
                throw ParseError("it would change " + file.commands[i].label +
                                 " too, which takes it from the same place");
        if (CommandEditor::texts_of_environment(changed) != editor.environment())
            throw ParseError("the changed file would have another environment");
        if (!file.same_but_for(command, now))
            throw ParseError("the changed file would say something else differently");
        result.text = std::move(text);
    } catch (const ParseError& error) {
        result.unsafe = error.what();
    }
    return result;
}

}  // namespace servetune
