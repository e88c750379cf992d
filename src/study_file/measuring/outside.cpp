// SPDX-License-Identifier: Apache-2.0
// No evaluator: the program that asks for configurations measures them and tells the numbers.
#include "kind.hpp"

namespace servetune {
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

}  // namespace servetune
