// SPDX-License-Identifier: Apache-2.0
#include "project_recipes.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/version.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <algorithm>
#include <utility>

namespace servetune {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

namespace {

/// A child of a file that is not ours; null: there is none.
const Yaml* child_of(const Yaml* node, std::string_view name) {
    return node != nullptr && node->is_mapping() ? node->entry(name) : nullptr;
}

std::string text_under(const Yaml* node, std::string_view name) {
    const Yaml* child = child_of(node, name);
    return child != nullptr && child->is_scalar() ? child->text() : "";
}

/// The parts of a file of vllm-project/recipes that make a command for a chip.
class ProjectFile {
public:
    ProjectFile(const Yaml& file, std::string name, const HardwareSpec& chip,
                const std::vector<HardwareSpec>& known)
        : file_(file), name_(std::move(name)), chip_(chip), known_(known) {}

    [[nodiscard]] const Yaml* at(std::string_view key) const { return child_of(&file_, key); }
    [[nodiscard]] std::string model() const { return text_under(at(model_), "model_id"sv); }
    /// Empty: it has commands of vllm on one node.
    [[nodiscard]] std::string why_not() const {
        if (at("omni"sv) != nullptr) return "its server is vllm-omni";
        const Yaml* strategies = at("compatible_strategies"sv);
        if (strategies != nullptr && strategies->is_sequence())
            for (const Yaml& one : strategies->items())
                if (one.is_scalar() && one.text() == strategy_) return "";
        return "it has no command for tensor parallelism on one node";
    }

    [[nodiscard]] std::vector<Recipe> recipes() const {
        std::vector<Recipe> result;
        const Yaml* variants = at("variants"sv);
        if (variants == nullptr || !variants->is_mapping()) return result;
        for (const auto& [called, variant] : variants->entries()) {
            Recipe& recipe = result.emplace_back();
            const std::string own = text_under(&variant, "model_id"sv);
            recipe.models = {own.empty() ? model() : own};
            const std::string since = text_under(&variant, "min_vllm_version"sv);
            recipe.since = since.empty() ? text_under(at(model_), "min_vllm_version"sv) : since;
            if (version_numbers(recipe.since).empty()) recipe.since.clear();
            recipe.hardware = chips();
            recipe.source = "vllm-project/recipes " + name_ +
                            (called == "default" ? "" : ", variant " + called);
            recipe.licence = "Apache-2.0";
            gather(variant, recipe.command);
        }
        return result;
    }

private:
    static constexpr std::string_view model_ = "model", strategy_ = "single_node_tp",
                                      by_chip_ = "hardware_overrides", words_ = "extra_args";

    [[nodiscard]] std::optional<HardwareSpec> chip_called(std::string name) const {
        std::replace(name.begin(), name.end(), '_', ' ');
        return hardware_in(name, known_);
    }
    [[nodiscard]] std::vector<std::string> chips() const {
        std::vector<std::string> result;
        const Yaml* all = child_of(at("meta"sv), "hardware"sv);
        if (all == nullptr || !all->is_mapping() || all->entries().empty())
            return {chip_.name};  // it names none: it is for all
        for (const auto& [name, state] : all->entries())
            if (const auto chip = chip_called(name);
                chip && (!state.is_scalar() || state.text() != "unsupported"))
                result.push_back(chip->name);
        return result;
    }
    /// Of a mapping by chips: of this one, else of its generation, its maker, or all.
    [[nodiscard]] const Yaml* exactly(const Yaml* by_chip) const {
        if (by_chip == nullptr || !by_chip->is_mapping()) return nullptr;
        for (const auto& [name, value] : by_chip->entries())
            if (const auto chip = chip_called(name); chip && chip->name == chip_.name)
                return &value;
        return nullptr;
    }
    [[nodiscard]] const Yaml* by_generation(const Yaml* by_chip) const {
        const bool amd = chip_.architecture.starts_with("cdna");
        const std::string generation =
            amd ? "amd" : chip_.architecture.substr(0, chip_.architecture.find('-'));
        const Yaml* found = child_of(by_chip, generation);
        return found != nullptr || amd ? found : child_of(by_chip, "nvidia"sv);
    }

