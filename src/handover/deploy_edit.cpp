// SPDX-License-Identifier: Apache-2.0
// What a deploy file says against what a study recommends, and the change that makes them one.
#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/variable_name.hpp"
#include "deploy_file.hpp"
#include "engine/engine_value.hpp"
#include "engine/shell_word.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace servetune {
namespace {

using Stands = DeployWord::Stands;

Value value_in(const FlagUnit& unit) {
    return normalized_value(*unit.parameter, value_of(unit.value));
}

/// It has this value: a number, a switch, one of its words. Else it may be a secret.
bool is_known(const FlagUnit& unit) {
    const Value value = value_in(unit);
    return number_of(value) || std::holds_alternative<bool>(value) ||
           unit.parameter->parameter.level_of(value);
}

bool same_setting(const FlagUnit& a, const FlagUnit& b) {
    if (a.parameter != nullptr) return value_in(a) == value_in(b);
    const auto x = shallow_json<nlohmann::json>(a.value), y = shallow_json<nlohmann::json>(b.value);
    return x.is_object() && y.is_object() ? x == y : a.value == b.value;
}

/// A name on a hub or a path; an address may hold a key.
std::string shown_checkpoint(const std::string& name) {
    return !contains(name, "://") && name.find_first_of("?@") == std::string::npos ? name : "***";
}

bool takes_json(const Engine& engine, const std::string& flag) {
    return any_of(engine.json_flags, [&](const JsonFlag& json) { return json.flag == flag; });
}

bool says_default(const FlagUnit& unit) {
    return unit.parameter != nullptr && value_in(unit) == unit.parameter->parameter.default_value;
}

/// The last counts.
const FlagUnit* last_with(const std::vector<FlagUnit>& units, std::string_view key) {
    const auto found = std::find_if(units.rbegin(), units.rend(),
                                    [&](const FlagUnit& unit) { return unit.key == key; });
    return found == units.rend() ? nullptr : &*found;
}

/// A checkpoint is as much a result of the study as a flag.
void compare_models(const std::vector<FlagUnit>& there, const DeploySpec& spec,
                    DeployDifference& result) {
    const FlagUnit* now = last_with(there, "{model}");
    const std::string name = now == nullptr ? "" : now->value, shown = shown_checkpoint(name);
    if (spec.model.empty() || name == spec.model) return;
    result.no_checkpoint = now == nullptr;
    if (!spec.other_models.empty())
        result.changes.push_back({"model", shown, spec.model, !spec.other_models.contains(name)});
    else
        result.risks.push_back(
            (now == nullptr ? "Its command names no checkpoint" : "The file serves " + shown) +
            "; the study measured " + spec.model + ".");
}

/// Collects the edits of one command, and what its words are after them.
class DeployEditor {
public:
    DeployEditor(const DeployFile& file, const DeployCommand& command, const DeploySpec& spec)
        : text_(file.text),
          words_(command.words),
          empty_list_(command.empty_list),
          now_(command.texts()),
          gone_(words_.size(), false),
          units_(flag_units(now_, spec.engine, *spec.reader)),
          wanted_(flag_units(spec.flags, spec.engine, *spec.reader)) {}

    void apply(const DeployChange& change) {
        const auto named = [&](const FlagUnit& unit) { return unit.name() == change.name; };
        if (change.name == "model") return set(*last_with(units_, "{model}"), change.after);
        if (change.after.empty()) {
            for (const FlagUnit& unit : units_)
                if (named(unit))
                    for (std::size_t i = unit.begin; i < unit.end; ++i) remove(i);
            return;
        }
        const FlagUnit& to = *std::find_if(wanted_.rbegin(), wanted_.rend(), named);
        const FlagUnit* now = last_with(units_, to.key);
        if (now == nullptr) added_.insert(added_.end(), to.words.begin(), to.words.end());
        else if (to.alone != now->alone || to.dotted() || now->dotted())
            throw ParseError(to.name() + " stands there in another form");
        else if (to.alone) replace(now->begin, to.words.front());
        else set(*now, to.value);
    }

