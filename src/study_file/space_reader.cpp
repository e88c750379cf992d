// SPDX-License-Identifier: Apache-2.0
// The space of a study: its engines, its preset, what it narrows and fixes, and the machine that it
// is for.
#include "readers.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/present.hpp"
#include "engine/command_reader.hpp"
#include "engine/load_level.hpp"
#include "engine/version.hpp"
#include "evaluator_type.hpp"
#include "keys.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "yaml_text.hpp"

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Of the chip that a study names, where it is among those that are known.
std::string architecture_of(const StudyFile& study) {
    if (study.machine.hardware.empty()) return "";
    const auto known = hardware_in(study.machine.hardware, study.catalogue().all_hardware());
    return known ? known->architecture : "";
}

/// The shipped presets that say something of this engine, those that search all of it included.
std::vector<std::string> presets_for(const Engine& engine, const Catalogue& catalogue) {
    std::vector<std::string> result;
    for (const auto& file : fs::directory_iterator(catalogue.root() / "presets")) {
        if (file.path().extension() != ".yaml") continue;
        const Yaml preset = Yaml::load(file.path(), catalogue.snapshot());
        const Yaml& spaces = preset.at(keys::preset.space);
        if (spaces.entries().empty() || spaces.entry(engine.name) != nullptr)
            result.push_back(file.path().stem().string());
    }
    sort(result);
    return result;
}

/// A preset's entries for the engines of the study, but for what the study says itself and what the
/// version does not have.
void add_preset(const Yaml& named, const Catalogue& catalogue, const Yaml* versions,
                SpaceDescription& description) {
    const Yaml preset = Yaml::load(found_by(catalogue, "presets", named), catalogue.snapshot());
    preset.check_keys(keys::preset);
    description.others_searched = false;
    read_word<keys::others_words>(preset, keys::preset.others, description.others_searched);
    const Yaml& spaces = preset.at(keys::preset.space);
    const std::size_t own = description.entries.size();
    for (const Engine& engine : description.engines) {
        const Yaml* space = spaces.entry(engine.name);
        if (space == nullptr) {
            if (!spaces.entries().empty())
                named.fail("the preset has nothing for " + engine.name +
                           "; those that have: " + listed(presets_for(engine, catalogue)));
            continue;
        }
        const Yaml* version = versions != nullptr ? versions->entry(engine.name) : nullptr;
        for (const auto& [name, node] : space->entries()) {
            const EngineParameter* declared = engine.find(name);
            if (declared == nullptr)
                node.fail("'" + name + "' is not a parameter of " + engine.name);
            if (!version_within(version != nullptr ? version->text() : "", declared->since,
                                declared->until))
                continue;
            const auto said = [&](const SpaceEntry& entry) {
                return speaks_of(entry.name, engine, declared->parameter);
            };
            const auto end = description.entries.begin() + std::ptrdiff_t(own);
            if (std::any_of(description.entries.begin(), end, said)) continue;
            check_keys_of_entry(name, node, {engine});
            SpaceEntry entry = read_space_entry(
                description.engines.size() > 1 ? engine.name + "." + name : name, node);
            entry.of_preset = true;
            description.entries.push_back(std::move(entry));
        }
    }
}

/// Roles say themselves how many engines there are, which tell each other their address: jobs have
/// none before they start. A program of the user's own would start one of them.
void refuse_what_roles_exclude(const Yaml& node, const StudyFile& study) {
    const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
    if (deploy != nullptr ? deploy->in_jobs() || deploy->options.fill_devices
                          : std::holds_alternative<CommandChoice>(study.measuring))
        node.fail(
            "roles are several servers, which `deploy` starts on this machine, in containers or by "
            "ssh, without `replicas: fill`: use that, or leave roles out");
}

/// `roles: {prefill: {count: [1, 2], max_num_seqs: 64}}`.
void read_roles_of_study(const Yaml& node, bool no_commands, SpaceDescription& description) {
    if (no_commands)
        node.fail("roles are servers that the study starts, and this study starts none");
    description.roles.emplace();
    AllErrors errors;
    for (const auto& [role, parameters] : node.entries()) {
        std::vector<SpaceEntry>& entries = (*description.roles)[role];
        for (const auto& [name, value] : parameters.entries())
            errors.in([&, &role = role, &name = name, &value = value] {
                check_keys_of_entry(name, value, description.engines);
                entries.push_back(read_space_entry(role + "." + name, value));
            });
    }
    errors.throw_any();
}