    static void add(const Yaml* part, Command& command, std::string_view words = words_,
                    std::string_view environment = "extra_env") {
        if (const Yaml* list = child_of(part, words); list != nullptr && list->is_sequence())
            for (const Yaml& word : list->items()) command.argv.push_back(word.text());
        if (const Yaml* all = child_of(part, environment); all != nullptr && all->is_mapping())
            for (const auto& [name, value] : all->entries())
                command.environment[name] = value.text();
    }
    /// As src/lib/command-synthesis.js of the project puts it together (8959cf6).
    void gather(const Yaml& variant, Command& command) const {
        const Yaml* own = child_of(at("strategy_overrides"sv), strategy_);
        const Yaml* of_own = child_of(own, by_chip_);
        add(at(model_), command, "base_args", "base_env");
        add(&variant, command);
        add(exactly(child_of(&variant, by_chip_)), command);
        if (const std::string devices = devices_for(variant, own); devices != "1")
            command.argv.insert(command.argv.end(), {"--tensor-parallel-size", devices});
        add(own, command);
        if (const Yaml* instead = by_generation(of_own)) add(instead, command);
        else {
            add(by_generation(at(by_chip_)), command);
            add(by_generation(child_of(&variant, by_chip_)), command);
        }
        add(exactly(of_own), command);
        const Yaml* features = at("features"sv);
        if (features == nullptr || !features->is_mapping()) return;
        for (const auto& [name, feature] : features->entries()) {
            if (is_off(name)) continue;
            const Yaml* here = by_generation(child_of(&feature, by_chip_));
            add(child_of(here, "args"sv) != nullptr ? here : &feature, command, "args");
        }
    }
    [[nodiscard]] bool is_off(const std::string& feature) const {
        for (const Yaml* off : {at("opt_in_features"sv), exactly(at("hardware_opt_in_features"sv))})
            if (off != nullptr && off->is_sequence())
                for (const Yaml& one : off->items())
                    if (one.is_scalar() && one.text() == feature) return true;
        return false;
    }
    /// Over how many a variant is spread: as it says, else 1 where it fits one, else a whole node.
    [[nodiscard]] std::string devices_for(const Yaml& variant, const Yaml* own) const {
        for (const Yaml* said : {child_of(&variant, "tp"sv), child_of(own, "tp"sv)}) {
            if (said != nullptr && said->is_scalar()) return said->text();
            for (const Yaml* one :
                 {exactly(said), by_generation(said), child_of(said, "default"sv)})
                if (one != nullptr) return one->text();
        }
        const auto least = number_of(value_of(text_under(&variant, "vram_minimum_gb"sv)));
        return std::to_string(
            least && *least * 1e9 > chip_.memory_bytes ? chip_.devices_per_node.value_or(1) : 1);
    }

    const Yaml& file_;
    std::string name_;
    const HardwareSpec& chip_;
    const std::vector<HardwareSpec>& known_;
};

/// The files of YAML at a path, in the order of their names.
std::vector<fs::path> yaml_files_at(const fs::path& path) {
    if (!fs::is_directory(path)) return {path};
    std::vector<fs::path> result;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(path, error);
         !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
        if (entry->is_regular_file() && names_yaml_file(entry->path().string()))
            result.push_back(entry->path());
    if (error) throw IoError("cannot list " + path.string() + ": " + error.message());
    sort(result);
    return result;
}

}  // namespace

std::vector<Recipe> recipes_of_project(const fs::path& path, const RecipeWish& wish,
                                       const std::vector<HardwareSpec>& known,
                                       std::vector<std::string>& unread) {
    std::vector<Recipe> result;
    const std::vector<fs::path> files = yaml_files_at(path);
    bool any = false;
    for (const fs::path& file : files) {
        const std::string name = (file.parent_path().filename() / file.filename()).generic_string();
        try {
            const std::string text = read_file(file);
            if (files.size() > 1 && !contains(text, "model_id")) continue;
            // Of others: nothing in it is one of our variables.
            const Yaml yaml = Yaml::parse(replaced_all(text, "${", "$${"), file.string());
            const ProjectFile parts(yaml, name, wish.chip, known);
            if (parts.model().empty()) {
                if (files.size() == 1)
                    yaml.fail("a recipe of vllm-project/recipes has model.model_id; this has none");
                continue;
            }
            any = true;
            std::vector<Recipe> all = parts.recipes();
            std::erase_if(all, [&](const Recipe& one) {
                const std::vector<ModelSpec> models{{one.models.front()}};
                return !served_model(wish.model, models);
            });
            if (const std::string why = parts.why_not(); !all.empty() && !why.empty())
                unread.push_back(name + ": " + why);
            else result.insert(result.end(), all.begin(), all.end());
        } catch (const ParseError& error) {
            if (files.size() == 1) throw;
            unread.emplace_back(error.what());
        }
    }
    if (!any)
        throw ParseError(path.string() + ": no file of it is a recipe of vllm-project/recipes");
    return result;
}

}  // namespace servetune
