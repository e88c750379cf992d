// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/engine/composition.hpp"

#include "engine_space.hpp"

#include <set>
#include <utility>

namespace servetune {

Composition::Composition(SpaceDescription description)
    : space_(std::make_shared<const EngineSpace>(std::move(description))) {}

const std::vector<Engine>& Composition::engines() const { return space_->engines(); }
std::string Composition::version_of(const Engine& engine) const {
    return space_->version_of(engine);
}
const std::vector<Parameter>& Composition::parameters() const { return space_->parameters(); }
const std::vector<Constraint>& Composition::constraints() const { return space_->constraints(); }
const std::vector<std::string>& Composition::notes() const { return space_->notes(); }
const Engine& Composition::engine_of(const Configuration& configuration) const {
    return space_->engine_of(configuration);
}
std::vector<std::string> Composition::arguments_of(const Engine& engine) const {
    return space_->arguments_of(engine);
}
std::string Composition::resolve(std::string_view name) const { return space_->resolve(name); }
Value Composition::normalized(const std::string& name_in_space, const Value& value) const {
    return space_->normalized(name_in_space, value);
}

std::set<std::string> Composition::checkpoints() const {
    std::set<std::string> found;
    space_->for_each_local([&](const Engine&, const EngineSpace::Local& local) {
        for (const auto& [value, model] : local.checkpoints) found.insert(model);
    });
    return found;
}

std::vector<std::string> Composition::further_models() const {
    std::set<std::string> found = checkpoints();
    space_->for_each_local([&](const Engine&, const EngineSpace::Local& local) {
        for (const auto& [value, model] : local.drafts) found.insert(model);
        const Parameter* searched = space_->find(local.name_in_space);
        const auto* choice =
            searched == nullptr ? nullptr : std::get_if<ChoiceDomain>(&searched->domain);
        if (choice == nullptr || local.parameter->parameter.concept_name != "draft_model") return;
        for (const Value& value : choice->values) found.insert(text_of(value));
    });
    return {found.begin(), found.end()};
}

}  // namespace servetune
