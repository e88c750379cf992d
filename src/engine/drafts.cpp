// SPDX-License-Identifier: Apache-2.0
// Draft models that follow the method of speculation: `drafts: {eagle3: org/head}` at the method's
// parameter. The draft model is then no parameter of the space; the method decides it, in the
// command and in the engine's rules.
#include "engine/constraint_errors.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <set>

namespace servetune {
namespace {

constexpr std::string_view draft_concept = "draft_model";

}  // namespace

void Composition::add_drafts(const Engine& engine) {
    auto& locals = names_[engine.name].locals;
    for (const EngineParameter& method : engine.parameters) {
        const SpaceEntry* entry = entry_for(engine, method);
        if (entry == nullptr || entry->drafts.empty()) continue;
        const std::string where = engine.name + " ";
        const auto draft = std::find_if(engine.parameters.begin(), engine.parameters.end(),
                                        [](const EngineParameter& declared) {
                                            return declared.parameter.concept_name == draft_concept;
                                        });
        if (draft == engine.parameters.end())
            throw EntryErrors(entry->name, where + "takes no draft model");
        const auto& conditions = draft->parameter.active_when;
        for (const auto& [value, model] : entry->drafts) {
            const auto used = std::any_of(
                conditions.begin(), conditions.end(),
                [&, &wanted = value](const Condition& condition) {
                    return condition.parent == method.parameter.name &&
                           std::any_of(condition.values.begin(), condition.values.end(),
                                       [&](const Value& v) { return text_of(v) == wanted; });
                });
            if (!used) throw EntryErrors(entry->name, where + "uses no draft model with " + value);
        }
        if (const SpaceEntry* given = entry_for(engine, *draft))
            throw EntryErrors(
                entry->name,
                "the draft model is given twice: under 'drafts' and as '" + given->name + "'");
        Local& local = locals.at(draft->parameter.name);
        local.drafted_by = method.parameter.name;
        local.drafts = entry->drafts;
    }
}

std::set<std::string> Composition::checkpoints() const {
    std::set<std::string> found;
    for (const auto& [engine, names] : names_)
        for (const auto& [name, local] : names.locals)
            for (const auto& [value, model] : local.checkpoints) found.insert(model);
    return found;
}

std::vector<std::string> Composition::further_models() const {
    std::set<std::string> found;
    for (const auto& [engine, names] : names_)
        for (const auto& [name, local] : names.locals) {
            for (const auto& [value, model] : local.checkpoints) found.insert(model);
            for (const auto& [value, model] : local.drafts) found.insert(model);
        }
    const auto names_draft = [&](const Parameter& parameter) {
        return parameter.concept_name == draft_concept ||
               std::any_of(role_names_.begin(), role_names_.end(), [&](const auto& role) {
                   return std::any_of(role.second.locals.begin(), role.second.locals.end(),
                                      [&](const auto& local) {
                                          return local.second.name_in_space == parameter.name &&
                                                 local.second.parameter->parameter.concept_name ==
                                                     draft_concept;
                                      });
               });
    };
    for (const Parameter& parameter : parameters_)
        if (const auto* choice = std::get_if<ChoiceDomain>(&parameter.domain);
            choice != nullptr && names_draft(parameter))
            for (const Value& value : choice->values) found.insert(text_of(value));
    return {found.begin(), found.end()};
}

/// The rule without draft models that follow a method: what it says of them, it says of the methods
/// that have them (or, with `engine`, have none). Nothing when no method is left that it speaks of.
std::optional<Forbid> Composition::without_drafts(const Engine& engine, const Forbid& rule) const {
    const auto& locals = names_.at(engine.name).locals;
    Forbid result = rule;
    for (const auto& [name, forbidden] : rule.values) {
        const Local& draft = locals.at(name);
        if (draft.drafted_by.empty()) continue;
        result.values.erase(name);
        auto [methods, everything] = result.values.try_emplace(draft.drafted_by);
        const Parameter& method = locals.at(draft.drafted_by).parameter->parameter;
        for (std::size_t i = 0; everything && i < method.level_count(); ++i)
            methods->second.push_back(method.level(i));
        std::erase_if(methods->second, [&, &values = forbidden](const Value& value) {
            const auto model = draft.drafts.find(text_of(value));
            const Value used = model == draft.drafts.end() ? Value(Unset{}) : Value(model->second);
            return std::find(values.begin(), values.end(), used) == values.end();
        });
        if (methods->second.empty()) return std::nullopt;
    }
    return result;
}

}  // namespace servetune
