// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "yaml.hpp"

#include <string>
#include <vector>

namespace servetune {

/// What the study says outside of `space` of something that its commands set themselves: under
/// `arguments`, in the evaluator's `environment` and in the options of its containers. The engine
/// would take one of the two, in every trial the same. A message for each, with its place.
std::vector<std::string> said_twice(const Yaml& root, const StudyFile& study);

}  // namespace servetune
