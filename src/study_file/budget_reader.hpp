// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace servetune {

class Yaml;
struct StudyFile;

/// Reads `budget`: a mapping, or what a person says for short, `30 trials`, `45min` or `60 trials, 8h`. Throws
/// ParseError.
void read_budget(const Yaml& budget, StudyFile& study);

}  // namespace servetune
