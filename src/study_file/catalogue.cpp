// SPDX-License-Identifier: Apache-2.0
#include "servetune/catalogue.hpp"

#include "base/files.hpp"
#include "base/kept_texts.hpp"
#include "base/text.hpp"
#include "keys.hpp"
#include "parameter_reader.hpp"
#include "base/nearest.hpp"
#include "servetune/error.hpp"
#include "study_readers.hpp"
#include "yaml_text.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> yaml_files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code none;
    if (fs::is_directory(folder, none))
        for (const auto& entry : fs::directory_iterator(folder))
            if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

/// The file of this program, links followed; without /proc as it was started. Empty: unknown.
fs::path this_program() {
    std::error_code error;
    fs::path result = fs::read_symlink("/proc/self/exe", error);
    if (!error) return result;
    const auto* started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));  // getauxval(3)
    return started == nullptr ? fs::path() : fs::canonical(started, error);
}

/// A study may be called after the engine that it tunes; it is not what it names.
bool is_study(const fs::path& file) {
    const Yaml text = Yaml::load(file);
    return text.is_mapping() && text.find(keys::study.objective) != nullptr;
}

}  // namespace

Catalogue Catalogue::standard() {
    const fs::path folder = shipped_folder("search_spaces", "engines", "SERVETUNE_SEARCH_SPACES");
    if (folder.empty())
        throw IoError(
            "no folder 'search_spaces' beside or above the program; set SERVETUNE_SEARCH_SPACES");
    return Catalogue(folder);
}

fs::path shipped_folder(const std::string& name, const char* holds, const char* variable) {
    if (const char* given = std::getenv(variable)) return given;  // NOLINT(concurrency-mt-unsafe)
    std::error_code error;
    for (fs::path folder = this_program().parent_path(); !folder.empty();
         folder = folder.parent_path()) {
        for (const fs::path& candidate : {folder / "share/servetune" / name, folder / name})
            if (fs::exists(candidate / holds, error)) return candidate;
        if (folder == folder.root_path()) break;
    }
    return {};
}

fs::path Catalogue::find(const std::string& kind, const std::string& name,
                         const fs::path& beside) const {
    if (name.find('/') != std::string::npos || names_yaml_file(name)) {
        const fs::path file = servetune::beside(beside, with_home(name));
        if (!text_exists(file)) throw IoError("there is no file " + file.string());
        return file;
    }
    for (const std::string& spelled : {name, lower_case(name)})  // vLLM is vllm
        for (const fs::path& folder : {beside, root_ / kind}) {
            const fs::path file = folder / (spelled + ".yaml");
            if (text_exists(file) && (folder != beside || !is_study(file))) return file;
        }
    std::vector<std::string> known;
    for (const fs::path& file : yaml_files_in(root_ / kind)) known.push_back(file.stem().string());
    throw IoError("there is no '" + name + "' among the " + kind + " in " +
                  (root_ / kind).string() + "; known: " + listed(nearest_first(name, known)));
}

fs::path found_by(const Catalogue& catalogue, const std::string& kind, const Yaml& named) {
    try {
        return catalogue.find(kind, named.text(), fs::path(named.file()).parent_path());
    } catch (const IoError& error) {
        named.fail(error.what());
    }
}

Engine Catalogue::engine(const Yaml& named) const {
    return read_engine(Yaml::load(found_by(*this, "engines", named)));
}

Engine Catalogue::engine(const std::string& name) const {
    return read_engine(Yaml::load(find("engines", name, root_ / "engines")));
}

std::vector<Engine> Catalogue::engines() const {
    std::vector<Engine> result;
    for (const fs::path& file : yaml_files_in(root_ / "engines"))
        result.push_back(read_engine(Yaml::load(file)));
    return result;
}

Yaml resolved_workload(const Catalogue& catalogue, const Yaml& described) {
    const auto& table = keys::workload;
    const bool mapping = described.is_mapping();
    const Yaml* used = mapping ? described.find(table.use) : &described;
    const bool own = mapping && described.find(table.dataset) != nullptr;
    if (used == nullptr && !own) described.fail("a workload needs a dataset (or use:)");
    if (used == nullptr) return described;
    const Yaml found = Yaml::load(found_by(catalogue, "workloads", *used));
    if (const Yaml* another = found.find(table.use))
        another->fail("a workload that is used cannot use another");
    if (!own && found.find(table.dataset) == nullptr) found.fail("a workload needs a dataset");
    if (!mapping) return found;
    const Yaml below = own ? found.without(table.input_tokens).without(table.output_tokens) : found;
    return below.overlaid(described.without(table.use), table.use);
}

Workload Catalogue::workload(const Yaml& described) const {
    return read_workload(resolved_workload(*this, described));
}

std::vector<HardwareSpec> Catalogue::all_hardware() const {
    std::vector<HardwareSpec> result;
    for (const fs::path& file : own_hardware_) result.push_back(read_hardware(Yaml::load(file)));
    const std::size_t own = result.size();  // in place of one that ships
    for (const fs::path& file : yaml_files_in(root_ / "hardware")) {
        HardwareSpec shipped = read_hardware(Yaml::load(file));
        const auto end = result.begin() + static_cast<std::ptrdiff_t>(own);
        if (std::none_of(result.begin(), end,
                         [&](const HardwareSpec& one) { return one.name == shipped.name; }))
            result.push_back(std::move(shipped));
    }
    return result;
}

std::vector<ModelSpec> Catalogue::all_models() const {
    std::vector<ModelSpec> result;
    for (const fs::path& file : own_models_)
        result.push_back(read_model(Yaml::load(file)));  // found first
    for (const fs::path& file : yaml_files_in(root_ / "models"))
        result.push_back(read_model(Yaml::load(file)));
    return result;
}

HardwareSpec Catalogue::hardware(const std::string& name) const {
    if (names_yaml_file(name))
        return read_hardware(Yaml::load(find("hardware", name, fs::current_path())));
    std::vector<HardwareSpec> known = all_hardware();
    std::vector<std::string> spelled;
    for (HardwareSpec& spec : known) {
        if (spec.name == name) return std::move(spec);
        spelled.push_back(spec.name);
    }
    if (auto mentioned = hardware_in(name, known)) return std::move(*mentioned);
    throw IoError("there is no '" + name + "' among the hardware in " +
                  (root_ / "hardware").string() +
                  "; known: " + listed(nearest_first(name, spelled), spelled.size()));
}

ServedModel Catalogue::model(const std::string& name) const {
    if (names_yaml_file(name)) {
        ModelSpec spec = read_model(Yaml::load(find("models", name, fs::current_path())));
        const std::string native = spec.native_type;
        return {std::move(spec), native};
    }
    const std::vector<ModelSpec> known = all_models();
    if (auto served = served_model(name, known)) return std::move(*served);
    std::vector<std::string> spelled;
    for (const ModelSpec& spec : known) spelled.push_back(spec.name);
    throw IoError("there is no '" + name + "' among the models in " + (root_ / "models").string() +
                  "; known: " + listed(nearest_first(name, spelled), spelled.size()));
}

EngineTraits Catalogue::traits(const std::string& engine, const std::string& version) const {
    const fs::path file = find("traits", engine, root_ / "traits");
    return read_traits(Yaml::load(file), version);
}

}  // namespace servetune
