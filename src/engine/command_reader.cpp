// SPDX-License-Identifier: Apache-2.0
#include "command_reader.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "engine_value.hpp"
#include "flag_facts.hpp"
#include "launcher.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

namespace servetune {
namespace {

using Parts = std::vector<std::pair<std::string, std::string>>;

bool is_flag_word(const std::string& word) {
    return word.size() > 1 && word.starts_with('-') && !real_of(word);
}

/// A flag without what stands behind a dot, with `-` for `_`: most parsers take both.
std::string hyphened(const std::string& flag) {
    std::string result = flag.substr(0, flag.find_first_of(".="));
    std::replace(result.begin(), result.end(), '_', '-');
    return result;
}

std::string without_no(const std::string& flag) {
    return flag.starts_with("--no-") ? "--" + flag.substr(5) : flag;
}

/// The parts of a JSON object, also of a flat one whose quotes a shell took: `{method:mtp,n:3}`.
std::optional<Parts> json_parts(const std::string& text) {
    Parts parts;
    if (const auto object = shallow_json<nlohmann::json>(text); object.is_object()) {
        for (const auto& [key, value] : object.items())
            parts.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
        return parts;
    }
    if (!text.starts_with('{') || text.find_first_of("{}[]\"'", 1) != text.size() - 1 ||
        !text.ends_with('}'))
        return std::nullopt;
    for (std::size_t at = 1; at < text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size() - 1);
        const std::size_t colon = text.find(':', at);
        if (colon >= end) return std::nullopt;
        parts.emplace_back(text.substr(at, colon - at), text.substr(colon + 1, end - colon - 1));
        at = end + 1;
    }
    return parts;
}

}  // namespace

std::string Setting::text() const {
    if (!key.empty()) return name + " " + key;
    std::string result;
    for (const std::string& word : words) result += (result.empty() ? "" : " ") + word;
    return result;
}

Assignment CommandSettings::values() const {
    Assignment result;
    for (const Setting& setting : settings)
        for (const EngineParameter* parameter : setting.parameters)
            result[parameter->parameter.name] = value_of(setting.value);
    return result;
}

CommandReader::CommandReader(std::vector<Engine> engines, const std::filesystem::path& root)
    : engines_(std::move(engines)) {
    for (const Engine& engine : engines_) known_.push_back(known_of(engine, root));
}

CommandReader::Known CommandReader::known_of(const Engine& engine,
                                             const std::filesystem::path& root) {
    Known known;
    const auto spell = [&](const std::string& flag) {
        known.spellings.emplace(hyphened(flag), Spelling{flag.substr(0, flag.find_first_of(".="))});
    };
    const auto add = [&](const std::string& place, const EngineParameter& declared,
                         const std::string& alone = "") {
        std::vector<Target>& targets = known.targets[place];
        if (none_of(targets, [&](const Target& target) { return target.parameter == &declared; }))
            targets.push_back({&declared, alone});
    };
    known.launcher = launcher_words(engine).size();
    for (std::size_t i = known.launcher; i < engine.launch.size(); ++i)
        if (is_flag_word(engine.launch[i])) {
            spell(engine.launch[i]);
            if (i + 1 < engine.launch.size() && engine.launch[i + 1] == "{model}")
                known.model_flag = engine.launch[i];
        }
    if (!known.model_flag.empty()) known.spellings[hyphened(known.model_flag)].flag = "{model}";
    for (const EngineParameter& declared : engine.parameters)
        for (const Destination* to : {&declared.destination, &declared.earlier}) {
            const bool is_switch = std::holds_alternative<BoolDomain>(declared.parameter.domain);
            for (const bool on : {true, false}) {
                const std::string& flag = on ? to->flag : to->off_flag;
                if (flag.empty()) continue;
                spell(flag);
                add(flag, declared, !is_switch ? "" : on ? "true" : "false");
            }
            if (!to->environment.empty()) add(to->environment, declared);
            if (to->option.empty()) continue;
            spell("--" + to->option);
            add("--" + to->option, declared, is_switch ? "true" : "");
        }
    for (const JsonFlag& json : engine.json_flags) {
        spell(json.flag);
        for (const auto& [key, name] : json.fields)
            if (const EngineParameter* declared = engine.find(name))
                add(json.flag + "." + key, *declared);
    }
    if (!engine.options_flag.empty()) spell(engine.options_flag);
    for (const auto& [alias, meant] : engine.aliases) {
        const EngineParameter* declared = engine.find(meant);
        const bool has_flag = declared != nullptr && !declared->destination.flag.empty();
        if (declared != nullptr && !has_flag)
            add(alias, *declared,
                std::holds_alternative<BoolDomain>(declared->parameter.domain) ? "true" : "");
        known.spellings.emplace(hyphened(alias), Spelling{declared == nullptr ? "{model}"
                                                          : has_flag ? declared->destination.flag
                                                                     : alias});
    }
    for (const std::string& flag : engine.not_about_speed)
        known.not_about_speed.insert(without_no(hyphened(flag)));
    if (!root.empty()) add_versions(known, engine, root);
    return known;
}

