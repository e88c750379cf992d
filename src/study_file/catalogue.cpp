// SPDX-License-Identifier: Apache-2.0 The files that ship and those of users: where they are, facts
// of accelerators, models and engines, and workloads.

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "engine/version.hpp"
#include "fact_keys.hpp"
#include "load/data_files.hpp"
#include "readers.hpp"
#include "study_snapshot.hpp"
#include "yaml_text.hpp"

#include <sys/auxv.h>

#include <cmath>
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
    sort(files);
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
bool is_study(const Yaml& text) {
    return text.is_mapping() && text.find(keys::study.objective) != nullptr;
}

[[noreturn]] void refuse_name(const std::string& name, const fs::path& folder,
                              const std::vector<std::string>& known) {
    throw IoError("there is no '" + name + "' among the " + folder.filename().string() + " in " +
                  folder.string() + "; known: " + listed(nearest_first(name, known), known.size()));
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
    if (contains(name, '/') || names_model_file(name)) {
        const fs::path file = beside / with_home(name);
        if (!text_exists(file, snapshot_)) throw IoError("there is no file " + file.string());
        return file;
    }
    for (const std::string& spelled : {name, lower_case(name)})  // vLLM is vllm
        for (const fs::path& folder : {beside, root_ / kind}) {
            const fs::path file = folder / (spelled + ".yaml");
            if (text_exists(file, snapshot_) &&
                (folder != beside || !is_study(Yaml::load(file, snapshot_))))
                return file;
        }
    std::vector<std::string> known;
    for (const fs::path& file : yaml_files_in(root_ / kind)) known.push_back(file.stem().string());
    refuse_name(name, root_ / kind, known);
}

fs::path found_by(const Catalogue& catalogue, const std::string& kind, const Yaml& named) {
    try {
        return catalogue.find(kind, named.text(), fs::path(named.file()).parent_path());
    } catch (const IoError& error) {
        named.fail(error.what());
    }
}

/// Behind its own failures those that the logs of all engines have.
Engine Catalogue::engine_of(const fs::path& file) const {
    Engine result = read_engine(Yaml::load(file, snapshot_));
    const fs::path common = root_ / "failures.yaml";
    if (text_exists(common, snapshot_)) {
        const std::vector<Yaml> lines = Yaml::load(common, snapshot_).items();
        for (const Yaml& line : lines)
            read_table(line, keys::failure, result.failures.emplace_back());
    }
    return result;
}

Engine engine_named(const Catalogue& catalogue, const Yaml& named) {
    return catalogue.engine_of(found_by(catalogue, "engines", named));
}

Engine Catalogue::engine(const std::string& name) const {
    const fs::path beside = names_yaml_file(name) ? fs::current_path() : root_ / "engines";
    return engine_of(find("engines", name, beside));
}

std::vector<Engine> Catalogue::engines() const {
    std::vector<Engine> result;
    for (const fs::path& file : yaml_files_in(root_ / "engines")) result.push_back(engine_of(file));
    return result;
}

Yaml resolved_workload(const Catalogue& catalogue, const Yaml& described) {
    const auto& table = keys::workload;
    const bool mapping = described.is_mapping();
    const Yaml* used = mapping ? described.find(table.use) : &described;
    const bool own = mapping && described.find(table.dataset) != nullptr;
    if (used == nullptr && !own) described.fail("a workload needs a dataset (or use:)");
    if (used == nullptr) return described;
    const Yaml found = Yaml::load(found_by(catalogue, "workloads", *used), catalogue.snapshot());
    if (const Yaml* another = found.find(table.use))
        another->fail("a workload that is used cannot use another");
    if (!own && found.find(table.dataset) == nullptr) found.fail("a workload needs a dataset");
    if (!mapping) return found;
    const Yaml below = own ? found.without(table.input_tokens).without(table.output_tokens) : found;
    return below.overlaid(described.without(table.use), table.use);
}

