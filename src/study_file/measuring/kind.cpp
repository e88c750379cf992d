// SPDX-License-Identifier: Apache-2.0
#include "kind.hpp"

#include "../keys.hpp"
#include "servetune/io/yaml.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace servetune {

const MeasuringKind& kind_of(const StudyFile& file) { return *measuring_kinds.at(file.measuring.index()); }

MeasuringChoice read_measuring(const Yaml& evaluator, bool outside) {
    evaluator.check_keys(keys::evaluator);
    const auto rows = rows_of(keys::evaluator);
    std::array<std::string_view, rows.size()> names;
    std::transform(rows.begin(), rows.end(), names.begin(), [](const Key& key) { return key.name; });
    if (outside) return MeasuredOutside{};
    if (evaluator.entries().size() != 1)
        evaluator.fail("one evaluator wanted: " + KeyType{.form = KeyType::Form::word, .words = names}.wanted_text());
    const auto& [name, node] = evaluator.entries().front();
    for (const MeasuringKind* kind : measuring_kinds)
        if (kind->read != nullptr && kind->name == name) return kind->read(node);
    throw std::logic_error("no kind of measuring is called " + name);
}

std::unique_ptr<Problem> problem_of(const StudyFile& file) {
    return std::make_unique<Problem>(SearchSpace(file.composition->parameters(), file.composition->constraints()), file.objective,
                                     file.decision);
}

bool StudyFile::measures() const { return kind_of(*this).measures; }

bool StudyFile::starts_processes() const { return kind_of(*this).processes != nullptr; }

TrialProcesses StudyFile::processes() const {
    const MeasuringKind& kind = kind_of(*this);
    return kind.processes != nullptr ? kind.processes(*this) : TrialProcesses{};
}

std::string StudyFile::measured_by() const { return kind_of(*this).note(*this); }

}  // namespace servetune