/// Whether it says something of the engine, not of the load alone.
bool names_flags(const Yaml& space) {
    return any_of(space.entries(), [](const auto& entry) { return !is_load_level(entry.first); });
}

constexpr const char* quick_preset = "quick";

/// Whether a study that says nothing of what is searched gets the quick preset: not all flags of an
/// engine, which would make a space of 10^40 configurations. Engines without a part in it are
/// searched whole.
bool searches_quick(const Yaml& root, bool own, ServedBy served_by,
                    const SpaceDescription& description, const Catalogue& catalogue) {
    if (own || served_by != ServedBy::a_new_start) return false;
    const Yaml* space = root.find(keys::study.space);
    if ((space != nullptr && (space->entries().empty() || names_flags(*space))) ||
        root.find(keys::study.others) != nullptr)
        return false;
    const fs::path file = catalogue.root() / "presets" / (std::string(quick_preset) + ".yaml");
    std::error_code unknown;
    if (!fs::exists(file, unknown)) return false;
    const Yaml preset = Yaml::load(file, catalogue.snapshot());
    const Yaml& spaces = preset.at(keys::preset.space);
    return all_of(description.engines,
                  [&](const Engine& engine) { return spaces.entry(engine.name) != nullptr; });
}

/// An engine has some two hundred flags, and no name of them is long.
void check_size_of_space(const Yaml& space) {
    constexpr std::size_t most_names = 1000, longest_name = 200;
    if (space.entries().size() > most_names)
        space.fail("at most " + std::to_string(most_names) + " names wanted, got " +
                   std::to_string(space.entries().size()));
    for (const auto& [name, node] : space.entries())
        if (name.size() > longest_name)
            node.fail("a name has at most " + std::to_string(longest_name) + " bytes");
}

/// A parameter that no engine declares: a mapping, a list of values, or one value.
EngineParameter read_whole(const std::string& name, const Yaml& node) {
    check_keys_of_unpassed(node);
    if (node.is_mapping()) return read_parameter(name, node);
    if (!node.is_sequence()) return {Parameter::choice(name, {node.value()})};
    const SpaceEntry entry = read_space_entry(name, node);
    Parameter parameter{name, present(entry.domain),
                        entry.default_value.value_or(node.values().front())};
    parameter.offers_unset = entry.offers_unset.value_or(false);
    return {std::move(parameter)};
}

/// What stands for the engine where the space is the study's own: its parameters, and no command.
Engine own_space(const Yaml& root) {
    for (const Key& key : {keys::study.preset, keys::study.others, keys::study.arguments,
                           keys::study.engine_versions})
        if (const Yaml* node = root.find(key))
            node->fail("this is for the flags of an engine, and the study names none");
    const Yaml* space = root.find(keys::study.space);
    if (space == nullptr || !names_flags(*space))
        root.fail("without an engine a study says under 'space' what is searched");
    Engine result{"this space"};
    for (const auto& [name, node] : space->entries())
        if (!is_load_level(name)) result.parameters.push_back(read_whole(name, node));
    settle_conditions(result, *space);
    return result;
}

/// `node`: what stands under the name.
void check_names_engine(const std::string& name, const Yaml& node,
                        const std::vector<Engine>& engines) {
    if (none_of(engines, [&](const Engine& engine) { return engine.name == name; }))
        node.fail("'" + name + "' is none of the study's engines");
}

/// Devices that a trial of this study may take; nothing where it takes none.
std::optional<DeviceLimit> device_limit(const StudyFile& study) {
    if (evaluator_of(study).traits.served_by != ServedBy::a_new_start) return std::nullopt;
    return study.machine.devices ? DeviceLimit{*study.machine.devices, true} : DeviceLimit{};
}

/// As the journal keeps it, of a study that is only read; else as it is found now.
FoundDevices devices_of(const MachineSource& source, const StudyFile& study) {
    const auto* kept = entry_in(study.kept, machine_devices_path);
    return kept == nullptr ? source.find() : found_devices_from_json(*kept);
}