Workload workload_in(const Catalogue& catalogue, const Yaml& described) {
    return read_workload(resolved_workload(catalogue, described));
}

std::vector<HardwareSpec> Catalogue::all_hardware() const {
    std::vector<HardwareSpec> result;
    for (const fs::path& file : own_hardware_)
        result.push_back(read_hardware(Yaml::load(file, snapshot_)));
    for (const fs::path& file : yaml_files_in(root_ / "hardware")) {
        HardwareSpec shipped = read_hardware(Yaml::load(file, snapshot_));
        if (none_of(result, [&](const HardwareSpec& one) {
                return one.name == shipped.name;  // of the user's own, in its place
            }))
            result.push_back(std::move(shipped));
    }
    return result;
}

ModelSpec Catalogue::model_of(const fs::path& file) const {
    return names_yaml_file(file.string()) ? read_model(Yaml::load(file, snapshot_))
                                          : model_from_files(file);
}

std::vector<ModelSpec> Catalogue::all_models() const {
    std::vector<ModelSpec> result;
    for (const auto& [file, called] : own_models_) {  // found first
        result.push_back(model_of(file));
        if (!called.empty()) result.back().name = called;
    }
    for (const fs::path& file : yaml_files_in(root_ / "models"))
        result.push_back(read_model(Yaml::load(file, snapshot_)));
    return result;
}

HardwareSpec Catalogue::hardware(const std::string& name) const {
    if (names_yaml_file(name))
        return read_hardware(Yaml::load(find("hardware", name, fs::current_path()), snapshot_));
    const std::vector<HardwareSpec> known = all_hardware();
    if (auto mentioned = hardware_in(name, known)) return std::move(*mentioned);
    refuse_name(name, root_ / "hardware", names_in(known));
}

ServedModel Catalogue::model(const std::string& name) const {
    if (names_model_file(name)) {
        ModelSpec spec = model_of(find("models", name, fs::current_path()));
        const std::string native = spec.native_type;
        return {std::move(spec), native};
    }
    const std::vector<ModelSpec> known = all_models();
    if (auto served = served_model(name, known)) return std::move(*served);
    refuse_name(name, root_ / "models", names_in(known));
}

namespace {

/// Of each kernel what the newest version has that is not newer, else the oldest.
void read_kernel_tables(const Yaml& file, const std::string& version, EngineTraits& traits) {
    const auto& table = keys::kernels;
    read_table(file, table, traits);
    for (const Key* needed : {&table.engine, &table.source, &table.licence}) (void)file.at(*needed);
    for (const auto& [chip, versions] : file.at(table.kernels).entries())
        for (const auto& [since, rows] : versions.entries())
            for (const auto& [name, row] : rows.entries()) {
                std::vector<double> of;
                read_as(is::list_of<is::number_from<0>>, row, of);
                if (of.size() != 4) row.fail("[compute, bandwidth, seconds, sharpness] wanted");
                auto& known = traits.kernels[chip];
                if (version.empty() || compare_to_bound(version, since) >= 0 ||
                    !known.contains(name))
                    known[name] = {of[0], of[1], of[2], of[3]};
            }
}

}  // namespace

EngineTraits Catalogue::traits(const std::string& engine, const std::string& version) const {
    const fs::path file = find("traits", engine, root_ / "traits");
    EngineTraits result = read_traits(Yaml::load(file, snapshot_), version);
    const fs::path kernels = root_ / "kernels" / file.filename();  // of traits that ship
    if (file.parent_path() == root_ / "traits" && text_exists(kernels, snapshot_))
        read_kernel_tables(Yaml::load(kernels, snapshot_), version, result);
    return result;
}

