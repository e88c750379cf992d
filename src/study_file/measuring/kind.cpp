// SPDX-License-Identifier: Apache-2.0
#include "kind.hpp"

#include "engine/per_device.hpp"
#include "load/capacity.hpp"
#include "load/http.hpp"
#include "servetune/benchmark_result.hpp"
#include "base/nearest.hpp"
#include "servetune/detail/deploy/quality_gate.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/outcome.hpp"
#include "servetune/error.hpp"
#include "study_file/all_errors.hpp"
#include "study_file/found_hardware.hpp"
#include "study_file/keys.hpp"
#include "study_file/secrets.hpp"
#include "study_file/study_readers.hpp"
#include "study_file/yaml.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace servetune {

const MeasuringKind& kind_of(const StudyFile& file) {
    return *measuring_kinds.at(file.measuring.index());
}

namespace {

/// How an evaluator that has options of its own is written.
std::string example_of(std::string_view word) {
    if (word == keys::evaluator.attach.name) return "evaluator: {attach: http://127.0.0.1:8000}";
    if (word == keys::evaluator.replay.name) return "evaluator: {replay: measured.csv}";
    return "evaluator: {command: [./measure, \"{config}\"]}";
}

}  // namespace

Yaml spelled_out_evaluator(const Yaml& node) {
    std::string word;
    if (node.is_scalar()) word = node.text();
    else if (node.is_mapping() && node.entries().size() == 1 &&
             node.entries().front().second.kind() == Yaml::Kind::null)
        word = node.entries().front().first;
    else return node;
    std::vector<std::string> known;
    for (const Key& key : rows_of(keys::evaluator)) known.emplace_back(key.name);
    if (std::find(known.begin(), known.end(), word) == known.end())
        node.fail("'" + word + "' is no evaluator; known: " + listed(nearest_first(word, known)));
    if (std::find(keys::plain_evaluators.begin(), keys::plain_evaluators.end(), word) ==
        keys::plain_evaluators.end())
        node.fail("'" + word + "' needs to be told more, such as " + example_of(word));
    for (const Key& key : rows_of(keys::evaluator))
        if (key.name == word) return node.empty_mapping().under(key);
    return node;
}

MeasuringChoice read_measuring(const Yaml& written, bool outside) {
    const Yaml evaluator = spelled_out(is::keyed<keys::evaluator>, written);
    evaluator.check_keys(keys::evaluator);
    const auto rows = rows_of(keys::evaluator);
    std::array<std::string_view, rows.size()> names;
    std::transform(rows.begin(), rows.end(), names.begin(),
                   [](const Key& key) { return key.name; });
    if (outside) return MeasuredOutside{};
    if (evaluator.entries().size() != 1)
        evaluator.fail("one evaluator wanted: " +
                       KeyType{.form = KeyType::Form::word, .words = names}.wanted_text());
    const auto& [name, node] = evaluator.entries().front();
    for (const MeasuringKind* kind : measuring_kinds)
        if (kind->read != nullptr && kind->name == name) return kind->read(node);
    throw std::logic_error("no kind of measuring is called " + name);
}

EnvironmentOptions environment_of_machine(const StudyFile& file) {
    EnvironmentOptions options;
    if (file.machine.found && !file.machine.found->devices.all.empty())
        options.driver = file.machine.found->devices.all.front().driver;
    for (const Engine& engine : file.composition->engines())
        for (const auto* list : {&engine.environment_prefixes, &engine.flag_variables})
            options.prefixes.insert(options.prefixes.end(), list->begin(), list->end());
    return options;
}

std::unique_ptr<Problem> problem_of(const StudyFile& file) {
    return problem_of(file, file.composition->constraints());
}

std::unique_ptr<Problem> problem_of(const StudyFile& file, std::vector<Constraint> constraints) {
    try {
        return std::make_unique<Problem>(
            SearchSpace(file.composition->parameters(), std::move(constraints)), file.objective,
            file.decision);
    } catch (const SpaceError& error) {
        throw SpaceError(file.source.file.string() + ": " + error.what());
    }
}

bool StudyFile::measures() const { return kind_of(*this).measures; }

bool StudyFile::starts_processes() const { return kind_of(*this).processes != nullptr; }

TrialProcesses StudyFile::processes() const {
    const MeasuringKind& kind = kind_of(*this);
    return kind.processes != nullptr ? kind.processes(*this) : TrialProcesses{};
}

std::string StudyFile::measured_by() const {
    const std::string other = why_other_chip(*this);
    return kind_of(*this).note(*this) + (other.empty() ? "" : " But " + other + '.');
}
namespace {

void build_outside(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
                   const RunHooks& /*hooks*/) {
    setup.problem = problem_of(file);
}

void define_outside(const StudySetup& /*setup*/, std::map<std::string, std::string>& definition) {
    definition["evaluator"] = "outside";
}

std::string note_of_outside(const StudyFile& /*file*/) {
    return "Every number was told by the program that asked: nothing of how it was measured is "
           "known here.";
}

}  // namespace

constinit const MeasuringKind outside_kind{
    .name = "outside",
    .build = build_outside,
    .define = define_outside,
    .note = note_of_outside,
};

std::string key_from(const std::string& name, const StudyFile& file) {
    if (name.empty() || !file.kept.empty()) return "";  // a study that is only read asks no server
    const char* key = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (key == nullptr)
        throw UsageError(file.source.file.string() + ": the environment has no " + name +
                         ", which `api_key_env` names");
    CollectSecrets::found(key, "${" + name + "}");
    check_header_text(
        file.source.file.string() + ": the key in " + name + ", which `api_key_env` names", key);
    return key;
}

void add_facts(const StudyFile& file, MeasureOptions& options) {
    const Catalogue catalogue = file.catalogue();
    options.models = catalogue.all_models();
    options.limits = file.objective.limits;
    // These compare with another configuration than the best so far.
    if (file.strategy.name == "local_search" || file.strategy.name == "staged") options.give_up = 0;
    if (!file.machine.chip().empty())
        options.hardware = hardware_in(file.machine.chip(), catalogue.all_hardware());
}

}  // namespace servetune
