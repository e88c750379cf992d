// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune {

class Yaml;
struct StudyFile;

/// Reads `objective`, whose workloads are read: goals, limits, and how workloads count together.
/// `words`: of a load test, whose metrics we name; other evaluators have names of their own. Throws
/// ParseError.
void read_objective(const Yaml& node, bool words, StudyFile& study);

/// Of a load test, what a goal such as `request_rate` asks of the workloads' arrivals, and what a
/// search for the largest load needs. Throws ParseError.
void look_for_load(const Yaml& root, StudyFile& study);

/// Where layouts of several sizes compete by a figure that grows with the devices, the largest wins
/// for no merit: what to say of that, or nothing.
std::string larger_looks_better(const StudyFile& study);

}  // namespace servetune