namespace {

/// Number type of the matrix products. Where the name of a quantization is none, only the weights
/// are in fewer bits, and products are computed in bf16.
std::string product_type_of(const std::string& quantization) {
    if (quantization.ends_with("fp4")) return "fp4";  // nvfp4, mxfp4
    return quantization == "fp8" || quantization == "int8" ? quantization : "bf16";
}

void check_other_type(const Yaml& mapping, const EngineTraits& traits) {
    if (!traits.compute_efficiency.contains("other"))
        mapping.fail("'other' is missing: for types that are not named");
}

/// What holds before a version, on top of what holds before later ones.
void read_earlier(const Yaml& before, const std::string& version, EngineTraits& traits) {
    const auto& table = keys::earlier_traits;
    const std::string* later = nullptr;
    for (const auto& [bound, node] : before.entries()) {
        if (version_numbers(bound).empty())
            node.fail("a version of the engine wanted, such as \"0.14\"; got '" + bound + "'");
        if (later != nullptr && compare_to_bound(bound, *later) >= 0)
            node.fail("the newest first: '" + bound + "' is not before '" + *later + "'");
        later = &bound;
        EngineTraits then = traits;
        read_table(node, table, then);
        if (const Yaml* types = node.find(table.compute_efficiency)) check_other_type(*types, then);
        then.defaults.insert(traits.defaults.begin(), traits.defaults.end());
        if (!version.empty() && compare_to_bound(version, bound) < 0) traits = std::move(then);
    }
}

void check_sources(const Yaml& file) {
    const Yaml& sources = file.at(keys::traits.sources);
    for (const auto& [key, node] : file.entries()) {
        const bool figure = node.is_mapping()
                                ? key != keys::traits.log.name && key != keys::traits.sources.name
                                : node.is_scalar() && key != keys::traits.engine.name;
        if (figure && sources.entry(key) == nullptr)
            node.fail("'" + key + "' has no source: say where the figure is from under 'sources'");
    }
}

}  // namespace

HardwareSpec read_hardware(const Yaml& file) {
    HardwareSpec spec;
    read_table(file, keys::hardware, spec);
    return spec;
}

ModelSpec read_model(const Yaml& file) {
    const auto& table = keys::model;
    ModelSpec spec;
    read_table(file, table, spec);
    if (file.find(table.attention_layers) == nullptr) spec.attention_layers = spec.layers;
    spec.parameters_embedding =
        double(spec.vocabulary * spec.hidden_size) * (spec.tied_embeddings ? 1 : 2);
    if (!(spec.parameters_embedding < spec.parameters_active))
        file.at(table.parameters_active)
            .fail("more than the embeddings wanted, which are vocabulary x hidden_size");
    if (file.find(table.kv_bytes_per_token_16bit) == nullptr)
        spec.kv_bytes_per_token_16bit =
            double(4 * spec.attention_layers * spec.kv_heads * spec.head_dim);
    const auto& checkpoints = file.at(table.weights).entries();
    spec.native_type = checkpoints.front().first;
    for (const auto& [quantization, node] : checkpoints) {
        ModelWeights& weights = spec.weights[quantization];
        if (weights.computes_in.empty()) weights.computes_in = product_type_of(quantization);
        if (weights.per_token > weights.bytes) node.fail("per_token <= bytes must hold");
    }
    return spec;
}

EngineTraits read_traits(const Yaml& file, const std::string& version) {
    const auto& table = keys::traits;
    EngineTraits traits;
    read_table(file, table, traits);
    for (const Key* needed :
         {&table.compute_efficiency, &table.bandwidth_efficiency, &table.step_overhead_seconds,
          &table.sequence_overhead_seconds, &table.request_overhead_seconds})
        (void)file.at(*needed);
    check_other_type(file.at(table.compute_efficiency), traits);
    traits.default_attention = file.at(table.attention).entries().front().first;
    if (const Yaml* node = file.find(table.before)) read_earlier(*node, version, traits);
    std::erase_if(traits.checked, [&](const CostCheck& one) {
        return !version_within(version, one.since, one.until);
    });
    check_sources(file);
    return traits;
}