/// What nvidia-smi finds, and what does not agree with the study's words.
void look_at_found(const FoundDevices& found, StudyFile& study) {
    constexpr const char* then =
        "nothing is predicted, no flag is ruled out by the chip, and physics is not checked";
    const bool is_name = !study.machine.hardware.empty() &&
                         !contains(study.machine.hardware, ' ');  // else free words
    if (is_name && study.machine.hardware_file.empty())
        if (const std::string why =
                why_unknown(study.machine.hardware, study.catalogue().all_hardware());
            !why.empty())
            study.warnings.push_back(study.source.at("'hardware'") + why + ". Without it " + then);
    if (study.machine.hardware.empty() && !found.visible.empty()) {
        FoundHardware chip = hardware_of(found, study.catalogue().all_hardware());
        study.machine.hardware_found = std::move(chip.name);
        if (!chip.why_not.empty())
            study.warnings.push_back(chip.why_not + ". Without `hardware: NAME` in the study " +
                                     then);
    }
    if (std::string other = why_other_chip(study); !other.empty())
        study.warnings.push_back(std::move(other));
    if (!found.trouble.empty())
        study.warnings.push_back("the devices of this machine cannot be counted: " + found.trouble);
    const auto count = std::int64_t(found.visible.size());
    if (study.machine.devices && count > 0 && *study.machine.devices > count)
        study.warnings.push_back(
            "the study says that there are " + std::to_string(*study.machine.devices) +
            " devices, and nvidia-smi finds " + std::to_string(count) +
            " that this program may use; a trial that takes more cannot start");
}

}  // namespace

namespace {

/// Where the figures do not ship, and the model's own files are on this machine. `folder`: the
/// study's, where a `./model` is.
void find_own_facts(const Catalogue& catalogue, const MachineSource& machine,
                    const fs::path& folder, StudyFile& study) {
    const bool beside = study.model.starts_with("./") || study.model.starts_with("../");
    const bool path = beside || study.model.starts_with('/');
    std::error_code unknown;
    if (!path && fs::exists(study.model, unknown)) return;  // of this folder: engines have another
    const auto shipped = path ? std::nullopt : served_model(study.model, catalogue.all_models());
    if (shipped && shipped->model.weights.contains(shipped->quantization)) return;
    const std::string of =
        beside ? fs::absolute(folder / study.model).lexically_normal().string() : study.model;
    const fs::path file = catalogue.file_of_model(of);
    if (file.empty() || (machine.knew_facts && !machine.knew_facts(study))) return;
    try {
        (void)catalogue.model_from_files(of);
        study.model_file = file;
    } catch (const Error& error) {
        study.warnings.push_back(std::string(error.what()) + "; its figures are not used");
    }
}

}  // namespace

void read_model_name(const Yaml& node, const Catalogue& catalogue, const MachineSource& machine,
                     StudyFile& study) {
    study.model = text_with_home(node);
    study.source.places.emplace("'model'", node.place());
    if (!names_model_file(study.model)) {
        find_own_facts(catalogue, machine, fs::path(node.file()).parent_path(), study);
        return;
    }
    study.model_file = fs::absolute(found_by(catalogue, "models", node)).lexically_normal();
    study.model = with_home(catalogue.model(study.model_file.string()).model.name);
}

void read_machine(const Yaml& root, const Catalogue& catalogue, const MachineSource& source,
                  StudyFile& study) {
    const auto read_device = [&](const Yaml& node) {
        std::string name = node.text();
        if (names_yaml_file(name)) {
            study.machine.hardware_file = fs::absolute(found_by(catalogue, "hardware", node));
            name = catalogue.hardware(study.machine.hardware_file.string()).name;
        }
        study.machine.hardware = name;
        study.source.places.emplace("'hardware'", node.place());
    };
    if (const Yaml* hardware = root.find(keys::study.hardware)) {
        read_table(*hardware, keys::machine, study.machine);
        if (const Yaml* device = hardware->find(keys::machine.device)) read_device(*device);
    }
    const EvaluatorType& evaluator = evaluator_of(study);
    const auto* deployed = std::get_if<DeployChoice>(&study.measuring);
    const bool elsewhere = deployed != nullptr && deployed->elsewhere();
    if (evaluator.traits.runs_engine && !elsewhere) study.machine.found = devices_of(source, study);
    const FoundDevices found = study.machine.found.value_or(FoundDevices{});
    look_at_found(found, study);
    const std::optional<std::int64_t> visible = evaluator.visible_devices(study);
    if (study.machine.usd_per_device_hour) {
        const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
        const auto workers =
            std::int64_t(deploy != nullptr ? deploy->workers : 1);  // each sees its part
        std::int64_t paid_for =
            found.all.empty() ? visible.value_or(1) * workers : std::int64_t(found.all.size());
        if (study.machine.devices) paid_for = *study.machine.devices;
        *study.machine.usd_per_device_hour /= double(paid_for);
    }
    if (visible)
        study.machine.devices = std::min(*visible, study.machine.devices.value_or(*visible));
    else if (!study.machine.devices && !found.visible.empty())
        study.machine.devices = std::int64_t(found.visible.size());
}