/// Other spellings of the same flag, in any version whose flags are stored.
void CommandReader::add_versions(Known& known, const Engine& engine,
                                 const std::filesystem::path& root) {
    for (const FlagFacts& facts : known_versions(root, engine.name)) {
        std::map<std::string, std::string>
            ours;  // the usual spelling of the version -> the engine file's
        for (const auto& [spelling, fact] : facts.flags)
            if (const auto* found = entry_in(known.spellings, hyphened(spelling));
                !fact.negated && found != nullptr && !found->negated)
                ours.emplace(fact.name, found->flag);
        for (const auto& [spelling, fact] : facts.flags) {
            const Takes takes = fact.type == "bool" ? Takes::none
                                : fact.list         ? Takes::many
                                                    : Takes::one;
            Takes& most = known.takes.emplace(hyphened(spelling), takes).first->second;
            most = std::max(most, takes);
            if (const auto* found = entry_in(ours, fact.name))
                known.spellings.emplace(hyphened(spelling), Spelling{*found, fact.negated});
        }
    }
}

/// One command while it is read.
class CommandReader::Reading {
public:
    Reading(const Engine& engine, const Known& known, const Command& command, std::size_t from,
            CommandSettings::Start start)
        : engine_(engine),
          known_(known),
          words_(command.argv),
          from_(from),
          has_file_(!command.files.empty()) {
        result_.engine = &engine;
        result_.start = start;
        for (at_ = from; at_ < words_.size();) {
            const std::size_t begin = at_++;
            Setting setting{.at = begin - from};
            if (is_flag_word(words_[begin])) read_flag(std::move(setting));
            else read_bare(std::move(setting));
        }
        for (const auto& [name, value] : command.environment)
            keep({.kind = Setting::Kind::variable,
                  .words = {name + "=" + value},
                  .name = name,
                  .value = value},
                 known.targets.find(name));
        for (const auto& [path, value] : command.options())
            keep({.words = {path + ": " + value}, .value = value}, known.targets.find("--" + path));
    }
    [[nodiscard]] CommandSettings taken() { return std::move(result_); }

private:
    using Found = std::map<std::string, std::vector<Target>>::const_iterator;