namespace {

void check_needs(const Yaml& node, const Dataset& dataset) {
    const auto& table = keys::dataset;
    using Kind = Dataset::Kind;
    const std::multimap<Kind, Key> needs{
        {Kind::sharegpt, table.path},
        {Kind::trace, table.path},
        {Kind::prompts, table.path},
        {Kind::random, table.input_tokens},
        {Kind::random, table.output_tokens},
        {Kind::shared_prefix, table.prefix_tokens},
        {Kind::shared_prefix, table.input_tokens},
        {Kind::shared_prefix, table.output_tokens},
        {Kind::multi_turn, table.turns},
        {Kind::multi_turn, table.input_tokens},
        {Kind::multi_turn, table.output_tokens},
    };
    for (const auto& [kind, key] : needs)
        if (kind == dataset.kind && node.find(key) == nullptr)
            node.fail("a data set of kind " + std::string(name_in(dataset_kinds, kind)) +
                      " needs " + std::string(key.name));
}

Dataset read_dataset(const Yaml& node) {
    Dataset result;
    read_table(node, keys::dataset, result);
    if (const Yaml* path = node.find(keys::dataset.path)) {
        (void)path_of(*path);  // which it may not be
        result.path = text_with_home(*path);
    }
    result.folder = fs::path(node.file()).parent_path().string();
    if (result.kind == Dataset::Kind::sharegpt) {
        result.min_tokens = sharegpt_min_tokens;
        result.max_prompt_tokens = sharegpt_max_prompt_tokens;
        result.max_total_tokens = sharegpt_max_total_tokens;
    }
    check_needs(node, result);
    return result;
}

Arrival read_arrival(const Yaml& node) {
    const auto& table = keys::arrival;
    using Kind = Arrival::Kind;
    Arrival result;
    read_table(node, table, result);
    const Yaml* rate = node.find(table.rate);
    int given = rate != nullptr ? 1 : 0;
    for (const auto& [key, kind] : {std::pair(table.concurrency, Kind::concurrency),
                                    {table.largest_rate, Kind::largest_rate},
                                    {table.largest_concurrency, Kind::largest_concurrency}})
        if (node.find(key) != nullptr) {
            ++given;
            result.kind = kind;
        }
    if (given > 1)
        node.fail("an arrival is one of rate, concurrency, largest_rate, largest_concurrency");
    if (rate != nullptr && rate->is_scalar() && rate->text() == "timestamps")
        result.kind = Kind::trace;
    else if (rate != nullptr) {
        double per_second = 0;
        read(node, table.rate, per_second);
        if (std::isfinite(per_second)) {
            result.kind = Kind::rate;
            result.requests_per_second = per_second;
        }
    }
    const LoadSearch& search = result.search;
    if (search.from && search.to && *search.from >= *search.to) node.fail("`from` is below `to`");
    if (const Yaml* speed = node.find(table.speed); speed != nullptr && result.kind != Kind::trace)
        speed->fail("speed goes with `rate: timestamps`");
    if (const Yaml* burstiness = node.find(table.burstiness);
        burstiness != nullptr && result.kind != Kind::rate && result.kind != Kind::largest_rate)
        burstiness->fail("burstiness goes with a finite rate or largest_rate");
    return result;
}

}  // namespace

Workload read_workload(const Yaml& node) {
    const auto& table = keys::workload;
    Workload result;
    AllErrors errors;
    errors.in([&] {
        if (const Yaml* dataset = node.find(table.dataset)) result.dataset = read_dataset(*dataset);
    });
    errors.in([&] { read_table(node, table, result); });
    errors.in([&] {
        if (const Yaml* arrival = node.find(table.arrival)) result.arrival = read_arrival(*arrival);
    });
    if (result.name.empty()) errors.in([&] { node.fail("a workload needs a name ('workload:')"); });
    errors.throw_any();
    return result;
}

}  // namespace servetune