    [[nodiscard]] std::string result() {
        if (!added_.empty()) add();
        sort(edits_);
        std::string text;
        std::size_t at = 0;
        for (const auto& [begin, end, with] : edits_) {
            if (begin < at) throw ParseError("two changes touch the same place");
            text.append(text_, at, begin - at).append(with);
            at = end;
        }
        return text.append(text_, at, std::string::npos);
    }
    [[nodiscard]] Texts expected() const {
        Texts words;
        for (std::size_t i = 0; i < now_.size(); ++i)
            if (!gone_[i]) words.push_back(now_[i]);
        words.insert(words.end(), added_.begin(), added_.end());
        return words;
    }

private:
    const DeployWord& changeable(std::size_t i) const {
        if (words_[i].end == 0)
            throw ParseError("a word of its command stands in a form that is not changed");
        return words_[i];
    }
    /// In the quotes of the word in whose place or behind which it stands, unless others fit.
    [[nodiscard]] std::string written(const std::string& text,
                                      const DeployWord& in_place_of) const {
        if (text.find_first_of("$`\n") != std::string::npos)
            throw ParseError("a recommended value has a sign that the file may expand");
        if (in_place_of.stands == Stands::in_line) {
            if (text.empty() || quoted_where_needed(text) != text)
                throw ParseError("a recommended value needs quotes, and stands in one line");
            return text;
        }
        const bool single = text_[in_place_of.begin] == '\'' || contains(text, '"');
        if (single && !contains(text, '\'')) return "'" + text + "'";
        const bool bare = in_place_of.end - in_place_of.begin == in_place_of.text.size() &&
                          text.starts_with("--") && quoted_where_needed(text) == text &&
                          text.find_first_of(":,%") == std::string::npos;
        return bare ? text : yaml_quoted(text);
    }
    void replace(std::size_t i, const std::string& text) {
        const DeployWord& word = changeable(i);
        edits_.emplace_back(word.begin, word.end, written(text, word));
        now_[i] = text;
    }
    /// Another value of a flag, or another model by position.
    void set(const FlagUnit& unit, const std::string& value) {
        if (unit.end - unit.begin > 2) throw ParseError(unit.name() + " takes several words there");
        const std::string& first = now_[unit.begin];
        const std::size_t equals = first.starts_with('-') ? first.find('=') : std::string::npos;
        if (unit.end - unit.begin == 2) replace(unit.begin + 1, value);
        else
            replace(unit.begin,
                    equals == std::string::npos ? value : first.substr(0, equals + 1) + value);
    }
    /// What comes and goes with a word: of an item alone on its line that line, with the line end
    /// before it; of others the blanks and the comma before them.
    [[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::size_t i) const {
        const DeployWord& word = changeable(i);
        const bool block = word.stands == Stands::block_item;
        if (!block && (i == 0 || words_[i - 1].list != word.list))
            throw ParseError("the first word of its list would go");
        const std::size_t begin =
            block ? text_.find_last_not_of(" -", word.begin - 1) : changeable(i - 1).end;
        const std::size_t end =
            block ? std::min(text_.find_first_of("\r\n", word.end), text_.size()) : word.end;
        const std::size_t behind = text_.find_first_not_of(" \t", word.end);
        const bool alone = block ? text_[begin] == '\n' && (behind >= end || text_[behind] == '#')
                                 : text_.find_first_not_of(" ,", begin) == word.begin;
        if (!alone) throw ParseError("something else stands beside a word of its command");
        return {block && begin > 0 && text_[begin - 1] == '\r' ? begin - 1 : begin, end};
    }
    void remove(std::size_t i) {
        gone_[i] = true;
        const auto [begin, end] = place_of(i);
        edits_.emplace_back(begin, end, "");
        for (std::size_t other = 0; other < words_.size(); ++other)
            if (!gone_[other] && words_[other].list == words_[i].list) return;
        throw ParseError("nothing would be left of the list");
    }
    /// Behind the last word that stays, each as that stands.
    void add() {
        if (contains(now_, "--"))
            throw ParseError("behind the word -- in it nothing is a flag: take that word away");
        std::size_t stay = words_.size();
        while (stay > 0 && gone_[stay - 1]) --stay;
        if (stay == 0)
            throw ParseError("no word of it stays: write " + added_.front() + " into it by hand");
        if (empty_list_ > 0) {
            std::string text;
            for (const std::string& word : added_)
                text += (text.empty() ? "" : ", ") + written(word, {.end = 1});
            edits_.emplace_back(empty_list_, empty_list_, text);
            return;
        }
        const DeployWord& last = changeable(stay - 1);
        std::string before = last.stands == Stands::flow_item ? ", " : " ", text;
        std::size_t at = last.end;
        if (last.stands == Stands::block_item) {
            const auto [begin, end] = place_of(stay - 1);
            before = text_.substr(begin, last.begin - begin);
            at = end;
        }
        for (const std::string& word : added_) text += before + written(word, last);
        edits_.emplace_back(at, at, text);
    }

    const std::string& text_;
    const std::vector<DeployWord>& words_;
    const std::size_t empty_list_;
    Texts now_;
    std::vector<bool> gone_;
    std::vector<FlagUnit> units_, wanted_;
    std::vector<std::tuple<std::size_t, std::size_t, std::string>> edits_{};
    Texts added_{};
};

/// What a file says but for one command.
Texts others_of(const DeployFile& file, std::size_t which) {
    Texts result = file.parts;
    for (std::size_t i = 0; i < file.commands.size(); ++i)
        for (const DeployWord& word : file.commands[i].words)
            if (i != which) result.push_back(word.text);
    return result;
}

std::string edited_text(const DeployFile& file, const DeployCommand& command,
                        const DeploySpec& spec, const DeployDifference& difference,
                        std::string_view name) {
    DeployEditor editor(file, command, spec);
    for (const DeployChange& change : difference.changes) editor.apply(change);
    std::string text = editor.result();
    const DeployFile now = read_deploy_file(text, name, spec.engine);
    const auto which = std::size_t(&command - file.commands.data());
    if (now.commands.size() != file.commands.size() ||
        now.commands[which].texts() != editor.expected() ||
        !difference_of(now.commands[which], spec).changes.empty())
        throw ParseError("the changed file would not say what is recommended");
    if (others_of(file, which) != others_of(now, which))
        throw ParseError("the changed file would say something else differently");
    return text;
}

}  // namespace

std::string FlagUnit::text(bool masked) const {
    if (!masked || known) return fmt::format("{}", fmt::join(words, " "));
    std::string name = words.front().substr(0, words.front().find('='));
    if (!name.starts_with("--")) name.resize(std::min<std::size_t>(name.size(), 2));  // `-pSECRET`
    return alone && name == words.front() ? name : name + " ***";
}

std::vector<FlagUnit> flag_units(const Texts& words, const Engine& engine,
                                 const CommandReader& reader) {
    std::vector<FlagUnit> result;
    for (const Setting& setting : reader.flags(words, engine).settings) {
        using Kind = Setting::Kind;
        if (!setting.key.empty() || setting.kind == Kind::variable) continue;
        FlagUnit unit{.flag = setting.name,
                      .value = setting.value,
                      .words = setting.words,
                      .begin = setting.at,
                      .end = setting.at + setting.words.size()};
        const std::string base = setting.name.substr(0, setting.name.find('.'));
        const bool json = takes_json(engine, base);
        unit.alone =
            setting.alone || (setting.words.size() == 1 && !contains(setting.words.front(), '='));
        unit.not_about_speed = setting.not_about_speed;
        unit.key = setting.kind == Kind::model    ? "{model}"
                   : setting.kind == Kind::launch ? "{launch}"
                   : setting.kind == Kind::unread ? "{unread}"
                   : setting.beginning            ? "{beginning}"
                   : json                         ? base
                                                  : setting.name;
        if (setting.kind == Kind::parameter && !json && !setting.parameters.empty()) {
            unit.parameter = engine.find(setting.parameters.front()->parameter.name);
            if (unit.parameter != nullptr) {
                unit.key = unit.parameter->parameter.name;
                unit.known = is_known(unit);
            }
        }
        result.push_back(std::move(unit));
    }
    return result;
}

DeploySpec deploy_spec_of(const StudySetup& setup, const Configuration& configuration,
                          const DeploymentModel& deployment) {
    DeploySpec spec;
    const Composition& composition = *setup.file.composition;
    spec.engine = composition.engine_of(configuration);
    spec.reader = std::make_shared<const CommandReader>(std::vector{spec.engine},
                                                        setup.file.catalogue().root());
    spec.other_models = composition.checkpoints();
    if (!spec.other_models.empty() && !setup.file.model.empty())
        spec.other_models.insert(setup.file.model);
    if (!spec.other_models.empty() || !setup.file.model.empty()) spec.model = deployment.model;
    spec.other_models.erase(spec.model);
    spec.gpus = deployment.gpus;
    Texts words;
    std::vector<bool> secret;
    for (const Word& word : deployment.flags()) {
        words.push_back(word.empty() ? "" : word.front().text);
        secret.push_back(has_variable(word));
    }
    for (const FlagUnit& unit : flag_units(words, spec.engine, *spec.reader)) {
        bool hidden = unit.key.starts_with("{");  // a flag with a secret stays as the file has it
        for (std::size_t i = unit.begin; i < unit.end; ++i) hidden = hidden || secret[i];
        if (!hidden) spec.flags.insert(spec.flags.end(), unit.words.begin(), unit.words.end());
    }
    for (const auto& [name, content] : deployment.files)
        spec.unknown.push_back("The engine reads its settings from " + name +
                               ", which `recommend --as` writes.");
    for (const PassedSetting& passed : composition.passed(spec.engine)) {
        if (!passed.place.empty()) continue;
        const bool json = takes_json(spec.engine, passed.flag);
        for (const std::string& one : {json ? passed.flag : passed.declared, passed.environment})
            if (!one.empty()) spec.tuned.insert(one);
    }
    for (const auto& [name, word] : deployment.environment)
        if (!has_variable(word) && !names_secret(name) && name != "CUDA_VISIBLE_DEVICES")
            spec.environment[name] = word.empty() ? "" : word.front().text;
    return spec;
}

DeployDifference difference_of(const DeployCommand& command, const DeploySpec& spec) {
    DeployDifference result{.unknown = spec.unknown};
    const std::vector<FlagUnit> wanted = flag_units(spec.flags, spec.engine, *spec.reader);
    const std::vector<FlagUnit> there = flag_units(command.texts(), spec.engine, *spec.reader);
    std::set<std::string> said;  // by a feature of the file, as it is recommended
    for (const auto& [place, words] : command.added)
        for (const FlagUnit& unit : flag_units(words, spec.engine, *spec.reader)) {
            const FlagUnit* to = last_with(wanted, unit.key);
            if (place.starts_with("features.") && to != nullptr && same_setting(*to, unit))
                said.insert(unit.key);
            else if (spec.tuned.contains(unit.key))
                result.unknown.push_back(place + " sets " + unit.name() +
                                         " too, for some of the file's commands.");
        }
    bool devices = false;
    const auto change = [&](const FlagUnit& unit, const std::string& before,
                            const std::string& after) {
        result.changes.push_back({unit.name(), before, after});
        devices = devices || any_of(spec.engine.devices, [&](const DeviceFactor& factor) {
                      return factor.parameter == unit.key;
                  });
    };
    for (const FlagUnit& unit : wanted) {
        const FlagUnit* now = last_with(there, unit.key);
        if (&unit != last_with(wanted, unit.key) ||
            (now != nullptr && !now->dotted() && same_setting(unit, *now)) ||
            (now == nullptr && said.contains(unit.key)))
            continue;
        change(unit, now == nullptr ? "" : now->text(true), unit.text());
    }
    std::set<std::string> named;
    for (const FlagUnit& unit : there) {
        if (unit.key == "{unread}")
            result.unknown.push_back("Word " + std::to_string(unit.begin + 1) +
                                     " behind the program belongs to no flag.");
        if (unit.key == "{beginning}")
            result.unknown.push_back("The file has " + unit.text(true) + ", which may stand for " +
                                     unit.flag + ": write it whole.");
        if (unit.key.starts_with('{') || last_with(wanted, unit.key) != nullptr ||
            says_default(unit) || !named.insert(unit.key).second)
            continue;
        if (spec.tuned.contains(unit.key)) change(unit, unit.text(true), "");
        else if (!unit.not_about_speed)
            result.risks.push_back("The file has " + unit.text(true) +
                                   ", which the study did not measure.");
    }
    for (const auto& [name, value] : spec.environment) {
        const auto now = command.environment.find(name);
        const bool is_there = now != command.environment.end();
        if (is_there && now->second == value) continue;
        const bool open =
            is_there ? now->second.empty() || contains(now->second, '$') : command.more_variables;
        if (!spec.tuned.contains(name))
            result.risks.push_back("The study set the variable " + name + "=" + value +
                                   "; the file does not.");
        else if (open)
            result.unknown.push_back("The value of " + name + " is known only where it runs.");
        else result.changes.push_back({name, is_there ? "another value" : "", value, true});
    }
    for (const std::string& name : spec.tuned)
        if (command.environment.contains(name) && !spec.environment.contains(name))
            result.changes.push_back({name, "a value", "", true});
    if (devices && spec.gpus > 0)
        result.changes.push_back({"GPUs", "", std::to_string(spec.gpus), true});
    compare_models(there, spec, result);
    if (!command.unsure.empty())
        result.unknown.push_back(command.label + ": " + command.unsure + ".");
    return result;
}

DeployEdit edit_deploy_file(const DeployFile& file, const DeployCommand& command,
                            const DeploySpec& spec, std::string_view name) {
    DeployEdit result;
    result.difference = difference_of(command, spec);
    if (!result.difference.unknown.empty()) {
        result.unsafe = result.difference.unknown.back();
        result.unsafe.pop_back();  // a sentence's full stop
    }
    for (const DeployChange& change : result.difference.changes)
        if (change.by_hand && result.unsafe.empty())
            result.unsafe = change.name + " is changed by hand, and with it the rest";
    if (!result.unsafe.empty()) return result;
    try {
        result.text = edited_text(file, command, spec, result.difference, name);
    } catch (const ParseError& error) {
        result.unsafe = error.what();
    }
    return result;
}

void replace_deploy_file(const std::filesystem::path& file, const std::string& before,
                         const std::string& after) {
    const std::filesystem::path target = std::filesystem::canonical(file);
    struct stat is {};
    struct stat made {};
    const auto refuse = [&](const std::string& why) {
        throw IoError("cannot write " + file.string() + ": " + why);
    };
    if (::stat(target.c_str(), &is) != 0 || !S_ISREG(is.st_mode)) refuse("it is no regular file");
    if (is.st_nlink > 1) refuse("it has several names (hard links)");
    if (::geteuid() != 0 && is.st_uid != ::geteuid()) refuse("it belongs to somebody else");
    if ((is.st_mode & 0222U) == 0) refuse("it is read-only");
    OutputFile output(target, true);
    const char* part = output.written().c_str();
    if (::stat(part, &made) != 0 || made.st_gid != is.st_gid || made.st_mode != is.st_mode ||
        ::listxattr(part, nullptr, 0) != ::listxattr(target.c_str(), nullptr, 0))
        refuse("its group, mode or extended attributes would change");
    output.write(after);
    output.commit([&] {
        if (read_file(target) != before) refuse("it was changed since it was read");
    });
}

}  // namespace servetune
