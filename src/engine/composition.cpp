// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/engine/composition.hpp"

#include "base/text.hpp"
#include "engine_space.hpp"
#include "engine_value.hpp"

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
        const Parameter* searched = space_->find(local.name_in_space);
        const auto* choice =
            searched == nullptr ? nullptr : std::get_if<ChoiceDomain>(&searched->domain);
        if (choice == nullptr || local.parameter->parameter.concept_name != "draft_model") return;
        for (const Value& value : choice->values) found.insert(text_of(value));
    });
    return {found.begin(), found.end()};
}
namespace {

/// One command while its settings become values.
class Parser {
public:
    Parser(const EngineSpace& space, const Engine& engine, const std::string& model)
        : space_(space), model_(model), locals_(space.locals(engine)) {
        result_.engine = &engine;
        if (space.several_engines()) result_.values["engine"] = engine.name;
    }

    Composition::Parsed parsed(const std::vector<Setting>& settings) {
        using Kind = Setting::Kind;
        const std::vector<std::string> always = space_.arguments_of(*result_.engine);
        for (const Setting& setting : settings) {
            if (setting.kind == Kind::launch || setting.kind == Kind::json ||
                contains(always, setting.words.front()))
                continue;
            bool taken = setting.kind == Kind::model && serves(setting.value);
            for (const EngineParameter* declared : setting.parameters)
                taken = sets(declared->parameter.name, value_of(setting.value)) || taken;
            if (!taken)
                result_.unknown.push_back(setting.kind == Kind::model ? setting.value
                                                                      : setting.text());
        }
        return std::move(result_);
    }

private:
    /// Whether the study serves this model: its own, or a checkpoint, which is then set.
    bool serves(const std::string& served) {
        if (served == model_) return true;
        for (const auto& [name, local] : locals_)
            for (const auto& [value, checkpoint] : local.checkpoints)
                if (checkpoint == served && sets(name, value_of(value))) return true;
        return false;
    }
    /// False: the study cannot have that value. What the study holds at its default may be said,
    /// and says nothing.
    bool sets(const std::string& name, const Value& value) {
        const auto* found = entry_in(locals_, name);
        if (found == nullptr) return false;  // not of this version
        const EngineSpace::Local& local = *found;
        const Value taken = normalized_value(*local.parameter, value);
        if (local.name_in_space.empty()) return taken == local.parameter->parameter.default_value;
        if (!space_.find(local.name_in_space)->contains(taken)) return false;
        result_.values[local.name_in_space] = taken;
        return true;
    }

    const EngineSpace& space_;
    const std::string& model_;
    const EngineSpace::Locals& locals_;
    Composition::Parsed result_{};
};

}  // namespace

Composition::Parsed Composition::parse(const std::vector<std::string>& words,
                                       const std::string& model) const {
    return parse(Command{words}, model);
}

Composition::Parsed Composition::parse(const Command& command, const std::string& model) const {
    Parsed best;
    for (const Engine& engine : engines()) {
        const CommandSettings read = space_->commands().read(command, engine.name);
        Parsed parsed = parse(read, model);
        if (read.start != CommandSettings::Start::flags) return parsed;
        if (best.engine == nullptr || (parsed.unknown.empty() && !best.unknown.empty()))
            best = std::move(parsed);
    }
    return best;
}

Composition::Parsed Composition::parse(const CommandSettings& read,
                                       const std::string& model) const {
    for (const Engine& engine : engines())
        if (read.engine != nullptr && read.engine->name == engine.name &&
            read.start != CommandSettings::Start::unknown)
            return Parser(*space_, engine, model).parsed(read.settings);
    Parsed result;
    for (const Setting& setting : read.settings) result.unknown.push_back(setting.text());
    return result;
}

}  // namespace servetune