    void read_bare(Setting setting) {
        const bool first = setting.at == 0 &&
                           result_.start == CommandSettings::Start::launcher;  // `sglang serve x`
        if (result_.model.empty() && (known_.model_flag.empty() || first))
            name_model(setting, words_[at_ - 1]);
        keep(std::move(setting), known_.targets.end());
    }
    void name_model(Setting& setting, const std::string& model) {
        setting.kind = Setting::Kind::model;
        setting.value = model;
        if (result_.model.empty()) result_.model = model;
    }
    /// Adds a setting with its words; one with targets sets their parameters.
    void keep(Setting setting, Found found) {
        if (found != known_.targets.end()) {
            setting.kind = Setting::Kind::parameter;
            for (const Target& target : found->second)
                setting.parameters.push_back(target.parameter);
        }
        if (setting.words.empty())
            setting.words.assign(words_.begin() + std::ptrdiff_t(from_ + setting.at),
                                 words_.begin() + std::ptrdiff_t(at_));
        result_.settings.push_back(std::move(setting));
    }
    /// The flag that a spelling stands for; as written where the engine file has none.
    [[nodiscard]] Spelling spelled(const std::string& written, bool& known, bool& beginning) const {
        const std::string base = hyphened(written), rest = written.substr(base.size());
        if (const auto* found = entry_in(known_.spellings, base)) {
            known = true;
            return {found->flag == "{model}" ? "{model}" : found->flag + rest, found->negated};
        }
        if (known_.takes.contains(base)) return {written};
        if (base.starts_with("--no-")) {
            Spelling positive = spelled("--" + written.substr(5), known, beginning);
            if (known && !beginning) return {positive.flag, !positive.negated};
            known = beginning = false;
        }
        const auto longer = known_.spellings.lower_bound(base);
        beginning = base.starts_with("--") && base.size() > 3 && longer != known_.spellings.end() &&
                    longer->first.starts_with(base);
        return {beginning ? longer->second.flag + rest : written};
    }
    /// The words behind a flag without `=` that are its value.
    std::string value_behind(Takes takes) {
        std::string value;
        const std::size_t first = at_;
        while (at_ < words_.size() && !is_flag_word(words_[at_]) && takes != Takes::none &&
               (takes == Takes::many || at_ == first)) {
            value += (at_ == first ? "" : " ") + words_[at_];
            ++at_;
        }
        return value;
    }
    [[nodiscard]] Takes takes_of(const std::string& written, bool dotted, bool known) const {
        for (const std::string& flag : {hyphened(written), without_no(hyphened(written))})
            if (const auto* found = entry_in(known_.takes, flag); found != nullptr && !dotted)
                return *found;
        const bool model_may_follow = known_.model_flag.empty() && result_.model.empty() &&
                                      result_.start == CommandSettings::Start::launcher;
        return known || model_may_follow ? Takes::one : Takes::many;
    }

    void read_flag(Setting setting) {
        const std::string& word = words_[at_ - 1];
        const auto equals = word.find('=');
        const std::string written = word.substr(0, equals);
        bool known = false;
        const Spelling spelling = spelled(written, known, setting.beginning);
        setting.name = spelling.flag;
        setting.kind = Setting::Kind::flag;
        setting.not_about_speed =
            known_.not_about_speed.contains(without_no(hyphened(known ? setting.name : written)));
        Found found = known ? known_.targets.find(setting.name) : known_.targets.end();
        bool given = equals != npos;
        setting.value = given ? word.substr(equals + 1) : "";
        if (known && given)
            if (const auto whole = known_.targets.find(setting.name + "=" + setting.value);
                whole != known_.targets.end()) {
                found = whole;  // `--passes.fuse=true` is a flag of its own
                given = false;
            }
        const bool json = known && takes_json(setting.name, given                 ? setting.value
                                                            : at_ < words_.size() ? words_[at_]
                                                                                  : "");
        const auto launch = std::find(engine_.launch.begin() + std::ptrdiff_t(known_.launcher),
                                      engine_.launch.end(), setting.name);
        if (known && setting.name == "{model}") {
            if (!given) setting.value = value_behind(Takes::one);
            name_model(setting, setting.value);
            keep(std::move(setting), known_.targets.end());
        } else if (launch != engine_.launch.end()) {
            setting.kind = Setting::Kind::launch;
            if (!given && launch + 1 != engine_.launch.end() && (launch + 1)->starts_with('{'))
                setting.value = value_behind(Takes::one);
            keep(std::move(setting), known_.targets.end());
        } else if (found != known_.targets.end() && !found->second.front().alone.empty()) {
            const bool off = spelling.negated != (found->second.front().alone == "false");
            std::optional<bool> said = given                 ? truth_of(setting.value)
                                       : at_ < words_.size() ? truth_of(words_[at_])
                                                             : std::nullopt;
            if (!given && said) ++at_;
            setting.alone = !given && !said;
            if (!given || said) setting.value = said.value_or(true) != off ? "true" : "false";
            keep(std::move(setting), found);
        } else if (json && found == known_.targets.end()) {
            if (!given) setting.value = value_behind(Takes::one);
            read_json(std::move(setting));
        } else {
            if (!given)
                setting.value = value_behind(
                    takes_of(written, contains(setting.name, '.'), found != known_.targets.end()));
            setting.alone = found == known_.targets.end() && !given && setting.value.empty();
            if (setting.alone) setting.value = spelling.negated ? "false" : "true";
            if (setting.name == engine_.options_flag && has_file_)
                setting.kind = Setting::Kind::launch;
            keep(std::move(setting), spelling.negated ? known_.targets.end() : found);
        }
    }
    /// Also a flag of which the engine file has parts: `--compilation-config.mode`.
    [[nodiscard]] bool takes_json(const std::string& flag, std::string_view value) const {
        const auto part = known_.targets.lower_bound(flag + ".");
        return any_of(engine_.json_flags, [&](const JsonFlag& one) { return one.flag == flag; }) ||
               (value.starts_with('{') && part != known_.targets.end() &&
                part->first.starts_with(flag + "."));
    }
    void read_json(Setting setting) {
        const auto parts = json_parts(setting.value);
        setting.kind = parts ? Setting::Kind::json : Setting::Kind::unread;
        keep(setting, known_.targets.end());
        if (!parts) return;
        for (const auto& [key, value] : *parts) {
            Setting part{.at = setting.at, .name = setting.name, .value = value};
            part.key = key;
            keep(std::move(part), known_.targets.find(setting.name + "." + key));
        }
    }