namespace {

/// The space of a study, part by part; what is wrong in one part hides nothing of the others.
class SpaceReading {
public:
    SpaceReading(const Yaml& root, const Catalogue& catalogue, StudyFile& study)
        : root_(root),
          catalogue_(catalogue),
          study_(study),
          served_by_(evaluator_of(study).traits.served_by),
          space_(root.find(keys::study.space)),
          roles_(root.find(keys::study.roles)),
          versions_(root.find(keys::study.engine_versions)),
          own_((study.is_external() || replayed()) && root.find(keys::study.engine) == nullptr) {}

    std::unique_ptr<Composition> read() {
        if (space_ != nullptr) check_size_of_space(*space_);
        read_engines();
        read_entries();
        read_preset();
        const bool all_read = !errors_.any();
        read_surroundings();
        read_others();
        read_rules();
        read_arguments();
        read_versions();
        return composed(all_read);
    }

private:
    [[nodiscard]] bool replayed() const { return served_by_ == ServedBy::an_earlier_start; }

    void read_engines() {
        if (own_) {
            description_.engines.push_back(own_space(root_));
            return;
        }
        const Yaml& named = root_.at(keys::study.engine);
        for (const Yaml& item : named.items_or_one()) {
            Engine engine = engine_named(catalogue_, item);
            for (const Engine& other : description_.engines)
                if (other.name == engine.name) item.fail("the engine is named twice");
            description_.engines.push_back(std::move(engine));
        }
        if (description_.engines.empty())
            named.fail_wanted("the name of an engine, or a list of them");
    }

    void read_entries() {
        if (space_ != nullptr)
            for (const auto& [name, node] : space_->entries())
                errors_.in([&, &name = name, &node = node] {
                    if (is_load_level(name))
                        description_.load_levels.push_back(read_whole(name, node).parameter);
                    else if (!own_) {
                        check_keys_of_entry(name, node, description_.engines);
                        description_.entries.push_back(read_space_entry(name, node));
                        check_condition_of_entry(node);
                    }
                });
        if (roles_ == nullptr) return;
        errors_.in([&] { refuse_what_roles_exclude(*roles_, study_); });
        errors_.in([&] {
            read_roles_of_study(*roles_, own_ || served_by_ == ServedBy::a_running_server,
                                description_);
        });
    }

    /// Of a parameter of the study's own, on those of its engines.
    void check_condition_of_entry(const Yaml& node) const {
        const Yaml* when = node.is_mapping() ? node.find(keys::parameter.when) : nullptr;
        if (when == nullptr) return;
        std::vector<const Engine*> engines;
        for (const Engine& engine : description_.engines) engines.push_back(&engine);
        for (const auto& [parent, values] : when->entries())
            if (space_->entry(parent) == nullptr) condition_values(parent, values, engines);
    }

    void read_preset() {
        if (const Yaml* preset = root_.find(keys::study.preset))
            errors_.in([&] { add_preset(*preset, catalogue_, versions_, description_); });
        else if (searches_quick(root_, own_, served_by_, description_, catalogue_))
            errors_.in([&] {
                add_preset(Yaml::parse(quick_preset, root_.file(), root_.snapshot()), catalogue_,
                           versions_, description_);
                study_.preset_by_default = quick_preset;
            });
    }

    /// Chip, devices, model and images.
    void read_surroundings() {
        if (!own_) description_.devices = device_limit(study_);
        description_.adds_engine_default = !replayed();
        if (!replayed()) {  // what was measured ran
            description_.architecture = architecture_of(study_);
            if (const auto served =
                    own_ ? std::nullopt
                         : served_model(study_.model, study_.catalogue().all_models()))
                description_.model_facts = facts_of(served->model);
        }
        const auto* deploy = std::get_if<DeployChoice>(&study_.measuring);
        if (deploy != nullptr && deploy->container) description_.images = deploy->container->images;
        else if (deploy != nullptr && deploy->wrapped)
            description_.images = deploy->wrapped->setting("images");
    }

    void read_others() {
        const bool names_some = space_ != nullptr && names_flags(*space_);
        if (served_by_ != ServedBy::a_running_server) {
            if (!own_ && names_some) description_.others_searched = false;  // these are meant
            read_word<keys::others_words>(root_, keys::study.others, description_.others_searched);
            return;
        }
        if (names_some)
            space_->fail(
                "a server that runs keeps its flags: with `attach` only load.concurrency or "
                "load.request_rate can be searched");
        if (description_.engines.size() > 1)
            root_.at(keys::study.engine).fail("with `attach` one engine wanted: the one that runs");
        description_.others_searched = false;
    }

