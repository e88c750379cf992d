// SPDX-License-Identifier: Apache-2.0
#include "entry_keys.hpp"

#include "all_errors.hpp"
#include "keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace servetune {
namespace {

constexpr const auto& in_entry = keys::parameter;

constexpr std::string_view how_passed =
    "leave it out, or give a parameter of your own another name";
constexpr std::string_view which_versions =
    "leave it out; 'engine_versions' says which version runs, 'choice' which values are tried";
constexpr std::string_view in_own_file =
    "leave it out, or let 'engine' name a copy of that file with your change";

/// A key that an entry of a parameter cannot always have.
struct EntryKey {
    const Key* key;
    std::string_view
        instead;  ///< what a study does, where the engine's file says it; empty: a study may say it
    bool only_of_flags = true;  ///< it says nothing of what no engine gets
};
constexpr std::array<EntryKey, 18> entry_keys{{
    {&in_entry.flag, how_passed},
    {&in_entry.off_flag, how_passed},
    {&in_entry.env, how_passed},
    {&in_entry.option, how_passed},
    {&in_entry.earlier, how_passed},
    {&in_entry.since, which_versions},
    {&in_entry.until, which_versions},
    {&in_entry.values_since, which_versions},
    {&in_entry.values_until, which_versions},
    {&in_entry.architectures, which_versions},
    {&in_entry.also, "leave it out; write these values under 'choice'"},
    {&in_entry.same_as, in_own_file},
    {&in_entry.means, in_own_file},
    {&in_entry.drafts, ""},
    {&in_entry.checkpoints, ""},
    {&in_entry.when, "leave it out; a rule under 'constraints' says which values may come together",
     false},
    {&in_entry.concept_, in_own_file, false},
    {&in_entry.engine_default, in_own_file, false},
}};

}  // namespace

bool speaks_of(const std::string& name, const Engine& engine, const Parameter& parameter) {
    const std::string own = engine.name + ".";
    const std::string local = name.starts_with(own) ? name.substr(own.size()) : name;
    return local == parameter.name ||
           (!parameter.concept_name.empty() && local == parameter.concept_name);
}

void check_keys_of_entry(const std::string& name, const Yaml& node,
                         const std::vector<Engine>& engines) {
    if (!node.is_mapping()) return;
    for (const Engine& engine : engines)
        for (const EngineParameter& declared : engine.parameters) {
            if (!speaks_of(name, engine, declared.parameter)) continue;
            AllErrors errors;
            for (const EntryKey& one : entry_keys)
                if (const Yaml* said = one.instead.empty() ? nullptr : node.find(*one.key))
                    errors.in([&] {
                        said->fail("the file of " + engine.name + " says this of its parameter '" +
                                   declared.parameter.name + "', and a study cannot change it; " +
                                   std::string(one.instead));
                    });
            errors.throw_any();
            return;
        }
}

void check_keys_of_unpassed(const Yaml& node) {
    if (!node.is_mapping()) return;
    AllErrors errors;
    for (const EntryKey& one : entry_keys)
        if (const Yaml* said = one.only_of_flags ? node.find(*one.key) : nullptr)
            errors.in([&] {
                said->fail(
                    "this is for a flag of an engine, and no engine gets this parameter; leave it "
                    "out");
            });
    errors.throw_any();
}

}  // namespace servetune
