// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace servetune {

/// The trials of a budget that says a time and no trials: more than any time is enough for.
constexpr std::size_t trials_of_a_time = 1'000'000;

class Yaml;
struct StudyFile;

/// Reads `budget`: a mapping, or what a person says for short, `30 trials`, `45min` or `60 trials,
/// 8h`. Throws ParseError.
void read_budget(const Yaml& budget, StudyFile& study);

}  // namespace servetune
