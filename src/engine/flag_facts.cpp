// SPDX-License-Identifier: Apache-2.0
#include "flag_facts.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/nesting.hpp"
#include "engine/version.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <string_view>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::map<std::string, FlagFacts::Fact> read_facts(const Json& object) {
    std::map<std::string, FlagFacts::Fact> result;
    for (const auto& [name, fact] : object.items()) {
        if (fact.value("removed", false)) continue;  // still known by name, to say so, but refused
        FlagFacts::Fact read{
            fact.value("type", ""),   {}, fact.value("negatable", false), name, false,
            fact.value("list", false)};
        if (fact.contains("values"))
            for (const auto& value : fact["values"])
                read.values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
        result[name] = read;
        for (const char* spelling : {"aliases", "short", "negations"}) {
            if (!fact.contains(spelling)) continue;
            const Json& others = fact[spelling];
            read.negated = std::string_view(spelling) == "negations";
            for (const auto& other : others.is_array() ? others : Json::array({others}))
                result[other.get<std::string>()] = read;
        }
    }
    return result;
}

/// `-1` is the value of a flag.
bool is_flag(const std::string& word) {
    return word.starts_with("--") || (word.size() > 1 && word[0] == '-' &&
                                      std::isalpha(static_cast<unsigned char>(word[1])) != 0);
}

}  // namespace

FlagFacts FlagFacts::load(const fs::path& file) {
    try {
        const Json object = Json::parse(read_file(file), RefuseDeep());
        FlagFacts result{object.at("engine"),
                         object.at("version"),
                         object.value("source", ""),
                         object.value("complete", true),
                         read_facts(object.at("flags")),
                         {}};
        if (object.contains("options")) result.options = read_facts(object["options"]);
        result.options_complete = object.value("options_complete", true);
        return result;
    } catch (const Json::exception& error) {
        throw ParseError(file.string() + ": not the facts of an engine's version: " + error.what());
    }
}

FlagFacts FlagFacts::of_installed(const std::string& engine, const std::string& source,
                                  const std::set<std::string>& flags) {
    FlagFacts result{engine, "as installed here", source, true, {}, {}};
    for (const std::string& flag : flags) result.flags[flag] = {};
    return result;
}

std::vector<std::string> FlagFacts::problems(const Command& command, const Engine& by,
                                             std::vector<std::string>* flags_of_each) const {
    std::vector<std::string> result;
    const std::string who = engine + " " + version;
    const auto add = [&](const std::string& flag, const std::string& what) {
        result.push_back(who + what);
        if (flags_of_each != nullptr) flags_of_each->push_back(flag);
    };
    const auto check_value = [&](const std::string& what, const std::string& flag, const Fact& fact,
                                 const std::string& value) {
        if (fact.values.empty() || contains(fact.values, value)) return;
        add(flag, " does not take '" + value + "' for " + what + flag +
                      "; it takes: " + listed(nearest_first(value, fact.values)));
    };
    for (std::size_t i = 0; i < command.argv.size(); ++i) {
        const std::string& word = command.argv[i];
        if (!is_flag(word) || contains(by.launch, word)) continue;
        const auto equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        // A dotted flag sets a part of a JSON flag; `--no-x` switches off a flag that can be
        // negated.
        const std::string base = flag.substr(0, flag.find('.'));
        auto known = flags.find(base);
        if (known == flags.end() && base.starts_with("--no-")) {
            known = flags.find("--" + base.substr(5));
            if (known != flags.end() && (!known->second.negatable || known->second.negated))
                known = flags.end();
        }
        if (known == flags.end()) {
            if (complete) add(base, " has no flag " + base + nearest_text(base, names_in(flags)));
            continue;
        }
        if (base != flag || known->second.type == "bool") continue;
        if (equals != std::string::npos)
            check_value("", flag, known->second, word.substr(equals + 1));
        else if (!known->second.type.empty() && by.flag_style == Engine::FlagStyle::separate &&
                 i + 1 < command.argv.size())
            check_value("", flag, known->second, command.argv[++i]);
    }
    for (const auto& [path, value] : command.options()) {
        const auto* known = entry_in(options, path);
        if (known != nullptr) check_value("option ", path, *known, value);
        else if (complete && options_complete && !options.empty())
            add(path, " has no option " + path + nearest_text(path, names_in(options)));
    }
    return result;
}

std::vector<FlagFacts> known_versions(const fs::path& root, const std::string& engine) {
    std::vector<FlagFacts> result;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root / "engines/versions", error)) {
        const std::string stem = entry.path().stem().string();
        if (entry.path().extension() != ".json" || !stem.starts_with(engine + "-") ||
            version_numbers(stem.substr(engine.size() + 1)).empty())
            continue;
        result.push_back(FlagFacts::load(entry.path()));
    }
    sort(result, [](const FlagFacts& a, const FlagFacts& b) {
        return version_numbers(a.version) != version_numbers(b.version)
                   ? version_numbers(a.version) < version_numbers(b.version)
                   : a.version < b.version;
    });
    return result;
}

std::optional<FlagFacts> facts_for(const fs::path& root, const std::string& engine,
                                   const std::string& version) {
    std::optional<FlagFacts> best;
    for (FlagFacts& facts : known_versions(root, engine)) {
        if (facts.version == version) return std::move(facts);
        if (version_numbers(facts.version) <= version_numbers(version)) best = std::move(facts);
    }
    return best;
}

std::vector<std::string> version_doubts(const std::filesystem::path& root, const Engine& engine,
                                        const std::string& version) {
    std::vector<std::string> result;
    const auto least = engine.versions.starts_with(">=")
                           ? engine.versions.substr(2, engine.versions.find(',') - 2)
                           : std::string();
    if (!least.empty() && compare_to_bound(version, least) < 0)
        result.push_back(
            engine.name + " " + version + " is older than " + least +
            ", the oldest version that its file covers; its flags and rules may be wrong for it");
    const auto known = known_versions(root, engine.name);
    if (known.empty() || compare_to_bound(version, known.back().version) <= 0) return result;
    result.push_back(engine.name + " " + version + " is newer than " + known.back().version +
                     ", the newest version whose flags are known here; they are taken to be the "
                     "same. Last checked: " +
                     known.back().source);
    return result;
}

}  // namespace servetune
