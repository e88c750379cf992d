// SPDX-License-Identifier: Apache-2.0
// The cache of finished studies (docs/reference/commands.md, "run"): what a new run takes from it
// and puts into it.
#pragma once

#include "commands.hpp"
#include "servetune/report.hpp"
#include "study_file/knowledge.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace autotune {

/// What the cache has for a run of `file` that starts anew in `folder`; nothing for one that
/// resumes, and with `--no-cache`. `say` gets a line for each file that cannot be read.
std::optional<servetune::NearestStudy> found_in_cache(
    const RunArguments& arguments, const servetune::StudyFile& file,
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& say);

/// Adds what a study learns from without being told to: the study that was found or, of a run that
/// resumes and of one that is only read, the one that its folder keeps. Not where the strategy
/// cannot learn, and not where the user says what to learn from (`knowledge`, `--learn-from`).
void learn_from_cache(servetune::StudyFile& file, const std::filesystem::path& folder,
                      const std::optional<servetune::NearestStudy>& found);

/// What a person is told of the study that was found. `setup`: the new study, which may have
/// learned from it.
std::vector<std::string> lines_of(const servetune::NearestStudy& found,
                                  const servetune::StudySetup& setup);

/// A line for a run that looked into a cache and found no study that it can use; empty: it did not
/// look, the cache is empty, or one was found.
std::string why_nothing_found(const RunArguments& arguments, const servetune::StudyFile& file,
                              const std::filesystem::path& folder);

/// A line with both conclusions of a study that was made before, their dates and versions of the
/// engine; empty: what was found is another study.
std::string then_and_now(const servetune::NearestStudy& found, const servetune::StudySetup& setup,
                         const servetune::Headline& now);

/// Copies the study that was found into the folder of the one that learns from it: the next run
/// there learns the same, whatever the cache has by then.
void keep_beside(const servetune::NearestStudy& found, const servetune::StudySetup& setup,
                 const std::filesystem::path& folder,
                 const std::function<void(const std::string&)>& say);

/// Puts a run that has come to a conclusion into the cache, if it load-tested a server and has
/// results of the default and another configuration. `say` gets where, or why not.
void keep_for_later(const servetune::StudySetup& setup, const std::vector<servetune::Trial>& trials,
                    const std::filesystem::path& folder,
                    const std::function<void(const std::string&)>& say);

}  // namespace autotune
