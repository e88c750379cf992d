// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "explain_report.hpp"

namespace servetune {

/// Why the study does not recommend what it recommends with some settings changed: a rule forbids
/// it, it was measured and is worse or refused, or what the models expect of it, and the nearest
/// configuration that was tried. `changes`: parameters of the space. Throws SpaceError for a value
/// outside its domain.
ExplainReport explain_why_not(const StudySetup& setup, std::span<const Trial> trials,
                              const Assignment& changes);

}  // namespace servetune
