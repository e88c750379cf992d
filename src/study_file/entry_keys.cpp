// SPDX-License-Identifier: Apache-2.0
#include "entry_keys.hpp"

#include "all_errors.hpp"
#include "keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

constexpr const auto& in_entry = keys::parameter;

constexpr std::string_view how_passed = "leave it out, or give a parameter of your own another name";
constexpr std::string_view which_versions = "leave it out; 'engine_versions' says which version runs, 'choice' which values are tried";
constexpr std::string_view in_own_file = "leave it out, or let 'engine' name a copy of that file with your change";

/// Keys of an engine's file that an entry of its parameter cannot change, and what to do instead.
constexpr std::array<std::pair<const Key*, std::string_view>, 16> of_engine_file{{
    {&in_entry.flag, how_passed},
    {&in_entry.off_flag, how_passed},
    {&in_entry.env, how_passed},
    {&in_entry.option, how_passed},
    {&in_entry.earlier, how_passed},
    {&in_entry.when, "leave it out; a rule under 'constraints' says which values may come together"},
    {&in_entry.since, which_versions},
    {&in_entry.until, which_versions},
    {&in_entry.values_since, which_versions},
    {&in_entry.values_until, which_versions},
    {&in_entry.architectures, which_versions},
    {&in_entry.also, "leave it out; write these values under 'choice'"},
    {&in_entry.same_as, in_own_file},
    {&in_entry.means, in_own_file},
    {&in_entry.concept_, in_own_file},
    {&in_entry.engine_default, in_own_file},
}};

/// Keys that say something only of a flag.
constexpr std::array<const Key*, 15> of_flags{&in_entry.flag,    &in_entry.off_flag,    &in_entry.env,          &in_entry.option,
                                              &in_entry.earlier, &in_entry.since,       &in_entry.until,        &in_entry.also,
                                              &in_entry.same_as, &in_entry.means,       &in_entry.values_since, &in_entry.values_until,
                                              &in_entry.drafts,  &in_entry.checkpoints, &in_entry.architectures};

/// Whether the entry speaks of this parameter, as the composition reads it.
bool tells(const std::string& name, const Engine& engine, const Parameter& parameter) {
    const std::string own = engine.name + ".";
    const std::string local = name.starts_with(own) ? name.substr(own.size()) : name;
    return local == parameter.name || (!parameter.concept_name.empty() && local == parameter.concept_name);
}

}  // namespace

void check_keys_of_entry(const std::string& name, const Yaml& node, const std::vector<Engine>& engines) {
    if (!node.is_mapping()) return;
    for (const Engine& engine : engines)
        for (const EngineParameter& declared : engine.parameters) {
            if (!tells(name, engine, declared.parameter)) continue;
            AllErrors errors;
            for (const auto& [key, instead] : of_engine_file)
                if (const Yaml* said = node.find(*key))
                    errors.in([&, &then = instead] {
                        said->fail("the file of " + engine.name + " says this of its parameter '" + declared.parameter.name +
                                   "', and a study cannot change it; " + std::string(then));
                    });
            errors.throw_any();
            return;
        }
}

void check_keys_of_unpassed(const Yaml& node) {
    if (!node.is_mapping()) return;
    AllErrors errors;
    for (const Key* key : of_flags)
        if (const Yaml* said = node.find(*key))
            errors.in([&] { said->fail("this is for a flag of an engine, and no engine gets this parameter; leave it out"); });
    errors.throw_any();
}

}  // namespace servetune