    void read_rules() {
        if (const Yaml* constraints = root_.find(keys::study.constraints))
            for (const Yaml& item : constraints->items())
                errors_.in([&] {
                    description_.constraints.push_back(read_constraint(item));
                    rules_.push_back(item);
                });
    }

    void read_arguments() {
        const Yaml* arguments = root_.find(keys::study.arguments);
        if (arguments == nullptr) return;
        if (arguments->is_sequence()) {
            if (description_.engines.size() > 1)
                arguments->fail("with several engines: a mapping, engine -> list of words");
            servetune::read(root_, keys::study.arguments,
                            description_.arguments[description_.engines.front().name]);
            note_words(*arguments);
        } else {
            servetune::read(root_, keys::study.arguments, description_.arguments);
            for (const auto& [name, words] : arguments->entries()) {
                check_names_engine(name, words, description_.engines);
                note_words(words);
            }
        }
        for (const Engine& one : description_.engines)
            if (const auto* words = entry_in(description_.arguments, one.name))
                description_.set_by_arguments[one.name] =
                    CommandReader({one}, catalogue_.root()).flags(*words, one).values();
    }

    void read_versions() {
        if (versions_ == nullptr) return;
        servetune::read(root_, keys::study.engine_versions, description_.versions);
        for (const auto& [name, version] : versions_->entries()) {
            check_names_engine(name, version, description_.engines);
            if (version_numbers(version.text()).empty())
                version.fail_wanted("a version such as 0.17.0");
        }
    }

    /// Where an entry of the space stands.
    [[nodiscard]] const Yaml* place_of_entry(const std::string& name) const {
        if (roles_ != nullptr && name == keys::study.roles.name) return roles_;
        if (roles_ != nullptr)
            for (const auto& [role, entries] : roles_->entries())
                if (name.starts_with(role + "."))
                    return entries.entry(std::string_view(name).substr(role.size() + 1));
        return space_ != nullptr ? space_->entry(name) : nullptr;
    }

    void note_places(const Composition& composition) {
        if (space_ != nullptr)
            for (const auto& [name, node] : space_->entries()) try {
                    study_.source.places.emplace(composition.resolve(name), node.place());
                } catch (const SpaceError&) {  // held at its default: no command has it
                }
    }
    void note_words(const Yaml& words) {
        for (const Yaml& word : words.items())
            study_.source.places.emplace(word.text().substr(0, word.text().find('=')),
                                         word.place());
    }

    [[noreturn]] void fail_entry(const std::string& name, const std::string& what) const {
        if (const Yaml* node = place_of_entry(name)) node->fail(what);
        const Yaml* preset = root_.find(keys::study.preset);
        (preset != nullptr ? *preset : root_).fail("'" + name + "': " + what);
    }

    /// What is wrong is said with its place. Of what could be read, too: what is wrong with one
    /// parameter does not hide what is wrong with another.
    std::unique_ptr<Composition> composed(bool all_read) {
        try {
            auto composition = std::make_unique<Composition>(std::move(description_));
            const SearchSpace checked(composition->parameters(), composition->constraints());
            errors_.throw_any();
            note_places(*composition);
            return composition;
        } catch (const ConstraintErrors& wrong) {
            for (const auto& [rule, what] : wrong.each())
                if (all_read) errors_.in([&, &at = rules_[rule], &text = what] { at.fail(text); });
            errors_.throw_any();
            throw;
        } catch (const EntryErrors& wrong) {
            for (const auto& [entry, what] : wrong.each())
                errors_.in([&, &name = entry, &text = what] { fail_entry(name, text); });
            errors_.throw_any();
            throw;
        } catch (const SpaceError& error) {
            errors_.throw_any();
            (space_ != nullptr ? *space_ : root_).fail(error.what());
        }
    }

    const Yaml& root_;
    const Catalogue& catalogue_;
    StudyFile& study_;
    ServedBy served_by_;
    const Yaml* space_;
    const Yaml* roles_;
    const Yaml* versions_;
    bool own_;  ///< the space is the study's own, without an engine
    SpaceDescription description_{};
    AllErrors errors_{};
    std::vector<Yaml> rules_{};  ///< the nodes of description_.constraints
};

}  // namespace

std::unique_ptr<Composition> read_space(const Yaml& root, const Catalogue& catalogue,
                                        StudyFile& study) {
    return SpaceReading(root, catalogue, study).read();
}

}  // namespace servetune