    const Engine& engine_;
    const Known& known_;
    const std::vector<std::string>& words_;
    std::size_t from_;
    bool has_file_;
    std::size_t at_ = 0;  ///< the next word
    CommandSettings result_{};
};

CommandSettings CommandReader::read(const Command& command, const std::string& engine) const {
    using Start = CommandSettings::Start;
    const std::vector<std::string>& words = command.argv;
    const bool flags_only = words.empty() || is_flag_word(words.front());
    for (std::size_t at = 0; at < words.size() && !flags_only; ++at) {
        const Launched launched = launched_at(engines_, words, at);
        if (launched.engine == nullptr) continue;
        Command whole = command;
        for (std::size_t i = 0; i < at; ++i)
            if (const auto equals = words[i].find('=');
                equals != npos && is_variable_name(words[i].substr(0, equals)))
                whole.environment[words[i].substr(0, equals)] = words[i].substr(equals + 1);
        const auto which = std::size_t(launched.engine - engines_.data());
        return Reading(engines_[which], known_[which], whole, at + launched.words, Start::launcher)
            .taken();
    }
    CommandSettings best;
    std::size_t fewest = 0;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
        if (!engine.empty() && engines_[i].name != engine) continue;
        CommandSettings one =
            Reading(engines_[i], known_[i], command, 0, flags_only ? Start::flags : Start::unknown)
                .taken();
        const auto unknown = count_if(one.settings, [](const Setting& setting) {
            return setting.kind >= Setting::Kind::flag;
        });
        if (best.engine != nullptr && unknown >= fewest) continue;
        best = std::move(one);
        fewest = unknown;
    }
    return best;
}

std::string CommandReader::served_name(const Command& command) const {
    const CommandSettings said = read(command);
    std::string name = said.model;
    for (const Setting& setting : said.settings)
        for (const EngineParameter* parameter : setting.parameters)
            if (parameter->parameter.concept_name == "served_model_name") name = setting.value;
    return name;
}

CommandSettings CommandReader::flags(const std::vector<std::string>& words,
                                     const Engine& engine) const {
    for (std::size_t i = 0; i < engines_.size(); ++i)
        if (engines_[i].name == engine.name)
            return Reading(engines_[i], known_[i], {words}, 0, CommandSettings::Start::flags)
                .taken();
    return {};
}

}  // namespace servetune
